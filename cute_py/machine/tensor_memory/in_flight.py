"""The tensor memory of the CTAs that run together, and the tcgen05 instructions in flight that access it.

The instructions of one thread complete in the order of issue. The pairs that the ISA pipelines (mma after mma, mma
after cp) need this order; for other pairs the ISA permits it. Under the eager schedule an instruction completes when it
is issued. Under the lazy schedule it completes with a commit of its thread, and the commit completes when nothing else
can run.

The cells that a copy or product writes are in flight from its issue until a commit that covers the instruction has
completed. Until then, any access to them is a race under any schedule, unless it is by a copy or product of the same
thread. The cells that a store writes are in flight until wait::st of its warp, and the cells that a load reads are in
flight until wait::ld.

Each CTA has its own tensor memory here, which it does not share with other CTAs of its multiprocessor.
Source: PTX ISA 9.0, tcgen05 memory consistency model, tcgen05.commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cute_py.machine.faults import Fault, finding
from cute_py.machine.schedule import Pending
from cute_py.machine.sites import Site
from cute_py.machine.tensor_memory.copy_shapes import COLUMNS, LANES
from cute_py.machine.tensor_memory.memory import TensorMemory
from cute_py.machine.threads import LANES as THREADS
from cute_py.machine.threads import Array, Frame, Host
from cute_py.tma.emulator.memory import POISON

ALL_LANES: Final = (1 << LANES) - 1
Region = tuple[int, int, int]
"""A region of cells: (mask of lanes, first column, one past the last)."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """An instruction that may still access cells: its CTA, its region of cells, the instruction, and its thread or
    warp.
    """

    cta: int
    region: Region
    site: Site
    thread: int


def region_of(lanes: Array, columns: Array) -> Region:
    """Return the region that contains cells: (mask of lanes, first column, one past the last column)."""
    mask = 0
    for lane in np.unique(lanes).tolist():
        mask |= 1 << lane
    return mask, int(columns.min()), int(columns.max()) + 1


class TensorState:
    """The tensor memory of a machine, with the instructions that are in flight.

    Attributes:
        cells: (CTAs, 128, 512) uint32. memories: the `TensorMemory` of each CTA, whose cells are views of `cells`.
            version: number of allocations and deallocations so far.
    """

    def __init__(self, m: Host) -> None:
        self.m = m
        self.cells = np.full((m.ctas, LANES, COLUMNS), int.from_bytes(bytes([POISON] * 4), "little"), np.uint32)
        self.memories = [TensorMemory(part) for part in self.cells]
        self.version = 0
        self.written = np.zeros((m.ctas, LANES, COLUMNS), np.int32)
        """1 + number of the instruction that wrote a cell last since its columns were allocated; 0 if none did."""
        self.products: dict[tuple[int, int], Any] = {}
        """(CTA, line) -> the first product that the instruction computed; for a pair, the CTA is the first one."""
        self._said: set[int] = set()
        self._said_loads: set[int] = set()
        self._collectors: dict[tuple[int, str], int] = {}
        """(CTA, buffer 'a' or 'b0' to 'b3') -> the operand that a product has put into the buffer."""
        self._smallest: dict[int, int] = {}
        """CTA -> columns of its last allocation."""
        self.allocations: dict[tuple[int, int], Site] = {}
        """(CTA, first column) -> instruction that allocated it."""
        self._queues: dict[int, list[Pending]] = {}
        """Thread -> the instructions that it issued and that are not complete, in order."""
        self._flights: dict[int, dict[UnderWay, int]] = {}
        """CTA -> instructions that may still write its cells, and their counts."""
        self._stores: dict[int, list[Pending]] = {}
        """Warp -> stores that are not complete."""
        self._unwaited: dict[str, dict[int, dict[UnderWay, None]]] = {"st": {}, "ld": {}}
        """Warp -> its stores and loads that no wait covers, in order."""

    @staticmethod
    def of(m: Host) -> TensorState:
        """Return the state of a machine, created on first use."""
        found = m.state.get("tcgen05")
        if found is None:
            found = m.state["tcgen05"] = TensorState(m)
            m.state.setdefault("endings", []).append(found.end)
        state: TensorState = found
        return state

    # ---- asynchronous instructions -----------------------------------------------------------------------------------

    def issue(
        self, f: Frame, site: Site, what: str, run: Callable[[], None], regions: Sequence[tuple[int, Region]]
    ) -> None:
        """Issue a copy or a product of a thread.

        Args:
            regions: (CTA, cells that the instruction writes).
        """
        thread = int(f.threads[0])
        queue = self._queues.setdefault(thread, [])

        def complete() -> None:
            while queue and queue[0] is not agent:
                self.m.finish(queue[0])
            if queue:
                queue.pop(0)
            run()

        agent = Pending(what, site.number, complete, waited_for=True)
        queue.append(agent)
        for cta, region in regions:
            flight = UnderWay(cta, region, site, thread)
            held = self._flights.setdefault(cta, {})
            held[flight] = held.get(flight, 0) + 1
        self.m.asynchronous = True
        self.m.agents.append(agent)
        if self.m.eager or (self.m.dice is not None and self.m.dice.random() < 0.5):
            self.m.finish(agent)

    def commit(self, f: Frame, site: Site, arrive: Callable[[], None]) -> None:
        """Issue a commit: when it completes, all instructions that the thread has issued complete, and then `arrive` is
        called.
        """
        thread = int(f.threads[0])
        waited = list(self._queues.get(thread, ()))
        covered = [(held, one, count) for held in self._flights.values() for one, count in held.items()
                   if one.thread == thread]  # fmt: skip

        def complete() -> None:
            for agent in waited:
                self.m.finish(agent)
            for held, one, count in covered:
                left = held.get(one, 0) - count
                if left > 0:
                    held[one] = left
                else:
                    held.pop(one, None)
            arrive()

        self.m.under_way("a tcgen05.commit", site.number, complete)

    def moves(self, f: Frame, site: Site, what: str, cta: int, region: Region) -> None:
        """Record a load ('ld') or store ('st') of one warp, which is in flight until wait::ld or wait::st."""
        warp = int(f.threads[0]) // THREADS
        self._unwaited[what].setdefault(warp, {})[UnderWay(cta, region, site, warp)] = None

    def waits(self, f: Frame, what: str) -> None:
        """Record a wait::ld or wait::st of warps."""
        for warp in f.warps.tolist():
            self._unwaited[what].pop(warp, None)

    def store(self, f: Frame, site: Site, run: Callable[[], None]) -> None:
        """Issue a tcgen05.st of one warp, which completes at wait::st at the latest."""
        agent = Pending("a tcgen05.st", site.number, run, waited_for=True)
        self.m.asynchronous = True
        if self.m.eager or (self.m.dice is not None and self.m.dice.random() < 0.5):
            self.wait_for_stores(f)
            run()
            return
        self.m.agents.append(agent)
        self._stores.setdefault(int(f.warps[0]), []).append(agent)

    def wait_for_stores(self, f: Frame) -> None:
        """Complete the issued stores of the warps of a frame."""
        for warp in f.warps.tolist():
            for agent in self._stores.pop(warp, ()):
                self.m.finish(agent)

    def allocates(self, f: Frame, site: Site, cta: int, columns: int) -> None:
        """Check an allocation: the number of columns may not increase within a CTA."""
        before = self._smallest.get(cta, columns)
        self._smallest[cta] = columns
        if columns > before:
            text = f"{f.text()}: tcgen05.alloc of {columns} columns follows an allocation of only {before}"
            self._note("larger allocation than before", text, site, "error", source="tcgen05.alloc")

    def collects(self, f: Frame, site: Site, cta: int, buffer: str, use: str, operand: int) -> None:
        """Record the use of a collector buffer by a product.

        Raises:
            Fault: the buffer does not hold the operand.
        """
        key = (cta, buffer)
        if use in ("use", "lastuse") and self._collectors.get(key) != operand:
            held = "nothing" if key not in self._collectors else "another operand"
            what = f".collector::{buffer}::{use} of {buffer[0].upper()} = {operand:#x}"
            text = f"{f.text()}: {what}; the buffer holds {held}"
            raise site.fault("collector buffer not filled", text, f, "tcgen05.mma, collector usage")
        if use == "fill":
            self._collectors[key] = operand
        elif use in ("lastuse", "discard"):
            self._collectors.pop(key, None)

    # ---- judgement ---------------------------------------------------------------------------------------------------

    def expect_still(
        self, f: Frame, site: Site, cta: int, region: Region, does: str, *, pipelined: bool = False
    ) -> None:
        """Raise a fault for an access to cells in flight, and record a finding for a write to cells that a load may
        still read.

        Args:
            does: verb of the access for the message: 'reads', 'reads A in', 'writes' or 'deallocates'. pipelined:
                whether the access is a product or a copy, which may follow products and copies of its thread.
        Raises:
            Fault: an instruction may still write some of the cells, because its commit has not completed, or wait::st
                is missing.
        """
        own, warp = (int(f.threads[0]), int(f.threads[0]) // THREADS)
        for one in self._flights.get(cta, ()):
            if _overlap(one.region, region) and not (pipelined and one.thread == own):
                raise site.fault(
                    "tensor memory race",
                    _race_text(f, does, one, region, "write", "wait for the mbarrier of a commit that follows it"),
                    f, "tcgen05 memory consistency model", other_line=one.site.one.line,
                )  # fmt: skip
        writes = does == "writes"
        for other, held in self._unwaited["st"].items():
            for one in held:
                if one.cta == cta and _overlap(one.region, region) and not (writes and other == warp):
                    text = _race_text(f, does, one, region, "write", "its warp must execute tcgen05.wait::st first")
                    source = "tcgen05 memory consistency model"
                    raise site.fault("tensor memory race", text, f, source, other_line=one.site.one.line)
        if writes and site.number not in self._said_loads:
            for other, held in self._unwaited["ld"].items():
                for one in held:
                    if one.cta == cta and other != warp and _overlap(one.region, region):
                        self._said_loads.add(site.number)
                        text = _race_text(f, does, one, region, "read", "its warp must execute tcgen05.wait::ld first")
                        self._note("tensor memory race", text, site, "warning", other_line=one.site.one.line)
                        return

    def _note(
        self, rule: str, text: str, site: Site, severity: str, source: str = "tcgen05 memory consistency model",
        **facts: Any,
    ) -> None:  # fmt: skip
        one: Any = site.one
        self.m.totals.findings.append(
            finding(rule, text, one, files=site.code.files, source=source, severity=severity, facts=facts)
        )

    def expect_written(self, f: Frame, site: Site, cells: tuple[Any, Any, Any], does: str, severity: str) -> None:
        """Report cells that an instruction reads but none has written, once per instruction. cells: (CTA, lane,
        column).
        """
        if site.number in self._said:
            return
        held = self.written[cells] != 0
        if held.all():
            return
        self._said.add(site.number)
        place = tuple(int(x) for x in np.argwhere(~held)[0])
        lane, column = (int(np.broadcast_to(cells[i], held.shape)[place]) for i in (1, 2))
        count = int(held.size - np.count_nonzero(held))
        text = f"{f.text()}: {does} lane {lane}, column {column} of tensor memory, which no instruction has written"
        facts = {"threads": f.text(), "cells": count}
        one: Any = site.one
        self.m.totals.findings.append(
            finding(
                "tensor memory never written", text, one, files=site.code.files, source="tcgen05.alloc",
                severity=severity, facts=facts,
            )
        )  # fmt: skip

    def end(self) -> None:
        """Check that all columns are freed at the end of the kernel.

        Raises:
            Fault: columns are still allocated.
        """
        for (cta, column), site in self.allocations.items():
            count = self.memories[cta].allocated[column]
            who = self.m.threads_text(np.arange(cta * self.m.cta_threads, cta * self.m.cta_threads + 1)).split(",")
            text = (
                f"{','.join(who[:-1])}: {count} columns of tensor memory are still allocated at the end of the "
                f"kernel; tcgen05.dealloc must free them"
            )
            one: Any = site.one
            raise Fault(finding("tensor memory", text, one, files=site.code.files, source="tcgen05.alloc"))


def _overlap(one: Region, other: Region) -> bool:
    return bool(one[0] & other[0]) and one[1] < other[2] and other[1] < one[2]


def _race_text(f: Frame, does: str, one: UnderWay, region: Region, may: str, cure: str) -> str:
    name = ".".join(one.site.one.opcode.split(".")[:2])
    _, start, end = one.region
    return (
        f"{f.text()}: {does} columns {max(region[1], start)} to {min(region[2], end) - 1} of tensor memory, which "
        f"{name} of line {one.site.one.line} may still {may}; {cure}"
    )
