"""Comparisons and selections: setp, set, selp, slct, testp.

Source: PTX ISA 9.0, comparison and selection instructions. With a NaN, an ordered comparison is false, and an unordered
comparison (`equ`, `ltu`, ...) is true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from cute_py.machine.decode import Builder
from cute_py.machine.faults import Refused
from cute_py.machine.instructions.floats import flushed, numbers_of_kind, packed_numbers
from cute_py.machine.kinds import Kind
from cute_py.machine.sites import Site
from cute_py.machine.threads import Frame, Run, broadcast
from cute_py.ptx.parse import OperandKind
from cute_py.ptx.values import INTEGER_COMPARISONS

_ORDERED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "eq": np.equal, "ne": lambda a, b: (a < b) | (a > b), "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip
_UNORDERED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "equ": lambda a, b: ~((a < b) | (a > b)), "neu": np.not_equal, "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b), "gtu": lambda a, b: ~(a <= b), "geu": lambda a, b: ~(a < b),
    "num": lambda a, b: (a == a) & (b == b), "nan": lambda a, b: (a != a) | (b != b),
}  # fmt: skip
_COMBINED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
}  # fmt: skip
_FLOATS: Final = ("f16", "bf16", "f16x2", "bf16x2", "f32", "f64")


def _comparison(site: Site, kind: Kind) -> Callable[[Any, Any], Any]:
    name = site.choice(*INTEGER_COMPARISONS, *_UNORDERED)
    if kind.name in _FLOATS:
        found = _ORDERED.get(name) or _UNORDERED.get(name)
    else:
        found = INTEGER_COMPARISONS.get(name)
    if found is None:
        raise Refused(f"{site.one.opcode}: this comparison of {kind.name} is not supported")
    return found


def _compared(site: Site, kind: Kind, first: int) -> Callable[[Frame], Any]:
    """Return a function of a frame that compares two operands: flags (n,), or (n, 2) for packed types."""
    compare = _comparison(site, kind)
    flushes = site.flag("ftz")
    a, b = site.reader(first, kind), site.reader(first + 1, kind)
    if kind.name in ("f16x2", "bf16x2"):
        change = flushed if flushes else lambda value: value
        return lambda f: compare(change(packed_numbers(a(f), f, kind)), change(packed_numbers(b(f), f, kind)))
    if kind.name == "bf16":
        return lambda f: compare(numbers_of_kind(a(f), kind), numbers_of_kind(b(f), kind))
    if flushes:
        return lambda f: compare(flushed(a(f)), flushed(b(f)))
    return lambda f: compare(a(f), b(f))


def _combination(site: Site, place: int) -> Callable[[Frame, Any], Any] | None:
    name = site.choice(*_COMBINED)
    if not name:
        return None
    operation, source = _COMBINED[name], site.predicate(place)
    return lambda f, flags: operation(flags, source(f))


def build_setp(site: Site) -> Run:
    """setp: compare, and write a predicate, or a predicate and its negation; for packed types, one predicate for each
    half.
    """
    kind = site.kind()
    flags = _compared(site, kind, 1)
    combined = _combination(site, 3)
    site.finish((3, 4))
    one = site.operand(0)
    names = one.elements if one.kind is OperandKind.PAIR else (one.text,)
    puts = [site.write(name, "pred") for name in names]
    if kind.name in ("f16x2", "bf16x2"):

        def halves(f: Frame) -> None:
            found = flags(f)
            for place, put in enumerate(puts):
                part = found[:, place]
                put(f, part if combined is None else combined(f, part))

        return halves
    if len(puts) == 1 and combined is None:
        put = puts[0]
        return lambda f: put(f, flags(f))

    def run(f: Frame) -> None:
        found = flags(f)
        answers = [found, np.logical_not(found)][: len(puts)]
        for put, answer in zip(puts, answers, strict=True):
            put(f, answer if combined is None else combined(f, answer))

    return run


def build_set(site: Site) -> Run:
    """set: compare, and write all ones or zeros, or 1.0 or 0.0."""
    source = site.kind()
    target = site.kind()
    flags = _compared(site, source, 1)
    combined = _combination(site, 3)
    site.finish((3, 4))
    put = site.writer(0, target)
    if target.letter == "f":
        yes, no = target.dtype.type(1), target.dtype.type(0)
    elif target.name in ("bf16",):
        yes, no = np.uint16(0x3F80), np.uint16(0)
    else:
        yes, no = ~target.dtype.type(0), target.dtype.type(0)

    def run(f: Frame) -> None:
        found = flags(f)
        if combined is not None:
            found = combined(f, found)
        if found.ndim == 2:
            one = {"f16x2": np.uint16(0x3C00), "bf16x2": np.uint16(0x3F80)}.get(target.name, np.uint16(0xFFFF))
            put(f, np.ascontiguousarray(np.where(found, one, np.uint16(0))).view(np.uint32)[:, 0])
            return
        put(f, np.where(found, yes, no))

    return run


def build_selp(site: Site) -> Run:
    """selp: select a if the predicate is true, else b."""
    kind = site.kind()
    put, a, b, c = site.writer(0, kind), site.reader(1, kind), site.reader(2, kind), site.predicate(3)
    site.finish(4)
    return lambda f: put(f, np.where(c(f), a(f), b(f)))


def build_slct(site: Site) -> Run:
    """slct: select a if c >= 0, else b."""
    flushes = site.flag("ftz")
    by, kind = site.kind("s32", "f32"), site.kind()
    put, a, b = site.writer(0, kind), site.reader(1, kind), site.reader(2, kind)
    c = site.reader(3, by)
    site.finish(4)

    def run(f: Frame) -> None:
        value = flushed(c(f)) if flushes else c(f)
        put(f, np.where(value >= 0, a(f), b(f)))

    return run


_TESTS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda x: ~np.isnan(x),
    "notanumber": np.isnan,
    "normal": lambda x: np.isfinite(x) & ((np.abs(x) >= np.finfo(x.dtype).tiny) | (x == 0)),  # 0 too: measured
    "subnormal": lambda x: (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny),
}


def build_testp(site: Site) -> Run:
    """testp: test the class of a float."""
    test = _TESTS[site.choice(*_TESTS, default="finite")]
    kind = site.kind("f32", "f64")
    put, a = site.writer(0, "pred"), site.reader(1, kind)
    site.finish(2)
    return lambda f: put(f, test(broadcast(a(f), f)))


def build_copysign(site: Site) -> Run:
    """copysign: give b the sign of a."""
    kind = site.kind("f32", "f64")
    put, a, b = site.writer(0, kind), site.reader(1, kind), site.reader(2, kind)
    site.finish(3)
    return lambda f: put(f, np.copysign(b(f), a(f)))


TABLE: Final[Mapping[str, Builder]] = {
    "setp": build_setp,
    "set": build_set,
    "selp": build_selp,
    "slct": build_slct,
    "testp": build_testp,
    "copysign": build_copysign,
}
