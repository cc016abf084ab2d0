"""Pictures of a tile in shared memory: lines of 128 bytes, 16-byte units, where the engine puts what.

Each unit says the whole way of its first element: tensor coordinate -> TMA coordinate -> global byte -> instruction ->
shared byte -> bank. What the rows are, and where they go, is asked of `Trace`, which reads the descriptor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from cute_py.draw.boxes import checked_atom
from cute_py.draw.picture import Picture
from cute_py.draw.table import TONES, Cell, Table, axis_limit, cut_note, shown
from cute_py.errors import CuteError, InvalidValueError
from cute_py.layout.leaf import leaf_text, value_of
from cute_py.layout.trees import leaves
from cute_py.tma.copy_atom.copy_atom import TmaAtom
from cute_py.tma.copy_atom.tiles import tile_work
from cute_py.tma.run.trace import Step, Trace

LINE = 128
"""Bytes of one line: 32 banks of 4 bytes."""
UNIT = 16
"""Bytes of a unit: what a swizzle moves as one."""
NAMED_ROWS = 4
"""Rows that one gather4 or scatter4 names, one by one."""


def logical_of(atom: TmaAtom) -> Callable[[tuple[int, ...]], tuple[int, ...]] | None:
    """TMA coordinate -> coordinate in the tensor's own flat modes; None where a TMA mode merges several of them."""
    from_mode: dict[int, int] = {}
    places: list[tuple[int | None, int]] = []
    for i, stride in enumerate(leaves(atom.g_stride)):
        path = tuple(getattr(stride, "modes", ()))
        step = value_of(getattr(stride, "value", 0))
        if not path or not step:
            places.append((None, 1))
        elif len(path) != 1 or path[0] in from_mode or not isinstance(step, int):
            return None
        else:
            from_mode[path[0]] = i
            places.append((path[0], int(step)))
    if len(from_mode) < atom.plan.rank or any(step != 1 for _, step in places):
        return None
    return lambda coord: tuple(0 if mode is None else coord[mode] for mode, _ in places)


def tile_trace(atom: TmaAtom, tile_coord: Any = 0) -> Trace:
    """The instructions of one tile, to be asked where elements go; gather4 and scatter4 with four neighbouring rows.

    Args:
        tile_coord: index or coordinate of the tile, in the tile modes of the divided tensor.
    Raises:
        InvalidValueError: there is no such tile.
    """
    work = tile_work(atom)
    if isinstance(tile_coord, bool):
        raise InvalidValueError(f"tile_coord = {tile_coord!r}; must be an index or a coordinate")
    numbers = leaves(tile_coord) if isinstance(tile_coord, tuple) else [tile_coord]
    try:
        start = work.rest(tile_coord)
        known = all(int(n) >= 0 for n in numbers)
    except (CuteError, TypeError, ValueError) as error:
        raise InvalidValueError(
            f"tile_coord = {tile_coord!r}; must be an index or a coordinate in the tiles {work.rest.shape}"
        ) from error
    coords = work.coords.copy()
    for mode, value in enumerate(_padded(start, atom.plan.rank)):
        coords[:, mode] += value
    last = work.last
    if not known or any(int(c) > end for c, end in zip(coords[-1], last, strict=True)):
        raise InvalidValueError(f"tile_coord = {tile_coord!r}; the tensor has {work.rest.shape} tiles")
    form, logical = atom.op.row.mode, logical_of(atom)
    if form in ("gather4", "scatter4"):
        coords = numpy.stack([coords[:, 0], *(coords[:, 1] + row for row in range(NAMED_ROWS))], axis=1)
        return Trace(atom.descriptor, coords, work.offsets // 8, mode=f"tile::{form}", logical=logical)
    return Trace(atom.descriptor, coords, work.offsets // 8, logical=logical)


def _padded(start: Any, rank: int) -> list[int]:
    numbers = [int(x) for x in leaves(start.as_tuple())] if hasattr(start, "as_tuple") else [0]
    return (numbers + [0] * rank)[:rank]


def draw_smem(atom: Any, tile_coord: Any = 0) -> Picture:
    """A tile as it lies in shared memory, after the swizzle.

    Args:
        atom: of `make_tma_copy`.
        tile_coord: which tile; the first one if left out.
    Raises:
        InvalidTypeError: no such atom; InvalidValueError: no such tile.
        TmaLimitError: the atom has no descriptor, because the driver would refuse it.

    A line is 128 bytes, 32 banks; cells are its 16-byte units with the TMA coordinate of their first element. Units of
    one colour come from the same 16-byte column of the box. Outside the tensor: hatched. A unit that nothing is
    written to is empty.
    """
    checked_atom(atom, "draw_smem")
    trace = tile_trace(atom, tile_coord)
    size = _extent(atom, trace)
    lines = -(-size // LINE)
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
        return _unit(step, (step.tma_coord[0] - first) // per_unit % TONES)

    rows = tuple(tuple(cell(line, unit) for unit in range(LINE // UNIT)) for line in kept)
    table = Table(
        "",
        rows,
        tuple("…" if line is None else f"{line * LINE}" for line in kept),
        tuple(f"{4 * u}-{4 * u + 3}" for u in range(LINE // UNIT)),
        "shared byte (a line is 128 bytes)",
        "banks",
        notes=cut_note(lines, LINE // UNIT, limit),
    )
    where = str(tile_coord).replace(" ", "")
    return Picture(f"{atom.op}, tile {where} in shared memory", (table,), _notes(atom, trace))


def tuple_text(numbers: Sequence[int]) -> str:
    """A coordinate without blanks.

    >>> tuple_text((8, 9))
    '(8,9)'
    """
    return "(" + ",".join(map(str, numbers)) + ")"


def way_of(step: Step) -> str:
    """The whole way of an element, in the order in which it is gone."""
    source = f"global byte {step.global_name}" if step.inside else "outside the tensor, filled"
    way = [] if step.logical is None else [f"tensor {tuple_text(step.logical)}"]
    way += [
        f"TMA {tuple_text(step.tma_coord)}",
        source,
        f"instruction {step.instruction} at {tuple_text(step.instruction_coords)}",
        f"shared byte {step.shared_offset}",
        f"bank {step.bank}",
    ]
    return " -> ".join(way)


def _extent(atom: TmaAtom, trace: Trace) -> int:
    """Bytes from the start of the tile to the end of its last row."""
    shape = trace.geometry
    return int(trace.starts.max()) + (trace.rows - 1) * shape.pitch + max(shape.row_bytes, 1)


def _unit(step: Step, tone: int) -> Cell:
    text = tuple_text(step.tma_coord)
    return Cell(text, way_of(step), tone, (1.0, 1.0) if step.inside else (0.0, 1.0))


def _notes(atom: TmaAtom, trace: Trace) -> tuple[str, ...]:
    shape = trace.geometry
    names = [leaf_text(d) for d in leaves(atom.g_stride)]
    notes = [
        f"rows of {shape.row_bytes} bytes, {shape.pitch} bytes apart; swizzle {atom.swizzle_row.name}; "
        f"{len(trace.coords)} instruction(s), {atom.transaction_bytes} bytes; aligned to {atom.alignment} bytes",
        f"cells: TMA coordinate (innermost first) of the unit's first element; tensor modes step by {', '.join(names)}",
        "units of one colour are one 16-byte column of the box",
    ]
    if atom.op.row.mode in ("gather4", "scatter4"):
        notes.append("each instruction names four rows at run time; drawn for four neighbours, in this order")
    if shape.interleaved or shape.packing is not None:
        notes.append("packed or interleaved rows: a unit may hold less than 16 bytes of the tensor")
    return tuple(notes)
