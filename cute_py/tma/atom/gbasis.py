"""The TMA G-basis: the box that one TMA instruction moves, and the global mode that each mode of the box runs along.

    gmem (1024,512):(512,_1), tile (_128,_64), smem Sw<3,4,3> o ((_8,_16),(_64,_1)):((_64,_512),(_1,_0))
        ->  (_64,_128):(_1@1,_1@0)        a box of 64 elements of mode 1 by 128 of mode 0

The instruction writes a contiguous run of shared memory. The algorithm therefore inverts the shared layout to get the
run. It then looks up the global mode of each part of the run in the CTA's value map, keeps the parts with step 1, and
merges neighbours that are also contiguous in global memory. The modes are in the order of shared memory, innermost
first. `GBasisTrace` records the result and the purpose of each stage.

If the tensor has more than five modes, several global modes share one mode of the tensor map (they are collapsed). The
stride of the shared mode is the greatest common divisor of their strides, and a box along it is a run of equal steps.
The run visits the elements of the tile only if each global mode continues the one before. CuTe C++ makes the box even
if they do not. cute_py refuses a box that does not match the tile (`check_collapsed`), or cuts it with
`split_oversize=True`.

Source: cute/atom/copy_traits_sm90_tma.hpp, detail::construct_tma_gbasis.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Final, TypeAlias

from cute_py.argument_checks import expect, record, wrong_type
from cute_py.arith_tuple.arith_tuple import ScaledBasis
from cute_py.diagnostics import Diagnostic
from cute_py.dtypes import DTypeLike, as_dtype
from cute_py.errors import GBasisError, InvalidTypeError, given
from cute_py.layout.arguments import Tree
from cute_py.layout.coalesce import coalesce
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.composition import composition
from cute_py.layout.int_tuple import compact_left, size
from cute_py.layout.inverse import right_inverse
from cute_py.layout.layout import Layout, apply_to_inner, domain_of, make, static
from cute_py.layout.leaf import (
    STATIC,
    STATIC_ONE,
    STATIC_ZERO,
    Int,
    is_one,
    is_symbolic,
    is_zero,
    same,
    times,
    value_of,
)
from cute_py.layout.modes import group_modes, take
from cute_py.layout.recast import recast_layout
from cute_py.layout.trees import at, check_depth, is_underscore, leaves, modes, rank_of
from cute_py.notation.parse import parse
from cute_py.tensor.tensor import Tensor, make_identity_layout
from cute_py.tma.descriptor.fields import MAX_RANK
from cute_py.tma.descriptor.limits import bounds

REASONS = {
    "cta_v_map": "the global mode of each value of the tile",
    "inv_smem_layout": "right inverse of the shared layout: its longest contiguous run",
    "sidx2gmode_full": "composed with the V-map: the path of the run through global memory",
    "smem_rank": "modes before the first that does not step by 1 through a global mode",
    "sidx2gmode": "the run ends there, because a box can't start in the middle of a mode",
    "tile_gstride": "its strides in global memory, in elements of the internal type",
    "tma_gstride": "the same modes with contiguous neighbours merged, at most 256 elements each",
    "tile_gbasis": "the merged modes as basis elements",
    "tma_gbasis_tile": "as basis elements in the shape of the box",
    "tma_gbasis": "the G-basis: the box, with the other moving modes appended with extent 1; at most 5 modes",
}
"""Stage -> its purpose."""


class Stages:
    """Base class of records of intermediate values; `str()` prints the values in order, each with its reason."""

    __slots__ = ()
    reasons: ClassVar[Mapping[str, str]] = REASONS
    notes: tuple[str, ...] = ()

    def steps(self) -> list[tuple[str, Any, str]]:
        """(name, value, reason) of each stage, in order."""
        listed: Any = self
        return [(f.name, getattr(self, f.name), self.reasons[f.name]) for f in fields(listed) if f.name in self.reasons]

    def __str__(self) -> str:
        width = max(len(name) for name, _, _ in self.steps())
        lines = [f"{name:<{width}} : {value}\n{'':<{width}}   {why}" for name, value, why in self.steps()]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


@record
class GBasisTrace(Stages):
    """Every intermediate value of `construct_tma_gbasis`, with the names that CuTe C++ uses.

    >>> from cute_py.notation import parse
    >>> gmem, smem = parse("(256,128):(128,_1)"), parse("(_128,_64):(_64,_1)")
    >>> basis = construct_tma_gbasis(gmem, smem, parse("(_128,_64):(_1@0,_1@1)"))
    >>> print(basis.trace.inv_smem_layout, basis.trace.sidx2gmode)
    (_64,_128):(_128,_1) (_64,_128):(_1@1,_1@0)
    """

    cta_v_map: Layout
    """CTA value index -> mode of the global tensor."""
    inv_smem_layout: Layout
    """shared-memory index -> coordinate of the shared-memory tile."""
    sidx2gmode_full: Layout
    """shared-memory index -> mode of the global tensor, for the whole contiguous run of shared memory."""
    smem_rank: int
    """Number of leading modes of `sidx2gmode_full` that walk one global mode in steps of 1."""
    sidx2gmode: Layout
    """The leading `smem_rank` modes of `sidx2gmode_full`."""
    tile_gstride: Layout
    """The walk with its strides in global memory, in elements of the internal type."""
    tma_gstride: Layout
    """Contiguous neighbours merged up to 256 elements: the shape of the TMA box."""
    tile_gbasis: Layout
    """The walk with basis strides and the recast shape."""
    tma_gbasis_tile: Layout
    """The walk with basis strides, in the shape of the box."""
    tma_gbasis: Layout
    """The G-basis, box shape : global modes. The other moving modes are appended with extent 1."""
    notes: tuple[str, ...] = ()
    """Special events of the walk: merged, cut or grouped modes."""


_MAX_EXTENT = bounds("box")[1]
"""Limit of boxDim in cuTensorMapEncodeTiled, in elements."""


def coalesce_256(layout: Layout) -> Layout:
    """Merge contiguous static neighbour modes up to 256 elements, the largest extent of a box mode.

    Two modes are contiguous if the stride of the second is the size of the first times its stride. This function works
    like `coalesce`, but from the front, and merges only while the result fits in one box mode. It never splits a mode:
    a mode longer than 256 is not changed, and `make_tma_atom` refuses it.

        (16,16):(1,16)  ->  256:1          (64,4,2):(1,64,256)  ->  (256,2):(1,256)

    Raises:
        InvalidTypeError: the argument is not a plain layout.

    >>> print(coalesce_256(Layout((Int(2), Int(2), Int(2), Int(64)), (Int(1), Int(2), Int(4), Int(8)))))
    (_8,_64):(_1,_8)
    """
    if not isinstance(layout, Layout):
        raise InvalidTypeError(f"coalesce_256 takes a layout, got {type(layout).__name__}")
    shapes, strides = leaves(layout.shape), leaves(layout.stride)
    if not shapes:
        return make(STATIC_ONE, STATIC_ZERO)
    new_shape: list[Any] = [shapes[0]]
    new_stride: list[Any] = [strides[0]]
    for s, d in zip(shapes[1:], strides[1:], strict=True):
        back, step = new_shape[-1], new_stride[-1]
        if is_one(s):
            continue
        if len(new_shape) == 1 and is_one(back):
            new_shape[0], new_stride[0] = s, d
        elif type(s) is type(back) is Int and same(times(back, step), d) and s * back <= _MAX_EXTENT:
            new_shape[-1] = times(s, back)
        else:
            new_shape.append(s)
            new_stride.append(d)
    if len(new_shape) == 1:
        return make(STATIC_ONE, STATIC_ZERO) if is_one(new_shape[0]) else make(new_shape[0], new_stride[0])
    return make(tuple(new_shape), tuple(new_stride))


@record
class GBasis:
    """A G-basis: its `layout` (box shape : global modes) and the `trace` of its construction.

    >>> from cute_py.notation import parse
    >>> gmem, smem = parse("(256,128):(128,_1)"), parse("(_128,_64):(_64,_1)")
    >>> basis = construct_tma_gbasis(gmem, smem, parse("(_128,_64):(_1@0,_1@1)"))
    >>> print(basis.layout)
    (_64,_128):(_1@1,_1@0)
    """

    layout: Layout
    trace: GBasisTrace

    def __str__(self) -> str:
        return str(self.layout)


Tiler: TypeAlias = Tree | Layout | tuple[Tree | Layout, ...]
"""A tile by mode: sizes, basis elements or layouts."""

_SIZES: Final = re.compile(r"\s*[0-9]{1,20}(\s*[xX×]\s*[0-9]{1,20})*\s*")


def as_tiler(tiler: Tiler | str) -> Tiler:
    """Convert a tile to a static tiler, as C++ requires.

    The tile is a tuple of sizes or layouts, one per mode, or a string such as '128x64', '(_128,_64)' or '(128, 64)'.

    >>> print(*as_tiler("128x64"), *as_tiler((128, 64)))
    _128 _64 _128 _64
    """
    if isinstance(tiler, str):
        found = _SIZES.fullmatch(tiler)
        sizes: Any = tuple(map(int, re.split("[xX×]", tiler))) if found else parse(tiler)
        tiler = sizes
    return static(tiler)


def as_shared_layout(layout: Layout | ComposedLayout | Tensor | str) -> Layout | ComposedLayout | Tensor:
    """Return the shared-memory layout of a tile from a layout or a string; integers in a string become static.

    Raises:
        InvalidTypeError: the argument has sizes but no strides.

    >>> print(as_shared_layout("Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)"))
    Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)
    """
    tile = isinstance(layout, str) and _SIZES.fullmatch(layout) is not None
    found = layout if tile or not isinstance(layout, str) else parse(layout)
    if tile or isinstance(found, tuple | int):
        raise InvalidTypeError(
            "the shared tile needs a layout, because sizes alone don't define an order in shared memory",
            {"got": found},
            "make_smem_layout('K', '128B', dtype, tile), or Layout(tile, LayoutRight)",
        )
    if not isinstance(layout, str):
        return layout
    if not isinstance(found, Layout | ComposedLayout | Tensor):
        raise wrong_type("a shared layout must be written as shape:stride", layout)
    return static(found) if isinstance(found, Layout) else apply_to_inner(static, found)


def make_cta_v_map(shape: Tree, tiler: Tiler) -> Layout:
    """Return the CTA's value map: the identity layout of the tensor's shape, composed with the tile.

    The map takes the index of a value in the tile to its coordinate in the global modes.

    Args:
        shape: the shape of the global tensor. tiler: the tile, one size or plain layout per mode, in elements.
    Raises:
        InvalidTypeError: the tile does not consist of sizes and plain layouts.
        StaticAssertError: the tile has more modes than the tensor.

    >>> print(make_cta_v_map((1024, 256, 8), (Int(128), Int(64))))
    (_128,_64):(_1@0,_1@1)
    """
    return tiled_identity(make_identity_layout(shape), tiler)


def tiled_identity(identity: Layout, tiler: Tiler) -> Layout:
    """Return the value map of a tile from the identity layout of its tensor."""
    check_depth(tiler)
    _check_tiler(tiler)
    layout: Layout = composition(identity, tiler)
    return layout


def _check_tiler(tiler: Tiler) -> None:
    if type(tiler) is tuple:
        for part in tiler:
            _check_tiler(part)
    elif not isinstance(tiler, (int, Layout)) and not hasattr(type(tiler), "__index__") and not is_underscore(tiler):
        raise InvalidTypeError(f"a tiler must consist of sizes and plain layouts, got {given(tiler)}")


def _expect_tile(smem_layout: Layout, cta_v_map: Layout) -> None:
    """Refuse a shared layout and a value map that can't belong to one copy."""
    smem_size, tile_size = size(smem_layout), size(cta_v_map)
    if isinstance(smem_size, Int) and isinstance(tile_size, Int) and smem_size == tile_size:
        return
    known = not is_symbolic(smem_size) and not is_symbolic(tile_size)
    hint = None
    if known and int(smem_size) == int(tile_size):
        made = [
            f"the {name} becomes {static(layout)}, size {static(extent)}"
            for name, layout, extent in (("shared layout", smem_layout, smem_size), ("CTA V-map", cta_v_map, tile_size))
            if not isinstance(extent, Int)
        ]
        hint = f"cute.static makes sizes static: {'; '.join(made)}"
    raise GBasisError(
        "TMA requires CTA_Tile and SLayout top-level size equivalence.",
        {
            "shared layout": f"{smem_layout}, size {smem_size}",
            "CTA V-map": f"{cta_v_map}, size {tile_size}",
            "rule": "both sizes static and equal",
        },
        hint,
    )


