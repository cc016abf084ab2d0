"""The rule about barriers of a CTA (bar, barrier): all threads of the CTA must reach a barrier without a count, and all
threads of a warp must execute an aligned barrier together.

The rule computes which threads reach a barrier, if each branch around it depends only on the thread index and on
constants, or has the same condition in the whole CTA. It lists the other barriers as not judged.
"""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Iterator
from typing import Final, TypeAlias

from cute_py.diagnostics import Diagnostic
from cute_py.errors import counted
from cute_py.ptx.flow import MAX_BLOCK, Flow, Known, also_at, dimensions, line_facts
from cute_py.ptx.values import Event, Key, Value

NOUN: Final = "thread barrier"
_WARP: Final = 32
_SOURCE: Final = "bar, barrier"
_FIX: Final = (
    "move the barrier to a place that all threads of the CTA reach, or give it a number and a count of threads"
)
_THREAD_REGISTERS: Final = ("%tid", "%laneid", "%warpid")

_Threads: TypeAlias = frozenset[int]
_Sides: TypeAlias = dict[int, _Threads | None]
"""The first block of each side of a branch -> the threads that take it; None if the condition is not known."""


def is_cta_barrier(opcode: str) -> bool:
    """Whether an instruction arrives at a barrier of a CTA.

    >>> [is_cta_barrier(name) for name in ("bar.sync", "barrier.cta.arrive", "bar.warp.sync", "barrier.cluster.wait")]
    [True, True, False, False]
    """
    first, _, rest = opcode.partition(".")
    return first in ("bar", "barrier") and not rest.startswith(("warp", "cluster"))


