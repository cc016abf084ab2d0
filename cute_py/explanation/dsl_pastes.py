"""Read errors, tensors and types of CuTe DSL, from its Python layer and from its compiler.

`rows/cute_dsl.toml` lists the messages that need no computation. If a message contains the operands
(`rows/cute_dsl_operands.toml`), explain compares them, or runs the operation on them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from cute_py.diagnostics import Diagnostic
from cute_py.errors import CuteError, shortened, unless_refused
from cute_py.explanation.layout_pastes import composed_facts, facts_of, with_symbols
from cute_py.explanation.messages import messages_of
from cute_py.explanation.readings import Reading, some, type_bits, without
from cute_py.explanation.rows.known_texts import found, rows
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import product_each
from cute_py.notation.argument_lists import matching_bracket
from cute_py.notation.parse import parse

if TYPE_CHECKING:
    from cute_py.explanation.compiler_pastes import Trial

_NUMBER: Final = re.compile(r"(?<![\w@_])([0-9]{1,18})(?!@|\w)|(?<![\w@_])([0-9]{1,18})(?=@)")


class _Found(NamedTuple):
    """A rule, the message, lines about the operands, changes that were tried, and advice that was not tried."""

    rule: str
    message: str
    lines: Sequence[str] = ()
    changes: Sequence[str] = ()
    advice: Sequence[str] = ()


def read_dsl(text: str) -> list[Reading]:
    """Read every error message of CuTe DSL in `text`."""
    readings = [*_computed(text)]
    readings += messages_of(without(text, readings), rows("cute_dsl"))
    return [_whole(text, reading) for reading in readings]


_HEAD: Final = re.compile(r"(?:(?<![^\n])[^\n]{0,1000}compiler pass failed[ \t]{0,9}\n)?(?<![^\n])[^\n]*\Z")
_NOTE: Final = re.compile(r"[^\n]*(?:\n[ \t]{0,40}note: [^\n]*see current operation[^\n]*)?")


def _whole(text: str, reading: Reading) -> Reading:
    """Extend a reading to all lines of its message, from the compiler's `error:` to its note about the operation."""
    begin = max(0, reading.begin - 1000)
    head, note = _HEAD.search(text[begin : reading.begin]), _NOTE.match(text, reading.end)
    return replace(
        reading,
        begin=begin + head.start() if head is not None else reading.begin,
        end=note.end() if note is not None else reading.end,
    )


def _computed(text: str) -> Iterator[Reading]:
    for row, match in found(text, rows("cute_dsl_operands")):
        if (outcome := _OPERANDS[row.operands](match)) is not None:
            rule, message, lines, changes, advice = outcome
            broken = (Diagnostic(rule, text=message, source=row.program),)
            yield Reading(f"An error from {row.program}", *match.span(), lines, broken, changes, advice=advice)


def _static(spelled: str) -> str:
    """Convert a layout as CuTe DSL prints it to the notation of CuTe C++, with static numbers.

    >>> _static("(4,(2,?)):(1@0,(8,1))")
    '(_4,(_2,?)):(_1@0,(_8,_1))'
    """
    return _NUMBER.sub(r"_\1\2", re.sub(r"\s{1,80}|\{[^}]{0,400}\}", "", spelled))


def _sizes(spelled: str) -> list[int] | None:
    """The sizes of the modes of a layout or shape; None if one is known only at run time."""
    shape = unless_refused(parse, _static(spelled.rpartition(" o ")[2].partition(":")[0]))
    sizes = product_each(shape) if isinstance(shape, tuple) else (shape,)
    known = [int(n) for n in sizes if isinstance(n, int)]
    return known if len(known) == len(sizes) else None


def _run(name: str, left: str, right: str, of: tuple[str, str]) -> Trial | None:
    parts = [part for one in (left, right) for part in _static(one).split(":")]
    names = [f"{side}{part}" for side in of for part in ("Shape", "Stride")]
    if len(parts) != len(names):
        return None
    from cute_py.explanation.compiler_pastes import run_operation

    return run_operation(name, dict(zip(names, parts, strict=True)))


