"""The non-exec atom: everything about one TMA copy of a tile that is known before a barrier and a cache policy are.

A verified partition makes it. It knows the box of one instruction, how many instructions one CTA issues for a tile, and
for each of them where it lands in shared memory and at which coordinates it starts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from cute_py.argument_checks import expect_fields, expect_integer
from cute_py.arith_tuple.arith_tuple import ArithTuple, as_arith_tuple
from cute_py.errors import TmaBuildError, counted
from cute_py.layout.arguments import Tree
from cute_py.layout.int_tuple import size
from cute_py.layout.layout import Layout, domain_of
from cute_py.layout.leaf import Int, to_public
from cute_py.layout.trees import leaves, rank_of
from cute_py.tensor.tensor import Tensor
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.im2col import Im2colAtom
from cute_py.tma.atom.op import Op
from cute_py.tma.atom.partition import tile_layout, tma_tensor
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapIm2colWide, corners_of
from cute_py.tma.dialect.descriptors import SharedLayout, TmaDescriptorIm2col, TmaDescriptorTiled
from cute_py.tma.dialect.diagnostics import short_repr
from cute_py.tma.dialect.mlir_text import layout_text, tree_text, type_text
from cute_py.tma.dialect.modes import TmaLoadMode, TmaReduceKind, TmaStoreMode, bounded_along_w, operation_of
from cute_py.tmem.execute import S2TDescriptorView

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
        descriptor: the one that the operation carries, or that of its tensor map; None of numbers that are not known.
        traits: CuTe's atom of the same copy, which has the request, the bytes and the instruction; None likewise.
        s2t: the descriptor view of the tile's copy on to tensor memory, if there is one.
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
    traits: TmaAtom | Im2colAtom | None = field(default=None, compare=False, repr=False)
    s2t: S2TDescriptorView | None = None

    def __post_init__(self) -> None:
        expect_fields(self)
        expect_integer(self.num_multicast, "NonExecTmaAtom.num_multicast", 1, unit="CTAs")

    @property
    def operation(self) -> Op:
        """CuTe's operation of this kind and mode."""
        is_im2col = isinstance(self.descriptor, TmaDescriptorIm2col)
        return operation_of(self.load_mode, self.store_mode, self.reduce_kind, is_im2col)

    @property
    def known_traits(self) -> TmaAtom | Im2colAtom:
        """CuTe's atom.

        Raises:
            TmaBuildError: numbers of the tensor are not known.
        """
        if self.traits is None:
            raise TmaBuildError("no tensor map of numbers that are not known", {"atom": self}, "use .subs() first")
        return self.traits

    @property
    def request(self) -> TensorMap:
        """The request of the tensor map. Errors as `known_traits`."""
        return bounded_along_w(self.known_traits.request, self.store_mode)

    @property
    def rank(self) -> int:
        """The descriptor's rank."""
        return self.tensor_type.rank

    @property
    def no_offsets(self) -> tuple[int, ...]:
        """The offsets of an im2col load at the first filter position; none of a tiled one."""
        return (0,) * (self.rank - 2 if isinstance(self.descriptor, TmaDescriptorIm2col) else 0)

    @property
    def tile_elements(self) -> int:
        """Elements of the tile."""
        return int(size(domain_of(self.smem_layout)))

    @property
    def slot_elements(self) -> int:
        """Elements of one instruction slot: what all CTAs of a multicast deliver together with one instruction each."""
        if self.traits is not None:
            return self.traits.num_val_src
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

    def place(self, start: Sequence[Number], index: int, cta: int = 0) -> tuple[Number, ...]:
        """The coordinates of instruction `index` of CTA `cta` for a tile that starts at `start`, innermost first.

        Of an im2col tile `start` is its first pixel, and pixels follow each other in the bounding box, W first.

        Raises:
            InvalidValueError: an im2col instruction starts at another pixel than the tile, whose place is not known.
        """
        part = self.instruction(index, cta).coord
        request = self.request if isinstance(self.traits, Im2colAtom) else None
        first = start
        if isinstance(request, (TensorMapIm2col, TensorMapIm2colWide)) and part[1]:
            numbers = [expect_integer(c, "a coordinate of an im2col tile") for c in start]
            first = _next_pixel(request, numbers, expect_integer(part[1], "a pixel"))
            part = (part[0], *(0,) * (self.rank - 1))
        return tuple(int(c) + d if isinstance(c, int) else c + d for c, d in zip(first, part, strict=True))

    def explain(self) -> str:
        """The atom below, and the mode."""
        return str(self) if self.traits is None else f"{self}\n\n{self.traits.explain()}"

    def tma_coord(self, coord: Tree) -> tuple[Number, ...]:
        """The instruction's coordinates of a coordinate of the global tensor, innermost first."""
        tensor = self.tensor_type.tensor
        given: Any = as_arith_tuple(coord)  # type: ignore[arg-type]
        given = given if isinstance(given, ArithTuple) else ArithTuple(given)  # an integer is that of mode 0
        every = (given + ArithTuple(*[Int(0)] * rank_of(tensor.shape))).as_tuple()  # what is left out is 0
        found: Any = tensor(every if type(tensor.shape) is tuple else every[0])
        return tuple([int(c) if isinstance(c, int) else c for c in leaves(to_public(found.as_tuple()))])

    def __str__(self) -> str:
        mode = next(m for m in (self.reduce_kind, self.store_mode, self.load_mode) if m is not None)
        moved = f"{counted(self.instructions, 'instruction')}, {self.transaction_bytes} bytes a tile"
        box = f"box {tree_text(self.box)} of {self.dtype} by {layout_text(self.gbasis)}"
        return f"non-exec TMA {self.kind}, {mode.name}: {box}, {moved}"

    __repr__ = short_repr


def _next_pixel(request: TensorMapIm2col | TensorMapIm2colWide, start: list[int], count: int) -> list[int]:
    """The pixel `count` places on in the walk of the bounding box.

    >>> image = TensorMapIm2col(6, 4096, (64, 4, 3, 2), (128, 512, 1536), (-1, 0), (0, 0), 64, 16)
    >>> _next_pixel(image, [0, 2, 0, 0], 3)
    [0, 0, 1, 0]
    """
    lower, upper = corners_of(request)
    corners = [*zip(lower, upper, strict=True), *[(0, 0)] * (len(start) - 2 - len(lower))]
    out, left = list(start), count
    for i, (low, high) in enumerate(corners, 1):
        step = request.element_strides[i]
        extent = (request.global_dim[i] - 1 + high - low) // step + 1
        left += (start[i] - low) // step
        out[i], left = low + left % extent * step, left // extent
    out[-1] += left * request.element_strides[-1]
    return out
