"""Check setmaxnreg: its count, its direction, and the register pool that the warps of a CTA share.

PTX registers are virtual, so the number of registers that a warp has does not affect a run. The rules can still be
judged. A launch gives each thread as many registers as the kernel declares (.maxnreg), or as fit into 65536 with its
launch bounds, and no more than its largest setmaxnreg requests. setmaxnreg.dec returns registers to the pool of the
CTA, and setmaxnreg.inc waits until the pool has enough. The registers of a thread must at least hold the accumulator of
each product.

Source: PTX ISA 9.0, setmaxnreg; 65536 registers of a multiprocessor: CUDA C++ Programming Guide, technical
specifications; the registers at launch: ptxas 13.0 -v of kernels with setmaxnreg.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cute_py.errors import counted
from cute_py.machine.judgement.observer import AsyncWork
from cute_py.machine.judgement.once import OncePerInstruction
from cute_py.machine.threads import LANES, Array, Frame, Host

if TYPE_CHECKING:
    from cute_py.machine.code import Code
    from cute_py.machine.sites import Site

LEAST, MOST, STEP = 24, 256, 8
FILE: Final = 65536
"""Registers of a multiprocessor."""
_ISA: Final = "setmaxnreg"


def launch_registers(m: Host) -> tuple[int, str]:
    """Return the number of registers per thread at launch, and text about the origin of this number."""
    kernel = m.code.kernel
    declared = kernel.triple("maxnreg")
    if declared is not None:
        return declared[0], f".maxnreg {declared[0]}"
    ctas = max((kernel.triple("minnctapersm") or (1, 1, 1))[0], 1)
    bound = FILE // ctas // m.cta_threads // STEP * STEP
    named = [int(one.operands[0].value or 0) for one in m.code.instructions if one.opcode.startswith("setmaxnreg")]
    if max(named, default=bound) < bound:
        return max(named), "the largest count of a setmaxnreg"
    return min(bound, MOST), f"{FILE} registers for {counted(m.cta_threads * ctas, 'thread')}"


class RegisterPool(OncePerInstruction):
    """Judges setmaxnreg, and records the registers per thread of each warp, and the free registers of each CTA."""

    source = _ISA

    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self.held: Array
        self.free: Array
        self.start, self.why = 0, ""
        self.debts: dict[int, tuple[Site, Frame, int, int]] = {}

    def began(self, m: Host) -> None:
        """Reset the state when CTAs begin to run together."""
        self.m = m
        self.start, self.why = launch_registers(m)
        self.held = np.full(m.count // LANES, self.start, np.int64)
        self.free = np.zeros(m.ctas, np.int64)
        self.debts = {}

    def registers_set(self, f: Frame, site: Site, count: int, increases: bool) -> None:
        """Check a setmaxnreg of whole warpgroups, and update their registers and the pool."""
        verb = "inc" if increases else "dec"
        facts: dict[str, Any] = {"threads": f.text(), "registers": count, "at launch": self.start}
        facts["cause"] = "register pool"
        if not LEAST <= count <= MOST or count % STEP:
            text = f"setmaxnreg to {count}; must be {LEAST} to {MOST}, a multiple of {STEP}"
            other = min(max(count // STEP * STEP, LEAST), MOST)
            change = (site.one.line, str(count), str(other))
            self._say(site.number, "register count", text, {**facts, "change": change})
        now = self.held[f.warps]
        wrong = now > count if increases else now < count
        if wrong.any():
            text = (
                f"{f.text()}: setmaxnreg.{verb} to {count} registers, but they have {int(now[wrong][0])} ({self.why} "
                f"at launch); .{verb} can't {'lower' if increases else 'raise'} the count"
            )
            change = (site.one.line, f".{verb}.", ".dec." if increases else ".inc.")
            self._say(site.number, "register direction", text, {**facts, "change": change})
        self.held[f.warps] = count
        cta = f.warps * LANES // self.m.cta_threads
        np.add.at(self.free, cta, (now - count) * LANES)
        for one in np.unique(cta).tolist():
            if increases and self.free[one] < 0:
                self.debts[one] = (site, f, count, int(self.free[one]))

    def issued(self, f: Frame, site: Site, work: AsyncWork) -> None:
        """Check that the accumulator of a product fits the registers of its warps."""
        if work.kind != "wgmma":
            return
        need = len(site.elements(0))
        has = int(self.held[f.warps].min())
        if need > has:
            text = f"{f.text()} have {has} registers, but the accumulator of {site.one.opcode} alone needs {need}"
            facts = {"threads": f.text(), "registers": has, "needed": need, "cause": "register pool"}
            self._say(site.number, "register count", text, facts)

    def ended(self, m: Host, failed: bool) -> None:
        """Report a pool with too few registers, so that setmaxnreg.inc would wait forever."""
        for cta, (site, f, count, _) in self.debts.items():
            missing = -int(self.free[cta])
            if missing <= 0:
                continue
            text = (
                f"{f.text()}: setmaxnreg.inc to {count} registers waits forever, because the pool of the CTA lacks "
                f"{counted(missing, 'register')}; each thread has {self.start} at launch ({self.why})"
            )
            facts: dict[str, Any] = {"threads": f.text(), "registers": count, "missing": missing}
            fits = (count - -(-missing // f.n)) // STEP * STEP
            facts |= {"at launch": self.start, "change": (site.one.line, str(count), str(fits))}
            self._say(site.number, "register pool", text, {**facts, "cause": "register pool"})
