"""Offsets as a list of Python numbers, without numpy, for pictures, pages and counts of small layouts.

    offset_table((2,3):(3,1))   [0, 3, 1, 4, 2, 5]       entry i is the offset of coordinate i, the first mode fastest

The list is built one mode at a time; each mode adds its multiples to all entries so far:

    [0]  ->  mode 2:3  [0, 3]  ->  mode 3:1  [0, 3, 1, 4, 2, 5]

For a composed layout, the outer function is applied to each entry. `offsets` makes larger tables, as arrays.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

from cute_py.argument_checks import wrong_type
from cute_py.errors import InvalidValueError
from cute_py.layout.arguments import LayoutLike, Tree
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout, coprofile_of, domain_of
from cute_py.layout.leaf import value_of
from cute_py.layout.offsets import domain_size, has_module_strides, integer_axes, numbers, offsets
from cute_py.layout.recast import memory_layout
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves, modes

MOST_LISTED: Final = 4096
"""Largest layout, in elements, that is listed one by one; a larger table is computed as an array."""


def offset_table(layout: LayoutLike, *, of: str = "memory") -> list[Any]:
    """Return all offsets of a small layout, in colexicographic order.

    Args:
        layout: a Layout, ComposedLayout or tensor with known numbers and at most 4,096 elements.
        of: selects the function of a swizzle on bytes, as in `offsets`.
    Returns:
        A list of ints. With basis strides, a list of tuples, the flattened coordinates; with any other kind of stride,
        a list of sums of strides.
    Raises:
        InvalidValueError: the layout has more elements. InvalidTypeError: the layout has symbols.

    >>> offset_table(Layout((2, 3), (3, 1)))
    [0, 3, 1, 4, 2, 5]
    """
    thing = memory_layout(layout, of)
    if not isinstance(thing, (Layout, ComposedLayout)):
        raise wrong_type("offset_table takes a layout or a tensor", thing)
    count = domain_size(thing)
    if count > MOST_LISTED:
        raise InvalidValueError(
            f"the layout has {count} elements; offset_table lists at most {MOST_LISTED}",
            {"layout": layout},
            "offsets(layout)",
        )
    return _listed(thing, count)


def _listed(thing: Layout | ComposedLayout, count: int) -> list[Any]:
    if isinstance(thing, ComposedLayout):
        start = value_of(thing._offset)
        if (
            isinstance(thing.outer, Swizzle)
            and isinstance(thing.inner, (Layout, ComposedLayout))
            and type(start) is int
        ):
            return [thing.outer.of(start + offset) for offset in _listed(thing.inner, count)]
        return [_plain(thing(i)) for i in range(count)]
    if has_module_strides(thing):
        return [thing(i) for i in range(count)]
    columns = [_column(*axis) for axis in integer_axes(thing)]
    return columns[0] if coprofile_of(thing.stride) == 0 else list(zip(*columns, strict=True))


def _column(shape: Tree, stride: Tree) -> list[int]:
    """Return the offsets along one axis of the codomain."""
    out = [0]
    for size, step in zip(leaves(shape), leaves(stride), strict=True):
        out = [offset + i * step for i in range(size) for offset in out]
    return out


def _plain(value: Any) -> Any:
    """Convert an offset to an int, or to a flat tuple if it is a coordinate."""
    if isinstance(value, int):
        return int(value)
    tree = value.as_tuple() if hasattr(value, "as_tuple") else value
    return tuple(int(n) for n in leaves(tree)) if isinstance(tree, tuple) else tree


def sizes_by_mode(layout: LayoutLike) -> list[int]:
    """Return the number of elements of each mode.

    >>> sizes_by_mode(Layout(((2, 2), 3)))
    [4, 3]
    """
    return [prod(leaves(mode)) for mode in modes(numbers(domain_of(layout))[0])]


def flat_offsets(layout: LayoutLike) -> list[Any]:
    """Return all offsets of a layout of any size, in the form of `offset_table`.

    >>> flat_offsets(Layout((2, 3), (3, 1)))
    [0, 3, 1, 4, 2, 5]
    """
    if domain_size(layout) <= MOST_LISTED:
        return offset_table(layout)
    table = offsets(layout)
    rows = len(sizes_by_mode(layout))
    return table.reshape(-1, *table.shape[rows:], order="F").tolist() if table.ndim == rows else _rows(table, rows)


def _rows(table: Any, rank: int) -> list[Any]:
    """Return a tuple for each element of a table of coordinates."""
    columns = [table[..., axis].reshape(-1, order="F").tolist() for axis in range(table.shape[rank])]
    return list(zip(*columns, strict=True))
