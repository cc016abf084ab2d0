"""The memory of other libraries' arrays, and the handles of their streams, as plain numbers.

The address, shape and strides of an array come from DLPack, or if the array does not support it, from
`__cuda_array_interface__`. Those of a numpy array, which is on the host, come from its attributes. Nothing is
synchronised: the caller orders its work on the stream that it passes. Shapes are in the array's own order (the last
mode is innermost in row-major arrays), and strides are in elements.

This module does not call the driver. `gpu.arrays` handles arrays in the memory of a device.

This module reads the DLPack capsule itself, because other readers do not suffice. cuda-core's StridedMemoryView has no
names for floats of 4, 6 or 8 bits, does not call the `__dlpack__` of torch's tensors, which would refuse tensors that
require a gradient, and is missing if cuda-core is not installed. numpy.from_dlpack lacks these types, and bfloat16 too.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, runtime_checkable

from cute_py.argument_checks import expect_integer, is_integer, refuse_mask
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, first_line, given

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np


@runtime_checkable
class SupportsDlpack(Protocol):
    """An array that exports its memory by DLPack."""

    def __dlpack_device__(self) -> tuple[int, int]: ...

    def __dlpack__(self, *, stream: int | None = None) -> object: ...


class SupportsCudaInterface(Protocol):
    """An array with `__cuda_array_interface__`, a dictionary that describes its device memory. Source: CUDA Array
    Interface, version 3."""

    @property
    def __cuda_array_interface__(self) -> dict[str, object]: ...


class SupportsStream(Protocol):
    """A stream of cuda-core, or of another library that follows its protocol: (version 0, CUstream)."""

    def __cuda_stream__(self) -> tuple[int, int]: ...


class TorchStream(Protocol):
    """A stream of PyTorch."""

    @property
    def cuda_stream(self) -> int: ...


class CupyStream(Protocol):
    """A stream of CuPy."""

    @property
    def ptr(self) -> int: ...


ArrayLike: TypeAlias = "ArrayView | NDArray[np.generic] | SupportsDlpack | SupportsCudaInterface"
"""An array of any library, on the host or on a device."""

StreamLike: TypeAlias = int | SupportsStream | TorchStream | CupyStream | None
"""A CUstream as a number, or the stream of a library; None: the legacy default stream."""

DLPACK_KINDS: Final = dict(
    enumerate(
        (
            *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"),
            *("float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"),
        ),
        start=7,
    )
)
DLPACK_FAMILIES: Final = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}
PAIRS_LANES: Final = 2
"""Lanes of an element that is a byte with two e2m1: PyTorch's float4_e2m1fn_x2."""
_TYPESTR: Final = {"i": "int", "u": "uint", "f": "float", "c": "complex"}

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
"""DLPack's numbers of device types."""
ON_DEVICE: Final = (CUDA, CUDA_MANAGED)


class DlTensor(ctypes.Structure):
    """The struct DLTensor of dlpack.h, which comes first in both kinds of DLPack capsule."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


@dataclass(frozen=True, slots=True)
class ArrayView:
    """Where an array is in memory: the address of its first element, shape, strides in elements, element type, device.

    `device` is None for host memory. `owner` keeps the memory alive.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    device: int | None
    readonly: bool = False
    owner: object = field(default=None, repr=False, compare=False)

    @property
    def element_bytes(self) -> int:
        """Size of one element in bytes. Raises InvalidValueError for elements whose size is not a number of bytes."""
        if self.dtype.bits % 8:
            raise InvalidValueError(
                f"{self.dtype} has {self.dtype.bits} bits per element, but a copy moves whole bytes",
                hint="pass a view of dtype uint8",
            )
        return self.dtype.bits // 8

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def extent(self) -> tuple[int, int]:
        """Return the first address that the array uses, and one past the last, in bytes."""
        reach = [(n - 1) * stride * self.element_bytes for n, stride in zip(self.shape, self.strides, strict=True)]
        low, high = sum(min(step, 0) for step in reach), sum(max(step, 0) for step in reach)
        return self.address + low, self.address + high + self.element_bytes


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a compact array whose last mode is innermost.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _dlpack_dtype(code: int, bits: int, lanes: int) -> DType:
    if (lanes, bits, DLPACK_KINDS.get(code)) == (PAIRS_LANES, 4, "float4_e2m1fn"):
        return as_dtype("uint8")  # a byte with two elements, as `formats` packs them
    if lanes != 1:
        raise InvalidTypeError(f"each DLPack element has {lanes} lanes; must have 1")
    if code == 6:
        return as_dtype("bool")
    if code in DLPACK_KINDS:
        return as_dtype(DLPACK_KINDS[code])
    if code not in DLPACK_FAMILIES:
        raise InvalidTypeError(f"DLPack element code {code} with {bits} bits is unknown")
    return as_dtype(f"{DLPACK_FAMILIES[code]}{bits}")


def _typestr_dtype(text: str) -> DType:
    order, kind, size = text[0], text[1], int(text[2:])
    if order == ">":
        raise InvalidValueError(f"element type {text!r} is big-endian; must be little-endian, as on a GPU")
    if kind == "b":
        return as_dtype("bool")
    if kind not in _TYPESTR:
        raise InvalidTypeError(f"element type {text!r} is not known", hint="pass a view of an unsigned integer dtype")
    return as_dtype(f"{_TYPESTR[kind]}{8 * size}")


