"""Convert PyTorch tensors to numpy arrays and back, without a copy, for every element type of the formats.

torch.float8_e4m3fn         ml_dtypes.float8_e4m3fn
torch.float8_e8m0fnu        ml_dtypes.float8_e8m0fnu
torch.float4_e2m1fn_x2      uint8: two elements per byte, as `formats` packs them
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from cute_py.dtypes import DTypeLike, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, given, imported
from cute_py.tensor.arrays import PAIRS

if TYPE_CHECKING:
    import torch

INSTALL: Final = "pip install torch"


def torch_module(feature: str) -> Any:
    """Return the module torch.

    Raises:
        MissingPackageError: PyTorch is not installed.
    """
    return imported("torch", feature, "torch", INSTALL)


def torch_dtype(name: DTypeLike) -> torch.dtype:
    """Return PyTorch's type with this name; e2m1 is `float4_e2m1fn_x2`.

    Raises:
        InvalidTypeError: PyTorch has no such type.
    """
    text = as_dtype(name).name if name != PAIRS else PAIRS
    text = PAIRS if text == "float4_e2m1fn" else text
    found: Any = getattr(torch_module("a type of PyTorch"), text, None)
    if found is None:
        raise InvalidTypeError(f"PyTorch has no type {text}")
    return found


def as_numpy(tensor: torch.Tensor) -> NDArray[Any]:
    """View a tensor in host memory as a numpy array that shares its memory.

    Raises:
        InvalidTypeError: the object is not a tensor, or numpy does not support its element type. InvalidValueError: the
            tensor is on a device.
    """
    torch = torch_module("as_numpy")
    if not isinstance(tensor, torch.Tensor):
        raise InvalidTypeError(f"as_numpy needs a PyTorch tensor, got {given(tensor)}")
    if tensor.device.type != "cpu":
        raise InvalidValueError(f"the tensor is on {tensor.device}; must be in host memory", hint="tensor.cpu()")
    name = str(tensor.dtype).removeprefix("torch.")
    raw = tensor.detach()
    if name == PAIRS:
        return np.asarray(raw.view(torch.uint8).numpy())
    kind = as_dtype(name).numpy
    if kind.kind != "V" and not name.startswith(("bfloat", "float8")):
        return np.asarray(raw.numpy())
    integer = torch.uint8 if tensor.element_size() == 1 else torch.uint16
    return np.asarray(raw.view(integer).numpy()).view(kind)


def as_torch(array: NDArray[Any], dtype: DTypeLike | None = None) -> torch.Tensor:
    """View a numpy array as a tensor that shares its memory.

    Args:
        dtype: the element type, which must have the size of the array's elements; 'float4_e2m1fn' for bytes with two
            elements each.
    """
    torch = torch_module("as_torch")
    if not isinstance(array, np.ndarray):
        raise InvalidTypeError(f"as_torch needs a numpy array, got {given(array)}")
    wanted = torch_dtype(array.dtype if dtype is None else dtype)
    if wanted.itemsize != array.dtype.itemsize:
        raise InvalidTypeError(f"elements of {array.dtype} don't have the size of {wanted}")
    try:
        made = torch.from_numpy(array)
    except TypeError:
        made = torch.from_numpy(array.view(f"u{array.dtype.itemsize}"))
    return made if made.dtype == wanted else made.view(wanted)
