"""Symbols: computing with them and then substituting gives what computing with the numbers gives."""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy.core.cache import clear_cache

import cute_py as cute
from cute_py import Int, Layout
from cute_py.errors import CuteError, LayoutError

M, N = sympy.symbols("M N", integer=True, positive=True)
SIZES = st.sampled_from([Int(2), Int(4), Int(8), 4, M, N, 4 * M, 2 * N, Int(3)])
STEPS = st.sampled_from([Int(1), Int(1), Int(0), M, N, M * N, 8, Int(8), 2 * M])

OPERATIONS: dict[str, Any] = {
    "coalesce": lambda a, b, t: cute.coalesce(a),
    "filter": lambda a, b, t: cute.filter(a),
    "flatten": lambda a, b, t: cute.flatten(a),
    "composition": lambda a, b, t: cute.composition(a, b),
    "by-mode composition": lambda a, b, t: cute.composition(a, t),
    "logical_divide": lambda a, b, t: cute.logical_divide(a, t),
    "zipped_divide": lambda a, b, t: cute.zipped_divide(a, t),
    "logical_product": lambda a, b, t: cute.logical_product(b, a),
    "right_inverse": lambda a, b, t: cute.right_inverse(a),
    "complement": lambda a, b, t: cute.complement(b, cute.size(a)),
    "nullspace": lambda a, b, t: cute.nullspace(a),
    "make_layout_like": lambda a, b, t: cute.make_layout_like(a),
    "upcast": lambda a, b, t: cute.upcast(a, 2),
    "slice": lambda a, b, t: a((None,) + (1,) * (len(a.shape) - 1)),
    "tiles of coordinates": lambda a, b, t: cute.zipped_divide(cute.make_identity_layout(a.shape), t),
}


def with_numbers(tree: Any, values: dict[Any, int]) -> Any:
    if isinstance(tree, tuple):
        return tuple(with_numbers(t, values) for t in tree)
    return int(tree.subs(values)) if isinstance(tree, sympy.Expr) else tree


@st.composite
def cases(draw: Any) -> tuple[Layout, Layout, tuple[Any, ...]]:
    shape = tuple(draw(st.lists(SIZES, min_size=1, max_size=3)))
    if draw(st.booleans()):
        a = Layout(shape, draw(st.sampled_from([cute.LayoutLeft, cute.LayoutRight])))
    else:
        a = Layout(shape, tuple(draw(STEPS) for _ in shape))
    b = Layout(draw(st.sampled_from([Int(2), Int(4), 4, M, (Int(2), Int(2)), (2, M)])))
    tiler = tuple(draw(st.sampled_from([Int(1), Int(2), Int(4), 4, None, M])) for _ in shape)
    return a, b, tiler[: draw(st.integers(1, len(shape)))]


@pytest.mark.parametrize("name", OPERATIONS)
@settings(max_examples=15)
@given(case=cases(), m=st.sampled_from([4, 8, 16]), n=st.sampled_from([4, 8, 24]))
def test_substituting_commutes_with_the_operation(name: str, case: Any, m: int, n: int) -> None:
    a, b, tiler = case
    values = {M: m, N: n}
    numbers = [Layout(with_numbers(x.shape, values), with_numbers(x.stride, values)) for x in (a, b)]
    try:
        symbolic = OPERATIONS[name](a, b, tiler)
    except CuteError:
        return
    try:
        concrete = OPERATIONS[name](*numbers, with_numbers(tiler, values))
        result = symbolic.subs(values)
    except LayoutError:  # the numbers break a condition that the symbols carried along
        return
    assert str(result) == str(concrete)


@given(case=cases(), m=st.sampled_from([4, 8]), n=st.sampled_from([4, 24]), i=st.integers(0, 30))
def test_evaluation_commutes_too(case: Any, m: int, n: int, i: int) -> None:
    a = case[0]
    values = {M: m, N: n}
    got = a(i)
    want = Layout(with_numbers(a.shape, values), with_numbers(a.stride, values))(i)
    assert (int(got.subs(values).doit()) if isinstance(got, sympy.Expr) else int(got)) == int(want)


def test_what_cannot_be_decided_is_an_assumption() -> None:
    r = cute.composition(Layout((M, Int(8)), (Int(1), M)), Layout(4, 2))
    assert [str(a) for a in r.assumptions]
    assert r.subs({M: 8}).assumptions == ()
    with pytest.raises(LayoutError, match="break an assumption"):
        r.subs({M: 5})


