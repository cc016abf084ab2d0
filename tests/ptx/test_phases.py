"""Bytes of barriers over all blocks of compiled kernels, and what a report lists as not judged."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from cute_py.cli.main import main
from cute_py.diagnostics import Scope
from cute_py.errors import ParseError
from cute_py.ptx import check_program
from cute_py.tma import TensorMapDataType, TensorMapTiled, encode
from tests.each import each_of
from tests.oracle.records import rows
from tests.ptx.test_check_program import COMMIT, EXPECT, FENCE, INIT, LOAD, STORE, TO_BARRIER, WAIT, kernel, rules

BOX = TensorMapTiled(TensorMapDataType.FLOAT16, 4096, (4096, 4096), (8192,), (64, 128))
ROWS = rows("ring_ptx")
Row = dict[str, Any]


def named(row: Row) -> str:
    return " ".join([row["kernel"], *(f"{name}={value}" for name, value in row["defines"].items())])


def ring(**defines: str) -> str:
    """The PTX of the ring with these definitions."""
    return str(next(row["ptx"] for row in ROWS if row["kernel"] == "ring" and row["defines"] == defines))


POLL = "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], {};"
SHIFTED = ("shr.u32 %r7, %r9, 2;", "and.b32 %r8, %r7, 1;", "add.s32 %r9, %r9, 1;")
"""%r8 is bit 2 of a counter."""
BYTES_OF_A_STAGE = {"ring": 16384, "apart": 16384, "producer": 32768}
NEEDS_LAUNCH = {"apart": 32768}
"""Bytes that two threads could bring, so that the text does not decide."""


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_compiled_rings(row: Row) -> None:
    """A barrier that expects other bytes than a stage brings is an error, however the loop was unrolled."""
    expected = int(row["defines"].get("BYTES", 16384))
    wrong = expected not in (BYTES_OF_A_STAGE[row["kernel"]], NEEDS_LAUNCH.get(row["kernel"]))
    found = check_program(row["ptx"], maps={0: BOX})
    wanted = {"expect_tx"} if wrong else {"alignment"} if "OFFSET" in row["defines"] else set()
    wanted |= {"parity"} if "FLIP" in row["defines"] else set()
    assert {one.rule for one in found.errors} == wanted, str(found)
    without = check_program(row["ptx"])
    assert "expect_tx" not in {one.rule for one in without.found}
    assert any("--map 0=FILE" in line for line in without.scope.not_judged)


def test_words_of_a_flipped_parity() -> None:
    (found,) = check_program(ring(FLIP="1"), maps={0: BOX}).found
    assert found.message == (
        "line 127, kernel kernel: the first wait on a barrier waits for parity 1, which is the phase before the "
        "first one, so it returns immediately; the bytes expected at lines 62, 72, 81, 90 may not have landed yet "
        "(also at lines 161, 196, 231)"
    )


@each_of(
    ("body", "found"),
    [
        ((EXPECT, LOAD, POLL.format(1)), True),
        ((EXPECT, LOAD, POLL.format(0)), False),
        ((EXPECT, LOAD, POLL.format(0), POLL.format(1)), False),
        ((POLL.format(1), EXPECT, LOAD, POLL.format(0)), False),  # a producer that waits for the phase before
        ((EXPECT, LOAD, EXPECT, LOAD, POLL.format(1)), False),  # which of the two phases is over is not known
        (("L:", POLL.format(1), EXPECT, LOAD, "@%p2 bra L;"), False),
        ((EXPECT, LOAD, "mov.u32 %r9, 4;", "L:", *SHIFTED, POLL.format("%r8"), "@%p2 bra L;"), True),
        ((EXPECT, LOAD, "mov.u32 %r9, 0;", "L:", *SHIFTED, POLL.format("%r8"), "@%p2 bra L;"), False),
        ((EXPECT, LOAD, "@%p2 mov.u32 %r9, 4;", *SHIFTED, POLL.format("%r8")), False),
        ((EXPECT, LOAD, "ld.shared.u32 %r9, [%r1];", *SHIFTED, POLL.format("%r8")), False),
        ((EXPECT, LOAD, POLL.format(1).replace("[%r2]", "[%r2+8]")), False),
    ],
)
def test_parities_of_first_waits(body: tuple[str, ...], found: bool) -> None:
    assert rules(kernel(*body)) == ["parity"] * found


def test_words_of_an_unrolled_ring() -> None:
    said = str(check_program(ring(BYTES="8192"), maps={0: BOX})).split("\n")
    assert said[1:4] == [
        "error    line 62, kernel kernel: the barrier expects 8192 bytes, but its 1 load delivers 16384; its phase "
        "may complete too early, or never (also at lines 72, 81, 90, 142, 175, 209, 243, 300)  [expect_tx]",
        "         fix: expect 16384 bytes",
        "         line 62: mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r32], 16384;",
    ]
    assert [line for line in said if "(bytes)" in line or "change" in line] == [
        "judged: 27 instructions, 5 barriers (bytes), 13 shared-memory addresses (alignment), "
        "1 thread barrier (threads)",
        "not judged: 1 change: not assembled: assemble=True was not passed; "
        "lines 62, 72, 81, 90, 142, 175, 209, 243 and 1 more",
    ]


@pytest.mark.parametrize(("accepted", "offered"), [(True, True), (False, False), (None, True)])
def test_a_change_is_offered_only_if_it_assembles(
    accepted: bool | None, offered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where ptxas takes the changed module, refuses it, and is not there."""
    monkeypatch.setattr("cute_py.ptx.module.find_ptxas", lambda: None if accepted is None else Path("ptxas"))
    asked: list[str] = []

    def assemble(source: str, arch: str) -> tuple[bool, str, bytes]:
        asked.append(source)
        return bool(accepted), "", b""

    monkeypatch.setattr("cute_py.ptx.module.assemble_module", assemble)
    report = check_program(ring(BYTES="8192", UNROLL='_Pragma("unroll 1")'), maps={0: BOX}, assemble=True)
    assert ("change" in report.found[0].facts) == offered
    assert any("not assembled: no ptxas on PATH" in line for line in report.scope.not_judged) == (accepted is None)
    assert [one.count("], 16384;") for one in asked] == [5] * (accepted is not None)


