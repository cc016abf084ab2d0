"""Post-conditions of the algebra, checked element by element."""

from __future__ import annotations

import itertools

from hypothesis import assume, given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import Int, Layout
from cute_py.errors import CompositionMismatchError, LayoutError, StaticAssertError
from cute_py.testing.strategies import flat, injective_layouts, layouts, table

ANY = layouts(kinds=("compact", "gaps", "zeros", "wild", "negative"), static=None)
SMALL = layouts(kinds=("compact", "gaps"), sizes=(1, 2, 3, 4), max_rank=2, depth=1)


@given(ANY)
def test_coalesce_is_the_same_function_with_fewer_modes(a: Layout) -> None:
    r = cute.coalesce(a)
    assert table(r) == table(a)
    assert cute.depth(r) <= 1
    assert len(flat(r.shape)) <= len(flat(a.shape))
    assert cute.coalesce(r) == r


@given(layouts())
def test_coalesced_neighbours_do_not_merge(a: Layout) -> None:
    r = cute.coalesce(a)
    s, d = flat(r.shape), flat(r.stride)
    assert all(s[i] * d[i] != d[i + 1] for i in range(len(s) - 1))
    assert r == Layout(Int(1), Int(0)) or 1 not in s


@given(layouts(depth=2), st.data())
def test_coalesce_by_profile_keeps_every_mode(a: Layout, data: st.DataObject) -> None:
    rank = int(cute.rank(a))
    profile = tuple([1] * data.draw(st.integers(1, rank)))
    r = cute.coalesce(a, profile)
    assert int(cute.rank(r)) == rank
    assert [table(r[i]) for i in range(rank)] == [table(a[i]) for i in range(rank)]


@given(ANY)
def test_filter_keeps_the_image(a: Layout) -> None:
    assert sorted(set(table(cute.filter(a)))) == sorted(set(table(a)))


@given(layouts(), layouts(kinds=("compact", "gaps", "zeros"), sizes=(1, 2, 3, 4), max_rank=2))
def test_strict_composition_is_the_function_or_refuses(a: Layout, b: Layout) -> None:
    try:
        r = cute.composition(a, b, strict=True)
    except (StaticAssertError, CompositionMismatchError):
        return
    assert table(r) == [int(a(int(b(i)))) for i in range(int(cute.size(b)))]
    assert cute.compatible(b, r)


@given(
    layouts(sizes=(1, 2, 4, 8), kinds=("compact", "zeros")), layouts(sizes=(1, 2, 4), kinds=("compact",), max_rank=2)
)
def test_powers_of_two_always_compose(a: Layout, b: Layout) -> None:
    r = cute.composition(a, b)
    assert table(r) == [int(a(int(b(i)))) for i in range(int(cute.size(b)))]


@given(layouts(), st.data())
def test_a_by_mode_tiler_composes_each_mode(a: Layout, data: st.DataObject) -> None:
    rank = int(cute.rank(a))
    tiler = tuple(data.draw(st.sampled_from([None, Int(1), Int(2)])) for _ in range(data.draw(st.integers(1, rank))))
    try:
        r = cute.composition(a, tiler)
    except StaticAssertError:
        return
    assert int(cute.rank(r)) == len(tiler)
    for i, t in enumerate(tiler):
        assert table(r[i]) == (table(a[i]) if t is None else [int(a[i](k)) for k in range(int(t))])


