"""Causes of a hang: the waiting threads, what they wait for, what is missing, and which threads could provide it.

A `Stuck` describes every wait: the threads, what they wait for, the cause, and the missing threads that could
end it. If the missing threads wait too, the wait is a consequence. If no thread can end the wait, the wait is a
root cause and becomes a finding. If all waits are consequences of each other, they form a cycle, and the report shows
all of them.

Source: PTX ISA 9.0, mbarrier, bar, barrier.cluster, setmaxnreg.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cute_py.diagnostics import Diagnostic
from cute_py.errors import counted
from cute_py.machine.faults import finding, place_text
from cute_py.machine.judgement.arrivals import ArrivalPlaces, ArrivalWalk, Jumps
from cute_py.machine.judgement.ledger import NEVER, Ledger, Life, Line
from cute_py.machine.judgement.observer import Observer
from cute_py.machine.judgement.waits import (
    BarWait,
    Blocked,
    ClusterWait,
    FailedTests,
    LanesWait,
    LoopWait,
    PhaseWait,
    RegistersWait,
)
from cute_py.machine.threads import LANES, Array, Host

if TYPE_CHECKING:
    from cute_py.machine.code import Code

MAX_SHOWN: Final = 4
"""Maximum number of findings, of groups of threads, and of lines that one report names."""

MAX_STEPS: Final = 1 << 17
"""Number of instructions after waits that the analysis of one hang follows before CTAs share the results."""

MAX_REMEMBERED: Final = 256
"""Maximum number of phases whose waits a time limit ended."""

ROOT, DOUBT, CONSEQUENCE, LOOP = range(4)
"""How likely a wait is the cause of a hang, the most likely first: it can never end; no known thread can end it; the
threads that could end it wait too; it is a loop that only polls."""


@dataclass(slots=True)
class Stuck:
    """A wait that does not end.

    key: equal for the same wait in several CTAs. missed: threads that could end the wait.
    """

    at: int
    threads: Array
    text: str
    cause: str
    rank: int
    key: Any
    source: str
    facts: dict[str, Any] = field(default_factory=dict)
    missed: list[int] = field(default_factory=list)
    fresh: bool = False
    """The first phase of a barrier that has no arrival yet."""


class Whereabouts:
    """The position of each thread: the wait that blocks it, or its exit."""

    def __init__(self, m: Host, waiting: Sequence[Blocked]) -> None:
        self.m = m
        self.at = np.full(m.count, -1, np.int64)
        self.at_phase = np.zeros(m.count, np.bool_)
        """(threads,): whether a thread waits for a phase of an mbarrier."""
        for one in waiting:
            self.at[one.frame.threads] = one.at
            self.at_phase[one.frame.threads] = isinstance(one.on, PhaseWait)
        self._steps = 0
        self._walks: dict[int, ArrivalPlaces] = {}
        self._first: dict[tuple[int, int], ArrivalPlaces] = {}
        self._jumps: dict[str, Jumps] = {}

    def text(self, threads: list[int]) -> str:
        """Text such as `threads 0 to 31 at line 40; threads 32 to 63 exited`."""
        m = self.m
        groups: dict[int, list[int]] = {}
        for thread in sorted(threads):
            groups.setdefault(int(self.at[thread]) if m.live[thread] else -2, []).append(thread)
        said = []
        for at, members in list(groups.items())[:MAX_SHOWN]:
            who = m.threads_text(np.array(members))
            if at == -2:
                said.append(f"{who} exited")
            elif at == -1:
                said.append(f"{who} did not run")
            else:
                said.append(f"{who} at {place_text(m.code.instructions[at], m.code.files)}")
        more = len(groups) - len(said)
        return "; ".join([*said, f"{more} more places"] if more > 0 else said)

    def walks(self, one: Blocked, cluster: int) -> list[ArrivalPlaces]:
        """The `ArrivalWalk.places` after a wait, for one thread of each CTA of a cluster.

        After `MAX_STEPS` steps of all walks, CTAs that wait at one instruction share a walk.
        """
        m = self.m
        found = []
        for cta, part in one.frame.parts:
            if cta // m.cluster_size == cluster:
                thread, key = int(one.frame.threads[part.start]), (one.at, cta % m.cluster_size)
                if thread not in self._walks and (self._steps < MAX_STEPS or key not in self._first):
                    function = m.code.function_of[one.at]
                    jumps = self._jumps.get(function) or self._jumps.setdefault(function, Jumps(m.code, function))
                    walk = ArrivalWalk(m, thread, one.at, jumps)
                    self._steps += walk.steps
                    self._walks[thread] = walk.places
                    self._first.setdefault(key, walk.places)
                found.append(self._walks.get(thread, self._first[key]))
        return found

    def waits(self, threads: list[int]) -> bool:
        """Whether any of these threads wait."""
        return any(bool(self.m.live[thread]) and self.at[thread] >= 0 for thread in threads)


_LATER: Final = "; the phase completed later, because the time limit of another wait ended"


class TimeLimits(Observer):
    """Judges waits that end only because the kernel limits their time.

    Whenever no work is in flight and the clock advances, this judge records the threads that wait for a phase, and why
    the phase does not complete. At the end of the run, a wait whose phase never completed is an error. If the phase
    completed later, after the time limit of some wait, the finding is a warning, and only if the reason is certain.
    """

    active = True

    def __init__(self, code: Code) -> None:
        self._waits: dict[tuple[int, int], tuple[int, list[Diagnostic]]] = {}
        self._found: list[Diagnostic] = []

    def findings(self) -> list[Diagnostic]:
        """Return the findings so far."""
        return self._found

    def began(self, m: Host) -> None:
        """Reset the state when CTAs begin to run together."""
        self._waits = {}

    def time_passes(self, m: Host) -> None:
        """Record the threads that wait for a phase, and why the phase does not complete."""
        places = {int(p) for one in m.waiting if isinstance(one.on, PhaseWait) for p in np.unique(one.on.places)}
        if not places or len(self._waits) >= MAX_REMEMBERED:
            return
        phases = {(p, m.windows[p // m.shared_stride].barriers[p % m.shared_stride].phase) for p in places}
        if not phases <= set(self._waits):
            found = _causes(m)
            self._waits |= {key: found for key in phases if key not in self._waits}

    def ended(self, m: Host, failed: bool) -> None:
        """Report the recorded waits: errors if the phase never completed, warnings if it completed later."""
        said = {one.message for one in self._found}
        for (place, phase), (rank, found) in self._waits.items():
            barrier = m.windows[place // m.shared_stride].barriers.get(place % m.shared_stride)
            later = barrier is not None and barrier.phase != phase
            if failed or (later and rank != ROOT):
                continue
            made = [replace(one, severity="warning", text=one.text + _LATER) if later else one for one in found]
            self._found += [one for one in made if one.message not in said]
            said |= {one.message for one in made}


def hang_findings(m: Host) -> list[Diagnostic]:
    """Return the causes of a hang as findings; the facts of the first finding list the waits that follow from the
    causes.
    """
    return _causes(m)[1]


def _causes(m: Host) -> tuple[int, list[Diagnostic]]:
    """Return the rank of the causes of a hang, and the causes as findings."""
    waiting = [_tested(m, Blocked(one.frame, one.at, one.on, one.what)) for one in m.waiting]
    where = Whereabouts(m, waiting)
    stuck: list[Stuck] = []
    for held in waiting:
        stuck += _stuck(m, held, where)
    best = min(one.rank for one in stuck)
    mutual = best == CONSEQUENCE
    if mutual and len({one.at for one in stuck if one.fresh}) > 1:
        best = _first_waits([one for one in stuck if one.fresh])
    roots = _merged([one for one in stuck if one.rank == best])
    rest = _merged([one for one in stuck if one.rank != best])
    code = m.code
    found = []
    for number, (one, more) in enumerate(roots[:MAX_SHOWN]):
        others = f"; {counted(more, 'other wait')} {'has' if more == 1 else 'have'} the same cause" if more else ""
        circle = "threads wait for each other: " if mutual and number == 0 and len(roots) > 1 else ""
        facts: dict[str, Any] = {"threads": m.threads_text(one.threads), "cause": one.cause, **one.facts}
        if number == 0:
            facts |= {f"also waiting {i}": f"{other.text}" for i, (other, _) in enumerate(rest[:MAX_SHOWN], 1)}
        text = f"{circle}{one.text}{others}"
        found.append(finding("hang", text, code.instructions[one.at], files=code.files, source=one.source, facts=facts))
    return best, found


def _first_waits(stuck: list[Stuck]) -> int:
    """Record that waits for first phases form a cycle, so one of them must begin with parity 1; return their rank."""
    for one in stuck:
        one.rank, one.cause = ROOT, "parity"
        one.text += "; these waits for first phases form a cycle, so one must begin with parity 1"
    return ROOT


def _merged(stuck: list[Stuck]) -> list[tuple[Stuck, int]]:
    """Return one wait for each cause and key, and the number of other waits like it."""
    counts: dict[Any, int] = {}
    first: dict[Any, Stuck] = {}
    for one in stuck:
        key = (one.at, one.cause, one.key)
        counts[key] = counts.get(key, 0) + 1
        first.setdefault(key, one)
    return [(one, counts[key] - 1) for key, one in first.items()]


def _tested(m: Host, one: Blocked) -> Blocked:
    """Return a loop that polls phases of mbarriers as a wait for these phases; any other wait unchanged."""
    tests: FailedTests | None = m.state.get("failed tests")
    found = tests.within(one.frame.threads, one.on) if tests is not None and isinstance(one.on, LoopWait) else None
    if found is None:
        return one
    at, on = found
    exist = all(p % m.shared_stride in m.windows[p // m.shared_stride].barriers for p in np.unique(on.places).tolist())
    return Blocked(one.frame, at, on, one.what) if exist else one


def _stuck(m: Host, one: Blocked, where: Whereabouts) -> Iterator[Stuck]:
    on = one.on
    if isinstance(on, PhaseWait):
        for place in np.unique(on.places).tolist():
            chosen = on.places == place
            yield _phase(m, one, on, place, one.frame.threads[chosen], int(on.phases[chosen][0]), where)
    elif isinstance(on, BarWait):
        yield _bar(m, one, on, where)
    elif isinstance(on, ClusterWait):
        yield _cluster(m, one, where)
    elif isinstance(on, LanesWait):
        yield _lanes(m, one, on, where)
    elif isinstance(on, RegistersWait):
        yield _registers(m, one, on, where)
    else:
        rank = LOOP if isinstance(on, LoopWait) else DOUBT
        text = f"{_waiting(m, one.frame.threads)}: {one.what()}"
        yield Stuck(one.at, one.frame.threads, text, "loop", rank, "loop", "")


def _waiting(m: Host, threads: Array) -> str:
    """Text such as `CTA (0, 0, 0), threads 0 to 31 wait`."""
    return f"{m.threads_text(threads)} {'waits' if len(threads) == 1 else 'wait'}"


# ---- mbarriers -------------------------------------------------------------------------------------------------------

_MBARRIER: Final = "mbarrier.test_wait, mbarrier.try_wait"


def _phase(m: Host, one: Blocked, on: PhaseWait, place: int, threads: Array, phase: int, where: Whereabouts) -> Stuck:
    """Describe a wait for a phase of an mbarrier."""
    cta, offset = divmod(place, m.shared_stride)
    barrier = m.windows[cta].barriers[offset]
    ledger: Ledger | None = m.state.get("ledger")
    life = None if ledger is None else ledger.life_at(place)
    name = f"mbarrier at {m.shared_base + offset:#x}" if ledger is None else ledger.name(place)
    wanted = f"parity {phase}" if on.by_parity else f"phase {phase & 0xFFFFFFFF}"
    arrivals = f"{barrier.arrive_count - barrier.pending} of {counted(barrier.arrive_count, 'arrival')}"
    who = f"{_waiting(m, threads)} for {wanted} of the {name}, which is in phase {barrier.phase} with {arrivals}"
    nbytes = f"{barrier.arrived_bytes} of {barrier.expected} bytes arrived"
    facts: dict[str, Any] = {
        "barrier": name, "phase": barrier.phase, "arrivals": arrivals,
        "bytes": f"{barrier.arrived_bytes} of {barrier.expected}",
    }  # fmt: skip
    if life is not None and ledger is not None:
        facts["initialised at"] = ledger.line(life.at)
    made = Stuck(one.at, threads, f"{who}; {nbytes}", "arrivals", DOUBT, offset, _MBARRIER, facts)
    if life is None or ledger is None:
        made.cause = "arrival count" if barrier.pending else "transaction bytes"
        return made
    if on.by_parity and _wrong_phase(ledger, life, made, threads, phase):
        return made
    if barrier.pending == 0:
        _bytes(ledger, life, made)
    else:
        _arrivals(m, ledger, life, made, where)
    return made


def _wrong_phase(ledger: Ledger, life: Life, made: Stuck, threads: Array, parity: int) -> bool:
    """Whether a wait is for a phase other than the one after the last phase that its threads saw complete; if so,
    explain it.
    """
    barrier = life.barrier
    inside = threads - life.first_thread
    if barrier is None or int(inside.min()) < 0 or int(inside.max()) >= len(life.passes):
        return False
    last = int(life.passes[inside].max())
    who, has = ("the thread", "has") if len(threads) == 1 else ("the threads", "have")
    if last == NEVER:
        if parity == 0 and barrier.phase == 0:
            return False
        seen, following = f"{who} {has} not waited for it before", 0 if barrier.phase % 2 else None
    else:
        if barrier.phase == last + 1:
            return False
        seen = f"{who} saw phase {last} complete last" if last >= 0 else f"{who} {has} seen no phase of it complete"
        following = last + 1
    if following is None or (following & 1) == parity:
        first = 0 if following is None else following
        end = barrier.phase - 1
        since = f"phase {first} has" if first == end else f"phases {first} to {end} have"
        made.text += f"; {seen}, and {since} completed since: "
        early = _passed_early(ledger, life)
        if early is None:
            made.cause = "completed too often"
            made.text += (
                f"each round has more arrivals or bytes than one phase needs "
                f"({counted(barrier.arrive_count, 'arrival')}, {ledger.where(life.at)})"
            )
        else:
            made.cause = "parity"
            made.text += early
    else:
        made.cause = "parity"
        made.text += f"; {seen}, so the next phase is {following}, of parity {following & 1}; it has completed"
    made.rank = ROOT
    never = "no phase, this is the first wait" if last == NEVER else "no phase"
    made.facts["seen last"] = last if last >= 0 else never
    return True


def _passed_early(ledger: Ledger, life: Life) -> str | None:
    """Text about a thread that arrives at this barrier too early, because it passed a wait at another barrier for a
    phase that it had seen before; None if there is no such thread.
    """
    stride = ledger.m.shared_stride
    arriving = {thread for threads in life.arriving.values() for thread in threads}
    for place, other in ledger.lives.items():
        if place // stride != life.place // stride or other is life:
            continue
        for thread in sorted(other.stale):
            if thread in arriving:
                at, phase, parity = other.stale[thread]
                return (
                    f"{ledger.m.thread_text(thread)}, which arrives at it, passed its wait for parity {parity} of the "
                    f"{ledger.name(place)} at {ledger.where(at)} again for phase {phase}, which it had seen before"
                )
    return None


def _bytes(ledger: Ledger, life: Life, made: Stuck) -> None:
    """Explain why a phase with all arrivals does not complete: it has too few or too many bytes."""
    barrier, phase = life.barrier, life.now
    if barrier is None:
        return
    made.cause = "transaction bytes"
    made.rank = ROOT
    expects = phase.expects if phase.number == barrier.phase else []
    brought = phase.brought if phase.number == barrier.phase else []
    made.facts |= {"expected at": ledger.lines(expects), "delivered at": ledger.lines(brought)}
    made.text += f": {ledger.sums(expects, 'expects')}"
    if brought:
        made.text += f", {ledger.sums(brought, 'delivered')}"
    if barrier.tx_count < 0:
        _offer(ledger, made, expects, barrier.arrived_bytes)
        made.text += f"; {-barrier.tx_count} bytes too many, so the phase can't complete"
        return
    made.facts["missing"] = barrier.tx_count
    _offer(ledger, made, expects, barrier.arrived_bytes)
    own = {one.at for one in brought}
    others = {at: size for at, size in life.sizes.items() if at not in own}
    made.text += f"; no copy in flight delivers the {barrier.tx_count} missing bytes"
    if others:
        said = ", ".join(f"{ledger.where(at)} delivered {size}" for at, size in list(others.items())[:MAX_SHOWN])
        made.text += f"; in other phases {said}"
        made.facts["could have delivered"] = [ledger.line(at) for at in others]
        made.missed = sorted({t for at in others for t in life.bringing[at]})


def _offer(ledger: Ledger, made: Stuck, expects: list[Line], nbytes: int) -> None:
    """Add to the facts the change that makes one instruction expect the number of bytes that arrived."""
    change = ledger.expectation(expects, nbytes)
    if change is not None:
        made.facts["change"] = change


def _arrivals(m: Host, ledger: Ledger, life: Life, made: Stuck, where: Whereabouts) -> None:
    """Explain why arrivals of a phase are missing."""
    barrier, phase = life.barrier, life.now
    if barrier is None:
        return
    lines = phase.arrivals if phase.number == barrier.phase else []
    here = {thread for line in lines for thread in line.threads}
    could = {thread for threads in life.arriving.values() for thread in threads}
    missed = sorted(could - here)
    made.facts["missing"] = f"{barrier.pending} of {counted(barrier.arrive_count, 'arrival')}"
    if lines:
        made.text += f": {ledger.sums(lines, 'made', 'arrival')}"
    if life.arriving:
        made.facts["arrivals come from"] = [ledger.line(at) for at in life.arriving][:8]
    if missed:
        made.missed = missed
        made.text += f"; missing: {where.text(missed)}"
        made.rank = CONSEQUENCE if where.waits(missed) else ROOT
        made.cause = "arrivals" if made.rank == CONSEQUENCE else "exited"
        made.facts["missing threads"] = where.text(missed)
        return
    coming, unknown = _coming(m, life, where)
    if here and not coming:
        made.rank = DOUBT if unknown else ROOT
        made.cause = "arrival count"
        count = barrier.arrive_count
        came = count - barrier.pending
        made.facts["change"] = (ledger.line(life.at), str(count), str(came))
        other = "no other instruction of a running thread is known to arrive" if unknown else "no other thread arrives"
        made.text += f"; {other} at it; {ledger.where(life.at)} initialises it with a count of {count}"
    elif coming:
        made.rank = CONSEQUENCE if not here else DOUBT
        made.cause = "arrival count" if here else "arrivals"
        said = "; ".join(
            f"the arrival at {ledger.where(at)} comes after the wait of {m.threads_text(threads)} at "
            f"{ledger.where(wait)}"
            for at, wait, threads in coming[:2]
        )
        made.text += f"; {'no thread' if not here else 'no other thread'} has arrived: {said}"
        made.facts["would arrive at"] = [ledger.line(at) for at, _, _ in coming][:MAX_SHOWN]
        made.fresh = life.now.number == 0 and not life.arriving
    else:
        made.text += (
            "; no thread has arrived at it in any phase, and no instruction of a running thread is known to arrive at "
            "it"
        )
        if unknown:
            at, wait, threads = unknown[0]
            made.text += (
                f"; the arrival at {ledger.where(at)}, after the wait of {m.threads_text(threads)} at "
                f"{ledger.where(wait)}, may arrive at it"
            )
        made.rank = DOUBT if unknown else ROOT
        made.cause = "no arrival"
        sibling = _passed_when_empty(ledger, life, made.threads)
        if sibling is not None:
            made.cause = "parity"
            made.text += (
                f"; the first wait of these threads for the {ledger.name(sibling)}, which has the same count, was for "
                "parity 1 and passed immediately"
            )


def _passed_when_empty(ledger: Ledger, life: Life, threads: Array) -> int | None:
    """Return the offset of another barrier of this CTA with the same count, if these threads passed a wait for the
    phase before the first phase of that barrier, but not of this barrier; else None.
    """
    stride = ledger.m.shared_stride
    if any(np.isin(passed, threads).any() for _, passed in life.empty_waits):
        return None
    for place, other in ledger.lives.items():
        if place // stride == life.place // stride and other.count == life.count and other is not life:
            for _, passed in other.empty_waits:
                if np.isin(passed, threads).any():
                    return place
    return None


Coming = tuple[int, int, Array]
"""An arrival that waiting threads may reach: index of the arrival, index of the wait, threads."""


def _coming(m: Host, life: Life, where: Whereabouts) -> tuple[list[Coming], list[Coming]]:
    """Return the arrivals at a barrier that waiting threads may reach later, and the arrivals that they may reach and
    whose barrier is unknown.
    """
    found: dict[int, Coming] = {}
    unknown: dict[int, Coming] = {}
    cluster, wanted = divmod(life.place, m.shared_stride * m.cluster_size)
    for one in m.waiting:
        for walk in where.walks(one, cluster):
            for at, places in sorted(walk.items()):
                if wanted in places or (None in places and at in life.arriving):
                    found.setdefault(at, (at, one.at, one.frame.threads))
                elif None in places:
                    unknown.setdefault(at, (at, one.at, one.frame.threads))
    return list(found.values()), list(unknown.values())


# ---- barriers of a CTA and of a cluster ------------------------------------------------------------------------------


def _bar(m: Host, one: Blocked, on: BarWait, where: Whereabouts) -> Stuck:
    start = on.cta * m.cta_threads
    bar = m.state["bars"][on.cta, on.number]
    live = np.flatnonzero(m.live[start : start + m.cta_threads]) + start
    here = [w for w in m.waiting if w.on == on]
    inside = {int(t) for w in here for t in w.frame.threads}
    missed = [int(t) for t in live.tolist() if t not in inside]
    expected = bar.expected or len(live)
    text = f"{_waiting(m, one.frame.threads)} at barrier {on.number}: {bar.arrived} of {expected} threads have arrived"
    facts: dict[str, Any] = {"barrier": on.number, "arrived": bar.arrived, "expected": expected}
    made = Stuck(one.at, one.frame.threads, text, "barrier", DOUBT, on.number, "bar, barrier", facts, missed)
    wanted = set(bar.counts.values())
    if len(wanted) > 1:
        made.rank, made.cause = ROOT, "barrier count"
        said = ", ".join(
            f"{count} at {place_text(m.code.instructions[at], m.code.files)}" for at, count in bar.counts.items()
        )
        made.text += f"; the instructions give different counts: {said}"
        for at, count in bar.counts.items():
            if count != bar.arrived:
                facts["change"] = (m.code.instructions[at].line, str(count), str(bar.arrived))
    elif expected > len(live) and not where.waits(missed):
        exited = m.cta_threads - len(live)
        made.rank, made.cause = ROOT, "barrier count"
        made.text += (
            f"; {counted(len(live), 'thread')} of the CTA are alive, {exited} exited, so the count can't be reached"
        )
    elif missed:
        made.text += f"; missing: {where.text(missed)}"
        made.rank = CONSEQUENCE
        split = {t // LANES for t in missed} & {t // LANES for t in inside}
        if split:
            made.rank, made.cause = ROOT, "divergent aligned instruction"
            made.text += (
                f"; only some threads of {counted(len(split), 'warp')} arrived; all threads of a warp must execute "
                f"the same bar.sync"
            )
    else:
        made.rank, made.cause = ROOT, "barrier count"
        made.text += "; all live threads of the CTA have arrived, so the count can't be reached"
    return made


def _cluster(m: Host, one: Blocked, where: Whereabouts) -> Stuck:
    rounds, arrived, own = m.state["clusters"]
    cluster = int(one.frame.ctas[0]) // m.cluster_size
    size = m.cluster_size * m.cta_threads
    start = cluster * size
    live = np.flatnonzero(m.live[start : start + size]) + start
    missed = [int(t) for t in live.tolist() if own[t] < rounds[cluster]]
    ctas = sorted({t // m.cta_threads - cluster * m.cluster_size for t in missed})
    text = (
        f"{_waiting(m, one.frame.threads)} for the barrier of the cluster, where {int(arrived[cluster])} of "
        f"{len(live)} threads have arrived; missing in CTAs of rank {', '.join(map(str, ctas))}: {where.text(missed)}"
    )
    facts = {"missing CTAs": ctas, "missing threads": where.text(missed)}
    rank = CONSEQUENCE if where.waits(missed) else ROOT
    return Stuck(one.at, one.frame.threads, text, "cluster barrier", rank, "cluster", "barrier.cluster", facts, missed)


# ---- lanes, registers ------------------------------------------------------------------------------------------------


def _lanes(m: Host, one: Blocked, on: LanesWait, where: Whereabouts) -> Stuck:
    f = one.frame
    opcode = m.code.instructions[one.at].opcode
    size = LANES * on.warps
    groups = np.unique(f.threads // size)
    members = (groups[:, None] * size + np.arange(size)).reshape(-1)
    inside = set(f.threads.tolist())
    missed = [int(t) for t in members.tolist() if t < m.count and m.live[t] and t not in inside]
    what = "a warp" if on.warps == 1 else "a warpgroup"
    aligned = ".aligned" in opcode
    must = f"; all threads of {what} must execute it" if aligned else ""
    text = f"{_waiting(m, f.threads)} at {opcode} for the other threads of {what}{must}; missing: {where.text(missed)}"
    cause = "divergent aligned instruction" if aligned else "lanes"
    facts = {"missing threads": where.text(missed)}
    rank = CONSEQUENCE if missed and where.at_phase[missed].all() else ROOT
    return Stuck(one.at, f.threads, text, cause, rank, opcode, opcode.split(".")[0], facts, missed)


def _registers(m: Host, one: Blocked, on: RegistersWait, where: Whereabouts) -> Stuck:
    text = f"{_waiting(m, one.frame.threads)}: {one.what()}"
    return Stuck(one.at, one.frame.threads, text, "register pool", ROOT, on.count, "setmaxnreg")
