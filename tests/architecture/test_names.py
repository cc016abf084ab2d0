"""One name means one thing: no two modules define a class or a public function of one name.

Where they do, `REASONS` has both meanings: the same thing of two kinds of object, a name that C++, PTX or the reference
pages give, or a helper that its module alone reads. Several definitions in one module (overloads) are one.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import cute_py

ROOT = Path(cute_py.__file__).parent

REASONS: dict[str, str] = {
    "BitField": "a run of bits of a tensor map; of a 64-bit matrix descriptor, in its module alone",
    "Event": "of a register's contents; of a timeline",
    "Major": "of an operand of an MMA; the order of strides that are left out",
    "Side": "one operand of a copy; one mesh and its files; the source or destination of a plan of tcgen05.cp",
    "Tile": "what a block of threads moves; what one tcgen05.cp moves",
    "answer": "of the explorer; of a pasted text",
    "architecture": "the row of an architecture: of what an assembler takes; of what a tensor map may have",
    "byte_swizzle": "a swizzle of elements, on bytes; that of a tensor map",
    "candidates": "what is tried: settings of a kernel; forms of tcgen05.cp",
    "ceil_div": "C++'s; on plain integers of a plan",
    "check_copy": "of executable operands of the reference pages; of a copy to tensor memory",
    "compact_order": "C++'s, over shapes; over arithmetic tuples",
    "copy": "through an atom; between any two layouts",
    "coordinates": "where a layout has given offsets; the explanation of a tensor of coordinates",
    "filled": "a label and a text, in lines; a profile with items",
    "im2col_offsets": "as text of a stage; as numbers of an instruction",
    "is_static": "C++'s, of a tuple; of one leaf",
    "leaf_text": "as C++ prints; as MLIR prints",
    "merged": "modes of a copy that continue each other; with their strides on two devices",
    "names_of": "the public names of a package; those of the values of a stage",
    "offset_bounds": "of modes; of a layout",
    "prepare": "of a redistribution, by who runs it",
    "product_like": "C++'s, over shapes; over arithmetic tuples",
    "refuse": "raise what a check found; the same, with the texts of the reference pages",
    "register": "of every command of the shell, and of the notebook",
    "replace": "C++'s, of a mode; PTX's tensormap.replace, of a field",
    "request_of": "of the options of a command; of whatever has a tensor map",
    "run": "every command of the shell; a plan of tcgen05.cp",
    "shape_of": "of a layout or tensor; of an array that shards give",
    "shared_bytes": "of a launch with one tile; of the buffer of a copy to tensor memory",
    "shortened": "a text without its middle; without its end",
    "size": "C++'s; of iterations of tensor memory",
    "static_layout": "a layout of numbers as a static one; whether the operand of a partition is one",
    "swizzled": "whether an operand is; an address of a matrix descriptor",
    "swizzles": "those of a search; those of random tests",
    "tree_text": "as C++ prints; as MLIR prints",
    "type_text": "an element type as C++ prints; as MLIR prints",
    "why_not": "the earlier form of two checks, for one release",
}
"""Name -> what it means in each of the modules that define it."""


def definitions(source: str) -> set[str]:
    """The classes and public functions that a module defines."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = {node.name for node in ast.parse(source).body if isinstance(node, kinds)}
    return {name for name in found if not name.startswith("_")}


def homes() -> dict[str, set[str]]:
    """Name -> the modules that define it."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in ROOT.rglob("*.py"):
        for name in definitions(path.read_text()):
            found[name].add(str(path.relative_to(ROOT)))
    return found


def test_overloads_are_one_definition_and_private_names_are_none() -> None:
    assert definitions("class A: ...\ndef f(): ...\ndef f(): ...\ndef _g(): ...\nclass _B: ...\nx = 1") == {"A", "f"}


def test_a_name_has_one_home_or_a_reason() -> None:
    second = {name: sorted(places) for name, places in homes().items() if len(places) > 1 and name not in REASONS}
    assert not second


def test_every_reason_is_of_a_name_that_there_is() -> None:
    assert set(REASONS) <= set(homes())
