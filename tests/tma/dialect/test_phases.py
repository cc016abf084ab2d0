"""The eight phases, the verifiers, the two populations of descriptors and their counters."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from cute_py.diagnostics import Diagnostic
from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidValueError, TmaBuildError
from cute_py.tma.atom.make import make_tma_copy
from cute_py.tma.atom.smem_layout import make_smem_layout
from cute_py.tma.atom.tiles import first_tile
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
    KernelOperation,
    check_counters,
    run_phases,
)
from cute_py.tma.dialect.stages import check_stages
from cute_py.tma.dialect.traced_copy import trace_copy
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.mbarrier import Mbarrier
from tests.calls.objects import im2col_atom
from tests.tma.dialect.atoms import tile_atom


def texts(found: list[Diagnostic]) -> tuple[str, ...]:
    return tuple(d.text for d in found)


TILES = ((128, 64), (64, 64))
BF16, F32 = as_dtype("bf16"), as_dtype("f32")
A = trace_copy(tile_atom("load", (128, 64), "bf16", swizzle=3))
B = trace_copy(tile_atom("load", (64, 64), "bf16", swizzle=3), tensor="B", device_descriptor=True)
C = trace_copy(tile_atom("store", (64, 64), "f32"), tensor="C")


def test_phases_of_a_kernel_with_both_populations() -> None:
    trace = run_phases(KernelFunction("sm_90a", (A, B, C)))
    assert [phase.name for phase in trace.phases] == list(PHASES)
    assert [phase.number for phase in trace.phases] == list(range(1, 9))
    assert [(copy.copy.tensor, copy.origin, copy.tma_index) for copy in trace.rewritten] == [
        ("A", "host", 0),
        ("B", "device", 0),
        ("C", "host", 1),
    ]
    assert (trace.num_host_tmas, trace.num_device_tmas) == (2, 1)
    [barrier] = trace.barriers
    assert (barrier.loads, barrier.expected_tx, barrier.count) == (("a", "b"), 16384 + 8192, 1)
    assert trace.phases[5].lines == (
        "%mbar0: one slot at byte 40960 of shared memory, count = 1, expects 24576 bytes = %a 16384 + %b 8192",
    )
    assert trace.diagnostics == ()


MMA = KernelOperation("%acc = nv_tileas.mma %a_tile, %b_tile, %acc0", ("A", "B"))
STEP = KernelOperation("%j = arith.addi %i, %c1")


def test_a_wait_is_moved_down_to_the_first_use() -> None:
    trace = run_phases(KernelFunction("sm_90a", (A, B, STEP, MMA)))
    before, after = trace.phases[5].body, trace.phases[6].body
    wait = "nv_tileas.async.pipeline.consumer_wait %mbar0, (%i / 1) & 1"
    loads = [line for line in before if "tiled_tma_load" in line]
    head = [line for made in trace.rewritten for line in made.descriptor]
    head += ["%mbar0 = nv_tileas.alloc_mbarrier { count = 1 : i32 }", "nvvm.mbarrier.arrive.expect_tx %mbar0, 24576"]
    assert list(before) == [*head, *loads, wait, STEP.text, MMA.text]
    assert list(after) == [*head, *loads, STEP.text, wait, MMA.text] == list(trace.body)
    assert trace.phases[6].lines == (f"%mbar0: wait sunk past 1 operation, before {MMA.text}",)
    assert len(loads) == 2 and all("%mbar0" in line for line in loads)


def test_a_wait_that_nothing_needs_ends_the_body() -> None:
    trace = run_phases(KernelFunction("sm_90a", (A, STEP, STEP)))
    assert trace.body[-1].startswith("nv_tileas.async.pipeline.consumer_wait")
    assert trace.phases[6].lines == ("%mbar0: wait sunk past 2 operations, to the end; nothing reads the tiles",)


def test_a_load_behind_a_use_is_another_pipeline_stage() -> None:
    """Else the wait of the first use would wait for a load that comes after it."""
    use = KernelOperation("%s = nv_tileas.reduce %a_tile", ("A",))
    trace = run_phases(KernelFunction("sm_90a", (A, use, B, MMA), depth=3))
    assert [(b.name, b.loads, b.expected_tx, b.slots, b.offset) for b in trace.barriers] == [
        ("%mbar0", ("a",), 16384, 3, 3 * 24576),
        ("%mbar1", ("b",), 8192, 3, 3 * 24576 + 3 * 8),
    ]
    body = list(trace.body)
    waits = [body.index(f"nv_tileas.async.pipeline.consumer_wait %mbar{n}, (%i / 3) & 1") for n in range(2)]
    assert waits[0] == body.index(use.text) - 1 and waits[1] == body.index(MMA.text) - 1


def test_a_store_reads_its_tile() -> None:
    back = trace_copy(tile_atom("store", (128, 64), "bf16", swizzle=3))
    trace = run_phases(KernelFunction("sm_90a", (A, STEP, back)))
    assert "consumer_wait" in trace.body[-2] and "tiled_tma_store" in trace.body[-1]


def test_the_sum_of_the_loads_completes_the_phase_on_the_emulators_barrier() -> None:
    """As many bytes as the copies of a pipeline stage deliver, and no others, end its phase."""
    x = np.arange(256 * 256, dtype=np.uint16).reshape(256, 256)
    atoms = [make_tma_copy("SM90_TMA_LOAD", x, make_smem_layout("K", "128B", "uint16", tile)) for tile in TILES]
    [barrier] = run_phases(KernelFunction("sm_90a", (*atoms, MMA))).barriers
    mbarrier = Mbarrier(barrier.count)
    mbarrier.arrive_expect_tx(barrier.expected_tx)
    for atom in atoms:
        assert not mbarrier.try_wait(0)
        for coords in first_tile(atom).coords.tolist():
            smem = np.zeros(atom.bytes_per_instruction, np.uint8)
            moved = Emulator().load(
                atom.descriptor, x.reshape(-1).view(np.uint8), coords, smem, gmem_base=x.ctypes.data
            )
            mbarrier.complete_tx(moved)
    assert mbarrier.try_wait(0) and mbarrier.view.released(0)


def test_im2col_and_two_cta_maps_are_made_on_the_host_only() -> None:
    pair = tile_atom("load", (128, 64), "bf16", swizzle=3, op="SM100_TMA_2SM_LOAD", arch="sm_100a")
    for atom, arch, words in ((im2col_atom(), "sm_90a", "im2col descriptors"), (pair, "sm_100a", "2-CTA descriptors")):
        trace = lower(atom, arch=arch, device_descriptor=True)
        [text] = trace.diagnostics
        assert text.startswith(f"stage 3: {words} can only be made on the host")
        assert "tensormap.replace" not in trace.stage("3").text + trace.stage("4").text + trace.ptx
        assert any(words in found for found in run_phases(KernelFunction(arch, (atom,), device=("A",))).diagnostics)
        with pytest.raises(TmaBuildError, match=words):
            trace.verify()


def test_descriptor_slots_are_device_first() -> None:
    trace = run_phases(KernelFunction("sm_90a", (A, B, C)))
    assert trace.phases[3].lines == (
        "%desc_a: host descriptor, byte 128 of the block, cute_nvgpu.grid_constant",
        "%desc_b: device descriptor, byte 0 of the block, 4 replacements",
        "%desc_c: host descriptor, byte 256 of the block, cute_nvgpu.grid_constant",
    )


def test_without_a_kernel_spec_nothing_is_rewritten() -> None:
    trace = run_phases(KernelFunction(None, (A, B)))
    assert trace.diagnostics == (MISSING_SPEC,)
    assert trace.rewritten == () and len(trace.phases) == 1
    assert str(trace).endswith(f"diagnostic: {MISSING_SPEC}")


def test_copies_without_tma_are_skipped_in_phase_2() -> None:
    trace = run_phases(KernelFunction("sm_80", (A,)))
    assert trace.rewritten == ()
    assert trace.phases[1].lines == ("sm80_cp_async_4_bf16: skipped, not a TMA atom",)


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
    small = dataclasses.replace(trace_copy(tile_atom("load", (1, 32), "f16")), multicast=2)
    assert check_stages(small, "sm_90a")["3c"] == (
        "mcast is not supported for TMA load with less than 128bytes per atom",
    )


def test_verify_raises_the_first_diagnostic_with_its_stage() -> None:
    trace = lower(tile_atom("load", (96, 64), "bf16", swizzle=3))
    assert trace.diagnostics == ("stage 1: all dimensions must be powers of two, got [96, 64]",)
    with pytest.raises(TmaBuildError) as caught:
        trace.verify()
    assert str(caught.value) == "all dimensions must be powers of two, got [96, 64]\n  stage : 1 (cuda_tile)"


@pytest.mark.parametrize("counter", ("num_host_tmas", "num_device_tmas"))
def test_no_counter_is_negative(counter: str) -> None:
    with pytest.raises(InvalidValueError, match=f"{counter} = -1 descriptors; must be at least 0"):
        run_phases(KernelFunction("sm_90a", (A,), **{counter: -1}))  # type: ignore[arg-type]
