"""Kernels on a device and their prepared launches.

A launch is prepared once: the kernel is loaded, its parameters are stored in one block of host memory (tensor maps at
128-byte boundaries, as CUDA 13 requires), and the launch configuration is made. Each launch is then one driver call
through cuda-bindings. cuda-core's `launch` is not used: it accepts only its own tensor maps, which can't be made from
bytes, and it converts its configuration to the driver's at each launch.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, TypeAlias

from cute_py.errors import DeviceError, InvalidValueError, counted
from cute_py.gpu.bindings import call, core, driver, driver_failure, reported
from cute_py.gpu.device import DEFAULT_STREAMS, Device, DeviceBuffer, device_count, require_stream
from cute_py.gpu.kernels.source import ERROR_RECORD, ERROR_RECORD_BYTES, KernelSource
from cute_py.gpu.nvrtc import CompiledKernel, compile_kernel

MAP_BYTES: Final = 128
DEFAULT_SHARED: Final = 49_152
"""Maximum dynamic shared memory of a block without an opt-in, in bytes. CUDA programming guide."""
PORTABLE_CLUSTER: Final = 8
"""Largest cluster, in CTAs, that every device with clusters runs; up to 16 with an opt-in. CUDA programming guide."""


def target_arch(source: KernelSource, device: Device) -> str:
    """Return the architecture to compile `source` for, so that it runs on `device`.

    Raises:
        DeviceError: the kernel needs a newer architecture.
    """
    if source.arch != "sm_90a" and source.arch != device.arch:
        raise DeviceError(
            f"kernel {source.name!r} is for {source.arch}; device {device.ordinal} ({device.name}) is {device.arch}",
            {"evidence": "cute_py assembles forms of sm_100 but does not execute them"},
        )
    return device.arch


@dataclass(frozen=True, slots=True)
class LoadedKernel:
    """A kernel that is loaded on a device: cuda-core's `Kernel`, which keeps its library loaded, and the properties
    that the driver reports."""

    device: Device
    compiled: CompiledKernel
    kernel: Any = field(repr=False, compare=False)
    registers: int = 0
    local_bytes: int = 0
    static_shared_bytes: int = 0

    @property
    def source(self) -> KernelSource:
        return self.compiled.source

    def blocks_per_multiprocessor(self) -> int:
        """The number of blocks that fit on one SM, limited by registers, threads and shared memory."""
        occupancy = self.kernel.occupancy
        with self.device.current(), reported("querying the occupancy"):
            return int(occupancy.max_active_blocks_per_multiprocessor(self.source.threads, self.source.shared_bytes))


@functools.lru_cache(maxsize=512)
def _load(device: Device, compiled: CompiledKernel) -> LoadedKernel:
    api = driver()
    source = compiled.source
    doing = f"loading the kernel {source.name!r}"
    attribute = api.CUfunction_attribute
    with device.current():
        with reported(doing):
            kernel = core().ObjectCode.from_cubin(compiled.cubin, name=source.name).get_kernel(source.name)
            facts = kernel.attributes  # for the current device
            static = int(facts.shared_size_bytes)
            sizes = int(facts.num_regs), int(facts.local_size_bytes)
        number = call(doing, api.cuDeviceGet, device.ordinal)

        def demand(name: str, value: int) -> None:
            call(doing, api.cuKernelSetAttribute, getattr(attribute, name), value, kernel.handle, number)

        if source.shared_bytes + static > device.shared_bytes:
            raise DeviceError(
                f"kernel {source.name!r} needs {source.shared_bytes + static} bytes of shared memory; {device.name} "
                f"has {device.shared_bytes} per block",
                hint="use fewer stages or a smaller tile",
            )
        if source.shared_bytes + static > DEFAULT_SHARED:
            demand("CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", source.shared_bytes)
        if source.cluster > PORTABLE_CLUSTER:
            demand("CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)
        call(doing, api.cuKernelGetFunction, kernel.handle)  # Load now instead of at the first launch.
    return LoadedKernel(device, compiled, kernel, *sizes, static)


def load_kernel(source: KernelSource, device: Device) -> LoadedKernel:
    """Compile a kernel for the device and load it.

    Raises:
        MissingPackageError, DeviceError: there is no compiler, the architecture is wrong, the kernel needs too much
            shared memory, or the driver rejects the cubin (because the compiler is newer than the driver).
    """
    return _load(device, compile_kernel(source, target_arch(source, device)))


Block: TypeAlias = ctypes.Array[ctypes.c_char]
"""The bytes of a structure that is passed by value."""
ParameterValue: TypeAlias = bytes | int | ctypes.c_uint32 | Block
"""A tensor map, a 64-bit number, a 32-bit number, or a structure."""


class Parameters:
    """The parameters of a kernel in host memory, and the array of pointers to them that a launch takes.

    A `bytes` value is a tensor map (128 bytes, stored at a multiple of 128). An int is passed as 64 bits, and a ctypes
    value with its own width. A ctypes array of characters is a structure, which is passed without a copy.
    """

    def __init__(self, values: Sequence[ParameterValue]) -> None:
        self.values = tuple(values)
        maps = sum(isinstance(value, bytes) for value in values)
        size = MAP_BYTES * (maps + 1) + 8 * len(values)
        self._memory = (ctypes.c_char * (size + MAP_BYTES))()
        base = -(-ctypes.addressof(self._memory) // MAP_BYTES) * MAP_BYTES
        scalar, map_at = base, base + -(-8 * len(values) // MAP_BYTES) * MAP_BYTES
        self._pointers = (ctypes.c_void_p * max(len(values), 1))()
        for index, value in enumerate(values):
            if isinstance(value, bytes):
                if len(value) != MAP_BYTES:
                    raise InvalidValueError.of_value("tensor map", len(value), f"be {MAP_BYTES}", "bytes")
                ctypes.memmove(map_at, value, MAP_BYTES)
                self._pointers[index], map_at = map_at, map_at + MAP_BYTES
            elif isinstance(value, ctypes.Array):
                self._pointers[index] = ctypes.addressof(value)
            else:
                number = value if isinstance(value, ctypes.c_uint32) else ctypes.c_uint64(value)
                ctypes.memmove(scalar, ctypes.byref(number), ctypes.sizeof(number))
                self._pointers[index], scalar = scalar, scalar + 8
        self.address = ctypes.addressof(self._pointers)


class PreparedLaunch:
    """A repeatable launch of a kernel with its grid and parameters: each `launch()` is one driver call.

    It runs in the stream that it was prepared for. A launch in a capturing stream becomes a node of the graph. The
    default streams refer to the current device. With several devices, the launch therefore makes the kernel's device
    current if another one is.

    overlaps: whether the kernel itself waits for the previous kernel, so that it may be launched while that one still
    runs (programmatic dependent launch). This saves 0.3 to 0.8 us between small kernels (NVIDIA H200). A captured graph
    then has programmatic edges.
    """

    def __init__(
        self,
        kernel: LoadedKernel,
        blocks: int | tuple[int, int],
        parameters: Parameters,
        stream: int = 0,
        *,
        overlaps: bool = False,
    ) -> None:
        api = driver()
        require_stream(kernel.device, stream)
        x, y = blocks if isinstance(blocks, tuple) else (blocks, 1)
        source = kernel.source
        if x < 1 or y < 1 or x % source.cluster:
            raise InvalidValueError(f"grid = {x} x {y} blocks; must be positive, and a multiple of {source.cluster}")
        self.kernel = kernel
        self.blocks = x * y
        self.parameters = parameters
        self.stream = stream
        config = api.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = x, y, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = source.threads, 1, 1
        config.sharedMemBytes = source.shared_bytes
        config.hStream = api.CUstream(stream)
        config.numAttrs = 0
        attributes = []
        if source.cluster > 1:
            attribute = api.CUlaunchAttribute()
            attribute.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            attribute.value.clusterDim.x = source.cluster
            attribute.value.clusterDim.y = 1
            attribute.value.clusterDim.z = 1
            attributes.append(attribute)
        if overlaps and source.awaits:
            attribute = api.CUlaunchAttribute()
            attribute.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            attribute.value.programmaticStreamSerializationAllowed = 1
            attributes.append(attribute)
        if attributes:
            config.attrs = attributes
        config.numAttrs = len(attributes)
        self._config = config
        self._follows_current = stream in DEFAULT_STREAMS and device_count() > 1
        self._launch: Callable[..., tuple[IntEnum]] = api.cuLaunchKernelEx
        self._handle = api.CUfunction(int(kernel.kernel.handle))
        self._pointers = parameters.address

    def launch(self) -> None:
        """Enqueue the kernel. Raises DeviceError if the driver refuses it."""
        if self._follows_current:
            with self.kernel.device.current():
                code = self._launch(self._config, self._handle, self._pointers, 0)[0]
        else:
            code = self._launch(self._config, self._handle, self._pointers, 0)[0]
        if code:
            self._again(code)

    def update_node(self, graph: int, node: int) -> None:
        """Copy the grid and the parameters of this launch to a kernel node of an instantiated graph. The next
        launch of the graph uses them.

        Args:
            graph: the CUgraphExec as an integer. node: the CUgraphNode of the graph that `graph` was instantiated from.
        Raises:
            DeviceError: the driver rejects the update, because the node does not exist or its kernel belongs to another
                context.
        """
        api, config = driver(), self._config
        found = api.CUDA_KERNEL_NODE_PARAMS()
        found.kern, found.sharedMemBytes = api.CUkernel(int(self.kernel.kernel.handle)), config.sharedMemBytes
        found.kernelParams = self._pointers
        found.gridDimX, found.gridDimY, found.gridDimZ = config.gridDimX, config.gridDimY, config.gridDimZ
        found.blockDimX, found.blockDimY, found.blockDimZ = config.blockDimX, config.blockDimY, config.blockDimZ
        places = api.CUgraphExec(graph), api.CUgraphNode(node)
        call("updating a node of a graph", api.cuGraphExecKernelNodeSetParams, *places, found)

    def _again(self, code: IntEnum) -> None:
        """Retry a launch in a thread that has not used the device yet, after making the device's context current."""
        if code.name in ("CUDA_ERROR_INVALID_CONTEXT", "CUDA_ERROR_CONTEXT_IS_DESTROYED", "CUDA_ERROR_NOT_INITIALIZED"):
            with self.kernel.device.current():
                (code,) = self._launch(self._config, self._handle, self._pointers, 0)
        if code:
            raise driver_failure(code, f"launching {self.kernel.source.name!r} with {counted(self.blocks, 'block')}")


