"""Kernels with one fault of synchronisation, and the same kernels without it: what the judgement says of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py.machine import schedule
from cute_py.ptx import check_program
from tests.each import each_of

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
REGISTERS = ".reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %rd<20>;"
START = """
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1;
ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2; ld.param.u64 %rd4, [source];
setp.ne.u32 %p1, %r1, 0; mov.u32 %r30, buffer; shl.b32 %r31, %r1, 2; add.u32 %r31, %r30, %r31;
"""
SHARED = ".shared .align 128 .b8 buffer[512];\n.shared .align 8 .b64 bar;\n.shared .align 8 .b64 other;\n"


def program(body: str, threads: int = 64, directives: str = "") -> str:
    """A kernel of two arrays; %p1: not thread 0, %rd3: the thread's element of out, %r31: its word of the buffer."""
    return (
        f"{HEAD}{SHARED}.visible .entry k(.param .u64 out, .param .u64 source) .reqntid {threads} {directives}\n"
        f"{{\n{REGISTERS}{START}{body}\n}}\n"
    )


INIT = """
@%p1 bra READY;
mbarrier.init.shared.b64 [bar], 1;
fence.proxy.async;
READY: bar.sync 0;
"""
LOAD = """
@%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd4], 256, [bar];
"""
WAIT = """
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
@!%p2 bra WAIT;
"""
STORE = """
ld.shared.u32 %r5, [%r31];
st.global.u32 [%rd3], %r5;
ret;"""
COPY = INIT + LOAD + WAIT + STORE


def run(text: str, **options: Any) -> cute.PtxRun:
    out, source = np.zeros(1024, np.uint32), np.arange(1024, dtype=np.uint32)
    return cute.run_ptx(text, args=[out, source], **options)


@dataclass(frozen=True)
class Case:
    """A fault: what is replaced in a sound kernel, the rule that must be named, and its cause."""

    sound: str
    old: str
    new: str
    rule: str
    cause: str = ""
    says: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    threads: int = 64
    directives: str = ""


ROUNDS = """
@%p1 bra READY;
mbarrier.init.shared.b64 [bar], 1;
mbarrier.init.shared.b64 [other], 32;
fence.proxy.async;
READY: bar.sync 0;
mov.u32 %r6, 0;
setp.lt.u32 %p3, %r1, 32;
@%p3 bra PRODUCER;
CONSUMER: and.b32 %r7, %r6, 1;
FULL: mbarrier.try_wait.parity.shared.b64 %p2, [bar], %r7;
@!%p2 bra FULL;
ld.shared.u32 %r5, [%r31];
st.global.u32 [%rd3], %r5;
mbarrier.arrive.shared.b64 _, [other];
add.u32 %r6, %r6, 1;
setp.lt.u32 %p4, %r6, 4;
@%p4 bra CONSUMER;
ret;
PRODUCER: @%p1 bra DONE;
FILL: and.b32 %r7, %r6, 1;
xor.b32 %r7, %r7, 1;
EMPTY: mbarrier.try_wait.parity.shared.b64 %p2, [other], %r7;
@!%p2 bra EMPTY;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd4], 256, [bar];
add.u32 %r6, %r6, 1;
setp.lt.u32 %p4, %r6, 4;
@%p4 bra FILL;
DONE: ret;"""

SECOND = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer+256], [%rd4], 256, [bar];\n"
TWO_LOADS = COPY.replace(", 256;", ", 512;", 1).replace(WAIT, SECOND + WAIT)

NAMED = """
setp.lt.u32 %p3, %r1, 32;
st.shared.u32 [%r31], %r1;
@%p3 bra FIRST;
bar.sync 1, 64;
bra JOIN;
FIRST: bar.sync 1, 64;
JOIN: ld.shared.u32 %r5, [%r31];
st.global.u32 [%rd3], %r5;
ret;"""

CLUSTER = """
st.shared.u32 [%r31], %r1;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ld.shared.u32 %r5, [%r31];
st.global.u32 [%rd3], %r5;
ret;"""

REGISTERS_POOL = """
setp.lt.u32 %p3, %r1, 128;
@%p3 bra FIRST;
setmaxnreg.inc.sync.aligned.u32 232;
st.global.u32 [%rd3], %r1;
ret;
FIRST: setmaxnreg.dec.sync.aligned.u32 40;
st.global.u32 [%rd3], %r1;
ret;"""

WARP = """
setp.lt.u32 %p3, %r1, 64;
@%p3 bra MATRIX;
MATRIX: mov.u32 %r8, 0; movmatrix.sync.aligned.m8n8.trans.b16 %r9, %r8;
st.global.u32 [%rd3], %r9;
ret;"""

