"""The box of an im2col copy by global mode, with the stages that lead to it, as `GBasis` is for a tiled copy.

An im2col box has two modes, channels and pixels: the first two of the walk through shared memory, each of which must
step by one through a mode of the ((w,h,d,n), c) tensor.
Source: cute/atom/copy_traits_sm90_im2col.hpp, make_tma_atom_im2col.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cute_py.arith_tuple.tensors import make_identity_layout
from cute_py.layout.coalesce import coalesce
from cute_py.layout.composition import composition
from cute_py.layout.int_tuple import product_each
from cute_py.layout.inverse import right_inverse
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Tree
from cute_py.layout.modes import flatten, take


@dataclass(frozen=True, slots=True)
class Im2colTrace:
    """The stages on the way to the box; `steps()` gives (name, value, reason), as `GBasisTrace.steps`."""

    cta_v_map: Layout
    inv_smem_layout: Layout
    sidx2gmode_full: Layout
    tma_gbasis: Layout

    def steps(self) -> list[tuple[str, Any, str]]:
        """(name, value, reason) of each stage."""
        return [
            ("cta_v_map", self.cta_v_map, "which global mode each value of the tile comes from"),
            ("inv_smem_layout", self.inv_smem_layout, "right inverse of the shared layout: its longest contiguous run"),
            ("sidx2gmode_full", self.sidx2gmode_full, "composed: where in global memory the run goes"),
            ("tma_gbasis", self.tma_gbasis, "its first two modes: channels and pixels of one box"),
        ]

    def __str__(self) -> str:
        return "\n".join(f"{name:<15} : {value}\n{'':<15}   {why}" for name, value, why in self.steps())


@dataclass(frozen=True, slots=True)
class Im2colBasis:
    """`layout`: the box, of all CTAs of a multicast together, by global mode. `trace`: how it came about."""

    layout: Layout
    trace: Im2colTrace

    def __str__(self) -> str:
        return str(self.layout)


def im2col_basis(smem: Layout, cta_v_map: Layout, shape: Tree) -> Im2colBasis:
    """The box of a tile.

    Args:
        smem: plain layout of the tile in shared memory. cta_v_map: CTA value -> mode of the tensor.
        shape: that of the global tensor, ((w,h,d,n), c) or (c, (w,h,d,n)).
    """
    inverse = right_inverse(smem)
    walk = coalesce(composition(cta_v_map, inverse))
    box = take(flatten(composition(make_identity_layout(product_each(shape)), walk)), 0, 2)
    return Im2colBasis(box, Im2colTrace(cta_v_map, inverse, walk, box))
