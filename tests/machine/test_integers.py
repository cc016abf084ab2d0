"""Integer instructions against Python's integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from tests.each import each_of
from tests.machine.forms import run_form

DICE = np.random.default_rng(7)
EDGES = [0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000,
         0xFFFFFFFF, 1 << 63, (1 << 63) - 1, (1 << 64) - 1]  # fmt: skip
PAIRS = list(itertools.product(EDGES, EDGES))
A = np.array([x for x, _ in PAIRS] + DICE.integers(0, 1 << 64, 300, np.uint64).tolist(), np.uint64)
B = np.array([y for _, y in PAIRS] + DICE.integers(0, 1 << 64, 300, np.uint64).tolist(), np.uint64)
C = DICE.permutation(np.resize(np.array([*EDGES, 5, 9, 1000], np.uint64), len(A)))
REGISTER = {16: "h", 32: "r", 64: ""}


def value(x: int, kind: str) -> int:
    """The number of bits of a type."""
    bits = int(kind[1:])
    x &= (1 << bits) - 1
    return x - (1 << bits) if kind[0] == "s" and x >> bits - 1 else x


def toward_zero(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def clamp(x: int) -> int:
    return max(-(1 << 31), min(x, (1 << 31) - 1))


ALL = ("u16", "s16", "u32", "s32", "u64", "s64")
Rule = Callable[[int, int, int, int], int]
TWO: dict[str, tuple[tuple[str, ...], Rule]] = {
    "add": (ALL, lambda x, y, z, n: x + y),
    "sub": (ALL, lambda x, y, z, n: x - y),
    "mul.lo": (ALL, lambda x, y, z, n: x * y),
    "mul.hi": (ALL, lambda x, y, z, n: x * y >> n),
    "mad.lo": (ALL, lambda x, y, z, n: x * y + z),
    "mad.hi": (ALL, lambda x, y, z, n: (x * y >> n) + z),
    "min": (ALL, lambda x, y, z, n: min(x, y)),
    "max": (ALL, lambda x, y, z, n: max(x, y)),
    "div": (ALL, lambda x, y, z, n: toward_zero(x, y) if y else -1),
    "rem": (ALL, lambda x, y, z, n: x - y * toward_zero(x, y) if y else -1),
    "sad": (ALL, lambda x, y, z, n: z + abs(x - y)),
    "add.sat": (("s32",), lambda x, y, z, n: clamp(x + y)),
    "sub.sat": (("s32",), lambda x, y, z, n: clamp(x - y)),
    "and": (("b16", "b32", "b64"), lambda x, y, z, n: x & y),
    "or": (("b16", "b32", "b64"), lambda x, y, z, n: x | y),
    "xor": (("b16", "b32", "b64"), lambda x, y, z, n: x ^ y),
}
CASES = [(name, kind, rule) for name, (kinds, rule) in TWO.items() for kind in kinds]


@each_of(("name", "kind", "rule"), CASES, ids=[f"{name}.{kind}" for name, kind, _ in CASES], every=3)
def test_of_two_or_three(name: str, kind: str, rule: Rule) -> None:
    bits, r = int(kind[1:]), REGISTER[int(kind[1:])]
    three = f", %{r}c" if name.startswith(("mad", "sad")) else ""
    found = run_form(f"{name}.{kind} %{r}d, %{r}a, %{r}b{three};", A, B, C)
    for x, y, z, d in zip(A.tolist(), B.tolist(), C.tolist(), found.tolist(), strict=True):
        expected = rule(value(x, kind), value(y, kind), value(z, kind), bits) & (1 << bits) - 1
        assert d == expected, (hex(x), hex(y), hex(z))


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
def test_wide_products(kind: str) -> None:
    bits, r = int(kind[1:]), REGISTER[int(kind[1:])]
    d = {16: "rd", 32: "d"}[bits]
    c = {16: "%rc", 32: "%c"}[bits]
    wide = f"{kind[0]}{2 * bits}"
    found = run_form(f"mul.wide.{kind} %{d}, %{r}a, %{r}b;", A, B, C)
    sums = run_form(f"mad.wide.{kind} %{d}, %{r}a, %{r}b, {c};", A, B, C)
    mask = (1 << 2 * bits) - 1
    for x, y, z, one, other in zip(*(v.tolist() for v in (A, B, C, found, sums)), strict=True):
        product = value(x, kind) * value(y, kind)
        assert one == product & mask
        assert other == product + value(z, wide) & mask


@pytest.mark.parametrize("kind", ["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"])
def test_shifts(kind: str) -> None:
    bits, r = int(kind[1:]), REGISTER[int(kind[1:])]
    right = run_form(f"shr.{kind} %{r}d, %{r}a, %rb;", A, B, C)
    left = run_form(f"shl.b{bits} %{r}d, %{r}a, %rb;", A, B, C)
    mask = (1 << bits) - 1
    for x, y, down, up in zip(A.tolist(), B.tolist(), right.tolist(), left.tolist(), strict=True):
        by = min(y & 0xFFFFFFFF, bits)
        assert down == (value(x, kind) >> by) & mask
        assert up == (x << by) & mask


def test_shifts_by_constants() -> None:
    for by in (0, 1, 31, 32, 40):
        found = run_form(f"shr.s32 %rd, %ra, {by};", A, B, C)
        assert found.tolist() == [(value(x, "s32") >> min(by, 31)) & 0xFFFFFFFF for x in A.tolist()]
        found = run_form(f"shl.b32 %rd, %ra, {by};", A, B, C)
        assert found.tolist() == [(x << by) & 0xFFFFFFFF if by < 32 else 0 for x in A.tolist()]


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("mode", ["wrap", "clamp"])
def test_funnel_shifts(left: bool, mode: str) -> None:
    found = run_form(f"shf.{'l' if left else 'r'}.{mode}.b32 %rd, %ra, %rb, %rc;", A, B, C)
    for x, y, z, d in zip(*(v.tolist() for v in (A, B, C, found)), strict=True):
        both = (y & 0xFFFFFFFF) << 32 | x & 0xFFFFFFFF
        by = z & 31 if mode == "wrap" else min(z & 0xFFFFFFFF, 32)
        expected = both << by >> 32 if left else both >> by
        assert d == expected & 0xFFFFFFFF


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bit_fields(kind: str) -> None:
    bits, r = int(kind[1:]), REGISTER[int(kind[1:])]
    found = run_form(f"bfe.{kind} %{r}d, %{r}a, %rb, %rc;", A, B, C)
    put = run_form(f"bfi.b{bits} %{r}d, %{r}a, %{r}b, %rb, %rc;", A, B, C)
    mask = (1 << bits) - 1
    for x, y, z, d, e in zip(*(v.tolist() for v in (A, B, C, found, put)), strict=True):
        # Of 64 bits, where the hardware has no such instruction, all bits of both count, as measured on an H200.
        start, length = (y & 255, z & 255) if bits == 32 else (y & 0xFFFFFFFF, z & 0xFFFFFFFF)
        start, length = min(start, 64), min(length, 64)
        x &= mask
        sign = 0
        if kind[0] == "s" and length:
            sign = x >> min(start + length - 1, bits - 1) & 1
        expected = 0
        for i in range(bits):
            bit = x >> start + i & 1 if i < length and start + i < bits else sign
            expected |= bit << i
        assert d == expected, (hex(x), start, length)
        field = (((1 << length) - 1) << start) & mask if start < bits else 0
        assert e == (y & mask & ~field | (x << start) & field) & mask


def test_counts() -> None:
    for bits, r in ((32, "r"), (64, "")):
        mask = (1 << bits) - 1
        plain = [x & mask for x in A.tolist()]
        assert run_form(f"popc.b{bits} %rd, %{r}a;", A, B, C).tolist() == [x.bit_count() for x in plain]
        assert run_form(f"clz.b{bits} %rd, %{r}a;", A, B, C).tolist() == [bits - x.bit_length() for x in plain]
        reverse = [int(f"{x:0{bits}b}"[::-1], 2) for x in plain]
        assert run_form(f"brev.b{bits} %{r}d, %{r}a;", A, B, C).tolist() == reverse
        for kind in ("u", "s"):
            signed = [value(x, f"{kind}{bits}") for x in plain]
            high = [(x if x >= 0 else ~x).bit_length() - 1 for x in signed]
            assert run_form(f"bfind.{kind}{bits} %rd, %{r}a;", A, B, C).tolist() == [x & 0xFFFFFFFF for x in high]
            shifts = [(bits - 1 - x if x >= 0 else x) & 0xFFFFFFFF for x in high]
            assert run_form(f"bfind.shiftamt.{kind}{bits} %rd, %{r}a;", A, B, C).tolist() == shifts


def test_any_function_of_three_bits() -> None:
    for table in (0x00, 0xFF, 0x96, 0xE8, 0xCA, 0x2D, 0x80):
        found = run_form(f"lop3.b32 %rd, %ra, %rb, %rc, {table:#x};", A, B, C)
        for x, y, z, d in zip(*(v.tolist() for v in (A, B, C, found)), strict=True):
            expected = sum((table >> ((x >> i & 1) * 4 + (y >> i & 1) * 2 + (z >> i & 1)) & 1) << i for i in range(32))
            assert d == expected


def test_permuted_bytes() -> None:
    found = run_form("prmt.b32 %rd, %ra, %rb, %rc;", A, B, C * np.uint64(0x1234567))
    selectors = (C * np.uint64(0x1234567)).tolist()
    for x, y, z, d in zip(A.tolist(), B.tolist(), selectors, found.tolist(), strict=True):
        parts = [(x & 0xFFFFFFFF | (y & 0xFFFFFFFF) << 32) >> 8 * i & 255 for i in range(8)]
        expected = 0
        for i in range(4):
            nibble = z >> 4 * i & 15
            byte = parts[nibble & 7]
            expected |= (0xFF if byte & 0x80 else 0) << 8 * i if nibble & 8 else byte << 8 * i
        assert d == expected


def test_modes_of_permutations() -> None:
    """The tables of the PTX ISA, of bytes 7 to 0 of {b, a}, most significant of d first."""
    rows = {
        "f4e": ["3210", "4321", "5432", "6543"],
        "b4e": ["5670", "6701", "7012", "0123"],
        "rc8": ["0000", "1111", "2222", "3333"],
        "ecl": ["3210", "3211", "3222", "3333"],
        "ecr": ["0000", "1110", "2210", "3210"],
        "rc16": ["1010", "3232", "1010", "3232"],
    }
    low, high = 0x33221100, 0x77665544
    for mode, expected in rows.items():
        found = run_form(f"prmt.b32.{mode} %rd, %ra, %rb, %rc;", np.full(4, low), np.full(4, high), np.arange(4))
        assert [f"{d:08x}"[::2] for d in found.tolist()] == expected, mode


def test_carries_over_128_bits() -> None:
    add = "add.cc.u64 %d, %a, %b; addc.u64 %d, %c, %a;"
    found = run_form(add, A, B, C)
    assert found.tolist() == [
        (z + x + (x + y >> 64)) & (1 << 64) - 1 for x, y, z in zip(A.tolist(), B.tolist(), C.tolist(), strict=True)
    ]
    found = run_form("sub.cc.u32 %rd, %ra, %rb; subc.u32 %rd, %rc, %ra;", A, B, C)
    for x, y, z, d in zip(*(v.tolist() for v in (A, B, C, found)), strict=True):
        borrow = (x & 0xFFFFFFFF) < (y & 0xFFFFFFFF)
        assert d == (z - x - borrow) & 0xFFFFFFFF


def test_dot_products() -> None:
    for first, second in itertools.product("us", "us"):
        found = run_form(f"dp4a.{first}32.{second}32 %rd, %ra, %rb, %rc;", A, B, C)
        for x, y, z, d in zip(*(v.tolist() for v in (A, B, C, found)), strict=True):
            terms = [value(x >> 8 * i, f"{first}8") * value(y >> 8 * i, f"{second}8") for i in range(4)]
            assert d == (z + sum(terms)) & 0xFFFFFFFF


def test_comparisons_and_selections() -> None:
    rules = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
    for kind, (name, sign) in itertools.product(ALL, rules.items()):
        r = REGISTER[int(kind[1:])]
        found = run_form(f"setp.{name}.{kind} %p, %{r}a, %{r}b;", A, B, C)
        pairs = zip(A.tolist(), B.tolist(), strict=True)
        assert found.tolist() == [int(eval(f"{value(x, kind)} {sign} {value(y, kind)}")) for x, y in pairs]
    found = run_form(
        "setp.lt.u32 %q, %rc, 9; setp.gt.and.s32 %p|%q, %ra, %rb, %q; selp.b32 %rd, %ra, %rb, %p;", A, B, C
    )
    for x, y, z, d in zip(*(v.tolist() for v in (A, B, C, found)), strict=True):
        chosen = (z & 0xFFFFFFFF) < 9 and value(x, "s32") > value(y, "s32")
        assert d == (x if chosen else y) & 0xFFFFFFFF


def test_conversions_between_integers() -> None:
    for source, target in itertools.product(ALL, ALL):
        r, s = REGISTER[int(source[1:])], REGISTER[int(target[1:])]
        plain = run_form(f"cvt.{target}.{source} %{s}d, %{r}a;", A, B, C)
        held = run_form(f"cvt.sat.{target}.{source} %{s}d, %{r}a;", A, B, C)
        bits = int(target[1:])
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if target[0] == "s" else (0, (1 << bits) - 1)
        for x, d, e in zip(A.tolist(), plain.tolist(), held.tolist(), strict=True):
            number = value(x, source)
            assert d == number & (1 << bits) - 1
            assert e == max(low, min(number, high)) & (1 << bits) - 1