CASES = {
    "too many bytes expected": Case(COPY, "[bar], 256;", "[bar], 272;", "hang", "transaction bytes",
        ("256 of 272 bytes arrived", "no copy in flight delivers the 16 missing bytes")),
    "too few bytes expected": Case(COPY, "[bar], 256;", "[bar], 240;", "more bytes than expected", "transaction bytes",
        ("expects 240 bytes in phase 0", "its 1 load delivers 256")),
    "no bytes expected": Case(COPY, "arrive.expect_tx.shared.b64 _, [bar], 256;", "arrive.shared.b64 _, [bar];",
        "more bytes than expected", "transaction bytes", ("expects 0 bytes in phase", "its 1 load delivers 256")),
    "a load is missing": Case(TWO_LOADS, "[buffer+256], [%rd4], 256, [bar]", "[buffer+256], [%rd4], 0, [bar]", "hang",
        "transaction bytes", ("256 of 512 bytes arrived",)),
    "bytes of one of two loads": Case(TWO_LOADS, "[bar], 512;", "[bar], 256;", "phase completed early",
        "transaction bytes", ("before the 256 bytes",), {"schedule": "lazy"}),
    "bytes of one of two loads, eager": Case(TWO_LOADS, "[bar], 512;", "[bar], 256;", "more bytes than expected",
        "transaction bytes", ("expects 256 bytes in phase 0, but its 2 loads deliver 512", "256 of these bytes count"),
        {"schedule": "eager"}),
    "a count too large": Case(COPY, "[bar], 1;", "[bar], 2;", "hang", "arrival count",
        ("1 of 2 arrivals", "with a count of 2")),
    "a flipped parity on new bytes": Case(COPY, "%p2, [bar], 0;", "%p2, [bar], 1;", "parity", "parity",
        ("parity 1", "first phase"), {"schedule": "lazy"}),
    "a flipped parity, the bytes there": Case(COPY, "%p2, [bar], 0;", "%p2, [bar], 1;", "hang", "parity",
        ("the next phase is 0",), {"schedule": "eager"}),
    "the consumer never flips its parity": Case(ROUNDS, "CONSUMER: and.b32 %r7, %r6, 1;", "CONSUMER: mov.u32 %r7, 0;",
        "hang"),
    "the producer begins with parity 0": Case(ROUNDS, "xor.b32 %r7, %r7, 1;", "xor.b32 %r7, %r7, 0;", "hang", "",
        ("0 of 32 arrivals",)),
    "the consumer begins with parity 1": Case(ROUNDS, "CONSUMER: and.b32 %r7, %r6, 1;",
        "CONSUMER: add.u32 %r7, %r6, 1; and.b32 %r7, %r7, 1;", "hang", "parity"),
    "a producer that stops early": Case(ROUNDS, "setp.lt.u32 %p4, %r6, 4;\n@%p4 bra FILL;",
        "setp.lt.u32 %p4, %r6, 3;\n@%p4 bra FILL;", "hang", "exited", ("thread 0 exited", "0 of 1 arrival")),
    "arrivals of an empty slot": Case(ROUNDS, "[other], 32;", "[other], 33;", "hang", "arrival count",
        ("32 of 33 arrivals",)),
    "not initialised": Case(COPY, "mbarrier.init.shared.b64 [bar], 1;", "", "mbarrier not initialised"),
    "initialised twice": Case(COPY, "READY: bar.sync 0;", "READY: bar.sync 0;\nmbarrier.init.shared.b64 [bar], 1;",
        "mbarrier initialised twice"),
    "used after inval": Case(COPY, "@%p1 bra WAIT;", "@%p1 bra WAIT;\nmbarrier.inval.shared.b64 [bar];",
        "mbarrier used after inval", "", ("invalidated",)),
    "too many arrivals": Case(COPY, "WAIT: mbarrier.try", "mbarrier.arrive.shared.b64 _, [bar];\nWAIT: mbarrier.try",
        "too many arrivals", "", (), {"schedule": "lazy"}),
    "counts of a barrier that can't meet": Case(NAMED, "FIRST: bar.sync 1, 64;", "FIRST: bar.sync 1, 96;", "hang",
        "barrier count", ("different counts",)),
    "a barrier that half of a warp leaves out": Case(NAMED, "setp.lt.u32 %p3, %r1, 32;", "setp.lt.u32 %p3, %r1, 48;",
        "divergent aligned instruction"),
    "a thread that ends before a barrier of all": Case(INIT + STORE, "READY: bar.sync 0;",
        "READY: setp.eq.u32 %p4, %r1, 40; @%p4 ret; bar.sync 0;", "exited before a barrier", "exited before a barrier",
        ("thread 40 exited before bar.sync",)),
    "a lane that ends before a shuffle": Case(WARP, "movmatrix.sync.aligned.m8n8.trans.b16 %r9, %r8;",
        "setp.eq.u32 %p4, %r1, 3; @%p4 ret; shfl.sync.bfly.b32 %r9, %r8, 1, 31, -1;", "exited lanes", "exited lanes",
        ("thread 3 exited before shfl.sync",)),
    "a cluster barrier that one CTA leaves out": Case(CLUSTER, "barrier.cluster.arrive.aligned;",
        "setp.ne.u32 %p4, %r2, 0; @%p4 bra STUCK;\nbarrier.cluster.arrive.aligned;", "hang", "barrier count",
        ("missing in CTAs of rank 1",), {"grid": 2, "cluster": 2}),
    "registers beyond the pool": Case(REGISTERS_POOL, "u32 232;", "u32 240;", "register pool", "register pool", (), {},
        384, ".minnctapersm 1"),
    "registers below 24": Case(REGISTERS_POOL, "u32 40;", "u32 16;", "register count", "register pool", (), {}, 384,
        ".minnctapersm 1"),
    "registers no multiple of 8": Case(REGISTERS_POOL, "u32 40;", "u32 44;", "register count", "register pool", (), {},
        384, ".minnctapersm 1"),
    "registers in the wrong direction": Case(REGISTERS_POOL, "dec.sync.aligned.u32 40", "inc.sync.aligned.u32 40",
        "register direction", "register pool", (), {}, 384, ".minnctapersm 1"),
    "registers of half a warpgroup": Case(REGISTERS_POOL, "setp.lt.u32 %p3, %r1, 128;", "setp.lt.u32 %p3, %r1, 64;",
        "hang", "divergent aligned instruction", (), {}, 384, ".minnctapersm 1"),
    "lanes that leave a collective out": Case(WARP, "@%p3 bra MATRIX;", "setp.lt.u32 %p4, %r1, 16; @%p4 bra STUCK;",
        "hang", "divergent aligned instruction", ("missing: CTA (0, 0, 0), threads 0 to 15",)),
}  # fmt: skip

