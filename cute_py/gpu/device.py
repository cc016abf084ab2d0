"""Open GPUs that support TMA: their properties, contexts and memory.

The context of a device is chosen when the device is first opened: the current context if it belongs to this device,
otherwise the primary context (which PyTorch and CuPy use). It stays the same until the process ends.

A thread has one current context. The functions of this module make the device's context current for their work, and
restore the previous context afterwards; if there was none, the device's context stays current. cuda-core's `Device`
provides the device's properties. The context calls use the driver, because cuda-core's `set_current` accepts only
contexts of cuda-core, and contexts of PyTorch and CuPy must be restored too.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Final, SupportsInt

from cute_py.argument_checks import expect, expect_integer, record
from cute_py.errors import CuteError, DeviceError
from cute_py.gpu.bindings import call, core, driver, reported

MIN_DRIVER: Final = 12000
"""CUDA 12.0: the first driver whose API has tensor maps. CUDA driver API, cuTensorMapEncodeTiled."""

DEFAULT_STREAMS: Final = (0, 1, 2)
"""The default streams: NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD. Every device has them, and they refer to the
current device. CUDA driver API, stream management."""

ARCHITECTURES: Final[dict[tuple[int, int], str]] = {
    (9, 0): "sm_90a",
    (10, 0): "sm_100a",
    (10, 3): "sm_103a",
    (11, 0): "sm_110a",
    (12, 0): "sm_120a",
    (12, 1): "sm_121a",
}
"""Compute capability -> target architecture of kernels. Kernels have run only on sm_90a."""


@record
class Device:
    """One GPU with TMA. Sizes are in bytes; `capability` is (major, minor).

    >>> if device_available():
    ...     assert open_device().shared_bytes >= 227 * 1024
    """

    ordinal: int
    name: str
    capability: tuple[int, int]
    arch: str
    multiprocessors: int
    l2_bytes: int
    shared_bytes: int
    driver_version: int
    context: Any = field(repr=False, compare=False)

    def make_current(self) -> None:
        """Make the device's context current for the calling thread."""
        api = driver()
        if int(call("querying the context", api.cuCtxGetCurrent)) != int(self.context):
            call("making the context current", api.cuCtxSetCurrent, self.context)

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Make the device's context current in the block, and then restore the previous context, if there was one."""
        with current_context(self.context):
            yield

    def wait_for(self, stream: int) -> None:
        """Wait for a stream, given as a handle. Raises DeviceError if a kernel in it failed."""
        with self.current():
            call("waiting for the stream", driver().cuStreamSynchronize, stream)

    def synchronize(self) -> None:
        """Wait for everything on the device. Raises DeviceError if a kernel failed."""
        with self.current():
            call("waiting for the device", driver().cuCtxSynchronize)


@contextlib.contextmanager
def current_context(context: SupportsInt) -> Iterator[None]:
    """Make a context current in the block, and then restore the previous context, if there was one."""
    api = driver()
    before = call("querying the context", api.cuCtxGetCurrent)
    if int(before) == int(context):
        yield
        return
    call("making the context current", api.cuCtxSetCurrent, context)
    try:
        yield
    finally:
        if int(before):
            # If a kernel has failed, this may fail too; the error of the kernel is raised instead.
            api.cuCtxSetCurrent(before)


@contextlib.contextmanager
def during_capture() -> Iterator[None]:
    """Let this thread allocate and free memory and load kernels in the block while one of its streams is captured.

    By default, the driver rejects such calls until the capture ends. The nodes of the graph contain addresses of the
    memory, so the memory must outlive the graph.
    """
    api = driver()
    relaxed = api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = call("allowing allocations in a capture", api.cuThreadExchangeStreamCaptureMode, relaxed)
    try:
        yield
    finally:
        call("restoring the mode of captures", api.cuThreadExchangeStreamCaptureMode, before)


