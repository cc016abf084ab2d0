"""Complement: the layout of what another layout leaves out.

    complement(4:2, 24)  ->  (2,3):(1,8)       4:2 visits 0 2 4 6; the copies of it start at 0 1 8 9 16 17

Guarantee: (filter(L), complement(L, n)) visits no offset twice, and the strides of the complement ascend. Where every
stride of L is a multiple of the end (stride * size) of the modes below it, every offset is visited up to the first
multiple of the last end that holds n; otherwise, as in C++, those between are left out: 32 by (2,3):(1,33).
"""

from __future__ import annotations

from typing import Any

from cute_py.errors import StaticAssertError
from cute_py.layout.coalesce import coalesced, coalesced_shape, without_zeros
from cute_py.layout.coprofile import along_axis, axis_paths, coprofile_of, coshape_of, on_axis
from cute_py.layout.int_tuple import ceil_div_of, compact_left, product_of, smallest
from cute_py.layout.layout import Layout, domain_of, make, shape_of
from cute_py.layout.leaf import Int, Tree, tree_text, trunc_div
from cute_py.layout.trees import at, is_underscore, leaves, modes, unwrap


def complement_trees(shape: Tree, stride: Tree, cotarget: Tree) -> tuple[Tree, Tree]:
    """Internal: `shape:stride` is already filtered (flat, no static stride 0, no static size 1)."""
    if type(stride) is int and stride == 0:
        whole = coalesced_shape(cotarget)
        return whole, compact_left(whole)[0]
    shapes, strides = list(modes(shape)), list(modes(stride))
    if len(shapes) > 1 and not all(type(d) is int for d in strides):
        raise StaticAssertError(
            "Dynamic-stride complement only for rank-1 layouts",
            {"layout": f"{tree_text(shape)}:{tree_text(stride)}"},
            "make the strides static with Int(...)",
        )
    out_shape: list[Any] = []
    out_stride: list[Any] = [1]
    while shapes:
        least = smallest(strides)
        i = strides.index(least) if len(strides) > 1 else 0
        gap = trunc_div(least, out_stride[-1])
        if type(gap) is int and gap == 0:
            raise StaticAssertError(
                "Non-injective Layout detected in complement.",
                {
                    "layout": f"{tree_text(shape)}:{tree_text(stride)}",
                    "stride": f"{tree_text(least)} lies below {tree_text(out_stride[-1])}, the end of those before",
                },
            )
        out_shape.append(gap)
        out_stride.append(least * shapes[i])
        del shapes[i], strides[i]
    end = out_stride.pop()
    rest_shape = coalesced_shape(ceil_div_of(cotarget, end))
    rest_stride, _ = compact_left(rest_shape, end)
    return coalesced((tuple(out_shape), rest_shape), (tuple(out_stride), rest_stride))


def _all_static(layout: Any, cotarget: Any) -> tuple[Tree, Tree] | None:
    """The complement of positive static sizes and strides below a positive static number; None where the general
    way has to decide or to refuse."""
    if type(layout) is not Layout or type(cotarget) is not Int or cotarget < 1:
        return None
    try:
        moving = sorted([(d, s) for s, d in zip(leaves(layout._shape), leaves(layout._stride), strict=True) if d != 0])
    except TypeError:  # run-time numbers and bases have no order
        return None
    out_shape: list[Any] = []
    out_stride: list[Any] = []
    end = 1
    for d, s in moving:
        if s == 1:
            continue
        if type(s) is not int or type(d) is not int or s < 1 or d < end:
            return None
        gap = d // end
        if gap != 1:
            out_shape.append(gap)
            out_stride.append(end)
        end = d * s
    rest = -(-int(cotarget) // end)
    if rest != 1:
        out_shape.append(rest)
        out_stride.append(end)
    if not out_shape:
        return 1, 0
    return unwrap(out_shape), unwrap(out_stride)


def complement(layout: Any, cotarget: Any = None) -> Any:
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
        return layout
    quick = _all_static(layout, cotarget)
    if quick is not None:
        return make(*quick, layout._assumptions)
    inner = domain_of(layout)
    shape, stride = coalesced(without_zeros(inner._shape, inner._stride), inner._stride)
    profile = coprofile_of(inner._stride)
    if cotarget is None:
        target = coshape_of(shape, stride)
    else:
        target = shape_of(cotarget)
    if profile == 0:
        target = target if cotarget is not None else product_of(target)
        return make(*complement_trees(shape, stride, target), inner._assumptions)
    parts = []
    for path in axis_paths(profile):
        mine = along_axis(inner._stride, path)
        size = at(target, path) if type(target) is tuple else target
        s, d = complement_trees(*coalesced(without_zeros(inner._shape, mine), mine), size)
        parts.append((s, on_axis(d, path, inner._stride)))
    return make(tuple([p[0] for p in parts]), tuple([p[1] for p in parts]))
