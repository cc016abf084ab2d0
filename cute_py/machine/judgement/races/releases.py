"""Arrivals that release shared memory before it is read: the reader arrives at an mbarrier, a copy that follows this
arrival writes the bytes, and the reader reads them after its arrival.

A warp's clock at an arrival identifies the arrival. The issuer of a copy knows the clock of the reader's last arrival
that comes before the copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cute_py.machine.judgement.races.clocks import Clocks
    from cute_py.machine.sites import Site
    from cute_py.machine.threads import Array, Frame, Host

KEPT_ARRIVALS: Final = 64
"""Number of arrivals that are kept for a warp."""

WAITS: Final = ("mbarrier.try_wait", "mbarrier.test_wait", "bar.", "barrier.")


class Releases:
    """The arrivals of each warp at mbarriers, and what the issuers of copies know of these warps."""

    def __init__(self, m: Host, clocks: Clocks) -> None:
        self._m, self._clocks = m, clocks
        self._arrivals: dict[tuple[int, int], dict[int, tuple[Site, int]]] = {}
        """(Cluster, warp) -> time -> arrival, and the place of its mbarrier."""
        self._issuers: dict[int, tuple[int, int, Array]] = {}
        """Place of an mbarrier -> time of the last bytes that complete there, the warp that issued the copy, and its
        clocks."""

    def arrived(self, f: Frame, site: Site, place: int) -> None:
        """Record an arrival, before the clock advances."""
        cluster, rows = self._clocks.rows(f)
        for key in zip(cluster.tolist(), rows.tolist(), strict=True):
            held = self._arrivals.setdefault(key, {})
            held[self._clocks.now] = site, place
            if len(held) > KEPT_ARRIVALS:
                del held[next(iter(held))]

    def issued(self, f: Frame, place: int, time: int) -> None:
        """Record what the issuer of a copy knows."""
        cluster, rows = self._clocks.rows(f)
        warp = int(rows[0])
        self._issuers[place] = time, warp, self._clocks.known[cluster[0], warp, 0, : self._clocks.warps].copy()

    def before_copy(self, f: Frame, cluster: int, column: int, time: int, read: Site) -> Site | None:
        """Return the arrival of the threads of a frame that a copy follows, if they read the bytes of the copy after
        this arrival. cluster, column, time: the clock of the copy's bytes."""
        place = next((at for at, held in self._clocks.barriers[cluster].items() if held == column), None)
        if place is None or place not in self._issuers:
            return None
        issued, issuer, known = self._issuers[place]
        clusters, rows = self._clocks.rows(f)
        for row in rows[clusters == cluster].tolist() if issued == time else ():
            found = self._arrival(cluster, row, int(known[row]), read.number, place)
            if found is not None and row != issuer:
                return found
        return None

    def before_write(self, f: Frame, cluster: int, warp: int, read: int) -> Site | None:
        """Return the arrival of a warp that the threads of a frame know, if the warp read the bytes that they write
        after this arrival. read: index of the read."""
        clusters, rows = self._clocks.rows(f)
        known = self._clocks.known[cluster, rows[clusters == cluster], 0, warp]
        return self._arrival(cluster, warp, int(known.max()), read) if len(known) else None

    def _arrival(self, cluster: int, warp: int, time: int, read: int, other: int = -1) -> Site | None:
        """Return the arrival of a warp at a time, if it is not at the mbarrier `other`, and no wait is between the
        arrival and the read in the text."""
        found, place = self._arrivals.get((cluster, warp), {}).get(time, (None, -1))
        if found is None or place == other or not found.number < read < len(self._m.code.instructions):
            return None
        between = self._m.code.instructions[found.number : read]
        return None if any(one.opcode.startswith(WAITS) for one in between) else found
