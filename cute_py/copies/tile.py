"""A tile that threads turn in shared memory: which part of the modes, in which order, vectors and places.

A tile takes the modes that the source walks first and those that the destination walks first, as much of each as gives
both sides whole lines. Its elements lie in shared memory in the source's order, mode m at multiples of `pitches[m]`
bytes, behind one swizzle. Tiles that end early in a mode are classes of their own, with tables of their own: a tile has
exactly its elements, and no thread asks whether it has work.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cute_py.copies.modes import IDENTITY, CopyMode, Refinement
from cute_py.copies.shared_layout import best_swizzle, counted_wavefronts
from cute_py.gpu.kernels.relayout import ASYNCHRONOUS, GRAIN, MAX_CLASSES, MAX_THREADS, WORD
from cute_py.layout.analysis import WARP
from cute_py.layout.swizzle import Swizzle

Places = NDArray[np.int64]

LINES: Final = (256, 128, 64, 32)
"""Bytes of a run of a tile that are tried, the first that leaves room for the other side."""
TILE_BYTES: Final = 32768
"""Most bytes of a tile."""
FILLED: Final = 8192
"""Bytes that a tile is filled up to, where the tensor has them."""
BLOCKS: Final = 132
"""Tiles that a copy is cut into at least, so that every multiprocessor has work."""
QUICK: Final = 4096, 1024
"""Bytes of a tile, or a part of the copy, which are enough for one that caches hold. Measured on NVIDIA H200."""
LEAST: Final = (1024, FILLED)
"""Bytes of a tile below which it is not made smaller for that: the first of which there is a tile at all."""
CROWDED: Final = 14000
"""Bytes of a tile from which its block has all threads, where words are narrow."""
MANY: Final = 8
"""Tiles along a mode from which one that ends early costs little."""
COLUMN_BYTES: Final = {1: 4, 2: 8, 4: 16, 8: 16}
"""Element bytes -> bytes of a row in shared memory that a thread turns at once."""
VECTORS: Final = (16, 8, 4, 2, 1)
FOLDED: Final = 1 << 20
"""Bytes of a copy from which a kernel of its own for a pitch pays."""
LINE_BYTES: Final = 128
MAX_SHARED: Final = 65536
"""Bytes of shared memory of a block, at most."""
IDLE: Final = 1 / 8
"""Of a block's threads that may be left over where each stays in its column."""


