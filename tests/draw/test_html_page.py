"""The page of pictures: what goes in is text or an SVG that only shows something, and nothing else gets out."""

from __future__ import annotations

import html
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cute_py as cute
from cute_py.draw import draw, html_page
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError
from tests.each import each_of

GOOD = '<svg xmlns="http://www.w3.org/2000/svg"><style>rect{fill:url(#a)}</style><rect fill="url(#a)"/></svg>'


@pytest.mark.parametrize(
    ("title", "pictures", "words"),
    [
        ("x", 1, "pictures must be a sequence, got int 1"),
        ("x", "<svg/>", "pictures must be a sequence"),
        ("x", None, "pictures must be a sequence"),
        ("x", ["<svg/>"], "pictures[0] must be a sequence"),
        ("x", [("<svg/>", "a"), ("<svg/>",)], "pictures[1] must be a pair"),
        ("x", [(b"<svg/>", "a")], "the SVG of pictures[0] must be a str"),
        ("x", [("<svg/>", 3)], "the text of pictures[0] must be a str"),
        (3, [], "title must be a str, got int 3"),
    ],
)
def test_types(title: Any, pictures: Any, words: str) -> None:
    with pytest.raises(InvalidTypeError) as error:
        html_page(title, pictures)
    assert words in str(error.value)


def test_pictures_may_come_one_by_one() -> None:
    pairs = [("<svg/>", "one"), ("<svg/>", "two")]
    assert html_page("x", (iter(pair) for pair in pairs)) == html_page("x", pairs)


@each_of(
    ("svg", "words"),
    [
        ("x", "is not XML"),
        ("", "is not XML"),
        ("<svg>", "is not XML"),
        ("<svg/><script/>", "is not XML"),
        ("<p/>", "has the root <p>; must be <svg>"),
        ("<svg><script>alert(1)</script></svg>", "has <script>"),
        ('<svg xmlns:a="http://www.w3.org/1999/xhtml"><a:SCRIPT/></svg>', "has <script>"),
        ("<svg><foreignObject/></svg>", "has <foreignobject>"),
        ("<svg><title><![CDATA[</title><script>1</script>]]></title></svg>", "read differently"),
        ("<svg><!-- --></svg>", "read differently"),
        ('<!DOCTYPE svg [<!ENTITY a "b">]><svg>&a;</svg>', "read differently"),
        ('<svg onload="alert(1)"/>', "has the attribute onload"),
        ('<svg><g ONclick="alert(1)"/></svg>', "has the attribute onclick"),
        ('<svg><use href="https://example.com/a.svg#b"/></svg>', "links to"),
        ('<svg xmlns:x="http://www.w3.org/1999/xlink"><use x:href="javascript:1"/></svg>', "links to"),
        ("<svg><style>@import 'https://example.com'</style></svg>", "has a style in <style>"),
        ("<svg><style>rect{fill:url( 'https://example.com')}</style></svg>", "has a style in <style>"),
        ("<svg><style>rect{fill:u\\72l(https://example.com)}</style></svg>", "has a style in <style>"),
        ('<svg><rect fill="url(//example.com)"/></svg>', "which loads something"),
        ("<svg>\ud800</svg>", "is not XML"),
        ("<svg>" * 3000, "is not XML"),
    ],
)
def test_what_is_no_inert_svg(svg: str, words: str) -> None:
    with pytest.raises(InvalidValueError) as error:
        html_page("x", [(GOOD, "a"), (svg, "b")])
    assert words in error.value.headline
    assert "pictures[1]" in error.value.headline


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)


@given(st.text(), st.text())
def test_titles_and_texts_are_text(title: str, text: str) -> None:
    page = html_page(title + "</title><script>", [(GOOD, text + "</pre><script>")])
    tags = _Tags()
    tags.feed(page)
    assert "script" not in tags.seen
    assert html.escape(title) in page


def test_pictures_of_this_library_are_inert() -> None:
    for text in ("(4,8):(8,1)", "Sw<2,4,3> o smem_ptr[16b](unset) o (_8,_32):(_32,_1)"):
        assert draw(cute.parse(text)).html.count("<figure>") == 1
    with pytest.raises(CuteError):
        html_page("x", [(draw(cute.parse("4:1")).svg.replace("<rect", "<script", 1), "")])