@dataclass(frozen=True, slots=True)
class WaitTimeout:
    """A kernel's record of a wait that timed out.

    barrier: the shared-memory address of the barrier. phase: the parity that the thread waited for. expected: the
    expected number of bytes. cycles: the length of the wait in clock cycles.
    """

    barrier: int
    phase: int
    expected: int
    block: tuple[int, int]
    thread: int
    stage: int
    cycles: int

    def error(self, kernel: str, loads: Sequence[tuple[bytes, int]] = (), **facts: object) -> DeviceError:
        """Make the error for a kernel of this name.

        Args:
            loads: the tensor maps of the kernel's loads, each with the number of loads per barrier; the emulator counts
                their bytes. facts: other facts for the error.
        """
        arrival: dict[str, object] = {}
        if loads:
            from cute_py.gpu.barrier_timeout import emulated_arrival  # Only an error needs it.

            arrival["emulator"] = emulated_arrival(loads)
        return DeviceError(
            f"{kernel}: a barrier was not complete after {self.cycles} clock cycles",
            {
                "barrier": f"shared address {self.barrier:#x}, stage {self.stage}, phase {self.phase}",
                "expected": f"{self.expected} bytes",
                **arrival,
                "block": f"({self.block[0]}, {self.block[1]}), thread {self.thread}",
                **facts,
            },
        ).of_rule("never completes phase")


