"""Claims of the reference pages that no other test is about."""

from __future__ import annotations

from typing import Any

import pytest

import cute_py as cute
from cute_py import ArithTuple, E, Int, Layout, LayoutRight, tma, tmem
from cute_py.errors import TmaVerifyError, TmemError
from cute_py.tma.dialect.stages import opcode_name
from cute_py.tma.dialect.traced_copy import trace_copy
from cute_py.tmem import FORMS, R, S, TCol, TLane, copy_async, demonstration_copy, tmem_datapath_layout
from tests.calls.objects import gtensor
from tests.tma.dialect.atoms import tile_atom, window_operation
from tests.tma.dialect.partition_operands import NHWC, PATCHES, SMEM, SWIZZLED, TILE, Operands, gmem, ints
from tests.tmem.test_copy_async import buffers
from tests.tmem.test_emission import tiles


@pytest.mark.parametrize(("smem", "shown"), [(None, "None"), (42, "!cute.shape<42>"), ([1], "a Python list")])
def test_a_shared_operand_without_a_layout_is_step_1(smem: Any, shown: str) -> None:
    with pytest.raises(TmaVerifyError) as caught:
        tma.partition(smem, gtensor())
    assert caught.value.headline.startswith(f"invalid operand types, got {shown}, ")


def test_the_ten_operations_and_types_of_the_page() -> None:
    names = """atom.tma_load atom.tma_store atom.tma_reduce atom.non_exec_tiled_tma_load atom.non_exec_tiled_tma_store
    atom.non_exec_tiled_tma_reduce prefetch_tma_desc tma_descriptor_tiled tma_descriptor_im2col atom.make_exec_tma"""
    assert [row.name for row in tma.ATOM_FAMILY] == names.split()
    descriptor = tma.tma_descriptor_tiled(gmem(), SMEM)
    atoms = (
        tma.non_exec_tiled_tma_load(descriptor, SMEM),
        tma.non_exec_tiled_tma_store(gmem(), SMEM),
        tma.non_exec_tiled_tma_reduce(gmem(), SMEM),
    )
    place = cute.make_smem_ptr(0, "float16")
    for atom, run in zip(atoms, (tma.tma_load, tma.tma_store, tma.tma_reduce), strict=True):
        operation = run(tma.make_exec_tma(atom, tma.Mbarrier(1)), place, (0, 0))
        assert str(operation).startswith(f"cute_nvgpu.atom.tma_{atom.kind} %exec, %tile, %coord ")
    assert tma.prefetch_tma_desc(descriptor).descriptor is descriptor
    assert str(descriptor) == "!cute_nvgpu.tma_descriptor_tiled"
    assert str(tma.tma_descriptor_im2col(NHWC, (0, 0), (0, 0), 64, 128)) == "!cute_nvgpu.tma_descriptor_im2col"


def test_a_descriptor_records_fill_and_cache_policy() -> None:
    descriptor = tma.build_tma_descriptor(gmem(), SMEM, paddings=(0,))
    assert (descriptor.paddings, descriptor.cache_policy) == ((0,), tma.CacheMode.CG)
    assert (descriptor.request.oob_fill, tma.decode(tma.encode(descriptor)).oob_fill) == (0, 0)


def test_the_flags_of_im2col_copies_and_of_pairs() -> None:
    """Each flag beside what it says of the copy: an im2col map, a wide one, a tile that is half of the pair's."""
    flags = tma.TmaFlags
    shapes = flags.IM2COL | flags.IM2COL_W | flags.IM2COL_W128
    for mode, kind, wanted in (
        ("TILED", "tiled", flags(0)),
        ("IM2COL", "im2col", flags.IM2COL),
        ("IM2COL_W", "im2col_wide", flags.IM2COL | flags.IM2COL_W),
        ("IM2COL_W128", "im2col_wide", flags.IM2COL | flags.IM2COL_W128),
    ):
        [record] = (Operands() if mode == "TILED" else PATCHES).partition(store_mode=mode)
        assert (record.flags & shapes, record.body.request.KIND) == (wanted, kind)
    image = tma.build_tma_descriptor_im2col(NHWC, (-1, -1), (-1, -1), 64, 128)
    walk = tma.verify_partition(SMEM, NHWC, TILE, descriptor=image)
    assert walk.flags & shapes == flags.IM2COL
    [one], [pair] = Operands().partition(), Operands().partition(load_mode="TWO_CTA", arch="sm_100a")
    assert flags.TWO_CTA in pair.flags and flags.TWO_CTA not in one.flags
    assert [int(cute.size(record.body.smem_layout)) for record in (one, pair)] == [8192, 4096]
    assert [int(cute.size(record.body.cta_v_map)) for record in (one, pair)] == [8192, 4096]


