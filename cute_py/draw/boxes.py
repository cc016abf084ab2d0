"""Pictures of the boxes of a TMA atom: on the global tensor, and cut into the slices that the CTAs of a multicast
issue.

Tensors are drawn in TMA order: mode 0, the contiguous mode, runs across, and mode 1 runs down. For all other modes,
only index 0 is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cute_py.argument_checks import expect
from cute_py.draw.element_path import OUTSIDE, logical_of, tuple_text
from cute_py.draw.picture import Picture
from cute_py.draw.render_svg import CHARACTER
from cute_py.draw.table import TONES, Cell, Legend, cut_note, grid, hatch_legend, shown, tone_legend
from cute_py.errors import counted
from cute_py.layout.arguments import Tree
from cute_py.layout.leaf import value_of
from cute_py.layout.trees import leaves
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.tiles import FirstTile, first_tile, tile_steps

BOXES = 16
"""Maximum number of boxes that are drawn along one mode."""
LARGEST, SMALLEST, NARROWEST = 90.0, 26.0, 66.0
"""Pixels of a drawn box: its longer side, its smallest height and its smallest width."""
_FATE = {
    "load": "filled in shared memory, bytes counted",
    **dict.fromkeys(("store", "reduce"), "elements outside are not written"),
    "prefetch": "elements outside are not fetched",
}
SPACE = 640.0
"""Pixels for all boxes of one mode, if each box stays readable within them."""


@dataclass(frozen=True, slots=True)
class Start:
    """The first coordinate of a box along one TMA mode.

    Attributes:
        at: the coordinate. base: the coordinate of the corresponding box in the first tile.
        tile: (leaf of the tile modes, index) for each leaf where the box's tile differs from the first tile.
    """

    at: int
    base: int
    tile: tuple[tuple[int, int], ...]


def box_starts(work: FirstTile, mode: int) -> tuple[list[Start | None], int]:
    """Return the starts of the boxes along a TMA mode in ascending order, with None for a gap, and their total number.
    A mode that the tensor does not have gets one start at 0.
    """
    first = sorted({row[mode] for row in work.rows}) if mode < len(work.rows[0]) else [0]
    found = {at: Start(at, at, ()) for at in first}
    last, total = found[first[-1]], len(first)
    steps = tile_steps(work)
    for leaf, (n, d) in enumerate(zip(leaves(steps.shape), leaves(steps.stride), strict=True)):
        if getattr(d, "modes", ())[:1] != (mode,) or int(value_of(n)) == 1 or not int(d.value):
            continue  # the tiles do not step along this mode
        count, step = int(value_of(n)), int(d.value)
        total *= count
        near = [i for i in shown(count, 2 * BOXES) if i is not None]
        moved = [Start(s.at + i * step, s.base, (*s.tile, (leaf, i))) for s in found.values() for i in near]
        found = {start.at: start for start in reversed(moved)}
        last = Start(last.at + (count - 1) * step, last.base, (*last.tile, (leaf, count - 1)))
    found.setdefault(last.at, last)
    ordered = [found[at] for at in sorted(found)]
    count = max(len(ordered), total)
    kept = shown(count, BOXES)
    return [None if i is None else ordered[i] if i < BOXES else ordered[i - count] for i in kept], total


def _tile_coordinate(work: FirstTile, starts: Sequence[Start]) -> str:
    """Text of the coordinate of the tile that these starts belong to, in the tile modes of the divided tensor."""
    at = dict(pair for start in starts for pair in start.tile)
    numbers = iter(range(len(leaves(tile_steps(work).shape))))

    def tree(shape: Tree) -> Tree:
        return tuple(tree(part) for part in shape) if isinstance(shape, tuple) else at.get(next(numbers), 0)

    return str(tree(tile_steps(work).shape)).replace(" ", "").replace(",)", ")")


def _fraction(start: int, box: int, size: int) -> float:
    """Fraction of a box, along one mode, that is inside the tensor."""
    return min(max((size - start) / box, 0.0), 1.0) if start >= 0 else 1.0


def _sides(box: tuple[int, int], count: int) -> tuple[float, float]:
    """The size of a drawn box in pixels. The drawn box has the proportions of the real box if it stays readable, and is
    smaller if there are many boxes.
    """
    ratio = min(max(box[0] / box[1], 0.25), 4.0)
    largest = min(LARGEST, SPACE / max(count, 1))
    wide = largest if ratio >= 1 else largest * ratio
    return max(wide, NARROWEST), max(wide / ratio, SMALLEST)


def draw_boxes(atom: TmaAtom) -> Picture:
    """Draw the boxes of all tiles on the global tensor; parts that extend past the tensor are hatched.

    Args:
        atom: an atom of `make_tma_copy`.
    Raises:
        InvalidTypeError: the argument is not such an atom.
        InvalidValueError: a tile can't be cut into boxes, for a reason that `first_tile` gives.

    The two colours alternate from tile to tile; a tile of several instructions has several boxes.

    >>> import numpy
    >>> import cute_py as cute
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", numpy.zeros((96, 40), "float32"), "(_32,_16):(_16,_1)")
    >>> draw_boxes(atom).svg.count("<title>")
    10
    """
    work, plan = first_tile(expect(atom, TmaAtom, "atom")), atom.plan
    dims, box = (*plan.dims, 1)[:2], (*plan.box, 1)[:2]
    if atom.op.row.mode in ("gather4", "scatter4"):
        box = (box[0], 4)
    across, total_across = box_starts(work, 0)
    down, total_down = box_starts(work, 1)
    elsewhere = work.rows[0][2:]
    logical, outside = logical_of(atom), OUTSIDE[atom.op.row.direction]
    slots = {row: i for i, row in reversed(list(enumerate(work.rows)))}

    def cell(y: Start, x: Start) -> Cell:
        inside = (_fraction(x.at, box[0], dims[0]), _fraction(y.at, box[1], dims[1]))
        coord = (x.at, y.at, *elsewhere)[: plan.rank]
        slot = slots.get((x.base, y.base, *elsewhere)[: plan.rank])
        part = inside[0] * inside[1]
        path = [
            f"tile {_tile_coordinate(work, (x, y))}" + ("" if slot is None else f", instruction {slot}"),
            *([] if logical is None else [f"tensor {tuple_text(logical(coord))}"]),
            f"box at TMA {tuple_text(coord)}, {' x '.join(map(str, (*box, *plan.box[2:])[: plan.rank]))} elements"
            + ("" if part == 1 else f", {1 - part:.0%} of it {outside}"),
            *([f"global byte 0x{_address(atom, coord):x}"] if part else []),
            *([] if slot is None else [f"shared byte {work.places[slot]} of the tile"]),
        ]
        parity = sum(i for start in (x, y) for _, i in start.tile) % 2
        return Cell(tuple_text(coord), " -> ".join(path), 7 * parity, inside)

    wide, high = _sides((box[0], box[1]), max(len(across), len(down)))
    table = grid(
        down,
        across,
        cell,
        lambda start: str(start.at),
        lambda start: str(start.at),
        row_axis=f"TMA mode 1, {dims[1]} elements, boxes of {box[1]}" if plan.rank > 1 else "",
        column_axis=f"TMA mode 0 (contiguous), {dims[0]} elements, boxes of {box[0]}",
        notes=cut_note(total_down, total_across, down, across, "boxes"),
        legends=(Legend("colour: alternates from tile to tile"), hatch_legend(outside)),
        cell_height=high,
    )
    longest = max((len(c.text) for c in table.cells), default=0)
    table = replace(table, cell_width=max(wide, CHARACTER * longest + 8))
    return Picture(f"{atom.op}: boxes on {atom.gtensor}", (table,), _box_notes(atom, box, elsewhere))


def _address(atom: TmaAtom, coord: Sequence[int]) -> int:
    """The address of an element, in bytes."""
    request = atom.request
    steps = (atom.internal_dtype.bits / 8, *request.global_strides)
    return int(request.global_address) + int(sum(c * step for c, step in zip(coord, steps, strict=True)))


def _box_notes(atom: TmaAtom, drawn: tuple[int, ...], elsewhere: tuple[int, ...]) -> tuple[str, ...]:
    plan = atom.plan
    notes = [f"tensor {' x '.join(map(str, plan.dims))} of {atom.internal_dtype}, innermost mode first"]
    if atom.instructions * atom.num_multicast > 1:
        notes.append(f"a tile is {atom.instructions * atom.num_multicast} boxes, one instruction each")
    if atom.op.row.mode in ("gather4", "scatter4"):
        notes.append("each instruction names four rows at run time; drawn for neighbours")
    if elsewhere:
        others = ", ".join(f"mode {i} at {c}" for i, c in enumerate(elsewhere, 2))
        notes.append(f"one box is drawn along each other TMA mode: {others}")
    over = [
        f"mode {i}: {size} = {size // box} x {box} + {size % box}"
        for i, (size, box) in enumerate(zip(plan.dims, (*drawn, *plan.box[2:]), strict=False))
        if size % box
    ]
    if over:
        row_bits = plan.dims[0] * atom.internal_dtype.bits
        if atom.op.row.direction in ("store", "reduce") and plan.dims[0] % plan.box[0] and row_bits % 128:
            notes.append(
                f"rows of {row_bits / 8:g} bytes: a store writes up to the next multiple of 16 bytes, past the end"
            )
        notes.append(f"boxes extend past the end ({'; '.join(over)}): {_FATE[atom.op.row.direction]}")
    return tuple(notes)


def _cta_names(count: int) -> list[str]:
    """Legend text of each tone: the CTA, or all CTAs whose ranks are equal modulo 8."""
    return [f"CTA {', '.join(str(n) for n in range(tone, max(count, tone + 1), TONES))}" for tone in range(TONES)]


def draw_multicast(atom: TmaAtom) -> Picture:
    """Draw the slices of a tile: the CTA that issues each slice, and the slice's offset in the shared memory of each
    receiver.

    Args:
        atom: an atom of `make_tma_copy`; without multicast there is one CTA.
    Raises:
        InvalidTypeError: the argument is not such an atom.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD_MULTICAST", gmem, "(_128,_64):(_64,_1)", num_multicast=2)
    >>> print(draw_multicast(atom).text.splitlines()[0])
    SM90_TMA_LOAD_MULTICAST: slices of a tile by CTA
    """
    work, count = first_tile(expect(atom, TmaAtom, "atom")), atom.num_multicast
    each = len(work.rows) // count
    order = sorted(range(len(work.rows)), key=lambda i: work.places[i])
    kept = shown(len(order), 64)
    receivers = shown(count, 16)
    bytes_of, logical = atom.bytes_per_instruction, logical_of(atom)

    def cell(place: int, receiver: int) -> Cell:
        i = order[place]
        issuer, start = i // each, work.places[i]
        numbers = work.rows[i]
        story = (
            ("" if logical is None else f"tensor {tuple_text(logical(numbers))} -> ")
            + f"box at TMA {tuple_text(numbers)} -> instruction {i % each} of CTA {issuer} -> bytes {start} to "
            + f"{start + bytes_of - 1} of the tile in the shared memory of CTA {receiver}"
        )
        return Cell(f"CTA {issuer}\n{tuple_text(numbers)}", story, issuer % TONES)

    table = grid(
        kept,
        receivers,
        cell,
        lambda place: f"byte {work.places[order[place]]}",
        row_axis="shared memory of one tile",
        column_axis=f"CTAs that receive it: {count}",
        notes=cut_note(len(order), len(receivers), kept, receivers, "boxes"),
        legends=(tone_legend("colour: the CTA that issues the load", _cta_names(count)),),
    )
    size = math.prod(atom.plan.box)
    mask = f"mask of each load where they are the CTAs 0 to {count - 1} of the cluster: 0x{(1 << count) - 1:x}"
    notes = (
        *([mask] if count > 1 else []),
        f"each CTA issues {counted(each, 'instruction')} of {bytes_of} bytes ({size} elements), "
        "and receives all of the tile",
        f"every barrier expects {atom.transaction_bytes} bytes",
    )
    return Picture(f"{atom.op}: slices of a tile by CTA", (table,), notes)
