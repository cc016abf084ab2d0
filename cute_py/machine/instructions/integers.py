"""Integer arithmetic, logic and bit fields.

Source: PTX ISA 9.0, integer arithmetic, extended-precision, logic and shift instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from cute_py.machine.decode import Builder
from cute_py.machine.faults import Refused
from cute_py.machine.kinds import KINDS, Kind
from cute_py.machine.sites import Site
from cute_py.machine.threads import Array, Frame, Reader, Run, Writer, broadcast
from cute_py.ptx.parse import OperandKind

TYPES: Final = ("u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "b32", "u64", "s64", "b64")


def unsigned_of(kind: Kind) -> Kind:
    """The unsigned type with the same width."""
    return KINDS[f"u{kind.bits}"]


def binary(site: Site, operation: Callable[[Any, Any], Any], kind: Kind) -> Run:
    """Build d = operation(a, b), with operands of one type."""
    d, a, b = site.writer(0, kind), site.reader(1, kind), site.reader(2, kind)
    site.finish(3)
    return lambda f: d(f, operation(a(f), b(f)))


def unary(site: Site, operation: Callable[[Any], Any], kind: Kind) -> Run:
    """Build d = operation(a), with operands of one type."""
    d, a = site.writer(0, kind), site.reader(1, kind)
    site.finish(2)
    return lambda f: d(f, operation(a(f)))


# ---- sums and products -----------------------------------------------------------------------------------------------


def build_add(site: Site) -> Run:
    """Build add, optionally with saturation of s32 or with a carry-out (`.cc`)."""
    return _sum(site, np.add, False)


def build_sub(site: Site) -> Run:
    """Build sub, optionally with saturation of s32 or with a carry-out (`.cc`)."""
    return _sum(site, np.subtract, False)


def build_add_carry(site: Site) -> Run:
    """Build addc: addition with carry-in."""
    return _sum(site, np.add, True)


def build_sub_carry(site: Site) -> Run:
    """Build subc: subtraction with borrow-in."""
    return _sum(site, np.subtract, True)


def _sum(site: Site, operation: Callable[[Any, Any], Any], carried: bool) -> Run:
    saturates, carries = site.flag("sat"), site.flag("cc")
    if site.modifiers and site.modifiers[-1] in ("u16x2", "s16x2"):
        return _packed(site, operation)
    kind = site.kind(*TYPES)
    if carries or carried:
        return _with_carry(site, kind, operation is np.subtract, carries, carried)
    if saturates:
        low, high = -(1 << kind.bits - 1), (1 << kind.bits - 1) - 1
        d, a, b = site.writer(0, kind), site.reader(1, kind), site.reader(2, kind)
        site.finish(3)
        return lambda f: d(f, np.clip(operation(np.int64(a(f)), np.int64(b(f))), low, high).astype(kind.dtype))
    return binary(site, operation, kind)


def _packed(site: Site, operation: Callable[[Any, Any], Any]) -> Run:
    """Build an operation on two packed 16-bit halves."""
    kind = site.kind("u16x2", "s16x2")
    half = np.dtype(np.int16 if kind.name[0] == "s" else np.uint16)
    d, a, b = site.writer(0, "b32"), site.reader(1, "b32"), site.reader(2, "b32")
    site.finish(3)

    def run(f: Frame) -> None:
        x, y = (np.ascontiguousarray(broadcast(value(f), f)).view(half) for value in (a, b))
        d(f, operation(x, y).view(np.uint32))

    return run


def _carry(f: Frame) -> Array:
    """The carry flags of all threads. As in the hardware, a difference is computed as a + ~b + 1, so it sets the flag
    if there is no borrow.
    """
    return f.m.row("carry", lambda: np.zeros(f.m.count, np.uint8))


def _with_carry(site: Site, kind: Kind, subtracts: bool, carries: bool, carried: bool) -> Run:
    plain = unsigned_of(kind)
    d, a, b = site.writer(0, plain), site.reader(1, plain), site.reader(2, plain)
    site.finish(3)

    def run(f: Frame) -> None:
        x, y = broadcast(a(f), f), broadcast(b(f), f)
        row = _carry(f)
        if subtracts:
            y = ~y
        old = row[f.threads].astype(plain.dtype) if carried else plain.dtype.type(subtracts)
        found = x + y + old
        out = (found < x) | ((found == x) & (old != 0))
        if carries:
            row[f.threads] = out
        d(f, found)

    return run


def high_product(a: Any, b: Any, kind: Kind) -> Any:
    """Compute the upper half of a product."""
    if kind.bits < 64:
        wide = np.int64 if kind.letter == "s" else np.uint64
        product = np.asarray(a).astype(wide) * np.asarray(b).astype(wide)
        return (product >> wide(kind.bits)).astype(kind.dtype)
    x, y = (np.asarray(value).astype(np.uint64) for value in (a, b))
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    low, cross, other = (x & mask) * (y & mask), (x >> half) * (y & mask), (x & mask) * (y >> half)
    middle = (low >> half) + (cross & mask) + (other & mask)
    found = (x >> half) * (y >> half) + (cross >> half) + (other >> half) + (middle >> half)
    if kind.letter == "s":
        found = found - np.where(x >> np.uint64(63), y, np.uint64(0)) - np.where(y >> np.uint64(63), x, np.uint64(0))
    return found.view(kind.dtype) if isinstance(found, np.ndarray) else found.astype(kind.dtype)


def _wide(kind: Kind) -> Kind:
    if kind.bits not in (16, 32):
        raise Refused(f"{kind.name} has no wide product")
    return KINDS[f"{kind.letter}{2 * kind.bits}"]


def _part(site: Site) -> str:
    part = site.choice("lo", "hi", "wide")
    if not part:
        raise Refused(f"{site.one.opcode} does not name a part of the product")
    return part


def build_mul(site: Site) -> Run:
    """mul: compute the lower half (lo), the upper half (hi) or all bits (wide) of a product."""
    part, kind = _part(site), site.kind(*TYPES)
    a, b = site.reader(1, kind), site.reader(2, kind)
    site.finish(3)
    if part == "wide":
        wide = _wide(kind)
        d, number = site.writer(0, wide), wide.dtype
        return lambda f: d(f, np.multiply(a(f), b(f), dtype=number))
    d = site.writer(0, kind)
    if part == "hi":
        return lambda f: d(f, high_product(a(f), b(f), kind))
    return lambda f: d(f, a(f) * b(f))


def build_mad(site: Site) -> Run:
    """mad: add c to the lower half (lo), the upper half (hi) or all bits (wide) of a product, with saturation or a
    carry.
    """
    saturates, carries = site.flag("sat"), site.flag("cc")
    part, kind = _part(site), site.kind(*TYPES)
    a, b = site.reader(1, kind), site.reader(2, kind)
    site.finish(4)
    if part == "wide":
        wide = _wide(kind)
        d, c, number = site.writer(0, wide), site.reader(3, wide), wide.dtype
        return lambda f: d(f, np.multiply(a(f), b(f), dtype=number) + c(f))
    d, c = site.writer(0, kind), site.reader(3, kind)
    if carries or site.name == "madc":
        return _mad_with_carry(site, kind, part, (d, a, b, c), carries)
    if part == "hi":
        if saturates:
            return lambda f: d(f, np.clip(np.int64(high_product(a(f), b(f), kind)) + c(f), -(1 << 31), (1 << 31) - 1))
        return lambda f: d(f, high_product(a(f), b(f), kind) + c(f))
    return lambda f: d(f, a(f) * b(f) + c(f))


def _mad_with_carry(
    site: Site, kind: Kind, part: str, operands: tuple[Writer, Reader, Reader, Reader], carries: bool
) -> Run:
    d, a, b, c = operands
    plain = unsigned_of(kind)
    carried = site.name == "madc"

    def run(f: Frame) -> None:
        product = high_product(a(f), b(f), kind) if part == "hi" else a(f) * b(f)
        x = np.broadcast_to(product, (f.n,)).astype(plain.dtype)
        y = broadcast(c(f), f).astype(plain.dtype)
        row = _carry(f)
        old = row[f.threads].astype(plain.dtype) if carried else plain.dtype.type(0)
        found = x + y + old
        if carries:
            row[f.threads] = (found < x) | ((found == x) & (old != 0) & (y != 0))
        d(f, found.view(kind.dtype))

    return run


def build_mul24(site: Site) -> Run:
    """mul24 and mad24: multiply the lower 24 bits of two operands; mad24 adds c."""
    part, kind = site.choice("lo", "hi"), site.kind("u32", "s32")
    saturates = site.flag("sat")
    adds = site.name == "mad24"
    d, a, b = site.writer(0, kind), site.reader(1, kind), site.reader(2, kind)
    c = site.reader(3, kind) if adds else None
    site.finish(4 if adds else 3)

    def low(value: Any) -> Any:
        kept = np.asarray(value).astype(np.int64) & 0xFFFFFF
        return np.where(kept >> 23 != 0, kept - (1 << 24), kept) if kind.letter == "s" else kept

    def run(f: Frame) -> None:
        product = low(a(f)) * low(b(f))
        found = product >> 16 if part == "hi" else product
        found = found & 0xFFFFFFFF
        if kind.letter == "s":
            found = np.where(found >> 31 != 0, found - (1 << 32), found)
        if c is not None:
            found = found + np.asarray(c(f)).astype(np.int64)
            if saturates:
                found = np.clip(found, -(1 << 31), (1 << 31) - 1)
        d(f, found.astype(kind.dtype))

    return run


def build_sad(site: Site) -> Run:
    """sad: compute c + |a - b|."""
    kind = site.kind(*TYPES)
    d, a, b, c = site.writer(0, kind), site.reader(1, kind), site.reader(2, kind), site.reader(3, kind)
    site.finish(4)

    def run(f: Frame) -> None:
        x, y = a(f), b(f)
        d(f, c(f) + np.where(x < y, y - x, x - y))

    return run


def build_div(site: Site) -> Run:
    """div: round towards zero; a division by zero gives all ones, like the machine code that ptxas generates."""
    kind = site.kind(*TYPES)
    return binary(site, lambda a, b: quotient_and_rest(a, b, kind)[0], kind)


def build_rem(site: Site) -> Run:
    """rem: compute the remainder, with the sign of the dividend; a division by zero gives all ones."""
    kind = site.kind(*TYPES)
    return binary(site, lambda a, b: quotient_and_rest(a, b, kind)[1], kind)


def quotient_and_rest(a: Any, b: Any, kind: Kind) -> tuple[Any, Any]:
    """Compute the quotient, rounded towards zero, and the remainder; for a divisor of 0, both are all ones, as measured
    on an H200.
    """
    x, y = np.broadcast_arrays(np.asarray(a, kind.dtype), np.asarray(b, kind.dtype))
    zero = y == 0
    safe = np.where(zero, kind.dtype.type(1), y)
    if kind.letter == "s":
        plain = np.dtype(f"uint{kind.bits}")
        up, down = np.abs(x).view(plain), np.abs(safe).view(plain)
        quotient, rest = (up // down).view(kind.dtype), (up % down).view(kind.dtype)
        quotient = np.where((x < 0) != (safe < 0), -quotient, quotient)
        rest = np.where(x < 0, -rest, rest)
    else:
        quotient, rest = x // safe, x % safe
    ones = ~kind.dtype.type(0)
    return np.where(zero, ones, quotient), np.where(zero, ones, rest)


def build_abs(site: Site) -> Run:
    """Build abs."""
    return unary(site, np.abs, site.kind(*TYPES))


def build_neg(site: Site) -> Run:
    """Build neg."""
    return unary(site, np.negative, site.kind(*TYPES))


def _extreme(operation: Callable[[Any, Any], Any]) -> Builder:
    def build(site: Site) -> Run:
        relu = site.flag("relu")
        if site.modifiers[-1:] in (["u16x2"], ["s16x2"]):
            return _packed(site, (lambda a, b: np.maximum(operation(a, b), 0)) if relu else operation)
        kind = site.kind(*TYPES)
        if relu:
            return binary(site, lambda a, b: np.maximum(operation(a, b), kind.dtype.type(0)), kind)
        return binary(site, operation, kind)

    return build


def _dot(parts: int) -> Builder:
    """Return the builder of dp4a or dp2a."""

    def build(site: Site) -> Run:
        half = site.choice("lo", "hi") if parts == 2 else ""
        first, second = site.first_kind(), site.first_kind()
        kind = KINDS["s32" if "s" in (first.letter, second.letter) else "u32"]
        d, a, b, c = site.writer(0, kind), site.reader(1, "b32"), site.reader(2, "b32"), site.reader(3, kind)
        site.finish(4)

        def split(value: Any, f: Frame, letter: str, bits: int) -> Array:
            words = np.ascontiguousarray(broadcast(value, f))
            return words.view(f"{'int' if letter == 's' else 'uint'}{bits}").reshape(f.n, -1).astype(np.int64)

        def run(f: Frame) -> None:
            x = split(a(f), f, first.letter, 8 if parts == 4 else 16)
            y = split(b(f), f, second.letter, 8)
            if half:
                y = y[:, :2] if half == "lo" else y[:, 2:]
            found = (x * y).sum(axis=1) + np.asarray(c(f)).astype(np.int64)
            d(f, found.astype(kind.dtype))

        return run

    return build


# ---- logic and bits --------------------------------------------------------------------------------------------------


def _logic(operation: Callable[[Any, Any], Any]) -> Builder:
    def build(site: Site) -> Run:
        return binary(site, operation, site.kind("pred", "b16", "b32", "b64"))

    return build


def build_not(site: Site) -> Run:
    """Build not."""
    return unary(site, np.invert, site.kind("pred", "b16", "b32", "b64"))


def build_cnot(site: Site) -> Run:
    """cnot: logical negation, 1 for 0 and 0 for other values."""
    kind = site.kind("b16", "b32", "b64")
    return unary(site, lambda a: (a == 0).astype(kind.dtype), kind)


def build_shl(site: Site) -> Run:
    """shl: shift left; a shift by the width or more gives 0."""
    return _shift(site, site.kind("b16", "b32", "b64"))


def build_shr(site: Site) -> Run:
    """shr: shift right; a signed type is filled with the sign bit."""
    return _shift(site, site.kind(*TYPES))


def _shift(site: Site, kind: Kind) -> Run:
    d, a, count = site.writer(0, kind), site.reader(1, kind), site.reader(2, "u32")
    site.finish(3)
    number, bits = kind.dtype.type, kind.bits
    left, signed = site.name == "shl", kind.letter == "s"
    fixed = site.operand(2).value
    if fixed is not None:
        by = fixed % (1 << 32)
        if by >= bits and signed and not left:
            by = bits - 1
        if by >= bits:
            return lambda f: d(f, number(0))
        amount = number(by)
        return (lambda f: d(f, a(f) << amount)) if left else (lambda f: d(f, a(f) >> amount))

    def run(f: Frame) -> None:
        by = count(f)
        small = np.minimum(by, bits - 1).astype(kind.dtype)
        value = a(f)
        found = value << small if left else value >> small
        d(f, found if signed and not left else np.where(by < bits, found, number(0)))

    return run


def build_funnel(site: Site) -> Run:
    """shf: shift the 64 bits of two registers, and keep the upper (l) or lower (r) 32."""
    left = site.choice("l", "r") == "l"
    wraps = site.choice("wrap", "clamp") == "wrap"
    site.kind("b32")
    site.finish(4)
    d, low, high, count = site.writer(0, "b32"), site.reader(1, "b32"), site.reader(2, "b32"), site.reader(3, "b32")

    def run(f: Frame) -> None:
        both = np.asarray(low(f)).astype(np.uint64) | np.asarray(high(f)).astype(np.uint64) << np.uint64(32)
        by = count(f)
        amount = np.asarray(by & np.uint32(31) if wraps else np.minimum(by, np.uint32(32))).astype(np.uint64)
        found = (both << amount) >> np.uint64(32) if left else both >> amount
        found = np.where(amount == 32, np.asarray(low(f) if left else high(f)).astype(np.uint64), found)
        d(f, found.astype(np.uint32))

    return run


def build_lop3(site: Site) -> Run:
    """lop3: apply a function of three bits from its table; with `d|p`, also combine (d != 0) with a predicate."""
    operation = site.choice("and", "or")
    site.kind("b32")
    site.finish(6 if operation else 5)
    table = site.constant(4)
    put, put_flag, other = _lop3_results(site, operation)
    a, b, c = (site.reader(place, "b32") for place in (1, 2, 3))

    def run(f: Frame) -> None:
        x, y, z = a(f), b(f), c(f)
        found = np.zeros(f.n, np.uint32)
        for term in range(8):
            if table >> term & 1:
                found |= (x if term & 4 else ~x) & (y if term & 2 else ~y) & (z if term & 1 else ~z)
        flags = other(f)
        put_flag(f, (found != 0) & flags if operation == "and" else (found != 0) | flags)
        put(f, found)

    return run


def _lop3_results(site: Site, operation: str) -> tuple[Writer, Writer, Reader]:
    """Return writers for `d` and `p` of the operand `d|p`, and a reader of the predicate that p is combined with."""
    if not operation:
        return site.writer(0, "b32"), lambda f, value: None, lambda f: np.bool_(False)
    one = site.operand(0)
    if one.kind is not OperandKind.PAIR:
        raise Refused(f"{site.one.opcode} must write a register and a predicate, d|p")
    return site.write(one.elements[0], "b32"), site.write(one.elements[1], "pred"), site.predicate(5)


def build_permute(site: Site) -> Run:
    """prmt: select bytes of two registers by a selector, in any of the prmt modes."""
    mode = site.choice("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    site.kind("b32")
    site.finish(4)
    d, a, b, control = site.writer(0, "b32"), site.reader(1, "b32"), site.reader(2, "b32"), site.reader(3, "b32")

    def run(f: Frame) -> None:
        parts = np.stack([broadcast(value(f), f) for value in (a, b)], axis=1)
        held = np.ascontiguousarray(parts).view(np.uint8)
        selector = broadcast(control(f), f)
        if mode:
            table = np.array(_MODES[mode])
            chosen = table[selector & np.uint32(3)]
            signs = np.zeros_like(chosen)
        else:
            chosen = (selector[:, None] >> np.arange(0, 16, 4, dtype=np.uint32)) & np.uint32(15)
            signs, chosen = chosen & 8, chosen & 7
        found = np.take_along_axis(held, chosen.astype(np.intp), axis=1)
        found = np.where(signs != 0, np.where(found & 0x80, np.uint8(0xFF), np.uint8(0)), found)
        d(f, np.ascontiguousarray(found).view(np.uint32)[:, 0])

    return run


_MODES: Final = {
    "f4e": [[(i + n) % 8 for n in range(4)] for i in range(4)],
    "b4e": [[(i - n) % 8 for n in range(4)] for i in range(4)],
    "rc8": [[i] * 4 for i in range(4)],
    "ecl": [[max(i, n) for n in range(4)] for i in range(4)],
    "ecr": [[min(i, n) for n in range(4)] for i in range(4)],
    "rc16": [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]],
}
"""Mode of prmt -> selector -> source byte in (b, a) of each byte of d, lowest first."""


def build_extract(site: Site) -> Run:
    """bfe: extract a bit field, and extend it with its sign or zeros."""
    kind = site.kind("u32", "s32", "u64", "s64")
    d, a, start, length = site.writer(0, kind), site.reader(1, kind), site.reader(2, "u32"), site.reader(3, "u32")
    site.finish(4)
    bits = kind.bits
    plain = np.dtype(f"uint{bits}")

    def run(f: Frame) -> None:
        value = np.ascontiguousarray(broadcast(a(f), f))
        at, count = _field(start(f), length(f), bits)
        raw = value.view(plain)
        held = np.minimum(count, bits - at)
        found = np.where(at < bits, raw >> np.minimum(at, bits - 1).astype(plain), plain.type(0)) & _ones(held, plain)
        if kind.letter == "s":
            last = np.clip(at + count - 1, 0, bits - 1).astype(plain)
            sign = (raw >> last) & plain.type(1)
            found = np.where((sign != 0) & (count > 0), found | ~_ones(held, plain), found)
        d(f, found.view(kind.dtype))

    return run


def _field(start: Any, length: Any, bits: int) -> tuple[Array, Array]:
    """The first bit and the length of a bit field, limited to the width.

    For 32 bits, only the lower byte of each operand is used. For 64 bits, ptxas builds bfe and bfi from other
    instructions, and all bits are used, as measured on an H200.
    """
    mask = 0xFF if bits == 32 else 0xFFFFFFFF
    first, count = (np.asarray(value).astype(np.int64) & mask for value in (start, length))
    return np.minimum(first, bits), np.minimum(count, bits)


def _ones(count: Array, plain: Any) -> Array:
    """Compute masks with the lowest `count` bits set; a larger count sets all bits."""
    bits = plain.itemsize * 8
    some = (plain.type(1) << np.clip(count, 0, bits - 1).astype(plain)) - plain.type(1)
    return np.asarray(np.where(count >= bits, ~plain.type(0), some))


def build_insert(site: Site) -> Run:
    """bfi: insert a bit field into another value."""
    kind = site.kind("b32", "b64")
    d, a, b = site.writer(0, kind), site.reader(1, kind), site.reader(2, kind)
    start, length = site.reader(3, "u32"), site.reader(4, "u32")
    site.finish(5)
    bits, number = kind.bits, kind.dtype.type

    def run(f: Frame) -> None:
        at, count = _field(start(f), length(f), bits)
        by = np.minimum(at, bits - 1).astype(kind.dtype)
        mask = np.where(at < bits, _ones(count, np.dtype(kind.dtype)) << by, number(0))
        d(f, (b(f) & ~mask) | ((a(f) << by) & mask))

    return run


def build_mask(site: Site) -> Run:
    """bmsk: make a mask of consecutive ones that begins at a given bit."""
    wraps = site.choice("clamp", "wrap") == "wrap"
    site.kind("b32")
    d, a, b = site.writer(0, "b32"), site.reader(1, "b32"), site.reader(2, "b32")
    site.finish(3)

    def run(f: Frame) -> None:
        at, count = (np.asarray(value(f)).astype(np.uint64) for value in (a, b))
        if wraps:
            at, count = at & np.uint64(31), count & np.uint64(31)
        ones = (np.uint64(1) << np.minimum(count, np.uint64(32))) - np.uint64(1)
        found = np.where(at < 32, ones << np.minimum(at, np.uint64(31)), np.uint64(0))
        d(f, (found & np.uint64(0xFFFFFFFF)).astype(np.uint32))

    return run


def build_extend(site: Site) -> Run:
    """szext: keep the lower bits, and extend them with their sign or zeros."""
    wraps = site.choice("clamp", "wrap") == "wrap"
    kind = site.kind("u32", "s32")
    d, a, b = site.writer(0, kind), site.reader(1, "b32"), site.reader(2, "b32")
    site.finish(3)

    def run(f: Frame) -> None:
        value, count = (np.asarray(x(f)).astype(np.int64) for x in (a, b))
        count = count & 31 if wraps else np.minimum(count, 32)
        ones = (np.int64(1) << count) - 1
        found = value & ones
        if kind.letter == "s":
            top = (value >> np.maximum(count - 1, 0)) & 1
            found = np.where((top != 0) & (count > 0), found | ~ones, found)
        d(f, found.astype(np.uint32).view(kind.dtype) if isinstance(found, np.ndarray) and found.ndim else found)

    return run


def _highest(value: Array, bits: int) -> Array:
    """Index of the highest set bit; -1 if no bit is set."""
    found = np.full(value.shape, -1, np.int64)
    rest = value.astype(np.uint64)
    base = np.zeros(value.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        upper = rest >> np.uint64(step)
        more = upper != 0
        base = np.where(more, base + step, base)
        rest = np.where(more, upper, rest)
    return np.where(value != 0, base, found)


def build_count(site: Site) -> Run:
    """popc, clz: count the set bits, or the leading zeros."""
    kind = site.kind("b32", "b64")
    d, a = site.writer(0, "u32"), site.reader(1, kind)
    site.finish(2)
    if site.name == "popc":
        return lambda f: d(f, np.bitwise_count(a(f)).astype(np.uint32))
    return lambda f: d(f, (kind.bits - 1 - _highest(np.asarray(a(f)), kind.bits)).astype(np.uint32))


def build_find(site: Site) -> Run:
    """bfind: find the index of the highest bit that differs from the sign; all ones if there is none."""
    shifts = site.flag("shiftamt")
    kind = site.kind("u32", "s32", "u64", "s64")
    d, a = site.writer(0, "u32"), site.reader(1, kind)
    site.finish(2)
    plain = np.dtype(f"uint{kind.bits}")

    def run(f: Frame) -> None:
        value = np.ascontiguousarray(broadcast(a(f), f))
        raw = np.where(value < 0, ~value, value).view(plain) if kind.letter == "s" else value
        found = _highest(raw, kind.bits)
        if shifts:
            found = np.where(found >= 0, kind.bits - 1 - found, found)
        d(f, found.astype(np.uint32))

    return run


def build_reverse(site: Site) -> Run:
    """brev: reverse the order of the bits."""
    kind = site.kind("b32", "b64")

    def reversed_(value: Any) -> Any:
        raw = np.ascontiguousarray(np.atleast_1d(value))
        bits = np.unpackbits(raw.view(np.uint8).reshape(len(raw), -1), axis=1, bitorder="little")
        return np.packbits(bits[:, ::-1], axis=1, bitorder="little").view(kind.dtype)[:, 0]

    return unary(site, reversed_, kind)


def build_nth(site: Site) -> Run:
    """fns: find the n-th set bit from a base position."""
    site.kind("b32")
    d, mask, base, offset = site.writer(0, "b32"), site.reader(1, "b32"), site.reader(2, "u32"), site.reader(3, "s32")
    site.finish(4)

    def one(word: int, start: int, count: int) -> int:
        if count == 0:
            return start if start < 32 and word >> start & 1 else 0xFFFFFFFF
        step, left, at = (1, count, start) if count > 0 else (-1, -count, start)
        while 0 <= at < 32:
            if word >> at & 1:
                left -= 1
                if not left:
                    return at
            at += step
        return 0xFFFFFFFF

    def run(f: Frame) -> None:
        rows = [broadcast(value(f), f).tolist() for value in (mask, base, offset)]
        d(f, np.array([one(*row) for row in zip(*rows, strict=True)], np.uint32))

    return run


TABLE: Final[Mapping[str, Builder]] = {
    "add": build_add, "sub": build_sub, "addc": build_add_carry, "subc": build_sub_carry,
    "mul": build_mul, "mad": build_mad, "madc": build_mad, "mul24": build_mul24, "mad24": build_mul24,
    "sad": build_sad, "div": build_div, "rem": build_rem, "abs": build_abs, "neg": build_neg,
    "min": _extreme(np.minimum), "max": _extreme(np.maximum), "dp4a": _dot(4), "dp2a": _dot(2),
    "and": _logic(np.bitwise_and), "or": _logic(np.bitwise_or), "xor": _logic(np.bitwise_xor),
    "not": build_not, "cnot": build_cnot, "shl": build_shl, "shr": build_shr, "shf": build_funnel,
    "lop3": build_lop3, "prmt": build_permute, "bfe": build_extract, "bfi": build_insert, "bmsk": build_mask,
    "szext": build_extend, "popc": build_count, "clz": build_count, "bfind": build_find, "brev": build_reverse,
    "fns": build_nth,
}  # fmt: skip
