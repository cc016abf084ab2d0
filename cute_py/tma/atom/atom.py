"""TmaAtom: everything that one TMA copy of a tile is, from the global tensor to the descriptor's bytes.

An atom is made once for a global tensor and the layout of a tile in shared memory. It holds the box (the G-basis), the
request and the 128 bytes of the tensor map, and gives the TMA tensor, which is tiled and partitioned like the tensor
itself to get the coordinates of each instruction.

What an atom is and why, in words: operands, stages, box, instructions, coordinates, bytes, alignment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cute_py.argument_checks import expect_having
from cute_py.dtypes import DType
from cute_py.errors import CuteError, counted
from cute_py.layout.leaf import Tree
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves
from cute_py.tensor.tensor import Tensor
from cute_py.tma.atom.check import layout_modes, why_not_filled, why_not_fits, why_not_units
from cute_py.tma.atom.gbasis import GBasis
from cute_py.tma.atom.op import Op, why_not_shared
from cute_py.tma.atom.plan import TmaPlan
from cute_py.tma.atom.tile_atom import TileAtom
from cute_py.tma.atom.tiled_copy import TmaTiledCopy, make_tiled_copy
from cute_py.tma.atom.tiles import Instructions, first_tile, last_coordinates, list_first_tile
from cute_py.tma.atom.tma_tensor import tma_tensor
from cute_py.tma.descriptor.request import TensorMapTiled


def explain_atom(atom: TmaAtom) -> str:
    """The whole story of an atom, a section each."""
    expect_having(atom, ("gbasis", "plan", "gtensor"), "a TMA atom")
    plan = atom.plan
    gmem = atom.gtensor.layout
    lines = [
        f"{atom.op}: {atom.op.row.direction} of a tile, {atom.arch}",
        "",
        "operands",
        f"  global tensor  {atom.gtensor}  ({atom.dtype}, counted in {atom.internal_dtype})",
        f"  shared tile    {atom.smem_layout}",
        f"  swizzle        {atom.swizzle} on bytes = mode {atom.swizzle_row.name}",
        f"  multicast      {atom.num_multicast} CTA(s)",
        "",
        "from the tile to the box",
        *[f"  {name:<16} {value}\n  {'':<16} ({why})" for name, value, why in atom.gbasis.trace.steps()],
        *[f"  note: {note}" for note in atom.gbasis.trace.notes],
        "",
        "tensor map, innermost mode first",
    ]
    for i in range(plan.rank):
        step = "contiguous" if i == 0 else f"{plan.strides[i - 1]} bytes apart"
        lines.append(f"  mode {i}: {plan.dims[i]} elements, {step}, box {plan.box[i]}; {layout_modes(plan, gmem, i)}")
    lines += ["", "instructions", *_instructions(atom), "", "bytes"]
    lines += [
        f"  one instruction delivers {atom.bytes_per_instruction} bytes to each CTA that receives it",
        f"  a CTA's barrier expects {atom.transaction_bytes} bytes a tile, tiles that hang over the end included",
        f"  the tile in shared memory is aligned to {atom.alignment} bytes",
    ]
    reason = atom.why_not()
    if reason is not None:
        lines += ["", "where it differs from its layouts", f"  {reason}"]
    better = improvements(atom)
    if better:
        lines += ["", "what would be better", *[f"  {b}" for b in better]]
    return "\n".join(lines)


def _instructions(atom: TmaAtom) -> list[str]:
    try:
        work = first_tile(atom)
    except CuteError as error:
        return [f"  {line}" for line in str(error).splitlines()]
    tiles = counted(work.tiles, "tile")
    return [
        f"  {atom.instructions} per tile and CTA, {tiles}, {work.tiles * len(work.coords)} in all",
        f"  first at {_coord(work.coords[0].tolist())}, last at {_coord(last_coordinates(work))} (innermost first)",
        f"  partition of CTA 0: {work.gmem_partition}",
    ]


def _coord(numbers: list[int]) -> str:
    return "(" + ", ".join(map(str, numbers)) + ")"


def improvements(atom: TmaAtom) -> list[str]:
    """What would make the copy larger-grained or free of conflicts; empty if nothing is seen."""
    out = []
    inner = atom.plan.box[0] * atom.internal_dtype.bits // 8
    if atom.instructions > 1:
        out.append(
            f"{atom.instructions} instructions a tile: shared memory is contiguous along the box for "
            f"{atom.bytes_per_instruction} bytes only; another order of the tile's modes may give one larger box"
        )
    if inner < 64:
        out.append(f"rows of {inner} bytes: boxes with rows of 64 bytes or more move at the full rate")
    if atom.swizzle.bits == 0 and inner % 128 == 0 and len(leaves(atom.tile._shape)) > 1:
        out.append("no swizzle: 8 rows at one column lie in the same banks; a 128B swizzle spreads them")
    reason = atom.why_not()
    if reason:
        out.append(reason)
    return out


@dataclass(frozen=True)
class TmaAtom(TileAtom):
    """A TMA copy of tiles between a global tensor and shared memory.

    Attributes:
        op: the operation; gtensor: the global tensor; smem_layout: layout of one tile, as given.
        gbasis: the G-basis and its trace (for gather4 and scatter4 the basis before the reduction to four rows).
        plan: the numbers of the tensor map; request: the same as the driver's arguments.
        swizzle: the swizzle on bytes that the descriptor asks for.
        dtype, internal_dtype: element type of the tensor, and the one that TMA counts in.
    """

    op: Op
    gtensor: Tensor
    smem_layout: Any
    cta_tiler: Any
    gbasis: GBasis
    plan: TmaPlan
    request: TensorMapTiled
    swizzle: Swizzle
    dtype: DType
    internal_dtype: DType
    arch: str = "sm_90a"

    @property
    def g_stride(self) -> Tree:
        """Strides of the TMA tensor, congruent with the global shape."""
        return self.plan.g_stride

    @property
    def num_bits_per_tma(self) -> int:
        """Bits of one instruction slot: of the whole box, not divided by a multicast count."""
        return self.plan.num_bits_per_tma

    @property
    def num_val_src(self) -> int:
        """Elements (of `dtype`) of one instruction slot."""
        return self.plan.num_bits_per_tma // self.dtype.bits

    @property
    def bytes_per_instruction(self) -> int:
        """Bytes that one instruction delivers to each CTA that receives it: its box, out-of-bounds elements included.

        Boxes of packed types count their packed bits.
        """
        rows = 4 if self.op.row.mode in ("gather4", "scatter4") else 1
        return math.prod(self.plan.box) * rows * self.internal_dtype.bits // 8

    def get_tma_tensor(self, shape: Any = None) -> Tensor:
        """The coordinate tensor of the global tensor (or of a congruent shape).

        Raises:
            StaticAssertError: the shape is not congruent with the global tensor's.
        """
        return tma_tensor(self.gtensor.shape if shape is None else shape, self.g_stride, self.plan.rank)

    @cached_property
    def _first_tile(self) -> Instructions:
        """The instructions of the first tile; see `tiles.first_tile`."""
        return list_first_tile(self)

    @cached_property
    def tiled_copy(self) -> TmaTiledCopy:
        """The (CTA, value) view of a tile, as C++'s make_tma_copy returns it.

        Raises:
            StaticAssertError: the instruction slots do not tile the value map, or a pair of CTAs must share the tile.
        """
        v_map = self.gbasis.trace.cta_v_map
        return make_tiled_copy(self.smem_layout, v_map, self.num_val_src, self.num_multicast, self.op.row.ctas)

    def why_not(self) -> str | None:
        """What about this atom does not do what its layouts say, or None.

        Of tiles that fit into no block's shared memory, see `shared_fit`; of tiles that hang over a mode where the
        engine fills no zeros, see `overhang`; of swizzles that count elements, see `swizzle_units`; of CTAs that get a
        slice of the tile alone, see `why_not_shared`.
        """
        return (
            why_not_fits(self)
            or why_not_filled(self)
            or why_not_units(self.smem_layout, self.dtype.bits)
            or why_not_shared(self.op, self.num_multicast)
        )

    def explain(self) -> str:
        """Operands, stages with values, the box and why, instructions, bytes, alignment, and what would be better."""
        return explain_atom(self)

    def __str__(self) -> str:
        return (
            f"{self.op} {self.gtensor} -> {self.smem_layout}: box {self.plan.box} of {self.internal_dtype}, "
            f"{self.instructions} instruction(s), {self.transaction_bytes} bytes a tile"
        )
