"""The partition verifier: eleven steps that lead to a record, or to the diagnostic of the first step that fails.

    partition(smem, gtensor, tiler)  ->  [TmaPartitionResult]
    verify_partition(...)            ->  PartitionWalk: does not raise, and has the flags of the steps that passed

Only this module checks descriptor shape, transfer mode, multicast count and reduction together. It checks more than
`make_tma_atom`, which follows CuTe C++ and does not use this module.

One table has the steps: number, text, printed operands, and check. The texts are byte-identical to the texts on the TMA
Atoms reference page. A check is a pure function that returns whether the operands pass. Steps 1 to 6 use only the kinds
and values of the operands; step 8 is the first that computes the G-basis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cute_py.argument_checks import expect, record
from cute_py.arith_tuple.arith_tuple import ScaledBasis
from cute_py.diagnostics import Diagnostic
from cute_py.errors import CuteError, InvalidValueError, TmaVerifyError, given
from cute_py.layout.arguments import Tree
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int, is_symbolic
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves, rank_of
from cute_py.tensor.pointers import Pointer
from cute_py.tensor.tensor import Tensor
from cute_py.tma.atom.op import architecture_number, check_op
from cute_py.tma.atom.op import cta_count as counted_ctas
from cute_py.tma.descriptor.fields import MAX_RANK
from cute_py.tma.descriptor.limits import BY_NAME, GPUS
from cute_py.tma.dialect import modes
from cute_py.tma.dialect.atoms import NonExecTmaAtom, TmaTensorType
from cute_py.tma.dialect.descriptors import (
    SharedLayout,
    SupportsDLPack,
    TmaDescriptorIm2col,
    TmaDescriptorTiled,
    expect_descriptor,
    is_static_layout,
    map_swizzle,
    mode_sizes,
    rules_of,
)
from cute_py.tma.dialect.diagnostics import broken, short_repr
from cute_py.tma.dialect.mlir_text import tile_text, type_text
from cute_py.tma.dialect.modes import TmaLoadMode, TmaReduceKind, TmaStoreMode
from cute_py.tma.dialect.record import SWIZZLE_MODE_OF, TmaFlags, TmaPartitionResult, interned_objects
from cute_py.tma.dialect.verifier_operands import Dialect, PartitionOperands, as_dialect
from cute_py.tmem.execute import S2TDescriptorView

__all__ = ["PartitionWalk", "STEPS", "partition", "verify_partition"]

STRIDE_BITS: Final = 8 * BY_NAME["stride_alignment"].multiple
"""Strides of a descriptor are multiples of this number of bits."""


def walks_modes(v_map: Layout, shape: Tree) -> bool:
    """Whether every stride of a CTA value map is 0 or names a mode of a tensor of this shape.

    The only mode of an integer shape has no name, so strides along it are integers. A mode with an integer size has no
    submodes.

    >>> from cute_py.arith_tuple.arith_tuple import E
    >>> [walks_modes(Layout((8, 4), (first, E(1))), (64, 64)) for first in (E(0), 1, E(0, 0))]
    [True, False, False]
    """
    strides = leaves(v_map.stride)
    if type(shape) is not tuple:
        return all(isinstance(d, int) for d in strides)
    return all(
        _has_mode(shape, d.modes) if isinstance(d, ScaledBasis) else isinstance(d, Int) and d == 0 for d in strides
    )


def _has_mode(shape: Tree, path: Sequence[int]) -> bool:
    """Whether a path names no submode of an integer mode. The G-basis checks for paths past the last mode."""
    for mode in path:
        if type(shape) is not tuple:
            return False
        if mode >= len(shape):
            return True
        shape = shape[mode]
    return True


def operand_types(op: PartitionOperands) -> bool:
    """Step 1: the kinds of the operands are valid.

    The global operand is a tensor in global memory. The shared operand has a type of the dialect. If it is a tensor, it
    is in shared memory, and its elements are as wide as the global elements. There is a CTA value map and a tile of
    integers, each of rank 1 to 5. A descriptor, if there is one, is for this transfer.
    """
    if op.gmem is None or op.cta_v_map is None or any(d.rule == "mode" for d in op.other_transfer):
        return False
    smem: Any = op.smem
    if not isinstance(smem, (Layout, ComposedLayout, Tensor, Swizzle, Pointer, tuple)):
        return False
    engine = smem.engine if isinstance(smem, Tensor) else None
    if engine is not None and not (isinstance(engine, Pointer) and engine.space == "smem" and op.same_type):
        return False
    if not walks_modes(op.cta_v_map, op.gmem.shape) or (op.partitioner is not None and op.tiler is None):
        return False
    shaped = [x for x in (op.smem_layout, op.gmem, op.cta_v_map) if hasattr(x, "shape")]
    return not op.dialect.limits or all(1 <= rank_of(x.shape) <= MAX_RANK for x in shaped)


def smem_kind(op: PartitionOperands) -> bool:
    """Step 2: the shared operand is a layout or a composed layout."""
    return isinstance(op.smem_layout, (Layout, ComposedLayout))


def gmem_kind(op: PartitionOperands) -> bool:
    """Step 3: the global tensor has a plain layout."""
    return op.gmem_layout is not None


def integer_strides(layout: Layout | None) -> bool:
    """Whether all strides of a layout are integers, known or unknown."""
    return layout is None or all(isinstance(d, int) or is_symbolic(d) for d in leaves(layout.stride))


def aligned_strides(layout: Layout | None, bits: int) -> bool:
    """Whether every stride is a multiple of 16 bytes, except stride 0 and the stride 1 of the contiguous mode.

    An unknown stride passes.

    >>> aligned_strides(Layout((8, 8), (4, 1)), 16), aligned_strides(Layout((8, 8), (8, 1)), 16)
    (False, True)
    >>> aligned_strides(Layout((8, 8), (1, 1)), 16)
    False
    """
    strides = [] if layout is None else [d for d in leaves(layout.stride) if isinstance(d, int) and d != 0]
    if 1 in strides:
        strides.remove(1)
    return all(d * bits % STRIDE_BITS == 0 for d in strides)


def gmem_strides(op: PartitionOperands) -> bool:
    """Step 4 for the global layout: its strides are integers and aligned."""
    layout = op.gmem_layout
    return integer_strides(layout) and (not op.dialect.limits or aligned_strides(layout, op.dtype.bits))


def both_strides(op: PartitionOperands) -> bool:
    """Step 4: both layouts have integer strides."""
    return gmem_strides(op) and integer_strides(op.plain_smem)


def is_swizzled(op: PartitionOperands) -> bool:
    """Step 5: the shared operand is a swizzle over a plain layout; a plain layout counts as Sw<0,4,3>."""
    layout = op.smem_layout
    if op.plain_smem is None or (isinstance(layout, ComposedLayout) and not isinstance(layout.outer, Swizzle)):
        return False
    if not op.dialect.limits:
        return True
    code, refused = map_swizzle(op.swizzle)
    return not refused and (op.swizzle.base == 4 or code in GPUS[rules_of(op.arch)].swizzles)


def both_static(op: PartitionOperands) -> bool:
    """Step 6: the shared layout and the CTA value map are static."""
    return is_static_layout(op.plain_smem) and is_static_layout(op.cta_v_map)


def same_shape(op: PartitionOperands) -> bool:
    """Step 7: the top-level modes of the shared layout and of the CTA value map have the same sizes.

    A tile that two CTAs load is first divided in two.
    """
    smem, v_map = op.plain_smem, op.cta_v_map
    if op.is_pair and v_map is op.whole_v_map:
        return False
    return smem is not None and v_map is not None and mode_sizes(smem) == mode_sizes(v_map)


def has_gbasis(op: PartitionOperands) -> bool:
    """Step 8: shared memory and the tile have a common vectorization over modes of the tensor."""
    if op.gbasis is None or op.gmem is None or op.cta_v_map is None:
        return False
    modes_of = [d.modes for d in leaves(op.cta_v_map.stride) if isinstance(d, ScaledBasis)]
    return all(path[0] < rank_of(op.gmem.shape) for path in modes_of)


def valid_layout(op: PartitionOperands) -> bool:
    """Step 9: the box is static, a legal tensor map can have it, and it equals the descriptor's box."""
    return bool(op.box) and not (op.dialect.limits and op.map_rules)


