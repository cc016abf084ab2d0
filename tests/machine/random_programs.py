"""Random PTX programs by family, from seeds: the same text on every machine.

    module(family, seed, count) -> PTX with entries p0, p1, ...: each reads `INPUTS` words a thread and writes one word
                                   of 64 bits for every step and thread
    inputs(seed)                -> those words, ordinary and hostile ones

A program has `STEPS` instructions (or short sequences). Each takes operands from the inputs and from earlier results,
and its result is stored at once as `out[step * THREADS + thread]`. Registers are untyped (.b16, .b32, .b64), as PTX
permits, so that any bit pattern reaches any instruction. One warp runs each program.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

THREADS, INPUTS, STEPS = 32, 8, 6

PROGRAMS_A_SEED = 100
"""Programs that are recorded with the inputs of one seed."""

Emit = Callable[["Program"], None]


class Program:
    """One entry while it is written."""

    def __init__(self, name: str, generator: random.Random) -> None:
        self.name, self.random = name, generator
        self.lines: list[str] = []
        self.pools: dict[int, list[str]] = {1: [], 16: [], 32: [], 64: []}
        self.counts = {1: 0, 16: 0, 32: 0, 64: 0}
        self.step = 0
        for i in range(INPUTS):
            wide = self.new(64)
            self.line(f"ld.global.b64 {wide}, [%in+{8 * THREADS * i}];")
            low, high = self.new(32), self.new(32)
            self.line(f"mov.b64 {{{low}, {high}}}, {wide};")
            if i < 4:
                a, b = self.new(16), self.new(16)
                self.line(f"mov.b32 {{{a}, {b}}}, {low};")
        for a, b in zip(self.pools[32][:4:2], self.pools[32][1:4:2], strict=True):
            self.line(f"setp.lt.u32 {self.new(1)}, {a}, {b};")

    def line(self, text: str) -> None:
        self.lines.append("\t" + text)

    def new(self, bits: int, keep: bool = True) -> str:
        name = {1: "%p", 16: "%h", 32: "%r", 64: "%d"}[bits] + str(self.counts[bits])
        self.counts[bits] += 1
        if keep:
            self.pools[bits].append(name)
        return name

    def use(self, bits: int) -> str:
        """An operand: later results are preferred, so that programs are chains."""
        pool = self.pools[bits]
        return pool[max(self.random.randrange(len(pool)), self.random.randrange(len(pool)))]

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def store(self, register: str) -> None:
        """The result of a step, as a word of 64 bits."""
        kind, wide = register[1], register
        if kind == "p":
            wide = self.new(64, False)
            self.line(f"selp.b64 {wide}, 1, 0, {register};")
        elif kind == "h":
            wide = self.new(64, False)
            self.line(f"cvt.u64.u16 {wide}, {register};")
        elif kind == "r":
            wide = self.new(64, False)
            self.line(f"cvt.u64.u32 {wide}, {register};")
        self.line(f"st.global.b64 [%out+{8 * THREADS * self.step}], {wide};")

    def do(self, head: str, result: int, *operands: int | str) -> str:
        """One instruction: its head, the bits of its result, the bits of register operands or operands as text."""
        taken: list[str] = []
        for x in operands:
            # Registers differ: a compiler folds what it knows of x and x, such as min(x, x).
            fresh = [self.use(x) for _ in range(8)] if isinstance(x, int) else [x]
            taken.append(next((name for name in fresh if name not in taken), fresh[0]))
        into = self.new(result, False)
        self.line(f"{head} {into}, {', '.join(taken)};")
        self.pools[result].append(into)
        return into

    def text(self) -> str:
        registers = [
            f"\t.reg .{'pred' if b == 1 else f'b{b}'} {n}<{self.counts[b] + 1}>;"
            for b, n in ((1, "%p"), (16, "%h"), (32, "%r"), (64, "%d"))
        ]
        head = [
            f".visible .entry {self.name}(.param .u64 source, .param .u64 target)",
            "{",
            *registers,
            "\t.reg .b64 %in, %out, %lane;",
            "\t.reg .b32 %me;",
            "\t.shared .align 16 .b8 room[4096];",
            "\t.local .align 16 .b8 own[64];",
            "\tld.param.u64 %in, [source];",
            "\tld.param.u64 %out, [target];",
            "\tcvta.to.global.u64 %in, %in;",
            "\tcvta.to.global.u64 %out, %out;",
            "\tmov.u32 %me, %tid.x;",
            "\tmul.wide.u32 %lane, %me, 8;",
            "\tadd.s64 %in, %in, %lane;",
            "\tadd.s64 %out, %out, %lane;",
        ]
        return "\n".join([*head, *self.lines, "\tret;", "}", ""])


def _bits(kind: str) -> int:
    return int(kind[1:])


def integer(p: Program) -> None:
    kind = p.pick("u16", "s16", "u32", "s32", "u64", "s64", "u32", "s32")
    b = _bits(kind)
    choice = p.random.randrange(16)
    if choice < 4:
        p.store(p.do(f"{p.pick('add', 'sub', 'min', 'max', 'mul.lo', 'mul.hi', 'div', 'rem')}.{kind}", b, b, b))
    elif choice == 4:
        p.store(p.do(f"{p.pick('mad.lo', 'mad.hi')}.{kind}", b, b, b, b))
    elif choice == 5:
        narrow = p.pick("u16", "s16", "u32", "s32")
        n = _bits(narrow)
        p.store(p.do(f"mul.wide.{narrow}", 2 * n, n, n))
    elif choice == 6:
        narrow = p.pick("u16", "s16", "u32", "s32")
        n = _bits(narrow)
        p.store(p.do(f"mad.wide.{narrow}", 2 * n, n, n, 2 * n))
    elif choice == 7:
        signed = p.pick("s16", "s32", "s64")
        p.store(p.do(f"{p.pick('abs', 'neg')}.{signed}", _bits(signed), _bits(signed)))
    elif choice == 8:
        p.store(p.do(f"{p.pick('add', 'sub')}.sat.s32", 32, 32, 32))
    elif choice == 9:
        p.store(p.do(f"sad.{kind}", b, b, b, b))
    elif choice == 10:
        p.store(p.do(f"{p.pick('mul24.lo', 'mul24.hi')}.{p.pick('u32', 's32')}", 32, 32, 32))
    elif choice == 11:
        head = p.pick("mad24.lo.u32", "mad24.hi.u32", "mad24.lo.s32", "mad24.hi.s32", "mad24.hi.sat.s32")
        p.store(p.do(head, 32, 32, 32, 32))
    elif choice == 12:
        p.store(p.do(f"dp4a.{p.pick('u32', 's32')}.{p.pick('u32', 's32')}", 32, 32, 32, 32))
    elif choice == 13:
        p.store(p.do(f"dp2a.{p.pick('lo', 'hi')}.{p.pick('u32', 's32')}.{p.pick('u32', 's32')}", 32, 32, 32, 32))
    elif choice == 14:
        _carry(p)
    else:
        p.store(p.do("mad.hi.sat.s32", 32, 32, 32, 32))


def _carry(p: Program) -> None:
    b = p.random.choice((32, 64))
    first = p.pick("add", "sub", "mad")
    if first == "mad":
        p.do(f"mad.{p.pick('lo', 'hi')}.cc.{p.pick('u', 's')}{b}", b, b, b, b)
    else:
        p.do(f"{first}.cc.{p.pick('u', 's')}{b}", b, b, b)
    second = p.pick("addc", "subc", "madc") if first != "mad" else p.pick("addc", "madc")
    if second == "madc":
        p.store(p.do(f"madc.{p.pick('lo', 'hi')}.{p.pick('u', 's')}{b}", b, b, b, b))
    else:
        p.store(p.do(f"{second}.{p.pick('u', 's')}{b}", b, b, b))


def _field(p: Program, width: int) -> list[int | str]:
    """A bit field within a word, as constants."""
    first = p.random.randrange(width)
    return [str(first), str(p.random.randrange(width - first + 1))]


def logic(p: Program) -> None:
    choice = p.random.randrange(14)
    b = p.random.choice((16, 32, 64))
    if choice < 2:
        p.store(p.do(f"{p.pick('and', 'or', 'xor')}.b{b}", b, b, b))
    elif choice == 2:
        p.store(p.do(f"{p.pick('not', 'cnot')}.b{b}", b, b))
    elif choice == 3:
        p.store(p.do("lop3.b32", 32, 32, 32, 32, str(p.random.randrange(256))))
    elif choice == 4:
        p.store(p.do(f"shf.{p.pick('l', 'r')}.{p.pick('wrap', 'clamp')}.b32", 32, 32, 32, 32))
    elif choice == 5:
        amount: int | str = p.random.choice((32, str(p.random.randrange(70))))
        p.store(p.do(f"{p.pick(f'shl.b{b}', f'shr.u{b}', f'shr.s{b}')}", b, b, amount))
    elif choice == 6:
        mode = p.pick("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16")
        p.store(p.do(f"prmt.b32{mode}", 32, 32, 32, 32))
    elif choice == 7:
        w = p.random.choice((32, 64))
        p.store(p.do(f"{p.pick('popc', 'clz')}.b{w}", 32, w))
    elif choice == 8:
        w = p.random.choice((32, 64))
        p.store(p.do(f"brev.b{w}", w, w))
    elif choice == 9:
        w = p.random.choice((32, 64))
        p.store(p.do(f"bfind{p.pick('', '.shiftamt')}.{p.pick('u', 's')}{w}", 32, w))
    elif choice == 10:
        w = p.random.choice((32, 64))
        at = _field(p, w)
        p.store(p.do(f"bfe.{p.pick('u', 's')}{w}", w, w, *p.random.choice((at, [32, 32]))))
    elif choice == 11:
        w = p.random.choice((32, 64))
        at = _field(p, w)
        p.store(p.do(f"bfi.b{w}", w, w, w, *p.random.choice((at, [32, 32]))))
    elif choice == 12:
        p.store(
            p.do(
                p.pick(
                    "szext.clamp.u32",
                    "szext.wrap.u32",
                    "szext.clamp.s32",
                    "szext.wrap.s32",
                    "bmsk.clamp.b32",
                    "bmsk.wrap.b32",
                ),
                32,
                32,
                32,
            )
        )
    else:
        p.store(p.do("fns.b32", 32, 32, f"{p.random.randrange(32)}", f"{p.random.choice((-3, -1, 0, 1, 2, 5))}"))


def select(p: Program) -> None:
    choice = p.random.randrange(6)
    kind = p.pick("u16", "s16", "u32", "s32", "u64", "s64", "b32", "b64", "f32", "f64")
    b = _bits(kind)
    if kind[0] == "f":
        compare = p.pick("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
    elif kind[0] == "b":
        compare = p.pick("eq", "ne")
    elif kind[0] == "u":
        compare = p.pick("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs")
    else:
        compare = p.pick("eq", "ne", "lt", "le", "gt", "ge")
    flush = p.pick("", ".ftz") if kind == "f32" else ""
    if choice < 2:
        p.store(p.do(f"setp.{compare}{flush}.{kind}", 1, b, b))
    elif choice == 2:
        first, second = p.new(1, False), p.new(1, False)
        a, c, q = p.use(b), p.use(b), p.pick("", "!") + p.use(1)
        p.line(f"setp.{compare}.{p.pick('and', 'or', 'xor')}{flush}.{kind} {first}|{second}, {a}, {c}, {q};")
        p.pools[1] += [first, second]
        p.store(p.pick(first, second))
    elif choice == 3:
        into = p.pick("u32", "s32", "f32")
        if p.random.random() < 0.5:
            p.store(p.do(f"set.{compare}{flush}.{into}.{kind}", 32, b, b))
        else:
            p.store(p.do(f"set.{compare}.{p.pick('and', 'or', 'xor')}{flush}.{into}.{kind}", 32, b, b, 1))
    elif choice == 4:
        w = p.random.choice((16, 32, 64))
        p.store(p.do(f"selp.b{w}", w, w, w, 1))
    elif p.random.random() < 0.5:
        w = p.random.choice((16, 32, 64))
        p.store(p.do(f"slct.b{w}.{p.pick('s32', 'f32', 'f32')}", w, w, w, 32))
    else:
        p.store(p.do(f"{p.pick('and', 'or', 'xor')}.pred", 1, 1, 1))


def float32(p: Program) -> None:
    choice = p.random.randrange(12)
    rounding = p.pick(".rn", ".rz", ".rm", ".rp", "")
    flush, clamp = p.pick("", ".ftz"), p.pick("", "", ".sat")
    exact = rounding or ".rn"
    if choice < 3:
        p.store(p.do(f"{p.pick('add', 'sub', 'mul')}{rounding}{flush}{clamp}.f32", 32, 32, 32))
    elif choice < 5:
        p.store(p.do(f"fma{exact}{flush}{clamp}.f32", 32, 32, 32, 32))
    elif choice == 5:
        p.store(p.do(f"div{exact}{flush}.f32", 32, 32, 32))
    elif choice == 6:
        p.store(p.do(f"{p.pick('rcp', 'sqrt')}{exact}{flush}.f32", 32, 32))
    elif choice == 7:
        p.store(p.do(f"{p.pick('min', 'max')}{flush}{p.pick('', '.NaN')}{p.pick('', '.xorsign.abs')}.f32", 32, 32, 32))
    elif choice == 8:
        p.store(p.do(f"{p.pick('abs', 'neg')}{flush}.f32", 32, 32))
    elif choice == 9:
        p.store(p.do("copysign.f32", 32, 32, 32))
    elif choice == 10:
        test = p.pick("finite", "infinite", "number", "notanumber", "normal", "subnormal")
        p.store(p.do(f"testp.{test}.f32", 1, 32))
    else:
        p.store(p.do(f"mad{exact}{flush}{clamp}.f32", 32, 32, 32, 32))


def _store_double(p: Program, register: str) -> None:
    """A float64, or a flag, with one pattern for every NaN: of two NaNs that meet, the compiler's order of operands
    decides which one stays."""
    shown, missing = p.new(64, False), p.new(1, False)
    p.line(f"testp.notanumber.f64 {missing}, {register};")
    p.line(f"selp.b64 {shown}, 0x7FF8000000000000, {register}, {missing};")
    p.store(shown)


def float64(p: Program) -> None:
    choice = p.random.randrange(9)
    exact = p.pick(".rn", ".rz", ".rm", ".rp")
    if choice < 3:
        _store_double(p, p.do(f"{p.pick('add', 'sub', 'mul')}{p.pick(exact, '')}.f64", 64, 64, 64))
    elif choice < 5:
        _store_double(p, p.do(f"{p.pick('fma', 'mad')}{exact}.f64", 64, 64, 64, 64))
    elif choice == 5:
        _store_double(p, p.do(f"div{exact}.f64", 64, 64, 64))
    elif choice == 6:
        _store_double(p, p.do(f"{p.pick('rcp', 'sqrt')}{exact}.f64", 64, 64))
    elif choice == 7:
        _store_double(p, p.do(f"{p.pick('min', 'max', 'copysign')}.f64", 64, 64, 64))
    else:
        _store_double(p, p.do(f"{p.pick('abs', 'neg')}.f64", 64, 64))


def half(p: Program) -> None:
    kind = p.pick("f16", "f16x2", "bf16", "bf16x2")
    b = 32 if kind.endswith("x2") else 16
    brain = kind.startswith("b")
    flush = "" if brain else p.pick("", ".ftz")
    choice = p.random.randrange(9)
    if choice < 3:
        clamp = "" if brain else p.pick("", "", ".sat")
        p.store(p.do(f"{p.pick('add', 'sub', 'mul')}.rn{flush}{clamp}.{kind}", b, b, b))
    elif choice < 5:
        after = p.pick("", ".relu") if brain else p.pick("", ".sat", ".relu")
        p.store(p.do(f"fma.rn{flush}{after}.{kind}", b, b, b, b))
    elif choice == 5:
        p.store(p.do(f"{p.pick('abs', 'neg')}{flush}.{kind}", b, b))
    elif choice == 6:
        p.store(p.do(f"{p.pick('min', 'max')}{flush}{p.pick('', '.NaN')}{p.pick('', '.xorsign.abs')}.{kind}", b, b, b))
    elif choice == 7 and b == 16:
        compare = p.pick("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
        p.store(p.do(f"setp.{compare}{flush}.{kind}", 1, b, b))
    elif choice == 7:
        compare = p.pick("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
        first, second = p.new(1, False), p.new(1, False)
        p.line(f"setp.{compare}{flush}.{kind} {first}|{second}, {p.use(b)}, {p.use(b)};")
        p.pools[1] += [first, second]
        p.store(p.pick(first, second))
    else:
        compare = p.pick("eq", "ne", "lt", "ge", "neu", "ltu", "num", "nan")
        p.store(p.do(f"set.{compare}{flush}.{kind}.{kind}", b, b, b))


_INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")


def conversion(p: Program) -> None:
    choice = p.random.randrange(14)

    def width(kind: str) -> int:
        return {"8": 16, "16": 16, "32": 32, "64": 64}[kind.lstrip("usbf")]

    if choice < 3:
        a, b = p.random.sample(_INTEGERS, 2)
        wide = (int(a[1:]) > int(b[1:]) and (a[0], b[0]) != ("u", "s")) or (a[1:], a[0]) == (b[1:], b[0])
        narrowing = not wide and not (int(a[1:]) > int(b[1:]) and a[0] == b[0])
        p.store(p.do(f"cvt{p.pick('', '.sat') if narrowing else ''}.{a}.{b}", width(a), width(b)))
    elif choice < 6:
        a, b = p.pick(*_INTEGERS), p.pick("f16", "f32", "f64", "f32")
        flush = p.pick("", ".ftz") if b == "f32" else ""
        p.store(
            p.do(f"cvt{p.pick('.rni', '.rzi', '.rmi', '.rpi')}{flush}{p.pick('', '.sat')}.{a}.{b}", width(a), width(b))
        )
    elif choice < 8:
        a, b = p.pick("f16", "f32", "f64"), p.pick(*_INTEGERS)
        p.store(p.do(f"cvt{p.pick('.rn', '.rz', '.rm', '.rp')}.{a}.{b}", width(a), width(b)))
    elif choice == 8:
        a, b = p.random.choice((("f32", "f16"), ("f64", "f16"), ("f64", "f32"), ("f32", "bf16")))
        flush = p.pick("", ".ftz") if "f32" in (a, b) and "bf16" not in (a, b) else ""
        p.store(p.do(f"cvt{flush}.{a}.{b}", width(a), width(b)))
    elif choice == 9:
        a, b = p.random.choice((("f16", "f32"), ("f16", "f64"), ("f32", "f64")))
        flush = p.pick("", ".ftz") if "f32" in (a, b) else ""
        p.store(p.do(f"cvt{p.pick('.rn', '.rz', '.rm', '.rp')}{flush}{p.pick('', '.sat')}.{a}.{b}", width(a), width(b)))
    elif choice == 10:
        a = p.pick("f32", "f64", "f16")
        flush = p.pick("", ".ftz") if a == "f32" else ""
        p.store(
            p.do(f"cvt{p.pick('.rni', '.rzi', '.rmi', '.rpi')}{flush}{p.pick('', '.sat')}.{a}.{a}", width(a), width(a))
        )
    elif choice == 11:
        a = p.pick("f16x2", "bf16x2")
        p.store(p.do(f"cvt{p.pick('.rn', '.rz')}{p.pick('', '.relu')}.{a}.f32", 32, 32, 32))
    elif choice == 12:
        after = p.pick("", ".relu")
        p.store(
            p.random.choice(
                (
                    lambda: p.do(f"cvt.rn{after}.bf16.f32", 16, 32),
                    lambda: p.do(f"cvt.rz{after}.bf16.f32", 16, 32),
                    lambda: p.do("cvt.rna.tf32.f32", 32, 32),
                    lambda: p.do(f"cvt.rn{after}.tf32.f32", 32, 32),
                    lambda: p.do(f"cvt.rz{after}.tf32.f32", 32, 32),
                )
            )()
        )
    else:
        small = p.pick("e4m3x2", "e5m2x2")
        p.store(
            p.random.choice(
                (
                    lambda: p.do(f"cvt.rn.satfinite{p.pick('', '.relu')}.{small}.f32", 16, 32, 32),
                    lambda: p.do(f"cvt.rn.satfinite{p.pick('', '.relu')}.{small}.f16x2", 16, 32),
                    lambda: p.do(f"cvt.rn{p.pick('', '.relu')}.f16x2.{small}", 32, 16),
                )
            )()
        )


def warp(p: Program) -> None:
    choice = p.random.randrange(8)
    if choice < 3:
        mode = p.pick("up", "down", "bfly", "idx")
        low = 0 if mode == "up" else 31
        segment = p.random.choice((0, 0, 16, 24, 28))
        into, ok = p.new(32, False), p.new(1, False)
        amount = p.random.choice((str(p.random.randrange(32)), p.use(32)))
        p.line(f"shfl.sync.{mode}.b32 {into}|{ok}, {p.use(32)}, {amount}, {segment << 8 | low}, -1;")
        p.pools[32].append(into)
        p.pools[1].append(ok)
        p.store(p.pick(into, ok))
    elif choice == 3:
        p.store(p.do(f"vote.sync.{p.pick('all', 'any', 'uni')}.pred", 1, p.pick("", "!") + p.use(1), "-1"))
    elif choice == 4:
        p.store(p.do("vote.sync.ballot.b32", 32, 1, "-1"))
    elif choice == 5:
        few = p.new(32, False)
        p.line(f"and.b32 {few}, {p.use(32)}, 3;")
        if p.random.random() < 0.5:
            p.store(p.do("match.any.sync.b32", 32, few, "-1"))
        else:
            into, ok = p.new(32, False), p.new(1, False)
            p.line(f"match.all.sync.b32 {into}|{ok}, {few}, -1;")
            p.pools[1].append(ok)
            p.store(p.pick(into, ok))
    elif choice == 6:
        p.store(
            p.do(
                p.pick(
                    "redux.sync.add.u32",
                    "redux.sync.add.s32",
                    "redux.sync.min.u32",
                    "redux.sync.min.s32",
                    "redux.sync.max.u32",
                    "redux.sync.max.s32",
                    "redux.sync.and.b32",
                    "redux.sync.or.b32",
                    "redux.sync.xor.b32",
                ),
                32,
                32,
                "-1",
            )
        )
    else:
        into, ok = p.new(32, False), p.new(1, False)
        p.line(f"elect.sync {into}|{ok}, -1;")
        p.store(ok)


def memory(p: Program) -> None:
    """Stores and loads of all widths in shared and local memory, by name and by generic address."""
    choice = p.random.randrange(5)
    place = p.new(32, False)
    if choice < 3:
        p.line(f"mad.lo.u32 {place}, %me, 64, {p.random.randrange(4) * 16};")
        base = p.new(32, False)
        p.line(f"mov.u32 {base}, room;")
        p.line(f"add.u32 {place}, {place}, {base};")
        b = p.random.choice((16, 32, 64))
        count = p.random.choice((1, 2, 4)) if b < 64 else p.random.choice((1, 2))
        suffix = f".v{count}" if count > 1 else ""
        values = ", ".join(p.use(b) for _ in range(count))
        p.line(
            f"st.shared{suffix}.b{b} [{place}], {{{values}}};" if count > 1 else f"st.shared.b{b} [{place}], {values};"
        )
        kind = p.pick("u8", "s8", "u16", "s16", "u32", "s32", "u64")
        into = p.new(64, False) if p.random.random() < 0.5 else None
        if into is None and int(kind[1:]) <= 32:
            into = p.new(32, False)
        elif into is None:
            into = p.new(64, False)
        size = int(kind[1:]) // 8
        room = b * count // 8
        if size > room:
            kind, size = "u16", 2
        at = p.random.randrange(room // size) * size
        if p.random.random() < 0.5:
            p.line(f"ld.shared.{kind} {into}, [{place}+{at}];")
        else:
            wide = p.new(64, False)
            p.line(f"cvt.u64.u32 {wide}, {place};")
            p.line(f"cvta.shared.u64 {wide}, {wide};")
            p.line(f"ld.{kind} {into}, [{wide}+{at}];")
        p.pools[32 if into[1] == "r" else 64].append(into)
        p.store(into)
    elif choice == 3:
        at = p.random.randrange(4) * 16
        p.line(f"st.local.v2.b64 [own+{at}], {{{p.use(64)}, {p.use(64)}}};")
        into = p.new(32)
        p.line(f"ld.local.{p.pick('u8', 's8', 'u16', 's16', 'u32')} {into}, [own+{at + p.random.randrange(4) * 4}];")
        p.store(into)
    else:
        a, b = p.new(32), p.new(32)
        c, d = p.new(32), p.new(32)
        p.line(
            f"ld.global{p.pick('', '.nc', '.ca', '.cg')}.v2.b32 {{{a}, {b}}}, "
            f"[%in+{8 * THREADS * p.random.randrange(INPUTS)}];"
        )
        p.line(f"ld.global.v2.u16 {{%h0, %h1}}, [%in+{8 * THREADS * p.random.randrange(INPUTS)}];")
        p.line(f"mov.b32 {c}, {{%h1, %h0}};")
        p.line(f"xor.b32 {d}, {p.pick(a, b)}, {c};")
        p.store(d)


def atomics(p: Program) -> None:
    """Each thread has a word of its own, and all share one on which only the final value is read."""
    place, base = p.new(32, False), p.new(32, False)
    p.line(f"mov.u32 {base}, room;")
    if p.random.random() < 0.6:
        p.line(f"mad.lo.u32 {place}, %me, 16, {base};")
        kind = p.pick("u32", "s32", "u64", "b32", "b64", "f32", "f64", "f16x2", "bf16x2", "f16", "bf16", "s64")
        # Packed halves lie in global memory. For shared memory the driver emits a loop that adds the lower half of the
        # operand to both halves.
        where = f"%out+{8 * THREADS * p.step}" if kind.endswith("x2") else place
        space = "global" if kind.endswith("x2") else "shared"
        b = 32 if kind.endswith("x2") else 16 if kind.endswith("16") else _bits(kind)
        if kind[0] == "b" and "f" not in kind:
            operation = p.pick("and", "or", "xor", "exch", "cas")
        elif kind == "f64" or kind == "f32":
            operation = "add"
        elif "f16" in kind:
            operation = "add.noftz"
        elif kind == "s64":
            operation = p.pick("min", "max")
        elif kind == "u64":
            operation = p.pick("add", "min", "max")
        else:
            operation = p.pick("add", "min", "max") if kind == "s32" else p.pick("add", "min", "max", "inc", "dec")
        p.line(f"st.{space}.b{b} [{where}], {p.use(b)};")
        order = p.pick("", ".relaxed.cta", ".acq_rel.gpu", ".relaxed.sys")
        old = p.do(f"atom{order}.{space}.{operation}.{kind}", b, f"[{where}]", *([b, b] if operation == "cas" else [b]))
        new = p.new(b)
        p.line(f"ld.{space}.b{b} {new}, [{where}];")
        p.store(p.pick(old, new))
        return
    kind = p.pick(
        "add.u32",
        "add.s32",
        "min.s32",
        "max.s32",
        "min.u32",
        "max.u32",
        "and.b32",
        "or.b32",
        "xor.b32",
        "add.u64",
        "min.u64",
        "max.s64",
        "or.b64",
    )
    b = int(kind[-2:])
    p.line("bar.sync 0;")
    p.line(f"st.shared.b{b} [{base}+2048], {0};")
    p.line("bar.sync 0;")
    if p.random.random() < 0.5:
        p.line(f"red.shared.{kind} [{base}+2048], {p.use(b)};")
    else:
        p.line(f"atom.shared.{kind} {p.new(b, False)}, [{base}+2048], {p.use(b)};")
    p.line("bar.sync 0;")
    into = p.new(b)
    p.line(f"ld.shared.b{b} {into}, [{base}+2048];")
    p.store(into)


def barriers(p: Program) -> None:
    """mbarrier sequences of one thread; predicates and pending counts are compared, not the bits of a state."""
    base = p.new(32, False)
    slot = p.step
    p.line(f"mov.u32 {base}, room;")
    p.line(f"mad.lo.u32 {base}, %me, 64, {base};")
    p.line(f"add.u32 {base}, {base}, {8 * slot};")
    count = p.random.randrange(1, 6)
    p.line(f"mbarrier.init.shared.b64 [{base}], {count};")
    state = p.new(64, False)
    total, value = p.new(32, False), p.new(32, False)
    p.line(f"mov.u32 {total}, 0;")
    pending, transactions, phase = count, 0, 0
    expected = count
    for _ in range(p.random.randrange(3, 9)):
        # Pending arrivals and bytes of this phase: a completed phase starts the next with `expected` arrivals.
        act = p.random.randrange(7)
        if act == 0:
            n = p.random.randrange(1, pending + 1)
            p.line(f"mbarrier.arrive.shared.b64 {state}, [{base}], {n};")
            pending -= n
        elif act == 1:
            size = p.random.randrange(1, 5000)
            p.line(f"mbarrier.arrive.expect_tx.shared.b64 {state}, [{base}], {size};")
            pending -= 1
            transactions += size
        elif act == 2:
            size = p.random.randrange(1, 5000)
            p.line(f"mbarrier.expect_tx.relaxed.cta.shared.b64 [{base}], {size};")
            transactions += size
        elif act == 3 and transactions:
            size = transactions if p.random.random() < 0.6 else p.random.randrange(1, transactions + 1)
            p.line(f"mbarrier.complete_tx.relaxed.cta.shared.b64 [{base}], {size};")
            transactions -= size
        elif act == 4 and expected > 1:
            p.line(f"mbarrier.arrive_drop.shared.b64 {state}, [{base}];")
            pending -= 1
            expected -= 1
        elif act == 5 and pending > 1:
            n = p.random.randrange(1, pending)
            p.line(f"mbarrier.arrive.noComplete.shared.b64 {state}, [{base}], {n};")
            left = p.new(32, False)
            p.line(f"mbarrier.pending_count.b64 {left}, {state};")
            p.line(f"mad.lo.u32 {total}, {total}, 7, {left};")
            pending -= n
        else:
            p.line(f"mbarrier.arrive.shared.b64 {state}, [{base}];")
            pending -= 1
        if pending == 0 and transactions == 0:
            phase, pending = phase ^ 1, expected
        elif pending == 0:  # the phase waits for bytes: an arrival now would be one too many
            p.line(f"mbarrier.complete_tx.relaxed.cta.shared.b64 [{base}], {transactions};")
            transactions, phase, pending = 0, phase ^ 1, expected
        for parity in (0, 1):
            ok = p.new(1, False)
            p.line(
                f"mbarrier.{p.pick('test_wait', 'try_wait')}.parity.shared.b64 {ok}, [{base}], {parity};"
                if parity != phase
                else f"mbarrier.test_wait.parity.shared.b64 {ok}, [{base}], {parity};"
            )
            p.line(f"selp.u32 {value}, 1, 0, {ok};")
            p.line(f"mad.lo.u32 {total}, {total}, 3, {value};")
        if expected == 0:
            break
    p.line(f"mbarrier.inval.shared.b64 [{base}];")
    p.pools[32].append(total)
    p.store(total)


def control(p: Program) -> None:
    """Branches that threads take apart, loops that end after a different number of rounds for each, and calls."""
    label = f"{p.name}_{p.step}"
    choice = p.random.randrange(4)
    x, y = p.new(32, False), p.new(32, False)
    p.line(f"mov.b32 {x}, {p.use(32)};")
    p.line(f"mov.b32 {y}, {p.use(32)};")
    if choice == 0:
        rounds, q = p.new(32, False), p.new(1, False)
        p.line(f"and.b32 {rounds}, {p.use(32)}, 7;")
        p.line(f"L{label}:")
        p.line(f"mad.lo.u32 {x}, {x}, 1664525, {y};")
        p.line(f"xor.b32 {y}, {y}, {rounds};")
        p.line(f"setp.ne.u32 {q}, {rounds}, 0;")
        p.line(f"sub.u32 {rounds}, {rounds}, 1;")
        p.line(f"@{q} bra L{label};")
    elif choice == 1:
        q, r = p.use(1), p.use(1)
        p.line(f"@{q} bra A{label};")
        p.line(f"add.u32 {x}, {x}, {y};")
        p.line(f"@!{r} bra B{label};")
        p.line(f"xor.b32 {x}, {x}, 0x55aa55aa;")
        p.line(f"bra.uni C{label};" if p.random.random() < 0.3 else f"bra C{label};")
        p.line(f"A{label}:")
        p.line(f"sub.u32 {x}, {x}, {y};")
        p.line(f"@{r} bra C{label};")
        p.line(f"B{label}:")
        p.line(f"shl.b32 {x}, {x}, 3;")
        p.line(f"C{label}:")
    elif choice == 2:
        which = p.new(32, False)
        p.line(f"and.b32 {which}, {p.use(32)}, 3;")
        names = [f"S{label}_{i}" for i in range(4)]
        p.line(f"T{label}: .branchtargets {', '.join(names)};")
        p.line(f"brx.idx {which}, T{label};")
        for i, name in enumerate(names):
            p.line(f"{name}:")
            p.line(
                (
                    f"add.u32 {x}, {x}, 17;",
                    f"mul.lo.u32 {x}, {x}, {y};",
                    f"min.s32 {x}, {x}, {y};",
                    f"not.b32 {x}, {x};",
                )[i]
            )
            p.line(f"bra E{label};")
        p.line(f"E{label}:")
    else:
        p.line("{")
        p.line(".param .b32 a0;")
        p.line(".param .b32 a1;")
        p.line(".param .b32 got;")
        p.line(f"st.param.b32 [a0], {x};")
        p.line(f"st.param.b32 [a1], {y};")
        p.line("call.uni (got), mixed, (a0, a1);" if p.random.random() < 0.5 else "call (got), mixed, (a0, a1);")
        p.line(f"ld.param.b32 {x}, [got];")
        p.line("}")
    if p.random.random() < 0.3:
        p.line(f"@{p.pick('', '!')}{p.use(1)} xor.b32 {x}, {x}, 0x1234567;")
    p.pools[32].append(x)
    p.store(x)


_FUNCTION = """.func (.param .b32 result) mixed(.param .b32 a, .param .b32 b)
{
\t.reg .b32 %x<5>;
\t.reg .pred %q;
\tld.param.b32 %x0, [a];
\tld.param.b32 %x1, [b];
\tsetp.gt.s32 %q, %x0, %x1;
\t@%q bra more;
\tshf.l.wrap.b32 %x2, %x0, %x1, 5;
\tst.param.b32 [result], %x2;
\tret;
more:
\tmul.hi.u32 %x3, %x0, %x1;
\txor.b32 %x3, %x3, %x0;
\tst.param.b32 [result], %x3;
\tret;
}

