"""Element types of atoms, and their names in CuTe C++.

The elements of an operand have a plain type (`half_t`), a complex type (`complex<tfloat32_t>`), or the type of a sparse
matrix's stored elements: one `sparse_elem<2, half_t>` represents two elements of the matrix, and stores one of them.

    C++ source                       here                             recorded text
    half_t                           DType('float16')                 float16
    cutlass::complex<half_t>         COMPLEX_HALF                     complex_float16
    sparse_elem<8, uint8_t>          SparseElement(8, uint8)          sparse_elem<8,uint8>
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from cute_py.dtypes import DType, as_dtype


@dataclass(frozen=True, slots=True)
class SparseElement:
    """The type of a stored element of a sparse matrix, which represents `ratio` elements of the matrix.

    >>> print(SparseElement(2, as_dtype("half_t")))
    sparse_elem<2,float16>
    """

    ratio: int
    stored: DType

    @property
    def bits(self) -> int:
        """Width of one stored element in bits."""
        return self.stored.bits

    @property
    def name(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return f"sparse_elem<{self.ratio},{cpp_type_text(self.stored)}>"


ElementType: TypeAlias = DType | SparseElement


def stored_type(element: ElementType) -> DType:
    """Return the type of the stored values: the type itself, or for a sparse element, the type of its values."""
    return element.stored if isinstance(element, SparseElement) else element


COMPLEX_HALF: Final = DType("complex_float16", 32, "complex", "complex64")
COMPLEX_BFLOAT: Final = DType("complex_bfloat16", 32, "complex", "complex64")
COMPLEX_TF32: Final = DType("complex_tfloat32", 64, "complex", "complex64")
GAUSS_COMPLEX: Final = DType("gauss_complex128", 192, "complex", "complex128")
"""The accumulator of a complex product that is computed from three real products: real part, imaginary part and their
sum."""
UE4M3: Final = DType("float8_ue4m3", 8, "float", "float8_e4m3fn")
"""A scale factor: e4m3 without a sign."""
UINT128: Final = as_dtype("uint128")
"""Element type of a 16-byte copy. numpy has no such integer; a complex of two doubles has the same size."""
FLOAT2: Final = DType("float2", 64, "float", "complex64")
"""Two float32 in one 64-bit register pair."""

_NAMESPACES: Final = re.compile(r"(cute|cutlass|detail|std)::")
_NARROW: Final = ("float6_e2m3", "float6_e3m2", "float4_e2m1")
_TEXTS: Final = {
    **{f"{name}fn{packing}": f"{name}{packing}" for name in _NARROW for packing in ("", "_unpacksmem")},
    "float8_e8m0fnu": "float8_ue8m0",
    "uint1": "b1",
}
"""Types whose recorded text is not the name of their row."""
_ROWS: Final = {text: name for name, text in _TEXTS.items()}
_SPELLED: Final = {
    "float16": "half_t",
    "bfloat16": "bfloat16_t",
    "tfloat32": "tfloat32_t",
    "float32": "float",
    "float64": "double",
    "complex128": "complex<double>",
    "complex64": "complex<float>",
    "float8_e4m3fn": "float_e4m3_t",
    "float8_e5m2": "float_e5m2_t",
    "float8_e8m0fnu": "float_ue8m0_t",
    "float8_ue4m3": "float_ue4m3_t",
    **{f"{name}fn": f"float_{name[-4:]}_t" for name in _NARROW},
    **{f"{name}fn_unpacksmem": f"cutlass::detail::float_{name[-4:]}_unpacksmem_t" for name in _NARROW},
    "complex_float16": "cutlass::complex<half_t>",
    "complex_bfloat16": "cutlass::complex<bfloat16_t>",
    "complex_tfloat32": "cutlass::complex<tfloat32_t>",
    "bool": "bool",
    **{name: f"{name}b_t" for name in ("uint1", "int2", "uint2", "int4", "uint4")},
}
"""C++'s spelling of a type, if it is not the row's name with `_t`."""
_MORE: Final = (COMPLEX_HALF, COMPLEX_BFLOAT, COMPLEX_TF32, UE4M3, UINT128, GAUSS_COMPLEX, FLOAT2)


def cpp_type_text(element: ElementType | None) -> str:
    """Return the name of an element type in recorded tables; `void` for None.

    >>> cpp_type_text(as_dtype("float_e2m1_t")), cpp_type_text(as_dtype("uint1b_t")), cpp_type_text(None)
    ('float4_e2m1', 'b1', 'void')
    """
    if element is None:
        return "void"
    return _TEXTS.get(element.name, element.name)


def cpp_spelling(element: DType) -> str:
    """Return the name of an element type in CuTe C++.

    >>> cpp_spelling(as_dtype("float32")), cpp_spelling(as_dtype("int8")), cpp_spelling(COMPLEX_HALF)
    ('float', 'int8_t', 'cutlass::complex<half_t>')
    """
    return _SPELLED.get(element.name, f"{element.name}_t")


_BY_NAME: Final = {row.name: row for row in _MORE} | {_NAMESPACES.sub("", cpp_spelling(row)): row for row in _MORE[:5]}


@functools.lru_cache(maxsize=512)
def _named(name: str) -> DType:
    bare = _NAMESPACES.sub("", name.replace(" ", ""))
    return _BY_NAME.get(bare) or as_dtype(_ROWS.get(bare, bare))


def element_type(name: object) -> DType:
    """Return the element type for a C++ name, a name in recorded tables, or any type that `as_dtype` accepts.

    Raises:
        InvalidValueError: the type does not exist; InvalidTypeError: the object is not a type.

    >>> element_type("cutlass::half_t"), element_type("cutlass::complex<half_t>").bits, element_type("float4_e2m1").bits
    (DType('float16'), 32, 4)
    """
    if isinstance(name, DType):
        return name
    return _named(name) if isinstance(name, str) else as_dtype(name)