def has_tensor_type(op: PartitionOperands) -> bool:
    """Step 10: the coordinate tensor is congruent with the global tensor."""
    return op.tma_layout is not None


def multicast_count(op: PartitionOperands) -> bool:
    """Step 11, loads only: the multicast count is at least 1 with a multicast mode, and exactly 1 without."""
    if op.kind != "load" or op.load_mode is None:
        return True
    if op.count_of_descriptor != (op.num_multicast or 1):
        return False
    if op.load_mode.is_multicast:
        return op.num_multicast is not None and op.num_multicast >= 1
    return op.num_multicast in (None, 1)


@dataclass(frozen=True, slots=True)
class VerifierStep:
    """One step of the verifier.

    `text` is its diagnostic without operands, `shows` names the operands that follow the text, and `check` is its test.
    """

    number: int
    name: str
    text: str
    shows: tuple[str, ...]
    check: Callable[[PartitionOperands], bool]


_SMEM, _TRIO = ("smem",), ("smem", "gmem", "v_map")
_KIND = "invalid smem layout type, expected LayoutType or ComposedLayoutType, got "
_STRIDES = "expected the GMEM and SMEM layouts to have integer stride elements, but got "
_STATIC = "expected the SMEM layout and the CTA V-map to be static, but got "
_SHAPE = "expected top-level shape equivalence between the SMEM layout and the CTA V-map, but got "