def construct_tma_gbasis(
    gmem_layout: Layout | Tensor,
    smem_layout: Layout | ComposedLayout | Tensor,
    cta_v_map: Layout,
    internal_dtype: DTypeLike | None = None,
    *,
    dtype: DTypeLike | None = None,
    split_oversize: bool = False,
) -> GBasis:
    """Construct the G-basis of a tile: the box of one instruction, with the global mode of each box mode.

    Args:
        gmem_layout: the global tensor, or its layout in elements.
        smem_layout: layout of the tile in shared memory, in elements; a swizzle is ignored.
        cta_v_map: CTA value index -> global mode, see `make_cta_v_map`.
        internal_dtype: the element type of the tensor map; default: the type of the tensor.
        dtype: element type, if `gmem_layout` is a layout without a type; default: the internal type.
        split_oversize: split a box mode above 256 elements into several instructions.
    Raises:
        GBasisError: the tile and the shared layout differ in size, or have no common vectorization.
    Source:
        cute/atom/copy_traits_sm90_tma.hpp, detail::construct_tma_gbasis; `split_oversize` follows CuTe DSL.

    >>> gmem = Layout((1024, 512), (512, Int(1)))
    >>> v_map = make_cta_v_map(gmem.shape, (Int(128), Int(64)))
    >>> print(construct_tma_gbasis(gmem, Layout((Int(128), Int(64)), LayoutRight), v_map))
    (_64,_128):(_1@1,_1@0)
    """
    gmem, smem = domain_of(gmem_layout), domain_of(smem_layout)
    kind = gmem_layout.element_type if isinstance(gmem_layout, Tensor) and dtype is None else dtype
    bits = _types(kind, internal_dtype)
    expect(cta_v_map, Layout, "the CTA V-map")
    return gbasis_of(gmem, smem, cta_v_map, make_identity_layout(gmem.shape), bits, split_oversize)