STUCK = "\nSTUCK: bar.sync 3, 96;\nret;"


@each_of("name", list(CASES))
def test_a_fault_is_found_with_its_cause_and_the_sound_kernel_is_clean(name: str) -> None:
    case = CASES[name]
    assert case.sound.count(case.old) == 1
    sound = run(program(case.sound + STUCK, case.threads, case.directives), **case.options)
    assert not [one for one in sound.diagnostics if one.severity == "error"], sound.explain()
    found = run(program(case.sound.replace(case.old, case.new) + STUCK, case.threads, case.directives), **case.options)
    errors = [one for one in found.diagnostics if one.rule == case.rule]
    assert errors, found.explain()
    if case.cause:
        assert case.cause in [one.facts["cause"] for one in errors], found.explain()
    text = found.explain()
    for part in case.says:
        assert part in text, text


def test_a_surplus_load_has_the_same_words_without_a_run_and_in_one() -> None:
    text = program(COPY.replace("[bar], 256;", "[bar], 240;"))
    said = [
        next(one.message for one in found if "delivers" in one.message).split(" expects ")[1].replace(" in phase 0", "")
        for found in (check_program(text).found, run(text, schedule="eager").diagnostics)
    ]
    words = "240 bytes, but its 1 load delivers 256; its phase may complete too early, or never"
    assert said[0] == words
    assert said[1].startswith(f"{words}: line ")


LIMITED = """
@%p1 bra READY;
mbarrier.init.shared.b64 [bar], 1;
fence.proxy.async;
READY: bar.sync 0;
mov.u64 %rd5, %clock64;
AGAIN: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
@%p2 bra OVER;
mov.u64 %rd6, %clock64; sub.u64 %rd6, %rd6, %rd5; setp.lt.u64 %p3, %rd6, 50000000;
@%p3 bra AGAIN;
OVER: st.global.u32 [%rd3], %r1;
ret;"""


@pytest.mark.parametrize("schedule", ["eager", "lazy", 1])
def test_a_wait_that_only_its_time_limit_ends_is_a_hang(schedule: str | int) -> None:
    found = run(program(LIMITED), schedule=schedule)
    hangs = [one for one in found.diagnostics if one.rule == "hang"]
    assert [one.severity for one in hangs] == ["error"]
    assert "0 of 1 arrival" in hangs[0].message
    mended = LIMITED.replace("mov.u64 %rd5", "@!%p1 mbarrier.arrive.shared.b64 _, [bar];\nmov.u64 %rd5", 1)
    sound = run(program(mended), schedule=schedule)
    assert sound.ok, sound.explain()
    assert not [one for one in sound.diagnostics if one.rule == "hang"]