def _current_ordinal() -> int | None:
    api = driver()
    context = call("querying the context", api.cuCtxGetCurrent)
    if int(context) == 0:
        return None
    return int(call("querying the device", api.cuCtxGetDevice))


def open_device(ordinal: int | None = None) -> Device:
    """Open the device with this index; by default, the device of the current context, or device 0 if there is no
    context.

    A current context stays current; if there is none, the device's context becomes current.

    Raises:
        InvalidTypeError: `ordinal` is not an integer.
        MissingPackageError: cuda-python is not installed.
        DeviceError: the driver is missing or older than CUDA 12.0, or the device does not exist or has no TMA.

    >>> if device_available():
    ...     assert open_device().capability >= (9, 0)
    """
    api = driver()
    call("starting the driver", api.cuInit, 0)
    number = (_current_ordinal() or 0) if ordinal is None else expect_integer(ordinal, "the index of a device")
    device = _open(number)
    if int(call("querying the context", api.cuCtxGetCurrent)) == 0:
        device.make_current()
    return device


def as_device(device: Device | None, ordinal: int | None = None) -> Device:
    """Return `device`; if it is None, open the device with this index, by default the current one.

    Raises:
        InvalidTypeError: `device` is not a `Device`. For other errors, see `open_device`.
    """
    return open_device(ordinal) if device is None else expect(device, Device, "device")


def common_device(ordinals: Mapping[str, int | None]) -> int | None:
    """Return the common device of all arrays; None if all of them are in host memory.

    Args:
        ordinals: name of each array -> its device; None for an array in host memory.
    Raises:
        DeviceError: the arrays are on several devices; the message names arrays on two of them.

    >>> common_device({"source": 1, "destination": None})
    1
    """
    found = {number: name for name, number in reversed(list(ordinals.items())) if number is not None}
    if len(found) > 1:
        (first, one), (second, other), *_ = sorted(found.items())
        raise DeviceError(
            f"the {one} is on device {first} and the {other} on device {second}; must be on one device",
            {f"device {number}": _name_of(number) for number in (first, second)},
            hint="move one of them first, with its own library",
        )
    return next(iter(found), None)


def _name_of(ordinal: int) -> str:
    try:
        return _open(ordinal).name
    except CuteError as reason:
        return reason.headline


def require_stream(device: Device, stream: int) -> None:
    """Raise an error if the stream belongs to another device, because the kernel would run there.

    Raises:
        DeviceError: the stream belongs to another device.
    """
    if stream in DEFAULT_STREAMS or device_count() < 2:
        return
    api = driver()
    code, context = api.cuStreamGetCtx(stream)
    if int(code) or int(context) == int(device.context):
        return  # if the driver does not know the stream, the launch refuses it
    with current_context(context):
        ordinal = _current_ordinal()
    if ordinal != device.ordinal:
        raise DeviceError(
            f"the stream belongs to device {ordinal}, but the copy runs on device {device.ordinal}",
            hint="make the stream on the device of the arrays",
        )


def device_count() -> int:
    """Return the number of devices that the driver lists."""
    return int(call("counting devices", driver().cuDeviceGetCount))


@functools.cache
def _open(ordinal: int) -> Device:
    api = driver()
    version = int(call("querying the driver's version", api.cuDriverGetVersion))
    if version < MIN_DRIVER:
        raise DeviceError(
            f"the driver supports CUDA {version // 1000}.{version % 1000 // 10}; TMA needs 12.0 or newer",
            hint="update the NVIDIA driver",
        )
    count = device_count()
    if not 0 <= ordinal < count:
        raise DeviceError(f"device {ordinal} does not exist; the driver lists {count}", {"devices": count})
    with reported("asking the device"):
        found = core().Device(ordinal)
        name, capability, facts = found.name, tuple(found.compute_capability), found.properties
    arch = ARCHITECTURES.get(capability)
    if arch is None:
        raise DeviceError(
            f"{name} has compute capability {capability[0]}.{capability[1]}; TMA needs 9.0 or newer",
            {"known": ", ".join(f"{a}.{b}" for a, b in ARCHITECTURES)},
            hint="use backend='emulator'",
        )
    if _current_ordinal() == ordinal:
        context = call("querying the context", api.cuCtxGetCurrent)
    else:
        handle = call("opening the device", api.cuDeviceGet, ordinal)
        context = call("retaining the primary context", api.cuDevicePrimaryCtxRetain, handle)
    return Device(
        ordinal,
        name,
        capability,
        arch,
        facts.multiprocessor_count,
        facts.l2_cache_size,
        facts.max_shared_memory_per_block_optin,
        version,
        context,
    )


