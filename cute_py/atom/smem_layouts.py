"""Shared-memory layouts of operands that MMA instructions read through descriptors.

A layout atom is the smallest tile that a swizzle acts on: 8 rows that extend along K, or 8 columns that extend along
M|N, each as long as the swizzle is wide. These are the atoms, counted in bits; K-major on the left, MN-major on the
right:

    INTER    Sw<0,4,3>  (8,128):(128,1)        (128,8):(1,128)
    SW32     Sw<1,4,3>  (8,256):(256,1)        (256,8):(1,256)
    SW64     Sw<2,4,3>  (8,512):(512,1)        (512,8):(1,512)
    SW128    Sw<3,4,3>  (8,1024):(1024,1)      (1024,8):(1,1024)
    SW128_32B  Sw<2,5,2>                       (1024,4):(1,1024)       of tcgen05 only

The atom for an element type is the same layout, counted in elements. `tile_to_shape(atom, shape)` repeats it over a
tile. Like CUTLASS's collective builders, the selectors choose the widest atom that fits a tile. `make_gmma_desc` and
`make_umma_desc` make the descriptor of the part of such a layout that one instruction reads, and fail with C++'s
condition for any other layout. `find_smem_operand` finds the major mode, the swizzle and the descriptors of a tile.
Source: cute/atom/mma_traits_sm90_gmma.hpp, mma_traits_sm90_gmma_sparse.hpp, mma_traits_sm100.hpp;
cutlass/gemm/collective/builders/sm90_common.inl, sm100_common.inl.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, Final, SupportsInt

from cute_py.argument_checks import expect_integer, is_integer, record
from cute_py.arith_tuple import text
from cute_py.atom.element_types import UINT128, cpp_type_text, element_type
from cute_py.atom.mma_atom import static_layout
from cute_py.atom.smem_descriptor import (
    ADDRESS_MASK,
    START_MASK,
    UNIT_BYTES,
    DescriptorKind,
    Major,
    SmemDescriptor,
    SmemSwizzle,
    as_kind,
    as_major,
    as_swizzle,
)
from cute_py.dtypes import DType, DTypeLike, as_dtype
from cute_py.errors import (
    InvalidTypeError,
    InvalidValueError,
    LayoutError,
    StaticAssertError,
    TmemError,
    given,
    unless_refused,
)
from cute_py.layout import (
    ComposedLayout,
    Int,
    Layout,
    SmemPtrFlag,
    Swizzle,
    blocked_product,
    coalesce,
    congruent,
    is_static,
    logical_divide,
    product,
    product_each,
    rank,
    size,
    static,
    tile_to_shape,
    tiled_divide,
    upcast,
)
from cute_py.layout.arguments import Leaf, Shape
from cute_py.layout.layout import LayoutLeft, Stride
from cute_py.layout.leaf import as_leaves
from cute_py.tensor import Pointer, Tensor, local_tile, make_smem_ptr, make_tensor, recast

SWIZZLES: Final = {"INTER": 0, "SW32": 1, "SW64": 2, "SW128": 3}
"""Name of a swizzle -> its bits."""
_NAME: Final = re.compile(
    r"(?:(?:cute::)?(?:SM90::)?(GMMA|UMMA)::)?(?:Layout_)?(K|MN)_(INTER|SW\d+(?:_32B)?)(_Atom|_SpAtom)?(_Bits)?"
)


class SmemSparsePtrFlag(SmemPtrFlag):
    """C++'s smem_sparse_ptr_flag_bits<S, B>: a placeholder for a pointer to the stored elements of a sparse matrix.

    >>> print(SmemSparsePtrFlag(16, 0, 2))
    smem_sparse<2>_ptr[16b](unset)
    """

    sparsity: int

    def __new__(cls, bits: int = 1, offset: int = 0, sparsity: int = 2) -> SmemSparsePtrFlag:
        flag: Any = SmemPtrFlag.__new__(cls, bits, offset)
        flag.sparsity = expect_integer(sparsity, "the elements that one stored element represents", 2)
        return flag  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return super().__str__().replace("smem_", f"smem_sparse<{self.sparsity}>_", 1)

    def __repr__(self) -> str:
        return f"SmemSparsePtrFlag({self.bits}, {int(self)}, {self.sparsity})"

    def __reduce__(self) -> tuple[type[SmemSparsePtrFlag], tuple[int, ...]]:  # type: ignore[override]
        return (SmemSparsePtrFlag, (self.bits, int(self), self.sparsity))


@functools.lru_cache(maxsize=64)
def _bits_layout(major: Major, swizzle: str) -> tuple[Swizzle, Layout]:
    if swizzle == "SW128_32B":
        return Swizzle(2, 5, 2), static_layout((1024, 4), (1, 1024))
    bits = SWIZZLES[swizzle]
    width = 128 << bits
    layout = static_layout((8, width), (width, 1)) if major is Major.K else static_layout((width, 8), (1, width))
    return Swizzle(bits, 4, 3), layout


@functools.lru_cache(maxsize=1024)
def _atom(major: Major, swizzle: str, bits: int, sparsity: int) -> ComposedLayout:
    moved, layout = _bits_layout(major, swizzle)
    inner = upcast(layout, bits) if bits > 1 else layout
    if sparsity > 1:
        inner = blocked_product(static_layout((1, sparsity), (0, 1)), inner)
        return ComposedLayout(moved, SmemSparsePtrFlag(bits, 0, sparsity), inner)
    return ComposedLayout(moved, SmemPtrFlag(bits), inner)


def _named_atom(name: str, dtype: DTypeLike | None, sparsity: int, family: str) -> ComposedLayout:
    if not isinstance(name, str):
        raise InvalidTypeError(f"the name of a layout must be a str, got {type(name).__name__} {given(name)}")
    bare, bracket, argument = name.partition("<")
    found = _NAME.fullmatch(bare.strip())
    if found is None or (found[3] == "SW128_32B" and (found[2] == "K" or family == "GMMA")):
        known = [f"{m}_{s}" for m in Major for s in SWIZZLES] + ["MN_SW128_32B"] * (family == "UMMA")
        raise InvalidValueError(f"{given(name)} is not a {family} layout atom", {"known": ", ".join(known)})
    if found[3] != "SW128_32B" and found[3] not in SWIZZLES:
        raise InvalidValueError(f"{given(name)} names an unknown swizzle", {"known": ", ".join(SWIZZLES)})
    if bracket and dtype is None:
        dtype, _, count = argument.rstrip("> ").partition(",")
        sparsity = int(count) if count.strip().isdigit() else sparsity
    if found[4] == "_SpAtom" and sparsity == 1:
        sparsity = 2
    bits = 1 if dtype is None or found[5] else element_type(dtype).bits
    return _atom(Major(found[2]), found[3], bits, expect_integer(sparsity, "the sparsity", 1))


def gmma_layout(name: str, dtype: DTypeLike | None = None, *, sparsity: int = 1) -> ComposedLayout:
    """Make a layout atom for an operand of wgmma.

    Args:
        name: `K_SW128`, `MN_INTER`, ..., or C++'s name `GMMA::Layout_K_SW128_Atom<half_t>`.
        dtype: the element type; with None, the layout counts bits.
        sparsity: the number of elements of a sparse A that one stored element represents.
    Raises:
        InvalidValueError: the layout does not exist, or the type is unknown.

    >>> print(gmma_layout("K_SW128", "half_t"))
    Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)
    """
    return _named_atom(name, dtype, sparsity, "GMMA")


def umma_layout(name: str, dtype: DTypeLike | None = None, *, sparsity: int = 1) -> ComposedLayout:
    """Make a layout atom for an operand of tcgen05.mma: an atom of wgmma, or `MN_SW128_32B`.

    >>> print(umma_layout("MN_SW128_32B", "tfloat32_t"))
    Sw<2,5,2> o smem_ptr[32b](unset) o (_32,_4):(_1,_32)
    """
    return _named_atom(name, dtype, sparsity, "UMMA")


def tile_to_mma_shape(
    atom: Layout | ComposedLayout, mma_tile_shape: Shape, order: Stride = LayoutLeft
) -> Layout | ComposedLayout:
    """Repeat a layout atom over the tile of an MMA: ((MMA_M, MMA_N), M_MMAs, N_MMAs, ...).

    C++'s `UMMA::tile_to_mma_shape`.

    Args:
        atom: a layout of rank 2, such as `umma_layout` returns.
        mma_tile_shape: ((MMA_M, MMA_N), M_MMAs, N_MMAs, ...): the extents of one instruction, its number of repetitions
            along each extent, and any other modes.
        order: the order of the modes of (M, N, ...), as in `tile_to_shape`.
    Raises:
        InvalidTypeError: the shape has another profile.
        StaticAssertError: `tile_to_shape` or `tiled_divide` refuses its arguments.

    >>> print(tile_to_mma_shape(umma_layout("K_SW128", "half_t"), ((Int(128), Int(16)), Int(1), Int(4))))
    Sw<3,4,3> o smem_ptr[16b](unset) o ((_128,_16),_1,_4):((_64,_1),_0,_16)
    """
    tile = as_leaves(mma_tile_shape)
    if type(tile) is not tuple or len(tile) < 3 or type(tile[0]) is not tuple or len(tile[0]) != 2:
        rule = "the tile of an MMA must be ((MMA_M, MMA_N), M_MMAs, N_MMAs, ...)"
        raise InvalidTypeError(f"{rule}, got {given(mma_tile_shape)}")
    extents: Any = (*zip(tile[0], tile[1:3], strict=True), *tile[3:])
    tiled: Any = tile_to_shape(atom, extents, order)
    return tiled_divide(tiled, product_each(tile[0]))  # type: ignore[no-any-return]


def _width(major: Major, swizzle: str, dtype: DType) -> int:
    """Return the number of elements along an atom's contiguous mode."""
    layout = _atom(major, swizzle, dtype.bits, 1).inner
    return int(size(layout[0 if major is Major.MN else 1]))


