"""Barriers that only some threads reach, and registers of tcgen05.ld that are used too early."""

from __future__ import annotations

import pytest

from cute_py.cli.main import main
from cute_py.ptx import check_program
from tests.each import each_of
from tests.ptx.test_check_program import REGISTERS

HEAD = ".version 8.7\n.target {}\n.address_size 64\n"
BARRIER = "bar.sync 0;"


def kernel(
    *body: str, directives: str = "", arch: str = "sm_90a", head: str = ".visible .entry k(.param .u32 n)"
) -> str:
    """A kernel with the thread index in %r1, its lane in %r2, the parameter in %r3 and the block index in %r4."""
    start = (
        "mov.u32 %r1, %tid.x;\nand.b32 %r2, %r1, 31;\n"
        + ("ld.param.u32 %r3, [n];\n" if ".param" in head else "")
        + "mov.u32 %r4, %ctaid.x;\nmov.u32 %r5, %ntid.x;\nshr.u32 %r6, %r1, 5;\n"
    )
    return f"{HEAD.format(arch)}{head}{directives}\n{{\n{REGISTERS}{start}" + "\n".join([*body, "ret;", "}", ""])


def found(text: str) -> list[str]:
    return [f"{one.severity} {one.rule}" for one in check_program(text).found]


def branch(condition: str, *body: str) -> tuple[str, ...]:
    """Instructions that threads skip if a condition holds."""
    return (f"setp.{condition};", "@%p1 bra SKIP;", *body, "SKIP:")


WARNING = ["warning barrier_threads"]


@each_of(
    ("body", "directives"),
    [
        (branch("gt.u32 %p1, %r1, 15", BARRIER), ""),
        (branch("ne.s32 %p1, %r2, 3", BARRIER), ""),
        (branch("ne.s32 %p1, %r6, 1", BARRIER), ""),
        (branch("ne.s32 %p1, %r6, 1", BARRIER), ".reqntid 128"),
        (branch("ne.s32 %p1, %r6, 1", BARRIER, "SKIP2:", BARRIER), ".maxntid 128"),
        (branch("gt.u32 %p1, %r1, 15", "bar.sync 1, 64;"), ""),
        (branch("gt.u32 %p1, %r1, 63", BARRIER), ".reqntid 128, 1, 1"),
        (("setp.lt.u32 %p1, %r1, 16;", f"@%p1 {BARRIER}"), ""),
        (("setp.lt.u32 %p1, %r1, 16;", f"@!%p1 {BARRIER}"), ""),
        (("setp.lt.u32 %p1, %r1, 16;", "@%p1 bar.red.popc.u32 %r9, 0, %p2;"), ""),
        (("setp.eq.u32 %p1, %r1, 0;", "@%p1 bra A;", BARRIER, "bra B;", "A:", BARRIER, "B:"), ""),
        (("L:", *branch("gt.u32 %p1, %r1, 95", BARRIER), "bra L;"), ".reqntid 128"),
    ],
)
def test_a_barrier_that_some_threads_do_not_reach(body: tuple[str, ...], directives: str) -> None:
    report = check_program(kernel(*body, directives=directives))
    if "L:" in body:  # the loop never ends, so no thread exits
        assert not report.found
        return
    assert [f"{one.severity} {one.rule}" for one in report.found] == WARNING, report
    assert "depends on the thread index" in report.found[0].message


@each_of(
    ("body", "directives"),
    [
        ((BARRIER,), ""),
        (branch("ge.u32 %p1, %r4, %r3", BARRIER), ""),  # whole blocks return
        (branch("gt.u32 %p1, %r1, 127", BARRIER), ".reqntid 128"),  # no thread skips it
        ((*branch("gt.u32 %p1, %r1, 15", "membar.cta;"), BARRIER), ""),
        (("setp.gt.u32 %p1, %r1, 512;", "@%p1 bra T;", BARRIER, "bra E;", "T: trap;", "E:"), ""),
        (("setp.ne.u32 %p1, %r3, 0;", f"@%p1 {BARRIER}"), ""),
    ],
)
def test_a_barrier_that_all_threads_reach(body: tuple[str, ...], directives: str) -> None:
    report = check_program(kernel(*body, directives=directives))
    assert not report.found
    assert report.scope.judged[-1] == "1 thread barrier (threads)"
    assert [line.partition(":")[0] for line in report.scope.not_judged] == ["order of threads"]
    assert "nothing to judge" not in str(report)
    assert "no rule is broken" in str(check_program(kernel(*body, directives=directives), launched=True))


