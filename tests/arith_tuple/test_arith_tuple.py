"""ArithTuple: a module over the integers, with zero-extension."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from cute_py import ArithTuple, E, Int, Layout, as_arith_tuple, crd2idx, elem_less, make_identity_tensor
from cute_py.errors import CoordinateError, InvalidTypeError, LayoutError, StaticAssertError
from tests.arith_tuple.strategies import coordinates, small
from tests.each import each_of


def tup(c: Any) -> ArithTuple:
    return ArithTuple(*c)


@given(coordinates, coordinates, coordinates)
def test_addition_is_a_commutative_group(a: Any, b: Any, c: Any) -> None:
    a, b, c = tup(a), tup(b), tup(c)
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert (a - a).as_tuple() == (0, 0, (0, 0))
    assert a - b == a + (-b)
    assert a + Int(0) == Int(0) + a == a


@given(coordinates, coordinates, small, small)
def test_scaling_is_that_of_a_module(a: Any, b: Any, m: int, n: int) -> None:
    a, b = tup(a), tup(b)
    assert n * (a + b) == n * a + n * b
    assert (m + n) * a == m * a + n * a
    assert (m * n) * a == m * (n * a)
    assert 1 * a == a == a * 1


@given(coordinates, st.integers(0, 2))
def test_missing_modes_are_zero(a: Any, rank: int) -> None:
    short = tup(a[:rank])
    assert tup(a) + short == short + tup(a)
    padded = (*a[:rank], *(Int(0),) * (3 - rank))
    assert tup(a) + short == tup(a) + tup(padded)


@each_of(
    ("value", "text"),
    [
        (ArithTuple(1, Int(2)) + ArithTuple(10, Int(20)), "(11,_22)"),
        (ArithTuple(1) + ArithTuple(Int(3), Int(4), 5), "(4,_4,5)"),
        (ArithTuple(1, (2, 3)) + (0, (1, 1)), "(1,(3,4))"),  # noqa: RUF005
        ((1, 2) - ArithTuple(Int(3), 4), "(-2,-2)"),
        (ArithTuple(1, Int(2)) - Int(0), "(1,_2)"),
        (-ArithTuple(1, (Int(2), 3)), "(-1,(_-2,-3))"),
        (ArithTuple(1, Int(0)) + ArithTuple(0, (2, 3)), "(1,(2,3))"),
        (2 * ArithTuple(Int(2), 3), "(4,6)"),
        (Int(2) * ArithTuple(Int(2), 3), "(_4,6)"),
        (Int(0) * ArithTuple(Int(2), 3), "(_0,_0)"),
        (np.int64(2) * ArithTuple(1, 2), "(2,4)"),
        (ArithTuple(sympy.Symbol("n"), 1) * 2, "(2*n,2)"),
        (ArithTuple(), "()"),
        (ArithTuple(E(1), 2), "((_0,_1),2)"),
    ],
)
def test_texts(value: Any, text: str) -> None:
    assert str(value) == text


def test_static_and_run_time() -> None:
    assert ArithTuple(Int(1), (Int(2),)).is_static
    assert not ArithTuple(Int(1), (2,)).is_static


def test_equality_and_hash() -> None:
    assert ArithTuple(1, (2, 3)) == (1, (2, 3))
    assert ArithTuple(1, 2) != ArithTuple(1, 2, 0)
    assert len({ArithTuple(1, 2), ArithTuple(1, 2), ArithTuple(2, 1)}) == 2
    assert pickle.loads(pickle.dumps(ArithTuple(1, (Int(2), 3)))) == ArithTuple(1, (Int(2), 3))
    assert eval(repr(ArithTuple(1, (Int(2), 3)))) == ArithTuple(1, (Int(2), 3))


def test_it_is_immutable() -> None:
    with pytest.raises(AttributeError):
        ArithTuple(1, 2).items = ()  # type: ignore[misc]


def test_modes_out_of_range() -> None:
    assert ArithTuple(1, 2)[-1] == 2
    for mode in (2, -3):
        with pytest.raises(CoordinateError, match=rf"mode {mode} of \(1,2\) does not exist"):
            ArithTuple(1, 2)[mode]


def test_as_arith_tuple() -> None:
    assert str(as_arith_tuple((1, E(1)))) == "(1,(_0,_1))"
    assert as_arith_tuple(5) == 5


def test_an_element_of_a_coordinate_tensor_is_a_coordinate() -> None:
    here = make_identity_tensor((4, (2, 3)))(2, (1, 1))
    assert Layout((4, (2, 3)))(here) == Layout((4, (2, 3)))(2, (1, 1))
    assert crd2idx(here, (4, (2, 3))) == crd2idx((2, (1, 1)), (4, (2, 3)))
    assert elem_less(here, (4, (2, 3)))
    assert not elem_less(here, (2, (2, 3)))


@pytest.mark.parametrize("integer", [Int(1), Int(-3)])
def test_a_static_integer_is_refused_as_in_cpp(integer: Any) -> None:
    with pytest.raises(StaticAssertError) as caught:
        ArithTuple(1, 2) + integer
    assert caught.value.condition == "Arithmetic tuple op+ error!"
    with pytest.raises(StaticAssertError, match="op- error"):
        ArithTuple(1, 2) - integer
    with pytest.raises(StaticAssertError, match=r"op\+ error"):
        integer + ArithTuple(1, 2)
    with pytest.raises(StaticAssertError, match="op- error"):
        integer - ArithTuple(1, 2)


@pytest.mark.parametrize("integer", [1, 0, np.int32(4), sympy.Symbol("n")])
def test_a_run_time_integer_is_refused(integer: Any) -> None:
    with pytest.raises(LayoutError, match="a static 0, the zero of all modes, is the only number that can be added"):
        ArithTuple(1, 2) + integer
    with pytest.raises(LayoutError, match="a static 0, the zero of all modes, is the only number that can be added"):
        integer + ArithTuple(1, 2)


@pytest.mark.parametrize("bad", [1.5, True, "x", None, [1], {1: 2}, 2j])
def test_what_is_no_integer_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidTypeError):
        ArithTuple(bad, 1)
    with pytest.raises(InvalidTypeError):
        ArithTuple(1, 2) * bad
    with pytest.raises(InvalidTypeError):
        ArithTuple(1, 2) + bad


def test_different_nesting_is_refused_with_both_operands() -> None:
    with pytest.raises(LayoutError) as caught:
        ArithTuple(1, (2, 3)) + ArithTuple(1, 2)
    assert caught.value.facts["left"] == ArithTuple(1, (2, 3))
    assert caught.value.facts["right"] == ArithTuple(1, 2)
    assert caught.value.facts["mode"] == "1"