@pytest.mark.parametrize("kind", ["test_wait", "try_wait"])
@pytest.mark.parametrize(
    "back", ["bra WAIT;", "add.u32 %r7, %r7, 1; setp.gt.u32 %p3, %r7, 20; @%p3 nanosleep.u32 64; bra WAIT;"]
)
def test_a_loop_that_polls_a_phase_waits_for_this_phase(kind: str, back: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop may count its rounds: then no round leaves the registers as they were."""
    monkeypatch.setattr(schedule, "MAX_LEAPS", 100)
    poll = f"mov.u32 %r7, 0;\nWAIT: mbarrier.{kind}.parity.shared.b64 %p2, [bar], 0;\n@%p2 bra READY2;\n{back}\nREADY2:"
    text = program(
        (INIT + LOAD + poll + STORE)
        .replace("@%p1 bra WAIT;", "@%p1 bra POLL;")
        .replace("mov.u32 %r7", "POLL: mov.u32 %r7")
    )
    assert run(text).ok
    found = run(text.replace("[bar], 256;", "[bar], 272;", 1))
    (hang,) = [one for one in found.diagnostics if one.rule == "hang"]
    assert hang.facts["cause"] == "transaction bytes"
    assert f"mbarrier.{kind}" in str(hang.facts["instruction"])


def test_a_change_of_bytes_is_offered_after_it_was_tried() -> None:
    text = program(COPY.replace("[bar], 256;", "[bar], 272;"))
    found = run(text)
    (hang,) = [one for one in found.diagnostics if one.rule == "hang"]
    line = next(i for i, one in enumerate(text.split("\n"), 1) if "272" in one)
    assert hang.fixes == (f"replace `272` with `256` in line {line}",)
    assert f"change: replace `272` with `256` in line {line}" in found.explain()


@pytest.mark.parametrize("back", ["@!%p2 bra SPIN;", "@%p2 bra DONE_WAITING;\nbra SPIN;"])
def test_a_barrier_of_all_threads_goes_before_the_loop_that_waits(back: str) -> None:
    """Threads may pass the loop a different number of times, so the barrier must not stand inside of it. The branch
    before the loop is the last place that all threads pass once."""
    wait = f"NEXT:\nSPIN:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n{back}\nDONE_WAITING:\n"
    text = program(INIT.replace("READY: bar.sync 0;", "READY:") + LOAD.replace("bra WAIT", "bra NEXT") + wait + STORE)
    found = run(text)
    (unknown,) = [one for one in found.diagnostics if one.rule == "initialisation not known"]
    line = next(i for i, one in enumerate(text.split("\n"), 1) if one == "@%p1 bra NEXT;")
    assert unknown.fixes == (f"insert `bar.sync 0;` before line {line}",)


@each_of(
    ("operand", "fix"),
    [("272", "replace `272` with `256`"), ("%r20", "replace `%r20` with `256`")],
)
def test_a_number_in_a_register_is_replaced(operand: str, fix: str) -> None:
    """Compilers move the constants of inline assembly to registers."""
    text = program("mov.u32 %r20, 272;\n" + COPY.replace("[bar], 256;", f"[bar], {operand};"))
    (hang,) = [one for one in run(text).diagnostics if one.rule == "hang"]
    line = next(i for i, one in enumerate(text.split("\n"), 1) if "expect_tx" in one)
    assert hang.fixes == (f"{fix} in line {line}",)


def test_a_change_that_only_hangs_elsewhere_is_not_offered() -> None:
    """A barrier that one thread reaches ends the run before the race, which it does not fix."""
    body = """
@%p1 bra OTHERS;
st.shared.u32 [buffer], %r1;
W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
@!%p2 bra W;
ret;
OTHERS: setp.ne.u32 %p3, %r1, 32;
@%p3 bra DONE;
ld.shared.u32 %r5, [buffer];
st.global.u32 [%rd3], %r5;
DONE: ret;"""
    found = run(program(INIT + body)).diagnostics
    assert [one.rule for one in found] == ["hang", "race in shared memory"]
    assert found[1].fixes == ()


WRITTEN_AND_STORED = """
st.shared.u32 [%r31], %r1;
bar.sync 0;
@%p1 bra AFTER{0};
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [buffer], 256;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
AFTER{0}: bar.sync 0;
"""


@each_of("copies", [1, 2, 3])
def test_a_change_goes_to_each_copy_of_an_unrolled_loop(copies: int) -> None:
    text = program("".join(WRITTEN_AND_STORED.format(number) for number in range(copies)) + "ret;")
    found = [one for one in run(text).diagnostics if one.rule == "missing proxy fence"]
    stores = [i for i, one in enumerate(text.split("\n"), 1) if one.startswith("st.shared")]
    assert found[0].fixes == ("; ".join(f"insert `fence.proxy.async;` after line {line}" for line in stores),)


def test_a_barrier_of_the_cluster_makes_an_initialisation_known() -> None:
    text = program(
        PEERS.replace("READY: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;", "READY: bar.sync 0;")
        .replace(
            "WAIT:",
            "@!%p1 mapa.shared::cluster.u32 %r8, %r6, %r7;\n@!%p1 mbarrier.arrive.release.cluster."
            "shared::cluster.b64 _, [%r8];\nWAIT:",
        )
        .replace("END", ""),
        64,
        ".reqnctapercluster 2",
    )
    (found,) = [one for one in run(text, grid=2).diagnostics if one.rule == "initialisation not known"]
    assert len(found.fixes) == 1
    assert found.fixes[0].startswith("insert `barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;` before")


UNROLLED = """
st.shared.u32 [%r31], %r1; mov.u32 %r9, 0; mov.u32 %r10, 0;
@%p1 bra OTHERS;
BODY:
ld.shared.u32 %r5, [buffer+4];
ld.shared.u32 %r6, [buffer+128];
add.u32 %r9, %r9, %r5; add.u32 %r9, %r9, %r6; add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 3;
@%p2 bra BODY;
st.global.u32 [%rd3], %r9;
OTHERS: ret;"""


def test_a_barrier_goes_before_the_branch_and_the_loop_of_a_reader() -> None:
    """Only thread 0 runs the loop, so a barrier inside it is reached by one thread, three times."""
    text = program(UNROLLED)
    line = text.split("\n").index("@%p1 bra OTHERS;") + 1
    fixes = {one.rule: one.fixes for one in run(text).diagnostics}
    assert fixes == {
        "race between lanes": (f"insert `bar.warp.sync -1;` before line {line}",),
        "race in shared memory": (f"insert `bar.sync 0;` before line {line}",),
    }
    everyone = program(UNROLLED.replace("@%p1 bra OTHERS;", "setp.gt.u32 %p3, %r3, 100;\n@%p3 bra OTHERS;"))
    races = [one for one in run(everyone).diagnostics if one.rule == "race in shared memory"]
    line = everyone.split("\n").index("@%p3 bra OTHERS;") + 1
    assert races[0].fixes == (f"insert `bar.sync 0;` before line {line}",)


PEERS = """
@%p1 bra READY;
mbarrier.init.shared.b64 [bar], 1;
mbarrier.init.shared.b64 [other], 1;
READY: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
mov.u32 %r6, bar; xor.b32 %r7, %r2, 1;
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r6], 0;
@!%p2 bra WAIT;
@%p1 bra DONE;
END
DONE: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ret;"""
TO_PEER = "mapa.shared::cluster.u32 %r8, {}, {};\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];"


@each_of(
    ("address", "rank", "known"),
    [("%r6", "%r7", True), ("%r6", "1", True), ("bar", "0", True), ("other", "%r7", False), ("%r6", "%r9", None)],
)
def test_an_arrival_at_a_peer_is_known_if_the_rank_is(address: str, rank: str, known: bool | None) -> None:
    """Two CTAs wait for each other's arrival, which comes after the wait; a loaded rank is unknown."""
    loaded = "ld.global.u32 %r9, [%rd4];\n" if known is None else ""
    text = program(PEERS.replace("END", loaded + TO_PEER.format(address, rank)), 64, ".reqnctapercluster 2")
    hangs = [one for one in run(text, grid=2).diagnostics if one.rule == "hang"]
    said = " ".join(f"{one.message} {one.facts.get('also waiting 1')}" for one in hangs)
    assert ("comes after the wait" in said) is (known is True), said
    assert ("may arrive at it" in said) is (known is None), said


