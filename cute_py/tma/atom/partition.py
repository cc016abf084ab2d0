"""Partition tiles into the slices of CTAs and the instructions that copy them: `tma_partition`, and C++'s TiledCopy.

A tile consists of slots of `num_val_src` elements; one instruction copies one slot. The shared layout defines the order
of the tile's elements in shared memory. `tma_partition` reorders both tensors to that order and cuts them into slots,
so that their modes become ((TMA, TMA_Iter), Rest...). If C CTAs share a tile by multicast, CTA c starts at element c *
slot / C of every slot: the mode TMA keeps its full size, and the descriptor's box is smaller. `make_tma_copy_tiled`
makes the `TiledCopy` that C++'s make_tma_copy returns: CTAs take the role of threads, and its `layout_TV` maps (CTA,
value) to the tile.

The global tensor is partitioned in the form of the TMA tensor, which has coordinates as its elements. Its strides run
along the modes of the tensor map, so tiling and slicing it gives the coordinates that the instruction needs. The origin
is a coordinate of static zeros, one per mode of the map.

Bit i of a multicast mask is CTA i of the cluster. The mask covers the CTAs along the modes that share a tile: N for a
tile of A, M for a tile of B.

Source: cute/atom/copy_traits_sm90_tma.hpp, tma_partition, make_tma_copy_tiled, get_tma_tensor and
create_tma_multicast_mask; cute/atom/copy_atom.hpp, TiledCopy and ThrCopy. Differs: in C++, the origin of the TMA tensor
has as many zeros as the highest mode that a stride names. If no stride names the last modes, C++'s coordinate is
shorter than the map's rank; cute_py pads it. For run-time layouts of rank 1, C++ computes the mask by a shortcut that
gives 0 if shape * stride is 0; cute_py uses C++'s generic loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cute_py.argument_checks import expect, expect_having, expect_integer, is_integer
from cute_py.arith_tuple.arith_tuple import ArithTuple
from cute_py.arith_tuple.iterators import ArithTupleIterator
from cute_py.dtypes import DTypeLike, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError, given
from cute_py.layout.arguments import Tree, underscore
from cute_py.layout.coalesce import coalesce
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.composition import composition
from cute_py.layout.coordinate import domain_offset, slice_and_offset
from cute_py.layout.int_tuple import congruent, is_static, product_each, rank, size
from cute_py.layout.inverse import right_inverse
from cute_py.layout.layout import Layout, cosize, domain_of, has_numbers, joined
from cute_py.layout.leaf import Int
from cute_py.layout.tiling import logical_divide, tile_to_shape
from cute_py.layout.trees import check_depth, has_underscore, leaves
from cute_py.targets import MAX_CLUSTER
from cute_py.tensor.tensor import Tensor
from cute_py.tma.descriptor.fields import MAX_RANK

if TYPE_CHECKING:
    from cute_py.atom.tiled_copy import TiledCopy

_HEADER: Final = "cute/atom/copy_traits_sm90_tma.hpp"


def expect_cta(coord: Tree, layout: Layout, what: str = "the coordinate of a CTA") -> None:
    """Refuse a CTA coordinate that is outside the bounds of a layout. Entries that are None, `_` or symbols always
    pass.

    A layout is a function of all integers, so it also gives numbers to CTAs that do not exist; CuTe does not check the
    bounds.

    Raises:
        InvalidValueError: an entry of the coordinate is below 0, or not below the size of its mode.

    >>> expect_cta((1, 1), Layout((1, 2)))
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidValueError: the coordinate of a CTA is (1, 1); must be in (1,2):(_1,1)
    """
    if _outside(coord, layout.shape):
        raise InvalidValueError(f"{what} is {given(coord)}; must be in {layout}")


def _outside(coord: Tree, shape: Tree) -> bool:
    if isinstance(coord, tuple):
        if not isinstance(shape, tuple) or len(coord) != len(shape):
            return False  # not congruent: the layout raises the error
        return any(_outside(c, s) for c, s in zip(coord, shape, strict=True))
    if not is_integer(coord):
        return False
    extent = size(shape)
    number = int(coord)  # type: ignore[call-overload]
    return number < 0 or (is_integer(extent) and number >= int(extent))


def create_tma_multicast_mask(cluster_layout_vmnk: Layout, coord: Tree, *modes: int) -> int:
    """Return the 16-bit mask of the CTAs that share a load with the CTA at `coord`.

    Args:
        cluster_layout_vmnk: CTA coordinate (v, m, n, k) -> CTA number in the cluster.
        coord: coordinate of the loading CTA, with `_` (or None) in the modes whose CTAs share the load.
        modes: other modes of `coord` to replace by `_`.
    Raises:
        InvalidTypeError: the layout is not a layout, or a mode is not an integer.
        InvalidValueError: a coordinate is outside the cluster, a mode does not exist, or a CTA number is below 0 or
            above 15.

    >>> layout = Layout((Int(2), Int(2), Int(4), Int(1)), (Int(1), Int(2), Int(4), Int(0)))
    >>> create_tma_multicast_mask(layout, (0, 0, 0, 0), 1), create_tma_multicast_mask(layout, (0, 0, 1, 0), 1)
    (5, 80)
    """
    if not isinstance(cluster_layout_vmnk, Layout):
        raise InvalidTypeError(
            f"cluster_layout_vmnk must be a layout that numbers the CTAs of a cluster, got {given(cluster_layout_vmnk)}"
        )
    coord = tuple(coord) if isinstance(coord, list) else coord
    check_depth(coord)
    expect_cta(coord, cluster_layout_vmnk)
    parts = list(coord) if isinstance(coord, tuple) else [coord]
    for mode in modes:
        number = expect_integer(mode, "a mode")
        if not 0 <= number < len(parts):
            raise InvalidValueError(
                f"mode {number} does not exist in a coordinate of rank {len(parts)}", {"coordinate": coord}
            )
        parts[number] = underscore
    coord = tuple(parts) if isinstance(coord, tuple) else parts[0]
    if not has_underscore(coord):
        numbers = [expect_integer(cluster_layout_vmnk(coord), "the index of a CTA")]
    else:
        layout, offset = slice_and_offset(coord, cluster_layout_vmnk)
        numbers = [expect_integer(offset, "the index of a CTA")]
        if not has_numbers(layout):
            raise InvalidTypeError(
                "the layout that numbers the CTAs of a cluster must consist of known integers", {"layout": layout}
            )
        for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
            steps = range(min(int(n), MAX_CLUSTER + 1)) if d else range(1)  # a stride of 0 names no further CTA
            numbers = sorted({number + i * int(d) for number in numbers for i in steps})
            _check(numbers, cluster_layout_vmnk)
    _check(numbers, cluster_layout_vmnk)
    return sum(1 << n for n in numbers)


def _check(numbers: list[int], layout: Layout) -> None:
    wrong = [n for n in numbers if not 0 <= n < MAX_CLUSTER]
    if wrong:
        raise InvalidValueError(
            f"the multicast mask has no bit for CTA {wrong[0]}; must be 0 to {MAX_CLUSTER - 1}", {"layout": layout}
        )


def tma_partition(
    atom: Any, cta_coord: Tree, cta_layout: Layout, stensor: Tensor, gtensor: Tensor
) -> tuple[Tensor, Tensor]:
    """Partition the tiles of the TMA tensor and of the shared tensor for the CTA at `cta_coord`.

    The result is (global partition, shared partition), each with the modes ((TMA, TMA_Iter), Rest...).

    Args:
        atom: a TMA atom, or any object with `num_val_src`, the number of elements of one instruction slot.
        cta_coord, cta_layout: the CTA's coordinate, and the layout that maps it to the CTA's number in the multicast.
            Without multicast, pass `Int(0)` and `Layout(Int(1))`.
        stensor: the shared tensor; its mode 0 is the tile. gtensor: the TMA tensor; its mode 0 is the tile.
    Raises:
        StaticAssertError: the tiles differ in size, or a size is known only at run time.
        InvalidTypeError: an argument is not a tensor or layout.
        InvalidValueError: the coordinate is out of bounds of the layout of the CTAs.

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
            raise InvalidTypeError(f"tma_partition takes tensors, but {name} is a {type(tensor).__name__}")
    if not isinstance(cta_layout, Layout):
        raise InvalidTypeError(
            f"cta_layout must be a layout that numbers the CTAs of a multicast, got {given(cta_layout)}"
        )
    if has_underscore(cta_coord):
        raise InvalidTypeError(f"the coordinate of one CTA can't contain `_`, got {given(cta_coord)}")
    expect_cta(cta_coord, cta_layout)
    smem = domain_of(stensor)[0]
    sizes = size(smem), size(gtensor, 0)
    known = is_static(sizes)
    if sizes[0] != sizes[1] or not known:
        raise StaticAssertError(
            "size<0>(stensor) == size<0>(gtensor)",
            {
                "shared tile": f"{smem}, {sizes[0]} elements",
                "global tile": f"{gtensor.layout[0]}, {sizes[1]} elements",
                "rule": "mode 0 of both tensors must be the tile; group its modes first"
                if known
                else "both sizes must be static",
            },
            "cute.group_modes(tensor, 0, rank of the tile)"
            if known
            else "use Int(n) for the sizes of the tile, or cute.static(layout)",
        )
    slots = tile_layout(smem, atom.num_val_src)
    number: Any = cta_layout(cta_coord)
    offset = number * (Int(atom.num_val_src) // cosize(cta_layout))
    return _slotted(gtensor, slots, offset), _slotted(stensor, slots, offset)


def tile_layout(smem: Layout, num_val_src: int) -> Layout:
    """Return the layout (element of a slot, slot) -> tile index, with the elements in the order of shared memory."""
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


def make_tma_copy_tiled(
    smem_layout: Layout | ComposedLayout | Tensor,
    cta_v_map: Layout,
    num_val_src: int,
    num_multicast: int = 1,
    ctas: int = 1,
    *,
    name: str = "SM90_TMA_LOAD",
    dtype: DTypeLike | None = None,
) -> TiledCopy:
    """Make the tiled copy of an operation that `ctas` CTAs issue together. CTAs take the role of its threads.

    Args:
        num_val_src: elements of one instruction. num_multicast: CTAs that share the tile.
        name, dtype: C++'s operation and the element type, for the copy's atom.
    Raises:
        InvalidTypeError, InvalidValueError: an argument has the wrong type, or is less than 1.
        StaticAssertError: 'Stride Divisibility Condition' or 'tile_to_shape: block shape does not divide the target
            shape.' if the slots do not tile the value map; 'TiledCopy uses too few thrs for selected CopyAtom' if a
            pair of CTAs issues the atom and fewer CTAs share the tile. The messages are CuTe's.

    >>> from cute_py.notation import parse
    >>> print(make_tma_copy_tiled(parse("(_128,_64):(_64,_1)"), parse("(_128,_64):(_1@0,_1@1)"), 8192).tiler_mn)
    (Int(128), Int(64))
    """
    expect(cta_v_map, Layout, "the value map")
    expect(name, str, "name")
    dtype = None if dtype is None else as_dtype(dtype)
    num_val_src = expect_integer(num_val_src, "num_val_src")
    num_multicast, ctas = expect_integer(num_multicast, "num_multicast"), expect_integer(ctas, "ctas")
    if min(num_val_src, num_multicast, ctas) < 1:
        raise InvalidValueError(
            f"num_val_src, num_multicast and ctas must be at least 1, got {num_val_src}, {num_multicast} and {ctas}"
        )
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
    values = Layout((Int(ctas), Int(num_val_src)))
    bits = num_val_src * (dtype.bits if dtype else 1)
    whole, parts = f"{name}<{bits}>", Layout((Int(ctas), Int(bits)))  # C++: Copy_Traits<name, bits of one instruction>
    arch, ptx = name.partition("_")[0].lower(), "cp.async.bulk.tensor"
    from cute_py.atom.copy_atom import CopyAtom, CopyTraits  # imported here, because most copies have no threads
    from cute_py.atom.tiled_copy import TiledCopy

    traits = CopyTraits(whole, name, arch, "sm90_tma", Layout(Int(ctas)), parts, parts, parts, {}, ptx, _HEADER)
    atom = CopyAtom(traits, dtype, values, values, values)
    return TiledCopy(atom, joined([starts, all_values]), product_each(cta_v_map.shape))


def tma_tensor(shape: Tree, g_stride: Tree, rank: int) -> Tensor:
    """Return the coordinate tensor of a shape that is congruent with the shape of the global tensor.

    Args:
        shape: the shape, or an object that has one. g_stride: basis strides, one element per mode of the tensor.
        rank: the rank of the tensor map.
    Raises:
        StaticAssertError: the shapes are not congruent.
        InvalidValueError: the rank is above 5.

    >>> print(tma_tensor((1024, 512), (E(1), E(0)), 2))
    ArithTuple(_0,_0) o (1024,512):(_1@1,_1@0)
    """
    rank = expect_integer(rank, "the rank of a tensor map")
    if not 0 <= rank <= MAX_RANK:
        raise InvalidValueError(f"a tensor map has rank {rank}; must be 1 to {MAX_RANK}")
    if hasattr(shape, "shape") and not isinstance(shape, (int, tuple)):
        shape = shape.shape  # type: ignore[union-attr]
    if not congruent(shape, g_stride):
        raise StaticAssertError(
            "is_congruent<decltype(g_shape), decltype(aux_params_.g_stride_)>::value",
            {"shape": shape, "strides of the TMA tensor": g_stride, "rule": "the shape must be congruent with gmem's"},
        )
    return Tensor(ArithTupleIterator(ArithTuple(*[Int(0)] * rank)), Layout(shape, g_stride))
