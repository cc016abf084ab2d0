"""numpy arrays in a GPU copy: their bytes go to the device and come back, so that one call serves both worlds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cute_py.copies.prepared import PreparedCopy, prepare_copy
from cute_py.errors import DeviceError, InvalidValueError
from cute_py.gpu.arrays import ArrayView, array_view, require_pair, stream_handle
from cute_py.gpu.device import Device, DeviceBuffer, common_device, open_device


def span(view: ArrayView) -> tuple[int, int]:
    """First address that a view touches, and how many bytes from there to its last one."""
    low, high = view.extent()
    return low, high - low


def host_bytes(address: int, size: int) -> memoryview:
    """A writable view of host memory."""
    import ctypes

    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")


def moved_to_device(
    array: Any, view: ArrayView, device: Device, room: int = 0
) -> tuple[ArrayView, DeviceBuffer | None]:
    """The view of the same array on the device, and the buffer that holds it; None for one that is there already.

    The first byte that the array touches lies at `address % 16` of the buffer, so that a slice is as aligned, or as
    misaligned, on the device as it is on the host. `room` bytes are free behind the last one.

    Raises:
        DeviceError: an array of another library than numpy is on the host.
    """
    if view.device is not None:
        return view, None
    if type(array).__module__ != "numpy":
        raise DeviceError(
            f"{type(array).__name__} is in host memory; a GPU copy needs device memory", hint="move it to the device"
        )
    low, size = span(view)
    buffer = DeviceBuffer(device, size + 16 + room)
    offset = low % 16
    buffer.write(bytes(host_bytes(low, size)), offset)
    moved = replace(view, address=buffer.address + offset + view.address - low, device=device.ordinal, readonly=False)
    return moved, buffer


def _copy_through_device(
    source: Any, destination: Any, a: ArrayView, b: ArrayView, stream: int, hints: bool
) -> PreparedCopy:
    if b.readonly:
        raise InvalidValueError("the destination is read-only")
    device = open_device(common_device({"source": a.device, "destination": b.device}))
    there, first = moved_to_device(source, a, device)
    here, second = moved_to_device(destination, b, device)
    require_pair(there, here, device.ordinal)
    prepared = prepare_copy(there, here, hints=hints, device=device)
    prepared.launch(stream)
    prepared.check(stream)
    if second is not None:
        low, size = span(b)
        host_bytes(low, size)[:] = second.read(size, low % 16, stream)
    if first is not None:
        first.close()
    if second is not None:
        second.close()
    return prepared


def copy_array(source: Any, destination: Any, *, stream: Any = None, hints: bool = False) -> PreparedCopy:
    """Copy once: prepare, launch on `stream`, and (where no stream is given) wait and check.

    numpy arrays are moved to the device and back, whichever side they are on; the call then returns when the
    result is there.

    Raises:
        DeviceError: no device, or an array of another library that is on the host.
        InvalidValueError, TmaLimitError: as `prepare_copy`.
    """
    a, b = array_view(source), array_view(destination)
    if a.device is None or b.device is None:
        return _copy_through_device(source, destination, a, b, stream_handle(stream), hints)
    prepared = prepare_copy(a, b, hints=hints)
    prepared.launch(stream)
    if stream is None:
        prepared.check()
    return prepared
