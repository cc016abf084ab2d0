"""The walk of an operation has what the operation says, and its program is the one that runs."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import Any

import numpy
import pytest

import cute_py as cute
from cute_py import Int, Layout, LayoutRight, tma
from cute_py.errors import CuteError, TmaVerifyError
from cute_py.ptx.check import examine
from cute_py.ptx.module import find_ptxas
from cute_py.targets import ARCHITECTURES
from cute_py.tma.dialect.lowering import module_of
from cute_py.tma.dialect.traced_copy import trace_copy
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.mbarrier import Mbarrier
from tests.shares import one_in
from tests.tma.dialect.atoms import tile_atom, window_operation
from tests.tma.dialect.partition_operands import NHWC, SMEM, SWIZZLED, Operands, gmem

PLACE = cute.make_smem_ptr(0, "float16")


def headline(action: Any) -> str:
    with pytest.raises(CuteError) as refusal:
        action()
    return refusal.value.headline


def test_an_operation_is_lowered_as_it_says() -> None:
    uneven = gmem((1000, 512))
    atom = tma.non_exec_tiled_tma_load(uneven, SMEM, (128, 64))
    bound = tma.make_exec_tma(atom, Mbarrier(1))
    said = tma.tma_load(bound, PLACE, (64, 128), inBounds=True, prefetch=True)
    trace = tma.lower(said)
    assert trace.element_coords == (64, 128)
    assert "in_bounds = array<i1: true, true>" in trace.stage("2").text
    assert "in_bounds = array<i1: false, true>" in tma.lower(atom).stage("2").text
    assert "prefetch.tensormap [%rd_desc_a];" in trace.ptx and "prefetch" not in tma.lower(bound).ptx
    assert "llvm.nvvm.prefetch.tensormap" in trace.stage("4").text and "PREFETCH_TENSORMAP" in trace.stage("5").text
    outside = tma.lower(tma.tma_load(bound, PLACE, (0, 896)))
    assert "in_bounds = array<i1: false, true>" in outside.stage("2").text
    assert tma.lower(said, (0, 0)).element_coords == (0, 0)


def test_the_cta_of_a_multicast_has_its_own_boxes() -> None:
    [record] = Operands(smem=SWIZZLED).partition(load_mode="W_MULTICAST", num_multicast=4)
    bound = tma.make_exec_tma(record, cute.make_smem_ptr(0, "uint64"), multicast=15)
    for cta in range(4):
        operation = tma.tma_load(bound, PLACE, (0, 0), cta=cta)
        copy = trace_copy(operation)
        places = [(one.coord[::-1], one.smem_bytes) for one in operation.copies]
        assert list(zip(copy.origins, copy.offsets, strict=True)) == places
    assert "CTA 3 of 4 CTAs" in " ".join(tma.lower(operation).stage("3").notes)


@pytest.mark.parametrize("make", [tma.tma_store, tma.tma_reduce])
def test_a_store_has_its_fence_and_its_wait(make: Any) -> None:
    options = {"store_mode": 0} if make is tma.tma_store else {"reduce_kind": "ADD"}
    [record] = Operands().partition(**options)
    operation = make(tma.make_exec_tma(record, Mbarrier(1)), PLACE, (0, 0))
    names = [line.split()[0].rstrip(";") for line in operation.ptx("sm_90a").splitlines()]
    ends = ["cp.async.bulk.commit_group", "cp.async.bulk.wait_group.read"]
    assert names[0] == "fence.proxy.async.shared::cta" and names[2:] == ends and len(names) == 4
    walked = [line.split()[0].rstrip(";") for line in tma.lower(operation).ptx.splitlines()]
    assert [name for name in walked if name in names] == names


@pytest.mark.parametrize("arrivals", [1, 2])
def test_the_barrier_is_released_as_the_program_releases_it(arrivals: int) -> None:
    """One arrival and the bytes: an `mbarrier.arrive.expect_tx` of the program, and the copies."""
    array = numpy.arange(256 * 128, dtype=numpy.uint16).reshape(256, 128)
    barrier = Mbarrier(arrivals)
    bound = tma.make_exec_tma(tma.non_exec_tiled_tma_load(array, Layout((Int(64), Int(64)), LayoutRight)), barrier)
    operation = tma.tma_load(bound, cute.make_smem_ptr(0, "uint16"), (64, 128))
    assert operation.ptx().count("mbarrier.arrive.expect_tx") == 1
    memory = array.view(numpy.uint8).reshape(-1)
    operation.run(Emulator(), memory, numpy.zeros(8192, numpy.uint8), gmem_base=array.ctypes.data)
    assert barrier.try_wait(0) == (arrivals == 1)
    assert arrivals == 1 or barrier.view.pending == 1


def test_reductions_that_trap_are_refused() -> None:
    for kind, dtype, passes in (
        ("INC", "int32", False),
        ("XOR", "bfloat16", False),
        ("MAX", "float32", False),
        ("INC", "uint32", True),
        ("MAX", "bfloat16", True),
    ):
        atom = tma.non_exec_tiled_tma_reduce(gmem(dtype=dtype), SMEM, (128, 64), kind=kind)
        if passes:
            assert "cp.reduce.async.bulk.tensor" in tma.lower(atom).ptx
        else:
            assert headline(lambda atom=atom: tma.lower(atom)).startswith(f"reduction {kind} of {dtype}; the hardware")


def test_a_load_of_a_store_atom() -> None:
    store = tma.non_exec_tiled_tma_store(gmem(), SMEM, (128, 64))
    assert tma.lower(store, operation="load").diagnostics == ("stage 3: expect a tma_load atom type",)
    load = tma.non_exec_tiled_tma_load(gmem(), SMEM, (128, 64))
    text = "stage 3: expect a tma_store or tma_reduce atom type"
    assert tma.lower(load, operation="store").diagnostics == (text,)


def test_the_offsets_that_the_intrinsic_takes() -> None:
    text = "llvm.nvvm.cp.async.bulk.tensor.shared.cluster.global.im2col.4d takes 9 operands, but got 8"
    made = window_operation((1, 2))
    assert tma.lower(made, im2col_offsets=(1,)).diagnostics == (f"stage 4: {text}",)
    assert tma.lower(made, im2col_offsets=(2, 1)).diagnostics == ()


@pytest.mark.parametrize("box", [(64, 0), (0, 64), (64, -1)])
def test_a_box_without_elements(box: tuple[int, int]) -> None:
    found = headline(lambda: tma.lower(tma.TensorMapTiled(9, 4096, (512, 512), (1024,), box)))
    assert found == f"box_dim = {box[0]}, {box[1]}; must be 1 or more"


WITH_TMA = [target.name for target in ARCHITECTURES if target.number >= 90]


@pytest.mark.parametrize("arch", WITH_TMA)
def test_a_descriptor_made_on_the_device_is_judged_by_its_target(arch: str) -> None:
    trace = tma.lower(tile_atom("load", (64, 64), "float16"), arch=arch, device_descriptor=True)
    text = f"stage 6: tensormap.replace needs an a or f variant of sm_90 or newer; got {arch}"
    assert trace.diagnostics == (() if arch[-1] in "af" else (text,))
    assert ("tensormap.replace.tile" in trace.ptx) == (arch[-1] in "af")


@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas on PATH or in an nvidia-cuda-nvcc wheel")
@pytest.mark.parametrize("arch", one_in(4, WITH_TMA))
def test_ptxas_says_the_same_of_each_target(arch: str, tmp_path: Any) -> None:
    text = tma.lower(tile_atom("load", (64, 64), "float16"), arch="sm_90a", device_descriptor=True).ptx
    path = tmp_path / "made.ptx"
    path.write_text(module_of(text, arch))
    command = [str(find_ptxas()), "-arch", arch, str(path), "-o", str(tmp_path / "made.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode == 0) == (arch[-1] in "af"), done.stderr


def test_what_a_descriptor_says_is_read() -> None:
    made = tma.tma_descriptor_tiled(gmem(), SMEM)
    atom = tma.non_exec_tiled_tma_load(made, SMEM, (128, 64))
    first = replace(atom, descriptor=replace(made, cache_policy=tma.CacheMode.EVICT_FIRST))
    assert tma.make_exec_tma(first, Mbarrier(1)).cache_mode is tma.CacheMode.EVICT_FIRST
    assert tma.make_exec_tma(first, Mbarrier(1), "cg").cache_mode is tma.CacheMode.CG
    text = "stage 3: expected tma descriptor pointer to have alignment at least 128"
    assert tma.lower(replace(made, alignment=64)).diagnostics == (text,)
    padded = replace(made, paddings=(1,), operand_segment_sizes=None)
    assert tma.lower(padded).diagnostics == ("stage 3: TmaLoad only support zero padding now",)


def test_the_wide_multicast_has_no_instruction() -> None:
    [record] = Operands(smem=SWIZZLED).partition(load_mode="W128_MULTICAST", num_multicast=4)
    text = "no instruction for load mode W128_MULTICAST; the multicast of a tile is W_MULTICAST"
    assert headline(lambda: tma.make_exec_tma(record, Mbarrier(1), multicast=15)) == text
    made = tma.tma_descriptor_tiled(gmem(), SMEM, num_multicast=4)
    with pytest.raises(TmaVerifyError) as refusal:
        tma.non_exec_tiled_tma_load(made, SMEM, num_multicast=4, load_mode=3)
    assert refusal.value.step == 1
    assert "the descriptor is for W_MULTICAST, but the operation is W128_MULTICAST" in str(refusal.value)


def test_maps_of_im2col_are_not_rebound() -> None:
    image = tma.tma_descriptor_im2col(NHWC, (-1, -1), (-1, -1), 64, 128)
    text = "im2col descriptors can only be made on the host: no mutator writes the im2col fields"
    assert headline(lambda: tma.rebind(tma.encode(image), 8192, image.shape, image.strides)) == text
    for kind, axis, value in (("UPDATE_DIM", 1, 16), ("UPDATE_STRIDE", 1, 32), ("UPDATE_BASE_POINTER", 0, 8192)):
        assert headline(lambda k=kind, a=axis, v=value: tma.update_tma_descriptor(tma.encode(image), k, a, v)) == text


def test_phases_4_to_7_change_the_body() -> None:
    load = tile_atom("load", (64, 64), "float16")
    use = tma.KernelOperation("%s = nv_tileas.reduce %a_tile", ("A",))
    for device in ((), ("A",)):
        trace = tma.run_phases(
            tma.KernelFunction("sm_90a", (load, tma.KernelOperation("%j = arith.addi %i, %c1"), use), device=device)
        )
        bodies = [phase.body for phase in trace.phases[2:7]]
        assert len(set(bodies)) == 5 and all(bodies)
        assert "make_tiled_tma_desc" not in str(bodies[0]) and "make_tiled_tma_desc" in bodies[1][0]
        replaced = [line for line in bodies[1] if "tensormap.replace" in line]
        assert len(replaced) == (4 if device else 0) and set(replaced) <= set(trace.body)
        assert "nv_tileas.tiled_load" in str(bodies[1]) and "async.tiled_tma_load" in str(bodies[2])
        assert "alloc_mbarrier" not in str(bodies[2]) and "alloc_mbarrier" in str(bodies[3])
    names = """KernelSpec gate, TMA-eligibility scan, tmaIdx assignment, descriptor bind, async op materialization,
    mbarrier emission, wait sinking, diagnostic finalization"""
    assert [phase.name for phase in trace.phases] == [name.strip() for name in names.split(",")]


def test_the_codes_of_swizzles() -> None:
    """0 without a swizzle, 3 for 32 and 64 bytes, 2 for 128."""
    codes = []
    for swizzle in ("none", "32B", "64B", "128B"):
        smem = tma.make_smem_layout("K", swizzle, "float16", (128, 64))
        [record] = tma.partition(smem, gmem(), (128, 64))
        codes.append(record.swizzle_mode)
    assert codes == [0, 3, 3, 2]


def test_the_tables_of_the_walkthrough() -> None:
    trace = tma.lower(tile_atom("load", (128, 128), "bf16", swizzle=3))
    assert [row.form for row in trace.flow] == [
        *("implicit", "implicit", "explicit attr", "explicit i32 operand"),
        *("explicit immediate", "explicit literal"),
    ]
    assert "tx_count = 32768 : i32" in trace.flow[2].carrier
    assert [row.trail.split(",")[0].split(" (")[0] for row in trace.spaces] == [
        *("space-1", "space-1", "space-3", "space-3", "space-0"),
    ]
    assert "global" in trace.spaces[0].trail and "64-bit aligned" in trace.spaces[3].trail


def test_the_row_that_is_not_of_a_tensor() -> None:
    found = examine("cp.async.bulk.global.shared::cta.bulk_group [%rd_dst], [%r_src], 64;")
    assert found.reasons("sm_90a", (9, 0)) == [] or found.reasons("sm_90a", (9, 0)) == ()
    assert "tensor" not in str(found.text)


def test_the_facts_of_steps_6_and_7_name_the_operand() -> None:
    walk = Operands(smem=Layout((128, Int(64)), (Int(64), Int(1)))).walk()
    facts = ["the shared layout (128,_64):(_64,_1) has run-time numbers"]
    assert (walk.failed, [d.message for d in walk.broken]) == (6, facts)
    walk = Operands(smem=Layout((Int(64), Int(128)), LayoutRight)).walk()
    facts = ["the shared layout has the sizes !cute.tile<[64:1;128:1]>; the CTA V-map has !cute.tile<[128:1;64:1]>"]
    assert (walk.failed, [d.message for d in walk.broken]) == (7, facts)
