"""Pictures of the boxes of an atom: on the global tensor, and cut into slices by the CTAs of a multicast.

The tensor is drawn in TMA order: mode 0, the contiguous one, across, mode 1 down; of further modes the first index.
"""

from __future__ import annotations

import math
from typing import Any

from cute_py.draw.picture import Picture
from cute_py.draw.table import TONES, Cell, Table, labels, shown
from cute_py.errors import InvalidTypeError
from cute_py.layout.leaf import value_of
from cute_py.layout.trees import leaves
from cute_py.tma.copy_atom.copy_atom import TmaAtom
from cute_py.tma.copy_atom.tiles import TileWork, tile_work

BOXES = 24
"""Boxes that are drawn along one mode."""
LARGEST, SMALLEST = 150.0, 30.0
"""Sides of a drawn box, pixels."""


def checked_atom(atom: Any, operation: str) -> TmaAtom:
    """A tiled atom.

    Raises:
        InvalidTypeError: something else.
    """
    if not isinstance(atom, TmaAtom):
        raise InvalidTypeError(f"{operation} takes an atom of make_tma_copy, got {type(atom).__name__}")
    return atom


def steps_along(work: TileWork, mode: int) -> list[tuple[int, int]]:
    """(number of steps, distance) of the tiles along a TMA mode."""
    out = []
    for n, d in zip(leaves(work.rest._shape), leaves(work.rest._stride), strict=True):
        if getattr(d, "modes", ())[:1] == (mode,) and int(value_of(n)) > 1 and int(d.value):
            out.append((int(value_of(n)), int(d.value)))
    return out


def box_starts(work: TileWork, mode: int) -> tuple[list[int | None], int]:
    """(starts of the boxes along a TMA mode, ascending, with None for a gap; how many there are in all)."""
    total = 1
    first = sorted({int(c) for c in work.coords[:, mode]}) if mode < work.coords.shape[1] else [0]
    picked, last = set(first), first[-1]
    for count, step in steps_along(work, mode):
        total *= count
        near = [i for i in shown(count, 2 * BOXES) if i is not None]
        picked = {start + i * step for start in picked for i in near}
        last += (count - 1) * step
    ordered = sorted(picked | {last})
    indices = shown(max(len(ordered), total * len(first)), BOXES)
    starts: list[int | None] = []
    for index in indices:
        if index is None:
            starts.append(None)
        else:
            from_end = max(len(ordered), total * len(first)) - index
            starts.append(ordered[index] if index < BOXES else ordered[-from_end])
    return starts, total * len(first)


def _fraction(start: int, box: int, size: int) -> float:
    """The part of a box along one mode that is inside the tensor."""
    return min(max((size - start) / box, 0.0), 1.0) if start >= 0 else 1.0


def _sides(box: tuple[int, int]) -> tuple[float, float]:
    """Pixels of a drawn box, with the proportions of the true one as far as it stays readable."""
    ratio = min(max(box[0] / box[1], 0.25), 4.0)
    wide = LARGEST if ratio >= 1 else LARGEST * ratio
    return max(wide * 0.6, 66.0), max(wide / ratio * 0.6, SMALLEST)


