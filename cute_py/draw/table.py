"""The parts of a picture before rendering to SVG or text: tables of cells with labels, brackets and notes.

    Picture = tables side by side        Table = cells, labels of rows and columns, brackets over nested modes
    Cell = text, a title (tooltip), a tone (colour), the part of it that is inside (the rest is hatched)

A long axis is cut in the middle: `shown(200, 64)` keeps the first and the last indices, with None for the gap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, TypeVar

Row = TypeVar("Row")
T = TypeVar("T")

AXIS_LIMIT = 64
"""Maximum number of rows or columns of one table; 64 x 64 cells make an SVG of about one megabyte."""
PICTURE_CELLS = 4096
"""Maximum number of cells in all tables of a picture together."""
SVG_BYTES = 2_000_000
"""The titles of the cells are omitted in an SVG above this size."""
TAIL = 3
"""Number of indices that are kept at the end of an axis that is cut."""
TONES = 8
"""Number of different cell colours."""
OUTSIDE = "outside"
"""The swatch of hatched cells."""
GAP = "…"
"""The label of omitted cells, and its text."""
WHOLE = (1.0, 1.0)
"""The value of `inside` for a cell that is not hatched."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. `text` may have several lines.

    Attributes:
        title: tooltip text, shown when the pointer rests on the cell.
        tone: index of the colour, 0 to 7, or up to 31 if threads need more colours; None for no colour.
        inside: fractions of the cell's width and height that are inside the tensor; the rest is hatched.
        span: number of columns that the cell covers; if it is not 1, the table needs a `plain_text`.
        blank: whether the cell is left empty.
    """

    text: str = ""
    title: str = ""
    tone: int | None = None
    inside: tuple[float, float] = WHOLE
    span: int = 1
    blank: bool = field(default=False, repr=False)

    @property
    def hatched(self) -> bool:
        """Whether a part of the cell is outside the tensor."""
        return self.inside != WHOLE


@dataclass(frozen=True, slots=True)
class Bracket:
    """A label over the rows or columns at positions `start` to `stop` - 1 of the table. If `strong` is set, the label
    names a part of the picture and is drawn like a title.
    """

    start: int
    stop: int
    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class BracketRow:
    """The brackets of one nested mode; `name` is its path, such as '1.0'."""

    name: str
    brackets: tuple[Bracket, ...]


@dataclass(frozen=True, slots=True)
class Legend:
    """Legend of the cells' colours: `text`, followed by the swatches with their names.

    Attributes:
        swatches: (tone, meaning) pairs; the tone is None for no colour, or OUTSIDE for the hatch.
        in_text: whether the text form of the picture lists the legend too, because it also explains the texts of the
            cells.
    """

    text: str
    swatches: tuple[tuple[int | str | None, str], ...] = ()
    in_text: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table of cells in rows. None in place of a cell is a gap, where cells are omitted.

    Attributes:
        row_axis, column_axis: names of the rows and columns.
        row_brackets, column_brackets: brackets over nested modes, innermost first.
        notes: lines below the table.
        legends: the meanings of the colours and of the hatch; only the swatches that at least one cell uses are drawn.
        plain_text: text form of the cells and notes that replaces the usual one of cells in columns.
        cell_width, cell_height: size of a cell in pixels; None fits the cells to their texts.
    """

    title: str = ""
    rows: tuple[tuple[Cell | None, ...], ...] = ()
    row_labels: tuple[str, ...] = ()
    column_labels: tuple[str, ...] = ()
    row_axis: str = ""
    column_axis: str = ""
    row_brackets: tuple[BracketRow, ...] = ()
    column_brackets: tuple[BracketRow, ...] = ()
    notes: tuple[str, ...] = ()
    legends: tuple[Legend, ...] = ()
    plain_text: str | None = None
    cell_width: float | None = None
    cell_height: float | None = None

    @property
    def cells(self) -> list[Cell]:
        """All cells, without the gaps."""
        return [cell for row in self.rows for cell in row if cell is not None]

    @property
    def used_legends(self) -> tuple[Legend, ...]:
        """The legends, each reduced to the swatches that at least one cell uses."""
        cells = self.cells
        used: set[int | str | None] = {cell.tone for cell in cells}
        if {cell.inside for cell in cells} - {WHOLE}:
            used.add(OUTSIDE)
        kept = [replace(e, swatches=tuple(s for s in e.swatches if s[0] in used)) for e in self.legends]
        return tuple(new for new, old in zip(kept, self.legends, strict=True) if new.swatches or not old.swatches)


def tone_legend(text: str, names: Sequence[str] = tuple(map(str, range(TONES)))) -> Legend:
    """Build a legend with the names of the tones in order.

    >>> tone_legend("offset modulo 8").swatches[:2]
    ((0, '0'), (1, '1'))
    """
    return Legend(text, tuple(enumerate(names)))


def hatch_legend(text: str) -> Legend:
    """A legend that explains only the hatch."""
    return Legend("", ((OUTSIDE, text),))


