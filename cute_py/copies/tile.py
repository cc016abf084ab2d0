"""Tiles that threads transpose in shared memory: the offsets of their elements, and the choice of the cheapest tile.

The elements are in the source's order. Mode m has a stride of `pitches[m]` bytes, and one swizzle applies to all
offsets.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cute_py.copies.modes import IDENTITY, Refinement
from cute_py.copies.shared_layout import best_swizzle, counted_wavefronts
from cute_py.copies.tile_shape import (
    COLUMN_STEPS,
    CROWDED,
    FILLED,
    STREAMED,
    TOGETHER,
    Places,
    TileShape,
    tile_shapes,
    widths_of,
)
from cute_py.gpu.kernels.relayout import ASYNCHRONOUS, MAX_THREADS, WORD
from cute_py.layout.swizzle import Swizzle
from cute_py.targets import (
    BANK_BYTES,
    LINE_BYTES,
    RESERVED_SHARED_BYTES,
    SECTOR_BYTES,
    SM_SHARED_BYTES,
    SM_THREADS,
    WARP,
)

if TYPE_CHECKING:
    import numpy as np
else:
    from cute_py.optional_packages import numpy as np

LEAST: Final = (1024, FILLED)
"""Minimum tile sizes in bytes; the first size that gives a tile is used."""
COLUMN_BYTES: Final = {1: 4, 2: 8, 4: 16, 8: 16}
"""Element bytes -> bytes of a row in shared memory that a thread transposes in one step."""
FOLDED: Final = 1 << 20
"""Minimum bytes of a copy that makes a kernel with a compiled-in pitch worthwhile."""
MAX_SHARED: Final = 65536
"""Maximum bytes of shared memory of a block."""
TORN: Final = 10
"""Cycles per sector of the destination that a tile writes in part."""
HELD: Final = 0.04
"""Cycles per element of 1 byte if rows of the source are whole words that go through registers, and rows of the
destination may start between two words. Measured on NVIDIA H200: without it, 187 such tiles take 1.1 times as long as
estimated, and 136 tiles that are copied without registers do not."""
ROWS: Final = (3, 1.2)
"""Cycles per row of the (source, destination) of a tile."""
UNPAIRED: Final = 1
"""Cycles per run of the source that is not in pairs of sectors. Measured on NVIDIA H200: 39 copies whose tile changes
take 0.97 of the time with it."""
ALONE: Final = 0.17
"""Cycles per byte if a multiprocessor has one block at a time; n blocks take 1 / n of them."""
MEMORY: Final = 0.76
"""Time of a copy without the costs that tiles differ in, relative to a memcpy."""
GAIN: Final = 0.97
"""Maximum time with other extents, relative to that with the usual ones. Measured on NVIDIA H200, 607 copies: the mean
is 89.1 % of a memcpy with 0.97, 89.0 % with 0.94 or 1."""
REGULAR_GAIN: Final = 0.96
"""`GAIN` of 8 rows together instead of one, if threads compute the offsets of rows. Measured on NVIDIA H200: of 4
copies between this value and `GAIN`, which take 1.01 to 1.1 of the time, none gains."""
BUSY: Final = 3.1
"""Time of a copy, relative to a memcpy, per cycle and byte of the cost of its tile."""
SPLIT: Final = {LINE_BYTES: 0, SECTOR_BYTES: 1, WORD: 3}
"""Modulus, in bytes, of the offset that the rows of a shifted source keep -> cycles per line for requests of parts of
it."""
OCCUPIED: Final = 2
"""Cycles per line of shared memory that a tile of a shifted source takes, because fewer blocks then run at a time."""
LOOKUP: Final = 10
"""Number of instructions of a table lookup of a row."""
RESIDENT: Final = 6
"""If at least this number of blocks fits in the shared memory of a multiprocessor, a block with a large tile gets the
maximum number of threads, so that at most 4 blocks run there."""
IDLE: Final = 1 / 8
"""Maximum fraction of a block's threads that may stay idle to keep each thread in its column."""


