"""Render tables as SVG, side by side up to the width of the page. Each cell is a group of a title, a rectangle and
text.

The style sheet is light by default and in print, and dark on screens whose users prefer dark colours. Plain rules set
the colours, and a media query overrides them. CSS variables are not used, because programs that convert SVG to PNG or
PDF do not support them and would paint every cell black. No meaning depends on hue alone: readers without red or green
cones can distinguish the tones too (`tones`), every cell has a text, and cells outside the tensor are hatched.

A <style> element inside an inline SVG applies to the whole HTML page. Every rule therefore begins with a class whose
name is a hash of the style sheet, so only pictures with equal style sheets share rules.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement, tostring

from cute_py.draw.table import GAP, OUTSIDE, TONES, Bracket, Cell, Legend, Table
from cute_py.draw.tones import shade

FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
CHARACTER = 6.7
"""Width of a character of cell text in the widest of the fonts, in pixels."""
LINE = 14.0
"""Height of a line of text, in pixels."""

MARGIN = 12.0
BETWEEN = 28.0
PAGE_WIDTH = 1500.0
"""Beyond this width in pixels, tables continue in the next row."""
SMALLEST_CELL = 24.0
GAP_CELL = 18.0
BRACKET = 18.0
"""Height of a row of brackets."""
SIDE = 18.0
"""Width of a column of brackets, without their texts."""
HEADING = 200
"""Maximum number of characters that are drawn of a title, or of the names of the axes."""
HEADING_LINE = 110
"""Maximum number of characters in a line of a heading; longer headings are broken."""
NOTE = 120
"""Maximum number of characters in a line of a note; longer notes are broken between words."""
SWATCH = 11.0
"""Side of a swatch of a legend."""
LEGEND_WIDTH = 900.0
"""Beyond this width, swatches continue on the next line, if the tables are not wider."""
SPACE = "xml:space"

SCOPE: Final = "SCOPE"
"""Placeholder in the rules; `style_sheet` replaces it with the class of the pictures that the rules apply to."""
HERE: Final = f"svg.{SCOPE}"
"""The beginning of every selector."""


def _sheet(paper: str, ink: str, faint: str, line: str, tones: Mapping[int, str]) -> str:
    rules = [
        f"{HERE} .paper{{fill:{paper}}}",
        f"{HERE} text{{fill:{ink}}}",
        f"{HERE} .faint{{fill:{faint}}}",
        f"{HERE} .cell{{fill:{paper};stroke:{line}}}",
        f"{HERE} .out{{fill:{paper};fill-opacity:.6}}",
        f"{HERE} .halo{{stroke:{paper};stroke-width:4px;paint-order:stroke}}",
        f"{HERE} .rule{{stroke:{faint}}}",
        f"{HERE} .edge{{stroke:{ink}}}",
        f"{HERE} .hatch{{stroke:{faint}}}",
    ]
    rules += [f"{HERE} .tone{i}{{fill:{fill}}}" for i, fill in tones.items()]
    return "".join(rules)


def style_sheet(more: Collection[int] = ()) -> tuple[str, str]:
    """Return the class name of a style sheet and the rules of its <style> element.

    Args:
        more: the tones that a picture uses beyond the eight that every sheet has.

    Returns:
        (the class of the <svg> element that the rules apply to, the rules). The class name is a hash of the rules. Two
        pictures have the same class exactly if their rules are equal, so no picture changes the colours of another
        picture on the same page.

    >>> plain, rules = style_sheet()
    >>> plain == style_sheet()[0], plain == style_sheet([9])[0], f"svg.{plain} .tone0{{" in rules
    (True, False, True)
    """
    common = (
        f"{HERE} text{{font-family:{FONT};font-size:11px;white-space:pre}}"
        f"{HERE} .title{{font-size:13px;font-weight:bold}}"
        f"{HERE} .mid{{text-anchor:middle}}{HERE} .end{{text-anchor:end}}"
        f"{HERE} .cell{{stroke-width:1}}{HERE} .hatch{{stroke-opacity:.55}}{HERE} .rule{{stroke-width:1;fill:none}}"
        f"{HERE} .hatched{{fill:url(#{SCOPE}-hatch)}}"
        f"{HERE} .edge{{stroke-width:1.5}}"
        f"{HERE} g.c:hover .cell{{stroke-width:2.5}}"
    )
    tones = [*range(TONES), *sorted(more)]
    light = _sheet("#ffffff", "#14181d", "#5b6570", "#8a939d", {i: shade(i) for i in tones})
    dark = _sheet("#12161b", "#eef1f4", "#a3adb8", "#6d7782", {i: shade(i, dark=True) for i in tones})
    rules = f"{common}{light}@media (prefers-color-scheme: dark){{{dark}}}"
    scope = f"cute-{hashlib.blake2b(rules.encode(), digest_size=4).hexdigest()}"
    return scope, rules.replace(SCOPE, scope)


@functools.lru_cache(maxsize=4096)
def _n(value: float) -> str:
    """Text of a number of pixels, cached because the cells of a row or a column repeat it."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def _text(parent: Element, x: float, y: float, text: str, kind: str = "") -> None:
    look = {"x": _n(x), "y": _n(y)}
    if kind:
        look["class"] = kind
    SubElement(parent, "text", look).text = text


