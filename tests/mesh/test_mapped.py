"""Ranks that map each other's memory: how they agree, meet, and miss one. The driver and its memory are made up."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cute_py.copies import prepared
from cute_py.dtypes import DType
from cute_py.errors import CuteError, RankError
from cute_py.gpu import arrays, device, launch
from cute_py.gpu.launch import LoadedKernel
from cute_py.gpu.nvrtc import CompiledKernel
from cute_py.mesh import peer, ranks
from cute_py.mesh.transport import Transport
from tests.mesh.rank_jobs import plan_of
from tests.mesh.test_peer import Driver
from tests.tma.run.test_current_device import Code, made_up_core

BOUND = 1.0


class Handle:
    """What CUipcMemHandle is: 64 bytes; here the first eight of them are the address."""

    def __init__(self, address: int = 0) -> None:
        self.content = ctypes.create_string_buffer(address.to_bytes(8, "little"), 64)

    def getPtr(self) -> int:
        return ctypes.addressof(self.content)


class HostMemory(Driver):
    """Memory of devices that is the host's: what is copied is copied. Kernels do nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Any] = []
        self.refuses = 0
        self.CUipcMemHandle = Handle
        self.CUipcMem_flags = SimpleNamespace(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS=SimpleNamespace(value=1))

    def cuMemAlloc(self, size: int) -> tuple[Code, int]:
        self.kept.append(np.zeros(size, np.uint8))
        return Code(0), self.kept[-1].ctypes.data

    def cuMemsetD8Async(self, address: int, value: int, size: int, stream: int) -> tuple[Code]:
        ctypes.memset(address, value, size)
        return (Code(0),)

    def cuMemcpyHtoDAsync(self, to: int, source: int, size: int, stream: int) -> tuple[Code]:
        ctypes.memmove(to, source, size)
        return (Code(0),)

    cuMemcpyDtoHAsync = cuMemcpyHtoDAsync

    def cuMemGetAddressRange(self, address: int) -> tuple[Code, int, int]:
        return Code(0), address, 0

    def cuIpcGetMemHandle(self, base: int) -> tuple[Code, Handle]:
        return Code(0), Handle(base)

    def cuIpcOpenMemHandle(self, handle: Handle, flags: int) -> tuple[Any, ...]:
        self.refuses -= 1
        if self.refuses == 0:
            return (Refused(1),)
        return Code(0), int.from_bytes(handle.content.raw[:8], "little")

    def cuDeviceGetPCIBusId(self, length: int, number: int) -> tuple[Code, bytes]:
        return Code(0), f"0000:0{number}".encode()

    def cuDeviceGetByPCIBusId(self, bus: bytes) -> tuple[Code, int]:
        return Code(0), int(bus[-1:])


class Refused(int):
    name = "CUDA_ERROR_MAP_FAILED"


class OnGpu:
    """An array of the made-up device 1."""

    def __init__(self, content: np.ndarray) -> None:
        self.content = content
        self.__cuda_array_interface__ = dict(content.__array_interface__, version=3)


class Elements(peer.GpuElements):
    def flat(self, array: Any) -> Any:
        return array.content.reshape(-1)


class Threads(Transport):
    """Ranks that are threads, with one store; they send no messages."""

    def __init__(self, store: dict[str, str], rank: int, ranks: int) -> None:
        self.store, self.rank, self.ranks, self.aborted = store, rank, ranks, False

    def put(self, key: str, value: str) -> None:
        self.store[key] = value

    def get(self, key: str) -> str | None:
        return self.store.get(key)

    def start(self, sends: Mapping[int, Any], receives: Mapping[int, Any]) -> Callable[[], bool]:
        raise AssertionError("a message")

    def abort(self) -> None:
        self.aborted = True

    def elements(self, dtype: DType) -> Any:
        return Elements(SimpleNamespace(dtype=dtype))  # type: ignore[arg-type]


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[HostMemory]:
    made = HostMemory()
    for module in (device, arrays, launch, peer, ranks):
        monkeypatch.setattr(module, "driver", lambda: made)
    monkeypatch.setattr(device, "core", made_up_core)

    def load(source: Any, where: Any) -> LoadedKernel:
        return LoadedKernel(where, CompiledKernel(source, "sm_90a", b"", "", "made up", 0.0), SimpleNamespace(handle=1))

    monkeypatch.setattr(prepared, "load_kernel", load)
    device._open.cache_clear()
    yield made
    device._open.cache_clear()


def together(count: int, launches: Callable[[int], int]) -> list[Any]:
    """What each rank ends with: how its data go and how often the others' flags were set, or its error."""
    store: dict[str, str] = {}
    ended: list[Any] = [None] * count
    plan, _ = plan_of(count)

    def run(rank: int) -> None:
        parts = [OnGpu(np.zeros(side.local_shape(rank), np.int32)) for side in (plan.source, plan.destination)]
        transport = Threads(store, rank, count)
        try:
            made: Any = plan.prepare({rank: parts[0]}, {rank: parts[1]}, backend=transport, seconds=BOUND)
            for _ in range(launches(rank)):
                made.launch()
            flags = np.frombuffer(bytes(made._mapped._flags.read(4 * count)), np.uint32) if made._mapped else []
            ended[rank] = made.report(), list(flags)
        except (CuteError, AssertionError) as problem:
            ended[rank] = problem

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    return ended


@pytest.mark.parametrize("count", [2, 4])
def test_all_meet_before_and_behind_each_launch(api: HostMemory, count: int) -> None:
    for rank, (report, flags) in enumerate(together(count, lambda rank: 3)):
        assert flags == [6] * count
        assert [line.partition(":")[0] for line in report.split("\n")] == [f"{rank} -> {to}" for to in range(count)]


def test_a_rank_that_does_not_come_is_found(api: HostMemory) -> None:
    ended = together(3, lambda rank: 2 if rank != 1 else 1)
    for rank in (0, 2):
        assert isinstance(ended[rank], RankError), ended
        assert ended[rank].rank == 1
        assert "the destinations are as they were" in str(ended[rank])


def test_if_one_can_not_all_use_messages(api: HostMemory) -> None:
    api.refuses = 3
    reports = {str(one) if isinstance(one, BaseException) else one[0] for one in together(3, lambda rank: 0)}
    assert len(reports) == 1
    assert "opening another rank's memory: CUDA_ERROR_MAP_FAILED)" in reports.pop()
