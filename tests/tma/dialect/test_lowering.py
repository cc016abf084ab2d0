"""`lower`: one copy through its stages, with its numbers; what the verifiers say; what is split."""

from __future__ import annotations

import dataclasses
import io
import itertools
import math
import re
import shutil
from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py.dtypes import as_dtype
from cute_py.errors import CoordinateError, CuteError, EmissionError, InvalidValueError, TmaBuildError
from cute_py.ptx.check import examine
from cute_py.ptx.module import assemble_module, find_ptxas
from cute_py.tma.descriptor.data_types import TensorMapSwizzle
from cute_py.tma.descriptor.request import TensorMapIm2colWide, TensorMapTiled
from cute_py.tma.descriptor.violations import violations
from cute_py.tma.dialect.lowering import SASS_OPCODES, lower, module_of
from cute_py.tma.dialect.stages import GENERATIONS, INNER_FIRST, OUTER_FIRST
from cute_py.tma.dialect.traced_copy import laid, trace_copy
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.geometry import geometry
from cute_py.tma.exports.single_tile import single_tile_ptx
from tests.shares import one_in
from tests.tma.dialect.atoms import tile_atom, window_operation, window_store

EXAMPLE = tile_atom("load", (128, 128), "bf16", swizzle=3, sizes=(1024, 1024))
needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="no ptxas on PATH or in an nvidia-cuda-nvcc wheel")


def test_the_walkthroughs_example_has_its_numbers() -> None:
    trace = lower(EXAMPLE, arch="sm_90a")
    assert trace.witness == "sm90_tma_load_2d_bf16"
    assert trace.copy.transaction_bytes == 32768
    assert "tx_count = 32768 : i32" in trace.stage("3").text
    assert "i32 32768)" in trace.stage("4").text
    assert "MBARRIER_ARRIVE_EXPECT_TX_SHARED %mbar_a:b64, 32768" in trace.stage("5").text
    assert "mbarrier.arrive.expect_tx.shared.b64 _, [%rd_mbar], 32768;" in trace.ptx
    assert [stage.number for stage in trace.stages] == ["1", "2", "3a", "3", "4", "5", "6", "7"]
    assert trace.diagnostics == ()
    trace.verify()


def test_the_box_that_cannot_be_encoded_is_split_and_said() -> None:
    trace = lower(EXAMPLE)
    assert trace.copy.box == (128, 64)
    assert trace.copy.num_boxes == 2
    assert trace.ptx.count("cp.async.bulk.tensor.2d") == 2
    assert "add.s32 %r_bk_1, %r_bk, 64;" in trace.ptx
    assert "add.s64 %rd_smem_dst_1, %rd_smem_dst, 16384;" in trace.ptx
    said = "the tile takes 2 boxes of [128, 64]: a row has 256 bytes, and a 128B-swizzled row at most 128"
    assert trace.stage("3").notes[0] == said
    whole = TensorMapTiled(9, 4096, (512, 512), (1024,), (128, 128), swizzle=3)
    assert violations(whole)
    split = TensorMapTiled(9, 4096, (512, 512), (1024,), tuple(reversed(trace.copy.box)), swizzle=3)
    assert violations(split) == []


def test_coordinates_turn_round_once() -> None:
    """Outer first up to stage 3, inner first from stage 4."""
    trace = lower(tile_atom("load", (4, 8, 64), "f16", swizzle=3))
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
    assert lower(EXAMPLE, namedtuple("Tile", "m n")(3, 5)).element_coords == (640, 384)
    assert lower(EXAMPLE, 3 + 8 * 5).element_coords == (640, 384)
    with pytest.raises(CoordinateError, match="expects 2 coordinates, but got 1"):
        lower(EXAMPLE.request, 3)
    assert lower(EXAMPLE.request, (3, 5)).element_coords == (320, 384)


