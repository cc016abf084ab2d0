"""The bit fields of a CUtensorMap, one table row per field.

A map is 128 bytes, sixteen little-endian words of 64 bits, aligned to 128 bytes (64 before CUDA 13). The hardware
reads words 0 to 7, the payload. Words 8 and 9 are notes of the driver; words 10 to 15 are 0. Bit positions are counted
through the whole map: bit p is bit p % 64 of word p // 64. The fields of modes beyond the rank are 0.

Source of every row: the arguments of 12,746 calls that the driver accepted, compared with the bytes that it wrote
(NVIDIA H200, driver 580.159.04). For the unread upper half: 398 tile loads with this half as written, all 0, and all 1.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, Final, Literal

from cute_py.argument_checks import expect_fields, expect_integer, is_integer
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.tma.descriptor.data_types import MEASURED

Kinds = Literal["all", "tiled", "im2col"]

MAP_BYTES: Final = 128
PAYLOAD_BYTES: Final = 64
MAX_RANK: Final = 5

ONES: Final = tuple((1,) * (MAX_RANK - rank) for rank in range(MAX_RANK + 1))
ZEROS: Final = tuple((0,) * (MAX_RANK - max(rank, 1)) for rank in range(MAX_RANK + 1))
"""Rank -> the values that extend sizes (ONES), strides and corners (ZEROS) to five modes."""
UNIT_STEPS: Final = tuple((1,) * rank for rank in range(MAX_RANK + 1))
"""Rank -> element strides of 1, which nearly every map has."""


def expect_bits(bits: Any) -> int:
    """Return the bits of a map of 64 or 128 bytes as one little-endian integer.

    Raises:
        InvalidTypeError: the value is not an integer.
        InvalidValueError: the value has more bits than a map.
    """
    if not is_integer(bits):
        raise InvalidTypeError(f"the bits of a map must be an integer, got {type(bits).__name__} {given(bits)}")
    number: int = operator.index(bits)
    if not 0 <= number < 1 << 1024:
        raise InvalidValueError.of_value("the bits of a map", number, "be 0 to 2**1024 - 1")
    return number


@dataclass(frozen=True, slots=True)
class BitField:
    """A field of consecutive bits.

    `mode` is the mode that the bits belong to (None: the whole map); the field is 0 unless the rank exceeds `mode`.

    >>> [(one.name, one.position, one.width) for one in FIELDS if one.name == "swizzle"]
    [('swizzle', 77, 2)]
    """

    name: str
    position: int
    """Index of the lowest bit in the map, 0..1023."""
    width: int
    """Bits."""
    encoding: str
    """Encoding of the value."""
    unit: str = ""
    kinds: Kinds = "all"
    mode: int | None = None
    source: str = MEASURED
    value: str = ""
    """The stored value as an expression over the fields of a request (`expressions`)."""

    def __post_init__(self) -> None:
        expect_fields(self)
        expect_integer(self.position, "BitField.position", 0, 1023)
        expect_integer(self.width, "BitField.width", 1, 1024 - self.position)

    @property
    def word(self) -> int:
        """Index of the 64-bit word."""
        return self.position // 64

    @property
    def shift(self) -> int:
        """Lowest bit within the word."""
        return self.position % 64

    @property
    def mask(self) -> int:
        """Mask of the field's bits in the whole map."""
        return ((1 << self.width) - 1) << self.position

    def read(self, bits: int) -> int:
        """Return the raw value of the field, from a map as one little-endian integer."""
        return (expect_bits(bits) >> self.position) & ((1 << self.width) - 1)

    @property
    def label(self) -> str:
        """The name of the field, with its mode.

        >>> field("global_dim", 2).label, field("rank").label
        ('global_dim[2]', 'rank')
        """
        return self.name if self.mode is None else f"{self.name}[{self.mode}]"


def _at(word: int, bit: int) -> int:
    return 64 * word + bit


def _row(
    place: int,
    width: int,
    name: str,
    value: str,
    encoding: str,
    unit: str = "",
    kinds: Kinds = "all",
    mode: int | None = None,
) -> BitField:
    return BitField(name, place, width, encoding, unit, kinds, mode, value=value)


