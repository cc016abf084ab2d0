"""Prepared copies that compute, and copies of host memory through a device.

prepare_scaled     memory on a device; `check` reports an index entry that is not a row
copy_by_device     numpy arrays move to the device and back; other arrays are copied in place
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from cute_py.argument_checks import expect, expect_items
from cute_py.copies.prepared_copy import Owned, PreparedCopy, Work
from cute_py.copies.scaled.host import ScaledCopyResult, same_elements, same_scaled, scaled_copy
from cute_py.copies.scaled.operands import (
    ScaledWork,
    device_of,
    expect_device_format,
    expect_unique,
    matrix,
    memory_view,
    scaled_work,
)
from cute_py.copies.scaled.plan import kind_of, plan_largest, refused
from cute_py.errors import DeviceError, InvalidValueError
from cute_py.formats.format import Format
from cute_py.formats.numbers import to_float32
from cute_py.formats.scale_rules import tensor_scale
from cute_py.formats.scaled_tensor import ScaledTensor, stored_shape
from cute_py.gpu.arrays import host_copy, require_place
from cute_py.gpu.device import Device, DeviceBuffer, as_device, common_device, open_device
from cute_py.gpu.launch import Parameters, PreparedLaunch, load_kernel
from cute_py.machine.launch import MachineLaunch
from cute_py.tensor.array_views import ArrayLike, ArrayView, StreamLike, stream_handle

PLACE_UNIT: Final = 256
"""Memory that moves to the device keeps its address modulo this number of bytes."""
NOTHING: Final = (1 << 64) - 1
T = TypeVar("T")


class IndexRecord:
    """Device memory where a kernel records the position of the first out-of-range index.

    The 64-bit record is the minimum of position << 32 | entry. All ones mean that each entry was a row number or -1.
    """

    def __init__(self, device: Device) -> None:
        self.buffer = DeviceBuffer(device, 8)
        self.buffer.fill(0xFF)

    @property
    def address(self) -> int:
        return self.buffer.address

    def check(self, names: Sequence[str], limits: Sequence[int], stream: int = 0) -> None:
        """Wait for the stream, raise an error if an entry was not a row, and clear the record.

        Raises:
            InvalidValueError: an entry was not a row; the rule is 'row_index', and the message has its position.
        """
        (found,) = struct.unpack("<Q", bytes(self.buffer.read(stream=stream)))
        if found == NOTHING:
            return
        self.buffer.fill(0xFF)
        place, entry = found >> 32, struct.unpack("<i", struct.pack("<I", found & 0xFFFFFFFF))[0]
        text = " or ".join(f"{name}[{place}]" for name in names)
        bounds = " or ".join(f"-1 to {limit - 1}" for limit in limits)
        raise InvalidValueError(f"{text} = {entry}; must be {bounds}").of_rule("row_index")


class PreparedScaledCopy(PreparedCopy):
    """A prepared copy that computes: a cast, formats, or rows by an index.

    `check` waits for the stream, and raises an error if an entry of an index was not a row. Such rows were neither read
    nor written. A copy of no elements has no launches.
    """

    def __init__(self, device: Device, work: ScaledWork, keep: tuple[Any, ...], options: dict[str, Any]) -> None:
        record = IndexRecord(device) if work.indices and work.launch.blocks else None
        works = []
        if work.launch.blocks:
            content = work.parameters(record.address if record else 0)
            block = (ctypes.c_char * len(content)).from_buffer_copy(content)
            kernel = load_kernel(work.launch.kernel, device)
            works.append(Work(kernel, (), work.launch.blocks, others={"plan": block}))
        super().__init__(device, works, work.launch.moved, keep=(*work.places.values(), *keep), overlaps=True)
        self.work, self._index, self._options = work, record, options

    def owned(self) -> tuple[Owned, ...]:
        """The kernels and the device memory of this copy, with the record of its index; see `PreparedCopy.owned`."""
        return (*super().owned(), *((self._index.buffer,) if self._index is not None else ()))

    def machine_launches(self, args: Sequence[Any]) -> tuple[MachineLaunch, ...]:
        """Its launches on the emulated multiprocessor: `run_ptx(prepared, args=(source, destination))`."""
        from cute_py.copies.machine_copy import scaled_launches

        source, destination = expect_items(args, "args")
        return scaled_launches(source, destination, **self._options)

    def check(self, stream: StreamLike = None) -> None:
        """Wait for the stream, and raise InvalidValueError if an entry of an index was not a row."""
        super().check(stream)
        if self._index is not None:
            limits = [self.work.limits[name] for name in self.work.indices]
            self._index.check(tuple(self.work.indices), limits, stream_handle(stream))


def prepare_scaled(
    source: Any, destination: Any, device: Device | None = None, *, unique: bool = False, **options: Any
) -> PreparedScaledCopy:
    """`prepare_copy` for copies that compute, with the options of `copy`.

    unique: check now, on the host, that into_rows names each row once. Without this check, a row that is named twice
    gets one of the two contents.

    Raises:
        DeviceError: some memory is not on the device. InvalidValueError: the device does not support the copy.
    """
    expect(unique, bool, "unique")
    work = scaled_work(source, destination, **options)
    devices = {name: view.device for name, view in work.places.items() if name not in work.indices}
    device = as_device(device, common_device(devices))
    require_place({name: view for name, view in work.places.items() if name not in work.indices}, device.ordinal)
    if not work.launch.blocks:  # nothing to index
        return PreparedScaledCopy(device, work, (source, destination), options)
    work, kept = _with_indices(work, device)
    if unique and "into_rows" in work.indices:
        expect_unique(_content(device, work.indices["into_rows"]))
    return PreparedScaledCopy(device, work, (source, destination, *kept), options)


def _content(device: Device, view: ArrayView) -> Any:
    from cute_py.gpu.device import read_memory

    size = view.count * view.element_bytes
    return np.frombuffer(bytes(read_memory(device, view.address, size)), view.dtype.numpy)


def _with_indices(work: ScaledWork, device: Device) -> tuple[ScaledWork, list[DeviceBuffer]]:
    """Move indices in host memory to the device, and return the copy with them."""
    indices, kept = dict(work.indices), list[DeviceBuffer]()
    for name, view in work.indices.items():
        if view.device is None:
            moved, buffer = _moved(view, device, True)
            indices[name] = moved
            kept.append(buffer)
    require_place(indices, device.ordinal)
    return replace(work, indices=indices), kept


def _moved(view: ArrayView, device: Device, content: bool) -> tuple[ArrayView, DeviceBuffer]:
    """A view of the same array on the device; the alignment of its address does not change."""
    low, high = view.extent()
    offset = low % PLACE_UNIT
    buffer = DeviceBuffer(device, offset + high - low)
    if content:
        buffer.write(bytes((ctypes.c_char * (high - low)).from_address(low)), offset)
    return replace(view, address=buffer.address + offset + view.address - low, device=device.ordinal), buffer


def copy_by_device(
    source: Any, destination: Any, *, stream: StreamLike = None, unique: bool = False, **options: Any
) -> Any:
    """`copy` with a format, a cast or an index on a device.

    Numpy arrays move to the device and back. If the destination is a Format or several Formats, memory is allocated on
    the side of the source.
    """
    made = destination
    formats = destination if isinstance(destination, tuple) else (destination,)
    if formats and all(isinstance(one, Format) for one in formats):
        if options.get("into_rows") is not None:
            raise InvalidValueError("into_rows scatters into memory, but the destination is a Format")
        results = tuple(_allocated(source, one, options.get("rows")) for one in formats)
        if results[0].format.tensor_scale and results[0].tensor_scale is None:
            if len(results) != 1 or options.get("rows") is not None:
                raise refused(
                    "several outputs or selected rows if the tensor scale is unknown",
                    "a destination ScaledTensor(..., tensor_scale=)",
                )
            first, options["gain"] = _with_tensor_scale(source, results[0], stream_handle(stream))
            results = (first,)
        made = results if isinstance(destination, tuple) else results[0]
    work = scaled_work(source, made, **options)
    if not work.launch.blocks:
        return ScaledCopyResult(destination, 0, f"{work.launch.name}: {work.launch.why}", lambda: True)
    places = {name: view for name, view in work.places.items() if name not in work.indices}
    handle = stream_handle(stream)
    if all(view.device is not None for view in places.values()):
        prepared = prepare_scaled(source, made, unique=unique, **options)
        prepared.launch(stream)
        if stream is None:
            prepared.check()
    elif any(view.device is not None for view in places.values()):
        raise DeviceError("some operands are in host memory, others on a device", hint="move them to the device")
    else:
        _there_and_back(work, open_device(), options, handle)
    if made is not destination:
        return made
    compare = functools.partial(_as_the_host_copies, source, destination, options)
    return ScaledCopyResult(destination, work.launch.moved, f"{work.launch.name}: {work.launch.why}", compare)


def _on_host(thing: T) -> T | ScaledTensor | NDArray[np.generic]:
    """Copy an operand to host memory; return an object without memory unchanged."""
    if isinstance(thing, ScaledTensor):
        data: Any = _on_host(thing.data)
        scales: Any = _on_host(thing.scales)
        return replace(thing, data=data, scales=scales)
    if isinstance(thing, np.ndarray):
        return thing.copy()
    return thing if device_of(thing) is None else host_copy(memory_view(thing))


def _as_the_host_copies(
    source: ArrayLike | ScaledTensor,
    destination: ArrayLike | ScaledTensor | tuple[ScaledTensor, ...],
    options: Mapping[str, T],
) -> bool:
    """Whether a copy of the same operands on the host would leave every byte of the destination unchanged."""
    held: Any = {name: _on_host(value) for name, value in options.items()}
    given = _on_host(source)
    for one in destination if isinstance(destination, tuple) else (destination,):
        got: Any = _on_host(one)
        want: Any = _on_host(got)
        scaled_copy(given, want, "host", **held)
        same = same_scaled if isinstance(one, ScaledTensor) else same_elements
        if not same(want, got):
            return False
    return True


def device_magnitude(source: Any, device: Device, stream: int = 0) -> float:
    """Wait for the largest magnitude of a matrix on a device. NaN elements are ignored; 0 if all are NaN."""
    view = memory_view(source)
    launch = plan_largest(matrix(view, "source", kind_of(view.dtype)))
    with DeviceBuffer(device, 8) as record:
        record.fill(0)
        content = launch.parameters({"source": view.address, "record": record.address}, [(0, 0)])
        block = (ctypes.c_char * len(content)).from_buffer_copy(content)
        PreparedLaunch(load_kernel(launch.kernel, device), launch.blocks, Parameters([block]), stream).launch()
        return float(struct.unpack("<f", bytes(record.read(4, stream=stream)))[0])


def _with_tensor_scale(source: Any, made: ScaledTensor, handle: int) -> tuple[ScaledTensor, float]:
    """The destination with the tensor scale of a source, and the variant's reciprocal of it."""
    if isinstance(source, np.ndarray):
        values = np.abs(to_float32(source))
        largest = float(np.fmax.reduce(values, axis=None))
        largest = 0.0 if np.isnan(largest) else largest
    else:
        largest = device_magnitude(source, open_device(memory_view(source).device), handle)
    total, gain = tensor_scale(largest, made.format.like)
    return replace(made, tensor_scale=total), float(gain)


