"""What the chips of the Blackwell family have and have not, and loads of pairs of CTAs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py.errors import InvalidValueError
from tests.machine.tensor_kernels import kernel, run

HEAD = """.version 9.0
.target {target}
.address_size 64
.shared .align 16 .b8 smem[256];
.visible .entry k() .reqntid 32
{{ .reg .b32 %r<40>; .reg .f32 %f<20>; .reg .b16 %rs<9>; .reg .b64 %rd<9>; .reg .pred %p<3>; {body} ret; }}
"""
D, A, B, C = "{%f0, %f1, %f2, %f3}", "{%r0, %r1, %r2, %r3}", "{%r4, %r5}", "{%f4, %f5, %f6, %f7}"
SCALES = C + ", %r6, {%rs0, %rs1}, %r7, {%rs0, %rs1}"
ROW_COL = "mma.sync.aligned.m16n8"
NARROW = (
    f"{ROW_COL}k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32 {D}, {A}, {B}, {C};",
    f"{ROW_COL}k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0 {D}, {A}, {B}, {SCALES};",
    f"{ROW_COL}k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 {D}, {A}, {B}, {SCALES};",
    f"{ROW_COL}k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 {D}, {A}, {B}, {SCALES};",
)
"""mma.sync of sm_120 and sm_121."""


@pytest.mark.parametrize("target", ["sm_120a", "sm_121a"])
@pytest.mark.parametrize("text", NARROW)
def test_narrow_products_of_warps_run(target: str, text: str) -> None:
    found = cute.run_ptx(HEAD.format(target=target, body=f"mov.u16 %rs0, 0; mov.u16 %rs1, 1; {text}"))
    assert found.ok, found.explain()


@pytest.mark.parametrize("text", NARROW)
def test_sparse_narrow_products_of_warps_are_refused_by_name(text: str) -> None:
    sparse = text.replace("mma.sync.aligned", "mma.sp::ordered_metadata.sync.aligned")
    with pytest.raises(InvalidValueError) as error:
        cute.run_ptx(HEAD.format(target="sm_120a", body=sparse))
    assert sparse.split()[0] in str(error.value)


@pytest.mark.parametrize("target", ["sm_120a", "sm_121f", "sm_100", "sm_90a"])
def test_targets_without_tensor_memory(target: str) -> None:
    words = (
        f"tcgen05.wait::ld.sync.aligned needs an a or f variant of sm_100, sm_103 or sm_110; the kernel is for {target}"
    )
    with pytest.raises(InvalidValueError, match=words):
        cute.run_ptx(HEAD.format(target=target, body="tcgen05.wait::ld.sync.aligned;"))


@pytest.mark.parametrize("target", ["sm_100a", "sm_100f", "sm_103a", "sm_110a"])
def test_targets_with_tensor_memory(target: str) -> None:
    found, words = run(kernel("").replace("sm_103a", target).replace(".version 8.8", ".version 9.0"), schedule="eager")
    assert not found.diagnostics, found.explain()
    assert not words[0, :, :64].any()


# ---- pairs of CTAs ---------------------------------------------------------------------------------------------------

PAIR = """.version 8.8
.target sm_100a
.address_size 64
.shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 bar;
.visible .entry k(.param .u64 out, .param .align 64 .b8 map[128]) .reqntid 32 .reqnctapercluster 2
{
  .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<30>; .reg .b64 %rd<8>;
  mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
  mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; setp.ne.u32 %p2, %r2, 0; @%p2 bra READY;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], BYTES;
READY: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  @%p1 bra WAIT;
  mov.u32 %r3, bar; and.b32 %r3, %r3, 0xFEFFFFFF; mov.u32 %r4, 0; mapa.shared::cluster.u32 %r3, %r3, %r4;
  mov.u32 %r5, tile; mul.lo.u32 %r6, %r2, 8; mov.b64 %rd1, map; mov.u16 %h1, MASK;
  LOAD
WAIT: setp.ne.u32 %p2, %r2, 0; @%p2 bra MEET;
LOOP: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra LOOP;
MEET: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  ld.param.u64 %rd2, [out]; mul.lo.u32 %r7, %r2, 1024; shl.b32 %r8, %r1, 4; add.u32 %r7, %r7, %r8; mov.u32 %r9, tile;
  add.u32 %r9, %r9, %r8; cvt.u64.u32 %rd3, %r7; add.s64 %rd2, %rd2, %rd3; mov.u32 %r10, 0;
COPY: ld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [%r9]; st.global.v4.b32 [%rd2], {%r20, %r21, %r22, %r23};
  add.u32 %r9, %r9, 512; add.s64 %rd2, %rd2, 512; add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 2; @%p3 bra COPY;
  ret;
}
"""
LOAD = "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes"


def pair(load: str, nbytes: int, mask: int = 3) -> tuple[Any, Any, Any]:
    """The run of a pair of CTAs, what each has in its tile, and the matrix (16, 32) of float32, in boxes of 8 rows."""
    source = np.arange(512, dtype=np.float32).reshape(16, 32)
    out = np.zeros((2, 8, 32), np.float32)
    tensor_map = cute.tma.TensorMapTiled(7, 0, (32, 16), (128,), (32, 8))
    text = PAIR.replace("LOAD", load).replace("BYTES", str(nbytes)).replace("MASK", str(mask))
    return cute.run_ptx(text, grid=2, args=[out, (tensor_map, source)]), out, source


def test_both_ctas_load_for_the_barrier_of_the_first() -> None:
    found, out, source = pair(f"{LOAD} [%r5], [%rd1, {{%r4, %r6}}], [%r3];", 2048)
    assert found.ok, found.explain()
    assert np.array_equal(out.reshape(16, 32), source)


def test_one_cta_loads_for_both() -> None:
    """A multicast to the pair: both halves of the bytes are counted at the barrier of the first CTA."""
    load = f"@%p2 bra WAIT; {LOAD}.multicast::cluster [%r5], [%rd1, {{%r4, %r6}}], [%r3], %h1;"
    found, out, source = pair(load.replace("@%p2", "setp.ne.u32 %p2, %r2, 0; @%p2"), 2048)
    assert found.ok, found.explain()
    assert np.array_equal(out[0], source[:8])
    assert np.array_equal(out[1], source[:8])


def test_a_pair_that_expects_the_bytes_of_one_cta() -> None:
    found, _, _ = pair(f"{LOAD} [%r5], [%rd1, {{%r4, %r6}}], [%r3];", 1024)
    assert not found.ok
    found, _, _ = pair(f"{LOAD} [%r5], [%rd1, {{%r4, %r6}}], [%r3];", 4096)
    assert [one.rule for one in found.diagnostics if one.severity == "error"] == ["hang"]
