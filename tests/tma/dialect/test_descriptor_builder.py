"""The dialect's descriptors: what the builder takes and refuses, and the three updates."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import cute_py as cute
from cute_py import ComposedLayout, E, Int, Layout, LayoutRight, Swizzle
from cute_py.errors import InvalidTypeError, InvalidValueError, TmaBuildError
from cute_py.layout.trees import leaves, modes
from cute_py.tma.dialect.descriptor_update import TmaUpdate, TmaUpdateKind, apply_update
from cute_py.tma.dialect.descriptors import (
    build_tma_descriptor,
    build_tma_descriptor_im2col,
)
from cute_py.tma.dialect.exec_atom import non_exec_tiled_tma_load
from cute_py.tma.dialect.modes import CacheMode, TmaLoadMode, TmaStoreMode
from tests.each import each_of
from tests.oracle import gbasis_rows
from tests.oracle.records import rows
from tests.tma.dialect.partition_operands import SIX, SIX_STRIDES, SMEM, SWIZZLED, gmem, ints

ROWS = [
    row
    for row in rows("gbasis_cpp")
    if row["kind"] == "tiled"
    and not row["rejected"]
    and row["internal_type"] == row["dtype"]
    and not row["driver_doc_violations"]
    and "4" not in row["op"]
    and len(gbasis_rows.layout(row["gmem"]["str"]).shape) <= 5
]


@each_of("row", ROWS, ids=lambda row: row["name"])
def test_numbers_are_those_of_the_driver_call(row: dict[str, Any]) -> None:
    """Built from the recorded G-basis: extents, byte strides and box are CuTe's arguments to the driver."""
    shape, _, stride = row["tma_gbasis"]["str"].partition(":")
    basis = Layout(gbasis_rows.tree(shape), gbasis_rows.tree(stride))
    swizzle = Swizzle(*row["smem"].get("swizzle", [0, 4, 3]))
    got = build_tma_descriptor(
        gbasis_rows.gmem_tensor(row),
        basis,
        swizzle=swizzle,
        num_multicast=row["num_multicast"],
        arch="sm_100a",
    )
    encode = row["encode"]
    assert list(got.shape) == encode["globalDim"]
    assert list(got.strides) == encode["globalStrides"]
    assert list(got.box) == encode["boxDim"]
    assert (got.rank, got.swizzle, got.base) == (encode["rank"], encode["swizzle"], encode["globalAddress"])


def test_from_a_tile() -> None:
    got = build_tma_descriptor(gmem(), SMEM, mode="#cute_nvgpu.tma_load_mode<tiled>", elementBitWidth=16)
    assert (got.shape, got.strides, got.box) == ((512, 1024), (1024,), (64, 128))
    assert (got.mode, got.store_mode, got.cache_policy) == (TmaLoadMode.NO_MULTICAST, None, CacheMode.CG)
    assert got.operand_segment_sizes == (1, 1, 0, 0, 0)
    assert got.attributes == {"mode": TmaLoadMode.NO_MULTICAST, "elementBitWidth": 16, "num_multicast": 1}
    assert str(got) == "!cute_nvgpu.tma_descriptor_tiled"


def test_shape_and_stride_operands() -> None:
    tensor = gmem((1, 1, 1), (1, 8, 8))
    got = build_tma_descriptor(tensor, Layout(ints(64, 8, 1)), (256, 100, 7), (512, 65536), (0,))
    assert (got.shape, got.strides) == ((256, 100, 7), (1024, 131072))
    assert got.box == (64, 8, 1)
    assert got.operand_segment_sizes == (1, 1, 3, 2, 1)
    assert build_tma_descriptor(gmem(), SMEM, strides=(2048,)).strides == (4096,)
    assert build_tma_descriptor(gmem(), SMEM, strides=(2048, 1)).strides == (4096,)
    with pytest.raises(InvalidValueError, match=r"shapes\(\) has 3 values; must have 2"):
        build_tma_descriptor(gmem(), SMEM, (1, 2, 3))
    with pytest.raises(InvalidValueError, match=r"strides\(\) has 3 values; must have 1"):
        build_tma_descriptor(gmem(), SMEM, strides=(1, 2, 3))
    with pytest.raises(InvalidValueError, match="flat modes"):
        build_tma_descriptor(gmem(((32, 32), 512), ((512, 16384), Int(1))), SMEM, (1024, 512))


def headline(*args: Any, **options: Any) -> str:
    with pytest.raises(TmaBuildError) as refusal:
        build_tma_descriptor(*args, **options)
    return refusal.value.headline


