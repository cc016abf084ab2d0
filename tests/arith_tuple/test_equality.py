"""Coordinates are equal by value: tuples, arithmetic tuples and basis elements with the same modes and numbers."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import ArithTuple, E, Int, Layout, Pointer, Ratio, ScaledBasis, TmemPointer
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, LayoutError
from tests.arith_tuple.strategies import bases, small
from tests.each import each_of
from tests.refusals import Refusal, assert_refused, refusals

N = sympy.Symbol("N", integer=True, positive=True)
two = E(0, 1)
four: Any = cute.ratio(4, 1)

EQUAL: list[tuple[Any, ...]] = [
    (2 * two + 3 * two, 5 * two, ArithTuple((0, 5)), ((0, 5),), Int(5) * two, E(0, 1) * 5),
    (E(0) * 2, ArithTuple(2), (2,), ArithTuple(Int(2))),
    (E(1) * 2, ArithTuple(0, 2), (0, 2), E(0) * 0 + 2 * E(1), 2 * E(1) + Int(0)),
    (E(1) + E(0), ArithTuple(1, 1), (1, 1), E(0) + E(1)),
    (N * E(1), ArithTuple(0, N), (0, N), E(1) * N),
    (ArithTuple(1, E(0)), ArithTuple(1, (1,)), (1, (1,)), (1, E(0))),
    (ScaledBasis(3), 3, Int(3), ScaledBasis(Int(3))),
    (Ratio(4, 2), 2, Int(2), cute.ratio(4, 2), Ratio(-2, -1)),
    (Ratio(1, 2), Ratio(2, 4), cute.ratio(-1, -2)),
    (cute.make_inttuple_iter(E(1)), cute.make_inttuple_iter(0, 1), cute.make_inttuple_iter((Int(0), Int(1)))),
    (Layout(4, 2 * E(0)), Layout(4, Int(2) * E(0))),
]


@each_of("values", EQUAL, ids=lambda values: str(values[0]))
def test_equal_values_hash_alike(values: tuple[Any, ...]) -> None:
    for a in values:
        for b in values:
            assert (a == b, a != b) == (True, False)
            assert hash(a) == hash(b)
    assert len(set(values)) == 1


DIFFERENT: list[tuple[Any, Any]] = [
    (ArithTuple(1), ArithTuple(1, 0)),
    (E(0), E(1)),
    (E(0), E(0, 0)),
    (E(0), 1),
    (0 * E(0), Int(0)),
    (E(1), ArithTuple(0, 1, 0)),
    (E(0, 1), ArithTuple(0, 1)),
    (N * E(0), E(0)),
    (Ratio(1, 2), 0),
    (E(0), None),
    (E(0), "1@0"),
    (ArithTuple(1, 2), [1, 2]),
    (cute.counting_iterator(5), 5),
    (cute.counting_iterator(5), cute.counting_iterator(5, "uint32")),
]


@each_of(("a", "b"), DIFFERENT, ids=str)
def test_different_values(a: Any, b: Any) -> None:
    assert (a == b, a != b, b == a) == (False, True, False)


@given(bases(), small, small)
def test_multiples_add_up(basis: Any, m: int, n: int) -> None:
    total = m * basis + n * basis
    assert total == (m + n) * basis == basis * (m + n)
    assert hash(total) == hash((m + n) * basis) == hash(total.as_tuple())
    assert m * basis - n * basis == (m - n) * basis


@given(bases(), bases())
def test_a_basis_is_its_tuple(a: Any, b: Any) -> None:
    assert a == a.as_arith_tuple() == a.as_arith_tuple().as_tuple()
    assert (a == b) == (a.as_arith_tuple() == b.as_arith_tuple())
    assert pickle.loads(pickle.dumps(a)) == a


@given(st.integers(-50, 50), st.integers(1, 20), st.integers(-50, 50))
def test_ratios_are_numbers(n: int, d: int, other: int) -> None:
    assert (Ratio(n, d) == other) == (Fraction(n, d) == other)
    assert hash(Ratio(n, d)) == hash(Fraction(n, d))


class Absorbing:
    """A class with operations of its own."""

    def __radd__(self, other: Any) -> str:
        return "added"

    def __rsub__(self, other: Any) -> str:
        return "subtracted"


def test_what_can_add_itself_is_asked() -> None:
    for value in (E(0), ArithTuple(1, 2), Ratio(1, 2)):
        assert value + Absorbing() == "added"
    assert Ratio(1, 2) - Absorbing() == "subtracted"


class Refusing:
    """An object with operators that support no ratio."""

    def __sub__(self, other: Any) -> Any:
        return NotImplemented


def test_python_refuses_what_neither_side_supports() -> None:
    with pytest.raises(TypeError, match="unsupported operand") as caught:
        Refusing() - Ratio(1, 2)
    assert not isinstance(caught.value, CuteError)


NO_OPERANDS = [None, 1.5, "x", b"x", [], {}, {1}, frozenset(), object(), Exception(), True, 1j, np.arange(3),
               np.bool_(True), np.float32(1), np.array([object()]), int, Layout(4), cute.Swizzle(3, 4, 3),
               sympy.Rational(1, 2), sympy.true, sympy.Matrix([[1]]), (i for i in ()), 10**5000]  # fmt: skip


@each_of("value", [E(0), 3 * E(1, 2), N * E(1), ArithTuple(1, (2, 3)), Ratio(1, 2), ScaledBasis(3)], ids=str)
@each_of("other", NO_OPERANDS, ids=lambda x: type(x).__name__)
def test_what_is_no_operand(value: Any, other: Any) -> None:
    operations: list[Callable[[Any], Any]] = [lambda x: value + x, lambda x: value - x, lambda x: value * x]
    if isinstance(value, ScaledBasis):
        operations += [value.safe_div, lambda x: value // x, value.with_value]
    for operation in operations:
        try:
            operation(other)
        except CuteError as error:
            assert len(str(error)) < 2000
    if type(other).__module__ != "sympy" and not type(other).__module__.startswith("sympy."):
        for reflected in (lambda x: x + value, lambda x: x - value, lambda x: x * value):
            with contextlib.suppress(CuteError):
                reflected(other)


REFUSED: list[Refusal] = [
    ("basis and exception", lambda: E(0) + Exception(), InvalidTypeError, "only coordinates can be added to an"),
    ("scaled number", lambda: ScaledBasis(3) + None, InvalidTypeError, "only numbers and basis elements can be added"),
    ("scaled number and tuple", lambda: ScaledBasis(3).__add__((1,)), LayoutError, "is the only number that can be"),
    ("ratio", lambda: Ratio(1, 2) + None, InvalidTypeError, "_1/_2 + NoneType None is not defined; the other operand"),
    ("ratio times", lambda: Ratio(1, 2) * "x", InvalidTypeError, "_1/_2 * str 'x'"),
    ("ratio minus", lambda: Ratio(1, 2) - 1.5, InvalidTypeError, "_1/_2 - float 1.5"),
    ("quotient of a ratio", lambda: (Ratio(1, 2) * E(0)) // 2, InvalidTypeError, "safe_div needs an integer scale,"),
    ("minus a ratio", lambda: 1.5 - Ratio(1, 2), InvalidTypeError, "_1/_2 - float 1.5"),
    ("basis and a scaled E()", lambda: E(0) + ScaledBasis(4), LayoutError, "ScaledBasis op+ error!"),
    ("basis minus a scaled E()", lambda: E(0) - ScaledBasis(4), LayoutError, "ScaledBasis op- error!"),
    ("huge ratio", lambda: Ratio(10**5000, 3), InvalidValueError, "(16610 bits); must be at most 2**128"),
    ("mode of a tuple", lambda: ArithTuple(1, 2)["x"], InvalidTypeError, "a mode must be an integer, got str 'x'"),
    ("position", lambda: E(1).at(3, 1), InvalidTypeError, "modes must be a sequence of integers"),  # type: ignore[arg-type]
    ("value at a basis", lambda: cute.basis_get(1.5, (1, 2)), InvalidTypeError, "expected an integer, got float"),
    ("class at a basis", lambda: cute.basis_get(E(1), Layout), InvalidTypeError, "expected an integer, got type"),
    ("symbol that is none", lambda: cute.counting_iterator(sympy.true), InvalidTypeError, "expected an integer, got"),
    ("far", lambda: cute.counting_iterator(0, "float32") + 10**5000, InvalidValueError, "at most 2**128"),
    ("complex", lambda: cute.counting_iterator(1j, "float32"), InvalidTypeError, "must be a number, got complex"),
    ("space", lambda: Pointer("x", 0, "half"), InvalidValueError, "must be one of 'gmem', 'smem', 'rmem', 'generic'"),  # type: ignore[arg-type]
    ("address", lambda: Pointer("gmem", "x", "half"), InvalidTypeError, "the address of a pointer must be an integer"),  # type: ignore[arg-type]
    ("far address", lambda: cute.make_gmem_ptr(2**64, "half"), InvalidValueError, "must be 0 to 18446744073709551615"),
    ("type", lambda: Pointer("gmem", 0, object()), InvalidTypeError, "not an element type"),  # type: ignore[arg-type]
    ("swizzle", lambda: Pointer("smem", 0, "half", 3), InvalidTypeError, "must be a Swizzle, got int 3"),  # type: ignore[arg-type]
    ("bit", lambda: Pointer("gmem", 0, "half", None, 3), InvalidValueError, "float16 is 3; must be 0 to 0"),  # type: ignore[arg-type]
    ("bit beyond a byte", lambda: Pointer("gmem", 0, "uint4", None, 8), InvalidValueError, "must be 0 to 7"),  # type: ignore[arg-type]
    ("tensor memory", lambda: TmemPointer(-1, "half"), InvalidValueError, "must be 0 to 4294967295"),  # type: ignore[arg-type]
    ("type of tensor memory", lambda: TmemPointer(0, 3), InvalidTypeError, "not an element type"),  # type: ignore[arg-type]
]  # fmt: skip


@refusals(REFUSED)
def test_refused(call: Callable[[], Any], kind: type[CuteError], words: str) -> None:
    assert_refused(call, kind, words)


def test_iterators_have_no_end() -> None:
    for iterator in (cute.counting_iterator(3), cute.make_inttuple_iter(5)):
        with pytest.raises(TypeError, match="not iterable"):
            iter(iterator)  # type: ignore[call-overload]


def test_records_hold_plain_numbers() -> None:
    pointer = Pointer("gmem", np.int64(4096), "uint4", None, np.int64(4))  # type: ignore[arg-type]
    assert repr(pointer) == "Pointer('gmem', 0x1000, 'uint4', bit=4)"
    assert repr(TmemPointer(np.int32(32), "half")) == "make_tmem_ptr(0x20, 'float16')"  # type: ignore[arg-type]


def test_coordinates_nested_too_deep() -> None:
    deep: Any = 1
    with pytest.raises(InvalidValueError, match="nested deeper than 64 levels"):
        for _ in range(3000):
            deep = ArithTuple(deep)
    assert str(deep).count("(") == 65


def test_a_tuple_with_an_array_is_no_coordinate() -> None:
    assert E(0) * 2 != (np.zeros(0, np.uint8), 6)
    assert E(1) * 6 != (np.zeros(2, np.uint8), 6)
