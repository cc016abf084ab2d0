"""Find the rows of an instruction in global memory, and the part of each row that is inside the tensor.

**Tiles.** Mode i >= 1 has ceil(box_i / step_i) coordinates, c_i + k * step_i, mode 1 fastest. Without interleave, mode
0 runs along a row, and its element stride has no effect. With interleave, mode 0 counts channel slices and is the
fastest of the modes that count rows. Mode R-2 then has one slice for any box, and the other modes are the same
as without interleave. gather4 and scatter4 name four rows instead of a box.

**im2col.** The bounding box of spatial mode i is [lower_i, size_i - 1 + upper_i]. The base pixel starts at the
instruction's coordinates and steps along W by the element stride of W. Past the end of W, it returns to lower_W and
steps along H, then D. Past the last spatial mode, the image number grows by its element stride. The sampled pixel is
base + offsets. An element is filled if its pixel, image or channel is outside the tensor.

The im2col::w modes keep H and D: past the end of W the image number grows. After all pixels (w) or after every 32
pixels (w::128), `halo` pixels follow, which continue along W from the last pixel. `offset` moves all pixels.

The walk returns `Rows`, which the engine moves. `Rows` has one entry for each row of each of n instructions, in the
order of the rows in shared memory.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cute_py.tma.emulator.geometry import Geometry
from cute_py.tma.emulator.memory import Flags, Integers

if TYPE_CHECKING:
    import numpy as np
else:
    from cute_py.optional_packages import numpy as np


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of n instructions with R rows each."""

    address: Integers
    """(n, R) bytes: the address of byte 0 of the row; meaningless if `inside` is false."""
    inside: Flags
    """(n, R): whether all coordinates except the innermost are inside the tensor."""
    first: Integers
    """(n,) bytes: the first byte of a row that is inside the tensor."""
    last: Integers
    """(n,) bytes: the end (exclusive) of the bytes of a row inside the tensor; `first` if there are none."""


