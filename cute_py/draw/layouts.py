"""Pictures of layouts: tables of offsets, several layouts side by side, and coordinate tensors.

Mode 0 of a layout runs down and mode 1 across; all other modes are grouped with mode 1. Nested modes have brackets: the
innermost leaf changes from cell to cell, and each bracket covers one index of an outer leaf.

A legend below the picture explains the colours. With color='value', a cell's colour is its offset modulo 8, in units of
the greatest common divisor of all strides, so the colours change from cell to cell even if all strides are large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from math import gcd, prod
from typing import Any, Literal, TypeAlias

from cute_py.argument_checks import expect, expect_choice, expect_integer, expect_integers, expect_items, is_integer
from cute_py.arith_tuple.arith_tuple import ArithTuple, ScaledBasis
from cute_py.arith_tuple.iterators import ArithTupleIterator, CountingIterator
from cute_py.draw.picture import Picture
from cute_py.draw.table import TONES, Cell, Legend, Table, axis_limit, brackets, cut_note, grid, shown, tone_legend
from cute_py.dtypes import DTypeLike, as_dtype, is_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.layout.arguments import Tree
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.coordinate import idx2crd
from cute_py.layout.layout import Layout, domain_of, has_numbers
from cute_py.layout.leaf import leaf_text, tree_text, value_of
from cute_py.layout.modes import group_modes
from cute_py.layout.offset_table import MOST_LISTED, offset_table
from cute_py.layout.recast import SmemPtrFlag, as_position_independent_swizzle_layout, memory_layout
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves, map_leaves, modes
from cute_py.targets import BANK_BYTES, BANKS
from cute_py.tensor.tensor import Tensor

AnyLayout: TypeAlias = Layout | ComposedLayout
"""A layout whose offsets a table can show."""
Drawn: TypeAlias = Layout | ComposedLayout | Tensor
Value: TypeAlias = int | ArithTuple | ScaledBasis
"""The value of a layout, or of a tensor of coordinates, at a coordinate."""
Sizes: TypeAlias = "int | tuple[Sizes, ...]"
Color = Literal["value", "bank", "thread", "tile"]
COLORS: tuple[Color, ...] = ("value", "bank", "thread", "tile")
MOST_LAYOUTS = 16
"""Maximum number of layouts in one picture."""
MOST_FOUND = 4096
"""Maximum number of elements of the layout that the others are compared with."""
BANK_LEGEND = tone_legend(
    "colour: banks, of the 32 that are 4 bytes wide", tuple(f"{b}-{b + 3}" for b in range(0, 32, 4))
)


@dataclass(frozen=True)
class PlaneAxis:
    """One mode of a layout as an axis of the table: `shape` and `stride` are its nested tuples, and `path` is the
    number of the mode or ''.
    """

    name: str
    shape: Tree
    stride: Tree
    path: str

    @cached_property
    def sizes(self) -> list[int]:
        return [int(value_of(leaf)) for leaf in leaves(self.shape)]

    @cached_property
    def size(self) -> int:
        return prod(self.sizes)

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

    @cached_property
    def steps(self) -> list[tuple[int, str]]:
        """(size, text of the stride) of every leaf, innermost first."""
        return [
            (n, leaf_text(stride).replace("_", "")) for n, stride in zip(self.sizes, leaves(self.stride), strict=True)
        ]

    @cached_property
    def terms(self) -> Callable[[int], tuple[str, ...]]:
        """Function that returns the nonzero terms, such as '3*8', which the leaves add to the value at an index. The
        terms are cached by index, because all cells of a row or a column share them.
        """

        @cache
        def of(index: int) -> tuple[str, ...]:
            out = []
            for size, stride in self.steps:
                index, at = divmod(index, max(size, 1))
                if at:
                    out.append(f"{at}*{stride}" if not stride.startswith("-") else f"{at}*({stride})")
            return tuple(out)

        return of

    @cached_property
    def coordinate(self) -> Callable[[int], str]:
        """Function that returns the text of an index's natural coordinate, cached by index."""
        return cache(lambda index: str(idx2crd(index, self.plain)).replace(" ", ""))

    @cached_property
    def plain(self) -> Tree:
        """The shape with plain integers as leaves."""
        return map_leaves(lambda leaf: int(value_of(leaf)), self.shape)

    def __str__(self) -> str:
        """Text of the axis: name, shape and stride."""
        return f"{self.name} = {tree_text(self.shape)}:{tree_text(self.stride)}" if self.name else ""


