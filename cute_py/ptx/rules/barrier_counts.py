"""The rule about the counts of barriers of a CTA: the threads that reach a barrier with a count must be as many as it
counts.

A finding is an error only if the text of the kernel proves it. It is a warning if a thread may arrive several times, if
a condition that is known only at run time determines which threads wait, or if the kernel does not declare its block.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cute_py.diagnostics import Diagnostic
from cute_py.ptx.flow import Flow, Known, also_at, line_facts, lines_text
from cute_py.ptx.rules.cta_barriers import (
    NOUN,
    SOURCE,
    barrier_arguments,
    cta_barriers,
    has_count,
    is_divided,
    leave_barriers,
)
from cute_py.ptx.rules.reach import Reach, Threads
from cute_py.ptx.values import Event, reinterpreted
from cute_py.targets import WARP

_RULE: Final = "barrier_count"
_FIX: Final = "give the instructions of one round the same count: the number of threads that arrive"
MAX_NUMBER: Final = 15
"""Largest number of a barrier of a CTA."""
_OTHER: Final = "another instruction, whose number is known only at run time, may be of the same barrier"


def check_barrier_counts(flow: Flow, reach: Reach) -> Iterator[Diagnostic]:
    """Find counts of barriers of a CTA that no round can have."""
    if flow.function.entry:
        yield from _Counts(flow, reach, cta_barriers(flow)).check()


@dataclass(frozen=True, slots=True)
class _Part:
    """The threads that reach an instruction with one number of a barrier and one count.

    count: None if the kernel does not declare the number of its threads. exact: the threads that reach it, None if they
    are not known. most: the threads that may reach it.
    """

    one: Event
    count: int | None
    exact: Threads | None
    most: Threads

    @property
    def waits(self) -> bool:
        """Whether the threads wait for the end of the round."""
        return "arrive" not in self.one.statement.opcode.split(".")


class _Counts:
    """The counts of the barriers of a kernel."""

    def __init__(self, flow: Flow, reach: Reach, ones: list[Event]) -> None:
        self._flow, self._reach = flow, reach
        self._divided: list[Event] = []
        self._barriers: dict[int, list[_Part]] = collections.defaultdict(list)
        self._unknown: list[Event] = []
        self._counted = [one for one in ones if has_count(one)]
        for one in ones:
            found, most = reach.threads(one)[0], reach.most(one)
            if is_divided(reach, one, found):
                self._divided.append(one)
            number, count = (*barrier_arguments(one), None, None)[:2]
            numbers = _in_register(reach.numbers(number))
            counts: Sequence[int | None] | None = _in_register(reach.numbers(count))
            if not has_count(one):
                counts = [len(reach.everyone) if reach.exact else None] * len(reach.everyone)
            if numbers is None or counts is None:
                self._unknown.append(one)
                continue
            for key in dict.fromkeys((numbers[thread], counts[thread]) for thread in sorted(most)):
                own = frozenset(thread for thread in most if (numbers[thread], counts[thread]) == key)
                self._barriers[key[0]].append(_Part(one, key[1], None if found is None else found & own, own))

    def check(self) -> Iterator[Diagnostic]:
        """Find counts that no round can have, and list the counts that are not judged."""
        if not self._counted:
            return
        if self._flow.calls:
            leave_barriers(self._flow, "count: another function may reach the same barrier", self._counted)
            return
        for number, parts in sorted(self._barriers.items()):
            counted_parts = [part for part in parts if has_count(part.one)]
            if number < 0 or number > MAX_NUMBER:
                text = f"barrier {number}; must be 0 to {MAX_NUMBER}"
                yield self._broken(parts, text, "use another number")
            elif counted_parts:
                yield from self._barrier(number, parts, counted_parts)
        named = [one for one in self._unknown if has_count(one)]
        leave_barriers(self._flow, "count: its number, or its count, is known only at run time", named)

    def _barrier(self, number: int, parts: list[_Part], named: list[_Part]) -> Iterator[Diagnostic]:
        wrong = [part for part in named if part.count is not None and (part.count % WARP or part.count < 0)]
        if wrong:
            text = f"barrier {number} has a count of {wrong[0].count} threads; must be a multiple of {WARP}"
            yield self._broken(wrong, text)
            return
        lines = [part.one for part in named]
        if self._unknown:
            leave_barriers(self._flow, f"count: {_OTHER}", lines)
            return
        if not any(part.waits for part in parts):
            text = f"{self._threads(parts)} arrive at barrier {number}, but no instruction of the kernel waits at it"
            fix = "wait at the same number (bar.sync), or remove the arrival"
            yield self._broken(parts, text, fix, warning=True)
            return
        few = list(self._too_few(number, parts))
        if few or any(part.one in self._divided for part in parts):
            yield from few
            return
        yield from self._judged(number, parts, lines)

    def _too_few(self, number: int, parts: list[_Part]) -> Iterator[Diagnostic]:
        """Find counts that are larger than the number of threads that can arrive with them."""
        for count in sorted({part.count for part in parts if part.count}):
            mine = [part for part in parts if part.count in (count, None)]
            waits = [part for part in mine if part.waits and part.count == count and part.one not in self._divided]
            if not waits or self._arrivals(mine) >= count:
                continue
            most = frozenset[int]().union(*(part.most for part in mine))
            others = [part for part in parts if part.count not in (count, None)]
            text = f"{waits[0].one.statement.opcode} waits for {count} threads at barrier {number}, but "
            everyone = len(self._reach.everyone)
            if len(most) == everyone:
                text += f"the CTA has {'' if self._reach.exact else 'at most '}{everyone} threads"
            else:
                text += f"only {self._reach.text(most)} can arrive with this count"
            if others:
                at = lines_text([part.one.statement.line for part in others], self._flow.tally.sources)
                each = ", ".join(str(other) for other in sorted({part.count or 0 for part in others}))
                text += f"; {at} {'gives' if len(others) == 1 else 'give'} the barrier a count of {each}"
            yield self._broken(waits, text, warning=not self._is_certain(count, mine, waits))

    def _is_certain(self, count: int, mine: list[_Part], waits: list[_Part]) -> bool:
        """Whether a thread waits, and threads that arrive several times can't reach the count."""
        repeated = any(part.one.block in self._flow.reached(part.one.block) for part in mine if not part.waits)
        shape = self._reach.exact or any(part.most == self._reach.everyone for part in mine)
        runs = shape and any(part.exact and (self._reach.exact or 0 in part.exact) for part in waits)
        return runs and not repeated and self._arrivals(mine) < count

    @staticmethod
    def _arrivals(parts: list[_Part]) -> int:
        """The largest number of arrivals in a round where each instruction without a wait is executed once: a thread
        may arrive, and then wait in the same round."""
        waiting = frozenset[int]().union(*(part.most for part in parts if part.waits))
        return _whole_warps(waiting) + sum(_whole_warps(part.most) for part in parts if not part.waits)

    def _judged(self, number: int, parts: list[_Part], lines: list[Event]) -> Iterator[Diagnostic]:
        """Judge a barrier that enough threads can reach."""
        flow, counts = self._flow, {part.count for part in parts}
        if not self._reach.exact:
            leave_barriers(flow, "count: the kernel does not declare the number of its threads (.reqntid)", lines)
            return
        if any(part.exact is None for part in parts):
            reason = "count: a condition that is known only at run time determines which threads reach the barrier"
            leave_barriers(flow, reason, lines)
            return
        if len(counts) > 1:
            each = ", ".join(str(count) for count in sorted(count or 0 for count in counts))
            reason = (
                f"count: instructions of barrier {number} give it counts of {each} threads; a round needs one count"
            )
            leave_barriers(flow, reason, lines)
            return
        count = counts.pop() or 0
        everyone = frozenset[int]().union(*(part.exact or frozenset() for part in parts))
        if not count:
            leave_barriers(flow, "count: PTX does not define a count of 0", lines)
            return
        if _whole_warps(everyone) == count:
            flow.tally.judge(NOUN, "count", len(lines))
            return
        total = sum(_whole_warps(part.exact or frozenset()) for part in parts)
        once = all(part.waits and part.one.block not in flow.reached(part.one.block) for part in parts)
        if once and total % count:
            text = (
                f"{self._threads(parts)} reach barrier {number}, which counts {count}; the last {total % count} of "
                f"{total} threads wait forever"
            )
            yield self._broken(parts, text)
            return
        reason = f"count: more than {count} threads reach barrier {number}, so other threads may meet"
        leave_barriers(flow, reason, lines)

    def _threads(self, parts: list[_Part]) -> str:
        return self._reach.text(frozenset[int]().union(*(part.most for part in parts)))

    def _broken(self, parts: list[_Part], text: str, fix: str = _FIX, *, warning: bool = False) -> Diagnostic:
        ones = [Known(one, "bar", {}, {}) for one in dict.fromkeys(part.one for part in parts)]
        facts = line_facts(ones)
        return self._flow.broken(_RULE, ones[0], text + also_at(ones), SOURCE, fix=fix, warning=warning, facts=facts)


def _whole_warps(threads: Threads) -> int:
    """The number of threads of all warps that have one of these threads; a barrier counts whole warps."""
    return len({thread // WARP for thread in threads}) * WARP


def _in_register(numbers: Sequence[int] | None) -> list[int] | None:
    """Return the numbers that registers of 32 bits hold; sums of other registers may exceed them."""
    return None if numbers is None else [reinterpreted(number, 32, signed=True) for number in numbers]
