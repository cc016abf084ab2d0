"""Every element at its place, and the fewest bytes, against lists of indices."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import ComposedLayout, E, Layout, Swizzle
from cute_py.dtypes import DTYPES, as_dtype
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, LayoutError
from cute_py.mesh import (
    Partial,
    Redistribution,
    Replicate,
    Shard,
    ShardedLayout,
    Transfer,
    distribute,
    redistribute,
)
from tests.each import each_of
from tests.mesh.places import places, random_distribution, random_shape, scattered


def pair(seed: int) -> tuple[ShardedLayout, ShardedLayout]:
    random = Random(seed)
    shape = random_shape(random)
    return random_distribution(random, shape), random_distribution(random, shape)


@each_of("seed", range(60), every=3)
def test_transfers_take_each_element_once_and_move_the_fewest(seed: int) -> None:
    source, destination = pair(seed)
    held = {d: places(source, d) for d in range(source.devices)}
    plan = redistribute(source, destination, "f32", devices_per_host=Random(seed).choice((None, 2)))
    needed = 0
    for device in range(destination.devices):
        wanted = {place: coordinate for coordinate, place in places(destination, device).items()}
        arrived: set[int] = set()
        for transfer in plan.transfers(device=device):
            everything = np.arange(transfer.elements)
            before = np.asarray(cute.offsets(transfer.source_layout, everything)).tolist()
            after = np.asarray(cute.offsets(transfer.destination_layout, everything)).tolist()
            assert not arrived & set(after)
            arrived |= set(after)
            theirs = held[transfer.source_device]
            assert [theirs[wanted[place]] for place in after] == before
        assert arrived == set(wanted)
        needed += len(set(wanted.values()) - set(held.get(device, {})))
    assert plan.bytes_moved == plan.minimum_bytes == 4 * needed


@each_of("seed", range(60, 160), every=3)
def test_data_arrive(seed: int) -> None:
    source, destination = pair(seed)
    values = np.random.default_rng(seed).integers(0, 1 << 16, source.shape).astype(np.uint16)
    got = redistribute(source, destination, "uint16").run(scattered(source, values))
    for device, wanted in scattered(destination, values).items():
        assert np.array_equal(got[device].ravel(), wanted), (source, destination, device)


@each_of("name", DTYPES)
def test_data_of_every_element_type_arrive(name: str) -> None:
    rows, columns = distribute((2, 4), 2, [Shard(0)]), distribute((2, 4), 2, [Shard(1)])
    values = np.arange(8).reshape(2, 4).astype(as_dtype(name).numpy)
    got = redistribute(rows, columns, name).run({0: values[:1].copy(), 1: values[1:].copy()})
    assert [got[d].tobytes() for d in range(2)] == [values[:, :2].tobytes(), values[:, 2:].tobytes()]


def test_the_closed_form_is_the_plan() -> None:
    """Where there is one: (device, place) of the destination, devices outermost in number, gives the source's place."""
    found = 0
    for seed in range(400):
        source, destination = pair(seed)
        layout = redistribute(source, destination, "f32").layout
        if layout is None or cute.size(destination.replicas) > 1:
            continue
        held = {c: (d, p) for d in reversed(range(source.devices)) for c, p in places(source, d).items()}
        wanted = [
            held[c]
            for p, d, c in sorted(
                (p, d, c) for d in range(destination.devices) for c, p in places(destination, d).items()
            )
        ]
        table = [(*map(int, cute.as_arith_tuple(layout(i))), 0, 0)[:2] for i in range(cute.size(layout))]
        assert table == wanted, (source, destination, layout)
        found += 1
    assert found > 20


