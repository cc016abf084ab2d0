"""Evaluate a layout to an array of offsets, without a Python loop over the elements, and map offsets to coordinates.

    offsets(L)[i, j, ...] == L(i, j, ...)          one array axis per mode of L
    offsets(L, (i, j)) == L(i, j)                  for arrays i and j
    coordinates(L, offsets(L))                     the coordinates of these offsets

A layout is a sum of one term per mode, so its array is the outer sum of one vector per mode, and only the last addition
computes every element. A swizzle is linear over F2: if the bits that the modes reach do not overlap, it is applied to
the vectors, and the outer sum becomes an outer XOR.

If coordinates are passed, every leaf of a coordinate is an array, and the rules are the same as for `layout(coord)`: an
integer for a nested mode is split colexicographically, the last mode takes the remaining quotient, and division rounds
toward zero. Basis strides are evaluated one codomain axis at a time. numpy has no type for the elements of other
integer modules; offsets with such strides are Python objects, computed one by one:

    offsets((2,2):(^01,^11))  =  [[^00, ^11], [^01, ^10]]        strides of bits under XOR

`coordinates` maps offsets back. If each stride is larger than the largest offset of all modes with smaller strides, it
decomposes an offset by division, largest stride first, in a few array operations per mode. A swizzle is its own
inverse. Any other layout is evaluated completely, and the offsets are looked up.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from cute_py.argument_checks import check_elements, expect_items, refuse_mask, wrong_type
from cute_py.errors import CoordinateError, InvalidTypeError, InvalidValueError, LayoutError, given
from cute_py.layout.arguments import LayoutLike, Tree, Underscore
from cute_py.layout.coalesce import coalesced
from cute_py.layout.composed import ComposedLayout, OffsetFunction
from cute_py.layout.layout import Layout, along_axis, axis_paths, coprofile_of, domain_of
from cute_py.layout.leaf import KNOWN, is_symbolic, leaf_text, tree_text, value_of
from cute_py.layout.recast import memory_layout
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import check_depth, is_underscore, leaves, map_leaves, modes, unflatten_leaves

if TYPE_CHECKING:
    import numpy
    import numpy as np
    from numpy.typing import ArrayLike, DTypeLike, NDArray
else:
    from cute_py.optional_packages import numpy as np

Offsets: TypeAlias = "NDArray[numpy.int64]"
IntType: TypeAlias = "numpy.dtype[numpy.int64]"
Arrays: TypeAlias = "Offsets | tuple[Arrays, ...]"
Coordinates: TypeAlias = "ArrayLike | Underscore | tuple[Coordinates, ...] | list[tuple[int, ...]] | None"
"""Coordinates of many elements: arrays at the leaves of a coordinate, or a list of coordinates."""


def _array(x: Coordinates, kind: IntType) -> Offsets:
    """Convert coordinates to an int64 array, or to an array of Python ints if they do not fit in 64 bits."""
    if is_underscore(x):
        raise InvalidTypeError("offsets() takes integers or arrays as coordinates, not `_`; slice the layout first")
    refuse_mask(x, "an array of coordinates")
    try:
        array = np.asarray(x)
    except (ValueError, TypeError):  # nested lists of unequal lengths, layouts, objects without elements
        raise InvalidTypeError(f"coordinates must be integers, got {given(x)}") from None
    check_elements(array.size, "an array of coordinates")
    if array.dtype.kind == "O":
        if not all(isinstance(v, int) and not isinstance(v, bool) for v in array.flat):
            raise InvalidTypeError(f"coordinates must be integers, got {given(x)}")
        return array
    if array.dtype.kind not in "iu" and array.size:
        raise InvalidTypeError(f"coordinates must be integers, got {array.dtype}: {given(x)}")
    return array.astype(object if array.dtype == np.uint64 or kind.kind == "O" else np.int64, copy=False)


def coordinate_arrays(coords: Coordinates, kind: IntType) -> Arrays:
    """Convert the leaves of a coordinate to arrays. Tuples stay tuples; a list of tuples becomes one array per leaf."""
    if isinstance(coords, tuple):
        return tuple([coordinate_arrays(c, kind) for c in coords])
    if isinstance(coords, list) and coords and isinstance(coords[0], tuple):
        width = len(coords[0])
        if any(not isinstance(c, tuple) or len(c) != width for c in coords):
            raise CoordinateError("all coordinates of a list must have the same profile", {"first": coords[0]})
        return tuple([coordinate_arrays([c[i] for c in coords], kind) for i in range(width)])
    return _array(coords, kind)


def _split(c: Offsets, size: int, signed: bool) -> tuple[Offsets, Offsets]:
    """Return (c / size, c % size) as C++ computes them."""
    if size == 0:
        raise LayoutError("the coordinate can't be split over the modes, because a mode has size 0")
    if not signed and size & (size - 1) == 0 and c.dtype.kind != "O":  # a third of the time of a division
        return c >> (size.bit_length() - 1), c & (size - 1)
    if c.dtype.kind != "O":
        rest = np.where(c >= 0, c // size, -(-c // size)) if signed else c // size
        return rest, c - rest * size
    whole = functools.partial(np.asarray, dtype=object)  # numpy would convert a single object to 64 bits
    found: Any = np.where(whole(c >= 0).astype(bool), whole(c // size), whole(-whole(-c // size)))
    return found, whole(c - found * size)


def index_arrays(coord: Arrays, shape: Tree, stride: Tree, signed: bool = True, out: Offsets | None = None) -> Offsets:
    """Return the inner product of coordinate arrays with bare integer strides. `signed` states whether a coordinate may
    be negative. If `out` is passed, it receives the result, and all arrays must have the same shape."""
    total: Any = None
    owned = False
    """Whether `total` is a new array rather than one of the coordinate arrays."""
    for term, step in _terms(coord, shape, stride, signed):
        if total is None and out is not None:
            total, owned = np.multiply(term, step, out=out), True
            continue
        part = term if step == 1 else term * step
        if total is None:
            total, owned = part, step != 1
        elif owned and np.broadcast(total, part).shape == np.shape(total):
            total += part
        else:
            total, owned = total + part, True
    return np.zeros((), np.int64) if total is None else total if owned else total + 0


def _terms(coord: Arrays, shape: Tree, stride: Tree, signed: bool) -> Iterator[tuple[Offsets, int]]:
    """Yield (coordinates, stride) of every leaf. An array for a nested mode is split over the modes in it."""
    if type(coord) is tuple:
        if type(shape) is not tuple or len(coord) != len(shape):
            raise CoordinateError("Mismatched Ranks", {"rank of coordinate": len(coord), "shape": shape})
        for c, s, d in zip(coord, shape, modes(stride), strict=True):
            yield from _terms(c, s, d, signed)
        return
    array: Any = coord
    if type(shape) is not tuple:
        yield array, stride  # type: ignore[misc]
        return
    for i, (s, d) in enumerate(zip(shape, modes(stride), strict=True)):
        part = array
        if i < len(shape) - 1:
            array, part = _split(array, prod(leaves(s)), signed)
        yield from _terms(part, s, d, signed)


def reach(coord: Arrays, shape: Tree, stride: Tree) -> tuple[int, bool]:
    """Return a bound on the magnitude of every number that `index_arrays` computes, as an exact Python int, and whether
    any coordinate is negative. The bound holds because no part of a split coordinate is larger than the coordinate."""
    if type(coord) is tuple:
        if type(shape) is not tuple or len(coord) != len(shape):
            return 1 << 62, False  # refused later, by its own rule
        parts = list(map(reach, coord, shape, modes(stride)))
        return sum(part for part, _ in parts), any(signed for _, signed in parts)
    array: Any = coord
    low = high = 0
    if array.size:
        high = int(array.view(array.dtype.str.replace("i", "u")).max())  # as unsigned: a negative one is large
        if high >= 1 << 63 or array.dtype.kind == "O":
            low, high = int(array.min()), int(array.max())
    peak = max(abs(low), abs(high), 1)
    return int(peak * (1 + sum(abs(d) for d in leaves(stride))) + prod(leaves(shape))), low < 0


BLOCK = 1 << 16
"""Coordinates per batch: two or three arrays of this many 64-bit numbers fit in the cache."""


def _in_blocks(coords: Arrays, shape: Tree, stride: Tree) -> Offsets | None:
    """Compute the offsets at many coordinates block by block, which takes a third of the time for nested shapes, and
    little memory. Return None if the arrays differ in shape, are short, or give numbers beyond 64 bits."""
    arrays: list[Offsets] = leaves(coords)
    size, form = (arrays[0].size, arrays[0].shape) if arrays else (0, ())
    if size < 2 * BLOCK or any(a.dtype != np.int64 or a.shape != form or not a.flags.c_contiguous for a in arrays):
        return None
    lines: Any = map_leaves(lambda array: array.reshape(-1), coords)
    # The larger half of a 64-bit number takes half the time; up to `most`, the sum stays below 2**62.
    halves = [line.view(np.uint32) for line in leaves(lines)]
    room = (1 << 62) - len(arrays) * prod(leaves(shape))
    most = room // (((1 << 32) + 1) * (len(arrays) + sum([abs(d) for d in leaves(stride)])))
    total = np.empty(size, np.int64)
    for start in range(0, size, BLOCK):
        stop = start + BLOCK
        block: Any = map_leaves(operator.itemgetter(slice(start, stop)), lines)
        bound, signed = 0, False
        if max([int(np.maximum.reduce(half[2 * start : 2 * stop])) for half in halves]) > most:
            bound, signed = reach(block, shape, stride)
        if bound >= 1 << 62:
            return None
        index_arrays(block, shape, stride, signed, total[start:stop])
    return total.reshape(form)


def _indices(coords: Arrays, shape: Tree, stride: Tree, kind: IntType) -> Offsets:
    """Return offsets as an array of type `kind`; compute with Python ints if 64 bits may be too few."""
    if kind.kind == "O":
        return np.asarray(index_arrays(coords, shape, stride), dtype=object)
    found = _in_blocks(coords, shape, stride) if kind == np.int64 else None
    if found is not None:
        return found
    bound, signed = reach(coords, shape, stride)
    exact: Any = np.int64 if bound < 1 << 62 else object
    arrays: Any = map_leaves(lambda c: c.astype(exact, copy=False), coords)
    total = np.asarray(index_arrays(arrays, shape, stride, signed), dtype=exact)
    if total.dtype == kind:
        return total
    limits = np.iinfo(kind)
    if total.size:
        for value in (total.min(), total.max()):
            if not limits.min <= value <= limits.max:
                raise InvalidValueError(
                    f"the offset {given(value)} does not fit into {kind}", None, "use dtype=object for exact integers"
                )
    return total.astype(kind)


def at_coordinates(layout: OffsetFunction, coords: Coordinates, kind: IntType) -> Offsets:
    """Return the offsets of a layout or composed layout at coordinates, as an array of type `kind`."""
    if isinstance(layout, ComposedLayout):
        return apply_function(layout, at_coordinates(layout.inner, coords, kind), kind)
    if isinstance(layout, Swizzle):
        return layout(_array(coords, kind))
    if not isinstance(layout, Layout):
        raise wrong_type("offsets takes a layout or a tensor", layout)
    check_depth(coords)
    arrays = coordinate_arrays(coords, kind)
    try:
        np.broadcast(*leaves(arrays)) if leaves(arrays) else None
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in leaves(arrays))
        raise CoordinateError("the coordinate arrays don't broadcast to one shape", {"shapes": shapes}) from None
    parts = [_indices(arrays, shape, stride, kind) for shape, stride in integer_axes(layout)]
    return np.stack(np.broadcast_arrays(*parts), axis=-1) if _value_profile(layout) != 0 else parts[0]


def apply_function(layout: ComposedLayout, inner: Offsets, kind: IntType) -> Offsets:
    """Return outer(offset + inner), given the array of the inner function's values."""
    outer, profile = layout.outer, _value_profile(layout.inner)
    start: Any = value_of(layout._offset)
    moved: Any
    if profile != 0:
        axes = inner.shape[-1]
        first = [0] * axes if type(start) is int and start == 0 else leaves(getattr(start, "as_tuple", tuple)())
        if len(first) != axes or not isinstance(outer, (Layout, ComposedLayout)):
            text = f"offsets() can't apply {outer} to coordinates of {axes} modes"
            raise InvalidTypeError(
                text,
                {"offset": start, "layout": layout},
                "use a layout as the outer function, and an offset with the same number of modes",
            )
        moved = unflatten_leaves([inner[..., i] + n for i, n in enumerate(first)], profile)
    elif type(start) is int:
        moved = inner if start == 0 else inner + kind.type(start) if kind.kind != "O" else inner + start
    else:
        raise InvalidTypeError(f"offsets() can't add the offset {start} to integers")
    if isinstance(outer, (Layout, ComposedLayout)):
        return at_coordinates(outer, moved, kind)
    found: Offsets = outer(moved)
    return found


