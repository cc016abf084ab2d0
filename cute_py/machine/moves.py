"""Instructions that move data between the lanes of a warp: shfl.sync, ldmatrix, stmatrix, movmatrix, on (warp, lane)
arrays.

A matrix of ldmatrix is 8 rows of 16 bytes. Lane l holds the elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4, or of
column l / 4 if the matrix is transposed. Lanes 8 i to 8 i + 7 provide the addresses of the rows of matrix i.
Source: PTX ISA, shfl.sync, ldmatrix, stmatrix, movmatrix; the results equal the results of an H200
(docs/measurements/atoms-h200.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from cute_py.atom.smem_descriptor import UNIT_BYTES
from cute_py.machine.operands import bytes_at, put_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

_LANES: Final = np.arange(32)


def shuffle(mode: str, value: Array, source: Array, control: Array) -> tuple[Array, Array]:
    """Run shfl.sync on (warp, lane) values; return the value that each lane receives, and whether its source lane was
    in range.

    Args:
        mode: up, down, bfly or idx. source: the source lane (idx), the distance (up, down) or the lane mask (bfly).
            control: clamp in bits 0-4, segments in bits 8-12.
    """
    clamp, segment = control & 31, control >> 8 & 31
    distance = source & 31
    lane = np.broadcast_to(_LANES, value.shape).astype(np.int64)
    high = (lane & segment) | (clamp & ~segment)
    low = lane & segment
    if mode == "up":
        from_lane = lane - distance
        inside = from_lane >= high
    elif mode == "down":
        from_lane = lane + distance
        inside = from_lane <= high
    elif mode == "bfly":
        from_lane = lane ^ distance
        inside = from_lane <= high
    else:
        from_lane = low | (distance & ~segment)
        inside = from_lane <= high
    chosen = np.where(inside, from_lane, lane)
    return np.take_along_axis(value, chosen & 31, axis=1), inside


def load_matrix(memory: Array, addresses: Array, matrices: int, transposed: bool) -> Array:
    """Run ldmatrix for one warp: addresses (32,) to words (32, matrices)."""
    rows = bytes_at(memory, addresses[: 8 * matrices].astype(np.int64), UNIT_BYTES, "a row of ldmatrix")
    return _fragments(rows.view(np.uint16).reshape(matrices, 8, 8), transposed)


def _fragments(elements: Array, transposed: bool) -> Array:
    """Convert 16-bit elements (matrix, row, column) to words (32, matrix)."""
    held = elements.swapaxes(1, 2) if transposed else elements
    words = np.ascontiguousarray(held).view(np.uint32)
    return words.reshape(len(elements), 32).T.copy()


def store_matrix(memory: Array, addresses: Array, words: Array, transposed: bool) -> None:
    """Run stmatrix for one warp: store words (32, matrices) as rows at addresses (32,)."""
    matrices = words.shape[1]
    elements = np.ascontiguousarray(words.T).view(np.uint16).reshape(matrices, 8, 8)
    elements = elements.swapaxes(1, 2) if transposed else elements
    rows = np.ascontiguousarray(elements).reshape(8 * matrices, 8).view(np.uint8)
    put_bytes(memory, addresses[: 8 * matrices].astype(np.int64), rows, "a row of stmatrix")


def transpose_matrix(words: Array) -> Array:
    """Run movmatrix for one warp: transpose an 8 x 8 matrix, given as words (32,)."""
    elements = np.ascontiguousarray(words).view(np.uint16).reshape(1, 8, 8)
    return _fragments(elements, True)[:, 0]
