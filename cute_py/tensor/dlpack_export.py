"""Export the memory of a numpy array to other libraries by DLPack, including types that numpy itself does not export.

    torch.from_dlpack(DlpackArray(array))        float8_e4m3fn, float8_e8m0fnu, bfloat16, ... of ml_dtypes
    DlpackArray(packed, "float4_e2m1fn")         uint8 with two e2m1 per byte: torch.float4_e2m1fn_x2

No copy is made. The consumer keeps the array alive, and may write to it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cute_py.dtypes import DType, DTypeLike, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.tensor.array_views import CPU, DLPACK_FAMILIES, DLPACK_KINDS, PAIRS_LANES, tensor_of

_CARRIERS: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}
"""Element size in bytes -> a type that numpy exports. numpy makes and frees the capsule; this module overwrites only
the three fields of its element type."""


class DlpackArray:
    """A numpy array that exports its memory by DLPack.

    Args:
        array: the elements. dtype: the type of the elements, if it differs from numpy's; it must have the same size.
            For bytes with two e2m1 elements each, pass float4_e2m1fn.
    Raises:
        InvalidTypeError: the object is not a numpy array, or the type has another size. InvalidValueError: the array is
            read-only.

    >>> DlpackArray(np.zeros((2, 3), np.float32)).__dlpack_device__()
    (1, 0)
    """

    def __init__(self, array: NDArray[Any], dtype: DTypeLike | None = None) -> None:
        if not isinstance(array, np.ndarray):
            raise InvalidTypeError(f"DlpackArray takes a numpy array, got {given(array)}")
        row = as_dtype(array.dtype) if dtype is None else as_dtype(dtype)
        packed = row.bits == 4 and array.dtype.itemsize == 1
        if row.bits != 8 * array.dtype.itemsize and not (packed and dtype is not None):
            raise InvalidTypeError(
                f"elements of {array.dtype} can't be exported as {row.name}, which has {row.bits} bits"
            )
        if not array.flags.writeable:
            raise InvalidValueError("the array is read-only, but a consumer may write to it", hint="array.copy()")
        self.array, self.dtype = array, row

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0

    def __dlpack__(self, *, stream: int | None = None, **_: object) -> object:
        capsule = self.array.view(_CARRIERS[self.array.dtype.itemsize]).__dlpack__()
        tensor = tensor_of(capsule)
        tensor.code, tensor.bits, tensor.lanes = _type_of(self.dtype)
        return capsule


def _type_of(row: DType) -> tuple[int, int, int]:
    """Return DLPack's (code, bits, lanes) for an element type."""
    if row.name == "bool":
        return 6, 8, 1
    for code, name in DLPACK_KINDS.items():
        if name == row.name:
            return code, row.bits, PAIRS_LANES if row.bits == 4 else 1
    family = "bfloat" if row.name == "bfloat16" else row.kind
    for code, name in DLPACK_FAMILIES.items():
        if name == family and row.name == f"{family}{row.bits}":
            return code, row.bits, 1
    raise InvalidTypeError(f"DLPack has no code for {row.name}")
