"""What tensor cores compute: sums of products, in the order and with the precision that were measured.

Products of two elements are exact. A tensor core adds those of a group and the accumulator as integers: each term is
cut towards zero to `kept` bits below the leading bit of the largest, whose exponent is the sum of its factors' exponents
(1.5 * 1.5 counts as 2**0, not as 2**1); the integers are added exactly, and the sum is rounded once.

    float16, bfloat16, tf32, whole K     25 bits, sum cut to 24 significant bits, or rounded to nearest as float16
    fp8 of wgmma, whole K                13 bits, sum cut to 14 significant bits, or rounded to nearest as float16

sm_90 has no fp8 mma.sync and no m8n8k4 of float16; its compiler makes them of other instructions. The first becomes two
float16 products of half of K each (elements 0 and 1 of every four, then 2 and 3) from zero, and an addition of C; the
second float32 multiply-adds, products before C.

Integers are exact, modulo 2**32 or saturated; one-bit operands count the set bits of AND or XOR; float64 is one fused
multiply-add after another.
Source: measured on NVIDIA H200, every bit of the results of random operands (docs/measurements/atoms-h200.md); the
parts of the replaced instructions by ptxas 13.0's machine code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Order:
    """How floats are summed. kept: bits below the leading bit of the largest term. cut: significant bits of a float32
    sum. halves: K in two parts, elements 0 and 1 of every four and then the others, and C added last."""

    kept: int
    cut: int = 24
    halves: bool = False


WIDE: Final = Order(25)
ORDERS: Final[Mapping[tuple[str, int], Order]] = {
    ("mma", 8): Order(25, halves=True),
    ("wgmma", 8): Order(13, cut=14),
}
"""(Instruction, bits of an element of A) -> how it sums, where that is not `WIDE`."""


def truncated(numbers: Array, bits: int) -> Array:
    """float64 cut towards zero to so many significant bits.

    >>> truncated(np.array([1.0 + 2**-24, -(1.0 + 2**-22)]), 24)
    array([ 1.        , -1.00000024])
    """
    mantissa, exponent = np.frexp(numbers)
    found: Array = np.ldexp(np.trunc(np.ldexp(mantissa, bits)), exponent - bits)
    return found


def nearest(numbers: Array, kind: Any) -> Array:
    """float64 rounded to a narrower float, to nearest."""
    with np.errstate(over="ignore", invalid="ignore"):
        found: Array = numbers.astype(kind).astype(np.float64)
    return found


def sum_floats(a: Array, b: Array, c: Array, order: Order, half: bool) -> Array:
    """C + A * B of float64 (m, k), (n, k), (m, n), as a tensor core sums it to float32, or to float16 (`half`).

    >>> one, tiny = np.array([[1.0, 2.0**-13]]), np.array([[1.0, 2.0**-13]])
    >>> [float(sum_floats(one, tiny, np.zeros((1, 1)), Order(kept), False)[0, 0]) for kept in (25, 26)]
    [1.0, 1.0]
    >>> [float(sum_floats(one, tiny, -np.ones((1, 1)), Order(kept), False)[0, 0]) * 2**26 for kept in (25, 26)]
    [0.0, 1.0]
    """
    if not order.halves:
        return _group(a, b, c, order, half)
    first = np.arange(a.shape[1]) % 4 < 2
    found = _group(a[:, first], b[:, first], np.zeros_like(c), order, half)
    found = _group(a[:, ~first], b[:, ~first], found, order, half)
    return nearest(c + found, np.float16 if half else np.float32)


def _group(a: Array, b: Array, c: Array, order: Order, half: bool) -> Array:
    """The sum of all products and C."""
    with np.errstate(invalid="ignore", over="ignore"):
        products = a[:, None] * b[None, :]
        terms = np.concatenate([products, c[..., None]], axis=2)
        exponents = np.concatenate(
            [
                np.where(products != 0, _exponent(a)[:, None] + _exponent(b)[None, :], _LEAST),
                np.where(c != 0, _exponent(c), _LEAST)[..., None],
            ],
            axis=2,
        )
        unit = exponents.max(axis=2) - order.kept
        finite = np.isfinite(terms).all(axis=2)
        whole = np.trunc(np.ldexp(np.where(finite[..., None], terms, 0), -unit[..., None])).sum(axis=2)
        exact = np.ldexp(whole, unit)
        found = nearest(exact, np.float16) if half else truncated(exact, order.cut)
        return np.where(finite, found, terms.sum(axis=2))


_LEAST: Final = -2000
"""Below every exponent."""


def _exponent(numbers: Array) -> Array:
    return np.frexp(np.where(np.isfinite(numbers), numbers, 1))[1] - 1


def sum_by_multiply_adds(a: Array, b: Array, c: Array, half: bool) -> Array:
    """C + A * B of K = 4 as float32 multiply-adds: a chain and then C, or two pairs of products added to C (`half`)."""
    products = a[:, None] * b[None, :]

    def single(numbers: Array) -> Array:
        return nearest(numbers, np.float32)

    if half:
        first, second = (single(products[..., k + 1] + single(products[..., k])) for k in (0, 2))
        return nearest(single(single(c + first) + second), np.float16)
    found = single(products[..., 0])
    for k in range(1, a.shape[1]):
        found = single(found + products[..., k])
    return single(c + found)


def sum_doubles(a: Array, b: Array, c: Array) -> Array:
    """C + A * B of float64, one fused multiply-add after another along K."""
    found = np.array(c)
    for row in range(a.shape[0]):
        for column in range(b.shape[0]):
            value = float(c[row, column])
            for x, y in zip(a[row].tolist(), b[column].tolist(), strict=True):
                value = _fused(x, y, value)
            found[row, column] = value
    return found


def _fused(x: float, y: float, z: float) -> float:
    if not np.isfinite([x, y, z]).all():
        return x * y + z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    return float(exact) if exact else x * y + z


def sum_integers(a: Array, b: Array, c: Array, saturate: bool) -> Array:
    """C + A * B of int64, modulo 2**32 or held within 32 bits."""
    exact = a @ b.T + c
    if saturate:
        return np.clip(exact, -(1 << 31), (1 << 31) - 1)
    return ((exact + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


def count_bits(a: Array, b: Array, c: Array, either: bool) -> Array:
    """C + the number of bits set in A AND B, or in A XOR B (`either`), of one-bit elements."""
    both = a @ b.T
    return c + (a.sum(axis=1)[:, None] + b.sum(axis=1)[None, :] - 2 * both if either else both)
