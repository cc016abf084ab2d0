"""Timeline of one CTA: the actions of its warps, the phases of its barriers, and the copies and products in flight.

Time is not measured in cycles, but in steps: a step is a stretch of instructions, and steps are counted in the order of
execution. A column represents several steps of the CTA.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cute_py.argument_checks import record
from cute_py.machine.faults import place_text
from cute_py.machine.judgement.observer import AsyncWork, Observer
from cute_py.machine.threads import LANES, Array, Frame, Host

if TYPE_CHECKING:
    from cute_py.machine.sites import Site
    from cute_py.tma.emulator.mbarrier import Mbarrier

COLUMNS: Final = 64
MAX_EVENTS: Final = 200_000
MAX_ROWS: Final = 24
"""Maximum number of rows of one kind."""

RUNS, COPIES, MULTIPLIES, WAITS, ENDED, NOTHING = "x", "c", "m", "-", " ", "."
MEANINGS: Final = {
    RUNS: "runs", COPIES: "issues a copy", MULTIPLIES: "issues a product", WAITS: "waits", ENDED: "has ended",
    NOTHING: "nothing under way",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An asynchronous event.

    time: number of steps of the run before the event. kind: 'copy', 'product', 'landed', 'committed', 'waited',
    'phase'. place: offset of the barrier in its CTA. number: the phase that begins, or the number of groups that may
    stay in flight. group: 'bulk', 'cp.async' or 'wgmma' if a thread waits for a group. warps: the first and the last
    warp in the CTA.
    """

    time: int
    kind: str
    cta: int
    at: int
    place: int = -1
    number: int = 0
    group: str = ""
    warps: tuple[int, int] = (0, 0)


class TimelineRecorder(Observer):
    """Observer that records the events that a timeline shows."""

    active = True

    def __init__(self) -> None:
        self.m: Host
        self.events: list[RunEvent] = []

    def began(self, m: Host) -> None:
        """Keep the machine of the CTAs that begin to run together."""
        self.m = m

    def _note(self, m: Host, event: RunEvent) -> None:
        if len(self.events) < MAX_EVENTS and not getattr(m, "wave", 0):
            self.events.append(event)

    def _of_threads(self, f: Frame, kind: str, at: int, number: int, group: str) -> None:
        m = f.m
        size = m.cta_threads // LANES
        for cta, part in f.parts:
            own = f.threads[part] // LANES - cta * size
            warps = (int(own[0]), int(own[-1]))
            self._note(m, RunEvent(len(m.totals.trace), kind, cta, at, -1, number, group, warps))

    def issued(self, f: Frame, site: Site, work: AsyncWork) -> None:
        """Record a copy or a product that is issued."""
        m = f.m
        if not work.barriers:
            self._of_threads(
                f, "product" if work.kind in ("wgmma", "tcgen05.mma") else "copy", site.number, 0, work.group
            )
        for place in work.barriers:
            cta, inside = divmod(place, m.shared_stride)
            self._note(m, RunEvent(len(m.totals.trace), "copy", cta, site.number, inside))

    def landed(self, m: Host, place: int, barrier: Mbarrier, nbytes: int, at: int) -> None:
        """Record that bytes land at a barrier."""
        cta, inside = divmod(place, m.shared_stride)
        self._note(m, RunEvent(len(m.totals.trace), "landed", cta, at, inside, nbytes))

    def phase_ended(self, m: Host, place: int, barrier: Mbarrier) -> None:
        """Record the end of a phase."""
        cta, inside = divmod(place, m.shared_stride)
        self._note(m, RunEvent(len(m.totals.trace), "phase", cta, -1, inside, barrier.phase))

    def initialised(self, f: Frame, site: Site, place: int, count: int) -> None:
        """Record the initialisation of a barrier."""
        cta, inside = divmod(place, f.m.shared_stride)
        self._note(f.m, RunEvent(len(f.m.totals.trace), "phase", cta, site.number, inside))

    def committed(self, f: Frame, site: Site, group: str) -> None:
        """Record the commit of a group."""
        self._of_threads(f, "committed", site.number, 0, group)

    def waited(self, f: Frame, site: Site, group: str, left: int, reads: bool, everything: bool) -> None:
        """Record a wait for groups."""
        self._of_threads(f, "waited", site.number, -1 if everything else left, group)


