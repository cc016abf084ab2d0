"""Fragments: one thread's part of a partitioned tensor, in registers, as descriptors, or in tensor memory.

    value        registers: compact, the atom's values first, then the modes in the order of the partition's strides
    smem_desc    an iterator over descriptors; the atom's mode becomes 1:0, the other modes count 16-byte units
    tmem         tensor memory: the lanes and columns that the instruction expects

Tensor memory has 128 lanes and 512 columns of 32 bits. With M = 128, a tile occupies all lanes. With M = 64, it
occupies half of each warp's 32 lanes; the next tile occupies the other half (Interleaved), or the other half stays free
(NonInterleaved). With two CTAs, each holds half of M; if that half has 64 rows, the second half of N takes lanes 64 to
127 (2x2). This module first makes layouts with lane stride 1 and column stride 128, and then converts their strides to
elements.

Source: cute/layout.hpp (make_fragment_like), cute/atom/mma_atom.hpp (make_fragment_A|B|C), mma_traits_sm90_gmma.hpp
(smem_desc), mma_traits_sm100_frag.hpp (tmem_frg); cute/arch/tmem_allocator_sm100.hpp.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias, overload

from cute_py.argument_checks import expect, has, wrong_type
from cute_py.atom.element_types import UINT128, element_type, stored_type
from cute_py.atom.mma_atom import FragmentType, MmaAtom, static_layout
from cute_py.atom.smem_descriptor import DescriptorIterator
from cute_py.atom.smem_layouts import make_gmma_desc, make_umma_desc
from cute_py.atom.template_name import static_assert
from cute_py.dtypes import DTypeLike
from cute_py.errors import InvalidTypeError, StaticAssertError, given
from cute_py.layout import (
    ComposedLayout,
    Int,
    Layout,
    composition,
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
from cute_py.layout.arguments import IntTuple, LayoutLike, Tree
from cute_py.layout.layout import domain_of
from cute_py.layout.trees import map_leaves
from cute_py.tensor import Pointer, Tensor, TmemPointer, make_rmem_ptr, make_tensor, make_tmem_ptr, recast

Parted: TypeAlias = tuple[Any, ...]
"""The shape of a partition: ((M,N), tiles of M, tiles of N, ...)."""

LANES: Final = 128
CAPACITY_BITS: Final = 128 * 512 * 32


def lane_stride(bits: int) -> int:
    """Return the distance between two lanes in elements: 2**16 if they have 32 bits, 2**17 if 16 bits, and so on.

    >>> lane_stride(32), lane_stride(16)
    (65536, 131072)
    """
    return (1 << 16) * 32 // bits if bits <= 32 else (1 << 16) >> ((bits // 32).bit_length() - 1)


def tensor_memory_fragment(kind: FragmentType, shape: Any) -> Tensor:
    """Make a tensor in tensor memory, at address 0, for a partition ((M,N), tiles of M, tiles of N, ...).

    Args:
        kind: C++'s fragment type, `tmem_frg`.
        shape: the static shape of the partition.
    Raises:
        StaticAssertError: the fragment needs more tensor memory than exists, or the instruction lacks the shape; the
            message is the text of C++'s static_assert.

    >>> from cute_py.atom.mma_atoms import mma_atom
    >>> kind = mma_atom("SM100_MMA_F16BF16_SS<half_t,half_t,float,128,64,K,K>").fragment_type("C")
    >>> print(tensor_memory_fragment(kind, ((Int(128), Int(64)), Int(1), Int(2))))
    tmem_[32b](0x0000.0000) o ((_128,_64),_1,_2):((_65536,_1),_0,_64)
    """
    if not isinstance(shape, tuple) or len(shape) < 2:
        raise InvalidTypeError(f"a fragment in tensor memory needs a partition ((M,N), ...), got the shape {shape}")
    if rank(shape[0]) != 2:
        raise StaticAssertError("Expected post-partitioned shape ((M_MMA,N_MMA),...).", {"shape": shape})
    value, storage, ctas, mode = kind.parameters
    bits = int(size(shape)) * storage.bits
    facts: dict[str, object] = {"shape": shape, "bits": bits, "available": CAPACITY_BITS}
    static_assert(bits <= CAPACITY_BITS, "Requesting more TMEM than is available.", lambda: facts)
    m, n = int(size(shape[0][0])), int(size(shape[0][1]))
    step = 1
    if ctas == 1:
        static_assert(m in (64, 128), "UMMA_1SM M-mode size should be 64 or 128.", lambda: {"M": m})
        tile = static_layout((LANES, n), (1, 128)) if m == 128 else static_layout(((16, 4), n), ((1, 32), 128))
        step = 2 if m == 64 and mode == "NonInterleaved" else 1
    else:
        static_assert(m in (32, 64, 128), "UMMA_2SM M-mode size should be 32 or 64 or 128.", lambda: {"M": m})
        text = "Only TmemAllocMode::Interleaved is supported for UMMA_2SM M_MMA=32"
        static_assert(m != 32 or mode == "Interleaved", text, lambda: {"mode": mode})
        if m == 128 or mode == "Duplicated":
            tile = static_layout((LANES, n), (1, 128))
        else:
            beside = LANES // m
            tile = static_layout((m, (n // beside, beside)), (1, (128, m)))
    restride = static_layout((LANES, 16384), (lane_stride(value.bits), max(1, storage.bits // value.bits)))
    layout = composition(restride, tiled_product(tile, _tiles(shape, step)))
    return make_tensor(make_tmem_ptr(0, value), layout)


def _tiles(shape: Parted, step: int) -> Layout:
    """Return a compact layout of the modes after the first, with its strides multiplied by `step`."""
    rest = take(shape, 1, int(rank(shape)))
    return Layout(rest, map_leaves(lambda d: d * Int(step), Layout(rest).stride))


def compact_like(shape: IntTuple, stride: Tree) -> Layout:
    """Return a column-major layout with this shape, where modes of static stride 0 keep the stride 0.

    >>> print(compact_like((Int(2), Int(4), Int(2)), (Int(8), Int(0), Int(1))))
    (_2,_4,_2):(_1,_0,_2)
    """

    def counted(s: IntTuple, d: Tree) -> IntTuple:
        if isinstance(s, tuple) and isinstance(d, tuple):
            return tuple(counted(x, y) for x, y in zip(s, d, strict=True))
        return Int(1) if isinstance(d, Int) and d == 0 else s

    return Layout(shape, Layout(counted(shape, stride)).stride)


def fragment_layout(layout: LayoutLike) -> Layout:
    """Return the layout of registers for a partition's layout, as `make_fragment_like` does.

    The first mode has the atom's values and becomes column-major, whatever its strides. The other modes follow in the
    order of their strides. A layout with fewer than two modes, or with run-time extents, becomes compact column-major.

    >>> from cute_py.layout import static
    >>> print(fragment_layout(static(Layout(((2, 2), 4, 8), ((64, 1), 512, 2)))))
    ((_2,_2),_4,_8):((_1,_2),_32,_4)
    """
    if not isinstance(layout, Layout):
        if not hasattr(type(layout), "domain"):
            return Layout(layout)
        return fragment_layout(domain_of(layout))
    modes = int(rank(layout))
    if modes <= 1 or not is_static(layout.shape):
        return Layout(layout.shape)
    first = compact_like(layout.shape[0], layout.stride[0])  # type: ignore[index]
    rest = make_ordered_layout(take(layout.shape, 1, modes), take(layout.stride, 1, modes))
    return tiled_product(first, rest)


@overload
def make_fragment_like(thing: Layout | ComposedLayout, dtype: None = None) -> Layout: ...
@overload
def make_fragment_like(thing: LayoutLike, dtype: DTypeLike) -> Tensor: ...
@overload
def make_fragment_like(thing: Tensor, dtype: DTypeLike | None = None) -> Tensor: ...
def make_fragment_like(thing: LayoutLike, dtype: DTypeLike | None = None) -> Layout | Tensor:
    """Make registers with the shape of a partition; the modes after the first keep the order of the partition's
    strides.

    Args:
        thing: a layout or a tensor. For a layout, the result is the fragment's layout; for a tensor, it is a tensor of
            registers at address 0.
        dtype: the element type of the registers; default the tensor's type.
    Raises:
        InvalidTypeError: the object is neither a layout nor a tensor, or the tensor has no element type and none is
            given.

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
        raise InvalidTypeError(
            "make_fragment_like needs an element type for this tensor, which has no elements", {"tensor": thing}
        )
    return register_tensor(thing.element_type if dtype is None else dtype, fragment_layout(thing.layout))


