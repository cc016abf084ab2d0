"""Each fault that the judges know: a kernel that has it, what its finding says, and a twin without the finding.

A finding has a severity, the paragraph of the PTX ISA, the line of the PTX, the line of the source that `.loc` names,
the threads, and numbers; of barriers, the barrier and the phase. Where a change may cure it, a run has tried that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py.diagnostics import Diagnostic
from tests.machine import test_descriptors
from tests.machine.faulty_kernels import KERNELS
from tests.machine.test_hangs import CASES, STUCK, program, run

SOURCE = "kernel.cu"


def located(text: str) -> str:
    """The text with a `.loc` of the source line 1000 + N in front of line N, for every instruction."""
    lines = []
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        plain = line.strip()
        if inside and plain.endswith(";") and not plain.startswith((".", "{", "}")):
            lines.append(f".loc 1 {1000 + number} 0")
        inside |= plain.startswith("{") or plain.endswith("{")
        lines.append(line)
    return "\n".join([*lines, f'.file 1 "{SOURCE}"'])


@dataclass(frozen=True)
class Point:
    """A fault. kernel: a name of `CASES` or `KERNELS`. says: facts that the finding must have. cure: a part of the
    change that was tried; empty: none is known."""

    kernel: str
    rule: str
    severity: str
    says: dict[str, Any]
    cure: str = ""


B = "mbarrier at 0x600"
POINTS = {
    "more bytes expected than come": Point("too many bytes expected", "hang", "error",
        {"barrier": B, "phase": 0, "cause": "transaction bytes", "bytes": "256 of 272", "missing": 16}, "with `256`"),
    "fewer bytes expected than come": Point("too few bytes expected", "more bytes than expected", "error",
        {"barrier": B, "phase": 0, "expected": 240, "bytes": 256}, "with `256`"),
    "expect_tx is missing": Point("no bytes expected", "more bytes than expected", "error",
        {"barrier": B, "phase": 1, "bytes": 256}),
    "a copy is missing": Point("a load is missing", "hang", "error",
        {"barrier": B, "phase": 0, "bytes": "256 of 512", "missing": 256}, "with `256`"),
    "a phase completes early": Point("bytes of one of two loads", "phase completed early", "error",
        {"barrier": B, "phase": 0, "expected": 256, "bytes": 256}, "with `512`"),
    "an arrival too few": Point("a count too large", "hang", "error",
        {"barrier": B, "phase": 0, "cause": "arrival count", "missing": "1 of 2 arrivals"}, "with `1`"),
    "an arrival too many": Point("too many arrivals", "too many arrivals", "error", {"phase": 0}),
    "a parity of the other phase": Point("a flipped parity, the bytes there", "hang", "error",
        {"barrier": B, "phase": 1, "cause": "parity"}),
    "a parity that passes at once": Point("a flipped parity on new bytes", "parity", "error",
        {"barrier": B, "phase": 0, "parity": 1}),
    "who arrives has exited": Point("a producer that stops early", "hang", "error",
        {"barrier": B, "phase": 3, "cause": "exited", "missing threads": "CTA (0, 0, 0), thread 0 exited"}),
    "a barrier is not initialised": Point("not initialised", "mbarrier not initialised", "error", {"barrier": "0x600"}),
    "a barrier is initialised twice": Point("initialised twice", "mbarrier initialised twice", "warning",
        {"barrier": B}),
    "a barrier is used after inval": Point("used after inval", "mbarrier used after inval", "error",
        {"barrier": "0x600"}),
    "a barrier is invalidated while in use": Point("an mbarrier that others still wait at", "invalidated while in use",
        "error", {"barrier": "shared address 0x2400"}, "bar.sync 0;"),
    "a barrier is overlapped by data": Point("data over an mbarrier", "barrier overlapped by data", "error",
        {"barrier": "shared address 0x2400"}),
    "an initialisation that others do not know": Point("an initialisation that others do not know",
        "initialisation not known", "error", {"barrier": "shared address 0x2400"}, "bar.sync 0;"),
    "an initialisation without a fence": Point("an initialisation without a fence", "initialisation not fenced",
        "warning", {"barrier": "shared address 0x2400"}, "fence.mbarrier_init"),
    "a race in shared memory": Point("a read without a barrier", "race in shared memory", "error",
        {"address": "shared address 0x4fc"}, "bar.sync 0;"),
    "a race of a copy and readers": Point("a stage that is filled while others read it", "race in shared memory",
        "error", {"threads": "CTA (0, 0, 0), thread 0"}, "bar.sync 0;"),
    "a race of lanes": Point("a lane that reads what another lane wrote", "race between lanes", "error",
        {"threads": "CTA (0, 0, 0), thread 0", "other_threads": "CTA (0, 0, 0), thread 1"}, "bar.warp.sync"),
    "lanes that write one place": Point("lanes that write different values to one place", "lanes write one place",
        "warning", {"address": "shared address 0x400"}),
    "a race in global memory": Point("CTAs write one place", "race in global memory", "error",
        {"address": "argument 0 + 0", "other_threads": "CTA (1, 0, 0), warp 0 (threads 0 to 31)"}),
    "a race in distributed shared memory": Point("a peer's memory without a barrier", "race in shared memory", "error",
        {"other_threads": "CTA (1, 0, 0), warp 0 (threads 0 to 31)"}, "barrier.cluster"),
    "a scope that is too narrow": Point("atomics of a narrow scope", "scope too narrow", "error",
        {"address": "argument 0 + 0"}),
    "a flag that orders nothing": Point("a flag without an order", "race in global memory", "error",
        {"address": "argument 0 + 0"}),
    "a bulk load is read before it arrives": Point("a bulk load that nobody waits for", "read before it arrives",
        "error", {"address": "shared address 0x400"}),
    "one thread waits for a bulk load that others read": Point("a bulk load that one thread waits for",
        "read before it arrives", "error", {}, "insert `bar.sync 0;`"),
    "cp.async is read before it arrives": Point("a cp.async that nobody waits for", "read before it arrives", "error",
        {"address": "shared address 0x400"}, "cp.async.wait_all"),
    "a bulk store's bytes are overwritten": Point("an overwrite below a bulk store", "overwritten while in use",
        "error", {"address": "shared address 0x400"}, "cp.async.bulk.wait_group.read 0;"),
    "fence.proxy.async is missing": Point("a bulk store without a proxy fence", "missing proxy fence", "error",
        {"address": "shared address 0x400"}, "fence.proxy.async;"),
    "fence.proxy.async is missing before a product": Point("a product without a proxy fence", "missing proxy fence",
        "warning", {}, "fence.proxy.async;"),
    "wgmma.fence is missing": Point("a product without a fence", "registers not fenced", "error", {},
        "wgmma.fence.sync.aligned;"),
    "a fragment is written behind wgmma.fence": Point("a fragment of A that is written behind the fence",
        "registers not fenced", "error", {}, "wgmma.fence.sync.aligned;"),
    "sums are touched before wait_group": Point("sums that are read too early", "registers in use", "error",
        {"registers": 2}, "wgmma.wait_group.sync.aligned 0;"),
    "copies of sums are touched before wait_group": Point("copies of sums that are read too early", "registers in use",
        "error", {"registers": 1}, "wgmma.wait_group.sync.aligned 0;"),
    "a fragment is touched before wait_group": Point("a fragment of A that is written too early", "registers in use",
        "error", {"registers": 1}, "wgmma.wait_group.sync.aligned 0;"),
    "a product's operand is overwritten": Point("operands that are overwritten too early", "overwritten while in use",
        "error", {}, "wgmma.wait_group.sync.aligned 0;"),
    "a read of memory never written": Point("a read of nothing", "never written", "warning",
        {"address": "shared address 0x400"}),
    "an .aligned instruction diverges": Point("lanes that leave a collective out", "hang", "error",
        {"cause": "divergent aligned instruction"}),
    "bar.sync diverges": Point("a barrier that half of a warp leaves out", "divergent aligned instruction", "error",
        {"barrier": 1}),
    "counts of bar.sync do not meet": Point("counts of a barrier that can't meet", "hang", "error",
        {"barrier": 1, "cause": "barrier count", "arrived": 64, "expected": 96}, "with `64`"),
    "a thread exits before bar.sync": Point("a thread that ends before a barrier of all", "exited before a barrier",
        "warning", {"barrier": 0, "exited": "CTA (0, 0, 0), thread 40"}),
    "a lane exits before a shuffle": Point("a lane that ends before a shuffle", "exited lanes", "warning",
        {"exited": "CTA (0, 0, 0), thread 3"}),
    "setmaxnreg below 24": Point("registers below 24", "register count", "error", {"registers": 16}, "with `24`"),
    "setmaxnreg of no multiple of 8": Point("registers no multiple of 8", "register count", "error",
        {"registers": 44}, "with `40`"),
    "setmaxnreg in the wrong direction": Point("registers in the wrong direction", "register direction", "error",
        {"registers": 40}, "with `.dec.`"),
    "setmaxnreg of half a warpgroup": Point("registers of half a warpgroup", "hang", "error",
        {"cause": "divergent aligned instruction"}),
    "setmaxnreg beyond the pool": Point("registers beyond the pool", "register pool", "error",
        {"registers": 240, "missing": 2048}, "with `"),
    "a CTA exits while a peer reads its memory": Point("a peer that exits", "exit before a peer is done", "error",
        {"exits": "CTA (0, 0, 0)"}, "barrier.cluster"),
    "a CTA exits while a peer multicasts to it": Point("a multicast to a peer that exits", "load under way at exit",
        "error", {"threads": "CTA (0, 0, 0), thread 0"}),
    "a CTA exits while a peer arrives at its barrier": Point("an arrival at a peer that exits",
        "exit before a peer is done", "error", {"exits": "CTA (1, 0, 0)"}, "barrier.cluster"),
    "a bulk store reads at the exit": Point("a store under way at the exit", "store under way at exit", "error", {},
        "cp.async.bulk.wait_group.read 0;"),
    "a load writes at the exit": Point("a load under way at the exit", "load under way at exit", "warning", {}),
}  # fmt: skip
"""Fault -> its kernel and its finding."""


def found_in(kernel: str, *, mended: bool) -> tuple[str, Any]:
    """The text of a kernel with `.loc` lines, and its run."""
    if kernel in KERNELS:
        one = KERNELS[kernel]
        return located(one.text(mended=mended)), one.run(mended=mended, edit=located)
    case = CASES[kernel]
    body = (case.sound if mended else case.sound.replace(case.old, case.new)) + STUCK
    text = located(program(body, case.threads, case.directives))
    return text, run(text, **case.options)


def check(one: Diagnostic, source_text: Callable[[int], str]) -> None:
    """The fields that every finding has."""
    assert one.source.startswith("PTX ISA 9.0, ")
    assert one.facts["threads"].startswith("CTA (")
    assert source_text(one.facts["line"]).strip() == f".loc 1 {one.facts['source_line']} 0"
    assert f"({SOURCE}:{one.facts['source_line']})" in one.message


@pytest.mark.parametrize("name", list(POINTS))
def test_a_finding_says_what_where_and_who(name: str) -> None:
    point = POINTS[name]
    text, found = found_in(point.kernel, mended=False)
    mine = [one for one in found.diagnostics if one.rule == point.rule]
    assert mine, found.explain()
    lines = text.split("\n")
    for one in mine:
        check(one, lambda line: lines[line - 2])
    assert mine[0].severity == point.severity
    assert point.says.items() <= mine[0].facts.items(), mine[0].facts
    assert point.cure in " ".join(mine[0].fixes)
    assert bool(mine[0].fixes) == bool(point.cure)


@pytest.mark.parametrize("name", list(POINTS))
def test_its_twin_has_no_finding_of_the_rule(name: str) -> None:
    point = POINTS[name]
    _, found = found_in(point.kernel, mended=True)
    assert found.ok, found.explain()
    assert not [one for one in found.diagnostics if one.rule == point.rule], found.explain()


DESCRIPTORS = {
    "a descriptor of another swizzle": ({"a_high": test_descriptors.SW64}, "descriptor swizzle",
        {"swizzle": 64, "written with": 128}),
    "a descriptor without a swizzle": ({"b_high": test_descriptors.PLAIN}, "descriptor swizzle",
        {"swizzle": 16, "written with": 128}),
    "a descriptor that starts in another row": ({"a_more": 8}, "descriptor address", {"swizzle": 128}),
    "a descriptor that starts in another tile": ({"a_more": 64}, "descriptor address", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", list(DESCRIPTORS))
def test_a_finding_of_a_descriptor(name: str) -> None:
    given, rule, says = DESCRIPTORS[name]
    found, right = test_descriptors.run(True, **given, edit=located)
    assert not right
    mine = [one for one in found.diagnostics if one.rule == rule]
    assert mine, found.explain()
    for one in mine:
        assert one.source.startswith("PTX ISA 9.0, ")
        assert one.facts["threads"] == "CTA (0, 0, 0), threads 0 to 127"
        assert one.severity == "error"
    assert says.items() <= mine[0].facts.items(), mine[0].facts
    sound, right = test_descriptors.run(True, edit=located)
    assert right
    assert not [one for one in sound.diagnostics if one.rule.startswith(("descriptor", "tile"))]


STORE = """\
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) .reqntid 1 {
.shared .align 128 .b8 buf[16];
.reg .b64 %rd1; .reg .b32 %r1;
ld.param.u64 %rd1, [out];
st.shared.b32 [buf], 1;
fence.proxy.async;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [buf], 16;
{after}
ret;
}
"""


@pytest.mark.parametrize(
    ("after", "change"),
    [
        ("", "insert `cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;` after line 10"),
        ("cp.async.bulk.commit_group;", "insert `cp.async.bulk.wait_group.read 0;` after line 11"),
        ("cp.async.bulk.wait_group 0;", "insert `cp.async.bulk.commit_group;` after line 10"),
        (
            "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 1;",
            "insert `cp.async.bulk.wait_group.read 0;` after line 11",
        ),
    ],
)
def test_a_change_repeats_no_instruction_that_is_there(after: str, change: str) -> None:
    found = cute.run_ptx(STORE.replace("{after}", after), block=1, args=(np.zeros(16, np.uint8),))
    (one,) = [one for one in found.diagnostics if one.rule == "store under way at exit"]
    assert len(one.fixes) == 1 and one.fixes[0].startswith(change), one.fixes
