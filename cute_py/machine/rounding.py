"""Round numbers to fewer bits in a single rounding, in any direction; and compute sums rounded to odd.

Rounding to odd sets the last bit of a sum if bits were lost. Such a sum can be rounded again to a type with at least
two bits fewer, with the same result as rounding the exact sum once.
Source: S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Transactions on Computers 57 (2008).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]


def rounded(x: Array, digits: int, least: int, mode: str, random: Array | None = None) -> Array:
    """Round float64 to `digits` significant bits, without bits below 2**(least - digits + 1).

    Args:
        mode: rn, rz, rm, rp, rna (ties away from zero), or rs (stochastic), which rounds away from zero if `random` (in
            [0, 1)) plus the lost bits, as a fraction of the last kept bit, is at least 1.

    >>> rounded(np.array([1.0 + 2**-9, -(1 + 3 * 2**-9)]), 8, -126, "rn").tolist()
    [1.0, -1.0078125]
    """
    finite = np.isfinite(x)
    safe = np.where(finite, x, 0.0)
    exponent = np.maximum(np.frexp(safe)[1] - 1, least)
    scaled = np.ldexp(safe, digits - 1 - exponent)
    whole = np.floor(np.abs(scaled) + random) if mode == "rs" else _WHOLE[mode](scaled)
    return np.where(finite, np.copysign(np.ldexp(whole, exponent - digits + 1), safe), x)


_WHOLE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "rn": np.rint,
    "rz": np.trunc,
    "rm": np.floor,
    "rp": np.ceil,
    "rna": lambda q: np.trunc(q + np.copysign(0.5, q)),
}


def limited(x: Array, largest: float, mode: str) -> Array:
    """Replace numbers above a type's largest number by infinity, or by the largest number if the rounding mode does not
    round up to infinity.
    """
    over = (np.abs(x) > largest) & np.isfinite(x)
    if not over.any():
        return x
    stays = {"rz": np.ones_like(over), "rm": x > 0, "rp": x < 0}.get(mode, np.zeros_like(over))
    return np.where(over, np.copysign(np.where(stays, largest, np.inf), x), x)


_FORMS: Final = {"f32": (24, -126, float(np.finfo(np.float32).max)), "f16": (11, -14, 65504.0),
                 "bf16": (8, -126, float(np.uint32(0x7F7F0000).view(np.float32)))}  # fmt: skip
"""Type -> significant bits, exponent of its smallest normal number, largest number."""


def single_of(x: Array, mode: str) -> Array:
    """Convert float64, exact or rounded to odd, to float32."""
    if mode == "rn":
        return x.astype(np.float32)
    digits, least, largest = _FORMS["f32"]
    return limited(rounded(x, digits, least, mode), largest, mode).astype(np.float32)


def half_bits(x: Array, name: str, mode: str = "rn", random: Array | None = None) -> Array:
    """Convert float64, exact or rounded to odd, to bits of f16 or bf16; a NaN becomes 0x7FFF.

    random: random numbers in [0, 1), for the mode rs.
    """
    if name == "f16" and mode == "rn":
        raw = x.astype(np.float16).view(np.uint16)
    else:
        digits, least, largest = _FORMS[name]
        fitted = limited(rounded(x, digits, least, mode, random), largest, mode)
        if name == "f16":
            raw = fitted.astype(np.float16).view(np.uint16)
        else:
            raw = (fitted.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FFF), raw)


def to_odd(total: Array, lost: Array) -> Array:
    """Convert a rounded float64 sum and its rounding error to the sum rounded to odd."""
    inexact = (lost != 0) & np.isfinite(total) & np.isfinite(lost)
    if not inexact.any():
        return total
    raw = total.view(np.int64)
    up = (lost > 0) == (total > 0)
    odd = np.where(raw & 1, raw, np.where(up, raw + 1, raw - 1))
    return np.where(inexact, odd, raw).view(np.float64)


def sum_to_odd(a: Any, b: Any) -> Array:
    """Compute a + b of float64, rounded to odd."""
    x, y = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
    total = x + y
    back = total - x
    return to_odd(total, (x - (total - back)) + (y - back))


def signed_zeros(found: Array, first: Array, second: Array) -> Array:
    """Set the sign of zero sums under rounding down: -0, unless both operands are +0. Only the signs of the operands
    are used.
    """
    below = np.signbit(first) | np.signbit(second)
    return np.where((found == 0) & below, -0.0, found)


def fused_double(a: Any, b: Any, c: Any, mode: str = "rn") -> Array:
    """Compute a * b + c of float64 with one rounding."""
    rows = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (a, b, c)))
    x, y, z = (np.atleast_1d(row) for row in rows)
    found = x * y + z
    finite = np.isfinite(x) & np.isfinite(y)
    found = np.where(np.isinf(z) & finite, z, found)  # the product alone may overflow, but the exact one is finite
    if mode == "rm":
        found = signed_zeros(found, np.copysign(1.0, x) * np.copysign(1.0, y), z)
    if mode == "rn":
        easy = _easy(x, y, z)
        if easy.any():
            found = np.where(easy, _fused_by_parts(x, y, z), found)
        hard = np.flatnonzero(~easy & finite & np.isfinite(z))
    else:
        hard = np.flatnonzero(finite & np.isfinite(z))
    for place in hard.tolist():
        exact = Fraction(float(x[place])) * Fraction(float(y[place])) + Fraction(float(z[place]))
        found[place] = nearest_double(exact, mode, found[place])
    result: Array = found
    return result


def nearest_double(exact: Fraction, mode: str, otherwise: float) -> float:
    """Round a fraction to float64; for 0, return `otherwise`, which is a zero with the right sign."""
    if exact == 0:
        return otherwise
    try:
        near = float(exact)
    except OverflowError:
        near = math.inf if exact > 0 else -math.inf
    if mode == "rn" or (math.isfinite(near) and Fraction(near) == exact):
        return near
    down = near if math.isfinite(near) and Fraction(near) < exact else math.nextafter(near, -math.inf)
    if near == -math.inf:
        down = near
    up = math.nextafter(down, math.inf)
    toward = {"rm": down, "rp": up, "rz": down if exact > 0 else up}
    return toward[mode]


def _easy(x: Array, y: Array, z: Array) -> Array:
    """Flags of the fused multiply-adds where no intermediate result underflows or overflows."""
    exponents = [np.frexp(np.where(np.isfinite(v), v, 1.0))[1] for v in (x, y, z)]
    product = exponents[0] + exponents[1]
    inside = (np.abs(exponents[0]) < 400) & (np.abs(exponents[1]) < 400) & (np.abs(exponents[2]) < 800)
    kept = np.isfinite(x) & np.isfinite(y) & np.isfinite(z) & (x != 0) & (y != 0) & (z != 0)
    result: Array = inside & kept & (product > -700) & (product < 900)
    return result


def _split(x: Array) -> tuple[Array, Array]:
    big = x * 134217729.0
    upper = big - (big - x)
    return upper, x - upper


def _fused_by_parts(x: Array, y: Array, z: Array) -> Array:
    product = x * y
    (xh, xl), (yh, yl) = _split(x), _split(y)
    low = ((xh * yh - product) + xh * yl + xl * yh) + xl * yl
    first = z + low
    back = first - z
    first_low = (z - (first - back)) + (low - back)
    total = product + first
    back = total - product
    total_low = (product - (total - back)) + (first - back)
    result: Array = total + sum_to_odd(first_low, total_low)
    return result
