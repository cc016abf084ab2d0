"""The trace of a real tensor: the walkthrough's own example whole, five others by hand, and verifiers that fire."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout
from cute_py.draw.shared_memory import draw_smem
from cute_py.errors import (
    CoordinateError,
    DeviceError,
    InvalidTypeError,
    InvalidValueError,
    MissingPackageError,
    TmaBuildError,
)
from cute_py.ptx import module
from cute_py.ptx.module import assemble_module, find_ptxas
from cute_py.tma.atom.make import make_tma_copy
from cute_py.tma.atom.smem_layout import make_smem_layout
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.dialect.lowering import cuda_of, lower, module_of, wait_text
from cute_py.tma.dialect.stages import check_stages
from cute_py.tma.dialect.traced_copy import trace_copy
from tests.each import each_of
from tests.messages.test_lower_messages import (
    STAGE_1,
    STAGE_2,
    STAGE_3_BEHIND_THE_BOX,
    STAGE_3A,
    STAGE_4,
    STAGE_5,
    STAGE_6,
)
from tests.shares import one_in
from tests.tma.dialect.atoms import tile_atom, window_operation

BF16 = "bfloat16"


def atom(layout: Any, smem: Any, op: str = "SM90_TMA_LOAD", dtype: str = BF16, **options: Any) -> Any:
    return make_tma_copy(op, cute.make_tensor(cute.make_gmem_ptr(4096, dtype), layout), smem, **options)


def row_major(*shape: int) -> Layout:
    return Layout(tuple(Int(n) for n in shape), cute.LayoutRight)


EXAMPLE = lower(atom(Layout((512, 1024), (1024, Int(1))), row_major(128, 128)), (1, 2))
"""The walkthrough's tile in one box, which it is without a swizzle."""
TWO_BOXES = atom(Layout((512, 1024), (1024, Int(1))), make_smem_layout("K", "128B", BF16, (128, 128)))
COLUMNS = atom(Layout((256, 128), (Int(1), 256)), Layout((Int(64), Int(32))))
PADDED = atom(Layout((256, 100), (128, Int(1))), row_major(64, 32))
RANK_4 = atom(
    Layout((2, 8, 64, 64), (32768, 4096, Int(1), 64)),
    Layout((Int(1), Int(4), Int(32), Int(16)), (Int(0), Int(512), Int(1), Int(32))),
)
RANK_1 = atom(Layout(4096), Layout(Int(256)))
RANK_5 = atom(Layout((2, 2, 4, 64, 64), cute.LayoutRight), row_major(1, 1, 1, 16, 64))
STORE = atom(Layout((Int(512), Int(1024)), (Int(1024), Int(1))), row_major(128, 64), "SM90_TMA_STORE")
ATOMS = {
    "two boxes": TWO_BOXES,
    "column-major": COLUMNS,
    "padded": PADDED,
    "rank 4": RANK_4,
    "rank 1": RANK_1,
    "rank 5": RANK_5,
    "store": STORE,
}

STAGE_3 = (
    "// ---- descriptor materialized by phase 4\n"
    "%desc_a = nv_tileas.make_tiled_tma_desc %a_ref, box = [128, 128],\n" + STAGE_3_BEHIND_THE_BOX
).replace("swizzle_128B", "swizzle_none")


def test_the_walkthroughs_example_token_for_token() -> None:
    assert EXAMPLE.stage("1").text.split() == STAGE_1.split()
    assert EXAMPLE.stage("2").text.split() == STAGE_2.split()
    assert EXAMPLE.stage("3a").text.split() == STAGE_3A.split()
    assert EXAMPLE.stage("3").text.split() == STAGE_3.split()
    assert EXAMPLE.stage("4").text.split() == STAGE_4.split()
    assert EXAMPLE.stage("5").text.split() == STAGE_5.split()
    expectation = (
        "// ---- mbarrier publishes the 32768-byte expectation\n"
        "mbarrier.arrive.expect_tx.shared.b64 _, [%rd_mbar], 32768;\n"
        "// ---- TMA bulk-tensor 2D load\n"
    )
    assert EXAMPLE.ptx.split() == (expectation + STAGE_6).split()
    assert EXAMPLE.diagnostics == () and EXAMPLE.element_coords == (256, 128)


