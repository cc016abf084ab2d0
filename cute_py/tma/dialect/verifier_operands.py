"""What the partition verifier looks at: the operands of a partition, and the values derived from them, each computed
at its first use. The steps run in order, so that nothing expensive is computed for operands of the wrong kind.

The verifier has two dialects. `seed` is the TMA Atoms reference page: its order, its operand order, types without
quotes. `dsl` is what the builder of CuTe DSL 4.8.1 was observed to do: the multicast check first, the global operand
before the shared one, types in quotes, run-time numbers of the shared layout and the V-map as `?`, and none of the
checks against descriptor limits. Steps 2, 8, 9 and 10 were never observed there; in this dialect their texts are the
reference page's in its style. The numbers of a global tensor are known here and printed: all that were observed had
static global shapes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol, TypeAlias

from cute_py.dtypes import DType, as_dtype
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, given
from cute_py.layout.arguments import Tree
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import product_each, size
from cute_py.layout.layout import Layout, static
from cute_py.layout.leaf import internal_leaf, is_static
from cute_py.layout.recast import smem_ptr_flag
from cute_py.layout.swizzle import Swizzle, get_swizzle_portion
from cute_py.layout.trees import at, leaves, modes, rank_of
from cute_py.tensor.arrays import ArrayEngine
from cute_py.tensor.pointers import Pointer
from cute_py.tensor.tensor import Tensor, make_tensor
from cute_py.tma.atom.gbasis import GBasis, construct_tma_gbasis, make_cta_v_map
from cute_py.tma.atom.op import swizzle_row, why_not_swizzle
from cute_py.tma.atom.partition import tma_tensor
from cute_py.tma.atom.tile_atom import multicast_box, shape_and_stride, tma_strides
from cute_py.tma.dialect.modes import TmaLoadMode, TmaReduceKind, TmaStoreMode

__all__ = ["DIALECTS"]

COMPANION_TEXT: Final = "got num_multicast of "
"""Step 11's other text: a count that is not 1 with a mode that is no multicast. The count follows."""

SharedLayout: TypeAlias = Layout | ComposedLayout
"""Of a tile in shared memory, with its swizzle or without."""


class SupportsDLPack(Protocol):
    """An array of numpy, torch, cupy or JAX."""

    def __dlpack_device__(self) -> tuple[int, int]: ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """Order of the steps, how operands are printed and joined, what is checked. The defaults are the reference page's.

    Attributes:
        known: print run-time integers of the shared layout and the V-map as numbers. quote: around each type. pair:
            between two types.
        trio: order of three operands. companion: step 11's text for a count with a mode that is no multicast.
        limits: does it check more than the kinds of the operands: at most five modes (step 1), strides in multiples of
            16 bytes (4), a swizzle that TMA has (5), a box that a descriptor can hold (9)?
        split_oversize: cut box modes above 256 elements into several instructions.
    """

    name: str
    order: tuple[int, ...] = tuple(range(1, 12))
    known: bool = True
    quote: str = ""
    pair: str = ", and "
    trio: tuple[str, ...] = ("smem", "gmem", "v_map")
    companion: str = COMPANION_TEXT + "{count}"
    limits: bool = True
    split_oversize: bool = False


SEED: Final = Dialect("seed")
DSL: Final = Dialect(
    "dsl",
    order=(11, *range(1, 11)),
    known=False,
    quote="'",
    pair=" and ",
    trio=("gmem", "smem", "v_map"),
    companion="expects a return TMA load type with multicast for num_multicast of {count} but got a return TMA load "
    "type does not support multicast",
    limits=False,
    split_oversize=True,
)
DIALECTS: Final = (SEED, DSL)


def as_dialect(name: Dialect | str) -> Dialect:
    """The dialect of that name.

    Raises:
        InvalidValueError: no such dialect.
    """
    for dialect in DIALECTS:
        if name is dialect or (isinstance(name, str) and name == dialect.name):
            return dialect
    raise InvalidValueError(f"unknown dialect {given(name)}", {"known": ", ".join(d.name for d in DIALECTS)})


_ARRAYS = ("__array_interface__", "__cuda_array_interface__", "__dlpack__")


