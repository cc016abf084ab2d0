"""Choose the kernel and the tensor maps of a copy between two arrays from their addresses, shapes and strides.

    CopyModes (size, byte strides of both sides), addresses -> LaunchPlans, one for each launch

- A single contiguous run is cut into rows of 512 bytes; threads copy the last bytes, at most 511, one by one (256 and
  255 if the source starts between two 16-byte boundaries).
- If both sides have the same innermost mode, the copy moves tiles of that mode and its neighbours as 8-byte words. If
  the source starts between two 16-byte boundaries, the realigning kernel does this.
- If the sides have different innermost modes, the transposing kernel copies.
- If rows are not a multiple of 16 bytes, one of these kernels copies the full 16-byte units, and threads copy the
  remaining 1 to 15 bytes of each row, because a tensor store writes full units.

If the sizes of a transposing copy are multiples of 128-byte lines, its maps have an additional mode, (line, lines of a
row, rows). One instruction then moves a whole row of a tile instead of a single box.

Below `CROSSOVER` bytes, a grid of one-shot blocks is faster, and above it, the ring kernel. The tile sizes are the
fastest of those measured on NVIDIA H200. If no tensor map can describe a copy, the error names the mode and the number
that prevent it.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import Final, TypedDict

from cute_py.argument_checks import record
from cute_py.copies.modes import CopyMode
from cute_py.diagnostics import Diagnostic, refuse
from cute_py.errors import TmaLimitError
from cute_py.gpu.kernels.copy import copy_once
from cute_py.gpu.kernels.edges import EDGE_THREADS, copy_edges
from cute_py.gpu.kernels.realign import copy_realigned
from cute_py.gpu.kernels.ring import copy_ring
from cute_py.gpu.kernels.source import KernelSource
from cute_py.gpu.kernels.transpose import ROW_BYTES, STAYING_TILES, TILES, copy_transposed, fitting_blocks
from cute_py.gpu.kernels.walk import cover
from cute_py.tma.descriptor.data_types import UNSIGNED, L2Promotion, TensorMapSwizzle
from cute_py.tma.descriptor.limits import STORE_UNIT, bounds
from cute_py.tma.descriptor.request import TensorMapTiled

ROW: Final = 512
"""Bytes of a row of a tile. Measured on NVIDIA H200: 128-byte rows cost 2 to 4 %, wider ones gain nothing."""

HINTS: Final = ("evict_last", "evict_first")
"""Cache policies of loads and stores with `hints=True`. Large copies are 1 % faster, but later kernels find less of
their data in L2. Measured on NVIDIA H200."""


class HintArguments(TypedDict, total=False):
    """Keyword arguments that set a kernel's L2 cache policies."""

    load_hint: str
    store_hint: str


def hint_arguments(on: bool) -> HintArguments:
    """Return the kernel arguments for the policies `HINTS`, or no arguments if `on` is False."""
    return {"load_hint": HINTS[0], "store_hint": HINTS[1]} if on else {}


@record
class Tuning:
    """Tiling of a copy. A field that is None takes the value that was measured to be fastest for the size of the copy.

    form: "once" or "ring". row_bytes, rows: the size of a tile. stages, stores, per_multiprocessor, early: parameters
        of the ring. per_block: the number of tiles of a one-shot block. hints: whether to use cache policies. pitch:
        the largest distance in bytes between two rows of a ring's tile in a contiguous run; 0 makes the rows adjacent.
        pad_shared: extra shared memory that a one-shot block requests, so that fewer blocks run on an SM. paired:
        whether a transposing copy moves a whole row of a tile with one instruction if the sizes allow it.
    """

    form: str | None = None
    row_bytes: int = ROW
    rows: int | None = None
    stages: int = 3
    stores: int = 0
    per_multiprocessor: int = 1
    per_block: int = 1
    hints: bool = False
    pitch: int = 16 * ROW
    pad_shared: int = 0
    early: bool = True
    paired: bool = True


MEASURED_BEST: Final = Tuning()
"""Tiling with the best measured values for each size."""


@record
class LaunchPlan:
    """One launch of a copy. `tail` is (source address, destination address, number of bytes) of bytes that threads move
    one by one.

    form: "once", "ring", "realigned", "transposed", or "edges", which has no maps: threads move all bytes. maps: the
        tensor maps of source and destination. bytes: number of bytes of the copied elements.
    """

    form: str
    kernel: KernelSource
    maps: tuple[TensorMapTiled, TensorMapTiled] | None
    blocks: int
    bytes: int
    why: str
    tail: tuple[int, int, int] = field(default=(0, 0, 0))


