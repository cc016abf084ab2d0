"""Transfers, clusters, memories: bulk copies, groups, remote barriers, maps that a kernel edits, generic addresses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py.tma import TensorMapDataType, TensorMapTiled
from tests.machine.test_programs import program, run

SCHEDULES = ("eager", "lazy", 1, 2)
WAIT = "{ .reg .pred w; L: mbarrier.try_wait.parity.shared::cta.b64 w, [%r20], %r21; @!w bra L; }"
START = "setp.eq.u32 %p1, %r1, 0; mov.u32 %r20, bar; mov.u32 %r21, 0; mov.u32 %r22, tile;"
SHARED = ".shared .align 128 .b8 tile[2048]; .shared .align 8 .b64 bar;"
READ = "shl.b32 %r6, %r1, 2; add.u32 %r7, %r22, %r6; ld.shared.u32 %r8, [%r7]; st.global.u32 [%rd3], %r8;"


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_bulk_copy_in_and_a_bulk_reduction_out(schedule: str | int) -> None:
    body = f"""{START}
    @%p1 mbarrier.init.shared::cta.b64 [%r20], 1; bar.sync 0; ld.param.u64 %rd4, [from]; ld.param.u64 %rd5, [to];
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r20], 256;
    @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r22], [%rd4], 256, [%r20];
    {WAIT} {READ} fence.proxy.async;
    @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd5], [%r22], 256;
    @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0; ret;"""
    source, target = np.arange(64, dtype=np.uint32), np.full(64, 1000, np.uint32)
    text = program(body, before=SHARED, more=", .param .u64 from, .param .u64 to")
    found, out = run(text, rest=[source, target], schedule=schedule)
    assert found.ok, found.explain()
    assert out.tolist() == list(range(64))
    assert target.tolist() == [1000 + n for n in range(64)]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_multicast_brings_each_cta_its_copy(schedule: str | int) -> None:
    """Two CTAs load one half of 512 bytes each, for both."""
    body = f"""{START}
    @%p1 mbarrier.init.shared::cta.b64 [%r20], 1; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mov.u32 %r5, %cluster_ctarank; mul.lo.u32 %r9, %r5, 256; cvt.u64.u32 %rd6, %r9; ld.param.u64 %rd4, [from];
    add.s64 %rd4, %rd4, %rd6; add.u32 %r10, %r22, %r9; mov.u16 %h1, 3;
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r20], 512;
    @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
      [%r10], [%rd4], 256, [%r20], %h1;
    {WAIT} {READ} barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret;"""
    source = np.arange(128, dtype=np.uint32)
    text = program(body, before=SHARED, more=", .param .u64 from", threads=128)
    found, out = run(text, 256, grid=2, cluster=2, rest=[source], schedule=schedule)
    assert found.ok, found.explain()
    assert out.tolist() == list(range(128)) * 2


@pytest.mark.parametrize("judge", [True, False])
@pytest.mark.parametrize("copy", ["bulk", "tensor"])
def test_a_multicast_to_a_cta_outside_of_the_cluster(copy: str, judge: bool) -> None:
    what = {
        "bulk": "bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r22], [%rd4], 256,",
        "tensor": "bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r22], "
        "[%rd4, {%r21}],",
    }[copy]
    body = f"""{START}
    @%p1 mbarrier.init.shared::cta.b64 [%r20], 1; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    ld.param.u64 %rd4, [from]; mov.u16 %h1, 7;
    @%p1 cp.async.{what} [%r20], %h1; ret;"""
    request = TensorMapTiled(TensorMapDataType.UINT32, 4096, (64,), (), (64,))
    source = np.arange(128, dtype=np.uint32)
    more = ", .param .u64 from"
    if copy == "tensor":
        body = body.replace("ld.param.u64 %rd4, [from];", "mov.b64 %rd4, from;")
        more = ", .param .align 64 .b8 from[128]"
    text = program(body, before=SHARED, more=more, threads=64)
    rest: list[Any] = [(request, source)] if copy == "tensor" else [source]
    found, _ = run(text, 128, grid=2, cluster=2, rest=rest, judge=judge)
    assert [one.rule for one in found.diagnostics if one.rule == "cluster rank"] == ["cluster rank"], found.explain()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_arrivals_and_stores_at_a_neighbour(schedule: str | int) -> None:
    """Each thread stores its number to the other CTA, whose barrier counts bytes; then arrives there."""
    body = f"""{START}
    @%p1 mbarrier.init.shared::cta.b64 [%r20], 65; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mov.u32 %r5, %cluster_ctarank; xor.b32 %r5, %r5, 1; mapa.shared::cluster.u32 %r9, %r22, %r5;
    mapa.shared::cluster.u32 %r10, %r20, %r5; shl.b32 %r6, %r1, 2; add.u32 %r9, %r9, %r6;
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r20], 256;
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r9], %r4, [%r10];
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10];
    {WAIT} {READ} barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret;"""
    found, out = run(program(body, before=SHARED), 128, grid=2, cluster=2, schedule=schedule)
    assert found.ok, found.explain()
    assert [one.rule for one in found.diagnostics] == ["initialisation not fenced"], found.explain()
    assert out.tolist() == [*range(64, 128), *range(64)]


@pytest.mark.parametrize("noinc", ["", ".noinc"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_cp_async_arrives_when_it_is_done(noinc: str, schedule: str | int) -> None:
    body = f"""{START}
    @%p1 mbarrier.init.shared::cta.b64 [%r20], 64; bar.sync 0; ld.param.u64 %rd4, [from]; add.s64 %rd4, %rd4, %rd2;
    shl.b32 %r6, %r1, 2; add.u32 %r7, %r22, %r6; cp.async.ca.shared.global [%r7], [%rd4], 4;
    cp.async.mbarrier.arrive{noinc}.shared::cta.b64 [%r20];
    {"" if noinc else "mbarrier.arrive.shared::cta.b64 _, [%r20];"}
    {WAIT} {READ} ret;"""
    source = np.arange(64, dtype=np.uint32) * 3
    found, out = run(program(body, before=SHARED, more=", .param .u64 from"), rest=[source], schedule=schedule)
    assert found.ok, found.explain()
    assert out.tolist() == source.tolist()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_cp_async_arrives_at_the_barrier_of_its_own_cta(schedule: str | int) -> None:
    """The CTAs of a cluster run together, and each exits after its own copies."""
    body = f"""{START}
    @%p1 mbarrier.init.shared::cta.b64 [%r20], 64; bar.sync 0; ld.param.u64 %rd4, [from]; add.s64 %rd4, %rd4, %rd2;
    shl.b32 %r6, %r1, 2; add.u32 %r7, %r22, %r6; cp.async.ca.shared.global [%r7], [%rd4], 4;
    cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r20]; {WAIT} {READ} ret;"""
    source = np.arange(128, dtype=np.uint32) * 3
    text = program(body, before=SHARED, more=", .param .u64 from")
    found, _ = run(text, 128, grid=2, cluster=2, rest=[source], schedule=schedule)
    assert not found.diagnostics, found.explain()


def test_bytes_that_cp_async_leaves_out_are_zero() -> None:
    body = f"""{START}
    ld.param.u64 %rd4, [from]; mul.wide.u32 %rd5, %r1, 16; add.s64 %rd4, %rd4, %rd5; shl.b32 %r6, %r1, 4;
    add.u32 %r7, %r22, %r6; and.b32 %r8, %r1, 15; setp.gt.u32 %p2, %r1, 31;
    cp.async.cg.shared.global [%r7], [%rd4], 16, %r8; cp.async.commit_group; cp.async.wait_group 0;
    @%p2 cp.async.cg.shared.global [%r7], [%rd4], 16, 0; cp.async.wait_all;
    ld.shared.v4.u32 {{%r9, %r10, %r11, %r12}}, [%r7]; xor.b32 %r9, %r9, %r12; st.global.u32 [%rd3], %r9; ret;"""
    source = np.random.default_rng(2).integers(0, 1 << 32, (64, 4), dtype=np.uint32)
    found, out = run(program(body, before=SHARED, more=", .param .u64 from"), rest=[source])
    assert found.ok, found.explain()
    for n in range(64):
        held = source[n].copy().view(np.uint8)
        held[0 if n > 31 else n & 15 :] = 0
        words = held.view(np.uint32)
        assert out[n] == words[0] ^ words[3]


def test_a_map_that_the_kernel_edits() -> None:
    """The map points nowhere at first: address and row count are set on the device, then a tile is loaded."""
    request = cute.tma.TensorMapTiled(2, 0, (16, 4), (64,), (16, 4))
    body = f"""{START}
    ld.param.u64 %rd4, [map]; ld.param.u64 %rd5, [from]; setp.ne.u32 %p2, %r1, 0; @%p2 bra GO;
    tensormap.replace.tile.global_address.global.b1024.b64 [%rd4], %rd5;
    tensormap.replace.tile.global_dim.global.b1024.b32 [%rd4], 1, 3;
    fence.proxy.tensormap::generic.release.gpu; fence.proxy.tensormap::generic.acquire.gpu [%rd4], 128;
    mbarrier.init.shared::cta.b64 [%r20], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r20], 256;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r22], [%rd4, {{0, 0}}], [%r20];
    GO: bar.sync 0; {WAIT} {READ} ret;"""
    held = np.frombuffer(cute.tma.encode(request), np.uint8).copy()
    source = np.arange(1, 65, dtype=np.uint32)
    text = program(body, before=SHARED, more=", .param .u64 map, .param .u64 from")
    found, out = run(text, rest=[held, source], schedule="eager")
    assert found.ok, found.explain()
    assert out.tolist() == [*range(1, 49), *[0] * 16]


def test_generic_addresses_in_three_memories_at_once() -> None:
    """A third of the threads each load through one pointer from shared, local and global memory."""
    body = """
    .local .align 8 .b8 own[8]; mov.u64 %rd4, own; st.local.u32 [%rd4], 222; cvta.local.u64 %rd4, %rd4;
    mov.u64 %rd5, place; st.shared.u32 [place], 111; cvta.shared.u64 %rd5, %rd5; ld.param.u64 %rd6, [other]; bar.sync 0;
    rem.u32 %r5, %r1, 3; setp.eq.u32 %p1, %r5, 0; setp.eq.u32 %p2, %r5, 1;
    selp.b64 %rd7, %rd4, %rd6, %p2; selp.b64 %rd7, %rd5, %rd7, %p1; ld.u32 %r6, [%rd7];
    isspacep.shared %p3, %rd7; selp.u32 %r7, 1000, 0, %p3; add.u32 %r6, %r6, %r7; st.global.u32 [%rd3], %r6; ret;"""
    text = program(body, before=".shared .align 4 .b8 place[4];", more=", .param .u64 other")
    found, out = run(text, rest=[np.array([333], np.uint32)])
    assert found.ok, found.explain()
    assert out[:6].tolist() == [1111, 222, 333, 1111, 222, 333]


def test_pointers_into_several_arguments_at_once() -> None:
    body = """
    ld.param.u64 %rd4, [a]; ld.param.u64 %rd5, [b]; and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0;
    selp.b64 %rd6, %rd4, %rd5, %p1; add.s64 %rd6, %rd6, %rd2; ld.global.u32 %r6, [%rd6]; st.global.u32 [%rd6], %r1;
    st.global.u32 [%rd3], %r6; ret;"""
    a, b = np.arange(64, dtype=np.uint32), np.arange(64, dtype=np.uint32) + 500
    found, out = run(program(body, more=", .param .u64 a, .param .u64 b"), rest=[a, b])
    assert found.ok, found.explain()
    assert out.tolist() == [n + 500 * (n % 2) for n in range(64)]
    assert b[1::2].tolist() == list(range(1, 64, 2))


def test_more_ctas_than_are_resident_run_in_waves() -> None:
    """A CTA with most of the shared memory that there is: 132 at a time."""
    body = "mov.u32 %r5, big; st.shared.u32 [%r5], %r4; bar.warp.sync 0xffffffff; ld.shared.u32 %r6, [%r5];"
    body += "st.global.u32 [%rd3], %r6; ret;"
    text = program(body, before=".extern .shared .align 16 .b8 big[];", threads=32)
    found, out = run(text, 300 * 32, grid=300, dynamic_shared=200_000)
    assert found.ok, found.explain()
    assert (out.reshape(300, 32) == 32 * np.arange(300)[:, None] + 31).all()


def test_structures_with_pointers_and_constants() -> None:
    before = (
        ".const .align 4 .f32 table[4] = {0f3F800000, 2.0, 3.5, -4.0}; .global .align 8 .u64 link = generic(table);"
    )
    body = """
    ld.param.u32 %r5, [s+8]; ld.param.u64 %rd4, [s]; and.b32 %r6, %r1, 3; mul.wide.u32 %rd5, %r6, 4;
    mov.u64 %rd6, link; ld.global.u64 %rd7, [%rd6]; add.s64 %rd7, %rd7, %rd5; ld.f32 %f1, [%rd7];
    cvt.rn.f32.u32 %f2, %r5; mul.f32 %f1, %f1, %f2; add.s64 %rd8, %rd4, %rd2; st.global.f32 [%rd8], %f1; ret;"""
    text = program(body, before=before, more=", .param .align 8 .b8 s[16]")
    target = np.zeros(64, np.float32)
    structure: Any = ((0).to_bytes(8, "little") + (10).to_bytes(8, "little"), {0: target})
    found, _ = run(text, rest=[structure])
    assert found.ok, found.explain()
    assert target[:5].tolist() == [10.0, 20.0, 35.0, -40.0, 10.0]


def test_a_reduction_over_a_barrier() -> None:
    body = """
    and.b32 %r5, %r1, 7; setp.eq.u32 %p1, %r5, 0; bar.red.popc.u32 %r6, 0, %p1; setp.lt.u32 %p2, %r1, 70;
    bar.red.and.pred %p3, 1, %p2; bar.red.or.pred %p4, 2, %p1; selp.u32 %r7, 100, 0, %p3; selp.u32 %r8, 1000, 0, %p4;
    add.u32 %r6, %r6, %r7; add.u32 %r6, %r6, %r8; st.global.u32 [%rd3], %r6; ret;"""
    for schedule in (*SCHEDULES, 3):
        found, out = run(program(body), schedule=schedule)
        assert found.ok, found.explain()
        assert set(out.tolist()) == {1108}


def test_a_32_bit_address_and_a_number_wrap() -> None:
    """NVRTC moves a number out of a 32-bit sum, so the register may contain a negative number."""
    body = """mov.u32 %r20, tile; shl.b32 %r6, %r1, 2; add.u32 %r7, %r20, %r6; st.shared.u32 [%r7], %r1;
    add.u32 %r8, %r7, -4096; ld.shared.u32 %r9, [%r8+4096]; st.global.u32 [%rd3], %r9; ret;"""
    found, out = run(program(body, before=".shared .align 4 .b8 tile[1024];"))
    assert found.ok, found.explain()
    assert out.tolist() == list(range(len(out)))