def walk_rows(geometry: Geometry, coords: Integers, offsets: Integers) -> Rows:
    """Find the rows of n instructions.

    Args:
        coords: (n, rank), innermost mode first. For gather4 and scatter4: (n, 5), the innermost coordinate and four row
            coordinates. For im2col: bases inside the bounding box.
        offsets: for im2col (n, rank - 2), W first; for the w modes (n, 2), wHalo and wOffset, equal for all
            instructions.
    Source:
        tile, im2col: measured on NVIDIA H200, driver 580.159.04.
        The others: PTX ISA 9.0, .tile::scatter4, .tile::gather4, im2col::w and im2col::w::128 modes; not measured.
        According to our reading of figures 18 and 19, halo pixels continue along W, not in the next image.
    """
    n = len(coords)
    start = coords[:, 0] * geometry.bits // 8
    address = (np.zeros_like(start) if geometry.interleaved else start)[:, None] + geometry.address
    inside = np.ones((n, 1), np.bool_)
    for mode, place in _places(geometry, coords, offsets):
        fits, along = (place >= 0) & (place < geometry.dims[mode]), place * geometry.strides[mode]
        if geometry.mode == "tile":
            address = (along[:, :, None] + address[:, None, :]).reshape(n, -1)
            inside = (fits[:, :, None] & inside[:, None, :]).reshape(n, -1)
        else:
            address, inside = address + along, inside & fits
    if geometry.interleaved:  # a slice is complete or outside
        return Rows(address, inside, np.zeros(n, np.int64), np.full(n, geometry.row_bytes))
    first = np.minimum(np.maximum(-start, 0), geometry.row_bytes)
    last = np.minimum(geometry.dims[0] * geometry.bits // 8 - start, geometry.row_bytes)
    return Rows(address, inside, first, np.maximum(first, last))


def row_coordinates(geometry: Geometry, coord: Integers, offsets: Integers) -> Integers:
    """Return the (R, rank) tensor coordinates of byte 0 of each row of one instruction. The arguments are (1, k)."""
    if geometry.mode == "tile":
        return coord + _tile_table(geometry)
    places = dict(_places(geometry, coord, offsets))
    return np.stack(np.broadcast_arrays(*(places.get(m, coord[:, :1])[0] for m in range(geometry.rank))), axis=1)


@functools.lru_cache(maxsize=256)
def _tile_table(geometry: Geometry) -> Integers:
    """Return the (R, rank) coordinates of the rows of a tile at the origin."""
    indices = np.indices(geometry.counts[::-1]).reshape(geometry.rank, -1)[::-1]  # the fastest mode is the last axis
    return np.asarray(indices.T * np.asarray(geometry.steps))


def _places(geometry: Geometry, coords: Integers, offsets: Integers) -> list[tuple[int, Integers]]:
    """List (mode, coordinates along it) for the modes that count rows.

    For a tile, the coordinates of a mode are (n, count), fastest mode first, and the rows are all combinations.
    Otherwise the coordinates are (n, R), one per row.
    """
    if geometry.mode == "tile":
        return [(mode, coords[:, mode, None] + along) for mode, along in _row_axes(geometry)]
    if geometry.four_rows:
        return [(1, coords[:, 1:])]
    bases, image = (_wide_bases if geometry.wide else _bases)(geometry, coords, offsets)
    places = [*zip(geometry.spatial, bases, strict=True), (geometry.rank - 1, image)]
    if geometry.interleaved:  # the channel slice
        places.append((geometry.rank - 2, coords[:, -2, None]))
    return places


def sixteen_byte_rule(geometry: Geometry, last: Integers) -> Integers:
    """Count the bytes of a row that a store writes: rounded up to a multiple of 16, but never past the box.

    Source: measured on NVIDIA H200, driver 580.159.04: bytes = min(ceil(valid bytes / 16) x 16, inner bytes).
    """
    return np.minimum(-(-last // 16) * 16, geometry.row_bytes)


def row_modes(geometry: Geometry) -> range:
    """Return the modes of a tile that count rows, fastest first.

    For an interleaved tensor, mode R-2 is one of them, with one coordinate.
    """
    return range(0 if geometry.interleaved else 1, geometry.rank)


@functools.lru_cache(maxsize=256)
def _row_axes(geometry: Geometry) -> list[tuple[int, Integers]]:
    """List (mode, offset of each of its coordinates from the first), fastest mode first."""
    return [(m, np.arange(geometry.counts[m], dtype=np.int64) * geometry.steps[m]) for m in row_modes(geometry)]


def _step(geometry: Geometry, index: int, start: Integers, count: Integers) -> tuple[Integers, Integers]:
    """Step `count` times from `start` along the spatial mode with this index.

    Return the coordinate, and how often it wrapped around at the end of the bounding box.
    """
    mode = geometry.spatial[index]
    step, low, high = geometry.steps[mode], *bounding_box(geometry, index)
    ahead = (high - start) // step + 1  # coordinates that remain in the first pass
    again = max((high - low) // step + 1, 1)  # coordinates of each later pass
    beyond = count - ahead
    wrapped = beyond >= 0
    place = np.where(wrapped, low + beyond % again * step, start + count * step)
    return place, np.where(wrapped, 1 + beyond // again, 0)


def bounding_box(geometry: Geometry, index: int) -> tuple[int, int]:
    """Return the first and the last coordinate of the im2col bounding box in the spatial mode with this index."""
    return geometry.lower[index], geometry.dims[geometry.spatial[index]] - 1 + geometry.upper[index]


def _bases(geometry: Geometry, coords: Integers, offsets: Integers) -> tuple[list[Integers], Integers]:
    """Return the pixels that im2col samples, (n, R) for each spatial mode, W first, and the (n, R) image numbers."""
    carry = np.broadcast_to(np.arange(geometry.rows, dtype=np.int64), (len(coords), geometry.rows))
    bases = []
    for index, mode in enumerate(geometry.spatial):
        place, carry = _step(geometry, index, coords[:, mode, None], carry)
        bases.append(place + offsets[:, index, None])
    return bases, coords[:, -1, None] + carry * geometry.steps[-1]


def _wide_bases(geometry: Geometry, coords: Integers, offsets: Integers) -> tuple[list[Integers], Integers]:
    """Return the pixels and image numbers of im2col::w and im2col::w::128, in the form of `_bases`."""
    halo, offset, group = int(offsets[0, 0]), int(offsets[0, 1]), geometry.group
    slot = np.arange(geometry.row_count(offsets[0]), dtype=np.int64)
    within = slot % (group + halo)
    pixel = slot // (group + halo) * group + np.minimum(within, group - 1)
    beyond = np.maximum(within - (group - 1), 0)  # halo pixels after the last of the group
    wide = geometry.spatial[0]
    place, carry = _step(geometry, 0, coords[:, wide, None], np.broadcast_to(pixel, (len(coords), len(slot))))
    place = place + beyond * geometry.steps[wide] + offset
    others = [np.broadcast_to(coords[:, mode, None], place.shape) for mode in geometry.spatial[1:]]
    return [place, *others], coords[:, -1, None] + carry