def test_summands_are_added_in_float32_in_the_order_of_devices() -> None:
    source = distribute((16, 16), (2, 2, 2), [Partial(), Shard(0), Partial()])
    destination = distribute((16, 16), (2, 4), [Shard(1), Replicate()])
    summands = np.random.default_rng(0).normal(size=(2, 2, 16, 16)).astype(np.float16)
    parts = {
        4 * i + 2 * j + k: summands[i, k, 8 * j : 8 * j + 8].copy() for i in (0, 1) for j in (0, 1) for k in (0, 1)
    }
    total = np.zeros((16, 16), np.float32)
    for i in (0, 1):
        for k in (0, 1):
            total += summands[i, k].astype(np.float32)
    got = redistribute(source, destination, "float16").run(parts)
    for device in range(8):
        half = device // 4
        assert np.array_equal(got[device], total.astype(np.float16)[:, 8 * half : 8 * half + 8])


def test_a_device_adds_the_summand_that_it_holds() -> None:
    """Of the replicas of a sum, that which the device has any summand of."""
    source = distribute(4, (2, 3), [Replicate(), Partial()])
    plan = redistribute(source, distribute(4, 6, [Replicate()]), "float32")
    assert plan.bytes_moved == plan.minimum_bytes == 6 * 2 * 16
    for device in range(6):
        assert device in [t.source_device for t in plan.transfers(device)]


def test_a_swizzled_part_is_read_through_its_swizzle() -> None:
    swizzled = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((64, 64), (64, 1)))
    source = distribute((64, 128), 2, [Shard(1)], local=swizzled)
    destination = distribute((64, 128), 2, [Shard(0)])
    values = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)
    parts = {}
    for device in (0, 1):
        parts[device] = np.zeros(4096, np.float32)
        parts[device][cute.offsets(swizzled)] = values[:, 64 * device : 64 * device + 64]
    got = redistribute(source, destination, "f32").run(parts)
    assert np.array_equal(np.concatenate([got[0], got[1]]), values)


def test_replicas_are_taken_from_the_host_then_from_who_sends_least() -> None:
    source = distribute(8, (4, 2), [Replicate(), Shard(0)])
    destination = distribute(8, 8, [Replicate()])
    plan = redistribute(source, destination, "f32", devices_per_host=4)
    senders = [t.source_device for t in plan.transfers(device=0) if t.source_device != 0]
    assert senders == [1]
    assert [t.source_device for t in plan.transfers(device=2) if t.source_device != 2] == [3]
    assert [t.source_device for t in plan.transfers(device=6) if t.source_device != 6] == [7]  # 5 sends to 4


def test_the_matrix_of_many_equal_pairs_is_grouped() -> None:
    plan = redistribute(distribute(64, 32, [Shard(0)]), distribute(64, 32, [Replicate()]), "bf16")
    assert "  1024 pairs of 2 elements" in plan.explain()
    assert plan.bytes_moved == 31 * 64 * 2


def test_scratch_memory_keeps_the_destinations_until_the_end() -> None:
    source, destination = distribute((4, 4), 2, [Shard(0)]), distribute((4, 4), 2, [Shard(1)])
    values = np.arange(16, dtype=np.int32).reshape(4, 4)
    parts = {0: values[:2].copy(), 1: values[2:].copy()}
    goal = {d: np.full((4, 2), -1, np.int32) for d in (0, 1)}
    scratch = {d: np.zeros((4, 2), np.int32) for d in (0, 1)}
    prepared = redistribute(source, destination, "int32").prepare(parts, goal, into=scratch)
    assert (goal[0] == -1).all()
    prepared.launch()
    assert np.array_equal(goal[1], values[:, 2:])
    parts[0] += 100  # a prepared one reads what is there
    prepared.launch()
    assert goal[1][0, 0] == 102


@pytest.mark.parametrize("left_out", ["goal", "scratch"])
def test_an_empty_part_may_be_left_out_of_destinations_or_scratch_memory(left_out: str) -> None:
    rows = distribute((1, 4), 2, [Shard(0)])
    parts = {0: np.arange(4, dtype=np.int32), 1: np.zeros(0, np.int32)}
    memory = {"goal": {0: np.zeros(4, np.int32)}, "scratch": {0: np.zeros(4, np.int32)}}
    memory["scratch" if left_out == "goal" else "goal"][1] = np.zeros(0, np.int32)
    redistribute(rows, rows, "int32").run(parts, memory["goal"], into=memory["scratch"])
    assert memory["goal"][0].tolist() == [0, 1, 2, 3]


