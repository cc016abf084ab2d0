"""Faults of memory that a run may survive: each is found in a kernel that has it, and not in its mended twin."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py.machine.judgement.tried import CURES
from cute_py.machine.rules.memory import RULES
from tests.each import each_of
from tests.machine.faulty_kernels import KERNELS, RELEASE_STAGE, STAGE, Faulty
from tests.machine.test_triton import ROWS, WORKLOADS, launch, launch_workload
from tests.shares import one_in

NAMES = list(KERNELS)


@each_of("name", NAMES)
def test_a_fault_is_found(name: str) -> None:
    kernel = KERNELS[name]
    run = kernel.run(mended=False)
    found = [one for one in run.diagnostics if one.rule == kernel.rule]
    assert found, run.explain()
    assert {one.severity for one in found} == {kernel.severity}
    assert run.ok == (kernel.severity != "error")
    assert all(one.source.startswith("PTX ISA") and one.facts["line"] for one in found)
    assert all(one.rule == kernel.rule or one.severity == "warning" for one in run.diagnostics), run.explain()


@each_of("schedule", ["both", 1, 2])
@each_of("name", NAMES)
def test_its_twin_is_clean(name: str, schedule: str | int) -> None:
    run = KERNELS[name].run(mended=True, schedule=schedule)
    assert not run.diagnostics, run.explain()


@each_of("schedule", ["lazy", 1])
@each_of("name", NAMES, every=6)
def test_a_fault_is_found_under_other_schedules(name: str, schedule: str | int) -> None:
    kernel = KERNELS[name]
    run = kernel.run(mended=False, schedule=schedule)
    assert kernel.rule in [one.rule for one in run.diagnostics], run.explain()


@each_of("name", [name for name in NAMES if KERNELS[name].cure])
def test_a_change_that_cures_it_is_offered(name: str) -> None:
    kernel = KERNELS[name]
    found = [one for one in kernel.run(mended=False).diagnostics if one.rule == kernel.rule]
    assert any(kernel.cure in str(fix) for one in found for fix in one.fixes), found[0].facts


def test_a_report_quotes_the_other_instruction_and_shows_no_name_of_a_field() -> None:
    text = KERNELS["a read without a barrier"].run(mended=False).explain()
    (quoted,) = [line for line in text.splitlines() if line.endswith("<- the other instruction")]
    instruction = quoted.partition(" | ")[2].partition("   <-")[0]
    assert instruction.startswith("st.shared")
    assert text.count(instruction) == 1
    for name in NAMES:
        report = KERNELS[name].run(mended=False).explain()
        assert not re.search(r"<- \w+_\w+|^ +\w+_\w+:", report, re.MULTILINE), report


def test_without_judgement_a_run_only_ends() -> None:
    for kernel in KERNELS.values():
        assert not kernel.run(mended=False, judge=False).diagnostics


def test_each_rule_has_a_kernel_and_each_cure_a_rule() -> None:
    assert {kernel.rule for kernel in KERNELS.values()} == {name.partition(",")[0] for name in RULES}
    assert set(CURES) <= set(RULES)


def test_a_copy_to_a_peer_whose_source_exits() -> None:
    """The reason is not that of a bulk store, whose group the thread could wait for."""
    (found,) = KERNELS["a copy to a peer under way at the exit"].run(mended=False).diagnostics
    assert found.facts["cause"] == "copy to a peer"
    text = KERNELS["a copy to a peer under way at the exit"].run(mended=False).explain()
    assert "try: Execute barrier.cluster in both CTAs before the exit" in text
    assert "Execute cp.async.bulk.wait_group" not in text


def launched(name: str) -> tuple[dict[str, Any], list[Any]]:
    """A recorded kernel of Triton, and its arguments."""
    if name in ROWS:
        return ROWS[name], launch(ROWS[name])[0]
    return WORKLOADS[name], launch_workload(WORKLOADS[name])[0]


SEEDS = range(1, 11)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ROWS, *WORKLOADS])
def test_a_kernel_of_a_compiler_has_no_error_under_any_schedule(name: str) -> None:
    for schedule in ("eager", "lazy", *SEEDS):
        row, args = launched(name)
        run = cute.run_ptx(row["ptx"], grid=row["grid"], args=args, dynamic_shared=row["shared"], schedule=schedule)
        assert run.ok, run.explain()


MUTANTS = (
    ("cumsum", "bar.sync", 0, "race in shared memory"),
    ("tma_copy", "cp.async.bulk.wait_group.read", 0, "store under way at exit"),
    ("matmul_small", "cp.async.wait_group", 0, "read before it arrives"),
    ("matmul_descriptors", "fence.proxy.async", 0, "missing proxy fence"),
    ("matmul_descriptors", "wgmma.wait_group.sync.aligned 0", 0, "registers in use"),
    ("matmul_descriptors", "@!complete bra.uni waitLoop", 0, "read before it arrives"),
)
"""(kernel, a line that is taken out, which of them, what is found)."""


@pytest.mark.parametrize(("name", "line", "number", "rule"), one_in(3, MUTANTS))
def test_a_line_that_is_missing_in_a_kernel_of_a_compiler(name: str, line: str, number: int, rule: str) -> None:
    row, args = launched(name)
    lines = row["ptx"].split("\n")
    places = [place for place, text in enumerate(lines) if text.strip().startswith(line)]
    lines[places[number]] = ""
    text = "\n".join(lines)
    found = cute.run_ptx(text, grid=row["grid"], args=args, dynamic_shared=row["shared"], schedule="eager")
    assert rule in [one.rule for one in found.diagnostics], found.explain()


@pytest.mark.parametrize("fence", ["", "membar.cta;", "fence.acq_rel.cta;"])
def test_order_by_a_volatile_flag_is_assumed_and_said(fence: str) -> None:
    """Only fences make a volatile flag order other accesses; without any, the run says that it assumed the order."""
    text = f"""