def test_an_arrival_at_a_peer_by_a_generic_address() -> None:
    generic = "cvt.u64.u32 %rd5, %r6; cvta.shared.u64 %rd6, %rd5; mapa.u64 %rd7, %rd6, %r7; "
    text = program(PEERS.replace("END", f"{generic}mbarrier.arrive.b64 _, [%rd7];"), 64, ".reqnctapercluster 2")
    hangs = [one for one in run(text, grid=2).diagnostics if one.rule == "hang"]
    assert any("comes after the wait" in one.message for one in hangs), [one.message for one in hangs]


@pytest.mark.parametrize("schedule", ["eager", "lazy", 1, 2])
def test_a_parity_that_never_flips_is_the_first_cause(schedule: str | int) -> None:
    """The consumer passes its wait again for a phase that it saw, so it reads early and arrives too often."""
    wait = "FULL: mbarrier.try_wait.parity.shared.b64 %p2, [bar], "
    text = program(ROUNDS.replace(f"{wait}%r7;", f"{wait}0;"))
    first = run(text, schedule=schedule).diagnostics[0]
    line = next(i for i, one in enumerate(text.split("\n"), 1) if wait in one)
    assert (first.severity, first.facts["cause"]) == ("error", "parity")
    assert f"line {line}" in first.message
    sound = run(program(ROUNDS), schedule=schedule)
    assert sound.ok and not sound.diagnostics


