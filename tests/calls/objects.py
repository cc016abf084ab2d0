"""Objects that the texts of calls name: arrays, memories, atoms, descriptors. Each is made anew by every call."""

from __future__ import annotations

from typing import Any

import numpy as np

import cute_py as cute
from cute_py import Int, Layout, tma, tmem

__all__ = [
    "array",
    "gmem_bytes",
    "gtensor",
    "load_atom",
    "nested",
    "request",
]


def nested(depth: int) -> Any:
    """A tuple in a tuple in a tuple ..."""
    tree: Any = 1
    for _ in range(depth):
        tree = (tree,)
    return tree


def array(shape: Any, dtype: str = "float32") -> Any:
    """0, 1, 2, ... in C order, as numpy or ml_dtypes holds them."""
    made = cute.dtypes.as_dtype(dtype).numpy
    return np.arange(int(np.prod(shape))).reshape(shape).astype(made)


def gmem_bytes(count: int) -> Any:
    return (np.arange(count) * 7 % 251).astype(np.uint8)


def gtensor(rows: int = 256, columns: int = 128, dtype: str = "float16") -> Any:
    """A row-major matrix in global memory."""
    return cute.make_tensor(cute.make_gmem_ptr(4096, dtype), Layout((rows, columns), (columns, Int(1))))


def load_atom(op: str = "SM90_TMA_LOAD", rows: int = 64, columns: int = 32, swizzle: str = "64B") -> Any:
    """An atom over `gtensor()`."""
    return tma.make_tma_copy(op, gtensor(), tma.make_smem_layout("K", swizzle, "float16", (rows, columns)))


def request(swizzle: int = 3) -> Any:
    return tma.TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=swizzle)
