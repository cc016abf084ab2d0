"""Faults of 15 kinds that are put into the PTX of kernels: where each may stand, and how the text changes.

A site is a line of a kernel and a variant. A changed operand keeps its line: the instruction becomes a block with one
more register, so that the numbers of the other lines stay as they are.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Fault:
    """A change of one kernel. lines: line -> its new text. what: the change in words."""

    kernel: str
    kind: str
    what: str
    lines: dict[int, str]

    @property
    def line(self) -> int:
        """The first changed line."""
        return min(self.lines)

    def put_into(self, text: str) -> str:
        """The text with the change."""
        found = text.split("\n")
        for number, line in self.lines.items():
            found[number - 1] = line
        return "\n".join(found)


Lines = list[tuple[int, str]]
_WAITS: Final = r"mbarrier\.try_wait|mbarrier\.test_wait"
_LOADS: Final = r"cp\.async\.bulk\.tensor\.[1-5]d\.shared|cp\.async\.bulk\.shared"


def statements(text: str) -> Lines:
    """(line, text) of the instructions that end on the line that they begin on."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        plain = line.split("//")[0].strip()
        if plain.endswith(";") and not plain.startswith((".", "{", "}")) and plain.count(";") == 1:
            found.append((number, plain))
    return found


def matching(text: str, pattern: str) -> Lines:
    """Those whose opcode begins with a pattern."""
    return [(n, s) for n, s in statements(text) if re.match(rf"(@!?%?\w+\s+)?({pattern})", s)]


def with_operand(statement: str, old: str, operation: str, bits: int = 32) -> str:
    """The statement with an operand replaced by what an operation makes of it: `xor.b32 NEW, OLD, 1`."""
    at = statement.rindex(old)
    kind = {16: "b16", 32: "b32", 64: "b64"}[bits]
    made = operation.replace("NEW", "%mut").replace("OLD", old)
    return f"{{ .reg .{kind} %mut; {made}; {statement[:at]}%mut{statement[at + len(old) :]} }}"


def _last(statement: str) -> str:
    return statement.rstrip(";").rsplit(",", 1)[1].strip()


def _bytes(text: str) -> Iterator[tuple[str, dict[int, str]]]:
    for number, one in matching(text, r"mbarrier\.(arrive\.)?expect_tx"):
        for what, operation in (
            ("16 bytes more", "add.u32 NEW, OLD, 16"),
            ("16 bytes fewer", "sub.u32 NEW, OLD, 16"),
            ("half of the bytes", "shr.u32 NEW, OLD, 1"),
            ("twice the bytes", "shl.b32 NEW, OLD, 1"),
        ):
            yield what, {number: with_operand(one, _last(one), operation)}


def _counts(text: str) -> Iterator[tuple[str, dict[int, str]]]:
    for number, one in matching(text, r"mbarrier\.init"):
        yield "a count 1 larger", {number: with_operand(one, _last(one), "add.u32 NEW, OLD, 1")}
        yield "a count 1 smaller", {number: with_operand(one, _last(one), "sub.u32 NEW, OLD, 1")}
    for number, one in matching(text, r"bar(rier)?(\.cta)?\.(sync|arrive)(\.aligned)? \d+, \d+;"):
        yield "32 threads more", {number: with_operand(one, _last(one), "add.u32 NEW, OLD, 32")}


def _parity(text: str) -> Iterator[tuple[str, dict[int, str]]]:
    for number, one in matching(text, _WAITS):
        head, _, rest = one.partition("],")  # the parity comes behind the address, and a time limit may follow
        parity, comma, limit = rest.rstrip(";").partition(",")
        changed = with_operand(f"{head}],{parity};", parity.strip(), "xor.b32 NEW, OLD, 1")
        yield "the other parity", {number: changed.replace("; }", f"{comma}{limit}; }}") if comma else changed}


def _addresses(statement: str) -> list[str]:
    return re.findall(r"\[\s*(%\w+)\s*(?:\+\s*\d+\s*)?\]", statement)


def _stages(text: str) -> Iterator[tuple[str, dict[int, str]]]:
    for number, one in matching(text, _WAITS):
        for base in _addresses(one)[:1]:
            yield "the next barrier is waited for", {number: with_operand(one, base, "add.u32 NEW, OLD, 8")}
    for number, one in matching(text, _LOADS):
        for base in _addresses(one)[-1:]:
            if "mbarrier" in one:
                yield "the next barrier is signalled", {number: with_operand(one, base, "add.u32 NEW, OLD, 8")}
    for number, one in matching(text, r"cp\.async\.c[ag]|" + _LOADS):
        for base in _addresses(one)[:1]:
            yield "written 2048 bytes further", {number: _first(one, base, "add.u32 NEW, OLD, 2048")}


def _first(statement: str, old: str, operation: str) -> str:
    at = statement.index(old)
    made = operation.replace("NEW", "%mut").replace("OLD", old)
    return f"{{ .reg .b32 %mut; {made}; {statement[:at]}%mut{statement[at + len(old) :]} }}"


def _deleted(pattern: str, what: str) -> Callable[[str], Iterator[tuple[str, dict[int, str]]]]:
    def make(text: str) -> Iterator[tuple[str, dict[int, str]]]:
        for number, one in matching(text, pattern):
            yield f"{what}: {one.split()[0] if not one.startswith('@') else one.split()[1]}", {number: ""}

    return make


