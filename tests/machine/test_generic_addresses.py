"""Generic addresses of shared and local memory: a kernel must convert them, not shorten them to 32 bits."""

from __future__ import annotations

import numpy as np
import pytest

import cute_py as cute
from cute_py.machine.memory import (
    GLOBAL_START,
    LOCAL_WINDOW,
    LOCAL_WINDOW_BYTES,
    LOW_WORD,
    RANK_SHIFT,
    SHARED_WINDOW,
    SHARED_WINDOW_BYTES,
)
from cute_py.targets import MAX_CLUSTER

TEXT = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) .reqntid 1
{{
  .reg .b32 %r<4>; .reg .b64 %rd<6>;
  .shared .align 16 .b8 smem[16];
  .local .align 16 .b8 frame[16];
  mov.u64 %rd1, {symbol};
  cvta.{space}.u64 %rd2, %rd1;
  {back}
  mov.u32 %r2, 7; st.{space}.u32 [%r1], %r2; ld.{space}.u32 %r3, [{symbol}];
  ld.param.u64 %rd4, [out]; st.global.u32 [%rd4], %r3;
  ret;
}}
"""
CONVERTED = "cvta.to.{space}.u64 %rd3, %rd2; cvt.u32.u64 %r1, %rd3;"


def run(space: str, back: str) -> tuple[cute.PtxRun, int]:
    out = np.zeros(1, np.uint32)
    symbol = "smem" if space == "shared" else "frame"
    text = TEXT.format(symbol=symbol, space=space, back=back.format(space=space))
    return cute.run_ptx(text, args=[out]), int(out[0])


@pytest.mark.parametrize("space", ["shared", "local"])
def test_a_converted_address_is_in_its_window(space: str) -> None:
    found, value = run(space, CONVERTED)
    assert found.ok and value == 7, found.explain()


@pytest.mark.parametrize("space", ["shared", "local"])
def test_a_shortened_address_is_out_of_bounds(space: str) -> None:
    found, _ = run(space, "cvt.u32.u64 %r1, %rd2;")
    assert [one.rule for one in found.diagnostics] == ["out of bounds"], found.explain()


def test_windows_are_apart_and_above_every_shared_address() -> None:
    assert SHARED_WINDOW + SHARED_WINDOW_BYTES <= LOCAL_WINDOW and LOCAL_WINDOW + LOCAL_WINDOW_BYTES <= GLOBAL_START
    assert SHARED_WINDOW & LOW_WORD >= MAX_CLUSTER << RANK_SHIFT
    assert LOCAL_WINDOW & LOW_WORD >= MAX_CLUSTER << RANK_SHIFT
    assert SHARED_WINDOW % (1 << RANK_SHIFT) == LOCAL_WINDOW % (1 << RANK_SHIFT) == 0