def test_the_swizzled_example_differs_by_its_second_box_alone() -> None:
    trace = lower(TWO_BOXES)
    assert [trace.stage(n).text for n in ("1", "2", "3a")] == [STAGE_1, STAGE_2, STAGE_3A]
    whole = STAGE_3.replace("swizzle_none", "swizzle_128B")
    assert trace.stage("3").text == whole.replace("box = [128, 128]", "box = [128, 64]")
    first = {"4": STAGE_4, "5": STAGE_5}
    assert all(trace.stage(n).text.startswith(text) for n, text in first.items())
    rest = trace.stage("5").text.removeprefix(STAGE_5).strip().splitlines()
    assert rest[:2] == ["%bk_1:b32 = ADD32ri %bk:b32, 64", "%a_smem_dst_1:b64 = ADD64ri %a_smem_dst:b64, 16384"]
    again = STAGE_5.splitlines()[4:]
    assert [line.replace("%a_smem_dst_1", "%a_smem_dst").replace("%bk_1", "%bk") for line in rest[2:]] == again
    assert rest[3].startswith("%a_smem_dst_1:b64,") and rest[5].startswith("%bk_1:b32, %bm:b32,")


def test_a_column_major_tensor() -> None:
    trace = lower(COLUMNS, (1, 0))
    assert trace.stage("1").text == (
        "%a_view = cuda_tile.tensor_view %A, shape = [%M, %K], stride = [1, %M]\n"
        ": !cuda_tile.tensor_view<32x64xbf16>\n"
        "%a_part = cuda_tile.partition_view %a_view, tile = [32, 64], dim_map = [1, 0]\n"
        ": !cuda_tile.partition_view<32x64xbf16>\n"
        "%tok0 = cuda_tile.make_token : !cuda_tile.token\n"
        "%a_tile, %tok_a = cuda_tile.load_view_tko %a_part, [%bk, %bm], %tok0\n"
        ": !cuda_tile.tile<32x64xbf16>, !cuda_tile.token"
    )
    assert trace.stage("1").notes == ("the tensor: %M = 256, %K = 128",)
    assert trace.element_coords == (64, 0)
    assert "{%r_bm, %r_bk}" in trace.ptx and "i32 %bm_coord, ; coord[0]: inner-axis (was %bk)" in trace.stage("4").text


def test_padded_rows() -> None:
    trace = lower(PADDED, (0, 3))
    assert trace.stage("1").text.splitlines()[0] == (
        "%a_view = cuda_tile.tensor_view %A, shape = [%M, %K], stride = [%sm, 1]"
    )
    assert trace.stage("1").notes == ("the tensor: %M = 256, %K = 100, %sm = 128",)
    assert trace.stage("3a").text == (
        "%a_tile, %tok_a = nv_tileas.tiled_load %off_a, %tok0\n"
        "{ atom = #cute.copy_atom<sm90_tma_load_2d_bf16>,\n"
        "in_bounds = array<i1: true, false>,\n"
        "mem_semantic = #nv_tileas<mem_semantic relaxed>,\n"
        "mem_scope = #nv_tileas<mem_scope cluster> }\n"
        ": !nv_tileaa.memref<?x?xbf16> -> tensor<64x32xbf16>,\n"
        "!nv_tileaa.mem_token"
    )
    assert "i1: true, true>" in lower(PADDED, (0, 2)).stage("2").text  # the last whole tile of a row


