"""Layouts for property tests: nested shapes, strides of every kind, static and run-time numbers, swizzles.

Sizes are small (at most a few thousand elements), so that every law can be checked against arrays. The functions check
their arguments when they make a strategy; hypothesis would report the errors only during a test.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, TypeAlias, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from cute_py.argument_checks import expect, expect_choice, expect_integer, expect_integers
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.layout.composed import ComposedLayout, make_composed_layout
from cute_py.layout.int_tuple import size
from cute_py.layout.layout import Layout
from cute_py.layout.layout import static as static_of
from cute_py.layout.leaf import Int
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import check_depth

Item = TypeVar("Item")
Nested: TypeAlias = "Item | tuple[Nested[Item], ...]"
Profile: TypeAlias = "Nested[int]"
"""A shape, stride or coordinate of plain ints."""
Slice: TypeAlias = "tuple[Profile | None, ...]"
"""A coordinate with None where a whole mode is taken."""

SIZES = (1, 2, 3, 4, 5, 6, 8)
MAX_SIZE = 2048
KINDS: Final = ("compact", "gaps", "zeros", "wild", "negative")
"""Kinds of strides, see `strides_for`."""
MAX_LEAVES: Final = 64
"""Maximum number of sizes of a shape for coordinates, slices or strides."""


def flat(tree: Profile) -> list[int]:
    """The leaves of a shape or coordinate, from left to right.

    >>> flat(((2, 3), 4))
    [2, 3, 4]
    """
    return [y for x in tree for y in flat(x)] if isinstance(tree, tuple) else [tree]


def fill_profile(tree: Profile, items: Iterator[Item]) -> Nested[Item]:
    """A tree of the same profile, where each leaf is replaced by the next item.

    >>> fill_profile(((2, 3), 4), iter("abc"))
    (('a', 'b'), 'c')
    """
    return tuple(fill_profile(t, items) for t in tree) if isinstance(tree, tuple) else next(items)


def _checked_sizes(sizes: tuple[int, ...], max_rank: int, depth: int) -> tuple[tuple[int, ...], int, int]:
    """Check the arguments of `shapes`, and return the values that it draws from."""
    checked = expect_integers(sizes, "sizes", 0, MAX_SIZE)
    if not checked:
        raise InvalidValueError("sizes has no entries; must have a size to choose")
    return checked, expect_integer(max_rank, "max_rank", 1, 8), expect_integer(depth, "depth", 0, 8)


def _checked_shape(shape: Profile) -> Profile:
    """Check that a shape has at most 64 known sizes, and return it with plain ints."""
    check_depth(shape)
    sizes = expect_integers(flat(shape), "the sizes of the shape", 0)
    if len(sizes) > MAX_LEAVES:
        raise InvalidValueError(f"a shape of {len(sizes)} sizes; must have at most {MAX_LEAVES}")
    return fill_profile(shape, iter(sizes))


def _check_static(static: bool | None) -> None:
    if static is not None:
        expect(static, bool, "static")


def shapes(
    sizes: tuple[int, ...] = SIZES, max_rank: int = 3, depth: int = 2, scalar: bool = True
) -> SearchStrategy[Profile]:
    """A strategy for shapes of plain ints: an integer, or nested tuples.

    Args:
        sizes: the sizes to choose from, each 0 to 2048; max_rank: 1 to 8; depth: nesting of tuples, 0 to 8.
        scalar: whether a shape may be a single integer.
    Raises:
        InvalidTypeError, InvalidValueError: an argument has another type or value.

    >>> from hypothesis import find
    >>> find(shapes(sizes=(2, 3)), lambda shape: True)
    2
    """
    return _shapes(*_checked_sizes(sizes, max_rank, depth), expect(scalar, bool, "scalar"))


@st.composite
def _shapes(draw: DrawFn, sizes: tuple[int, ...], max_rank: int, depth: int, scalar: bool) -> Profile:
    if depth == 0 or (scalar and draw(st.integers(0, 5)) == 0):
        return draw(st.sampled_from(sizes))
    rank = draw(st.integers(1, max_rank))
    shape = tuple(
        draw(_shapes(sizes, 2, depth - 1, False))
        if depth > 1 and draw(st.integers(0, 3)) == 0
        else draw(st.sampled_from(sizes))
        for _ in range(rank)
    )
    return shape if math.prod(flat(shape)) <= MAX_SIZE else draw(st.sampled_from(sizes))


def strides_for(shape: Profile, kind: str) -> SearchStrategy[Profile]:
    """A strategy for strides of a kind: 'compact' (in any order of modes), 'gaps', 'zeros', 'wild' or 'negative'.

    Raises:
        InvalidTypeError, InvalidValueError: `shape` is not a shape of at most 64 known sizes, or the kind is unknown.

    >>> from hypothesis import find
    >>> find(strides_for((4, 8), "compact"), lambda stride: True)
    (1, 4)
    """
    return _strides_for(_checked_shape(shape), expect_choice(kind, KINDS, "the kind of strides"))


@st.composite
def _strides_for(draw: DrawFn, shape: Profile, kind: str) -> Profile:
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
    return fill_profile(shape, iter(steps))


def layouts(
    kinds: tuple[str, ...] = ("compact", "gaps", "zeros", "wild"),
    sizes: tuple[int, ...] = SIZES,
    static: bool | None = True,
    max_rank: int = 3,
    depth: int = 2,
) -> SearchStrategy[Layout]:
    """A strategy for layouts. `static`: whether leaves are Int; None mixes Int and plain int leaves.

    Args:
        kinds: kinds of strides, as in `strides_for`; sizes, max_rank, depth: as in `shapes`.
    Raises:
        InvalidTypeError, InvalidValueError: an argument has another type or value.

    >>> from hypothesis import find
    >>> print(find(layouts(sizes=(2, 4)), lambda layout: True))
    _2:_1
    """
    if not isinstance(kinds, (tuple, list)) or not kinds:
        raise InvalidTypeError(f"kinds must be a tuple of kinds of strides, got {given(kinds)}")
    checked = tuple([expect_choice(kind, KINDS, f"kinds[{i}]") for i, kind in enumerate(kinds)])
    _check_static(static)
    return _layouts(checked, _shapes(*_checked_sizes(sizes, max_rank, depth), True), static)


@st.composite
def _layouts(draw: DrawFn, kinds: tuple[str, ...], shaped: SearchStrategy[Profile], static: bool | None) -> Layout:
    shape = draw(shaped)
    stride = draw(_strides_for(shape, draw(st.sampled_from(kinds))))
    if static:
        return Layout(static_of(shape), static_of(stride))
    if static is None:
        mixed = [tuple(Int(x) if draw(st.booleans()) else x for x in flat(t)) for t in (shape, stride)]
        return Layout(fill_profile(shape, iter(mixed[0])), fill_profile(stride, iter(mixed[1])))
    return Layout(shape, stride)


def injective_layouts(
    sizes: tuple[int, ...] = SIZES, static: bool | None = True, max_rank: int = 3, depth: int = 2
) -> SearchStrategy[Layout]:
    """A strategy for layouts whose elements all have distinct offsets; options as for `layouts`.

    >>> from hypothesis import find
    >>> print(find(injective_layouts(sizes=(2, 4)), lambda layout: True))
    _2:_1
    """
    return layouts(("compact", "gaps"), sizes, static, max_rank, depth)


def swizzles(max_bits: int = 3) -> SearchStrategy[Swizzle]:
    """A strategy for swizzles of up to `max_bits` bits (`max_bits` is 0 to 4) and of base 0 to 4.

    Raises:
        InvalidTypeError, InvalidValueError: `max_bits` is not an integer from 0 to 4.

    >>> from hypothesis import find
    >>> find(swizzles(), lambda swizzle: True)
    Swizzle(0, 0, 1)
    """
    return _swizzles(expect_integer(max_bits, "max_bits", 0, 4))


@st.composite
def _swizzles(draw: DrawFn, max_bits: int) -> Swizzle:
    bits = draw(st.integers(0, max_bits))
    shift = draw(st.integers(max(bits, 1), 4)) * draw(st.sampled_from((1, 1, 1, -1)))
    return Swizzle(bits, draw(st.integers(0, 4)), shift)


def swizzled_layouts(static: bool | None = True) -> SearchStrategy[ComposedLayout]:
    """A strategy for composed layouts of a swizzle and a layout with power-of-two sizes, which is mostly compact.

    Raises:
        InvalidTypeError: `static` is neither a bool nor None.

    >>> from hypothesis import find
    >>> type(find(swizzled_layouts(), lambda layout: True)).__name__
    'ComposedLayout'
    """
    _check_static(static)
    return _swizzled_layouts(static)


@st.composite
def _swizzled_layouts(draw: DrawFn, static: bool | None) -> ComposedLayout:
    inner = draw(layouts(kinds=("compact", "compact", "zeros"), sizes=(2, 4, 8, 16), static=static, max_rank=2))
    return make_composed_layout(draw(_swizzles(3)), Int(0), inner)


def coordinates_of(shape: Profile) -> SearchStrategy[Profile]:
    """A strategy for coordinates of plain ints within a shape, natural or with an integer in place of a nested mode.

    Raises:
        InvalidTypeError, InvalidValueError: `shape` is not a shape of at most 64 known sizes.

    >>> from hypothesis import find
    >>> find(coordinates_of((4, 8)), lambda coord: True)
    0
    """
    return _coordinates_of(_checked_shape(shape))


@st.composite
def _coordinates_of(draw: DrawFn, shape: Profile) -> Profile:
    if isinstance(shape, tuple) and draw(st.integers(0, 3)):
        return tuple(draw(_coordinates_of(s)) for s in shape)
    return draw(st.integers(0, max(math.prod(int(s) for s in flat(shape)) - 1, 0)))


def slices_of(shape: tuple[Profile, ...]) -> SearchStrategy[Slice]:
    """A strategy for coordinates with at least one `_`, for a shape that is a tuple.

    Raises:
        InvalidTypeError, InvalidValueError: `shape` is not a tuple of at most 64 known sizes.

    >>> from hypothesis import find
    >>> find(slices_of((4, 8)), lambda coord: coord[1] == 5)
    (None, 5)
    """
    if not isinstance(shape, tuple) or not shape:
        raise InvalidTypeError(f"slices_of takes a shape with modes, got {type(shape).__name__} {given(shape)}")
    return _slices_of(_checked_shape(shape))


@st.composite
def _slices_of(draw: DrawFn, shape: Profile) -> Slice:
    modes = shape if isinstance(shape, tuple) else (shape,)
    parts = [None if draw(st.booleans()) else draw(_coordinates_of(s)) for s in modes]
    if all(p is not None for p in parts):
        parts[draw(st.integers(0, len(parts) - 1))] = None
    return tuple(parts)


def table(layout: Layout | ComposedLayout) -> list[int]:
    """All offsets in colexicographic order, computed by calling the layout for each element.

    >>> table(Layout((2, 3), (3, 1)))
    [0, 3, 1, 4, 2, 5]
    """
    return [int(layout(i)) for i in range(int(size(layout)))]
