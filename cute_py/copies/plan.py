"""The function `plan_copy`, which plans a copy between two layouts without their addresses.

    layouts -> refine -> Refinement -> boxes of tensor maps | tiles by threads | runs by threads -> CopyPlan
    layouts, formats -> scaled: tiles, rows or whole rows by threads, with arithmetic between load and store -> CopyPlan

- boxes: if tensor maps can describe both sides (affine copies of 16-byte units), the copy engine moves tiles.
- tile: if the two sides are contiguous along different modes, threads transpose tiles in shared memory. Any alignment
  is possible.
- runs: if both sides share their contiguous runs, threads move vectors. In general copies, and in copies without a
  tile, threads move single elements.

A plan has no addresses; `launches_of` returns the kernels for two addresses.

Constants with the note "Measured on NVIDIA H200" are measured values. To measure one again, run `python -m
benchmarks.relayout` on a GPU with each value in turn, and compare the rows.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import dataclass, field, replace

from cute_py.argument_checks import expect, expect_integers
from cute_py.copies.boxes import WORD, LaunchPlan, Tuning, plan_boxes
from cute_py.copies.modes import (
    NIBBLE,
    NIBBLES,
    CopyMode,
    PairedElements,
    Pairing,
    Refinement,
    pair_elements,
    side_bounds,
)
from cute_py.copies.scaled.plan import ScaledLaunch
from cute_py.copies.shared_layout import WIDEST
from cute_py.copies.thread_kernels import (
    FEW,
    ThreadLaunch,
    gathered_launch,
    nibble_launches,
    pairs_up,
    runs_launch,
    tile_launch,
)
from cute_py.copies.tile import BlockTile, best_tile, candidate_tiles, copy_time
from cute_py.copies.tile_shape import widths_of
from cute_py.dtypes import DType, DTypeLike, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, TmaLimitError, counted, given
from cute_py.formats.format import Format
from cute_py.layout.arguments import LayoutLike
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int
from cute_py.targets import LINE_BYTES, MULTIPROCESSORS, SECTOR_BYTES, Target, Targets, architecture
from cute_py.tma.descriptor.limits import STORE_UNIT

TURNED_BY_THREADS = 4 << 20
"""Largest transposing copy, in bytes, that threads finish before the copy engine would start. Measured on NVIDIA
H200."""
TURNED_STEP = SECTOR_BYTES
"""If a stride is not a multiple of this many bytes, threads are faster in a transposing copy: 0.87 to 1.02 of the time.
Measured on NVIDIA H200, 12 copies."""
SHARED_BY_THREADS = 16 << 20
"""Above this many bytes, threads move shared runs in vectors of 16 bytes, if the runs are short or are not whole lines.
For runs that are not whole lines, all copies but one are 2 to 9 % faster than with the copy engine. Measured on NVIDIA
H200, 31 copies."""
SHORT_RUN = 1024
"""Maximum bytes of a short run. With rows of 32 KiB, threads are 2 % slower than the copy engine, and cache hints gain
another 2 %."""
PER_BYTE = 0.066
"""Fraction of a memcpy's rate for each byte of a vector, if a thread computes the offsets of a vector by division.
Measured on NVIDIA H200."""
SHARED_RUN = 128
"""Minimum bytes of a run of both sides that threads move directly."""
SHARED_VECTOR = 8
"""Minimum bytes of the vectors of such a run; a vector also has two elements, or 16 bytes. With narrower vectors, tiles
are 1.4 to 2.8 times as fast. Measured on NVIDIA H200, 25 copies."""
SOURCE, DESTINATION = 1 << 40, 1 << 44
"""Placeholder addresses in the tensor maps of a plan."""

_DEFAULT = architecture("sm_90a")


@dataclass(frozen=True, slots=True)
class CopyPlan(PairedElements):
    """The kernels that a copy uses, and its estimated cost.

    Attributes:
        form: 'affine', 'linear' or 'general', as in `Refinement.form`; 'scaled' for a copy that computes or uses an
            index. kernel: 'boxes', 'tile', 'runs', or 'none' if there is nothing to copy; for 'scaled' also 'rows' and
            'whole'.
        launches: the number of kernels that one copy enqueues. source_vector, destination_vector: bytes per thread
            access on that side; for boxes, the bytes of a row of a box.
        tile: the layout from a coordinate in a tile to the index of the element in the destination's order.
        shared_layout: the layout from the same coordinates to offsets in shared memory, in elements; None if the kernel
            uses no shared memory.
        sectors: sectors of 32 bytes that (source, destination) touch; an estimate if strides interleave. wavefronts:
            shared-memory wavefronts of the threads' accesses in all tiles.
        expected: the time of a memcpy of the same number of bytes divided by the time of this copy. The estimate comes
            from a model that was fitted to measured copies of 64 MiB and more (NVIDIA H200; half of them within 7 %).
        nibbles: for 4-bit elements, the half of a byte ('low' or 'high') that holds the first element, for (source,
            destination).
        bits: the width of the unit that the refinement counts: an element, or a byte if 4-bit elements move in pairs.
        why: the reason for the choice of the kernel. scaled: the launch of a copy that computes; then `bytes` counts
            the bytes read and written.
    """

    source: LayoutLike
    destination: LayoutLike
    dtype: DType
    form: str
    kernel: str
    launches: int
    source_vector: int
    destination_vector: int
    tile: Layout
    shared_layout: Layout | ComposedLayout | None
    sectors: tuple[int, int]
    wavefronts: int
    expected: float
    why: str
    refinement: Refinement | None = field(repr=False)
    threads_tile: BlockTile | None = field(repr=False, default=None)
    nibbles: tuple[str, str] = NIBBLES
    bits: int = 8
    scaled: ScaledLaunch | None = field(repr=False, default=None)

    @property
    def bytes(self) -> int:
        """Number of bytes of the elements; for a copy that computes, the bytes read and written."""
        return super(CopyPlan, self).bytes if self.scaled is None else self.scaled.moved

    @property
    def orders(self) -> tuple[Layout, Layout]:
        """Layouts from a coordinate in a tile to the element's index in the order of the source, and in the order of
        the destination."""
        tile = self.threads_tile
        if tile is None:
            return self.tile, self.tile
        inside = [i for i, t in enumerate(tile.shape.extents) if t > 1]
        extents = tuple(tile.shape.extents[i] for i in inside) or (1,)
        found = []
        for order in tile.shape.orders:
            steps, step = dict.fromkeys(inside, 0), 1
            for m in order:
                steps[m], step = step, step * tile.shape.extents[m]
            found.append(Layout(extents, tuple(steps[i] for i in inside) or (1,)))
        return found[0], found[1]

    def explain(self) -> str:
        """Describe each line of the plan, and the reason for each choice."""
        means = {
            "boxes": "The TMA engine moves the tiles by tensor maps; threads move no data.",
            "turned": "The TMA engine loads and stores the tiles by tensor maps; in between, threads transpose them in "
            "shared memory.",
            "tile": "A block reads a tile in the order of the source, and writes it from shared memory in the "
            "order of the destination.",
            "runs": "A thread moves one vector, and computes both addresses by division.",
            "rows": "A lane holds 16 elements of a row; the lanes of a block find the row's largest magnitude by "
            "shuffles.",
            "whole": "A thread block holds a row in registers, and finds its largest magnitude.",
            "none": "The copy has no elements.",
        }
        forms = {
            "affine": "Both layouts have a common refinement: one list of modes that both sides walk.",
            "linear": "One side is swizzled: its offset is the exclusive or of some bits with the offset in the "
            "common modes.",
            "general": "The sizes have no common refinement: each side divides the index by its own sizes.",
            "scaled": "The kernel computes between the load and the store, or an index selects the rows.",
        }
        turned = self.kernel == "boxes" and self.refinement is not None and self.refinement.modes[0].source != 1
        return f"{self}\n\n{forms[self.form]} {means['turned' if turned else self.kernel]}"

    def __str__(self) -> str:
        launches = "1 launch" if self.launches == 1 else f"{self.launches} launches"
        head = f"{self.form} copy of {self.bytes} bytes ({self.dtype}): {self.kernel}, {launches}"
        if self.nibbles != NIBBLES:
            head += (
                f", first element of a byte in the {self.nibbles[0]} half of the source, in the "
                f"{self.nibbles[1]} half of the destination"
            )
        if self.scaled is not None:
            launch = self.scaled
            head += f"\n  why          {self.why}\n  blocks       {launch.blocks} of {launch.kernel.threads} threads"
            return f"{head}\n  vectors      {self.source_vector} bytes of the source, {self.destination_vector} written"
        if self.refinement is None:
            return head
        modes = " ".join(f"{m.size}:({m.source},{m.destination})" for m in self.refinement.modes)
        rest = self.refinement.rest
        lines = [
            head,
            f"  why          {self.why}",
            f"  modes        {modes or '1'}    size:(source, destination stride), elements",
        ]
        if rest[0]:
            sides = [" ".join(f"{n}:{d}" for n, d in side) for side in rest]
            lines.append(f"  in between   source {sides[0]}, destination {sides[1]}: no common refinement")
        units = "box rows     " if self.kernel == "boxes" else "vectors      "
        read = counted(self.source_vector, "byte")
        lines.append(f"  {units}{read} of the source, {self.destination_vector} of the destination")
        if self.kernel != "boxes":
            lines.append(f"  tile         {self.tile}")
        if self.shared_layout is not None:
            lines.append(f"  shared       {self.shared_layout}, {self.wavefronts} wavefronts in all")
        lines += [
            f"  sectors      {self.sectors[0]} read, {self.sectors[1]} written, of 32 bytes",
            f"  expected     {100 * self.expected:.0f} % of the rate of a large memcpy, estimated for an NVIDIA H200",
        ]
        return "\n".join(lines)


def plan_copy(
    source_layout: LayoutLike | Format,
    destination_layout: LayoutLike | Format | tuple[Format, ...],
    dtype: DTypeLike,
    *,
    alignment: tuple[int, int] = (16, 16),
    arch: str = "sm_90a",
    nibbles: tuple[str, str] = NIBBLES,
    cast_to: DTypeLike | None = None,
    rows: int | None = None,
    into_rows: int | None = None,
) -> CopyPlan:
    """Plan the copy of one layout into another of the same size.

    Args:
        source_layout, destination_layout: layouts coordinate -> offset in elements, plain or with one swizzle. Either
            may be a `Format`, and the destination may be a tuple of formats: then the copy quantises a layout (M, K),
            or dequantises.
        dtype: an element type of 4 bits, or of 1, 2, 4, 8 or 16 bytes; with a format, the element type of the other
            side.
        alignment: the alignment in bytes of offset 0 of (source, destination); powers of two.
        arch: the target architecture. Architectures before sm_90 have no tensor maps, and no copies that compute.
        nibbles: for 4-bit elements, the half of a byte that holds the first of its two elements, for (source,
            destination): 'low' (as in CUDA) or 'high'.
        cast_to: the element type of the destination, if it differs. rows, into_rows: the length of an index that
            selects rows of the source, or of the destination.
    Raises:
        InvalidValueError: sizes differ, the destination overlaps itself, the element has another width, or the
            architecture is unknown.
        InvalidTypeError: an argument is not a layout of known integers. LayoutError: a composition is not a swizzled
            layout.

    >>> plan = plan_copy(Layout((2048, 1024), (1024, 1)), Layout((2048, 1024)), "float32")
    >>> plan.form, plan.kernel, plan.launches
    ('affine', 'boxes', 1)
    >>> plan_copy(Layout((6, 10), (10, 1)), Layout((4, 15), (15, 1)), "float32").form
    'general'
    >>> print(plan_copy(Layout((4096, 4096), (4096, 1)), cute.formats.mxfp8(), "bfloat16"))
    scaled copy of 50855936 bytes (bfloat16): rows, 1 launch
      why          each block is within a row, and no output is transposed
      blocks       2048 of 256 threads
      vectors      32 bytes of the source, 16 written
    """
    parts = destination_layout if isinstance(destination_layout, tuple) else (destination_layout,)
    computed = any(isinstance(one, Format) for one in (source_layout, *parts))
    known = architecture(expect(arch, str, "arch"))
    if computed or any(one is not None for one in (cast_to, rows, into_rows)):
        if not Targets.FROM_90.has(known):
            raise InvalidValueError(f"arch = {arch}; the kernels of a copy that computes need {Targets.FROM_90.value}")
        return _computing(source_layout, destination_layout, dtype, cast_to, rows, into_rows)
    if isinstance(source_layout, Format) or isinstance(destination_layout, (Format, tuple)):
        raise InvalidTypeError(f"the destination must be a Layout or a Format, got {given(destination_layout)}")
    kind = as_dtype(dtype)
    pair = expect_integers(alignment, "alignment", 1, count=2, unit="bytes")
    if any(a & (a - 1) for a in pair):
        raise InvalidValueError(f"alignment = {alignment}; must be powers of two")
    return plan_pairing(pair_elements(source_layout, destination_layout, kind, nibbles), (pair[0], pair[1]), known)


def _computing(
    source: LayoutLike | Format,
    destination: LayoutLike | Format | tuple[Format, ...],
    dtype: DTypeLike,
    cast_to: DTypeLike | None,
    rows: int | None,
    into_rows: int | None,
) -> CopyPlan:
    """Plan a copy that computes or uses an index."""
    from cute_py.copies.scaled.format_plan import plan_formats

    launch, first, second, vectors = plan_formats(source, destination, dtype, cast_to, rows, into_rows)
    sectors = -(-launch.moved // SECTOR_BYTES)
    kernel, launches = (launch.name, 1) if launch.blocks else ("none", 0)
    return CopyPlan(
        *(first, second, as_dtype(dtype), "scaled", kernel, launches, *vectors),
        *(Layout(1), None, (sectors, 0), 0, 0.95 if launch.name == "rows" else 0.92, launch.why, None),
        scaled=launch,
    )


def plan_pairing(pairing: Pairing, alignment: tuple[int, int], arch: Target = _DEFAULT) -> CopyPlan:
    """Plan a copy, as `plan_copy` does, from elements that are already paired."""
    return _planned(pairing, min(alignment[0], WIDEST), min(alignment[1], WIDEST), arch)


@functools.lru_cache(maxsize=1024)
def _planned(pairing: Pairing, source_alignment: int, destination_alignment: int, arch: Target) -> CopyPlan:
    alignment = source_alignment, destination_alignment
    source, destination, dtype = pairing.source, pairing.destination, pairing.dtype
    refinement, bits, nibbles = pairing.refinement, pairing.bits, pairing.nibbles
    has_tma = Targets.FROM_90.has(arch)
    element = max(bits // 8, 1)
    if refinement is None:
        return CopyPlan(
            *(source, destination, dtype, "affine", "none", 0, element, element),
            *(Layout(1), None, (0, 0), 0, 1.0, "no element", None),
        )

    def made(kernel: str, launches: int, vectors: tuple[int, int], why: str, tile: BlockTile | None = None) -> CopyPlan:
        plan = _costed(source, destination, dtype, refinement, kernel, launches, vectors, why, tile, bits)
        return replace(plan, nibbles=nibbles, bits=bits)

    if bits == NIBBLE:
        paired = pairs_up(refinement)
        why = "the destination packs two 4-bit elements in a byte" if paired else ("elements of 4 bits, one at a time")
        return made("runs", 1 if paired else 2, (1, 1), why)

    size, limits = refinement.count * element, _limits(refinement, element, alignment)
    vector = shared_vector(refinement, element, min(limits))
    first = refinement.modes[0] if refinement.modes else CopyMode(1, 1, 1)
    run = first.size * element if first.source == first.destination == 1 else 0
    if first.source != 1:
        by_threads = size <= TURNED_BY_THREADS
    else:
        by_threads = len(refinement.modes) > 1 and size > SHARED_BY_THREADS and vector == WIDEST
        by_threads = by_threads and (run <= SHORT_RUN or run % LINE_BYTES > 0)
    boxes = None if by_threads or not has_tma else _boxes(refinement, element, alignment)
    if boxes is not None:
        maps = boxes[0].maps
        row = 16 if maps is None else maps[0].box_dim[0] * (WORD if first.source == 1 else element)
        return made("boxes", len(boxes), (row, row), boxes[0].why)
    if refinement.form == "general":
        return made("runs", 1, (vector, vector), "the sizes of the two layouts have no common refinement")
    if run >= SHARED_RUN and vector >= max(SHARED_VECTOR, min(2 * element, WIDEST)):
        return made("runs", 1, (vector, vector), f"both sides share runs of {run} bytes")
    gathered = gathered_vector(refinement, element, limits[1])
    pair = (vector, vector) if vector >= gathered else (element, gathered)
    if size <= FEW * pair[0]:
        return made("runs", 1, pair, "few vectors, each gathered by one thread")
    tile = best_tile(refinement, element, limits)
    if tile is None:
        return made("runs", 1, (vector, vector), "no tile gives each side a full sector")
    return made(
        "tile", 1, tile.shape.vectors, "the source and the destination are contiguous along different modes", tile
    )


def with_other_tiles(plan: CopyPlan, alignment: tuple[int, int], count: int) -> tuple[CopyPlan, ...]:
    """Return a plan whose kernel is 'tile', and then plans of the same copy with other tiles, `count` in all.

    alignment: the alignment of the addresses of (source, destination) in bytes, as in `plan_pairing`.
    """
    refinement, element = plan.refinement, max(plan.bits // 8, 1)
    if plan.threads_tile is None or refinement is None:
        return (plan,)
    limits = _limits(refinement, element, (min(alignment[0], WIDEST), min(alignment[1], WIDEST)))
    tiles = candidate_tiles(refinement, element, limits, count)
    arguments = plan.source, plan.destination, plan.dtype, refinement, plan.kernel, plan.launches
    found = [_costed(*arguments, tile.shape.vectors, plan.why, tile, plan.bits) for tile in tiles]
    return tuple([replace(one, nibbles=plan.nibbles, bits=plan.bits) for one in found])


def _limits(refinement: Refinement, element: int, alignment: tuple[int, int]) -> tuple[int, int]:
    """Return the widest access to each side, in bytes, that its address, strides and swizzle permit."""
    found = []
    for start, swizzle, aligned in zip(refinement.starts, refinement.swizzles, alignment, strict=True):
        limit = math.gcd(aligned, 16, start * element if start else 16)
        if swizzle.bits:
            limit = math.gcd(limit, element << min(swizzle.base, swizzle.base - min(swizzle.shift, 0)))
        found.append(max(limit, element))
    return found[0], found[1]


def shared_vector(refinement: Refinement, element: int, limit: int) -> int:
    """Return the size in bytes of the widest vector that is contiguous and aligned on both sides in the whole copy."""
    if not refinement.modes or refinement.modes[0].source != 1 or refinement.modes[0].destination != 1:
        return element
    steps = [refinement.modes[0].size]
    steps += [s for m in refinement.modes[1:] for s in (m.source, m.destination)]
    steps += [d for side in refinement.rest for _, d in side]
    per = math.gcd(*steps, limit // element)
    return element * (per & -per)


def gathered_vector(refinement: Refinement, element: int, limit: int) -> int:
    """Return the size in bytes of the widest destination vector whose elements have a constant stride in the source."""
    first, *others = refinement.modes or (CopyMode(1, 1, 1),)
    if first.destination != 1 or refinement.swizzles[0].bits:
        return element
    per = math.gcd(first.size, *(m.destination for m in others), limit // element)
    return max(w for w in widths_of(element) if (per & -per) * element % w == 0)


def _boxes(refinement: Refinement, element: int, alignment: tuple[int, int]) -> tuple[LaunchPlan, ...] | None:
    """Return the launches with tensor maps, if tensor maps suit the copy."""
    if refinement.form != "affine":
        return None
    modes = refinement.modes
    inner = next((m for m in modes if m.source == 1), None)
    if inner is None or modes[0].destination != 1:
        return None
    if min(inner.size, modes[0].size) * element < LINE_BYTES and refinement.count > 1:
        return None
    steps = [*(m.destination for m in modes[1:]), *(m.source for m in modes if m is not inner)]
    unit = STORE_UNIT if inner is modes[0] else TURNED_STEP
    if any(step * element % unit for step in steps):  # a refusal by `box_launches` would take longer
        return None
    addresses = tuple(
        base + start * element + (given % WIDEST)
        for base, start, given in zip((SOURCE, DESTINATION), refinement.starts, alignment, strict=True)
    )
    try:
        plans = box_launches(refinement, element, (addresses[0], addresses[1]), MULTIPROCESSORS)
    except TmaLimitError:
        return None
    return plans if len(plans) <= 2 else None


def box_launches(
    refinement: Refinement,
    width: int,
    addresses: tuple[int, int],
    multiprocessors: int,
    tuning: Tuning | None = None,
) -> tuple[LaunchPlan, ...]:
    """Return the tensor-map launches of an affine copy of elements of `width` bytes, given the addresses of the first
    elements.

    Raises:
        TmaLimitError: no tensor map can describe a side.
    """
    modes = tuple(CopyMode(m.size, m.source * width, m.destination * width) for m in refinement.modes)
    return plan_boxes(*addresses, modes, width, multiprocessors=multiprocessors, tuning=tuning)


def thread_launches(plan: CopyPlan) -> tuple[ThreadLaunch, ...]:
    """Return the launches of a plan whose kernel is 'tile' or 'runs'."""
    refinement = plan.refinement
    if refinement is None:
        raise InvalidValueError("a plan without elements launches nothing")
    if plan.threads_tile is not None:
        return (tile_launch(refinement, plan.threads_tile),)
    if plan.bits == NIBBLE:
        return nibble_launches(refinement, plan.flips)
    launch = runs_launch if plan.source_vector == plan.destination_vector else gathered_launch
    return (launch(refinement, plan.bits // 8, plan.destination_vector),)


def _sectors(refinement: Refinement, which: int, bits: int) -> int:
    """Return the number of sectors that one side touches, for elements of `bits` bits; each sector counts once."""
    name, sector = ("source", "destination")[which], 8 * SECTOR_BYTES
    steps = [(m.size, abs(getattr(m, name)) * bits) for m in refinement.modes]
    steps += [(n, abs(d) * bits) for n, d in refinement.rest[which]]
    span, apart = bits, list[tuple[int, int]]()
    for size, step in sorted(steps, key=lambda one: one[1]):
        if step - span < sector:  # the gap is shorter than a sector
            span += (size - 1) * step
        else:
            apart.append((size, step))
    begins = Counter({side_bounds(refinement, which)[0] * bits % sector: 1})  # start within a sector -> number of runs
    for size, step in apart:
        period, found = sector // math.gcd(step, sector), Counter[int]()
        for begin, count in begins.items():
            for i in range(min(size, period)):
                found[(begin + i * step) % sector] += count * -((i - size) // period)
        begins = found
    return sum(count * -(-(begin + span) // sector) for begin, count in begins.items())


def _costed(
    source: LayoutLike,
    destination: LayoutLike,
    dtype: DType,
    refinement: Refinement,
    kernel: str,
    launches: int,
    vectors: tuple[int, int],
    why: str,
    tile: BlockTile | None,
    bits: int,
) -> CopyPlan:
    element = max(bits // 8, 1)
    sectors = _sectors(refinement, 0, bits), _sectors(refinement, 1, bits)
    least = -(-refinement.count * bits // (8 * SECTOR_BYTES))
    wavefronts, picture = 0, Layout(vectors[1] // element if kernel == "runs" else 1)
    shared: Layout | ComposedLayout | None = None
    expected = 0.95
    if tile is not None:
        tiles = refinement.count / tile.shape.elements
        per_tile = sum(tile.wavefronts)
        wavefronts = round(tiles * per_tile)
        inside = [i for i, t in enumerate(tile.shape.extents) if t > 1]
        extents = tuple(tile.shape.extents[i] for i in inside) or (1,)
        picture = Layout(extents)
        modes = [tile.shared_mode(i) for i in inside] or [(1, 0)]
        places = Layout(tuple(n for n, _ in modes), tuple(d for _, d in modes))
        swizzle = tile.swizzle
        shared = ComposedLayout(swizzle.upcast(element), Int(0), places) if swizzle.bits else places
        expected = min(1.0, 1 / copy_time(tile))
    if kernel == "runs":
        expected = min(0.9, vectors[1] * (PER_BYTE if refinement.form == "general" else 1.5 * PER_BYTE))
    return CopyPlan(
        *(source, destination, dtype, refinement.form, kernel, launches, vectors[0], vectors[1]),
        *(picture, shared, sectors, wavefronts, expected * min(1.0, 2 * least / max(sum(sectors), 1))),
        *(why, refinement, tile),
    )
