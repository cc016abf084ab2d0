"""Coordinates of offsets: the inverse of a layout as a function, where it has one.

Where each stride is larger than everything that the smaller strides reach together, an offset is taken apart by
division, largest stride first: a few array operations per mode. A swizzle is undone by itself. Other layouts are
evaluated whole and searched.
"""

from __future__ import annotations

import math
from typing import Any

from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError
from cute_py.errors import given as text_of
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.domain import domain_of
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import value_of
from cute_py.layout.offsets import bounds, integer_axes, numbers, offsets
from cute_py.layout.pointer_flagged import memory_layout
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves, modes

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
