"""Layouts without elements have pictures; options that are none end in a typed error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cute_py.draw as draw
from cute_py import Layout
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError
from tests.refusals import Refusal, assert_refused, nested, refusals

L = Layout((4, 8))


@pytest.mark.parametrize(
    "layout", [Layout(0), Layout((0, 4)), Layout((4, 0)), Layout((0, 0)), Layout((0, (2, 3)))], ids=str
)
def test_layouts_without_elements(layout: Layout) -> None:
    picture = draw.draw(layout)
    assert str(layout) in str(picture)
    assert picture._repr_svg_().startswith("<svg")


REFUSED: list[Refusal] = [
    ("tile of nothing", lambda: draw.draw_layout(L, tile=()), InvalidValueError, "tile = (); must be one or two sizes"),
    ("color", lambda: draw.draw_layout(L, np.zeros(2)), InvalidValueError, "color = "),
    ("names", lambda: draw.draw_compare(L, names=6), InvalidTypeError, "names are a list of texts, got 6"),
    ("bits", lambda: draw.draw_compare(L, bits=0), InvalidValueError, "bits = 0; banks need the width"),
]  # fmt: skip


@refusals(REFUSED)
def test_refused(call: Callable[[], Any], kind: type[CuteError], words: str) -> None:
    assert_refused(call, kind, words)


@pytest.mark.parametrize("drawn", [draw.draw, draw.draw_layout, draw.draw_tensor, draw.draw_swizzle, draw.draw_compare])
def test_too_deep(drawn: Callable[[Any], Any]) -> None:
    deep = nested(2000)
    with pytest.raises(InvalidTypeError):
        drawn(deep)
