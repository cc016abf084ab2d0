"""The rows of a source that a tile reads for the last sectors of its destination rows, against an enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.copies import tile_shape as tile_shape_module
from cute_py.copies.modes import BorrowedRows, RunMode, refine
from cute_py.copies.tile import candidate_tiles
from tests.copies.pairs import permuted


@st.composite
def rows(draw: st.DrawFn) -> tuple[BorrowedRows, list[int]]:
    """Draw rows of a run with up to four modes, and a pitch for each mode. Some modes may be inside a source row."""
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


@pytest.mark.parametrize(
    ("shape", "order", "element"),
    [
        ((11, 6, 57, 16), (3, 1, 0, 2), 4),
        ((13, 13, 121), (2, 1, 0), 2),
        ((21, 4, 31, 19), (3, 1, 0, 2), 1),
        ((7, 19, 33, 32), (3, 2, 1, 0), 1),
    ],
)
def test_elements_that_a_tile_reads_have_their_own_places(
    shape: tuple[int, ...], order: tuple[int, ...], element: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each tile that reads a part of the next one, also with a skew and another order of modes."""
    monkeypatch.setattr(tile_shape_module, "BLOCKS", 1)
    monkeypatch.setattr(tile_shape_module, "QUICK", (1 << 40, 1))
    pair = permuted(shape, order, element)
    refinement = refine(pair.source, pair.destination)
    assert refinement is not None
    tiles = candidate_tiles(refinement, element, (16, 16), 1 << 20)
    borrowing = [tile for tile in tiles if tile.shape.borrowed_rows(0).modes]
    assert borrowing
    for tile in borrowing:
        form, inside = tile.shape, np.zeros(1, np.int64)
        for m in form.orders[0][: form.runs[0]]:
            inside = (tile.places(m, np.arange(form.held[m]))[:, None] + inside).ravel()
        places = np.sort((tile.rows(0, 0)[1][:, None] + inside).ravel())
        assert (np.diff(places) >= element).all()
        assert places[-1] + element <= tile.shared_bytes
