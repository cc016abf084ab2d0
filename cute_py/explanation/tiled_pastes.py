"""Read printed tiled operations, atoms and descriptors of shared memory, as CuTe C++ and CuTe DSL print them.

The printed text does not name its operation, so the reading lists all operations of CuTe that have the printed layouts.
A descriptor's fields are decoded from its 64 bits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cute_py.atom.copy_atom import CopyAtom
from cute_py.atom.mma_atom import MmaAtom
from cute_py.atom.smem_descriptor import DescriptorKind, SmemDescriptor
from cute_py.atom.tiled_copy import TiledCopy
from cute_py.atom.tiled_mma import TiledMma
from cute_py.diagnostics import Diagnostic
from cute_py.errors import CuteError, counted, unless_refused
from cute_py.explanation.atoms import beyond_tile
from cute_py.explanation.layout_pastes import known_number
from cute_py.explanation.readings import Reading, some
from cute_py.layout.int_tuple import product_each, rank, size
from cute_py.layout.layout import Layout, cosize, has_numbers
from cute_py.layout.trees import leaves
from cute_py.notation.parse import Parsed, dsl_type, parse
from cute_py.notation.tiled_operations import as_cpp, same_layouts

if TYPE_CHECKING:
    from cute_py.machine.tensor_memory.instruction_descriptor import InstructionDescriptor

_TILED: Final = re.compile(
    r"^(?:[ \t]{0,100}Thr(?:Copy|MMA)[ \t]{0,100}\n[ \t]{1,100}Thr(?:Idx| VMNK):[ \t]{0,100}(?P<slice>[^\n]{1,60})\n)?"
    r"(?:[^\n]{0,60}[=:}])?[ \t]{0,100}(?P<kind>Tiled ?MMA|Tiled ?Copy|MMA[_ ]Atom|Copy[_ ]Atom)[ \t]{0,100}$",
    re.MULTILINE,
)
_TILED_FIELD: Final = re.compile(
    r"^[ \t]+(\w[\w ]*):[ \t]*(\S[^\n]*)$|^[ \t]*(MMA[_ ]Atom|Copy[_ ]Atom|Tiled ?MMA|Tiled ?Copy)[ \t]*$"
)


def read_tiled(text: str) -> list[Reading]:
    """Read every printed tiled operation, atom and descriptor in `text`, and the descriptors that belong to one
    instruction."""
    return [*_tiled_operations(text), *_descriptors(text), *_instruction_descriptors(text), *_products(text)]


def _tiled_operations(text: str) -> Iterator[Reading]:
    end = 0
    for match in some(_TILED.finditer(text), 16):
        if match.start() < end:
            continue
        lines, end = [match["kind"]], match.end()
        for line in text[match.end() + 1 :].split("\n")[:40]:
            if not _TILED_FIELD.match(line) or (line.strip().replace(" ", "") in ("TiledMMA", "TiledCopy")):
                break
            lines.append(line)
            end += len(line) + 1
        dsl = " " in match["kind"]
        try:
            cpp = as_cpp("\n".join(lines), None, dsl_type)[0] if dsl else "\n".join(lines)
        except CuteError:  # a type without a name here
            cpp = "\n".join(lines)
        kind = match["kind"].replace(" Atom", "_Atom").replace(" ", "")
        fields = {m[1]: m[2].strip() for line in cpp.split("\n") if (m := _TILED_FIELD.match(line)) and m[1]}
        facts, missing = _operation_facts(kind, fields)
        broken = [*_beyond_tile(fields)] if "Copy" in kind else []
        if match["slice"]:
            facts.insert(0, f"the slice of thread {match['slice'].strip()}{' (V, M, N, K)' if 'MMA' in kind else ''}")
        facts += _named("\n".join(lines))
        yield Reading(
            f"{kind}, as {'CuTe DSL' if dsl else 'CuTe'} prints it", match.start(), end, facts, broken, missing=missing
        )


def part_names(thing: Parsed) -> list[str]:
    """The names of the operations that have the same layouts as an atom, or as the atom of a tiled operation."""
    atom = thing.atom if isinstance(thing, (TiledMma, TiledCopy)) else thing
    return same_layouts(atom) if isinstance(atom, (MmaAtom, CopyAtom)) else []


MOST_NAMES: Final = 4
"""Operations of the same layouts that are named."""


def _named(text: str) -> list[str]:
    """Lines that list the operations with the layouts that `text` prints."""
    names = unless_refused(lambda: part_names(parse(text)))
    if names is None:
        return []
    if len(names) == 1:
        return [f"these are the layouts of {names[0]}"]
    head = f"{len(names)} operations of CuTe have these layouts, and the print does not name the operation"
    more = [f"  and {len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
    return [head, *(f"  {name}" for name in names[:MOST_NAMES]), *more]


def _field(fields: dict[str, str], name: str) -> Layout | None:
    thing = unless_refused(parse, fields[name]) if name in fields else None
    return thing if isinstance(thing, Layout) and has_numbers(thing) else None


def _tuple(fields: dict[str, str], name: str) -> list[int]:
    """The sizes in a printed tiler or shape; empty if one of them is not known."""
    thing = unless_refused(parse, fields[name]) if name in fields else ()
    items = thing if isinstance(thing, tuple) else (thing,)
    if not all(has_numbers(item) for item in items if isinstance(item, Layout)):
        return []
    sizes = [int(size(item)) if isinstance(item, Layout) else known_number(item) for item in items]
    return [n for n in sizes if n is not None] if None not in sizes else []


def _shared(held: Layout) -> bool:
    """Whether all threads of a TV layout have the same values, as for an operand that the instruction reads through a
    descriptor or an address."""
    threads = held.stride[0] if isinstance(held.stride, tuple) else held.stride
    return int(product_each(held.shape)[0]) > 1 and all(known_number(step) == 0 for step in leaves(threads))


def _operation_facts(kind: str, fields: dict[str, str]) -> tuple[list[str], list[str]]:
    if "Copy" in kind:
        return _copy_facts(fields)
    lines: list[str] = []
    shape = _tuple(fields, "Shape_MNK")
    shape = shape if len(shape) == 3 else []
    threads = _field(fields, "ThrLayoutVMNK")
    own = _field(fields, "ThrID")
    if own is not None and shape:
        lines.append(
            f"one operation is {'x'.join(map(str, shape))} (M x N x K), by {counted(int(size(own)), 'thread')}"
        )
    for letter, sides in (("A", (0, 2)), ("B", (1, 2)), ("C", (0, 1))):
        held = _field(fields, f"Layout{letter}_TV")
        if held is not None and shape:
            values = int(product_each(held.shape)[1]) if int(rank(held)) > 1 else 1
            m, n = (shape[i] for i in sides)
            shared = _shared(held) and values == m * n
            whose = "of shared or tensor memory, by all threads together" if shared else "a thread"
            lines.append(f"{letter}: {m}x{n}, {counted(values, 'value')} {whose} ({held})")
    if threads is not None and shape:
        counts = [int(n) for n in product_each(threads.shape)]
        lines.append(f"{counted(int(size(threads)), 'thread')} in all")
        if len(counts) == 4:
            lines.append(
                f"{counts[1]} x {counts[2]} x {counts[3]} atoms along M, N, K, {counted(counts[0], 'thread')} each"
            )
            tile = [a * s for a, s in zip(counts[1:], shape, strict=False)]
            spread = _tuple(fields, "PermutationMNK")
            tile = [max(p, t) for p, t in zip(spread, tile, strict=True)] if len(spread) == len(tile) else tile
            lines.append(f"a tile of {'x'.join(map(str, tile))} (M x N x K)")
    missing = [] if shape else ["Shape_MNK"]
    return lines, missing


def _beyond_tile(fields: dict[str, str]) -> Iterator[Diagnostic]:
    """Find a thread-value layout whose offsets leave the tile."""
    tile, held = _tuple(fields, "Tiler_MN"), _field(fields, "TiledLayout_TV")
    if held is not None and tile and (found := beyond_tile(held, tile)):
        text = f"{found}. CuTe does not check this: the copy accesses elements of other tiles"
        reached = int(cosize(held))
        yield Diagnostic("thread-value layout", "cosize", reached, "elements", text=text, severity="warning")


_WIDEST_ACCESS: Final = 32
"""Bytes that one thread moves with a load or store; a bulk copy moves more."""


def _copy_facts(fields: dict[str, str]) -> tuple[list[str], list[str]]:
    lines: list[str] = []
    bits = next(iter(re.findall(r"([0-9]{1,4})b", fields.get("ValueType", ""))), None)
    tile = _tuple(fields, "Tiler_MN")
    held, one = _field(fields, "TiledLayout_TV"), _field(fields, "ValLayoutSrc")
    moved = [int(n) for n in product_each(one.shape)] if one is not None and int(rank(one)) == 2 else []
    bulk = bool(bits) and moved[:1] == [1] and moved[1] * int(bits or 0) > 8 * _WIDEST_ACCESS
    if held is not None and int(rank(held)) == 2 and bulk:
        sharing = int(product_each(held.shape)[0])
        lines.append("a TMA copy: one thread issues it, and the engine moves the box")
        lines += [f"{sharing} CTAs share the tile by multicast"] if sharing > 1 else []
        lines += [f"a tile of {'x'.join(map(str, tile))}, {counted(math.prod(tile), 'element')}"] if tile else []
    elif held is not None and int(rank(held)) == 2:
        threads, values = (int(n) for n in product_each(held.shape))
        warp = moved[0] if one is not None and moved[:1] == [32] and _shared(one) else 1
        if warp > 1:
            lines += [f"{threads} threads: each warp as a whole reads or writes {values} values of tensor memory"]
            threads //= warp
        else:
            lines += [f"{counted(threads, 'thread')}, {counted(values, 'value')} each: {threads * values} elements"]
        if bits and warp == 1:
            lines.append(f"{counted(values, 'value')} of {bits} bits: {values * int(bits) / 8:g} bytes per thread")
        if tile:
            area = math.prod(tile)
            lines.append(f"a tile of {'x'.join(map(str, tile))}, {area} elements")
            if area != threads * values:
                lines.append(
                    f"threads x values = {threads * values} differs from the tile's {area} elements: the copy repeats "
                    f"or skips elements"
                )
        steps = leaves(held.stride[1]) if isinstance(held.stride, tuple) else []
        first = known_number(steps[0]) if steps else None
        if first and tile:  # stride 0 belongs to a thread of one value
            along = "mode 0 (M)" if first < tile[0] else "mode 1 (N)"
            lines.append(
                f"consecutive values of a thread are {first} elements apart in the tile, counted along M first: {along}"
            )
    for name in ("ValLayoutSrc", "ValLayoutDst"):
        one = _field(fields, name)
        if one is not None and int(rank(one)) == 2:
            threads, values = (int(n) for n in product_each(one.shape))
            width = f" of {bits} bits = {values * int(bits)} bits" if bits else ""
            lines.append(
                f"{name[9:]}: one operation moves {counted(values, 'value')}{width}, by {counted(threads, 'thread')}"
            )
            if bulk and bits and name == "ValLayoutSrc":
                lines.append(f"one instruction moves {values * int(bits) // 8} bytes: a TMA copy")
    return lines, [] if lines else ["TiledLayout_TV and Tiler_MN"]


# ---- descriptors of shared memory ----------------------------------------------------------------------------------

_DESCRIPTOR: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:(?P<kind>gmma|umma|wgmma|tcgen05|smem|matrix)[ _-]?)?desc(?:riptor)?"
    r"(?:[ _-]?[ab])?\s{0,9}[:=]\s{0,9}"
    r"(?P<value>0x[0-9a-f]{9,16})\b"
    r"(?:\n[ \t]{1,100}(?:start_addr|leading_off|stride_off|base_offset|layout_type|version|lbo_mode)[^\n]{0,80}){0,9}",
    re.IGNORECASE,
)
_VERSION: Final = 0b111 << 46
"""Bits that are 0b001 in descriptors of tcgen05, and 0 in descriptors of wgmma."""


def _descriptors(text: str) -> Iterator[Reading]:
    for match in some(_DESCRIPTOR.finditer(text), 16):
        value = int(match["value"], 16)
        newer = value & _VERSION == 1 << 46 or (match["kind"] or "").lower() in ("umma", "tcgen05")
        kind = DescriptorKind.TCGEN05 if newer else DescriptorKind.WGMMA
        found = unless_refused(SmemDescriptor.decode, value, kind)
        if found is None:
            continue
        head, *lines = found.explain().split("\n")
        wrong = tuple(found.check())
        lines.append("LBO and SBO: a K-major operand with a swizzle does not use LBO; explain('LBO') has the table")
        yield Reading(head, *match.span(), [line.strip() for line in lines], wrong)


def number_text(text: str) -> str | None:
    """Explain a number alone that may be a shared-memory descriptor of wgmma or tcgen05; None if it has at most 32 bits
    or more than 64, or is no descriptor of either kind.

    >>> print(number_text("0x4000004000010002").splitlines()[2])
    wgmma matrix descriptor 0x4000004000010002
    """
    is_hex = "x" in text.lower()
    value = int(text.strip().lower().rstrip("ul"), 16 if is_hex else 10)
    if not 1 << (32 if is_hex else 46) <= value < 1 << 64:  # smaller decimal numbers count bytes and elements
        return None
    newer = value & _VERSION == 1 << 46
    kinds = (DescriptorKind.TCGEN05,) if newer else (DescriptorKind.WGMMA, DescriptorKind.TCGEN05)
    read = [one for kind in kinds if (one := unless_refused(SmemDescriptor.decode, value, kind)) is not None]
    sound = [one for one in read if not one.check() and not one.residue]
    if not sound:
        return None
    one = sound[0]
    version = "is 0b001, as in descriptors of tcgen05" if newer else "is 0, as in descriptors of wgmma"
    return "\n".join([
        f"{value:#018x}, a number of 64 bits that may be a shared-memory matrix descriptor",
        "",
        one.explain(),
        "",
        "Not certain",
        "  whether the number is a descriptor: the text does not name it. It may also be an address or other data;",
        "    write `desc = 0x...` to read it as a descriptor",
        f"  the kind, {one.kind.value}: bits 46-48 are the version, which {version}",
        "  the meaning of LBO and SBO: it depends on the major mode and the swizzle; explain('LBO') has the table",
    ])  # fmt: skip


# ---- instruction descriptors ---------------------------------------------------------------------------------------

_INSTRUCTION: Final = re.compile(
    r"(?<![A-Za-z0-9])i(?:nstr(?:uction)?)?[ _-]?desc(?:riptor)?\w{0,10}\s{0,9}[:=]?\s{0,9}"
    r"(?P<value>0x[0-9a-f]{5,8})\b",
    re.IGNORECASE,
)
_KIND: Final = re.compile(r"kind::(\w{2,10})")


def _read_as(value: int, kind: str | None) -> tuple[list[InstructionDescriptor], list[InstructionDescriptor]]:
    """Interpret an instruction descriptor for each kind of MMA. Return the interpretations that break no rule, and the
    candidates to use, the best first."""
    from cute_py.machine.tensor_memory.instruction_descriptor import MMA_KINDS, InstructionDescriptor

    read = [InstructionDescriptor(value, name) for name in MMA_KINDS]
    fits = [one for one in read if not (one.check(1) and one.check(2) and one.check(1, weights=True))]
    return fits, [one for one in read if one.kind == kind] or fits or read


def _instruction_descriptors(text: str) -> Iterator[Reading]:
    matches = some(_INSTRUCTION.finditer(text), 16)
    named = _KIND.search(text)
    for match in matches:
        fits, chosen = _read_as(int(match["value"], 16), None if named is None else named[1])
        head, *lines = chosen[0].explain().split("\n")
        wrong = () if chosen[0] in fits else tuple(chosen[0].check())
        others = [f"kind::{one.kind}" for one in fits if one is not chosen[0]]
        if named is None and others:
            lines.append(f"the text does not name the kind; the value also fits {', '.join(others)}")
        yield Reading(head, *match.span(), [line.strip() for line in lines], wrong)


# ---- how an instruction reads its operands -------------------------------------------------------------------------

_OPERAND: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:[gu]mma|tcgen05|smem|matrix)[ _-]?)?"
    r"(?:(?P<before>[ab])[ _-]?desc(?:riptor)?|desc(?:riptor)?[ _-]?(?P<behind>[ab]))\s{0,9}[:=]\s{0,9}"
    r"(?P<value>0x[0-9a-f]{9,16})\b",
    re.IGNORECASE,
)
_VECTORS: Final = re.compile(r"scale_vec::([124])X|block(16|32)")


def _products(text: str) -> Iterator[Reading]:
    """Explain what an instruction reads, if `text` has its instruction descriptor and the descriptors of A and B."""
    instruction, named = _INSTRUCTION.search(text), _KIND.search(text)
    found = {(match["before"] or match["behind"]).lower(): match for match in some(_OPERAND.finditer(text), 16)}
    if instruction is None or len(found) < 2:
        return
    from cute_py.machine.tensor_memory.umma_operands import UmmaOperands

    _, chosen = _read_as(int(instruction["value"], 16), None if named is None else named[1])
    one = chosen[0]
    vectors = _VECTORS.search(text)
    factors = None
    if vectors is not None and one.scale_type is not None:
        factors = int(vectors[1]) if vectors[1] else one.k // int(vectors[2])
    values = [int(found[name]["value"], 16) for name in "ab"]
    pair = "cta_group::2" in text or (bool(one.check(1)) and not one.check(2))
    group, weights = 2 if pair else 1, ".ws" in text
    operands = unless_refused(
        lambda: UmmaOperands(one.value, values[0], values[1], one.kind, group, scale_vec=factors, weights=weights)
    )
    if operands is None:
        return
    head, *lines = operands.explain().split("\n")
    arguments = [f"{one.value:#010x}", *(f"{value:#x}" for value in values), repr(one.kind), *(["2"] if pair else [])]
    lines.append(f"a picture: cute.draw.draw(cute.UmmaOperands({', '.join(arguments)}))")
    end = max(match.end() for match in (instruction, *found.values()))
    yield Reading(f"The operands of {head}", end, end, [line for line in lines if line])
