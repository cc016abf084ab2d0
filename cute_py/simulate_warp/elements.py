"""Elements in registers: words to elements and back, and the numbers that their bits are.

The first element of a register lies in its lowest bits. Floats become float64, which holds every product of two of
them exactly; integers become int64.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from cute_py.dtypes import as_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

TYPES: Final[Mapping[str, str]] = {
    "f16": "float16",
    "bf16": "bfloat16",
    "tf32": "tfloat32",
    "f32": "float32",
    "f64": "float64",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "s8": "int8",
    "u8": "uint8",
    "s4": "int4",
    "u4": "uint4",
    "b1": "uint1",
    "s32": "int32",
}
"""Element types as PTX abbreviates them."""


def bits_of(kind: str) -> int:
    """Width of an element of a type as PTX abbreviates it.

    >>> bits_of("bf16"), bits_of("b1")
    (16, 1)
    """
    return as_dtype(TYPES[kind]).bits


def split_words(words: Array, bits: int) -> Array:
    """Unsigned words (.., n) as elements (.., n * word // bits), the first in the low bits.

    >>> split_words(np.array([0x87654321], np.uint32), 8)
    array([ 33,  67, 101, 135], dtype=uint32)
    """
    kind = words.dtype.type
    per = words.dtype.itemsize * 8 // bits
    if per == 1:
        return words
    shifts = np.arange(per, dtype=words.dtype) * kind(bits)
    return ((words[..., None] >> shifts) & kind((1 << bits) - 1)).reshape(*words.shape[:-1], -1)


def join_words(elements: Array, bits: int, kind: Any = np.uint32) -> Array:
    """The reverse of `split_words`: elements (.., n) as words of a type.

    >>> join_words(np.array([1, 2, 3, 4]), 16)
    array([131073, 262147], dtype=uint32)
    """
    per = np.dtype(kind).itemsize * 8 // bits
    parts = elements.astype(kind).reshape(*elements.shape[:-1], -1, per)
    shifts = np.arange(per, dtype=kind) * np.dtype(kind).type(bits)
    return np.bitwise_or.reduce(parts << shifts, axis=-1)


def numbers_of(raw: Array, kind: str) -> Array:
    """The numbers of element bits: float64, or int64 of an integer type; tf32 has no more than its 19 upper bits.

    >>> numbers_of(np.array([0x3F80, 0xC000], np.uint32), "bf16"), numbers_of(np.array([15, 7], np.uint32), "s4")
    (array([ 1., -2.]), array([-1,  7]))
    """
    row = as_dtype(TYPES[kind])
    if row.kind in ("int", "uint"):
        found = raw.astype(np.int64)
        return np.where(found >> row.bits - 1 != 0, found - (1 << row.bits), found) if row.kind == "int" else found
    if kind == "tf32":
        return (raw.astype(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    with np.errstate(invalid="ignore"):
        unsigned = np.dtype(f"uint{row.bits}")
        return raw.astype(unsigned).view(row.numpy).astype(np.float64)


def bits_of_numbers(numbers: Array, kind: str) -> Array:
    """Element bits, unsigned, of numbers that the type holds; others are rounded to nearest, ties to even."""
    row = as_dtype(TYPES[kind])
    with np.errstate(over="ignore", invalid="ignore"):
        if row.kind in ("int", "uint"):
            return (numbers.astype(np.int64) & ((1 << row.bits) - 1)).astype(np.uint32)
        return numbers.astype(row.numpy).view(f"uint{row.bits}")
