"""The function `copy`, which copies the elements of a layout to any other layout of the same size, on the host or on a
device.

backend="host" copies host memory with numpy (`host_copy`), "cuda" copies on the GPU (host memory is copied there and
back), "emulator" runs the tensor maps of a plan in numpy, and "both" compares the GPU's bytes with the host's. A copy
on the host imports no GPU modules and plans no kernel.
"""

from __future__ import annotations

import contextlib
import functools
import time
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Unpack, overload

from cute_py.argument_checks import expect, expect_choice
from cute_py.copies.host_copy import Bytes, copy_paired, element_values, memory_at
from cute_py.copies.modes import NIBBLES, Pairing, Refinement, byte_span, side_offsets
from cute_py.copies.operands import Operand, OperandSide, paired, side
from cute_py.copies.scaled.host import ScaledCopyResult, ScaledOptions, computes, scaled_copy, takes
from cute_py.dtypes import DTypeLike
from cute_py.errors import DeviceError, InvalidValueError, TmaLimitError
from cute_py.formats.format import Format
from cute_py.formats.scaled_tensor import ScaledTensor
from cute_py.layout.coordinate import idx2crd
from cute_py.layout.int_tuple import product_each
from cute_py.targets import MULTIPROCESSORS
from cute_py.tensor.array_views import StreamLike, stream_handle
from cute_py.tensor.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np

    from cute_py.copies.plan import CopyPlan
    from cute_py.copies.report import CopyReport
    from cute_py.gpu.device import Device, DeviceBuffer
else:
    from cute_py.optional_packages import numpy as np
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.emulator.emulator import Emulator

BACKENDS: Final = ("auto", "host", "emulator", "cuda", "both")
PLACE_UNIT: Final = 256
"""Memory that moves to the device keeps its address modulo this number of bytes, so its plan stays the same."""


@dataclass(frozen=True, eq=False, repr=False)
class LayoutCopyResult:
    """Result of `copy`.

    Attributes:
        destination: the destination argument. bytes: the number of bytes of the elements. seconds: the time of the copy
            itself.
        report: a comparison with a memcpy; None unless it was requested.

    On first use, `equal` and `difference` compare both sides, and wait for the device.
    """

    destination: Operand
    bytes: int
    seconds: float
    backend: str
    report: CopyReport | None
    _sides: tuple[OperandSide, OperandSide]
    _pairing: Pairing

    @functools.cached_property
    def plan(self) -> CopyPlan:
        """The plan of a device copy; for a copy on the host, it is made on first access."""
        return _plan(self._pairing, self._sides)

    @functools.cached_property
    def difference(self) -> str | None:
        """A description of the first element that differs; None if all are equal."""
        pairing = self._pairing
        if pairing.refinement is None:
            return None
        images = [_image(one, pairing, pairing.refinement, which) for which, one in enumerate(self._sides)]
        names = "source", "destination"
        return _first_difference(pairing, pairing.refinement, images[0], images[1], *names, pairing.flips)

    def __repr__(self) -> str:
        names = ("destination", "bytes", "seconds", "backend", "plan", "report")
        return f"LayoutCopyResult({', '.join([f'{name}={getattr(self, name)!r}' for name in names])})"

    @property
    def equal(self) -> bool:
        """Whether every element of the destination equals the source's."""
        return self.difference is None


def _image(one: OperandSide, pairing: Pairing, refinement: Refinement, which: int) -> Bytes:
    """Return the current bytes of the memory that a side spans."""
    low, size = byte_span(refinement, which, pairing.bits)
    if one.view.device is None:
        return np.frombuffer(memory_at(one.view.address + low, size), np.uint8)
    from cute_py.gpu.device import open_device, read_memory

    return np.frombuffer(read_memory(open_device(one.view.device), one.view.address + low, size), np.uint8)


