"""The history of each mbarrier: its initialisation, and the arrivals, expected bytes and received bytes of each phase.

A `Life` is the history of a barrier from its init to its inval. Arrivals, expected bytes and bytes that land are
entries of its current phase. An event that breaks a rule becomes a finding immediately. Two rules are judged at the end
of a run: bytes that are left over, and waits that passed before the bytes of the first phase had landed. `hangs.py`
uses the lives to find the missing threads.

Source: PTX ISA 9.0, mbarrier: phases, tx-count, mbarrier.init, mbarrier.inval, mbarrier.test_wait.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cute_py.diagnostics import Diagnostic
from cute_py.errors import counted
from cute_py.machine.faults import finding, place_text
from cute_py.machine.judgement.observer import AsyncWork, Observer
from cute_py.machine.threads import Array, Frame, Host, broadcast
from cute_py.ptx.phases import bytes_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cute_py.machine.code import Code
    from cute_py.machine.sites import Site
    from cute_py.tma.emulator.mbarrier import Mbarrier

KEPT_PHASES: Final = 8
"""Number of phases of a barrier whose lines are kept."""

NEVER: Final = -(1 << 30)
MAX_FINDINGS: Final = 20
"""Maximum number of findings that the ledger keeps for a run."""


@dataclass(slots=True)
class Line:
    """An entry in the record of a phase: the index of the instruction, the threads that executed it, and the number of
    arrivals or bytes.
    """

    at: int
    threads: list[int]
    amount: int


@dataclass(slots=True)
class PhaseRecord:
    """The entries of a phase so far. late: bytes of copies that were issued in an earlier phase."""

    number: int
    arrivals: list[Line] = field(default_factory=list)
    expects: list[Line] = field(default_factory=list)
    brought: list[Line] = field(default_factory=list)
    late: int = 0


@dataclass(slots=True)
class Life:
    """The history of a barrier since its init.

    place: offset in the shared memory of all CTAs. at, thread: index of the init instruction, and its thread. ended:
    index of the inval instruction, or None. arriving, bringing: for the index of each instruction that arrives or
    brings bytes, the threads that executed it, over all phases. passes: the last phase that each thread of the cluster
    saw complete.
    """

    place: int
    barrier: Mbarrier | None
    count: int
    at: int
    thread: int
    phases: deque[PhaseRecord]
    passes: Array
    first_thread: int
    ended: int | None = None
    arriving: dict[int, set[int]] = field(default_factory=dict)
    bringing: dict[int, set[int]] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    """Number of a copy -> bytes that it brought last."""
    flights: dict[int, deque[tuple[list[int], int]]] = field(default_factory=lambda: defaultdict(deque))
    """Number of a copy that has not landed -> (threads, phase when it was issued)."""
    empty_waits: list[tuple[int, Array]] = field(default_factory=list)
    """(number of the wait, threads) for each wait that passed before phase 0 was over."""
    repeated: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Thread -> (number of the wait, phase, parity) of a wait that passed for an old phase: the thread had seen this
    phase before, and has taken part in a round since."""
    stale: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """The first entry that each thread ever had in `repeated`."""

    @property
    def now(self) -> PhaseRecord:
        """The record of the current phase."""
        return self.phases[-1]

    @property
    def under_way(self) -> int:
        """Number of copies that were issued and have not landed."""
        return sum(len(queue) for queue in self.flights.values())

    def phase(self, number: int) -> PhaseRecord | None:
        """Return the record of a phase, or None if it is no longer kept."""
        return next((one for one in self.phases if one.number == number), None)


