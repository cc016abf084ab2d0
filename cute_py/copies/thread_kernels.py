"""Make the kernels that copy by threads (tiles or runs) and their parameters from a plan and addresses.

The parameters are one block of bytes. The tables of a tile are another block, in device memory. This module defines the
format of both blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from cute_py.copies.modes import CopyMode, Refinement
from cute_py.copies.tile import BlockTile, spread_of
from cute_py.gpu.kernels.relayout import (
    CLASS,
    DIGIT,
    GROUP,
    MAX_CLASSES,
    MAX_DIGITS,
    TILE,
    copy_tile,
    magic,
    row_magic,
)
from cute_py.gpu.kernels.runs import RUNS, copy_runs
from cute_py.gpu.kernels.source import KernelSource
from cute_py.layout.swizzle import Swizzle
from cute_py.targets import SECTOR_BYTES

if TYPE_CHECKING:
    import numpy as np
else:
    from cute_py.optional_packages import numpy as np

FEW: Final = 65536
"""Maximum number of reads of a copy where each thread gathers whole vectors: 256 KiB in reads of 4 bytes, 1 MiB in
reads of 16 bytes. For these copies, kernels with tiles are slower (measured on NVIDIA H200)."""
APART: Final = 1024
"""Tiles are grouped if at least this many tiles are between neighbours. About this many run at the same time. Measured
on NVIDIA H200: such copies take 0.8 to 1.04 of the time without groups; copies with fewer tiles between neighbours take
up to 1.1 of it."""
SHARED_STEP: Final = 2 * SECTOR_BYTES
"""Source rows share lines with their neighbours if a stride, in bytes, is not a multiple of this number. For rows at
multiples of 64 bytes, groups gain nothing. Measured on NVIDIA H200, 42 copies."""
GROUPED_RUN: Final = 400
"""Tiles with longer source runs, in bytes, are not grouped: neighbours share too few of their sectors. Measured on
NVIDIA H200, 87 copies."""
STAGED: Final = 1 / 2
"""Maximum size of the tables that a block copies to shared memory, relative to its tile. Measured on NVIDIA H200, 281
copies: up to this size, they take 0.86 to 1.1 of the time, and 0.98 on average; with larger tables, up to 1.14."""
ALONE: Final = 16384
"""Up to this number of vectors, each vector has its own thread, in small blocks. Measured on NVIDIA H200."""


@dataclass(frozen=True, slots=True)
class ThreadLaunch:
    """A kernel, its grid, and its parameters without addresses.

    head: values that follow the addresses in the parameter block. body: the bytes that follow these values. tables:
    contents of the tables in device memory. reach: offset of the byte after the last byte of the source, relative to
    its address.
    """

    kernel: KernelSource
    blocks: int
    tables: bytes = field(repr=False)
    head: tuple[object, ...] = field(repr=False)
    body: bytes = field(repr=False)
    reach: int

    def parameters(self, source: int, destination: int, tables: int) -> bytes:
        """Return the parameter block for these addresses."""
        if self.kernel.name == "copy_runs":
            return RUNS.pack(source, destination, *self.head) + self.body
        return TILE.pack(source, destination, source + self.reach, tables, *self.head) + self.body


def _digit(size: int, source: int, destination: int, bit: int = 0) -> bytes:
    return DIGIT.pack(size, *magic(size), bit, source, destination)


def _masks(swizzles: tuple[Swizzle, Swizzle], element: int) -> tuple[int, ...]:
    """Return the masks, and then the shifts, of both sides' swizzles on byte offsets."""
    grown = [s.downcast(element) if s.bits else s for s in swizzles]
    return (*(s.yyy_mask if s.bits else 0 for s in grown), *(s.shift if s.bits else 0 for s in grown))


def _swizzled(refinement: Refinement) -> bool:
    return any(s.bits for s in refinement.swizzles)


def source_reach(refinement: Refinement, element: int) -> int:
    """Return the offset of the byte after the last byte of a source without a swizzle, relative to the address of
    offset 0."""
    most = sum(max((m.size - 1) * m.source, 0) for m in refinement.modes)
    return (refinement.starts[0] + most + 1) * element


