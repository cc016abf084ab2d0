"""Leaves of a text: where one ends, and which number, symbol or basis value it is.

_4  Int        4  run-time int        _1/_2  ratio        M, 2*K + 1  symbolic        Int<4>{}, C<4>{}, _4{}  Int

Digits are those of ASCII, as C++ and Python print them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from cute_py.argument_checks import MAX_INTEGER
from cute_py.arith_tuple.expressions import read_expression
from cute_py.arith_tuple.ratio import ratio
from cute_py.errors import CuteError, ParseError, shortened
from cute_py.layout.leaf import Int

_MOST_DIGITS: Final = len(str(MAX_INTEGER))
_SHOWN: Final = 40
"""Characters of a part of the text that an error repeats; the window below it has its surroundings."""

_STATIC = re.compile(r"_(-?[0-9]+)(?:\{\})?\Z")
_CONSTANT = re.compile(r"(?:Int|C)(?:<\s*(-?[0-9]+)\s*>(?:\{\}|\(\))?|\(\s*(-?[0-9]+)\s*\))\Z")
_PLAIN = re.compile(r"-?[0-9]+\Z")
_RATIO = re.compile(r"_(-?[0-9]+)/_([0-9]+)\Z")
_RATIO_TYPE = re.compile(r"R<\s*(-?[0-9]+)\s*,\s*([0-9]+)\s*>(?:\{\})?\Z")
_FLOAT = re.compile(r"[-+]?[0-9]*\.[0-9]")
_BLANKS = re.compile(r"\s+")


def failure(text: str, position: int, expected: str) -> ParseError:
    """The error of a text that can't be read on: the rule, and a mark below the place."""
    begin, end = max(0, position - 30), position + 30
    before, after = "..." if begin else "", "..." if end < len(text) else ""
    window = f"{before}{text[begin:end]}{after}".replace("\n", " ")
    facts = {"text": window, "here": " " * (len(before) + position - begin) + "^"}
    return ParseError(f"at position {position}: {expected}", facts, position=position)


def read_integer(text: str, position: int, digits: str) -> int:
    """The integer of some digits of a text, of whatever length.

    Raises:
        ParseError: it is beyond 2**128 in magnitude; the text of the error has its first and its last digits.
    """
    significant = digits.lstrip("-0")
    if len(significant) <= _MOST_DIGITS and int(significant or "0") <= MAX_INTEGER:
        return -int(significant or "0") if digits.startswith("-") else int(significant or "0")
    shown = shortened(digits, _SHOWN)
    if shown != digits:
        shown += f" ({len(digits)} characters)"
    raise failure(text, position, f"an integer is {shown}; must be at most 2**128 in magnitude")


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
        elif depth == 0:
            if c in ",:@":
                break
            if blanks := _BLANKS.match(text, i):  # all of them at once
                after = blanks.end()
                if text.startswith("o", after) and text[after + 1 : after + 2].isspace():
                    break
                i = after
                continue
        i += 1
    return i


def read_number(text: str, begin: int, end: int, symbols: Mapping[str, Any]) -> Any:
    """The number that a leaf's text says: Int, int, ratio or symbolic.

    Raises:
        ParseError: a `?` (an unknown of the DSL), a float, an integer beyond 2**128, or no number at all.
    """
    word = text[begin:end].strip()
    shown = shortened(word, _SHOWN)
    if not word:
        raise failure(text, begin, "expected a number, found nothing")
    if _PLAIN.match(word):
        return read_integer(text, begin, word)
    if found := _STATIC.match(word) or _CONSTANT.match(word):
        return Int(read_integer(text, begin, next(g for g in found.groups() if g is not None)))
    if found := _RATIO.match(word) or _RATIO_TYPE.match(word):
        numerator, denominator = (read_integer(text, begin, part) for part in found.groups())
        if denominator == 0:
            raise failure(text, begin, f"the ratio {shown} has denominator 0")
        return ratio(numerator, denominator)
    if word.startswith("?"):
        raise failure(
            text, begin, f"{shown} is a number that the DSL knows only at run time; write the number, or a symbol"
        )
    if _FLOAT.match(word):
        raise failure(text, begin, f"{shown} is no integer")
    try:
        return read_expression(word, symbols)
    except CuteError as error:
        raise failure(text, begin, error.headline) from None
