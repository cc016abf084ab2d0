"""print_tensor: C++'s text of a tensor, and two others.

style="cute"      what C++'s print_tensor prints, character for character (the default)
style="ostream"   what `std::cout << tensor` prints
style="python"    aligned columns, labelled modes, long tensors shortened (see `python_style`)

Slabs of rank-3 and rank-4 tensors are divided by lines of `-` and `=`, five for each column however wide it is; rank 0
and ranks above 4 have a header and no elements, as in C++.
Source: cute/util/print_tensor.hpp.
"""

from __future__ import annotations

from typing import Any, Final, TextIO

from cute_py.argument_checks import expect
from cute_py.arith_tuple.cells import cell, dtype_of, slabs
from cute_py.arith_tuple.layout_table import check_cells, text_file
from cute_py.arith_tuple.ostream import ostream_tensor
from cute_py.arith_tuple.python_style import python_tensor
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.domain import domain_of
from cute_py.layout.int_tuple import product
from cute_py.layout.layout import Layout
from cute_py.layout.tensor import Tensor
from cute_py.layout.trees import check_depth, leaves, modes

STYLES = ("cute", "ostream", "python")
MAX_ELEMENTS: Final = 1 << 18
"""Elements of a tensor that are printed; each is a call of the layout, so that these take seconds."""
MAX_COORDINATES: Final = 1 << 16
"""Coordinates that are printed; they take longer than numbers."""
_SHORTER: Final = 'style="python" leaves out the middle of long modes; tensor(0, None) is one row of a matrix'


def format_tensor(tensor: Any, header: bool = True, style: str = "cute") -> str:
    """The text of print_tensor.

    Args:
        tensor: a tensor of coordinates, integers or array elements; a bare pointer has no elements to show.
        header: the first line, which says engine and layout (of style "ostream": the layout).
        style: "cute", "ostream" or "python".
    Raises:
        InvalidTypeError: no tensor, or symbols. TensorAccessError: the engine can't be read.
        InvalidValueError: unknown style, or more than 2**18 cells (2**16 of coordinates); style "python" shortens.

    >>> print(format_tensor(make_tensor(counting_iterator(42), (4, 5))), end="")
    counting_iter(42) o (4,5):(_1,4):
       42   46   50   54   58
       43   47   51   55   59
       44   48   52   56   60
       45   49   53   57   61
    """
    check_depth(tensor)
    if not isinstance(tensor, Tensor):
        shown = tensor if isinstance(tensor, (Layout, ComposedLayout)) else given(tensor)
        raise InvalidTypeError(f"print_tensor takes a tensor, got {type(tensor).__name__} {shown}")
    shape = domain_of(tensor.layout).shape
    unknown = [n for n in leaves(shape) if not isinstance(n, int)]
    if unknown:
        raise InvalidTypeError(
            f"print_tensor needs known sizes, got the symbol {unknown[0]}",
            {"tensor": tensor},
            "print(tensor) shows it without its elements; layout.subs({...}) replaces symbols",
        )
    if not isinstance(style, str) or style not in STYLES:
        raise InvalidValueError(f"unknown style {given(style)}", {"known": ", ".join(STYLES)})
    expect(header, bool, "header")
    if style == "python":
        return python_tensor(tensor, header)
    if 1 <= len(modes(shape)) <= 4:  # others have no cells
        sizes = [int(product(mode)) for mode in modes(shape)]
        most = MAX_COORDINATES if dtype_of(tensor) is None else MAX_ELEMENTS
        check_cells(sizes, "print_tensor", {"tensor": tensor}, _SHORTER, most)
    if style == "ostream":
        return ostream_tensor(tensor, header)
    dtype = dtype_of(tensor)
    head = f"{tensor}:\n" if header else ""
    return head + "".join(slabs(tensor, lambda value: cell(value, dtype), 5))


def print_tensor(tensor: Any, file: TextIO | None = None, header: bool = True, style: str = "cute") -> None:
    """Print a tensor as C++'s print_tensor does, or in another style.

    >>> print_tensor(make_identity_tensor((2, 3)))
    ArithTuple(_0,_0) o (2,3):(_1@0,_1@1):
      (0,0)  (0,1)  (0,2)
      (1,0)  (1,1)  (1,2)
    >>> print_tensor(make_tensor(counting_iterator(5), (2, 3)), header=False)
        5    7    9
        6    8   10
    """
    out = text_file(file)
    out.write(format_tensor(tensor, header, style))
