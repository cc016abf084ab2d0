"""Single values of coordinates, ratios and iterators that printing and arithmetic rarely reach."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy

import cute_py as cute
from cute_py import ArithTuple, E, Int, Layout
from cute_py.argument_checks import MAX_INTEGER, MIN_INTEGER
from cute_py.arith_tuple.arith_tuple import MOST_MODES, ScaledBasis, basis_get
from cute_py.arith_tuple.cells import element_text, int32, known_integer
from cute_py.arith_tuple.iterators import ArithTupleIterator, counting_iterator, make_inttuple_iter, zero_iterator
from cute_py.arith_tuple.ratio import Ratio, ratio
from cute_py.arith_tuple.tuple_functions import (
    colex_less,
    compact_order,
    fold,
    lex_less,
    make_coord_iterator,
    prefix_product,
    shape_mod,
    sum_,
    transform_layout,
    transform_leaf,
    tuple_max,
)
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, StaticAssertError

N = sympy.Symbol("N", integer=True, positive=True)


def test_static_parts() -> None:
    assert ArithTuple(Int(1), (Int(2), Int(3))).is_static
    assert not ArithTuple(Int(1), (Int(2), 3)).is_static
    assert not ArithTuple(1, Int(2)).is_static
    assert E(0).is_static
    assert ScaledBasis(ratio(1, 2), 0).is_static
    assert not ScaledBasis(3, 0).is_static


def test_modes_may_be_integers_of_numpy() -> None:
    one = ArithTuple(4, 5)
    assert one[np.int64(1)] == 5
    with pytest.raises(InvalidTypeError):
        one["1"]


def test_integers_of_numpy_become_plain() -> None:
    one = ArithTuple(np.int32(3), (np.uint8(4), 5))
    assert [type(x) for x in one.as_tuple()[1]] == [int, int]
    assert type(one[0]) is int
    assert type(E(0).with_value(np.int64(7)).value) is int
    assert type(E(1).with_value(Int(2)).value) is Int


def test_a_coordinate_may_have_coordinates_inside_a_nested_mode() -> None:
    layout = Layout(((2, (3, 4)), 5))
    for inner in (ArithTuple(1, 2), ArithTuple(np.int64(1), 2), (1, 2)):
        assert layout((1, inner), 0) == cute.crd2idx((1, inner), layout[0].shape, layout[0].stride) == 15


def test_a_number_too_large_for_a_mode_is_refused() -> None:
    for limit in (MIN_INTEGER, MAX_INTEGER):
        assert ArithTuple(limit)[0] == limit
        assert E(0).with_value(limit).value == limit
    for beyond in (MIN_INTEGER - 1, MAX_INTEGER + 1):
        with pytest.raises(CuteError):
            ArithTuple(beyond)
        with pytest.raises(CuteError):
            E(0).with_value(beyond)


def test_a_basis_element_of_a_basis_element_joins_the_modes() -> None:
    assert str(ScaledBasis(ScaledBasis(Int(3), 1), 0)) == "_3@1@0"
    assert repr(E(1, 0)) == "E(1, 0)"
    assert repr(ScaledBasis(1, 2)) == "ScaledBasis(1, 2)"
    assert repr(ScaledBasis(Int(2), 2)) == "ScaledBasis(Int(2), 2)"
    assert str(ScaledBasis(ratio(3, 2), 1)) == "_3/_2@1"


def test_what_is_no_tuple_differs_from_a_coordinate() -> None:
    assert ArithTuple(1, 2) == (1, 2)
    assert ArithTuple(1, 2) != [1, 2]
    assert ArithTuple(1, 2) != 3
    assert ArithTuple(1, 2).__eq__([1, 2]) is NotImplemented


def test_texts_of_coordinates_with_coordinates_and_ratios() -> None:
    one = ArithTuple(Int(1), (2, Int(3)))
    assert repr(one) == "ArithTuple(Int(1), (2, Int(3)))"
    assert str(one) == "(_1,(2,_3))"
    assert element_text(one) == "(_1,(2,_3))"
    held = ArithTuple(ratio(1, 2), 3)
    assert str(held) == "(_1/_2,3)"
    assert held[0] == ratio(1, 2)


def test_scales_that_are_no_integers_are_shown() -> None:
    with pytest.raises(InvalidTypeError, match=r"^\(1,2\) can be scaled only by integers, got ScaledBasis _1@0"):
        ArithTuple(1, 2) * E(0)
    with pytest.raises(InvalidTypeError, match=r"can be scaled only by integers, got float 1\.5"):
        ArithTuple(1, 2) * 1.5
    with pytest.raises(InvalidTypeError, match="only coordinates can be added to an arithmetic tuple, got str 'x'"):
        E(0) + "x"


def test_basis_get_of_an_integer_is_all() -> None:
    assert basis_get(Int(1), (4, (5, 6))) == (4, (5, 6))
    assert basis_get(E(1), Layout((2, 3), (1, 2))) == Layout(3, 2)
    with pytest.raises(InvalidTypeError):
        basis_get(1.5, (4, 5))


def test_numbers_wrap_as_an_int() -> None:
    assert [int32(n) for n in (-(2**31), 2**31 - 1, 2**31, 2**32 + 5, -(2**31) - 1)] == [
        *(-(2**31), 2**31 - 1, -(2**31), 5, 2**31 - 1)
    ]
    assert known_integer(np.int16(7), "x") == 7
    with pytest.raises(InvalidTypeError, match="an extent"):
        known_integer(N, "an extent")


def test_tables_of_bool_and_of_four_modes(capsys: pytest.CaptureFixture[str]) -> None:
    cute.print_tensor(cute.make_tensor(np.array([True, False]), Layout(2, 1)))
    assert capsys.readouterr().out.splitlines()[1:] == ["  1", "  0"]
    four = cute.make_tensor(np.arange(16, dtype=np.int32), Layout((2, 2, 2, 2), (1, 2, 4, 8)))
    lines = cute.format_tensor(four).splitlines()[1:]
    rulers = [line[0] for line in lines if set(line) <= {"-", "="} and line]
    assert rulers == ["-", "=", "-"]
    assert len([line for line in lines if line and line[0] not in "-="]) == 8


def test_counting_iterators_are_shown_with_their_type() -> None:
    assert repr(counting_iterator(5)) == "counting_iterator(5)"
    assert repr(counting_iterator(5, "int64")) == "counting_iterator(5, 'int64')"
    assert counting_iterator(1.5, "float32").deref() == 1.5
    assert counting_iterator(N, "float32").deref() == N
    assert (counting_iterator(3) + np.int64(2)).deref() == 5
    assert (counting_iterator(3) + (1 << 40)).dtype.name == "int32"
    for wrong in (True, "1.5", np.zeros(2), object(), b"1"):
        with pytest.raises(InvalidTypeError, match="the start of a counting iterator over float32 must be a number"):
            counting_iterator(wrong, "float32")


def test_iterators_take_plain_tuples_and_numbers() -> None:
    one = ArithTupleIterator((1, (2, Int(3))))
    assert isinstance(one.coord, ArithTuple)
    moved = one.__add__((1, (1, Int(1))))
    assert str(moved) == "ArithTuple(2,(3,_4))"
    assert str(one + Int(0)) == "ArithTuple(1,(2,_3))"
    assert str(ArithTupleIterator(np.int64(4))) == "ArithTuple4"
    assert type(ArithTupleIterator(np.int64(4)).coord) is int
    assert str(ArithTupleIterator(Int(0))) == "ArithTuple_0"
    assert str(ArithTupleIterator(E(1))) == "ArithTuple_1@1"
    assert str(ArithTupleIterator(4) + np.int64(3)) == "ArithTuple7"
    assert repr(make_inttuple_iter(1, 2)) == "make_inttuple_iter((1, 2))"
    assert str(zero_iterator((Int(0), Int(0)))) == "ArithTuple(_0,_0)"
    assert str(zero_iterator(Int(0))) == "ArithTuple_0"
    assert ArithTupleIterator(ArithTuple(1)) != ArithTuple(1)


def test_ratios_are_reduced_and_signed() -> None:
    assert (Ratio(6, -4).numerator, Ratio(6, -4).denominator) == (-3, 2)
    assert str(abs(Ratio(-3, 4))) == "_3/_4"
    assert abs(Ratio(-3, 4)) == Ratio(3, 4)
    assert Ratio(1, 2) != Ratio(1, 3)
    assert Ratio(1, 3) != Ratio(1, 2)
    assert Ratio(2, 3) != Ratio(1, 3)
    assert Ratio(1, 2) != "1/2"
    assert Ratio(4, 2) == 2
    assert Ratio(6, 2) != 2
    assert Ratio(2, 2) != 2
    assert hash(Ratio(1, 2)) == hash(Fraction(1, 2))
    assert ratio(1, 2) + ratio(1, 3) == Ratio(5, 6)
    assert ratio(1, 2) + ratio(1, 2) == Int(1)
    assert isinstance(ratio(1, 2) + ratio(1, 2), Int)
    assert ratio(3, 2) - Int(1) == Ratio(1, 2)
    assert Int(1) - ratio(1, 2) == Ratio(1, 2)
    assert ratio(5, 2) - ratio(1, 2) == Int(2)
    assert isinstance(ratio(4, 2), Int)
    assert isinstance(ratio(1, 2), Ratio)
    assert ratio(-4, 2) == Int(-2)
    with pytest.raises(InvalidTypeError, match="is static, so the run-time number"):
        N - ratio(1, 2)
    with pytest.raises(InvalidTypeError, match="is static, so the run-time number"):
        ratio(1, 2) + N
    with pytest.raises(InvalidTypeError, match="the other operand of a ratio must be an integer"):
        ratio(1, 2) + 0.5
    with pytest.raises(InvalidValueError, match="must not be 0"):
        Ratio(1, 0)


def test_functions_of_leaves_check_what_they_get() -> None:
    for wrong in (Layout(4, 1), cute.Swizzle(3, 4, 3)):
        with pytest.raises(InvalidTypeError, match="the function of the leaves must be a function"):
            transform_leaf(wrong, (1, 2))
        with pytest.raises(InvalidTypeError, match="the function of the modes must be a function"):
            transform_layout(Layout((2, 3)), wrong)
    with pytest.raises(InvalidTypeError, match=r"transform_leaf takes integers and tuples of integers, got \(1, 'x'\)"):
        transform_leaf(lambda x: x, (1, "x"))
    for other in ((1, 2, 3), (1,), 1, (1, (2, 3))):
        with pytest.raises(StaticAssertError, match="Mismatched tuple_size") as caught:
            transform_leaf(lambda x, y: x, (1, 2), other)
        assert "(1, 2)" in str(caught.value) or "2" in str(caught.value)
    assert transform_leaf(lambda x: x + 1, (N, E(0).value)) == (N + 1, 2)
    with pytest.raises(InvalidTypeError, match="sum_ takes integers"):
        sum_((1, sympy.Rational(1, 2)))
    assert sum_((1, N)) == N + 1
    with pytest.raises(InvalidValueError, match="tuple_max needs at least one element, got an empty tuple"):
        tuple_max(())
    with pytest.raises(InvalidTypeError, match="transform_layout takes layouts or tuples"):
        transform_layout("x", lambda mode: mode)


def test_products_begin_with_the_given_number() -> None:
    assert prefix_product((2, 3, 4)) == (1, 2, 6)
    assert prefix_product((2, 3, 4), 5) == (5, 10, 30)
    assert compact_order((Int(2), Int(3)), (Int(1), Int(0))) == (Int(3), Int(1))


def test_counts_that_do_not_divide_are_refused() -> None:
    assert shape_mod((4, 6), 8) == (4, 2)
    assert shape_mod((4, 6), 2) == (2, 1)
    for shape, count in (((4, 6), 6), ((0, 4), 2), ((4, 6), 20)):
        with pytest.raises(StaticAssertError, match="Shape Divisibility Condition"):
            shape_mod(shape, count)


def test_comparisons_are_static_only_if_both_are() -> None:
    assert lex_less(Int(1), Int(2)) == Int(1)
    assert isinstance(lex_less(Int(1), Int(2)), Int)
    assert lex_less(1, Int(2)) is True
    assert lex_less(Int(1), 2) is True
    assert lex_less((1, Int(2)), (1, Int(3))) is True
    assert isinstance(lex_less((Int(1), Int(2)), (Int(1), Int(3))), Int)
    assert colex_less((Int(3), 1), (Int(2), 2)) is True
    assert lex_less((1, 2), (1, 2, 3)) is True
    assert lex_less((1, 2, 3), (1, 2)) is False
    with pytest.raises(InvalidTypeError, match="a tuple can be compared only with a tuple") as caught:
        lex_less((1, 2), 3)
    assert caught.value.facts == {"a": "(1, 2)", "b": "3"}


def test_coordinates_start_and_run_in_the_given_order() -> None:
    assert list(make_coord_iterator((2, 3), (1, 1))) == [(1, 1), (1, 2)]
    assert list(make_coord_iterator((2, 2), (0, 3))) == []
    assert list(make_coord_iterator((2, (1, 2)), order=(2, (1, 0)))) == [
        *((0, (0, 0)), (0, (0, 1)), (1, (0, 0)), (1, (0, 1)))
    ]
    with pytest.raises(StaticAssertError, match="Mismatched tuple_size"):
        make_coord_iterator((2, 3), order=(1, 0, 2))
    with pytest.raises(InvalidTypeError, match=r"takes integers and tuples of integers, got \(1, 0.5\)"):
        make_coord_iterator((2, 3), order=(1, 0.5))


def test_sums_of_coordinates_and_numbers() -> None:
    with pytest.raises(CuteError):
        ArithTuple((1, 2), 3).__add__((0, (1, 2)))
    with pytest.raises(CuteError):
        ArithTuple((1, 2), 3).__add__((4, 0))
    assert ArithTuple((1, 2), 3).__add__((Int(0), 4)) == ((1, 2), 7)
    with pytest.raises(CuteError):
        ArithTuple((1, 2), 3).__add__((-1, 4))
    assert E(0) + Int(0) == E(0)
    with pytest.raises(CuteError):
        E(0) + Int(-1)
    with pytest.raises(CuteError):
        E(0) + 0
    with pytest.raises(CuteError):
        ArithTuple(1, 2) + ratio(1, 2)
    assert ArithTuple(1, 2) != E()
    assert ScaledBasis(Int(3)) != ArithTuple(Int(3))
    assert ScaledBasis(3) + np.int64(4) == 7
    assert ScaledBasis(ratio(1, 2)) + ratio(1, 2) == Int(1)
    with pytest.raises(InvalidTypeError, match="only numbers and basis elements can be added to 3, got str 'x'"):
        ScaledBasis(3) + "x"


def test_static_scales_must_divide_evenly() -> None:
    assert E(0).with_value(Int(6)).safe_div(Int(3)) == ScaledBasis(Int(2), 0)
    with pytest.raises(StaticAssertError):
        E(0).with_value(Int(7)).safe_div(Int(3))
    assert E(0).with_value(7).safe_div(Int(3)) == ScaledBasis(2, 0)
    assert E(0).with_value(Int(7)).safe_div(3) == ScaledBasis(2, 0)


def test_modes_of_a_basis_element_are_bounded() -> None:
    for wrong in (-1, MOST_MODES, 1.5):
        with pytest.raises(CuteError, match="the basis element's modes"):
            ScaledBasis(1, wrong)
    assert ScaledBasis(1, MOST_MODES - 1).modes == (MOST_MODES - 1,)
    assert E(2).at([1, 0], 3) == ScaledBasis(3, 1, 0)


def test_functions_keep_the_order_of_their_arguments() -> None:
    assert fold((2, 3, 4), 100, lambda a, b: a - 10 * b) == 10
    assert transform_leaf(lambda a, b: a - b, (5, (6, 7)), (1, (2, 3))) == (4, (4, 4))
    assert cute.zip_(()) == ((),)
    assert cute.zip_((1, 2)) == ((1, 2),)
    with pytest.raises(InvalidTypeError, match="zip_ takes either tuples or layouts, not both") as caught:
        cute.zip_((1, 2), Layout(4))
    assert "got" in caught.value.facts
    assert prefix_product((2, 3), Int(5)) == (5, 10)
    assert repr(prefix_product((Int(2), 3), Int(5))) == "(Int(5), 10)"
    with pytest.raises(InvalidTypeError, match=r"^the function of the leaves must be a function, got Layout"):
        transform_leaf(Layout(4, 1), (1, 2))
    with pytest.raises(InvalidTypeError, match=r"^transform_layout takes layouts or tuples, got str 'x'"):
        transform_layout("x", lambda mode: mode)
    with pytest.raises(InvalidTypeError, match=r"^an extent must be an integer, got object"):
        known_integer(object(), "an extent")
    with pytest.raises(InvalidTypeError, match="a tuple can be compared only with a tuple"):
        lex_less(3, (1, 2))


def test_texts_of_elements() -> None:
    assert element_text(True) == "1"
    assert element_text(np.bool_(False)) == "0"
    assert element_text(1 + 2j) == "(1+2j)"
    assert element_text(np.complex64(2j)) == "2j"
    assert element_text(np.int16(-3)) == "-3"
    assert counting_iterator(np.float32(1.5), "float64").deref() == 1.5
    with pytest.raises(InvalidTypeError, match="must be a number"):
        counting_iterator(np.bool_(True), "float32")
