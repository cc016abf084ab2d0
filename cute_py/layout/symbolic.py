"""Sympy expressions as sizes: which of them can be integers, and how they divide."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from cute_py.errors import InvalidTypeError, LayoutError


def never_an_integer(x: Any) -> bool:
    """Is a sympy object a fraction, an infinity, nan, a relation, a matrix, anything that no integer can stand for?

    >>> import sympy
    >>> never_an_integer(sympy.Rational(1, 2)), never_an_integer(sympy.oo), never_an_integer(sympy.Symbol("n"))
    (True, True, False)
    """
    if not hasattr(x, "is_Rational") or getattr(x, "is_Matrix", False):
        return True
    if getattr(x, "is_Boolean", False) or x.is_Float or x.is_Rational or getattr(x, "is_integer", False) is False:
        return True
    return bool(x.is_number and not x.is_finite)


@lru_cache(maxsize=4096)
def largest_integers(x: Any) -> tuple[int, ...]:
    """The least and the greatest of the integers in an expression; of a bare symbol none.

    >>> import sympy
    >>> largest_integers(sympy.Symbol("n") * 8 - 3)
    (-3, 8)
    """
    if x.is_Symbol:
        return ()
    import sympy

    found = [int(atom) for atom in x.atoms(sympy.Integer)]
    return (min(found), max(found)) if found else ()


def divided(operation: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """x // y or x % y, as `operation` says; at least one of them a symbol.

    Raises:
        LayoutError: y is 0; InvalidTypeError: a stride that is no number.
    """
    if isinstance(y, int) and y == 0:
        raise LayoutError("division by zero", {"dividend": x})
    try:
        return operation(x, y)
    except TypeError:
        raise InvalidTypeError(f"can't divide {x} by {y}; must be integers") from None