def gbasis_of(
    gmem: Layout, smem: Layout, cta_v_map: Layout, gbasis: Layout, bits: tuple[int, int], split_oversize: bool
) -> GBasis:
    """Construct the G-basis of plain layouts from the identity layout of the global shape and both bit widths."""
    old, new = bits
    _expect_tile(smem, cta_v_map)
    inv_smem_layout = right_inverse(smem)
    sidx2gmode_full = coalesce(composition(cta_v_map, inv_smem_layout))
    smem_rank = _leading_unit_modes(sidx2gmode_full)
    if smem_rank == 0:
        raise GBasisError(
            "Could not find a common tile-gmem vectorization. Does the Tile select out major GMEM modes?",
            {
                "shared layout": smem,
                "inverse": inv_smem_layout,
                "shared index -> global mode": sidx2gmode_full,
                "rule": "the run that is contiguous in shared memory must step by 1 through a global mode",
            },
        )
    sidx2gmode = take(sidx2gmode_full, 0, smem_rank)
    tile_gstride = recast_layout(composition(gmem, sidx2gmode), old, new)
    tma_gstride = coalesce_256(tile_gstride)
    tile_gbasis = make(tile_gstride.shape, composition(gbasis, sidx2gmode).stride)
    sizes = modes(tma_gstride.shape)
    box = make(sizes, compact_left(sizes)[0])
    tma_gbasis_tile = composition(tile_gbasis, box)
    gmem_t = recast_layout(gmem, old, new)
    remaining = remaining_bases(gmem_t, gbasis, tma_gbasis_tile)
    full = make(
        (*modes(tma_gbasis_tile.shape), *(STATIC_ONE,) * len(remaining)),
        (*modes(tma_gbasis_tile.stride), *remaining),
    )
    tma_gbasis = group_modes(full, min(rank_of(full.shape), MAX_RANK - 1), -1)
    notes = _notes(tile_gstride, tma_gstride, full, smem_rank, sidx2gmode_full)
    if expect(split_oversize, bool, "split_oversize"):
        tma_gbasis, note = split_basis(tma_gbasis, gmem_t)
        notes += note
    return GBasis(
        tma_gbasis,
        GBasisTrace(
            cta_v_map,
            inv_smem_layout,
            sidx2gmode_full,
            smem_rank,
            sidx2gmode,
            tile_gstride,
            tma_gstride,
            tile_gbasis,
            tma_gbasis_tile,
            tma_gbasis,
            notes,
        ),
    )


