"""Emit the steps of a register conversion as PTX, and count their cost.

The source is in registers %s0, %s1, ..., the destination in %d0, %d1, ..., and temporary values in %t and %p registers.
%base is the shared-memory address of the tile, and %tid.x the thread index.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from cute_py.copies.registers.lanes import LanePlan, stages
from cute_py.copies.registers.shared import ThreadAccess, TiledSide
from cute_py.errors import counted

LANES: Final = 32


@dataclass(frozen=True, slots=True)
class ConversionStep:
    """One step of a conversion: its description and its PTX."""

    kind: Literal["move", "select", "shuffle", "store", "wait", "load"]
    text: str
    ptx: tuple[str, ...] = field(repr=False)

    def __str__(self) -> str:
        return f"{self.kind:<8}{self.text}"


@dataclass(frozen=True, slots=True)
class ConversionCost:
    """Cost of a conversion: instructions per thread, and shared-memory use of the block.

    moves: prmt, shift and address instructions; renaming a register costs nothing. selects: selp. shuffles: shfl.sync.
    stores, loads: shared-memory instructions. wavefronts: shared-memory wavefronts of all warps. bytes: size of the
    tile. cycles: cycles on an otherwise idle SM: one for a wavefront or for a warp's shuffle, half a cycle for any
    other instruction of a warp.
    """

    moves: int = 0
    selects: int = 0
    shuffles: int = 0
    stores: int = 0
    loads: int = 0
    wavefronts: int = 0
    bytes: int = 0
    cycles: float = 0.0

    def __str__(self) -> str:
        counts = [counted(getattr(self, name), name[:-1]) for name in self.__slots__[:-1] if getattr(self, name)]
        return ", ".join([*counts, f"{self.cycles:g} cycles"]) if counts else "nothing"


class ConversionText:
    """Builder of the PTX of all steps; it also allocates register names and counts the cost."""

    def __init__(self) -> None:
        self.count: collections.Counter[str] = collections.Counter()
        self.cost: collections.Counter[str] = collections.Counter()
        self.lines: list[str] = []
        self.steps: list[ConversionStep] = []

    def new(self, kind: str = "t") -> str:
        self.count[kind] += 1
        return f"%{kind}{self.count[kind] - 1}"

    def emit(self, line: str, counts: str = "moves") -> None:
        self.lines.append(line)
        self.cost[counts] += 1

    def total(self, warps: int, tile_bytes: int = 0) -> ConversionCost:
        """Return the cost for a block of this many warps."""
        c = self.cost
        others = c["moves"] + c["selects"]
        cycles = c["wavefronts"] + warps * (c["shuffles"] + others / 2)
        names = ("moves", "selects", "shuffles", "stores", "loads", "wavefronts")
        return ConversionCost(**{name: c[name] for name in names}, bytes=tile_bytes, cycles=cycles)

    def step(self, kind: Any, text: str) -> None:
        """Make a step of the lines emitted since the last step; do nothing if there are none."""
        if self.lines:
            self.steps.append(ConversionStep(kind, text, tuple(self.lines)))
            self.lines = []

    def thread_function(self, columns: Sequence[int], thread: str) -> str | None:
        """Emit code that XORs the columns of all set bits of the thread index, and return its register; None if all
        columns are 0."""
        found: str | None = None
        bit = 0
        while bit < len(columns):
            run = 1
            while bit + run < len(columns) and columns[bit + run] == columns[bit] << run:
                run += 1
            column = columns[bit]
            if column and not column & column - 1:
                part, shift = self.new(), column.bit_length() - 1 - bit
                self.emit(f"and.b32 {part}, {thread}, {((1 << run) - 1) << bit};")
                if shift:
                    self.emit(f"{'shl' if shift > 0 else 'shr'}.b32 {part}, {part}, {abs(shift)};")
            elif column:
                run, part = 1, self.new()
                self.emit(f"shr.u32 {part}, {thread}, {bit};")
                self.emit(f"and.b32 {part}, {part}, 1;")
                self.emit(f"mul.lo.u32 {part}, {part}, {column};")
            if column:
                if found is not None:
                    self.emit(f"xor.b32 {part}, {part}, {found};")
                found = part
            bit += run
        return found

    def swapped(self, names: list[str], columns: Sequence[int], thread: str) -> list[str]:
        """Permute registers: register n becomes register n ^ f, where f is the XOR of the columns of the thread index's
        set bits. Each pair takes two selects."""
        for mask, step in stages(columns):
            part, predicate = self.new(), self.new("p")
            self.emit(f"and.b32 {part}, {thread}, {mask};")
            if mask & mask - 1:
                self.emit(f"popc.b32 {part}, {part};")
                self.emit(f"and.b32 {part}, {part}, 1;")
            self.emit(f"setp.ne.u32 {predicate}, {part}, 0;")
            after = [self.new() for _ in names]
            for n, name in enumerate(after):
                self.emit(f"selp.b32 {name}, {names[n ^ step]}, {names[n]}, {predicate};", "selects")
            names = after
        return names

    def gathered(self, pieces: Sequence[tuple[str, int]], bits: int) -> str:
        """Pack the elements (register, position) into one register, low bits first."""
        size = bits // 8
        bytes_of = [(name, place * size + k) for name, place in pieces for k in range(size)]
        names = list(dict.fromkeys(name for name, _ in bytes_of))
        if len(names) == 1 and [b for _, b in bytes_of] == list(range(len(bytes_of))):
            return names[0]
        held = ""
        done: set[str] = set()
        for first in range(0, len(names), 2):
            pair = names[first : first + 2]
            left, right = pair[0], pair[-1]
            selector = 0
            for k, (name, byte) in enumerate(bytes_of):
                if name in pair:
                    selector |= (byte if name == left else byte + 4) << 4 * k
            found = self.new()
            self.emit(f"prmt.b32 {found}, {left}, {right}, {selector:#06x};")
            if not held:
                held = found
            else:
                selector = sum((k if name in done else k + 4) << 4 * k for k, (name, _) in enumerate(bytes_of))
                both = self.new()
                self.emit(f"prmt.b32 {both}, {held}, {found}, {selector:#06x};")
                held = both
            done.update(pair)
        return held


# ---- moves and shuffles ---------------------------------------------------------------------------------------------


def in_order(table: Sequence[int], bits: int) -> ConversionText:
    """Emit moves by a table destination value -> source value, which is the same for all threads."""
    text, per = ConversionText(), max(1, 32 // bits)
    words = max(1, bits // 32)
    for register in range(-(-len(table) // per) * words):
        if words > 1:
            value, half = divmod(register, words)
            name = f"%s{table[value] * words + half}"
        else:
            own = table[register * per : (register + 1) * per]
            name = text.gathered([(f"%s{v // per}", v % per) for v in own], bits)
        text.emit(f"mov.b32 %d{register}, {name};", "names")
    text.step("move", f"registers of the thread: {_listed(table)}")
    return text


def _listed(table: Sequence[int]) -> str:
    shown = ", ".join(f"{v}" for v in table[:8])
    return f"values {shown}{', ...' if len(table) > 8 else ''} of the source, in this order"


def shuffled(plan: LanePlan, bits: int, count: int) -> ConversionText:
    """Emit the rounds of a plan as PTX. bits: width of an element, at most 32."""
    text, per = ConversionText(), 32 // bits
    thread = text.new()
    text.emit(f"mov.u32 {thread}, %tid.x;")
    text.step("move", "the thread's index")
    names = [text.gathered([(f"%s{v // per}", v % per) for v in word], bits) for word in plan.packed]
    together = len(plan.packed[0])
    text.step("move", f"{counted(together, 'element')} of {bits} bits in each sent word")
    names = text.swapped(names, plan.select, thread)
    text.step("select", "each lane arranges its words in the order of the rounds")
    lane = None
    if not plan.straight:
        lane = text.thread_function(plan.lanes, thread) or "0"
    got = []
    for number, name in enumerate(names):
        step = plan.step(number)
        if lane is None and not step:
            got.append(name)
            continue
        found = text.new()
        if lane is None:
            text.emit(f"shfl.sync.bfly.b32 {found}, {name}, {step}, 31, 0xffffffff;", "shuffles")
        else:
            source = lane
            if step:
                source = text.new()
                text.emit(f"xor.b32 {source}, {lane}, {step};")
            text.emit(f"shfl.sync.idx.b32 {found}, {name}, {source}, 31, 0xffffffff;", "shuffles")
        got.append(found)
    stay = len(names) - text.cost["shuffles"]
    text.step("shuffle", f"{counted(text.cost['shuffles'], 'word')} move to another lane; {stay} stay")
    names = text.swapped([got[r] for r in plan.rounds], plan.keep, thread)
    text.step("select", "each lane arranges the received words in its own order")
    for register in range(-(-count // per)):
        own = [plan.unpacked[v] for v in range(register * per, min(count, (register + 1) * per))]
        name = text.gathered([(names[k], i) for k, i in own], bits)
        text.emit(f"mov.b32 %d{register}, {name};", "names")
    text.step("move", "words to the registers of the destination")
    return text


# ---- shared memory --------------------------------------------------------------------------------------------------


def through_memory(
    store: TiledSide, load: TiledSide, bits: int, threads: int, count: int, warp: bool
) -> ConversionText:
    """Emit stores to shared memory, a wait, and loads.

    Args:
        bits: width of an element. threads: number of participating threads. count: number of values per thread of the
            destination. warp: whether no element leaves its warp, so that each warp waits only for itself.
    """
    text = ConversionText()
    thread = text.new()
    text.emit(f"mov.u32 {thread}, %tid.x;")
    guard = ""
    if threads % LANES:
        predicate = text.new("p")
        text.emit(f"setp.lt.u32 {predicate}, {thread}, {threads};")
        guard = f"@{predicate} "
    own = _thread_address(text, store, thread)
    for access in store.accesses:
        _store(text, access, _address(text, store, own, access), bits, guard)
    text.step("store", _said(store, "st", bits))
    text.emit("bar.warp.sync 0xffffffff;" if warp else "bar.sync 0;", "waits")
    text.step("wait", "for the warp" if warp else "for the block")
    own = _thread_address(text, load, thread)
    pieces: dict[int, tuple[str, int]] = {}
    for access in load.accesses:
        pieces |= _load(text, access, _address(text, load, own, access), bits, guard)
    per = max(1, 32 // bits)
    for register in range(-(-count * bits // 32)):
        if bits > 32:
            name = pieces[register][0]
        else:
            name = text.gathered([pieces[v] for v in range(register * per, min(count, (register + 1) * per))], bits)
        text.emit(f"mov.b32 %d{register}, {name};", "names")
    text.step("load", _said(load, "ld", bits))
    text.cost["wavefronts"] = store.wavefronts + load.wavefronts
    return text


def _said(side: TiledSide, verb: str, bits: int) -> str:
    first = side.accesses[0]
    name = f"{verb}.shared"
    if first.matrices:
        name = f"{verb}matrix.x{first.matrices}{'.trans' if first.transposed else ''}"
    width = first.values * bits // 8
    return f"{len(side.accesses)} x {name}, {width} bytes per thread; {counted(side.wavefronts, 'wavefront')}"


def _thread_address(text: ConversionText, side: TiledSide, thread: str) -> str:
    """Return the register with the thread's part of an address; it includes the base if value offsets are added, not
    XORed."""
    if side.columns is not None:
        found = text.thread_function(side.columns, thread)
        if found is None:
            found = text.new()
            text.emit(f"mov.u32 {found}, 0;")
        if not _xors(side):
            whole = text.new()
            text.emit(f"add.u32 {whole}, {found}, %base;")
            return whole
        return found
    found, rest = "%base", thread
    for number, (extent, stride) in enumerate(side.modes):
        part = rest
        if number + 1 < len(side.modes):
            part, following = text.new(), text.new()
            text.emit(f"rem.u32 {part}, {rest}, {extent};")
            text.emit(f"div.u32 {following}, {rest}, {extent};")
            rest = following
        whole = text.new()
        text.emit(f"mad.lo.u32 {whole}, {part}, {stride}, {found};")
        found = whole
    return found


def _xors(side: TiledSide) -> bool:
    """Whether value offsets and thread offsets have a common bit, so that an XOR instead of an addition must combine
    them."""
    touched = 0
    for column in side.columns or ():
        touched |= column
    return side.columns is not None and any(access.offset & touched for access in side.accesses)


def _address(text: ConversionText, side: TiledSide, thread: str, access: ThreadAccess) -> str:
    if not _xors(side):
        return f"[{thread}+{access.offset}]" if access.offset else f"[{thread}]"
    moved, whole = text.new(), text.new()
    text.emit(f"xor.b32 {moved}, {thread}, {access.offset};")
    text.emit(f"add.u32 {whole}, {moved}, %base;")
    return f"[{whole}]"


def _registers(access: ThreadAccess, bits: int, prefix: str) -> list[str]:
    """Return the registers that an access moves completely; empty if it moves only a part of a register."""
    if access.values * bits < 32:
        return []
    return [f"{prefix}{n}" for n in range(access.first * bits // 32, (access.first + access.values) * bits // 32)]


def _vector(count: int, first: list[str]) -> tuple[str, str]:
    return (f".v{count}", "{" + ", ".join(first) + "}") if count > 1 else ("", first[0])


def _matrix(access: ThreadAccess) -> str:
    return f"matrix.sync.aligned.m8n8.x{access.matrices}{'.trans' if access.transposed else ''}.shared.b16"


def _store(text: ConversionText, access: ThreadAccess, address: str, bits: int, guard: str) -> None:
    names = _registers(access, bits, "%s")
    if access.matrices:
        text.emit(f"st{_matrix(access)} {address}, {{{', '.join(names)}}};", "stores")
    elif names:
        vector, listed = _vector(len(names), names)
        text.emit(f"{guard}st.shared{vector}.b32 {address}, {listed};", "stores")
    else:
        width, per = access.values * bits, 32 // bits
        name, shift = f"%s{access.first // per}", access.first % per * bits
        if shift:
            whole, name = name, text.new()
            text.emit(f"shr.u32 {name}, {whole}, {shift};")
        text.emit(f"{guard}st.shared.u{width} {address}, {name};", "stores")


def _load(
    text: ConversionText, access: ThreadAccess, address: str, bits: int, guard: str
) -> dict[int, tuple[str, int]]:
    """Emit a load; return value -> (register, position in it), or word -> (register, 0) for values of more than 32
    bits."""
    names = [text.new() for _ in _registers(access, bits, "")]
    if access.matrices:
        text.emit(f"ld{_matrix(access)} {{{', '.join(names)}}}, {address};", "loads")
    elif names:
        vector, listed = _vector(len(names), names)
        text.emit(f"{guard}ld.shared{vector}.b32 {listed}, {address};", "loads")
    else:
        names = [text.new()]
        text.emit(f"{guard}ld.shared.u{access.values * bits} {names[0]}, {address};", "loads")
    if bits > 32:
        return {access.first * bits // 32 + k: (name, 0) for k, name in enumerate(names)}
    per = 32 // bits
    return {access.first + v: (names[v // per], v % per) for v in range(access.values)}
