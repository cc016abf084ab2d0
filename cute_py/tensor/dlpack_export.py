"""Export the memory of a numpy array to other libraries by DLPack, including types that numpy itself does not export.

    torch.from_dlpack(DlpackArray(array))        float8_e4m3fn, float8_e8m0fnu, bfloat16, ... of ml_dtypes
    DlpackArray(packed, "float4_e2m1fn")         uint8 with two e2m1 a byte: torch.float4_e2m1fn_x2

No copy is made. The consumer keeps the array alive, and may write to it.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cute_py.dtypes import DType, DTypeLike, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.tensor.array_views import CPU, DLPACK_FAMILIES, DLPACK_KINDS, PAIRS_LANES, DlTensor


class _Managed(ctypes.Structure):
    """DLManagedTensor of dlpack.h, with the memory of its shape and strides behind it."""

    _fields_ = [
        ("tensor", DlTensor),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


_Deleter: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Destructor: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_NAME: Final = b"dltensor"


def _delete(address: int) -> None:
    """Drop the reference that the consumer held to the array and to this structure."""
    owner = _Managed.from_address(address).manager
    ctypes.pythonapi.Py_DecRef(ctypes.cast(owner, ctypes.py_object))


def _destroy(capsule: int) -> None:
    """A capsule that nobody consumed deletes its tensor."""
    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.restype, valid.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
    if not valid(capsule, _NAME):
        return
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    _delete(get(capsule, _NAME))


_DELETE: Final = _Deleter(_delete)
_DESTROY: Final = _Destructor(_destroy)


class DlpackArray:
    """A numpy array that exports its memory by DLPack.

    Args:
        array: the elements. dtype: their type, if numpy's type differs; it must have the same size. For bytes of two
            elements each it is e2m1.
    Raises:
        InvalidTypeError: the object is no numpy array, or the type has another size. InvalidValueError: the array is
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

    def __dlpack__(self, *, stream: object = None, **_: object) -> object:
        array, rank = self.array, self.array.ndim
        sizes = (ctypes.c_int64 * (2 * rank + 1))(
            *array.shape, *(step // array.dtype.itemsize for step in array.strides), 0
        )
        managed = _Managed()
        code, bits, lanes = _type_of(self.dtype)
        at = ctypes.addressof(sizes)
        pointer = ctypes.POINTER(ctypes.c_int64)
        managed.tensor = DlTensor(
            array.ctypes.data, CPU, 0, rank, code, bits, lanes,
            ctypes.cast(at, pointer), ctypes.cast(at + 8 * rank, pointer), 0,
        )  # fmt: skip
        owner = ctypes.py_object((array, sizes, managed))
        managed.manager = ctypes.c_void_p.from_buffer(owner).value
        managed.deleter = ctypes.cast(_DELETE, ctypes.c_void_p).value
        ctypes.pythonapi.Py_IncRef(owner)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(managed), _NAME, ctypes.cast(_DESTROY, ctypes.c_void_p))


def _type_of(row: DType) -> tuple[int, int, int]:
    """(code, bits, lanes) of DLPack."""
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
