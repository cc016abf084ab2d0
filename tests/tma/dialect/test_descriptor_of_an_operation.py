"""A copy in the operations of the reference pages: descriptor, atom, instruction and bytes agree, or it is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy
import pytest

import cute_py as cute
from cute_py import ComposedLayout, Int, Layout, LayoutRight, Swizzle
from cute_py.errors import InvalidTypeError, InvalidValueError, TmaLimitError, TmaVerifyError
from cute_py.tma.dialect.descriptor_update import TmaUpdate, apply_update
from cute_py.tma.dialect.descriptors import build_tma_descriptor, build_tma_descriptor_im2col
from cute_py.tma.dialect.exec_atom import (
    make_exec_tma,
    non_exec_tiled_tma_load,
    non_exec_tiled_tma_reduce,
    non_exec_tiled_tma_store,
    tma_load,
    tma_reduce,
    tma_store,
)
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.mbarrier import Mbarrier
from tests.oracle import gbasis_rows
from tests.oracle.records import rows
from tests.tma.dialect.partition_operands import NHWC, PATCHES, SMEM, SWIZZLED, TILE, Operands, gmem, ints

NARROW = Layout(ints(64, 64), LayoutRight)
SHARED = cute.make_smem_ptr(0, "float16")


def refusal(action: Any) -> TmaVerifyError:
    with pytest.raises(TmaVerifyError) as caught:
        action()
    return caught.value


OF_ANOTHER_COPY: list[tuple[int, Any, str]] = [
    (9, lambda: non_exec_tiled_tma_load(build_tma_descriptor(gmem(), NARROW), SMEM, TILE), "box_dim = (64, 64)"),
    (9, lambda: non_exec_tiled_tma_load(build_tma_descriptor(gmem(), SMEM), SWIZZLED, TILE), "swizzle = 0"),
    (9, lambda: non_exec_tiled_tma_load(build_tma_descriptor(gmem(), SMEM, num_multicast=4), SMEM), "for 4 CTAs"),
    (1, lambda: non_exec_tiled_tma_load(build_tma_descriptor(gmem(), SMEM, store_mode=0), SMEM), "for TILED"),
    (1, lambda: non_exec_tiled_tma_store(build_tma_descriptor(gmem(), SMEM), SMEM), "for NO_MULTICAST"),
    (
        1,
        lambda: non_exec_tiled_tma_load(build_tma_descriptor(gmem(), SMEM, mode=1, arch="sm_100a"), SMEM, load_mode=0),
        "for TWO_CTA",
    ),
    (
        11,
        lambda: non_exec_tiled_tma_load(
            replace(build_tma_descriptor(gmem(), SMEM), num_multicast=2), SMEM, load_mode=0
        ),
        "for 2 CTAs",
    ),
    (
        1,
        lambda: non_exec_tiled_tma_load(gmem(), cute.make_tensor(cute.make_smem_ptr(0, "float32"), SMEM), TILE),
        "have different widths",
    ),
]


@pytest.mark.parametrize(("step", "action", "fact"), OF_ANOTHER_COPY)
def test_a_descriptor_of_another_copy(step: int, action: Any, fact: str) -> None:
    error = refusal(action)
    assert error.step == step
    assert any(fact in str(text) for text in error.facts.values()), error


def test_the_text_of_a_count_that_no_load_has() -> None:
    descriptor = replace(build_tma_descriptor(gmem(), SMEM), num_multicast=2)
    assert refusal(lambda: non_exec_tiled_tma_load(descriptor, SMEM)).headline == "got num_multicast of 2"


def swizzled(layout: Layout, bits: int = 3) -> ComposedLayout:
    return ComposedLayout(Swizzle(bits, 4, 3), cute.smem_ptr_flag(16), layout)


HELD_BY_NO_DESCRIPTOR: list[tuple[Operands, str]] = [
    (Operands(smem=swizzled(Layout(ints(128, 128), LayoutRight)), tile=(128, 128)), "inner_span"),
    (Operands(smem=Layout(ints(8, 4), LayoutRight), tile=(8, 4)), "inner_bytes"),
    (
        Operands(Layout(ints(8, 8), LayoutRight), tile=(8, 8), options={"load_mode": 2, "num_multicast": 16}),
        "inner_bytes",
    ),
    (Operands(gmem=gmem(address=2)), "address_alignment"),
    (Operands(gmem=gmem((1024, 512), (-512, Int(1)))), "stride_range"),
    (Operands(gmem=gmem((4, 512), (1 << 40, Int(1)))), "stride_range"),
    (Operands(gmem=gmem(((1 << 32) + 8, 512))), "size"),
    (Operands(gmem=gmem(dtype="complex64")), "no_atom"),
]


@pytest.mark.parametrize(("operands", "rule"), HELD_BY_NO_DESCRIPTOR)
def test_boxes_that_no_descriptor_holds(operands: Operands, rule: str) -> None:
    walk = operands.walk()
    assert walk.failed == 9
    assert rule in [broken.rule for broken in walk.broken]
    shared = "SM90_TMA_LOAD_MULTICAST" if operands.options else "SM90_TMA_LOAD"
    count = operands.options.get("num_multicast", 1)
    with pytest.raises((TmaLimitError, cute.CuteError)):
        cute.tma.make_tma_copy(shared, operands.gmem, operands.smem, operands.tile, count)


def test_an_updated_descriptor_is_of_the_updated_tensor() -> None:
    descriptor = build_tma_descriptor(gmem(), SMEM)
    for update in (("UPDATE_BASE_POINTER", 0, 8192), ("UPDATE_DIM", 1, 2048), ("UPDATE_STRIDE", 1, 4096)):
        descriptor = apply_update(descriptor, TmaUpdate(*update))
    assert str(descriptor.tensor.layout) == "(2048,512):(2048,_1)"
    assert non_exec_tiled_tma_load(descriptor, SMEM, TILE).request == descriptor.request


PAIRS = [r for r in rows("gbasis_cpp") if r["kind"] == "sm100_A" and r["op"] == "SM100_TMA_2SM_LOAD"]


@pytest.mark.parametrize("row", PAIRS, ids=lambda r: r["name"])
def test_a_pair_s_tile_is_folded_as_in_cute(row: dict[str, Any]) -> None:
    """The tile of an MMA of two CTAs: each loads its half, whether shared memory is given for one or for both."""
    tensor, tile = gbasis_rows.gmem_tensor(row), (256, 64)
    for half_given in (True, False):
        smem = swizzled(Layout(ints(128 if half_given else 256, 64), LayoutRight))
        [record] = Operands(smem, tensor, tile).partition(load_mode="TWO_CTA", arch="sm_100a")
        atom = record.body
        assert list(atom.box) == row["encode"]["boxDim"]
        assert atom.slot_elements == row["num_val_src"]
        assert str(atom.traits.op) == row["op"]  # type: ignore[union-attr]
        assert (atom.instructions, atom.transaction_bytes, record.tile_element_count) == (1, 16384, 8192)


def test_two_ctas_load_half_of_what_one_does() -> None:
    [one], [pair] = Operands().partition(), Operands().partition(load_mode="TWO_CTA", arch="sm_100a")
    assert (one.body.box, pair.body.box) == ((64, 128), (64, 64))
    bound = make_exec_tma(pair.body, Mbarrier(1))
    assert ".cta_group::2" in tma_load(bound, SHARED, (0, 0)).ptx("sm_100a")
    odd = Operands(smem=Layout(ints(7, 64), LayoutRight), tile=(7, 64))
    assert odd.walk(load_mode="TWO_CTA", arch="sm_100a").failed == 7


def images() -> tuple[Any, numpy.ndarray[Any, Any]]:
    array = numpy.arange(2 * 8 * 16 * 64, dtype=numpy.uint16).reshape(2, 8, 16, 64)
    pointer = cute.make_gmem_ptr(array.ctypes.data, "uint16")
    return cute.make_tensor(pointer, Layout(NHWC.shape, NHWC.stride)), array


@pytest.mark.parametrize(
    ("start", "offsets"), [((0, -1, -1, 0), (1, 2)), ((0, 3, 0, 1), (0, 0)), ((0, 12, 5, 0), (2, 1))]
)
def test_an_im2col_load_brings_the_pixels_of_its_window(start: tuple[int, ...], offsets: tuple[int, int]) -> None:
    tensor, array = images()
    smem = swizzled(SMEM, 3)
    descriptor = build_tma_descriptor_im2col(tensor, (-1, -1), (-1, -1), 64, 128, swizzle=Swizzle(3, 4, 3))
    atom = non_exec_tiled_tma_load(descriptor, smem, TILE)
    barrier, window = Mbarrier(1), numpy.zeros(16384, numpy.uint8)
    operation = tma_load(make_exec_tma(atom, barrier), SHARED, start, im2col_offsets=offsets)
    assert operation.run(Emulator(), array.view(numpy.uint8).reshape(-1), window, gmem_base=array.ctypes.data) == 16384
    found = window.view(numpy.uint16).reshape(128, 8, 8)
    _, w, h, n = start
    for pixel in range(128):
        y, x = h + offsets[1], w + offsets[0]
        inside = n < 2 and 0 <= y < 8 and 0 <= x < 16
        want = array[n, y, x] if inside else numpy.zeros(64, numpy.uint16)
        assert (found[pixel, numpy.arange(8) ^ pixel % 8].reshape(-1) == want).all()
        w += 1
        if w == 15:  # of 16 columns from -1 on
            w, h = -1, h + 1
        if h == 7:
            h, n = -1, n + 1


@pytest.mark.parametrize("mode", ["IM2COL", "IM2COL_W", "IM2COL_W128"])
def test_im2col_stores_and_reductions(mode: str) -> None:
    tensor, array = images()
    store = non_exec_tiled_tma_store(tensor, PATCHES.smem, TILE, store_mode=mode)
    assert (store.rank, store.request.KIND) == (4, "im2col" if mode == "IM2COL" else "im2col_wide")
    operation = tma_store(make_exec_tma(store, Mbarrier(1)), SHARED, (0, 0, 0, 1))
    assert cute.tma.lower(store).copy.request == cute.tma.lower(operation).copy.request == store.request
    assert ".4d.global.shared::cta.im2col_no_offs.bulk_group" in operation.ptx()
    tile = numpy.arange(128 * 64, dtype=numpy.uint16)
    memory = array.view(numpy.uint8).reshape(-1)
    operation.run(Emulator(), memory, tile.view(numpy.uint8), gmem_base=array.ctypes.data)
    assert (array[1].reshape(-1) == tile).all()
    assert (array[0].reshape(-1) == numpy.arange(8192)).all()


def test_an_im2col_reduction() -> None:
    array = numpy.ones((2, 8, 16, 64), numpy.uint32)
    tensor = cute.make_tensor(cute.make_gmem_ptr(array.ctypes.data, "uint32"), Layout(NHWC.shape, NHWC.stride))
    descriptor = build_tma_descriptor_im2col(tensor, (0, 0), (0, 0), 64, 128, store_mode="IM2COL")
    atom = non_exec_tiled_tma_reduce(descriptor, PATCHES.smem, TILE, kind="ADD")
    operation = tma_reduce(make_exec_tma(atom, Mbarrier(1)), cute.make_smem_ptr(0, "uint32"), (0, 0, 0, 0))
    written = "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.im2col_no_offs.bulk_group"
    assert written in operation.ptx()
    for what in (operation, atom, atom.traits):  # a reduction everywhere, although its operation is CuTe's store
        trace = cute.tma.lower(what)
        assert written in cute.tma.ptx(what) and written in trace.ptx and trace.diagnostics == ()
        assert "s2g" not in trace.stage("4").text and "tensor.reduce.add.im2col.4d" in trace.stage("4").text
        assert "nv_tileas.async.tiled_tma_reduce" in trace.stage("3").text and "red_kind = add" in trace.stage("3").text
    tile = numpy.full(128 * 64, 2, numpy.uint32)
    memory = array.view(numpy.uint8).reshape(-1)
    operation.run(Emulator(), memory, tile.view(numpy.uint8), gmem_base=array.ctypes.data)
    assert (array[0] == 3).all()
    assert (array[1] == 1).all()


def test_im2col_needs_an_image() -> None:
    for tensor in (gmem(), gmem(8, Int(1)), gmem((2,) * 2, (Int(1), 16))):
        walk = Operands(gmem=tensor).walk(store_mode="IM2COL")
        assert walk.failed in (1, 8)
    error = refusal(lambda: Operands().partition(store_mode="IM2COL"))
    assert list(error.facts.values()) == ["rank of an im2col tensor = 2 modes; must be 3 to 5"]
    wide = build_tma_descriptor_im2col(NHWC, (-1, -1), (-1, -1), 64, 128, store_mode="IM2COL")
    assert refusal(lambda: non_exec_tiled_tma_store(wide, SMEM, TILE, store_mode="IM2COL_W")).step == 1


def test_everything_of_a_copy_is_taken_where_an_atom_is() -> None:
    array = numpy.arange(256 * 128, dtype=numpy.uint16).reshape(256, 128)
    descriptor = build_tma_descriptor(array, NARROW, swizzle=Swizzle(3, 4, 3))
    atom = non_exec_tiled_tma_load(descriptor, swizzled(NARROW), (64, 64))
    bound = make_exec_tma(atom, Mbarrier(1))
    operation = tma_load(bound, cute.make_smem_ptr(0, "uint16"), (64, 128))
    first = cute.tma.execute(atom.traits, array, 0).smem
    for what in (descriptor, atom, bound, operation):
        assert cute.tma.encode(what) == atom.traits.descriptor  # type: ignore[union-attr]
        assert cute.tma.describe(what) == cute.tma.describe(atom.request)
        assert cute.tma.violations(what) == []
        assert cute.tma.copy(what, array).equal
        assert (cute.tma.execute(what, array, 0).smem == first).all()
        own = (2, 1) if what is operation else None  # an operation says which tile
        assert str(cute.tma.lower(what)) == str(cute.tma.lower(atom.traits, own))
        assert "cp.async.bulk.tensor.2d.shared::cluster.global.tile" in cute.tma.ptx(what)
        assert "64" in cute.explain(what)
    image = build_tma_descriptor_im2col(NHWC, (-1, -1), (-1, -1), 64, 128)
    assert cute.tma.encode(image) == cute.tma.encode(image.traits)
    assert "4d.shared::cluster.global.im2col" in cute.tma.ptx(image)
    with pytest.raises(InvalidTypeError, match="expected a TMA atom"):
        cute.tma.ptx(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["int16", "bool", "uint64", "float8_e5m2"])
def test_a_trace_of_what_moves_as_unsigned_integers_has_no_diagnostic(dtype: str) -> None:
    tile = Layout(ints(16, 64), LayoutRight)
    made = non_exec_tiled_tma_load(gmem((64, 256), dtype=dtype), tile, (16, 64))
    assert cute.tma.lower(made).diagnostics == ()


def test_what_is_emitted_follows_the_mode() -> None:
    for mode, count, text in (("NO_MULTICAST", 1, False), ("W_MULTICAST", 4, True), ("W_MULTICAST", 2, True)):
        [record] = Operands().partition(load_mode=mode, num_multicast=count)
        assert record.tile_element_count == 8192 * count
        mask = (1 << count) - 1 if text else None
        operation = tma_load(make_exec_tma(record.body, Mbarrier(1), "evict_first", mask), SHARED, (0, 0))
        assert (".multicast::cluster" in operation.ptx()) == text
        assert operation.ptx().endswith(f"{'' if mask is None else f', {mask}'}, 1364590687093260288;")


def test_flags_5_and_12() -> None:
    with pytest.raises(InvalidValueError, match="sparse"):
        Operands().partition(metadata=Layout(Int(8)))
    for nothing in (42, False, "a view"):
        with pytest.raises(InvalidTypeError, match="s2t, a view of get_copy_s2t_smem_desc"):
            Operands().partition(s2t=nothing)
