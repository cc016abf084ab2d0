"""Layouts without elements have pictures; options that are none end in a typed error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import cute_py as cute
import cute_py.draw as draw
from cute_py import Int, Layout
from cute_py.errors import CuteError, FileFormatError, InvalidTypeError, InvalidValueError
from tests.each import each_of
from tests.refusals import Refusal, assert_refused, nested, refusals

L = Layout((4, 8))
N = sympy.Symbol("N", integer=True, positive=True)
PICTURE = draw.draw_layout(L)
TABLE = PICTURE.tables[0]
ATOM = cute.tma.make_tma_copy(
    "SM90_TMA_LOAD",
    cute.make_tensor(cute.make_gmem_ptr(0x1000, "float16"), Layout((64, 128), (128, Int(1)))),
    Layout((Int(16), Int(32)), (Int(32), Int(1))),
)
WINDOW = cute.tma.TensorMapIm2col(0, 4096, (16, 4, 3, 1), (16, 64, 192), (-1, -1), (-1, -1), 16, 6)
FIRST = (0, -1, -1, 0)


@pytest.mark.parametrize(
    "layout", [Layout(0), Layout((0, 4)), Layout((4, 0)), Layout((0, 0)), Layout((0, (2, 3)))], ids=str
)
def test_layouts_without_elements(layout: Layout) -> None:
    picture = draw.draw(layout)
    assert str(layout) in str(picture)
    assert picture._repr_svg_().startswith("<svg")


REFUSED: list[Refusal] = [
    ("tile of nothing", lambda: draw.draw_layout(L, tile=()), InvalidValueError, "tile = (); must have"),
    ("color", lambda: draw.draw_layout(L, np.zeros(2)), InvalidTypeError, "color = "),
    ("names", lambda: draw.draw_compare(L, names=6), InvalidTypeError, "names must be a sequence, got int 6"),
    ("bits", lambda: draw.draw_compare(L, bits=0), InvalidValueError, "element, = 0; must be 1 to 128"),
    ("name", lambda: draw.draw_compare(L, L, names=["a", 3]), InvalidTypeError, "names[1] must be a str"),  # type: ignore[list-item]
    ("title", lambda: draw.draw_layout(L, title=3), InvalidTypeError, "the title of a picture must be a str"),  # type: ignore[arg-type]
    ("title of draw", lambda: draw.draw(L, title=b"x"), InvalidTypeError, "the title of a picture must be a str"),
    ("huge tile", lambda: draw.draw_layout(L, "tile", tile=(10**5000, 2)), InvalidValueError, "tile[0] = 0x"),
    ("on", lambda: draw.draw_swizzle(cute.Swizzle(3, 4, 3), L, on=np.arange(3)), InvalidTypeError, "on = "),  # type: ignore[arg-type]
    ("no layout", lambda: draw.draw_swizzle(cute.Swizzle(3, 4, 3), 10**5000), InvalidTypeError, "(16610 bits)"),
    ("no thing", lambda: draw.draw(10**5000), InvalidTypeError, "there is no picture of int 0x31e2080103..."),
    ("huge pairs", lambda: draw.draw_tv(Layout((0, 10**9)), (4, 8)), InvalidValueError, "must have at most 1048576"),
    ("symbolic pairs", lambda: draw.draw_tv(Layout((4, 2), (N, 1)), (4, 8)),
     InvalidTypeError, "must be a known number, got N"),
    ("huge shape", lambda: draw.draw_tv(L, 10**5000), InvalidTypeError, "must be a shape of known sizes"),
    ("coordinates", lambda: draw.draw_im2col(WINDOW, 3), InvalidTypeError, "coords must be a sequence of integers"),  # type: ignore[arg-type]
    ("coordinate", lambda: draw.draw_im2col(WINDOW, (0, "x", 0, 0)), InvalidTypeError, "coords[1] must be an integer"),  # type: ignore[arg-type]
    ("offsets", lambda: draw.draw_im2col(WINDOW, FIRST, None), InvalidTypeError, "offsets must be a sequence"),  # type: ignore[arg-type]
    ("pixels", lambda: draw.draw_smem(WINDOW, 5), InvalidTypeError, "coords must be a sequence of integers"),
    ("array of pixels", lambda: draw.draw_smem(WINDOW, np.arange(3)), InvalidValueError, "3 coordinates and"),
    ("sources of texts", lambda: draw.draw_tmem(np.zeros((8, 8, 4), "U1")), InvalidTypeError, "must be byte offsets"),
    ("sources of nothing", lambda: draw.draw_tmem(np.zeros((0, 0, 4), int)), InvalidTypeError, "must be byte offsets"),
    ("sources of floats", lambda: draw.draw_tmem(np.full((8, 8, 4), np.nan)), InvalidTypeError, "float64; must be"),
    ("no path", lambda: PICTURE.save(0), InvalidTypeError, "the file of a picture must be a text or a path, got int 0"),  # type: ignore[arg-type]
    ("path of bytes", lambda: PICTURE.save(b"x.svg"), InvalidTypeError, "must be a text or a path, got bytes"),  # type: ignore[arg-type]
    ("path with a zero", lambda: PICTURE.save("a\0.svg"), FileFormatError, "can't be written"),
    ("long path", lambda: PICTURE.save("/tmp/" + "a" * 300 + ".svg"), FileFormatError, "can't be written"),
    ("scale", lambda: PICTURE.png(10**5000), InvalidValueError, "(16610 bits); must be below 16000000"),
    ("list of scales", lambda: PICTURE.png(nested(2000)), InvalidTypeError, "must be a number such as 2"),
    ("dark", lambda: PICTURE.png(2, np.arange(3)), InvalidTypeError, "dark must be a bool"),  # type: ignore[arg-type]
    ("picture's title", lambda: draw.Picture(3, ()), InvalidTypeError, "the title of a picture must be a str"),  # type: ignore[arg-type]
    ("picture's tables", lambda: draw.Picture("", None), InvalidTypeError, "must be a sequence, got NoneType"),  # type: ignore[arg-type]
    ("picture's table", lambda: draw.Picture("", (3,)), InvalidTypeError, "entry 0, must be a Table, got int 3"),  # type: ignore[arg-type]
    ("picture's notes", lambda: draw.Picture("", (), (3,)), InvalidTypeError, "entry 0, must be a str, got int 3"),  # type: ignore[arg-type]
]  # fmt: skip


@each_of(
    "tile", [2**70, -1, 10**5000, (2**70, 0), "x", None, 1.5, True, [1], (1, None), nested(2000), np.arange(3), N],
    ids=lambda tile: type(tile).__name__,
)  # fmt: skip
def test_tiles_that_are_none(tile: Any) -> None:
    assert_refused(lambda: draw.draw_smem(ATOM, tile), InvalidValueError, "tile_coord = ")


def test_what_is_taken() -> None:
    assert draw.draw_smem(ATOM, np.int64(1)).title.endswith("tile 1 in shared memory")
    assert draw.draw_im2col(WINDOW, list(FIRST), np.array([1, 0])).text == draw.draw_im2col(WINDOW, FIRST, (1, 0)).text
    assert draw.draw_layout(L, bits=np.int64(16), color="bank") == draw.draw_layout(L, bits=16, color="bank")  # type: ignore[arg-type]
    assert hash(draw.Picture("", [TABLE], ["a"])) == hash(draw.Picture("", (TABLE,), ("a",)))  # type: ignore[arg-type]


@refusals(REFUSED)
def test_refused(call: Callable[[], Any], kind: type[CuteError], words: str) -> None:
    assert_refused(call, kind, words)


@pytest.mark.parametrize("drawn", [draw.draw, draw.draw_layout, draw.draw_tensor, draw.draw_swizzle, draw.draw_compare])
def test_too_deep(drawn: Callable[[Any], Any]) -> None:
    deep = nested(2000)
    with pytest.raises(InvalidTypeError):
        drawn(deep)
