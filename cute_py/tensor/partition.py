"""Partitioning: the tile of each CTA, and the elements of each thread.

    inner_partition(T, tiler, coord)   the tile at `coord`                    (the part of a CTA: local_tile)
    outer_partition(T, tiler, coord)   the element at `coord` of every tile   (the part of a thread: local_partition)

Both functions divide by the tiler, and slice the tile or the rest. Modes that have no item in the coordinate are kept.

A thread that holds several elements of a tile is described by a thread-value layout:

    make_layout_tv(threads, values)  ->  (tile, TV)        TV: (thread, value) -> index of an element in the tile

A `TiledCopy` (package `atom`) divides tensors by such a layout, and returns the part of each thread.
"""

from __future__ import annotations

from typing import Any

from cute_py.argument_checks import expect
from cute_py.errors import InvalidTypeError
from cute_py.layout.arguments import Coordinate, Shape, Tiler
from cute_py.layout.composition import compose_layouts
from cute_py.layout.coordinate import dice, get_flat_coord
from cute_py.layout.int_tuple import product_each, product_of
from cute_py.layout.inverse import right_inverse
from cute_py.layout.layout import Layout, Thing, domain_of
from cute_py.layout.recast import is_flagged, slice_flagged
from cute_py.layout.tiling import raked_product, zipped_divide
from cute_py.layout.trees import check_depth, modes, wholes

__all__ = ["inner_partition", "local_partition", "local_tile", "make_layout_tv", "outer_partition"]


def _sliced(tiled: Thing, coord: Coordinate, half: int) -> Thing:
    """Slice one half (0: tile, 1: rest) of a divided layout at `coord`, and keep the other half. A layout whose swizzle
    acts on bytes keeps its unset pointer."""
    shape: Any = domain_of(tiled).shape
    ranks = [len(modes(part)) for part in shape]
    if type(coord) is tuple:
        if len(coord) > ranks[half]:
            what = ("modes of a tile", "tile modes")[half]
            facts = {"coordinate": coord, "tiled": tiled}
            raise InvalidTypeError(f"the coordinate has rank {len(coord)}, but there are {ranks[half]} {what}", facts)
        coord = (*coord, *(None,) * (ranks[half] - len(coord)))
    place = (coord, wholes(ranks[1])) if half == 0 else (wholes(ranks[0]), coord)
    found: Any = tiled
    return slice_flagged(found, place) if is_flagged(found) else found(place)  # type: ignore[return-value]


def inner_partition(thing: Thing, tiler: Tiler, coord: Coordinate) -> Thing:
    """Return the tile at `coord`: its modes, followed by the rest modes that `coord` keeps.

    Args:
        thing: tensor or layout. For a layout, the offset of the tile is dropped, as in slicing.

    >>> print(inner_partition(Layout((Int(8), Int(8))), (Int(2), Int(4)), (1, None)))
    (_2,_4,_2):(_1,_8,_32)
    """
    return _sliced(zipped_divide(thing, tiler), coord, 1)


def outer_partition(thing: Thing, tiler: Tiler, coord: Coordinate) -> Thing:
    """Return the element at `coord` of every tile: the tile modes that `coord` keeps, followed by the rest modes.

    >>> print(outer_partition(Layout((Int(8), Int(8))), (Int(2), Int(4)), (1, 0)))
    (_4,_2):(_2,_32)
    """
    return _sliced(zipped_divide(thing, tiler), coord, 0)


def local_tile(thing: Thing, tiler: Tiler, coord: Coordinate, proj: Coordinate = None) -> Thing:
    """Return the tile of a CTA. If `proj` is passed, it first selects modes of the tiler and of the coordinate, as
    `dice` does: 1 or X keeps a mode, and None drops it.

    >>> print(local_tile(Layout((Int(256), Int(128))), (Int(128), Int(64)), (0, None)))
    (_128,_64,_2):(_1,_256,_16384)
    """
    check_depth(coord)
    if proj is not None:
        tiler, coord = dice(proj, tiler), dice(proj, coord)  # type: ignore[type-var]
    return inner_partition(thing, tiler, coord)


def local_partition(thing: Thing, tile: Layout, index: Shape, proj: Coordinate = None) -> Thing:
    """Return the elements of thread `index`; `tile` is a layout that maps thread coordinates to thread numbers.

    >>> print(local_partition(Layout((Int(8), Int(8))), Layout((Int(2), Int(4))), 3))
    (_4,_2):(_2,_32)
    """
    if proj is not None:
        tile = dice(proj, tile)
    expect(tile, Layout, "the layout of threads")
    return outer_partition(thing, product_each(tile), get_flat_coord(tile, index))


def make_layout_tv(threads: Layout, values: Layout) -> tuple[tuple[int, ...], Layout]:
    """Return the shape of a tile, and the layout (thread, value) -> colexicographic index in the tile.

    Args:
        threads: a compact layout that maps coordinates of threads to thread numbers.
        values: a compact layout that maps coordinates within a thread's part to value numbers.
    Source:
        cute/atom/copy_atom.hpp, make_tiled_copy: right_inverse(raked_product(threads, values)) with the shape
        (size(threads), size(values)).

    >>> tile, tv = make_layout_tv(Layout((Int(4), Int(8)), (Int(8), Int(1))), Layout((Int(2), Int(2))))
    >>> print(tile, tv)
    (Int(8), Int(16)) ((_8,_4),(_2,_2)):((_16,_2),(_1,_8))
    """
    expect(threads, Layout, "the layout of threads")
    expect(values, Layout, "the layout of values")
    tile = raked_product(threads, values)
    counts = (product_of(threads.shape), product_of(values.shape))
    return product_each(tile), compose_layouts(right_inverse(tile), Layout(counts))