def tile_tables(tile: BlockTile) -> tuple[bytes, list[tuple[int, int, int, int]]]:
    """Return the tables of a tile, and for each class the offsets in them of its source rows, destination rows and
    list, and of their end."""
    content, places = bytearray(), []

    def add(part: bytes) -> int:
        content.extend(bytes(-len(content) % 16))
        at = len(content)
        content.extend(part)
        return at

    kind = np.dtype([("offset", "<i8"), ("place", "<u4"), ("spare", "<u4")])
    per = tile.shape.vectors[1] // tile.unit
    for combination in tile.shape.classes:
        found = []
        for side in (0, 1):
            offsets, at = tile.rows(combination, side)
            rows = np.zeros(len(offsets), kind)
            rows["offset"], rows["place"] = offsets, tile.swizzled(at)
            found.append(add(rows.tobytes()))
        along = tile.along(combination)
        if tile.run_size:  # extra runs, because a vector reads the runs after its first one
            starts = along[:: tile.run_size].astype("<i4")
            found.append(add(np.append(starts, starts[-1:].repeat(2)).tobytes()))
        else:
            found.append(add(tile.swizzled(along if tile.listed else along[::per]).astype("<u2").tobytes()))
        places.append((found[0], found[1], found[2], len(content)))
    return bytes(content), places