@dataclass(frozen=True)
class Plane:
    """A layout or tensor of at most two modes (`rank`), and its vertical and horizontal axes."""

    thing: Drawn
    rank: int
    down: PlaneAxis
    across: PlaneAxis

    @cached_property
    def value(self) -> Callable[[int, int], Value]:
        """Function that returns the value at a row and a column. A numeric offset is the sum of one term from each
        axis, and each term is computed once.
        """
        thing: Any = self.thing
        if isinstance(thing, ComposedLayout) and isinstance(thing.outer, Swizzle) and isinstance(thing.inner, Layout):
            start = value_of(thing.offset)
            inner, outer = self._sum(thing.inner), thing.outer
            if inner is not None and type(start) is int:
                return lambda i, j: outer.of(start + inner(i, j))
        added = self._sum(thing) if isinstance(thing, Layout) else None
        if added is not None:
            return added
        if self.rank == 2:
            return lambda i, j: thing(i, j)
        return lambda i, j: thing(j) if self.rank else thing(())

    def _sum(self, layout: Layout) -> Callable[[int, int], int] | None:
        """Function that returns the offset at a row and a column by lookup; None if the strides are not numbers or an
        axis is long.
        """
        if max(self.down.size, self.across.size) > MOST_LISTED or not has_numbers(layout):
            return None
        down, across = (offset_table(Layout(axis.shape, axis.stride)) for axis in (self.down, self.across))
        return lambda i, j: down[i] + across[j]

    def coordinate(self, i: int, j: int) -> str:
        """The natural coordinate of row i and column j."""
        if self.rank == 2:
            return f"({self.down.coordinate(i)},{self.across.coordinate(j)})"
        return self.across.coordinate(j) if self.rank else "()"

    def sum_of(self, i: int, j: int) -> str:
        """Text of the offset of a cell as a sum of index times stride: '1*8 + 6*1'."""
        return " + ".join([*self.down.terms(i), *self.across.terms(j)]) or "0"


def plane_of(thing: Drawn) -> Plane:
    """Arrange a layout or tensor of any rank as a plane: mode 0 runs down, and all other modes, as one group, run
    across.

    Raises:
        InvalidTypeError: the argument is not a layout or tensor, or a size is not a known number.
    """
    domain = domain_of(thing)
    for leaf in leaves(domain.shape):
        if not isinstance(value_of(leaf), int):
            text = f"a picture needs known sizes, got {leaf_text(leaf)}"
            raise InvalidTypeError(
                text, {"layout": domain}, "use layout.subs({...}) to replace the symbols with numbers"
            )
    rank = len(modes(domain.shape))
    if rank > 2:
        thing = group_modes(thing, 1, rank)
        domain = domain_of(thing)
    names = ("mode 0", "mode 1" if rank == 2 else f"modes 1..{rank - 1}")
    axes = [PlaneAxis(*row) for row in zip(names, modes(domain.shape), modes(domain.stride), "01", strict=False)]
    return Plane(thing, len(axes), *([PlaneAxis("", 1, 0, "")] * 2 + axes)[-2:])


def table_of(
    title: str,
    plane: Plane,
    cell: Callable[[int, int, str, Value], Cell],
    tables: int = 1,
    legends: tuple[Legend, ...] = (),
    begin: str = "",
) -> Table:
    """Build the table of a layout or tensor.

    Args:
        cell: (row, column, path, value) -> Cell; the path is the coordinate and its sum of strides: '(1,6) -> 1*8 +
            6*1'.
        tables: number of tables in the picture. legends: legends of the colours. begin: beginning of the sum, such as
            '5 + '.
    """
    down, across = plane.down, plane.across
    limit = axis_limit(down.size, across.size, tables)
    rows, columns = shown(down.size, limit), shown(across.size, limit)
    return grid(
        rows,
        columns,
        lambda i, j: cell(i, j, f"{plane.coordinate(i, j)} -> {begin}{plane.sum_of(i, j)}", plane.value(i, j)),
        title=title,
        row_axis=str(down),
        column_axis=str(across),
        row_brackets=brackets(down.sizes, down.paths, rows),
        column_brackets=brackets(across.sizes, across.paths, columns),
        notes=cut_note(down.size, across.size, rows, columns),
        legends=legends,
    )


def plain(value: Value | SmemPtrFlag) -> str:
    """Text of a value, without the underscore that marks static integers."""
    return str(int(value)) if isinstance(value, int) else str(value).replace("_", "")


