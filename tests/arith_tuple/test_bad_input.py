"""What is no number, no array, or too large to print ends in a typed error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import cute_py as cute
from cute_py import ArrayEngine, E, Int, Layout, Ratio, SmemPtrFlag
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError
from tests.refusals import Refusal, assert_refused, nested, refusals

N = sympy.Symbol("N", integer=True, positive=True)
HUGE = Layout((2**40, 2**30))
TV = Layout((4, 2), (E(1), E(0)))

REFUSED: list[Refusal] = [
    ("engine of a number", lambda: ArrayEngine(7, 0), InvalidTypeError, "a one-dimensional array, got 7"),
    ("engine of a matrix", lambda: ArrayEngine(np.zeros((2, 2)), 0), InvalidTypeError, "a one-dimensional array"),
    ("origin", lambda: ArrayEngine(np.zeros(4), b"x"), InvalidTypeError, "the index of offset 0 must be an integer"),
    ("huge table", lambda: cute.format_layout(HUGE), InvalidValueError, "cells; must be at most 1048576"),
    ("huge picture", lambda: cute.format_latex(HUGE), InvalidValueError, "cells; must be at most 1048576"),
    ("huge tile", lambda: cute.format_latex_tv(TV, (2**40, 2**30)), InvalidValueError, "cells; must be at most"),
    ("symbolic table", lambda: cute.format_layout(Layout((N, 4))), InvalidTypeError, "got the symbol N"),
    ("symbolic picture", lambda: cute.format_latex(Layout(N)), InvalidTypeError, "got the symbol N"),
    ("one mode", lambda: cute.format_latex_tv(TV, 7), InvalidTypeError, "tile_mn must be (M, N), got 1 modes"),
    ("counter", lambda: cute.counting_iterator(()), InvalidTypeError, "must be an integer"),
    ("counter of an array", lambda: cute.counting_iterator(np.zeros(3)), InvalidTypeError, "must be an integer"),
    ("flag", lambda: SmemPtrFlag(sympy.I), InvalidTypeError, "must be an integer"),
    ("flag of a text", lambda: SmemPtrFlag(""), InvalidTypeError, "must be an integer"),
    ("address", lambda: cute.make_gmem_ptr(int, "float16"), InvalidTypeError, "a pointer must be an integer"),
    ("ratio", lambda: Ratio(0, np.array([1, 2])), InvalidTypeError, "the denominator of a ratio must be an integer"),
    ("mode", lambda: E(int), InvalidTypeError, "item 0 of the basis element's modes must be an integer, got type"),
    ("mode after a bad one", lambda: E(-1, (1, 2)), InvalidValueError, "modes is -1; must be 0 to 4095"),
    ("array as text", lambda: cute.text(np.array([1, 2])), InvalidTypeError, "print accepts only one element, got an"),
    ("date as text", lambda: cute.text(np.datetime64("2020")), InvalidTypeError, "expected a number to print, got"),
]  # fmt: skip


@refusals(REFUSED)
def test_refused(call: Callable[[], Any], kind: type[CuteError], words: str) -> None:
    assert_refused(call, kind, words)


def test_too_deep() -> None:
    deep = nested(2000)
    calls: tuple[Callable[[Any], Any], ...] = (
        cute.text, cute.ostream_text, cute.parse, cute.make_tensor, cute.format_tensor, cute.make_coord_tensor, E, Int,
        lambda t: cute.recast(t, "float32"), lambda t: cute.basis_get(E(0), t), lambda t: cute.make_gmem_ptr(t, "int8"),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(CuteError):
            call(deep)


def test_the_largest_table_is_printed() -> None:
    assert cute.format_layout(Layout((1, 2**10))).count("\n") == 5
