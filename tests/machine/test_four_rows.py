"""tile::gather4 and tile::scatter4: four rows of a matrix by their numbers, through kernels."""

from __future__ import annotations

import numpy as np

import cute_py as cute

GATHER = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out) .reqntid 32
{
  .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<8>;
  .shared .align 128 .b8 tile[256]; .shared .align 8 .b64 bar;
  mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; mov.b64 %rd1, map; cvta.param.u64 %rd2, %rd1;
  @%p1 bra READY;
  mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
  cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes
    [tile], [%rd2, {0, 9, 2, 30, 5}], [bar];
READY: bar.sync 0;
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;
  mov.u32 %r2, tile; shl.b32 %r3, %r1, 3; add.u32 %r2, %r2, %r3; ld.shared.v2.b32 {%r4, %r5}, [%r2];
  ld.param.u64 %rd3, [out]; mul.wide.u32 %rd4, %r1, 8; add.s64 %rd3, %rd3, %rd4; st.global.v2.b32 [%rd3], {%r4, %r5};
  ret;
}
"""
SCATTER = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 in) .reqntid 32
{
  .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<8>;
  .shared .align 128 .b8 tile[256];
  mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; mov.b64 %rd1, map; cvta.param.u64 %rd2, %rd1;
  ld.param.u64 %rd3, [in]; mul.wide.u32 %rd4, %r1, 8; add.s64 %rd3, %rd3, %rd4; ld.global.v2.b32 {%r4, %r5}, [%rd3];
  mov.u32 %r2, tile; shl.b32 %r3, %r1, 3; add.u32 %r2, %r2, %r3; st.shared.v2.b32 [%r2], {%r4, %r5};
  fence.proxy.async; bar.sync 0; @%p1 bra END;
  cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd2, {0, 9, 2, 30, 5}], [tile];
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
END: ret;
}
"""
ROWS = [9, 2, 30, 5]


def matrix_map() -> cute.tma.TensorMapTiled:
    """A map of (32, 16) float32 with boxes of one row."""
    return cute.tma.TensorMapTiled(7, 0, (16, 32), (64,), (16, 1))


def test_four_rows_are_gathered() -> None:
    held = np.arange(32 * 16, dtype=np.float32).reshape(32, 16)
    out = np.zeros((4, 16), np.float32)
    found = cute.run_ptx(GATHER, args=[(matrix_map(), held), out])
    assert found.ok, found.explain()
    assert np.array_equal(out, held[ROWS])


def test_four_rows_are_scattered() -> None:
    rows = np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)
    held = np.zeros((32, 16), np.float32)
    found = cute.run_ptx(SCATTER, args=[(matrix_map(), held), rows])
    assert found.ok, found.explain()
    expected = np.zeros_like(held)
    expected[ROWS] = rows
    assert np.array_equal(held, expected)
