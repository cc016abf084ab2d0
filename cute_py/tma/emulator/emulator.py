"""The TMA engine in numpy: a descriptor's bytes and an instruction's operands in, the bytes that an H200 leaves out.

    Emulator().load(descriptor, gmem, coords, smem)      cp.async.bulk.tensor, global to shared
    Emulator().store(descriptor, gmem, coords, smem)     cp.async.bulk.tensor, shared to global
    Emulator().reduce("add", descriptor, gmem, coords, smem)

Each call is one instruction, done when it returns; `load_many` and `store_many` are many instructions of one
descriptor at once. What is measured and what is only documented is told by `.evidence` of the result. How the copy
runs beside the program (barriers, groups, races) is the business of `cute_py.tma.simulate.diagnosis`.

Why the hardware refuses an instruction: pure checks that give a reason or None.

All of them end in CUDA_ERROR_ILLEGAL_INSTRUCTION and leave memory as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cute_py.argument_checks import expect, expect_integer, expect_integer_array
from cute_py.errors import InvalidValueError, TmaTrap, UnknownFactError
from cute_py.tma.emulator import operands
from cute_py.tma.emulator.engine import Batch
from cute_py.tma.emulator.forms import DOCUMENTED, MEASURED, MODES_OF, TransactionBytes, require_form, unmeasured
from cute_py.tma.emulator.geometry import Geometry, geometry
from cute_py.tma.emulator.mbarrier import Mbarrier, signalled
from cute_py.tma.emulator.memory import GlobalMemory, SharedMemory, as_global, as_shared
from cute_py.tma.emulator.overlap import require_apart
from cute_py.tma.emulator.reduce import executes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cute_py.tma.emulator.geometry import Geometry

ILLEGAL_INSTRUCTION = "CUDA_ERROR_ILLEGAL_INSTRUCTION"


@dataclass(frozen=True, slots=True)
class Trap:
    """One reason: the id of the rule, what breaks it, the values that do, the error that CUDA reports."""

    rule: str
    cause: str
    facts: dict[str, object] = field(default_factory=dict)
    cuda_error: str = ILLEGAL_INSTRUCTION


def _first(bad: NDArray[np.bool_]) -> int | None:
    found = np.flatnonzero(bad)
    return int(found[0]) if len(found) else None


def _where(coords: NDArray[np.int64], i: int) -> dict[str, object]:
    facts: dict[str, object] = {"coordinates": tuple(coords[i].tolist())}
    if len(coords) > 1:
        facts["instruction"] = i
    return facts


def unaligned_inner(geometry: Geometry, coords: NDArray[np.int64]) -> Trap | None:
    """The inner coordinate in bytes must be a multiple of 16, except with interleave.

    Source: measured on NVIDIA H200, driver 580.159.04; packed formats (a multiple of 128 elements): PTX ISA 9.0.
    """
    if geometry.interleaved:
        return None
    inner = coords[:, 0]
    if geometry.packing is not None and geometry.packing.packed != geometry.packing.spread:
        i = _first(inner % 128 != 0)
        if i is not None:
            return Trap(
                "inner coordinate",
                f"inner coordinate = {int(inner[i])} elements; must be a multiple of 128",
                _where(coords, i),
            )
    i = _first(inner * geometry.bits % 128 != 0)
    if i is None:
        return None
    nbytes = int(inner[i]) * geometry.bits // 8
    return Trap("inner coordinate", f"inner coordinate = {nbytes} bytes; must be a multiple of 16", _where(coords, i))


def base_outside_box(geometry: Geometry, coords: NDArray[np.int64], shift: int = 0) -> Trap | None:
    """im2col: the base coordinate of each spatial mode lies inside its bounding box.

    Source: measured on NVIDIA H200, driver 580.159.04. For im2col::w the box is one point in H and D and W may start
    to its left (PTX ISA 9.0): there only the right end is checked.
    """
    wide = geometry.mode != "im2col"
    for index, mode in enumerate(geometry.spatial):
        if wide and index:
            break
        low, high = geometry.lower[index], geometry.dims[mode] - 1 + geometry.upper[index]
        place = coords[:, mode]
        i = _first((place > high) if wide else ((place < low) | (place > high)))
        if i is not None:
            return Trap(
                "base coordinate",
                f"base coordinate of mode {mode} = {int(place[i])}; must be in the bounding box {low} to {high}",
                _where(coords, i),
            )
    return None


def negative_coordinate(coords: NDArray[np.int64]) -> Trap | None:
    """Stores and reductions: no coordinate is negative. Source: measured on NVIDIA H200, driver 580.159.04."""
    i = _first(np.asarray((coords < 0).any(axis=1)))
    if i is None:
        return None
    mode = int(np.flatnonzero(coords[i] < 0)[0])
    return Trap(
        "negative coordinate",
        f"coordinate[{mode}] = {int(coords[i, mode])}; a store takes none below 0",
        _where(coords, i),
    )


def corners_beyond_tensor(geometry: Geometry) -> Trap | None:
    """im2col stores: the bounding box lies inside the tensor. Source: measured on NVIDIA H200, driver 580.159.04."""
    if any(c < 0 for c in geometry.lower) or any(c > 0 for c in geometry.upper):
        return Trap(
            "im2col store",
            "an im2col store takes no lower corner below 0 and no upper corner above 0",
            {"lower corner": geometry.lower, "upper corner": geometry.upper},
        )
    return None


def load_trap(geometry: Geometry, coords: NDArray[np.int64]) -> Trap | None:
    """The first reason why n loads trap, or None."""
    reason = unaligned_inner(geometry, coords)
    if reason is None and geometry.mode.startswith("im2col"):
        reason = base_outside_box(geometry, coords)
    return reason


def store_trap(geometry: Geometry, coords: NDArray[np.int64], op: str | None = None) -> Trap | None:
    """The first reason why n stores (or reductions `op`) trap, or None."""
    checks: Sequence[Trap | None] = (
        None if op is None else reduction_trap(geometry, op),
        negative_coordinate(coords),
        corners_beyond_tensor(geometry) if geometry.mode.startswith("im2col") else None,
        load_trap(geometry, coords),
    )
    return next((reason for reason in checks if reason is not None), None)


def reduction_trap(geometry: Geometry, op: str) -> Trap | None:
    """The element format does not have this reduction."""
    if executes(op, geometry.data_type):
        return None
    return Trap("reduction", f"reduction {op!r} does not exist for element format {geometry.data_type.name}")


if TYPE_CHECKING:
    from numpy.typing import NDArray

    Memory = GlobalMemory | NDArray[np.uint8]
    Window = SharedMemory | NDArray[np.uint8]


class Emulator:
    """A TMA engine.

    Args:
        arch: what the assembler is told; forms that it does not have are refused.
        strict: refuse what was not measured.

    >>> from cute_py.tma.descriptor.request import TensorMapTiled
    >>> gmem, smem = np.arange(256, dtype=np.uint8), np.zeros(256, np.uint8)
    >>> tile = TensorMapTiled(0, 0, (32, 8), (32,), (16, 2))
    >>> Emulator().load(tile, gmem, (16, 1), smem)
    32
    >>> smem[:4].tolist(), smem[16:20].tolist()
    ([48, 49, 50, 51], [80, 81, 82, 83])
    """

    def __init__(self, arch: str = "sm_90a", *, strict: bool = False) -> None:
        self.arch = arch
        self.strict = expect(strict, bool, "strict")
        require_form(arch, "tile", "load")

    def __repr__(self) -> str:
        return f"Emulator({self.arch!r}, strict={self.strict})"

    # ---- one instruction ---------------------------------------------------------------------------------------

    def load(
        self,
        descriptor_bytes: Any,
        gmem: Memory,
        coords: Sequence[int],
        smem: Window,
        *,
        mode: str | None = None,
        smem_offset: int = 0,
        im2col_offsets: Sequence[int] = (),
        barrier: Mbarrier | int | None = None,
        multicast_mask: int | None = None,
        cta_group: int = 1,
        gmem_base: int = 0,
    ) -> TransactionBytes:
        """One load, global to shared memory.

        Args:
            descriptor_bytes: 64 or 128 bytes, or a decoded request.
            gmem: a `GlobalMemory`, or uint8 array whose first byte is at address `gmem_base`.
            coords: innermost mode first; (column, row, row, row, row) for gather4.
            smem: a `SharedMemory`, or uint8 array that starts at shared-memory address 0.
            mode: 'tile', 'im2col', 'im2col::w', 'im2col::w::128', 'tile::gather4'; None: tile or im2col, as the
                descriptor is.
            smem_offset: bytes; an address that is no multiple of 128 traps.
            im2col_offsets: (R-2,) offsets, W first; (wHalo, wOffset) for the w modes; none means zeros.
            barrier: told of the bytes; an offset in shared memory where a barrier was initialised, or the barrier.
            multicast_mask: bit i writes the same offset of CTA i of the cluster, and signals its barrier.
            cta_group: 2 signals, for each destination, the CTA of its pair with the parity of the barrier's CTA.
        Returns:
            the transaction bytes, out-of-bounds elements included; with multicast those of one destination.
        Raises:
            TmaTrap: the hardware traps; memory is as it was.
            InvalidValueError, InvalidTypeError: operands that no instruction can have.
            EmissionError: the form does not exist on this architecture.
            UnknownFactError: bits without a known meaning; or, when strict, what was not measured.
        """
        if expect_integer(cta_group, "cta_group", 1, 2) != 1:
            require_form(self.arch, f"cta_group::{cta_group}", "load")
        offsets = im2col_offsets
        batch, why = self._load_batch(
            descriptor_bytes, gmem, [coords], smem, mode, smem_offset, offsets, multicast_mask, gmem_base, cta_group
        )
        destinations = [windows.smem for windows in batch.windows]
        barriers = signalled(barrier, destinations, cta_group, multicast=multicast_mask is not None)
        batch.check()
        batch.fill()
        for told in barriers:
            told.complete_tx(batch.transaction_bytes)
        return _result(batch, why)

    def store(
        self,
        descriptor_bytes: Any,
        gmem: Memory,
        coords: Sequence[int],
        smem: Window,
        *,
        mode: str | None = None,
        smem_offset: int = 0,
        im2col_offsets: Sequence[int] = (),
        barrier: None = None,
        multicast_mask: None = None,
        gmem_base: int = 0,
    ) -> TransactionBytes:
        """One store, shared to global memory. The arguments are those of `load`, in its order.

        A row that ends inside the tensor's innermost mode is written up to the next 16 bytes, so that up to 15 bytes
        behind the tensor's row are overwritten, as the hardware does.

        Returns:
            the bytes of the box (stores complete a bulk group, not a barrier).
        Raises:
            as `load`; InvalidValueError also for im2col offsets, a barrier or a mask, which a store does not have.
        """
        operands.refuse_load_operands("store", im2col_offsets, barrier, multicast_mask)
        return self.store_many(
            descriptor_bytes, gmem, [coords], smem, mode=mode, smem_offsets=smem_offset, gmem_base=gmem_base
        )

    def reduce(
        self,
        op: Any,
        descriptor_bytes: Any,
        gmem: Memory,
        coords: Sequence[int],
        smem: Window,
        *,
        mode: str | None = None,
        smem_offset: int = 0,
        im2col_offsets: Sequence[int] = (),
        barrier: None = None,
        multicast_mask: None = None,
        gmem_base: int = 0,
    ) -> TransactionBytes:
        """One reduction: global memory becomes global memory `op` shared memory, elementwise.

        Args:
            op: 'add', 'min', 'max', 'inc', 'dec', 'and', 'or', 'xor', or a `TmaReduceKind`; the others as `store`.
        Raises:
            as `store`; TmaTrap also where the element format does not have the reduction.
        """
        operands.refuse_load_operands("reduce", im2col_offsets, barrier, multicast_mask)
        offset, op = smem_offset, operands.reduction(op)
        return self.store_many(
            descriptor_bytes, gmem, [coords], smem, mode=mode, smem_offsets=offset, gmem_base=gmem_base, op=op
        )

    def prefetch(
        self,
        descriptor_bytes: Any,
        gmem: Memory,
        coords: Sequence[int],
        *,
        mode: str | None = None,
        im2col_offsets: Sequence[int] = (),
        gmem_base: int = 0,
    ) -> TransactionBytes:
        """One prefetch into L2: no byte changes; operands are checked as those of a load.

        Returns:
            0 transaction bytes.
        Source:
            measured on NVIDIA H200, driver 580.159.04: it traps where a load does.
        """
        shape = self._geometry(descriptor_bytes, mode, "prefetch")
        operands.require_box(shape)
        where = operands.coordinates(shape, [coords])
        _raise(load_trap(shape, where))
        batch = Batch(
            shape,
            as_global(gmem, gmem_base, writable=False),
            where,
            operands.im2col_offsets(shape, im2col_offsets, 1),
            (),
        )
        why = self._evidence(shape, "prefetch")
        batch.check()
        return TransactionBytes(0, DOCUMENTED if why else MEASURED, why)

    # ---- many instructions of one descriptor -------------------------------------------------------------------

    def load_many(
        self,
        descriptor: Any,
        gmem: Memory,
        coords: Any,
        smem: Window,
        *,
        smem_offsets: Any,
        mode: str | None = None,
        im2col_offsets: Any = (),
        gmem_base: int = 0,
    ) -> TransactionBytes:
        """n loads of one descriptor, as if one after the other; none is done if one traps.

        Args:
            coords: (n, R) array, innermost mode first.
            smem_offsets: (n,) bytes, or one for all; windows that follow each other without a gap are fastest.
            im2col_offsets: (R-2,) or (n, R-2).
        Returns:
            the transaction bytes of one instruction.
        """
        batch, why = self._load_batch(
            descriptor, gmem, coords, smem, mode, smem_offsets, im2col_offsets, None, gmem_base
        )
        batch.check()
        step = 1 if batch.windows_overlap() else len(batch.coords)
        for start in range(0, len(batch.coords), max(step, 1)):
            batch.fill(start, start + step)
        return _result(batch, why)

    def store_many(
        self,
        descriptor: Any,
        gmem: Memory,
        coords: Any,
        smem: Window,
        *,
        smem_offsets: Any,
        mode: str | None = None,
        gmem_base: int = 0,
        op: str | None = None,
    ) -> TransactionBytes:
        """n stores of one descriptor; none is done if one traps. Stores that write the same bytes have no order.

        Args:
            coords: (n, R) array, innermost mode first.
            smem_offsets: (n,) bytes, or one for all.
            op: reduce instead of storing.
        Returns:
            the bytes of one box.
        """
        op = None if op is None else operands.reduction(op)
        batch, why = self._store_batch(descriptor, smem, coords, gmem, mode, smem_offsets, gmem_base, op)
        batch.check()
        batch.drain()
        return _result(batch, why)

    def copy_many(
        self,
        load: Any,
        source: Memory,
        load_coords: Any,
        store: Any,
        destination: Memory,
        store_coords: Any,
        smem: Window,
        *,
        smem_offsets: Any,
        mode: str | None = None,
        im2col_offsets: Any = (),
        source_base: int = 0,
        destination_base: int = 0,
    ) -> TransactionBytes:
        """n tiles from one tensor to another: each is loaded, then stored from where it was loaded.

        Tile i goes through window i modulo the number of windows, as through a ring; so shared memory stays small, and
        what it holds at the end are the last tiles. Nothing is done if one of the loads or stores traps.

        Args:
            load, store: the two descriptors; `mode` is that of the load, and 'tile' or 'im2col' for the store.
            load_coords, store_coords: (n, R) arrays, innermost mode first.
            smem_offsets: (depth,) bytes: the windows.
        Returns:
            the transaction bytes of one load.
        Raises:
            InvalidValueError: a store writes bytes that a load reads: which of them comes first is not known.
            as `load` and `store`.
        """
        windows = np.atleast_1d(expect_integer_array(smem_offsets, "shared-memory offsets"))
        depth = len(windows)
        load_coords = operands.coordinates(self._geometry(load, mode, "load"), load_coords)
        store_coords = operands.coordinates(self._geometry(store, None, "store"), store_coords)
        n = len(load_coords)
        if windows.ndim != 1 or not depth or len(store_coords) != n:
            raise InvalidValueError(
                f"{n} loads, {len(store_coords)} stores, {depth} windows; must be n, n and 1 or more"
            )
        offsets = np.resize(windows, n)
        filling, why = self._load_batch(
            load, source, load_coords, smem, mode, offsets, im2col_offsets, None, source_base
        )
        draining, _ = self._store_batch(store, smem, store_coords, destination, None, offsets, destination_base, None)
        filling.check()
        draining.check()
        require_apart(filling, draining)
        for start in range(0, n, depth):
            filling.fill(start, min(start + depth, n))
            draining.drain(start, min(start + depth, n))
        return _result(filling, why)

    # ---- common ------------------------------------------------------------------------------------------------

    def geometry(self, descriptor: Any, mode: str | None = None) -> Geometry:
        """The rows that a descriptor makes an instruction move (see `cute_py.tma.emulator.geometry`)."""
        return geometry(descriptor, mode)

    def _geometry(self, descriptor: Any, mode: str | None, instruction: str) -> Geometry:
        shape = self.geometry(descriptor, mode)
        if shape.mode not in MODES_OF[instruction]:
            raise InvalidValueError(
                f"{instruction} has no mode {shape.mode!r}", {"modes": ", ".join(MODES_OF[instruction])}
            )
        require_form(self.arch, shape.mode, instruction)
        return shape

    def _evidence(self, shape: Geometry, instruction: str, *, pair: bool = False) -> str:
        why = unmeasured(shape, instruction, pair=pair)
        if why and self.strict:
            raise UnknownFactError(f"not measured: {why}", {"known from": "the PTX ISA"}, "use Emulator(strict=False)")
        return why

    def _load_batch(
        self,
        descriptor: Any,
        gmem: Memory,
        coords: Any,
        smem: Window,
        mode: str | None,
        smem_offsets: Any,
        im2col_offsets: Any,
        multicast_mask: int | None,
        gmem_base: int,
        cta_group: int = 1,
    ) -> tuple[Batch, str]:
        shape = self._geometry(descriptor, mode, "load")
        why = self._evidence(shape, "load", pair=cta_group == 2)
        where = operands.coordinates(shape, coords)
        shared = as_shared(smem, writable=True)
        starts = operands.window_offsets(shared, smem_offsets, len(where))
        _raise(load_trap(shape, where))
        batch = Batch(
            shape,
            as_global(gmem, gmem_base, writable=False),
            where,
            operands.im2col_offsets(shape, im2col_offsets, len(where)),
            [(cta, starts) for cta in operands.destinations(shared, multicast_mask)],
        )
        return batch, why

    def _store_batch(
        self,
        descriptor: Any,
        smem: Window,
        coords: Any,
        gmem: Memory,
        mode: str | None,
        smem_offsets: Any,
        gmem_base: int,
        op: str | None,
    ) -> tuple[Batch, str]:
        instruction = "store" if op is None else "reduce"
        shape = self._geometry(descriptor, mode, instruction)
        why = self._evidence(shape, instruction)
        where = operands.coordinates(shape, coords)
        shared = as_shared(smem, writable=False)
        starts = operands.window_offsets(shared, smem_offsets, len(where))
        _raise(store_trap(shape, where, op))
        offsets = operands.im2col_offsets(shape, (), len(where))
        memory = as_global(gmem, gmem_base, writable=True)
        return Batch(shape, memory, where, offsets, [(shared, starts)], op=op, writing=True), why


def _raise(reason: Trap | None) -> None:
    if reason is not None:
        raise TmaTrap(reason.cuda_error, reason.cause, reason.facts).of_rule(reason.rule)


def _result(batch: Batch, why: str) -> TransactionBytes:
    return TransactionBytes(batch.transaction_bytes, DOCUMENTED if why else MEASURED, why)
