"""Ratio: a static rational number, such as a stride of coordinates that are counted in elements of another width.

C++ prints it `_1/_2`. The product with a static integer may be an integer again. The product with a run-time integer is
truncated to an integer, because a coordinate is an integer.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

from cute_py.argument_checks import Immutable, expect_integer, is_integer
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.layout.leaf import Int, as_leaf, is_symbolic, quotient

if TYPE_CHECKING:
    import sympy

_NO_NUMBERS = (bool, float, complex, str, bytes, list, tuple, dict, set, frozenset, type(None))


def may_know(other: int | Ratio | sympy.Expr, method: str) -> bool:
    """Whether an operand's class may implement this operation with a coordinate or a ratio. Numbers, containers and
    arrays do not."""
    return hasattr(type(other), method) and not isinstance(other, _NO_NUMBERS) and not hasattr(type(other), "__array__")


class Ratio(Immutable):
    """A static fraction numerator/denominator in lowest terms. Call `ratio(n, d)` to make one; it returns an `Int` if d
    divides n.

    >>> print(ratio(1, 2), ratio(1, 2) * Int(4), ratio(1, 2) * 5)
    _1/_2 _2 2
    """

    __slots__ = ("denominator", "numerator")
    _state = operator.attrgetter("numerator", "denominator")

    __array_ufunc__ = None

    is_static = True
    numerator: int
    denominator: int

    def __init__(self, numerator: int, denominator: int) -> None:
        numerator = expect_integer(numerator, "the numerator of a ratio")
        denominator = expect_integer(denominator, "the denominator of a ratio")
        if denominator == 0:
            raise InvalidValueError(f"the denominator of {numerator}/{denominator} must not be 0")
        g = math.gcd(numerator, denominator) * (1 if denominator > 0 else -1)
        object.__setattr__(self, "numerator", numerator // g)
        object.__setattr__(self, "denominator", denominator // g)

    def __mul__(self, other: int | Ratio | sympy.Expr) -> int | Ratio:
        if isinstance(other, Ratio):
            return ratio(self.numerator * other.numerator, self.denominator * other.denominator)
        if isinstance(other, Int):
            return ratio(self.numerator * int(other), self.denominator)
        if is_symbolic(other):
            return quotient(as_leaf(other) * self.numerator, self.denominator)
        if is_integer(other):
            return quotient(expect_integer(other, "a factor") * self.numerator, self.denominator)
        if may_know(other, "__rmul__"):
            return NotImplemented
        raise self._refused("*", other)

    __rmul__ = __mul__

    def __add__(self, other: int | Ratio | sympy.Expr) -> int | Ratio:
        if isinstance(other, Ratio):
            n = self.numerator * other.denominator + other.numerator * self.denominator
            return ratio(n, self.denominator * other.denominator)
        if isinstance(other, Int):
            return ratio(self.numerator + int(other) * self.denominator, self.denominator)
        if is_integer(other) or is_symbolic(other):
            raise InvalidTypeError(
                f"the ratio {self} is static, so the run-time number {given(other)} can't be added to it"
            )
        if may_know(other, "__radd__"):
            return NotImplemented
        raise self._refused("+", other)

    __radd__ = __add__

    def __sub__(self, other: int | Ratio | sympy.Expr) -> int | Ratio:
        if isinstance(other, (Ratio, Int)):
            return self + -other
        if is_integer(other) or is_symbolic(other):
            return self + other  # the integer's method refuses it
        if may_know(other, "__rsub__"):
            return NotImplemented
        raise self._refused("-", other)

    def __rsub__(self, other: int | Ratio | sympy.Expr) -> int | Ratio:
        if isinstance(other, Ratio) or is_integer(other) or is_symbolic(other):
            return -self + other
        if may_know(other, "__sub__"):
            return NotImplemented
        raise self._refused("-", other)

    def _refused(self, sign: str, other: int | Ratio | sympy.Expr) -> InvalidTypeError:
        return InvalidTypeError(
            f"{self} {sign} {type(other).__name__} {given(other)} is not defined; the other operand of a ratio "
            "must be an integer"
        )

    def __neg__(self) -> Ratio:
        return Ratio(-self.numerator, self.denominator)

    def __abs__(self) -> Ratio:
        return Ratio(abs(self.numerator), self.denominator)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Ratio):
            return (self.numerator, self.denominator) == (other.numerator, other.denominator)
        if isinstance(other, int):
            return self.denominator == 1 and self.numerator == other
        return NotImplemented

    def __hash__(self) -> int:
        from fractions import Fraction  # imports decimal too

        return hash(Fraction(self.numerator, self.denominator))  # the integer's own method, if the ratio is an integer

    def __str__(self) -> str:
        return f"_{self.numerator}/_{self.denominator}"

    def __repr__(self) -> str:
        return f"Ratio({self.numerator}, {self.denominator})"


def ratio(numerator: int, denominator: int) -> Int | Ratio:
    """Return n/d: an `Int` if d divides n, otherwise a `Ratio`.

    >>> print(ratio(6, 4), ratio(8, 4))
    _3/_2 _2
    """
    r = Ratio(numerator, denominator)
    return Int(r.numerator) if r.denominator == 1 else r
