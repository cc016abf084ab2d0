"""The TMA G-basis: which box of the global tensor one TMA instruction moves, and along which of its modes.

    gmem (1024,512):(512,_1), tile (_128,_64), smem Sw<3,4,3> o ((_8,_16),(_64,_1)):((_64,_512),(_1,_0))
        ->  (_64,_128):(_1@1,_1@0)        a box of 64 elements of mode 1 by 128 of mode 0

The instruction writes a contiguous run of shared memory. So: invert the shared layout to get the run, ask the CTA's
value map which global mode each part of the run walks, keep the part that walks in steps of 1, and merge what is
contiguous in global memory too. The order of the modes is the order of shared memory, innermost first.
Source: cute/atom/copy_traits_sm90_tma.hpp, detail::construct_tma_gbasis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cute_py.argument_checks import expect, expect_fields
from cute_py.arith_tuple.scaled_basis import basis_value
from cute_py.arith_tuple.tensors import make_identity_layout
from cute_py.dtypes import as_dtype
from cute_py.errors import GBasisError, InvalidTypeError
from cute_py.layout.coalesce import coalesce
from cute_py.layout.composition import composition
from cute_py.layout.domain import domain_of
from cute_py.layout.int_tuple import size
from cute_py.layout.inverse import right_inverse
from cute_py.layout.layout import Layout, make
from cute_py.layout.leaf import Int, Tree, is_symbolic
from cute_py.layout.modes import group_modes, take
from cute_py.layout.recast import recast_layout
from cute_py.layout.tensor import Tensor
from cute_py.layout.trees import check_depth, is_underscore, leaves, modes, rank_of
from cute_py.tma.gbasis.coalesce_256 import MAX_BOX_EXTENT, coalesce_256
from cute_py.tma.gbasis.collapsed import exact_part
from cute_py.tma.gbasis.trace import GBasisTrace

MAX_TMA_RANK = 5
"""Modes of a tensor map."""


@dataclass(frozen=True, slots=True)
class GBasis:
    """The G-basis `layout` (box shape : global modes) with the `trace` of how it came about."""

    layout: Layout
    trace: GBasisTrace

    def __post_init__(self) -> None:
        expect_fields(self)

    def __str__(self) -> str:
        return str(self.layout)


def make_cta_v_map(shape: Tree, tiler: Any) -> Layout:
    """CTA value index -> global mode: the identity of the tensor's shape, composed with the tile.

    Raises:
        InvalidTypeError: a tile that is not made of sizes and plain layouts.
        StaticAssertError: a tile of more modes than the tensor.

    >>> print(make_cta_v_map((1024, 256, 8), (Int(128), Int(64))))
    (_128,_64):(_1@0,_1@1)
    """
    check_depth(tiler)
    _check_tiler(tiler)
    layout: Layout = composition(make_identity_layout(shape), tiler)
    return layout


def _check_tiler(tiler: Any) -> None:
    if type(tiler) is tuple:
        for part in tiler:
            _check_tiler(part)
    elif not isinstance(tiler, (int, Layout)) and not hasattr(tiler, "__index__") and not is_underscore(tiler):
        raise InvalidTypeError(f"a tile is made of sizes and plain layouts, got {tiler}")


def why_not_tile(smem_layout: Layout, cta_v_map: Layout) -> str | None:
    """Why the two can't belong to one copy, in CuTe's words; None if they can."""
    sizes = size(smem_layout), size(cta_v_map)
    if not all(isinstance(n, Int) for n in sizes) or sizes[0] != sizes[1]:
        return "TMA requires CTA_Tile and SLayout top-level size equivalence."
    return None


def _static_hint(smem_layout: Layout, cta_v_map: Layout) -> str | None:
    """What to write where the two sizes are equal and one is known only at run time."""
    sizes = size(smem_layout), size(cta_v_map)
    if is_symbolic(sizes[0]) or is_symbolic(sizes[1]) or int(sizes[0]) != int(sizes[1]):
        return None
    return "write the sizes of the tile and of the shared layout as static ones, Int(128); static(...) makes them so"


def construct_tma_gbasis(
    gmem_layout: Any,
    smem_layout: Any,
    cta_v_map: Layout,
    internal_dtype: Any = None,
    *,
    dtype: Any = None,
    split_oversize: bool = False,
) -> GBasis:
    """The G-basis of a tile.

    Args:
        gmem_layout: the global tensor, or its layout in elements.
        smem_layout: layout of the tile in shared memory, in elements; a swizzle is ignored.
        cta_v_map: CTA value index -> global mode, see `make_cta_v_map`.
        internal_dtype: the type that TMA counts in; default: the tensor's own.
        dtype: element type of `gmem_layout` where that is a bare layout; default: elements of the internal type.
        split_oversize: cut a box mode above 256 elements into several instructions instead of leaving it.
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
    old, new = _types(kind, internal_dtype)
    reason = why_not_tile(smem, expect(cta_v_map, Layout, "the CTA V-map"))
    if reason is not None:
        raise GBasisError(
            reason,
            {
                "shared layout": f"{smem}, size {size(smem)}",
                "CTA V-map": f"{cta_v_map}, size {size(cta_v_map)}",
                "rule": "both sizes static and equal",
            },
            _static_hint(smem, cta_v_map),
        )
    inv_smem_layout = right_inverse(smem)
    sidx2gmode_full = coalesce(composition(cta_v_map, inv_smem_layout))
    smem_rank = _leading_unit_modes(sidx2gmode_full)
    if smem_rank == 0:
        raise GBasisError(
            "Could not find a common tile-gmem vectorization. Does the Tile select out major GMEM modes?",
            {
                "shared layout": smem,
                "inverse": inv_smem_layout,
                "walks the global modes": sidx2gmode_full,
                "rule": "the run that is contiguous in shared memory must step by 1 through a global mode",
            },
        )
    sidx2gmode = take(sidx2gmode_full, 0, smem_rank)
    tile_gstride = recast_layout(composition(gmem, sidx2gmode), old, new)
    tma_gstride = coalesce_256(tile_gstride)
    gbasis = make_identity_layout(gmem.shape)
    tile_gbasis = make(tile_gstride._shape, composition(gbasis, sidx2gmode)._stride)
    box = Layout(modes(tma_gstride.shape))
    tma_gbasis_tile = composition(tile_gbasis, box)
    gmem_t = recast_layout(gmem, old, new)
    remaining = remaining_bases(gmem_t, gbasis, tma_gbasis_tile)
    full = make(
        (*modes(tma_gbasis_tile._shape), *(1,) * len(remaining)),
        (*modes(tma_gbasis_tile._stride), *remaining),
    )
    tma_gbasis = group_modes(full, min(rank_of(full._shape), MAX_TMA_RANK - 1), -1)
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