def of_modes(n: int) -> dict[str, Any]:
    """Operations on a layout of n symbolic modes."""
    sizes = sympy.symbols(f"M0:{n}", integer=True, positive=True)
    tile, step = sympy.symbols("T D", integer=True, positive=True)
    left, right = Layout(sizes), Layout(sizes, cute.LayoutRight)
    return {
        "composition with a size": lambda: cute.composition(left, tile),
        "composition with a mode": lambda: cute.composition(right, Layout(tile, step)),
        "composition with itself": lambda: cute.composition(left, left),
        "composition with its reverse": lambda: cute.composition(right, left),
        "composition by mode": lambda: cute.composition(left, (tile,) * n),
        "logical_divide by a size": lambda: cute.logical_divide(right, Int(4)),
        "logical_divide by a mode": lambda: cute.logical_divide(left, Layout(Int(4), Int(2))),
        "logical_divide by mode": lambda: cute.logical_divide(left, (tile,) * n),
    }


LONG = {
    "composition with itself",
    "composition with its reverse",
    "logical_divide by a size",
    "logical_divide by a mode",
}
"""Seconds each."""


QUOTIENTS = {"composition with itself", "composition with its reverse"}
"""Every mode is divided by every other one: n**2 quotients, each of products of up to n symbols."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in of_modes(2)])
def test_time_grows_no_faster_than_the_square_of_the_modes(name: str) -> None:
    """Or than the size of the result, where that is larger. Counted in calls, which a loaded machine does not change.
    From 4 to 12 modes the exponents are up to 1.4 and 2.3."""
    calls_of(of_modes(2)[name])  # imports
    modes = (4, 8, 12)
    exponent, _ = np.polyfit(np.log(modes), np.log([calls_of(of_modes(n)[name]) for n in modes]), 1)
    assert exponent < (3 if name in QUOTIENTS else 2)


def calls_of(operation: Callable[[], Any]) -> int:
    """Calls of Python and of C functions that the operation makes."""
    clear_cache()  # sympy's own, of results
    profile = cProfile.Profile()
    profile.runcall(operation)
    return sum(entry.callcount for entry in profile.getstats())


MANY = sympy.symbols("P0:5", integer=True, positive=True)
POWERS = st.sampled_from([1, 2, 4, 8, 16])


@given(
    sizes=st.lists(POWERS, min_size=5, max_size=5),
    tile=POWERS,
    step=POWERS,
    known=st.sets(st.integers(0, 4)),
    right=st.booleans(),
)
@settings(max_examples=4)
def test_long_expressions_have_the_values_of_the_numbers(
    sizes: list[int], tile: int, step: int, known: set[int], right: bool
) -> None:
    """Five modes: beyond what sympy simplifies. Replacing some symbols first changes nothing."""
    major = cute.LayoutRight if right else cute.LayoutLeft
    values = dict(zip(MANY, sizes, strict=True))
    for operation in (cute.composition, cute.logical_divide):
        symbolic = operation(Layout(MANY, major), Layout(tile, step))
        try:
            concrete = operation(Layout(tuple(sizes), major), Layout(tile, step))
            assert str(symbolic.subs(values)) == str(concrete)
            if operation is cute.composition:
                assert str(symbolic.subs({MANY[i]: sizes[i] for i in known}).subs(values)) == str(concrete)
        except LayoutError:  # the numbers break a condition that the symbols carried along
            continue


def test_numbers_go_in_all_at_once() -> None:
    """sympy alone takes 4 / (N*K) for more than 1 when M is in, and drops the bound."""
    m, n, k = sympy.symbols("m n k", integer=True, positive=True)
    bounded = sympy.Max(1, sympy.floor(4 / (m * n * k)), evaluate=False)
    assert bounded.subs({m: 4, n: 4, k: 4}) == 0
    assert str(Layout(bounded).subs({m: 4, n: 4, k: 4})) == "1:_1"


def test_symbols_go_in_as_sympy_puts_them() -> None:
    assert str(Layout((M, N)).subs({M: 2 * N})) == "(2*N,N):(_1,2*N)"
    assert str(Layout((M, N)).subs({M: N, N: 4})) == "(4,4):(_1,4)"