def _waits(text: str) -> Iterator[tuple[str, dict[int, str]]]:
    for number, one in matching(text, _WAITS):
        predicate = re.search(r"(%?\w+),\s*\[", one)
        if predicate:
            yield "no wait for the phase", {number: f"setp.eq.u32 {predicate[1]}, 0, 0;"}
    yield from _deleted(r"cp\.async\.(bulk\.)?wait|wgmma\.wait", "no wait")(text)


def _masks(text: str) -> Iterator[tuple[str, dict[int, str]]]:
    for number, one in matching(text, r"\S*multicast::cluster"):
        held = one.rstrip(";").rsplit(",", 2)[1].strip() if "L2::cache_hint" in one else _last(one)
        for mask in (0, 1, 2, 4, 7):
            yield f"the mask {mask}", {number: with_operand(one, held, f"mov.u16 NEW, {mask}", 16)}


def _descriptors(text: str) -> Iterator[tuple[str, dict[int, str]]]:
    for number, one in matching(text, r"wgmma\.mma_async"):
        head, _, rest = one.partition("}")
        parts = rest.split(",", 3)
        names = re.findall(r"%\w+", f"{parts[1]},{parts[2]}") if "{" not in parts[1] else []
        for name in dict.fromkeys(names):
            for what, operation in (
                ("another swizzle", "xor.b64 NEW, OLD, 0xC000000000000000"),
                ("no swizzle", "and.b64 NEW, OLD, 0x3FFFFFFFFFFFFFFF"),
                ("a start 128 bytes on", "add.u64 NEW, OLD, 8"),
                ("a start 1024 bytes on", "add.u64 NEW, OLD, 64"),
            ):
                made = operation.replace("NEW", "%mut").replace("OLD", name)
                changed = rest.replace(name, "%mut", 1)
                line = "{ .reg .b64 %mut; " + f"{made}; {head}" + "}" + f"{changed} " + "}"
                yield f"{what} of {name}", {number: line}


def _exits(text: str) -> Iterator[tuple[str, dict[int, str]]]:
    pattern = r"bar\.sync|cp\.async|mbarrier\.(arrive|try_wait)|wgmma\.(fence|commit|wait)|barrier\.cluster|ldmatrix"
    for number, one in matching(text, pattern):
        for what, low, high in (("warp 0", 0, 32), ("the last warp", 96, 128), ("thread 0", 0, 1)):
            test = (
                f"mov.u32 %mt, %tid.x; setp.ge.u32 %ma, %mt, {low}; setp.lt.and.u32 %mb, %mt, {high}, %ma; @%mb exit;"
            )
            yield f"{what} exits before", {number: f"{{ .reg .pred %ma, %mb; .reg .b32 %mt; {test} }} {one}"}


def _clusters(text: str) -> Iterator[tuple[str, dict[int, str]]]:
    found = matching(text, r"barrier\.cluster")
    for (first, one), (second, other) in itertools.pairwise(found):
        if "arrive" in one and "wait" in other:
            yield "no barrier of the cluster", {first: "", second: ""}
    for number, one in found:
        yield f"no {one.split()[0]}", {number: ""}


def _registers(text: str) -> Iterator[tuple[str, dict[int, str]]]:
    for number, one in matching(text, "setmaxnreg"):
        value = int(one.rstrip(";").split()[-1])
        for other in (16, 20, 264, value + 8, value + 4, 24):
            yield f"{other} registers", {number: one.replace(str(value), str(other))}
        swapped = one.replace(".inc.", ".DEC.").replace(".dec.", ".inc.").replace(".DEC.", ".dec.")
        yield "the other direction", {number: swapped}


def _overlaps(text: str) -> Iterator[tuple[str, dict[int, str]]]:
    """A buffer that begins in an earlier one: every line that adds its offset to the start of shared memory changes."""
    shared = "|".join(set(re.findall(r"\.shared[^;]*?\.b(?:8|64|32)\s+(\w+)\s*\[", text)))
    if not shared:
        return
    found = statements(text)
    bases = {moved[1] for _, one in found if (moved := re.match(rf"mov\.[bu](?:32|64)\s+(%\w+), (?:{shared});", one))}
    buffers: dict[int, Lines] = {}
    for number, one in found:
        added = re.match(r"add\.[su]32\s+%\w+, (%\w+), (\d+);", one)
        if added and added[1] in bases:
            buffers.setdefault(int(added[2]), []).append((number, one))
    for before, at in itertools.pairwise(sorted({0, *buffers})):
        places = {before: "where the one before it is", (before + at) // 2 // 16 * 16: "in the one before it"}
        for other, what in places.items():
            if before <= other < at:
                changed = {number: one.replace(f", {at};", f", {other};") for number, one in buffers[at]}
                yield f"the buffer at {at} is at {other}, {what}", changed


KINDS: Final[dict[str, Callable[[str], Iterator[tuple[str, dict[int, str]]]]]] = {
    "bytes": _bytes,
    "counts": _counts,
    "parity": _parity,
    "stage index": _stages,
    "missing fence": _deleted(r"fence\.|wgmma\.fence", "no fence"),
    "missing wait": _waits,
    "missing bar.sync": _deleted(r"bar\.sync|barrier\.sync", "no barrier"),
    "multicast mask": _masks,
    "descriptor": _descriptors,
    "missing load": _deleted(r"cp\.async\.c[ag]|" + _LOADS, "no copy"),
    "early exit": _exits,
    "cluster sync": _clusters,
    "register pool": _registers,
    "not initialised": _deleted(r"mbarrier\.init", "no init"),
    "overlapping memory": _overlaps,
}
"""Kind -> what lists its faults in a text, as (what, changed lines)."""