def has_module_strides(layout: Layout | ComposedLayout) -> TypeGuard[Layout]:
    """Return whether the layout has a stride other than an integer, a symbol or a basis element."""
    if not isinstance(layout, Layout):
        return False
    steps = leaves(layout.stride)
    return any(type(d) not in KNOWN and not is_symbolic(d) and getattr(d, "modes", None) is None for d in steps)


def module_offsets(layout: Layout, coords: Coordinates = None) -> NDArray[numpy.object_]:
    """Return an array of objects of shape (size<0>, size<1>, ...), or with one entry per coordinate in `coords`."""
    if coords is not None:
        listed = expect_items(coords, "the coordinates")  # type: ignore[arg-type]
        out = np.empty(len(listed), object)
        for i, coordinate in enumerate(listed):
            out[i] = layout(coordinate)
        return out
    sizes = tuple([prod(leaves(mode)) for mode in modes(numbers(layout)[0])])
    out = np.empty(sizes, object)
    for index in np.ndindex(sizes):
        out[index] = layout(index if type(layout.shape) is tuple else index[0])
    return out


MAX_ELEMENTS = 1 << 28
"""Largest number of elements that one call evaluates (2 GiB of 64-bit offsets). Pass `coords` to evaluate parts of a
larger layout."""


def numbers(layout: Layout) -> tuple[Tree, Tree]:
    """Return the shape and the stride with ints as leaves; basis elements and other strides are not changed.

    Raises:
        InvalidTypeError: the layout has a symbol.
    """
    shape, stride = _values(layout.shape), _values(layout.stride)
    for value in (*leaves(shape), *leaves(stride)):
        if type(value) is not int and is_symbolic(value):
            raise InvalidTypeError(
                f"offsets() needs known numbers, got the symbol {value}",
                {"layout": layout},
                "use layout.subs({...}) to replace the symbols with numbers",
            )
    return shape, stride


