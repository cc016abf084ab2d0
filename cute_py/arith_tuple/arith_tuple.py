"""ArithTuple: a tuple of integers that can be added and scaled, so that it can be a coordinate, an offset, a stride.

    (1,2) + (10,20) = (11,22)      3 * (1,(2,3)) = (3,(6,9))      (1,2) + (0,0,5) = (1,2,5)

Missing modes are zero, at every depth. A static 0 is the zero of all of them; any other integer has no position, so
adding one is refused, as in C++.

Two coordinates are equal, and hash alike, if they have the same modes with equal numbers in them, static or not, as
tuples of C++ have it: ArithTuple(1,2), the tuple (1,2) and the sum of the basis elements are one; (1,2,0) has a mode
more. A basis element is the tuple with static zeros before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cute_py.argument_checks import MAX_INTEGER, expect_integer, is_integer
from cute_py.arith_tuple.ratio import Ratio, may_know
from cute_py.errors import (
    CoordinateError,
    InvalidTypeError,
    InvalidValueError,
    LayoutError,
    StaticAssertError,
    given,
    integer_text,
    shortened,
)
from cute_py.layout.leaf import MAX_DEPTH, Int, Tree, internal_leaf, is_symbolic, leaf_text, public
from cute_py.layout.trees import check_depth


class ArithTuple:
    """An arithmetic tuple of leaves and tuples, immutable and hashable.

    >>> print(ArithTuple(1, Int(2)) + ArithTuple(10, Int(20)))
    (11,_22)
    >>> print(ArithTuple(1, (2, 3)) - (0, (1, 1)), 2 * ArithTuple(1, 2))
    (1,(1,2)) (2,4)
    """

    __slots__ = ("depth", "items")
    __array_ufunc__ = None  # numpy integers leave the arithmetic to this class

    items: tuple[Any, ...]
    depth: int
    """Levels of tuples, at most `MAX_DEPTH`."""

    def __init__(self, *items: Any) -> None:
        held: list[Any] = []
        depth = 1
        for x in items:
            kind = type(x)
            if not ((kind is int or kind is Int) and -MAX_INTEGER <= x <= MAX_INTEGER):
                x = _element(x)
                if type(x) is ArithTuple and x.depth >= depth:
                    depth = x.depth + 1
            held.append(x)
        if depth > MAX_DEPTH + 1:
            raise InvalidValueError(f"nested deeper than {MAX_DEPTH} tuples")
        object.__setattr__(self, "items", tuple(held))
        object.__setattr__(self, "depth", depth)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"ArithTuple is immutable; can't set {name}")

    @property
    def is_static(self) -> bool:
        """Are all leaves static?"""
        return all(x.is_static if isinstance(x, ArithTuple) else isinstance(x, Int) for x in self.items)

    def __getitem__(self, mode: int) -> Any:
        index = mode if type(mode) is int else expect_integer(mode, "a mode")
        if not -len(self.items) <= index < len(self.items):
            raise CoordinateError(f"no mode {integer_text(index)} in {self}", {"rank": len(self.items)})
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def as_tuple(self) -> Tree:
        """The same leaves as plain nested tuples.

        >>> ArithTuple(1, (2, 3)).as_tuple()
        (1, (2, 3))
        """
        return tuple([x.as_tuple() if isinstance(x, ArithTuple) else x for x in self.items])

    def __add__(self, other: Any) -> Any:
        return self._with(other, "+")

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(other, "-")

    def __rsub__(self, other: Any) -> Any:
        return (-self)._with(other, "-") if has_no_position(other) else -self + other

    def __neg__(self) -> ArithTuple:
        return ArithTuple(*[-x for x in self.items])

    def __mul__(self, n: Any) -> Any:
        return ArithTuple(*[scale(n, self) * x for x in self.items])

    __rmul__ = __mul__

    def _with(self, other: Any, sign: str) -> Any:
        """self + other or self - other; a static 0 is the zero of every tuple, other integers have no position."""
        if isinstance(other, Int) and other == 0:
            return self
        if has_no_position(other):
            raise refused_integer(f"Arithmetic tuple op{sign} error!", "tuple", self, other)
        if not isinstance(other, (tuple, ArithTuple)) and not hasattr(type(other), "as_arith_tuple"):
            if may_know(other, "__radd__"):
                return NotImplemented
            raise InvalidTypeError(
                f"only coordinates are added to an arithmetic tuple, got {type(other).__name__} {given(other)}",
                {"tuple": self},
            )
        right = _element(other)
        right = right if sign == "+" else -right
        return _combined(self, right, (self, sign, right), ())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ArithTuple):
            return self.items == other.items
        if isinstance(other, tuple):
            return bool(self.as_tuple() == other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.as_tuple())

    def __str__(self) -> str:
        return "(" + ",".join([_leaf_text(x) for x in self.items]) + ")"

    def __repr__(self) -> str:
        return f"ArithTuple({', '.join(_shown(x) for x in self.items)})"

    def __reduce__(self) -> Any:
        return (ArithTuple, self.items)


def _leaf_text(x: Any) -> str:
    return str(x) if isinstance(x, (ArithTuple, Ratio)) else leaf_text(internal_leaf(x))


def _shown(x: Any) -> str:
    return repr(x.as_tuple()) if isinstance(x, ArithTuple) else repr(x)


def has_no_position(x: Any) -> bool:
    """A number without a mode: static, run-time, numpy's, symbolic or a ratio."""
    return isinstance(x, Ratio) or is_integer(x) or is_symbolic(x)


