"""Tensor: an engine and a layout. The layout maps a coordinate to an offset, and the engine returns the element there.

    counting_iter(42) o (4,5):(_1,4)         ArithTuple(0,0) o (4,5):(_1@0,_1@1)         gmem_ptr[16b](0x1000) o ...

An engine is any object with `engine + offset` and `engine[offset]`; a writable engine also has `store(offset, value)`.
The class does not depend on the kind of memory. `make_tensor`, `recast` and the functions that make coordinate tensors
support the engines of cute_py: iterators, pointers and arrays.
"""

from __future__ import annotations

import math
import operator
from typing import Any, Protocol, overload

from cute_py.argument_checks import Immutable, wrong_type
from cute_py.arith_tuple.arith_tuple import make_basis_like
from cute_py.arith_tuple.cells import Cell
from cute_py.arith_tuple.iterators import ArithTupleIterator, CountingIterator, zero_iterator
from cute_py.dtypes import DTypeLike, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, TensorAccessError, given
from cute_py.layout.arguments import Coordinate, IntCoordinate, IntTuple, LayoutLike, Shape, Tree
from cute_py.layout.composed import ComposedLayout, slice_parts
from cute_py.layout.coordinate import domain_offset
from cute_py.layout.inverse import max_common_layout, max_common_vector
from cute_py.layout.layout import Layout, Stride, coprofile, make
from cute_py.layout.leaf import STATIC_ONE, STATIC_ZERO, Int, value_of
from cute_py.layout.recast import as_position_independent_swizzle_layout, is_flagged, max_alignment, recast_layout
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import has_underscore, leaves
from cute_py.tensor.arrays import ArrayEngine, engine_and_layout
from cute_py.tensor.pointers import Pointer, TmemPointer, make_smem_ptr

__all__ = ["Tensor", "make_coord_tensor", "make_identity_layout", "make_identity_tensor", "make_tensor", "recast"]


class Engine(Protocol):
    """The source of a tensor's elements: a pointer, an array or an iterator."""

    def __add__(self, offset: Any, /) -> Engine: ...
    def __getitem__(self, offset: Any, /) -> Any: ...


class Tensor(Immutable):
    """A tensor `engine o layout`, immutable. `tensor(coord)` is an element; if `coord` has `_`, it is a subtensor.

    All operations on a layout's domain (coalesce, group_modes, zipped_divide, local_tile, ...) accept tensors too.

    >>> from cute_py.arith_tuple.iterators import counting_iterator
    >>> t = Tensor(counting_iterator(42), Layout((4, 5)))
    >>> print(t, t(1, 2), t(2, None))
    counting_iter(42) o (4,5):(_1,4) 51 counting_iter(44) o (5):(4)
    """

    __slots__ = ("engine", "layout")
    _state = operator.attrgetter("engine", "layout")

    engine: Any
    layout: Any  # a Layout or a ComposedLayout; the user knows which

    def __init__(self, engine: Engine, layout: Layout | ComposedLayout) -> None:
        if not isinstance(layout, (Layout, ComposedLayout)):
            raise InvalidTypeError(f"Tensor takes an engine and a layout, got {given(layout)}")
        if hasattr(engine, "__array__"):
            raise InvalidTypeError("an array is not an engine", hint="use make_tensor(array, layout)")
        plain = isinstance(engine, (str, bytes, tuple, list))
        if plain or not hasattr(engine, "__add__") or not hasattr(engine, "__getitem__"):
            raise InvalidTypeError(f"{given(engine)} is not an engine; an engine can be offset and read")
        object.__setattr__(self, "engine", engine)
        object.__setattr__(self, "layout", layout)

    @property
    def domain(self) -> Layout | ComposedLayout:
        return self.layout  # type: ignore[no-any-return]

    def with_domain(self, layout: Layout | ComposedLayout) -> Tensor:
        return Tensor(self.engine, layout)

    @property
    def shape(self) -> IntTuple:
        return self.layout.shape  # type: ignore[no-any-return]

    @property
    def stride(self) -> Tree:
        return self.layout.stride  # type: ignore[no-any-return]

    @property
    def element_type(self) -> Any:
        """The element type of the engine, or None if it has none."""
        return getattr(self.engine, "element_type", None)

    def data(self) -> Engine:
        """C++'s name for the engine."""
        return self.engine  # type: ignore[no-any-return]

    @overload
    def __call__(self, *coord: IntCoordinate) -> Any: ...
    @overload
    def __call__(self, *coord: Coordinate) -> Tensor: ...
    def __call__(self, *coord: Coordinate) -> Any:
        c = coord[0] if len(coord) == 1 else coord
        if has_underscore(c):
            layout, offset = slice_parts(c, self.layout)
            return Tensor(_moved(self.engine, offset), layout)
        return self.engine[self.layout(c)]

    @overload
    def __getitem__(self, coord: IntCoordinate) -> Any: ...
    @overload
    def __getitem__(self, coord: Coordinate) -> Tensor: ...
    def __getitem__(self, coord: Coordinate) -> Any:
        """Return the element at a coordinate; for a coordinate with `_` or None, the subtensor."""
        return self(coord)

    def __setitem__(self, coord: IntCoordinate, value: Cell) -> None:
        """Write one element, if the engine is writable memory."""
        store = getattr(self.engine, "store", None)
        if store is None:
            raise TensorAccessError(
                "this tensor is read-only",
                {"engine": self.engine, "rule": "only tensors of arrays hold elements"},
            )
        if has_underscore(coord):
            raise TensorAccessError("assign one element at a time", {"coordinate": coord})
        store(self.layout(coord), value)

    def _vectorizes_with(self, other: Tensor) -> bool:
        """Whether both tensors are in memory and have equal element types, so that a copy can be vectorized."""
        data = all(getattr(t.engine, "is_memory", False) for t in (self, other))
        return data and self.element_type == other.element_type

    def max_common_layout(self, other: LayoutLike) -> Layout:
        if isinstance(other, Tensor):
            return (
                max_common_layout(self.layout, other.layout)
                if self._vectorizes_with(other)
                else make(STATIC_ONE, STATIC_ZERO)
            )
        return max_common_layout(self.layout, other)

    def max_common_vector(self, other: LayoutLike) -> Int | int:
        if isinstance(other, Tensor):
            return max_common_vector(self.layout, other.layout) if self._vectorizes_with(other) else Int(0)
        return max_common_vector(self.layout, other)

    def _max_alignment(self) -> Int:
        """Return the alignment in bits that the layout guarantees. As in C++, the run-time address is not used."""
        if not isinstance(self.engine, (Pointer, ArrayEngine)):
            raise InvalidTypeError("max_alignment needs a tensor in addressable memory", {"tensor": self})
        bits = int(max_alignment(self.layout)) * self.engine.element_type.bits
        swizzle = getattr(self.engine, "swizzle", None)
        return Int(bits if swizzle is None else math.gcd(bits, 8 * int(max_alignment(swizzle))))

    def domain_offset(self, coord: IntCoordinate) -> Tensor:
        """Return the tensor with its origin moved to `coord`."""
        layout, offset = domain_offset(coord, self.layout)
        return Tensor(_moved(self.engine, offset), layout)

    __iter__ = None

    def __str__(self) -> str:
        return f"{self.engine} o {self.layout}"

    def __repr__(self) -> str:
        return f"make_tensor({self.engine!r}, {self.layout!r})"


