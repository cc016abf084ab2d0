"""The ring: what it copies, its timeline, and what goes wrong with the wrong bytes or too slow a consumer."""

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
from cute_py.tma.emulator.memory import GlobalMemory, SharedMemory
from cute_py.tma.simulate.pipeline import Ring, RingLoad, RingStore, Timeline

SOURCE, TARGET = 0x10000, 0x20000
A = encode(TensorMapTiled(9, SOURCE, (128, 64), (256,), (64, 8), swizzle=3))
B = encode(TensorMapTiled(9, TARGET, (128, 64), (256,), (64, 8), swizzle=3))
COORDS = [(x, y) for y in range(0, 64, 8) for x in (0, 64)]


def ring(depth: int, **more: Any) -> tuple[Ring, GlobalMemory]:
    memory = GlobalMemory()
    memory.add("A", np.random.default_rng(0).integers(0, 256, 16384, np.uint8), SOURCE)
    memory.add("B", np.zeros(16384, np.uint8), TARGET)
    store = more.pop("store", RingStore(B, COORDS))
    loads = more.pop("loads", [RingLoad(A, COORDS)])
    smem = SharedMemory(more.pop("smem_bytes", 16384))
    return Ring(Emulator(), memory, smem, loads, depth=depth, store=store, **more), memory


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))
def test_it_copies_whatever_the_speeds(depth: int, load: int, consume: int, store: int) -> None:
    pipe, memory = ring(depth)
    line = pipe.simulate(load_ticks=load, consume_ticks=consume, store_ticks=store)
    assert (line.outcome.status, line.outcome.races) == ("completed", ())
    assert np.array_equal(memory["A"].array, memory["B"].array)
    assert len(line.states) == depth and {len(s) for s in line.states} == {line.ticks}
    assert [e.iteration for e in line.events if e.what == "consume"] == list(range(16))


def test_more_stages_hide_the_latency() -> None:
    ticks = [ring(depth)[0].simulate(load_ticks=12, consume_ticks=3, store_ticks=1).ticks for depth in (1, 2, 4, 6)]
    assert ticks == sorted(ticks, reverse=True)
    assert ticks[0] > 2 * ticks[2]


def test_the_consumer_may_change_the_stage() -> None:
    def add_one(stage: np.ndarray[Any, Any], iteration: int) -> None:
        stage += 1

    pipe, memory = ring(3, consume=add_one)
    assert pipe.simulate().outcome.races == ()
    assert np.array_equal(memory["A"].array + 1, memory["B"].array)


def test_two_operands_share_a_barrier() -> None:
    loads = [RingLoad(A, COORDS), RingLoad(A, COORDS[::-1], offset=1024)]
    pipe, memory = ring(3, loads=loads)
    assert (pipe.expect_bytes, pipe.stage_bytes) == (2048, 2048)
    assert pipe.simulate().outcome.status == "completed"
    assert np.array_equal(memory["A"].array, memory["B"].array)


@pytest.mark.parametrize("expected", [0, 512, 1536])
def test_the_wrong_number_of_bytes_hangs(expected: int) -> None:
    line = ring(2, expect_bytes=expected)[0].simulate()
    if expected == 0:  # the phase is over at once: the stage is read while the load is under way
        assert {r.rule for r in line.outcome.races} >= {"store before the load of its source was waited for"}
        return
    assert (line.outcome.status, line.outcome.barrier) == ("would hang", "full[0]")
    assert (line.outcome.expected, line.outcome.arrived) == (expected, 1024)


def test_halo_pixels_are_expected_too() -> None:
    column = TensorMapIm2col(9, SOURCE, (32, 8, 4, 4), (64, 512, 2048), (0, 0), (0, 0), 32, 8, swizzle=2)
    memory = GlobalMemory()
    memory.add("A", np.zeros(8192, np.uint8), SOURCE)
    loads = [RingLoad(column, [(0, 0, 1, 0), (0, 2, 1, 1)], mode="im2col::w", im2col_offsets=(2, 0))]
    pipe = Ring(Emulator("sm_100a"), memory, SharedMemory(8192), loads, depth=2)
    assert (pipe.expect_bytes, pipe.simulate().outcome.status) == (640, "completed")


def test_a_trap_ends_it() -> None:
    line = ring(2, loads=[RingLoad(A, [(3, 0)] * 16)])[0].simulate()
    assert (line.outcome.status, line.outcome.cuda_error) == ("trap", "CUDA_ERROR_ILLEGAL_INSTRUCTION")


def test_the_timeline_is_text() -> None:
    pipe, _ = ring(2, loads=[RingLoad(A, COORDS[:3])], store=RingStore(B, COORDS[:3]))
    line = pipe.simulate(load_ticks=3, consume_ticks=1, store_ticks=1)
    drawn = ["stage 0  LLLCS.LLLCS.", "stage 1  .LLLFCS.....", "completed", "judged: 3 loads, 3 stores, 3 waits"]
    assert str(line).split("\n")[:4] == drawn
    assert line.outcome.scope.not_judged[0].startswith("order of landing")
    assert str(line.events[0]) == "    0  stage 0  iteration   0  loads issued"
    assert isinstance(line, Timeline) and line.ticks == 12


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"depth": 0}, "the ring has 0 stages"),
        ({"depth": 2, "loads": []}, "and 0 loads"),
        ({"depth": 2, "loads": [RingLoad(A, COORDS[:3])]}, r"have \[3, 16\] iterations"),
        ({"depth": 16, "smem_bytes": 16384}, "16 stages need 16640 bytes"),
    ],
)
def test_bad_input(more: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidValueError, match=text):
        ring(**more)
    with pytest.raises(InvalidValueError, match="load_ticks = 0 ticks; must be 1 to 10000"):
        ring(2)[0].simulate(load_ticks=0)
