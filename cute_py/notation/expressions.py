"""Read symbolic expressions, as str() of a sympy expression prints them, without eval and in bounded time.

    2*M + 1     Min(K, 64 // N)     Mod(N, 4)**2     floor(N/8)

Python's parser makes a syntax tree, and this module converts it to a sympy expression. Where sympy's work may exceed
the length of the text, the module limits the operands: integers to 2**128, exponents of symbols to `MAX_EXPONENT`, and
the operands of `//`, `%`, Min, Max, floor and similar functions to a number of expanded terms, because sympy looks for
common factors of operands. The same limit applies to bases of powers, because sympy looks for their sign. Min and Max
of many terms, or deeply nested ones, are not evaluated, because sympy compares every pair of terms.
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from math import comb
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from cute_py.argument_checks import MAX_INTEGER, expect, expect_integer
from cute_py.errors import InvalidValueError, integer_text
from cute_py.layout.arguments import Value
from cute_py.layout.leaf import MAX_DEPTH, as_leaf, is_symbolic

if TYPE_CHECKING:
    import sympy

Symbols: TypeAlias = "Mapping[str, sympy.Expr | int]"

_UNDERSCORE: Final = re.compile(r"[0-9]_[0-9]")
MAX_CHARACTERS: Final = 2000
"""Maximum number of characters of a symbolic expression."""
MAX_EXPONENT: Final = 64
"""Largest exponent of a symbol."""
MAX_TERMS: Final = 64
"""Maximum number of terms of an expanded operand of // and %, of an argument of a function, or of the base of a
power."""
MAX_LEVELS: Final = 32
"""Maximum nesting of //, % and functions."""
COMPARED_TERMS: Final = 8
"""Min and Max of more terms are taken as written."""
COMPARED_LEVELS: Final = 4
"""Min and Max with more levels of //, % and functions inside are taken as written."""

_FUNCTIONS: Final = ("Min", "Max", "floor", "ceiling", "Mod", "Abs")


class _Read(NamedTuple):
    """An expression, an upper bound on its number of terms after expansion, and its levels of nested functions."""

    value: sympy.Expr
    terms: int
    levels: int


def checked_symbols(symbols: Symbols) -> dict[str, sympy.Expr]:
    """Convert the values of names to sympy objects.

    Raises:
        InvalidTypeError, InvalidValueError: the argument is not a mapping of names to symbols or integers.
    """
    found: dict[str, sympy.Expr] = {}
    for name, value in expect(symbols, Mapping, "symbols").items():  # type: ignore[type-abstract]
        key = expect(name, str, "the name of a symbol")
        if is_symbolic(value):
            as_leaf(value)  # refuses everything but integers
            found[key] = value
        else:
            import sympy

            found[key] = sympy.Integer(expect_integer(value, f"symbols[{key!r}]"))
    return found


