"""Detect writes that leave memory unchanged: a race that writes equal values has no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cute_py.machine.threads import Array


class Same:
    """Compares the bytes that an instruction writes with the bytes before the write."""

    __slots__ = ("array", "count", "offsets", "values")

    def __init__(self, array: Array, offsets: Array, values: Array | None, count: int) -> None:
        self.array, self.offsets, self.values, self.count = array, offsets, values, count

    def _new(self) -> Array | None:
        """The written bytes, (granules, bytes of one granule); None if they are unknown."""
        if self.values is None:
            return None
        n = len(self.offsets)
        raw = np.ascontiguousarray(np.broadcast_to(self.values, (n, *np.shape(self.values)[1:])))
        found: Array = raw.reshape(n, -1).view(np.uint8).reshape(n * self.count, -1)
        return found

    def equal(self, lanes: Array) -> Array:
        """Flags of the granules whose bytes stay unchanged."""
        new = self._new()
        if new is None:
            return np.zeros(len(lanes), np.bool_)
        new = new[lanes]
        width = new.shape[1]
        first = self.offsets[lanes // self.count] + lanes % self.count * width
        found: Array = (self.array[first[:, None] + np.arange(width)] == new).all(axis=1)
        return found

    def different(self, groups: Array) -> Array:
        """Flags of the granules in groups that get different bytes from several accesses. groups: group of each
        granule, (granules,).
        """
        new = self._new()
        if new is None:
            return np.ones(len(groups), np.bool_)
        _, first, which = np.unique(groups, return_index=True, return_inverse=True)
        other = (new != new[first[which]]).any(axis=1)
        found: Array = np.bincount(which, other)[which] > 0
        return found
