"""Layouts derived from other layouts: of the same order, or spread over a domain."""

from __future__ import annotations

import math
from typing import Any

from cute_py.errors import InvalidTypeError, StaticAssertError
from cute_py.layout.arithmetic import compact_left, compact_order, product_of
from cute_py.layout.coalesce import coalesced, without_zeros
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.divide import logical_divide
from cute_py.layout.domain import domain_of
from cute_py.layout.inverse import right_inverse
from cute_py.layout.layout import Layout, make
from cute_py.layout.leaf import internal, public, tree_text
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves, unflatten_leaves


def make_layout_like(layout: Any, tiler: Any = None) -> Layout:
    """A compact layout of the same shape whose strides are ordered like the layout's; static stride 0 stays 0.

    With a tiler, the tile's shape and its strides in the layout: mode by mode, the layout's own.

    >>> print(make_layout_like(Layout((Int(2), Int(3), Int(4)), (Int(0), Int(42), Int(1)))))
    (_2,_3,_4):(_0,_4,_1)
    >>> print(make_layout_like(Layout((Int(64), Int(32)), (Int(32), Int(1))), (Int(8), Int(4))))
    (_8,_4):(_32,_1)
    """
    if tiler is not None:
        return _tile_of(domain_of(layout), tiler)
    inner = domain_of(layout)
    shape = without_zeros(inner._shape, inner._stride)
    return make(inner._shape, compact_order(shape, inner._stride), inner._assumptions)


def _tile_of(layout: Layout, tiler: Any) -> Layout:
    """A shape with the strides of a layout's leaves, one after another."""
    shape = tiler.shape if isinstance(tiler, Layout) else tiler
    strides = list(leaves(layout.stride))
    wanted = len(leaves(shape))
    if wanted > len(strides):
        raise StaticAssertError(f"the tile has {wanted} modes, the layout {len(strides)}", {"layout": layout})
    return Layout(shape, unflatten_leaves(tuple(strides[:wanted]), shape) if isinstance(shape, tuple) else strides[0])


def domain_distribute(shape: Any, size: Any) -> Layout:
    """A layout of `size` elements spread over a shape that need not be divided by it mode by mode.

    >>> print(domain_distribute((Int(15), Int(14)), Int(6)))
    (_3,_2):(_1,_15)
    """
    flat = leaves(internal(shape.shape if hasattr(shape, "domain") or isinstance(shape, Layout) else shape))
    rest = internal(size)
    if type(rest) is not int or not all(type(s) is int for s in flat):
        raise StaticAssertError("is_static<ShapeB>::value", {"shape": tree_text(tuple(flat)), "size": tree_text(rest)})
    counts = []
    for s in flat:
        counts.append(math.gcd(s, rest))
        rest //= counts[-1]
    starts, _ = compact_left(tuple(flat))
    return make(*coalesced(tuple(counts), starts))


def get_swizzle_portion(layout: Any) -> Swizzle:
    """The swizzle of a composed layout; of a plain one the identity Sw<0,4,3>, as in C++.

    >>> print(get_swizzle_portion(Layout(8)))
    Sw<0,4,3>
    """
    if isinstance(layout, ComposedLayout):
        if isinstance(layout.outer, Swizzle):
            return layout.outer
        raise InvalidTypeError(f"the outer function is no swizzle: {layout}")
    domain_of(layout)
    return Swizzle(0, 4, 3)


def get_nonswizzle_portion(layout: Any) -> Layout:
    """The plain layout under the swizzle, or the layout itself.

    >>> print(get_nonswizzle_portion(ComposedLayout(Swizzle(2, 0, 2), 0, Layout((4, 4)))))
    (4,4):(_1,4)
    """
    return domain_of(layout)


def max_alignment(layout: Any) -> Any:
    """The largest N for which upcast(layout, N) is legal, by its static numbers.

    >>> print(max_alignment(Layout((Int(8), Int(64)), (Int(64), Int(1)))))
    _512
    """
    if isinstance(layout, Swizzle):
        return public(1 << layout.base)
    if isinstance(layout, ComposedLayout):
        if not isinstance(layout.outer, Swizzle):
            return public(1)
        return public(math.gcd(1 << layout.outer.base, int(layout.offset), int(max_alignment(layout.inner))))
    inner = domain_of(layout)
    shape, stride = coalesced(inner._shape, inner._stride)
    known = make(
        tuple([s if type(s) is int else 1 for s in leaves(shape)]),
        tuple([d if type(d) is int else 0 for d in leaves(stride)]),
    )
    permuted = logical_divide(known, right_inverse(known))
    return public(math.gcd(product_of(permuted[0]._shape), *leaves(permuted[1]._stride)))