def test_a_tile_of_patches_begins_where_its_coordinate_tensor_says() -> None:
    """Pixels follow the bounding box, and filter positions are offsets: the load brings the patches."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 1 << 16, (2, 9, 7, 64), np.uint16)
    gmem = cute.make_tensor(x)
    images = cute.make_tensor(gmem.engine, Layout(((7, 9, 2), 64), ((64, 448, 4032), Int(1))))
    smem = Layout((Int(32), Int(32)), LayoutRight)
    corners = ((-1, -1), (-1, -1), (1, 1), (1, 1))
    made = cute.tma.make_im2col_tma_copy("SM90_TMA_LOAD_IM2COL", images, smem, cute.static((32, 32)), 1, *corners)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    walked = itertools.product(range(3), range(3), (0, 32))  # channels first, then along W
    taps = [padded[:, r : r + 9, s : s + 7].reshape(-1, 64)[:, c : c + 32] for r, s, c in walked]
    for pixel, k in itertools.product(range(4), range(18)):
        copy = lower(made, (pixel, k)).copy
        tile = np.zeros(2048, np.uint8)
        Emulator().load(
            made.descriptor,
            x.view(np.uint8).reshape(-1),
            copy.start or (),
            tile,
            im2col_offsets=copy.im2col_offsets,
            gmem_base=x.ctypes.data,
        )
        want = np.zeros((32, 32), np.uint16)
        rows = taps[k][32 * pixel : 32 * pixel + 32]
        want[: len(rows)] = rows
        assert (tile.view(np.uint16).reshape(32, 32) == want).all(), (pixel, k)
    assert lower(made, 5).element_coords == lower(made, (1, (1, 0, 0))).element_coords
    with pytest.raises(InvalidValueError, match="the tensor has 72 tiles"):
        lower(made, 72)
    with pytest.raises(TmaBuildError, match="tiles of an im2col map have no index"):
        lower(made.request, (0, 0, 1, 0))


def test_im2col_offsets_lead_in_stage_4_and_trail_in_ptx() -> None:
    trace = lower(window_operation((1, 2)))
    call = trace.stage("4").text.split("im2col.4d(\n")[1]
    assert call.startswith("i16 1, ; im2col offset[0]\ni16 2, ; im2col offset[1]\nptr addrspace(3)")
    assert "[%rd_mbar], // completion barrier address\n{1, 2}; // im2col offsets" in trace.ptx
    assert "tx_count = 8192" in trace.stage("3").text


@pytest.mark.parametrize(("mode", "words", "pixels"), [(0, "w", 64), (1, "w::128", 128)])
def test_a_load_along_w_has_its_mode_and_two_offsets(mode: int, words: str, pixels: int) -> None:
    """The mode is in the instruction alone: a wide map leaves no bit. Halo first, as the emulator takes them."""
    wide = TensorMapIm2colWide(6, 4096, (64, 16, 8, 2), (128, 2048, 16384), 0, 0, 64, 64, swizzle=3, mode=mode)
    trace = lower(wide, arch="sm_100a")
    assert f".im2col::{words}.mbarrier::complete_tx::bytes\n" in trace.ptx and "{%h_off_halo, %h_off_w};" in trace.ptx
    assert trace.copy.box == (1, 1, pixels, 64) and f", {pixels * 128};" in trace.ptx
    assert f"global.im2col.{words.replace('::', '.')}.4d(\ni16 %off_halo" in trace.stage("4").text
    assert geometry(wide, f"im2col::{words}").transaction_bytes == trace.copy.transaction_bytes
    assert any("halo pixels" in note for note in trace.stage("3").notes)
    with pytest.raises(EmissionError, match="sm_100"):
        lower(wide)


@pytest.mark.parametrize("op", ["SM100_TMA_LOAD_2D_GATHER4", "SM100_TMA_STORE_2D_SCATTER4"])
def test_each_row_of_a_gather_has_an_index_of_its_own(op: str) -> None:
    x = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), Layout((512, 256), (256, Int(1))))
    tile = Layout(cute.static((8, (64, 2))), cute.static((64, (1, 512))))
    trace = lower(cute.tma.make_tma_copy(op, x, tile), arch="sm_100a")
    assert trace.copy.tile == (8, 128) and trace.copy.offsets == (0, 512, 1024, 1536)
    rows = [", ".join(f"%r_bm_row{row}" for row in range(first, first + 4)) for first in (0, 4)]
    coords = re.findall(r"\{(%r_bk[^}]*)\}", trace.ptx)
    columns = ("%r_bk", "%r_bk", "%r_bk_2", "%r_bk_3")
    assert coords == [f"{column}, {index}" for column, index in zip(columns, rows * 2, strict=True)]
    assert trace.ptx.count("add.s32 %r_bk_") == 2 and trace.ptx.count("add.s64 %rd_smem") == 3
    with pytest.raises(EmissionError, match="a single-tile module has 8 rows by index; must have 4"):
        single_tile_ptx(trace.copy, "sm_100a")


def test_the_boxes_of_an_im2col_tile_are_those_of_its_atom() -> None:
    """Boxes of channels lie where the shared layout has them; those of pixels have no sum for a coordinate."""
    images = Layout(((16, 16, 2), 128), ((128, 2048, 32768), Int(1)))
    x = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), images)

    def made(shape: Any, stride: Any, tile: tuple[int, int], ctas: int = 1) -> Any:
        layout, op = Layout(cute.static(shape), cute.static(stride)), "SM90_TMA_LOAD_IM2COL"
        return cute.tma.make_im2col_tma_copy(op + "_MULTICAST" * (ctas > 1), x, layout, cute.static(tile), ctas)

    trace = lower(made((64, (32, 2)), (32, (1, 4096)), (64, 64)))
    assert (trace.copy.tile, trace.copy.offsets) == ((1, 1, 64, 64), (0, 8192))
    assert trace.copy.origins == ((0, 0, 0, 0), (0, 0, 0, 32))
    shared = lower(made((64, (32, 2)), (32, (1, 4096)), (64, 64), 4)).copy
    assert (shared.tile, shared.box, shared.num_boxes) == ((1, 1, 64, 64), (1, 1, 16, 32), 2)
    assert shared.transaction_bytes == 64 * 64 * 2  # what every CTA receives
    assert lower(made(((64, 2), 32), ((32, 2048), 1), (128, 32))).copy.box == (1, 1, 128, 32)
    with pytest.raises(TmaBuildError, match="begins at pixel 64 of the tile, whose coordinates depend on"):
        lower(made(((64, 2), 32), ((32, 4096), 1), (128, 32)))


def test_multicast_counts_per_receiving_cta() -> None:
    trace = lower(tile_atom("load", (128, 64), "bf16", swizzle=3, multicast=4).with_(None, 15, 1))
    assert trace.copy.transaction_bytes == 16384 and trace.copy.box_bytes == 4096
    assert trace.witness == "sm90_tma_load_2d_bf16_mcast"
    assert ".multicast::cluster.L2::cache_hint" in trace.ptx
    assert "%h_mask, // multicast mask\n%rd_policy; // L2 cache policy" in trace.ptx


@pytest.mark.parametrize("direction", ("store", "reduce"))
def test_a_store_has_no_byte_count(direction: str) -> None:
    trace = lower(tile_atom(direction, (64, 64), "f16", swizzle=3))
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
    assert (trace.witness, GENERATIONS[trace.witness[:4]]) == (name, op)
    assert piece in trace.ptx
    assert f"{arch}: compute capability" in trace.reasons[0]


def test_tma_can_be_refused_by_the_copy_or_by_the_caller() -> None:
    refused = lower(EXAMPLE, arch="sm_90a", allow_tma=False)
    assert refused.witness == "sm70_ldg_128_bf16"
    assert "not TMA: allow_tma = false" in refused.reasons
    assert "ld.global.nc" in refused.ptx
    odd = lower(tile_atom("load", (8, 4), "f16"), arch="sm_90a")
    assert odd.witness == "sm70_ldg_32_f16"
    assert "load i32, ptr addrspace(1) %src, align 4" in odd.stage("4").text
    assert odd.stage("5").text == "INT_PTX_LDG_G_i32 %src"
    assert "not TMA: the innermost box extent is 64 bits; must be a multiple of 16 bytes" in odd.reasons
    shared = cute.make_tensor(cute.make_smem_ptr(0, "float16"), cute.Layout((64, 64), (64, cute.Int(1))))
    with pytest.raises(CuteError, match="global"):
        cute.tma.make_tma_copy("SM90_TMA_LOAD", shared, cute.make_layout((cute.Int(8), cute.Int(64))))


def test_print_says_everything() -> None:
    file = io.StringIO()
    lower(EXAMPLE).print(file)
    text = file.getvalue()
    for part in ("Stage 1", "Stage 7", "Transaction-byte count", "Coordinate order", "Address spaces", "phase 8"):
        assert part in text
    with pytest.raises(CoordinateError, match="stage '8' does not exist"):
        lower(EXAMPLE).stage("8")


@needs_ptxas
@pytest.mark.parametrize(
    "shape",
    [
        EXAMPLE,
        tile_atom("load", (128, 64), "bf16", swizzle=3, multicast=2).with_(None, 3, 1),
        window_operation((1, 2), "evict_first"),
        tile_atom("store", (128, 128), "bf16", swizzle=3),
        window_store(),
        tile_atom("reduce", (64, 64), "f16", reduce_kind="min"),
        *(tile_atom("load", (2,) * (rank - 1) + (64,), "f16") for rank in range(1, 6)),
    ],
    ids=lambda copy: str(copy)[:40],
)
@pytest.mark.parametrize("arch", one_in(3, ("sm_90a", "sm_100a", "sm_120a")))
def test_stage_6_assembles(shape: Any, arch: str) -> None:
    trace = lower(shape, arch=arch)
    accepted, messages, _ = assemble_module(module_of(trace.ptx, arch), arch)
    assert accepted, messages
    if shutil.which("nvdisasm") or shutil.which("cuobjdump"):
        assert SASS_OPCODES[trace.copy.direction] in trace.stage("7").text
        assert "MEMBAR.ALL.GPU" not in trace.stage("7").text


@needs_ptxas
@pytest.mark.parametrize("op", ("SM100_TMA_LOAD_2D_GATHER4", "SM100_TMA_STORE_2D_SCATTER4", "SM100_TMA_2SM_LOAD"))
def test_blackwell_operations_assemble_there(op: str) -> None:
    direction = "store" if "STORE" in op else "load"
    trace = lower(tile_atom(direction, (4, 64), "f16", op=op, arch="sm_100a"), arch="sm_100a")
    assert assemble_module(module_of(trace.ptx, "sm_100a"), "sm_100a")[0]
    if "4" in op.removeprefix("SM100"):
        assert "{%r_bk, %r_bm_row0, %r_bm_row1, %r_bm_row2, %r_bm_row3}" in trace.ptx


def test_every_instruction_of_stage_6_is_canonical() -> None:
    trace = lower(EXAMPLE)
    body = "\n".join(line.split("//")[0] for line in trace.ptx.splitlines())
    texts = [" ".join(text.split()) for text in body.split(";") if text.strip()]
    tma = [text for text in texts if text.startswith(("cp.", "mbarrier", "fence"))]
    assert len(tma) == 3
    assert all(examine(text).canonical for text in tma)


@given(
    rank=st.integers(2, 5),
    rows=st.sampled_from((8, 16, 24, 32)),
    columns=st.sampled_from((16, 32, 64, 128, 256)),
    swizzle=st.sampled_from((0, 1, 2, 3)),
    dtype=st.sampled_from(("uint8", "bf16", "f32")),
)
def test_boxes_cover_the_tile_once(rank: int, rows: int, columns: int, swizzle: int, dtype: str) -> None:
    tile = (*(2,) * (rank - 2), rows, columns)
    assume(rows * columns * 2 ** (rank - 2) * as_dtype(dtype).bits <= 8 * 200_000)
    assume(not swizzle or columns * as_dtype(dtype).bits >= 8 * {1: 32, 2: 64, 3: 128}[swizzle])
    atom = tile_atom("load", tile, dtype, swizzle=swizzle)
    copy = trace_copy(atom)
    assert copy.tile == tile and copy.num_boxes * math.prod(copy.box) == math.prod(tile)
    assert copy.transaction_bytes == atom.transaction_bytes == copy.num_boxes * copy.box_bytes
    assert sorted(copy.origins) == sorted(laid(tile, copy.box))
    span = {0: 10**9, 1: 32, 2: 64, 3: 128}[swizzle]
    assert copy.row_bytes <= span and max(copy.box) <= 256
    said = f"the tile takes {copy.num_boxes} boxes of"
    assert (said in "".join(lower(atom).stage("3").notes)) == (copy.num_boxes > 1)


def stand_in(**fields: object) -> SimpleNamespace:
    request = TensorMapTiled(9, 4096, (512, 512), (1024,), (64, 128), swizzle=3)
    return SimpleNamespace(**{"op": "SM90_TMA_LOAD", "request": request, "transaction_bytes": 32768, **fields})


def test_a_copy_is_read_from_what_has_an_operation_and_a_request() -> None:
    copy = trace_copy(stand_in())
    assert (copy.tile, copy.box, copy.num_boxes, copy.offsets) == ((128, 128), (128, 64), 2, (0, 16384))
    assert (copy.dtype.name, copy.swizzle, copy.direction) == ("bfloat16", TensorMapSwizzle.B128, "load")
    assert trace_copy(stand_in(op=SimpleNamespace(name="SM90_TMA_REDUCE_MIN"))).reduce_kind == "min"
    assert trace_copy(stand_in(op="SM100_TMA_2SM_LOAD")).modifiers["cta_group"] == 2
    assert trace_copy(copy) is copy
    sliced = trace_copy(stand_in(op="SM90_TMA_LOAD_MULTICAST", num_multicast=2))
    assert (sliced.tile, sliced.num_boxes, sliced.transaction_bytes, sliced.box_bytes) == ((128, 64), 1, 32768, 16384)
    assert trace_copy(stand_in().request).tile == (128, 64)


def test_what_is_no_atom() -> None:
    with pytest.raises(TmaBuildError, match="no attribute op, request"):
        lower(3)  # type: ignore[arg-type]
    with pytest.raises(TmaBuildError, match="must be a multiple of one box"):
        trace_copy(stand_in(transaction_bytes=1000))
    with pytest.raises(InvalidValueError, match="swizzle = 99; must be a swizzle number of the driver"):
        lower(dataclasses.replace(EXAMPLE.request, swizzle=99))
    pair = tile_atom("load", (128, 64), "bf16", swizzle=3, op="SM100_TMA_2SM_LOAD", arch="sm_100a")
    with pytest.raises(EmissionError, match="needs an a or f variant"):
        lower(pair, arch="sm_90a")
