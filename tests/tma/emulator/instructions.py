"""Random legal instructions for property tests: a request, coordinates, offsets, and memories that hold the tensor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapTiled
from tests.tma.emulator.slow_model import SPAN, WIDTH

BASE = 0x7F00_0000_0000
FLOATS = (6, 7, 8, 9, 10, 11, 12)


@dataclass(frozen=True)
class Instruction:
    request: TensorMapTiled | TensorMapIm2col
    coords: tuple[int, ...]
    offsets: tuple[int, ...]
    gmem: NDArray[np.uint8]
    smem: NDArray[np.uint8]
    offset: int


def tiled(request: Any) -> bool:
    return isinstance(request, TensorMapTiled)


def _memory(request: Any, seed: int, slack: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    rng = np.random.default_rng(seed)
    piece = (WIDTH[request.data_type], 16, 32)[request.interleave]
    extent = request.global_dim[0] * piece + sum(
        (d - 1) * s for d, s in zip(request.global_dim[1:], request.global_strides, strict=True)
    )
    gmem = rng.integers(0, 256, request.global_address - BASE + extent + slack, np.uint8)
    if request.interleave:
        window = 32 * (math.prod(request.box_dim) if tiled(request) else request.pixels_per_column)
    else:
        window = 512 * (math.prod(request.box_dim[1:]) if tiled(request) else request.pixels_per_column)
    return gmem, rng.integers(0, 256, 2048 + window, np.uint8)


def _strides(draw: Any, row: int, dims: list[int], step: int) -> list[int]:
    strides, size = [], row
    for count in dims[1:]:
        size = -(-size // step) * step + draw(st.sampled_from([0, 0, step, 2 * step]))
        strides.append(size)
        size *= count
    return strides


@st.composite
def tiles(draw: Any, *, store: bool = False, interleave: bool = False, types: Any = None) -> Instruction:
    """A tile instruction. For stores no coordinate is negative."""
    data_type = draw(st.sampled_from(types or range(13)))
    width, kind = WIDTH[data_type], draw(st.sampled_from((1, 2))) if interleave else 0
    rank = draw(st.integers(3 if interleave else 1, 5))
    unit = (16, 16, 32)[kind]
    swizzle = {0: draw(st.sampled_from((0, 1, 2, 3))), 1: 0, 2: 1}[kind]
    piece = (width, 16, 32)[kind]
    box = [16 // width * draw(st.integers(1, (min(SPAN[swizzle], 128) or 64) // 16))]
    if interleave:
        box = [16 // width * draw(st.integers(1, 2))]
    box += [draw(st.integers(1, 4)) for _ in range(rank - 1)]
    dims = [draw(st.integers(1, 3 if interleave else 100 // width))] + [draw(st.integers(1, 5)) for _ in box[1:]]
    steps = [draw(st.sampled_from((1, 1, 2, 3))) for _ in box]
    request = TensorMapTiled(
        data_type,
        BASE + unit * draw(st.integers(0, 4)),
        dims,
        _strides(draw, dims[0] * piece, dims, unit),
        box,
        steps,
        kind,
        swizzle,
        0,
        draw(st.integers(0, int(data_type in FLOATS))),
    )
    low = 0 if store else -4
    inner = draw(st.integers(low, 5)) * (1 if interleave else 16 // width)
    coords = (inner, *(draw(st.integers(low, 6)) for _ in box[1:]))
    gmem, smem = _memory(request, draw(st.integers(0, 2**32 - 1)), 64)
    return Instruction(request, coords, (), gmem, smem, 128 * draw(st.integers(0, 9)))


@st.composite
def columns(draw: Any, *, store: bool = False, interleave: bool = False) -> Instruction:
    """An im2col instruction whose base lies in the bounding box."""
    data_type = draw(st.sampled_from(range(13)))
    width, kind = WIDTH[data_type], draw(st.sampled_from((1, 2))) if interleave else 0
    rank, unit = draw(st.integers(3, 5)), (16, 16, 32)[kind]
    swizzle = {0: draw(st.sampled_from((0, 1, 2, 3))), 1: 0, 2: 1}[kind]
    spatial = range(rank - 2) if interleave else range(1, rank - 1)
    dims = [draw(st.integers(1, 5)) for _ in range(rank)]
    lower, upper, coords = [], [], [draw(st.integers(0 if store else -1, 5)) for _ in range(rank)]
    if not interleave:
        dims[0] = draw(st.integers(1, 60 // width))
        coords[0] = draw(st.integers(0 if store else -2, 4)) * (16 // width)
    for mode in spatial:
        low = draw(st.integers(0, dims[mode] - 1)) if store else draw(st.integers(-3, 3))
        high = draw(st.integers(low, dims[mode] - 1)) if store else draw(st.integers(low, low + 5))
        lower.append(low)
        upper.append(high - (dims[mode] - 1))
        coords[mode] = draw(st.integers(low, high))
    request = TensorMapIm2col(
        data_type,
        BASE + unit * draw(st.integers(0, 4)),
        dims,
        _strides(draw, dims[0] * (width, 16, 32)[kind], dims, unit),
        lower,
        upper,
        16 // width * draw(st.integers(1, (min(SPAN[swizzle], 128) or 64) // 16)),
        draw(st.integers(1, 12)),
        [draw(st.sampled_from((1, 1, 2, 3))) for _ in range(rank)],
        kind,
        swizzle,
        0,
        draw(st.integers(0, int(data_type in FLOATS))),
    )
    offsets = () if store else tuple(draw(st.integers(0, 5)) for _ in spatial)
    gmem, smem = _memory(request, draw(st.integers(0, 2**32 - 1)), 64)
    return Instruction(request, tuple(coords), offsets, gmem, smem, 128 * draw(st.integers(0, 9)))
