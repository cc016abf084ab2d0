"""Pictures of tensor memory: 128 lanes, columns of 4 bytes, and the shared bytes that a copy wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cute_py.draw.picture import Picture
from cute_py.draw.table import TONES, BracketRow, Cell, grid, run_brackets, shown, tone_legend
from cute_py.draw.text_renderer import WIDTH
from cute_py.errors import InvalidTypeError
from cute_py.machine.tensor_memory.memory import NOT_A_SOURCE, SLAB, TensorMemory, alloc_columns
from cute_py.machine.tensor_memory.writers import NOTHING, TensorContents, column_runs
from cute_py.tmem.copy_request import CopyAsync
from cute_py.tmem.demonstration import SMEM_ADDRESS, Demonstration
from cute_py.tmem.execute import run
from cute_py.tmem.memory_picture import cell_text, picture

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy

LANES_OF_A_SLAB = 9
"""Rows for the lanes of a warp, the one of the gap included."""
MOST_COLUMNS = 16


def draw_tmem(copy: CopyAsync | Demonstration | NDArray[numpy.integer]) -> Picture:
    """Draw the shared byte that a copy writes to each lane and column of tensor memory.

    Args:
        copy: a planned copy of `cute.tmem.copy_async`, run in the emulator for the picture; a demonstration; or the
            `sources` of a `TensorMemory`, (128, 512, 4).
    Raises:
        InvalidTypeError: something else. TmemError: the copy can't run.

    Bytes are counted from the start of the shared buffer. Cells of one colour come from the same 16 bytes, modulo 128.

    >>> from cute_py.tmem import demonstration_copy
    >>> print(draw_tmem(demonstration_copy()).text.splitlines()[0])
    A_smem[0:32, 0:16] -> tmem[0:32, 0:16]
    """
    if isinstance(copy, CopyAsync):
        sources, base, title = _executed(copy), 0, copy.explain().splitlines()[0]
    elif isinstance(copy, Demonstration):
        sources, base, title = copy.tmem.sources, SMEM_ADDRESS, copy.copy.explain().splitlines()[0]
    elif isinstance(copy, numpy.ndarray) and copy.ndim == 3 and copy.shape[2] == 4:
        if copy.dtype.kind not in "iu" or not copy.size:
            text = f"sources of {copy.shape} {copy.dtype}; must be byte offsets, integers of (lanes, columns, 4)"
            raise InvalidTypeError(text)
        sources, base, title = copy.astype(numpy.int64), 0, "tensor memory"
    else:
        raise InvalidTypeError(f"draw_tmem takes a copy, a demonstration or sources, got {type(copy).__name__}")
    held = numpy.where(sources == NOT_A_SOURCE, NOT_A_SOURCE, sources - base)
    used = numpy.flatnonzero((held != NOT_A_SOURCE).any(axis=(0, 2)))
    first, last = (int(used[0]), int(used[-1])) if len(used) else (0, 0)
    columns = [None if c is None else first + c for c in shown(last - first + 1, MOST_COLUMNS)]
    drawn = [
        (slab // SLAB, None if lane is None else slab + lane)
        for slab in range(0, len(held), SLAB)
        for lane in shown(min(SLAB, len(held) - slab), LANES_OF_A_SLAB)
    ]
    lanes = [lane for _, lane in drawn]
    notes = ["8 of the 32 lanes of each warp are drawn"] if None in lanes else []
    if None in columns:
        notes.append(f"summarised: {last - first + 1} columns, of which {len(columns) - 1} are drawn")
    table = grid(
        lanes,
        columns,
        lambda lane, column: _cell(held[lane, column], lane, column),
        row_axis="lanes, by warp",
        column_axis="columns of 4 bytes",
        row_brackets=(BracketRow("warp", run_brackets([warp for warp, _ in drawn])),),
        notes=tuple(notes),
        legends=(tone_legend("colour: shared bytes, modulo 128", [f"{b}-{b + 15}" for b in range(0, 128, 16)]),),
    )
    longest = max(len(cell.text) for cell in table.cells)
    table = replace(table, plain_text=_plain_text(sources, base, columns, longest, notes[1:]))
    return Picture(title, (table,), ("cells: shared bytes, counted from the buffer's start; . is not written",))


def draw_writers(contents: TensorContents) -> Picture:
    """Draw the instruction that wrote each cell of tensor memory last; a column of the picture stands for a range of
    columns.

    Args:
        contents: the result of `PtxRun.tensor_memory`.
    """
    lines = contents.lines
    runs = [one for one in column_runs(lines) if (lines[:, one.start] != NOTHING).any()]
    kept = [runs[i] for i in shown(len(runs), MOST_COLUMNS) if i is not None]
    used = sorted({one.line for one in contents.written()})

    def cell(lane: int, column: int) -> Cell:
        line = int(lines[lane, column])
        where = f"lanes from {lane}, columns from {column}"
        if line == NOTHING:
            return Cell(".", f"{where}: not written")
        return Cell(str(line), f"{where}: line {line}, {contents.instructions[line]}", used.index(line) % TONES)

    starts = [0, *(numpy.flatnonzero((numpy.diff(lines, axis=0) != 0).any(axis=1)) + 1).tolist()]
    lanes = [starts[i] for i in shown(len(starts), 4 * LANES_OF_A_SLAB) if i is not None]
    more = [f"{len(runs)} ranges of columns, of which {len(kept)} are drawn"] if len(kept) < len(runs) else []
    table = grid(
        lanes, [one.start for one in kept], cell, row_axis="lanes from", column_axis="columns from", notes=tuple(more)
    )
    table = replace(table, plain_text=str(contents))
    return Picture(contents.title, (table,), ("cells: the line of the instruction that wrote them last",))


def _plain_text(
    sources: NDArray[numpy.int64], base: int, columns: list[int | None], longest: int, notes: list[str]
) -> str:
    """Text form of the same columns: some side by side, slabs with the same contents once."""
    most = max((WIDTH - len("  0-127 | ")) // (longest + 2), 1)
    kept = [column for column in columns if column is not None]
    # A part begins where columns are left out, and where a line is full.
    parts: list[range] = []
    for column in kept:
        if parts and parts[-1].stop == column and len(parts[-1]) < most:
            parts[-1] = range(parts[-1].start, column + 1)
        else:
            parts.append(range(column, column + 1))
    return "\n\n".join([*(picture(sources, part, base=base) for part in parts), *notes])


def _executed(copy: CopyAsync) -> NDArray[numpy.int64]:
    tmem = TensorMemory()
    columns = alloc_columns(copy.plan.columns)
    taddr = tmem.alloc(columns)
    smem = numpy.zeros(max(copy.plan.smem_bytes, 16), numpy.uint8)
    run(copy.plan, tmem, taddr, smem, 0)
    return tmem.sources


def _cell(here: NDArray[numpy.int64], lane: int, column: int) -> Cell:
    text = cell_text(here)
    if text == ".":
        return Cell(text, f"warp {lane // SLAB}, lane {lane}, column {column}: not written")
    first = int(here[here != NOT_A_SOURCE][0])
    path = f"shared bytes {text} (bank {first // 4 % 32} of a buffer that is aligned to 128 bytes)"
    return Cell(text, f"{path} -> warp {lane // SLAB}, lane {lane}, column {column}", first // 16 % TONES)
