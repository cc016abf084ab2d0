"""`lower`: one copy through its stages, with its numbers; what the verifiers say; what is split."""

from __future__ import annotations

import io
import math
import shutil
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import CoordinateError, EmissionError, InvalidValueError, TmaBuildError
from cute_py.ptx.assembler import assemble_module, find_ptxas
from cute_py.ptx.check import examine
from cute_py.tma.descriptor.formats import TensorMapSwizzle
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.descriptor.violations import violations
from cute_py.tma.dialect.copy_shape import CopyShape, choose_witness, copy_shape, copy_shape_of
from cute_py.tma.dialect.lowering import SASS_OPCODES, lower, module_of
from cute_py.tma.dialect.stages import INNER_FIRST, OUTER_FIRST

EXAMPLE = copy_shape("load", (128, 128), "bf16", swizzle=3)
needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="no ptxas on PATH or in an nvidia-cuda-nvcc wheel")


def test_the_walkthroughs_example_has_its_numbers() -> None:
    trace = lower(EXAMPLE, arch="sm_90a")
    assert trace.witness.name == "sm90_tma_load_2d_bf16"
    assert trace.shape.transaction_bytes == 32768
    assert "tx_count = 32768 : i32" in trace.stage("3").text
    assert "i32 32768)" in trace.stage("4").text
    assert "MBARRIER_ARRIVE_EXPECT_TX_SHARED %mbar_a:b64, 32768" in trace.stage("5").text
    assert "mbarrier.arrive.expect_tx.shared.b64 _, [%rd_mbar], 32768;" in trace.ptx
    assert [stage.number for stage in trace.stages] == ["1", "2", "3a", "3", "4", "5", "6", "7"]
    assert trace.diagnostics == ()
    trace.verify()


def test_the_box_that_cannot_be_encoded_is_split_and_said() -> None:
    trace = lower(EXAMPLE)
    assert trace.shape.instruction_box == (128, 64)
    assert trace.shape.num_boxes == 2
    assert trace.ptx.count("cp.async.bulk.tensor.2d") == 2
    assert "add.s32 %r_bk_1, %r_bk, 64;" in trace.ptx
    assert "add.s64 %rd_smem_dst_1, %rd_smem_dst, 16384;" in trace.ptx
    said = (
        "box [128, 128] can't be encoded, split into 2 boxes of [128, 64]: a row of 128 x bfloat16 is 256 bytes, and a "
        "128B-swizzled row is at most 128 bytes"
    )
    assert said in trace.stage("3").text and said in trace.witness.reasons
    whole = TensorMapTiled(9, 4096, (512, 512), (1024,), (128, 128), swizzle=3)
    assert violations(whole)
    split = TensorMapTiled(9, 4096, (512, 512), (1024,), tuple(reversed(trace.shape.instruction_box)), swizzle=3)
    assert violations(split) == []


def test_coordinates_turn_round_once() -> None:
    """Outer first up to stage 3, inner first from stage 4."""
    trace = lower(copy_shape("load", (4, 8, 64), "f16", swizzle=3))
    orders = [stage.order for stage in trace.stages if stage.order]
    assert orders == [OUTER_FIRST] * 4 + [INNER_FIRST] * 3
    assert trace.stage("3").coordinates == "[%bl, %bm, %bk]"
    assert trace.stage("4").coordinates == "[%bk, %bm, %bl]"
    assert "{%r_bk, %r_bm, %r_bl}" in trace.ptx
    assert [row.order.split()[0] for row in trace.orders] == [OUTER_FIRST] * 3 + [INNER_FIRST] * 3


def test_tile_coordinates_become_elements_innermost_first() -> None:
    assert lower(EXAMPLE, (3, 5)).element_coords == (640, 384)
    with pytest.raises(CoordinateError, match="expects 2 coordinates, but got 3"):
        lower(EXAMPLE, (1, 2, 3))
    assert lower(EXAMPLE, [3, 5]).element_coords == (640, 384)  # type: ignore[arg-type]
    with pytest.raises(CoordinateError, match="expects 2 coordinates, but got 1"):
        lower(EXAMPLE, 3)  # type: ignore[arg-type]


