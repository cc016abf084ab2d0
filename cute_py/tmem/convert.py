"""Convert between CuTe layouts and the tile layouts of TIRx, two notations for the same functions.

In a CuTe layout, the first mode runs fastest; in a tile layout, the last dimension does. A mode `(4, 8) : (1, 64)` of
CuTe is therefore the pair of shards `(8, 4) : (64, 1)`. Coordinates do not change: element (i, j) of one layout is
element (i, j) of the other.

    (32,16):(16,1)                <->  S[(32, 16) : (16, 1)]
    Sw<3,3,3> o 0 o (8,64):(64,1)  <->  ComposeLayout(3, 3, 3, S[(8, 64) : (64, 1)])

In tensor memory, a lane is 1 << 16 columns of 32 bits in CuTe; tile layouts have the axes TLane and TCol instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from cute_py.argument_checks import expect, expect_integer
from cute_py.dtypes import DTypeLike, as_dtype
from cute_py.errors import InvalidTypeError, TmemError, given
from cute_py.layout.arguments import Tree
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.layout.recast import SmemPtrFlag
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves, modes
from cute_py.tmem import iters
from cute_py.tmem.iters import Iter, Row
from cute_py.tmem.swizzled_layout import ComposeLayout
from cute_py.tmem.tile_layout import TileLayout

Mode = int | tuple[int, ...]

LANE = 1 << 16
"""The distance between lanes in a CuTe tensor-memory layout, in columns of 32 bits."""


def from_cute(layout: Layout | ComposedLayout) -> TileLayout | ComposeLayout:
    """Return the tile layout, on the axis `m`, that gives the same offset for each coordinate of the top-level modes.

    The swizzle of a composed layout acts on elements, or on bytes if the offset is `smem_ptr_flag(bits)`.

    Raises:
        TmemError: a stride is symbolic or a basis element, or the outer function is not a swizzle of elements.

    >>> from cute_py.tmem.convert import from_cute
    >>> from_cute(Layout(((4, 8), 16), ((1, 64), 4)))
    S[(8, 4, 16) : (64, 1, 4)]
    """
    if isinstance(layout, Layout):
        return TileLayout(_shards(layout))
    if not isinstance(layout, ComposedLayout):
        raise InvalidTypeError(f"expected a Layout or a ComposedLayout, got {type(layout).__name__}")
    outer, inner = layout.outer, layout.inner
    if not isinstance(outer, Swizzle) or not isinstance(inner, Layout):
        raise TmemError("a tile layout supports only a swizzle as the outer function", {"layout": layout})
    if outer.shift < 0:
        raise TmemError(f"Sw<{outer.bits},{outer.base},{outer.shift}>; a tile layout can't express a negative shift")
    tile = TileLayout(_shards(inner), (), expect_integer(layout.offset, "the offset"))
    base = outer.base
    if isinstance(layout.offset, SmemPtrFlag):
        base += 3 - (layout.offset.bits.bit_length() - 1)
        if base < 0 or layout.offset.bits & (layout.offset.bits - 1):
            raise TmemError(f"a swizzle on bytes from bit {outer.base} on splits elements of {layout.offset.bits} bits")
    return ComposeLayout(base, outer.bits, outer.shift, tile)


def from_cute_tmem(layout: Layout, dtype: DTypeLike) -> TileLayout:
    """Return the tile layout, on TLane and TCol, for a CuTe tensor-memory layout in elements of `dtype`.

    Raises:
        TmemError: a column of 32 bits does not hold a whole number of elements, or a stride moves both lanes and
            columns.

    >>> from cute_py.notation import parse
    >>> print(from_cute_tmem(parse("(_128,_32):(_65536,_1)"), "float32"))
    S[(128, 32) : (1 @ TLane, 1 @ TCol)]
    """
    expect(layout, Layout, "a tensor-memory layout")
    lane = _lane_step(dtype)
    out = []
    for it in _shards(layout):
        in_lanes = it.stride >= lane
        if in_lanes and it.stride % lane:
            raise TmemError(f"stride {it.stride} moves both lanes and columns; a shard moves along one axis")
        out.append(Iter(it.extent, it.stride // lane, "TLane") if in_lanes else Iter(it.extent, it.stride, "TCol"))
    return TileLayout(out)


def to_cute(
    layout: TileLayout | ComposeLayout, shape: Sequence[int] | None = None, *, dtype: DTypeLike | None = None
) -> Layout | ComposedLayout:
    """Return the CuTe layout that is the same function as a tile layout.

    Args:
        shape: extents of the modes; by default the extents of the shards.
        dtype: element type of a tensor-memory layout, whose lanes become steps of 1 << 16 columns.
    Raises:
        TmemError: the layout has replicas (a CuTe layout gives one location for each element), or an axis other than
            `m`, TLane and TCol.

    A tile layout with an offset becomes a composed layout with the identity swizzle.

    >>> from cute_py.tmem.tile_layout import S
    >>> from cute_py.tmem.convert import to_cute
    >>> print(to_cute(S[(8, 4, 16) : (64, 1, 4)], (32, 16)))
    ((4,8),16):((1,64),4)
    """
    if not isinstance(layout, (TileLayout, ComposeLayout)):
        raise InvalidTypeError(f"expected a TileLayout or a ComposeLayout, got {type(layout).__name__} {given(layout)}")
    tile = layout.tile if isinstance(layout, ComposeLayout) else layout
    if tile.replica:
        raise TmemError("a CuTe layout must have one location for each element", {"replicas": list(tile.replica)})
    scale = {"m": 1}
    if dtype is not None:
        scale = {"TCol": 1, "TLane": _lane_step(dtype)}
    unknown = [axis for axis in tile.axes if axis not in scale]
    if unknown:
        hint = "pass dtype= for a tensor-memory layout" if set(tile.axes) <= {"TLane", "TCol"} else None
        raise TmemError(f"CuTe layouts have no axis {unknown[0]}", {"layout": tile}, hint)
    grouped, seps = tile.group(tile.extents if shape is None else shape)
    parts = [_mode(run, scale) for run in iters.split(grouped.shard, seps)]
    plain = Layout(tuple(part[0] for part in parts), tuple(part[1] for part in parts))
    offset = sum(steps * scale[axis] for axis, steps in tile.offset.as_dict().items())
    if isinstance(layout, ComposeLayout):
        if not layout.swizzle_inner:
            raise TmemError(
                "a mirrored swizzle can't be converted; in CuTe, it acts on the other bits, with a negative shift"
            )
        return ComposedLayout(Swizzle(layout.swizzle_len, layout.per_element, layout.atom_len), offset, plain)
    return ComposedLayout(Swizzle(0, 4, 3), offset, plain) if offset else plain


def _lane_step(dtype: DTypeLike) -> int:
    """Return the number of elements from one lane to the next in CuTe's tensor-memory layouts."""
    row = as_dtype(dtype)
    if 32 % row.bits:
        raise TmemError(f"{row.name} has {row.bits} bits; a column of 32 bits must hold a whole number of elements")
    return LANE * (32 // row.bits)


def _numbers(tree: Tree) -> list[int]:
    return [expect_integer(leaf, "an extent or stride") for leaf in leaves(tree)]


def _shards(layout: Layout) -> Row:
    out = []
    for extents, strides in zip(modes(layout.shape), modes(layout.stride), strict=True):
        pairs = list(zip(_numbers(extents), _numbers(strides), strict=True))
        out += [Iter(extent, step, "m") for extent, step in reversed(pairs)]
    return tuple(out)


def _mode(run: Row, scale: dict[str, int]) -> tuple[Mode, Mode]:
    extents = tuple(it.extent for it in reversed(run))
    strides = tuple(it.stride * scale[it.axis] for it in reversed(run))
    return (extents[0], strides[0]) if len(run) == 1 else (extents, strides)