def _types(dtype: DTypeLike | None, internal_dtype: DTypeLike | None) -> tuple[int, int]:
    """Return the widths of the tensor's elements and of the internal type in bits.

    Both are equal if only one type is given.
    """
    if internal_dtype is None:
        return 8, 8
    new = as_dtype(internal_dtype).bits
    return new if dtype is None else as_dtype(dtype).bits, new


def _leading_unit_modes(layout: Layout) -> int:
    count = 0
    for d in modes(layout.stride):
        value = d.value if isinstance(d, ScaledBasis) else d
        if not isinstance(value, Int) or value != 1:
            break
        count += 1
    return count


def remaining_bases(gmem: Layout, gbasis: Layout, tile: Layout) -> list[ScaledBasis]:
    """List the basis elements of the global modes that have an extent and that the box does not cover.

    A mode has no extent if it has static size 1 or static stride 0.
    """
    walked = leaves(tile.stride)
    out = []
    for s, d, e in zip(leaves(gmem.shape), leaves(gmem.stride), leaves(gbasis.stride), strict=True):
        if is_one(s) or is_zero(d):
            continue
        if e not in walked:
            out.append(e)
    return out


def exact_leaves(sizes: list[int], strides: list[int]) -> int:
    """Count the leading global modes of a collapsed mode that one run of equal steps covers exactly.

    The step is the greatest common divisor of the strides.

    >>> exact_leaves([2, 2], [64, 128]), exact_leaves([2, 2], [64, 256]), exact_leaves([1, 2], [64, 256])
    (2, 1, 1)
    """
    unit = math.gcd(*strides)
    reached = unit
    for i, (n, d) in enumerate(zip(sizes, strides, strict=True)):
        if n > 1:
            if d != reached:
                return i
            reached = n * d
    return len(sizes)


