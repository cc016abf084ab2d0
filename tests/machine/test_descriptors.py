"""Descriptors of wgmma beside tiles that tensor copies and cp.async wrote: sound ones, and wrong ones."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_py as cute

BFLOAT16 = 9
HEAD = (
    ".version 8.7\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 tiles[9216];\n.shared .align 8 .b64 bar;\n"
)
DESCRIPTORS = """
shr.u32 %r20, %r10, 4; add.u32 %r21, %r10, 8192; shr.u32 %r21, %r21, 4;
add.u32 %r20, %r20, A_MORE; or.b32 %r20, %r20, 0x10000; or.b32 %r21, %r21, 0x10000;
mov.u32 %r22, A_HIGH; mov.u32 %r23, B_HIGH;
"""
PRODUCTS = "wgmma.fence.sync.aligned;\n" + "".join(
    f"""add.u32 %r24, %r20, {2 * k}; add.u32 %r25, %r21, {2 * k};
mov.b64 %rd10, {{%r24, %r22}}; mov.b64 %rd11, {{%r25, %r23}};
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16
  {{%f0, %f1, %f2, %f3}}, %rd10, %rd11, {"%p3" if k else "%p4"}, 1, 1, 0, 0;
"""
    for k in range(4)
)  # fmt: skip
FINISH = """wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
shr.u32 %r11, %r1, 5; and.b32 %r12, %r1, 31; shr.u32 %r13, %r12, 2; and.b32 %r14, %r12, 3;
shl.b32 %r15, %r11, 4; add.u32 %r15, %r15, %r13; shl.b32 %r15, %r15, 3; shl.b32 %r16, %r14, 1; add.u32 %r15, %r15, %r16;
mul.wide.u32 %rd5, %r15, 4; add.s64 %rd6, %rd1, %rd5;
st.global.v2.f32 [%rd6], {%f0, %f1}; st.global.v2.f32 [%rd6+256], {%f2, %f3}; ret; }
"""
REGISTERS = ".reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<8>;\n"
START = """mov.u32 %r1, %tid.x; mov.u32 %r10, tiles; ld.param.u64 %rd1, [out];
setp.eq.u32 %p3, %r1, %r1; setp.ne.u32 %p4, %r1, %r1; setp.ne.u32 %p1, %r1, 0;
"""
BY_TMA = """@%p1 bra READY;
mbarrier.init.shared.b64 [bar], 1; fence.proxy.async;
READY: bar.sync 0;
@%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], 9216;
mov.b64 %rd2, a; mov.b64 %rd3, b; add.u32 %r11, %r10, 8192; mov.u32 %r12, 0;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%rd2, {%r12, %r12}], [bar];
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r11], [%rd3, {%r12, %r12}], [bar];
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;
"""
BY_THREADS = """ld.param.u64 %rd2, [a]; ld.param.u64 %rd3, [b]; mov.u32 %r30, %r1;
FILL: shr.u32 %r31, %r30, 3; and.b32 %r32, %r30, 7; and.b32 %r33, %r31, 7; xor.b32 %r34, %r32, %r33;
shl.b32 %r35, %r31, 7; shl.b32 %r36, %r34, 4; add.u32 %r35, %r35, %r36; add.u32 %r35, %r10, %r35;
mul.wide.u32 %rd7, %r30, 16; add.s64 %rd8, %rd2, %rd7;
setp.ge.u32 %p5, %r30, 512; add.s64 %rd9, %rd3, %rd7; @%p5 add.s64 %rd8, %rd9, -8192;
cp.async.cg.shared.global [%r35], [%rd8], 16;
add.u32 %r30, %r30, 128; setp.lt.u32 %p6, %r30, 576; @%p6 bra FILL;
cp.async.wait_all; fence.proxy.async; bar.sync 0;
"""
SW128, SW64, PLAIN = 0x40000040, 0x80000040, 0x00000040


def run(by_tma: bool, a_high: int = SW128, b_high: int = SW128, a_more: int = 0, swizzle: int = 3,
        edit: Any = str) -> tuple[Any, bool]:  # fmt: skip
    """A product of 64 x 64 and 8 x 64, and whether it is right. edit: changes the text."""
    dice = np.random.default_rng(5)
    a, b = (dice.integers(-3, 4, (rows, 64)).astype(ml_dtypes.bfloat16) for rows in (64, 8))
    out = np.zeros((64, 8), np.float32)
    maps = [cute.tma.TensorMapTiled(BFLOAT16, 0, (64, rows), (128,), (64, rows), swizzle=swizzle) for rows in (64, 8)]
    kind = ".param .align 64 .b8 a[128], .param .align 64 .b8 b[128]" if by_tma else ".param .u64 a, .param .u64 b"
    body = (BY_TMA if by_tma else BY_THREADS) + DESCRIPTORS + PRODUCTS + FINISH
    for name, value in (("A_HIGH", a_high), ("B_HIGH", b_high), ("A_MORE", a_more)):
        body = body.replace(name, str(value))
    text = f"{HEAD}.visible .entry k(.param .u64 out, {kind}) .reqntid 128 {{\n{REGISTERS}{START}{body}"
    args = [out, (maps[0], a), (maps[1], b)] if by_tma else [out, a, b]
    found = cute.run_ptx(edit(text), args=args)
    return found, bool((out == a.astype(np.float32) @ b.astype(np.float32).T).all())


@pytest.mark.parametrize("by_tma", [True, False])
def test_a_descriptor_that_reads_the_tile_as_it_was_written(by_tma: bool) -> None:
    found, right = run(by_tma)
    assert right
    assert found.ok, found.explain()
    assert not [one for one in found.diagnostics if one.rule.startswith(("descriptor", "tile"))]


@pytest.mark.parametrize("by_tma", [True, False])
@pytest.mark.parametrize(("high", "width"), [(SW64, 64), (PLAIN, 16)])
@pytest.mark.parametrize("operand", ["a_high", "b_high"])
def test_another_swizzle_than_the_tile_was_written_with(by_tma: bool, high: int, width: int, operand: str) -> None:
    found, right = run(by_tma, **{operand: high})
    rules = [one for one in found.diagnostics if one.rule == "descriptor swizzle"]
    assert not right
    assert rules, found.explain()
    assert {one.facts["swizzle"] for one in rules} == {width}
    assert {one.facts["written with"] for one in rules} == {128}


def test_another_swizzle_of_the_map_than_the_descriptor_has() -> None:
    found, right = run(True, swizzle=0)
    assert not right
    assert "descriptor swizzle" in [one.rule for one in found.diagnostics], found.explain()


@pytest.mark.parametrize(("more", "rule"), [(8, "descriptor address"), (64, "descriptor address")])
def test_a_start_in_another_row_and_a_start_in_another_tile(more: int, rule: str) -> None:
    """128 bytes on is row 1 of the pattern; 1024 bytes on, the last rows of A are those of B."""
    found, right = run(True, a_more=more)
    assert not right
    assert rule in [one.rule for one in found.diagnostics], found.explain()


READS_THE_FIRST_ROWS = "shl.b32 %r30, %r1, 3; add.u32 %r30, %r10, %r30; ld.shared.b64 %rd12, [%r30];\n"
"""1024 bytes: eight rows of A."""


def test_rows_that_cp_async_copied_and_nothing_reads() -> None:
    """1024 bytes on, the products leave the first eight rows of A unread, half of what one cp.async copied."""
    found, right = run(False, a_more=64)
    one, *others = [one for one in found.diagnostics if one.rule == "tile read in part"]
    assert not right
    assert not others
    assert one.severity == "warning"
    assert one.facts["bytes"] == 1024
    assert "products read 1024 of the 2048 bytes that cp.async copied" in one.message


def test_rows_that_threads_read_are_read() -> None:
    found, _ = run(False, a_more=64, edit=lambda text: text.replace(FINISH, READS_THE_FIRST_ROWS + FINISH))
    assert "tile read in part" not in [one.rule for one in found.diagnostics], found.explain()
