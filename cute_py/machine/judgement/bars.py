"""Check bar and barrier: all instructions of a round must name the same thread count, and all threads of a warp must
execute the same instruction.

Source: PTX ISA 9.0, bar, barrier: the thread count is a multiple of the warp size. All threads of a warp execute the
same `.aligned` instruction, and bar is always aligned.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cute_py.machine.judgement.once import OncePerInstruction
from cute_py.machine.threads import LANES, Array, Frame, Host
from cute_py.ptx.flow import lines_text

if TYPE_CHECKING:
    from cute_py.diagnostics import Diagnostic
    from cute_py.machine.code import Code
    from cute_py.machine.sites import Site

_ISA: Final = "bar, barrier"


class Bars(OncePerInstruction):
    """Checks bar and barrier instructions, and records the current round of each barrier of each CTA."""

    source = _ISA

    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self._warps: dict[tuple[int, int], dict[int, int]] = {}
        """(CTA, barrier) -> warp -> number of the instruction that some of its threads reached without the others. (A
        whole warp may arrive several times in one round, at several instructions.)"""
        self._counts: dict[tuple[int, int], tuple[int, int]] = {}
        """(CTA, barrier) -> (number of the instruction, count) of this round."""
        self._copies: dict[tuple[str, object], dict[int, None]] = {}
        """Text and source line of a barrier that threads exited before -> the PTX lines of its copies."""

    def began(self, m: Host) -> None:
        """Reset the state when CTAs begin to run together."""
        self.m = m
        self._warps, self._counts = {}, {}
        self._exits = 0
        self._of_cta: dict[int, Array] = {}

    def bar_arrived(self, f: Frame, site: Site, cta: int, number: int, waits: bool, expected: int | None) -> None:
        """Check the thread count, the exited threads and the instruction when threads of one CTA arrive."""
        key = (cta, number)
        if expected is not None:
            self._count(f, site, key, expected)
        else:
            self._exited(f, site, cta, number)
        if site.name == "barrier" and "aligned" not in site.modifiers:
            return
        came = self._warps.setdefault(key, {})
        whole = np.isin(f.warps, _divided_warps(f), invert=True) if not f.whole() else np.ones(len(f.warps), np.bool_)
        for warp, together in zip(f.warps.tolist(), whole.tolist(), strict=True):
            other = came.get(warp, site.number) if together else came.setdefault(warp, site.number)
            if other != site.number:
                verb = "executes" if f.n == 1 else "execute"
                text = (
                    f"{f.text()} {verb} {site.one.opcode} {number}; other threads of the warp reached the barrier at "
                    f"{self._where(other)}; all threads of a warp must execute the same instruction"
                )
                facts = {"threads": f.text(), "barrier": number, "other line": self.code.instructions[other].line}
                self._say(site.number, "divergent aligned instruction", text, facts)

    def block_met(self, f: Frame, site: Site) -> None:
        """Report exited threads when all live threads of the CTAs of a frame have met."""
        if self.m.exits:
            for cta, _ in f.parts:
                self._exited(f, site, cta, int(site.operands[0].value or 0) if site.operands else 0)

    def gathered(self, f: Frame, site: Site) -> None:
        """Report lanes that exited before an instruction that names all lanes of the warp."""
        m = self.m
        x, y, z = m.shape.block
        lanes = (f.warps[:, None] * LANES + np.arange(LANES)).reshape(-1)
        gone = lanes[~m.live[lanes] & (lanes % m.cta_threads < x * y * z)]
        if len(gone):
            text = f"{m.threads_text(gone)} exited before {site.one.opcode}, which names all lanes of the warp"
            facts = {"threads": f.text(), "exited": m.threads_text(gone)}
            self._say(site.number, "exited lanes", text, facts, "warning", site.name)

    def _exited(self, f: Frame, site: Site, cta: int, number: int) -> None:
        """Report threads that exited before a barrier of all threads of the CTA."""
        m = self.m
        if not m.exits:
            return
        gone = self._gone(cta)
        if len(gone):
            text = (
                f"{m.threads_text(gone)} exited before {site.one.opcode}, which waits for all threads of the CTA; a "
                f"GPU counts exited threads as arrived"
            )
            facts = {"threads": f.text(), "barrier": number, "exited": m.threads_text(gone)}
            rule, copies = "exited before a barrier", self._copies.setdefault((site.one.text, site.one.loc), {})
            if not copies:
                self._say(site.number, rule, text, facts, "warning")
            copies[site.one.line] = None

    def findings(self) -> list[Diagnostic]:
        """Return the findings so far. Copies of a barrier in an unrolled loop have one finding about exited threads."""
        lines = {next(iter(copies)): list(copies) for copies in self._copies.values() if len(copies) > 1}
        found = []
        for one in super().findings():
            copies = lines.get(int(str(one.facts["line"])), []) if one.rule == "exited before a barrier" else []
            if copies:
                said = f"; threads had exited before {len(copies)} copies of it ({lines_text(copies)})"
                one = replace(one, text=one.text + said, facts={**one.facts, "lines": copies})
            found.append(one)
        return found

    def _gone(self, cta: int) -> Array:
        """The threads of a CTA that have exited."""
        m = self.m
        if self._exits != m.exits:
            self._exits, self._of_cta = m.exits, {}
        found = self._of_cta.get(cta)
        if found is None:
            x, y, z = m.shape.block
            start = cta * m.cta_threads
            found = self._of_cta[cta] = np.flatnonzero(~m.live[start : start + x * y * z]) + start
        return found

    def _count(self, f: Frame, site: Site, key: tuple[int, int], expected: int) -> None:
        facts: dict[str, Any] = {"threads": f.text(), "barrier": key[1], "count": expected}
        if expected % LANES or not expected:
            text = f"{f.text()}: {site.one.opcode} with a count of {expected} threads; must be a multiple of {LANES}"
            self._say(site.number, "barrier count", text, facts)
        at, count = self._counts.setdefault(key, (site.number, expected))
        if count != expected:
            text = (
                f"{f.text()} give barrier {key[1]} a count of {expected} threads; {self._where(at)} gives it {count} "
                "in the same round"
            )
            self._say(site.number, "barrier count", text, {**facts, "other line": self.code.instructions[at].line})

    def bar_ended(self, m: Host, cta: int, number: int) -> None:
        """Forget the completed round of a barrier."""
        self._warps.pop((cta, number), None)
        self._counts.pop((cta, number), None)


def _divided_warps(f: Frame) -> Array:
    """The warps of a frame that have other live threads too."""
    warps, counts = np.unique(f.threads // LANES, return_counts=True)
    return np.asarray(warps[counts != np.count_nonzero(f.m.live.reshape(-1, LANES)[warps], axis=1)])
