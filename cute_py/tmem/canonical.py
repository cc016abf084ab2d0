"""Canonical operand layouts: does a tile in shared memory have a matrix descriptor, and with which offsets?

With T elements in 16 bytes, and an instruction that reads 32 bytes along K (two units), a tile is canonical if its
element (mn, k) lies, before the swizzle, at

    K-major    start + mn//8 * stride + mn % 8 * W + unit(k) * (leading without a swizzle, else 16)
    MN-major   none:      start + unit(mn) * stride + k % 8 * 16 + k//8 * leading
               swizzled:  start + unit(mn) % w * 16 + unit(mn)//w * leading + k % d * W + k//d * stride

with W = 16, 32, 64 or 128 bytes, w = W / 16 and d = 8 (4 for 128 bytes with 32-byte atoms). A longer K is read by
several instructions, each with its own start and the same offsets. The check is on every element of the tile.

Sources: PTX ISA, "Canonical Layouts"; CUTLASS 7107b055, make_umma_desc and make_gmma_desc.
"""

from __future__ import annotations

from enum import Enum

import numpy
from numpy.typing import NDArray

from cute_py.argument_checks import expect, expect_integer, record
from cute_py.dtypes import DTypeLike, as_dtype
from cute_py.errors import InvalidTypeError, TmemError, given
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.layout.recast import SmemPtrFlag
from cute_py.tmem.convert import from_cute, mode_shape
from cute_py.tmem.cp_forms import UNIT_BYTES
from cute_py.tmem.matrix_descriptor import (
    START_MASK,
    SWIZZLE_CODES,
    DescriptorKind,
    MatrixDescriptor,
    SmemSwizzle,
    as_kind,
    as_swizzle,
    swizzled,
)

UNITS_PER_INSTRUCTION = 2
"""16-byte units along K that one wgmma or tcgen05.mma instruction reads."""


class Major(Enum):
    """The dimension along which neighbours lie together."""

    K = "K"
    MN = "MN"


def as_major(major: Major | str) -> Major:
    """The major, given as a member or by its name."""
    if isinstance(major, str) and major.upper() in Major.__members__:
        return Major[major.upper()]
    return expect(major, Major, "major")


