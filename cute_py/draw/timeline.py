"""Pictures of a pipeline: the stages of a ring over time."""

from __future__ import annotations

from typing import Any

from cute_py.draw.picture import Picture
from cute_py.draw.table import PICTURE_CELLS, Cell, Table, labels, shown
from cute_py.errors import InvalidTypeError
from cute_py.tma.run.pipeline import CONSUMING, EMPTY, FULL, LOADING, STORING, Timeline

STATES: dict[str, tuple[str, int | None]] = {
    EMPTY: ("empty", None),
    LOADING: ("loading", 0),
    FULL: ("full, waits for the consumer", 1),
    CONSUMING: ("consumed", 2),
    STORING: ("stored", 3),
}
"""Letter -> (what it means, tone)."""
MOST_STAGES, MOST_TICKS = 32, 256


def draw_pipeline(timeline: Any) -> Picture:
    """A ring of stages over time: a row for each stage, a column for each tick, the state with its iteration.

    Args:
        timeline: what `Ring.simulate` returns.
    Raises:
        InvalidTypeError: something else.
    """
    if not isinstance(timeline, Timeline):
        raise InvalidTypeError(f"draw_pipeline takes what Ring.simulate returns, got {type(timeline).__name__}")
    stages = shown(timeline.depth, MOST_STAGES)
    ticks = shown(timeline.ticks, max(16, min(MOST_TICKS, PICTURE_CELLS // max(len(stages), 1))))
    iterations = _iterations(timeline)

    def cell(stage: int | None, tick: int | None) -> Cell | None:
        if stage is None or tick is None:
            return None
        state = timeline.states[stage][tick]
        what, tone = STATES[state]
        iteration = iterations.get((stage, tick))
        if tone is None or iteration is None:
            return Cell(state, f"tick {tick}, stage {stage}: {what}")
        return Cell(f"{state}\n{iteration}", f"tick {tick}, stage {stage}, iteration {iteration}: {what}", tone)

    cut = [n for n, kept in ((timeline.depth, stages), (timeline.ticks, ticks)) if None in kept]
    notes = (f"summarised: {timeline.depth} stages over {timeline.ticks} ticks",) if cut else ()
    table = Table(
        "",
        tuple(tuple(cell(stage, tick) for tick in ticks) for stage in stages),
        tuple("…" if stage is None else f"stage {stage}" for stage in stages),
        labels(ticks),
        "stages of shared memory",
        "ticks",
        notes=notes,
    )
    legend = ", ".join(f"{letter} {what}" for letter, (what, _) in STATES.items())
    title = f"ring of {timeline.depth} stages, {timeline.ticks} ticks: {timeline.outcome}"
    lines = title.splitlines()
    return Picture(lines[0], (table,), (legend, *lines[1:]))


def _iterations(timeline: Timeline) -> dict[tuple[int, int], int]:
    """(stage, tick) -> the iteration that the stage is busy with."""
    starts: dict[int, list[tuple[int, int]]] = {}
    for event in timeline.events:
        if event.what != "empty":
            starts.setdefault(event.stage, []).append((event.tick, event.iteration))
    found = {}
    for stage, events in starts.items():
        current, position = None, 0
        for tick in range(timeline.ticks):
            while position < len(events) and events[position][0] <= tick:
                current, position = events[position][1], position + 1
            if current is not None:
                found[stage, tick] = current
    return found
