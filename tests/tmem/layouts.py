"""Random tile layouts for the laws."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from cute_py.tmem import Iter, TileLayout

AXES = ("m", "TLane", "TCol")


@st.composite
def rows(draw: Any, axes: tuple[str, ...] = AXES, most: int = 4, limit: int = 1024) -> tuple[Iter, ...]:
    """A row of iters: compact in some order half of the time, arbitrary strides otherwise."""
    extents = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6, 8, 16]), min_size=1, max_size=most))
    while math.prod(extents) > limit:
        extents.pop()
    names = [draw(st.sampled_from(axes)) for _ in extents]
    if draw(st.booleans()):
        step, strides = 1, [0] * len(extents)
        for position in draw(st.permutations(range(len(extents)))):
            strides[position] = step
            step *= extents[position] * draw(st.sampled_from([1, 1, 1, 2]))
    else:
        strides = [draw(st.sampled_from([0, 1, 2, 3, 4, 8, 16, 64])) for _ in extents]
    return tuple(Iter(e, s, a) for e, s, a in zip(extents, strides, names, strict=True))


@st.composite
def tile_layouts(draw: Any, axes: tuple[str, ...] = AXES, limit: int = 1024) -> TileLayout:
    replica = draw(st.lists(st.builds(Iter, st.just(2), st.sampled_from([32, 64]), st.sampled_from(axes)), max_size=2))
    offset = draw(st.dictionaries(st.sampled_from(axes), st.integers(0, 20), max_size=2))
    return TileLayout(draw(rows(axes, limit=limit)), replica, offset)


@st.composite
def shapes_of(draw: Any, size: int, most: int = 3) -> tuple[int, ...]:
    """Extents whose product is `size`."""
    out = []
    for _ in range(draw(st.integers(0, most - 1))):
        divisor = draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
        out.append(divisor)
        size //= divisor
    return (*out, size)


@st.composite
def regions(draw: Any, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    out = []
    for extent in shape:
        begin = draw(st.integers(0, extent - 1))
        out.append((begin, draw(st.integers(begin + 1, extent))))
    return out