@record
class CanonicalOperand:
    """A tile as the tensor core reads it.

    Args:
        leading, stride: in 16-byte units; 0 where the instruction has no second step of that kind to take.
        starts: of each instruction along K, in 16-byte units from the start of the buffer.
    """

    major: Major
    swizzle: SmemSwizzle
    kind: DescriptorKind
    leading: int
    stride: int
    starts: tuple[int, ...]

    def descriptor(self, address: int = 0, block: int = 0) -> MatrixDescriptor:
        """The descriptor of instruction `block` along K, for a buffer at shared-memory `address` (bytes).

        Raises:
            TmemError: the buffer is not aligned to the period of the swizzle.
        """
        address = expect_integer(address, "address", 0, unit="bytes")
        block = expect_integer(block, "block", 0, len(self.starts) - 1)
        if address % self.swizzle.period:
            raise TmemError(f"shared buffer at address {address}; must be a multiple of {self.swizzle.period}")
        start = (address // UNIT_BYTES + self.starts[block]) & START_MASK
        return MatrixDescriptor(start, self.leading, self.stride, self.swizzle, self.kind)


def element_bits(layout: Layout | ComposedLayout, dtype: DTypeLike) -> NDArray[numpy.int64]:
    """Position in bits of every element of a rank-2 shared layout: int64 of shape (size<0>, size<1>)."""
    shape = mode_shape(layout)
    if len(shape) != 2:
        raise TmemError(f"an operand has two modes, MN and K; the layout has {len(shape)}")
    flag = layout.offset if isinstance(layout, ComposedLayout) else None
    row = as_dtype(dtype)
    if isinstance(flag, SmemPtrFlag) and flag.bits != row.bits:
        raise TmemError(f"{row} has {row.bits} bits; the layout is one of {flag.bits}-bit elements")
    return from_cute(layout).positions("m").reshape(shape) * row.bits


def canonical_operand(
    layout: Layout | ComposedLayout,
    dtype: DTypeLike,
    *,
    kind: DescriptorKind | str = DescriptorKind.TCGEN05,
    major: Major | str | None = None,
    swizzle: SmemSwizzle | int | str | None = None,
) -> CanonicalOperand:
    """The canonical form, and so the descriptors, of a CuTe layout of an operand tile (MN, K).

    The swizzle of a composed layout acts on elements, as in `Sw<3,3,3> o 0 o layout` for 16-bit elements, or on bytes
    where the offset is `smem_ptr_flag(bits)`, as `cute.tma.make_smem_layout` writes it.

    Raises:
        TmemError: the layout has none; the text has the reason for each form that was tried.
        InvalidTypeError: no layout, element type, descriptor kind, major or swizzle.

    >>> from cute_py.tmem.canonical import canonical_operand
    >>> from cute_py.layout.swizzle import Swizzle
    >>> tile = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((128, 64), (64, 1)))
    >>> found = canonical_operand(tile, "bfloat16")
    >>> found.major.value, found.swizzle.name, found.stride, found.starts
    ('K', 'B128', 64, (0, 2, 4, 6))
    """
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise InvalidTypeError(f"expected a Layout or a ComposedLayout, got {type(layout).__name__} {given(layout)}")
    kind = as_kind(kind)
    majors = list(Major) if major is None else [as_major(major)]
    swizzles = list(SWIZZLE_CODES[kind]) if swizzle is None else [as_swizzle(swizzle)]
    addresses = element_bits(layout, dtype)
    tried: dict[str, object] = {}
    for one in majors:
        for mode in swizzles:
            try:
                return canonical_form(addresses, as_dtype(dtype).bits, one, mode, kind)
            except TmemError as error:
                tried[f"{one.value}-major, {mode.name}"] = error.headline
    raise TmemError("the tile has no canonical layout, so no matrix descriptor", tried)


def canonical_form(
    addresses: NDArray[numpy.int64], bits: int, major: Major, swizzle: SmemSwizzle, kind: DescriptorKind
) -> CanonicalOperand:
    """The canonical form with this major and swizzle.

    Args:
        addresses: (MN, K): the position in bits of every element, from the start of the buffer.
        bits: of one element.
    Raises:
        TmemError: the tile does not have it, and why.
    """
    if 128 % bits:
        raise TmemError(f"elements of {bits} bits; 16 bytes must hold a whole number of them")
    if swizzle not in SWIZZLE_CODES[kind]:
        raise TmemError(f"swizzle {swizzle.name} has no code in a {kind.value} descriptor")
    if major is Major.K and swizzle is SmemSwizzle.B128_ATOM32:
        raise TmemError("32-byte atoms are for MN-major alone")
    units = _units(addresses if major is Major.K else addresses.T, 128 // bits, bits)
    linear = swizzled(units, swizzle)
    leading, stride, starts = _k_major(linear, swizzle) if major is Major.K else _mn_major(linear, swizzle, 128 // bits)
    for name, value in (("leading", leading), ("stride", stride), *(("start", start) for start in starts)):
        if value % UNIT_BYTES or not 0 <= value // UNIT_BYTES <= START_MASK:
            raise TmemError(f"{name} of {value} bytes; must be a multiple of 16 and below 262144")
    leading, stride, *starts = (value // UNIT_BYTES for value in (leading, stride, *starts))
    return CanonicalOperand(major, swizzle, kind, leading, stride, tuple(starts))


def _units(addresses: NDArray[numpy.int64], per_unit: int, bits: int) -> NDArray[numpy.int64]:
    """Byte address of every 16-byte unit along the last axis: (outer, units)."""
    outer, inner = addresses.shape
    if inner % per_unit:
        raise TmemError(f"{inner} elements along the contiguous dimension; must be a multiple of {per_unit} (16 bytes)")
    grouped = addresses.reshape(outer, inner // per_unit, per_unit)
    wanted = grouped[:, :, :1] + numpy.arange(per_unit) * bits
    if (grouped != wanted).any():
        i, j, e = numpy.argwhere(grouped != wanted)[0]
        raise TmemError(f"element {j * per_unit + e} of row {i} is not a neighbour of the one before it")
    if (grouped[:, :, 0] % (8 * UNIT_BYTES)).any():
        i, j = numpy.argwhere(grouped[:, :, 0] % (8 * UNIT_BYTES))[0]
        raise TmemError(f"the unit {j} of row {i} starts at byte {grouped[i, j, 0] / 8:g}; must be a multiple of 16")
    first: NDArray[numpy.int64] = grouped[:, :, 0] // 8
    return first


Steps = tuple[int, int, list[int]]


def _step(column: NDArray[numpy.int64], index: int) -> int:
    return int(column[index] - column[0]) if len(column) > index else 0


def _k_major(linear: NDArray[numpy.int64], swizzle: SmemSwizzle) -> Steps:
    rows, units = linear.shape
    if rows % 8:
        raise TmemError(f"{rows} rows; must be a multiple of 8")
    if units % UNITS_PER_INSTRUCTION:
        one = UNITS_PER_INSTRUCTION * UNIT_BYTES
        raise TmemError(f"{units * UNIT_BYTES} bytes along K; must be a multiple of {one}")
    stride = _step(linear[:, 0], 8)
    leading = _step(linear[0], 1)
    row = numpy.arange(rows)[:, None]
    unit = numpy.arange(units)[None, :] % UNITS_PER_INSTRUCTION
    step = leading if swizzle is SmemSwizzle.NONE else UNIT_BYTES
    starts = linear[0, ::UNITS_PER_INSTRUCTION]
    wanted = numpy.repeat(starts, UNITS_PER_INSTRUCTION)[None, :] + row // 8 * stride + row % 8 * swizzle.row_bytes
    _check_equal(linear, wanted + unit * step, "row", "unit along K")
    return step, stride, [int(start) for start in starts]


def _mn_major(linear: NDArray[numpy.int64], swizzle: SmemSwizzle, per_unit: int) -> Steps:
    # linear is (K, units along MN) here.
    depth, units = linear.shape
    per_instruction = UNITS_PER_INSTRUCTION * per_unit
    if depth % per_instruction:
        raise TmemError(f"{depth} elements along K; must be a multiple of {per_instruction}")
    width = swizzle.row_bytes // UNIT_BYTES
    rows = 4 if swizzle is SmemSwizzle.B128_ATOM32 else 8
    if swizzle is not SmemSwizzle.NONE and units % width:
        raise TmemError(f"{units * UNIT_BYTES} bytes along MN; must be a multiple of {swizzle.row_bytes}")
    across, along = _step(linear[0], width), _step(linear[:per_instruction, 0], rows)
    k = numpy.arange(depth)[:, None] % per_instruction
    unit = numpy.arange(units)[None, :]
    starts = linear[::per_instruction, 0]
    wanted = numpy.repeat(starts, per_instruction)[:, None] + unit // width * across + unit % width * UNIT_BYTES
    wanted = wanted + k // rows * along + k % rows * swizzle.row_bytes
    _check_equal(linear, wanted, "k", "unit along MN")
    leading, stride = (along, across) if swizzle is SmemSwizzle.NONE else (across, along)
    return leading, stride, [int(start) for start in starts]


def _check_equal(got: NDArray[numpy.int64], wanted: NDArray[numpy.int64], *names: str) -> None:
    wrong = numpy.argwhere(got != wanted)
    if len(wrong):
        i, j = wrong[0]
        where = f"{names[0]} {i}, {names[1]} {j}: at byte {int(got[i, j])} before the swizzle"
        raise TmemError(f"{where}; must be at {int(wanted[i, j])}")
