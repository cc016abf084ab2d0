"""Registers of a block from one thread-value layout to another through shared memory.

Every thread stores its values where they belong in a tile, all wait, and every thread loads its own. Where thread,
value and offset are linear over F2 the tile may be behind a swizzle, and a side may use stmatrix or ldmatrix, if its
words are parts of 8x8 matrices whose rows are 16 contiguous bytes; of these ways, that with the fewest wavefronts is
taken. Other layouts keep the tile's elements in order.

The address of an access is  base + (part of the thread ^ part of the values), in bytes; + where it is not linear.
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
    """One instruction of every thread.

    first: number of its first value. values: how many. offset: bytes that they add to the thread's address. matrices:
    1, 2 or 4 of ldmatrix or stmatrix, 0 of ld or st. transposed: with .trans.
    """

    first: int
    values: int
    offset: int
    matrices: int = 0
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class TiledSide:
    """How one side meets the tile. columns: bytes that each bit of the thread adds to the address by XOR; None where it
    is not linear, and modes has (extent, stride in bytes) of the thread."""

    accesses: tuple[ThreadAccess, ...]
    columns: tuple[int, ...] | None
    wavefronts: int
    modes: tuple[tuple[int, int], ...] = ()


def _plain(threads: Sequence[int], values: Sequence[int], element: int) -> TiledSide:
    """ld and st, each as wide as its first values are contiguous and aligned."""
    rounds, width = linear_wavefronts(threads, values, element, Swizzle(0, 4, 3))
    together = width // element
    accesses = tuple(
        ThreadAccess(first, together, combined(values, first)) for first in range(0, 1 << len(values), together)
    )
    return TiledSide(accesses, tuple(threads), rounds)


def _matrices(threads: Sequence[int], values: Sequence[int], element: int, transposed: bool) -> TiledSide | None:
    """ldmatrix and stmatrix, if a word of each thread is its part of a matrix.

    Bits 0 and 1 of a lane walk words along a row, and bits 2 to 4 rows; transposed, the halves of a word and bits 0 and
    1 walk rows, and bits 2 to 4 the halves of a row.
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
    """Every way to move a side's values, of byte columns of thread and value, behind a swizzle of bytes."""
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
    """The swizzle on bytes and the two sides with the fewest wavefronts; of equals, the fewest instructions.

    Args:
        writer, reader: byte columns of thread and value. element: bytes of a value. bits: of an address in the tile.
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
    """The side of a layout that is not linear, one value an access.

    Args:
        modes: (extent, stride in bytes) of the thread. values: bytes of each value. element: bytes of a value.
    """
    lanes = np.zeros(1, np.int64)
    for extent, stride in modes:
        lanes = (lanes + np.arange(extent)[:, None] * stride).reshape(-1)
    accesses = tuple(ThreadAccess(v, 1, offset) for v, offset in enumerate(values.tolist()))
    padded = np.pad(lanes, (0, -len(lanes) % 32), mode="edge").reshape(-1, 32)
    every = (padded[None] + values.astype(np.int64)[:, None, None]).reshape(-1, 32)
    return TiledSide(accesses, None, counted_wavefronts(every, element), modes)
