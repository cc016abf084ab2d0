"""The parts of a picture before rendering to SVG or text: tables of cells with labels, brackets and notes.

    Picture = tables side by side        Table = cells, labels of rows and columns, brackets over nested modes
    Cell = text, the full path as its title, a tone (colour), the part of it that is inside (the rest is hatched)

A long axis is cut in its middle: `shown(200, 64)` keeps the first and the last indices, None is the gap.
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
"""Size of an SVG above which the titles of the cells are omitted."""
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
        title: shown when the pointer rests on the cell.
        tone: its colour, 0 to 7, or up to 31 if threads need more colours; None: no colour.
        inside: fractions of its width and height that are inside the tensor; the rest is hatched.
        span: number of columns that it covers; a table with such cells has a `plain_text`.
        blank: nothing is drawn.
    """

    text: str = ""
    title: str = ""
    tone: int | None = None
    inside: tuple[float, float] = WHOLE
    span: int = 1
    blank: bool = field(default=False, repr=False)

    @property
    def hatched(self) -> bool:
        """Whether a part of the cell lies outside."""
        return self.inside != WHOLE


@dataclass(frozen=True, slots=True)
class Bracket:
    """A label over the rows or columns `start` to `stop` - 1 (positions in the table); `strong` marks the name of a
    part of the picture, which is drawn like a title."""

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
    """Legend of the cells' colours: `text` in general, then a name for each swatch.

    Attributes:
        swatches: (tone, None for no colour, or OUTSIDE for the hatch; what it means).
        in_text: it also explains the texts of the cells, so the text form lists it too.
    """

    text: str
    swatches: tuple[tuple[int | str | None, str], ...] = ()
    in_text: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells. A cell that is None is a gap, where cells were omitted.

    Attributes:
        row_axis, column_axis: names of the rows and columns.
        row_brackets, column_brackets: innermost first.
        notes: lines below the table.
        legends: the meaning of the colours and of the hatch; only the swatches that a cell of the table uses are drawn.
        plain_text: the text form of cells and notes, if cells in columns are not the best form.
        cell_width, cell_height: pixels; None: as large as the texts.
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
        """The legends with the swatches that at least one cell uses, in their order."""
        cells = self.cells
        used: set[int | str | None] = {cell.tone for cell in cells}
        if {cell.inside for cell in cells} - {WHOLE}:
            used.add(OUTSIDE)
        kept = [replace(e, swatches=tuple(s for s in e.swatches if s[0] in used)) for e in self.legends]
        return tuple(new for new, old in zip(kept, self.legends, strict=True) if new.swatches or not old.swatches)


def tone_legend(text: str, names: Sequence[str] = tuple(map(str, range(TONES)))) -> Legend:
    """A legend that names the tones in order.

    >>> tone_legend("offset modulo 8").swatches[:2]
    ((0, '0'), (1, '1'))
    """
    return Legend(text, tuple(enumerate(names)))


def hatch_legend(text: str) -> Legend:
    """The legend of the hatch alone."""
    return Legend("", ((OUTSIDE, text),))


def shown(count: int, limit: int = AXIS_LIMIT) -> list[int | None]:
    """Indices of an axis that are drawn; None is the gap in the middle.

    >>> shown(4, 6), shown(100, 8)
    ([0, 1, 2, 3], [0, 1, 2, 3, 4, None, 98, 99])
    """
    if count <= limit:
        return list(range(count))
    tail = min(TAIL, max(limit // 4, 1))
    return [*range(max(limit - tail - 1, 1)), None, *range(count - tail, count)]


def shown_around(count: int, limit: int, wanted: Sequence[int]) -> list[int | None]:
    """The indices of an axis that are drawn if the indices `wanted`, the most important first, must be visible; None
    for gaps.

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
    """The note of a table that is drawn only in part (`down` or `across` has a gap); empty if it is complete.

    >>> cut_note(4, 100, shown(4, 8), shown(100, 8))
    ('summarised: 4 x 100 cells, of which 4 x 7 are drawn',)
    """
    if None not in (*down, *across):
        return ()
    drawn = [sum(1 for index in indices if index is not None) for indices in (down, across)]
    return (f"summarised: {rows} x {columns} {what}, of which {drawn[0]} x {drawn[1]} are drawn",)


def axis_limit(rows: int, columns: int, tables: int = 1) -> int:
    """Maximum number of rows, and of columns, for each of `tables` tables in one picture.

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
    """The table with a cell for each index in `down` and in `across`, None in either being a gap.

    Args:
        cell: (index in `down`, index in `across`) -> Cell; row_name, column_name: index -> label.
        more: the other attributes of the table.

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
    """Brackets over an axis whose mode is nested: one row for each leaf above the innermost.

    Args:
        sizes: sizes of the leaves, innermost (fastest) first; paths: their names.
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
    """A bracket over each run of equal values; a run of None gets no bracket.

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