def _first_difference(
    pairing: Pairing,
    refinement: Refinement,
    source: Bytes,
    destination: Bytes,
    first: str,
    second: str,
    flips: tuple[int, int],
) -> str | None:
    lows = [byte_span(refinement, which, pairing.bits)[0] for which in (0, 1)]
    step = 1 << 20
    for begin in range(0, refinement.count, step):
        index = np.arange(begin, min(begin + step, refinement.count))
        at = [side_offsets(refinement, which, index) for which in (0, 1)]
        a, b = (
            element_values(image, where, pairing.bits, low, flip)
            for image, where, low, flip in zip((source, destination), at, lows, flips, strict=True)
        )
        wrong = np.flatnonzero((a != b).any(axis=1))
        if len(wrong):
            number = int(wrong[0])
            offsets = [int(where[number]) * pairing.bits // pairing.dtype.bits for where in at]
            return (
                f"{first} at offset {offsets[0]} has {bytes(a[number]).hex()}, {second} at offset {offsets[1]} "
                f"{bytes(b[number]).hex()}{_coordinate(pairing, offsets[1])}"
            )
    return None


def _coordinate(pairing: Pairing, offset: int) -> str:
    """Return text with the coordinate of an offset in the destination; '' for large layouts."""
    from cute_py.layout.int_tuple import size
    from cute_py.layout.offsets import offsets

    layout = pairing.destination
    count = int(size(layout))
    if count > 1 << 22:
        return ""
    found = np.flatnonzero(np.asarray(offsets(layout, np.arange(count))) == offset)
    return f", coordinate {idx2crd(int(found[0]), layout.shape)}" if len(found) else ""


class ComputedOptions(ScaledOptions, total=False):
    """`ScaledOptions`, and the options that decide where the copy runs; see `copy`."""

    backend: str
    stream: StreamLike
    unique: bool


@overload
def copy(
    source: Operand,
    destination: Operand,
    *,
    backend: str = "auto",
    stream: StreamLike = None,
    report: bool = False,
    dtype: DTypeLike | None = None,
    nibbles: tuple[str, str] = NIBBLES,
) -> LayoutCopyResult: ...
@overload
def copy(source: Operand | ScaledTensor, destination: Format, **options: Unpack[ComputedOptions]) -> ScaledTensor: ...
@overload
def copy(
    source: Operand | ScaledTensor, destination: tuple[Format, ...], **options: Unpack[ComputedOptions]
) -> tuple[ScaledTensor, ...]: ...
@overload
def copy(
    source: Operand | ScaledTensor, destination: tuple[ScaledTensor, ...], **options: Unpack[ComputedOptions]
) -> tuple[ScaledCopyResult, ...]: ...
@overload
def copy(
    source: ScaledTensor, destination: Operand | ScaledTensor, **options: Unpack[ComputedOptions]
) -> ScaledCopyResult: ...
@overload
def copy(source: Operand, destination: ScaledTensor, **options: Unpack[ComputedOptions]) -> ScaledCopyResult: ...
@overload
def copy(
    source: Operand,
    destination: Operand,
    *,
    rows: Any = None,
    into_rows: Any = None,
    pages: Any = None,
    fill: float | None = None,
    cast: bool = False,
    backend: str = "auto",
    stream: StreamLike = None,
    unique: bool = False,
) -> Any: ...
def copy(
    source: Any,
    destination: Any,
    *,
    backend: str = "auto",
    stream: StreamLike = None,
    report: bool = False,
    dtype: DTypeLike | None = None,
    nibbles: tuple[str, str] = NIBBLES,
    rows: Any = None,
    into_rows: Any = None,
    pages: Any = None,
    fill: float | None = None,
    requantize: bool = False,
    cast: bool = False,
    unique: bool = False,
) -> Any:
    """Copy every element of one layout to another of the same size, or of one format to another.

    Args:
        source, destination: an array (numpy, PyTorch, CuPy, DLPack, `__cuda_array_interface__`), a `Tensor` over
            memory, or a pair (array, layout), where the array provides the memory. Elements correspond by coordinate:
            arrays of equal shape by index, and other shapes in colexicographic order (the first mode fastest), with a
            warning if both are arrays. Element types must be equal, unless `cast` or a format converts them.
        backend: 'host' (host memory), 'cuda', 'emulator' (plans of tensor maps, in host memory), or 'both' (compares
            the GPU's bytes with the host's). 'auto' is 'host' if both sides are in host memory, otherwise 'cuda'.
        stream: the stream of the device copy; the copy is enqueued there, and the call does not wait for it.
        report: measure the device copy against a memcpy.
        dtype: for two pairs, the element type of the layouts, if it is not the type of the memory.
        nibbles: for 4-bit elements, which are stored two to a byte: the half of the byte ('low' or 'high') that holds
            the first element, for (source, destination).
        rows: the rows of the source to copy, in this order; -1 gives a row of `fill`.
        into_rows: the row of the destination for each row; -1 drops the row. On the host, an index that names a row
            twice is an error. On a device, such a row receives either of the two source rows, unless `unique=True`,
            which raises an error before the copy.
        pages: the pages of a source (pages, page_size, ...) to copy, one after another.
        fill: the value of masked rows, and of the padding of scales of one byte (default 0).
        requantize: allow a format other than the source's. cast: allow an element type other than the source's.
    Returns:
        a `LayoutCopyResult`. `copy(array, format)` returns the `ScaledTensor`, and a tuple of formats gives a tuple of
        ScaledTensors. A tuple of ScaledTensors as the destination gives a tuple of results.
    Raises:
        InvalidValueError: sizes or element types differ, a layout leaves its memory, the destination is read-only or
            overlaps itself or the source, or the backend is 'emulator' and the plan needs threads. InvalidTypeError: an
            operand is not an array, or a layout has symbols. DeviceError: there is no GPU, a launch failed, or a GPU
            copy got host memory of a library other than numpy.

    >>> import numpy as np
    >>> x = np.arange(12, dtype=np.float32).reshape(3, 4)
    >>> y = np.zeros(12, np.float32)
    >>> result = cute.copy(x, (y, Layout((3, 4))))              # column-major
    >>> y[:4].tolist(), result.equal, result.plan.form
    ([0.0, 4.0, 8.0, 1.0], True, 'affine')
    >>> scaled = cute.copy(np.float32([[3.0] * 32]), cute.formats.mxfp8())
    >>> scaled.scale_grid().item(), scaled.dequantize()[0, 0].item()
    (0.0078125, 3.0)
    """
    expect(backend, str, "backend")
    expect_choice(backend, BACKENDS, "backend")
    expect(report, bool, "report")
    options = ScaledOptions(rows=rows, into_rows=into_rows, pages=pages, fill=fill, requantize=requantize, cast=cast)
    if takes(source, destination, options) or computes(source, destination, {}):
        if report or dtype is not None:
            raise InvalidValueError("report and dtype apply to a copy between layouts, not to one with a format")
        return _computed(source, destination, backend, stream, unique, options)
    handle = stream_handle(stream)
    a, b = side(source, "source", dtype), side(destination, "destination", dtype)
    on_host = a.view.device is None and b.view.device is None
    if backend == "auto":
        backend = "host" if on_host else "cuda"
    if backend in ("host", "emulator") and not on_host:
        raise InvalidValueError(f"backend {backend!r} copies only host memory, but an array is on a device")
    if report and backend in ("host", "emulator"):
        raise InvalidValueError(f"report=True needs a GPU, but the backend is {backend!r}")
    pairing = paired(a, b, nibbles)
    _warn_of_order((source, destination), (a, b))
    refinement = pairing.refinement
    if refinement is None:
        return LayoutCopyResult(destination, 0, 0.0, backend, None, (a, b), pairing)
    expected = _copied_by_host(a, b, pairing, refinement) if backend == "both" else None
    measured: CopyReport | None = None
    start = time.perf_counter()
    if backend == "host":
        copy_paired(pairing, a.view.address, b.view.address)
    elif backend == "emulator":
        _emulated(_plan(pairing, (a, b)), refinement, a.view.address, b.view.address)
    else:
        measured = _on_device(a, b, handle, stream is None or on_host or expected is not None, report, nibbles)
    seconds = time.perf_counter() - start
    result = LayoutCopyResult(destination, pairing.bytes, seconds, backend, measured, (a, b), pairing)
    if expected is not None:
        got = _image(b, pairing, refinement, 1)
        if not np.array_equal(got, expected):
            twice = _onto_itself(refinement)
            difference = _first_difference(
                *(pairing, twice, expected, got, "host", "GPU"), (pairing.flips[1], pairing.flips[1])
            )
            raise DeviceError(f"the GPU's result differs from the host's: {difference}")
    return result


def _computed(
    source: Any, destination: Any, backend: str, stream: StreamLike, unique: bool, options: ScaledOptions
) -> Any:
    """Copy with a format, a cast or an index: on a device if the memory is on a device, otherwise on the host."""
    if backend not in ("auto", "host", "cuda"):
        raise InvalidValueError(
            f"backend = {backend!r}; must be 'auto', 'host' or 'cuda' for a copy with a format, an index or a cast"
        )
    if backend == "auto":
        from cute_py.copies.scaled.operands import lies_on_device

        backend = "cuda" if lies_on_device(source, destination) else "host"
    if backend == "host":
        if stream is not None:
            raise InvalidValueError("stream applies to a copy on a device, but this copy runs on the host")
        return scaled_copy(source, destination, backend, **options)
    from cute_py.copies.scaled.prepared import copy_by_device

    return copy_by_device(source, destination, stream=stream, unique=unique, **options)


def _warn_of_order(operands: tuple[Operand, Operand], sides: tuple[OperandSide, OperandSide]) -> None:
    """Warn if two plain arrays have different shapes, because numpy would pair their elements in another order."""
    shapes = [tuple(map(int, product_each(one.layout.shape))) for one in sides]
    kept = [[n for n in shape if n != 1] for shape in shapes]
    if kept[0] != kept[1] and not any(isinstance(operand, (Tensor, tuple)) for operand in operands):
        order = "in colexicographic order (first mode fastest), not in numpy's row-major order"
        hint = "make_tensor(array, layout) defines which elements correspond"
        warnings.warn(f"this copies an array of {shapes[0]} to one of {shapes[1]} {order}; {hint}", stacklevel=3)


def _plan(pairing: Pairing, sides: tuple[OperandSide, OperandSide]) -> CopyPlan:
    from cute_py.copies.plan import plan_pairing

    return plan_pairing(pairing, (sides[0].alignment, sides[1].alignment))


def _onto_itself(refinement: Refinement) -> Refinement:
    """Return the refinement of a copy of the destination onto itself."""
    modes = tuple(replace(m, source=m.destination) for m in refinement.modes)
    sides = refinement.starts[1], refinement.swizzles[1], refinement.rest[1]
    return Refinement(modes, (sides[0],) * 2, (sides[1],) * 2, (sides[2],) * 2)


def _copied_by_host(a: OperandSide, b: OperandSide, pairing: Pairing, refinement: Refinement) -> Bytes:
    """Return the bytes that the destination must contain after the copy."""
    images = [_image(one, pairing, refinement, which).copy() for which, one in enumerate((a, b))]
    lows = [byte_span(refinement, which, pairing.bits)[0] for which in (0, 1)]
    places = [int(image.ctypes.data) - low for image, low in zip(images, lows, strict=True)]
    copy_paired(pairing, places[0], places[1])
    return images[1]


def _on_device(
    a: OperandSide, b: OperandSide, handle: int, wait: bool, report: bool, nibbles: tuple[str, str]
) -> CopyReport | None:
    from cute_py.copies.prepared import prepare_sides
    from cute_py.copies.report import measure_copy
    from cute_py.gpu.device import common_device, open_device

    device = open_device(common_device({"source": a.view.device, "destination": b.view.device}))
    pairing = paired(a, b, nibbles)
    there, here = (_moved(one, which, pairing, device) for which, one in enumerate((a, b)))
    prepared = prepare_sides(there[0], here[0], device=device, nibbles=nibbles)
    prepared.launch(handle)
    if wait:
        prepared.check(handle)
    if here[1] is not None and pairing.refinement is not None:
        low, size = byte_span(pairing.refinement, 1, pairing.bits)
        place = here[0].view.address + low - here[1].address
        memory_at(b.view.address + low, size)[:] = here[1].read(size, place, handle)
    return measure_copy(prepared, stream=handle) if report else None


def _moved(one: OperandSide, which: int, pairing: Pairing, device: Device) -> tuple[OperandSide, DeviceBuffer | None]:
    """Copy a side to the device; return the new side and its buffer, or None if it is already there."""
    if one.view.device is not None:
        return one, None
    if type(one.view.owner).__module__.partition(".")[0] != "numpy":
        raise DeviceError(
            f"the {one.role} is in host memory, but a GPU copy needs device memory", hint="move it to the device"
        )
    if pairing.refinement is None:
        raise DeviceError(f"the {one.role} has no elements")
    from cute_py.gpu.device import DeviceBuffer

    low, size = byte_span(pairing.refinement, which, pairing.bits)
    offset = (one.view.address + low) % PLACE_UNIT
    buffer = DeviceBuffer(device, offset + size)
    buffer.write(memory_at(one.view.address + low, size), offset)
    view = replace(one.view, address=buffer.address + offset - low, device=device.ordinal, readonly=False)
    return replace(one, view=view), buffer


def _emulated(plan: CopyPlan, refinement: Refinement, source: int, destination: int) -> None:
    """Run every load and store of a plan's tensor maps in numpy."""
    from cute_py.copies.plan import box_launches

    element = plan.bits // 8
    addresses = [
        address + start * element for address, start in zip((source, destination), refinement.starts, strict=True)
    ]
    launches = None
    if plan.kernel != "tile" and plan.form == "affine" and element:
        with contextlib.suppress(TmaLimitError):
            launches = box_launches(refinement, element, (addresses[0], addresses[1]), MULTIPROCESSORS)
    if launches is None:
        raise InvalidValueError(
            f"backend 'emulator' runs only tensor maps, but this copy needs threads ({plan.kernel})", {"why": plan.why}
        )
    spans = [byte_span(refinement, which, plan.bits) for which in (0, 1)]
    memories = [
        np.frombuffer(memory_at(address + low, size), np.uint8)
        for address, (low, size) in zip((source, destination), spans, strict=True)
    ]
    bases = [address + low for address, (low, _) in zip((source, destination), spans, strict=True)]
    emulator = Emulator()
    for launch in launches:
        walk = launch.kernel.facts.get("walk")
        if launch.maps is None or walk is None or launch.form == "realigned":
            raise InvalidValueError(
                f"backend 'emulator' runs only tensor maps, but a part of this copy needs threads ({launch.form})"
            )
        load, store = (encode(one) for one in launch.maps)
        size = int(str(launch.kernel.facts["TILE_BYTES"]))
        for number in range(walk.tiles):  # type: ignore[attr-defined]
            at = walk.coordinates(number)  # type: ignore[attr-defined]
            window = np.zeros(-(-size // 128) * 128, np.uint8)
            emulator.load(load, memories[0], at, window, gmem_base=bases[0])
            emulator.store(store, memories[1], at, window, gmem_base=bases[1])
        first, second, length = launch.tail
        if length:
            memories[1][second - bases[1] : second - bases[1] + length] = memories[0][
                first - bases[0] : first - bases[0] + length
            ]
