"""Render a picture as text: its cells, labels and brackets in columns of characters.

A cell that is partly outside the tensor has a `/` after its text. A table that is wider than a terminal is divided into
parts, one below the other. The text has no colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from cute_py.draw.render_svg import wrapped
from cute_py.draw.table import GAP, OUTSIDE, BracketRow, Cell, Table

HATCHED = "/"
WIDTH = 118
"""Number of characters in a line, unless a cell or a word is longer."""
ALIGNED = 8
"""The columns of each part of a wide table are a multiple of this number, unless there are fewer."""


def _cell_text(cell: Cell | None) -> str:
    """The text of a cell on one line; an ellipsis for a gap.

    >>> _cell_text(Cell("T0\\nV1", inside=(0.5, 1.0))), _cell_text(None)
    ('T0 V1/', '…')
    """
    if cell is None:
        return GAP
    return cell.text.replace("\n", " ") + (HATCHED if cell.hatched else "")


def table_text(table: Table) -> str:
    """Render a table as text, without a newline at the end."""
    lines = wrapped([table.title], WIDTH) if table.title else []
    if table.plain_text is not None:
        return "\n".join([*lines, table.plain_text])
    legends = table.used_legends
    outside = [name for legend in legends for tone, name in legend.swatches if tone == OUTSIDE]
    lines += [*_grid(table), *wrapped(table.notes, WIDTH)]
    listed_legends = [
        "; ".join(part for part in (", ".join(name for _, name in legend.swatches), legend.text) if part)
        for legend in legends
        if legend.in_text
    ]
    return "\n".join([*lines, *(f"{HATCHED} {name}" for name in outside), *listed_legends])


def _parts(table: Table, width: Sequence[int], margin: int) -> list[range]:
    """Divide the columns of a table into parts that fit a terminal.

    A part ends at the end of a bracket, or else after a multiple of 8 columns, so that related columns stay together.
    """
    borders = {bracket.start for row_of in table.column_brackets[:1] for bracket in row_of.brackets}
    parts, start = [], 0
    while start < len(width):
        stop, used = start, margin + 1
        while stop < len(width) and (stop == start or used + width[stop] + 2 <= WIDTH):
            used += width[stop] + 2
            stop += 1
        if stop < len(width):
            eights = start + (stop - start) // ALIGNED * ALIGNED
            stop = max([at for at in borders if start < at <= stop], default=eights if eights > start else stop)
        parts.append(range(start, stop))
        start = stop
    return parts or [range(0)]


def _grid(table: Table) -> list[str]:
    texts = [[_cell_text(cell) for cell in row] for row in table.rows]
    columns = list(zip_longest(table.column_labels, *texts, fillvalue=""))[: len(table.column_labels)]
    width, heads = [max(map(len, column)) for column in columns], _row_heads(table)
    margin = max([len(head) for head in heads] + [len(b.name) + 1 for b in table.column_brackets], default=0)
    lines = []
    if table.row_axis or table.column_axis:
        axes = [("down", table.row_axis), ("across", table.column_axis)]
        lines += wrapped(["  " + "; ".join(f"{way}: {name}" for way, name in axes if name)], WIDTH)
    if table.row_brackets:
        names = ", ".join(row_of.name for row_of in reversed(table.row_brackets))
        lines.append(f"  left of the row numbers: {names}")
    for number, part in enumerate(_parts(table, width, margin)):
        lines += [""] * bool(number) + _part(table, texts, width, heads, margin, part)
    return [line.rstrip() for line in lines]


def _part(
    table: Table, texts: Sequence[Sequence[str]], width: Sequence[int], heads: Sequence[str], margin: int, part: range
) -> list[str]:
    """Render some columns of a table, with all rows."""
    lines = [
        f"{row_of.name:>{margin}} | " + _bracket_line(row_of, width, part) for row_of in reversed(table.column_brackets)
    ]
    names = "  ".join(table.column_labels[i].rjust(width[i]) for i in part)
    lines.append(" " * margin + " | " + names)
    lines.append("-" * margin + "-+-" + "-" * (sum(width[i] for i in part) + 2 * max(len(part) - 1, 0)))
    own = slice(part.start, part.stop)
    for head, line in zip(heads, texts, strict=True):
        cells = map(str.rjust, line[own], width[own])
        lines.append(f"{head:>{margin}} | " + "  ".join(cells))
    return lines


def _row_heads(table: Table) -> list[str]:
    """The heading of each row: its label, and for the first row of a group also the outer coordinates."""
    wide = max((len(label) for label in table.row_labels), default=0)
    heads = [label.rjust(wide) for label in table.row_labels]
    for row_of in table.row_brackets:
        begins = {b.start: b.text for b in row_of.brackets}
        room = max(len(text) for text in begins.values())
        inside = {i for b in row_of.brackets for i in range(b.start, b.stop)}
        for i, head in enumerate(heads):
            mark = begins.get(i, ":" if i in inside else "")
            heads[i] = f"{mark:>{room}} {head}"
    return heads


def _bracket_line(row_of: BracketRow, width: Sequence[int], part: range) -> str:
    out, column = [], part.start
    for bracket in row_of.brackets:
        start, stop = max(bracket.start, part.start), min(bracket.stop, part.stop)
        if start >= stop:
            continue
        out += [" " * width[i] for i in range(column, start)]
        room = sum(width[start:stop]) + 2 * (stop - start - 1)
        inner = max(room - 2, len(bracket.text))
        out.append(("[" + bracket.text.center(inner, "-") + "]").ljust(room) if room > 2 else bracket.text.rjust(room))
        column = stop
    return "  ".join(out)


def text_of_picture(title: str, tables: Sequence[Table], notes: Sequence[str]) -> str:
    """The text of a picture: its title, its tables one below the other, and its notes."""
    parts = [title, *(table_text(table) for table in tables)]
    if notes:
        parts.append("\n".join(wrapped(notes, WIDTH)))
    return "\n\n".join(part for part in parts if part)
