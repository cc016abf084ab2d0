"""Change a tensor map as the GPU does: apply tensormap.replace to its bytes, and list the replacements of a rebind.

tensormap.replace can write ten fields; each row of `REPLACE_FIELDS` describes how a value is stored. No replacement
changes the upper half of the map, so the driver's notes there become stale, but the hardware does not read them. Values
are PTX's operands: the rank is passed as rank - 1, and sizes and boxes are passed as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from cute_py.argument_checks import expect, expect_integer, expect_integers, record
from cute_py.errors import InvalidValueError, TmaBuildError, given
from cute_py.tma.descriptor import fields as f
from cute_py.tma.descriptor.data_types import MEASURED
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.encode import clear_mask
from cute_py.tma.descriptor.limits import ADDITIONS, Addition, refuse_unknown
from cute_py.tma.descriptor.read import MapSource, read_map


@record
class ReplaceField:
    """One field that tensormap.replace can write.

    >>> [row.ordinals for row in REPLACE_FIELDS if row.name == "box_dim"]
    [5]
    """

    name: str
    ordinals: int
    """The instruction takes ordinals 0..n-1; 0: it takes no ordinal."""
    value_bits: int
    """Width of the value's register; 0: an immediate."""
    values: int
    """Immediates 0..n-1 that were measured; 0 for a register."""
    target: str
    """Field of `fields.FIELDS` that the instruction writes."""
    quirk: str = ""
    source: str = MEASURED


REPLACE_FIELDS: Final[tuple[ReplaceField, ...]] = (
    ReplaceField("global_address", 0, 64, 0, "global_address"),
    ReplaceField("rank", 0, 32, 0, "rank", "the value is rank - 1; it is truncated to 3 bits"),
    ReplaceField("box_dim", 5, 32, 0, "box_dim", "value - 1 is truncated to 8 bits"),
    ReplaceField("global_dim", 5, 32, 0, "global_dim", "0 stands for 2**32"),
    ReplaceField(
        "global_stride", 4, 64, 0, "global_stride_low", "ordinal i is mode i + 1; bytes >> 4, truncated to 36 bits"
    ),
    ReplaceField("element_stride", 5, 32, 0, "element_strides", "value - 1 is truncated to 3 bits: 0 writes stride 8"),
    ReplaceField(
        "elemtype", 0, 0, 13, "format", "only 11 and 12 set bit 16 (round to tf32), and no other value clears it"
    ),
    ReplaceField("interleave_layout", 0, 0, 3, "interleave"),
    ReplaceField("swizzle_mode", 0, 0, 4, "swizzle"),
    ReplaceField("fill_mode", 0, 0, 2, "oob_fill"),
)
"""The fields that tensormap.replace writes on sm_90a. sm_100 adds `swizzle_atomicity`, whose bits are unknown."""

ELEMTYPES: Final[tuple[tuple[str, int, int], ...]] = (
    *(("u8", 0, 0), ("u16", 1, 0), ("u32", 2, 0), ("s32", 3, 0), ("u64", 4, 0), ("s64", 5, 0), ("f16", 6, 0)),
    *(("f32", 7, 0), ("f32.ftz", 8, 0), ("f64", 9, 0), ("bf16", 10, 0), ("tf32", 7, 1), ("tf32.ftz", 8, 1)),
)
"""The element types of tensormap.replace, indexed by PTX's number, which differs from the driver's: PTX's name, the
code that is written, and whether bit 16 is set."""

_BY_NAME: Final = {row.name: row for row in REPLACE_FIELDS}
DEVICE_MUTABLE: Final = ("global_address", "global_dim", "global_stride")
"""The three fields that the TMA Atoms reference pages let a kernel change."""


IM2COL_HOST_ONLY: Final = "im2col descriptors can only be made on the host: no mutator writes the im2col fields"
"""The page's text for im2col maps. Source: TMA emission page, Tensormap Init / Update Algorithm."""


def _expect_tiled(raw: bytes) -> None:
    """Refuse an im2col map: according to the reference pages, no kernel may change one."""
    if decode(raw).KIND != "tiled":
        raise TmaBuildError(IM2COL_HOST_ONLY, hint="encode() the changed request on the host")


def _addition(field: str) -> Addition:
    """Return the addition of later GPUs to a field."""
    return next(addition for addition in ADDITIONS if addition.field == field)


