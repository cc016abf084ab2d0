"""The offset of a coordinate of plain ints in a layout of known integers: the common case, without leaf objects.

The result is that of `arithmetic.crd2idx_of`, as a bare number; None where that has to decide (a symbol, a basis
stride, a static coordinate, a coordinate that does not fit). A run-time coordinate gives a run-time offset unless it
is 0, where a static 0 may come out: `is_run_time_zero` says where it does not, callers take the general way for others.
"""

from __future__ import annotations

from typing import Any

from cute_py.argument_checks import MAX_INTEGER
from cute_py.errors import LayoutError
from cute_py.layout.leaf import Dynamic, Tree


def offset_of_tuple(coord: tuple[Any, ...], shape: Tree, stride: Tree) -> int | None:
    """The offset of a tuple of ints and tuples."""
    if type(shape) is not tuple or len(coord) != len(shape):
        return None
    total = 0
    for i, c in enumerate(coord):
        d = stride[i]
        if type(c) is int:
            if type(d) is int:
                total += c * d
                continue
            part = offset_of_int(c, shape[i], d)
        elif type(c) is tuple:
            part = offset_of_tuple(c, shape[i], d)
        else:
            return None
        if part is None:
            return None
        total += part
    return total


def offset_of_int(coord: int, shape: Tree, stride: Tree) -> int | None:
    """The offset of one int: split over the modes, the last takes the rest; division rounds toward zero."""
    if type(stride) is not tuple:
        if type(stride) is Dynamic and type(stride.value) is int:
            return coord * stride.value
        return coord * stride if type(stride) is int else None
    if not stride:
        return 0
    total = 0
    last = len(stride) - 1
    for i in range(last):
        s, d = shape[i], stride[i]
        size = s if type(s) is int else _size(s)
        if size is None:
            return None
        if size == 0:
            raise LayoutError("a coordinate can't be split over a mode of size 0", {"mode": i})
        rest = coord // size if coord >= 0 else -(-coord // size)
        part = coord - rest * size
        if type(d) is int:
            total += part * d
        else:
            inner = offset_of_int(part, s, d)
            if inner is None:
                return None
            total += inner
        coord = rest
    inner = offset_of_int(coord, shape[last], stride[last])
    return None if inner is None else total + inner


def is_run_time_zero(coord: Any, stride: Tree) -> bool:
    """Whether an offset of 0 is surely a run-time 0: a run-time coordinate meets a stride that is no static 0 without
    a modulo before it, as the last mode does of those that one integer is split over."""
    if type(coord) is tuple:
        for c, d in zip(coord, stride, strict=True):
            if type(c) is int and type(d) is not tuple and (type(d) is not int or d != 0):
                return -MAX_INTEGER <= c <= MAX_INTEGER
        return False
    while type(stride) is tuple and stride:
        stride = stride[-1]
    return stride not in (0, ()) and -MAX_INTEGER <= coord <= MAX_INTEGER


def _size(shape: Tree) -> int | None:
    if type(shape) is not tuple:
        value = shape.value if type(shape) is Dynamic else shape
        return value if type(value) is int else None
    n = 1
    for s in shape:
        size = s if type(s) is int else _size(s)
        if size is None:
            return None
        n *= size
    return n