def test_im2col_offsets_lead_in_stage_4_and_trail_in_ptx() -> None:
    shape = copy_shape("load", (1, 8, 8, 64), "f16", mode="im2col", im2col_offsets=(1, 2), tx_bytes=16384)
    trace = lower(shape)
    call = trace.stage("4").text.split("im2col.4d(\n")[1]
    assert call.startswith("i16 1, ; im2col offset[0]\ni16 2, ; im2col offset[1]\nptr addrspace(3)")
    assert "[%rd_mbar], // completion barrier address\n{1, 2}; // im2col offsets" in trace.ptx
    assert "tx_count = 16384" in trace.stage("3").text


def test_multicast_counts_per_receiving_cta() -> None:
    shape = copy_shape("load", (128, 64), "bf16", swizzle=3, multicast=4, cache_hint=True)
    trace = lower(shape)
    assert shape.transaction_bytes == 16384
    assert trace.witness.name == "sm90_tma_load_2d_bf16_mcast"
    assert ".multicast::cluster.L2::cache_hint" in trace.ptx
    assert "%h_mask, // multicast mask\n%rd_policy; // L2 cache policy" in trace.ptx


@pytest.mark.parametrize("direction", ("store", "reduce"))
def test_a_store_has_no_byte_count(direction: str) -> None:
    trace = lower(copy_shape(direction, (64, 64), "f16", swizzle=3))
    assert trace.flow == ()
    assert "mbarrier" not in trace.ptx and "expect_tx" not in str(trace.stage("4").text)
    assert trace.ptx.startswith(
        "// ---- writes of the tile become visible to the asynchronous proxy\nfence.proxy.async"
    )
    assert trace.ptx.endswith("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;")


@pytest.mark.parametrize(
    ("arch", "name", "op", "piece"),
    [
        ("sm_70", "sm70_ldg_128_bf16", "nv_tileas.tiled_load", "ld.global.nc.v4.b32"),
        ("sm_75", "sm70_ldg_128_bf16", "nv_tileas.tiled_load", "ld.global.nc.v4.b32"),
        ("sm_80", "sm80_cp_async_4_bf16", "nv_tileas.async.cp_async", "cp.async.ca.shared.global"),
        ("sm_89", "sm80_cp_async_4_bf16", "nv_tileas.async.cp_async", "cp.async.ca.shared.global"),
        ("sm_90a", "sm90_tma_load_2d_bf16", "nv_tileas.async.tiled_tma_load", "cp.async.bulk.tensor.2d"),
        ("sm_100", "sm90_tma_load_2d_bf16", "nv_tileas.async.tiled_tma_load", "cp.async.bulk.tensor.2d"),
        ("sm_120", "sm90_tma_load_2d_bf16", "nv_tileas.async.tiled_tma_load", "cp.async.bulk.tensor.2d"),
    ],
)
def test_the_capability_cross_check(arch: str, name: str, op: str, piece: str) -> None:
    trace = lower(EXAMPLE, arch=arch)
    assert (trace.witness.name, trace.witness.row.stage3) == (name, op)
    assert piece in trace.ptx
    assert f"{arch}: compute capability" in trace.witness.reasons[0]


def test_tma_can_be_refused_by_the_copy_or_by_the_caller() -> None:
    refused = lower(EXAMPLE, arch="sm_90a", allow_tma=False)
    assert refused.witness.name == "sm70_ldg_128_bf16"
    assert "not TMA: allow_tma = false" in refused.witness.reasons
    assert "ld.global.nc" in refused.ptx
    odd = choose_witness(copy_shape("load", (8, 4), "f16"), "sm_90a")
    assert not odd.is_tma
    assert "not TMA: the innermost box extent is 64 bits; must be a multiple of 16 bytes" in odd.reasons
    shared = choose_witness(EXAMPLE, "sm_90a", address_space=3)
    assert "not TMA: the source is in address space 3; must be 1 (global)" in shared.reasons