def _condition(outcome: Trial) -> str:
    """The CuTe condition that an operation broke when explain ran it."""
    return outcome[0][1].partition(" (")[0]


def _composition(match: re.Match[str]) -> _Found | None:
    if "?" in match["right"].partition(":")[0]:
        message = "the shape of the right layout must be static, because CuTe DSL can't compose with run-time sizes"
        operands = f"{match['left']} o {match['right']}"
        return _Found("static shape", message, [operands], advice=["use static sizes in the right layout"])
    outcome = _run("composition", match["left"], match["right"], ("L", "R"))
    message = "the right side can't be composed with the left"
    return None if outcome is None else _Found(_condition(outcome), message, *outcome)


def _product(match: re.Match[str]) -> _Found | None:
    outcome = _run("logical_product", match["left"], match["right"], ("L", "T"))
    return None if outcome is None else _Found(_condition(outcome), "these layouts have no product", *outcome)


def _gemm(match: re.Match[str]) -> _Found | None:
    a, b, d = (_sizes(match[name]) for name in "abd")
    if a is None or b is None or d is None or min(len(a), len(b)) < 2 or len(d) < 3:
        return None
    lines = [f"A has {a[1]} atoms along M, B has {b[1]} along N, and D has {d[1]} along M and {d[2]} along N"]
    wrong = [f"along M, {a[1]} of A and {d[1]} of D"] if a[1] != d[1] else []
    wrong += [f"along N, {b[1]} of B and {d[2]} of D"] if b[1] != d[2] else []
    if len(a) > 2 and len(b) > 2:
        lines.append(f"along K, A has {a[2]} atoms and B has {b[2]}")
        wrong += [f"along K, {a[2]} of A and {b[2]} of B"] if a[2] != b[2] else []
    if not wrong:
        message = (
            "the numbers of atoms agree, so this release of CuTe DSL refuses a valid form (wgmma with N = 8 before 4.8)"
        )
        return _Found("gemm", message, lines, advice=["use a newer nvidia-cutlass-dsl, or an N of at least 16"])
    advice = (
        "partition and slice A and B in the same way, and make the accumulator with partition_shape_C of the "
        "same tile (M, N)"
    )
    return _Found("gemm", f"the numbers of atoms differ: {'; '.join(wrong)}", lines, advice=[advice])


def _congruent(match: re.Match[str]) -> _Found | None:
    sizes = _sizes(match["layout"].replace("?", "1"))
    if sizes is None:
        return None
    modes, given = len(sizes), len(_sizes(re.sub(r"\b_|\?", "1", match["coord"])) or ())
    lines = [f"the tensor {match['layout']} has {modes} modes, but the coordinate {match['coord']} has {given} entries"]
    advice = [f"pass {modes} entries, one for each mode (None keeps a mode)"] if modes != given else []
    if "@" in match["layout"]:
        advice.append(
            "mode 0 of a tensor of tma_partition is one tile: call group_modes(x, 0, 2) on both tensors before "
            "tma_partition, and pass one entry for each other mode"
        )
    message = "the nesting of the coordinate differs from the nesting of the tensor"
    return _Found("coordinate", message, lines, advice=advice)


def _first_modes(match: re.Match[str]) -> _Found | None:
    counts = []
    for name in ("smem", "gmem"):
        sizes = _sizes(re.sub(r"^\((\(\(.*\)\))\)$", r"\1", re.sub(r"\s{1,80}", "", match[name])))
        whole = match[name].startswith("(((")
        counts.append(None if sizes is None else math.prod(sizes) if whole else sizes[0])
    if None in counts:
        return None
    message = f"one tile has {counts[0]} elements in shared memory, but {counts[1]} in the global tensor"
    advice = "use local_tile(gmem, tile, ...) with the tile of the TMA atom, then group_modes(x, 0, 2) on both tensors"
    return _Found("tma_partition", message, advice=[advice])


