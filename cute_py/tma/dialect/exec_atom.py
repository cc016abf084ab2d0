"""Operations on atoms: build an atom, bind it to run-time state, and lower a copy.

    desc = tma_descriptor_tiled(tensor, layout, paddings=(), mode="tiled", elementBitWidth=16)
    atom = non_exec_tiled_tma_load(desc, tile, cta_map, num_multicast=1)
    exec = make_exec_tma(atom, barrier, cache_mode="load_cache_mode<cg>")
    op   = tma_load(exec, smem_tile, coord, allow_tma=True, inBounds=True)

`make_exec_tma` binds a verified atom to its run-time state: a barrier in shared memory, a cache mode, a multicast mask.
Lowering checks the operands of one copy, and adds the bytes that the copy will deliver to the bytes that the barrier
expects. It returns the operations in order: the prefetch of the descriptor if requested, the byte expectation, and one
copy per instruction. A load completes at its barrier, so a reader of the tile first waits on the barrier. Stores and
reductions complete by bulk groups and use no barrier.

The ten operations and types of the atom family are frozen values that are checked when they are made. Their attributes
have the dialect's names. Source: the TMA Atoms reference page, Atom Family and Worked Example.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from cute_py.argument_checks import expect, expect_integer, expect_integers, expect_items, is_integer, record
from cute_py.arith_tuple.arith_tuple import ArithTuple, ScaledBasis
from cute_py.diagnostics import Diagnostic
from cute_py.errors import InvalidTypeError, TmaBuildError, given, integer_text
from cute_py.layout.arguments import Tree
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import coordinate
from cute_py.layout.trees import leaves
from cute_py.targets import MAX_CLUSTER
from cute_py.tensor.tensor import Tensor
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.im2col import Im2colAtom
from cute_py.tma.atom.tiles import SMEM_ALIGNMENT, check_smem_address
from cute_py.tma.descriptor.request import TensorMap
from cute_py.tma.dialect import modes
from cute_py.tma.dialect.atoms import (
    BulkTensorCopy,
    Coordinates,
    ExecTmaAtom,
    ExpectTx,
    NonExecTmaAtom,
    Number,
    Place,
    PrefetchDescriptor,
    TransactionBarrier,
    address_of,
    memory_space_of,
    store_bounds,
)
from cute_py.tma.dialect.descriptors import (
    SharedLayout,
    SupportsDLPack,
    TmaDescriptorIm2col,
    TmaDescriptorTiled,
    expect_descriptor,
)
from cute_py.tma.dialect.descriptors import build_tma_descriptor as tma_descriptor_tiled
from cute_py.tma.dialect.descriptors import build_tma_descriptor_im2col as tma_descriptor_im2col
from cute_py.tma.dialect.diagnostics import TEXTS, broken, check_atom, refuse_operation, short_repr
from cute_py.tma.dialect.modes import CacheMode, TmaLoadMode, TmaReduceKind, TmaStoreMode, as_cache_mode
from cute_py.tma.dialect.record import TmaPartitionResult
from cute_py.tma.dialect.verifier import record_of, verify_partition
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.mbarrier import Mbarrier, barrier_at
from cute_py.tma.emulator.memory import Memory, SharedMemory, Window

__all__ = [
    "ATOM_FAMILY",
    "TmaOperation",
    "lower_tma_load",
    "lower_tma_store",
    "make_exec_tma",
    "non_exec_tiled_tma_load",
    "non_exec_tiled_tma_reduce",
    "non_exec_tiled_tma_store",
    "prefetch_tma_desc",
    "tma_descriptor_im2col",
    "tma_descriptor_tiled",
    "tma_load",
    "tma_reduce",
    "tma_store",
]

_MASKS: Final = (1 << MAX_CLUSTER) - 1


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """One member of the atom family: its name in the dialect, its function in this package, and its role."""

    name: str
    function: str
    role: str


ATOM_FAMILY: Final[tuple[FamilyRow, ...]] = (
    FamilyRow("atom.tma_load", "tma_load", "run an asynchronous load from global to shared memory"),
    FamilyRow("atom.tma_store", "tma_store", "run an asynchronous store from shared to global memory"),
    FamilyRow("atom.tma_reduce", "tma_reduce", "run an asynchronous reduction into global memory"),
    FamilyRow("atom.non_exec_tiled_tma_load", "non_exec_tiled_tma_load", "a tiled load before barrier and cache mode"),
    FamilyRow("atom.non_exec_tiled_tma_store", "non_exec_tiled_tma_store", "a tiled store before it is bound"),
    FamilyRow("atom.non_exec_tiled_tma_reduce", "non_exec_tiled_tma_reduce", "a tiled reduction before it is bound"),
    FamilyRow("prefetch_tma_desc", "prefetch_tma_desc", "prefetch a descriptor before a transfer"),
    FamilyRow("tma_descriptor_tiled", "tma_descriptor_tiled", "descriptor type of tiled movement"),
    FamilyRow("tma_descriptor_im2col", "tma_descriptor_im2col", "descriptor type of im2col movement"),
    FamilyRow("atom.make_exec_tma", "make_exec_tma", "bind an atom to barrier, multicast and cache mode"),
)


def check_barrier(barrier: Place | TransactionBarrier | None) -> list[Diagnostic]:
    """Check that an atom can be bound to this barrier.

    The reference page requires a barrier for every atom, although only a load uses it. An object with `expect_tx` but
    without a memory space counts as a barrier in shared memory.
    """
    if barrier is None:
        return broken((True, "no_barrier", ""))
    space = memory_space_of(barrier)
    in_smem = space == "smem" or (space is None and isinstance(barrier, TransactionBarrier))
    return broken((not in_smem, "barrier_not_shared", ""))


def check_mask(atom: NonExecTmaAtom, mask: int | None) -> list[Diagnostic]:
    """Check that a multicast mask fits the atom."""
    count, text = atom.num_multicast, ""
    if mask is None:
        text = f"a load shared by {count} CTAs needs a multicast mask" if count > 1 else ""
    elif not is_integer(mask) or not 0 < operator.index(mask) <= _MASKS:
        text = f"multicast mask {given(mask)}; must be 1 to {_MASKS}"
    elif atom.load_mode is None or not atom.load_mode.is_multicast:
        mode = atom.kind if atom.load_mode is None else f"load of mode {atom.load_mode.name}"
        text = f"multicast mask {operator.index(mask):#06x}; a {mode} takes none"
    elif (named := operator.index(mask).bit_count()) != count:
        must = f"must name the {count} CTAs that share the load"
        text = f"multicast mask {operator.index(mask):#06x} of {named} CTAs; {must}"
    return broken((text, "multicast_mask", text))


def make_exec_tma(
    atom: NonExecTmaAtom | TmaPartitionResult,
    barrier: Place | TransactionBarrier | None = None,
    cache_mode: CacheMode | str | None = None,
    multicast: int | None = None,
) -> ExecTmaAtom:
    """Bind a non-exec atom to its run-time state.

    Args:
        atom: a verified `NonExecTmaAtom`, or the record that contains one.
        barrier: a barrier in shared memory: an object with `expect_tx`, or a shared pointer. Only a load uses it.
        cache_mode: a `CacheMode`, its name, or `load_cache_mode<cg>`; default: the cache policy of the descriptor.
        multicast: the mask of the receiving CTAs; bit i is CTA i of the cluster.
    Raises:
        TmaBuildError: the atom is not verified, the barrier is not in shared memory, or the mask or the cache mode does
            not fit.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> tile = cute.parse("(_128,_64):(_64,_1)")
    >>> load = make_exec_tma(non_exec_tiled_tma_load(gmem, tile), cute.tma.Mbarrier(1))
    >>> load.cache_mode, load.multicast
    (<CacheMode.CG: 'cg'>, None)
    """
    atom = atom.body if isinstance(atom, TmaPartitionResult) else atom
    if not isinstance(atom, NonExecTmaAtom):
        raise TmaBuildError(TEXTS["not_verified"], {"found": type(atom).__name__})
    policy = CacheMode.CG if atom.descriptor is None else atom.descriptor.cache_policy
    mode = as_cache_mode(policy if cache_mode is None else cache_mode)
    found = modes.check_instruction(atom.load_mode)
    found += broken((not atom.verified, "not_verified", "")) + check_barrier(barrier)
    refuse_operation(found + check_mask(atom, multicast) + modes.check_cache_mode(mode, atom.kind))
    return ExecTmaAtom(atom, barrier, mode, multicast)


def check_exec_copy(exec_atom: ExecTmaAtom, tile: Place, coord: Sequence[Number]) -> list[Diagnostic]:
    """Check the operands of one copy.

    The tile must be in shared memory, at an address that the atom allows. The coordinate must have the rank of the
    descriptor.
    """
    if not isinstance(coord, (tuple, list)):
        raise InvalidTypeError(f"the coordinate of a copy must be a tuple, got {type(coord).__name__} {given(coord)}")
    atom, space, address = exec_atom.atom, memory_space_of(tile), address_of(tile)
    rank = f"the coordinate has {len(coord)} numbers; must have {atom.rank}, the descriptor's rank"
    return [
        *broken(
            (space != "smem", "not_shared", space or "no memory space"), (len(coord) != atom.rank, "coordinate", rank)
        ),
        *(check_smem_address(atom.traits, address) if atom.traits is not None and address is not None else []),
    ]


def check_load(atom: NonExecTmaAtom) -> list[Diagnostic]:
    """Make the checks of stage 3c on the atom of a load and the descriptor that it was made with."""
    tma_box = atom.box if atom.descriptor is None else atom.descriptor.box
    return check_atom(atom.kind, len(tma_box), len(atom.box), atom.bytes_per_instruction, atom.num_multicast)


def _copies(
    exec_atom: ExecTmaAtom, tile: Place, coord: Sequence[Number], cta: int = 0, im2col_offsets: tuple[int, ...] = ()
) -> list[BulkTensorCopy]:
    atom, address = exec_atom.atom, address_of(tile)
    start: Any = coordinate(tuple(coord))
    if any(isinstance(c, tuple) for c in start):
        raise InvalidTypeError(f"the coordinate of a tile must have one number per mode, got {given(start)}")
    out = []
    for index in range(atom.instructions):
        offset = atom.instruction(index, cta).smem_offset
        smem = None if address is None else address + offset * atom.element_bits // 8
        out.append(BulkTensorCopy(exec_atom, atom.place(start, index, cta), offset, smem, im2col_offsets))
    wrong = next((copy.smem_bytes for copy in out if copy.smem_bytes % SMEM_ALIGNMENT), 0)
    text = f"an instruction writes shared memory at byte {wrong}; must be a multiple of {SMEM_ALIGNMENT}"
    refuse_operation(broken((wrong, "instruction_place", text)))
    return out


def lower_tma_load(
    exec_atom: ExecTmaAtom,
    dst: Place,
    coord: Sequence[Number],
    *,
    prefetch: bool = False,
    cta: int = 0,
    im2col_offsets: Sequence[int] = (),
) -> tuple[PrefetchDescriptor | ExpectTx | BulkTensorCopy, ...]:
    """Lower the load of one tile: return its operations in order.

    If the barrier of the atom has a method `expect_tx`, it then expects the bytes of the tile.

    Args:
        dst: the tile in shared memory: a tensor, a pointer, or an object that names its memory space.
        coord: the coordinate of the tile's first element, innermost first, one integer per mode of the descriptor.
        prefetch: prefetch the descriptor first.
        cta: the CTA of a multicast that issues the copy.
        im2col_offsets: offsets of an im2col load, W first; zeros by default.
    Raises:
        TmaBuildError: 'expect a tma_load atom type' if the atom is not a load, the tile is not in shared memory, or the
            coordinate has the wrong rank.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> tile = cute.parse("(_128,_64):(_64,_1)")
    >>> where = cute.make_tensor(cute.make_smem_ptr(0, "float16"), tile)
    >>> load = make_exec_tma(non_exec_tiled_tma_load(gmem, tile), cute.tma.Mbarrier(1))
    >>> [type(one).__name__ for one in lower_tma_load(load, where, (0, 128))]
    ['ExpectTx', 'BulkTensorCopy']
    """
    expect(exec_atom, ExecTmaAtom, "an executable atom")
    atom = exec_atom.atom
    needs = check_exec_copy(exec_atom, dst, coord)
    offsets = expect_items(im2col_offsets, "im2col_offsets", "a sequence of integers") or atom.no_offsets
    offsets = expect_integers(offsets, "im2col_offsets", count=len(atom.no_offsets))
    cta = expect_integer(cta, "cta", 0, atom.num_multicast - 1)
    refuse_operation(check_load(atom) + needs)
    first = (PrefetchDescriptor(atom.descriptor),) if expect(prefetch, bool, "prefetch") else ()
    copies = _copies(exec_atom, dst, coord, cta, offsets)
    if isinstance(exec_atom.barrier, TransactionBarrier):
        exec_atom.barrier.expect_tx(atom.transaction_bytes)
    return (*first, ExpectTx(atom.transaction_bytes), *copies)


def lower_tma_store(
    exec_atom: ExecTmaAtom, src: Place, coord: Sequence[Number], *, prefetch: bool = False
) -> tuple[PrefetchDescriptor | BulkTensorCopy, ...]:
    """Lower the store or reduction of one tile: return its operations in order.

    Args:
        src: the tile in shared memory: a tensor, a pointer, or an object that names its memory space.
        coord: the coordinate of the tile's first element, innermost first, one integer per mode of the descriptor.
        prefetch: prefetch the descriptor first.
    Raises:
        TmaBuildError: the atom is a load, the tile is not in shared memory, the coordinate has the wrong rank, or the
            hardware does not support the reduction for this element type.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> tile = cute.parse("(_128,_64):(_64,_1)")
    >>> where = cute.make_tensor(cute.make_smem_ptr(0, "float16"), tile)
    >>> store = make_exec_tma(non_exec_tiled_tma_store(gmem, tile), cute.tma.Mbarrier(1))
    >>> [type(one).__name__ for one in lower_tma_store(store, where, (0, 128))]
    ['BulkTensorCopy']
    """
    expect(exec_atom, ExecTmaAtom, "an executable atom")
    atom = exec_atom.atom
    needs = check_exec_copy(exec_atom, src, coord)
    found = broken((atom.kind == "load", "expect_store_atom", "a load atom"))
    found += modes.check_reduction(atom.reduce_kind, atom.dtype) if atom.reduce_kind is not None else []
    refuse_operation(found + needs)
    first = (PrefetchDescriptor(atom.descriptor),) if expect(prefetch, bool, "prefetch") else ()
    return (*first, *_copies(exec_atom, src, coord))


@record
class TmaOperation:
    """One copy operation: atom.tma_load, atom.tma_store or atom.tma_reduce.

    Attributes:
        exec_atom: the executable atom.
        tile: the tile in shared memory.
        coord: the coordinate of the tile's first element, innermost first.
        operations: the operations that the copy lowers to, in order.
        allow_tma: whether the copy may be lowered to TMA.
        inBounds: whether the producer promises that the tile is inside the tensor.
        cta: the CTA of a multicast that issues the copy.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> tile = cute.parse("(_128,_64):(_64,_1)")
    >>> where = cute.make_tensor(cute.make_smem_ptr(0, "float16"), tile)
    >>> store = make_exec_tma(non_exec_tiled_tma_store(gmem, tile), cute.tma.Mbarrier(1))
    >>> print(tma_store(store, where, (0, 128)).ptx().splitlines()[-1])
    cp.async.bulk.wait_group.read 0;
    """

    name: str
    exec_atom: ExecTmaAtom
    tile: Place
    coord: tuple[Number, ...]
    operations: tuple[PrefetchDescriptor | ExpectTx | BulkTensorCopy, ...]
    allow_tma: bool = True
    inBounds: bool = False
    cta: int = 0

    @property
    def prefetch(self) -> bool:
        """Whether the copy first prefetches its descriptor."""
        return any(isinstance(one, PrefetchDescriptor) for one in self.operations)

    @property
    def attributes(self) -> dict[str, bool]:
        return {"allow_tma": self.allow_tma, "inBounds": self.inBounds}

    @property
    def traits(self) -> TmaAtom | Im2colAtom | None:
        """CuTe's atom of the same copy."""
        return self.exec_atom.traits

    @property
    def request(self) -> TensorMap:
        """The request of the tensor map."""
        return self.exec_atom.request

    @property
    def copies(self) -> tuple[BulkTensorCopy, ...]:
        """The copy instructions, in order."""
        return tuple([one for one in self.operations if isinstance(one, BulkTensorCopy)])

    def ptx(self, arch: str | None = None) -> str:
        """Return the operations as PTX text, one line each.

        Stores and reductions first make the tile visible to the asynchronous proxy. At the end, they commit their bulk
        group and wait until the engine has read the tile.

        Raises:
            EmissionError: `arch` does not have an instruction.
        """
        lines = [one.ptx(arch) for one in self.operations]
        before, after = ([], []) if self.exec_atom.atom.kind == "load" else store_bounds(arch)
        return "\n".join([*before, *lines, *after])

    def run(self, emulator: Emulator, gmem: Memory, smem: Window, *, gmem_base: int = 0) -> int:
        """Run the operations on the emulator, and return the bytes of all copies.

        For arguments and errors, see `BulkTensorCopy.run`. A load arrives at its barrier once, before its copies,
        as its `mbarrier.arrive.expect_tx` does. An `Mbarrier` expects the bytes when the operation is made. A barrier
        that is an address in `smem` expects them after this call.

        Raises:
            InvalidValueError: no arrival is pending at the barrier.
        """
        arrive(self.exec_atom, smem)
        return sum([copy.run(emulator, gmem, smem, gmem_base=gmem_base) for copy in self.copies])

    def explain(self) -> str:
        """Describe the operation, its instructions and its atom."""
        return "\n".join([str(self), *(f"  {one}" for one in self.operations), "", self.exec_atom.explain()])

    def __str__(self) -> str:
        attributes = ", ".join(f"{name} = {str(value).lower()}" for name, value in self.attributes.items())
        return f"cute_nvgpu.{self.name} %exec, %tile, %coord {{{attributes}}}"

    __repr__ = short_repr


