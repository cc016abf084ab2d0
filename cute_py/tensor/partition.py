"""Partition: give every CTA its tile, and every thread its elements.

    inner_partition(T, tiler, coord)   the tile number `coord`, whole             (what a CTA gets: local_tile)
    outer_partition(T, tiler, coord)   from every tile the element at `coord`     (what a thread gets: local_partition)

Both divide by the tiler and slice one half away. A coordinate shorter than the number of tile modes keeps the others.
"""

from __future__ import annotations

from typing import Any

from cute_py.errors import InvalidTypeError, given
from cute_py.layout.coordinate import get_flat_coord
from cute_py.layout.divide import zipped_divide
from cute_py.layout.domain import domain_of
from cute_py.layout.int_tuple import product_each
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Tree
from cute_py.layout.pointer_flagged import is_flagged, slice_flagged
from cute_py.layout.slicing import dice
from cute_py.layout.trees import check_depth, modes, wholes


def _halves(thing: Any) -> tuple[int, int]:
    shape = domain_of(thing)._shape
    return len(modes(shape[0])), len(modes(shape[1]))


def _sliced(tiled: Any, coord: Tree) -> Any:
    """The tile; of a layout whose swizzle acts on bytes, its memory with the flag kept."""
    return slice_flagged(tiled, coord) if is_flagged(tiled) else tiled(coord)


def inner_partition(thing: Any, tiler: Any, coord: Tree) -> Any:
    """The tile at `coord`: (tile modes, then the modes that coord keeps).

    Args:
        thing: tensor or layout (of a layout, the offset of the tile is dropped, as slicing a layout does).

    >>> print(inner_partition(Layout((Int(8), Int(8))), (Int(2), Int(4)), (1, None)))
    (_2,_4,_2):(_1,_8,_32)
    """
    tiled = zipped_divide(thing, tiler)
    tile_rank, rest_rank = _halves(tiled)
    if type(coord) is tuple:
        if len(coord) > rest_rank:
            raise InvalidTypeError(
                f"coordinate of rank {len(coord)} for {rest_rank} tile modes", {"coordinate": coord, "tiled": tiled}
            )
        coord = (*coord, *(None,) * (rest_rank - len(coord)))
    return _sliced(tiled, (wholes(tile_rank), coord))


def outer_partition(thing: Any, tiler: Any, coord: Tree) -> Any:
    """The element at `coord` of every tile: (kept tile modes, then one mode per rest mode).

    >>> print(outer_partition(Layout((Int(8), Int(8))), (Int(2), Int(4)), (1, 0)))
    (_4,_2):(_2,_32)
    """
    tiled = zipped_divide(thing, tiler)
    tile_rank, rest_rank = _halves(tiled)
    if type(coord) is tuple:
        if len(coord) > tile_rank:
            raise InvalidTypeError(
                f"coordinate of rank {len(coord)} for {tile_rank} modes of a tile", {"coordinate": coord}
            )
        coord = (*coord, *(None,) * (tile_rank - len(coord)))
    return _sliced(tiled, (coord, wholes(rest_rank)))


def local_tile(thing: Any, tiler: Any, coord: Tree, proj: Tree = None) -> Any:
    """The tile of a CTA; `proj` selects modes of tiler and coordinate first (1 or X keeps, None drops, as dice).

    >>> print(local_tile(Layout((Int(256), Int(128))), (Int(128), Int(64)), (0, None)))
    (_128,_64,_2):(_1,_256,_16384)
    """
    check_depth(coord)
    if proj is not None:
        tiler, coord = dice(proj, tiler), dice(proj, coord)
    return inner_partition(thing, tiler, coord)


def local_partition(thing: Any, tile: Any, index: Any, proj: Tree = None) -> Any:
    """The elements of thread `index`, where `tile` maps thread coordinates to thread numbers.

    >>> print(local_partition(Layout((Int(8), Int(8))), Layout((Int(2), Int(4))), 3))
    (_4,_2):(_2,_32)
    """
    if proj is not None:
        tile = dice(proj, tile)
    if not isinstance(tile, Layout):
        raise InvalidTypeError(f"local_partition takes a layout of threads, got {given(tile)}")
    return outer_partition(thing, product_each(tile), get_flat_coord(tile, index))
