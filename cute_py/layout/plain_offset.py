"""The offset of a coordinate of plain ints in a layout of known integers: the common case, without leaf objects.

The result is that of `arithmetic.crd2idx_of`, as a bare number; None where that has to decide (a symbol, a basis
stride, a static coordinate, a coordinate that does not fit). A run-time coordinate gives a run-time offset unless it
is 0, where a static 0 may come out: callers take the general way for 0 too.
"""

from __future__ import annotations

from typing import Any

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
