"""print_latex and print_svg: pictures of the elements that each thread holds, with exactly C++'s text.

    latex    C at (0,0), A to its left, B above it; for a copy, the source, and the destination to its right
    svg      the same picture of an MMA, with cells of 20 units

A cell shows the first thread that holds the element and the index of its value, in one of eight colours, chosen by the
thread modulo 8. If an MMA has threads along K, its layout has elements beyond the tile; they are omitted. Source:
cute/util/print_latex.hpp, print_svg.hpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from cute_py.argument_checks import expect_function
from cute_py.arith_tuple import text
from cute_py.errors import InvalidValueError
from cute_py.layout import Layout, composition, offsets, size
from cute_py.layout.arguments import IntTuple
from cute_py.tensor import Tensor, make_identity_tensor
from cute_py.tensor.latex import MAX_CELLS, PASTELS, TIKZ_FOOT, TIKZ_HEAD, pastel

Cell: TypeAlias = tuple[int, int, int, int]
"""(row, column, thread, value)."""
Colour: TypeAlias = Callable[[int, int], str]

_UNIT: Final = 20
"""Width of a cell of the SVG picture."""


def svg_pastel(thread: int, value: int) -> str:
    """Return the colour of C++'s SVGColor_TV: one of eight, chosen by the thread.

    >>> svg_pastel(4, 0)
    '210,210,255'
    """
    return ",".join(map(str, PASTELS[thread % 8]))


def cells(layout_tv: Layout, shape: tuple[IntTuple, ...]) -> Iterator[Cell]:
    """Yield (row, column, thread, value) of a tile's elements, ordered by thread, then value. If several threads hold
    an element, the first one is given.

    Args:
        layout_tv: (thread, value) -> row + rows * column. shape: (rows, columns).
    Raises:
        InvalidValueError: there are more than 2**20 pairs (thread, value).

    >>> list(cells(Layout((2, 2), (1, 2)), (2, 2)))
    [(0, 0, 0, 0), (0, 1, 0, 1), (1, 0, 1, 0), (1, 1, 1, 1)]
    """
    if int(size(layout_tv)) > MAX_CELLS:
        why = f"the picture would have {int(size(layout_tv))} cells; must be at most {MAX_CELLS}"
        raise InvalidValueError(why, {"layout": layout_tv})
    rows, columns = (int(size(s)) for s in shape)
    table = offsets(layout_tv)
    seen = set()
    for thread, places in enumerate(table.tolist()):
        for value, place in enumerate(places):
            if place not in seen and 0 <= place < rows * columns:
                seen.add(place)
                yield place % rows, place // rows, thread, value


def _nodes(
    layout_tv: Layout, shape: tuple[IntTuple, ...], down: int, right: int, color: Colour, turned: bool
) -> Iterator[str]:
    """Yield the TikZ nodes of one operand; with `turned`, its rows run along the picture's columns."""
    for row, column, thread, value in cells(layout_tv, shape):
        m, n = (column, row) if turned else (row, column)
        yield (
            f"\\node[fill={color(thread, value)}] at ({m + down},{n + right}) "
            f"{{\\shortstack{{T{thread} \\\\ V{value}}}}};\n"
        )


def _grid(top: int, left: int, bottom: int, right: int) -> str:
    return f"\\draw[color=black,thick,shift={{(-0.5,-0.5)}}] ({top},{left}) grid ({bottom},{right});\n\n"


def _label(m: int, n: int, number: int) -> str:
    return f"\\node at ({m},{n}) {{\\Large{{\\texttt{{{number}}}}}}};\n"


def _coordinates(layout_tv: Layout, shape: tuple[IntTuple, ...]) -> Tensor:
    """Return the tensor (thread, value) -> coordinate, which C++ prints above the picture."""
    return composition(make_identity_tensor(shape), layout_tv)


def _painter(color: Colour | None, usual: Colour) -> Colour:
    """Return the function of a thread and a value that makes a colour."""
    return usual if color is None else expect_function(color, "the colour of a thread and a value", 2)


def mma_latex(layouts: dict[str, Layout], tile: tuple[int, int, int], color: Colour | None = None) -> str:
    """Return the text of print_latex for a tiled MMA. `layouts` maps "A", "B" and "C" to layouts (thread, value) ->
    element; `tile` is (M, N, K)."""
    paint = _painter(color, pastel)
    m, n, k = (int(size(t)) for t in tile)
    shapes = {"C": (tile[0], tile[1]), "A": (tile[0], tile[2]), "B": (tile[1], tile[2])}
    out = [f"% Layout{x}: {_coordinates(layouts[x], shapes[x])}\n" for x in "CAB"]
    out.append(TIKZ_HEAD)
    out.extend(_nodes(layouts["C"], shapes["C"], 0, 0, paint, False))
    out.append(_grid(0, 0, m, n))
    out.extend(_nodes(layouts["A"], shapes["A"], 0, -k - 1, paint, False))
    out.append(_grid(0, -k - 1, m, -1))
    out.extend(_label(i, -1 - k - 1, i) for i in range(m))
    out.extend(_label(-1, i - k - 1, i) for i in range(k))
    out.extend(_nodes(layouts["B"], shapes["B"], -k - 1, 0, paint, True))
    out.append(_grid(-k - 1, 0, -1, n))
    out.extend(_label(-1 - k - 1, i, i) for i in range(n))
    out.extend(_label(i - k - 1, -1, i) for i in range(k))
    return "".join([*out, TIKZ_FOOT])


