"""A redistribution with one process for each device: each packs, sends, receives and unpacks its own part.

check      every rank checks its memory; all learn what any of them found, and raise it together
map        ranks of one host whose GPUs reach each other give out handles of the memory that they receive into, and open
           those of the others; if one can't, all use messages, and know why
here?      a launch begins when all ranks have come to it
push       mapped: each rank runs the kernels of what it sends, as one process does (`peer`)
rounds     else: pack, send and receive messages of bounded size, copy what stays meanwhile, unpack
arrived?   when all has arrived everywhere, scratch memory goes to the destinations

A handle is of any memory that cudaMalloc made, as PyTorch's and CuPy's is. Source: CUDA driver API, cuIpcGetMemHandle,
cuIpcOpenMemHandle.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cute_py.diagnostics import Diagnostic, diagnostics_of, refuse
from cute_py.errors import CuteError, DeviceError, InvalidValueError, shortened
from cute_py.gpu.arrays import ArrayView, array_view
from cute_py.gpu.bindings import call, driver
from cute_py.gpu.device import Device, open_device
from cute_py.mesh.host import Elements, Part, check_memory, destination_part, new_parts, source_part, write_sum
from cute_py.mesh.peer import Push, Pushes, on_device, why_no_kernel
from cute_py.mesh.transfer import Plan, Transfer
from cute_py.mesh.transport import Transport
from cute_py.mesh.watch import Watch

MESSAGES = 256 << 20
"""Bytes of the messages that a rank sends at once, and of those that it receives."""

MOST_MESSAGES = 200
"""Messages that `MESSAGES` is divided among; with more ranks it is so much more."""

_BUS_ID = 20
"""Characters of a device's address on the bus."""

_HANDLE_BYTES = 64
"""CU_IPC_HANDLE_SIZE."""


@dataclass(slots=True)
class _Round:
    """What one rank does at a time: whom it sends what, what stays, and what it makes of that and of what comes."""

    packed: list[tuple[int, int, Part]] = field(default_factory=list)
    """(rank to send to, place in the message, elements)"""

    kept: list[tuple[Part, Part]] = field(default_factory=list)
    """(to, from), both in the memory of this rank"""

    sums: list[tuple[Part, list[tuple[int, int] | Part]]] = field(default_factory=list)
    """What to write, and its summands: (sender, place in its message), or elements of this rank"""

    sent: dict[int, int] = field(default_factory=dict)
    received: dict[int, int] = field(default_factory=dict)
    """Rank -> elements of the message"""


class RankRedistribution:
    """One rank's part of a redistribution, ready to launch. All ranks launch, and each launch returns when its data
    have arrived everywhere."""

    def __init__(
        self,
        plan: Plan,
        watch: Watch,
        sources: Mapping[int, Any],
        destinations: Mapping[int, Any],
        into: Mapping[int, Any] | None,
        sms: int,
    ) -> None:
        self.destinations = destinations
        self._watch = watch
        self._elements = watch.transport.elements(plan.dtype)
        self._into = into
        written = destinations if into is None else into
        self._pushes, self._why_messages = map_ranks(plan, watch, sources, written, sms)
        self._rounds = _rounds(plan, watch, self._elements, sources, written) if self._why_messages else []
        self._messages = [
            {peer: self._elements.empty(count) for peer, count in _largest(self._rounds, name).items()}
            for name in ("sent", "received")
        ]

    def launch(self, stream: Any = None) -> None:
        """Move the data; every rank calls it. The order is that of the calling thread's current stream.

        Raises:
            RankError: a rank ended, stalled or failed; all other ranks raise it.
        """
        with self._watch.together():
            self._watch.outcome = "the destinations are as they were"
            if not self._why_messages:
                self._elements.settle()  # others write here as soon as they have come
            self._watch.gather()
            if self._into is None:
                self._watch.outcome = "the contents of the destinations are undefined"
            if self._pushes is not None:
                self._pushes.launch()
                self._watch.until(self._pushes.is_done, frozenset)
                self._pushes.check()
            for one in self._rounds:
                self._run(one)
            self._elements.settle()
            self._watch.gather()
            for device, array in (self._into or {}).items():
                self._watch.outcome = "the contents of the destinations are undefined"
                self._elements.flat(self.destinations[device])[...] = self._elements.flat(array)
            self._elements.settle()

    def report(self) -> str:
        """How this rank's data go, one transfer a line, or why all ranks use messages."""
        if self._why_messages:
            return f"messages ({self._why_messages})"
        return "\n".join(map(str, self._pushes.routes if self._pushes else ()))

    def _run(self, one: _Round) -> None:
        outgoing, incoming = [
            {peer: buffers[peer][:count] for peer, count in counts.items()}
            for buffers, counts in zip(self._messages, (one.sent, one.received), strict=True)
        ]
        for peer, at, part in one.packed:
            values = part.read()
            outgoing[peer][at : at + part.count].reshape(part.shape)[...] = values
        done = self._watch.transport.start(outgoing, incoming)
        for goal, source in one.kept:
            goal.write(source.read())
        self._watch.until(done, lambda: incoming.keys() | outgoing.keys())
        for goal, summands in one.sums:
            values = [
                one.read()
                if isinstance(one, Part)
                else incoming[one[0]][one[1] : one[1] + goal.count].reshape(goal.shape)
                for one in summands
            ]
            write_sum(self._elements, goal, values)


