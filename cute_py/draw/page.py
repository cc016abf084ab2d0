"""A single HTML page with pictures: one file, without scripts or network access."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree

from cute_py.argument_checks import expect, expect_items
from cute_py.errors import InvalidTypeError, InvalidValueError, given

_ACTIVE: Final = re.compile(
    "script|foreignobject|iframe|object|embed|handler|link|meta|base|form|input|animate|animatemotion|animatetransform"
    "|set|discard|audio|video|img|a"
)
"""Elements that run a script, load a resource or link to another page."""
_INERT: Final = ("#", "data:image/")
"""Allowed beginnings of an SVG's links: to a part of itself, or a picture within it."""
_URL: Final = re.compile(r"url\(\s{0,99}+['\"]?\s{0,99}+[^#'\"\s]", re.IGNORECASE)
_IMPORT: Final = re.compile(r"@import|image-set|src\(|\\", re.IGNORECASE)
"""Other text in a style that loads a resource, or that can hide such text."""

_STYLE = (
    ":root{color-scheme:light dark}body{margin:1.5rem;background:#fff;color:#14181d;"
    "font-family:system-ui,sans-serif}h1{font-size:1.2rem;overflow-wrap:anywhere}"
    "figure{margin:1.5rem 0;overflow-x:auto}pre{overflow-x:auto;font-size:12px}"
    "@media (prefers-color-scheme:dark){body{background:#12161b;color:#eef1f4}}"
)


def html_page(title: str, pictures: Sequence[tuple[str, str]]) -> str:
    """Return an HTML page with pictures.

    Args:
        title: any text. pictures: (SVG, text) of each picture; the page contains the SVG unchanged and the text
            escaped.
    Raises:
        InvalidTypeError: `pictures` are not pairs of strings.
        InvalidValueError: an SVG is malformed, or has scripts, links or external resources.

    >>> page = html_page("a < b", [("<svg/>", "text")])
    >>> "<title>a &lt; b</title>" in page, page.count("<figure>")
    (True, 1)
    """
    expect(title, str, "title")
    pairs: list[tuple[str, ...]] = []
    for i, given_pair in enumerate(expect_items(pictures, "pictures")):
        pair = expect_items(given_pair, f"pictures[{i}]")
        pairs.append(pair)
        if len(pair) != 2:
            raise InvalidTypeError(f"pictures[{i}] must be a pair of SVG and text, got {given(pair)}")
        expect(pair[0], str, f"the SVG of pictures[{i}]")
        expect(pair[1], str, f"the text of pictures[{i}]")
        reason = _not_inert(pair[0])
        if reason:
            raise InvalidValueError(f"the SVG of pictures[{i}] {reason}", {"got": given(pair[0])})
    figures = [
        f"<figure>{svg}<details><summary>as text</summary><pre>{html.escape(text)}</pre></details></figure>\n"
        for svg, text in pairs
    ]
    name = html.escape(title)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{name}</title>'
    return f"""<!doctype html>
<html lang="en"><head>{head}<style>{_STYLE}</style></head>
<body><h1>{name}</h1>
{"".join(figures)}</body></html>"""


def _not_inert(svg: str) -> str:
    """The reason why a string is not an SVG without active content; empty if it is such an SVG."""
    if re.search("<[!?]", svg):
        return "has a comment, a declaration or character data in <! or <?, which XML and HTML read differently"
    try:
        root = ElementTree.fromstring(svg)
    except (ElementTree.ParseError, ValueError) as error:
        return f"is not XML: {error}"
    if _local(root.tag) != "svg":
        return f"has the root <{_local(root.tag)}>; must be <svg>"
    for element in root.iter():
        tag = _local(element.tag)
        if _ACTIVE.fullmatch(tag):
            return f"has <{tag}>; a page of pictures must not run, load or link to anything"
        styles = ["".join(element.itertext())] if tag == "style" else []
        for name, value in element.attrib.items():
            if _local(name).startswith("on"):
                return f"has the attribute {_local(name)}, which is a script"
            if _local(name) in ("href", "src") and not value.strip().startswith(_INERT):
                return f"links to {given(value)}; a link must stay inside the picture"
            if _URL.search(value):
                return f"has {name}={given(value)}, which loads something"
            styles += [value] if _local(name) == "style" else []
        if any(_URL.search(style) or _IMPORT.search(style) for style in styles):
            return f"has a style in <{tag}> that loads something"
    return ""


def _local(name: str) -> str:
    """The name of an element or attribute without its namespace, in lower case because HTML ignores case."""
    return str(name).rpartition("}")[2].lower()
