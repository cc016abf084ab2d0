"""Arithmetic of internal trees (see `leaf`): products, rounded division, compact strides, coordinates and indices.

`int_tuple` and `coordinate` offer the same to users, in public form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cute_py.errors import CoordinateError, StaticAssertError
from cute_py.layout.leaf import (
    Dynamic,
    Leaf,
    Tree,
    is_static,
    minimum,
    plus,
    public,
    times,
    tree_text,
    trunc_div,
    trunc_mod,
    value_of,
)
from cute_py.layout.trees import leaves, map_leaves, modes


def product_of(tree: Tree) -> Leaf:
    """Product of all leaves; 1 for the empty tuple."""
    if type(tree) is not tuple:
        return tree
    result: Any = 1
    for x in tree:
        result = result * (product_of(x) if type(x) is tuple else x)
    return result


def ceil_div_leaf(a: Leaf, b: Leaf) -> Leaf:
    """(a + b - 1) / b, truncating, as C++ computes it."""
    if type(a) is int and type(b) is int and a > 0 and b > 0:
        return -(-a // b)
    return trunc_div(a + b - 1, b)


def _folded(a: tuple[Any, ...], b: Leaf, div: Callable[[Any, Any], Any]) -> Tree:
    """Divide b through the modes of a from the left: what is left of b goes on to the next mode."""
    out = []
    for x in a:
        out.append(div(x, b))
        b = div(b, x)
    return tuple(out)


def ceil_div_of(a: Tree, b: Tree) -> Tree:
    """CuTe's ceil_div: by mode, folded through a tuple, or of two integers."""
    if type(a) is tuple:
        if type(b) is tuple:
            if len(a) < len(b):
                raise StaticAssertError("Mismatched ranks", {"dividend": tree_text(a), "divisor": tree_text(b)})
            return tuple([ceil_div_of(x, y) for x, y in zip(a, (*b, *(1,) * (len(a) - len(b))), strict=True)])
        return _folded(a, b, ceil_div_of)
    if type(b) is tuple:
        return ceil_div_of(a, product_of(b))
    return ceil_div_leaf(a, b)


def shape_div_of(a: Tree, b: Tree) -> Tree:
    """CuTe's shape_div: as ceil_div, but one must divide the other where both are static."""
    if type(a) is tuple:
        if type(b) is tuple:
            if len(a) != len(b):
                raise StaticAssertError("Mismatched ranks", {"dividend": tree_text(a), "divisor": tree_text(b)})
            return tuple([shape_div_of(x, y) for x, y in zip(a, b, strict=True)])
        return _folded(a, b, shape_div_of)
    if type(b) is tuple:
        return shape_div_of(a, product_of(b))
    if type(a) is int and type(b) is int and trunc_mod(a, b) != 0 and trunc_mod(b, a) != 0:
        raise StaticAssertError("Divisibility Condition", {"dividend": f"_{a}", "divisor": f"_{b}"})
    return ceil_div_leaf(a, b)


def coalesced_shape(shape: Tree) -> Tree:
    """Merge neighbours that are both static or both run-time."""
    flat = leaves(shape)
    if not flat:
        return 1
    out = [flat[0]]
    for x in flat[1:]:
        if is_static(out[-1]) == is_static(x):
            out[-1] = out[-1] * x
        else:
            out.append(x)
    return out[0] if len(out) == 1 else tuple(out)


def compact_left(shape: Tree, current: Any = 1) -> tuple[Tree, Any]:
    """Column-major strides from `current` on, and the next stride; static size-1 modes get stride 0."""
    if type(shape) is tuple:
        out: list[Any] = []
        for s in shape:
            if type(s) is tuple:
                stride, current = compact_left(s, current)
                out.append(stride)
            elif type(s) is int and s == 1:
                out.append(0)
            else:
                out.append(current)
                current = current * s
        return tuple(out), current
    if type(shape) is int and shape == 1:
        return 0, current
    return current, current * shape


def compact_right(shape: Tree, current: Any = 1) -> tuple[Tree, Any]:
    """Row-major strides: the last mode is contiguous."""
    if type(shape) is tuple:
        out = []
        for s in reversed(shape):
            stride, current = compact_right(s, current)
            out.append(stride)
        return tuple(reversed(out)), current
    if type(shape) is int and shape == 1:
        return 0, current
    return current, current * shape


def product_like(tree: Tree, guide: Tree) -> Tree:
    """Products of `tree` at the leaves of `guide`."""
    if type(guide) is tuple:
        if type(tree) is not tuple or len(tree) != len(guide):
            raise StaticAssertError("Mismatched Ranks", {"shape": tree_text(tree), "guide": tree_text(guide)})
        return tuple([product_like(t, g) for t, g in zip(tree, guide, strict=True)])
    return product_of(tree)


def compact_order(shape: Tree, order: Tree) -> Tree:
    """Compact strides whose sizes follow `order`: the mode with the smallest order is contiguous.

    Run-time orders are taken as larger than every static one, left to right.
    """
    reference = leaves(product_like(shape, order))
    flat = leaves(order)
    largest = max([x for x in flat if type(x) is int], default=0)
    largest = max(largest, 0)
    resolved = [x if type(x) is int else largest + 1 + i for i, x in enumerate(flat)]
    ranks = iter(resolved)

    def strides(s: Tree, o: Tree) -> Tree:
        if type(o) is tuple:
            if type(s) is not tuple or len(s) != len(o):
                raise StaticAssertError("Need equal rank of shape and order", {"shape": tree_text(s)})
            return tuple([strides(x, y) for x, y in zip(s, o, strict=True)])
        mine = next(ranks)
        start: Any = 1
        for size, other in zip(reference, resolved, strict=True):
            if other < mine:
                start = start * size
        return compact_left(s, start)[0]

    return strides(shape, order)