def _first(extent: Shape, what: str) -> int:
    """Return size<0> of an extent: an integer itself, or the product of a tuple's first mode."""
    first = extent[0] if isinstance(extent, tuple) and extent else extent
    return expect_integer(product(first), what, 1)


def _select(
    family: str,
    major: Major,
    dtype: DType,
    extents: tuple[Shape, Shape],
    names: tuple[str, ...],
    whole_last: bool = False,
) -> ComposedLayout:
    """Return the first of the named atoms whose width divides the extent of the contiguous mode."""
    mode = 0 if major is Major.MN else 1
    label = "BLK_MN0" if mode == 0 else "BLK_K0"
    extent = _first(extents[mode], label)
    for name in names:
        last = name == names[-1]
        found = expect_integer(product(extents[mode]), label, 1) if last and whole_last else extent
        if found % _width(major, name, dtype) == 0:
            return _atom(major, name, dtype.bits, 1)
    shown = "BLK_MN" if whole_last and mode == 0 else label
    raise StaticAssertError(
        f"{shown} must be a multiple of size<{mode}>({family}::Layout_{major}_{names[-1]}_Atom<ElementType>{{}})",
        {
            label: extent,
            "element type": cpp_type_text(dtype),
            "widths": ", ".join(f"{n} {_width(major, n, dtype)}" for n in names),
        },
    )


