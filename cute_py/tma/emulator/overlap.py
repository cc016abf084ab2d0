"""Do the stores of a copy write bytes that its loads read?

Loads and stores of a ring run side by side, so such bytes have no known value. Two tensors may lie in one array, even
row by row between each other: where their memories meet, every row is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from cute_py.errors import InvalidValueError
from cute_py.tma.emulator.box import sixteen_byte_rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cute_py.tma.emulator.engine import Batch
    from cute_py.tma.emulator.memory import GlobalMemory

    Spans = tuple[NDArray[np.int64], NDArray[np.int64]]
    """First and one past the last host address of stretches of bytes."""


def require_apart(loads: Batch, stores: Batch) -> None:
    """Refuse loads and stores that share bytes of global memory.

    Raises:
        InvalidValueError: they do; the text gives the first such byte of the stores.
    """
    if not _memories_meet(loads.memory, stores.memory):
        return
    written = [_merged(*spans) for spans in _spans(stores, writing=True)]
    if not written:
        return
    starts, ends = _merged(*(np.concatenate(side) for side in zip(*written, strict=True)))
    for first, last in _spans(loads, writing=False):
        # The last stretch that starts before the end of the row: no other can reach further, since none overlap.
        place = np.searchsorted(starts, last, side="left") - 1
        bad = np.flatnonzero((place >= 0) & (ends[np.maximum(place, 0)] > first))
        if len(bad):
            index = int(bad[0])
            shared = max(int(first[index]), int(starts[place[index]]))
            raise InvalidValueError(
                "source and destination overlap; a copy reads tiles while others are written",
                {"first shared byte of a tile": _name(loads.memory, shared)},
            )


def _memories_meet(a: GlobalMemory, b: GlobalMemory) -> bool:
    """Whether any two arrays of the memories share host memory; that is rare, and found without a look at any tile."""

    def bounds(memory: GlobalMemory) -> list[tuple[int, int]]:
        return [(int(r.array.ctypes.data), int(r.array.ctypes.data) + len(r.array)) for r in memory.ranges]

    ours = bounds(a)
    return any(low < end and start < high for low, high in bounds(b) for start, end in ours)


def _spans(batch: Batch, *, writing: bool) -> Iterator[Spans]:
    """The bytes of global memory that instructions touch, row by row, some instructions at a time."""
    ranges = batch.memory.ranges
    shift = np.asarray([int(r.array.ctypes.data) - r.address for r in ranges], np.int64)
    end = np.asarray([int(r.array.ctypes.data) + len(r.array) for r in ranges], np.int64)
    for start in range(0, len(batch.coords), batch.limit):
        rows = batch.walk(slice(start, min(start + batch.limit, len(batch.coords))))
        ends = sixteen_byte_rule(batch.geometry, rows.last) if writing else rows.last
        ends = np.where(rows.last > rows.first, ends, 0)
        touched = rows.inside & (ends > rows.first)[:, None]
        first = (rows.address + rows.first[:, None])[touched]
        if not len(first):
            continue
        where = batch.memory.index_of(first)
        place, size = first + shift[where], np.broadcast_to((ends - rows.first)[:, None], rows.inside.shape)[touched]
        yield place, np.minimum(place + size, end[where])  # what a store adds behind a row ends with its range


def _merged(first: NDArray[np.int64], last: NDArray[np.int64]) -> Spans:
    """The same bytes as stretches in order, none of which touch."""
    order = np.argsort(first, kind="stable")
    first, last = first[order], np.maximum.accumulate(last[order])
    opens = np.concatenate(([True], first[1:] > last[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return first[opens], last[closes]


def _name(memory: GlobalMemory, place: int) -> str:
    """Range and offset of a host address."""
    for entry in memory.ranges:
        offset = place - int(entry.array.ctypes.data)
        if 0 <= offset < len(entry.array):
            return f"{entry.name} + {offset}"
    return f"{place:#x}"