def equals(path: str, value: str) -> str:
    """Text 'path = value' of a coordinate's path; if the path already ends with the value, it is not repeated.

    >>> equals("(0,0) -> 0", "0"), equals("(0,2) -> 2*4", "8")
    ('(0,0) -> 0', '(0,2) -> 2*4 = 8')
    """
    return path if path.endswith(f" -> {value}") else f"{path} = {value}"


def _element_bits(layout: Drawn) -> int | None:
    """Bits of an element, if a layout or tensor defines them: by the flag of a swizzle on bytes, or by the pointer's
    type."""
    offset = getattr(layout, "offset", None)
    if isinstance(offset, SmemPtrFlag):
        return int(offset.bits)
    kind = getattr(getattr(layout, "engine", None), "element_type", None)
    return None if kind is None else int(kind.bits)


def bank_of(offset: int, bits: int) -> int:
    """The shared-memory bank (one of 32, each 4 bytes wide) that holds the first bit of the element at an offset.

    >>> bank_of(64, 16), bank_of(3, 8)
    (0, 0)
    """
    return offset * bits // 8 // BANK_BYTES % BANKS


def byte_text(offset: int, bits: int) -> str:
    """Text of the byte offset of an element.

    >>> byte_text(2_000_001, 16), byte_text(3, 4)
    ('byte 4000002', 'byte 1 bit 4')
    """
    byte, bit = divmod(offset * bits, 8)
    return f"byte {byte} bit {bit}" if bit else f"byte {byte}"


def expect_element_bits(bits: DTypeLike | int | None) -> int:
    """Return the width of an element in bits, given that number or an element type in any spelling.

    Raises:
        InvalidTypeError: the width is missing, or is neither bits nor a type. InvalidValueError: the width is not 1 to
            128 bits, or the type does not exist.

    >>> expect_element_bits(16), expect_element_bits("float16")
    (16, 16)
    """
    number = as_dtype(bits).bits if not is_integer(bits) and is_dtype(bits) else bits
    return expect_integer(number, "bits, the width of an element,", 1, 128, hint="such as bits=16, or bits='float16'")


def expect_layout(thing: AnyLayout, what: str) -> AnyLayout:
    """Return a layout or composed layout unchanged.

    Raises:
        InvalidTypeError: the argument is something else.
    """
    return thing if isinstance(thing, ComposedLayout) else expect(thing, Layout, what)


def unit_of(things: Sequence[Drawn]) -> int:
    """Greatest common divisor of the strides of layouts or tensors; 1 if a swizzle permutes the values.

    For values that are coordinates, only strides along mode 0 count.

    >>> unit_of([Layout((4, 4), (64, 16))]), unit_of([Layout((4, 4), (64, 16)), Layout(3, 8)])
    (16, 8)
    """
    unit = 0
    for thing in things:
        if isinstance(getattr(thing, "layout", thing), ComposedLayout):
            return 1
        domain = domain_of(thing)
        for size, stride in zip(leaves(domain.shape), leaves(domain.stride), strict=True):
            step = value_of(stride) if not hasattr(stride, "modes") else value_of(stride.value)
            if getattr(stride, "modes", (0,))[:1] in ((0,), ()) and value_of(size) != 1:
                unit = gcd(unit, step if isinstance(step, int) else 1)
    return unit or 1


def value_legend(unit: int, what: str = "offset") -> Legend:
    """The legend of color='value'."""
    return tone_legend(f"colour: {what} modulo {TONES}" if unit == 1 else f"colour: {what} / {unit} modulo {TONES}")


