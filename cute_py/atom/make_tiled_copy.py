"""Make tiled copies from thread and value layouts, from a tiled MMA or another copy to match, or from memory offsets.

    make_tiled_copy(atom, threads, values)        layouts place the threads, and the values of each thread, in the tile
    make_tiled_copy_A|B|C(atom, tiled_mma)        each thread copies its part of the MMA
    make_tiled_copy_C_atom(atom, tiled_mma)       the same, with one atom's values at a time
    make_tiled_copy_S|D(atom, tiled_copy)         the threads and values of another copy's source (destination)
    make_cotiled_copy(atom, layout_TV, data)      (thread, value) -> offset in the memory of `data`
    make_tmem_copy(atom, tensor)                  four warps over a tensor in tensor memory

Source: cute/atom/copy_atom.hpp; copy_traits_sm100.hpp (make_tmem_copy).
"""

from __future__ import annotations

from cute_py.argument_checks import expect
from cute_py.atom.copy_atom import CopyAtom
from cute_py.atom.copy_atoms import copy_atom
from cute_py.atom.fragments import lane_stride
from cute_py.atom.tiled_copy import TiledCopy
from cute_py.atom.tiled_mma import TiledMma
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError, given
from cute_py.layout import (
    Int,
    Layout,
    coalesce,
    composition,
    filter,
    is_static,
    left_inverse,
    make_layout,
    product_each,
    raked_product,
    right_inverse,
    size,
    static,
    upcast,
)
from cute_py.layout.arguments import Shape
from cute_py.tensor import Tensor, TmemPointer

_ONE = Layout(Int(1), Int(0))


def _typed(atom: str | CopyAtom) -> CopyAtom:
    found = copy_atom(atom)
    if found.dtype is None:
        text = f"a tiled copy needs an element type, but {found.name} only counts bits"
        raise InvalidTypeError(text, hint=f"copy_atom({found.name!r}, 'half_t') copies 16-bit elements")
    return found


def _layout(value: Layout | Shape, what: str) -> Layout:
    layout = value if isinstance(value, Layout) else Layout(value)
    if not is_static(layout):
        layout = static(layout)
    found = expect(layout, Layout, what)
    if is_static(found) and size(found) < 1:
        raise InvalidValueError(f"{what} is {found}, which is empty; must have at least 1 element")
    return found


def make_tiled_copy(
    atom: str | CopyAtom, thr_layout: Layout | Shape, val_layout: Layout | Shape | None = None
) -> TiledCopy:
    """Make a tiled copy from a layout of threads and a layout of each thread's values.

    Args:
        atom: a copy atom with its type.
        thr_layout: (m, n) -> thread index; a shape is column-major. val_layout: (m, n) -> value index; default: one
            value.
    Raises:
        InvalidValueError: a layout is empty.
        StaticAssertError: there are fewer threads or values than the atom has; the message is the text of C++'s
            static_assert.

    >>> from cute_py.atom.copy_atoms import copy_atom
    >>> copy = make_tiled_copy(copy_atom("UniversalCopy<uint128_t>", "half"), Layout((32, 4), (4, 1)), Layout((1, 8)))
    >>> print(copy.tile_shape(), copy.layout_TV)
    (Int(32), Int(32)) ((_4,_32),_8):((_256,_1),_32)
    """
    found = _typed(atom)
    threads, values = (
        _layout(thr_layout, "the layout of threads"),
        _ONE if val_layout is None else _layout(val_layout, "the layout of values"),
    )
    places = raked_product(threads, values)
    layout_tv = composition(right_inverse(places), Layout((size(threads), size(values))))
    return TiledCopy(found, layout_tv, product_each(places))


