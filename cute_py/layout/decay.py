"""Slicing a swizzled layout: what is left of the swizzle when some modes are fixed.

A swizzle XORs Y bits into Z bits. If the kept modes move no pair of bits that are swizzled together, then on what is
left the swizzle only adds or subtracts constants: it decays to a plain layout whose strides have signs that depend on
the fixed part. Otherwise the swizzle stays, and the fixed part goes into the offset between.

    Sw<2,0,3> o 0 o (8,8):(8,1)  at row 3   ->   ((4,2)):((-1,4)), offset 27
"""

from __future__ import annotations

from typing import Any

from cute_py.layout.arithmetic import crd2idx_of, product_of
from cute_py.layout.composed import ComposedLayout, slice_parts
from cute_py.layout.composition import compose_layouts
from cute_py.layout.layout import Layout, make
from cute_py.layout.leaf import Dynamic, Int, Tree, internal, plus, public, value_of
from cute_py.layout.trees import all_underscore, dice_tree, leaves, slice_tree


def _projection(bits: int, base: int, span: int, strides: tuple[int, int, int, int, int]) -> Layout:
    """The offset's bit fields (low, Z or Y, between, Y or Z, high) scaled by `strides`."""
    return make((1 << base, 1 << bits, 1 << (span - bits), 1 << bits, 1), strides)


def _field_strides(bits: int, base: int, span: int) -> tuple[int, int, int, int, int]:
    return 1, 1 << base, 1 << (base + bits), 1 << (base + span), 1 << (base + span + bits)


def active_bits(swizzle: Any, layout: Layout) -> int:
    """The swizzled bits that a static layout can reach."""
    b, m, s = swizzle.bits, swizzle.base, abs(swizzle.shift)
    one, low, _, high, _ = _field_strides(b, m, s)
    only = compose_layouts(_projection(b, m, s, (0 * one, low, 0, high, 0)), layout)
    last = product_of(only._shape) + -1
    return int(value_of(crd2idx_of(last, only._shape, only._stride)))


def _mixed_offset(only: Layout, coord: Tree) -> tuple[int, int]:
    """(value, mask of the bits that are known only at run time) of a diced coordinate."""
    value = int(value_of(crd2idx_of(coord, only._shape, only._stride)))
    mask = 0
    flat_coord = leaves(coord)
    flat = list(zip(leaves(only._shape), leaves(only._stride), strict=True))
    if len(flat_coord) == len(flat):
        for c, (s, d) in zip(flat_coord, flat, strict=True):
            if type(c) is Dynamic:
                mask |= (value_of(s) - 1) * abs(value_of(d))
    elif any(type(c) is Dynamic for c in flat_coord):
        for s, d in flat:
            mask |= (value_of(s) - 1) * abs(value_of(d))
    return value, mask


def slice_swizzled(swizzle: Any, coord: Tree, offset: Any, inner: Layout) -> tuple[Any, Any]:
    """(sliced layout, public offset) of `swizzle o offset o inner` at a coordinate with `_`; `offset` is internal."""
    if all_underscore(coord) or swizzle.bits == 0:
        kept, left = slice_parts(coord, inner)
        return ComposedLayout(swizzle, public(plus(offset, internal(left))), kept), Int(0)
    b, m, span = swizzle.bits, swizzle.base, abs(swizzle.shift)
    one, low, between, high, top = _field_strides(b, m, span)
    anti = _projection(b, m, span, (one, 0, between, 0, top))
    only = _projection(b, m, span, (0, low, 0, high, 0))

    sliced = make(slice_tree(coord, inner._shape), slice_tree(coord, inner._stride))
    diced = make(dice_tree(coord, inner._shape), dice_tree(coord, inner._stride))
    fixed = internal(dice_tree(coord, coord))

    anti_layout = compose_layouts(anti, diced)
    passed = crd2idx_of(fixed, anti_layout._shape, anti_layout._stride)
    value, mask = _mixed_offset(compose_layouts(only, diced), fixed)
    value ^= int(value_of(offset))
    if type(offset) is Dynamic:
        mask = ~0

    def known(bit_value: int, bits: int) -> Any:
        """Static where no run-time bit decides it."""
        return Dynamic(bit_value) if mask & bits else bit_value

    active = active_bits(swizzle, sliced)
    if active & ~swizzle.of(active):
        return ComposedLayout(swizzle, public(known(value, ~0)), sliced), public(passed)

    z, y = (low, high) if swizzle.shift > 0 else (high, low)
    lows: list[Any] = []
    highs: list[Any] = []
    for i in range(b):
        flip_z = known(z << i, y << i) if not value & (y << i) else known(-(z << i), y << i)
        flip_y = known((y + z if not value & (z << i) else y - z) << i, z << i)
        (lows if z < y else highs).append(flip_z)
        (highs if z < y else lows).append(flip_y)
    plain = make((1 << m, (2,) * b, 1 << (span - b), (2,) * b, 1), (1, tuple(lows), 1 << (m + b), tuple(highs), top))
    moved = known(swizzle.of(value), ~0)
    return compose_layouts(plain, sliced), public(plus(moved, passed))
