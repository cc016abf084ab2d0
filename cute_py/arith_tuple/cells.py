"""Cells: the text that C++ prints for one element of a tensor, padded to the width of the element's type.

    %5d        32- and 64-bit integers, integers of 2 and 4 bits          %10.2e   float32, tfloat32
    %3d        bool, 1-bit integers                                       %11.3e   float64
    %8.2f      half, bfloat16, floats of 8 bits and less                  all other types: two blanks and print(x)

C++ chooses the format by the element's type. Therefore 8- and 16-bit integers and coordinates are not aligned, and no
blank separates cells that exceed the width. A static number (`_5`) keeps its underscore and is not padded to a width.
Source: cute/util/print.hpp and cute/numeric/numeric_types.hpp (pretty_print); C++ was run for every type of the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from cute_py.argument_checks import is_bool, wrong_type
from cute_py.arith_tuple.arith_tuple import ArithTuple
from cute_py.arith_tuple.ratio import Ratio
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import InvalidTypeError, given, integer_text
from cute_py.layout.arguments import LayoutLike
from cute_py.layout.int_tuple import size
from cute_py.layout.leaf import Int, as_leaf, is_symbolic, leaf_text
from cute_py.layout.trees import check_depth, modes

if TYPE_CHECKING:
    import numpy

Cell: TypeAlias = "int | float | complex | numpy.generic | Ratio | ArithTuple"
"""One element of a tensor."""

Elements: TypeAlias = "Callable[..., Cell | str]"
"""Mode indices -> an element, or the text of its cell."""


def c_float(value: Cell, spec: str) -> str:
    """Format a float as printf does: Python's text, but with the sign of a negative nan. Halves and 8-bit floats lose
    that sign when C++ widens them.

    >>> c_float(float("nan"), "8.2f"), c_float(-float("nan"), "8.2f"), c_float(1.5, ".1e")
    ('     nan', '    -nan', '1.5e+00')
    """
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidTypeError(f"expected a number to print, got {type(value).__name__} {given(value)}") from None
    if math.isnan(number):
        kind = str(getattr(value, "dtype", "float64"))
        negative = math.copysign(1.0, number) < 0 and kind in ("bfloat16", "float32", "float64")
        width = spec.split(".")[0].strip("efg")
        return f"{'-nan' if negative else 'nan':>{int(width) if width else 0}}"
    return format(number, spec)


def int32(value: Cell) -> int:
    """Wrap the number as a C++ `int` does.

    >>> int32(2**31)
    -2147483648
    """
    number = value if type(value) is int else known_integer(value, "an offset")
    return number if -(2**31) <= number < 2**31 else (number + 2**31) % 2**32 - 2**31


def known_integer(value: Cell, what: str) -> int:
    """Convert an integer of Python, numpy or ml_dtypes to a plain int.

    Raises:
        InvalidTypeError: the value is a symbol, or not an integer.
    """
    if is_symbolic(value) and not value.is_Integer:
        raise InvalidTypeError(
            f"{what} must be a known number, got {given(value)}",
            hint="use layout.subs({...}) to replace the symbols with numbers",
        )
    try:
        return int(value)  # type: ignore[arg-type]
    except Exception:  # the __int__ of a user's class may raise any exception
        raise wrong_type(f"{what} must be an integer", value) from None


def _float(spec: str) -> Callable[[Cell], str]:
    return lambda value: c_float(value, spec)


def _decimal(value: Cell) -> str:
    return f"{known_integer(value, 'an element'):5d}"


def _rest(value: Cell) -> str:
    """Return the cell of a type without a width of its own: two blanks and the plain text."""
    return "  " + element_text(value)


_CELLS: dict[str, Callable[[Cell], str]] = {
    **dict.fromkeys(("int32", "int64", "uint64"), _decimal),
    "uint32": lambda v: f"{int32(v):5d}",  # C++ prints it with %d
    **dict.fromkeys(("int2", "uint2", "int4", "uint4"), _decimal),
    **dict.fromkeys(("bool", "uint1"), lambda v: f"{known_integer(v, 'an element'):3d}"),
    **dict.fromkeys(("float32", "tfloat32"), _float("10.2e")),
    "float64": _float("11.3e"),
    **dict.fromkeys(("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"), _float("8.2f")),
    **dict.fromkeys(("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "float8_e8m0fnu"), _float("8.2f")),
}


def is_number(value: Cell) -> TypeGuard[int | numpy.integer]:
    """Whether a value is an integer of Python, numpy or ml_dtypes (whose 2- and 4-bit integers have no `__index__`)."""
    return isinstance(value, int) or hasattr(value, "__index__") or str(getattr(value, "dtype", "")) in _SMALL


_SMALL = ("int2", "uint2", "int4", "uint4")


def element_text(value: Cell) -> str:
    """Return the text that C++'s print() shows for one element.

    >>> element_text(Int(4)), element_text(1.5), element_text(True), element_text(ArithTuple(1, Int(2)))
    ('_4', '1.500000', '1', '(1,_2)')
    """
    if isinstance(value, ArithTuple):
        return str(value)
    if is_bool(value):
        return str(int(value))  # type: ignore[arg-type]
    if getattr(value, "ndim", 0):
        raise InvalidTypeError(f"print accepts only one element, got an array of shape {value.shape}")  # type: ignore[union-attr]
    if is_number(value):
        return leaf_text(as_leaf(value if isinstance(value, int) else int(value)))
    if isinstance(value, complex) or getattr(getattr(value, "dtype", None), "kind", "") == "c":
        return str(complex(value))  # type: ignore[arg-type]  # C++ has no print for complex numbers
    if hasattr(value, "dtype") or isinstance(value, float):
        return c_float(value, "f")
    return str(value)


def cell(value: Cell, dtype: DType | None) -> str:
    """Return the cell that C++'s print_tensor shows for an element of type `dtype`, which is None for coordinates.

    >>> cell(42, as_dtype("int32")), cell(42, as_dtype("int8")), cell(1.0, as_dtype("half")), cell(Int(5), None)
    ('   42', '  42', '    1.00', '  _5')
    """
    if dtype is not None:
        return _CELLS.get(dtype.name, _rest)(value)
    if isinstance(value, int) and not isinstance(value, Int):
        return f"{value:5d}"
    return _rest(value)


def text(value: Any) -> str:
    """Return the text that C++'s print() shows for any value: tuples without blanks, static integers with an
    underscore, None (which stands for C++'s underscore) as `_`, floats as %f.

    >>> print(text((Int(4), (2, E(0)))), text((None, Int(8))), text(0.5))
    (_4,(2,_1@0)) (_,_8) 0.500000
    """
    if value is None:
        return "_"
    if isinstance(value, tuple):
        check_depth(value)
        return "(" + ",".join([text(v) for v in value]) + ")"
    if type(value) in (bool, float) or type(value).__module__ in ("numpy", "ml_dtypes"):
        return element_text(value)
    try:
        return integer_text(value) if type(value) is int else str(value)
    except Exception:  # an object whose __str__ fails, or a list that contains itself
        raise InvalidTypeError(f"{type(value).__name__} {given(value)} can't be printed as an element") from None


def dtype_of(tensor: LayoutLike) -> DType | None:
    """Return a tensor's element type, which determines the format of its cells; None for coordinates."""
    kind = getattr(tensor, "element_type", None)
    return None if kind in (None, "coordinate") else as_dtype(kind)


def slabs(tensor: LayoutLike, show: Callable[..., str], column: int, at: Elements) -> list[str]:
    """Return the printed lines of a tensor of rank 1 to 4: one element per line for rank 1, one row per line for rank
    2. For ranks 3 and 4, rulers of `-` and `=` separate the slabs, with `column` characters for each column. Other
    ranks have no lines. As in C++, a last mode of size 0 still shows its slab 0. `at` returns the element at the given
    mode indices, and `show` converts it to text."""
    rank = len(modes(tensor.shape))
    if rank == 1:
        return [show(at(m)) + "\n" for m in range(int(size(tensor)))]
    if not 2 <= rank <= 4:
        return []
    rows, columns, *outer = [range(int(size(tensor, mode))) for mode in range(rank)]
    ruler = column * len(columns)

    def slab(place: tuple[int, ...]) -> list[str]:
        """Return the lines at these indices of the last outer modes; the other outer modes are iterated."""
        if len(place) < len(outer):
            mark = "-" if rank - len(place) == 3 else "="
            out: list[str] = []
            for k in range(max(1, len(outer[len(outer) - 1 - len(place)]))):
                out += [mark * ruler + "\n"] * bool(k) + slab((k, *place))
            return out
        return ["".join([show(at(m, n, *place)) for n in columns]) + "\n" for m in rows]

    return slab(())
