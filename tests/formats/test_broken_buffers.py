"""Buffers with one fault each: `check` names the fault, `identify` names the order; sound buffers are not accused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout, formats
from cute_py.errors import InvalidValueError
from cute_py.formats import Format
from tests.each import each_of
from tests.formats import brute_force

Buffers = tuple[np.ndarray, np.ndarray]


def numbers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-6, 6, (*shape[:-1], 1)))).astype(np.float32)


def named(form: Format, shape: tuple[int, ...], fault: Callable[[np.ndarray, np.ndarray], Buffers]) -> Any:
    made = cute.copy(numbers(shape), form)
    return formats.check(*fault(made.data.copy(), made.scales.copy()), form, shape)


def set_scale(value: float) -> Callable[[np.ndarray, np.ndarray], Buffers]:
    def fault(data: np.ndarray, scales: np.ndarray) -> Buffers:
        scales[1, 1] = value
        return data, scales

    return fault


MX, NV, FP8 = formats.mxfp8(), formats.nvfp4(), formats.fp8((1, 128))
FAULTS: list[tuple[Format, Callable[[np.ndarray, np.ndarray], Buffers], str]] = [
    (MX, lambda d, s: (d.astype(np.float32), s), "data_type"),
    (MX, lambda d, s: (d.view(ml_dtypes.float8_e5m2), s), "data_type"),
    (MX, lambda d, s: (d, s.view(ml_dtypes.float8_e4m3fn)), "scale_type"),
    (MX, lambda d, s: (d, s.astype(np.float32)), "scale_type"),
    (MX, lambda d, s: (d, s.view(np.uint8).astype(np.uint16)), "scale_type"),
    (NV, lambda d, s: (d, s.view(ml_dtypes.float8_e8m0fnu)), "scale_type"),
    (MX, lambda d, s: (d, np.concatenate([s, s])), "scale_size"),
    (MX, lambda d, s: (np.asfortranarray(d), s), "data_strides"),
    (FP8, lambda d, s: (d, np.asfortranarray(s)), "scale_strides"),
    (FP8, set_scale(-1.0), "negative_scale"),
    (FP8, set_scale(float("inf")), "infinite_scale"),
    (FP8, set_scale(float("nan")), "nan_scale"),
    (FP8, set_scale(0.0), "zero_scale"),
]


@pytest.mark.parametrize(("form", "fault", "rule"), FAULTS)
def test_a_fault_is_named(form: Format, fault: Callable[[np.ndarray, np.ndarray], Buffers], rule: str) -> None:
    assert named(form, (200, 480), lambda d, s: (d, s)) == []
    assert [d.rule for d in named(form, (200, 480), fault)] == [rule]


@pytest.mark.parametrize(
    ("count", "why"),
    [
        (200 * 15, "one scale per block, not padded to 128 x 4"),
        (256 * 15, "padded to 128 rows, but not to 4 scales of a row"),
        (200 * 16, "padded to 4 scales of a row, but not to 128 rows"),
        (256 * 32, "the scales of blocks of 1 x 16 elements"),
        (512 * 8, ""),
    ],
)
def test_why_a_number_of_scales_is_wrong(count: int, why: str) -> None:
    made = cute.copy(numbers((200, 480)), MX)
    found = formats.check(made.data, np.zeros(count, np.uint8), MX, (200, 480))
    assert [d.facts.get("why", "") for d in found if d.rule == "scale_size"] == ([why] if why else [])


def test_the_scales_of_another_tensor_or_order() -> None:
    made = cute.copy(numbers((10, 480)), NV)
    for scales, why in (
        (np.zeros(NV.scale_size(480, 10), np.uint8), "the scales of a tensor of 480 x 10 elements"),
        (np.zeros(NV.with_(scales="8x4").scale_size(10, 480), np.uint8), "the size of the order 8x4"),
    ):
        assert formats.check(made.data, scales, NV, (10, 480))[0].facts["why"] == why
    batch = cute.copy(numbers((3, 100, 64)), MX)
    found = formats.check(batch.data, batch.scales[: batch.scales.size // 3], MX, (3, 100, 64))
    assert found[0].facts["why"] == "the scales of one matrix of the batch"


def test_elements_of_four_bits_in_a_byte_each() -> None:
    made = cute.copy(numbers((64, 64)), formats.mxfp4(packing="bytes"))
    found = formats.check(made.data, made.scales, formats.mxfp4(), (64, 64))
    assert [d.rule for d in found] == ["data_size"]
    assert "not packed (pairs), or the shape counts bytes" in str(found[0])


def test_rows_with_a_pitch_are_sound() -> None:
    made = cute.copy(numbers((200, 480)), MX)
    wide = np.zeros((200, 512), np.uint8)
    wide[:, :480] = made.data.view(np.uint8)
    assert formats.check(wide[:, :480], made.scales, MX, (200, 480)) == []
    odd = np.zeros((200, 500), np.uint8)
    odd[:, :480] = made.data.view(np.uint8)
    assert [d.rule for d in formats.check(odd[:, :480], made.scales, MX, (200, 480))] == ["row_pitch"]


SOUND = (
    *(MX, NV, FP8, formats.mxfp8(axis=0), formats.mxfp8(axis=0, transposed=True), formats.mxfp4(rule="floor")),
    *(formats.mxfp6(packing="dense"), formats.fp8((128, 128)), formats.nvfp4(like="te"), formats.nvfp4(axis=0)),
    *(formats.fp8("tensor"), formats.fp8((1, 128), rule="rceil", scales="deepgemm_sm100"), formats.mxfp8(rule="even")),
)


@each_of("form", SOUND, ids=repr)
def test_sound_buffers_are_not_accused(form: Format) -> None:
    rng, x = np.random.default_rng(1), numbers((256, 512))
    one = np.ones((256, 512), np.float32)
    relu = np.maximum(x, 0)
    relu[:, :64] = 0
    for values in (
        x,
        -np.abs(x),
        0.37 * one,
        x * 1e-30,
        x * (rng.random(x.shape) < 0.02),
        relu,
        rng.standard_cauchy(x.shape),
    ):
        made = cute.copy(values.astype(np.float32), form)
        assert formats.check(made.data, made.scales, form, (256, 512)) == [], form


@each_of("warps", [1, 2, 4, 8, 16])
def test_identify_finds_the_number_of_warps(warps: int) -> None:
    grid = np.random.default_rng(warps).integers(0, 250, (700, 13)).astype(np.uint8)
    index = brute_force.triton_hopper(700, 13, warps)
    scales = np.zeros(-(-700 // (32 * warps)) * 32 * warps * 14, np.uint8)
    scales[index] = grid
    found = [str(m.order) for m in formats.identify(scales, grid, (700, 13 * 32)) if m.explains]
    assert found == [f"triton_hopper(num_warps={warps})"]


def test_identify_takes_layouts_and_ragged_orders() -> None:
    rng = np.random.default_rng(5)
    grid = rng.permutation(300 * 8).astype(np.uint32).reshape(300, 8)
    bounds = (0, 100, 300)
    scales = np.zeros(4 * 128 * 8, np.uint32)
    scales[brute_force.ragged(bounds, 8)] = grid
    ragged = formats.scale_order("ragged", cu_seqlens=bounds)
    best = formats.identify(scales, grid, (300, 256), orders=("32_4_4", ragged))[0]
    assert best.order == ragged and best.explains
    mine = Layout((300, (Int(32), 8)), (1, (Int(0), 300)))
    found = formats.identify(np.ascontiguousarray(grid.T), grid, (300, 256), orders=(mine, "linear", "mn_major"))
    assert [(str(m.order), m.transposed) for m in found if m.explains] == [
        (str(mine), False),
        ("mn_major", False),
        ("linear", True),
    ]
    assert found[0].text == f"{mine}: explains all 2400 scales; mn_major has the same indices for this size"


def test_identify_takes_scales_of_square_blocks() -> None:
    made = cute.copy(numbers((512, 1024)), formats.fp8((128, 128)))
    buffer = np.ascontiguousarray(made.scales.T)
    best = formats.identify(buffer, made.scales, (512, 1024))[0]
    assert str(best.order) == "mn_major" and best.explains
    wrong = formats.identify(buffer, made.scales, (512, 1024), orders=("linear",))[1]
    assert wrong.expected == float(made.scales[0, 1]) and wrong.found == float(made.scales[1, 0])
    with pytest.raises(InvalidValueError, match=r"\(4, 8\) for blocks of 128 x 128"):
        formats.identify(buffer, made.scales[:3], (512, 1024))
