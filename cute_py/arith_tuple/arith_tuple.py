"""ArithTuple: a tuple of integers that can be added and scaled, so that it can be a coordinate, an offset, a stride.

    (1,2) + (10,20) = (11,22)      3 * (1,(2,3)) = (3,(6,9))      (1,2) + (0,0,5) = (1,2,5)

Missing modes are zero, at every depth. A static 0 is the zero of all of them; any other integer has no position, so
adding one is refused, as in C++.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cute_py.errors import InvalidTypeError, LayoutError
from cute_py.layout.leaf import Int, Tree, internal, is_symbolic, tree_text


class ArithTuple:
    """An arithmetic tuple of leaves and tuples, immutable and hashable.

    >>> print(ArithTuple(1, Int(2)) + ArithTuple(10, Int(20)))
    (11,_22)
    >>> print(ArithTuple(1, (2, 3)) - (0, (1, 1)), 2 * ArithTuple(1, 2))
    (1,(1,2)) (2,4)
    """

    __slots__ = ("items",)

    items: tuple[Any, ...]

    def __init__(self, *items: Any) -> None:
        object.__setattr__(self, "items", tuple([_element(x) for x in items]))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"ArithTuple is immutable; can't set {name}")

    @property
    def is_static(self) -> bool:
        """Are all leaves static?"""
        return all(x.is_static if isinstance(x, ArithTuple) else isinstance(x, Int) for x in self.items)

    def __getitem__(self, mode: int) -> Any:
        return self.items[mode]

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
        return self._with(-other if not isinstance(other, tuple) else -ArithTuple(*other), "-")

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __neg__(self) -> ArithTuple:
        return ArithTuple(*[-x for x in self.items])

    def __mul__(self, n: Any) -> Any:
        if isinstance(n, bool) or not (isinstance(n, int) or hasattr(n, "__index__") or is_symbolic(n)):
            return NotImplemented
        return ArithTuple(*[n * x for x in self.items])

    __rmul__ = __mul__

    def _with(self, other: Any, sign: str) -> Any:
        if isinstance(other, Int) and other == 0:
            return self
        if isinstance(other, tuple):
            other = ArithTuple(*other)
        if hasattr(other, "as_arith_tuple"):
            other = other.as_arith_tuple()
        if not isinstance(other, ArithTuple):
            if isinstance(other, (int, Int)) or is_symbolic(other):
                raise LayoutError(
                    f"Arithmetic tuple op{sign} error!",
                    {"tuple": self, "integer": other, "rule": "only a static 0 may be added to an arithmetic tuple"},
                )
            return NotImplemented
        return ArithTuple(*[_sum(a, b) for a, b in _paired(self.items, other.items)])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ArithTuple):
            return self.items == other.items
        if isinstance(other, tuple):
            return bool(self.as_tuple() == other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.as_tuple())

    def __str__(self) -> str:
        return tree_text(internal(self.as_tuple()))

    def __repr__(self) -> str:
        return f"ArithTuple({', '.join(_shown(x) for x in self.items)})"

    def __reduce__(self) -> Any:
        return (ArithTuple, self.items)


def _shown(x: Any) -> str:
    return repr(x.as_tuple()) if isinstance(x, ArithTuple) else repr(x)


def _element(x: Any) -> Any:
    if isinstance(x, tuple):
        return ArithTuple(*x)
    if isinstance(x, ArithTuple):
        return x
    if hasattr(x, "as_arith_tuple"):
        return _element(x.as_arith_tuple())
    if isinstance(x, (bool, float, str)) or x is None:
        raise InvalidTypeError(f"an arithmetic tuple holds integers and tuples, got {x!r}")
    if isinstance(x, int) or is_symbolic(x) or hasattr(x, "numerator"):
        return x
    if hasattr(x, "__index__"):
        return x.__index__()
    raise InvalidTypeError(f"an arithmetic tuple holds integers and tuples, got {x!r}")


def _paired(a: tuple[Any, ...], b: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    """Zip to the longer, with static zeros for what is missing."""
    for i in range(max(len(a), len(b))):
        yield (a[i] if i < len(a) else Int(0), b[i] if i < len(b) else Int(0))


def _sum(a: Any, b: Any) -> Any:
    if isinstance(a, ArithTuple) or isinstance(b, ArithTuple):
        first, second = (a, b) if isinstance(a, ArithTuple) else (b, a)
        result = first + second
        if result is NotImplemented:
            raise LayoutError("hierarchies do not match", {"left": a, "right": b})
        return result
    return a + b


def as_arith_tuple(value: Any) -> Any:
    """A tuple, basis element or arithmetic tuple as an `ArithTuple`; an integer stays itself.

    >>> print(as_arith_tuple((1, (2, 3))))
    (1,(2,3))
    """
    if isinstance(value, tuple):
        return ArithTuple(*value)
    if hasattr(value, "as_arith_tuple"):
        return value.as_arith_tuple()
    return value