def arrive(exec_atom: ExecTmaAtom, smem: Window) -> None:
    """Arrive at the barrier of a load. A barrier that is an address expects the bytes of the load after the call."""
    barrier, place = exec_atom.barrier, address_of(exec_atom.barrier)
    if exec_atom.atom.kind != "load":
        return
    if isinstance(barrier, Mbarrier):
        barrier.arrive()
    elif not isinstance(barrier, TransactionBarrier) and place is not None and isinstance(smem, SharedMemory):
        barrier_at(smem, place).arrive_expect_tx(exec_atom.atom.transaction_bytes)


def check_bounds(exec_atom: ExecTmaAtom, coord: tuple[Number, ...]) -> list[Diagnostic]:
    """Find the first instruction whose coordinates, if known, break the inBounds promise."""
    atom, descriptor = exec_atom.atom, exec_atom.atom.descriptor
    if not isinstance(descriptor, TmaDescriptorTiled) or len(coord) != descriptor.rank:
        return []
    for index in range(atom.instructions):
        found = []
        place = zip(coord, atom.instruction(index).coord, atom.box, descriptor.shape, strict=True)
        for axis, (start, step, box, extent) in enumerate(place):
            if isinstance(start, int):
                first = int(start) + step
                reached = f"{integer_text(first)} to {integer_text(first + box - 1)} of {extent}"
                text = f"inBounds = true; axis {axis} reaches elements {reached}"
                found += broken((first < 0 or first + box > extent, "in_bounds", text))
        if found:
            return found
    return []