@each_of("seed", range(20))
def test_bytes_of_every_order_of_blocks(seed: int) -> None:
    """A chain of blocks, some of them loops: sound if each phase is balanced, an error if one expectation is off."""
    made = random.Random(seed)
    wrong = made.choice([0, 16, -16, 2048])
    body = [INIT]
    stages = made.randint(1, 5)
    for stage in range(stages):
        loads = made.randint(1, 3)
        off = wrong if stage == stages - 1 else 0
        body += [f"L{stage}:", EXPECT.replace("2048", str(2048 * loads + off))]
        for i in range(loads):
            body += [LOAD, *((f"M{stage}_{i}:",) if made.random() < 0.5 else ())]
        body += [f"@%p{stage} bra L{stage};"] if made.random() < 0.5 else []
    report = check_program(kernel(*body))
    assert [one.rule for one in report.errors] == (["expect_tx"] if wrong else []), str(report)
    assert "1 barrier (bytes)" in report.scope.judged


def test_branches_that_the_text_does_not_decide() -> None:
    """Expected in one block, loaded in another: no finding, and the barrier is listed with its lines."""
    apart = ("@%p1 bra L;", EXPECT, "L:", "@%p1 bra M;", LOAD, "M:")
    report = check_program(kernel(*apart))
    assert report.found == ()
    assert (
        "1 barrier: used in blocks at lines 15, 18; its bytes balance only if branches that were not "
        "decided here are taken together"
    ) in report.scope.not_judged
    # With one arrival a phase, 1024 bytes are no number of loads of 2048.
    half = [line.replace("2048", "1024") if line is EXPECT else line for line in apart]
    assert rules(kernel(*half)) == []
    assert rules(kernel(INIT, *half)) == ["expect_tx"]
    assert rules(kernel(INIT.replace(", 1;", ", 2;"), *half)) == []
    assert rules(kernel(INIT, *[line.replace("2048", "6144") if line is EXPECT else line for line in apart])) == []


