"""Tensor: an engine and a layout. The layout turns a coordinate into an offset, the engine is offset and read.

    counting_iter(42) o (4,5):(_1,4)         ArithTuple(0,0) o (4,5):(_1@0,_1@1)         gmem_ptr[16b](0x1000) o ...

An engine is anything with `engine + offset` and `engine[offset]`; engines that can be written have `store(offset,
value)`. Nothing here knows what memory is: pointers, arrays and iterators are engines of the floor above.
"""

from __future__ import annotations

from typing import Any

from cute_py.errors import InvalidTypeError, TensorAccessError, given
from cute_py.layout.composed import ComposedLayout, slice_parts
from cute_py.layout.inverse import max_common_layout, max_common_vector
from cute_py.layout.layout import Layout, make
from cute_py.layout.leaf import Int, Tree
from cute_py.layout.slicing import domain_offset
from cute_py.layout.trees import has_underscore


class Tensor:
    """`engine o layout`, immutable; `tensor(coord)` is an element, or a subtensor where the coordinate has `_`.

    All operations on a layout's domain (coalesce, group_modes, zipped_divide, local_tile, ...) take tensors.

    >>> from cute_py.arith_tuple.iterators import counting_iterator
    >>> t = Tensor(counting_iterator(42), Layout((4, 5)))
    >>> print(t, t(1, 2), t(2, None))
    counting_iter(42) o (4,5):(_1,4) 51 counting_iter(44) o (5):(4)
    """

    __slots__ = ("engine", "layout")

    engine: Any
    layout: Any

    def __init__(self, engine: Any, layout: Any) -> None:
        if not isinstance(layout, (Layout, ComposedLayout)):
            raise InvalidTypeError(f"a tensor takes an engine and a layout, got {given(layout)}")
        if hasattr(engine, "__array__"):
            raise InvalidTypeError("an array is no engine by itself", hint="use make_tensor(array, layout)")
        plain = isinstance(engine, (str, bytes, tuple, list))
        if plain or not hasattr(engine, "__add__") or not hasattr(engine, "__getitem__"):
            raise InvalidTypeError(f"no engine: {given(engine)} can't be offset and read")
        object.__setattr__(self, "engine", engine)
        object.__setattr__(self, "layout", layout)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Tensor is immutable; can't set {name}")

    @property
    def domain(self) -> Any:
        return self.layout

    def with_domain(self, layout: Any) -> Tensor:
        return Tensor(self.engine, layout)

    @property
    def shape(self) -> Tree:
        return self.layout.shape

    @property
    def stride(self) -> Tree:
        return self.layout.stride

    @property
    def element_type(self) -> Any:
        """The engine's element type, or None."""
        return getattr(self.engine, "element_type", None)

    def data(self) -> Any:
        """C++'s name for the engine."""
        return self.engine

    def __call__(self, *coord: Any) -> Any:
        c = coord[0] if len(coord) == 1 else coord
        if has_underscore(c):
            layout, offset = slice_parts(c, self.layout)
            return Tensor(_moved(self.engine, offset), layout)
        return self.engine[self.layout(c)]

    def __getitem__(self, coord: Any) -> Any:
        """The element at a coordinate; with `_` (or None), the subtensor."""
        return self(coord)

    def __setitem__(self, coord: Any, value: Any) -> None:
        """Write one element, where the engine is memory that can be written."""
        store = getattr(self.engine, "store", None)
        if store is None:
            raise TensorAccessError(
                "the elements of this tensor can't be written",
                {"engine": self.engine, "rule": "only array tensors hold elements"},
            )
        if has_underscore(coord):
            raise TensorAccessError("write one element at a time", {"coordinate": coord})
        store(self.layout(coord), value)

    def _vectorizes_with(self, other: Tensor) -> bool:
        """Whether elements of both can be moved as they are: equal types, and data on both sides, no iterator."""
        data = all(getattr(t.engine, "is_memory", False) for t in (self, other))
        return data and self.element_type == other.element_type

    def max_common_layout(self, other: Any) -> Layout:
        if isinstance(other, Tensor):
            return max_common_layout(self.layout, other.layout) if self._vectorizes_with(other) else make(1, 0)
        return max_common_layout(self.layout, other)

    def max_common_vector(self, other: Any) -> Any:
        if isinstance(other, Tensor):
            return max_common_vector(self.layout, other.layout) if self._vectorizes_with(other) else Int(0)
        return max_common_vector(self.layout, other)

    def domain_offset(self, coord: Tree) -> Tensor:
        """The same tensor seen from `coord` on."""
        layout, offset = domain_offset(coord, self.layout)
        return Tensor(_moved(self.engine, offset), layout)

    __iter__ = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tensor):
            return NotImplemented
        return bool(self.engine == other.engine and self.layout == other.layout)

    def __hash__(self) -> int:
        return hash((self.engine, self.layout))

    def __reduce__(self) -> Any:
        return (Tensor, (self.engine, self.layout))

    def __str__(self) -> str:
        return f"{self.engine} o {self.layout}"

    def __repr__(self) -> str:
        return f"make_tensor({self.engine!r}, {self.layout!r})"


def _moved(engine: Any, offset: Any) -> Any:
    """The engine at an offset; a static 0 leaves it as it is."""
    return engine if isinstance(offset, Int) and offset == 0 else engine + offset
