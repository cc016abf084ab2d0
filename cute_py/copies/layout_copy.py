"""copy: the elements of one layout into another of the same size, whatever the layouts, on the host or on a device.

backend="host" copies host memory by numpy: affine copies as strided views, cut into blocks that fit into a core's cache
where the two sides walk different modes first; others by lists of offsets, a block of elements at a time. "cuda" copies
on the GPU (host memory travels there and back), "emulator" runs the tensor maps of a plan in numpy, "both"
compares the GPU's bytes with the host's.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import time
from dataclasses import dataclass, field, replace
from typing import Any, Final, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from cute_py.argument_checks import expect, expect_choice
from cute_py.copies.modes import CopyMode, Refinement, byte_span, offset_bounds, side_offsets
from cute_py.copies.operands import Operand, Side, planned, side
from cute_py.copies.plan import NIBBLE, NIBBLES, CopyPlan, box_launches
from cute_py.copies.prepared import PreparedCopy, prepare_sides
from cute_py.copies.report import CopyReport, measure_copy
from cute_py.copies.scaled_copy import ScaledCopyResult, ScaledOptions, scaled_copy, takes
from cute_py.dtypes import DTypeLike
from cute_py.errors import DeviceError, InvalidValueError, TmaLimitError
from cute_py.formats.format import Format
from cute_py.formats.scaled_tensor import ScaledTensor
from cute_py.gpu.arrays import ArrayLike, StreamLike, stream_handle
from cute_py.gpu.device import Device, DeviceBuffer, common_device, open_device, read_memory
from cute_py.layout.coordinate import idx2crd
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.emulator.emulator import Emulator

BACKENDS: Final = ("auto", "host", "emulator", "cuda", "both")
PLACE_UNIT: Final = 256
"""Bytes; how memory lies within these is kept when it moves to the device, so that alignment decides the same there."""

BLOCK: Final = 256
"""Elements of a block along the modes that either side walks first."""
BLOCKED: Final = 1024
"""Elements of both from which blocks pay: the lines of a shorter column stay in the cache by themselves."""
LISTED: Final = 1 << 18
"""Elements whose offsets are listed at once."""

Words = NDArray[np.generic]

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class LayoutCopyResult:
    """What `copy` did.

    Attributes:
        destination: what was given as such. bytes: of the elements. seconds: of the copy itself. plan: how it was done.
        report: the copy beside a memcpy; None where it was not asked for.

    `equal` and `difference` compare both sides at their first use, and wait for the device.
    """

    destination: Operand
    bytes: int
    seconds: float
    backend: str
    plan: CopyPlan
    report: CopyReport | None
    _sides: tuple[Side, Side] = field(repr=False)

    @functools.cached_property
    def difference(self) -> str | None:
        """The first element that differs, as text; None: there is none."""
        refinement = self.plan.refinement
        if refinement is None:
            return None
        images = [_image(one, self.plan, refinement, which) for which, one in enumerate(self._sides)]
        return _first_difference(self.plan, refinement, images[0], images[1], "source", "destination", self.plan.flips)

    @property
    def equal(self) -> bool:
        """Whether every element of the destination is the source's."""
        return self.difference is None


def _host_bytes(address: int, size: int) -> memoryview:
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")


def _image(one: Side, plan: CopyPlan, refinement: Refinement, which: int) -> Bytes:
    """The bytes that a side spans, as they are now."""
    low, size = byte_span(refinement, which, plan.bits)
    if one.view.device is None:
        return np.frombuffer(_host_bytes(one.view.address + low, size), np.uint8)
    return np.frombuffer(read_memory(open_device(one.view.device), one.view.address + low, size), np.uint8)