def count_units(value: int, unit: int) -> int:
    """Return value / unit, rounded up."""
    return -(-value // unit)


def _maps(
    source: int, destination: int, modes: tuple[CopyMode, ...], box: tuple[int, ...], shift: int = 0
) -> tuple[TensorMapTiled, TensorMapTiled]:
    """Return the tensor maps of both sides, in 8-byte elements. With `shift`, the source's map starts `shift` bytes
    before the source. Its rows are `shift` bytes wider, and its boxes 16 bytes wider, because a shifted row touches one
    more unit."""
    kind, promotion, sizes = UNSIGNED[WORD], L2Promotion.B128, tuple(mode.size for mode in modes)
    load_sizes, load_box = sizes, box
    if shift:
        load_sizes = (count_units(shift + sizes[0] * WORD, WORD), *sizes[1:])
        load_box = (box[0] + 16 // WORD, *box[1:])
    steps = tuple(mode.source for mode in modes[1:]), tuple(mode.destination for mode in modes[1:])
    return (
        TensorMapTiled(kind, source - shift, load_sizes, steps[0], load_box, l2_promotion=promotion),
        TensorMapTiled(kind, destination, sizes, steps[1], box, l2_promotion=promotion),
    )


def split_rows(modes: tuple[CopyMode, ...], width: int) -> tuple[tuple[CopyMode, ...], tuple[CopyMode, ...]]:
    """Split the destination rows into full 16-byte units and a remainder; return the modes of both parts.

    Mode 0 is contiguous in the destination. A part without elements is empty.

    >>> split_rows((CopyMode(61, 2, 2), CopyMode(8, 128, 160)), 2)[1]
    (CopyMode(size=5, source=2, destination=2), CopyMode(size=8, source=128, destination=160))
    """
    whole = modes[0].size * width // STORE_UNIT * STORE_UNIT // width
    parts = [(replace(modes[0], size=size), *modes[1:]) if size else () for size in (whole, modes[0].size - whole)]
    return parts[0], parts[1]


def plan_edges(source: int, destination: int, modes: tuple[CopyMode, ...], width: int) -> LaunchPlan:
    """Plan a launch that moves elements of `width` bytes with one thread per byte."""
    kernel = copy_edges(((width, 1, 1), *((mode.size, mode.source, mode.destination) for mode in modes)))
    total = int(str(kernel.facts["TOTAL"]))
    why = f"a row has {modes[0].size * width} bytes, which is not a multiple of {STORE_UNIT}"
    return LaunchPlan(
        "edges",
        kernel,
        None,
        count_units(total, EDGE_THREADS),
        total,
        why,
        (source, destination, modes[0].size * width),
    )


def plan_transposed(
    source: int,
    destination: int,
    modes: tuple[CopyMode, ...],
    inner: int,
    width: int,
    tuning: Tuning,
    multiprocessors: int,
) -> LaunchPlan:
    """Plan a transposing copy: mode 0 is contiguous in the destination, and mode `inner` in the source.

    The destination rows must be multiples of 16 bytes. A one-shot block moves one tile. In the ring form, persistent
    blocks move all tiles, and the grid has as many blocks as fit on the multiprocessors.

    Raises:
        TmaLimitError: no tile exists for the element width.
    """
    if width not in TILES:
        must = f"be one of {', '.join(map(str, TILES))} in a transposing copy"
        refuse(TmaLimitError, [Diagnostic("element", "element", width, "bytes", must)])
    rows, columns = modes[0], modes[inner]
    others = [mode for index, mode in enumerate(modes) if index not in (0, inner)]
    batches = others[0].size if others else 1
    stays = tuning.form == "ring"
    total = rows.size * columns.size * batches * width
    tile, line = (STAYING_TILES if stays or total <= SMALL else TILES)[width], ROW_BYTES // width
    height, across = tile
    paired = tuning.paired and rows.size % line == 0 and columns.size % line == 0
    shared = any(mode.source % ROW_BYTES for mode in (rows, *others))
    band = BAND if shared and count_units(rows.size, height) >= BANDED_ROWS else 1
    blocks = count_units(rows.size, height) * count_units(columns.size, across) * batches
    stay = min(blocks, multiprocessors * fitting_blocks(tile, width)) if stays else None
    kernel = copy_transposed(
        *(rows.size, columns.size, width),
        batches=batches,
        tile=tile,
        band=band,
        paired=paired,
        stay=stay,
        **hint_arguments(tuning.hints),
    )

    def side(role: str, address: int, inner: CopyMode, outer: CopyMode, box: tuple[int, int]) -> TensorMapTiled:
        sizes = (inner.size, outer.size, *(mode.size for mode in others))
        strides = tuple(getattr(mode, role) for mode in (outer, *others))
        boxes = (line, box[1], *(1 for _ in others))
        if paired:
            sizes, strides = (line, inner.size // line, *sizes[1:]), (ROW_BYTES, *strides)
            boxes = (line, box[0] // line, *boxes[1:])
        swizzle, promotion = TensorMapSwizzle.B128, L2Promotion.B128
        return TensorMapTiled(UNSIGNED[width], address, sizes, strides, boxes, swizzle=swizzle, l2_promotion=promotion)

    maps = (
        side("source", source, columns, rows, (across, height)),
        side("destination", destination, rows, columns, (height, across)),
    )
    return LaunchPlan(
        "transposed",
        kernel,
        maps,
        stay or blocks,
        total,
        "the source and the destination have different innermost modes",
    )


BAND: Final = 8
"""Tiles of a source row that a transposing copy moves one after the other, if they share lines of the source and would
otherwise be at least `BANDED_ROWS` tiles apart. Measured on NVIDIA H200, 14 copies with 870 to 7000 tiles between
neighbours: 0.83 to 1.0 of the time; copies with 65 to 260 take up to 1.03."""
BANDED_ROWS: Final = 768
"""About this many tiles run at the same time."""

CROSSOVER: Final = 128 * 2**20
"""The ring is faster for copies of at least this many bytes. Measured on NVIDIA H200."""

WORD: Final = 8
"""Bytes of an element in a copy without transposition."""

SOURCE: Final = "CUDA driver API, cuTensorMapEncodeTiled"
STRIDE_MAX: Final = bounds("stride_range")[1]

REALIGNED_ROW: Final = 256
"""Largest row, in bytes, that the realigning kernel shifts in one step."""

FOLDED_ROW: Final = 128
"""Minimum length in bytes of the rows of a long run."""

SMALL: Final = 16 * 2**20
"""Largest copy in bytes with one-shot tiles of 4 KiB; larger copies have 2 KiB. 2 KiB are 2 % faster from memory (32
MiB and more), and 4 KiB are 4 % faster within L2 (8 MiB). Transposed tiles of 2-byte elements are then 64 x 64 elements
instead of 128 x 128, which is 20 % faster within L2. Measured on NVIDIA H200."""


def plan_boxes(
    source: int,
    destination: int,
    modes: tuple[CopyMode, ...],
    width: int,
    *,
    multiprocessors: int,
    tuning: Tuning | None = None,
) -> tuple[LaunchPlan, ...]:
    """Plan the launches that copy `modes` with tensor maps. Rows that are not a multiple of 16 bytes need a second
    launch.

    Args:
        source, destination: addresses of the first elements. modes: modes with strides in bytes; the destination's
            innermost mode is the first.
        width: bytes of an element.
    Raises:
        TmaLimitError: no TMA box can move the modes; the message names the mode that prevents it.
    """
    tuning = tuning or MEASURED_BEST
    if not modes:
        modes = (CopyMode(1, width, width),)
    _require_forward(modes)
    inner = [index for index, mode in enumerate(modes) if mode.source == width]
    turned = bool(inner) and inner[0] != 0
    if modes[0].destination != width:
        _refuse("destination", modes, width)
    if not inner:
        _refuse("source", modes, width)
    most = 3 if turned else 5
    if len(modes) > most:
        found = Diagnostic(
            "rank", "modes", len(modes), requirement=f"be at most {most} after neighbouring modes are merged"
        )
        refuse(TmaLimitError, [found])
    _require_aligned("destination", destination, modes, [mode.destination for mode in modes[1:]])
    if len(modes) == 1:
        return tuple(_flat(source, destination, modes[0].size * width, multiprocessors, tuning))
    whole, rest = split_rows(modes, width)
    if not whole:
        size, why = (
            modes[0].size * width,
            "a store writes units of 16 bytes, so it would overwrite the bytes after each row",
        )
        how = f"{modes[0].size} elements x {width} bytes"
        refuse(TmaLimitError, [Diagnostic("row", "row", size, "bytes", "be at least 16", why, detail=how)])
    strides = [mode.source for index, mode in enumerate(modes) if index != inner[0]]
    _require_aligned("source", source if turned else source - source % 16, modes, strides)
    run = whole[0].size * width
    words = (CopyMode(run // WORD, WORD, WORD), *whole[1:])
    if turned:
        plans = [plan_transposed(source, destination, whole, inner[0], width, tuning, multiprocessors)]
    elif source % 16:
        plans = [_realigned(source, destination, words, tuning)]
    else:
        plans = [_tiled(source, destination, words, multiprocessors, tuning)]
    if rest:
        first = whole[0].size
        plans.append(
            plan_edges(source + first * modes[0].source, destination + first * modes[0].destination, rest, width)
        )
    return tuple(plans)


def _require_forward(modes: tuple[CopyMode, ...]) -> None:
    found = [
        Diagnostic("stride", "source stride", mode.source, "bytes", "not be negative", SOURCE, index)
        for index, mode in enumerate(modes)
        if mode.source < 0
    ]
    refuse(TmaLimitError, found)


def _refuse(role: str, modes: tuple[CopyMode, ...], width: int) -> None:
    strides = [mode.source if role == "source" else mode.destination for mode in modes]
    text = f"no mode of the {role} is contiguous; the innermost mode of a tensor map must have a stride of one element"
    facts: dict[str, object] = {"strides": f"{', '.join(map(str, strides))} bytes", "element": f"{width} bytes"}
    refuse(TmaLimitError, [Diagnostic("contiguous", role, text=text, facts=facts)])


def _require_aligned(role: str, address: int, modes: tuple[CopyMode, ...], strides: list[int]) -> None:
    found = []
    if address % 16:
        text = f"the {role} address {address:#x} is {address % 16} bytes past a multiple of 16"
        found.append(Diagnostic("address", f"{role} address", address, "bytes", text=text, source=SOURCE))
    name = f"{role} stride"
    found += [Diagnostic("stride", name, s, "bytes", "be a multiple of 16", SOURCE) for s in strides if s % 16]
    found += [Diagnostic("stride", name, s, "bytes", "be below 2**40", SOURCE) for s in strides if s > STRIDE_MAX]
    sizes = [mode.size for mode in modes if mode.size > 2**32]
    found += [Diagnostic("size", "size", size, "elements", "be at most 2**32", SOURCE) for size in sizes]
    fix = _fix(role, address, strides)
    if found and fix:
        found[0] = replace(found[0], fixes=(fix,))
    refuse(TmaLimitError, found)


def _fix(role: str, address: int, strides: list[int]) -> str | None:
    """Return the changes of start address and row strides that let tensor maps describe an array; None if none is
    needed."""
    ragged = [f"{s} bytes to {s + -s % 16}" for s in strides if s % 16]
    fixes = [f"make the {role} start at a multiple of 16 bytes"] * bool(address % 16)
    fixes += [f"pad the rows of the {role}: {', '.join(ragged)}"] * bool(ragged)
    return "; ".join(fixes) or None


def _rows(size: int, row: int) -> tuple[int, int, int]:
    """Cut a run of `size` bytes (at least 16) into rows of `row` bytes, or into one row if the run is shorter.

    Returns (bytes of a row, rows, bytes left).
    """
    if size < row:
        row = size // 16 * 16
    return row, size // row, size % row


def _flat(source: int, destination: int, size: int, sms: int, tuning: Tuning) -> list[LaunchPlan]:
    """Plan the copy of one contiguous run of `size` bytes: full rows of `row_bytes`, and the remaining bytes."""
    if size < 16:
        return [plan_edges(source, destination, (CopyMode(size, 1, 1),), 1)]
    row, rows, tail = _rows(size, REALIGNED_ROW if source % 16 else tuning.row_bytes)
    modes = (CopyMode(row // WORD, WORD, WORD), CopyMode(rows, row, row))
    done = size - tail
    if source % 16:
        rest = [plan_edges(source + done, destination + done, (CopyMode(tail, 1, 1),), 1)] if tail else []
        return [_realigned(source, destination, modes, tuning), *rest]
    if (tuning.form or _form(size)) == "ring":
        modes = _apart(row, rows, tuning)
    plan = _tiled(source, destination, modes, sms, tuning, tail)
    return [replace(plan, tail=(source + done, destination + done, tail), bytes=size)]


def _apart(row: int, rows: int, tuning: Tuning) -> tuple[CopyMode, CopyMode]:
    """Return the modes of a ring's walk through a run of adjacent rows. Tiles whose rows are not adjacent are 0.5 %
    faster than contiguous tiles if the ring walks along the rows."""
    apart = math.gcd(rows, max(tuning.pitch // row, 1))
    row, rows = row * apart, rows // apart
    return CopyMode(row // WORD, WORD, WORD), CopyMode(rows, row, row)


def _folded(modes: tuple[CopyMode, ...], form: str, rows: int, tuning: Tuning) -> tuple[CopyMode, ...]:
    """Return the modes, with the first mode split into rows if the other modes can't fill a tile of `rows` rows."""
    run = WORD * modes[0].size
    row = max((size for size in range(16, tuning.row_bytes + 1, 16) if run % size == 0), default=run)
    enough = math.prod(mode.size for mode in modes[1:]) >= min(rows, run // row)
    if enough or row < FOLDED_ROW or len(modes) == bounds("rank")[1]:
        return modes
    if form == "ring":
        return (*_apart(row, run // row, tuning), *modes[1:])
    return (CopyMode(row // WORD, WORD, WORD), CopyMode(run // row, row, row), *modes[1:])


def _form(size: int) -> str:
    return "ring" if size >= CROSSOVER else "once"


def _box(modes: tuple[CopyMode, ...], row_bytes: int, tile_bytes: int) -> tuple[int, ...]:
    """Return the box in 8-byte elements: rows of at most `row_bytes`, and as many rows as fill the tile."""
    run = WORD * modes[0].size
    inner = 16 * count_units(count_units(run, count_units(run, row_bytes)), 16)
    box = [inner // WORD]
    budget = max(tile_bytes // inner, 1)
    for mode in modes[1:]:
        box.append(max(1, min(mode.size, 256, budget)))
        budget //= box[-1]
    return tuple(box)


def _tiled(
    source: int, destination: int, modes: tuple[CopyMode, ...], sms: int, tuning: Tuning, tail: int = 0
) -> LaunchPlan:
    """Plan the copy of `modes` of 8-byte elements."""
    total = WORD * math.prod(mode.size for mode in modes)
    form = tuning.form or _form(total)
    rows = tuning.rows or (32 if form == "ring" else 8 if total <= SMALL else 4)
    modes = _folded(modes, form, rows, tuning)
    sizes = tuple(mode.size for mode in modes)
    box = _box(modes, tuning.row_bytes, rows * tuning.row_bytes)
    walk = cover(sizes, box)
    tile_bytes = WORD * math.prod(box)
    kernel: KernelSource
    if form == "ring":
        blocks = min(sms * tuning.per_multiprocessor, walk.tiles)
        kernel = copy_ring(
            walk,
            tile_bytes,
            blocks=blocks,
            stages=tuning.stages,
            stores=tuning.stores,
            early=tuning.early,
            tail_bytes=tail,
            **hint_arguments(tuning.hints),
        )
    else:
        blocks = count_units(walk.tiles, tuning.per_block)
        kernel = copy_once(
            walk,
            tile_bytes,
            per_block=tuning.per_block,
            tail_bytes=tail,
            **hint_arguments(tuning.hints),
            pad_shared=tuning.pad_shared,
        )
    side = "at least" if total >= CROSSOVER else "below"
    why = f"{total} bytes, {side} {CROSSOVER}" if tuning.form is None else "the tuning requests this form"
    return LaunchPlan(form, kernel, _maps(source, destination, modes, box), blocks, total, why)


def _realigned(source: int, destination: int, modes: tuple[CopyMode, ...], tuning: Tuning) -> LaunchPlan:
    """Plan the copy of `modes` of 8-byte elements if the source starts between two 16-byte boundaries."""
    shift, run = source % 16, WORD * modes[0].size
    row = min(run, REALIGNED_ROW)
    if run % row:
        row = max(size for size in range(16, REALIGNED_ROW + 1, 16) if run % size == 0 or size == 16)
    rows = 16 if row >= 128 else 64
    box = (row // WORD, rows, *(1 for _ in modes[2:]))
    walk = cover(tuple(mode.size for mode in modes), box)
    kernel = copy_realigned(walk, row, rows, shift, element_bytes=WORD, **hint_arguments(tuning.hints))
    maps, total = _maps(source, destination, modes, box, shift), WORD * math.prod(mode.size for mode in modes)
    why = f"the source starts {shift} bytes past a multiple of 16"
    return LaunchPlan("realigned", kernel, maps, walk.tiles, total, why)
