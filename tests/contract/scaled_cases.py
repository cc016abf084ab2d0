"""Matrices, formats and comparisons for tests of copies that compute: on the emulated multiprocessor and on a GPU."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from cute_py import formats
from cute_py.formats import Format, ScaledTensor

BF16 = ml_dtypes.bfloat16


def numbers(shape: tuple[int, int], dtype: Any, special: bool = True) -> Any:
    """Numbers of many magnitudes, with NaN, infinities and zeros of each sign, and rows of tiny and of huge ones."""
    dice = np.random.default_rng(shape[0] * shape[1])
    x = (dice.standard_normal(shape) * np.exp2(dice.integers(-6, 6, shape))).astype(np.float32)
    if special and shape[0] > 7:
        x[0, 3], x[1, 4], x[2, 5], x[4, 7] = np.nan, np.inf, -np.inf, -np.nan
        x[3], x[5], x[6] = 0, 1e-40, 3e38
        x[7, ::3] = -0.0
    with np.errstate(over="ignore"):
        return x.astype(dtype)


def unset(like: ScaledTensor) -> ScaledTensor:
    data, scales = (np.full_like(a.view(np.uint8), 0xA5).view(a.dtype) for a in (like.data, like.scales))
    return ScaledTensor(data, scales, like.format, like.tensor_scale, like.shape)


def same(a: Any, b: Any) -> bool:
    return all(
        np.array_equal(np.ascontiguousarray(one).view(np.uint8), np.ascontiguousarray(other).view(np.uint8))
        for one, other in zip(
            *([x.data, x.scales] if isinstance(x, ScaledTensor) else [x] for x in (a, b)), strict=True
        )
    )


CASES: tuple[tuple[Format, tuple[int, int], Any], ...] = (
    (formats.mxfp8(), (37, 160), BF16),
    (formats.mxfp8(element="e5m2", rule="even", scales="8x4"), (37, 150), np.float16),
    (formats.mxfp4(rule="floor"), (37, 150), BF16),
    (formats.mxfp6(), (37, 150), BF16),
    (formats.mxfp6(element="e3m2", rule="floor", axis=0, transposed=True), (130, 150), np.float32),
    (formats.nvfp4(like="te", scales="linear"), (20, 90), np.float32),
    (formats.fp8((1, 128), like="deepgemm", scales="deepgemm_sm90"), (37, 260), np.float32),
    (formats.fp8("row"), (37, 260), BF16),
    (formats.fp8((1, 128), like="torchao", scales="deepgemm_sm90"), (1, 300), BF16),
    (formats.mxfp8(axis=0, rule="ceil", transposed=True), (130, 150), BF16),
    (formats.fp8((128, 128)), (130, 140), BF16),
    (formats.fp8((128, 1), like="torchao", transposed=True), (130, 140), np.float16),
)