def _v_map(match: re.Match[str]) -> _Found | None:
    smem, tile = _sizes(match["smem"]), _sizes(match["tile"])
    if smem is None or tile is None:
        return None
    message = f"the shared layout has {tuple(smem)} elements by mode, but the tile of the copy has {tuple(tile)}"
    advice = f"use a tiler of {tuple(smem)}, or a shared layout of {tuple(tile)}; slice off the mode of stages"
    return _Found("TMA requires CTA_Tile and SLayout top-level size equivalence.", message, advice=[advice])


_OPERANDS: Final[dict[str, Callable[[re.Match[str]], _Found | None]]] = {
    "composition": _composition,
    "logical_product": _product,
    "gemm": _gemm,
    "congruent": _congruent,
    "first_modes": _first_modes,
    "tile_of_layout": _v_map,
}
"""Name in a row -> function that compares the operands of its message, or runs the operation on them."""


# ---- tensors and types, as CuTe DSL prints them ----------------------------------------------------------------------

_DSL: Final = re.compile(r"!cute(?:_\w{1,80})?\.(\w{1,80})<")


def read_dsl_tensors(text: str) -> list[Reading]:
    """Read every tensor that CuTe DSL printed: `tensor<ptr<f16, smem, align<1024>> o ...>`, `tensor(raw_ptr(...) o
    ...`."""
    found: list[Reading] = []
    pieces = []
    for match in some(_DSL_TENSOR.finditer(text)):
        end = matching_bracket(text, match.end())
        pieces.append((match.start(), end + 1, text[match.end() : end].partition(", data=")[0].strip()))
    pieces += [(*match.span(), match[0]) for match in some(_BARE_TENSOR.finditer(text))]
    for begin, end, inside in pieces:
        start, _, layout = inside.partition(" o ")
        pointer = _DSL_POINTER.fullmatch(start.strip())
        spelled = with_symbols(layout)
        of_pointer = pointer and f"tensor<ptr<{pointer['type']}, {pointer['space']}{pointer['swizzle']}> o {spelled}>"
        thing = unless_refused(parse, of_pointer or spelled)
        if thing is None:
            continue
        lines = [line.strip() for line in facts_of(thing, of_dsl=True)]
        if at_run_time := _RUNTIME_POINTER.fullmatch(start.strip()):
            place = f"{at_run_time['space']} at {int(at_run_time['address'], 16):#x}"
            lines.insert(0, f"in {place}; the text has no element type")
        elif pointer is None:
            lines.insert(0, f"a tensor of coordinates, which starts at {start}; a TMA copy takes such a tensor")
        else:
            aligned = f", aligned to {pointer['align']} bytes" if pointer["align"] else ""
            address = f" at {int(pointer['address'], 16):#x}" if pointer["address"] else ""
            lines.insert(0, f"{pointer['type']} in {pointer['space']}{address}{aligned}")
        if "?" in inside:
            lines.append("each ? is a number that is known only at run time")
        head = f"A tensor, as CuTe DSL prints it: {shortened(inside, 160)}"
        found.append(Reading(head, begin, end, lines))
    return found


_BARE_TENSOR: Final = re.compile(
    r"(?<![(<\w])raw_ptr\(0x[0-9a-fA-F]{1,16}: [^()\n]{1,80}\) o "
    r"\([0-9,(){}=?div]{1,200}\):\([0-9,(){}=?div]{1,200}\)(?=[ \t]{0,9}(?:=|,|$))",
    re.MULTILINE,
)
"""A tensor as cute.print_tensor writes it before its values."""
_DSL_TENSOR: Final = re.compile(r"\btensor[<(](?=raw_ptr\(|ptr<|\()|\bTensor<(?=0x[0-9a-fA-F]{1,16}@)")
_RUNTIME_POINTER: Final = re.compile(r"(?P<address>0x[0-9a-fA-F]{1,16})@(?P<space>\w{1,20})")
"""The pointer of a tensor that Python's print() shows outside a jitted function."""
_DSL_POINTER: Final = re.compile(
    r"(?:raw_ptr\(\s*(?P<address>0x[0-9a-fA-F]{1,16}):\s*|ptr<)(?P<type>\w+), (?P<space>\w+)"
    r"(?:, align<(?P<align>[0-9]{1,9})>)?(?P<swizzle>(?:, S<[0-9]+,[0-9]+,-?[0-9]+>)?)[>)]"
)


