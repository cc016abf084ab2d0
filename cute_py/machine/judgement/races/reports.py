"""Findings of the judges of memory: one for each pair of instructions, with lines, threads and addresses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cute_py.errors import shortened
from cute_py.machine.faults import finding, place_text
from cute_py.machine.judgement.races.shadow import (
    CLUSTER,
    CLUSTER_BITS,
    COLUMN,
    COLUMN_BITS,
    SITE,
    SITE_BITS,
    TIME,
    TIME_BITS,
)
from cute_py.machine.rules import REASONS
from cute_py.machine.threads import LANES, groups_of_cta

if TYPE_CHECKING:
    from cute_py.diagnostics import Diagnostic
    from cute_py.machine.code import Code
    from cute_py.machine.judgement.races.clocks import Clocks
    from cute_py.machine.judgement.races.releases import Releases
    from cute_py.machine.sites import Site
    from cute_py.machine.threads import Array, Frame, Host
    from cute_py.ptx.source import SourceInstruction

MAX_FINDINGS: Final = 24
"""Maximum number of findings of one run; all others are only counted."""

EXITS_EARLY: Final = 100
"""From this architecture on, a bulk store under way at an exit is only a warning. CUTLASS 7107b055: for a kernel
without C, `store_tail` of sm100_epilogue_tma_warpspecialized.hpp waits for no store; `store_tail` of
sm90_epilogue_tma_warpspecialized.hpp waits for all."""


class Reports:
    """Collects the findings of one run, and makes texts about warps and addresses."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self._seen: dict[tuple[str | int | bool | tuple[int, ...], ...], int] = {}
        self._found: list[tuple[tuple[str | int | bool | tuple[int, ...], ...], Diagnostic]] = []
        self.releases: Releases | None = None
        """The arrivals of the wave; the keeper of the clocks sets them."""
        self._numbers: Any = np.zeros((0, 3), np.int64)

    def began(self, m: Host, first_cluster: int) -> None:
        """Start a wave whose clusters are numbered from `first_cluster`."""
        self.m = m
        self.first_cluster = first_cluster
        self._numbers = np.concatenate([self._numbers[: first_cluster * m.cluster_size], m.numbers])

    def add(
        self,
        key: tuple[str | int | bool | tuple[int, ...], ...],
        text: str,
        one: SourceInstruction | None,
        severity: str,
        **facts: Any,
    ) -> None:
        """Add a finding once for each key; the first part of the key is the rule."""
        self._seen[key] = self._seen.get(key, 0) + 1
        if self._seen[key] > 1 or len(self._found) >= MAX_FINDINGS:
            return
        rule = str(key[0])
        made = finding(
            rule, text, one, files=self.code.files, source=REASONS[rule].source, severity=severity, facts=facts
        )
        self._found.append((key, made))

    def _again(self, key: tuple[str | int | bool | tuple[int, ...], ...]) -> bool:
        """Count a finding, and return whether it was reported before."""
        if key not in self._seen:
            return False
        self._seen[key] += 1
        return True

    def found(self) -> list[Diagnostic]:
        """Return all findings, errors first."""
        order = ("error", "warning", "note")
        return sorted((made for _, made in self._found), key=lambda one: order.index(one.severity))

    # ---- texts -------------------------------------------------------------------------------------------------------

    def instruction(self, key: int) -> SourceInstruction | None:
        """Return the instruction of a key; None if the key does not identify it."""
        number = key >> SITE & SITE_BITS
        return self.code.instructions[number] if number < min(len(self.code.instructions), SITE_BITS) else None

    def agent(self, clocks: Clocks, key: int) -> str:
        """Text that names the agent of a key."""
        cluster, column = key >> CLUSTER & CLUSTER_BITS, key >> COLUMN & COLUMN_BITS
        warps = clocks.warps
        if column >= clocks.fixed:
            return "a copy"
        if column >= 4 * warps:
            rank, group = divmod(column - 4 * warps, groups_of_cta(self.m.cta_threads))
            count = min(4, clocks.per_cta - 4 * group)
            return f"{self.warp(clocks, cluster, rank * clocks.per_cta + 4 * group, count)}, product"
        kind = ("", ", bulk store", ", bulk store", ", cp.async")[column // warps]
        return self.warp(clocks, cluster, column % warps, 1) + kind

    def warp(self, clocks: Clocks, cluster: int, warp: int, count: int) -> str:
        """Text of `count` warps of a cluster, with the range of their threads. cluster: index over all waves.

        The judge does not keep which of these threads made an access.
        """
        rank, inside = divmod(warp, clocks.per_cta)
        cta = cluster * self.m.cluster_size + rank
        x, y, z = (int(n) for n in self._numbers[cta]) if cta < len(self._numbers) else (-1, -1, -1)
        name = f"warp {inside}" if count == 1 else f"warps {inside} to {inside + count - 1}"
        return f"CTA ({x}, {y}, {z}), {name} (threads {LANES * inside} to {LANES * (inside + count) - 1})"

    def where(self, array: Any, at: int) -> str:
        """Text of the address at an offset of an array."""
        m = self.m
        if array is m.shared:
            return f"shared address {m.shared_base + at % m.shared_stride:#x}"
        return f"{array.name} + {at}" if array is not None else f"offset {at}"

    # ---- findings ----------------------------------------------------------------------------------------------------

    def race(
        self, f: Frame, site: Site, clocks: Clocks, place: tuple[Any, int], keys: tuple[int, int], what: str,
        reader: bool, severity: str,
    ) -> None:  # fmt: skip
        """Report two unordered accesses: the earlier access with key `keys[0]`, and the present access.

        severity: 'warning' if some warps of a product know the order, because all warps reach the product.
        """
        array, at = place
        other = keys[0]
        partly = severity == "warning"
        shared = array is self.m.shared
        rule = f"race in {'shared' if shared else 'global'} memory"
        column = other >> COLUMN & COLUMN_BITS
        if column >= 2 * clocks.warps and not reader:
            rule = "read before it arrives" if what == "reads" else "overwritten while in use"
            if column >= 4 * clocks.warps and column < clocks.fixed:
                rule = "overwritten while in use"
        elif column >= clocks.warps and reader:
            rule = "overwritten while in use"
        if shared and self._released_early(f, site, clocks, place, other, what, reader):
            return
        if not shared and self._harmless(keys, reader or what == "reads", clocks):
            severity = "warning"
        one = other >> SITE & SITE_BITS
        key = (rule, site.number, one) if severity == "error" else (rule, site.name, self._opcode(one))
        if self._again(key):
            return
        before = self.instruction(other)
        did = "read" if reader else "wrote"
        line = "another instruction" if before is None else place_text(before, self.code.files)
        text = (
            f"{f.text()} {_verb(f, what)} {self.where(array, at)}, which {self.agent(clocks, other)} {did} at {line}; "
            f"{'only some of these warps wait for it' if partly else 'nothing orders the two accesses'}"
        )
        facts: dict[str, Any] = {
            "threads": f.text(),
            "address": self.where(array, at),
            "other": "" if before is None else shortened(before.text, 160),
            "other_line": None if before is None else before.line,
            "other_threads": self.agent(clocks, other),
        }
        self.add(key, text, site.one, severity, **facts)

    def _released_early(
        self, f: Frame, site: Site, clocks: Clocks, place: tuple[Array, int], other: int, what: str, reader: bool
    ) -> bool:  # fmt: skip
        """Report a race between a copy and a read whose threads have arrived at an mbarrier before the read, if the
        copy follows this arrival; return whether it is one."""
        cluster, column = (other >> CLUSTER & CLUSTER_BITS) - self.first_cluster, other >> COLUMN & COLUMN_BITS
        number = other >> SITE & SITE_BITS
        pair: tuple[SourceInstruction | None, SourceInstruction | None]
        if self.releases is None or not 0 <= cluster < clocks.clusters:
            return False
        if what == "reads" and clocks.fixed <= column:
            arrival = self.releases.before_copy(f, cluster, column, other >> TIME & TIME_BITS, site)
            pair, who = (site.one, self.instruction(other)), f.text()
        elif what == "writes" and reader and column < clocks.warps and site.name == "cp":
            arrival = self.releases.before_write(f, cluster, column, number)
            pair, who = (self.instruction(other), site.one), self.agent(clocks, other)
        else:
            return False
        read, copy = pair
        if arrival is None or read is None or copy is None:
            return False
        rule = "released before the read"
        if self._again((rule, read.line)):
            return True
        files = self.code.files
        text = (
            f"{who} read {self.where(*place)} after an arrival at {place_text(arrival.one, files)}; the copy at "
            f"{place_text(copy, files)}, which writes these bytes, follows this arrival"
        )
        self.add(
            (rule, read.line), text, read, "error", threads=who, address=self.where(*place),
            released_line=arrival.one.line, other=shortened(copy.text, 160), other_line=copy.line,
        )  # fmt: skip
        return True

    def arrival(self, f: Frame, site: Site, place: int, phase: int, made: Site) -> None:
        """Report an arrival that nothing orders after the phase before it."""
        where = self.where(self.m.shared, place)
        text = (
            f"{f.text()} {_verb(f, 'arrives')} at the mbarrier at {where} in phase {phase}; nothing orders the end of "
            f"phase {phase - 1} before this arrival, so another run may count it in phase {phase - 1}, or complete "
            f"phase {phase} before other threads have waited for phase {phase - 1}"
        )
        self.add(
            ("arrival not ordered", str(site.one.loc or site.number)), text, site.one, "error", threads=f.text(),
            barrier=where, phase=phase, other=made.one.text, other_line=made.one.line,
        )  # fmt: skip

    def early_arrival(self, f: Frame, site: Site, number: int, warp: int) -> None:
        """Report an arrival at a barrier of a CTA that nothing orders after an arrival of the round before."""
        m = self.m
        threads = np.arange(warp * LANES, (warp + 1) * LANES)
        other = m.threads_text(threads[m.live[threads]]) if m.live[threads].any() else f"warp {warp}, which has exited,"
        text = (
            f"{f.text()} {_verb(f, 'arrives')} at barrier {number} in the round after one where {other} arrived; "
            f"nothing orders the two arrivals, so another run may count this one in the round before"
        )
        self.add(
            ("round not ordered", str(site.one.loc or site.number)), text, site.one, "error", threads=f.text(),
            barrier=number, other=other,
        )  # fmt: skip

    def _opcode(self, number: int) -> str:
        return self.code.instructions[number].opcode if number < len(self.code.instructions) else ""

    def _harmless(self, keys: tuple[int, int], reads: bool, clocks: Clocks) -> bool:
        """Whether a race has a pattern that compilers generate: all threads of a CTA load a value, and one of them
        stores it again.
        """
        other, own = keys
        if not reads or (other ^ own) >> CLUSTER & CLUSTER_BITS:
            return False
        columns = [key >> COLUMN & COLUMN_BITS for key in keys]
        return max(columns) < clocks.warps and columns[0] // clocks.per_cta == columns[1] // clocks.per_cta

    def scope(self, f: Frame, site: Site, clocks: Clocks, place: tuple[Any, int], other: int) -> None:
        """Report atomic operations whose scopes do not include both threads."""
        before = self.instruction(other)
        line = "another instruction" if before is None else place_text(before, self.code.files)
        where = self.where(*place)
        text = (
            f"{f.text()} and {self.agent(clocks, other)} ({line}) update {where}; the scope .cta does not include both"
        )
        self.add(
            ("scope too narrow", site.number), text, site.one, "error", threads=f.text(), address=where,
            other_threads=self.agent(clocks, other), other_line=None if before is None else before.line,
        )  # fmt: skip

    def never_written(self, f: Frame, site: Site, thread: int, address: int) -> None:
        """Report a read of shared memory that was never written."""
        where = self.where(self.m.shared, address)
        text = f"{self.m.thread_text(thread)} reads {where}, which nothing has written"
        self.add(("never written", site.number), text, site.one, "warning", threads=f.text(), address=where)

    def barrier_overwritten(self, f: Frame, site: Site, place: int) -> None:
        """Report a write that overwrites an mbarrier."""
        where = self.where(self.m.shared, place)
        text = f"{f.text()} {_verb(f, 'writes')} over the mbarrier at {where}"
        key = ("barrier overlapped by data", site.number)
        self.add(key, text, site.one, "error", threads=f.text(), barrier=where)

    def not_visible(self, f: Frame, site: Site, clocks: Clocks, place: tuple[Any, int], other: int, kind: str) -> None:
        """Report a write that asynchronous work may not see, because a proxy fence is missing."""
        before = self.instruction(other)
        key = ("missing proxy fence", site.name, "" if before is None else before.opcode)
        if self._again(key):
            return
        line = "another instruction" if before is None else place_text(before, self.code.files)
        where = self.where(*place)
        said = {"wgmma": "a product", "tcgen05.mma": "a product", "mbarrier.init": "an initialisation"}.get(
            kind, f"a {kind}"
        )
        text = (
            f"{said} of {f.text()} reads {where}, which {self.agent(clocks, other)} wrote at {line}; there is no "
            "fence.proxy.async between the two"
        )
        severity = "warning" if kind in ("wgmma", "tcgen05.mma", "tcgen05.cp") else "error"
        self.add(
            key, text, site.one, severity,
            threads=f.text(), address=where, other="" if before is None else shortened(before.text, 160),
            other_line=None if before is None else before.line, other_threads=self.agent(clocks, other),
        )  # fmt: skip

    def not_initialised(self, f: Frame, site: Site, place: int, made: Site, met: bool) -> None:
        """Report a use of a barrier that is not ordered after its initialisation by the instruction `made`.

        met: whether a barrier.cluster is between the two; its arrival is relaxed, so it does not order memory.
        """
        where = self.where(self.m.shared, place)
        text = f"{f.text()} {_verb(f, 'uses')} the mbarrier at {where}; "
        if met:
            text += (
                "a barrier.cluster comes between its initialisation and this access, but the arrival is .relaxed and "
                "no fence precedes it, so it does not order memory"
            )
        else:
            text += "nothing orders its initialisation before this access"
        severity = "warning" if met else "error"
        self.add(("initialisation not known", site.number), text, site.one, severity, threads=f.text(), barrier=where,
                 other=made.one.text, other_line=made.one.line)  # fmt: skip

    def still_used(self, f: Frame, site: Site, place: int, clocks: Clocks, cluster: int, warp: int) -> None:
        """Report a barrier that is invalidated while others may still use it."""
        where, who = self.where(self.m.shared, place), self.warp(clocks, cluster + self.first_cluster, warp, 1)
        text = f"{f.text()} {_verb(f, 'invalidates')} the mbarrier at {where}, which {who} may still use"
        key = ("invalidated while in use", site.number)
        self.add(key, text, site.one, "error", threads=f.text(), barrier=where, other_threads=who)

    def not_fenced(self, f: Frame, site: Site, place: int, far: bool, made: Site) -> None:
        """Report a barrier whose initialisation is not followed by a fence."""
        where = self.where(self.m.shared, place)
        who = "another CTA" if far else "the asynchronous proxy"
        text = f"{f.text()}: {who} uses the mbarrier at {where}, and no fence follows its initialisation"
        key = ("initialisation not fenced", far)
        self.add(key, text, site.one, "warning", threads=f.text(), barrier=where,
                 other=made.one.text, other_line=made.one.line)  # fmt: skip

    def peer(self, m: Host, clocks: Clocks, cta: int, key: int) -> None:
        """Report a CTA that exits while another CTA may still access its memory."""
        before = self.instruction(key)
        x, y, z = (int(n) for n in m.numbers[cta])
        text = (
            f"{self.agent(clocks, key)} accesses the shared memory of CTA ({x}, {y}, {z}), and nothing orders this "
            f"access before the CTA's exit"
        )
        self.add(
            ("exit before a peer is done", key >> SITE & SITE_BITS), text, before, "error",
            threads=self.agent(clocks, key), exits=f"CTA ({x}, {y}, {z})",
        )  # fmt: skip

    def under_way(self, f: Frame, site: Site, rule: str, severity: str) -> None:
        """Report a CTA that exits while its copy is in flight."""
        what = "reads" if rule.startswith("store") else "writes"
        text = f"a copy of {f.text()} may still {what[:-1]} shared memory when the CTA that owns the memory exits"
        facts = {"threads": f.text()}
        if what == "reads" and "mbarrier" in site.one.opcode:
            facts["cause"] = "copy to a peer"
        elif what == "reads" and _architecture_number(self.code.module.target) >= EXITS_EARLY:
            text += "; CUTLASS's epilogues for sm_100 exit in the same way, and devices run them"
            severity = "warning"
        self.add((rule, site.number), text, site.one, severity, **facts)


def _verb(f: Frame, third_person: str) -> str:
    """Return the form of a verb for one thread or for several."""
    return third_person if f.n == 1 else third_person[:-1]


def _architecture_number(target: str) -> int:
    """The number in a target name: 100 for 'sm_100a'."""
    found = re.search(r"sm_(\d+)", target)
    return int(found[1]) if found else 0
