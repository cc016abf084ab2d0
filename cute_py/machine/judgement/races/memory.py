"""Find races, and reads of memory that was never written: compare accesses with the clocks of their warps.

For each access, the judge reads the keys of the granules that the access touches (see `shadow`), and checks with the
clocks (see `clocks`) that the earlier accesses happen before it. After a barrier, a single comparison shows that all
accesses of an instruction are in order; accesses that fail it are examined in detail.

Not judged: local memory, very large arrays, and later overwrites of global memory that a copy reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cute_py.machine.code import RESERVED, RESERVED_BYTES
from cute_py.machine.judgement.observer import AccessOrder, AsyncWork, Observer, Touched
from cute_py.machine.judgement.races.clocks import MAX_TIME
from cute_py.machine.judgement.races.lanes import LaneJudge, lanes_of
from cute_py.machine.judgement.races.same import Same
from cute_py.machine.judgement.races.shadow import (
    AGENT,
    CAREFUL,
    CLUSTER,
    CLUSTER_BITS,
    COLUMN,
    COLUMN_BITS,
    MAX_SHADOW,
    MAX_SLOTS,
    SITE,
    SITE_BITS,
    TIME,
    TIME_BITS,
    Shadow,
    distinct,
)
from cute_py.machine.threads import LANES

if TYPE_CHECKING:
    from cute_py.diagnostics import Diagnostic
    from cute_py.machine.code import Code
    from cute_py.machine.judgement.races.reports import Reports
    from cute_py.machine.judgement.races.synchronisation import ClockKeeper
    from cute_py.machine.sites import Site
    from cute_py.machine.threads import Array, Frame, Host
    from cute_py.tma.emulator.mbarrier import Mbarrier

GLOBAL_SLOTS: Final = 2
GLOBAL_SHIFT: Final = 4
SHARED_SHIFT: Final = 3
"""log2 of the initial bytes of a granule, the 8 of an mbarrier; a smaller access divides granules."""


class MemoryJudge(Observer):
    """Judges accesses to the shared and global memory of one run.

    Args:
        keeper: keeps the clocks of the current wave; it must get each event before this judge.
    """

    active = True

    def __init__(self, reports: Reports, code: Code, keeper: ClockKeeper) -> None:
        self.keeper, self.reports = keeper, reports
        self.narrow = frozenset(number for number, one in enumerate(code.instructions) if _is_narrow(one.opcode))
        """Instructions whose scope is a CTA."""
        self.assumed = _unfenced_polls(code)
        """Reads whose order with other accesses is assumed, although the kernel has no fence."""
        self.stored = False
        """Whether anything has written to global memory; until then every tensor load is in order."""
        self._said: set[tuple[object, ...]] = set()
        """Unordered pairs of asynchronous work and an access; each is reported once."""
        self._unseen: set[tuple[int, int]] = set()
        """Pairs of a read of the asynchronous proxy and a write that it does not see; each is reported once."""
        self.first_cluster = 0
        self.clusters = 0
        self.lanes = LaneJudge(reports, self._place)

    # ---- a wave ------------------------------------------------------------------------------------------------------

    def began(self, m: Host) -> None:
        """Start a wave: shared memory is new, and global memory keeps the accesses of earlier waves."""
        self.m = m
        self.clocks = self.keeper.clocks
        self.first_cluster += self.clusters
        self.clusters = self.clocks.clusters
        if self.first_cluster == 0 or self.first_cluster + self.clusters > CLUSTER_BITS or self.keeper.far_used:
            self.known: dict[int, Shadow | None] = {}
            self.first_cluster = min(self.first_cluster, CLUSTER_BITS - self.clusters)
        self.reports.began(m, self.first_cluster)
        granules = (len(m.shared) >> SHARED_SHIFT) + 1
        slots = max(1, min(self.clocks.per_cta, MAX_SLOTS // granules))
        self.shared = Shadow.of(len(m.shared), SHARED_SHIFT, slots) if granules <= MAX_SHADOW else None
        if self.shared is None:
            self._leave_out(m.shared)
        self.held = [m.shared, m.local]
        """Arrays whose keys are in `known`. Local memory is not judged; it is replaced when it grows."""
        self.known[id(m.shared)] = self.shared
        self.known[id(m.local)] = None
        self.clustered = m.cluster_size > 1
        self.remote: dict[int, dict[int, int]] = {}
        self._ordered: dict[tuple[bytes, str], set[int]] = {}
        """Warps that issue work, and whether it reads or writes -> keys that are in order for it. Clocks only grow, so
        these keys stay in order."""
        self.stores: dict[int, tuple[int, Site, Frame]] = {}
        """Warp -> time of the last bulk store that reads its CTA's shared memory, and who issued it."""

    def shadow_of(self, array: Array) -> Shadow | None:
        """Return the shadow of an array of bytes; None if the array is not judged."""
        key = id(array)
        if key not in self.known:
            self.held.append(array)  # keep the array, so that its id is not reused
            small = array is not self.m.local and len(array) >> GLOBAL_SHIFT <= MAX_SHADOW
            self.known[key] = Shadow.of(len(array), GLOBAL_SHIFT, GLOBAL_SLOTS) if small else None
            if not small and array is not self.m.local:
                self._leave_out(array)
        return self.known[key]

    def _leave_out(self, array: Array) -> None:
        """Record that races in an array are not judged."""
        self.m.totals.unjudged[f"races in a memory of {len(array)} bytes, which is too large to follow"] = None

    def _shadow(self, array: Array, nbytes: int) -> Shadow | None:
        """Return the shadow of an array, with granules of at most `nbytes` bytes; None if the array is not judged."""
        shadow = self.known[id(array)] if id(array) in self.known else self.shadow_of(array)
        if shadow is None or nbytes >= 1 << shadow.shift:
            return shadow
        shift = nbytes.bit_length() - 1
        if len(array) >> shift > MAX_SHADOW:
            if shadow is self.shared:
                self.shared = None
            self.known[id(array)] = None
            self._leave_out(array)
            return None
        shadow.refine(shift)
        return shadow

    # ---- keys --------------------------------------------------------------------------------------------------------

    def _keys(self, f: Frame, site: Site, count: int, strong: bool) -> Array:
        """The keys (n * count,) of the present accesses of a frame's threads."""
        base = f.cache.get(("keys", count))
        if base is None:
            warps = f.threads // LANES
            cluster, column = warps // self.clocks.warps + self.first_cluster, warps % self.clocks.warps
            base = np.repeat(cluster << CLUSTER | column << COLUMN, count)
            f.cache["keys", count] = base
        found: Array = base + (self.clocks.now << TIME | self._site(site) << SITE | strong)
        return found

    def _site(self, site: Site) -> int:
        return min(site.number, SITE_BITS)

    def _slots(self, f: Frame, shadow: Shadow, count: int) -> Array:
        """Return the flat index of the first granule of each thread's slot in the reads of a shadow: (n * count,).

        All threads of a warp share a slot.
        """
        granules = len(shadow.writes)
        found = f.cache.get(("slots", count, shadow.slots, granules))
        if found is None:
            warp = f.threads // LANES % self.clocks.per_cta
            if shadow is not self.shared:
                warp = warp + f.ctas
            found = f.cache["slots", count, shadow.slots, granules] = np.repeat(warp % shadow.slots * granules, count)
        return found

    def _limit(self, f: Frame, keys: Array) -> int:
        """The limit below which the keys of a CTA's shared memory are in order for all threads of a frame."""
        clocks = self.clocks
        if self.clustered and int(keys.max()) >= CAREFUL:
            return 1
        floor = clocks.floor[f.parts[0][0]] if len(f.parts) == 1 else clocks.floor[clocks.ctas_of(f)].min()
        return int(floor) + 1 << TIME

    def _reach(self, f: Frame, offsets: Array, keys: Array, count: int) -> Array:
        """Mark accesses to another CTA's shared memory as careful (see `shadow`); keep them until that CTA exits."""
        owner = offsets // self.m.shared_stride
        far = owner != f.ctas
        if not far.any():
            return keys
        found: Array = keys | np.repeat(far, count) * CAREFUL
        for cta in np.unique(owner[far]).tolist():
            held = self.remote.setdefault(cta, {})
            for key in np.unique(found[::count][far & (owner == cta)]).tolist():
                held[key & AGENT] = key
        return found

    # ---- accesses of threads -----------------------------------------------------------------------------------------

    def read(self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder) -> None:
        """Check that the last write of each byte happens before a read, and record the read."""
        shadow = self._shadow(array, nbytes)
        if shadow is None:
            return
        at, count = shadow.granules(offsets, nbytes)
        strong = order.strong
        keys = self._keys(f, site, count, strong)
        before = shadow.writes[at]
        if shadow is self.shared:
            if self.clustered:
                keys = self._reach(f, offsets, keys, count)
            if not before.all():
                self._never_written(f, site, at, before, count)
            if int(before.max()) >= self._limit(f, keys):
                self._look(f, site, shadow, at, before, keys, "reads")
        elif before.any():
            self._look(f, site, shadow, at, before, keys, "reads")
        slot = self._slots(f, shadow, count) + at
        shadow.reads.reshape(-1)[slot] = keys
        shadow.readers.reshape(-1)[slot] = lanes_of(f, site, count)
        if strong:
            self.keeper.meet(f, site, array, offsets, order, reads=True, writes=False)
            if site.number in self.assumed:
                line = self.m.code.instructions[site.number].line
                self.m.totals.unjudged[
                    f"the order that the relaxed or volatile read at line {line} creates: the run treats it as an "
                    "acquire, and the write that it sees as a release, although the kernel has no fence"
                ] = None

    def wrote(
        self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder, values: Any = None
    ) -> None:
        """Check that the last accesses to each byte happen before a write, and record the write."""
        shadow = self._shadow(array, nbytes)
        if shadow is None:
            return
        at, count = shadow.granules(offsets, nbytes)
        strong = order.strong
        if strong:
            self.keeper.meet(f, site, array, offsets, order, reads=False, writes=True)
        keys = self._keys(f, site, count, strong)
        same = Same(array, offsets, values, count)
        self._overwrite(f, site, shadow, at, keys, offsets, count, same)
        if not strong and not (at[1:] > at[:-1]).all():  # two threads may write to one granule
            if len(f.warps) > 1 and not np.array_equal(shadow.writes[at], keys):
                self._together(f, site, shadow, at, keys, same)
            if not np.array_equal(shadow.writers[at], lanes_of(f, site, count)):
                self.lanes.together(f, site, shadow, at, keys, same)

    def updated(self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder) -> None:
        """Check that earlier non-atomic accesses to each byte happen before an atomic operation, and record it."""
        shadow = self._shadow(array, nbytes)
        if shadow is None:
            return
        at, count = shadow.granules(offsets, nbytes)
        self.keeper.meet(f, site, array, offsets, order, reads=site.name == "atom", writes=True)
        keys = self._keys(f, site, count, True)
        if shadow is self.shared and not shadow.writes[at].all():
            self._never_written(f, site, at, shadow.writes[at], count)
        self._overwrite(f, site, shadow, at, keys, offsets, count, None)
        if site.number in self.narrow and len(f.parts) > 1:  # threads of other CTAs in the same instruction
            self._scopes(f, site, shadow, at, shadow.writes[at], keys)

    def _overwrite(
        self, f: Frame, site: Site, shadow: Shadow, at: Array, keys: Array, offsets: Array, count: int, same: Any
    ) -> None:
        before = shadow.writes[at]
        readers = shadow.reads.take(at, axis=1).T
        if shadow is self.shared:
            if self.clustered:
                keys = self._reach(f, offsets, keys, count)
            limit = self._limit(f, keys)
            if int(before.max()) >= limit:
                self._look(f, site, shadow, at, before, keys, "writes", same, limit)
            if int(readers.max()) >= limit:
                self._look(f, site, shadow, at, readers, keys, "writes", None, limit)
        else:
            self.stored = True
            if before.any():
                self._look(f, site, shadow, at, before, keys, "writes", same)
            if readers.any():
                self._look(f, site, shadow, at, readers, keys, "writes")
        shadow.writes[at] = keys
        shadow.writers[at] = lanes_of(f, site, count)

    # ---- in detail ---------------------------------------------------------------------------------------------------

    def _look(
        self, f: Frame, site: Site, shadow: Shadow, at: Array, before: Array, keys: Array, what: str, same: Any = None,
        limit: int = 1,
    ) -> None:  # fmt: skip
        """Report earlier accesses that do not happen before. before: their keys, (n,) or (n, slots) of reads. limit:
        lowest key to examine.
        """
        if int(keys[0]) & 1:
            if self.narrow:
                self._scopes(f, site, shadow, at, before, keys if before.ndim == 1 else keys[:, None])
            if not (before[before & 1 == 0] >= limit).any():
                return  # strong accesses need no order among themselves
        places = np.flatnonzero(before >= limit)
        found = before.reshape(-1)[places]
        lane = places if before.ndim == 1 else places // before.shape[1]
        own = keys[lane]
        open_ = (found ^ own) & AGENT != 0
        if not open_.all():
            if self.lanes.recent(f, found, self.clocks):
                self.lanes.look(f, site, shadow, self.clocks, at, before, places[~open_], own[~open_], what, same)
            if not open_.any():
                return
        if int(keys[0]) & 1:
            open_ &= found & 1 == 0
            if not open_.any():
                return
        if not open_.all():
            places, found, lane, own = places[open_], found[open_], lane[open_], own[open_]
        bad = self._late(found, (own >> CLUSTER & CLUSTER_BITS) - self.first_cluster, own >> COLUMN & COLUMN_BITS)
        if what == "writes":
            self._barriers_overwritten(f, site, shadow, at, found, lane)
        if not bad.any():
            return
        if same is not None:
            bad &= ~same.equal(lane)
        which = np.flatnonzero(bad)
        if len(which):
            one = int(which[0])
            self._report(f, site, shadow, int(at[lane[one]]), int(found[one]), int(own[one]), what, before.ndim > 1)

    def _scopes(self, f: Frame, site: Site, shadow: Shadow, at: Array, before: Array, mine: Array) -> None:
        """Report strong accesses of two different CTAs if one of the accesses has the scope .cta."""
        if before.ndim > 1:
            return
        number = before >> SITE & SITE_BITS
        narrow = np.isin(number, list(self.narrow)) | (site.number in self.narrow)
        width = self.clocks.per_cta
        ctas = [(keys >> CLUSTER & CLUSTER_BITS, (keys >> COLUMN & COLUMN_BITS) // width) for keys in (before, mine)]
        apart = (ctas[0][0] != ctas[1][0]) | (ctas[0][1] != ctas[1][1])
        found = np.flatnonzero(narrow & apart & (before & 1 == 1))
        if len(found):
            one = int(found[0])
            array = self.m.shared if shadow is self.shared else self._array_of(shadow)
            self.reports.scope(f, site, self.clocks, (array, int(at[one]) << shadow.shift), int(before[one]))

    def _late(self, found: Array, cluster: Any, row: Any) -> Array:
        """Flags of the keys that the warps (cluster, row) do not know; a warp knows its own actions."""
        clocks = self.clocks
        theirs = (found >> CLUSTER & CLUSTER_BITS) - self.first_cluster
        column = found >> COLUMN & COLUMN_BITS
        time = found >> TIME & TIME_BITS
        near = theirs == cluster
        if near.all():
            found_late: Array = (time > clocks.known[cluster, row, 0, column]) & (column != row)
            return found_late
        seen = clocks.known[cluster, row, 0, np.where(near, column, 0)]
        late = (time > seen) & (column != row)
        return np.where(near, late, self._far_late(theirs, column, time, cluster, row))

    def _far_late(self, theirs: Array, column: Array, time: Array, cluster: Any, row: Any) -> Array:
        clocks = self.clocks
        if clocks.far_given_up:
            return np.zeros(len(time), np.bool_)
        if clocks.far is None:
            return np.ones(len(time), np.bool_)
        agent = np.where((theirs >= 0) & (column < clocks.fixed), theirs * clocks.fixed + column, 0)
        seen = clocks.far[cluster * clocks.warps + row, agent]
        found: Array = time > seen
        return found

    def _never_written(self, f: Frame, site: Site, at: Array, before: Array, count: int) -> None:
        bad = before == 0
        start = self.reports.code.shared_offsets.get(RESERVED)
        if start is not None:  # a system prepares the memory that it reserves
            inside = (at << self._shift) % self.m.shared_stride
            bad &= (inside < start) | (inside >= start + RESERVED_BYTES)
            if not bad.any():
                return
        place = int(np.flatnonzero(bad)[0])
        thread = int(f.threads[place // count]) if len(before) == f.n * count else int(f.threads[0])
        self.reports.never_written(f, site, thread, int(at[place]) << self._shift)

    def _barriers_overwritten(self, f: Frame, site: Site, shadow: Shadow, at: Array, found: Array, lane: Array) -> None:
        if shadow is not self.shared or not self.keeper.barriers:
            return
        for place in np.unique(at[lane[found >= CAREFUL]]).tolist():
            byte = place << shadow.shift
            if self.keeper.barriers.get(byte // 8 * 8) is not None:
                self.reports.barrier_overwritten(f, site, byte // 8 * 8)

    def _together(self, f: Frame, site: Site, shadow: Shadow, at: Array, keys: Array, same: Same) -> None:
        """Report warps that write different values to the same granule in one instruction."""
        left = shadow.writes[at]
        lost = (left ^ keys) & AGENT != 0
        if not lost.any():
            return
        for lane in np.flatnonzero(lost & same.different(at))[:1].tolist():
            self._report(f, site, shadow, int(at[lane]), int(left[lane]), int(keys[lane]), "writes", False)

    @property
    def _shift(self) -> int:
        """Base-2 logarithm of the bytes of a granule of shared memory."""
        return SHARED_SHIFT if self.shared is None else self.shared.shift

    def _report(
        self, f: Frame, site: Site, shadow: Shadow, granule: int, other: int, own: int, what: str, reader: bool,
        severity: str = "error",
    ) -> None:  # fmt: skip
        place = self._place(shadow, granule)
        self.reports.race(f, site, self.clocks, place, (other, own), what, reader, severity)

    def _place(self, shadow: Shadow, granule: int) -> tuple[Array, int]:
        """Return the array and the offset of a granule."""
        return self.m.shared if shadow is self.shared else self._array_of(shadow), granule << shadow.shift

    def _array_of(self, shadow: Shadow) -> Any:
        for one in self.m.memory.ranges.ranges:
            if self.known.get(id(one.array)) is shadow:
                return one
        return None

    # ---- asynchronous work -------------------------------------------------------------------------------------------

    def issued(self, f: Frame, site: Site, transfer: AsyncWork) -> None:
        """Check and record the accesses of a copy or a product that is issued."""
        if transfer.kind == "cp.async":
            self._thread_copies(f, site, transfer)
            return
        cluster, rows = self.clocks.rows(f)
        who = (int(cluster[0]), rows)
        for one in transfer.reads:
            self._async_read(f, site, one, who, self._group_key(f, site, transfer, reads=True), transfer.kind)
        keys = self._written_keys(f, site, transfer)
        for number, one in enumerate(transfer.writes):
            self._async_write(f, site, one, who, keys[min(number, len(keys) - 1)], transfer.kind)
        if transfer.rows is not None and (self.stored or transfer.kind == "tensor store"):
            for one in transfer.rows():
                if transfer.kind in ("tensor store", "tensor reduction"):
                    self._async_write(f, site, one, who, keys[0], transfer.kind)
                else:
                    self._async_read(f, site, one, who, 0, transfer.kind)
        if transfer.barriers:
            self._loads_of(f, site, transfer)
        if transfer.group == "bulk" and any(one.array is self.m.shared for one in transfer.reads):
            self.stores[int(f.warps[0])] = (self.clocks.now, site, f)

    def _loads_of(self, f: Frame, site: Site, transfer: AsyncWork) -> None:
        """Record a copy that writes or reads shared memory: the CTA must wait for it before it exits."""
        places = (*transfer.barriers, *transfer.barriers)
        for one, place in zip((*transfer.writes, *transfer.reads), places, strict=False):
            if one.array is self.m.shared:
                start = one.start if one.offsets is None else int(one.offsets[0])
                self.keeper.loads.setdefault(start // self.m.shared_stride, {})[place] = (
                    self.keeper.phase_time(place), site, f,
                )  # fmt: skip

    def _group_key(self, f: Frame, site: Site, transfer: AsyncWork, *, reads: bool) -> int:
        """Return the key of the agent that represents a group of work: the reads or the writes of bulk groups, or
        products. For other work, return 0.
        """
        clocks = self.clocks
        cluster, rows = clocks.rows(f)
        row = int(rows[0])
        if transfer.group in ("wgmma", "tcgen05"):
            column = clocks.product_column(row)
        elif transfer.group == "bulk":
            column = (1 if reads else 2) * clocks.warps + row
        else:
            return 0
        return self._key(int(cluster[0]), column, clocks.now, site)

    def _key(self, cluster: int, column: int, time: int, site: Site) -> int:
        number = cluster + self.first_cluster << CLUSTER | min(column, COLUMN_BITS) << COLUMN
        return CAREFUL | time << TIME | number | self._site(site) << SITE

    def _written_keys(self, f: Frame, site: Site, transfer: AsyncWork) -> list[int]:
        """The keys of the written spans; a multicast has one key for each barrier where its span completes."""
        if not transfer.barriers:
            return [self._group_key(f, site, transfer, reads=False)]
        columns = [(*self.clocks.barrier_column(place), self.keeper.phase_time(place)) for place in transfer.barriers]
        return [self._key(cluster, column, time, site) for cluster, column, time in columns]

    def _thread_copies(self, f: Frame, site: Site, transfer: AsyncWork) -> None:
        """Check and record the accesses of a cp.async: each thread reads global memory, writes shared memory, and waits
        for its own group.
        """
        for one in transfer.reads:
            shadow = self._shadow(one.array, one.nbytes)
            who = transfer.readers
            if shadow is not None and who is not None and one.offsets is not None and len(one.offsets) == who.n:
                at, count = shadow.granules(one.offsets, one.nbytes)
                before = shadow.writes[at]
                if before.any():
                    self._look(who, site, shadow, at, before, self._keys(who, site, count, False), "reads")
        for one in transfer.writes:
            shadow = self._shadow(one.array, one.nbytes)
            if shadow is None or one.offsets is None:
                continue
            at, count = shadow.granules(one.offsets, one.nbytes)
            mine = self._keys(f, site, count, False)
            self._overwrite(f, site, shadow, at, mine, one.offsets, count, None)
            shadow.writes[at] = mine + (3 * self.clocks.warps << COLUMN) | CAREFUL

    def _touched(self, shadow: Shadow, one: Touched) -> Any:
        """The granules of a span, as a slice or an array of indices."""
        if one.offsets is None:
            return slice(one.start >> shadow.shift, one.start + one.nbytes >> shadow.shift)
        if one.nbytes == 1 << shadow.shift:
            return one.offsets >> shadow.shift
        first, last = one.offsets >> shadow.shift, one.offsets + one.nbytes >> shadow.shift
        count = int((last - first).min())
        return (first[:, None] + np.arange(count)).reshape(-1)

    def _async_read(self, f: Frame, site: Site, one: Touched, who: tuple[int, Array], key: int, kind: str) -> None:
        shadow = self.shadow_of(one.array)
        if shadow is None:
            return
        at = self._touched(shadow, one)
        before = shadow.writes[at]
        if not before.size:
            return
        found = distinct(before)
        if shadow is self.shared and not found.all():
            place = int(np.flatnonzero(before == 0)[0])
            granule = at.start + place if isinstance(at, slice) else int(at[place])
            self.reports.never_written(f, site, int(f.threads[0]), granule << self._shift)
        self._look_async(f, site, shadow, at, before, found, who, (key, kind), "reads")
        if key:
            slot = int(f.warps[0]) % self.clocks.per_cta % shadow.slots
            shadow.reads[slot, at] = key

    def _async_write(self, f: Frame, site: Site, one: Touched, who: tuple[int, Array], key: int, kind: str) -> None:
        shadow = self.shadow_of(one.array) if one.offsets is None else self._shadow(one.array, one.nbytes)
        if shadow is None:
            return
        self.stored |= shadow is not self.shared
        at = self._touched(shadow, one)
        for before in (shadow.writes[at], shadow.reads[:, at].T):
            self._look_async(f, site, shadow, at, before, distinct(before), who, (key, kind), "writes")
        shadow.writes[at] = key

    def _look_async(
        self, f: Frame, site: Site, shadow: Shadow, at: Any, before: Array, found: Array, who: tuple[int, Array],
        mine: tuple[int, str], what: str,
    ) -> None:  # fmt: skip
        """Report earlier accesses that do not happen before asynchronous work. found: the distinct keys of `before`,
        usually few.
        """
        cluster, rows = who
        ordered = self._ordered.setdefault((f.warps.tobytes(), what), {0})
        if ordered.issuperset(found.tolist()):
            return
        found = found[found != 0]
        by_warp = self._late(found, cluster, rows[:, None])
        late = by_warp.any(axis=0)
        known_to_some = set(found[late & ~by_warp.all(axis=0)].tolist())
        key, kind = mine
        reader = before.ndim > 1
        if kind.endswith("reduction"):  # reductions are atomic for each element, so they need no order
            late &= ~np.array([self._names(value, "cp.reduce") for value in found.tolist()], np.bool_)
        if what == "writes":
            for value in found[found >= CAREFUL].tolist():
                if self._is_init(value):
                    place = self._place_of(at, before, value, shadow)
                    self.reports.barrier_overwritten(f, site, place // 8 * 8)
                    late &= found != value
        for value in found[late].tolist():
            said = (site.number, value >> SITE & SITE_BITS, what, reader, value in known_to_some)
            if said in self._said:
                continue
            self._said.add(said)
            place = self._place_of(at, before, value, shadow)
            severity = "warning" if value in known_to_some else "error"
            self._report(f, site, shadow, place >> shadow.shift, value, key, what, reader, severity)
        known = found[~by_warp.all(axis=0)]
        if what == "reads" and len(known):
            unseen = self._see(f, site, shadow, at, before, known, who, kind)
        else:
            unseen = {value for value in found[found >= CAREFUL].tolist() if self._is_init(value)}
        ordered.update(set(found[~by_warp.any(axis=0)].tolist()) - unseen)

    def _is_init(self, key: int) -> bool:
        return self._names(key, "mbarrier.init")

    def _names(self, key: int, opcode: str) -> bool:
        """Whether the opcode of a key's instruction begins with `opcode`."""
        number = key >> SITE & SITE_BITS
        code = self.m.code.instructions
        return number < len(code) and code[number].opcode.startswith(opcode)

    def _place_of(self, at: Any, before: Array, value: int, shadow: Shadow) -> int:
        lane = int(np.flatnonzero(before.reshape(-1) == value)[0]) // (before.shape[1] if before.ndim > 1 else 1)
        granule = at.start + lane if isinstance(at, slice) else int(at[lane])
        return int(granule) << shadow.shift

    def _see(
        self, f: Frame, site: Site, shadow: Shadow, at: Any, before: Array, found: Array, who: tuple[int, Array],
        kind: str,
    ) -> set[int]:  # fmt: skip
        """Return the keys of generic-proxy writes that the asynchronous proxy does not see, and report one of them."""
        clocks = self.clocks
        column = found >> COLUMN & COLUMN_BITS
        theirs = (found >> CLUSTER & CLUSTER_BITS) - self.first_cluster
        generic = (column < clocks.warps) | (column >= 3 * clocks.warps) & (column < 4 * clocks.warps)
        generic &= theirs == who[0]
        if not generic.any():
            return set()
        time = found >> TIME & TIME_BITS
        visible = clocks.known[who[0], who[1][:, None], 1, np.where(generic, column, 0)].max(axis=0)
        hidden = found[generic & (time > visible)]
        pair = (site.number, int(hidden[0]) >> SITE & SITE_BITS) if len(hidden) else None
        if pair is not None and pair not in self._unseen:
            self._unseen.add(pair)
            value = int(hidden[0])
            place = self._place_of(at, before, value, shadow)
            array = self.m.shared if shadow is self.shared else self._array_of(shadow)
            self.reports.not_visible(f, site, clocks, (array, place), value, kind)
        return set(hidden.tolist())

    # ---- mbarriers ---------------------------------------------------------------------------------------------------

    def initialised(self, f: Frame, site: Site, place: int, count: int) -> None:
        """Check and record the initialisation of an mbarrier, which writes its bytes."""
        shadow = self.shared
        if shadow is None:
            return
        cluster, rows = self.clocks.rows(f)
        at = slice(place >> shadow.shift, place + 8 >> shadow.shift)
        who = (int(cluster[0]), rows)
        key = self._key(who[0], int(rows[0]), self.clocks.now, site)
        for before in (shadow.writes[at], shadow.reads[:, at].T):
            found = distinct(before)
            if before.ndim > 1 or not any(self._is_init(value) for value in found.tolist()):
                self._look_async(f, site, shadow, at, before, found, who, (key, "mbarrier.init"), "writes")
        shadow.writes[at] = key
        shadow.writers[at] = int(f.threads[0]) % LANES

    def invalidated(self, f: Frame, site: Site, place: int) -> None:
        """Record that the bytes of an mbarrier are ordinary memory again."""
        if self.shared is not None:
            cluster, rows = self.clocks.rows(f)
            key = self._key(int(cluster[0]), int(rows[0]), self.clocks.now, site) & ~CAREFUL
            at = slice(place >> self.shared.shift, place + 8 >> self.shared.shift)
            self.shared.writes[at] = key
            self.shared.writers[at] = int(f.threads[0]) % LANES

    def arrived(self, f: Frame, site: Site, place: int, barrier: Mbarrier, count: int, expected: int | None) -> None:
        """Record arrivals from other CTAs, which access the memory of the barrier's CTA. The keeper released them."""
        owner = place // self.m.shared_stride
        if not self.clustered or self.keeper.barriers.get(place) is None:
            return
        held = self.remote.setdefault(owner, {})
        cluster, rows = self.clocks.rows(f)
        for number, row in zip(cluster.tolist(), rows.tolist(), strict=True):
            if row // self.clocks.per_cta != owner % self.m.cluster_size:
                key = self._key(number, row, self.clocks.now - 1, site)
                held[key & AGENT] = key

    # ---- exits -------------------------------------------------------------------------------------------------------

    def exited(self, f: Frame) -> None:
        """Report accesses to the memory of an exiting CTA that may happen after its exit."""
        m, clocks = self.m, self.clocks
        for cta, part in f.parts:
            start = cta * m.cta_threads
            live = m.live[start : start + m.cta_threads]
            if int(np.count_nonzero(live)) > part.stop - part.start:
                continue
            cluster, rank = divmod(cta, m.cluster_size)
            held = slice(rank * clocks.per_cta, (rank + 1) * clocks.per_cta)
            for key in self.remote.pop(cta, {}).values():
                known = clocks.known[cluster, held, 0, key >> COLUMN & COLUMN_BITS]
                if key >> TIME & TIME_BITS > int(known.max()):
                    self.reports.peer(m, clocks, cta, key)
            self._under_way(cta, clocks.known[cluster, held, 0])
            clocks.set_floor(cta, MAX_TIME)

    def _under_way(self, cta: int, known: Array) -> None:
        """Report copies that an exiting CTA has not waited for. known: clocks of the CTA, (warps, agents)."""
        clocks = self.clocks
        for warp in range(cta * clocks.per_cta, (cta + 1) * clocks.per_cta):
            time, site, f = self.stores.pop(warp, (0, None, None))
            if site is not None and f is not None and time > int(known[:, clocks.warps + warp % clocks.warps].max()):
                self.reports.under_way(f, site, "store under way at exit", "error")
        for place, (time, site, f) in self.keeper.loads.pop(cta, {}).items():
            _, column = clocks.barrier_column(place)
            if time > int(known[:, column].max()):
                rule = f"{'load' if place // self.m.shared_stride == cta else 'store'} under way at exit"
                self.reports.under_way(f, site, rule, "warning" if rule[0] == "l" and f.parts[0][0] == cta else "error")

    def findings(self) -> list[Diagnostic]:
        """Return the findings."""
        return self.reports.found()


_FENCES: Final = ("membar", "fence.sc", "fence.acq_rel", "fence.acquire", "fence.release")


def _unfenced_polls(code: Code) -> frozenset[int]:
    """The indices of the relaxed and volatile loads of a kernel that has no fence of the generic proxy; else empty.

    Source: PTX ISA 9.0, memory consistency model: release and acquire patterns.
    """
    opcodes = [one.opcode for one in code.instructions]
    if any(opcode.startswith(_FENCES) for opcode in opcodes):
        return frozenset()
    return frozenset(i for i, opcode in enumerate(opcodes) if opcode.startswith(("ld.volatile", "ld.relaxed")))


def _is_narrow(opcode: str) -> bool:
    parts = opcode.split(".")
    return parts[0] in ("ld", "st", "atom", "red") and "cta" in parts
