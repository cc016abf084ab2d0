"""Arrays and streams of other libraries, as plain numbers.

An array comes by DLPack, else by `__cuda_array_interface__`; a numpy array by its own attributes, and is on the host.
Nothing is synchronised: the caller orders the work on the stream that it passes. Shapes are in the array's own order
(the last mode innermost for row-major arrays), strides in elements.

An array may be on any device, whichever is current: its own is made current while it gives its memory, and the one
before it again afterwards.

The capsule is read here and not by cuda-core's StridedMemoryView: that names no float of 4, 6 or 8 bits, takes torch's
tensors past `__dlpack__`, which refuses those that need a gradient, and can't describe an array where cuda-core is not
installed. numpy.from_dlpack names none of these types and no bfloat16.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cute_py.argument_checks import expect_integer, is_integer, refuse_mask
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import CuteError, DeviceError, InvalidTypeError, InvalidValueError, given
from cute_py.gpu.bindings import call, driver, first_line
from cute_py.gpu.device import current_context, open_device
from cute_py.tensor.arrays import row_major as compact_strides
from cute_py.tma.descriptor.data_types import TensorMapDataType


@runtime_checkable
class SupportsDlpack(Protocol):
    """An array of a library that exports its memory by DLPack."""

    def __dlpack_device__(self) -> tuple[int, int]: ...

    def __dlpack__(self, *, stream: int | None = None) -> object: ...


class SupportsCudaInterface(Protocol):
    """An array that describes its device memory by a dictionary. Source: CUDA Array Interface, version 3."""

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

_DLPACK_KINDS: Final = dict(
    enumerate(
        (
            *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"),
            *("float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"),
        ),
        start=7,
    )
)
_DLPACK_FAMILIES: Final = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}
_TYPESTR: Final = {"i": "int", "u": "uint", "f": "float", "c": "complex"}

UNSIGNED: Final = {size: TensorMapDataType[f"UINT{8 * size}"] for size in (1, 2, 4, 8)}
"""Bytes of an element -> what a copy, which converts nothing, calls it in a tensor map."""

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
"""DLPack's numbers of device types."""


