"""clusterlaunchcontrol: clusters that take the work of those that are not launched yet."""

from __future__ import annotations

import numpy as np
import pytest

import cute_py as cute

TEXT = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out) .reqntid 32
{
  .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .b128 %q;
  .shared .align 16 .b8 answer[16]; .shared .align 8 .b64 bar;
  mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra END;
  mov.u32 %r2, %ctaid.x; mov.u32 %r9, 0; mbarrier.init.shared.b64 [bar], 1; fence.proxy.async;
WORK: ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r2, 4; add.s64 %rd1, %rd1, %rd2; mov.u32 %r3, %ctaid.x;
  add.u32 %r3, %r3, 1; atom.global.add.u32 %r4, [%rd1], %r3;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
  clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [answer], [bar];
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], %r9; @!%p2 bra WAIT;
  xor.b32 %r9, %r9, 1; ld.shared.b128 %q, [answer];
  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q; @!%p3 bra END;
  clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r2, %r5, %r6, _}, %q;
  fence.proxy.async; bra WORK;
END: ret;
}
"""
RESIDENT = 132
"""CTAs that run together, with so much shared memory that a multiprocessor holds one."""


@pytest.mark.parametrize(("schedule", "taken"), [("eager", True), ("lazy", False)])
def test_each_tile_is_worked_on_once(schedule: str, taken: bool) -> None:
    count = RESIDENT + 8
    out = np.zeros(count, np.uint32)
    found = cute.run_ptx(TEXT, grid=count, args=[out], dynamic_shared=200_000, schedule=schedule)
    assert found.ok, found.explain()
    own = np.arange(count) + 1
    assert np.array_equal(out[:RESIDENT], own[:RESIDENT])
    assert np.array_equal(out[RESIDENT:], own[RESIDENT:]) != taken
    assert (out > 0).all()
    if taken:
        assert (out[RESIDENT:] <= RESIDENT).all()
