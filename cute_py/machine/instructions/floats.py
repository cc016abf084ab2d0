"""Floating-point arithmetic with all rounding modes, saturation, flushing of denormals, and the NaNs of the hardware.

numpy computes sums and products of float32 and float64, rounded to nearest. Other results are computed as a float64
that rounds like the exact result, and are then rounded once:

    fma of float32, float16, bfloat16   the product is exact in float64; its sum with c is rounded to odd (the last bit
                                        is set if bits were lost), so the last rounding equals the rounding of the exact
                                        sum
    directed roundings                  the same

A NaN result is 0x7FFFFFFF as float32, 0x7FFF as a half. Approximations (ex2, lg2, rcp, rsqrt, sqrt, div, sin, cos,
tanh) are correctly rounded from float64. The results of the hardware differ within the bounds of the ISA. Source: PTX
ISA 9.0, floating-point instructions; NaN patterns and flushing measured on NVIDIA H200.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from cute_py.machine.decode import Builder
from cute_py.machine.faults import Refused
from cute_py.machine.kinds import Kind
from cute_py.machine.rounding import (
    fused_double,
    half_bits,
    nearest_double,
    signed_zeros,
    single_of,
    sum_to_odd,
    to_odd,
)
from cute_py.machine.sites import Site
from cute_py.machine.threads import Array, Frame, Reader, Run, broadcast

TYPES: Final = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "f32x2")
ROUNDINGS: Final = ("rn", "rz", "rm", "rp")


# ---- numbers of a type -----------------------------------------------------------------------------------------------


def flushed(value: Any) -> Any:
    """Flush denormals of float32 or float16 to zeros of their sign."""
    if getattr(value, "dtype", None) == np.float16:
        half = np.asarray(value).view(np.uint16)
        return np.where((half & np.uint16(0x7C00)) == 0, half & np.uint16(0x8000), half).view(np.float16)
    raw = np.asarray(value, np.float32).view(np.uint32)
    small = (raw & np.uint32(0x7F800000)) == 0
    return np.where(small, raw & np.uint32(0x80000000), raw).view(np.float32)


def canonical(value: Any) -> Any:
    """Replace NaNs of float32 by the NaN of the hardware."""
    wrong = value != value
    if np.any(wrong):
        return np.where(wrong, np.uint32(0x7FFFFFFF), np.asarray(value, np.float32).view(np.uint32)).view(np.float32)
    return value


def with_nan(found: Any, *operands: Any) -> Array:
    """Replace NaNs in float64 results by the quieted NaN of an operand, with its sign; later operands take precedence.

    A sum or product takes the NaN of its second operand before the NaN of its first. A fused operation prefers b, then
    c, then a. A quotient prefers the dividend. An invalid operation, such as infinity minus infinity, gives
    0xFFF8000000000000. Source: measured on NVIDIA H200.
    """
    result = np.array(found, np.float64)
    missing = np.isnan(result)
    if missing.any():
        raw = result.view(np.uint64)
        raw[missing] = 0xFFF8000000000000
        for operand in operands:
            bits = np.ascontiguousarray(np.broadcast_to(np.asarray(operand, np.float64), result.shape)).view(np.uint64)
            taken = missing & np.isnan(bits.view(np.float64))
            raw[taken] = bits[taken] | np.uint64(1 << 51)
    return result


def numbers_of_kind(raw: Any, kind: Kind) -> Any:
    """Convert operands to floats that numpy supports: bf16 becomes float32."""
    if kind.name == "bf16":
        return (np.asarray(raw).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return raw


def packed_numbers(raw: Any, f: Frame, kind: Kind) -> Array:
    """Unpack operands of a packed type to floats (n, 2), the lower half first."""
    if kind.name == "f32x2":
        return np.ascontiguousarray(broadcast(raw, f)).view(np.float32).reshape(f.n, 2)
    halves = np.ascontiguousarray(broadcast(raw, f)).view(np.uint16).reshape(f.n, 2)
    if kind.name == "f16x2":
        return halves.view(np.float16)
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)


# ---- operations ------------------------------------------------------------------------------------------------------


def _exact(name: str, values: Sequence[Any], mode: str) -> Array:
    """Compute a float64 that rounds to float32 or a narrower type in the same way as the exact result."""
    first, second, *rest = (np.asarray(value, np.float64) for value in values)
    if name == "mul":
        return np.asarray(first * second)
    if name in ("fma", "mad"):
        first, second = first * second, rest[0]
    elif name == "sub":
        second = -second
    found = sum_to_odd(first, second)
    return signed_zeros(found, first, second) if mode == "rm" else found


_NATIVE: Final[Mapping[str, Callable[..., Any]]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
_OPERATIONS: Final = ("add", "sub", "mul", "fma", "mad")


def _arithmetic(name: str) -> Builder:
    """Return the builder of add, sub, mul or fma for all float types."""

    def build(site: Site) -> Run:
        mode = site.choice(*ROUNDINGS, default="rn")
        flushes, saturates, relu = site.flag("ftz"), site.flag("sat"), site.flag("relu")
        if site.flag("oob"):
            raise Refused(f"{site.one.opcode}: .oob is not emulated")
        kind = site.kind(*TYPES)
        count = 3 if name in ("fma", "mad") else 2
        if kind.bits == 16 and name != "mul" and site.flag("f32"):
            return _mixed(site, name, mode, saturates, kind)
        d, sources = site.writer(0, kind), [site.reader(1 + i, kind) for i in range(count)]
        site.finish(1 + count)
        if kind.name == "f64":
            return _double(name, mode, d, sources)
        if kind.name == "f32":
            return _single(name, mode, (flushes, saturates), d, sources)
        return _halves(name, mode, (flushes, saturates, relu), kind, d, sources)

    return build


def _mixed(site: Site, name: str, mode: str, saturates: bool, kind: Kind) -> Run:
    """Build add, sub or fma of halves and a float32 last operand: the halves are converted to float32."""
    count = 3 if name in ("fma", "mad") else 2
    halves = [site.reader(1 + i, kind) for i in range(count - 1)]
    sources = [_widened(half, kind) for half in halves] + [site.reader(count, "f32")]
    d = site.writer(0, "f32")
    site.finish(1 + count)
    return _single(name, mode, (False, saturates), d, sources)


def _widened(half: Reader, kind: Kind) -> Reader:
    return lambda f: np.asarray(numbers_of_kind(half(f), kind), np.float32)


def saturated(value: Any) -> Any:
    """Clamp numbers to [0, 1]; a NaN becomes +0."""
    return np.where(value > 0, np.minimum(value, value.dtype.type(1)), value.dtype.type(0))


def positive(value: Any) -> Any:
    """Apply `.relu`: numbers of at most 0 become +0; a NaN stays."""
    return np.where(value <= 0, 0.0, value)


def _single(name: str, mode: str, how: tuple[bool, bool], d: Any, sources: list[Reader]) -> Run:
    flushes, saturates = how
    native = _NATIVE.get(name) if mode == "rn" else None

    def run(f: Frame) -> None:
        values = [source(f) for source in sources]
        if flushes:
            values = [flushed(value) for value in values]
        found = native(*values) if native is not None else single_of(_exact(name, values, mode), mode)
        found = canonical(found)
        if flushes:
            found = flushed(found)
        d(f, saturated(found) if saturates else found)

    return run


def _double(name: str, mode: str, d: Any, sources: list[Reader]) -> Run:
    if name in ("fma", "mad"):
        a, b, c = sources

        def fused(f: Frame) -> None:
            x, y, z = (broadcast(source(f), f) for source in (a, b, c))
            d(f, with_nan(fused_double(x, y, z, mode), x, z, y))

        return fused
    native = _NATIVE[name]

    def run(f: Frame) -> None:
        x, y = (broadcast(source(f), f) for source in sources)
        if mode == "rn":
            found = native(x, y)
        elif name == "mul":
            found = fused_double(x, y, np.copysign(0.0, x * y), mode)
        else:
            found = _directed_sum(x, y if name == "add" else -y, mode)
        d(f, with_nan(found, x, y))

    return run


def _directed_sum(x: Array, y: Array, mode: str) -> Array:
    """Compute x + y of float64 with a directed rounding."""
    found = signed_zeros(x + y, x, y) if mode == "rm" else x + y
    for place in np.flatnonzero(np.isfinite(x) & np.isfinite(y)).tolist():
        exact = Fraction(float(x[place])) + Fraction(float(y[place]))
        found[place] = nearest_double(exact, mode, float(found[place]))
    return np.asarray(found)


def _halves(name: str, mode: str, how: tuple[bool, bool, bool], kind: Kind, d: Any, sources: list[Reader]) -> Run:
    flushes, saturates, relu = how
    packed = kind.name.endswith("x2")
    element = kind.name.removesuffix("x2")

    def run(f: Frame) -> None:
        read = [source(f) for source in sources]
        if packed:
            values = [packed_numbers(value, f, kind) for value in read]
        else:
            values = [numbers_of_kind(value, kind) for value in read]
        if flushes:
            values = [flushed(value) for value in values]
        if element == "f32":
            native = _NATIVE.get(name)
            single = canonical(
                native(*values) if native and mode == "rn" else single_of(_exact(name, values, mode), mode)
            )
            single = flushed(single) if flushes else single
            d(f, np.ascontiguousarray(single).view(np.uint64).reshape(f.n))
            return
        wide = _exact(name, values, mode)
        if saturates:
            wide = saturated(wide)
        if relu:
            wide = positive(wide)
        bits = half_bits(np.asarray(wide), element, mode)
        if flushes:
            bits = flushed(bits.view(np.float16)).view(np.uint16)
        _put_halves(f, d, bits, kind)

    return run


def _put_halves(f: Frame, d: Any, bits: Array, kind: Kind) -> None:
    if kind.name.endswith("x2"):
        d(f, np.ascontiguousarray(bits).view(np.uint32)[:, 0])
    else:
        d(f, bits.view(np.float16) if kind.name == "f16" else bits)


# ---- smallest, largest, signs ----------------------------------------------------------------------------------------


def _raw(kind: Kind) -> tuple[Any, int, int]:
    """Return (unsigned dtype, sign bit, NaN) of an element type."""
    element = kind.name.removesuffix("x2")
    table = {"f32": (np.uint32, 1 << 31, 0x7FFFFFFF), "f64": (np.uint64, 1 << 63, 0x7FF8000000000000)}
    return table.get(element, (np.uint16, 1 << 15, 0x7FFF))


def _bits(value: Any, f: Frame, kind: Kind) -> Array:
    """View operands as element bits: (n,), or (n, 2) for a packed type."""
    dtype = _raw(kind)[0]
    flat = np.ascontiguousarray(broadcast(value, f))
    return flat.view(dtype).reshape(f.n, -1) if kind.name.endswith("x2") else flat.view(dtype)


def _float_of(raw: Array, kind: Kind) -> Array:
    element = kind.name.removesuffix("x2")
    if element == "bf16":
        return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return raw.view({"f32": np.float32, "f64": np.float64, "f16": np.float16}[element])


def _flushed_bits(raw: Array, kind: Kind) -> Array:
    """Flush denormals in bits of float32 or float16."""
    return np.asarray(flushed(_float_of(np.ascontiguousarray(raw), kind)).view(raw.dtype))


def _put_bits(f: Frame, d: Any, raw: Array, kind: Kind) -> None:
    if kind.name.endswith("x2"):
        d(f, np.ascontiguousarray(raw).view(np.uint64 if kind.name == "f32x2" else np.uint32)[:, 0])
    else:
        d(f, raw.view(kind.dtype))


def _extreme(smallest: bool) -> Builder:
    """Return the builder of min or max. If one operand is a NaN, the result is the other operand, or NaN with `.NaN`;
    -0 is below +0.
    """

    def build(site: Site) -> Run:
        flushes, keeps_nan, by_size = site.flag("ftz"), site.flag("NaN"), site.flag("xorsign")
        site.flag("abs")
        kind = site.kind(*TYPES)
        count = len(site.operands) - 1
        d, sources = site.writer(0, kind), [site.reader(1 + i, kind) for i in range(count)]
        site.finish((3, 4))
        dtype, sign, nan = _raw(kind)

        def of_two(x: Array, y: Array) -> Array:
            a, b = (_float_of(np.ascontiguousarray(v & dtype(sign - 1)) if by_size else v, kind) for v in (x, y))
            first = (a < b) if smallest else (a > b)
            found = np.where(first | (b != b), x, y)
            if by_size:
                found = (found & dtype(sign - 1)) | ((x ^ y) & dtype(sign))
            else:
                found = np.where(a == b, (x | y) if smallest else (x & y), found)
            wrong = (a != a) | (b != b) if keeps_nan else (a != a) & (b != b)
            return np.where(wrong, y | dtype(1 << 51) if kind.name == "f64" else dtype(nan), found)

        def run(f: Frame) -> None:
            values = [_bits(source(f), f, kind) for source in sources]
            if flushes:
                values = [_flushed_bits(value, kind) for value in values]
            found = of_two(values[0], values[1])
            for value in values[2:]:
                found = of_two(found, value)
            _put_bits(f, d, found, kind)

        return run

    return build


def _sign(name: str) -> Builder:
    """Return the builder of abs or neg, which change the sign bit."""

    def build(site: Site) -> Run:
        flushes = site.flag("ftz")
        kind = site.kind(*TYPES)
        d, a = site.writer(0, kind), site.reader(1, kind)
        site.finish(2)
        dtype, sign, nan = _raw(kind)

        def run(f: Frame) -> None:
            value = _bits(a(f), f, kind)
            if flushes:
                value = _flushed_bits(value, kind)
            found = value & dtype(sign - 1) if name == "abs" else value ^ dtype(sign)
            number = _float_of(np.ascontiguousarray(value), kind)
            quiet = value | dtype(1 << 51) if kind.name == "f64" else dtype(nan)  # f64 keeps sign and payload
            found = np.where(number != number, quiet, found)
            _put_bits(f, d, found, kind)

        return run

    return build


# ---- quotients, roots, approximations --------------------------------------------------------------------------------


def _log2(x: Array) -> Array:
    return np.log2(np.asarray(x, np.float64))


_FUNCTIONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "rcp": lambda x: 1.0 / np.asarray(x, np.float64),
    "sqrt": lambda x: np.sqrt(np.asarray(x, np.float64)),
    "rsqrt": lambda x: 1.0 / np.sqrt(np.asarray(x, np.float64)),
    "ex2": lambda x: np.exp2(np.asarray(x, np.float64)),
    "lg2": _log2,
    "sin": lambda x: np.sin(np.asarray(x, np.float64)),
    "cos": lambda x: np.cos(np.asarray(x, np.float64)),
    "tanh": lambda x: np.tanh(np.asarray(x, np.float64)),
}


def _function(name: str) -> Builder:
    """Return the builder of a function of one operand, which is computed in float64 and rounded."""

    def build(site: Site) -> Run:
        mode = site.choice(*ROUNDINGS, default="rn")
        approximate, flushes = site.flag("approx"), site.flag("ftz")
        kind = site.kind(*TYPES)
        d, a = site.writer(0, kind), site.reader(1, kind)
        site.finish(2)
        if approximate:
            site.code.approximate.add(site.one.opcode)
        function = _FUNCTIONS[name]
        if kind.name == "f64":
            return _double_function(name, mode, d, a, flushes)
        if kind.name != "f32":
            return _half_function(function, kind, d, a, flushes)

        def run(f: Frame) -> None:
            value = np.atleast_1d(a(f))
            if flushes or (name in ("sin", "cos") and flushes):
                value = flushed(value)
            exact = function(value)
            found = single_of(_directed(name, value, exact, mode), mode) if mode != "rn" else exact.astype(np.float32)
            found = canonical(found)
            d(f, flushed(found) if flushes else found)

        return run

    return build


def _directed(name: str, value: Array, near: Array, mode: str) -> Array:
    """Compute a root or reciprocal as a float64 that directed rounding to float32 rounds like the exact result."""
    x = np.asarray(value, np.float64)
    if name == "rcp":
        lost = -(near * x - 1.0) * np.sign(x)
    else:
        lost = x - near * near
    exact = near.astype(np.float32).astype(np.float64) == near
    check = np.where(name == "rcp", near * x == 1.0, near * near == x)
    return np.where(exact & ~check & np.isfinite(near), to_odd(near, lost), near)


def _half_function(function: Callable[[Any], Any], kind: Kind, d: Any, a: Reader, flushes: bool) -> Run:
    """Build a function of halves; with flushing, a denormal result becomes a zero of the same sign."""
    element = kind.name.removesuffix("x2")
    least = np.float64(2.0**-126 if element == "bf16" else 2.0**-14)

    def run(f: Frame) -> None:
        raw = a(f)
        value = packed_numbers(raw, f, kind) if kind.name.endswith("x2") else np.atleast_1d(numbers_of_kind(raw, kind))
        found = np.asarray(function(value), np.float64)
        if flushes:
            found = np.where(np.abs(found) < least, np.copysign(0.0, found), found)
        _put_halves(f, d, half_bits(found, element), kind)

    return run


def _double_function(name: str, mode: str, d: Any, a: Reader, flushes: bool) -> Run:
    """Build rcp or sqrt of float64, computed by numpy; `.approx.ftz` keeps only the upper 32 bits."""

    def run(f: Frame) -> None:
        value = np.atleast_1d(a(f)).astype(np.float64)
        if flushes:
            value = np.where(np.abs(value) < np.finfo(np.float64).tiny, np.copysign(0.0, value), value)
        found = np.asarray(_FUNCTIONS[name](value))
        if mode != "rn":
            over = np.isinf(found) & (value != 0) & np.isfinite(value)  # the reciprocal of a denormal
            found = np.where(over, np.copysign(np.finfo(np.float64).max, found), found)
            for place in np.flatnonzero(np.isfinite(found) & (found != 0) & np.isfinite(value)).tolist():
                x, near = Fraction(float(value[place])), Fraction(float(found[place]))
                above = (near * x > 1) == (x > 0) if name == "rcp" else near * near > x
                same = near * x == 1 if name == "rcp" else near * near == x
                if not same:
                    other = math.nextafter(float(found[place]), -math.inf if above else math.inf)
                    low, high = sorted((float(found[place]), other))
                    found[place] = {"rm": low, "rp": high, "rz": low if low >= 0 else high}[mode]
        if flushes:
            found = (np.ascontiguousarray(found).view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)
        d(f, with_nan(found, value))

    return run


def build_quotient(site: Site) -> Run:
    """Build the function that runs div, with a rounding mode, `.full` or `.approx`."""
    mode = site.choice(*ROUNDINGS, default="rn")
    approximate = site.choice("approx", "full")
    flushes = site.flag("ftz")
    kind = site.kind("f32", "f64")
    d, a, b = site.writer(0, kind), site.reader(1, kind), site.reader(2, kind)
    site.finish(3)
    if approximate:
        site.code.approximate.add(site.one.opcode)

    def double(f: Frame) -> None:
        x, y = broadcast(a(f), f), broadcast(b(f), f)
        found = x / y
        if mode != "rn":
            usual = np.isfinite(x) & np.isfinite(y) & (y != 0) & (x != 0)
            for place in np.flatnonzero(usual).tolist():
                exact = Fraction(float(x[place])) / Fraction(float(y[place]))
                found[place] = nearest_double(exact, mode, float(found[place]))
        d(f, with_nan(found, y, x))

    def single(f: Frame) -> None:
        x, y = a(f), b(f)
        if flushes:
            x, y = flushed(x), flushed(y)
        if mode == "rn":
            found = np.asarray(x) / np.asarray(y)
        else:
            wide, below = np.asarray(x, np.float64), np.asarray(y, np.float64)
            near = np.atleast_1d(wide / below)
            rest = fused_double(-near, below, wide) * np.sign(below)
            found = single_of(to_odd(near, np.where(np.isfinite(near), rest, 0.0)), mode)
        if approximate == "approx":  # the reciprocal of such a divisor is 0: PTX ISA, div.approx
            large = (np.abs(y) > np.float32(2.0**126)) & np.isfinite(y)
            found = np.where(large, np.asarray(x) * np.copysign(np.float32(0), y), found)
        found = canonical(found)
        d(f, flushed(found) if flushes else found)

    return double if kind.name == "f64" else single


TABLE: Final[Mapping[str, Builder]] = {
    **{name: _arithmetic(name) for name in _OPERATIONS},
    "min": _extreme(True),
    "max": _extreme(False),
    "abs": _sign("abs"),
    "neg": _sign("neg"),
    "div": build_quotient,
    **{name: _function(name) for name in _FUNCTIONS},
}
