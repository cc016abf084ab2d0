"""Cases that users met, rebuilt as buffers: each is named by check or identify.

The numbers in brackets are those of public threads (vllm, pytorch, torchao, FlyDSL, quack).
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import cute_py as cute
from cute_py import formats
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.formats.known_orders import Match


def numbers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-8, 8, (*shape[:-1], 1)))).astype(np.float32)


def best(scales: np.ndarray, reference: np.ndarray, shape: tuple[int, int]) -> Match:
    return formats.identify(scales, reference, shape)[0]


def test_v_scales_in_the_order_of_another_gpu() -> None:
    """V's scales are written 4 x 4 for SM100 and read linearly on SM120 [vllm 50084, 55976]."""
    v = numbers((64, 256))
    written = cute.copy(v, formats.nvfp4(scales="vllm_v_4x4"))
    right = cute.copy(v, formats.nvfp4(scales="linear"))
    match = best(written.scales, right.scales.view(np.uint8), (64, 256))
    assert str(match.order) == "vllm_v_4x4"
    assert match.explains
    linear = next(m for m in formats.identify(written.scales, right.scales, (64, 256)) if str(m.order) == "linear")
    assert not linear.explains
    assert linear.place == (0, 1)
    misread = formats.ScaledTensor(written.data, written.scales, right.format, written.tensor_scale)

    def error(scaled: formats.ScaledTensor) -> float:
        return float(np.linalg.norm(scaled.dequantize() - v) / np.linalg.norm(v))

    assert error(right) < 0.12 < 0.5 < error(misread)
    fixed = cute.copy(written, right.format)
    assert np.array_equal(fixed.dequantize(), right.dequantize())


def test_scales_that_are_not_padded() -> None:
    """A kernel reads tiles of 128 x 4; the buffer has one scale a block [vllm 55456]."""
    made = cute.copy(numbers((200, 480)), formats.nvfp4(scales="linear"))
    found = formats.check(made.data, made.scales, formats.nvfp4(), (200, 480))
    assert [d.rule for d in found if d.severity == "error"] == ["scale_size"]
    assert found[0].value == 200 * 30
    assert found[0].facts["why"] == "one scale per block, not padded to 128 x 4"
    assert found.scope.not_judged


def test_a_stale_column_of_padding() -> None:
    """Scales of the padding keep what was there before [vllm 48898]."""
    made = cute.copy(numbers((128, 96)), formats.mxfp8())
    scales = made.scales.view(np.uint8).copy()
    scales[3::4] = 130  # the fourth scale of each row: K has three
    assert [d.rule for d in formats.check(made.data, scales, made.format, (128, 96))] == ["stale_padding"]


def test_nan_in_the_padding() -> None:
    """0xFF in the padding of an expert's last tile is NaN of e8m0 [quack]."""
    form = formats.mxfp8(scales="ragged(cu_seqlens=(0, 100, 300))")
    made = cute.copy(numbers((300, 128)), form, fill=float("nan"))
    found = formats.check(made.data, made.scales, form, (300, 128))
    assert [d.rule for d in found] == ["nan_padding"]


def test_an_orientation_that_was_guessed() -> None:
    """Data quantised along columns is read along rows [pytorch 195751]."""
    x = numbers((256, 256), seed=4)
    rows, columns = formats.mxfp8(), formats.mxfp8(axis=0)
    made = cute.copy(x, columns)
    assert made.data.shape == cute.copy(x, rows).data.shape
    assert formats.check(made.data, made.scales, columns, (256, 256)) == []
    found = formats.check(made.data, made.scales, rows, (256, 256))
    assert [d.rule for d in found] == ["orientation"]
    assert "quantised along the other axis" in found[0].message
    misread = formats.ScaledTensor(made.data, made.scales, rows)
    wrong = misread.dequantize() != made.dequantize()
    assert wrong.mean() > 0.5


def test_scales_that_are_transposed() -> None:
    """torch expects (M, K / 128) and gets its transpose [pytorch, scaled_mm with blocks of 128]."""
    made = cute.copy(numbers((256, 1024)), formats.fp8((1, 128)))
    found = formats.check(made.data, np.ascontiguousarray(made.scales.T), made.format, (256, 1024))
    assert [d.rule for d in found] == ["orientation"]
    match = best(np.ascontiguousarray(made.scales.T), made.scales, (256, 1024))
    assert str(match) == (
        "mn_major: explains all 2048 scales; deepgemm_sm90 has the same indices for this size, but not for M, K = "
        "(257, 1024)"
    )


