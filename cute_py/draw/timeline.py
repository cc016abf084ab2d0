"""Pictures over time: the stages of a ring buffer, and the warps, barriers, copies and matrix products of a run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from cute_py.argument_checks import expect
from cute_py.draw.picture import Picture
from cute_py.draw.table import PICTURE_CELLS, Bracket, BracketRow, Cell, Legend, Table, grid, shown
from cute_py.errors import counted
from cute_py.machine.judgement.timeline import COPIES, ENDED, MEANINGS, MULTIPLIES, NOTHING, RUNS, WAITS, RunTimeline
from cute_py.tma.simulate.pipeline import CONSUMING, EMPTY, FULL, LOADING, STORING, Timeline

STATES: dict[str, tuple[str, int | None]] = {
    EMPTY: ("empty", None),
    LOADING: ("loading", 0),
    FULL: ("full, waits for the consumer", 1),
    CONSUMING: ("consumed", 2),
    STORING: ("stored", 3),
}
"""Letter -> (meaning, tone)."""
MOST_STAGES, MOST_TICKS = 32, 256
TICKS = 48
"""Number of ticks side by side; later ticks are drawn below."""


def draw_pipeline(timeline: Timeline) -> Picture:
    """Draw a ring of stages over time: a row for each stage, a column for each tick, and in each cell the state of the
    stage and its iteration.

    The next minor version removes this function. Use `draw(run.timeline())` to draw a run of `run_ptx`.

    Args:
        timeline: the result of `Ring.simulate`.
    Raises:
        InvalidTypeError: the argument is something else.

    The title (tooltip) of a cell has the barrier, phase and parity that the iteration waits for. The phase is the
    iteration divided by the number of stages; the parity is its last bit, inverted for the producer.

    >>> import numpy
    >>> import cute_py as cute
    >>> from cute_py.tma.simulate.pipeline import Ring, RingLoad
    >>> tile = cute.tma.TensorMapTiled("int32", 4096, (4096,), (), (128,))
    >>> gmem = cute.tma.GlobalMemory()
    >>> _ = gmem.add("A", numpy.zeros(16384, numpy.uint8), 4096)
    >>> loads = [RingLoad(tile, [(128 * i,) for i in range(4)])]
    >>> ring = Ring(cute.tma.Emulator(), gmem, cute.tma.SharedMemory(4096), loads, depth=2)
    >>> print(draw_pipeline(ring.simulate()).text.splitlines()[0])
    ring of 2 stages, 16 ticks: completed
    """
    stages = shown(expect(timeline, Timeline, "timeline").depth, MOST_STAGES)
    ticks = shown(timeline.ticks, max(16, min(MOST_TICKS, PICTURE_CELLS // max(len(stages), 1))))
    iterations = _iterations(timeline)

    def cell(stage: int, tick: int) -> Cell:
        state = timeline.states[stage][tick]
        tone = STATES[state][1]
        iteration = iterations(stage, tick)
        if tone is None or iteration is None:
            return Cell(state, f"tick {tick}, stage {stage}: {STATES[state][0]}")
        where = f"tick {tick}, stage {stage}, iteration {iteration}: "
        return Cell(f"{state}\n{iteration}", where + _barriers(state, stage, iteration, timeline.depth), tone)

    notes = (f"summarised: {timeline.depth} stages over {timeline.ticks} ticks",) if None in (*stages, *ticks) else ()
    each = -(-len(ticks) // max(-(-len(ticks) // TICKS), 1)) or 1
    parts = [ticks[i : i + each] for i in range(0, len(ticks), each)] or [[]]
    tables = tuple(
        grid(
            stages,
            part,
            cell,
            lambda stage: f"stage {stage}",
            row_axis="" if number else "stages of shared memory",
            column_axis="" if number else "ticks",
            notes=notes if number == len(parts) - 1 else (),
            legends=(_legend(timeline),) if number == len(parts) - 1 else (),
        )
        for number, part in enumerate(parts)
    )
    title = f"ring of {counted(timeline.depth, 'stage')}, {counted(timeline.ticks, 'tick')}: {timeline.outcome.summary}"
    lines = title.splitlines()
    return Picture(lines[0], tables, tuple(lines[1:]))


def _legend(timeline: Timeline) -> Legend:
    """The legend: the meanings of the letters that occur, and of the number."""
    used = set("".join(timeline.states))
    swatches = tuple((tone, f"{letter} {what}") for letter, (what, tone) in STATES.items() if letter in used)
    return Legend("the number is the iteration", swatches, in_text=True)


def _barriers(state: str, stage: int, iteration: int, depth: int) -> str:
    """Text of a state, with the barrier, the phase and the parity that the thread waited for."""
    phase = iteration // depth
    full, empty = f"full[{stage}]", f"empty[{stage}]"
    if state == LOADING:
        waited = f"the producer waited on {empty} with parity {~phase & 1}"
        return f"loading; {waited}, the bytes complete phase {phase} of {full}"
    if state == FULL:
        return f"full, waits for the consumer; {full} has completed phase {phase}"
    if state == CONSUMING:
        return f"consumed; the consumer waited on {full} with parity {phase & 1} and will arrive at {empty}"
    return f"stored; then the consumer arrives at {empty}"


def _iterations(timeline: Timeline) -> Callable[[int, int], int | None]:
    """The iteration that occupies each stage at each tick: the iteration of the last event that began one."""
    begun: dict[int, list[tuple[int, int]]] = {}
    for event in timeline.events:
        if event.what != "empty":
            begun.setdefault(event.stage, []).append((event.tick, event.iteration))

    def iteration(stage: int, tick: int) -> int | None:
        events = begun.get(stage, [])
        count = bisect_right(events, tick, key=lambda event: event[0])
        return events[count - 1][1] if count else None

    return iteration


# ---- a run -----------------------------------------------------------------------------------------------------------

TONES: Final[dict[str, int | None]] = {RUNS: 0, COPIES: 1, MULTIPLIES: 2, WAITS: 4, ENDED: None, NOTHING: None}
COUNT_TONE: Final = 3
"""The tone for the number of copies and products under way."""


def draw_run(timeline: RunTimeline) -> Picture:
    """Draw a CTA of a run over time: a row for each warp, barrier, copy and matrix instruction, and a column for
    several steps.

    Args:
        timeline: the result of `PtxRun.timeline`.
    Raises:
        InvalidTypeError: the argument is something else.
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