def read_dsl_types(text: str) -> list[Reading]:
    """Read every type of CuTe DSL in a text: `!cute.layout<"(4,8):(8,1)">`."""
    found: list[Reading] = []
    end = 0
    for match in some(_DSL.finditer(text)):
        if match.start() < end:
            continue
        end = matching_bracket(text, match.end())
        inside = text[match.end() : end]
        name, quoted = match[1], re.findall(r"\"([^\"\n]{1,2000})\"", inside)
        pieces = [with_symbols(piece) for piece in quoted or [inside]]
        pointer = re.match(r"\s*(\w+)\s*,\s*(gmem|smem|tmem|rmem|generic)(?:[^\"]*?align<([0-9]+)>)?", inside)
        lines = [_DSL_KINDS.get(name, f"a type of CuTe DSL: {name}")]
        if pointer:
            lines.append(
                f"elements {pointer[1]}, {pointer[2]}" + (f", aligned to {pointer[3]} bytes" if pointer[3] else "")
            )
        if pointer and (
            swizzle := re.search(r",\s{0,80}S<([0-9]{1,100},[0-9" r"]{1,100},-?[0-9]{1,100})>\s{0,80}(?:,|$)", inside)
        ):
            lines.append(f"Sw<{swizzle[1]}> of the pointer permutes byte addresses, after the offset is added")
        if "?" in inside:
            divisors = sorted({int(n) for n in re.findall(r"div=([0-9]{1,9})", inside)})
            known = f"; known divisors: {', '.join(map(str, divisors))}" if divisors else ""
            lines.append(f"each ? is a number that is known only at run time{known}")
        bits = type_bits(pointer[1]) if pointer else 0
        lines += [line for piece in pieces for line in _piece_lines(piece, bits or None)]
        value = _SSA_VALUE.search(text[max(0, match.start() - 100) : match.start()])
        named = f"{value[1]}: " if value else ""
        begin = match.start() - len(value[0]) if value else match.start()
        found.append(Reading(f"{named}!cute.{name}, a type of CuTe DSL (MLIR)", begin, end + 1, lines))
    return found


_SSA_VALUE: Final = re.compile(r"(?<![\w%])(%[\w.#]{1,60})[ \t]{0,9}[:=][ \t]{0,9}\Z")
"""The name of the value whose type follows."""
_DSL_KINDS: Final = {
    "layout": "a layout: shape and stride, or a swizzle composed with one",
    "memref": "a tensor in memory: element type, memory, alignment, layout",
    "coord_tensor": "a tensor of coordinates: its start, and a layout with basis strides; a TMA copy takes such a "
    "tensor",
    "ptr": "a pointer: element type, memory, alignment",
    "tile": "a tiler: one layout for each mode",
    "shape": "a shape",
    "stride": "a stride",
    "coord": "a coordinate",
    "int_tuple": "a tuple of integers",
    "swizzle": "a swizzle",
    "composed_layout": "a layout followed by a swizzle or another function",
    "tiled_mma": "a tiled MMA",
    "tiled_copy": "a tiled copy",
    "copy_atom": "a copy operation",
    "mma_atom": "an MMA operation",
}


def _piece_lines(piece: str, bits: int | None) -> list[str]:
    """Describe a part of a type. bits: the width of an element, if the type has one."""
    piece = re.sub(r"^S<([0-9]{1,100}),([0-9]{1,100}),(-?[0-9]{1,100})>", r"Sw<\1,\2,\3>", piece.strip())
    try:
        thing = parse(piece)
    except CuteError:
        return [piece] if len(piece) < 200 else []
    lines = [f"{piece}: {type(thing).__name__.lower()}" if not isinstance(thing, tuple) else piece]
    facts = composed_facts(thing, bits, of_dsl=True) if isinstance(thing, ComposedLayout) else facts_of(thing)
    return [*lines, *(line.strip() for line in facts)]
