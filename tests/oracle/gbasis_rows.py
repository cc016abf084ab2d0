"""Build atoms from the recorded inputs of gbasis_cpp, with a reader of printed layouts that is not the library's."""

from __future__ import annotations

import re
from typing import Any

import cute_py as cute
from cute_py import Int, Layout

_TOKEN = re.compile(r"_?-?\d+(?:@\d+)*|[(),:]")


def _tree(tokens: list[str]) -> Any:
    token = tokens.pop(0)
    if token != "(":
        value, *path = token.split("@")
        number: Any = Int(int(value[1:])) if value.startswith("_") else int(value)
        return number * cute.E(*[int(p) for p in reversed(path)]) if path else number
    items = []
    while tokens[0] != ")":
        items.append(_tree(tokens))
        if tokens[0] == ",":
            tokens.pop(0)
    tokens.pop(0)
    return tuple(items)


def tree(text: str) -> Any:
    """`(_128,_64)` -> (Int(128), Int(64))."""
    return _tree(_TOKEN.findall(text))


def tiler(text: str) -> Any:
    """`(_128,_64)`, or a tuple whose elements may be layouts."""
    tokens = _TOKEN.findall(text)

    def element() -> Any:
        if tokens[0] == "(" and _is_tuple_of_layouts(tokens):
            tokens.pop(0)
            items = []
            while tokens[0] != ")":
                items.append(element())
                if tokens[0] == ",":
                    tokens.pop(0)
            tokens.pop(0)
            return tuple(items)
        shape = _tree(tokens)
        if tokens and tokens[0] == ":":
            tokens.pop(0)
            return Layout(shape, _tree(tokens))
        return shape

    return element()


def _is_tuple_of_layouts(tokens: list[str]) -> bool:
    """Does the tuple that starts here close without a ':' after it, and hold one inside?"""
    level = 0
    for i, t in enumerate(tokens):
        level += (t == "(") - (t == ")")
        if level == 0:
            after = tokens[i + 1] if i + 1 < len(tokens) else ""
            return after != ":" and ":" in tokens[:i]
    return False


def layout(text: str) -> Any:
    """`Sw<3,4,3> o smem_ptr[16b](unset) o (...):(...)`, `Sw<..> o _0 o ...`, or a plain layout."""
    parts = text.split(" o ")
    shape, stride = _split(parts[-1])
    plain = Layout(tree(shape), tree(stride))
    if len(parts) == 1:
        return plain
    swizzle = cute.Swizzle(*[int(n) for n in re.findall(r"-?\d+", parts[0])])
    flag = re.match(r"smem_ptr\[(\d+)b\]\(unset\)", parts[1])
    offset = cute.smem_ptr_flag(int(flag[1])) if flag else Int(int(parts[1].lstrip("_")))
    return cute.ComposedLayout(swizzle, offset, plain)


def _split(text: str) -> tuple[str, str]:
    shape, _, stride = text.partition(":")
    return shape, stride


def gmem_tensor(row: dict[str, Any]) -> Any:
    pointer = cute.make_gmem_ptr(row.get("gmem_address", 4096), row["dtype"])
    return cute.make_tensor(pointer, layout(row["gmem"]["str"]))


def atom(row: dict[str, Any], **options: Any) -> Any:
    """The atom of a recorded row."""
    internal = None if row["internal_type"] == row["dtype"] else row["internal_type"]
    return cute.tma.make_tma_atom(
        row["op"],
        gmem_tensor(row),
        layout(row["smem"]["str"]),
        tiler(row["cta_tiler"]),
        row["num_multicast"],
        internal,
        "sm_100a" if row["op"].startswith("SM100") or row["internal_bits"] < 8 else "sm_90a",
        **options,
    )
