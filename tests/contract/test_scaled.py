"""Copies that compute, by the kernels of a GPU on the emulated multiprocessor: every byte is the host's, of padding
too, and nothing outside is touched."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_py as cute
from cute_py import formats
from cute_py.copies.boxes import Tuning
from cute_py.copies.machine_copy import emulated_largest_magnitude, run_on_machine, scaled_launches
from cute_py.copies.scaled import operands as scaled_operands
from cute_py.copies.scaled import plan as scaled_plan
from cute_py.errors import InvalidValueError
from cute_py.formats import Format, ScaledTensor
from cute_py.formats.scale_rules import tensor_scale
from cute_py.machine.cuda_source import compiler_available
from cute_py.machine.run import PtxRun, run_launches
from tests.contract.scaled_cases import BF16, CASES, numbers, same, unset

pytestmark = pytest.mark.skipif(not compiler_available(), reason="no compiler of CUDA C++ (nvcc, or nvidia-cuda-nvrtc)")


def run_scaled(source: Any, destination: Any, **options: Any) -> PtxRun:
    run = run_on_machine(source, destination, **options)
    assert run is not None
    return run


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("form", "shape", "dtype"),
    [pytest.param(*case, id=f"{case[0]}", marks=() if i in (0, 5, 7) else SLOW) for i, case in enumerate(CASES)],
)
def test_quantised_as_the_host_does(form: Format, shape: tuple[int, int], dtype: Any) -> None:
    x = numbers(shape, dtype, form.scale_rule != "nvfp4")
    want = cute.copy(x, form)
    got = unset(want)
    run = run_scaled(x, got, schedule="both" if form == CASES[0][0] else "lazy")
    assert run.ok, run.explain()
    assert same(want, got)


@pytest.mark.parametrize(
    "form",
    [
        formats.mxfp8(),
        formats.nvfp4(scales="8x4"),
        formats.fp8((1, 128), like="torchao", scales="deepgemm_sm90"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("rows", [1, pytest.param(17, marks=SLOW), 32, pytest.param(33, marks=SLOW)])
def test_few_rows_with_the_padding_below_them(form: Format, rows: int) -> None:
    """Warps whose rows are below the matrix write padding only."""
    x = numbers((rows, 150), BF16, form.scale_rule != "nvfp4")
    want = cute.copy(x, form)
    got = unset(want)
    run = run_scaled(x, got, schedule="lazy")
    assert run.ok, run.explain()
    assert same(want, got)


@pytest.mark.parametrize(
    "form",
    [
        formats.mxfp8(),
        formats.mxfp6(element="e3m2"),
        pytest.param(formats.mxfp6(), marks=SLOW),
        pytest.param(formats.nvfp4(), marks=SLOW),
        pytest.param(formats.mxfp8(axis=0, scales="linear"), marks=SLOW),
    ],
    ids=repr,
)
def test_dequantised_as_the_host_does(form: Format) -> None:
    source = cute.copy(numbers((20, 96), np.float32, form.scale_rule != "nvfp4"), form)
    want, got = np.zeros((20, 96), BF16), np.ones((20, 96), BF16)
    cute.copy(source, want)
    run = run_scaled(source, got, schedule="eager")
    assert run.ok, run.explain()
    assert same(want, got)


@pytest.mark.parametrize(
    ("form", "shape", "full"),
    [
        (formats.mxfp8(scales="linear"), (8, 512), True),
        pytest.param(formats.nvfp4(), (128, 512), True, marks=SLOW),
        (formats.nvfp4(scales="linear"), (7, 480), False),
        (formats.fp8((1, 128)), (8, 512), True),
        (formats.fp8("row"), (3, 2048), True),
        (formats.mxfp8(axis=0, transposed=True), (128, 128), True),
        pytest.param(formats.fp8((128, 1), transposed=True), (128, 128), True, marks=SLOW),
        pytest.param(formats.fp8((128, 128)), (128, 256), True, marks=SLOW),
    ],
    ids=repr,
)
def test_a_grid_without_a_remainder(form: Format, shape: tuple[int, int], full: bool) -> None:
    """The kernel does not compare rows and columns with limits if the grid covers the matrix exactly."""
    x = numbers(shape, BF16, form.scale_rule != "nvfp4")
    want = cute.copy(x, form)
    got = unset(want)
    facts = scaled_operands.scaled_work(x, got).launch.kernel.facts
    assert (facts["FULL_ROWS"], facts["FULL_COLUMNS"], facts["ENDS"]) == (full, full, 0)
    run = run_scaled(x, got, schedule="lazy")
    assert run.ok, run.explain()
    assert same(want, got)


@pytest.mark.parametrize(
    "form",
    [formats.mxfp8(), pytest.param(formats.nvfp4(), marks=SLOW), pytest.param(formats.fp8((1, 128)), marks=SLOW)],
)
def test_a_tile_of_a_large_copy(form: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large copies have other tiles: rows that are 32 apart in a warp, and two rows of a lane."""
    monkeypatch.setattr(scaled_plan, "FEW_TILES", 0)
    monkeypatch.setattr(scaled_plan, "RESIDENT", 0)
    x = numbers((130, 150), BF16, form.scale_rule != "nvfp4")
    want = cute.copy(x, form)
    got = unset(want)
    facts = scaled_operands.scaled_work(x, got).launch.kernel.facts
    assert (facts["DOWN"], facts["THREADS"]) == (2, 256)
    assert facts["SPLIT"] == (form.order.name == "32_4_4")
    run = run_scaled(x, got, schedule="lazy")
    assert run.ok, run.explain()
    assert same(want, got)


