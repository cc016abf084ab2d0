"""Pictures of shared memory: a layout before and after a swizzle, and a tile as the TMA engine writes it.

Shared memory has 32 banks of 4 bytes, a line of 128 bytes; a swizzle permutes the 16-byte units of a line. A read of 8
rows of 16 bytes takes one pass if the rows are in 8 different groups of 4 banks. In the picture of a swizzle, cells of
one colour are in the same group.

The title (tooltip) of each unit of a tile is the path of its first element: tensor coordinate, TMA coordinate, global
byte, instruction, shared byte, bank. `Trace`, which reads the descriptor, provides the rows and their destinations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from cute_py.argument_checks import expect, expect_choice, is_integer
from cute_py.arith_tuple.cells import known_integer
from cute_py.draw.element_path import OUTSIDE, RAGGED, element_path, tile_trace, tuple_text
from cute_py.draw.im2col_window import Im2col, im2col_trace
from cute_py.draw.layouts import BANK_LEGEND, bank_of, byte_text, equals, expect_element_bits, plane_of, table_of
from cute_py.draw.picture import Picture
from cute_py.draw.table import (
    TONES,
    BracketRow,
    Cell,
    Table,
    axis_limit,
    cut_note,
    grid,
    hatch_legend,
    run_brackets,
    shown,
    tone_legend,
)
from cute_py.dtypes import DTypeLike
from cute_py.errors import InvalidTypeError, InvalidValueError, counted
from cute_py.layout.arguments import Tree
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout, coprofile
from cute_py.layout.leaf import Int, leaf_text
from cute_py.layout.recast import SmemPtrFlag
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves, modes
from cute_py.targets import BANKS, LINE_BYTES
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.im2col import Im2colAtom
from cute_py.tma.atom.smem_layout import span_row
from cute_py.tma.atom.tiles import as_coordinate
from cute_py.tma.descriptor.data_types import TensorMapSwizzle
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapIm2colWide
from cute_py.tma.emulator.trace import Trace, TraceStep

UNIT = 16
"""Bytes of a unit: a swizzle moves whole units, and a lane reads one unit at a time."""
UNITS = LINE_BYTES // UNIT
"""Units of a line; each unit is in a group of 4 banks."""
ROWS = 8
"""Rows that are read together."""

On = Literal["bytes", "elements"]


def draw_swizzle(
    swizzle: Swizzle | TensorMapSwizzle | int | str | ComposedLayout,
    layout: Layout | None = None,
    bits: DTypeLike | int = 16,
    *,
    on: On = "bytes",
) -> Picture:
    """Draw a layout before and after a swizzle.

    Args:
        swizzle: a `Swizzle`, a mode of the tensor map in any spelling ('128B', 3), or a composed layout with an outer
            swizzle, which also defines `layout`, `bits` and `on`.
        layout: a layout with integer strides, in elements. By default an element is the unit that the swizzle moves, a
            row has 2**shift elements, and the picture shows one period of the swizzle or 8 rows.
        bits: width of an element in bits, or its type.
        on: the offsets that the swizzle acts on: 'bytes' as in the TMA engine, or 'elements' as in `Sw o 0 o layout`.
    Raises:
        InvalidTypeError: the argument is not a swizzle, or the offsets of the layout are coordinates.
        InvalidValueError: the width is invalid, or `on` has another value.

    >>> picture = draw_swizzle(Swizzle(3, 4, 3))
    >>> [line for line in picture.text.splitlines() if line.startswith("1 |")][1]
    '1 |   9 b4    8 b0  11 b12   10 b8  13 b20  12 b16  15 b28  14 b24'
    >>> picture.notes[0]
    '16-byte reads of 8 rows of column 0 take 8 passes before, 1 after'
    """
    if isinstance(swizzle, ComposedLayout):
        if layout is not None:
            facts = {"swizzle": swizzle, "layout": layout}
            raise InvalidTypeError("`layout` must be omitted, because the composed layout contains a layout", facts)
        flag = isinstance(swizzle.offset, SmemPtrFlag)
        if isinstance(swizzle.outer, Swizzle) and not flag and swizzle.offset != 0:
            raise InvalidValueError(f"{swizzle}: a swizzle is drawn for offset 0", {"offset": swizzle.offset})
        on, bits = ("bytes", int(swizzle.offset.bits)) if flag else ("elements", bits)
        composed = swizzle
        swizzle, layout = composed.outer, composed.inner
    if isinstance(swizzle, (int, str)):
        swizzle = Swizzle(span_row(swizzle).bits, 4, 3)
    swizzle = expect(swizzle, Swizzle, "swizzle")
    if layout is None:
        rows, columns = 1 << max(swizzle.bits, 3), 1 << abs(swizzle.shift)
        layout, on = Layout((Int(rows), Int(columns)), (Int(columns), Int(1))), "bytes"
        width = 8 << swizzle.base
    else:
        width = expect_element_bits(bits)
    if coprofile(expect(layout, Layout, "layout")) != 0:
        raise InvalidTypeError(f"draw_swizzle takes a layout with integer strides, got {layout}")
    on = expect_choice(on, ("bytes", "elements"), "on")
    move = _mover(swizzle, width, on)
    tables = (
        _swizzled("before: offset in elements, and bank", layout, width, lambda offset: offset),
        _swizzled(f"after {swizzle} on {on}", layout, width, move),
    )
    return Picture(f"{swizzle} on {on}, {layout}, {width} bits", tables, _passes(layout, width, move))


def _mover(swizzle: Swizzle, bits: int, on: str) -> Callable[[int], int]:
    """Return a function that maps an offset before the swizzle to the offset after it, both in elements."""
    if on == "elements":
        return swizzle.of
    if bits % 8:
        whole = max(8 // bits, 1)
        if 8 % bits:
            raise InvalidValueError(f"elements of {bits} bits are not whole bytes, so a swizzle on bytes splits them")
        return lambda offset: swizzle.of(offset // whole) * whole + offset % whole
    size = bits // 8
    if swizzle.bits and (1 << swizzle.base) % size:
        text = f"{swizzle} moves pieces of {1 << swizzle.base} bytes; it splits elements of {size} bytes"
        raise InvalidValueError(text)
    return lambda offset: swizzle.of(offset * size) // size


def _swizzled(title: str, layout: Layout, bits: int, move: Callable[[int], int]) -> Table:
    def cell(i: int, j: int, path: str, value: Any) -> Cell:
        start = known_integer(value, "an offset")
        offset = move(start)
        bank = bank_of(offset, bits)
        text = f"{equals(path, str(start))} -> offset {offset}: {byte_text(offset, bits)}, bank {bank}"
        return Cell(f"{offset}\nb{bank}", text, bank * TONES // BANKS)

    return table_of(title, plane_of(layout), cell, tables=2, legends=(BANK_LEGEND,))


def _passes(layout: Layout, bits: int, move: Callable[[int], int]) -> tuple[str, ...]:
    """Notes with the number of passes that a read of 8 rows takes, for each mode of size 8 or more. A mode is left out
    if the rows share 16-byte units, or if the swizzle moves elements out of their unit.
    """
    if len(modes(layout.shape)) != 2:
        return ()
    plane = plane_of(layout)
    out = []
    for mode, axis in enumerate((plane.down, plane.across)):
        if axis.size < ROWS:
            continue
        offsets = [int(layout(i, 0) if mode == 0 else layout(0, i)) for i in range(ROWS)]
        units, moved = ({f(offset) * bits // 8 // UNIT for offset in offsets} for f in (int, move))
        if len(units) < ROWS or not _keeps_units(move, offsets, 8 * UNIT // bits):
            continue
        before, after = passes(units), passes(moved)
        if before > 1 or after > 1 or mode == 0:
            what = "rows of column 0" if mode == 0 else "columns of row 0"
            out.append(f"16-byte reads of 8 {what} take {counted(before, 'pass')} before, {after} after")
    return tuple(out)


def _keeps_units(move: Callable[[int], int], offsets: Iterable[int], count: int) -> bool:
    """Whether the swizzle keeps the `count` elements of each 16-byte unit together and in order."""
    starts = [offset - offset % max(count, 1) for offset in offsets]
    return all(move(start + i) == move(start) + i for start in starts for i in range(count))


def passes(units: Iterable[int]) -> int:
    """The number of passes that a read of 16-byte units takes: the largest number of units in one group of 4 banks.

    >>> passes([0, 9, 18]), passes([0, 8, 1])
    (1, 2)
    """
    return max(Counter(unit % UNITS for unit in units).values())


def line_grid(lines: Sequence[int | None], cell: Callable[[int, int], Cell], row_axis: str, **more: Any) -> Table:
    """Build a table of lines of shared memory, with a cell for each 16-byte unit.

    Args:
        lines: indices of the lines, None for a gap. cell: (line, unit of the line) -> Cell. more: other arguments of
            `grid`.
    """
    return grid(
        lines,
        range(UNITS),
        cell,
        lambda line: f"{line * LINE_BYTES}",
        lambda unit: f"{4 * unit}-{4 * unit + 3}",
        row_axis=f"shared byte ({row_axis})",
        column_axis="banks",
        **more,
    )


def draw_smem(atom: TmaAtom | Im2col, tile_coord: Tree = 0, offsets: Sequence[int] = ()) -> Picture:
    """Draw a tile in shared memory, after the swizzle.

    Args:
        atom: an atom of `make_tma_copy` or `make_im2col_tma_copy`, or an im2col request.
        tile_coord: the index or coordinate of the tile, by default of the first; for im2col, the coordinates of one
            instruction.
        offsets: for im2col, the offsets of the filter position, as in `draw_im2col`.
    Raises:
        InvalidTypeError: the argument is not such an atom; InvalidValueError: the tile does not exist.
        TmaLimitError: the atom has no descriptor, because the driver would refuse it.

    A line is 128 bytes, 32 banks. Each cell is a 16-byte unit of a line, with the TMA coordinate of its first element.
    Units of one colour come from the same 16-byte column of the box. Units outside the tensor are hatched; units that
    the copy does not write are empty.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, "(_128,_64):(_64,_1)")
    >>> print(draw_smem(atom).text.splitlines()[0])
    SM90_TMA_LOAD, tile 0 in shared memory
    """
    if isinstance(atom, (Im2colAtom, TensorMapIm2col, TensorMapIm2colWide)):
        left_out = is_integer(tile_coord) and tile_coord == 0
        corner: Any = None if left_out else tile_coord
        trace = im2col_trace(atom, corner, offsets, "draw_smem")
        where = f"pixels from {tuple_text(trace.coords[0])}"
        name, direction = trace.geometry.mode, "load"
        if isinstance(atom, Im2colAtom):
            name, direction = str(atom.op), atom.op.row.direction
        return Picture(f"{name}, {where} in shared memory", (_lines(trace, direction),), _row_notes(trace))
    trace = tile_trace(expect(atom, TmaAtom, "atom"), tile_coord)
    coord = as_coordinate(tile_coord)
    shown_coord = tuple_text(coord) if isinstance(coord, tuple) else str(coord)
    title = f"{atom.op}, tile {shown_coord.replace(' ', '')} in shared memory"
    return Picture(title, (_lines(trace, atom.op.row.direction),), _notes(atom, trace))


def _lines(trace: Trace, direction: str) -> Table:
    lines = -(-_extent(trace) // LINE_BYTES)
    kept = shown(lines, axis_limit(lines, UNITS))
    per_unit = max(UNIT * 8 // trace.geometry.bits, 1)
    first = trace.coords[0][0]

    def cell(line: int, unit: int) -> Cell:
        byte = line * LINE_BYTES + unit * UNIT
        step = trace.backward(byte)
        if step is None:
            return Cell("", f"shared byte {byte}: nothing is written here")
        return _unit(step, (step.tma_coord[0] - first) // per_unit % TONES, trace, direction)

    return line_grid(
        kept,
        cell,
        "a line is 128 bytes",
        row_brackets=_by_instruction(trace, kept),
        notes=cut_note(lines, UNITS, kept, range(UNITS)),
        legends=(
            tone_legend("colour: 16-byte column of the box, from its start, modulo 8"),
            hatch_legend(OUTSIDE[direction]),
        ),
    )


def _extent(trace: Trace) -> int:
    """Bytes from the start of the tile to the end of its last row."""
    shape = trace.geometry
    return max(trace.starts) + (trace.rows - 1) * shape.pitch + max(shape.row_bytes, 1)


def _by_instruction(trace: Trace, lines: Sequence[int | None]) -> tuple[BracketRow, ...]:
    """Brackets that show which instruction writes each line, if there are several instructions and each writes whole
    lines.
    """
    starts = sorted((start, i) for i, start in enumerate(trace.starts))
    if len(starts) < 2 or any(start % LINE_BYTES for start, _ in starts):
        return ()

    def issuer(line: int) -> str:
        return next((str(i) for start, i in reversed(starts) if start <= line * LINE_BYTES), "")

    return (BracketRow("instr", run_brackets([None if line is None else issuer(line) for line in lines])),)


def _unit(step: TraceStep, tone: int, trace: Trace, direction: str) -> Cell:
    """The cell of the 16-byte unit whose first element is this one."""
    shape, text = trace.geometry, tuple_text(step.tma_coord)
    per_unit = UNIT * 8 // shape.bits
    inside = min(max((shape.dims[0] - step.tma_coord[0]) / per_unit, 0.0), 1.0) if step.inside else 0.0
    if shape.interleaved or shape.packing is not None:
        inside = float(step.inside)
    whole = element_path(step, direction)
    if 0 < inside < 1:
        whole += f"; {per_unit - round(inside * per_unit)} of the unit's {per_unit} elements are {RAGGED[direction]}"
    return Cell(text, whole, tone, (inside, 1.0))


def _row_notes(trace: Trace) -> tuple[str, ...]:
    """The notes on an im2col load, where a row is a pixel."""
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
        f"{counted(len(trace.coords), 'instruction')}, {atom.transaction_bytes} bytes; "
        f"aligned to {atom.alignment} bytes",
        f"cells: TMA coordinate (innermost first) of the unit's first element; tensor modes step by {', '.join(names)}",
    ]
    if atom.op.row.mode in ("gather4", "scatter4"):
        notes.append("each instruction names four rows at run time; drawn for four neighbours, in this order")
    if shape.interleaved or shape.packing is not None:
        notes.append("packed or interleaved rows: a unit may hold less than 16 bytes of the tensor")
    return tuple(notes)