IDENTITY = cute.make_identity_tensor((1024, 512))
SMEM_TENSOR = cute.make_tensor(cute.make_smem_ptr(0, "float16"), SMEM)
PADDING = "TmaLoad only support zero padding now"

REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("the tensor of a TMA descriptor must be in global memory", (IDENTITY, SMEM), {}),
    ("the tensor of a TMA descriptor must be in global memory", (SMEM_TENSOR, SMEM), {}),
    ("rank(tensor) = 6 modes; must be 1 to 5", (gmem(SIX, SIX_STRIDES), SMEM), {}),
    ("a TMA descriptor takes a plain static layout, not a composed one", (gmem(), SWIZZLED), {}),
    ("the layout of a TMA descriptor must be static", (gmem(), Layout((128, 64), (64, 1))), {}),
    ("SM90_TMA_LOAD needs sm_90 or newer, not sm_80", (gmem(), SMEM), {"arch": "sm_80"}),
    (
        "expected tma descriptor pointer to have alignment at least 128",
        (gmem(), SMEM),
        {"alignment": 64},
    ),
    ("expected tma descriptor pointer to have alignment at least 128", (gmem(), SMEM), {"alignment": 192}),
    ("elementBitWidth = 32 bits; must be the 16 of float16", (gmem(), SMEM), {"elementBitWidth": 32}),
    (
        "tma boxDims[0] * elemTypeBitWidth is not a multiple of 16 bytes",
        (gmem(), Layout(ints(8, 4), LayoutRight)),
        {},
    ),
    ("smem layout is not TMA compatible", (gmem(), Layout(ints(128, 64), ints(128, 2))), {}),
    ("smem layout is not TMA compatible", (gmem(), SMEM), {"swizzle": Swizzle(2, 4, 3)}),
    ("smem layout is not TMA compatible", (gmem(), SMEM), {"swizzle": Swizzle(3, 3, 3)}),
    ("smem layout is not TMA compatible", (gmem(), Layout(ints(64, 8), (E(1), E(7)))), {}),
    (PADDING, (gmem(), SMEM), {"paddings": (1,)}),
    (PADDING, (gmem(), SMEM), {"paddings": (0, 0.5)}),
    (PADDING, (gmem(), SMEM), {"paddings": (float("nan"),)}),
    (
        "non-zero padding requires a mode that supports it; a store or reduction fills nothing",
        (gmem(), SMEM),
        {"paddings": (1,), "store_mode": "TILED"},
    ),
    ("globalStrides[0] = 500 bytes; must be a multiple of 16", (gmem((8, 250), (250, Int(1))), SMEM), {}),
    ("boxDim[0] = 512 elements; must be 1 to 256", (gmem(), Layout(ints(8, 512), LayoutRight)), {}),
    ("globalAddress = 0x1008; must be a multiple of 16", (gmem(address=4104), SMEM), {}),
    (
        "num_multicast = 3 CTAs; must divide or be divided by boxDim[1] = 128 elements",
        (gmem(), SMEM),
        {"num_multicast": 3},
    ),
]


