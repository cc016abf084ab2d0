"""Detect writes that leave memory unchanged: a race of equal values changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cute_py.machine.threads import Array


class Same:
    """The bytes that an instruction writes, and the bytes before the write."""

    __slots__ = ("array", "count", "nbytes", "offsets", "shift", "values")

    def __init__(self, array: Array, offsets: Array, nbytes: int, values: Array | None, count: int, shift: int) -> None:
        self.array, self.offsets, self.nbytes, self.values = array, offsets, nbytes, values
        self.count, self.shift = count, shift

    def _new(self, lanes: Array) -> Array | None:
        """(lanes, bytes of a granule) that are written."""
        if self.values is None:
            return None
        n = len(self.offsets)
        raw = np.ascontiguousarray(np.broadcast_to(self.values, (n, *np.shape(self.values)[1:])))
        rows = raw.reshape(n, -1).view(np.uint8).reshape(n * self.count, -1)
        found: Array = rows[lanes]
        return found

    def equal(self, lanes: Array) -> Array:
        """Flags of the granules whose bytes stay unchanged."""
        new = self._new(lanes)
        if new is None:
            return np.zeros(len(lanes), np.bool_)
        width = new.shape[1]
        first = self.offsets[lanes // self.count] + lanes % self.count * width
        found: Array = (self.array[first[:, None] + np.arange(width)] == new).all(axis=1)
        return found

    def all_equal(self, lanes: Array) -> bool:
        """Whether all these accesses write the same."""
        new = self._new(lanes)
        return new is not None and bool((new == new[0]).all())
