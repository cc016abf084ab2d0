"""Shadow memory in numpy: the last accesses to each granule of bytes.

Memory is divided into granules, which are no greater than the smallest access so far. A granule keeps a key of its
last write, and keys of its last reads in a few slots. A key is 63 bits:

    62       careful: the agent is asynchronous, or a warp of another CTA than the granule's; or an mbarrier lies here
    38..61   time of the agent
    25..37   cluster, counted over all waves of the launch
    14..24   column of the agent in its cluster (see `clocks`)
    1..13    number of the instruction among those that touch memory
    0        strong: an atomic operation, or an access that others may synchronise by

0 is a granule that nothing has touched. Keys order by time: one comparison with the lowest time of a CTA's clocks
shows that all of many accesses are in order.
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
"""The bits of a key that say when."""
CLUSTER_BITS: Final = (1 << 13) - 1
COLUMN_BITS: Final = (1 << 11) - 1
SITE_BITS: Final = (1 << 13) - 1
AGENT: Final = CLUSTER_BITS << CLUSTER | COLUMN_BITS << COLUMN
"""The bits of a key that say whose it is."""

MAX_SHADOW: Final = 1 << 26
"""Keys of one array of memory; a greater one is not judged."""

MAX_SLOTS: Final = 1 << 23
"""Keys of reads that shared memory keeps in all."""


@dataclass(slots=True)
class Shadow:
    """The keys of one array of bytes.

    Attributes:
        shift: a granule has 1 << shift bytes. writes: (granules,). reads: (slots, granules), so that memory of slots
            that no warp uses is never touched. slots: warps that share none of them where there are enough.
            writers, readers: the lane of each of these accesses (see `lanes`).
    """

    shift: int
    writes: Array
    reads: Array
    slots: int
    writers: Array
    readers: Array

    @staticmethod
    def of(nbytes: int, shift: int, slots: int) -> Shadow:
        """The state of an array that nothing has touched."""
        count = (nbytes >> shift) + 1
        writes, reads = np.zeros(count, np.int64), np.zeros((slots, count), np.int64)
        return Shadow(shift, writes, reads, slots, np.zeros(count, np.uint8), np.zeros((slots, count), np.uint8))

    def refine(self, shift: int) -> None:
        """Divide the granules: each part has the keys of the whole."""
        parts = 1 << self.shift - shift
        self.writes = np.repeat(self.writes, parts)
        self.writers = np.repeat(self.writers, parts)
        self.reads, self.readers = (np.repeat(one, parts, axis=1) for one in (self.reads, self.readers))
        self.shift = shift

    def granules(self, offsets: Array, nbytes: int) -> tuple[Array, int]:
        """The granules of accesses, (n * k,), and k: those of one access follow each other."""
        first = offsets >> self.shift
        if nbytes <= 1 << self.shift:
            return first, 1
        count = nbytes >> self.shift
        return (first[:, None] + np.arange(count)).reshape(-1), count


def distinct(keys: Array) -> Array:
    """The different keys of a span, (n,) or (n, slots), rising; nearly always few, in long runs.

    >>> distinct(np.array([7, 7, 7, 3, 3, 7])).tolist()
    [3, 7]
    """
    flat = keys.T.reshape(-1)
    starts = np.flatnonzero(flat[1:] != flat[:-1])
    if not len(starts):
        return flat[:1]
    return np.unique(flat[np.append(starts, len(flat) - 1)])