def _checked(major: Major | str, dtype: DTypeLike, mn: Shape, k: Shape) -> tuple[Major, DType, tuple[Shape, Shape]]:
    for extent, label in ((mn, "BLK_MN0"), (k, "BLK_K0")):
        if _first(extent, label) % 8:
            raise StaticAssertError(f"{label} must be a multiple of 8.", {label: _first(extent, label)})
    return as_major(major), element_type(dtype), (mn, k)


_WIDEST_FIRST: Final = ("SW128", "SW64", "SW32", "INTER")


def ss_smem_selector(major: Major | str, dtype: DTypeLike, mn: Shape, k: Shape) -> ComposedLayout:
    """Select the widest atom that fits a tile in shared memory, if wgmma reads both operands from there.

    Args:
        major: 'K' or 'MN'. dtype: element type. mn, k: extents of the tile, in elements; for a tuple, only the first
            mode is used.
    Raises:
        StaticAssertError: no atom fits the tile.

    >>> print(ss_smem_selector("K", "half_t", 128, 32))
    Sw<2,4,3> o smem_ptr[16b](unset) o (_8,_32):(_32,_1)
    """
    major, element, extents = _checked(major, dtype, mn, k)
    return _select("GMMA", major, element, extents, _WIDEST_FIRST, whole_last=major is Major.MN)


