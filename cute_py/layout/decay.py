"""Slicing a swizzled layout: what is left of the swizzle when some modes are fixed.

A swizzle XORs Y bits into Z bits. If the kept modes move no pair of bits that are swizzled together, then on what is
left the swizzle only adds or subtracts constants: it decays to a plain layout whose strides have signs that depend on
the fixed part. Otherwise the swizzle stays, and the fixed part goes into the offset between.

    Sw<2,0,3> o 0 o (8,8):(8,1)  at row 3   ->   ((4,2)):((-1,4)), offset 27

Where the fixed modes have run-time sizes or strides, the swizzle stays (C++ does not compile that). An offset of static
and run-time bits, which C++ prints as `M_0|(8&8)=8`, is a plain int here.
"""

from __future__ import annotations

from typing import Any

from cute_py.errors import LayoutError, StaticAssertError
from cute_py.layout.arithmetic import as_python_int, crd2idx_of, idx2crd_colex, product_of
from cute_py.layout.composed import ComposedLayout, slice_parts
from cute_py.layout.composition import compose_layouts
from cute_py.layout.layout import Layout, make
from cute_py.layout.leaf import Dynamic, Int, Tree, internal, plus, public, value_of
from cute_py.layout.trees import dice_tree, leaves, map_leaves, slice_tree


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
    """(value, mask of the bits that are known only at run time) of a diced coordinate. Each mode gives the bits that
    it can have; a coordinate beyond the shape loses the others, as in C++."""
    value = mask = 0
    natural = leaves(idx2crd_colex(coord, only._shape))
    for c, s, d in zip(natural, leaves(only._shape), leaves(only._stride), strict=True):
        reach = (s - 1) * d
        value ^= as_python_int(c) * d & reach
        if type(c) is Dynamic:
            mask |= reach
    return value, mask


def _is_static(layout: Layout) -> bool:
    return all(type(x) is int for x in (*leaves(layout._shape), *leaves(layout._stride)))


def _decays(swizzle: Any, anti: Layout, only: Layout, sliced: Layout) -> bool:
    """May the swizzle be dropped from kept modes with run-time numbers? C++ does not look at their values and drops
    it always; here it stays where dropping it would change the function."""
    known = [map_leaves(value_of, tree) for tree in (sliced._shape, sliced._stride)]
    if not all(type(x) is int for tree in known for x in leaves(tree)):
        return False
    layout = make(*known)
    try:
        compose_layouts(anti, layout)
        active = active_bits(swizzle, layout)
    except LayoutError:
        return False
    return not active & ~swizzle.of(active)


def slice_swizzled(swizzle: Any, coord: Tree, offset: Any, inner: Layout) -> tuple[Any, Any]:
    """(sliced layout, public offset) of `swizzle o offset o inner` at a coordinate with `_`; `offset` is internal."""
    if swizzle.bits == 0:
        kept, left = slice_parts(coord, inner)
        return ComposedLayout(swizzle, public(plus(offset, internal(left))), kept), Int(0)
    b, m, span = swizzle.bits, swizzle.base, abs(swizzle.shift)
    one, low, between, high, top = _field_strides(b, m, span)
    anti = _projection(b, m, span, (one, 0, between, 0, top))
    only = _projection(b, m, span, (0, low, 0, high, 0))

    sliced = make(slice_tree(coord, inner._shape), slice_tree(coord, inner._stride))
    diced = make(dice_tree(coord, inner._shape), dice_tree(coord, inner._stride))
    fixed = internal(dice_tree(coord, coord))
    if not _is_static(diced) or not (_is_static(sliced) or _decays(swizzle, anti, only, sliced)):
        kept, left = slice_parts(coord, inner)
        return ComposedLayout(swizzle, public(plus(offset, internal(left))), kept), Int(0)

    anti_layout = compose_layouts(anti, diced)
    only_layout = compose_layouts(only, diced)
    for s, d in zip(leaves(only_layout._shape), leaves(only_layout._stride), strict=True):
        if s * d & (s * d - 1):
            raise StaticAssertError("Requires pow2 shape*stride.", {"mode": f"_{s}:_{d}", "swizzle": swizzle})
    passed = crd2idx_of(fixed, anti_layout._shape, anti_layout._stride)
    value, mask = _mixed_offset(only_layout, fixed)
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
