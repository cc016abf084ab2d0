"""The partition verifier: eleven steps from operands to a record, or the text of the first step that fails.

    partition(smem, gtensor, tiler)  ->  [TmaPartitionResult]
    verify_partition(...)            ->  PartitionWalk: the same without raising, with the flags learned so far

It is the one place where descriptor shape, transfer mode, multicast count and reduction are checked together. It checks
more than `make_tma_atom`, which follows CuTe C++ and does not pass through here.

The two ways in which the partition verifier speaks.

`seed` is the TMA Atoms reference page: its order, its operand order, types without quotes. `dsl` is what the builder of
CuTe DSL 4.8.1 was seen to do: the multicast check first, the global operand before the shared one, types in quotes,
run-time numbers of the shared layout and the V-map as `?`, and none of the gates that look at descriptor limits. Steps
2, 8, 9 and 10 were never seen there; in this dialect their texts are the reference page's in its style. A global
tensor's numbers are known here, and print: what was seen had static global shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cute_py.argument_checks import expect_fields
from cute_py.errors import InvalidValueError, TmaVerifyError, given
from cute_py.targets import MAX_CLUSTER
from cute_py.tma.atom.op import architecture_number, multicast_count
from cute_py.tma.dialect.mlir_text import tile_text, type_text
from cute_py.tma.dialect.modes import (
    TmaLoadMode,
    TmaStoreMode,
    as_load_mode,
    as_reduce_kind,
    as_store_mode,
    why_not_modes,
)
from cute_py.tma.dialect.non_exec_atom import NonExecTmaAtom, TmaTensorType
from cute_py.tma.dialect.record import SWIZZLE_MODE_OF, TmaFlags, TmaPartitionResult, interned_objects
from cute_py.tma.dialect.verifier_operands import PartitionOperands
from cute_py.tma.dialect.verifier_steps import (
    COMPANION_TEXT,
    STEPS,
    Gates,
    Step,
    gmem_strides,
    smem_strides,
    static_layout,
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """Order of the steps, how operands are printed and joined, which gates are closed.

    Attributes:
        known: print run-time integers of the shared layout and the V-map as numbers. quote: around each type. pair:
            between two types.
        trio: order of three operands. companion: step 11's text for a count with a mode that is no multicast.
    """

    name: str
    order: tuple[int, ...]
    known: bool
    quote: str
    pair: str
    trio: tuple[str, ...]
    companion: str
    gates: Gates
    split_oversize: bool


SEED: Final = Dialect(
    "seed",
    tuple(range(1, 12)),
    True,
    "",
    ", and ",
    ("smem", "gmem", "v_map"),
    COMPANION_TEXT + "{count}",
    Gates(),
    False,
)
DSL: Final = Dialect(
    "dsl",
    (11, *range(1, 11)),
    False,
    "'",
    " and ",
    ("gmem", "smem", "v_map"),
    "expects a return TMA load type with multicast for num_multicast of {count} but got a return TMA load type "
    "does not support multicast",
    Gates(rank=False, alignment=False, swizzle=False, box=False),
    True,
)
DIALECTS: Final = (SEED, DSL)


def as_dialect(name: Any) -> Dialect:
    """The dialect of that name.

    Raises:
        InvalidValueError: no such dialect.
    """
    for dialect in DIALECTS:
        if name is dialect or (isinstance(name, str) and name == dialect.name):
            return dialect
    raise InvalidValueError(f"unknown dialect {given(name)}", {"known": ", ".join(d.name for d in DIALECTS)})


def step_order(dialect: Dialect) -> tuple[Step, ...]:
    """The steps as this dialect walks them.

    >>> [step.number for step in step_order(DSL)][:3]
    [11, 1, 2]
    """
    return tuple(STEPS[number - 1] for number in dialect.order)


def _operand(dialect: Dialect, op: PartitionOperands, name: str) -> str:
    if name == "smem":
        return type_text(op.smem if op.smem_layout is None else op.smem_layout, dialect.known)
    if name == "gmem":
        return type_text(op.shown_gmem)
    if name == "gbasis":
        return type_text(None if op.gbasis is None else op.gbasis.layout, dialect.known)
    if op.cta_v_map is not None:
        return type_text(op.cta_v_map, dialect.known)
    if op.explicit_v_map is not None:
        return type_text(op.explicit_v_map, dialect.known)
    return _tiler_text(op.partitioner, dialect)


def _tiler_text(tiler: Any, dialect: Dialect) -> str:
    """A tiler that has no V-map with this tensor: as a tile if it is one at all."""
    parts = tiler if type(tiler) is tuple else (tiler,)
    if tiler is not None and all(hasattr(p, "shape") or isinstance(p, (int, tuple)) for p in parts):
        return tile_text(tiler, dialect.known)
    return type_text(tiler, dialect.known)


def joined_operands(dialect: Dialect, texts: list[str]) -> str:
    """One, two or three types in a sentence.

    >>> joined_operands(SEED, ["A", "B"]), joined_operands(DSL, ["A", "B"]), joined_operands(SEED, ["A", "B", "C"])
    ('A, and B', "'A' and 'B'", 'A, B, and C')
    """
    quoted = [f"{dialect.quote}{text}{dialect.quote}" for text in texts]
    if len(quoted) == 2:
        return dialect.pair.join(quoted)
    return ", ".join([*quoted[:-1], f"and {quoted[-1]}"]) if len(quoted) > 2 else "".join(quoted)


def diagnostic(dialect: Dialect, step: Step, op: PartitionOperands) -> str:
    """The whole text of a step that fails."""
    if step.number == 11 and op.load_mode is not None and not op.load_mode.is_multicast:
        return dialect.companion.format(count=op.num_multicast)
    names = dialect.trio if len(step.shows) == 3 else step.shows
    return step.text + joined_operands(dialect, [_operand(dialect, op, name) for name in names])


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

    >>> from cute_py.tensor.pointers import make_gmem_ptr
    >>> from cute_py.tensor.tensor import make_tensor
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
