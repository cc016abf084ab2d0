"""Where the rows of an instruction lie in global memory, and how much of each lies inside the tensor.

`Rows` is what the walks produce and what the transfer consumes: one entry for each row of each of n instructions,
rows in the order in which they lie in shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cute_py.tma.run.emulator_geometry import Geometry


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
