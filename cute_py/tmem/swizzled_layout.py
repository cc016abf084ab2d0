"""ComposeLayout: a tile layout in linear memory, followed by the XOR swizzle of shared memory.

    offset -> x = offset >> per_element;  x ^= (x & mask) >> atom_len;  offset = x << per_element | low bits

where `mask` has swizzle_len bits, starting at bit atom_len. If per_element is log2(elements in 16 bytes) and atom_len
is 3, the function of byte offsets is the same for all element types: bits [7, 7 + swizzle_len) are XORed onto bits [4,
4 + swizzle_len), which CuTe writes Sw<swizzle_len, 4, 3>.

`swizzle_inner=False` is the mirrored function, x ^= (x & low mask) << atom_len; no hardware descriptor supports it.

This module also makes the layouts that tensor cores read and write: layouts of operand tiles in shared memory, which
are such layouts, and layouts of accumulators in tensor memory, which are tile layouts on TLane and TCol.

Sources: semantics of TVM's TIRx ComposeLayout, measured on apache-tvm 0.27.0; PTX ISA, tcgen05 shared memory layouts
and tensor-memory data paths; the numbers of apache-tvm 0.27.0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cute_py.argument_checks import expect, expect_fields, expect_integer, expect_integers
from cute_py.atom.smem_descriptor import SmemSwizzle, as_swizzle
from cute_py.dtypes import DTypeLike, as_dtype
from cute_py.errors import InvalidTypeError, LayoutError, given
from cute_py.layout.swizzle import Swizzle
from cute_py.tmem.axes import Axis, TCol, TLane, axis_name
from cute_py.tmem.iters import Row
from cute_py.tmem.tile_layout import Region, S, TileLayout

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from cute_py.atom.smem_descriptor import Place
else:
    from cute_py.optional_packages import numpy

__all__ = ["ComposeLayout", "DATAPATHS", "mma_atom_layout", "mma_shared_layout", "tmem_datapath_layout"]

MAX_BITS = 20
"""The largest value of each of the three counts, so that places fit in 64 bits; the hardware uses at most 5."""


@dataclass(frozen=True, slots=True)
class ComposeLayout:
    """The layout `tile`, in elements on the axis `m`, followed by a swizzle.

    Args:
        per_element: log2 of the elements in one 16-byte unit.
        swizzle_len: number of bits that are XORed: 0 for no swizzle, 1 for rows of 32 bytes, 2 for 64, 3 for 128.
        atom_len: distance between the two groups of bits; 3 in every layout of the hardware.
        tile: the layout before the swizzle.
        swizzle_inner: False for the mirrored function.
    Raises:
        LayoutError: a count is negative, the groups of bits overlap, or the tile has axes other than `m`.

    >>> from cute_py.tmem.tile_layout import S
    >>> ComposeLayout(3, 3, 3, S[8, 64]).apply((1, 0), (8, 64))    # row 1 of 128-byte rows starts in unit 1
    {'m': 72}
    """

    per_element: int
    swizzle_len: int
    atom_len: int
    tile: TileLayout
    swizzle_inner: bool = True

    def __post_init__(self) -> None:
        expect_fields(self)
        for name in ("per_element", "swizzle_len", "atom_len"):
            value = getattr(self, name)
            if not 0 <= value <= MAX_BITS:
                raise LayoutError.of_value(name, value, f"be within 0..{MAX_BITS}")
        if self.atom_len < self.swizzle_len:
            raise LayoutError.of_value(
                "atom_len",
                self.atom_len,
                f"be at least swizzle_len = {self.swizzle_len}, or the swizzle is not a permutation",
            )
        if set(self.tile.axes) - {"m"}:
            raise LayoutError("a swizzle acts only on the axis m", {"axes": ", ".join(self.tile.axes)})

    def __repr__(self) -> str:
        tail = "" if self.swizzle_inner else ", swizzle_inner=False"
        return f"ComposeLayout({self.per_element}, {self.swizzle_len}, {self.atom_len}, {self.tile!r}{tail})"

    @property
    def replica(self) -> Row:
        return self.tile.replica

    def swizzle(self, place: Place) -> Place:
        """Return the swizzled offset, in elements, for an int or for every entry of an integer array."""
        if not isinstance(place, numpy.ndarray):
            place = expect_integer(place, "a place")
        elif place.dtype.kind not in "iu":
            raise InvalidTypeError(f"a place must be an integer, got ndarray {given(place)}")
        shift = self.atom_len if self.swizzle_inner else -self.atom_len
        return Swizzle(self.swizzle_len, self.per_element, shift)(place)

    def size(self) -> int:
        return self.tile.size()

    def span(self, axis: Axis | str | None = None) -> int:
        """Return the span of the tile. The swizzle permutes within blocks; offsets may reach the end of the last
        one."""
        return self.tile.span(axis)

    def apply(
        self, coord: Sequence[int] | int, *more: Sequence[int] | int, shape: Sequence[int] | None = None
    ) -> dict[str, int]:
        """Return the location of one element, in elements along `m`; for the arguments, see `TileLayout.apply`."""
        return {"m": self.swizzle(self.tile.apply(coord, *more, shape=shape).get("m", 0))}

    def positions(self, axis: Axis | str = "m") -> NDArray[numpy.int64]:
        """Return the location of every element, in row-major order: int64 of shape (size,)."""
        placed = self.tile.positions(axis)
        return self.swizzle(placed) if axis_name(axis) == "m" else placed

    def canonicalize(self) -> ComposeLayout:
        return replace(self, tile=self.tile.canonicalize())

    def slice(self, shape: Sequence[int], region: Region) -> ComposeLayout | None:
        """Return the layout of a region, or None as `TileLayout.slice` does. Only the tile is cut; the swizzle still
        counts from the start of memory."""
        part = self.tile.slice(shape, region)
        return None if part is None else replace(self, tile=part)

    def tiled_by(self, outer: TileLayout, outer_shape: Sequence[int], inner_shape: Sequence[int]) -> ComposeLayout:
        """Repeat the tile as `outer` arranges it, under the same swizzle."""
        return replace(self, tile=self.tile.tile(outer, outer_shape, inner_shape))


Layout = TileLayout | ComposeLayout


ATOM_ROWS = 8
"""Rows of one swizzle atom."""


def _atom_of(dtype: DTypeLike, swizzle: SmemSwizzle | int | str) -> tuple[int, SmemSwizzle, int]:
    """Return log2 of the elements in 16 bytes, the swizzle, and the number of elements in a row of its atom."""
    row = as_dtype(dtype)
    if 128 % row.bits:
        raise LayoutError(f"{row.name} has {row.bits} bits; the number of elements in 16 bytes must be a power of two")
    mode = as_swizzle(swizzle) if isinstance(swizzle, str) else expect_integer(swizzle, "a swizzle mode")
    if not 0 <= mode <= SmemSwizzle.B128:
        raise LayoutError(
            f"the swizzle mode is {int(mode)}; must be 0 (none), 1 (32 bytes), 2 (64 bytes) or 3 (128 bytes)"
        )
    mode = SmemSwizzle(mode)
    return (128 // row.bits).bit_length() - 1, mode, mode.row_bytes * 8 // row.bits


def mma_atom_layout(dtype: DTypeLike, swizzle: SmemSwizzle | int | str) -> ComposeLayout:
    """Return the layout of one swizzle atom: 8 rows of 16, 32, 64 or 128 bytes, in elements.

    >>> mma_atom_layout("bfloat16", 3)
    ComposeLayout(3, 3, 3, S[512 : 1])
    """
    per_element, mode, width = _atom_of(dtype, swizzle)
    return ComposeLayout(per_element, int(mode), 3, S[ATOM_ROWS * width : 1])


def mma_shared_layout(dtype: DTypeLike, swizzle: SmemSwizzle | int | str, shape: Sequence[int]) -> Layout:
    """Return the layout of a row-major (K-major) operand tile in shared memory, whose atoms follow each other first
    down the rows, then along the columns.

    Args:
        shape: (..., rows, columns) in elements; the leading extents count tiles that follow each other in memory.
    Raises:
        LayoutError: the columns are not a multiple of the atom's, or the rows of a swizzled tile not a multiple of 8.

    >>> mma_shared_layout("bfloat16", 3, (32, 256))
    ComposeLayout(3, 3, 3, S[(32, 4, 64) : (64, 2048, 1)])
    >>> mma_shared_layout("float32", 0, (128, 32))
    S[(128, 8, 4) : (4, 512, 1)]
    """
    per_element, mode, width = _atom_of(dtype, swizzle)
    extents = expect_integers(shape, "shape")
    if len(extents) < 2 or min(extents) < 1:
        raise LayoutError(f"the shape is {extents}; must be (..., rows, columns), each at least 1")
    *lead, rows, columns = extents
    if columns % width:
        row = f"{mode.row_bytes} bytes, one row of the atom of swizzle mode {int(mode)}"
        raise LayoutError.of_value("columns", columns, f"be a multiple of {width} elements ({row})")
    if mode and rows % ATOM_ROWS:
        raise LayoutError.of_value("rows", rows, f"be a multiple of {ATOM_ROWS}, the rows of a swizzle atom")
    blocks = columns // width
    tile = S[(math.prod(lead), rows, blocks, width) : (rows * columns, width, rows * width, 1)].canonicalize()
    return ComposeLayout(per_element, int(mode), 3, tile) if mode else tile


_FULL, _SCATTERED, _HALVES, _QUARTERS = "full", "scattered", "halves", "quarters"

DATAPATHS: dict[str, tuple[int, str, str]] = {
    "A": (128, _FULL, "one CTA's half of M = 256, cta_group::2"),
    "B": (64, _HALVES, "one CTA's half of M = 128, cta_group::2, dense"),
    "C": (64, _SCATTERED, "one CTA's half of M = 128, cta_group::2, sparse"),
    "D": (128, _FULL, "M = 128, cta_group::1"),
    "E": (64, _HALVES, "M = 64, cta_group::1, .ws"),
    "F": (64, _SCATTERED, "M = 64, cta_group::1"),
    "G": (32, _QUARTERS, "M = 32, cta_group::1, .ws"),
}
"""Data path -> rows of the accumulator, their spread over the lanes, and its use (PTX ISA, tcgen05 data path layouts A
to G)."""


def tmem_datapath_layout(datapath: str, rows: int, cols: int, sub_slab: int = 0) -> TileLayout:
    """Return the tensor-memory layout of an accumulator (rows, columns) for one of the data paths 'A' to 'G'.

    A, D: row r in lane r. C, F: 16 rows in each 32-lane slab, in its lower or (`sub_slab=1`) upper half.
    B, E: the right half of the columns in lanes 64 to 127. G: each quarter of the columns in the next 32 lanes.

    >>> tmem_datapath_layout("F", 64, 32)
    S[(4, 16, 32) : (32 @ TLane, 1 @ TLane, 1 @ TCol)]
    """
    expect(datapath, str, "a data path")
    if datapath not in DATAPATHS:
        raise LayoutError(f"unknown data path {given(datapath)}", {"known": ", ".join(DATAPATHS)})
    wanted, spread, use = DATAPATHS[datapath]
    rows, cols = expect_integer(rows, "rows"), expect_integer(cols, "cols")
    sub_slab = expect_integer(sub_slab, "sub_slab")
    facts = {"data path": f"{datapath}: {use}"}
    if sub_slab not in (0, 1):
        raise LayoutError.of_value("sub_slab", sub_slab, "be 0 or 1", "", facts)
    if rows != wanted:
        raise LayoutError.of_value("rows", rows, f"be {wanted} for data path {datapath}", "", facts)
    if cols < 1:
        raise LayoutError.of_value("cols", cols, "be at least 1", "", facts)
    if sub_slab and spread != _SCATTERED:
        raise LayoutError(f"sub_slab = 1; must be 0 for data path {datapath}, which uses both halves of a slab", facts)
    if spread == _FULL:
        return S[(rows, cols) : (1 @ TLane, 1 @ TCol)]
    if spread == _SCATTERED:
        layout = S[(4, 16, cols) : (32 @ TLane, 1 @ TLane, 1 @ TCol)]
        return layout + 16 @ TLane if sub_slab else layout
    parts = 2 if spread == _HALVES else 4
    if cols % parts:
        raise LayoutError.of_value("cols", cols, f"be a multiple of {parts} for data path {datapath}", "", facts)
    return S[(rows, parts, cols // parts) : (1 @ TLane, 128 // parts @ TLane, 1 @ TCol)]