def _coloring(
    color: str, bits: int | None, tile: tuple[int, int] | None, unit: int, what: str = "offset"
) -> tuple[Callable[[int, int, Value], int | None], tuple[Legend, ...]]:
    """Return the function (row, column, value) -> tone, and the legends that explain the tones."""
    if color == "value":
        return lambda i, j, value: _first(value) // unit % TONES, (value_legend(unit, what),)
    if color == "thread":
        return lambda i, j, value: i % TONES, (tone_legend(f"colour: index in mode 0, modulo {TONES}"),)
    if color == "tile":
        if tile is None:
            raise InvalidValueError("color='tile' needs the tile, such as tile=(2, 4)")
        high, wide = tile
        text = "" if high == 1 else f"{high} x "
        legend = Legend(f"tiles of {text}{wide}; cells of one colour side by side are one of them", in_text=True)
        return lambda i, j, value: (i // high + 3 * (j // wide)) % TONES, (legend,)
    width = expect_element_bits(bits)
    return (
        lambda i, j, value: bank_of(int(value), width) * TONES // BANKS if isinstance(value, int) else None,
        (BANK_LEGEND,),
    )


def _first(value: Value) -> int:
    """The integer that selects the colour: the value itself, or mode 0 of a coordinate."""
    if isinstance(value, int):
        return int(value)
    numbers = leaves(value.as_tuple()) if isinstance(value, ArithTuple) else []
    return int(numbers[0]) if numbers and isinstance(numbers[0], int) else 0


def _checked_tile(tile: Sizes | None) -> tuple[int, int] | None:
    if tile is None:
        return None
    sizes = expect_integers(tile if isinstance(tile, tuple) else (tile,), "tile", 1)
    if not 1 <= len(sizes) <= 2:
        raise InvalidValueError(f"tile = {given(tile)}; must have one or two sizes")
    return (1, sizes[0]) if len(sizes) == 1 else (sizes[0], sizes[1])


def _before(layout: AnyLayout) -> Callable[[int, int], str]:
    """Function that returns the text of the steps of a composed layout, between the sum of the strides and the value,
    at a row and a column.
    """
    if not isinstance(layout, ComposedLayout) or not isinstance(layout.inner, Layout):
        return lambda i, j: ""
    begin = f" -> {layout.outer}(" + ("" if layout.offset == 0 else f"{plain(layout.offset)} + ")
    inside = plane_of(layout.inner).value
    return lambda i, j: f"{begin}{plain(inside(i, j))})"


def layout_table(
    title: str,
    layout: AnyLayout,
    color: str,
    bits: int | None,
    tile: tuple[int, int] | None,
    tables: int = 1,
    unit: int | None = None,
    elsewhere: Callable[[Value], str] = lambda value: "",
) -> Table:
    """Build the table of a layout's offsets (or coordinates, for basis strides).

    Args:
        unit: divisor of the offset before the modulo that selects the colour; None: the greatest common divisor of the
            strides.
        elsewhere: function that returns more text for the title of a cell, given its value.
    """
    drawn = as_position_independent_swizzle_layout(layout)
    tone, legends = _coloring(color, bits, tile, unit or unit_of([drawn]), _what(drawn))
    before = _before(drawn)

    def cell(i: int, j: int, path: str, value: Value) -> Cell:
        text = plain(value)
        story = equals(path + before(i, j), text)
        if bits is not None and isinstance(value, int):
            bank = bank_of(int(value), bits)
            story += f", {byte_text(int(value), bits)}, bank {bank}"
            text += f"\nb{bank}" if color == "bank" else ""
        story += f", thread {i}" if color == "thread" else ""
        story += f", tile ({i // tile[0]},{j // tile[1]})" if tile is not None else ""
        return Cell(text, story + elsewhere(value), tone(i, j, value))

    return table_of(title, plane_of(drawn), cell, tables, legends)


def _what(thing: Drawn) -> str:
    """The noun for the values of a layout, 'offset' or 'coordinate'."""
    basis = any(getattr(stride, "modes", ()) for stride in leaves(domain_of(thing).stride))
    return "mode 0 of the coordinate" if basis else "offset"


def draw_layout(
    layout: AnyLayout,
    color: Color = "value",
    *,
    bits: DTypeLike | int | None = None,
    tile: Sizes | None = None,
    title: str | None = None,
) -> Picture:
    """Draw the table of a layout: a cell for each coordinate, with its offset.

    Args:
        layout: Layout or ComposedLayout of any rank. If its swizzle acts on bytes, the offsets are still counted in
            elements.
        color: 'value': by offset modulo 8; 'bank': by 16-byte unit of a 128-byte line of shared memory, and each cell
            names its bank; 'thread': by index in mode 0;
            'tile': by the tile of shape `tile` that contains the cell.
        bits: width of an element in bits, or its type; required for 'bank', unless the layout defines it.
        tile: (rows, columns) of a tile.
    Raises:
        InvalidTypeError: the argument is not a layout, a size is unknown, or `color` needs `bits`.
        InvalidValueError: the value of `color` is unknown, or needs `tile`.

    If there are more than 64 rows or columns, the middle is left out, with a note.

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
    expect_layout(layout, "layout")
    color = expect_choice(color, COLORS, "color")
    name = str(layout) if title is None else expect(title, str, "the title of a picture")
    width = _element_bits(layout) if bits is None else expect_element_bits(bits)
    return Picture(name, (layout_table("", layout, color, width, _checked_tile(tile)),))


def _found_in(layout: AnyLayout, name: str) -> Callable[[Value], str]:
    """The first coordinate of each value of a layout; empty for large layouts and for coordinate values."""
    plane = plane_of(as_position_independent_swizzle_layout(layout))
    if plane.down.size * plane.across.size > MOST_FOUND:
        return lambda value: ""
    places: dict[int, str] = {}
    for j, i in product(range(plane.across.size), range(plane.down.size)):
        value = plane.value(i, j)
        if isinstance(value, int):
            places.setdefault(int(value), plane.coordinate(i, j))
    return lambda value: (
        f"; {name} has it at {places[int(value)]}" if isinstance(value, int) and value in places else ""
    )


def draw_compare(*layouts: AnyLayout, names: Sequence[str] = (), bits: DTypeLike | int | None = None) -> Picture:
    """Draw layouts side by side with the same colours, such as a layout and the results of composing, dividing or
    tiling it.

    Args:
        layouts: 1 to 16 layouts. names: a name for each layout, or empty.
    Raises:
        InvalidTypeError: an argument is not a layout. InvalidValueError: there are too many layouts, or the numbers of
            layouts and names differ.

    The title of a cell gives the coordinate where the first layout has the same offset, so it shows where the
    element comes from.

    >>> import cute_py as cute
    >>> layout = cute.parse("(4,8):(8,1)")
    >>> picture = draw_compare(layout, cute.coalesce(layout), names=("layout", "coalesced"))
    >>> "coalesced" in picture.svg
    True
    """
    if not 1 <= len(layouts) <= MOST_LAYOUTS:
        raise InvalidValueError(f"draw_compare takes 1 to {MOST_LAYOUTS} layouts, got {len(layouts)}")
    names = [expect(name, str, f"names[{i}]") for i, name in enumerate(expect_items(names, "names"))]
    given_bits = None if bits is None else expect_element_bits(bits)
    if names and len(names) != len(layouts):
        raise InvalidValueError(f"{len(names)} names for {len(layouts)} layouts")
    drawn = [expect_layout(layout, f"layouts[{i}]") for i, layout in enumerate(layouts)]
    unit = unit_of([as_position_independent_swizzle_layout(layout) for layout in drawn])
    tables = []
    for i, layout in enumerate(layouts):
        title = f"{names[i]}: {layout}" if names else str(layout)
        width = given_bits or _element_bits(layout)
        note = _found_in(layouts[0], names[0] if names else "the first") if i else lambda value: ""
        tables.append(layout_table(title, layout, "value", width, None, len(layouts), unit, note))
    return Picture("", tuple(tables))


def draw_tensor(tensor: Tensor) -> Picture:
    """Draw the elements of a coordinate tensor, or of a tensor that counts integers, with the strides of each mode.

    Args:
        tensor: a tensor whose engine is a coordinate iterator or a counting iterator; for any other tensor, the layout
            is drawn.
    Raises:
        InvalidTypeError: the argument is not a tensor.

    >>> import cute_py as cute
    >>> print(draw_tensor(cute.make_identity_tensor((2, 3))).text)
    ArithTuple(_0,_0) o (2,3):(_1@0,_1@1)
    <BLANKLINE>
      down: mode 0 = 2:_1@0; across: mode 1 = 3:_1@1
      |     0      1      2
    --+--------------------
    0 | (0,0)  (0,1)  (0,2)
    1 | (1,0)  (1,1)  (1,2)
    """
    if not isinstance(expect(tensor, Tensor, "tensor").engine, (ArithTupleIterator, CountingIterator)):
        table = layout_table("", memory_layout(tensor), "value", _element_bits(tensor), None)
        return Picture(str(tensor), (table,), ("cells are offsets from the tensor's first element",))

    engine = tensor.engine
    start: Any = engine.coord if isinstance(engine, ArithTupleIterator) else engine.value
    begin = "" if not _first(start) and plain(start).strip("(,0)") == "" else f"{plain(start)} + "
    layout = as_position_independent_swizzle_layout(tensor.layout)
    unit = unit_of([layout])
    legend = value_legend(unit, "element" if isinstance(start, int) else "mode 0 of the coordinate")

    def cell(i: int, j: int, path: str, value: Value) -> Cell:
        return Cell(plain(value), equals(path, plain(value)), _first(value) // unit % TONES)

    return Picture(str(tensor), (table_of("", plane_of(tensor), cell, legends=(legend,), begin=begin),))