def _collapsed(gbasis: Layout, mode: int, gmem: Layout) -> tuple[list[int], list[int]] | None:
    """(sizes, strides) of the global modes that share a mode of the map.

    The result is None if the map's mode is one global mode, or if a value is symbolic.
    """
    steps = leaves(modes(gbasis.stride)[mode])
    if len(steps) < 2:
        return None
    paths = [tuple(getattr(d, "modes", ())) for d in steps]
    sizes = [value_of(n) for n in leaves(modes(gbasis.shape)[mode])]
    if len(paths) != len(sizes):
        return None
    strides = [value_of(at(gmem.stride, path)) for path in paths]
    if not all(isinstance(n, int) for n in (*sizes, *strides)):
        return None
    return sizes, strides


def exact_part(gbasis: Layout, mode: int, gmem: Layout) -> Tree | None:
    """Shape of the part of a collapsed mode that one box can cover; None if one box can cover the whole mode."""
    found = _collapsed(gbasis, mode, gmem)
    if found is None:
        return None
    sizes, strides = found
    count = exact_leaves(sizes, strides)
    return None if count == len(sizes) else tuple([STATIC[n if i < count else 1] for i, n in enumerate(sizes)])


def check_collapsed(gmem: Layout, gbasis: Layout) -> list[Diagnostic]:
    """Find the first collapsed mode whose box does not match the tile; `gmem` is in elements of the internal type."""
    for mode in range(len(modes(gbasis.shape))):
        found = _collapsed(gbasis, mode, gmem)
        if found is not None and exact_leaves(*found) < len(found[0]):
            sizes, strides = found
            unit = f"steps of {math.gcd(*strides)} elements"
            sizes_text, strides_text = (f"({','.join(map(str, numbers))})" for numbers in (sizes, strides))
            must = f"be the tile's {sizes_text} elements with strides {strides_text}, which do not form such a run"
            return [Diagnostic("collapsed_box", f"boxDim[{mode}]", math.prod(sizes), unit, must, mode=mode)]
    return []


