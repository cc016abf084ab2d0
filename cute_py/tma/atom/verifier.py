"""The partition verifier: eleven steps from operands to a record, or the text of the first step that fails.

    partition(smem, gtensor, tiler)  ->  [TmaPartitionResult]
    verify_partition(...)            ->  PartitionWalk: the same without raising, with the flags learned so far

It is the one place where descriptor shape, transfer mode, multicast count and reduction are checked together. It checks
more than `make_tma_atom`, which follows CuTe C++ and does not pass through here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cute_py.argument_checks import expect_fields
from cute_py.errors import InvalidValueError, TmaVerifyError
from cute_py.tma.atom.flags import TmaFlags
from cute_py.tma.atom.interned import interned_objects
from cute_py.tma.atom.modes import (
    TmaLoadMode,
    TmaStoreMode,
    as_load_mode,
    as_reduce_kind,
    as_store_mode,
    why_not_modes,
)
from cute_py.tma.atom.multicast import MAX_CLUSTER, multicast_count
from cute_py.tma.atom.non_exec_atom import NonExecTmaAtom, TmaTensorType
from cute_py.tma.atom.op import architecture_number
from cute_py.tma.atom.record import SWIZZLE_MODE_OF, TmaPartitionResult
from cute_py.tma.atom.verifier_dialects import Dialect, as_dialect, diagnostic, step_order
from cute_py.tma.atom.verifier_operands import PartitionOperands
from cute_py.tma.atom.verifier_steps import gmem_strides, smem_strides, static_layout


@dataclass(frozen=True, slots=True)
class PartitionWalk:
    """What a walk through the steps found.

    `failed` is the number of the step that refused (None: all passed) and `text` its diagnostic; `flags` holds what
    was learned up to there. `results` are the records of a walk that passed.
    """

    failed: int | None
    text: str
    flags: TmaFlags
    results: tuple[TmaPartitionResult, ...] = ()

    def __post_init__(self) -> None:
        expect_fields(self)

    def __str__(self) -> str:
        verdict = "passed" if self.failed is None else f"step {self.failed}: {self.text}"
        return f"{verdict}\n{self.flags.describe()}"


def partition(
    smem_layout: Any,
    gtensor: Any,
    partitioner: Any = None,
    cta_v_map: Any = None,
    *,
    load_mode: Any = None,
    store_mode: Any = None,
    reduce_kind: Any = None,
    num_multicast: Any = 1,
    metadata: Any = None,
    s2t: Any = None,
    arch: str = "sm_90a",
    dialect: Any = "seed",
) -> list[TmaPartitionResult]:
    """Verify a partition and give its records, one per partitioned tile.

    Args:
        smem_layout: the tile in shared memory, static, in elements; composed with a swizzle for a swizzled tile.
        gtensor: the global tensor: a tensor of `make_gmem_ptr`, or an array.
        partitioner: the tile, by mode; plain ints are taken as static. Default: the shape of the shared layout.
        cta_v_map: the CTA's value map where it is not the identity composed with the partitioner.
        load_mode: a `TmaLoadMode`, its name or number; default NO_MULTICAST unless it is a store or a reduction.
        store_mode, reduce_kind: make it a store or a reduction (a reduction may name its store mode too).
        num_multicast: CTAs that share the load; None where there is no such operand. Stores and reductions take none:
            it is not looked at.
        metadata: the metadata operand of a sparse tile. s2t: a shared-to-tensor-memory descriptor view. Either sets
            its flag if it is there.
        arch: the architecture; multicast and im2col need sm_90, a two-CTA load sm_100.
        dialect: 'seed' for the reference page's order and texts, 'dsl' for those of CuTe DSL 4.8.1.
    Raises:
        TmaVerifyError: a step refuses; `.step` is its number.
        InvalidValueError: an unknown mode, a load mode with a store, a mode that the architecture has not, or more
            CTAs than a cluster has.
    Source:
        the TMA Atoms reference page, Eleven-Step Partition Verifier; CuTe DSL 4.8.1 was run for dialect 'dsl'.

    >>> from cute_py.arith_tuple.pointers import make_gmem_ptr
    >>> from cute_py.arith_tuple.tensors import make_tensor
    >>> gmem = make_tensor(make_gmem_ptr(0, "float16"), Layout((1024, 512), (512, Int(1))))
    >>> smem = Layout((Int(128), Int(64)), LayoutRight)
    >>> [record] = partition(smem, gmem, (128, 64))
    >>> print(record.tensor_type, record.tile_element_count, record.rank)
    !cute.coord_tensor<"(0,0)", "(1024,512):(1@1,1@0)"> 8192 2
    """
    speech = as_dialect(dialect)
    number = architecture_number(arch)
    op = _operands(
        (smem_layout, gtensor, partitioner, cta_v_map),
        (load_mode, store_mode, reduce_kind),
        num_multicast,
        number,
        speech,
    )
    walk = walk_steps(op, speech, metadata is not None, s2t is not None)
    if walk.failed is not None:
        raise TmaVerifyError(walk.failed, walk.text)
    reason = why_not_modes(op.load_mode, op.store_mode, number)
    if reason is None and op.multicast > MAX_CLUSTER:
        reason = f"num_multicast = {op.multicast} CTAs; must be at most {MAX_CLUSTER}, the largest cluster"
    if reason is not None:
        raise InvalidValueError(reason, {"architecture": arch})
    return list(walk.results)


def verify_partition(
    smem_layout: Any,
    gtensor: Any,
    partitioner: Any = None,
    cta_v_map: Any = None,
    *,
    load_mode: Any = None,
    store_mode: Any = None,
    reduce_kind: Any = None,
    num_multicast: Any = 1,
    metadata: Any = None,
    s2t: Any = None,
    arch: str = "sm_90a",
    dialect: Any = "seed",
) -> PartitionWalk:
    """As `partition`, but a refusal is returned, with the flags learned before it. The architecture's gates and the
    size of a cluster are not part of the walk.

    >>> walk = verify_partition(Layout((Int(8), Int(64))), None, (8, 64))
    >>> walk.failed, walk.flags
    (1, <TmaFlags: 0>)
    """
    speech = as_dialect(dialect)
    op = _operands(
        (smem_layout, gtensor, partitioner, cta_v_map),
        (load_mode, store_mode, reduce_kind),
        num_multicast,
        architecture_number(arch),
        speech,
    )
    return walk_steps(op, speech, metadata is not None, s2t is not None)


def walk_steps(op: PartitionOperands, dialect: Dialect, sparse: bool = False, s2t: bool = False) -> PartitionWalk:
    """Walk the steps in the dialect's order; stop at the first that fails."""
    flags = _operand_flags(op, sparse, s2t)
    for step in step_order(dialect):
        held = step.check(op, dialect.gates)
        flags |= _learned(step.number, held, op, dialect)
        if not held:
            return PartitionWalk(step.number, diagnostic(dialect, step, op), flags)
    return PartitionWalk(None, "", flags, (_record(op, flags),))


