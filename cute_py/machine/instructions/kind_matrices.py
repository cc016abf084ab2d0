"""mma.sync with a .kind, for sm_120a and sm_121a: floats of 4, 6 and 8 bits, with or without scale factors.

    .kind::f8f6f4      m16n8k32, D of float32 or float16
    .kind::mxf8f6f4    m16n8k32, a ue8m0 factor for each row          (.scale_vec::1X)
    .kind::mxf4        m16n8k64, two ue8m0 factors                    (.scale_vec::2X)
    .kind::mxf4nvf4    m16n8k64, two ue8m0 factors, or four           (.scale_vec::2X, 4X) of ue8m0 or ue4m3

With K = 32, each element occupies a byte: a 6-bit element is in bits 0 to 5, a 4-bit element in bits 2 to 5. With K =
64, two elements share a byte. In the operand list, a selector {b, t} follows the register of the scale factors. The
factors of row r of A are in this register of lane 4 (r % 8) + 2 t + r // 8, starting at byte b. The factors of column n
of B are in lane 4 n + t.
Source: PTX ISA 9.0, 9.7.14.3 block scaling for mma.sync, 9.7.14.5 fragments; cute/atom/mma_traits_sm120.hpp. No GPU
with these instructions was available: the machine sums in the order that was measured for float16 on an H200.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from cute_py.atom.mma_atom import MmaAtom
from cute_py.atom.mma_atoms import mma_atom
from cute_py.layout import offsets
from cute_py.machine.arithmetic import (
    WIDE,
    as_elements,
    bits_of_numbers,
    codes_of_bytes,
    element_width,
    in_registers,
    numbers_of,
    numbers_of_codes,
    scaled,
    sum_floats,
)
from cute_py.machine.decode import Builder, Turn
from cute_py.machine.faults import Refused
from cute_py.machine.instructions.lanes import collective
from cute_py.machine.instructions.matrices import _fragments_of, _put_rows, _rows, build_mma
from cute_py.machine.kinds import KINDS
from cute_py.machine.matrix import gathered, scattered
from cute_py.machine.sites import Site
from cute_py.machine.threads import LANES, Array, Frame, Reader, broadcast
from cute_py.targets import Targets, architecture

_NARROW: Final = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
_SCALES: Final[dict[str, dict[int, tuple[str, ...]]]] = {
    "f8f6f4": {},
    "mxf8f6f4": {1: ("ue8m0",)},
    "mxf4": {2: ("ue8m0",)},
    "mxf4nvf4": {2: ("ue8m0",), 4: ("ue8m0", "ue4m3")},
}
"""Kind -> factors of a row -> their types."""
_USUAL: Final = {"mxf8f6f4": 1, "mxf4": 2}
"""Kind -> factors of a row if the instruction has no .scale_vec."""
_OPCODE: Final = re.compile(
    r"mma\.sync\.aligned(?P<before>(?:\.(?:kind::\w{1,10}|block_scale|scale_vec::[124]X)){0,3})\.m16n8k(?P<k>32|64)"
    r"\.row\.col(?P<behind>(?:\.(?:kind::\w{1,10}|block_scale|scale_vec::[124]X)){0,3})"
    r"\.(?P<d>f32|f16)\.(?P<a>e\dm\d)\.(?P<b>e\dm\d)\.(?P<c>f32|f16)(?:\.(?P<scale>ue\dm\d))?"
)


@dataclass(frozen=True, slots=True)
class KindInstruction:
    """An mma.sync with a kind: its atom, which defines the fragments, and its types.

    factors: number of scale factors per row, or 0.
    """

    atom: MmaAtom
    d: str
    a: str
    b: str
    factors: int
    scale: str


@functools.lru_cache(maxsize=256)
def kind_instruction(opcode: str) -> KindInstruction:
    """Find the instruction of an opcode, whose kind comes before the shape or after the majors.

    Raises:
        Refused: the instruction does not exist, or is not emulated.

    >>> found = kind_instruction("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0")
    >>> found.factors, found.atom.op
    (2, 'SM120::BLOCKSCALED::SM120_16x8x64_TN_VS')
    """
    match = _OPCODE.fullmatch(opcode)
    modifiers = [] if match is None else f"{match['before']}{match['behind']}".strip(".").split(".")
    kinds = [one.removeprefix("kind::") for one in modifiers if one.startswith("kind::")]
    if match is None or len(kinds) != 1 or kinds[0] not in _SCALES or len(set(modifiers)) != len(modifiers):
        raise Refused(f"{opcode} is not emulated")
    kind, a, b, scale = kinds[0], match["a"], match["b"], match["scale"] or ""
    said = [int(one[11]) for one in modifiers if one.startswith("scale_vec")]
    factors = said[0] if said else _USUAL.get(kind, 0)
    deep = kind in ("mxf4", "mxf4nvf4")
    types = ("e2m1",) if deep else _NARROW
    sound = (
        match["c"] == match["d"]
        and {a, b} <= set(types)
        and match["k"] == ("64" if deep else "32")
        and len(said) < 2
        and ("block_scale" in modifiers) == (kind != "f8f6f4")
        and ((not factors and not scale and kind == "f8f6f4") or scale in _SCALES[kind].get(factors, ()))
        and (match["d"] == "f32" or kind == "f8f6f4")
    )
    if not sound:
        raise Refused(f"{opcode} is not an instruction of the PTX ISA")
    names = f"float_{a}_t,float_{b}_t,{'float' if match['d'] == 'f32' else 'half_t'}"
    more = f",float_{scale}_t,{int(match['k']) // factors}" if factors else ""
    atom = mma_atom(f"SM120_16x8x{match['k']}_TN{'_VS' if factors else ''}<{names}{more}>")
    return KindInstruction(atom, match["d"], a, b, factors, scale)


@functools.lru_cache(maxsize=64)
def scale_lanes(atom: MmaAtom, operand: str, selected: int) -> Array:
    """For each row of operand `A` or `B`, the lane whose register holds the scale factors of the row.

    Args:
        selected: the thread selector: for A a pair of lanes of a quad, 0 or 1; for B a lane of a quad, 0 to 3.
    """
    row_of = np.asarray(offsets(atom.layouts[f"SF{operand}"]))[:, 0]
    lanes = np.arange(LANES)
    chosen = lanes[(lanes % 4 // 2 if operand == "A" else lanes % 4) == selected]
    found = np.zeros(len(chosen), np.int64)
    found[row_of[chosen]] = chosen
    return found


def run_kind_mma(found: KindInstruction, a: Array, b: Array, c: Array, scales: tuple[Array, ...]) -> Array:
    """Run mma.sync for warps on words (.., lane, register) of A, B and C, and return D in this form.

    Args:
        scales: codes of the factors of A and of B, (.., rows, factors); empty for kinds without factors.
    """
    m, n, k = (int(x) for x in found.atom.shape_mnk)
    width = 4 if k == 64 else 8
    numbers = []
    for name, words, element, rows_of in (("A", a, found.a, m), ("B", b, found.b, n)):
        raw = gathered(found.atom, name, as_elements(words, width), (rows_of, k))
        numbers.append(numbers_of_codes(raw if width == 4 else codes_of_bytes(raw, element), element))
    if scales:
        numbers = [scaled(x, numbers_of_codes(s, found.scale)) for x, s in zip(numbers, scales, strict=True)]
    sums = numbers_of(gathered(found.atom, "C", as_elements(c, element_width(found.d)), (m, n)), found.d)
    total = bits_of_numbers(sum_floats(numbers[0], numbers[1], sums, WIDE, found.d == "f16"), found.d)
    return in_registers(scattered(found.atom, total), element_width(found.d), c.dtype)


@dataclass(frozen=True, slots=True)
class _Scales:
    """The scale factors of an operand: their register, and the selector {byte, thread}."""

    operand: str
    words: Reader
    byte: Reader
    thread: Reader

    def codes(self, site: Site, f: Frame, found: KindInstruction) -> Array:
        """The codes of the scale factors, (warps, rows, factors).

        Raises:
            Fault: the instruction does not support the selector, or the lanes have different selectors.
        """
        first, chosen = (_selector(site, f, read) for read in (self.byte, self.thread))
        most = 1 if self.operand == "A" else 3
        if first % found.factors or first > 3 or chosen > most:
            text = (
                f"{f.text()}: the selector of the scale factors of {self.operand} is {{{first}, {chosen}}}; must be "
                f"{{a multiple of {found.factors} up to {4 - found.factors}, 0 to {most}}}"
            )
            raise site.fault("scale selector", text, f, "mma, block scaling")
        lanes = scale_lanes(found.atom, self.operand, chosen)
        words = broadcast(self.words(f), f).reshape(-1, LANES)[:, lanes]
        shifts = np.uint32(8) * (np.uint32(first) + np.arange(found.factors, dtype=np.uint32))
        codes: Array = words[..., None] >> shifts & np.uint32(0xFF)
        return codes


def _selector(site: Site, f: Frame, read: Reader) -> int:
    values = broadcast(read(f), f)
    if (values != values[0]).any():
        text = f"{f.text()}: the lanes have different selectors of scale factors"
        raise site.fault("scale selector", text, f, "mma, block scaling")
    return int(values[0])


def _scales(site: Site, place: int, operand: str) -> _Scales:
    registers, selector = site.elements(place), site.elements(place + 1)
    if len(registers) != 1 or len(selector) != 2:
        raise Refused(f"{site.one.opcode} takes a register and {{byte, thread}} for the scale factors of {operand}")
    return _Scales(operand, site.read(registers[0], "b32"), *(site.read(one, "u16") for one in selector))


def build_kind_mma(site: Site) -> Turn:
    """Build the function that runs mma.sync with a kind."""
    target = str(site.code.module.target).split(",")[0].strip()
    if not Targets.CONSUMER_SPECIFIC.has(architecture(target)):
        raise Refused(f"{site.one.opcode} needs {Targets.CONSUMER_SPECIFIC.value}; the kernel is for {target}")
    found = kind_instruction(site.one.opcode)
    kind = KINDS["b32"]
    site.used = [True] * len(site.modifiers)
    site.finish(8 if found.factors else 4)
    lists = _fragments_of(site, found.atom)
    put = _put_rows(site, lists[0], kind)
    reads = [_rows(site, names, kind) for names in lists[1:]]
    factors = [_scales(site, 4, "A"), _scales(site, 6, "B")] if found.factors else []

    def run(f: Frame) -> None:
        words = [np.ascontiguousarray(read(f)).reshape(-1, LANES, len(lists[i + 1])) for i, read in enumerate(reads)]
        codes = tuple(one.codes(site, f, found) for one in factors)
        put(f, run_kind_mma(found, words[0], words[1], words[2], codes).reshape(f.n, -1))

    return collective(site, None, run, full=True)


def build_any_mma(site: Site) -> Turn:
    """Build the function that runs mma.sync, with or without a kind."""
    return build_kind_mma(site) if ".kind::" in site.one.opcode else build_mma(site)


TABLE: Final[Mapping[str, Builder]] = {"mma": build_any_mma}
