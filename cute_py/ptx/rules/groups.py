"""Rules about the completion of copies: a bulk store is committed to a group that a wait covers, and a kernel with
loads waits on a barrier.

cp.async.bulk.wait_group N waits until at most the N most recent groups of its thread are pending. Therefore it covers a
group if the thread committed at least N groups after this group. The states of a store are followed on all paths from
the store to the end of the kernel.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cute_py.diagnostics import Diagnostic
from cute_py.errors import counted
from cute_py.ptx.flow import LOADS, STORES, Flow, Known, Place, also_at, line_facts, lines_text, opposite


def check_groups(flow: Flow) -> Iterator[Diagnostic]:
    """Find bulk stores that are not followed by a commit, or by a wait that covers their group, on any path."""
    stores = flow.of(*STORES)
    if not flow.function.entry or flow.calls:
        flow.leave("bulk store", "commit and wait: they may be in another function", stores)
        return
    groups = _Groups(flow, flow.of("bulk.commit_group"), flow.of("bulk.wait_group"))
    endless, uncommitted, uncovered = list[Known](), list[Known](), list[Known]()
    for one in stores:
        walk = groups.walk(one)
        committed, covered = walk.committed, walk.covered
        if not covered.found and not covered.missed:
            endless.append(one)
            continue
        if committed.found and committed.missed:
            uncommitted.append(one)
        else:
            flow.tally.judge("bulk store", "commit")
        if not committed.found:
            text = (
                f"{one.event.statement.opcode} is never committed to a bulk group: "
                f"{groups.absence(one, groups.commits, 'commit_group')}"
            )
            fix = "cp.async.bulk.commit_group after the stores"
            yield flow.broken("commit", one, text, "cp.async.bulk.commit_group", fix=fix)
        after = [end for end in groups.waits if flow.comes_to(one.place, end.place)]
        if after and not committed.found:
            continue  # no group that a wait could cover
        if covered.found and covered.missed:
            uncovered.append(one)
            continue
        flow.tally.judge("bulk store", "wait")
        if not covered.found:
            text = f"{one.event.statement.opcode} is never waited for: {groups.gap(one, walk.run)}"
            where = "after the commit_group, " if after else ""
            fix = f"cp.async.bulk.wait_group.read 0 {where}before the kernel ends"
            yield flow.broken("wait", one, text, "cp.async.bulk.wait_group", fix=fix)
    paths = "paths from the store to the end of the kernel"
    flow.leave("bulk store", f"commit and wait: there are no {paths}, because the kernel traps or never ends", endless)
    flow.leave("bulk store", f"commit: on some {paths}, no commit_group is certain to run", uncommitted)
    flow.leave("bulk store", f"wait: on some {paths}, no wait_group is certain to cover its group", uncovered)


_MOST_GROUPS: Final = 64
"""Maximum number of pending groups that are counted. A wait that leaves more groups pending is not judged."""
_OPEN: Final = -1
"""State of a store before its group is committed. The other states are the number of groups that are committed after
its group."""


class _State(NamedTuple):
    """The group of a store, and whether the store's predicate still has the value that it had at the store."""

    newer: int
    same: bool


class _Outcome(NamedTuple):
    """Whether a path from a store completes it (`found`), and whether a path to the end of the function may not
    (`missed`)."""

    found: bool = False
    missed: bool = False


@dataclass(slots=True)
class _Walk:
    """A walk from a store to the end of the function: whether the store is committed, whether a wait covers its group,
    and the commits and waits that may run."""

    committed: _Outcome = field(default_factory=_Outcome)
    covered: _Outcome = field(default_factory=_Outcome)
    run: set[Place] = field(default_factory=set)


