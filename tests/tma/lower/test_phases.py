"""The eight phases, the verifiers, the two populations of descriptors and their counters."""

from __future__ import annotations

import pytest

from cute_py.diagnostics import Diagnostic
from cute_py.dtypes import as_dtype
from cute_py.errors import TmaBuildError
from cute_py.tma.dialect.copy_shape import copy_shape
from cute_py.tma.dialect.diagnostics import (
    MAX_TILE_ELEMENTS,
    check_atom,
    check_box_row,
    check_memory_order,
    check_operands,
    check_padding,
    check_pointer,
    check_tile,
)
from cute_py.tma.dialect.lowering import lower
from cute_py.tma.dialect.phases import (
    MISSING_SPEC,
    PHASES,
    KernelFunction,
    check_counters,
    run_phases,
)
from cute_py.tma.dialect.stages import check_stages
from cute_py.tma.dialect.traced_copy import trace_copy


def texts(found: list[Diagnostic]) -> tuple[str, ...]:
    return tuple(d.text for d in found)


BF16, F32 = as_dtype("bf16"), as_dtype("f32")
A = copy_shape("load", (128, 64), "bf16", swizzle=3, tensor="A")
B = copy_shape("load", (64, 64), "bf16", swizzle=3, tensor="B", device_descriptor=True)
C = copy_shape("store", (64, 64), "f32", tensor="C")


def test_phases_of_a_kernel_with_both_populations() -> None:
    trace = run_phases(KernelFunction("sm_90a", (A, B, C)))
    assert [phase.name for phase in trace.phases] == list(PHASES)
    assert [phase.number for phase in trace.phases] == list(range(1, 9))
    assert [(copy.shape.tensor, copy.origin, copy.tma_index) for copy in trace.rewritten] == [
        ("A", "host", 0),
        ("B", "device", 0),
        ("C", "host", 1),
    ]
    assert (trace.num_host_tmas, trace.num_device_tmas) == (2, 1)
    assert len(trace.phases[5].lines) == 2 and "expects 16384 bytes" in trace.phases[5].lines[0]
    assert trace.diagnostics == ()


def test_without_a_kernel_spec_nothing_is_rewritten() -> None:
    trace = run_phases(KernelFunction(None, (A, B)))
    assert trace.diagnostics == (MISSING_SPEC,)
    assert trace.rewritten == () and len(trace.phases) == 1
    assert str(trace).endswith(f"diagnostic: {MISSING_SPEC}")


def test_copies_without_tma_are_skipped_in_phase_2() -> None:
    trace = run_phases(KernelFunction("sm_80", (A,)))
    assert trace.rewritten == ()
    assert trace.phases[1].lines == ("sm80_cp_async_4_bf16: skipped, no TMA atom",)


def test_counters_must_agree_with_the_indices() -> None:
    trace = run_phases(KernelFunction("sm_90a", (A, C), num_host_tmas=1))
    assert trace.diagnostics == ("tmaIdx exceed tmaHostNum.",)
    trace = run_phases(KernelFunction("sm_90a", (B,), num_device_tmas=0))
    assert trace.diagnostics == ("tmaIdx exceed tmaDeviceNum.",)
    assert check_counters([0, 1], [0], 2, 1) == []
    assert texts(check_counters([-1], [], 2, 0)) == ("tmaIdx exceed tmaHostNum.",)
    assert texts(check_counters([0], [1], 1, 1)) == ("tmaIdx exceed tmaDeviceNum.",)


@pytest.mark.parametrize(
    ("extents", "diagnostics"),
    [
        ((128, 128), ()),
        ((1,), ()),
        ((96, 128), ("all dimensions must be powers of two, got [96, 128]",)),
        ((0, 128), ("all dimensions must be positive constants, got [0, 128]",)),
        ((-8,), ("all dimensions must be positive constants, got [-8]",)),
        ((4096, 4096), ()),
        ((8192, 4096), (f"tile would exceed the maximum of {MAX_TILE_ELEMENTS}",)),
    ],
)
def test_stage_1(extents: tuple[int, ...], diagnostics: tuple[str, ...]) -> None:
    assert texts(check_tile(extents)) == diagnostics


def test_the_ceiling_is_sixteen_million_elements() -> None:
    assert MAX_TILE_ELEMENTS == 4096 * 4096 == 16 * 1024 * 1024


def test_stage_2() -> None:
    assert check_operands(2, 2, (BF16, BF16)) == []
    assert texts(check_operands(2, 3, (BF16, BF16))) == ("expects 2 coordinates, but got 3",)
    assert texts(check_operands(2, 2, (BF16, F32))) == (
        "view elementType not equal with tensor element type: bf16 vs f32",
    )
    assert texts(check_operands(2, 2, (BF16, BF16), "i32")) == ("expects CoordType is same as memref index type",)


def test_stage_3a() -> None:
    assert check_memory_order("load", "relaxed", 2, 2) == []
    assert texts(check_memory_order("load", "acquire", 2, 2)) == ("unsupported mem_semantic: acquire",)
    assert texts(check_memory_order("load", "relaxed", 1, 2)) == ("incorrect number of in_bounds elements: expected 2",)
    assert check_memory_order("store", "acquire", 2, 2) == []


@pytest.mark.parametrize(("alignment", "count"), [(128, 0), (256, 0), (64, 1), (16, 1), (0, 1)])
def test_stage_3b_alignment(alignment: int, count: int) -> None:
    assert len(check_pointer(alignment)) == count


def test_stage_3b() -> None:
    assert texts(check_pointer(64)) == ("expected tma descriptor pointer to have alignment at least 128",)
    assert check_box_row(8, 16) == []
    assert texts(check_box_row(4, 16)) == ("tma boxDims[0] * elemTypeBitWidth is not a multiple of 16 bytes",)
    assert check_padding((0, 0.0), is_store=False) == []
    assert texts(check_padding((0, 1), is_store=False)) == ("TmaLoad only support zero padding now",)


def test_stage_3c() -> None:
    assert check_atom("load", 2, 2, 128, 2) == []
    assert check_atom("load", 2, 2, 127, 1) == []
    assert texts(check_atom("store", 3, 2, 64, 2)) == (
        "expect a tma_load atom type",
        "tmaBoxDim and atomBoxDim length mismatch",
        "mcast is not supported for TMA load with less than 128bytes per atom",
    )
    assert check_stages(trace_copy(copy_shape("load", (2, 32), "f16", multicast=2)))["3c"] == ()
    small = copy_shape("load", (1, 32), "f16", multicast=2)
    assert check_stages(trace_copy(small))["3c"] == ("mcast is not supported for TMA load with less than 128bytes per atom",)


def test_verify_raises_the_first_diagnostic_with_its_stage() -> None:
    trace = lower(copy_shape("load", (96, 64), "bf16", swizzle=3))
    assert trace.diagnostics == ("stage 1: all dimensions must be powers of two, got [96, 64]",)
    with pytest.raises(TmaBuildError) as caught:
        trace.verify()
    assert str(caught.value) == "all dimensions must be powers of two, got [96, 64]\n  stage : 1 (cuda_tile)"
