"""A TMA engine in numpy: run one instruction from its tensor map's bytes and its operands, as an H200 does.

    Emulator().load(descriptor, gmem, coords, smem)      cp.async.bulk.tensor, global to shared
    Emulator().store(descriptor, gmem, coords, smem)     cp.async.bulk.tensor, shared to global
    Emulator().reduce("add", descriptor, gmem, coords, smem)

Each call is one instruction, which is complete when the call returns. `load_many` and `store_many` run many
instructions of one descriptor in one call. The result has the attribute `evidence`: 'measured' or 'documented'.
`cute_py.machine` runs copies together with the threads of a kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from cute_py.argument_checks import expect, expect_integer, expect_integer_array
from cute_py.errors import InvalidValueError, TmaTrap, UnknownFactError, counted
from cute_py.tma.emulator import operands
from cute_py.tma.emulator.engine import Batch, TransactionBytes, block_of, require_apart
from cute_py.tma.emulator.geometry import Descriptor, Geometry, geometry, row_image, swizzle_pattern
from cute_py.tma.emulator.mbarrier import Mbarrier, signalled
from cute_py.tma.emulator.memory import (
    GlobalMemory,
    Integers,
    IntegersLike,
    Memory,
    SharedMemory,
    Window,
    as_global,
    as_shared,
)

if TYPE_CHECKING:
    import numpy as np
else:
    from cute_py.optional_packages import numpy as np


class Emulator:
    """A TMA engine whose methods are instructions.

    Args:
        arch: the target architecture; the emulator refuses instruction forms that it does not have.
        strict: refuse instructions whose behaviour was not measured.

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
        operands.require_form(expect(arch, str, "arch"), "tile", "load")

    def __repr__(self) -> str:
        return f"Emulator({self.arch!r}, strict={self.strict})"

    # ---- one instruction ---------------------------------------------------------------------------------------

    def load(
        self,
        descriptor_bytes: Descriptor,
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
        """Run one load from global to shared memory.

        Args:
            descriptor_bytes: 64 or 128 bytes, or a decoded request.
            gmem: a `GlobalMemory`, or uint8 array whose first byte is at address `gmem_base`.
            coords: innermost mode first; (column, row, row, row, row) for gather4.
            smem: a `SharedMemory`, or uint8 array that starts at shared-memory address 0.
            mode: 'tile', 'im2col', 'im2col::w', 'im2col::w::128', 'tile::gather4'; None: tile or im2col, by the kind of
                descriptor.
            smem_offset: bytes; an address that is not a multiple of 128 traps.
            im2col_offsets: (R-2,) offsets, W first; (wHalo, wOffset) for the w modes; zeros if they are omitted.
            barrier: the barrier that counts the bytes, or its offset in shared memory.
            multicast_mask: if bit i is set, the load writes to the same offset in CTA i of the cluster, and signals the
                barrier of that CTA.
            cta_group: 1 or 2. With 2, for each destination CTA the load signals one CTA of its pair: the CTA whose rank
                has the same parity as the rank of the barrier's CTA.
        Returns:
            the bytes that the load counts at the barrier of one destination, including out-of-bounds elements.
        Raises:
            TmaTrap: the hardware traps; memory is unchanged.
            InvalidValueError, InvalidTypeError: no instruction can have these operands.
            EmissionError: the form does not exist on this architecture.
            UnknownFactError: the descriptor has bits without a known meaning; with `strict`, also if the behaviour was
                not measured.
        """
        plain = barrier is None and multicast_mask is None and type(im2col_offsets) is tuple and not im2col_offsets
        if plain and mode is None and type(cta_group) is int and cta_group == 1:
            done = load_inside(self.geometry(descriptor_bytes), gmem, gmem_base, coords, smem, smem_offset)
            if done is not None:
                return done
        if expect_integer(cta_group, "cta_group", 1, 2) != 1:
            operands.require_form(self.arch, f"cta_group::{cta_group}", "load")
        one = descriptor_bytes, gmem, [coords], smem, mode, smem_offset, gmem_base, im2col_offsets
        batch = self._batch("load", *one, multicast_mask=multicast_mask, cta_group=cta_group)
        destinations = [windows.smem for windows in batch.windows]
        barriers = signalled(barrier, destinations, cta_group, multicast=multicast_mask is not None)
        batch.check()
        batch.load(0, 1)
        for signalled_barrier in barriers:
            signalled_barrier.complete_tx(batch.transaction_bytes)
        return batch.transaction_bytes

    def store(
        self,
        descriptor_bytes: Descriptor,
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
        """Run one store from shared to global memory. The arguments are the same as for `load`, in the same order.

        Like the hardware, a store writes a row up to the next multiple of 16 bytes, so it may overwrite up to 15 bytes
        past the end of the tensor's row.

        Returns:
            the bytes of the box. A store completes by a bulk group, not at a barrier.
        Raises:
            As `load`; also InvalidValueError for im2col offsets, a barrier or a mask, which a store does not have.
        """
        operands.refuse_load_operands("store", im2col_offsets, barrier, multicast_mask)
        return _stored(self._batch("store", descriptor_bytes, gmem, [coords], smem, mode, smem_offset, gmem_base))

    def reduce(
        self,
        op: str | Enum,
        descriptor_bytes: Descriptor,
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
        """Run one reduction: apply `op` elementwise to global and shared memory, with the result in global memory.

        Args:
            op: 'add', 'min', 'max', 'inc', 'dec', 'and', 'or', 'xor', or a `TmaReduceKind`. Other arguments: as in
                `store`.
        Raises:
            As `store`; also TmaTrap if the hardware does not support the reduction for the element format.
        """
        operands.refuse_load_operands("reduce", im2col_offsets, barrier, multicast_mask)
        one = descriptor_bytes, gmem, [coords], smem, mode, smem_offset, gmem_base
        return _stored(self._batch("reduce", *one, op=operands.reduction(op)))

    def prefetch(
        self,
        descriptor_bytes: Descriptor,
        gmem: Memory,
        coords: Sequence[int],
        *,
        mode: str | None = None,
        im2col_offsets: Sequence[int] = (),
        gmem_base: int = 0,
    ) -> TransactionBytes:
        """Run one prefetch into L2. It changes no bytes, but its operands are checked like the operands of a load.

        Returns:
            0 transaction bytes.
        Source:
            measured on NVIDIA H200, driver 580.159.04: a prefetch traps in the same cases as a load.
        """
        batch = self._batch("prefetch", descriptor_bytes, gmem, [coords], None, mode, 0, gmem_base, im2col_offsets)
        batch.check()
        return TransactionBytes(0, batch.transaction_bytes.why)

    # ---- many instructions of one descriptor -------------------------------------------------------------------

    def load_many(
        self,
        descriptor: Descriptor,
        gmem: Memory,
        coords: IntegersLike,
        smem: Window,
        *,
        smem_offsets: IntegersLike,
        mode: str | None = None,
        im2col_offsets: IntegersLike = (),
        gmem_base: int = 0,
    ) -> TransactionBytes:
        """Run n loads of one descriptor. The result is the same as for sequential loads. If one load traps, none is
        run.

        Args:
            coords: (n, R) array, innermost mode first.
            smem_offsets: (n,) bytes, or one integer for all; contiguous windows are fastest.
            im2col_offsets: (R-2,) or (n, R-2).
        Returns:
            the transaction bytes of one instruction.
        """
        batch = self._batch("load", descriptor, gmem, coords, smem, mode, smem_offsets, gmem_base, im2col_offsets)
        batch.check()
        n = len(batch.coords)
        step = 1 if batch.windows[0].overlap() else max(n, 1)
        for start in range(0, n, step):
            batch.load(start, start + step)
        return batch.transaction_bytes

    def store_many(
        self,
        descriptor: Descriptor,
        gmem: Memory,
        coords: IntegersLike,
        smem: Window,
        *,
        smem_offsets: IntegersLike,
        mode: str | None = None,
        gmem_base: int = 0,
        op: str | Enum | None = None,
    ) -> TransactionBytes:
        """Run n stores of one descriptor. If one store traps, none is run.

        The order of stores that write the same bytes is undefined.

        Args:
            coords: (n, R) array, innermost mode first.
            smem_offsets: (n,) bytes, or one integer for all.
            op: a reduction to run instead of the store.
        Returns:
            the bytes of one box.
        """
        name = None if op is None else operands.reduction(op)
        instruction = "store" if op is None else "reduce"
        many = descriptor, gmem, coords, smem, mode, smem_offsets, gmem_base
        return _stored(self._batch(instruction, *many, op=name))

    def copy_many(
        self,
        load: Descriptor,
        source: Memory,
        load_coords: IntegersLike,
        store: Descriptor,
        destination: Memory,
        store_coords: IntegersLike,
        smem: Window,
        *,
        smem_offsets: IntegersLike,
        mode: str | None = None,
        im2col_offsets: IntegersLike = (),
        source_base: int = 0,
        destination_base: int = 0,
    ) -> TransactionBytes:
        """Copy n tiles from one tensor to another: load each tile, then store it from its window in shared memory.

        Tile i uses window i modulo the number of windows, as in a ring. Shared memory therefore stays small; at the end
        it contains the last tiles. If a load or store traps, nothing is copied.

        Args:
            load, store: the two descriptors. `mode` is the mode of the load; the store uses 'tile' or 'im2col'.
            load_coords, store_coords: (n, R) arrays, innermost mode first.
            smem_offsets: (depth,) bytes, the offset of each window.
        Returns:
            the bytes that one load counts at its barrier.
        Raises:
            InvalidValueError: a store writes bytes that a load reads, in undefined order.
            As `load` and `store`.
        """
        windows = np.atleast_1d(expect_integer_array(smem_offsets, "shared-memory offsets"))
        depth = len(windows)
        load_coords = operands.expect_coordinates(self._geometry(load, mode, "load"), load_coords)
        store_coords = operands.expect_coordinates(self._geometry(store, None, "store"), store_coords)
        n = len(load_coords)
        if windows.ndim != 1 or not depth or len(store_coords) != n:
            raise InvalidValueError(
                f"{counted(n, 'load')}, {counted(len(store_coords), 'store')}, {counted(depth, 'window')}; "
                "must be as many stores as loads, and at least 1 window"
            )
        offsets = np.resize(windows, n)
        loads = self._batch("load", load, source, load_coords, smem, mode, offsets, source_base, im2col_offsets)
        stores = self._batch("store", store, destination, store_coords, smem, None, offsets, destination_base)
        loads.check()
        stores.check()
        require_apart(loads, stores)
        for start in range(0, n, depth):
            loads.load(start, min(start + depth, n))
            stores.store(start, min(start + depth, n))
        return loads.transaction_bytes

    # ---- common ------------------------------------------------------------------------------------------------

    def geometry(self, descriptor: Descriptor, mode: str | None = None) -> Geometry:
        """Return the geometry of an instruction: the rows that it moves (see `cute_py.tma.emulator.geometry`)."""
        return geometry(descriptor, mode)

    def _geometry(self, descriptor: Descriptor, mode: str | None, instruction: str) -> Geometry:
        shape = self.geometry(descriptor, mode)
        if shape.mode not in operands.MODES_OF[instruction]:
            raise InvalidValueError(
                f"{instruction} has no mode {shape.mode!r}", {"modes": ", ".join(operands.MODES_OF[instruction])}
            )
        operands.require_form(self.arch, shape.mode, instruction)
        return shape

    def _batch(
        self,
        instruction: str,
        descriptor: Descriptor,
        gmem: Memory,
        coords: IntegersLike,
        smem: Window | None,
        mode: str | None,
        smem_offsets: IntegersLike,
        gmem_base: int,
        im2col_offsets: IntegersLike = (),
        *,
        multicast_mask: int | None = None,
        cta_group: int = 1,
        op: str | None = None,
    ) -> Batch:
        """Check the operands of n instructions of any kind. A prefetch has no shared memory."""
        writing = instruction in ("store", "reduce")
        shape = self._geometry(descriptor, mode, instruction)
        why = operands.unmeasured(shape, instruction, pair=cta_group == 2)
        if why and self.strict:
            raise UnknownFactError(f"not measured: {why}", {"source": "the PTX ISA"}, "use Emulator(strict=False)")
        where = operands.expect_coordinates(shape, coords)
        windows = []
        if instruction == "prefetch":
            operands.require_box(shape, shape.rows)
        else:
            shared = as_shared(smem, writable=not writing)
            starts = operands.window_offsets(shared, smem_offsets, len(where))
            windows = [(cta, starts) for cta in operands.destinations(shared, multicast_mask)]
        for trap in operands.check_traps(shape, instruction, where, op):
            raise TmaTrap(operands.ILLEGAL_INSTRUCTION, trap.message, trap.facts).of_rule(trap.rule)
        memory = as_global(gmem, gmem_base, writable=writing)
        offsets = operands.im2col_offsets(shape, im2col_offsets, len(where))
        return Batch(shape, memory, where, offsets, windows, op=op, writing=writing, unmeasured=why)


def _stored(batch: Batch) -> TransactionBytes:
    """Check and run n stores or reductions, and return the bytes of one."""
    batch.check()
    batch.store(0, len(batch.coords))
    return batch.transaction_bytes


# ---- one tile inside its tensor --------------------------------------------------------------------------------------
#
# A `Batch` holds n instructions in arrays. For one instruction, each array holds one number, and the checks take 60
# microseconds, although the sixteen kilobytes of a tile are copied in five. Here the same conditions are tests of plain
# integers. They accept only tiles that need no refusal, fill or rounding. All others go to the batch, which
# has the rules and their texts. A test compares the two.

_PLAIN: Final = 1 << 62
"""Addresses below this limit are added without a check of their sum."""


@dataclass(frozen=True, slots=True)
class _Tile:
    """The properties that all loads of one geometry share. Modes are innermost first, and sizes are in bytes."""

    address: int
    room: tuple[int, ...]
    """Number of coordinates in each mode where a box inside the tensor can start."""
    steps: tuple[int, ...]
    """Bytes from one coordinate to the next."""
    grain: int
    """Granularity in elements of the innermost coordinate: 16 bytes."""
    reach: int
    """Bytes from the first byte to the end of the last."""
    unit: np.dtype[np.void]
    shape: tuple[int, ...]
    """Extents of the box in units, slowest mode first."""
    strides: tuple[int, ...]
    repeat: int
    """Period of the swizzle's pattern, in bytes of shared memory."""
    extent: int
    orders: dict[int, Integers]
    """Position in that pattern -> the unit at each position of the tile."""
    completed: TransactionBytes


@functools.lru_cache(maxsize=256)
def _tile(geometry: Geometry) -> _Tile | None:
    """Return the `_Tile` of a geometry; None unless a load only copies complete rows of 16 bytes or more."""
    plain = geometry.mode == "tile" and not geometry.interleaved and not geometry.tf32 and geometry.packing is None
    if not plain or geometry.row_bytes % 16 or 128 % geometry.bits or operands.unmeasured(geometry, "load"):
        return None
    box, repeat = block_of(geometry), max(swizzle_pattern(geometry.swizzle).repeat, operands.SMEM_ALIGNMENT)
    images = {phase: row_image(geometry, geometry.rows, phase) for phase in range(0, repeat, operands.SMEM_ALIGNMENT)}
    orders = {phase: image.order for phase, image in images.items() if image.order is not None}
    image = images[0]
    if len(orders) < len(images) or image.unit != 16:
        return None
    return _Tile(
        geometry.address,
        box.room,
        (geometry.bits // 8, *geometry.strides[1:]),
        128 // geometry.bits,
        box.reach,
        np.dtype(f"V{image.unit}"),
        (*box.counts, geometry.row_bytes // image.unit),
        (*box.strides, image.unit),
        repeat,
        image.extent,
        orders,
        TransactionBytes(geometry.transaction_bytes),
    )


def load_inside(
    geometry: Geometry, gmem: Memory, gmem_base: int, coords: Sequence[int], smem: Window, smem_offset: int
) -> TransactionBytes | None:
    """Load one tile that is inside the tensor and both memories; return None, and load nothing, for any other tile."""
    tile = _tile(geometry)
    if tile is None or type(coords) not in (tuple, list) or len(coords) != len(tile.room):
        return None
    first = tile.address
    for c, room, step in zip(coords, tile.room, tile.steps, strict=True):
        if type(c) is not int or not 0 <= c < room:
            return None
        first += c * step
    if coords[0] % tile.grain or type(gmem_base) is not int or not 0 <= gmem_base < _PLAIN:
        return None
    source: Any = gmem
    target: Any = smem
    base = 0
    if type(gmem) is GlobalMemory:
        entry = gmem.find(first) if first >= 0 else None
        if entry is None:
            return None
        source, gmem_base = entry.array, entry.address
    if type(smem) is SharedMemory:
        target, base = smem.array, smem.base
    first -= gmem_base
    if not _is_bytes(source) or not 0 <= first <= len(source) - tile.reach or type(smem_offset) is not int:
        return None
    if not _is_bytes(target) or not target.flags.writeable or not 0 <= smem_offset <= len(target) - tile.extent:
        return None
    order = tile.orders.get((smem_offset + base) % tile.repeat)
    if order is None:
        return None
    units = np.ndarray(tile.shape, tile.unit, source, first, tile.strides).flatten()
    units.take(order, out=target[smem_offset : smem_offset + tile.extent].view(tile.unit), mode="clip")
    return tile.completed


def _is_bytes(array: object) -> bool:
    """Whether an object is a plain, contiguous array of bytes."""
    return type(array) is np.ndarray and array.dtype == np.uint8 and array.ndim == 1 and array.flags.c_contiguous