class _Groups:
    """The bulk groups of a function: which stores are committed, and which stores a wait covers, on the paths to the
    end of the function.

    A wait_group N covers a group if at least N groups are committed after this group and before the wait. As long as no
    instruction writes the predicate of the store, an instruction under this predicate runs, and an instruction under
    the opposite predicate does not run. An instruction under another predicate may run.
    """

    def __init__(self, flow: Flow, commits: list[Known], waits: list[Known]) -> None:
        self.commits, self.waits = commits, waits
        self._flow = flow
        self._steps: dict[int, list[Known]] = collections.defaultdict(list)
        for one in sorted([*commits, *waits], key=lambda one: one.place):
            self._steps[one.event.block].append(one)
        self._most = min(max((one.constant("groups") or 0 for one in waits), default=0), _MOST_GROUPS)
        self._found: dict[tuple[int, int, str, int], _Walk] = {}

    def walk(self, store: Known) -> _Walk:
        """Follow the paths from a store to the end of the function."""
        block, predicate = store.event.block, store.event.statement.predicate
        steps = self._steps.get(block, [])
        first = next((i for i, one in enumerate(steps) if one.place > store.place), len(steps))
        key = (block, first, predicate, self._flow.writes_before(store.place, predicate))
        if key not in self._found:
            self._found[key] = self._followed(*key)
        return self._found[key]

    def absence(self, store: Known, ends: list[Known], name: str) -> str:
        """Describe why no commit, or no wait, of the function runs after a store."""
        after = [one for one in ends if self._flow.comes_to(store.place, one.place)]
        if not after:
            return f"no path from it to the end of the kernel has a {name}"
        at = lines_text([one.line for one in after], self._flow.tally.sources)
        return f"the {name} at {at} runs only if the store does not run"

    def gap(self, store: Known, run: set[Place]) -> str:
        """Describe why none of the waits covers the group of a store."""
        flow, sources = self._flow, self._flow.tally.sources
        waits = [one for one in self.waits if one.place in run]
        if not waits:
            return self.absence(store, self.waits, "wait_group")
        own = [one for one in self.commits if one.place in run]
        late = [one for one in waits if any(flow.comes_to(commit.place, one.place) for commit in own)]
        if not late:
            return (
                f"the wait_group at {lines_text([one.line for one in waits], sources)} precedes the commit_group at "
                f"{lines_text([one.line for one in own], sources)}, and covers only groups that are committed before it"
            )
        left = min(one.constant("groups") or 0 for one in late)
        return (
            f"wait_group {left} at {lines_text([one.line for one in late], sources)} leaves the "
            f"{counted(left, 'most recent group')} pending, and the group of the store is one of them; the wait_group "
            "must leave at most as many groups as the kernel commits after this group"
        )

    def _followed(self, block: int, first: int, predicate: str, written: int) -> _Walk:
        walk = _Walk()
        steps = self._steps.get(block, [])[first:]
        todo = [(block, one) for one in self._leaving(block, steps, _State(_OPEN, True), predicate, written, walk)]
        seen: set[tuple[int, _State]] = set()
        while todo:
            number, state = todo.pop()
            if self._flow.ends(number):
                walk.covered = walk.covered._replace(missed=True)
                walk.committed = walk.committed._replace(missed=walk.committed.missed or state.newer == _OPEN)
            for after in self._flow.function.blocks[number].after:
                if (after, state) not in seen:
                    seen.add((after, state))
                    steps = self._steps.get(after, [])
                    todo += [(after, one) for one in self._leaving(after, steps, state, predicate, 0, walk)]
        return walk

    def _leaving(
        self, block: int, steps: list[Known], state: _State, predicate: str, written: int, walk: _Walk
    ) -> set[_State]:
        """Return the states after these commits and waits, and record what completes the store in the walk."""
        writes = self._flow.writes_before
        newer = {state.newer}
        for one in steps:
            same = state.same and writes(one.place, predicate) == written
            own = one.event.statement.predicate
            if same and own and own == opposite(predicate):
                continue
            walk.run.add(one.place)
            groups = one.constant("groups") or 0
            if one.row == "bulk.commit_group":
                made = {min(held + 1, self._most) for held in newer}
                walk.committed = walk.committed._replace(found=walk.committed.found or _OPEN in newer)
            else:
                made = newer if groups > _MOST_GROUPS else {held for held in newer if held < max(groups, _OPEN + 1)}
                covered = max(newer, default=_OPEN) > _OPEN if groups > _MOST_GROUPS else len(made) < len(newer)
                walk.covered = walk.covered._replace(found=walk.covered.found or covered)
            sure = not own or (same and own == predicate)
            newer = made if sure else newer | made
        size = len(self._flow.function.blocks[block].statements)
        same = state.same and writes((block, size), predicate) == written
        return {_State(held, same) for held in newer}


_LOAD_ROWS: Final = {"load": "cp.async.bulk.tensor", "bulk.load": "cp.async.bulk"}


def check_load_waits(flow: Flow) -> Iterator[Diagnostic]:
    """Find loads in a kernel that has no wait on any barrier."""
    loads = flow.of(*LOADS)
    if flow.waits:
        flow.leave("load", "wait: it is not known whether a wait of the function waits for the load", loads)
        return
    if not loads:
        return
    if not flow.function.entry or flow.calls:
        flow.leave("load", "wait: it may be in another function", loads)
        return
    flow.tally.judge("load", "wait", len(loads))
    text = (
        f"{loads[0].event.statement.opcode} is never waited for: no instruction of the kernel waits on an mbarrier"
        f"{also_at(loads)}"
    )
    fix = "mbarrier.try_wait.parity on the barrier of the load, before its bytes are read"
    source = f"{_LOAD_ROWS[loads[0].row]}: mbarrier-based completion mechanism"
    yield flow.broken("wait", loads[0], text, source, fix=fix, facts=line_facts(loads))
