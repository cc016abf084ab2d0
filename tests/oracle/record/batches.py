"""Rows of a family, made again: their statements put into programs, compiled, run, and the outcomes handed back."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.oracle.record.family import Family, Row
from tests.oracle.record.program import Compiler, Outcome

REFUSED_TOGETHER = 12
"""Statements in a program of statements that do not compile: each failure is one compilation more for the rest."""


MISSING = "missing"

REASONS = ("error", "reject_message", "rejected")
"""Fields that say why the other ones are missing: compared first."""


def programs(family: Family, rows: Sequence[Row]) -> list[list[tuple[int, str, str]]]:
    """(row, part, statement) lists, one a program; what did not compile when recorded is in programs of its own."""
    sides: tuple[list[tuple[int, str, str]], ...] = ([], [])
    for index, row in enumerate(rows):
        for part, statement in family.statements(row).items():
            sides[family.refused(row, part)].append((index, part, statement))
    return [
        side[start : start + size]
        for side, size in zip(sides, (family.together, REFUSED_TOGETHER), strict=True)
        for start in range(0, len(side), size)
    ]


def again(
    family: Family,
    rows: Sequence[Row],
    compiler: Compiler,
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Row]:
    """The rows made again, in order.

    Args:
        jobs: programs compiled at a time, in threads; each needs about 1 GiB.
        progress: called with the programs done and their number.
    """
    outcomes: list[dict[str, Outcome]] = [{} for _ in rows]
    batches = programs(family, rows)

    def run(number: int) -> list[Outcome]:
        return compiler.run(f"{family.file}_{number}", [statement for _, _, statement in batches[number]])

    progress(0, len(batches))
    with ThreadPoolExecutor(jobs) as pool:
        for number, results in enumerate(pool.map(run, range(len(batches)))):
            for (index, part, _), result in zip(batches[number], results, strict=True):
                outcomes[index][part] = result
            progress(number + 1, len(batches))
    return [family.again(row, found) for row, found in zip(rows, outcomes, strict=True)]


PLACE = re.compile(r" @ [\w./]+:\d+")


def without_places(value: Any) -> Any:
    """A value without the places in headers that its texts name."""
    return PLACE.sub("", value) if isinstance(value, str) else value


def difference(stored: Row, made: Row) -> str:
    """'' if equal, else the first field that is not, with both values.

    Lines of headers do not count: `condition @ file:line` is equal to the same condition at another place.
    """
    first = [name for name in REASONS if name in stored or name in made]
    for name in (*first, *stored, *made):
        old, new = (without_places(row.get(name, MISSING)) for row in (stored, made))
        if old != new:
            old, new = repr(old), repr(new)
            start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
            cut = max(0, start - 60)
            return f"{name}: stored {old[cut : cut + 200]}, made again {new[cut : cut + 200]}"
    return ""


def moved(stored: Row, made: Row) -> bool:
    """Are two rows equal but for places in the headers?"""
    return stored != made and not difference(stored, made)