def split_basis(layout: Layout, gmem: Layout) -> tuple[Layout, tuple[str, ...]]:
    """Cut a box that one instruction can't move into a smaller one.

    The first box mode above 256 is cut to its largest divisor of at most 256. A box over collapsed modes is cut to the
    part whose elements are a constant stride apart. The modes after the cut get size 1, because the box must stay
    contiguous in shared memory.

    Args:
        layout: a static G-basis. gmem: the global layout in elements of the internal type.
    Returns:
        the G-basis with the smaller box, and a note for each cut.
    Raises:
        InvalidTypeError: an argument is not a layout, or a size of the G-basis is not static.

    >>> from cute_py.notation import parse
    >>> print(split_basis(parse("(_64,_512):(_1@1,_1@0)"), parse("(1024,128):(128,_1)"))[0])
    (_64,_256):(_1@1,_1@0)
    """
    expect(layout, Layout, "a G-basis")
    expect(gmem, Layout, "the global layout")
    if not all(type(n) is Int for n in leaves(layout.shape)):
        raise InvalidTypeError(
            "a G-basis needs static sizes; cute.static(layout) makes them static", {"G-basis": layout}
        )
    notes: list[str] = []
    cut = False

    def fit(shape: Tree, budget: int) -> Tree:
        nonlocal cut
        if type(shape) is tuple:
            out: list[Tree] = []
            for s in shape:
                out.append(fit(s, budget))
                budget = max(1, budget // _extent(out[-1]))
            return tuple(out)
        if cut:
            return STATIC_ONE
        size: int = value_of(shape)
        if size <= budget:
            return shape
        cut = True
        return STATIC[max(n for n in range(1, budget + 1) if size % n == 0)]

    new = []
    for i, s in enumerate(modes(layout.shape)):
        exact = exact_part(layout, i, gmem)
        fitted = fit(s if exact is None else exact, _MAX_EXTENT)
        cut = cut or exact is not None
        if fitted != s and not notes:
            notes.append(
                f"box mode {i} of {_extent(s)} elements is cut to {_extent(fitted)}, so a tile takes "
                "several instructions"
            )
        new.append(fitted)
    return make(tuple(new), layout.stride), tuple(notes)


def _extent(shape: Tree) -> int:
    return math.prod(map(int, leaves(shape)))


def _notes(tile: Layout, merged: Layout, full: Layout, rank: int, walk: Layout) -> tuple[str, ...]:
    out = []
    if rank < rank_of(walk.shape):
        out.append(f"shared memory is contiguous beyond the box, but mode {rank} of {walk} does not step by 1")
    if rank_of(merged.shape) < len(leaves(tile.shape)):
        out.append(f"{tile} is contiguous in global memory too and was merged to {merged}")
    if rank_of(full.shape) > MAX_RANK:
        out.append(f"the rank is {rank_of(full.shape)}, so modes 4 and up share the last mode of the tensor map")
    return tuple(out)
