"""Atoms of plain copies, by direction, tile and element type: the tile row by row in shared memory."""

from __future__ import annotations

import math
from typing import Any

import cute_py as cute
from cute_py import Int, Layout
from cute_py.dtypes import as_dtype

tma = cute.tma
SPANS = {0: 0, 1: 32, 2: 64, 3: 128, 4: 128}
SWIZZLES = {1: cute.Swizzle(1, 4, 3), 2: cute.Swizzle(2, 4, 3), 3: cute.Swizzle(3, 4, 3), 4: cute.Swizzle(2, 5, 2)}


def rows(sizes: tuple[int, ...]) -> Layout:
    """A row-major tensor of run-time sizes."""
    return Layout(sizes, (*(math.prod(sizes[i + 1 :]) for i in range(len(sizes) - 1)), Int(1)))


def shared_rows(tile: tuple[int, ...], dtype: str, swizzle: int = 0) -> Any:
    """A tile, the last mode contiguous; rows longer than the span of their swizzle are cut, the pieces behind each
    other."""
    bits, span = as_dtype(dtype).bits, SPANS[swizzle]
    row = math.gcd(tile[-1], span * 8 // bits) if span and tile[-1] * bits > 8 * span else tile[-1]
    pitches = [math.prod(tile[i + 1 : -1]) * row for i in range(len(tile) - 1)]
    block = math.prod(tile[:-1]) * row
    last, step = (tile[-1], 1) if row == tile[-1] else ((row, tile[-1] // row), (1, block))
    plain = Layout(cute.static((*tile[:-1], last)), cute.static((*pitches, step)))
    if not swizzle:
        return plain
    return cute.ComposedLayout(SWIZZLES[swizzle], cute.smem_ptr_flag(bits), plain)


def tile_atom(
    direction: str,
    tile: tuple[int, ...],
    dtype: str,
    *,
    swizzle: int = 0,
    multicast: int = 1,
    reduce_kind: str = "add",
    sizes: tuple[int, ...] | None = None,
    op: str = "",
    **options: Any,
) -> Any:
    """The atom of a copy of a tile, out of a tensor four times as large in each mode, or of `sizes`."""
    names = {"load": "LOAD_MULTICAST" if multicast > 1 else "LOAD", "store": "STORE", "reduce": "REDUCE_"}
    name = op or f"SM90_TMA_{names[direction]}{reduce_kind.upper() if direction == 'reduce' else ''}"
    x = cute.make_tensor(cute.make_gmem_ptr(4096, dtype), rows(sizes or tuple(4 * n for n in tile)))
    smem = shared_rows(tile, dtype, swizzle)
    return tma.make_tma_copy(name, x, smem, cute.static(tile), multicast, check=False, **options)


def window_operation(offsets: tuple[int, ...] = (), cache_mode: str = "cg") -> Any:
    """atom.tma_load of 64 pixels by 64 channels of images, im2col."""
    images = Layout((64, 16, 16, 2), (Int(1), 64, 1024, 16384))
    tensor = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), images)
    descriptor = tma.tma_descriptor_im2col(tensor, (-1, -1), (-1, -1), 64, 64)
    smem = cute.make_layout((Int(64), Int(64)), cute.LayoutRight)
    barrier = tma.Mbarrier(1)
    bound = tma.make_exec_tma(tma.non_exec_tiled_tma_load(descriptor, smem), barrier, cache_mode)
    return tma.tma_load(bound, cute.make_smem_ptr(0, "float16"), (0, 0, 0, 0), im2col_offsets=offsets)


def window_store() -> Any:
    """A store of 64 pixels by 64 channels of images, im2col."""
    images = Layout(((16, 16, 2), 64), ((64, 1024, 16384), Int(1)))
    gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), images)
    smem = cute.make_layout((Int(64), Int(64)), cute.LayoutRight)
    return tma.make_im2col_tma_copy("SM90_TMA_STORE_IM2COL", gmem, smem, cute.static((64, 64)))
