"""Offsets in bulk: a whole layout evaluated as a numpy array, with no Python loop over elements.

    offsets(L)[i, j, ...] == L(i, j, ...)          one array axis per mode of L

A layout is a sum of one term per mode, so its array is the outer sum of one vector per mode; only the last addition
touches every element. A swizzle is linear over F2: where the bits that the modes reach do not overlap, it is applied
to the vectors and the outer sum becomes an outer XOR.

    coordinates(L, offsets(L)) gives the coordinates back.

Layouts at given coordinates, vectorised: every leaf of a coordinate is an array.

The rules are those of `layout(coord)`: an integer where the shape has a tuple is split colexicographically, the last
mode takes what is left, and division rounds toward zero.

Offsets whose strides are neither integers nor basis elements: strides of any integer module, one object each.

    offsets((2,2):(^01,^11))  =  [[^00, ^11], [^01, ^10]]        strides of bits under XOR

numpy knows no such numbers, so the result is an array of objects, made one by one.

Coordinates of offsets: the inverse of a layout as a function, where it has one.

Where each stride is larger than everything that the smaller strides reach together, an offset is taken apart by
division, largest stride first: a few array operations per mode. A swizzle is undone by itself. Other layouts are
evaluated whole and searched.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from cute_py.errors import CoordinateError, InvalidTypeError, InvalidValueError, LayoutError, given
from cute_py.errors import given as text_of
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.coprofile import along_axis, axis_paths, coprofile_of
from cute_py.layout.layout import Layout, domain_of
from cute_py.layout.leaf import Dynamic, Tree, is_symbolic, leaf_text, tree_text, value_of
from cute_py.layout.recast import memory_layout
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import check_depth, is_underscore, leaves, map_leaves, modes


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


def has_module_strides(layout: Any) -> bool:
    """Is a stride of the layout something else than an integer, a symbol or a basis element?"""
    return isinstance(layout, Layout) and any(
        type(d) is not int and type(d) is not Dynamic and getattr(d, "modes", None) is None
        for d in leaves(layout._stride)
    )


def module_offsets(layout: Layout, coords: Any = None) -> Any:
    """Array of objects: shape (size<0>, size<1>, ...), or one entry for each coordinate of the sequence `coords`."""
    import numpy as np

    if coords is not None:
        out = np.empty(len(coords), object)
        for i, coordinate in enumerate(coords):
            out[i] = layout(coordinate)
        return out
    sizes = []
    for mode in modes(layout._shape):
        n = 1
        for s in leaves(mode):
            n *= int(s.value if type(s) is Dynamic else s)
        sizes.append(n)
    out = np.empty(tuple(sizes), object)
    single = type(layout._shape) is not tuple
    for coordinate in itertools.product(*map(range, sizes)):
        out[coordinate] = layout(coordinate[0] if single else coordinate)
    return out


MAX_ELEMENTS = 1 << 28
"""More elements than this (2 GiB of 64-bit offsets) are refused; evaluate such a layout at given coordinates."""


def numbers(layout: Layout) -> tuple[Tree, Tree]:
    """Shape and stride with bare numbers at the leaves: ints, or bases and other strides as they are.

    Raises:
        InvalidTypeError: a symbol.
    """

    def number(leaf: Any) -> Any:
        value = value_of(leaf)
        if is_symbolic(value):
            raise InvalidTypeError(
                f"offsets need known numbers, got the symbol {value}",
                {"layout": layout},
                "replace the symbols with layout.subs({...}) first",
            )
        return value

    return map_leaves(number, layout._shape), map_leaves(number, layout._stride)


def integer_axes(layout: Layout) -> list[tuple[Tree, Tree]]:
    """(shape, integer strides) for each codomain axis: one for integer strides, one per axis for basis strides."""
    shape, _ = numbers(layout)
    profile = coprofile_of(layout._stride)
    if profile == 0:
        return [(shape, _integers(numbers(layout)[1]))]
    for d in leaves(layout._stride):
        if not getattr(d, "modes", None) and not (type(d) is int and d == 0):
            raise LayoutError("an integer stride beside basis strides", {"stride": tree_text(layout._stride)})
    return [(shape, _integers(map_leaves(value_of, along_axis(layout._stride, path)))) for path in axis_paths(profile)]


def _integers(stride: Tree) -> Tree:
    for d in leaves(stride):
        if type(d) is not int:
            raise InvalidTypeError(f"offsets take integer or basis strides, got {leaf_text(d)}")
    return stride


def bounds(shape: Tree, stride: Tree) -> tuple[int, int]:
    """(lowest, highest) offset of bare integer trees; exact, of any size.

    >>> bounds((4, 8), (-1, 4))
    (-3, 28)
    """
    low = high = 0
    for s, d in zip(leaves(shape), leaves(stride), strict=True):
        reach = (s - 1) * d if s else 0
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


def domain_size(thing: Any) -> int:
    """Elements of a layout, composed layout or tensor of known numbers, without evaluating it.

    >>> domain_size(Layout((4, 8), (0, 0)))
    32
    """
    return _size(numbers(domain_of(thing))[0])


def mode_vector(shape: Tree, stride: Tree, dtype: Any) -> Any:
    """The offsets of one mode, colexicographic: array of shape (size,)."""
    import numpy as np

    flat = [(s, d) for s, d in zip(leaves(shape), leaves(stride), strict=True) if s != 1]
    if not flat:
        return np.zeros(1, dtype)
    merged = [flat[0]]
    for s, d in flat[1:]:
        s0, d0 = merged[-1]
        if d == s0 * d0:
            merged[-1] = (s0 * s, d0)
        else:
            merged.append((s, d))
    vector = np.arange(merged[0][0], dtype=dtype) * dtype.type(merged[0][1])
    for s, d in merged[1:]:
        steps = np.arange(s, dtype=dtype) * dtype.type(d)
        vector = np.add.outer(steps, vector).reshape(-1)
    return vector


def _grid(vectors: list[Any], join: Any, out: Any = None) -> Any:
    """The outer `join` of one vector per mode; into `out` if given."""
    import numpy as np

    if not vectors:
        return np.zeros((), np.int64)
    total = vectors[0]
    for v in vectors[1:-1]:
        total = join.outer(total, v)
    if len(vectors) > 1:
        return join(total[..., None], vectors[-1], out=out)
    if out is None:
        return total
    out[...] = total
    return out


def _checked_type(dtype: Any, extremes: list[int], layout: Any) -> Any:
    import numpy as np

    try:
        kind = np.dtype(dtype)
    except (TypeError, ValueError):
        raise InvalidTypeError(f"offsets are integers; dtype must be an integer type, got {given(dtype)}") from None
    if kind.kind == "O":
        return kind
    if kind.kind not in "iu":
        raise InvalidTypeError(f"offsets are integers; dtype must be an integer type, got {kind}")
    limits = np.iinfo(kind)
    for value in extremes:
        if not limits.min <= value <= limits.max:
            raise InvalidValueError(
                f"an offset of {value} does not fit {kind}", {"layout": layout}, "use dtype=object for exact integers"
            )
    return kind


def _checked_size(shape: Tree, layout: Any) -> tuple[int, ...]:
    sizes = tuple([_size(m) for m in modes(shape)])
    if _size(sizes) > MAX_ELEMENTS:
        raise InvalidValueError(
            f"the layout has {_size(sizes)} elements; at most {MAX_ELEMENTS} are evaluated at once",
            {"layout": layout},
            "evaluate at given coordinates: offsets(layout, coords)",
        )
    return sizes


def offsets(layout: Any, coords: Any = None, dtype: Any = None, *, of: str = "memory") -> Any:
    """All offsets of a layout, or those at given coordinates, as a numpy array.

    Args:
        layout: Layout, ComposedLayout (swizzled or not), or a tensor, whose layout is taken. Known numbers only.
        coords: None for the whole domain; an integer array or list of 1-D coordinates; a list of coordinate tuples;
            or a tuple with an integer or an array per mode (nested where the shape is), which broadcast.
        dtype: integer type of the result, default int64; `object` gives exact Python ints.
        of: where a swizzle on bytes (an offset that is `smem_ptr_flag`, a swizzled shared-memory pointer) has two
            functions: "memory", the elements that an access reaches, so that `tile[offsets(layout)]` is the tile;
            or "call", what `layout(coord)` gives, as in C++.
    Returns:
        Without coords, shape (size<0>, size<1>, ...), in elements. With coords, their broadcast shape. Basis strides
        add one trailing axis: the flattened coordinate, one entry per codomain axis. Strides of any other module give
        an array of objects.
    Raises:
        InvalidTypeError: symbols, booleans, floats; InvalidValueError: an offset that dtype can't hold, or more than
            2**28 elements; CoordinateError: coords that do not fit the shape; LayoutError: a swizzled pointer whose
        address is not where its swizzle's pattern starts.

    >>> offsets(Layout((2, 3), (3, 1))).tolist()
    [[0, 1, 2], [3, 4, 5]]
    >>> offsets(Layout((4, 8), (8, 1)), ([0, 1, 2], 5)).tolist()
    [5, 13, 21]
    >>> smem = ComposedLayout(Swizzle(3, 4, 3), smem_ptr_flag(16), static(Layout((8, 64), (64, 1))))
    >>> int(offsets(smem)[1, 0]), int(offsets(smem, of="call")[1, 0])
    (72, 64)
    """
    import numpy as np

    layout = memory_layout(layout, of)
    if has_module_strides(layout):
        return module_offsets(layout, coords)
    dtype = np.int64 if dtype is None else dtype
    if coords is not None:
        return at_coordinates(layout, coords, _checked_type(dtype, [], layout))
    if isinstance(layout, Layout):
        return _plain(layout, dtype)
    if isinstance(layout, ComposedLayout):
        return _composed(layout, dtype)
    raise InvalidTypeError(f"offsets takes a layout or a tensor, got {type(layout).__name__} {given(layout)}")


def _plain(layout: Layout, dtype: Any) -> Any:
    import numpy as np

    axes = integer_axes(layout)
    sizes = _checked_size(axes[0][0], layout)
    kind = _checked_type(dtype, [edge for shape, stride in axes for edge in bounds(shape, stride)], layout)
    if coprofile_of(layout._stride) == 0:
        shape, stride = axes[0]
        vectors = [mode_vector(s, d, kind) for s, d in zip(modes(shape), modes(stride), strict=True)]
        return _grid(vectors, np.add).astype(kind, copy=False)
    out = np.empty((*sizes, len(axes)), kind)
    for i, (shape, stride) in enumerate(axes):
        vectors = [mode_vector(s, d, kind) for s, d in zip(modes(shape), modes(stride), strict=True)]
        out[..., i] = _grid(vectors, np.add)
    return out


def _composed(layout: ComposedLayout, dtype: Any) -> Any:

    kind = _checked_type(dtype, [], layout)
    start = value_of(layout._offset)
    if isinstance(layout.inner, Layout) and isinstance(layout.outer, Swizzle) and type(start) is int:
        axes = integer_axes(layout.inner)
        shape, stride = axes[0]
        low, high = bounds(shape, stride)
        if len(axes) == 1 and coprofile_of(layout.inner._stride) == 0 and low >= 0 and start >= 0:
            _checked_size(shape, layout)
            top = (1 << max((start + high).bit_length(), layout.outer.yyy_mask.bit_length())) - 1
            kind = _checked_type(dtype, [top | layout.outer.zzz_mask], layout)
            vectors = [mode_vector(s, d, kind) for s, d in zip(modes(shape), modes(stride), strict=True)]
            if vectors:
                return _swizzled(layout.outer, start, vectors)
    return apply_function(layout.outer, start, offsets(layout.inner, dtype=kind), kind)


def _swizzled(swizzle: Swizzle, start: int, vectors: list[Any]) -> Any:
    """The swizzle of start + the outer sum of vectors, of offsets that are not negative."""
    import numpy as np

    taken, disjoint = start, True
    for v in vectors:
        reached = int(np.bitwise_or.reduce(v)) if len(v) else 0
        disjoint, taken = disjoint and not reached & taken, taken | reached
    if disjoint:
        vectors = [swizzle(v) for v in vectors]
        vectors[0] = vectors[0] ^ vectors[0].dtype.type(swizzle.of(start))
        return _grid(vectors, np.bitwise_xor)
    vectors[0] = vectors[0] + vectors[0].dtype.type(start)
    return swizzle(_grid(vectors, np.add))


MAX_SEARCHED = 1 << 26
"""Layouts whose strides do not take an offset apart are searched up to this size."""


def is_chain(flat: list[tuple[int, int]]) -> bool:
    """Is each stride larger than the reach of all smaller ones? (pairs (size, stride), any order)

    >>> is_chain([(8, 1), (4, 8)]), is_chain([(3, 2), (2, 3)])
    (True, False)
    """
    reach = 0
    for s, d in sorted([(s, abs(d)) for s, d in flat if s > 1], key=lambda m: m[1]):
        if d <= reach:
            return False
        reach += (s - 1) * d
    return True


def coordinates(layout: Any, values: Any, *, of: str = "memory") -> Any:
    """The coordinate at which a layout has each of the given offsets.

    Args:
        layout: an injective Layout or ComposedLayout with known numbers.
        values: integer array of offsets; for basis strides with one trailing axis of codomain coordinates.
        of: which function of a swizzle on bytes, as in `offsets`.
    Returns:
        int64 array with one trailing axis: one integer per mode of the layout (colexicographic within a nested one),
        so that `offsets(layout, tuple(numpy.moveaxis(result, -1, 0)))` gives `values` back.
    Raises:
        LayoutError: the layout is not injective, or an offset is not reached.

    >>> coordinates(Layout((4, (2, 3)), (6, (3, 1))), [0, 11, 23]).tolist()
    [[0, 0], [1, 5], [3, 5]]
    """
    import numpy as np

    layout = memory_layout(layout, of)
    try:
        given = np.asarray(values)
    except (ValueError, TypeError):  # nested lists of unequal lengths
        raise InvalidTypeError(f"offsets are integers, got {text_of(values)}") from None
    if given.dtype.kind not in "iu" and given.size:
        raise InvalidTypeError(f"offsets are integers, got {given.dtype}")
    if given.dtype == np.uint64 and given.size and int(given.max()) >= 1 << 63:
        raise InvalidValueError(f"an offset of {int(given.max())}; must be below 2**63", {"layout": layout})
    given = given.astype(np.int64)
    plain, inner = layout, given
    while isinstance(plain, ComposedLayout) and isinstance(plain.outer, Swizzle) and type(_start(plain)) is int:
        inner = plain.outer(inner) - _start(plain)
        plain = plain.inner
    if isinstance(plain, Layout):
        axes = integer_axes(plain)
        for shape, stride in axes:
            if any(abs(n) >= 1 << 62 for n in (bounds(shape, stride)[0], *leaves(shape), *leaves(stride))):
                raise LayoutError("coordinates are computed in 64 bits; this layout reaches beyond", {"layout": layout})
        if all(is_chain([m for m in _flat(*axis) if m[1]]) for axis in axes) and _moves_once(axes):
            return _divided(layout, axes, inner, given)
    return _searched(layout, given)


def _start(layout: ComposedLayout) -> Any:
    return value_of(layout._offset)


def _flat(shape: Any, stride: Any) -> list[tuple[int, int]]:
    return list(zip(leaves(shape), leaves(stride), strict=True))


def _moves_once(axes: list[Any]) -> bool:
    """Does every mode of size > 1 move along some axis?"""
    columns = zip(*[_flat(*axis) for axis in axes], strict=True)
    return all(column[0][0] <= 1 or any(d for _, d in column) for column in columns)


def _divided(layout: Any, axes: list[Any], inner: Any, given: Any) -> Any:
    import numpy as np

    shape = axes[0][0]
    sizes = leaves(shape)
    index: list[Any] = [np.zeros((), np.int64)] * len(sizes)
    if len(axes) > 1 or (inner.ndim and inner.shape[-1:] == (1,) and _is_basis(layout)):
        if inner.shape[-1:] != (len(axes),):
            raise InvalidValueError(f"offsets of {layout} have {len(axes)} entries in the last axis, got {inner.shape}")
        columns = [inner[..., i] for i in range(len(axes))]
    else:
        columns = [inner]
    reached = np.ones(columns[0].shape, bool)
    for (_, stride), column in zip(axes, columns, strict=True):
        flat = [(d, i) for i, d in enumerate(leaves(stride)) if d and sizes[i] > 1]
        rest = column - sum((sizes[i] - 1) * d for d, i in flat if d < 0)
        for d, i in sorted(flat, key=lambda m: -abs(m[0])):
            step = np.clip(rest // abs(d), 0, sizes[i] - 1)
            rest = rest - step * abs(d)
            index[i] = step if d > 0 else sizes[i] - 1 - step
        reached &= rest == 0
    if 0 in sizes:
        reached &= False
    _require(reached, layout, given, len(axes) > 1 or _is_basis(layout))
    return _by_mode(shape, index, columns[0].shape)


def _is_basis(layout: Any) -> bool:
    while isinstance(layout, ComposedLayout):
        layout = layout.inner
    return any(getattr(d, "modes", None) for d in leaves(layout._stride))


def _by_mode(shape: Any, index: list[Any], out_shape: tuple[int, ...]) -> Any:
    import numpy as np

    rest = iter(index)
    out = np.zeros((*out_shape, len(modes(shape))), np.int64)
    for m, mode in enumerate(modes(shape)):
        scale = 1
        for size in leaves(mode):
            out[..., m] += next(rest) * scale
            scale *= size
    return out


def _require(reached: Any, layout: Any, given: Any, rows: bool) -> None:
    import numpy as np

    if reached.all():
        return
    first = tuple(np.argwhere(~reached)[0]) if reached.ndim else ()
    value = given[first].tolist() if rows else int(given[first])
    raise LayoutError(f"the layout has no coordinate with offset {value}", {"layout": layout})


def _searched(layout: Any, given: Any) -> Any:
    import numpy as np

    count = math.prod(leaves(numbers(domain_of(layout))[0]))
    if count > MAX_SEARCHED:
        raise LayoutError(
            f"{count} elements are too many to search for an offset (at most {MAX_SEARCHED})", {"layout": layout}
        )
    table = offsets(layout)
    basis = table.ndim > len(modes(layout.shape))
    if basis:
        width = table.shape[-1]
        if given.shape[-1:] != (width,):
            raise InvalidValueError(f"offsets of {layout} have {width} entries in the last axis, got {given.shape}")
        low = table.reshape(-1, width).min(axis=0) if table.size else np.zeros(width, np.int64)
        spans = (table.reshape(-1, width).max(axis=0) - low + 1) if table.size else np.ones(width, np.int64)
        inside = ((given >= low) & (given - low < spans)).all(axis=-1)
        weights = np.cumprod([1, *spans[:-1].tolist()])
        keys, wanted = ((table - low) * weights).sum(axis=-1), ((given - low) * weights).sum(axis=-1)
    else:
        keys, wanted, inside = table, given, np.ones(given.shape, bool)
    flat = keys.ravel()
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    if (ordered[1:] == ordered[:-1]).any():
        raise LayoutError("the layout is not injective; its offsets have no single coordinate", {"layout": layout})
    place = np.minimum(np.searchsorted(ordered, wanted), max(len(ordered) - 1, 0))
    reached = inside & (ordered[place] == wanted) if len(ordered) else np.zeros(inside.shape, bool)
    _require(reached, layout, given, basis)
    return np.stack(np.unravel_index(order[place], keys.shape), axis=-1).astype(np.int64)