def _values(image: Bytes, offsets: NDArray[np.int64], bits: int, low: int, flip: int) -> Bytes:
    """(elements, bytes of one) at offsets in elements; of 4 bits one byte each. low: the image's first byte."""
    found: Bytes
    if bits == NIBBLE:
        found = (image[(offsets >> 1) - low] >> 4 * ((offsets & 1) ^ flip).astype(np.uint8) & 15)[:, None]
        return found
    found = image[offsets[:, None] * (bits // 8) - low + np.arange(bits // 8)]
    return found


def _first_difference(
    plan: CopyPlan,
    refinement: Refinement,
    source: Bytes,
    destination: Bytes,
    first: str,
    second: str,
    flips: tuple[int, int],
) -> str | None:
    lows = [byte_span(refinement, which, plan.bits)[0] for which in (0, 1)]
    step = 1 << 20
    for begin in range(0, refinement.count, step):
        index = np.arange(begin, min(begin + step, refinement.count))
        at = [side_offsets(refinement, which, index) for which in (0, 1)]
        a, b = (
            _values(image, where, plan.bits, low, flip)
            for image, where, low, flip in zip((source, destination), at, lows, flips, strict=True)
        )
        wrong = np.flatnonzero((a != b).any(axis=1))
        if len(wrong):
            number = int(wrong[0])
            offsets = [int(where[number]) * plan.bits // plan.dtype.bits for where in at]
            return (
                f"{first} at offset {offsets[0]} has {bytes(a[number]).hex()}, {second} at offset {offsets[1]} "
                f"{bytes(b[number]).hex()}{_coordinate(plan, offsets[1])}"
            )
    return None


def _coordinate(plan: CopyPlan, offset: int) -> str:
    """Where the destination has an offset, as text; nothing of large layouts."""
    from cute_py.layout.int_tuple import size
    from cute_py.layout.offsets import offsets

    layout = plan.destination
    count = int(size(layout))
    if count > 1 << 22:
        return ""
    found = np.flatnonzero(np.asarray(offsets(layout, np.arange(count))) == offset)
    return f", coordinate {idx2crd(int(found[0]), layout.shape)}" if len(found) else ""


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
def copy(source: ArrayLike | ScaledTensor, destination: Format, **options: Unpack[ScaledOptions]) -> ScaledTensor: ...
@overload
def copy(
    source: ArrayLike | ScaledTensor, destination: tuple[Format, ...], **options: Unpack[ScaledOptions]
) -> tuple[ScaledTensor, ...]: ...
@overload
def copy(
    source: ScaledTensor, destination: ArrayLike | ScaledTensor, **options: Unpack[ScaledOptions]
) -> ScaledCopyResult: ...
@overload
def copy(source: ArrayLike, destination: ScaledTensor, **options: Unpack[ScaledOptions]) -> ScaledCopyResult: ...
@overload
def copy(
    source: ArrayLike,
    destination: ArrayLike,
    *,
    rows: Any = None,
    into_rows: Any = None,
    pages: Any = None,
    fill: float | None = None,
    cast: bool = False,
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
) -> Any:
    """Copy every element of one layout to another of the same size, or of one format to another.

    Args:
        source, destination: an array (numpy, PyTorch, CuPy, DLPack, `__cuda_array_interface__`), a `Tensor` over
            memory, or a pair (array of memory, layout). Elements correspond by coordinate: arrays of equal shape by
            index, other shapes in colexicographic order, the first mode fastest. Element types must be equal.
        backend: 'host' (host memory), 'cuda', 'emulator' (plans of tensor maps, in host memory), 'both' (the GPU's
            bytes beside the host's); 'auto': 'host' where both are in host memory, else 'cuda'.
        stream: of the device copy; it is then enqueued there, and not waited for.
        report: measure the device copy against a memcpy.
        dtype: of two pairs: the element type that the layouts count in, where it is not that of the memory.
        nibbles: of elements of 4 bits, two in a byte: whether the first lies in its 'low' or in its 'high' half, on
            (source, destination).
        rows: the rows of the source, in this order; -1: a row of `fill`. This and what follows: on the host only.
        into_rows: where each row goes in the destination; -1: nowhere.
        pages: which pages of a source (pages, page_size, ...), one after another.
        fill: of masked rows, and of the padding of scales (default 0).
        requantize: allow another format than the source's. cast: allow another element type than the source's.
    Returns:
        a `LayoutCopyResult`; of `copy(array, format)` the `ScaledTensor`, of a tuple of formats one of each.
    Raises:
        InvalidValueError: sizes or element types differ, a layout leaves its memory, the destination is read-only or
        overlaps itself or the source, 'emulator' for a plan that needs threads. InvalidTypeError: no array, a layout of
        symbols. DeviceError: no GPU, memory of another library on the host and the GPU asked for, a failed launch.

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
    if takes(source, destination, options):
        if report or stream is not None or dtype is not None:
            raise InvalidValueError("stream, report and dtype are of a copy between layouts, not of one with a format")
        return scaled_copy(source, destination, backend, **options)
    handle = stream_handle(stream)
    a, b = side(source, "source", dtype), side(destination, "destination", dtype)
    on_host = a.view.device is None and b.view.device is None
    if backend == "auto":
        backend = "host" if on_host else "cuda"
    if backend in ("host", "emulator") and not on_host:
        raise InvalidValueError(f"backend {backend!r} copies host memory; an array is on a device")
    if report and backend in ("host", "emulator"):
        raise InvalidValueError(f"report=True measures a GPU; the backend is {backend!r}")
    plan = planned(a, b, nibbles)
    refinement = plan.refinement
    if refinement is None:
        return LayoutCopyResult(destination, 0, 0.0, backend, plan, None, (a, b))
    expected = _copied_by_host(a, b, plan, refinement) if backend == "both" else None
    measured: CopyReport | None = None
    start = time.perf_counter()
    if backend == "host":
        _on_host(refinement, plan, a.view.address, b.view.address)
    elif backend == "emulator":
        _emulated(plan, refinement, a.view.address, b.view.address)
    else:
        measured = _on_device(a, b, handle, stream is None or on_host or expected is not None, report, nibbles)
    seconds = time.perf_counter() - start
    result = LayoutCopyResult(destination, plan.bytes, seconds, backend, plan, measured, (a, b))
    if expected is not None:
        got = _image(b, plan, refinement, 1)
        if not np.array_equal(got, expected):
            twice = _onto_itself(refinement)
            difference = _first_difference(plan, twice, expected, got, "host", "GPU", (plan.flips[1],) * 2)
            raise DeviceError(f"the GPU differs from the host: {difference}")
    return result


def _onto_itself(refinement: Refinement) -> Refinement:
    """The destination's side on both sides."""
    modes = tuple(replace(m, source=m.destination) for m in refinement.modes)
    sides = refinement.starts[1], refinement.swizzles[1], refinement.rest[1]
    return Refinement(modes, (sides[0],) * 2, (sides[1],) * 2, (sides[2],) * 2)


def _copied_by_host(a: Side, b: Side, plan: CopyPlan, refinement: Refinement) -> Bytes:
    """What the destination's bytes must be after the copy."""
    images = [_image(one, plan, refinement, which).copy() for which, one in enumerate((a, b))]
    places = [int(image.ctypes.data) - byte_span(refinement, which, plan.bits)[0] for which, image in enumerate(images)]
    _on_host(refinement, plan, places[0], places[1])
    return images[1]


def _on_host(refinement: Refinement, plan: CopyPlan, source: int, destination: int) -> None:
    if plan.bits == NIBBLE:
        host_copy_nibbles(refinement, source, destination, plan.flips)
    else:
        host_copy_layouts(refinement, plan.bits // 8, source, destination)


def _on_device(a: Side, b: Side, handle: int, wait: bool, report: bool, nibbles: tuple[str, str]) -> CopyReport | None:
    device = open_device(common_device({"source": a.view.device, "destination": b.view.device}))
    plan = planned(a, b, nibbles)
    there, here = (_moved(one, which, plan, device) for which, one in enumerate((a, b)))
    prepared: PreparedCopy = prepare_sides(there[0], here[0], device=device, nibbles=nibbles)
    prepared.launch(handle)
    if wait:
        prepared.check(handle)
    if here[1] is not None and plan.refinement is not None:
        low, size = byte_span(plan.refinement, 1, plan.bits)
        place = here[0].view.address + low - here[1].address
        _host_bytes(b.view.address + low, size)[:] = here[1].read(size, place, handle)
    return measure_copy(prepared, stream=handle) if report else None


def _moved(one: Side, which: int, plan: CopyPlan, device: Device) -> tuple[Side, DeviceBuffer | None]:
    """The side on the device, and the buffer that holds it; None for one that is there already."""
    if one.view.device is not None:
        return one, None
    if type(one.view.owner).__module__.partition(".")[0] != "numpy":
        raise DeviceError(
            f"the {one.role} is in host memory; a GPU copy needs device memory", hint="move it to the device"
        )
    if plan.refinement is None:
        raise DeviceError(f"the {one.role} has no element")
    low, size = byte_span(plan.refinement, which, plan.bits)
    offset = (one.view.address + low) % PLACE_UNIT
    buffer = DeviceBuffer(device, offset + size)
    buffer.write(_host_bytes(one.view.address + low, size), offset)
    view = replace(one.view, address=buffer.address + offset - low, device=device.ordinal, readonly=False)
    return replace(one, view=view), buffer


def _emulated(plan: CopyPlan, refinement: Refinement, source: int, destination: int) -> None:
    """Run the tensor maps of a plan in numpy: every load and store of its walk."""
    element = plan.bits // 8
    addresses = [
        address + start * element for address, start in zip((source, destination), refinement.starts, strict=True)
    ]
    launches = None
    if plan.kernel != "tile" and plan.form == "affine" and element:
        with contextlib.suppress(TmaLimitError):
            launches = box_launches(refinement, element, (addresses[0], addresses[1]), 132)
    if launches is None:
        raise InvalidValueError(
            f"backend 'emulator' runs tensor maps; this copy is made by threads ({plan.kernel})", {"why": plan.why}
        )
    spans = [byte_span(refinement, which, plan.bits) for which in (0, 1)]
    memories = [
        np.frombuffer(_host_bytes(address + low, size), np.uint8)
        for address, (low, size) in zip((source, destination), spans, strict=True)
    ]
    bases = [address + low for address, (low, _) in zip((source, destination), spans, strict=True)]
    emulator = Emulator()
    for launch in launches:
        walk = launch.kernel.facts.get("walk")
        if launch.maps is None or walk is None or launch.form == "realigned":
            raise InvalidValueError(
                f"backend 'emulator' runs tensor maps; threads make a part of this copy ({launch.form})"
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


def _words(address: int, low: int, count: int, element: int, writable: bool) -> Words:
    """`count` elements of memory from `low` elements after `address` on."""
    return _view(address + low * element, [CopyMode(count, 1, 1)], "source", element, writable)


def host_copy_layouts(refinement: Refinement, element: int, source: int, destination: int) -> None:
    """Copy between two addresses of host memory, those of offset 0 of both sides. Elements of `element` bytes."""
    bounds = [offset_bounds(refinement, which) for which in (0, 1)]
    if refinement.form == "affine":
        _strided(refinement, element, source, destination)
        return
    words = [
        _words(address, low, high - low + 1, element, which == 1)
        for which, (address, (low, high)) in enumerate(zip((source, destination), bounds, strict=True))
    ]
    for begin in range(0, refinement.count, LISTED):
        index = np.arange(begin, min(begin + LISTED, refinement.count))
        ours, theirs = (side_offsets(refinement, which, index) - bounds[which][0] for which in (0, 1))
        words[1][theirs] = words[0][ours]


def host_copy_nibbles(refinement: Refinement, source: int, destination: int, flips: tuple[int, int]) -> None:
    """As `host_copy_layouts`, of elements of 4 bits; flips: 1 where the first of a byte lies in its upper half."""
    lows = [byte_span(refinement, which, NIBBLE) for which in (0, 1)]
    ours, theirs = (
        np.frombuffer(_host_bytes(address + low, size), np.uint8)
        for address, (low, size) in zip((source, destination), lows, strict=True)
    )
    for begin in range(0, refinement.count, LISTED):
        index = np.arange(begin, min(begin + LISTED, refinement.count))
        values = _values(ours, side_offsets(refinement, 0, index), NIBBLE, lows[0][0], flips[0])[:, 0]
        offsets = side_offsets(refinement, 1, index)
        for half in (0, 1):  # one element of a byte at a time
            mine = (offsets & 1) == half
            at, place = (offsets[mine] >> 1) - lows[1][0], 4 * (half ^ flips[1])
            theirs[at] = theirs[at] & (15 << 4 - place) | values[mine] << place


def _view(address: int, modes: list[CopyMode], name: str, element: int, writable: bool) -> Words:
    """The strided view of one side, its last axis the first mode."""
    kind = np.dtype(f"u{element}") if element < 16 else np.dtype("V16")
    shape = tuple(m.size for m in reversed(modes))
    steps = tuple(getattr(m, name) * element for m in reversed(modes))
    low = sum(min((n - 1) * d, 0) for n, d in zip(shape, steps, strict=True))
    high = sum(max((n - 1) * d, 0) for n, d in zip(shape, steps, strict=True)) + element
    memory = (ctypes.c_char * (high - low)).from_address(address + low)
    found: Words = np.ndarray(shape, kind, memory, -low, steps)
    found.flags.writeable = writable
    return found


def _strided(refinement: Refinement, element: int, source: int, destination: int) -> None:
    modes = list(refinement.modes) or [CopyMode(1, 1, 1)]
    a = _view(source + refinement.starts[0] * element, modes, "source", element, False)
    b = _view(destination + refinement.starts[1] * element, modes, "destination", element, True)
    inner = min(range(len(modes)), key=lambda i: (modes[i].source == 0, abs(modes[i].source)))
    if inner == 0 or modes[inner].source == 0:
        b[...] = a
        return
    across = len(modes) - 1 - inner
    rows, columns = a.shape[across], a.shape[-1]
    if min(rows, columns) < BLOCKED:
        b[...] = a
        return
    # Lines of the side that is walked across are read again and again: as many of them as a core's cache holds.
    a, b = (np.moveaxis(v, across, -2) for v in (a, b))
    for outer in itertools.product(*(range(n) for n in a.shape[:-2])):
        one, other = a[outer], b[outer]
        for r in range(0, rows, BLOCK):
            for c in range(0, columns, BLOCK):
                other[r : r + BLOCK, c : c + BLOCK] = one[r : r + BLOCK, c : c + BLOCK]