def _staged(tile: BlockTile, places: Sequence[tuple[int, int, int, int]]) -> int:
    """Return the bytes of the destination's tables that blocks copy to shared memory, for the class with the most; 0 if
    threads read no table while they write, or one that is too large."""
    listed = tile.listed or not (tile.steady or tile.shape.shifts[1])
    sizes = [(end if listed else at) - (at if tile.affine else rows) for _, rows, at, end in places]
    most = -(-max(sizes) // 16) * 16
    return most if most <= STAGED * tile.shared_bytes else 0


def _class(tile: BlockTile, combination: int, places: tuple[int, int, int, int]) -> bytes:
    shape, entries = tile.shape, list[int]()
    for side in (0, 1):
        rows, run = shape.rows(combination, side), shape.vectors_of(combination, side)
        lanes = shape.whole[side][1] if tile.steady else run
        turns = tile.threads // (shape.together if side == 1 else 1)
        entries += [rows, run, lanes, row_magic(lanes), turns // lanes, turns % lanes, places[side]]
    held = shape.held_run(combination) if shape.shifts[1] else 0
    return CLASS.pack(*entries, places[2], shape.run(combination, 1), held, shape.run(combination, 0) * shape.element)


def _grouping(tile: BlockTile, live: Sequence[int]) -> tuple[int, int] | None:
    """Return (tiles between neighbours, neighbours) along the mode that continues the source's rows, if tiles are
    grouped along it. In this case neighbours share lines, but do not run at the same time, because many tiles are
    between them."""
    shape = tile.shape
    run = math.prod([shape.extents[m] for m in shape.orders[0][: shape.runs[0]]])
    cut = next((i for i in live if shape.modes[i].source * shape.extents[i] == run), -1)
    if cut < 0 or run * shape.element > GROUPED_RUN:
        return None
    steps = [mode.source for i, mode in enumerate(shape.modes) if mode.source >= run and i != cut]
    if not shape.shifts[0] and all(step * shape.element % SHARED_STEP == 0 for step in steps):
        return None
    before = math.prod([shape.counts[i] for i in live[: live.index(cut)]])
    return (before, shape.counts[cut]) if APART <= before < 2**31 // GROUP else None  # `magic` divides by up to 2**31


def _divisor(size: int) -> tuple[int, int, int]:
    return (size, *magic(size))


def block_order(tile: BlockTile) -> list[int]:
    """Return the modes that the block index counts; the mode with the destination's smallest stride is the first."""
    return [i for i, count in enumerate(tile.shape.counts) if count > 1]


def tile_launch(refinement: Refinement, tile: BlockTile) -> ThreadLaunch:
    """Return the launch of a copy by tiles."""
    shape, element, swizzle = tile.shape, tile.shape.element, tile.swizzle
    tables, places = tile_tables(tile)
    digits, live = [], block_order(tile)
    bits = shape.bits
    for i in live:
        mode, t = shape.modes[i], shape.extents[i]
        digits.append(_digit(shape.counts[i], mode.source * t * element, mode.destination * t * element, bits[i]))
    staged = _staged(tile, places)
    tables += bytes(staged)  # a block may copy bytes past the tables of its class
    classes = [_class(tile, combination, places[combination]) for combination in shape.classes]
    runs = [tile.run_size, (1 << 32) // tile.run_size + 1] if tile.run_size else []
    spread = runs if tile.run_size else list(spread_of(tile) or ())
    pieces = [int(x) for x in tile.swizzled(np.arange(shape.vectors[0] // tile.piece) * tile.piece)]
    steps = [shape.modes[m].source * (shape.extents[m] + shape.halo) * element for m in shape.orders[0]]
    reach = sum(steps) if min(steps) > 0 else 1 << 62  # a backward walk checks every word
    affine = tile.affine
    grouping = _grouping(tile, live)
    before, cut = grouping or (1, 1)
    head = (
        *(start * element for start in refinement.starts),
        reach,
        shape.modes[shape.orders[0][0]].destination * element,
        *_masks(refinement.swizzles, element),
        *(shape.row_step(side) if affine else 0 for side in (0, 1)),
        *(tile.row_pitch(side) for side in (0, 1)),
        *(len(live), live.index(shape.run_mode) if shape.run_mode in live else MAX_DIGITS),
        *(swizzle.zzz_mask if swizzle.bits else 0, swizzle.shift if swizzle.bits else 0),
        *(tile.unit_pitch, tile.shared_bytes, staged, 0),
        *(spread + [0] * (16 - len(spread))),
        *(pieces + [0] * (16 - len(pieces))),
        *_divisor(before * cut),
        *_divisor(before * GROUP),
        *(before, cut),
    )
    body = b"".join(digits).ljust(MAX_DIGITS * DIGIT.size, b"\0")
    body += b"".join(classes).ljust(MAX_CLASSES * CLASS.size, b"\0")
    kernel = copy_tile(
        tile.unit,
        shape.vectors[0],
        shape.vectors[1],
        tile.piece,
        tile.threads,
        tile.shared_bytes + staged,
        shifts=shape.shifts,
        swizzled=swizzle.bits > 0,
        global_swizzled=_swizzled(refinement),
        listed=tile.listed,
        runs_per_vector=tile.runs_per_vector,
        steady=tile.steady,
        affine=affine,
        passes=tile.passes,
        columns=shape.columns,
        pitch=tile.folded_pitch,
        skew=tile.skew if shape.shifts[1] or tile.run_size else 0,
        together=shape.together,
        step=shape.step,
        grouped=grouping is not None,
        staged=staged > 0,
    )
    return ThreadLaunch(kernel, math.prod(shape.counts), tables, head, body, source_reach(refinement, element))


def pairs_up(refinement: Refinement) -> bool:
    """Whether elements 2k and 2k + 1 of the destination are adjacent in its first mode, for any address."""
    if not refinement.modes or refinement.starts[1] % 2:
        return False
    first, *others = refinement.modes
    steps = [m.destination for m in others] + [d for _, d in refinement.rest[1]]
    swizzle = refinement.swizzles[1]
    kept = not swizzle.bits or not (swizzle.yyy_mask | swizzle.zzz_mask) & 1
    return first.destination == 1 and first.size % 2 == 0 and not any(d % 2 for d in steps) and kept


def nibble_launches(refinement: Refinement, flips: tuple[int, int]) -> tuple[ThreadLaunch, ...]:
    """Return the launches of a copy of single 4-bit elements: one launch for both elements of a byte, or one for each
    half.

    flips: for (source, destination), 1 if the first element of a byte is in the upper half of the byte.
    """
    if pairs_up(refinement):
        first, *others = refinement.modes
        halved = CopyMode(first.size // 2, 2 * first.source, 2)
        return (_runs(refinement, 1, 1, (halved, *others), (*flips, 0, 0, first.source), (True, True)),)
    return tuple(_runs(refinement, 1, 1, refinement.modes, (*flips, half, 0, 0), (True, False)) for half in (0, 1))


def gathered_launch(refinement: Refinement, element: int, vector: int) -> ThreadLaunch:
    """Return the launch of a copy by destination vectors of `vector` bytes whose elements are not adjacent in the
    source.

    Neighbouring threads read the same sector of the source, and write the same sector of the destination.
    """
    first, *others = refinement.modes
    per, sector = vector // element, SECTOR_BYTES // element
    head = CopyMode(first.size // per, first.source * per, first.destination * per)
    lanes, rest, wanted = [], [head, *others], sector
    for i in sorted(range(1, len(rest)), key=lambda i: abs(rest[i].source)):
        if wanted > 1:
            lane, rest[i] = _split(rest[i], wanted)
            lanes.append(lane)
            wanted = -(-wanted // lane.size)
    beside, rest[0] = _split(head, max(1, sector // per))
    modes = [m for m in (*lanes, beside, *rest) if m.size > 1]
    return _runs(refinement, element, per, modes, (0, 0, 0, 0, first.source * element), gathered=per)


def _split(mode: CopyMode, count: int) -> tuple[CopyMode, CopyMode]:
    """Split a mode into parts of `count` elements and a mode over the parts; keep the mode if `count` does not divide
    its size."""
    count = count if mode.size % count == 0 else mode.size
    return replace(mode, size=count), CopyMode(mode.size // count, mode.source * count, mode.destination * count)


def runs_launch(refinement: Refinement, element: int, vector: int) -> ThreadLaunch:
    """Return the launch of a copy by vectors of `vector` bytes that are contiguous on both sides."""
    modes, per = list(refinement.modes), vector // element
    if per > 1:
        modes[0] = CopyMode(modes[0].size // per, modes[0].source * per, modes[0].destination * per)
    return _runs(refinement, element, per, modes)


def _runs(
    refinement: Refinement,
    element: int,
    per: int,
    modes: Sequence[CopyMode],
    halves: tuple[int, ...] = (0, 0, 0, 0, 0),
    nibbles: tuple[bool, bool] = (False, False),
    gathered: int = 1,
) -> ThreadLaunch:
    """Return the launch of a copy of vectors of `per` elements; the index of a vector counts through `modes`."""
    total = math.prod(m.size for m in modes) * math.prod(n for n, _ in refinement.rest[0])
    steps = [abs(d) for _, d in refinement.rest[1]]
    before = [m for m in modes if not steps or m.destination < min(steps)]
    after = [m for m in modes if m not in before]
    digits = [_digit(m.size, m.source * element, m.destination * element) for m in before]
    digits += [_digit(n, 0, d * element) for n, d in refinement.rest[1]]
    digits += [_digit(n, d * element, 0) for n, d in refinement.rest[0]]
    digits += [_digit(m.size, m.source * element, m.destination * element) for m in after]
    kernel = copy_runs(
        per * element,
        general=bool(steps),
        wide=total >= 2**31,
        swizzled=_swizzled(refinement),
        nibbles=nibbles[0],
        paired=nibbles[1],
        gathered=gathered,
        few=total <= ALONE,
    )
    threads = int(str(kernel.facts["THREADS"])) * int(str(kernel.facts["LOADS"]))
    head = (
        total,
        *(start * element for start in refinement.starts),
        *(len(before), len(after), len(refinement.rest[0]), len(refinement.rest[1])),
        *_masks(refinement.swizzles, element),
        *halves,
    )
    body = b"".join(digits).ljust(2 * MAX_DIGITS * DIGIT.size, b"\0")
    return ThreadLaunch(kernel, -(-total // threads), b"", head, body, 0)
