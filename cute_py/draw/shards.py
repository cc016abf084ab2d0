"""Pictures of the part of a sharded tensor that each device holds, and of the scales of a block-scaled format in
memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cute_py.argument_checks import expect, expect_integer, expect_integers
from cute_py.draw.element_path import tuple_text
from cute_py.draw.layouts import Value, equals, plane_of, table_of
from cute_py.draw.picture import Picture
from cute_py.draw.table import AXIS_LIMIT, GAP, OUTSIDE, TONES, Cell, Legend, Table, shown, tone_legend
from cute_py.errors import InvalidValueError
from cute_py.formats.format import Format
from cute_py.layout.coordinate import idx2crd
from cute_py.layout.layout import Layout, LayoutLeft
from cute_py.layout.trees import leaves

if TYPE_CHECKING:
    from cute_py.mesh.sharded_layout import ShardedLayout


def draw_shards(sharded: ShardedLayout) -> Picture:
    """Draw a tensor with the device that holds each element; `0+` means device 0 and its replicas.

    If there are more than 64 rows or columns, the middle is left out, with a note.

    >>> from cute_py.mesh import Shard, distribute
    >>> print(draw_shards(distribute((2, 4), 2, [Shard(1)])).tables[0].cells[3].text)
    1
    """
    from cute_py.mesh.sharded_layout import ShardedLayout

    shape = expect(sharded, ShardedLayout, "a sharded tensor").shape
    numbers = Layout(shape, LayoutLeft)  # its value is the coordinate's number, colexicographic

    def cell(i: int, j: int, path: str, value: Value) -> Cell:
        coordinate = leaves(idx2crd(value if isinstance(value, int) else 0, shape))
        devices = sharded.holders(coordinate)
        text = f"{devices[0]}+" if len(devices) > 1 else str(devices[0])
        return Cell(text, equals(tuple_text(coordinate), f"devices {', '.join(map(str, devices))}"), devices[0] % TONES)

    table = table_of("", plane_of(numbers), cell, legends=(tone_legend("device modulo 8"),))
    return Picture(str(sharded), (table,), ("cells are devices",))


LINE: Final = 1 << 4
"""Number of scales in a row of the memory's table."""
SHAPE: Final = (128, 128)
"""The default size: one tile of most orders."""


def draw_format(form: Format, shape: tuple[int, ...] = SHAPE, tile_rows: int = 32) -> Picture:
    """Draw the blocks of an (M, K) tensor, each with the index of its scale, and the memory of the scales, each index
    with its (row, block).

    Args:
        shape: (M, K). tile_rows: number of rows that share a colour.

    Padding is hatched.

    >>> from cute_py.formats import mxfp8
    >>> print(draw_format(mxfp8(), (64, 64)).tables[0].rows[1][0].text)
    16
    """
    expect(form, Format, "a format")
    M, K = expect_integers(expect(shape, tuple, "shape"), "shape", 1, 1 << 20, count=2)
    expect_integer(tile_rows, "tile_rows", 1)
    size = int(form.scale_size(M, K))
    if size > 1 << 22:
        raise InvalidValueError(f"shape is {shape}: {size} scales are too many to draw; at most {1 << 22}")
    tables = (_blocks(form, M, K, tile_rows), _memory(form, M, K, size, tile_rows))
    rows, columns = form.blocks(M, K)
    notes = (
        f"a block of {rows} x {columns} elements has one scale",
        f"scales in the order {form.order}, {size} in all",
    )
    return Picture(f"{form!r} of {M} x {K}", tables, notes)


def _steps(form: Format, M: int, K: int) -> tuple[list[int], list[int]]:
    """The first row and the first column of each cell. If the scale order has a separate scale for each row of a block,
    each cell covers one such row.
    """
    rows, columns = form.blocks(M, K)
    if form.order.each_row:
        rows, columns = (rows, 1) if form.axis == 0 else (1, columns)
    return list(range(0, M, rows)), list(range(0, K, columns))


def _indices(form: Format, M: int, K: int, down: list[int], across: list[int]) -> list[list[int]]:
    """The index of each cell's scale, as rows of indices."""
    if not form.order.is_layout:  # each expert begins elsewhere; numpy computes these
        index = form.scale_index(M, K)
        return [index([i] * len(across), across).tolist() for i in down]
    layout = form.scale_layout(M, K)
    first, second = ([int(layout[mode](at)) for at in places] for mode, places in enumerate((down, across)))
    return [[i + j for j in second] for i in first]


def _tone(row: int, tile_rows: int) -> int:
    return row // tile_rows % TONES


def _blocks(form: Format, M: int, K: int, tile_rows: int) -> Table:
    down, across = _steps(form, M, K)
    index = _indices(form, M, K, down, across)
    shown_rows, shown_columns = shown(len(down), AXIS_LIMIT), shown(len(across), AXIS_LIMIT)
    turned = form.axis == 0 and form.order.each_row
    rows = []
    for i in shown_rows:
        cells: list[Cell | None] = []
        for j in shown_columns:
            if i is None or j is None:
                cells.append(None)
                continue
            where = index[i][j]
            title = f"rows from {down[i]}, columns from {across[j]}: scale {where}"
            cells.append(Cell(str(where), title, _tone(j if turned else i, tile_rows)))
        rows.append(tuple(cells))
    labels = tuple(GAP if i is None else str(down[i]) for i in shown_rows)
    tops = tuple(GAP if j is None else str(across[j]) for j in shown_columns)
    return Table("index of the scale of each block", tuple(rows), labels, tops, "m", "k")


def _memory(form: Format, M: int, K: int, size: int, tile_rows: int) -> Table:
    down, across = _steps(form, M, K)
    places = [place for row in _indices(form, M, K, down, across) for place in row]
    holder = [-1] * (-(-size // LINE) * LINE)
    for held, place in enumerate(places):
        holder[place] = held
    turned = form.axis == 0 and form.order.each_row
    rows, shown_rows = [], shown(len(holder) // LINE, AXIS_LIMIT)
    for line in shown_rows:
        cells: list[Cell | None] = []
        for at in range(LINE):
            if line is None:
                cells.append(None)
                continue
            place = line * LINE + at
            held = holder[place]
            if held < 0:
                inside = (0.0, 0.0)
                cells.append(Cell("", f"index {place}: padding", None, inside) if place < size else Cell(blank=True))
                continue
            i, j = divmod(held, len(across))
            text = f"{down[i]},{j}"
            cells.append(Cell(text, f"index {place}: row {down[i]}, block {j}", _tone(j if turned else i, tile_rows)))
        rows.append(tuple(cells))
    labels = tuple(GAP if line is None else str(line * LINE) for line in shown_rows)
    legend = Legend("", ((OUTSIDE, "padding"),))
    tops = tuple(map(str, range(LINE)))
    return Table("memory: row, block", tuple(rows), labels, tops, "index", "", legends=(legend,))