STEPS: Final[tuple[VerifierStep, ...]] = (
    VerifierStep(1, "operand types", "invalid operand types, got ", _TRIO, operand_types),
    VerifierStep(2, "shared layout kind", _KIND, _SMEM, smem_kind),
    VerifierStep(3, "global layout kind", "unsupported layout for the GMEM tensor, got ", ("gmem",), gmem_kind),
    VerifierStep(4, "integer strides", _STRIDES, ("gmem", "smem"), both_strides),
    VerifierStep(5, "swizzle", "expected the SMEM layout to be a swizzle layout, but got ", _SMEM, is_swizzled),
    VerifierStep(6, "static layouts", _STATIC, ("smem", "v_map"), both_static),
    VerifierStep(7, "shape equivalence", _SHAPE, ("smem", "v_map"), same_shape),
    VerifierStep(8, "G-basis", "failed to compute the TMA G-basis, got ", _TRIO, has_gbasis),
    VerifierStep(9, "TMA layout", "Computed TMA layout is invalid, got ", ("gbasis",), valid_layout),
    VerifierStep(10, "TMA tensor type", "Failed to construct the TMA tensor type", (), has_tensor_type),
    VerifierStep(
        11, "multicast count", "missing or invalid num_multicast for a multicast TMA load", (), multicast_count
    ),
)
"""The steps, in the order of the TMA Atoms reference page, Eleven-Step Partition Verifier."""


def _operand(op: PartitionOperands, name: str) -> str:
    """Return the printed form of an operand."""
    known, quoted = op.dialect.known, op.dialect.quote != ""
    if name == "smem":
        return type_text(op.smem if op.smem_layout is None else op.smem_layout, known, quoted)
    if name == "gmem":
        return type_text(op.shown_gmem, quoted=quoted)
    if name == "gbasis":
        return type_text(None if op.gbasis is None else op.gbasis.layout, known, quoted)
    v_map = op.explicit_v_map if op.cta_v_map is None else op.cta_v_map
    tiler = op.partitioner
    if v_map is not None or tiler is None:
        return type_text(v_map, known, quoted)
    # If there is no V-map for this tensor, a tiler that is a tile is treated as one.
    parts = tiler if type(tiler) is tuple else (tiler,)
    is_tile = all(hasattr(p, "shape") or isinstance(p, (int, tuple)) for p in parts)
    return (tile_text if is_tile else type_text)(tiler, known, quoted)


def joined_operands(dialect: Dialect, texts: list[str]) -> str:
    """Join the printed forms of one, two or three types as in a sentence.

    >>> from cute_py.tma.dialect.verifier_operands import DSL, SEED
    >>> joined_operands(SEED, ["A", "B"]), joined_operands(DSL, ["A", "B"]), joined_operands(SEED, ["A", "B", "C"])
    ('A, and B', "'A' and 'B'", 'A, B, and C')
    """
    quoted = [f"{dialect.quote}{text}{dialect.quote}" for text in texts]
    if len(quoted) == 2:
        return dialect.pair.join(quoted)
    return ", ".join([*quoted[:-1], f"and {quoted[-1]}"]) if len(quoted) > 2 else "".join(quoted)


