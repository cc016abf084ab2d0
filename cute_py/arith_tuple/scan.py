"""Leaves of a text: where one ends, and which number, symbol or basis value it is.

_4  Int        4  run-time int        _1/_2  ratio        M, 2*K + 1  symbolic        Int<4>{}, C<4>{}, _4{}  Int
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from cute_py.arith_tuple.ratio import ratio
from cute_py.errors import CuteError, ParseError
from cute_py.layout.leaf import Int

MAX_SYMBOLIC = 2000
"""Longest symbolic expression that is read, in characters."""

_STATIC = re.compile(r"_(-?\d{1,4000})(?:\{\})?\Z")
_CONSTANT = re.compile(r"(?:Int|C)(?:<\s*(-?\d{1,4000})\s*>(?:\{\}|\(\))?|\(\s*(-?\d{1,4000})\s*\))\Z")
_PLAIN = re.compile(r"-?\d{1,4000}\Z")
_RATIO = re.compile(r"_(-?\d{1,4000})/_(\d{1,4000})\Z")
_RATIO_TYPE = re.compile(r"R<\s*(-?\d{1,4000})\s*,\s*(\d{1,4000})\s*>(?:\{\})?\Z")

_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS = ("Min", "Max", "floor", "ceiling", "Mod", "Abs")


def failure(text: str, position: int, expected: str) -> ParseError:
    """The error of a text that can't be read on: the rule, and a mark below the place."""
    begin, end = max(0, position - 30), position + 30
    before, after = "..." if begin else "", "..." if end < len(text) else ""
    window = f"{before}{text[begin:end]}{after}".replace("\n", " ")
    facts = {"text": window, "here": " " * (len(before) + position - begin) + "^"}
    return ParseError(f"at position {position}: {expected}", facts, position=position)


def leaf_end(text: str, begin: int) -> int:
    """The index after a leaf: before a comma, colon, @, closing bracket, a composition ` o `, or the end."""
    depth = 0
    i = begin
    while i < len(text):
        c = text[i]
        if c in "([{<":
            depth += 1
        elif c in ")]}>":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and (c in ",:@" or (c.isspace() and re.match(r"\s+o\s", text[i:]))):
            break
        i += 1
    return i


def read_number(text: str, begin: int, end: int, symbols: Mapping[str, Any]) -> Any:
    """The number that a leaf's text says: Int, int, ratio or symbolic.

    Raises:
        ParseError: a `?` (an unknown of the DSL), a float, or no number at all.
    """
    word = text[begin:end].strip()
    if not word:
        raise failure(text, begin, "expected a number, found nothing")
    if _PLAIN.match(word):
        return int(word)
    if found := _STATIC.match(word) or _CONSTANT.match(word):
        return Int(int(next(g for g in found.groups() if g is not None)))
    if found := _RATIO.match(word) or _RATIO_TYPE.match(word):
        if int(found[2]) == 0:
            raise failure(text, begin, f"the ratio {word} has denominator 0")
        return ratio(int(found[1]), int(found[2]))
    if word.startswith("?"):
        raise failure(
            text, begin, f"{word} is a number that the DSL knows only at run time; write the number, or a symbol"
        )
    if re.match(r"[-+]?\d*\.\d", word):
        raise failure(text, begin, f"{word} is no integer")
    return _symbolic(text, begin, word, symbols)


def _symbolic(text: str, begin: int, word: str, symbols: Mapping[str, Any]) -> Any:
    if len(word) > MAX_SYMBOLIC:
        raise failure(text, begin, f"an expression of {len(word)} characters; at most {MAX_SYMBOLIC} are read")
    try:
        tree = ast.parse(word, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise failure(text, begin, f"{word[:40]!r} is no number") from None
    import sympy

    def value(node: ast.expr) -> Any:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return sympy.Integer(node.value)
        if isinstance(node, ast.Name) and not node.id.startswith("_"):
            return symbols.get(node.id, sympy.Symbol(node.id, integer=True, positive=True))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = value(node.left), value(node.right)
            if isinstance(node.op, ast.Pow) and not (right.is_Integer and abs(int(right)) <= 64):
                raise failure(text, begin, f"the exponent in {word} is no small integer")
            return _OPERATORS[type(node.op)](left, right)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            return getattr(sympy, node.func.id)(*[value(a) for a in node.args])
        raise failure(text, begin, f"{word[:40]!r} is no number")

    try:
        result = value(tree.body)
        if result.is_integer is False or result.is_finite is False:
            raise failure(text, begin, f"{word[:40]!r} is no integer")
        return result
    except CuteError:
        raise
    except Exception as error:  # sympy refuses with errors of many kinds
        raise failure(text, begin, f"{word[:40]!r} is no number ({error})") from None