def _row_of(field: str, value: Any) -> tuple[ReplaceField, int]:
    expect(field, str, "the name of a field")
    row = _BY_NAME.get(field)
    if row is None:
        if field == "swizzle_atomicity":
            raise refuse_unknown(_addition(field))
        raise InvalidValueError(f"tensormap.replace has no field {given(field)}", {"fields": ", ".join(_BY_NAME)})
    number = expect_integer(value, field, 0, (1 << (row.value_bits or 32)) - 1)
    if row.value_bits == 0 and number >= row.values:
        if field == "elemtype" and number < row.values + 3:
            raise refuse_unknown(ADDITIONS[number - row.values])
        if field == "swizzle_mode" and number == row.values:
            raise refuse_unknown(_addition(field))
        raise InvalidValueError.of_value(field, number, f"be 0 to {row.values - 1}")
    return row, number


def replace(data: MapSource, field: str, value: int, ordinal: int = 0) -> bytes:
    """Return a map as `tensormap.replace.tile.<field> [map], <ordinal>, <value>` changes it.

    Args:
        data: 64 or 128 bytes, or any other source that `read_map` accepts; any map, tiled or im2col.
        field: name of a row of `REPLACE_FIELDS`.
        value: the operand of the instruction: bytes for global_address and global_stride, rank - 1 for rank, elements
            for sizes, boxes and element strides, and PTX's numbers for the other fields.
        ordinal: for box_dim, global_dim and element_stride, the mode (0..4); for global_stride, the mode minus 1
            (0..3).
    Returns:
        bytes of the same length; the upper half is unchanged.
    Raises:
        InvalidTypeError: a value is not an integer.
        InvalidValueError: the field or ordinal does not exist, or a value does not fit in its register or immediate.
        UnknownFactError: only later GPUs have the value, and its bits are unknown.
    Source:
        measured on NVIDIA H200, driver 580.159.04 (2,213 replacements).

    >>> from cute_py.tma.descriptor.replace import replace
    >>> replace(bytes(64), "element_stride", 0, 1)[48:56].hex()     # stride 0 leaves 7, which is stride 8
    '0000000038000000'
    """
    raw = read_map(data)
    row, number = _row_of(field, value)
    index = expect_integer(ordinal, f"ordinal of {field}", 0, row.ordinals - 1 if row.ordinals else None)
    if index and not row.ordinals:
        raise InvalidValueError(f"{field} has no ordinals")
    bits = int.from_bytes(raw, "little")
    for target, stored in _stores(row, number, index):
        bits = bits & ~target.mask | (stored << target.position & target.mask)
    return bits.to_bytes(len(raw), "little")


def _stores(row: ReplaceField, value: int, index: int) -> list[tuple[f.BitField, int]]:
    """List the (bit field, raw value) pairs of one replacement; the caller truncates the values to the fields."""
    if row.name == "global_stride":
        units = value >> 4
        low, high = f.field("global_stride_low", index + 1), f.field("global_stride_high", index + 1)
        return [(low, units & 0xFFFFFFFF), (high, units >> 32)]
    if row.name == "elemtype":
        code, tf32_round = ELEMTYPES[value][1:]
        return [(f.field("format"), code), *([(f.field("tf32_round"), 1)] if tf32_round else [])]
    if row.ordinals:
        return [(f.field(row.target, index), value - 1)]
    return [(f.field(row.target), value)]


@record
class RebindStep:
    """One replacement of a rebind, with the arguments of `replace`.

    >>> RebindStep("global_dim", 512, 0)
    RebindStep(field='global_dim', value=512, ordinal=0)
    """

    field: str
    value: int
    ordinal: int


def rebind_steps(address: int, extents: Sequence[int], strides: Sequence[int]) -> list[RebindStep]:
    """List the replacements of a rebind, in the order of the TMA Atoms reference pages: address, sizes, strides.

    Args:
        address: bytes.
        extents: (R,) elements, innermost first, R in 1..5.
        strides: (R-1,) bytes, of modes 1 to R-1.
    Returns:
        2R steps.
    Raises:
        InvalidTypeError: a value is not an integer.
        InvalidValueError: a value is negative, or the lengths do not fit a rank of 1 to 5.

    >>> [(step.field, step.value) for step in rebind_steps(0x2000, (64, 32), (128,))]
    [('global_address', 8192), ('global_dim', 64), ('global_dim', 32), ('global_stride', 128)]
    """
    address = expect_integer(address, "address", 0)
    extents, strides = expect_integers(extents, "extents", 0), expect_integers(strides, "strides", 0)
    if not 1 <= len(extents) <= f.MAX_RANK:
        raise InvalidValueError(f"the rank of extents is {len(extents)}; must be 1 to {f.MAX_RANK}")
    if len(strides) != len(extents) - 1:
        raise InvalidValueError(
            f"strides has {len(strides)} entries for rank {len(extents)}; must have {len(extents) - 1}"
        )
    return [
        RebindStep("global_address", address, 0),
        *(RebindStep("global_dim", extent, mode) for mode, extent in enumerate(extents)),
        *(RebindStep("global_stride", stride, ordinal) for ordinal, stride in enumerate(strides)),
    ]


