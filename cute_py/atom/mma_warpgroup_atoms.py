"""MMA atoms of a warpgroup (SM90): wgmma, dense and sparse, including the sizes of N that CuTe calls extended.

    SM90_64x128x16_F32BF16BF16_SS<K,MN>     A and B through descriptors, A K-major, B MN-major
    SM90_64x128x16_F32BF16BF16_RS<K,K>      A in registers
    SM90::GMMA::SPARSE::GMMA_64x128x32_F32BF16BF16_SS<K,K>    half of A stored, its metadata in a register

A warpgroup has 4 warps of 16 rows each. Its C is therefore the fragment of one warp, with a mode for the warps after
the rows, repeated N / 8 times:

    C  ((4,8,4),(2,2,N/8)):((128,1,16),(64,8,512))        A from registers  ((4,8,4),(V,2,2)), V = K / 8

An operand in shared memory belongs to all 128 threads as a whole: (128,(M,K)):(0,(1,M)).
Source: cute/atom/mma_traits_sm90_gmma{,_ext,_sparse,_sparse_ext}.hpp.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Final

from cute_py.atom.element_types import ElementType, SparseElement
from cute_py.atom.mma_atom import FragmentType, MmaAtom, MmaOperation, make_mma_atom, static_layout
from cute_py.atom.mma_register_atoms import ptx_type, short_type
from cute_py.atom.template_name import Arguments, Parameter, static_assert
from cute_py.dtypes import as_dtype
from cute_py.layout import Layout

NATURAL_N: Final = (8, 16, 32, 64, 96, 128, 192, 256)
"""N of the forms that CuTe always has."""
EXTENDED_N: Final = tuple(n for n in range(8, 257, 8) if n not in NATURAL_N)
"""N of the forms behind CUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED."""
INTEGER_N: Final = (24, 48, 80, 112, 144, 160, 176, 208, 224, 240)
"""The extended N that integer forms have."""

_WARPGROUP: Final = static_layout(128, 1)
_FLOATS: Final = (
    ("F16", "F16", "F16"),
    ("F32", "F16", "F16"),
    ("F32", "BF16", "BF16"),
    ("F32", "TF32", "TF32"),
    *((c, a, b) for a in ("E4M3", "E5M2") for b in ("E4M3", "E5M2") for c in ("F16", "F32")),
)
_INTEGERS: Final = tuple(("S32", a, b) for a in ("S8", "U8") for b in ("S8", "U8"))
_SCALES: Final = (Parameter("scaleA", "ScaleIn", "One", "GMMA"), Parameter("scaleB", "ScaleIn", "One", "GMMA"))
_MAJORS: Final = (Parameter("tnspA", "Major", "K", "GMMA"), Parameter("tnspB", "Major", "K", "GMMA"))
_SELECTOR: Final = Parameter("spsel", "SparseSel", "Zero", "GMMA")


def accumulator_layout(n: int) -> Layout:
    """Return the layout (thread, value) -> m + 64 * n of a warpgroup's accumulator.

    >>> print(accumulator_layout(16))
    ((_4,_8,_4),(_2,_2,_2)):((_128,_1,_16),(_64,_8,_512))
    """
    return static_layout(((4, 8, 4), (2, 2, n // 8)), ((128, 1, 16), (64, 8, 512)))


def register_a_layout(k: int) -> Layout:
    """Return the layout (thread, value) -> m + 64 * k of A in registers.

    >>> print(register_a_layout(16), register_a_layout(8))
    ((_4,_8,_4),(_2,_2,_2)):((_128,_1,_16),(_64,_8,_512)) ((_4,_8,_4),(_2,_2)):((_64,_1,_16),(_8,_256))
    """
    piece = k // 8
    modes = [m for m in ((piece, 64), (2, 8), (2, 256 * piece)) if m != (1, 64)]
    shape, stride = zip(*modes, strict=True)
    return static_layout(((4, 8, 4), shape), ((64 * piece, 1, 16), stride))


def shared_layout(extent: int, k: int) -> Layout:
    """Return the layout (thread, value) -> index for an operand in shared memory: each thread has all elements.

    >>> print(shared_layout(64, 16))
    (_128,(_64,_16)):(_0,(_1,_64))
    """
    return static_layout((128, (extent, k)), (0, (1, extent)))


_METADATA: Final = {
    16: static_layout(((2, 2, 8, 4), (8, 2)), ((512, 0, 1, 16), (64, 8))),
    32: static_layout(((2, 2, 8, 4), (16, 2)), ((1024, 0, 1, 16), (64, 8))),
    64: static_layout(((2, 2, 8, 4), (32,)), ((8, 2048, 1, 16), (64,))),
}
"""K -> (thread, value) -> m + 64 * k of a sparse A's metadata."""