def _text(step: VerifierStep, op: PartitionOperands) -> str:
    """Return the diagnostic of a step that fails, with its operands."""
    if step.number == 11 and op.load_mode is not None and not op.load_mode.is_multicast:
        count = op.count_of_descriptor if op.num_multicast in (None, 1) else op.num_multicast
        return op.dialect.companion.format(count=count)
    names = op.dialect.trio if len(step.shows) == 3 else step.shows
    return step.text + joined_operands(op.dialect, [_operand(op, name) for name in names])


def _broken(step: VerifierStep, op: PartitionOperands) -> tuple[Diagnostic, ...]:
    """List the rules of cute_py that explain why a step fails; empty if cute_py has no rule for it."""
    found = op.other_transfer if op.dialect.limits else []
    if step.number == 1 and not op.same_type:
        shared = f"{op.smem.engine}" if isinstance(op.smem, Tensor) else ""
        found += broken(
            (True, "types", f"the shared elements {shared} and the global elements {op.dtype} have different widths")
        )
    if step.number == 6:
        pairs = (("shared layout", op.plain_smem), ("CTA V-map", op.cta_v_map))
        found += broken(
            *((not is_static_layout(held), "static", f"the {name} {held} has run-time numbers") for name, held in pairs)
        )
    if step.number == 7 and op.plain_smem is not None and op.cta_v_map is not None:
        texts = [tile_text(mode_sizes(held)) for held in (op.plain_smem, op.cta_v_map)]
        found += broken((True, "sizes", f"the shared layout has the sizes {texts[0]}; the CTA V-map has {texts[1]}"))
    if step.number == 8 and op.is_im2col and op.image_layout is None and op.gmem is not None:
        rank = rank_of(op.gmem.shape)
        found += broken((True, "rank", f"rank of an im2col tensor = {rank} modes; must be 3 to 5"))
    return (*found, *(op.map_rules if step.number > 8 and op.dialect.limits and op.box else []))


@record
class PartitionWalk:
    """The result of a walk through the steps of the verifier.

    `failed` is the number of the step that failed (None: all passed), and `text` is its diagnostic. `flags` has the
    flags that the steps before the failure set. `results` has the records if all steps passed, and `broken` has the
    rules that explain a failure.

    >>> walk = verify_partition(Layout((Int(8), Int(64))), None, (8, 64))
    >>> print(walk.failed, walk.text)
    1 invalid operand types, got !cute.layout<(8,64),(1,8)>, None, and !cute.tile<[8:1;64:1]>
    """

    failed: int | None
    text: str
    flags: TmaFlags
    results: tuple[TmaPartitionResult, ...] = ()
    broken: tuple[Diagnostic, ...] = ()

    def __str__(self) -> str:
        verdict = "passed" if self.failed is None else f"step {self.failed}: {self.text}"
        return f"{verdict}\n{self.flags.describe()}"

    __repr__ = short_repr


def record_of(walk: PartitionWalk, arch: str) -> TmaPartitionResult:
    """Return the record of a walk, or raise the error of the step that failed.

    Raises:
        TmaVerifyError: a step failed.
        InvalidValueError: the architecture lacks the mode, or a cluster can't have that many CTAs.
    """
    if walk.failed is not None:
        raise TmaVerifyError(walk.failed, walk.text, {str(i): d.message for i, d in enumerate(walk.broken, 1)})
    [found] = walk.results
    if rules := check_op(found.body.operation, arch, found.body.num_multicast):
        raise InvalidValueError(rules[0].message, {"architecture": arch})
    return found