def device_available() -> bool:
    """Whether `open_device()` finds a GPU with TMA. It never raises.

    >>> device_available() in (True, False)
    True
    """
    try:
        open_device()
    except CuteError:
        return False
    return True


def read_memory(device: Device, address: int, size: int, stream: int = 0) -> bytearray:
    """Read bytes of device memory after the work in the stream has ended. Raises DeviceError if an earlier kernel
    failed."""
    import ctypes

    content = bytearray(size)
    if size:
        to = ctypes.addressof((ctypes.c_char * size).from_buffer(content))
        api = driver()
        with device.current():
            call("copying from the device", api.cuMemcpyDtoHAsync, to, address, size, stream)
            call("copying from the device", api.cuStreamSynchronize, stream)
    return content


class DeviceBuffer:
    """Device memory that this library allocated. It is freed when it is closed or no longer referenced.

    `address` is a multiple of at least 256 bytes. The object is a context manager. A prepared copy may be released
    while it still runs on any stream. The memory therefore comes from cuMemAlloc, because freeing it waits for every
    stream; cuda-core's pool would free memory in the order of a single stream.
    """

    def __init__(self, device: Device, size: int) -> None:
        self.device = device
        self.size = size
        self.address = 0
        with device.current():
            self.address = int(call(f"allocating {size} bytes", driver().cuMemAlloc, max(size, 1)))

    def close(self) -> None:
        """Free the memory now, even while this thread captures a stream, because Python may collect a buffer at any
        time."""
        address, self.address = self.address, 0
        if address:
            with self.device.current(), during_capture():
                driver().cuMemFree(address)

    def __enter__(self) -> DeviceBuffer:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __del__(self) -> None:
        # At interpreter exit the bindings may be unloaded; the driver frees all memory anyway.
        with contextlib.suppress(Exception):
            self.close()

    def write(self, content: bytes | bytearray | memoryview, offset: int = 0, stream: int = 0) -> None:
        """Copy bytes from the host. The host bytes may be changed after the call returns."""
        import numpy as np

        size = memoryview(content).nbytes
        if offset + size > self.size:
            raise DeviceError(f"{size} bytes at {offset} do not fit in a buffer of {self.size} bytes")
        if size:
            held = np.frombuffer(content, np.uint8)
            api = driver()
            with self.device.current():
                to = self.address + offset
                call("copying to the device", api.cuMemcpyHtoDAsync, to, held.ctypes.data, size, stream)
                call("copying to the device", api.cuStreamSynchronize, stream)

    def read(self, size: int | None = None, offset: int = 0, stream: int = 0) -> bytearray:
        """Copy bytes to the host after the work in the stream has ended. Raises DeviceError if an earlier kernel
        failed."""
        length = self.size - offset if size is None else size
        if offset + length > self.size:
            raise DeviceError(f"{length} bytes at {offset} are outside a buffer of {self.size} bytes")
        return read_memory(self.device, self.address + offset, length, stream)

    def fill(self, value: int, stream: int = 0) -> None:
        """Set every byte to `value`, and wait until all are set, because kernels of other streams would not wait for
        it."""
        api = driver()
        with self.device.current():
            call("filling device memory", api.cuMemsetD8Async, self.address, value, self.size, stream)
            call("filling device memory", api.cuStreamSynchronize, stream)
