"""Casts and packings: against exact rational arithmetic, against ml_dtypes, and the table of special cases."""

from __future__ import annotations

import functools
import math
import os
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py import formats
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.formats import NUMBERS, POLICY, cast, codes, numbers, of_codes, pack_elements, to_float32, unpack_elements
from cute_py.formats.numbers import Number
from cute_py.formats.policy import PolicyRow
from tests.each import each_of

CAST_CASES = (
    "ties",
    "overflow, saturating",
    "overflow, not saturating",
    "infinity, saturating",
    "infinity, not saturating",
    "NaN",
    "zero",
    "negative zero",
    "subnormal",
)
"""Cases that every cast has in the table."""

FLOATS = ("bf16", "f16", "e5m2", "e4m3", "e3m2", "e2m3", "e2m1")


@each_of("row", [r for r in POLICY if r.probe], ids=lambda row: f"{row.subject}, {row.case}")
def test_the_table_of_special_cases(row: PolicyRow) -> None:
    assert row.probe is not None
    numbers, name, saturate, want = row.probe
    for source in (np.float32, np.float64):
        if name != "float32" or source is np.float64:
            with np.errstate(over="ignore"):
                held = np.array(numbers, np.float64).astype(source)
            assert tuple(codes(cast(held, name, saturate=saturate)).tolist()) == want
    assert row.here


def test_the_table_has_every_case_of_every_cast() -> None:
    """A cast to float64 is exact, and has no case."""
    probed = {(row.probe[1], row.case) for row in POLICY if row.probe}
    wanted = {(one.name, case) for one in NUMBERS if one.name != "float64" for case in CAST_CASES}
    assert wanted <= probed


@functools.cache
def _finite(name: str) -> list[tuple[Fraction, int]]:
    row = formats.number(name)
    held = of_codes(np.arange(1 << (row.bits - 1), dtype=np.uint8), row).astype(np.float32)
    return [(Fraction(float(x)), code) for code, x in enumerate(held) if np.isfinite(x)]


def _nearest(value: Fraction, name: str) -> int:
    """The code of the nearest finite number, ties to even: by comparing with all of them."""
    code = min(_finite(name), key=lambda row: (abs(row[0] - abs(value)), row[1] & 1))[1]
    return code | (1 << (formats.number(name).bits - 1) if value < 0 else 0)


@pytest.mark.parametrize("name", ["e5m2", "e4m3", "e3m2", "e2m3", "e2m1"])
@given(st.floats(width=64, allow_nan=False, allow_infinity=False, min_value=-1e6, max_value=1e6))
def test_a_cast_is_the_nearest_number(name: str, value: float) -> None:
    made = int(codes(cast(np.array([value]), name))[0])
    sign = 1 << (formats.number(name).bits - 1)
    want = _nearest(Fraction(value), name)
    assert made & ~sign == want & ~sign
    assert bool(made & sign) == (math.copysign(1, value) < 0)