def partition(
    smem_layout: SharedLayout | Tensor,
    gtensor: Tensor | SupportsDLPack,
    partitioner: Tree | None = None,
    cta_v_map: Layout | None = None,
    *,
    load_mode: TmaLoadMode | int | str | None = None,
    store_mode: TmaStoreMode | int | str | None = None,
    reduce_kind: TmaReduceKind | int | str | None = None,
    num_multicast: int | tuple[int, ...] | Layout | None = 1,
    metadata: None = None,
    s2t: S2TDescriptorView | None = None,
    arch: str = "sm_90a",
    dialect: Dialect | str = "seed",
) -> list[TmaPartitionResult]:
    """Verify a partition and return its records, one per partitioned tile.

    Args:
        smem_layout: the static layout of the tile in shared memory, in elements; composed with a swizzle for a swizzled
            tile.
        gtensor: the global tensor: a tensor of `make_gmem_ptr`, or an array.
        partitioner: the tile, by mode; plain ints become static. Default: the shape of the shared layout.
        cta_v_map: the CTA's value map. Default: the identity composed with the partitioner.
        load_mode: a `TmaLoadMode`, its name or number. Default: NO_MULTICAST, unless it is a store or a reduction.
        store_mode, reduce_kind: one of these makes the transfer a store or a reduction. A reduction may also have a
            store mode.
        num_multicast: number of CTAs that share the load; None if the operand is absent. Stores and reductions ignore
            it.
        metadata: the metadata of a sparse tile; the verifier refuses it.
        s2t: the shared-memory descriptor for the copy of this tile to tensor memory, from
            `cute_py.tmem.get_copy_s2t_smem_desc`. It must have the swizzle of the tile, and at most its bytes. The atom
            then has it, and the record has its flag.
        arch: the architecture; multicast and im2col need sm_90, a two-CTA load sm_100.
        dialect: 'seed' for the step order and texts of the reference page, 'dsl' for the order and texts of CuTe DSL
            4.8.1.
    Raises:
        TmaVerifyError: a step fails; `.step` is its number, and the facts are the rules that the operands break.
        InvalidValueError: the mode is unknown, a load mode is given for a store, the architecture lacks the mode, or a
            cluster can't have that many CTAs.
    Source:
        the TMA Atoms reference page, Eleven-Step Partition Verifier; CuTe DSL 4.8.1 was run for dialect 'dsl'.

    >>> from cute_py.tensor.pointers import make_gmem_ptr
    >>> from cute_py.tensor.tensor import make_tensor
    >>> gmem = make_tensor(make_gmem_ptr(0, "float16"), Layout((1024, 512), (512, Int(1))))
    >>> smem = Layout((Int(128), Int(64)), LayoutRight)
    >>> [record] = partition(smem, gmem, (128, 64))
    >>> print(record.tensor_type, record.tile_element_count, record.rank)
    !cute.coord_tensor<(0,0),(1024,512),(1@1,1@0)> 8192 2
    """
    walk = verify_partition(
        *(smem_layout, gtensor, partitioner, cta_v_map),
        load_mode=load_mode,
        store_mode=store_mode,
        reduce_kind=reduce_kind,
        num_multicast=num_multicast,
        metadata=metadata,
        s2t=s2t,
        arch=arch,
        dialect=dialect,
    )
    return [record_of(walk, arch)]


def verify_partition(
    smem_layout: SharedLayout | Tensor,
    gtensor: Tensor | SupportsDLPack,
    partitioner: Tree | None = None,
    cta_v_map: Layout | None = None,
    *,
    load_mode: TmaLoadMode | int | str | None = None,
    store_mode: TmaStoreMode | int | str | None = None,
    reduce_kind: TmaReduceKind | int | str | None = None,
    num_multicast: int | tuple[int, ...] | Layout | None = 1,
    metadata: None = None,
    s2t: S2TDescriptorView | None = None,
    arch: str = "sm_90a",
    dialect: Dialect | str = "seed",
    descriptor: TmaDescriptorTiled | TmaDescriptorIm2col | None = None,
) -> PartitionWalk:
    """Verify a partition like `partition`, but return a failure as a `PartitionWalk` instead of raising an error.

    The walk checks neither the architecture nor the size of a cluster.

    Args:
        descriptor: the descriptor of the operation; it must match the tile, the tensor and the operation. For the other
            arguments, see `partition`.
    Raises:
        InvalidTypeError: `descriptor` or `s2t` has another type.
        InvalidValueError: a mode is unknown, a load mode is given for a store or a reduction, or `metadata` is given.

    >>> walk = verify_partition(Layout((Int(8), Int(64))), None, (8, 64))
    >>> walk.failed, walk.flags
    (1, <TmaFlags: 0>)
    """
    speech, _ = as_dialect(dialect), architecture_number(arch)
    load = None if load_mode is None else modes.as_load_mode(load_mode)
    store = None if store_mode is None else modes.as_store_mode(store_mode)
    reduce = None if reduce_kind is None else modes.as_reduce_kind(reduce_kind)
    if store is None and reduce is None:
        load = TmaLoadMode.NO_MULTICAST if load is None else load
    elif load is not None:
        other = "store mode" if reduce is None else "reduce kind"
        raise InvalidValueError(f"load mode {load.name} together with a {other}; a transfer has one direction")
    if reduce is not None and store is None:
        store = TmaStoreMode.TILED
    if metadata is not None:
        raise InvalidValueError(f"metadata = {given(metadata)}; the verifier does not partition sparse operands")
    if s2t is not None:
        expect(s2t, S2TDescriptorView, "s2t, a view of get_copy_s2t_smem_desc,")
    if descriptor is not None:
        expect_descriptor(descriptor, "descriptor must be a TMA descriptor or None")
    count = None if num_multicast is None else counted_ctas(num_multicast)
    operands = (smem_layout, gtensor, partitioner, cta_v_map)
    return walk_steps(PartitionOperands(*operands, load, store, reduce, count, arch, speech, descriptor, s2t))


