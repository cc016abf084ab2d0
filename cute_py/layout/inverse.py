"""Inverses of layouts, which map offsets back to coordinates.

    right_inverse(L)   L(R(i)) == i            for every i < size(R)
    left_inverse(L)    L(R(L(i))) == L(i)      for every i in the domain, where filter(L) is one-to-one

Both take the modes of L by ascending stride: the mode of stride 1 first, then the mode whose stride is the end (size *
stride) of the mode before it. The strides of the result are the indices of L's domain where these modes start. Only
static strides are used. As in CuTe C++, a mode whose run-time size is 1 is taken like any other mode. If its stride
exceeds the stride of a later mode, as in (1,4):(_12,_6), the law does not hold.

If modes have basis strides (which C++ does not compile), each codomain axis is inverted separately: mode i of the
result maps coordinates along axis i to indices of L's domain (rule of arXiv 2603.02298).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any, TypeAlias

from cute_py.argument_checks import wrong_type
from cute_py.errors import StaticAssertError, unless_refused
from cute_py.layout.arguments import LayoutLike, Leaf, Tree
from cute_py.layout.coalesce import coalesced
from cute_py.layout.composition import compose_layouts, compose_tiler
from cute_py.layout.int_tuple import compact_left
from cute_py.layout.layout import (
    Layout,
    along_axis,
    axis_paths,
    coprofile_of,
    domain_of,
    make,
    of_layouts,
    on_axis,
    static,
)
from cute_py.layout.leaf import (
    STATIC_ONE,
    STATIC_ZERO,
    Int,
    is_static,
    is_zero,
    mode_text,
    same,
    times,
    trunc_div,
    trunc_mod,
)
from cute_py.layout.trees import at, is_underscore, leaves, modes, unflatten_leaves, unwrap

Step: TypeAlias = "tuple[str, tuple[Any, ...]]"
"""The name of a rule, and the leaves that it used; `steps` has a sentence for each rule."""

Inverse: TypeAlias = "tuple[Tree, Tree, list[Step]]"
"""Shape, stride and steps."""


def _starts(sizes: Iterable[Leaf]) -> list[Leaf]:
    """Return the domain index where each mode starts, followed by the size of the domain."""
    first: Leaf = STATIC_ONE
    return list(accumulate(sizes, times, initial=first))


def _ascending(strides: tuple[Leaf, ...]) -> list[int]:
    """Return the indices of the static strides in ascending order of the strides. C++'s exchange sort determines the
    order of equal strides, which matters for modes of stride 0."""
    order = [i for i, d in enumerate(strides) if type(d) is Int]
    if len(set(map(strides.__getitem__, order))) == len(order):
        return sorted(order, key=strides.__getitem__)  # type: ignore[arg-type]
    for i in range(len(order)):
        for j in range(i + 1, len(order)):
            if strides[order[j]] < strides[order[i]]:  # type: ignore[operator]
                order[i], order[j] = order[j], order[i]
    return order


def right_inverse_by_steps(shape: Tree, stride: Tree) -> Inverse:
    """Return the right inverse of shape:stride with integer strides, and the steps."""
    shape, stride = coalesced(shape, stride)
    shapes, strides = modes(shape), modes(stride)
    starts = _starts(shapes)
    out_shape: list[Tree] = []
    out_stride: list[Tree] = []
    steps: list[Step] = []
    reached: Any = STATIC_ONE
    for i in _ascending(strides):
        size, step, start = shapes[i], strides[i], starts[i]
        if type(reached) is Int and step == reached:  # C++: is_constant<true, stride == result's end>
            steps.append(("follow right", (i, size, step, reached, start)))
            out_shape.append(size)
            out_stride.append(start)
            reached = times(size, reached)
        else:
            steps.append(("skip right", (i, size, step, reached, start)))
    if not out_shape:
        return STATIC_ONE, STATIC_ZERO, steps
    return *coalesced(unwrap(out_shape), unwrap(out_stride)), steps


def _static_hint(shape: Tree, stride: Tree) -> str | None:
    """Return a hint to use `cute.static` if the layout has a left inverse with static numbers; otherwise None."""
    if not all(isinstance(n, int) for n in (*leaves(shape), *leaves(stride))):
        return None
    made = unless_refused(left_inverse_by_steps, static(shape), static(stride))
    return (
        None
        if made is None
        else f"plain ints are run-time; with cute.static(layout), the left inverse is {mode_text(*made[:2])}"
    )


def left_inverse_by_steps(shape: Tree, stride: Tree) -> Inverse:
    """Return the left inverse of shape:stride with integer strides, and the steps."""
    shape, stride = coalesced(shape, stride)
    shapes, strides = modes(shape), modes(stride)
    if not all(type(d) is Int for d in strides):
        raise StaticAssertError(
            "Left inverse requires static strides.",
            {"layout": mode_text(shape, stride)},
            _static_hint(shape, stride),
        )
    starts = _starts(shapes)
    order = _ascending(strides)
    out_shape: list[Tree] = []
    out_stride: list[Tree] = [STATIC_ZERO]
    steps: list[Step] = []
    covered: Any = STATIC_ONE
    for i in order:
        if strides[i] == 0:  # C++: is_constant<0, istride>; nothing moves
            steps.append(("skip left", (i, shapes[i], strides[i], covered, starts[i])))
            continue
        if trunc_mod(strides[i], covered) != 0:
            raise StaticAssertError(
                "Left inverse divisibility condition",
                {
                    "layout": mode_text(shape, stride),
                    "stride": f"{strides[i]} (mode {i}) is not a multiple of {covered | 0}, the extent of the "
                    "modes with smaller strides",
                },
            )
        gap = trunc_div(strides[i], covered)
        steps.append(("follow left", (i, shapes[i], strides[i], covered, starts[i], gap)))
        out_shape.append(gap)
        out_stride.append(starts[i])
        covered = times(covered, gap)
    out_shape.append(shapes[order[-1]])
    return *coalesced(tuple(out_shape), tuple(out_stride)), steps


Inversion: TypeAlias = Callable[[Tree, Tree], Inverse]


def _by_axis(invert: Inversion, layout: Layout, profile: Tree) -> Layout:
    parts: list[tuple[Tree, Tree]] = []
    sizes = leaves(layout.shape)
    starts = _starts(sizes)
    for path in axis_paths(profile):
        axis = leaves(along_axis(layout.stride, path))
        keep = [i for i, d in enumerate(axis) if not is_zero(d)]
        if not keep:
            parts.append((STATIC_ONE, STATIC_ZERO))
            continue
        # treat the axis' own modes as the whole domain; then move their starts to their true positions
        own = tuple([sizes[i] for i in keep])
        inverse_shape, inverse_stride, _ = invert(own, tuple([axis[i] for i in keep]))
        there = compose_layouts(make(own, tuple([starts[i] for i in keep])), make(inverse_shape, inverse_stride))
        parts.append(coalesced(there.shape, there.stride))
    return make(unflatten_leaves([p[0] for p in parts], profile), unflatten_leaves([p[1] for p in parts], profile))


def _inverse(layout: LayoutLike, invert: Inversion, name: str) -> Layout:
    if type(layout) is not Layout:
        other: Any = layout
        if is_underscore(other):
            return other  # type: ignore[no-any-return]
        if isinstance(other, int) and not isinstance(other, bool):
            return -other  # type: ignore[return-value]
        if not hasattr(type(other), name):
            raise wrong_type(f"{name} takes a layout", layout)
        return getattr(other, name)()  # type: ignore[no-any-return]
    profile = coprofile_of(layout.stride)
    shape: Tree = layout.shape
    stride: Tree = layout.stride
    if profile != 0:
        shape, stride = coalesced(shape, stride)
        if coprofile_of(stride) != 0:
            return _by_axis(invert, layout, profile)
    shape, stride, _ = invert(shape, stride)  # no mode with a basis stride moves: an integer layout, as in C++
    return make(shape, stride, layout.assumptions)


@of_layouts
def right_inverse(layout: Layout) -> Layout:
    """Return the layout R with layout(R(i)) == i for all i < size(R). R has the mode of stride 1, then the mode whose
    stride is the size of R so far, and so on. If no mode continues R, it ends: the layout reaches 0 .. size(R)-1.

    As in C++, modes with run-time strides are not used, and R is smaller without them, often _1:_0. The right inverse
    of `cute.static(layout)`, which makes the numbers static, can use all modes.

    >>> print(right_inverse(Layout((Int(3), Int(5), Int(2)), (Int(10), Int(2), Int(1)))))
    (_2,_5,_3):(_15,_3,_1)
    >>> print(right_inverse(Layout((4, 8), (8, 1))), right_inverse(static(Layout((4, 8), (8, 1)))))
    _1:_0 (_8,_4):(_4,_1)
    """
    return _inverse(layout, right_inverse_by_steps, "right_inverse")


@of_layouts
def left_inverse(layout: Layout) -> Layout:
    """Return the layout R with layout(R(layout(i))) == layout(i) for all i in the domain, if the layout without its
    stride-0 modes is one-to-one. If the whole layout is one-to-one, R(layout(i)) is i. For any other layout, R is the
    result of the same steps, as in C++: _2:_2 for (_2,_2):(_1,_1).

    Raises:
        StaticAssertError: 'Left inverse divisibility condition', or 'Left inverse requires static strides.' The strides
            of `cute.static(layout)` are static.

    >>> print(left_inverse(Layout((Int(4), Int(8)), (Int(1), Int(5)))))
    (_5,_8):(_1,_4)
    """
    return _inverse(layout, left_inverse_by_steps, "left_inverse")


def nullspace(layout: LayoutLike) -> Layout:
    """Return the layout of the domain indices that a layout maps to 0 because of its static stride-0 modes.

    Modes with a run-time stride of 0 are not included; `cute.static(layout)` makes the numbers static.

    >>> print(nullspace(Layout((Int(4), Int(8)), (Int(1), Int(0)))))
    _8:_4
    """
    if type(layout) is not Layout:
        domain_of(layout)
        return make(STATIC_ONE, STATIC_ZERO)  # a composed layout: C++ does not attempt it
    shapes, strides = leaves(layout.shape), leaves(layout.stride)
    keep = [i for i, d in enumerate(strides) if type(d) is Int and d == 0]
    if not keep:
        return make(STATIC_ONE, STATIC_ZERO)
    starts = modes(compact_left(tuple(shapes))[0])
    return make(unwrap([shapes[i] for i in keep]), unwrap([starts[i] for i in keep]), layout.assumptions)


def max_common_layout(a: LayoutLike, b: LayoutLike) -> Layout:
    """Return the layout R of the longest run of consecutive offsets where a and b agree: a(R(i)) == i == b(R(i)).

    Only static sizes and strides count, as in C++; `cute.static(layout)` makes the numbers static.
    For tensors, the result is `_1:_0` if their element types differ, or if one of them has an iterator as its engine.

    >>> print(max_common_layout(Layout((Int(4), Int(8))), Layout((Int(4), Int(8)))))
    _32:_1
    """
    for x, y in ((a, b), (b, a)):
        if hasattr(type(x), "max_common_layout"):
            return x.max_common_layout(y)  # type: ignore[attr-defined, no-any-return]
    x, y = domain_of(a), domain_of(b)
    inverse = right_inverse(y)
    profile = coprofile_of(y.stride)
    if profile == 0:
        n = _contiguous(x, inverse)
        return make(STATIC_ONE, STATIC_ZERO) if n is None else compose_tiler(inverse, n)
    parts = []
    for path in axis_paths(profile):
        part = make(at(inverse.shape, path), at(inverse.stride, path))
        n = _contiguous(x, part, on_axis(STATIC_ONE, path, y.stride))
        parts.append(make(STATIC_ONE, STATIC_ZERO) if n is None else compose_tiler(part, n))
    return make(
        unflatten_leaves([p.shape for p in parts], profile), unflatten_leaves([p.stride for p in parts], profile)
    )


def _contiguous(a: Layout, inverse: Layout, unit: Tree = STATIC_ONE) -> Leaf | None:
    """Return the size of the first mode of a o inverse if it is static and has the stride `unit`; otherwise None."""
    common = compose_layouts(a, inverse)
    shape, stride = coalesced(common.shape, common.stride)
    size, step = modes(shape)[0], modes(stride)[0]
    return size if is_static(size) and same(step, unit) else None


def max_common_vector(a: LayoutLike, b: LayoutLike) -> Int | int:
    """Return the number of contiguous elements that correspond in a and b; at least 1 for layouts.

    Only static sizes and strides count, as in C++; `cute.static(layout)` makes the numbers static.
    For tensors, the result is 0 if their element types differ, or if one of them has an iterator as its engine.

    >>> print(max_common_vector(Layout((Int(4), Int(8)), (Int(1), Int(4))), Layout((Int(4), Int(8)), (Int(1), Int(8)))))
    _4
    """
    for x, y in ((a, b), (b, a)):
        if hasattr(type(x), "max_common_vector"):
            return x.max_common_vector(y)  # type: ignore[attr-defined, no-any-return]
    x, y = domain_of(a), domain_of(b)
    n = _contiguous(x, right_inverse(y))
    return STATIC_ONE if n is None else n  # type: ignore[return-value]
