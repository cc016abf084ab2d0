"""Rules about the completion of copies: a bulk store is committed to a group that a wait covers, and a module with
loads waits on a barrier.

cp.async.bulk.wait_group N waits until at most the N most recent groups of its thread are pending. Therefore it covers a
group if the thread committed at least N groups after this group. The states of a store are followed on all paths from
the store to the end of the kernel.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Final

from cute_py.diagnostics import Diagnostic
from cute_py.errors import counted
from cute_py.ptx.flow import LOADS, STORES, Flow, Known, Place, also_at, line_facts, lines_text


def check_groups(flow: Flow) -> Iterator[Diagnostic]:
    """Find bulk stores that are not followed by a commit, or by a wait that covers their group, on any path."""
    stores = flow.of(*STORES)
    if not flow.function.entry or flow.calls:
        flow.leave("bulk store", "commit and wait: they may be in another function", stores)
        return
    commits, waits = flow.of("bulk.commit_group"), flow.of("bulk.wait_group")
    avoids = flow.avoiding(commits)
    uncommitted, doubtful = set[Place](), list[Known]()
    for one in stores:
        if not any(flow.comes_to(one.place, end.place) for end in commits):
            uncommitted.add(one.place)
            text = (
                f"{one.event.statement.opcode} is never committed to a bulk group: no path from it to the end of the "
                "kernel has a commit_group"
            )
            fix = "cp.async.bulk.commit_group after the stores"
            yield flow.broken("commit", one, text, "cp.async.bulk.commit_group", fix=fix)
        elif avoids(one.place):
            doubtful.append(one)
    reason = "commit: some paths from the store to the end of the kernel have no commit_group"
    flow.leave("bulk store", reason, doubtful)
    flow.tally.judge("bulk store", "commit", len(stores) - len(doubtful))
    groups = _Groups(flow, commits, waits)
    doubtful = []
    for one in stores:
        after = [end for end in waits if flow.comes_to(one.place, end.place)]
        if after and one.place in uncommitted:
            continue  # no group that a wait could cover
        covered, left = groups.outcomes(one)
        if covered and left:
            doubtful.append(one)
            continue
        flow.tally.judge("bulk store", "wait")
        if not covered:
            text = f"{one.event.statement.opcode} is never waited for: {_why_uncovered(flow, one, commits, after)}"
            where = "after the commit_group, " if after else ""
            fix = f"cp.async.bulk.wait_group.read 0 {where}before the kernel ends"
            yield flow.broken("wait", one, text, "cp.async.bulk.wait_group", fix=fix)
    reason = "wait: on some paths from the store to the end of the kernel, no wait_group covers its group"
    flow.leave("bulk store", reason, doubtful)


def _why_uncovered(flow: Flow, store: Known, commits: list[Known], waits: list[Known]) -> str:
    """Describe why none of the waits that follow a store covers its group."""
    if not waits:
        return "no path from it to the end of the kernel has a wait_group"
    own = [one for one in commits if flow.comes_to(store.place, one.place)]
    late = [one for one in waits if any(flow.comes_to(commit.place, one.place) for commit in own)]
    sources = flow.tally.sources
    if not late:
        return (
            f"the wait_group at {lines_text([one.line for one in waits], sources)} precedes the commit_group at "
            f"{lines_text([one.line for one in own], sources)}, and covers only groups that are committed before it"
        )
    left = min(one.constant("groups") or 0 for one in late)
    return (
        f"wait_group {left} at {lines_text([one.line for one in late], sources)} leaves the "
        f"{counted(left, 'most recent group')} pending, and the group of the store is one of them; must leave at most "
        "as many groups as the kernel commits after this group"
    )


_MOST_GROUPS: Final = 64
"""Maximum number of pending groups that are counted. A wait that leaves more groups pending is not judged."""
_OPEN: Final = -1
"""State of a store before its group is committed. The other states are the number of groups that are committed after
its group."""


class _Groups:
    """The bulk groups of a function: which stores a wait covers, on the paths to the end of the function.

    A wait_group N covers a group if at least N groups are committed after this group and before the wait. An
    instruction under the predicate of the store runs if the store runs; under another predicate, it may run.
    """

    def __init__(self, flow: Flow, commits: list[Known], waits: list[Known]) -> None:
        self._flow = flow
        self._steps: dict[int, list[Known]] = collections.defaultdict(list)
        for one in sorted([*commits, *waits], key=lambda one: one.place):
            self._steps[one.event.block].append(one)
        self._most = min(max((one.constant("groups") or 0 for one in waits), default=0), _MOST_GROUPS)
        self._found: dict[tuple[int, int, str], tuple[bool, bool]] = {}

    def outcomes(self, store: Known) -> tuple[bool, bool]:
        """Return whether a wait covers the group of a store on some path, and whether none does on some path."""
        block, predicate = store.event.block, store.event.statement.predicate
        steps = self._steps.get(block, [])
        first = next((i for i, one in enumerate(steps) if one.place > store.place), len(steps))
        if (block, first, predicate) not in self._found:
            self._found[block, first, predicate] = self._search(block, first, predicate)
        return self._found[block, first, predicate]

    def _search(self, block: int, first: int, predicate: str) -> tuple[bool, bool]:
        covered, left = False, False
        states, done = self._leaving(self._steps.get(block, [])[first:], {_OPEN}, predicate)
        covered |= done
        seen: set[tuple[int, int]] = set()
        todo = [(block, state) for state in states]
        while todo:
            number, state = todo.pop()
            left |= self._flow.ends(number)
            for after in self._flow.function.blocks[number].after:
                if (after, state) not in seen:
                    seen.add((after, state))
                    states, done = self._leaving(self._steps.get(after, []), {state}, predicate)
                    covered |= done
                    todo += [(after, one) for one in states]
        return covered, left

    def _leaving(self, steps: list[Known], states: set[int], predicate: str) -> tuple[set[int], bool]:
        """Return the states after these commits and waits, and whether a wait covers the group."""
        covered = False
        for one in steps:
            groups = one.constant("groups") or 0
            if one.row == "bulk.commit_group":
                made = {min(state + 1, self._most) for state in states}
            elif groups > _MOST_GROUPS:
                made, covered = states, covered or max(states, default=_OPEN) > _OPEN
            else:
                made = {state for state in states if state < max(groups, _OPEN + 1)}
                covered |= len(made) < len(states)
            optional = one.event.statement.predicate not in ("", predicate)
            states = states | made if optional else made
        return states, covered


_LOAD_ROWS: Final = {"load": "cp.async.bulk.tensor", "bulk.load": "cp.async.bulk"}


def check_load_waits(flow: Flow) -> Iterator[Diagnostic]:
    """Find loads in a module that has no wait on any barrier."""
    loads = flow.of(*LOADS)
    if flow.waits or not loads:
        return
    if not flow.function.entry or flow.calls:
        flow.leave("load", "wait: it may be in another function", loads)
        return
    flow.tally.judge("load", "wait", len(loads))
    text = (
        f"{loads[0].event.statement.opcode} is never waited for: no instruction of the module waits on an mbarrier"
        f"{also_at(loads)}"
    )
    fix = "mbarrier.try_wait.parity on the barrier of the load, before its bytes are read"
    source = f"{_LOAD_ROWS[loads[0].row]}: mbarrier-based completion mechanism"
    yield flow.broken("wait", loads[0], text, source, fix=fix, facts=line_facts(loads))
