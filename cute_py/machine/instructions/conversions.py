"""cvt: from any element type to any other, with rounding, saturation, and pairs and fours of narrow floats.

Every float of at most 32 bits is converted to float64, which is exact, and then rounded once. Integers of 64 bits are
first rounded to odd. A NaN converts to the integer 0, or to the integer with only the highest bit set if one of the
types has 64 bits. Source: PTX ISA 9.0, cvt, cvt.pack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import ml_dtypes
import numpy as np

from cute_py.machine.decode import Builder
from cute_py.machine.faults import Refused
from cute_py.machine.instructions.floats import canonical, flushed, positive, saturated
from cute_py.machine.kinds import Kind
from cute_py.machine.rounding import half_bits, limited, nearest_double, rounded, single_of
from cute_py.machine.sites import Site
from cute_py.machine.threads import Array, Frame, Run, broadcast

_ROUNDINGS: Final = ("rn", "rna", "rz", "rm", "rp", "rs", "rni", "rzi", "rmi", "rpi")
_FLOATS: Final = ("f16", "bf16", "f32", "f64")
_WHOLE: Final[Mapping[str, Callable[[Any], Any]]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


class _Narrow:
    """A narrow float: bits, significant bits, exponent of its smallest normal number, largest number, dtype and NaN."""

    def __init__(self, bits: int, digits: int, least: int, largest: float, dtype: Any, nan: int) -> None:
        self.bits, self.digits, self.least, self.largest = bits, digits, least, largest
        self.dtype, self.nan = np.dtype(dtype), nan

    def encode(self, x: Array, mode: str, finite: bool, relu: bool, random: Array | None) -> Array:
        """Encode float64 as bits; with `finite`, larger numbers become the largest finite number.

        random: random numbers in [0, 1), for stochastic rounding.
        """
        if relu:
            x = positive(x)
        fitted = rounded(x, self.digits, self.least, mode, random)
        over = np.abs(fitted) > self.largest
        if finite or not np.isinf(np.array([np.inf]).astype(self.dtype).astype(np.float64))[0]:
            fitted = np.where(over, np.copysign(self.largest, x), fitted)
        raw = np.nan_to_num(fitted, nan=0.0, posinf=np.inf, neginf=-np.inf).astype(self.dtype).view(np.uint8)
        return np.where(np.isnan(x), np.uint8(self.nan), raw)


_NARROW: Final[Mapping[str, _Narrow]] = {
    "e4m3": _Narrow(8, 4, -6, 448.0, ml_dtypes.float8_e4m3fn, 0x7F),
    "e5m2": _Narrow(8, 3, -14, 57344.0, ml_dtypes.float8_e5m2, 0x7F),
    "e2m3": _Narrow(6, 4, 0, 7.5, ml_dtypes.float6_e2m3fn, 0x1F),
    "e3m2": _Narrow(6, 3, -2, 28.0, ml_dtypes.float6_e3m2fn, 0x1F),
    "e2m1": _Narrow(4, 2, 0, 6.0, ml_dtypes.float4_e2m1fn, 0x7),
}


def build_cvt(site: Site) -> Run:
    """Build the function that runs cvt."""
    if site.flag("pack"):
        return _build_pack(site)
    mode = site.choice(*_ROUNDINGS)
    flags = {name: site.flag(name) for name in ("ftz", "sat", "satfinite", "relu", "scaled::n2::ue8m0")}
    source, target = site.kind(), site.kind()
    if flags["scaled::n2::ue8m0"]:
        raise Refused(f"{site.one.opcode}: scaled conversions came after PTX ISA 9.0 and are not emulated")
    if mode == "rs":
        return _build_stochastic(site, source, target, flags)
    names = (target.name, source.name)
    if any("x2" in name or "x4" in name or name == "tf32" for name in names):
        return _build_packed(site, source, target, mode, flags)
    d, a = site.writer(0, target), site.reader(1, source)
    site.finish(2)
    if source.name not in _FLOATS and target.name not in _FLOATS:
        return lambda f: d(f, _integer(a(f), target, flags["sat"]))
    if target.name not in _FLOATS:
        return lambda f: d(f, _to_integer(_wide(a(f), source, flags["ftz"]), source, target, mode or "rzi"))
    if source.name not in _FLOATS:
        return lambda f: d(f, _from_integer(np.asarray(a(f)), target, mode or "rn", flags["sat"]))

    def run(f: Frame) -> None:
        d(f, _float(np.atleast_1d(a(f)), source, target, mode, flags))

    return run


def _integer(value: Any, target: Kind, saturates: bool) -> Any:
    raw = np.asarray(value)
    if saturates:
        low, high = _limits(target)
        info = np.iinfo(raw.dtype)
        raw = np.clip(raw, raw.dtype.type(max(low, info.min)), raw.dtype.type(min(high, info.max)))
    return raw.astype(target.dtype)


def _limits(kind: Kind) -> tuple[int, int]:
    if kind.letter == "s":
        return -(1 << kind.bits - 1), (1 << kind.bits - 1) - 1
    return 0, (1 << kind.bits) - 1


def _wide(value: Any, kind: Kind, flushes: bool) -> Array:
    """Convert a float to float64."""
    if kind.name == "bf16":
        value = (np.asarray(value).astype(np.uint32) << np.uint32(16)).view(np.float32)
    if flushes and kind.name == "f32":
        value = canonical(flushed(value))
    return np.asarray(value, np.float64)


def _to_integer(x: Array, source: Kind, target: Kind, mode: str) -> Array:
    low, high = _limits(target)
    whole = _WHOLE[mode if mode in _WHOLE else f"{mode}i"](x)
    top = float(high + 1)
    safe = np.where(np.isnan(whole) | (whole >= top) | (whole < low), 0.0, whole)
    found = safe.astype(np.uint64 if target.letter != "s" else np.int64).astype(target.dtype)
    found = np.where(whole >= top, target.dtype.type(high), found)
    found = np.where(whole < low, target.dtype.type(low), found)
    wide = source.name == "f64" or target.bits == 64
    nan = target.dtype.type((1 << target.bits - 1) - (1 << target.bits if target.letter == "s" else 0)) if wide else 0
    return np.where(np.isnan(whole), target.dtype.type(nan), found)


def _odd(value: Array) -> Array:
    """Convert integers to float64, rounded to odd."""
    near = value.astype(np.float64)
    if value.dtype.itemsize < 8 or not value.size:
        return near
    top = 2.0**63 if value.dtype.kind == "i" else 2.0**64
    inside = (near >= -top) & (near < top)
    back = np.where(inside, near, 0.0).astype(value.dtype)
    over = np.where(inside, back > value, near > 0)
    exact = inside & (back == value)
    raw = near.view(np.int64)
    odd = np.where(raw & 1, raw, np.where(over == (near > 0), raw - 1, raw + 1))
    return np.where(exact, raw, odd).view(np.float64)


def _from_integer(value: Array, target: Kind, mode: str, saturates: bool) -> Any:
    wide = np.atleast_1d(value)
    if target.name == "f64":
        if wide.dtype.itemsize == 8 and mode != "rn":
            found = [nearest_double(int(x), mode, 0.0) for x in wide.tolist()]  # type: ignore[arg-type]
            return np.array(found)
        return wide.astype(np.float64)
    exact = _odd(wide)
    if saturates:
        exact = np.clip(exact, 0.0, 1.0)
    return _narrowed(exact, target, mode)


def _narrowed(x: Array, target: Kind, mode: str) -> Any:
    """Round float64 to f32, f16 or bf16."""
    if target.name == "f32":
        return canonical(single_of(x, mode))
    bits = half_bits(x, target.name, mode)
    return bits.view(np.float16) if target.name == "f16" else bits


def _float(value: Array, source: Kind, target: Kind, mode: str, flags: Mapping[str, bool]) -> Any:
    found = _rounded_float(value, source, target, mode, flags)
    if flags["sat"] or source.name == target.name:
        return found
    if source.name == "f64":  # the upper bits of a NaN stay
        raw = np.ascontiguousarray(value).view(np.uint64)
        return _with_nan(found, np.isnan(value), raw, 29 if target.name == "f32" else 42)
    if (source.name, target.name) == ("f16", "f64"):  # a NaN becomes a quiet one
        raw = np.ascontiguousarray(found).view(np.uint64)
        return np.where(np.isnan(found), raw | np.uint64(1 << 51), raw).view(np.float64)
    if (source.name, target.name) == ("bf16", "f32"):  # the bits stay
        return (np.asarray(value).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return found


def _with_nan(found: Array, missing: Array, raw: Array, lost: int) -> Array:
    """Give the NaNs of float32 or float16 results the sign and the upper bits of the float64 NaNs; `lost` bits are cut
    off.
    """
    size = 8 * found.dtype.itemsize
    plain = np.dtype(f"uint{size}")
    sign = raw >> np.uint64(64 - size) & np.uint64(1 << size - 1)
    digits = raw >> np.uint64(lost) & np.uint64((1 << 52 - lost) - 1)
    exponent = np.uint64(((1 << size - 1) - 1) ^ ((1 << 52 - lost) - 1))
    bits = (sign | exponent | digits | np.uint64(1 << 51 - lost)).astype(plain)
    return np.where(missing, bits, found.view(plain)).view(found.dtype)


def _rounded_float(value: Array, source: Kind, target: Kind, mode: str, flags: Mapping[str, bool]) -> Any:
    x = _wide(value, source, flags["ftz"] and target.name != "f16")  # measured: conversions to float16 do not flush
    if mode in _WHOLE:
        x = np.copysign(_WHOLE[mode](x), x)
        mode = "rn"
    if flags["sat"]:
        x = saturated(x)
    if flags["relu"]:
        x = positive(x)
    if target.name == "f64":
        return x
    if flags["satfinite"]:
        largest = {"f16": 65504.0, "bf16": float(np.uint32(0x7F7F0000).view(np.float32))}.get(target.name, np.inf)
        x = np.clip(x, -largest, largest)
    found = _narrowed(x, target, mode or "rn")
    return flushed(found) if flags["ftz"] and target.name == "f32" else found


# ---- pairs and fours -------------------------------------------------------------------------------------------------


def _build_packed(site: Site, source: Kind, target: Kind, mode: str, flags: Mapping[str, bool]) -> Run:
    if target.name == "tf32":
        return _build_tf32(site, mode, flags)
    element, count = _element(target)
    from_element, from_count = _element(source)
    if "ue8m0" in (element, from_element):
        return _build_scales(site, source, target, mode, flags)
    d = site.writer(0, target)
    if from_count > 1:
        a = site.reader(1, source)
        site.finish(2)
        return lambda f: d(
            f, _pack(_encode(_unpack(a(f), f, from_element, from_count), element, mode, flags), element, f)
        )
    if source.name == "f32" and len(site.operands) == 1 + count:
        readers = [site.reader(1 + i, source) for i in range(count)]
        site.finish(1 + count)

        def run(f: Frame) -> None:
            rows = [_wide(broadcast(read(f), f), source, flags["ftz"]) for read in reversed(readers)]
            d(f, _pack(_encode(np.stack(rows, axis=1), element, mode, flags), element, f))

        return run
    names = site.elements(1)
    if source.name == "f32" and len(names) == count:
        sources = [site.read(name, source) for name in names]
        site.finish((2, 3))

        def four(f: Frame) -> None:
            rows = [_wide(broadcast(read(f), f), source, flags["ftz"]) for read in reversed(sources)]
            d(f, _pack(_encode(np.stack(rows, axis=1), element, mode, flags), element, f))

        return four
    raise Refused(f"{site.one.opcode} is not emulated")


def _element(kind: Kind) -> tuple[str, int]:
    name, _, count = kind.name.partition("x")
    return name, int(count or 1)


def _unpack(raw: Any, f: Frame, element: str, count: int) -> Array:
    """Unpack elements to float64 (n, count), the element in the lowest bits first."""
    words = np.ascontiguousarray(broadcast(raw, f))
    if element in ("f16", "bf16"):
        halves = words.view(np.uint16).reshape(f.n, -1)[:, :count]
        if element == "f16":
            return halves.view(np.float16).astype(np.float64)
        return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    parts = words.view(np.uint8).reshape(f.n, -1)
    row = _NARROW[element]
    if row.bits == 4:
        parts = np.stack([parts & 15, parts >> 4], axis=2).reshape(f.n, -1)
    elif row.bits == 6:
        parts = parts & np.uint8(63)
    found: Array = np.ascontiguousarray(parts[:, :count]).view(row.dtype).astype(np.float64)
    return found


def _encode(x: Array, element: str, mode: str, flags: Mapping[str, bool], random: Array | None = None) -> Array:
    """Encode float64 (n, count) as element bits. random: random numbers (n, count), for stochastic rounding."""
    if element in ("f16", "bf16"):
        if flags["relu"]:
            x = positive(x)
        if flags["satfinite"]:
            largest = 65504.0 if element == "f16" else float(np.uint32(0x7F7F0000).view(np.float32))
            x = np.clip(x, -largest, largest)
        return half_bits(x, element, mode or "rn", random)
    return _NARROW[element].encode(x, mode or "rn", flags["satfinite"], flags["relu"], random)


def _pack(bits: Array, element: str, f: Frame) -> Array:
    if element == "e2m1":
        bits = bits[:, 0::2] | bits[:, 1::2] << np.uint8(4)
    held = np.ascontiguousarray(bits)
    size = held.dtype.itemsize * held.shape[1]
    return held.view(f"uint{8 * size}").reshape(f.n)


_RANDOM: Final[Mapping[str, tuple[int, tuple[int, ...]]]] = {
    "f16x2": (13, (0, 16)), "bf16x2": (16, (0, 16)), "e2m1x4": (8, (0, 16, 8, 24)),
    **dict.fromkeys(("e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4"), (16, (0, 0, 16, 16))),
}  # fmt: skip
"""Target -> number of random bits of each number, and their positions in the operand, from the lowest number up."""


def _build_stochastic(site: Site, source: Kind, target: Kind, flags: Mapping[str, bool]) -> Run:
    """cvt.rs: add the random bits to the highest lost bits; a carry rounds away from zero."""
    if source.name != "f32" or target.name not in _RANDOM:
        raise Refused(f"{site.one.opcode} is not emulated; .rs has .f32 and a pair or four of narrower floats")
    element, count = _element(target)
    if count == 4 and not flags["satfinite"]:
        raise Refused(f"{site.one.opcode} has no .satfinite, which four numbers need")
    d = site.writer(0, target)
    if count == 4:
        sources = [site.read(name, source) for name in site.elements(1)]
    else:
        sources = [site.reader(1 + i, source) for i in range(count)]
    last = 2 if count == 4 else 1 + count
    bits = site.reader(last, "b32")
    site.finish(last + 1)
    if len(sources) != count:
        raise Refused(f"{site.one.opcode} with {len(sources)} numbers; must be {count}")
    width, shifts = _RANDOM[target.name]

    def run(f: Frame) -> None:
        rows = [_wide(broadcast(read(f), f), source, False) for read in reversed(sources)]
        drawn = np.asarray(broadcast(bits(f), f)).astype(np.uint32)[:, None] >> np.array(shifts, np.uint32)
        random = np.ldexp((drawn & np.uint32((1 << width) - 1)).astype(np.float64), -width)
        d(f, _pack(_encode(np.stack(rows, axis=1), element, "rs", flags, random), element, f))

    return run


def _build_tf32(site: Site, mode: str, flags: Mapping[str, bool]) -> Run:
    d, a = site.writer(0, "b32"), site.reader(1, "f32")
    site.finish(2)
    largest = float(np.uint32(0x7F7FE000).view(np.float32))

    def run(f: Frame) -> None:
        x = np.atleast_1d(np.asarray(a(f), np.float64))
        if flags["relu"]:
            x = positive(x)
        found = rounded(x, 11, -126, mode or "rn")
        found = np.clip(found, -largest, largest) if flags["satfinite"] else limited(found, largest, mode or "rn")
        raw = found.astype(np.float32).view(np.uint32)
        value = np.ascontiguousarray(broadcast(a(f), f)).view(np.uint32)
        nan = value & np.uint32(0xFFFFE000) if mode == "rna" else np.uint32(0x7FFFE000)
        d(f, np.where(np.isnan(x), nan, raw))

    return run


def _build_scales(site: Site, source: Kind, target: Kind, mode: str, flags: Mapping[str, bool]) -> Run:
    """Build conversions between ue8m0 pairs and bf16 or float32."""
    d = site.writer(0, target)
    if source.name == "ue8m0x2":
        a = site.reader(1, "u16")
        site.finish(2)

        def wider(f: Frame) -> None:
            parts = np.ascontiguousarray(broadcast(a(f), f)).view(np.uint8).reshape(f.n, 2).astype(np.uint16)
            bits = np.where(
                parts == 0xFF, np.uint16(0x7FFF), np.where(parts == 0, np.uint16(0x40), parts << np.uint16(7))
            )
            d(f, np.ascontiguousarray(bits).view(np.uint32)[:, 0])

        return wider
    count = len(site.operands) - 1
    readers = [site.reader(1 + i, source) for i in range(count)]
    site.finish((2, 3))

    def narrower(f: Frame) -> None:
        if count == 1:
            x = _unpack(readers[0](f), f, "bf16", 2)
        else:
            x = np.stack([np.asarray(broadcast(read(f), f), np.float64) for read in reversed(readers)], axis=1)
        size = np.abs(x)
        exponent = np.frexp(np.where(np.isfinite(size) & (size > 0), size, 1.0))[1] - 1
        up = (mode == "rp") & (np.ldexp(1.0, exponent) < size)
        biased = np.clip(exponent + up + 127, 0, 254)
        biased = np.where(size == 0, 0, biased)
        biased = np.where(np.isinf(size), 254 if flags["satfinite"] else 255, np.where(np.isnan(x), 255, biased))
        d(f, np.ascontiguousarray(biased.astype(np.uint8)).view(np.uint16)[:, 0])

    return narrower


def _build_pack(site: Site) -> Run:
    """cvt.pack: saturate two integers and pack them as halves, or as the two lowest bytes of the result, below bytes of
    a third operand.
    """
    site.flag("sat")
    target, source = site.first_kind(), site.first_kind()
    third = site.choice("b32")
    if target.bits not in (8, 16):
        raise Refused(f"{site.one.opcode} is not emulated")
    d, a, b = site.writer(0, "b32"), site.reader(1, source), site.reader(2, source)
    c = site.reader(3, "b32") if third else None
    site.finish(4 if third else 3)
    low, high = _limits(target)

    def run(f: Frame) -> None:
        x, y = (np.clip(np.asarray(read(f)).astype(np.int64), low, high) & (1 << target.bits) - 1 for read in (a, b))
        found = x << target.bits | y
        if c is not None and target.bits == 8:
            found = found | np.asarray(c(f)).astype(np.int64) << 16
        d(f, (found & 0xFFFFFFFF).astype(np.uint32))

    return run


TABLE: Final[Mapping[str, Builder]] = {"cvt": build_cvt}
