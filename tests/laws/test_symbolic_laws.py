"""Symbols: computing with them and then substituting gives what computing with the numbers gives."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

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
