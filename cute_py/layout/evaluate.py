"""Layouts at given coordinates, vectorised: every leaf of a coordinate is an array.

The rules are those of `layout(coord)`: an integer where the shape has a tuple is split colexicographically, the last
mode takes what is left, and division rounds toward zero.
"""

from __future__ import annotations

from typing import Any

from cute_py.errors import CoordinateError, InvalidTypeError, InvalidValueError, LayoutError, given
from cute_py.layout.axes import along_axis, axis_paths
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.coprofile import coprofile_of
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Tree, is_symbolic, leaf_text, value_of
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import check_depth, is_underscore, leaves, map_leaves


def _array(x: Any, kind: Any) -> Any:
    """An int64 array of coordinates, or one of Python ints where these do not fit."""
    import numpy as np

    if is_underscore(x):
        raise InvalidTypeError("coordinates of offsets() are integers or arrays; slice the layout for `_`")
    try:
        array = np.asarray(x)
    except (ValueError, TypeError):  # nested lists of unequal lengths, layouts, what has no elements
        raise InvalidTypeError(f"coordinates are integers, got {given(x)}") from None
    if array.dtype.kind == "O":
        if not all(isinstance(v, int) and not isinstance(v, bool) for v in array.flat):
            raise InvalidTypeError(f"coordinates are integers, got {given(x)}")
        return array
    if array.dtype.kind not in "iu" and array.size:
        raise InvalidTypeError(f"coordinates are integers, got {array.dtype}: {given(x)}")
    return array.astype(object if array.dtype == np.uint64 or kind.kind == "O" else np.int64)


def coordinate_arrays(coords: Any, kind: Any) -> Tree:
    """Arrays at the leaves of a coordinate: tuples stay tuples, a list of tuples becomes one array per leaf."""
    if type(coords) is tuple:
        return tuple([coordinate_arrays(c, kind) for c in coords])
    if isinstance(coords, list) and coords and isinstance(coords[0], tuple):
        width = len(coords[0])
        if any(not isinstance(c, tuple) or len(c) != width for c in coords):
            raise CoordinateError("a list of coordinates must have one profile", {"first": coords[0]})
        return tuple([coordinate_arrays([c[i] for c in coords], kind) for i in range(width)])
    return _array(coords, kind)


