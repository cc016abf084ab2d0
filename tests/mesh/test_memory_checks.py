"""Memory of a redistribution in one process: every check in words, sums, and parts with strides of any sign."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_py import ComposedLayout, E, Layout, Swizzle
from cute_py.copies.modes import CopyMode
from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.mesh import Partial, Replicate, Shard, ShardedLayout, distribute, redistribute
from cute_py.mesh.host import (
    NumpyElements,
    Part,
    check_memory,
    destination_part,
    elements_of,
    new_parts,
    source_part,
    write_sum,
)
from cute_py.mesh.transfer import Transfer

PLAN = redistribute(distribute((4, 6), 2, [Shard(0)]), distribute((4, 6), 3, [Shard(1)]), "int32")


def sources() -> dict[int, Any]:
    return {d: np.zeros((2, 6), np.int32) for d in range(2)}


def goals() -> dict[int, Any]:
    return {d: np.zeros((4, 2), np.int32) for d in range(3)}


def said(source: Any, goal: Any, into: Any = None, only: int | None = None) -> list[tuple[str, str]]:
    found = check_memory(NumpyElements(PLAN.dtype), PLAN, source, goal, into, only)
    return [(one.rule, one.message) for one in found]


def test_memory_that_is_right() -> None:
    assert said(sources(), goals()) == [] and said(sources(), goals(), goals()) == []
    flat = {d: one.reshape(-1) for d, one in sources().items()}
    assert said(flat, goals()) == []


@pytest.mark.parametrize(
    ("device", "array", "rule", "text"),
    [
        (
            1,
            np.zeros((2, 5), np.int32),
            "mesh-size",
            "sources[1] = 10 elements; must be 12, the extent of its local layout",
        ),
        (1, np.zeros((2, 6), np.uint32), "mesh-dtype", "sources[1] has elements of type uint32; must be int32"),
        (
            1,
            np.zeros((6, 2), np.int32),
            "mesh-shape",
            "sources[1] has the shape (6, 2); must be (2, 6), or one-dimensional",
        ),
        (
            1,
            np.zeros((2, 12), np.int32)[:, ::2],
            "mesh-contiguous",
            "sources[1] must be C-contiguous, without gaps",
        ),
        (
            1,
            np.zeros((6, 2), np.int32).T,
            "mesh-contiguous",
            "sources[1] must be C-contiguous, without gaps",
        ),
        (2, np.zeros(1, np.int32), "mesh-device", "sources has an array for device 2; the mesh has devices 0 to 1"),
        (-1, np.zeros(1, np.int32), "mesh-device", "sources has an array for device -1; the mesh has devices 0 to 1"),
        ("x", np.zeros(1, np.int32), "mesh-device", "sources has an array for device 'x'; the mesh has devices 0 to 1"),
    ],
)
def test_each_part_is_checked(device: Any, array: Any, rule: str, text: str) -> None:
    assert said({**sources(), device: array}, goals()) == [(rule, text)]


def test_missing_and_read_only_parts() -> None:
    assert said({0: sources()[0]}, goals()) == [("mesh-device", "sources[1] is missing; its part has 12 elements")]
    fixed = goals()
    fixed[2].flags.writeable = False
    assert said(sources(), fixed) == [("mesh-writeable", "destinations[2] is read-only")]
    assert said(sources(), goals(), fixed) == [("mesh-writeable", "into[2] is read-only")]
    held = sources()
    held[0].flags.writeable = False
    assert said(held, goals()) == []
    both = {**sources(), 0: np.zeros((2, 5), np.uint8)}
    assert [rule for rule, _ in said(both, {0: goals()[0]})] == [
        "mesh-dtype",
        "mesh-size",
        "mesh-device",
        "mesh-device",
    ]


def test_one_process_gives_its_own_parts_alone() -> None:
    assert said({0: sources()[0]}, {0: goals()[0]}, only=0) == []
    assert said({}, {2: goals()[2]}, only=2) == []  # the source has no device 2
    assert said({}, {0: goals()[0]}, only=0) == [("mesh-device", "sources[0] is missing; its part has 12 elements")]
    text = "sources has an array for device 1, but this process is rank 0, and must pass only its own array"
    assert said(sources(), {0: goals()[0]}, only=0) == [("mesh-device", text)]


def test_memory_that_is_shared() -> None:
    x = np.zeros(64, np.int32)

    def pair(at: int, where: int) -> list[tuple[str, str]]:
        return said({**sources(), 0: x[at : at + 12]}, {**goals(), 1: x[where : where + 8]})

    assert pair(0, 12) == [] and pair(8, 0) == []
    assert pair(0, 11) == [("mesh-overlap", "sources[0] and destinations[1] share memory")]
    assert pair(7, 0) == [("mesh-overlap", "destinations[1] and sources[0] share memory")]
    assert said({0: x[:12], 1: x[4:16]}, goals()) == []  # sources are only read
    long = {**goals(), 0: x[:8], 1: x[8:16], 2: x[6:14]}
    assert said(sources(), long) == [
        ("mesh-overlap", "destinations[0] and destinations[2] share memory"),
        ("mesh-overlap", "destinations[2] and destinations[1] share memory"),
    ]
    inside = said({0: x[:12], 1: x[40:52]}, {**goals(), 0: x[2:10], 1: x[10:18]})
    assert [text for _, text in inside] == [
        "sources[0] and destinations[0] share memory",
        "sources[0] and destinations[1] share memory",
    ]
    scratch = goals()
    assert [rule for rule, _ in said(sources(), scratch, scratch)] == ["mesh-overlap"] * 3


def test_arguments_that_are_no_arrays() -> None:
    for arrays, what in ((sources().values(), "sources"), ([1], "sources")):
        with pytest.raises(InvalidTypeError, match=f"{what} must be a mapping of devices to arrays"):
            said(arrays, goals())
    with pytest.raises(InvalidTypeError, match=r"destinations\[0\] must be a numpy array, got str"):
        said(sources(), {**goals(), 0: "x"})
    with pytest.raises(InvalidTypeError, match="into must be a mapping"):
        said(sources(), goals(), 3)
    masked = np.ma.masked_array(np.zeros((2, 6), np.int32), mask=True)
    with pytest.raises((InvalidTypeError, InvalidValueError)):
        said({**sources(), 0: masked}, goals())
    with pytest.raises(InvalidValueError) as caught:
        PLAN.run({}, goals())
    assert caught.value.headline.startswith("2 of the arrays can't be used")


def test_layouts_that_put_two_elements_at_one_place() -> None:
    same = distribute((4, 6), 3, [Shard(1)], local=Layout((4, 2), (1, 3)))
    plan = redistribute(PLAN.source, same, "int32")
    memory = {d: np.zeros(elements_of(same, d), np.int32) for d in range(3)}
    found = check_memory(NumpyElements(plan.dtype), plan, sources(), memory, None)
    assert [one.message for one in found] == [
        f"the local layout of destinations[{d}], (4,2):(1,3), maps two elements to one offset" for d in range(3)
    ]
    back = redistribute(same, PLAN.source, "int32")  # a source is only read
    assert check_memory(NumpyElements(plan.dtype), back, memory, sources(), None) == []


@pytest.mark.parametrize(
    ("local", "count"),
    [
        ("row", 8),
        ("column", 8),
        (Layout((4, 2), (3, 1)), 11),
        (Layout((4, 2), (2, 0)), 7),
        (ComposedLayout(Layout(1, 1), 5, Layout((4, 2), (2, 1))), 13),
        (ComposedLayout(Layout(1, 1), 6, Layout((4, 2), (-2, 1))), 8),
        (ComposedLayout(Swizzle(1, 0, 1), 0, Layout((4, 2), (2, 1))), 8),
        (ComposedLayout(Swizzle(1, 0, 3), 0, Layout((4, 2), (2, 1))), 8),
        (ComposedLayout(Swizzle(1, 0, 2), 0, Layout((4, 2), (3, 1))), 11),
    ],
)
def test_parts_reach_to_their_last_offset(local: Any, count: int) -> None:
    made = distribute((4, 6), 3, [Shard(1)], local=local)
    assert [elements_of(made, d) for d in range(3)] == [count] * 3
    parts = new_parts(NumpyElements(as_dtype("int16")), made, [0, 2])
    assert {d: (one.shape, one.dtype) for d, one in parts.items()} == {
        d: ((4, 2) if count == 8 else (count,), np.dtype(np.int16)) for d in (0, 2)
    }
    empty = distribute((4, 2), 3, [Shard(1)])
    assert elements_of(empty, 2) == 0
    assert new_parts(NumpyElements(as_dtype("u8")), empty, [2])[2].shape == (4, 0)


def test_a_layout_of_ones_own_reaches_as_far_as_it_says() -> None:
    made = ShardedLayout(Layout((2, 3), (E(0), E(1) * 4)), 2)
    assert elements_of(made, 1) == 9
    assert new_parts(NumpyElements(as_dtype("u8")), made, [1])[1].shape == (9,)


# ---- parts and sums


@pytest.mark.parametrize(
    ("base", "modes"),
    [(3, []), (0, [(4, 1)]), (2, [(3, 2), (2, 7)]), (9, [(4, -2)]), (8, [(3, 4), (2, -1)]), (5, [(3, 0), (2, 1)])],
)
def test_parts_of_memory_by_strides(base: int, modes: list[tuple[int, int]]) -> None:
    flat = np.arange(100, 120, dtype=np.int32)
    part = Part(NumpyElements(as_dtype("int32")), flat, base, modes, None)
    shape = tuple(n for n, _ in modes)
    places = np.array(base)
    for n, step in modes:
        places = places[..., None] + np.arange(n) * step
    assert (part.count, part.shape) == (places.size, shape)
    got = np.asarray(part.read())
    assert np.array_equal(got, flat[places])
    if not any(d == 0 for _, d in modes):
        part.write(got + 1)
        assert (flat[places] == 101 + places).all()
        others = np.setdiff1d(np.arange(20), places.ravel())
        assert (flat[others] == 100 + others).all()


def test_both_sides_of_a_transfer() -> None:
    elements, flat = NumpyElements(as_dtype("int32")), np.arange(40, dtype=np.int32)
    swizzle = ComposedLayout(Swizzle(1, 0, 1), 4, Layout(8))
    one = Transfer(0, 1, 6, 2, 3, (CopyMode(3, 1, 2), CopyMode(2, 10, 7)), None, swizzle)
    assert source_part(elements, flat, one).read().ravel().tolist() == [2, 12, 3, 13, 4, 14]
    goal = np.zeros(40, np.int32)
    destination_part(elements, goal, one).write(np.arange(1, 7).reshape(3, 2))
    places = [4 + 3 + i * 2 + j * 7 for j in range(2) for i in range(3)]
    behind = [p ^ (p >> 1 & 1) for p in places]
    assert np.flatnonzero(goal).tolist() == sorted(behind)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float32", "float64", "int8", "int64"])
def test_summands_are_added_in_a_type_that_holds_them(dtype: str) -> None:
    kind = as_dtype(dtype)
    elements = NumpyElements(kind)
    wide = np.dtype(np.float32) if kind.is_float and kind.bits < 32 else kind.numpy
    assert elements.wide(np.ones(2, kind.numpy)).dtype == wide
    summands = [
        np.array([1, 3, -2, 7]).astype(kind.numpy),
        np.array([2, -1, 0.5 if kind.is_float else 1, 8]).astype(kind.numpy),
        np.array([4, 4, 4, 4]).astype(kind.numpy),
    ]
    flat = np.zeros(4, kind.numpy)
    write_sum(elements, Part(elements, flat, 0, [(4, 1)], None), summands)
    total = sum((one.astype(wide) for one in summands[1:]), summands[0].astype(wide))
    assert np.array_equal(flat, total.astype(kind.numpy))
    alone = np.zeros(4, kind.numpy)
    write_sum(elements, Part(elements, alone, 0, [(4, 1)], None), summands[:1])
    assert np.array_equal(alone.view(np.uint8), summands[0].view(np.uint8))


def test_a_sum_of_small_parts_does_not_vanish() -> None:
    """2048 and ones in float16: each addition in float16 would lose the one."""
    source = distribute(1, 9, [Partial()])
    plan = redistribute(source, distribute(1, 1, [Replicate()]), "float16")
    parts = {d: np.array([2048 if d == 0 else 1], np.float16) for d in range(9)}
    assert plan.run(parts)[0].tolist() == [2056]
    narrow = {d: np.array([0.5], ml_dtypes.float8_e4m3fn) for d in range(9)}
    assert redistribute(source, plan.destination, "float8_e4m3fn").run(narrow)[0].astype(float).tolist() == [4.5]
