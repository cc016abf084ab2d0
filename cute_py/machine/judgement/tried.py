"""Try changes to the PTX of a kernel, and offer a change only if a run of the changed text no longer has the finding.

For each rule, a function in `CHANGES` returns the changes that may fix a finding, the most likely first. A change
inserts lines before or after instructions of the text. `with_changes` tries the changes one after another, up to a
limit of runs.

A barrier of all threads between a write and a read belongs in a block that every path from the write passes, and that
every path to the read passes. Such a block is in no branch that only some threads take, and in no loop that contains
only one of the two instructions.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cute_py.diagnostics import Diagnostic
from cute_py.notation.source_lines import line_text
from cute_py.ptx.flow import opposite
from cute_py.ptx.parse import OperandKind, immediate
from cute_py.ptx.program import Block, Function, parse_program
from cute_py.ptx.source import read_module

_WAIT_STORE: Final = "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;"
_WAIT_PRODUCT: Final = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"

CURES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "race in shared memory": (
        ("before", "bar.sync 0;"), ("behind other", "bar.sync 0;"),
        ("before", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"),
    ),
    "race between lanes": (("before", "bar.warp.sync -1;"), ("behind other", "bar.warp.sync -1;")),
    "read before it arrives": (("before", "bar.sync 0;"), ("before", "cp.async.wait_all; bar.sync 0;")),
    "overwritten while in use": (("behind other", _WAIT_STORE), ("before", _WAIT_PRODUCT), ("before", "bar.sync 0;")),
    "missing proxy fence": (
        ("behind other", "fence.proxy.async;"), ("before", "fence.proxy.async;"),
        ("before", "cp.async.wait_all; fence.proxy.async; bar.sync 0;"),
    ),
    "tensor map not ordered": (
        ("behind other", "fence.proxy.tensormap::generic.release.gpu;"),
        ("before", "fence.proxy.tensormap::generic.acquire.gpu [{map}], 128;"),
    ),
    "initialisation not fenced": (("behind other", "fence.mbarrier_init.release.cluster;"),),
    "initialisation not known": (
        ("before", "bar.sync 0;"), ("behind other", "bar.sync 0;"),
        ("before", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"),
    ),
    "invalidated while in use": (("before", "bar.sync 0;"),),
    "registers not fenced": (("before", "wgmma.fence.sync.aligned;"),),
    "registers in use": (("before", _WAIT_PRODUCT),),
    "store under way at exit": (("behind", _WAIT_STORE),),
    "exit before a peer is done": (("behind", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"),),
}  # fmt: skip
"""Rule -> (place, text to insert): before or after the instruction of the finding, or after the other instruction.
{map} is the address of the tensor map that the instruction reads."""

MAX_RUNS: Final = 6
"""Maximum number of runs that try changes for the findings of a launch."""

CLEARED: Final = "clears all errors"
"""Fact of one of several findings: its change is enough to clear all errors of the run."""


@dataclass(frozen=True, slots=True)
class Insertion:
    """A line to insert into the PTX, before or (`behind`) after the instruction that begins at a line."""

    line: int
    text: str
    behind: bool = False

    def told(self, sources: Mapping[int, str]) -> str:
        """Describe the change, with the source line."""
        place = line_text(self.line, sources.get(self.line, ""))
        return f"insert `{self.text}` {'after' if self.behind else 'before'} {place}"


@dataclass(frozen=True, slots=True)
class Substitution:
    """A replacement in the instruction that begins at a line: the last occurrence of `old` becomes `new`."""

    line: int
    old: str
    new: str

    def told(self, sources: Mapping[int, str]) -> str:
        """Describe the change, with the source line."""
        place = line_text(self.line, sources.get(self.line, ""))
        return f"replace `{self.old}` with `{self.new}` in {place}" if self.new else f"remove `{self.old}` in {place}"


Change = Insertion | Substitution

Rerun = Callable[[str], "Sequence[Diagnostic] | None"]
"""Text -> the findings of a run; None if the text can't run."""