class WaitRecord:
    """Memory where a kernel records that a wait on a barrier timed out; `check` reads it.

    Args:
        kinds: the number of kinds of waits; each has a separate record.
    """

    def __init__(self, device: Device, kinds: int = 1) -> None:
        self._buffer = DeviceBuffer(device, ERROR_RECORD_BYTES * kinds)
        self._buffer.fill(0)

    @property
    def address(self) -> int:
        return self._buffer.address

    def read(self, stream: int = 0) -> list[WaitTimeout | None]:
        """Wait for the stream. Return the first wait of each kind that timed out, and clear the records."""
        content = bytes(self._buffer.read(stream=stream))
        found: list[WaitTimeout | None] = []
        for at in range(0, len(content), ERROR_RECORD_BYTES):
            state, barrier, phase, expected, x, y, thread, stage, cycles = ERROR_RECORD.unpack_from(content, at)
            found.append(WaitTimeout(barrier, phase, expected, (x, y), thread, stage, cycles) if state else None)
        if any(found):
            self._buffer.fill(0)
        return found

    def check(self, kernel: str, stream: int = 0, loads: Sequence[tuple[bytes, int]] = ()) -> None:
        """Wait for the stream, raise an error if a wait timed out, and clear the record.

        For the arguments, see `WaitTimeout.error`.

        Raises:
            DeviceError: a barrier did not complete within its time limit. The error states the barrier, the phase, the
                expected bytes, and the bytes that its loads deliver in the emulator.
        """
        for found in self.read(stream):
            if found is not None:
                raise found.error(kernel, loads)
