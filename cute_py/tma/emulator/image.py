"""How rows lie in shared memory: pitch, packing and swizzle as one table of positions.

A row is cut into units, the largest pieces that stay together; `positions` says where each unit of each row starts,
in bytes from the start of the window. The table depends on the address of the window only through its place in the
repeating pattern of the swizzle (`phase`), so a few tables serve a whole copy.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cute_py.tma.emulator.swizzle import swizzle_row, swizzled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cute_py.tma.emulator.geometry import Geometry, Packing


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """Positions of the units of all rows of one instruction."""

    unit: int
    """Bytes of a unit: a power of two, at most 16."""
    positions: NDArray[np.int64]
    """(rows * units a row,) bytes from the start of the window."""
    extent: int
    """Bytes from the start of the window to the end of the last unit."""
    identity: bool
    """Rows lie as they come: no gap, no swizzle."""
    units: NDArray[np.int64]
    """Positions in units, where the image has no gap."""
    order: NDArray[np.int64] | None
    """Where the image has no gap: index of the unit that lies at each place; None where it has gaps."""


def phase_of(address: int, swizzle: int) -> int:
    """Place of a shared-memory address in the repeating pattern of a swizzle, in bytes."""
    return address % swizzle_row(swizzle).repeat


@functools.lru_cache(maxsize=128)
def _image(rows: int, row_bytes: int, pitch: int, packing: Packing | None, swizzle: int, phase: int) -> Image:
    unit = 16
    pieces = [row_bytes, pitch]
    if packing is not None:
        pieces += [packing.packed, packing.spread]
    if swizzle_row(swizzle).flip:
        unit = 8
    while any(piece % unit for piece in pieces):
        unit //= 2
    along = np.arange(0, row_bytes, unit, dtype=np.int64)
    if packing is not None:
        along = along // packing.packed * packing.spread + along % packing.packed
    linear = (np.arange(rows, dtype=np.int64)[:, None] * pitch + along).reshape(-1)
    positions = swizzled(linear + phase, swizzle) - phase
    positions.setflags(write=False)
    extent = int(positions.max()) + unit if len(positions) else 0
    order = None
    if extent == rows * row_bytes and positions.min() >= 0:
        order = np.empty(len(positions), np.int64)
        order[positions // unit] = np.arange(len(positions))
        order.setflags(write=False)
    identity = order is not None and bool((positions == linear).all())
    return Image(unit, positions, extent, identity, positions // unit, order)


def image(geometry: Geometry, rows: int, address: int) -> Image:
    """The image of `rows` rows in a window that starts at the shared-memory address `address`.

    Args:
        rows: of the instruction, halo pixels counted in.
        address: bytes; a multiple of 128.
    """
    phase = phase_of(address, geometry.swizzle)
    return _image(rows, geometry.row_bytes, geometry.pitch, geometry.packing, geometry.swizzle, phase)