def _values(tree: Tree) -> Any:
    """Apply `value_of` to each leaf."""
    if type(tree) is not tuple:
        return value_of(tree)
    return tuple([_values(x) for x in tree])


_INT = frozenset((int,))


def integer_axes(layout: Layout) -> list[tuple[Tree, Tree]]:
    """Return (shape, integer strides) for each codomain axis; there is one axis if strides are integers."""
    shape, stride = numbers(layout)
    if _INT.issuperset(map(type, leaves(stride))):
        return [(shape, stride)]
    profile = coprofile_of(layout.stride)
    if profile == 0:
        axes = [stride]
    else:
        for d in leaves(stride):
            if not getattr(d, "modes", None) and d != 0:
                raise LayoutError(
                    "the layout mixes integer strides and basis strides", {"stride": tree_text(layout.stride)}
                )
        axes = [_values(along_axis(layout.stride, path)) for path in axis_paths(profile)]
    for d in leaves(tuple(axes)):
        if type(d) is not int:
            raise InvalidTypeError(f"offsets() needs integer strides or basis strides, got {leaf_text(d)}")
    return [(shape, axis) for axis in axes]


def _value_profile(layout: OffsetFunction) -> Tree:
    """Return 0 if the values are integers, otherwise the profile of the coordinates that the basis strides give."""
    while isinstance(layout, ComposedLayout):
        layout = layout.outer
    return coprofile_of(layout.stride) if isinstance(layout, Layout) else 0