def crd2idx_of(coord: Tree, shape: Tree, stride: Tree) -> Any:
    """The inner product of a coordinate with the strides; an integer coordinate is split over the modes first.

    The last mode takes what is left, without a modulo: coordinates beyond the shape go on in it, as in C++.
    """
    if type(coord) is tuple:
        if type(shape) is not tuple or len(coord) != len(shape):
            raise CoordinateError("Mismatched Ranks", {"coordinate": tree_text(coord), "shape": tree_text(shape)})
        total: Any = 0
        for i, c in enumerate(coord):
            term = crd2idx_of(c, shape[i], stride[i])
            total = term if i == 0 else plus(total, term)
        return total
    if type(shape) is tuple:
        last = len(shape) - 1
        total = 0
        for i, s in enumerate(shape):
            if i == last:
                part = coord
            elif type(coord) is int and coord == 0:
                part = 0
            else:
                size = product_of(s)
                coord, part = trunc_div(coord, size), trunc_mod(coord, size)
            term = crd2idx_of(part, s, stride[i])
            total = term if i == 0 else plus(total, term)
        return total
    return times(coord, stride)


def crd2idx_horner(coord: Tree, shape: Tree) -> Leaf:
    """The colexicographic index of a coordinate within a shape."""
    if type(coord) is not tuple:
        return coord
    if type(shape) is not tuple or len(coord) != len(shape):
        raise CoordinateError("Mismatched Ranks", {"coordinate": tree_text(coord), "shape": tree_text(shape)})
    flat_coord, flat_shape = leaves(coord), leaves(product_like(shape, coord))
    if not flat_coord:
        return 0
    result = flat_coord[-1]
    for c, s in zip(reversed(flat_coord[:-1]), reversed(flat_shape[:-1]), strict=True):
        result = c + s * result
    return result


def idx2crd_colex(idx: Tree, shape: Tree) -> Tree:
    """The coordinate of an index within a shape, colexicographic; the last mode is not reduced modulo its size."""
    if type(idx) is tuple:
        if type(shape) is not tuple or len(idx) != len(shape):
            raise CoordinateError("Mismatched Ranks", {"index": tree_text(idx), "shape": tree_text(shape)})
        return tuple([idx2crd_colex(i, s) for i, s in zip(idx, shape, strict=True)])
    if type(shape) is not tuple:
        return idx
    out = []
    for i, s in enumerate(shape):
        if i == len(shape) - 1:
            part = idx
        elif type(idx) is int and idx == 0:
            part = 0
        else:
            size = product_of(s)
            idx, part = trunc_div(idx, size), trunc_mod(idx, size)
        out.append(idx2crd_colex(part, s))
    return tuple(out)


def idx2crd_strided(idx: Tree, shape: Tree, stride: Tree) -> Tree:
    """(idx / stride) % shape at every leaf; right for compact layouts only."""
    if type(idx) is tuple:
        if type(shape) is not tuple or not len(idx) == len(shape) == len(modes(stride)):
            raise CoordinateError("Mismatched Ranks", {"index": tree_text(idx), "shape": tree_text(shape)})
        return tuple([idx2crd_strided(*t) for t in zip(idx, shape, modes(stride), strict=True)])
    if type(shape) is tuple:
        if type(stride) is not tuple:
            stride = compact_left(shape, stride)[0]
        elif len(stride) != len(shape):
            raise CoordinateError("Mismatched Ranks", {"shape": tree_text(shape), "stride": tree_text(stride)})
        return tuple([idx2crd_strided(idx, s, d) for s, d in zip(shape, stride, strict=True)])
    if type(stride) is tuple:
        raise CoordinateError("Mismatched Ranks", {"shape": tree_text(shape), "stride": tree_text(stride)})
    if type(shape) is int and shape == 1:
        return 0
    return trunc_mod(trunc_div(idx, stride), shape)


def smallest(items: list[Any]) -> Any:
    """The minimum of internal leaves, static only if all are."""
    result = items[0]
    for x in items[1:]:
        result = minimum(result, x)
    return result


def inner_product_of(a: Tree, b: Tree) -> Any:
    """Sum of products of leaves at the same places."""
    if type(a) is tuple and type(b) is tuple:
        if len(a) != len(b):
            raise StaticAssertError("Mismatched ranks", {"a": tree_text(a), "b": tree_text(b)})
        total: Any = 0
        for x, y in zip(a, b, strict=True):
            total = plus(total, inner_product_of(x, y))
        return total
    if type(a) is tuple or type(b) is tuple:
        raise StaticAssertError("Mismatched ranks", {"a": tree_text(a), "b": tree_text(b)})
    return times(a, b)


def as_numbers(tree: Tree) -> Tree:
    """The bare numbers of an internal tree of integers: int or sympy expression at every leaf."""
    return map_leaves(value_of, tree)


def shown(tree: Tree) -> str:
    """Text of an internal tree for error messages."""
    return tree_text(tree)


def as_python_int(leaf: Leaf) -> int:
    """The int in an internal leaf; symbolic leaves are refused."""
    value = leaf.value if type(leaf) is Dynamic else leaf
    if not isinstance(value, int):
        raise CoordinateError(f"needs a known number, got {public(leaf)}")
    return int(value)
