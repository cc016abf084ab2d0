"""tma_partition: from tiles to the instructions that copy them.

A tile is a number of slots of `num_val_src` elements, each one instruction. The shared layout says in which order the
elements of a tile lie in shared memory; read in that order and cut into slots, both tensors get the modes
((TMA, TMA_Iter), Rest...). Of C CTAs that share a tile by multicast, CTA c starts at element c * slot / C of every
slot: the mode keeps its full size, the descriptor's box is smaller.
Source: cute/atom/copy_traits_sm90_tma.hpp, tma_partition.
"""

from __future__ import annotations

from typing import Any

from cute_py.argument_checks import expect_having
from cute_py.errors import InvalidTypeError, StaticAssertError, given
from cute_py.layout.coalesce import coalesce
from cute_py.layout.composition import composition
from cute_py.layout.coordinate import domain_offset
from cute_py.layout.coprofile import cosize
from cute_py.layout.int_tuple import rank, size
from cute_py.layout.inverse import right_inverse
from cute_py.layout.layout import Layout, domain_of, joined
from cute_py.layout.leaf import Int, Tree
from cute_py.layout.tiling import logical_divide, tile_to_shape
from cute_py.layout.trees import has_underscore
from cute_py.tensor.tensor import Tensor
from cute_py.tma.atom.multicast import expect_cta


def tma_partition(
    atom: Any, cta_coord: Tree, cta_layout: Layout, stensor: Tensor, gtensor: Tensor
) -> tuple[Tensor, Tensor]:
    """(global partition, shared partition) of CTA `cta_coord`, modes ((TMA, TMA_Iter), Rest...).

    Args:
        atom: anything with `num_val_src`, the elements of one instruction slot.
        cta_coord, cta_layout: the CTA and the layout that numbers the CTAs of a multicast; `Int(0)` and
            `Layout(Int(1))` without.
        stensor: shared tensor, mode 0 the tile. gtensor: TMA tensor, mode 0 the tile.
    Raises:
        StaticAssertError: the tiles differ in size. InvalidTypeError: no tensors, or no layout. InvalidValueError: a
            coordinate outside the layout of the CTAs.

    >>> x = make_tensor(make_gmem_ptr(4096, "float16"), Layout((1024, 512), (512, Int(1))))
    >>> smem = cute.tma.make_smem_layout("K", "128B", "float16", (128, 64))
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, smem)
    >>> tiles = zipped_divide(atom.get_tma_tensor(), (Int(128), Int(64)))
    >>> stile = group_modes(make_tensor(make_smem_ptr(0, "float16"), atom.tile), 0, 2)
    >>> gmem, shared = cute.tma.tma_partition(atom, Int(0), Layout(Int(1)), stile, tiles)
    >>> print(gmem)
    ArithTuple(_0,_0) o (((_64,_128),_1),(8,8)):(((_1@0,_1@1),_0),(_128@1,_64@0))
    """
    expect_having(atom, ("num_val_src",), "a TMA atom")
    for name, tensor in (("stensor", stensor), ("gtensor", gtensor)):
        if not isinstance(tensor, Tensor):
            raise InvalidTypeError(f"tma_partition takes tensors; {name} is {type(tensor).__name__}")
    if not isinstance(cta_layout, Layout):
        raise InvalidTypeError(f"the CTAs of a multicast are numbered by a layout, got {given(cta_layout)}")
    if has_underscore(cta_coord):
        raise InvalidTypeError(f"the coordinate of one CTA has no free modes, got {given(cta_coord)}")
    expect_cta(cta_coord, cta_layout)
    smem = domain_of(stensor)[0]
    if size(smem) != size(gtensor, 0):
        raise StaticAssertError(
            "size<0>(stensor) == size<0>(gtensor)",
            {
                "shared tile": f"{smem}, {size(smem)} elements",
                "global tile": f"{gtensor.layout[0]}, {size(gtensor, 0)} elements",
                "rule": "mode 0 of both is the tile; group its modes first",
            },
            "cute.group_modes(tensor, 0, rank of the tile)",
        )
    slots = tile_layout(smem, atom.num_val_src)
    offset = cta_layout(cta_coord) * (Int(atom.num_val_src) // cosize(cta_layout))
    return _slotted(gtensor, slots, offset), _slotted(stensor, slots, offset)


def tile_layout(smem: Layout, num_val_src: int) -> Layout:
    """((slot), (slots)) -> coordinate of the tile: the order of shared memory, cut into instructions."""
    inverse = right_inverse(smem)
    order = tile_to_shape(joined([inverse]), size(smem))
    layout: Layout = logical_divide(order, Layout(Int(num_val_src)))
    return layout


def _slotted(tensor: Tensor, slots: Layout, offset: Any) -> Tensor:
    n = int(rank(tensor))
    composed = composition(tensor, (slots, *(None,) * (n - 1)))
    merged = coalesce(composed, ((Int(1), Int(1)),))
    moved: Tensor = domain_offset(((offset, Int(0)), *(Int(0),) * (n - 1)), merged)
    return moved