def plan() -> Redistribution:
    return redistribute(distribute((4, 4), 2, [Shard(0)]), distribute((4, 4), 2, [Shard(1)]), "int32")


def parts() -> dict[int, np.ndarray]:
    return {0: np.zeros((2, 4), np.int32), 1: np.zeros((2, 4), np.int32)}


def test_bad_parts_are_listed_together() -> None:
    bad = {0: np.zeros((2, 5), np.int32), 1: np.zeros((2, 4), np.float32), 7: np.zeros(1, np.int32)}
    with pytest.raises(InvalidValueError) as caught:
        plan().run(bad)
    rules = [one.rule for one in caught.value.diagnostics]
    assert rules == ["mesh-device", "mesh-size", "mesh-dtype"]
    assert "sources[0] = 10 elements; must be 8" in str(caught.value)


def test_memory_that_is_missing_shared_or_read_only() -> None:
    with pytest.raises(InvalidValueError, match=r"sources\[1\] is missing; its part has 8 elements"):
        plan().run({0: parts()[0]})
    x = np.zeros(16, np.int32)
    with pytest.raises(InvalidValueError, match=r"sources\[0\] and destinations\[0\] share memory"):
        plan().run({**parts(), 0: x[:8].reshape(2, 4)}, {0: x[4:12].reshape(4, 2), 1: np.zeros((4, 2), np.int32)})
    fixed = np.zeros((4, 2), np.int32)
    fixed.flags.writeable = False
    with pytest.raises(InvalidValueError, match=r"destinations\[0\] is read-only"):
        plan().run(parts(), {0: fixed, 1: np.zeros((4, 2), np.int32)})
    with pytest.raises(InvalidTypeError, match=r"sources\[0\] must be a numpy array, got list"):
        plan().run({0: [1], 1: [2]})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("local", "memory"),
    [
        (Layout(3, 2), [0, -1, 1, -1, 2]),
        (ComposedLayout(Layout(1, 1), 2, Layout(3, 1)), [-1, -1, 0, 1, 2]),
        (ComposedLayout(Layout(1, 1), 2, Layout(3, -1)), [2, 1, 0]),
        (ComposedLayout(Swizzle(1, 0, 1), 0, Layout(3, 1)), [0, 1, -1, 2]),
        (ComposedLayout(Swizzle(1, 0, 1), 4, Layout(3, 1)), [-1, -1, -1, -1, 0, 1, -1, 2]),
    ],
)
def test_memory_is_as_long_as_the_last_offset(local: Any, memory: list[int]) -> None:
    """An offset before the layout, and a swizzle of less than a block, reach beyond its cosize."""
    plain, there = distribute(3, 1, [Replicate()]), distribute(3, 1, [Replicate()], local=local)
    into = {0: np.full(len(memory), -1, np.int32)}
    redistribute(plain, there, "int32").run({0: np.arange(3, dtype=np.int32)}, into)
    assert into[0].tolist() == memory
    assert redistribute(there, plain, "int32").run(into)[0].tolist() == [0, 1, 2]
    with pytest.raises(InvalidValueError, match=f"must be {len(memory)}, the extent of its local layout"):
        redistribute(there, plain, "int32").run({0: into[0][:-1]})


def test_a_part_of_as_many_elements_but_another_shape_is_refused() -> None:
    rows, columns = distribute((8, 1, 8), 4, [Shard(0)]), distribute((8, 1, 8), 4, [Shard(2)])
    x = np.arange(64, dtype=np.int32).reshape(8, 8)
    plan = redistribute(rows, columns, "int32")
    parts = {d: x[2 * d : 2 * d + 2] for d in range(4)}  # modes of size 1 do not count
    found = plan.run({d: part.reshape(-1) if d == 1 else part for d, part in parts.items()})
    assert all((found[d].reshape(8, 2) == x[:, 2 * d : 2 * d + 2]).all() for d in range(4))
    text = "sources[2] has the shape (8, 2); must be (2, 1, 8), or one-dimensional"
    with pytest.raises(InvalidValueError, match=re.escape(text)):
        plan.run({**parts, 2: parts[2].reshape(8, 2)})
    with pytest.raises(InvalidValueError, match=re.escape("destinations[0] has the shape (2, 8); must be (8, 1, 2)")):
        plan.run(parts, {d: np.zeros((2, 8) if d == 0 else (8, 2), np.int32) for d in range(4)})


