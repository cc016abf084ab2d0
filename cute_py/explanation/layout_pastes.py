"""Read printed layouts and tensors in pasted text, in the notations of CuTe C++, CuTe DSL, MLIR, Python and PyTorch.

`parse` reads the text line by line, so notes and labels between the printed objects are ignored. The notations of other
programs are converted first. Each reading lists the facts that users ask about: sizes, threads, bytes, the hardware
swizzle, and elements that share an offset.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from cute_py.arith_tuple.arith_tuple import ScaledBasis
from cute_py.diagnostics import Diagnostic
from cute_py.errors import CuteError, StaticAssertError, counted, shortened, unless_refused
from cute_py.explanation.compositions import LAYOUT_ATOM, source_layout
from cute_py.explanation.layouts import facts_of_layout, is_basis_layout
from cute_py.explanation.readings import TYPE_NAME, Reading, condition_id, some, type_bits, without
from cute_py.explanation.rows.lost_functions import (
    Print,
    has_operand,
    lost_function,
    lost_reading,
    lost_swizzles,
    operand_reading,
)
from cute_py.layout.analysis import is_injective
from cute_py.layout.arguments import Leaf
from cute_py.layout.coalesce import coalesce
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import product_each, rank, size
from cute_py.layout.layout import Layout, cosize, domain_of, has_numbers
from cute_py.layout.recast import SmemPtrFlag
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves
from cute_py.notation.argument_lists import matching_bracket, split_operands
from cute_py.notation.parse import Parsed, address_notes, parse
from cute_py.tensor.pointers import Pointer, TmemPointer
from cute_py.tensor.tensor import Tensor
from cute_py.tma.descriptor.limits import bounds

MOST_LINES: Final = 400
"""Largest number of lines of a text that are read one by one."""
LONGEST: Final = 2000
"""Longest line, in characters, that may be a printed layout."""
MOST_ELEMENTS: Final = 1 << 22
"""Maximum number of elements of a layout whose offsets are counted."""
_PLACE: Final = re.compile(r"[0-9]+:[0-9]+")
_AT_PLACE: Final = re.compile(r"(?:\bat|\bline|[\w\]]:)\s{0,80}$")
"""Matches the text before the line and column of a file."""
_COLON: Final = re.compile(r"[^\s:]:[^\s:]|\bo\b|Sw<|S<|ptr\[|ptr<|@")
_LABEL: Final = re.compile(
    r"^[%\s]{0,9}(?:[A-Za-z_][\w .\-/<>,\[\]]{0,60}?(?:\s{0,9}[:=]\s+|\s{0,9}=\s{0,9}|\s+:\s{0,9}))"
)
_SIZE: Final = re.compile(r"\bsize\s{0,80}[=:]\s{0,80}([0-9]{1,18})\b")


def known_number(value: Parsed | Leaf | None) -> int | None:
    """A parsed value as an int, if it is a known integer; otherwise None."""
    return int(value) if isinstance(value, int) else None


def layout_facts(layout: Layout, whole: ComposedLayout | None = None) -> list[str]:
    """Facts about a plain layout: its size, its offsets, shared offsets, gaps, and the coalesced form; for a layout of
    coordinates, only its sizes.

    whole: the layout that contains this one and determines the offsets.
    """
    if not has_numbers(layout) or is_basis_layout(layout):
        sizes = [known_number(n) for n in leaves(layout.shape)]
        count = math.prod(n for n in sizes if n is not None) if None not in sizes else None
        each = [str(int(n)) for n in product_each(layout.shape)] if count is not None else []
        unknown = "sizes unknown, because the text does not contain them"
        shown = f"{count} coordinates, {' x '.join(each)}" if count is not None else unknown
        return [f"  a layout whose values are coordinates: {shown}"] if is_basis_layout(layout) else [f"  {shown}"]
    count = int(size(layout))
    sizes_text = " x ".join(str(int(n)) for n in product_each(layout.shape)) if int(rank(layout)) else "1"
    lines = [f"  {counted(count, 'element')}, {sizes_text}, cosize {int(cosize(layout))}"]
    if 0 < count <= MOST_ELEMENTS:
        lines += [f"  {line.strip()}" for line in facts_of_layout(whole or layout)[1:3]]
    simple = unless_refused(coalesce, layout)
    return lines if simple is None or str(simple) == str(layout) else [*lines, f"  coalesced: {simple}"]


def swizzle_facts(swizzle: Swizzle, bits: int | None, on_bytes: bool) -> list[str]:
    """Lines that name the hardware swizzle of a swizzle function: 32, 64 or 128 bytes. If the function acts on element
    offsets, the lines also give the element width that makes the two equal."""
    if not swizzle.bits:
        return ["  no swizzle: the function is the identity"]
    if not on_bytes:
        width = 1 << max(0, 4 - swizzle.base)
        if swizzle.shift != 3 or swizzle.bits > 3 or swizzle.base > 4:
            return [f"  {swizzle} on elements is not a swizzle of TMA or wgmma for any element width"]
        span = 16 << swizzle.bits
        byte_form = f"Sw<{swizzle.bits},4,3>"
        if bits in (8, 16, 32, 64) and bits != 8 * width:
            scale = (bits // 8).bit_length() - 1
            on_bytes_form = Swizzle(swizzle.bits, swizzle.base + scale, 3)
            meant = Swizzle(swizzle.bits, 4 - scale, 3)
            return [
                f"  {swizzle} on elements of {bits} bits is {on_bytes_form} on bytes, which is not a swizzle of TMA "
                f"or wgmma",
                f"  the {span}B swizzle, {byte_form} on bytes, is {meant} on these elements",
            ]
        return [f"  {swizzle} on elements of {8 * width} bits is the {span}B swizzle, {byte_form} on bytes"]
    if (swizzle.base, swizzle.shift) != (4, 3) or swizzle.bits > 3:
        return [f"  {swizzle} on bytes is not a swizzle of TMA or wgmma (Sw<1|2|3,4,3>)"]
    span = 16 << swizzle.bits
    lines = [f"  {swizzle} on bytes is the {span}B swizzle of TMA, wgmma and tcgen05; align to {8 * span} bytes"]
    if bits and bits in (8, 16, 32, 64):
        elements = Swizzle(swizzle.bits, 4 - (bits // 8).bit_length() + 1, 3)
        lines.append(
            f"  on elements of {bits} bits the same function is {elements}; a row of the atom is {span * 8 // bits}"
        )
    return lines


def composed_facts(layout: ComposedLayout, width: int | None = None, of_dsl: bool = False) -> list[str]:
    """Describe a swizzled layout: the name of the swizzle, the major mode, and the size in bytes.

    width: bits of an element, if a pointer gives them. of_dsl: whether CuTe DSL printed the tensor. CuTe DSL prints the
    swizzle on bytes, and C++ prints it on element offsets.
    """
    inner = domain_of(layout)
    lines = layout_facts(inner, layout)
    if not isinstance(layout.outer, Swizzle):
        return lines
    flagged = isinstance(layout.offset, SmemPtrFlag)
    on_bytes = flagged or (of_dsl and width is not None and (layout.outer.base, layout.outer.shift) == (4, 3))
    bits = layout.offset.bits if isinstance(layout.offset, SmemPtrFlag) else width
    lines = [*swizzle_facts(layout.outer, bits, on_bytes), *lines]
    return [*lines, *_tile_facts(inner, bits)]


def _tile_facts(inner: Layout, bits: int | None) -> list[str]:
    """Lines with the major mode and the bytes of a tile in shared memory."""
    if not has_numbers(inner) or int(rank(inner)) < 2:
        return []
    first, second = (int(n) for n in product_each(inner.shape)[:2])
    shape, stride = inner.shape, inner.stride
    if not isinstance(shape, tuple) or not isinstance(stride, tuple):
        return []
    steps = [leaves(mode) for mode in stride[:2]]
    unit = [i for i, mode in enumerate(steps) if 1 in [known_number(d) for d in mode]]
    lines = [_major(unit[0], leaves(shape[unit[0]]), steps[unit[0]]) if len(unit) == 1 else ""]
    if bits:
        lines.append(f"  {first} x {second} of {bits} bits, {int(size(inner)) * bits // 8} bytes in all")
        further = [int(n) for n in product_each(inner.shape)[2:]]
        if further:
            one = first * second * bits // 8
            lines.append(f"  {math.prod(further)} of them along the other modes, {one} bytes each (stages, or tiles)")
    return [line for line in lines if line]


def _major(mode: int, sizes: Sequence[Leaf], strides: Sequence[Leaf]) -> str:
    """A line that names the major mode of a tile. Mode 0 of a tensor that an MMA partitions is (M, K): if the stride 1
    is not that of its first part, the line names the part only."""
    part = next(i for i, d in enumerate(strides) if known_number(d) == 1)
    if any(known_number(n) != 1 for n in sizes[:part]):
        return f"  mode {mode}.{part} is contiguous"
    return f"  {('MN', 'K')[mode]}-major: mode {mode} is contiguous"


def facts_of(thing: Parsed, of_dsl: bool = False) -> list[str]:
    """Lines with facts about a parsed object. of_dsl: whether CuTe DSL printed it."""
    if isinstance(thing, Layout):
        return layout_facts(thing)
    if isinstance(thing, ComposedLayout):
        return composed_facts(thing)
    if isinstance(thing, Tensor):
        return _tensor_facts(thing, of_dsl)
    if isinstance(thing, Swizzle):
        return swizzle_facts(thing, None, (thing.base, thing.shift) == (4, 3))
    if isinstance(thing, ScaledBasis):
        return [f"  a step of {thing.value} along mode {'.'.join(map(str, thing.modes))} of a coordinate"]
    return []


def _tensor_facts(tensor: Tensor, of_dsl: bool) -> list[str]:
    engine = tensor.engine
    if isinstance(engine, TmemPointer):
        return _tmem_facts(tensor, engine)
    if not isinstance(engine, Pointer):
        start = f"  a tensor of coordinates or numbers that no memory stores; it starts at {engine}"
        return [start, *layout_facts(domain_of(tensor.layout))]
    bits = engine.element_type.bits
    place = {"gmem": "global memory", "smem": "shared memory"}.get(engine.space, "memory space unknown")
    address = f" at {engine.address:#x}" if engine.address else ""
    lines = [f"  {place}{address}, elements of {bits} bits"]
    swizzle = getattr(engine, "swizzle", None)
    if isinstance(tensor.layout, ComposedLayout):
        return [*lines, *composed_facts(tensor.layout, bits, of_dsl)]
    if isinstance(swizzle, Swizzle):
        lines += swizzle_facts(swizzle, bits, True)
    inner = domain_of(tensor.layout)
    lines += layout_facts(inner)
    lines += _tile_facts(inner, bits) if engine.space == "smem" or swizzle else []
    modes = product_each(inner.shape) if has_numbers(inner) else ()
    if len(modes) > 1:
        lines.append(f"  by mode: {', '.join(f'{int(n)} along mode {i}' for i, n in enumerate(modes))}")
        steps = inner.stride if isinstance(inner.stride, tuple) else ()
        moved = [(i, d) for i, d in enumerate(steps) if isinstance(d, int) and int(d) > 0 and int(modes[i]) > 1]
        lines += [f"  a step in mode {i} moves {counted(int(d), 'element')}, {_bytes(int(d) * bits)}" for i, d in moved]
    return lines


def _bytes(bits: int) -> str:
    return counted(bits // 8, "byte") if bits % 8 == 0 else counted(bits, "bit")


def _tmem_facts(tensor: Tensor, engine: TmemPointer) -> list[str]:
    """Lines with the lanes and columns of a tensor in tensor memory, where an offset of 1 << 16 words is one lane."""
    inner = domain_of(tensor.layout)
    bits = engine.element_type.bits
    lane, column = engine.address >> 16 & 0xFFF, engine.address & 0xFFFF
    lines = [f"  tensor memory, elements of {bits} bits, from lane {lane} and column {column} on: {engine}"]
    if not has_numbers(inner):
        return lines
    unit = (1 << 16) * 32 // bits
    reached = [(int(n), int(d)) for n, d in zip(leaves(inner.shape), leaves(inner.stride), strict=True)]
    lanes = 1 + sum((n - 1) * (d // unit) for n, d in reached)
    columns = 1 + sum((n - 1) * (d % unit) for n, d in reached) * bits // 32
    sizes = " x ".join(str(int(n)) for n in product_each(inner.shape))
    return [
        *lines,
        f"  {counted(int(size(inner)), 'element')}, {sizes}: {counted(lanes, 'lane')}, {counted(columns, 'column')} of "
        "32 bits",
        f"  a stride of {unit} is one lane, a stride of 1 is {bits} bits further in the same lane",
    ]


# ---- printed texts, line by line -----------------------------------------------------------------------------------


def read_printed(text: str) -> list[Reading]:
    """Read every layout and tensor in `text` that CuTe printed."""
    found: list[Reading] = []
    position = 0
    prints: list[Print] = []
    for line in text.split("\n")[:MOST_LINES]:
        begin, position = position, position + len(line) + 1
        if len(line) > LONGEST:
            continue
        read = 0
        while len(prints) < MOST_LINES and (one := _printed_line(line, begin, read)) is not None:
            if isinstance(one, Reading):
                found.append(one)
                break
            prints.append(one)
            read = one[1] - begin
    for i, (begin, end, thing, label) in enumerate(prints):
        after = prints[i + 1][0] if i + 1 < len(prints) else len(text)
        found.append(_reading(text, begin, end, after, thing, label))
    return [*found, *lost_swizzles(prints)]


_POINTER_TYPE: Final = re.compile(r"(?:ptr|mem_)\[[0-9]{1,3}b\]\Z")
"""Matches the type of a pointer, before its address."""


def _printed_line(line: str, begin: int, read: int) -> Print | Reading | None:
    """The longest suffix of a line that `parse` reads as a layout or a tensor, or else a part that is one; `read`: the
    characters of the line that were read already. A reading if that would lose a swizzle."""
    if not _COLON.search(line, read) and not re.match(r"^\s*\(.*\)\s*$", line[read:]):
        return None
    for start in _starts(line):
        if start < read or _POINTER_TYPE.search(line, max(0, start - 9), start):
            continue
        body = line[start:].strip().rstrip(":;,.").strip().strip("\"'`")
        for piece in (
            body,
            body.split("  ")[0],
            re.split(r"\)\s{1,80}(?!o\s)", body)[0] + ")" if ") " in body else body,
            _leading_layout(line, start),
        ):
            thing = _parsed(piece)
            if thing is not None and not (_PLACE.fullmatch(piece) and _AT_PLACE.search(line[:start])):
                if (lost := lost_function(line, start)) is not None:
                    return lost_reading(line, lost, begin)
                at = begin + line.find(piece, start)
                if has_operand(line, at - begin + len(piece)):
                    return operand_reading(line, at - begin, begin)
                return at, at + len(piece), thing, _label_of(line[read:start], bool(read))
    return None


def _label_of(before: str, named: bool) -> str:
    """The label of a print, from the text before it.

    named: whether the line has an earlier print; only a name is then a label.
    """
    if not named:
        label = before.strip(" \t%#/<!-`").rstrip(":=").strip()
        return label if re.search("[A-Za-z]", label) else ""
    name = re.search(r"([A-Za-z_]\w{0,80})\s{0,9}[:=]\s{0,9}$", before)
    return name[1] if name else ""


_FUNCTIONS: Final = re.compile(r"(?:[^\s()]{1,60}(?:\([^()]{0,60}\))? o ){0,3}(?=\()")
"""Matches the pointer, the swizzle and the offset before the layout of a tensor."""
_STEP: Final = re.compile(r"_?[0-9]{1,18}(?:@[0-9]{1,3})*")


def _leading_layout(line: str, start: int) -> str:
    """Return the layout that starts at this position, with its pointer or swizzle; '' if no layout starts here.

    Other text may follow it.
    """
    functions = _FUNCTIONS.match(line, start)
    if functions is None or line[:start].endswith(" o "):
        return ""
    colon = matching_bracket(line, functions.end() + 1, LONGEST) + 1
    if line[colon : colon + 1] != ":":
        return ""
    if line[colon + 1 : colon + 2] == "(":
        end = matching_bracket(line, colon + 2, LONGEST) + 1
    else:
        step = _STEP.match(line, colon + 1)
        end = step.end() if step else start
    return line[start:end]


def _starts(line: str) -> Iterator[int]:
    """The positions where a printed object may begin in a line: at the start, after a label, at a bracket or an
    engine."""
    yield 0
    if label := _LABEL.match(line):
        yield label.end()
    for match in some(
        re.finditer(
            r"(?<![\w<(@,])(?:\(|Sw<|S<|(?:gmem_|smem_|sub)?ptr[\[<]|ArithTuple\(|tmem_\[|counting_iter|_?[0-9]{1,100}:)",
            line,
        ),
        8,
    ):
        yield match.start()


def _parsed(text: str) -> Layout | ComposedLayout | Tensor | Swizzle | None:
    """Parse a string that is a layout, a tensor or a swizzle; None for a bare number, name or tuple."""
    if not text or len(text) > LONGEST or not re.search(r"[:<@]", text):
        return None
    thing = unless_refused(parse, text)
    if isinstance(thing, Layout) and not all(isinstance(n, int) or hasattr(n, "modes") for n in leaves(thing.stride)):
        return thing if re.fullmatch(r"[\w(),:@?+* ]+", text) and "(" in text else None
    return thing if isinstance(thing, (Layout, ComposedLayout, Tensor, Swizzle)) else None


def _reading(text: str, begin: int, end: int, after: int, thing: Parsed, label: str) -> Reading:
    kinds = {Layout: "A layout", ComposedLayout: "A swizzled layout", Tensor: "A tensor", Swizzle: "A swizzle"}
    kind = next((name for made, name in kinds.items() if isinstance(thing, made)), "A value")
    named = f" ({label})" if label and len(label) < 60 else ""
    lines = facts_of(thing)
    lines += address_notes(text[begin:end])
    if "DescriptorIterator" in label:
        lines.insert(
            0, "  descriptors of shared memory, one for each tile of the operation; strides in units of 16 bytes"
        )
        if isinstance(thing, Layout) and isinstance(thing.stride, tuple):
            steps = [(i, known_number(d)) for i, d in enumerate(thing.stride) if not isinstance(d, tuple)]
            lines += [f"  a step in mode {i} is {16 * d} bytes" for i, d in steps if d]
    broken: list[Diagnostic] = []
    if isinstance(thing, ComposedLayout) and isinstance(thing.offset, SmemPtrFlag):
        from cute_py.tma.atom.tile_atom import check_units

        broken += check_units(thing, thing.offset.bits)
    rest = text[end:after]
    values = _values(rest, thing)
    lines += [f"  {line}" for line in values]
    if stated := _SIZE.search(rest[:200]):
        held = thing.layout if isinstance(thing, Tensor) else thing
        if isinstance(held, Layout) and has_numbers(layout := held):
            same = "as" if int(size(layout)) == int(stated[1]) else "not as"
            lines.append(f"  size {int(size(layout))}, {same} the text says")
            if 0 < int(size(layout)) <= MOST_ELEMENTS and 0 not in leaves(layout.stride) and not is_injective(layout):
                lines.append(
                    "  elements share offsets although no stride is 0. If this layout is the result of a divide, the "
                    "tiler does not divide the layout (CuTe does not check this for run-time sizes), and the result "
                    "includes offsets outside the layout"
                )
    if values:
        end = after
    return Reading(f"{kind}{named}: {thing}", begin, end, [line.strip() for line in lines], broken)


def _values(rest: str, thing: Parsed) -> list[str]:
    """Describe the values that print_tensor or print_layout printed below the layout."""
    rows: list[list[str]] = []
    planes = 1
    if grid := [m[1] for line in rest.split("\n")[1:MOST_LINES] if (m := _GRID.match(line))]:
        first = ", ".join(cell.strip() for cell in grid[0].split("|")[:4])
        columns = grid[0].count("|") + 1
        return [f"print_layout shows its offsets: {counted(len(grid), 'row')} of {columns}, the first begins {first}"]
    for line in rest.split("\n")[1:MOST_LINES]:
        cells = line.split()
        if rows and _NEXT_PLANE.fullmatch(line):
            planes += 1
            continue
        if not cells or not all(
            re.fullmatch(r"[-+]?(?:[0-9.]+(?:e[-+]?[0-9]+)?|inf|nan|\([^()]*\))", c, re.IGNORECASE) for c in cells
        ):
            if rows:
                break
            continue
        rows.append(cells)
    if not rows or not isinstance(thing, (Tensor, Layout)):
        return []
    numbers = [float(c) for row in rows for c in row if not c.startswith("(") and _is_float(c)]
    parts = f"{planes} planes of " if planes > 1 else ""
    lines = [f"its values follow: {parts}{counted(len(rows) // planes, 'row')} of {len(rows[0])}"]
    if numbers:
        first = ", ".join(f"{float(c):g}" if _is_float(c) else c for c in rows[0][:4])
        lines.append(f"from {min(numbers):g} to {max(numbers):g}; the first row begins {first}")
    return lines


_NEXT_PLANE: Final = re.compile(r"(?:-{5}|={5})+")
"""Separators that print_tensor writes between the planes of three modes and the blocks of four."""
_GRID: Final = re.compile(r"^\s*[0-9]+\s*\|((?:[^|\n]{1,24}\|)*[^|\n]{1,24})\|\s*$")
"""Matches a row of print_layout: its index, then the offsets between bars."""


def _is_float(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


# ---- spellings of other programs -----------------------------------------------------------------------------------

_UNKNOWN: Final = re.compile(r"\?(?:\{[^{}]{0,400}\})?")
_CALL: Final = re.compile(r"\b(?:cute\.)?(?:make_l|L)ayout\s{0,9}\(\s{0,9}(?=[(0-9_])")
_NUMBERS: Final = r"[\[(][-0-9, ]{1,80}[\])]"
_TORCH: Final = re.compile(
    r"(?:torch\.Size\(|\b(?:shape|sizes?)\b\"?(?:\(\))?\s{0,9}[=:]?\s{0,9}(?:torch\.Size\()?)\s{0,9}"
    rf"(?P<shape>{_NUMBERS})(?!\s{{0,9}}=)(?P<between>[^\[(]{{0,60}}?(?:\bstrides?\b\"?(?:\(\))?\s{{0,9}}[=:]?\s{{0,9}}|[,;]\s{{0,9}}|"
    rf"\n\s{{0,9}}|\)\s{{1,9}}|torch\.\w{{1,20}}\s{{1,9}}))(?P<stride>{_NUMBERS})(?!\s{{0,9}}=)"
)
_PAIR: Final = re.compile(
    r"^\s{0,9}\(?\s{0,9}(?P<shape>[\[(][0-9, ]{1,80}[\])])\s{0,9}[,;]\s{0,9}(?P<stride>[\[(][-0-9, "
    r"]{1,80}[\])])\s{0,9}\)?\s{0,9}$"
)
_TILE: Final = re.compile(r"(?<![\w.])([1-9][0-9]{0,6}(?:x[1-9][0-9]{0,6}){1,4})(?![\w.])")


def read_spelled(text: str) -> list[Reading]:
    """Read every layout in the notations of source code and PyTorch."""
    found = [*_layout_calls(text), *_torch(text)]
    return found or [*_tile_sizes(text)]


def with_symbols(text: str) -> str:
    """Replace each `?` in a type by a new symbol: n0, n1, ..."""
    names = itertools.count()
    return _UNKNOWN.sub(lambda _: f"n{next(names)}", text)


_COMPOSED_CALL: Final = re.compile(r"\b(?:cute(?:\.|::))?make_composed_layout\s{0,9}\(")
_SWIZZLE_CALL: Final = re.compile(
    r"(?:cute\.)?(?:make_swizzle\s{0,9}\(|Swizzle\s{0,9}[<(])\s{0,9}([0-9]{1,3}),\s{0,9}([0-9]{1,3}),\s{0,9}(-?[0-9]{1,3})\s{0,9}[)>]"
)


def _composed_calls(text: str) -> Iterator[Reading]:
    """Read calls of make_composed_layout whose swizzle, offset and layout are written in the call."""
    for match in some(_COMPOSED_CALL.finditer(text), 16):
        end = matching_bracket(text, match.end(), LONGEST) + 1
        operands = [re.sub(r"^\w{1,40}\s{0,9}=\s{0,9}", "", one) for one in split_operands(text[match.end() : end - 1])]
        swizzle = _SWIZZLE_CALL.match(operands[0])
        layout = next((one for one in _plain_calls(operands[2])), None) if len(operands) > 2 and swizzle else None
        offset = operands[1] if len(operands) > 1 and operands[1].isdecimal() else None
        if swizzle is None or layout is None or offset is None:
            continue
        thing = unless_refused(parse, f"Sw<{','.join(swizzle.groups())}> o {offset} o {layout[2]}")
        if isinstance(thing, ComposedLayout):
            lines = [line.strip() for line in facts_of(thing)]
            yield Reading(f"A swizzled layout: {thing}", match.start(), end, lines)


def _layout_calls(text: str) -> Iterator[Reading]:
    whole = [*_composed_calls(text)]
    yield from whole
    for begin, end, thing in _plain_calls(text):
        if not any(one.begin <= begin < one.end for one in whole):
            yield Reading(f"A layout: {thing}", begin, end, tuple(line.strip() for line in facts_of(thing)))


def _plain_calls(text: str) -> Iterator[tuple[int, int, Layout]]:
    """(begin, end, layout) of each call of make_layout."""
    for match in some(_CALL.finditer(text)):
        end = matching_bracket(text, match.end(), LONGEST) + 1
        body = text[match.end() : end - 1].replace("[", "(").replace("]", ")")
        thing = unless_refused(parse, f"make_layout({body})")
        if isinstance(thing, Layout):
            yield match.start(), end, thing


def _ints(text: str) -> tuple[int, ...]:
    return tuple(int(n[:40]) for n in re.findall(r"-?[0-9]+", text))


def _torch(text: str) -> Iterator[Reading]:
    matches = some(_TORCH.finditer(text)) or [m for m in [_PAIR.match(text)] if m is not None]
    for match in matches:
        shape, stride = _ints(match["shape"]), _ints(match["stride"])
        if len(shape) != len(stride) or not shape:
            continue
        try:
            layout = Layout(shape, stride)
            lines = [f"as CuTe writes it: {layout}", *(line.strip() for line in layout_facts(layout))]
        except CuteError as error:
            yield Reading(
                "Shape and stride of an array", *match.span(), broken=(Diagnostic("layout", text=error.headline),)
            )
            continue
        named = TYPE_NAME.search(text)
        found = array_reading(match.span(), shape, stride, lines, named[1] if named else "")
        of_map = re.match(r"\s{0,9},?\s{0,9}block_shape", text[match.end() : match.end() + 40])  # its box matters too
        yield replace(found, judged=False) if of_map else found


def array_reading(
    span: tuple[int, int], shape: tuple[int, ...], stride: tuple[int, ...], lines: list[str], dtype: str
) -> Reading:
    """Explain whether TMA can copy an array of this shape and stride, and if not, what to pad."""
    from cute_py.explanation.offers import array_rules, copies_dense, copies_padded

    broken: list[Diagnostic] = []
    changes: list[str] = []
    advice: list[str] = []
    offered: list[str] = []
    judged = False
    order = sorted((i for i in range(len(shape)) if shape[i] != 1), key=lambda i: (not stride[i], abs(stride[i])))
    dense = all(stride[i] == math.prod(shape[i + 1 :]) for i in range(len(shape)) if shape[i] != 1)
    lines.append("row-major and dense: contiguous in PyTorch's sense" if dense else "not contiguous in PyTorch's sense")
    if order and stride[order[0]] != 1:
        text = f"no mode has stride 1 (the smallest stride is {stride[order[0]]} elements); TMA needs a contiguous mode"
        broken.append(Diagnostic("contiguous mode", "stride", stride[order[0]], "elements", text=text))
        sound = bool(dtype) and copies_dense(shape, type_bits(dtype))
        (changes if sound else advice).append("copy it once: x.contiguous()")
    elif order:
        lines.append(f"mode {order[0]} is contiguous; TMA's modes, innermost first: {', '.join(map(str, order))}")
    for bits in (type_bits(dtype),) if dtype else ():
        unit = max(1, 128 // bits)
        for i in order[1:]:
            if stride[i] * bits % 128:
                detail = f"mode {i}: {stride[i]} elements x {bits} bits"
                argument, must = "global stride", "be a multiple of 16"
                broken.append(
                    Diagnostic("stride_alignment", argument, stride[i] * bits // 8, "bytes", must, detail=detail)
                )
                padded = -(-stride[i] // unit) * unit
                offered.append(f"pad mode {i}: stride {stride[i]} -> {padded} elements ({padded * bits // 8} bytes)")
        sizes, steps = [shape[i] for i in order], [stride[i] for i in order[1:]]
        if offered and stride[order[0]] == 1 and copies_padded(sizes, steps, bits):
            changes += offered
        judged = (rules := array_rules(sizes, steps, bits)) is not None
        broken += rules or []
    if not dtype:
        need = [f"{bits} bits: a multiple of {128 // bits}" for bits in (8, 16, 32)]
        lines.append(
            "TMA needs each stride other than 1 to be a multiple of 16 bytes, which is this many elements: "
            f"{', '.join(need)}"
        )
        odd = [stride[i] for i in order[1:] if stride[i] % 4]
        lines += [f"stride {n} is not a multiple of 16 bytes for any type of 32 bits or less" for n in odd]
    missing = () if dtype else ("the element type",)
    head = f"Shape and stride of an array of {dtype}" if dtype else "Shape and stride of an array, as in PyTorch"
    kept = Reading(head, *span, lines, broken, changes, missing, advice=advice)
    return replace(kept, elsewhere="TMA can copy it.", judged=judged)


def _tile_sizes(text: str) -> Iterator[Reading]:
    """Read `128x64` as the sizes of a tile."""
    match = _TILE.fullmatch(text.strip())
    if match is None:
        return
    from cute_py.tma.atom.smem_layout import smem_choices

    sizes = [int(n) for n in match[1].split("x")]
    tiler = f"({','.join(f'_{n}' for n in sizes)})"
    lines = [f"as a tiler {tiler}, {math.prod(sizes)} elements"]
    for bits, name in ((16, "float16"), (8, "uint8"), (32, "float32")):
        bytes_text = f"of {bits} bits: {math.prod(sizes) * bits // 8} bytes, rows of {sizes[-1] * bits // 8}"
        found = unless_refused(smem_choices, "K", name, tuple(sizes)) if len(sizes) in (2, 3) else None
        choices = [c.swizzle for c in found or ()]
        fit = f"; K-major with swizzle {', '.join(choices)}" if choices else "; no canonical K-major layout divides it"
        lines.append(bytes_text + (fit if len(sizes) in (2, 3) else ""))
    if max(sizes) > bounds("box")[1]:
        lines.append(
            f"{max(sizes)} exceeds the 256 elements of a box along one mode, so the copy needs several instructions"
        )
    yield Reading(f"A tile of {match[1]}", 0, len(text), lines)


# ---- types and conditions of C++ that stand alone, as a debugger, `c++filt` and a compiler's notes print them -------

MOST_ALONE: Final = 1 << 16
_ALONE: Final = re.compile(r"[^\n]{12,300}")
_CPP_TYPE: Final = re.compile(r"\b(?:cute::)?(?:Composed)?(?:Layout|Swizzle)\s?<")


def read_alone(text: str) -> list[Reading]:
    """Read the C++ types in the first `MOST_ALONE` characters of `text`, or if there are none, the messages of static
    assertions."""
    return read_types(text[:MOST_ALONE]) or read_conditions(text[:MOST_ALONE])


_CPP_CALL: Final = re.compile(rf"\b(?:(?:cute::)?(?:tile_to_shape|composition|make_layout)\s?\(|{LAYOUT_ATOM})")


def _cpp_calls(text: str) -> Iterator[Reading]:
    """Read every layout that C++ source computes from static numbers, and every layout atom."""
    read_to = 0
    for match in some(_CPP_CALL.finditer(text)):
        if match.start() < read_to:
            continue
        end = matching_bracket(text, match.end(), LONGEST) + 1 if match[0].endswith("(") else match.end()
        try:
            thing = source_layout(text[match.start() : end])
        except StaticAssertError as error:
            read_to = end
            lines = [f"{name}: {value}" for name, value in error.facts.items()]
            refused = Diagnostic(condition_id(error.headline) or "layout", text=error.headline, source="CuTe C++")
            yield Reading("An operation of C++ source that CuTe refuses", match.start(), end, lines, (refused,))
            continue
        except CuteError:  # numbers that the text does not contain
            continue
        if isinstance(thing, (Layout, ComposedLayout)) and has_numbers(domain_of(thing)):
            read_to = end
            kind = "A layout" if isinstance(thing, Layout) else "A swizzled layout"
            yield Reading(f"{kind}: {thing}", match.start(), end, [line.strip() for line in facts_of(thing)])


def read_types(text: str) -> list[Reading]:
    """Read every layout and swizzle that is written as a C++ type, or that C++ source computes.

    >>> read_types("cute::Layout<cute::tuple<cute::C<8>, int>, cute::tuple<int, cute::_1> >")[0].kind
    'A type of CuTe C++: (_8,n0):(n1,_1)'
    >>> read_types("auto l = composition(Swizzle<3,3,3>{}, make_layout(Shape<_8,_64>{}, GenRowMajor{}));")[0].kind
    'A swizzled layout: Sw<3,3,3> o _0 o (_8,_64):(_64,_1)'
    """
    found = [*_cpp_calls(text)]
    text = without(text, found)
    matches = some(_CPP_TYPE.finditer(text))
    if not matches:
        return found
    from cute_py.notation.compiler_types import spelled_type, type_end

    read_to = 0
    for match in matches:
        if match.start() < read_to:
            continue
        end = type_end(text, match.end())
        if end is None:
            cut = "the type is cut off, because its argument list does not end"
            found.append(Reading("A type of CuTe C++", match.start(), match.end(), (cut,), missing=("the whole type",)))
            break
        read_to = end
        written = spelled_type(text[match.start() : end])
        if not re.search(r"[0-9?]", written):  # a template's parameters: Layout<LShape, LStride>
            continue
        if ":" not in written and " o " not in written and "Sw<" not in written:
            written += ":LayoutLeft"  # Layout<Shape<_8,_4>>
        spelled = with_symbols(written)
        thing = unless_refused(parse, spelled)
        if isinstance(thing, (Layout, ComposedLayout, Swizzle)):
            lines = [line.strip() for line in facts_of(thing)]
            unknown = ["each n is a number that is known only at run time"] if "n0" in spelled else []
            kind = f"A type of CuTe C++: {shortened(str(thing), 160)}"
            found.append(Reading(kind, match.start(), end, lines + unknown))
    return found


def read_conditions(text: str) -> list[Reading]:
    """Find every line that is the message of a CuTe static assertion without the compiler output around it.

    >>> [reading.kind for reading in read_conditions("Could not find a common tile-gmem vectorization.")]
    ['A static assertion of CuTe, by its message']
    """
    found: list[Reading] = []
    for match in some(_ALONE.finditer(text), 20):
        condition = match[0].strip(" \t\"'`")
        known = condition_id(condition)
        if known is None:
            continue
        broken = Diagnostic(known, text=condition, source="CuTe C++")
        missing = ("the output of the compiler around it, which has the types",)
        head = "A static assertion of CuTe, by its message"
        found.append(Reading(head, match.start(), match.end(), broken=(broken,), missing=missing))
    return found
