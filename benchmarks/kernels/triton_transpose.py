"""Triton's transposition of matrices, tiles of 64 x 64 through `tl.trans`: the peer of benchmarks/relayout.py."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

TILE = 64


@triton.jit  # type: ignore[misc,unused-ignore]
def _transpose(source, destination, rows, columns, size: tl.constexpr):  # type: ignore[no-untyped-def]
    batch = tl.program_id(2).to(tl.int64) * rows * columns
    row = tl.program_id(0).to(tl.int64) * size + tl.arange(0, size)
    column = tl.program_id(1).to(tl.int64) * size + tl.arange(0, size)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    tile = tl.load(source + batch + row[:, None] * columns + column[None, :], inside)
    tl.store(destination + batch + column[:, None] * rows + row[None, :], tl.trans(tile), tl.trans(inside))


def transpose(x: Any, y: Any, rows: int, columns: int) -> None:
    """y = x, where x is the transposed view of contiguous matrices of `rows` x `columns`."""
    batches = x.numel() // (rows * columns)
    grid = triton.cdiv(rows, TILE), triton.cdiv(columns, TILE), batches
    _transpose[grid](x, y, rows, columns, TILE)
