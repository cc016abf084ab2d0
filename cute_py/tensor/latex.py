"""print_latex, print_latex_tv and print_layout: layouts as TikZ pictures and tables, exactly as C++ prints them.

print_latex      a grid of offsets, each filled with one of eight greys by the offset modulo 8
print_latex_tv   a grid of `T thread V value`, from a layout (thread, value) -> (m, n); eight colours by thread modulo 8
Source: cute/util/print_latex.hpp.

print_layout: the offsets of a rank-2 layout as a table.

A column of print_layout has the width of the printed cosize, as a 32-bit number. Negative offsets may exceed this
width, and offsets of 2**31 and more wrap around, because C++ prints an `int`.
Source: cute/util/print_tensor.hpp.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, Final, TextIO

from cute_py.argument_checks import expect_function, expect_having, is_integer, wrong_type
from cute_py.arith_tuple.arith_tuple import ArithTuple, ScaledBasis, as_arith_tuple
from cute_py.arith_tuple.cells import int32, known_integer
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError, integer_text
from cute_py.layout.arguments import LayoutLike, Shaped, Tree
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.composition import composition
from cute_py.layout.int_tuple import product_each, size
from cute_py.layout.layout import Layout, coprofile, cosize, domain_of
from cute_py.layout.leaf import is_symbolic, value_of
from cute_py.layout.modes import append
from cute_py.layout.recast import as_position_independent_swizzle_layout
from cute_py.layout.trees import leaves, modes
from cute_py.tensor.tensor import Tensor, make_identity_layout

__all__ = ["format_latex", "format_latex_tv", "format_layout", "print_latex", "print_latex_tv", "print_layout"]

_TILE_HINT: Final = "print one tile: local_tile(layout, tiler, coordinate)"
MAX_CELLS = 1 << 20
"""Largest number of cells in a printed table; more would be hundreds of megabytes of text."""


def text_file(file: TextIO | None) -> TextIO:
    """Return the file to print to: the given file, or standard output.

    Raises:
        InvalidTypeError: the object has no method `write`.
    """
    if file is None:
        return sys.stdout
    expect_having(file, ("write",), "a file with a method write")
    return file


def check_cells(
    sizes: Sequence[int], operation: str, facts: Mapping[str, object], hint: str, most: int = MAX_CELLS
) -> None:
    """Refuse a table with too many cells. A mode of size 0 counts as 1, because its headings and rulers are printed.

    Raises:
        InvalidValueError: the table has more than `most` cells.
    """
    if prod(max(n, 1) for n in sizes) > most:
        shown = " x ".join(map(integer_text, sizes))
        raise InvalidValueError(f"{operation} would print {shown} cells; must be at most {most}", facts, hint)


def table_sizes(layout: LayoutLike, operation: str) -> tuple[int, int]:
    """Return (rows, columns) of the table for a layout of rank 2.

    Raises:
        InvalidTypeError: a size is symbolic; InvalidValueError: the table has more than `MAX_CELLS` cells.
    """
    sizes = [size(layout, 0), size(layout, 1)]
    for n in sizes:
        if is_symbolic(n):
            raise InvalidTypeError(
                f"{operation} needs known sizes, got the symbol {n}",
                {"layout": layout},
                "use layout.subs({...}) to replace the symbols with numbers",
            )
    rows, columns = (int(n) for n in sizes)
    check_cells((rows, columns), operation, {"layout": layout}, _TILE_HINT)
    return rows, columns


def check_integer_offsets(layout: LayoutLike, operation: str) -> None:
    """Refuse a layout whose offsets are coordinates, which C++'s functions do not accept either."""
    strides = [d for d in leaves(domain_of(layout).stride) if getattr(d, "modes", None)]
    if strides:
        raise InvalidTypeError(
            f"{operation} needs integer offsets, but the offsets of this layout are coordinates",
            {"layout": layout, "stride": strides[0]},
            "use print_tensor(make_coord_tensor(layout))",
        )


