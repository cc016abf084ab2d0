"""print_tensor, print_layout and print_latex, as C++ prints them.

One cell per element with printf widths that depend on the element type; nothing separates cells that overflow. Slabs of
rank-3 and rank-4 tensors are divided by lines of `-` and `=`, five for each column however wide it is.
Source: cute/util/print_tensor.hpp, print.hpp, print_latex.hpp, numeric/numeric_types.hpp.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TextIO

from cute_py.arith_tuple.arith_tuple import ArithTuple
from cute_py.arith_tuple.pointers import SmemPtrFlag
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import InvalidTypeError, StaticAssertError
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.coprofile import cosize
from cute_py.layout.int_tuple import size
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int, internal_leaf, leaf_text
from cute_py.layout.modes import append
from cute_py.layout.recast import recast_layout
from cute_py.layout.tensor import Tensor
from cute_py.layout.trees import modes


def _exponent(value: float, width: int, digits: int) -> str:
    text = f"{float(value):.{digits}e}"
    return f"{text:>{width}}"


def _fixed(value: Any) -> str:
    return f"{float(value):8.2f}"


def _rest(value: Any) -> str:
    """Types without a width of their own: two blanks and the plain text."""
    return "  " + element_text(value)


_CELLS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("int32", "uint32", "int64", "uint64"), lambda v: f"{int(v):5d}"),
    **dict.fromkeys(("int2", "uint2", "int4", "uint4"), lambda v: f"{int(v):5d}"),
    **dict.fromkeys(("bool", "uint1"), lambda v: f"{int(v):3d}"),
    "float32": lambda v: _exponent(v, 10, 2),
    "tfloat32": lambda v: _exponent(v, 10, 2),
    "float64": lambda v: _exponent(v, 11, 3),
    **dict.fromkeys(("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"), _fixed),
    **dict.fromkeys(("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "float8_e8m0fnu"), _fixed),
}


def element_text(value: Any) -> str:
    """One element as C++'s print() shows it.

    >>> element_text(Int(4)), element_text(1.5), element_text(True)
    ('_4', '1.500000', '1')
    """
    if isinstance(value, ArithTuple):
        return str(value)
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return str(int(value))
    if isinstance(value, int) or hasattr(value, "__index__"):
        return leaf_text(internal_leaf(value))
    if isinstance(value, complex):
        return str(value)
    if hasattr(value, "__float__"):
        return f"{float(value):f}"
    return str(value)


def text(value: Any) -> str:
    """Any value as C++'s print() shows it: tuples without blanks, static integers with an underscore.

    >>> print(text((Int(4), (2, E(0)))))
    (_4,(2,_1@0))
    """
    if isinstance(value, tuple):
        return "(" + ",".join([text(v) for v in value]) + ")"
    if isinstance(value, float):
        return element_text(value)
    return str(value)


def _cell(value: Any, dtype: DType | None) -> str:
    if isinstance(value, ArithTuple):
        return _rest(value)
    if dtype is not None:
        return _CELLS.get(dtype.name, _rest)(value)
    if isinstance(value, int):
        return f"{int(value):5d}"
    return _rest(value)


def _dtype_of(tensor: Tensor) -> DType | None:
    kind = tensor.element_type
    if kind in (None, "coordinate"):
        return None
    return as_dtype(kind)


def _slab(tensor: Tensor, dtype: DType | None, out: list[str]) -> None:
    rank = len(modes(tensor.shape))
    if rank == 1:
        out.extend(_cell(tensor(m), dtype) + "\n" for m in range(int(size(tensor))))
    elif rank == 2:
        columns = range(int(size(tensor, 1)))
        for m in range(int(size(tensor, 0))):
            out.append("".join([_cell(tensor(m, n), dtype) for n in columns]) + "\n")
    elif rank in (3, 4):
        mark = "-" if rank == 3 else "="
        line = mark * (5 * int(size(tensor, 1))) + "\n"
        for k in range(max(1, int(size(tensor, rank - 1)))):
            if k:
                out.append(line)
            _slab(tensor((None,) * (rank - 1) + (k,)), dtype, out)


def format_tensor(tensor: Any, header: bool = True) -> str:
    """The text of print_tensor: header, then ranks 1 to 4 element by element; rank 0 and ranks above 4 header only.

    >>> print(format_tensor(make_tensor(counting_iterator(42), (4, 5))), end="")
    counting_iter(42) o (4,5):(_1,4):
       42   46   50   54   58
       43   47   51   55   59
       44   48   52   56   60
       45   49   53   57   61
    """
    if not isinstance(tensor, Tensor):
        raise InvalidTypeError(f"print_tensor takes a tensor, got {type(tensor).__name__}")
    out = [f"{tensor}:\n"] if header else []
    _slab(tensor, _dtype_of(tensor), out)
    return "".join(out)


def print_tensor(tensor: Any, file: TextIO | None = None, header: bool = True) -> None:
    """Print a tensor as C++'s print_tensor does."""
    (file or sys.stdout).write(format_tensor(tensor, header))