def walk_steps(op: PartitionOperands) -> PartitionWalk:
    """Walk the steps in the dialect's order, and stop at the first that fails."""
    flags = _operand_flags(op)
    for number in op.dialect.order:
        step = STEPS[number - 1]
        held = step.check(op)
        flags |= _learned(number, held, op)
        if not held:
            return PartitionWalk(number, _text(step, op), flags, (), _broken(step, op))
    return PartitionWalk(None, "", flags, (_record(op, flags),))


def _set(flags: dict[TmaFlags, bool]) -> TmaFlags:
    return TmaFlags(sum(flag for flag, learned in flags.items() if learned))


def _operand_flags(op: PartitionOperands) -> TmaFlags:
    """Return the flags that are determined by only the operands."""
    load, store = op.load_mode, op.store_mode
    return _set(
        {
            TmaFlags.MULTICAST: load is not None and load.is_multicast,
            TmaFlags.TWO_CTA: load is TmaLoadMode.TWO_CTA,
            TmaFlags.IM2COL: op.is_im2col,
            TmaFlags.IM2COL_W: store is TmaStoreMode.IM2COL_W,
            TmaFlags.IM2COL_W128: store is TmaStoreMode.IM2COL_W128,
            TmaFlags.S2T_DESCRIPTOR: op.s2t is not None,
            TmaFlags.PREFETCH_ELIGIBLE: op.gmem_layout is not None and is_static_layout(op.gmem_layout),
        }
    )


def _learned(number: int, held: bool, op: PartitionOperands) -> TmaFlags:
    """Return the flags that one step sets. If a step has two halves, each half has its own flag."""
    if number == 4:
        smem = integer_strides(op.plain_smem)
        return _set({TmaFlags.GMEM_INT_STRIDE: gmem_strides(op), TmaFlags.SMEM_INT_STRIDE: smem})
    if number == 6:
        smem, v_map = is_static_layout(op.plain_smem), is_static_layout(op.cta_v_map)
        return _set({TmaFlags.STATIC_SMEM: smem, TmaFlags.STATIC_VMAP: v_map})
    return {7: TmaFlags.SHAPE_EQUIV, 8: TmaFlags.G_BASIS_OK}.get(number, TmaFlags(0)) if held else TmaFlags(0)


def _record(op: PartitionOperands, flags: TmaFlags) -> TmaPartitionResult:
    """Make the record, and the atom in it, from operands that passed every step."""
    if op.gbasis is None or op.tma_layout is None or op.gmem_layout is None or op.cta_v_map is None:
        raise InvalidValueError("an atom needs operands that pass every step of the verifier")
    made, dtype = None if isinstance(op.made, CuteError) else op.made, op.dtype
    rank = rank_of(op.gbasis.layout.shape) if made is None else made.request.rank
    tensor_type = TmaTensorType(op.kind, dtype.name, op.tma_layout, rank)
    transfer = (op.kind, op.load_mode, op.store_mode, op.reduce_kind, dtype.name, dtype.bits)
    tile = (op.smem_layout, op.gmem_layout, op.cta_v_map, op.gbasis.layout, op.box, op.multicast, op.cu_swizzle)
    everything = (*transfer, *tile, tensor_type, True, op.described, made, op.s2t)
    atom = NonExecTmaAtom(*everything)
    code, table = SWIZZLE_MODE_OF[atom.cu_swizzle], interned_objects()
    elements = atom.tile_elements * atom.num_multicast
    return TmaPartitionResult(table.intern(tensor_type), elements, flags, code, atom.rank, table.intern(atom))