def rebind(data: MapSource, address: int, extents: Sequence[int], strides: Sequence[int]) -> bytes:
    """Return a map as a kernel rebinds it to another tensor: new address, then sizes, then strides.

    A rebind does not write the rank, so the rank of the map must equal the rank of `extents`.

    Args:
        See `rebind_steps`.
    Raises:
        TmaBuildError: the map is an im2col map, which only the host can make.
        InvalidValueError: the map has another rank.
        See `replace`.

    >>> request = cute.tma.TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=3)
    >>> other = cute.tma.decode(cute.tma.rebind(cute.tma.encode(request), 8192, (256, 77), (512,)))
    >>> other.global_address, other.global_dim, other.global_strides
    (8192, (256, 77), (512,))
    """
    raw = read_map(data)
    _expect_tiled(raw)
    steps = rebind_steps(address, extents, strides)
    given_rank = len(steps) // 2
    rank = f.field("rank").read(int.from_bytes(raw, "little")) + 1
    if rank != given_rank:
        raise InvalidValueError(
            f"rebind got {given_rank} extents for a map of rank {rank}, but it can't change the rank",
            hint=f"replace(map, 'rank', {given_rank - 1}) first",
        )
    for step in steps:
        raw = replace(raw, step.field, step.value, step.ordinal)
    return raw


_UPDATES: Final = {
    name: field
    for field, short in zip(DEVICE_MUTABLE, ("base_pointer", "dim", "stride"), strict=True)
    for name in (field, short, f"UPDATE_{short.upper()}")
}


def update_tma_descriptor(data: MapSource, kind: str, axis: int, value: int) -> bytes:
    """Apply one of the three updates that the TMA Atoms reference pages allow on a device, and refuse any other.

    Args:
        kind: UPDATE_BASE_POINTER, UPDATE_DIM or UPDATE_STRIDE (a `TmaUpdateKind` or its name); also base_pointer, dim,
            stride, or PTX's names.
        axis: a mode of the map, innermost first; ignored for the base pointer; above 0 for a stride.
        value: bytes for the pointer and strides, elements for sizes.
    Raises:
        InvalidValueError: the mode does not exist, or the value does not fit in its register.
        TmaBuildError: "TMA descriptor field is not device-mutable" for any other field and for the stride of axis 0; or
            the map is an im2col map, which only the host can make.

    >>> request = cute.tma.TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=3)
    >>> moved = cute.tma.update_tma_descriptor(cute.tma.encode(request), "UPDATE_BASE_POINTER", 0, 8192)
    >>> cute.tma.decode(moved).global_address
    8192
    """
    name = getattr(kind, "name", kind)
    field = _UPDATES.get(name) if isinstance(name, str) else None
    if field is None:
        shown = name if isinstance(name, str) else given(name)
        raise TmaBuildError(
            "TMA descriptor field is not device-mutable", {"field": shown, "mutable": ", ".join(DEVICE_MUTABLE)}
        )
    axis = expect_integer(axis, "axis", 0)
    raw = read_map(data)
    _expect_tiled(raw)
    if field == "global_address":
        return replace(raw, field, value)
    rank = f.field("rank").read(int.from_bytes(raw, "little")) + 1
    if axis >= rank:
        raise InvalidValueError.of_value("axis", axis, f"be 0 to {rank - 1}, the modes of the map")
    if field == "global_dim":
        return replace(raw, field, value, axis)
    if axis == 0:
        raise TmaBuildError(
            "TMA descriptor field is not device-mutable", {"field": "stride of axis 0", "why": "it is the element size"}
        )
    return replace(raw, field, value, axis - 1)


def repaired(data: MapSource, driver: int) -> bytes:
    """Apply the known remedies for this driver version to a map that such a driver wrote; other bits stay unchanged.

    Args:
        data: 64 or 128 bytes, or any source that `read_map` accepts.
    Returns:
        bytes of the same length.

    >>> from cute_py.tma.descriptor.encode import encode
    >>> from cute_py.tma.descriptor.request import TensorMapTiled
    >>> good = encode(TensorMapTiled(0, 4096, (64, 4), (64,), (64, 4)))
    >>> bad = good[:10] + bytes([good[10] | 0x20]) + good[11:]
    >>> repaired(bad, 13000) == good, repaired(bad, 13040) == bad
    (True, True)
    """
    raw, driver = read_map(data), expect_integer(driver, "the driver's version", 0)
    bits = int.from_bytes(raw, "little") & ~clear_mask(decode(raw), driver)
    return bits.to_bytes(len(raw), "little")