def test_a_view_for_tensor_memory_reads_the_tile() -> None:
    view = tmem.get_copy_s2t_smem_desc(demonstration_copy(32, 1), 1024)
    [record] = Operands(smem=Layout(ints(32, 8), LayoutRight), tile=(32, 8)).partition(s2t=view)
    assert record.body.s2t == view and tma.TmaFlags.S2T_DESCRIPTOR in record.flags
    small = Operands(smem=Layout(ints(16, 8), LayoutRight), tile=(16, 8))
    for operands, facts in (
        (
            Operands(smem=SWIZZLED),
            ["s2t reads with swizzle 0; the tile has 3", "s2t reads 32 rows of 16 bytes; the tile has 128 of 128"],
        ),
        (
            small,
            ["s2t reads 32 rows of 16 bytes; the tile has 16 of 16", "s2t reads 512 bytes; the tile has 256"],
        ),
        (
            Operands(smem=Layout(ints(16, 16), LayoutRight), tile=(16, 16)),
            ["s2t reads 32 rows of 16 bytes; the tile has 16 of 32"],
        ),
    ):
        walk = operands.walk(s2t=view)
        assert (walk.failed, [d.message for d in walk.broken]) == (9, facts)


@pytest.mark.parametrize(
    ("atom", "name"),
    [
        (tile_atom("load", (256,), "uint8"), "CP_ASYNC_BULK_TENSOR_1D_SHARED_CLUSTER_GLOBAL_MBARRIER"),
        (tile_atom("load", (4, 8, 64), "float16"), "CP_ASYNC_BULK_TENSOR_3D_SHARED_CLUSTER_GLOBAL_MBARRIER"),
        (window_operation(), "CP_ASYNC_BULK_TENSOR_4D_IM2COL_SHARED_CLUSTER_GLOBAL_MBARRIER"),
        (
            tile_atom("load", (128, 64), "bfloat16", multicast=2),
            "CP_ASYNC_BULK_TENSOR_2D_MULTICAST_SHARED_CLUSTER_GLOBAL_MBARRIER",
        ),
    ],
)
def test_the_opcodes_of_stage_5(atom: Any, name: str) -> None:
    assert opcode_name(trace_copy(atom)) == name
    assert name in tma.lower(atom).stage("5").text.splitlines()


def test_grid_constant_is_by_value() -> None:
    made = tile_atom("load", (64, 64), "float16")
    assert any("marked cute_nvgpu.grid_constant" in note for note in tma.lower(made).stage("3").notes)
    assert "const __grid_constant__ TensorMap" in tma.cuda_kernel(made)
    on_device = tma.lower(made, device_descriptor=True)
    assert not any("grid_constant" in note for stage in on_device.stages for note in stage.notes)


def test_no_instruction_takes_the_token() -> None:
    trace = tma.lower(tile_atom("load", (64, 64), "float16"))
    assert all("%tok_a" in trace.stage(number).text for number in ("1", "2", "3a", "3", "3w"))
    assert not any("tok" in trace.stage(number).text for number in ("4", "4w", "5", "5w", "6", "6w"))


def test_elements_of_64_bits_are_refused() -> None:
    tmem, smem = buffers(src="float64", dst="float64")
    with pytest.raises(TmemError, match="an element has 64 bits; must have 4, 8, 16 or 32"):
        copy_async(tmem[0:32, 0:16], smem[0:32, 0:16], cta_group=1)