def offset_bounds(shape: Tree, stride: Tree) -> tuple[int, int]:
    """Return the (lowest, highest) offset for trees of bare integers of any magnitude.

    >>> offset_bounds((4, 8), (-1, 4))
    (-3, 28)
    """
    low = high = 0
    for s, d in zip(leaves(shape), leaves(stride), strict=True):
        reach = (s - 1) * d if s else 0
        if reach > 0:
            high += reach
        else:
            low += reach
    return low, high


def domain_size(thing: LayoutLike) -> int:
    """Return the number of elements of a layout, composed layout or tensor with known numbers, without evaluating it.

    >>> domain_size(Layout((4, 8), (0, 0)))
    32
    """
    return prod(leaves(numbers(domain_of(thing))[0]))


def _vectors(shape: Tree, stride: Tree, kind: IntType) -> list[Offsets]:
    """Return the offsets of each mode, as one vector per mode. Their outer sum is the array of all offsets."""
    return [_vector(size, step, kind) for size, step in zip(modes(shape), modes(stride), strict=True)]


def _vector(size: Tree, step: Tree, kind: IntType) -> Offsets:
    """Return the offsets of one mode as a vector."""
    if type(size) is not tuple:
        return _run(size, step, kind)  # type: ignore[arg-type]
    sizes, steps = map(modes, coalesced(size, step))
    vector = _run(sizes[0], steps[0], kind)
    for s, d in zip(sizes[1:], steps[1:], strict=True):
        vector = np.add.outer(_run(s, d, kind), vector).reshape(-1)
    return vector


