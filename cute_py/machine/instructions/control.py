"""Control flow: branches, and barriers of a CTA and of a cluster.

A barrier of a CTA completes when the expected number of threads has arrived: the thread count of the instruction, or
without one, all threads of the CTA that have not exited. The barrier of a cluster expects all threads of the cluster
that have not exited.
Source: PTX ISA 9.0, control flow instructions, bar, barrier.cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from cute_py.machine.decode import Builder, Turn
from cute_py.machine.faults import finding
from cute_py.machine.instructions.calls import build_call, build_exit, build_return
from cute_py.machine.instructions.lanes import collective
from cute_py.machine.judgement.waits import BarWait, ClusterWait
from cute_py.machine.memory import address_reader, host_place
from cute_py.machine.schedule import Waiting
from cute_py.machine.sites import Site
from cute_py.machine.threads import LANES, Array, Frame, Host, Reader, Run, broadcast

Gone = list[tuple[int, Frame]]


def build_branch(site: Site) -> Turn:
    """bra, with or without `.uni`: all threads, or all threads whose predicate is true, jump."""
    site.flag("uni")
    site.finish(1)
    target = site.code.entry_of[site.function] + site.one.targets[0]
    return Turn(lambda f: [(target, f)])


def build_indexed_branch(site: Site) -> Turn:
    """brx.idx: jump to a label that an index selects from a table."""
    site.flag("idx", "uni")
    site.flag("uni")
    site.finish(2)
    index = site.reader(0, "u32")
    base = site.code.entry_of[site.function]
    targets = [base + target for target in site.one.targets]

    def go(f: Frame) -> Gone:
        which = broadcast(index(f), f)
        if int(which.max()) >= len(targets):
            text = f"{f.text()}: index {int(which.max())} is outside a table of {len(targets)} labels"
            raise site.fault("branch index", text, f, "brx.idx")
        return [(targets[i], f.subset(which == i)) for i in np.unique(which).tolist()]

    return Turn(go)


def build_trap(site: Site) -> Turn:
    """trap: end the run with a fault."""
    site.finish(0)

    def go(f: Frame) -> Gone:
        raise site.fault("trap", f"{f.m.thread_text(f.threads[0])} executes trap", f, "trap")

    return Turn(go)


def build_nothing(site: Site) -> None:
    """griddepcontrol, pmevent, applypriority, discard: no effect."""


# ---- barriers of a CTA -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Bar:
    """State of a barrier: arrivals of the current round, the thread count that each instruction names, the number of
    completed rounds, and the result of a reduction for each round.
    """

    arrived: int = 0
    expected: int | None = None
    counts: dict[int, int] = field(default_factory=dict)
    rounds: int = 0
    values: list[tuple[Array, Array]] = field(default_factory=list)
    found: dict[int, Any] = field(default_factory=dict)


def build_barrier(site: Site) -> Turn | None:
    """Build the function that runs bar or barrier: sync, arrive, red, warp.sync, cluster."""
    if site.flag("warp"):
        site.flag("sync")
        site.finish(1)
        return collective(site, site.reader(0, "u32"), lambda f: f.m.observer.warp_met(f, site))
    if site.flag("cluster"):
        return _build_cluster(site)
    site.flag("cta")
    action = site.choice("sync", "arrive", "red")
    site.flag("aligned")
    operation = site.choice("popc", "and", "or") if action == "red" else ""
    if operation:
        site.flag("pred", "u32")
    place = 1 if operation else 0
    numbers = len(site.operands) - (2 if operation else 0)
    site.finish((1, 2, 3, 4))
    name = site.reader(place, "u32")
    counted = site.reader(place + 1, "u32") if numbers > 1 else None
    value = site.predicate(len(site.operands) - 1) if operation else None
    put = None if not operation else site.writer(0, "u32" if operation == "popc" else "pred")
    return Turn(_barrier(site, action, operation, (name, counted, value), put))


def _barrier(
    site: Site, action: str, operation: str, sources: tuple[Reader, Reader | None, Reader | None], put: Any
) -> Callable[[Frame], Gone | None]:
    name, counted, value = sources
    after = site.number + 1

    def go(f: Frame) -> Gone | None:
        m = f.m
        bars: dict[tuple[int, int], _Bar] = m.state.setdefault("bars", {})
        if action == "sync" and counted is None and _all_here(f) and not bars:
            m.observer.block_met(f, site)
            return None
        gone: Gone = []
        numbers = broadcast(name(f), f)
        for cta, number, frame in _by_number(f, numbers):
            if number > 15:
                raise site.fault("barrier number", f"barrier {number}; must be 0 to 15", frame, "bar")
            bar = bars.setdefault((cta, number), _Bar())
            left: Frame | None = frame
            while left is not None:
                part, left = left, None
                if counted is not None:
                    bar.expected = bar.counts[site.number] = int(np.max(counted(part)))
                    part, left = _divided(part, bar.expected - bar.arrived)
                m.observer.bar_arrived(part, site, cta, number, action != "arrive", bar.expected)
                bar.arrived += LANES * len(part.warps) if counted is not None and part.whole() else part.n
                if value is not None:
                    bar.values.append((part.threads, broadcast(value(part), part).copy()))
                _complete(m, bars, cta, number, operation)
                if action == "arrive":
                    gone.append((after, part))
                elif bar.arrived == 0:
                    if put is not None:
                        put(part, bar.found[bar.rounds - 1])
                    gone.append((after, part))
                else:
                    m.wait(_waiting(site, part, (cta, number), bar, (operation, put)))
        return gone

    return go


def _divided(f: Frame, missing: int) -> tuple[Frame, Frame | None]:
    """Return the warps that arrive in the current round, which needs this number of arrivals, and the warps that arrive
    later: a warp arrives alone, so a round ends with the first warp that completes the count.
    """
    fits = max(-(-missing // LANES), 1)
    if missing <= 0 or len(f.warps) <= fits:
        return f, None
    first = np.isin(f.threads // LANES, f.warps[:fits])
    return f.subset(first), f.subset(~first)


def _by_number(f: Frame, numbers: Array) -> list[tuple[int, int, Frame]]:
    """Return (CTA, number of the barrier, frame of threads that reached it) for each barrier."""
    if len(f.parts) == 1 and (numbers == numbers[0]).all():
        return [(f.parts[0][0], int(numbers[0]), f)]
    found = []
    for cta, part in f.parts:
        threads, own = f.threads[part], numbers[part]
        for number in np.unique(own).tolist():
            found.append((cta, number, f.m.frame(threads[own == number])))
    return found


def _complete(m: Host, bars: dict[tuple[int, int], _Bar], cta: int, number: int, operation: str) -> None:
    """End the round of a barrier if all expected threads have arrived."""
    bar = bars[cta, number]
    start = cta * m.cta_threads
    expected = bar.expected
    if expected is None:
        expected = int(np.count_nonzero(m.live[start : start + m.cta_threads]))
    if bar.arrived and bar.arrived >= expected:
        if bar.values:
            flags = np.concatenate([values for _, values in bar.values])
            count = int(np.count_nonzero(flags))
            bar.found[bar.rounds] = {"popc": count, "and": count == len(flags), "or": count > 0}[operation]
            bar.values = []
        bar.arrived, bar.expected, bar.counts = 0, None, {}
        bar.rounds += 1
        m.observer.bar_ended(m, cta, number)
        m.changed()


def _waiting(site: Site, frame: Frame, key: tuple[int, int], bar: _Bar, red: tuple[str, Any]) -> Waiting:
    round_ = bar.rounds
    m = frame.m
    operation, put = red

    def ready(one: Waiting) -> tuple[Gone, Frame | None] | None:
        if bar.rounds == round_:
            _complete(m, m.state["bars"], *key, operation)
        if bar.rounds == round_:
            return None
        if put is not None:
            put(one.frame, bar.found[round_])
        return [(one.pc, one.frame)], None

    def what() -> str:
        start = key[0] * m.cta_threads
        expected = bar.expected or int(np.count_nonzero(m.live[start : start + m.cta_threads]))
        return f"barrier {key[1]}, where {bar.arrived} of {expected} threads have arrived"

    return Waiting(frame, site.number + 1, site.number, ready, what, on=BarWait(*key))


def _all_here(f: Frame) -> bool:
    """Whether a frame has all live threads of each of its CTAs."""
    kept = f.cache.get("all")
    if kept is None or kept[0] != f.m.exits:
        live = f.m.live.reshape(f.m.ctas, -1)[[cta for cta, _ in f.parts]]
        kept = f.cache["all"] = (f.m.exits, int(np.count_nonzero(live)) == f.n)
    return bool(kept[1])


# ---- barriers of a cluster -------------------------------------------------------------------------------------------


def _cluster_state(m: Host) -> tuple[Array, Array, Array]:
    """The completed rounds and the arrivals of each cluster, and the round of each thread's arrival."""
    if "clusters" not in m.state:
        count = m.ctas // m.cluster_size
        m.state["clusters"] = (np.zeros(count, np.int64), np.zeros(count, np.int64), np.full(m.count, -1, np.int64))
    found: tuple[Array, Array, Array] = m.state["clusters"]
    return found