def tensor_of(capsule: object) -> DlTensor:
    """Return the DLTensor in a DLPack capsule that no consumer has taken. The capsule owns it."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return DlTensor.from_address(get(capsule, b"dltensor"))


def exported_view(array: SupportsDlpack, **options: int) -> ArrayView:
    """Return the view of an array that exports its memory by DLPack. `options` are passed to `__dlpack__`.

    Raises:
        InvalidValueError: the array does not export its memory.
    """
    try:
        capsule = array.__dlpack__(**options)
        tensor = tensor_of(capsule)
    except Exception as problem:  # a library may raise anything
        raise no_export(array, problem) from None
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else row_major(shape)
    device = tensor.device_id if tensor.device_type in ON_DEVICE else None
    address = (tensor.data or 0) + tensor.byte_offset
    dtype = _dlpack_dtype(tensor.code, tensor.bits, tensor.lanes)
    return ArrayView(address, shape, strides, dtype, device, is_of_jax(array), (array, capsule))


def is_of_jax(array: SupportsDlpack) -> bool:
    """Whether an array belongs to JAX. JAX's capsules have no read-only flag, and JAX refuses -1 as the stream of an
    array on a device. Without a stream, JAX waits until the array is computed."""
    return type(array).__module__.partition(".")[0] in ("jax", "jaxlib")


def no_export(array: object, problem: Exception) -> InvalidValueError:
    """Make the error for an array that does not export its memory."""
    return InvalidValueError(
        f"{type(array).__name__} does not export its memory through DLPack", {"cause": first_line(problem)}
    )


def interface_view(
    array: ArrayLike, table: Mapping[str, Any], host_dtype: DType | None, device: Callable[[int], int | None]
) -> ArrayView:
    """Return the view of an array, given the dictionary that describes it.

    Args:
        table: the dictionary `__array_interface__` or `__cuda_array_interface__`. host_dtype: the element type, if the
            `typestr` of the table can't name it. device: function that returns the device of an address (None: host).
    """
    shape = tuple(int(size) for size in table["shape"])
    dtype = host_dtype or _typestr_dtype(table["typestr"])
    address, readonly = table["data"]
    place = int(address or 0)
    view = ArrayView(place, shape, row_major(shape), dtype, device(place), bool(readonly), array)
    if table.get("strides") is None:
        return view
    for stride in table["strides"]:
        if stride % view.element_bytes:
            raise InvalidValueError.of_value(
                "stride", stride, f"be a multiple of the element size, {view.element_bytes} bytes", "bytes"
            )
    return replace(view, strides=tuple(int(stride) // view.element_bytes for stride in table["strides"]))


def host_view(array: ArrayLike) -> ArrayView | None:
    """Return the view of an array in host memory; None for an array on a device, which `gpu.arrays.array_view` reads.

    Args:
        array: an object with `__dlpack__` or `__cuda_array_interface__`, a numpy array, or an `ArrayView`.
    Raises:
        InvalidTypeError: the object is none of these, or `cute_py.dtypes` does not have the element type.
        InvalidValueError: the array does not export its memory (for example because it requires a gradient or is not
            dense), is big-endian, or has a stride that is not a multiple of the element size.

    >>> import numpy
    >>> host_view(numpy.zeros((4, 6), "float32")[::2]).strides
    (12, 1)
    """
    if isinstance(array, ArrayView):
        return array
    refuse_mask(array, "the array")
    if isinstance(array, (np.ndarray, np.generic)):
        return interface_view(array, array.__array_interface__, as_dtype(array.dtype), lambda address: None)
    if isinstance(array, SupportsDlpack):
        try:
            on_device = int(array.__dlpack_device__()[0]) in ON_DEVICE
        except Exception as problem:  # a library may raise anything
            raise no_export(array, problem) from None
        return None if on_device else exported_view(array)
    if getattr(array, "__cuda_array_interface__", None) is not None:
        return None
    raise InvalidTypeError(
        f"{type(array).__name__} is not an array", {"wanted": "__dlpack__, __cuda_array_interface__, or a numpy array"}
    )


def _handle(value: object) -> int:
    return expect_integer(value, "a CUstream", 0, (1 << 64) - 1)


def stream_handle(stream: StreamLike) -> int:
    """Return the CUstream handle of `stream`: None (the legacy default stream), an int, or an object with
    `__cuda_stream__`, such as cuda-core's Stream.

    Streams of PyTorch (with `.cuda_stream`) and of CuPy (with `.ptr`) are accepted too.

    Raises:
        InvalidTypeError: the object is none of these.
    """
    if stream is None:
        return 0
    if is_integer(stream):
        return _handle(stream)
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        found = protocol() if callable(protocol) else protocol
        if not isinstance(found, tuple) or len(found) != 2:
            raise InvalidTypeError(f"__cuda_stream__ of {type(stream).__name__} must return a version and a handle")
        if found[0] != 0:
            raise InvalidTypeError(f"__cuda_stream__ version {given(found[0])}; must be 0")
        return _handle(found[1])
    for name in ("cuda_stream", "ptr"):
        value = getattr(stream, name, None)
        if is_integer(value):
            return _handle(value)
    raise InvalidTypeError(
        f"{type(stream).__name__} is not a CUDA stream", {"wanted": "__cuda_stream__, an int or None"}
    )


def overlap(a: ArrayView, b: ArrayView) -> bool:
    """Whether the address ranges of two arrays overlap. An array without elements overlaps none."""
    (first, end), (other, other_end) = a.extent(), b.extent()
    return a.count > 0 and b.count > 0 and first < other_end and other < end
