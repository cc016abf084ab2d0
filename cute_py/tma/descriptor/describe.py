"""Describe a tensor map as text, in four views.

The view "summary" has the fields with units, the tensor and the box as layouts in CuTe's notation (in elements), the
bytes of one copy, broken rules and warnings. The view "fields" shows every bit field with its position.

The other two views follow the reference pages. The TMA Atoms pages describe a map by eleven fields. The emission pages
describe it by eight named 64-bit slots, as a kernel that rewrites maps sees it. Each row of these views also gives its
differences from the measured bits, which are in `fields.FIELDS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from cute_py.argument_checks import expect, expect_integer, record
from cute_py.errors import InvalidValueError, UnknownFactError, given
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.diff import field_table
from cute_py.tma.descriptor.encode import encode, note_box_bytes
from cute_py.tma.descriptor.fields import MAX_RANK, PAYLOAD_BYTES
from cute_py.tma.descriptor.hazards import hazards
from cute_py.tma.descriptor.limits import SLICE_BYTES, SWIZZLE_SPAN
from cute_py.tma.descriptor.read import MapSource, read_map
from cute_py.tma.descriptor.request import (
    HasRequest,
    TensorMap,
    TensorMapIm2col,
    TensorMapIm2colWide,
    TensorMapTiled,
    corners_of,
    request_of,
)
from cute_py.tma.descriptor.transfer import (
    element_bytes,
    is_sound,
    measured_width,
    row_pitch,
    shared_row_bytes,
    transaction_bytes,
    visited,
)
from cute_py.tma.descriptor.violations import violations

__all__ = ["LogicalSlot", "SLOTS", "describe", "logical_slots", "seed_fields"]


def strided_text(shape: tuple[int, ...], sizes: tuple[int, ...], width: int) -> str:
    """Format a layout in CuTe's notation, innermost mode first and also in row-major order.

    `sizes` are the strides in bytes. The text has them in elements of `width` bytes, or in bytes if `width` is 0 or
    does not divide one of the strides.

    >>> strided_text((64, 128), (2, 128), 2), strided_text((8,), (2,), 0)
    ('(64,128):(1,64), row-major (128,64):(64,1), elements', '(8):(2) bytes')
    """
    whole = width > 0 and all(size % width == 0 for size in sizes)
    strides = tuple(size // width for size in sizes) if whole else sizes
    first, last = (f"{_tuple(a)}:{_tuple(b)}" for a, b in ((shape, strides), (shape[::-1], strides[::-1])))
    text = first if len(shape) == 1 else f"{first}, row-major {last},"
    return f"{text} {'elements' if whole else 'bytes'}"


def box_layout(request: TensorMap) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape, and the strides in bytes, of the box in shared memory, innermost mode first.

    The shape counts the elements that are copied (the box divided by the element strides), and the row pitch is at
    least the swizzle's span. The strides do not include the permutation of bytes by the swizzle. With interleave, mode
    0 counts channel slices.

    Raises:
        UnknownFactError: the format was not measured.

    >>> box_layout(TensorMapTiled(6, 0, (64, 64), (128,), (16, 9), (1, 2), swizzle=3))
    ((16, 5), (2, 128))
    """
    width = element_bytes(request)
    if isinstance(request, TensorMapTiled):
        shape = visited(request)
    else:  # with interleave an im2col load moves one channel slice
        shape = (*(() if request.interleave else (request.channels_per_pixel,)), request.pixels_per_column)
    if request.interleave:
        step, strides, rest = shared_row_bytes(request), [], shape
    else:
        step, strides, rest = row_pitch(request), [width], shape[1:]
    for count in rest:
        strides.append(step)
        step *= count
    return shape, tuple(strides)


@dataclass(frozen=True, slots=True)
class SlotRow:
    """One row of the eight-slot view, with the differences of the measured bits from it."""

    name: str
    meaning: str
    mutable: bool
    template: str
    """The tensormap.replace that writes the slot, as on the page: $0 is the map, $1 the value, N the mode.

    It is empty if only the host writes the slot.
    """
    lane: str
    measured: str


def _host(name: str, meaning: str, measured: str) -> SlotRow:
    """Make the row of a slot that only the host writes."""
    return SlotRow(name, meaning, False, "", "", measured)


_REPLACE: Final = "tensormap.replace.tile"