def scale(n: Any, element: Any) -> Any:
    """`n` as a scale of a coordinate or basis element.

    Raises:
        InvalidTypeError: no integer, no ratio, no symbol; both operands are in the text.
    """
    if isinstance(n, (int, Ratio)) and not isinstance(n, bool):
        return n
    if is_symbolic(n) or is_integer(n):
        return public(internal_leaf(n))
    shown = n if hasattr(type(n), "as_arith_tuple") else given(n)
    raise InvalidTypeError(f"{element} can be scaled by integers only, got {type(n).__name__} {shown}")


def refused_integer(headline: str, name: str, element: Any, integer: Any) -> LayoutError:
    """The error for an integer that is added to something with positions; C++ asserts where it is static."""
    facts = {
        name: element,
        "integer": given(integer) if type(integer) is int else shortened(str(integer)),
        "rule": "only a static 0 may be added: it is the zero of all modes",
    }
    if isinstance(integer, Int):
        return StaticAssertError(headline, facts)
    return LayoutError(headline, facts)


def _element(x: Any) -> Any:
    if isinstance(x, tuple):
        check_depth(x)
        return ArithTuple(*x)
    if isinstance(x, ArithTuple):
        return x
    if hasattr(type(x), "as_arith_tuple"):
        return _element(x.as_arith_tuple())
    if isinstance(x, Ratio):
        return x
    if has_no_position(x):
        return public(internal_leaf(x))
    raise InvalidTypeError(f"an arithmetic tuple holds integers and tuples, got {type(x).__name__} {given(x)}")


def _combined(a: Any, b: Any, whole: tuple[Any, str, Any], path: tuple[int, ...]) -> Any:
    """a + b mode by mode; what is missing is a static 0, and a static 0 is the zero of a whole subtree."""
    if isinstance(a, ArithTuple) and isinstance(b, ArithTuple):
        rank = max(len(a), len(b))
        left = (*a.items, *(Int(0),) * (rank - len(a)))
        right = (*b.items, *(Int(0),) * (rank - len(b)))
        return ArithTuple(
            *[_combined(x, y, whole, (*path, i)) for i, (x, y) in enumerate(zip(left, right, strict=True))]
        )
    if not isinstance(a, ArithTuple) and not isinstance(b, ArithTuple):
        return a + b
    for zero, kept in ((a, b), (b, a)):
        if isinstance(zero, Int) and zero == 0:
            return kept
    left, sign, right = whole
    facts = {
        "left": left,
        "right": -right if sign == "-" else right,
        "mode": ".".join(map(str, path)),
        "there": f"{a} in left, {-b if sign == '-' else b} in right",
        "rule": "an integer and a tuple can't be added, unless the integer is a static 0",
    }
    if isinstance(a, Int) or isinstance(b, Int):
        raise StaticAssertError("Arithmetic tuple op+ error!", facts)
    raise LayoutError("the coordinates are nested differently", facts)


def as_arith_tuple(value: Any) -> Any:
    """A tuple, basis element or arithmetic tuple as an `ArithTuple`; an integer stays itself.

    >>> print(as_arith_tuple((1, (2, 3))))
    (1,(2,3))
    """
    if isinstance(value, tuple):
        return ArithTuple(*value)
    if hasattr(type(value), "as_arith_tuple"):
        return value.as_arith_tuple()
    return value
