"""wmma: loads, products and stores of fragments, with a register layout that this machine defines.

The ISA does not define which thread holds which element of a fragment. A program can therefore only load fragments,
store them, and treat all elements alike. Here, if a lane holds p elements, its element i is the element lane * p + i of
the matrix in row-major order. If a fragment has room for more elements than the matrix, the elements repeat. Products
are summed as in mma.sync, except that tf32 sums two halves of k, one after the other (measured on an H200,
tests/oracle/data/h200_wmma.npz).
Source: PTX ISA 9.0, wmma.load, wmma.store, wmma.mma.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cute_py.machine.arithmetic import (
    WIDE,
    as_elements,
    bits_of_numbers,
    element_width,
    in_registers,
    numbers_of,
    sum_doubles,
    sum_floats,
    sum_integers,
)
from cute_py.machine.decode import Builder, Turn
from cute_py.machine.faults import Refused
from cute_py.machine.instructions.lanes import collective
from cute_py.machine.instructions.matrices import _put_rows, _rows
from cute_py.machine.judgement.observer import WEAK
from cute_py.machine.kinds import KINDS
from cute_py.machine.memory import address_reader, place_of
from cute_py.machine.sites import Site
from cute_py.machine.threads import LANES, Array, Frame, broadcast

_SHAPES: Final[Mapping[str, tuple[int, int, int]]] = {
    "m16n16k16": (16, 16, 16), "m8n32k16": (8, 32, 16), "m32n8k16": (32, 8, 16), "m16n16k8": (16, 16, 8),
    "m8n8k4": (8, 8, 4),
}  # fmt: skip
_TYPES: Final = ("f16", "bf16", "tf32", "f32", "f64", "s8", "u8", "s32")


@dataclass(frozen=True, slots=True)
class _Fragment:
    """A fragment: rows and columns of its matrix, width of an element in bits, and number of elements per lane."""

    rows: int
    columns: int
    bits: int
    held: int

    @property
    def index(self) -> Array:
        """Row-major index in the matrix of each element, (32, held)."""
        return np.arange(LANES * self.held).reshape(LANES, -1) % (self.rows * self.columns)

    def matrix(self, words: Array) -> Array:
        """Convert words (warp, lane, register) to matrices of element bits (warp, row, column)."""
        flat = as_elements(words, self.bits).reshape(len(words), -1)
        return flat[:, : self.rows * self.columns].reshape(-1, self.rows, self.columns)

    def words(self, matrix: Array, word: Any) -> Array:
        """Convert matrices of element bits to words; the inverse of `matrix`."""
        return in_registers(matrix.reshape(len(matrix), -1)[:, self.index], self.bits, word)


def _word(bits: int) -> str:
    return "b64" if bits == 64 else "b32"


def _fragment(site: Site, part: str, shape: tuple[int, int, int], kind: str, registers: int) -> _Fragment:
    m, n, k = shape
    rows, columns = {"a": (m, k), "b": (k, n)}.get(part, (m, n))
    bits = element_width(kind)
    made = _Fragment(rows, columns, bits, registers * max(32, bits) // bits)
    if LANES * made.held % (rows * columns) or not made.held:
        raise Refused(f"a fragment of {part} in {site.one.opcode} does not have {registers} registers")
    return made


def build_fragment(site: Site) -> Turn:
    """Build the function that runs wmma.load, wmma.store or wmma.mma."""
    action = site.choice("load", "store", "mma")
    if not action:
        raise Refused(f"{site.one.opcode} is not emulated")
    site.flag("sync")
    site.flag("aligned")
    shape = _SHAPES.get(site.choice(*_SHAPES))
    if shape is None:
        raise Refused(f"{site.one.opcode}: only fragments of {', '.join(_SHAPES)} are emulated")
    return _build_product(site, shape) if action == "mma" else _build_move(site, shape, action == "load")


def _build_move(site: Site, shape: tuple[int, int, int], loads: bool) -> Turn:
    part, order = site.choice("a", "b", "c", "d"), site.choice("row", "col")
    space = site.choice("global", "shared", "shared::cta", default="generic")
    kind = site.kind(*_TYPES).name
    site.finish((2, 3))
    place, registers = (1, 0) if loads else (0, 1)
    names = site.elements(registers)
    one = _fragment(site, part, shape, kind, len(names))
    word, dtype, size = KINDS[_word(one.bits)], np.dtype(f"uint{one.bits}"), one.bits // 8
    row, column = np.divmod(one.index, one.columns)
    base = address_reader(site, site.address(place), "shared" if space == "shared::cta" else space)
    pitch = site.reader(2, "u32") if len(site.operands) == 3 else None
    across = one.columns if order == "row" else one.rows
    put: Any = _put_rows(site, names, word) if loads else None
    read: Any = None if loads else _rows(site, names, word)

    def addresses(f: Frame) -> Array:
        """Addresses of the elements that one warp holds, (32, held)."""
        step = across if pitch is None else int(broadcast(pitch(f), f)[0])
        element = row * step + column if order == "row" else column * step + row
        found: Array = int(base(f)[0]) + element * size
        return found

    def each(f: Frame) -> None:
        where = addresses(f)
        held = np.empty((LANES, one.held), dtype) if loads else as_elements(read(f), one.bits).astype(dtype)
        for number in range(one.held):
            array, offsets = place_of(f, site, space, where[:, number], size, not loads)
            view = f.m.memory.typed(array, dtype)
            if loads:
                f.m.observer.read(f, site, array, offsets, size, WEAK)
                held[:, number] = view[offsets // size]
            else:
                f.m.observer.wrote(f, site, array, offsets, size, WEAK, held[:, number])
                view[offsets // size] = held[:, number]
        if loads:
            put(f, in_registers(held, one.bits, word.dtype.type))
        else:
            f.m.version += 1

    def run(f: Frame) -> None:
        for start in range(0, f.n, LANES):
            lo = int(f.threads[start])
            each(f.m.span(lo, lo + LANES))

    return collective(site, None, run, full=True)


def _build_product(site: Site, shape: tuple[int, int, int]) -> Turn:
    for _ in range(2):
        site.flag("row", "col")
    saturates = site.flag("satfinite")
    site.flag("rn")
    kinds = []
    while any(word in KINDS and not used for word, used in zip(site.modifiers, site.used, strict=True)):
        kinds.append(site.first_kind().name)
    site.finish(4)
    d, a, b, c = {2: (kinds[0], "f16", "f16", kinds[-1]), 4: tuple(kinds)}[len(kinds)]
    if saturates and d != "s32":
        raise Refused(f"{site.one.opcode}: .satfinite of floats is not emulated")
    types = {"d": d, "a": a, "b": b, "c": c}
    lists = [site.elements(place) for place in range(4)]
    parts = {x: _fragment(site, x, shape, types[x], len(names)) for x, names in zip("dabc", lists, strict=True)}
    words = {x: KINDS[_word(parts[x].bits)] for x in "dabc"}
    reads: dict[str, Any] = {x: _rows(site, lists["dabc".index(x)], words[x]) for x in "abc"}
    put = _put_rows(site, lists[0], words["d"])

    def run(f: Frame) -> None:
        x, y, z = (
            numbers_of(parts[p].matrix(np.ascontiguousarray(reads[p](f)).reshape(-1, LANES, len(names))), types[p])
            for p, names in zip("abc", lists[1:], strict=True)
        )
        y = y.swapaxes(-1, -2)
        if d == "f64":
            found = sum_doubles(x, y, z)
        elif d == "s32":
            found = sum_integers(x, y, z, saturates)
        else:
            found = z
            for part in np.split(np.arange(x.shape[-1]), 2 if a == "tf32" else 1):
                found = sum_floats(x[..., part], y[..., part], found, WIDE, d == "f16")
        put(f, parts["d"].words(bits_of_numbers(found, d), words["d"].dtype.type).reshape(f.n, -1))

    return collective(site, None, run, full=True)


TABLE: Final[Mapping[str, Builder]] = {"wmma": build_fragment}