def changed(text: str, changes: Sequence[Change]) -> str:
    r"""Return a text with changes applied: lines inserted, or parts of lines replaced.

    >>> changed("a;\nb\n  c;\nd;", [Insertion(2, "x;", behind=True), Insertion(4, "y;")])
    'a;\nb\n  c;\nx;\ny;\nd;'
    >>> changed("add 1, 1;", [Substitution(1, "1", "2")])
    'add 1, 2;'
    """
    return "\n".join(line for _, line in _numbered(text, changes))


def _numbered(text: str, changes: Sequence[Change]) -> list[tuple[int, str]]:
    """Return the lines of the changed text, each with its number in the text; an inserted line has the number 0."""
    lines = list(enumerate(text.split("\n"), 1))
    for part in changes:
        if isinstance(part, Substitution):
            before, found, after = lines[part.line - 1][1].rpartition(part.old)
            lines[part.line - 1] = part.line, before + (part.new if found else "") + after
    insertions = [one for one in changes if isinstance(one, Insertion)]
    for one in sorted(insertions, key=lambda one: (one.line, one.behind), reverse=True):
        at = one.line - 1
        if one.behind:
            while at < len(lines) - 1 and ";" not in lines[at][1].split("//")[0]:
                at += 1
            at += 1
        lines.insert(at, (0, one.text))
    return lines


def changes_of(found: Diagnostic) -> list[tuple[Change, ...]]:
    """The changes that may fix a finding, from the rows of `CURES`; the facts of the finding replace {map}."""
    made: list[tuple[Change, ...]] = []
    for where, text in CURES.get(found.rule, ()):
        line = found.facts.get("other_line" if where == "behind other" else "line")
        if isinstance(line, int):
            made.append(
                (Insertion(line, text.replace("{map}", str(found.facts.get("map"))), behind=where != "before"),)
            )
    return made


_BARRIERS: Final = ("bar.sync", "barrier.cluster", "bar.warp.sync")
_WAITS: Final = ("mbarrier.try_wait", "mbarrier.test_wait")
_LINES_OF_A_SPIN: Final = 12
"""Maximum number of lines of a loop that only waits."""


def before_a_spin(text: str, change: Insertion) -> Insertion:
    r"""Move a barrier of threads out of a loop that waits for an mbarrier, to the line before the loop's label.

    Threads may run such a loop a different number of times, so not all threads may reach a barrier inside the loop.

    >>> text = '''.version 9.0
    ... .target sm_90
    ... .entry k() { .reg .pred %p; .reg .b32 b;
    ... W:
    ... mbarrier.try_wait.parity.shared.b64 %p, [b], 0;
    ... @!%p bra W;
    ... ret; }'''
    >>> before_a_spin(text, Insertion(5, "bar.sync 0;")).line, before_a_spin(text, Insertion(7, "bar.sync 0;")).line
    (4, 7)
    """
    if change.behind or not any(name in change.text for name in _BARRIERS):
        return change
    for function in read_module(text).functions.values():
        steps = function.instructions
        first = next((i for i, one in enumerate(steps) if one.line == change.line), None)
        if first is None or not steps[first].opcode.startswith(_WAITS):
            continue
        for branch in itertools.takewhile(lambda one: one.line <= change.line + _LINES_OF_A_SPIN, steps[first:]):
            for to, line in zip(branch.targets, branch.label_lines, strict=True):
                if to <= first and branch.line - line < _LINES_OF_A_SPIN:
                    return replace(change, line=line)
    return change


