"""Boxes inside the tensor as strided blocks: the fast way of a whole-tensor copy.

A box that lies inside the tensor is one strided block of global memory. Boxes whose coordinates step by a constant
(the tiles of a row of tiles) are one block with one more dimension, so a run of tiles is a single numpy copy.

Global memory is walked in the order of its addresses, which is far faster than tile by tile when the tiles lie side by
side; `block_order` then says which unit of that walk belongs at each place of the shared-memory images.
"""

from __future__ import annotations

import bisect
import functools
from typing import TYPE_CHECKING

import numpy as np

from cute_py.tma.run.emulator_box import box_room, boxes_inside, row_modes
from cute_py.tma.run.emulator_rows import inner_start
from cute_py.tma.run.emulator_transfer import block

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from cute_py.tma.run.emulator_geometry import Geometry
    from cute_py.tma.run.emulator_image import Image
    from cute_py.tma.run.memory import GlobalMemory, Range


@functools.lru_cache(maxsize=256)
def _mode_bytes(geometry: Geometry) -> list[tuple[int, int]]:
    """(count, bytes from one coordinate to the next) of the modes that count rows, slowest first; singles left out."""
    pairs = [(geometry.counts[m], geometry.steps[m] * geometry.strides[m]) for m in row_modes(geometry)]
    return [(count, stride) for count, stride in reversed(pairs) if count > 1]


def start_bytes(geometry: Geometry, coords: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) bytes from the tensor's start to the first byte of each box; also of differences of coordinates."""
    start = inner_start(geometry, coords[:, 0])
    return start + coords[:, 1:] @ _outer_strides(geometry)


@functools.lru_cache(maxsize=256)
def _outer_strides(geometry: Geometry) -> NDArray[np.int64]:
    return np.asarray(geometry.strides[1:], np.int64)


def rows_overlap(geometry: Geometry) -> bool:
    """Whether two rows of one box share bytes (a stride may be smaller than the row that it strides over)."""
    reach = geometry.row_bytes
    for count, stride in sorted(_mode_bytes(geometry), key=lambda pair: pair[1]):
        if stride < reach:
            return True
        reach += (count - 1) * stride
    return False


class Blocks:
    """Boxes that lie inside the tensor and in one range of memory.

    Args:
        low: (n,) bytes from the start of the range to the first byte of each box.
    """

    def __init__(self, geometry: Geometry, entry: Range, low: NDArray[np.int64]) -> None:
        self.entry, self._low, self._row_bytes = entry, low, geometry.row_bytes
        modes = _mode_bytes(geometry)
        self._counts = tuple(count for count, _ in modes)
        self._strides = tuple(stride for _, stride in modes)
        self._edges = [0]
        step = low[1:] - low[:-1]
        turns = np.flatnonzero(step[1:] != step[:-1]) + 2 if len(low) > 2 else step[:0]
        for turn in turns.tolist():  # the step to this box is a new one
            if turn - self._edges[-1] > 1:
                self._edges.append(turn)
        self._edges.append(len(low))

    def runs(self, start: int, stop: int, limit: int) -> Iterator[tuple[int, int]]:
        """Split [start, stop) into stretches whose boxes step by a constant, at most `limit` long."""
        place = bisect.bisect_right(self._edges, start)
        while start < stop:
            end = min(self._edges[place], stop)
            while start < end:
                yield start, min(start + limit, end)
                start = min(start + limit, end)
            place += 1

    def view(self, start: int, stop: int) -> NDArray[np.uint8]:
        """View of one stretch: (k, counts.., row_bytes), slowest mode first."""
        first = int(self._low[start])
        step = int(self._low[start + 1]) - first if stop - start > 1 else 0
        shape, strides = (stop - start, *self._counts, self._row_bytes), (step, *self._strides, 1)
        return block(self.entry.array, first, shape, strides)


@functools.lru_cache(maxsize=256)
def _reach(geometry: Geometry) -> int:
    """Bytes from the first to one past the last of a box."""
    return geometry.row_bytes + sum((count - 1) * stride for count, stride in _mode_bytes(geometry))


def _find_one(geometry: Geometry, memory: GlobalMemory, coord: list[int]) -> Blocks | None:
    """`find_blocks` for a single box, in plain integers: an array of one costs more than the arithmetic."""
    low = geometry.address
    for c, room, bits in zip(coord, *_single(geometry), strict=True):
        if not 0 <= c < room:
            return None
        low += c * bits // 8
    entry = memory.find(low)
    if entry is None or low + _reach(geometry) > entry.end:
        return None
    return Blocks(geometry, entry, np.array([low - entry.address]))


@functools.lru_cache(maxsize=256)
def _single(geometry: Geometry) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of each mode: how many coordinates a box inside the tensor can start at, and bits from one to the next."""
    room = box_room(geometry).tolist()
    inner = geometry.slice_bytes * 8 or geometry.bits
    return tuple(room), (inner, *(stride * 8 for stride in geometry.strides[1:]))


def find_blocks(
    geometry: Geometry, memory: GlobalMemory, coords: NDArray[np.int64]
) -> tuple[Blocks | None, NDArray[np.bool_]]:
    """The boxes that lie inside the tensor and in the range of memory of the first that does.

    Args:
        coords: (n, rank).
    Returns:
        these boxes (None if there are none), and (n,) which they are.
    """
    if len(coords) == 1:
        one = _find_one(geometry, memory, coords[0].tolist())
        return one, np.full(1, one is not None)
    inside = boxes_inside(geometry, coords)
    if not len(inside):
        return None, inside
    first = int(inside.argmax())
    if not inside[first]:
        return None, inside
    low = start_bytes(geometry, coords) + geometry.address
    entry = memory.find(int(low[first]))
    if entry is None:
        return None, np.zeros_like(inside)
    reach = _reach(geometry)
    held = inside & (low >= entry.address) & (low + reach <= entry.end)
    return (Blocks(geometry, entry, low[held] - entry.address) if held.any() else None), held


def address_order(view: NDArray[np.uint8]) -> tuple[int, ...] | None:
    """The axes of a block from the widest stride to the narrowest; None if they are so already."""
    if len(view) == 1:
        axes = (0, *sorted(range(1, view.ndim - 1), key=lambda axis: -abs(view.strides[axis])))
    else:
        axes = tuple(sorted(range(view.ndim - 1), key=lambda axis: -abs(view.strides[axis])))
    return None if axes == tuple(range(view.ndim - 1)) else (*axes, view.ndim - 1)


@functools.lru_cache(maxsize=4)
def block_order(
    shape: tuple[int, ...], axes: tuple[int, ...], image: Image
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How a block that was copied in the order of its addresses and the images of its k boxes permute each other.

    Args:
        shape: (k, counts.., row_bytes) of the block.
        axes: from `address_order`.
        image: one without gaps.
    Returns:
        (k, units) unit of the copy at each place of each image, and (k * units,) the way back.
    """
    units = (*shape[:-1], shape[-1] // image.unit)
    count = int(np.prod(units))
    copied = np.arange(count).reshape([units[axis] for axis in axes]).transpose(np.argsort(axes))
    there = np.ascontiguousarray(copied.reshape(shape[0], -1)[:, image.order])
    back = np.empty(count, np.int64)
    back[there.reshape(-1)] = np.arange(count)
    return there, back