def format_layout(layout: Layout | ComposedLayout) -> str:
    """Return the text of print_layout: a table of the offsets of a rank-2 layout.

    Raises:
        StaticAssertError: the rank is not 2; InvalidTypeError: the offsets are coordinates, or symbols.
        InvalidValueError: the table has more than 2**20 cells. Print a tile of the layout instead.

    >>> for line in format_layout(Layout((Int(2), Int(3)))).splitlines():
    ...     print(line.rstrip())
    (_2,_3):(_1,_2)
          0   1   2
        +---+---+---+
     0  | 0 | 2 | 4 |
        +---+---+---+
     1  | 1 | 3 | 5 |
        +---+---+---+
    """
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise wrong_type("print_layout takes a layout", layout)
    layout = as_position_independent_swizzle_layout(layout)
    rank = len(modes(domain_of(layout).shape))
    if rank != 2:
        raise StaticAssertError("rank(layout) == Int<2>{}", {"layout": layout, "rank": rank})
    check_integer_offsets(layout, "print_layout")
    width = table_sizes(layout, "print_layout")[1]
    digits = len(str(max(int32(cosize(layout)), 0)))
    rule = "    " + ("+" + "-" * (digits + 2)) * width + "+\n"
    line = f"{rule}%2d  " + f"| %{digits}d " * width + "|\n"
    out = [f"{layout}\n", "    " + "".join([f"  {n:{digits}d} " for n in range(width)]) + "\n"]
    out += [line % (m, *map(int32, row)) for m, row in enumerate(_offset_rows(layout))]
    return "".join([*out, rule])


def _offset_rows(layout: Layout | ComposedLayout) -> Iterable[Sequence[int]]:
    """Yield the offsets of a table by rows. In a plain layout, each is the sum of a row's and a column's offset."""
    if isinstance(layout, ComposedLayout):
        outer, start = layout.outer, int(layout.offset) if is_integer(layout.offset) else layout.offset
        for row in _offset_rows(layout.inner):
            yield [outer(start + offset) for offset in row]
        return
    down, along = map(_steps, modes(layout.shape), modes(layout.stride))
    for first in down:
        yield [first + step for step in along]


def _steps(shape: Tree, stride: Tree) -> list[int]:
    """Return the offsets of one mode with known sizes."""
    out: list[int] | None = None
    for n, d in zip(leaves(shape), leaves(stride), strict=True):
        steps = [k * value_of(d) for k in range(value_of(n))]
        out = steps if out is None else [first + step for step in steps for first in out]
    return [0] if out is None else out


def print_layout(layout: Layout | ComposedLayout, file: TextIO | None = None) -> None:
    """Print the table of a rank-2 layout as C++'s print_layout does.

    >>> print_layout(Layout((2, 3), (3, 1)))  # doctest: +NORMALIZE_WHITESPACE
    (2,3):(3,1)
          0   1   2
        +---+---+---+
     0  | 0 | 1 | 2 |
        +---+---+---+
     1  | 3 | 4 | 5 |
        +---+---+---+
    """
    out = text_file(file)
    out.write(format_layout(layout))


_GREYS = ("00", "40", "20", "60", "10", "50", "30", "70")

PASTELS = (
    (175, 175, 255),
    (175, 255, 175),
    (255, 255, 175),
    (255, 175, 175),
    (210, 210, 255),
    (210, 255, 210),
    (255, 255, 210),
    (255, 210, 210),
)

TIKZ_HEAD = (
    "\\documentclass[convert]{standalone}\n\\usepackage{tikz}\n\n\\begin{document}\n"
    "\\begin{tikzpicture}[x={(0cm,-1cm)},y={(1cm,0cm)},every node/.style={minimum size=1cm, outer sep=0pt}]\n\n"
)
TIKZ_FOOT = "\\end{tikzpicture}\n\\end{document}\n"


def grey(offset: int) -> str:
    """Return the fill for an offset, as a TikZ colour."""
    return f"black!{_GREYS[offset % 8]}"


def pastel(thread: int, value: int) -> str:
    """Return the fill for a thread's value, as a TikZ colour, which depends only on the thread."""
    red, green, blue = PASTELS[thread % 8]
    return f"{{rgb,255:red,{red};green,{green};blue,{blue}}}"


def _grid_and_labels(rows: int, columns: int) -> list[str]:
    out = [f"\\draw[color=black,thick,shift={{(-0.5,-0.5)}}] (0,0) grid ({rows},{columns});\n\n"]
    out += [f"\\node at ({m},-1) {{\\Large{{\\texttt{{{m}}}}}}};\n" for m in range(rows)]
    out += [f"\\node at (-1,{n}) {{\\Large{{\\texttt{{{n}}}}}}};\n" for n in range(columns)]
    return out


