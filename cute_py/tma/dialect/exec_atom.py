"""The executable atom, and what a copy lowers to.

`make_exec_tma` binds a verified atom to its run-time state: a barrier in shared memory, a cache mode, a multicast mask.
Lowering checks the operands of one copy, raises the barrier by the bytes that the copy will deliver, and gives the
operations in order: prefetch of the descriptor if asked for, the expectation, one copy per instruction.

A load completes through the barrier: whoever reads the tile waits on it first. Stores and reductions complete by bulk
groups, and raise no barrier.

Which reductions exist for which element types. The partition verifier takes all eight kinds for any type, as the TMA
Atoms reference page does; a copy that the hardware would trap on is refused when it is lowered.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

from cute_py.argument_checks import expect, expect_fields, expect_integer, is_integer
from cute_py.errors import InvalidTypeError, TmaBuildError, given
from cute_py.layout.leaf import Dynamic, coordinate, internal_leaf, public
from cute_py.targets import MAX_CLUSTER
from cute_py.tensor.tensor import Tensor
from cute_py.tma.dialect import diagnostics as say
from cute_py.tma.dialect.cache_mode import CacheMode, as_cache_mode, why_not_cache_mode
from cute_py.tma.dialect.descriptors import TmaDescriptorIm2col, TmaDescriptorTiled
from cute_py.tma.dialect.diagnostics import Finding, refuse
from cute_py.tma.dialect.modes import TmaReduceKind
from cute_py.tma.dialect.non_exec_atom import NonExecTmaAtom
from cute_py.tma.dialect.record import TmaPartitionResult

_INTEGERS = ("uint32", "int32", "uint64")
_ADDS = (*_INTEGERS, "float16", "bfloat16", "float32", "float64", "tfloat32")
_ORDERED = (*_INTEGERS, "int64", "float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class ReductionTypes:
    """A kind and the element types that it executes on; on other types of whole bytes it traps."""

    kind: TmaReduceKind
    dtypes: tuple[str, ...]
    source: str = "measured on NVIDIA H200, driver 580.159.04"


REDUCTION_TYPES: Final[tuple[ReductionTypes, ...]] = (
    ReductionTypes(TmaReduceKind.ADD, _ADDS),
    ReductionTypes(TmaReduceKind.MIN, _ORDERED),
    ReductionTypes(TmaReduceKind.MAX, _ORDERED),
    ReductionTypes(TmaReduceKind.INC, ("uint32",)),
    ReductionTypes(TmaReduceKind.DEC, ("uint32",)),
    ReductionTypes(TmaReduceKind.AND, _INTEGERS),
    ReductionTypes(TmaReduceKind.OR, _INTEGERS),
    ReductionTypes(TmaReduceKind.XOR, _INTEGERS),
)

_DTYPES_OF: Final = {row.kind: row.dtypes for row in REDUCTION_TYPES}


def why_not_reduction(kind: TmaReduceKind, dtype: str) -> str | None:
    """Why a reduction does not run on an element type, or None.

    >>> why_not_reduction(TmaReduceKind.INC, "int32")
    'reduction INC of int32; the hardware has it for uint32'
    """
    expect(kind, TmaReduceKind, "a reduction")
    expect(dtype, str, "the name of an element type")
    if dtype in _DTYPES_OF[kind]:
        return None
    return f"reduction {kind.name} of {dtype}; the hardware has it for {', '.join(_DTYPES_OF[kind])}"


MASK_BITS: Final = MAX_CLUSTER
"""CTAs of the largest cluster."""
SMALLEST_MULTICAST_BYTES: Final = 128
"""Bytes of one CTA's box below which the TMA load walkthrough refuses a multicast. A rule of the dialect."""


@runtime_checkable
class TransactionBarrier(Protocol):
    """What a barrier must do: expect more bytes in its current phase."""

    def expect_tx(self, nbytes: int, /) -> None: ...


@dataclass(frozen=True, slots=True)
class ExecTmaAtom:
    """A verified atom with its run-time state. `multicast` is the mask of the CTAs that receive, or None."""

    atom: NonExecTmaAtom
    barrier: Any
    cache_mode: CacheMode
    multicast: int | None = None

    def __post_init__(self) -> None:
        expect_fields(self)

    @property
    def cache_hint(self) -> int | None:
        """The L2 policy operand, or None."""
        return self.cache_mode.cache_hint


@dataclass(frozen=True, slots=True)
class PrefetchDescriptor:
    """Bring a descriptor into the descriptor cache before it is used."""

    descriptor: Any

    def __str__(self) -> str:
        return "prefetch_tma_desc"


@dataclass(frozen=True, slots=True)
class ExpectTx:
    """Raise a barrier's transaction count."""

    nbytes: int

    def __post_init__(self) -> None:
        expect_fields(self)

    def __str__(self) -> str:
        return f"expect_tx {self.nbytes} bytes"


