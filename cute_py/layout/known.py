"""Known numbers: sizes, offsets and the algebra of layouts whose leaves are all `Int` or int, as nearly always.

The general functions hold a leaf as an object (see `leaf`), which most of their time goes into. Those of this module
read public trees as they are and give public trees: `type(x) is Int` says static, and `x | 0` is the bare integer of
both kinds (`|` is Python's own of an `Int`, and takes a tenth of the time of its `+`). They decide nothing that is
unusual: a number out of range, a size of 0, a condition that fails. There they return None or raise `Undecided`, and
the general function goes on, which alone refuses, and whose comments name C++'s branches. tests/laws compares the two.
"""

from __future__ import annotations

import functools
import operator
from math import prod
from numbers import Integral
from operator import itemgetter
from typing import Any

from cute_py.argument_checks import MAX_INTEGER, MIN_INTEGER
from cute_py.errors import LayoutError
from cute_py.layout.arguments import Coordinate, IntTuple, Tiler, Tree
from cute_py.layout.leaf import (
    KNOWN,
    MAX_DEPTH,
    STATIC,
    STATIC_ONE,
    STATIC_ZERO,
    Int,
    check_result,
)
from cute_py.layout.trees import empty_mode, is_underscore, known_product, last_leaf, leaves, modes, unwrap


class Undecided(Exception):
    """What only the general function decides, or refuses in its own words."""


def known_extent(shape: Any, stride: Any) -> tuple[int, bool] | None:
    """(1 + the largest offset, is it static?) of public trees of known numbers; None beyond the range."""
    if type(shape) is not tuple or tuple in map(type, shape):
        shape, stride = leaves(shape), leaves(stride)
    total, static = 1, True
    for i, s in enumerate(shape):
        d = stride[i]
        reach, step = (s | 0) - 1, d | 0
        total += reach * step if step >= 0 else -reach * step
        if (type(d) is int and (reach or type(s) is int)) or (type(s) is int and step):
            static = False
    return (total, static) if total <= MAX_INTEGER else None


def offset_of_tuple(coord: tuple[Coordinate, ...], shape: Any, stride: Tree) -> tuple[int, bool] | None:
    """(offset, is it static?) of a tuple of integers and tuples: a term is run-time if one factor is, and neither is a
    static 0. None too where a coordinate is out of range."""
    if type(shape) is not tuple or len(coord) != len(shape):
        return None
    total, static = 0, True
    for i, c in enumerate(coord):
        d = stride[i]  # type: ignore[index]
        kind = type(c)
        known = kind is Int
        if known:
            c = c | 0  # type: ignore[operator]
        elif kind is tuple:
            found = offset_of_tuple(c, shape[i], d)  # type: ignore[arg-type]
            if found is None:
                return None
            total += found[0]
            static = static and found[1]
            continue
        elif kind is not int:
            if not _is_index(kind):  # type: ignore[arg-type]
                return None
            c = operator.index(c)  # type: ignore[arg-type]
        if c >> 127 and not MIN_INTEGER <= c <= MAX_INTEGER:  # type: ignore[operator]
            return None
        if type(d) is int:
            total += c * d  # type: ignore[operator]
            static = static and known and c == 0
        elif type(d) is Int:
            step = d | 0
            total += c * step  # type: ignore[operator]
            static = static and (known or step == 0)
        else:
            part = None if known else offset_of_int(c, shape[i], d)  # type: ignore[arg-type]
            if part is None or (part == 0 and not is_run_time_zero(d)):
                return None
            total += part
            static = False
    return total, static


@functools.lru_cache(maxsize=4096)
def _is_index(kind: type) -> bool:
    """A class of integers, numpy's too, that are run-time ones as coordinates?"""
    return issubclass(kind, Integral) and hasattr(kind, "__index__") and not issubclass(kind, (bool, Int))


