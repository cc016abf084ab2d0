"""Coalesce: the same function with as few modes as possible. Filter: coalesce, and drop the modes of stride 0.

    (2,(1,6)):(1,(6,2))  ->  12:1          neighbours with  stride_1 == shape_0 * stride_0  become one mode

Law: coalesce(L)(i) == L(i) for all i < size(L), and the result has depth at most 1. Only static modes merge: a mode
with a run-time size or stride is not merged with its neighbour, and a run-time size 1 is not dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from cute_py.errors import StaticAssertError
from cute_py.layout.arguments import IntTuple, LayoutLike, Leaf, Shape, Tiler, Tree
from cute_py.layout.int_tuple import compact_order
from cute_py.layout.layout import (
    Layout,
    apply_to_inner,
    domain_of,
    joined,
    make,
    modes_of,
    of_layouts,
    of_shapes,
)
from cute_py.layout.leaf import STATIC, STATIC_ONE, STATIC_ZERO, Int, as_leaves, is_static, same, times, tree_text
from cute_py.layout.trees import as_tree, check_depth, is_underscore, leaves, map_leaves, modes, unflatten_leaves


def coalesced(shape: Tree, stride: Tree, beyond: bool = False) -> tuple[Tree, Tree]:
    """Coalesce trees: return the flat shape and stride of the same function on the domain.

    Args:
        beyond: keep the function beyond the domain too, as CuTe's coalesce_x does: a trailing static size 1 keeps its
            stride, and the function continues along it.
    """
    return coalesced_by_steps(shape, stride, beyond)[:2]


CoalesceStep: TypeAlias = "tuple[str, tuple[Leaf, ...]]"
"""The name of a rule, the size and stride of the mode that it applies to, and the size and stride of the result's front
mode."""


def coalesced_by_steps(shape: Tree, stride: Tree, beyond: bool = False) -> tuple[Tree, Tree, list[CoalesceStep]]:
    """Coalesce as `coalesced` does, and also return the steps in order."""
    steps: list[CoalesceStep] = []
    shapes, strides = leaves(shape), leaves(stride)
    if not shapes:
        return STATIC_ONE, STATIC_ZERO, steps
    # C++'s bw_coalesce: from the last mode to the first, each joins the front of the result or becomes its new front.
    front, jump = shapes.pop(), strides.pop()
    if beyond and type(front) is Int and front == 1:
        front = STATIC[2]
    sizes: list[Leaf] = []  # the modes behind the front, last first
    jumps: list[Leaf] = []
    while shapes:
        s, d = shapes.pop(), strides.pop()
        if type(s) is Int and s == 1:  # C++: is_constant<1> of the mode; it moves nothing
            steps.append(("drop", (s, d)))
        elif type(front) is Int and front == 1 and not sizes:
            # C++: is_constant<1, NewShape>; the result was trivial so far
            steps.append(("drop", (front, jump)))
            front, jump = s, d
        elif type(front) is Int and (
            (s | 0) * (d | 0) == jump if type(s) is type(d) is type(jump) is Int else _follows(s, d, jump)
        ):
            # C++: is_constant<true, old_shape * old_stride == new_stride>; they are one mode
            steps.append(("merge", (s, d, front, jump)))
            front, jump = times(s, front), d
        else:
            steps.append(("keep apart", (s, d, front, jump)))
            sizes.append(front)
            jumps.append(jump)
            front, jump = s, d
    if not sizes:
        return (STATIC_ONE, STATIC_ZERO, steps) if type(front) is Int and front == 1 else (front, jump, steps)
    return (front, *reversed(sizes)), (jump, *reversed(jumps)), steps


def _follows(size: Leaf, step: Leaf, jump: Leaf) -> bool:
    """Whether `jump` is static and equals size * step, so that a mode of stride `jump` continues the mode size:step."""
    return is_static(jump) and same(times(size, step), jump)


def coalesce_x_by(profile: Tree, shape: Tree, stride: Tree) -> tuple[Tree, Tree]:
    """Apply `coalesced` with `beyond` at the leaves of `profile`; modes beyond the profile stay."""
    if type(profile) is not tuple:
        return coalesced(shape, stride, True)
    shapes, strides = modes(shape), modes(stride)
    if len(profile) > len(shapes):
        raise StaticAssertError(
            "tuple_size<IntTuple>::value <= rank", {"profile": tree_text(profile), "shape": tree_text(shape)}
        )
    pairs = [coalesce_x_by(*t) for t in zip(profile, shapes, strides, strict=False)]
    rest = len(profile)
    return (*[p[0] for p in pairs], *shapes[rest:]), (*[p[1] for p in pairs], *strides[rest:])


def _by_profile(operation: Callable[[Layout], Layout], layout: Layout, profile: Tiler) -> Layout:
    """Apply `operation` at the leaves of `profile`; modes beyond it stay."""
    if type(profile) is not tuple:
        return operation(layout)  # any leaf, even `_`: C++ tests only for a tuple
    parts = modes_of(layout)
    if len(profile) > len(parts):
        raise StaticAssertError("tuple_size<IntTuple>::value <= rank", {"profile": profile, "layout": layout})
    return joined(
        [_by_profile(operation, part, p) for part, p in zip(parts, profile, strict=False)] + parts[len(profile) :]
    )


@of_shapes
def coalesce(layout: Layout | Shape, profile: Tiler = None) -> Layout | IntTuple:
    """Return a layout that is the same function with as few modes as possible. With `profile`, coalesce separately at
    each of its leaves.

    The argument can also be a composed layout or a tensor, whose layout is coalesced, or a bare shape, whose adjacent
    static sizes are multiplied.

    >>> print(coalesce(Layout((Int(2), (Int(1), Int(6))), (Int(1), (Int(6), Int(2))))))
    _12:_1
    >>> print(coalesce(Layout((4, Int(8)), (Int(1), 4))))     # run-time modes do not merge
    (4,_8):(_1,4)
    """
    if type(layout) is Layout:
        if profile is None or type(profile := as_tree(profile)) is not tuple:
            return make(*coalesced(layout.shape, layout.stride), layout.assumptions)
        return _by_profile(coalesce, layout, profile)
    if isinstance(layout, (int, tuple)):
        return coalesced_shape(as_leaves(layout))  # type: ignore[return-value]
    return apply_to_inner(coalesce, layout, profile)


def filter_zeros_tree(shape: Tree, guide: Tree) -> Tree:
    """Replace sizes by 1 where the guide is a static 0."""
    if type(guide) is tuple:
        if len(modes(shape)) != len(guide):
            raise StaticAssertError("Mismatched tuple_size", {"shape": tree_text(shape), "profile": tree_text(guide)})
        return tuple([filter_zeros_tree(s, g) for s, g in zip(modes(shape), guide, strict=True)])
    return map_leaves(lambda _: STATIC_ONE, shape) if type(guide) is Int and guide == 0 else shape


def filtered(shape: Tree, stride: Tree) -> tuple[Tree, Tree]:
    """Return the flat shape and stride of the coalesced modes, without modes of static stride 0."""
    return coalesced(filter_zeros_tree(shape, stride), stride)


def _as_guide(profile: Shape) -> Tree:
    """Convert a profile of numbers and underscores to a tree of leaves."""
    check_depth(profile)
    return as_leaves(map_leaves(lambda leaf: STATIC_ONE if is_underscore(leaf) else leaf, profile))  # type: ignore[arg-type]


@of_shapes
def filter_zeros(layout: Layout | Shape, profile: Shape | None = None) -> Layout | IntTuple:
    """Replace every size with a static stride 0 by 1. A static 0 in `profile` replaces all sizes of that mode by 1; any
    other value (None, for example) keeps them. If both arguments are bare tuples, the first is the profile, as in C++.

    >>> print(filter_zeros(Layout((Int(4), Int(8)), (Int(1), Int(0)))))
    (_4,_1):(_1,_0)
    """
    if type(layout) is Layout:
        guide = layout.stride if profile is None else _as_guide(profile)
        return make(filter_zeros_tree(layout.shape, guide), layout.stride, layout.assumptions)
    if isinstance(layout, (int, tuple)):
        sizes = as_leaves(layout if profile is None else profile)
        return filter_zeros_tree(sizes, _as_guide(layout))  # type: ignore[return-value]
    return apply_to_inner(filter_zeros, layout, profile)


@of_layouts
def filter(layout: Layout, profile: Tiler = None) -> Layout:
    """Drop modes of stride 0 and of size 1, and coalesce the rest. Every mode of the result changes the offset.

    >>> print(filter(Layout((Int(2), Int(3), Int(4)), (Int(0), Int(1), Int(3)))))
    _12:_1
    """
    if type(layout) is Layout:
        if profile is None or type(profile := as_tree(profile)) is not tuple:
            return make(*filtered(layout.shape, layout.stride), layout.assumptions)
        return _by_profile(filter, layout, profile)
    return apply_to_inner(filter, layout, profile)


def coalesced_shape(shape: Tree) -> Tree:
    """Multiply adjacent sizes of a shape that are both static or both run-time."""
    if type(shape) is not tuple:
        return shape
    flat = leaves(shape)
    if not flat:
        return STATIC_ONE
    out = [flat[0]]
    for x in flat[1:]:
        if (type(out[-1]) is Int) == (type(x) is Int):
            out[-1] = times(out[-1], x)
        else:
            out.append(x)
    return out[0] if len(out) == 1 else tuple(out)


def make_layout_like(layout: LayoutLike, tiler: Tiler = None) -> Layout:
    """Return a compact layout of the same shape whose strides have the same order. A static stride 0 stays 0.

    With a tiler, the result has the tile's shape, and each mode has the stride that it has in the layout.

    >>> print(make_layout_like(Layout((Int(2), Int(3), Int(4)), (Int(0), Int(42), Int(1)))))
    (_2,_3,_4):(_0,_4,_1)
    >>> print(make_layout_like(Layout((Int(64), Int(32)), (Int(32), Int(1))), (Int(8), Int(4))))
    (_8,_4):(_32,_1)
    """
    inner = domain_of(layout)
    if tiler is None:
        shape = filter_zeros_tree(inner.shape, inner.stride)
        return make(inner.shape, compact_order(shape, inner.stride), inner.assumptions)
    tile = tiler.shape if isinstance(tiler, Layout) else Layout(tiler).shape
    strides, wanted = leaves(inner.stride), len(leaves(tile))
    if wanted > len(strides):
        raise StaticAssertError(f"the tile has {wanted} modes, and the layout has {len(strides)}", {"layout": layout})
    return make(tile, unflatten_leaves(strides[:wanted], tile))
