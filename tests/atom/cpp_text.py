"""Texts of recordings as values: what CuTe C++ printed, and the C++ expressions that were compiled."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import cute_py as cute
from cute_py import Int, Layout, Swizzle, composition, make_tensor, tile_to_shape
from cute_py.atom import (
    copy_atom,
    make_cotiled_copy,
    make_tiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_C_atom,
    make_tiled_copy_D,
    make_tiled_copy_S,
    make_tiled_mma,
    umma_layout,
)
from cute_py.atom.element_types import element_type

BASE = 0x10000
"""Address of every recorded tensor whose row names no other."""

MAKERS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        make_cotiled_copy,
        make_tiled_copy,
        make_tiled_copy_A,
        make_tiled_copy_B,
        make_tiled_copy_C,
        make_tiled_copy_C_atom,
        make_tiled_copy_D,
        make_tiled_copy_S,
        make_tiled_mma,
    )
}


def tuple_of(text: str) -> Any:
    """`(_4,(8,_))` as (Int(4), (8, None))."""
    position = 0

    def value() -> Any:
        nonlocal position
        if text[position] == "(":
            position += 1
            items = []
            while text[position] != ")":
                items.append(value())
                if text[position] == ",":
                    position += 1
            position += 1
            return tuple(items)
        found = re.compile(r"(_?)(-?\d*)").match(text, position)
        assert found is not None
        position = found.end()
        return None if not found[2] else Int(int(found[2])) if found[1] else int(found[2])

    return value()


def split(text: str, brackets: str = "<>") -> list[str]:
    """The parts between commas that stand in no bracket."""
    parts, depth, begin = [], 0, 0
    for i, char in enumerate(text):
        depth += (char == brackets[0]) - (char == brackets[1])
        if char == "," and depth == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    return [*parts, text[begin:].strip()]


def permutation(text: str | None) -> tuple[Any, ...]:
    """`((_2,_4):(_1,_2),_,_16)` as a tiler."""
    if text is None:
        return (None, None, None)
    parts = split(text[1:-1], "()")
    return tuple(None if p == "_" else cute.parse(p) if ":" in p else tuple_of(p) for p in parts)


def smem_layout(text: str) -> tuple[str, Any]:
    """`tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>, (_64,_64))`: element type and layout."""
    found = re.fullmatch(r"tile_to_shape\((?:GMMA|UMMA)::(\w+)<([^>]*)>, (\(.*?\))(?:, (\(.*\)))?\)", text)
    assert found is not None
    order = (tuple_of(found[4]),) if found[4] else ()
    return found[2], tile_to_shape(umma_layout(found[1], found[2]), tuple_of(found[3]), *order)


def tensor(space: str, dtype: str, layout: str, address: int = BASE) -> Any:
    """A recorded tensor: a printed layout, `composition(Sw<..>, layout)`, or `tile_to_shape(...)`."""
    pointer = {"gmem": cute.make_gmem_ptr, "smem": cute.make_smem_ptr}[space]
    swizzled = re.fullmatch(r"composition\(Sw<(\d+),(\d+),(\d+)>, (.*)\)", layout)
    if layout.startswith("tile_to_shape"):
        _, found = smem_layout(layout)
    elif swizzled:
        found = composition(Swizzle(*map(int, swizzled.groups()[:3])), cute.parse(swizzled[4]))
    else:
        found = cute.parse(layout)
    return make_tensor(pointer(address, element_type(dtype)), found)


def layout_type(text: str) -> Layout:
    """`<Shape<Int<2>,_4>,Stride<Int<1>,_2>>`: the arguments of C++'s Layout."""

    def tree(part: str) -> Any:
        number = re.fullmatch(r"(?:Int<(-?\d+)>|_(\d+))", part)
        if number:
            return Int(int(number[1] or number[2]))
        found = re.fullmatch(r"(?:Shape|Stride)<(.*)>", part)
        assert found is not None, part
        return tuple(tree(p) for p in split(found[1]))

    return Layout(*[tree(p) for p in split(text.strip()[1:-1])])


def evaluate(expression: str) -> Any:
    """A C++ expression of makers, atoms, layouts and integers."""
    position = 0

    def template() -> str:
        nonlocal position
        begin, depth = position, 0
        while True:
            depth += (expression[position] == "<") - (expression[position] == ">")
            position += 1
            if depth == 0:
                return expression[begin:position]

    def value() -> Any:
        nonlocal position
        while expression[position] in " ,":
            position += 1
        found = re.compile(r"[\w:]+").match(expression, position)
        assert found is not None, expression[position:]
        name, position = found[0], found.end()
        arguments = template() if expression[position : position + 1] == "<" else ""
        if expression[position : position + 2] == "{}":
            position += 2
        elif expression[position : position + 1] == "(":
            position += 1
            operands = []
            while expression[position] != ")":
                operands.append(value())
            position += 1
            return tuple(operands) if name == "make_tile" else MAKERS[name](*operands)
        match name:
            case "_":
                return None
            case "Int":
                return Int(int(arguments[1:-1]))
            case "Layout":
                return layout_type(arguments)
            case "Copy_Atom":
                return copy_atom(f"Copy_Atom{arguments}")
        return name + arguments

    return value()
