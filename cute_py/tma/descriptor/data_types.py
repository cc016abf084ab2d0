"""The enums of a tensor map with the driver's values: element format, interleave, swizzle, L2 promotion and fill.

Element formats have two numberings, which must not be mixed. `TensorMapDataType` has the values of the driver's
`CUtensorMapDataType`. The four format bits of the descriptor contain other values (`FormatRow.code`). The two tf32
formats have the codes of float32 and float32_ftz, and set one more bit.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final, Self, TypeVar

from cute_py.argument_checks import NamedEnum, expect_integer, is_integer, record, unknown_member
from cute_py.dtypes import DTypeLike, as_dtype, is_dtype
from cute_py.errors import InvalidValueError

MEASURED: Final = "measured on NVIDIA H200, driver 580.159.04"
CUDA_H: Final = "CUDA 13.0 driver API, Tensor Map Object Management"


class _Named(NamedEnum, IntEnum):
    """An IntEnum whose repr is its qualified name, so that `eval` of a request's repr returns the request."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    @classmethod
    def _missing_(cls, value: DTypeLike) -> Self:  # type: ignore[override]
        """Find a member by any of the names that a request accepts.

        >>> TensorMapSwizzle("128B"), TensorMapDataType("bf16")
        (TensorMapSwizzle.B128, TensorMapDataType.BFLOAT16)
        """
        found = None if is_integer(value) else member_named(cls, value)
        if found is None:
            raise unknown_member(cls, value)
        return found


class TensorMapDataType(_Named):
    """Element format of the tensor, with the values of the driver's `CUtensorMapDataType`.

    The last three exist on sm_100 and newer. Their bits in a descriptor are unknown (`cute_py.tma.descriptor.limits`).

    >>> TensorMapDataType("bf16"), int(TensorMapDataType.FLOAT16)
    (TensorMapDataType.BFLOAT16, 6)
    """

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    TFLOAT32 = 11
    TFLOAT32_FTZ = 12
    PACKED_16U4_ALIGN8B = 13
    PACKED_16U4_ALIGN16B = 14
    PACKED_16U6_ALIGN16B = 15


class Interleave(_Named):
    """Interleaved layout: channel slices of 16 or 32 bytes are outermost (NC/8HWC8, NC/16HWC16, ...), or none.

    >>> Interleave("16B"), int(Interleave("32B"))
    (Interleave.B16, 2)
    """

    NONE = 0
    B16 = 1
    B32 = 2


class TensorMapSwizzle(_Named):
    """Permutation of 16-byte chunks in shared memory. The ATOM kinds exist on sm_100 and newer; their bits are unknown.

    >>> TensorMapSwizzle("128B"), TensorMapSwizzle(0)
    (TensorMapSwizzle.B128, TensorMapSwizzle.NONE)
    """

    NONE = 0
    B32 = 1
    B64 = 2
    B128 = 3
    B128_ATOM_32B = 4
    B128_ATOM_32B_FLIP_8B = 5
    B128_ATOM_64B = 6


class L2Promotion(_Named):
    """Granularity of widened L2 requests, in bytes.

    >>> L2Promotion("CU_TENSOR_MAP_L2_PROMOTION_L2_128B")
    L2Promotion.B128
    """

    NONE = 0
    B64 = 1
    B128 = 2
    B256 = 3


class OobFill(_Named):
    """Value that a load writes for elements outside the tensor: zeros, or the NaN pattern 0x7FF7 in each 16 bits.

    >>> [fill.name for fill in OobFill]
    ['NONE', 'NAN_REQUEST_ZERO_FMA']
    """

    NONE = 0
    NAN_REQUEST_ZERO_FMA = 1


class Im2ColWideMode(_Named):
    """`CUtensorMapIm2ColWideMode`. The descriptor does not store it; the instruction carries it.

    >>> Im2ColWideMode("W128").name
    'W128'
    """

    W = 0
    W128 = 1


@record
class FormatRow:
    """One element format: its name in the driver, its width, and its bits in the descriptor.

    >>> FORMATS[TensorMapDataType.FLOAT16].bits
    16
    """

    data_type: TensorMapDataType
    code: int | None
    """Bits 7-10 of word 1; None: not known."""
    tf32_round: int
    """Bit 16 of word 1."""
    bits: int
    """Width of one element in global memory, in bits."""
    is_float: bool
    dtypes: tuple[str, ...]
    """Names of the element types (`cute_py.dtypes`) that this format moves; the type of the format's name is first."""
    source: str = MEASURED

    @property
    def bytes(self) -> int:
        """Width of one element in bytes (an integer for every format whose code is known).

        >>> format_row(TensorMapDataType.BFLOAT16).bytes
        2
        """
        return self.bits // 8


_T = TensorMapDataType

