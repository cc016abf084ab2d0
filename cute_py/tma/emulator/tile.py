"""One load of a tile that lies inside its tensor: what a `Batch` of one does, in a fifth of the time.

A batch holds n instructions in arrays. Of one instruction each array holds one number, and to check them takes sixty
microseconds, where the sixteen kilobytes of a tile are copied in five. Here the same conditions are tests of plain
integers. They are only those under which nothing is refused, filled or rounded: everything else goes to the batch,
which has the rules and their texts. A test compares the two.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cute_py.tma.emulator.engine import TransactionBytes, box_of
from cute_py.tma.emulator.geometry import Geometry, row_image, swizzle_pattern
from cute_py.tma.emulator.memory import GlobalMemory, Integers, Memory, SharedMemory, Window
from cute_py.tma.emulator.operands import SMEM_ALIGNMENT, unmeasured

_PLAIN: Final = 1 << 62
"""Addresses below this are added without a look at their sum."""


@dataclass(frozen=True, slots=True)
class _Tile:
    """What loads of one geometry have in common; modes innermost first, sizes in bytes."""

    address: int
    room: tuple[int, ...]
    """How many coordinates of each mode a box inside the tensor can start at."""
    steps: tuple[int, ...]
    """Bytes from one coordinate to the next."""
    grain: int
    """Elements: the innermost coordinate is a multiple of 16 bytes."""
    reach: int
    """From the first byte to one past the last."""
    unit: np.dtype[np.void]
    shape: tuple[int, ...]
    """Of the box in units, slowest mode first."""
    strides: tuple[int, ...]
    repeat: int
    """After so many bytes of shared memory the swizzle's pattern starts again."""
    extent: int
    orders: dict[int, Integers]
    """Place in that pattern -> the unit that lies at each place of the tile."""
    completed: TransactionBytes


@functools.lru_cache(maxsize=256)
def _tile(geometry: Geometry) -> _Tile | None:
    """The tile of a geometry; None where a load does more than copy whole rows of 16 bytes and more."""
    plain = geometry.mode == "tile" and not geometry.interleaved and not geometry.tf32 and geometry.packing is None
    if not plain or geometry.row_bytes % 16 or 128 % geometry.bits or unmeasured(geometry, "load"):
        return None
    box, repeat = box_of(geometry), max(swizzle_pattern(geometry.swizzle).repeat, SMEM_ALIGNMENT)
    images = {phase: row_image(geometry, geometry.rows, phase) for phase in range(0, repeat, SMEM_ALIGNMENT)}
    orders = {phase: image.order for phase, image in images.items() if image.order is not None}
    image = images[0]
    if len(orders) < len(images) or image.unit != 16:
        return None
    return _Tile(
        geometry.address,
        box.room,
        (geometry.bits // 8, *geometry.strides[1:]),
        128 // geometry.bits,
        box.reach,
        np.dtype(f"V{image.unit}"),
        (*box.counts, geometry.row_bytes // image.unit),
        (*box.strides, image.unit),
        repeat,
        image.extent,
        orders,
        TransactionBytes(geometry.transaction_bytes),
    )


def load_inside(
    geometry: Geometry, gmem: Memory, gmem_base: int, coords: Sequence[int], smem: Window, smem_offset: int
) -> TransactionBytes | None:
    """Load one tile that lies inside the tensor and both memories; None, and nothing done, if it may not."""
    tile = _tile(geometry)
    if tile is None or type(coords) not in (tuple, list) or len(coords) != len(tile.room):
        return None
    first = tile.address
    for c, room, step in zip(coords, tile.room, tile.steps, strict=True):
        if type(c) is not int or not 0 <= c < room:
            return None
        first += c * step
    if coords[0] % tile.grain or type(gmem_base) is not int or not 0 <= gmem_base < _PLAIN:
        return None
    source: Any = gmem
    target: Any = smem
    base = 0
    if type(gmem) is GlobalMemory:
        entry = gmem.find(first) if first >= 0 else None
        if entry is None:
            return None
        source, gmem_base = entry.array, entry.address
    if type(smem) is SharedMemory:
        target, base = smem.array, smem.base
    first -= gmem_base
    if not _is_bytes(source) or not 0 <= first <= len(source) - tile.reach or type(smem_offset) is not int:
        return None
    if not _is_bytes(target) or not target.flags.writeable or not 0 <= smem_offset <= len(target) - tile.extent:
        return None
    order = tile.orders.get((smem_offset + base) % tile.repeat)
    if order is None:
        return None
    units = np.ndarray(tile.shape, tile.unit, source, first, tile.strides).flatten()
    units.take(order, out=target[smem_offset : smem_offset + tile.extent].view(tile.unit), mode="clip")
    return tile.completed


def _is_bytes(array: object) -> bool:
    """A plain array of bytes, one after the other."""
    return type(array) is np.ndarray and array.dtype == np.uint8 and array.ndim == 1 and array.flags.c_contiguous