def test_print_says_everything() -> None:
    file = io.StringIO()
    lower(EXAMPLE).print(file)
    text = file.getvalue()
    for part in ("Stage 1", "Stage 7", "Transaction-byte count", "Coordinate order", "Address spaces", "phase 8"):
        assert part in text
    with pytest.raises(CoordinateError, match="no stage '8'"):
        lower(EXAMPLE).stage("8")


@needs_ptxas
@pytest.mark.parametrize(
    "shape",
    [
        EXAMPLE,
        copy_shape("load", (128, 64), "bf16", swizzle=3, multicast=2, cache_hint=True),
        copy_shape("load", (1, 8, 8, 64), "f16", mode="im2col", im2col_offsets=(1, 2)),
        copy_shape("store", (128, 128), "bf16", swizzle=3),
        copy_shape("store", (1, 8, 64), "f16", mode="im2col_no_offs"),
        copy_shape("reduce", (64, 64), "f32", reduce_kind="min"),
        *(copy_shape("load", (2,) * (rank - 1) + (64,), "f16") for rank in range(1, 6)),
    ],
    ids=str,
)
@pytest.mark.parametrize("arch", ("sm_90a", "sm_100a", "sm_120a"))
def test_stage_6_assembles(shape: CopyShape, arch: str) -> None:
    trace = lower(shape, arch=arch)
    accepted, messages, _ = assemble_module(module_of(trace.ptx, arch), arch)
    assert accepted, messages
    if shutil.which("nvdisasm") or shutil.which("cuobjdump"):
        assert SASS_OPCODES[shape.direction] in trace.stage("7").text
        assert "MEMBAR.ALL.GPU" not in trace.stage("7").text


@needs_ptxas
@pytest.mark.parametrize("mode", ("tile::gather4", "tile::scatter4", "im2col::w"))
def test_blackwell_modes_assemble_there(mode: str) -> None:
    direction = "store" if "scatter" in mode else "load"
    tile = (4, 64) if "4" in mode else (1, 8, 64)
    shape = copy_shape(direction, tile, "f16", mode=mode, im2col_offsets=(0, 1) if "im2col" in mode else ())
    trace = lower(shape, arch="sm_100a")
    assert assemble_module(module_of(trace.ptx, "sm_100a"), "sm_100a")[0]
    if "4" in mode:
        assert "{%r_bk, %r_bm_row0, %r_bm_row1, %r_bm_row2, %r_bm_row3}" in trace.ptx


def test_every_instruction_of_stage_6_is_canonical() -> None:
    trace = lower(EXAMPLE)
    body = "\n".join(line.split("//")[0] for line in trace.ptx.splitlines())
    texts = [" ".join(text.split()) for text in body.split(";") if text.strip()]
    tma = [text for text in texts if text.startswith(("cp.", "mbarrier", "fence"))]
    assert len(tma) == 3
    assert all(examine(text).canonical for text in tma)


@given(
    rank=st.integers(1, 5),
    rows=st.integers(1, 40),
    columns=st.sampled_from((8, 16, 32, 64, 128, 256, 512)),
    swizzle=st.sampled_from((0, 1, 2, 3)),
    dtype=st.sampled_from(("uint8", "bf16", "f32")),
)
def test_boxes_cover_the_tile_once(rank: int, rows: int, columns: int, swizzle: int, dtype: str) -> None:
    tile = ((rows,) * (rank - 1) + (columns,))[-rank:] if rank < 4 else (1,) * (rank - 2) + (rows, columns)
    shape = copy_shape("load", tile, dtype, swizzle=swizzle)
    box = shape.instruction_box
    assert shape.num_boxes * math.prod(box) == math.prod(tile)
    assert shape.transaction_bytes == shape.tile_bytes == shape.num_boxes * shape.box_bytes
    assert len(set(shape.box_origins)) == shape.num_boxes
    assert all(o % b == 0 and o < t for origin in shape.box_origins for o, b, t in zip(origin, box, tile, strict=True))
    span = {0: 10**9, 1: 32, 2: 64, 3: 128}[swizzle]
    assert box[-1] * shape.dtype.bits // 8 <= span and max(box) <= 256
    assert (shape.was_split == "") == (box == tile)


