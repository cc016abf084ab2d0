"""Pictures of layouts: the table of offsets, several side by side, coordinate tensors.

A mode of a layout is an axis of the table: mode 0 runs down, mode 1 across, further modes are grouped with mode 1.
Nested modes have brackets: the innermost leaf changes from cell to cell, each bracket is one value of an outer leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from cute_py.arith_tuple.iterators import ArithTupleIterator, CountingIterator
from cute_py.arith_tuple.layout_table import position_independent
from cute_py.arith_tuple.pointers import SmemPtrFlag
from cute_py.draw.picture import Picture
from cute_py.draw.table import TONES, Cell, Table, axis_limit, brackets, cut_note, labels, shown
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.coordinate import idx2crd
from cute_py.layout.domain import domain_of
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Tree, leaf_text, value_of
from cute_py.layout.modes import group_modes
from cute_py.layout.tensor import Tensor
from cute_py.layout.trees import leaves, modes

Color = Literal["value", "bank", "thread", "tile"]
COLORS = ("value", "bank", "thread", "tile")
COLOR_NOTES = {
    "bank": "cells of one colour lie in the same 4 banks (16 bytes of a 128-byte line)",
    "thread": "cells of one colour have the same index in mode 0, modulo 8",
    "tile": "cells of one colour side by side lie in the same tile",
}
BANKS = 32
BANK_BYTES = 4
MOST_LAYOUTS = 16
"""Layouts that one picture compares."""


@dataclass(frozen=True)
class Axis:
    """One mode as an axis: `shape` and `stride` are trees with internal leaves, `path` the mode's number or ''."""

    name: str
    shape: Tree
    stride: Tree
    path: str

    @cached_property
    def size(self) -> int:
        n = 1
        for leaf in leaves(self.shape):
            n *= int(value_of(leaf))
        return n

    @property
    def sizes(self) -> list[int]:
        return [int(value_of(leaf)) for leaf in leaves(self.shape)]

    @cached_property
    def paths(self) -> list[str]:
        """Names of the leaves: '1.0', '1.1', ..."""
        out: list[str] = []

        def walk(tree: Tree, path: str) -> None:
            if isinstance(tree, tuple):
                for i, part in enumerate(tree):
                    walk(part, f"{path}.{i}" if path else str(i))
            else:
                out.append(path or "0")

        walk(self.shape, self.path)
        return out

    def coordinate(self, index: int) -> str:
        """The natural coordinate of an index."""
        return str(idx2crd(index, self.plain)).replace(" ", "")

    @cached_property
    def plain(self) -> Any:
        """The shape as plain ints."""

        def number(tree: Tree) -> Any:
            return tuple(number(t) for t in tree) if isinstance(tree, tuple) else int(value_of(tree))

        return number(self.shape)


def _tree(tree: Tree) -> str:
    if isinstance(tree, tuple):
        return "(" + ",".join(_tree(t) for t in tree) + ")"
    return leaf_text(tree)


def axes_of(thing: Any) -> tuple[Any, Axis, Axis]:
    """(the same layout or tensor with at most two modes, the axis down, the axis across).

    Raises:
        InvalidTypeError: no layout or tensor, or sizes that are not known numbers.
    """
    domain = domain_of(thing)
    for leaf in leaves(domain._shape):
        if not isinstance(value_of(leaf), int):
            raise InvalidTypeError(
                f"a picture needs known sizes, got {leaf_text(leaf)}",
                {"layout": domain},
                "replace the symbols with layout.subs({...}) first",
            )
    rank = len(modes(domain._shape))
    if rank > 2:
        thing = group_modes(thing, 1, rank)
        domain = domain_of(thing)
    shape, stride = modes(domain._shape), modes(domain._stride)
    one = Axis("", 1, 0, "")
    if rank < 2:
        return thing, one, Axis("mode 0", shape[0], stride[0], "0") if rank else one
    across = "mode 1" if rank == 2 else f"modes 1..{rank - 1}"
    return thing, Axis("mode 0", shape[0], stride[0], "0"), Axis(across, shape[1], stride[1], "1")


def axis_text(axis: Axis) -> str:
    """Name, shape and stride of an axis."""
    return f"{axis.name} = {_tree(axis.shape)}:{_tree(axis.stride)}" if axis.name else ""