RUN_TIME = "a condition that is known only at run time"
OTHERS = "other threads may reach another instruction"
COUNT = "the kernel does not declare the number of its threads"


@each_of(
    ("body", "reason", "count"),
    [
        (branch("lt.u32 %p1, %r1, %r3", BARRIER), RUN_TIME, 1),
        (branch("lt.u32 %p1, %r1, %r5", BARRIER), RUN_TIME, 1),
        (("ld.global.u32 %r9, [%rd1];", *branch("eq.u32 %p1, %r9, 0", BARRIER)), RUN_TIME, 1),
        (("mov.u32 %r9, %r1;", "L:", BARRIER, "add.u32 %r9, %r9, %r5;", "setp.lt.u32 %p1, %r9, 1024;", "@%p1 bra L;"),
         RUN_TIME, 1),
        (branch("ne.s32 %p1, %r6, 0", "bar.sync 1, 32;", "bar.sync 2, 32;"), COUNT, 2),
        (("setp.eq.u32 %p1, %r6, 0;", "@%p1 bra A;", BARRIER, "bra B;", "A:", BARRIER, "B:"), OTHERS, 2),
        (("setp.eq.u32 %p1, %r6, 0;", f"@%p1 {BARRIER}", f"@!%p1 {BARRIER}"), OTHERS, 2),
    ],
)  # fmt: skip
def test_barriers_that_are_not_judged(body: tuple[str, ...], reason: str, count: int) -> None:
    report = check_program(kernel(*body))
    assert not report.found, report
    (left,) = [line for line in report.scope.not_judged if "thread barrier" in line]
    assert left.startswith(f"{count} thread barrier") and reason in left


def halves(first: str, second: str) -> tuple[str, ...]:
    """Instructions for threads 0 to 127, and instructions for the other threads."""
    return ("setp.gt.u32 %p1, %r1, 127;", "@%p1 bra B;", first, "bra J;", "B:", second, "J:")


def loop(*body: str) -> tuple[str, ...]:
    """A loop whose number of rounds is known only at run time."""
    return ("mov.u32 %r9, 0;", "L:", *body, "add.u32 %r9, %r9, 1;", "setp.lt.u32 %p2, %r9, %r3;", "@%p2 bra L;")


GROUP = (
    "shr.u32 %r10, %r1, 7;", "shfl.sync.idx.b32 %r11|%p3, %r10, 0, 31, -1;", "add.s32 %r12, %r11, 1;",
    "bar.sync %r12, 128;",
)  # fmt: skip
BLOCK = ".reqntid 256"
FEW = "can arrive with this count"