SLOTS: Final[tuple[SlotRow, ...]] = (
    SlotRow(
        "tensor_base_ptr",
        "base address",
        True,
        f"{_REPLACE}.global_address.b1024.b64 [$0], $1",
        "b64, the whole slot",
        "w0, as in the view",
    ),
    SlotRow(
        "fmt_dim_stride_packed",
        "format and sizes",
        True,
        f"{_REPLACE}.global_dim.b1024.b32 [$0], {{N}}, $1",
        "b32, one per mode: rank (0..4)",
        "format in w1[7:10]; sizes in w4, w5 and w6[0:31], size - 1; w1[32:63] is the stride of mode 1",
    ),
    _host(
        "box_size_packed",
        "box and paired-CTA layout",
        "box in w6[56:63] and w7[0:31], box - 1; tensormap.replace.tile.box_dim writes it; no paired-CTA bit was seen",
    ),
    SlotRow(
        "elem_stride_packed",
        "global strides",
        True,
        f"{_REPLACE}.global_stride.b1024.b64 [$0], {{N-1}}, $1",
        "b64, one per mode except the first: rank-1 (0..3)",
        "strides in w1[32:63], w2, w3, bytes >> 4; the element strides are in w6[32:46]",
    ),
    _host(
        "load_mode_packed",
        "tiled or im2col, multicast",
        "w1[0]; multicast sets no bit, because the instruction carries it",
    ),
    _host("interleave_fill", "interleave and fill", "w1[11:12] and w1[15]; tensormap.replace writes both"),
    _host("l2_sector_promo", "L2 promotion", "w1[17:18]"),
    _host("reserved_future", "reserved", "no such word: w7 holds boxes or corners"),
)


@record
class LogicalSlot:
    """One slot of the eight-slot view, with values from a map.

    `lanes` are (label, value) pairs with the logical values of the slot, for example a size in elements. A
    replacement of lane i would set value i. They are not the 64 bits at `offset`.

    >>> from cute_py.tma.descriptor import TensorMapTiled, encode, logical_slots
    >>> data = encode(TensorMapTiled("float16", 4096, (64, 16), (128,), (64, 8)))
    >>> [slot.name for slot in logical_slots(data)][:3]
    ['tensor_base_ptr', 'fmt_dim_stride_packed', 'box_size_packed']
    """

    name: str
    offset: int
    meaning: str
    lanes: tuple[tuple[str, int], ...]
    device_mutable: bool
    template: str
    measured: str

    def __str__(self) -> str:
        values = ", ".join(f"{label} {value}" for label, value in self.lanes) or "-"
        born = "device" if self.device_mutable else "host"
        return f"+0x{self.offset:02x} {self.name:<22} {born:<6} {values}"


def logical_slots(data: MapSource, rank: int | None = None) -> list[LogicalSlot]:
    """Return the eight-slot view of a map, as the emission reference pages describe it.

    The view has no slot for the rank, because the instruction that uses the map states it. This function uses `rank`,
    or the map's own rank if `rank` is None.

    Args:
        data: any source that `read_map` accepts. rank: the number of lanes to show, 1..5.
    Returns:
        eight slots, 8 bytes apart; `.measured` gives the measured position of the bits of each slot.
    Raises:
        InvalidValueError: the rank is outside 1..5, or above the rank of the map. For other errors, see `read_map`.

    >>> [slot.name for slot in logical_slots(bytes(64)) if slot.device_mutable]
    ['tensor_base_ptr', 'fmt_dim_stride_packed', 'elem_stride_packed']
    """
    if rank is not None:
        rank = expect_integer(rank, "the rank of the operation")
    request = decode(read_map(data))
    if rank is None:
        rank = request.rank
    if not 1 <= rank <= min(MAX_RANK, request.rank):
        raise InvalidValueError(f"the operation has rank {rank}; must be 1 to {request.rank} with this map")
    if isinstance(request, TensorMapTiled):
        box = tuple((f"box[{i}]", value) for i, value in enumerate(request.box_dim[:rank]))
    else:
        box = (("channels", request.channels_per_pixel), ("pixels", request.pixels_per_column))
    number = -1 if request.data_type is None else int(request.data_type)
    lanes: tuple[tuple[tuple[str, int], ...], ...] = (
        (("address", request.global_address),),
        (("format", number), *((f"dim[{i}]", value) for i, value in enumerate(request.global_dim[:rank]))),
        box,
        tuple((f"stride[{i + 1}]", value) for i, value in enumerate(request.global_strides[: rank - 1])),
        (("im2col", int(isinstance(request, TensorMapIm2col))),),
        (("interleave", int(request.interleave)), ("fill", int(request.oob_fill))),
        (("l2_promotion", int(request.l2_promotion)),),
        (),
    )
    return [
        LogicalSlot(row.name, 8 * i, row.meaning, values, row.mutable, row.template, row.measured)
        for i, (row, values) in enumerate(zip(SLOTS, lanes, strict=True))
    ]


