"""Shadow memory in numpy: a record of the last accesses to each granule of bytes.

Memory is divided into granules, which are not larger than the smallest access so far. A granule keeps the key of its
last write, and the keys of its last reads in a few slots. A key has 63 bits:

    62       careful: an asynchronous agent, a warp of another CTA than the granule's, or an mbarrier in this granule
    38..61   time of the agent
    25..37   cluster, counted over all waves of the launch
    14..24   column of the agent in its cluster (see `clocks`)
    1..13    index of the instruction; 8191 represents all higher indices
    0        strong: an atomic operation, or an access that can synchronise threads

Key 0 marks a granule without any access. Keys sort by time, so one comparison with the lowest time of a CTA's clocks
can show that many accesses are in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from cute_py.machine.threads import Array

CAREFUL: Final = 1 << 62
TIME: Final = 38
CLUSTER: Final = 25
COLUMN: Final = 14
SITE: Final = 1
TIME_BITS: Final = (1 << 24) - 1
TIMES: Final = TIME_BITS << TIME
"""Bits of a key that hold its time."""
CLUSTER_BITS: Final = (1 << 13) - 1
COLUMN_BITS: Final = (1 << 11) - 1
SITE_BITS: Final = (1 << 13) - 1
AGENT: Final = CLUSTER_BITS << CLUSTER | COLUMN_BITS << COLUMN
"""Bits of a key that hold its agent."""

MAX_SHADOW: Final = 1 << 26
"""Maximum number of keys of one array; a larger array is not judged."""

MAX_SLOTS: Final = 1 << 23
"""Total number of keys of reads that shared memory keeps."""


@dataclass(slots=True)
class Shadow:
    """The keys of one array of bytes.

    Attributes:
        shift: a granule has 1 << shift bytes. writes: keys of the last writes, (granules,). reads: keys of the last
            reads, (slots, granules); in this order, the memory of unused slots is never touched. slots: number of
            slots; if it is large enough, each warp has its own slot. writers, readers: lanes of the accesses in
            `writes` and `reads` (see `lanes`).
    """

    shift: int
    writes: Array
    reads: Array
    slots: int
    writers: Array
    readers: Array

    @staticmethod
    def of(nbytes: int, shift: int, slots: int) -> Shadow:
        """Return the shadow of an array without accesses."""
        count = (nbytes >> shift) + 1
        writes, reads = np.zeros(count, np.int64), np.zeros((slots, count), np.int64)
        return Shadow(shift, writes, reads, slots, np.zeros(count, np.uint8), np.zeros((slots, count), np.uint8))

    def refine(self, shift: int) -> None:
        """Divide each granule into granules of 1 << shift bytes, which inherit its keys."""
        parts = 1 << self.shift - shift
        self.writes = np.repeat(self.writes, parts)
        self.writers = np.repeat(self.writers, parts)
        self.reads, self.readers = (np.repeat(one, parts, axis=1) for one in (self.reads, self.readers))
        self.shift = shift

    def granules(self, offsets: Array, nbytes: int) -> tuple[Array, int]:
        """Return the granules (n * k,) of n accesses, and the number k of granules of each access; the granules of one
        access are adjacent.
        """
        first = offsets >> self.shift
        if nbytes <= 1 << self.shift:
            return first, 1
        count = nbytes >> self.shift
        return (first[:, None] + np.arange(count)).reshape(-1), count


def distinct(keys: Array) -> Array:
    """Return the sorted distinct keys of (n,) or (n, slots) keys; it is fast if equal keys are adjacent.

    >>> distinct(np.array([7, 7, 7, 3, 3, 7])).tolist()
    [3, 7]
    """
    flat = keys.T.reshape(-1)
    starts = np.flatnonzero(flat[1:] != flat[:-1])
    if not len(starts):
        return flat[:1]
    return np.unique(flat[np.append(starts, len(flat) - 1)])
