"""Pictures of a tile in shared memory: lines of 128 bytes, 16-byte units, where the engine puts what.

Each unit says the whole way of its first element: tensor coordinate -> TMA coordinate -> global byte -> instruction ->
shared byte -> bank. What the rows are, and where they go, is asked of `Trace`, which reads the descriptor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cute_py.argument_checks import is_integer
from cute_py.draw.copy_way import OUTSIDE, RAGGED, checked_atom, tile_trace, tuple_text, way_of
from cute_py.draw.im2col_window import im2col_trace
from cute_py.draw.picture import Picture
from cute_py.draw.table import (
    TONES,
    Bracket,
    BracketRow,
    Cell,
    Table,
    axis_limit,
    cut_note,
    hatch_legend,
    shown,
    tone_legend,
)
from cute_py.layout.leaf import leaf_text
from cute_py.layout.trees import leaves
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.im2col import Im2colAtom
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapIm2colWide
from cute_py.tma.simulate.trace import Step, Trace

LINE = 128
"""Bytes of one line: 32 banks of 4 bytes."""
UNIT = 16
"""Bytes of a unit: what a swizzle moves as one."""


def draw_smem(atom: Any, tile_coord: Any = 0, offsets: Sequence[int] = ()) -> Picture:
    """A tile as it lies in shared memory, after the swizzle.

    Args:
        atom: of `make_tma_copy`, or of `make_im2col_tma_copy`, or an im2col request.
        tile_coord: which tile, the first one if left out; of im2col the coordinates of one instruction.
        offsets: im2col: of the filter position, as for `draw_im2col`.
    Raises:
        InvalidTypeError: no such atom; InvalidValueError: no such tile.
        TmaLimitError: the atom has no descriptor, because the driver would refuse it.

    A line is 128 bytes, 32 banks; cells are its 16-byte units with the TMA coordinate of their first element. Units of
    one colour come from the same 16-byte column of the box. Outside the tensor: hatched. A unit that nothing is
    written to is empty.
    """
    if isinstance(atom, (Im2colAtom, TensorMapIm2col, TensorMapIm2colWide)):
        left_out = is_integer(tile_coord) and tile_coord == 0
        trace = im2col_trace(atom, None if left_out else tile_coord, offsets, "draw_smem")
        direction = atom.op.row.direction if isinstance(atom, Im2colAtom) else "load"
        where = f"pixels from {tuple_text(trace.coords[0].tolist())}"
        name = str(atom.op) if isinstance(atom, Im2colAtom) else trace.geometry.mode
        return Picture(f"{name}, {where} in shared memory", (_lines(trace, direction),), _row_notes(trace))
    trace = tile_trace(checked_atom(atom, "draw_smem"), tile_coord)
    title = f"{atom.op}, tile {str(tile_coord).replace(' ', '')} in shared memory"
    return Picture(title, (_lines(trace, atom.op.row.direction),), _notes(atom, trace))


def _lines(trace: Trace, direction: str) -> Table:
    lines = -(-_extent(trace) // LINE)
    limit = axis_limit(lines, LINE // UNIT)
    kept = shown(lines, limit)
    per_unit = max(UNIT * 8 // trace.geometry.bits, 1)
    first = int(trace.coords[0, 0])

    def cell(line: int | None, unit: int) -> Cell | None:
        if line is None:
            return None
        step = trace.backward(line * LINE + unit * UNIT)
        if step is None:
            return Cell("", f"shared byte {line * LINE + unit * UNIT}: nothing is written here")
        return _unit(step, (step.tma_coord[0] - first) // per_unit % TONES, trace, direction)

    return Table(
        "",
        tuple(tuple(cell(line, unit) for unit in range(LINE // UNIT)) for line in kept),
        tuple("…" if line is None else f"{line * LINE}" for line in kept),
        tuple(f"{4 * u}-{4 * u + 3}" for u in range(LINE // UNIT)),
        "shared byte (a line is 128 bytes)",
        "banks",
        row_brackets=_by_instruction(trace, kept),
        notes=cut_note(lines, LINE // UNIT, limit),
        legends=(
            tone_legend("colour: 16-byte column of the box, from its start, modulo 8"),
            hatch_legend(OUTSIDE[direction]),
        ),
    )


def _extent(trace: Trace) -> int:
    """Bytes from the start of the tile to the end of its last row."""
    shape = trace.geometry
    return int(trace.starts.max()) + (trace.rows - 1) * shape.pitch + max(shape.row_bytes, 1)


def _by_instruction(trace: Trace, lines: Sequence[int | None]) -> tuple[BracketRow, ...]:
    """Which instruction writes which lines, where there are several that write whole lines."""
    starts = sorted((int(start), i) for i, start in enumerate(trace.starts))
    if len(starts) < 2 or any(start % LINE for start, _ in starts):
        return ()
    found: list[Bracket] = []
    for position, line in enumerate(lines):
        if line is None:
            continue
        which = max((pair for pair in starts if pair[0] <= line * LINE), default=None)
        text = "" if which is None else str(which[1])
        if found and found[-1].text == text and found[-1].stop == position:
            found[-1] = Bracket(found[-1].start, position + 1, text)
        else:
            found.append(Bracket(position, position + 1, text))
    return (BracketRow("instr", tuple(found)),)


def _unit(step: Step, tone: int, trace: Trace, direction: str) -> Cell:
    """The unit that begins with this element."""
    shape, text = trace.geometry, tuple_text(step.tma_coord)
    per_unit = UNIT * 8 // shape.bits
    inside = min(max((shape.dims[0] - step.tma_coord[0]) / per_unit, 0.0), 1.0) if step.inside else 0.0
    if shape.interleaved or shape.packing is not None:
        inside = float(step.inside)
    whole = way_of(step, direction)
    if 0 < inside < 1:
        whole += f"; {per_unit - round(inside * per_unit)} of the unit's {per_unit} elements are {RAGGED[direction]}"
    return Cell(text, whole, tone, (inside, 1.0))


def _row_notes(trace: Trace) -> tuple[str, ...]:
    """Of one im2col load: a row is a pixel."""
    shape = trace.geometry
    swizzle = "none" if not shape.swizzle else f"{16 << shape.swizzle}B"
    return (
        f"a row of {shape.row_bytes} bytes for each pixel, {shape.pitch} bytes apart; swizzle {swizzle}; "
        f"1 instruction, {trace.rows * shape.row_bytes} bytes",
        "cells: TMA coordinate (innermost first) of the unit's first element",
    )


def _notes(atom: TmaAtom, trace: Trace) -> tuple[str, ...]:
    shape = trace.geometry
    names = [leaf_text(d) for d in leaves(atom.g_stride)]
    notes = [
        f"rows of {shape.row_bytes} bytes, {shape.pitch} bytes apart; swizzle {atom.swizzle_row.name}; "
        f"{len(trace.coords)} instruction(s), {atom.transaction_bytes} bytes; aligned to {atom.alignment} bytes",
        f"cells: TMA coordinate (innermost first) of the unit's first element; tensor modes step by {', '.join(names)}",
    ]
    if atom.op.row.mode in ("gather4", "scatter4"):
        notes.append("each instruction names four rows at run time; drawn for four neighbours, in this order")
    if shape.interleaved or shape.packing is not None:
        notes.append("packed or interleaved rows: a unit may hold less than 16 bytes of the tensor")
    return tuple(notes)