@dataclass(frozen=True, slots=True)
class ViewField:
    """One of the eleven fields that the TMA Atoms reference pages use to describe a map."""

    name: str
    value: str
    mutable: bool
    note: str


def seed_fields(data: MapSource) -> list[ViewField]:
    """Return the eleven fields of the TMA Atoms reference pages, with values from a map.

    A device may change three of them.

    Args:
        data: any source that `read_map` accepts.

    >>> from cute_py.tma.descriptor import TensorMapTiled, encode
    >>> data = encode(TensorMapTiled("float16", 4096, (64, 16), (128,), (64, 8)))
    >>> len(seed_fields(data))
    11
    """
    request = decode(read_map(data))
    if isinstance(request, TensorMapTiled):
        box = _tuple(request.box_dim)
    else:
        box = f"({request.channels_per_pixel} channels, {request.pixels_per_column} pixels)"
    fill = "NaN" if request.oob_fill else "zeros"
    value = "0x7FF7 in each 16 bits" if request.oob_fill else "0"
    kind = "tiled" if isinstance(request, TensorMapTiled) else "im2col"
    rows = (
        ("global base address", f"0x{request.global_address:x}", True, "tensormap.replace global_address"),
        ("per-axis dimension sizes", _tuple(request.global_dim), True, "tensormap.replace global_dim, not dim_size"),
        ("per-axis strides", _tuple(request.global_strides), True, "bytes, modes 1 up; global_stride, not stride_size"),
        ("element type", _name(request.data_type), False, "tensormap.replace elemtype exists"),
        ("rank", str(request.rank), False, "w1[4:6]; tensormap.replace rank exists"),
        ("format", kind, False, "w1[0]; _at forms leave no bit"),
        ("box shape", box, False, "tensormap.replace box_dim exists"),
        ("swizzle mode", _name(request.swizzle), False, "swizzle_mode exists"),
        ("fill mode", fill, False, "one bit, w1[15]; tensormap.replace fill_mode exists"),
        ("OOB fill value", value, False, "the same bit; no field holds a value"),
        ("interleave layout", _name(request.interleave), False, "interleave_layout exists"),
    )
    return [ViewField(*row) for row in rows]


View = Literal["summary", "fields", "seed001", "slots"]
VIEWS: Final = ("summary", "fields", "seed001", "slots")
_WIDTH: Final = 16


def _line(name: str, value: str | int) -> str:
    return f"  {name:<{_WIDTH}} : {value}"


def describe(what: TensorMap | HasRequest | MapSource, view: View = "summary", *, arch: str = "sm_90a") -> str:
    """Describe a map as text.

    Args:
        what: any source that `read_map` accepts, a request, or an object that holds one.
        view: "summary"; "fields": every bit field with its position; "seed001": the eleven fields of the TMA Atoms
            reference pages; "slots": the eight logical slots of the emission pages.
        arch: the GPU whose limits apply.
    Returns:
        lines of text, without a newline at the end. The summary ends with the properties that were checked and those
        that were not.
    Raises:
        InvalidValueError: the view is unknown. For other errors, see `read_map`, and for an illegal request `encode`,
            unless the view is "summary".

    >>> print(describe(TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=3)).splitlines()[0])
    tiled tensor map, FLOAT16, rank 2
    """
    expect(view, str, "view")
    if view not in VIEWS:
        raise InvalidValueError(f"unknown view {given(view)}", {"known": ", ".join(VIEWS)})
    if isinstance(what, TensorMap) or hasattr(what, "request"):
        request = request_of(what)  # type: ignore[arg-type]
        if view == "summary":
            return _summary(request, arch)
        raw = encode(request, arch=arch)
    else:
        raw = read_map(what)
    if view == "summary":
        text = _summary(decode(raw), arch)
        return text if any(raw) else f"{text}\n{_line('empty', 'all bytes are 0, so this is not an encoded map')}"
    if view == "fields":
        return _fields(raw)
    return _seed_view(raw) if view == "seed001" else _slots(raw)


def _name(value: Any) -> str:
    return "unknown" if value is None else getattr(value, "name", str(value))


