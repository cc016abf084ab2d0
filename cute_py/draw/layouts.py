"""Pictures of layouts: the table of offsets, several side by side, coordinate tensors.

What the colours say stands below the picture. By value they are the remainder modulo 8 of the offset, in units of what
all strides have in common, so that they change from cell to cell also where all strides are large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import Any, Literal

from cute_py.argument_checks import MAX_INTEGER, expect, is_integer
from cute_py.arith_tuple.iterators import ArithTupleIterator, CountingIterator
from cute_py.draw.axes import axes_of, coordinate_text, equals, plain, table_of
from cute_py.draw.picture import Picture
from cute_py.draw.table import TONES, Cell, Legend, Table, tone_legend
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout, domain_of
from cute_py.layout.leaf import value_of
from cute_py.layout.recast import SmemPtrFlag, as_position_independent_swizzle_layout, memory_layout
from cute_py.layout.trees import leaves, modes
from cute_py.tensor.tensor import Tensor

Color = Literal["value", "bank", "thread", "tile"]
COLORS = ("value", "bank", "thread", "tile")
BANKS = 32
BANK_BYTES = 4
MOST_LAYOUTS = 16
"""Layouts that one picture compares."""
MOST_FOUND = 4096
"""Elements of a layout in which those of others are looked up."""
BANK_LEGEND = tone_legend(
    "colour: banks, of the 32 that are 4 bytes wide", tuple(f"{b}-{b + 3}" for b in range(0, 32, 4))
)


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
    if not is_integer(bits) or not 1 <= bits <= 128:
        raise InvalidValueError(f"bits = {given(bits)}; banks need the width of an element, 1 to 128 bits")
    return int(bits)


def unit_of(things: Sequence[Any]) -> int:
    """What all steps between the values of layouts or tensors have in common; 1 where they are permuted.

    Of coordinates their mode 0 counts.

    >>> unit_of([Layout((4, 4), (64, 16))]), unit_of([Layout((4, 4), (64, 16)), Layout(3, 8)])
    (16, 8)
    """
    unit = 0
    for thing in things:
        if isinstance(getattr(thing, "layout", thing), ComposedLayout):
            return 1
        domain = domain_of(thing)
        for size, stride in zip(leaves(domain._shape), leaves(domain._stride), strict=True):
            step = value_of(stride) if not hasattr(stride, "modes") else value_of(stride.value)
            if getattr(stride, "modes", (0,))[:1] in ((0,), ()) and value_of(size) != 1:
                unit = gcd(unit, step if isinstance(step, int) else 1)
    return unit or 1


def value_legend(unit: int, what: str = "offset") -> Legend:
    """The legend of colours by value."""
    return tone_legend(f"colour: {what} modulo {TONES}" if unit == 1 else f"colour: {what} / {unit} modulo {TONES}")


def _coloring(
    color: str, bits: int | None, tile: tuple[int, int] | None, unit: int, what: str = "offset"
) -> tuple[Callable[[int, int, Any], int | None], tuple[Legend, ...]]:
    """((row, column, value) -> tone, what the tones mean)."""
    if color == "value":
        return lambda i, j, value: _first(value) // unit % TONES, (value_legend(unit, what),)
    if color == "thread":
        names = tuple(str(n) for n in range(TONES))
        return lambda i, j, value: i % TONES, (tone_legend(f"colour: index in mode 0, modulo {TONES}", names),)
    if color == "tile":
        if tile is None:
            raise InvalidValueError("color='tile' needs the tile, such as tile=(2, 4)")
        high, wide = tile
        text = "" if high == 1 else f"{high} x "
        legend = Legend(f"tiles of {text}{wide}; cells of one colour side by side are one of them", told=True)
        return lambda i, j, value: (i // high + 3 * (j // wide)) % TONES, (legend,)
    width = check_bits(bits)
    return (
        lambda i, j, value: bank_of(int(value), width) * TONES // BANKS if isinstance(value, int) else None,
        (BANK_LEGEND,),
    )


def _first(value: Any) -> int:
    """The number that colours go by: the value, or mode 0 of a coordinate."""
    if isinstance(value, int):
        return int(value)
    numbers = leaves(value.as_tuple()) if hasattr(value, "as_tuple") else []
    return int(numbers[0]) if numbers and isinstance(numbers[0], int) else 0


def _checked_tile(tile: Any) -> tuple[int, int] | None:
    if tile is None:
        return None
    sizes = tile if isinstance(tile, tuple) else (tile,)
    if not 1 <= len(sizes) <= 2 or not all(is_integer(n) and 0 < n <= MAX_INTEGER for n in sizes):
        raise InvalidValueError(f"tile = {given(tile)}; must be one or two sizes, 1 or more")
    return (1, int(sizes[0])) if len(sizes) == 1 else (int(sizes[0]), int(sizes[1]))


def _is_layout(thing: Any) -> bool:
    return isinstance(thing, (Layout, ComposedLayout))


def _before(layout: Any) -> Callable[[int], str]:
    """Colexicographic index -> what stands between the sum of the strides and the value of a composed layout."""
    if not isinstance(layout, ComposedLayout) or not isinstance(layout.inner, Layout):
        return lambda index: ""
    offset = "" if layout.offset == 0 else f"{plain(layout.offset)} + "
    return lambda index: f" -> {layout.outer}({offset}{plain(layout.inner(index))})"


def layout_table(
    title: str,
    layout: Any,
    color: str,
    bits: int | None,
    tile: tuple[int, int] | None,
    tables: int = 1,
    unit: int | None = None,
    elsewhere: Callable[[Any], str] = lambda value: "",
) -> Table:
    """The table of a layout's offsets (or coordinates, for basis strides).

    Args:
        unit: what the offset is divided by before its colour is taken; None: what the strides have in common.
        elsewhere: value -> what else is said of it.
    """
    drawn = as_position_independent_swizzle_layout(layout)
    tone, legends = _coloring(color, bits, tile, unit or unit_of([drawn]), _what(drawn))
    before, (_, down, _) = _before(drawn), axes_of(drawn)

    def cell(i: int, j: int, way: str, value: Any) -> Cell:
        text = equals(f"{way}{before(i + down.size * j)}", plain(value))
        if bits is not None and isinstance(value, int):
            text += f", {byte_text(int(value), bits)}, bank {bank_of(int(value), bits)}"
        if color == "thread":
            text += f", thread {i}"
        if tile is not None:
            text += f", tile ({i // tile[0]},{j // tile[1]})"
        text += elsewhere(value)
        shown_text = plain(value)
        if color == "bank" and bits is not None and isinstance(value, int):
            shown_text += f"\nb{bank_of(int(value), bits)}"
        return Cell(shown_text, text, tone(i, j, value))

    return table_of(title, drawn, cell, tables, legends)


def _what(thing: Any) -> str:
    """What the values of a layout are."""
    basis = any(getattr(stride, "modes", ()) for stride in leaves(domain_of(thing)._stride))
    return "mode 0 of the coordinate" if basis else "offset"


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
        raise InvalidTypeError(f"draw_layout takes a layout, got {type(layout).__name__} {given(layout)}")
    if not isinstance(color, str) or color not in COLORS:
        raise InvalidValueError(f"color = {given(color)}; must be one of {', '.join(COLORS)}")
    if title is not None:
        expect(title, str, "the title of a picture")
    width = element_bits(layout) if bits is None else check_bits(bits)
    table = layout_table("", layout, color, width, _checked_tile(tile))
    return Picture(str(layout) if title is None else title, (table,))


def _found_in(layout: Any, name: str) -> Callable[[Any], str]:
    """value -> at which coordinate a layout has it, the first one; nothing of large layouts and of coordinates."""
    drawn = as_position_independent_swizzle_layout(layout)
    drawn, down, across = axes_of(drawn)
    if down.size * across.size > MOST_FOUND:
        return lambda value: ""
    places: dict[int, str] = {}
    rank = min(len(modes(domain_of(drawn)._shape)), 2)
    for j in range(across.size):
        for i in range(down.size):
            value = drawn(i, j) if rank == 2 else drawn(j) if rank else drawn(())
            if isinstance(value, int):
                places.setdefault(int(value), coordinate_text(down, across, rank, i, j))
    return lambda value: f"; {name} has it at {places[int(value)]}" if value in places else ""


def draw_compare(*layouts: Any, names: Sequence[str] = (), bits: int | None = None) -> Picture:
    """Layouts side by side, coloured alike: a layout and what composing, dividing or tiling makes of it.

    Args:
        layouts: 1 to 16 layouts; names: a name for each, or none.
    Raises:
        InvalidTypeError: something else than a layout; InvalidValueError: too many, or another number of names.

    The title of a cell tells at which coordinate the first layout has the same offset: where the element came from.
    """
    if not 1 <= len(layouts) <= MOST_LAYOUTS:
        raise InvalidValueError(f"{len(layouts)} layouts; must be 1 to {MOST_LAYOUTS}")
    if not isinstance(names, (tuple, list)):
        raise InvalidTypeError(f"names are a list of texts, got {given(names)}")
    names = [expect(name, str, f"names[{i}]") for i, name in enumerate(names)]
    bits = None if bits is None else check_bits(bits)
    if names and len(names) != len(layouts):
        raise InvalidValueError(f"{len(names)} names for {len(layouts)} layouts")
    wrong = [layout for layout in layouts if not _is_layout(layout)]
    if wrong:
        raise InvalidTypeError(f"draw_compare takes layouts, got {type(wrong[0]).__name__} {given(wrong[0])}")
    unit = unit_of([as_position_independent_swizzle_layout(layout) for layout in layouts])
    tables = []
    for i, layout in enumerate(layouts):
        title = f"{names[i]}: {layout}" if names else str(layout)
        width = bits or element_bits(layout)
        told = _found_in(layouts[0], names[0] if names else "the first") if i else lambda value: ""
        tables.append(layout_table(title, layout, "value", width, None, len(layouts), unit, told))
    return Picture("", tuple(tables))


def draw_tensor(tensor: Any) -> Picture:
    """The elements of a coordinate tensor, or of one of implicit integers, with the strides of each mode.

    Args:
        tensor: a tensor whose engine is a coordinate or counting iterator; of any other tensor the layout is drawn.
    Raises:
        InvalidTypeError: no tensor.
    """
    if not isinstance(tensor, Tensor):
        raise InvalidTypeError(f"draw_tensor takes a tensor, got {type(tensor).__name__} {given(tensor)}")
    if not isinstance(tensor.engine, (ArithTupleIterator, CountingIterator)):
        table = layout_table("", memory_layout(tensor), "value", element_bits(tensor), None)
        return Picture(str(tensor), (table,), ("cells are offsets from the tensor's first element",))

    start = tensor.engine.coord if isinstance(tensor.engine, ArithTupleIterator) else tensor.engine.value
    begin = "" if not _first(start) and plain(start).strip("(,0)") == "" else f"{plain(start)} + "
    layout = as_position_independent_swizzle_layout(tensor.layout)
    unit = unit_of([layout])
    legend = value_legend(unit, "element" if isinstance(start, int) else "mode 0 of the coordinate")

    def cell(i: int, j: int, way: str, value: Any) -> Cell:
        coordinate, sum_of = way.split(" -> ")
        return Cell(
            plain(value), equals(f"{coordinate} -> {begin}{sum_of}", plain(value)), _first(value) // unit % TONES
        )

    return Picture(str(tensor), (table_of("", tensor, cell, legends=(legend,)),))
