"""Run n instructions of one descriptor together: check all of them, then move all bytes.

`Batch.check` must pass before any byte moves, so that a trap leaves memory unchanged. `load` then runs the loads of a
range of instructions; `store` runs their stores or reductions. The engine works in pieces of about two megabytes, which
stay in cache and need little memory in addition to the tensors.

Rows move in one of two ways. In general, `walk` finds each row in global memory. A box that is inside the tensor moves
faster, because it is one strided block of global memory. Boxes whose coordinates step by a constant (such as tiles in a
row) form one block with one more dimension, so that one numpy copy moves them all.

Blocks are copied in the order of addresses, which is much faster than tile by tile if the tiles are side by side.
`_block_order` then maps each unit of that copy to its position in the shared-memory images. Units are numpy items of at
most 16 bytes.
"""

from __future__ import annotations

import bisect
import functools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from cute_py.errors import InvalidValueError, TmaTrap
from cute_py.tma.emulator.geometry import DOCUMENTED, MEASURED, Geometry, Image, row_image, swizzle_pattern
from cute_py.tma.emulator.memory import (
    ILLEGAL_ADDRESS,
    Bytes,
    Chosen,
    Flags,
    GlobalMemory,
    Integers,
    Range,
    SharedMemory,
    items,
    read_rows,
    require_rows,
    require_writable,
    write_rows,
)
from cute_py.tma.emulator.values import filled_rows, reduced, round_to_tf32
from cute_py.tma.emulator.walk import Rows, row_modes, sixteen_byte_rule, walk_rows

if TYPE_CHECKING:
    import numpy as np
else:
    from cute_py.optional_packages import numpy as np

Spans: TypeAlias = "tuple[Integers, Integers]"
"""Start and end (exclusive) of ranges of host addresses."""

PIECE_BYTES: Final = 1 << 21
KEPT_ROWS: Final = 1 << 18
"""Largest number of rows that are kept from the check to the move: some megabytes."""


class TransactionBytes(int):
    """The bytes that an instruction counts at its barrier, with the evidence for its behaviour.

    `why` names the documented behaviour that was not measured; it is '' if all behaviour was measured.

    >>> TransactionBytes(4096).evidence, TransactionBytes(4096, "cta_group::2").evidence
    ('measured', 'documented')
    """

    evidence: str
    why: str

    def __new__(cls, value: int, why: str = "") -> TransactionBytes:
        self = super().__new__(cls, value)
        self.evidence, self.why = DOCUMENTED if why else MEASURED, why
        return self