FORMATS: Final[tuple[FormatRow, ...]] = (
    FormatRow(_T.UINT8, 0, 0, 8, False, ("uint8", "int8", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "bool")),
    FormatRow(_T.UINT16, 1, 0, 16, False, ("uint16", "int16")),
    FormatRow(_T.UINT32, 2, 0, 32, False, ("uint32",)),
    FormatRow(_T.INT32, 3, 0, 32, False, ("int32",)),
    FormatRow(_T.UINT64, 4, 0, 64, False, ("uint64",)),
    FormatRow(_T.INT64, 5, 0, 64, False, ("int64",)),
    FormatRow(_T.FLOAT16, 6, 0, 16, True, ("float16",)),
    FormatRow(_T.FLOAT32, 7, 0, 32, True, ("float32",)),
    FormatRow(_T.FLOAT64, 9, 0, 64, True, ("float64",)),
    FormatRow(_T.BFLOAT16, 10, 0, 16, True, ("bfloat16",)),
    FormatRow(_T.FLOAT32_FTZ, 8, 0, 32, True, ("float32",)),
    FormatRow(_T.TFLOAT32, 7, 1, 32, True, ("tfloat32", "float32")),
    FormatRow(_T.TFLOAT32_FTZ, 8, 1, 32, True, ("tfloat32", "float32")),
    FormatRow(_T.PACKED_16U4_ALIGN8B, None, 0, 4, False, ("uint4", "int4", "float4_e2m1fn"), CUDA_H),
    FormatRow(_T.PACKED_16U4_ALIGN16B, None, 0, 4, False, ("uint4", "int4", "float4_e2m1fn"), CUDA_H),
    FormatRow(_T.PACKED_16U6_ALIGN16B, None, 0, 6, False, ("float6_e2m3fn", "float6_e3m2fn"), CUDA_H),
)
"""The element formats, indexed by the driver's number."""

CODE_TO_FORMAT: Final[dict[tuple[int, int], TensorMapDataType]] = {
    (row.code, row.tf32_round): row.data_type for row in FORMATS if row.code is not None
}
"""(bits 7-10, bit 16) of word 1 -> format. No driver wrote a pair that is absent."""


UNSIGNED: Final = {size: TensorMapDataType[f"UINT{8 * size}"] for size in (1, 2, 4, 8)}
"""Bytes of an element -> its format in the tensor map of a copy that converts nothing."""


def format_row(data_type: int) -> FormatRow:
    """Return the table row of a format, from the enum or the driver's number.

    Raises:
        InvalidValueError: the number is not in the driver's enum.

    >>> format_row(11).tf32_round
    1
    """
    if is_integer(data_type) and 0 <= data_type < len(FORMATS):
        return FORMATS[data_type]
    raise InvalidValueError.of_value("data_type", expect_integer(data_type, "data_type"), f"be 0 to {len(FORMATS) - 1}")


# In reverse, so that the plain format wins: float32 maps to FLOAT32, although its variants list float32 too.
_NATURAL: Final = {name: row.data_type for row in reversed(FORMATS) if row.code is not None for name in row.dtypes}


def format_of(dtype: DTypeLike) -> TensorMapDataType:
    """Return the format that moves elements of a type unchanged, except that tfloat32 rounds them.

    Args:
        dtype: a numpy or ml_dtypes type, a `DType`, or a name.
    Raises:
        InvalidValueError: no format with known bits moves this type.
        InvalidTypeError: the object is not an element type.

    >>> format_of("float32"), format_of("float8_e4m3fn"), format_of("int16")
    (TensorMapDataType.FLOAT32, TensorMapDataType.UINT8, TensorMapDataType.UINT16)
    """
    row = as_dtype(dtype)
    found = _NATURAL.get(row.name)
    if found is None:
        raise InvalidValueError(
            f"no tensor map format for elements of type {row.name}", {"known": ", ".join(sorted(_NATURAL))}
        )
    return found


_E = TypeVar("_E", bound=IntEnum)

_FAMILIES: Final = {
    "TensorMapDataType": "DATA_TYPE_",
    "Interleave": "INTERLEAVE_",
    "TensorMapSwizzle": "SWIZZLE_",
    "L2Promotion": "(L2_PROMOTION_)?(L2_)?",
    "OobFill": "(FLOAT_)?OOB_FILL_",
    "Im2ColWideMode": "IM2COL_WIDE_MODE_",
}
"""Prefix that the driver and CuTe write before the name of a member, after CU_TENSOR_MAP_."""


def member_named(kind: type[_E], value: DTypeLike) -> _E | None:
    """Return the enum member with this name, or the format of an element type; None if the name is unknown.

    >>> member_named(TensorMapSwizzle, "SWIZZLE_128B"), member_named(TensorMapDataType, "bf16")
    (TensorMapSwizzle.B128, TensorMapDataType.BFLOAT16)
    """
    if isinstance(value, str):
        family = _FAMILIES.get(kind.__name__, "")
        plain = re.sub(rf"\A(CU_TENSOR_MAP_)?({family})?", "", value.strip().upper())
        for name in (plain, re.sub("^([0-9]+)B?", r"B\1", plain), f"PACKED_{plain}"):
            if name in kind.__members__:
                return kind[name]
    return kind(format_of(value)) if kind is TensorMapDataType and is_dtype(value) else None