def read_expression(text: str, symbols: Symbols) -> Value:
    """Read an integer or sympy expression from a string of at most `MAX_CHARACTERS` characters.

    Raises:
        InvalidValueError: the text is not an expression, or exceeds a limit, which the message names.

    >>> read_expression("2*(M + 1) - M", {})
    M + 2
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidValueError(f"the expression has {len(text)} characters; must have at most {MAX_CHARACTERS}")
    shown = repr(text[:40])
    if _UNDERSCORE.search(text):  # Python would read 32_4_4 as 3244
        raise InvalidValueError(f"{shown} is not a number")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # Python reads `1if`, but warns
            tree = ast.parse(text, mode="eval").body
        result = _Reader(symbols).read(tree).value
        no_integer = result.is_integer is False or result.is_finite is False
    except InvalidValueError:
        raise
    except (SyntaxError, MemoryError, RecursionError):
        raise InvalidValueError(f"{shown} is not a number") from None
    except ImportError:
        raise InvalidValueError(f"{shown} is not a number; a symbol needs the package sympy") from None
    except Exception as error:  # sympy raises errors of many kinds
        raise InvalidValueError(f"{shown} is not a number ({error})") from None
    if no_integer:
        raise InvalidValueError(f"{shown} is not an integer")
    if result.is_Integer:
        return int(result)
    _check_depth(result)
    return result


def _check_depth(expression: sympy.Expr) -> None:
    """Refuse an expression that is nested deeper than sympy can print. The check works by levels, without recursion."""
    level = [expression]
    for _ in range(MAX_DEPTH):
        level = list({part for node in level for part in node.args})
        if not level:
            return
    raise InvalidValueError(f"the expression has more than {MAX_DEPTH} nested levels")


class _Reader:
    """Convert Python's syntax tree to a sympy expression, and limit sympy's work at each node."""

    def __init__(self, symbols: Symbols) -> None:
        import sympy

        self.sympy = sympy
        self.symbols = symbols

    def read(self, node: ast.expr) -> _Read:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return self.bounded(_Read(self.sympy.Integer(node.value), 1, 0))
        if isinstance(node, ast.Name) and not node.id.startswith("_"):
            found = self.symbols.get(node.id)
            return _Read(self.sympy.Symbol(node.id, integer=True, positive=True) if found is None else found, 1, 0)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            part = self.read(node.operand)
            return part if isinstance(node.op, ast.UAdd) else part._replace(value=-part.value)
        if isinstance(node, ast.BinOp):
            return self.bounded(self.binary(node))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            if node.keywords:
                raise InvalidValueError(f"{node.func.id} takes no keyword arguments")
            return self.bounded(self.function(node.func.id, [self.read(a) for a in node.args]))
        raise InvalidValueError(f"{ast.unparse(node)[:40]!r} is not a number")

    def binary(self, node: ast.BinOp) -> _Read:
        if isinstance(node.op, (ast.Add, ast.Sub)):
            parts = self.chain(node, (ast.Add, ast.Sub), ast.Sub, operator.neg)
            terms = sum(part.terms for part in parts)
            return _Read(self.sympy.Add(*[p.value for p in parts]), terms, max(p.levels for p in parts))
        if isinstance(node.op, (ast.Mult, ast.Div)):
            parts = self.chain(node, (ast.Mult, ast.Div), ast.Div, self.inverse)
            terms = 1
            for part in parts:
                terms = min(terms * part.terms, MAX_TERMS + 1)
            return _Read(self.sympy.Mul(*[p.value for p in parts]), terms, max(p.levels for p in parts))
        left, right = self.read(node.left), self.read(node.right)
        if isinstance(node.op, ast.Pow):
            return self.power(left, right)
        if isinstance(node.op, (ast.FloorDiv, ast.Mod)):
            if right.value.is_zero:
                raise InvalidValueError("division by zero")
            divide, sign = (operator.floordiv, "//") if isinstance(node.op, ast.FloorDiv) else (operator.mod, "%")
            return self.function(sign, [left, right], divide)
        raise InvalidValueError(f"{ast.unparse(node)[:40]!r} is not a number")

    def chain(
        self, node: ast.expr, kinds: tuple[type, ...], second: type, opposite: Callable[[sympy.Expr], sympy.Expr]
    ) -> list[_Read]:
        """Return all terms of a + b - c + ..., or all factors of a * b / c * ..., so that the caller combines them in
        one step. Adding them one by one would rebuild the sum each time."""
        parts = []
        while isinstance(node, ast.BinOp) and isinstance(node.op, kinds):
            part = self.read(node.right)
            parts.append(part._replace(value=opposite(part.value)) if isinstance(node.op, second) else part)
            node = node.left
        return [self.read(node), *reversed(parts)]

    def inverse(self, value: sympy.Expr) -> sympy.Expr:
        if value.is_zero:
            raise InvalidValueError("division by zero")
        return 1 / value

    def power(self, base: _Read, exponent: _Read) -> _Read:
        number = exponent.value
        if not number.is_Integer:
            raise InvalidValueError("the exponent is not an integer")
        if base.value.is_Rational:
            largest = max(abs(base.value.p), base.value.q)
            if abs(int(number)) * (largest.bit_length() - 1) > MAX_INTEGER.bit_length():
                raise InvalidValueError("the power exceeds 2**128")
            if base.value.is_zero and number < 0:
                raise InvalidValueError("division by zero")
        elif abs(number) > MAX_EXPONENT:
            raise InvalidValueError(f"the exponent is {integer_text(int(number))}; must be at most {MAX_EXPONENT}")
        if base.terms > MAX_TERMS and abs(number) > 1:  # sympy asks for the sign of a sum: the roots of a polynomial
            raise InvalidValueError(f"the base of a power expands to more than {MAX_TERMS} terms")
        size = abs(int(number)) if base.terms > 1 else 1
        return _Read(base.value**number, min(comb(base.terms + size - 1, size), MAX_TERMS + 1), base.levels)

    def function(self, name: str, parts: list[_Read], make: Callable[..., sympy.Expr] | None = None) -> _Read:
        """Read a function whose arguments sympy compares, or expands to find common factors."""
        if not parts:
            raise InvalidValueError(f"{name} needs at least one operand")
        large = max(part.terms for part in parts)
        if large > MAX_TERMS:
            raise InvalidValueError(f"an operand of {name} expands to more than {MAX_TERMS} terms")
        levels = max(part.levels for part in parts)
        if levels >= MAX_LEVELS:
            raise InvalidValueError(f"{name} is nested in more than {MAX_LEVELS} levels of //, % and functions")
        values = [part.value for part in parts]
        if make is None:
            kind: type[sympy.Expr] = getattr(self.sympy, name)
            make = kind
            if name in ("Min", "Max"):
                values = list(dict.fromkeys(x for v in values for x in (v.args if isinstance(v, kind) else (v,))))
                if len(values) > COMPARED_TERMS or levels > COMPARED_LEVELS:
                    return _Read(self.as_written(kind, values), 1, levels + 1)
        return _Read(make(*values), large, levels + 1)

    def as_written(self, kind: type[sympy.Expr], values: list[sympy.Expr]) -> sympy.Expr:
        """Make Min or Max of these terms without evaluation, except that the numbers among them are compared."""
        numbers = [v for v in values if v.is_number]
        others = [v for v in values if not v.is_number]
        return kind(*others, *([kind(*numbers)] if numbers else []), evaluate=False)

    def bounded(self, read: _Read) -> _Read:
        """Return `read` if its numbers are at most 2**128 and its exponents at most `MAX_EXPONENT`; otherwise raise."""
        for part in (read.value, *read.value.args):
            if part.is_Rational and max(abs(part.p), part.q) > MAX_INTEGER:
                shown = integer_text(int(part.p if abs(part.p) > MAX_INTEGER else part.q))
                raise InvalidValueError(f"the number is {shown}; must be at most 2**128 in magnitude")
            if part.is_Pow and part.exp.is_Integer and abs(part.exp) > MAX_EXPONENT:
                raise InvalidValueError(
                    f"the exponent is {integer_text(int(part.exp))}; must be at most {MAX_EXPONENT}"
                )
        return read
