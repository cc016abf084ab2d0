"""Engines and layouts of arrays from numpy, `__dlpack__` and `__cuda_array_interface__`, without a copy.

    source                                    engine                         its elements can be
    numpy array, __array_interface__          ArrayEngine over its memory    read and written
    __dlpack__ on the host (also pinned)      the same                       read, and written where the producer allows
    __cuda_array_interface__                  gmem pointer, kept alive       neither: device memory
    __dlpack__ on a device, with data_ptr()   the same                       neither

For types that numpy does not read through DLPack (bfloat16, 8-bit floats), host memory is addressed through the
object's `data_ptr()`, or through its DLPack capsule, which makes it read-only. PyTorch's float4_e2m1fn_x2 is read as
bytes.

An array engine addresses the memory of a numpy array by element offsets, and never copies it.

    array[i, j]  =  engine[layout(i, j)]        the layout has the array's shape, and its strides in elements

Strides may be negative or zero. Offset 0 is the array's element [0, 0, ...], which need not be the lowest in memory.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Final, SupportsIndex, TypedDict

from cute_py.argument_checks import expect, expect_integer, is_integer, refuse_mask
from cute_py.arith_tuple.cells import Cell
from cute_py.dtypes import DType, DTypeLike, as_dtype
from cute_py.errors import (
    CuteError,
    InvalidTypeError,
    InvalidValueError,
    TensorAccessError,
    counted,
    given,
    integer_text,
)
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int
from cute_py.tensor.array_views import SupportsDlpack, exported_view, row_major
from cute_py.tensor.pointers import Pointer, make_gmem_ptr, pointer_text

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy

PAIRS: Final = "float4_e2m1fn_x2"
"""PyTorch's name of a byte that holds two e2m1."""