def _settle(m: Host) -> None:
    rounds, arrived, _ = _cluster_state(m)
    live = m.live.reshape(m.ctas // m.cluster_size, -1).sum(axis=1)
    over = (arrived > 0) & (arrived >= live)
    if over.any():
        rounds[over] += 1
        arrived[over] = 0
        m.changed()


def _build_cluster(site: Site) -> Turn:
    action = site.choice("arrive", "wait")
    relaxed = site.choice("release", "relaxed", "acquire") == "relaxed"
    site.flag("aligned")
    site.finish(0)
    after = site.number + 1

    def arrive(f: Frame) -> None:
        rounds, arrived, own = _cluster_state(f.m)
        cluster = f.ctas // f.m.cluster_size
        f.m.observer.cluster_arrived(f, site, relaxed)
        np.add.at(arrived, cluster, 1)
        own[f.threads] = rounds[cluster]
        _settle(f.m)

    def ready(one: Waiting) -> tuple[Gone, Frame | None] | None:
        m = one.frame.m
        _settle(m)
        rounds, _, own = _cluster_state(m)
        over = rounds[one.frame.ctas // m.cluster_size] > own[one.frame.threads]
        if over.all():
            m.observer.cluster_passed(one.frame, site)
            return [(one.pc, one.frame)], None
        if not over.any():
            return None
        m.observer.cluster_passed(one.frame.subset(over), site)
        return [(one.pc, one.frame.subset(over))], one.frame.subset(~over)

    def wait(f: Frame) -> Gone | None:
        m = f.m
        rounds, arrived, own = _cluster_state(m)
        if (own[f.threads] < 0).any():
            text = f"{f.text()} waits for the barrier of its cluster, but has not arrived there"
            raise site.fault("cluster barrier", text, f, "barrier.cluster")
        over = rounds[f.ctas // m.cluster_size] > own[f.threads]
        if over.any():
            m.observer.cluster_passed(f if over.all() else f.subset(over), site)
        if over.all():
            return None

        def what() -> str:
            cluster = int(f.ctas[0]) // m.cluster_size
            return f"the barrier of its cluster, where {int(arrived[cluster])} threads have arrived"

        rest = f if not over.any() else f.subset(~over)
        m.wait(Waiting(rest, after, site.number, ready, what, on=ClusterWait()))
        return [] if rest is f else [(after, f.subset(over))]

    def go(f: Frame) -> Gone | None:
        if action == "arrive":
            arrive(f)
            return None
        return wait(f)

    return Turn(go)


# ---- registers of a warp, sleep --------------------------------------------------------------------------------------


def build_fence(site: Site) -> Run:
    """fence, membar: no effect, because memory is always in order here; the observer gets the event."""
    if "tensormap::generic" in site.modifiers and "acquire" in site.modifiers and site.operands:
        return _build_map_acquire(site)
    return lambda f: f.m.observer.fenced(f, site)


def _build_map_acquire(site: Site) -> Run:
    """fence.proxy.tensormap::generic.acquire: report to the observer that a tensor map is acquired."""
    read = address_reader(site, site.address(0), "generic")
    scope = site.choice("cta", "cluster", "gpu", "sys")

    def run(f: Frame) -> None:
        if not f.m.observer.active:
            return
        for cta, part in f.parts:
            for address in np.unique(read(f)[part]).tolist():
                found = host_place(f.m, cta, address)
                if found is not None:
                    f.m.observer.map_acquired(f, site, cta, *found, scope)

    return run


def build_register_count(site: Site) -> Turn:
    """setmaxnreg, by whole warpgroups: no effect, because registers have no limit here; the observer gets the event."""
    increases = site.choice("inc", "dec") == "inc"
    site.flag("sync")
    site.flag("aligned")
    site.kind("u32")
    site.finish(1)
    count = site.constant(0)
    return collective(site, None, lambda f: f.m.observer.registers_set(f, site, count, increases), warps=4)


def build_sleep(site: Site) -> Run:
    """nanosleep: advance the clock by the duration; a loop that only sleeps and polls is parked."""
    site.kind("u32")
    site.finish(1)
    time = site.reader(0, "u32")

    def run(f: Frame) -> None:
        f.m.totals.clock += int(np.max(time(f)))
        f.m.looked = True

    return run


def build_break(site: Site) -> Run:
    """brkpt: record a warning, and continue."""
    site.finish(0)

    def run(f: Frame) -> None:
        note = finding("breakpoint", f"{f.text()} passes a breakpoint", site.one, files=site.code.files,
                       severity="warning")  # fmt: skip
        f.m.totals.findings.append(note)

    return run


TABLE: Final[Mapping[str, Builder]] = {
    "bra": build_branch,
    "brx": build_indexed_branch,
    "exit": build_exit,
    "ret": build_return,
    "call": build_call,
    "trap": build_trap,
    "brkpt": build_break,
    "bar": build_barrier,
    "barrier": build_barrier,
    "setmaxnreg": build_register_count,
    "nanosleep": build_sleep,
    **dict.fromkeys(("fence", "membar"), build_fence),
    **dict.fromkeys(("griddepcontrol", "pmevent", "applypriority", "discard"), build_nothing),
}
