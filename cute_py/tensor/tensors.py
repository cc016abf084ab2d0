"""Making tensors: of coordinates, of integers, of memory."""

from __future__ import annotations

from typing import Any

from cute_py.arith_tuple.iterators import ArithTupleIterator, CountingIterator, zero_iterator
from cute_py.arith_tuple.scaled_basis import make_basis_like
from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.coprofile import coprofile
from cute_py.layout.domain import domain_of
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Tree, value_of
from cute_py.layout.pointer_flagged import as_position_independent_swizzle_layout, is_flagged
from cute_py.layout.recast import recast_layout
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import check_depth, leaves
from cute_py.tensor.arrays import ArrayEngine, engine_and_layout
from cute_py.tensor.pointers import Pointer, TmemPointer, make_smem_ptr
from cute_py.tensor.tensor import Tensor

_ENGINES = (ArithTupleIterator, CountingIterator, Pointer, TmemPointer, ArrayEngine)


def make_tensor(engine: Any, layout: Any = None, stride: Tree = None, *, dtype: Any = None) -> Tensor:
    """A tensor of an engine and a layout.

    Args:
        engine: an iterator (`counting_iterator`, `make_inttuple_iter`), a pointer (`make_gmem_ptr`, ...), a numpy
            array, or an object with `__dlpack__` or `__cuda_array_interface__` (never copied).
        layout: a layout, or a shape (then `stride`, or compact column-major). Arrays bring their own; a layout given
            with an array addresses its elements from the first one on.
        dtype: element type of an array, where the array does not say it (tfloat32 stored as float32).
    Raises:
        InvalidTypeError: no engine; InvalidValueError: a flagged layout of another element width than the pointer's.

    >>> print(make_tensor(make_inttuple_iter(0, 0), (4, 5), (E(0), E(1))))
    ArithTuple(0,0) o (4,5):(_1@0,_1@1)
    """
    if isinstance(engine, Tensor):
        engine = engine.engine
    own = None
    if not isinstance(engine, _ENGINES) and not (hasattr(engine, "__getitem__") and hasattr(engine, "deref")):
        engine, own = engine_and_layout(engine, None if dtype is None else as_dtype(dtype))
    elif dtype is not None:
        raise InvalidTypeError("make_tensor takes dtype with arrays only", {"engine": engine, "dtype": dtype})
    if layout is None:
        if own is None:
            raise InvalidTypeError("make_tensor of this engine needs a layout or a shape", {"engine": engine})
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
    """A flagged layout meets its memory: the swizzle moves to the pointer; over an array, whose engine counts elements,
    it is counted in elements."""
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


def make_identity_layout(shape: Tree) -> Layout:
    """The layout that maps every coordinate to itself.

    >>> print(make_identity_layout((4, (2, 3))))
    (4,(2,3)):(_1@0,(_1@0@1,_1@1@1))
    """
    if hasattr(shape, "domain") or isinstance(shape, Layout):
        shape = shape.shape
    return Layout(shape, make_basis_like(shape))


def make_coord_tensor(layout: Layout) -> Tensor:
    """The tensor of a basis-stride layout's coordinates, from the static origin.

    >>> print(make_coord_tensor(Layout((4, 5), (E(1), E(0)))))
    ArithTuple(_0,_0) o (4,5):(_1@1,_1@0)
    """
    return Tensor(zero_iterator(coprofile(layout)), layout)


def make_identity_tensor(shape: Tree) -> Tensor:
    """The tensor whose elements are its own coordinates.

    >>> print(make_identity_tensor((4, 5)))
    ArithTuple(_0,_0) o (4,5):(_1@0,_1@1)
    """
    return make_coord_tensor(make_identity_layout(shape))


def recast(tensor: Tensor, dtype: Any) -> Tensor:
    """The same memory with elements of another type: engine and layout counted in its width.

    Of an array with static negative strides, the first new element begins at the lowest old one that it covers. A
    pointer moves as C++ moves it, by the stride times what the mode got shorter, which is further.

    Args:
        tensor: of a pointer, or of an array (then through a numpy view, without a copy).
        dtype: the new element type.
    Raises:
        InvalidTypeError: an engine without memory (an iterator), or an array of elements narrower than a byte.
        InvalidValueError: a pointer inside a byte, a whole byte wanted; or an array that holds no new element.
        StaticAssertError: the layout can't be counted in the new width.

    >>> print(recast(make_tensor(make_gmem_ptr(4096, "float16"), (Int(8), Int(4))), "float32"))
    gmem_ptr[32b](0x1000) o (_4,_4):(_1,_4)
    """
    check_depth(tensor)
    if not isinstance(tensor, Tensor):
        raise InvalidTypeError(f"recast takes a tensor, got {type(tensor).__name__} {given(tensor)}")
    engine: Any = tensor.engine
    if not isinstance(engine, (Pointer, TmemPointer, ArrayEngine)):
        raise InvalidTypeError(
            "recast takes tensors of memory; this engine makes its elements", {"tensor": tensor, "new type": dtype}
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
    """(old size, new size, static negative stride) of each mode that has one."""
    modes = zip(leaves(old._shape), leaves(new._shape), leaves(old._stride), strict=True)
    return [(int(value_of(a)), int(value_of(b)), d) for a, b, d in modes if type(d) is int and d < 0]


def _shrunk_extent(old: Layout, new: Layout) -> int:
    """C++'s offset for static negative strides: what the mode got shorter, times its stride."""
    return sum(min(0, (before - after) * step) for before, after, step in _negative_modes(old, new))


def _first_element(old: Layout, new: Layout) -> int:
    """Offset of the lowest old element that the first new one covers."""
    return sum((before // after - 1) * step for before, after, step in _negative_modes(old, new) if after)


def swizzle_of(tensor: Tensor) -> Swizzle:
    """The byte swizzle of a shared-memory tensor: the pointer's, or the identity."""
    found = getattr(tensor.engine, "swizzle", None)
    return found if isinstance(found, Swizzle) else Swizzle(0, 4, 3)


def layout_of(tensor: Tensor) -> Layout:
    """The plain layout of a tensor."""
    return domain_of(tensor.layout)