def _gmma(operation: MmaOperation, values: Arguments) -> MmaAtom:
    n, k, (c, a, b), from_registers, sparse, ptx = operation.details
    a_major, b_major = values.get("tnspA", "K"), values.get("tnspB", "K")
    if from_registers:
        static_assert(
            a_major == "K",
            "Register source operand A must have K major layout.",
            lambda: {"operation": operation.name, "tnspA": a_major},
        )
    element, sums = short_type(a), short_type(c)
    types: dict[str, ElementType] = {"A": element, "B": short_type(b), "C": sums, "D": sums}
    layouts = {
        "A": register_a_layout(k) if from_registers else shared_layout(64, k),
        "B": shared_layout(n, k),
        "C": accumulator_layout(n),
    }
    fragments = {"B": FragmentType("smem_desc", "smem_desc", (b_major,))}
    if not from_registers:
        fragments["A"] = FragmentType("smem_desc", "smem_desc", (a_major,))
    words = n // 2 if c != "F16" else n // 4
    registers = {
        "A": (4, "uint32") if from_registers else (1, "uint64"),
        "B": (1, "uint64"),
        "C": (words, "float32" if c == "F32" else "uint32"),
        "D": (0, "void"),
    }
    if sparse:
        types["A"] = SparseElement(2, element)
        types["E"] = SparseElement(4 if a == "TF32" else 8, as_dtype("uint8"))
        layouts["E"] = _METADATA[k]
        registers["E"] = (1, "uint32")
    held, header = (_WARPGROUP, layouts, types, registers), f"mma_traits_{operation.family}"
    return make_mma_atom(operation, values, (64, n, k), *held, ptx, header, fragments=fragments)


def _rows(n: int, letters: tuple[str, str, str], sparse: bool, family: str) -> Iterator[MmaOperation]:
    """Yield the operations with this N and these types: A from shared memory or registers, saturating or not."""
    c, a, b = letters
    bits = short_type(a).bits
    k = 256 // bits * (2 if sparse else 1)
    integer = c == "S32"
    parameters: tuple[Parameter, ...] = () if integer else _SCALES
    parameters = (*_MAJORS, *parameters) if bits == 16 else parameters
    parameters = (*parameters, _SELECTOR) if sparse else parameters
    form = "mma_async.sp" if sparse else "mma_async"
    types = ".".join(map(ptx_type, letters))
    ptx = f"wgmma.{form}.sync.aligned.m64n{n}k{k}.{types}"
    for operands in ("SS", "RS"):
        for suffix in ("", "_SATURATE") if integer else ("",):
            core = f"64x{n}x{k}_{c}{a}{b}_{operands}{'' if bits == 16 else '_TN'}{suffix}"
            full = ptx + (".satfinite" if suffix else "")
            details = (n, k, letters, operands == "RS", sparse, full)
            if sparse:
                space = "SM90::GMMA::SPARSE::"
                yield MmaOperation(f"GMMA_{core}", "sm90", family, _gmma, parameters, (), details, space)
            else:
                aliases = (f"SM90::GMMA::MMA_{core}", f"MMA_{core}")
                yield MmaOperation(f"SM90_{core}", "sm90", family, _gmma, parameters, (), details, "", aliases)


@functools.cache
def warpgroup_operations() -> tuple[MmaOperation, ...]:
    """Every wgmma operation of CuTe."""
    found: list[MmaOperation] = []
    for sparse in (False, True):
        for natural in (True, False):
            family = f"sm90_gmma{'_sparse' if sparse else ''}{'' if natural else '_ext'}"
            for letters in (*_FLOATS, *_INTEGERS):
                integer = letters[0] == "S32"
                extents = NATURAL_N if natural else INTEGER_N if integer else EXTENDED_N
                for n in extents:
                    found.extend(_rows(n, letters, sparse, family))
    return tuple(found)
