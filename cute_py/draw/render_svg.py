"""Tables as SVG: placed side by side as far as the page is wide, each cell a group of title, rectangle and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, tostring

from cute_py.draw.style import CHARACTER, LINE, style_sheet
from cute_py.draw.table import Bracket, Cell, Table

MARGIN = 12.0
BETWEEN = 28.0
PAGE_WIDTH = 1500.0
"""Tables go to the next row of tables beyond this width, pixels."""
SMALLEST_CELL = 24.0
GAP_CELL = 18.0
BRACKET = 18.0
"""Height of a row of brackets."""
SIDE = 26.0
"""Width of a column of brackets."""
HEADING = 200
"""Characters of a title, or of the names of the axes, that are drawn."""
SPACE = "{http://www.w3.org/XML/1998/namespace}space"


def _n(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def _text(parent: Element, x: float, y: float, text: str, kind: str = "") -> None:
    node = SubElement(parent, "text", {"x": _n(x), "y": _n(y), **({"class": kind} if kind else {})})
    node.text = text


def _wide(text: str) -> float:
    return max((len(line) for line in text.split("\n")), default=0) * CHARACTER


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the parts of one table are: left and top edges of columns and rows, pixels from its own corner."""

    columns: tuple[float, ...]
    rows: tuple[float, ...]
    width: float
    height: float


def _place(table: Table) -> _Place:
    cells = table.cells
    wide = table.cell_width
    if wide is None:
        texts = [cell.text for cell in cells if cell.span == 1] + list(table.column_labels)
        wide = max([SMALLEST_CELL, *(_wide(text) + 8 for text in texts)])
    high = table.cell_height
    if high is None:
        high = max([1, *(cell.text.count("\n") + 1 for cell in cells)]) * LINE + 8
    left = max([_wide(label) for label in table.row_labels], default=0) + 10 + SIDE * len(table.row_brackets)
    left = max([left, *(_wide(b.name) + 10 for b in table.column_brackets)])
    top = LINE * (1 + bool(table.title) + bool(table.row_axis or table.column_axis)) + 8
    top += BRACKET * len(table.column_brackets)
    columns, rows = [left], [top]
    for label in table.column_labels:
        columns.append(columns[-1] + (GAP_CELL if label == "…" else wide))
    for label in table.row_labels:
        rows.append(rows[-1] + (GAP_CELL if label == "…" else high))
    lines = [*table.notes, clipped(table.title), clipped(_axes(table))]
    width = max([columns[-1], *(_wide(line) * 1.2 for line in lines)])
    return _Place(tuple(columns), tuple(rows), width, rows[-1] + 6 + LINE * len(table.notes))


def clipped(line: str) -> str:
    """A heading of at most HEADING characters; the whole one stands in the text twin.

    >>> clipped("x" * 1000)[-4:], len(clipped("x" * 1000))
    ('xxx…', 200)
    """
    return line if len(line) <= HEADING else line[: HEADING - 1] + "…"


def _axes(table: Table) -> str:
    """What runs down and what across, on one line."""
    parts = [("↓", table.row_axis), ("→", table.column_axis)]
    return "   ".join(f"{arrow} {name}" for arrow, name in parts if name)


def _cell(parent: Element, cell: Cell, x: float, y: float, wide: float, high: float) -> None:
    group = SubElement(parent, "g", {"class": "c"})
    if cell.title:
        SubElement(group, "title").text = cell.title
    tone = "" if cell.tone is None else f" tone{cell.tone}"
    box = {"x": _n(x), "y": _n(y), "width": _n(wide), "height": _n(high)}
    SubElement(group, "rect", {"class": f"cell{tone}", **box})
    right, low = (min(max(part, 0.0), 1.0) for part in cell.inside)
    if right < 1:
        _hatched(group, x + wide * right, y, wide * (1 - right), high)
    if low < 1:
        _hatched(group, x, y + high * low, wide * right, high * (1 - low))
    lines = cell.text.split("\n")
    first = y + high / 2 - (len(lines) - 1) * LINE / 2 + 4
    for i, line in enumerate(lines):
        if line:
            _text(group, x + wide / 2, first + i * LINE, line, "mid halo" if cell.hatched else "mid")


def _hatched(parent: Element, x: float, y: float, wide: float, high: float) -> None:
    if wide > 0 and high > 0:
        box = {"x": _n(x), "y": _n(y), "width": _n(wide), "height": _n(high)}
        SubElement(parent, "rect", {"class": "out", **box})
        SubElement(parent, "rect", {"fill": "url(#cute-hatch)", **box})


