"""Recast: the same bytes counted in other units.

upcast(L, n)     units n times as large: the contiguous mode gets n times shorter, other strides n times smaller
downcast(L, n)   units n times as small
recast_layout    from one element type to another; for widths like 6 and 8 bits, up by 3 parts, then down by 4
"""

from __future__ import annotations

import math
from typing import Any

from cute_py.argument_checks import expect_integer
from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidTypeError, StaticAssertError, given
from cute_py.layout.arithmetic import ceil_div_leaf
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout, make
from cute_py.layout.leaf import (
    Dynamic,
    Int,
    Tree,
    internal,
    internal_leaf,
    leaf_text,
    public,
    sign,
    trunc_div,
    trunc_mod,
)
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves


def _factor(n: Any) -> int:
    return expect_integer(n, "the factor of a recast", 1)


def _up(shape: Tree, stride: Tree, n: int) -> tuple[Tree, Tree]:
    if type(shape) is tuple:
        pairs = [_up(s, d, n) for s, d in zip(shape, stride, strict=True)]
        return tuple([p[0] for p in pairs]), tuple([p[1] for p in pairs])
    if type(stride) is int:
        if stride == 0:
            return shape, 0
        if stride % n and n % stride:
            raise StaticAssertError(
                "Divisibility condition", {"stride": leaf_text(stride), "N": n, "size": leaf_text(shape)}
            )
        size = abs(stride)
        return ceil_div_leaf(shape, ceil_div_leaf(n, size)), sign(stride) * ceil_div_leaf(size, n)
    if type(stride) is Dynamic:  # taken as larger than N and divisible, as C++ does
        return shape, trunc_div(stride, n)
    scaled = getattr(stride, "with_value", None)
    if scaled is None:
        raise InvalidTypeError(f"can't recast a layout with stride {stride}")
    return _up_basis(shape, stride, n)


def _up_basis(shape: Tree, stride: Any, n: int) -> tuple[Tree, Tree]:
    value = internal_leaf(stride.value)
    size, step = _up(shape, value, n)
    return size, internal(stride.with_value(public(step)))


def upcast(layout: Any, n: Any) -> Any:
    """In units of n elements.

    Raises:
        StaticAssertError: 'Divisibility condition': a static stride neither divides n nor is divided by it.

    >>> print(upcast(Layout((Int(8), Int(64)), (Int(64), Int(1))), 2))
    (_8,_32):(_32,_1)
    """
    n = _factor(n)
    if type(layout) is Layout:
        return make(*_up(layout._shape, layout._stride, n), layout._assumptions)
    if isinstance(layout, Swizzle):
        return layout.upcast(n)
    if isinstance(layout, ComposedLayout):
        if hasattr(layout.offset, "upcast"):  # an unset pointer: bytes stay bytes, its element grows
            return ComposedLayout(layout.outer, layout.offset.upcast(n), upcast(layout.inner, n))
        return ComposedLayout(upcast(layout.outer, n), upcast(layout.offset, n), upcast(layout.inner, n))
    if isinstance(layout, int):
        leaf = internal_leaf(layout)
        if type(leaf) is int and trunc_mod(leaf, n):
            raise StaticAssertError("Static safe_div requires t % u == 0", {"offset": leaf_text(leaf), "N": n})
        return public(trunc_div(leaf, n))
    raise InvalidTypeError(f"upcast takes a layout or a swizzle, got {given(layout)}")


def _down(shape: Tree, stride: Tree, n: int) -> tuple[Tree, Tree]:
    if type(shape) is tuple:
        pairs = [_down(s, d, n) for s, d in zip(shape, stride, strict=True)]
        return tuple([p[0] for p in pairs]), tuple([p[1] for p in pairs])
    if type(stride) is int and stride in (1, -1):
        return shape * n, stride
    if type(stride) in (int, Dynamic):
        return shape, stride * n
    if not hasattr(stride, "with_value"):
        raise InvalidTypeError(f"can't recast a layout with stride {stride}")
    value = internal_leaf(stride.value)
    size, step = _down(shape, value, n)
    return size, internal(stride.with_value(public(step)))


def downcast(layout: Any, n: Any) -> Any:
    """In units of 1/n elements.

    Raises:
        StaticAssertError: 'Downcast requires adjacent elements': no static stride 1.

    >>> print(downcast(Layout((Int(8), Int(64)), (Int(64), Int(1))), 2))
    (_8,_128):(_128,_1)
    """
    n = _factor(n)
    if type(layout) is Layout:
        if not any(type(_value(d)) is int and _value(d) == 1 for d in leaves(layout._stride)):
            raise StaticAssertError("Downcast requires adjacent elements", {"layout": layout})
        return make(*_down(layout._shape, layout._stride, n), layout._assumptions)
    if isinstance(layout, Swizzle):
        return layout.downcast(n)
    if isinstance(layout, ComposedLayout):
        if hasattr(layout.offset, "downcast"):
            return ComposedLayout(layout.outer, layout.offset.downcast(n), downcast(layout.inner, n))
        return ComposedLayout(downcast(layout.outer, n), layout.offset * Int(n), downcast(layout.inner, n))
    if isinstance(layout, int):
        return layout * Int(n)
    raise InvalidTypeError(f"downcast takes a layout or a swizzle, got {given(layout)}")


def _value(stride: Any) -> Any:
    return internal_leaf(stride.value) if hasattr(stride, "modes") else stride


def bits_of(kind: Any) -> int:
    """Bits of an element type, or the number of bits itself."""
    if isinstance(kind, int) and not isinstance(kind, bool):
        return expect_integer(kind, "the width of an element", 1, unit="bits")
    return as_dtype(kind).bits


def recast_layout(layout: Any, old: Any = None, new: Any = None) -> Any:
    """The layout counted in elements of another type.

    Args:
        layout: layout, swizzle or composed layout, in elements of `old`.
        old, new: element types (anything `as_dtype` takes), or their bits. C++'s order `(old, new, layout)` is
            taken too.

    >>> print(recast_layout(Layout((Int(8), Int(64)), (Int(64), Int(1))), "float16", "float32"))
    (_8,_32):(_32,_1)
    """
    if not isinstance(layout, (Layout, Swizzle, ComposedLayout)):
        layout, old, new = new, layout, old
    old_bits, new_bits = bits_of(old), bits_of(new)
    g = math.gcd(old_bits, new_bits)
    up, down = new_bits // g, old_bits // g
    if up > 1:
        layout = upcast(layout, up)
    if down > 1:
        layout = downcast(layout, down)
    return layout