@each_of(
    ("body", "directives", "severity", "says"),
    [
        (branch("gt.u32 %p1, %r1, 159", "bar.sync 1, 128;"), BLOCK, "error", "the last 32 of 160 threads wait forever"),
        (branch("gt.u32 %p1, %r1, 95", "bar.sync 1, 128;"), BLOCK, "error", f"only threads 0 to 95 {FEW}"),
        (branch("gt.u32 %p1, %r1, 95", "bar.sync 1, 128;"), ".maxntid 256", "warning", f"only threads 0 to 95 {FEW}"),
        (loop(*branch("gt.u32 %p1, %r1, 95", "bar.sync 1, 128;")), BLOCK, "warning", f"only threads 0 to 95 {FEW}"),
        (("bar.sync 1, 512;",), BLOCK, "error", "the CTA has 256 threads"),
        (("bar.sync 1, 512;",), ".maxntid 256", "error", "the CTA has at most 256 threads"),
        (("mov.u32 %r9, 1;", "mov.u32 %r10, 48;", "bar.sync %r9, %r10;"), BLOCK, "error", "must be a multiple of 32"),
        (("mov.u32 %r9, 16;", "bar.sync %r9, 128;"), BLOCK, "error", "barrier 16; must be 0 to 15"),
        (halves("bar.sync 1, 256;", "bar.arrive 1, 128;"), BLOCK, "error", "gives the barrier a count of 128"),
        (loop(*halves("bar.sync 1, 256;", "bar.arrive 1, 128;")), BLOCK, "warning", f"only threads 0 to 127 {FEW}"),
        (halves("bar.sync 1, 320;", "bar.arrive 1, 320;"), BLOCK, "error", "the CTA has 256 threads"),
        (
            halves("bar.sync 1, 128;", "bar.arrive 2, 128;"),
            BLOCK,
            "warning",
            "no instruction of the kernel waits at it",
        ),
        (GROUP, ".reqntid 320", "error", f"at barrier 3, but only threads 256 to 319 {FEW}"),
        (("setp.eq.u32 %p4, %r1, 3;", "bar.red.popc.u32 %r9, 1, 512, %p4;"), BLOCK, "error", "the CTA has 256 threads"),
    ],
)
def test_a_count_that_no_round_can_have(body: tuple[str, ...], directives: str, severity: str, says: str) -> None:
    (one,) = check_program(kernel(*body, directives=directives)).found
    assert (one.severity, one.rule) == (severity, "barrier_count") and says in one.message


@each_of(
    ("body", "count"),
    [
        (branch("gt.u32 %p1, %r1, 127", "bar.sync 1, 128;"), 1),
        (halves("bar.sync 1, 256;", "bar.arrive 1, 256;"), 2),
        (("mov.u32 %r9, 2;", "mov.u32 %r10, 256;", *["bar.sync %r9, %r10;"] * 3), 3),  # bar.sync writes no register
        (GROUP, 2),  # an instruction of two barriers
        (("bar.sync 1, %r5;",), 1),
        (("bar.sync 0;", "bar.sync 0, 256;"), 1),
    ],
)
def test_a_count_that_fits(body: tuple[str, ...], count: int) -> None:
    report = check_program(kernel(*body, directives=BLOCK))
    assert not report.found
    assert any(line.startswith(f"{count} thread barrier") and "(count)" in line for line in report.scope.judged)


@each_of(
    ("body", "directives", "reason"),
    [
        (("bar.sync 1, %r3;",), BLOCK, "its number, or its count, is known only at run time"),
        (("bar.sync %r3, 256;", "bar.sync 2, 512;"), BLOCK, "may be of the same barrier"),
        (halves("bar.sync 1, 128;", "bar.sync 1, 128;"), BLOCK, "so other threads may meet"),
        (("bar.sync 0;", *branch("gt.u32 %p1, %r1, 127", "bar.sync 0, 128;")), BLOCK, "counts of 128, 256 threads"),
        (loop(*halves("bar.sync 1, 256;", "bar.arrive 1, 256;")), BLOCK, "a condition that is known only at run time"),
        (branch("lt.u32 %p1, %r1, %r3", "bar.sync 1, 128;"), BLOCK, "a condition that is known only at run time"),
        (("mov.u32 %r9, %tid.y;", *branch("gt.u32 %p1, %r1, 31", "bar.sync 1, 256;")), ".maxntid 256", COUNT),
        (branch("ge.u32 %p1, %r1, 32", "bar.sync 1, 128;"), ".maxntid 32, 4, 1", COUNT),
        (("bar.sync 1, 0;",), BLOCK, "does not define a count of 0"),
    ],
)
def test_counts_that_are_not_judged(body: tuple[str, ...], directives: str, reason: str) -> None:
    report = check_program(kernel(*body, directives=directives))
    assert not report.found
    assert any("thread barrier" in line and reason in line for line in report.scope.not_judged)


