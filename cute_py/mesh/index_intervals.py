"""The indices of one dimension that a device holds, as runs of consecutive indices, and intersections of two sets of
runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cute_py.copies.modes import CopyMode

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy

Column: TypeAlias = "NDArray[numpy.int64]"

LONGEST_PERIOD = 64
"""A pattern is searched in at most this many segments."""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Runs of consecutive indices. Each run has a first index, a length, the offset of its first index, and the step
    between offsets.

    For a part of a dimension, offsets are local indices, and steps are 1.
    """

    start: Column
    length: Column
    offset: Column
    step: Column

    @staticmethod
    def whole(size: int) -> Runs:
        """Return one run with all indices of a dimension."""
        return Runs.of(numpy.array([[0, size]]))

    @staticmethod
    def of(pieces: Column) -> Runs:
        """Make runs from rows (start, length) in local order; empty rows are omitted."""
        pieces = pieces[pieces[:, 1] > 0]
        length = pieces[:, 1]
        return Runs(pieces[:, 0], length, numpy.cumsum(length) - length, numpy.ones_like(length))

    @property
    def size(self) -> int:
        """Number of indices."""
        return int(self.length.sum())

    @property
    def first(self) -> tuple[int, int, int, int]:
        """The start, length, offset and step of the first run."""
        return int(self.start[0]), int(self.length[0]), int(self.offset[0]), int(self.step[0])

    def within(self, pieces: Column) -> Runs:
        """Return the runs at these local positions, which are given as rows (start, length): a part of this part."""
        if len(self.start) == 1:
            return Runs.of(pieces + numpy.array([self.start[0], 0]))
        inner = Runs.of(pieces)
        mine, _, low, length = _overlap(self.offset, self.length, inner.start, inner.length)
        return Runs.of(numpy.stack([self.start[mine] + low - self.offset[mine], length], axis=1))

    def through(self, offsets: Column) -> Runs:
        """Return runs with the same indices; local index i has the offset offsets[i]."""
        inside = numpy.arange(self.size) - numpy.repeat(numpy.cumsum(self.length) - self.length, self.length)
        return runs_of(self.indices(), offsets[numpy.repeat(self.offset, self.length) + inside])

    def holds(self, index: int) -> bool:
        """Whether a run contains the index."""
        return bool(((self.start <= index) & (index < self.start + self.length)).any())

    def indices(self) -> Column:
        """Return all indices, in local order."""
        before = numpy.cumsum(self.length) - self.length
        return numpy.repeat(self.start - before, self.length) + numpy.arange(self.size)

    def scaled(self, stride: int) -> Runs:
        """Return runs with the same indices; local index i has the offset i * stride."""
        if stride == 1:
            return self
        return Runs(self.start, self.length, self.offset * stride, self.step * stride)


def runs_of(indices: Column, offsets: Column) -> Runs:
    """Combine indices and their offsets into runs; each run is as long as possible."""
    starts, steps, at = [], [], 0
    ahead, apart = numpy.diff(indices) == 1, numpy.diff(offsets)
    breaks = numpy.flatnonzero(~(ahead[1:] & ahead[:-1] & (apart[1:] == apart[:-1]))) + 1
    while at < len(indices):
        starts.append(at)
        steps.append(int(apart[at]) if at < len(apart) and ahead[at] else 1)
        if at >= len(ahead) or not ahead[at]:
            at += 1
            continue
        after = breaks[numpy.searchsorted(breaks, at + 1) :]
        at = int(after[0]) + 1 if len(after) else len(indices)
    begin = numpy.array(starts, numpy.int64)
    length = numpy.diff(numpy.append(begin, len(indices)))
    return Runs(indices[begin], length, offsets[begin], numpy.array(steps, numpy.int64))


