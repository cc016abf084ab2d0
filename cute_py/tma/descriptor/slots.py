"""Two older views of a map, beside the bits that were measured.

The TMA Atoms reference pages describe a map by eleven fields, and the emission pages by eight named 64-bit slots. Both
are logical views of a kernel that rewrites maps; where the bits really are is `fields.FIELDS`. Each row says where the
view and the measurement differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cute_py.argument_checks import expect_fields, expect_integer
from cute_py.errors import InvalidValueError
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.fields import MAX_RANK
from cute_py.tma.descriptor.read import read_map
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapTiled


@dataclass(frozen=True, slots=True)
class SlotRow:
    """What the view says of one slot, and where it departs from the bits."""

    name: str
    meaning: str
    mutable: bool
    template: str
    """The tensormap.replace form that writes it; empty: none, the slot is born on the host."""
    lane: str
    measured: str


SLOTS: Final[tuple[SlotRow, ...]] = (
    SlotRow(
        "tensor_base_ptr",
        "base address",
        True,
        "tensormap.replace.tile.global_address.b1024.b64 [map], value",
        "b64, the whole slot",
        "w0, as the view says",
    ),
    SlotRow(
        "fmt_dim_stride_packed",
        "format and sizes",
        True,
        "tensormap.replace.tile.global_dim.b1024.b32 [map], i, value (i = 0..rank-1)",
        "b32, one a mode",
        "format in w1[7:10]; sizes in w4, w5 and w6[0:31], size - 1; w1[32:63] is the stride of mode 1",
    ),
    SlotRow(
        "box_size_packed",
        "box and paired-CTA layout",
        False,
        "",
        "",
        "box in w6[56:63] and w7[0:31], box - 1; tensormap.replace.tile.box_dim writes it; no paired-CTA bit was seen",
    ),
    SlotRow(
        "elem_stride_packed",
        "global strides",
        True,
        "tensormap.replace.tile.global_stride.b1024.b64 [map], i-1, value (i = 1..rank-1)",
        "b64, one a mode but the first",
        "strides in w1[32:63], w2, w3, bytes >> 4; the element strides are in w6[32:46]",
    ),
    SlotRow(
        "load_mode_packed",
        "tiled or im2col, multicast",
        False,
        "",
        "",
        "w1[0]; multicast leaves no bit, the instruction carries it",
    ),
    SlotRow(
        "interleave_fill", "interleave and fill", False, "", "", "w1[11:12] and w1[15]; tensormap.replace writes both"
    ),
    SlotRow("l2_sector_promo", "L2 promotion", False, "", "", "w1[17:18]"),
    SlotRow("reserved_future", "reserved", False, "", "", "no such word: w7 holds boxes or corners"),
)


@dataclass(frozen=True, slots=True)
class LogicalSlot:
    """One slot of the eight-slot view, filled from a map.

    `lanes` are the logical values (what a replacement of lane i would set), not the 64 bits at `offset`.
    """

    name: str
    offset: int
    meaning: str
    lanes: tuple[tuple[str, int], ...]
    device_mutable: bool
    template: str
    measured: str

    def __post_init__(self) -> None:
        expect_fields(self)

    def __str__(self) -> str:
        values = ", ".join(f"{label} {value}" for label, value in self.lanes) or "-"
        born = "device" if self.device_mutable else "host"
        return f"+0x{self.offset:02x} {self.name:<22} {born:<6} {values}"


def logical_slots(data: Any, rank: int | None = None) -> list[LogicalSlot]:
    """The eight-slot view of a map.

    The view keeps no rank: the operation that uses the map carries it. Here it is `rank`, or the map's own bits.

    Args:
        data: whatever `read_map` takes.
        rank: 1..5; how many lanes are shown.
    Returns:
        eight slots, 8 bytes apart; `.measured` says where the bits of each really are.
    Raises:
        InvalidValueError: a rank outside 1..5, or above that of the map.
        As `read_map`.

    >>> [slot.name for slot in logical_slots(bytes(64)) if slot.device_mutable]
    ['tensor_base_ptr', 'fmt_dim_stride_packed', 'elem_stride_packed']
    """
    if rank is not None:
        rank = expect_integer(rank, "the rank of the operation")
    request = decode(read_map(data))
    if rank is None:
        rank = request.rank
    if not 1 <= rank <= min(MAX_RANK, request.rank):
        raise InvalidValueError(f"rank {rank} of the operation; must be 1 to {request.rank} with this map")
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


def _tuple(values: tuple[int, ...]) -> str:
    return f"({','.join(map(str, values))})"


@dataclass(frozen=True, slots=True)
class ViewField:
    """One of the eleven fields of the older view."""

    name: str
    value: str
    mutable: bool
    note: str


def seed_fields(data: Any) -> list[ViewField]:
    """The eleven fields of the TMA Atoms reference pages, three of which a device may change, filled from a map.

    Args:
        data: whatever `read_map` takes.
    """
    request = decode(read_map(data))
    form = "unknown" if request.data_type is None else getattr(request.data_type, "name", str(request.data_type))
    if isinstance(request, TensorMapTiled):
        box = _tuple(request.box_dim)
    else:
        box = f"({request.channels_per_pixel} channels, {request.pixels_per_column} pixels)"
    fill = "NaN" if request.oob_fill else "zeros"
    value = "0x7FF7 in each 16 bits" if request.oob_fill else "0"
    rows = (
        ("global base address", f"0x{request.global_address:x}", True, "tensormap.replace global_address"),
        ("per-axis dimension sizes", _tuple(request.global_dim), True, "tensormap.replace global_dim, not dim_size"),
        ("per-axis strides", _tuple(request.global_strides), True, "bytes, modes 1 up; global_stride, not stride_size"),
        ("element type", form, False, "tensormap.replace elemtype exists"),
        ("rank", str(request.rank), False, "w1[4:6]; tensormap.replace rank exists"),
        (
            "format",
            "tiled" if isinstance(request, TensorMapTiled) else "im2col",
            False,
            "w1[0]; _at forms leave no bit",
        ),
        ("box shape", box, False, "tensormap.replace box_dim exists"),
        ("swizzle mode", getattr(request.swizzle, "name", str(request.swizzle)), False, "swizzle_mode exists"),
        ("fill mode", fill, False, "one bit, w1[15]; tensormap.replace fill_mode exists"),
        ("OOB fill value", value, False, "the same bit; there is no field for a value"),
        (
            "interleave layout",
            getattr(request.interleave, "name", str(request.interleave)),
            False,
            "interleave_layout exists",
        ),
    )
    return [ViewField(*row) for row in rows]
