"""Float instructions and conversions against exact fractions, rounded by the definition of the type."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_py.errors import CuteError
from tests.machine.forms import run_form
from tests.shares import one_in

DICE = np.random.default_rng(11)
SINGLES = [0.0, -0.0, 1.0, -1.5, -(2.0**-149), 2.0**-133, 3.4028235e38, 1 + 2.0**-23, 65504.0, 464.0, math.inf,
           -math.inf, math.nan, 2.0**31, -2.5, 0.5]  # fmt: skip


def exponent_of(size: Fraction) -> int:
    """The exponent of the leading bit."""
    e = size.numerator.bit_length() - size.denominator.bit_length()
    return e if Fraction(2) ** e <= size else e - 1


class Form:
    """A float type by its bits: of the exponent, of the fraction; whether it has infinities."""

    def __init__(self, exponent: int, fraction: int, nan: int, *, largest: float | None = None) -> None:
        self.exponent, self.fraction, self.nan = exponent, fraction, nan
        self.bias = (1 << exponent - 1) - 1
        self.width = 1 + exponent + fraction
        self.infinite = largest is None
        self.largest = Fraction((2 - 2.0**-fraction) * 2.0**self.bias) if largest is None else Fraction(largest)

    def number(self, bits: int) -> float:
        """Its number; the types here are at most float64."""
        sign = -1.0 if bits >> self.width - 1 & 1 else 1.0
        e, f = bits >> self.fraction & (1 << self.exponent) - 1, bits & (1 << self.fraction) - 1
        if self.infinite and e == (1 << self.exponent) - 1:
            return math.nan if f else sign * math.inf
        if e == 0:
            return sign * math.ldexp(f, 1 - self.bias - self.fraction)
        return sign * math.ldexp(f + (1 << self.fraction), e - self.bias - self.fraction)

    def rounded(self, exact: Fraction, mode: str, negative_zero: bool = False) -> int:
        """The bits of a fraction."""
        sign = (exact < 0 or (exact == 0 and negative_zero)) << self.width - 1
        size = abs(exact)
        if size == 0:
            return sign
        e = max(exponent_of(size), 1 - self.bias)
        scaled = size / Fraction(2) ** (e - self.fraction)
        whole = scaled.numerator // scaled.denominator
        rest = scaled - whole
        up = {
            "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1),
            "rna": rest >= Fraction(1, 2),
            "rz": False,
            "rm": bool(rest) and exact < 0,
            "rp": bool(rest) and exact > 0,
        }[mode]
        whole += bool(up)
        value = whole * Fraction(2) ** (e - self.fraction)
        if value > self.largest:
            if self.infinite and (mode in ("rn", "rna") or ((mode == "rm") == (exact < 0) and mode != "rz")):
                return sign | ((1 << self.exponent) - 1) << self.fraction
            value = self.largest
        e = max(exponent_of(value), 1 - self.bias) if value else 1 - self.bias
        whole = int(value / Fraction(2) ** (e - self.fraction))
        if whole < 1 << self.fraction:
            return sign | whole
        return sign | (e + self.bias) << self.fraction | whole - (1 << self.fraction)


F16, BF16 = Form(5, 10, 0x7FFF), Form(8, 7, 0x7FFF)
F32, F64 = Form(8, 23, 0x7FFFFFFF), Form(11, 52, 0x7FF8000000000000)
E4M3 = Form(4, 3, 0x7F, largest=448.0)
FORMS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def operands(name: str, count: int) -> tuple[Any, Any, Any]:
    """Rows of bits: special numbers in all pairs, numbers near each other, any bits."""
    form = FORMS[name]
    dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}[name]
    kind = f"uint{form.width}"
    with np.errstate(over="ignore"):
        special = np.array(SINGLES).astype(dtype).view(kind).astype(np.uint64)
        near = (DICE.standard_normal((3, count)) * 2.0 ** DICE.integers(-6, 7, (3, count))).astype(dtype).view(kind)
    pairs = np.array(list(itertools.product(special, special))).T
    wild = DICE.integers(0, 1 << min(form.width, 63), (3, count), np.uint64)
    a = np.concatenate([pairs[0], near[0], wild[0]]).astype(np.uint64)
    b = np.concatenate([pairs[1], near[1], wild[1]]).astype(np.uint64)
    c = np.concatenate([DICE.permutation(pairs[0]), near[2], wild[2]]).astype(np.uint64)
    return a, b, c


def exact_of(name: str, x: float, y: float, z: float) -> Fraction | None:
    """What an operation gives of finite numbers; None where the rules of infinities and NaN hold."""
    if not all(map(math.isfinite, (x, y, z))):
        return None
    p, q, r = Fraction(x), Fraction(y), Fraction(z)
    if name == "div":
        return p / q if y else None
    return {"add": p + q, "sub": p - q, "mul": p * q, "fma": p * q + r}[name]


REGISTER = {"f16": "h", "bf16": "h", "f32": "f", "f64": "d"}
MODES = {"f32": ("rn", "rz", "rm", "rp"), "f64": ("rn", "rz", "rm", "rp"), "f16": ("rn",), "bf16": ("rn",)}
CASES = [
    (op, kind, mode)
    for op in ("add", "sub", "mul", "fma", "div")
    for kind, modes in MODES.items()
    for mode in modes
    if op != "div" or kind in ("f32", "f64")
]


@pytest.mark.parametrize(("op", "kind", "mode"), one_in(3, CASES), ids=[".".join(case) for case in CASES])
def test_rounded_arithmetic(op: str, kind: str, mode: str) -> None:
    a, b, c = operands(kind, 60)
    form, r = FORMS[kind], REGISTER[kind]
    third = f", %{r}c" if op == "fma" else ""
    found = run_form(f"{op}.{mode}.{kind} %{r}d, %{r}a, %{r}b{third};", a, b, c)
    for i, j, k, d in zip(*(v.tolist() for v in (a, b, c, found)), strict=True):
        x, y, z = (form.number(bits) for bits in (i, j, k))
        exact = exact_of(op, x, y, z if op == "fma" else 0.0)
        if exact:
            assert d == form.rounded(exact, mode), (op, kind, mode, x, y, z)
        elif exact is None:
            other = _of_specials(op, x, y, z)
            got = form.number(d)
            assert math.isnan(other) == math.isnan(got), (x, y, z)
            if math.isnan(other) and kind != "f64":
                assert d == form.nan
            if not math.isnan(other):
                assert got == other
        else:
            assert form.number(d) == 0


def _of_specials(op: str, x: float, y: float, z: float) -> float:
    with np.errstate(all="ignore"):
        p, q = np.float64(x), np.float64(y)
        if op == "div":
            return float(p / q)
        return float({"add": p + q, "sub": p - q, "mul": p * q, "fma": p * q + np.float64(z)}[op])


def test_denormals_are_flushed_where_the_instruction_says_so() -> None:
    a, b, _ = operands("f32", 80)
    for op in ("add", "mul"):
        kept, flushed = (run_form(f"{op}{ftz}.f32 %fd, %fa, %fb;", a, b, 0) for ftz in ("", ".ftz"))
        for i, j, d, e in zip(*(v.tolist() for v in (a, b, kept, flushed)), strict=True):
            small = [bits & 0x7F800000 == 0 and bits & 0x7FFFFF for bits in (i, j, d)]
            if not any(small):
                assert d == e
            assert not (e & 0x7F800000 == 0 and e & 0x7FFFFF)


def test_saturation_keeps_within_0_and_1() -> None:
    a, b, _ = operands("f32", 80)
    plain, held = (run_form(f"add{sat}.f32 %fd, %fa, %fb;", a, b, 0) for sat in ("", ".sat"))
    for d, e in zip(plain.tolist(), held.tolist(), strict=True):
        number = F32.number(d)
        expected = 0.0 if math.isnan(number) or number <= 0 else min(number, 1.0)
        assert F32.number(e) == expected


@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16"])
def test_least_and_greatest(kind: str) -> None:
    a, b, _ = operands(kind, 60)
    form, r = FORMS[kind], REGISTER[kind]
    for op, better in (("min", min), ("max", max)):
        found = run_form(f"{op}.{kind} %{r}d, %{r}a, %{r}b;", a, b, 0)
        for i, j, d in zip(a.tolist(), b.tolist(), found.tolist(), strict=True):
            x, y = form.number(i), form.number(j)
            if math.isnan(x) and math.isnan(y):
                assert math.isnan(form.number(d))
            elif math.isnan(x) or math.isnan(y):
                assert d == (j if math.isnan(x) else i)
            elif x == y == 0:
                assert d == (max(i, j) if op == "min" else min(i, j))
            else:
                assert form.number(d) == better(x, y)


def test_packed_halves_are_two_of_one() -> None:
    for kind in ("f16", "bf16"):
        a, b, c = operands(kind, 60)
        one = run_form(f"fma.rn.{kind} %hd, %ha, %hb, %hc;", a, b, c)
        other = run_form(f"fma.rn.{kind} %hd, %ha, %hb, %hc;", c, a, b)
        low, high = np.uint64(0), np.uint64(16)
        both = run_form(f"fma.rn.{kind}x2 %rd, %ra, %rb, %rc;", a | c << high, b | a << high, c | b << high)
        assert (both == (one << low | other << high)).all()


ROUND: dict[str, Callable[[float], int]] = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


@pytest.mark.parametrize("source", ["f32", "f64", "f16"])
@pytest.mark.parametrize("target", one_in(3, ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]))
def test_floats_to_integers(source: str, target: str) -> None:
    a, _, _ = operands(source, 60)
    bits = int(target[1:])
    s = {8: "r", 16: "h", 32: "r", 64: ""}[bits]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if target[0] == "s" else (0, (1 << bits) - 1)
    width = max(bits, 32) if bits == 8 else bits
    for mode, rule in ROUND.items():
        found = run_form(f"cvt.{mode}.{target}.{source} %{s}d, %{REGISTER[source]}a;", a, 0, 0)
        for i, d in zip(a.tolist(), found.tolist(), strict=True):
            x = FORMS[source].number(i)
            if math.isnan(x):
                wide = source == "f64" or bits == 64
                expected = 1 << bits - 1 if wide else 0
                expected = expected - (1 << bits) if target[0] == "s" and wide else expected
            else:
                expected = high if x == math.inf else low if x == -math.inf else max(low, min(rule(x), high))
            assert d == expected & (1 << width) - 1, (mode, x)


@pytest.mark.parametrize("target", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("source", one_in(2, ["s32", "u32", "u64", "s64"]))
def test_integers_to_floats(source: str, target: str) -> None:
    bits = int(source[1:])
    r = {32: "r", 64: ""}[bits]
    edges = [0, 1, 2**24 + 1, 2**31 - 1, 2**31, 2**32 - 1, 2**53 + 1, 2**62 + 2**9 + 1, 2**63, 2**64 - 1, 65519, 65520]
    a = np.array([*edges, *DICE.integers(0, 1 << 63, 60).tolist()], np.uint64)
    for mode in ("rn", "rz", "rm", "rp"):
        found = run_form(f"cvt.{mode}.{target}.{source} %{REGISTER[target]}d, %{r}a;", a, 0, 0)
        for i, d in zip(a.tolist(), found.tolist(), strict=True):
            x = i & (1 << bits) - 1
            number = x - (1 << bits) if source[0] == "s" and x >> bits - 1 else x
            assert d == FORMS[target].rounded(Fraction(number), mode), (mode, number)


NARROWED = [("f32", "f16"), ("f32", "bf16"), ("f64", "f32"), ("f64", "f16"), ("f16", "f32"), ("f16", "bf16"),
            ("bf16", "f32"), ("bf16", "f16"), ("f32", "f64")]  # fmt: skip


@pytest.mark.parametrize(("source", "target"), NARROWED)
def test_floats_to_floats(source: str, target: str) -> None:
    a, _, _ = operands(source, 80)
    form, other = FORMS[source], FORMS[target]
    widens = form.exponent <= other.exponent and form.fraction <= other.fraction
    for mode in ("",) if widens else ("rn", "rz", "rm", "rp"):
        dot = f".{mode}" if mode else ""
        found = run_form(f"cvt{dot}.{target}.{source} %{REGISTER[target]}d, %{REGISTER[source]}a;", a, 0, 0)
        for i, d in zip(a.tolist(), found.tolist(), strict=True):
            x = form.number(i)
            if math.isnan(x):
                assert math.isnan(other.number(d))
            elif math.isinf(x):
                assert other.number(d) == x
            else:
                assert d == other.rounded(Fraction(x), mode or "rn", math.copysign(1, x) < 0), (mode, x)


def test_pairs_of_narrow_floats() -> None:
    a, b, _ = operands("f32", 80)
    for name, form, dtype in (("e4m3", E4M3, ml_dtypes.float8_e4m3fn), ("e5m2", None, ml_dtypes.float8_e5m2)):
        found = run_form(f"cvt.rn.satfinite.{name}x2.f32 %hd, %fa, %fb;", a, b, 0).astype(np.uint16)
        back = run_form(f"cvt.rn.f16x2.{name}x2 %rd, %ha;", found.astype(np.uint64), 0, 0).astype(np.uint32)
        for place, operand in ((1, a), (0, b)):
            bits = (found >> (8 * place) & 0xFF).astype(np.uint8)
            numbers = bits.view(dtype).astype(np.float64)
            largest = float(ml_dtypes.finfo(dtype).max)
            for i, d, y in zip(operand.tolist(), bits.tolist(), numbers.tolist(), strict=True):
                x = F32.number(i)
                if math.isnan(x):
                    assert math.isnan(y)
                elif abs(x) >= largest:
                    assert y == math.copysign(largest, x)
                elif form is not None:
                    assert d == form.rounded(Fraction(x), "rn", math.copysign(1, x) < 0)
                else:
                    assert y == float(np.float64(x).astype(dtype))
            halves = (back >> (16 * place) & 0xFFFF).astype(np.uint16).view(np.float16).astype(np.float64)
            assert np.array_equal(halves, numbers, equal_nan=True)
    halves = run_form("cvt.rn.f16x2.f32 %rd, %fa, %fb;", a, b, 0)
    high, low = (run_form("cvt.rn.f16.f32 %hd, %fa;", x, 0, 0) for x in (a, b))
    assert (halves == (high << np.uint64(16) | low)).all()


def test_comparisons_with_nan() -> None:
    a, b, _ = operands("f32", 100)
    ordered = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
    for name, sign in ordered.items():
        plain = run_form(f"setp.{name}.f32 %p, %fa, %fb;", a, b, 0)
        either = run_form(f"setp.{name}u.f32 %p, %fa, %fb;", a, b, 0)
        for i, j, d, e in zip(*(v.tolist() for v in (a, b, plain, either)), strict=True):
            x, y = F32.number(i), F32.number(j)
            nan = math.isnan(x) or math.isnan(y)
            truth = eval("x " + sign + " y", {"x": x, "y": y})
            assert d == (truth and not nan)
            assert e == (truth or nan)


def test_approximations_are_correctly_rounded_and_named() -> None:
    from cute_py import run_ptx
    from tests.machine.forms import kernel

    a = np.abs(DICE.standard_normal(256).astype(np.float32)) + np.float32(0.1)
    rows = a.view(np.uint32).astype(np.uint64)
    rules: dict[str, Callable[[Any], Any]] = {
        "ex2": np.exp2, "lg2": np.log2, "rcp": np.reciprocal, "rsqrt": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt,
        "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
    }  # fmt: skip
    for name, rule in rules.items():
        found = run_form(f"{name}.approx.f32 %fd, %fa;", rows, 0, 0).astype(np.uint32).view(np.float32)
        assert (found == rule(a.astype(np.float64)).astype(np.float32)).all(), name
    text = kernel("ex2.approx.ftz.f32 %fd, %fa;")
    run = run_ptx(text, args=[rows, rows, rows, np.zeros(256, np.uint64)])
    assert run.approximate == ("ex2.approx.ftz.f32",)
    assert "ex2.approx.ftz.f32" in run.explain()


NARROWEST = {
    "e2m1": (4, ml_dtypes.float4_e2m1fn),
    "e2m3": (6, ml_dtypes.float6_e2m3fn),
    "e3m2": (6, ml_dtypes.float6_e3m2fn),
}


def nearest_codes(x: Any, bits: int, dtype: Any) -> Any:
    """The code of the number that is nearest to each x, of two the one whose code is even; of a NaN the largest."""
    codes = np.arange(1 << bits - 1, dtype=np.uint8)
    values = codes.view(dtype).astype(np.float64)
    size = np.where(np.isnan(x), np.inf, np.abs(x))
    distance = np.abs(np.minimum(size, 2 * values[-1])[:, None] - values)
    tied = distance == distance.min(axis=1, keepdims=True)
    even = np.where(tied, codes % 2, 2).argmin(axis=1)
    return even | np.where(np.signbit(x) & ~np.isnan(x), 1 << bits - 1, 0)


@pytest.mark.parametrize("name", list(NARROWEST))
def test_narrow_floats_of_later_chips(name: str) -> None:
    bits, dtype = NARROWEST[name]
    dice = np.random.default_rng(17)
    edges = np.arange(1 << bits - 1, dtype=np.uint8).view(dtype).astype(np.float32)
    ties = np.r_[edges, (edges[1:] + edges[:-1]) / 2, np.inf, np.nan].astype(np.float32)
    x = np.r_[ties, -ties, dice.standard_normal(10_000) * 2.0 ** dice.integers(-4, 5, 10_000)].astype(np.float32)
    y = dice.permutation(x)
    a, b = (part.view(np.uint32).astype(np.uint64) for part in (x, y))
    high, low = nearest_codes(x.astype(np.float64), bits, dtype), nearest_codes(y.astype(np.float64), bits, dtype)
    if bits == 4:
        form = ".reg .b8 %n; cvt.rn.satfinite.e2m1x2.f32 %n, %fa, %fb; cvt.u16.u8 %hd, %n;"
        assert np.array_equal(run_form(form, a, b, 0), (high << 4 | low).astype(np.uint64))
    else:
        form = f"cvt.rn.satfinite.{name}x2.f32 %hd, %fa, %fb;"
        assert np.array_equal(run_form(form, a, b, 0), (high << 8 | low).astype(np.uint64))
    pairs = np.arange(1 << 8 if bits == 4 else 1 << 16, dtype=np.uint64)
    if bits == 4:
        halves = run_form(".reg .b8 %n; cvt.u8.u16 %n, %ha; cvt.rn.f16x2.e2m1x2 %rd, %n;", pairs, 0, 0)
        parts = (pairs & np.uint64(15), pairs >> np.uint64(4))
    else:
        pairs = pairs[(pairs & np.uint64(0xC0C0)) == 0]
        halves = run_form(f"cvt.rn.f16x2.{name}x2 %rd, %ha;", pairs, 0, 0)
        parts = (pairs & np.uint64(63), pairs >> np.uint64(8))
    for place, part in enumerate(parts):
        found = (halves >> np.uint64(16 * place) & np.uint64(0xFFFF)).astype(np.uint16).view(np.float16)
        assert np.array_equal(found.astype(np.float32), part.astype(np.uint8).view(dtype).astype(np.float32))


def test_scales_of_later_chips() -> None:
    """ue8m0: powers of two; rz cuts, rp rounds up."""
    dice = np.random.default_rng(19)
    x = np.abs(dice.standard_normal(4_000) * 2.0 ** dice.integers(-120, 120, 4_000)).astype(np.float32)
    x[:64] = 2.0 ** np.arange(-30, 34)
    bits = x.view(np.uint32)
    for mode in ("rz", "rp"):
        found = run_form(f"cvt.{mode}.satfinite.ue8m0x2.f32 %hd, %fa, %fb;", bits.astype(np.uint64), bits[::-1], 0)
        for place, operand in ((8, x), (0, x[::-1])):
            codes = (found >> np.uint64(place) & np.uint64(0xFF)).astype(np.uint8)
            scale = codes.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
            assert ((scale <= operand) & (operand < 2 * scale) if mode == "rz" else
                    (scale >= operand) & (operand > scale / 2)).all()  # fmt: skip


STOCHASTIC = {
    "f16x2": (5, 10, 13, (16, 0)),
    "bf16x2": (8, 7, 16, (16, 0)),
    "e4m3x4": (4, 3, 16, (16, 16, 0, 0)),
    "e5m2x4": (5, 2, 16, (16, 16, 0, 0)),
    "e2m3x4": (2, 3, 16, (16, 16, 0, 0)),
    "e3m2x4": (3, 2, 16, (16, 16, 0, 0)),
    "e2m1x4": (2, 1, 8, (24, 8, 16, 0)),
}
"""Target of cvt.rs -> bits of its exponent and of its mantissa, random bits, and where those of a, b, e, f begin."""


def stochastic_code(x: float, random: int, width: int, exponent: int, mantissa: int) -> int:
    """The bits of a finite number whose magnitude is below the largest, by whole numbers alone.

    The codes of one sign are numbered as their numbers are. A number lies between two neighbours; it becomes the upper
    one where the carry of its lost bits, as `width` of them, and the random bits is set.
    """
    bias = (1 << exponent - 1) - 1
    size = Fraction(abs(x))
    power = max(size.numerator.bit_length() - size.denominator.bit_length() - 1, -bias) if size else -bias
    while size >= Fraction(2) ** (power + 1):
        power += 1
    power = max(power, 1 - bias)
    steps = size / Fraction(2) ** (power - mantissa)
    code = int(steps) + (power + bias - 1 << mantissa)
    lost = int((steps - int(steps)) * (1 << width))
    return code + (lost + random >> width) | (x < 0) << exponent + mantissa


@pytest.mark.parametrize("name", list(STOCHASTIC))
def test_stochastic_rounding(name: str) -> None:
    exponent, mantissa, width, shifts = STOCHASTIC[name]
    dice = np.random.default_rng(23)
    least = 2 - (1 << exponent - 1) - mantissa
    top = (1 << exponent - 1) - (1 if name.startswith(("f16", "bf16", "e5m2")) else 0)
    x = dice.uniform(-1, 1, 2_000) * 2.0 ** dice.integers(max(least - 2, -126), top, 2_000)
    x = np.r_[x.astype(np.float32), np.float32(2.0**least) * np.arange(-8, 8, dtype=np.float32) / 4]
    rows = [dice.permutation(x) for _ in shifts]
    random = dice.integers(0, 1 << 32, len(x), dtype=np.uint64)
    random[:32] = np.repeat([0, 0xFFFFFFFF], 16)
    a, b = (row.view(np.uint32).astype(np.uint64) for row in rows[:2])
    if len(shifts) == 2:
        found = run_form(f"cvt.rs.{name}.f32 %rd, %fa, %fb, %rc;", a, b, random)
    else:
        low, high = (row.view(np.uint32).astype(np.uint64) << np.uint64(32) for row in rows[2:])
        four = "mov.b64 {%t, %u}, %a; mov.b32 %fc, %u; mov.b64 {%t, %u}, %b; mov.b32 %fd, %u;"
        into = "%hd" if name == "e2m1x4" else "%rd"
        found = run_form(
            f"{four} cvt.rs.satfinite.{name}.f32 {into}, {{%fa, %fb, %fc, %fd}}, %rc;", a | low, b | high, random
        )
    step = 4 if name == "e2m1x4" else 32 // len(shifts)
    wanted = np.zeros(len(x), np.uint64)
    for place, (row, shift) in enumerate(zip(rows, shifts, strict=True)):
        drawn = (random.astype(np.int64) >> shift & (1 << width) - 1).tolist()
        pairs = zip(row.tolist(), drawn, strict=True)
        codes = [stochastic_code(number, bits, width, exponent, mantissa) for number, bits in pairs]
        wanted |= np.array(codes, np.uint64) << np.uint64(step * (len(shifts) - 1 - place))
    assert np.array_equal(found, wanted)


def test_stochastic_rounding_of_numbers_without_a_neighbour() -> None:
    """Infinity, NaN and what is above the largest, with and without .satfinite and .relu."""
    x = np.array([np.inf, -np.inf, np.nan, 65504.0, 65519.0, 1e30, -1e30, -1.5], np.float32)
    a = x.view(np.uint32).astype(np.uint64)
    for random, upper in ((0, 0x7BFF), (0xFFFFFFFF, 0x7C00)):
        plain = run_form("cvt.rs.f16x2.f32 %rd, %fa, %fa, %rc;", a, 0, random) >> np.uint64(16)
        assert plain.tolist() == [0x7C00, 0xFC00, 0x7FFF, 0x7BFF, upper, 0x7C00, 0xFC00, 0xBE00]
    finite = run_form("cvt.rs.relu.satfinite.f16x2.f32 %rd, %fa, %fa, %rc;", a, 0, 0xFFFFFFFF) >> np.uint64(16)
    assert finite.tolist() == [0x7BFF, 0, 0x7FFF, 0x7BFF, 0x7BFF, 0x7BFF, 0, 0]
    four = "cvt.rs.satfinite.e4m3x4.f32 %rd, {%fa, %fa, %fa, %fa}, %rc;"
    assert (run_form(four, a, 0, 0) >> np.uint64(24)).tolist() == [0x7E, 0xFE, 0x7F, 0x7E, 0x7E, 0x7E, 0xFE, 0xBC]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("cvt.rs.f16.f32 %hd, %fa, %rc;", ".rs has .f32 and a pair or four"),
        ("cvt.rs.e4m3x4.f32 %rd, {%fa, %fa, %fa, %fa}, %rc;", "no .satfinite"),
        ("cvt.rs.satfinite.e4m3x4.f32 %rd, {%fa, %fa}, %rc;", "2 numbers; must be 4"),
        ("cvt.rn.satfinite.scaled::n2::ue8m0.e4m3x2.f32 %hd, %fa, %fb, %hc;", "after PTX ISA 9.0"),
    ],
)
def test_conversions_that_are_refused(form: str, said: str) -> None:
    with pytest.raises(CuteError, match=re.escape(said)):
        run_form(form, 0, 0, 0)


@pytest.mark.parametrize("after", ["", ".NaN", ".abs", ".abs.NaN"])
@pytest.mark.parametrize("operation", ["min", "max"])
def test_extremes_of_a_warp(operation: str, after: str) -> None:
    """redux.sync of float32 of later chips: the sorted numbers of each warp, and of its lower half alone."""
    dice = np.random.default_rng(29)
    x = dice.standard_normal((40, 32)).astype(np.float32)
    x[dice.random(x.shape) < 0.1] = -0.0
    x[:8][dice.random((8, 32)) < 0.2] = np.nan
    x[8] = np.where(np.arange(32) % 2, 0.0, -0.0)
    x[9], x[10, :16], x[11, 3] = np.nan, -np.nan, -np.inf
    raw = x.reshape(-1).view(np.uint32).astype(np.uint64)
    halves = np.tile(np.where(np.arange(32) < 16, 0xFFFF, 0xFFFF0000), 40)
    for masks, groups in ((0xFFFFFFFF, x), (halves, x.reshape(80, 16))):
        wanted = []
        for row in groups.tolist():
            sizes = [abs(y) if "abs" in after else y for y in row]
            numbers = sorted((y for y in sizes if y == y), key=lambda y: (y, math.copysign(1, y)))
            gone = not numbers or ("NaN" in after and len(numbers) < len(row))
            wanted += [math.nan if gone else numbers[0 if operation == "min" else -1]] * len(row)
        found = run_form(f"redux.sync.{operation}{after}.f32 %fd, %fa, %rb;", raw, masks, 0).astype(np.uint32)
        want = np.array(wanted, np.float32)
        assert np.array_equal(found, np.where(np.isnan(want), np.uint32(0x7FFFFFFF), want.view(np.uint32)))