def make_tiled_copy_A(atom: str | CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Make a tiled copy where each thread copies its part of A in a tiled MMA.

    >>> from cute_py.atom.copy_atoms import copy_atom
    >>> from cute_py.atom.tiled_mma import make_tiled_mma
    >>> mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")
    >>> print(make_tiled_copy_A(copy_atom("SM75_U32x4_LDSM_N", "half"), mma).get_layoutS_TV())
    ((_16,_2),(_8,_1)):((_1,_128),(_16,_0))
    """
    mma = expect(tiled_mma, TiledMma, "the tiled MMA")
    return TiledCopy(_typed(atom), mma.get_layoutA_TV(), (mma.tile_size(0), mma.tile_size(2)))


def make_tiled_copy_B(atom: str | CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Make a tiled copy where each thread copies its part of B in a tiled MMA.

    >>> from cute_py.atom import copy_atom, make_tiled_mma
    >>> mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")
    >>> print(make_tiled_copy_B(copy_atom("SM75_U32x2_LDSM_N", "half_t"), mma).get_layoutS_TV())
    ((_8,_2,_2),(_8,_1)):((_1,_64,_0),(_8,_0))
    """
    mma = expect(tiled_mma, TiledMma, "the tiled MMA")
    return TiledCopy(_typed(atom), mma.get_layoutB_TV(), (mma.tile_size(1), mma.tile_size(2)))


def make_tiled_copy_C(atom: str | CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Make a tiled copy where each thread copies its part of C in a tiled MMA.

    >>> from cute_py.atom import copy_atom, make_tiled_mma
    >>> mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")
    >>> print(make_tiled_copy_C(copy_atom("UniversalCopy<uint32_t>", "half_t"), mma).get_layoutD_TV())
    ((_4,_8),(_2,_2)):((_32,_1),(_16,_8))
    """
    mma = expect(tiled_mma, TiledMma, "the tiled MMA")
    return TiledCopy(_typed(atom), mma.get_layoutC_TV(), (mma.tile_size(0), mma.tile_size(1)))


def make_tiled_copy_S(atom: str | CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:
    """Make a tiled copy with the threads and values of another copy's source.

    >>> from cute_py.atom import copy_atom
    >>> one = copy_atom("UniversalCopy<float>", "float")
    >>> rows = make_tiled_copy(one, Layout((Int(4), Int(8))))
    >>> print(make_tiled_copy_S(one, rows).tiler_mn)
    (Int(4), Int(8))
    """
    other = expect(tiled_copy, TiledCopy, "the tiled copy")
    return TiledCopy(_typed(atom), other.get_layoutS_TV(), other.tiler_mn)


def make_tiled_copy_D(atom: str | CopyAtom, tiled_copy: TiledCopy) -> TiledCopy:
    """Make a tiled copy with the threads and values of another copy's destination.

    >>> from cute_py.atom import copy_atom
    >>> one = copy_atom("UniversalCopy<float>", "float")
    >>> rows = make_tiled_copy(one, Layout((Int(4), Int(8))))
    >>> print(make_tiled_copy_D(one, rows).get_layoutD_TV())
    (_32,(_1,_1)):(_1,(_0,_0))
    """
    other = expect(tiled_copy, TiledCopy, "the tiled copy")
    return TiledCopy(_typed(atom), other.get_layoutD_TV(), other.tiler_mn)


def _extracted(atom: CopyAtom, layout_tv: Layout, shape: tuple[int, ...]) -> TiledCopy:
    """Make a tiled copy whose tile is the smallest part of `shape` that contains all elements of `layout_tv`."""
    tiler = []
    for mode in range(len(shape)):
        strides = tuple(Int(int(i == mode)) for i in range(len(shape)))
        tiler.append(filter(composition(Layout(shape, strides), layout_tv)))
    places = composition(Layout(shape), tuple(tiler))
    return TiledCopy(atom, composition(left_inverse(places), layout_tv), tuple(tiler))


def make_tiled_copy_C_atom(atom: str | CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
    """Make the smallest tiled copy that can retile C of a tiled MMA: each thread has one atom's values.

    Raises:
        StaticAssertError: the atom has more values than the MMA gives a thread.

    >>> from cute_py.atom.copy_atoms import copy_atom
    >>> from cute_py.atom.tiled_mma import make_tiled_mma
    >>> mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", (Int(2), Int(2)))
    >>> copy = make_tiled_copy_C_atom(copy_atom("UniversalCopy<uint32_t>", "half"), mma)
    >>> print(copy.layout_TV)
    ((_4,_8,_2,_2),_2):((_16,_1,_8,_64),_128)
    """
    mma, found = expect(tiled_mma, TiledMma, "the tiled MMA"), _typed(atom)
    whole = mma.get_layoutC_TV()
    values = Int(found.num_val_src)
    if int(values) > size(whole[1]):
        facts = {"values of the atom": values, "values of a thread": size(whole[1]), "operation": found.name}
        raise StaticAssertError("copy_V <= size<1>(layoutC_TV)", facts)
    layout_tv = composition(whole, Layout((size(whole[0]), values)))
    return _extracted(found, layout_tv, (mma.tile_size(0), mma.tile_size(1)))


def make_cotiled_copy(atom: str | CopyAtom, atom_layout_TV: Layout, data_layout: Layout) -> TiledCopy:
    """Make a tiled copy from a layout that gives the memory offset of each value of each thread.

    Args:
        atom_layout_TV: (thread, value) -> offset in the memory of `data_layout`.
        data_layout: the tensor's layout, coordinates -> offset.
    Raises:
        StaticAssertError: an offset does not occur in the data; the message is the text of C++'s static_assert.

    >>> from cute_py.atom.copy_atoms import copy_atom
    >>> data = static(Layout((8, 32), (32, 1)))
    >>> print(make_cotiled_copy(copy_atom("UniversalCopy<uint8_t>", "int8"), static(Layout((128, 2), (2, 1))), data))
    TiledCopy
      Tiler_MN:       (_8:_1,(_16,_2):(_2,_1))
      TiledLayout_TV: ((_16,_8),_2):((_8,_1),_128)
    Copy_Atom
      ThrID:        _1:_0
      ValLayoutSrc: (_1,_1):(_0,_1)
      ValLayoutDst: (_1,_1):(_0,_1)
      ValLayoutRef: (_1,_1):(_0,_1)
      ValueType:    8b
    <BLANKLINE>
    """
    found = _typed(atom)
    offsets = expect(atom_layout_TV, Layout, "the layout (thread, value) -> offset")
    data = expect(data_layout, Layout, "the layout of the data")
    for layout, name in ((offsets, "AtomTVLayout"), (data, "DataLayout")):
        if not is_static(layout):
            raise StaticAssertError(f"is_static<{name}>::value", {name: layout})
    reached = composition(make_layout(left_inverse(data), _ONE), offsets)
    back = coalesce(composition(make_layout(data, _ONE), reached[1]))
    if back != coalesce(offsets[1]):
        facts = {"values": offsets[1], "threads and values in the order of the data": back, "data": data}
        raise StaticAssertError("The memory pointed to by AtomTVLayout does not exist in the DataLayout.", facts)
    return _extracted(found, reached, product_each(data))


def make_tmem_copy(atom: str | CopyAtom, tensor: Tensor) -> TiledCopy:
    """Make a tiled copy for a tensor in tensor memory by four warps; each warp accesses its own 32 lanes.

    Args:
        atom: a tensor-memory copy, as a name or as an atom for values of the tensor's width.
        tensor: a tensor in tensor memory, such as `partition_fragment_C` returns.
    Raises:
        StaticAssertError: the tensor has another memory space or width, or the instruction does not cover its shape.

    >>> import cute_py as cute
    >>> mma = cute.make_tiled_mma("SM100_MMA_F16BF16_SS<half_t,half_t,float,128,256,K,K>")
    >>> acc = mma.get_slice(0).partition_fragment_C(cute.Layout((cute.Int(128), cute.Int(256))))
    >>> print(make_tmem_copy("SM100_TMEM_LOAD_32dp32b1x", acc).tiler_mn)
    (Layout((Int(4), Int(32)), (Int(32), Int(1))), Layout(Int(1), Int(0)), Layout(Int(1), Int(0)))
    """
    if not isinstance(tensor, Tensor) or not isinstance(tensor.engine, TmemPointer):
        raise StaticAssertError("Expected TMEM tensor.", {"got": given(tensor)})
    dtype = tensor.element_type
    found = copy_atom(atom)
    found = found if found.dtype is not None else copy_atom(found, dtype)
    if found.bits != dtype.bits:
        facts = {"atom": f"{found.bits} bits", "tensor": f"{dtype.bits} bits"}
        raise StaticAssertError("Expected a CopyAtom with the same type-width as the Tensor.", facts)
    if found.traits.val_id is None:
        raise InvalidTypeError(f"{found.name} does not copy tensor memory")
    threads = Layout((Int(32), Int(4)), (Int(0), Int(32 * lane_stride(dtype.bits))))
    values = coalesce(upcast(found.traits.val_id, dtype.bits))
    return make_cotiled_copy(found, make_layout(threads, values), tensor.layout)