.version 8.7
.target sm_90a
.address_size 64
.visible .entry flag(.param .u64 y) .reqntid 64
{{
  .reg .pred %p<4>; .reg .b32 %r<6>; .reg .b64 %rd<2>;
  .shared .align 4 .b8 f[4]; .shared .align 4 .b8 d[4];
  ld.param.u64 %rd1, [y]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
  setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 32;
  @%p1 st.volatile.shared.u32 [f], %r2;
  bar.sync 0;
  @!%p1 bra C;
  st.shared.u32 [d], 9;
  {fence}
  st.volatile.shared.u32 [f], 1;
  bra E;
C:
  @!%p2 bra E;
L:
  ld.volatile.shared.u32 %r3, [f];
  setp.eq.u32 %p3, %r3, 0;
  @%p3 bra L;
  {fence}
  ld.shared.u32 %r4, [d];
  st.global.u32 [%rd1], %r4;
E:
  ret;
}}
"""
    found = cute.run_ptx(text, args=[np.zeros(1, np.uint32)])
    assert found.ok, found.explain()
    assumed = [one for one in found.scope.not_judged if "the kernel has no fence" in one]
    assert len(assumed) == (0 if fence else 1)
    assert ("not judged: the order that the relaxed or volatile read at line 21" in found.explain()) == (not fence)


@each_of("schedule", ["eager", "lazy", 1])
def test_an_arrival_of_copies_is_a_use_at_its_request(schedule: str | int) -> None:
    """Threads that copied count down before another thread, which waited for the copies, ends the mbarrier."""
    text = """.version 8.7