def table_of(
    title: str, thing: Any, cell: Callable[[int, int, str, Any], Cell], tables: int = 1, notes: Sequence[str] = ()
) -> Table:
    """The table of a layout or tensor of any rank.

    Args:
        cell: (row, column, coordinate text, value) -> Cell.
        tables: how many the picture has.
    """
    thing, down, across = axes_of(thing)
    rank = len(modes(domain_of(thing)._shape))
    limit = axis_limit(down.size, across.size, tables)
    rows, columns = shown(down.size, limit), shown(across.size, limit)

    def one(i: int | None, j: int | None) -> Cell | None:
        if i is None or j is None:
            return None
        if rank == 2:
            return cell(i, j, f"({down.coordinate(i)},{across.coordinate(j)})", thing(i, j))
        return cell(i, j, across.coordinate(j), thing(j) if rank else thing(()))

    return Table(
        title,
        tuple(tuple(one(i, j) for j in columns) for i in rows),
        labels(rows),
        labels(columns),
        axis_text(down),
        axis_text(across),
        brackets(down.sizes, down.paths, rows),
        brackets(across.sizes, across.paths, columns),
        (*notes, *cut_note(down.size, across.size, limit)),
    )


def plain(value: Any) -> str:
    """A value without the underscore of static numbers."""
    return str(int(value)) if isinstance(value, int) else str(value).replace("_", "")


def element_bits(layout: Any) -> int | None:
    """Bits of an element, where a layout or tensor says them: the flag of a swizzle on bytes, or the pointer's type."""
    offset = getattr(layout, "offset", None)
    if isinstance(offset, SmemPtrFlag):
        return int(offset.bits)
    kind = getattr(getattr(layout, "engine", None), "element_type", None)
    return None if kind is None else int(kind.bits)


def bank_of(offset: int, bits: int) -> int:
    """The bank (of 32, 4 bytes wide) that holds the first bit of an element.

    >>> bank_of(64, 16), bank_of(3, 8)
    (0, 0)
    """
    return offset * bits // 8 // BANK_BYTES % BANKS


def byte_text(offset: int, bits: int) -> str:
    """Where an element starts, in bytes.

    >>> byte_text(2_000_001, 16), byte_text(3, 4)
    ('byte 4000002', 'byte 1 bit 4')
    """
    byte, bit = divmod(offset * bits, 8)
    return f"byte {byte} bit {bit}" if bit else f"byte {byte}"


def check_bits(bits: Any) -> int:
    """A width that an element can have.

    Raises:
        InvalidValueError: none was given, or not 1 to 128 bits.
    """
    if not isinstance(bits, int) or isinstance(bits, bool) or not 1 <= bits <= 128:
        raise InvalidValueError(f"bits = {bits!r}; banks need the width of an element, 1 to 128 bits")
    return int(bits)


def _tone(color: str, bits: int | None, tile: tuple[int, int] | None) -> Callable[[int, int, Any], int | None]:
    if color == "value":
        return lambda i, j, value: int(value) % TONES if isinstance(value, int) else _first(value) % TONES
    if color == "thread":
        return lambda i, j, value: i % TONES
    if color == "tile":
        if tile is None:
            raise InvalidValueError("color='tile' needs the tile, such as tile=(2, 4)")
        high, wide = tile
        return lambda i, j, value: (i // high + 3 * (j // wide)) % TONES
    width = check_bits(bits)
    return lambda i, j, value: bank_of(int(value), width) * TONES // BANKS if isinstance(value, int) else None


def _first(value: Any) -> int:
    numbers = [int(x) for x in leaves(value.as_tuple()) if isinstance(x, int)] if hasattr(value, "as_tuple") else []
    return sum((1 + 2 * i) * n for i, n in enumerate(numbers))


def _checked_tile(tile: Any) -> tuple[int, int] | None:
    if tile is None:
        return None
    sizes = tile if isinstance(tile, tuple) else (tile,)
    if len(sizes) > 2 or not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in sizes):
        raise InvalidValueError(f"tile = {tile!r}; must be one or two sizes, 1 or more")
    return (1, int(sizes[0])) if len(sizes) == 1 else (int(sizes[0]), int(sizes[1]))


def _is_layout(thing: Any) -> bool:
    return isinstance(thing, (Layout, ComposedLayout))


def layout_table(
    title: str, layout: Any, color: str, bits: int | None, tile: tuple[int, int] | None, tables: int = 1
) -> Table:
    """The table of a layout's offsets (or coordinates, for basis strides)."""
    tone = _tone(color, bits, tile)

    def cell(i: int, j: int, coordinate: str, value: Any) -> Cell:
        text = f"{coordinate} -> {plain(value)}"
        if bits is not None and isinstance(value, int):
            text += f", {byte_text(int(value), bits)}, bank {bank_of(int(value), bits)}"
        if color == "thread":
            text += f", thread {i}"
        if tile is not None:
            text += f", tile ({i // tile[0]},{j // tile[1]})"
        shown_text = plain(value)
        if color == "bank" and bits is not None and isinstance(value, int):
            shown_text += f"\nb{bank_of(int(value), bits)}"
        return Cell(shown_text, text, tone(i, j, value))

    return table_of(title, position_independent(layout), cell, tables)


