"""The layouts that the tensor cores read and write: operand tiles in shared memory, accumulators in tensor memory.

Source: PTX ISA, tcgen05 shared memory layouts and tensor-memory data paths; the numbers of apache-tvm 0.27.0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cute_py.argument_checks import expect, expect_integer, expect_integers
from cute_py.dtypes import as_dtype
from cute_py.errors import LayoutError, given
from cute_py.tmem.axes import TCol, TLane
from cute_py.tmem.spec import S
from cute_py.tmem.swizzled_layout import ComposeLayout, Layout
from cute_py.tmem.tile_layout import TileLayout

ATOM_ROWS = 8
"""Rows of one swizzle atom."""

ROW_BYTES: tuple[int, ...] = (16, 32, 64, 128)
"""Bytes in one row of an atom, by swizzle mode: 0 none, 1 32B, 2 64B, 3 128B."""


def _unit_elements(dtype: object) -> int:
    row = as_dtype(dtype)
    if 128 % row.bits:
        raise LayoutError(f"{row.name} has {row.bits} bits; 16 bytes hold no whole power of two of them")
    return 128 // row.bits


def _row_bytes(swizzle: int) -> int:
    if expect_integer(swizzle, "a swizzle mode") not in range(len(ROW_BYTES)):
        raise LayoutError(f"swizzle mode {swizzle}; must be 0 (none), 1 (32 bytes), 2 (64 bytes) or 3 (128 bytes)")
    return ROW_BYTES[swizzle]


def mma_atom_layout(dtype: object, swizzle: int) -> ComposeLayout:
    """One swizzle atom: 8 rows of 16, 32, 64 or 128 bytes, in elements.

    >>> mma_atom_layout("bfloat16", 3)
    ComposeLayout(3, 3, 3, S[512 : 1])
    """
    units = _unit_elements(dtype)
    row = _row_bytes(swizzle) // 16 * units
    return ComposeLayout(int(math.log2(units)), swizzle, 3, S[ATOM_ROWS * row : 1])


def mma_shared_layout(dtype: object, swizzle: int, shape: Sequence[int]) -> Layout:
    """A row-major (K-major) operand tile in shared memory: atoms below one another first, then side by side.

    Args:
        shape: (..., rows, columns) in elements; leading extents are whole tiles one after another.
    Raises:
        LayoutError: the columns are no multiple of a row of the atom, or a swizzled tile's rows no multiple of 8.

    >>> mma_shared_layout("bfloat16", 3, (32, 256))
    ComposeLayout(3, 3, 3, S[(32, 4, 64) : (64, 2048, 1)])
    >>> mma_shared_layout("float32", 0, (128, 32))
    S[(128, 8, 4) : (4, 512, 1)]
    """
    units = _unit_elements(dtype)
    width = _row_bytes(swizzle) // 16 * units
    extents = expect_integers(shape, "shape")
    if len(extents) < 2 or min(extents) < 1:
        raise LayoutError(f"shape {extents}; must be (..., rows, columns), each at least 1")
    *lead, rows, columns = extents
    if columns % width:
        raise LayoutError(
            f"columns = {columns}; must be a multiple of {width} elements ({_row_bytes(swizzle)} bytes, "
            f"one row of the atom of swizzle mode {swizzle})"
        )
    if swizzle and rows % ATOM_ROWS:
        raise LayoutError(f"rows = {rows}; must be a multiple of {ATOM_ROWS}, the rows of a swizzle atom")
    blocks = columns // width
    tile = S[(math.prod(lead), rows, blocks, width) : (rows * columns, width, rows * width, 1)].canonicalize()
    return ComposeLayout(int(math.log2(units)), swizzle, 3, tile) if swizzle else tile


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
"""Data path -> rows of the accumulator, how they spread over the lanes, where it is used (PTX ISA, tcgen05 data
path layouts A to G)."""


def tmem_datapath_layout(datapath: str, rows: int, cols: int, sub_slab: int = 0) -> TileLayout:
    """Where the accumulator element (row, column) lies in tensor memory, for a data path 'A' to 'G'.

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
        raise LayoutError(f"sub_slab = {sub_slab}; must be 0 or 1", facts)
    if rows != wanted:
        raise LayoutError(f"rows = {rows}; must be {wanted} for data path {datapath}", facts)
    if cols < 1:
        raise LayoutError(f"cols = {cols}; must be at least 1", facts)
    if sub_slab and spread != _SCATTERED:
        raise LayoutError(f"sub_slab = 1; must be 0 for data path {datapath}, which uses both halves of a slab", facts)
    if spread == _FULL:
        return S[(rows, cols) : (1 @ TLane, 1 @ TCol)]
    if spread == _SCATTERED:
        layout = S[(4, 16, cols) : (32 @ TLane, 1 @ TLane, 1 @ TCol)]
        return layout + 16 @ TLane if sub_slab else layout
    parts = 2 if spread == _HALVES else 4
    if cols % parts:
        raise LayoutError(f"cols = {cols}; must be a multiple of {parts} for data path {datapath}", facts)
    return S[(rows, parts, cols // parts) : (1 @ TLane, 128 // parts @ TLane, 1 @ TCol)]