def _run(size: int, step: int, kind: IntType) -> Offsets:
    """Return the `size` numbers 0, step, 2 * step, ..."""
    if step == 0 or abs(size * step) > _EXACT:
        return np.arange(size, dtype=kind) * kind.type(step)
    return np.arange(0, size * step, step, dtype=kind)


_EXACT = 1 << 52
"""The largest range that numpy counts exactly, because it uses floating point. A range without a product takes a third
of the time."""


def _fill(table: Offsets, shape: Tree, stride: Tree, kind: IntType) -> None:
    """Write the outer sum of the modes' vectors into `table`; modes of stride 0 are omitted."""
    along: list[Offsets] = []
    behind = table.ndim
    for size, step in zip(modes(shape), modes(stride), strict=True):
        behind -= 1
        if step != 0 and any(leaves(step)):
            along.append(_vector(size, step, kind).reshape(-1, *(1,) * behind))
    if len(along) > 1:
        np.add(functools.reduce(np.add, along[:-1]), along[-1], out=table)
    else:
        table[...] = along[0] if along else 0


def _grid(shape: Tree, stride: Tree, kind: IntType, swizzle: Swizzle | None = None, start: int = 0) -> Offsets:
    """Return all offsets for trees of integers: the outer sum of one vector per mode. With a swizzle, swizzle start +
    the sum; no offset may then be negative."""
    vectors = _vectors(shape, stride, kind)
    if not vectors:
        return np.zeros((), kind)
    join: Any = np.add
    if swizzle is not None:
        reached = [start, *[int(np.bitwise_or.reduce(v)) if len(v) else 0 for v in vectors]]
        if sum(reached) == functools.reduce(operator.or_, reached):  # no two share a bit: the sum is their XOR
            vectors, start, join = [swizzle(v) for v in vectors], swizzle.of(start), np.bitwise_xor
            swizzle = None
        vectors[0] = join(vectors[0], kind.type(start))
    total: Offsets = functools.reduce(join.outer, vectors)
    return total if swizzle is None else swizzle(total)


