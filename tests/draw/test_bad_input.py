"""Layouts without elements have pictures; options that are none end in a typed error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cute_py.draw as draw
from cute_py import Layout
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError

L = Layout((4, 8))


@pytest.mark.parametrize(
    "layout", [Layout(0), Layout((0, 4)), Layout((4, 0)), Layout((0, 0)), Layout((0, (2, 3)))], ids=str
)
def test_layouts_without_elements(layout: Layout) -> None:
    picture = draw.draw(layout)
    assert str(layout) in str(picture)
    assert picture._repr_svg_().startswith("<svg")


REFUSED: list[tuple[str, Callable[[], Any], type[CuteError], str]] = [
    ("tile of nothing", lambda: draw.draw_layout(L, tile=()), InvalidValueError, "tile = (); must be one or two sizes"),
    ("color", lambda: draw.draw_layout(L, np.zeros(2)), InvalidValueError, "color = "),
    ("names", lambda: draw.draw_compare(L, names=6), InvalidTypeError, "names are a list of texts, got 6"),
    ("bits", lambda: draw.draw_compare(L, bits=0), InvalidValueError, "bits = 0; banks need the width"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(call: Callable[[], Any], kind: type[CuteError], words: str) -> None:
    with pytest.raises(kind) as error:
        call()
    assert words in str(error.value)


@pytest.mark.parametrize("drawn", [draw.draw, draw.draw_layout, draw.draw_tensor, draw.draw_swizzle, draw.draw_compare])
def test_too_deep(drawn: Callable[[Any], Any]) -> None:
    deep: Any = 1
    for _ in range(2000):
        deep = (deep,)
    with pytest.raises(InvalidTypeError):
        drawn(deep)