@dataclass(frozen=True, slots=True)
class BulkTensorCopy:
    """One cp.async.bulk.tensor (or its reduction): coordinates innermost first, `smem_offset` in elements from the
    tile's start, `nbytes` of this CTA's box."""

    kind: str
    coord: tuple[Any, ...]
    smem_offset: int
    nbytes: int
    cache_hint: int | None = None
    multicast: int | None = None
    reduce_kind: TmaReduceKind | None = None

    def __post_init__(self) -> None:
        expect_fields(self)
        for c in self.coord:
            if type(internal_leaf(c)) not in (int, Dynamic):
                raise InvalidTypeError(f"a coordinate is a number or an expression, got {given(c)}")

    def __str__(self) -> str:
        name = self.kind if self.reduce_kind is None else f"reduce.{self.reduce_kind.ptx}"
        coord = ", ".join(str(int(c)) if isinstance(c, int) else str(c) for c in self.coord)
        return f"cp.async.bulk.tensor {name} ({coord}), element {self.smem_offset}, {self.nbytes} bytes"


def memory_space_of(value: Any) -> str | None:
    """'smem', 'gmem', ... of a pointer, a tensor, or an object that says `memory_space` or `space`; None where nothing
    is said.

    >>> from cute_py.tensor.pointers import make_smem_ptr
    >>> memory_space_of(make_smem_ptr(0, "float16"))
    'smem'
    """
    found = value.engine if isinstance(value, Tensor) else value
    space = getattr(found, "memory_space", getattr(found, "space", None))
    text = getattr(space, "name", space)
    if not isinstance(text, str):
        return None
    return "smem" if text.lower() in ("smem", "shared", "shared_memory") else text


def why_not_barrier(barrier: Any, kind: str) -> str | None:
    """Why this can't be the barrier of a load, store or reduction, or None.

    An object with `expect_tx` that names no memory space is a barrier, and barriers live in shared memory.
    """
    if barrier is None:
        return say.NO_BARRIER if kind == "load" else None
    space = memory_space_of(barrier)
    if space == "smem" or (space is None and isinstance(barrier, TransactionBarrier)):
        return None
    return say.BARRIER_NOT_SHARED


def why_not_mask(atom: NonExecTmaAtom, mask: Any) -> str | None:
    """Why this multicast mask does not fit the atom, or None."""
    if mask is None:
        if atom.num_multicast > 1:
            return f"a load shared by {atom.num_multicast} CTAs needs a multicast mask"
        return None
    if not is_integer(mask) or not 0 < operator.index(mask) < 1 << MASK_BITS:
        return f"multicast mask {given(mask)}; must be 1 to {(1 << MASK_BITS) - 1}"
    mask = operator.index(mask)
    if atom.load_mode is None or not atom.load_mode.is_multicast:
        mode = atom.kind if atom.load_mode is None else f"load of mode {atom.load_mode.name}"
        return f"multicast mask {mask:#06x}; a {mode} takes none"
    if mask.bit_count() != atom.num_multicast:
        return f"multicast mask {mask:#06x} of {mask.bit_count()} CTAs; must name the {atom.num_multicast} that share"
    return None


def make_exec_tma(
    atom: Any, barrier: Any = None, cache_mode: Any = CacheMode.CG, multicast: int | None = None
) -> ExecTmaAtom:
    """Bind a non-exec atom to its run-time state.

    Args:
        atom: a verified `NonExecTmaAtom`, or the record that holds one.
        barrier: in shared memory: an object with `expect_tx`, or a shared pointer. Only a load needs one.
        cache_mode: a `CacheMode`, its name, or `load_cache_mode<cg>`.
        multicast: the mask of the CTAs that receive; bit i is CTA i of the cluster.
    Raises:
        TmaBuildError: the atom is not verified, the barrier is not in shared memory, or mask or cache mode do not fit.
    """
    atom = atom.body if isinstance(atom, TmaPartitionResult) else atom
    if not isinstance(atom, NonExecTmaAtom):
        raise TmaBuildError(say.NOT_VERIFIED, {"found": type(atom).__name__})
    mode = as_cache_mode(cache_mode)
    found = [] if atom.verified else [Finding(say.NOT_VERIFIED)]
    reasons = (why_not_barrier(barrier, atom.kind), why_not_mask(atom, multicast), why_not_cache_mode(mode, atom.kind))
    found += [Finding(reason) for reason in reasons if reason is not None]
    refuse(found)
    return ExecTmaAtom(atom, barrier, mode, multicast)


def _whole_coordinate(coord: Any) -> tuple[Any, ...]:
    if not isinstance(coord, (tuple, list)):
        raise InvalidTypeError(f"the coordinate of a copy is a tuple, got {type(coord).__name__} {given(coord)}")
    return tuple(coord)


