"""CuTe layouts of the operands of tcgen05.mma in tensor memory.

A layout gives addresses in elements of `bits` bits, as CuTe counts them: the stride is `lane_stride(bits)` between
lanes (65536 for 32 bits), and 1 between elements of a lane. The layouts of D, by row of a CTA and column n:

    every lane           (rows,N):(65536,1)                       M = 128; two CTAs, M = 256
    half of the lanes    ((16,4),N):((65536,32*65536),1)          one CTA, M = 64; two CTAs, sparse, M = 128
    in parts             (rows,(N/p,p)):(65536,(1,rows*65536))    two CTAs, M = 128; .ws with M = 64 and 32

Scale factors are ((rows,copies),(K,factors)) of 8 bits. A column has the factors of 32 rows, one row per lane, in its
four bytes; the next column has the next 32 rows. Each of the other groups of 32 lanes has a copy.
Source: PTX ISA 9.0, tcgen05 data path layouts, layouts of scale factors; cute/atom/mma_traits_sm100_frag.hpp (tmem_frg,
tmem_frg_ws, tmem_sf_frg).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from cute_py.atom.fragments import LANES, lane_stride
from cute_py.layout import Layout, offsets, static

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

GROUP: Final = 32
"""Number of lanes that one warp of a warpgroup reaches."""


@functools.lru_cache(maxsize=256)
def lane_layout(rows: int, columns: int, parts: int, *, halves: bool, bits: int = 32, packed: bool = False) -> Layout:
    """Return the layout (row of one CTA, column) -> address of an element of D or A.

    Args:
        parts: number of groups of lanes that share the columns. halves: whether 64 rows use the lower half
            of each group of 32 lanes. bits: width of an element. packed: whether elements are adjacent, as in A; else
            each element has its own 32-bit column.

    >>> print(lane_layout(64, 256, 1, halves=True), lane_layout(64, 256, 2, halves=False))
    ((_16,_4),_256):((_65536,_2097152),_1) (_64,(_128,_2)):(_65536,(_1,_4194304))
    """
    lane, step = lane_stride(bits), 1 if packed else 32 // bits
    if parts > 1:
        return static(Layout((rows, (columns // parts, parts)), (lane, (step, rows * lane))))
    if halves:
        return static(Layout(((GROUP // 2, rows // (GROUP // 2)), columns), ((lane, GROUP * lane), step)))
    return static(Layout((rows, columns), (lane, step)))


@functools.lru_cache(maxsize=256)
def factor_layout(rows: int, depth: int, factors: int, halves: int) -> Layout:
    """Return the layout ((row, copy), (k, factor)) -> address, in bytes, of a scale factor of A or B.

    Args:
        rows: number of scaled rows, rounded up to a multiple of 32. depth: K. factors: number of factors per row.
        halves: 2 if lanes 0 to 63 have the first half of the rows and lanes 64 to 127 the second; else 1.

    >>> print(factor_layout(128, 64, 4, 1))
    (((_32,_4),_4),(_16,_4)):(((_262144,_4),_8388608),(_0,_1))
    >>> print(factor_layout(128, 64, 4, 2))
    (((_32,_2),_2,_2),(_16,_4)):(((_262144,_4),_16777216,_8388608),(_0,_1))
    """
    lane = lane_stride(8)
    held = -(-rows // halves)
    row = (GROUP, -(-held // GROUP)), (lane, 4)
    k = (depth // factors, factors), (0, 1)
    if halves == 1:
        return static(Layout(((row[0], LANES // GROUP), k[0]), ((row[1], GROUP * lane), k[1])))
    return static(Layout(((row[0], 2, 2), k[0]), ((row[1], 2 * GROUP * lane, GROUP * lane), k[1])))


@functools.lru_cache(maxsize=256)
def lane_places(rows: int, columns: int, parts: int, *, halves: bool) -> tuple[Array, Array]:
    """Return the lanes and columns of D, relative to its address; the arrays broadcast to (rows, columns)."""
    layout = lane_layout(rows, columns, parts, halves=halves)
    down, across = (np.asarray(offsets(layout[mode])).ravel(order="F").astype(np.int64) for mode in range(2))
    lane = lane_stride(32)
    lanes = (down // lane)[:, None]
    if parts > 1:
        lanes = lanes + (across // lane)[None, :]
    return lanes, (across % lane)[None, :]


@functools.lru_cache(maxsize=256)
def factor_places(rows: int, depth: int, factors: int, halves: int) -> tuple[Array, Array]:
    """Return the lanes and bytes (rows, copies, factors) of scale factors, relative to lane 0 and the first byte of
    their first column.
    """
    layout = factor_layout(rows, depth, factors, halves)
    held = -(-rows // halves)
    places = np.asarray(offsets(layout[0])).reshape((-1, halves, LANES // GROUP // halves), order="F")[:held]
    flat = places.swapaxes(0, 1).reshape(halves * held, -1)[:rows].astype(np.int64)
    lane = lane_stride(8)
    lanes, first = flat // lane, flat % lane
    return np.broadcast_to(lanes[..., None], (*lanes.shape, factors)), first[..., None] + np.arange(factors)