def _split(c: Any, size: int) -> tuple[Any, Any]:
    """(c / size, c % size) as C++ computes them."""
    import numpy as np

    if size == 0:
        raise LayoutError("a coordinate can't be split over a mode of size 0")
    if c.size and c.dtype.kind != "u" and c.min() < 0:
        rest = np.where(c >= 0, c // size, -(-c // size))
    else:
        rest = c // size
    return rest, c - rest * size


def _size(shape: Tree) -> int:
    n = 1
    for s in leaves(shape):
        n *= s
    return n


def index_arrays(coord: Tree, shape: Tree, stride: Tree) -> Any:
    """The inner product of coordinate arrays with bare integer strides."""
    if type(coord) is tuple:
        if type(shape) is not tuple or len(coord) != len(shape):
            raise CoordinateError("Mismatched Ranks", {"rank of coordinate": len(coord), "shape": shape})
        total: Any = 0
        for c, s, d in zip(coord, shape, stride, strict=True):
            total = total + index_arrays(c, s, d)
        return total
    if type(shape) is not tuple:
        return coord * stride
    total = coord * 0
    for i, (s, d) in enumerate(zip(shape, stride, strict=True)):
        part = coord
        if i < len(shape) - 1:
            coord, part = _split(coord, _size(s))
        total = total + index_arrays(part, s, d)
    return total


def reach(coord: Tree, shape: Tree, stride: Tree) -> int:
    """A bound on the magnitude of every number that `index_arrays` meets; exact Python ints."""
    if type(coord) is tuple:
        if type(shape) is not tuple or len(coord) != len(shape):
            return 0  # refused later, by its own rule
        return sum(map(reach, coord, shape, stride))
    peak = max(abs(int(coord.min())), abs(int(coord.max()))) if coord.size else 0
    return _reach_of(peak, shape, stride)


def _reach_of(peak: int, shape: Tree, stride: Tree) -> int:
    if type(shape) is not tuple:
        step = abs(int(stride))
        return max(peak * step, step, peak)
    total, rest = 0, peak
    for i, (s, d) in enumerate(zip(shape, stride, strict=True)):
        size = _size(s)
        last = i == len(shape) - 1
        total += max(_reach_of(rest if last else min(rest, max(size - 1, 0)), s, d), 0 if last else size)
        rest = rest if last or size == 0 else rest // size
    return total


def _known(leaf: Any) -> Any:
    value = value_of(leaf)
    if is_symbolic(value):
        raise InvalidTypeError(f"offsets need known numbers, got the symbol {value}")
    return value


def _integer(leaf: Any) -> int:
    value = _known(leaf)
    if type(value) is not int:
        raise InvalidTypeError(f"offsets take integer or basis strides, got {leaf_text(value)}")
    return value


def _indices(coords: Tree, shape: Tree, stride: Tree, kind: Any) -> Any:
    """Offsets as an array of type `kind`, computed exactly where 64 bits could be too few."""
    import numpy as np

    if kind.kind == "O":
        return np.asarray(index_arrays(coords, shape, stride), dtype=object)
    if reach(coords, shape, stride) < 1 << 62:
        total = np.asarray(index_arrays(map_leaves(lambda c: c.astype(np.int64), coords), shape, stride))
    else:
        total = np.asarray(index_arrays(map_leaves(lambda c: c.astype(object), coords), shape, stride), dtype=object)
    limits = np.iinfo(kind)
    if total.size:
        for value in (total.min(), total.max()):
            if not limits.min <= value <= limits.max:
                raise InvalidValueError(
                    f"an offset of {given(value)} does not fit {kind}", None, "use dtype=object for exact integers"
                )
    return total.astype(kind)


def at_coordinates(layout: Any, coords: Any, kind: Any) -> Any:
    """Offsets of a layout or composed layout at coordinates, as an array of type `kind`."""
    import numpy as np

    if isinstance(layout, ComposedLayout):
        return apply_function(layout.outer, value_of(layout._offset), at_coordinates(layout.inner, coords, kind), kind)
    if not isinstance(layout, Layout):
        if isinstance(layout, Swizzle):
            return layout(_array(coords, kind))
        raise InvalidTypeError(f"offsets takes a layout or a tensor, got {type(layout).__name__} {given(layout)}")
    check_depth(coords)
    arrays = coordinate_arrays(coords, kind)
    try:
        np.broadcast(*leaves(arrays)) if leaves(arrays) else None
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in leaves(arrays))
        raise CoordinateError("the coordinate arrays do not broadcast", {"shapes": shapes}) from None
    shape = map_leaves(_known, layout._shape)
    profile = coprofile_of(layout._stride)
    if profile == 0:
        return _indices(arrays, shape, map_leaves(_integer, layout._stride), kind)
    parts = [
        _indices(arrays, shape, map_leaves(_integer, along_axis(layout._stride, path)), kind)
        for path in axis_paths(profile)
    ]
    return np.stack(np.broadcast_arrays(*parts), axis=-1)


def apply_function(outer: Any, start: Any, inner: Any, kind: Any) -> Any:
    """outer(start + inner) for an array of inner offsets."""
    import numpy as np

    if type(start) is int:
        moved = inner if start == 0 else inner + kind.type(start) if kind.kind != "O" else inner + start
    elif hasattr(start, "as_tuple"):
        moved = inner + np.array(leaves(start.as_tuple()), dtype=kind)
    else:
        raise InvalidTypeError(f"offsets can't add {start} to integers")
    if isinstance(outer, (Layout, ComposedLayout)):
        return at_coordinates(outer, moved, kind)
    return outer(moved)
