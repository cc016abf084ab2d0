"""The inputs of a recorded instruction: its tensor map, its memories, its fill."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapTiled

BASE = 0x7F12_3400_0000
"""Address of the global buffer; the recorded ones were 4096-aligned too."""

_FLOATS = {6: np.float16, 7: np.float32, 8: np.float64, 9: ml_dtypes.bfloat16, 10: np.float32, 11: np.float32}


def pattern(n: int, seed: int) -> NDArray[np.uint8]:
    """The deterministic fill of the recordings (all arithmetic modulo 2**64)."""
    with np.errstate(over="ignore"):
        x = (np.arange(n, dtype=np.uint64) + np.uint64(seed * 1000003 % 2**64)) * np.uint64(0x9E3779B97F4A7C15)
        x ^= x >> np.uint64(29)
        x *= np.uint64(0xBF58476D1CE4E5B9)
    return ((x >> np.uint64(40)) & np.uint64(255)).astype(np.uint8)


def filled(row: dict[str, Any], n: int, seed: int) -> NDArray[np.uint8]:
    """Bytes of a buffer of a recorded instruction."""
    if row.get("fill") != "tame":
        return pattern(n, seed)
    values = pattern(2 * n, seed).view(np.int16).astype(np.float64) / 256
    kind: Any = _FLOATS.get(row["data_type"], np.float32)
    return np.ascontiguousarray(values.astype(kind)).view(np.uint8)[:n].copy()


def tensor_map(row: dict[str, Any]) -> TensorMapTiled | TensorMapIm2col:
    """The request of a recorded instruction, its address moved to `BASE`."""
    tail = (row["element_strides"], row["interleave"], row["swizzle"], row["l2_promotion"], row["oob_fill"])
    head = (row["data_type"], BASE + row["address"], row["dims"], row["strides"])
    if row["kind"] == "tiled":
        return TensorMapTiled(*head, row["box"], *tail)
    corners = (row["lower_corner"], row["upper_corner"])
    return TensorMapIm2col(*head, *corners, row["channels_per_pixel"], row["pixels_per_column"], *tail)