def test_an_answer_quotes_the_lines_that_it_names() -> None:
    text = program(ROUNDS.replace("[other], 32;", "[other], 33;"))
    lines = text.split("\n")
    said = run(text).explain()
    for part in ("mbarrier.init.shared.b64 [other], 33", "mbarrier.try_wait.parity.shared.b64 %p2, [other], %r7"):
        number = next(i for i, one in enumerate(lines, 1) if part in one)
        assert f"{number} | {part}" in said
    assert "why: " in said
    assert "try: " in said


ARRIVES = """
@%p1 bra READY;
mbarrier.init.shared.b64 [bar], 1;
mbarrier.init.shared.b64 [other], 1;
READY: bar.sync 0;
mov.u32 %r6, bar; mov.u32 %r7, 1;
setp.ne.u32 %p5, %r1, %r1;
AGAIN: TOP
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r6], 0;
@!%p2 bra WAIT;
END
ret;"""

ADDRESSES = {
    "the register of the wait": ("", "mbarrier.arrive.shared.b64 _, [%r6];", True),
    "another barrier": ("", "mbarrier.arrive.shared.b64 _, [%r6+8];", False),
    "a variable": ("", "mbarrier.arrive.shared.b64 _, [bar];", True),
    "another variable": ("", "mbarrier.arrive.shared.b64 _, [other];", False),
    "computed": ("", "shl.b32 %r8, %r7, 3; add.u32 %r8, %r6, %r8; mbarrier.arrive.shared.b64 _, [%r8+-8];", True),
    "computed, another": ("", "shl.b32 %r8, %r7, 3; add.u32 %r8, %r6, %r8; mbarrier.arrive.shared.b64 _, [%r8];",
        False),
    "generic": ("", "cvt.u64.u32 %rd5, %r6; cvta.shared.u64 %rd6, %rd5; mbarrier.arrive.b64 _, [%rd6];", True),
    "loaded": ("", "ld.global.u32 %r8, [%rd4]; add.u32 %r8, %r8, %r6; mbarrier.arrive.shared.b64 _, [%r8];", False),
    "equal on two paths": ("", "mov.u32 %r8, bar; @%p1 bra M; mov.u32 %r8, %r6; "
        "M: mbarrier.arrive.shared.b64 _, [%r8];", True),
    "not equal on two paths": ("", "mov.u32 %r8, bar; @%p1 bra M; mov.u32 %r8, other; "
        "M: mbarrier.arrive.shared.b64 _, [%r8];", False),
    "earlier in the loop": ("@%p5 mbarrier.arrive.shared.b64 _, [%r6];", "bra AGAIN;", True),
    "earlier in the loop, another": ("@%p5 mbarrier.arrive.shared.b64 _, [%r6+8];", "bra AGAIN;", False),
    "behind another wait": ("", "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r6+8], 0; @!%p2 bra W; "
        "mbarrier.arrive.shared.b64 _, [%r6];", True),
    "in the second round of a loop": ("", "mov.u32 %r8, 1; L: shl.b32 %r9, %r8, 3; add.u32 %r9, %r6, %r9; "
        "mbarrier.arrive.shared.b64 _, [%r9]; sub.u32 %r8, %r8, 1; setp.ge.s32 %p6, %r8, 0; @%p6 bra L;", True),
    "in a round that does not come": ("", "mov.u32 %r8, 1; L: shl.b32 %r9, %r8, 3; add.u32 %r9, %r6, %r9; "
        "mbarrier.arrive.shared.b64 _, [%r9]; sub.u32 %r8, %r8, 1; setp.gt.s32 %p6, %r8, 0; @%p6 bra L;", False),
    "in the round that wraps a stage": ("", "mov.u32 %r8, 1; L: mad.lo.u32 %r9, %r8, 8, %r6; "
        "mbarrier.arrive.shared.b64 _, [%r9]; add.u32 %r8, %r8, 1; setp.eq.u32 %p6, %r8, 2; "
        "selp.b32 %r8, 0, %r8, %p6; bra L;", True),
    "never in a ring of rounds": ("", "mov.u32 %r8, 0; L: and.b32 %r9, %r8, 1; mad.lo.u32 %r9, %r9, 8, %r6; "
        "mbarrier.arrive.shared.b64 _, [%r9+8]; add.u32 %r8, %r8, 1; bra L;", False),
    "behind a loop that changes the address": ("", "mov.u32 %r8, bar; mov.u32 %r9, 0; L: add.u32 %r8, %r8, 8; "
        "add.u32 %r9, %r9, 1; setp.lt.u32 %p6, %r9, 4; @%p6 bra L; mbarrier.arrive.shared.b64 _, [%r8+-8];", False),
    "none": ("", "", False),
}  # fmt: skip