def _operation(
    kind: str,
    exec_atom: ExecTmaAtom,
    tile: Place,
    coord: Coordinates | Number,
    attributes: tuple[bool, bool],
    prefetch: bool,
    cta: int = 0,
    offsets: Sequence[int] = (),
) -> TmaOperation:
    """Make one copy operation. The atom and the attributes (allow_tma, inBounds) are checked first."""
    name = f"atom.tma_{kind}"
    if not isinstance(exec_atom, ExecTmaAtom):
        raise InvalidTypeError(f"{name} takes the result of make_exec_tma, got {type(exec_atom).__name__}")
    for attribute, value in zip(("allow_tma", "inBounds"), attributes, strict=True):
        expect(value, bool, attribute)
    allow_tma, in_bounds = attributes
    place = tuple(coord) if isinstance(coord, (tuple, list, ArithTuple)) else (coord,)
    found = broken((not allow_tma, "no_tma", ""))
    if kind == "load":
        found += check_load(exec_atom.atom)
    elif exec_atom.atom.kind != kind:
        text, detail = f"expect a tma_{kind} atom type", f"a {exec_atom.atom.kind} atom"
        found.append(Diagnostic("atom_kind", text=text, detail=detail))
    refuse_operation(found + (check_bounds(exec_atom, place) if in_bounds else []))
    operations: tuple[PrefetchDescriptor | ExpectTx | BulkTensorCopy, ...]
    if kind == "load":
        operations = lower_tma_load(exec_atom, tile, place, prefetch=prefetch, cta=cta, im2col_offsets=offsets)
    else:
        operations = lower_tma_store(exec_atom, tile, place, prefetch=prefetch)
    return TmaOperation(name, exec_atom, tile, place, operations, allow_tma, in_bounds, cta)


