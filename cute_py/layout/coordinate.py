"""Coordinates: conversion to indices and back, and the sublayouts that remain when a coordinate fixes some modes.

crd2idx(coord, shape, stride)   the inner product of the natural coordinate with the strides
crd2idx(coord, shape)           the colexicographic index: first mode fastest
idx2crd(index, shape)           the inverse; the last mode takes the remaining quotient, without a modulo, as in C++

slice_(coord, L)                the modes that coord keeps with `_`
dice(coord, L)                  the modes that coord fixes
slice_and_offset(coord, L)      the kept modes, and the offset of the fixed ones
"""

from __future__ import annotations

from typing import TypeVar, overload

from cute_py.argument_checks import wrong_type
from cute_py.errors import CoordinateError, InvalidTypeError, StaticAssertError, given
from cute_py.layout.arguments import Coordinate, IntCoordinate, IntTuple, LayoutLike, Shape, Shaped, Tree
from cute_py.layout.composed import ComposedLayout, Sliced, slice_parts
from cute_py.layout.int_tuple import crd2idx_horner, crd2idx_of, idx2crd_colex, idx2crd_strided
from cute_py.layout.layout import Layout, Thing, domain_of, make
from cute_py.layout.leaf import Int, as_leaves, coordinate, tree_text
from cute_py.layout.trees import (
    as_tree,
    check_depth,
    congruent_trees,
    dice_tree,
    fits,
    has_underscore,
    modes,
    slice_tree,
)

OffsetLayout = TypeVar("OffsetLayout", Layout, ComposedLayout)


def crd2idx(coord: IntCoordinate, shape: Shaped, stride: Tree | None = None) -> Int | int:
    """Return the index of a coordinate in shape:stride or in a layout; for a shape, the colexicographic index.

    >>> crd2idx((1, 2), (4, 8), (8, 1)), crd2idx((1, 2), (4, 8))
    (10, 9)
    """
    if stride is not None and fits(shape, stride):
        return crd2idx_of(coordinate(coord), shape, stride)  # type: ignore[return-value, arg-type]
    if isinstance(shape, (Layout, ComposedLayout)):
        return shape(coord)
    if stride is None:
        return crd2idx_horner(coordinate(coord), as_leaves(shape))  # type: ignore[return-value]
    sizes, steps = as_leaves(shape), as_leaves(stride)
    if not congruent_trees(sizes, steps):
        raise CoordinateError("Mismatched Ranks", {"shape": tree_text(sizes), "stride": tree_text(steps)})
    return crd2idx_of(coordinate(coord), sizes, steps)  # type: ignore[return-value]


def idx2crd(idx: Shape, shape: Layout | Shape, stride: Tree | None = None) -> IntTuple:
    """Return the coordinate of a colexicographic index; with a stride, (idx / stride) % shape at every leaf.

    >>> idx2crd(17, (4, (2, 4))), idx2crd(100, (4, 8))
    ((1, (0, 2)), (0, 25))
    """
    if isinstance(shape, Layout):
        return idx2crd(idx, shape.shape, shape.stride)
    if stride is None:
        return idx2crd_colex(as_leaves(idx), as_leaves(shape))  # type: ignore[return-value]
    return idx2crd_strided(as_leaves(idx), as_leaves(shape), as_leaves(stride))  # type: ignore[return-value]


def crd2crd(coord: Shape, src_shape: Shape, dst_shape: Shape) -> IntTuple:
    """Convert a coordinate of one shape to a coordinate of another shape of the same size.

    >>> crd2crd((1, 2), (4, 6), (2, 12)), crd2crd(9, (4, 6), (8, 3))
    ((1, 2), (1, 1))
    """

    def convert(c: Tree, s: Tree, d: Tree) -> Tree:
        if type(c) is tuple and type(s) is tuple and type(d) is tuple:
            if not len(c) == len(s) == len(d):
                raise StaticAssertError(
                    "Mismatched Ranks", {"coordinate": tree_text(c), "from": tree_text(s), "to": tree_text(d)}
                )
            return tuple([convert(*t) for t in zip(c, s, d, strict=True)])
        return idx2crd_colex(crd2idx_horner(c, s), d)

    return convert(as_leaves(coord), as_leaves(src_shape), as_leaves(dst_shape))  # type: ignore[return-value]