def _checked_type(dtype: DTypeLike, extremes: list[int], layout: LayoutLike) -> IntType:
    try:
        kind: IntType = np.dtype(dtype)  # type: ignore[assignment]
    except (TypeError, ValueError, RecursionError, DeprecationWarning):  # DeprecationWarning: an alias under `-W error`
        raise InvalidTypeError(
            f"dtype must be an integer type, because offsets must be integers, got {given(dtype)}"
        ) from None
    if kind.kind == "O":
        return kind
    if kind.kind not in "iu":
        raise InvalidTypeError(f"dtype must be an integer type, because offsets must be integers, got {kind}")
    top = 1 << 8 * kind.itemsize - (kind.kind == "i")
    for value in extremes:
        if not (-top if kind.kind == "i" else 0) <= value < top:
            raise InvalidValueError(
                f"the offset {value} does not fit into {kind}",
                {"layout": layout},
                "use dtype=object for exact integers",
            )
    return kind


def _check_size(shape: Tree, layout: LayoutLike) -> None:
    if prod(leaves(shape)) > MAX_ELEMENTS:
        raise InvalidValueError(
            f"the layout has {prod(leaves(shape))} elements; offsets() evaluates at most {MAX_ELEMENTS} at once",
            {"layout": layout},
            "pass the coordinates you need: offsets(layout, coords)",
        )


def offsets(
    layout: LayoutLike, coords: Coordinates = None, dtype: DTypeLike | None = None, *, of: str = "memory"
) -> Offsets:
    """Return all offsets of a layout, or the offsets at given coordinates, as a numpy array.

    Args:
        layout: a Layout, a ComposedLayout (swizzled or not), or a tensor, whose layout is used. Its numbers must be
            known.
        coords: None for all coordinates; an integer array or list of 1-D coordinates; a list of coordinate tuples; or a
            tuple with an integer or an array per mode (nested where the shape is nested), which are broadcast.
        dtype: integer type of the result, default int64; `object` gives exact Python ints.
        of: selects one of the two functions of a swizzle on bytes, which has `smem_ptr_flag` as its offset or belongs
            to a swizzled shared-memory pointer. With "memory", the result has the offsets of the elements that an
            access reaches, so that `tile[offsets(layout)]` is the tile; with "call", they are the values of
            `layout(coord)`, as in C++.
    Returns:
        An array of offsets in elements. Its shape is (size<0>, size<1>, ...), or the broadcast shape of `coords`. Basis
        strides add one trailing axis, with one entry per codomain axis: the flattened coordinate. For strides of any
        other kind, it is an array of objects.
    Raises:
        InvalidTypeError: the layout has symbols, or `coords` has booleans or floats. InvalidValueError: an offset does
            not fit in `dtype`, or there are more than 2**28 elements. CoordinateError: `coords` does not fit the shape.
            LayoutError: the address of a swizzled pointer is not a multiple of the period of its swizzle.

    >>> offsets(Layout((2, 3), (3, 1))).tolist()
    [[0, 1, 2], [3, 4, 5]]
    >>> offsets(Layout((4, 8), (8, 1)), ([0, 1, 2], 5)).tolist()
    [5, 13, 21]
    >>> smem = ComposedLayout(Swizzle(3, 4, 3), smem_ptr_flag(16), static(Layout((8, 64), (64, 1))))
    >>> int(offsets(smem)[1, 0]), int(offsets(smem, of="call")[1, 0])
    (72, 64)
    """
    layout = memory_layout(layout, of)
    if has_module_strides(layout):
        return module_offsets(layout, coords)  # type: ignore[return-value]
    dtype = np.int64 if dtype is None else dtype
    if coords is not None:
        return at_coordinates(layout, coords, _checked_type(dtype, [], layout))
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise wrong_type("offsets takes a layout or a tensor", layout)
    if isinstance(layout, ComposedLayout):
        return _composed(layout, _checked_type(dtype, [], layout))
    axes = integer_axes(layout)
    _check_size(axes[0][0], layout)
    kind = _checked_type(dtype, [edge for axis in axes for edge in offset_bounds(*axis)], layout)
    if len(axes) == 1 and _value_profile(layout) == 0:
        return _grid(*axes[0], kind)
    table = np.empty((*[prod(leaves(m)) for m in modes(axes[0][0])], len(axes)), kind)
    for i, axis in enumerate(axes):
        _fill(table[..., i], *axis, kind)
    return table