def test_the_border_of_a_box() -> None:
    assert copy_shape("load", (256, 64), "bf16", swizzle=3).was_split == ""
    assert copy_shape("load", (257, 64), "bf16", swizzle=3).instruction_box == (1, 64)
    assert copy_shape("load", (512, 8), "bf16").instruction_box == (256, 8)
    assert copy_shape("load", (8, 128), "bf16").instruction_box == (8, 128)
    assert copy_shape("load", (8, 65), "bf16", swizzle=3).instruction_box == (8, 13)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fetch", (8, 8), "f16"), "direction = 'fetch'"),
        (("load", (), "f16"), "a tile of rank 0"),
        (("load", (1,) * 6, "f16"), "a tile of rank 6"),
        (("load", (0, 8), "f16"), "tile.0. = 0; must be at least 1"),
    ],
)
def test_meaningless_shapes(arguments: tuple[str, tuple[int, ...], str], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        copy_shape(*arguments)


def test_meaningless_fields() -> None:
    with pytest.raises(InvalidValueError, match="mode of a load = 'tile::scatter4'"):
        copy_shape("load", (4, 8), "f16", mode="tile::scatter4")
    with pytest.raises(InvalidValueError, match="expected 4 rows of a matrix"):
        copy_shape("load", (8, 64), "f16", mode="tile::gather4")
    with pytest.raises(InvalidValueError, match="box has 1 entries; must have 2"):
        copy_shape("load", (4, 8), "f16", box=(8,))


def atom(**fields: object) -> SimpleNamespace:
    request = TensorMapTiled(9, 4096, (512, 512), (1024,), (64, 128), swizzle=3)
    return SimpleNamespace(**{"op": "SM90_TMA_LOAD", "request": request, "transaction_bytes": 32768, **fields})


def test_a_shape_is_read_from_an_atom() -> None:
    shape = copy_shape_of(atom())
    assert (shape.tile, shape.instruction_box, shape.num_boxes) == ((128, 128), (128, 64), 2)
    assert (shape.dtype.name, shape.swizzle, shape.direction) == ("bfloat16", TensorMapSwizzle.B128, "load")
    assert lower(atom()).ptx == lower(shape).ptx
    assert copy_shape_of(atom(op=SimpleNamespace(name="SM90_TMA_REDUCE_MIN"))).reduce_kind == "min"
    assert copy_shape_of(atom(op="SM100_TMA_2SM_LOAD")).cta_group == 2
    assert copy_shape_of(atom(tile_shape=(256, 64), transaction_bytes=32768)).tile == (256, 64)
    assert copy_shape_of(shape) is shape
    sliced = copy_shape_of(atom(op="SM90_TMA_LOAD_MULTICAST", num_multicast=2))
    assert (sliced.tile, sliced.num_boxes, sliced.transaction_bytes, sliced.box_bytes) == ((128, 64), 1, 32768, 16384)


def test_what_is_no_atom() -> None:
    with pytest.raises(TmaBuildError, match="no attribute op, request"):
        lower(3)
    with pytest.raises(TmaBuildError, match="must be a multiple of one box"):
        copy_shape_of(atom(transaction_bytes=1000))
    with pytest.raises(EmissionError, match="needs an a or f variant"):
        lower(copy_shape("load", (128, 64), "bf16", swizzle=3, cta_group=2), arch="sm_90a")
