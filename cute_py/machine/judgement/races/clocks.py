"""Vector clocks, which define what happens before what, in arrays for all warps that run together.

An agent is a warp, or asynchronous work that one kind of wait completes. The agents of a cluster of W warps:

    column          agent                                          time
    0 to W          a warp, in the generic proxy                   the machine's time; every release advances it
    W to 2 W        reads of bulk groups that a warp issued        as above, of the issue
    2 W to 3 W      writes of bulk groups that a warp issued       as above
    3 W to 4 W      cp.async of a warp                             as above
    4 W to K        products (wgmma) of a warpgroup                as above
    K and on        bytes that complete at an mbarrier             phases of the barrier, counted from 1

`known[cluster, warp, 0, agent]` is the latest time of an agent that happens before the warp's next action. `[.., 1,
..]` is the same for accesses that a proxy fence has made visible to the asynchronous proxy. A warp knows its own
actions without a clock. The lanes of a warp are one agent here; `met` is the time when they last synchronised (see
`lanes`).

`far` extends this to the agents of other clusters. It is created at the first synchronisation through global memory.
Source: PTX ISA 9.0, memory consistency model: release and acquire patterns, synchronisation, proxies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cute_py.machine.threads import LANES, groups_of_cta, warpgroup_of

if TYPE_CHECKING:
    from cute_py.machine.threads import Array, Frame, Host, Places

MAX_FAR: Final = 1 << 24
"""Maximum size of the clocks between clusters; a launch that needs more is not judged across clusters."""

MAX_TIME: Final = (1 << 24) - 1
FIRST_BARRIERS: Final = 8
"""Initial number of mbarrier columns of a CTA; the array grows when needed."""


@dataclass(slots=True)
class Released:
    """The clocks that arrivals at a synchronisation point have released.

    near: joined clocks of one cluster. far: clocks of other clusters. waiters: the frames that wait there.
    """

    near: Array
    far: Array | None = None
    waiters: list[Frame] = field(default_factory=list)
    threads: int = 0


class Clocks:
    """The clocks of the CTAs that run together."""

    def __init__(self, m: Host, now: int) -> None:
        self.m = m
        self.now = now
        self.per_cta = m.cta_threads // LANES
        self.warps = m.cluster_size * self.per_cta
        self.clusters = m.ctas // m.cluster_size
        self.fixed = 4 * self.warps + m.cluster_size * groups_of_cta(m.cta_threads)
        self.columns = self.fixed + FIRST_BARRIERS * m.cluster_size
        self.known = np.zeros((self.clusters, self.warps, 2, self.columns), np.int32)
        self.fences: Array | None = None
        """A copy of `known` at the last fence of each warp; created when a relaxed arrival needs it."""
        self.far: Array | None = None
        """(warp, agent of any cluster), without mbarriers; None until something synchronises clusters."""
        self.far_given_up = False
        self.far_news = np.zeros(m.ctas, np.bool_)
        """For each CTA: whether its warps may have different knowledge of other clusters."""
        self.barriers: list[dict[int, int]] = [{} for _ in range(self.clusters)]
        """For each cluster: place of an mbarrier -> its column."""
        self.floor = np.zeros(m.ctas, np.int64)
        """For each CTA: the last time that all its warps know of each other; older accesses are in order."""
        self.met = np.zeros(m.count // LANES, np.int64)
        """For each warp: the last time when its lanes met; earlier accesses are in order for all of them."""

    # ---- who ---------------------------------------------------------------------------------------------------------

    def rows(self, f: Frame) -> tuple[Array, Array]:
        """The cluster of each warp of a frame, and the warp's index in the cluster."""
        found = f.cache.get("clock rows")
        if found is None:
            found = f.cache["clock rows"] = (f.warps // self.warps, f.warps % self.warps)
        return found

    def product_column(self, row: Places) -> Places:
        """The clock column of the products of the warpgroup that has a warp, from the warp's index in the cluster."""
        return 4 * self.warps + warpgroup_of(self.m, row * LANES)

    def ctas_of(self, f: Frame) -> slice | Array:
        """The indices of the CTAs of a frame, as a slice or an array."""
        found: slice | Array | None = f.cache.get("index of ctas")
        if found is None:
            ctas = [cta for cta, _ in f.parts]
            whole = ctas[-1] - ctas[0] + 1 == len(ctas)
            found = f.cache["index of ctas"] = slice(ctas[0], ctas[-1] + 1) if whole else np.array(ctas)
        return found

    def barrier_column(self, place: int) -> tuple[int, int]:
        """The cluster and the clock column of the mbarrier at an offset."""
        cluster = place // self.m.shared_stride // self.m.cluster_size
        held = self.barriers[cluster]
        column = held.get(place)
        if column is None:
            column = held[place] = self.fixed + len(held)
            if column >= self.columns:
                self._grow()
        return cluster, column

    def _grow(self) -> None:
        more = self.columns - self.fixed
        wider = ((0, 0), (0, 0), (0, 0), (0, more))
        self.known = np.pad(self.known, wider)
        if self.fences is not None:
            self.fences = np.pad(self.fences, wider)
        self.columns += more

    def empty(self) -> Released:
        """Return a synchronisation point without any arrival."""
        return Released(np.zeros((2, self.columns), np.int32))

    # ---- release and acquire -----------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Advance the time, so that later actions are distinguished from the released ones."""
        if self.now < MAX_TIME:
            self.now += 1

    def lanes_met(self, warps: Any) -> None:
        """Record that the lanes of these warps have synchronised: their accesses up to now are in order."""
        self.met[warps] = self.now
        self.tick()

    def _know_themselves(self, f: Frame) -> tuple[Array, Array]:
        """Add to the clocks of a frame's warps their own actions up to now, and return their rows."""
        cluster, row = self.rows(f)
        self.known[cluster, row, 0, row] = self.now
        return cluster, row

    def publish(self, f: Frame) -> Array:
        """Return the clocks (k, 2, columns) of the warps of a frame, including their own actions."""
        found: Array = self.known[self._know_themselves(f)]
        return found

    def release(self, f: Frame, into: Released, *, fenced: bool = False) -> None:
        """Release the clocks of a frame's warps into a synchronisation point.

        fenced: whether to release only the clocks at the last fence.
        """
        clocks = self.publish(f)
        cluster, row = self.rows(f)
        if fenced:
            clocks = clocks * 0 if self.fences is None else self.fences[cluster, row]
        near = clocks.max(axis=0)
        if len(into.near[0]) < self.columns:
            into.near = np.pad(into.near, ((0, 0), (0, self.columns - len(into.near[0]))))
        np.maximum(into.near, near, out=into.near)
        if self.far is not None:
            mine = self.far[f.warps].max(axis=0)
            into.far = mine if into.far is None else np.maximum(into.far, mine)

    def acquire(self, f: Frame, held: Released) -> None:
        """Acquire the clocks of a synchronisation point for the warps of a frame."""
        cluster, row = self.rows(f)
        width = len(held.near[0])
        if len(row) == 1:
            mine = self.known[cluster[0], row[0], :, :width]
            np.maximum(mine, held.near, out=mine)
        else:
            self.known[cluster, row, :, :width] = np.maximum(self.known[cluster, row, :, :width], held.near)
        if held.far is not None and self.far is not None:
            self.far[f.warps] = np.maximum(self.far[f.warps], held.far)
            self.far_news[self.ctas_of(f)] = True
        self.lanes_met(f.warps)

    def learn(self, f: Frame, column: Any, time: int) -> None:
        """Record that the warps of a frame know an agent up to a time. column: the agent's column, or one for each
        warp.
        """
        cluster, row = self.rows(f)
        self.known[cluster, row, 0, column] = np.maximum(self.known[cluster, row, 0, column], time)

    def all_met(self, f: Frame) -> None:
        """Join the clocks of all warps of each CTA of a frame."""
        self._know_themselves(f)
        each = self.known.reshape(self.m.ctas, self.per_cta, 2, self.columns)
        chosen = self.ctas_of(f)
        each[chosen] = each[chosen].max(axis=1, keepdims=True)
        if self.far is not None and bool(self.far_news[chosen].any()):
            far = self.far.reshape(self.m.ctas, self.per_cta, -1)
            far[chosen] = far[chosen].max(axis=1, keepdims=True)
            self.far_news[chosen] = False
        self.set_floor(chosen)
        self.met.reshape(self.m.ctas, self.per_cta)[chosen] = self.now
        self.tick()

    def set_floor(self, ctas: Any, time: int | None = None) -> None:
        """Record that all actions of the warps of these CTAs up to now are in order."""
        self.floor[ctas] = self.now if time is None else time

    def fence(self, f: Frame) -> None:
        """Record a fence of the generic proxy, so that later relaxed arrivals release the clocks of this moment."""
        clocks = self.publish(f)
        if self.fences is None:
            self.fences = np.zeros_like(self.known)
        self.fences[self.rows(f)] = clocks
        self.tick()

    def proxy_fence(self, f: Frame) -> None:
        """Make the writes that the warps of a frame know visible to the asynchronous proxy."""
        clocks = self.publish(f)
        cluster, row = self.rows(f)
        self.known[cluster, row, 1] = np.maximum(clocks[:, 1], clocks[:, 0])
        self.tick()

    # ---- between clusters --------------------------------------------------------------------------------------------

    def far_row(self, f: Frame) -> Array:
        """Return the clock (agents of all clusters,) that a frame's warps release through global memory."""
        width = self.clusters * self.fixed
        found = np.zeros(width, np.int32) if self.far is None else self.far[f.warps].max(axis=0)
        cluster, row = self._know_themselves(f)
        near = self.known[cluster, row, 0, : self.fixed]
        each = found.reshape(self.clusters, self.fixed)
        if len(cluster) == 1:
            np.maximum(each[cluster[0]], near[0], out=each[cluster[0]])
        elif len(f.parts) == len(cluster) and self.warps == self.per_cta:  # a warp of each of several clusters
            each[cluster] = np.maximum(each[cluster], near)
        else:
            np.maximum.at(each, cluster, near)
        return found

    def far_acquire(self, f: Frame, clock: Array) -> None:
        """Acquire a clock that `far_row` returned, for the warps of a frame."""
        if self.far is None:
            if self.far_given_up or len(clock) * self.m.count // LANES > MAX_FAR:
                self.far_given_up = True
                self.m.totals.unjudged["races between clusters, because too many warps run together"] = None
                return
            self.far = np.zeros((self.m.count // LANES, len(clock)), np.int32)
        self.far[f.warps] = np.maximum(self.far[f.warps], clock)
        self.far_news[self.ctas_of(f)] = True
        self.lanes_met(f.warps)
        cluster, row = self.rows(f)
        near = clock.reshape(self.clusters, self.fixed)[cluster]
        self.known[cluster, row, 0, : self.fixed] = np.maximum(self.known[cluster, row, 0, : self.fixed], near)
