"""Ratio: a static rational number, as it arises when coordinates are counted in elements of another width.

C++ prints it `_1/_2`. Times a static integer it may become an integer again; times a run-time integer it gives an
integer, truncated, because a coordinate is one.
"""

from __future__ import annotations

import math
from typing import Any

from cute_py.argument_checks import is_integer
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.layout.leaf import Int


class Ratio:
    """numerator/denominator, reduced, static. Use `ratio(n, d)`, which gives an `Int` where it can.

    >>> print(ratio(1, 2), ratio(1, 2) * Int(4), ratio(1, 2) * 5)
    _1/_2 _2 2
    """

    __slots__ = ("denominator", "numerator")

    __array_ufunc__ = None

    is_static = True
    numerator: int
    denominator: int

    def __init__(self, numerator: int, denominator: int) -> None:
        for number in (numerator, denominator):
            if not is_integer(number):
                raise InvalidTypeError(f"a ratio is of two integers, got {given(numerator)}/{given(denominator)}")
        numerator, denominator = int(numerator), int(denominator)
        if denominator == 0:
            raise InvalidValueError(f"the denominator of {numerator}/{denominator} must not be 0")
        g = math.gcd(numerator, denominator) * (1 if denominator > 0 else -1)
        object.__setattr__(self, "numerator", numerator // g)
        object.__setattr__(self, "denominator", denominator // g)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Ratio is immutable; can't set {name}")

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Ratio):
            return ratio(self.numerator * other.numerator, self.denominator * other.denominator)
        if isinstance(other, Int):
            return ratio(self.numerator * int(other), self.denominator)
        if isinstance(other, int) and not isinstance(other, bool):
            product = other * self.numerator
            return product // self.denominator if product >= 0 else -(-product // self.denominator)
        if hasattr(other, "free_symbols"):
            return other * self.numerator // self.denominator
        return NotImplemented

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Ratio):
            n = self.numerator * other.denominator + other.numerator * self.denominator
            return ratio(n, self.denominator * other.denominator)
        if isinstance(other, Int):
            return ratio(self.numerator + int(other) * self.denominator, self.denominator)
        if isinstance(other, int) or hasattr(other, "free_symbols"):
            raise InvalidTypeError(
                f"{self} and the run-time number {other} have no sum, which would be static and run-time at once"
            )
        return NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __neg__(self) -> Ratio:
        return Ratio(-self.numerator, self.denominator)

    def __abs__(self) -> Ratio:
        return Ratio(abs(self.numerator), self.denominator)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Ratio):
            return (self.numerator, self.denominator) == (other.numerator, other.denominator)
        return False if isinstance(other, int) else NotImplemented

    def __hash__(self) -> int:
        return hash((Ratio, self.numerator, self.denominator))

    def __str__(self) -> str:
        return f"_{self.numerator}/_{self.denominator}"

    def __repr__(self) -> str:
        return f"Ratio({self.numerator}, {self.denominator})"

    def __reduce__(self) -> Any:
        return (Ratio, (self.numerator, self.denominator))


def ratio(numerator: int, denominator: int) -> Any:
    """n/d: an `Int` if it is whole, else a `Ratio`.

    >>> print(ratio(6, 4), ratio(8, 4))
    _3/_2 _2
    """
    r = Ratio(numerator, denominator)
    return Int(r.numerator) if r.denominator == 1 else r
