"""Formats beside the programs that define them: torchao, CUDA's conversions, CUTLASS's layouts."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import cute_py as cute
from cute_py import formats
from cute_py.formats import Format
from tests.oracle.record.cuda_casts import COLUMNS
from tests.oracle.records import DATA, rows, tally

RULES = ("floor", "ceil", "even", "rceil")


def _mx(element: str, rule: str) -> Format:
    if element == "e2m1":
        return formats.mxfp4(rule=rule, scales="linear")
    build = formats.mxfp6 if element in ("e2m3", "e3m2") else formats.mxfp8
    return build(rule=rule, scales="linear", element=element)


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).view(np.uint8)


@pytest.mark.parametrize("source", ["f32", "bf16"])
def test_torchao_recorded(source: str) -> None:
    """Scales and data of to_mx and nvfp4_quantize, byte for byte, with hostile rows."""
    with np.load(DATA / "formats_torchao.npz") as recorded:
        held = dict(recorded)
    x = held[f"{source}_64x256_x"].view(np.float32 if source == "f32" else ml_dtypes.bfloat16)
    for element in ("e4m3", "e5m2", "e2m1"):
        for rule in RULES:
            made = cute.copy(x, _mx(element, rule))
            name = f"{source}_64x256_mx_{element}_{rule.upper()}"
            assert np.array_equal(_bytes(made.scales), held[f"{name}_s"]), name
            assert np.array_equal(_bytes(made.data), held[f"{name}_d"]), name
    for two in (False, True):
        made = cute.copy(x, formats.nvfp4(scales="linear", tensor_scale=two))
        name = f"{source}_64x256_nv_{int(two)}"
        assert np.array_equal(_bytes(made.scales), held[f"{name}_s"]), name
        assert np.array_equal(made.data, held[f"{name}_d"]), name
    assert np.float32(made.tensor_scale) == held[f"{source}_64x256_nv_t"].view(np.float32)[0]


@pytest.mark.parametrize("size", ["128x4", "256x16"])
def test_to_blocked_is_the_order_32_4_4(size: str) -> None:
    with np.load(DATA / "formats_torchao.npz") as recorded:
        grid, blocked = recorded[f"blocked_{size}_x"], recorded[f"blocked_{size}_y"].reshape(-1)
    M, blocks = grid.shape
    index = formats.mxfp8().scale_index(M, 32 * blocks)(np.arange(M)[:, None], 32 * np.arange(blocks))
    assert np.array_equal(_bytes(blocked)[index], _bytes(grid))


def test_hostile_blocks() -> None:
    """Infinities, NaN, ties and subnormal numbers; what differs is what docs/differences.md lists."""
    with np.load(DATA / "formats_hostile.npz") as recorded:
        held = dict(recorded)
    counted = 0
    for name in sorted(key[:-2] for key in held if key.endswith("_s")):
        source, kind, *rest = name.split("_")
        x = held[f"{source}_{kind}_x"]
        if source == "bf16":
            x = x.astype(ml_dtypes.bfloat16)
        if kind == "mx":
            form = _mx(*rest)
        elif kind == "nvfp4":
            form = formats.nvfp4(scales="linear", tensor_scale=rest[0] == "two")
        else:
            form = formats.fp8((1, 128), like="torchao")
        made = cute.copy(x, form)
        scale, data = held[f"{name}_s"], held[f"{name}_d"]
        got = made.scales.view(scale.dtype).reshape(scale.shape)
        same = got == scale
        finite = np.isfinite(x.astype(np.float32)).all(axis=-1)
        if "rceil" in rest and source == "f32":
            assert (np.abs(got.astype(int) - scale)[~same] == 1).all(), name  # a float32 logarithm, one power off
            exact = formats.cast(np.abs(x).max(axis=-1) / np.float32(form.number.largest), "ue8m0", rounding="up")
            assert np.array_equal(got[finite, 0], formats.codes(exact)[finite]), name
        else:
            assert same.all(), name
        mine = _bytes(made.data).reshape(len(x), scale.shape[-1], -1)
        wrong = (mine != _bytes(data).reshape(mine.shape)).any(axis=-1) & same
        assert not wrong[finite].any(), name
        assert (np.isnan(made.scale_grid()) | ~wrong).all(), name  # bits of elements under a scale of NaN
        counted += scale.size
    tally("formats_hostile", counted, counted)


def test_variants_by_name() -> None:
    """NVFP4 as TransformerEngine and FlashInfer do it, 1 x 128 blocks as DeepGEMM does."""
    with np.load(DATA / "format_variants.npz") as recorded:
        held = dict(recorded)
    for like in ("te", "flashinfer"):
        made = cute.copy(held["x"], formats.nvfp4(scales="linear", like=like))
        assert np.array_equal(made.scales.astype(np.float32), held[f"{like}_s"].reshape(made.scales.shape)), like
        elements = made.elements().astype(np.float32)
        used = np.repeat(made.scales.astype(np.float32) != 0, 16, axis=1)  # TE's kernel gives 0 under a scale of 0
        assert np.array_equal(elements[used], held[f"{like}_d"][used]), like
        assert (elements[~used] == 0).all(), like
    wide = np.ascontiguousarray(held["x"].reshape(-1, 128))
    made = cute.copy(wide, formats.fp8((1, 128), like="deepgemm"))
    assert np.array_equal(made.scales, held["deepgemm_s"])
    assert np.array_equal(_bytes(made.data), held["deepgemm_d"])


def test_cuda_conversions() -> None:
    with np.load(DATA / "cuda_casts.npz") as recorded:
        x, theirs = recorded["x"], recorded["codes"]
    numbers = ~np.isnan(x)
    for column, (name, rounding, saturate) in enumerate(COLUMNS):
        for source in (x, np.where(numbers, x, np.nan).astype(np.float64)):
            made = formats.codes(formats.cast(source, name, rounding=rounding, saturate=saturate))
            assert np.array_equal(made[numbers], theirs[numbers, column]), name
            magnitude = 0x7F if name in ("e4m3", "e5m2") else 0xFF  # the sign of NaN is kept here
            assert np.array_equal(made[~numbers] & magnitude, theirs[~numbers, column] & magnitude), name


def _form(configuration: str) -> Format:
    if configuration.startswith("scaled"):
        return formats.nvfp4() if configuration.endswith("16") else formats.mxfp8()
    if configuration.startswith("output"):
        return formats.nvfp4(axis=0) if "16" in configuration else formats.mxfp8(axis=0)
    sides = configuration.removeprefix("wise").rstrip("mnk").split("x")
    order = "mn_major" if configuration.endswith("mn") else "linear"
    return formats.fp8((int(sides[0]), int(sides[1])), scales=order)


def test_layouts_are_printed_as_cutlass_prints_them() -> None:
    held = rows("scale_layouts")
    for row in held:
        M, K, L = row["M"], row["K"], row["L"]
        assert str(_form(row["configuration"]).scale_layout(M, K, L or None)) == row["text"], row
    tally("scale_layouts", len(held), len(held))