def test_a_permuted_tensor_of_rank_4() -> None:
    trace = lower(RANK_4, (1, 1, 0, 2))
    assert trace.stage("2").text == (
        "%a_ref = nv_tileaa.make_memref %A, shape = [%N, %H, %W, %C], stride = [%H*%W*%C, %W*%C, 1, %W],\n"
        "space = #nv_tileaa.global\n"
        ": !nv_tileaa.memref<?x?x?x?xbf16>\n"
        "%off_a = nv_tileaa.addptr %a_ref, [%bn, %bh, %bc, %bw]\n"
        ": !nv_tileaa.memref<?x?x?x?xbf16>\n"
        "%a_tile, %tok_a = nv_tileaa.tiled_load %off_a, %tok0\n"
        "{ atom = #cute.copy_atom<sm90_tma_load_4d_bf16>,\n"
        "in_bounds = array<i1: true, true, true, true>,\n"
        "mem_semantic = #nv_tileaa<mem_semantic relaxed>,\n"
        "mem_scope = #nv_tileaa<mem_scope cluster> }\n"
        ": !nv_tileaa.memref<?x?x?x?xbf16> -> tensor<1x4x16x32xbf16>,\n"
        "!nv_tileaa.mem_token"
    )
    assert "tile = [1, 4, 16, 32], dim_map = [0, 1, 3, 2]" in trace.stage("1").text
    assert trace.element_coords == (0, 32, 4, 1)
    assert "[%rd_desc_a, {%r_bw, %r_bc, %r_bh, %r_bn}]" in trace.ptx


def test_a_static_tensor_prints_its_numbers() -> None:
    text = lower(STORE).stage("2").text
    assert text.startswith("%a_ref = nv_tileaa.make_memref %A, shape = [512, 1024], stride = [1024, 1],\n")
    assert "!nv_tileaa.memref<512x1024xbf16>" in text
    assert "call void @llvm.nvvm.cp.async.bulk.tensor.s2g.tile.2d(\n" in lower(STORE).stage("4").text


def test_a_descriptor_made_on_the_device() -> None:
    trace = lower(PADDED, device_descriptor=True)
    replace = "tensormap.replace.tile"
    assert trace.stage("3").text.splitlines()[5:14] == [
        "// ---- descriptor made on the device: its slot is rebound before the copy",
        "nv_tileas.tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.cta.sync.aligned %desc_a",
        "nv_tileas.fence.proxy.tensormap::generic.acquire.cta %desc_a",
        f"nv_tileas.{replace}.global_address.global.b1024.b64 %desc_a, %A : i64",
        f"nv_tileas.{replace}.global_dim.global.b1024.b32 %desc_a[0], %K : i32",
        f"nv_tileas.{replace}.global_dim.global.b1024.b32 %desc_a[1], %M : i32",
        f"nv_tileas.{replace}.global_stride.global.b1024.b64 %desc_a[0], %a_stride1 : i64",
        "nv_tileas.fence.proxy.tensormap::generic.release.cta %desc_a",
        "nv_tileas.fence.proxy.tensormap::generic.acquire.cta %desc_a",
    ]
    calls = re.findall(r'asm sideeffect "(\S+) ([^"]*)", "([lr,]*)"\((.*)\)', trace.stage("4").text)
    slot = "ptr addrspace(1) %desc_a_ptr"
    assert [call[1:] for call in calls if call[0].startswith(replace)] == [
        ("[$0], $1;", "l,l", f"{slot}, i64 %A"),
        ("[$0], 0, $1;", "l,r", f"{slot}, i32 %K"),
        ("[$0], 1, $1;", "l,r", f"{slot}, i32 %M"),
        ("[$0], 0, $1;", "l,l", f"{slot}, i64 %a_stride1"),
    ]
    static = lower(STORE, device_descriptor=True).ptx
    assert f"{replace}.global_dim.global.b1024.b32 [%rd_desc_a], 1, 512;" in static
    assert f"{replace}.global_stride.global.b1024.b64 [%rd_desc_a], 0, 2048;" in static
    host = lower(PADDED)
    assert replace not in "".join(stage.text for stage in host.stages)
    shared = atom(Layout((512, 1024), (1024, Int(1))), row_major(128, 64), "SM90_TMA_LOAD_MULTICAST", num_multicast=2)
    assert "acquire.gpu [%rd_desc_a], 128;" in lower(shared, device_descriptor=True).ptx