FIELDS: Final[tuple[BitField, ...]] = (
    _row(_at(0, 0), 64, "global_address", "global_address", "plain", "bytes"),
    _row(_at(1, 0), 1, "load_mode", "is_im2col", "0 tiled, 1 im2col and im2col-wide"),
    _row(_at(1, 4), 3, "rank", "rank - 1", "rank - 1"),
    _row(_at(1, 7), 4, "format", "CODE[data_type]", "code of the element format (not the driver's number)"),
    _row(_at(1, 11), 2, "interleave", "interleave", "0 none, 1 16B, 2 32B"),
    _row(_at(1, 13), 2, "swizzle", "swizzle", "0 none, 1 32B, 2 64B, 3 128B"),
    _row(_at(1, 15), 1, "oob_fill", "oob_fill", "0 zeros, 1 NaN"),
    _row(_at(1, 16), 1, "tf32_round", "TF32_ROUND[data_type]", "1 with TFLOAT32 and TFLOAT32_FTZ"),
    _row(_at(1, 17), 2, "l2_promotion", "l2_promotion", "0 none, 1 64B, 2 128B, 3 256B"),
    *(
        _row(p, 32, "global_stride_low", low, "bits 0-31 of (bytes >> 4)", "x 16 bytes", mode=i + 1)
        for i, p in enumerate((_at(1, 32), _at(2, 0), _at(2, 32), _at(3, 0)))
        for low in (f"global_strides[{i}] >> 4 & 0xFFFFFFFF",)
    ),
    *(
        _row(p, 4, "global_stride_high", high, "bits 32-35 of (bytes >> 4)", "x 2**36 bytes", mode=i + 1)
        for i, p in enumerate(_at(3, 32 + 4 * i) for i in range(4))
        for high in (f"global_strides[{i}] >> 36",)
    ),
    *(_row(_at(4, 32 * i), 32, "global_dim", f"global_dim[{i}] - 1", "size - 1", "elements", mode=i) for i in range(5)),
    *(
        _row(_at(6, 32 + 3 * i), 3, "element_strides", f"element_strides[{i}] - 1", "stride - 1", "elements", mode=i)
        for i in range(5)
    ),
    *(
        _row(p, 8, "box_dim", f"box_dim[{i}] - 1", "size - 1", "elements", kinds="tiled", mode=i)
        for i, p in enumerate((_at(6, 56), *(_at(7, 8 * (i - 1)) for i in range(1, 5))))
    ),
    _row(_at(6, 56), 8, "channels_per_pixel", "channels_per_pixel - 1", "count - 1", "elements", kinds="im2col"),
    *(
        _row(p, 16, f"pixel_box_{name}_corner", name, "two's complement, see CORNER_WIDTH", "elements", kinds="im2col")
        for p, name in ((_at(7, 0), "lower"), (_at(7, 16), "upper"))
    ),
    _row(_at(7, 32), 10, "pixels_per_column", "pixels_per_column - 1", "count - 1", "pixels", kinds="im2col"),
    _row(
        *(_at(8, 0), 64, "note_box_bytes", "(bits >> 3) * box_size"),
        *("element bytes x floor(box / element stride) over all modes", "bytes"),
    ),
    _row(_at(9, 0), 64, "note_smem_alignment", "SMEM_ALIGNMENT[swizzle]", "16, 256, 512, 1024 by swizzle", "bytes"),
)

CORNER_WIDTH: Final = {3: 16, 4: 8, 5: 5}
"""Rank -> bits of one corner. The rank - 2 corners are adjacent, W lowest; rank 5 leaves bit 15 unused."""

SMEM_ALIGNMENT: Final = (16, 256, 512, 1024)
"""Swizzle -> the driver's note of the alignment in shared memory, in bytes."""

_BY_NAME: Final = {(row.name, row.mode): row for row in FIELDS}


def field(name: str, mode: int | None = None) -> BitField:
    """Return the table row of a field; `mode` selects one of the fields that exist once per mode.

    Raises:
        InvalidValueError: the field does not exist.

    >>> field("box_dim", 1).word, field("box_dim", 1).shift
    (7, 0)
    """
    row = _BY_NAME.get((name, mode))
    if row is None:
        raise InvalidValueError(f"no field {name!r} for mode {mode}", {"fields": ", ".join(f.label for f in FIELDS)})
    return row


def _positions(name: str) -> tuple[int, ...]:
    return tuple(row.position for row in FIELDS if row.name == name)


P_FORMAT, P_INTERLEAVE, P_L2, P_OOB, P_RANK, P_SWIZZLE, P_TF32, P_LOAD_MODE = (
    field(name).position
    for name in ("format", "interleave", "l2_promotion", "oob_fill", "rank", "swizzle", "tf32_round", "load_mode")
)
P_CHANNELS, P_PIXELS = field("channels_per_pixel").position, field("pixels_per_column").position
P_LOWER, P_UPPER = field("pixel_box_lower_corner").position, field("pixel_box_upper_corner").position
P_NOTE_BYTES, P_NOTE_ALIGNMENT = field("note_box_bytes").position, field("note_smem_alignment").position
P_DIM: Final = _positions("global_dim")
P_BOX: Final = _positions("box_dim")
P_ELEMENT_STRIDE: Final = _positions("element_strides")
P_STRIDE_LOW: Final = _positions("global_stride_low")
P_STRIDE_HIGH: Final = _positions("global_stride_high")


def live_fields(im2col: bool, rank: int) -> tuple[BitField, ...]:
    """List the fields of a map of this kind and rank (1..5), including the driver's notes, lowest bit first."""
    kind = "im2col" if im2col else "tiled"
    rows = [row for row in FIELDS if row.kinds in ("all", kind) and (row.mode is None or row.mode < rank)]
    if rank not in CORNER_WIDTH:
        rows = [row for row in rows if not row.name.startswith("pixel_box")]
    return tuple(sorted(rows, key=lambda row: row.position))


def field_mask(im2col: bool, rank: int) -> int:
    """Return the mask of the bits with a meaning in a map of this kind and rank; others are reserved or unused.

    >>> hex(~field_mask(False, 5) >> 64 & 0xFFFFFFFF)
    '0xfff8000e'
    """
    mask = 0
    for row in live_fields(im2col, rank):
        mask |= row.mask
    if im2col and rank in CORNER_WIDTH:
        corner_bits = (1 << (CORNER_WIDTH[rank] * (rank - 2))) - 1
        for position in (P_LOWER, P_UPPER):
            mask &= ~((0xFFFF ^ corner_bits) << position)
    return mask


RESERVED: Final = tuple(
    tuple(~field_mask(im2col, rank) & ((1 << 512) - 1) if rank else 0 for rank in range(MAX_RANK + 1))
    for im2col in (False, True)
)
"""[im2col][rank] -> ones on the bits of the payload that have no meaning in such a map."""