def draw_layout(
    layout: Any, color: Color = "value", *, bits: int | None = None, tile: Any = None, title: str | None = None
) -> Picture:
    """The table of a layout: a cell for each coordinate, with its offset.

    Args:
        layout: Layout or ComposedLayout of any rank; offsets of a swizzle on bytes are counted in elements.
        color: 'value': by offset modulo 8; 'bank': by 16 bytes of shared memory modulo 128, and each cell names its
            bank; 'thread': by mode 0;
            'tile': by the tile of `tile` elements that a cell lies in.
        bits: width of an element; needed for banks, except where the layout says it.
        tile: (rows, columns) of a tile.
    Raises:
        InvalidTypeError: no layout, or sizes that are not known.
        InvalidValueError: an unknown colour, or one that lacks its `bits` or `tile`.

    Beyond 64 rows or columns the middle is left out, and the picture says so.

    >>> print(draw_layout(Layout((2, (2, 2)), (4, (1, 2)))))
    (2,(2,2)):(4,(1,2))
    <BLANKLINE>
      down: mode 0 = 2:4; across: mode 1 = (2,2):(1,2)
     1.1 | [0-]  [1-]
         | 0  1  2  3
    -----+-----------
       0 | 0  1  2  3
       1 | 4  5  6  7
    """
    if not _is_layout(layout):
        raise InvalidTypeError(f"draw_layout takes a layout, got {type(layout).__name__} {layout!r}")
    if color not in COLORS:
        raise InvalidValueError(f"color = {color!r}; must be one of {', '.join(COLORS)}")
    width = element_bits(layout) if bits is None else check_bits(bits)
    table = layout_table("", layout, color, width, _checked_tile(tile))
    notes = (COLOR_NOTES[color],) if color in COLOR_NOTES else ()
    return Picture(str(layout) if title is None else title, (table,), notes)


def draw_compare(*layouts: Any, names: Sequence[str] = (), bits: int | None = None) -> Picture:
    """Layouts side by side, coloured alike: a layout and what composing, dividing or tiling makes of it.

    Args:
        layouts: 1 to 16 layouts; names: a name for each, or none.
    Raises:
        InvalidTypeError: something else than a layout; InvalidValueError: too many, or another number of names.
    """
    if not 1 <= len(layouts) <= MOST_LAYOUTS:
        raise InvalidValueError(f"{len(layouts)} layouts; must be 1 to {MOST_LAYOUTS}")
    if names and len(names) != len(layouts):
        raise InvalidValueError(f"{len(names)} names for {len(layouts)} layouts")
    wrong = [layout for layout in layouts if not _is_layout(layout)]
    if wrong:
        raise InvalidTypeError(f"draw_compare takes layouts, got {type(wrong[0]).__name__} {wrong[0]!r}")
    tables = []
    for i, layout in enumerate(layouts):
        title = f"{names[i]}: {layout}" if names else str(layout)
        tables.append(layout_table(title, layout, "value", bits or element_bits(layout), None, len(layouts)))
    return Picture("", tuple(tables), ("cells of one colour have offsets that are equal modulo 8",))


def draw_tensor(tensor: Any) -> Picture:
    """The elements of a coordinate tensor, or of one of implicit integers, with the strides of each mode.

    Args:
        tensor: a tensor whose engine is a coordinate or counting iterator; of any other tensor the layout is drawn.
    Raises:
        InvalidTypeError: no tensor.
    """
    if not isinstance(tensor, Tensor):
        raise InvalidTypeError(f"draw_tensor takes a tensor, got {type(tensor).__name__} {tensor!r}")
    if not isinstance(tensor.engine, (ArithTupleIterator, CountingIterator)):
        table = layout_table("", tensor.layout, "value", element_bits(tensor), None)
        return Picture(str(tensor), (table,), ("cells are offsets from the tensor's first element",))

    def cell(i: int, j: int, coordinate: str, value: Any) -> Cell:
        number = int(value) if isinstance(value, int) else _first(value)
        return Cell(plain(value), f"{coordinate} -> {plain(value)}", number % TONES)

    return Picture(str(tensor), (table_of("", tensor, cell),))