def check_cta_barriers(flow: Flow) -> Iterator[Diagnostic]:
    """Find barriers that only some threads of a CTA, or of a warp, reach."""
    barriers = [one for one in flow.values.events if is_cta_barrier(one.statement.opcode)]
    if not flow.function.entry:
        _leave(flow, "threads: the callers of the function determine which threads reach it", barriers)
        return
    if not barriers:
        return
    reach = _Reach(flow)
    reached = [reach.threads(one) for one in barriers]
    some = [(_number(one), found) for one, (found, _) in zip(barriers, reached, strict=True) if found != reach.everyone]
    copies: dict[tuple[str, str], list[Event]] = collections.defaultdict(list)
    texts: dict[tuple[str, str], str] = {}
    for one, (found, branch) in zip(barriers, reached, strict=True):
        if found is None:
            reason = "threads: a condition that is known only at run time determines which threads reach it"
            _leave(flow, reason, [one])
            continue
        missing = reach.everyone - found
        split = len({thread // _WARP for thread in found} & {thread // _WARP for thread in missing})
        name = one.statement.opcode
        if missing and split and (name.startswith("bar.") or "aligned" in name.split(".")):
            text = f"all threads of a warp must execute {name} together, but only some threads of " + (
                f"{counted(split, 'warp')} reach it ({reach.text(found)})"
            )
        elif _has_count(one):
            _leave(flow, "threads: its count must be the number of threads that arrive at the same barrier", [one])
            continue
        elif missing and any(
            number in (_number(one), None) and (threads is None or (threads & missing and not threads & found))
            for number, threads in some
        ):
            _leave(flow, "threads: other threads may reach another instruction of the same barrier", [one])
            continue
        else:
            text = f"{name} waits for all threads of the CTA, but only {reach.text(found)} can reach it"
        flow.tally.judge(NOUN, "threads")
        if missing:
            key = (one.statement.text, one.statement.source)
            texts.setdefault(key, f"{text}; {_cause(branch, one)}")
            copies[key].append(one)
    for key, events in copies.items():
        ones = [Known(event, "bar", {}, {}) for event in events]
        facts = line_facts(ones)
        yield flow.broken(
            "barrier_threads", ones[0], texts[key] + also_at(ones), _SOURCE, fix=_FIX, warning=True, facts=facts
        )


def _leave(flow: Flow, reason: str, ones: list[Event]) -> None:
    flow.tally.leave(NOUN, reason, [one.statement.line for one in ones])


def _cause(branch: Event | None, one: Event) -> str:
    """Describe the condition that depends on the thread index."""
    if branch is None or branch is one:
        return f"its predicate {one.statement.predicate.lstrip('@')} depends on the thread index"
    return f"the branch at {branch.statement.where} depends on the thread index"


def _arguments(one: Event) -> list[Value | None]:
    """The number and the count of a barrier, without the operands of a reduction."""
    if "red" in one.statement.opcode.split("."):
        return list(one.values[1:-1])
    return list(one.values)


def _number(one: Event) -> int | None:
    """The number of a barrier; None if it is known only at run time."""
    first = next(iter(_arguments(one)), None)
    return first.offset if first is not None and not first.base else None


def _has_count(one: Event) -> bool:
    return len(_arguments(one)) > 1


class _Reach:
    """The threads of a CTA that reach an instruction of a kernel.

    Attributes:
        everyone: the threads that a CTA may have.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        exact, most = (dimensions(flow.function, name) for name in (".reqntid", ".maxntid"))
        self._exact = exact is not None
        x, y, z = (*(exact or ()), 1, 1, 1)[:3]
        count = x * y * z if exact else min(math.prod(most) if most else MAX_BLOCK, MAX_BLOCK)
        self.everyone = frozenset(range(count if 0 < count <= MAX_BLOCK else 0))
        self._specials: list[dict[str, int]] = []
        for thread in sorted(self.everyone):
            known = {"%tid.x": thread, "%laneid": thread % _WARP}
            if exact:
                inside, place = divmod(thread, x)
                known |= {"%tid.x": place, "%tid.y": inside % y, "%tid.z": inside // y}
                known |= {"%ntid.x": x, "%ntid.y": y, "%ntid.z": z}
            self._specials.append(known)
        self._held: dict[Value, _Threads | None] = {}
        self._paths: dict[tuple[int, int], frozenset[int]] = {}
        self._branches: list[tuple[Event, _Sides]] = []
        blocks = flow.function.blocks
        for one in flow.values.events:
            block = blocks[one.block]
            if one.statement.opcode.startswith("bra") and len(block.after) == 2 and one.guard is not None:
                holds = self._where(one.guard, one.statement.predicate)
                taken, other = block.after
                if holds is None or (holds and holds != self.everyone):
                    self._branches.append(
                        (one, {taken: holds, other: None if holds is None else self.everyone - holds})
                    )
            elif one.statement.opcode.startswith("brx") and len(block.after) > 1:
                self._branches.append((one, dict.fromkeys(block.after)))

    def threads(self, one: Event) -> tuple[_Threads | None, Event | None]:
        """Return the threads that reach an instruction, None if they are not known, and the branch that separates them
        from other threads."""
        found, cause = self.everyone, None
        if one.statement.predicate:
            own = None if one.guard is None else self._where(one.guard, one.statement.predicate)
            if own is None:
                return None, None
            found, cause = (own, one) if own and own != self.everyone else (found, None)
        for branch, sides in self._branches:
            passing = [side for side in sides if one.block not in self._path(branch.block, side)]
            if not passing or len(passing) == len(sides):
                continue
            if not any(self._flow.ends(block) for side in passing for block in self._path(branch.block, side)):
                continue  # these threads trap, which ends the kernel
            for side in passing:
                threads = sides[side]
                if threads is None:
                    return None, None
                if found & threads:
                    found, cause = found - threads, branch
        return found, cause

    def text(self, threads: _Threads) -> str:
        """Text such as 'threads 0 to 15'; a CTA whose size is not known may have more threads."""
        listed = sorted(threads)
        if not listed:
            return "no threads"
        if len(listed) != listed[-1] - listed[0] + 1:
            known = f" of {len(self.everyone)}" if self._exact else ""
            return f"some threads (the first is {listed[0]})" if not known else f"{len(listed)}{known} threads"
        if len(listed) == 1:
            return f"thread {listed[0]}"
        if not self._exact and listed[-1] == len(self.everyone) - 1:
            return f"threads {listed[0]} and higher"
        return f"threads {listed[0]} to {listed[-1]}"

    def _path(self, branch: int, side: int) -> frozenset[int]:
        """Return the blocks that a side of a branch reaches, itself included, until it reaches the branch again."""
        if (branch, side) not in self._paths:
            beyond = self._flow.function.reached(side, branch) if side != branch else frozenset()
            self._paths[branch, side] = beyond | {side}
        return self._paths[branch, side]

    def _where(self, guard: Value, predicate: str) -> _Threads | None:
        """Return the threads whose predicate holds, and None for an unknown condition. A condition that is the same in
        the whole CTA gives all threads or no thread."""
        if guard not in self._held:
            self._held[guard] = self._computed(guard)
        found = self._held[guard]
        return found if found is None or not predicate.startswith("@!") else self.everyone - found

    def _computed(self, guard: Value) -> _Threads | None:
        values = self._flow.values
        roots, specials = values.roots(guard), values.specials(guard)
        own = {name for name in specials if name.startswith(_THREAD_REGISTERS)}
        if not own and all(_is_uniform(key) for key in roots):
            return self.everyone
        if roots or not specials <= set(next(iter(self._specials), ())):
            return None
        numbers = [self._flow.values.number(guard, known) for known in self._specials]
        if None in numbers:
            return None
        return frozenset(itertools.compress(range(len(numbers)), numbers))


def _is_uniform(key: Key) -> bool:
    """Whether a source of a value is the same for all threads of a CTA."""
    return key[0] == "symbol" or str(key[0]).startswith(("ld.param", "ld.const"))
