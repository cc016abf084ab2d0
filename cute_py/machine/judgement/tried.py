"""Try changes to the PTX of a kernel, and offer a change only if a run of the changed text no longer has the finding.

For each rule, a function in `CHANGES` returns the changes that may fix a finding, the most likely first. A change
inserts lines before or after instructions of the text. `with_changes` tries the changes one after another, up to a
limit of runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cute_py.diagnostics import Diagnostic
from cute_py.notation.source_lines import line_text
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
    "initialisation not known": (("before", "bar.sync 0;"), ("behind other", "bar.sync 0;")),
    "invalidated while in use": (("before", "bar.sync 0;"),),
    "registers not fenced": (("before", "wgmma.fence.sync.aligned;"),),
    "registers in use": (("before", _WAIT_PRODUCT),),
    "store under way at exit": (("behind", _WAIT_STORE),),
    "exit before a peer is done": (("behind", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"),),
}  # fmt: skip
"""Rule -> (place, text to insert): before or after the instruction of the finding, or after the other instruction.
{map} is the address of the tensor map that the instruction reads."""

MAX_RUNS: Final = 4
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
        return f"replace `{self.old}` with `{self.new}` in {line_text(self.line, sources.get(self.line, ''))}"


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
    lines = text.split("\n")
    for part in changes:
        if isinstance(part, Substitution):
            before, found, after = lines[part.line - 1].rpartition(part.old)
            lines[part.line - 1] = before + (part.new if found else "") + after
    insertions = [one for one in changes if isinstance(one, Insertion)]
    for one in sorted(insertions, key=lambda one: (one.line, one.behind), reverse=True):
        at = one.line - 1
        if one.behind:
            while at < len(lines) - 1 and ";" not in lines[at].split("//")[0]:
                at += 1
            at += 1
        lines.insert(at, one.text)
    return "\n".join(lines)


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


_OF_ALL_THREADS: Final = ("bar.sync", "barrier.cluster")
_WAITS: Final = ("mbarrier.try_wait", "mbarrier.test_wait")
_LINES_OF_A_SPIN: Final = 12
"""Maximum number of lines of a loop that only waits."""


def before_a_spin(text: str, change: Insertion) -> Insertion:
    r"""Move a barrier of all threads out of a loop that waits for an mbarrier, to the line before the loop's label.

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
    if change.behind or not any(name in change.text for name in _OF_ALL_THREADS):
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
    for place, one in enumerate(found):
        if one.rule in seen or one.rule not in CHANGES:
            continue
        seen.add(one.rule)
        for parts in _variants(text, CHANGES[one.rule](one)):
            change = [before_a_spin(text, part) if isinstance(part, Insertion) else part for part in parts]
            if not left:
                return made
            left -= 1
            after = rerun(changed(text, change))
            if after is not None and _cures(one, found, after):
                said = "; ".join(part.told(sources) for part in change)
                cleared = {CLEARED: True} if not _errors(after) and sum(_errors(found).values()) > 1 else {}
                made[place] = replace(one, fixes=(*one.fixes, said), facts={**one.facts, **cleared})
                break
    return made


def _variants(text: str, changes: Sequence[tuple[Change, ...]]) -> Iterator[tuple[Change, ...]]:
    """Yield changes; before each one that repeats an instruction of the code beside it, the change without it."""
    for parts in changes:
        shorter = tuple(only_missing(text, part) if isinstance(part, Insertion) else part for part in parts)
        yield from (shorter, parts) if shorter != parts else (parts,)


def _cures(one: Diagnostic, before: Sequence[Diagnostic], after: Sequence[Diagnostic]) -> bool:
    rules = _errors(after)
    if any(count > _errors(before).get(rule, 0) for rule, count in rules.items()):
        return False
    return sum(x.rule == one.rule for x in after) < sum(x.rule == one.rule for x in before)


def _errors(found: Sequence[Diagnostic]) -> Mapping[str, int]:
    counts: dict[str, Any] = {}
    for one in found:
        if one.severity == "error":
            counts[one.rule] = counts.get(one.rule, 0) + 1
    return counts
