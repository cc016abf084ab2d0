"""Divides: split a layout into tiles and the arrangement of the tiles.

    logical_divide(L, tiler)   ((tile,rest), ...)         by mode where the tiler is a tuple
    zipped_divide              ((tile,tile),(rest,rest))
    tiled_divide               ((tile,tile),rest,rest)
    flat_divide                (tile,tile,rest,rest)

logical_divide(A, B) = A o (B, complement(B, size(A))): first within a tile, then from tile to tile. A tile that does
not divide the size rounds up: the last tiles hang over.
"""

from __future__ import annotations

from typing import Any

from cute_py.errors import InvalidTypeError, StaticAssertError
from cute_py.layout.arithmetic import ceil_div_of
from cute_py.layout.coalesce import coalesced
from cute_py.layout.complement import complement
from cute_py.layout.composition import compose_layouts, tiler_text
from cute_py.layout.domain import on_domain, shape_of
from cute_py.layout.layout import Layout, joined, make
from cute_py.layout.leaf import internal, public
from cute_py.layout.trees import check_depth, is_underscore, modes, rank_of, zip2_by


def guide_of(tiler: Any) -> Any:
    """The profile of a tiler: tuples as tuples, everything else a leaf."""
    return tuple([guide_of(t) for t in tiler]) if type(tiler) is tuple else 0


def logical_divide(layout: Any, tiler: Any) -> Any:
    """Every mode that the tiler names becomes (tile, rest).

    >>> print(logical_divide(Layout((Int(8), Int(8)), (Int(8), Int(1))), (Int(2), Int(4))))
    ((_2,_4),(_4,_2)):((_8,_16),(_1,_4))
    """
    if type(layout) is not Layout:
        return on_domain(logical_divide, layout, tiler)
    check_depth(tiler)
    if isinstance(tiler, Layout):
        whole = coalesced(layout._shape, layout._stride)[0]
        rest = complement(tiler, public(whole))
        return compose_layouts(layout, joined([tiler, rest]))
    if type(tiler) is tuple:
        rank = len(modes(layout._shape))
        if len(tiler) > rank:
            raise StaticAssertError(
                "logical_divide: Too many modes in tiler.", {"tiler": tiler_text(tiler), "layout": layout}
            )
        parts = [layout[i] for i in range(rank)]
        return joined([logical_divide(p, t) for p, t in zip(parts, tiler, strict=False)] + parts[len(tiler) :])
    if is_underscore(tiler):
        return layout
    return logical_divide(layout, Layout(tiler))


def zipped(layout: Layout, tiler: Any) -> Layout:
    """Gather the first halves and the rests of a logical divide or product into two modes."""
    if type(layout) is not Layout:  # a product with a composed tiler
        raise InvalidTypeError("modes of a composed layout are not zipped; use logical_product", {"layout": layout})
    guide = guide_of(tiler)
    return make(zip2_by(layout._shape, guide), zip2_by(layout._stride, guide), layout._assumptions)


def zipped_divide(layout: Any, tiler: Any) -> Any:
    """((tile modes), (rest modes)).

    >>> print(zipped_divide(Layout((Int(8), Int(8), Int(3))), (Int(2), Int(4))))
    ((_2,_4),(_4,_2,_3)):((_1,_8),(_2,_32,_64))
    """
    if type(layout) is not Layout:
        return on_domain(zipped_divide, layout, tiler)
    return zipped(logical_divide(layout, tiler), tiler)


def unpacked(layout: Layout, first: bool, second: bool) -> Layout:
    """A rank-2 layout with the modes of its halves laid out flat; a half of one mode stays as it is."""

    def spread(tree: Any) -> Any:
        a, b = tree
        return (*(a if first and rank_of(a) > 1 else (a,)), *(b if second and rank_of(b) > 1 else (b,)))

    return make(spread(layout._shape), spread(layout._stride), layout._assumptions)


def tiled_divide(layout: Any, tiler: Any) -> Any:
    """((tile modes), rest, rest, ...).

    >>> print(tiled_divide(Layout((Int(8), Int(8)), (Int(8), Int(1))), (Int(2), Int(4))))
    ((_2,_4),_4,_2):((_8,_1),_16,_4)
    """
    if type(layout) is not Layout:
        return on_domain(tiled_divide, layout, tiler)
    return unpacked(zipped_divide(layout, tiler), False, True)


def flat_divide(layout: Any, tiler: Any) -> Any:
    """(tile, tile, ..., rest, rest, ...).

    >>> print(flat_divide(Layout((Int(8), Int(8)), (Int(8), Int(1))), (Int(2), Int(4))))
    (_2,_4,_4,_2):(_8,_1,_16,_4)
    """
    if type(layout) is not Layout:
        return on_domain(flat_divide, layout, tiler)
    return unpacked(zipped_divide(layout, tiler), True, True)


def ceil_div(a: Any, b: Any) -> Any:
    """(a + b - 1) / b of integers, by mode of tuples, b folded through a tuple; with a layout b, the shape of the
    tiles that cover a.

    >>> print(ceil_div((Int(10), Int(7)), (Int(4), Int(7))), ceil_div(100, 8))
    (Int(3), Int(1)) 13
    """
    if isinstance(b, Layout):
        return complement(b, a).shape
    if hasattr(a, "ceil_div"):
        return a.ceil_div(b)
    return public(ceil_div_of(shape_of(a), internal(b)))
