"""The walk of a tile: which coordinates a box takes, and where each of its rows lies.

Mode i >= 1 takes ceil(box_i / step_i) coordinates, c_i + k * step_i, mode 1 fastest. Without interleave mode 0 lies
inside a row and its element stride has no effect. With interleave mode 0 counts channel slices and is the fastest of
the modes that count rows, mode R-2 gives one slice whatever its box says, and the other modes are as before.
gather4 and scatter4 name four rows in place of a box.

Where the rows of an instruction lie in global memory, and how much of each lies inside the tensor.

`Rows` is what the walks produce and what the transfer consumes: one entry for each row of each of n instructions,
rows in the order in which they lie in shared memory.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cute_py.tma.emulator.geometry import Geometry


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of n instructions, R rows each."""

    address: NDArray[np.int64]
    """(n, R) bytes: where byte 0 of the row would be; meaningless where `inside` is false."""
    inside: NDArray[np.bool_]
    """(n, R): no coordinate but the innermost is outside the tensor."""
    first: NDArray[np.int64]
    """(n,) bytes: the first byte of a row that is inside the tensor."""
    last: NDArray[np.int64]
    """(n,) bytes: one past the last byte of a row that is inside the tensor; `first` if there is none."""

    @property
    def whole(self) -> bool:
        """Nothing of any row is outside the tensor (given that `last - first` is the row)."""
        return bool(self.inside.all())


def inner_range(geometry: Geometry, inner: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The part of a row that lies inside the tensor's innermost mode.

    Args:
        inner: (n,) innermost coordinates.
    Returns:
        (n,) first and last byte, relative to the row; the whole slice with interleave.
    """
    if geometry.interleaved:
        return np.zeros_like(inner), np.full_like(inner, geometry.row_bytes)
    start = inner * geometry.bits // 8
    first = np.minimum(np.maximum(-start, 0), geometry.row_bytes)
    last = np.minimum(geometry.inner_bytes - start, geometry.row_bytes)
    return first, np.maximum(first, last)


def inner_start(geometry: Geometry, inner: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) bytes from the tensor's start to byte 0 of a row at the innermost coordinate, other modes apart."""
    if geometry.interleaved:
        return inner * geometry.slice_bytes
    return inner * geometry.bits // 8


def sixteen_byte_rule(geometry: Geometry, last: NDArray[np.int64]) -> NDArray[np.int64]:
    """How far a store writes a row: up to the next 16 bytes, never past the box.

    Source: measured on NVIDIA H200, driver 580.159.04: bytes = min(ceil(valid bytes / 16) x 16, inner bytes).
    """
    return np.minimum(-(-last // 16) * 16, geometry.row_bytes)


def row_modes(geometry: Geometry) -> range:
    """The modes that count rows, fastest first.

    Mode R-2 of an interleaved tensor is among them, with one coordinate.
    """
    return range(0 if geometry.interleaved else 1, geometry.rank)


@functools.lru_cache(maxsize=256)
def _row_axes(geometry: Geometry) -> list[tuple[int, NDArray[np.int64]]]:
    """(mode, distance of each of its coordinates from the first), fastest mode first."""
    return [(m, np.arange(geometry.counts[m], dtype=np.int64) * geometry.steps[m]) for m in row_modes(geometry)]


def tile_rows(geometry: Geometry, coords: NDArray[np.int64]) -> Rows:
    """The rows of n boxes.

    Args:
        coords: (n, rank), innermost mode first.
    Source:
        measured on NVIDIA H200, driver 580.159.04.
    """
    n = len(coords)
    if geometry.interleaved:
        address = np.full((n, 1), geometry.address, np.int64)
    else:
        address = (inner_start(geometry, coords[:, 0]) + geometry.address)[:, None]
    inside = None
    for mode, along in _row_axes(geometry):
        place = coords[:, mode, None] + along
        fits = (place >= 0) & (place < geometry.dims[mode])
        place *= geometry.strides[mode]
        address = (place[:, :, None] + address[:, None, :]).reshape(n, -1)
        inside = fits if inside is None else (fits[:, :, None] & inside[:, None, :]).reshape(n, -1)
    if inside is None:
        inside = np.ones((n, 1), np.bool_)
    first, last = inner_range(geometry, coords[:, 0])
    return Rows(address, inside, first, last)


def four_rows(geometry: Geometry, coords: NDArray[np.int64]) -> Rows:
    """The rows of n gather4 or scatter4 instructions.

    Args:
        coords: (n, 5): the innermost coordinate, then four row coordinates.
    Source:
        PTX ISA 9.0, .tile::scatter4 and .tile::gather4 modes; not measured.
    """
    place = coords[:, 1:]
    inside = (place >= 0) & (place < geometry.dims[1])
    address = inner_start(geometry, coords[:, :1]) + place * geometry.strides[1] + geometry.address
    first, last = inner_range(geometry, coords[:, 0])
    return Rows(address, inside, first, last)


def boxes_inside(geometry: Geometry, coords: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(n,): the box lies inside the tensor in every mode, so that every row is whole.

    Args:
        coords: (n, rank).
    """
    return np.asarray(((coords >= 0) & (coords < box_room(geometry))).all(axis=1))


@functools.lru_cache(maxsize=256)
def box_room(geometry: Geometry) -> NDArray[np.int64]:
    """(rank,): how many coordinates of each mode a box inside the tensor can start at; 0 or less if it is too large."""
    reach = [(count - 1) * step for count, step in zip(geometry.counts, geometry.steps, strict=True)]
    if not geometry.interleaved:
        reach[0] = geometry.row_bytes * 8 // geometry.bits - 1
    return np.asarray(geometry.dims, np.int64) - np.asarray(reach, np.int64)


def row_coordinates(geometry: Geometry, coord: NDArray[np.int64]) -> NDArray[np.int64]:
    """(R, rank) tensor coordinates of byte 0 of each row of one box, or of one gather4 or scatter4.

    Args:
        coord: (rank,), or (5,) for the four-row modes.
    """
    if geometry.mode in ("tile::gather4", "tile::scatter4"):
        return np.stack([np.broadcast_to(coord[:1], 4), coord[1:]], axis=1)
    table = np.broadcast_to(coord, (1, geometry.rank))
    for mode in row_modes(geometry):
        step = np.zeros((geometry.counts[mode], 1, geometry.rank), np.int64)
        step[:, 0, mode] = np.arange(geometry.counts[mode]) * geometry.steps[mode]
        table = (table[None, :, :] + step).reshape(-1, geometry.rank)
    return table
