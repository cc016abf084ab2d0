"""Convert C++ types in a compiler's output to the text that CuTe prints for their values: `cute::C<8>` to `_8`."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

MOST_TYPES: Final = 4000
"""Maximum number of characters of one type."""
DEEPEST: Final = 48
"""Maximum nesting of template arguments."""

BINDINGS: Final = re.compile(r"\[with ")
"""Matches the beginning of the template arguments of an instantiation."""
_WORDS: Final[dict[str, str]] = {
    "Underscore": "_",
    "GenColMajor": "LayoutLeft",
    "LayoutLeft": "LayoutLeft",
    "GenRowMajor": "LayoutRight",
    "LayoutRight": "LayoutRight",
}
_RUN_TIME_TYPES: Final = frozenset(
    ("int", "unsigned", "long", "short", "char", "size_t", "int32_t", "int64_t", "uint32_t", "uint64_t", "signed")
)
"""Words of the names of integer types."""
_TUPLES: Final = ("tuple", "ArithmeticTuple", "Shape", "Stride", "Coord", "Tile", "Step")
_CONSTANTS: Final = ("C", "Int", "integral_constant", "constant", "_Int")
_PACK: Final = re.compile(r"\s*<")
"""A pack of types, which nvcc writes as <A, B>."""
_NAME: Final = re.compile(
    r"\s*(?:const\s+|typename\s+)*(?P<name>(?:\(\w+\))?-?[\w:]+(?:\s+(?:int|long|char|short)\b)*)\s*"
)


_CAST: Final = re.compile(r"\(\w{1,80}\)(-?[0-9]{1,40})")
"""A number with its type, as demanglers print it: (int)3."""


def spelled_type(spelled: str) -> str:
    """Return the text that CuTe prints for the value of a C++ type: `_4` for a static number, and `?` for a number that
    is known only at run time.

    >>> spelled_type("cute::Layout<cute::tuple<cute::C<8>, int>, cute::tuple<cute::_1, cute::_8>>")
    '(_8,?):(_1,_8)'
    """
    return _Types(spelled[:MOST_TYPES]).value(0)


class _Types:
    """A reader of the text of a C++ type, and its current position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def value(self, depth: int) -> str:
        """Read the type at the current position, and return its text."""
        name = ""
        if pack := _PACK.match(self.text, self.at):
            self.at = pack.end() - 1
        elif found := _NAME.match(self.text, self.at):
            name, self.at = found["name"].rpartition("::")[2], found.end()
        else:
            self.at += 1
            return "?"
        arguments: list[str] = []
        if self.text.startswith("<", self.at) and depth < DEEPEST:
            self.at += 1
            while self.at < len(self.text) and self.text[self.at] != ">":
                arguments.append(self.value(depth + 1))
                while self.at < len(self.text) and self.text[self.at] not in ",>":
                    self.at += 1
                if self.text.startswith(",", self.at):
                    self.at += 1
            self.at += 1
        return _shown(name, arguments)


def _shown(name: str, arguments: list[str]) -> str:
    """Return the text of a type, given its name and its arguments, which were already converted."""
    if not name:
        return ",".join(arguments)
    if number := _CAST.fullmatch(name):
        return number[1]
    if (shown := _of_layouts(name, arguments) or _of_memory(name, arguments) or _WORDS.get(name)) is not None:
        return shown
    if not arguments and _RUN_TIME_TYPES.issuperset(name.split()):
        return "?"
    return f"{name}<{','.join(arguments)}>" if arguments else name


def _of_layouts(name: str, arguments: list[str]) -> str | None:
    """Return CuTe's text of a number, a tuple, a layout or a part of a layout; None for any other type."""
    if name in _TUPLES:
        return f"({','.join(arguments)})"
    if name in _CONSTANTS and arguments:
        number = re.sub(r"[uUlL]{1,100}$", "", arguments[-1])
        return f"_{number}" if re.fullmatch(r"-?[0-9]+", number) else "?"
    if name == "Layout" and len(arguments) in (1, 2):
        return ":".join(arguments)
    if name == "Swizzle" and len(arguments) >= 2:
        return f"Sw<{','.join((*arguments, '3')[:3])}>"
    if name == "ScaledBasis" and arguments:
        value = arguments[0].removeprefix("_") if arguments[0] != "_1" else "1"
        return value + "".join(f"@{mode}" for mode in reversed(arguments[1:]))
    return " o ".join(arguments) if name == "ComposedLayout" and len(arguments) == 3 else None


def _of_memory(name: str, arguments: list[str]) -> str | None:
    """Return CuTe's text of a pointer, an engine or a tensor; None for any other type."""
    if not arguments:
        return None
    if name == "smem_ptr_flag_bits":
        return f"smem_ptr[{arguments[-1]}b](unset)"
    if name in ("ViewEngine", "ConstViewEngine"):
        return arguments[-1]
    if name in ("gmem_ptr", "smem_ptr"):
        return f"{name}[{arguments[-1]}]"
    return " o ".join(arguments) if name == "Tensor" and len(arguments) == 2 else None


def bindings(text: str) -> dict[str, str]:
    """Return the template arguments after `[with` as a mapping from names to the text of their types. Commas (nvcc) or
    semicolons (g++) separate the arguments."""
    found: dict[str, str] = {}
    for head in islice(BINDINGS.finditer(text), 1):
        depth, begin, parts = 0, head.end(), []
        for i in range(head.end(), min(len(text), head.end() + MOST_TYPES)):
            c = text[i]
            depth += (c in "<([{") - (c in ")}" or (c == ">" and text[i - 1] != "-"))
            if (c in ",;" and depth == 0) or (c == "]" and depth <= 0):
                parts.append(text[begin:i])
                begin = i + 1
                if c == "]":
                    break
            depth -= c == "]" and depth > 0
        else:
            parts.append(text[begin : head.end() + MOST_TYPES])
        for part in parts:
            name, equals, value = part.partition("=")
            if equals and re.fullmatch(r"[\w\s.<>-]+", name.strip()) and name.strip():
                found.setdefault(name.strip().split()[-1], value.strip())
    return found


def type_end(text: str, begin: int) -> int | None:
    """Return the index after the `>` that closes the template arguments that begin at this position."""
    depth = 1
    for i in range(begin, min(len(text), begin + MOST_TYPES)):
        depth += (text[i] == "<") - (text[i] == ">" and text[i - 1] != "-")
        if depth == 0:
            return i + 1
    return None
