"""Where arrays come from: numpy, `__dlpack__`, `__cuda_array_interface__`; no copy is ever made.

    source                                    engine                         elements can be
    numpy array, __array_interface__          ArrayEngine over its memory    read and written
    __dlpack__ on the host (also pinned)      the same                       read, and written where the producer allows
    __cuda_array_interface__                  gmem pointer, kept alive       neither: device memory
    __dlpack__ on a device, with data_ptr()   the same                       neither

Host memory of a type that DLPack consumers may not know (bfloat16) is taken by its address, where the object tells it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cute_py.arith_tuple.arrays import array_layout, host_engine
from cute_py.arith_tuple.pointers import make_gmem_ptr
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.layout.layout import Layout

HOST_DEVICES = (1, 3, 11)
"""DLPack device types whose memory the host can read: CPU, pinned by CUDA, pinned by ROCm."""


def engine_and_layout(source: Any, dtype: DType | None = None) -> tuple[Any, Layout]:
    """The engine and the layout of an array-like object, without a copy.

    Args:
        source: numpy array, or an object with `__dlpack__`, `__cuda_array_interface__` or `__array_interface__`.
        dtype: element type, where the object does not say it (bfloat16 as '<V2', tfloat32 as float32).
    Raises:
        InvalidTypeError: no array, no element type of a GPU, or device memory without an address.
        InvalidValueError: big-endian elements, or strides that are no multiple of the element.
    """
    import numpy

    if isinstance(source, numpy.ndarray):
        return host_engine(source, dtype)
    interface = _cuda_interface(source)
    if interface is not None:
        return _from_cuda_interface(source, interface, dtype)
    if hasattr(source, "__dlpack_device__") and hasattr(source, "__dlpack__"):
        return _from_dlpack(source, dtype)
    if hasattr(source, "__array_interface__"):
        return host_engine(numpy.asarray(source), dtype)
    raise InvalidTypeError(
        f"no engine and no array: {type(source).__name__} {given(source)}",
        {"engines": "iterators, pointers, numpy arrays, objects with __dlpack__ or __cuda_array_interface__"},
    )


def _cuda_interface(source: Any) -> Any:
    """The object's dictionary, or None: producers refuse types that they can't name there with other errors too."""
    try:
        return source.__cuda_array_interface__
    except (AttributeError, TypeError, RuntimeError, KeyError, ValueError):
        return None


def _from_cuda_interface(source: Any, info: Any, dtype: DType | None) -> tuple[Any, Layout]:
    import numpy

    missing = [key for key in ("shape", "typestr", "data") if key not in info]
    if missing:
        raise InvalidTypeError(f"__cuda_array_interface__ has no {missing[0]!r}", {"keys": ", ".join(sorted(info))})
    if info.get("mask") is not None:
        raise InvalidTypeError("a masked array has no layout", {"object": type(source).__name__})
    stored = numpy.dtype(info["typestr"])
    if dtype is None:  # What a typestr can't name is bytes there, as bfloat16 is '<V2'; the object knows the type.
        dtype = _named(source.dtype) if stored.kind == "V" and hasattr(source, "dtype") else as_dtype(stored)
    kind = dtype
    if stored.itemsize != kind.numpy.itemsize:
        raise InvalidTypeError(f"typestr {info['typestr']!r} does not hold {kind}")
    shape = tuple(int(n) for n in info["shape"])
    strides = info.get("strides")
    steps = _row_major(shape) if strides is None else _in_elements(strides, stored.itemsize, info)
    return _device(source, int(info["data"][0] or 0), kind, shape, steps)


def _in_elements(strides: Any, size: int, info: Any) -> tuple[int, ...]:
    for axis, step in enumerate(strides):
        if int(step) % size:
            raise InvalidValueError(
                f"stride {int(step)} bytes of axis {axis} is not a multiple of the element's {size} bytes",
                {"shape": info["shape"], "strides": strides, "typestr": info["typestr"]},
            )
    return tuple(int(step) // size for step in strides)


def _from_dlpack(source: Any, dtype: DType | None) -> tuple[Any, Layout]:
    import numpy

    try:
        device = int(source.__dlpack_device__()[0])
        if hasattr(source, "data_ptr"):
            source.data_ptr()
    except (BufferError, RuntimeError, TypeError, ValueError) as refusal:
        raise _no_memory(source, refusal) from None
    for asked, fix in (("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")):
        if getattr(source, asked, bool)():
            raise InvalidTypeError(
                f"{type(source).__name__} is a view whose values are not those in its memory ({asked})",
                hint=f"pass its {fix}()",
            )
    if device in HOST_DEVICES:
        try:
            return host_engine(numpy.from_dlpack(source), dtype)
        except (BufferError, RuntimeError, TypeError) as refusal:
            if not hasattr(source, "data_ptr"):
                raise _no_memory(source, refusal) from None
        return _from_host_address(source, dtype)
    if hasattr(source, "data_ptr"):
        kind = _named(source.dtype) if dtype is None else dtype
        shape = tuple(int(n) for n in source.shape)
        return _device(source, int(source.data_ptr()), kind, shape, tuple(int(d) for d in source.stride()))
    raise InvalidTypeError(f"device memory of DLPack type {device} has no address that can be read here")


def _no_memory(source: Any, refusal: Exception) -> InvalidTypeError:
    return InvalidTypeError(f"numpy can't take this array through DLPack: {refusal}", {"object": type(source).__name__})


def _from_host_address(source: Any, dtype: DType | None) -> tuple[Any, Layout]:
    """Host memory of an object with data_ptr(), shape and stride() in elements, as torch has them."""
    import numpy

    kind = _named(source.dtype) if dtype is None else dtype
    shape = tuple(int(n) for n in source.shape)
    steps = tuple(int(d) for d in source.stride())
    size = kind.numpy.itemsize
    array = numpy.asarray(_Memory(source, int(source.data_ptr()), shape, tuple(d * size for d in steps), size))
    return host_engine(array.view(kind.numpy), kind)


class _Memory:
    """Host memory by its address, as numpy takes it; numpy keeps this object, and this keeps the source."""

    __slots__ = ("__array_interface__", "source")

    def __init__(self, source: Any, address: int, shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> None:
        self.source = source
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "strides": strides,
            "typestr": f"|V{size}",
            "data": (address, False),
        }


def _named(dtype: Any) -> DType:
    return as_dtype(str(dtype).rpartition(".")[2])


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    out, n = [], 1
    for s in reversed(shape):
        out.append(n)
        n *= s
    return tuple(reversed(out))


def _device(
    source: Any, address: int, dtype: DType, shape: tuple[int, ...], steps: tuple[int, ...]
) -> tuple[Any, Layout]:
    return replace(make_gmem_ptr(address, dtype), owner=source), array_layout(shape, steps)
