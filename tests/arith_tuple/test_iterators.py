"""Iterators: where they stand, how they move, what they are read as."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given

from cute_py import ArithTuple, E, Int, counting_iterator, make_inttuple_iter, ratio
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, LayoutError
from tests.arith_tuple.strategies import coordinates


@given(coordinates, coordinates, coordinates)
def test_moving_adds_up(a: Any, b: Any, c: Any) -> None:
    it = make_inttuple_iter(a)
    assert (it + b) + c == it + (ArithTuple(*b) + ArithTuple(*c))
    assert (it + b).deref() == it[b] == ArithTuple(*a) + ArithTuple(*b)


def test_both_spellings() -> None:
    assert make_inttuple_iter(42, Int(2), Int(7)) == make_inttuple_iter((42, Int(2), Int(7)))
    offset = (Int(0), 5, Int(2))
    moved = make_inttuple_iter(42, Int(2), Int(7)) + offset
    assert str(moved.deref()) == "(42,7,_9)"
    assert str(make_inttuple_iter(E(1))) == "ArithTuple(_0,_1)"


@pytest.mark.parametrize(
    ("iterator", "text"),
    [
        (make_inttuple_iter(5), "ArithTuple5"),
        (make_inttuple_iter(Int(5)), "ArithTuple_5"),
        (make_inttuple_iter((1, (Int(2), 3))), "ArithTuple(1,(_2,3))"),
        (make_inttuple_iter(0, 0) + 5 * E(1), "ArithTuple(0,5)"),
        (make_inttuple_iter(Int(0)) + 5 * E(1), "ArithTuple5@1"),
        (make_inttuple_iter((1,)) + E(1, 0), "ArithTuple(1,(_1))"),
        (make_inttuple_iter(2) + 3, "ArithTuple5"),
        (counting_iterator(3), "counting_iter(3)"),
        (counting_iterator(Int(3)) + Int(2), "counting_iter(5)"),
        (counting_iterator(np.int64(3)), "counting_iter(3)"),
        (counting_iterator(5, "float64"), "counting_iter(5.000000)"),
        (counting_iterator(-1, "uint16"), "counting_iter(65535)"),
    ],
)
def test_texts(iterator: Any, text: str) -> None:
    assert str(iterator) == text


def test_reprs_evaluate_back() -> None:
    names = {"make_inttuple_iter": make_inttuple_iter, "counting_iterator": counting_iterator, "Int": Int}
    for it in (make_inttuple_iter(1, (Int(2), 3)), make_inttuple_iter(Int(4)), counting_iterator(4, "int8")):
        assert eval(repr(it), names) == it
        assert hash(eval(repr(it), names)) == hash(it)


@pytest.mark.parametrize(
    ("dtype", "start", "offset", "value"),
    [
        ("int8", 125, 3, -128),
        ("uint8", 250, 10, 4),
        ("int32", 2**31 - 1, 1, -(2**31)),
        ("uint32", 0, -1, 2**32 - 1),
        ("int64", 2**62, 2**62, -(2**63)),
        ("float32", 1.5, 2, 3.5),
    ],
)
def test_counting_wraps_at_the_width_of_the_type(dtype: str, start: Any, offset: int, value: Any) -> None:
    assert counting_iterator(start, dtype)[offset] == value


def test_counting_from_a_symbol() -> None:
    n = sympy.Symbol("n", integer=True)
    assert (counting_iterator(n) + 3).value == n + 3


@pytest.mark.parametrize("bad", [1.5, True, "x", None, (1, 2), E(0)])
def test_a_counting_iterator_moves_by_integers(bad: Any) -> None:
    with pytest.raises(InvalidTypeError, match=r"a step of counting_iter\(1\) must be an integer"):
        counting_iterator(1) + bad


def test_what_cannot_be_counted() -> None:
    with pytest.raises(InvalidTypeError):
        counting_iterator("x")
    with pytest.raises(InvalidTypeError, match="bool"):
        counting_iterator(0, "bool")
    with pytest.raises(InvalidValueError, match="nothing"):
        counting_iterator(0, "nothing")
    with pytest.raises(InvalidTypeError):
        make_inttuple_iter()


@pytest.mark.parametrize("bad", [1, 1.5, "x", None, True, Int(3)])
def test_a_coordinate_iterator_moves_by_coordinates(bad: Any) -> None:
    with pytest.raises(CuteError):
        make_inttuple_iter(0, 0) + bad
    assert make_inttuple_iter(0, 0) + Int(0) == make_inttuple_iter(0, 0)


def test_a_differently_nested_offset_is_refused() -> None:
    offset = (1, 2)
    with pytest.raises(LayoutError, match="the coordinates have different profiles"):
        make_inttuple_iter(0, (1, 2)) + offset


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (ratio(1, 2), "_1/_2"),
        (ratio(-2, 4), "_-1/_2"),
        (ratio(1, -2), "_-1/_2"),
        (ratio(4, 2), "_2"),
        (ratio(1, 2) * Int(4), "_2"),
        (ratio(1, 2) * Int(3), "_3/_2"),
        (ratio(3, 2) * 5, "7"),
        (5 * ratio(-1, 2), "-2"),
        (ratio(1, 2) + ratio(1, 3), "_5/_6"),
        (ratio(1, 2) + ratio(1, 2), "_1"),
        (ratio(1, 2) + Int(2), "_5/_2"),
        (Int(5) * E(1) * ratio(1, 10), "_1/_2@1"),
        ((ratio(3, 2) * E(1)) * 5, "7@1"),
    ],
)
def test_ratios_as_cpp_computes_them(value: Any, text: str) -> None:
    assert str(value) == text


def test_ratios_are_of_integers() -> None:
    with pytest.raises(InvalidTypeError, match="run-time number 5"):
        ratio(1, 2) + 5
    assert str(ratio(1, 2) - Int(1)) == "_-1/_2"
    assert str(Int(1) - ratio(1, 2)) == "_1/_2"
    with pytest.raises(InvalidValueError, match="3/0"):
        ratio(3, 0)
    for bad in (1.5, True, "1", None):
        with pytest.raises(InvalidTypeError):
            ratio(bad, 2)
