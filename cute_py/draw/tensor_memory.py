"""Pictures of tensor memory (128 lanes, columns of 4 bytes) with the bytes that a copy wrote there, and of the operands
of a tcgen05.mma in shared and tensor memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cute_py.atom.fragments import LANES, lane_stride
from cute_py.atom.smem_descriptor import Major
from cute_py.draw.layouts import BANK_LEGEND
from cute_py.draw.picture import Picture
from cute_py.draw.table import TONES, BracketRow, Cell, Table, cut_note, grid, run_brackets, shown, tone_legend
from cute_py.draw.text_renderer import WIDTH
from cute_py.errors import InvalidTypeError
from cute_py.layout import offsets, size
from cute_py.machine.judgement.observer import OperandRead
from cute_py.machine.tensor_memory.memory import NOT_A_SOURCE, SLAB, TensorMemory, alloc_columns
from cute_py.machine.tensor_memory.umma_operands import UmmaOperands, unit_addresses
from cute_py.machine.tensor_memory.writers import NOTHING, TensorContents, column_runs
from cute_py.tensor.tensor import Tensor
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
"""Number of rows for the lanes of a warp, including the row of the gap."""
MOST_COLUMNS = 16


def draw_tmem(copy: CopyAsync | Demonstration | NDArray[numpy.integer]) -> Picture:
    """Draw the tensor memory that a copy writes; each cell shows the shared-memory byte that was copied to its lane and
    column.

    Args:
        copy: a planned copy of `cute.tmem.copy_async`, which the emulator runs for the picture; a demonstration copy;
            or the `sources` of a `TensorMemory`, an array of shape (128, 512, 4).
    Raises:
        InvalidTypeError: the argument is something else. TmemError: the copy can't run.

    Byte numbers count from the start of the shared buffer. Cells of one colour come from the same 16-byte unit of a
    128-byte line.

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
        notes.append(f"summarised: {last - first + 1} columns; {len(columns) - 1} are drawn")
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
    """Draw which instruction last wrote each cell of tensor memory; a column of the picture represents a range of
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
    more = [f"{len(runs)} ranges of columns; {len(kept)} are drawn"] if len(kept) < len(runs) else []
    table = grid(
        lanes, [one.start for one in kept], cell, row_axis="lanes from", column_axis="columns from", notes=tuple(more)
    )
    table = replace(table, plain_text=str(contents))
    return Picture(contents.title, (table,), ("cells: the line of the instruction that wrote them last",))


OPERAND_ROWS = 17
"""Number of rows of an operand that are drawn, including the row of the gap."""
OPERAND_COLUMNS = 10
OPERAND_LANES = 7
"""Number of lanes of a warp that are drawn for an operand, including the row of the gap."""


def draw_umma(operands: UmmaOperands) -> Picture:
    """Draw how a tcgen05.mma reads its operands: addresses in shared memory, lanes and columns of tensor memory.

    The table of an operand in shared memory has a cell for each 16-byte unit, with its address; units of one colour are
    in the same group of 4 banks. In the table of D, each cell of tensor memory shows the row and column of its element.
    In a table of scale factors, each cell shows the row of A or B.
    """
    tables = [_shared_table(read) for read in sorted(operands.reads, key=lambda one: one.name)]
    if operands.a_in_tmem:
        tables.insert(0, _tmem_table("A: row, first k", operands.A, int(operands.a)))
    tables.append(_tmem_table("D: row, column", operands.D, operands.d))
    for name, factors, address in zip(("SFA", "SFB"), (operands.SFA, operands.SFB), operands.scales, strict=True):
        if factors is not None:
            tables.append(_tmem_table(f"{name}: row", factors, address, scales=True))
    title, extents = operands.explain().splitlines()[:2]
    notes = ("the tables show one CTA; the other one of the pair has its rows at the same places",)
    return Picture(f"{title}: {extents.strip()}", tuple(tables), notes if operands.cta_group == 2 else ())


def _shared_table(read: OperandRead) -> Table:
    """Table of an operand in shared memory: lines of 16-byte units."""
    by_row = read.major is Major.K
    addresses = unit_addresses(read)
    line = "row" if by_row else "k"
    down, across = shown(len(addresses), OPERAND_ROWS), shown(addresses.shape[1], OPERAND_COLUMNS)
    each = 16 * 8 // read.bits
    along = ("bytes of K" if read.bits == 8 else "k") if by_row else "rows"

    def cell(number: int, unit: int) -> Cell:
        address = int(addresses[number, unit])
        title = f"{read.name}: {line} {number}, {along} {unit * each} to {unit * each + each - 1}"
        path = f"{title}: shared address {address:#x}, bank {address // 4 % 32}"
        return Cell(f"{address:#x}", path, address // 16 % TONES)

    return grid(
        down,
        across,
        cell,
        column_name=lambda unit: str(unit * each),
        title=f"{read.name}: shared addresses, {read.major}-major",
        row_axis=line,
        column_axis=f"{along} from",
        row_brackets=(BracketRow("core", run_brackets([None if i is None else i // 8 for i in down])),),
        notes=cut_note(len(addresses), addresses.shape[1], down, across, "units"),
        legends=(BANK_LEGEND,),
    )


def _tmem_table(title: str, tensor: Tensor, address: int, *, scales: bool = False) -> Table:
    """Table of an operand in tensor memory: lanes and 4-byte columns, with the first element of each cell."""
    places = numpy.asarray(offsets(tensor.layout)).astype(numpy.int64)
    lane = lane_stride(tensor.element_type.bits)
    lanes, columns = places // lane, places % lane * tensor.element_type.bits // 32
    width = int(columns.max()) + 1
    held = numpy.full((LANES, width, 2), NOT_A_SOURCE, numpy.int64)
    order = slice(None, None, -1)  # a cell with several elements shows the first
    elements = numpy.indices(places.shape).reshape(2, -1).T
    held[lanes.ravel()[order], columns.ravel()[order]] = elements[order]
    first_lane, first = address >> 16 & 0x3FFF, address & 0xFFFF
    # Rows of scale factors are counted copy by copy: 32 of each column, the second half of B, then the further lanes.
    copies = int(size(tensor.layout[0][-1])) if scales else 1
    count = int(size(tensor.layout, 0)) // copies

    def cell(at: int, column: int) -> Cell:
        row, along = (int(one) for one in held[at, column])
        where = f"lane {first_lane + at}, column {first + column}"
        if row == NOT_A_SOURCE:
            return Cell(".", f"{where}: not used")
        text = str(row % count) if scales else f"{row},{along}"
        return Cell(text, f"{where}: {title.partition(':')[0]}({text})", row % count // 16 % TONES)

    of_warp = shown(SLAB, OPERAND_LANES)
    down = [None if at is None else warp + at for warp in range(0, LANES, SLAB) for at in of_warp]
    across = shown(width, OPERAND_COLUMNS)
    return grid(
        down,
        across,
        cell,
        row_name=lambda at: str(first_lane + at),
        column_name=lambda column: str(first + column),
        title=title,
        row_axis="lane",
        column_axis="column",
        row_brackets=(BracketRow("warp", run_brackets([None if at is None else at // SLAB for at in down])),),
        notes=cut_note(LANES, width, down, across),
        legends=(tone_legend("colour: 16 rows, modulo 128", [f"{r}-{r + 15}" for r in range(0, 128, 16)]),),
    )


def _plain_text(
    sources: NDArray[numpy.int64], base: int, columns: list[int | None], longest: int, notes: list[str]
) -> str:
    """Text of tensor memory: several columns side by side, and slabs of lanes with equal contents only once."""
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
