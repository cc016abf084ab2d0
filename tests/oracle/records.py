"""Recorded outputs of other programs and of the hardware, and the count of how many of them hold.

Each file in `data/` is JSON lines, xz-compressed; how each was made is in `data/README.md`. A test loads the rows,
compares every one, and says the outcome with `tally`; the counts are printed at the end of the run.
"""

from __future__ import annotations

import functools
import json
import lzma
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cute_py.errors import StaticAssertError

DATA = Path(__file__).resolve().parent / "data"

TALLIES: dict[str, tuple[int, int, str]] = {}
"""name -> (rows that hold, rows in the file, what is not covered)"""


@functools.cache
def rows(name: str) -> list[dict[str, Any]]:
    """All rows of `data/<name>.jsonl.xz`."""
    with lzma.open(DATA / f"{name}.jsonl.xz", "rt") as lines:
        return [json.loads(line) for line in lines]


def tally(name: str, passed: int, total: int, uncovered: Sequence[str] = (), every: int = 1) -> None:
    """Note that `passed` of `total` rows hold, which are each `every`th of a table; `uncovered` names rows that no rule
    of ours covers yet."""
    TALLIES[name if every == 1 else f"{name}, one row in {every}"] = (passed, total, ", ".join(uncovered))


def printed(expression: str, names: Mapping[str, Any]) -> str:
    """What a row's Python expression prints, or the condition that refuses it."""
    try:
        return str(eval(expression, dict(names)))
    except StaticAssertError as error:
        return f"static assertion failed: {error.condition}"
