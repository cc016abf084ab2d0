"""Thread-value layouts: which element of a tile each thread holds in each of its values.

    make_layout_tv(threads, values)  ->  (tile, TV)        TV: (thread, value) -> index of an element in the tile

`thread_value_view` applies one to a whole tensor: (thread, value, (rest modes)), every thread and every tile at once.
A thread's own part is a slice of it, `view(thread, None, None)`.
"""

from __future__ import annotations

from typing import Any

from cute_py.errors import InvalidTypeError, given
from cute_py.layout.arithmetic import product_of
from cute_py.layout.composition import compose_layouts
from cute_py.layout.divide import zipped_divide
from cute_py.layout.domain import on_domain
from cute_py.layout.int_tuple import product_each
from cute_py.layout.inverse import right_inverse
from cute_py.layout.layout import Layout, joined
from cute_py.layout.leaf import public
from cute_py.layout.product import raked_product
from cute_py.layout.trees import check_depth, modes


def make_layout_tv(threads: Layout, values: Layout) -> tuple[Any, Layout]:
    """(tile shape, layout (thread, value) -> index in the tile, colexicographic).

    Args:
        threads: thread coordinates -> thread number, compact.
        values: value coordinates -> value number within a thread, compact.
    Source:
        cute/atom/copy_atom.hpp, make_tiled_copy: right_inverse(raked_product(threads, values)) with the shape
        (size(threads), size(values)).

    >>> tile, tv = make_layout_tv(Layout((Int(4), Int(8)), (Int(8), Int(1))), Layout((Int(2), Int(2))))
    >>> print(tile, tv)
    (Int(8), Int(16)) ((_8,_4),(_2,_2)):((_16,_2),(_1,_8))
    """
    check_depth(threads)
    check_depth(values)
    if not isinstance(threads, Layout) or not isinstance(values, Layout):
        raise InvalidTypeError("make_layout_tv takes two layouts", {"threads": threads, "values": values})
    tile = raked_product(threads, values)
    counts = (product_of(threads._shape), product_of(values._shape))
    return product_each(tile), compose_layouts(right_inverse(tile), Layout(public(counts)))


def thread_value_view(thing: Any, tiler: Any, layout_tv: Layout) -> Any:
    """A tensor or layout as (thread, value, (rest modes)): what a tiled copy divides, before one thread is taken.

    Args:
        thing: tensor or layout of the rank of the tiler, or more.
        tiler: shape (or by-mode tiler) of the tile.
        layout_tv: (thread, value) -> index in the tile.
    Source:
        cute/atom/copy_atom.hpp, TiledCopy::tile2thrfrg, for a copy atom of one value.

    >>> tile, tv = make_layout_tv(Layout((Int(4), Int(8)), (Int(8), Int(1))), Layout((Int(2), Int(2))))
    >>> print(thread_value_view(Layout((Int(16), Int(32))), tile, tv))
    ((_8,_4),(_2,_2),(_2,_2)):((_32,_2),(_1,_16),(_8,_256))
    """
    if type(thing) is not Layout:
        return on_domain(thread_value_view, thing, tiler, layout_tv)
    if not isinstance(layout_tv, Layout) or len(modes(layout_tv._shape)) != 2:
        raise InvalidTypeError(f"layout_tv is a layout of (thread, value), got {given(layout_tv)}")
    tiled = zipped_divide(thing, tiler)
    whole = compose_layouts(tiled[0], layout_tv)
    return joined([whole[0], whole[1], tiled[1]])


def thread_view(thing: Any, tiler: Any, layout_tv: Layout, thread: Any) -> Any:
    """One thread's part: (value, (rest modes)).

    >>> tile, tv = make_layout_tv(Layout((Int(4), Int(8)), (Int(8), Int(1))), Layout((Int(2), Int(2))))
    >>> print(thread_view(Layout((Int(16), Int(32))), tile, tv, 0))
    ((_2,_2),(_2,_2)):((_1,_16),(_8,_256))
    """
    return thread_value_view(thing, tiler, layout_tv)((thread, None, None))