class Interface(TypedDict, total=False):
    """The keys of a `__cuda_array_interface__` dictionary."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    typestr: str
    data: tuple[int | None, bool]
    mask: Collection[bool] | None


class ArrayEngine:
    """The elements of an array: `engine[offset]` reads one, and `engine.store(offset, value)` writes one.

    `flat` is a one-dimensional view of the memory from the lowest to the highest element. `origin` is the index in it
    of the element at offset 0 (above 0 if a stride is negative). `dtype` is the element type, if it differs from the
    array's own type (tfloat32 is stored as float32). The view keeps the memory alive.

    >>> engine = ArrayEngine(numpy.arange(10), 4)
    >>> engine[0], engine[-2]
    (np.int64(4), np.int64(2))
    """

    __slots__ = ("dtype", "flat", "origin")

    is_memory: ClassVar[bool] = True

    flat: NDArray[Any]
    origin: int
    dtype: DType

    def __init__(self, flat: NDArray[numpy.generic], origin: int, dtype: DTypeLike | None = None) -> None:
        refuse_mask(flat, "the memory of an array engine")
        if not hasattr(flat, "ctypes") or getattr(flat, "ndim", 0) != 1:
            raise InvalidTypeError(f"an array engine takes a one-dimensional array, got {given(flat)}")
        self.flat = flat
        self.origin = expect_integer(origin, "the index of offset 0")
        self.dtype = as_dtype(flat.dtype) if dtype is None else as_dtype(dtype)

    @property
    def element_type(self) -> DType:
        return self.dtype

    @property
    def address(self) -> int:
        """The address of the element at offset 0, in bytes."""
        return int(self.flat.ctypes.data) + self.origin * int(self.flat.dtype.itemsize)

    def _index(self, offset: SupportsIndex) -> int:
        if not is_integer(offset):
            raise InvalidTypeError(f"an array needs integer offsets, got {_shown(offset)}", {"engine": self})
        i = self.origin + operator.index(offset)
        if not 0 <= i < len(self.flat):
            raise TensorAccessError(
                f"the element offset {integer_text(operator.index(offset))} is outside the array",
                {"offsets": f"{-self.origin} .. {len(self.flat) - self.origin - 1}", "engine": self},
            )
        return i

    def __getitem__(self, offset: SupportsIndex) -> Any:
        value = self.flat[self._index(offset)]
        if self.dtype.name == "uint128":  # numpy has no such integer: its 16 bytes are stored as a complex number
            return int.from_bytes(value.tobytes(), "little")
        if self.dtype.name == "tfloat32":  # 19 bits of the 32 count; the others read as 0, as in C++
            return (value.view("uint32") & 0xFFFFE000).view("float32")
        return value

    def store(self, offset: SupportsIndex, value: Cell) -> None:
        """Write the element at an offset into the engine's array.

        Raises:
            TensorAccessError: the array is read-only, the offset is outside the array, or the value is not of its type.
                A number beyond the type's range is refused, and not wrapped or converted to infinity.
        """
        refuse_mask(value, "the element")
        if value is None or isinstance(value, (str, bytes)):  # numpy reads numbers from texts, and NaN from None
            raise TensorAccessError(
                f"{given(value)} is not a valid {self.dtype}; it must be a number", {"engine": self}
            )
        if not self.flat.flags.writeable:
            raise TensorAccessError("the array is read-only", {"engine": self, "value": value})
        index = self._index(offset)
        reason = _beyond_range(self.dtype, value)
        if reason is not None:
            raise TensorAccessError(f"{given(value)} is not a valid {self.dtype}: {reason}", {"engine": self})
        try:
            if self.dtype.name == "uint128":
                self.flat.view("V16")[index] = operator.index(value).to_bytes(16, "little")  # type: ignore[arg-type]
            else:
                self.flat[index] = value
        except (ValueError, TypeError, OverflowError) as refusal:
            raise TensorAccessError(
                f"{given(value)} is not a valid {self.dtype}: {refusal}", {"engine": self}
            ) from None

    def __add__(self, offset: SupportsIndex) -> ArrayEngine:
        if not is_integer(offset):
            raise InvalidTypeError(
                f"an array engine can be moved only by an integer, got {_shown(offset)}", {"engine": self}
            )
        return ArrayEngine(self.flat, self.origin + operator.index(offset), self.dtype)

    def recast(self, dtype: DTypeLike) -> ArrayEngine:
        """Return the same bytes as elements of another type, through a numpy view.

        Raises:
            InvalidTypeError: a type is narrower than a byte (numpy stores one element per byte, GPU memory several).
            InvalidValueError: the memory from offset 0 onwards is smaller than one new element.
        """
        new = as_dtype(dtype)
        for kind in (self.dtype, new):
            if kind.bits % 8:
                raise InvalidTypeError(
                    f"numpy can't recast an array from {self.dtype} to {new}: {kind} has {kind.bits} bits",
                    {"rule": "numpy stores each such element in a byte of its own, so its bytes differ from the GPU's"},
                )
        size = new.bits // 8
        start = self.origin * (self.dtype.bits // 8)
        octets = self.flat.view("uint8")
        phase = start % size
        count = (len(octets) - phase) // size
        if count < 1:
            raise InvalidValueError(
                f"the array of {len(octets)} bytes has no room for an element of {new.bits} bits at byte {phase}",
                {"engine": self, "element type": new},
            )
        return ArrayEngine(octets[phase : phase + count * size].view(new.numpy), (start - phase) // size, new)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrayEngine):
            return False
        return (self.address, len(self.flat), self.dtype) == (other.address, len(other.flat), other.dtype)

    def __hash__(self) -> int:
        return hash((self.address, len(self.flat), self.dtype))

    def __str__(self) -> str:
        return pointer_text(self.address, self.dtype)

    def __repr__(self) -> str:
        return f"ArrayEngine({self.dtype.name!r}, {len(self.flat)} elements, origin {self.origin})"


def _shown(offset: SupportsIndex) -> str:
    """Return CuTe's text of a coordinate, and Python's text of any other offset."""
    return str(offset) if hasattr(offset, "as_tuple") else given(offset)


def _beyond_range(dtype: DType, value: Cell) -> str | None:
    """Return why a number does not fit the type, or None. Some versions of numpy would wrap the number.

    >>> _beyond_range(as_dtype("uint8"), 300), _beyond_range(as_dtype("float16"), 65519.0)
    ('must be 0 to 255', None)
    """
    number: Any = value
    if is_integer(value):
        number = operator.index(value)  # type: ignore[arg-type]
    elif isinstance(value, (complex, str, bytes)) or not hasattr(value, "__float__") or bool(getattr(value, "ndim", 0)):
        return None  # numpy decides whether it accepts that
    elif not isinstance(value, float):
        try:
            number = float(value)
        except Exception:  # a symbol, a complex scalar that warns
            return None
    finite = isinstance(number, int) or math.isfinite(number)
    if dtype.kind in ("int", "uint"):
        signed = dtype.kind == "int"
        low, high = -(1 << (dtype.bits - 1)) if signed else 0, (1 << (dtype.bits - signed)) - 1
        return None if finite and low <= int(number) <= high else f"must be {low} to {high}"
    if dtype.kind != "float" or not finite:
        return None
    least, limit = _float_range(dtype)
    return None if least < number < limit else f"must be above {least:g} and below {limit:g}"


@functools.cache
def _float_range(dtype: DType) -> tuple[float, float]:
    """Return two bounds; a number between them rounds to a finite value of a float type."""
    finfo: Any = numpy.finfo
    if not hasattr(numpy, dtype.storage):
        import ml_dtypes

        finfo = ml_dtypes.finfo
    info = finfo(dtype.numpy)
    largest, least = float(info.max), float(info.min)
    half_step = math.ldexp(1.0, math.frexp(largest)[1] - 2 - int(info.nmant))
    limit = largest + half_step if largest < 1e300 else math.inf
    return (0.0 if least >= 0 else -limit), limit


def flat_view(array: NDArray[numpy.generic]) -> tuple[NDArray[numpy.generic], int]:
    """Return a one-dimensional view of the memory from the array's lowest to its highest element, and the index of its
    first element in the view."""
    size = array.dtype.itemsize
    if array.size == 0:
        return numpy.empty(0, array.dtype), 0
    steps = _in_elements(array.strides, size, {"shape": array.shape, "strides": array.strides, "dtype": array.dtype})
    low = sum(min(0, (n - 1) * s) for n, s in zip(array.shape, steps, strict=True))
    high = sum(max(0, (n - 1) * s) for n, s in zip(array.shape, steps, strict=True))
    from_low = array[(*[slice(None, None, -1) if s < 0 else slice(None) for s in steps], ...)]
    flat = numpy.lib.stride_tricks.as_strided(  # as plain bytes: it can't name the types of ml_dtypes
        from_low.view(f"V{size}"), shape=(high - low + 1,), strides=(size,), writeable=array.flags.writeable
    )
    return flat.view(array.dtype), -low


def array_layout(shape: tuple[int, ...], steps: tuple[int, ...]) -> Layout:
    """Return an array's layout, with run-time sizes. A unit stride is static, as in C++'s LayoutRight."""
    return Layout(tuple([int(n) for n in shape]), tuple([Int(1) if d == 1 else int(d) for d in steps]))


def host_engine(array: NDArray[numpy.generic], dtype: DType | None = None) -> tuple[ArrayEngine, Layout]:
    """Return the engine and the layout of a numpy array; `dtype` is the element type, if the array's differs."""
    kind = as_dtype(array.dtype) if dtype is None else dtype
    if array.dtype.itemsize != kind.numpy.itemsize:
        raise InvalidTypeError(
            f"an array of {array.dtype} ({counted(array.dtype.itemsize, 'byte')}) can't hold {kind}",
            {"stored as": f"{kind.numpy} ({counted(kind.numpy.itemsize, 'byte')})"},
        )
    if array.dtype != kind.numpy:
        array = array.view(kind.numpy)
    flat, origin = flat_view(array)
    return ArrayEngine(flat, origin, kind), array_layout(
        array.shape, tuple(s // array.dtype.itemsize for s in array.strides)
    )


HOST_DEVICES = (1, 3, 11)
"""DLPack device types whose memory the host can read: CPU, pinned by CUDA, pinned by ROCm."""


def engine_and_layout(source: Any, dtype: DType | None = None) -> tuple[Any, Layout]:
    """Return the engine and the layout of an array-like object, without a copy.

    Args:
        source: numpy array, or an object with `__dlpack__`, `__cuda_array_interface__` or `__array_interface__`.
        dtype: element type, if the object's own type differs (bfloat16 stored as '<V2', tfloat32 as float32).
    Raises:
        InvalidTypeError: the source is not an array, cute_py lacks its element type, or device memory has no address.
        InvalidValueError: the elements are big-endian, or a stride is not a multiple of the element size.
    """
    refuse_mask(source, "the array")
    if isinstance(source, numpy.ndarray):
        return host_engine(source, dtype)
    interface = _cuda_interface(source)
    if interface is not None:
        with _describes_an_array(type(source).__name__, "__cuda_array_interface__"):
            return _from_cuda_interface(source, interface, dtype)
    if hasattr(source, "__dlpack_device__") and hasattr(source, "__dlpack__"):
        return _from_dlpack(source, dtype)
    if hasattr(source, "__array_interface__"):
        with _describes_an_array(type(source).__name__, "__array_interface__"):
            return host_engine(numpy.asarray(source), dtype)
    raise InvalidTypeError(
        f"expected an engine or an array, got {type(source).__name__} {given(source)}",
        {"engines": "iterators, pointers, numpy arrays, and objects with __dlpack__ or __cuda_array_interface__"},
    )


@contextlib.contextmanager
def _describes_an_array(kind: str, table: str) -> Iterator[None]:
    """Convert any error that a malformed description of an array causes to an InvalidTypeError."""
    try:
        yield
    except CuteError:
        raise
    except Exception as problem:
        raise InvalidTypeError(
            f"the {table} of this {kind} does not describe an array",
            {"cause": str(problem).partition("\n")[0]},
        ) from None


def _cuda_interface(source: Any) -> Interface | None:
    """Return the object's `__cuda_array_interface__`, or None: for types without a typestr, producers raise errors."""
    try:
        return source.__cuda_array_interface__  # type: ignore[no-any-return]
    except (AttributeError, TypeError, RuntimeError, KeyError, ValueError):
        return None


def _from_cuda_interface(source: Any, info: Interface, dtype: DType | None) -> tuple[Pointer, Layout]:
    missing = [key for key in ("shape", "typestr", "data") if key not in info]
    if missing:
        raise InvalidTypeError(f"__cuda_array_interface__ has no {missing[0]!r}", {"keys": ", ".join(sorted(info))})
    if info.get("mask") is not None:
        raise InvalidTypeError("a masked array can't be described by a layout", {"object": type(source).__name__})
    stored = numpy.dtype(expect(info["typestr"], str, "the typestr of a __cuda_array_interface__"))
    if dtype is None:  # What a typestr can't name is bytes there, as bfloat16 is '<V2'; the object knows the type.
        dtype = _named(source.dtype) if stored.kind == "V" and hasattr(source, "dtype") else as_dtype(stored)
    kind = dtype
    if stored.itemsize != kind.numpy.itemsize:
        raise InvalidTypeError(f"the typestr {info['typestr']!r} does not match {kind}")
    shape = tuple(int(n) for n in info["shape"])
    strides = info.get("strides")
    facts = {"shape": info["shape"], "strides": strides, "typestr": info["typestr"]}
    steps = row_major(shape) if strides is None else _in_elements(strides, stored.itemsize, facts)
    return _device(source, int(info["data"][0] or 0), kind, shape, steps)


def _in_elements(strides: Sequence[int], size: int, facts: Mapping[str, object]) -> tuple[int, ...]:
    for axis, step in enumerate(strides):
        if int(step) % size:
            raise InvalidValueError(
                f"axis {axis} has a stride of {int(step)} bytes; must be a multiple of the element's {size} bytes",
                facts,
            )
    return tuple(int(step) // size for step in strides)


def _from_dlpack(source: Any, dtype: DType | None) -> tuple[ArrayEngine | Pointer, Layout]:
    try:
        device = int(source.__dlpack_device__()[0])
        if hasattr(source, "data_ptr"):
            source.data_ptr()
    except (BufferError, RuntimeError, TypeError, ValueError) as refusal:
        raise _no_memory(source, refusal) from None
    for asked, fix in (("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")):
        if getattr(source, asked, bool)():
            raise InvalidTypeError(
                f"{type(source).__name__} is a lazy view, so its values differ from those in memory ({asked})",
                hint=f"call its {fix}() and pass the result",
            )
    if device in HOST_DEVICES:
        if not hasattr(source, "data_ptr"):
            return _from_capsule(source, dtype)
        with contextlib.suppress(BufferError, RuntimeError, TypeError):
            return host_engine(numpy.from_dlpack(source), dtype)
        kind = _named(source.dtype) if dtype is None else dtype
        return host_engine(_memory_at(source, source.data_ptr(), source.shape, source.stride(), kind, False), kind)
    if hasattr(source, "data_ptr"):
        kind = _named(source.dtype) if dtype is None else dtype
        shape = tuple(int(n) for n in source.shape)
        return _device(source, int(source.data_ptr()), kind, shape, tuple(int(d) for d in source.stride()))
    raise InvalidTypeError(f"cute_py can't address device memory of DLPack type {device}")


def _no_memory(source: object, refusal: Exception) -> InvalidTypeError:
    return InvalidTypeError(f"numpy can't take this array through DLPack: {refusal}", {"object": type(source).__name__})


def _from_capsule(source: SupportsDlpack, dtype: DType | None) -> tuple[ArrayEngine, Layout]:
    """Return the engine and the layout for the host memory of an object that has only DLPack. For a type that numpy
    lacks, the memory is read-only, because the capsule does not state whether it may be written."""
    try:
        exporting: Any = source  # numpy's annotation asks for a narrower protocol
        return host_engine(numpy.from_dlpack(exporting), dtype)
    except (BufferError, RuntimeError, TypeError, SystemError) as problem:  # a destructor in Python loses numpy's error
        refusal = problem
    try:
        view = exported_view(source)
    except InvalidValueError:
        raise _no_memory(source, refusal) from None
    if view.dtype.bits % 8:
        raise InvalidTypeError(f"an element of {view.dtype} has no byte of its own", {"object": type(source).__name__})
    memory = _memory_at(view.owner, view.address, view.shape, view.strides, view.dtype, True)
    return host_engine(memory, view.dtype if dtype is None else dtype)


def _memory_at(
    owner: object, address: int, shape: Sequence[int], steps: Sequence[int], kind: DType, readonly: bool
) -> NDArray[numpy.generic]:
    """Return host memory at an address as a numpy array; `steps` are strides in elements."""
    size = kind.numpy.itemsize
    interface = {
        "version": 3,
        "shape": tuple(int(n) for n in shape),
        "strides": tuple(int(d) * size for d in steps),
        "typestr": f"|V{size}",
        "data": (int(address), readonly),
    }
    memory = SimpleNamespace(__array_interface__=interface, owner=owner)  # numpy keeps it, and it keeps the owner
    return numpy.asarray(memory).view(kind.numpy)


def _named(dtype: DTypeLike) -> DType:
    name = str(dtype).rpartition(".")[2]
    return as_dtype("uint8" if name == PAIRS else name)


def _device(
    source: object, address: int, dtype: DType, shape: tuple[int, ...], steps: tuple[int, ...]
) -> tuple[Pointer, Layout]:
    return replace(make_gmem_ptr(address, dtype), owner=source), array_layout(shape, steps)
