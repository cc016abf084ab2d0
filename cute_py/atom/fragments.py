"""Fragments: what one thread keeps of a partitioned tensor, in registers, as descriptors, or in tensor memory.

    value        compact: the atom's values first, then the other modes in the order of the partition's strides
    smem_desc    an iterator of descriptors; the atom's mode becomes 1:0, the others count 16-byte units
    tmem         tensor memory: lanes and columns that the instruction expects

Source: cute/layout.hpp (make_fragment_like), cute/atom/mma_atom.hpp (make_fragment_A|B|C), mma_traits_sm90_gmma.hpp
(smem_desc), mma_traits_sm100_frag.hpp (tmem_frg).
"""

from __future__ import annotations

from typing import Any

from cute_py.atom.element_types import UINT128, element_type
from cute_py.atom.mma_atom import FragmentType, MmaAtom
from cute_py.atom.smem_descriptor import DescriptorIterator, gmma_descriptor, umma_descriptor
from cute_py.atom.tensor_memory_fragments import tensor_memory_fragment
from cute_py.dtypes import DType
from cute_py.errors import InvalidTypeError, StaticAssertError, given
from cute_py.layout import (
    Int,
    Layout,
    is_static,
    make_layout,
    make_layout_like,
    make_ordered_layout,
    rank,
    replace,
    size,
    take,
    tiled_product,
)
from cute_py.tensor import Pointer, Tensor, make_rmem_ptr, make_tensor, recast


def compact_like(shape: Any, stride: Any) -> Layout:
    """A column-major layout of a mode whose static stride-0 modes stay stride 0.

    >>> print(compact_like((Int(2), Int(4), Int(2)), (Int(8), Int(0), Int(1))))
    (_2,_4,_2):(_1,_0,_2)
    """

    def counted(s: Any, d: Any) -> Any:
        if isinstance(s, tuple):
            return tuple(counted(x, y) for x, y in zip(s, d, strict=True))
        return Int(1) if isinstance(d, Int) and d == 0 else s

    return Layout(shape, Layout(counted(shape, stride)).stride)


def fragment_layout(layout: Any) -> Any:
    """The layout of registers for a partition: `make_fragment_like` of a layout.

    The first mode, an atom's values, is column-major whatever its strides; the other modes follow in the order of their
    strides. Of a layout of one mode, or with run-time extents, simply compact.

    >>> from cute_py.layout import static
    >>> print(fragment_layout(static(Layout(((2, 2), 4, 8), ((64, 1), 512, 2)))))
    ((_2,_2),_4,_8):((_1,_2),_32,_4)
    """
    if not isinstance(layout, Layout):
        if not hasattr(layout, "domain"):
            return Layout(layout)
        return fragment_layout(layout.domain)
    modes = int(rank(layout))
    if modes == 1 or not is_static(layout.shape):
        return Layout(layout.shape)
    first = compact_like(layout.shape[0], layout.stride[0])
    rest = make_ordered_layout(take(layout.shape, 1, modes), take(layout.stride, 1, modes))
    return tiled_product(first, rest)


def make_fragment_like(thing: Any, dtype: Any = None) -> Any:
    """Registers in the shape of a partition, and its order as far as a fragment keeps it.

    Args:
        thing: layout (then the fragment's layout), or tensor (then a tensor of registers, address 0).
        dtype: element type of the registers; default the tensor's own.
    Raises:
        InvalidTypeError: neither a layout nor a tensor, or a tensor without an element type and none given.

    >>> from cute_py.layout import static
    >>> from cute_py.tensor import make_gmem_ptr
    >>> part = make_tensor(make_gmem_ptr(4096, "float"), static(Layout(((2, 2), 4), ((1, 8), 64))))
    >>> print(make_fragment_like(part))
    ptr[32b]((nil)) o ((_2,_2),(_4)):((_1,_2),(_4))
    """
    if not isinstance(thing, Tensor):
        found = fragment_layout(thing)
        return found if dtype is None else register_tensor(dtype, found)
    if dtype is None and thing.element_type is None:
        raise InvalidTypeError("make_fragment_like of this tensor needs a type: it has no elements", {"tensor": thing})
    return register_tensor(thing.element_type if dtype is None else dtype, fragment_layout(thing.layout))


def make_tensor_like(thing: Any, dtype: Any = None) -> Any:
    """Registers in the shape and the order of a tensor: a compact layout whose strides grow as the tensor's do.

    >>> from cute_py.layout import static
    >>> from cute_py.tensor import make_gmem_ptr
    >>> print(make_tensor_like(make_tensor(make_gmem_ptr(4096, "half"), static(Layout((8, 4), (16, 1))))))
    ptr[16b]((nil)) o (_8,_4):(_4,_1)
    """
    if isinstance(thing, Tensor):
        kind = thing.element_type if dtype is None else dtype
        layout = thing.layout
    else:
        kind, layout = dtype, thing
    if kind is None:
        raise InvalidTypeError("make_tensor_like of a layout needs an element type", {"got": given(thing)})
    return register_tensor(kind, make_layout_like(getattr(layout, "domain", layout)))