def rs_smem_selector(
    major: Major | str, dtype: DTypeLike, mn: Shape, k: Shape, *, transposed_b: bool = False
) -> ComposedLayout:
    """Select the widest atom that fits a tile in shared memory, if the other operand is in registers.

    For MN-major 4-byte types, prefer SW32, which avoids bank conflicts.

    Args:
        transposed_b: B is transposed in shared memory before wgmma reads it.
    Raises:
        StaticAssertError: no atom fits the tile.

    >>> print(rs_smem_selector("MN", "float", 128, 32))
    Sw<1,4,3> o smem_ptr[32b](unset) o (_8,_8):(_1,_8)
    """
    major, element, extents = _checked(major, dtype, mn, k)
    if major is Major.K:
        return _select("GMMA", major, element, extents, _WIDEST_FIRST)
    stored = -(-element.bits // 8)
    if stored % 4 == 0:
        return _select("GMMA", major, element, extents, ("SW32",) if transposed_b else ("SW32", "INTER"))
    if stored not in (1, 2):
        raise StaticAssertError("Smem selector does not support this element type", {"type": cpp_type_text(element)})
    if stored == 1 and transposed_b:
        return _select("GMMA", major, element, extents, ("SW128",))
    return _select("GMMA", major, element, extents, _WIDEST_FIRST)


def sm100_smem_selector(major: Major | str, dtype: DTypeLike, mn: Shape, k: Shape) -> ComposedLayout:
    """Select the widest atom that fits a tile that tcgen05.mma reads from shared memory.

    Raises:
        StaticAssertError: no atom fits the tile.

    >>> print(sm100_smem_selector("MN", "tfloat32_t", 64, 32))
    Sw<2,5,2> o smem_ptr[32b](unset) o (_32,_4):(_1,_32)
    """
    major, element, extents = _checked(major, dtype, mn, k)
    if major is Major.MN and -(-element.bits // 8) == 4:
        atom = _atom(Major.MN, "SW128_32B", element.bits, 1)
        if _first(mn, "BLK_MN0") % int(size(atom.inner[0])):
            facts = {"BLK_MN0": _first(mn, "BLK_MN0"), "width": size(atom.inner[0])}
            raise StaticAssertError("for mn-major tf32 operands, SW128_32B is the only available smem layout", facts)
        return atom
    return _select("UMMA", major, element, extents, _WIDEST_FIRST)


def _units(tensor: Tensor, family: str) -> tuple[Pointer, Swizzle, Layout]:
    """Return the pointer of a shared-memory tensor, the pointer's swizzle, and the layout in 16-byte units."""
    if not isinstance(tensor, Tensor):
        raise InvalidTypeError(f"a descriptor needs a tensor, got {type(tensor).__name__} {given(tensor)}")
    engine = tensor.engine
    if not isinstance(engine, Pointer) or engine.space != "smem":
        raise StaticAssertError(f"{family} Descriptors can only be constructed on smem.", {"tensor": tensor})
    if int(rank(tensor.layout)) != 2:
        raise StaticAssertError(f"{family} Descriptors can only be constructed on rank-2 tensors.", {"tensor": tensor})
    units = recast(tensor, UINT128)
    if not isinstance(units.layout, Layout):
        raise StaticAssertError("Unsupported layout swizzle", {"tensor": tensor})
    return engine, engine.swizzle or Swizzle(0, 4, 3), units.layout


def _canonical(layout: Layout, tiler: tuple[Layout, Layout], name: str) -> tuple[Layout, tuple[Any, Any]]:
    """Divide a layout into the units that an instruction steps through; return it and its strides ((a,b),(c,d))."""
    divided = logical_divide(layout, tiler)
    if not congruent(divided.shape, ((1, 1), (1, 1))):
        facts = {"layout in 16-byte units": layout, "divided": divided}
        raise StaticAssertError(f"Not a canonical {name} Layout: Expected profile failure.", facts)
    return divided, divided.stride  # type: ignore[return-value]


def _expect_stride(found: Leaf, expected: int, name: str, divided: Layout) -> None:
    if not isinstance(found, Int) or int(found) != expected:
        facts = {"divided": divided, "stride": found, "expected": expected}
        raise StaticAssertError(f"Not a canonical {name} Layout: Expected stride failure.", facts)


def _field(value: SupportsInt) -> int:
    """Truncate a stride in 16-byte units to the width of its descriptor field."""
    return int(value) & START_MASK


def _is_one_of(extent: Leaf, allowed: tuple[int, ...]) -> bool:
    """Return whether an extent is static and in `allowed`. As in C++, a run-time extent never equals a static one."""
    return isinstance(extent, Int) and extent in allowed


def _expect_eights(layout: Layout, family: str) -> None:
    extent = size(layout[0])
    if not isinstance(extent, Int) or extent % 8:
        why = f"Not a canonical {family}_K Layout: Expected MN-size multiple of 8."
        raise StaticAssertError(why, {"MN-size": text(extent)})


def _expect_static(strides: tuple[Leaf, ...], name: str, divided: Layout) -> None:
    """Refuse run-time strides, because C++ reads the strides at compile time."""
    if not all(isinstance(found, Int) for found in strides):
        facts = {"divided": divided, "rule": "static strides"}
        raise StaticAssertError(f"Not a canonical {name} Layout: Expected stride failure.", facts)


def _offsets(major: Major, layout: Layout, width: int, depth: int, plain: bool, name: str) -> tuple[int, int]:
    """Return (LBO, SBO) of an operand, in 16-byte units."""
    if major is Major.MN:
        divided, ((s00, s01), (s10, s11)) = _canonical(layout, (_by(width), _by(depth)), name)
        read = (s01, s10, s11)
        _expect_static(read if name.startswith("UMMA") else (s00, *read), name, divided)  # UMMA's unit tile is 1:0
        if not plain:
            _expect_stride(s00, 1, name, divided)
        _expect_stride(s10, width, name, divided)
        return (_field(s11), _field(s01)) if plain else (_field(s01), _field(s11))
    divided, ((s00, s01), (s10, _)) = _canonical(layout, (_by(8), _by(2)), name)
    _expect_static((s00, s01, s10), name, divided)
    _expect_stride(s00, width, name, divided)
    if not plain:
        _expect_stride(s10, 1, name, divided)
    return _field(s10), _field(s01)


@functools.lru_cache(maxsize=16)
def _by(count: int) -> Layout:
    return Layout(Int(count), Int(1))


def _umma_swizzle(swizzle: Swizzle) -> SmemSwizzle:
    facts = {"swizzle": swizzle}
    if swizzle.base == 4:
        if swizzle.shift != 3:
            raise StaticAssertError("Expected S = 3 when M == 4. Unsupported layout swizzle.", facts)
        if swizzle.bits > 3:
            raise StaticAssertError("Expected B = 0,1,2, or 3 when M == 4. Unsupported layout swizzle.", facts)
        return SmemSwizzle(swizzle.bits)
    if swizzle.base != 5:
        raise StaticAssertError("Only 16B and 32B Atoms are supported for UMMA. Unsupported layout swizzle.", facts)
    if swizzle.bits != 2:
        raise StaticAssertError("Expected B = 2 when M == 5. Unsupported layout swizzle.", facts)
    if swizzle.shift != 2:
        raise StaticAssertError("Expected S = 2 when M == 5. Unsupported layout swizzle.", facts)
    return SmemSwizzle.B128_ATOM32


def _hinting_static(
    describe: Callable[[Major, Tensor], SmemDescriptor], major: Major, tensor: Tensor
) -> SmemDescriptor:
    """Make a descriptor. If it fails only because sizes or strides are run-time, the error suggests static ones."""
    try:
        return describe(major, tensor)
    except StaticAssertError as error:
        layout = getattr(tensor, "layout", None)
        if not isinstance(layout, Layout) or is_static(layout):
            raise
        made = unless_refused(lambda: describe(major, make_tensor(tensor.engine, static(layout))))
        if made is None:
            raise
        hint = f"plain ints are run-time; with cute.static(tensor.layout), the descriptor is {made.encode():#x}"
        raise StaticAssertError(error.headline, error.facts, hint) from None


def make_gmma_desc(major: Major | str, tensor: Tensor) -> SmemDescriptor:
    """Make the 64-bit descriptor of an operand's tile for one wgmma instruction.

    Args:
        major: 'K' or 'MN', the contiguous mode.
        tensor: the tile (M|N, K) of one instruction, in shared memory, with the swizzle on its pointer.
    Returns:
        a `SmemDescriptor`; `.encode()` returns its bits, and `.explain(major)` describes them.
    Raises:
        StaticAssertError: the tensor is not in shared memory, or its layout is not canonical.

    >>> from cute_py.layout import tile_to_shape
    >>> layout = tile_to_shape(gmma_layout("K_SW128", "half_t"), (Int(64), Int(64)))
    >>> tile = local_tile(make_tensor(make_smem_ptr(1024, "half"), layout), (Int(64), Int(16)), (0, 1))
    >>> print(make_gmma_desc("K", tile))
    0x4000004000010042
    """
    return _hinting_static(_gmma_desc, as_major(major), tensor)


def _gmma_desc(major: Major, tensor: Tensor) -> SmemDescriptor:
    pointer, swizzle, layout = _units(tensor, "GMMA")
    if swizzle.base != 4 or swizzle.shift != 3 or not 0 <= swizzle.bits <= 3:
        raise StaticAssertError("Unsupported layout swizzle", {"swizzle": swizzle})
    bits = tensor.element_type.bits
    if major is Major.MN:
        allowed = (256 // bits, 128 // bits, 512 // bits)
        if not _is_one_of(size(layout[1]), allowed):
            raise StaticAssertError(
                "Not a canonical GMMA_MN Layout: Expected K-size 256/sizeof_bits<T> for dense or "
                "(128|512)/sizeof_bits<T> for sparse.",
                {"K-size": text(size(layout[1])), "element": f"{bits} bits"},
            )
    else:
        _expect_eights(layout, "GMMA")
        if not _is_one_of(size(layout[1]), (2, 4)):
            why = "Not a canonical GMMA_K Layout: Expected K-size 2 for dense or 4 for sparse (in units of uint128_t)."
            raise StaticAssertError(why, {"K-size": text(size(layout[1]))})
    lbo, sbo = _offsets(major, layout, 1 << swizzle.bits, 8, swizzle.bits == 0, f"GMMA_{major}")
    return SmemDescriptor(_field(pointer.address >> 4), lbo, sbo, SmemSwizzle(swizzle.bits), DescriptorKind.WGMMA)


def make_umma_desc(major: Major | str, tensor: Tensor) -> SmemDescriptor:
    """Make the 64-bit descriptor of an operand's tile for one tcgen05.mma instruction.

    For the arguments and errors, see `make_gmma_desc`. The swizzle with 32-byte atoms (SW128_32B) is supported too.

    >>> from cute_py.layout import tile_to_shape
    >>> layout = tile_to_shape(umma_layout("K_SW128", "half_t"), (Int(128), Int(64)))
    >>> print(make_umma_desc("K", make_tensor(make_smem_ptr(1024, "half"), layout)))
    0x4000404000010040
    """
    return _hinting_static(_umma_desc, as_major(major), tensor)


def _umma_desc(major: Major, tensor: Tensor) -> SmemDescriptor:
    pointer, swizzle, layout = _units(tensor, "UMMA")
    mode = _umma_swizzle(swizzle)
    base32 = mode is SmemSwizzle.B128_ATOM32
    if major is Major.K:
        if base32:
            raise StaticAssertError("SWIZZLE_128B_BASE32B is invalid for Major-K", {"swizzle": swizzle})
        _expect_eights(layout, "UMMA")
    width = 8 if base32 else 1 << swizzle.bits
    lbo, sbo = _offsets(major, layout, width, 4 if base32 else 8, mode is SmemSwizzle.NONE, f"UMMA_{major}")
    return SmemDescriptor(_field(pointer.address >> 4), lbo, sbo, mode)


@record
class SmemOperand:
    """An operand's tile in shared memory, as the tensor core reads it.

    Args:
        leading, stride: offsets in 16-byte units, as in the descriptors.
        starts: where the tile of each instruction along K starts, in 16-byte units from the start of the buffer.

    >>> import cute_py as cute
    >>> found = find_smem_operand(cute.tma.make_smem_layout("K", "128B", "float16", (128, 64)), "float16")
    >>> found.stride, found.starts
    (64, (0, 2, 4, 6))
    """

    major: Major
    swizzle: SmemSwizzle
    kind: DescriptorKind
    leading: int
    stride: int
    starts: tuple[int, ...]

    def descriptor(self, address: int = 0, block: int = 0) -> SmemDescriptor:
        """Return the descriptor of instruction number `block` along K, for a buffer at shared-memory `address` (bytes).

        Raises:
            TmemError: the buffer is not aligned to the period of the swizzle.
        """
        address = expect_integer(address, "address", 0, unit="bytes")
        block = expect_integer(block, "block", 0, len(self.starts) - 1)
        if address % self.swizzle.period:
            raise TmemError(f"the shared buffer at address {address} must start at a multiple of {self.swizzle.period}")
        start = (address // UNIT_BYTES + self.starts[block]) & START_MASK
        return SmemDescriptor(start, self.leading, self.stride, self.swizzle, self.kind)


def find_smem_operand(
    layout: Layout | ComposedLayout,
    dtype: DTypeLike,
    *,
    kind: DescriptorKind | str = DescriptorKind.TCGEN05,
    major: Major | str | None = None,
    swizzle: SmemSwizzle | int | str | None = None,
) -> SmemOperand:
    """Find the major mode, swizzle and offsets of an operand's tile (MN, K), which has a descriptor per 32 bytes of K.

    The swizzle of a composed layout acts on elements, as in `Sw<3,3,3> o 0 o layout` for 16-bit elements, or on bytes
    if the offset is `smem_ptr_flag(bits)`, as in `gmma_layout` and `cute.tma.make_smem_layout`. Run-time numbers are
    treated as static.

    Raises:
        TmemError: no descriptor describes the tile; the message quotes C++'s condition for each major mode that was
            tried.
        InvalidTypeError: an argument is not a layout, element type, descriptor kind, major mode or swizzle.

    >>> tile = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((128, 64), (64, 1)))
    >>> found = find_smem_operand(tile, "bfloat16")
    >>> found.major.value, found.swizzle.name, found.stride, found.starts
    ('K', 'B128', 64, (0, 2, 4, 6))
    """
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise InvalidTypeError(f"expected a Layout or a ComposedLayout, got {type(layout).__name__} {given(layout)}")
    kind, row = as_kind(kind), as_dtype(dtype)
    majors = list(Major) if major is None else [as_major(major)]
    wanted = None if swizzle is None else as_swizzle(swizzle)
    memory = _memory(layout, row)
    tried: dict[str, object] = {}
    for one in majors:
        try:
            return _operand(memory, one, kind, wanted)
        except (LayoutError, TmemError) as error:
            tried[f"{one.value}-major"] = error.headline
    raise TmemError("the tile has no canonical layout, so no matrix descriptor describes it", tried)


def _memory(layout: Layout | ComposedLayout, dtype: DType) -> Tensor:
    """Return a static tensor with this layout at shared-memory address 0; its pointer has the swizzle, on bytes."""
    inner: Any = layout
    moved, start = Swizzle(0, 4, 3), 0
    if dtype.bits < 1 or 128 % dtype.bits:
        raise TmemError(f"an element has {dtype.bits} bits, but 16 bytes must hold a whole number of elements")
    if isinstance(layout, ComposedLayout):
        plain = isinstance(layout.inner, Layout) and is_integer(layout.offset)
        if not plain or not isinstance(layout.outer, Swizzle):
            raise TmemError("an operand must be a layout, or a swizzle composed with a layout", {"layout": layout})
        inner, moved, start = layout.inner, layout.outer, expect_integer(layout.offset, "the offset of the layout", 0)
        if not isinstance(layout.offset, SmemPtrFlag):
            moved = Swizzle(moved.bits, moved.base + dtype.bits.bit_length() - 4, moved.shift)
        elif layout.offset.bits != dtype.bits:
            raise TmemError(f"{dtype} has {dtype.bits} bits, but the layout has {layout.offset.bits}-bit elements")
    if int(rank(inner)) != 2:
        raise TmemError(f"an operand must have two modes, MN and K; the layout has {int(rank(inner))}")
    inner = coalesce(static(inner), (1, 1))
    if not is_static(inner):
        raise TmemError("the extents and strides of an operand must be known numbers", {"layout": layout})
    return make_tensor(make_smem_ptr(start * dtype.bits // 8, dtype, moved), inner)


def _operand(memory: Tensor, major: Major, kind: DescriptorKind, wanted: SmemSwizzle | None) -> SmemOperand:
    """Return the operand. Refuse it unless all its instructions have the same LBO and SBO."""
    make = make_umma_desc if kind is DescriptorKind.TCGEN05 else make_gmma_desc
    depth = 2 * 8 * UNIT_BYTES // memory.element_type.bits
    mn, k = (int(size(memory.layout[mode])) for mode in (0, 1))
    if not k or k % depth or mn * k * depth > (ADDRESS_MASK + 1) * 2 * 8 * UNIT_BYTES:
        raise TmemError(
            f"the operand has {mn} x {k} elements; K must be a multiple of {depth} (32 bytes), and the operand "
            "must have at most 256 KiB"
        )
    if int(size(recast(memory, UINT128).layout)) * depth != mn * k * 2:  # C++ does not check this
        raise TmemError("the elements of a 16-byte unit are not contiguous", {"layout": memory.layout})
    found = [make(major, local_tile(memory, (Int(mn), Int(depth)), (0, block))) for block in range(k // depth)]
    first = found[0]
    if wanted not in (None, first.swizzle):
        raise TmemError(f"the swizzle of the layout is {first.swizzle.name}; must be {wanted.name}")
    for block, one in enumerate(found):
        if (one.leading, one.stride) != (first.leading, first.stride):
            raise TmemError(
                f"instruction {block} along K has LBO {one.leading} and SBO {one.stride} (16-byte units); must "
                f"have {first.leading} and {first.stride}, like the first instruction"
            )
    return SmemOperand(major, first.swizzle, kind, first.leading, first.stride, tuple(one.start for one in found))