def get_flat_coord(layout: LayoutLike, index: Shape) -> IntTuple:
    """Return the coordinate that a compact layout maps to this offset, with one integer for each mode.

    C++'s `layout.get_flat_coord(index)`. For a layout whose shape is an integer, the result is an integer.

    >>> get_flat_coord(Layout((4, (2, 3)), (6, (1, 2))), 9)
    (1, 3)
    """
    if isinstance(layout, ComposedLayout):
        raise wrong_type("get_flat_coord takes a layout or a tensor with a plain layout", layout)
    plain = domain_of(layout)
    hier = idx2crd(index, plain.shape, plain.stride)
    if type(hier) is not tuple:
        return hier
    return tuple([crd2idx(c, s) for c, s in zip(hier, modes(plain.shape), strict=True)])


@overload
def slice_(coord: Coordinate, layout: Thing) -> Thing: ...
@overload
def slice_(coord: Coordinate, layout: Tree) -> Tree: ...
def slice_(coord: Coordinate, layout: LayoutLike | Tree) -> LayoutLike | Tree:
    """Return the sublayout of the modes that `coord` keeps with `_` or None; for a bare tuple, the kept modes.

    >>> print(slice_((None, (1, None)), Layout((Int(4), (Int(2), Int(3))), (Int(1), (Int(4), Int(8))))))
    (_4,_3):(_1,_8)
    """
    check_depth(coord)
    if isinstance(layout, Layout):
        return layout._sliced(coord)
    if isinstance(layout, ComposedLayout):
        return layout.slice_and_offset(coord)[0]
    if isinstance(layout, (tuple, int)):
        return slice_tree(as_tree(coord), as_tree(layout))
    if not hasattr(type(layout), "with_domain"):
        raise wrong_type("slice_ takes a layout, a tensor or a tuple", layout)
    domain_of(layout)  # type: ignore[arg-type]  # refuses an object that contains itself
    return layout(coord)  # type: ignore[no-any-return, operator]


@overload
def dice(coord: Coordinate, layout: Thing) -> Thing: ...
@overload
def dice(coord: Coordinate, layout: Tree) -> Tree: ...
def dice(coord: Coordinate, layout: LayoutLike | Tree) -> LayoutLike | Tree:
    """Return the sublayout of the modes that `coord` fixes; for a bare tuple, the fixed modes.

    >>> dice((None, 1), (4, 8))
    (8,)
    """
    check_depth(coord)
    if isinstance(layout, Layout):
        return make(dice_tree(coord, layout.shape), dice_tree(coord, layout.stride), layout.assumptions)
    if isinstance(layout, ComposedLayout):
        return layout.with_domain(dice(coord, layout.inner))
    if isinstance(layout, (tuple, int)):
        return dice_tree(as_tree(coord), as_tree(layout))
    raise wrong_type("dice takes a layout or a tuple", layout)


@overload
def slice_and_offset(coord: Coordinate, layout: Layout) -> tuple[Layout, int]: ...
@overload
def slice_and_offset(coord: Coordinate, layout: ComposedLayout) -> Sliced: ...
def slice_and_offset(coord: Coordinate, layout: Layout | ComposedLayout) -> Sliced:
    """Return the sublayout of the modes that `coord` keeps, and the offset of the modes that it fixes.

    >>> kept, offset = slice_and_offset((2, None), Layout((4, 8), (8, 1)))
    >>> print(kept, offset)
    (8):(1) 16
    """
    check_depth(coord)
    if isinstance(layout, (Layout, ComposedLayout)):
        return slice_parts(coord, layout)
    raise wrong_type("slice_and_offset takes a layout", layout)


@overload
def domain_offset(coord: IntCoordinate, thing: OffsetLayout) -> tuple[OffsetLayout, int]: ...  # type: ignore[overload-overlap]
@overload
def domain_offset(coord: IntCoordinate, thing: Thing) -> Thing: ...
def domain_offset(coord: IntCoordinate, thing: LayoutLike) -> LayoutLike | tuple[LayoutLike, int]:
    """Return (layout, offset) with the origin moved to `coord`. For a tensor, return the tensor with its engine moved.

    >>> layout, offset = domain_offset((1, 2), Layout((4, 8), (8, 1)))
    >>> print(layout, offset)
    (4,8):(8,1) 10
    """
    if has_underscore(coord):
        raise InvalidTypeError(
            "domain_offset takes a coordinate without `_`",
            {"coordinate": given(coord)},
        )
    if isinstance(thing, Layout):
        return thing, thing(coord)
    if hasattr(type(thing), "domain_offset"):
        return thing.domain_offset(coord)  # type: ignore[attr-defined, no-any-return]
    raise wrong_type("domain_offset takes a layout or a tensor", thing)
