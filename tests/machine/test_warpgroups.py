"""Products of warpgroups in CTAs whose threads are no multiple of 128, and operands outside of shared memory."""

from __future__ import annotations

import numpy as np
import pytest

import cute_py as cute
from tests.each import each_of

A_OFFSETS, B_OFFSETS = (1024, 128), (128, 128)
"""Leading and stride byte offsets without a swizzle: A of 64 rows, B of 8."""


def product(a_offsets: tuple[int, int] = A_OFFSETS, b_offsets: tuple[int, int] = B_OFFSETS) -> str:
    """A kernel where the first 128 threads of each CTA multiply matrices of ones; each stores its first sum."""
    (a_low, a_high), (b_low, b_high) = ((low >> 4 << 16, high >> 4) for low, high in (a_offsets, b_offsets))
    return f"""
.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{{
.shared .align 128 .b8 tiles[2304];
.reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<8>; .reg .f32 %f<8>;
mov.u32 %r1, %tid.x; mov.u32 %r2, tiles; mov.u32 %r3, %r1; mov.u32 %r4, 0x3f803f80;
FILL: mad.lo.u32 %r5, %r3, 4, %r2; st.shared.u32 [%r5], %r4;
add.u32 %r3, %r3, %ntid.x; setp.lt.u32 %p1, %r3, 576; @%p1 bra FILL;
fence.proxy.async; bar.sync 0;
setp.ge.u32 %p2, %r1, 128; @%p2 bra END;
and.b32 %r6, %r2, 0x3ffff; shr.u32 %r6, %r6, 4; add.u32 %r7, %r6, 128; or.b32 %r6, %r6, {a_low};
or.b32 %r7, %r7, {b_low};
mov.u32 %r8, {a_high}; mov.u32 %r9, {b_high}; mov.b64 %rd1, {{%r6, %r8}}; mov.b64 %rd2, {{%r7, %r9}};
mov.f32 %f0, 0.0; mov.f32 %f1, 0.0; mov.f32 %f2, 0.0; mov.f32 %f3, 0.0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {{%f0, %f1, %f2, %f3}}, %rd1, %rd2, 1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
mov.u32 %r10, %ctaid.x; mad.lo.u32 %r11, %r10, 128, %r1; ld.param.u64 %rd3, [out];
mad.wide.u32 %rd4, %r11, 4, %rd3; st.global.f32 [%rd4], %f0;
END: ret;
}}
"""


@pytest.mark.parametrize("schedule", ["eager", "lazy", 1])
@pytest.mark.parametrize(("block", "cluster"), [(128, 1), (160, 1), (160, 2), (288, 2), (150, 1)])
def test_a_whole_warpgroup_multiplies_beside_other_warps(block: int, cluster: int, schedule: str | int) -> None:
    out = np.zeros(512, np.float32)
    run = cute.run_ptx(product(), block=block, grid=4, cluster=cluster, args=[out], schedule=schedule)
    assert not run.diagnostics, run.explain()
    assert (out == 16).all()


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_an_error_of_a_product_is_found_in_every_cta(schedule: str) -> None:
    """The second warpgroup of a CTA of 160 threads begins at thread 128, and that of the next CTA at thread 160."""
    text = product().replace("wgmma.wait_group.sync.aligned 0;\n", "")
    run = cute.run_ptx(text, block=160, grid=2, args=[np.zeros(256, np.float32)], schedule=schedule)
    assert "registers in use" in {one.rule for one in run.diagnostics}
    text = product().replace("fence.proxy.async; ", "")
    (found,) = cute.run_ptx(text, block=160, args=[np.zeros(256, np.float32)], schedule=schedule).diagnostics
    assert found.rule == "missing proxy fence"


GROUPS = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry k()
{
wgmma.fence.sync.aligned;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
ret;
}
"""


@each_of("block", [32, 96, 120, 127, 129, 160, 300])
def test_an_incomplete_warpgroup_must_not_execute_wgmma(block: int) -> None:
    run = cute.run_ptx(GROUPS, block=block)
    first = block // 128 * 128
    who = f"threads {first} to {block - 1}" if block - first > 1 else f"thread {first}"
    verb = "execute" if block - first > 1 else "executes"
    assert [one.text.partition(": ")[2] for one in run.diagnostics] == [
        f"CTA (0, 0, 0), {who} {verb} wgmma.{name}, but the warpgroup is incomplete, because the CTA has {block} "
        f"threads; all 128 threads of a warpgroup must execute it"
        for name in ("fence", "commit_group", "wait_group")
    ]
    assert {(one.rule, one.facts["cause"]) for one in run.diagnostics} == {
        ("divergent aligned instruction", "incomplete warpgroup")
    }
    assert "try: Launch CTAs with a multiple of 128 threads" in run.explain()


@each_of("block", [128, 256, 1024])
def test_whole_warpgroups_execute_wgmma(block: int) -> None:
    assert not cute.run_ptx(GROUPS, block=block, grid=2).diagnostics


@pytest.mark.parametrize(
    ("block", "first", "end", "who"),
    [
        (160, 0, 160, "threads 128 to 159 execute"),
        (288, 128, 288, "threads 256 to 287 execute"),
        (129, 0, 129, "thread 128 executes"),
        (256, 0, 192, "threads 128 to 191 execute"),
    ],
)
def test_a_product_names_only_incomplete_warpgroups(block: int, first: int, end: int, who: str) -> None:
    ends = f"setp.lt.u32 %p2, %r1, {first}; @%p2 bra END;\nsetp.ge.u32 %p2, %r1, {end};"
    text = product().replace("setp.ge.u32 %p2, %r1, 128;", ends)
    run = cute.run_ptx(text, block=block, args=[np.zeros(1024, np.float32)])
    assert {one.rule for one in run.diagnostics} == {"divergent aligned instruction"}
    assert {one.facts["cause"] for one in run.diagnostics} == {"incomplete warpgroup"}
    assert {one.facts["threads"] for one in run.diagnostics} == {f"CTA (0, 0, 0), {who.rpartition(' ')[0]}"}
    said = f"CTA (0, 0, 0), {who} wgmma, but all threads of a warpgroup of 4 warps must execute it"
    assert said in [one.text.partition(": ")[2] for one in run.diagnostics]


def test_a_lane_alone_is_named_with_its_own_verb() -> None:
    text = GROUPS.replace(
        "wgmma.wait_group",
        ".reg .b32 %r<4>; mov.u32 %r1, 0;\nmovmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;\nwgmma.wait_group",
    )
    said = [one.message for one in cute.run_ptx(text, block=(3, 43)).diagnostics]
    assert any("thread 128 executes movmatrix, but all threads of a warp must execute it" in one for one in said)
    assert any("thread 128 executes wgmma.fence, but the warpgroup is incomplete" in one for one in said)


def test_an_operand_outside_of_shared_memory_is_named_with_its_offsets() -> None:
    for operand, text, address, lead, stride in (
        ("A", product(a_offsets=(128, 1024)), 0x400 + 7 * 1024 + 128 + 126, 128, 1024),
        ("B", product(b_offsets=(4096, 128)), 0x400 + 2048 + 4096 + 126, 4096, 128),
    ):
        (found,) = cute.run_ptx(text, block=128, args=[np.zeros(128, np.float32)]).diagnostics
        start = 0x400 if operand == "A" else 0xC00
        assert found.message.endswith(
            f"operand {operand} of wgmma reads shared address {address:#x}; must be within 0x400 to 0xd00, the 2304 "
            f"bytes of shared memory; its descriptor has the start address {start:#x}, the leading byte offset {lead} "
            f"and the stride byte offset {stride}"
        )
