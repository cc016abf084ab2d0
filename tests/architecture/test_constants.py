"""A fact of the hardware or the driver has one place: no other module has a constant or a comparison with its number.

The numbers are those of facts that used to be in many places: 5 modes, clusters of 16 CTAs and units of 16 bytes, boxes
of 256 elements, 2**20 transaction bytes, strides of 2**40 bytes. What else happens to be such a number has its reason
here. The emulator has its own copy on purpose: it checks the encoder, and shares no rule with it.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from pathlib import Path

from tests.architecture.sources import source
from tests.architecture.test_layers import PACKAGE

NUMBERS = {5, 16, 256, 1 << 20, 1 << 40}

TABLES = {"cute_py.targets", "cute_py.tma.descriptor.limits", "cute_py.tma.descriptor.fields"}
"""Where the facts are, and `cute_py.tma.emulator` with its own."""

# Room and text -> why it is no fact of a table. A room is the package of the module, however deep.
REASONS: dict[tuple[str, str], str] = {
    ("", "MOST_ITERATED = 1 << 20"): "items of an iterator",
    ("atom", "bits == 16"): "bits of a type",
    ("atom", "values['VS'] == 16"): "elements that share a scale factor",
    ("atom", "step <= n <= 256"): "columns of an MMA instruction",
    ("atom", "swizzle.base != 5"): "bits of a swizzle that a descriptor has a number for",
    ("cli", "MAX_TEXT = 1 << 20"): "characters that a command reads",
    ("cli", "HEAD_BYTES = 1 << 20"): "bytes that are read of a stream to know what it is",
    ("cli", "width <= 16"): "an element of at most one unit of 16 bytes",
    ("copies", "BLOCK = 256"): "elements of a block of a host copy",
    ("copies", "MAX_RANK = 16"): "modes of a copy by threads",
    ("notation", "_MOST_FREE = 16"): "bits of the places that have one element of a layout of Triton",
    ("copies", "PLACE_UNIT = 256"): "bytes within which memory keeps its place",
    ("copies", "WIDEST = 16"): "bytes of one thread's access",
    ("copies", "element < 16"): "an element that numpy has an integer for",
    ("gpu", "MAX_CLASSES = 16"): "classes of tiles",
    ("gpu", "GROUP = 16"): "tiles of a group",
    ("copies", "REALIGNED_ROW = 256"): "bytes that one thread of the realigning kernel holds",
    ("copies", "size < 16"): "the unit of a bulk copy in bytes",
    ("copies", "size == 16"): "the unit of a bulk copy in bytes",
    ("copies", "SPARE_STREAMS = 16"): "streams that are kept",
    ("copies", "MANY = 1 << 20"): "elements that a report compares",
    ("draw", "BOXES = 16"): "boxes of a picture",
    ("draw", "VISITED = 5"): "pixels of a picture",
    ("draw", "MOST_LAYOUTS = 16"): "layouts of a picture",
    ("draw", "UNIT = 16"): "bytes of a cell of a picture",
    ("draw", "MOST_COLUMNS = 16"): "columns of a picture",
    ("draw", "MOST_PAIRS = 1 << 20"): "pairs of a picture",
    ("machine", "HEAP_ALIGNMENT = 16"): "bytes by which malloc aligns",
    ("gpu", "1 <= per_block <= 16"): "tiles of a block",
    ("gpu", "EDGE_THREADS = 256"): "threads of a block",
    ("gpu", "COUNTER_BYTES = 256"): "bytes of a counter, on lines of its own",
    ("gpu", "1 <= stages <= 16"): "stages of a ring",
    ("layout", "MAX_ACCESSES = 1 << 20"): "accesses that are listed",
    ("layout", "_NODES_OF_AN_OPERATION = 5"): "nodes of an expression",
    ("machine", "ANSWER_BYTES = 16"): "bytes of the answer to a request of launch control",
    ("machine", "MAX_REMEMBERED = 256"): "phases of barriers whose wait a time limit ended",
    ("machine", "MAX_TRACE = 1 << 20"): "steps that a trace remembers",
    ("machine", "FUNCTION_BYTES = 16"): "the distance of two functions' addresses",
    ("machine", "FRAME_ALIGN = 16"): "alignment of a frame of local variables",
    ("machine", "MAX_CALLS = 256"): "functions in each other",
    ("machine", "element_width(found.a) == 16"): "bits of a type",
    ("machine", "kind.bits == 16"): "bits of a type",
    ("machine", "kind.bits != 16"): "bits of a type",
    ("machine", "kind.bits > 16"): "bits of a type",
    ("machine", "one.nbytes > 16"): "bytes of a parameter that holds a number",
    ("ptx", "MAX_DEPTH = 256"): "braces in each other",
    ("ptx", "MAX_REGISTERS = 1 << 20"): "registers of a declaration",
    ("ptx", "align > 1 << 20"): "bytes that a variable is aligned to",
    ("tensor", "MAX_CELLS = 1 << 20"): "cells of a printed table",
    ("tma.atom", "UNIT = 16"): "bytes that one lane reads of a core matrix",
    ("tma.descriptor", "_WIDTH = 16"): "columns of a text",
    ("tma.descriptor", "most < 256"): "a number of a text that fits a byte",
    ("tma.descriptor", "count != 16"): "16 numbers of a text, words of 32 or 64 bits",
    ("tma.descriptor", "len(digits) == 16"): "hexadecimal digits of a word",
    ("tma.descriptor", "base == 16"): "the base of a number in a text",
    ("tma.dialect", "granule == 16"): "bytes of one vector load of threads",
    ("tma.gemm", "MAX_STAGES = 16"): "stages of a ring",
    ("gpu", "ROWS_THREADS = 256"): "threads of a CTA",
    ("copies", "KEPT_BITS = 16"): "bits of the elements of a lane",
    ("gpu", "WORD = 16"): "bytes of a vector access of threads",
    ("copies", "FOLDED = 1 << 20"): "bytes of a copy, a threshold",
    ("tmem", "align < 16"): "the alignment of a buffer in bytes",
    ("tmem", "LANE_SHIFT = 16"): "bits below the lane of an address of tensor memory",
    ("atom", "UNIT_BYTES = 16"): "the unit of an offset in a matrix descriptor",
    ("draw", "LINE = 1 << 4"): "scales of a line of a picture",
    ("explanation", "BLOCK_ELEMENTS = 1 << 20"): "elements of a block of Triton",
    ("explanation", "MOST_SCALES = 1 << 20"): "elements that are compared",
    ("explanation", "ROW_BYTES = 16"): "bytes of a row of a block of Triton",
    ("explanation", "block == 16"): "elements of a block with a scale of NVFP4",
    ("tmem", "REFERENCE_LDO = 16"): "a leading offset that the hardware does not read",
}


def number(node: ast.expr) -> int | None:
    """The integer that an expression of literals is, if it is one."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.BinOp):
        left, right = number(node.left), number(node.right)
        if left is None or right is None or not 0 <= right < 100:
            return None
        known = {ast.LShift: int.__lshift__, ast.Mult: int.__mul__, ast.Pow: int.__pow__, ast.Sub: int.__sub__}
        operation = known.get(type(node.op))
        return None if operation is None else operation(left, right)
    return None