ARRIVES_AND_WAITS = ("bar.arrive 5, 160;", *branch("lt.u32 %p1, %r1, 96", "bar.sync 5, 160;"))
"""All threads of 128 arrive, and the last warp then waits for them, as in the epilogue of FlashAttention-3."""


@each_of("directives", [".reqntid 128", ".maxntid 128"])
def test_a_warp_may_arrive_and_then_wait(directives: str) -> None:
    assert not found(kernel(*ARRIVES_AND_WAITS, directives=directives))
    more = tuple(line.replace("160", "192") for line in ARRIVES_AND_WAITS)
    (one,) = check_program(kernel(*more, directives=directives)).found
    assert one.rule == "barrier_count"


@each_of(("first", "rules"), [("2", []), ("18", ["error barrier_count"])])
def test_a_number_wraps_like_its_register(first: str, rules: list[str]) -> None:
    """The number of a warp is 1 + 1 or 2 - 1, where -1 is a constant of selp; or outside of 0 to 15."""
    number = f"setp.eq.u32 %p1, %r6, 0;\nadd.u32 %r7, %r6, 1;\nselp.b32 %r8, {int(first) - 1}, -1, %p1;"
    assert found(kernel(number, "add.s32 %r9, %r8, %r7;\nbar.sync %r9, 32;", directives=".reqntid 64")) == rules


def test_a_barrier_of_a_function() -> None:
    left = check_program(kernel(BARRIER, head=".func f()")).scope.not_judged
    assert any("the callers of the function determine which threads reach it" in line for line in left)


def test_strict_does_not_pass_a_barrier(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    path = f"{tmp_path}/kernel.ptx"
    for body in ((BARRIER,), branch("gt.u32 %p1, %r1, 15", BARRIER)):
        with open(path, "w") as out:
            out.write(kernel(*body))
        assert (main(["check", path]), main(["check", path, "--strict"])) == (0, 1)
        capsys.readouterr()


def test_copies_of_a_barrier_have_one_warning() -> None:
    steps = [f"setp.ge.u32 %p{n}, %r1, {64 >> n};\n@%p{n} bra DONE;\n{BARRIER}" for n in (1, 2, 3)]
    (one,) = check_program(kernel(*steps, "DONE:")).found
    assert one.facts["lines"] == [15, 18, 21]
    assert "only some threads" in one.message or "only threads 0 to 31" in one.message


LOAD = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r10, %r11}, [%r9];"
TENSOR_WAIT = "tcgen05.wait::ld.sync.aligned;"
USE = "add.u32 %r12, %r10, 1;"


@each_of(
    ("body", "early"),
    [
        ((LOAD, TENSOR_WAIT, USE), False),
        ((LOAD, USE, TENSOR_WAIT), True),
        ((LOAD, "mov.b32 %r13, %r11;", TENSOR_WAIT, "add.u32 %r12, %r13, 1;"), False),
        ((LOAD, "mov.b32 %r13, %r11;", "add.u32 %r12, %r13, 1;"), True),
        ((LOAD, "mov.u32 %r10, 1;", USE), False),
        ((LOAD, "@%p1 bra L;", TENSOR_WAIT, "L:", USE), False),  # the wait is on some path
        (("L:", LOAD, TENSOR_WAIT, USE, "@%p1 bra L;"), False),
        ((USE, LOAD, "st.global.b32 [%rd1], %r11;"), True),
    ],
)
def test_registers_of_a_load_from_tensor_memory(body: tuple[str, ...], early: bool) -> None:
    """A run does not judge them either."""
    for launched in (False, True):
        report = check_program(kernel(*body, arch="sm_100a"), launched=launched)
        assert not report.found
        assert any("PTX requires a tcgen05.wait::ld" in line for line in report.scope.not_judged) is early
        assert ("1 tcgen05.ld (registers)" in report.scope.judged) is not early
