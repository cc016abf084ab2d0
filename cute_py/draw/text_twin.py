"""The text twin of a picture: the same cells, labels and brackets in columns of characters.

A cell of which some part is outside the tensor has a `/` behind its text.
"""

from __future__ import annotations

from collections.abc import Sequence

from cute_py.draw.table import BracketRow, Cell, Table

GAP = "…"
OUTSIDE = "/"


def cell_text(cell: Cell | None) -> str:
    """One line for a cell.

    >>> cell_text(Cell("T0\\nV1", inside=(0.5, 1.0))), cell_text(None)
    ('T0 V1/', '…')
    """
    if cell is None:
        return GAP
    return " ".join(cell.text.split("\n")) + (OUTSIDE if cell.hatched else "")


def table_text(table: Table) -> str:
    """A table as text, without a newline at the end."""
    lines = [table.title] if table.title else []
    lines += [table.twin] if table.twin is not None else [*_grid(table), *table.notes]
    return "\n".join(lines)


def _grid(table: Table) -> list[str]:
    texts = [[cell_text(cell) for cell in row] for row in table.rows]
    spans = [[1 if cell is None else cell.span for cell in row] for row in table.rows]
    count = len(table.column_labels)
    width = [len(label) for label in table.column_labels]
    for row, span in zip(texts, spans, strict=True):
        column = 0
        for text, n in zip(row, span, strict=True):
            if n == 1 and column < count:
                width[column] = max(width[column], len(text))
            column += n
    heads = _row_heads(table)
    margin = max([len(head) for head in heads] + [len(b.name) + 1 for b in table.column_brackets])
    lines = []
    if table.row_axis or table.column_axis:
        axes = [("down", table.row_axis), ("across", table.column_axis)]
        lines.append("  " + "; ".join(f"{way}: {name}" for way, name in axes if name))
    if table.row_brackets:
        names = ", ".join(row_of.name for row_of in reversed(table.row_brackets))
        lines.append(f"  left of the row numbers: {names}")
    for row_of in reversed(table.column_brackets):
        lines.append(f"{row_of.name:>{margin}} | " + _bracket_line(row_of, width))
    lines.append(" " * margin + " | " + "  ".join(t.rjust(w) for t, w in zip(table.column_labels, width, strict=True)))
    lines.append("-" * margin + "-+-" + "-" * (sum(width) + 2 * max(count - 1, 0)))
    for head, row, span in zip(heads, texts, spans, strict=True):
        parts, column = [], 0
        for text, n in zip(row, span, strict=True):
            room = sum(width[column : column + n]) + 2 * (n - 1)
            parts.append(text.rjust(room) if n == 1 else text[:room].ljust(room))
            column += n
        lines.append(f"{head:>{margin}} | " + "  ".join(parts))
    return [line.rstrip() for line in lines]


def _row_heads(table: Table) -> list[str]:
    """Label of each row, with the outer coordinates of nested modes where a group begins."""
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


def _bracket_line(row_of: BracketRow, width: Sequence[int]) -> str:
    out, column = [], 0
    for bracket in row_of.brackets:
        while column < bracket.start:
            out.append(" " * width[column])
            column += 1
        room = sum(width[column : bracket.stop]) + 2 * (bracket.stop - column - 1)
        inner = max(room - 2, len(bracket.text))
        out.append(("[" + bracket.text.center(inner, "-") + "]").ljust(room) if room > 2 else bracket.text.rjust(room))
        column = bracket.stop
    return "  ".join(out)


def picture_text(title: str, tables: Sequence[Table], notes: Sequence[str]) -> str:
    """The whole picture: its title, its tables one below the other, its notes."""
    parts = [title, *(table_text(table) for table in tables)]
    if notes:
        parts.append("\n".join(notes))
    return "\n\n".join(part for part in parts if part)
