"""Iterators that store nothing: offset them, and they are the integer or the coordinate that they stand at.

A tensor is an iterator and a layout. With `counting_iterator(42)` its elements are integers, with
`make_inttuple_iter((0, 0))` they are coordinates: implicit tensors, which can be tiled and sliced like any other.
"""

from __future__ import annotations

from typing import Any

from cute_py.arith_tuple.arith_tuple import ArithTuple, as_arith_tuple
from cute_py.errors import InvalidTypeError
from cute_py.layout.leaf import Int, internal_leaf, leaf_text, public


class CountingIterator:
    """The integers from `value` on.

    >>> it = counting_iterator(42)
    >>> print(it + 3, it[4], it.deref())
    counting_iter(45) 46 42
    """

    __slots__ = ("value",)

    element_type = "int32"

    def __init__(self, value: Any = 0) -> None:
        self.value = public(internal_leaf(value))

    def deref(self) -> Any:
        """The integer that it stands at."""
        return self.value

    def __add__(self, offset: Any) -> CountingIterator:
        if not isinstance(offset, int) and not hasattr(offset, "__index__") and not hasattr(offset, "free_symbols"):
            raise InvalidTypeError(f"a counting iterator moves by integers, got {offset}", {"iterator": self})
        return CountingIterator(int(self.value) + int(offset))

    def __getitem__(self, offset: Any) -> Any:
        return (self + offset).value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CountingIterator) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash((CountingIterator, self.value))

    def __str__(self) -> str:
        return f"counting_iter({int(self.value)})"

    def __repr__(self) -> str:
        return f"counting_iterator({self.value!r})"


class ArithTupleIterator:
    """A coordinate that is offset by coordinates.

    >>> it = make_inttuple_iter(42, Int(2), Int(7)) + (Int(0), 5, Int(2))
    >>> print(it, it.deref())
    ArithTuple(42,7,_9) (42,7,_9)
    """

    __slots__ = ("coord",)

    element_type = "coordinate"

    def __init__(self, coord: Any) -> None:
        coord = as_arith_tuple(coord)
        if not isinstance(coord, ArithTuple):
            coord = public(internal_leaf(coord))
        self.coord = coord

    def deref(self) -> Any:
        """The coordinate that it stands at."""
        return self.coord

    def __add__(self, offset: Any) -> ArithTupleIterator:
        offset = as_arith_tuple(offset)
        if isinstance(self.coord, ArithTuple) or isinstance(offset, ArithTuple):
            if isinstance(self.coord, ArithTuple):
                return ArithTupleIterator(self.coord + offset)
            return ArithTupleIterator(offset + self.coord)
        return ArithTupleIterator(self.coord + offset)

    def __getitem__(self, offset: Any) -> Any:
        return (self + offset).coord

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArithTupleIterator) and bool(self.coord == other.coord)

    def __hash__(self) -> int:
        return hash((ArithTupleIterator, self.coord))

    def __str__(self) -> str:
        coord = self.coord
        return "ArithTuple" + (str(coord) if isinstance(coord, ArithTuple) else leaf_text(internal_leaf(coord)))

    def __repr__(self) -> str:
        if isinstance(self.coord, ArithTuple):
            return f"make_inttuple_iter({self.coord.as_tuple()!r})"
        return f"make_inttuple_iter({self.coord!r})"


def counting_iterator(value: Any = 0) -> CountingIterator:
    """The implicit integers value, value + 1, ..."""
    return CountingIterator(value)


def make_inttuple_iter(*coord: Any) -> ArithTupleIterator:
    """An iterator over coordinates: `make_inttuple_iter((0, 0))`, or one argument per mode `make_inttuple_iter(0, 0)`.

    >>> print(make_inttuple_iter(0, 0), make_inttuple_iter((0, (Int(1), 2))))
    ArithTuple(0,0) ArithTuple(0,(_1,2))
    """
    if not coord:
        raise InvalidTypeError("make_inttuple_iter takes a coordinate, or one argument per mode")
    return ArithTupleIterator(coord[0] if len(coord) == 1 else ArithTuple(*coord))


def zero_iterator(profile: Any) -> ArithTupleIterator:
    """The iterator at the static origin of a codomain profile."""
    if type(profile) is tuple:
        return ArithTupleIterator(ArithTuple(*profile))
    return ArithTupleIterator(Int(0))
