"""Find races between lanes of one warp: lanes are independent threads, and only synchronisation orders their accesses.

The clocks treat a warp as one agent. To distinguish its lanes, each granule (see `shadow`) stores the lane of an access
next to its key, in `Shadow.writers` and `Shadow.readers`. The clocks store the time when the lanes last synchronised,
by bar.warp.sync or by any barrier, phase or strong access that the warp has acquired. If another lane has accessed a
granule since then, nothing orders that access and the present access. shfl.sync, vote.sync and ldmatrix make lanes wait
for each other, but they do not order memory.

If two lanes write different values to one address in the same instruction, either value may remain.

Source: PTX ISA 9.0, memory consistency model, program order and causality order; bar.warp.sync. CUDA C++ Programming
Guide, independent thread scheduling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from cute_py.errors import shortened
from cute_py.machine.faults import place_text
from cute_py.machine.judgement.races.shadow import AGENT, COLUMN, SITE, SITE_BITS, TIME, TIME_BITS, TIMES
from cute_py.machine.threads import LANES

if TYPE_CHECKING:
    from collections.abc import Callable

    from cute_py.machine.judgement.races.clocks import Clocks
    from cute_py.machine.judgement.races.reports import Reports
    from cute_py.machine.judgement.races.same import Same
    from cute_py.machine.judgement.races.shadow import Shadow
    from cute_py.machine.sites import Site
    from cute_py.machine.threads import Array, Frame

WHOLE_WARP: Final = 255
"""The lane of an access that all lanes of a warp make together: ldmatrix, stmatrix, wmma."""
_TOGETHER: Final = ("ldmatrix", "stmatrix", "wmma")


def lanes_of(f: Frame, site: Site, count: int) -> Array | int:
    """The lane (n * count,) for each granule that a frame's threads access, or a single value that represents all
    lanes.
    """
    if site.name in _TOGETHER:
        return WHOLE_WARP
    found = f.cache.get(("granule lanes", count))
    if found is None:
        found = f.cache["granule lanes", count] = np.repeat((f.threads % LANES).astype(np.uint8), count)
    return found


class LaneJudge:
    """Judges accesses by the lanes of one warp, for `MemoryJudge`.

    Args:
        where: function that returns the array and the offset of a granule in a shadow, for texts.
    """

    def __init__(self, reports: Reports, where: Callable[[Shadow, int], tuple[Array, int]]) -> None:
        self.reports, self.where = reports, where

    @staticmethod
    def recent(f: Frame, keys: Array, clocks: Clocks) -> bool:
        """Whether any of these keys may be of an access after the lanes of a frame's warps last synchronised."""
        warps = f.warps
        met = int(clocks.met[warps[0]]) if len(warps) == 1 else int(clocks.met[warps].min())
        return int((keys & TIMES).max()) >= met + 1 << TIME

    def look(
        self, f: Frame, site: Site, shadow: Shadow, clocks: Clocks, at: Array, before: Array, places: Array, own: Array,
        what: str, same: Same | None,
    ) -> None:  # fmt: skip
        """Find accesses by another lane since the lanes last synchronised.

        at: granules (n * count,) of the present access. before: keys of earlier writes (n * count,), or of earlier
        reads (n * count, slots). places: flat indices into `before` of the keys that belong to the accessing warp
        itself. own: keys of the present access at these indices. same: for a write, finds the granules whose value
        stays unchanged.
        """
        found = before.reshape(-1)[places]
        slots = 1 if before.ndim == 1 else before.shape[1]
        granule = places // slots
        threads = f.threads[granule // (len(at) // f.n)]
        open_ = ((found >> TIME & TIME_BITS) > clocks.met[threads // LANES]) & (found & own & 1 == 0)
        if not open_.any():
            return
        where = at[granule]
        held = shadow.writers[where] if before.ndim == 1 else shadow.readers[places % slots, where]
        open_ &= held != (WHOLE_WARP if site.name in _TOGETHER else threads % LANES)
        if same is not None and open_.any():
            open_ &= ~same.equal(granule)
        for one in np.flatnonzero(open_)[:1].tolist():
            thread, lane = int(threads[one]), int(held[one])
            number = int(found[one]) >> SITE & SITE_BITS
            other = None if lane == WHOLE_WARP else thread // LANES * LANES + lane
            did = "wrote" if before.ndim == 1 else "read"
            self._say(f, site, shadow, int(where[one]), (thread, other, number), (what, did))

    def _say(
        self, f: Frame, site: Site, shadow: Shadow, granule: int, who: tuple[int, int | None, int],
        verbs: tuple[str, str],
    ) -> None:  # fmt: skip
        thread, other, number = who
        reports, m = self.reports, self.reports.m
        array, at = self.where(shadow, granule)
        where = reports.where(array, at)
        code = reports.code
        before = code.instructions[number] if number < len(code.instructions) else None
        line = "another instruction" if before is None else place_text(before, code.files)
        whole = other is None
        name = "all lanes of its warp" if other is None else m.threads_text(np.array([other]))
        me = m.threads_text(np.array([thread]))
        text = (
            f"{me} {verbs[0]} {where}, which {name} {verbs[1]} at {line}; both are lanes of one "
            "warp, and no bar.warp.sync orders the two accesses"
        )
        shared = array is m.shared
        severity = "warning" if whole or site.name in _TOGETHER or not shared else "error"
        reports.add(
            ("race between lanes", site.number, number), text, site.one, severity, threads=me,
            address=where, other="" if before is None else shortened(before.text, 160),
            other_line=None if before is None else before.line, other_threads=name,
        )  # fmt: skip

    def together(self, f: Frame, site: Site, shadow: Shadow, at: Array, keys: Array, same: Same) -> None:
        """Report lanes of a warp that write different values to the same granule in one instruction."""
        lanes = lanes_of(f, site, same.count)
        if isinstance(lanes, int):
            return
        lost = (shadow.writers[at] != lanes) & (shadow.writes[at] == keys)
        if not lost.any():
            return
        place = at << AGENT.bit_length() - COLUMN | (keys & AGENT) >> COLUMN  # a granule, for one warp
        for one in np.flatnonzero(lost & same.different(place))[:1].tolist():
            threads = f.threads[np.flatnonzero((at == at[one]) & (keys == keys[one])) // same.count]
            where = self.reports.where(*self.where(shadow, int(at[one])))
            who = self.reports.m.threads_text(threads)
            text = f"{who} write different values to {where} in one instruction; an arbitrary one remains"
            key = ("lanes write one place", site.number)
            self.reports.add(key, text, site.one, "warning", threads=who, address=where)
