"""Axis terms: how strides and offsets are written."""

from __future__ import annotations

import numpy
import pytest

from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.tmem import THREAD_AXES, Axis, AxisSum, AxisTerm, TCol, TLane, laneid, m
from cute_py.tmem.axes import as_term


def test_terms_add_up() -> None:
    total = 3 @ TLane + 4 @ TCol + 5 + 1 @ TCol
    assert total.as_dict() == {"TLane": 3, "TCol": 5, "m": 5}
    assert repr(total) == "3 @ TLane + 5 @ TCol + 5"
    assert 5 + 3 @ TLane == AxisSum((AxisTerm(5, "m"), AxisTerm(3, "TLane")))


def test_a_bare_number_is_on_m() -> None:
    assert as_term(16) == 16 @ m == AxisTerm(16, "m")
    assert numpy.int64(4) @ TCol == 4 @ TCol


def test_kinds() -> None:
    assert laneid.kind == "thread"
    assert TLane.kind == "memory"
    assert Axis("anything").kind == "memory"
    assert {Axis(name).kind for name in THREAD_AXES} == {"thread"}


@pytest.mark.parametrize("value", [True, 1.5, "4", None])
def test_steps_are_whole_numbers(value: object) -> None:
    with pytest.raises(InvalidTypeError, match="steps along TLane must be an integer"):
        value @ TLane  # type: ignore[operator]


def test_names_are_identifiers() -> None:
    with pytest.raises(InvalidValueError):
        Axis("T Lane")
    with pytest.raises(InvalidTypeError):
        Axis(3)  # type: ignore[arg-type]
