"""Sympy expressions as sizes: which of them can be integers, and their arithmetic.

sympy simplifies what it builds, and walks through the whole expression for it. Every mode that a composition steps
over wraps the expression of the mode before, so that simplifying all of them takes time that grows as fast as the
text. Expressions of more than `MOST_SIMPLIFIED` operations are therefore built as they stand.
"""

from __future__ import annotations

import operator
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


MOST_SIMPLIFIED = 40
"""Operations in the operands, together, up to which sympy simplifies a result."""

_NODES_OF_AN_OPERATION = 5


def is_short(*operands: Any) -> bool:
    """May sympy simplify an expression of these? Looks at a bounded part of them.

    >>> import sympy
    >>> m, n = sympy.symbols("m n")
    >>> is_short(m + 1, n), is_short(m, sum(n**i for i in range(50)))
    (True, False)
    """
    import sympy

    expressions = [x for x in operands if isinstance(x, sympy.Basic)]
    ahead, enough = expressions.copy(), MOST_SIMPLIFIED * _NODES_OF_AN_OPERATION
    while ahead:
        ahead.extend(ahead.pop().args)
        enough -= 1
        if enough < 0:
            return False
    return bool(sum(sympy.count_ops(x) for x in expressions) <= MOST_SIMPLIFIED)


def divided(operation: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """x // y or x % y, as `operation` says; at least one of them a symbol.

    Raises:
        LayoutError: y is 0; InvalidTypeError: a stride that is no number.
    """
    if isinstance(y, int) and y == 0:
        raise LayoutError("division by zero", {"dividend": x})
    try:
        if is_short(x, y):
            return operation(x, y)
        return _divided_as_it_stands(operation, x, y)
    except TypeError:
        raise InvalidTypeError(f"can't divide {x} by {y}; must be integers") from None


def _divided_as_it_stands(operation: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    import sympy

    if operation is operator.mod:
        return sympy.Mod(x, y, evaluate=False)
    quotient = sympy.sympify(x) / y
    divisor_left = any(factor.is_Pow and factor.exp.is_negative for factor in sympy.Mul.make_args(quotient))
    return quotient if not divisor_left and quotient.is_integer else sympy.floor(quotient, evaluate=False)


def least(x: Any, y: Any) -> Any:
    """The smaller of two numbers, at least one of them a symbol."""
    import sympy

    return sympy.Min(x, y) if is_short(x, y) else sympy.Min(x, y, evaluate=False)


def divides(y: Any, x: Any) -> Any:
    """The relation x % y == 0."""
    import sympy

    short = is_short(x, y)
    return sympy.Eq(sympy.Mod(x, y, evaluate=short), 0, evaluate=short)


def divides_or_exceeds(y: Any, x: Any) -> Any:
    """The relation x % y == 0 or x < y."""
    import sympy

    short = is_short(x, y)
    return sympy.Or(divides(y, x), sympy.Lt(x, y, evaluate=short), evaluate=short)


def substituted(x: Any, values: dict[Any, Any], known: dict[Any, Any]) -> Any:
    """An expression with symbols replaced by `values`. Numbers go in all at once, into each part that stands in
    several places once: sympy replaces symbol after symbol, and simplifies (sometimes wrongly) what lies between.

    Args:
        known: parts already replaced by these values; new ones are added.
    """
    import sympy

    if not all(isinstance(v, int) and key.is_Symbol for key, v in values.items()):
        return x.subs(values).doit()

    def replaced(part: Any) -> Any:
        if part in known:
            return known[part]
        result = values.get(part, part)
        if part.args:
            arguments = [replaced(a) for a in part.args]
            changed = any(a is not b for a, b in zip(arguments, part.args, strict=True))
            result = part.func(*arguments) if changed else part
        known[part] = result = sympy.sympify(result)
        return result

    return replaced(x).doit()
