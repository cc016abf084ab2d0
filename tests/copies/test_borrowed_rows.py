"""The rows of a source that a tile reads for the last sectors of its destination rows, against an enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cute_py.copies.borrowed_rows import BorrowedRows, RunMode


@st.composite
def rows(draw: st.DrawFn) -> tuple[BorrowedRows, list[int]]:
    """Rows of a run of up to four modes, some of which are inside a source row, and pitches of all modes."""
    extents = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    counted = draw(st.lists(st.booleans(), min_size=len(extents), max_size=len(extents)).filter(any))
    modes = [RunMode(m, math.prod(extents[:m]), extents[m]) for m, used in enumerate(counted) if used]
    limit = draw(st.integers(1, math.prod(extents) + 2))
    pitches = draw(st.lists(st.integers(1, 99), min_size=len(extents), max_size=len(extents)))
    return BorrowedRows(tuple(reversed(modes)), limit), pitches


@given(rows())
def test_rows_are_those_that_start_below_the_limit(case: tuple[BorrowedRows, list[int]]) -> None:
    found, pitches = case
    every = list(itertools.product(*[range(one.extent) for one in found.modes]))
    digits = {one.mode: np.array([row[i] for row in every]) for i, one in enumerate(found.modes)}
    kept = [row for row, inside in zip(every, found.contains(digits), strict=True) if inside]
    starts = [sum(n * one.weight for n, one in zip(row, found.modes, strict=True)) for row in every]
    assert kept == [row for row, start in zip(every, starts, strict=True) if start < found.limit]
    assert found.total == len(kept)
    offsets = [sum(n * pitches[one.mode] for n, one in zip(row, found.modes, strict=True)) for row in kept]
    assert found.reach(pitches) == max(offsets)