@each_of("name", FLOATS)
@each_of("source", ["float32", "bfloat16", "float16", "float64"])
def test_ml_dtypes_rounds_the_same(name: str, source: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, source, source))
    if formats.number(source).name == name or (name, source) == ("bf16", "float64"):
        return
    rng = np.random.default_rng(5)
    x = rng.integers(0, 1 << 32, 1 << 14, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        x = x.astype(kind)
        theirs = x.astype(formats.number(name).dtype.numpy)
        numbers = ~np.isnan(x.astype(np.float64))
    assert np.array_equal(codes(cast(x, name, saturate=False))[numbers], codes(theirs)[numbers])


def test_float64_is_rounded_once() -> None:
    """0x1.1p8 plus a little rounds up; through float32 it would be a tie, and round down."""
    x = np.array([272.0 + 2.0**-40])
    assert float(cast(x, "e4m3")[0]) == 288.0
    assert float(cast(x.astype(np.float32), "e4m3")[0]) == 256.0
    near = np.array([1.00390625 + 2.0**-40])
    assert float(cast(near, "bf16")[0]) == 1.0078125


@each_of("row", NUMBERS, ids=lambda row: row.name)
def test_every_number_is_itself(row: Number) -> None:
    if row.bits > 16:
        return
    width = row.dtype.numpy.itemsize
    bits = np.arange(1 << (row.bits if row.signed else row.bits - (row.name == "ue4m3")), dtype=f"u{width}")
    if row.name == "int4":
        bits = codes(np.arange(-8, 8).astype(row.dtype.numpy))
    values = to_float32(bits, row)
    again = codes(cast(values, row, saturate=False)).astype(bits.dtype)
    kept = ~np.isnan(values)
    assert np.array_equal(again[kept], bits[kept])
    assert np.nanmax(values[np.isfinite(values)]) == row.largest


def test_integers() -> None:
    x = np.float32([2.5, -2.5, 3.7, -3.7, 1e9, -1e9, np.nan, np.inf])
    assert cast(x, "int8").tolist() == [2, -2, 4, -4, 127, -128, 0, 127]
    assert cast(x, "int8", rounding="toward_zero").tolist() == [2, -2, 3, -3, 127, -128, 0, 127]
    assert cast(x, "int4").astype(int).tolist() == [2, -2, 4, -4, 7, -8, 0, 7]
    assert to_float32(cast(x, "int4")).tolist() == [2, -2, 4, -4, 7, -8, 0, 7]


@each_of(("name", "packing"), [("e2m1", "pairs"), ("int4", "pairs"), ("e2m3", "dense"), ("e3m2", "dense")])
@each_of("width", [1, 2, 3, 4, 5, 8, 31, 64])
def test_packing_and_back(name: str, packing: str, width: int) -> None:
    row = formats.number(name)
    bits = np.random.default_rng(width).integers(0, 1 << row.bits, (3, width), dtype=np.uint8)
    packed = pack_elements(bits, packing, name)
    assert packed.shape == (3, -(-width * row.bits // 8))
    stream = np.unpackbits(packed, axis=1, bitorder="little")
    for i in range(width):
        weights = stream[:, row.bits * i : row.bits * (i + 1)] @ (1 << np.arange(row.bits))
        assert np.array_equal(weights, bits[:, i])
    back = codes(unpack_elements(packed, width, packing, name))
    assert np.array_equal(back & ((1 << row.bits) - 1), bits)


def test_bad_input() -> None:
    x = np.float32([1.0])
    for wrong, error in (
        (lambda: cast(x, "e4m3", rounding="up"), InvalidValueError),
        (lambda: cast(x, "ue8m0", rounding="nearest_even"), InvalidValueError),
        (lambda: cast(x, "complex64"), InvalidValueError),
        (lambda: cast([1.0], "e4m3"), InvalidTypeError),  # type: ignore[arg-type]
        (lambda: cast(x, "e4m3", rounding="down"), InvalidValueError),
        (lambda: pack_elements(x, "pairs", "e4m3"), InvalidValueError),
        (lambda: pack_elements(np.uint16([1]), "pairs", "e2m1"), InvalidTypeError),
        (lambda: unpack_elements(np.uint8([1]), 3, "pairs", "e2m1"), InvalidValueError),
    ):
        with pytest.raises(error):
            wrong()


@pytest.mark.parametrize("name", [row.name for row in NUMBERS if row.bits <= 8 and not row.is_integer])
def test_a_float32_is_rounded_once(name: str) -> None:
    """Every upper half of a float32, with lower halves around each tie, gives the code of the same float64."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    bits = upper[:, None] | np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    single = bits.reshape(-1).view(np.float32)
    with np.errstate(invalid="ignore"):
        double = single.astype(np.float64)
    modes = ("up", "toward_zero") if name == "ue8m0" else (None,)
    for rounding in modes:
        for saturate in (True, False):
            got, want = (codes(cast(x, name, rounding=rounding, saturate=saturate)) for x in (single, double))
            assert np.array_equal(got, want)


def _defined(values: np.ndarray, name: str, saturate: bool) -> np.ndarray:
    """The codes of float64 numbers by the definition: every number between two neighbours is compared with their mean,
    which float64 holds exactly."""
    row = formats.number(name)
    width = row.dtype.numpy.itemsize
    top = int(codes(np.array([row.largest]).astype(row.dtype.numpy))[0])
    held = of_codes(np.arange(top + 1, dtype=f"u{width}"), row).astype(np.float64)
    beyond = np.append(held, 2 * held[-1] - held[-2])  # the next number if the exponent had no limit
    means = (beyond[1:] + beyond[:-1]) / 2
    size_of = np.abs(values)
    code = np.searchsorted(means, size_of)  # the number of means below
    ties = size_of == means[np.minimum(code, top)]
    code += ties & (code % 2 == 1)
    past = row.infinite if row.infinite is not None else row.nan
    code = np.where(code > top, top if saturate or past is None else past, code)
    nan, sign = np.isnan(values), np.signbit(values) * (1 << row.bits - 1)
    if row.nan is None:
        return np.where(nan, top, code | sign)
    return np.where(nan, row.nan, code) | sign


@each_of("name", FLOATS)
def test_every_upper_half_of_a_float32_has_the_code_of_the_definition(name: str) -> None:
    """Lower halves around each tie; float64 numbers just above and below the same float32."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    single = (upper[:, None] | np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)).reshape(-1).view(np.float32)
    with np.errstate(invalid="ignore"):
        double = single.astype(np.float64)
    near = (double.view(np.uint64)[::7, None] + np.array([1, -1 % (1 << 64)], np.uint64)).reshape(-1).view(np.float64)
    for source, exact in ((single, double), (double, double), (near, near)):
        for saturate in (True, False):
            assert np.array_equal(codes(cast(source, name, saturate=saturate)), _defined(exact, name, saturate))


@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_batches_and_threads_do_not_change_a_cast(source: type, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    x = (rng.standard_normal(10007) * np.exp2(rng.integers(-20, 9, 10007))).astype(source)
    x[[5, 4000, 9999]] = np.nan, -np.inf, 1e6
    whole = {name: codes(cast(x, name, saturate=False)) for name in FLOATS}
    monkeypatch.setattr(numbers, "BATCH", 160)
    for processors in (1, 3):
        monkeypatch.setattr(os, "cpu_count", lambda count=processors: count)
        for name, want in whole.items():
            assert np.array_equal(codes(cast(x, name, saturate=False)), want)


def test_a_cast_of_no_elements() -> None:
    for origin in NUMBERS:
        for row in NUMBERS:
            for shape in ((0,), (0, 3), (3, 0)):
                made = cast(np.zeros(shape, origin.dtype.numpy), row)
                assert made.shape == shape and made.dtype == row.dtype.numpy, (origin.name, row.name)