class Ledger(Observer):
    """Judges mbarriers, and records the life of each mbarrier of the CTAs that run together."""

    active = True

    def __init__(self, code: Code) -> None:
        self.code = code
        self.m: Host
        self.lives: dict[int, Life] = {}
        self.ended_lives: dict[int, Life] = {}
        self._found: list[Diagnostic] = []
        self._said: set[tuple[Any, ...]] = set()
        self._timed_out = False
        self._acted: Array
        """(threads,): the number of the last event where each thread arrived, or expected bytes."""
        self._seen: dict[int, Array] = {}
        """Place -> (threads of the cluster,): the number of the last event where each thread passed a wait there."""
        self._events = 0

    def findings(self) -> list[Diagnostic]:
        """Return the findings so far."""
        return self._found

    # ---- texts -------------------------------------------------------------------------------------------------------

    def name(self, place: int) -> str:
        """Text of a barrier, such as `mbarrier at 0x1408 of CTA (1, 0, 0)`."""
        m = self.m
        cta, offset = divmod(place, m.shared_stride)
        x, y, z = (int(number) for number in m.numbers[cta])
        where = f" of CTA ({x}, {y}, {z})" if m.ctas > 1 else ""
        return f"mbarrier at {m.shared_base + offset:#x}{where}"

    def where(self, at: int) -> str:
        """Text with the line of an instruction."""
        return place_text(self.m.code.instructions[at], self.m.code.files)

    def lines(self, entries: list[Line]) -> list[int]:
        """The PTX lines of entries, each once."""
        return list(dict.fromkeys(self.m.code.instructions[one.at].line for one in entries))[:8]

    def sums(self, lines: list[Line], verb: str, unit: str = "byte") -> str:
        """Text such as `line 40 expects 16384 bytes, line 43 expects 512 bytes`."""
        totals: dict[int, int] = {}
        for one in lines:
            totals[one.at] = totals.get(one.at, 0) + one.amount
        said = [f"{self.where(at)} {verb} {counted(amount, unit)}" for at, amount in list(totals.items())[:4]]
        return ", ".join(said) or f"nothing {verb} {unit}s"

    def expectation(self, expects: list[Line], nbytes: int) -> tuple[int, str, str] | None:
        """Return the change that makes one instruction expect this number of bytes: (line, old number, new number);
        None unless exactly one instruction expects bytes and `nbytes` is above 0.
        """
        if len({one.at for one in expects}) != 1 or not nbytes:
            return None
        return self.line(expects[0].at), str(expects[0].amount), str(nbytes // len(expects))

    def say(
        self, rule: str, at: int, text: str, life: Life, source: str, who: Sequence[int], severity: str = "error",
        **facts: Any,
    ) -> None:  # fmt: skip
        """Record a finding, once for each instruction and barrier offset in a CTA. who: the threads that caused it."""
        key = (rule, at, life.place % self.m.shared_stride)
        if key in self._said or len(self._found) >= MAX_FINDINGS:
            return
        self._said.add(key)
        code = self.m.code
        threads = {"threads": self.m.threads_text(np.unique(who))} if len(who) else {}
        said = {"barrier": self.name(life.place), **threads, "phase": life.now.number, **facts}
        self._found.append(
            finding(rule, text, code.instructions[at], files=code.files, source=source, severity=severity, facts=said)
        )

    # ---- lives of barriers -------------------------------------------------------------------------------------------

    def began(self, m: Host) -> None:
        """Reset the state when CTAs begin to run together."""
        self.m = m
        self.lives, self.ended_lives = {}, {}
        self._acted, self._seen = np.zeros(m.count, np.int64), {}
        m.state["ledger"] = self

    def time_passes(self, m: Host) -> None:
        """Ignore repeated waits after this call, because loops that time out repeat waits without a wrong parity."""
        self._timed_out = True

    def initialised(self, f: Frame, site: Site, place: int, count: int) -> None:
        """Begin a life at an mbarrier.init."""
        m, thread, at = self.m, int(f.threads[0]), site.number
        old = self.lives.get(place)
        if old is not None:
            self._again(old, thread, at)
        threads = m.cta_threads * m.cluster_size
        first = place // m.shared_stride // m.cluster_size * threads
        passes = np.full(threads, NEVER, np.int64)
        life = Life(place, None, count, at, thread, deque([PhaseRecord(0)], KEPT_PHASES), passes, first)
        self.lives[place] = life
        self._seen[place] = np.zeros(threads, np.int64)

    def _again(self, old: Life, thread: int, at: int) -> None:
        barrier = self._barrier(old)
        if barrier is None:
            return
        busy = old.under_way or barrier.tx_count or 0 < barrier.pending < barrier.arrive_count
        text = (
            f"{self.m.thread_text(thread)} initialises the {self.name(old.place)} again; {self.where(old.at)} "
            f"initialised it before, no mbarrier.inval followed, and it is in {barrier}"
        )
        self.say("mbarrier initialised twice", at, text, old, "mbarrier.init", [thread], "error" if busy else "warning")

    def _barrier(self, life: Life) -> Mbarrier | None:
        """The state of a life's barrier; None if there is no barrier at its offset."""
        if life.barrier is None:
            cta, offset = divmod(life.place, self.m.shared_stride)
            life.barrier = self.m.windows[cta].barriers.get(offset)
        return life.barrier

    def invalidated(self, f: Frame, site: Site, place: int) -> None:
        """End a life at an mbarrier.inval."""
        life = self.life_at(place)
        if life is None:
            return
        self.lives.pop(place)
        life.ended = site.number
        self.ended_lives[place] = life
        if life.under_way:
            text = (
                f"{self.m.thread_text(int(f.threads[0]))} invalidates the {self.name(place)} while "
                f"{counted(life.under_way, 'transfer')} that complete on it are under way"
            )
            self.say("mbarrier invalidated in use", site.number, text, life, "mbarrier.inval", f.threads.tolist())
        self._left_over(life)

    def life_at(self, place: int) -> Life | None:
        """Return the life at an offset, with a record of its current phase."""
        life = self.lives.get(place)
        if life is None:
            return None
        barrier = self._barrier(life)
        if barrier is not None and life.now.number != barrier.phase:
            life.phases.append(PhaseRecord(barrier.phase))
        return life

    # ---- arrivals and bytes ------------------------------------------------------------------------------------------

    def arrived(self, f: Frame, site: Site, place: int, barrier: Mbarrier, count: int, expected: int | None) -> None:
        """Record arrivals, and the bytes that an arrive.expect_tx expects."""
        life = self.life_at(place)
        if life is None:
            return
        self._act(f)
        who = f.threads.tolist()
        life.arriving.setdefault(site.number, set()).update(who)
        life.now.arrivals.append(Line(site.number, who, count))
        if expected is not None:
            life.now.expects.append(Line(site.number, who, expected))

    def expected(self, f: Frame, site: Site, place: int, barrier: Mbarrier, nbytes: int) -> None:
        """Record bytes that a phase expects."""
        life = self.life_at(place)
        if life is not None:
            self._act(f)
            life.now.expects.append(Line(site.number, f.threads.tolist(), nbytes))

    def _act(self, f: Frame) -> None:
        self._events += 1
        self._acted[f.threads] = self._events

    def issued(self, f: Frame, site: Site, work: AsyncWork) -> None:
        """Record that a copy that completes on barriers was issued."""
        for place in work.barriers:
            life = self.life_at(place)
            if life is not None:
                life.flights[site.number].append((f.threads.tolist(), life.now.number))

    def landed(self, m: Host, place: int, barrier: Mbarrier, nbytes: int, at: int) -> None:
        """Record bytes of a copy that land, before the barrier counts them."""
        life = self.life_at(place)
        if life is None:
            return
        queue = life.flights[at]
        who, issued = queue.popleft() if queue else ([], life.now.number)
        life.bringing.setdefault(at, set()).update(who)
        life.sizes[at] = nbytes
        life.now.brought.append(Line(at, who, nbytes))
        if issued != barrier.phase:
            self._early(life, issued, nbytes, at, who)
        if barrier.pending == 0 and barrier.tx_count < nbytes:
            self._too_many_bytes(life, barrier, at, nbytes)

    def passed(self, f: Frame, site: Site, places: Array, phases: Array, parity: bool) -> None:
        """Record that threads saw a phase complete, and report a wait for a phase that they had seen before."""
        parities = broadcast(phases, f)
        held = broadcast(places, f)
        for place in np.unique(held).tolist():
            life = self.life_at(place)
            if life is None or life.barrier is None:
                continue
            chosen = held == place
            threads = f.threads[chosen]
            phase = life.barrier.phase - 1
            inside = threads - life.first_thread
            if int(inside.min()) < 0 or int(inside.max()) >= len(life.passes):
                continue
            again = life.passes[inside] == phase
            life.passes[inside] = phase
            if self._timed_out:
                continue
            if parity:
                self._repeat(life, threads, inside, again, (site.number, phase, int(parities[chosen][0])))
            if phase == -1 and parity:
                life.empty_waits.append((site.number, threads))
            if phase >= 0 and parity and again.any():
                self._stale(life, threads[again], site.number, int(parities[chosen][0]))

    def _repeat(self, life: Life, threads: Array, inside: Array, again: Array, wait: tuple[int, int, int]) -> None:
        """Record the threads whose wait passes for a phase that they saw before; a wait for another phase clears the
        record.
        """
        for thread in threads[again & (self._acted[threads] > self._seen[life.place][inside])].tolist():
            life.repeated[thread] = wait
            life.stale.setdefault(thread, wait)
        if life.repeated and not again.all():
            for thread in threads[~again].tolist():
                life.repeated.pop(thread, None)
        self._seen[life.place][inside] = self._events

    # ---- rules -------------------------------------------------------------------------------------------------------

    def _early(self, life: Life, issued: int, nbytes: int, at: int, who: list[int]) -> None:
        """Report bytes that are counted in a later phase than the phase when their copy was issued."""
        old = life.phase(issued)
        said = "" if old is None else f" ({self.sums(old.expects, 'expects')})"
        text = (
            f"the {self.name(life.place)} completed phase {issued}{said} before the {nbytes} bytes of a copy of "
            f"that phase had landed; these bytes count in phase {life.now.number}"
        )
        expects = [] if old is None else old.expects
        facts: dict[str, Any] = {
            "phase": issued, "expected": sum(one.amount for one in expects), "bytes": nbytes,
            "cause": "transaction bytes", "expected at": self.lines(expects), "initialised at": self.line(life.at),
        }  # fmt: skip
        change = self.expectation(expects, sum(one.amount for one in expects) + nbytes)
        facts |= {} if change is None else {"change": change}
        self.say("phase completed early", at, text, life, "mbarrier: tx-count", who, **facts)

    def line(self, at: int) -> int:
        """The PTX line of an instruction."""
        found: int = self.m.code.instructions[at].line
        return found

    def _too_many_bytes(self, life: Life, barrier: Mbarrier, at: int, nbytes: int) -> None:
        phase = life.now
        total = sum(one.amount for one in phase.brought)
        text = self._bytes_text(life, [phase])
        facts: dict[str, Any] = {
            "phase": barrier.phase, "expected": barrier.expected, "bytes": total, "cause": "transaction bytes",
            "expected at": self.lines(phase.expects), "delivered at": self.lines(phase.brought),
        }  # fmt: skip
        change = self.expectation(phase.expects, total)
        facts |= {} if change is None else {"change": change}
        self.say("more bytes than expected", at, text, life, "mbarrier: tx-count", phase.brought[-1].threads, **facts)

    def _bytes_text(self, life: Life, phases: list[PhaseRecord]) -> str:
        """Text about phases that get more bytes than they expect, with the lines that expect and bring the bytes."""
        expects = [one for phase in phases for one in phase.expects]
        brought = [one for phase in phases for one in phase.brought]
        totals = [sum(one.amount for one in lines) for lines in (expects, brought)]
        text = bytes_text(f"the {self.name(life.place)}", totals[0], len(brought), totals[1], phases[0].number)
        sums = [self.sums(expects, "expects")] if expects else []
        return f"{text}: {'; '.join([*sums, self.sums(brought, 'delivered')])}"

    def _stale(self, life: Life, threads: Array, at: int, parity: int) -> None:
        """Report a wait that passes for an already seen phase after its threads have arrived in the next phase."""
        now = life.now
        own = {thread for one in (*now.arrivals, *now.expects) for thread in one.threads}
        hit = [thread for thread in threads.tolist() if thread in own]
        if not hit:
            return
        text = (
            f"{self.m.thread_text(hit[0])} waits for parity {parity} of the {self.name(life.place)} and passes, "
            f"because phase {now.number - 1}, which it saw complete before, has that parity; it has arrived in phase "
            f"{now.number} at {self.where((now.arrivals or now.expects)[-1].at)}, and this phase has not completed"
        )
        facts: dict[str, Any] = {"phase": now.number, "parity": parity, "cause": "parity"}
        self.say("parity", at, text, life, "mbarrier.test_wait: phaseParity", hit, **facts)

    def ended(self, m: Host, failed: bool) -> None:
        """Judge the rules that depend on the end of the run."""
        for life in [*self.lives.values(), *self.ended_lives.values()]:
            self._empty(life)
            self._vain(life)
        if not failed:
            for place, life in list(self.lives.items()):
                self.life_at(place)
                self._left_over(life)

    def _vain(self, life: Life) -> None:
        """Report waits that passed for an old phase, if the thread never waits for the next phase, where others
        arrived.
        """
        for thread, (at, phase, parity) in life.repeated.items():
            after = life.phase(phase + 1)
            others = [] if after is None else [one for one in after.arrivals if thread not in one.threads]
            if others:
                old = f"phase {phase}, which it saw complete before," if phase >= 0 else "the phase before the first"
                text = (
                    f"{self.m.thread_text(thread)} waits for parity {parity} of the {self.name(life.place)} and "
                    f"passes, because {old} has that parity; it never waits for phase {phase + 1}, where others "
                    f"arrive ({self.where(others[0].at)})"
                )
                facts: dict[str, Any] = {"phase": phase + 1, "parity": parity, "cause": "parity"}
                self.say("parity", at, text, life, "mbarrier.test_wait: phaseParity", [thread], "warning", **facts)
                return

    def _empty(self, life: Life) -> None:
        """Report waits that passed before the first phase had completed, if that phase counts bytes."""
        first = life.phase(0)
        if not life.empty_waits or not life.bringing or (first is not None and not first.brought):
            return
        at, threads = life.empty_waits[0]
        wait, go = ("waits", "passes") if len(threads) == 1 else ("wait", "pass")
        text = (
            f"{self.m.threads_text(threads)} {wait} for parity 1 of the {self.name(life.place)} in its first phase and "
            f"{go} immediately, because the phase before the first counts as complete; the bytes that the barrier "
            f"counts may not have landed"
        )
        facts: dict[str, Any] = {"phase": 0, "parity": 1, "cause": "parity"}
        self.say("parity", at, text, life, "mbarrier.test_wait: phaseParity", threads.tolist(), **facts)

    def _left_over(self, life: Life) -> None:
        """Report unexpected bytes and missing bytes at the end of the run."""
        barrier, phase = life.barrier, life.now
        if barrier is None or barrier.tx_count == 0:
            return
        left = barrier.tx_count
        facts: dict[str, Any] = {"phase": barrier.phase, "cause": "transaction bytes", "bytes": abs(left)}
        if left < 0 and phase.brought:
            before = life.phase(barrier.phase - 1)
            expects = [] if before is None else before.expects
            text = self._bytes_text(life, [phase] if before is None or not expects else [before, phase])
            if expects:
                text += f"; {-left} of these bytes count in phase {barrier.phase}"
            facts |= {"expected at": self.lines(expects), "delivered at": self.lines(phase.brought)}
            change = self.expectation(expects, sum(one.amount for one in expects) - left)
            facts |= {} if change is None else {"change": change}
            last = phase.brought[-1]
            self.say("more bytes than expected", last.at, text, life, "mbarrier: tx-count", last.threads, **facts)
        elif left > 0 and phase.expects and not life.under_way:
            text = (
                f"phase {barrier.phase} of the {self.name(life.place)} expects {barrier.expected} bytes "
                f"({self.sums(phase.expects, 'expects')}), and no copy delivers {left} of them; no thread waits for "
                f"the phase"
            )
            facts |= {"expected at": self.lines(phase.expects), "delivered at": self.lines(phase.brought)}
            last = phase.expects[-1]
            self.say("expected bytes are missing", last.at, text, life, "mbarrier: tx-count", last.threads, **facts)
