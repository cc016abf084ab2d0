"""The walk over tiles: its C expressions, read as Python, are its coordinates, and every tile is met once."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import InvalidValueError
from cute_py.gpu.kernels.walk import TileWalk, cover


@st.composite
def walks(draw: st.DrawFn) -> TileWalk:
    rank = draw(st.integers(1, 5))
    counts = draw(st.lists(st.integers(1, 6), min_size=rank, max_size=rank))
    steps = draw(st.lists(st.integers(1, 300), min_size=rank, max_size=rank))
    return TileWalk(tuple(counts), tuple(steps), tuple(draw(st.permutations(range(rank)))))


def evaluated(expression: str, tile: int) -> int:
    text = re.sub(r"(\d)u", r"\1", expression.replace("(int)", "").replace("/", "//"))
    return int(eval(text, {"tile": tile}))


@given(walks())
def test_expressions_are_the_coordinates(walk: TileWalk) -> None:
    expressions = walk.expressions("tile")
    for tile in range(walk.tiles):
        assert tuple(evaluated(one, tile) for one in expressions) == walk.coordinates(tile)


@given(walks())
def test_every_tile_is_met_once(walk: TileWalk) -> None:
    found = {walk.coordinates(tile) for tile in range(walk.tiles)}
    assert len(found) == walk.tiles
    for mode, (count, step) in enumerate(zip(walk.counts, walk.steps, strict=True)):
        assert {place[mode] for place in found} == {i * step for i in range(count)}


@given(walks())
def test_the_first_mode_of_the_order_changes_fastest(walk: TileWalk) -> None:
    live = [mode for mode in walk.order if walk.counts[mode] > 1]
    if live:
        assert walk.coordinates(1)[live[0]] == walk.steps[live[0]]


def test_cover_reaches_the_end_and_not_beyond() -> None:
    assert [cover((size,), (32,)).counts for size in (1, 31, 32, 33, 64, 65)] == [(1,), (1,), (1,), (2,), (2,), (3,)]


@pytest.mark.parametrize(
    ("walk", "words"),
    [
        (lambda: TileWalk((2,), (1, 1)), "counts (2,), steps (1, 1), order (0,) must have the same rank"),
        (lambda: TileWalk((), ()), "counts (), steps (), order () must have the same rank"),
        (lambda: TileWalk((2, 2), (1, 1), (0, 0)), "counts (2, 2), steps (1, 1), order (0, 0) must have the same rank"),
        (lambda: TileWalk((0,), (1,)), "counts (0,) and steps (1,) must be at least 1"),
        (
            lambda: TileWalk((2**31,), (1,)),
            "the walk has 2147483648 tiles; must have fewer than 2**31, the size of a grid",
        ),
    ],
)
def test_refusals_in_words(walk: object, words: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        walk()  # type: ignore[operator]
    assert str(caught.value) == words


def test_the_largest_grid() -> None:
    assert TileWalk((2**31 - 1,), (1,)).tiles == 2**31 - 1