def _rectangle(parent: Element, kind: str, x: float, y: float, wide: float, high: float) -> None:
    SubElement(parent, "rect", {"class": kind, "x": _n(x), "y": _n(y), "width": _n(wide), "height": _n(high)})


def _path(parent: Element, kind: str, path: str) -> None:
    SubElement(parent, "path", {"class": kind, "d": path})


def _wide(text: str) -> float:
    return max((len(line) for line in text.split("\n")), default=0) * CHARACTER


def _bracket_width(bracket: Bracket) -> float:
    return _wide(bracket.text) * (1.25 if bracket.strong else 1)


@dataclass(frozen=True, slots=True)
class _Place:
    """The positions of the parts of one table: left edges of columns and top edges of rows, in pixels from the table's
    top left corner.
    """

    columns: tuple[float, ...]
    rows: tuple[float, ...]
    sides: tuple[float, ...]
    """Right edges of the columns of row brackets, innermost first."""
    width: float
    height: float


def _place(table: Table) -> _Place:
    cells = table.cells
    wide = table.cell_width
    if wide is None:
        texts = {cell.text for cell in cells if cell.span == 1}.union(table.column_labels)
        wide = max([SMALLEST_CELL, *(_wide(text) + 8 for text in texts)])
    high = table.cell_height
    if high is None:
        high = (1 + max([cell.text.count("\n") for cell in cells], default=0)) * LINE + 8
    numbers = max([_wide(label) for label in table.row_labels], default=0) + 6
    widths = [max([_wide(row_of.name), *map(_bracket_width, row_of.brackets)]) for row_of in table.row_brackets]
    left = max([numbers + 4 + sum(SIDE + w for w in widths), *(_wide(b.name) + 10 for b in table.column_brackets)])
    sides = [left - numbers - sum(SIDE + w for w in widths[:level]) for level in range(len(widths))]
    top = LINE * (1 + len(heading(table.title)) + len(heading(_axes(table)))) + 8
    top += BRACKET * len(table.column_brackets)
    columns, rows = [left], [top]
    for label in table.column_labels:
        columns.append(columns[-1] + (GAP_CELL if label == GAP else wide))
    for label in table.row_labels:
        rows.append(rows[-1] + (GAP_CELL if label == GAP else high))
    notes = wrapped(table.notes)
    title, axes = (_wide("\n".join(heading(text))) for text in (table.title, _axes(table)))
    width = max([columns[-1], title * 1.2, axes, *(_wide(line) for line in notes)])
    return _Place(tuple(columns), tuple(rows), tuple(sides), width, rows[-1] + 6 + LINE * len(notes))


def clipped(line: str) -> str:
    """Shorten a heading to HEADING characters; the text form of the picture has the complete heading.

    >>> clipped("x" * 1000)[-4:], len(clipped("x" * 1000))
    ('xxx…', 200)
    """
    return line if len(line) <= HEADING else line[: HEADING - 1] + "…"


def heading(text: str) -> list[str]:
    """Split a title or the names of axes into clipped lines; an empty text has none.

    >>> heading(""), [len(line) for line in heading("x" * 1000)]
    ([], [110, 90])
    """
    return textwrap.wrap(clipped(text), HEADING_LINE, drop_whitespace=True, break_on_hyphens=False)


def wrapped(notes: Sequence[str], width: int = NOTE) -> list[str]:
    """Wrap notes to lines of at most `width` characters; only a longer word makes a line longer.

    >>> wrapped(["one two", "three"], 5)
    ['one', '  two', 'three']
    """
    lines: list[str] = []
    for note in notes:
        lines += textwrap.wrap(note, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) or [
            ""
        ]
    return lines


def _axes(table: Table) -> str:
    """Text with the labels of the vertical and the horizontal axis, on one line."""
    parts = [("↓", table.row_axis), ("→", table.column_axis)]
    return "   ".join(f"{arrow} {name}" for arrow, name in parts if name)


