"""The source rows that a tile reads to complete the last sectors of its destination rows.

A destination row is a run of elements, counted in mixed radix by the modes of the run. The tile reads the elements
below some limit: its own, and those of the next tile that are in the sector where its own elements end. Modes of the
run that are inside a source row count as 0, because a row is read whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np


class RunMode(NamedTuple):
    """A mode of a destination run that source rows count.

    mode: its index. weight: the number of elements of the run from one coordinate to the next. extent: the number of
    coordinates that the tile reads in part or completely.
    """

    mode: int
    weight: int
    extent: int


class BorrowedRows(NamedTuple):
    """The rows of a source that start below the limit of a destination run.

    modes: the modes of the run that rows count, the largest weight first; a weight is at least the number of elements
    that all later modes span. limit: the number of elements of a destination row that the tile reads.

    >>> rows = BorrowedRows((RunMode(1, 5, 3), RunMode(0, 1, 5)), 11)
    >>> rows.total  # 5 of each of two coordinates of mode 1, and the first one of the third
    11
    >>> rows.reach([4, 100])
    200
    """

    modes: tuple[RunMode, ...]
    limit: int

    @property
    def total(self) -> int:
        """Number of rows, as combinations of coordinates of the modes."""
        found, left = 0, self.limit
        for index, (_, weight, extent) in enumerate(self.modes):
            full = min(extent, left // weight)
            found += full * math.prod([later.extent for later in self.modes[index + 1 :]])
            if full == extent:
                return found
            left -= full * weight
        return found + (left > 0)

    def reach(self, pitches: Sequence[int]) -> int:
        """Return the largest offset of a row, with `pitches[mode]` bytes from one coordinate to the next."""
        farthest = start = 0
        left = self.limit
        for index, (mode, weight, extent) in enumerate(self.modes):
            full = min(extent, left // weight)
            if full:
                later = sum((one.extent - 1) * pitches[one.mode] for one in self.modes[index + 1 :])
                farthest = max(farthest, start + (full - 1) * pitches[mode] + later)
            if full == extent:
                return farthest
            start += full * pitches[mode]
            left -= full * weight
        return max(farthest, start) if left > 0 else farthest

    def contains(self, digits: Mapping[int, NDArray[np.int64]]) -> NDArray[np.bool_]:
        """Whether rows with these coordinates of the modes start below the limit."""
        return np.asarray(sum(digits[mode] * weight for mode, weight, _ in self.modes) < self.limit)
