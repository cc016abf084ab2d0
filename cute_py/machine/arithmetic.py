"""The arithmetic of tensor cores: conversion of register elements to numbers, and sums of products as measured on an
H200.

The first element of a register is in its lowest bits. Floats are converted to float64, which represents every product
of two of them exactly. Integers are converted to int64.

Products of two elements are exact. A tensor core adds the products of a group and the accumulator as integers. It
truncates each term to `kept` bits below the leading bit of the largest term, adds these integers exactly, and rounds
the sum once. The exponent of a product is the sum of the exponents of its factors (1.5 * 1.5 counts as 2**0, not as
2**1).

    float16, bfloat16, tf32, whole K     25 bits, sum cut to 24 significant bits, or rounded to nearest as float16
    fp8 of wgmma, whole K                13 bits, sum cut to 14 significant bits, or rounded to nearest as float16

sm_90 has no fp8 mma.sync and no float16 m8n8k4; ptxas replaces them by other instructions. An fp8 mma.sync becomes two
float16 products that start from zero, each over half of K (elements 0 and 1 of every four, then 2 and 3); C is added
last. An m8n8k4 becomes float32 multiply-adds that sum the products before they add C.

Integers are exact, modulo 2**32 or saturated. A product of one-bit operands is the number of set bits of their AND or
XOR. A float64 sum is a chain of fused multiply-adds.
Source: measured on NVIDIA H200; all bits of the results agree for random operands (docs/measurements/atoms-h200.md).
The sequences for the replaced instructions come from ptxas 13.0's machine code.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from cute_py.dtypes import DType, as_dtype
from cute_py.formats.numbers import to_float32
from cute_py.machine.rounding import fused_double

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]


# ---- elements --------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def dtype_named(kind: str) -> DType:
    """The element type with this PTX abbreviation.

    >>> dtype_named("e4m3"), dtype_named("b1")
    (DType('float8_e4m3fn'), DType('uint1'))
    """
    return as_dtype("uint1" if kind == "b1" else kind)


def element_width(kind: str) -> int:
    """Width in bits of the element type with this PTX abbreviation.

    >>> element_width("bf16"), element_width("b1")
    (16, 1)
    """
    return dtype_named(kind).bits


def as_elements(words: Array, bits: int) -> Array:
    """Unpack unsigned words (.., n) to elements (.., n * word // bits), the first element from the lowest bits.

    >>> as_elements(np.array([0x87654321], np.uint32), 8)
    array([ 33,  67, 101, 135], dtype=uint32)
    """
    kind = words.dtype.type
    per = words.dtype.itemsize * 8 // bits
    if per == 1:
        return words
    shifts = np.arange(per, dtype=words.dtype) * kind(bits)
    found: Array = (words[..., None] >> shifts) & kind((1 << bits) - 1)
    return found.reshape(*words.shape[:-1], -1)


def in_registers(elements: Array, bits: int, kind: Any = np.uint32) -> Array:
    """Pack elements (.., n) into words of type `kind`; the inverse of `as_elements`.

    >>> in_registers(np.array([1, 2, 3, 4]), 16)
    array([131073, 262147], dtype=uint32)
    """
    per = np.dtype(kind).itemsize * 8 // bits
    if per == 1:
        return elements.astype(kind)
    parts = elements.astype(kind).reshape(*elements.shape[:-1], -1, per)
    shifts = np.arange(per, dtype=kind) * np.dtype(kind).type(bits)
    found: Array = np.bitwise_or.reduce(parts << shifts, axis=-1)
    return found


def numbers_of(raw: Array, kind: str) -> Array:
    """Convert element bits to numbers: float64, or int64 for an integer type. For tf32, only the 19 upper bits are
    used.

    >>> numbers_of(np.array([0x3F80, 0xC000], np.uint32), "bf16"), numbers_of(np.array([15, 7], np.uint32), "s4")
    (array([ 1., -2.]), array([-1,  7]))
    """
    row = dtype_named(kind)
    if row.kind in ("int", "uint"):
        found = raw.astype(np.int64)
        return np.where(found >> row.bits - 1 != 0, found - (1 << row.bits), found) if row.kind == "int" else found
    if kind == "tf32":
        with np.errstate(invalid="ignore"):
            return (raw.astype(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    if kind == "bf16":
        return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    with np.errstate(invalid="ignore"):
        unsigned = np.dtype(f"uint{row.bits}")
        return raw.astype(unsigned).view(row.numpy).astype(np.float64)


def numbers_of_codes(codes: Array, element: str) -> Array:
    """Convert element codes to numbers: float64, or int64 for an integer type.

    >>> numbers_of_codes(np.array([3, 11]), "e2m1").tolist(), numbers_of_codes(np.array([0xB8]), "ue4m3").tolist()
    ([1.5, -1.5], [1.0])
    """
    if element in ("e2m1", "e2m3", "e3m2", "ue8m0"):
        return to_float32(codes.astype(np.uint8), element).astype(np.float64)
    if element == "ue4m3":
        return numbers_of(codes & 0x7F, "e4m3")
    return numbers_of(codes, element)


def codes_of_bytes(raw: Array, element: str) -> Array:
    """Extract the codes of elements that occupy one byte each: a 4-bit code is in bits 2 to 5, a 6-bit code in bits 0
    to 5.

    >>> codes_of_bytes(np.array([0b0010_1000, 0b1111_1111]), "e2m1"), codes_of_bytes(np.array([0x7F]), "e3m2")
    (array([10, 15]), array([63]))

    Source: PTX ISA 9.0, packing formats of kind::f8f6f4; cute/atom/mma_traits_sm120.hpp, fp4_shift_A.
    """
    shift, mask = {"e2m1": (2, 15), "e2m3": (0, 63), "e3m2": (0, 63)}.get(element, (0, 255))
    found: Array = raw >> raw.dtype.type(shift) & raw.dtype.type(mask)
    return found


def scaled(numbers: Array, factors: Array) -> Array:
    """Multiply numbers (.., rows, K) by scale factors (.., rows, factors); each factor scales K / factors consecutive
    elements.
    """
    found: Array = numbers * np.repeat(factors, numbers.shape[-1] // factors.shape[-1], axis=-1)
    return found


def bits_of_numbers(numbers: Array, kind: str) -> Array:
    """Convert numbers to unsigned element bits, rounded to nearest, ties to even.

    A NaN has all lower bits set, as in the results of tensor cores.

    >>> hex(bits_of_numbers(np.array([np.nan]), "f16")[0])
    '0x7fff'
    """
    row = dtype_named(kind)
    with np.errstate(over="ignore", invalid="ignore"):
        if row.kind in ("int", "uint"):
            return (numbers.astype(np.int64) & ((1 << row.bits) - 1)).astype(np.uint32)
        found: Array = numbers.astype(row.numpy).view(f"uint{row.bits}")
    missing = np.isnan(numbers)
    return np.where(missing, found.dtype.type((1 << row.bits - 1) - 1), found) if missing.any() else found


# ---- sums ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Order:
    """Parameters of a float sum in a tensor core.

    kept: bits below the leading bit of the largest term. cut: significant bits of a truncated float32 sum.
    halves: whether K is summed in two parts (elements 0 and 1 of every four, then the others) and C is added last.
    """

    kept: int
    cut: int = 24
    halves: bool = False


WIDE: Final = Order(25)
ORDERS: Final[Mapping[tuple[str, int], Order]] = {("mma", 8): Order(25, halves=True), ("wgmma", 8): Order(13, cut=14)}
"""(Instruction, bits of an element of A) -> method of its sums; all others use `WIDE`."""


def cut_bits(numbers: Array, bits: int) -> Array:
    """Truncate float64 towards zero to `bits` significant bits.

    >>> cut_bits(np.array([1.0 + 2**-24, -(1.0 + 2**-22)]), 24)
    array([ 1.        , -1.00000024])
    """
    mantissa, exponent = np.frexp(numbers)
    found: Array = np.ldexp(np.trunc(np.ldexp(mantissa, bits)), exponent - bits)
    return found


def rounded_to(numbers: Array, kind: Any) -> Array:
    """Round float64 to nearest in a narrower float type."""
    with np.errstate(over="ignore", invalid="ignore"):
        found: Array = numbers.astype(kind).astype(np.float64)
    return found


def sum_floats(a: Array, b: Array, c: Array, order: Order, half: bool) -> Array:
    """Compute C + A * B as a tensor core does, with a float32 result, or a float16 result if `half`.

    The shapes are A (.., m, k), B (.., n, k) and C (.., m, n), all float64.

    >>> one, tiny = np.array([[1.0, 2.0**-13]]), np.array([[1.0, 2.0**-13]])
    >>> [float(sum_floats(one, tiny, np.zeros((1, 1)), Order(kept), False)[0, 0]) for kept in (25, 26)]
    [1.0, 1.0]
    >>> [float(sum_floats(one, tiny, -np.ones((1, 1)), Order(kept), False)[0, 0]) * 2**26 for kept in (25, 26)]
    [0.0, 1.0]
    """
    if not order.halves:
        return _group(a, b, c, order, half)
    first = np.arange(a.shape[-1]) % 4 < 2
    found = _group(a[..., first], b[..., first], np.zeros_like(c), order, half)
    found = _group(a[..., ~first], b[..., ~first], found, order, half)
    with np.errstate(invalid="ignore"):
        return rounded_to(c + found, np.float16 if half else np.float32)


def _group(a: Array, b: Array, c: Array, order: Order, half: bool) -> Array:
    """Sum all products and C as one group."""
    if np.isfinite(a).all() and np.isfinite(b).all() and np.isfinite(c).all():
        return _finite_group(a, b, c, order, half)
    with np.errstate(invalid="ignore", over="ignore"):
        usual = [np.where(np.isfinite(x), x, 0.0) for x in (a, b, c)]
        found = _finite_group(usual[0], usual[1], usual[2], order, half)
        products = a[..., :, None, :] * b[..., None, :, :]
        terms = np.concatenate([products, c[..., None]], axis=-1)
        return np.where(np.isfinite(terms).all(axis=-1), found, terms.sum(axis=-1))


def _finite_group(a: Array, b: Array, c: Array, order: Order, half: bool) -> Array:
    """Compute `_group` for finite operands; it skips the truncation of terms if this gives the same sum."""
    whole = _uncut_sum(a, b, c, order)
    if whole is None:
        whole = _cut_sum(a, b, c, order)
    if half:
        return rounded_to(whole, np.float16)
    mask = np.uint64((1 << 64) - (1 << 53 - order.cut))
    found: Array = (whole.view(np.uint64) & mask).view(np.float64)
    return found


def _cut_sum(a: Array, b: Array, c: Array, order: Order) -> Array:
    """Sum terms, each truncated relative to the exponent of the largest term."""
    depth = a.shape[-1]
    left, right = (np.ascontiguousarray(np.moveaxis(x, -1, 0)) for x in (a, b))  # (k, .., m), (k, .., n)
    rows, columns = _exponent(left), _exponent(right)
    largest = _exponent(c)
    for part in _parts(depth, c.size):
        sheets = rows[part][..., :, None] + columns[part][..., None, :]
        np.maximum(largest, np.maximum.reduce(sheets, axis=0), out=largest)
    largest[largest <= _LEAST // 2] = 0
    unit = largest.astype(np.int64) - order.kept
    whole = _narrow_sum(left, right, c, (rows, columns, unit), order)
    if whole is None:
        scale = _power(-unit)
        whole = np.trunc(c * scale)
        product = np.empty(c.shape)
        for k in range(depth):
            np.multiply(left[k][..., :, None], right[k][..., None, :], out=product)
            np.multiply(product, scale, out=product)
            np.trunc(product, out=product)
            np.add(whole, product, out=whole)
    whole *= _power(unit)
    return whole


def _uncut_sum(a: Array, b: Array, c: Array, order: Order) -> Array | None:
    """Return the exact sum if truncation changes no term; None if it may change a term.

    No term changes if all terms are multiples of the unit that the largest term is truncated to. Sums have fewer than
    53 bits above that unit.
    """
    top = max(_highest(a) + _highest(b), _highest(c))
    unit = top - order.kept
    if _lowest(a) + _lowest(b) < unit:
        return None
    scaled = np.ldexp(c, -unit)
    if (scaled != np.trunc(scaled)).any():
        return None
    found: Array = a @ b.swapaxes(-1, -2) + c
    found += 0.0  # a sum of -0 and +0 is +0
    return found


def _highest(numbers: Array) -> int:
    """Exponent of the largest number."""
    largest = float(max(numbers.max(initial=0.0), -numbers.min(initial=0.0)))
    return math.frexp(largest)[1] - 1 if largest else _LEAST


def _lowest(numbers: Array) -> int:
    """Exponent of the lowest bit that is set in any of the numbers."""
    mantissa, exponent = np.frexp(numbers)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    places = np.frexp((whole & -whole).astype(np.float64))[1] - 54 + exponent
    return int(np.where(whole == 0, -_LEAST, places).min(initial=-_LEAST))


_IN_CACHE: Final = 1 << 18
"""Maximum size of the sheets of one part."""


def _parts(depth: int, size: int, most: int = 1 << 30) -> Iterator[slice]:
    """Split K into slices of at most `most` indices, small enough that the arrays of a slice fit into the cache."""
    step = max(1, min(_IN_CACHE // max(size, 1), most))
    step = -(-depth // -(-depth // step))
    return (slice(k, k + step) for k in range(0, depth, step))


def _power(exponent: Array) -> Array:
    """Compute 2**exponent for int64 exponents in the normal range of float64."""
    found: Array = ((1023 + exponent) << 52).view(np.float64)
    return found


_SAFE: Final = 60
"""Maximum binary orders of magnitude that an operand may span; within it, products are normal float32."""


def _narrow_sum(left: Array, right: Array, c: Array, how: tuple[Array, Array, Array], order: Order) -> Array | None:
    """Compute the sum of the integers that a tensor core adds, as float64; None if the exponents of an operand span too
    wide a range.

    Products are computed in float32, which represents products of two 11-bit significands exactly. The conversion to
    int32 truncates them.
    """
    rows, columns, unit = how
    tops = []
    for exponents in (rows, columns):
        top = int(exponents.max())
        low = np.where(exponents == _LEAST, top, exponents).min()
        if top == _LEAST or top - int(low) > _SAFE:
            return None
        tops.append(top)
    shift = tops[0] + tops[1]
    relative = shift - unit
    if int(relative.max()) > 120 or int(relative.min()) < -120:
        return None
    first = (left * 2.0 ** -tops[0]).astype(np.float32)
    second = (right * 2.0 ** -tops[1]).astype(np.float32)
    scale = _power(relative).astype(np.float32)
    whole: Array = np.trunc(c * _power(-unit))
    room = (1 << 29 - order.kept) - 1  # number of terms whose sum fits int32: each is below 4 * 2**kept
    for part in _parts(len(left), c.size, room):
        product = first[part][..., :, None] * second[part][..., None, :]
        np.multiply(product, scale, out=product)
        whole += np.add.reduce(product.astype(np.int32), axis=0, dtype=np.int32)
    return whole


_LEAST: Final = -2000
"""A number below every exponent."""


def _exponent(numbers: Array) -> Array:
    """Exponents of float64 numbers; 0 gets an exponent far below all others."""
    found = np.frexp(numbers)[1].astype(np.int16) - np.int16(1)
    found[numbers == 0] = _LEAST
    return found


def sum_by_multiply_adds(a: Array, b: Array, c: Array, half: bool) -> Array:
    """Compute C + A * B for K = 4 by float32 multiply-adds: a chain of the products, to be added to C, or with
    `half`, two pairs of products added to C.
    """
    with np.errstate(invalid="ignore"):
        return _multiply_adds(a[..., :, None, :] * b[..., None, :, :], c, half)


def _multiply_adds(products: Array, c: Array, half: bool) -> Array:
    def single(numbers: Array) -> Array:
        return rounded_to(numbers, np.float32)

    if half:
        first, second = (single(products[..., k + 1] + single(products[..., k])) for k in (0, 2))
        return rounded_to(single(single(c + first) + second), np.float16)
    found = single(products[..., 0])
    for k in range(1, products.shape[-1]):
        found = single(found + products[..., k])
    return single(c + found)


def sum_doubles(a: Array, b: Array, c: Array) -> Array:
    """Compute C + A * B of float64 by a chain of fused multiply-adds along K."""
    found = np.array(c)
    for k in range(a.shape[-1]):
        rows = np.broadcast_arrays(a[..., :, k, None], b[..., None, :, k], found)
        x, y, z = (np.ascontiguousarray(row).reshape(-1) for row in rows)
        found = fused_double(x, y, z).reshape(c.shape)
    return found


def sum_integers(a: Array, b: Array, c: Array, saturate: bool) -> Array:
    """Compute C + A * B of int64, modulo 2**32 or saturated to 32 bits."""
    exact: Array = (a.astype(np.float64) @ b.swapaxes(-1, -2).astype(np.float64)).astype(np.int64) + c
    if saturate:
        return exact.clip(-(1 << 31), (1 << 31) - 1)
    wrapped: Array = ((exact + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
    return wrapped


def count_bits(a: Array, b: Array, c: Array, either: bool) -> Array:
    """Add to C the number of bits set in A AND B, or in A XOR B if `either`, of one-bit elements."""
    found: Array = a @ b.swapaxes(-1, -2)
    if either:
        found = a.sum(axis=-1)[..., :, None] + b.sum(axis=-1)[..., None, :] - 2 * found
    return c + found