def facts(text: str) -> Counter[str]:
    """The constants of a module and the comparisons in it that name one of the numbers, as text."""
    parts = source(text)
    found: Counter[str] = Counter()
    for node in parts.constants_at_top:
        if node.value is not None and number(node.value) in NUMBERS:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            found[f"{ast.unparse(target)} = {ast.unparse(node.value)}"] += 1
    for compare in parts.compares:
        if any(number(side) in NUMBERS for side in (compare.left, *compare.comparators)):
            found[ast.unparse(compare)] += 1
    return found


def room(name: str) -> str:
    """'gpu' of cute_py.gpu.kernels.ring, 'tma.atom' of cute_py.tma.atom.tile_atom."""
    parts = name.split(".")[1:-1]
    return ".".join(parts[: 2 if parts[:1] == ["tma"] else 1])


@functools.cache
def facts_of(root: Path) -> set[tuple[str, str]]:
    found = set()
    for path in sorted(root.rglob("*.py")):
        name = ".".join(path.relative_to(root.parent).with_suffix("").parts)
        if name not in TABLES and room(name) != "tma.emulator":
            found |= {(room(name), text) for text in facts(path.read_text())}
    return found


def test_each_fact_has_one_place() -> None:
    assert facts_of(PACKAGE) - set(REASONS) == set(), "import it from the table, or give a reason here"


def test_no_reason_is_left_over() -> None:
    assert set(REASONS) - facts_of(PACKAGE) == set()
    assert all(REASONS.values())


def test_the_rule_can_fail(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    (package / "gpu").mkdir(parents=True)
    (package / "gpu" / "box.py").write_text(
        "MOST: int = 2**8\nLIMIT = 1 << 40\nOTHER = 255\ndef f(n):\n    return n < 4 or 1 <= n <= 5 or n == 'a'\n"
    )
    assert facts_of(package) == {("gpu", "MOST = 2 ** 8"), ("gpu", "LIMIT = 1 << 40"), ("gpu", "1 <= n <= 5")}


SIZES = {"WARP", "BANKS", "BANK_BYTES", "SECTOR_BYTES", "LINE_BYTES", "MULTIPROCESSORS", "BLOCK_SHARED_BYTES"}
"""Sizes of the hardware, which stand in `targets` alone."""
OTHER_NUMBERS = {"LONGEST_VALUE"}
"""Constants that mean something else: characters of a text."""


def second_sizes(root: Path) -> list[str]:
    """Assignments of a size of the hardware, by its name or as 132 multiprocessors or 227 KiB, outside `targets`."""
    found = []
    for path in sorted(root.rglob("*.py")):
        if path.name == "targets.py":
            continue
        for node in source(path.read_text()).constants:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            named = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
            value = None if node.value is None else number(node.value)
            if (named & SIZES or value in (132, 227 << 10)) and not named & OTHER_NUMBERS:
                found.append(f"{path.relative_to(root)}: {ast.unparse(node)}")
    return found


def test_a_size_of_the_hardware_stands_in_targets() -> None:
    assert second_sizes(PACKAGE) == []


def test_a_second_size_is_found(tmp_path: Path) -> None:
    (tmp_path / "copy.py").write_text("BLOCKS: int = 132\nWARP = 32\nMAX = 227 << 10\nOTHER = 131\n")
    assert second_sizes(tmp_path) == ["copy.py: BLOCKS: int = 132", "copy.py: WARP = 32", "copy.py: MAX = 227 << 10"]