@dataclass(frozen=True)
class PartitionOperands:
    """The operands of one partition, as given.

    Attributes:
        smem: the tile in shared memory: a layout, a composed layout, or a tensor of a shared pointer.
        gtensor: the global tensor. partitioner: the tile; None: the shape of the shared layout.
        explicit_v_map: the CTA V-map, where it is not the identity composed with the partitioner.
        num_multicast: CTAs; None where the operand is absent.
    """

    smem: SharedLayout | Tensor
    gtensor: Tensor | SupportsDLPack
    partitioner: Tree | None
    explicit_v_map: Layout | None
    load_mode: TmaLoadMode | None
    store_mode: TmaStoreMode | None
    reduce_kind: TmaReduceKind | None
    num_multicast: int | None
    architecture: int = 90
    dialect: Dialect = SEED

    @property
    def kind(self) -> str:
        """'load', 'store' or 'reduce'."""
        if self.reduce_kind is not None:
            return "reduce"
        return "load" if self.store_mode is None else "store"

    @property
    def multicast(self) -> int:
        """CTAs that share the load: 1 unless it is a multicast load with a count above 1."""
        if self.kind != "load" or self.load_mode is None or not self.load_mode.is_multicast:
            return 1
        return max(1, self.num_multicast or 1)

    @cached_property
    def gmem(self) -> Tensor | None:
        """The global tensor, or None where the operand is not one."""
        found = self.gtensor
        if not isinstance(found, Tensor):
            if not any(hasattr(found, name) for name in _ARRAYS):
                return None
            found = make_tensor(found)
        return found if in_global_memory(found) else None

    @cached_property
    def shown_gmem(self) -> Tensor | SupportsDLPack:
        """The global operand as it is printed."""
        return self.gtensor if self.gmem is None else self.gmem

    @cached_property
    def gmem_layout(self) -> Layout | None:
        """Of the global tensor, if it is a plain layout."""
        layout = None if self.gmem is None else self.gmem.layout
        return layout if isinstance(layout, Layout) else None

    @cached_property
    def dtype(self) -> DType:
        """Of the global tensor's elements."""
        return as_dtype(None if self.gmem is None else self.gmem.element_type)

    @cached_property
    def smem_layout(self) -> SharedLayout:
        """The shared operand as a layout or composed layout; anything else as it is."""
        if not isinstance(self.smem, Tensor):
            return self.smem
        swizzle = getattr(self.smem.engine, "swizzle", None)
        if isinstance(swizzle, Swizzle) and swizzle.bits and isinstance(self.smem.layout, Layout):
            return ComposedLayout(swizzle, smem_ptr_flag(self.smem.element_type.bits), self.smem.layout)
        layout: SharedLayout = self.smem.layout
        return layout

    @cached_property
    def plain_smem(self) -> Layout | None:
        """The layout under the swizzle, or None where there is no plain one."""
        layout = getattr(self.smem_layout, "inner", self.smem_layout)
        return layout if isinstance(layout, Layout) else None

    @cached_property
    def swizzle(self) -> Swizzle:
        """Of the shared operand."""
        return get_swizzle_portion(self.smem_layout)

    @property
    def cu_swizzle(self) -> int:
        """The driver's swizzle code; 0 for one that TMA does not have (a dialect without limits takes it)."""
        return swizzle_row(self.swizzle).code if why_not_swizzle(self.swizzle) is None else 0

    @cached_property
    def cta_v_map(self) -> Layout | None:
        """CTA value index -> global mode, or None where the operands have none."""
        if self.explicit_v_map is not None:
            return self.explicit_v_map if isinstance(self.explicit_v_map, Layout) else None
        shape, tiler = getattr(self.shown_gmem, "shape", None), self.tiler
        if shape is None or tiler is None:
            return None
        try:
            return make_cta_v_map(shape, tiler)
        except CuteError:
            return None

    @property
    def tiler(self) -> Tree | None:
        """The tile with plain ints taken as static, or the shape of the shared layout."""
        if self.partitioner is not None:
            return static(self.partitioner)
        return None if self.plain_smem is None else static(mode_sizes(self.plain_smem))

    @cached_property
    def gbasis(self) -> GBasis | None:
        """The G-basis, or None where there is none."""
        if self.gmem_layout is None or self.plain_smem is None or self.cta_v_map is None:
            return None
        operands = (self.gmem_layout, self.plain_smem, self.cta_v_map)
        try:
            full = construct_tma_gbasis(*operands)
            split = self.dialect.split_oversize and static_extents(full.layout)
            return construct_tma_gbasis(*operands, split_oversize=True) if split else full
        except CuteError:
            return None

    @property
    def uncollapsed_rank(self) -> int:
        """Modes of the G-basis before those beyond the fourth share one: what the tile has, and what it leaves out."""
        if self.gbasis is None:
            return 0
        tile, full = self.gbasis.trace.tma_gbasis_tile, self.gbasis.layout
        return rank_of(tile._shape) + len(leaves(full._stride)) - len(leaves(tile._stride))

    @cached_property
    def box(self) -> tuple[tuple[int, ...], bool]:
        """(box that one CTA issues, does the multicast count fit it?); a count that does not fit leaves the box
        undivided. Empty where an extent is not static."""
        if self.gbasis is None or not static_extents(self.gbasis.layout):
            return (), False
        full = [math.prod(leaves(mode)) for mode in modes(self.gbasis.layout._shape)]
        cut, problem = multicast_box(full, self.multicast)
        return (tuple(full), False) if problem is not None else (tuple(cut), True)

    @cached_property
    def steps(self) -> list[int] | None:
        """Elements between neighbours along each TMA mode in global memory; None where one is not known."""
        if self.gbasis is None or self.gmem_layout is None:
            return None
        try:
            return shape_and_stride(self.gmem_layout, self.gbasis.layout)[1]
        except InvalidTypeError:
            return None

    @cached_property
    def tma_layout(self) -> Layout | None:
        """The coordinate tensor's layout, or None where the G-basis does not name leaf modes of the global tensor."""
        gmem, basis = self.gmem_layout, self.gbasis
        if gmem is None or basis is None or not names_leaves(gmem._shape, basis.layout._stride):
            return None
        bits, rank = self.dtype.bits, rank_of(basis.layout._shape)
        byte_steps = [d * bits // 8 for d in self.steps or [0] * rank]
        try:
            tensor = tma_tensor(gmem.shape, tma_strides(gmem, gmem, basis.layout, byte_steps, (bits, bits)), rank)
        except CuteError:
            return None
        return tensor.layout if isinstance(tensor.layout, Layout) else None


def in_global_memory(tensor: Tensor) -> bool:
    """A tensor of a global pointer or an array, none of coordinates?"""
    engine = tensor.engine
    return isinstance(engine, (Pointer, ArrayEngine)) and getattr(engine, "space", "gmem") == "gmem"


def static_extents(layout: Layout) -> bool:
    """Are all sizes static?"""
    return all(type(s) is int for s in leaves(layout._shape))


def static_layout(layout: Layout | None) -> bool:
    """Are shape and strides static?

    >>> static_layout(Layout((Int(8), Int(4)))), static_layout(Layout((8, Int(4)), (Int(4), Int(1))))
    (True, False)
    """
    numbers = [] if layout is None else [*leaves(layout.shape), *leaves(layout.stride)]
    return all(is_static(internal_leaf(x)) for x in numbers)


def mode_sizes(layout: Layout) -> tuple[Tree, ...]:
    """Sizes of the top-level modes; a layout of an integer shape has one.

    >>> mode_sizes(Layout((Int(4), (Int(2), Int(3)))))
    (Int(4), Int(6))
    """
    shape = layout.shape
    return product_each(shape) if type(shape) is tuple else (size(layout),)


def names_leaves(shape: Tree, basis: Tree) -> bool:
    """Is every basis element at a leaf of this shape?

    >>> from cute_py.arith_tuple.arith_tuple import E
    >>> names_leaves(((4, 2), 8), (E(0, 1), E(1))), names_leaves(((4, 2), 8), (E(0),)), names_leaves((8,), (E(0, 0),))
    (True, False, False)
    """
    for leaf in leaves(basis):
        path = tuple(getattr(leaf, "modes", ()))
        if type(shape) is not tuple and not path:
            continue
        parent = at(shape, path[:-1])
        if type(parent) is not tuple or not path or path[-1] >= len(parent) or type(parent[path[-1]]) is tuple:
            return False
    return True
