"""print_layout: the offsets of a rank-2 layout as a table.

The width of a column is that of the cosize, as a 32-bit number: negative offsets may overflow it, and offsets of 2**31
and more wrap around, as the `int` wraps that C++ prints.
Source: cute/util/print_tensor.hpp.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final, TextIO

from cute_py.argument_checks import expect_having
from cute_py.arith_tuple.cells import int32
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError, integer_text
from cute_py.layout.coprofile import cosize
from cute_py.layout.domain import domain_of
from cute_py.layout.int_tuple import size
from cute_py.layout.leaf import is_symbolic
from cute_py.layout.pointer_flagged import as_position_independent_swizzle_layout
from cute_py.layout.trees import leaves, modes

_TILE_HINT: Final = "print a tile of it: local_tile(layout, tiler, coordinate)"
MAX_CELLS = 1 << 20
"""Cells of a printed table; more are a text of hundreds of megabytes that nobody reads."""


def text_file(file: Any) -> Any:
    """The file that a text is printed to: standard output, or what was given.

    Raises:
        InvalidTypeError: it has no method `write`.
    """
    if file is None:
        return sys.stdout
    expect_having(file, ("write",), "a file with a method write")
    return file


def check_cells(
    sizes: Sequence[int], operation: str, facts: Mapping[str, object], hint: str, most: int = MAX_CELLS
) -> None:
    """Refuse a table that nobody reads. A mode without elements counts as one: its headings and rulers are printed.

    Raises:
        InvalidValueError: more than `most` cells.
    """
    if prod(max(n, 1) for n in sizes) > most:
        shown = " x ".join(map(integer_text, sizes))
        raise InvalidValueError(f"{operation} of {shown} cells; at most {most} are shown", facts, hint)


def table_sizes(layout: Any, operation: str) -> tuple[int, int]:
    """(rows, columns) of the table of a layout of rank 2.

    Raises:
        InvalidTypeError: a symbolic size; InvalidValueError: more than `MAX_CELLS` cells.
    """
    sizes = [size(layout, 0), size(layout, 1)]
    for n in sizes:
        if is_symbolic(n):
            raise InvalidTypeError(
                f"{operation} needs known sizes, got the symbol {n}",
                {"layout": layout},
                "replace the symbols with layout.subs({...}) first",
            )
    rows, columns = (int(n) for n in sizes)
    check_cells((rows, columns), operation, {"layout": layout}, _TILE_HINT)
    return rows, columns


def check_integer_offsets(layout: Any, operation: str) -> None:
    """Refuse layouts whose offsets are coordinates: C++ does not compile them here."""
    strides = [d for d in leaves(domain_of(layout)._stride) if getattr(d, "modes", None)]
    if strides:
        raise InvalidTypeError(
            f"{operation} shows integer offsets; this layout's are coordinates",
            {"layout": layout, "stride": strides[0]},
            "use print_tensor(make_coord_tensor(layout))",
        )


def format_layout(layout: Any) -> str:
    """The text of print_layout: a table of offsets of a rank-2 layout.

    Raises:
        StaticAssertError: the rank is not 2; InvalidTypeError: the offsets are coordinates, or symbols.
        InvalidValueError: more than 2**20 cells; a tile of the layout can be printed.

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
    layout = as_position_independent_swizzle_layout(layout)
    rank = len(modes(domain_of(layout)._shape))
    if rank != 2:
        raise StaticAssertError("rank(layout) == Int<2>{}", {"layout": layout, "rank": rank})
    check_integer_offsets(layout, "print_layout")
    height, width = table_sizes(layout, "print_layout")
    digits = len(str(max(int32(cosize(layout)), 0)))
    rows, columns = range(height), range(width)
    rule = "    " + ("+" + "-" * (digits + 2)) * len(columns) + "+\n"
    out = [f"{layout}\n", "    " + "".join([f"  {n:{digits}d} " for n in columns]) + "\n"]
    for m in rows:
        out.append(rule)
        out.append(f"{m:2d}  " + "".join([f"| {int32(layout(m, n)):{digits}d} " for n in columns]) + "|\n")
    out.append(rule)
    return "".join(out)


def print_layout(layout: Any, file: TextIO | None = None) -> None:
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