def only_missing(text: str, change: Insertion) -> Insertion:
    r"""Leave out the commit or the wait of a change if the code beside it has that instruction.

    The code up to the next branch counts: after a change that follows an instruction, and before a change that precedes
    one. The wait is then inserted after the commit.

    >>> text = '''.version 9.0
    ... .target sm_90
    ... .entry k() { .reg .b64 a; .reg .b32 b;
    ... cp.async.bulk.global.shared::cta.bulk_group [a], [b], 16;
    ... cp.async.bulk.commit_group;
    ... ret; }'''
    >>> made = only_missing(text, Insertion(4, _WAIT_STORE, behind=True))
    >>> made.line, made.text
    (5, 'cp.async.bulk.wait_group.read 0;')
    """
    if change.text not in (_WAIT_STORE, _WAIT_PRODUCT):
        return change
    commit, wait = (f"{part.rstrip(';')};" for part in change.text.split("; "))
    group = commit.partition(".commit_group")[0]
    for function in read_module(text).functions.values():
        steps = function.instructions
        at = next((i for i, one in enumerate(steps) if one.line == change.line), None)
        if at is None:
            continue
        beside = steps[at + 1 :] if change.behind else steps[:at][::-1]
        for one in itertools.takewhile(lambda one: not one.targets, beside):
            if one.opcode.startswith(f"{group}.commit_group"):
                return Insertion(one.line, wait, behind=True)
            if one.opcode.startswith(f"{group}.wait_group"):
                return replace(change, text=commit) if change.behind else Insertion(one.line, commit)
    return change


def barrier_changes(found: Diagnostic) -> list[tuple[Change, ...]]:
    """The changes that correct a wrong number of bytes, arrivals or registers."""
    change = found.facts.get("change")
    return [(Substitution(*change),)] if isinstance(change, tuple) else []


CHANGES: Final[dict[str, Callable[[Diagnostic], list[tuple[Change, ...]]]]] = {
    **dict.fromkeys(CURES, changes_of),
    **dict.fromkeys(
        (
            "hang",
            "more bytes than expected",
            "phase completed early",
            "expected bytes are missing",
            "register count",
            "register direction",
            "register pool",
            "released before the read",
            "arrival not ordered",
        ),
        barrier_changes,
    ),
}
"""Rule -> function that returns the changes that may cure a finding."""


def with_changes(text: str, found: Sequence[Diagnostic], rerun: Rerun, sources: Mapping[int, str]) -> list[Diagnostic]:
    """Try changes for the first finding of each rule, and add the changes that fix it to its `fixes`.

    A change fixes a finding if the run of the changed text ends, has fewer findings of this rule, and has no new error.

    Args:
        sources: source line of each PTX line.
    """
    made = list(found)
    left = MAX_RUNS
    seen: set[str] = set()

    def limited(changed_text: str) -> Sequence[Diagnostic] | None:
        nonlocal left
        left -= 1
        return rerun(changed_text) if left >= 0 else None

    for place, one in enumerate(found):
        if one.rule in seen or one.rule not in CHANGES:
            continue
        seen.add(one.rule)
        cure = _cure(text, one, found, limited)
        if cure is not None:
            change, after = cure
            said = "; ".join(part.told(sources) for part in change)
            cleared = {CLEARED: True} if not _errors(after) and sum(_errors(found).values()) > 1 else {}
            made[place] = replace(one, fixes=(*one.fixes, said), facts={**one.facts, **cleared})
    return made


Cure = tuple[tuple[Change, ...], "Sequence[Diagnostic]"]
"""A change that fixes a finding, and the findings of a run with this change."""


def _cure(text: str, one: Diagnostic, found: Sequence[Diagnostic], rerun: Rerun) -> Cure | None:
    """Try the changes of a finding. If none of them fixes it, try them at several copies of the code."""
    failed: list[tuple[int, tuple[Change, ...], Sequence[Diagnostic]]] = []
    for number, change in enumerate(_variants(text, one)):
        after = rerun(changed(text, change))
        if after is not None:
            if _cures(one, found, after):
                return change, after
            failed.append((number, change, after))
    for number, change, after in failed:
        more = _with_a_copy(text, change, number, one, after)
        while more is not None:
            last = rerun(changed(text, more))
            if last is None:
                break
            if _cures(one, found, last):
                return more, last
            more = _with_a_copy(text, more, number, one, last)
    return None


MAX_COPIES: Final = 4
"""Maximum number of copies of an instruction in an unrolled loop that one change is inserted at."""


