"""Convert a ScaledTensor to and from torchao's MXTensor and NVFP4Tensor, and make the operands of torch._scaled_mm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, imported
from cute_py.formats.format import Format, mxfp4, mxfp6, mxfp8, nvfp4
from cute_py.formats.scaled_tensor import ScaledTensor
from cute_py.formats.stored_weights import convention_row, stored_scale_shape
from cute_py.torch.arrays import as_torch, torch_dtype, torch_module
from cute_py.torch.operators import operands_of, scaled_of

if TYPE_CHECKING:
    import torch

MODULES: Final = {
    "MXTensor": "torchao.prototype.mx_formats.mx_tensor",
    "NVFP4Tensor": "torchao.prototype.mx_formats.nvfp4_tensor",
}
"""The modules where torchao 0.18 defines its classes."""


def _torchao(name: str) -> Any:
    module = imported(MODULES[name], f"torchao's {name}", "torchao", "pip install torchao")
    return getattr(module, name)


def to_torchao(scaled: ScaledTensor, dtype: str = "bfloat16") -> torch.Tensor:
    """Convert a ScaledTensor to torchao's NVFP4Tensor or MXTensor, which shares its memory.

    Args:
        dtype: the type of the values that the tensor represents (`orig_dtype`).
    Raises:
        InvalidValueError: torchao does not support the format: it has other blocks, or an order other than linear and
            32_4_4.
    """
    torch = torch_module("to_torchao")
    form = scaled.format
    if form.element in ("e2m3", "e3m2"):
        raise InvalidValueError(
            f"{form} can't become a torchao tensor; only e4m3, e5m2 and e2m1 were tested with its MXTensor"
        )
    row = (
        convention_row("torchao", form)
        if form.element != "e5m2"
        else convention_row("torchao", form.with_(element="e4m3"))
    )
    data, scales, total = operands_of(scaled)
    scales = scales.reshape(stored_scale_shape(row, form, scaled.shape))
    swizzled = str(form.order) == "32_4_4"
    made = torch_dtype(dtype)
    if row.algorithm == "NVFP4Tensor":
        per_tensor = total if form.tensor_scale else None
        cls = _torchao("NVFP4Tensor")
        return cls(data, scales, 16, made, per_tensor, None, swizzled, False, None)
    cls = _torchao("MXTensor")
    preference = imported(
        "torchao.quantization.quantize_.common", "torchao's MXTensor", "torchao", "pip install torchao"
    ).KernelPreference.EMULATED
    element = torch.float4_e2m1fn_x2 if form.element == "e2m1" else data.dtype
    return cls(data, scales, element, 32, made, preference, None, swizzled)


def from_torchao(tensor: torch.Tensor) -> ScaledTensor:
    """Convert torchao's MXTensor or NVFP4Tensor in host memory to a ScaledTensor that shares its memory.

    Raises:
        InvalidTypeError: the tensor has another class. InvalidValueError: the tensor is transposed, or has another
            block size.
    """
    kind = type(tensor).__name__
    if kind not in MODULES:
        raise InvalidTypeError(f"the tensor must be torchao's {' or '.join(MODULES)}, got {kind}")
    ao: Any = tensor
    if not ao.qdata.is_contiguous():
        raise InvalidValueError(
            f"the {kind} is transposed, so its data is not contiguous", hint="tensor.t() reverts the transposition"
        )
    order = "32_4_4" if ao.is_swizzled_scales else "linear"
    total = None
    if kind == "NVFP4Tensor":
        form = nvfp4(scales=order, tensor_scale=ao.per_tensor_scale is not None)
        total = ao.per_tensor_scale
        if total is not None and total.numel() != 1:
            raise InvalidValueError(f"per_tensor_scale has {total.numel()} numbers; must have one for the tensor")
    else:
        form = _mx(ao.elem_dtype, order)
    if ao.block_size != form.block[1]:
        raise InvalidValueError(
            f"the tensor has blocks of {ao.block_size} elements; must have {form.block[1]}, like {form}"
        )
    return scaled_of(ao.qdata, ao.scale, total, form, tuple(tensor.shape))


def _mx(element: Any, order: str) -> Format:
    name = str(element).removeprefix("torch.")
    if name.startswith("float4"):
        return mxfp4(scales=order)
    if name.startswith("fp6"):
        return mxfp6(scales=order, element=name.removeprefix("fp6_"))
    return mxfp8(scales=order, element=as_dtype(name).name.split("_")[1].removesuffix("fn"))


def scaled_mm_operands(scaled: ScaledTensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (data, scale) for torch._scaled_mm, as the first operand of `scaled @ other`. Transpose both for the
    second operand.

    The supported formats are fp8 with one float32 scale per tensor, (1, 1), or per row, (M, 1), and MXFP8, MXFP4 and
    NVFP4 with scales in 32_4_4. The type of e2m1 data is float4_e2m1fn_x2. The pair does not include the tensor scale:
    multiply the product by it.

    Raises:
        InvalidValueError: torch._scaled_mm does not support the format.
    """
    form = scaled.format
    data, scales, _ = operands_of(scaled)
    block_scaled = form.scale in ("ue8m0", "ue4m3") and form.block[0] == 1
    if form.transposed or len(scaled.shape) != 2 or form.packing == "dense":
        raise InvalidValueError(
            f"the operand is {form} of shape {scaled.shape}; must be (M, K), not transposed and not dense"
        )
    if block_scaled:
        if str(form.order) != "32_4_4":
            raise InvalidValueError(
                f"the scales have the order {form.order}; must be 32_4_4 for torch._scaled_mm",
                hint="cute.copy(scaled, format)",
            )
        if form.element == "e2m1":
            data = data.view(torch_dtype("float4_e2m1fn"))
        return data, scales.reshape(-1)
    if form.scale == "float32" and form.block in ((1, None), (None, None)):
        rows = scaled.shape[0] if form.block == (1, None) else 1
        return data, scales.reshape(rows, 1)
    if form.scale == "float32" and form.block in ((1, 128), (128, 128)):
        rows, columns = form.blocks(*scaled.shape)
        grid = as_torch(np.ascontiguousarray(scaled.scale_grid()))
        grid = grid.reshape(-(-scaled.shape[0] // rows), -(-scaled.shape[1] // columns))
        return data, grid.t().contiguous().t() if rows == 1 else grid  # cuBLAS reads 1 x 128 scales along M
    raise InvalidValueError(f"torch._scaled_mm does not support {form}")
