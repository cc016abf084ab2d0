"""n instructions of one descriptor at once: check everything, then move everything.

`Batch.check` must have passed before anything moves, so that a trap leaves memory as it was. `fill` then loads a
stretch of the instructions, `drain` stores or reduces one. Work goes in pieces of about two megabytes, which stay in
cache and keep the memory in use small beside the tensors.

The windows of n instructions in one CTA's shared memory, and their images.

Boxes inside the tensor as strided blocks: the fast way of a whole-tensor copy.

A box that lies inside the tensor is one strided block of global memory. Boxes whose coordinates step by a constant
(the tiles of a row of tiles) are one block with one more dimension, so a run of tiles is a single numpy copy.

Global memory is walked in the order of its addresses, which is far faster than tile by tile when the tiles lie side by
side; `block_order` then says which unit of that walk belongs at each place of the shared-memory images.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from cute_py.errors import TmaTrap
from cute_py.tma.emulator import engine as blocks
from cute_py.tma.emulator import transfer
from cute_py.tma.emulator.box import (
    Rows,
    box_room,
    boxes_inside,
    four_rows,
    inner_start,
    row_modes,
    sixteen_byte_rule,
    tile_rows,
)
from cute_py.tma.emulator.formats import round_to_tf32
from cute_py.tma.emulator.im2col import im2col_rows, row_count, wide_rows
from cute_py.tma.emulator.image import Image, image, phase_of
from cute_py.tma.emulator.memory import BASE_ALIGNMENT
from cute_py.tma.emulator.reduce import reduced
from cute_py.tma.emulator.transfer import block

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from cute_py.tma.emulator.geometry import Geometry
    from cute_py.tma.emulator.image import Image
    from cute_py.tma.emulator.memory import GlobalMemory, Range, SharedMemory

Chosen = slice | np.ndarray[tuple[int, ...], np.dtype[np.int64]]
"""Which instructions: a stretch, or indices."""


def _overrun(end: int, smem: SharedMemory) -> TmaTrap:
    facts: dict[str, object] = {"end of the box": f"{end} bytes", "shared memory": f"{len(smem)} bytes"}
    return TmaTrap(transfer.ILLEGAL_ADDRESS, "the box overruns shared memory", facts)


class Windows:
    """Where n instructions lie in the shared memory of one CTA.

    Args:
        rows: of one instruction.
        starts: (n,) offsets in bytes.
    Raises:
        TmaTrap: the rows alone are larger than shared memory.
    """

    def __init__(self, geometry: Geometry, rows: int, smem: SharedMemory, starts: NDArray[np.int64]) -> None:
        self.geometry, self.rows, self.smem, self.starts = geometry, rows, smem, starts
        if rows * geometry.row_bytes > len(smem):
            raise _overrun(rows * geometry.row_bytes, smem)
        self.residues = (starts + smem.base) % BASE_ALIGNMENT
        self.kinds = sorted(set(self.residues.tolist()))
        phases = {phase_of(residue, geometry.swizzle) for residue in self.kinds}
        self.image: Image | None = image(geometry, rows, phases.pop()) if len(phases) == 1 else None
        """The image of all instructions, if they lie at one place of the swizzle's pattern."""
        self._breaks: list[int] | None = None
        if self.image is not None and self.image.order is not None:
            self._breaks = np.flatnonzero(np.diff(starts) != self.image.extent).tolist() if len(starts) > 1 else []

    def check(self) -> None:
        """Every window ends in shared memory.

        Raises:
            TmaTrap: CUDA_ERROR_ILLEGAL_ADDRESS.
        """
        for residue in self.kinds:
            shape = self.image or image(self.geometry, self.rows, residue)
            starts = self.starts if self.image is not None else self.starts[self.residues == residue]
            end = int(starts.max()) + shape.extent
            if end > len(self.smem):
                raise _overrun(end, self.smem)

    def overlap(self) -> bool:
        """Whether two instructions share bytes."""
        if len(self.starts) < 2:
            return False
        extent = max(image(self.geometry, self.rows, residue).extent for residue in self.kinds)
        return bool((np.diff(np.sort(self.starts)) < extent).any())

    def stretch(self, chosen: Chosen) -> tuple[NDArray[np.uint8], Image] | None:
        """The bytes of the windows as one contiguous stretch, if there is no gap in or between them."""
        if self._breaks is None or self.image is None or not isinstance(chosen, slice):
            return None
        place = bisect.bisect_left(self._breaks, chosen.start)
        if place < len(self._breaks) and self._breaks[place] < chosen.stop - 1:
            return None
        first = int(self.starts[chosen.start])
        return self.smem.array[first : first + (chosen.stop - chosen.start) * self.image.extent], self.image

    def _groups(self, chosen: Chosen) -> Iterator[tuple[Image, NDArray[np.int64] | None]]:
        """(image, which of the chosen; None for all)."""
        if self.image is not None:
            yield self.image, None
            return
        residues = self.residues[chosen]
        for residue in sorted(set(residues.tolist())):
            yield image(self.geometry, self.rows, residue), np.flatnonzero(residues == residue)

    def put(self, chosen: Chosen, n: int, data: NDArray[np.uint8]) -> None:
        """Write the rows of the n chosen instructions, (n * R, row_bytes), to their windows."""
        starts = self.starts[chosen]
        for shape, which in self._groups(chosen):
            if which is None:
                transfer.put_images(self.smem.array, starts, data, shape)
            else:
                part = np.ascontiguousarray(data.reshape(n, -1)[which])
                transfer.put_images(self.smem.array, starts[which], part, shape)

    def get(self, chosen: Chosen, n: int, data: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The rows of the n chosen instructions from their windows: `data`, or a view of shared memory."""
        starts = self.starts[chosen]
        for shape, which in self._groups(chosen):
            if which is None:
                return transfer.get_images(self.smem.array, starts, shape, data)
            part = np.empty((len(which), data.size // n), np.uint8)
            taken = transfer.get_images(self.smem.array, starts[which], shape, part)
            data.reshape(n, -1)[which] = taken.reshape(part.shape)
        return data


@functools.lru_cache(maxsize=256)
def _mode_bytes(geometry: Geometry) -> list[tuple[int, int]]:
    """(count, bytes from one coordinate to the next) of the modes that count rows, slowest first; singles left out."""
    pairs = [(geometry.counts[m], geometry.steps[m] * geometry.strides[m]) for m in row_modes(geometry)]
    return [(count, stride) for count, stride in reversed(pairs) if count > 1]


def start_bytes(geometry: Geometry, coords: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) bytes from the tensor's start to the first byte of each box; also of differences of coordinates."""
    start = inner_start(geometry, coords[:, 0])
    return start + coords[:, 1:] @ _outer_strides(geometry)


@functools.lru_cache(maxsize=256)
def _outer_strides(geometry: Geometry) -> NDArray[np.int64]:
    return np.asarray(geometry.strides[1:], np.int64)


def rows_overlap(geometry: Geometry) -> bool:
    """Whether two rows of one box share bytes (a stride may be smaller than the row that it strides over)."""
    reach = geometry.row_bytes
    for count, stride in sorted(_mode_bytes(geometry), key=lambda pair: pair[1]):
        if stride < reach:
            return True
        reach += (count - 1) * stride
    return False


class Blocks:
    """Boxes that lie inside the tensor and in one range of memory.

    Args:
        low: (n,) bytes from the start of the range to the first byte of each box.
    """

    def __init__(self, geometry: Geometry, entry: Range, low: NDArray[np.int64]) -> None:
        self.entry, self._low, self._row_bytes = entry, low, geometry.row_bytes
        modes = _mode_bytes(geometry)
        self._counts = tuple(count for count, _ in modes)
        self._strides = tuple(stride for _, stride in modes)
        self._edges = [0]
        step = low[1:] - low[:-1]
        turns = np.flatnonzero(step[1:] != step[:-1]) + 2 if len(low) > 2 else step[:0]
        for turn in turns.tolist():  # the step to this box is a new one
            if turn - self._edges[-1] > 1:
                self._edges.append(turn)
        self._edges.append(len(low))

    def runs(self, start: int, stop: int, limit: int) -> Iterator[tuple[int, int]]:
        """Split [start, stop) into stretches whose boxes step by a constant, at most `limit` long."""
        place = bisect.bisect_right(self._edges, start)
        while start < stop:
            end = min(self._edges[place], stop)
            while start < end:
                yield start, min(start + limit, end)
                start = min(start + limit, end)
            place += 1

    def view(self, start: int, stop: int) -> NDArray[np.uint8]:
        """View of one stretch: (k, counts.., row_bytes), slowest mode first."""
        first = int(self._low[start])
        step = int(self._low[start + 1]) - first if stop - start > 1 else 0
        shape, strides = (stop - start, *self._counts, self._row_bytes), (step, *self._strides, 1)
        return block(self.entry.array, first, shape, strides)


@functools.lru_cache(maxsize=256)
def _reach(geometry: Geometry) -> int:
    """Bytes from the first to one past the last of a box."""
    return geometry.row_bytes + sum((count - 1) * stride for count, stride in _mode_bytes(geometry))


def _find_one(geometry: Geometry, memory: GlobalMemory, coord: list[int]) -> Blocks | None:
    """`find_blocks` for a single box, in plain integers: an array of one costs more than the arithmetic."""
    low = geometry.address
    for c, room, bits in zip(coord, *_single(geometry), strict=True):
        if not 0 <= c < room:
            return None
        low += c * bits // 8
    entry = memory.find(low)
    if entry is None or low + _reach(geometry) > entry.end:
        return None
    return Blocks(geometry, entry, np.array([low - entry.address]))


@functools.lru_cache(maxsize=256)
def _single(geometry: Geometry) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of each mode: how many coordinates a box inside the tensor can start at, and bits from one to the next."""
    room = box_room(geometry).tolist()
    inner = geometry.slice_bytes * 8 or geometry.bits
    return tuple(room), (inner, *(stride * 8 for stride in geometry.strides[1:]))


def find_blocks(
    geometry: Geometry, memory: GlobalMemory, coords: NDArray[np.int64]
) -> tuple[Blocks | None, NDArray[np.bool_]]:
    """The boxes that lie inside the tensor and in the range of memory of the first that does.

    Args:
        coords: (n, rank).
    Returns:
        these boxes (None if there are none), and (n,) which they are.
    """
    if len(coords) == 1:
        one = _find_one(geometry, memory, coords[0].tolist())
        return one, np.full(1, one is not None)
    inside = boxes_inside(geometry, coords)
    if not len(inside):
        return None, inside
    first = int(inside.argmax())
    if not inside[first]:
        return None, inside
    low = start_bytes(geometry, coords) + geometry.address
    entry = memory.find(int(low[first]))
    if entry is None:
        return None, np.zeros_like(inside)
    reach = _reach(geometry)
    held = inside & (low >= entry.address) & (low + reach <= entry.end)
    return (Blocks(geometry, entry, low[held] - entry.address) if held.any() else None), held


def address_order(view: NDArray[np.uint8]) -> tuple[int, ...] | None:
    """The axes of a block from the widest stride to the narrowest; None if they are so already."""
    if len(view) == 1:
        axes = (0, *sorted(range(1, view.ndim - 1), key=lambda axis: -abs(view.strides[axis])))
    else:
        axes = tuple(sorted(range(view.ndim - 1), key=lambda axis: -abs(view.strides[axis])))
    return None if axes == tuple(range(view.ndim - 1)) else (*axes, view.ndim - 1)


@functools.lru_cache(maxsize=4)
def block_order(
    shape: tuple[int, ...], axes: tuple[int, ...], image: Image
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How a block that was copied in the order of its addresses and the images of its k boxes permute each other.

    Args:
        shape: (k, counts.., row_bytes) of the block.
        axes: from `address_order`.
        image: one without gaps.
    Returns:
        (k, units) unit of the copy at each place of each image, and (k * units,) the way back.
    """
    units = (*shape[:-1], shape[-1] // image.unit)
    count = int(np.prod(units))
    copied = np.arange(count).reshape([units[axis] for axis in axes]).transpose(np.argsort(axes))
    there = np.ascontiguousarray(copied.reshape(shape[0], -1)[:, image.order])
    back = np.empty(count, np.int64)
    back[there.reshape(-1)] = np.arange(count)
    return there, back


PIECE_BYTES: Final = 1 << 21


class Batch:
    """n instructions of one geometry, with their operands checked."""

    def __init__(
        self,
        geometry: Geometry,
        memory: GlobalMemory,
        coords: NDArray[np.int64],
        offsets: NDArray[np.int64],
        windows: Sequence[tuple[SharedMemory, NDArray[np.int64]]],
        *,
        op: str | None = None,
        writing: bool = False,
    ) -> None:
        """
        Args:
            coords, offsets: (n, k) coordinates and im2col offsets.
            windows: (shared memory, (n,) offsets in it) for each CTA that takes part.
            op: the reduction, if it is one.
            writing: global memory is written.
        """
        self.geometry = geometry
        self.memory = memory
        self.coords = coords
        self.offsets = offsets
        self.op = op
        self.writing = writing
        self.rows = row_count(geometry, offsets[0] if len(offsets) else ())
        self.limit = max(1, PIECE_BYTES // max(1, self.rows * geometry.row_bytes))
        self.windows = [Windows(geometry, self.rows, smem, starts) for smem, starts in windows]
        self._blocks: blocks.Blocks | None = None
        self._blocked: NDArray[np.int64] | None = None
        """Indices of the instructions that go as blocks; None if all do."""
        self._general: NDArray[np.int64] | None = np.arange(len(coords))
        """Indices of the others; None if there are none."""
        self._kept: Rows | None = None
        self._scratch: NDArray[np.uint8] | None = None

    @property
    def transaction_bytes(self) -> int:
        """Bytes that one instruction completes."""
        return self.rows * self.geometry.row_bytes

    def walk(self, chosen: Chosen) -> Rows:
        """The rows of some of the instructions."""
        coords, mode = self.coords[chosen], self.geometry.mode
        if mode == "tile":
            return tile_rows(self.geometry, coords)
        if mode == "im2col":
            return im2col_rows(self.geometry, coords, self.offsets[chosen])
        if mode.startswith("im2col::w"):
            return wide_rows(self.geometry, coords, self.offsets[chosen])
        return four_rows(self.geometry, coords)

    # ---- checks ------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Every window lies in its shared memory, every byte of the tensor in a range of global memory.

        Raises:
            TmaTrap: CUDA_ERROR_ILLEGAL_ADDRESS.
        """
        for windows in self.windows:
            windows.check()
        if (
            self.geometry.mode == "tile"
            and self.op is None
            and not (self.writing and blocks.rows_overlap(self.geometry))
        ):
            self._blocks, held = blocks.find_blocks(self.geometry, self.memory, self.coords)
            if self._blocks is not None:
                transfer.require_writable(self._blocks.entry, self.writing)
                if held.all():
                    self._general = None
                    return
                self._general, self._blocked = np.flatnonzero(~held), np.flatnonzero(held)
        if self._general is None:
            return
        for start in range(0, len(self._general), self.limit):
            rows = self.walk(self._general[start : start + self.limit])
            transfer.require_inside(self.memory, rows, writing=self.writing)
            self._kept = rows if len(self.coords) == 1 else None

    def windows_overlap(self) -> bool:
        """Whether two instructions share bytes of shared memory."""
        return self.windows[0].overlap()

    # ---- pieces ------------------------------------------------------------------------------------------------

    def _stretch(self, indices: NDArray[np.int64], start: int, stop: int) -> tuple[int, int]:
        """Places in sorted `indices` of those in [start, stop)."""
        low, high = np.searchsorted(indices, (start, stop))
        return int(low), int(high)

    def _general_pieces(self, start: int, stop: int) -> Iterator[tuple[Chosen, int, Rows]]:
        """(which instructions, how many, their rows) in [start, stop) of those that don't go as blocks."""
        if self._general is None:
            return
        low, high = self._stretch(self._general, start, stop)
        for first in range(low, high, self.limit):
            chosen = self._general[first : min(first + self.limit, high)]
            yield chosen, len(chosen), self._kept or self.walk(chosen)

    def _block_pieces(self, start: int, stop: int) -> Iterator[tuple[Chosen, int, NDArray[np.uint8]]]:
        """(which instructions, how many, view of global memory) in [start, stop) of those that go as blocks."""
        if self._blocks is None:
            return
        if self._blocked is None:
            for low, high in self._blocks.runs(start, stop, self.limit):
                yield slice(low, high), high - low, self._blocks.view(low, high)
            return
        for low, high in self._blocks.runs(*self._stretch(self._blocked, start, stop), self.limit):
            yield self._blocked[low:high], high - low, self._blocks.view(low, high)

    def _buffer(self, n: int) -> NDArray[np.uint8]:
        """(n * R, row_bytes) bytes of scratch memory, the same at every call."""
        size = self.rows * self.geometry.row_bytes
        if self._scratch is None or len(self._scratch) < n * size:
            self._scratch = np.empty(n * size, np.uint8)
        return self._scratch[: n * size].reshape(-1, self.geometry.row_bytes)

    # ---- loads -------------------------------------------------------------------------------------------------

    def fill(self, start: int = 0, stop: int | None = None) -> None:
        """Load the instructions [start, stop)."""
        stop = len(self.coords) if stop is None else min(stop, len(self.coords))
        for chosen, n, rows in self._general_pieces(start, stop):
            data = transfer.load_rows(self.memory, self.geometry, rows)
            for windows in self.windows:
                windows.put(chosen, n, data)
        for chosen, n, view in self._block_pieces(start, stop):
            self._fill_block(chosen, n, view)

    def _fill_block(self, chosen: Chosen, n: int, view: NDArray[np.uint8]) -> None:
        axes, data = blocks.address_order(view), self._buffer(n)
        copied = view if axes is None else view.transpose(axes)
        data.reshape(copied.shape)[...] = copied
        if self.geometry.tf32:
            round_to_tf32(data)
        for windows in self.windows:
            found = None if axes is None else windows.stretch(chosen)
            if axes is not None and found is not None:
                order = blocks.block_order(view.shape, axes, found[1])[0]
                transfer.permute(data, order, found[0], found[1].unit)
                continue
            rows = data if axes is None else data.reshape(copied.shape).transpose(np.argsort(axes)).reshape(data.shape)
            windows.put(chosen, n, rows)

    # ---- stores and reductions ---------------------------------------------------------------------------------

    def drain(self, start: int = 0, stop: int | None = None) -> None:
        """Store or reduce the instructions [start, stop)."""
        stop = len(self.coords) if stop is None else min(stop, len(self.coords))
        windows = self.windows[0]
        for chosen, n, rows in self._general_pieces(start, stop):
            self._write(rows, windows.get(chosen, n, self._buffer(n)))
        for chosen, n, view in self._block_pieces(start, stop):
            axes = blocks.address_order(view)
            found = None if axes is None else windows.stretch(chosen)
            if axes is None or found is None:
                view[...] = windows.get(chosen, n, self._buffer(n)).reshape(view.shape)
                continue
            ordered, back = view.transpose(axes), blocks.block_order(view.shape, axes, found[1])[1]
            if ordered.flags.c_contiguous:
                transfer.permute(found[0], back, ordered, found[1].unit)
                continue
            data = self._buffer(n)
            transfer.permute(found[0], back, data, found[1].unit)
            ordered[...] = data.reshape(ordered.shape)

    def _write(self, rows: Rows, data: NDArray[np.uint8]) -> None:
        last = np.where(rows.last > 0, sixteen_byte_rule(self.geometry, rows.last), 0)
        for _, high, which in transfer.groups(np.zeros_like(last), last):
            chosen = np.flatnonzero((rows.inside & which[:, None]).reshape(-1))
            address, new = rows.address.reshape(-1)[chosen], np.ascontiguousarray(data[chosen, :high])
            if self.op is None:
                transfer.write_rows(self.memory, address, new)
            else:
                self._reduce(address, new, self.op)

    def _reduce(self, address: NDArray[np.int64], new: NDArray[np.uint8], op: str) -> None:
        """Reduce rows into memory; rows that share bytes go one after the other."""
        size = new.shape[1]
        gaps = np.diff(np.sort(address))
        pieces = [slice(None)] if (gaps >= size).all() else [slice(i, i + 1) for i in range(len(address))]
        for piece in pieces:
            where = address[piece]
            old = transfer.read_rows_padded(self.memory, where, size)
            transfer.write_rows(self.memory, where, reduced(old, new[piece], op, self.geometry.data_type))