def prepare(
    plan: Plan,
    transport: Transport,
    sources: Mapping[int, Any],
    destinations: Mapping[int, Any] | None,
    into: Mapping[int, Any] | None,
    sms: int,
    seconds: float,
) -> RankRedistribution:
    """Check on all ranks, and make the messages of this one; see `Redistribution.run`."""
    elements, rank = transport.elements(plan.dtype), transport.rank
    found: list[Diagnostic] = []
    try:
        if destinations is None:
            destinations = new_parts(elements, plan.destination, [rank] if rank < plan.destination.devices else [])
        found += _check_ranks(plan, transport) or check_memory(elements, plan, sources, destinations, into, only=rank)
    except CuteError as problem:
        found += diagnostics_of(problem)
    watch = Watch(transport, seconds)
    with watch.together():
        report = {"plan": plan.digest(), "shown": shortened(str(plan)), "found": [[d.rule, d.message] for d in found]}
        reports = [json.loads(text) for text in watch.gather(json.dumps(report))]
    of_all = [
        Diagnostic(rule, f"rank {r}", text=f"rank {r}: {message}")
        for r, one in enumerate(reports)
        for rule, message in one["found"]
    ]
    of_all += [
        Diagnostic("mesh-plan", f"rank {r}", text=f"rank {r} has another redistribution than rank 0: {one['shown']}")
        for r, one in enumerate(reports)
        if one["plan"] != reports[0]["plan"]
    ]
    refuse(InvalidValueError, of_all, f"{len(of_all)} problems on {transport.ranks} ranks; nothing was moved")
    with watch.together():
        return RankRedistribution(plan, watch, sources, destinations or {}, into, sms)


def _check_ranks(plan: Plan, transport: Transport) -> list[Diagnostic]:
    devices = max(plan.source.devices, plan.destination.devices)
    if devices == transport.ranks:
        return []
    needs = f"be {devices}, one for each device of the larger mesh"
    return [Diagnostic("mesh-ranks", "ranks", transport.ranks, "processes", needs)]


def _rounds(
    plan: Plan, watch: Watch, elements: Elements, sources: Mapping[int, Any], written: Mapping[int, Any]
) -> list[_Round]:
    rank = watch.transport.rank
    flat = elements.flat(sources[rank]) if rank in sources else elements.empty(0)
    goal = elements.flat(written[rank]) if rank in written else elements.empty(0)
    itemsize = plan.dtype.numpy.itemsize
    most = max(1, MESSAGES // min(watch.transport.ranks, MOST_MESSAGES) // itemsize)
    found: list[_Round] = []

    def at(number: int) -> _Round:
        found.extend(_Round() for _ in range(number + 1 - len(found)))
        return found[number]

    for device in range(plan.destination.devices):
        watch.step()
        if device == rank or rank >= plan.source.devices:
            continue
        for number, place, pieces in _placed(plan.groups(device, rank), most):
            for t in pieces:
                if t.source_device == rank:
                    one = at(number)
                    one.packed.append((device, place, source_part(elements, flat, t)))
                    one.sent[device] = place + t.elements
    for number, place, pieces in _placed(plan.groups(rank) if rank < plan.destination.devices else [], most):
        one = at(number)
        part = destination_part(elements, goal, pieces[0])
        if len(pieces) == 1 and pieces[0].source_device == rank:
            one.kept.append((part, source_part(elements, flat, pieces[0])))
            continue
        summands: list[tuple[int, int] | Part] = []
        for t in pieces:
            if t.source_device == rank:
                summands.append(source_part(elements, flat, t))
            else:
                summands.append((t.source_device, place))
                one.received[t.source_device] = place + t.elements
        one.sums.append((part, summands))
    return found


def _placed(groups: Iterable[list[Transfer]], most: int) -> Iterator[tuple[int, int, list[Transfer]]]:
    """Groups in pieces: (number of the round, place in the message, one transfer for each summand).

    A message holds at most so many elements. The summands of a group come from ranks that have all their groups in
    common, so that the messages of these ranks have one division, and sender and receiver find the same one.
    """
    full: dict[int, tuple[int, int]] = {}
    for group in groups:
        sender = group[0].source_device
        for pieces in zip(*[t.pieces(lambda one: one.elements <= most) for t in group], strict=True):
            number, place = full.get(sender, (0, 0))
            if place and place + pieces[0].elements > most:
                number, place = number + 1, 0
            full[sender] = (number, place + pieces[0].elements)
            yield number, place, list(pieces)


def _largest(rounds: list[_Round], name: str) -> dict[int, int]:
    """Rank -> elements of the largest message."""
    found: dict[int, int] = {}
    for peer, count in itertools.chain.from_iterable(getattr(one, name).items() for one in rounds):
        found[peer] = max(found.get(peer, 0), count)
    return found


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
