"""Pictures on one HTML page keep their colours, although a <style> element in an SVG applies to the whole page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from cute_py import Swizzle, parse
from cute_py.draw import Picture, draw
from cute_py.draw.picture import opened
from cute_py.draw.table import Cell, Table
from tests.draw.structure import SVG
from tests.draw.test_page import GUIDE

RULE = re.compile(r"svg\.([\w-]+) \.([\w-]+)\{([^{}]*)\}")
"""A rule for a class inside an SVG: (class of the SVG, class of the element, declarations)."""


def pictures() -> list[Picture]:
    """Ten pictures; the tones beyond eight differ, and four have none."""
    one = [Picture(f"tone {i}", (Table("", ((Cell("7", tone=i),),), ("0",), ("0",)),)) for i in (3, 9, 17, 31)]
    return [*one, *(GUIDE[name]() for name in ("layout", "mma", "boxes", "tv", "smem")), draw(Swizzle(2, 0, 3))]


def sheets(svgs: list[str]) -> list[tuple[str, str, str]]:
    """The rules of all style sheets of a page in their order."""
    return [rule for svg in svgs for rule in RULE.findall("".join(re.findall("<style>(.*?)</style>", svg)))]


def fills(svg: str, rules: list[tuple[str, str, str]]) -> list[str]:
    """The fill of every rectangle: all selectors are equally specific, so that the last rule that matches wins."""
    root = ElementTree.fromstring(svg)
    scopes = (root.get("class") or "").split()
    last: dict[str, tuple[int, str]] = {}
    for place, (scope, name, text) in enumerate(rules):
        fill = re.search(r"(?:^|;)fill:([^;]+)", text)
        if scope in scopes and fill:
            last[name] = (place, fill[1])
    out = []
    for rectangle in root.iter(f"{SVG}rect"):
        matching = [last[name] for name in (rectangle.get("class") or "").split() if name in last]
        out.append(max(matching)[1])
    return out


@pytest.mark.parametrize("dark", [False, True])
def test_ten_pictures_on_one_page_look_as_each_does_alone(dark: bool) -> None:
    light = [picture.svg for picture in pictures()]
    assert len(light) == 10
    svgs = [opened(svg) if dark else re.sub(r"@media.*?\}\}", "", svg) for svg in light]
    page = sheets(svgs)
    for svg in svgs:
        alone = fills(svg, sheets([svg]))
        assert fills(svg, page) == alone
        assert ("#12161b" if dark else "#ffffff") in alone


def test_one_scope_for_the_two_pictures_would_lose_a_colour() -> None:
    """What the test above would find: the last sheet paints the cells of the first one as paper."""
    first, last = (re.sub(r"cute-[0-9a-f]{8}", "cute-one", p.svg) for p in (pictures()[1], pictures()[0]))
    first, last = (re.sub(r"@media.*?\}\}", "", svg) for svg in (first, last))
    assert fills(first, sheets([first])) != fills(first, sheets([first, last]))


def test_equal_sheets_share_a_scope_and_the_hatch_belongs_to_it() -> None:
    svgs = [draw(parse("(2,3):(1,2)")).svg, draw(parse("(4,3):(1,4)")).svg, GUIDE["mma"]().svg]
    (a,), (b,), (c,) = (set(re.findall(r"svg\.([\w-]+)", svg)) for svg in svgs)
    assert a == b != c
    for svg in svgs:
        (scope,) = set(re.findall(r"svg\.([\w-]+)", svg))
        assert re.findall(r'<pattern id="([^"]+)"', svg) == re.findall(r"url\(#([^)]+)\)", svg) == [f"{scope}-hatch"]
