"""Basis elements: where they stand, how they add up, what layouts make of them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from cute_py import (
    ArithTuple,
    E,
    Int,
    Layout,
    ScaledBasis,
    basis_get,
    basis_value,
    ceil_div,
    coprofile,
    coshape,
    make_basis_like,
    make_identity_layout,
    ratio,
)
from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError, StaticAssertError
from tests.arith_tuple.strategies import bases, basis_layouts, coordinates_in, small
from tests.each import each_of


@given(bases(), bases(), small, small)
def test_bases_scale_and_add_as_their_tuples_do(a: Any, b: Any, m: int, n: int) -> None:
    assert m * a + n * b == m * a.as_arith_tuple() + n * b.as_arith_tuple()
    assert (m * n) * a == m * (n * a)
    assert a - b == a + (-b)


@given(st.data())
def test_evaluation_of_a_basis_stride_layout_is_linear(data: Any) -> None:
    layout = data.draw(basis_layouts())
    a, b = data.draw(coordinates_in(layout.shape)), data.draw(coordinates_in(layout.shape))
    n = data.draw(small)

    def plus(x: Any, y: Any) -> Any:
        return tuple(plus(p, q) for p, q in zip(x, y, strict=True)) if type(x) is tuple else x + y

    def times(x: Any) -> Any:
        return tuple(times(p) for p in x) if type(x) is tuple else n * x

    zero = ArithTuple(0, 0, (0, 0))
    assert zero + layout(plus(a, b)) == (zero + layout(a)) + layout(b)
    assert zero + layout(times(a)) == zero + n * layout(a)


@given(st.data())
def test_an_identity_layout_is_the_identity(data: Any) -> None:
    shape = data.draw(st.sampled_from([(4,), (4, 5), ((2, 3), 4), (2, (3, (2, 2)))]))
    coordinate = data.draw(coordinates_in(shape))
    assert ArithTuple() + make_identity_layout(shape)(coordinate) == coordinate


@each_of(
    ("basis", "text", "tuple_text"),
    [
        (E(0), "_1@0", "(_1)"),
        (E(1), "_1@1", "(_0,_1)"),
        (E(0, 1), "_1@1@0", "((_0,_1))"),
        (E(1, 0), "_1@0@1", "(_0,(_1))"),
        (E(0, 1, 2), "_1@2@1@0", "((_0,(_0,_0,_1)))"),
        (5 * E(1), "5@1", "(_0,5)"),
        (E(1) * Int(5), "_5@1", "(_0,_5)"),
        (Int(0) * E(1), "_0@1", "(_0,_0)"),
        (np.int64(3) * E(1), "3@1", "(_0,3)"),
        (ScaledBasis(3 * E(1), 2), "3@1@2", "(_0,_0,(_0,3))"),
        (ratio(1, 2) * E(0), "_1/_2@0", "(_1/_2)"),
        (-E(2), "_-1@2", "(_0,_0,_-1)"),
        (abs(Int(-3) * E(1)), "_3@1", "(_0,_3)"),
    ],
)
def test_texts(basis: Any, text: str, tuple_text: str) -> None:
    assert str(basis) == text
    assert str(basis.as_arith_tuple()) == tuple_text
    assert eval(repr(basis), {"E": E, "ScaledBasis": ScaledBasis, "Int": Int, "Ratio": type(ratio(1, 2))}) == basis
    assert pickle.loads(pickle.dumps(basis)) == basis


def test_the_empty_basis_is_one() -> None:
    assert type(E()) is Int
    assert E() == 1
    assert E() * 5 == 5


def test_positions_and_values() -> None:
    assert E(1) != E(1, 0)
    assert E(1) != Int(1)
    assert basis_value(Int(7) * E(2)) == 7
    assert basis_value(7) == 7
    assert basis_get(E(1, 0), (4, (5, 6))) == 5
    assert str(basis_get(E(1), Layout((4, (5, 6))))) == "(5,6):(4,20)"
    assert str(make_basis_like(((2, 3), 4))) == "((E(0, 0), E(0, 1)), E(1))"


def test_division() -> None:
    assert str((Int(64) * E(1)).safe_div(Int(16))) == "_4@1"
    assert str((64 * E(1)) // 16) == "4@1"
    assert str(ceil_div(Int(65) * E(1), Int(16))) == "_5@1"
    with pytest.raises(StaticAssertError, match="t % u == 0"):
        (Int(65) * E(1)).safe_div(Int(16))


def test_codomain() -> None:
    layout = Layout((4, Int(6)), (E(1), Int(3) * E(0)))
    assert str(coprofile(layout)) == "(Int(0), Int(0))"
    assert coshape(layout) == (16, 4)
    with pytest.raises(LayoutError, match="the strides belong to coordinates of different profiles"):
        coprofile(Layout((4, 6), (E(1), E(1, 0))))


@pytest.mark.parametrize("bad", [-1, -5])
def test_negative_modes_are_refused(bad: int) -> None:
    with pytest.raises(InvalidValueError, match=str(bad)):
        E(bad)
    with pytest.raises(InvalidValueError, match=str(bad)):
        E(0, bad)


@pytest.mark.parametrize("bad", [True, 1.0, "0", None])
def test_modes_are_integers(bad: Any) -> None:
    with pytest.raises(InvalidTypeError):
        E(bad)


@pytest.mark.parametrize("bad", [1.5, True, "2", None, [1], ArithTuple(1, 2)])
def test_scales_are_integers(bad: Any) -> None:
    with pytest.raises(InvalidTypeError):
        E(0) * bad
    with pytest.raises(InvalidTypeError):
        bad * E(0)
    with pytest.raises(InvalidTypeError):
        ScaledBasis(bad, 0)


def test_symbols_scale_bases() -> None:
    n = sympy.Symbol("n", integer=True)
    assert str(n * E(1)) == str(E(1) * n) == "n@1"
    assert str(n * E(1) + 3 * E(0)) == "(3,n)"


@pytest.mark.parametrize("bad", [None, 1.5, "4", (4, None)])
def test_bases_are_made_like_sizes(bad: Any) -> None:
    with pytest.raises(InvalidTypeError):
        make_basis_like(bad)


def test_two_bases_have_no_product() -> None:
    with pytest.raises(InvalidTypeError, match="_1@1"):
        E(0) * E(1)


@pytest.mark.parametrize("integer", [Int(1), 1, 0, np.int8(3)])
def test_an_integer_has_no_position(integer: Any) -> None:
    with pytest.raises(LayoutError, match=r"a static 0, the zero of all modes, is the only number that can be added"):
        E(1) + integer
    with pytest.raises(LayoutError, match=r"a static 0, the zero of all modes, is the only number that can be added"):
        integer + E(1)
    assert E(1) + Int(0) == E(1) == Int(0) + E(1)


def test_static_integers_are_refused_in_cpp_words() -> None:
    with pytest.raises(StaticAssertError) as caught:
        E(1) + Int(1)
    assert caught.value.condition == "ScaledBasis op+ error!"


def test_incompatible_hierarchies() -> None:
    with pytest.raises(StaticAssertError) as caught:
        E(1) + E(1, 1)
    assert caught.value.condition == "Arithmetic tuple op+ error!"
    with pytest.raises(LayoutError, match="the coordinates have different profiles"):
        2 * E(1) + 3 * E(1, 1)
