"""Each of the eight broken kernels is found by name, and the right one is not."""

from __future__ import annotations

import pytest

from cute_py.gpu.nvrtc import run_nvrtc
from tests.shares import one_in
from tests.tma.gemm.broken import BROKEN, rule_in_ptx


@pytest.mark.parametrize("way", one_in(2, BROKEN))
def test_it_is_found_by_name_without_a_gpu(way: str) -> None:
    broken = BROKEN[way]
    if broken.find is rule_in_ptx:
        needs_nvrtc()
    right, wrong = broken.kernels()
    assert right.source != wrong.source or right.plan != wrong.plan or way == "wrong swizzle"
    assert broken.find(right, wrong) == broken.name
    assert broken.find(right, right) in ("", "completed")


def test_a_mask_of_a_cta_outside_of_the_cluster_is_found_in_the_ptx() -> None:
    needs_nvrtc()
    right, _ = BROKEN["wrong mask"].kernels()
    assert rule_in_ptx(right, right) == ""
    assert rule_in_ptx(right, right.edited(", 0x3);", ", 0x5);")) == "multicast_mask"


def needs_nvrtc() -> None:
    pytest.importorskip("cuda.bindings")
    try:
        run_nvrtc("", "nothing", "compute_90a", "ptx")
    except Exception as reason:
        pytest.skip(f"no NVRTC: {reason}")