@each_of("name", list(ADDRESSES))
def test_a_hang_names_only_arrivals_at_its_own_barrier(name: str) -> None:
    top, end, known = ADDRESSES[name]
    found = run(program(ARRIVES.replace("TOP", top).replace("END", end)))
    (hang,) = [one for one in found.diagnostics if one.rule == "hang"]
    text = found.explain()
    assert ("comes after the wait" in hang.message) is known, text
    assert ("would arrive at" in hang.facts) is known, text
    assert ("no instruction of a running thread is known to arrive at it" in hang.message) is not known, text
    assert hang.facts["cause"] == ("arrivals" if known else "no arrival")
    assert ("move their arrival" in text) is known
    assert (
        "move their arrival" not in run(program(ARRIVES.replace("TOP", top).replace("END", end)), judge=False).explain()
    )


STAGES = """
@%p1 bra READY;
mov.u32 %r6, 0;
NEXT: shl.b32 %r7, %r6, 3; add.u32 %r8, %r30, %r7; mbarrier.init.shared.b64 [%r8], 1;
add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 16; @%p4 bra NEXT;
fence.proxy.async;
READY: bar.sync 0;
setp.eq.u32 %p3, %r1, 0; @%p3 bra PRODUCER;
setp.ne.u32 %p3, %r1, 32; @%p3 bra DONE;
mov.u32 %r6, 0;
CONSUMER: shl.b32 %r7, %r6, 3; add.u32 %r8, %r30, %r7;
FULL: mbarrier.try_wait.parity.shared.b64 %p2, [%r8], 0;
@!%p2 bra FULL;
mbarrier.arrive.shared.b64 _, [%r8+64];
add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, 8; @%p4 bra CONSUMER;
ret;
PRODUCER: FIRST
EMPTY: mbarrier.try_wait.parity.shared.b64 %p2, [buffer+BARRIER], 0;
@!%p2 bra EMPTY;
LAST
DONE: ret;"""


@pytest.mark.parametrize("stage", [0, 1, 7])
def test_an_arrival_in_a_later_round_closes_the_cycle(stage: int) -> None:
    """The producer waits for an empty stage before it fills the first; the consumer would release it in its loop."""
    body = STAGES.replace("BARRIER", str(64 + 8 * stage))
    fill = "mbarrier.arrive.shared.b64 _, [buffer];"
    text = program(body.replace("FIRST", "").replace("LAST", fill))
    hangs = [one for one in run(text).diagnostics if one.rule == "hang"]
    assert [one.facts["cause"] for one in hangs] == ["parity", "parity"]
    assert "threads wait for each other" in hangs[0].message
    assert all("form a cycle" in one.message for one in hangs)
    assert "Make a thread arrive" not in run(text).explain()


def test_a_wait_for_an_arrival_of_a_later_round_is_a_consequence() -> None:
    """The first stage lacks half of its bytes, so the consumer does not reach the round that releases the second."""
    load = (
        "mbarrier.arrive.expect_tx.shared.b64 _, [buffer], 64;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer+256], [%rd4], 32, [buffer];"
    )
    body = STAGES.replace("BARRIER", "72").replace("FIRST", load).replace("LAST", "")
    (hang,) = [one for one in run(program(body)).diagnostics if one.rule == "hang"]
    assert hang.facts["cause"] == "transaction bytes"
    assert "comes after the wait" in hang.facts["also waiting 1"]


