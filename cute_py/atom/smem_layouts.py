"""Layouts of operands in shared memory that MMA instructions read through descriptors.

The smallest tile that a swizzle is made for is an atom: 8 rows of K, or 8 columns of M|N, as wide as the swizzle. In
bits, K-major on the left, MN-major on the right:

    INTER    Sw<0,4,3>  (8,128):(128,1)        (128,8):(1,128)
    SW32     Sw<1,4,3>  (8,256):(256,1)        (256,8):(1,256)
    SW64     Sw<2,4,3>  (8,512):(512,1)        (512,8):(1,512)
    SW128    Sw<3,4,3>  (8,1024):(1024,1)      (1024,8):(1,1024)
    SW128_32B  Sw<2,5,2>                       (1024,4):(1,1024)       of tcgen05 only

The atom of an element type is that, counted in elements. `tile_to_shape(atom, shape)` repeats it over a tile; the
selectors choose the widest atom that fits one, as CUTLASS's collective builders do.
Source: cute/atom/mma_traits_sm90_gmma.hpp, mma_traits_sm90_gmma_sparse.hpp, mma_traits_sm100.hpp;
cutlass/gemm/collective/builders/sm90_common.inl, sm100_common.inl.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Final, Literal

from cute_py.argument_checks import expect_choice, expect_integer
from cute_py.atom.element_types import element_type, type_text
from cute_py.atom.mma_atom import static_layout
from cute_py.dtypes import DType
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError, given
from cute_py.layout import (
    ComposedLayout,
    Layout,
    SmemPtrFlag,
    Swizzle,
    blocked_product,
    product,
    size,
    upcast,
)

Major = Literal["K", "MN"]

SWIZZLES: Final = {"INTER": 0, "SW32": 1, "SW64": 2, "SW128": 3}
"""Name of a swizzle -> its bits."""
_NAME: Final = re.compile(
    r"(?:(?:cute::)?(?:SM90::)?(GMMA|UMMA)::)?(?:Layout_)?(K|MN)_(INTER|SW\d+(?:_32B)?)(_Atom|_SpAtom)?(_Bits)?"
)


class SmemSparsePtrFlag(SmemPtrFlag):
    """C++'s smem_sparse_ptr_flag_bits<S, B>: a pointer not set yet to the stored elements of a sparse matrix.

    >>> print(SmemSparsePtrFlag(16, 0, 2))
    smem_sparse<2>_ptr[16b](unset)
    """

    sparsity: int

    def __new__(cls, bits: int = 1, offset: int = 0, sparsity: int = 2) -> SmemSparsePtrFlag:
        flag: Any = SmemPtrFlag.__new__(cls, bits, offset)
        flag.sparsity = expect_integer(sparsity, "the elements that one stored element stands for", 2)
        return flag  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return super().__str__().replace("smem_", f"smem_sparse<{self.sparsity}>_", 1)

    def __repr__(self) -> str:
        return f"SmemSparsePtrFlag({self.bits}, {int(self)}, {self.sparsity})"

    def __reduce__(self) -> Any:
        return (SmemSparsePtrFlag, (self.bits, int(self), self.sparsity))


@functools.lru_cache(maxsize=64)
def _bits_layout(major: Major, swizzle: str) -> tuple[Swizzle, Layout]:
    if swizzle == "SW128_32B":
        return Swizzle(2, 5, 2), static_layout((1024, 4), (1, 1024))
    bits = SWIZZLES[swizzle]
    width = 128 << bits
    layout = static_layout((8, width), (width, 1)) if major == "K" else static_layout((width, 8), (1, width))
    return Swizzle(bits, 4, 3), layout


@functools.lru_cache(maxsize=1024)
def _atom(major: Major, swizzle: str, bits: int, sparsity: int) -> ComposedLayout:
    moved, layout = _bits_layout(major, swizzle)
    inner = upcast(layout, bits) if bits > 1 else layout
    if sparsity > 1:
        inner = blocked_product(static_layout((1, sparsity), (0, 1)), inner)
        return ComposedLayout(moved, SmemSparsePtrFlag(bits, 0, sparsity), inner)
    return ComposedLayout(moved, SmemPtrFlag(bits), inner)


def _named_atom(name: str, dtype: Any, sparsity: int, family: str) -> ComposedLayout:
    if not isinstance(name, str):
        raise InvalidTypeError(f"the name of a layout is a text, got {type(name).__name__} {given(name)}")
    bare, bracket, argument = name.partition("<")
    found = _NAME.fullmatch(bare.strip())
    if found is None or (found[3] == "SW128_32B" and (found[2] == "K" or family == "GMMA")):
        known = [f"{m}_{s}" for m in ("K", "MN") for s in SWIZZLES] + ["MN_SW128_32B"] * (family == "UMMA")
        raise InvalidValueError(f"{given(name)} is no {family} layout atom", {"known": ", ".join(known)})
    if found[3] != "SW128_32B" and found[3] not in SWIZZLES:
        raise InvalidValueError(f"{given(name)}: no such swizzle", {"known": ", ".join(SWIZZLES)})
    if bracket and dtype is None:
        dtype, _, count = argument.rstrip("> ").partition(",")
        sparsity = int(count) if count.strip().isdigit() else sparsity
    if found[4] == "_SpAtom" and sparsity == 1:
        sparsity = 2
    bits = 1 if dtype is None or found[5] else element_type(dtype).bits
    return _atom("K" if found[2] == "K" else "MN", found[3], bits, expect_integer(sparsity, "the sparsity", 1))


def gmma_layout(name: str, dtype: Any = None, *, sparsity: int = 1) -> ComposedLayout:
    """The layout atom that wgmma reads.

    Args:
        name: `K_SW128`, `MN_INTER`, ..., or C++'s name `GMMA::Layout_K_SW128_Atom<half_t>`.
        dtype: element type; None counts in bits.
        sparsity: elements of a sparse A that one stored element stands for.
    Raises:
        InvalidValueError: no such layout, or an unknown type.

    >>> print(gmma_layout("K_SW128", "half_t"))
    Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)
    """
    return _named_atom(name, dtype, sparsity, "GMMA")


def umma_layout(name: str, dtype: Any = None, *, sparsity: int = 1) -> ComposedLayout:
    """The layout atom that tcgen05.mma reads: those of wgmma, and `MN_SW128_32B`.

    >>> print(umma_layout("MN_SW128_32B", "tfloat32_t"))
    Sw<2,5,2> o smem_ptr[32b](unset) o (_32,_4):(_1,_32)
    """
    return _named_atom(name, dtype, sparsity, "UMMA")


def _width(family: str, major: Major, swizzle: str, dtype: DType) -> int:
    """Elements of the contiguous mode of an atom."""
    layout = _atom(major, swizzle, dtype.bits, 1).inner
    return int(size(layout[0 if major == "MN" else 1]))


def _first(extent: Any, what: str) -> int:
    """size<0> of an extent: of an integer itself, of a tuple its first mode."""
    first = extent[0] if isinstance(extent, tuple) and extent else extent
    return expect_integer(product(first), what, 1)


def _select(
    family: str, major: Major, dtype: DType, extents: tuple[Any, Any], names: tuple[str, ...], whole_last: bool = False
) -> ComposedLayout:
    """The first of the named atoms whose width divides the extent of the contiguous mode."""
    mode = 0 if major == "MN" else 1
    label = "BLK_MN0" if mode == 0 else "BLK_K0"
    extent = _first(extents[mode], label)
    for name in names:
        last = name == names[-1]
        found = expect_integer(product(extents[mode]), label, 1) if last and whole_last else extent
        if found % _width(family, major, name, dtype) == 0:
            return _atom(major, name, dtype.bits, 1)
    shown = "BLK_MN" if whole_last and mode == 0 else label
    raise StaticAssertError(
        f"{shown} must be a multiple of size<{mode}>({family}::Layout_{major}_{names[-1]}_Atom<ElementType>{{}})",
        {
            label: extent,
            "element type": type_text(dtype),
            "widths": ", ".join(f"{n} {_width(family, major, n, dtype)}" for n in names),
        },
    )


def _checked(major: Major, dtype: Any, mn: Any, k: Any) -> tuple[DType, tuple[Any, Any]]:
    expect_choice(major, ("K", "MN"), "the major mode")
    for extent, label in ((mn, "BLK_MN0"), (k, "BLK_K0")):
        if _first(extent, label) % 8:
            raise StaticAssertError(f"{label} must be a multiple of 8.", {label: _first(extent, label)})
    return element_type(dtype), (mn, k)


_WIDEST_FIRST: Final = ("SW128", "SW64", "SW32", "INTER")


def ss_smem_selector(major: Major, dtype: Any, mn: Any, k: Any) -> ComposedLayout:
    """The widest atom that fits a tile which wgmma reads from shared memory.

    Args:
        major: 'K' or 'MN'. dtype: element type. mn, k: extents of the tile, in elements; of a tuple its first mode.
    Raises:
        StaticAssertError: no atom fits; the text is C++'s.

    >>> print(ss_smem_selector("K", "half_t", 128, 32))
    Sw<2,4,3> o smem_ptr[16b](unset) o (_8,_32):(_32,_1)
    """
    element, extents = _checked(major, dtype, mn, k)
    return _select("GMMA", major, element, extents, _WIDEST_FIRST, whole_last=major == "MN")


def rs_smem_selector(major: Major, dtype: Any, mn: Any, k: Any, *, transposed_b: bool = False) -> ComposedLayout:
    """The atom for a tile whose other operand is in registers: for 4-byte types MN-major, SW32 has no bank conflicts.

    Args:
        transposed_b: B is transposed in shared memory before wgmma reads it.
    Raises:
        StaticAssertError: no atom fits; the text is C++'s.

    >>> print(rs_smem_selector("MN", "float", 128, 32))
    Sw<1,4,3> o smem_ptr[32b](unset) o (_8,_8):(_1,_8)
    """
    element, extents = _checked(major, dtype, mn, k)
    if major == "K":
        return _select("GMMA", major, element, extents, _WIDEST_FIRST)
    stored = -(-element.bits // 8)
    if stored % 4 == 0:
        return _select("GMMA", major, element, extents, ("SW32",) if transposed_b else ("SW32", "INTER"))
    if stored not in (1, 2):
        raise StaticAssertError("Smem selector does not support this element type", {"type": type_text(element)})
    if stored == 1 and transposed_b:
        return _select("GMMA", major, element, extents, ("SW128",))
    return _select("GMMA", major, element, extents, _WIDEST_FIRST)


def sm100_smem_selector(major: Major, dtype: Any, mn: Any, k: Any) -> ComposedLayout:
    """The widest atom that fits a tile which tcgen05.mma reads from shared memory.

    Raises:
        StaticAssertError: no atom fits; the text is C++'s.

    >>> print(sm100_smem_selector("MN", "tfloat32_t", 64, 32))
    Sw<2,5,2> o smem_ptr[32b](unset) o (_32,_4):(_1,_32)
    """
    element, extents = _checked(major, dtype, mn, k)
    if major == "MN" and -(-element.bits // 8) == 4:
        atom = _atom("MN", "SW128_32B", element.bits, 1)
        if _first(mn, "BLK_MN0") % int(size(atom.inner[0])):
            raise StaticAssertError(
                "for mn-major tf32 operands, SW128_32B is the only available smem layout",
                {"BLK_MN0": _first(mn, "BLK_MN0"), "width": size(atom.inner[0])},
            )
        return atom
    return _select("UMMA", major, element, extents, _WIDEST_FIRST)
