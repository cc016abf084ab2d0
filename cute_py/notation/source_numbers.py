"""The numbers that C++ and Python source, or a program's output, writes as arguments of a tensor map."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

Value: TypeAlias = int | str | tuple[int, ...]
"""A number, a list of numbers, or any other text, such as the name of an enum."""
LONGEST_NUMBER: Final = 40
"""Maximum number of digits."""


def read_value(part: str, bits_of: Callable[[str], int]) -> Value:
    """Read a value: a list of numbers, a number, or the string itself. bits_of: the bits of a type that `sizeof` names;
    0 if it is unknown.

    >>> read_value("{1000 * sizeof(half) + 4, 64}", {"half": 16}.__getitem__)
    (2004, 64)
    >>> read_value("(2 + 3) * 4", {}.get)
    '(2 + 3) * 4'
    >>> read_value("{(uint64_t)8 * sizeof(int)}", {"int": 32}.__getitem__)
    (32,)
    """
    part = part.strip()
    if part[:1] in ("(", "[", "{") and part[-1:] in (")", "]", "}") and part.lower() not in ("(nil)", "(null)"):
        body = re.sub(r"^[(\[{]|[)\]}]$", "", part)
        items = [re.sub(r"(?<=[0-9])\s{0,9}(?:bytes?|B)\Z", "", item.strip()) for item in body.split(",")]
        numbers = [read_sum(item, bits_of) for item in items if item]
        return tuple(n for n in numbers if n is not None) if None not in numbers else part
    number = read_sum(part, bits_of)
    return part if number is None else number


def read_sum(item: str, bits_of: Callable[[str], int]) -> int | None:
    """Read the integer that an expression denotes: a number, a sum of products that may contain sizeof, a cast, or an
    enum such as `<Name.X: 6>`. None for anything else."""
    item = without_casts(item)
    item = item.strip().strip("()").strip()
    if member := re.search(r":\s{0,80}([0-9]{1,9})\s{0,80}>\s{0,80}$", item):
        return int(member[1])
    if item.lower() in ("nil", "null", "nullptr", "none"):
        return 0
    terms = re.split(r"(?<=[\w)])\s{0,80}([+-])\s{0,80}(?=[\w(])", item)
    if len(terms) > 1:
        if re.search(r"[()]", re.sub(r"sizeof\s{0,80}\([^()]{0,400}\)", "", item)):
            return None  # a sum in parentheses
        total = 0
        for sign, term in zip(("+", *terms[1::2]), terms[::2], strict=True):
            number = read_sum(term, bits_of)
            if number is None:
                return None
            total += number if sign == "+" else -number
        return total
    total = 1
    for factor in item.split("*"):
        factor = factor.strip().strip("()").strip()
        if sized := re.fullmatch(r"sizeof\s*+\(?\s*+([\w:]++)\s*+", factor):
            width = bits_of(sized[1]) // 8
            if not width:
                return None
            total *= width
        elif re.fullmatch(r"-?(?:0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]{0,3}", factor) and len(factor) <= LONGEST_NUMBER:
            total *= int(factor.rstrip("uUlL"), 16 if "x" in factor.lower() else 10)
        else:
            return None
    return total


def without_casts(item: str) -> str:
    """The expression without its casts to integers and pointers.

    >>> without_casts("(uint64_t)(M + 1) * sizeof(int)")
    '(M + 1) * sizeof(int)'
    """
    return re.sub(
        r"static_cast<[^<>]{0,400}>|(?<!sizeof)(?<!sizeof )\(\s{0,80}(?:u?int\w{0,80}|cuuint\w{1,80}|size_t"
        r"|unsigned[\w ]{0,100}|long[\w ]{0,100}|CU\w{1,80}|(?:const )?\w{1,80} ?\*)"
        r"\s{0,80}\)",
        "",
        item,
    )
