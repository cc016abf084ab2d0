"""Inverses: from offsets back to coordinates.

    right_inverse(L)   L(R(i)) == i            as far as the offsets 0, 1, 2, ... are reached without a gap
    left_inverse(L)    L(R(L(i))) == L(i)      for every i in the domain, where filter(L) is one-to-one

Both follow the strides in ascending order: the mode of stride 1 first, then the mode whose stride is where the last
one ended. The result's strides are the indices of L's domain at which each of them starts. Only static strides take
part. As in CuTe C++, a run-time size that turns out to be 1 counts as a mode with its stride: where that lies beyond
the stride of a later mode, as in (1,4):(_12,_6), the law does not hold.

With basis strides (which C++ does not compile) each codomain axis is inverted by itself: mode i of the result maps
coordinates of axis i to indices of L's domain (rule of arXiv 2603.02298).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from operator import mul
from typing import Any, TypeAlias

from cute_py.argument_checks import wrong_type
from cute_py.errors import StaticAssertError
from cute_py.layout.arguments import LayoutLike, Leaf, Tree
from cute_py.layout.coalesce import coalesced
from cute_py.layout.composition import compose_layouts, compose_tiler
from cute_py.layout.int_tuple import compact_left
from cute_py.layout.known import right_inverse_numbers
from cute_py.layout.layout import (
    Layout,
    along_axis,
    axis_paths,
    coprofile_of,
    domain_of,
    in_numbers,
    make,
    of_layouts,
    on_axis,
)
from cute_py.layout.leaf import Int, Recorder, is_static, leaf_text, mode_text, same, to_public, trunc_div, trunc_mod
from cute_py.layout.trees import at, is_underscore, leaves, modes, unflatten_leaves, unwrap


def _ascending(strides: tuple[Leaf, ...]) -> list[int]:
    """Indices of the static strides, ascending, by exchange sort: equal strides are in the order in which C++ leaves
    them, which decides between stride-0 modes."""
    order = [i for i, d in enumerate(strides) if type(d) is int]
    if len({strides[i] for i in order}) == len(order):
        return sorted(order, key=strides.__getitem__)  # type: ignore[arg-type]
    for i in range(len(order)):
        for j in range(i + 1, len(order)):
            if strides[order[j]] < strides[order[i]]:  # type: ignore[operator]
                order[i], order[j] = order[j], order[i]
    return order


def right_inverse_trees(shape: Tree, stride: Tree, record: Recorder | None = None) -> tuple[Tree, Tree]:
    """Internal shape:stride with integer strides -> its right inverse."""
    shape, stride = coalesced(shape, stride)
    shapes, strides = modes(shape), modes(stride)
    starts = list(accumulate(shapes, mul, initial=1))
    out_shape: list[Tree] = []
    out_stride: list[Tree] = []
    reached: Any = 1
    for i in _ascending(strides):
        follows = type(reached) is int and strides[i] == reached
        if record:
            record("follow right" if follows else "skip right", i, shapes[i], strides[i], reached, starts[i])
        if follows:  # C++: is_constant<true, stride == result's end>
            out_shape.append(shapes[i])
            out_stride.append(starts[i])
            reached = shapes[i] * reached
    if not out_shape:
        return 1, 0
    return coalesced(unwrap(out_shape), unwrap(out_stride))


def left_inverse_trees(shape: Tree, stride: Tree, record: Recorder | None = None) -> tuple[Tree, Tree]:
    """Internal shape:stride with integer strides -> its quasi-inverse."""
    shape, stride = coalesced(shape, stride)
    shapes, strides = modes(shape), modes(stride)
    if not all(type(d) is int for d in strides):
        raise StaticAssertError(
            "Left inverse requires static strides.",
            {"layout": mode_text(shape, stride)},
            "make the strides static with Int(...)",
        )
    starts = list(accumulate(shapes, mul, initial=1))
    order = _ascending(strides)
    out_shape: list[Tree] = []
    out_stride: list[Tree] = [0]
    covered: Any = 1
    for i in order:
        if strides[i] == 0:  # C++: is_constant<0, istride>; nothing moves
            if record:
                record("skip left", i, shapes[i], strides[i], covered, starts[i])
            continue
        if trunc_mod(strides[i], covered) != 0:
            raise StaticAssertError(
                "Left inverse divisibility condition",
                {
                    "layout": mode_text(shape, stride),
                    "stride": f"{leaf_text(strides[i])} (mode {i}) is not a multiple of {covered}, the reach so far",
                },
            )
        gap = trunc_div(strides[i], covered)
        if record:
            record("follow left", i, shapes[i], strides[i], covered, starts[i], gap)
        out_shape.append(gap)
        out_stride.append(starts[i])
        covered *= gap
    out_shape.append(shapes[order[-1]])
    return coalesced(tuple(out_shape), tuple(out_stride))


Inversion: TypeAlias = Callable[[Tree, Tree], tuple[Tree, Tree]]


def _by_axis(invert: Inversion, layout: Layout, profile: Tree) -> Layout:
    parts: list[tuple[Tree, Tree]] = []
    for path in axis_paths(profile):
        axis = along_axis(layout._stride, path)
        moving = list(zip(leaves(layout._shape), leaves(axis), strict=True))
        starts = list(accumulate(leaves(layout._shape), mul, initial=1))
        keep = [i for i, (_, d) in enumerate(moving) if not (type(d) is int and d == 0)]
        if not keep:
            parts.append((1, 0))
            continue
        # the axis' own modes, as if they were the whole domain; then move their starts to where they really are
        own = tuple(moving[i][0] for i in keep)
        inverse_shape, inverse_stride = invert(own, tuple(moving[i][1] for i in keep))
        there = compose_layouts(make(own, tuple(starts[i] for i in keep)), make(inverse_shape, inverse_stride))
        parts.append(coalesced(there._shape, there._stride))
    return make(unflatten_leaves([p[0] for p in parts], profile), unflatten_leaves([p[1] for p in parts], profile))


def _inverse(layout: LayoutLike, invert: Inversion, name: str) -> Layout:
    if type(layout) is not Layout:
        other: Any = layout
        if is_underscore(other):
            return other  # type: ignore[no-any-return]
        if isinstance(other, int) and not isinstance(other, bool):
            return -other  # type: ignore[return-value]
        if not hasattr(other, name):
            raise wrong_type(f"{name} takes a layout", layout)
        return getattr(other, name)()  # type: ignore[no-any-return]
    shape, stride = layout._inner or layout._trees()
    profile = coprofile_of(stride)
    if profile == 0:
        return make(*invert(shape, stride), layout.assumptions)
    return _by_axis(invert, layout, profile)


@of_layouts
def right_inverse(layout: Layout) -> Layout:
    """R with layout(R(i)) == i for all i < size(R): as many contiguous offsets from 0 as the layout reaches.

    >>> print(right_inverse(Layout((Int(3), Int(5), Int(2)), (Int(10), Int(2), Int(1)))))
    (_2,_5,_3):(_15,_3,_1)
    """
    found = None
    if type(layout) is Layout:
        found = in_numbers(layout, right_inverse_numbers)
    return found or _inverse(layout, right_inverse_trees, "right_inverse")


@of_layouts
def left_inverse(layout: Layout) -> Layout:
    """R with layout(R(layout(i))) == layout(i) for all i in the domain, where the modes that move are one-to-one;
    R(layout(i)) is i if the layout is. Of other layouts it is, as in C++, what the same steps give: _2:_2 of
    (_2,_2):(_1,_1).

    Raises:
        StaticAssertError: 'Left inverse divisibility condition', 'Left inverse requires static strides.'

    >>> print(left_inverse(Layout((Int(4), Int(8)), (Int(1), Int(5)))))
    (_5,_8):(_1,_4)
    """
    return _inverse(layout, left_inverse_trees, "left_inverse")


def nullspace(layout: LayoutLike) -> Layout:
    """The layout of the domain's indices that a layout maps to 0 by its static stride-0 modes.

    >>> print(nullspace(Layout((Int(4), Int(8)), (Int(1), Int(0)))))
    _8:_4
    """
    if type(layout) is not Layout:
        domain_of(layout)
        return make(1, 0)  # a composed layout: C++ does not attempt it
    shapes, strides = leaves(layout._shape), leaves(layout._stride)
    keep = [i for i, d in enumerate(strides) if type(d) is int and d == 0]
    if not keep:
        return make(1, 0)
    starts = modes(compact_left(tuple(shapes))[0])
    return make(unwrap([shapes[i] for i in keep]), unwrap([starts[i] for i in keep]), layout.assumptions)


def max_common_layout(a: LayoutLike, b: LayoutLike) -> Layout:
    """The layout of the longest run of contiguous offsets on which a and b agree: a(R(i)) == i == b(R(i)).

    Of tensors: `_1:_0` where their element types differ, or where one of them is no data but an iterator.

    >>> print(max_common_layout(Layout((Int(4), Int(8))), Layout((Int(4), Int(8)))))
    _32:_1
    """
    for x, y in ((a, b), (b, a)):
        if hasattr(x, "max_common_layout"):
            return x.max_common_layout(y)  # type: ignore[no-any-return]
    x, y = domain_of(a), domain_of(b)
    inverse = right_inverse(y)
    profile = coprofile_of(y._stride)
    if profile == 0:
        n = _contiguous(x, inverse)
        return make(1, 0) if n is None else compose_tiler(inverse, to_public(n))
    parts = []
    for path in axis_paths(profile):
        part = make(at(inverse._shape, path), at(inverse._stride, path))
        n = _contiguous(x, part, on_axis(1, path, y._stride))
        parts.append(make(1, 0) if n is None else compose_tiler(part, to_public(n)))
    return make(
        unflatten_leaves([p._shape for p in parts], profile), unflatten_leaves([p._stride for p in parts], profile)
    )


def _contiguous(a: Layout, inverse: Layout, unit: Tree = 1) -> Leaf | None:
    """Internal size of the static unit-stride front of a o inverse, or None."""
    common = compose_layouts(a, inverse)
    shape, stride = coalesced(common._shape, common._stride)
    size, step = modes(shape)[0], modes(stride)[0]
    return size if is_static(size) and same(step, unit) else None


def max_common_vector(a: LayoutLike, b: LayoutLike) -> Int | int:
    """The number of contiguous elements that correspond in a and b, at least 1.

    Of tensors: 0 where their element types differ, or where one of them is no data but an iterator.

    >>> print(max_common_vector(Layout((Int(4), Int(8)), (Int(1), Int(4))), Layout((Int(4), Int(8)), (Int(1), Int(8)))))
    _4
    """
    for x, y in ((a, b), (b, a)):
        if hasattr(x, "max_common_vector"):
            return x.max_common_vector(y)  # type: ignore[no-any-return]
    x, y = domain_of(a), domain_of(b)
    n = _contiguous(x, right_inverse(y))
    return Int(1) if n is None else to_public(n)
