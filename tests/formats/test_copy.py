"""cute.copy with formats: quantise, dequantise, reorder, gather, scatter, pages, casts; and what is refused."""

from __future__ import annotations

import os
import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_py as cute
from cute_py import formats
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError
from cute_py.formats import Format, ScaledTensor, kv_cache_layout
from tests.each import each_of

ALL = (
    formats.mxfp8(),
    formats.mxfp8(element="e5m2", rule="floor", scales="8x4"),
    formats.mxfp6(packing="dense", scales="linear"),
    formats.mxfp6(element="e3m2", rule="even"),
    formats.mxfp4(rule="ceil"),
    formats.nvfp4(),
    formats.nvfp4(like="te", block=(16, 16)),
    formats.nvfp4(like="flashinfer", scales="linear"),
    formats.fp8((1, 128)),
    formats.fp8((128, 128), like="torchao"),
    formats.fp8("row", like="deepgemm"),
    formats.fp8("column"),
    formats.fp8("tensor"),
    formats.fp8((1, 128), rule="rceil", scales="deepgemm_sm100"),
)


def numbers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-6, 6, shape))).astype(np.float32)


def by_loops(scaled: ScaledTensor) -> np.ndarray:
    """element x scale x tensor scale, one number at a time, from the raw memory."""
    form, (M, K) = scaled.format, scaled.shape
    elements = formats.to_float32(scaled.elements())
    flat = formats.to_float32(scaled.scales.reshape(-1))
    index = form.scale_index(M, K)(np.arange(M)[:, None], np.arange(K))
    total = np.float32(1) if scaled.tensor_scale is None else np.float32(scaled.tensor_scale)
    return elements * (flat[index] * total)


@each_of("form", ALL, ids=repr)
@each_of("shape", [(1, 1), (33, 70), (128, 256)])
def test_quantise_and_back(form: Format, shape: tuple[int, int]) -> None:
    x = numbers(shape, seed=shape[0])
    made = cute.copy(x, form)
    assert made.shape == shape
    assert made.data.nbytes == form.data_size(*shape)
    assert made.scales.size == form.scale_size(*shape)
    back = made.dequantize()
    assert np.array_equal(back, by_loops(made))
    largest = np.abs(x).max()
    # Half a step at the top of the block's range, which is the whole tensor's at most.
    step = {"e4m3": 2.0**-4, "e5m2": 2.0**-3, "e2m3": 2.0**-4, "e3m2": 2.0**-3, "e2m1": 2.0**-2}[form.element]
    slack = 2.2 if form.scale_rule in ("floor", "even") else 1.1
    assert np.abs(back - x).max() <= slack * step * largest
    assert formats.check(made.data, made.scales, form, shape) == [] or shape != (128, 256)


