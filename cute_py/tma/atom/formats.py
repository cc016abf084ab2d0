"""The tensor-map format that CuTe takes for an element type, and what to do for types that have none.

Source: cute/arch/copy_sm90_desc.hpp, to_CUtensorMapDataType. It maps by bits and sign, not by meaning: all 8-bit types
move as UINT8.
"""

from __future__ import annotations

from typing import Final

from cute_py.argument_checks import expect
from cute_py.dtypes import DType
from cute_py.errors import StaticAssertError
from cute_py.tma.descriptor.formats import TensorMapDataType

_T = TensorMapDataType

FORMAT_OF: Final[dict[str, TensorMapDataType]] = {
    **dict.fromkeys(("int8", "uint8", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"), _T.UINT8),
    "uint16": _T.UINT16,
    "uint32": _T.UINT32,
    "int32": _T.INT32,
    "uint64": _T.UINT64,
    "int64": _T.INT64,
    "float16": _T.FLOAT16,
    "float32": _T.FLOAT32,
    "float64": _T.FLOAT64,
    "bfloat16": _T.BFLOAT16,
    "tfloat32": _T.TFLOAT32,
    "float4_e2m1fn": _T.PACKED_16U4_ALIGN8B,
    "float4_e2m1fn_unpacksmem": _T.PACKED_16U4_ALIGN16B,
    **dict.fromkeys(("float6_e2m3fn", "float6_e3m2fn"), _T.PACKED_16U6_ALIGN16B),
    **dict.fromkeys(("float6_e2m3fn_unpacksmem", "float6_e3m2fn_unpacksmem"), _T.PACKED_16U6_ALIGN16B),
}

SAME_WIDTH: Final[dict[int, str]] = {8: "uint8", 16: "uint16", 32: "uint32", 64: "uint64"}
"""bits -> a type of that width that TMA moves."""


def tensor_map_format(dtype: DType) -> TensorMapDataType:
    """The format number of an element type.

    Raises:
        StaticAssertError: 'Unknown TMA Format!', with the type of the same width that can be moved instead.

    >>> from cute_py.dtypes import as_dtype
    >>> tensor_map_format(as_dtype("bfloat16"))
    TensorMapDataType.BFLOAT16
    """
    expect(dtype, DType, "an element type")
    found = FORMAT_OF.get(dtype.name)
    if found is None:
        other = SAME_WIDTH.get(dtype.bits)
        raise StaticAssertError(
            "Unknown TMA Format!",
            {"element type": dtype.name, "TMA moves": ", ".join(FORMAT_OF)},
            f"internal_dtype={other!r} moves the same bits" if other else None,
        )
    return found


def movable_type(dtype: DType) -> str:
    """The type itself if TMA has a format for it, else one of the same width; whole bytes only.

    >>> from cute_py.dtypes import as_dtype
    >>> movable_type(as_dtype("int16"))
    'uint16'
    """
    expect(dtype, DType, "an element type")
    if dtype.name in FORMAT_OF and dtype.bits >= 8:
        return dtype.name
    if dtype.bits in SAME_WIDTH:
        return SAME_WIDTH[dtype.bits]
    tensor_map_format(dtype)
    return dtype.name