def tma_load(
    exec_atom: ExecTmaAtom,
    dst: Place,
    coord: Coordinates | Number,
    *,
    allow_tma: bool = True,
    inBounds: bool = False,
    prefetch: bool = False,
    cta: int = 0,
    im2col_offsets: Sequence[int] = (),
) -> TmaOperation:
    """atom.tma_load: load one tile.

    If the barrier of the atom has a method `expect_tx`, it then expects the bytes of the tile.

    Args:
        dst: the tile in shared memory.
        coord: the coordinate of the tile's first element, innermost first.
        allow_tma, inBounds: the operation's attributes; see `TmaOperation`.
        prefetch: prefetch the descriptor first.
        cta: the CTA of a multicast that issues the copy.
        im2col_offsets: offsets of an im2col load, W first; zeros by default.
    Raises:
        TmaBuildError: 'expect a tma_load atom type' or another text of the atom verifier, the tile is not in shared
            memory, or the coordinate has the wrong rank or breaks the inBounds promise. The barrier is then unchanged.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> tile = cute.parse("(_128,_64):(_64,_1)")
    >>> where = cute.make_tensor(cute.make_smem_ptr(0, "float16"), tile)
    >>> load = make_exec_tma(non_exec_tiled_tma_load(gmem, tile), cute.tma.Mbarrier(1))
    >>> tma_load(load, where, (0, 128)).coord
    (0, 128)
    """
    return _operation("load", exec_atom, dst, coord, (allow_tma, inBounds), prefetch, cta, im2col_offsets)