def test_linear_scales_where_32_4_4_is_demanded() -> None:
    """The same number of bytes: no size tells them apart [torchao 4929, pytorch 190290]."""
    made = cute.copy(numbers((128, 256)), formats.mxfp8(scales="linear"))
    blocked = cute.copy(made, formats.mxfp8())
    assert made.scales.size == blocked.scales.size
    match = best(blocked.scales, made.scales, (128, 256))
    assert str(match.order) == "32_4_4"
    assert str(best(made.scales, made.scales, (128, 256)).order) == "linear"
    rocm = cute.copy(made, formats.mxfp8(scales="rocm_32_8"))
    assert str(best(rocm.scales, made.scales, (128, 256)).order) == "rocm_32_8"


def test_exponents_rounded_twice() -> None:
    """float32 -> bfloat16 -> e8m0 rounds up twice [torchao 4725]; another rule rounds elsewhere [FlyDSL 590]."""
    x = numbers((128, 512), seed=6)
    right = cute.copy(x, formats.mxfp8(rule="floor", scales="linear"))
    other = cute.copy(x, formats.mxfp8(rule="rceil"))
    match = best(other.scales, right.scales, (128, 512))
    assert str(match.order) == "32_4_4"
    assert not match.explains
    assert "differ by one, so this is the order, but the exponents were" in match.text
    amax = np.float32(448 * (1 + 2.0**-10))
    exact = formats.cast(np.array([amax / np.float32(448)]), "ue8m0", rounding="up")
    twice = formats.cast(formats.cast(np.array([amax / np.float32(448)]), "bf16"), "ue8m0", rounding="up")
    assert formats.codes(exact)[0] == formats.codes(twice)[0] + 1


def test_nan_scales_are_named() -> None:
    x = numbers((64, 64))
    x[3, 40] = np.nan
    made = cute.copy(x, formats.mxfp8())
    found = formats.check(made.data, made.scales, made.format, (64, 64))
    assert [d.rule for d in found] == ["nan_scale"]
    assert "(row, block) (3, 1)" in found[0].message


def test_padding_of_the_data() -> None:
    made = cute.copy(numbers((64, 40)), formats.mxfp8())
    made.data.view(np.uint8)[5, 50] = 1
    assert [d.rule for d in formats.check(made.data, made.scales, made.format, (64, 40))] == ["data_padding"]
    packed = cute.copy(numbers((64, 40)), formats.mxfp4())
    packed.data[5, 25] = 0x21
    assert "data_padding" in [d.rule for d in formats.check(packed.data, packed.scales, packed.format, (64, 40))]


def test_alignment() -> None:
    made = cute.copy(numbers((64, 100)), formats.fp8((1, 128)))
    assert [d.rule for d in formats.check(made.data, made.scales, made.format, (64, 100))] == ["row_pitch"]
    memory = np.zeros(64 * 128 + 1, np.uint8)
    shifted = memory[1:] if memory.ctypes.data % 16 == 0 else memory[:-1]
    whole = cute.copy(numbers((64, 128)), formats.mxfp8())
    data = shifted.reshape(64, 128).view(whole.data.dtype)
    data.view(np.uint8)[...] = whole.data.view(np.uint8)
    found = formats.check(data, whole.scales, whole.format, (64, 128))
    assert [d.rule for d in found] == (["address"] if data.ctypes.data % 16 else [])


def test_other_shapes_of_data() -> None:
    made = cute.copy(numbers((96, 40)), formats.mxfp8())
    for data, why in ((made.data[:, :40], "not padded"), (np.ascontiguousarray(made.data.T), "stored as (K, M)")):
        found = formats.check(data, made.scales, made.format, (96, 40))
        assert found[0].rule == "data_size"
        assert why in found[0].message


