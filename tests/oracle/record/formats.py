"""Blocks of numbers through the libraries that quantise them on a CPU: torchao, and CUDA's own conversion headers.

    python tests/oracle/record/formats.py record OUT.npz [SEED]      a small record, for the tests
    python tests/oracle/record/formats.py compare BLOCKS [SEED]      BLOCKS blocks of each kind against cute_py, counted

Needs torch 2.13 and torchao 0.18 (`pip install torch torchao`). The blocks are hostile: halfway points, powers of two
and their neighbours, the largest numbers, subnormal ones, zeros of both signs, infinities, NaN.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

ELEMENTS = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
RULES = ("floor", "ceil", "even", "rceil")
WIDTH = 32


def blocks(count: int, seed: int, special: bool = True) -> NDArray[np.float32]:
    """(count, 32) float32 blocks; special: also blocks with infinities and NaN."""
    rng = np.random.default_rng(seed)
    scale = np.exp2(rng.integers(-40, 40, (count, 1)))
    x = rng.standard_normal((count, WIDTH)) * scale
    kind = rng.integers(0, 16, count)
    halves = rng.integers(-64, 65, (count, WIDTH)) / 8.0 * scale  # halfway points of every element type
    x[kind == 1] = halves[kind == 1]
    bits = (rng.integers(1, 254, (count, 1)) << 23) + rng.integers(-3, 4, (count, WIDTH))
    near = np.clip(bits, 0, 0x7F7FFFFF).astype(np.uint32).view(np.float32)
    x[kind == 2] = near[kind == 2]
    top = np.float32(448) * scale * (1 + rng.integers(-4, 5, (count, WIDTH)) * 2.0**-23)
    x[kind == 3] = top[kind == 3]
    x[kind == 4] = rng.integers(0, 1 << 23, (count, WIDTH)).astype(np.uint32).view(np.float32)[kind == 4]
    x[kind == 5] = 0.0
    x[kind == 6] = np.where(rng.random((count, WIDTH)) < 0.5, -0.0, x)[kind == 6]
    x[kind == 7] = (x * 2.0**80)[kind == 7]
    x[kind == 8] = (x * 2.0**-90)[kind == 8]
    with np.errstate(over="ignore"):
        y = np.clip(x, -3.4028235e38, 3.4028235e38).astype(np.float32)
    sign = rng.random((count, WIDTH)) < 0.5
    y[kind == 2] = np.where(sign, -y, y)[kind == 2]
    if special:
        y[kind == 9, 3] = np.inf
        y[kind == 10, 5] = -np.inf
        y[kind == 11, 7] = np.nan
    return y


def torchao_mx(x: NDArray[np.float32], element: str, rule: str, bf16: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """(scales, data) of torchao's to_mx, as bytes."""
    import torch
    from torchao.prototype.mx_formats import mx_tensor
    from torchao.prototype.mx_formats.constants import DTYPE_FP6_E2M3, DTYPE_FP6_E3M2

    kinds = {
        "e4m3": torch.float8_e4m3fn,
        "e5m2": torch.float8_e5m2,
        "e2m3": DTYPE_FP6_E2M3,
        "e3m2": DTYPE_FP6_E3M2,
        "e2m1": torch.float4_e2m1fn_x2,
    }
    source = torch.from_numpy(x).to(torch.bfloat16 if bf16 else torch.float32)
    mode = mx_tensor.ScaleCalculationMode[rule.upper()]
    scale, data = mx_tensor.to_mx(source, kinds[element], WIDTH, mode)
    return scale.view(torch.uint8).numpy(), data.view(torch.uint8).numpy()


