"""Edges of arithmetic tuples, ratios, iterators and functions of tuples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import ArithTuple, ComposedLayout, E, Int, Layout, ScaledBasis, ratio
from cute_py.arith_tuple.cells import c_float, cell, element_text, int32, known_integer
from cute_py.arith_tuple.ratio import Ratio
from cute_py.arith_tuple.tuple_functions import hier_unzip
from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError, StaticAssertError

numbers = st.integers(-9, 9)
flat = st.lists(numbers, max_size=4).map(tuple)
shapes: st.SearchStrategy[Any] = st.recursive(
    st.integers(2, 5), lambda t: st.lists(t, min_size=1, max_size=3).map(tuple), max_leaves=6
)


def reversed_at_all_levels(t: Any) -> Any:
    return tuple(reversed_at_all_levels(x) for x in reversed(t)) if type(t) is tuple else t


@given(st.integers(-20, 20), st.integers(-20, 20).filter(bool), st.integers(-20, 20))
def test_a_ratio_equals_the_integers_that_it_is(n: int, d: int, other: int) -> None:
    r = Ratio(n, d)
    assert (r == other) == (other * d == n) == (other == r)
    assert r != other or hash(r) == hash(other)
    assert isinstance(ratio(n, d), Int) == (n % d == 0)


@pytest.mark.parametrize("sign", ["+", "-"])
@pytest.mark.parametrize("other", [3, sympy.Symbol("n", integer=True)], ids=["integer", "symbol"])
def test_a_ratio_and_a_run_time_number_have_no_sum(sign: str, other: Any) -> None:
    with pytest.raises(
        InvalidTypeError, match=rf"^the ratio _1/_2 is static, so the run-time number {other} can't be added to it"
    ):
        _ = ratio(1, 2) + other if sign == "+" else ratio(1, 2) - other


@given(numbers, st.integers(1, 9), st.integers(-30, 30))
def test_a_ratio_of_a_run_time_integer_is_truncated(n: int, d: int, factor: int) -> None:
    assert Ratio(n, d) * factor == math.trunc(sympy.Rational(n * factor, d))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 30))
def test_a_ratio_of_a_symbol_is_the_quotient_rounded_down(n: int, d: int, value: int) -> None:
    symbol = sympy.Symbol("n", integer=True)
    for product in (Ratio(n, d) * symbol, symbol * Ratio(n, d)):
        assert sympy.sympify(product).subs(symbol, value) == n * value // d


@pytest.mark.parametrize("rows", [((1, 2), (3,)), ((1,), (2, 3)), ((1, 2), 3), ((1, 2), (3, 4), ())])
def test_tuples_of_different_ranks_are_not_zipped(rows: Any) -> None:
    with pytest.raises(StaticAssertError, match=r"^Mismatched Ranks") as caught:
        cute.zip_(*rows)
    assert caught.value.facts["modes"]


@pytest.mark.parametrize("made", [Layout((2, 3, 4)), Layout((2, 3))[0], Layout(())], ids=str)
def test_a_splitter_must_return_two_modes(made: Layout) -> None:
    with pytest.raises(StaticAssertError, match=r"^the splitter must return two modes") as caught:
        hier_unzip(lambda layout, tiler: made, Layout((4, 6)), (2, 3))
    assert caught.value.facts["layout"] == made


def test_a_tuple_of_tilers_needs_a_layout() -> None:
    with pytest.raises(InvalidTypeError, match="must be a Layout"):
        hier_unzip(cute.logical_divide, Int(0), (Int(2),))  # type: ignore[arg-type]


@given(numbers, numbers, st.integers(0, 3), st.integers(0, 3))
def test_scaled_bases_are_equal_by_value_and_mode(m: int, n: int, i: int, j: int) -> None:
    a, b = m * E(i), n * E(j)
    assert (a == b) == ((m, i) == (n, j))
    assert (a.as_arith_tuple() == b.as_arith_tuple()) == ((m, i) == (n, j)) == (a == b.as_arith_tuple())


@pytest.mark.parametrize("other", [np.array([0, 1]), [0, 1], "01", None, 1.5], ids=repr)
def test_a_basis_element_equals_no_array_or_list(other: Any) -> None:
    assert (E(1) == other) is False


@pytest.mark.parametrize("mode", [-1, 4096])
def test_modes_of_a_basis_element_have_bounds(mode: int) -> None:
    with pytest.raises(InvalidValueError):
        ScaledBasis(1, mode)
    with pytest.raises(InvalidValueError):
        ScaledBasis(1, 0, mode)


def test_the_last_mode_and_the_deepest_basis_element_are_taken() -> None:
    assert ScaledBasis(1, 4095).modes == (4095,)
    assert len(ScaledBasis(1, *[0] * 64).modes) == 64
    with pytest.raises(InvalidValueError, match="a basis element has 65 nested modes; must have at most 64"):
        ScaledBasis(1, *[0] * 65)


@pytest.mark.parametrize("mode", ["0", 0.0, None])
def test_a_mode_of_a_tuple_is_an_integer(mode: Any) -> None:
    with pytest.raises(InvalidTypeError, match=r"^a mode must be an integer"):
        _ = ArithTuple(1, 2)[mode]
    assert ArithTuple(1, 2)[np.int64(1)] == 2  # type: ignore[index]


def test_the_places_that_do_not_fit_are_shown_with_their_own_sign() -> None:
    nested = ArithTuple(1, (2, 3))
    with pytest.raises(LayoutError) as added:
        _ = nested + (1, 5)  # noqa: RUF005
    with pytest.raises(LayoutError) as taken:
        _ = nested - (1, 5)
    for error in (added, taken):
        assert error.value.facts["there"] == "(2,3) in left, 5 in right"
        assert str(error.value.facts["right"]) == "(1,5)"


@pytest.mark.parametrize("t", [5, (5,), (5, 6, 7), ()])
def test_products_want_a_tuple_with_the_modes_of_the_guide(t: Any) -> None:
    with pytest.raises(StaticAssertError, match=r"^Mismatched tuple_size"):
        cute.product_like(t, (0, 0))


@given(shapes)
def test_prefix_products_are_the_row_major_and_suffix_products_their_mirror(shape: Any) -> None:
    assert cute.prefix_product(shape) == Layout(shape).stride
    mirrored = cute.prefix_product(reversed_at_all_levels(shape))
    assert cute.suffix_product(shape) == reversed_at_all_levels(mirrored)


@given(st.lists(st.booleans(), min_size=2, max_size=2), st.integers(2, 5), st.integers(2, 5))
def test_a_running_product_is_static_where_its_factors_are(static: list[bool], a: int, b: int) -> None:
    t = tuple(Int(n) if s else n for n, s in zip((a, b), static, strict=True))
    products: Any = cute.prefix_product(t)
    first, second = products
    assert (first, second) == (1, a)
    assert isinstance(first, Int) == static[0]
    assert isinstance(second, Int) == all(static)


@given(flat, flat)
def test_tuples_are_compared_as_python_compares_them(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    assert bool(cute.lex_less(a, b)) == (a < b)
    assert bool(cute.colex_less(a, b)) == (a[::-1] < b[::-1])
    assert isinstance(cute.lex_less(tuple(map(Int, a)), tuple(map(Int, b))), Int)


@given(st.lists(numbers, min_size=2, max_size=5))
def test_sums_take_basis_elements(values: list[int]) -> None:
    assert cute.sum_(tuple(n * E(1) for n in values)) == ArithTuple(Int(0), sum(values))


def test_zip_takes_the_parts_of_a_composed_layout_only_alone() -> None:
    swizzled = cute.ComposedLayout(cute.Swizzle(1, 0, 2), 0, Layout(((2, 4), (2, 4))))
    assert cute.zip_(swizzled).inner == cute.zip_(Layout(((2, 4), (2, 4))))  # type: ignore[call-overload]
    with pytest.raises(InvalidTypeError):
        cute.zip_(swizzled, Layout((2, 4)))  # type: ignore[call-overload]


def test_modes_of_only_one_layout_follow_those_of_both() -> None:
    def second(a: Layout, b: Layout) -> Layout:
        return b

    short, long = Layout((2, 3), (1, 2)), Layout((4, 5, 6), (7, 8, 9))
    assert cute.transform_layout(short, long, second) == long
    assert cute.transform_layout(long, short, second) == Layout((2, 3, 6), (1, 2, 9))
    assert cute.transform_layout((Layout(2, 1), Layout(3, 2)), long, second) == long


@given(st.integers(-(2**40), 2**40))
def test_an_int_of_cpp_holds_the_lowest_32_bits(n: int) -> None:
    assert int32(n) == int(np.int64(n).astype(np.int32))


@pytest.mark.parametrize("n", [-(2**31) - 1, -(2**31), 2**31 - 1, 2**31])
def test_an_int_of_cpp_wraps_beyond_its_bounds(n: int) -> None:
    assert int32(n) == int(np.int64(n).astype(np.int32))


@pytest.mark.parametrize(
    ("kind", "shown"), [("float16", "nan"), ("float32", "-nan"), ("float64", "-nan"), ("bfloat16", "-nan")]
)
def test_only_the_wide_floats_show_the_sign_of_a_nan(kind: str, shown: str) -> None:
    import ml_dtypes

    scalar = getattr(np, kind, None) or getattr(ml_dtypes, kind)
    assert c_float(scalar(-math.nan), "8.2f") == shown.rjust(8)
    assert c_float(scalar(math.nan), "8.2f") == "nan".rjust(8)


def test_small_integers_of_ml_dtypes_are_numbers() -> None:
    import ml_dtypes

    assert cute.text(ml_dtypes.int4(-3)) == "-3"
    assert cute.text((ml_dtypes.uint4(9), (Int(2), 0.5))) == "(9,(_2,0.500000))"


@given(numbers, numbers, st.sampled_from(["int32", "int8"]), st.sampled_from(["int32", "int8"]))
def test_counting_iterators_are_equal_by_number_and_type(m: int, n: int, a: Any, b: Any) -> None:
    assert (cute.counting_iterator(m, a) == cute.counting_iterator(n, b)) == ((m, a) == (n, b))


@given(st.integers(-(2**40), 2**40), st.sampled_from(["int8", "uint8", "int16", "uint16", "int32", "uint32"]))
def test_a_counting_iterator_wraps_as_numpy_does(n: int, kind: Any) -> None:
    assert cute.counting_iterator(n, kind).deref() == int(np.int64(n).astype(kind))
    assert cute.counting_iterator(0, kind)[n] == int(np.int64(n).astype(kind))


@pytest.mark.parametrize("coord", [(1, 2), (1, (Int(2), 3)), 5, 3 * E(1)])
def test_iterators_of_coordinates_read_back(coord: Any) -> None:
    made = cute.make_inttuple_iter(coord)
    names = {"make_inttuple_iter": cute.make_inttuple_iter, "Int": Int, "E": E, "ScaledBasis": ScaledBasis}
    assert eval(repr(made), names) == made
    assert made.deref() == coord


@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.data())
def test_coordinates_come_in_the_order_of_the_modes(extents: list[int], data: Any) -> None:
    shape = tuple(extents)
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    start = tuple(data.draw(st.integers(0, n)) for n in extents)
    found = list(cute.make_coord_iterator(shape, start, order))
    every = set(np.ndindex(*shape))
    inside = [c for c in every if all(s <= x for s, x in zip(start, c, strict=True))]
    slowest_first = sorted(range(len(shape)), key=lambda i: order[i], reverse=True)
    assert found == sorted(inside, key=lambda c: [c[i] for i in slowest_first])


def test_bases_stand_in_the_place_of_the_modes_of_any_layout() -> None:
    shape = (4, (2, 3))
    want = (E(0), (E(1, 0), E(1, 1)))
    assert cute.make_basis_like(shape) == want
    assert cute.make_basis_like(Layout(shape)) == want
    assert cute.make_basis_like(cute.ComposedLayout(cute.Swizzle(1, 0, 2), 0, Layout(shape))) == want


def test_an_extent_of_zero_has_no_first_elements() -> None:
    with pytest.raises(StaticAssertError, match=r"^Shape Divisibility Condition"):
        cute.shape_mod((2, 0), 2)


def test_a_basis_element_becomes_a_tuple() -> None:
    made: Any = cute.as_arith_tuple(2 * E(1))
    assert (type(made), made.items) == (ArithTuple, (Int(0), 2))


@pytest.mark.parametrize("count", [0, 3])
def test_layouts_are_transformed_one_or_two_at_a_time(count: int) -> None:
    with pytest.raises(InvalidTypeError, match=r"^transform_layout takes one or two layouts, then a function"):
        cute.transform_layout(Layout(2), *[Layout(2)] * max(0, count - 1), *[lambda *_: Layout(2)] * min(1, count))


def test_a_tiler_has_no_more_modes_than_its_layout() -> None:
    with pytest.raises(StaticAssertError, match=r"Too many modes in tiler"):
        cute.hier_unzip(cute.logical_divide, Layout((8, 6)), (2, 3, 1))


def test_a_number_without_a_mode_is_added_to_no_tuple() -> None:
    with pytest.raises(LayoutError, match=r"^ScaledBasis op\+ error!") as caught:
        _ = ScaledBasis(2) + (1, 2)  # noqa: RUF005
    assert caught.value.facts["tuple"] == (1, 2)


@pytest.mark.parametrize("compare", [cute.lex_less, cute.colex_less, cute.elem_less])
@pytest.mark.parametrize(("a", "b"), [((1, 2), 3), (3, (1, 2)), (((1, 2), 3), (1, 3)), ((1, 3), ((1, 2), 3))])
def test_a_tuple_is_compared_only_with_a_tuple(compare: Any, a: Any, b: Any) -> None:
    with pytest.raises(InvalidTypeError, match="tuple"):
        compare(a, b)


@pytest.mark.parametrize(
    ("value", "text"), [(np.bool_(True), "1"), (False, "0"), (np.int8(-3), "-3"), (np.float32(2), "2.000000")]
)
def test_elements_of_numpy_are_printed_as_those_of_cpp(value: Any, text: str) -> None:
    assert element_text(value) == text


@pytest.mark.parametrize("three", [3, np.int64(3), np.uint8(3), Int(3)])
def test_any_integer_scales_a_coordinate(three: Any) -> None:
    assert ArithTuple(1, (2, -4)) * three == ArithTuple(3, (6, -12))


def test_a_coordinate_is_subtracted_from_a_tuple() -> None:
    assert (5, 6) - ArithTuple(1, 2) == ArithTuple(4, 4)
    assert (5, (6, 7)) - ArithTuple(1, (2, 3)) == ArithTuple(4, (4, 4))


def test_a_value_without_a_mode_has_no_position_in_a_coordinate() -> None:
    with pytest.raises(LayoutError):
        ArithTuple(1, 2) + ScaledBasis(3)


@given(*[st.integers(-20, 20)] * 2, *[st.integers(1, 20)] * 2)
def test_ratios_multiply_as_fractions(n: int, m: int, d: int, e: int) -> None:
    product = ratio(n, d) * ratio(m, e)
    assert product == ratio(n * m, d * e)
    assert isinstance(product, (Ratio, Int))


@pytest.mark.parametrize("combine", [lambda r: r - "x", lambda r: "x" - r, lambda r: r + None, lambda r: r * "x"])
def test_a_ratio_is_combined_only_with_integers(combine: Any) -> None:
    with pytest.raises((InvalidTypeError, TypeError), match=r"ratio|unsupported"):
        combine(Ratio(1, 2))


def test_iterators_are_equal_at_one_coordinate() -> None:
    here = cute.make_inttuple_iter((1, 2))
    assert here == cute.make_inttuple_iter((0, 2)) + ArithTuple(1, 0)
    assert here != cute.make_inttuple_iter((1, 3))
    assert type(cute.make_inttuple_iter(np.int64(3)).deref()) is int
    with pytest.raises(InvalidTypeError):
        cute.make_inttuple_iter("three")


@pytest.mark.parametrize("start", [1 << 200, -(10**400)])
def test_a_counting_iterator_over_floats_starts_within_their_range(start: int) -> None:
    with pytest.raises(InvalidValueError, match="must be"):
        cute.counting_iterator(start, "float32")


@pytest.mark.parametrize("things", [(5,), ((2, 3), 5), (Layout((2, 3)), "x")])
def test_transform_layout_takes_layouts_or_tuples(things: Any) -> None:
    with pytest.raises(InvalidTypeError, match="takes layouts or tuples"):
        cute.transform_layout(*things, lambda *modes: modes[0])


def test_what_has_no_modes_is_returned_as_it_is() -> None:
    assert cute.zip_(5) == 5
    assert cute.zip_((5,)) == ((5,),)


def test_a_tiler_of_none_keeps_its_mode() -> None:
    found = hier_unzip(cute.logical_divide, Layout((Int(8), Int(6))), (None, Int(3)))
    assert found[0] == Layout((Int(1), Int(3)), (Int(0), Int(8)))
    assert [found((0, i)) for i in range(16)] == [Layout((8, 2), (1, 24))(i) for i in range(16)]


def test_the_modes_of_a_composed_layout_are_unzipped_in_its_inner_layout() -> None:
    whole = cute.logical_divide(Layout((Int(8), Int(6))), (Int(2), Int(3)))
    composed = cute.composition(cute.Swizzle(1, 0, 3), whole)
    found = cute.tile_unzip(composed, (Int(2), Int(3)))
    assert isinstance(found, ComposedLayout)
    plain = cute.tile_unzip(whole, (Int(2), Int(3)))
    assert [found(i) for i in range(48)] == [composed.layout_a(plain(i)) for i in range(48)]


@pytest.mark.parametrize("leaf", [sympy.Rational(1, 2), sympy.pi, sympy.Symbol("x", integer=False)], ids=str)
def test_symbols_that_are_no_integers_are_refused(leaf: Any) -> None:
    with pytest.raises(InvalidTypeError, match="expected an integer"):
        cute.product((2, leaf))


@pytest.mark.parametrize("value", [2**128 + 1, -(2**128) - 1, 2**4000])
def test_integers_beyond_the_bound_are_no_elements(value: int) -> None:
    with pytest.raises(InvalidValueError, match=r"must be at most 2\*\*128"):
        ArithTuple(1, value)
    assert ArithTuple(2**128, -(2**128)).depth == 1


def test_the_depth_of_a_tuple_is_that_of_its_deepest_element() -> None:
    deep = ArithTuple(1, (2, (3, 4)))
    assert deep.depth == 3
    assert ArithTuple(deep, (1, 2)).depth == 4
    assert ArithTuple((1, 2), deep).depth == 4


def test_numbers_of_a_coordinate_are_printed_in_five_columns() -> None:
    assert cell(42, None) == "   42"
    assert cell(123456, None) == "123456"


def test_only_numbers_are_known_integers() -> None:
    for wrong in ("x", None, object()):
        with pytest.raises(InvalidTypeError, match="a size must be an integer"):
            known_integer(wrong, "a size")  # type: ignore[arg-type]
    assert known_integer(np.int64(3), "a size") == 3