"""

FAMILIES: dict[str, Emit] = {
    "integer": integer,
    "logic": logic,
    "select": select,
    "float32": float32,
    "float64": float64,
    "half": half,
    "conversion": conversion,
    "warp": warp,
    "memory": memory,
    "atomics": atomics,
    "barriers": barriers,
    "control": control,
}


def module(family: str, seed: int, count: int, first: int = 0) -> str:
    """PTX with the programs `first` to `first + count - 1` of a family and seed.

    >>> module("integer", 1, 2).count(".entry")
    2
    """
    text = [".version 8.6\n.target sm_90a\n.address_size 64\n"]
    if family == "control":
        text.append(_FUNCTION)
    for i in range(first, first + count):
        program = Program(f"p{i}", random.Random(f"{family} {seed} {i}"))
        for step in range(STEPS):
            program.step = step
            FAMILIES[family](program)
        text.append(program.text())
    return "\n".join(text)


_HOSTILE = (
    0, 1, 2, 3, 7, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, 1 <<
    63, (1 << 63) - 1, (1 << 64) - 1, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001,
    0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0x4B000000, 0x4F000000, 0xCF000000, 0x5F000000,
    0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x7FF0000000000001, 0x0000000000000001,
    0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x7FEFFFFFFFFFFFFF, 0x3FF0000000000000, 0xBFF8000000000000,
    0x43E0000000000000, 0x3C003C00, 0x7C007C00, 0xFC00FC00, 0x7E007E00, 0x00010001, 0x03FF0400, 0x7BFF7BFF,
    0x3F803F80, 0x7F807F80, 0x7FC07FC0, 0x7F7F7F7F, 0x00800001, 0x43DF43E0, 0x5F005F00, 0x37003780, 0x477FE000,
    0x33000000, 0x33000001, 0x38800000, 0x387FC000, 0x43E00000, 0x43F00000, 0x47600000, 0x7FFFFFFF7FFFFFFF,
    0x3F0000003F000000,
)  # fmt: skip


def inputs(seed: int) -> np.ndarray:
    """(INPUTS, THREADS) words of 64 bits: random ones, hostile ones, floats of modest size, and small integers.

    >>> inputs(3).shape
    (8, 32)
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    words = generator.integers(0, 1 << 64, (INPUTS, THREADS), dtype=np.uint64)
    kind = generator.integers(0, 6, (INPUTS, THREADS))
    hostile = np.array(_HOSTILE, np.uint64)[generator.integers(0, len(_HOSTILE), (INPUTS, THREADS))]
    doubled = (hostile & np.uint64(0xFFFFFFFF)) * np.uint64(0x100000001)
    singles = (generator.random((2, INPUTS, THREADS), np.float32) * 8 - 4).view(np.uint32).astype(np.uint64)
    halves = (generator.random((4, INPUTS, THREADS)) * 8 - 4).astype(np.float16).view(np.uint16).astype(np.uint64)
    doubles = (generator.random((INPUTS, THREADS)) * 8 - 4).view(np.uint64)
    small = generator.integers(0, 64, (2, INPUTS, THREADS)).astype(np.uint64)
    choices = [
        words,
        hostile,
        np.where(generator.random((INPUTS, THREADS)) < 0.5, doubled, small[0] | small[1] << np.uint64(32)),
        singles[0] | singles[1] << np.uint64(32),
        halves[0] | halves[1] << np.uint64(16) | halves[2] << np.uint64(32) | halves[3] << np.uint64(48),
        doubles,
    ]
    return np.choose(kind, choices)