def _types(dtype: Any, internal_dtype: Any) -> tuple[int, int]:
    """Bits of the tensor's elements and of the internal type; where only one is known they are equal."""
    if internal_dtype is None:
        return 8, 8
    new = as_dtype(internal_dtype).bits
    return new if dtype is None else as_dtype(dtype).bits, new


def _leading_unit_modes(layout: Layout) -> int:
    count = 0
    for d in modes(layout.stride):
        value = basis_value(d)
        if not isinstance(value, Int) or value != 1:
            break
        count += 1
    return count


def remaining_bases(gmem: Layout, gbasis: Layout, tile: Layout) -> list[Any]:
    """Basis elements of the moving modes that the tile does not walk: not static size 1, not static stride 0."""
    walked = leaves(tile._stride)
    out = []
    for s, d, e in zip(leaves(gmem._shape), leaves(gmem._stride), leaves(gbasis._stride), strict=True):
        if (type(s) is int and s == 1) or (type(d) is int and d == 0):
            continue
        if e not in walked:
            out.append(e)
    return out


def split_basis(layout: Layout, gmem: Layout) -> tuple[Layout, tuple[str, ...]]:
    """Cut the first box mode above 256 to its largest divisor of at most 256, and a box over collapsed modes to the
    part that is a run of steps; the modes after it become 1, because the box must stay contiguous in shared memory.

    `gmem` is the global layout in elements of the internal type.
    """
    expect(layout, Layout, "a G-basis")
    expect(gmem, Layout, "the global layout")
    if not all(type(n) is int for n in leaves(layout._shape)):
        raise InvalidTypeError("a G-basis has static sizes", {"G-basis": layout})
    notes: list[str] = []
    cut = False

    def fit(shape: Tree, budget: int) -> Tree:
        nonlocal cut
        if type(shape) is tuple:
            out = []
            for s in shape:
                s = fit(s, budget)
                n = _extent(s)
                budget = max(1, budget // n)
                out.append(s)
            return tuple(out)
        if cut:
            return 1
        if shape <= budget:
            return shape
        cut = True
        return max(n for n in range(1, budget + 1) if shape % n == 0)

    new = []
    for i, s in enumerate(modes(layout._shape)):
        exact = exact_part(layout, i, gmem)
        fitted = fit(s if exact is None else exact, MAX_BOX_EXTENT)
        cut = cut or exact is not None
        if fitted != s and not notes:
            notes.append(f"box mode {i} of {_extent(s)} elements cut to {_extent(fitted)}: several instructions")
        new.append(fitted)
    return make(tuple(new), layout._stride), tuple(notes)


def _extent(shape: Tree) -> int:
    n = 1
    for s in leaves(shape):
        n *= int(s)
    return n


def _notes(tile: Layout, merged: Layout, full: Layout, rank: int, walk: Layout) -> tuple[str, ...]:
    out = []
    if rank < rank_of(walk._shape):
        out.append(f"shared memory is contiguous beyond the box; mode {rank} of {walk} does not step by 1")
    if rank_of(merged._shape) < len(leaves(tile._shape)):
        out.append(f"contiguous in global memory too: {tile} merged to {merged}")
    if rank_of(full._shape) > MAX_TMA_RANK:
        out.append(f"rank {rank_of(full._shape)}: modes 4 and up share the last mode of the tensor map")
    return tuple(out)
