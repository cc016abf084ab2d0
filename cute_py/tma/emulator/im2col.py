"""The walk of im2col: a base that runs over the bounding box, and the pixel that is sampled at an offset from it.

The bounding box of spatial mode i is [lower_i, size_i - 1 + upper_i]. The base starts at the instruction's
coordinates, steps through W by its element stride, returns to lower_W past the end and steps H, then D; past the last
spatial mode the image number grows by its element stride. The sampled pixel is base + offsets; it is filled where it,
the image or the channel lies outside the tensor.

The im2col::w modes keep H and D: past the end of W the image number grows. After the pixels (w: all of them;
w::128: each 32) follow `halo` pixels that go on along W from the last one, and the whole is moved by `offset`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cute_py.tma.emulator.box import Rows, inner_range, inner_start

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cute_py.tma.emulator.geometry import Geometry

W128_GROUP = 32
"""Pixels of im2col::w::128 after which halo pixels follow. Source: PTX ISA 9.0, wHalo."""


def _ends(geometry: Geometry, index: int) -> tuple[int, int]:
    """First and last base coordinate of the bounding box in the spatial mode with this index."""
    mode = geometry.spatial[index]
    return geometry.lower[index], geometry.dims[mode] - 1 + geometry.upper[index]


def _step(
    start: NDArray[np.int64], count: NDArray[np.int64], low: int, high: int, step: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Coordinate after `count` steps from `start`, and how often it passed `high` and returned to `low`."""
    ahead = (high - start) // step + 1  # coordinates left in the first pass
    again = max((high - low) // step + 1, 1)  # coordinates of each later pass
    beyond = count - ahead
    wrapped = beyond >= 0
    place = np.where(wrapped, low + beyond % again * step, start + count * step)
    return place, np.where(wrapped, 1 + beyond // again, 0)


def _sampled(
    geometry: Geometry, coords: NDArray[np.int64], bases: list[NDArray[np.int64]], image: NDArray[np.int64]
) -> Rows:
    """Rows of the pixels at `bases` (W first) of image numbers `image`, all (n, R)."""
    n = len(coords)
    address = np.broadcast_to(np.int64(geometry.address), image.shape)
    if geometry.interleaved:
        channel = geometry.rank - 2
        place = coords[:, channel, None]
        inside = np.broadcast_to((place >= 0) & (place < geometry.dims[channel]), image.shape)
        address = address + place * geometry.strides[channel]
    else:
        address = address + inner_start(geometry, coords[:, 0])[:, None]
        inside = np.ones((n, 1), np.bool_)
    for mode, place in [*zip(geometry.spatial, bases, strict=True), (geometry.rank - 1, image)]:
        inside = inside & (place >= 0) & (place < geometry.dims[mode])
        address = address + place * geometry.strides[mode]
    first, last = inner_range(geometry, coords[:, 0])
    return Rows(address, inside, first, last)


def im2col_bases(geometry: Geometry, coords: NDArray[np.int64]) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Base coordinates (one (n, R) array for each spatial mode, W first) and image numbers (n, R)."""
    carry = np.broadcast_to(np.arange(geometry.rows, dtype=np.int64), (len(coords), geometry.rows))
    bases = []
    for index, mode in enumerate(geometry.spatial):
        low, high = _ends(geometry, index)
        place, carry = _step(coords[:, mode, None], carry, low, high, geometry.steps[mode])
        bases.append(place)
    return bases, coords[:, -1, None] + carry * geometry.steps[-1]


def im2col_rows(geometry: Geometry, coords: NDArray[np.int64], offsets: NDArray[np.int64]) -> Rows:
    """The rows of n im2col instructions.

    Args:
        coords: (n, rank), innermost mode first; bases inside the bounding box.
        offsets: (n, rank - 2), W first.
    Source:
        measured on NVIDIA H200, driver 580.159.04.
    """
    bases, image = im2col_bases(geometry, coords)
    return _sampled(geometry, coords, [b + offsets[:, i, None] for i, b in enumerate(bases)], image)


def row_count(geometry: Geometry, offsets: Sequence[int] | NDArray[np.int64] = ()) -> int:
    """Rows of one instruction in any mode, halo pixels counted in.

    Args:
        offsets: im2col offsets of the instruction; the first is wHalo in the w modes.
    """
    if not geometry.mode.startswith("im2col::w") or not len(offsets):
        return geometry.rows
    return wide_row_count(geometry, int(offsets[0]))


def wide_row_count(geometry: Geometry, halo: int) -> int:
    """Rows of an im2col::w or ::w::128 instruction, halo pixels counted in."""
    groups = geometry.rows // W128_GROUP if geometry.mode == "im2col::w::128" else 1
    return geometry.rows + groups * halo


def wide_bases(
    geometry: Geometry, coords: NDArray[np.int64], halo: int, offset: int
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Base coordinates and image numbers of an im2col::w walk, as `im2col_bases` gives them."""
    group = W128_GROUP if geometry.mode == "im2col::w::128" else geometry.rows
    slot = np.arange(wide_row_count(geometry, halo), dtype=np.int64)
    inside_group = slot % (group + halo)
    pixel = slot // (group + halo) * group + np.minimum(inside_group, group - 1)
    beyond = np.maximum(inside_group - (group - 1), 0)  # halo pixels after the last of the group
    wide = geometry.spatial[0]
    low, high = _ends(geometry, 0)
    start = coords[:, wide, None]
    count = np.broadcast_to(pixel, (len(coords), len(slot)))
    place, carry = _step(start, count, low, high, geometry.steps[wide])
    place = place + beyond * geometry.steps[wide] + offset
    others = [np.broadcast_to(coords[:, mode, None], place.shape) for mode in geometry.spatial[1:]]
    return [place, *others], coords[:, -1, None] + carry


def wide_rows(geometry: Geometry, coords: NDArray[np.int64], offsets: NDArray[np.int64]) -> Rows:
    """The rows of n im2col::w or im2col::w::128 instructions with the same halo and offset.

    Args:
        coords: (n, rank).
        offsets: (n, 2): wHalo and wOffset, the same in every row.
    Source:
        PTX ISA 9.0, im2col::w and im2col::w::128 modes; not measured. That halo pixels go on along W, and are not
        taken from the next image, is our reading of its figures 18 and 19.
    """
    bases, image = wide_bases(geometry, coords, int(offsets[0, 0]), int(offsets[0, 1]))
    return _sampled(geometry, coords, bases, image)
