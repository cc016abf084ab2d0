"""Random coordinates, basis strides and layouts over them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from cute_py import E, Int, Layout

small = st.integers(-9, 9)
numbers = st.one_of(small, small.map(Int))
"""Run-time and static integers."""

AXES: tuple[tuple[int, ...], ...] = ((0,), (1,), (2, 0), (2, 1))
"""Positions that do not exclude each other: the codomain is (_,_,(_,_))."""

coordinates = st.tuples(numbers, numbers, st.tuples(numbers, numbers))


@st.composite
def bases(draw: Any) -> Any:
    value = draw(st.integers(-4, 9))
    scale = Int(value) if draw(st.booleans()) else value
    return scale * E(*draw(st.sampled_from(AXES)))


sizes = st.one_of(st.integers(1, 4), st.integers(1, 4).map(Int))
shapes = st.lists(st.one_of(sizes, st.tuples(sizes, sizes)), min_size=1, max_size=3).map(tuple)


@st.composite
def basis_layouts(draw: Any) -> Layout:
    shape = draw(shapes)

    def strides(tree: Any) -> Any:
        return tuple(strides(t) for t in tree) if type(tree) is tuple else draw(bases())

    return Layout(shape, strides(shape))


@st.composite
def coordinates_in(draw: Any, shape: Any) -> Any:
    """A natural coordinate inside the shape, of run-time numbers."""
    if type(shape) is tuple:
        return tuple(draw(coordinates_in(s)) for s in shape)
    return draw(st.integers(0, int(shape) - 1))
