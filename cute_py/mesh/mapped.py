"""Ranks of one host whose GPUs reach each other: each writes into the memory of the others, without messages.

    offer     every rank gives out a handle of the memory that it receives into
    open      every rank maps what it sends to into its own addresses
    agree     if one of them can't, all use messages, and know why
    push      the kernels of `Pushes`; a rank runs those of what it sends

A handle is of any memory that cudaMalloc made, as PyTorch's and CuPy's is. Source: CUDA driver API, cuIpcGetMemHandle,
cuIpcOpenMemHandle.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cute_py.errors import CuteError, DeviceError
from cute_py.gpu.arrays import ArrayView, array_view
from cute_py.gpu.bindings import call, driver
from cute_py.gpu.device import Device, open_device
from cute_py.mesh.peer import on_device
from cute_py.mesh.pushes import Push, Pushes, why_no_kernel
from cute_py.mesh.transfer import Plan, Transfer
from cute_py.mesh.watch import Watch

_BUS_ID = 20
"""Characters of a device's address on the bus."""

_HANDLE_BYTES = 64
"""CU_IPC_HANDLE_SIZE."""


class Opened:
    """Memory of another process, mapped until this is dropped."""

    def __init__(self, device: Device, handle: bytes) -> None:
        api = driver()
        self._device = device
        given = api.CUipcMemHandle()
        ctypes.memmove(given.getPtr(), handle, _HANDLE_BYTES)
        with device.current():
            lazy = api.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.value
            self.address = int(call("opening another rank's memory", api.cuIpcOpenMemHandle, given, lazy))

    def __del__(self) -> None:
        with contextlib.suppress(Exception), self._device.current():  # not opened, or at interpreter exit
            driver().cuIpcCloseMemHandle(self.address)


def map_ranks(
    plan: Plan, watch: Watch, sources: Mapping[int, Any], written: Mapping[int, Any], sms: int
) -> tuple[Pushes | None, str]:
    """The kernels of what this rank sends, or None and why all ranks use messages. All of them call it."""
    rank = watch.transport.rank
    transfers: list[Transfer] = []
    try:
        mine = _offer(plan, watch, sources, written, transfers)
    except CuteError as problem:
        mine = {"why": problem.headline}
    offers = [json.loads(text) for text in watch.gather(json.dumps(mine))]
    why = next((f"rank {r}: {one['why']}" for r, one in enumerate(offers) if one["why"]), "")
    if not why and len({one["host"] for one in offers}) > 1:
        why = "the ranks are on several hosts"
    if why:
        return None, why
    pushes, failed = None, ""
    try:
        pushes = _opened(rank, offers, transfers, sources, written, sms)
    except CuteError as problem:
        failed = problem.headline
    failures = watch.gather(failed)
    why = next((f"rank {r}: {one}" for r, one in enumerate(failures) if one), "")
    return (None, why) if why else (pushes, "")


def _offer(
    plan: Plan, watch: Watch, sources: Mapping[int, Any], written: Mapping[int, Any], transfers: list[Transfer]
) -> dict[str, Any]:
    """What the other ranks need to write into this one's memory; `transfers` gets what this rank sends."""
    rank = watch.transport.rank
    if not watch.transport.maps:
        return {"why": "the transport maps no memory"}
    arrays = [one[rank] for one in (sources, written) if rank in one]
    if not all(map(on_device, arrays)):
        return {"why": "its memory is the host's"}
    views = [array_view(one) for one in arrays]
    if len({view.device for view in views}) > 1:
        return {"why": "its memory is on two devices"}
    for number in range(plan.destination.devices):
        watch.step()
        for group in plan.groups(number, rank) if rank < plan.source.devices else ():
            why = why_no_kernel(group)
            if why:
                return {"why": why}
            transfers += group
    boot = Path("/proc/sys/kernel/random/boot_id")
    found = {"why": "", "host": f"{socket.gethostname()} {boot.read_text().strip() if boot.exists() else ''}"}
    if rank in written and views[-1].count:
        api, view = driver(), views[-1]
        device = open_device(view.device)
        with device.current():
            base, _ = call("asking for an allocation", api.cuMemGetAddressRange, view.address)
            handle = call("making a handle of memory", api.cuIpcGetMemHandle, base)
            number = call("opening a device", api.cuDeviceGet, device.ordinal)
            bus = call("asking for a device's address", api.cuDeviceGetPCIBusId, _BUS_ID, number)
        found |= {"bus": bus.split(b"\0")[0].decode(), "handle": ctypes.string_at(handle.getPtr(), _HANDLE_BYTES).hex()}
        found["offset"] = str(view.address - int(base))
    return found


def _opened(
    rank: int,
    offers: list[dict[str, str]],
    transfers: list[Transfer],
    sources: Mapping[int, Any],
    written: Mapping[int, Any],
    sms: int,
) -> Pushes | None:
    if not transfers:
        return None
    api, view = driver(), array_view(sources[rank])
    device = open_device(view.device)
    here = call("opening a device", api.cuDeviceGet, device.ordinal)
    goals: dict[int, ArrayView] = {}
    for to in sorted({t.destination_device for t in transfers}):
        if to == rank:
            goals[to] = array_view(written[rank])
            continue
        there = call("finding another rank's device", api.cuDeviceGetByPCIBusId, offers[to]["bus"].encode())
        if int(here) != int(there) and not int(call("asking for peer access", api.cuDeviceCanAccessPeer, here, there)):
            raise DeviceError(f"no peer access to rank {to}")
        memory = Opened(device, bytes.fromhex(offers[to]["handle"]))
        address = memory.address + int(offers[to]["offset"])
        goals[to] = ArrayView(address, (1,), (1,), view.dtype, int(there), False, memory)
    pushes = []
    for t in transfers:
        goal = goals[t.destination_device]
        pushes.append(Push(t, view, goal, device, int(goal.device or 0)))
    return Pushes(pushes, {device.ordinal: device}, sms)
