"""Entry points, single-tile modules and kernels, the driver call, CuTe C++ and Triton snippets."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.assembler import assemble_each
from cute_py.errors import EmissionError, InvalidTypeError, InvalidValueError, TmaBuildError
from cute_py.ptx import entry_points
from cute_py.ptx.check import examine
from cute_py.ptx.entry_points import ENTRY_POINTS, EntryPoint, entry_point
from cute_py.ptx.module import assemble_module, find_ptxas
from cute_py.tma.descriptor.data_types import L2Promotion, TensorMapDataType
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled
from cute_py.tma.dialect.traced_copy import trace_copy
from cute_py.tma.exports.export import KINDS, cute_cpp, data_type_name, encode_call, export, triton, write_export
from cute_py.tma.exports.single_tile import cuda_kernel, shared_bytes, single_tile_ptx
from tests.calls.objects import im2col_atom
from tests.shares import one_in
from tests.tma.dialect.atoms import tile_atom, window_operation

needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="no ptxas on PATH or in an nvidia-cuda-nvcc wheel")
REQUEST = TensorMapTiled(9, 4096, (512, 1024), (1024,), (64, 128), swizzle=3, l2_promotion=2)
SHAPES = (
    tile_atom("load", (128, 128), "bf16", swizzle=3),
    tile_atom("store", (128, 128), "bf16", swizzle=3),
    tile_atom("reduce", (64, 64), "f32", reduce_kind="add"),
    window_operation((1, 2)),
    tile_atom("load", (2, 2, 2, 2, 64), "f16"),
    tile_atom("load", (64,), "f32"),
)
ARGUMENTS = {"desc": "%rd1", "mbar": "%r2", "smem": "%r1", "cache_hint": 0, "multicast_mask": 3}


def arguments(point: EntryPoint) -> list[str | int]:
    return [
        ARGUMENTS.get(name, f"%r{10 + i}" if "offset" not in name else i) for i, name in enumerate(point.parameters)
    ]


def test_the_store_of_three_coordinates() -> None:
    text = entry_points.SM90_TMA_STORE_3D.copy("%rd1", "%r1", "%r2", "%r3", "%r4")
    assert text == "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%rd1, {%r2, %r3, %r4}], [%r1];"


def test_a_cache_hint_of_0_is_none() -> None:
    point = entry_point("SM90_TMA_LOAD_2D")
    assert point.parameters == ("desc", "mbar", "cache_hint", "smem", "crd0", "crd1")
    assert "cache_hint" not in point.copy("%rd1", "%r2", 0, "%r1", 0, 0)
    hinted = point.copy("%rd1", "%r2", "%rd7", "%r1", 0, 0)
    assert hinted.endswith(".L2::cache_hint [%r1], [%rd1, {0, 0}], [%r2], %rd7;")


@needs_ptxas
def test_every_entry_point_assembles_where_it_exists() -> None:
    texts = [point.copy(*arguments(point)) for point in ENTRY_POINTS]
    assert all(examine(text).canonical for text in texts)
    assert assemble_each(texts, "sm_100a", (9, 0)) == [None] * len(texts)
    hopper = [text for point, text in zip(ENTRY_POINTS, texts, strict=True) if point.name.startswith("SM90")]
    assert assemble_each(hopper, "sm_90", (8, 0)) == [None] * len(hopper)
    assert len({point.name for point in ENTRY_POINTS}) == len(ENTRY_POINTS)


def test_entry_points_by_name() -> None:
    assert entry_points.SM90_TMA_REDUCE_ADD_5D.asm.constraints == ("l", "r", *"rrrrr")
    with pytest.raises(InvalidValueError, match="is not an entry point"):
        entry_point("SM90_TMA_STORE_6D")
    with pytest.raises(AttributeError):
        entry_points.SM90_TMA_STORE_6D  # noqa: B018
    with pytest.raises(EmissionError, match="names no CTA"):
        entry_point("SM90_TMA_LOAD_MULTICAST_1D").copy("%rd1", "%r2", 0, 0, "%r1", 0)


@needs_ptxas
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("arch", one_in(3, ("sm_90a", "sm_100a", "sm_120a")))
def test_single_tile_modules_assemble(shape: Any, arch: str) -> None:
    source = single_tile_ptx(shape, arch)
    accepted, messages, _ = assemble_module(source, arch)
    assert accepted, messages
    copy = trace_copy(shape)
    if copy.direction == "load":
        assert f"mbarrier.arrive.expect_tx.shared.b64 _, [%r_bar], {copy.transaction_bytes};" in source
    assert "MEMBAR" not in source and "fence.acq_rel" not in source


@needs_ptxas
def test_gather_and_scatter_modules_assemble() -> None:
    for direction, op in (("load", "SM100_TMA_LOAD_2D_GATHER4"), ("store", "SM100_TMA_STORE_2D_SCATTER4")):
        shape = tile_atom(direction, (4, 64), "f16", op=op, arch="sm_100a")
        assert assemble_module(single_tile_ptx(shape, "sm_100a"), "sm_100a")[0]
        with pytest.raises(EmissionError, match="needs an a or f variant"):
            single_tile_ptx(shape, "sm_90a")


def test_what_a_single_tile_has_not() -> None:
    for shape in (
        tile_atom("load", (8, 64), "f16", multicast=2),
        tile_atom("load", (8, 64), "f16").with_(None, cache_hint=1),
    ):
        for make in (single_tile_ptx, cuda_kernel):
            with pytest.raises(EmissionError, match="no cluster and no policy"):
                make(shape)
    assert shared_bytes(tile_atom("load", (3, 16), "uint8")) == 128 + 8


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_kernels_compile(tmp_path: Path) -> None:
    """All kernels in one file; their addresses differ by name."""
    bodies = [cuda_kernel(shape, f"move_{number}") for number, shape in enumerate(SHAPES)]
    struct = re.search(r"struct __align__\(64\).*\n", bodies[0])
    assert struct is not None
    (tmp_path / "all.cu").write_text(struct[0] + "".join(body.replace(struct[0], "") for body in bodies))
    done = subprocess.run(
        ["nvcc", "-arch=sm_90a", "-cubin", "-o", str(tmp_path / "all.cubin"), str(tmp_path / "all.cu")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_driver_call_word_for_word() -> None:
    assert encode_call(REQUEST) == (
        "CUtensorMap map;\n"
        "cuuint64_t global_dim[2] = {512ULL, 1024ULL};\n"
        "cuuint64_t global_strides[1] = {1024ULL};  // bytes, modes 1..\n"
        "cuuint32_t box_dim[2] = {64, 128};\n"
        "cuuint32_t element_strides[2] = {1, 1};\n"
        "CUresult result = cuTensorMapEncodeTiled(\n"
        "    &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, global_address, global_dim, global_strides, box_dim, "
        "element_strides,\n"
        "    CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,\n"
        "    CU_TENSOR_MAP_L2_PROMOTION_L2_128B,\n"
        "    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);"
    )


IM2COL = TensorMapIm2col(6, 4096, (64, 8, 8, 1), (128, 1024, 8192), (-1, -1), (1, 1), 64, 8)
WIDE = TensorMapIm2colWide(6, 4096, (64, 8, 8, 1), (128, 1024, 8192), -1, 1, 64, 8, mode=1)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_driver_calls_compile(tmp_path: Path) -> None:
    """Against the toolkit's own header: names, types and order of the arguments."""
    requests = (REQUEST, TensorMapTiled(0, 4096, (64,), (), (64,)), IM2COL, WIDE)
    parts = [
        f"CUresult make_{number}(void* global_address) {{\n{encode_call(request)}\nreturn result;\n}}"
        for number, request in enumerate(requests)
    ]
    (tmp_path / "calls.cpp").write_text("#include <cuda.h>\n" + "\n".join(parts))
    done = subprocess.run(
        ["nvcc", "-c", "-o", str(tmp_path / "calls.o"), str(tmp_path / "calls.cpp")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_wide_call_has_its_mode() -> None:
    assert "INTERLEAVE_NONE, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128, CU_TENSOR_MAP_SWIZZLE_NONE" in encode_call(WIDE)
    assert "int lower_corner[2] = {-1, -1};" in encode_call(IM2COL)
    assert data_type_name(TensorMapDataType.PACKED_16U4_ALIGN8B) == "CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B"
    with pytest.raises(EmissionError, match="without a name"):
        encode_call(TensorMapTiled(9, 4096, (512,), (), (64,), l2_promotion=9))
    assert L2Promotion.B256 == 3


def test_cute_and_triton_word_for_word() -> None:
    shape = tile_atom("load", (128, 128), "bf16", swizzle=3)
    assert cute_cpp(shape, REQUEST) == (
        "#include <cute/tensor.hpp>\n"
        "using namespace cute;\n"
        "auto gA = make_tensor(make_gmem_ptr(static_cast<cute::bfloat16_t*>(pointer)),\n"
        "                      make_shape(1024, 512), make_stride(512, Int<1>{}));\n"
        "auto sA_layout = tile_to_shape(GMMA::Layout_K_SW128_Atom<cute::bfloat16_t>{}, "
        "make_shape(Int<128>{}, Int<128>{}));\n"
        "auto tma = make_tma_copy(SM90_TMA_LOAD{}, gA, sA_layout,\n"
        "                         make_shape(Int<128>{}, Int<128>{}), Int<1>{});"
    )
    plain = cute_cpp(tile_atom("load", (64, 32), "bf16"), REQUEST)
    assert "auto sA_layout = make_layout(make_shape(Int<64>{}, Int<32>{}), LayoutRight{});" in plain
    shared = cute_cpp(tile_atom("load", (64, 64), "bf16", swizzle=3, multicast=4), REQUEST)
    assert "make_tma_copy(SM90_TMA_LOAD_MULTICAST{}" in shared
    assert shared.endswith("make_shape(Int<64>{}, Int<64>{}), Int<4>{});")
    text = triton(shape, REQUEST)
    ast.parse(text)
    assert "pointer, shape=[1024, 512], strides=[512, 1], block_shape=[128, 128]" in text
    assert "tile = desc.load([block_m * 128, block_k * 128])" in text
    store = triton(tile_atom("store", (128, 128), "bf16", swizzle=3), REQUEST)
    ast.parse(store)
    assert "desc.store([block_m * 128, block_k * 128], tile)" in store


@pytest.mark.parametrize(
    ("make", "shape", "words"),
    [
        (cute_cpp, im2col_atom(), "only mode tile can be exported, got im2col"),
        (cute_cpp, tile_atom("reduce", (8, 64), "f16", reduce_kind="min"), "got min"),
        (cute_cpp, tile_atom("load", (8, 64), "f16", swizzle=4), "no canonical K-major layout atom"),
        (cute_cpp, tile_atom("load", (8, 32), "f16", swizzle=3), "the box has rows of 64 bytes, but the atom has 128"),
        (cute_cpp, tile_atom("load", (2, 8, 64), "f16", swizzle=3), "the tile has rank 3, but the atom has rank 2"),
        (triton, tile_atom("load", (8, 64), "f16", multicast=2), "descriptors have no multicast"),
        (triton, tile_atom("load", (8, 64), "float4_e2m1fn"), "the element type"),
        (triton, tile_atom("reduce", (8, 64), "uint32", reduce_kind="inc"), "got inc"),
    ],
)
def test_what_a_framework_has_not(make: object, shape: Any, words: str) -> None:
    assert callable(make)
    with pytest.raises(EmissionError, match=words):
        make(shape, REQUEST)


def test_one_function_for_all_exports(tmp_path: Path) -> None:
    shape = SHAPES[0]
    texts = {kind: export(shape, kind, request=REQUEST) for kind in KINDS}
    assert texts["cu"] == cuda_kernel(shape)
    assert texts["ptx"] == single_tile_ptx(shape, "sm_90a")
    assert texts["c"] == encode_call(REQUEST)
    assert texts["cute"] == cute_cpp(shape, REQUEST)
    assert texts["triton"] == triton(shape, REQUEST)
    assert "cp.async.ca.shared.global" in export(shape, "ptx", arch="sm_80")
    written = write_export(shape, "c", tmp_path / "map", request=REQUEST)
    assert written.name == "map.c" and written.read_text() == texts["c"] + "\n"
    assert write_export(shape, "ptx", tmp_path / "tile.s").name == "tile.s"


def test_exports_that_can_not_be() -> None:
    with pytest.raises(InvalidValueError, match="export 'sass'; expected one of cu, ptx, c, cute, triton"):
        export(SHAPES[0], "sass")
    with pytest.raises(TmaBuildError, match="expected an atom, but the argument has no attribute op, request"):
        export(3, "cute")  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="expected a tensor map request, got int"):
        export(3, "c")  # type: ignore[arg-type]
    with pytest.raises(EmissionError, match="needs a tiled request; got TensorMapIm2col"):
        export(SHAPES[0], "triton", request=IM2COL)