@pytest.mark.parametrize("dtype", [BF16, np.float16, pytest.param(np.float32, marks=SLOW)])
@pytest.mark.parametrize("total", [1.0, 0.0371, pytest.param(3e-38, marks=SLOW), pytest.param(3e35, marks=SLOW)])
def test_every_code_times_every_scale_is_dequantised_as_on_the_host(dtype: Any, total: float) -> None:
    """Each block has all 16 codes of e2m1, and the 256 blocks have all scales, negative ones and NaN included."""
    codes = np.tile(np.array([0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE], np.uint8), (16, 16))
    scales = np.arange(256, dtype=np.uint8).reshape(16, 16)
    form = formats.nvfp4(scales="linear")
    source = ScaledTensor(codes, scales.view(form.scale_dtype.numpy), form, total, (16, 256))
    want, got = np.zeros((16, 256), dtype), np.ones((16, 256), dtype)
    with np.errstate(all="ignore"):
        cute.copy(source, want)
    run = run_scaled(source, got, schedule="eager")
    assert run.ok, run.explain()
    assert same(want, got)


SCALES = (0, 1 << 31, 1, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF812345)
"""Float32 scales: zeros, a subnormal number, numbers and infinities of each sign, and quiet and signalling NaN."""


@pytest.mark.parametrize(
    "form",
    [
        formats.mxfp8(scales="linear", padding=(1, 1)),
        formats.mxfp8(scales="linear", element="e5m2", padding=(1, 1)),
        formats.mxfp6(scales="linear", padding=(1, 1)),
        formats.mxfp6(scales="linear", element="e3m2", padding=(1, 1)),
        formats.mxfp4(scales="linear", padding=(1, 1)),
        formats.nvfp4(scales="linear", padding=(1, 1), tensor_scale=False),
        formats.fp8((1, 128)),
        formats.fp8((1, 128), element="e5m2"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("rest", [0, 7])
@pytest.mark.parametrize("dtype", [BF16, pytest.param(np.float16, marks=SLOW), pytest.param(np.float32, marks=SLOW)])
def test_every_element_times_every_scale_is_dequantised_as_on_the_host(form: Format, rest: int, dtype: Any) -> None:
    """A row has every element, and each row has another scale. With `rest`, blocks are not whole, and numpy multiplies
    the last elements of the matrix one by one."""
    bits = form.scale_dtype.bits
    rows = np.array(SCALES, np.uint32) if bits == 32 else np.arange(256, dtype=np.uint8)
    width = max(1 << form.number.bits, form.block[1] or 0) + rest
    shape, blocks = (len(rows), width), -(-width // (form.block[1] or 1))
    elements = np.tile(np.arange(width).astype(np.uint8) & np.uint8((1 << form.number.bits) - 1), (len(rows), 1))
    data = formats.pack_elements(elements, form.packing, form.element)
    scales = np.repeat(rows[:, None], blocks, axis=1).view(form.scale_dtype.numpy)
    source = ScaledTensor(formats.of_codes(data, form.element) if form.packing == "bytes" else data, scales, form, None,
                          shape)  # fmt: skip
    want, got = np.zeros(shape, dtype), np.ones(shape, dtype)
    cute.copy(source, want)
    run = run_scaled(source, got, schedule="eager")
    assert run.ok, run.explain()
    assert same(want, got)


@pytest.mark.parametrize("total", [0.5, np.nan, -np.nan, np.inf, 0.0, -1.0])
def test_a_tensor_scale_of_any_kind_times_every_scale(total: float) -> None:
    form = formats.nvfp4(scales="linear", padding=(1, 1))
    data, scales = np.full((256, 12), 0x93, np.uint8), np.repeat(np.arange(256, dtype=np.uint8)[:, None], 2, axis=1)
    source = ScaledTensor(data, scales, form, total, (256, 23))
    want, got = np.zeros((256, 23), np.float32), np.ones((256, 23), np.float32)
    cute.copy(source, want)
    run = run_scaled(source, got, schedule="eager")
    assert run.ok, run.explain()
    assert same(want, got)


@pytest.mark.parametrize(
    "form",
    [
        formats.fp8("row"),
        formats.fp8("row", rule="rceil"),
        formats.fp8((32, 1), like="torchao", transposed=True),
        pytest.param(formats.fp8((32, 1), rule="floor", element="e5m2"), marks=SLOW),
        pytest.param(formats.fp8((128, 128), like="deepgemm"), marks=SLOW),
    ],
    ids=repr,
)
def test_nan_of_each_sign_in_a_block_is_quantised_as_on_the_host(form: Format) -> None:
    """The factor of the block is NaN too. numpy multiplies most elements in vectors, and the last ones one by one."""
    x = numbers((37, 263), np.float32)
    x[:, ::2], x[:, 1::3] = np.nan, -np.nan
    want = cute.copy(x, form)
    signs = want.elements().view(np.uint8) >> 7
    assert np.array_equal(signs[np.isnan(x)], np.signbit(x[np.isnan(x)]))
    got = unset(want)
    run = run_scaled(x, got, schedule="eager")
    assert run.ok, run.explain()
    assert same(want, got)


@pytest.mark.parametrize(
    ("form", "shape"),
    [
        (formats.mxfp8(scales="linear"), (5, 150)),
        (formats.nvfp4(scales="linear"), (5, 151)),
        (formats.mxfp4(scales="linear", padding=(1, 1)), (5, 151)),
        (formats.mxfp4(scales="linear", padding=(4, 64)), (5, 33)),
        pytest.param(formats.mxfp6(scales="linear"), (5, 33), marks=SLOW),
        pytest.param(formats.nvfp4(scales="linear", padding=(1, 1)), (1, 1), marks=SLOW),
    ],
    ids=repr,
)
@pytest.mark.parametrize("rows", [None, np.array([0, -1, 0])], ids=["all", "rows"])
def test_stale_bytes_in_the_padding_of_the_data_become_0(form: Format, shape: tuple[int, int], rows: Any) -> None:
    clean = cute.copy(numbers(shape, BF16, False), form)
    padded = form.data_shape(*shape)
    elements = np.full(padded, 0xFF, np.uint8)
    elements[: shape[0], : shape[1]] = formats.codes(np.ascontiguousarray(clean.elements()))
    if form.packing == "pairs":  # the last byte of a row may have one element
        elements = np.pad(elements, ((0, 0), (0, padded[1] % 2)), constant_values=0xFF)
    stale = formats.pack_elements(elements, form.packing, form.element).view(clean.data.dtype)
    assert not np.array_equal(stale.view(np.uint8), clean.data.view(np.uint8))
    source = ScaledTensor(stale, clean.scales, form, clean.tensor_scale, shape)
    to = form.with_(scales="32_4_4")
    want = cute.copy(source, to, rows=rows)
    assert same(want, cute.copy(clean, to, rows=rows))
    got = unset(want)
    run = run_scaled(source, got, rows=rows, schedule="eager")
    assert run.ok, run.explain()
    assert same(want, got)


@pytest.mark.parametrize(
    "form",
    [formats.mxfp8(scales="linear"), formats.mxfp4(), pytest.param(formats.nvfp4(), marks=SLOW)],
    ids=repr,
)
def test_a_masked_row_with_a_value_has_no_value_in_the_padding(form: Format) -> None:
    x, rows = numbers((2, 24), BF16, False), np.array([0, -1])
    want = cute.copy(x, form, rows=rows, fill=2.5)
    got = unset(want)
    run = run_scaled(x, got, schedule="lazy", rows=rows, fill=2.5)
    assert run.ok, run.explain()
    assert same(want, got)


def test_an_infinite_factor_of_a_transposed_block() -> None:
    """With a tensor scale of 3e-38, the factor is infinite: elements of value 0 stay 0."""
    x, form = np.ones((5, 16), np.float32), formats.nvfp4(scales="mn_major", transposed=True)
    x[:, ::3] = 0
    made = cute.copy(x, form)
    want = ScaledTensor(made.data, made.scales, form, 3e-38, made.shape)
    got = unset(want)
    cute.copy(x, want)
    run = run_scaled(x, got, schedule="lazy")
    assert run.ok, run.explain()
    assert same(want, got)


def test_a_scale_per_row_in_an_order_with_padding_is_refused() -> None:
    x, form = np.ones((5, 24), np.float32), formats.fp8("row", rule="rceil", scales="32_4_4")
    with pytest.raises(InvalidValueError, match="order that pads the scales of a row"):
        run_scaled(x, unset(cute.copy(x, form)))


@pytest.mark.parametrize("target", ["e4m3", pytest.param("e5m2", marks=SLOW), pytest.param("f16", marks=SLOW)])
def test_every_bfloat16_is_cast_as_on_the_host(target: str) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(BF16).reshape(64, 1024)
    want = formats.cast(every, target)
    got = np.zeros_like(want)
    run = run_scaled(every, got, cast=True, schedule="eager")
    assert run.ok, run.explain()
    assert same(want, got)


@pytest.mark.parametrize("dtype", [BF16, ml_dtypes.float8_e5m2, pytest.param(np.float16, marks=SLOW), np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_cast_to_the_same_type_keeps_every_byte(dtype: Any, order: Any) -> None:
    """Also those of infinity and of each NaN."""
    width = np.dtype(dtype).itemsize
    every = np.tile(np.arange(1 << 16, dtype=np.uint16).view(np.uint8), 4).view(dtype)
    x = np.asarray(every[: (1 << 13) - 40 * width].reshape(8, -1), order=order)
    want, got = np.zeros_like(x), np.ones_like(x)
    cute.copy(x, want, cast=True)
    run = run_scaled(x, got, cast=True, schedule="eager")
    assert run.ok, run.explain()
    assert same(want, got) and same(x, got)
    with pytest.raises(InvalidValueError, match="does not support a transposed cast of a type to itself"):
        run_scaled(x, np.zeros_like(x, order="F" if order == "C" else "C"), cast=True)


@pytest.mark.parametrize("form", [formats.mxfp6(), pytest.param(formats.mxfp6(element="e3m2"), marks=SLOW)], ids=repr)
def test_every_bfloat16_becomes_six_bits_as_on_the_host(form: Format) -> None:
    """A row has numbers of a few neighbouring exponents, so that all rounding cases occur."""
    every = np.arange(1 << 16, dtype=np.uint16).view(BF16).reshape(64, 1024)
    want = cute.copy(every, form)
    got = unset(want)
    run = run_scaled(every, got, schedule="eager")
    assert run.ok, run.explain()
    assert same(want, got)


@pytest.mark.slow
def test_a_transposed_cast() -> None:
    x = numbers((40, 150), BF16)
    got = np.zeros((150, 40), ml_dtypes.float8_e4m3fn)
    run = run_scaled(x, got.T, cast=True, schedule="eager")
    assert run.ok, run.explain()
    assert same(formats.cast(x, "e4m3").T, got)


@pytest.mark.slow
@pytest.mark.parametrize("like", ["torchao", "te", "flashinfer"])
def test_a_tensor_scale_from_the_largest_magnitude(like: str) -> None:
    x = numbers((20, 90), np.float32, False)
    x[3, 3] = np.nan
    assert emulated_largest_magnitude(x) == np.nanmax(np.abs(x))
    x[3, 3] = 1
    want = cute.copy(x, formats.nvfp4(like=like))
    total, gain = tensor_scale(emulated_largest_magnitude(x), like)
    assert total == want.tensor_scale
    got = unset(want)
    assert run_scaled(x, got, gain=float(gain), schedule="eager").ok
    assert same(want, got)


@pytest.mark.slow
def test_rows_and_columns_at_once() -> None:
    x = numbers((40, 96), BF16)
    want = cute.copy(x, (formats.mxfp8(), formats.mxfp8(axis=0, transposed=True)))
    got = tuple(unset(one) for one in want)
    run = run_scaled(x, got, schedule="eager")
    assert run.ok, run.explain()
    assert all(same(a, b) for a, b in zip(want, got, strict=True))


@pytest.mark.slow
def test_rows_by_an_index_and_pages() -> None:
    dice = np.random.default_rng(2)
    x, index = numbers((50, 96), BF16), dice.integers(-1, 50, 70)
    want, got = np.zeros((70, 96), BF16), np.ones((70, 96), BF16)
    cute.copy(x, want, rows=index, fill=2.5)
    assert run_scaled(x, got, rows=index, fill=2.5, schedule="eager").ok
    assert same(want, got)
    target = np.full((60, 96), 3, BF16)
    beside, into = target.copy(), dice.permutation(60)[:50].astype(np.int32)
    into[3] = -1
    cute.copy(x, target, into_rows=into)
    assert run_scaled(x, beside, into_rows=into, schedule="eager").ok
    assert same(target, beside)
    cache, table = numbers((7, 64), BF16).reshape(7, 4, 2, 8), np.array([[3, 0, -1], [6, 6, 1]])
    first, second = np.zeros((2, 12, 2, 8), BF16), np.ones((2, 12, 2, 8), BF16)
    cute.copy(cache, first, pages=table, fill=9.0)
    assert run_scaled(cache, second, pages=table, fill=9.0, schedule="eager").ok
    assert same(first, second)


@pytest.mark.slow
@pytest.mark.parametrize("build", [formats.mxfp8, formats.mxfp4, formats.nvfp4])
def test_scales_in_another_order_and_rows_of_them(build: Any) -> None:
    source = cute.copy(numbers((50, 150), BF16, False), build(scales="linear"))
    want = cute.copy(source, build(), fill=1.0)
    got = unset(want)
    run = run_scaled(source, got, fill=1.0, schedule="eager")
    assert run.ok, run.explain()
    assert same(want, got)
    index = np.random.default_rng(5).integers(-1, 50, 20)
    want = cute.copy(source, build(scales="8x4"), rows=index)
    got = unset(want)
    run = run_scaled(source, got, rows=index, schedule="eager")
    assert run.ok, run.explain()
    assert same(want, got)


@pytest.mark.slow
def test_quantised_rows_go_where_an_index_says() -> None:
    x, form = numbers((20, 90), BF16), formats.mxfp8()
    want = cute.copy(np.zeros((130, 90), BF16), form)
    got = cute.copy(np.zeros((130, 90), BF16), form)
    into = np.random.default_rng(3).permutation(130)[:20]
    cute.copy(x, want, into_rows=into)
    run = run_scaled(x, got, into_rows=into, schedule="eager")
    assert run.ok, run.explain()
    assert same(want, got)


def test_a_bad_index_on_the_device_is_recorded_and_nothing_outside_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaled_operands, "index_of_rows", lambda *a, **k: None)  # as of an index that is on a device
    x, got = numbers((50, 96), BF16), np.ones((70, 96), BF16)
    index = np.arange(70)
    index[60] = -7
    launches = scaled_launches(x, got, rows=index)
    run = run_launches(launches, schedule="eager")
    assert run.ok, run.explain()
    pointers = launches[0].args[0][1]
    record = int(pointers[32].view(np.uint64)[0])
    assert (record >> 32, record & 0xFFFFFFFF) == (50, 50)
    assert same(got[:50], x)
    assert not got[50:].astype(np.float32).any()


@pytest.mark.parametrize(
    ("before", "after"), [("linear", "32_4_4"), ("32_4_4", "linear"), pytest.param("32_4_4", "8x4", marks=SLOW)]
)
@pytest.mark.parametrize("build", [formats.mxfp8, formats.nvfp4, pytest.param(formats.mxfp4, marks=SLOW)])
def test_scales_change_their_order(build: Any, before: str, after: str) -> None:
    """Sizes end within a word of four scales, and within the rows of a CTA."""
    for shape in ((37, 300), (130, 1290)):
        source = cute.copy(numbers(shape, BF16, False), build(scales=before))
        want = cute.copy(source, build(scales=after))
        got = unset(want)
        run = run_scaled(source, got, schedule="eager")
        assert run.ok, run.explain()
        assert same(want, got)


def test_options_of_layouts_are_refused() -> None:
    x = numbers((32, 64), np.float32, False)
    out = cute.copy(x, formats.mxfp8())
    for options in ({"dtype": "float32"}, {"tuning": Tuning()}):
        with pytest.raises(InvalidValueError, match="not to one that computes"):
            run_on_machine(x, out, **options)