@given(layouts(), st.integers(1, 200))
def test_complement_fills_what_the_layout_leaves_out(a: Layout, target: int) -> None:
    """Up to the first multiple of the layout's period that holds the target: no offset twice, and each one where every
    stride is a multiple of the end of the modes below it."""
    try:
        r = cute.complement(a, Int(target))
    except StaticAssertError:
        assume(False)
    moving = cute.filter(a)
    modes = sorted(zip(flat(moving.stride), flat(moving.shape), strict=True))
    ends = [1, *(int(d) * int(n) for d, n in modes if d)]
    rounded = -(-target // ends[-1]) * ends[-1]
    offsets = table(cute.make_layout(moving, r))
    assert len(set(offsets)) == len(offsets)
    assert max(offsets) < rounded
    if all(d % end == 0 for (d, _), end in zip(modes, ends, strict=False)):
        assert sorted(offsets) == list(range(rounded))
    starts = table(r)
    assert all(x < y for x, y in itertools.pairwise(starts))


@given(injective_layouts())
def test_a_layout_and_its_complement_are_one_to_one(a: Layout) -> None:
    assume(cute.filter(a) == cute.coalesce(a))
    target = Int(4) * cute.cosize(a)
    try:
        r = cute.complement(a, target)
    except StaticAssertError:
        return
    offsets = table(cute.make_layout(a, r))
    assert len(set(offsets)) == len(offsets)


@given(layouts(kinds=("compact", "gaps", "zeros", "wild", "negative"), static=None))
def test_right_inverse(a: Layout) -> None:
    r = cute.right_inverse(a)
    for i in range(int(cute.size(r))):
        assert int(a(int(r(i)))) == i


@given(layouts(kinds=("compact",)))
def test_right_inverse_of_a_bijection_is_whole(a: Layout) -> None:
    assert int(cute.size(cute.right_inverse(a))) == int(cute.size(a))


@given(layouts())
def test_left_inverse(a: Layout) -> None:
    """Where what moves is one-to-one; C++ has results for other layouts too, which invert nothing."""
    assume(cute.is_injective(cute.filter(a)))
    try:
        r = cute.left_inverse(a)
    except StaticAssertError:
        return
    for i in range(int(cute.size(a))):
        assert int(a(int(r(int(a(i)))))) == int(a(i))


@given(injective_layouts())
def test_left_inverse_of_a_one_to_one_layout_gives_the_index_back(a: Layout) -> None:
    try:
        r = cute.left_inverse(a)
    except StaticAssertError:
        return
    assert [int(r(int(a(i)))) for i in range(int(cute.size(a)))] == list(range(int(cute.size(a))))


@given(layouts(kinds=("zeros", "wild")))
def test_nullspace_maps_to_zero(a: Layout) -> None:
    n = cute.nullspace(a)
    assert {int(a(int(n(i)))) for i in range(int(cute.size(n)))} == {0}


@given(layouts(), SMALL)
def test_divides_rearrange_one_divide(a: Layout, b: Layout) -> None:
    try:
        r = cute.logical_divide(a, b)
        whole = cute.composition(a, b)
    except StaticAssertError:
        return
    assert table(r[0]) == table(whole)
    assert int(cute.rank(r)) == 2
    for other in (cute.zipped_divide(a, b), cute.tiled_divide(a, b), cute.flat_divide(a, b)):
        assert sorted(table(other)) == sorted(table(r))


@given(layouts(sizes=(1, 2, 4, 8), kinds=("compact", "zeros")), st.data())
def test_dividing_evenly_visits_every_element_once(a: Layout, data: st.DataObject) -> None:
    shape = a.shape if isinstance(a.shape, tuple) else (a.shape,)
    tiler = tuple(
        Int(data.draw(st.sampled_from([n for n in (1, 2, 4, 8) if int(cute.size(s)) % n == 0]))) for s in shape
    )
    r = cute.zipped_divide(a, tiler)
    assert sorted(table(r)) == sorted(table(a))
    assert int(cute.size(r[0])) == int(cute.size(tiler))
    assert table(cute.tiled_divide(a, tiler)) == table(r) == table(cute.flat_divide(a, tiler))


@given(injective_layouts(sizes=(1, 2, 3, 4), max_rank=2), SMALL)
def test_products_repeat_the_block(a: Layout, b: Layout) -> None:
    try:
        r = cute.logical_product(a, b)
    except StaticAssertError:
        return
    assert r[0] == a
    assert cute.compatible(b, r[1])
    assert int(cute.size(r)) == int(cute.size(a)) * int(cute.size(b))
    for other in (cute.zipped_product(a, b), cute.tiled_product(a, b), cute.flat_product(a, b)):
        assert table(other) == table(r)


@given(
    layouts(kinds=("compact",), sizes=(1, 2, 4), max_rank=2), layouts(kinds=("compact",), sizes=(1, 2, 4), max_rank=2)
)
def test_blocked_and_raked_products_hold_the_same_elements(a: Layout, b: Layout) -> None:
    try:
        blocked, raked = cute.blocked_product(a, b), cute.raked_product(a, b)
    except StaticAssertError:
        return
    assert sorted(table(blocked)) == sorted(table(raked)) == list(range(int(cute.size(a)) * int(cute.size(b))))
    rank = max(int(cute.rank(a)), int(cute.rank(b)))
    assert int(cute.rank(blocked)) == int(cute.rank(raked)) == rank
    first, second = cute.append(a, None, rank), cute.append(b, None, rank)
    for i in range(rank):
        assert int(cute.size(blocked, i)) == int(cute.size(first, i)) * int(cute.size(second, i))


@given(layouts(kinds=("compact",), sizes=(1, 2, 4), max_rank=2, depth=1), st.data())
def test_tile_to_shape_has_the_shape_and_keeps_the_block(block: Layout, data: st.DataObject) -> None:
    assume(isinstance(block.shape, tuple))
    counts = [data.draw(st.sampled_from((1, 2, 3))) for _ in block.shape]
    target = tuple(Int(int(s) * n) for s, n in zip(block.shape, counts, strict=True))
    order = tuple(Int(i) for i in data.draw(st.permutations(range(len(counts)))))
    r = cute.tile_to_shape(block, target, order)
    assert cute.compatible(target, r)
    assert sorted(table(r)) == list(range(int(cute.size(target))))
    assert table(cute.composition(r, block.shape)) == table(cute.coalesce(block, tuple([1] * len(block.shape))))


@given(layouts(), layouts())
def test_max_common_layout_is_contiguous_in_both(a: Layout, b: Layout) -> None:
    try:
        r = cute.max_common_layout(a, b)
    except LayoutError:
        return
    n = int(cute.size(r))
    assert [int(a(int(r(i)))) for i in range(n)] == list(range(n)) == [int(b(int(r(i)))) for i in range(n)]
    assert int(cute.max_common_vector(a, b)) == n


@given(layouts(kinds=("compact", "zeros", "gaps"), static=None))
def test_make_layout_like_is_compact_in_the_same_order(a: Layout) -> None:
    r = cute.make_layout_like(a)
    assert cute.congruent(a, r)
    assert int(cute.cosize(cute.filter(r))) == int(cute.size(cute.filter(r)))
