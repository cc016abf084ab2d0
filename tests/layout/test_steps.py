"""The steps that explain an operation end in its result."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import Int, Layout
from cute_py.errors import InvalidTypeError, LayoutError, StaticAssertError
from cute_py.testing.strategies import layouts

SMALL = layouts(kinds=("compact", "gaps"), sizes=(1, 2, 3, 4), max_rank=2, depth=1)
ONE = (cute.coalesce, cute.complement, cute.right_inverse, cute.left_inverse)
TWO = tuple(o for o in cute.explained() if o not in ONE)


@given(layouts(static=None), st.sampled_from(ONE))
def test_one_operand(a: Layout, operation: Any) -> None:
    try:
        want = operation(a)
    except LayoutError as refusal:  # C++'s conditions, and a run-time stride of 0 that nothing divides by
        with pytest.raises(type(refusal)):
            cute.steps(operation, a)
        return
    told = cute.steps(operation, a)
    assert told[-1].rule == "result"
    assert str(told[-1].result) == str(want)


@given(layouts(), SMALL, st.sampled_from(TWO))
def test_two_operands(a: Layout, b: Layout, operation: Any) -> None:
    try:
        want = operation(a, b)
    except StaticAssertError:
        with pytest.raises(StaticAssertError):
            cute.steps(operation, a, b)
        return
    told = cute.steps(operation, a, b)
    assert str(told[-1].result) == str(want)


@given(layouts(), SMALL)
def test_what_is_taken_mode_by_mode_is_the_size(a: Layout, b: Layout) -> None:
    """Within each mode of the right layout, the sizes taken and the rest multiply to its size."""
    try:
        told = cute.steps(cute.composition, a, b)
    except StaticAssertError:
        return
    expected: list[int] = []
    products: list[int] = []
    for step in told:
        if step.rule == "mode":
            expected.append(int(step.values["size"]))
            products.append(1)
        elif step.rule == "walk":
            products[-1] *= int(step.values["taken"])
        elif step.rule in ("rest", "scale", "stay"):
            products[-1] *= int(step.values["size"])
    assert products == expected


def test_steps_are_data() -> None:
    told = cute.steps(cute.coalesce, Layout((Int(2), Int(4))))
    with pytest.raises(FrozenInstanceError):
        told[0].rule = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        told[0].values["merged"] = 3  # type: ignore[index]
    with pytest.raises(InvalidTypeError, match="steps can't explain upcast"):
        cute.steps(cute.upcast, Layout(4), 2)


def test_one_mode_is_scaled() -> None:
    """Nothing is stepped over on the way along a left side of one mode."""
    steps = cute.steps(cute.composition, Layout(Int(8), Int(3)), Layout(Int(2), Int(2)))
    assert [step.rule for step in steps] == ["coalesce", "mode", "scale", "result"]
    assert "stride _2 * _3 = _6" in str(steps[2])


def test_a_condition_that_fails_is_stated() -> None:
    """C++ computes such a composition of dynamic integers without a check."""
    walked = [step.text for step in cute.steps(cute.composition, Layout((4, 8), (8, 1)), Layout(5)) if "%" in step.text]
    assert walked[0].endswith("5 % 4 = 1; must be 0 (Shape Divisibility Condition)")