def offset_of_unchecked(coord: tuple[Any, ...], shape: Any, stride: Any, depth: int = 0) -> tuple[int, bool] | None:
    """`offset_of_tuple` of three trees of which nothing is known yet. None if they are not of one profile, or hold
    anything but known numbers in their ranges."""
    rank = len(coord)
    if type(shape) is not tuple or type(stride) is not tuple or depth > MAX_DEPTH:
        return None
    if len(shape) != rank or len(stride) != rank:
        return None
    total, static, i = 0, True, 0
    for c in coord:
        s = shape[i]
        d = stride[i]
        i += 1  # noqa: SIM113  (in `are_numbers` it says why)
        kind = type(c)
        other = type(d)
        if kind is int:
            if type(s) is not int and type(s) is not Int:
                return None
            if other is Int:
                d |= 0
                if d:
                    static = False
            elif other is int:
                static = False
            else:
                return None
            if (c | s | d) >> 127:
                return None
            total += c * d
        elif kind is Int:
            if other not in KNOWN or (s is not c and type(s) not in KNOWN) or (c | s | d) >> 127:
                return None
            c |= 0
            total += c * (d | 0)
            static = static and (other is Int or c == 0)
        else:
            inner = offset_of_unchecked(c, s, d, depth + 1) if kind is tuple else None
            if inner is None:
                return None
            total += inner[0]
            static = static and inner[1]
    return total, static


def offset_of_int(coord: int, shape: Any, stride: Any) -> int | None:
    """The offset of one int: split over the leaves, the last takes the rest; division rounds toward zero. None where
    that is not all, as with an int out of range."""
    if coord >> 127 and not MIN_INTEGER <= coord <= MAX_INTEGER:
        return None
    if type(shape) is not tuple:
        shape, stride = (shape,), (stride,)
    rest, total, left = abs(coord), 0, len(shape)
    for d in stride:
        left -= 1
        part = rest
        if left:
            size = shape[~left]
            if type(size) is Int:
                size |= 0
            elif type(size) is not int:
                break
            if size == 0:
                raise LayoutError("a coordinate can't be split over a mode of size 0", {"mode": empty_mode(shape)})
            rest = part // size
            part -= rest * size
        if type(d) is Int:
            total += part * (d | 0)
        elif type(d) is int:
            total += part * d
        else:
            break
    else:
        return total if coord >= 0 else -total
    if tuple not in map(type, shape) or last_leaf(shape) == ():  # no number; or what takes the rest has no leaf
        return None
    return offset_of_int(coord, tuple(leaves(shape)), leaves(stride))


def is_run_time_zero(stride: Tree) -> bool:
    """Whether the offset 0 of an int is surely a run-time 0: it meets a last stride that is no static 0, without a
    modulo before it."""
    last = last_leaf(stride)
    return last != () and not (type(last) is Int and last == 0)


def digits(idx: int, shape: tuple[Any, ...], depth: int = 0) -> IntTuple | None:
    """The coordinate of an index within a tuple of known sizes; None where a size is a static 1, whose coordinate is a
    static 0, or is not a number above 0."""
    out: list[IntTuple] = []
    last = len(shape) - 1
    for i, s in enumerate(shape):
        part = idx
        if type(s) is tuple:
            if depth > MAX_DEPTH:
                return None
            if i < last:
                size = prod([x.real if type(x) is int or type(x) is Int else 0 for x in leaves(s)])
                if not 1 < size <= MAX_INTEGER:
                    return None
                idx, part = divmod(idx, size)
            inner = digits(part, s, depth + 1)
            if inner is None:
                return None
            out.append(inner)
            continue
        if (type(s) is not int and (type(s) is not Int or s == 1)) or not 0 < s <= MAX_INTEGER:
            return None
        if i < last:
            idx, part = divmod(idx, s.real)
        out.append(part)
    return tuple(out)


def coalesced_numbers(shape: Any, stride: Any, beyond: bool = False) -> tuple[Tree, Tree]:
    """`coalesced` of public trees of known numbers, which come out public: no leaf object is made on the way."""
    if type(shape) is not tuple:
        if type(shape) is not Int or shape != 1:
            return shape, stride
        return (STATIC[2], stride) if beyond else (STATIC_ONE, STATIC_ZERO)
    if tuple in map(type, shape):
        shape, stride = leaves(shape), leaves(stride)
    if not shape:
        return STATIC_ONE, STATIC_ZERO
    shapes: list[int] = []
    strides: list[int] = []
    front, step = shape[-1], stride[-1]
    if beyond and type(front) is Int and front == 1:
        front = STATIC[2]
    for i in range(len(shape) - 2, -1, -1):
        s = shape[i]
        if type(s) is Int and s == 1:
            continue
        d = stride[i]
        if type(front) is Int:
            if front == 1 and not shapes:
                front, step = s, d
                continue
            if (s | 0) * (d | 0) == step and type(step) is Int and (type(s) is type(d) is Int or type(s * d) is Int):
                front = STATIC[(s | 0) * (front | 0)] if type(s) is Int else s * front
                step = d
                continue
        shapes.append(front)
        strides.append(step)
        front, step = s, d
    if not shapes:
        return (STATIC_ONE, STATIC_ZERO) if type(front) is Int and front == 1 else (front, step)
    shapes.append(front)
    strides.append(step)
    return tuple(shapes[::-1]), tuple(strides[::-1])