def draw_boxes(atom: Any) -> Picture:
    """The boxes of all tiles on the global tensor; what hangs over the tensor's end is hatched.

    Args:
        atom: of `make_tma_copy`.
    Raises:
        InvalidTypeError: no such atom; as `tile_work` where a tile can't be cut into boxes.
    """
    checked_atom(atom, "draw_boxes")
    work, plan = tile_work(atom), atom.plan
    dims, box = (*plan.dims, 1)[:2], (*plan.box, 1)[:2]
    if atom.op.row.mode in ("gather4", "scatter4"):
        box = (box[0], 4)
    across, total_across = box_starts(work, 0)
    down, total_down = box_starts(work, 1) if plan.rank > 1 else (list[int | None]([0]), 1)
    elsewhere = tuple(int(c) for c in work.coords[0, 2:])

    def cell(y: int | None, x: int | None) -> Cell | None:
        if x is None or y is None:
            return None
        inside = (_fraction(x, box[0], dims[0]), _fraction(y, box[1], dims[1]))
        coord = (x, y)[: plan.rank] + elsewhere
        text = "(" + ",".join(map(str, coord)) + ")"
        part = "" if inside == (1.0, 1.0) else f", {1 - inside[0] * inside[1]:.0%} of it outside: filled, not read"
        whole = f"box at TMA {text}, {' x '.join(map(str, (*box, *plan.box[2:])[: plan.rank]))} elements{part}"
        return Cell(text, whole, (x // box[0] + 3 * (y // box[1])) % 2 * 7, inside)

    rows = tuple(tuple(cell(y, x) for x in across) for y in down)
    wide, high = _sides((box[0], box[1]))
    wide = max(wide, 7.2 * max((len(c.text) for row in rows for c in row if c is not None), default=0) + 8)
    table = Table(
        "",
        rows,
        labels(down),
        labels(across),
        f"TMA mode 1, {dims[1]} elements, boxes of {box[1]}" if plan.rank > 1 else "",
        f"TMA mode 0 (contiguous), {dims[0]} elements, boxes of {box[0]}",
        notes=_cut(total_across, across, total_down, down),
        cell_width=wide,
        cell_height=high,
    )
    return Picture(f"{atom.op}: boxes on {atom.gtensor}", (table,), _box_notes(atom, box, elsewhere))


def _cut(total_across: int, across: list[int | None], total_down: int, down: list[int | None]) -> tuple[str, ...]:
    if None not in across and None not in down:
        return ()
    drawn = [sum(1 for start in starts if start is not None) for starts in (down, across)]
    return (f"summarised: {total_down} x {total_across} boxes, of which {drawn[0]} x {drawn[1]} are drawn",)


def _box_notes(atom: TmaAtom, drawn: tuple[int, ...], elsewhere: tuple[int, ...]) -> tuple[str, ...]:
    plan = atom.plan
    notes = [f"tensor {' x '.join(map(str, plan.dims))} of {atom.internal_dtype}, innermost mode first"]
    if atom.op.row.mode in ("gather4", "scatter4"):
        notes.append("each instruction names four rows at run time; drawn for neighbours")
    if elsewhere:
        others = ", ".join(f"mode {i} at {c}" for i, c in enumerate(elsewhere, 2))
        notes.append(f"of the other TMA modes one box is drawn: {others}")
    over = [
        f"mode {i}: {size} = {size // box} x {box} + {size % box}"
        for i, (size, box) in enumerate(zip(plan.dims, (*drawn, *plan.box[2:]), strict=False))
        if size % box
    ]
    if over:
        notes.append(f"boxes hang over the end, hatched ({'; '.join(over)}): filled in shared memory, bytes counted")
    return tuple(notes)


def draw_multicast(atom: Any) -> Picture:
    """The slices of a tile by CTA: who issues what, and where it lands in the shared memory of every receiver.

    Args:
        atom: of `make_tma_copy`; without multicast there is one CTA.
    Raises:
        InvalidTypeError: no such atom.
    """
    checked_atom(atom, "draw_multicast")
    work, count = tile_work(atom), atom.num_multicast
    each = len(work.coords) // count
    order = sorted(range(len(work.coords)), key=lambda i: int(work.offsets[i]))
    kept = shown(len(order), 64)
    receivers = shown(count, 16)
    bytes_of = atom.bytes_per_instruction

    def cell(place: int | None, receiver: int | None) -> Cell | None:
        if place is None or receiver is None:
            return None
        i = order[place]
        issuer, start = i // each, int(work.offsets[i]) // 8
        coord = "(" + ",".join(str(int(c)) for c in work.coords[i]) + ")"
        story = (
            f"CTA {issuer} loads the box at TMA {coord}; bytes {start} to {start + bytes_of - 1} of the tile "
            f"in the shared memory of CTA {receiver}"
        )
        return Cell(f"CTA {issuer}\n{coord}", story, issuer % TONES)

    rows = tuple(tuple(cell(place, receiver) for receiver in receivers) for place in kept)
    starts = tuple("…" if p is None else f"byte {int(work.offsets[order[p]]) // 8}" for p in kept)
    table = Table(
        "",
        rows,
        starts,
        labels(receivers),
        "shared memory of one tile",
        f"CTAs that receive it: {count}",
    )
    size = math.prod(atom.plan.box)
    notes = (
        f"each CTA issues {each} instruction(s) of {bytes_of} bytes ({size} elements), and receives all of the tile",
        f"every barrier expects {atom.transaction_bytes} bytes",
    )
    return Picture(f"{atom.op}: slices of a tile by CTA", (table,), notes)