def format_latex(layout: Layout | ComposedLayout, color: Callable[[int], str] = grey) -> str:
    """Return the text of print_latex: a standalone TikZ picture of a layout of rank at most 2.

    Args:
        layout: layout or composed layout with integer offsets; a layout of rank 1 is shown as one column, and a tiled
            MMA or copy as threads and values.
        color: a function offset -> TikZ colour; for a tiled operation, (thread, value) -> TikZ colour.
    Raises:
        StaticAssertError: the rank is above 2; InvalidTypeError: the offsets are coordinates or symbols.
            InvalidValueError: the picture has more than 2**20 cells.

    >>> print(format_latex(Layout((Int(2), Int(3)))).splitlines()[0])
    % Layout: (_2,_3):(_1,_2)
    """
    expect_function(color, "color")
    own = getattr(layout, "latex", None)
    if callable(own):  # tiled operations: (thread, value) pictures
        return str(own(None if color is grey else color))
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise wrong_type("print_layout takes a layout", layout)
    layout = as_position_independent_swizzle_layout(layout)
    rank = len(modes(domain_of(layout).shape))
    if rank > 2:
        raise StaticAssertError("rank(layout_a) <= Int<2>{}", {"layout": layout, "rank": rank})
    check_integer_offsets(layout, "print_latex")
    table = append(layout, None, 2)
    rows, columns = table_sizes(table, "print_latex")
    out = [f"% Layout: {table}\n", TIKZ_HEAD]
    for m, row in enumerate(_offset_rows(table)):
        for n, offset in enumerate(map(int32, row)):
            out.append(f"\\node[fill={color(offset)}] at ({m},{n}) {{{offset}}};\n")
    return "".join([*out, *_grid_and_labels(rows, columns), TIKZ_FOOT])


def print_latex(
    layout: Layout | ComposedLayout, file: TextIO | None = None, color: Callable[[int], str] = grey
) -> None:
    """Print a layout as a TikZ picture, as C++'s print_latex does.

    >>> import cute_py as cute
    >>> print_latex(cute.parse("(_2,_2):(_1,_2)"))
    % Layout: (_2,_2):(_1,_2)
    \\documentclass[convert]{standalone}
    \\usepackage{tikz}
    <BLANKLINE>
    \\begin{document}
    \\begin{tikzpicture}[x={(0cm,-1cm)},y={(1cm,0cm)},every node/.style={minimum size=1cm, outer sep=0pt}]
    <BLANKLINE>
    \\node[fill=black!00] at (0,0) {0};
    \\node[fill=black!20] at (0,1) {2};
    \\node[fill=black!40] at (1,0) {1};
    \\node[fill=black!60] at (1,1) {3};
    \\draw[color=black,thick,shift={(-0.5,-0.5)}] (0,0) grid (2,2);
    <BLANKLINE>
    \\node at (0,-1) {\\Large{\\texttt{0}}};
    \\node at (1,-1) {\\Large{\\texttt{1}}};
    \\node at (-1,0) {\\Large{\\texttt{0}}};
    \\node at (-1,1) {\\Large{\\texttt{1}}};
    \\end{tikzpicture}
    \\end{document}
    """
    out = text_file(file)
    out.write(format_latex(layout, color))