def make_tensor_like(thing: LayoutLike, dtype: DTypeLike | None = None) -> Tensor:
    """Make registers in the shape of a tensor; their layout is compact, with strides in the same order as the tensor's.

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


@overload
def recast_ptr(pointer: Pointer, dtype: DTypeLike) -> Pointer: ...
@overload
def recast_ptr(pointer: TmemPointer, dtype: DTypeLike) -> TmemPointer: ...
def recast_ptr(pointer: Pointer | TmemPointer, dtype: DTypeLike) -> Pointer | TmemPointer:
    """Return a pointer to the same address with elements of another type.

    Raises:
        InvalidTypeError: the argument is not a pointer.
        InvalidValueError: the pointer points inside a byte, but the new elements begin at whole bytes.

    >>> from cute_py.tensor import make_smem_ptr
    >>> print(recast_ptr(make_smem_ptr(1024, "half"), "uint128_t"))
    smem_ptr[128b](0x400)
    """
    if not has(pointer, "recast", "address"):
        raise wrong_type("recast_ptr takes a pointer", pointer)
    return pointer.recast(element_type(dtype))


def register_tensor(dtype: DTypeLike, layout: Layout) -> Tensor:
    """Make a tensor of registers. Its address is 0, because registers have no address."""
    return make_tensor(make_rmem_ptr(0, element_type(dtype)), layout)


def check_partitioned(part: LayoutLike, atom: MmaAtom, operand: str) -> None:
    """Refuse a tensor that is not a partition (V,M,N,...) of this operand, where V is the number of the atom's values.

    Raises:
        StaticAssertError: a condition of C++'s make_fragment_A, _B or _C fails.
    """
    expect(atom, MmaAtom, "the atom of a fragment")
    layout = domain_of(part)
    if int(rank(layout)) < 3:
        raise StaticAssertError("rank(tensor) >= Int<3>", {"partition": layout, "operand": operand})
    values = size(atom.layouts[operand][1])
    if size(layout[0]) != values:
        facts = {"partition": layout, f"values of {operand}": values, "atom": atom.name}
        raise StaticAssertError(f"size<0>(tensor) == size<1>(Layout{operand}_TV)", facts)


def make_fragment_C(atom: MmaAtom, part: LayoutLike) -> Tensor:
    """Make the accumulator for a partition of C: compact registers, or tensor memory.

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
    return register_tensor(stored_type(atom.c_dtype), Layout(shape))