def _moved(engine: Engine, offset: int) -> Engine:
    """Return the engine moved by an offset; a static 0 returns it unchanged."""
    return engine if isinstance(offset, Int) and offset == 0 else engine + offset


_ENGINES = (ArithTupleIterator, CountingIterator, Pointer, TmemPointer, ArrayEngine)


def make_tensor(
    engine: Any,
    layout: Layout | ComposedLayout | Shape | None = None,
    stride: Stride = None,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Make a tensor from an engine and a layout.

    Args:
        engine: an iterator (`counting_iterator`, `make_inttuple_iter`), a pointer (`make_gmem_ptr`, ...), a numpy
            array, or an object with `__dlpack__` or `__cuda_array_interface__` (never copied).
        layout: a layout, or a shape, whose strides are then `stride` or by default compact column-major. The default
            for an array is its own layout; a layout that you pass addresses the array's elements, starting at the first
            one.
        dtype: element type of an array, if the array's own type differs (tfloat32 stored as float32).
    Raises:
        InvalidTypeError: the object is not an engine.
        InvalidValueError: the layout has an unset pointer of another element width than the engine.

    >>> print(make_tensor(make_inttuple_iter(0, 0), (4, 5), (E(0), E(1))))
    ArithTuple(0,0) o (4,5):(_1@0,_1@1)
    """
    if isinstance(engine, Tensor):
        engine = engine.engine
    own = None
    if not isinstance(engine, _ENGINES) and not (hasattr(engine, "__getitem__") and hasattr(engine, "deref")):
        engine, own = engine_and_layout(engine, None if dtype is None else as_dtype(dtype))
    elif dtype is not None:
        raise InvalidTypeError(
            "make_tensor takes dtype only together with an array", {"engine": engine, "dtype": dtype}
        )
    if layout is None:
        if own is None:
            raise InvalidTypeError("make_tensor needs a layout or a shape for this engine", {"engine": engine})
        return Tensor(engine, own)
    if not isinstance(layout, (Layout, ComposedLayout)):
        layout = Layout(layout, stride)
    elif stride is not None:
        raise InvalidTypeError(
            "make_tensor takes a layout, or a shape and a stride", {"layout": layout, "stride": stride}
        )
    if is_flagged(layout) and isinstance(engine, (Pointer, ArrayEngine)):
        return _set_flag(engine, layout)
    return Tensor(engine, layout)


def _set_flag(engine: Pointer | ArrayEngine, layout: ComposedLayout) -> Tensor:
    """Make a tensor from a layout with an unset pointer. The swizzle moves to the pointer; for an array, whose engine
    counts elements, it is converted to a swizzle of elements."""
    if isinstance(engine, Pointer) and engine.space != "smem":
        raise InvalidTypeError("Expected smem.", {"pointer": engine, "layout": layout})
    if layout.offset.bits != engine.dtype.bits:
        raise InvalidValueError(
            f"Expected a {layout.offset.bits}-bit pointer type.", {"pointer": engine, "layout": layout}
        )
    if isinstance(engine, ArrayEngine):
        return Tensor(engine, as_position_independent_swizzle_layout(layout))
    pointer = make_smem_ptr((engine + int(layout.offset)).address, engine.dtype, layout.outer)
    return Tensor(pointer, layout.inner)


def make_identity_layout(shape: Shape | LayoutLike) -> Layout:
    """Make the layout that maps every coordinate of a shape to itself.

    >>> print(make_identity_layout((4, (2, 3))))
    (4,(2,3)):(_1@0,(_1@0@1,_1@1@1))
    """
    like: Any = shape
    if hasattr(type(shape), "domain") or isinstance(shape, Layout):
        like = like.shape
    return Layout(like, make_basis_like(like))


def make_coord_tensor(layout: Layout) -> Tensor:
    """Make the tensor whose elements are the coordinates that a layout with basis strides gives, from a static origin.

    >>> print(make_coord_tensor(Layout((4, 5), (E(1), E(0)))))
    ArithTuple(_0,_0) o (4,5):(_1@1,_1@0)
    """
    return Tensor(zero_iterator(coprofile(layout)), layout)


def make_identity_tensor(shape: Shape | LayoutLike) -> Tensor:
    """Make the tensor of a shape whose elements are its own coordinates.

    >>> print(make_identity_tensor((4, 5)))
    ArithTuple(_0,_0) o (4,5):(_1@0,_1@1)
    """
    return make_coord_tensor(make_identity_layout(shape))


def recast(tensor: Tensor, dtype: DTypeLike) -> Tensor:
    """Return a tensor over the same memory with elements of another type. The engine and the layout then count in the
    new width.

    With static negative strides, the first new element of an array begins at the lowest old element that it covers. A
    pointer also moves, as in C++: by the stride times the decrease of the mode's size.

    Args:
        tensor: a tensor with a pointer, or with an array, which is recast as a numpy view without a copy.
        dtype: the new element type.
    Raises:
        InvalidTypeError: the engine has no memory (an iterator), or the elements of an array are narrower than a byte.
        InvalidValueError: a pointer points inside a byte, but the new elements begin at whole bytes; or an array is
            smaller than one new element.
        StaticAssertError: the layout can't be counted in the new width.

    >>> print(recast(make_tensor(make_gmem_ptr(4096, "float16"), (Int(8), Int(4))), "float32"))
    gmem_ptr[32b](0x1000) o (_4,_4):(_1,_4)
    """
    if not isinstance(tensor, Tensor):
        raise wrong_type("recast takes a tensor", tensor)
    engine: Any = tensor.engine
    if not isinstance(engine, (Pointer, TmemPointer, ArrayEngine)):
        raise InvalidTypeError(
            "recast needs a tensor in memory, but this engine computes its elements",
            {"tensor": tensor, "new type": dtype},
        )
    old, new = engine.element_type, as_dtype(dtype)
    if old == new:
        return tensor
    layout = tensor.layout if old.bits == new.bits else recast_layout(tensor.layout, old, new)
    if -(-old.bits // 8) < -(-new.bits // 8) and isinstance(layout, Layout):
        reach = _first_element if isinstance(engine, ArrayEngine) else _shrunk_extent
        engine = engine + reach(tensor.layout, layout)
    return Tensor(engine.recast(new), layout)


def _negative_modes(old: Layout, new: Layout) -> list[tuple[int, int, int]]:
    """Return (old size, new size, stride) of each mode with a static negative stride."""
    modes = zip(leaves(old.shape), leaves(new.shape), leaves(old.stride), strict=True)
    return [(int(value_of(a)), int(value_of(b)), int(d)) for a, b, d in modes if type(d) is Int and d < 0]


def _shrunk_extent(old: Layout, new: Layout) -> int:
    """Return C++'s offset for static negative strides: the decrease of each mode's size, times its stride."""
    return sum(min(0, (before - after) * step) for before, after, step in _negative_modes(old, new))


def _first_element(old: Layout, new: Layout) -> int:
    """Return the offset of the lowest old element that the first new element covers."""
    return sum((before // after - 1) * step for before, after, step in _negative_modes(old, new) if after)


def swizzle_of(tensor: Tensor) -> Swizzle:
    """Return the swizzle of a shared-memory tensor's byte addresses: the pointer's swizzle, or the identity."""
    found = getattr(tensor.engine, "swizzle", None)
    return found if isinstance(found, Swizzle) else Swizzle(0, 4, 3)