def _operands(
    tensors: tuple[Any, Any, Any, Any], given: tuple[Any, Any, Any], num_multicast: Any, number: int, dialect: Dialect
) -> PartitionOperands:
    load, store, reduce = given
    load_mode = None if load is None else as_load_mode(load)
    store_mode = None if store is None else as_store_mode(store)
    reduce_kind = None if reduce is None else as_reduce_kind(reduce)
    if store_mode is None and reduce_kind is None:
        load_mode = TmaLoadMode.NO_MULTICAST if load_mode is None else load_mode
    elif load_mode is not None:
        other = "store mode" if reduce_kind is None else "reduce kind"
        raise InvalidValueError(f"load mode {load_mode.name} together with a {other}; a transfer has one direction")
    if reduce_kind is not None and store_mode is None:
        store_mode = TmaStoreMode.TILED
    return PartitionOperands(
        *tensors,
        load_mode,
        store_mode,
        reduce_kind,
        _count(num_multicast),
        number,
        dialect.split_oversize,
    )


def _count(num_multicast: Any) -> int | None:
    return None if num_multicast is None else multicast_count(num_multicast)


def _operand_flags(op: PartitionOperands, sparse: bool, s2t: bool) -> TmaFlags:
    """What the operands alone say."""
    flags = TmaFlags(0)
    if op.load_mode is not None and op.load_mode.is_multicast:
        flags |= TmaFlags.MULTICAST
    if op.load_mode is TmaLoadMode.TWO_CTA:
        flags |= TmaFlags.TWO_CTA
    if op.store_mode is not None and op.store_mode.is_im2col:
        flags |= TmaFlags.IM2COL
    if op.store_mode is TmaStoreMode.IM2COL_W:
        flags |= TmaFlags.IM2COL_W
    if op.store_mode is TmaStoreMode.IM2COL_W128:
        flags |= TmaFlags.IM2COL_W128
    if sparse:
        flags |= TmaFlags.SPARSE
    if s2t:
        flags |= TmaFlags.S2T_DESCRIPTOR
    if op.gmem_layout is not None and static_layout(op.gmem_layout):
        flags |= TmaFlags.PREFETCH_ELIGIBLE
    return flags


def _learned(number: int, held: bool, op: PartitionOperands, dialect: Dialect) -> TmaFlags:
    """What one step taught: its halves by themselves, where it has two."""
    none = TmaFlags(0)
    if number == 4:
        gmem = TmaFlags.GMEM_INT_STRIDE if gmem_strides(op, dialect.gates) else none
        return gmem | (TmaFlags.SMEM_INT_STRIDE if smem_strides(op, dialect.gates) else none)
    if number == 6:
        smem = TmaFlags.STATIC_SMEM if static_layout(op.plain_smem) else none
        return smem | (TmaFlags.STATIC_VMAP if static_layout(op.cta_v_map) else none)
    if not held:
        return none
    return {7: TmaFlags.SHAPE_EQUIV, 8: TmaFlags.G_BASIS_OK}.get(number, none)


def _record(op: PartitionOperands, flags: TmaFlags) -> TmaPartitionResult:
    atom = verified_atom(op)
    table = interned_objects()
    slice_elements = atom.tile_elements // atom.num_multicast
    return TmaPartitionResult(
        table.intern(atom.tensor_type),
        slice_elements * atom.num_multicast,
        flags,
        SWIZZLE_MODE_OF[atom.cu_swizzle],
        atom.rank,
        table.intern(atom),
    )


def verified_atom(op: PartitionOperands) -> NonExecTmaAtom:
    """The atom of operands that passed every step."""
    if op.gbasis is None or op.tma_layout is None or op.gmem_layout is None or op.cta_v_map is None:
        raise InvalidValueError("these operands have not passed the steps; no atom can be made of them")
    basis = op.gbasis.layout
    rank = len(op.box[0])
    return NonExecTmaAtom(
        op.kind,
        op.load_mode,
        op.store_mode,
        op.reduce_kind,
        op.dtype.name,
        op.dtype.bits,
        op.smem_layout,
        op.gmem_layout,
        op.cta_v_map,
        basis,
        op.box[0],
        op.multicast,
        op.cu_swizzle,
        TmaTensorType(op.kind, op.dtype.name, op.tma_layout, rank),
        verified=True,
    )
