"""Swizzled layouts: as functions, sliced, recast, inverted, and in the F2 view."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import ComposedLayout, Int, Layout, Swizzle
from cute_py.errors import LayoutError, StaticAssertError
from cute_py.testing.strategies import coordinates_of, flat, layouts, slices_of, swizzled_layouts, swizzles, table

POWERS = layouts(kinds=("compact", "zeros"), sizes=(1, 2, 4, 8), max_rank=2)


def is_linear(layout: Any) -> bool:
    try:
        cute.linear(layout)
    except LayoutError:
        return False
    return True


def bitwise(swizzle: Swizzle, offset: int) -> int:
    """The definition, bit by bit: Z bit i is XORed with Y bit i."""
    out = offset
    for i in range(swizzle.bits):
        y = swizzle.base + max(swizzle.shift, 0) + i
        z = swizzle.base - min(swizzle.shift, 0) + i
        out ^= (offset >> y & 1) << z
    return out


@given(swizzles(), st.integers(0, 1 << 40))
def test_the_functor_is_its_definition_and_its_own_inverse(sw: Swizzle, offset: int) -> None:
    assert sw(offset) == bitwise(sw, offset)
    assert sw(sw(offset)) == offset
    assert sw(Int(offset)) == Int(bitwise(sw, offset))
    assert str(sw(Int(offset))) == f"_{bitwise(sw, offset)}"


@given(
    swizzles(),
    st.lists(st.integers(0, 250), min_size=1),
    st.sampled_from(["uint8", "int16", "int32", "uint64", object]),
)
def test_arrays_are_swizzled_element_by_element(sw: Swizzle, values: list[int], dtype: Any) -> None:
    assert sw(np.array(values, dtype)).tolist() == [sw(v) for v in values]


@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 4), st.sampled_from((-4, -3, 3, 4)))
def test_two_swizzles_of_one_base_and_shift_compose(a: int, b: int, base: int, shift: int) -> None:
    outer, inner = Swizzle(a, base, shift), Swizzle(b, base, shift)
    both = cute.composition(outer, inner)
    assert all(both(i) == outer(inner(i)) for i in range(0, 1 << 12, 7))


@given(swizzles(), swizzles())
def test_two_swizzles_of_different_shifts_are_refused(a: Swizzle, b: Swizzle) -> None:
    assume(a.shift != b.shift)
    with pytest.raises(StaticAssertError):
        cute.composition(a, b)


@given(swizzled_layouts(), st.sampled_from((0, 0, 1, 4, 8, 37)), st.booleans(), st.data())
def test_a_slice_and_its_offset_give_the_same_elements(
    layout: ComposedLayout, start: int, static: bool, data: st.DataObject
) -> None:
    assume(isinstance(layout.shape, tuple))
    coord = data.draw(slices_of(layout.shape))
    layout = ComposedLayout(layout.outer, Int(start) if static else start, layout.inner)
    kept, offset = cute.slice_and_offset(coord, layout)
    for i in range(int(cute.size(kept))):
        whole = put(coord, cute.idx2crd(i, tuple(int(cute.size(s)) for s in sliced_shape(coord, layout.shape))))
        assert int(offset) + int(kept(i)) == int(layout(whole))


@given(swizzled_layouts(static=False), st.data())
def test_the_same_with_run_time_numbers(layout: ComposedLayout, data: st.DataObject) -> None:
    assume(isinstance(layout.shape, tuple))
    coord = data.draw(slices_of(layout.shape))
    kept, offset = cute.slice_and_offset(coord, layout)
    for i in range(int(cute.size(kept))):
        whole = put(coord, cute.idx2crd(i, tuple(int(cute.size(s)) for s in sliced_shape(coord, layout.shape))))
        assert int(offset) + int(kept(i)) == int(layout(whole))


def sliced_shape(coord: Any, shape: Any) -> tuple[Any, ...]:
    return cute.slice_(coord, shape)


def put(coord: Any, values: Any) -> Any:
    """The coordinate with its `_` replaced by values, one after another."""
    rest = iter(values)
    return tuple(int(next(rest)) if c is None else c for c in coord)


@given(swizzled_layouts())
def test_right_inverse_of_a_swizzled_layout(layout: ComposedLayout) -> None:
    # As C++, it is right where the swizzle moves only bits that the layout reaches, in the order that they keep.
    inverse = cute.right_inverse(layout.inner)
    assume((layout.outer.yyy_mask | layout.outer.zzz_mask) < int(cute.size(inverse)))
    assume(keeps_the_order_of_bits(inverse, layout.outer))
    try:
        r = cute.right_inverse(layout)
    except StaticAssertError:  # no Swizzle says it
        return
    for i in range(min(int(cute.size(r)), 256)):
        assert int(layout(int(r(i)))) == i


@given(swizzles(), POWERS, st.sampled_from((2, 4, 8)))
def test_recast_there_and_back(sw: Swizzle, inner: Layout, n: int) -> None:
    inner = cute.coalesce(inner)
    assume(1 in flat(inner.stride))
    layout = ComposedLayout(sw, Int(0), inner)
    down = cute.downcast(layout, n)
    assert cute.upcast(down, n) == layout
    assert sorted(table(down)) == sorted(o * n + k for o in table(layout) for k in range(n))


@given(swizzled_layouts(), st.data())
def test_dividing_a_swizzled_layout_divides_its_domain(layout: ComposedLayout, data: st.DataObject) -> None:
    rank = int(cute.rank(layout))
    tiler = tuple(Int(data.draw(st.sampled_from((1, 2)))) for _ in range(rank))
    r = cute.zipped_divide(layout, tiler)
    assert r == cute.composition(layout.outer, layout.offset, cute.zipped_divide(layout.inner, tiler))
    assert sorted(table(r)) == sorted(table(layout))


@given(swizzled_layouts())
def test_the_linear_view_is_the_function_and_comes_back(layout: ComposedLayout) -> None:
    assume(is_linear(layout))
    view = cute.linear(layout)
    n = int(cute.size(layout))
    assert [view(i) for i in range(n)] == table(layout)
    bits = view.matrix()
    index = np.arange(n)[None, :] >> np.arange(len(view.columns))[:, None] & 1
    rows = (bits.astype(int) @ index) % 2
    assert (rows * (1 << np.arange(len(rows)))[:, None]).sum(axis=0).tolist() == table(layout)
    back = view.to_layout()
    assert cute.same_function(back, layout)
    assert cute.linear(back).columns == view.columns


@given(swizzled_layouts())
def test_the_linear_inverse(layout: ComposedLayout) -> None:
    assume(is_linear(layout) and cute.is_bijective(layout))
    inverse = cute.linear(layout).inverse()
    assert [inverse(o) for o in table(layout)] == list(range(int(cute.size(layout))))
    assert cute.linear(layout).compose(inverse).columns == tuple(1 << k for k in range(len(inverse.columns)))


@given(swizzled_layouts(), swizzled_layouts())
def test_same_function_is_equality_of_all_offsets(a: ComposedLayout, b: ComposedLayout) -> None:
    assert cute.same_function(a, b) == (table(a) == table(b))
    assert cute.same_function(a, a.inner) == (table(a) == table(a.inner))
    under_it = ComposedLayout(a.outer, a.offset, b.inner)
    assert cute.same_function(a, under_it) == (table(a) == table(under_it))


@given(swizzled_layouts(), st.data())
def test_evaluation_is_outer_of_inner(layout: ComposedLayout, data: st.DataObject) -> None:
    coord = data.draw(coordinates_of(layout.shape))
    assert int(layout(coord)) == bitwise(layout.outer, int(layout.inner(coord)))


def keeps_the_order_of_bits(layout: Layout, swizzle: Swizzle) -> bool:
    """CuTe pairs the moved bits in ascending order; where a layout reorders them the result is another function."""
    moved = [
        [int(layout((mask & -mask) << i)) for i in range(swizzle.bits)] for mask in (swizzle.yyy_mask, swizzle.zzz_mask)
    ]
    return all(bits == sorted(bits) for bits in moved)


@given(POWERS, swizzles())
def test_layout_after_swizzle(a: Layout, sw: Swizzle) -> None:
    try:
        r = cute.composition(a, sw)
    except (LayoutError, ValueError):
        return
    n = int(cute.size(a))
    assume((sw.yyy_mask | sw.zzz_mask) < n and cute.is_injective(a))
    assume(keeps_the_order_of_bits(a, sw))
    assert [int(r(i)) for i in range(n)] == [int(a(sw(i))) for i in range(n)]
