"""Many instructions at once leave what one after the other leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import InvalidValueError
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapTiled
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.memory import SharedMemory
from tests.shares import one_in
from tests.tma.emulator.instructions import BASE, Instruction, tiles

ENGINE = Emulator()


@given(tiles(), st.data())
def test_loads(case: Instruction, data: Any) -> None:
    rank, n = case.request.rank, data.draw(st.integers(1, 7))
    step = [data.draw(st.integers(-1, 2)) for _ in range(rank)]
    unit = 16 // max(1, case.request.element_bits // 8)
    jitter = [[data.draw(st.integers(0, 1)) for _ in range(rank)] for _ in range(n)]
    coords = [[c + i * s + j for c, s, j in zip(case.coords, step, jit, strict=True)] for i, jit in enumerate(jitter)]
    coords = [[c[0] // unit * unit, *c[1:]] for c in coords]
    gap = data.draw(st.sampled_from([0, 128, 1024, 5120]))  # 0: all into one window, the last one stays
    offsets = [gap * i for i in range(n)]
    many, single = np.full(65536, 0xCD, np.uint8), np.full(65536, 0xCD, np.uint8)
    ENGINE.load_many(encode(case.request), case.gmem, coords, many, smem_offsets=offsets, gmem_base=BASE)
    for coord, offset in zip(coords, offsets, strict=True):
        ENGINE.load(encode(case.request), case.gmem, coord, single, smem_offset=offset, gmem_base=BASE)
    assert np.array_equal(many, single)


@pytest.mark.parametrize("swizzle", [0, 1, 2, 3])
@pytest.mark.parametrize("order", ["rows of tiles", "columns of tiles", "random"])
@pytest.mark.parametrize(("columns", "rows"), [(256, 64), (232, 57)])
@pytest.mark.parametrize("gap", one_in(3, [1024, 1280, 128 * 13]))
def test_whole_tensors(swizzle: int, order: str, columns: int, rows: int, gap: int) -> None:
    """Every tile of a tensor, whole or clipped, in any order and in windows of any distance."""
    box = ((16, 16, 32, 64)[swizzle], 8)
    pitch = (columns * 2 + 15) // 16 * 16
    request = TensorMapTiled(9, BASE, (columns, rows), (pitch,), box, swizzle=swizzle)
    source = np.random.default_rng(3).integers(0, 256, pitch * rows, np.uint8)
    coords = [(x, y) for y in range(0, rows, box[1]) for x in range(0, columns, box[0])]
    if order == "columns of tiles":
        coords.sort()
    elif order == "random":
        coords = [coords[i] for i in np.random.default_rng(4).permutation(len(coords))]
    offsets = np.arange(len(coords)) * gap
    smem = SharedMemory(gap * len(coords), base=256)
    single = SharedMemory(gap * len(coords), base=256)
    ENGINE.load_many(encode(request), source, coords, smem, smem_offsets=offsets, gmem_base=BASE)
    for coord, offset in zip(coords, offsets.tolist(), strict=True):
        ENGINE.load(encode(request), source, coord, single, smem_offset=offset, gmem_base=BASE)
    assert np.array_equal(smem.array, single.array)
    copied, one_by_one = np.zeros_like(source), np.zeros_like(source)
    ENGINE.store_many(encode(request), copied, coords, smem, smem_offsets=offsets, gmem_base=BASE)
    for coord, offset in zip(coords, offsets.tolist(), strict=True):
        ENGINE.store(encode(request), one_by_one, coord, smem, smem_offset=offset, gmem_base=BASE)
    assert np.array_equal(copied, one_by_one)
    rows_of = copied.reshape(rows, pitch)[:, : columns * 2]
    assert np.array_equal(rows_of, source.reshape(rows, pitch)[:, : columns * 2])


@pytest.mark.parametrize("depth", [1, 3, 64])
def test_copy_many_goes_through_a_ring(depth: int) -> None:
    request = encode(TensorMapTiled(7, BASE, (96, 40), (384,), (32, 8), swizzle=3))
    source, target = np.random.default_rng(5).integers(0, 256, 384 * 40, np.uint8), np.zeros(384 * 40, np.uint8)
    coords = [(x, y) for y in range(0, 40, 8) for x in range(0, 96, 32)]
    smem = np.zeros(1024 * depth, np.uint8)
    windows = np.arange(depth) * 1024
    nbytes = ENGINE.copy_many(
        request, source, coords, request, target, coords, smem,
        smem_offsets=windows, source_base=BASE, destination_base=BASE,
    )  # fmt: skip
    assert (nbytes, nbytes.evidence) == (1024, "measured")
    assert np.array_equal(source, target)
    with pytest.raises(InvalidValueError, match="15 loads, 14 stores"):
        ENGINE.copy_many(request, source, coords, request, target, coords[1:], smem, smem_offsets=windows)


def test_im2col_many() -> None:
    request = encode(TensorMapIm2col(6, BASE, (64, 9, 8, 5), (128, 1152, 9216), (-1, -1), (-1, -1), 64, 32, swizzle=3))
    source = np.random.default_rng(6).integers(0, 256, 9216 * 5, np.uint8)
    coords = [(0, x, y, n) for n in range(5) for y in (-1, 0, 6) for x in (-1, 3, 7)]
    many, single = np.zeros(4096 * 45, np.uint8), np.zeros(4096 * 45, np.uint8)
    offsets = np.arange(45) * 4096
    ENGINE.load_many(request, source, coords, many, smem_offsets=offsets, im2col_offsets=(1, 2), gmem_base=BASE)
    for coord, offset in zip(coords, offsets.tolist(), strict=True):
        ENGINE.load(request, source, coord, single, smem_offset=offset, im2col_offsets=(1, 2), gmem_base=BASE)
    assert np.array_equal(many, single)


def test_none_at_all() -> None:
    request = encode(TensorMapTiled(7, BASE, (96, 40), (384,), (32, 8)))
    smem = np.full(1024, 1, np.uint8)
    empty = np.empty((0, 2), np.int64)
    ENGINE.load_many(request, np.zeros(15360, np.uint8), empty, smem, smem_offsets=[], gmem_base=BASE)
    assert (smem == 1).all()


def test_rows_that_share_bytes() -> None:
    """A stride smaller than the row: stores go row after row, reductions count every row."""
    request = encode(TensorMapTiled(2, BASE, (8, 3), (16,), (8, 3)))
    memory = np.zeros(64, np.uint8)
    ENGINE.reduce("add", request, memory, (0, 0), np.ones(24, np.uint32).view(np.uint8), gmem_base=BASE)
    assert memory.view(np.uint32).tolist() == [1] * 4 + [2] * 8 + [1] * 4
    rows = np.repeat(np.arange(1, 4, dtype=np.uint32), 8)
    ENGINE.store(request, memory, (0, 0), rows.view(np.uint8), gmem_base=BASE)
    assert memory.view(np.uint32).tolist() == [1] * 4 + [2] * 4 + [3] * 8
