"""Arrays and scaled tensors as sides of a plan: every element's address, indices, limits, and each refusal in words."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_py as cute
from cute_py import Layout, formats
from cute_py.copies.operands import view_of_memory
from cute_py.copies.scaled.format_plan import format_side, layout_side, plan_formats
from cute_py.copies.scaled.operands import device_of, lies_on_device, matrix, scaled_work
from cute_py.copies.scaled.plan import MatrixSide, RowIndex, plan_scaled
from cute_py.dtypes import as_dtype
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError
from cute_py.formats import Format, ScaledTensor
from cute_py.tensor.array_views import ArrayView
from tests.each import each_of

BF16 = ml_dtypes.bfloat16
GPU = "a GPU copy does not support "


def address_of(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def alignment_of(array: np.ndarray) -> int:
    at = address_of(array)
    return min(16, at & -at)


def numbers(shape: tuple[int, ...], dtype: Any = BF16) -> np.ndarray:
    return np.random.default_rng(3).standard_normal(shape).astype(dtype)


def unset(form: Format, shape: tuple[int, int], total: float | None = None) -> ScaledTensor:
    made = cute.copy(np.ones(shape, np.float32), form)
    return ScaledTensor(made.data, made.scales, form, total if form.tensor_scale else None, shape)


# ---- matrices


def side_of(array: np.ndarray, kind: str = "raw", raw: int = 1) -> MatrixSide:
    return matrix(view_of_memory(array), "source", kind, raw)


def places_of(side: MatrixSide, element: int) -> np.ndarray:
    """Byte offset of each element, (lines, along) of memory, as (row, column)."""
    found = np.arange(side.lines)[:, None] * side.pitch + np.arange(side.along) * element
    return found.T if side.by_columns else found


@each_of("seed", range(80))
def test_a_matrix_has_its_elements_where_the_side_says(seed: int) -> None:
    dice = random.Random(seed)
    rank, width = dice.choice((1, 2, 2, 2, 3, 4)), dice.choice((1, 2, 4))
    shape = tuple(dice.choice((1, 2, 3, 8, 16)) for _ in range(rank))
    gap = dice.choice((0, 0, 8)) if rank == 2 or shape[-1] > 1 else 0
    whole = np.zeros((*shape[:-1], shape[-1] + gap), f"u{width}")
    array = whole[..., : shape[-1]]
    if rank == 2 and dice.random() < 0.5:
        array = array.T
    if rank == 2 and array.shape[0] > 1 and array.strides[1] == width:
        array = array[:: dice.choice((1, 2))]
    side = side_of(array)
    index = np.indices(array.shape).reshape(array.ndim, -1)
    wanted = sum(i * step for i, step in zip(index, array.strides, strict=True))
    assert np.array_equal(places_of(side, width).ravel(), wanted), (array.shape, array.strides)
    assert side.alignment == alignment_of(array)
    assert (side.kind, side.format, side.scale_alignment) == ("raw", None, 16)


def test_a_single_line_has_no_gap() -> None:
    """The pitch of one line is its length: an aligned access needs no more."""
    one = np.zeros((4, 40), np.float32)[:1, :24]
    assert side_of(one) == MatrixSide("raw", 1, 24, 96, False, alignment_of(one))
    column = np.zeros((24, 40), np.float32)[:, :1]
    assert side_of(column) == MatrixSide("raw", 24, 1, 160, False, alignment_of(column))
    turned = np.zeros((1, 24), np.float32).T
    assert side_of(turned) == MatrixSide("raw", 24, 1, 4, False, alignment_of(turned))
    apart = np.zeros((24, 40), np.float32)[:, :1].T
    assert side_of(apart) == MatrixSide("raw", 24, 1, 160, True, alignment_of(apart))


def test_elements_that_are_bytes_count_as_such() -> None:
    array = np.zeros((6, 10), np.float32)
    assert side_of(array, "raw", 4) == MatrixSide("raw", 6, 40, 40, False, alignment_of(array))
    assert side_of(array.T, "float32").by_columns


@pytest.mark.parametrize("shape", [(0, 8), (8, 0), (4, 0, 8), (0,)])
def test_an_array_without_elements_has_no_rows(shape: tuple[int, ...]) -> None:
    side = side_of(np.zeros(shape, np.float32))
    assert (side.lines, side.along, side.by_columns) == (0, 1, False)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.zeros((4, 8))[:, ::2], "a source with strides (8, 2)"),
        (np.zeros((4, 8))[:, ::-1], "a source with strides (8, -1)"),
        (np.broadcast_to(np.zeros((4, 8))[:, :1], (4, 6)), "a source with strides (8, 0)"),
        (np.zeros((4, 6, 8))[:, :3], "a source of shape (4, 3, 8) with strides (48, 8, 1)"),
        (np.zeros((4, 6, 8)).transpose(1, 0, 2), "a source of shape (6, 4, 8) with strides (8, 48, 1)"),
        (np.zeros((4, 6, 8))[..., ::2], "a source with strides (8, 2)"),
    ],
)
def test_arrays_that_are_no_matrix(array: np.ndarray, text: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        side_of(array)
    assert caught.value.headline.removeprefix(GPU) == text


# ---- work between memory


def test_a_quantised_array() -> None:
    x, form = numbers((64, 96)), formats.mxfp8()
    out = unset(form, (64, 96))
    work = scaled_work(x, out, fill=1.0)
    side = MatrixSide("bf16", 64, 96, 192, False, alignment_of(x))
    there = MatrixSide(
        "e4m3", 64, 96, 96, False, alignment_of(out.data), alignment_of(out.scales), form, (64, 96), None, None, 127
    )
    padded = out.data.shape[1]
    there = replace(there, lines=out.data.shape[0], along=padded, pitch=padded)
    assert work.launch == plan_scaled(side, [there], (64, 96))
    assert {name: view.address for name, view in work.places.items()} == {
        "source": address_of(x),
        "data 0": address_of(out.data),
        "scales 0": address_of(out.scales),
    }
    assert work.limits == {"rows": 64, "into_rows": out.data.shape[0]}
    assert work.parameters(7)[:40] == b"".join(n.to_bytes(8, "little") for n in (address_of(x), 0, 0, 0, 7))
    at = work.launch.pointers()["data 0"]
    assert work.parameters(7)[at : at + 16] == b"".join(
        n.to_bytes(8, "little") for n in (address_of(out.data), address_of(out.scales))
    )


def test_rows_by_an_index_of_both_sides() -> None:
    x, form = numbers((64, 128)), formats.mxfp8(scales="linear")
    out = unset(form, (40, 128))
    rows, into = np.array([5, -1, 63], np.int32), np.array([39, 0, -1], np.int32)
    work = scaled_work(x, out, rows=rows, into_rows=into, fill=2.0)
    side = MatrixSide("bf16", 64, 128, 256, False, alignment_of(x))
    there = MatrixSide("e4m3", 40, 128, 128, False, alignment_of(out.data), alignment_of(out.scales), form, (40, 128))
    fill = int(np.asarray([2.0]).astype(BF16).view(np.uint16)[0])
    index = RowIndex(rows=True, into=True, width=4, masked=fill | fill << 16)
    code = int(np.asarray([2.0]).astype(ml_dtypes.float8_e8m0fnu).view(np.uint8)[0])
    assert work.launch == plan_scaled(side, [replace(there, fill=code)], (3, 128), index)
    assert list(work.places) == ["source", "rows", "into_rows", "data 0", "scales 0"]
    assert work.places["rows"].address == address_of(rows)
    assert work.places["into_rows"].address == address_of(into)
    assert work.limits == {"rows": 64, "into_rows": 40}


@pytest.mark.parametrize(
    ("dtype", "fill", "pattern"),
    [
        (np.uint8, 3, 0x03030303),
        (np.float16, 1.0, 0x3C003C00),
        (np.float32, -2.0, 0xC0000000),
        (np.float32, None, 0),
        (np.float32, 0.0, 0),
        (np.float64, 0, 0),
        (np.float64, None, 0),
    ],
)
def test_masked_rows_are_filled_with_a_pattern(dtype: Any, fill: float | None, pattern: int) -> None:
    x, y = np.zeros((9, 16), dtype), np.zeros((2, 16), dtype)
    work = scaled_work(x, y, rows=[3, -1], fill=fill)
    width = 16 * x.itemsize
    sides = (
        MatrixSide("raw", 9, width, width, False, alignment_of(x)),
        MatrixSide("raw", 2, width, width, False, alignment_of(y)),
    )
    assert work.launch == plan_scaled(sides[0], [sides[1]], (2, width), RowIndex(rows=True, masked=pattern))
    assert work.limits == {"rows": 9, "into_rows": 2}


def test_rows_of_bytes_of_any_inner_shape() -> None:
    x, y = np.zeros((9, 3, 4), np.float32), np.zeros((7, 3, 4), np.float32)
    work = scaled_work(x[::2], y, into_rows=np.array([6, 0, 1, 2, -1]))
    first = MatrixSide("raw", 5, 48, 96, False, alignment_of(x))
    second = MatrixSide("raw", 7, 48, 48, False, alignment_of(y))
    assert work.launch == plan_scaled(first, [second], (5, 48), RowIndex(into=True))
    assert work.limits == {"rows": 5, "into_rows": 7}
    one = scaled_work(x[:1], y, into_rows=[2])
    assert one.launch == plan_scaled(replace(first, lines=1, pitch=48), [second], (1, 48), RowIndex(into=True))


def test_pages_are_rows_of_all_that_a_page_has() -> None:
    cache, out = np.zeros((7, 16, 2, 8), np.float16), np.ones((2, 48, 2, 8), np.float16)
    table = np.array([[3, 0, -1], [6, 6, 1]], np.int64)
    work = scaled_work(cache, out, pages=table, fill=1.0)
    row = 16 * 2 * 8 * 2
    first, second = (
        MatrixSide("raw", lines, row, row, False, alignment_of(array)) for lines, array in ((7, cache), (6, out))
    )
    assert work.launch == plan_scaled(first, [second], (6, row), RowIndex(rows=True, masked=0x3C003C00))
    assert work.places["rows"].count == 6
    apart = np.zeros((14, 16, 2, 8), np.float16)[::2]
    gaps = scaled_work(apart, out, pages=[3, 0, 1, 2, 6, 6])
    assert gaps.launch == plan_scaled(
        replace(first, pitch=2 * row, alignment=alignment_of(apart)), [second], (6, row), RowIndex(rows=True)
    )


def test_casts_of_rows_and_of_columns() -> None:
    x, y = numbers((8, 16), np.float32), np.zeros((8, 16), BF16)
    first, second = MatrixSide("float32", 8, 16, 64, False, 16), MatrixSide("bf16", 8, 16, 32, False, 16)
    first, second = replace(first, alignment=alignment_of(x)), replace(second, alignment=alignment_of(y))
    assert scaled_work(x, y, cast=True).launch == plan_scaled(first, [second], (8, 16))
    turned = scaled_work(x.T, y.T, cast=True).launch
    assert turned == plan_scaled(replace(first, by_columns=True), [replace(second, by_columns=True)], (16, 8))
    by_rows = scaled_work(x, y[:3], rows=[1, 2, 7], cast=True).launch
    assert by_rows == plan_scaled(first, [replace(second, lines=3)], (3, 16), RowIndex(rows=True))
    wide = numbers((8, 16), np.float32)
    kept = replace(first, kind="raw", along=64)
    same = scaled_work(x, wide, cast=True).launch
    assert same == plan_scaled(kept, [replace(kept, alignment=alignment_of(wide))], (8, 64))
    other = [replace(kept, by_columns=True, alignment=alignment_of(wide))]
    assert scaled_work(x.T, wide.T, cast=True).launch == plan_scaled(replace(kept, by_columns=True), other, (64, 8))


def test_a_scaled_source() -> None:
    form, linear = formats.nvfp4(), formats.nvfp4(scales="linear")
    source, other = unset(form, (64, 96), 0.25), unset(linear, (64, 96), 0.25)
    y = np.zeros((64, 96), np.float32)

    def side(one: ScaledTensor) -> MatrixSide:
        lines, width = one.data.shape
        return MatrixSide(
            *("e2m1", lines, 2 * width, width, False, alignment_of(one.data), alignment_of(one.scales)),
            *(one.format, one.shape, 0.25),
        )

    back = scaled_work(source, y)
    assert back.launch == plan_scaled(
        side(source), [MatrixSide("float32", 64, 96, 384, False, alignment_of(y))], (64, 96)
    )
    assert list(back.places) == ["source", "scales", "data 0"]
    assert back.places["scales"].address == address_of(source.scales)
    assert dict(back.limits) == {}
    moved = scaled_work(source, other)
    assert moved.launch == plan_scaled(side(source), [side(other)], (64, 96))
    assert moved.limits == {"rows": 64}
    few = unset(linear, (2, 96), 0.25)
    rows = scaled_work(source, few, rows=np.array([1, 63], np.int32))
    assert rows.launch == plan_scaled(side(source), [side(few)], (2, 96), RowIndex(rows=True, width=4))
    assert rows.places["rows"].count == 2
    filled = scaled_work(source, other, fill=1.0)
    one = int(np.asarray([1.0]).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)[0])
    assert filled.launch == plan_scaled(side(source), [replace(side(other), fill=one)], (64, 96))


def test_several_outputs_have_pointers_of_their_own() -> None:
    x = numbers((128, 128))
    both = unset(formats.mxfp8(), (128, 128)), unset(formats.mxfp8(axis=0, transposed=True), (128, 128))
    work = scaled_work(x, both)
    assert list(work.places) == ["source", "data 0", "scales 0", "data 1", "scales 1"]
    assert [(a.address, b.address) for a, b in work.outputs if b] == [
        (address_of(one.data), address_of(one.scales)) for one in both
    ]
    gained = scaled_work(x, unset(formats.nvfp4(), (128, 128), 0.5), gain=4.0)
    plain = scaled_work(x, unset(formats.nvfp4(), (128, 128), 0.5))
    assert gained.launch != plain.launch


def test_what_lies_on_a_device() -> None:
    x, form = numbers((32, 32)), formats.mxfp8()
    out = unset(form, (32, 32))
    assert device_of(x) is None and device_of("x") is None and device_of(form) is None
    assert device_of(ArrayView(16, (4,), (1,), as_dtype("u8"), 3)) == 3
    there = ArrayView(16, (4,), (1,), as_dtype("u8"), 0)
    assert lies_on_device(there, x) and lies_on_device(x, there) and lies_on_device(x, (out, there))
    assert not lies_on_device(x, form) and not lies_on_device(out, (form, out))


# ---- plans of layouts


def test_sides_of_formats_and_layouts() -> None:
    form = formats.nvfp4(scales="linear")
    assert format_side(form, (64, 96)) == MatrixSide("e2m1", 64, 96, 48, format=form, shape=(64, 96), total=1.0)
    turned = formats.mxfp8(transposed=True)
    lines, along = turned.data_shape(40, 64)
    assert format_side(turned, (40, 64)) == MatrixSide("e4m3", lines, along, along, True, format=turned, shape=(40, 64))
    bf16 = as_dtype("bfloat16")
    assert layout_side(Layout((4, 8), (16, 1)), bf16, "bf16", "source") == (MatrixSide("bf16", 4, 8, 32), (4, 8))
    assert layout_side(Layout((4, 8), (1, 16)), bf16, "bf16", "source") == (MatrixSide("bf16", 8, 4, 32, True), (4, 8))
    assert layout_side(Layout((4, 8), (16, 1)), bf16, "raw", "source") == (MatrixSide("raw", 4, 16, 32), (4, 8))


@pytest.mark.parametrize(
    ("arguments", "error", "headline"),
    [
        ((Layout(8), formats.mxfp8(), "bf16"), InvalidValueError, "a source of shape 8"),
        ((Layout((2, 4, 8)), formats.mxfp8(), "bf16"), InvalidValueError, "a source of shape (2, 4, 8)"),
        ((Layout(((2, 4), 8)), formats.mxfp8(), "bf16"), InvalidValueError, "a source of shape ((2, 4), 8)"),
        (("x", formats.mxfp8(), "bf16"), InvalidTypeError, "the source must be a Layout or a Format, got 'x'"),
        ((formats.mxfp8(), "x", "bf16"), InvalidTypeError, "the destination must be a Layout or a Format, got 'x'"),
        (
            (formats.mxfp8(), formats.mxfp8(), "bf16"),
            InvalidTypeError,
            "a Format can be copied into one Layout only, got mxfp8()",
        ),
        (
            (formats.mxfp8(), (Layout((4, 8)), Layout((4, 8))), "bf16"),
            InvalidTypeError,
            "a Format can be copied into one Layout only, got (Layout((4, 8)), Layout((4, 8)))",
        ),
    ],
)
def test_layouts_that_are_no_sides(arguments: Any, error: type[CuteError], headline: str) -> None:
    with pytest.raises(error) as caught:
        plan_formats(*arguments, None, None, None)
    assert caught.value.headline.replace(", (Int(1), 4)", "").removeprefix(GPU) == headline


def test_plans_of_layouts_and_formats() -> None:
    rows = Layout((256, 512), (512, 1))
    form = formats.mxfp8(scales="linear")
    launch, first, second, vectors = plan_formats(rows, form, "bf16", None, None, None)
    source = MatrixSide("bf16", 256, 512, 1024)
    assert launch == plan_scaled(source, [format_side(form, (256, 512))], (256, 512))
    assert (first, second, vectors) == (rows, form.data_layout(256, 512), (32, 16))
    whole = formats.fp8("row")
    launch, _, _, vectors = plan_formats(rows, whole, "float32", None, None, None)
    assert (launch.name, vectors) == ("whole", (32, 8))
    launch, first, second, vectors = plan_formats(form, rows, "float32", None, None, None)
    out = MatrixSide("float32", 256, 512, 2048)
    assert launch == plan_scaled(format_side(form, (256, 512)), [out], (256, 512))
    assert (first, second, vectors) == (form.data_layout(256, 512), rows, (8, 32))
    launch, first, second, _ = plan_formats(rows, Layout((256, 512)), "bf16", "float32", None, None)
    assert launch == plan_scaled(source, [MatrixSide("float32", 512, 256, 1024, True)], (256, 512))
    assert second == Layout((256, 512))
    raw = MatrixSide("raw", 256, 1024, 1024)
    more = Layout((300, 512), (512, 1))
    launch, *_ = plan_formats(rows, more, "bf16", None, 300, None)
    assert launch == plan_scaled(raw, [MatrixSide("raw", 300, 1024, 1024)], (300, 1024), RowIndex(rows=True))
    launch, *_ = plan_formats(rows, more, "bf16", None, 200, 100)
    assert launch == plan_scaled(raw, [MatrixSide("raw", 300, 1024, 1024)], (100, 1024), RowIndex(rows=True, into=True))
    with pytest.raises(
        InvalidValueError, match="cast_to applies to two layouts; a format defines its own element type"
    ):
        plan_formats(rows, form, "bf16", "float32", None, None)
    with pytest.raises(InvalidValueError, match="rows = 0; must be at least 1"):
        plan_formats(rows, more, "bf16", None, 0, None)