def _there_and_back(work: ScaledWork, device: Device, options: dict[str, Any], handle: int) -> None:
    views, buffers = dict[str, tuple[ArrayView, DeviceBuffer]](), list[DeviceBuffer]()
    for name, view in work.places.items():
        if name not in work.indices:
            views[name] = _moved(view, device, True)
            buffers.append(views[name][1])
    outputs = tuple(
        (views[f"data {i}"][0], views[f"scales {i}"][0] if scales is not None else None)
        for i, (_, scales) in enumerate(work.outputs)
    )
    moved = replace(work, views={name: views[name][0] for name in work.views}, outputs=outputs)
    moved, kept = _with_indices(moved, device)
    prepared = PreparedScaledCopy(device, moved, (*buffers, *kept), options)
    prepared.launch(handle)
    prepared.check(handle)
    for i, pair in enumerate(work.outputs):
        for name, one in zip((f"data {i}", f"scales {i}"), pair, strict=True):
            if one is not None:
                low, high = one.extent()
                ctypes.memmove(low, bytes(views[name][1].read(high - low, low % PLACE_UNIT, handle)), high - low)
    for buffer in (*buffers, *kept):
        buffer.close()


def _allocated(source: Any, form: Format, rows: Any) -> ScaledTensor:
    """A scaled tensor for a source, in memory of the same library and on the same device; its bytes are not set."""
    total, logical = None, tuple(map(int, source.shape))
    if isinstance(source, ScaledTensor):
        source, total = source.data, source.tensor_scale
    expect_device_format(form)
    if len(logical) != 2:
        raise refused(f"a source of {len(logical)} modes", "a matrix (M, K)")
    shape = (logical[0] if rows is None else len(rows), logical[1])
    data, count = stored_shape(form, shape), int(form.scale_size(*shape))
    scale = "float32" if form.scale == "float32" else "uint8"
    library = type(source).__module__.partition(".")[0]
    made = []
    for size, kind in ((data, "uint8"), ((count,), scale)):
        if library == "torch":
            torch = sys.modules["torch"]
            made.append(torch.empty(size, dtype=getattr(torch, kind), device=source.device))
        elif library == "cupy":
            made.append(sys.modules["cupy"].empty(size, kind))
        elif isinstance(source, np.ndarray):
            made.append(np.zeros(size, kind))
        else:
            raise refused(
                f"a destination like {type(source).__name__}", "a destination ScaledTensor in your own memory"
            )
    if isinstance(source, np.ndarray):
        made = [
            made[0] if form.packing == "pairs" else made[0].view(form.dtype.numpy),
            made[1].view(form.scale_dtype.numpy),
        ]
        if form.order.name == "linear":
            blocks = [-(-n // b) for n, b in zip(shape, form.blocks(*shape), strict=True)]
            made[1] = made[1].reshape(blocks[::-1] if form.transposed else blocks)
    return ScaledTensor(made[0], made[1], form, total, shape)
