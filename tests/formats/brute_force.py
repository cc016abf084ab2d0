"""The index of a scale in each order, by the formulas of the programs that define them: integers, loops, reshapes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Grid = NDArray[np.int64]


def ceil(a: int, b: int) -> int:
    return -(-a // b)


def _pad(rows: int, blocks: int, tile_rows: int, tile_blocks: int) -> Grid:
    """Numbers of the padded grid, row-major."""
    padded = ceil(rows, tile_rows) * tile_rows, ceil(blocks, tile_blocks) * tile_blocks
    return np.arange(padded[0] * padded[1]).reshape(padded)


def _placed(numbers: Grid, memory: Grid, rows: int, blocks: int) -> Grid:
    """memory lists the grid's numbers in the order of memory; the index of each of the first rows and blocks."""
    place = np.empty(numbers.size, np.int64)
    place[memory.reshape(-1)] = np.arange(numbers.size)
    return place[numbers][:rows, :blocks]


def linear(rows: int, blocks: int) -> Grid:
    return np.array([[m * blocks + kb for kb in range(blocks)] for m in range(rows)])


def mn_major(rows: int, blocks: int) -> Grid:
    return linear(blocks, rows).T


def swizzle_32_4_4(rows: int, blocks: int) -> Grid:
    m, kb = np.arange(rows)[:, None], np.arange(blocks)
    return m // 128 * 512 * ceil(blocks, 4) + kb // 4 * 512 + m % 32 * 16 + m % 128 // 32 * 4 + kb % 4


def swizzle_8x4(rows: int, blocks: int) -> Grid:
    m, kb = np.arange(rows)[:, None], np.arange(blocks)
    return (m // 8 * ceil(blocks, 4) + kb // 4) * 32 + m % 8 * 4 + kb % 4


def triton_blackwell(rows: int, blocks: int) -> Grid:
    """Padded to 128 x 8, then (tiles of rows, tiles of 4 scales, 32, 4, 4)."""
    numbers = _pad(rows, blocks, 128, 8)
    down, across = numbers.shape
    memory = numbers.reshape(down // 128, 4, 32, across // 4, 4).transpose(0, 3, 2, 1, 4)
    return _placed(numbers, memory, rows, blocks)


def triton_hopper(rows: int, blocks: int, warps: int) -> Grid:
    numbers = _pad(rows, blocks, 32 * warps, 2)
    down, across = numbers.shape
    memory = numbers.reshape(down // (32 * warps), 2, warps, 2, 8, across // 2, 2).transpose(0, 2, 5, 1, 4, 6, 3)
    return _placed(numbers, memory, rows, blocks)


def rocm_32_8(rows: int, blocks: int) -> Grid:
    numbers = _pad(rows, blocks, 32, 8)
    down, across = numbers.shape
    memory = numbers.reshape(down // 32, 2, 16, across // 8, 2, 4).transpose(0, 3, 5, 2, 4, 1)
    return _placed(numbers, memory, rows, blocks)


def deepgemm_sm90(rows: int, blocks: int) -> Grid:
    return np.arange(blocks) * (ceil(rows, 4) * 4) + np.arange(rows)[:, None]


def deepgemm_sm100(rows: int, blocks: int) -> Grid:
    m, kb = np.arange(rows)[:, None], np.arange(blocks)
    return (kb // 4 * (ceil(rows, 4) * 4) + m) * 4 + kb % 4


def vllm_v_4x4(rows: int, blocks: int) -> Grid:
    """Tokens in groups of four, each group column by column."""
    numbers = _pad(rows, blocks, 4, 1)
    memory = numbers.reshape(-1, 4, blocks).transpose(0, 2, 1)
    return _placed(numbers, memory, rows, blocks)


def ragged(bounds: tuple[int, ...], blocks: int) -> Grid:
    """Each expert in 32_4_4 by itself, from tile bounds[b] / 128 + b on."""
    parts = []
    for expert, (first, last) in enumerate(pairwise(bounds)):
        start = (first // 128 + expert) * ceil(blocks, 4) * 512
        parts.append(swizzle_32_4_4(last - first, blocks) + start)
    return np.concatenate(parts)


ORDERS = {
    "linear": linear,
    "mn_major": mn_major,
    "32_4_4": swizzle_32_4_4,
    "8x4": swizzle_8x4,
    "triton_blackwell": triton_blackwell,
    "rocm_32_8": rocm_32_8,
    "deepgemm_sm90": deepgemm_sm90,
    "deepgemm_sm100": deepgemm_sm100,
    "vllm_v_4x4": vllm_v_4x4,
}
