"""Figures beside those of another program, each with its bound: measured in turns, printed as a table, kept as JSON.

A time is the median of several runs, in processor time, which other work on the machine does not count in. Those that
are compared take turns, so that what other work does to the caches and the clock meets all of them.
"""

from __future__ import annotations

import gc
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

MICROSECONDS, MILLISECONDS = 1e6, 1e3


@dataclass(frozen=True)
class Row:
    """One figure: `ours` in `unit`, beside `theirs` by name; `figure` is what `bound` bounds, from above."""

    what: str
    ours: float
    theirs: Mapping[str, float]
    figure: float
    bound: float | None
    unit: str = "us"

    @property
    def holds(self) -> bool:
        return self.bound is None or self.figure <= self.bound


def ratio(what: str, ours: float, theirs: Mapping[str, float], bound: float | None, scale: float = MICROSECONDS) -> Row:
    """Our seconds beside those of others; the figure is ours / the fastest of theirs."""
    unit = "us" if scale == MICROSECONDS else "ms"
    figure = ours / min(theirs.values()) if theirs else math.nan
    return Row(what, ours * scale, {name: t * scale for name, t in theirs.items()}, figure, bound, unit)


def time_of(what: str, ours: float, bound: float | None, scale: float = MICROSECONDS) -> Row:
    """Our seconds alone; the figure is the time itself."""
    return Row(what, ours * scale, {}, ours * scale, bound, "us" if scale == MICROSECONDS else "ms")


def medians(turns: int, *calls: Callable[[], object]) -> list[float]:
    """Seconds of each call; the calls take turns."""
    return medians_of(turns, *[(lambda call=call: [()], call) for call in calls])  # type: ignore[misc]


def medians_of(turns: int, *work: tuple[Callable[[], Sequence[tuple[Any, ...]]], Callable[..., object]]) -> list[float]:
    """Seconds of one call on arguments that are made anew before each turn, outside the time: (makes them, call)."""
    taken: list[list[float]] = [[] for _ in work]
    for _ in range(turns):
        for found, (prepare, call) in zip(taken, work, strict=True):
            fresh = prepare()
            gc.disable()
            start = time.thread_time()
            for arguments in fresh:
                call(*arguments)
            found.append((time.thread_time() - start) / len(fresh))
            gc.enable()
    return list(map(statistics.median, taken))


def processor() -> str:
    """The processor's name where the system says it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def table(rows: Iterable[Row]) -> str:
    """Rows as Markdown, the bound beside each figure."""
    lines = ["| what | ours | others | figure | bound | |", "|---|---|---|---|---|---|"]
    for row in rows:
        others = ", ".join(f"{name} {_shown(t)} {row.unit}" for name, t in row.theirs.items()) or "-"
        figure = f"{_shown(row.figure)} {'x' if row.theirs else row.unit}"
        verdict = "" if row.bound is None else "holds" if row.holds else "**broken**"
        cells = [row.what, f"{_shown(row.ours)} {row.unit}", others, figure, str(row.bound or "-"), verdict]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _shown(number: float) -> str:
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"


def condensed(rows: Sequence[Row]) -> str:
    """One line for all rows of an operation, whose names agree up to the last comma."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.what.rpartition(", ")[0] or row.what, []).append(row)
    lines = ["| what | rows | ours | fastest other | figure | bound | broken |", "|---|---|---|---|---|---|---|"]
    for name, found in groups.items():
        others = [min(row.theirs.values()) for row in found if row.theirs]
        unit = found[0].unit
        cells = [
            name if len(found) > 1 else found[0].what,
            str(len(found)),
            _range((row.ours for row in found), unit),
            _range(others, unit),
            _range((row.figure for row in found), "x" if others else unit),
            ", ".join(dict.fromkeys(str(row.bound or "-") for row in found)),
            str(sum(not row.holds for row in found)),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _range(numbers: Iterable[float], unit: str) -> str:
    """The least and the greatest with their unit; a mean has no time of its own."""
    found = list(dict.fromkeys(_shown(number) for number in sorted(numbers) if number))
    return f"{' to '.join(dict.fromkeys([found[0], found[-1]]))} {unit}" if found else "-"


def into_page(folder: Path, name: str, text: str) -> bool:
    """Put `text` between the marks `<!-- name -->` and `<!-- end of name -->` of the page in `folder` that has them."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    for page in sorted(folder.glob("*.md")):
        before, mark, rest = page.read_text().partition(begin)
        _, last, after = rest.partition(end)
        if mark and last:
            page.write_text(f"{before}{begin}\n{text}\n\n{end}{after}")
            return True
    return False


def report(
    title: str,
    command: str,
    rows: Sequence[Row],
    path: str | None,
    notes: str = "",
    shown: Callable[[Sequence[Row]], str] = table,
) -> int:
    """Print the rows, write them to `path` as JSON; 1 if a bound is broken, else 0.

    Where a page beside the JSON has the marks of `into_page` with the name of the JSON, it gets the table of `shown`.
    """
    machine = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{processor()}, {os.cpu_count()} cores, shared with other work",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "command": command,
    }
    head = "; ".join(f"{name} {value}" if name in ("python", "numpy") else value for name, value in machine.items())
    parts = [f"# {title}", head, table(rows), notes]
    print("\n\n".join(part for part in parts if part))
    if path:
        kept = [{**vars(row), "theirs": dict(row.theirs), "holds": row.holds} for row in rows]
        Path(path).write_text(json.dumps({**machine, "rows": kept}, indent=1) + "\n")
        into_page(Path(path).parent, Path(path).stem, "\n\n".join(part for part in (head, shown(rows), notes) if part))
    return int(not all(row.holds for row in rows))