def copy_latex(
    source: Tensor,
    target: Tensor,
    layouts: tuple[Layout, Layout],
    tile: tuple[IntTuple, ...],
    color: Colour | None = None,
) -> str:
    """Return the text of print_latex for a tiled copy.

    Args:
        source, target: (thread, value) -> coordinate, as C++ prints them. layouts: (thread, value) -> index in the
            tile, for the source and for the destination.
        tile: (M, N).
        color: (thread, value) -> TikZ colour.
    """
    paint = _painter(color, pastel)
    m, n = (int(size(t)) for t in tile)
    out = [f"% Layout S TV: {source}\n", f"% Layout D TV: {target}\n", TIKZ_HEAD]
    out.extend(_nodes(layouts[0], tile, 0, 0, paint, False))
    out.append(_grid(0, 0, m, n))
    out.extend(_label(i, -1, i) for i in range(m))
    out.extend(_label(-1, i, i) for i in range(n))
    out.extend(_nodes(layouts[1], tile, 0, n + 3, paint, False))
    out.append(_grid(0, n + 3, m, 2 * n + 3))
    out.extend(_label(i, 2 * n + 3, i) for i in range(m))
    out.extend(_label(-1, i + n + 3, i) for i in range(n))
    return "".join([*out, TIKZ_FOOT])


def _svg_text(x: int, y: int, font: int, shown: int | str) -> str:
    return (
        f'<text x="{x}" y="{y}" text-anchor="middle" alignment-baseline="central" font-size="{font}">{shown}</text>\n'
    )


def _svg_cell(x: int, y: int, fill: str, end: str, thread: int, value: int) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{_UNIT}" height="{_UNIT}" fill="rgb({fill})" stroke="black"{end}>\n'
        + _svg_text(x + _UNIT // 2, y + _UNIT // 4, 8, f"T{thread}")
        + _svg_text(x + _UNIT // 2, y + 3 * _UNIT // 4, 8, f"V{value}")
    )


def mma_svg(layouts: dict[str, Layout], tile: tuple[int, int, int], color: Colour | None = None) -> str:
    """Return the text of print_svg for a tiled MMA."""
    paint = _painter(color, svg_pastel)
    m, n, k = (int(size(t)) for t in tile)
    shapes = {"C": (tile[0], tile[1]), "A": (tile[0], tile[2]), "B": (tile[1], tile[2])}
    out = [f"<!--  Tile: {text(tile)}  -->\n"]
    out.extend(f"<!--     {x}: {_coordinates(layouts[x], shapes[x])}  -->\n" for x in "ABC")
    out.append(
        f'<svg width="100%" height="100%" viewBox="0 0 {(k + n + 2) * _UNIT} {(k + m + 2) * _UNIT}" '
        'preserveAspectRatio="xMidYMid meet" xmlns="http://www.w3.org/2000/svg">\n'
    )
    half = _UNIT // 2
    for row, column, t, v in cells(layouts["C"], shapes["C"]):
        out.append(_svg_cell((column + k + 2) * _UNIT, (row + k + 2) * _UNIT, paint(t, v), "/", t, v))
    for row, column, t, v in cells(layouts["A"], shapes["A"]):
        out.append(_svg_cell((column + 1) * _UNIT, (row + k + 2) * _UNIT, paint(t, v), " /", t, v))
    out.extend(_svg_text(half, (i + k + 2) * _UNIT + half, 12, i) for i in range(m))
    out.extend(_svg_text((i + 1) * _UNIT + half, (k + 1) * _UNIT + half, 12, i) for i in range(k))
    for row, column, t, v in cells(layouts["B"], shapes["B"]):
        out.append(_svg_cell((row + k + 2) * _UNIT, (column + 1) * _UNIT, paint(t, v), " /", t, v))
    out.extend(_svg_text((i + k + 2) * _UNIT + half, half, 12, i) for i in range(n))
    out.extend(_svg_text((k + 1) * _UNIT + half, (i + 1) * _UNIT + half, 12, i) for i in range(k))
    return "".join([*out, "</svg>\n"])