def _with_a_copy(
    text: str, change: tuple[Change, ...], number: int, one: Diagnostic, after: Sequence[Diagnostic]
) -> tuple[Change, ...] | None:
    """Return a change that also changes another copy of the code, as an unrolled loop has it; None if the change did
    not move the finding to another copy.

    Args:
        number: the number of the variant that made the change. one: the finding. after: the findings after the change.
    """
    moved = next((other for other in after if other.rule == one.rule), None)
    if moved is None or len(change) >= MAX_COPIES or any(isinstance(part, Substitution) for part in change):
        return None
    origins = _numbered(text, change)
    lines = {
        name: origins[line - 1][0] for name in ("line", "other_line") if isinstance(line := moved.facts.get(name), int)
    }
    if 0 in lines.values():
        return None
    copy = next(itertools.islice(_variants(text, replace(moved, facts={**moved.facts, **lines})), number, None), ())
    texts = {part.text for part in change if isinstance(part, Insertion)}
    new = [part for part in copy if isinstance(part, Insertion) and part not in change and part.text in texts]
    return (*change, *new) if new else None


def _variants(text: str, found: Diagnostic) -> Iterator[tuple[Change, ...]]:
    """Yield the changes of a finding. Before a change that repeats an instruction of the code beside it, yield the
    change without this instruction; before a barrier inside a branch or a loop, yield a barrier outside of it.
    """
    other = found.facts.get("other_line")
    yield from _moved_arrivals(text, found)
    for parts in CHANGES[found.rule](found):
        made = [
            tuple(only_missing(text, part) if isinstance(part, Insertion) else _operand(text, part) for part in parts),
            tuple(before_a_spin(text, part) if isinstance(part, Insertion) else _operand(text, part) for part in parts),
        ]
        if isinstance(other, int):
            out = tuple(_outside(text, part, other) if isinstance(part, Insertion) else part for part in made[0])
            made.insert(0, out)
        yield from dict.fromkeys(made)


def _moved_arrivals(text: str, found: Diagnostic) -> Iterator[tuple[Change, ...]]:
    """Yield the changes that move an early arrival behind the read, at the end of the read's block or right after it,
    or that remove an arrival that nothing orders."""
    line, released = found.facts.get("line"), found.facts.get("released_line")
    at = line if found.rule == "arrival not ordered" else released
    for function in parse_program(text).functions if isinstance(at, int) and isinstance(line, int) else ():
        places = {one.line: block for block in function.blocks for one in block.statements}
        if at not in places or line not in places:
            continue
        arrival = next(one for one in places[at].statements if one.line == at)
        source = text.split("\n")[at - 1]
        start = max(source.find(arrival.predicate or arrival.opcode), 0)
        written = source[start : source.find(";", start) + 1]
        if not written or arrival.opcode not in written:
            return
        removal = Substitution(at, written, "")
        if released is None:
            yield (removal,)
            return
        moved = f"{_condition(function, places[at])} {written}".strip() if not arrival.predicate else written
        last = places[line].statements[-1]
        jumps = last.opcode.partition(".")[0] in ("bra", "brx", "ret", "exit")
        yield (removal, Insertion(last.line, moved, behind=not jumps))
        yield (removal, Insertion(line, moved, behind=True))
        return


def _condition(function: Function, block: Block) -> str:
    """Return the predicate that lets a thread enter a block that a branch skips; '' if no branch skips only it."""
    blocks = function.blocks
    if len(block.before) != 1 or len(block.after) != 1:
        return ""
    first = block.before[0]
    last = blocks[first].statements[-1]
    if not last.predicate or block.after[0] not in blocks[first].after:
        return ""
    return opposite(last.predicate) if blocks[first + 1] is block else last.predicate


def _operand(text: str, change: Substitution) -> Substitution:
    r"""Replace the last operand of an instruction if it is a register that contains the old number.

    >>> text = ".version 9.0\n.target sm_90\n.entry k() { .reg .b32 %r<2>;\nmbarrier.init.shared.b64 [0], %r1;\nret; }"
    >>> _operand(text, Substitution(4, "2", "1"))
    Substitution(line=4, old='%r1', new='1')
    """
    for function in read_module(text).functions.values():
        for one in function.instructions:
            if one.line == change.line and one.operands and immediate(one.operands[-1].text) is None:
                last = one.operands[-1]
                if last.kind is OperandKind.REGISTER and change.old not in [each.text for each in one.operands]:
                    return replace(change, old=last.text)
    return change


