"""The swizzle that find_smem_layout returns against every swizzle there is, counted bank by bank."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import cute_py as cute
from cute_py import ComposedLayout, Int, Layout, Swizzle
from cute_py.copies.shared_layout import counted_wavefronts, find_smem_layout, linear_wavefronts
from cute_py.errors import CuteError, InvalidValueError, LayoutError
from cute_py.layout.analysis import bank_conflicts
from cute_py.layout.offsets import offsets
from tests.shares import one_in

BITS = {"uint8": 8, "float16": 16, "float32": 32, "float64": 64}


def wavefronts(layout: Layout | ComposedLayout, access: Layout, dtype: str) -> int:
    """Counted: each thread takes as many values as are contiguous and aligned for all."""
    width = BITS[dtype] // 8
    table = np.asarray(offsets(layout))[offsets(access)] * width
    table = table.reshape(table.shape[0], -1)
    per = 1
    while per * 2 <= table.shape[1] and 2 * per * width <= 16:
        groups = table.reshape(len(table), -1, 2 * per)
        if (np.diff(groups, axis=2) != width).any() or (groups[:, :, 0] % (2 * per * width)).any():
            break
        per *= 2
    starts = table.reshape(len(table), -1, per)[:, :, 0]
    return sum(
        counted_wavefronts(starts[begin : begin + 32, at][None], per * width)
        for begin in range(0, len(starts), 32)
        for at in range(starts.shape[1])
    )


def access_map(dice: random.Random, bits: int) -> Layout:
    """A thread-value layout that takes each element of 2**bits once, its bits in any order."""
    steps = [1 << k for k in range(bits)]
    dice.shuffle(steps)
    values = dice.randint(0, min(3, bits - 5))
    if dice.random() < 0.5:
        steps.sort(key=lambda step: step >= 1 << values)  # contiguous values
    own, threads = steps[:values], steps[values:]
    shape = ((2,) * len(threads), (2,) * values) if values else ((2,) * len(threads), 1)
    return Layout(shape, (tuple(threads), tuple(own) if values else 0))


@pytest.mark.parametrize("seed", one_in(4, range(24)))
def test_no_swizzle_has_fewer_wavefronts(seed: int) -> None:
    dice = random.Random(seed)
    dtype, bits = dice.choice(list(BITS)), dice.randint(6, 8)
    writer, reader = access_map(dice, bits), access_map(dice, bits)
    found = find_smem_layout(writer, reader, dtype)
    have = wavefronts(found, writer, dtype) + wavefronts(found, reader, dtype)
    plain = Layout(1 << bits)
    best, smallest = wavefronts(plain, writer, dtype) + wavefronts(plain, reader, dtype), 0
    for count, base, shift in itertools.product(range(1, 5), range(bits), range(-bits, bits)):
        if abs(shift) < count or base + count + abs(shift) > bits:
            continue
        tried = ComposedLayout(Swizzle(count, base, shift), Int(0), plain)
        total = wavefronts(tried, writer, dtype) + wavefronts(tried, reader, dtype)
        if total < best or (total == best and count < smallest):
            best, smallest = total, count
    assert have == best
    assert (found.outer.bits if isinstance(found, ComposedLayout) else 0) == smallest


def test_the_column_of_a_tile_of_floats() -> None:
    rows, columns = Layout((32, 32), (1, 32)), Layout((32, 32), (32, 1))
    found = find_smem_layout(rows, columns, "float32")
    assert wavefronts(found, rows, "float32") == 32
    assert wavefronts(found, columns, "float32") == 32


def test_counts_agree_with_bank_conflicts() -> None:
    dice = random.Random(5)
    for _ in range(40):
        threads = np.array([dice.randrange(512) for _ in range(32)])
        for dtype in ("uint8", "float16", "float32"):
            width = BITS[dtype] // 8
            shape, stride = (32,), (dice.randrange(1, 70),)
            layout = Layout(shape, stride)
            want = bank_conflicts(layout, dtype).total
            assert counted_wavefronts(np.asarray(offsets(layout))[None] * width, width) == want
        assert counted_wavefronts(threads[None] * 4, 4) == max(
            len({int(t) for t in threads if t % 32 == bank}) for bank in range(32)
        )


@pytest.mark.parametrize(
    ("writer", "reader", "dtype", "error"),
    [
        (Layout((32, 3)), Layout((32, 3)), "float32", LayoutError),
        (Layout((32, 2)), Layout((32, 2)), "float4_e2m1fn", InvalidValueError),
        (Layout((2**20, 2)), Layout((2**20, 2)), "float32", InvalidValueError),
        (Layout(32), Layout((4, 4, 2)), "float32", CuteError),
    ],
)
def test_refused(writer: Layout, reader: Layout, dtype: str, error: type[CuteError]) -> None:
    with pytest.raises(error):
        cute.find_smem_layout(writer, reader, dtype)


@pytest.mark.parametrize("threads", [8, 16, 32])
def test_rows_of_16_bytes_stay_whole_with_fewer_threads_than_a_warp(threads: int) -> None:
    """One access of 8 threads, 16 bytes each, is one request: splitting it into words is not cheaper."""
    access = cute.parse(f"(_{threads},_8):(_64,_1)")
    found = cute.find_smem_layout(access, access, "float16")
    assert isinstance(found, cute.ComposedLayout)
    assert (str(found.layout_a), cute.bank_conflicts(found, "float16", access=access).ways) == ("Sw<3,3,3>", 1)
    assert linear_wavefronts((128, 256, 512), (2, 4, 8), 2, Swizzle(3, 4, 3)) == (1, 16)
    assert linear_wavefronts((128, 256, 512), (2, 4, 8), 2, Swizzle(0, 4, 3)) == (8, 16)