def test_two_threads_may_expect_what_one_loads() -> None:
    """Each of two threads expects 1024 bytes and one loads 2048: balanced, though no path of one thread is."""
    both = (INIT.replace(", 1;", ", 2;"), EXPECT.replace("2048", "1024"), "@%p1 bra L;", LOAD, "L:")
    assert rules(kernel(*both)) == []


@each_of(
    ("body", "line"),
    [
        ((EXPECT,), "1 barrier: bytes are expected at line 14, but no copy in the function is known to complete on it"),
        (
            (LOAD,),
            "1 barrier: copies at line 14 complete on it, but no instruction in the function expects their bytes",
        ),
        (
            (EXPECT.replace("2048", "%r9"), LOAD),
            "1 barrier: the number of bytes expected at line 14 is known only at run time",
        ),
        (
            (EXPECT, LOAD, "call foo;"),
            "1 barrier: used at lines 14, 15 in a kernel that calls functions, which may expect or deliver bytes",
        ),
        (
            (EXPECT, LOAD, "mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [%r2], 16;"),
            "1 barrier: instructions at line 16 complete bytes that this check does not count",
        ),
        (
            (EXPECT, LOAD.replace("2048", "%r9")),
            "1 barrier: copies at line 15 complete on it; the number of bytes is known only at run time",
        ),
        ((INIT,), "1 barrier: arrival count: the number of arriving threads is known only at run time; line 14"),
        (
            ("mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], %r9;",),
            "1 wait: parity: the phase that a wait waits for depends on the earlier phases; line 14",
        ),
        (
            ("ld.shared.u32 %r9, [%r2];", LOAD.replace("[%r1]", "[%r9]")),
            "1 shared-memory address: alignment: declarations and constants do not show whether "
            "the address of the destination is a multiple of 16 bytes; line 15",
        ),
        (
            (STORE, "@%p1 bra L;", COMMIT, WAIT, "L:"),
            "1 bulk store: commit: on some paths from the store to the end of the kernel, no commit_group is certain "
            "to run; line 14",
        ),
        (
            ("@%p1 st.shared.b32 [smem], 1;", STORE, COMMIT, WAIT),
            "1 write: proxy fence: writes to shared memory under a predicate are not followed; line 14",
        ),
        (
            ("@%p1 bra L;", "st.shared.b32 [smem], 1;", "L:", STORE, COMMIT, WAIT),
            "1 bulk store: proxy fence: on some paths, a write may reach the store without a fence; line 17",
        ),
    ],
)
def test_what_is_left_is_listed(body: tuple[str, ...], line: str) -> None:
    report = check_program(kernel(*body))
    assert line in report.scope.not_judged, str(report)
    assert not report.scope.complete


@pytest.mark.parametrize(
    ("offset", "wrong"), [(0, False), (8, True), (16, True), (64, True), (128, False), (192, True)]
)
def test_destinations_are_aligned(offset: int, wrong: bool) -> None:
    """`smem` is declared with an alignment of 128 bytes; a tensor copy needs 128, a bulk copy 16."""
    tensor = f"cp.async.bulk.tensor.2d.shared::cluster.global.{TO_BARRIER} [%r9], [%rd3, {{%r3, %r4}}], [%r2];"
    move = f"add.s32 %r9, %r1, {offset};"
    assert rules(kernel(move, tensor)) == ["alignment"] * wrong
    assert rules(kernel(EXPECT, move, LOAD.replace("[%r1]", "[%r9]"))) == ["alignment"] * (offset % 16 > 0)
    # A stage that is computed: the thread's number times 1024 does not change it, times 8 hides it.
    stage = ("mov.u32 %r7, %tid.x;", "shl.b32 %r8, %r7, {};", "add.s32 %r6, %r1, %r8;", f"add.s32 %r9, %r6, {offset};")
    assert rules(kernel(*(one.format(10) for one in stage), tensor)) == ["alignment"] * wrong
    assert rules(kernel(*(one.format(3) for one in stage), tensor)) == []
    less = kernel(move, tensor).replace(".align 128", ".align 16")
    assert rules(less) == ["alignment"] * (offset % 16 > 0)


