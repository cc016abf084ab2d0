"""Two GPUs that are made up, for what asks the driver of them: memory is the host's, kernels do nothing."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cute_py.copies import prepared
from cute_py.gpu import arrays, device, launch
from cute_py.gpu.launch import LoadedKernel
from cute_py.gpu.nvrtc import CompiledKernel
from cute_py.mesh import peer, ranks
from tests.gpu.host.test_current_device import Code, TwoDevices, made_up_core

IPC_CAPABLE = 10


class Refused(int):
    name = "CUDA_ERROR_MAP_FAILED"


class Handle:
    """What CUipcMemHandle is: 64 bytes; here the first eight of them are the address."""

    def __init__(self, address: int = 0) -> None:
        self.content = ctypes.create_string_buffer(address.to_bytes(8, "little"), 64)

    def getPtr(self) -> int:
        return ctypes.addressof(self.content)


class Driver(TwoDevices):
    """Two devices that reach each other. Streams 1000 and more are the redistribution's own; of events and graphs it
    has no notion but their numbers. What is allocated and copied by the host is; copies between devices do nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.made = 1000
        self.capturing: set[int] = set()
        self.calls: list[tuple[Any, ...]] = []
        self.fails = ""
        self.kept: list[Any] = []
        self.refuses = 0
        self.has_handles = True
        self.CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = IPC_CAPABLE
        self.CUcontext = int
        self.CUipcMemHandle = Handle
        self.CUipcMem_flags = SimpleNamespace(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS=SimpleNamespace(value=1))
        self.CUmemorytype = SimpleNamespace(CU_MEMORYTYPE_UNIFIED=4)
        self.CUDA_MEMCPY2D = SimpleNamespace
        self.CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2)

    def __getattr__(self, name: str) -> Any:
        anything = super().__getattr__(name)

        def noted(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append((name, self.current, *arguments))
            if name == self.fails:
                return (SimpleNamespace(name="CUDA_ERROR_UNKNOWN"),)
            if name in ("cuStreamCreate", "cuEventCreate"):
                self.made += 1
                self.streams[self.made] = self.current
                return Code(0), self.made
            if name == "cuStreamIsCapturing":
                return Code(0), int(arguments[0] in self.capturing)
            if name in ("cuStreamEndCapture", "cuGraphInstantiate", "cuDeviceCanAccessPeer"):
                return Code(0), 1
            return anything(*arguments)

        return noted

    def names(self) -> list[str]:
        return [name for name, *_ in self.calls]

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

    def cuPointerGetAttribute(self, kind: int, address: int) -> tuple[Code, int]:
        return (Code(0), int(self.has_handles)) if kind == IPC_CAPABLE else super().cuPointerGetAttribute(kind, address)

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


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    made = Driver()
    for module in (device, arrays, launch, peer, ranks):
        monkeypatch.setattr(module, "driver", lambda: made)
    monkeypatch.setattr(device, "core", made_up_core)

    def load(source: Any, where: Any) -> LoadedKernel:
        return LoadedKernel(where, CompiledKernel(source, "sm_90a", b"", "", "made up", 0.0), SimpleNamespace(handle=1))

    for module in (prepared, peer):
        monkeypatch.setattr(module, "load_kernel", load)
    device._open.cache_clear()
    yield made
    device._open.cache_clear()
