"""The part of a copy that a tile covers, and the order of the threads' walk through it, for any layout in shared
memory.

A tile covers the innermost modes of the source and of the destination, with extents that give both sides full lines.
Tiles that are shorter at the end of a mode form separate classes with separate tables. A table therefore lists exactly
the elements of its tiles, and threads do not test bounds.

Constants with the note "Measured on NVIDIA H200" are measured values. To measure one again, run `python -m
benchmarks.relayout` on a GPU with each value in turn, and compare the rows.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from cute_py.copies.modes import VECTORS, BorrowedRows, CopyMode, Refinement, RunMode
from cute_py.gpu.kernels.relayout import GRAIN, MAX_CLASSES, MAX_THREADS, WORD
from cute_py.targets import BANK_BYTES, MULTIPROCESSORS, SECTOR_BYTES, WARP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

Places: TypeAlias = "NDArray[np.int64]"

LINES: Final = (256, 128, 64, 32)
"""Bytes of a run of a tile, in the order of the attempts; the first value that leaves room for the other side
is used."""
OTHER_LINES: Final = ((64, 512), (256, 64), (512, 256), (512, 32), (256, 128), (128, 256), (128, 32))
"""Bytes of a run of the (destination, source), for other tiles of a copy of at least `STREAMED` bytes. Measured on
NVIDIA H200: of 25 pairs, no further one makes 445 copies faster on average."""
STREAMED: Final = 1 << 25
"""The source and the destination of a copy of at least this many bytes do not stay in L2."""
TILE_BYTES: Final = 32768
"""Maximum bytes of a tile."""
OTHER_TILE_BYTES: Final = 49152
"""Maximum bytes of a tile with `OTHER_LINES`."""
FILLED: Final = 8192
"""A tile grows to this number of bytes if the tensor is large enough; see `_may_halve`."""
HALVED: Final = 2, 4, 8
"""Element sizes, in bytes, where half of `FILLED` may be better: 1 to 5 % faster, while other elements lose up to 13 %.
Measured on NVIDIA H200, 37 copies whose tile has 4 KiB."""
BLOCKS: Final = MULTIPROCESSORS
"""Minimum number of tiles of a copy, so that every multiprocessor has work."""
QUICK: Final = 4096, 1024
"""Sufficient size of a tile of a copy in cache: bytes, or the fraction 1 / n of the copy. Measured on NVIDIA H200."""
CROWDED: Final = 14000
"""A tile of at least this number of bytes gets a block with the maximum number of threads if its words are narrow, or
under the conditions of `BlockTile.threads`."""
LARGE: Final = 9216
"""A block has 256 threads if its tile has more bytes than this. Measured on NVIDIA H200: with 256 threads, three tiles
of 8 KiB took 1.09 to 1.3 times as long."""
MANY: Final = 8
"""With this number of tiles along a mode, a last tile that ends early costs little."""
TOGETHER: Final = (4, 8)
"""Numbers of destination rows that adjacent threads may write together, where rows may start between two words and have
elements of 1 or 2 bytes. The columns of the source that become these rows are in different words or banks of shared
memory, 8 columns depending on `COLUMN_STEPS`; 32 vectors of one row would be in the same word of each 16 bytes, and
take at least four wavefronts. Measured on NVIDIA H200: with 4, 14 copies take 0.97 of the time on average, and with 8
instead, 31 copies take 0.74 to 1.13 of that time, 0.97 on average."""
COLUMN_STEPS: Final = (1, 2, 4)
"""Distances, in columns of the source, from one of 8 rows that are written together to the next."""


class Walk(NamedTuple):
    """The accesses of the first 2 warps to one side of a full tile.

    accesses: number of accesses of all threads. along: for each thread, the index of its vector in the row. digits: the
    thread's row as (mode, coordinate in elements). phases: for each thread, the number of elements from the start of a
    destination sector to the start of the row.
    """

    accesses: int
    along: Places
    digits: tuple[tuple[int, Places], ...]
    phases: Places


@dataclass(frozen=True)
class TileShape:
    """The extents of a tile, and the order and width of the accesses on both sides.

    modes: modes of the copy, in elements. extents: extents of a full tile, for each mode. orders: for (source,
    destination), the modes of a tile, innermost first. runs: for each order, the number of leading modes that form one
    contiguous run. vectors: bytes per thread access, for both sides. shifts: for each side, whether its rows may start
    between two words. columns: the number of elements of the source's first mode that a thread reads together; it
    writes the same number of rows. together: the number of destination rows that adjacent threads write. step: the
    distance, in columns of the source, from one of these rows to the next.
    """

    element: int
    modes: tuple[CopyMode, ...]
    extents: tuple[int, ...]
    orders: tuple[tuple[int, ...], tuple[int, ...]]
    runs: tuple[int, int]
    vectors: tuple[int, int]
    shifts: tuple[bool, bool]
    columns: int = 1
    together: int = 1
    step: int = 1

    @functools.cached_property
    def counts(self) -> tuple[int, ...]:
        """Number of tiles along each mode."""
        return tuple([-(-m.size // t) for m, t in zip(self.modes, self.extents, strict=True)])

    @functools.cached_property
    def elements(self) -> int:
        """Number of elements of a full tile."""
        return math.prod(self.extents)

    @functools.cached_property
    def copied(self) -> int:
        """Number of bytes that the copy moves."""
        return math.prod([m.size for m in self.modes]) * self.element

    @functools.cached_property
    def loose_ends(self) -> float:
        """The fraction of tiles whose destination rows end between two words and borrow no elements from the next tile,
        or begin there without a tile before them."""
        if not self.shifts[1]:
            return 0
        return 1 / self.counts[self.run_mode] if self.run_mode >= 0 else 1

    @functools.cached_property
    def torn_sectors(self) -> float:
        """Number of sectors of the destination that a full tile writes in part, on average."""
        if self.shifts[1]:
            return 2 * self.rows(0, 1) * self.columns * self.loose_ends
        number, grain = self._whole_runs(1, SECTOR_BYTES)
        return 2 * number * (1 - grain / SECTOR_BYTES)

    @functools.cached_property
    def unpaired_runs(self) -> float:
        """Number of runs of the source if they are not whole pairs of sectors, which memory reads together; 0 if rows
        may start between two words."""
        number, grain = self._whole_runs(0, 2 * SECTOR_BYTES)
        return 0 if self.shifts[0] or grain == 2 * SECTOR_BYTES else number

    def _whole_runs(self, side: int, limit: int) -> tuple[float, int]:
        """Return the number of contiguous runs of a full tile, which may have several adjacent rows, and the bytes that
        their size and their distances are multiples of, at most `limit`."""
        order, name = self.orders[side], ("source", "destination")[side]
        whole = _run(self.modes, self.extents, order, name)
        size = math.prod([self.extents[m] for m in order[:whole]])
        steps = [getattr(self.modes[m], name) for m in order[whole:]]
        tiles = zip(self.modes, self.extents, self.counts, strict=True)
        steps += [getattr(m, name) * t for m, t, n in tiles if n > 1]
        return self.elements / size, math.gcd(size * self.element, *[step * self.element for step in steps], limit)

    @functools.cached_property
    def unfilled(self) -> float:
        """The number of elements if all tiles were full, divided by the number of elements of the copy."""
        return math.prod([n * t / m.size for n, t, m in zip(self.counts, self.extents, self.modes, strict=True)])

    @functools.cached_property
    def run_mode(self) -> int:
        """The mode where a destination word may contain elements of the next tile; -1 if there is none.

        The elements of the next tile must be separate rows of the source, or the end of a source row that is read in
        full words.
        """
        if not self.shifts[1]:
            return -1
        last = self.orders[1][self.runs[1] - 1]
        if last not in self.orders[0][: self.runs[0]]:
            return last
        return last if self.shifts[0] and last == self.orders[0][self.runs[0] - 1] else -1

    @functools.cached_property
    def borrowed(self) -> int:
        """Number of elements that a destination row needs from the next tile, to complete the sector that it ends
        in."""
        return GRAIN // self.element - 1 if self.run_mode >= 0 else 0

    @functools.cached_property
    def halo(self) -> int:
        """Number of coordinates of `run_mode` that have borrowed elements."""
        before = math.prod([self.extents[m] for m in self.orders[1][: self.runs[1] - 1]])
        return -(-self.borrowed // before)

    @functools.cached_property
    def bits(self) -> tuple[int, ...]:
        """For each mode, the bit that is set in the class of its last tile; 0 if the last tile is like the other
        tiles."""
        found, bit = [], 1
        for index, (mode, t, count) in enumerate(zip(self.modes, self.extents, self.counts, strict=True)):
            own = mode.size % t != 0 or (index == self.run_mode and count > 1)
            found.append(bit if own else 0)
            bit <<= int(own)
        return tuple(found)

    @property
    def classes(self) -> range:
        """All class numbers; each combines the bits of `bits`."""
        return range(1 << sum(bit > 0 for bit in self.bits))

    def class_extents(self, combination: int) -> tuple[int, ...]:
        """Return the extents of the tiles of a class."""
        if not combination:
            return self.extents
        return tuple(
            (m.size - 1) % t + 1 if combination & bit else t
            for m, t, bit in zip(self.modes, self.extents, self.bits, strict=True)
        )

    def borrows(self, combination: int) -> bool:
        """Whether tiles of a class read elements of the next tile."""
        at = self.run_mode
        return at >= 0 and self.counts[at] > 1 and not combination & self.bits[at]

    def held_extents(self, combination: int) -> tuple[int, ...]:
        """Return the extent of each mode that tiles of a class read, in part or completely."""
        own = self.class_extents(combination)
        if not self.borrows(combination):
            return own
        return tuple([e + self.halo * (i == self.run_mode) for i, e in enumerate(own)])

    def held_run(self, combination: int) -> int:
        """Return the number of elements of a destination row that tiles of a class read."""
        return self.run(combination, 1) + self.borrowed * self.borrows(combination)

    def borrowed_rows(self, combination: int) -> BorrowedRows:
        """Return which rows of the source the tiles of a class read, by the modes of the destination's run; without
        modes if they read all rows of `held_extents`."""
        run, rows = self.orders[1][: self.runs[1]], self.orders[0][self.runs[0] :]
        if not self.borrows(combination) or self.run_mode not in rows or len(run) == 1:
            return BorrowedRows((), self.held_run(combination))
        extents, weight, found = self.held_extents(combination), 1, list[RunMode]()
        for m in run:
            if m in rows:
                found.append(RunMode(m, weight, extents[m]))
            weight *= extents[m]
        return BorrowedRows(tuple(reversed(found)), self.held_run(combination))

    @functools.cached_property
    def held(self) -> tuple[int, ...]:
        """The extent of each mode that a full tile reads."""
        return self.held_extents(0)

    def side_extents(self, combination: int, side: int) -> tuple[int, ...]:
        """Return the extent of each mode that tiles of a class read (side 0) or write (side 1)."""
        return self.class_extents(combination) if side else self.held_extents(combination)

    def run(self, combination: int, side: int) -> int:
        """Return the number of elements in a row."""
        extents = self.side_extents(combination, side)
        return math.prod([extents[m] for m in self.orders[side][: self.runs[side]]])

    def rows(self, combination: int, side: int) -> int:
        """Return the number of rows of a side."""
        extents, modes = self.side_extents(combination, side), self.orders[side][self.runs[side] :]
        if side == 1:
            return math.prod([extents[m] for m in modes]) // self.columns
        borrowed = self.borrowed_rows(combination)
        return borrowed.total * math.prod([extents[m] for m in modes if m not in borrowed.indices])

    def vectors_of(self, combination: int, side: int) -> int:
        """Return the number of vectors in a row; on a shifted side, one for each word that the row may touch."""
        size, width = self.run(combination, side) * self.element, self.vectors[side]
        if not self.shifts[side]:
            return size // width
        grain = GRAIN if side == 1 else width
        return -(-(size + grain - self.element) // grain) * (grain // width)

    @functools.cached_property
    def whole(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(rows, vectors per row) of a full tile, for the source and for the destination."""
        return (self.rows(0, 0), self.vectors_of(0, 0)), (self.rows(0, 1), self.vectors_of(0, 1))

    def row_digits(self, combination: int, side: int, number: Places) -> tuple[tuple[int, Places], ...]:
        """Return (mode, coordinates in elements) for the rows with these indices."""
        if side == 0 and (borrowed := self.borrowed_rows(combination)).modes:
            extents = self.held_extents(combination)
            every = self._digits(combination, 0, np.arange(math.prod([extents[m] for m in self.row_modes(0)])))
            kept = np.flatnonzero(borrowed.contains(dict(every)))
            number = kept[number]
        return self._digits(combination, side, number)

    def _digits(self, combination: int, side: int, number: Places) -> tuple[tuple[int, Places], ...]:
        """Return (mode, coordinates in elements) for rows with these indices among all rows of a box."""
        extents, found = self.side_extents(combination, side), []
        for m in self.row_modes(side):
            each = self.columns if side == 1 and m == self.orders[0][0] else 1
            digit = number % (extents[m] // each) * each
            if side == 1 and self.together > 1 and m == self.orders[0][0]:
                digit = _spread_columns(digit, extents[m], self.together, self.step)
            found.append((m, digit))
            number = number // (extents[m] // each)
        return tuple(found)

    def row_offsets(self, side: int, digits: Sequence[tuple[int, Places]], number: Places) -> Places:
        """Return the global byte offsets of the rows with these indices and coordinates."""
        offsets = number * 0
        for m, digit in digits:
            offsets += digit * ((self.modes[m].source, self.modes[m].destination)[side] * self.element)
        return offsets

    @functools.cached_property
    def walks(self) -> tuple[Walk, Walk]:
        """Walks of the first 2 warps of a full tile over the source and over the destination."""
        found = []
        for side, (rows, run) in enumerate(self.whole):
            threads = np.arange(min(rows * run, 2 * WARP), dtype=np.int64)
            together = self.together if side == 1 else 1
            turn = threads // together
            row = np.minimum(turn // run * together + threads % together, rows - 1)
            digits = self.row_digits(0, side, row)
            phases = row * 0
            if side == 1 and self.shifts[1]:
                phases = self.row_offsets(side, digits, row) % GRAIN // self.element
            found.append(Walk(rows * run, turn % run, digits, phases))
        return found[0], found[1]

    @functools.cached_property
    def threads(self) -> int:
        """Number of threads per block, unless `BlockTile.threads` has more."""
        size = self.elements * self.element
        if self.narrow and size >= CROWDED:  # measured: fewer tiles at a time are faster
            return MAX_THREADS
        work = size // min(self.vectors)
        return max(64, min(256 if size > LARGE else 128, -(-work // 64) * 64))

    @property
    def has_rows_apart(self) -> bool:
        """Whether destination rows that start between two words come from different words of the source's rows."""
        inner = self.orders[0][0]
        wide = self.shifts[1] and self.vectors[1] >= 8 and self.element < BANK_BYTES and self.columns == 1
        apart = inner in self.orders[1][self.runs[1] :] and self.extents[inner] * self.element >= WORD
        return wide and apart and self.runs[0] > 0

    @property
    def columns_in_run(self) -> int:
        """The number of modes of a destination run before the source's first mode, if that mode is in the run and
        another one is before it; else 0."""
        inner = self.orders[0][0]
        run = self.orders[1][: self.runs[1]]
        return run.index(inner) if inner in run and self.runs[0] and not any(self.shifts) else 0

    def with_columns_apart(self) -> TileShape:
        """Return the shape with a destination row for each column of the source, instead of longer rows."""
        run = math.prod([self.extents[m] for m in self.orders[1][: self.columns_in_run]]) * self.element
        width = next(w for w in widths_of(self.element) if w <= self.vectors[1] and run % w == 0)
        return replace(self, runs=(self.runs[0], self.columns_in_run), vectors=(self.vectors[0], width))

    def with_next_run(self) -> TileShape | None:
        """Return the shape with one coordinate of the mode that continues its destination rows, so that tiles complete
        their last sectors with elements of the next run; None if there is no such mode.

        Without it, rows that contain the whole of their modes end between two sectors in each tile.
        """
        run, size = self.orders[1][: self.runs[1]], self.run(0, 1)
        whole = all(self.counts[m] == 1 for m in run)
        if not self.shifts[1] or not whole or size < GRAIN // self.element:
            return None
        following = [i for i, m in enumerate(self.modes) if m.destination == size and self.extents[i] == 1 < m.size]
        if not following:
            return None
        inside, others = self.orders[0][: self.runs[0]], self.orders[0][self.runs[0] :]
        rows = sorted([following[0], *others], key=lambda m: abs(self.modes[m].source))
        written = *run, following[0], *self.orders[1][self.runs[1] :]
        return replace(self, orders=((*inside, *rows), written), runs=(self.runs[0], self.runs[1] + 1))

    def row_modes(self, side: int) -> list[int]:
        """Return the modes that the rows of a side count. If rows are written together, the source's first mode is
        the first."""
        found = list(self.orders[side][self.runs[side] :])
        if side == 1 and self.together > 1:
            found.sort(key=lambda m: m != self.orders[0][0])
        return found

    @property
    def narrow(self) -> bool:
        """Whether destination rows have one mode and are written in aligned words of less than 16 bytes."""
        return self.vectors[1] < WORD and not self.shifts[1] and self.runs[1] == 1

    @property
    def in_steps(self) -> bool:
        """Whether the rows of each side span a single mode, with strides that fit in 31 bits."""
        return _in_steps(self.orders, self.runs) and max(abs(self.row_step(0)), abs(self.row_step(1))) < 2**31

    def row_step(self, side: int) -> int:
        """Return the bytes from one row of a side to the next, if the rows span a single mode."""
        order, run = self.orders[side], self.runs[side]
        mode = self.modes[order[run]] if len(order) > run else CopyMode(1, 0, 0)
        return (mode.source, mode.destination)[side] * self.element * (self.columns if side == 1 else 1)

    @functools.cached_property
    def fits(self) -> bool:
        """Whether the kernel supports this number of classes, and the last tile contains all elements that the tile
        before it reads."""
        at = self.run_mode
        lent = at < 0 or _lending(self.modes[at].size, self.extents[at], self.halo) == self.extents[at]
        return lent and len(self.classes) <= MAX_CLASSES


def _spread_columns(number: Places, extent: int, together: int, step: int) -> Places:
    """Permute columns, so that `together` successive ones are `step` apart. The last columns, fewer than the product,
    keep their places.

    >>> [int(column) for column in _spread_columns(np.arange(18), 18, 4, 4)]
    [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 16, 17]
    """
    block = together * step
    within = number % block
    apart = number - within + within % together * step + within // together
    return np.where(number < extent // block * block, apart, number)


def _in_steps(orders: Sequence[Sequence[int]], runs: Sequence[int]) -> bool:
    """Whether the rows of each side span a single mode."""
    return all(len(order) - run <= 1 for order, run in zip(orders, runs, strict=True))


def _order(modes: Sequence[CopyMode], side: str) -> list[int]:
    """Return the modes of a side, the smallest stride first."""
    moving = [i for i, m in enumerate(modes) if getattr(m, side)]
    return sorted(moving, key=lambda i: abs(getattr(modes[i], side)))


def widths_of(element: int) -> tuple[int, ...]:
    """Return the possible bytes per thread access to a side, the widest first. There are few, because each pair needs
    its own kernel.

    >>> widths_of(1), widths_of(8)
    ((16, 8, 4, 1), (16, 8))
    """
    return tuple(w for w in VECTORS if w in (16, 8, 4, element) and w >= element)


def _even(size: int, wanted: int) -> int:
    """Return an extent of at least `wanted`: a power of two if few or no tiles are then short, else an extent that
    makes tiles equal."""
    wanted = 1 << max(wanted - 1, 0).bit_length()
    if size % wanted == 0 or size >= MANY * wanted:
        return wanted
    grain = min(size & -size, 32)
    each = -(-size // max(1, size // wanted))
    return -(-each // grain) * grain


def _grown(size: int, extent: int) -> int:
    """Return the next extent: twice as large, or the extent that gives half as many equal tiles.

    >>> _grown(1000, 32), _grown(129, 33), _grown(129, 65)
    (64, 65, 129)
    """
    if extent & (extent - 1) == 0:
        return _even(size, 2 * extent)
    grain = min(size & -size, 32)
    each = -(-size // max(1, -(-size // extent) // 2))
    return -(-each // grain) * grain


def choose_extents(modes: Sequence[CopyMode], element: int, least: int, filled: int) -> tuple[int, ...] | None:
    """Choose tile extents that give both sides runs of full lines; None if no tile gives both sides at least a sector.

    least: minimum bytes of a tile, even if there are then fewer than `BLOCKS` tiles. filled: the size in bytes that a
    tile grows to.
    """
    found = (_extents(modes, element, (line, line), TILE_BYTES, least, filled) for line in LINES)
    return next((extents for extents in found if extents), None)


def _extents(
    modes: Sequence[CopyMode], element: int, lines: tuple[int, int], most: int, least: int, filled: int
) -> tuple[int, ...] | None:
    """Return tile extents with runs of these bytes of the (destination, source), or None if the tile has more than
    `most` bytes; for the other arguments, see `choose_extents`."""
    orders = _order(modes, "destination"), _order(modes, "source")
    total = math.prod(m.size for m in modes) * element
    share = max(least, min(total // BLOCKS, max(QUICK[0], total // QUICK[1])))
    most, filled = min(most, share), min(filled, share)
    extents = [1] * len(modes)
    for order, line in zip(orders, lines, strict=True):
        run = element
        for m in order:
            if run >= line:
                break
            extents[m] = max(extents[m], _even(modes[m].size, -(-line // run)))
            run *= extents[m]
    if math.prod(extents) * element > most:
        return None
    for order in (*orders, *orders):
        for m in order:
            while extents[m] < modes[m].size:
                grown = _grown(modes[m].size, extents[m])
                if math.prod(extents) // extents[m] * grown * element > filled or grown <= extents[m]:
                    break
                extents[m] = grown
            if extents[m] < modes[m].size:
                break
    return tuple(extents)


def _run(modes: Sequence[CopyMode], extents: Sequence[int], order: Sequence[int], side: str) -> int:
    """Return the number of leading modes of an order that form one contiguous run of a tile."""
    step, count = 1, 0
    for m in order:
        if getattr(modes[m], side) != step:
            break
        count += 1
        step *= extents[m]
        if extents[m] != modes[m].size:
            break
    return count


def _vector(
    modes: Sequence[CopyMode],
    extents: Sequence[int],
    order: Sequence[int],
    run: int,
    side: str,
    element: int,
    limit: int,
) -> int:
    """Return the widest access, in bytes, such that every vector of every tile of a side is aligned to it."""
    if not run:
        return element
    first = order[0]
    for width in widths_of(element):
        per = width // element
        if width > limit:
            continue
        steps = [getattr(m, side) * t for m, t in zip(modes, extents, strict=True) if m.size > t]
        steps += [getattr(modes[m], side) for m in order[run:]]
        # A tile may end early in the run's last mode: the product of the modes before it must be a multiple of a
        # vector.
        last = order[run - 1]
        before = math.prod(extents[m] for m in order[: run - 1])
        sizes = [before * extents[last], before * ((modes[last].size - 1) % extents[last] + 1)]
        if all(n % per == 0 for n in (*steps, *sizes)) and (run > 1 or extents[first] % per == 0):
            return width
    return element


class _Filled(NamedTuple):
    """The extents of a tile, and for each side, its modes in order, the number of modes in a run, and the bytes per
    vector."""

    extents: tuple[int, ...]
    orders: list[list[int]]
    runs: list[int]
    vectors: list[int]

    def run_bytes(self, side: int, element: int) -> int:
        """Return the bytes of a run of the source (side 0) or the destination (side 1)."""
        return math.prod([self.extents[m] for m in self.orders[side][: self.runs[side]]]) * element


def _filled(
    modes: Sequence[CopyMode], element: int, limits: tuple[int, int], extents: tuple[int, ...] | None
) -> _Filled | None:
    """Return the tile with these extents; None without extents, or if a side does not move. limits: as in
    `tile_shapes`."""
    if extents is None:
        return None
    sides = "source", "destination"
    orders = [[i for i in _order(modes, side) if extents[i] > 1] for side in sides]
    if not all(orders):  # one element, or one for all
        return None
    runs = [_run(modes, extents, order, side) for order, side in zip(orders, sides, strict=True)]
    vectors = [
        _vector(modes, extents, order, run, side, element, limit)
        for order, run, side, limit in zip(orders, runs, sides, limits, strict=True)
    ]
    return _Filled(extents, orders, runs, vectors)


def _may_halve(tile: _Filled, element: int) -> bool:
    """Whether a tile of half of `FILLED` bytes is faster: it must have exactly that size, and rows with constant
    strides."""
    exact = math.prod(tile.extents) * element == FILLED // 2 and tile.vectors == [WORD, WORD]
    return exact and _in_steps(tile.orders, tile.runs)


def _shares_sectors(tile: _Filled, element: int) -> bool:
    """Whether destination rows are short and start at 4- or 8-byte words, so that neighbouring tiles write parts of the
    same sectors. Larger tiles are then 1.0 to 1.5 times as fast (measured on NVIDIA H200, seven permutations)."""
    return tile.vectors[1] in (4, 8) and tile.run_bytes(1, element) < LINES[0]


def tile_shapes(
    refinement: Refinement, element: int, limits: tuple[int, int], least: int, *, others: bool = False
) -> Iterator[tuple[TileShape, int]]:
    """Yield shapes of tiles for a copy, with one set of extents and several vectors; others: with the extents of
    `OTHER_LINES` instead.

    Each shape comes with an alignment in bytes: all rows of the source start at multiples of it. limits: maximum bytes
    of an access to each side. least: as in `choose_extents`.
    """
    modes = refinement.modes
    if others:
        found = [_extents(modes, element, lines, OTHER_TILE_BYTES, least, FILLED) for lines in OTHER_LINES]
        tiles = [_filled(modes, element, limits, extents) for extents in dict.fromkeys(found)]
    else:
        tiles = [_chosen(modes, element, limits, least)]
    for tile in tiles:
        if tile is not None:
            yield from _shapes(refinement, element, limits, tile)


def _chosen(modes: Sequence[CopyMode], element: int, limits: tuple[int, int], least: int) -> _Filled | None:
    """Return the tile with the extents of `choose_extents`."""

    def filled(size: int) -> _Filled | None:
        return _filled(modes, element, limits, choose_extents(modes, element, least, size))

    halved = filled(FILLED // 2) if element in HALVED else None
    chosen = halved if halved and _may_halve(halved, element) else filled(FILLED)
    if chosen is None or not _shares_sectors(chosen, element):
        return chosen
    return filled(TILE_BYTES) or chosen


def _shapes(
    refinement: Refinement, element: int, limits: tuple[int, int], tile: _Filled
) -> Iterator[tuple[TileShape, int]]:
    """Yield shapes of a tile with several vectors; see `tile_shapes`."""
    modes = refinement.modes
    extents, orders, runs, found = tile
    plain = [not s.bits for s in refinement.swizzles]
    words: list[list[tuple[bool, int]]] = []
    for i, width in enumerate(found):
        shifted = width < WORD and runs[i] > 0 and tile.run_bytes(i, element) >= 32 and plain[i]
        if shifted and i == 1:  # widest first: usually the best, it ends the count of others early
            cheap = width < 4, max(width, 4)
            others = [(True, word) for word in (WORD, 8, 4) if word > max(width, element)]
            words.append([*(other for other in others if other != cheap), cheap])
        else:
            words.append([(True, WORD)] if shifted else [(False, width)])
    inner = orders[0][0]
    apart = [m.source * element for i, m in enumerate(modes) if i != inner] + [extents[inner] * element]
    grain = math.gcd(limits[0], *apart) if modes[inner].source == 1 else element
    for (first, width), (second, across) in itertools.product(*words):
        shape = TileShape(
            element,
            modes,
            extents,
            (tuple(orders[0]), tuple(orders[1])),
            (runs[0], runs[1]),
            (width, across),
            (first, second),
        )
        at = shape.run_mode
        if at >= 0:
            own = _lending(modes[at].size, extents[at], shape.halo)
            if not own:
                continue
            shape = replace(shape, extents=tuple(own if i == at else t for i, t in enumerate(extents)))
        yield shape, grain
        if shape.columns_in_run:
            yield shape.with_columns_apart(), grain
        if next_run := shape.with_next_run():
            yield next_run, grain


def _lending(size: int, extent: int, halo: int) -> int:
    """Return the largest extent, at most this one, whose last tile contains the elements that the previous tile reads;
    0 if there is none.

    >>> _lending(100, 32, 7), _lending(128, 32, 7), _lending(96, 16, 31)
    (31, 32, 0)
    """
    while extent < size and (size - 1) % extent + 1 < halo:
        extent -= 1
        if extent < halo:
            return 0
    return extent