def recast_ptr(pointer: Any, dtype: Any) -> Any:
    """The same address with elements of another type.

    Raises:
        InvalidTypeError: no pointer; InvalidValueError: a pointer inside a byte, and whole bytes wanted.

    >>> from cute_py.tensor import make_smem_ptr
    >>> print(recast_ptr(make_smem_ptr(1024, "half"), "uint128_t"))
    smem_ptr[128b](0x400)
    """
    if not hasattr(pointer, "recast") or not hasattr(pointer, "address"):
        raise InvalidTypeError(f"recast_ptr takes a pointer, got {type(pointer).__name__} {given(pointer)}")
    return pointer.recast(element_type(dtype))


def register_tensor(dtype: Any, layout: Layout) -> Tensor:
    """A tensor of registers: address 0, as nobody knows a register's address."""
    return make_tensor(make_rmem_ptr(0, element_type(dtype)), layout)


def check_partitioned(part: Any, atom: MmaAtom, operand: str) -> None:
    """Refuse what is no partition of this operand: (V,M,N) with V the atom's values.

    Raises:
        StaticAssertError: as C++'s make_fragment_A, _B and _C.
    """
    layout = part.layout if isinstance(part, Tensor) else part
    if int(rank(layout)) < 3:
        raise StaticAssertError("rank(tensor) >= Int<3>", {"partition": layout, "operand": operand})
    values = size(atom.layouts[operand][1])
    if size(layout[0]) != values:
        raise StaticAssertError(
            f"size<0>(tensor) == size<1>(Layout{operand}_TV)",
            {"partition": layout, f"values of {operand}": values, "atom": atom.name},
        )


def make_fragment_C(atom: MmaAtom, part: Any) -> Tensor:
    """The accumulator of a partition of C: compact registers, or tensor memory.

    >>> from cute_py.atom.mma_atoms import mma_atom
    >>> from cute_py.layout import static
    >>> print(make_fragment_C(mma_atom("SM80_16x8x16_F32F16F16F32_TN"), static(Layout(((2, 2), 2, 4)))))
    ptr[32b]((nil)) o ((_2,_2),_2,_4):((_1,_2),_4,_8)
    """
    check_partitioned(part, atom, "C")
    shape = part.shape
    kind = atom.fragment_type("C")
    if kind.kind == "tmem":
        return tensor_memory_fragment(kind, shape)
    return register_tensor(atom.c_dtype, Layout(shape))


def make_fragment_A(atom: MmaAtom, part: Any) -> Tensor:
    """The fragment of a partition of A: registers, descriptors, or tensor memory, as the instruction takes it."""
    return _make_operand(atom, part, "A")


def make_fragment_B(atom: MmaAtom, part: Any) -> Tensor:
    """The fragment of a partition of B.

    >>> from cute_py.atom.mma_atoms import mma_atom
    >>> from cute_py.layout import static
    >>> print(make_fragment_B(mma_atom("SM80_16x8x16_F32F16F16F32_TN"), static(Layout(((2, 2), 2, 4)))))
    ptr[16b]((nil)) o ((_2,_2),_2,_4):((_1,_2),_4,_8)
    """
    return _make_operand(atom, part, "B")


def _make_operand(atom: MmaAtom, part: Any, operand: str) -> Tensor:
    check_partitioned(part, atom, operand)
    kind = atom.fragment_type(operand)
    if kind.kind == "smem_desc":
        return descriptor_tensor(atom, kind, part)
    if kind.kind == "tmem":
        return tensor_memory_fragment(kind, part.shape)
    element = atom.types[operand]
    stored = element if isinstance(element, DType) else element.stored
    return register_tensor(stored, fragment_layout(part.layout if isinstance(part, Tensor) else part))


def descriptor_tensor(atom: MmaAtom, kind: FragmentType, part: Any) -> Tensor:
    """Descriptors of the tiles of an operand in shared memory, one for each instruction.

    Raises:
        StaticAssertError: no shared memory, or a layout that no descriptor says.
    """
    if not isinstance(part, Tensor) or not isinstance(part.engine, Pointer) or part.engine.space != "smem":
        raise StaticAssertError(
            "Expected SMEM Tensor to construct a GMMA Desc Tensor"
            if atom.arch == "sm90"
            else "Expected SMEM Tensor to construct a UMMA Desc Tensor",
            {"partition": part, "atom": atom.name},
        )
    make = gmma_descriptor if atom.arch == "sm90" else umma_descriptor
    first = Tensor(part.engine, part.layout[0])
    descriptor = make(kind.parameters[0], first)
    units = recast(part, UINT128).layout
    return Tensor(DescriptorIterator(descriptor), replace(units, 0, make_layout(Int(1), Int(0))))
