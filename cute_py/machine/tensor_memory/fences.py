"""Check the fences between threads that use the same tensor memory.

A thread that passes tensor memory to another thread executes tcgen05.fence::before_thread_sync before it synchronises.
The other thread executes tcgen05.fence::after_thread_sync after the synchronisation. tcgen05.commit includes the first
fence, so products and copies need only the second.

    warp 0    st, wait::st, fence::before_thread_sync, arrive
    warp 1    wait, fence::after_thread_sync, mma

A load or a store after a product needs the second fence even in the thread that issued the product.

A missing fence is only a warning, because CUTLASS's kernels have none of these fences and run on devices. A fence
counts for any synchronisation after the first access, if it is on the right side of that synchronisation. The judge
does not check that both threads use the same barrier.
Source: PTX ISA 9.0, tcgen05 memory consistency model: canonical synchronisation patterns; tcgen05.fence;
tcgen05.commit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cute_py.errors import counted, shortened
from cute_py.machine.faults import finding, place_text
from cute_py.machine.judgement.observer import AccessOrder, Observer
from cute_py.machine.tensor_memory.copy_shapes import COLUMNS, LANES
from cute_py.machine.threads import LANES as THREADS
from cute_py.machine.threads import Array, Frame, Host

if TYPE_CHECKING:
    from cute_py.diagnostics import Diagnostic
    from cute_py.machine.code import Code
    from cute_py.machine.sites import Site
    from cute_py.ptx.source import SourceInstruction
    from cute_py.tma.emulator.mbarrier import Mbarrier

RULE: Final = "missing tcgen05 fence"
QUARTERS: Final = LANES // THREADS


@dataclass(frozen=True, slots=True)
class _Use:
    """An access to tensor memory: its warp, its time, its instruction, and whether a commit reports its completion."""

    warp: int
    time: int
    site: Any
    committed: bool


def thread_fences(code: Code) -> Observer:
    """Return the judge of tcgen05 fences, or an idle observer if the kernel has no tcgen05 instructions."""
    return ThreadFences(code) if any(one.opcode.startswith("tcgen05.") for one in code.instructions) else Observer()


class ThreadFences(Observer):
    """Judges tcgen05 fences, and records the last accesses to tensor memory, and the synchronisations and fences of
    each warp.
    """

    active = True

    def __init__(self, code: Code) -> None:
        self.code = code
        self._found: dict[bool, tuple[Diagnostic, set[int]]] = {}

    def began(self, m: Host) -> None:
        """Reset the state when CTAs begin to run together."""
        warps = m.count // THREADS
        self.now = 1
        self.synchronised, self.covered = np.zeros(warps, np.int64), np.zeros(warps, np.int64)
        """Warp -> time of its last synchronisation; that time at its last fence::after_thread_sync."""
        self.marked, self.released = np.zeros(warps, np.int64), np.zeros(warps, np.int64)
        """Warp -> time of its last fence::before_thread_sync; time of the last such fence before an arrival."""
        self.uses: list[_Use | None] = [None]
        self.writers = np.zeros((m.ctas, QUARTERS, COLUMNS), np.int32)
        self.readers = np.zeros((m.ctas, QUARTERS, COLUMNS), np.int32)
        self.waiting: dict[tuple[int, int], list[Array]] = {}

    # ---- synchronisation ---------------------------------------------------------------------------------------------

    def _arrive(self, warps: Array) -> None:
        self.released[warps] = self.marked[warps]
        self.now += 1

    def _go_on(self, warps: Array) -> None:
        self.synchronised[warps] = self.now
        self.now += 1

    def block_met(self, f: Frame, site: Site) -> None:
        """Record a bar.sync of whole CTAs as an arrival and a wait."""
        self._arrive(f.warps)
        self._go_on(f.warps)

    def bar_arrived(self, f: Frame, site: Site, cta: int, number: int, waits: bool, expected: int | None) -> None:
        """Record that threads arrive at a barrier."""
        self._arrive(f.warps)
        if waits:
            self.waiting.setdefault((cta, number), []).append(f.warps)

    def bar_ended(self, m: Host, cta: int, number: int) -> None:
        """Record that the threads that wait for a round of a barrier continue."""
        for warps in self.waiting.pop((cta, number), ()):
            self._go_on(warps)

    def cluster_arrived(self, f: Frame, site: Site, relaxed: bool) -> None:
        """Record a barrier.cluster.arrive as an arrival."""
        self._arrive(f.warps)

    def cluster_passed(self, f: Frame, site: Site) -> None:
        """Record a barrier.cluster.wait as a wait."""
        self._go_on(f.warps)

    def arrived(self, f: Frame, site: Site, place: int, barrier: Mbarrier, count: int, expected: int | None) -> None:
        """Record arrivals at an mbarrier."""
        self._arrive(f.warps)

    def passed(self, f: Frame, site: Site, places: Array, phases: Array, parity: bool) -> None:
        """Record that threads pass waits at mbarriers."""
        self._go_on(f.warps)

    def read(self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder) -> None:
        """Treat a strong read as a wait, because it may be one."""
        if order.strong:
            self._go_on(f.warps)

    def wrote(
        self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder, values: Any = None
    ) -> None:
        """Treat a strong write as an arrival, because it may be one."""
        if order.strong:
            self._arrive(f.warps)

    def updated(self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder) -> None:
        """Treat an atomic operation as an arrival and a wait, because it may be either."""
        self._arrive(f.warps)
        self._go_on(f.warps)

    # ---- tensor memory -----------------------------------------------------------------------------------------------

    def tensor_fenced(self, f: Frame, site: Site, after: bool) -> None:
        """Record one of the two fences."""
        if after:
            self.covered[f.warps] = self.synchronised[f.warps]
        else:
            self.marked[f.warps] = self.now
            self.now += 1

    def tensor_used(
        self, f: Frame, site: Site, cta: int, region: tuple[int, int, int], writes: bool, committed: bool
    ) -> None:
        """Check that fences separate an access from the last accesses to the same cells."""
        warp = int(f.threads[0]) // THREADS
        mask, first, last = region
        quarters = [n for n in range(QUARTERS) if mask >> THREADS * n & 0xFFFFFFFF]
        at = (cta, np.array(quarters)[:, None], np.arange(first, last))
        for number in self._others(at, writes):
            use = self.uses[number]
            if use is None or (use.warp == warp and (committed or not use.committed)):
                continue
            if int(self.covered[warp]) <= use.time:
                self._say(f, site, use, after=True)
            if use.warp != warp and not use.committed and int(self.released[use.warp]) <= use.time:
                self._say(f, site, use, after=False)
        self.uses.append(_Use(warp, self.now, site, committed))
        (self.writers if writes else self.readers)[at] = len(self.uses) - 1
        self.now += 1

    def _others(self, at: tuple[int, Array, Array], writes: bool) -> list[int]:
        """Indices of the earlier accesses that must happen before the present access."""
        found = set(np.unique(self.writers[at]).tolist())
        if writes:
            found |= set(np.unique(self.readers[at]).tolist())
        return sorted(found)

    def _say(self, f: Frame, site: Site, use: _Use, *, after: bool) -> None:
        known = self._found.get(after)
        if known is not None:
            known[1].add(site.number)
            return
        one, other = site.one, use.site.one
        fence = f"tcgen05.fence::{'after' if after else 'before'}_thread_sync"
        where = "after its wait" if after else "before its arrival"
        who = f.text() if after else f"the warp of line {other.line}"
        text = (
            f"{f.text()}: {_name(one)} uses columns that {_name(other)} used at "
            f"{place_text(other, self.code.files)}; {who} executes no {fence} {where}"
        )
        facts = {
            "threads": f.text(), "fence": fence, "other": shortened(other.text, 160), "other_line": other.line,
        }  # fmt: skip
        made = finding(RULE, text, one, files=self.code.files, source="tcgen05.fence", severity="warning", facts=facts)
        self._found[after] = made, {site.number}

    def findings(self) -> list[Diagnostic]:
        """Return one warning for each of the two fences, at the first access that lacks the fence."""
        made = []
        for one, sites in self._found.values():
            more = f"; {counted(len(sites) - 1, 'more instruction')} like it" if len(sites) > 1 else ""
            made.append(replace(one, text=one.text + more))
        return made


def _name(one: SourceInstruction) -> str:
    return ".".join(one.opcode.split(".")[:2])