class _DlTensor(ctypes.Structure):
    """DLTensor of dlpack.h, which is what both kinds of capsule begin with."""

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
    """Where an array lies: address of its first element, shape, strides in elements, element type, device.

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
        """Bytes of one element. Raises InvalidValueError for elements narrower than a byte."""
        if self.dtype.bits % 8:
            raise InvalidValueError(
                f"{self.dtype} has {self.dtype.bits} bits an element; a copy moves whole bytes",
                hint="pass a view of dtype uint8",
            )
        return self.dtype.bits // 8

    @property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def extent(self) -> tuple[int, int]:
        """First address and one past the last address that the array touches, in bytes."""
        reach = [(n - 1) * stride * self.element_bytes for n, stride in zip(self.shape, self.strides, strict=True)]
        low, high = sum(min(step, 0) for step in reach), sum(max(step, 0) for step in reach)
        return self.address + low, self.address + high + self.element_bytes


def _dlpack_dtype(code: int, bits: int, lanes: int) -> DType:
    if lanes != 1:
        raise InvalidTypeError(f"DLPack elements of {lanes} lanes; must be 1")
    if code == 6:
        return as_dtype("bool")
    if code in _DLPACK_KINDS:
        return as_dtype(_DLPACK_KINDS[code])
    if code not in _DLPACK_FAMILIES:
        raise InvalidTypeError(f"DLPack element code {code} with {bits} bits is not known")
    return as_dtype(f"{_DLPACK_FAMILIES[code]}{bits}")


@contextlib.contextmanager
def device_of_array(array: ArrayLike, ordinal: int | None) -> Iterator[None]:
    """The device of an array is current in the block, for the driver and for the array's own library.

    PyTorch keeps a current device of its own beside the driver's (it need not have a context yet), and refuses to
    export an array of another one; CuPy allocates on the driver's. Where the driver does not know the device, nothing
    changes. None: host memory.
    """
    with contextlib.ExitStack() as stack:
        libraries = {kind.__module__.partition(".")[0] for kind in type(array).__mro__}
        torch = sys.modules.get("torch") if "torch" in libraries else None
        if ordinal is not None and torch is not None:
            stack.enter_context(torch.cuda.device(ordinal))
        if ordinal is not None:
            # no cuda-python, no driver, or a device without TMA: a copy will raise
            with contextlib.suppress(CuteError):
                stack.enter_context(open_device(ordinal).current())
        yield


def _from_dlpack(array: SupportsDlpack) -> ArrayView:
    try:
        kind, ordinal = array.__dlpack_device__()
        if int(kind) in (CUDA, CUDA_MANAGED):
            with device_of_array(array, int(ordinal)):
                capsule = array.__dlpack__(stream=-1)
        else:
            capsule = array.__dlpack__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        tensor = _DlTensor.from_address(get(capsule, b"dltensor"))
    except Exception as problem:  # a library may raise anything
        raise InvalidValueError(
            f"{type(array).__name__} does not export its memory by DLPack", {"cause": first_line(problem)}
        ) from None
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else compact_strides(shape)
    device = tensor.device_id if tensor.device_type in (CUDA, CUDA_MANAGED) else None
    address = (tensor.data or 0) + tensor.byte_offset
    dtype = _dlpack_dtype(tensor.code, tensor.bits, tensor.lanes)
    return ArrayView(address, shape, strides, dtype, device, owner=(array, capsule))


def _typestr_dtype(text: str) -> DType:
    order, kind, size = text[0], text[1], int(text[2:])
    if order == ">":
        raise InvalidValueError(f"element type {text!r} is big-endian; GPUs are little-endian")
    if kind == "b":
        return as_dtype("bool")
    if kind not in _TYPESTR:
        raise InvalidTypeError(f"element type {text!r} is not known", hint="pass a view of an unsigned integer dtype")
    return as_dtype(f"{_TYPESTR[kind]}{8 * size}")


def device_at(address: int) -> int:
    """The device whose memory is at an address, by the driver; 0 where it reports none, or there is no driver.

    `__cuda_array_interface__` has no field for the device, so the pointer's context gives it: cuda-bindings 13 returns
    0 for the device ordinal of every pointer (measured on two H200, driver 580.159.04).
    Source: CUDA driver API, cuPointerGetAttribute.
    """
    try:
        open_device()  # The driver must be started, and have a context.
        api = driver()
        code, context = api.cuPointerGetAttribute(api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_CONTEXT, address)
        if int(code) or not int(context):
            return 0
        with current_context(context):
            return int(call("asking for a pointer's device", api.cuCtxGetDevice))
    except (CuteError, RuntimeError):
        return 0


def _from_interface(array: ArrayLike, table: Mapping[str, Any], host_dtype: DType | None) -> ArrayView:
    """The view of an array interface; `host_dtype` is the element type of an array on the host."""
    shape = tuple(int(size) for size in table["shape"])
    dtype = host_dtype or _typestr_dtype(table["typestr"])
    address, readonly = table["data"]
    place = int(address or 0)
    device = None if host_dtype else device_at(place)
    view = ArrayView(place, shape, compact_strides(shape), dtype, device, bool(readonly), array)
    if table.get("strides") is None:
        return view
    for stride in table["strides"]:
        if stride % view.element_bytes:
            raise InvalidValueError(
                f"stride = {stride} bytes; must be a multiple of the element, {view.element_bytes} bytes"
            )
    return replace(view, strides=tuple(int(stride) // view.element_bytes for stride in table["strides"]))


def array_view(array: ArrayLike) -> ArrayView:
    """Where `array` lies: anything with `__dlpack__` or `__cuda_array_interface__`, a numpy array, or an `ArrayView`.

    Raises:
        InvalidTypeError: none of these, or an element type without a row in `cute_py.dtypes`.
        InvalidValueError: the array does not export its memory (it needs a gradient, is not dense), is big-endian, or
            has strides that are not a multiple of an element.

    >>> import numpy
    >>> array_view(numpy.zeros((4, 6), "float32")[::2]).strides
    (12, 1)
    """
    if isinstance(array, ArrayView):
        return array
    refuse_mask(array, "the array")
    if isinstance(array, (np.ndarray, np.generic)):
        return _from_interface(array, array.__array_interface__, as_dtype(array.dtype))
    if isinstance(array, SupportsDlpack):
        return _from_dlpack(array)
    table = getattr(array, "__cuda_array_interface__", None)
    if table is not None:
        try:
            return _from_interface(array, table, None)
        except CuteError:
            raise
        except Exception as problem:  # a table without a key, or with another kind of value
            raise InvalidTypeError(
                f"{type(array).__name__} has a __cuda_array_interface__ that does not describe an array",
                {"cause": first_line(problem)},
            ) from None
    raise InvalidTypeError(
        f"{type(array).__name__} is not an array", {"wanted": "__dlpack__, __cuda_array_interface__, or a numpy array"}
    )


def _handle(value: object) -> int:
    return expect_integer(value, "a CUstream", 0, (1 << 64) - 1)


def stream_handle(stream: StreamLike) -> int:
    """The CUstream of `stream`: None is the legacy default stream; an int; or an object with `__cuda_stream__`, as
    cuda-core's Stream.

    PyTorch's `.cuda_stream` and CuPy's `.ptr` are understood as well.

    Raises:
        InvalidTypeError: none of these.
    """
    if stream is None:
        return 0
    if is_integer(stream):
        return _handle(stream)
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        found = protocol() if callable(protocol) else protocol
        if not isinstance(found, tuple) or len(found) != 2:
            raise InvalidTypeError(f"__cuda_stream__ of {type(stream).__name__} gives no version and handle")
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
    """Whether the address ranges of two arrays overlap."""
    (first, end), (other, other_end) = a.extent(), b.extent()
    return first < other_end and other < end


def require_place(roles: Mapping[str, ArrayView], device: int) -> None:
    """Refuse arrays that are not on a device.

    Raises:
        DeviceError: an array is on the host, on another device, or has no memory.
    """
    for role, view in roles.items():
        if view.device is None:
            raise DeviceError(
                f"the {role} is in host memory; a GPU copy needs device memory", hint="move it to the device"
            )
        if view.device != device:
            raise DeviceError(f"the {role} is on device {view.device}, the copy runs on device {device}")
        if not view.address and view.count:
            raise DeviceError(f"the {role} has no memory (a null address)")


def require_pair(source: ArrayView, destination: ArrayView, device: int) -> None:
    """Refuse a pair of arrays between which no atom can copy.

    Raises:
        DeviceError: an array is on the host, or on another device.
        InvalidValueError: shapes or element types differ, the destination is read-only, or the two overlap.
    """
    roles = {"source": source, "destination": destination}
    require_place(roles, device)
    if source.shape != destination.shape:
        raise InvalidValueError(f"source shape {source.shape} is not destination shape {destination.shape}")
    if source.dtype != destination.dtype:
        raise InvalidValueError(
            f"source dtype {source.dtype} is not destination dtype {destination.dtype}; a TMA copy does not convert"
        )
    if destination.readonly:
        raise InvalidValueError("the destination is read-only")
    if source.count and overlap(source, destination):
        raise InvalidValueError(
            "source and destination overlap; their tiles are copied in no fixed order",
            {role: "{:#x} to {:#x}".format(*view.extent()) for role, view in roles.items()},
        )
