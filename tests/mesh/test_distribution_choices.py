"""Where a distribution puts elements and its replicas, which device sends, how both are told; against plain loops."""

from __future__ import annotations

import itertools
import math
from random import Random
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import ComposedLayout, E, Layout, Swizzle
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, LayoutError
from cute_py.mesh import (
    BlockCyclic,
    Partial,
    Placement,
    Replicate,
    SectionedShard,
    Shard,
    ShardedLayout,
    StridedShard,
    Transfer,
    Zigzag,
    distribute,
    from_dtensor,
    from_partition_spec,
    redistribute,
)
from cute_py.mesh import placements as placements_module
from cute_py.mesh.placements import parse_placement
from tests.each import each_of
from tests.mesh.places import indices_of, places, random_placement, random_shape, scattered

# ---- placements


@each_of("seed", range(60))
def test_pieces_of_all_parts_are_each_index_once(seed: int) -> None:
    dice = Random(seed)
    size, parts = dice.choice((0, 1, 5, 8, 12, 31)), dice.randint(1, 6)
    block, factor = dice.randint(1, 4), dice.randint(1, 3)
    sections = tuple(dice.randint(0, 6) for _ in range(dice.randint(1, 4)))
    chunk = -(-size // parts)
    fine = max(1, -(-size // (parts * factor)))
    half = -(-size // (2 * parts))

    def dealt(step: int) -> list[list[int]]:
        return [[i for i in range(size) if i // step % parts == part] for part in range(parts)]

    def chunks(n: int, count: int, length: int) -> list[list[int]]:
        return [list(range(min(length * p, n), min(length * (p + 1), n))) for p in range(count)]

    small = chunks(size, 2 * parts, half)
    begins = [sum(sections[:i]) for i in range(len(sections))]
    divided = [chunks(n, parts, -(-n // parts)) for n in sections]
    wanted: dict[Any, list[list[int]]] = {
        Shard(0): chunks(size, parts, chunk),
        BlockCyclic(0, block): dealt(block),
        StridedShard(0, factor): dealt(fine),
        Zigzag(0): [small[p] + small[2 * parts - 1 - p] for p in range(parts)],
        SectionedShard(0, sections): [
            [b + i for b, one in zip(begins, divided, strict=True) for i in one[p]] for p in range(parts)
        ],
    }
    for placement, held in wanted.items():
        n = sum(sections) if isinstance(placement, SectionedShard) else size
        for part in range(parts):
            rows = placement.pieces(n, parts, part).tolist()
            assert [i for start, length in rows for i in range(start, start + length)] == held[part], placement
        assert sorted(itertools.chain(*held)) == list(range(n))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Shard(0).pieces(-1, 2, 0), "size = -1; must be 0 to"),
        (lambda: Shard(0).pieces(4, 0, 0), "parts = 0; must be at least 1"),
        (lambda: Zigzag(0).pieces(4, 2, 2), "part = 2; must be 0 to 1"),
        (lambda: StridedShard(0, 0).pieces(4, 2, 1), "split_factor = 0; must be at least 1"),
        (lambda: BlockCyclic(0, 0).pieces(4, 2, 1), "block = 0; must be at least 1"),
        (lambda: SectionedShard(0, (4, -1)).pieces(3, 2, 1), r"sections[1] = -1; must be at least 0"),
        (
            lambda: SectionedShard(0, (4, 1)).pieces(6, 2, 1),
            "the sections have 5 elements; must have 6, like the dimension",
        ),
        (
            lambda: BlockCyclic(0, 1).pieces(((1 << 22) + 1) * 2, 2, 1),
            "each device would get 4194305 blocks of 1 elements; must be at most 4194304",
        ),
    ],
)
def test_pieces_that_are_refused(call: Any, text: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        call()
    assert text in caught.value.headline


def test_as_many_blocks_as_a_device_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placements_module, "MOST_BLOCKS", 4)
    assert len(BlockCyclic(0, 3).pieces(2 * 3 * 4 + 5, 2, 1)) == 5  # the last one is short
    with pytest.raises(InvalidValueError, match="each device would get 5 blocks of 3 elements; must be at most 4"):
        BlockCyclic(0, 3).pieces(2 * 3 * 5, 2, 1)


@pytest.mark.parametrize(
    ("text", "placement"),
    [
        ("Shard(0)", Shard(0)),
        (" Shard(dim=1) ", Shard(1)),
        ("Replicate", Replicate()),
        ("Replicate()", Replicate()),
        ("BlockCyclic(0, block=4)", BlockCyclic(0, 4)),
        ("Partial", Partial()),
    ],
)
def test_placements_as_python_writes_them(text: str, placement: Any) -> None:
    assert parse_placement(text) == placement


@pytest.mark.parametrize(
    "text", ["Shard", "Shard(", "Shard(0, 1)", "shard(0)", "Shard(x)", "Shard(dims=0)", "4", "a.Shard(0)", "(" * 9999]
)
def test_texts_that_are_no_placement(text: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        parse_placement(text, "this one")
    assert caught.value.headline.startswith("this one: ")
    assert caught.value.hint == (
        "Shard, BlockCyclic, StridedShard, Zigzag, SectionedShard, Replicate, Partial, written as 'Shard(0)'"
    )


# ---- distributions


def random_mesh(dice: Random, rank: int) -> tuple[list[int], list[Placement]]:
    mesh = [dice.choice((1, 2, 3)) for _ in range(dice.randint(1, 3))]
    return mesh, [Partial() if dice.random() < 0.2 else random_placement(dice, rank) for _ in mesh]


@each_of("seed", range(60))
def test_holders_are_those_whose_part_has_the_element(seed: int) -> None:
    """Also devices that count by columns, and modes that divide in another order."""
    dice = Random(seed)
    shape = random_shape(dice)
    mesh, placements = random_mesh(dice, len(shape))
    order = dice.choice(("row", "column"))
    sequence = dice.sample(range(len(mesh)), len(mesh))
    made = distribute(shape, mesh, placements, order=order, first=sequence)
    devices = list(itertools.product(*[range(n) for n in mesh]))
    numbers = {}
    for at in devices:
        strides = [math.prod(mesh[i + 1 :] if order == "row" else mesh[:i]) for i in range(len(mesh))]
        numbers[at] = sum(i * s for i, s in zip(at, strides, strict=True))
    held: dict[int, list[list[int]]] = {}
    for at in devices:
        own = [list(range(n)) for n in shape]
        for mode in sequence:
            placement = placements[mode]
            if not isinstance(placement, (Replicate, Partial)):
                whole = own[placement.dim]
                pieces = placement.pieces(len(whole), mesh[mode], at[mode]).tolist()
                own[placement.dim] = [whole[i] for start, n in pieces for i in range(start, start + n)]
        held[numbers[at]] = own
    for device, own in held.items():
        assert made.local_shape(device) == tuple(map(len, own))
        first = tuple(one[0] if one else n for one, n in zip(own, shape, strict=True))
        assert made.local_offset(device) == first
    for _ in range(6):
        coordinate = tuple(dice.randrange(n) for n in shape)
        wanted = [d for d, own in held.items() if all(c in one for c, one in zip(coordinate, own, strict=True))]
        assert made.holders(coordinate) == tuple(sorted(wanted))


def test_summands_are_those_of_the_partial_modes() -> None:
    made = distribute(8, (2, 3, 2), [Partial(), Shard(0), Partial()])
    assert made.partial_devices == (0, 1, 6, 7)
    assert made.holders((4,)) == (2, 3, 8, 9)
    column = distribute(8, (2, 3, 2), [Partial(), Shard(0), Partial()], order="column")
    assert column.partial_devices == (0, 6, 1, 7)
    assert column.holders((4,)) == (2, 3, 8, 9)
    assert distribute(8, 2, [Shard(0)]).partial_devices == (0,)


@pytest.mark.parametrize(
    ("shape", "mesh", "placements", "why"),
    [
        (10, 4, [Shard(0)], "Shard(dim=0) over 4 does not divide dimension 0 of 10 evenly"),
        ((4, 6), 4, [Shard(1)], "Shard(dim=1) over 4 does not divide dimension 1 of 6 evenly"),
        (16, 2, [Zigzag(0)], "Zigzag(dim=0) over 2 does not divide dimension 0 of 16 evenly"),
        (12, 2, [SectionedShard(0, (8, 4))], "does not divide dimension 0 of 12 evenly"),
        (12, (2, 3), [BlockCyclic(0, 2), Shard(0)], ""),
        (36, (3, 3), [BlockCyclic(0, 3), Shard(0)], "Shard(dim=0) over 3 cuts a block of the placement before"),
        (8, (2, 2), [BlockCyclic(0, 1), Shard(0)], ""),
        ((6, 4), 1, [Shard(0)], ""),
    ],
)
def test_why_there_is_no_single_layout(shape: Any, mesh: Any, placements: Any, why: str) -> None:
    made = distribute(shape, mesh, placements)
    assert (made.layout is None) == bool(why)
    assert why in made.why_no_layout and bool(made.why_no_layout) == bool(why)
    if made.layout is not None:
        for device in range(made.devices):
            for coordinate, place in places(made, device).items():
                got = (*map(int, cute.as_arith_tuple(made.layout(*coordinate))), 0, 0)
                assert got[:2] == (device, place)


def test_a_dimension_that_is_divided_again_and_again() -> None:
    """Where there is a single layout, it is the function; elsewhere a text says which division has none."""
    found = 0
    for seed in range(300):
        dice = Random(seed)
        size = dice.choice((8, 12, 16, 18, 24, 27, 36, 48, 54, 64, 72))
        mesh = [dice.choice((2, 3, 4)) for _ in range(dice.choice((2, 3)))]
        kinds = [
            dice.choice((BlockCyclic(0, dice.randint(1, 6)), StridedShard(0, dice.randint(1, 4)), Shard(0)))
            for _ in mesh
        ]
        made = distribute(size, mesh, kinds)
        assert (made.layout is None) == (f"dimension 0 of {size}" in made.why_no_layout)
        if made.layout is None:
            continue
        found += 1
        for device in range(made.devices):
            for coordinate, place in places(made, device).items():
                got = (*map(int, cute.as_arith_tuple(made.layout(*coordinate))), 0, 0)
                assert got[:2] == (device, place), (size, mesh, kinds)
    assert found > 30


def test_swizzled_parts_have_no_single_layout() -> None:
    swizzled = ComposedLayout(Swizzle(1, 0, 1), 0, Layout((4, 4), (4, 1)))
    made = distribute((8, 4), 2, [Shard(0)], local=swizzled)
    assert (made.layout, made.why_no_layout) == (None, "the part of each device is swizzled")
    assert made.local_layout(1) == swizzled


@pytest.mark.parametrize(
    "local",
    [
        "row",
        "column",
        Layout((4, 3), (1, 4)),
        Layout((4, 3), (5, 1)),
        Layout(((2, 2), 3), ((1, 6), 2)),
        ComposedLayout(Layout(1, 1), 7, Layout((4, 3), (3, 1))),
        ComposedLayout(Swizzle(1, 0, 2), 0, Layout((4, 3), (4, 1))),
        lambda shape: Layout(shape, (1, shape[0])),
    ],
)
def test_parts_lie_in_memory_as_their_layout_says(local: Any) -> None:
    whole = np.arange(24, dtype=np.int32).reshape(8, 3)
    plain, there = distribute((8, 3), 2, [Shard(0)]), distribute((8, 3), 2, [Shard(0)], local=local)
    got = redistribute(plain, there, "int32").run(scattered(plain, whole))
    for device in range(2):
        layout = there.local_layout(device)
        table = np.asarray(cute.offsets(layout)).reshape(4, 3, order="F")
        assert np.array_equal(got[device].ravel()[table], whole[4 * device : 4 * device + 4])
    back = redistribute(there, plain, "int32").run(got)
    assert all(np.array_equal(back[d], whole[4 * d : 4 * d + 4]) for d in range(2))


def test_digests_tell_distributions_apart() -> None:
    made = [
        distribute((8, 6), 2, [Shard(0)]),
        distribute((8, 6), 2, [Shard(1)]),
        distribute((6, 8), 2, [Shard(0)]),
        distribute((8, 6), (1, 2), [Replicate(), Shard(0)]),
        distribute((8, 6), (2, 2), [Replicate(), Shard(0)]),
        distribute((8, 6), (2, 2), [Shard(0), Replicate()]),
        distribute((8, 6), (2, 2), [Partial(), Shard(0)]),
        distribute((8, 6), 2, [BlockCyclic(0, 1)]),
        distribute((8, 6), 2, [Shard(0)], local="column"),
        distribute((8, 6), 2, [Shard(0)], local=Layout((4, 6), (1, 5))),
        distribute((8, 6), 2, [Shard(0)], local=lambda shape: Layout(shape, (1, 9))),
        ShardedLayout(Layout((2, 4), (E(0), E(1))), 2),
        ShardedLayout(Layout((2, 4), (E(0), E(1) * 2)), 2),
        ShardedLayout(Layout((2, 4), (E(0), E(1))), 4, Layout(2, 2)),
    ]
    digests = [one.digest() for one in made]
    assert len(set(digests)) == len(made)
    assert all(len(one) == 64 and int(one, 16) >= 0 for one in digests)
    again = distribute((8, 6), 2, [Shard(0)], local=lambda shape: Layout(shape, (1, 9)))
    assert again.digest() == made[10].digest()
    assert StridedShard(0, 1) != Shard(0)
    assert distribute((8, 6), 2, [StridedShard(0, 1)]).digest() == made[0].digest()  # the same parts at the same places


def test_explanations_list_devices() -> None:
    made = distribute((8, 6), (2, 2), [Shard(0), Replicate()])
    assert made.explain() == (
        "8x6 over 2x2 devices: Shard(dim=0), Replicate()\n"
        "  device 0: (4, 6) from (0, 0)\n"
        "  device 1: (4, 6) from (0, 0)\n"
        "  device 2: (4, 6) from (4, 0)\n"
        "  device 3: (4, 6) from (4, 0)\n"
        "  (device, offset) = ((4,2),6):((6@1,2@0),1@1)\n"
        "  replicas (2):(1)"
    )
    for devices, lines in ((12, 14), (13, 15)):
        text = distribute(10, devices, [Shard(0)]).explain()
        assert text.count("\n") + 1 == lines
        assert ("  and 1 more" in text) == (devices == 13)
        assert f"no single layout: Shard(dim=0) over {devices} does not divide dimension 0 of 10 evenly" in text
    given = ShardedLayout(Layout((2, 4), (E(0), E(1))), 2)
    assert str(given) == "2x4 over 2 devices: (2,4):(_1@0,_1@1)"
    assert given.layout is given._given and given.why_no_layout == ""


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: distribute(8, (2, 2), [Shard(0)]),
            InvalidValueError,
            "placements has 1 entries; must have 2, one for each mode",
        ),
        (
            lambda: distribute(8, (2, 2), [Shard(0)] * 2, first=(0, 0)),
            InvalidValueError,
            "first = (0, 0); must list each",
        ),
        (
            lambda: distribute(8, (2, 2), [Shard(0)] * 2, first=(0, 2)),
            InvalidValueError,
            "first[1] = 2; must be 0 to 1",
        ),
        (lambda: distribute(8, (2, 2), [Shard(0)] * 2, first=(0,)), InvalidValueError, "first"),
        (lambda: distribute(8, 2, [Shard(0)], order="rows"), InvalidValueError, "order = 'rows'; must be one of"),
        (lambda: distribute(8, 2, [Shard(0)], uneven="x"), InvalidValueError, "uneven = 'x'; must be one of"),
        (lambda: distribute(8, 2, [Shard(0)], local="rows"), InvalidValueError, "local = 'rows'; must be one of"),
        (lambda: distribute(8, 2, [StridedShard(0, 0)]), InvalidValueError, "placements[0].split_factor = 0; must be"),
        (lambda: distribute(8, 2, [Shard(-1)]), InvalidValueError, "placements[0].dim = -1; must be 0 to 0"),
        (lambda: distribute(8, 2, [3]), InvalidTypeError, "placements[0] must be a placement, got int 3"),
        (lambda: distribute(8, (), []), InvalidValueError, "mesh_shape = (); must have at least 1 mode"),
        (lambda: distribute(8, 2, [Shard(0)]).holders((1, 2)), InvalidValueError, "the coordinate"),
        (
            lambda: distribute(8, 2, [Shard(0)]).holders((8,)),
            InvalidValueError,
            "coordinate[0] = 8; must be below 8",
        ),
        (lambda: distribute(8, 2, [Shard(0)]).local_shape(2), InvalidValueError, "the device is 2; must be 0 to 1"),
        (
            lambda: distribute(8, 2, [Shard(0)], local=lambda shape: "x").local_layout(0),
            InvalidTypeError,
            "a local layout must be a Layout, got str 'x'",
        ),
        (
            lambda: ShardedLayout(Layout((1 << 24) + 1, E(1)), 1),
            InvalidValueError,
            "the dimension has 16777217 elements in arbitrary order; must have at most 16777216 for a lookup",
        ),
        (
            lambda: ShardedLayout(Layout(4, E(2)), 4),
            InvalidTypeError,
            "a layout over devices must give (device, offset)",
        ),
        (lambda: ShardedLayout(Layout(4, 3), 4), InvalidTypeError, "a layout over devices must give (device, offset)"),
        (
            lambda: ShardedLayout(Layout(4, -1 * E(0)), 4),
            LayoutError,
            "the coordinates are on devices -3 to 0; a mesh of 4",
        ),
    ],
)
def test_refused_in_words(call: Any, error: type[CuteError], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert text in caught.value.headline


def test_a_layout_whose_modes_stay_on_a_device() -> None:
    """A mode without a stride, or of one element, is on the first device, at its first place."""
    made = ShardedLayout(Layout((1, 4, 2), (0, E(0), E(1))), 4)
    assert [made.local_shape(d) for d in range(4)] == [(1, 1, 2)] * 4
    assert [made.local_offset(d) for d in range(4)] == [(0, d, 0) for d in range(4)]
    alone = ShardedLayout(Layout((4, 3), (E(1), E(1) * 4)), 2)
    assert (alone.local_shape(0), alone.local_shape(1), alone.local_offset(1)) == ((4, 3), (0,), (4, 3))


# ---- who sends


def senders(source: ShardedLayout, destination: ShardedLayout, per_host: int) -> dict[int, dict[tuple[int, ...], int]]:
    """Device -> holders of elements that it needs -> the one that sends them: itself, else of its host, else any, of
    these the one with fewest elements so far, the first of several."""
    load = dict.fromkeys(range(source.devices), 0)
    held = {coordinate: source.holders(coordinate) for coordinate in np.ndindex(*source.shape)}
    found: dict[int, dict[tuple[int, ...], int]] = {}
    for device in range(destination.devices):
        counts: dict[tuple[int, ...], int] = {}
        for coordinate in places(destination, device):
            holders = held[coordinate]
            counts[holders] = counts.get(holders, 0) + 1
        chosen = {}
        for holders in counts:
            chosen[holders] = min(holders, key=lambda h: (h != device, h // per_host != device // per_host, load[h], h))
        for holders, sender in chosen.items():
            load[sender] += counts[holders] * (sender != device)
        found[device] = chosen
    return found


@each_of("seed", range(20))
def test_elements_come_from_the_device_itself_its_host_or_who_sends_least(seed: int) -> None:
    dice = Random(seed)
    shape = random_shape(dice)
    mesh = dice.choice(([2], [4], [2, 2], [2, 3], [3, 2], [2, 2, 2]))
    kinds: list[Placement] = [dice.choice((Replicate(), random_placement(dice, len(shape)))) for _ in mesh]
    source = distribute(shape, mesh, kinds)
    devices = source.devices
    destination = distribute(shape, devices, [dice.choice((Replicate(), Shard(0)))])
    per_host = dice.choice((2, 3, 4, devices))
    plan = redistribute(source, destination, "f32", devices_per_host=per_host)
    wanted = senders(source, destination, per_host)
    for device in range(devices):
        at = {place: coordinate for coordinate, place in places(destination, device).items()}
        seen = set()
        for transfer in plan.transfers(device):
            holders = source.holders(at[transfer.destination])
            assert transfer.source_device == wanted[device][holders], (plan, device)
            seen.add(holders)
        assert seen == set(wanted[device])
    assert plan.devices_per_host == per_host


def test_the_order_in_which_devices_are_asked_for_changes_nothing() -> None:
    source = distribute((6, 8), (2, 3), [Replicate(), Shard(0)])
    destination = distribute((6, 8), 6, [Replicate()])
    in_order = redistribute(source, destination, "f32", devices_per_host=2)
    backwards = redistribute(source, destination, "f32", devices_per_host=2)
    late = {d: list(backwards.transfers(d)) for d in reversed(range(6))}
    assert {d: list(in_order.transfers(d)) for d in range(6)} == late
    assert [t for d in range(6) for t in late[d]] == list(in_order.transfers())


@each_of("seed", range(24))
def test_groups_of_a_source_are_those_that_it_sends(seed: int) -> None:
    dice = Random(seed)
    shape = random_shape(dice)
    mesh, placements = random_mesh(dice, len(shape))
    source = distribute(shape, mesh, placements)
    destination = distribute(shape, max(source.devices, 1), [Shard(0)])
    plan = redistribute(source, destination, "f32")
    for device in range(destination.devices):
        groups = list(plan.groups(device))
        for sender in range(source.devices):
            mine = [group for group in groups if any(t.source_device == sender for t in group)]
            assert list(plan.groups(device, sender)) == mine
        for group in groups:
            first, *others = group
            assert not first.adds and all(t.adds for t in others)
            assert [t.source_device - first.source_device for t in group] == list(source.partial_devices)
            assert {(t.source, t.destination, t.modes, t.elements) for t in group} == {
                (first.source, first.destination, first.modes, first.elements)
            }


def test_bytes_are_counted_in_whole_bytes() -> None:
    rows, columns = distribute((3, 3), 3, [Shard(0)]), distribute((3, 3), 3, [Shard(1)])
    for dtype, wanted in (("int4", 3), ("u8", 6), ("bf16", 12), ("f64", 48)):
        plan = redistribute(rows, columns, dtype)
        assert (plan.bytes_moved, plan.minimum_bytes) == (wanted, wanted)
    sums = redistribute(distribute(4, (2, 2), [Partial(), Shard(0)]), distribute(4, 4, [Replicate()]), "f32")
    assert sums.bytes_moved == sums.minimum_bytes == (4 * 4 * 2 - 4 * 2) * 4
    fewer = redistribute(distribute(8, 2, [Shard(0)]), distribute(8, 4, [Shard(0)]), "u8")
    assert fewer.bytes_moved == fewer.minimum_bytes == 6


def test_explanations_of_few_and_of_many_devices() -> None:
    plan = redistribute(distribute(12, 12, [Shard(0)]), distribute(12, 12, [Replicate()]), "u8")
    lines = plan.explain().split("\n")
    assert lines[2] == "elements from device (row) to device (column), uint8:"
    assert lines[3] == "     " + "".join(f"{j:9d}" for j in range(12))
    assert lines[4] == "    0" + "        1" * 12 and len(lines) == 17
    assert lines[-1] == "132 bytes move between devices, the minimum"
    many = redistribute(distribute(14, 13, [Shard(0)]), distribute(14, 13, [Replicate()]), "u8").explain()
    assert "  91 pairs of 2 elements" in many and many.count("\n") == 4
    assert str(plan) == "12 over 12 devices: Shard(dim=0) -> 12 over 12 devices: Replicate(), uint8"
    assert repr(plan) == f"<Redistribution {plan}>"


def test_plans_are_told_apart() -> None:
    rows, columns = distribute((4, 4), 2, [Shard(0)]), distribute((4, 4), 2, [Shard(1)])
    made = [
        redistribute(rows, columns, "f32"),
        redistribute(columns, rows, "f32"),
        redistribute(rows, columns, "u32"),
        redistribute(rows, columns, "f32", devices_per_host=1),
    ]
    assert len({one.digest() for one in made}) == 4
    assert redistribute(rows, columns, "float32", devices_per_host=2).digest() == made[0].digest()
    for arguments, text in (
        ((rows, columns, "f32", 0), "devices_per_host = 0; must be at least 1"),
        ((rows, "x", "f32", 1), "destination must be"),
        ((3, columns, "f32", 1), "source must be"),
    ):
        with pytest.raises(CuteError, match=text):
            redistribute(*arguments[:3], devices_per_host=arguments[3])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"seconds": 0}, "seconds = 0; must be 1 to"),
        ({"seconds": 0.0}, "seconds = 0.0; must be above 0"),
        ({"seconds": float("inf")}, "seconds = inf; must be above 0"),
        ({"seconds": float("nan")}, "seconds = nan; must be above 0"),
        ({"seconds": "1"}, "seconds must be a float, got str '1'"),
        ({"sms": 0}, "sms = 0; must be 1 to 65536"),
        ({"backend": "cuda"}, "backend, unless a Transport, = 'cuda'; must be one of"),
    ],
)
def test_options_of_a_run(options: Any, text: str) -> None:
    rows = distribute(4, 2, [Shard(0)])
    parts = {d: np.zeros(2, np.float32) for d in range(2)}
    with pytest.raises(CuteError) as caught:
        redistribute(rows, rows, "f32").prepare(parts, **options)
    assert caught.value.headline.startswith(text)
    redistribute(rows, rows, "f32").prepare(parts, seconds=1, sms=1, backend="host").launch()


# ---- transfers


def offsets_of(transfer: Transfer) -> list[tuple[int, int]]:
    index = np.arange(transfer.elements)
    both = (np.asarray(cute.offsets(one, index)) for one in (transfer.source_layout, transfer.destination_layout))
    return list(zip(*(one.ravel().tolist() for one in both), strict=True))


@pytest.mark.parametrize("most", [1, 2, 3, 7, 100])
def test_pieces_of_a_transfer_are_its_elements(most: int) -> None:
    for modes in ((), ((5, 1, 3),), ((4, 2, 1), (3, 9, 20)), ((2, 1, 1), (3, 4, 8), (5, 40, 50))):
        whole = Transfer(1, 2, math.prod(n for n, *_ in modes), 10, 100, modes, adds=True)  # type: ignore[arg-type]
        pieces = list(whole.pieces(lambda one: one.elements <= most))
        assert all(one.elements <= most for one in pieces)
        assert sorted(pair for one in pieces for pair in offsets_of(one)) == sorted(offsets_of(whole))
        assert {(one.source_device, one.destination_device, one.adds) for one in pieces} == {(1, 2, True)}
        assert all(mode.size > 1 for one in pieces for mode in one.modes)
        if whole.elements <= most:
            assert pieces == [whole]
    assert len(list(Transfer(0, 0, 12, 0, 0, ((4, 1, 1), (3, 4, 4))).pieces(lambda one: one.elements <= 4))) == 3  # type: ignore[arg-type]


def test_transfers_are_told() -> None:
    one = Transfer(np.int64(1), 2, 6, 0, 7, [(3, 1, 1), (2, 3, 8)], adds=True)  # type: ignore[arg-type]
    assert type(one.source_device) is int and one.modes[1].destination == 8
    assert str(one) == "1 +> 2: 6 elements, (3,2):(1,3) to 1:1 o 7 o (3,2):(1,8)"
    assert str(Transfer(0, 1, 1, 4, 0, ())) == "0 -> 1: 1 elements, 1:1 o 4 o 1:0 to 1:0"
    behind = ComposedLayout(Swizzle(1, 0, 1), 2, Layout(8))
    swizzled = Transfer(0, 1, 2, 3, 0, ((2, 1, 1),), source_swizzle=behind)  # type: ignore[arg-type]
    assert swizzled.source_layout == ComposedLayout(Swizzle(1, 0, 1), 5, Layout((2,), (1,)))
    for arguments, text in (
        ((1 << 63, 0, 1, 0, 0, ()), "source_device"),
        ((0, 0, 1, 0, 0, ((1, 2),)), "a mode"),
        ((0, 0, 1, 0, "x", ()), "destination must be an integer"),
    ):
        with pytest.raises(CuteError, match=text):
            Transfer(*arguments)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="adds must be a bool"):
        Transfer(0, 0, 1, 0, 0, (), adds=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="a swizzled layout must be"):
        Transfer(0, 0, 1, 0, 0, (), destination_swizzle=Layout(4))  # type: ignore[arg-type]


# ---- other frameworks


@each_of("seed", range(30))
def test_partition_specs_divide_once_by_the_product_of_their_axes(seed: int) -> None:
    dice = Random(seed)
    axes = dice.sample("abc", dice.randint(1, 3))
    mesh = [dice.choice((1, 2, 3)) for _ in axes]
    shape = [dice.choice((1, 5, 8, 12)) for _ in range(dice.randint(1, 3))]
    free, spec = list(axes), []
    for _ in range(dice.randint(0, len(shape))):
        named = tuple(free.pop(dice.randrange(len(free))) for _ in range(dice.randint(0, len(free))))
        spec.append(dice.choice((named, named[0])) if len(named) == 1 else named or None)
    made = from_partition_spec(shape, mesh, spec, axes)
    for device, at in enumerate(itertools.product(*[range(n) for n in mesh])):
        for dim, n in enumerate(shape):
            entry = spec[dim] if dim < len(spec) else None
            named = (entry,) if isinstance(entry, str) else entry or ()
            parts, part = 1, 0
            for axis in named:
                parts, part = parts * mesh[axes.index(axis)], part * mesh[axes.index(axis)] + at[axes.index(axis)]
            chunk = -(-n // parts)
            low, high = min(chunk * part, n), min(chunk * (part + 1), n)
            assert (made.local_offset(device)[dim], made.local_shape(device)[dim]) == (low, high - low)
            assert indices_of(distribute(shape, 1, [Replicate()]), 0)[dim] == list(range(n))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((8, (2, 2), ("x", "x"), "xy"), "spec[1]: 'x' is used twice"),
        ((8, (2, 2), (("x", "x"),), "xy"), "spec[0]: 'x' is used twice"),
        ((8, (2, 2), (3,), "xy"), "spec[0] must be"),
        ((8, (2, 2), (("z",),), "xy"), "spec[0]: 'z' is not an axis of the mesh"),
        ((8, (2, 2), ("x",), "x"), "mesh_shape"),
        ((8, (2,), ("x",), [1]), "an axis of the mesh must be a str"),
    ],
)
def test_partition_specs_that_are_refused(arguments: Any, text: str) -> None:
    with pytest.raises(CuteError) as caught:
        from_partition_spec(*arguments)
    assert text in caught.value.headline


def test_local_layouts_of_partition_specs() -> None:
    made = from_partition_spec((4, 6), 2, ("x",), ["x"], local="column")
    assert str(made.local_layout(0)) == "(2,6):(_1,2)"


def tensor(*placements: Any, mesh: tuple[int, ...] = (2, 2)) -> Any:
    class Mesh:
        shape = mesh

    class Tensor:
        shape = (8, 6)
        device_mesh = Mesh()

    made = Tensor()
    made.placements = placements  # type: ignore[attr-defined]
    return made


def test_placements_of_dtensor_are_read_by_name() -> None:
    class _Partial:
        reduce_op = "sum"

    class Named:
        def __init__(self, name: str, **fields: Any) -> None:
            self.__dict__ |= fields
            self.__class__ = type(name, (), {})

    for given, wanted in (
        (Named("Shard", dim=1), Shard(1)),
        (Named("StridedShard", dim=1, split_factor=3), StridedShard(1, 3)),
        (Named("_StridedShard", dim=1, split_factor=3), StridedShard(1, 3)),
        (Named("Replicate"), Replicate()),
        (Named("Partial", reduce_op="sum"), Partial()),
        (_Partial(), Partial("sum")),
    ):
        assert from_dtensor(tensor(given, Named("Replicate"))).placements == (wanted, Replicate())
    with pytest.raises(InvalidTypeError, match=r"^Other .* is not a supported placement"):
        from_dtensor(tensor(Named("Other"), Named("Replicate")))
    with pytest.raises(InvalidTypeError, match="a DTensor"):
        from_dtensor(3)
