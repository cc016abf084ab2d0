"""Update the vector clocks at the synchronisation events that the machine reports: barriers, mbarriers, fences, groups,
strong accesses.

A barrier of a CTA or a cluster joins the clocks of the threads that arrive, and passes them to the threads that wait. A
phase of an mbarrier works in the same way: arrivals release clocks, and a wait that finds the phase complete acquires
them, including the bytes that completed in this phase. A strong write releases at its address, and a strong read
acquires from its address; this module assumes that the fences that these accesses need are present.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cute_py.machine.judgement.observer import AccessOrder, AsyncWork, Observer
from cute_py.machine.judgement.races.clocks import MAX_TIME, Clocks, Released
from cute_py.machine.judgement.races.releases import Releases
from cute_py.machine.judgement.waits import PhaseWait
from cute_py.machine.threads import LANES

if TYPE_CHECKING:
    from cute_py.machine.code import Code
    from cute_py.machine.judgement.races.reports import Reports
    from cute_py.machine.sites import Site
    from cute_py.machine.threads import Array, Frame, Host
    from cute_py.tma.emulator.mbarrier import Mbarrier

RING: Final = 64
"""Number of commits of each kind that are kept for a warp. No wait_group counts back further."""

MAX_PLACES: Final = 32
"""Maximum number of separate places where one instruction synchronises; more are treated as one place."""


@dataclass(slots=True)
class _Phases:
    """An mbarrier: its initialisation, its current phase, and the clocks released in this phase and in completed
    phases.
    """

    cluster: int
    row: int
    time: int
    start: int
    made: Site
    arriving: Released
    over: Released
    used: Array
    """(warps of the cluster,): when each warp used it last."""
    fenced: bool = False
    phase: int = 0
    waited: set[int] = field(default_factory=set)
    """The warps of the cluster that have waited for a phase."""
    seen: set[tuple[bytes, bool]] = field(default_factory=set)
    """Warps that know the initialisation, with the proxy; clocks only grow, so this stays true."""


class ClockKeeper(Observer):
    """Observer that keeps the clocks of the waves of one run."""

    active = True
    clocks: Clocks

    def __init__(self, reports: Reports, code: Code) -> None:
        self.reports = reports
        self.unread = _unread_waits(code)
        """The test_wait and try_wait instructions that order nothing, because no instruction reads their result."""
        self.far_used = False
        self._now = 1

    def began(self, m: Host) -> None:
        """Start new clocks for CTAs that begin to run together."""
        if hasattr(self, "clocks"):
            self.far_used |= self.clocks.far is not None or self.clocks.far_given_up
            self._now = self.clocks.now
        self.m = m
        self.clocks = Clocks(m, self._now)
        self.reports.releases = self.releases = Releases(m, self.clocks)
        self._early: dict[int, tuple[_Phases, int, Frame, Site, int]] = {}
        """Place of an mbarrier -> the mbarrier, the warp, threads and site of the first arrival that nothing orders
        after the phase before it, and the number of its phase."""
        self.barriers: dict[int, _Phases | None] = {}
        """Place -> its mbarrier; None if the mbarrier was invalidated."""
        self.loads: dict[int, dict[int, tuple[int, Site, Frame]]] = {}
        """CTA -> place of an mbarrier -> time of the last bytes for this CTA, and the threads that issued them."""
        self._bars: dict[tuple[int, int], Released] = {}
        self._round: dict[tuple[int, int], Array] = {}
        """(CTA, barrier with a count) -> (warps of the cluster,): when each warp arrived in this round."""
        self._rounds: dict[tuple[int, int], Array] = {}
        """These times of the round before, until an arrival that nothing orders after them."""
        self._clusters: dict[int, Released] = {}
        self._relaxed: dict[int, Array] = {}
        """Cluster -> (warps,): time of each warp's last arrival at the cluster's barrier."""
        self._separated: dict[int, Array] = {}
        """Cluster -> (waiting warp, warp): the last arrival of a warp that a wait knows, also a relaxed one."""
        self._commits: dict[str, tuple[Array, Array]] = {}
        self._meetings: dict[tuple[int, int, int], Released] = {}
        self._far: dict[tuple[int, int], Array] = {}
        self._unfenced = np.zeros(m.ctas, np.bool_)
        """For each CTA: whether it has written global memory since its last fence."""
        self._assumed: dict[tuple[int, int], tuple[int, Site]] = {}
        """Array and place -> CTA and site of a relaxed write there, which no fence of its CTA precedes."""

    # ---- barriers of a warp, of a CTA, of a cluster ------------------------------------------------------------------

    def warp_met(self, f: Frame, site: Site) -> None:
        """Record a bar.warp.sync: the lanes of the warps have synchronised."""
        self.clocks.lanes_met(f.warps)

    def block_met(self, f: Frame, site: Site) -> None:
        """Join the clocks at a bar.sync of whole CTAs."""
        self.clocks.all_met(f)

    def bar_arrived(self, f: Frame, site: Site, cta: int, number: int, waits: bool, expected: int | None) -> None:
        """Release the clocks of threads that arrive at a barrier."""
        held = self._bars.get((cta, number))
        if held is None:
            held = self._bars[cta, number] = self.clocks.empty()
        if expected is not None:
            self._counted(f, site, (cta, number))
        self.clocks.release(f, held)
        held.threads += f.n
        if waits:
            held.waiters.append(f)

    def _counted(self, f: Frame, site: Site, key: tuple[int, int]) -> None:
        """Check that arriving warps know all arrivals of the round before: if they do not, they may arrive in it."""
        clocks = self.clocks
        clocks.tick()
        cluster, rows = clocks.rows(f)
        before = self._rounds.get(key)
        if before is not None:
            late = clocks.known[cluster, rows, 0, : clocks.warps] < before
            late[np.arange(len(rows)), rows] = False
            if late.any():
                warp = int(np.flatnonzero(late.any(axis=1))[0])
                other = int(np.flatnonzero(late[warp])[0])
                some = f.subset(f.threads // LANES == int(f.warps[warp]))
                self.reports.early_arrival(some, site, key[1], int(f.warps[warp]) - int(rows[warp]) + other)
                del self._rounds[key]
        self._round.setdefault(key, np.zeros(clocks.warps, np.int64))[rows] = clocks.now

    def bar_ended(self, m: Host, cta: int, number: int) -> None:
        """Acquire the released clocks for the threads that wait, when a round of a barrier ends."""
        arrived = self._round.pop((cta, number), None)
        if arrived is None:
            self._rounds.pop((cta, number), None)
        else:
            self._rounds[cta, number] = arrived
        held = self._bars.pop((cta, number), None)
        if held is None:
            return
        waiting = sum(f.n for f in held.waiters)
        for f in held.waiters:
            self.clocks.acquire(f, held)
        live = int(np.count_nonzero(m.live[cta * m.cta_threads : (cta + 1) * m.cta_threads]))
        if waiting >= live:
            self.clocks.set_floor(cta)
        self.clocks.tick()

    def cluster_arrived(self, f: Frame, site: Site, relaxed: bool) -> None:
        """Release the clocks of threads that arrive at the barriers of clusters."""
        for cluster, part in self._by_cluster(f):
            held = self._clusters.get(cluster)
            if held is None:
                held = self._clusters[cluster] = self.clocks.empty()
            self.clocks.release(part, held, fenced=relaxed)
            times = self._relaxed.setdefault(cluster, np.zeros(self.clocks.warps, np.int64))
            times[self.clocks.rows(part)[1]] = self.clocks.now
        self.clocks.tick()

    def cluster_passed(self, f: Frame, site: Site) -> None:
        """Acquire the released clocks for threads that pass the barriers of clusters."""
        for cluster, part in self._by_cluster(f):
            self.clocks.acquire(part, self._clusters[cluster])
            width = self.clocks.warps
            known = self._separated.setdefault(cluster, np.zeros((width, width), np.int64))
            known[self.clocks.rows(part)[1]] = self._relaxed[cluster]

    def _by_cluster(self, f: Frame) -> list[tuple[int, Frame]]:
        numbers = f.ctas // self.m.cluster_size
        if int(numbers[0]) == int(numbers[-1]):
            return [(int(numbers[0]), f)]
        return [(one, f.subset(numbers == one)) for one in np.unique(numbers).tolist()]

    # ---- fences ------------------------------------------------------------------------------------------------------

    def fenced(self, f: Frame, site: Site) -> None:
        """Apply a fence of any kind to the clocks."""
        parts = site.one.opcode.split(".")
        if "proxy" in parts:
            if "async" in parts and "global" not in parts:
                self.clocks.proxy_fence(f)
            return
        self.clocks.fence(f)
        self._unfenced[self.clocks.ctas_of(f)] = False
        if "mbarrier_init" in parts:
            cluster, rows = self.clocks.rows(f)
            mine = set(zip(cluster.tolist(), rows.tolist(), strict=True))
            for held in self.barriers.values():
                if held is not None and (held.cluster, held.row) in mine:
                    held.fenced = True

    # ---- mbarriers ---------------------------------------------------------------------------------------------------

    def initialised(self, f: Frame, site: Site, place: int, count: int) -> None:
        """Record a new mbarrier; its phase times continue the times of an earlier barrier at the same offset."""
        cluster, rows = self.clocks.rows(f)
        _, column = self.clocks.barrier_column(place)
        start = int(self.clocks.known[:, :, 0, column].max()) + 1
        empty = self.clocks.empty
        used = np.zeros(self.clocks.warps, np.int64)
        self.barriers[place] = _Phases(
            int(cluster[0]), int(rows[0]), self.clocks.now, start, site, empty(), empty(), used
        )

    def invalidated(self, f: Frame, site: Site, place: int) -> None:
        """Check that no other warp may still use an mbarrier that is invalidated, and remove it."""
        held = self._use(f, site, place)
        if held is not None:
            cluster, rows = self.clocks.rows(f)
            known = self.clocks.known[cluster[0], rows[0], 0, : self.clocks.warps]
            late = held.used > known
            late[rows] = False
            if late.any():
                self.reports.still_used(f, site, place, self.clocks, held.cluster, int(np.flatnonzero(late)[0]))
        self.barriers[place] = None

    def phase_time(self, place: int) -> int:
        """The clock time of the bytes that complete in the current phase of a barrier."""
        held = self.barriers.get(place)
        return 1 if held is None else min(held.start + held.phase + 1, MAX_TIME)

    def arrived(self, f: Frame, site: Site, place: int, barrier: Mbarrier, count: int, expected: int | None) -> None:
        """Release the clocks of arriving threads; the arrivals of copies released theirs when they were requested."""
        if site.name == "cp":
            return
        held = self._use(f, site, place)
        if held is not None:
            if held.phase and site.name == "mbarrier" and place not in self._early:
                self._unordered(f, site, place, held)
            self.releases.arrived(f, site, place)
            self.clocks.release(f, held.arriving)
            self.clocks.tick()

    def _unordered(self, f: Frame, site: Site, place: int, held: _Phases) -> None:
        """Record an arrival of a warp that does not know that the phase before the current one has completed."""
        cluster, rows = self.clocks.rows(f)
        _, column = self.clocks.barrier_column(place)
        late = np.flatnonzero(self.clocks.known[cluster, rows, 0, column] < held.start + held.phase)
        if not len(late):
            return
        m, owner = self.m, place // self.m.shared_stride % self.m.cluster_size
        late = late[rows[late] // (self.clocks.warps // m.cluster_size) == owner]
        if not len(late):  # a multicast by the owner, which waited for the phase, may have woken the warp
            line = m.code.instructions[site.number].line
            m.totals.unjudged[f"whether the arrivals of line {line} at mbarriers of other CTAs follow their phase"] = (
                None
            )
            return
        warp = int(f.warps[late[0]])
        some = f if len(f.warps) == 1 else f.subset(f.threads // LANES == warp)
        self._early[place] = held, int(rows[late[0]]), some, site, held.phase

    def ended(self, m: Host, failed: bool) -> None:
        """Report the first unordered arrival at an mbarrier that other warps wait for; others may follow from it."""
        waiting = {
            (int(place), int(warp) % self.clocks.warps)
            for one in m.waiting
            if isinstance(one.on, PhaseWait)
            for place in np.unique(one.on.places)
            for warp in one.frame.warps
        }
        for place, (held, warp, f, site, phase) in self._early.items():
            if held.waited - {warp} or any(at == place and other != warp for at, other in waiting):
                self.reports.arrival(f, site, place, phase, held.made)
                return

    def copies_arrive(self, f: Frame, site: Site, places: Array, counted: bool) -> None:
        """Release the clocks of threads whose arrival follows their copies so far, including these copies."""
        clocks = self.clocks
        for place in np.unique(places).tolist():
            some = f.subset(places == place)
            held = self._use(some, site, place)
            if held is not None:
                clocks.release(some, held.arriving)
                _, rows = clocks.rows(some)
                held.arriving.near[0, 3 * clocks.warps + rows] = clocks.now
        clocks.tick()

    def products_arrive(self, f: Frame, site: Site, place: int) -> None:
        """Release the products of a thread so far, which an arrival follows."""
        held = self.barriers.get(place)
        if held is not None:
            _, rows = self.clocks.rows(f)
            held.arriving.near[0, self.clocks.product_column(rows)] = self.clocks.now

    def phase_ended(self, m: Host, place: int, barrier: Mbarrier) -> None:
        """Make the clocks that were released in a phase available to the threads that wait for the phase."""
        held = self.barriers.get(place)
        if held is None:
            return
        _, column = self.clocks.barrier_column(place)
        held.phase = barrier.phase
        over, arriving = held.over, held.arriving
        width = self.clocks.columns
        for one in (over, arriving):
            if len(one.near[0]) < width:
                one.near = np.pad(one.near, ((0, 0), (0, width - len(one.near[0]))))
        np.maximum(over.near, arriving.near, out=over.near)
        over.near[0, column] = min(held.start + barrier.phase, MAX_TIME)
        if arriving.far is not None:
            over.far = arriving.far if over.far is None else np.maximum(over.far, arriving.far)
        held.arriving = self.clocks.empty()

    def expected(self, f: Frame, site: Site, place: int, barrier: Mbarrier, nbytes: int) -> None:
        """Check the use of a barrier by expect_tx."""
        self._use(f, site, place)

    def passed(self, f: Frame, site: Site, places: Array, phases: Array, parity: bool) -> None:
        """Acquire the clocks of completed phases for threads whose wait passed."""
        if site.number in self.unread:
            return
        for place in np.unique(places).tolist():
            some = f if len(places) == 1 or bool((places == place).all()) else f.subset(places == place)
            held = self._use(some, site, place)
            if held is not None:
                held.waited.update(self.clocks.rows(some)[1].tolist())
                self.clocks.acquire(some, held.over)

    def issued(self, f: Frame, site: Site, transfer: AsyncWork) -> None:
        """Check the use of barriers that a copy signals through the asynchronous proxy."""
        for place in transfer.barriers:
            self._use(f, site, place, asynchronous=True)
            self.releases.issued(f, place, self.phase_time(place))

    def _use(self, f: Frame, site: Site, place: int, *, asynchronous: bool = False) -> _Phases | None:
        """Check that the initialisation of a barrier happens before its use by the threads of a frame."""
        held = self.barriers.get(place)
        if held is None:
            return None
        clocks, m = self.clocks, self.m
        owner = place // m.shared_stride
        held.used[clocks.rows(f)[1]] = clocks.now
        far = m.cluster_size > 1 and (len(f.parts) > 1 or f.parts[0][0] != owner)
        if not far and not asynchronous and held.time <= clocks.floor[owner]:
            return held
        who = (f.warps.tobytes(), far or asynchronous)
        if who in held.seen:
            return held
        cluster, rows = clocks.rows(f)
        seen = clocks.known[cluster, rows, 0, held.row]
        late = (seen < held.time) & (rows != held.row)
        if late.any() or bool((cluster != held.cluster).any()):
            self.reports.not_initialised(f, site, place, held.made, self._met(cluster, rows, held))
        elif not held.fenced and (far or asynchronous):
            visible = int(clocks.known[cluster, rows, 1, held.row].max())
            if visible < held.time:
                self.reports.not_fenced(f, site, place, far, held.made)
            else:
                held.seen.add(who)
        else:
            held.seen.add(who)
        return held

    def _met(self, cluster: Array, rows: Array, held: _Phases) -> bool:
        """Whether a cluster barrier, possibly with relaxed arrivals, is between an initialisation and its use by these
        warps.
        """
        known = self._separated.get(held.cluster)
        if known is None or bool((cluster != held.cluster).any()):
            return False
        return bool((known[rows, held.row] >= held.time).all())

    # ---- groups ------------------------------------------------------------------------------------------------------

    def committed(self, f: Frame, site: Site, group: str) -> None:
        """Record the time when warps commit a group."""
        held = self._commits.get(group)
        if held is None:
            warps = self.clocks.clusters * self.clocks.warps
            held = self._commits[group] = (np.zeros(warps, np.int64), np.zeros((warps, RING), np.int64))
        count, times = held
        times[f.warps, count[f.warps] % RING] = self.clocks.now
        count[f.warps] += 1
        self.clocks.tick()

    def waited(self, f: Frame, site: Site, group: str, left: int, reads: bool, everything: bool) -> None:
        """Record that warps know all their groups except the last `left`."""
        clocks = self.clocks
        _, rows = clocks.rows(f)
        if everything:
            time: Any = clocks.now
            clocks.tick()
        else:
            held = self._commits.get(group)
            if held is None:
                return
            number = held[0][f.warps] - left - 1
            time = np.where(number >= 0, held[1][f.warps, number % RING], 0)
        width = clocks.warps
        if group == "wgmma":
            clocks.learn(f, clocks.product_column(rows), time)
        elif group == "cp.async":
            clocks.learn(f, 3 * width + rows, time)
        else:
            clocks.learn(f, width + rows, time)
            if not reads:
                clocks.learn(f, 2 * width + rows, time)

    # ---- strong accesses ---------------------------------------------------------------------------------------------

    def wrote(
        self,
        f: Frame,
        site: Site,
        array: Array,
        offsets: Array,
        nbytes: int,
        order: AccessOrder,
        values: Array | None = None,
    ) -> None:
        """Record the CTAs that write global memory, until their next fence."""
        if not order.strong and array is not self.m.shared and array is not self.m.local:
            self._unfenced[self.clocks.ctas_of(f)] = True

    def meet(
        self, f: Frame, site: Site, array: Array, offsets: Array, order: AccessOrder, *, reads: bool, writes: bool
    ) -> None:
        """Synchronise strong accesses to the same address: writes release, and reads acquire."""
        alone = f.n == 1 or bool((offsets == offsets[0]).all())
        places = offsets[:1] if alone else np.unique(offsets)
        if len(places) > MAX_PLACES:
            places = np.asarray([-1])
        for place in places.tolist():
            some = f if len(places) == 1 else f.subset(offsets == place)
            key = (id(array), place)
            if place >= 0 and array is not self.m.shared:
                self._assume(some, site, key, order, reads=reads, writes=writes)
            if writes:
                self._release_place(some, key)
            if reads:
                self._acquire_place(some, key)  # the clocks released there before, and by this instruction
        if writes:
            self.clocks.tick()

    def _assume(
        self, f: Frame, site: Site, key: tuple[int, int], order: AccessOrder, *, reads: bool, writes: bool
    ) -> None:
        """Record as not judged an order between CTAs that a relaxed write without a fence before it creates."""
        cta, assumed = int(f.ctas[0]), self._assumed.get(key)
        if reads and assumed is not None and (assumed[0] != cta or len(f.parts) > 1):
            line = self.m.code.instructions[assumed[1].number].line
            self.m.totals.unjudged[
                f"the order between CTAs that the relaxed or volatile write at line {line} creates: the run treats it "
                "as a release, although no fence follows the earlier writes of its CTA to global memory"
            ] = None
        if writes and not order.releases and self._unfenced[self.clocks.ctas_of(f)].any():
            self._assumed[key] = cta, site
        elif writes:
            self._assumed.pop(key, None)

    @property
    def _near(self) -> bool:
        """Whether clocks between clusters are not used, or are incomplete because they do not include mbarriers."""
        return self.clocks.clusters == 1 or self.clocks.far_given_up or bool(self.barriers)

    def _acquire_place(self, f: Frame, key: tuple[int, int]) -> None:
        if self._near:
            for cluster, part in self._by_cluster(f):
                held = self._meetings.get((*key, cluster))
                if held is not None:
                    self.clocks.acquire(part, held)
        far = self._far.get(key)
        if far is not None:
            self.clocks.far_acquire(f, far)

    def _release_place(self, f: Frame, key: tuple[int, int]) -> None:
        clocks = self.clocks
        if self._near:
            for cluster, part in self._by_cluster(f):
                held = self._meetings.get((*key, cluster))
                if held is None:
                    held = self._meetings[(*key, cluster)] = clocks.empty()
                clocks.release(part, held)
        if clocks.clusters > 1 and not clocks.far_given_up:
            row = clocks.far_row(f)
            far = self._far.get(key)
            self._far[key] = row if far is None else np.maximum(far, row)


def _unread_waits(code: Code) -> frozenset[int]:
    waits: dict[tuple[str, str], list[int]] = {}
    read: set[tuple[str, str]] = set()
    for number, one in enumerate(code.instructions):
        function, operands = code.function_of[number], one.operands
        if one.opcode.startswith(("mbarrier.test_wait", "mbarrier.try_wait")) and operands:
            waits.setdefault((function, operands[0].base), []).append(number)
            operands = operands[1:]
        if one.predicate is not None:
            read.add((function, one.predicate[0]))
        read.update((function, operand.base) for operand in operands)
    return frozenset(number for name, numbers in waits.items() if name not in read for number in numbers)