def _cell(parent: Element, cell: Cell, x: float, y: float, wide: float, high: float) -> None:
    group = SubElement(parent, "g", {"class": "c"})
    if cell.title:
        SubElement(group, "title").text = cell.title
    _rectangle(group, "cell" if cell.tone is None else f"cell tone{cell.tone}", x, y, wide, high)
    kind = "mid"
    if cell.hatched:
        _outside(group, cell, x, y, wide, high)
        kind = "mid halo"
    lines = cell.text.split("\n")
    first = y + high / 2 - (len(lines) - 1) * LINE / 2 + 4
    for i, line in enumerate(lines):
        if line:
            _text(group, x + wide / 2, first + i * LINE, line, kind)


def _outside(parent: Element, cell: Cell, x: float, y: float, wide: float, high: float) -> None:
    """Draw the part of a cell that is outside the tensor, and the tensor's end if it is inside the cell."""
    right, low = (min(max(part, 0.0), 1.0) for part in cell.inside)
    if right < 1:
        _hatched(parent, x + wide * right, y, wide * (1 - right), high)
    if low < 1:
        _hatched(parent, x, y + high * low, wide * right, high * (1 - low))
    if 0 < right < 1:
        _path(parent, "edge", f"M{_n(x + wide * right)} {_n(y)}V{_n(y + high * low)}")
    if 0 < low < 1 and right > 0:
        _path(parent, "edge", f"M{_n(x)} {_n(y + high * low)}H{_n(x + wide * right)}")


def _hatched(parent: Element, x: float, y: float, wide: float, high: float) -> None:
    if wide > 0 and high > 0:
        _rectangle(parent, "out", x, y, wide, high)
        _rectangle(parent, "hatched", x, y, wide, high)


def _across(parent: Element, bracket: Bracket, place: _Place, y: float) -> None:
    start, stop = place.columns[bracket.start] + 2, place.columns[bracket.stop] - 2
    _path(parent, "rule", f"M{_n(start)} {_n(y + BRACKET - 1)}v-4H{_n(stop)}v4")
    _text(parent, (start + stop) / 2, y + BRACKET - 8, bracket.text, "mid title" if bracket.strong else "mid faint")


def _down(parent: Element, bracket: Bracket, place: _Place, x: float) -> None:
    start, stop = place.rows[bracket.start] + 2, place.rows[bracket.stop] - 2
    _path(parent, "rule", f"M{_n(x - 2)} {_n(start)}h-4V{_n(stop)}h4")
    _text(parent, x - 9, (start + stop) / 2 + 4, bracket.text, "end title" if bracket.strong else "end faint")


def _table(parent: Element, table: Table, place: _Place, x: float, y: float, most: float) -> int:
    """Draw the first `most` cells of a table, and return the number of drawn cells."""
    group = SubElement(parent, "g", {"class": "table", "transform": f"translate({_n(x)} {_n(y)})"})
    headings = [(text, "title") for text in heading(table.title)] + [(text, "faint") for text in heading(_axes(table))]
    for i, (text, kind) in enumerate(headings):
        _text(group, 0, LINE * (i + 1), text, kind)
    top = place.rows[0]
    for level, row_of in enumerate(table.column_brackets):
        edge = top - LINE - BRACKET * (level + 1)
        _text(group, place.columns[0] - 6, edge + BRACKET - 4, row_of.name, "end faint")
        for bracket in row_of.brackets:
            _across(group, bracket, place, edge)
    for label, start, stop in zip(table.column_labels, place.columns, place.columns[1:], strict=False):
        _text(group, (start + stop) / 2, top - 5, label, "mid faint")
    for row_of, edge in zip(table.row_brackets, place.sides, strict=True):
        _text(group, edge - 2, top - 5, row_of.name, "end faint")
        for bracket in row_of.brackets:
            _down(group, bracket, place, edge)
    drawn = 0
    for label, row, start, stop in zip(table.row_labels, table.rows, place.rows, place.rows[1:], strict=False):
        _text(group, place.columns[0] - 6, (start + stop) / 2 + 4, label, "end faint")
        column = 0
        for cell in row:
            left = place.columns[column]
            column += 1 if cell is None else cell.span
            if cell is None:
                _text(group, (left + place.columns[column]) / 2, (start + stop) / 2 + 3, GAP, "mid faint")
            elif not cell.blank and drawn < most:
                drawn += 1
                _cell(group, cell, left, start, place.columns[column] - left, stop - start)
    for i, note in enumerate(wrapped(table.notes)):
        _text(group, 0, place.rows[-1] + LINE * (i + 1), note, "faint")
    return drawn