def torchao_nvfp4(x: NDArray[np.float32], two_levels: bool, bf16: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """(scales, data) of torchao's nvfp4_quantize, as bytes; blocks of 16."""
    import torch
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize, per_tensor_amax_to_scale

    source = torch.from_numpy(x).to(torch.bfloat16 if bf16 else torch.float32)
    total = per_tensor_amax_to_scale(source.float().abs().max()) if two_levels else None
    scale, data = nvfp4_quantize(source, 16, total)
    return scale.view(torch.uint8).numpy(), data.view(torch.uint8).numpy()


def torchao_fp8(x: NDArray[np.float32]) -> tuple[NDArray[Any], NDArray[Any]]:
    """(float32 scales, data) of torchao's 1 x 128 blocks; x is (rows, a multiple of 128)."""
    import torch
    from torchao.prototype.blockwise_fp8_training.kernels import torch_blockwise_scale_act_quant_lhs

    data, scale = torch_blockwise_scale_act_quant_lhs(torch.from_numpy(x))
    return scale.contiguous().numpy(), data.view(torch.uint8).numpy()


def cases(count: int, seed: int) -> Iterator[tuple[str, NDArray[np.float32], bool, Any]]:
    """(name, blocks, whether they are bf16, function of the reference)."""
    for bf16 in (False, True):
        plain = blocks(count, seed + bf16, special=True)
        if bf16:
            plain = _as_bf16(plain)
        for element in ELEMENTS:
            for rule in RULES:
                name = f"{'bf16' if bf16 else 'f32'}_mx_{element}_{rule}"
                yield name, plain, bf16, lambda x, e=element, r=rule, b=bf16: torchao_mx(x, e, r, b)
        finite = blocks(count, seed + 2 + bf16, special=False)
        finite = _as_bf16(finite) if bf16 else finite
        small = np.clip(finite, -1e30, 1e30)
        small = _as_bf16(small) if bf16 else small
        for two in (False, True):
            name = f"{'bf16' if bf16 else 'f32'}_nvfp4_{'two' if two else 'one'}"
            yield name, small, bf16, lambda x, t=two, b=bf16: torchao_nvfp4(x, t, b)
    wide = blocks(count // 4 * 4, seed + 9, special=False).reshape(-1, 128)
    yield "f32_fp8_1x128", wide, False, torchao_fp8


def _as_bf16(x: NDArray[np.float32]) -> NDArray[np.float32]:
    import torch

    found: NDArray[np.float32] = torch.from_numpy(x).to(torch.bfloat16).float().numpy()
    return found


def record(path: str, seed: int) -> None:
    made: dict[str, NDArray[Any]] = {}
    for name, x, _, reference in cases(128, seed):
        scale, data = reference(x)
        group = "_".join(name.split("_")[:2])
        made[f"{group}_x"] = x
        made[f"{name}_s"], made[f"{name}_d"] = scale, data
    np.savez_compressed(path, **made)


def compare(count: int, seed: int) -> None:
    """Count the blocks whose scale, and whose data, differ from cute_py's."""
    import ml_dtypes

    import cute_py as cute

    def ours(name: str, x: NDArray[Any]) -> Any:
        parts = name.split("_")
        if parts[1] == "mx":
            build = {"e2m3": "mxfp6", "e3m2": "mxfp6", "e2m1": "mxfp4"}.get(parts[2], "mxfp8")
            more = {} if build == "mxfp4" else {"element": parts[2]}
            return cute.copy(x, getattr(cute.formats, build)(rule=parts[3], scales="linear", **more))
        if parts[1] == "nvfp4":
            return cute.copy(x, cute.formats.nvfp4(scales="linear", tensor_scale=parts[2] == "two"))
        return cute.copy(x, cute.formats.fp8((1, 128), like="torchao"))

    for name, x, bf16, reference in cases(count, seed):
        scale, data = reference(x)
        made = ours(name, x.astype(ml_dtypes.bfloat16) if bf16 else x)
        finite = np.isfinite(x).all(axis=-1)
        got = made.scales.view(scale.dtype).reshape(scale.shape)
        same = (got == scale) | (np.isnan(got) & np.isnan(scale))
        mine = made.data.view(np.uint8).reshape(len(x), scale.shape[1], -1)
        wrong = (mine != data.reshape(mine.shape)).any(axis=-1)
        data_wrong = wrong & same
        print(
            f"{name}: {same.size} blocks, {int((~same[finite]).sum())} scales differ, {int(data_wrong[finite].sum())} "
            f"blocks of data under the same scale; of {int((~finite).sum())} rows with infinities or NaN "
            f"{int((~same[~finite]).sum())} scales, {int(data_wrong[~finite].sum())} blocks"
        )


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    else:
        compare(int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