def _composed(layout: ComposedLayout, kind: IntType) -> Offsets:
    outer, inner, start = layout.outer, layout.inner, value_of(layout._offset)
    if isinstance(inner, Layout) and isinstance(outer, Swizzle) and type(start) is int:
        shape, stride = integer_axes(inner)[0]
        low, high = offset_bounds(shape, stride)
        if _value_profile(inner) == 0 and low >= 0 and start >= 0 and shape != ():
            _check_size(shape, layout)
            top = (1 << max((start + high).bit_length(), outer.yyy_mask.bit_length())) - 1
            return _grid(shape, stride, _checked_type(kind, [top | outer.zzz_mask], layout), outer, start)
    return apply_function(layout, offsets(inner, dtype=kind), kind)


MAX_SEARCHED = 1 << 26
"""Largest layout, in elements, that is searched when its strides do not decompose an offset."""


def is_stride_separable(flat: list[tuple[int, int]]) -> bool:
    """Return whether each stride exceeds the largest offset of all modes with smaller strides. `flat` lists pairs
    (size, stride) in any order.

    >>> is_stride_separable([(8, 1), (4, 8)]), is_stride_separable([(3, 2), (2, 3)])
    (True, False)
    """
    reach = 0
    for s, d in sorted([(s, abs(d)) for s, d in flat if s > 1], key=lambda m: m[1]):
        if d <= reach:
            return False
        reach += (s - 1) * d
    return True


def coordinates(layout: LayoutLike, values: ArrayLike, *, of: str = "memory") -> Offsets:
    """Return the coordinates that a layout maps to the given offsets.

    Args:
        layout: an injective Layout or ComposedLayout with known numbers.
        values: integer array of offsets. For basis strides, its last axis has one entry per codomain axis.
        of: selects the function of a swizzle on bytes, as in `offsets`.
    Returns:
        An int64 array with one more axis, which has one integer per mode of the layout (colexicographic within a nested
        mode), so that `offsets(layout, tuple(numpy.moveaxis(result, -1, 0)))` equals `values`. For a layout whose shape
        is an integer, `offsets(layout, result[..., 0])` equals `values`.
    Raises:
        LayoutError: the layout is not injective, or it does not reach one of the offsets.

    >>> coordinates(Layout((4, (2, 3)), (6, (3, 1))), [0, 11, 23]).tolist()
    [[0, 0], [1, 5], [3, 5]]
    >>> offsets(Layout(4, 8), coordinates(Layout(4, 8), [8, 24])[..., 0]).tolist()
    [8, 24]
    """
    layout = memory_layout(layout, of)
    refuse_mask(values, "an array of offsets")
    try:
        wanted = np.asarray(values)
    except (ValueError, TypeError):  # nested lists of unequal lengths
        raise InvalidTypeError(f"offsets must be integers, got {given(values)}") from None
    if wanted.dtype.kind not in "iu" and wanted.size:
        raise InvalidTypeError(f"offsets must be integers, got {wanted.dtype}")
    check_elements(wanted.size, "the offsets")
    if wanted.dtype == np.uint64 and wanted.size and int(wanted.max()) >= 1 << 63:
        raise InvalidValueError(f"one offset is {int(wanted.max())}; must be below 2**63", {"layout": layout})
    wanted = wanted.astype(np.int64)
    plain, inner = layout, wanted
    while isinstance(plain, ComposedLayout) and isinstance(plain.outer, Swizzle):
        start = value_of(plain._offset)
        if type(start) is not int or _value_profile(plain.inner) != 0:
            break
        plain, inner = plain.inner, plain.outer(inner) - start
    if isinstance(plain, Layout):
        axes = integer_axes(plain)
        for shape, stride in axes:
            if any(abs(n) >= 1 << 62 for n in (offset_bounds(shape, stride)[0], *leaves(shape), *leaves(stride))):
                raise LayoutError(
                    "coordinates() computes in 64 bits, and offsets of this layout need more", {"layout": layout}
                )
        sizes = leaves(axes[0][0])
        steps = [leaves(stride) for _, stride in axes]
        moves_once = all(s <= 1 or any(column) for s, *column in zip(sizes, *steps, strict=True))
        if moves_once and all(
            is_stride_separable([m for m in zip(sizes, axis, strict=True) if m[1]]) for axis in steps
        ):
            return _divided(layout, axes[0][0], steps, inner, wanted)
    return _searched(layout, wanted)