@pytest.mark.parametrize("form", ALL, ids=repr)
def test_stripes_and_threads_do_not_change_a_tensor(form: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    x = numbers((300, 70), seed=8)
    x[250, 3] = np.nan
    whole = cute.copy(x, form)
    for module in (formats.numbers, formats.scaled_tensor):
        monkeypatch.setattr(module, "BATCH", 640)
    for processors in (1, 3):
        monkeypatch.setattr(os, "cpu_count", lambda count=processors: count)
        parts = cute.copy(x, form)
        assert np.array_equal(formats.codes(parts.data), formats.codes(whole.data))
        assert np.array_equal(formats.codes(parts.scales), formats.codes(whole.scales))


@pytest.mark.parametrize("form", ALL[:8], ids=repr)
def test_along_columns_is_along_rows_of_the_transposed(form: Format) -> None:
    x = numbers((96, 64), seed=3)
    if form.block == (16, 16):
        return
    turned = form.with_(axis=0, block=form.block[::-1], padding=form.padding[::-1]) if form.builder == "nvfp4" else None
    build: Any = getattr(formats, form.builder)
    if turned is None:
        more = {"packing": form.packing} if form.builder in ("mxfp6", "mxfp4") else {}
        more |= {} if form.builder == "mxfp4" else {"element": form.element}
        turned = build(axis=0, rule=form.scale_rule, scales=form.scales, **more)
    stored_turned = turned.with_(transposed=True)
    flat = cute.copy(np.ascontiguousarray(x.T), form)
    plain, stored = cute.copy(x, (turned, stored_turned))
    assert np.array_equal(plain.dequantize(), flat.dequantize().T)
    assert np.array_equal(stored.data.view(np.uint8), flat.data.view(np.uint8))
    assert np.array_equal(stored.scales.reshape(-1).view(np.uint8), flat.scales.reshape(-1).view(np.uint8))


def test_other_orders_leave_the_data() -> None:
    x = numbers((300, 1000))
    first = cute.copy(x, formats.mxfp8())
    orders = ("linear", "8x4", "mn_major", "triton_blackwell", "triton_hopper(2)", "rocm_32_8", "deepgemm_sm100")
    for order in (*orders, "vllm_v_4x4", "ragged(cu_seqlens=(0, 100, 300))"):
        other = cute.copy(first, formats.mxfp8(scales=order))
        assert np.array_equal(other.data.view(np.uint8), first.data.view(np.uint8))
        assert np.array_equal(other.dequantize(), first.dequantize())
        back = cute.copy(other, first.format)
        assert np.array_equal(back.scales.view(np.uint8), first.scales.view(np.uint8)), order
    memory = cute.copy(x, formats.mxfp8(scales="linear"))
    into = ScaledTensor(np.zeros_like(first.data), np.zeros_like(first.scales), first.format, None, (300, 1000))
    result = cute.copy(memory, into)
    assert result.equal
    assert result.plan == "reorder the scales"
    assert np.array_equal(into.dequantize(), first.dequantize())


@pytest.mark.parametrize("packing", ["", np.array([None, object()], dtype=object)])
def test_a_packing_that_is_no_name_is_refused(packing: Any) -> None:
    with pytest.raises(CuteError, match="packing"):
        formats.mxfp6(packing=packing)


def test_another_format_only_when_asked() -> None:
    first = cute.copy(numbers((64, 64)), formats.mxfp8())
    with pytest.raises(InvalidValueError, match="differ in more than the order") as refused:
        cute.copy(first, formats.nvfp4())
    assert "element" in str(refused.value.facts["differ in"])
    made = cute.copy(first, formats.nvfp4(), requantize=True)
    again = cute.copy(first.dequantize(), formats.nvfp4())
    assert np.array_equal(made.data, again.data)


def test_batches() -> None:
    x = numbers((3, 40, 96))
    for form in (formats.mxfp8(), formats.fp8((1, 128)), formats.mxfp4(scales="linear")):
        whole = cute.copy(x, form)
        for plane in range(3):
            one = cute.copy(x[plane], form)
            assert np.array_equal(whole.data[plane].view(np.uint8), one.data.view(np.uint8))
            assert np.array_equal(whole.dequantize()[plane], one.dequantize())


def test_rows_are_gathered_and_scattered() -> None:
    x = numbers((200, 96))
    form = formats.mxfp8(scales="8x4")
    index = [5, 199, -1, 0, 5]
    made = cute.copy(x, form, rows=index)
    kept = cute.copy(cute.copy(x, form), form, rows=index)
    assert np.array_equal(made.dequantize(), kept.dequantize())
    assert (made.dequantize()[2] == 0).all()
    target = cute.copy(np.zeros((50, 96), np.float32), form)
    into = [10, 49, -1, 0, 20]
    assert cute.copy(x[:5], target, into_rows=into).equal
    want = np.zeros((50, 96), np.float32)
    want[[10, 49, 0, 20]] = cute.copy(x[:5], form).dequantize()[[0, 1, 3, 4]]
    assert np.array_equal(target.dequantize(), want)
    plain = np.full((6, 96), 7.0, np.float32)
    assert cute.copy(x, plain, rows=[1, -1, 2, 3, 4, 5], fill=2.5).equal
    assert (plain[1] == 2.5).all()
    assert np.array_equal(plain[0], x[1])


@pytest.mark.parametrize("like", ["torchao", "te", "flashinfer"])
def test_rows_of_nvfp4_take_the_tensor_scale_of_their_destination(like: str) -> None:
    x = numbers((64, 64))
    whole = cute.copy(x, formats.nvfp4(like=like))
    cache = ScaledTensor(np.zeros_like(whole.data), np.zeros_like(whole.scales), whole.format, whole.tensor_scale)
    for begin in range(0, 64, 16):
        assert cute.copy(x[begin : begin + 16], cache, into_rows=range(begin, begin + 16)).equal
    assert np.array_equal(cache.data, whole.data)
    assert np.array_equal(cache.scales.view(np.uint8), whole.scales.view(np.uint8))
    assert cute.copy(x, cache).equal


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", ALL, ids=repr)
def test_infinities_and_nan_go_through(form: Format) -> None:
    x = numbers((32, 256))
    x[3, 5], x[4, 6], x[5, 7] = np.inf, -np.inf, np.nan
    back = cute.copy(x, form).dequantize()
    assert np.isnan(back[5, 7]) or form.number.nan is None or form.scale_rule == "nvfp4"
    nothing = cute.copy(np.full((32, 256), np.nan, np.float32), form).dequantize()
    assert nothing.shape == (32, 256)


def test_pages_of_a_cache() -> None:
    cache = numbers((7, 16, 2, 8))
    table = np.array([[3, 0, -1], [6, 6, 1]])
    out = np.zeros((2, 48, 2, 8), np.float32)
    assert cute.copy(cache, out, pages=table, fill=9.0).equal
    assert np.array_equal(out[0, :16], cache[3])
    assert (out[0, 32:] == 9.0).all()
    assert np.array_equal(out[1, 16:32], cache[6])


def test_orders_of_a_kv_cache() -> None:
    sizes = {"L": 2, "B": 3, "H": 2, "N": 4, "C": 8}
    x = np.arange(2 * 3 * 2 * 4 * 8, dtype=np.float32)
    for order in ("LBHNC", "LBNHC", "BLHNC", "BLNHC", "LHBNC", "BHLNC"):
        y = np.zeros_like(x)
        assert cute.copy((x, kv_cache_layout("LBHNC", sizes)), (y, kv_cache_layout(order, sizes))).equal
        whole = x.reshape(2, 3, 2, 4, 8).transpose(["LBHNC".index(letter) for letter in order])
        assert np.array_equal(y, whole.reshape(-1)), order
    with pytest.raises(InvalidValueError, match="permutation"):
        kv_cache_layout("LBHN", sizes)


def test_casts_between_arrays() -> None:
    x = numbers((8, 16))
    y = np.zeros(x.shape, ml_dtypes.float8_e4m3fn)
    with pytest.raises(
        InvalidValueError,
        match="source dtype float32 differs from destination dtype float8_e4m3fn, and this copy does not convert",
    ):
        cute.copy(x, y)
    assert cute.copy(x, y, cast=True).equal
    assert np.array_equal(y.view(np.uint8), formats.cast(x, "e4m3").view(np.uint8))
    wide = np.zeros(x.shape, ml_dtypes.bfloat16)
    assert cute.copy(cute.copy(x, formats.mxfp8()), wide).plan == "dequantise"


class Exported:
    """An array of another library."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries() -> None:
    x = numbers((40, 96))
    made = cute.copy(Exported(x[::2]), formats.mxfp8())
    assert np.array_equal(made.data.view(np.uint8), cute.copy(x[::2], formats.mxfp8()).data.view(np.uint8))
    y = np.zeros((20, 96), np.float32)
    assert cute.copy(made, Exported(y)).equal
    assert np.array_equal(y, made.dequantize())


def test_padding_is_filled() -> None:
    x = numbers((3, 40))
    made = cute.copy(x, formats.mxfp8(), fill=1.0)
    raw = made.scales.view(np.uint8)
    used = np.zeros(raw.size, bool)
    used[made.format.scale_index(3, 40)(np.arange(3)[:, None], [0, 32])] = True
    assert (raw[~used] == 127).all()
    assert (made.data[:, 40:].astype(np.float32) == 0).all()


def test_formats_evaluate_back() -> None:
    names = {name: getattr(formats, name) for name in ("mxfp8", "mxfp6", "mxfp4", "nvfp4", "fp8")}
    for form in ALL:
        assert eval(repr(form), dict(names)) == form
    rng = random.Random(1)
    for _ in range(100):
        form = formats.mxfp8(
            axis=rng.choice((-1, 0)),
            rule=rng.choice(("floor", "ceil", "even", "rceil")),
            scales=rng.choice(("linear", "triton_hopper(8)", "32_4_4")),
            transposed=rng.random() < 0.5,
            padding=rng.choice((None, (1, 1), (128, 128))),
        )
        assert eval(repr(form), dict(names)) == form


def _refusals() -> list[tuple[str, Any]]:
    x = numbers((40, 96))
    scaled = cute.copy(x, formats.mxfp8())
    frozen = cute.copy(x, formats.mxfp8())
    frozen.data.flags.writeable = False
    return [
        ("must be -1 to 39", lambda: cute.copy(x, formats.mxfp8(), rows=[40])),
        ("must be -1 to 39", lambda: cute.copy(x, formats.mxfp8(), rows=[-2])),
        ("times; must list it once", lambda: cute.copy(x[:2], np.zeros((9, 96), np.float32), into_rows=[3, 3])),
        ("overlap", lambda: cute.copy(x, x[::-1], rows=list(range(40)))),
        ("read-only", lambda: cute.copy(x, frozen)),
        ("the source of the copy is a Format, which has no data", lambda: cute.copy(formats.mxfp8(), x)),
        ("casts don't support complex64", lambda: cute.copy(x.astype(np.complex64), formats.mxfp8())),
        ("must be a numpy array", lambda: cute.copy([[1.0]], formats.mxfp8())),
        ("each at least 1", lambda: cute.copy(np.zeros((0, 4), np.float32), formats.mxfp8())),
        ("backend", lambda: cute.copy(x, formats.mxfp8(), backend="emulator")),
        ("can't be combined", lambda: cute.copy(x, formats.mxfp8(), rows=[0], pages=[0])),
        ("tensor scale", lambda: cute.copy(cute.copy(x, formats.nvfp4()), cute.copy(2 * x, formats.nvfp4()))),
        ("has the shape", lambda: cute.copy(x[:5], scaled)),
        ("data has the shape", lambda: ScaledTensor(scaled.data[:, :64], scaled.scales, scaled.format, None, (40, 96))),
        ("scales have", lambda: ScaledTensor(scaled.data, scaled.scales[:7], scaled.format, None, (40, 96))),
        ("element", lambda: formats.mxfp8(element="e2m1")),
        ("must be one of", lambda: formats.mxfp8(rule="round")),
        ("must be one of", lambda: formats.nvfp4(like="cublas")),
        ("block", lambda: formats.nvfp4(block=(32, 32))),
        ("deepgemm_sm100", lambda: formats.fp8((1, 128), scales="deepgemm_sm100")),
        ("only 'torchao'", lambda: formats.nvfp4(tensor_scale=False, like="te")),
        ("packing", lambda: formats.mxfp4(packing="dense")),
        ("M = 0", lambda: formats.mxfp8().scale_layout(0, 32)),
        ("M must be a size", lambda: formats.mxfp8().scale_layout(1.5, 32)),
        ("has no option 'element'", lambda: formats.nvfp4().with_(element="e4m3")),
    ]


@each_of("number", range(25))
def test_bad_input(number: int) -> None:
    text, call = _refusals()[number]
    with pytest.raises((InvalidValueError, InvalidTypeError)) as refused:
        call()
    assert isinstance(refused.value, CuteError)
    assert text in str(refused.value)


def test_masked_rows_of_a_scaled_tensor_hold_the_fill() -> None:
    x, index = numbers((8, 96)), [3, -1, 7]
    scaled = cute.copy(x, formats.mxfp8())
    want = scaled.dequantize()[[3, 0, 7]]
    want[1] = 7.1
    out = np.zeros((3, 96), np.float32)
    assert cute.copy(scaled, out, rows=index, fill=7.1).equal
    assert np.array_equal(out, want)
    made = cute.copy(scaled, formats.mxfp8(scales="8x4"), rows=index, fill=7.1)
    row = cute.copy(np.full((1, 96), 7.1, np.float32), formats.mxfp8()).dequantize()[0]
    assert np.array_equal(made.dequantize(), np.stack([want[0], row, want[2]]))
    nvfp4 = cute.copy(x, formats.nvfp4())
    assert np.abs(cute.copy(nvfp4, formats.nvfp4(), rows=index, fill=2.0).dequantize()[1] - 2.0).max() < 0.3


def test_a_fill_is_a_number_of_the_type() -> None:
    for dtype, fill, want in (
        (ml_dtypes.float8_e4m3fn, 1e9, 448.0),
        (np.float16, 1e9, float("inf")),
        (np.float32, float("-inf"), float("-inf")),
        (np.int8, -128, -128),
        (np.uint16, 65535, 65535),
    ):
        out = np.zeros((1, 4), dtype)
        cute.copy(np.zeros((2, 4), dtype), out, rows=[-1], fill=fill)
        assert float(out[0, 0]) == want
    for fill in (200, 0.5, float("nan"), float("inf")):
        with pytest.raises(InvalidValueError, match="must be a whole number, -128 to 127"):
            cute.copy(np.zeros((2, 4), np.int8), np.zeros((1, 4), np.int8), rows=[-1], fill=fill)


def test_tensors_and_pairs_on_either_side_of_a_format() -> None:
    x, form = numbers((40, 96)), formats.mxfp8()
    scaled = cute.copy(x, form)
    turned = np.ascontiguousarray(x.T)
    columns = cute.Layout((40, 96), (1, 40))
    nested = cute.Layout(((8, 5), 96), ((1, 8), 40))
    for source in ((turned, columns), cute.make_tensor(turned.reshape(-1), columns), (turned, nested)):
        made = cute.copy(source, form)
        assert np.array_equal(made.data.view(np.uint8), scaled.data.view(np.uint8))
    for layout in (columns, nested):
        out = np.zeros((96, 40), np.float32)
        result = cute.copy(scaled, (out, layout))
        assert result.equal
        assert np.array_equal(out.T, scaled.dequantize())
        out[0, 0] += 1
    out = np.full((96, 40), 9, np.float32)
    assert cute.copy(x[:2], (out, columns), into_rows=[39, 0]).equal
    assert np.array_equal(out.T[[39, 0, 1]], np.stack([x[0], x[1], np.full(96, 9, np.float32)]))


def test_a_cache_changes_its_type_and_its_order_at_once() -> None:
    sizes = {"L": 2, "B": 3, "H": 2, "N": 4, "C": 8}
    source = numbers((384,))
    for order in ("LBNHC", "BLNHC", "BHLNC"):
        out = np.zeros(384, ml_dtypes.float8_e4m3fn)
        a, b = kv_cache_layout("LBHNC", sizes), kv_cache_layout(order, sizes)
        assert cute.copy((source, a), (out, b), cast=True).equal
        want = source.reshape([sizes[x] for x in "LBHNC"]).transpose(["LBHNC".index(x) for x in order]).reshape(-1)
        assert np.array_equal(out.view(np.uint8), formats.codes(formats.cast(want, "e4m3")))


@each_of(
    "form", [formats.mxfp8(), formats.mxfp4(), formats.mxfp6(), formats.nvfp4(), formats.fp8((128, 128))], ids=repr
)
def test_storing_elements_in_another_way_computes_nothing(form: Format) -> None:
    """The packing, the padding and the transposition of the data are not numbers: no requantisation."""
    first = cute.copy(numbers((40, 70)), form)
    others = [form.with_(transposed=True, scales="linear"), form.with_(padding=(64, 256), scales="8x4")]
    if form.packing != "bytes":
        others.append(form.with_(packing="bytes"))
    if form.element == "e2m3":
        others.append(form.with_(packing="dense"))
    for other in others:
        made = cute.copy(first, other)
        right = cute.copy(numbers((40, 70)), other)
        assert np.array_equal(made.data.view(np.uint8), right.data.view(np.uint8))
        assert np.array_equal(made.scales.view(np.uint8), right.scales.view(np.uint8))
        into = ScaledTensor(np.zeros_like(first.data), np.zeros_like(first.scales), form, first.tensor_scale, (40, 70))
        back = cute.copy(made, into)
        assert back.equal
        assert back.plan == "move the elements, reorder the scales"
        assert np.array_equal(into.data.view(np.uint8), first.data.view(np.uint8))


def test_several_scaled_tensors_at_once() -> None:
    x = numbers((64, 96))
    made = cute.copy(x, (formats.mxfp8(), formats.mxfp8(axis=0, transposed=True)))
    into = tuple(
        ScaledTensor(np.zeros_like(one.data), np.zeros_like(one.scales), one.format, None, one.shape) for one in made
    )
    assert [result.equal for result in cute.copy(x, into)] == [True, True]
    for one, other in zip(made, into, strict=True):
        assert np.array_equal(one.data.view(np.uint8), other.data.view(np.uint8))


def test_scaled_tensors_of_another_type_or_without_their_scale() -> None:
    made, two = cute.copy(numbers((64, 96)), formats.mxfp8()), cute.copy(numbers((64, 96)), formats.nvfp4())
    with pytest.raises(InvalidTypeError, match="type float8_e5m2; must be float8_e4m3fn, or its bits as int8"):
        ScaledTensor(made.data.view(ml_dtypes.float8_e5m2), made.scales, made.format)
    with pytest.raises(InvalidTypeError, match="type float8_e8m0fnu; must be float8_e4m3fn"):
        ScaledTensor(two.data, two.scales.view(ml_dtypes.float8_e8m0fnu), two.format)
    with pytest.raises(InvalidValueError, match="has no scale of the tensor; must be None"):
        ScaledTensor(made.data, made.scales, made.format, 2.0)
    with pytest.raises(InvalidValueError, match="but tensor_scale is None"):
        ScaledTensor(two.data, two.scales, two.format).dequantize()
    for scale in (0.0, float("nan"), float("inf"), -1.0):
        with pytest.raises(InvalidValueError, match="must be a positive number"):
            cute.copy(numbers((64, 96)), ScaledTensor(two.data, two.scales, two.format, scale, (64, 96)))
    with pytest.raises(InvalidValueError, match="element = 'e2m1'; must be one of 'e4m3', 'e5m2'"):
        formats.fp8(element="e2m1")


def test_rows_of_a_broadcast_source_are_taken_without_a_copy_of_the_source() -> None:
    wide = np.broadcast_to(np.arange(64, dtype=np.float32), (1 << 40, 64))
    made = cute.copy(wide, formats.mxfp8(scales="linear"), rows=[3, -1, 1 << 39])
    want = cute.copy(np.ascontiguousarray(wide[:3]) * [[1], [0], [1]], formats.mxfp8(scales="linear"))
    assert np.array_equal(made.dequantize(), want.dequantize())
