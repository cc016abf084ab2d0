"""The mbarrier instructions: init, inval, arrive, expect_tx, test_wait, try_wait. `Mbarrier` of the TMA emulator does
the counting.

A token (the state that an arrival returns) contains the index of the phase, and the number of arrivals that were
pending before. `try_wait` suspends its threads until the phase has completed. If nothing else can run, `try_wait`
returns false, as if its time limit had passed.
Source: PTX ISA 9.0, mbarrier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from cute_py.errors import CuteError
from cute_py.machine.decode import Builder, Turn
from cute_py.machine.faults import Refused
from cute_py.machine.judgement.waits import FailedTests, PhaseWait
from cute_py.machine.memory import locate
from cute_py.machine.schedule import Waiting
from cute_py.machine.sites import Site
from cute_py.machine.threads import Array, Frame, Host, Run, broadcast
from cute_py.tma.emulator.mbarrier import MAX_COUNT, Mbarrier, init_barrier

PHASE_BITS: Final = 32
Gone = list[tuple[int, Frame]]


def barriers_of(f: Frame, site: Site, place: int) -> Mbarrier:
    """Return the mbarrier at offset `place` in the shared memory of all CTAs."""
    m = f.m
    cta, offset = divmod(place, m.shared_stride)
    found = m.windows[cta].barriers.get(offset)
    if not isinstance(found, Mbarrier):
        known = ", ".join(hex(m.shared_base + at) for at in sorted(m.windows[cta].barriers)) or "none"
        rule, text = "mbarrier not initialised", f"{f.text()}: no mbarrier was initialised at shared address "
        text += f"{m.shared_base + offset:#x}"
        ledger = m.state.get("ledger")
        if ledger is not None and place in ledger.ended_lives:
            rule, where = "mbarrier used after inval", ledger.where(ledger.ended_lives[place].ended)
            verb = "uses" if f.n == 1 else "use"
            text = f"{f.text()} {verb} the mbarrier at {m.shared_base + offset:#x}, which {where} invalidated"
        raise site.fault(rule, text, f, "mbarrier", barrier=f"{m.shared_base + offset:#x}", initialised=known)
    return found


def land(f: Frame, site: Site, place: int, nbytes: int) -> None:
    """Count `nbytes` of a transfer at the mbarrier at offset `place`."""
    landed(f, place, barriers_of(f, site, place), nbytes, site.number)


def landed(f: Frame, place: int, barrier: Mbarrier, nbytes: int, at: int) -> None:
    """Count `nbytes` of a transfer at an mbarrier; the instruction with index `at` issued the transfer."""
    m = f.m
    m.observer.landed(m, place, barrier, nbytes, at)
    before = barrier.phase
    barrier.complete_tx(nbytes)
    if barrier.phase != before:
        m.observer.phase_ended(m, place, barrier)


def _space(site: Site) -> str:
    return site.choice("shared", "shared::cta", "shared::cluster", default="generic")


def _orders(site: Site) -> None:
    site.flag("release", "relaxed", "acquire")
    site.flag("cta", "cluster")


def build_mbarrier(site: Site) -> Run | Turn:
    """Build the function that runs an mbarrier instruction."""
    builders = {
        "init": _build_init, "inval": _build_inval, "arrive": _build_arrive, "arrive_drop": _build_arrive,
        "expect_tx": _build_bytes, "complete_tx": _build_bytes, "test_wait": _build_wait, "try_wait": _build_wait,
        "pending_count": _build_pending,
    }  # fmt: skip
    action = site.choice(*builders)
    if not action:
        raise Refused(f"{site.one.opcode} is not emulated")
    return builders[action](site, action)


def _build_init(site: Site, action: str) -> Run:
    space = _space(site)
    site.kind("b64")
    site.finish(2)
    where, count = locate(site, 0, space, 8, writes=True), site.reader(1, "u32")

    def run(f: Frame) -> None:
        m = f.m
        counts = broadcast(count(f), f).tolist()
        for thread, place, number in zip(f.threads.tolist(), where(f)[1].tolist(), counts, strict=True):
            cta, offset = divmod(place, m.shared_stride)
            one = f if f.n == 1 else m.span(thread, thread + 1)
            if not 1 <= number <= MAX_COUNT:
                text = f"{f.text()}: mbarrier.init with count {number}; must be 1 to {MAX_COUNT}"
                raise site.fault("mbarrier count", text, f, "mbarrier.init")
            m.observer.initialised(one, site, place, number)
            init_barrier(m.windows[cta], offset, number, name=f"mbarrier at {m.shared_base + offset:#x}")
        m.changed()

    return run


def _build_inval(site: Site, action: str) -> Run:
    space = _space(site)
    site.kind("b64")
    site.finish(1)
    where = locate(site, 0, space, 8, writes=True)

    def run(f: Frame) -> None:
        for thread, place in zip(f.threads.tolist(), where(f)[1].tolist(), strict=True):
            barriers_of(f, site, place)
            f.m.observer.invalidated(f.m.span(thread, thread + 1), site, place)
            cta, offset = divmod(place, f.m.shared_stride)
            f.m.windows[cta].barriers.pop(offset, None)

    return run


def arrive_at(
    f: Frame, site: Site, place: int, barrier: Mbarrier, count: int, drops: bool = False, expected: int | None = None
) -> int:
    """Make `count` arrivals, which may complete phases; return the token of the first arrival."""
    f.m.observer.arrived(f, site, place, barrier, count, expected)
    if expected is not None and barrier.pending:
        _counted(f, site, barrier, "expect_tx", expected)
    token = barrier.phase & 0xFFFFFFFF | barrier.pending << PHASE_BITS
    left = count
    while left:
        now = min(left, barrier.pending)
        if now < 1:
            waits = f"all {barrier.arrive_count} arrivals were made, and {barrier.tx_count} bytes are missing"
            text = f"{f.text()} arrives once too often at the {barrier.name} in phase {barrier.phase}: {waits}"
            facts = {"barrier": barrier.name, "phase": barrier.phase}
            raise site.fault("too many arrivals", text, f, "mbarrier.arrive", **facts)
        if drops:
            barrier.arrive_drop(now)
        else:
            barrier.arrive(now)
        left -= now
        if not barrier.pending or barrier.phase != token & 0xFFFFFFFF:
            _reported(f.m, place, barrier, token)
    return token


def _reported(m: Host, place: int, barrier: Mbarrier, token: int) -> None:
    if barrier.phase & 0xFFFFFFFF != token & 0xFFFFFFFF:
        m.observer.phase_ended(m, place, barrier)


def _build_arrive(site: Site, action: str) -> Run:
    site.flag("noComplete")
    expects = site.flag("expect_tx")
    _orders(site)
    space = _space(site)
    site.kind("b64")
    returns = not site.one.operands[0].text.startswith("[")
    first = 1 if returns else 0
    site.finish((first + 1, first + 2))
    put = site.writer(0, "b64") if returns else None
    where = locate(site, first, space, 8, writes=True)
    number = site.reader(first + 1, "u32") if len(site.operands) > first + 1 else None
    sinks = not returns or site.operand(0).text == "_"

    def run(f: Frame) -> None:
        places = where(f)[1]
        numbers = np.ones(f.n, np.int64) if number is None else broadcast(number(f), f).astype(np.int64)
        tokens = np.zeros(f.n, np.uint64)
        for place in np.unique(places).tolist():
            barrier = barriers_of(f, site, place)
            chosen = np.flatnonzero(places == place)
            if expects or not sinks:
                for thread in chosen.tolist():
                    one = f if f.n == 1 else f.m.span(int(f.threads[thread]), int(f.threads[thread]) + 1)
                    tokens[thread] = _arrive_one(one, site, place, barrier, int(numbers[thread]), expects, action)
            else:
                for some, count in _phase_parts(f, chosen, numbers, barrier):
                    arrive_at(some, site, place, barrier, count, action == "arrive_drop")
        if put is not None and not sinks:
            put(f, tokens)
        f.m.changed()

    return run


def _phase_parts(f: Frame, chosen: Array, numbers: Array, barrier: Mbarrier) -> Iterator[tuple[Frame, int]]:
    """Yield the threads of a frame that arrive in one phase of a barrier together, and the number of their arrivals.

    Args:
        chosen: the indices of the threads that arrive. numbers: the arrivals of each thread of the frame.
    """
    total = int(numbers[chosen].sum())
    if total <= max(barrier.pending, 1) or len(chosen) == 1:
        yield f if len(chosen) == f.n else f.subset(np.isin(np.arange(f.n), chosen)), total
        return
    left = chosen
    while len(left):
        sums = np.cumsum(numbers[left])
        size = max(int(np.searchsorted(sums, max(barrier.pending, 1), "right")), 1)
        yield f.subset(np.isin(np.arange(f.n), left[:size])), int(sums[size - 1])
        left = left[size:]


def _arrive_one(f: Frame, site: Site, place: int, barrier: Mbarrier, number: int, expects: bool, action: str) -> int:
    if expects:
        return arrive_at(f, site, place, barrier, 1, action == "arrive_drop", number)
    return arrive_at(f, site, place, barrier, number, action == "arrive_drop")


def _counted(f: Frame, site: Site, barrier: Mbarrier, action: str, nbytes: int) -> None:
    try:
        barrier.expect_tx(nbytes) if action == "expect_tx" else barrier.complete_tx(nbytes)
    except CuteError as error:
        raise site.fault("transaction count", f"{f.text()}: {error.headline}", f, "mbarrier tx-count") from None


def _build_bytes(site: Site, action: str) -> Run:
    _orders(site)
    space = _space(site)
    site.kind("b64")
    site.finish(2)
    where, number = locate(site, 0, space, 8, writes=True), site.reader(1, "u32")

    def run(f: Frame) -> None:
        numbers = broadcast(number(f), f).tolist()
        for place, nbytes in zip(where(f)[1].tolist(), numbers, strict=True):
            barrier = barriers_of(f, site, place)
            report = f.m.observer.expected if action == "expect_tx" else None
            if report is not None:
                report(f, site, place, barrier, nbytes)
            else:
                f.m.observer.landed(f.m, place, barrier, nbytes, site.number)
            before = barrier.phase
            _counted(f, site, barrier, action, nbytes)
            if barrier.phase != before:
                f.m.observer.phase_ended(f.m, place, barrier)
        f.m.changed()

    return run


def _build_pending(site: Site, action: str) -> Run:
    site.kind("b64")
    site.finish(2)
    put, token = site.writer(0, "u32"), site.reader(1, "b64")
    return lambda f: put(f, (np.asarray(token(f)) >> np.uint64(PHASE_BITS)).astype(np.uint32))


def _over(f: Frame, site: Site, by_parity: bool, places: Array, phases: Array) -> Array:
    flags = np.zeros(f.n, np.bool_)
    for place in np.unique(places).tolist():
        barrier = barriers_of(f, site, place)
        chosen = places == place
        if by_parity:
            flags[chosen] = phases[chosen] != barrier.phase & 1
        else:
            flags[chosen] = (phases[chosen] & 0xFFFFFFFF) != barrier.phase & 0xFFFFFFFF
    return flags


def _report(f: Frame, site: Site, by_parity: bool, places: Array, phases: Array, flags: Array) -> None:
    """Report the threads whose phase has completed, and record the tests of the others."""
    observer = f.m.observer
    if observer.active and flags.any():
        passed = f if flags.all() else f.subset(flags)
        observer.passed(passed, site, places[flags], phases[flags], by_parity)
    if not flags.all():
        tests = f.m.state.get("failed tests")
        if tests is None:
            tests = f.m.state["failed tests"] = FailedTests(f.m.count)
        tests.record(f.threads[~flags], site.number, PhaseWait(places[~flags], phases[~flags], by_parity))


def _build_wait(site: Site, action: str) -> Run | Turn:
    by_parity = site.flag("parity")
    _orders(site)
    space = _space(site)
    site.kind("b64")
    site.finish((3, 4))
    put = site.writer(0, "pred")
    where = locate(site, 1, space, 8, writes=False)
    phase = site.reader(2, "u32" if by_parity else "b64")
    after = site.number + 1

    def test(f: Frame) -> None:
        f.m.looked = True
        places, phases = where(f)[1], broadcast(phase(f), f).astype(np.int64)
        flags = _over(f, site, by_parity, places, phases)
        put(f, flags)
        _report(f, site, by_parity, places, phases, flags)

    def tries(f: Frame) -> Gone | None:
        places, phases = where(f)[1], broadcast(phase(f), f).astype(np.int64)
        flags = _over(f, site, by_parity, places, phases)
        _report(f, site, by_parity, places, phases, flags)
        if flags.all():
            put(f, np.bool_(True))
            return None
        rest = f if not flags.any() else f.subset(~flags)
        gone: Gone = []
        if rest is not f:
            passed = f.subset(flags)
            put(passed, np.bool_(True))
            gone.append((after, passed))
        put(rest, np.bool_(False))
        held = PhaseWait(places[~flags], phases[~flags], by_parity)

        def ready(one: Waiting) -> tuple[Gone, Frame | None] | None:
            now = _over(one.frame, site, by_parity, held.places, held.phases)
            if not now.any():
                return None
            _report(one.frame, site, by_parity, held.places, held.phases, now)
            passed = one.frame if now.all() else one.frame.subset(now)
            put(passed, np.bool_(True))
            if passed is one.frame:
                return [(one.pc, passed)], None
            held.places, held.phases = held.places[~now], held.phases[~now]
            return [(one.pc, passed)], one.frame.subset(~now)

        def what() -> str:
            barrier = barriers_of(rest, site, int(held.places[0]))
            number = int(held.phases[0])
            said = f"the phase of parity {number}" if by_parity else f"phase {number & 0xFFFFFFFF}"
            return f"{said} of the {barrier.name}, which is in {barrier}"

        f.m.wait(Waiting(rest, after, site.number, ready, what, looks=True, on=held))
        return gone

    return test if action == "test_wait" else Turn(tries)


TABLE: Final[Mapping[str, Builder]] = {"mbarrier": build_mbarrier}
