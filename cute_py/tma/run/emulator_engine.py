"""n instructions of one descriptor at once: check everything, then move everything.

`Batch.check` must have passed before anything moves, so that a trap leaves memory as it was. `fill` then loads a
stretch of the instructions, `drain` stores or reduces one. Work goes in pieces of about two megabytes, which stay in
cache and keep the memory in use small beside the tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from cute_py.tma.run import emulator_blocks as blocks
from cute_py.tma.run import emulator_transfer as transfer
from cute_py.tma.run.emulator_box import four_rows, tile_rows
from cute_py.tma.run.emulator_formats import round_to_tf32
from cute_py.tma.run.emulator_im2col import im2col_rows, row_count, wide_rows
from cute_py.tma.run.emulator_reduce import reduced
from cute_py.tma.run.emulator_rows import Rows, sixteen_byte_rule
from cute_py.tma.run.emulator_windows import Chosen, Windows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cute_py.tma.run.emulator_geometry import Geometry
    from cute_py.tma.run.memory import GlobalMemory, SharedMemory

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
