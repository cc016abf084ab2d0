"""Edges of the engine: reductions of bytes that are shared, the last coordinate, the largest mask, a fresh barrier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cute_py.errors import CuteError, InvalidValueError
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.mbarrier import BarrierView, Mbarrier, barrier_at
from cute_py.tma.emulator.memory import SharedMemory
from tests.each import each_of
from tests.tma.emulator.instructions import BASE

ENGINE = Emulator()
PLAIN = TensorMapTiled(2, BASE, (64, 16), (256,), (16, 4))

SHARED: dict[str, tuple[TensorMapTiled, list[tuple[int, ...]]]] = {
    "one box twice": (PLAIN, [(0, 0), (16, 4), (0, 0)]),
    "boxes that overlap": (PLAIN, [(0, 0), (8, 2), (16, 4)]),
    "boxes side by side": (PLAIN, [(0, 0), (16, 0), (0, 4), (48, 12)]),
    "a stride of 0": (replace(PLAIN, global_strides=(0,)), [(0, 0), (16, 4)]),
    "rows that overlap": (replace(PLAIN, global_strides=(32,)), [(0, 0), (16, 4), (32, 8)]),
    "one box": (PLAIN, [(16, 4)]),
}


@each_of("name", SHARED)
@each_of("op", ["add", "inc"])
def test_reductions_at_once_are_those_one_after_the_other(name: str, op: str) -> None:
    """Each element is counted by hand: every box adds 1 to each element that it covers, once for each time."""
    request, coords = SHARED[name]
    many, single = (np.zeros(4096, np.uint8) for _ in range(2))
    ones = np.full(64 * len(coords), 1 if op == "add" else 1000, np.uint32).view(np.uint8)
    offsets = [256 * i for i in range(len(coords))]
    ENGINE.store_many(encode(request), many, coords, ones, smem_offsets=offsets, gmem_base=BASE, op=op)
    for coord, offset in zip(coords, offsets, strict=True):
        ENGINE.reduce(op, encode(request), single, coord, ones, smem_offset=offset, gmem_base=BASE)
    want = np.zeros(1024, np.uint32)
    for x, y in coords:
        for row in range(y, min(y + 4, 16)):
            for column in range(x, min(x + 16, 64)):
                want[(row * request.global_strides[0] + 4 * column) // 4] += 1
    assert single.view(np.uint32).tolist() == want.tolist()
    assert many.view(np.uint32).tolist() == want.tolist()


def test_a_reduction_completes_no_barrier() -> None:
    operands: dict[str, Any] = {"smem": np.zeros(256, np.uint8), "gmem_base": BASE}
    with pytest.raises(InvalidValueError, match="reduce has no operand for a barrier"):
        ENGINE.reduce("add", encode(PLAIN), np.zeros(4096, np.uint8), (0, 0), barrier=Mbarrier(1), **operands)


def test_the_coordinates_that_do_not_fit_are_shown() -> None:
    with pytest.raises(InvalidValueError, match=r"coordinates = \(2147483648, 3\)"):
        ENGINE.load_many(
            encode(PLAIN), np.zeros(4096, np.uint8), [(1, 2), (2**31, 3)], np.zeros(512, np.uint8),
            smem_offsets=[0, 256], gmem_base=BASE,
        )  # fmt: skip


def test_a_mask_of_all_ctas() -> None:
    cluster = [SharedMemory(1024, rank=i) for i in range(16)]
    for one in cluster:
        one.peers = cluster
    source = np.arange(4096, dtype=np.uint8)
    ENGINE.load(encode(PLAIN), source, (0, 0), cluster[0], multicast_mask=0xFFFF, gmem_base=BASE)
    assert all(one.array[:64].tolist() == source[:64].tolist() for one in cluster)
    with pytest.raises(InvalidValueError, match="must be 1 to 0xffff"):
        ENGINE.load(encode(PLAIN), source, (0, 0), cluster[0], multicast_mask=0x10000, gmem_base=BASE)


def test_the_view_of_a_barrier() -> None:
    """A phase is released when it is past, or complete now."""
    assert [BarrierView(2, 1, 1, 64, 64).released(phase) for phase in range(4)] == [True, True, True, False]
    assert [BarrierView(2, 1, 1, 32, 64).released(phase) for phase in range(4)] == [True, True, False, False]


def test_shared_memory_without_a_barrier_or_to_read_only() -> None:
    with pytest.raises(InvalidValueError) as caught:
        barrier_at(SharedMemory(1024), 64)
    assert "initialised : none" in str(caught.value)
    fixed = np.zeros(1024, np.uint8)
    fixed.flags.writeable = False
    with pytest.raises(CuteError):
        SharedMemory(fixed)


@pytest.mark.parametrize(("old", "new", "least"), [(0x7F81, 0x3F80, 0x3F80), (0x7F80, 0x3F80, 0x3F80)])
def test_bfloat16_behind_infinity_is_no_number(old: int, new: int, least: int) -> None:
    """min and max keep the number where the other is NaN; infinity is a number."""
    request = TensorMapTiled(9, BASE, (64, 1), (128,), (64, 1))
    memory = np.full(64, old, np.uint16)
    given = np.full(64, new, np.uint16).view(np.uint8)
    ENGINE.reduce("min", encode(request), memory.view(np.uint8), (0, 0), given, gmem_base=BASE)
    assert set(memory.tolist()) == {least}
    memory[:] = old
    ENGINE.reduce("max", encode(request), memory.view(np.uint8), (0, 0), given, gmem_base=BASE)
    assert set(memory.tolist()) == {0x3F80 if old > 0x7F80 else 0x7F80}
