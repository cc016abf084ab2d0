"""Convert registers of a block from one thread-value layout to another through shared memory.

Every thread stores its values in a tile, all threads wait, and every thread loads its new values. If both layouts are
linear over F2, the tile may have a swizzle, and a side may use stmatrix or ldmatrix if its words are parts of 8x8
matrices whose rows are 16 contiguous bytes. The combination with the fewest wavefronts is used. For other layouts, the
tile contains its elements in order.

The byte address of an access is base + (thread offset ^ value offset). For nonlinear layouts, the two offsets are
added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cute_py.copies.shared_layout import WIDEST, best_swizzle, counted_wavefronts, linear_wavefronts
from cute_py.layout.linear import combined, independent
from cute_py.layout.swizzle import Swizzle
from cute_py.targets import BANKS, WARP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]
else:
    from cute_py.optional_packages import numpy as np

WORD: Final = 4
"""Bytes of a register."""
LANE_BITS: Final = WARP.bit_length() - 1


@dataclass(frozen=True, slots=True)
class ThreadAccess:
    """One load or store instruction, which every thread executes.

    first: index of its first value. values: number of values. offset: byte offset of the values, which is combined with
    the thread's offset. matrices: 1, 2 or 4 for ldmatrix or stmatrix, 0 for ld or st. transposed: whether the
    instruction has .trans.
    """

    first: int
    values: int
    offset: int
    matrices: int = 0
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class TiledSide:
    """The accesses of one side to the tile. columns: the byte offset that each bit of the thread index XORs into the
    address; None for a nonlinear side, whose `modes` list (extent, stride in bytes) of the thread."""

    accesses: tuple[ThreadAccess, ...]
    columns: tuple[int, ...] | None
    wavefronts: int
    modes: tuple[tuple[int, int], ...] = ()


def _plain(threads: Sequence[int], values: Sequence[int], element: int) -> TiledSide:
    """Plan a side with ld or st. Accesses are as wide as contiguity and alignment of the values permit."""
    rounds, width = linear_wavefronts(threads, values, element, Swizzle(0, 4, 3))
    together = width // element
    accesses = tuple(
        ThreadAccess(first, together, combined(values, first)) for first in range(0, 1 << len(values), together)
    )
    return TiledSide(accesses, tuple(threads), rounds)


def _matrices(threads: Sequence[int], values: Sequence[int], element: int, transposed: bool) -> TiledSide | None:
    """Plan a side with ldmatrix or stmatrix; None if a thread's words are not its parts of 8x8 matrices.

    Bits 0 and 1 of a lane select the word of a row, and bits 2 to 4 the row. In a transposed matrix, bits 0 and 1 and
    the half of a word select the row, and bits 2 to 4 the half-word of a row.
    """
    inside = (WORD // element).bit_length() - 1
    if len(threads) < LANE_BITS or element > WORD or len(values) < inside or (transposed and element != 2):
        return None
    words = values[inside:]
    if transposed:
        rows, fits = (values[0], *threads[:2]), list(threads[2:5]) == [2, 4, 8]
    else:
        rows = tuple(threads[2:5])
        fits = list(threads[:2]) == [4, 8] and list(values[:inside]) == [element << k for k in range(inside)]
    if not fits or any(c % WIDEST for c in (*rows, *words, *threads[LANE_BITS:])):
        return None
    bits = min(2, len(words))
    count = 1 << bits
    accesses = tuple(
        ThreadAccess(first << inside, count << inside, combined(words, first), count, transposed)
        for first in range(0, 1 << len(words), count)
    )
    touched = [c >> 2 for c in (*rows, 4, 8)]
    rounds = 1 << len(independent(touched)) - len(independent(w & BANKS - 1 for w in touched))
    columns = (*rows, *words[:bits], *([0] * (2 - bits)), *threads[LANE_BITS:])
    return TiledSide(accesses, columns, rounds << len(words) + len(threads) - LANE_BITS)


def linear_sides(side: tuple[Sequence[int], Sequence[int]], element: int, swizzle: Swizzle) -> Iterator[TiledSide]:
    """Yield every access plan of a side for a byte swizzle; `side` contains the byte columns of thread and value."""
    threads, values = ([swizzle.of(c) for c in part] for part in side)
    yield _plain(threads, values, element)
    for transposed in (False, True):
        found = _matrices(threads, values, element, transposed)
        if found is not None:
            yield found


def best_sides(
    writer: tuple[tuple[int, ...], tuple[int, ...]],
    reader: tuple[tuple[int, ...], tuple[int, ...]],
    element: int,
    bits: int,
) -> tuple[Swizzle, TiledSide, TiledSide]:
    """Choose the byte swizzle and the two sides with the fewest wavefronts; among equals, with the fewest instructions.

    Args:
        writer, reader: byte columns of thread and value. element: bytes per value. bits: number of address bits of the
            tile.
    """
    for_both, _, _ = best_swizzle(bits, element, writer, reader)
    candidates = [Swizzle(0, 4, 3), for_both, *(Swizzle(b, 4, 3) for b in (1, 2, 3) if b + 7 <= bits)]
    ways = []
    for number, swizzle in enumerate(candidates):
        ours, theirs = (
            min(linear_sides(side, element, swizzle), key=lambda x: (x.wavefronts, len(x.accesses)))
            for side in (writer, reader)
        )
        cost = (ours.wavefronts + theirs.wavefronts, len(ours.accesses) + len(theirs.accesses), number)
        ways.append((cost, swizzle, ours, theirs))
    return min(ways, key=lambda way: way[0])[1:]


def counted_side(modes: tuple[tuple[int, int], ...], values: Array, element: int) -> TiledSide:
    """Plan a side with a nonlinear layout, with one value per access.

    Args:
        modes: (extent, stride in bytes) of the thread. values: byte offset of each value. element: bytes per value.
    """
    lanes = np.zeros(1, np.int64)
    for extent, stride in modes:
        lanes = (lanes + np.arange(extent)[:, None] * stride).reshape(-1)
    accesses = tuple(ThreadAccess(v, 1, offset) for v, offset in enumerate(values.tolist()))
    padded = np.pad(lanes, (0, -len(lanes) % 32), mode="edge").reshape(-1, 32)
    every = (padded[None] + values.astype(np.int64)[:, None, None]).reshape(-1, 32)
    return TiledSide(accesses, None, counted_wavefronts(every, element), modes)