def tma_store(
    exec_atom: ExecTmaAtom,
    src: Place,
    coord: Coordinates | Number,
    *,
    allow_tma: bool = True,
    inBounds: bool = False,
    prefetch: bool = False,
) -> TmaOperation:
    """atom.tma_store: store one tile. A store uses no barrier.

    Args:
        src: the tile in shared memory.
        coord, allow_tma, inBounds, prefetch: as in `tma_load`.
    Raises:
        TmaBuildError: see `tma_load`; here the atom must be a store.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> tile = cute.parse("(_128,_64):(_64,_1)")
    >>> where = cute.make_tensor(cute.make_smem_ptr(0, "float16"), tile)
    >>> store = make_exec_tma(non_exec_tiled_tma_store(gmem, tile), cute.tma.Mbarrier(1))
    >>> tma_store(store, where, (0, 128)).coord
    (0, 128)
    """
    return _operation("store", exec_atom, src, coord, (allow_tma, inBounds), prefetch)


def tma_reduce(
    exec_atom: ExecTmaAtom,
    src: Place,
    coord: Coordinates | Number,
    *,
    allow_tma: bool = True,
    inBounds: bool = False,
    prefetch: bool = False,
) -> TmaOperation:
    """atom.tma_reduce: reduce one tile into global memory. A reduction uses no barrier.

    Args:
        src: the tile in shared memory.
        coord, allow_tma, inBounds, prefetch: as in `tma_load`.
    Raises:
        TmaBuildError: see `tma_load`; here the atom must be a reduction. Also: the hardware does not support the
            reduction for the element type.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> tile = cute.parse("(_128,_64):(_64,_1)")
    >>> where = cute.make_tensor(cute.make_smem_ptr(0, "float16"), tile)
    >>> add = make_exec_tma(non_exec_tiled_tma_reduce(gmem, tile), cute.tma.Mbarrier(1))
    >>> tma_reduce(add, where, (0, 128)).name
    'atom.tma_reduce'
    """
    return _operation("reduce", exec_atom, src, coord, (allow_tma, inBounds), prefetch)


