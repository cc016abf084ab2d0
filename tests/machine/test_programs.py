"""Programs: branches, loops, barriers, calls, clusters, atomics; what ends a run, and what the schedules tell apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, ParseError
from tests.each import each_of

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
INDEX = "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1;"
OUT = "ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2;"


def program(body: str, *, before: str = "", threads: int = 64, more: str = "", directives: str = "") -> str:
    """A kernel with one array, %r4 the number of the thread in the grid, %rd3 the address of its element."""
    return (
        f"{HEAD}{before}\n.visible .entry k(.param .u64 out{more}) .reqntid {threads} {directives}\n{{\n"
        ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<8>;\n"
        f"{INDEX}\n{OUT}\n{body}\n}}\n"
    )


def run(text: str, count: int = 64, **options: Any) -> tuple[cute.PtxRun, Any]:
    out = np.zeros(count, np.uint32)
    return cute.run_ptx(text, args=[out, *options.pop("rest", ())], **options), out


def test_branches_meet_again() -> None:
    body = """
    and.b32 %r5, %r4, 3; setp.eq.u32 %p1, %r5, 0; mov.u32 %r6, 100; @%p1 bra A;
    setp.eq.u32 %p2, %r5, 1; @%p2 bra B; mov.u32 %r6, 300; bra.uni C;
    A: mov.u32 %r6, 0; bra.uni C;
    B: mov.u32 %r6, 200;
    C: activemask.b32 %r7; setp.eq.u32 %p3, %r7, -1; selp.u32 %r8, 1, 0, %p3; add.u32 %r6, %r6, %r8;
    st.global.u32 [%rd3], %r6; ret;"""
    found, out = run(program(body))
    assert found.ok
    assert out[:4].tolist() == [1, 201, 301, 301]


def test_loops_of_different_lengths() -> None:
    body = """
    mov.u32 %r5, 0; mov.u32 %r6, 0;
    LOOP: setp.ge.u32 %p1, %r5, %r4; @%p1 bra DONE; add.u32 %r6, %r6, %r5; add.u32 %r5, %r5, 1; bra LOOP;
    DONE: st.global.u32 [%rd3], %r6; ret;"""
    found, out = run(program(body))
    assert found.ok
    assert out.tolist() == [n * (n - 1) // 2 for n in range(64)]
    most = max(found.counts, key=lambda one: one.threads)
    assert "LOOP" not in most.instruction
    assert most.threads == sum(range(65))


def test_an_indexed_branch() -> None:
    body = """
    and.b32 %r5, %r4, 3; T: .branchtargets A, B, C, A;
    brx.idx %r5, T;
    A: mov.u32 %r6, 10; bra D; B: mov.u32 %r6, 20; bra D; C: mov.u32 %r6, 30;
    D: st.global.u32 [%rd3], %r6; ret;"""
    found, out = run(program(body))
    assert found.ok, found.explain()
    assert out[:5].tolist() == [10, 20, 30, 10, 10]


def test_warps_exchange_through_shared_memory() -> None:
    body = """
    mov.u32 %r5, buffer; shl.b32 %r6, %r1, 2; add.u32 %r7, %r5, %r6; st.shared.u32 [%r7], %r4; bar.sync 0;
    sub.u32 %r8, 63, %r1; shl.b32 %r8, %r8, 2; add.u32 %r8, %r5, %r8; ld.shared.u32 %r9, [%r8];
    st.global.u32 [%rd3], %r9; ret;"""
    found, out = run(program(body, before=".shared .align 4 .b8 buffer[256];"), 192, grid=3)
    assert found.ok
    assert out.tolist() == [64 * cta + 63 - n for cta in range(3) for n in range(64)]


def test_roles_of_warps_and_named_barriers() -> None:
    """The first warp fills a slot, the second empties it, four times, through barriers 1 and 2."""
    body = """
    mov.u32 %r5, slot; and.b32 %r6, %r1, 31; shl.b32 %r6, %r6, 2; add.u32 %r5, %r5, %r6; mov.u32 %r7, 0; mov.u32 %r9, 0;
    setp.ge.u32 %p1, %r1, 32; @%p1 bra CONSUMER;
    PRODUCER: bar.sync 2, 64; add.u32 %r8, %r7, %r1; st.shared.u32 [%r5], %r8; bar.arrive 1, 64;
    add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 4; @%p2 bra PRODUCER; ret;
    CONSUMER: bar.arrive 2, 64; bar.sync 1, 64; ld.shared.u32 %r8, [%r5]; add.u32 %r9, %r9, %r8;
    add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 4; @%p2 bra CONSUMER; st.global.u32 [%rd3], %r9; ret;"""
    for schedule in ("eager", "lazy", 1, 2, 3):
        found, out = run(program(body, before=".shared .align 4 .b8 slot[128];"), schedule=schedule)
        assert found.ok, found.explain()
        assert out[32:].tolist() == [4 * n + 6 for n in range(32)]


def test_a_spin_lock_inside_a_warp_ends() -> None:
    body = """
    LOCK: atom.shared.cas.b32 %r5, [lock], 0, 1; setp.ne.u32 %p1, %r5, 0; @%p1 bra LOCK;
    ld.shared.u32 %r6, [sum]; add.u32 %r6, %r6, %r4; st.shared.u32 [sum], %r6; atom.shared.exch.b32 %r5, [lock], 0;
    bar.sync 0; ld.shared.u32 %r6, [sum]; st.global.u32 [%rd3], %r6; ret;"""
    start = """setp.ne.u32 %p2, %r1, 0; @%p2 bra READY; st.shared.u32 [lock], 0; st.shared.u32 [sum], 0;
    READY: bar.sync 0;"""
    found, out = run(program(start + body, before=".shared .u32 lock; .shared .u32 sum;"))
    assert found.ok, found.explain()
    assert set(out.tolist()) == {sum(range(64))}


@pytest.mark.parametrize(
    ("load", "schedule"),
    [
        (".volatile", "eager"),
        (".volatile", "lazy"),
        (".volatile", 1),
        pytest.param("", "eager", marks=pytest.mark.slow),
    ],
)
def test_a_loop_that_stores_while_it_waits_does_not_stop_the_others(load: str, schedule: str | int) -> None:
    """CTA 0 waits in a loop that stands before the code in which the other CTAs add to the flag."""
    body = f"""
    ld.param.u64 %rd4, [flag]; setp.ne.u32 %p1, %r2, 0; @%p1 bra WORK;
    WAIT: bar.sync 0; st.shared.u32 [kept], 7; ld{load}.global.u32 %r5, [%rd4]; setp.lt.u32 %p2, %r5, 128;
    @%p2 bra WAIT; bra END;
    WORK: bar.sync 0; red.global.add.u32 [%rd4], 1;
    END: st.global.u32 [%rd3], %r4; ret;"""
    text = program(body, before=".shared .u32 kept;", more=", .param .u64 flag")
    flag = np.zeros(1, np.uint32)
    found, out = run(text, 3 * 64, grid=3, rest=[flag], schedule=schedule, limit=10_000_000)
    assert {one.rule for one in found.diagnostics} == (set() if load else {"race in global memory"}), found.explain()
    assert (int(flag[0]), out.tolist()) == (128, list(range(3 * 64)))


def test_a_warp_that_computes_is_not_taken_for_one_that_waits() -> None:
    """The first warp looks at a flag that the second sets after a long loop without memory."""
    body = """
    setp.ge.u32 %p1, %r1, 32; st.shared.u32 [flag], 0; bar.sync 0; mov.u32 %r5, 0; @%p1 bra WORK;
    LOOK: ld.volatile.shared.u32 %r5, [flag]; setp.eq.u32 %p2, %r5, 0; @%p2 bra LOOK; bra END;
    WORK: add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 5000; @%p3 bra WORK; st.volatile.shared.u32 [flag], %r5;
    END: st.global.u32 [%rd3], %r5; ret;"""
    for schedule in ("eager", 1, 2):
        found, out = run(program(body, before=".shared .u32 flag;"), schedule=schedule)
        assert found.ok, found.explain()
        assert set(out.tolist()) == {5000}


def test_a_wait_that_looks_at_the_clock_ends_by_itself() -> None:
    body = """
    mov.u64 %rd4, %clock64;
    L: mov.u64 %rd5, %clock64; sub.u64 %rd5, %rd5, %rd4; ld.volatile.global.u32 %r5, [%rd3]; setp.ne.u32 %p1, %r5, 0;
    setp.gt.u64 %p2, %rd5, 4000000000; or.pred %p1, %p1, %p2; @!%p1 bra L; st.global.u32 [%rd3], 9; ret;"""
    found, out = run(program(body))
    assert found.ok, found.explain()
    assert set(out.tolist()) == {9}


def test_ctas_of_a_grid_wait_for_each_other() -> None:
    body = """
    setp.ne.u32 %p1, %r1, 0; ld.param.u64 %rd4, [count]; @%p1 bra WAIT; atom.global.add.u32 %r5, [%rd4], 1;
    WAIT: ld.acquire.gpu.global.u32 %r6, [%rd4]; setp.lt.u32 %p2, %r6, 40; @%p2 bra WAIT;
    st.global.u32 [%rd3], %r6; ret;"""
    found, out = run(program(body, more=", .param .u64 count"), 40 * 64, grid=40, rest=[np.zeros(1, np.uint32)])
    assert found.ok, found.explain()
    assert set(out.tolist()) == {40}


def test_a_cluster_reads_its_neighbour() -> None:
    body = """
    mov.u32 %r5, box; shl.b32 %r6, %r1, 2; add.u32 %r7, %r5, %r6; st.shared.u32 [%r7], %r4;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mov.u32 %r8, %cluster_ctarank; xor.b32 %r9, %r8, 1; mapa.shared::cluster.u32 %r10, %r7, %r9;
    ld.shared::cluster.u32 %r11, [%r10]; st.global.u32 [%rd3], %r11;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret;"""
    found, out = run(program(body, before=".shared .align 4 .b8 box[256];"), 256, grid=4, cluster=2)
    assert found.ok, found.explain()
    assert out.tolist() == [64 * (cta ^ 1) + n for cta in range(4) for n in range(64)]


def test_functions_local_memory_and_printing() -> None:
    before = """
    .extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
    .global .align 1 .b8 form[16] = {116, 104, 114, 101, 97, 100, 32, 37, 100, 58, 32, 37, 46, 50, 102, 0};
    .func (.param .b32 result) square(.param .b32 x) {
      .reg .b32 %r<3>; .local .align 8 .b8 held[16];
      ld.param.b32 %r1, [x]; st.local.b32 [held+8], %r1; ld.local.b32 %r2, [held+8]; mul.lo.u32 %r2, %r2, %r1;
      st.param.b32 [result], %r2; ret; }"""
    body = """
    .local .align 8 .b8 list[16];
    { .param .b32 p; .param .b32 q; st.param.b32 [p], %r4; call.uni (q), square, (p); ld.param.b32 %r5, [q]; }
    st.global.u32 [%rd3], %r5; setp.gt.u32 %p1, %r4, 1; @%p1 bra END;
    mov.u64 %rd4, list; cvta.local.u64 %rd5, %rd4; st.local.u32 [%rd4], %r5; st.local.f64 [%rd4+8], 0d3FF8000000000000;
    mov.u64 %rd6, form; cvta.global.u64 %rd6, %rd6;
    { .param .b64 p0; .param .b64 p1; .param .b32 q; st.param.b64 [p0], %rd6; st.param.b64 [p1], %rd5;
      call.uni (q), vprintf, (p0, p1); }
    END: ret;"""
    found, out = run(program(body, before=before))
    assert found.ok, found.explain()
    assert out.tolist() == [n * n for n in range(64)]
    assert found.printed == ("thread 0: 1.50", "thread 1: 1.50")


@pytest.mark.parametrize("operation", ["add", "min", "max", "and", "or", "xor", "exch", "inc"])
def test_atomics_of_many_threads_on_one_place(operation: str) -> None:
    body = f"ld.param.u64 %rd4, [cell]; atom.global.{operation}.u32 %r5, [%rd4], %r4; st.global.u32 [%rd3], %r5; ret;"
    body = body.replace(".u32 %r5, [%rd4]", ".b32 %r5, [%rd4]") if operation in ("and", "or", "xor", "exch") else body
    cell = np.array([5], np.uint32)
    found, out = run(program(body, more=", .param .u64 cell"), rest=[cell])
    assert found.ok, found.explain()
    rule = {"add": lambda o, n: o + n, "min": min, "max": max, "and": lambda o, n: o & n, "or": lambda o, n: o | n,
            "xor": lambda o, n: o ^ n, "exch": lambda o, n: n, "inc": lambda o, n: 0 if o >= n else o + 1}  # fmt: skip
    held = 5
    for thread in range(64):
        assert out[thread] == held
        held = rule[operation](held, thread)  # type: ignore[no-untyped-call]
    assert cell[0] == held


def test_lanes() -> None:
    body = """
    shfl.sync.down.b32 %r5|%p1, %r4, 1, 31, -1; vote.sync.ballot.b32 %r6, %p1, -1; redux.sync.add.u32 %r7, %r1, -1;
    and.b32 %r8, %r1, 3; match.any.sync.b32 %r9, %r8, -1; elect.sync %r10|%p2, -1; selp.u32 %r11, 1, 0, %p2;
    xor.b32 %r12, %r5, %r6; add.u32 %r12, %r12, %r7; xor.b32 %r12, %r12, %r9; add.u32 %r12, %r12, %r11;
    st.global.u32 [%rd3], %r12; ret;"""
    found, out = run(program(body))
    assert found.ok
    for n in range(64):
        lane = n % 32
        down = n + 1 if lane < 31 else n
        total = sum(range(n - lane, n - lane + 32))
        same = sum(1 << i for i in range(32) if i % 4 == lane % 4)
        expected = (((down ^ 0x7FFFFFFF) + total & 0xFFFFFFFF) ^ same) + (lane == 0) & 0xFFFFFFFF
        assert out[n] == expected


def test_lanes_that_come_later_are_waited_for() -> None:
    """Half of the lanes take a longer way to the shuffle."""
    body = """
    and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0; mov.u32 %r6, %r4; @%p1 bra.uni S; mov.u32 %r7, 0;
    L: add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 10; @%p2 bra L; mul.lo.u32 %r6, %r4, 100;
    S: shfl.sync.bfly.b32 %r8, %r6, 1, 31, -1; st.global.u32 [%rd3], %r8; ret;"""
    for schedule in ("eager", 5, 6):
        found, out = run(program(body), schedule=schedule)
        assert found.ok, found.explain()
        assert out.tolist() == [(n ^ 1) * (100 if (n ^ 1) % 2 else 1) for n in range(64)]


ASYNC = """
    mov.u32 %r5, tile; shl.b32 %r6, %r1, 4; add.u32 %r7, %r5, %r6; ld.param.u64 %rd4, [from];
    mul.wide.u32 %rd5, %r4, 16; add.s64 %rd6, %rd4, %rd5; st.shared.u32 [%r7], 7;
    cp.async.cg.shared.global [%r7], [%rd6], 16; WAIT
    ld.shared.u32 %r8, [%r7]; st.global.u32 [%rd3], %r8; ret;"""


def test_a_missing_wait_is_seen_where_the_schedules_differ() -> None:
    source = np.arange(256, dtype=np.uint32)
    before = ".shared .align 16 .b8 tile[1024];"
    right = program(ASYNC.replace("WAIT", "cp.async.wait_all;"), before=before, more=", .param .u64 from")
    found, out = run(right, rest=[source])
    assert (found.ok, found.schedules) == (True, ("eager", "lazy"))
    assert out.tolist() == source[::4].tolist()
    wrong = program(ASYNC.replace("WAIT", ""), before=before, more=", .param .u64 from")
    found, out = run(wrong, rest=[source])
    assert [one.rule for one in found.diagnostics] == ["read before it arrives", "schedules differ"]
    assert out.tolist() == source[::4].tolist()  # those of the eager schedule
    assert set(run(wrong, rest=[source], schedule="lazy")[1].tolist()) == {7}


@each_of(
    ("body", "rule", "said"),
    [
        ("st.global.u32 [%rd3+4], 1; ret;", "out of bounds", "4 bytes past the end of argument 0, which has 256 bytes"),
        ("add.s64 %rd3, %rd3, 2; st.global.u32 [%rd3], 1; ret;", "misaligned", "must be a multiple of 4"),
        ("st.shared.u32 [%rd3], 1; ret;", "wrong space", "an address of global memory"),
        ("mov.u64 %rd3, 0; ld.global.u32 %r5, [%rd3]; ret;", "out of bounds", "a null pointer"),
        ("LOOP: bra LOOP;", "limit", "most often lines"),
        ("setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 0, 96; A: ret;", "hang", "32 of 96 threads"),
        ("mbarrier.arrive.shared.b64 _, [bar]; ret;", "mbarrier not initialised", "no mbarrier was initialised"),
        (
            "setp.ne.u32 %p1, %r1, 0; @!%p1 mbarrier.init.shared.b64 [bar], 64; bar.sync 0;"
            "mbarrier.arrive.shared.b64 %rd4, [bar]; L: mbarrier.try_wait.shared.b64 %p2, [bar], %rd4; @!%p2 bra L;"
            "N: mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra N; ret;",
            "",
            "",
        ),
        (
            "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [bar], 65; bar.sync 0;"
            "mbarrier.arrive.shared.b64 _, [bar]; W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;"
            "@!%p2 bra W; ret;",
            "hang",
            "64 of 65 arrivals",
        ),
        ("trap;", "trap", "executes trap"),
        (
            "L: ld.volatile.global.u32 %r5, [%rd3]; setp.eq.u32 %p1, %r5, 0; @%p1 bra L; ret;",
            "hang",
            "no thread will change",
        ),
        ("mapa.shared::cluster.u32 %r5, %r1, 3; ret;", "cluster rank", "CTA 3 of a cluster of 1"),
    ],
)
def test_what_ends_a_run(body: str, rule: str, said: str) -> None:
    text = program(body, before=".shared .align 8 .b64 bar;")
    found, _ = run(text, limit=200_000)
    assert [one.rule for one in found.diagnostics] == ([rule] if rule else [])
    assert said in found.explain()
    assert found.ok == (not rule)
    if rule:
        line = int(str(found.diagnostics[0].facts["line"]))
        assert 1 <= line <= text.count("\n")
        with pytest.raises(cute.PtxError) as caught:
            found.raise_for_diagnostics()
        assert caught.value.run is found


@each_of(
    ("change", "error", "said"),
    [
        ({"grid": 0}, InvalidValueError, "grid"),
        ({"block": 32}, InvalidValueError, "requires"),
        ({"cluster": 3, "grid": 4}, InvalidValueError, "multiple of the cluster"),
        ({"cluster": 32, "grid": 32}, InvalidValueError, "at most 16"),
        ({"kernel": "other"}, InvalidValueError, "no kernel"),
        ({"dynamic_shared": 1 << 20}, InvalidValueError, "dynamic_shared"),
        ({"schedule": "sometimes"}, InvalidValueError, "schedule"),
        ({"args": 4}, InvalidTypeError, "args must be a sequence"),
        ({"arch": "sm_1"}, InvalidValueError, "not a known architecture"),
        ({"args": [1.5]}, CuteError, "can't hold the float"),
        ({"args": [1, 2]}, InvalidValueError, "2 arguments"),
        ({"args": [np.zeros((8, 8), np.uint32)[:, ::2]]}, CuteError, "contiguous"),
    ],
)
def test_launches_that_are_refused(change: dict[str, Any], error: type[CuteError], said: str) -> None:
    options: dict[str, Any] = {"args": [np.zeros(64, np.uint32)], **change}
    with pytest.raises(error, match=said):
        cute.run_ptx(program("ret;"), **options)


def test_what_is_not_there_is_refused_with_its_line_before_anything_runs() -> None:
    out = np.zeros(64, np.uint32)
    text = program(
        "st.global.u32 [%rd3], 1;\ntcgen05.shift.cta_group::1.down [%r1];\nmultimem.red.global.add.u32 [%rd3], 1;\nret;"
    )
    with pytest.raises(InvalidValueError, match="2 instructions can't be run") as caught:
        cute.run_ptx(text, args=[out])
    assert "line 11: tcgen05.shift.cta_group::1.down needs an a or f variant of sm_100" in str(caught.value)
    assert not out.any()


@pytest.mark.parametrize("text", ["", "hello\n", HEAD, HEAD + ".entry k() {", HEAD + ".entry k() { bra X; }"])
def test_texts_that_are_no_program(text: str) -> None:
    with pytest.raises((ParseError, InvalidValueError)):
        cute.run_ptx(text + "\n")


def test_a_thread_is_traced() -> None:
    body = "setp.lt.u32 %p1, %r1, 5;\n@%p1 bra A;\nmov.u32 %r5, 1;\nA: st.global.u32 [%rd3], %r4;\nret;"
    found, _ = run(program(body))
    assert "mov.u32 %r5, 1" not in [text for _, text in found.trace(3)]
    assert "mov.u32 %r5, 1" in [text for _, text in found.trace(9)]


def test_arrays_that_share_memory_share_addresses() -> None:
    """The kernel writes one half of an array, of which the other argument is the whole."""
    whole = np.zeros(128, np.uint32)
    body = "ld.param.u64 %rd4, [other]; add.s64 %rd5, %rd4, %rd2; st.global.u32 [%rd5+256], %r4; ret;"
    cute.run_ptx(program(body, more=", .param .u64 other"), args=[whole[64:], whole]).raise_for_diagnostics()
    assert whole[64:].tolist() == list(range(64))


def test_a_kernel_without_instructions_has_no_return() -> None:
    text = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry empty()\n{\n}\n"
    run = cute.run_ptx(text, block=32, schedule="eager")
    assert [one.rule for one in run.diagnostics] == ["no return"]


def test_the_alignment_behind_ptr_is_not_that_of_the_parameter() -> None:
    """A pointer behind an odd number of 32-bit parameters lies at a multiple of 8 bytes."""
    text = f"""{HEAD}.visible .entry k(.param .u64 .ptr .global .align 1 out, .param .u32 more,
    .param .u64 .ptr .global .align 1 source) .reqntid 32 {{
    .reg .b32 %r<4>; .reg .b64 %rd<6>; mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4;
    ld.param.u64 %rd2, [out]; ld.param.u64 %rd3, [source]; ld.param.u32 %r2, [more];
    add.u64 %rd2, %rd2, %rd1; add.u64 %rd3, %rd3, %rd1;
    ld.global.u32 %r3, [%rd3]; add.u32 %r3, %r3, %r2; st.global.u32 [%rd2], %r3; ret; }}"""
    out, source = np.zeros(32, np.uint32), np.arange(32, dtype=np.uint32)
    found = cute.run_ptx(text, args=[out, 5, source])
    assert found.ok, found.explain()
    assert out.tolist() == [n + 5 for n in range(32)]


GRID_SYNC = """.version 8.7
.target sm_90a
.address_size 64
.entry k(.param .u64 x) .reqntid 32 {
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
  mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %rd1, {%r2, %r1};
  setp.ne.u64 %p1, %rd1, 0;
  @%p1 bra HAS;
  trap;
HAS: ld.param.u64 %rd2, [x]; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %nctaid.x; mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd4, %rd2, %rd3; mov.u32 %r5, %tid.x; setp.ne.u32 %p1, %r5, 0;
  @%p1 bra DONE;
  st.global.u32 [%rd4], %r3;
  sub.u32 %r6, 0x80000001, %r4; setp.ne.u32 %p2, %r3, 0; selp.u32 %r6, 1, %r6, %p2;
  fence.acq_rel.gpu;
  atom.add.release.gpu.u32 %r7, [%rd1+4], %r6;
SPIN: ld.acquire.gpu.u32 %r8, [%rd1+4]; xor.b32 %r8, %r8, %r7; setp.ge.s32 %p2, %r8, 0;
  @%p2 bra SPIN;
  add.u32 %r3, %r3, 1; rem.u32 %r3, %r3, %r4; mul.wide.u32 %rd3, %r3, 4; add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r8, [%rd5]; mul.wide.u32 %rd6, %r4, 4; add.s64 %rd4, %rd4, %rd6; st.global.u32 [%rd4], %r8;
DONE: ret;
}
"""
"""The code of `cooperative_groups::this_grid().sync()` between a store and a load of the next CTA's number."""


@pytest.mark.parametrize("schedule", ["eager", "lazy", 1])
def test_a_cooperative_launch(schedule: str | int) -> None:
    x = np.zeros(80, np.uint32)
    run = cute.run_ptx(GRID_SYNC, grid=40, args=[x], cooperative=True, schedule=schedule)
    assert not run.diagnostics, run.explain()
    assert x.tolist() == [*range(40), *range(1, 40), 0]


def test_a_launch_that_is_not_cooperative_has_no_workspace() -> None:
    run = cute.run_ptx(GRID_SYNC, grid=2, args=[np.zeros(4, np.uint32)])
    assert [one.rule for one in run.diagnostics] == ["trap"]


def test_a_cooperative_launch_must_fit() -> None:
    with pytest.raises(InvalidValueError, match="can run together"):
        cute.run_ptx(GRID_SYNC, grid=5000, args=[np.zeros(10000, np.uint32)], cooperative=True)