def filtered_numbers(shape: Tree, stride: Tree) -> tuple[Tree, Tree]:
    """`filter` of public trees of known numbers, which come out public."""
    sizes, steps = leaves(shape), leaves(stride)
    moving = [STATIC_ONE if type(d) is Int and d == 0 else sizes[i] for i, d in enumerate(steps)]
    return coalesced_numbers(tuple(moving), steps)


def composed_numbers(lhs_shape: Any, lhs_stride: Any, shape: Any, stride: Any) -> tuple[Tree, Tree]:
    """`compose_trees` of public trees of known numbers, which come out public: no leaf object is made on the way.

    Raises:
        Undecided: a number that is not positive, or a condition that does not hold.
    """
    if type(lhs_shape) is not tuple:
        return shape, _scaled_tree(stride, lhs_stride)
    if type(shape) is tuple:
        sizes, steps = [], []
        for i, s in enumerate(shape):
            size, step = composed_numbers(lhs_shape, lhs_stride, s, stride[i])
            sizes.append(size)
            steps.append(step)
        return tuple(sizes), tuple(steps)
    d_static = type(stride) is Int
    d = stride | 0
    if d_static and d == 0:
        return shape, STATIC_ZERO
    n_static = type(shape) is Int
    n = shape | 0
    if n <= 0 or d <= 0:
        raise Undecided
    out_shape, out_stride = [], []
    for i in range(len(lhs_shape) - 1):
        leaf = lhs_shape[i]
        have = leaf | 0
        static = d_static and type(leaf) is Int
        if have <= 0 or (static and d >= have and d % have):
            raise Undecided
        left, following = -(-have // d), -(-d // have)
        if (static and left == 1) or (n_static and n == 1):
            d, d_static = following, static
            continue
        take = left if left < n else n
        out_stride.append(_scaled(d, d_static, lhs_stride[i]))
        if static and n_static:
            if n % take:
                raise Undecided
            out_shape.append(STATIC[take])
            n //= take
            if n == 1:  # so that `following` is 1, and passes every mode
                if 0 in lhs_shape:
                    raise Undecided
                return (out_shape[0], out_stride[0]) if len(out_shape) == 1 else (tuple(out_shape), tuple(out_stride))
        else:
            out_shape.append(take)
            n //= take
            n_static = False
        d, d_static = following, static
    size, step = STATIC[n] if n_static else n, _scaled(d, d_static, lhs_stride[-1])
    return ((*out_shape, size), (*out_stride, step)) if out_shape else (size, step)


def _scaled_tree(tree: Any, stride: int) -> Tree:
    if type(tree) is tuple:
        return tuple([_scaled_tree(x, stride) for x in tree])
    return _scaled(tree | 0, type(tree) is Int, stride)


def _scaled(n: int, static: bool, stride: int) -> int:
    """A number times a public stride: static if both are, or if one is a static 0."""
    if type(stride) is Int:
        if static:
            return STATIC[n * (stride | 0)]
        if stride == 0:
            return STATIC_ZERO
    elif static and n == 0:
        return STATIC_ZERO
    return check_result(n * (stride | 0))


def tiled_numbers(shape: Any, stride: Any, tiler: Tiler) -> tuple[Tree, Tree]:
    """`compose_tiler` of public trees of known numbers."""
    if type(tiler) is tuple:
        shapes, strides = modes(shape), modes(stride)
        if len(tiler) > len(shapes):
            raise Undecided
        pairs = [tiled_numbers(shapes[i], strides[i], t) for i, t in enumerate(tiler)]
        return tuple([p[0] for p in pairs]), tuple([p[1] for p in pairs])
    if is_underscore(tiler):
        return shape, stride
    tile, step = _tile(tiler)
    if tile == 1 and type(tiler) is Int:  # as a size, 1:1; a layout of that size is 1:0
        step = STATIC_ONE
    return composed_numbers(*coalesced_numbers(shape, stride, True), tile, step)


def complement_numbers(shape: Tree, stride: Tree, target: Any) -> tuple[Tree, Tree]:
    """`complement_of` public trees of known numbers below a public size or flat shape; the trees come out public.

    Raises:
        Undecided: strides that have no order, or an offset that is met twice.
    """
    moving, sizes, ordered = [], leaves(shape), True
    for i, d in enumerate(leaves(stride)):
        s = sizes[i]
        if (d != 0 or type(d) is int) and (s != 1 or type(s) is int):
            moving.append((d, s))
            ordered = ordered and type(d) is Int
    if len(moving) > 1:
        if not ordered:
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
    for size in _coalesced_ceil_div(modes(target), end, end_static):
        if type(size) is not Int or size != 1:
            out_shape.append(size)
            out_stride.append(STATIC[end] if end_static else check_result(end))
            end *= size | 0
            end_static = end_static and type(size) is Int
    return (unwrap(out_shape), unwrap(out_stride)) if out_shape else (STATIC_ONE, STATIC_ZERO)


def _coalesced_ceil_div(target: tuple[int, ...], end: int, static: bool) -> list[int]:
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


def right_inverse_numbers(shape: Tree, stride: Tree) -> tuple[Tree, Tree]:
    """`right_inverse_trees` of public trees of static numbers, which come out public. Its modes do not coalesce: those
    of the layout have.

    Raises:
        Undecided: a run-time number, a size of 0, or two modes of one stride.
    """
    shape, stride = coalesced_numbers(shape, stride)
    strides, found, start = modes(stride), [], 1
    for i, s in enumerate(modes(shape)):
        d = strides[i]
        if type(s) is not Int or type(d) is not Int or s == 0:
            raise Undecided
        found.append((d, s, start))
        start *= s | 0
    if len(set(strides)) < len(strides):
        raise Undecided
    out_shape, out_stride = [], []
    reached = 1
    for d, s, start in sorted(found):
        if d == reached:
            out_shape.append(s)
            out_stride.append(STATIC[start])
            reached = (s | 0) * (d | 0)
    return (unwrap(out_shape), unwrap(out_stride)) if out_shape else (STATIC_ONE, STATIC_ZERO)


def _tile(tiler: Tiler) -> tuple[Tree, Tree]:
    """The public shape and stride of a tile: of a layout, or of the layout of a size."""
    tile: Any = tiler
    if type(tile) in KNOWN and 0 < tile <= MAX_INTEGER:
        return tile, STATIC_ZERO if type(tile) is Int and tile == 1 else STATIC_ONE
    if getattr(tile, "_assumptions", ()) is not None:
        raise Undecided
    return tile.shape, tile.stride


def divided_numbers(shape: Any, stride: Any, tiler: Tiler) -> tuple[Tree, Tree]:
    """`logical_divide` of public trees of known numbers, which come out public."""
    if type(tiler) is tuple:
        shapes, strides = modes(shape), modes(stride)
        rest = len(tiler)
        if rest > len(shapes):
            raise Undecided
        pairs = [divided_numbers(shapes[i], strides[i], t) for i, t in enumerate(tiler)]
        return (*[p[0] for p in pairs], *shapes[rest:]), (*[p[1] for p in pairs], *strides[rest:])
    if is_underscore(tiler):
        return shape, stride
    tile, step = _tile(tiler)
    flat, steps = coalesced_numbers(shape, stride, True)
    last = last_leaf(shape)
    whole = coalesced_numbers(shape, stride)[0] if last == () or (type(last) is Int and last == 1) else flat
    left, left_step = complement_numbers(tile, step, whole)
    return composed_numbers(flat, steps, (tile, left), (step, left_step))


def multiplied_numbers(shape: Tree, stride: Tree, tiler: Tiler) -> tuple[Tree, Tree]:
    """`logical_product` of public trees of known numbers, which come out public."""
    tile, step = _tile(tiler)
    copies, span = known_product(modes(shape)), known_extent(tile, step)
    if copies is None or span is None:
        raise Undecided
    total = copies[0] * span[0]
    rest = complement_numbers(shape, stride, STATIC[total] if copies[1] and span[1] else total)
    size, jump = composed_numbers(*coalesced_numbers(*rest, True), tile, step)
    return (shape, size), (stride, jump)