@each_of(("text", "args", "options"), REFUSED, ids=[f"{i}" for i in range(len(REFUSED))])
def test_refusals(text: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    assert headline(*args, **options) == text


def test_zero_padding_is_fine() -> None:
    for paddings in ((), (0,), (0, 0.0)):
        assert build_tma_descriptor(gmem(), SMEM, paddings=paddings).paddings == paddings


@pytest.mark.parametrize(("columns", "passes"), [(7, False), (8, True), (9, False), (16, True)])
def test_the_granularity_is_16_bytes(columns: int, passes: bool) -> None:
    layout = Layout(ints(4, columns), LayoutRight)
    if passes:
        assert build_tma_descriptor(gmem(), layout).box == (columns, 4)
    else:
        assert headline(gmem(), layout) == "tma boxDims[0] * elemTypeBitWidth is not a multiple of 16 bytes"


@pytest.mark.parametrize(("bits", "columns"), [(1, 16), (2, 32), (3, 64)])
def test_rows_fit_the_swizzle_span(bits: int, columns: int) -> None:
    swizzle = Swizzle(bits, 4, 3)
    assert build_tma_descriptor(gmem(), Layout(ints(4, columns), LayoutRight), swizzle=swizzle).swizzle == bits
    wide = Layout(ints(4, columns * 2), LayoutRight)
    assert headline(gmem(), wide, swizzle=swizzle) == "smem layout is not TMA compatible"


def test_operands_of_no_kind() -> None:
    with pytest.raises(InvalidTypeError, match="takes a layout"):
        build_tma_descriptor(gmem(), (128, 64))
    with pytest.raises(InvalidTypeError):
        build_tma_descriptor("tensor", SMEM)


NHWC = gmem((64, 16, 16, 2), (Int(1), 64, 1024, 16384))


def test_im2col() -> None:
    got = build_tma_descriptor_im2col(NHWC, (-1, -1), (-1, -1), 64, 128, (), swizzle=Swizzle(3, 4, 3))
    assert (got.rank, got.shape, got.strides) == (4, (64, 16, 16, 2), (128, 2048, 32768))
    assert (got.box, got.element_strides, got.swizzle) == ((64, 128), (1, 1, 1, 1), 3)
    assert (str(got), got.attributes["mode"]) == ("!cute_nvgpu.tma_descriptor_im2col", "im2col")


GOOD: dict[str, Any] = {
    "lower_corner": (-1, -1),
    "upper_corner": (-1, -1),
    "channels_per_pixel": 64,
    "pixels_per_column": 128,
}
IM2COL_REFUSED: list[tuple[str, Any, dict[str, Any]]] = [
    ("SM90_TMA_LOAD_IM2COL needs sm_90 or newer, not sm_80", NHWC, {"arch": "sm_80"}),
    ("rank of an im2col tensor = 2 modes; must be 3 to 5", gmem((64, 8), (Int(1), 64)), {}),
    ("the tensor of a TMA descriptor must be in global memory", IDENTITY, {}),
    ("len(pixelBoxLowerCorner) = 1 entries; must be 2 for this rank", NHWC, {"lower_corner": (0,)}),
    ("pixelBoxUpperCorner[0] = 128 elements; must be -128 to 127 at rank 4", NHWC, {"upper_corner": (128, 0)}),
    ("channelsPerPixel = 264 elements; must be 1 to 256", NHWC, {"channels_per_pixel": 264}),
    ("pixelsPerColumn = 1025 pixels; must be 1 to 1024", NHWC, {"pixels_per_column": 1025}),
    ("tma boxDims[0] * elemTypeBitWidth is not a multiple of 16 bytes", NHWC, {"channels_per_pixel": 60}),
    ("smem layout is not TMA compatible", NHWC, {"swizzle": Swizzle(1, 4, 3)}),
    (PADDING, NHWC, {"paddings": (1,)}),
    ("elementStrides[1] = 9 elements; must be 1 to 8", NHWC, {"element_strides": (1, 9, 1, 1)}),
    (
        "stride of mode 0 = 2 elements; channels must be contiguous",
        gmem((64, 16, 16, 2), (2, 128, 2048, 32768)),
        {},
    ),
    ("globalStrides[0] = 120 bytes; must be a multiple of 16", gmem((60, 16, 16, 2), (1, 60, 1024, 16384)), {}),
]


@each_of(("text", "tensor", "change"), IM2COL_REFUSED)
def test_im2col_refusals(text: str, tensor: Any, change: dict[str, Any]) -> None:
    with pytest.raises(TmaBuildError) as refusal:
        build_tma_descriptor_im2col(tensor, **(GOOD | change))
    assert refusal.value.headline == text


def test_store_descriptors() -> None:
    got = build_tma_descriptor(gmem(), SMEM, store_mode="TMA_STORE_TILED")
    assert (got.mode, got.store_mode) == (None, TmaStoreMode.TILED)
    assert got.attributes["mode"] is TmaStoreMode.TILED


def test_three_updates() -> None:
    descriptor = build_tma_descriptor(gmem(), SMEM)
    moved = apply_update(descriptor, TmaUpdate("UPDATE_BASE_POINTER", 0, 8192))
    longer = apply_update(moved, TmaUpdate(TmaUpdateKind.UPDATE_DIM, 1, 2048))
    wider = apply_update(longer, TmaUpdate("UPDATE_STRIDE", 1, 4096))
    assert (wider.base, wider.shape, wider.strides) == (8192, (512, 2048), (4096,))
    for name in ("rank", "element_bits", "swizzle", "box", "mode", "num_multicast", "layout"):
        assert getattr(wider, name) == getattr(descriptor, name)


@pytest.mark.parametrize("update", [("UPDATE_DIM", 3, 9), ("UPDATE_STRIDE", 1, 32), ("UPDATE_BASE_POINTER", 0, 8192)])
def test_im2col_descriptors_are_made_on_the_host(update: tuple[str, int, int]) -> None:
    with pytest.raises(TmaBuildError) as refusal:
        apply_update(build_tma_descriptor_im2col(NHWC, **GOOD), TmaUpdate(*update))
    text = "im2col descriptors can only be made on the host: no mutator writes the im2col fields"
    assert refusal.value.headline == text


def test_an_updated_descriptor_makes_an_atom() -> None:
    """Of a tensor whose sizes are static they stay so; the tile's map stays static with them."""
    tensor = gmem((1024, (Int(32), Int(16))), (512, (Int(1), Int(32))))
    tile = Layout((Int(128), Int(32)), LayoutRight)
    made = build_tma_descriptor(gmem((Int(1024), Int(512)), (Int(512), Int(1))), tile)
    changed = apply_update(apply_update(made, TmaUpdate("UPDATE_DIM", 1, 700)), TmaUpdate("UPDATE_STRIDE", 1, 2048))
    atom = non_exec_tiled_tma_load(changed, tile)
    assert atom.verified and atom.request.global_dim == (512, 700) and atom.request.global_strides == (2048,)
    nested = non_exec_tiled_tma_load(tensor, Layout((Int(128), (Int(32), Int(2))), (Int(64), (Int(1), Int(32)))), None)
    for axis in range(nested.descriptor.rank):
        owners = leaves(modes(nested.descriptor.layout.stride)[axis])
        update = TmaUpdate("UPDATE_DIM", axis, nested.descriptor.shape[axis] + 16)
        if len(owners) == 1:
            assert apply_update(nested.descriptor, update).shape[axis] == update.value
            continue
        with pytest.raises(
            TmaBuildError,
            match=f"UPDATE_DIM needs an axis that is one mode of the tensor; axis {axis} combines 2 modes ",
        ) as refusal:
            apply_update(nested.descriptor, update)
        assert "a tensor where this axis is one mode" in str(refusal.value)


def test_the_operands_are_counted() -> None:
    made = build_tma_descriptor(gmem(), SMEM)
    assert made.operand_segment_sizes == (1, 1, 0, 0, 0)
    with pytest.raises(TmaBuildError, match="operand_segment_sizes"):
        dataclasses.replace(made, operand_segment_sizes=(9, 9, 9, 9, 9))


@pytest.mark.parametrize("kind", ["UPDATE_BOX", "rank", "elemtype", "swizzle_mode", None, 3])
def test_nothing_else_is_mutable(kind: Any) -> None:
    with pytest.raises(TmaBuildError) as refusal:
        TmaUpdate(kind, 0, 1)
    assert refusal.value.headline == "TMA descriptor field is not device-mutable"


def test_the_stride_of_axis_0_is_not_mutable() -> None:
    with pytest.raises(TmaBuildError) as refusal:
        TmaUpdate("UPDATE_STRIDE", 0, 16)
    assert refusal.value.headline == "TMA descriptor field is not device-mutable"


@pytest.mark.parametrize(
    ("update", "text"),
    [
        (("UPDATE_DIM", 2, 1), "axis 2; must be 0 to 1"),
        (("UPDATE_DIM", 0, 0), "UPDATE_DIM to 0 elements; must be 1 to 4294967296"),
        (("UPDATE_STRIDE", 2, 16), "axis 2; must be 0 to 1"),
        (("UPDATE_STRIDE", 1, 24), "UPDATE_STRIDE to 24 bytes; must be a multiple of 16"),
        (("UPDATE_BASE_POINTER", 0, 8), "UPDATE_BASE_POINTER to 8 bytes; must be a multiple of 16"),
        (("UPDATE_STRIDE", 1, 1 << 40), "UPDATE_STRIDE to 1099511627776 bytes; must be 0 to 1099511627775"),
    ],
)
def test_updates_out_of_range(update: tuple[str, int, int], text: str) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        apply_update(build_tma_descriptor(gmem(), SMEM), TmaUpdate(*update))
    assert str(refusal.value) == text


def test_update_numbers_are_integers() -> None:
    with pytest.raises(InvalidTypeError):
        TmaUpdate("UPDATE_DIM", 0, 1.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError):
        TmaUpdate("UPDATE_DIM", True, 1)


def test_composed_and_foreign_layouts_are_told_together() -> None:
    with pytest.raises(TmaBuildError) as refusal:
        build_tma_descriptor(IDENTITY, ComposedLayout(Swizzle(3, 4, 3), Int(0), SMEM))
    assert len(refusal.value.facts) == 2
