"""Iterators that compute their elements. Adding n, an integer or a coordinate, moves an iterator by n.

A tensor consists of an iterator and a layout. With `counting_iterator(42)` its elements are integers; with
`make_inttuple_iter((0, 0))` they are coordinates. Such implicit tensors can be tiled and sliced like any other tensor.
"""

from __future__ import annotations

import contextlib
from typing import Any

from cute_py.argument_checks import MAX_INTEGER, MIN_INTEGER, expect_integer, is_bool, is_integer
from cute_py.arith_tuple.arith_tuple import ArithTuple, Element, Operand, ScaledBasis, as_arith_tuple
from cute_py.arith_tuple.cells import element_text
from cute_py.dtypes import DType, DTypeLike, as_dtype
from cute_py.errors import InvalidTypeError, given
from cute_py.layout.arguments import Tree
from cute_py.layout.leaf import Int, as_leaf, is_symbolic, leaf_text

__all__ = ["ArithTupleIterator", "CountingIterator", "counting_iterator", "make_inttuple_iter"]


class CountingIterator:
    """An iterator over value, value + 1, ... in one element type. Integers wrap around at its width, as in C++.

    >>> it = counting_iterator(42)
    >>> print(it + 3, it[4], it.deref())
    counting_iter(45) 46 42
    >>> counting_iterator(250, "uint8")[10]
    4
    """

    __slots__ = ("dtype", "value")
    __iter__ = None  # there is no last number

    value: int | float
    dtype: DType

    def __init__(self, value: int | float = 0, dtype: DTypeLike = "int32") -> None:
        self.dtype = as_dtype(dtype)
        self.value = _held(value, self.dtype)

    @property
    def element_type(self) -> DType:
        return self.dtype

    def deref(self) -> int | float:
        """Return the number at the iterator's position."""
        return self.value

    def __add__(self, offset: int | float) -> CountingIterator:
        small = type(offset) is int and MIN_INTEGER <= offset <= MAX_INTEGER
        step = offset if small else _integer_or_symbol(offset, f"a step of {self}")
        return CountingIterator(self.value + step, self.dtype)

    def __getitem__(self, offset: int | float) -> int | float:
        return (self + offset).value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CountingIterator):
            return False
        return self.dtype == other.dtype and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash((CountingIterator, self.value, self.dtype))

    def __str__(self) -> str:
        return f"counting_iter({element_text(self.value)})"

    def __repr__(self) -> str:
        kind = "" if self.dtype.name == "int32" else f", {self.dtype.name!r}"
        return f"counting_iterator({self.value!r}{kind})"


def _held(value: int | float, dtype: DType) -> int | float:
    """Convert a number to the run-time number that a variable of this type would contain."""
    what = f"the start of a counting iterator over {dtype}"
    if dtype.kind == "float" and not is_symbolic(value):
        if is_integer(value):
            return float(expect_integer(value, what))
        no_number = is_bool(value) or isinstance(value, (str, bytes))
        if not no_number and not getattr(value, "ndim", 0) and hasattr(value, "__float__"):
            with contextlib.suppress(Exception):  # the __float__ of a user's class may raise any exception
                return float(value)
        raise InvalidTypeError(f"{what} must be a number, got {type(value).__name__} {given(value)}")
    if dtype.kind not in ("int", "uint", "float"):
        raise InvalidTypeError(f"a counting iterator needs an integer or float type, got {dtype}")
    number: int = _integer_or_symbol(value, what)
    if is_symbolic(number):
        return number  # type: ignore[no-any-return]
    number %= 2**dtype.bits
    return number - 2**dtype.bits if dtype.kind == "int" and number >= 2 ** (dtype.bits - 1) else number


def _integer_or_symbol(value: int | float, what: str) -> int:
    """Convert a number to a plain int; keep a sympy expression that can be an integer."""
    return as_leaf(value) if is_symbolic(value) else expect_integer(value, what)


class ArithTupleIterator:
    """A coordinate that acts as an iterator: adding a coordinate to it moves it.

    >>> it = make_inttuple_iter(42, Int(2), Int(7)) + (Int(0), 5, Int(2))
    >>> print(it, it.deref())
    ArithTuple(42,7,_9) (42,7,_9)
    """

    __slots__ = ("coord",)
    __iter__ = None  # there is no last coordinate

    element_type = "coordinate"

    coord: Any

    def __init__(self, coord: Operand) -> None:
        if isinstance(coord, tuple):
            coord = ArithTuple(*coord)
        elif not isinstance(coord, (ArithTuple, ScaledBasis)):
            coord = as_leaf(coord)
        self.coord = coord

    def deref(self) -> Element:
        """Return the coordinate at the iterator's position."""
        return self.coord

    def __add__(self, offset: Operand) -> ArithTupleIterator:
        """Move the iterator by a coordinate: an arithmetic tuple, a plain tuple, a basis element or a static 0."""
        if not isinstance(offset, (ArithTuple, ScaledBasis)):
            offset = as_arith_tuple(offset)  # type: ignore[arg-type]
        return ArithTupleIterator(self.coord + offset)

    def __getitem__(self, offset: Operand) -> Element:
        return (self + offset).coord

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArithTupleIterator) and bool(self.coord == other.coord)

    def __hash__(self) -> int:
        return hash((ArithTupleIterator, self.coord))

    def __str__(self) -> str:
        coord = self.coord
        return "ArithTuple" + (str(coord) if hasattr(coord, "is_static") else leaf_text(as_leaf(coord)))

    def __repr__(self) -> str:
        if isinstance(self.coord, ArithTuple):
            return f"make_inttuple_iter({self.coord.as_tuple()!r})"
        return f"make_inttuple_iter({self.coord!r})"


def counting_iterator(value: int | float = 0, dtype: DTypeLike = "int32") -> CountingIterator:
    """Return an iterator over value, value + 1, ...; the element type determines how print_tensor shows the numbers.

    >>> print(counting_iterator(5), counting_iterator(5, "float32"))
    counting_iter(5) counting_iter(5.000000)
    """
    return CountingIterator(value, dtype)


def make_inttuple_iter(*coord: Operand) -> ArithTupleIterator:
    """Return an iterator over coordinates that starts at one tuple, or at one argument per mode.

    >>> print(make_inttuple_iter(0, 0), make_inttuple_iter((0, (Int(1), 2))))
    ArithTuple(0,0) ArithTuple(0,(_1,2))
    """
    if not coord:
        raise InvalidTypeError("make_inttuple_iter takes one coordinate, or one argument for each mode")
    return ArithTupleIterator(as_arith_tuple(coord[0]) if len(coord) == 1 else ArithTuple(*coord))  # type: ignore[arg-type]


def zero_iterator(profile: Tree) -> ArithTupleIterator:
    """Return an iterator at the origin, given the static zeros of a codomain profile."""
    if type(profile) is tuple:
        return ArithTupleIterator(ArithTuple(*profile))
    return ArithTupleIterator(Int(0))
