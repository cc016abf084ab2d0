"""Quotients of the device code of formats: one or two corrections of a product by a reciprocal.

The arithmetic is that of `quotient` and `sixth_of_total` in `cute_py.gpu.kernels.numbers`, carried out exactly and
rounded to float32 after each operation.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

HALF_UNIT = Fraction(1, 1 << 24)
"""Half the distance of neighbouring float32 numbers of 1 to 2."""


def nearest(x: Fraction) -> Fraction:
    """x, rounded to float32 as if exponents had no end."""
    if x == 0:
        return x
    size = abs(x)
    exponent = math.floor(math.log2(size))
    exponent += (size >= Fraction(2) ** (exponent + 1)) - (size < Fraction(2) ** exponent)
    unit = Fraction(2) ** (exponent - 23)
    whole, rest = divmod(size / unit, 1)
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2)
    return unit * whole * (1 if x > 0 else -1)


def corrected(x: Fraction, s: Fraction, times: int) -> Fraction:
    inverse = nearest(1 / s)
    q = nearest(x * inverse)
    for _ in range(times):
        q = nearest(q - nearest(q * s - x) * inverse)
    return q


def divisors(x: Fraction, tie: Fraction) -> list[Fraction]:
    """float32 numbers s for which x / s lies next to the midpoints above and below a number of five bits."""
    found = []
    for middle in (tie + HALF_UNIT, tie - HALF_UNIT / (1 if tie > 1 else 2)):
        s = x / middle
        shift = 0 if s >= 1 else 1
        first = math.floor(s * 2**shift * (1 << 23))
        found += [Fraction(first + step, 1 << 23) / 2**shift for step in range(-2, 4)]
    return found


@pytest.mark.parametrize(
    ("bits", "every"), [(8, 9), pytest.param(8, 1, marks=pytest.mark.slow), pytest.param(11, 1, marks=pytest.mark.slow)]
)
def test_one_correction_serves_elements_of_few_bits(bits: int, every: int) -> None:
    wrong = []
    for number in range(1 << (bits - 1), 1 << bits, every):
        x = Fraction(number, 1 << (bits - 1))
        for sixteenths in range(16, 32):
            for s in divisors(x, Fraction(sixteenths, 16)):
                if corrected(x, s, 1) != nearest(x / s):
                    wrong.append((x, s))
    assert not wrong


def test_no_correction_is_not_enough() -> None:
    """The cases are hard: the bare product of the reciprocal is wrong for many of them."""
    x = Fraction(131, 128)
    cases = [s for sixteenths in range(16, 32) for s in divisors(x, Fraction(sixteenths, 16))]
    assert sum(corrected(x, s, 0) != nearest(x / s) for s in cases) > len(cases) // 10


def test_a_sixth_of_every_significand() -> None:
    x = np.ldexp(np.arange(1 << 23, 1 << 24, 31), -23)
    sixth = np.float32(1) / np.float32(6)
    for scale in (1.0, 2.0):
        a = (x * scale).astype(np.float32)
        q = a * sixth
        rest = (6 * q.astype(np.float64) - a).astype(np.float32)
        made = (q.astype(np.longdouble) - rest.astype(np.longdouble) * np.longdouble(sixth)).astype(np.float32)
        assert np.array_equal(made, a / np.float32(6))
