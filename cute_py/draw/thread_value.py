"""Pictures of thread-value layouts: which thread holds each element of a tile, and in which of its values."""

from __future__ import annotations

from typing import Any

from cute_py.argument_checks import expect_integers
from cute_py.arith_tuple.cells import known_integer
from cute_py.draw.axes import axes_of, equals
from cute_py.draw.picture import Picture
from cute_py.draw.table import TONES, Cell, Table, axis_limit, cut_note, hatch_legend, labels, shown, tone_legend
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.layout.coprofile import coprofile
from cute_py.layout.int_tuple import product_each
from cute_py.layout.layout import Layout
from cute_py.layout.trees import modes

MOST_PAIRS = 1 << 20
"""(thread, value) pairs that are looked through."""
NAMED = 4
"""Pairs of one element that its cell names; of more it says how many."""


def draw_tv(layout: Any, tile: Any) -> Picture:
    """The tile with thread and value in each element: T3 over V1 is value 1 of thread 3.

    Args:
        layout: (thread, value) -> index in the tile, colexicographic, as `make_layout_tv` gives it.
        tile: shape of the tile, one or two modes.
    Raises:
        InvalidTypeError: no layout; InvalidValueError: not two modes, a tile of more, or an index beyond the tile.

    An element that no pair reaches is hatched; one that several reach shows the first, and how many more there are.

    >>> from cute_py.layout.leaf import Int
    >>> from cute_py.tensor.thread_value import make_layout_tv
    >>> tile, tv = make_layout_tv(Layout((Int(2), Int(2)), (Int(2), Int(1))), Layout((Int(1), Int(2))))
    >>> print(draw_tv(tv, tile))
    ((_2,_2),_2):((_4,_1),_2) on a tile of (2,4)
    <BLANKLINE>
      down: mode 0 of the tile; across: mode 1 of the tile
      |     0      1      2      3
    --+---------------------------
    0 | T0 V0  T0 V1  T1 V0  T1 V1
    1 | T2 V0  T2 V1  T3 V0  T3 V1
    """
    if not isinstance(layout, Layout) or coprofile(layout) != 0:
        got = layout if isinstance(layout, Layout) else given(layout)
        raise InvalidTypeError(f"draw_tv takes a layout (thread, value) -> index, got {got}")
    if len(modes(layout.shape)) != 2:
        raise InvalidValueError(f"{layout} has {len(modes(layout.shape))} modes; must be 2, threads and values")
    try:
        sizes = expect_integers(modes(product_each(tile)), "tile")
    except (InvalidTypeError, InvalidValueError):
        raise InvalidTypeError(f"tile = {given(tile)}; must be a shape of known sizes") from None
    if not 1 <= len(sizes) <= 2 or any(n < 1 for n in sizes):
        raise InvalidValueError(f"tile = {given(tile)}; must have one or two modes of size 1 or more")
    rows, columns = sizes if len(sizes) == 2 else (1, sizes[0])
    holders = _holders(layout, rows * columns)
    limit = axis_limit(rows, columns)
    shown_rows, shown_columns = shown(rows, limit), shown(columns, limit)
    cells = tuple(
        tuple(
            None if i is None or j is None else _cell(i, j, holders.get(i + rows * j, []), layout, i + rows * j)
            for j in shown_columns
        )
        for i in shown_rows
    )
    table = Table(
        "",
        cells,
        labels(shown_rows),
        labels(shown_columns),
        "mode 0 of the tile" if len(sizes) == 2 else "",
        f"mode {len(sizes) - 1} of the tile",
        notes=cut_note(rows, columns, limit),
        legends=(tone_legend(f"colour: thread modulo {TONES}"), hatch_legend("belongs to no thread")),
    )
    size = "(" + ",".join(map(str, sizes)) + ")"
    return Picture(f"{layout} on a tile of {size}", (table,), _notes(holders, rows * columns))


def _holders(layout: Layout, count: int) -> dict[int, list[tuple[int, int]]]:
    _, threads, values = axes_of(layout)
    if max(threads.size, 1) * max(values.size, 1) > MOST_PAIRS:
        raise InvalidValueError(f"{threads.size} threads x {values.size} values; must be at most {MOST_PAIRS} pairs")
    holders: dict[int, list[tuple[int, int]]] = {}
    for value in range(values.size):
        for thread in range(threads.size):
            index = known_integer(layout(thread, value), "an index in the tile")
            if not 0 <= index < count:
                raise InvalidValueError(
                    f"value {value} of thread {thread} is element {index}; the tile has {count}",
                    {"layout": layout},
                )
            holders.setdefault(index, []).append((thread, value))
    return holders


def _cell(i: int, j: int, pairs: list[tuple[int, int]], layout: Layout, index: int) -> Cell:
    if not pairs:
        return Cell("", f"({i},{j}) belongs to no thread", None, (0.0, 1.0))
    thread, value = min(pairs)
    more = f" +{len(pairs) - 1}" if len(pairs) > 1 else ""
    all_of = ", ".join(f"thread {t} value {v}" for t, v in sorted(pairs)[:NAMED])
    rest = f" and {len(pairs) - NAMED} more" if len(pairs) > NAMED else ""
    _, threads, values = axes_of(layout)
    way = equals("layout -> " + (" + ".join([*threads.terms(thread), *values.terms(value)]) or "0"), str(index))
    title = f"({i},{j}) -> {all_of}{rest}; {way}, its index in the tile"
    return Cell(f"T{thread}\nV{value}{more}", title, thread % TONES)


def _notes(holders: dict[int, list[tuple[int, int]]], count: int) -> tuple[str, ...]:
    notes = []
    if len(holders) < count:
        notes.append(f"{count - len(holders)} of {count} elements belong to no thread")
    shared = sum(1 for pairs in holders.values() if len(pairs) > 1)
    if shared:
        notes.append(f"{shared} elements are held more than once: +n says by how many more")
    return tuple(notes)