def _divided(
    layout: Layout | ComposedLayout, shape: Tree, steps: list[list[int]], inner: Offsets, wanted: Offsets
) -> Offsets:
    """Decompose each offset by the strides of each axis, the largest stride first."""
    sizes = leaves(shape)
    index: list[Any] = [np.zeros((), np.int64)] * len(sizes)
    basis = _value_profile(layout) != 0
    if len(steps) > 1 or (inner.ndim and inner.shape[-1:] == (1,) and basis):
        if inner.shape[-1:] != (len(steps),):
            raise InvalidValueError(
                f"the last axis of the offsets must have {len(steps)} entries for {layout}, got the shape {inner.shape}"
            )
        columns = [inner[..., i] for i in range(len(steps))]
    else:
        columns = [inner]
    reached = np.full(columns[0].shape, 0 not in sizes)
    for axis, column in zip(steps, columns, strict=True):
        flat = [(d, i) for i, d in enumerate(axis) if d and sizes[i] > 1]
        rest = column - sum((sizes[i] - 1) * d for d, i in flat if d < 0)
        for d, i in sorted(flat, key=lambda m: -abs(m[0])):
            step = np.clip(rest // abs(d), 0, sizes[i] - 1)
            rest = rest - step * abs(d)
            index[i] = step if d > 0 else sizes[i] - 1 - step
        reached &= rest == 0
    _require(reached, layout, wanted, basis)
    leaf = iter(index)
    out = np.zeros((*columns[0].shape, len(modes(shape))), np.int64)
    for m, mode in enumerate(modes(shape)):
        scale = 1
        for size in leaves(mode):
            out[..., m] += next(leaf) * scale
            scale *= size
    return out


def _require(reached: NDArray[numpy.bool_], layout: LayoutLike, wanted: Offsets, rows: bool) -> None:
    if not reached.all():
        first = tuple(np.argwhere(~reached)[0]) if reached.ndim else ()
        value = wanted[first].tolist() if rows else int(wanted[first])
        raise LayoutError(f"no coordinate of the layout has the offset {value}", {"layout": layout})


def _searched(layout: Layout | ComposedLayout, wanted: Offsets) -> Offsets:
    """Look up each offset among all offsets of the layout, which are sorted first."""
    count = domain_size(layout)
    if count > MAX_SEARCHED:
        raise LayoutError(
            f"the layout has {count} elements; coordinates() searches at most {MAX_SEARCHED}",
            {"layout": layout},
        )
    keys = offsets(layout)
    inside = np.ones(wanted.shape, bool)
    basis = keys.ndim > len(modes(layout.shape))
    key = wanted
    if basis:  # one number for each coordinate: its index in the bounding box of all coordinates
        width = keys.shape[-1]
        if wanted.shape[-1:] != (width,):
            raise InvalidValueError(
                f"the last axis of the offsets must have {width} entries for {layout}, got the shape {wanted.shape}"
            )
        rows = keys.reshape(-1, width) if keys.size else np.zeros((1, width), np.int64)
        low = rows.min(axis=0)
        spans = rows.max(axis=0) - low + 1
        inside = ((wanted >= low) & (wanted - low < spans)).all(axis=-1)
        weights = np.cumprod([1, *spans[:-1].tolist()])
        keys, key = ((keys - low) * weights).sum(axis=-1), ((wanted - low) * weights).sum(axis=-1)
    flat = keys.ravel()
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    if (ordered[1:] == ordered[:-1]).any():
        raise LayoutError("the layout is not injective, so an offset can have several coordinates", {"layout": layout})
    place = np.minimum(np.searchsorted(ordered, key), max(len(ordered) - 1, 0))
    reached = inside & (ordered[place] == key) if len(ordered) else np.zeros(inside.shape, bool)
    _require(reached, layout, wanted, basis)
    return np.stack(np.unravel_index(order[place], keys.shape), axis=-1).astype(np.int64)