def _overlap(a: Column, a_length: Column, b: Column, b_length: Column) -> tuple[Column, Column, Column, Column]:
    """Intersect two lists of intervals, each sorted and without overlap; return, for each overlap, the positions in
    both lists, the start and the length."""
    first = numpy.searchsorted(b + b_length, a, "right")
    count = numpy.maximum(numpy.searchsorted(b, a + a_length, "left") - first, 0)
    left = numpy.repeat(numpy.arange(len(a)), count)
    right = numpy.arange(len(left)) - numpy.repeat(numpy.cumsum(count) - count, count) + numpy.repeat(first, count)
    low = numpy.maximum(a[left], b[right])
    return left, right, low, numpy.minimum(a[left] + a_length[left], b[right] + b_length[right]) - low


class Segment(NamedTuple):
    """Indices that both sides hold: their first offset on each side, and the modes that run through them."""

    source: int
    destination: int
    modes: tuple[CopyMode, ...]


def shared(source: Runs, destination: Runs) -> int:
    """Return the number of indices that both sides hold."""
    if len(source.start) == 1 == len(destination.start):
        (a, n, *_), (b, m, *_) = source.first, destination.first
        return max(0, min(a + n, b + m) - max(a, b))
    one, other = _by_index(source), _by_index(destination)
    return int(_overlap(one.start, one.length, other.start, other.length)[3].sum())


def segments(source: Runs, destination: Runs) -> list[Segment]:
    """Return the indices that both sides hold, in few segments: equal runs at equal distances become one segment with
    two modes."""
    if len(source.start) == 1 == len(destination.start):  # the common case, in plain numbers, takes a tenth of the time
        return _both(source.first, destination.first)
    one, other = _by_index(source), _by_index(destination)
    left, right, low, length = _overlap(one.start, one.length, other.start, other.length)
    rows = numpy.stack(
        [
            length,
            one.step[left],
            other.step[right],
            one.offset[left] + (low - one.start[left]) * one.step[left],
            other.offset[right] + (low - other.start[right]) * other.step[right],
        ],
        axis=1,
    )
    return _grouped(rows)


def _both(source: tuple[int, int, int, int], destination: tuple[int, int, int, int]) -> list[Segment]:
    """Intersect two runs (start, length, offset, step)."""
    (a, n, p, u), (b, m, q, v) = source, destination
    low, high = max(a, b), min(a + n, b + m)
    modes = (CopyMode(high - low, u, v),) if high - low > 1 else ()
    return [Segment(p + (low - a) * u, q + (low - b) * v, modes)] if high > low else []


def _by_index(runs: Runs) -> Runs:
    if (runs.start[1:] > runs.start[:-1]).all():
        return runs
    order = numpy.argsort(runs.start)
    return Runs(runs.start[order], runs.length[order], runs.offset[order], runs.step[order])


def _grouped(rows: Column) -> list[Segment]:
    found, at = [], 0
    while at < len(rows):
        period, count = _repetition(rows[at:])
        for k in range(at, at + period):
            found.append(_segment(rows[k], count, rows[k + period] - rows[k] if count > 1 else rows[k]))
        at += period * count
    return found


def _repetition(rows: Column) -> tuple[int, int]:
    """Return (p, n): the first p rows repeat n times at a constant distance on both sides. The choice of p covers the
    most rows."""
    best = (1, 1)
    for period in range(1, min(LONGEST_PERIOD, len(rows) // 2) + 1):
        apart = rows[period] - rows[0]
        if apart[:3].any() or (rows[period : 2 * period] - rows[:period] != apart).any():
            continue
        same = (rows[period:] - rows[:-period] == apart).all(axis=1)
        count = 1 + (len(same) if same.all() else int(numpy.argmin(same))) // period
        if period * count > best[0] * best[1]:
            best = (period, count)
    return best


def _segment(row: Column, count: int, apart: Column) -> Segment:
    length, source_step, destination_step, source, destination = row.tolist()
    modes = [CopyMode(length, source_step, destination_step), CopyMode(count, int(apart[3]), int(apart[4]))]
    return Segment(source, destination, tuple(mode for mode in modes if mode.size > 1))
