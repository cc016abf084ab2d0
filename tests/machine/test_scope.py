"""What a run did not judge is named in its scope."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py.machine import run as run_module
from cute_py.machine.judgement.races import clocks, memory
from cute_py.machine.launch import MachineLaunch

TWICE = """.version 8.7
.target sm_90a
.address_size 64
.entry twice(.param .u64 x, .param .u32 n) .reqntid 32 {
    .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [x];
    ld.param.u32 %r3, [n];
    mov.u32 %r1, %tid.x;
    mul.lo.u32 %r4, %r1, %r3;
    mad.wide.u32 %rd2, %r4, 4, %rd1;
    ld.global.u32 %r2, [%rd2];
    shl.b32 %r2, %r2, 1;
    st.global.u32 [%rd2], %r2;
    setp.eq.u32 %p1, %r3, 7;
    @%p1 bra SEVEN;
    ret;
SEVEN:
    add.u32 %r5, %r2, 1;
    ret; }"""

ACROSS = """.version 8.7
.target sm_90a
.address_size 64
.entry across(.param .u64 x) .reqntid 32 {
    .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %ctaid.x;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra GIVES;
WAITS:
    ld.acquire.gpu.global.u32 %r2, [%rd1];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra WAITS;
    ret;
GIVES:
    mov.u32 %r3, 1;
    st.release.gpu.global.u32 [%rd1], %r3;
    ret; }"""


def left_out(run: Any, words: str) -> list[str]:
    return [text for text in run.scope.not_judged if words in text]


def test_a_memory_that_is_too_large_to_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not left_out(cute.run_ptx(TWICE, args=[np.ones(64, np.uint32), np.uint32(1)]), "races")
    monkeypatch.setattr(memory, "MAX_SHADOW", 3)
    texts = left_out(cute.run_ptx(TWICE, args=[np.ones(64, np.uint32), np.uint32(1)]), "races")
    assert any("256 bytes" in text for text in texts)


def test_clusters_that_are_too_many_to_order(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not left_out(cute.run_ptx(ACROSS, grid=2, args=[np.zeros(1, np.uint32)]), "clusters")
    monkeypatch.setattr(clocks, "MAX_FAR", 1)
    assert left_out(cute.run_ptx(ACROSS, grid=2, args=[np.zeros(1, np.uint32)]), "races between clusters")


def launched(factors: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The run of one launch for each factor, on 64 numbers."""
    monkeypatch.setattr(run_module, "ptx_of", lambda kernel, arch=None: TWICE)
    kernel: Any = SimpleNamespace(cluster=1, threads=32, shared_bytes=0)
    rows = [MachineLaunch(kernel, 1, (np.ones(64, np.uint32), np.uint32(n))) for n in factors]
    return run_module.run_launches(rows, schedule="eager")


def test_the_code_that_earlier_launches_did_not_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    run = launched((1, 2, 1), monkeypatch)
    assert run.ok
    assert len(left_out(run, "no thread executed them")) == 3
    assert len(left_out(run, "twice: 2 instructions")) == 2
    assert len(left_out(run, "other launches")) == 1


def test_launches_behind_one_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not left_out(launched((1, 9), monkeypatch), "the launches after this one")
    run = launched((1, 9, 1), monkeypatch)
    assert not run.ok
    assert left_out(run, "the launches after this one, because of its errors")
