"""The pictures of the guide are those that its code draws today; no picture grows without bound."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import cute_py as cute
from cute_py.draw import Picture, draw, draw_boxes, draw_smem, draw_tv
from cute_py.draw.table import SVG_BYTES, Cell, Table
from cute_py.tma.copy_atom.make import make_tma_copy
from tests.draw.structure import cells, words

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "guide" / "pictures"


def _atom() -> Any:
    gmem = cute.make_tensor(cute.make_gmem_ptr(0x1000, "float16"), cute.parse("(20,72):(72,_1)"))
    smem = cute.parse("Sw<2,4,3> o smem_ptr[16b](unset) o (_8,_32):(_32,_1)")
    return make_tma_copy("SM90_TMA_LOAD", gmem, smem)


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("layout", lambda: draw(cute.parse("((2,2),(4,2)):((1,8),(2,16))"))),
        ("boxes", lambda: draw_boxes(_atom())),
        ("smem", lambda: draw_smem(_atom(), (2, 1))),
    ],
)
def test_the_guide_shows_what_is_drawn(name: str, made: Any) -> None:
    """Where this fails after a change that was meant, save the picture again: made().save(FOLDER / 'name.svg')."""
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == made().svg + "\n"


@pytest.mark.parametrize(
    "make",
    [
        lambda: draw(cute.Layout((2,) * 24)),
        lambda: draw(cute.Layout((10**6, 10**6), (10**17, 10**11))),
        lambda: draw_tv(cute.Layout((1024, 1024), (0, 1)), (1024,)),
        lambda: draw(cute.make_identity_tensor((100, 100, 100, 100, 100))),
        lambda: draw([cute.Layout((2,) * 24)] * 16),
        lambda: draw(cute.Swizzle(3, 0, 30)),
    ],
)
def test_no_picture_is_huge(make: Any) -> None:
    picture = make()
    ElementTree.fromstring(picture.svg)
    assert len(picture.svg) < SVG_BYTES
    assert len(picture.text) < 1_000_000
    assert "summarised: " in picture.text


def test_titles_go_where_they_are_too_much() -> None:
    long = Cell("1", "x" * 1000)
    rows = tuple((long,) * 64 for _ in range(64))
    picture = Picture("large", (Table("", rows, ("",) * 64, ("",) * 64),))
    assert len(picture.svg) < SVG_BYTES
    assert "the titles of the cells are left out: there is too much of them" in words(picture)
    assert {c.title for c in cells(picture)} == {""}


def test_a_long_name_is_clipped_in_the_drawing_only() -> None:
    name = "n" * 5000
    picture = Picture(name, (Table("", ((Cell("1", "t"),),), ("0",), ("0",)),))
    root = ElementTree.fromstring(picture.svg)
    assert float(root.get("width", "0")) < 2000
    assert picture.text.startswith(name)
