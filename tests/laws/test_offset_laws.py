"""Arrays of offsets against the layout called element by element, and what is computed from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import ComposedLayout, E, Int, Layout, Swizzle
from cute_py.errors import InvalidTypeError, LayoutError
from cute_py.testing.strategies import coordinates_of, flat, layouts, shapes, swizzled_layouts, table

ANY = layouts(kinds=("compact", "gaps", "zeros", "wild", "negative"), static=None)


def sizes(layout: Any) -> tuple[int, ...]:
    return tuple(int(cute.size(layout, i)) for i in range(int(cute.rank(layout))))


@given(ANY)
def test_offsets_are_the_layouts_values(a: Layout) -> None:
    got = cute.offsets(a)
    assert got.shape == sizes(a)
    assert got.ravel(order="F").tolist() == table(a)


@given(swizzled_layouts(static=None), st.integers(0, 100))
def test_offsets_of_swizzled_layouts(a: ComposedLayout, start: int) -> None:
    for layout in (a, ComposedLayout(a.outer, start, a.inner)):
        got = cute.offsets(layout)
        assert got.shape == sizes(a)
        assert got.ravel(order="F").tolist() == table(layout)


@given(layouts(kinds=("wild",), sizes=(1, 2, 3, 4)), layouts(kinds=("compact",), sizes=(1, 2, 3)), st.integers(0, 20))
def test_offsets_of_a_layout_after_a_layout(outer: Layout, inner: Layout, start: int) -> None:
    layout = ComposedLayout(outer, start, inner)
    assert cute.offsets(layout).ravel(order="F").tolist() == table(layout)


@pytest.mark.parametrize(
    "layout",
    [
        ComposedLayout(Layout((4, 8)), Int(0), cute.make_identity_layout((2, 2))),
        ComposedLayout(Layout((4, 8)), cute.ArithTuple(1, 2), cute.make_identity_layout((2, 2))),
        ComposedLayout(Layout(((4, 3), 8)), cute.ArithTuple((1, 0), 2), Layout((2, 2, 2), (E(0, 0), E(0, 1), E(1)))),
        ComposedLayout(Swizzle(1, 0, 2), 0, ComposedLayout(Layout((4, 8)), Int(0), cute.make_identity_layout((2, 4)))),
    ],
    ids=str,
)
def test_offsets_of_a_layout_after_coordinates(layout: ComposedLayout) -> None:
    """An inner layout of basis strides gives coordinates, and the outer layout takes them as coordinates."""
    called = table(layout)
    assert cute.offsets(layout).ravel(order="F").tolist() == called
    assert cute.offsets(layout, list(range(len(called)))).tolist() == called
    assert cute.offsets(layout, tuple(cute.coordinates(layout, called).T)).tolist() == called


@pytest.mark.parametrize(
    ("outer", "offset"),
    [(Swizzle(1, 0, 2), cute.ArithTuple(0, 1)), (Layout((4, 8)), 1), (Layout((4, 8)), E(0))],
    ids=str,
)
def test_what_takes_no_coordinates_has_no_offsets(outer: Any, offset: Any) -> None:
    layout = ComposedLayout(outer, offset, cute.make_identity_layout((2, 2)))
    for evaluate in (cute.offsets, lambda one: cute.offsets(one, [0, 1]), lambda one: cute.coordinates(one, [0])):
        with pytest.raises(InvalidTypeError, match=r"offsets\(\) can't apply .* to coordinates of 2 modes"):
            evaluate(layout)


@given(shapes())
def test_offsets_of_basis_strides_are_coordinates(shape: Any) -> None:
    a = cute.make_identity_layout(shape)
    got = cute.offsets(a)
    n = len(flat(shape))
    rank = len(shape) if isinstance(shape, tuple) else 1
    rows = got.reshape(-1, n, order="F") if got.ndim == rank + 1 else got.ravel(order="F")[:, None]
    assert rows.tolist() == [flat(cute.idx2crd(i, shape)) for i in range(int(cute.size(shape)))]


@given(ANY, st.data())
def test_offsets_at_coordinates(a: Layout, data: st.DataObject) -> None:
    some = data.draw(st.lists(coordinates_of(a.shape), min_size=1, max_size=5))
    profiles = {str(cute.idx2crd(0, 1) if isinstance(c, int) else [isinstance(x, tuple) for x in c]) for c in some}
    assume(len(profiles) == 1 and all(isinstance(c, int) for c in some))
    assert cute.offsets(a, some).tolist() == [int(a(c)) for c in some]
    natural = [cute.idx2crd(c, a.shape) for c in some]
    if isinstance(a.shape, tuple):
        assert cute.offsets(a, natural).tolist() == [int(a(c)) for c in some]


@given(layouts(kinds=("compact", "gaps", "negative", "wild"), static=None))
def test_coordinates_take_offsets_back(a: Layout) -> None:
    values = cute.offsets(a)
    try:
        coords = cute.coordinates(a, values)
    except LayoutError:
        assert not cute.is_injective(a)
        return
    assert cute.is_injective(a)
    again = cute.offsets(a, tuple(np.moveaxis(coords, -1, 0)) if isinstance(a.shape, tuple) else coords[..., 0])
    assert again.tolist() == values.tolist()


@given(swizzled_layouts())
def test_coordinates_of_swizzled_offsets(a: ComposedLayout) -> None:
    assume(cute.is_injective(a) and isinstance(a.shape, tuple))
    values = cute.offsets(a)
    coords = cute.coordinates(a, values)
    assert cute.offsets(a, tuple(np.moveaxis(coords, -1, 0))).tolist() == values.tolist()


@given(ANY, ANY, st.integers(-40, 80))
def test_analysis_is_what_counting_says(a: Layout, b: Layout, shift: int) -> None:
    mine, other = table(a), [o + shift for o in table(b)]
    one_to_one = len(set(mine)) == len(mine)
    assert cute.is_injective(a) == one_to_one
    assert cute.overlaps(a) == (not one_to_one)
    assert cute.is_bijective(a) == (sorted(mine) == list(range(len(mine))))
    assert cute.overlaps(a, b, shift) == bool(set(mine) & set(other))
    print_ = cute.footprint(a)
    assert (print_.lowest, print_.highest, print_.distinct) == (min(mine), max(mine), len(set(mine)))


@given(ANY, ANY)
def test_same_function_is_equality_of_all_offsets(a: Layout, b: Layout) -> None:
    assert cute.same_function(a, b) == (table(a) == table(b))
    assert cute.same_function(a, cute.coalesce(a))


MODES_OF_TWO_AXES = st.lists(
    st.tuples(st.sampled_from((1, 2, 3, 4)), st.integers(-1, 3), st.integers(0, 1)), min_size=1, max_size=4
)


@given(MODES_OF_TWO_AXES, MODES_OF_TWO_AXES)
def test_same_function_of_basis_strides_is_equality_of_all_coordinates(
    x: list[tuple[int, int, int]], y: list[tuple[int, int, int]]
) -> None:
    a, b = (Layout(tuple(s for s, _, _ in one), tuple(n * E(axis) for _, n, axis in one)) for one in (x, y))
    from_a, from_b = (cute.offsets(one).reshape(-1, cute.offsets(one).shape[-1], order="F") for one in (a, b))
    assert cute.same_function(a, b) == (from_a.shape == from_b.shape and (from_a == from_b).all())
    assert cute.same_function(a, cute.coalesce(a))


@given(st.integers(0, 2), st.integers(0, 6), st.integers(1, 40), st.sampled_from((8, 16, 32, 64, 128)))
def test_bank_conflicts_by_counting(bits: int, base: int, step: int, width: int) -> None:
    """Against a count written as the rule says it: per phase and bank, the distinct 4-byte words."""
    sw = cute.Swizzle(bits, base, 3)
    lanes = [sw(i * step) * (width // 8) for i in range(32)]
    got = cute.bank_conflicts(ComposedLayout(sw, 0, Layout(32, step)), width)
    group = {64: 16, 128: 8}.get(width, 32)
    want = []
    for begin in range(0, 32, group):
        words = {(a + k) // 4 for a in lanes[begin : begin + group] for k in range(0, max(width // 8, 1), 4)}
        want.append(max(sum(1 for w in words if w % 32 == bank) for bank in range(32)))
    assert got.wavefronts == tuple(want)


@given(st.integers(0, 70), st.sampled_from((4, 8, 16, 32, 64, 128)), st.integers(0, 200))
def test_sectors_by_counting(step: int, width: int, base: int) -> None:
    got = cute.coalescing(Layout(32, step), width, base=base)
    touched = {(base * 8 + i * step * width + b) // 8 for i in range(32) for b in range(width)}
    assert got.sectors == len({t // 32 for t in touched})
    assert got.lines == len({t // 128 for t in touched})
    assert got.bytes_requested == len(touched)
