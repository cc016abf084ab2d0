"""Positions as values: which bit patterns of an element type stand for which digits, and what a product makes of them.

The value of a digit times one is exact in the type of the sum, so a sum of one product and zeros says which digit met
the hot element. Digit 0 is zero.
"""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

FLOATS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
_ONE = {"e4m3": 0x38, "e5m2": 0x3C, "f16": 0x3C00, "bf16": 0x3F80, "tf32": 0x3F800000}


def one(kind: str) -> int:
    """The bits of 1 of a type as PTX abbreviates it.

    >>> hex(one("bf16")), one("s8"), one("b1")
    ('0x3f80', 1, 1)
    """
    return _ONE.get(kind, 1)


@functools.cache
def patterns(kind: str) -> Array:
    """Bit patterns of the digits 0, 1, 2, ...: zero, and positive numbers that are no subnormals of 16 bits up."""
    if kind == "f64":
        return np.arange(4096, dtype=np.float64).view(np.uint64)
    last = {"e4m3": 0x7E, "e5m2": 0x7B, "s8": 127, "u8": 255, "s4": 7, "u4": 15, "b1": 1}.get(kind)
    if last is not None:
        return np.arange(last + 1, dtype=np.uint64)
    first, step = {"f16": (0x0400, 1), "bf16": (0x0080, 1), "tf32": (0x00800000, 1 << 13)}[kind]
    return np.concatenate([[0], first + step * np.arange(30_000)]).astype(np.uint64)


@functools.cache
def results(kind: str, sums: str) -> Array:
    """Bits of digit times one in the type of the sum: float32, float16, float64 or a 32-bit integer."""
    bits = patterns(kind)
    if kind == "f64":
        return bits
    if kind in ("s8", "u8", "s4", "u4", "b1"):
        return bits.astype(np.uint64)
    value = bits.astype(np.uint32).view(np.float32) if kind == "tf32" else None
    if value is None:
        width = np.uint8 if kind in ("e4m3", "e5m2") else np.uint16
        value = bits.astype(width).view(FLOATS[kind]).astype(np.float32)
    if sums == "f32":
        return value.view(np.uint32).astype(np.uint64)
    return value.astype(np.float16).view(np.uint16).astype(np.uint64)


def digit_count(kind: str, positions: int) -> int:
    """Digits that name so many positions, the first of them 1."""
    count, reach = 1, len(patterns(kind))
    while reach <= positions:
        count, reach = count + 1, reach * len(patterns(kind))
    return count


def digit(kind: str, positions: Array, place: int) -> Array:
    """Digit `place` of position + 1."""
    base = len(patterns(kind))
    return (positions.astype(np.int64) + 1) // base**place % base


def pack(values: Array, bits: int, word: int = 32) -> Array:
    """Elements along the last axis as words, the first in the low bits: uint32, or uint64 of `word` 64."""
    kind = np.uint32 if word == 32 else np.uint64
    per = word // bits
    parts = values.reshape(*values.shape[:-1], -1, per).astype(kind)
    return np.bitwise_or.reduce(parts << (np.arange(per, dtype=kind) * kind(bits)), axis=-1)


def unpack(words: Array, bits: int) -> Array:
    """The elements of words along the last axis; the reverse of `pack`."""
    per = words.dtype.itemsize * 8 // bits
    mask = words.dtype.type((1 << bits) - 1) if bits < words.dtype.itemsize * 8 else ~words.dtype.type(0)
    parts = (words[..., None] >> (np.arange(per, dtype=words.dtype) * words.dtype.type(bits))) & mask
    return parts.reshape(*words.shape[:-1], -1)
