"""Barriers: the PTX ISA's rule, parity around a ring, limits; clusters and whom multicast signals."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import InvalidTypeError, InvalidValueError, TmaLimitError
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.emulator.bulk import Cluster
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.mbarrier import MAX_COUNT, Mbarrier, barrier_at, init_barrier
from cute_py.tma.emulator.memory import SharedMemory

TILE = TensorMapTiled(0, 0, (64, 8), (64,), (32, 4))


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.sampled_from(["expect", "complete", "arrive"]), st.integers(1, 64)), max_size=40),
)
def test_a_phase_is_over_when_no_arrival_and_no_byte_is_pending(count: int, events: list[tuple[str, int]]) -> None:
    barrier = Mbarrier(count)
    phase, pending, tx = 0, count, 0
    for what, amount in events:
        if what == "expect":
            barrier.expect_tx(amount)
            tx += amount
        elif what == "complete":
            barrier.complete_tx(amount)
            tx -= amount
        elif pending:
            barrier.arrive()
            pending -= 1
        if pending == 0 and tx == 0:
            phase, pending = phase + 1, count
        assert (barrier.phase, barrier.pending, barrier.tx_count) == (phase, pending, tx)
        assert barrier.try_wait(phase & 1) is False
        assert barrier.try_wait(phase & 1 ^ 1) is True


def test_a_count_that_leaves_its_range_is_a_broken_rule() -> None:
    barrier = Mbarrier(1, name="full[0]")
    barrier.expect_tx(MAX_COUNT)
    with pytest.raises(TmaLimitError) as caught:
        barrier.expect_tx(1)
    (found,) = caught.value.violations
    assert (found.rule, found.value) == ("tx_count", MAX_COUNT + 1)
    assert found.facts == {"barrier": "full[0]", "phase": 0}
    assert barrier.tx_count == MAX_COUNT


@pytest.mark.parametrize("depth", [1, 2, 3, 7])
def test_parity_of_a_slot_in_a_ring(depth: int) -> None:
    full = [Mbarrier(1) for _ in range(depth)]
    for i in range(5 * depth):
        slot, parity = full[i % depth], (i // depth) & 1
        assert slot.parity == parity
        slot.arrive_expect_tx(4096)
        assert not slot.try_wait(parity)
        slot.complete_tx(1024)
        slot.complete_tx(3072)
        assert slot.try_wait(parity)


def test_bytes_may_land_before_they_are_expected() -> None:
    barrier = Mbarrier(1)
    barrier.complete_tx(512)
    assert (barrier.phase, barrier.tx_count) == (0, -512)
    assert barrier.arrive_expect_tx(512) == 0
    assert barrier.phase == 1


@given(st.integers(1, 3), st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_a_phase_is_released_exactly_when_it_completed(count: int, loads: list[int]) -> None:
    """Through whole phases, and at every step within them, the condition is what `try_wait` of that phase says."""
    barrier = Mbarrier(count)
    for phase, load in enumerate(loads):
        moved = partial(barrier.complete_tx, 64 * load)
        steps = [partial(barrier.expect_tx, 64 * load), *[barrier.arrive] * count, moved]
        for step in steps:
            step()
            assert barrier.view.released(phase) == (barrier.phase > phase)
            assert all(barrier.view.released(earlier) for earlier in range(phase))
            assert not barrier.view.released(phase + 1)
        assert barrier.phase == phase + 1
        assert barrier.try_wait(phase & 1) and barrier.view.released(phase)
    with pytest.raises(InvalidValueError, match="at least 0"):
        barrier.view.released(-1)


def test_too_many_bytes_never_complete() -> None:
    barrier = Mbarrier(1)
    barrier.arrive_expect_tx(512)
    barrier.complete_tx(1024)
    assert not barrier.try_wait(0)
    assert str(barrier) == "phase 0: 0 of 1 arrival pending, 1024 of 512 bytes arrived"
    assert not barrier.view.released(0)


def test_the_first_wait_for_an_empty_slot_succeeds() -> None:
    assert Mbarrier(1).try_wait(1)


def test_arrive_drop() -> None:
    barrier = Mbarrier(3)
    barrier.arrive_drop()
    barrier.arrive(2)
    assert (barrier.phase, barrier.arrive_count, barrier.pending) == (1, 2, 2)


@pytest.mark.parametrize(("count", "fits"), [(0, False), (1, True), (MAX_COUNT, True), (MAX_COUNT + 1, False)])
def test_arrive_counts(count: int, fits: bool) -> None:
    if fits:
        Mbarrier(count)
    else:
        with pytest.raises(InvalidValueError, match="arrive count"):
            Mbarrier(count)


def test_limits_of_the_transaction_count() -> None:
    barrier = Mbarrier(1)
    barrier.expect_tx(MAX_COUNT)
    with pytest.raises(TmaLimitError, match="1048576; must stay within"):
        barrier.expect_tx(1)
    assert barrier.tx_count == MAX_COUNT
    with pytest.raises(InvalidValueError):
        Mbarrier(1).expect_tx(MAX_COUNT + 1)
    with pytest.raises(InvalidValueError):
        Mbarrier(1).expect_tx(-1)
    low = Mbarrier(1)
    low.complete_tx(MAX_COUNT)
    with pytest.raises(TmaLimitError):
        low.complete_tx(1)


def test_more_arrivals_than_pending() -> None:
    barrier = Mbarrier(2)
    with pytest.raises(InvalidValueError, match="must be 1 to 2, the pending arrivals"):
        barrier.arrive(3)
    barrier.expect_tx(16)
    barrier.arrive(2)
    with pytest.raises(InvalidValueError):
        barrier.arrive_expect_tx(16)
    with pytest.raises(InvalidValueError, match="parity"):
        barrier.try_wait(2)


def test_loads_on_one_slot_sum() -> None:
    smem = SharedMemory(1024)
    barrier = init_barrier(smem, 512, 1)
    gmem = np.arange(512, dtype=np.uint32).astype(np.uint8)
    barrier.arrive_expect_tx(256)
    Emulator().load(TILE, gmem, (0, 0), smem, barrier=512)
    assert not barrier.try_wait(0)
    Emulator().load(TILE, gmem, (32, 0), smem, smem_offset=128, barrier=barrier)
    assert barrier.try_wait(0)


@pytest.mark.parametrize("offset", [-8, 4, 1020, 1024])
def test_barriers_live_in_shared_memory(offset: int) -> None:
    with pytest.raises(InvalidValueError, match="multiple of 8"):
        init_barrier(SharedMemory(1024), offset, 1)
    with pytest.raises(InvalidValueError, match="no mbarrier at offset 8"):
        barrier_at(SharedMemory(1024), 8)


def gmem() -> np.ndarray[Any, Any]:
    return np.arange(512, dtype=np.uint32).astype(np.uint8)


@given(st.integers(1, 16), st.integers(1, 0xFFFF))
def test_multicast_writes_the_ctas_of_the_mask(size: int, mask: int) -> None:
    cluster = Cluster(size, 512)
    barriers = cluster.init_barriers(256, 1)
    for barrier in barriers:
        barrier.arrive_expect_tx(128)
    if mask >> size:
        with pytest.raises(InvalidValueError, match="multicast mask"):
            Emulator().load(TILE, gmem(), (0, 0), cluster[0], barrier=256, multicast_mask=mask)
        return
    nbytes = Emulator().load(TILE, gmem(), (0, 0), cluster[0], smem_offset=128, barrier=256, multicast_mask=mask)
    assert (nbytes, nbytes.evidence) == (128, "measured")
    for rank, cta in enumerate(cluster.ctas):
        hit = bool(mask >> rank & 1)
        assert cta.array[128:160].tolist() == (gmem()[:32].tolist() if hit else [0xCD] * 32)
        assert barriers[rank].try_wait(0) is hit


def test_cta_group_2_signals_one_cta_of_each_pair() -> None:
    cluster, engine = Cluster(4, 512), Emulator("sm_100a")
    barriers = cluster.init_barriers(256, 1)
    engine.load(TILE, gmem(), (0, 0), cluster[0], barrier=barriers[1], multicast_mask=0b1111, cta_group=2)
    assert [b.tx_count for b in barriers] == [0, -256, 0, -256]
    engine.load(TILE, gmem(), (0, 0), cluster[2], barrier=barriers[0], multicast_mask=0b1000, cta_group=2)
    assert [b.tx_count for b in barriers] == [0, -256, -128, -256]
    with pytest.raises(InvalidValueError, match="init_barrier"):
        engine.load(TILE, gmem(), (0, 0), cluster[0], barrier=Mbarrier(1), multicast_mask=1)


@pytest.mark.parametrize("size", [0, 17])
def test_cluster_sizes(size: int) -> None:
    with pytest.raises(InvalidValueError, match="must be 1 to 16"):
        Cluster(size, 64)
    with pytest.raises(InvalidValueError, match="the cluster has 2"):
        Cluster(2, 64).mapa(2)


@pytest.mark.parametrize("value", ["1", 1.0, None, True])
def test_counts_are_integers(value: Any) -> None:
    barrier = Mbarrier(2)
    for call in (Mbarrier, barrier.expect_tx, barrier.arrive_expect_tx, barrier.complete_tx, barrier.arrive):
        with pytest.raises(InvalidTypeError, match="must be an integer"):
            call(value)
    assert (barrier.pending, barrier.tx_count, barrier.phase) == (2, 0, 0)
