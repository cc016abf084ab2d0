"""Pictures as Chromium shows them, ten on one page: their colours, light and dark, and the size of their letters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cute_py.draw.picture import Picture
from cute_py.draw.tones import DARK, LIGHT
from tests.draw.colour_vision import contrast
from tests.draw.explorer_browser import dumped
from tests.draw.structure import SVG
from tests.draw.test_scopes import pictures
from tests.shares import one_in

READ = """
const seen = (node, name) => getComputedStyle(node)[name];
const scale = (svg) => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
document.getElementById("out").textContent = JSON.stringify([...document.querySelectorAll("svg")].map((svg) => ({
  fills: [...svg.querySelectorAll("rect")].map((node) => seen(node, "fill")),
  letters: [...svg.querySelectorAll("text")].map((node) => parseFloat(seen(node, "fontSize")) * scale(svg)),
  inks: [...new Set([...svg.querySelectorAll("text")].map((node) => seen(node, "fill")))],
})));
"""
DARK_OPTION = "--blink-settings=preferredColorScheme=0"
PAPERS = {False: "#ffffff", True: "#12161b"}


def shown(folder: Path, made: list[Picture], dark: bool) -> list[dict[str, Any]]:
    """What the browser says of each picture on the page."""
    body = "\n".join(picture.svg for picture in made)
    page = folder / "ten.html"
    head = '<meta charset="utf-8"><meta name="color-scheme" content="light dark">'
    page.write_text(f'<!doctype html>{head}<body>{body}<pre id="out"></pre><script>{READ}</script>', encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(dumped(page.as_uri(), *([DARK_OPTION] if dark else [])).by_id("out").text)
    return found


def wanted(picture: Picture, dark: bool) -> list[str | None]:
    """The fill of each rectangle by its own classes; None for a pattern."""
    out: list[str | None] = []
    for node in ElementTree.fromstring(picture.svg).iter(f"{SVG}rect"):
        kinds = (node.get("class") or "").split()
        tone = next((int(kind[4:]) for kind in kinds if kind.startswith("tone")), None)
        if "hatched" in kinds:
            out.append(None)
        else:
            out.append(PAPERS[dark] if tone is None else (DARK if dark else LIGHT)[tone])
    return out


def hexadecimal(colour: str) -> str:
    """'rgb(1, 2, 3)' as '#010203'."""
    return "#" + "".join(f"{int(part):02x}" for part in colour[4:-1].split(","))


@pytest.mark.parametrize("dark", one_in(2, [False, True]), ids=["light", "dark"])
def test_ten_pictures_on_one_page(tmp_path: Path, dark: bool) -> None:
    made = pictures()
    found = shown(tmp_path, made, dark)
    assert len(found) == 10
    for picture, seen in zip(made, found, strict=True):
        want = wanted(picture, dark)
        assert len(seen["fills"]) == len(want) > 1
        for fill, tone in zip(seen["fills"], want, strict=True):
            assert fill.startswith("url(") if tone is None else hexadecimal(fill) == tone
        assert min(seen["letters"]) >= 9
        assert min(contrast(hexadecimal(ink), PAPERS[dark]) for ink in seen["inks"]) >= 4.5
