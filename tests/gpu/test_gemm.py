"""The GEMM kernel on a device: exact products on every kind of operand, its stages, and the eight broken kernels."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.gemm import CHECKS, CLUSTERED, Case, kernel_of
from cute_py.errors import DeviceError
from cute_py.gpu.device import Device
from tests.tma.gemm.broken import BROKEN, MN_MAJOR, STEP, TILE, WAIT_CYCLES, cause_in_stage
from tests.tma.gemm.problem import arrays, output, product

EXACT = 256
"""Integers up to which bfloat16 is exact."""


@pytest.mark.parametrize("case", [*CHECKS, *CLUSTERED], ids=str)
def test_products_of_small_integers_are_exact(device: Device, case: Case) -> None:
    a, b = arrays(case)
    c = output(case)
    wanted = product(case, a, b)
    assert kernel_of(case, wait_cycles=10 * WAIT_CYCLES).run(a, b, c) is c
    assert (abs(wanted.astype(np.float32)) <= EXACT).all()
    assert np.array_equal(c, wanted)


@pytest.mark.parametrize("case", [Case(512, 768, 512), MN_MAJOR, Case(512, 768, 512, cluster="M")], ids=str)
def test_a_stage_holds_what_the_emulator_leaves(device: Device, case: Case) -> None:
    a, b = arrays(case, largest=8)
    kernel = kernel_of(case, wait_cycles=WAIT_CYCLES)
    emulated, dumped = (kernel.stage(a, b, TILE, STEP, backend=backend) for backend in ("emulator", "cuda"))
    assert all(np.array_equal(emulated[name], dumped[name]) for name in "AB")


@pytest.mark.parametrize("way", [way for way, one in BROKEN.items() if one.operand])
def test_a_broken_load_is_named_from_a_dumped_stage(device: Device, way: str) -> None:
    right, wrong = BROKEN[way].kernels()
    assert cause_in_stage(right, wrong, "cuda") == BROKEN[way].name
    assert cause_in_stage(right, right, "cuda") == ""


@pytest.mark.parametrize("way", [way for way, one in BROKEN.items() if one.cause])
def test_a_wait_that_does_not_end_names_its_cause(device: Device, way: str) -> None:
    right, wrong = BROKEN[way].kernels()
    a, b = arrays(BROKEN[way].case)
    with pytest.raises(DeviceError) as caught:
        wrong.run(a, b)
    assert str(caught.value.facts["cause"]).startswith(BROKEN[way].cause)
    assert np.array_equal(right.run(a, b), product(BROKEN[way].case, a, b))  # the context is as good as before


def test_a_wrong_offset_in_a_descriptor_gives_wrong_products(device: Device) -> None:
    right, wrong = BROKEN["wrong LBO"].kernels()
    a, b = arrays(MN_MAJOR)
    assert np.array_equal(right.run(a, b), product(MN_MAJOR, a, b))
    assert not np.array_equal(wrong.run(a, b), product(MN_MAJOR, a, b))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn"])
def test_torch_tensors_where_they_lie_and_on_a_stream(device: Device, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    case = Case(512, 768, 512, dtype)
    a, b = (torch.randint(-1, 2, (rows, case.k), device="cuda").to(getattr(torch, dtype)) for rows in (case.m, case.n))
    wanted = (a.float() @ b.float().t()).to(torch.bfloat16)
    kernel = kernel_of(case)
    found = kernel.run(a, b)
    assert (type(found), found.dtype, found.device) == (type(a), torch.bfloat16, a.device)
    assert torch.equal(found, wanted)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    prepared = kernel.prepare(a, b, found.fill_(7))
    stream.wait_stream(torch.cuda.current_stream())
    for _ in range(3):
        prepared.launch(stream)
    prepared.check(stream)
    assert torch.equal(found, wanted)


def test_a_launch_is_a_node_of_a_graph(device: Device) -> None:
    torch = pytest.importorskip("torch")
    case = Case(512, 768, 512, cluster="M")
    a, b = (torch.randint(-1, 2, (rows, case.k), device="cuda").bfloat16() for rows in (case.m, case.n))
    c = torch.zeros(case.m, case.n, device="cuda", dtype=torch.bfloat16)
    prepared, graph = kernel_of(case).prepare(a, b, c), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        prepared.launch(torch.cuda.current_stream())
    assert not c.any()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(c, (a.float() @ b.float().t()).bfloat16())