@each_of("device", (False, True))
@each_of("name", ATOMS)
def test_every_name_is_defined(name: str, device: bool) -> None:
    """In stages 4 and 5, what is not a value of the kernel or of an earlier stage is on the left of an earlier line."""
    trace = lower(ATOMS[name], device_descriptor=device)
    axes = {f"%b{axis.lower()}" for axis in re.findall(r"%b(\w+)", trace.stage("3").coordinates)}
    kernel = {"%a_smem_dst", "%a_smem_src", "%mbar_a", "%desc_a", "%A", "%seed_a"} | axes | {f"{a}_coord" for a in axes}
    kernel |= set(re.findall(r"%\w+", trace.stage("1").text)) | {f"%a_stride{mode}" for mode in range(1, 5)}
    for number in ("4", "5"):
        known = set(kernel)
        for line in trace.stage(number).text.splitlines():
            left, equals, right = line.partition(" = ")
            code = (right if equals else left).partition(" ; ")[0]
            assert set(re.findall(r"%[\w]+", code.partition("; ----")[0])) <= known, (number, line)
            known |= set(re.findall(r"^%\w+", left)) if equals else set()


@pytest.mark.parametrize("name", [name for name in ATOMS if name != "store"])
def test_a_tile_means_what_it_means_to_execute(name: str) -> None:
    """The element at the trace's coordinates is the first that `execute` loads, by coordinate and by number."""
    made = ATOMS[name]
    layout = made.gtensor.layout
    shape, strides = (n if isinstance(n, tuple) else (n,) for n in (layout.shape, layout.stride))
    memory = np.arange(int(cute.cosize(layout)) + 128, dtype=np.uint16)
    x = np.lib.stride_tricks.as_strided(memory, [int(n) for n in shape], [2 * int(d) for d in strides])
    real = make_tma_copy("SM90_TMA_LOAD", x, made.smem_layout)
    request = real.request
    steps = (1, *(stride // 2 for stride in request.global_strides))
    tiles = cute.tma.instructions(real).tiles
    for number in {0, 1, tiles // 2, tiles - 1}:
        coord = cute.idx2crd(number, cute.tma.instructions(real).tile_shape)
        for tile in {number, coord}:
            start = lower(real, tile).element_coords
            assert start is not None
            if all(c < n for c, n in zip(start, request.global_dim, strict=True)):
                first = cute.tma.execute(real, x, tile).smem[:2].view(np.uint16)[0]
                assert int(first) == sum(c * s for c, s in zip(start, steps, strict=True)) % 2**16


@pytest.mark.parametrize("coord", [[1, 2], np.array([1, 2]), range(1, 3)], ids=["list", "array", "range"])
def test_a_coordinate_is_any_sequence_of_integers(coord: Any) -> None:
    assert lower(COLUMNS, coord).element_coords == lower(COLUMNS, (1, 2)).element_coords
    x = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    made = make_tma_copy("SM90_TMA_LOAD", x, row_major(16, 16))
    assert (cute.tma.execute(made, x, coord).smem == cute.tma.execute(made, x, (1, 2)).smem).all()
    assert str(draw_smem(made, coord)) == str(draw_smem(made, (1, 2)))
    with pytest.raises(InvalidTypeError, match="must be an integer"):
        cute.tma.execute(made, x, "12")


def test_no_such_tile() -> None:
    for tile in (16, -1, (4, 0), (0, -1)):
        for call in (lambda at: lower(COLUMNS, at), lambda at: cute.tma.execute(COLUMNS, b"", at)):
            with pytest.raises(InvalidValueError, match="the tensor has 16 tiles"):
                call(tile)
    with pytest.raises(CoordinateError, match="expects 2 coordinates, but got 3"):
        lower(COLUMNS, (1, 2, 3))


def test_the_consumers_wait() -> None:
    assert [stage.number for stage in EXAMPLE.consumer] == ["3w", "4w", "5w", "6w"]
    assert "nv_tileas.async.pipeline.consumer_wait %mbar_a, %parity" in EXAMPLE.stage("3w").text
    assert "@llvm.nvvm.mbarrier.try_wait.parity.shared(\nptr addrspace(3) %mbar_a," in EXAMPLE.stage("4w").text
    assert "MBARRIER_TRY_WAIT_PARITY_SHARED %mbar_a:b64" in EXAMPLE.stage("5w").text
    assert EXAMPLE.stage("6w").text == wait_text()
    assert "mbarrier.try_wait.parity.shared.b64 %p_done, [%rd_mbar], %r_parity;" in wait_text()
    assert all(stage.text in str(EXAMPLE) for stage in EXAMPLE.consumer)
    assert lower(STORE).consumer == ()


def test_optional_operands_have_their_slots_and_numbers() -> None:
    """The mask is at adaptor slot 7, the hint at 8; both are numbered behind the coordinates and the im2col offsets."""
    both = lower(tile_atom("load", (128, 64), "bf16", swizzle=3, multicast=2).with_(None, 3, 1)).stage("4").notes[1:]
    assert both == (
        "multicast mask: adaptor slot 7, OptionalAttr<I16Attr>, operand 5 of the instruction",
        "L2 cache hint: adaptor slot 8, OptionalAttr<I64Attr>, operand 6 of the instruction",
    )
    window = window_operation((1, 2), "evict_first")
    [hint] = lower(window).stage("4").notes[1:]
    assert hint == "L2 cache hint: adaptor slot 8, OptionalAttr<I64Attr>, operand 9 of the instruction"
    call = "call void @llvm.nvvm.cp.async.bulk.tensor.shared.cluster.global.im2col.4d(\n"
    assert f"{call}i16 1, ; im2col offset[0]\n" in lower(window).stage("4").text


@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas on PATH or in an nvidia-cuda-nvcc wheel")
@pytest.mark.parametrize("device", (False, True))
@pytest.mark.parametrize("name", ATOMS)
def test_the_copy_and_its_wait_assemble(name: str, device: bool) -> None:
    trace = lower(ATOMS[name], device_descriptor=device)
    text = "\n".join([trace.ptx, *(stage.text for stage in trace.consumer[-1:])])
    accepted, messages, _ = assemble_module(module_of(text, "sm_90a"), "sm_90a")
    assert accepted, messages


def broken(made: Any, **fields: Any) -> Any:
    return dataclasses.replace(made, request=dataclasses.replace(made.request, **fields))


NARROW = atom(Layout((256, 64), (64, Int(1))), row_major(64, 4), check=False)
WIDE = atom(Layout((256, 256), (256, Int(1))), cute.ComposedLayout(
    cute.Swizzle(3, 4, 3), cute.smem_ptr_flag(16), row_major(64, 128)), check=False)  # fmt: skip
COUNTED = atom(Layout((256, 64), (64, Int(1))), row_major(64, 64), internal_dtype="uint16")
ROWS = atom(Layout((256, 64), (64, Int(1))), row_major(48, 64))
FIRES: list[tuple[str, Any, dict[str, Any], str]] = [
    ("1", ROWS, {}, "all dimensions must be powers of two, got [48, 64]"),
    ("2", COUNTED, {}, "view elementType not equal with tensor element type: bf16 vs i16"),
    ("2", COLUMNS, {"tile_coord": (np.int32(1), np.int32(0))}, "expects CoordType is same as memref index type"),
    ("3a", COLUMNS, {"mem_semantic": "acquire"}, "unsupported mem_semantic: acquire"),
    ("3a", STORE, {"mem_semantic": "release"}, "unsupported mem_semantic: release"),
    ("3a", COLUMNS, {"in_bounds": (True,)}, "incorrect number of in_bounds elements: expected 2"),
    ("3", COLUMNS, {"alignment": 64}, "expected tma descriptor pointer to have alignment at least 128"),
    ("3", NARROW, {}, "tma boxDims[0] * elemTypeBitWidth is not a multiple of 16 bytes"),
    ("3", WIDE, {}, "smem layout is not TMA compatible"),
    ("3", broken(COLUMNS, oob_fill=1), {}, "TmaLoad only support zero padding now"),
    (
        "5",
        tile_atom("load", (128, 64), "bf16", sizes=(2**32, 64)),
        {"tile_coord": (2**24, 0)},
        "CP_ASYNC_BULK_TENSOR_2D_SHARED_CLUSTER_GLOBAL_MBARRIER: 2147483648 does not fit b32",
    ),
]


@each_of(("stage", "made", "options", "text"), FIRES, ids=[f"{row[0]} {row[3][:40]}" for row in FIRES])
def test_each_verifier_fires_on_the_values_of_the_copy(
    stage: str, made: Any, options: dict[str, Any], text: str
) -> None:
    trace = lower(made, **options)
    assert trace.diagnostics == (f"stage {stage}: {text}",)
    with pytest.raises(TmaBuildError, match=re.escape(text)):
        trace.verify()
    if stage == "5":
        assert trace.ptx == f"// not emitted: {text}"


def test_a_call_has_the_operands_that_its_intrinsic_declares() -> None:
    short = dataclasses.replace(trace_copy(window_operation((1, 2))), im2col_offsets=(1,))
    text = "llvm.nvvm.cp.async.bulk.tensor.shared.cluster.global.im2col.4d takes 9 operands, but got 8"
    assert check_stages(short, "sm_90a")["4"] == (text,)
    assert lower(short).ptx == f"// not emitted: {text}"


def test_parts_of_a_multicast_are_128_bytes_or_more() -> None:
    with pytest.raises(TmaBuildError, match="mcast is not supported for TMA load with less than 128bytes per atom"):
        lower(tile_atom("load", (1, 32), "f16", multicast=2))
    assert lower(tile_atom("load", (2, 64), "f16", multicast=2)).diagnostics == ()


def test_the_atoms_kind_and_rank_are_checked() -> None:
    class Program:
        """A load in the program, through an atom that stores."""

        name = "atom.tma_load"

        def __getattr__(self, name: str) -> Any:
            return getattr(STORE, name)

    [text] = lower(Program()).diagnostics
    assert text == "stage 3: expect a tma_load atom type"
    other = TensorMapTiled(9, 4096, (64, 64, 2), (128, 8192), (64, 64, 1))
    with pytest.raises(TmaBuildError, match="tmaBoxDim and atomBoxDim length mismatch"):
        lower(dataclasses.replace(COLUMNS, request=other))


def can_disassemble() -> bool:
    return module.find_disassembler() is not None


@pytest.mark.skipif(not can_disassemble() or find_ptxas() is None, reason="no nvdisasm, or nothing that makes a cubin")
@pytest.mark.parametrize(
    ("made", "machine"),
    one_in(3, [(TWO_BOXES, ["UTMALDG.2D", "UTMALDG.2D"]), (STORE, ["UTMASTG.2D"]), (RANK_4, ["UTMALDG.4D"])]),
)
def test_stage_7_is_machine_code_beside_the_instructions(made: Any, machine: list[str]) -> None:
    text = lower(made, sass=True).stage("7").text
    beside = re.findall(r"^// cp\.async\.bulk\.tensor\S* \[.*;  ->  (\S+) \[UR\d+\], \[UR\d+\].*;$", text, re.MULTILINE)
    assert beside == machine
    assert all(code in text.partition("\n.target")[2] or code in text for code in machine)
    if made is not STORE:
        assert re.search(r"^// mbarrier\.arrive\.expect_tx.*->  SYNCS\.ARRIVE\.TRANS64", text, re.MULTILINE)


def test_machine_code_is_made_on_request_alone() -> None:
    assert lower(COLUMNS).stage("7").text == "// on request: lower(..., sass=True)"


def test_a_missing_disassembler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        lower(COLUMNS, sass=True)
    except MissingPackageError as missing:
        if "nvidia-cuda-nvdisasm" not in str(missing):
            pytest.skip("nothing that makes a cubin")
    except DeviceError:
        pytest.skip("what makes the cubin is older than the target")
    monkeypatch.setattr(module, "find_disassembler", lambda: None)
    with pytest.raises(MissingPackageError, match="nvidia-cuda-nvdisasm"):
        lower(COLUMNS, sass=True)


def test_a_kernel_around_the_instructions_has_what_they_read_as_parameters() -> None:
    text = cuda_of(lower(TWO_BOXES).ptx)
    assert 'extern "C" __global__ void lowered(unsigned r_bk, unsigned r_bm, unsigned long long rd_desc_a, ' in text
    assert '"add.s32 %%r_bk_1, %%r_bk, 64;\\n"' in text and "//" not in text
    assert ".param .b32 p_r_bk," in module_of(lower(TWO_BOXES).ptx, "sm_90a")