def _position_independent(layout: Any) -> Any:
    """A flagged swizzle acts on bytes; for a table of element offsets it is counted in elements."""
    if isinstance(layout, ComposedLayout) and isinstance(layout.offset, SmemPtrFlag):
        return ComposedLayout(recast_layout(layout.outer, 8, layout.offset.bits), Int(0), layout.inner)
    return layout


def format_layout(layout: Any) -> str:
    """The text of print_layout: a table of offsets of a rank-2 layout.

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
    layout = _position_independent(layout)
    if len(modes(layout.shape)) != 2:
        raise StaticAssertError("rank(layout) == Int<2>{}", {"layout": layout})
    width = len(str(int(cosize(layout)))) + 2
    rows, columns = range(int(size(layout, 0))), range(int(size(layout, 1)))
    rule = "    " + ("+" + "-" * width) * len(columns) + "+\n"
    out = [f"{layout}\n", "    " + "".join([f"  {n:{width - 2}d} " for n in columns]) + "\n"]
    for m in rows:
        out.append(rule)
        out.append(f"{m:2d}  " + "".join([f"| {int(layout(m, n)):{width - 2}d} " for n in columns]) + "|\n")
    out.append(rule)
    return "".join(out)


def print_layout(layout: Any, file: TextIO | None = None) -> None:
    """Print the table of a rank-2 layout as C++'s print_layout does."""
    (file or sys.stdout).write(format_layout(layout))


_GREYS = ("00", "40", "20", "60", "10", "50", "30", "70")


def format_latex(layout: Any) -> str:
    """The text of print_latex: a standalone TikZ picture of a layout of rank at most 2, grey by offset modulo 8."""
    layout = _position_independent(layout)
    if len(modes(layout.shape)) > 2:
        raise StaticAssertError("rank(layout_a) <= Int<2>{}", {"layout": layout})
    table = append(layout, None, 2) if isinstance(layout, (Layout, ComposedLayout)) else layout
    rows, columns = int(size(table, 0)), int(size(table, 1))
    out = [
        f"% Layout: {table}\n",
        "\\documentclass[convert]{standalone}\n\\usepackage{tikz}\n\n\\begin{document}\n",
        "\\begin{tikzpicture}[x={(0cm,-1cm)},y={(1cm,0cm)},every node/.style={minimum size=1cm, outer sep=0pt}]\n\n",
    ]
    for m in range(rows):
        for n in range(columns):
            offset = int(table(m, n))
            out.append(f"\\node[fill=black!{_GREYS[offset % 8]}] at ({m},{n}) {{{offset}}};\n")
    out.append(f"\\draw[color=black,thick,shift={{(-0.5,-0.5)}}] (0,0) grid ({rows},{columns});\n\n")
    out += [f"\\node at ({m},-1) {{\\Large{{\\texttt{{{m}}}}}}};\n" for m in range(rows)]
    out += [f"\\node at (-1,{n}) {{\\Large{{\\texttt{{{n}}}}}}};\n" for n in range(columns)]
    out.append("\\end{tikzpicture}\n\\end{document}\n")
    return "".join(out)


def print_latex(layout: Any, file: TextIO | None = None) -> None:
    """Print a layout as a TikZ picture, as C++'s print_latex does."""
    (file or sys.stdout).write(format_latex(layout))