def make_fragment_A(atom: MmaAtom, part: LayoutLike) -> Tensor:
    """Make the fragment for a partition of A: registers, descriptors, or tensor memory, as the instruction requires.

    >>> from cute_py.atom import make_tiled_mma
    >>> from cute_py.layout import Layout, LayoutRight
    >>> mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")
    >>> part = mma.get_slice(0).partition_A(Layout((Int(16), Int(16)), LayoutRight))
    >>> print(make_fragment_A(mma.atom, part).layout)
    ((_2,_2,_2),_1,_1):((_1,_2,_4),_0,_0)
    """
    return _make_operand(atom, part, "A")


def make_fragment_B(atom: MmaAtom, part: LayoutLike) -> Tensor:
    """Make the fragment for a partition of B: registers or descriptors, as the instruction requires.

    >>> from cute_py.atom.mma_atoms import mma_atom
    >>> from cute_py.layout import static
    >>> print(make_fragment_B(mma_atom("SM80_16x8x16_F32F16F16F32_TN"), static(Layout(((2, 2), 2, 4)))))
    ptr[16b]((nil)) o ((_2,_2),_2,_4):((_1,_2),_4,_8)
    """
    return _make_operand(atom, part, "B")


def _make_operand(atom: MmaAtom, part: LayoutLike, operand: str) -> Tensor:
    check_partitioned(part, atom, operand)
    kind = atom.fragment_type(operand)
    if kind.kind == "smem_desc":
        return descriptor_tensor(atom, kind, part)
    if kind.kind == "tmem":
        return tensor_memory_fragment(kind, part.shape)
    return register_tensor(
        stored_type(atom.types[operand]), fragment_layout(part.layout if isinstance(part, Tensor) else part)
    )


def descriptor_tensor(atom: MmaAtom, kind: FragmentType, part: LayoutLike) -> Tensor:
    """Make a tensor of descriptors for the tiles of an operand in shared memory, one for each instruction.

    Raises:
        StaticAssertError: the operand is not in shared memory, or no descriptor can express its layout.
    """
    name, make = ("GMMA", make_gmma_desc) if atom.arch == "sm90" else ("UMMA", make_umma_desc)
    if not isinstance(part, Tensor) or not isinstance(part.engine, Pointer) or part.engine.space != "smem":
        facts = {"partition": part, "atom": atom.name}
        raise StaticAssertError(f"Expected SMEM Tensor to construct a {name} Desc Tensor", facts)
    first = Tensor(part.engine, part.layout[0])
    descriptor = make(kind.parameters[0], first)
    units = recast(part, UINT128).layout
    return Tensor(DescriptorIterator(descriptor), replace(units, 0, make_layout(Int(1), Int(0))))
