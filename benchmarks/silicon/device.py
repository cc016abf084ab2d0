"""Modules and launches for the measurement: cubins as they are, parameters by value, memory as numpy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cute_py.gpu.bindings import call, driver

Array: TypeAlias = NDArray[Any]


class Runner:
    """A context of device 0, the kernels of a folder's cubins, and memory that lives as long as the runner."""

    def __init__(self, folder: Path) -> None:
        self.api = driver()
        call("starting the driver", self.api.cuInit, 0)
        self.device = call("opening the device", self.api.cuDeviceGet, 0)
        context = call("opening the context", self.api.cuDevicePrimaryCtxRetain, self.device)
        call("opening the context", self.api.cuCtxSetCurrent, context)
        self.folder = folder
        self.modules: dict[str, Any] = {}
        self.kernels: dict[str, Any] = {}
        self.blocks: dict[str, tuple[int, int]] = {}

    def kernel(self, module: str, entry: str) -> Any:
        """An entry point of a cubin."""
        if (found := self.kernels.get(entry)) is not None:
            return found
        if module not in self.modules:
            content = (self.folder / f"{module}.cubin").read_bytes()
            self.modules[module] = call("loading a module", self.api.cuModuleLoadData, content)
        made = call("finding a kernel", self.api.cuModuleGetFunction, self.modules[module], entry.encode())
        self.kernels[entry] = made
        return made

    def memory(self, name: str, size: int) -> int:
        """The address of a block of at least so many bytes, by its name."""
        held = self.blocks.get(name)
        if held is None or held[1] < size:
            if held is not None:
                call("freeing", self.api.cuMemFree, held[0])
            address = int(call("allocating", self.api.cuMemAlloc, max(256, size)))
            self.blocks[name] = (address, max(256, size))
        return self.blocks[name][0]

    def put(self, name: str, array: Array) -> int:
        """An array in device memory."""
        held = np.ascontiguousarray(array)
        address = self.memory(name, held.nbytes)
        if held.nbytes:
            call("copying in", self.api.cuMemcpyHtoD, address, held.ctypes.data, held.nbytes)
        return address

    def fill(self, name: str, size: int, byte: int) -> int:
        """A block of equal bytes."""
        address = self.memory(name, size)
        call("filling", self.api.cuMemsetD8, address, byte, size)
        return address

    def get(self, name: str, shape: Sequence[int], kind: Any) -> Array:
        """What a block holds, after everything before it."""
        found = np.empty(tuple(shape), kind)
        call("copying out", self.api.cuMemcpyDtoH, found.ctypes.data, self.blocks[name][0], found.nbytes)
        return found

    def launch(
        self, kernel: Any, grid: tuple[int, int], threads: int, shared: int, parameters: Sequence[tuple[int, str]]
    ) -> None:
        """One launch; parameters are (value, `u32` or `u64`)."""
        types = {"u32": ctypes.c_uint32, "u64": ctypes.c_uint64}
        values = tuple(value for value, _ in parameters), tuple(types[kind] for _, kind in parameters)
        call("launching", self.api.cuLaunchKernel, kernel, *grid, 1, threads, 1, 1, shared, 0, values, 0)

    def wait(self) -> None:
        """Until everything is done."""
        call("waiting", self.api.cuCtxSynchronize)

    def about(self) -> dict[str, str]:
        """Device and driver."""
        name = call("asking", self.api.cuDeviceGetName, 100, self.device)
        version = call("asking", self.api.cuDriverGetVersion)
        return {"device": name.decode().partition("\0")[0].strip(), "cuda": f"{version // 1000}.{version % 1000 // 10}"}