def _outside(text: str, change: Insertion, other: int) -> Insertion:
    """Move a barrier of threads out of the branches and loops that do not contain the other instruction."""
    if change.behind or not any(name in change.text for name in _BARRIERS):
        return change
    place = meeting_place(text, change.line, other)
    return change if place is None else replace(change, line=place[0], behind=place[1])


def _cures(one: Diagnostic, before: Sequence[Diagnostic], after: Sequence[Diagnostic]) -> bool:
    """Whether a change fixes a finding. A run that hangs where it did not hang before proves nothing, because it ends
    too early.
    """
    rules = _errors(after)
    if any(count > _errors(before).get(rule, 0) for rule, count in rules.items()) or _hangs(after) - _hangs(before):
        return False
    return sum(x.rule == one.rule for x in after) < sum(x.rule == one.rule for x in before)


def _hangs(found: Sequence[Diagnostic]) -> Counter[tuple[str, str]]:
    """Count the hangs by instruction and cause, and the other waits that follow from them."""
    hangs = [one for one in found if one.rule == "hang"]
    counts = Counter((str(one.facts.get("instruction")), str(one.facts.get("cause"))) for one in hangs)
    counts["", "also waiting"] = sum(name.startswith("also waiting") for one in hangs for name in one.facts)
    return counts


def _errors(found: Sequence[Diagnostic]) -> Mapping[str, int]:
    counts: dict[str, Any] = {}
    for one in found:
        if one.severity == "error":
            counts[one.rule] = counts.get(one.rule, 0) + 1
    return counts


# ---- the place where threads meet ------------------------------------------------------------------------------------

MAX_BLOCKS: Final = 2048
"""Maximum number of blocks of a function whose paths are followed."""


def meeting_place(text: str, line: int, other: int) -> tuple[int, bool] | None:
    r"""Return the last place where threads meet after one instruction and before another: a line, and whether the place
    is after the instruction of this line. The result is None if there is no such place outside the block of the later
    instruction, or if the instructions are not in one function.

    Args:
        text: the PTX. line: the line of the later instruction. other: the line of the earlier instruction.

    >>> text = '''.version 9.0
    ... .target sm_90
    ... .entry k() { .reg .pred %p<3>; .reg .b32 %r<3>; .shared .b32 b;
    ... st.shared.u32 [b], %r1;
    ... setp.eq.u32 %p1, %r1, 0;
    ... @%p1 bra END;
    ... L: setp.eq.u32 %p2, %r1, 9;
    ... ld.shared.u32 %r2, [b];
    ... @%p2 bra L;
    ... END: ret; }'''
    >>> meeting_place(text, 8, 4)
    (6, False)
    """
    for function in parse_program(text).functions:
        places = {one.line: number for number, block in enumerate(function.blocks) for one in block.statements}
        if line in places and other in places:
            if len(function.blocks) > MAX_BLOCKS:
                return None
            return _between(function, places[line], places[other], other)
    return None


def _between(function: Function, here: int, there: int, other: int) -> tuple[int, bool] | None:
    """Find the last meeting place between two blocks; `other` is the line of the instruction in the earlier block."""
    blocks = function.blocks
    everything = frozenset(range(len(blocks)))
    entering = [everything if block.before else frozenset[int]() for block in blocks]
    entering[0] = frozenset()
    dominating = function.settled(entering, lambda number, held: held | {number}, operator.and_)
    for number in sorted({*dominating[here], here}, key=lambda one: len(dominating[one]), reverse=True):
        past = function.reached(there, number) - {number}
        if number != there and (here in past or any(not blocks[end].after for end in past)):
            continue  # a path from the earlier instruction passes this block by
        if number != there and number in function.reached(number, there):
            continue  # a loop without the earlier instruction
        if number == here:
            return None
        last = blocks[number].statements[-1]
        jumps = last.opcode.partition(".")[0] in ("bra", "brx")
        return None if jumps and last.line == other else (last.line, not jumps)
    return None