def _legend(parent: Element, legend: Legend, top: float, limit: float) -> tuple[float, float]:
    """Draw a legend, and return the coordinates of its bottom and right edges."""
    x, y, right = MARGIN, top + LINE, MARGIN
    group = SubElement(parent, "g", {"class": "legend"})
    if legend.text:
        _text(group, x, y, f"{legend.text}:" if legend.swatches else legend.text, "faint")
        x += _wide(legend.text) + 16
        right = x
    start = x
    for tone, name in legend.swatches:
        wide = SWATCH + _wide(name) + 20
        if x > start and x + wide > limit:
            x, y = start, y + LINE + 2
        square = (x, y - SWATCH + 1, SWATCH, SWATCH)
        _rectangle(group, f"cell tone{tone}" if isinstance(tone, int) else "cell", *square)
        if tone == OUTSIDE:
            _rectangle(group, "hatched", *square)
        _text(group, x + SWATCH + 5, y, name, "faint")
        right, x = max(right, x + wide), x + wide
    return y + 4, right


def legends_of(tables: Sequence[Table]) -> list[Legend]:
    """The legends of a picture, without duplicates. Each legend has the swatches that at least one table uses, in their
    original order.
    """
    used: dict[str, set[Any]] = {}
    for legend in (legend for table in tables for legend in table.used_legends):
        used.setdefault(legend.text, set()).update(legend.swatches)
    known: dict[str, dict[Any, None]] = {}  # the keys are the swatches, in order
    for legend in (legend for table in tables for legend in table.legends if legend.text in used):
        swatches = (s for s in legend.swatches if s in used[legend.text])
        known.setdefault(legend.text, {}).update(dict.fromkeys(swatches))
    return [Legend(text, tuple(swatches)) for text, swatches in known.items()]


def render(title: str, tables: Sequence[Table], notes: Sequence[str], most: float = math.inf) -> str:
    """Return the SVG of a picture: one element, valid XML, with its own style sheet.

    Only the first `most` cells are drawn; the picture is laid out for all cells. A character that XML does not
    allow is replaced by U+FFFD.
    """
    spots: list[tuple[Table, _Place, float, float]] = []
    titles = heading(title)
    x, y, below = MARGIN, MARGIN + (LINE * len(titles) + 8 if titles else 0), 0.0
    right = _wide("\n".join(titles)) * 1.25 + 2 * MARGIN
    for table in tables:
        place = _place(table)
        if x > MARGIN and x + place.width > PAGE_WIDTH:
            x, y, below = MARGIN, y + below + BETWEEN, 0.0
        spots.append((table, place, x, y))
        right, below = max(right, x + place.width + MARGIN), max(below, place.height)
        x += place.width + BETWEEN
    lines = wrapped(notes)
    right = max([right, *(_wide(line) + 2 * MARGIN for line in lines)])
    drawn = Element("g")
    end = y + below + 8
    for legend in legends_of(tables):
        end, edge = _legend(drawn, legend, end, max(right, LEGEND_WIDTH))
        right = max(right, edge)
    end += 4 if lines else 0
    wide, high = _n(right), _n(end + LINE * len(lines) + MARGIN)
    tones = {cell.tone for table in tables for cell in table.cells if cell.tone is not None}
    scope, rules = style_sheet([tone for tone in tones if tone >= TONES])
    look = {"class": f"cute {scope}", "role": "img", SPACE: "preserve"}
    size = {"width": wide, "height": high, "viewBox": f"0 0 {wide} {high}"}
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **look, **size})
    SubElement(root, "title").text = title
    SubElement(root, "style").text = rules
    hatch = {"id": f"{scope}-hatch", "width": "8", "height": "8", "patternUnits": "userSpaceOnUse"}
    pattern = SubElement(SubElement(root, "defs"), "pattern", hatch)
    SubElement(pattern, "path", {"class": "hatch", "d": "M-1 1l2-2M0 8l8-8M7 9l2-2"})
    SubElement(root, "rect", {"class": "paper", "width": "100%", "height": "100%"})
    for i, line in enumerate(titles):
        _text(root, MARGIN, MARGIN + LINE * (i + 1), line, "title")
    for table, place, x, y in spots:
        most -= _table(root, table, place, x, y, most)
    root.extend(drawn)
    for i, line in enumerate(lines):
        _text(root, MARGIN, end + LINE * (i + 1), line, "faint")
    return _NO_XML.sub("\ufffd", tostring(root, "unicode"))


_NO_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Matches characters that XML can't hold, not even escaped: most control characters, and lone halves of surrogate
pairs."""