@record
class TimelineRow:
    """A warp, barrier, copy or product over time. cells: one character per column. titles: meaning of each cell."""

    kind: str
    label: str
    cells: str
    titles: tuple[str, ...]


@record
class RunTimeline:
    """Timeline of one CTA in a run.

    Attributes:
        title: the kernel, the CTA, and its number of steps. rows: warps, barriers, copies, products. steps: steps per
            column.

    `str` is a table of characters; `cute_py.draw.draw` makes a picture of it.
    """

    title: str
    rows: tuple[TimelineRow, ...]
    steps: int

    def __str__(self) -> str:
        wide = max((len(row.label) for row in self.rows), default=0)
        lines = [self.title]
        kind = ""
        for row in self.rows:
            if row.kind != kind:
                kind = row.kind
                lines.append(f"{kind}:")
            lines.append(f"  {row.label:<{wide}} |{row.cells}|")
        used = {cell for row in self.rows for cell in row.cells}
        lines.append(", ".join(f"{sign_text(sign)} {text}" for sign, text in MEANINGS.items() if sign in used))
        if any(row.kind == "barriers" for row in self.rows):
            lines.append(
                "a barrier's digit is its phase modulo 10; the digits of copies and products count those under way"
            )
        return "\n".join(lines)


def sign_text(sign: str) -> str:
    """Text of a cell's character in the legend; 'blank' for a space."""
    return "blank" if sign == " " else sign


