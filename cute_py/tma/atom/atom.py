"""`TmaAtom`: everything that defines a TMA copy of tiles, from the global tensor to the bytes of the descriptor.

You make an atom once for a global tensor and the shared-memory layout of a tile. It holds the box (the G-basis), the
request (the arguments of the driver's encode function) and the 128 bytes of the tensor map. `get_tma_tensor` returns
the TMA tensor, whose elements are coordinates; tile and partition it like the global tensor to get the coordinates of
each instruction. `explain` describes the atom and gives the reasons for its box.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cute_py.argument_checks import expect_having
from cute_py.diagnostics import Diagnostic
from cute_py.dtypes import DType
from cute_py.errors import CuteError, counted
from cute_py.layout.arguments import Tree
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import is_one, value_of
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import at, leaves, modes
from cute_py.tensor.tensor import Tensor
from cute_py.tma.atom.gbasis import GBasis
from cute_py.tma.atom.op import Op, check_shared
from cute_py.tma.atom.partition import make_tma_copy_tiled, tma_tensor
from cute_py.tma.atom.tile_atom import TileAtom, TmaPlan, check_fits, check_rows, check_units, layout_modes
from cute_py.tma.atom.tiles import FirstTile, first_tile, last_coordinates, list_first_tile
from cute_py.tma.descriptor.request import TensorMapTiled

if TYPE_CHECKING:
    from cute_py.atom.tiled_copy import TiledCopy

Path = tuple[int, ...]


@dataclass(frozen=True, repr=False)
class TmaAtom(TileAtom):
    """A TMA copy of tiles between a global tensor and shared memory.

    Attributes:
        op: the operation; gtensor: the global tensor; smem_layout: the layout of one tile, as it was passed.
        gbasis: the G-basis and its trace (for gather4 and scatter4, the basis before the reduction to four rows).
        plan: sizes, strides and box of the tensor map; request: the same values as arguments of the driver.
        swizzle: the swizzle on bytes that the descriptor encodes.
        dtype, internal_dtype: the element type of the tensor, and the element type of the tensor map.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(0x1000, "float16"), cute.parse("(256,128):(128,_1)"))
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, "(_128,_64):(_64,_1)")
    >>> print(atom.gbasis, atom.request.box_dim, atom.transaction_bytes)
    (_64,_128):(_1@1,_1@0) (64, 128) 16384
    """

    op: Op
    gtensor: Tensor
    smem_layout: Layout | ComposedLayout
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
        """Size of one instruction slot in bits: the whole box, not divided by the multicast count."""
        return self.plan.num_bits_per_tma

    @property
    def bytes_per_instruction(self) -> int:
        """Bytes that one instruction delivers to each receiving CTA, including out-of-bounds elements.

        Elements of packed types count with their packed width.
        """
        rows = 4 if self.instruction.mode in ("gather4", "scatter4") else 1
        return math.prod(self.plan.box) * rows * self.internal_dtype.bits // 8

    def get_tma_tensor(self, shape: Tree | None = None) -> Tensor:
        """Return the coordinate tensor for the global tensor, or for a shape that is congruent with it.

        Raises:
            StaticAssertError: the shape is not congruent with the shape of the global tensor.
        """
        return tma_tensor(self.gtensor.shape if shape is None else shape, self.g_stride, self.plan.rank)

    @cached_property
    def _first_tile(self) -> FirstTile:
        """The instructions of the first tile; see `tiles.first_tile`."""
        return list_first_tile(self)

    @cached_property
    def tiled_copy(self) -> TiledCopy:
        """The tiled copy that C++'s make_tma_copy returns.

        CTAs take the role of its threads: `.get_slice(cta).partition_S(tensor)` partitions a tensor for one CTA.

        Raises:
            StaticAssertError: the instruction slots do not tile the value map, or the operation needs a pair of CTAs
                and fewer CTAs share the tile.
        """
        v_map = self.gbasis.trace.cta_v_map
        return make_tma_copy_tiled(
            self.smem_layout,
            v_map,
            self.num_val_src,
            self.num_multicast,
            self.instruction.ctas,
            name=str(self.op),
            dtype=self.dtype,
        )

    def check(self) -> list[Diagnostic]:
        """List the differences between the copy that the TMA engine makes and the layouts of this atom.

        - `check_fits`: the tile does not fit in the shared memory of a block.
        - `check_filled`: a tile extends past the end of a mode, and the engine does not fill the rest with zeros.
        - `check_units`: the swizzle permutes elements, but the engine permutes bytes.
        - `check_shared`: each CTA gets only a slice of the tile.
        - `check_rows`: a swizzled row is shorter than the span of its swizzle.
        """
        units, shared = check_units(self.smem_layout, self.dtype.bits), check_shared(self.op, self.num_multicast)
        return [*check_fits(self), *check_filled(self), *units, *shared, *check_rows(self)]

    def explain(self) -> str:
        """Describe the atom as text: operands, stages, box, instructions, bytes, alignment and improvements."""
        return explain_atom(self)


def check_filled(atom: TmaAtom) -> list[Diagnostic]:
    """Find the first mode whose end a tile crosses without the zero fill that the layouts imply.

    The engine checks one coordinate per mode of the tensor map against the size of the mode. Two cases therefore pass
    the check, in CuTe too:

    - Global modes that were merged into one mode of the map share one size. Beyond the end of the first global mode, a
      load reads elements of the second.
    - A global mode of static size 1 does not appear in the coordinates. An instruction beyond its end reads the first
      row again.
    """
    gmem, v_map = atom.gtensor.layout, atom.gbasis.trace.cta_v_map
    reach: dict[Path, int] = {}  # how far the tile reaches along each global mode that it walks, in elements
    for n, d in zip(leaves(v_map.shape), leaves(v_map.stride), strict=True):
        path = tuple(getattr(d, "modes", ()))
        if path:
            reach[path] = reach.get(path, 1) + (int(value_of(n)) - 1) * int(value_of(d.value))
    walked: dict[Path, tuple[int, int]] = {}
    for j, (shape, stride) in enumerate(
        zip(modes(atom.plan.gbasis.shape), modes(atom.plan.gbasis.stride), strict=True)
    ):
        paths = [tuple(getattr(d, "modes", ())) for d in leaves(stride)]
        walked.update({path: (j, int(n)) for path, n in zip(paths, leaves(shape), strict=True)})
        if len(paths) < 2:
            continue
        outermost = max(paths, key=lambda p: int(value_of(at(gmem.stride, p))))
        for path in paths:
            size, tile = int(value_of(at(gmem.shape, path))), reach.get(path, 1)
            if path != outermost and size % tile:
                return _unfilled(
                    (path, tile),
                    f" of {size}, which shares TMA mode {j} with other modes: reads beyond its end return other "
                    "elements, not zeros",
                )
    for path, tile in reach.items():
        held = at(gmem.shape, path)
        if not is_one(held) or tile == 1:
            continue
        j, extent = walked.get(path, (0, 1))
        full = math.prod(int(n) for n in leaves(modes(atom.plan.gbasis.shape)[j]))
        if extent != tile or atom.plan.box[j] != full:
            return _unfilled(
                (path, tile),
                ", which has the static size 1: coordinates never move along it, so instructions beyond its end "
                "read the first row again",
            )
    return []


def _unfilled(reach: tuple[Path, int], why: str) -> list[Diagnostic]:
    path, tile = reach
    text = f"a tile reaches {tile} elements along layout mode {'.'.join(map(str, path))}{why}"
    return [Diagnostic("unfilled", value=tile, unit="elements", text=text)]


def explain_atom(atom: TmaAtom) -> str:
    """Describe an atom as text, in sections: operands, stages, tensor map, tile, checks and improvements.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(0x1000, "float16"), cute.parse("(256,128):(128,_1)"))
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, "(_128,_64):(_64,_1)")
    >>> print(explain_atom(atom).splitlines()[0])
    SM90_TMA_LOAD: load of a tile, sm_90a
    """
    expect_having(atom, ("gbasis", "plan", "gtensor"), "a TMA atom")
    plan = atom.plan
    middle = [*[f"  note: {note}" for note in atom.gbasis.trace.notes], "", "tensor map, innermost mode first"]
    for i in range(plan.rank):
        step = "contiguous" if i == 0 else f"{plan.strides[i - 1]} bytes apart"
        of = layout_modes(plan, atom.gtensor.layout, i)
        middle.append(f"  mode {i}: {plan.dims[i]} elements, {step}, box {plan.box[i]}; {of}")
    lines = atom._sections(
        "a tile",
        f", counted in {atom.internal_dtype}",
        middle,
        _instructions(atom),
        "tiles that extend past the tensor",
    )
    better = improvements(atom)
    if better:
        lines += ["", "possible improvements", *[f"  {b}" for b in better]]
    return "\n".join(lines)


def _instructions(atom: TmaAtom) -> list[str]:
    try:
        work = first_tile(atom)
    except CuteError as error:
        return [f"  {line}" for line in str(error).splitlines()]
    first, last = (", ".join(map(str, coord)) for coord in (work.rows[0], last_coordinates(work)))
    tiles, total = counted(work.tiles, "tile"), work.tiles * len(work.rows)
    return [
        f"  {atom.instructions} per tile and CTA, {tiles}, {total} in all",
        f"  first at ({first}), last at ({last}) (innermost first)",
        f"  partition of CTA 0: {work.gmem_partition}",
    ]


def improvements(atom: TmaAtom) -> list[str]:
    """List changes that give larger boxes or fewer bank conflicts; empty if there are none."""
    out = []
    inner = atom.plan.box[0] * atom.internal_dtype.bits // 8
    if atom.instructions > 1:
        out.append(
            f"{atom.instructions} instructions per tile, because shared memory is contiguous along the box for "
            f"only {atom.bytes_per_instruction} bytes; another order of the tile's modes may give one larger box"
        )
    if inner < 64:
        out.append(f"rows of {inner} bytes; a copy reaches the full rate with rows of at least 64 bytes")
    if atom.swizzle.bits == 0 and inner % 128 == 0 and len(leaves(atom.tile.shape)) > 1:
        out.append("no swizzle: 8 rows at one column are in the same banks; a 128B swizzle spreads them")
    reason = atom.why_not()
    if reason:
        out.append(reason)
    return out