def _summary(request: TensorMap, arch: str) -> str:
    kind = request.KIND.replace("_", "-")
    lines = [f"{kind} tensor map, {_name(request.data_type)}, rank {request.rank}"]
    lines.append(_line("address", f"0x{request.global_address:x}"))
    width = measured_width(request)
    inner = SLICE_BYTES.get(request.interleave, width)  # with interleave, mode 0 counts channel slices
    lines.append(_line("tensor", strided_text(request.global_dim, (inner, *request.global_strides), width)))
    lines.append(_line("global strides", f"{_tuple(request.global_strides)} bytes, modes 1 up"))
    lines += _box_lines(request)
    lines.append(_line("element strides", _tuple(request.element_strides)))
    for name in ("interleave", "swizzle", "l2_promotion"):
        lines.append(_line(name.replace("_", " "), _name(getattr(request, name))))
    fill = {0: "zeros", 1: "NaN, 0x7FF7 in each 16 bits"}.get(request.oob_fill, str(request.oob_fill))
    lines.append(_line("out of bounds", fill))
    lines += _byte_lines(request)
    if request.residue is not None and request.residue.bits:
        for word, bits in request.residue.unknown_words.items():
            where = "not read by the hardware" if word >= PAYLOAD_BYTES // 8 else "no field, or no known value"
            lines.append(_line(f"word {word}", f"0x{bits:x} differs; {where}"))
    found = violations(request, arch=arch)
    for violation in found:
        lines.append(_line("broken rule", violation.message))
    for warned in hazards(request):
        lines.append(_line("warning", str(warned)))
    lines.append(_line("judged", ", ".join(found.scope.judged)))
    lines += [_line("not judged", text) for text in found.scope.not_judged]
    return "\n".join(lines)


def _tuple(values: tuple[int, ...]) -> str:
    return f"({','.join(map(str, values))})"


def _box_lines(request: TensorMap) -> list[str]:
    lines = []
    if isinstance(request, TensorMapTiled):
        lines.append(_line("box", f"{_tuple(request.box_dim)} elements, innermost first"))
    else:
        lines.append(_line("box", f"{request.channels_per_pixel} channels x {request.pixels_per_column} pixels"))
        wide = isinstance(request, TensorMapIm2colWide)
        low, high = (str(corner[0]) if wide else _tuple(corner) for corner in corners_of(request))
        lines.append(_line("corners", f"lower {low}, upper {high}, W first"))
    if not is_sound(request):
        return lines
    try:
        box = strided_text(*box_layout(request), element_bytes(request))
    except UnknownFactError:
        return lines
    # The numbers of the three plain swizzles are B of CuTe's Sw<B,4,3>, which acts on bytes.
    over = f"Sw<{int(request.swizzle)},4,3> on bytes over " if SWIZZLE_SPAN.get(request.swizzle) else ""
    return [*lines, _line("shared memory", f"{over}{box}")]


def _byte_lines(request: TensorMap) -> list[str]:
    if not is_sound(request):
        return []
    try:
        real = transaction_bytes(request)
    except UnknownFactError as error:
        return [_line("transaction", f"unknown: {error.headline}")]
    note = note_box_bytes(request)
    lines = [_line("transaction", f"{real} bytes")]
    if note != real and measured_width(request):
        lines.append(_line("driver's note", f"{note} bytes (word 8; a barrier must not expect it)"))
    return lines


def _fields(raw: bytes) -> str:
    rows = field_table(raw)
    lines = [f"{len(raw)} bytes, word and bits, value, raw"]
    for row in rows:
        unit = f" {row.unit}" if row.unit else ""
        meaning = f"  {row.meaning}" if row.meaning else ""
        lines.append(f"  {row.where:<10} {row.label:<24} {row.value}{unit} (0x{row.raw:x}){meaning}")
    return "\n".join(lines)


def _seed_view(raw: bytes) -> str:
    rows = seed_fields(raw)
    mutable = sum(row.mutable for row in rows)
    lines = [f"eleven fields; the TMA Atoms reference pages call {len(rows) - mutable} immutable on the device"]
    for row in rows:
        kept = "mutable" if row.mutable else "immutable"
        lines.append(f"  {row.name:<24} : {row.value} [{kept}; {row.note}]")
    lines.append("  not in this view         : element strides, L2 promotion, round to tf32, im2col corners")
    return "\n".join(lines)


def _slots(raw: bytes) -> str:
    lines = ["eight logical slots; the rank is that of the operation"]
    for slot in logical_slots(raw):
        lines.append(f"  {slot}")
        lines.append(f"        measured: {slot.measured}")
    return "\n".join(lines)
