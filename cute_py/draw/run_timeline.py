"""The picture of a run over time: warps, barriers, copies and matrix instructions of one CTA."""

from __future__ import annotations

from typing import Final

from cute_py.argument_checks import expect
from cute_py.draw.picture import Picture
from cute_py.draw.table import Bracket, BracketRow, Cell, Legend, Table
from cute_py.machine.judgement.timeline import COPIES, ENDED, MEANINGS, MULTIPLIES, NOTHING, RUNS, WAITS, RunTimeline

TONES: Final[dict[str, int | None]] = {RUNS: 0, COPIES: 1, MULTIPLIES: 2, WAITS: 4, ENDED: None, NOTHING: None}
COUNT_TONE: Final = 3
"""Of copies and products under way."""


def draw_run(timeline: RunTimeline) -> Picture:
    """A CTA of a run over time: a row for each warp, barrier, copy and matrix instruction, a column for some steps.

    Args:
        timeline: what `PtxRun.timeline` returns.
    Raises:
        InvalidTypeError: something else.
    """
    expect(timeline, RunTimeline, "timeline")
    columns = len(timeline.rows[0].cells) if timeline.rows else 0
    labels = tuple(str(timeline.steps * number) if not number % 8 else "" for number in range(columns))
    brackets = []
    for kind in dict.fromkeys(row.kind for row in timeline.rows):
        places = [place for place, row in enumerate(timeline.rows) if row.kind == kind]
        brackets.append(Bracket(places[0], places[-1] + 1, kind))
    used = {sign for row in timeline.rows if row.kind == "warps" for sign in row.cells}
    swatches = tuple((TONES[sign], text) for sign, text in MEANINGS.items() if sign in used)
    said = "the digit of a barrier is its phase, modulo 10; the digit of a copy or a product counts those under way"
    table = Table(
        "",
        tuple(tuple(map(_cell, [row.kind] * columns, row.cells, row.titles)) for row in timeline.rows),
        tuple(row.label for row in timeline.rows),
        labels,
        column_axis="steps",
        row_brackets=(BracketRow("", tuple(brackets)),),
        notes=(said,),
        legends=(Legend("", swatches),),
        plain_text=str(timeline),
        cell_width=12.0,
    )
    return Picture(timeline.title, (table,))


def _cell(kind: str, sign: str, title: str) -> Cell:
    if kind == "warps":
        return Cell("" if sign in (ENDED, RUNS) else sign, title, TONES[sign])
    if kind == "barriers":
        return Cell(sign.strip(), title, int(sign) % 2 + 5 if sign.isdigit() else None)
    return Cell("" if sign == NOTHING else sign, title, None if sign == NOTHING else COUNT_TONE)