def test_a_barrier_is_aligned() -> None:
    assert rules(kernel(INIT.replace("[%r2]", "[%r2+4]"))) == ["alignment"]
    assert rules(kernel(INIT.replace("[%r2]", "[%r2+8]"))) == []


@pytest.mark.parametrize("count", [0, 1, (1 << 20) - 1, 1 << 20, -1])
def test_a_barrier_counts_arrivals_within_its_limits(count: int) -> None:
    wrong = not 1 <= count < 1 << 20
    moved = (f"mov.u32 %r9, {count};", INIT.replace(", 1;", ", %r9;"))
    for body in ((INIT.replace(", 1;", f", {count};"),), moved):
        found = check_program(kernel(*body)).found
        assert [one.rule for one in found] == ["arrival_count"] * wrong
        assert all(one.text.endswith("; must be 1..1048575") for one in found)
        assert all(one.source == "PTX ISA 9.0, mbarrier.init: count" for one in found)
    assert rules(kernel(INIT.replace(", 1;", ", %r8;"))) == []


def test_an_answer_without_findings_is_no_approval() -> None:
    report = check_program(kernel(INIT, EXPECT, LOAD))
    assert "no broken rule found in what was judged\njudged: " in str(report)
    assert "no rule is broken" not in str(report)
    assert report.scope != Scope()
    assert str(check_program(kernel())).split("\n")[1:] == [
        "nothing to judge: the rules apply to none of the instructions",
        "judged: 0 instructions",
    ]


@pytest.mark.parametrize(
    ("text", "plain", "strict"),
    [(kernel(STORE, COMMIT, WAIT), 0, 1), (kernel(STORE), 1, 1), (kernel(), 0, 0), ("junk", 2, 2)],
)
def test_strict(text: str, plain: int, strict: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kernel.ptx"
    path.write_text(text)
    assert main(["check", str(path)]) == plain
    assert main(["check", str(path), "--strict"]) == strict
    capsys.readouterr()


def test_json_carries_the_scope(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, passed = tmp_path / "kernel.ptx", tmp_path / "map.bin"
    path.write_text(ring(BYTES="8192"))
    passed.write_bytes(encode(BOX))
    assert main(["check", str(path), "--map", f"0={passed}", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["scope"]["complete"] is False
    assert said["scope"]["judged"][1] == "5 barriers (bytes)"
    assert [found["lines"][0] for found in said["found"]] == [62]
    assert said["found"][0].get("change", {"62": "[%r32], 16384;"})["62"].endswith("[%r32], 16384;")


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(ParseError, match="character 0 of the PTX module is half of a surrogate pair"):
        check_program("\ud800" + kernel())


def test_a_report_of_one_kernel_is_that_of_two() -> None:
    """Counts of functions add up; the line numbers go on."""
    text = ring()
    second = re.sub(r"^\.(version|target|address_size|extern).*$", "", text, flags=re.M).replace("kernel", "other")
    one, two = check_program(text, maps={0: BOX}), check_program(text + second, maps={0: BOX})
    assert one.scope.judged[1] == "5 barriers (bytes)" and two.scope.judged[1] == "10 barriers (bytes)"


def test_fences_are_judged_on_every_path() -> None:
    report = check_program(kernel("st.shared.b32 [smem], 1;", FENCE, STORE, COMMIT, WAIT))
    assert report.scope.judged[1:4] == ("1 bulk store (commit)", "1 bulk store (proxy fence)", "1 bulk store (wait)")
