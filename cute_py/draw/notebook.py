"""Notebook display of an object: its printed text, its picture, and a collapsed explanation below.

    object_html(layout)     the printed form, the picture, "explain"
    object_html(request)    the map's bits, or the rules that the request breaks
    object_html(error)      the headline, the facts, the hint

The pictures are inline SVG, so that tooltips work. The notebook's file stores every picture, so a large picture is cut
to about a thousand cells, with a note. `cute_py.notebook` registers this display with IPython.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from typing import Final, TypeAlias

from cute_py.draw.dispatch import Drawable, draw
from cute_py.draw.picture import Picture
from cute_py.draw.table import GAP, Bracket, BracketRow, Cell, Table, shown
from cute_py.errors import CuteError, unless_refused

Shown: TypeAlias = "Drawable | CuteError"
CELLS: Final = 1024
"""Maximum number of cells of an automatically shown picture, which gives an SVG of about 150 kilobytes."""
CHARACTERS: Final = 4000
"""Maximum number of characters of a printed form or an explanation that are shown; the rest is counted."""
CUT_NOTE: Final = "cut to fit the notebook; cute_py.draw.draw(...) shows more of it"
_SAID: Final = re.compile(r"^(summarised: .*; )\d+ x \d+( are drawn)$")
"""Text of `cut_note` about a table."""
_PRE: Final = "margin:.3em 0;white-space:pre-wrap;overflow-wrap:anywhere;font-family:monospace"


def object_html(thing: Shown, explain: Callable[[Shown], str] | None = None) -> str:
    """Return the HTML of an object: one element, without scripts.

    Args:
        thing: a picture, an error of this library, or any other object. An object that can't be drawn is shown in its
            printed form, with the reason.
        explain: function that returns the collapsed text below the picture, such as `cute_py.explain`.
    """
    if isinstance(thing, Picture):
        return _framed(_figure(thing))
    if isinstance(thing, CuteError):
        parts = [error_html(thing)]
    else:
        parts = [_pre(str(thing))]
        try:
            parts.append(_figure(draw(thing)))
        except CuteError as error:  # Sizes that are not known, or a map that no driver writes: the reason instead.
            parts.append(error_html(error, "no picture: "))
    if explain is not None:
        parts.append(_explained(thing, explain))
    return _framed(*parts)


def error_html(error: CuteError, before: str = "") -> str:
    """Return the HTML of an error: its headline, the facts in two columns, and the hint.

    >>> print(error_html(CuteError("box = 300", {"mode": 1}, "256 works")).count("<tr>"))
    2
    """
    name = "" if before else f"{type(error).__name__}: "
    look = "opacity:.7" if before else "color:#c0392b;font-weight:bold"
    head = f'<div style="{look}">{escape(before + name + error.headline)}</div>'
    cell = '<td style="text-align:left;vertical-align:top;white-space:pre-wrap">'
    rows = [
        f"<tr>{cell}{escape(str(key))}</td>{cell}{escape(_shortened(str(value)))}</td></tr>"
        for key, value in error.facts.items()
    ]
    if error.hint:
        green = cell.replace('style="', 'style="color:#1e8449;')
        rows.append(f"<tr>{green}hint</td>{green}{escape(error.hint)}</td></tr>")
    table = f"<table>{''.join(rows)}</table>" if rows else ""
    return f'<div class="cute-error">{head}{table}</div>'


def fitted(picture: Picture, cells: int = CELLS) -> Picture:
    """Reduce a picture to about `cells` cells: the middles of long tables are left out, with a note.

    Args:
        cells: the approximate number of cells of all tables together. A table with cells that span columns stays
            unchanged.
    """
    if picture.count <= cells:
        return picture
    limit = max(8, int((cells / max(len(picture.tables), 1)) ** 0.5))
    tables = tuple(cut_table(table, limit) for table in picture.tables)
    if tables == picture.tables:
        return picture
    return replace(picture, tables=tables, notes=(*picture.notes, CUT_NOTE))


def cut_table(table: Table, limit: int) -> Table:
    """Return a table without the middle rows and columns that exceed `limit`; brackets and gaps move accordingly."""
    if any(cell.span != 1 for cell in table.cells):
        return table
    rows, columns = _kept(table.row_labels, limit), _kept(table.column_labels, limit)
    if len(rows) == len(table.rows) and len(columns) == len(table.column_labels):
        return table
    gap: tuple[Cell | None, ...] = (None,) * len(columns)
    size = " x ".join(str(sum(i is not None for i in kept)) for kept in (rows, columns))
    notes = tuple(_SAID.sub(rf"\g<1>{size}\g<2>", note) for note in table.notes)
    return replace(
        table,
        notes=notes,
        rows=tuple(gap if i is None else tuple(None if j is None else table.rows[i][j] for j in columns) for i in rows),
        row_labels=tuple(GAP if i is None else table.row_labels[i] for i in rows),
        column_labels=tuple(GAP if j is None else table.column_labels[j] for j in columns),
        row_brackets=_moved(table.row_brackets, rows),
        column_brackets=_moved(table.column_brackets, columns),
        plain_text=None,
    )


def _kept(names: Sequence[str], limit: int) -> list[int | None]:
    """The positions that are kept, with None for a gap; a new gap merges with an adjacent old one."""
    kept: list[int | None] = []
    for i in shown(len(names), limit):
        position = None if i is None or names[i] == GAP else i
        if position is not None or not kept or kept[-1] is not None:
            kept.append(position)
    return kept


def _moved(rows: tuple[BracketRow, ...], kept: Sequence[int | None]) -> tuple[BracketRow, ...]:
    moved = []
    for row in rows:
        brackets = []
        for bracket in row.brackets:
            inside = [n for n, i in enumerate(kept) if i is not None and bracket.start <= i < bracket.stop]
            if inside:
                brackets.append(Bracket(inside[0], inside[-1] + 1, bracket.text))
        moved.append(BracketRow(row.name, tuple(brackets)))
    return tuple(moved)


def _figure(picture: Picture) -> str:
    return f'<div style="overflow-x:auto">{fitted(picture).svg}</div>'


def _framed(*parts: str) -> str:
    return f'<div class="cute-shown">{"".join(parts)}</div>'


def _pre(text: str) -> str:
    return f'<pre style="{_PRE}">{escape(_shortened(text))}</pre>'


def _explained(thing: Shown, explain: Callable[[Shown], str]) -> str:
    """HTML of the collapsed explanation of an object; empty if there is none."""
    text = unless_refused(explain, thing)
    if text is None:
        return ""
    own = getattr(text, "_repr_html_", None)
    inner = own() if own is not None and len(text) <= CHARACTERS else _pre(text)
    return f"<details><summary>explain</summary>{inner}</details>"


def _shortened(text: str) -> str:
    left = len(text) - CHARACTERS
    return text if left <= 0 else f"{text[:CHARACTERS]}\n… ({left} more characters)"
