"""The 32-bit instruction descriptor of tcgen05.mma: types, sizes, majors, signs, in bits.

    bits    without block scaling       with block scaling
    0-2     sparse id, sparse flag      the same
    3       saturate                    -
    4-5     format of C                 scale factor of B
    7-9     format of A                 10-12 of B      13, 14 negate A, B      15, 16 major of A, B (1 is MN)
    17-22   N / 8
    23      -                           1 for ue8m0 scale factors
    24-28   M / 16

Source: cute/arch/mma_sm100_desc.hpp, InstrDescriptor and InstrDescriptorBlockScaled; PTX ISA, tcgen05 instruction
descriptor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cute_py.atom.element_types import ElementType, type_text
from cute_py.atom.template_name import static_assert
from cute_py.dtypes import DType

_FORMATS: Final = {
    "float16": 0,
    "bfloat16": 1,
    "tfloat32": 2,
    "uint8": 0,
    "int8": 1,
    "float8_e4m3fn": 0,
    "float8_e5m2": 1,
    "float6_e2m3": 3,
    "float6_e3m2": 4,
    "float4_e2m1": 1,
    "float6_e2m3_unpacksmem": 3,
    "float6_e3m2_unpacksmem": 4,
    "float4_e2m1_unpacksmem": 5,
}
"""Format of A and B. float4_e2m1 is 1 where two of them share a byte, 5 where each has one."""
_SUMS: Final = {"float16": 0, "float32": 1, "int32": 2}
"""Format of C."""


def instruction_descriptor(
    a: DType,
    b: DType,
    c: DType | None,
    m: int,
    n: int,
    values: Mapping[str, Any],
    sparse: bool = False,
    scale: DType | None = None,
) -> int:
    """The descriptor of an instruction.

    Args:
        a, b: element types; of complex numbers, of their parts. c: of the sum, None with block scaling.
        m, n: extents.
        values: `a_major`, `b_major` ('K' or 'MN'), and where they are not the default `a_neg`, `b_neg`, `c_sat`.
        scale: element type of the scale factors.
    Raises:
        StaticAssertError: a type that has no format.

    >>> from cute_py.dtypes import as_dtype
    >>> half = as_dtype("half")
    >>> hex(instruction_descriptor(half, half, as_dtype("float"), 64, 8, {"a_major": "K", "b_major": "MN"}))
    '0x4030010'
    """
    bits = int(sparse) << 2 | int(values.get("c_sat") == "True") << 3
    bits |= _format(a) << 7 | _format(b) << 10
    bits |= int(values.get("a_neg") == "Neg") << 13 | int(values.get("b_neg") == "Neg") << 14
    bits |= int(values["a_major"] == "MN") << 15 | int(values["b_major"] == "MN") << 16
    bits |= n // 8 << 17 | m // 16 << 24
    if c is not None:
        static_assert(c.name in _SUMS, "Unknown type for CFormat", lambda: {"type": type_text(c)})
        bits |= _SUMS[c.name] << 4
    if scale is not None:
        text = type_text(scale)
        static_assert(text in ("float8_ue8m0", "float8_ue4m3"), "Unknown type for ScaleFormat", lambda: {"type": text})
        bits |= int(text == "float8_ue8m0") << 23
    return bits


def _format(element: ElementType) -> int:
    text = type_text(element).removeprefix("complex_")
    static_assert(text in _FORMATS, "Unknown type for UMMAFormat", lambda: {"type": text})
    return _FORMATS[text]