@pytest.mark.parametrize("name", [str(o) for o in ("32_4_4", "8x4", "mn_major", "triton_blackwell", "deepgemm_sm100")])
def test_identify_knows_its_orders(name: str) -> None:
    rng = np.random.default_rng(9)
    grid = rng.permutation(192 * 16).astype(np.uint32).reshape(192, 16)
    form = formats.fp8((1, 32), rule="rceil", scales=name)
    scales = np.zeros(int(form.scale_size(192, 512)), np.uint32)
    scales[form.scale_index(192, 512)(np.arange(192)[:, None], 32 * np.arange(16))] = grid
    explaining = [str(m.order) for m in formats.identify(scales, grid, (192, 512)) if m.explains]
    assert name in explaining
    # 32_4_4 is triton_blackwell where Kb is a multiple of 8; mn_major is the transposed of linear, and deepgemm_sm90
    # where M is a multiple of 4; deepgemm_sm100 is that of vllm_v_4x4.
    same = {"32_4_4", "triton_blackwell"}, {"mn_major", "deepgemm_sm90", "linear"}, {"deepgemm_sm100", "vllm_v_4x4"}
    assert set(explaining) <= next((group for group in same if name in group), {name})


def test_identify_refuses() -> None:
    grid = np.zeros((64, 4), np.uint8)
    for scales, reference, shape, error in (
        ([0], grid, (64, 128), InvalidTypeError),
        (grid, grid, (63, 128), InvalidValueError),
        (grid, grid, (64, 999), InvalidValueError),
        (grid, grid.astype(np.float32), (64, 128), InvalidTypeError),
        (grid.astype(np.float32), grid, (64, 128), InvalidTypeError),
        (grid, grid.reshape(-1), (64, 128), InvalidValueError),
    ):
        with pytest.raises(error):
            formats.identify(scales, reference, shape)
    for data, shape in (([1], (64, 128)), (grid, (64,)), (grid, (64, 0))):
        with pytest.raises((InvalidTypeError, InvalidValueError)):
            formats.check(data, grid, formats.mxfp8(), shape)


@pytest.mark.parametrize(
    ("shape", "orders"),
    [((384, 512), ("32_4_4", "triton_blackwell")), ((64, 256), ("mn_major", "deepgemm_sm90"))],
)
def test_two_orders_that_explain_a_buffer_are_compared(shape: tuple[int, int], orders: tuple[str, str]) -> None:
    """Both have these indices; the text names a size for which they do not, and there they differ."""
    rows, blocks = shape[0], shape[1] // 32
    grid = np.random.default_rng(0).permutation(rows * blocks).astype(np.uint32).reshape(rows, blocks)
    plain = formats.fp8((1, 32)) if "deepgemm_sm90" in orders else formats.mxfp8()
    forms = [plain.with_(scales=order) for order in orders]
    scales = np.zeros(int(forms[0].scale_size(*shape)), np.uint32)
    scales[forms[0].scale_index(*shape)(np.arange(rows)[:, None], 32 * np.arange(blocks))] = grid
    first, second = formats.identify(scales, grid, shape, orders=orders)[:2]
    assert first.explains and second.explains
    said = f"explains all {grid.size} scales; {second.order} has the same indices for this size, but not for"
    found = re.search(rf"^{first.order}: {re.escape(said)} M, K = \((\d+), (\d+)\)$", str(first))
    assert found is not None, str(first)
    other = int(found[1]), int(found[2])
    at = np.arange(other[0])[:, None], 32 * np.arange(-(-other[1] // 32))
    sizes = [form.scale_size(*other) for form in forms]
    assert sizes[0] != sizes[1] or (forms[0].scale_index(*other)(*at) != forms[1].scale_index(*other)(*at)).any()


def test_orders_that_explain_a_buffer_because_scales_repeat() -> None:
    grid = np.full((128, 16), 7, np.uint8)
    found = formats.identify(grid.reshape(-1), grid, (128, 512), orders=("linear", "32_4_4"))
    assert str(found[0]).endswith("32_4_4 also explains them, with other indices, because scales repeat")


def test_one_order_that_explains_a_buffer_has_no_comparison() -> None:
    grid = np.random.default_rng(0).permutation(128 * 16).astype(np.uint32).reshape(128, 16)
    found = formats.identify(grid.reshape(-1), grid, (128, 512))
    assert str(found[0]) == "linear: explains all 2048 scales"