@dataclass(frozen=True)
class Tile:
    """Attributes:
    modes: of the copy, in elements. extents: of a whole tile, for each mode. pitches: bytes in shared memory, for each
        mode; 0 where the tile does not hold it.
    source_order, destination_order: the modes of a tile, as each side walks them.
    source_run, destination_run: how many of these, from the first on, are one contiguous run.
    vectors: bytes of a thread's access on both sides. piece, unit: bytes of its accesses to shared memory.
    shifts: sides whose rows may start between two words. swizzle: of byte places in shared memory.
    listed: the places of one destination vector have no fixed distances.
    skew: bytes that each vector's worth of the destination's first mode lies further on than its pitch says.
    columns: elements of the source's first mode that a thread reads at once; it writes as many rows.
    """

    element: int
    modes: tuple[CopyMode, ...]
    extents: tuple[int, ...]
    pitches: tuple[int, ...]
    source_order: tuple[int, ...]
    destination_order: tuple[int, ...]
    source_run: int
    destination_run: int
    vectors: tuple[int, int]
    piece: int
    unit: int
    shifts: tuple[bool, bool]
    swizzle: Swizzle = IDENTITY
    listed: bool = False
    skew: int = 0
    columns: int = 1

    def _places(self, mode: int, extent: int) -> Places:
        """Places of the elements of one mode; with a skew, each vector of the destination's first one lies further."""
        digit = np.arange(extent, dtype=np.int64)
        found = digit * self.pitches[mode]
        if self.skew and mode == self.destination_order[0]:
            found += digit // (self.vectors[1] // self.element) * self.skew
        return found

    @functools.cached_property
    def counts(self) -> tuple[int, ...]:
        """Tiles along each mode."""
        return tuple(-(-m.size // t) for m, t in zip(self.modes, self.extents, strict=True))

    @functools.cached_property
    def run_mode(self) -> int:
        """The mode of which a word of the destination may take elements from the next tile; -1: there is none.

        Elements of the next tile must be rows of their own, or the end of a source row that is read in whole words.
        """
        if not self.shifts[1]:
            return -1
        last = self.destination_order[self.destination_run - 1]
        if last not in self.source_order[: self.source_run]:
            return last
        return last if self.shifts[0] and last == self.source_order[self.source_run - 1] else -1

    @functools.cached_property
    def halo(self) -> int:
        """Elements of that mode that a tile reads beyond its end."""
        if self.run_mode < 0:
            return 0
        return -(-(GRAIN // self.element - 1) // self._before)

    @property
    def _before(self) -> int:
        """Elements of a destination's run for one of its last mode."""
        return math.prod(self.extents[m] for m in self.destination_order[: self.destination_run - 1])

    @functools.cached_property
    def bits(self) -> tuple[int, ...]:
        """For each mode the bit of the class that its last tile has, 0 where that is like the others."""
        found, bit = [], 1
        for index, (mode, t, count) in enumerate(zip(self.modes, self.extents, self.counts, strict=True)):
            own = mode.size % t != 0 or (index == self.run_mode and count > 1)
            found.append(bit if own else 0)
            bit <<= int(own)
        return tuple(found)

    @functools.cached_property
    def shared_bytes(self) -> int:
        """Of a block, a multiple of what the swizzle permutes."""
        reach = sum((self._held(m, self.extents[m]) - 1) * self.pitches[m] for m in self.source_order) + self.element
        reach += 2 * WORD * self.shifts[0]
        if self.skew:
            first = self.destination_order[0]
            reach += (self._held(first, self.extents[first]) - 1) // (self.vectors[1] // self.element) * self.skew
        grain = max(16, 1 << self.swizzle.bits + self.swizzle.base + self.swizzle.shift if self.swizzle.bits else 1)
        return -(-reach // grain) * grain

    @functools.cached_property
    def elements(self) -> int:
        """Of a whole tile."""
        return math.prod(self.extents)

    @functools.cached_property
    def threads(self) -> int:
        """Of a block."""
        size = self.elements * self.element
        # Measured: where words of the destination share sectors with other tiles', few tiles at a time are faster.
        if self.vectors[1] < WORD and not self.shifts[1] and self.destination_run == 1 and size >= CROWDED:
            return MAX_THREADS
        work = size // min(self.vectors)
        return max(64, min(256 if self.shared_bytes > 12288 else 128, -(-work // 64) * 64))

    @property
    def steady(self) -> bool:
        """Whether a thread stays in one column of vectors on both sides."""
        return all(self.threads % vectors <= self.threads * IDLE for _, vectors in self.whole)

    @property
    def affine(self) -> bool:
        """Whether threads are steady, and the rows of both sides one mode, in steps of 31 bits."""
        rows = self.source_order[self.source_run :], self.destination_order[self.destination_run :]
        steps = [self.row_step(side) for side in (0, 1)]
        skewed = self.skew and any(row and row[0] == self.destination_order[0] for row in rows)
        return self.steady and max(map(len, rows)) <= 1 and max(map(abs, steps)) < 2**31 and not skewed

    def row_step(self, side: int) -> int:
        """Bytes from one row of a side to the next, where rows are one mode."""
        order, run = ((self.source_order, self.source_run), (self.destination_order, self.destination_run))[side]
        mode = self.modes[order[run]] if len(order) > run else CopyMode(1, 0, 0)
        return (mode.source, mode.destination)[side] * self.element * (self.columns if side == 1 else 1)

    def row_pitch(self, side: int) -> int:
        """Bytes from one row to the next in shared memory, where rows are one mode."""
        order, run = ((self.source_order, self.source_run), (self.destination_order, self.destination_run))[side]
        return self.pitches[order[run]] * (self.columns if side == 1 else 1) if len(order) > run else 0

    def shared_mode(self, mode: int) -> tuple[int | tuple[int, int], int | tuple[int, int]]:
        """Shape and stride, in elements, of a mode in shared memory; of parts that lie apart as many whole ones."""
        extent, pitch = self.extents[mode], self.pitches[mode] // self.element
        if not self.skew or mode != self.destination_order[0]:
            return extent, pitch
        each = self.vectors[1] // self.element
        return (each, -(-extent // each)), (pitch, each * pitch + self.skew // self.element)

    @property
    def folded_pitch(self) -> int:
        """Bytes between the elements of a destination's vector, where these are the same all over; else 0."""
        pitch, per = self.pitches[self.destination_order[0]], self.vectors[1] // self.unit
        size = math.prod(m.size for m in self.modes) * self.element
        if per == 1 or self.swizzle.bits or size < FOLDED:
            return 0
        if self.shifts[1]:
            return pitch
        return pitch if not self.listed and spread_of(self) == tuple(pitch * v for v in range(per)) else 0

    def _held(self, mode: int, extent: int) -> int:
        return extent + (self.halo if mode == self.run_mode and extent < self.modes[mode].size else 0)

    def class_extents(self, combination: int) -> tuple[int, ...]:
        """The extents of the tiles of a class."""
        if not combination:
            return self.extents
        return tuple(
            (m.size - 1) % t + 1 if combination & bit else t
            for m, t, bit in zip(self.modes, self.extents, self.bits, strict=True)
        )

    def classes(self) -> range:
        """Every class."""
        return range(1 << sum(bit > 0 for bit in self.bits))

    def held_extents(self, combination: int) -> tuple[int, ...]:
        """What tiles of a class read of each mode."""
        own, at = self.class_extents(combination), self.run_mode
        if at < 0 or self.counts[at] == 1 or combination & self.bits[at]:
            return own
        return tuple(e + self.halo * (i == at) for i, e in enumerate(own))

    @functools.cached_property
    def whole(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(rows, vectors of one) of a whole tile: of the source, of the destination."""
        held, own = self.held_extents(0), self.extents
        rows = math.prod([held[m] for m in self.source_order[self.source_run :]])
        others = math.prod([own[m] for m in self.destination_order[self.destination_run :]]) // self.columns
        return (rows, self.vectors_of(0, 0)), (others, self.vectors_of(0, 1))

    def rows(self, combination: int, side: int) -> tuple[Places, Places]:
        """(byte offsets, places in shared memory) of the rows of a tile: of the source (side 0) or destination."""
        extents = self.held_extents(combination) if side == 0 else self.class_extents(combination)
        order, run = ((self.source_order, self.source_run), (self.destination_order, self.destination_run))[side]
        offsets, places = np.zeros(1, np.int64), np.zeros(1, np.int64)
        for m in order[run:]:
            each = self.columns if side == 1 and m == self.source_order[0] else 1
            count = np.arange(0, extents[m], each, dtype=np.int64)[:, None]
            step = (self.modes[m].source, self.modes[m].destination)[side] * self.element
            offsets = (count * step + offsets).ravel()
            places = (self._places(m, extents[m])[::each, None] + places).ravel()
        return offsets, places

    def run(self, combination: int, side: int) -> int:
        """Elements of a row."""
        extents = self.held_extents(combination) if side == 0 else self.class_extents(combination)
        order, run = ((self.source_order, self.source_run), (self.destination_order, self.destination_run))[side]
        return math.prod(extents[m] for m in order[:run])

    def along(self, combination: int) -> Places:
        """Places of the units of a destination row, before the swizzle."""
        extents = self.held_extents(combination)
        places = np.zeros(1, np.int64)
        for m in self.destination_order[: self.destination_run]:
            places = (self._places(m, extents[m])[:, None] + places).ravel()
        return places[:: self.unit // self.element]

    def vectors_of(self, combination: int, side: int) -> int:
        """Vectors of a row; of a shifted side as many words as it may touch."""
        size, width = self.run(combination, side) * self.element, self.vectors[side]
        if not self.shifts[side]:
            return size // width
        grain = GRAIN if side == 1 else width
        return -(-(size + grain - self.element) // grain) * (grain // width)

    def swizzled(self, places: Places) -> Places:
        """Places behind the swizzle."""
        return self.swizzle(places) if self.swizzle.bits else places

    @functools.cached_property
    def wavefronts(self) -> tuple[int, int]:
        """Wavefronts of a whole tile: of the writer, of the reader; from its first 4 warps and its last."""
        return self._counted(0), self._counted(1)

    def _counted(self, side: int) -> int:
        offsets, places = self.rows(0, side)
        run = self.whole[side][1]
        total = len(places) * run
        threads = np.arange(min(total, 2 * WARP))
        row, along = threads // run, threads % run
        if side == 0:
            width = self.piece
            inside = np.arange(0, self.vectors[0], width)[:, None]
            start = places[row] // width * width if self.shifts[0] else places[row]
            at = start + along * self.vectors[0] + inside
        else:
            width, per = self.unit * self.columns, self.vectors[1] // self.unit
            listed = self.along(0)
            number = along * per + np.arange(per)[:, None]
            if self.shifts[1]:
                number -= offsets[row] % GRAIN // self.element
            at = places[row] + listed[np.minimum(np.maximum(number, 0), len(listed) - 1)]
        return max(1, round(counted_wavefronts(self.swizzled(at), width) * total / max(len(threads), 1)))


def _order(modes: Sequence[CopyMode], side: str) -> list[int]:
    """The modes that a side steps through, its smallest step first."""
    moving = [i for i, m in enumerate(modes) if getattr(m, side)]
    return sorted(moving, key=lambda i: abs(getattr(modes[i], side)))


def widths_of(element: int) -> tuple[int, ...]:
    """Bytes of a thread's access to a side, the widest first: few, since each pair of them is a kernel.

    >>> widths_of(1), widths_of(8)
    ((16, 8, 4, 1), (16, 8))
    """
    return tuple(w for w in VECTORS if w in (16, 8, 4, element) and w >= element)


def _even(size: int, wanted: int) -> int:
    """An extent from `wanted` on: a power of two where few tiles or none end early, else one that makes tiles alike."""
    wanted = 1 << max(wanted - 1, 0).bit_length()
    if size % wanted == 0 or size >= MANY * wanted:
        return wanted
    grain = min(size & -size, 32)
    each = -(-size // max(1, size // wanted))
    return -(-each // grain) * grain


def _grown(size: int, extent: int) -> int:
    """The next extent: twice as much, or of half as many tiles that are alike.

    >>> _grown(1000, 32), _grown(129, 33), _grown(129, 65)
    (64, 65, 129)
    """
    if extent & (extent - 1) == 0:
        return _even(size, 2 * extent)
    grain = min(size & -size, 32)
    each = -(-size // max(1, -(-size // extent) // 2))
    return -(-each // grain) * grain


def choose_extents(modes: Sequence[CopyMode], element: int, least: int) -> tuple[int, ...] | None:
    """Extents of a tile that give both sides runs of whole lines; None if no tile gives both a sector.

    least: bytes of a tile below which it is not made smaller so that there are `BLOCKS`.
    """
    orders = _order(modes, "destination"), _order(modes, "source")
    total = math.prod(m.size for m in modes) * element
    share = max(least, min(total // BLOCKS, max(QUICK[0], total // QUICK[1])))
    most, filled = min(TILE_BYTES, share), min(FILLED, share)
    for line in LINES:
        extents = [1] * len(modes)
        for order in orders:
            run = element
            for m in order:
                if run >= line:
                    break
                extents[m] = max(extents[m], _even(modes[m].size, -(-line // run)))
                run *= extents[m]
        if math.prod(extents) * element <= most:
            break
    else:
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
    """How many modes of an order, from the first on, are one contiguous run of a tile."""
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
    """The widest access, in bytes, that every vector of every tile of a side is aligned to."""
    if not run:
        return element
    first = order[0]
    for width in widths_of(element):
        per = width // element
        if width > limit:
            continue
        steps = [getattr(m, side) * t for m, t in zip(modes, extents, strict=True) if m.size > t]
        steps += [getattr(modes[m], side) for m in order[run:]]
        # Of the run's last mode a tile may end early: what is before it, times any extent, must be whole vectors.
        last = order[run - 1]
        before = math.prod(extents[m] for m in order[: run - 1])
        sizes = [before * extents[last], before * ((modes[last].size - 1) % extents[last] + 1)]
        if all(n % per == 0 for n in (*steps, *sizes)) and (run > 1 or extents[first] % per == 0):
            return width
    return element


def tiles(refinement: Refinement, element: int, limits: tuple[int, int], least: int) -> Iterator[Tile]:
    """Tiles for a copy, of one set of extents and several vectors.

    limits: bytes that a side's accesses may have. least: as of `choose_extents`.
    """
    modes = refinement.modes
    extents = choose_extents(modes, element, least)
    if extents is None:
        return
    inside = [i for i, t in enumerate(extents) if t > 1]
    orders = [[i for i in _order(modes, side) if i in inside] for side in ("source", "destination")]
    if not all(orders):  # one element, or one for all
        return
    runs = [_run(modes, extents, order, side) for order, side in zip(orders, ("source", "destination"), strict=True)]
    found = [
        _vector(modes, extents, order, run, side, element, limit)
        for order, run, side, limit in zip(orders, runs, ("source", "destination"), limits, strict=True)
    ]
    plain = [not s.bits for s in refinement.swizzles]
    run_bytes = [math.prod(extents[m] for m in order[:run]) * element for order, run in zip(orders, runs, strict=True)]
    words: list[list[tuple[bool, int]]] = []
    for i, width in enumerate(found):
        shifted = width < WORD and runs[i] > 0 and run_bytes[i] >= 32 and plain[i]
        if shifted and i == 1:  # the widest first, most often the best: others are dropped before they are counted
            cheap = width < 4, max(width, 4)
            others = [(True, word) for word in (WORD, 8, 4) if word > max(width, element)]
            words.append([*(other for other in others if other != cheap), cheap])
        else:
            words.append([(True, WORD)] if shifted else [(False, width)])
    inner = orders[0][0]
    apart = [m.source * element for i, m in enumerate(modes) if i != inner] + [extents[inner] * element]
    grain = math.gcd(limits[0], *apart) if modes[inner].source == 1 else element
    for (first, width), (second, across) in itertools.product(*words):
        base = Tile(
            element,
            modes,
            extents,
            (0,) * len(modes),
            tuple(orders[0]),
            tuple(orders[1]),
            runs[0],
            runs[1],
            (width, across),
            element,
            element,
            (first, second),
        )
        at = base.run_mode
        if at >= 0:
            own = _lending(modes[at].size, extents[at], base.halo)
            if not own:
                continue
            base = replace(base, extents=tuple(own if i == at else t for i, t in enumerate(extents)))
        yield from (made for made in _placed(base, grain) if _fits(made))


def _fits(tile: Tile) -> bool:
    """Whether the kernel has room for its classes, and its last tile holds what the one before it borrows."""
    at = tile.run_mode
    lent = at < 0 or _lending(tile.modes[at].size, tile.extents[at], tile.halo) == tile.extents[at]
    return lent and len(tile.classes()) <= MAX_CLASSES


def _lending(size: int, extent: int, halo: int) -> int:
    """The largest extent up to this one whose last tile holds what the one before it borrows; 0: there is none.

    >>> _lending(100, 32, 7), _lending(128, 32, 7), _lending(96, 16, 31)
    (31, 32, 0)
    """
    while extent < size and (size - 1) % extent + 1 < halo:
        extent -= 1
        if extent < halo:
            return 0
    return extent


def _columns(tile: Tile, grain: int) -> int:
    """Elements that a thread may read at once along the source's first mode; all rows lie at multiples of `grain`."""
    columns, inner = COLUMN_BYTES.get(tile.element, 0) // tile.element, tile.source_order[0]
    if columns < 2 or any(tile.shifts[1:]) or inner in tile.destination_order[: max(tile.destination_run, 1)]:
        return 1
    whole = not any(n % columns for n in (tile.extents[inner], tile.modes[inner].size))
    fits = whole and tile.source_run > 0 and grain % (columns * tile.element) == 0 and tile.vectors[1] >= 4
    return columns if fits else 1


def _placed(base: Tile, grain: int) -> Iterator[Tile]:
    """Tiles of several vectors of the destination and places in shared memory; of several columns where these fit."""
    across, columns, fitting = base.vectors[1], _columns(base, grain), False
    word = columns * base.element
    for made in _spread_out(replace(base, columns=columns)) if columns > 1 else ():
        others = [made.pitches[m] for m in made.source_order[1:]]
        if not any(n % word for n in (*others, made.skew)) and not (
            made.swizzle.bits and 1 << made.swizzle.base < word
        ):
            fitting = True
            yield made
    if not fitting:
        for width in widths_of(base.element) if not base.shifts[1] else (across,):
            if width <= across <= 4 * width:
                yield from _spread_out(replace(base, vectors=(base.vectors[0], width)))


def _spread_out(made: Tile) -> Iterator[Tile]:
    """A tile behind a swizzle, or with rows at several distances."""
    element, extents, order, run = made.element, made.extents, made.source_order, made.source_run
    if all(t & (t - 1) == 0 for t in extents) and not any(made.shifts):
        yield _with_swizzle(made)
        return
    pads = (0, 16, 32) if made.shifts[0] else {element * -(-pad // element) for pad in (0, 4, 8, 16, 32)}
    for pad in sorted(pads):
        yield _with_places(made, pad)
    first, cut = made.destination_order[0], run > 1 and extents[order[0]] * element % made.vectors[0] == 0
    whole = made.shifts[1] or extents[first] * element % made.vectors[1] == 0
    if whole and made.vectors[1] > element and first in order[1 if cut else run :]:
        apart = replace(made, source_run=1) if first in order[:run] else made
        for skew in sorted({WORD} if any(made.shifts) else {max(element, 4), max(element, 16)}):
            yield _with_places(replace(apart, skew=skew), 0)
    if cut:
        for pad in sorted(set(pads) - {0}):
            yield _with_places(replace(made, source_run=1), pad)


def _with_swizzle(tile: Tile) -> Tile:
    """The tile in the source's order behind the best swizzle; extents are powers of two."""
    pitches, step = [0] * len(tile.modes), tile.element
    for m in tile.source_order:
        pitches[m] = step
        step *= tile.extents[m]

    def access(order: Sequence[int], width: int, columns: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        steps = [pitches[m] << k for m in order for k in range(tile.extents[m].bit_length() - 1)]
        across = [tile.element << k for k in range(columns.bit_length() - 1)]
        steps = across + [step for step in steps if step not in across]
        values = (width // tile.element).bit_length() - 1 + len(across)
        return tuple(steps[values:]), tuple(steps[:values])

    sides = (
        access(tile.source_order, tile.vectors[0], 1),
        access(tile.destination_order, tile.vectors[1], tile.columns),
    )
    swizzle, _, _ = best_swizzle(step.bit_length() - 1, tile.element, *sides, positive=True)
    return _finished(tile, pitches, swizzle)


def _with_places(tile: Tile, pad: int) -> Tile:
    """The tile in rows whose pitches are the source's steps modulo a word (of a shifted source), `pad` bytes apart."""
    pitches, step = [0] * len(tile.modes), tile.element
    for place, m in enumerate(tile.source_order):
        if place == tile.source_run:
            grain = tile.vectors[0]
            step = -(-step // grain) * grain + pad + (2 * WORD if tile.shifts[0] else 0)
        if place >= tile.source_run and tile.shifts[0]:
            step += (tile.modes[m].source * tile.element - step) % WORD
        pitches[m] = step
        step *= tile._held(m, tile.extents[m])
        if tile.skew and m == tile.destination_order[0]:
            step += -(-tile._held(m, tile.extents[m]) * tile.element // tile.vectors[1]) * tile.skew
    return _finished(tile, pitches, IDENTITY)


def _finished(tile: Tile, pitches: Sequence[int], swizzle: Swizzle) -> Tile:
    """The tile at these places, with the widest accesses to shared memory that they allow."""
    grain = 1 << swizzle.base if swizzle.bits else 16
    apart = [*(pitches[m] for m in tile.source_order[tile.source_run :]), tile.skew]
    piece = tile.vectors[0]
    while not tile.shifts[0] and piece > tile.element and (piece > grain or any(p % piece for p in apart)):
        piece //= 2
    unit = tile.element
    first = tile.destination_order[0]
    others = [*(pitches[m] for m in tile.destination_order[1:]), tile.skew]
    sizes = (tile.extents[first], tile.modes[first].size)
    while (
        not any(tile.shifts)
        and tile.columns == 1
        and 2 * unit <= min(tile.vectors[1], grain)
        and pitches[first] == tile.element
        and not any(p % (2 * unit) for p in others)
        and not any(n * tile.element % (2 * unit) for n in sizes)
    ):
        unit *= 2
    piece, unit = (
        max(w for w in (*widths_of(tile.element), 8) if w <= have) if have >= tile.element else have
        for have in (piece, unit)
    )
    listed = tile.shifts[1] and tile.destination_run > 1
    made = replace(tile, pitches=tuple(pitches), swizzle=swizzle, piece=piece, unit=unit, listed=listed)
    return made if tile.shifts[1] or spread_of(made) is not None else replace(made, listed=True)


def spread_of(tile: Tile) -> tuple[int, ...] | None:
    """How far the units of a destination vector lie from its first, where that is the same for all."""
    per = tile.vectors[1] // tile.unit
    if tile.shifts[1] or (tile.destination_run == 1 and not tile.swizzle.bits and tile.unit == tile.element):
        return tuple(v * tile.pitches[tile.destination_order[0]] for v in range(per))
    found = None
    for combination in tile.classes():
        places = tile.swizzled(tile.along(combination))
        apart = places.reshape(-1, per)
        apart = apart ^ apart[:, :1] if tile.swizzle.bits else apart - apart[:, :1]
        if (apart != apart[:1]).any() or (found is not None and (apart[0] != found).any()):
            return None
        found = apart[0]
    return None if found is None else tuple(int(v) for v in found)


def _overlapped(issued: float, wavefronts: float) -> float:
    return max(issued, wavefronts) + min(issued, wavefronts) / 2


def tile_cost(tile: Tile, bound: float = math.inf) -> float:
    """What an element costs, in clock cycles of an SM: instructions at four a cycle, and wavefronts at two.

    The larger counts whole and the smaller half, since both overlap; how many instructions a vector takes is counted
    from machine code, and the rate of wavefronts is that with which the fastest tiles are found (measured on NVIDIA
    H200, 979 tiles of 29 copies: 95 % of the speed of the fastest tile on average). Where a tile costs more than
    `bound` whatever its wavefronts are, these are not counted.
    """
    element, per = tile.element, tile.vectors[1] // tile.unit
    (held, across), (rows, along) = tile.whole
    chunks, groups = held * across / WARP, rows * along / WARP
    lookup = 0 if tile.affine else 10
    through = tile.piece == tile.vectors[0] >= ASYNCHRONOUS
    loads = chunks * (20 + lookup + (0 if through else 6 + 2 * tile.vectors[0] / tile.piece))
    if tile.columns > 1:
        taken = per + {1: 2 * per, 2: per * tile.columns / 2}.get(element, 0) + 4 * tile.columns
    else:
        taken = per * (1 + {1: 0.75, 2: 0.5}.get(tile.unit, 0) + (0 if tile.folded_pitch or per == 1 else 1)) + 4
        taken += per * tile.listed + (2 * per if tile.skew and tile.shifts[1] else 0)
    stores = groups * (26 + lookup + taken)
    if tile.shifts[1] and tile.run_mode < 0:  # words at both ends of a row are moved by the element
        stores += min(groups, 2 * rows) * 6 * per
    lines, issued = tile.elements * element / LINE_BYTES, (loads + stores) / 4
    if _overlapped(issued, 3 * lines) > bound * tile.elements:
        return math.inf
    return _overlapped(issued, sum(tile.wavefronts) / 2 + 2 * lines) / tile.elements


def best_tile(refinement: Refinement, element: int, limits: tuple[int, int]) -> Tile | None:
    """The tile that costs least, or None: the copy has none."""
    for least in LEAST:
        best, lowest = None, math.inf
        for tile in tiles(refinement, element, limits, least):
            if tile.shared_bytes > MAX_SHARED:
                continue
            cost = tile_cost(tile, lowest)
            if cost < lowest:
                best, lowest = tile, cost
        if best is not None:
            return best
    return None