def format_latex_tv(layout_tv: Layout | Tensor, tile_mn: Shaped, color: Callable[[int, int], str] = pastel) -> str:
    """Return the text of print_latex_tv: a TikZ picture with the thread and the value of each element of a tile.

    Args:
        layout_tv: rank-2 layout or tensor that maps (thread, value) to a coordinate (m, n), or to an index m + M*n, as
            a tiled MMA's `get_layoutC_TV()` does. If several threads hold an element, the first is shown.
        tile_mn: the shape (M, N) of the tile; its modes may be nested.
        color: (thread, value) -> TikZ colour.
    Raises:
        StaticAssertError: layout_tv is not of rank 2. InvalidTypeError: its values are not such pairs or indices.
        InvalidValueError: a pair is outside the tile, or there are more than 2**20 cells or pairs.

    >>> text = format_latex_tv(Layout((4, 2), (E(1), E(0))), (2, 4))
    >>> print([line for line in text.splitlines() if "T3" in line][0])
    \\node[fill={rgb,255:red,255;green,175;blue,175}] at (0,3) {\\shortstack{T3 \\\\ V0}};
    """
    expect_function(color, "color")
    rank = len(modes(domain_of(layout_tv).shape))
    if rank != 2:
        raise StaticAssertError("rank(layout_tv) == Int<2>{}", {"layout_tv": layout_tv, "rank": rank})
    tile = product_each(tile_mn)
    if len(tile) != 2:
        raise InvalidTypeError(f"tile_mn must be (M, N), got {len(tile)} modes", {"tile_mn": tile_mn})
    rows, columns = table_sizes(Layout(tile), "print_latex_tv")
    threads, values = table_sizes(domain_of(layout_tv), "print_latex_tv")
    if isinstance(layout_tv, Layout) and coprofile(layout_tv) == 0:
        layout_tv = composition(make_identity_layout(tile), layout_tv)
    out = [f"% Layout TV: {layout_tv}\n", TIKZ_HEAD]
    filled: set[tuple[int, int]] = set()
    for thread in range(threads):
        for value in range(values):
            m, n = tv_cell(layout_tv, thread, value, rows)
            if (m, n) in filled:
                continue
            if not (0 <= m < rows and 0 <= n < columns):
                raise InvalidValueError(
                    f"value {value} of thread {thread} is at ({m},{n}); must be inside the tile",
                    {"layout_tv": layout_tv, "tile": f"({rows},{columns})"},
                )
            filled.add((m, n))
            out.append(
                f"\\node[fill={color(thread, value)}] at ({m},{n}) {{\\shortstack{{T{thread} \\\\ V{value}}}}};\n"
            )
    return "".join([*out, *_grid_and_labels(rows, columns), TIKZ_FOOT])


def tv_cell(layout_tv: Layout | Tensor, thread: int, value: int, rows: int) -> tuple[int, int]:
    """Return the cell (m, n) of a thread's value.

    Args:
        layout_tv: (thread, value) -> (m, n), or -> m + rows * n.
    Raises:
        InvalidTypeError: the layout gives neither a coordinate nor an index.

    >>> tv_cell(Layout((4, 2), (E(1), E(0))), 3, 1, 2), tv_cell(Layout((4, 2), (2, 1)), 3, 1, 2)
    ((1, 3), (1, 3))
    """
    return element_cell(layout_tv(thread, value), thread, value, rows, layout_tv)


def element_cell(
    found: int | ArithTuple | ScaledBasis, thread: int, value: int, rows: int, layout_tv: Layout | Tensor
) -> tuple[int, int]:
    """Return the cell (m, n) for an element that `layout_tv` gives for a thread's value: an index, or a coordinate.

    Raises:
        InvalidTypeError: the element is neither.
    """
    if is_integer(found) or getattr(found, "free_symbols", None):
        column, row = divmod(known_integer(found, "an index in the tile"), rows)  # type: ignore[arg-type]
        return row, column
    where: Any = as_arith_tuple(found)
    if not isinstance(where, ArithTuple) or len(where) != 2 or any(isinstance(x, ArithTuple) for x in where):
        raise InvalidTypeError(
            f"the picture needs coordinates (m,n) or indices; value {value} of thread {thread} is at {where}",
            {"layout_tv": layout_tv},
        )
    m, n = (known_integer(x, "a coordinate") for x in where)
    return m, n


def print_latex_tv(
    layout_tv: Layout | Tensor, tile_mn: Shaped, file: TextIO | None = None, color: Callable[[int, int], str] = pastel
) -> None:
    """Print the threads and values of a tile as a TikZ picture, as C++'s print_latex_tv does.

    >>> import io
    >>> import cute_py as cute
    >>> file = io.StringIO()
    >>> print_latex_tv(cute.parse("(_4,_2):(_2,_1)"), (2, 4), file)
    >>> file.getvalue().splitlines()[0]
    '% Layout TV: ((1,4),(2,1)):((_2@0,1@1),(_1@0,1@1))'
    """
    out = text_file(file)
    out.write(format_latex_tv(layout_tv, tile_mn, color))