def build_timeline(
    trace: Sequence[tuple[int, int, Array]],
    events: Sequence[RunEvent],
    code: Any,
    threads: int,
    cta: int,
    *,
    base: int = 1024,
    columns: int = COLUMNS,
) -> RunTimeline:
    """Build the timeline of a CTA of the first wave.

    Args:
        trace: (wave, block, threads) of each step. threads: number of threads in a CTA, padded to whole warps. base:
            address of the first byte of shared memory.
    """
    lo, hi = cta * threads, (cta + 1) * threads
    mine: list[tuple[int, int, Array]] = []
    for number, (wave, pc, who) in enumerate(trace):
        if wave == 0:
            a, b = np.searchsorted(who, (lo, hi))
            if b > a:
                mine.append((number, pc, who[a:b] - lo))
    times = np.array([number for number, _, _ in mine], np.int64)
    steps = max(1, -(-len(mine) // columns))
    wide = max(1, -(-len(mine) // steps))
    own = [event for event in events if event.cta == cta]

    def column(time: int) -> int:
        return min(int(np.searchsorted(times, time)) // steps, wide - 1)

    rows = [
        *_warps(mine, own, code, threads // LANES, steps, wide),
        *_barriers(own, column, wide, base),
        *_under_way(own, column, wide, code),
    ]
    title = f"{code.kernel.name}, CTA {cta}: {len(mine)} steps, {steps} a column"
    return RunTimeline(title, tuple(rows), steps)


def _warps(
    mine: Sequence[tuple[int, int, Array]], events: Sequence[RunEvent], code: Any, count: int, steps: int, wide: int
) -> list[TimelineRow]:
    """Build the rows of warps; warps whose cells are all equal share a row."""
    issues = {
        event.at: COPIES if event.kind == "copy" else MULTIPLIES
        for event in events
        if event.kind in ("copy", "product")
    }
    cells = [[""] * wide for _ in range(count)]
    last = [-1] * count
    places: list[list[int]] = [[-1] * wide for _ in range(count)]
    for step, (_, pc, who) in enumerate(mine):
        block = code.blocks[pc]
        sign = next((issues[at] for at in range(block.start, block.start + block.length) if at in issues), RUNS)
        at = step // steps
        for warp in np.unique(who // LANES).tolist():
            if cells[warp][at] in ("", RUNS):
                cells[warp][at] = sign
            places[warp][at] = block.start + block.length - 1
            last[warp] = at
    made: dict[str, tuple[list[int], tuple[str, ...]]] = {}
    for warp in range(count):
        titles, seen = [], -1
        for at in range(wide):
            if places[warp][at] >= 0:
                seen = places[warp][at]
            if not cells[warp][at]:
                cells[warp][at] = WAITS if at < last[warp] else ENDED
            where = "" if seen < 0 else f", {place_text(code.instructions[seen], code.files)}"
            titles.append(f"{MEANINGS[cells[warp][at]]}{where}")
        made.setdefault("".join(cells[warp]), ([], tuple(titles)))[0].append(warp)
    return [TimelineRow("warps", _numbers(members), text, titles) for text, (members, titles) in made.items()][
        :MAX_ROWS
    ]


def _numbers(members: list[int]) -> str:
    """Text such as `warps 0 to 3` or `warps 0, 2`."""
    if len(members) == 1:
        return f"warp {members[0]}"
    if members[-1] - members[0] + 1 == len(members):
        return f"warps {members[0]} to {members[-1]}"
    return f"warps {', '.join(map(str, members[:4]))}{', ...' if len(members) > 4 else ''}"


def _barriers(events: Sequence[RunEvent], column: Callable[[int], int], wide: int, base: int) -> list[TimelineRow]:
    """Build the rows of barriers, which show the current phase."""
    held: dict[int, list[RunEvent]] = {}
    for event in events:
        if event.kind == "phase":
            held.setdefault(event.place, []).append(event)
    rows = []
    for place, ones in sorted(held.items())[:MAX_ROWS]:
        cells = [" "] * wide
        titles = ["not initialised"] * wide
        for event in ones:
            start = column(event.time)
            cells[start:] = [str(event.number % 10)] * (wide - start)
            titles[start:] = [f"phase {event.number}"] * (wide - start)
        rows.append(TimelineRow("barriers", f"mbarrier at {base + place:#x}", "".join(cells), tuple(titles)))
    return rows


def _under_way(events: Sequence[RunEvent], column: Callable[[int], int], wide: int, code: Any) -> list[TimelineRow]:
    """Build the rows of copies and products, which show the number in flight."""
    spans: dict[tuple[str, int], list[tuple[int, int]]] = {}
    open_: list[tuple[RunEvent, int]] = []
    committed: dict[tuple[str, int], int] = {}

    def close(chosen: Callable[[RunEvent, int], bool], time: int, most: int = 1 << 30) -> None:
        kept = []
        for event, group in open_:
            if most and chosen(event, group):
                most -= 1
                spans.setdefault((event.kind, event.at), []).append((event.time, time))
            else:
                kept.append((event, group))
        open_[:] = kept

    for event in events:
        first, last = event.warps
        if event.kind in ("copy", "product"):
            open_.append((event, committed.get((event.group, first), 0)))
        elif event.kind == "landed":
            close(lambda one, _, e=event: one.at == e.at and one.place == e.place, event.time, 1)  # type: ignore[misc]
        elif event.kind == "committed":
            for warp in range(first, last + 1):
                committed[event.group, warp] = committed.get((event.group, warp), 0) + 1
        elif event.kind == "waited":
            close(functools.partial(_done, event, dict(committed)), event.time)
    close(lambda _, __: True, 1 << 62)
    rows = []
    for (kind, at), found in sorted(spans.items()):
        counts = [0] * wide
        for start, stop in found:
            for place in range(column(start), column(stop) + 1):
                counts[place] += 1
        cells = "".join(NOTHING if not n else str(n) if n < 10 else "+" for n in counts)
        titles = tuple(f"{n} under way" for n in counts)
        what = "products" if kind == "product" else "copies"
        rows.append(TimelineRow(what, place_text(code.instructions[at], code.files), cells, titles))
    return [row for what in ("copies", "products") for row in [r for r in rows if r.kind == what][:MAX_ROWS]]


def _done(wait: RunEvent, committed: Mapping[tuple[str, int], int], event: RunEvent, group: int) -> bool:
    """Whether a wait for groups includes a copy or a product, so that the work is complete."""
    warp = event.warps[0]
    if event.group != wait.group or not wait.warps[0] <= warp <= wait.warps[1]:
        return False
    return wait.number < 0 or group < committed.get((event.group, warp), 0) - wait.number