def test_a_layout_of_ones_own_may_begin_anywhere_in_memory() -> None:
    there = ShardedLayout(Layout((4, 2), (E(1), E(0) + E(1) * 2)), 2)
    got = redistribute(distribute((4, 2), 1, [Replicate()]), there, "int32").run({0: np.arange(8, dtype=np.int32)})
    assert got[0].ravel().tolist() == [0, 2, 4, 6]
    assert got[1].tolist() == [0, 0, 1, 3, 5, 7]


def test_layouts_that_are_no_memory() -> None:
    plain, values = distribute(4, 1, [Replicate()]), {0: np.arange(4, dtype=np.int32)}
    backwards = distribute(4, 1, [Replicate()], local=Layout(4, -1))
    with pytest.raises(LayoutError, match="the part of device 0 begins at offset -3, before the start of its memory"):
        redistribute(plain, backwards, "int32").run(values)
    same = distribute(4, 1, [Replicate()], local=Layout(4, 0))
    with pytest.raises(
        InvalidValueError, match=r"the local layout of destinations\[0\], 4:0, maps two elements to one offset"
    ):
        redistribute(plain, same, "int32").run(values)
    assert redistribute(same, plain, "int32").run({0: np.full(1, 7, np.int32)})[0].tolist() == [7] * 4


def test_groups_are_of_devices() -> None:
    rows, columns = distribute((4, 6), 2, [Shard(0)]), distribute((4, 6), 2, [Shard(1)])
    plan = redistribute(rows, columns, "bf16")
    with pytest.raises(InvalidTypeError, match="source must be an integer, got str 'x'"):
        plan.groups(0, "x")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="source = 2; must be 0 to 1"):
        plan.groups(0, 2)
    with pytest.raises(InvalidValueError, match="device = 2; must be 0 to 1"):
        plan.groups(2)
    assert list(plan.groups(np.uint8(1), np.uint8(0))) == list(plan.groups(1, 0))


def test_what_has_no_plan() -> None:
    with pytest.raises(LayoutError, match="the source and the destination have different shapes"):
        redistribute(distribute(4, 2, [Shard(0)]), distribute(5, 2, [Shard(0)]), "f32")
    with pytest.raises(LayoutError, match="must hold sums"):
        redistribute(distribute(4, 2, [Shard(0)]), distribute(4, 2, [Partial()]), "f32")
    with pytest.raises(CuteError):
        redistribute(distribute(4, 2, [Shard(0)]), distribute(4, 2, [Shard(0)]), "no such type")


def test_512_devices_are_planned_one_at_a_time() -> None:
    shape, mesh = (64, 64, 64, 64), (8, 8, 8)
    source = distribute(shape, mesh, [Shard(0), Replicate(), Shard(2)])
    destination = distribute(shape, mesh, [Shard(3), Shard(2), Shard(1)])
    transfers = list(redistribute(source, destination, "bf16").transfers(device=511))
    assert sum(t.elements for t in transfers) == 64**4 // 512
    assert all(isinstance(t, Transfer) for t in transfers)


def test_threads_share_a_plan() -> None:
    """Threads that ask a plan at the same time get the transfers that one thread gets."""
    source = distribute((64, 48), (2, 4), [Replicate(), Shard(0)])
    destination = distribute((64, 48), 8, [Shard(1)])
    alone = [str(one) for one in redistribute(source, destination, "uint16").transfers()]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            plan = redistribute(source, destination, "uint16")
            with ThreadPoolExecutor(8) as pool:
                parts = list(pool.map(lambda n, plan=plan: [str(one) for one in plan.transfers(n)], range(8)))
            assert [text for part in parts for text in part] == alone
    finally:
        sys.setswitchinterval(before)