class Batch:
    """n instructions of one geometry whose operands were checked.

    Args:
        coords, offsets: (n, k) coordinates and im2col offsets.
        windows: (shared memory, (n,) offsets in it) for each participating CTA.
        op: the reduction, if it is one.
        writing: whether the instructions write global memory.
        unmeasured: the documented behaviour that was not measured; '' if all behaviour was measured.
    """

    def __init__(
        self,
        geometry: Geometry,
        memory: GlobalMemory,
        coords: Integers,
        offsets: Integers,
        windows: Sequence[tuple[SharedMemory, Integers]],
        *,
        op: str | None = None,
        writing: bool = False,
        unmeasured: str = "",
    ) -> None:
        self.geometry, self.memory, self.coords, self.offsets = geometry, memory, coords, offsets
        self.op, self.writing = op, writing
        self.rows = geometry.row_count(offsets[0] if len(offsets) else ())
        self.transaction_bytes = TransactionBytes(self.rows * geometry.row_bytes, unmeasured)
        """Transaction bytes of one instruction."""
        self.limit = max(1, PIECE_BYTES // max(1, self.transaction_bytes))
        self.windows = [_Windows(geometry, self.rows, smem, starts) for smem, starts in windows]
        self._blocks: _Blocks | None = None
        self._blocked: Integers | None = None
        """Indices of the instructions that move as blocks; None if all do."""
        self._general = np.arange(len(coords))
        """Indices of the other instructions."""
        self._kept: dict[tuple[int, int], Rows] = {}
        """The rows of the checked pieces, kept if they are few."""
        self._scratch = np.empty(0, np.uint8)

    def walk(self, chosen: Chosen) -> Rows:
        """Return the rows of a subset of the instructions."""
        return walk_rows(self.geometry, self.coords[chosen], self.offsets[chosen])

    # ---- checks ------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check that every window is inside its shared memory, and that all bytes are in ranges of global memory.

        Raises:
            TmaTrap: CUDA_ERROR_ILLEGAL_ADDRESS.
        """
        for windows in self.windows:
            windows.check()
        # Rows of one box that share bytes are written in order. A strided copy does not guarantee an order.
        tile = self.geometry.mode == "tile" and (self.op is None or _apart(self.geometry, self.coords))
        if tile and not (self.writing and block_of(self.geometry).rows_overlap):
            self._blocks, held = find_blocks(self.geometry, self.memory, self.coords)
            if self._blocks is not None:
                require_writable(self._blocks.entry, self.writing)
                self._general = np.nonzero(~held)[0]
                self._blocked = np.nonzero(held)[0] if len(self._general) else None
        for start in range(0, len(self._general), self.limit):
            stop = min(start + self.limit, len(self._general))
            rows = self.walk(self._general[start:stop])
            if stop * self.rows <= KEPT_ROWS:
                self._kept[start, stop] = rows
            for low, high, which in _groups(rows.first, rows.last):
                address = rows.address[which][rows.inside[which]]
                require_rows(self.memory, address + low, high - low, writing=self.writing)

    # ---- pieces ------------------------------------------------------------------------------------------------

    def _general_pieces(self, start: int, stop: int) -> Iterator[tuple[Chosen, Rows]]:
        """Yield (indices, rows) of the instructions in [start, stop) that do not move as blocks, piece by piece."""
        if not len(self._general):
            return
        low, high = np.searchsorted(self._general, (start, stop)).tolist()
        for first in range(low, high, self.limit):
            last = min(first + self.limit, high)
            chosen = self._general[first:last]
            yield chosen, self._kept.get((first, last)) or self.walk(chosen)

    def _block_pieces(self, start: int, stop: int) -> Iterator[tuple[Chosen, Bytes]]:
        """Yield (indices, view of global memory) of the instructions in [start, stop) that move as blocks."""
        if self._blocks is None:
            return
        if self._blocked is not None:
            start, stop = np.searchsorted(self._blocked, (start, stop)).tolist()
        for low, high in self._blocks.runs(start, stop, self.limit):
            chosen = slice(low, high) if self._blocked is None else self._blocked[low:high]
            yield chosen, self._blocks.view(low, high)

    def _buffer(self, n: int) -> Bytes:
        """Return (n * R, row_bytes) bytes of scratch memory. Every call returns the same memory."""
        size = n * self.transaction_bytes
        if len(self._scratch) < size:
            self._scratch = np.empty(size, np.uint8)
        return self._scratch[:size].reshape(-1, self.geometry.row_bytes)

    # ---- loads -------------------------------------------------------------------------------------------------

    def load(self, start: int, stop: int) -> None:
        """Run the loads [start, stop)."""
        for chosen, rows in self._general_pieces(start, stop):
            data = self._load_rows(rows)
            for windows in self.windows:
                windows.put(chosen, data)
        for chosen, view in self._block_pieces(start, stop):
            self._load_block(chosen, view)

    def _load_rows(self, rows: Rows) -> Bytes:
        """Return the (n * R, row_bytes) bytes that loads deliver, filled and rounded."""
        size, address, groups = self.geometry.row_bytes, rows.address.reshape(-1), _groups(rows.first, rows.last)
        if len(groups) == 1 and groups[0][:2] == (0, size) and groups[0][2].all() and rows.inside.all():
            return self._read(address, size)
        out = filled_rows(len(address), size, self.geometry.nan_fill)
        for low, high, which in groups:
            chosen = np.flatnonzero(rows.inside & which[:, None])
            out[chosen, low:high] = self._read(address[chosen] + low, high - low)
        return out

    def _read(self, address: Integers, size: int) -> Bytes:
        """Read rows from global memory and round them.

        Fill bytes are not rounded, so the rounding comes before the fill.
        """
        rows = read_rows(self.memory, address, size)
        if self.geometry.tf32:
            round_to_tf32(rows)
        return rows

    def _load_block(self, chosen: Chosen, view: Bytes) -> None:
        axes, data = _address_order(view), self._buffer(len(view))
        copied = view if axes is None else view.transpose(axes)
        data.reshape(copied.shape)[...] = copied
        if self.geometry.tf32:
            round_to_tf32(data)
        for windows in self.windows:
            if axes is not None and (found := windows.side_by_side(chosen)) is not None:
                _permute(data, _block_order(view.shape, axes, found[1])[0], found[0], found[1].unit)
                continue
            rows = data if axes is None else data.reshape(copied.shape).transpose(np.argsort(axes)).reshape(data.shape)
            windows.put(chosen, rows)

    # ---- stores and reductions ---------------------------------------------------------------------------------

    def store(self, start: int, stop: int) -> None:
        """Run the stores or reductions [start, stop)."""
        windows = self.windows[0]
        for chosen, rows in self._general_pieces(start, stop):
            self._store_rows(rows, windows.get(chosen, self._buffer(len(rows.first))))
        for chosen, view in self._block_pieces(start, stop):
            if self.op is not None:
                new = np.ascontiguousarray(windows.get(chosen, self._buffer(len(view))))
                old = np.ascontiguousarray(view).reshape(new.shape)
                view[...] = reduced(old, new, self.op, self.geometry.data_type).reshape(view.shape)
                continue
            axes = _address_order(view)
            found = None if axes is None else windows.side_by_side(chosen)
            if axes is None or found is None:
                view[...] = windows.get(chosen, self._buffer(len(view))).reshape(view.shape)
                continue
            ordered, back = view.transpose(axes), _block_order(view.shape, axes, found[1])[1]
            if ordered.flags.c_contiguous:
                _permute(found[0], back, ordered, found[1].unit)
                continue
            data = self._buffer(len(view))
            _permute(found[0], back, data, found[1].unit)
            ordered[...] = data.reshape(ordered.shape)

    def _store_rows(self, rows: Rows, data: Bytes) -> None:
        last = np.where(rows.last > 0, sixteen_byte_rule(self.geometry, rows.last), 0)
        for _, size, which in _groups(np.zeros_like(last), last):
            chosen = np.flatnonzero(rows.inside & which[:, None])
            address, new = rows.address.reshape(-1)[chosen], np.ascontiguousarray(data[chosen, :size])
            if self.op is None:
                write_rows(self.memory, address, new)
                continue
            # Rows that share bytes are reduced one after the other.
            apart = (np.diff(np.sort(address)) >= size).all()
            for piece in [slice(None)] if apart else [slice(i, i + 1) for i in range(len(address))]:
                old = read_rows(self.memory, address[piece], size)
                write_rows(self.memory, address[piece], reduced(old, new[piece], self.op, self.geometry.data_type))


def _groups(first: Integers, last: Integers) -> list[tuple[int, int, Flags]]:
    """List (first, last, mask of rows) for each range of row bytes that is not empty."""
    ends = sorted(set(zip(first.tolist(), last.tolist(), strict=True)))
    return [(low, high, (first == low) & (last == high)) for low, high in ends if high > low]


# ---- windows of shared memory ----------------------------------------------------------------------------------------


class _Windows:
    """The windows of n instructions in the shared memory of one CTA.

    Args:
        rows: rows of one instruction.
        starts: (n,) offsets in bytes.
    Raises:
        TmaTrap: the rows of one instruction are larger than shared memory.
    """

    def __init__(self, geometry: Geometry, rows: int, smem: SharedMemory, starts: Integers) -> None:
        self.smem, self.starts, self.size = smem, starts, rows * geometry.row_bytes
        if self.size > len(smem):
            raise _overrun(self.size, smem)
        self.phases = (starts + smem.base) % swizzle_pattern(geometry.swizzle).repeat
        self.images = {phase: row_image(geometry, rows, phase) for phase in set(self.phases.tolist())}
        """Position in the swizzle's pattern -> image."""
        self.image: Image | None = next(iter(self.images.values())) if len(self.images) == 1 else None
        """The image of all instructions, if they have one position in the pattern."""
        self._breaks: list[int] = []
        """Windows that are followed by a gap."""
        if self.image is not None and len(starts) > 1:
            self._breaks = np.flatnonzero(starts[1:] - starts[:-1] != self.image.extent).tolist()

    def check(self) -> None:
        """Check that no window extends past the end of shared memory.

        Raises:
            TmaTrap: CUDA_ERROR_ILLEGAL_ADDRESS.
        """
        for phase, shape in self.images.items():
            starts = self.starts if len(self.images) == 1 else self.starts[self.phases == phase]
            end = int(starts.max()) + shape.extent
            if end > len(self.smem):
                raise _overrun(end, self.smem)

    def overlap(self) -> bool:
        """Whether the windows of two instructions share bytes."""
        if len(self.starts) < 2:
            return False
        return bool((np.diff(np.sort(self.starts)) < max(shape.extent for shape in self.images.values())).any())

    def side_by_side(self, chosen: Chosen) -> tuple[Bytes, Image] | None:
        """Return the (n, extent) view of the windows, and their image; None if there is a gap in or between them."""
        if self.image is None or self.image.order is None:
            return None
        starts, extent = self.starts[chosen], self.image.extent
        n, first = len(starts), int(starts[0])
        if isinstance(chosen, slice):
            place = bisect.bisect_left(self._breaks, chosen.start)
            gap = place < len(self._breaks) and self._breaks[place] < chosen.stop - 1
        else:
            gap = n > 1 and bool((starts[1:] - starts[:-1] != extent).any())
        if gap:
            return None
        return self.smem.array[first : first + n * extent].reshape(n, extent), self.image

    def put(self, chosen: Chosen, data: Bytes) -> None:
        """Write the rows of n chosen instructions, (n * R, row_bytes), to their windows."""
        rows, found = data.reshape(-1, self.size), self.side_by_side(chosen)
        if found is None:
            for shape, which, place in self._groups(chosen):
                items(self.smem.array, shape.unit)[place] = np.ascontiguousarray(rows[which]).view(f"V{shape.unit}")
            return
        ready, shape = found
        if shape.identity:
            ready[...] = rows
        elif shape.order is not None:
            unit = f"V{shape.unit}"
            np.take(rows.view(unit), shape.order, axis=1, out=ready.view(unit), mode="clip")

    def get(self, chosen: Chosen, data: Bytes) -> Bytes:
        """Read the rows of n chosen instructions from their windows. Return `data`, or a view of shared memory."""
        rows, found = data.reshape(-1, self.size), self.side_by_side(chosen)
        if found is None:
            for shape, which, place in self._groups(chosen):
                rows[which] = items(self.smem.array, shape.unit)[place].view(np.uint8)
            return data
        ready, shape = found
        if shape.identity:
            return ready.reshape(data.shape)
        unit = f"V{shape.unit}"
        np.take(ready.view(unit), shape.units, axis=1, out=rows.view(unit), mode="clip")
        return data

    def _groups(self, chosen: Chosen) -> Iterator[tuple[Image, Flags, Integers]]:
        """Yield (image, mask of the chosen instructions that have it, (n, units) start bytes of their units)."""
        starts, phases = self.starts[chosen], self.phases[chosen]
        for phase, shape in self.images.items():
            which = phases == phase
            if which.any():
                yield shape, which, starts[which][:, None] + shape.positions


def _overrun(end: int, smem: SharedMemory) -> TmaTrap:
    facts: dict[str, object] = {"end of the box": f"{end} bytes", "shared memory": f"{len(smem)} bytes"}
    return TmaTrap(ILLEGAL_ADDRESS, "the box overruns shared memory", facts)


# ---- blocks of global memory -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Box:
    """The box of a tile as a strided block of bytes."""

    counts: tuple[int, ...]
    """Extents of the modes that count rows, slowest first, without extents of 1."""
    strides: tuple[int, ...]
    """Bytes from one coordinate to the next, for the same modes."""
    room: tuple[int, ...]
    """Number of coordinates in each mode where a box inside the tensor can start; 0 or less if it is too large."""
    reach: int
    """Bytes from the first byte to the end of the last."""
    rows_overlap: bool
    """Whether two rows share bytes: a stride may be smaller than the row that it strides over."""


@functools.lru_cache(maxsize=256)
def block_of(geometry: Geometry) -> Box:
    modes = [(geometry.counts[m], geometry.steps[m] * geometry.strides[m]) for m in row_modes(geometry)]
    modes = [(count, stride) for count, stride in reversed(modes) if count > 1]
    last = [(count - 1) * step for count, step in zip(geometry.counts, geometry.steps, strict=True)]
    if not geometry.interleaved:
        last[0] = geometry.row_bytes * 8 // geometry.bits - 1
    reach, overlap = geometry.row_bytes, False
    for count, stride in sorted(modes, key=lambda mode: mode[1]):
        overlap = overlap or stride < reach
        reach += (count - 1) * stride
    return Box(
        tuple([count for count, _ in modes]),
        tuple([stride for _, stride in modes]),
        tuple([extent - to for extent, to in zip(geometry.dims, last, strict=True)]),
        reach,
        overlap,
    )


class _Blocks:
    """Boxes that are inside the tensor and in one range of global memory.

    Args:
        low: (n,) bytes from the start of the range to the first byte of each box.
    """

    def __init__(self, geometry: Geometry, entry: Range, low: Integers) -> None:
        self.entry, self._low, self._row_bytes, self._box = entry, low, geometry.row_bytes, block_of(geometry)
        self._edges = [0]
        """Starts of the runs of boxes that step by a constant, and the end of the last run."""
        step = low[1:] - low[:-1]
        turns = np.flatnonzero(step[1:] != step[:-1]) + 2 if len(low) > 2 else step[:0]
        for turn in turns.tolist():  # the step to this box differs from the step before
            if turn - self._edges[-1] > 1:
                self._edges.append(turn)
        self._edges.append(len(low))

    def runs(self, start: int, stop: int, limit: int) -> Iterator[tuple[int, int]]:
        """Split [start, stop) into ranges of at most `limit` boxes that step by a constant."""
        place = bisect.bisect_right(self._edges, start)
        while start < stop:
            end = min(self._edges[place], stop)
            while start < end:
                yield start, min(start + limit, end)
                start = min(start + limit, end)
            place += 1

    def view(self, start: int, stop: int) -> Bytes:
        """Return a view of one run of boxes in global memory: (k, counts.., row_bytes), slowest mode first."""
        first, box = int(self._low[start]), self._box
        step = int(self._low[start + 1]) - first if stop - start > 1 else 0
        shape, strides = (stop - start, *box.counts, self._row_bytes), (step, *box.strides, 1)
        return np.ndarray(shape, np.uint8, self.entry.array, first, strides)


def find_blocks(geometry: Geometry, memory: GlobalMemory, coords: Integers) -> tuple[_Blocks | None, Flags]:
    """Find the boxes that are inside the tensor and in the same range of global memory as the first such box.

    Args:
        coords: (n, rank).
    Returns:
        these boxes (None if there are none), and an (n,) mask of them.
    """
    box = block_of(geometry)
    if len(coords) == 1:  # use plain integers: an array of one number costs more than the arithmetic
        coord = coords[0].tolist()
        first = geometry.address + coord[0] * geometry.inner_bits // 8
        first += sum(map(operator.mul, coord[1:], geometry.strides[1:]))
        entry = memory.find(first) if all(0 <= c < room for c, room in zip(coord, box.room, strict=True)) else None
        if entry is None or first + box.reach > entry.end:
            return None, np.zeros(1, np.bool_)
        return _Blocks(geometry, entry, np.array([first - entry.address])), np.ones(1, np.bool_)
    held = np.asarray(((coords >= 0) & (coords < np.asarray(box.room))).all(axis=1))
    if not held.any():
        return None, held
    low = coords[:, 0] * geometry.inner_bits // 8 + coords[:, 1:] @ np.asarray(geometry.strides[1:], np.int64)
    low += geometry.address
    entry = memory.find(int(low[held.argmax()]))
    if entry is None:
        return None, np.zeros_like(held)
    held &= (low >= entry.address) & (low + box.reach <= entry.end)
    return (_Blocks(geometry, entry, low[held] - entry.address) if held.any() else None), held


def _apart(geometry: Geometry, coords: Integers) -> bool:
    """Whether it is certain, without checking single rows, that no two of the boxes share bytes.

    It is certain if no byte occurs twice in the tensor and the boxes are different tiles of a regular tiling.
    Reductions into shared bytes must run one after the other.
    """
    reach = geometry.dims[0] * geometry.bits // 8
    for extent, stride in sorted(zip(geometry.dims[1:], geometry.strides[1:], strict=True), key=operator.itemgetter(1)):
        if stride < reach:
            return False
        reach += (extent - 1) * stride
    if geometry.interleaved or not len(coords):
        return False
    inner = max(1, geometry.row_bytes * 8 // geometry.bits)
    box = np.array([inner, *map(operator.mul, geometry.counts[1:], geometry.steps[1:])])
    place, left = np.divmod(coords - coords[0], box)
    if left.any():
        return False
    place -= place.min(axis=0)
    weights = np.cumprod([1, *(place.max(axis=0)[:-1] + 1).tolist()], dtype=object)
    if weights[-1] * (int(place[:, -1].max()) + 1) >= 1 << 62:
        return False
    numbers = np.sort(place @ weights.astype(np.int64))
    return bool((numbers[1:] != numbers[:-1]).all())


def _address_order(view: Bytes) -> tuple[int, ...] | None:
    """Return the axes of a block from the largest stride to the smallest; None if they already have this order."""
    first = 1 if len(view) == 1 else 0  # a single box has no stride, and comes first
    outer = sorted(range(first, view.ndim - 1), key=lambda axis: -abs(view.strides[axis]))
    axes = (*range(first), *outer, view.ndim - 1)
    return None if axes == tuple(range(view.ndim)) else axes


@functools.lru_cache(maxsize=4)
def _block_order(shape: tuple[int, ...], axes: tuple[int, ...], image: Image) -> tuple[Integers, Integers]:
    """Return the permutations between a block copied in the order of addresses and the images of its boxes.

    Args:
        shape: (k, counts.., row_bytes) of the block.
        axes: axes from `_address_order`.
        image: an image without gaps.
    Returns:
        (k, units), the unit of the copy at each position of each image, and the inverse permutation (k * units,).
    """
    units = (*shape[:-1], shape[-1] // image.unit)
    count = int(np.prod(units))
    copied = np.arange(count).reshape([units[axis] for axis in axes]).transpose(np.argsort(axes))
    there = np.ascontiguousarray(copied.reshape(shape[0], -1)[:, image.order])
    back = np.empty(count, np.int64)
    back[there.reshape(-1)] = np.arange(count)
    return there, back


def _permute(source: Bytes, order: Integers, out: Bytes, unit: int) -> None:
    """Set unit i of `out` to source unit order[i], for contiguous bytes of any shape. `order` covers all of `out`."""
    kind = f"V{unit}"
    np.take(source.reshape(-1).view(kind), order.reshape(-1), out=out.reshape(-1).view(kind), mode="clip")


# ---- loads and stores of one copy ------------------------------------------------------------------------------------


def require_apart(loads: Batch, stores: Batch) -> None:
    """Raise an error if loads and stores share bytes of global memory.

    The loads and stores of a ring run concurrently, so bytes that both access have no defined value. Two tensors may be
    in one array, even with alternating rows. If their memories overlap, every row is checked.

    Raises:
        InvalidValueError: they share bytes; the message gives the first such byte of the stores.
    """
    ours, theirs = ([_host_bytes(r) for r in batch.memory.ranges] for batch in (loads, stores))
    if not any(low < end and start < high for low, high in theirs for start, end in ours):
        return  # the two memories are separate, as in most copies; no tile has to be checked
    written = [_merged(*spans) for spans in _spans(stores)]
    if not written:
        return
    starts, ends = _merged(*(np.concatenate(side) for side in zip(*written, strict=True)))
    for first, last in _spans(loads):
        # The last span that starts before the end of the row: spans do not overlap, so no other reaches further.
        place = np.searchsorted(starts, last, side="left") - 1
        bad = np.flatnonzero((place >= 0) & (ends[np.maximum(place, 0)] > first))
        if len(bad):
            index = int(bad[0])
            shared = max(int(first[index]), int(starts[place[index]]))
            where = next(r for r, (low, high) in zip(loads.memory.ranges, ours, strict=True) if low <= shared < high)
            raise InvalidValueError(
                "the source and the destination overlap, but a copy reads some tiles while it writes others",
                {"first shared byte of a tile": f"{where.name} + {shared - _host_bytes(where)[0]}"},
            )


def _host_bytes(entry: Range) -> tuple[int, int]:
    """Return the first host address of a range, and the address after its last byte."""
    start = int(entry.array.ctypes.data)
    return start, start + len(entry.array)


def _spans(batch: Batch) -> Iterator[Spans]:
    """Yield the spans of global memory that instructions access, one span per row, for some instructions at a time."""
    ranges = batch.memory.ranges
    shift = np.asarray([_host_bytes(r)[0] - r.address for r in ranges], np.int64)
    end = np.asarray([_host_bytes(r)[1] for r in ranges], np.int64)
    for start in range(0, len(batch.coords), batch.limit):
        rows = batch.walk(slice(start, start + batch.limit))
        ends = sixteen_byte_rule(batch.geometry, rows.last) if batch.writing else rows.last
        touched = rows.inside & (rows.last > rows.first)[:, None]
        first = (rows.address + rows.first[:, None])[touched]
        if not len(first):
            continue
        where = batch.memory.index_of(first)
        place, size = first + shift[where], np.broadcast_to((ends - rows.first)[:, None], rows.inside.shape)[touched]
        yield place, np.minimum(place + size, end[where])  # a store rounds a row up, but its bytes end with the range


def _merged(first: Integers, last: Integers) -> Spans:
    """Merge spans into ordered spans that neither overlap nor adjoin."""
    order = np.argsort(first, kind="stable")
    first, last = first[order], np.maximum.accumulate(last[order])
    opens = np.concatenate(([True], first[1:] > last[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return first[opens], last[closes]