def shown(count: int, limit: int = AXIS_LIMIT) -> list[int | None]:
    """The indices of an axis that are drawn, at most `limit`, with None for the gap in the middle.

    >>> shown(4, 6), shown(100, 8)
    ([0, 1, 2, 3], [0, 1, 2, 3, 4, None, 98, 99])
    """
    if count <= limit:
        return list(range(count))
    tail = min(TAIL, max(limit // 4, 1))
    return [*range(max(limit - tail - 1, 1)), None, *range(count - tail, count)]


def shown_around(count: int, limit: int, wanted: Sequence[int]) -> list[int | None]:
    """The indices of an axis that are drawn, with None for gaps, if the indices `wanted` (the most important first)
    must be visible.

    The first and the last three indices, and the neighbours of the wanted indices, are kept too.

    >>> shown_around(100, 16, [50, 51])
    [0, 1, 2, None, 48, 49, 50, 51, 52, 53, None, 97, 98, 99]
    """
    if count <= limit:
        return list(range(count))
    ends = {*range(min(TAIL, count)), *range(max(count - TAIL, 0), count)}
    room = max(limit - len(ends) - 4, 1)  # The gaps, at most: between three groups and the ends.
    picked: set[int] = set()
    for index in [*dict.fromkeys(wanted), *(i + d for d in (1, -1, 2, -2) for i in dict.fromkeys(wanted))]:
        if 0 <= index < count and index not in ends and len(picked) < room:
            picked.add(index)
    indices: list[int | None] = []
    for index in sorted(picked | ends):
        if indices and indices[-1] != index - 1:
            indices.append(None)
        indices.append(index)
    return indices


def cut_note(
    rows: int, columns: int, down: Sequence[T | None], across: Sequence[T | None], what: str = "cells"
) -> tuple[str, ...]:
    """The note on a table that is drawn only in part (`down` or `across` has a gap); empty if the table is complete.

    >>> cut_note(4, 100, shown(4, 8), shown(100, 8))
    ('summarised: 4 x 100 cells; 4 x 7 are drawn',)
    """
    if None not in (*down, *across):
        return ()
    drawn = [sum(1 for index in indices if index is not None) for indices in (down, across)]
    return (f"summarised: {rows} x {columns} {what}; {drawn[0]} x {drawn[1]} are drawn",)


def axis_limit(rows: int, columns: int, tables: int = 1) -> int:
    """The maximum number of rows, and of columns, of each table in a picture of `tables` tables.

    >>> axis_limit(8, 64, 2), axis_limit(64, 64, 4), axis_limit(1000, 8)
    (64, 32, 64)
    """
    if min(rows, AXIS_LIMIT) * min(columns, AXIS_LIMIT) * tables <= PICTURE_CELLS:
        return AXIS_LIMIT
    return max(8, int((PICTURE_CELLS / max(tables, 1)) ** 0.5))


def grid(
    down: Sequence[Row | None],
    across: Sequence[T | None],
    cell: Callable[[Row, T], Cell],
    row_name: Callable[[Row], str] = str,
    column_name: Callable[[T], str] = str,
    **more: Any,
) -> Table:
    """Build a table with a cell for each pair of indices in `down` and `across`; None in either is a gap.

    Args:
        cell: (index in `down`, index in `across`) -> Cell; row_name, column_name: index -> label.
        more: other attributes of the `Table`.

    >>> [label for label in grid([0], shown(100, 8), lambda i, j: Cell(str(i + j))).column_labels][4:]
    ['4', '…', '98', '99']
    """
    return Table(
        rows=tuple(tuple(None if i is None or j is None else cell(i, j) for j in across) for i in down),
        row_labels=tuple(GAP if i is None else row_name(i) for i in down),
        column_labels=tuple(GAP if j is None else column_name(j) for j in across),
        **more,
    )


def brackets(sizes: Sequence[int], paths: Sequence[str], indices: Sequence[int | None]) -> tuple[BracketRow, ...]:
    """Build the brackets over an axis of a nested mode: one row of brackets for each leaf except the innermost.

    Args:
        sizes: sizes of the leaves, innermost (fastest) first. paths: names of the leaves, such as '1.0'.
        indices: the colexicographic indices that are drawn.

    >>> [(b.start, b.stop, b.text) for b in brackets((2, 3), ("1.0", "1.1"), [0, 1, 2, 3, 4, 5])[0].brackets]
    [(0, 2, '0'), (2, 4, '1'), (4, 6, '2')]
    """
    out = []
    span = 1
    for leaf, (size, path) in enumerate(zip(sizes, paths, strict=True)):
        if leaf and size > 1 and span > 1:
            out.append(BracketRow(path, _groups(span, size, indices)))
        span *= size
    return tuple(out)


def _groups(span: int, size: int, indices: Sequence[int | None]) -> tuple[Bracket, ...]:
    return run_brackets(
        [None if index is None else index // span for index in indices], lambda block: str(block % size)
    )


def run_brackets(values: Sequence[T | None], name: Callable[[T], str] = str) -> tuple[Bracket, ...]:
    """Build a bracket over each run of equal values, except runs of None.

    >>> [(b.start, b.stop, b.text) for b in run_brackets([7, 7, None, 7])]
    [(0, 2, '7'), (3, 4, '7')]
    """
    found, start = [], 0
    for value, group in groupby(values):
        stop = start + len(list(group))
        if value is not None:
            found.append(Bracket(start, stop, name(value)))
        start = stop
    return tuple(found)
