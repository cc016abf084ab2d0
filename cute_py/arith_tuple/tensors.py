"""Making tensors: of coordinates, of integers, of memory."""

from __future__ import annotations

from typing import Any

from cute_py.arith_tuple.arrays import ArrayEngine, engine_and_layout
from cute_py.arith_tuple.iterators import ArithTupleIterator, CountingIterator, zero_iterator
from cute_py.arith_tuple.pointers import Pointer, SmemPtrFlag, TmemPointer, make_smem_ptr
from cute_py.arith_tuple.scaled_basis import make_basis_like
from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.coprofile import coprofile
from cute_py.layout.domain import domain_of
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Tree
from cute_py.layout.recast import recast_layout
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.tensor import Tensor

_ENGINES = (ArithTupleIterator, CountingIterator, Pointer, TmemPointer, ArrayEngine)


def make_tensor(engine: Any, layout: Any = None, stride: Tree = None) -> Tensor:
    """A tensor of an engine and a layout.

    Args:
        engine: an iterator (`counting_iterator`, `make_inttuple_iter`), a pointer (`make_gmem_ptr`, ...), a numpy
            array, or an object with `__dlpack__` or `__cuda_array_interface__`.
        layout: a layout, or a shape (then `stride`, or compact column-major). Arrays bring their own; a layout given
            with an array addresses its elements from the first one on.
    Raises:
        InvalidTypeError: no engine; InvalidValueError: a flagged layout of another element width than the pointer's.

    >>> print(make_tensor(make_inttuple_iter(0, 0), (4, 5), (E(0), E(1))))
    ArithTuple(0,0) o (4,5):(_1@0,_1@1)
    """
    if not isinstance(engine, _ENGINES):
        if isinstance(engine, Tensor):
            engine = engine.engine
        elif hasattr(engine, "__getitem__") and hasattr(engine, "deref"):
            pass
        else:
            engine, own = engine_and_layout(engine)
            if layout is None:
                return Tensor(engine, own)
    if layout is None:
        raise InvalidTypeError("make_tensor of this engine needs a layout or a shape", {"engine": engine})
    if not isinstance(layout, (Layout, ComposedLayout)):
        layout = Layout(layout, stride)
    elif stride is not None:
        raise InvalidTypeError("make_tensor takes a layout, or a shape and a stride")
    if isinstance(layout, ComposedLayout) and isinstance(layout.offset, SmemPtrFlag) and isinstance(engine, Pointer):
        return _set_flag(engine, layout)
    return Tensor(engine, layout)


def _set_flag(engine: Pointer, layout: ComposedLayout) -> Tensor:
    """A flagged layout meets its pointer: the swizzle moves from the layout to the pointer."""
    if engine.space != "smem":
        raise InvalidTypeError("Expected smem.", {"pointer": engine, "layout": layout})
    if layout.offset.bits != engine.dtype.bits:
        raise InvalidValueError(
            f"Expected a {layout.offset.bits}-bit pointer type.", {"pointer": engine, "layout": layout}
        )
    pointer = make_smem_ptr(engine.address, engine.dtype, layout.outer)
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
    """The same memory with elements of another type: pointer and layout counted in its width.

    >>> print(recast(make_tensor(make_gmem_ptr(4096, "float16"), (Int(8), Int(4))), "float32"))
    gmem_ptr[32b](0x1000) o (_4,_4):(_1,_4)
    """
    old, new = as_dtype(tensor.element_type), as_dtype(dtype)
    if not isinstance(tensor.engine, (Pointer, TmemPointer)):
        raise InvalidTypeError(
            "recast takes tensors of pointers; an array is recast with numpy's view", {"tensor": tensor}
        )
    if old.bits == new.bits:
        return Tensor(tensor.engine.recast(new), tensor.layout)
    return Tensor(tensor.engine.recast(new), recast_layout(tensor.layout, old, new))


def swizzle_of(tensor: Tensor) -> Swizzle:
    """The byte swizzle of a shared-memory tensor: the pointer's, or the identity."""
    found = getattr(tensor.engine, "swizzle", None)
    return found if isinstance(found, Swizzle) else Swizzle(0, 4, 3)


def layout_of(tensor: Tensor) -> Layout:
    """The plain layout of a tensor."""
    return domain_of(tensor.layout)