def _across(parent: Element, bracket: Bracket, place: _Place, y: float) -> None:
    start, stop = place.columns[bracket.start] + 2, place.columns[bracket.stop] - 2
    path = f"M{_n(start)} {_n(y + BRACKET - 2)}v-4H{_n(stop)}v4"
    SubElement(parent, "path", {"class": "rule", "d": path})
    _text(parent, (start + stop) / 2, y + BRACKET - 8, bracket.text, "mid faint")


def _down(parent: Element, bracket: Bracket, place: _Place, x: float) -> None:
    start, stop = place.rows[bracket.start] + 2, place.rows[bracket.stop] - 2
    path = f"M{_n(x + SIDE - 2)} {_n(start)}h-4V{_n(stop)}h4"
    SubElement(parent, "path", {"class": "rule", "d": path})
    _text(parent, x + SIDE - 8, (start + stop) / 2 + 4, bracket.text, "end faint")


def _table(parent: Element, table: Table, place: _Place, x: float, y: float) -> None:
    group = SubElement(parent, "g", {"class": "table", "transform": f"translate({_n(x)} {_n(y)})"})
    line = LINE
    if table.title:
        _text(group, 0, line, clipped(table.title), "title")
        line += LINE
    axes = clipped(_axes(table))
    if axes:
        _text(group, 0, line, axes, "faint")
        line += LINE
    top = place.rows[0]
    for level, row_of in enumerate(table.column_brackets):
        edge = top - LINE - BRACKET * (level + 1)
        _text(group, place.columns[0] - 6, edge + BRACKET - 4, row_of.name, "end faint")
        for bracket in row_of.brackets:
            _across(group, bracket, place, edge)
    for label, start, stop in zip(table.column_labels, place.columns, place.columns[1:], strict=False):
        _text(group, (start + stop) / 2, top - 5, label, "mid faint")
    margin = max([_wide(label) for label in table.row_labels], default=0) + 6
    for level, row_of in enumerate(table.row_brackets):
        edge = place.columns[0] - margin - SIDE * (level + 1)
        _text(group, edge + SIDE - 2, top - 5, row_of.name, "end faint")
        for bracket in row_of.brackets:
            _down(group, bracket, place, edge)
    for label, row, start, stop in zip(table.row_labels, table.rows, place.rows, place.rows[1:], strict=False):
        _text(group, place.columns[0] - 6, (start + stop) / 2 + 4, label, "end faint")
        column = 0
        for cell in row:
            left = place.columns[column]
            column += 1 if cell is None else cell.span
            if cell is None:
                _text(group, (left + place.columns[column]) / 2, (start + stop) / 2 + 3, "…", "mid faint")
            else:
                _cell(group, cell, left, start, place.columns[column] - left, stop - start)
    for i, note in enumerate(table.notes):
        _text(group, 0, place.rows[-1] + LINE * (i + 1), note, "faint")


def render(title: str, tables: Sequence[Table], notes: Sequence[str]) -> str:
    """The SVG of a picture, as one element with its own style sheet; parses as XML."""
    spots: list[tuple[Table, _Place, float, float]] = []
    heading = clipped(title)
    x, y, below, right = MARGIN, MARGIN + (LINE + 8 if title else 0), 0.0, _wide(heading) * 1.25 + 2 * MARGIN
    for table in tables:
        place = _place(table)
        if x > MARGIN and x + place.width > PAGE_WIDTH:
            x, y, below = MARGIN, y + below + BETWEEN, 0.0
        spots.append((table, place, x, y))
        right, below = max(right, x + place.width + MARGIN), max(below, place.height)
        x += place.width + BETWEEN
    end = y + below + (8 if notes else 0)
    right = max([right, *(_wide(note) * 1.05 + 2 * MARGIN for note in notes)])
    height = end + LINE * len(notes) + MARGIN
    size = {"width": _n(right), "height": _n(height), "viewBox": f"0 0 {_n(right)} {_n(height)}"}
    root = Element(
        "svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "cute", "role": "img", SPACE: "preserve", **size}
    )
    SubElement(root, "title").text = title
    SubElement(root, "style").text = style_sheet()
    hatch = {"id": "cute-hatch", "width": "8", "height": "8", "patternUnits": "userSpaceOnUse"}
    pattern = SubElement(SubElement(root, "defs"), "pattern", hatch)
    SubElement(pattern, "path", {"class": "hatch", "d": "M-1 1l2-2M0 8l8-8M7 9l2-2"})
    SubElement(root, "rect", {"class": "paper", "width": "100%", "height": "100%"})
    if heading:
        _text(root, MARGIN, MARGIN + LINE, heading, "title")
    for table, place, x, y in spots:
        _table(root, table, place, x, y)
    for i, note in enumerate(notes):
        _text(root, MARGIN, end + LINE * (i + 1), note, "faint")
    return tostring(root, encoding="unicode")
