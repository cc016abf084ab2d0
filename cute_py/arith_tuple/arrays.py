"""Array engines: the memory of a numpy array, or of an object with `__dlpack__` or `__cuda_array_interface__`.

The layout of an array is its shape and its strides in elements; nothing is copied. Host memory can be read and
written through the tensor; device memory is a pointer with the right address, type and layout.
"""

from __future__ import annotations

from typing import Any

from cute_py.arith_tuple.pointers import make_gmem_ptr
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, TensorAccessError
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int


class ArrayEngine:
    """Elements of a numpy array, addressed by element offsets from its first element.

    `flat` is a one-dimensional view that reaches from the lowest to the highest element; `origin` is the index of
    the element at offset 0 (above 0 where a stride is negative).
    """

    __slots__ = ("array", "flat", "origin")

    def __init__(self, array: Any, flat: Any, origin: int) -> None:
        self.array = array
        self.flat = flat
        self.origin = origin

    @property
    def element_type(self) -> DType:
        return as_dtype(self.flat.dtype)

    @property
    def address(self) -> int:
        """Address of the element at offset 0, in bytes."""
        return int(self.flat.__array_interface__["data"][0]) + self.origin * int(self.flat.dtype.itemsize)

    def _index(self, offset: Any) -> int:
        i = self.origin + int(offset)
        if not 0 <= i < len(self.flat):
            raise TensorAccessError(
                f"element offset {int(offset)} lies outside the array",
                {"offsets": f"{-self.origin} .. {len(self.flat) - self.origin - 1}"},
            )
        return i

    def __getitem__(self, offset: Any) -> Any:
        return self.flat[self._index(offset)]

    def store(self, offset: Any, value: Any) -> None:
        if not self.flat.flags.writeable:
            raise TensorAccessError("the array is read-only", {"dtype": self.flat.dtype})
        self.flat[self._index(offset)] = value

    def __add__(self, offset: Any) -> ArrayEngine:
        return ArrayEngine(self.array, self.flat, self.origin + int(offset))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrayEngine) and self.flat is other.flat and self.origin == other.origin

    def __hash__(self) -> int:
        return hash((id(self.flat), self.origin))

    def __str__(self) -> str:
        return f"ptr[{self.element_type.bits}b]({self.address:#x})"

    def __repr__(self) -> str:
        return f"ArrayEngine({self.array.dtype}, {self.array.shape})"


def _flat_view(array: Any) -> tuple[Any, int]:
    """(one-dimensional view over all memory that the array touches, index of its first element)."""
    import numpy

    size = array.dtype.itemsize
    for axis, step in enumerate(array.strides):
        if step % size:
            raise InvalidValueError(
                f"stride {step} bytes of axis {axis} is not a multiple of the element's {size} bytes"
            )
    steps = [s // size for s in array.strides]
    low = sum(min(0, (n - 1) * s) for n, s in zip(array.shape, steps, strict=True))
    high = sum(max(0, (n - 1) * s) for n, s in zip(array.shape, steps, strict=True))
    if array.size == 0:
        return array.reshape(-1), 0
    start = array[tuple(0 if s >= 0 else n - 1 for n, s in zip(array.shape, steps, strict=True))]
    base = numpy.lib.stride_tricks.as_strided(
        array[tuple(slice(None, None, -1) if s < 0 else slice(None) for s in steps)],
        shape=(high - low + 1,),
        strides=(size,),
        writeable=array.flags.writeable,
    )
    del start
    return base, -low


def engine_and_layout(source: Any) -> tuple[Any, Layout]:
    """The engine and the layout of an array-like object, without a copy.

    Raises:
        InvalidTypeError: no array; InvalidValueError: object or big-endian elements, strides of part elements.
    """
    import numpy

    if hasattr(source, "__cuda_array_interface__"):
        info = source.__cuda_array_interface__
        dtype = as_dtype(numpy.dtype(info["typestr"]))
        steps = info.get("strides")
        return _device(int(info["data"][0]), dtype, tuple(info["shape"]), _in_elements(steps, dtype))
    if isinstance(source, numpy.ndarray):
        return _host(source)
    if hasattr(source, "__dlpack_device__") and hasattr(source, "__dlpack__"):
        kind = int(source.__dlpack_device__()[0])
        if kind in (1, 3):  # host memory, pinned host memory
            return _host(numpy.from_dlpack(source))
        if hasattr(source, "data_ptr"):
            return _device(int(source.data_ptr()), _named(source.dtype), tuple(source.shape), tuple(source.stride()))
        raise InvalidTypeError(f"device memory of DLPack type {kind} has no address that can be read here")
    if hasattr(source, "__array_interface__") or hasattr(source, "__array__"):
        return _host(numpy.asarray(source))
    raise InvalidTypeError(f"no engine and no array: {type(source).__name__} {source!r}")


def _named(dtype: Any) -> DType:
    return as_dtype(str(dtype).rpartition(".")[2])


def _in_elements(steps: Any, dtype: DType) -> tuple[int, ...] | None:
    return None if steps is None else tuple(int(s) * 8 // dtype.bits for s in steps)


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    out, n = [], 1
    for s in reversed(shape):
        out.append(n)
        n *= s
    return tuple(reversed(out))


def _layout(shape: tuple[int, ...], steps: tuple[int, ...]) -> Layout:
    """Run-time sizes; a unit stride is static, as it is where C++ says LayoutLeft or LayoutRight."""
    strides = tuple([Int(1) if d == 1 else int(d) for d in steps])
    return Layout(tuple([int(n) for n in shape]), strides)


def _host(array: Any) -> tuple[Any, Layout]:
    as_dtype(array.dtype)
    flat, origin = _flat_view(array)
    size = array.dtype.itemsize
    return ArrayEngine(array, flat, origin), _layout(array.shape, tuple(s // size for s in array.strides))


def _device(address: int, dtype: DType, shape: tuple[int, ...], steps: Any) -> tuple[Any, Layout]:
    return make_gmem_ptr(address, dtype), _layout(shape, steps if steps is not None else _row_major(shape))
