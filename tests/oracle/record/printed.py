"""Printed layouts and coordinates: read as the values of a record, and written as the C++ that makes them again.

A leading `_` marks a static integer. `8@1@0` is 8 times the basis of path (0, 1): the innermost mode is printed first,
a record's path goes from the outermost in. `_1/_2@0` is scaled by a fraction.
"""

from __future__ import annotations

import re
from typing import Any

from tests.oracle.record.notation import dynamic_integer, static_integer, tupled

_TOKEN = re.compile(r"_?-?\d+(?:/_?\d+)?(?:@\d+)*|[(),:]")
_SWIZZLE = re.compile(r"Sw<(-?\d+),(-?\d+),(-?\d+)>")
PLAIN_SWIZZLE = [0, 4, 3]
"""The swizzle of a layout without one, as CuTe's get_swizzle_portion gives it."""


class _Leaf:
    """The text of one leaf."""

    def __init__(self, text: str) -> None:
        number, *path = text.split("@")
        self.parts = number.split("/")
        self.path = [int(mode) for mode in reversed(path)]

    def value(self) -> Any:
        numbers = [int(part.lstrip("_")) for part in self.parts]
        value: Any = numbers[0] if len(numbers) == 1 else {"num": numbers[0], "den": numbers[1]}
        return {"v": value, "e": self.path} if self.path else value

    def cpp(self) -> str:
        if len(self.parts) > 1 or self.path:
            raise ValueError(f"only integers are written as C++, not {'/'.join(self.parts)}@{self.path}")
        text = self.parts[0]
        return static_integer(int(text[1:])) if text.startswith("_") else dynamic_integer(int(text))


class _Pair:
    """A layout inside a tiler: shape and stride."""

    def __init__(self, shape: Any, stride: Any) -> None:
        self.shape, self.stride = shape, stride


def _tree(tokens: list[str]) -> Any:
    token = tokens.pop(0)
    if token == "(":
        items = []
        while tokens[0] != ")":
            items.append(_pair(tokens))
            if tokens[0] == ",":
                tokens.pop(0)
        tokens.pop(0)
        return items
    return _Leaf(token)


def _pair(tokens: list[str]) -> Any:
    shape = _tree(tokens)
    if tokens and tokens[0] == ":":
        tokens.pop(0)
        return _Pair(shape, _tree(tokens))
    return shape


def _read(text: str) -> Any:
    tokens = _TOKEN.findall(text)
    tree = _pair(tokens)
    if tokens:
        raise ValueError(f"{text!r}: {''.join(tokens)!r} is left over")
    return tree


def _values(tree: Any) -> Any:
    return [_values(item) for item in tree] if isinstance(tree, list) else tree.value()


def _cpp(tree: Any) -> str:
    if isinstance(tree, _Pair):
        return f"make_layout({_cpp(tree.shape)},{_cpp(tree.stride)})"
    return tupled([_cpp(item) for item in tree]) if isinstance(tree, list) else tree.cpp()


def values(text: str) -> Any:
    """The values of a printed tuple, as a record holds them.

    >>> values("(_1@1,(_1/_2@0,_0))")
    [{'v': 1, 'e': [1]}, [{'v': {'num': 1, 'den': 2}, 'e': [0]}, 0]]
    """
    return _values(_read(text))


def layout(text: str) -> dict[str, Any]:
    """The record of a printed layout.

    >>> layout("(_4,8):(_1@1,_1@0)")["stride"]
    [{'v': 1, 'e': [1]}, {'v': 1, 'e': [0]}]
    """
    tree = _read(text.split(" o ")[-1])
    return {"str": text, "shape": _values(tree.shape), "stride": _values(tree.stride)}


def shared_layout(text: str) -> dict[str, Any]:
    """The record of a printed shared layout: also its swizzle and the text of the part without it."""
    swizzle = _SWIZZLE.match(text)
    numbers = [int(n) for n in swizzle.groups()] if swizzle else PLAIN_SWIZZLE
    plain = layout(text)
    swizzled = {"str": plain.pop("str"), "swizzle": numbers}
    return swizzled | plain | {"nonswizzle": text.split(" o ")[-1]}


def coordinate_tensor(text: str) -> dict[str, Any]:
    """The record of a printed coordinate tensor: `ArithTuple(0,_0) o shape:stride`."""
    offset, _, plain = text.partition(" o ")
    return {"str": text, "offset": values(offset.removeprefix("ArithTuple")), "layout": layout(plain)}


def cpp(text: str) -> str:
    """C++ that makes a printed tuple, layout or tiler.

    >>> cpp("((_4:_1),8)")
    'cute::make_tuple(cute::make_tuple(make_layout(Int<4>{},Int<1>{})),8)'
    """
    return _cpp(_read(text))


def shared_cpp(text: str, swizzle: list[int] | None = None) -> str:
    """C++ that makes a printed shared layout; `swizzle` where the text does not say the layout's.

    >>> shared_cpp("Sw<3,4,3> o smem_ptr[16b](unset) o (_8):(_1)")[:51]
    'composition(Swizzle<3,4,3>{},smem_ptr_flag_bits<16>'
    """
    *outer, plain = text.split(" o ")
    if not outer:
        if swizzle in (None, PLAIN_SWIZZLE):
            return cpp(plain)
        outer = [f"Sw<{','.join(map(str, swizzle or ()))}>", "_0"]
    numbers = _SWIZZLE.match(outer[0])
    flag = re.match(r"smem_ptr\[(\d+)b\]\(unset\)", outer[1])
    if numbers is None or not (flag or outer[1] == "_0"):
        raise ValueError(f"{text!r}: not a shared layout")
    middle = f"smem_ptr_flag_bits<{flag[1]}>{{}}" if flag else "Int<0>{}"
    return f"composition(Swizzle<{','.join(numbers.groups())}>{{}},{middle},{cpp(plain)})"