def prefetch_tma_desc(descriptor: TmaDescriptorTiled | TmaDescriptorIm2col) -> PrefetchDescriptor:
    """prefetch_tma_desc: prefetch a descriptor into the descriptor cache.

    Raises:
        InvalidTypeError: the argument is not a descriptor.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> descriptor = cute.tma.build_tma_descriptor(gmem, cute.parse("(_128,_64):(_64,_1)"))
    >>> prefetch_tma_desc(descriptor).descriptor.request.box_dim
    (64, 128)
    """
    return PrefetchDescriptor(expect_descriptor(descriptor, "prefetch_tma_desc takes a TMA descriptor"))


Source: TypeAlias = TmaDescriptorTiled | TmaDescriptorIm2col | Tensor | SupportsDLPack
"""Source of an atom: a descriptor, or the global tensor itself."""


def _partitioned(
    source: Source, tile: SharedLayout | Tensor, cta_map: Layout | Tree | None, arch: str, **transfer: Any
) -> NonExecTmaAtom:
    """Make a verified atom. `cta_map` is a CTA value map if its strides are basis elements, otherwise a tile."""
    descriptor = source if isinstance(source, (TmaDescriptorTiled, TmaDescriptorIm2col)) else None
    tensor = source if descriptor is None else descriptor.tensor
    is_map = isinstance(cta_map, Layout) and any(isinstance(d, ScaledBasis) for d in leaves(cta_map.stride))
    operands: tuple[Any, ...] = (tile, tensor, *((None, cta_map) if is_map else (cta_map, None)))
    atom = record_of(verify_partition(*operands, arch=arch, descriptor=descriptor, **transfer), arch).body
    return atom if descriptor is None else replace(atom, descriptor=descriptor)