@dataclass(frozen=True)
class BlockTile:
    """A tile in shared memory.

    pitches: stride in bytes in shared memory, for each mode; 0 if the mode is not in the tile. piece, unit: bytes per
    thread of a write and of a read of shared memory. swizzle: swizzle of byte offsets in shared memory. skew: extra
    bytes, in addition to the pitch, between successive vectors of the destination's first mode. listed: whether the
    offsets of a destination vector's units have no fixed distances.
    """

    shape: TileShape
    pitches: tuple[int, ...]
    piece: int
    unit: int
    swizzle: Swizzle
    skew: int
    listed: bool

    def places(self, mode: int, digit: Places) -> Places:
        """Return the byte offsets that coordinates of one mode add, including the skew in the destination's first
        mode."""
        found = digit * self.pitches[mode]
        if self.skew and mode == self.shape.orders[1][0]:
            found += digit // (self.shape.vectors[1] // self.shape.element) * self.skew
        return found

    @functools.cached_property
    def shared_bytes(self) -> int:
        """Bytes of shared memory per block, a multiple of the swizzle's period."""
        shape = self.shape
        borrowed = shape.borrowed_rows(0)
        reach = sum([(shape.held[m] - 1) * self.pitches[m] for m in shape.orders[0] if m not in borrowed.indices])
        reach += borrowed.reach(self.pitches) + shape.element
        reach += (WORD + LINE_BYTES) * shape.shifts[0]
        if self.skew:
            reach += (shape.held[shape.orders[1][0]] - 1) // (shape.vectors[1] // shape.element) * self.skew
        grain = max(16, 1 << self.swizzle.bits + self.swizzle.base + self.swizzle.shift if self.swizzle.bits else 1)
        return -(-reach // grain) * grain

    @property
    def fits(self) -> bool:
        """Whether the kernel supports the shape, and a block may have this much shared memory."""
        return self.shape.fits and self.shared_bytes <= MAX_SHARED

    @property
    def congruent(self) -> int:
        """The largest modulus in `SPLIT` that lets rows keep their offset in shared memory."""
        shape = self.shape
        apart = [shape.modes[m].source * shape.element - self.pitches[m] for m in shape.orders[0][shape.runs[0] :]]
        return next(modulus for modulus in SPLIT if modulus == WORD or not any(n % modulus for n in apart))

    @property
    def has_regular_rows(self) -> bool:
        """Whether the rows of both sides have constant strides in global and shared memory, so that threads may compute
        where they are: the rows of each side span a single mode, and have no skew.

        Blocks that have the maximum number of threads because words are narrow use a table, and so do those that write
        4 rows together. If threads compute these rows instead, 19 copies take 1.01 of the time on average, and up to
        1.16 (NVIDIA H200).
        """
        looked_up = self.shape.together == TOGETHER[0] or self.shape.threads == MAX_THREADS
        return self.shape.in_steps and not self.skew and not looked_up

    @property
    def threads(self) -> int:
        """Number of threads per block.

        If threads compute where rows are, rows of the source start between two words, and the tile is large, a block
        has the maximum number of threads. Fewer tiles are then in flight. Measured on NVIDIA H200, 100 copies: 0.83 to
        1.04 of the time with 256 threads, 0.97 on average.
        """
        shape = self.shape
        resident = SM_SHARED_BYTES // (self.shared_bytes + RESERVED_SHARED_BYTES)
        large = shape.elements * shape.element >= CROWDED and resident >= RESIDENT
        many = self.has_regular_rows and shape.shifts[0] and not self.listed and not shape.narrow and large
        return MAX_THREADS if many else shape.threads

    @property
    def steady(self) -> bool:
        """Whether each thread accesses only one column of vectors on both sides."""
        shared = (self.threads, self.threads // self.shape.together)
        return all(n % vectors <= n * IDLE for n, (_, vectors) in zip(shared, self.shape.whole, strict=True))

    @property
    def passes(self) -> int:
        """The number of vectors of the source that each thread loads, at most."""
        rows, vectors = self.shape.whole[0]
        if self.steady:
            return -(-rows // (self.threads // vectors))
        return -(-rows * vectors // self.threads)

    @property
    def affine(self) -> bool:
        """Whether threads compute the offsets of rows from constant strides instead of a table.

        Tiles that are not `steady` use the table if their rows are narrow and not multiples of a sector, because it is
        then up to 20 % faster; for others, see `has_regular_rows`.
        """
        shape = self.shape
        apart = not shape.narrow or shape.run(0, 1) * shape.element % SECTOR_BYTES == 0
        return self.has_regular_rows and (self.steady or apart)

    def row_pitch(self, side: int) -> int:
        """Return the bytes from one row to the next in shared memory, if the rows span a single mode."""
        order, run = self.shape.orders[side], self.shape.runs[side]
        return self.pitches[order[run]] * (self.shape.columns if side == 1 else 1) if len(order) > run else 0

    def shared_mode(self, mode: int) -> tuple[int | tuple[int, int], int | tuple[int, int]]:
        """Return shape and stride, in elements, of a mode in shared memory; a skew rounds its extent up to full
        vectors."""
        shape = self.shape
        extent, pitch = shape.extents[mode], self.pitches[mode] // shape.element
        if not self.skew or mode != shape.orders[1][0]:
            return extent, pitch
        each = shape.vectors[1] // shape.element
        return (each, -(-extent // each)), (pitch, each * pitch + self.skew // shape.element)

    @property
    def unit_pitch(self) -> int:
        """The distance in bytes between units of a destination vector along the destination's first mode."""
        return self.pitches[self.shape.orders[1][0]] * self.unit // self.shape.element

    @property
    def folded_pitch(self) -> int:
        """The distance in bytes between elements of a destination vector, if it is the same everywhere; else 0."""
        pitch, per = self.pitches[self.shape.orders[1][0]], self.shape.vectors[1] // self.unit
        if per == 1 or self.swizzle.bits or self.shape.copied < FOLDED:
            return 0
        if self.shape.shifts[1] or self.run_size:
            return self.unit_pitch
        return pitch if not self.listed and spread_of(self) == tuple([pitch * v for v in range(per)]) else 0

    @property
    def run_size(self) -> int:
        """The number of units in each run of a listed destination row if a table has the start of each run; 0 if it has
        the offset of each unit, as for runs of one unit.

        If rows start at words, threads compute offsets from the starts only for vectors of at most two runs. Measured
        on NVIDIA H200, 36 copies: these take 0.76 to 1.14 of the time with a list, 0.97 on average, and those of three
        or four runs 1.05 to 1.2.
        """
        shape, per = self.shape, self.shape.vectors[1] // self.unit
        size = shape.extents[shape.orders[1][0]] * shape.element // self.unit
        return size if self.listed and shape.columns == 1 and size > 1 and (shape.shifts[1] or size >= per - 1) else 0

    @property
    def runs_per_vector(self) -> int:
        """The maximum number of runs of `run_size` units that a vector of the destination has units of; 0 if a list has
        each unit."""
        size, per = self.run_size, self.shape.vectors[1] // self.unit
        return 1 + -(-(per - 1) // size) if size else 0

    def rows(self, combination: int, side: int) -> tuple[Places, Places]:
        """Return (global byte offsets, shared-memory offsets) of a tile's rows, for the source (side 0) or the
        destination (side 1)."""
        number = np.arange(self.shape.rows(combination, side), dtype=np.int64)
        digits = self.shape.row_digits(combination, side, number)
        places = sum([self.places(m, digit) for m, digit in digits], number * 0)
        return self.shape.row_offsets(side, digits, number), places

    def along(self, combination: int) -> Places:
        """Return the shared-memory offsets of the units of a destination row, before the swizzle."""
        extents = self.shape.held_extents(combination)
        places = np.zeros(1, np.int64)
        for m in self.shape.orders[1][: self.shape.runs[1]]:
            digit = np.arange(extents[m], dtype=np.int64)
            places = (self.places(m, digit)[:, None] + places).ravel()
        return places[: self.shape.held_run(combination) : self.unit // self.shape.element]

    def swizzled(self, places: Places) -> Places:
        """Return shared-memory offsets after the swizzle."""
        return self.swizzle(places) if self.swizzle.bits else places

    @functools.cached_property
    def read_wavefronts(self) -> int:
        """Wavefronts of the reader of a full tile, extrapolated from its first 2 warps."""
        return self._counted(1)

    @functools.cached_property
    def wavefronts(self) -> tuple[int, int]:
        """(wavefronts of the writer, wavefronts of the reader) of a full tile."""
        return self._counted(0), self.read_wavefronts

    def _counted(self, side: int) -> int:
        shape, walk = self.shape, self.shape.walks[side]
        places = sum([self.places(m, digit) for m, digit in walk.digits], walk.phases * 0)
        if side == 0:
            width = self.piece
            start = places // width * width if shape.shifts[0] else places
            at = start + walk.along * shape.vectors[0] + np.arange(0, shape.vectors[0], width)[:, None]
        else:
            width, per = self.unit * shape.columns, shape.vectors[1] // self.unit
            listed = self.along(0)
            number = walk.along * per + np.arange(per)[:, None]
            if shape.shifts[1]:
                number = np.minimum(np.maximum(number - walk.phases, 0), len(listed) - 1)
            at = places + listed[number]
        counted = counted_wavefronts(self.swizzled(at), width)
        return max(1, round(counted * walk.accesses / max(len(places), 1)))


def _columns(shape: TileShape, grain: int) -> int:
    """Return the number of elements that a thread may read together along the source's first mode; rows start at
    multiples of `grain` bytes."""
    columns, inner = COLUMN_BYTES.get(shape.element, 0) // shape.element, shape.orders[0][0]
    if columns < 2 or any(shape.shifts[1:]) or inner in shape.orders[1][: max(shape.runs[1], 1)]:
        return 1
    whole = not any(n % columns for n in (shape.extents[inner], shape.modes[inner].size))
    fits = whole and shape.runs[0] > 0 and grain % (columns * shape.element) == 0 and shape.vectors[1] >= 4
    return columns if fits else 1


def placings(shape: TileShape, grain: int) -> Iterator[tuple[TileShape, Iterable[BlockTile]]]:
    """Yield shapes, each with an iterator that makes its tiles on demand.

    If a thread can read several columns, it yields one such shape; otherwise one for each of several widths of the
    destination's vectors. Rows of the source start at multiples of `grain` bytes.
    """
    columns = _columns(shape, grain)
    if columns > 1:
        several, word = replace(shape, columns=columns), columns * shape.element
        found = [
            tile
            for tile in _placed(several)
            if not any(n % word for n in (*(tile.pitches[m] for m in shape.orders[0][1:]), tile.skew))
            and not (tile.swizzle.bits and 1 << tile.swizzle.base < word)
        ]
        if found:
            yield several, found
            return
    across = shape.vectors[1]
    for width in widths_of(shape.element) if not shape.shifts[1] else (across,):
        if width <= across <= 4 * width:
            narrower = shape if width == across else replace(shape, vectors=(shape.vectors[0], width))
            yield narrower, _placed(narrower)


def _placed(shape: TileShape) -> Iterator[BlockTile]:
    """Yield tiles of a shape: with a swizzle, or with several row pitches.

    A tile with a swizzle has extents that are powers of two; for elements of at most 4 bytes, the outermost extent may
    be any number. If destination vectors extend over two runs, only tiles of bytes have a skew. Measured on NVIDIA
    H200: wider elements do not gain, and two copies of bytes whose columns were in few banks take 0.42 and 0.63 of the
    time with it.
    """
    element, extents, order, run = shape.element, shape.extents, shape.orders[0], shape.runs[0]
    odd = tuple([m for m in order if extents[m] & (extents[m] - 1)])
    if (not odd or (odd == order[-1:] and element <= BANK_BYTES)) and not any(shape.shifts):
        yield _with_swizzle(shape)
        if not odd:
            return
    if shape.shifts[0]:
        yield from _with_rows(shape, 0, congruent=LINE_BYTES)
        for pad in (0, SECTOR_BYTES, 2 * SECTOR_BYTES):
            yield from _with_rows(shape, pad, congruent=SECTOR_BYTES)
    pads = (0, 16, 32) if shape.shifts[0] else {element * -(-pad // element) for pad in (0, 4, 8, 16, 32)}
    for pad in sorted(pads):
        yield from _with_rows(shape, pad)
    # Rows are cut at the first mode, or before the destination's first mode, to pad them or to set them apart.
    first = shape.orders[1][0]
    before = order.index(first) if first in order[:run] else run
    cuts = {
        count: replace(shape, runs=(count, shape.runs[1]))
        for count in (1, before)
        if 0 < count < run and math.prod(extents[m] for m in order[:count]) * element % shape.vectors[0] == 0
    }
    whole = shape.shifts[1] or extents[first] * element % shape.vectors[1] == 0
    apart = {**cuts, run: shape}.get(before)
    moves = first in order  # with a stride of 0, all elements of the mode have the place of the first one
    if apart is not None and moves and (whole or element == 1) and shape.vectors[1] > element:
        for skew in sorted({WORD} if any(shape.shifts) else {max(element, 4), max(element, 16)}):
            yield from _with_rows(apart, 0, skew)
    for short in list(cuts.values())[:1]:
        for pad in sorted(set(pads) - {0}):
            yield from _with_rows(short, pad)


def _with_swizzle(shape: TileShape) -> BlockTile:
    """Return the tile in the source's order with the best swizzle; all extents but the last are powers of two."""
    pitches, step = [0] * len(shape.modes), shape.element
    for m in shape.orders[0]:
        pitches[m] = step
        step *= shape.extents[m]

    def access(order: Sequence[int], width: int, columns: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        steps = [pitches[m] << k for m in order for k in range(shape.extents[m].bit_length() - 1)]
        across = [shape.element << k for k in range(columns.bit_length() - 1)]
        steps = across + [step for step in steps if step not in across]
        values = (width // shape.element).bit_length() - 1 + len(across)
        return tuple(steps[values:]), tuple(steps[:values])

    sides = (
        access(shape.orders[0], shape.vectors[0], 1),
        access(shape.orders[1], shape.vectors[1], shape.columns),
    )
    swizzle, _, _ = best_swizzle(step.bit_length() - 1, shape.element, *sides, positive=True)
    return _finished(shape, pitches, swizzle, 0)


def _with_rows(shape: TileShape, pad: int, skew: int = 0, congruent: int = WORD) -> Iterator[BlockTile]:
    """Yield tiles with padded rows; for a shifted source, the pitches are congruent to the source's strides modulo
    `congruent` bytes.

    Rows are in the order of the source. If the tile reads a part of the next tile's rows, a second tile has the modes
    of the destination's run first, so that the rows that are not read take no memory.
    """
    order = list(shape.orders[0])
    yield _in_order(shape, order, pad, skew, congruent)
    inside, run = order[: shape.runs[0]], shape.borrowed_rows(0).indices[::-1]
    compact = [*inside, *run, *(m for m in order[shape.runs[0] :] if m not in run)]
    if compact != order:
        yield _in_order(shape, compact, pad, skew, congruent)


def _in_order(shape: TileShape, order: Sequence[int], pad: int, skew: int, congruent: int) -> BlockTile:
    """Return the tile whose shared memory has the modes in this order, the innermost first."""
    pitches, step, borrowed = [0] * len(shape.modes), shape.element, shape.borrowed_rows(0)
    first, run = shape.orders[1][0], {*borrowed.indices}
    skews = -(-shape.held[first] * shape.element // shape.vectors[1]) * skew
    for place, m in enumerate(order):
        if place == shape.runs[0]:
            grain = shape.vectors[0]
            step = -(-step // grain) * grain + pad + (2 * WORD if shape.shifts[0] else 0)
        if place >= shape.runs[0] and shape.shifts[0]:
            step += (shape.modes[m].source * shape.element - step) % congruent
        pitches[m] = step
        step *= shape.held[m]
        if run and {*order[shape.runs[0] : place + 1]} == run:
            step = borrowed.reach(pitches) + pitches[order[shape.runs[0]]] + skews * (first in run)
        elif m == first:
            step += skews
    return _finished(shape, pitches, IDENTITY, skew)


def _finished(shape: TileShape, pitches: Sequence[int], swizzle: Swizzle, skew: int) -> BlockTile:
    """Return the tile with these pitches, and with the widest accesses to shared memory that they permit."""
    element = shape.element
    grain = 1 << swizzle.base  # 16 bytes even without a swizzle
    apart = [*(pitches[m] for m in shape.orders[0][shape.runs[0] :]), skew]
    piece = shape.vectors[0]
    while not shape.shifts[0] and piece > element and (piece > grain or any(p % piece for p in apart)):
        piece //= 2
    unit = element
    first = shape.orders[1][0]
    others = [*(pitches[m] for m in shape.orders[1][1:]), skew]
    sizes = (shape.extents[first], shape.modes[first].size)
    while (
        not any(shape.shifts)
        and shape.columns == 1
        and 2 * unit <= min(shape.vectors[1], grain)
        and pitches[first] == element
        and not any(p % (2 * unit) for p in others)
        and not any(n * element % (2 * unit) for n in sizes)
    ):
        unit *= 2
    piece, unit = (max(w for w in widths_of(element) if w <= have) for have in (piece, unit))
    listed = shape.shifts[1] and shape.runs[1] > 1
    made = BlockTile(shape, tuple(pitches), piece, unit, swizzle, skew, listed)
    return made if spread_of(made) is not None else replace(made, listed=True)


def spread_of(tile: BlockTile) -> tuple[int, ...] | None:
    """Return the distances of a destination vector's units from its first unit, if they are the same for all
    vectors."""
    shape = tile.shape
    per, first, each = shape.vectors[1] // tile.unit, shape.orders[1][0], shape.vectors[1] // shape.element
    within = [v * tile.unit // shape.element * tile.pitches[first] for v in range(per)]
    if shape.shifts[1] or not any(n % each for n in (shape.extents[first], shape.modes[first].size)):
        return tuple([tile.swizzle.of(place) for place in within])
    if not tile.swizzle.bits and not tile.skew:
        start = [0]
        for m in shape.orders[1][: shape.runs[1]]:
            digits = range(min(shape.extents[m], -(-2 * each // len(start))))
            start = [place + n * tile.pitches[m] for n in digits for place in start]
        if any(b - a != start[each] for a, b in zip(start[:each], start[each : 2 * each], strict=False)):
            return None  # usually the first two vectors already differ
    found = None
    for combination in shape.classes:
        places = tile.swizzled(tile.along(combination))
        apart = places.reshape(-1, per)
        apart = apart ^ apart[:, :1] if tile.swizzle.bits else apart - apart[:, :1]
        if (apart != apart[:1]).any() or (found is not None and (apart[0] != found).any()):
            return None
        found = apart[0]
    return None if found is None else tuple([int(v) for v in found])


def _overlapped(issued: float, wavefronts: float) -> float:
    return max(issued, wavefronts) + min(issued, wavefronts) / 2


def _issued(shape: TileShape, piece: int, unit: int, lookup: int, more: int, loose: float) -> float:
    """Return the number of cycles that it takes to issue the instructions of a tile.

    lookup: instructions for each row. more: instructions for each unit of a destination vector. loose: `loose_ends`;
    there, threads write a part of a word.
    """
    element, per = shape.element, shape.vectors[1] // unit
    (held, across), (rows, along) = shape.whole
    chunks, groups = held * across / WARP, rows * along / WARP
    through = piece == shape.vectors[0] >= ASYNCHRONOUS
    loads = chunks * (20 + lookup + (0 if through else 6 + 2 * shape.vectors[0] / piece))
    if shape.columns > 1:
        taken = per + {1: 2 * per, 2: per * shape.columns / 2}.get(element, 0) + 4 * shape.columns
    else:
        taken = per * (1 + {1: 0.75, 2: 0.5}.get(unit, 0) + more) + 4
    stores = groups * (26 + lookup + taken)
    stores += 2.5 * rows * per * loose
    return (loads + stores) / 4


def least_cost(shape: TileShape) -> float:
    """Return a lower bound of `copy_cost` for all tiles of a shape, up to the rounding of their wavefronts."""
    inner = shape.orders[0][0] == shape.orders[1][0] and not any(shape.shifts)
    unit = shape.vectors[1] if inner else shape.element
    apart = int(shape.copied < FOLDED and unit < shape.vectors[1])
    borrows = shape.run_mode < 0 and shape.runs[0] > 1  # perhaps, with shorter runs
    freer = replace(shape, runs=(1, shape.runs[1])) if borrows else shape
    issued = _issued(shape, shape.vectors[0], unit, 0 if shape.in_steps else LOOKUP, apart, freer.loose_ends)
    size = shape.elements * shape.element
    cycles = _overlapped(issued, 3 * size / LINE_BYTES) + TORN * freer.torn_sectors + _row_cycles(shape)
    return cycles / shape.elements * shape.unfilled + _alone(shape)


def _alone(shape: TileShape) -> float:
    """Return the cost per element that few blocks per multiprocessor have, because their loads and stores overlap less.

    It was fitted to blocks of at most 256 threads, unless words are narrow.
    """
    memory = shape.elements * shape.element + RESERVED_SHARED_BYTES
    return ALONE * shape.element / max(1, min(SM_SHARED_BYTES // memory, SM_THREADS // shape.threads))


def _row_cycles(shape: TileShape) -> float:
    """Return the cycles of a tile for its rows."""
    return ROWS[0] * shape.rows(0, 0) + UNPAIRED * shape.unpaired_runs + ROWS[1] * shape.rows(0, 1) * shape.columns


def tile_cost(tile: BlockTile, bound: float = math.inf) -> float:
    """Return the cost per element in SM clock cycles: four instructions, or two wavefronts, take one cycle.

    The cost is the larger of the two times plus half of the smaller, because they overlap. The number of instructions
    per vector was counted in machine code. The rate of wavefronts was chosen so that the cheapest tile is close to the
    fastest (measured on NVIDIA H200, 979 tiles of 29 copies: 95 % of the speed of the fastest tile on average). If a
    tile costs more than `bound` even without its wavefronts, they are not counted.
    """
    shape = tile.shape
    apart = int(shape.vectors[1] > tile.unit and not tile.folded_pitch)
    if tile.run_size:  # each element of the vector looks up its run
        apart += {2: 2, 3: 3}.get(tile.runs_per_vector, 12)
    apart += (tile.listed and not tile.run_size) + 2 * bool(tile.skew and shape.shifts[1])
    issued = _issued(shape, tile.piece, tile.unit, 0 if tile.affine else LOOKUP, apart, shape.loose_ends)
    lines, most = shape.elements * shape.element / LINE_BYTES, bound * shape.elements
    if _overlapped(issued, 3 * lines) > most:
        return math.inf
    held, across = shape.whole[0]
    written = round(held * across * shape.vectors[0] / LINE_BYTES)  # at least
    if _overlapped(issued, (written + tile.read_wavefronts) / 2 + 2 * lines) > most:
        return math.inf
    return _overlapped(issued, sum(tile.wavefronts) / 2 + 2 * lines) / shape.elements


def request_cost(tile: BlockTile) -> float:
    """Return the cost per element of the requests that `tile_cost` does not count, in SM clock cycles.

    Fitted on NVIDIA H200: `SPLIT` and `OCCUPIED` to 150 permutations (the mean is the same within 0.2 % for half or
    twice their values), `ROWS` to the tiles of `copy_cost`, and `TORN`, `HELD` and `UNPAIRED` to 6,400 tiles of 560
    copies.
    """
    shape = tile.shape
    cycles = TORN * shape.torn_sectors + _row_cycles(shape)
    if shape.element == 1 and tile.piece < shape.vectors[0] and shape.shifts == (False, True):
        cycles += HELD * shape.elements
    if shape.shifts[0]:
        lines = shape.elements * shape.element / LINE_BYTES
        cycles += SPLIT[tile.congruent] * lines + OCCUPIED * tile.shared_bytes / LINE_BYTES
    return cycles / shape.elements


def copy_cost(tile: BlockTile, bound: float = math.inf) -> float:
    """Return the cost per element of a copy with this tile, in SM clock cycles; for `bound`, see `tile_cost`.

    Fitted on NVIDIA H200 to 4,279 tiles of 445 copies of 64 MiB and more, relative to a memcpy of as many bytes: half
    of the values of `copy_time` have an error below 7 %.
    """
    shape = tile.shape
    alone, requests = _alone(shape), request_cost(tile)
    return (tile_cost(tile, (bound - alone) / shape.unfilled - requests) + requests) * shape.unfilled + alone


def copy_time(tile: BlockTile) -> float:
    """Return the estimated time of a large copy with this tile, divided by the time of a memcpy of as many bytes."""
    return MEMORY + BUSY * copy_cost(tile) / tile.shape.element


def best_tile(refinement: Refinement, element: int, limits: tuple[int, int]) -> BlockTile | None:
    """Return the tile with the lowest cost, or None if the copy has no tile.

    A tile with other extents is used only if the estimated time of the copy then is at most `GAIN` of that time, and if
    threads transpose as many columns in registers. (Two of 376 copies lost the columns and took 1.5 times as long.) The
    cheapest tile of the usual extents and that of the others are compared after each has its best order of threads.
    """
    for least in LEAST:
        usual = _cheapest(tile_shapes(refinement, element, limits, least), math.inf)
        if usual is None:
            continue
        best = _with_rows_together(usual)
        if best.shape.copied >= STREAMED:
            others = tile_shapes(refinement, element, limits, least, others=True)
            other = _cheapest(others, _gaining(usual), usual.shape.columns)
            other = other and _with_rows_together(other)
            if other is not None and copy_cost(other) < _gaining(best):
                return other
        return best
    return None


def _gaining(tile: BlockTile, gain: float = GAIN) -> float:
    """Return the maximum cost of another tile whose time is at most this fraction of the tile's."""
    return (gain * copy_time(tile) - MEMORY) / BUSY * tile.shape.element


def candidate_tiles(refinement: Refinement, element: int, limits: tuple[int, int], count: int) -> tuple[BlockTile, ...]:
    """Return the tile of `best_tile`, and then the cheapest ones of all extents and vectors, `count` in all; () if the
    copy has no tile.

    Measured on NVIDIA H200: for 593 copies, the fastest of 3 takes 0.98 of the time of the first one, and the fastest
    of 8 takes 0.975.
    """
    chosen = best_tile(refinement, element, limits)
    if chosen is None:
        return ()
    found = {chosen: 0.0}
    for others in (False, True):
        for whole, grain in tile_shapes(refinement, element, limits, LEAST[0], others=others):
            for shape, tiles in placings(whole, grain):
                for tile in itertools.chain(tiles, _together(shape)):
                    for one in (tile, *_other_orders(tile)):
                        if one.fits:
                            found.setdefault(one, copy_time(one))
    return tuple(sorted(found, key=found.__getitem__)[:count])


def _together(shape: TileShape) -> Iterator[BlockTile]:
    """Yield tiles of these extents that write 4 rows together, from columns in different words of shared memory; none
    if that has no advantage."""
    several = replace(shape, vectors=(shape.vectors[0], WORD), together=TOGETHER[0], step=BANK_BYTES // shape.element)
    if several.has_rows_apart:
        yield from _placed(several)


def _other_orders(tile: BlockTile) -> Iterator[BlockTile]:
    """Yield the tile with 8 rows that are written together, for several vectors and columns; none if that has no
    advantage, or changes where its elements are."""
    for width, step in itertools.product((8, WORD), COLUMN_STEPS):
        shape = replace(tile.shape, vectors=(tile.shape.vectors[0], width), together=TOGETHER[1], step=step)
        if shape.has_rows_apart and not tile.skew:
            yield replace(tile, shape=shape)


def _with_rows_together(tile: BlockTile) -> BlockTile:
    """Return the tile, or the cheapest one of these extents that writes several rows together, if that one costs less.

    If threads compute the offsets of rows, 4 rows together must gain as much as other extents. (Without this condition,
    30 of 156 copies change, and take up to 1.3 times as long.) 8 rows together must gain `GAIN`, and
    `REGULAR_GAIN` over one row if threads compute its offset.
    """
    four, _ = _cheaper(_together(tile.shape), _gaining(tile, GAIN if tile.affine else 1))
    best = four or tile
    eight, _ = _cheaper(_other_orders(best), _gaining(best, REGULAR_GAIN if best.affine else GAIN))
    return eight or best


def _cheaper(tiles: Iterable[BlockTile], limit: float) -> tuple[BlockTile | None, float]:
    """Return the tile with the lowest cost below the limit, and its cost; (None, limit) if there is none."""
    best, lowest = None, limit
    for tile in tiles:
        if tile.fits and (cost := copy_cost(tile, lowest)) < lowest:
            best, lowest = tile, cost
    return best, lowest


def _cheapest(shapes: Iterable[tuple[TileShape, int]], limit: float, columns: int = 1) -> BlockTile | None:
    """Return the tile with the lowest cost below the limit, and with at least this number of columns, or None."""
    placed = [one for whole, grain in shapes for one in placings(whole, grain) if one[0].columns >= columns]
    bounds = [least_cost(shape) for shape, _ in placed]
    best, lowest = None, limit
    for bound, (_, tiles) in sorted(zip(bounds, placed, strict=True), key=lambda one: one[0]):
        if bound > lowest:
            break
        found, lowest = _cheaper(tiles, lowest)
        best = found or best
    return best
