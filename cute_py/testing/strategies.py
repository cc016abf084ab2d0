"""Layouts for property tests: nested shapes, strides of every kind, static and run-time numbers, swizzles.

Sizes stay small (at most a few thousand elements), so that every law can be checked against arrays.
"""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from cute_py.layout.composed import make_composed_layout
from cute_py.layout.int_tuple import size
from cute_py.layout.layout import Layout
from cute_py.layout.layout import static as static_of
from cute_py.layout.leaf import Int
from cute_py.layout.swizzle import Swizzle

SIZES = (1, 2, 3, 4, 5, 6, 8)
POWERS = (1, 2, 4, 8)
MAX_SIZE = 2048


def flat(tree: Any) -> list[Any]:
    return [y for x in tree for y in flat(x)] if isinstance(tree, tuple) else [tree]


def filled(tree: Any, items: Any) -> Any:
    return tuple(filled(t, items) for t in tree) if isinstance(tree, tuple) else next(items)


@st.composite
def shapes(draw: Any, sizes: tuple[int, ...] = SIZES, max_rank: int = 3, depth: int = 2, scalar: bool = True) -> Any:
    """A shape as plain ints: an integer, or nested tuples."""
    if depth == 0 or (scalar and draw(st.integers(0, 5)) == 0):
        return draw(st.sampled_from(sizes))
    rank = draw(st.integers(1, max_rank))
    shape = tuple(
        draw(shapes(sizes, 2, depth - 1, False))
        if depth > 1 and draw(st.integers(0, 3)) == 0
        else draw(st.sampled_from(sizes))
        for _ in range(rank)
    )
    return shape if math.prod(flat(shape)) <= MAX_SIZE else draw(st.sampled_from(sizes))


@st.composite
def strides_for(draw: Any, shape: Any, kind: str) -> Any:
    """Strides of a kind: 'compact' (in any order of modes), 'gaps', 'zeros', 'wild', 'negative'."""
    sizes = flat(shape)
    if kind == "wild":
        steps = [draw(st.integers(0, 40)) for _ in sizes]
    else:
        steps = [0] * len(sizes)
        end = 1
        for i in draw(st.permutations(range(len(sizes)))):
            if kind == "gaps" and draw(st.booleans()):
                end *= draw(st.integers(2, 3))
            steps[i] = end
            end *= sizes[i]
        if kind == "zeros":
            steps = [0 if draw(st.integers(0, 2)) == 0 else d for d in steps]
        if kind == "negative":
            steps = [-d if draw(st.booleans()) else d for d in steps]
    return filled(shape, iter(steps))


def as_static(tree: Any) -> Any:
    return static_of(tree)


@st.composite
def layouts(
    draw: Any,
    kinds: tuple[str, ...] = ("compact", "gaps", "zeros", "wild"),
    sizes: tuple[int, ...] = SIZES,
    static: bool | None = True,
    max_rank: int = 3,
    depth: int = 2,
) -> Layout:
    """A layout; `static` None mixes Int and plain int leaves."""
    shape = draw(shapes(sizes, max_rank, depth))
    stride = draw(strides_for(shape, draw(st.sampled_from(kinds))))
    if static:
        return Layout(as_static(shape), as_static(stride))
    if static is None:
        mixed = [tuple(Int(x) if draw(st.booleans()) else x for x in flat(t)) for t in (shape, stride)]
        return Layout(filled(shape, iter(mixed[0])), filled(stride, iter(mixed[1])))
    return Layout(shape, stride)


def injective_layouts(**options: Any) -> Any:
    """Layouts whose elements all have offsets of their own; options as of `layouts`."""
    return layouts(kinds=("compact", "gaps"), **options)


@st.composite
def swizzles(draw: Any, max_bits: int = 3) -> Swizzle:
    """A swizzle of up to `max_bits` bits, base 0 to 4."""
    bits = draw(st.integers(0, max_bits))
    shift = draw(st.integers(max(bits, 1), 4)) * draw(st.sampled_from((1, 1, 1, -1)))
    return Swizzle(bits, draw(st.integers(0, 4)), shift)


@st.composite
def swizzled_layouts(draw: Any, static: bool | None = True) -> Any:
    """A composed layout of a swizzle and a layout of power-of-two sizes, mostly compact."""
    inner = draw(layouts(kinds=("compact", "compact", "zeros"), sizes=(2, 4, 8, 16), static=static, max_rank=2))
    return make_composed_layout(draw(swizzles()), Int(0), inner)


@st.composite
def coordinates_of(draw: Any, shape: Any) -> Any:
    """A coordinate of plain ints within a shape: natural, or integers for whole modes."""
    if isinstance(shape, tuple) and draw(st.integers(0, 3)):
        return tuple(draw(coordinates_of(s)) for s in shape)
    return draw(st.integers(0, max(math.prod(int(s) for s in flat(shape)) - 1, 0)))


@st.composite
def slices_of(draw: Any, shape: Any) -> Any:
    """A coordinate with at least one `_` for a tuple shape."""
    parts = [None if draw(st.booleans()) else draw(coordinates_of(s)) for s in shape]
    if all(p is not None for p in parts):
        parts[draw(st.integers(0, len(parts) - 1))] = None
    return tuple(parts)


def table(layout: Any) -> list[int]:
    """All offsets in colexicographic order, by calling the layout for each element."""
    return [int(layout(i)) for i in range(int(size(layout)))]