@pytest.mark.parametrize(
    ("end", "may"),
    [
        ("ld.global.u32 %r8, [%rd4]; add.u32 %r8, %r8, %r6; mbarrier.arrive.shared.b64 _, [%r8];", True),
        ("mov.u32 %r8, other; L: mbarrier.arrive.shared.b64 _, [%r8]; add.u32 %r8, %r8, 8; @%p1 bra L;", True),
        ("mov.u32 %r8, other; L: mbarrier.arrive.shared.b64 _, [%r8]; add.u32 %r7, %r7, 8; @%p1 bra L;", False),
    ],
    ids=["loaded", "changed by the loop", "kept in the loop"],
)
def test_an_arrival_whose_barrier_is_unknown_is_a_candidate(end: str, may: bool) -> None:
    text = program(ARRIVES.replace("TOP", "").replace("END", end))
    (hang,) = [one for one in run(text).diagnostics if one.rule == "hang"]
    assert hang.facts["cause"] == "no arrival"
    assert ("may arrive at it" in hang.message) is may, hang.message
    if may:
        line = next(i for i, one in enumerate(text.split("\n"), 1) if end in one)
        assert f"the arrival at line {line}, after the wait of CTA (0, 0, 0), threads 0 to 63 at line" in hang.message


def test_an_arrival_that_ran_before_is_named_where_its_address_is_unknown() -> None:
    top = "ld.global.u32 %r8, [%rd4]; add.u32 %r8, %r8, %r6; mbarrier.arrive.shared.b64 _, [%r8];"
    text = program(ARRIVES.replace("[bar], 1;", "[bar], 2;").replace("TOP", top).replace("END", "bra AGAIN;"), 1)
    (hang,) = [one for one in run(text).diagnostics if one.rule == "hang"]
    line = next(i for i, one in enumerate(text.split("\n"), 1) if top in one)
    assert hang.facts["would arrive at"] == [line], hang.message


def test_first_waits_for_parity_1_at_two_barriers_are_no_wrong_parity() -> None:
    """Nothing arrives at `bar`; the first wait for it, or only that for `other`, is for parity 1 and passes."""
    own = "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r6], 1;"
    other = "V: mbarrier.try_wait.parity.shared.b64 %p2, [other], 1;"
    for first, cause in ((own + other, "no arrival"), (other, "parity")):
        (hang,) = run(program(ARRIVES.replace("TOP", first).replace("END", ""))).diagnostics
        assert hang.facts["cause"] == cause
        assert ("which has the same count" in hang.message) is (cause == "parity")


@pytest.mark.parametrize(("threads", "who"), [(64, "the threads have"), (1, "the thread has")])
def test_threads_that_saw_no_phase_complete(threads: int, who: str) -> None:
    ones = "mbarrier.arrive.shared.b64 _, [%r6];"
    some = ARRIVES.replace("TOP", f"bar.sync 0; @%p1 bra WAIT; {ones * 2}").replace("END", "")
    (hang,) = [one for one in run(program(some, threads)).diagnostics if one.rule == "hang"]
    assert f"; {who} not waited for it before, and phases 0 to 1 have completed since: " in hang.message
    body = ARRIVES.replace("TOP", f"W: mbarrier.try_wait.parity.shared.b64 %p2, [%r6], 1; bar.sync 0; {ones}")
    count = body.replace("END", "").replace(f"bar.sync 0; {ones}", f"bar.sync 0; @%p1 bra WAIT; {ones * 2}")
    (hang,) = [one for one in run(program(count, threads), schedule="eager").diagnostics if one.rule == "hang"]
    assert f"; {who} seen no phase of it complete, and phases 0 to 1 have completed since: " in hang.message
    assert "-1" not in hang.message
    assert hang.facts["seen last"] == "no phase"


@pytest.mark.parametrize(("grid", "more"), [(1, ""), (2, "; 1 other wait has the same cause"),
                                            (3, "; 2 other waits have the same cause")])  # fmt: skip
def test_waits_with_one_cause_are_counted(grid: int, more: str) -> None:
    (hang,) = run(program(ARRIVES.replace("TOP", "").replace("END", "")), grid=grid).diagnostics
    assert hang.message.endswith(f"known to arrive at it{more}")


EARLY_RETURNS = "".join(
    f"setp.ge.u32 %p{n}, %r1, {64 >> n}; @%p{n} bra DONE;\nst.shared.u32 [%r31], %r1;\nbar.sync 0;\n" for n in (1, 2, 3)
)


def test_copies_of_a_barrier_after_early_exits_have_one_warning() -> None:
    """An unrolled reduction, where half of the threads return in each step."""
    text = program(f"{EARLY_RETURNS}DONE: ret;", 64)
    (found,) = run(text).diagnostics
    lines = [i for i, one in enumerate(text.split("\n"), 1) if one == "bar.sync 0;"]
    assert (found.rule, found.severity) == ("exited before a barrier", "warning")
    assert found.facts["lines"] == lines[1:]
    assert f"before 2 copies of it (lines {', '.join(map(str, lines[1:]))})" in found.message
