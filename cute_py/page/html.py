"""Build HTML where every string is escaped, except the markup that this module made (`Html`).

tag("td", "a < b")                     <td>a &lt; b</td>
tag("tr", tag("td", "1"), class_="x")  <tr class="x"><td>1</td></tr>
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from cute_py.draw.picture import Picture
from cute_py.draw.render_svg import render


class Html(str):
    """A string of markup that was made by this module, or the SVG of a picture; it is not escaped again."""

    __slots__ = ()


Child: TypeAlias = "Html | str | int | float | None"


def _shown(child: Child) -> str:
    if child is None:
        return ""
    return child if isinstance(child, Html) else html.escape(str(child))


def tag(name: str, *children: Child, **attributes: str | int | None) -> Html:
    """An element with children and attributes. `class_` is the attribute class; other underscores in a name become
    hyphens.

    >>> tag("p", "<b>", tag("code", 1), class_="x")
    '<p class="x">&lt;b&gt;<code>1</code></p>'
    """
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{told}>{''.join(map(_shown, children))}</{name}>")


def join_html(parts: Iterable[Child]) -> Html:
    """Concatenate elements."""
    return Html("".join(map(_shown, parts)))


def code(text: object) -> Html:
    """Inline code."""
    return tag("code", str(text))


def pre(text: object) -> Html:
    """A preformatted block of lines."""
    return tag("pre", str(text))


def list_html(items: Iterable[Child], kind: str = "ul", class_: str | None = None) -> Html:
    """An unordered list."""
    return tag(kind, *(tag("li", item) for item in items), class_=class_)


def html_table(head: Sequence[Child], rows: Iterable[Sequence[Child]], class_: str | None = None) -> Html:
    """A table that scrolls by itself. If `head` is empty, the table has no head."""
    top = [tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head)))] if head else []
    body = tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows))
    return tag("div", tag("table", *top, body, class_=class_), class_="scroll")


def pairs(rows: Iterable[tuple[str, Child]]) -> Html:
    """A description list of names and values."""
    return tag("dl", *(join_html((tag("dt", name), tag("dd", value))) for name, value in rows))


def drawn(picture: Picture, name: str, most: int | None = None) -> Html:
    """A picture with its text form; `name` is the name of the downloaded file.

    If `most` is given, only the first `most` cells are drawn, the text form is empty, and the figure is marked as a
    part.
    """
    part = most is not None
    svg = render(picture.title, picture.tables, picture.notes, most) if most is not None else picture.svg
    text = tag("details", tag("summary", "as text"), pre("" if part else picture.text))
    figure = (tag("div", Html(svg), class_="scroll picture"), tag("p", class_="cell-text quiet"), text)
    return tag("figure", *figure, data_name=name, data_part="1" if part else None)
