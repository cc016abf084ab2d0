"""TiledCopy of a TMA atom: the (CTA, value) view of a tile, and the slices of each CTA.

CTAs play the threads: of C CTAs that share a tile, CTA c's values start at c * slot / C. `layout_tv` maps (CTA, value)
to the tile's coordinates; `partition` gives a CTA its (atom values, rest) of a global or a shared tensor.
Source: cute/atom/copy_traits_sm90_tma.hpp, make_tma_copy_tiled; cute/atom/copy_atom.hpp, TiledCopy and ThrCopy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cute_py.argument_checks import expect, expect_fields, expect_integer, is_integer
from cute_py.errors import InvalidValueError, StaticAssertError
from cute_py.layout.coalesce import coalesce
from cute_py.layout.composition import composition
from cute_py.layout.int_tuple import product_each, rank, size
from cute_py.layout.inverse import right_inverse
from cute_py.layout.layout import Layout, domain_of, joined, make
from cute_py.layout.leaf import Int, Tree
from cute_py.layout.tiling import tile_to_shape, zipped_divide
from cute_py.layout.trees import check_depth, leaves, wholes
from cute_py.tensor.tensor import Tensor
from cute_py.tma.atom.multicast import expect_cta


@dataclass(frozen=True, slots=True)
class TmaTiledCopy:
    """`tiler` (the tile's shape), `layout_tv` ((CTA, value) -> tile coordinate), `num_val_src` of the atom, `ctas` that
    one atom takes (2 where a pair of CTAs issues it)."""

    tiler: Tree
    layout_tv: Layout
    num_val_src: int
    ctas: int = 1

    def __post_init__(self) -> None:
        check_depth(self.tiler)
        for extent in leaves(self.tiler):
            if is_integer(extent):
                expect_integer(extent, "an extent of the tile", 1)
        expect_fields(self)

    def partition(self, tensor: Tensor, cta: Any) -> Tensor:
        """The values of one CTA: ((atom values, atoms), rest of each mode).

        Raises:
            StaticAssertError: the tensor has fewer modes than the tile. InvalidValueError: no such CTA.
        """
        if int(rank(tensor)) < len(self.tiler):
            raise StaticAssertError(
                "Rank of tensor to be partitioned too small.", {"tensor": tensor, "tiler": self.tiler}
            )
        tiled = zipped_divide(tensor, self.tiler)
        by_atom = zipped_divide(self.layout_tv, (Int(self.ctas), Int(self.num_val_src)))
        identity = Layout((Int(self.ctas), Int(self.num_val_src)))
        selected = composition(by_atom, (identity, None))
        values = coalesce(_zipped(selected), (Int(1), (Int(1), Int(1))))
        tensor_tv = composition(tiled, (values, None))
        unfolded = tensor_tv((None, None), None)
        expect_cta(cta, domain_of(unfolded)[0])
        part: Tensor = unfolded(cta, None, wholes(int(rank(tensor))))
        return part

    def __str__(self) -> str:
        return f"TiledCopy {self.tiler} {self.layout_tv}"


def _zipped(layout: Layout) -> Layout:
    """((a,b),(c,d)) -> ((a,c),(b,d))."""
    (a, b), (c, d) = layout._shape
    (e, f), (g, h) = layout._stride
    return make(((a, c), (b, d)), ((e, g), (f, h)))


def make_tiled_copy(
    smem_layout: Any, cta_v_map: Layout, num_val_src: int, num_multicast: int = 1, ctas: int = 1
) -> TmaTiledCopy:
    """The TiledCopy of an atom that `ctas` CTAs issue together.

    Raises:
        StaticAssertError: CuTe's 'Stride Divisibility Condition' or 'tile_to_shape: block shape does not divide the
            target shape.', where the slots do not tile the value map; 'TiledCopy uses too few thrs for selected
            CopyAtom', where a pair of CTAs issues the atom and fewer share the tile.
    """
    expect(cta_v_map, Layout, "the value map")
    num_val_src = expect_integer(num_val_src, "num_val_src")
    num_multicast, ctas = expect_integer(num_multicast, "num_multicast"), expect_integer(ctas, "ctas")
    if min(num_val_src, num_multicast, ctas) < 1:
        raise InvalidValueError(f"{num_val_src} values, {num_multicast} and {ctas} CTAs; must be 1 or more of each")
    inverse = right_inverse(domain_of(smem_layout))
    layout_v = composition(inverse, Int(num_val_src))
    all_values = tile_to_shape(joined([layout_v]), size(cta_v_map))
    cta_map = Layout(Int(num_multicast))
    step = Layout(Int(num_multicast), Int(num_val_src // num_multicast))
    starts = composition(inverse, composition(step, cta_map))
    if num_multicast % ctas:
        raise StaticAssertError(
            "TiledCopy uses too few thrs for selected CopyAtom",
            {"CTAs that share the tile": num_multicast, "CTAs of the atom": ctas},
        )
    return TmaTiledCopy(product_each(cta_v_map.shape), joined([starts, all_values]), num_val_src, ctas)
