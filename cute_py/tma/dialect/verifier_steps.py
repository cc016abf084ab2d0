"""The eleven steps of the partition verifier: number, text, what it prints, and the check, in one table.

Texts are byte for byte those of the TMA Atoms reference page. A check is pure: it says whether the operands pass.
Steps 1 to 6 look at kinds and numbers only; the G-basis is first computed for step 8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from cute_py.arith_tuple.scaled_basis import ScaledBasis
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int, internal_leaf, is_static, is_symbolic
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves, rank_of
from cute_py.tensor.pointers import Pointer
from cute_py.tensor.tensor import Tensor
from cute_py.tma.atom.op import why_not_swizzle
from cute_py.tma.descriptor.fields import MAX_RANK
from cute_py.tma.descriptor.limits import bounds
from cute_py.tma.dialect.modes import CHUNKED_SWIZZLE_GATE, why_not_gate
from cute_py.tma.dialect.verifier_operands import PartitionOperands, mode_sizes

STRIDE_BITS: Final = 128
"""Bits; strides of a descriptor are multiples of 16 bytes (cuTensorMapEncodeTiled, globalStrides)."""


@dataclass(frozen=True, slots=True)
class Gates:
    """Which checks a dialect makes beyond the kinds of the operands.

    `rank`: step 1 refuses more than five modes. `alignment`: step 4 refuses strides that are no multiple of 16 bytes.
    `swizzle`: step 5 refuses a swizzle that TMA has not. `box`: step 9 refuses what no descriptor can hold.
    """

    rank: bool = True
    alignment: bool = True
    swizzle: bool = True
    box: bool = True


Check = Callable[[PartitionOperands, Gates], bool]


@dataclass(frozen=True, slots=True)
class Step:
    """One step: `text` is its diagnostic without operands, `shows` the operands after it, `check` True if it holds."""

    number: int
    name: str
    text: str
    shows: tuple[str, ...]
    check: Check


def _rank_fits(layout: Any) -> bool:
    return not hasattr(layout, "shape") or 1 <= rank_of(layout.shape) <= MAX_RANK


def walks_modes(v_map: Layout, of_integer_shape: bool) -> bool:
    """Does every stride of a V-map name a mode of the tensor, or stand still? The only mode of an integer shape has no
    name: its strides are integers.

    >>> from cute_py.arith_tuple.scaled_basis import E
    >>> walks_modes(Layout((8, 4), (E(0), E(1))), False), walks_modes(Layout((8, 4), (E(0), 1)), False)
    (True, False)
    """
    strides = leaves(v_map.stride)
    if of_integer_shape:
        return all(isinstance(d, int) for d in strides)
    return all(isinstance(d, ScaledBasis) or (isinstance(d, Int) and d == 0) for d in strides)


def operand_types(op: PartitionOperands, gates: Gates) -> bool:
    """Step 1: a tensor in global memory, a shared operand that lives nowhere else, a V-map; rank 1 to 5 each."""
    if op.gmem is None or op.cta_v_map is None:
        return False
    if isinstance(op.smem, Tensor):
        engine = op.smem.engine
        if not isinstance(engine, Pointer) or engine.space != "smem":
            return False
    if not walks_modes(op.cta_v_map, type(op.gmem.shape) is not tuple):
        return False
    return not gates.rank or all(_rank_fits(x) for x in (op.smem_layout, op.gmem, op.cta_v_map))


def smem_kind(op: PartitionOperands, gates: Gates) -> bool:
    """Step 2: a layout or a composed layout."""
    return isinstance(op.smem_layout, (Layout, ComposedLayout))


def gmem_kind(op: PartitionOperands, gates: Gates) -> bool:
    """Step 3: the global tensor has a plain layout."""
    return op.gmem_layout is not None


def integer_strides(layout: Layout | None) -> bool:
    """Are all strides integers, known or not?"""
    return layout is None or all(isinstance(d, int) or is_symbolic(d) for d in leaves(layout.stride))


def aligned_strides(layout: Layout | None, bits: int) -> bool:
    """Is every stride a multiple of 16 bytes, but for stride 0 and for one mode of stride 1, the contiguous one? An
    unknown stride is taken to be one.

    >>> aligned_strides(Layout((8, 8), (4, 1)), 16), aligned_strides(Layout((8, 8), (8, 1)), 16)
    (False, True)
    >>> aligned_strides(Layout((8, 8), (1, 1)), 16)
    False
    """
    strides = [] if layout is None else [d for d in leaves(layout.stride) if isinstance(d, int) and d != 0]
    if 1 in strides:
        strides.remove(1)
    return all(d * bits % STRIDE_BITS == 0 for d in strides)


def gmem_strides(op: PartitionOperands, gates: Gates) -> bool:
    """The global half of step 4."""
    layout = op.gmem_layout
    return integer_strides(layout) and (not gates.alignment or aligned_strides(layout, op.dtype.bits))


def smem_strides(op: PartitionOperands, gates: Gates) -> bool:
    """The shared half of step 4."""
    return integer_strides(op.plain_smem)


def both_strides(op: PartitionOperands, gates: Gates) -> bool:
    """Step 4: integer strides in both layouts."""
    return gmem_strides(op, gates) and smem_strides(op, gates)


def swizzled(op: PartitionOperands, gates: Gates) -> bool:
    """Step 5: a swizzle over a plain layout; a plain layout alone is Sw<0,4,3>."""
    layout = op.smem_layout
    if op.plain_smem is None or (isinstance(layout, ComposedLayout) and not isinstance(layout.outer, Swizzle)):
        return False
    if not gates.swizzle:
        return True
    if why_not_swizzle(op.swizzle) is not None:
        return False
    return op.swizzle.base == 4 or why_not_gate(CHUNKED_SWIZZLE_GATE, op.architecture) is None


def static_layout(layout: Layout | None) -> bool:
    """Are shape and strides static?

    >>> static_layout(Layout((Int(8), Int(4)))), static_layout(Layout((8, Int(4)), (Int(4), Int(1))))
    (True, False)
    """
    numbers = [] if layout is None else [*leaves(layout.shape), *leaves(layout.stride)]
    return all(is_static(internal_leaf(x)) for x in numbers)


def both_static(op: PartitionOperands, gates: Gates) -> bool:
    """Step 6: static shared layout and V-map."""
    return static_layout(op.plain_smem) and static_layout(op.cta_v_map)


def same_shape(op: PartitionOperands, gates: Gates) -> bool:
    """Step 7: the top-level modes of both have the same sizes."""
    if op.plain_smem is None or op.cta_v_map is None:
        return False
    return mode_sizes(op.plain_smem) == mode_sizes(op.cta_v_map)


def has_gbasis(op: PartitionOperands, gates: Gates) -> bool:
    """Step 8: shared memory and the tile have a common vectorization."""
    return op.gbasis is not None


def valid_layout(op: PartitionOperands, gates: Gates) -> bool:
    """Step 9: a static box; at most five modes before any collapse, at most 256 elements a mode, unit stride along the
    innermost, and a multicast count that divides the box."""
    box, fits = op.box
    if not gates.box or not box:
        return bool(box)
    return (
        fits
        and op.uncollapsed_rank <= MAX_RANK
        and all(extent <= bounds("box")[1] for extent in box)
        and op.major_stride in (None, 1)
    )


def has_tensor_type(op: PartitionOperands, gates: Gates) -> bool:
    """Step 10: a coordinate tensor that is congruent with the global one."""
    return op.tma_layout is not None


def multicast_count(op: PartitionOperands, gates: Gates) -> bool:
    """Step 11, loads only: at least 1 with a multicast mode, exactly 1 without."""
    if op.kind != "load" or op.load_mode is None:
        return True
    if op.load_mode.is_multicast:
        return op.num_multicast is not None and op.num_multicast >= 1
    return op.num_multicast in (None, 1)


_TRIO: Final = ("smem", "gmem", "v_map")

STEPS: Final[tuple[Step, ...]] = (
    Step(1, "operand types", "invalid operand types, got ", _TRIO, operand_types),
    Step(
        2,
        "shared layout kind",
        "invalid smem layout type, expected LayoutType or ComposedLayoutType, got ",
        ("smem",),
        smem_kind,
    ),
    Step(3, "global layout kind", "unsupported layout for the GMEM tensor, got ", ("gmem",), gmem_kind),
    Step(
        4,
        "integer strides",
        "expected the GMEM and SMEM layouts to have integer stride elements, but got ",
        ("gmem", "smem"),
        both_strides,
    ),
    Step(5, "swizzle", "expected the SMEM layout to be a swizzle layout, but got ", ("smem",), swizzled),
    Step(
        6,
        "static layouts",
        "expected the SMEM layout and the CTA V-map to be static, but got ",
        ("smem", "v_map"),
        both_static,
    ),
    Step(
        7,
        "shape equivalence",
        "expected top-level shape equivalence between the SMEM layout and the CTA V-map, but got ",
        ("smem", "v_map"),
        same_shape,
    ),
    Step(8, "G-basis", "failed to compute the TMA G-basis, got ", _TRIO, has_gbasis),
    Step(9, "TMA layout", "Computed TMA layout is invalid, got ", ("gbasis",), valid_layout),
    Step(10, "TMA tensor type", "Failed to construct the TMA tensor type", (), has_tensor_type),
    Step(
        11,
        "multicast count",
        "missing or invalid num_multicast for a multicast TMA load",
        (),
        multicast_count,
    ),
)
"""In the order of the TMA Atoms reference page, Eleven-Step Partition Verifier."""

COMPANION_TEXT: Final = "got num_multicast of "
"""Step 11's other text: a count that is not 1 with a mode that is no multicast. The count follows."""