INTRODUCTION = "ArithTuple(0,_0,_0,_0) o ((_128,_64),2,3,1):((_1@0,_1@1),_64@1,_1@2,_1@3)"


def test_the_tensor_of_the_introduction() -> None:
    """Read, printed, and made by tiling a tensor of coordinates."""
    assert str(cute.parse(INTRODUCTION)) == INTRODUCTION
    start = cute.make_inttuple_iter((0, Int(0), Int(0), Int(0)))
    whole = cute.make_tensor(start, Layout((Int(128), 128, 3, 1), (E(0), E(1), E(2), E(3))))
    tiled = cute.group_modes(cute.local_tile(whole, ints(128, 64), (0, None)), 0, 2)
    assert str(tiled) == INTRODUCTION and tiled == cute.parse(INTRODUCTION)


def test_the_sums_and_products_of_the_page() -> None:
    assert 3 * E(0) + 4 * E(1) == ArithTuple(3, 4)
    assert str(5 * E(0, 1)) == "5@1@0" and 5 * E(0, 1) == ArithTuple(ArithTuple(0, 5))
    assert [str(e) for e in (E(0), E(1), E(0, 1), E(1, 0))] == ["_1@0", "_1@1", "_1@1@0", "_1@0@1"]
    assert E(3) == ArithTuple(0, 0, 0, 1)
    assert Layout((4, 5), (1, 100))(3, 2) == 3 + 100 * 2
    assert Layout((4, 5), (E(0), E(1)))(3, 2) == ArithTuple(3, 2)
    assert Layout((4, 5), (E(1), E(0)))(3, 2) == ArithTuple(2, 3)


@pytest.mark.parametrize(("row_bytes", "swizzle"), [(16, 0), (32, 1), (64, 2), (128, 3)])
def test_the_swizzle_follows_the_bytes_of_a_row(row_bytes: int, swizzle: int) -> None:
    layout = tmem.mma_shared_layout("uint8", swizzle, (32, row_bytes))
    smem = tmem.Buffer("A", (32, row_bytes), "uint8", "shared", layout)
    tensor = S[(32, 16) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane]
    to = tmem.Buffer("t", (32, 16), "uint8", "tmem", tensor, tmem.TmemAllocation(32))
    plan = copy_async(to.whole(), smem[0:32, 0:16]).plan
    assert (plan.row_bytes, int(plan.swizzle)) == (row_bytes, swizzle)


def test_data_paths_d_and_f_permute_the_rows() -> None:
    """D has row r in lane r; F has 16 rows in the lower half of each quarter of the lanes."""
    lanes = {
        name: tmem_datapath_layout(name, rows, 4).places(("TLane", "TCol"))[::4, 0, 0].tolist()
        for name, rows in (("D", 128), ("F", 64))
    }
    assert lanes["D"] == list(range(128))
    assert lanes["F"] == [32 * (row // 16) + row % 16 for row in range(64)]
    steps = [tile.taddr_offset for tile in tiles(3).plan.tiles]
    assert steps == [0, 4, 8]


def test_the_atom_of_the_page_is_fixed() -> None:
    """One form as the page has it; the others are a newer planner's."""
    for form in [form for form in FORMS if form.bits == 128]:
        layout = tmem.TileLayout([*form.lanes, tmem.Iter(form.bits // 8, 1, "TCol")], form.copies)
        width = form.bits // 8
        to = tmem.Buffer("t", (form.rows, width), "uint8", "tmem", layout, tmem.TmemAllocation(32))
        source = tmem.Buffer("A", (form.rows, width), "uint8", "shared", S[form.rows, width])
        assert copy_async(to.whole(), source.whole(), compat="tvm-0.27").plan.form is form
        if (form.shape, form.multicast) == ("32x128b", "warpx4"):
            assert copy_async(to.whole(), source.whole()).plan.form is form
        else:
            with pytest.raises(TmemError):
                copy_async(to.whole(), source.whole())
