"""Complement: the layout of what another layout leaves out.

    complement(4:2, 24)  ->  (2,3):(1,8)       4:2 visits 0 2 4 6; the copies of it start at 0 1 8 9 16 17

Guarantee: (filter(L), complement(L, n)) visits no offset twice, and the strides of the complement ascend. Where every
stride of L is a multiple of the end (stride * size) of the modes below it, every offset is visited up to the first
multiple of the last end that holds n; otherwise, as in C++, those between are left out: 32 by (2,3):(1,33).
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from cute_py.errors import StaticAssertError
from cute_py.layout.arguments import LayoutLike, Leaf, Shaped, Tree
from cute_py.layout.coalesce import coalesced, coalesced_shape, filter_zeros_tree
from cute_py.layout.int_tuple import ceil_div_of, compact_left, product_of
from cute_py.layout.layout import (
    Layout,
    along_axis,
    axis_paths,
    coprofile_of,
    coshape_of,
    domain_of,
    in_numbers,
    make,
    on_axis,
    shape_of,
)
from cute_py.layout.leaf import (
    STATIC,
    STATIC_ONE,
    STATIC_ZERO,
    Int,
    Recorder,
    Undecided,
    check_result,
    leaf_text,
    mode_text,
    trunc_div,
)
from cute_py.layout.trees import at, is_underscore, leaves, modes, unwrap


def filtered(shape: Tree, stride: Tree) -> tuple[Tree, Tree]:
    """Internal trees -> the flat modes that move."""
    return coalesced(filter_zeros_tree(shape, stride), stride)


def _ascending(shape: Tree, stride: Tree) -> list[tuple[Leaf, Leaf]] | None:
    """(stride, size) of the modes that move, the smallest stride first; None where strides have no order."""
    moving: list[tuple[Leaf, Leaf]] = [
        (d, s) for s, d in zip(leaves(shape), leaves(stride), strict=True) if d != 0 and s != 1
    ]
    if len(moving) == 1:
        return None if hasattr(moving[0][0], "modes") else moving
    try:
        moving.sort(key=itemgetter(0))
    except TypeError:  # run-time numbers or bases
        return None
    return moving


def complement_of(layout: Layout, target: Tree, record: Recorder | None = None) -> Layout:
    """The complement of a layout below an internal size, shape, or size for each codomain axis."""
    moving = _ascending(*(layout._inner or layout._trees()))
    if moving is None or type(target) is not int:
        profile = coprofile_of(layout._stride)
        if profile != 0:
            return _by_axis(layout, profile, target)
        if moving is None:  # C++: static_assert
            raise StaticAssertError(
                "Dynamic-stride complement only for rank-1 layouts",
                {"layout": mode_text(*filtered(layout._shape, layout._stride))},
                "make the strides static with Int(...)",
            )
    if not moving:
        whole = coalesced_shape(target)
        return make(whole, compact_left(whole)[0], layout._assumptions)
    out_shape: list[Tree] = []
    out_stride: list[Tree] = []
    end: Any = 1
    d: Any
    for d, s in moving:  # C++ folds the smallest stride out of those that are left
        # Below this stride lies room for so many copies of what came before.
        gap = trunc_div(d, end)
        if type(gap) is int and gap < 1:
            flat = filtered(layout._shape, layout._stride)
            if flat != (layout._shape, layout._stride):  # modes that run backwards join their neighbours first
                return complement_of(make(*flat, layout._assumptions), target)
            if gap == 0:  # C++: static_assert
                below = f"{leaf_text(d)} lies below {leaf_text(end)}, the end of those before"
                facts = {"layout": layout, "stride": below}
                raise StaticAssertError("Non-injective Layout detected in complement.", facts)
        if record:
            record("gap", s, d, gap, end)
        if gap != 1:
            out_shape.append(gap)
            out_stride.append(end)
        end = d * s
    rest = coalesced_shape(ceil_div_of(target, end))
    if record:
        record("tail", rest, compact_left(rest, end)[0], end, target)
    if type(rest) is tuple:
        tail = [(s, d) for s, d in zip(rest, modes(compact_left(rest, end)[0]), strict=True) if s != 1]
        out_shape += [s for s, _ in tail]
        out_stride += [d for _, d in tail]
    elif rest != 1:
        out_shape.append(rest)
        out_stride.append(end)
    if not out_shape:
        return make(1, 0, layout._assumptions)
    return make(unwrap(out_shape), unwrap(out_stride), layout._assumptions)


def complement_numbers(shape: Any, stride: Any, target: Any) -> tuple[Any, Any]:
    """`complement_of` public trees of known numbers below a public size or flat shape; the trees come out public.

    Raises:
        Undecided: strides that have no order, or an offset that is met twice.
    """
    moving, sizes = [], leaves(shape)
    for i, d in enumerate(leaves(stride)):
        s = sizes[i]
        if (d != 0 or type(d) is int) and (s != 1 or type(s) is int):
            moving.append((d, s))
    if len(moving) > 1:
        if any(type(d) is not Int for d, _ in moving):
            raise Undecided
        moving.sort(key=itemgetter(0))
    elif not moving and type(target) is tuple:
        raise Undecided
    out_shape, out_stride = [], []
    end, end_static = 1, True
    for step, s in moving:
        d, static = step | 0, end_static and type(step) is Int
        if d <= 0 or end <= 0 or (static and d < end):
            raise Undecided
        gap = d // end
        if not static or gap != 1:
            out_shape.append(STATIC[gap] if static else gap)
            out_stride.append(STATIC[end] if end_static else check_result(end))
        end = d * (s | 0)
        end_static = type(step) is type(s) is Int
    if end <= 0:
        raise Undecided
    for size in coalesced_ceil_div(modes(target), end, end_static):
        if type(size) is not Int or size != 1:
            out_shape.append(size)
            out_stride.append(STATIC[end] if end_static else check_result(end))
            end *= size | 0
            end_static = end_static and type(size) is Int
    if len(out_shape) < 2:
        return (out_shape[0], out_stride[0]) if out_shape else (STATIC_ONE, STATIC_ZERO)
    return tuple(out_shape), tuple(out_stride)


def coalesced_ceil_div(target: Any, end: int, static: bool) -> list[int]:
    """`coalesced_shape(ceil_div_of(target, end))` of public sizes: what is left of `end` goes on to the next size, and
    neighbours that are both static or both run-time are one."""
    out: list[int] = []
    for size in target:
        n, both = size | 0, static and type(size) is Int
        if n <= 0:
            raise Undecided
        part = -(-n // end)
        end, static = -(-end // n), both
        if out and (type(out[-1]) is Int) == both:
            part *= out.pop() | 0
        out.append(STATIC[part] if both else check_result(part))
    return out


def _by_axis(layout: Layout, profile: Tree, target: Tree) -> Layout:
    parts = []
    for path in axis_paths(profile):
        size = at(target, path) if type(target) is tuple else target
        mine = complement_of(make(layout._shape, along_axis(layout._stride, path)), size)
        parts.append((mine._shape, on_axis(mine._stride, path, layout._stride)))
    return make(tuple([p[0] for p in parts]), tuple([p[1] for p in parts]))


def complement(layout: LayoutLike, cotarget: Shaped | None = None) -> Layout:
    """The layout of the offsets below `cotarget` that `layout` does not reach from 0.

    Args:
        cotarget: a size, a shape, or a layout whose shape is meant; default: the layout's own cosize.
    Raises:
        StaticAssertError: 'Non-injective Layout detected in complement.', 'Dynamic-stride complement only for rank-1
            layouts'.

    With basis strides (which C++ does not compile) each codomain axis is complemented by itself, `cotarget` being a
    size per axis; the result's mode i moves along axis i.

    >>> print(complement(Layout(Int(4), Int(2)), Int(24)))
    (_2,_3):(_1,_8)
    """
    if is_underscore(layout):
        return layout  # type: ignore[return-value]
    inner = layout if type(layout) is Layout else domain_of(layout)
    if type(cotarget) is Int:
        if inner._known and (found := in_numbers(complement_numbers, *inner._public, cotarget)):  # type: ignore[misc]
            return found
        return complement_of(inner, cotarget.real)
    profile = coprofile_of(inner._stride)
    if cotarget is not None:
        target = shape_of(cotarget)
    elif profile == 0:
        target = product_of(coshape_of(inner._shape, inner._stride))
    else:
        target = coshape_of(*filtered(inner._shape, inner._stride))
    return complement_of(inner, target) if profile == 0 else _by_axis(inner, profile, target)