.target sm_90a
.address_size 64
.entry k(.param .u64 x) .reqntid 64 {
  .reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %rd<3>; .shared .align 16 .b8 s[144];
  mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, 0;
  @%p1 mbarrier.init.shared.b64 [s], 32;
  @%p1 st.shared.u32 [s+8], %r3;
  bar.sync 0;
  setp.lt.u32 %p2, %r1, 32;
  @%p2 bra WAIT;
  ld.param.u64 %rd1, [x]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
  shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r2, %r2, %r3;
  cp.async.ca.shared.global [%r2+-112], [%rd1], 4;
  cp.async.mbarrier.arrive.noinc.shared.b64 [s];
  fence.sc.cta;
  atom.shared.add.acquire.cta.u32 %r4, [s+8], 1;
  bra END;
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [s], 0;
  @!%p2 bra WAIT;
  @!%p1 bra END;
AGAIN: ld.acquire.cta.shared.u32 %r4, [s+8];
  setp.ne.u32 %p2, %r4, 32;
  @%p2 bra AGAIN;
  mbarrier.inval.shared.b64 [s];
END: ret;
}
"""
    run = cute.run_ptx(text, args=[np.arange(64, dtype=np.uint32)], schedule=schedule)
    assert run.ok, run.explain()


SCHEDULES = ["eager", "lazy", 1, 2, 3]


@each_of("schedule", SCHEDULES)
def test_an_early_release_has_one_cause_under_every_schedule(schedule: str | int) -> None:
    """The read comes before or after the bytes of the next copy."""
    (found,) = KERNELS["a stage that is released before it is read"].run(mended=False, schedule=schedule).diagnostics
    assert found.rule == "released before the read"
    assert "mbarrier.arrive" in found.fixes[0] and "; insert `@%p4 mbarrier.arrive" in found.fixes[0]


def released(times: int, count: int, rounds: int) -> str:
    """A ring of one stage, whose two reading warps release it several times."""
    text = STAGE.format("", "\n  ".join([f"@%p4 {RELEASE_STAGE}"] * times))
    text = text.replace("[%r3+8], 1;", f"[%r3+8], {count};").replace("%r20, 4", f"%r20, {rounds}")
    return text.replace("setp.eq.u32 %p4, %r1, 32;", "and.b32 %r15, %r1, 31;\n  setp.eq.u32 %p4, %r15, 0;")


@each_of("schedule", SCHEDULES)
def test_a_double_release_has_one_cause_under_every_schedule(schedule: str | int) -> None:
    """Warps that arrive in one step arrive one after another, if a phase ends in this step."""
    for times, count, sound in ((1, 2, True), (2, 2, False), (2, 4, True)):
        for rounds in (1, 5):
            kernel = Faulty("", "", released(times, count, rounds), threads=96)
            found = kernel.run(mended=True, schedule=schedule).diagnostics
            assert [one.rule for one in found[:1]] == ([] if sound else ["arrival not ordered"]), (times, rounds)


FLAG = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data) .reqntid 32
{
  .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [data];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra E;
  setp.ne.u32 %p2, %r1, 0;
  @%p2 bra R;
  st.global.u32 [%rd1], 7;
  FENCE
  red.relaxed.gpu.global.add.u32 [%rd1+128], 1;
  bra E;
R: ld.relaxed.gpu.global.u32 %r3, [%rd1+128];
  setp.eq.u32 %p3, %r3, 0;
  @%p3 bra R;
  fence.acq_rel.gpu;
  ld.global.u32 %r4, [%rd1];
  st.global.u32 [%rd1+256], %r4;
E: ret;
}
"""


def test_a_flag_without_a_fence_of_its_writer_is_not_judged() -> None:
    left = {}
    for fence in ("", "fence.acq_rel.gpu;"):
        run = cute.run_ptx(FLAG.replace("FENCE", fence), grid=2, args=[np.zeros(128, np.uint32)])
        assert run.ok, run.explain()
        left[fence] = [line for line in run.scope.not_judged if "relaxed or volatile write at line 16" in line]
    assert [len(lines) for lines in left.values()] == [1, 0]