def why_not_copy(exec_atom: ExecTmaAtom, tile: Any, coord: tuple[Any, ...]) -> list[Finding]:
    """Everything that stands between this atom and one copy: where the tile lies, the coordinate's rank."""
    atom, found = exec_atom.atom, []
    space = memory_space_of(tile)
    if space != "smem":
        found.append(Finding(say.NOT_SHARED, "no memory space" if space is None else space))
    if len(coord) != atom.rank:
        found.append(Finding(f"coordinate of {len(coord)} numbers; must be the descriptor's rank {atom.rank}"))
    return found


def why_not_load(exec_atom: ExecTmaAtom) -> list[Finding]:
    """What the atom verifier after the builder says of a load."""
    atom, found = exec_atom.atom, []
    if atom.kind != "load":
        found.append(Finding(say.EXPECT_LOAD_ATOM, f"a {atom.kind} atom"))
    descriptor = atom.descriptor
    if isinstance(descriptor, (TmaDescriptorTiled, TmaDescriptorIm2col)) and len(descriptor.box) != len(atom.box):
        found.append(Finding(say.BOX_LENGTH_MISMATCH, f"{len(descriptor.box)} and {len(atom.box)} extents"))
    if atom.num_multicast > 1 and atom.bytes_per_instruction < SMALLEST_MULTICAST_BYTES:
        found.append(Finding(say.SMALL_MULTICAST, f"{atom.bytes_per_instruction} bytes"))
    return found


def _copies(exec_atom: ExecTmaAtom, coord: tuple[Any, ...], cta: int) -> list[BulkTensorCopy]:
    atom = exec_atom.atom
    coord = public(coordinate(coord))
    if any(isinstance(c, tuple) for c in coord):
        raise InvalidTypeError(f"a coordinate of a tile has one number a mode, got {given(coord)}")
    out = []
    for index in range(atom.instructions):
        part = atom.instruction(index, cta)
        place = tuple(int(c) + d if isinstance(c, int) else c + d for c, d in zip(coord, part.coord, strict=True))
        out.append(
            BulkTensorCopy(
                atom.kind,
                place,
                part.smem_offset,
                atom.bytes_per_instruction,
                exec_atom.cache_hint,
                exec_atom.multicast,
                atom.reduce_kind,
            )
        )
    return out


def lower_tma_load(
    exec_atom: ExecTmaAtom, dst: Any, coord: tuple[Any, ...], *, prefetch: bool = False, cta: int = 0
) -> tuple[PrefetchDescriptor | ExpectTx | BulkTensorCopy, ...]:
    """The operations of one tile's load, in order; the barrier, if it counts, is raised by the tile's bytes.

    Args:
        dst: the tile in shared memory: a tensor, a pointer, or an object that names its memory space.
        coord: of the tile's first element, innermost first, as many as the descriptor has modes.
        prefetch: prefetch the descriptor first. cta: which of the CTAs of a multicast issues.
    Raises:
        TmaBuildError: 'expect a tma_load atom type', a tile outside shared memory, a coordinate of another rank.
    """
    expect(exec_atom, ExecTmaAtom, "an executable atom")
    coord = _whole_coordinate(coord)
    cta = expect_integer(cta, "cta", 0, exec_atom.atom.num_multicast - 1)
    refuse(why_not_load(exec_atom) + why_not_copy(exec_atom, dst, coord))
    atom = exec_atom.atom
    out: list[PrefetchDescriptor | ExpectTx | BulkTensorCopy] = []
    if expect(prefetch, bool, "prefetch"):
        out.append(PrefetchDescriptor(atom.descriptor))
    copies = _copies(exec_atom, coord, cta)
    if isinstance(exec_atom.barrier, TransactionBarrier):
        exec_atom.barrier.expect_tx(atom.transaction_bytes)
    out.append(ExpectTx(atom.transaction_bytes))
    return (*out, *copies)


def lower_tma_store(
    exec_atom: ExecTmaAtom, src: Any, coord: tuple[Any, ...], *, prefetch: bool = False
) -> tuple[PrefetchDescriptor | BulkTensorCopy, ...]:
    """The operations of one tile's store or reduction, in order.

    Raises:
        TmaBuildError: a load atom, a tile outside shared memory, a coordinate of another rank, or a reduction that the
            hardware has not for this element type.
    """
    expect(exec_atom, ExecTmaAtom, "an executable atom")
    coord = _whole_coordinate(coord)
    atom = exec_atom.atom
    found = [Finding("expect a tma_store or tma_reduce atom type", "a load atom")] if atom.kind == "load" else []
    if atom.reduce_kind is not None and (reason := why_not_reduction(atom.reduce_kind, atom.dtype)) is not None:
        found.append(Finding(reason))
    refuse(found + why_not_copy(exec_atom, src, coord))
    first = (PrefetchDescriptor(atom.descriptor),) if expect(prefetch, bool, "prefetch") else ()
    return (*first, *_copies(exec_atom, coord, 0))
