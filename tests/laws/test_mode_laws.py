"""Modes, coordinates, slices, recasts and partitions."""

from __future__ import annotations

import math

from hypothesis import assume, given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import Int, Layout
from cute_py.errors import StaticAssertError
from cute_py.testing.strategies import coordinates_of, flat, injective_layouts, layouts, shapes, slices_of, table

ANY = layouts(kinds=("compact", "gaps", "zeros", "wild", "negative"), static=None)


@given(ANY, st.data())
def test_grouping_and_flattening_keep_the_function(a: Layout, data: st.DataObject) -> None:
    rank = int(cute.rank(a))
    begin = data.draw(st.integers(0, rank))
    end = data.draw(st.integers(begin, rank))
    assert table(cute.group_modes(a, begin, end)) == table(a)
    assert table(cute.flatten(a)) == table(a)
    assert cute.unflatten(cute.flatten(a), a.shape) == a


@given(ANY, st.data())
def test_select_take_append_replace(a: Layout, data: st.DataObject) -> None:
    assume(isinstance(a.shape, tuple))
    rank = int(cute.rank(a))
    order = data.draw(st.permutations(range(rank)))
    back = [order.index(i) for i in range(rank)]
    assert cute.select(cute.select(a, *order), *back) == a
    i = data.draw(st.integers(0, rank - 1))
    assert cute.take(a, i, i + 1)[0] == a[i]
    longer = cute.append(a, Layout(Int(2), Int(99)))
    assert cute.take(longer, 0, rank) == a
    assert longer[rank] == Layout(Int(2), Int(99))
    assert cute.replace(a, i, a[i]) == a
    assert cute.prepend(a, a[i])[0] == a[i]


@given(shapes(), st.data())
def test_index_and_coordinate_are_inverse(shape: object, data: st.DataObject) -> None:
    n = math.prod(flat(shape))
    i = data.draw(st.integers(0, n - 1))
    coord = cute.idx2crd(i, shape)
    assert cute.congruent(coord, shape)
    assert cute.crd2idx(coord, shape) == i
    assert cute.crd2crd(coord, shape, n) == i
    assert cute.crd2idx(coord, shape, Layout(shape).stride) == i


@given(ANY, st.data())
def test_every_form_of_a_coordinate_has_the_same_offset(a: Layout, data: st.DataObject) -> None:
    coord = data.draw(coordinates_of(a.shape))
    index = cute.crd2idx(coord, a.shape)
    natural = cute.idx2crd(int(index), a.shape)
    assert int(a(coord)) == int(a(int(index))) == int(a(natural)) == int(cute.crd2idx(coord, a.shape, a.stride))
    by_hand = sum(int(c) * int(d) for c, d in zip(flat(natural), flat(a.stride), strict=True))
    assert int(a(coord)) == by_hand


@given(ANY, st.data())
def test_a_slice_plus_its_offset_is_the_layout(a: Layout, data: st.DataObject) -> None:
    assume(isinstance(a.shape, tuple))
    coord = data.draw(slices_of(a.shape))
    kept, offset = cute.slice_and_offset(coord, a)
    assert kept == a(coord) == cute.slice_(coord, a)
    sizes = tuple(int(cute.size(s)) for s in cute.slice_(coord, a.shape))
    for i in range(int(cute.size(kept))):
        values = iter(cute.idx2crd(i, sizes))
        whole = tuple(int(next(values)) if c is None else c for c in coord)
        assert int(offset) + int(kept(i)) == int(a(whole))


@given(ANY, st.data())
def test_slice_and_dice_part_the_modes(a: Layout, data: st.DataObject) -> None:
    assume(isinstance(a.shape, tuple))
    coord = data.draw(slices_of(a.shape))
    kept, fixed = cute.slice_(coord, a), cute.dice(coord, a)
    assert int(cute.size(kept)) * int(cute.size(fixed)) == int(cute.size(a))


@given(layouts(kinds=("compact", "gaps")), st.sampled_from((2, 3, 4)))
def test_downcast_then_upcast(a: Layout, n: int) -> None:
    try:
        down = cute.downcast(a, n)
    except StaticAssertError:
        return
    assert cute.upcast(down, n) == a
    if cute.is_injective(a) and 1 not in flat(cute.coalesce(a).shape) and 1 in flat(cute.coalesce(a).stride):
        assert sorted(table(cute.downcast(cute.coalesce(a), n))) == sorted(
            o * n + k for o in table(a) for k in range(n)
        )


@given(injective_layouts(sizes=(2, 4, 8), depth=1), st.data())
def test_local_tiles_cover_the_layout_once(a: Layout, data: st.DataObject) -> None:
    assume(isinstance(a.shape, tuple))
    tiler = tuple(Int(data.draw(st.sampled_from((1, 2)))) for _ in a.shape)
    counts = tuple(int(s) // int(t) for s, t in zip(a.shape, tiler, strict=True))
    tensor = cute.make_tensor(cute.counting_iterator(0), a)
    seen: list[int] = []
    for i in range(math.prod(counts)):
        tile = cute.local_tile(tensor, tiler, cute.idx2crd(i, counts))
        seen += [int(tile(k)) for k in range(int(cute.size(tile)))]
    assert sorted(seen) == sorted(table(a))


@given(injective_layouts(sizes=(2, 4, 8), depth=1), st.data())
def test_local_partitions_cover_the_layout_once(a: Layout, data: st.DataObject) -> None:
    assume(isinstance(a.shape, tuple))
    shape = tuple(Int(data.draw(st.sampled_from((1, 2)))) for _ in a.shape)
    threads = Layout(shape, data.draw(st.sampled_from((cute.LayoutLeft, cute.LayoutRight))))
    tensor = cute.make_tensor(cute.counting_iterator(0), a)
    seen: list[int] = []
    for thread in range(int(cute.size(threads))):
        mine = cute.local_partition(tensor, threads, thread)
        seen += [int(mine(k)) for k in range(int(cute.size(mine)))]
    assert sorted(seen) == sorted(table(a))


@given(
    layouts(kinds=("compact",), sizes=(2, 4), depth=1, max_rank=2),
    layouts(kinds=("compact",), sizes=(1, 2, 4), depth=1, max_rank=2),
)
def test_thread_value_layouts_are_one_to_one(threads: Layout, values: Layout) -> None:
    assume(
        int(cute.rank(threads)) == int(cute.rank(values))
        and isinstance(threads.shape, tuple)
        and isinstance(values.shape, tuple)
    )
    tile, tv = cute.make_layout_tv(threads, values)
    n = int(cute.size(tile))
    assert sorted(table(tv)) == list(range(n))
    assert int(cute.size(tv, 0)) == int(cute.size(threads))
    whole = Layout(tuple(Int(2 * int(t)) for t in tile))
    copy = cute.TiledCopy(cute.copy_atom("UniversalCopy<float>", "float"), tv, tile)
    assert sorted(table(copy.tidfrg_S(whole))) == list(range(int(cute.size(whole))))