def non_exec_tiled_tma_load(
    descriptor: Source,
    tile: SharedLayout | Tensor,
    cta_map: Layout | Tree | None = None,
    *,
    num_multicast: int | None = 1,
    load_mode: TmaLoadMode | int | str | None = None,
    arch: str = "sm_90a",
) -> NonExecTmaAtom:
    """atom.non_exec_tiled_tma_load: make a verified load.

    Args:
        descriptor: a tiled or an im2col descriptor, or the global tensor itself. A descriptor must fit the tile and
            this operation in box, swizzle, element type, mode and multicast count.
        tile: the layout of the tile in shared memory.
        cta_map: the CTA's value map (with basis strides), or the tile by mode.
        num_multicast, load_mode: as in `partition`; the default load mode comes from the descriptor.
    Raises:
        TmaVerifyError: a step of the partition verifier refuses the atom.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> tile = cute.parse("(_128,_64):(_64,_1)")
    >>> atom = non_exec_tiled_tma_load(gmem, tile)
    >>> atom.kind, atom.box
    ('load', (64, 128))
    """
    mode = getattr(descriptor, "mode", None) if load_mode is None else load_mode
    return _partitioned(descriptor, tile, cta_map, arch, num_multicast=num_multicast, load_mode=mode)


def _store_mode(source: Source, mode: TmaStoreMode | int | str | None = None) -> TmaStoreMode | int | str:
    """Return the mode of a store: the argument if given, otherwise the mode of the descriptor."""
    found = getattr(source, "store_mode", None) if mode is None else mode
    return TmaStoreMode.TILED if found is None else found


def non_exec_tiled_tma_store(
    descriptor: Source,
    tile: SharedLayout | Tensor,
    cta_map: Layout | Tree | None = None,
    *,
    store_mode: TmaStoreMode | int | str | None = None,
    arch: str = "sm_90a",
) -> NonExecTmaAtom:
    """atom.non_exec_tiled_tma_store: make a verified store.

    Args:
        descriptor, tile, cta_map, arch: as in `non_exec_tiled_tma_load`.
        store_mode: a `TmaStoreMode`, its name or number; default: the mode of the descriptor, or TILED.
    Raises:
        TmaVerifyError: a step of the partition verifier refuses the atom.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> tile = cute.parse("(_128,_64):(_64,_1)")
    >>> atom = non_exec_tiled_tma_store(gmem, tile)
    >>> atom.kind, atom.box
    ('store', (64, 128))
    """
    return _partitioned(descriptor, tile, cta_map, arch, store_mode=_store_mode(descriptor, store_mode))


def non_exec_tiled_tma_reduce(
    descriptor: Source,
    tile: SharedLayout | Tensor,
    cta_map: Layout | Tree | None = None,
    *,
    kind: TmaReduceKind | int | str = TmaReduceKind.ADD,
    arch: str = "sm_90a",
) -> NonExecTmaAtom:
    """atom.non_exec_tiled_tma_reduce: make a verified reduction of one of the eight kinds.

    Args:
        descriptor, tile, cta_map, arch: as in `non_exec_tiled_tma_load`.
        kind: a `TmaReduceKind`, its name or number.
    Raises:
        TmaVerifyError: a step of the partition verifier refuses the atom.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> tile = cute.parse("(_128,_64):(_64,_1)")
    >>> non_exec_tiled_tma_reduce(gmem, tile, kind="MAX").reduce_kind
    <TmaReduceKind.MAX: 2>
    """
    return _partitioned(descriptor, tile, cta_map, arch, store_mode=_store_mode(descriptor), reduce_kind=kind)
