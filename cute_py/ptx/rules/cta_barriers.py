"""The rule about barriers of a CTA (bar, barrier): all threads of the CTA must reach a barrier without a count, and all
threads of a warp must execute an aligned barrier together.

The rule computes which threads reach a barrier, if each branch around it depends only on the thread index and on
constants, or has the same condition in the whole CTA. It lists the other barriers as not judged.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Final

from cute_py.diagnostics import Diagnostic
from cute_py.errors import counted
from cute_py.ptx.flow import Flow, Known, also_at, line_facts
from cute_py.ptx.rules.reach import Reach, Threads
from cute_py.ptx.values import Event, Value

NOUN: Final = "thread barrier"
SOURCE: Final = "bar, barrier"
_FIX: Final = (
    "move the barrier to a place that all threads of the CTA reach, or give it a number and a count of threads"
)


def is_cta_barrier(opcode: str) -> bool:
    """Whether an instruction arrives at a barrier of a CTA.

    >>> [is_cta_barrier(name) for name in ("bar.sync", "barrier.cta.arrive", "bar.warp.sync", "barrier.cluster.wait")]
    [True, True, False, False]
    """
    first, _, rest = opcode.partition(".")
    return first in ("bar", "barrier") and not rest.startswith(("warp", "cluster"))


def cta_barriers(flow: Flow) -> list[Event]:
    """Return the barriers of a CTA in a function, in the order of the text."""
    return [one for one in flow.values.events if is_cta_barrier(one.statement.opcode)]


def check_cta_barriers(flow: Flow, reach: Reach) -> Iterator[Diagnostic]:
    """Find barriers that only some threads of a CTA, or of a warp, reach."""
    barriers = cta_barriers(flow)
    if not flow.function.entry:
        leave_barriers(flow, "threads: the callers of the function determine which threads reach it", barriers)
        return
    reached = [reach.threads(one) for one in barriers]
    some = [
        (barrier_number(one), found)
        for one, (found, _) in zip(barriers, reached, strict=True)
        if found != reach.everyone
    ]
    copies: dict[tuple[str, str], list[Event]] = collections.defaultdict(list)
    texts: dict[tuple[str, str], str] = {}
    for one, (found, branch) in zip(barriers, reached, strict=True):
        if found is None:
            reason = "threads: a condition that is known only at run time determines which threads reach it"
            if not has_count(one):
                leave_barriers(flow, reason, [one])
            continue
        missing = reach.everyone - found
        name = one.statement.opcode
        if is_divided(reach, one, found):
            text = f"all threads of a warp must execute {name} together, but only some threads of " + (
                f"{counted(reach.divided_warps(found), 'warp')} reach it ({reach.text(found)})"
            )
        elif has_count(one):
            continue
        elif missing and any(
            number in (barrier_number(one), None) and (threads is None or (threads & missing and not threads & found))
            for number, threads in some
        ):
            leave_barriers(flow, "threads: other threads may reach another instruction of the same barrier", [one])
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
            "barrier_threads", ones[0], texts[key] + also_at(ones), SOURCE, fix=_FIX, warning=True, facts=facts
        )


def leave_barriers(flow: Flow, reason: str, ones: list[Event]) -> None:
    flow.tally.leave(NOUN, reason, [one.statement.line for one in ones])


def _cause(branch: Event | None, one: Event) -> str:
    """Describe the condition that depends on the thread index."""
    if branch is None or branch is one:
        return f"its predicate {one.statement.predicate.lstrip('@')} depends on the thread index"
    return f"the branch at {branch.statement.where} depends on the thread index"


def barrier_arguments(one: Event) -> list[Value | None]:
    """Return the number and the count of a barrier, without the operands of a reduction."""
    if "red" in one.statement.opcode.split("."):
        return list(one.values[1:-1])
    return list(one.values)


def barrier_number(one: Event) -> int | None:
    """Return the number of a barrier; None if it is known only at run time."""
    first = next(iter(barrier_arguments(one)), None)
    return first.offset if first is not None and not first.base else None


def is_divided(reach: Reach, one: Event, found: Threads | None) -> bool:
    """Whether a barrier that all threads of a warp must execute together is reached by only some of them; found: the
    threads that reach it."""
    name = one.statement.opcode
    aligned = name.startswith("bar.") or "aligned" in name.split(".")
    return aligned and found is not None and reach.divided_warps(found) > 0


def has_count(one: Event) -> bool:
    return len(barrier_arguments(one)) > 1
