"""Functions of nested tuples, and what a layout does to the numbers of its domain."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cute_py as cute
from cute_py import Int, Layout, composition, logical_divide, zipped_divide
from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError, StaticAssertError

shapes = st.recursive(st.integers(1, 5), lambda t: st.lists(t, min_size=1, max_size=3).map(tuple), max_leaves=5)


def leaves(t: Any) -> list[Any]:
    return [x for part in t for x in leaves(part)] if isinstance(t, tuple) else [t]


@given(shapes)
def test_products_of_prefixes_and_suffixes(shape: Any) -> None:
    flat = leaves(shape)
    assert leaves(cute.prefix_product(shape)) == [math.prod(flat[:i]) for i in range(len(flat))]
    assert leaves(cute.suffix_product(shape)) == [math.prod(flat[i + 1 :]) for i in range(len(flat))]
    assert cute.sum_(shape) == sum(flat)
    assert cute.tuple_max(shape) == max(flat)
    assert cute.gcd(shape) == math.gcd(*flat)
    assert cute.product_like(shape, 0) == math.prod(flat)
    assert cute.product_like(shape, shape) == shape
    assert cute.transform_leaf(lambda x: x, shape) == shape
    assert cute.fold(shape, 0, lambda total, part: total + cute.sum_(part)) == sum(flat)


@given(shapes)
@settings(max_examples=50)
def test_coordinates_come_in_the_order_of_their_indices(shape: Any) -> None:
    coordinates = list(cute.make_coord_iterator(shape))
    assert coordinates == [cute.idx2crd(i, shape) for i in range(math.prod(leaves(shape)))]
    for a, b in itertools.pairwise(coordinates):
        assert cute.colex_less(a, b)
        assert not cute.colex_less(b, a)


@given(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), st.tuples(st.integers(-3, 3), st.integers(-3, 3)))
def test_comparisons(a: Any, b: Any) -> None:
    assert cute.lex_less(a, b) == (a < b)
    assert cute.colex_less(a, b) == (a[::-1] < b[::-1])
    assert cute.elem_gtr(a, b) == all(x > y for x, y in zip(a, b, strict=True))
    assert cute.elem_leq(a, b) == (not all(y < x for x, y in zip(a, b, strict=True)))
    assert cute.elem_geq(a, b) == (not all(x < y for x, y in zip(a, b, strict=True)))
    for test in (cute.elem_less, cute.elem_leq, cute.elem_gtr, cute.elem_geq, cute.lex_less, cute.colex_less):
        known = test(tuple(map(cute.Int, a)), tuple(map(cute.Int, b)))  # C++ prints _1 or _0
        assert isinstance(known, cute.Int)
        assert known == test(a, b)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=4).map(tuple))
def test_zip_twice_is_nothing(modes: Any) -> None:
    assert cute.zip_(cute.zip_(modes)) == modes


def test_unzipping_a_divide_is_a_zipped_divide() -> None:
    whole = Layout((Int(12), (Int(4), Int(6)), Int(5)))
    tiler = (Int(3), (Int(2), Int(2)))
    assert str(cute.tile_unzip(logical_divide(whole, tiler), tiler)) == str(zipped_divide(whole, tiler))
    assert str(cute.hier_unzip(logical_divide, whole, tiler)) == str(zipped_divide(whole, tiler))


@pytest.mark.parametrize(
    ("shape", "count", "expected"),
    [
        ((6, 2), 2, (2, 1)),
        ((6, 2), 3, (3, 1)),
        ((6, 2), 6, (6, 1)),
        ((6, 2), 12, (6, 2)),
        ((3, 6, 2, 8), 6, (3, 2, 1, 1)),
        ((3, 6, 2, 8), 9, (3, 3, 1, 1)),
        ((1, 2, 2, 5, 6), 1, (1, 1, 1, 1, 1)),
    ],
)
def test_shape_mod_of_the_documentation(shape: Any, count: int, expected: Any) -> None:
    assert cute.shape_mod(shape, count) == expected


@pytest.mark.parametrize("text", ["(4,8):(8,1)", "(2,(3,5)):(15,(5,1))", "(3,4):(4,1)", "7:1"])
def test_cycles_are_the_layout(text: str) -> None:
    layout = cute.parse(text)
    count = int(cute.size(layout))
    found = cute.cycles(layout)
    assert sorted(x for c in found for x in c) == list(range(count))
    for cycle in found:
        assert all(layout(x) == y for x, y in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    moved = list(range(count))
    for _ in range(cute.order(layout)):
        moved = [layout(x) for x in moved]
    assert moved == list(range(count))


def test_swizzles_are_their_own_inverse() -> None:
    swizzled = composition(cute.Swizzle(2, 0, 2), Layout(16))
    assert cute.order(swizzled) == 2
    assert cute.is_contiguous(swizzled)
    assert cute.contiguity(composition(cute.Swizzle(1, 2, 2), Layout((8, 4), (1, 8)))) == 16


def test_footprints_have_holes() -> None:
    assert cute.footprint(Layout((4, 2), (2, 16))).holes == 15
    assert cute.footprint(Layout((4, 2), (1, 4))).holes == 0
    assert cute.is_surjective(Layout((4, 2), (0, 1)))
    assert not cute.is_contiguous(Layout((4, 2), (0, 1)))


def test_a_tile_has_the_strides_of_its_layout() -> None:
    assert str(cute.make_layout_like(Layout((64, 32), (32, 1)), (8, 4))) == "(8,4):(32,1)"
    with pytest.raises(StaticAssertError, match="the tile has 3 modes, and the layout has 2"):
        cute.make_layout_like(Layout((64, 32)), (8, 4, 2))


def test_refusals() -> None:
    with pytest.raises(StaticAssertError, match="Mismatched tuple_size"):
        cute.transform_leaf(max, (1, 2), (1, (2, 3)))
    with pytest.raises(StaticAssertError, match="Mismatched Ranks"):
        cute.zip_(((1, 2), (3,)))
    with pytest.raises(StaticAssertError, match="Shape Divisibility Condition"):
        cute.shape_mod((6, 2), 4)
    with pytest.raises(InvalidValueError, match="tuple_max needs at least one element, got an empty tuple"):
        cute.tuple_max(())
    with pytest.raises(InvalidTypeError, match="a tuple can be compared only with a tuple"):
        cute.lex_less((1, 2), (1, (2, 3)))
    with pytest.raises(InvalidTypeError, match="takes integers and tuples of integers, got"):
        cute.sum_((1, "2"))
    with pytest.raises(StaticAssertError, match="Too many modes in tiler"):
        cute.hier_unzip(logical_divide, Layout(8), (Int(2), Int(2)))
    with pytest.raises(LayoutError, match="the layout has gaps or repeated offsets, so it is not a permutation"):
        cute.cycles(Layout(4, 2))
