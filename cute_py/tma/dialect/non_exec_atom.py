"""The non-exec atom: everything about one TMA copy of a tile that is known before a barrier and a cache policy are.

A verified partition makes it. It knows the box of one instruction, how many instructions one CTA issues for a tile, and
for each of them where it lands in shared memory and at which coordinates it starts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from cute_py.argument_checks import expect_fields, expect_integer
from cute_py.arith_tuple.arith_tuple import ScaledBasis, as_arith_tuple
from cute_py.errors import counted
from cute_py.layout.arguments import Tree
from cute_py.layout.int_tuple import size
from cute_py.layout.layout import Layout, axis_paths, domain_of
from cute_py.layout.leaf import coordinate, is_symbolic, to_public, value_of
from cute_py.layout.trees import leaves, rank_of
from cute_py.tensor.tensor import Tensor
from cute_py.tma.atom.partition import tile_layout, tma_tensor
from cute_py.tma.dialect.descriptors import TmaDescriptorIm2col, TmaDescriptorTiled
from cute_py.tma.dialect.mlir_text import layout_text, tree_text, type_text
from cute_py.tma.dialect.modes import TmaLoadMode, TmaReduceKind, TmaStoreMode
from cute_py.tma.dialect.verifier_operands import SharedLayout

__all__ = ["NonExecTmaAtom", "TmaTensorType"]

if TYPE_CHECKING:
    import sympy

    Number: TypeAlias = int | sympy.Expr
else:
    Number = object
"""A coordinate, or an expression of symbols."""


@dataclass(frozen=True, slots=True)
class TmaTensorType:
    """The type of the coordinate tensor: the global shape with strides along the descriptor's modes.

    `kind` is 'load', 'store' or 'reduce'; `rank` the descriptor's.
    """

    kind: str
    dtype: str
    layout: Layout
    rank: int

    def __post_init__(self) -> None:
        expect_fields(self)
        expect_integer(self.rank, "TmaTensorType.rank", 1, 5, "modes")

    @property
    def tensor(self) -> Tensor:
        """The coordinate tensor, from the static origin."""
        return tma_tensor(self.layout.shape, self.layout.stride, self.rank)

    def __str__(self) -> str:
        return type_text(self.tensor)


@dataclass(frozen=True, slots=True)
class TileInstruction:
    """One TMA instruction of a tile: where it lands (elements from the tile's start), and its coordinates relative to
    the tile's, innermost first; numbers, or expressions where a stride is not known."""

    smem_offset: int
    coord: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class NonExecTmaAtom:
    """A TMA copy without its run-time state.

    Attributes:
        kind: 'load', 'store' or 'reduce'; load_mode, store_mode, reduce_kind: the mode of each, None where it has none.
        smem_layout: the tile in shared memory, with its swizzle; gmem_layout: the global tensor's, in elements.
        gbasis: box : global modes, before a multicast cuts it; box: of one CTA, elements, innermost first.
        cu_swizzle: the driver's swizzle code. verified: has the partition verifier accepted it?
        descriptor: the descriptor it was made with, if any.
    """

    kind: str
    load_mode: TmaLoadMode | None
    store_mode: TmaStoreMode | None
    reduce_kind: TmaReduceKind | None
    dtype: str
    element_bits: int
    smem_layout: SharedLayout
    gmem_layout: Layout
    cta_v_map: Layout
    gbasis: Layout
    box: tuple[int, ...]
    num_multicast: int
    cu_swizzle: int
    tensor_type: TmaTensorType
    verified: bool = False
    descriptor: TmaDescriptorTiled | TmaDescriptorIm2col | None = None

    def __post_init__(self) -> None:
        expect_fields(self)
        expect_integer(self.num_multicast, "NonExecTmaAtom.num_multicast", 1, unit="CTAs")

    @property
    def rank(self) -> int:
        """The descriptor's rank."""
        return rank_of(self.gbasis._shape)

    @property
    def tile_elements(self) -> int:
        """Elements of the tile."""
        return int(size(domain_of(self.smem_layout)))

    @property
    def slot_elements(self) -> int:
        """Elements of one instruction slot: what all CTAs of a multicast deliver together with one instruction each."""
        return math.prod(expect_integer(s, "a size of the G-basis") for s in leaves(self.gbasis.shape))

    @property
    def instructions(self) -> int:
        """Instructions that one CTA issues for a tile."""
        return -(-self.tile_elements // self.slot_elements)

    @property
    def bytes_per_instruction(self) -> int:
        """Bytes of the box that one CTA issues; out-of-bounds elements are filled, and count."""
        return math.prod(self.box) * self.element_bits // 8

    @property
    def transaction_bytes(self) -> int:
        """Bytes that a receiving CTA's barrier must expect for one tile: the full slot of each instruction, whichever
        CTA issues its part; of a load without multicast that is divided among CTAs, the CTA's own slice."""
        alone = self.kind == "load" and self.load_mode is TmaLoadMode.NO_MULTICAST
        return self.instructions * self.slot_elements * self.element_bits // 8 // (self.num_multicast if alone else 1)

    def instruction(self, index: int, cta: int = 0) -> TileInstruction:
        """Instruction `index` of CTA number `cta` of a multicast.

        Raises:
            InvalidValueError: no such instruction, or no such CTA.
        """
        for name, value, count in (("instruction", index, self.instructions), ("CTA", cta, self.num_multicast)):
            expect_integer(value, f"the number of the {name}", 0, count - 1)
        smem = domain_of(self.smem_layout)
        slots = tile_layout(smem, self.slot_elements)
        element = int(slots((cta * (self.slot_elements // self.num_multicast), index)))
        return TileInstruction(int(smem(element)), self.tma_coord(self.cta_v_map(element)))

    def tma_coord(self, coord: Tree) -> tuple[Number, ...]:
        """The instruction's coordinates of a coordinate of the global tensor, innermost first."""
        tree = to_public(coordinate(as_arith_tuple(coord)))  # type: ignore[arg-type]
        out: list[Number] = [0] * self.rank
        strides = self.tensor_type.layout.stride
        for path, stride in zip(axis_paths(strides), leaves(strides), strict=True):
            if isinstance(stride, ScaledBasis):
                step = stride.value if is_symbolic(stride.value) else int(stride.value)
                out[stride.modes[0]] += step * _at(tree, path)
        return tuple(out)

    def __str__(self) -> str:
        mode = next(m for m in (self.reduce_kind, self.store_mode, self.load_mode) if m is not None)
        moved = f"{counted(self.instructions, 'instruction')}, {self.transaction_bytes} bytes a tile"
        box = f"box {tree_text(self.box)} of {self.dtype} by {layout_text(self.gbasis)}"
        return f"non-exec TMA {self.kind}, {mode.name}: {box}, {moved}"


def _at(tree: Tree, path: tuple[int, ...]) -> int:
    """The number at a path; what a shorter coordinate leaves out is 0, and an integer is its own mode 0."""
    for i in path:
        if type(tree) is not tuple:
            return expect_integer(tree, "a coordinate") if i == 0 else 0
        if i >= len(tree):
            return 0
        tree = tree[i]
    while type(tree) is tuple:
        tree = tree[0] if tree else 0
    return expect_integer(value_of(tree), "a coordinate")
