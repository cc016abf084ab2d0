"""Compute how copies change values: the fill outside the tensor, the rounding to tf32, and the eight reductions.

    destination = destination OP source

inc and dec follow PTX's `atom`: inc counts up to the source and starts again at 0; dec counts down and starts
again at the source. Floating-point sums are rounded to nearest even in the format itself (tf32: in float32). The two
FTZ formats replace denormal operands and results by zeros of the same sign; the other formats keep denormals. In the
16-bit and 32-bit formats, all NaN results have the same bit pattern. A float64 sum returns a NaN operand unchanged; if
both operands are NaN, it returns the source. min and max return the other operand if one operand is NaN.

Source: measured on NVIDIA H200, driver 580.159.04.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from cute_py.dtypes import as_dtype
from cute_py.tma.descriptor.data_types import TensorMapDataType, format_row
from cute_py.tma.emulator.memory import Bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

_T = TensorMapDataType
Floats: TypeAlias = "NDArray[np.floating]"
Words: TypeAlias = "NDArray[np.integer]"
"""Numbers of one format, or their bits."""

NAN_FILL: Final = 0x7FF7
"""The NaN fill: this pattern in every 16 bits, for any format."""

TF32_NAN: Final = 0x7FFFE000
"""Result of rounding an in-bounds NaN to tf32."""

_TF32_DROPPED: Final = 13
"""Bits of a float32's fraction that tf32 does not have."""


def filled_rows(count: int, row_bytes: int, nan_fill: bool) -> Bytes:
    """Return the (count, row_bytes) bytes that a load writes for rows outside the tensor."""
    rows = np.zeros((count, row_bytes), np.uint8)
    if nan_fill:
        rows[:, 0::2], rows[:, 1::2] = NAN_FILL & 0xFF, NAN_FILL >> 8
    return rows


def round_to_tf32(rows: Bytes) -> None:
    """Round contiguous bytes, as float32 values, to tf32 (10 bits of fraction) in place.

    The rounding is to nearest, ties to even. A NaN becomes 0x7FFFE000, and a result above the largest finite value
    becomes infinity. Denormals are not flushed to zero.

    >>> bits = np.array([0x3F801000, 0x3F801001, 0x3F803000], np.uint32)
    >>> round_to_tf32(bits.view(np.uint8)); [hex(number) for number in bits]
    ['0x3f800000', '0x3f802000', '0x3f804000']
    """
    words = rows.reshape(-1).view(np.uint32)
    nan = (words & 0x7FFFFFFF) > 0x7F800000
    half = np.uint32((1 << (_TF32_DROPPED - 1)) - 1) + ((words >> np.uint32(_TF32_DROPPED)) & np.uint32(1))
    rounded = (words + half) & np.uint32(~((1 << _TF32_DROPPED) - 1) & 0xFFFFFFFF)
    words[...] = np.where(nan, np.uint32(TF32_NAN), rounded)


_INTEGERS: Final = (_T.UINT32, _T.INT32, _T.UINT64)
_HALVES: Final = (_T.FLOAT16, _T.BFLOAT16)
_FLOATS: Final = (_T.FLOAT32, _T.FLOAT64, _T.FLOAT32_FTZ, _T.TFLOAT32, _T.TFLOAT32_FTZ)

REDUCTIONS: Final[dict[str, tuple[TensorMapDataType, ...]]] = {
    "add": (*_INTEGERS, *_HALVES, *_FLOATS),
    **dict.fromkeys(("min", "max"), (*_INTEGERS, _T.INT64, *_HALVES)),
    **dict.fromkeys(("inc", "dec"), (_T.UINT32,)),
    **dict.fromkeys(("and", "or", "xor"), _INTEGERS),
}
"""Reduction -> the element formats that support it; a reduction of another format traps."""

_INFINITY: Final = {_T.FLOAT16: 0x7C00, _T.BFLOAT16: 0x7F80}
"""16-bit format -> the pattern of infinity."""

_NAN: Final = {2: 0x7FFF, 4: 0x7FFF_FFFF, 8: 0xFFF8_0000_0000_0000}
"""Bytes of a format -> the NaN that its sums return."""

_ON_INTEGERS: Final[dict[str, Callable[[Words, Words], Words]]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "add": operator.add,
    "min": lambda old, new: np.minimum(old, new),
    "max": lambda old, new: np.maximum(old, new),
    "inc": lambda old, new: np.where(old >= new, 0, old + 1).astype(old.dtype),
    "dec": lambda old, new: np.where((old == 0) | (old > new), new, old - np.uint32(1)).astype(old.dtype),
}


def reduced(old: Bytes, new: Bytes, op: str, data_type: TensorMapDataType) -> Bytes:
    """Compute `old OP new`, elementwise.

    Args:
        old, new: (m, k) bytes, contiguous, of complete elements.
    Returns:
        (m, k) bytes.
    """
    row = format_row(data_type)
    kind = as_dtype(row.dtypes[0]).numpy
    a, b = old.reshape(-1).view(kind), new.reshape(-1).view(kind)
    out: NDArray[np.generic]
    if not row.is_float:
        out = _ON_INTEGERS[op](a, b)
    elif op != "add":
        out = _small_float_order(a.view(np.uint16), b.view(np.uint16), op, _INFINITY[data_type])
    elif data_type in (_T.FLOAT32_FTZ, _T.TFLOAT32_FTZ):
        out = _flushed(_float_sum(_flushed(a), _flushed(b)))
    else:
        out = _float_sum(a, b)
    return np.ascontiguousarray(out).view(np.uint8).reshape(old.shape)


def _flushed(values: Floats) -> Floats:
    """Return float32 values with denormals replaced by zeros of the same sign."""
    bits = values.view(np.uint32)
    small = (bits & 0x7F800000) == 0
    return np.where(small, bits & np.uint32(0x80000000), bits).view(np.float32) if small.any() else values


def _float_sum(old: Floats, new: Floats) -> Floats:
    with np.errstate(all="ignore"):
        total = old + new
    kind = f"u{total.itemsize}"
    bits: Words = total.view(kind)
    nan = np.isnan(total)
    if nan.any():
        bits[nan] = _NAN[total.itemsize]
        for operand in (old, new) if total.dtype == np.float64 else ():
            bits[np.isnan(operand)] = operand.view(kind)[np.isnan(operand)]
    return bits.view(total.dtype)


def _small_float_order(old: Words, new: Words, op: str, infinity: int) -> Words:
    """Compute min or max of 16-bit floats by the order of their bits: -0 is below +0, and NaN is above all numbers."""
    behind = 0x7FFF if op == "min" else -0x8000

    def key(bits: Words) -> NDArray[np.int16]:
        signed = bits.view(np.int16)
        ordered = signed ^ (signed >> 15 & 0x7FFF)
        ordered[bits & 0x7FFF > infinity] = behind
        return ordered

    chosen = (np.minimum if op == "min" else np.maximum)(key(old), key(new))
    out: Words = (chosen ^ (chosen >> 15 & 0x7FFF)).view(np.uint16)
    out[chosen == behind] = _NAN[2]
    return out
