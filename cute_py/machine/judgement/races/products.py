"""Check the registers of wgmma: a fence must precede the product, and no thread may use the registers before the wait.

The registers that a stretch of instructions touches are determined once, from its text. If a stretch touches registers
of products, it notifies the judge each time that it begins. A move does not count as a use, because compilers copy
registers of products freely, and ptxas removes the copies or waits for the product. A use of the copy does count: until
the wait, the copy is treated like the register.
Source: PTX ISA 9.0, wgmma.fence, wgmma.mma_async, wgmma.wait_group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from cute_py.errors import shortened
from cute_py.machine.faults import place_text
from cute_py.machine.judgement.observer import Observer
from cute_py.machine.threads import WARPGROUP, groups_of_cta
from cute_py.ptx.parse import OperandKind

if TYPE_CHECKING:
    from cute_py.machine.code import Code, Stretch
    from cute_py.machine.judgement.races.reports import Reports
    from cute_py.machine.sites import Site
    from cute_py.machine.threads import Array, Frame, Host
    from cute_py.ptx.parse import WrittenOperand

Register = tuple[str, str]
"""(function, name) of a register."""
Registers = frozenset[Register]

_NO_RESULT: Final = (
    "st", "red", "bar", "barrier", "cp", "bra", "ret", "exit", "mbarrier", "fence", "membar", "stmatrix", "call",
    "prefetch", "trap",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Step:
    """An instruction that moves registers, with (target, source) of each move, or an instruction that uses or writes
    registers.
    """

    number: int
    moves: tuple[tuple[Register, Register], ...]
    touched: Registers
    written: Registers


@dataclass(frozen=True, slots=True)
class _Touches:
    """The registers of products that a stretch of instructions touches and writes. `touched` maps each register to the
    index of the first instruction that touches it.

    If the stretch makes or uses copies of these registers, `steps` lists, in order, every use of a register or a copy.
    """

    row: int
    touched: dict[Register, int]
    written: Registers
    steps: tuple[_Step, ...]


@dataclass(slots=True)
class _Product:
    """A product in flight: the index of its group, its registers and their copies, and the index of its instruction."""

    group: int
    names: Registers
    site: int


class ProductJudge(Observer):
    """Judges how the threads of one run use the registers of wgmma."""

    active = True

    def __init__(self, reports: Reports, code: Code) -> None:
        self.reports, self.code = reports, code
        self.of_site: dict[int, Registers] = {}
        for number, one in enumerate(code.instructions):
            if one.opcode.startswith("wgmma.mma_async"):
                held = one.operands[:2] if one.operands[1].kind is OperandKind.VECTOR else one.operands[:1]
                self.of_site[number] = _of_operands(code.function_of[number], held)
        every = frozenset(name for names in self.of_site.values() for name in names)
        copies = _copies(code, every) if every else every
        self.stretches: list[tuple[Stretch, _Touches]] = []
        for block in code.blocks if every else ():
            found = None if block is None else _touches(code, block, every, copies, len(self.stretches))
            if block is not None and found is not None:
                self.stretches.append((block, found))

    def began(self, m: Host) -> None:
        """Reset the state: no product is in flight."""
        groups = m.ctas * groups_of_cta(m.cta_threads)
        self.now = 1
        self.fences = np.zeros(groups, np.int64)
        self.ran = np.zeros((max(len(self.stretches), 1), groups), np.int64)
        self.commits = np.zeros(groups, np.int64)
        self.flying: dict[int, list[_Product]] = {}
        for block, touches in self.stretches:
            block.observed = self._seen(touches)

    def _seen(self, touches: _Touches) -> Callable[[Frame], None]:
        def seen(f: Frame) -> None:
            self.now += 1
            if touches.written:
                self.ran[touches.row, f.groups] = self.now
            if self.flying:
                self._in_use(f, touches, f.groups)

        return seen

    def _in_use(self, f: Frame, touches: _Touches, groups: Array) -> None:
        for product in (one for group in groups.tolist() for one in self.flying.get(group, ())):
            if touches.steps:
                self._follow(f, touches.steps, product)
            elif both := product.names & touches.touched.keys():
                first = min(both, key=lambda name: touches.touched[name])
                self._say_in_use(f, touches.touched[first], first[1], product.site, len(both))

    def _follow(self, f: Frame, steps: Sequence[_Step], product: _Product) -> None:
        """Follow the copies of the registers of a product through a stretch, up to the first use."""
        own, names = self.of_site[product.site], set(product.names)
        for step in steps:
            if used := names & step.touched:
                self._say_in_use(f, step.number, min(used)[1], product.site, len(used))
                break
            copied = {target for target, source in step.moves if source in names}
            names -= (step.written | {target for target, _ in step.moves}) - own
            names |= copied
        product.names = frozenset(names)

    def _say_in_use(self, f: Frame, number: int, name: str, site: int, count: int) -> None:
        one, product = self.code.instructions[number], self.code.instructions[site]
        verb = "touches" if f.n == 1 else "touch"
        text = (
            f"{f.text()} {verb} {name}, a register of the product at {place_text(product, self.code.files)}; the "
            "product may still be under way"
        )
        self.reports.add(
            ("registers in use", number, site), text, one, "error",
            threads=f.text(), other=shortened(product.text, 160), other_line=product.line, registers=count,
        )  # fmt: skip

    # ---- events ------------------------------------------------------------------------------------------------------

    def multiply_fenced(self, f: Frame, site: Site) -> None:
        """Record a wgmma.fence: writes of registers before it are complete."""
        self._expect_complete(f, site)
        self.now += 1
        self.fences[f.groups] = self.now

    def _expect_complete(self, f: Frame, site: Site) -> None:
        """Report threads of a warpgroup with fewer than 128 threads, which the sizes of the CTA determine."""
        m = f.m
        x, y, z = m.shape.block
        inside = f.threads % m.cta_threads
        short = f.threads[inside >= x * y * z // WARPGROUP * WARPGROUP]
        if len(short):
            verb = "executes" if len(short) == 1 else "execute"
            text = (
                f"{m.threads_text(short)} {verb} {'.'.join(site.one.opcode.split('.')[:2])}, but the warpgroup is "
                f"incomplete, because the CTA has {x * y * z} threads; all {WARPGROUP} threads of a warpgroup must "
                "execute it"
            )
            self.reports.add(
                ("divergent aligned instruction", site.number), text, site.one, "error",
                threads=m.threads_text(short), cause="incomplete warpgroup",
            )  # fmt: skip

    def multiplied(self, f: Frame, site: Site) -> None:
        """Check that a fence precedes a product, and record the product."""
        names = self.of_site.get(site.number, frozenset())
        group = int(f.groups[0])
        fence = int(self.fences[group])
        for _, touches in self.stretches:
            if int(self.ran[touches.row, group]) > fence and names & touches.written:
                self._say_not_fenced(f, site, touches, min(names & touches.written))
                break
        else:
            if not fence:
                text = f"{f.text()} multiply without a wgmma.fence before its first product"
                self.reports.add(("registers not fenced", site.number), text, site.one, "error", threads=f.text())
        self.flying.setdefault(group, []).append(_Product(int(self.commits[group]), names, site.number))

    def _say_not_fenced(self, f: Frame, site: Site, touches: _Touches, name: tuple[str, str]) -> None:
        one = self.code.instructions[touches.touched[name]]
        line = place_text(one, self.code.files)
        text = f"{f.text()} multiply with {name[1]}, which {line} wrote; there is no wgmma.fence between the two"
        self.reports.add(
            ("registers not fenced", site.number), text, site.one, "error",
            threads=f.text(), other=shortened(one.text, 160), other_line=one.line,
        )  # fmt: skip

    def committed(self, f: Frame, site: Site, group: str) -> None:
        """Record the commit of a group of products."""
        if group == "wgmma":
            self._expect_complete(f, site)
            self.commits[f.groups] += 1

    def waited(self, f: Frame, site: Site, group: str, left: int, reads: bool, everything: bool) -> None:
        """Remove the products of complete groups, whose registers may be used again."""
        if group != "wgmma":
            return
        self._expect_complete(f, site)
        for one in f.groups.tolist():
            limit = int(self.commits[one]) - left
            kept = [held for held in self.flying.get(one, ()) if held.group >= limit]
            if kept:
                self.flying[one] = kept
            else:
                self.flying.pop(one, None)


def _names(operands: Iterable[WrittenOperand], names: set[str]) -> bool:
    """Whether any operand may name one of these registers."""
    for one in operands:
        if one.base in names or (one.elements and not names.isdisjoint(text.strip() for text in one.elements)):
            return True
    return False


def _of_operands(function: str, operands: Iterable[WrittenOperand]) -> Registers:
    found: set[tuple[str, str]] = set()
    for one in operands:
        names = one.elements if one.kind is OperandKind.VECTOR else (one.base,)
        if one.kind in (OperandKind.VECTOR, OperandKind.REGISTER, OperandKind.ADDRESS):
            found.update((function, name.strip()) for name in names if name.strip().startswith("%"))
    return frozenset(found)


def _moves(code: Code, number: int) -> tuple[tuple[Register, Register], ...]:
    """Return (target, source) of each register that a move writes, including packing and unpacking; a source with an
    empty name is not a register.
    """
    one, function = code.instructions[number], code.function_of[number]
    targets, sources = (_of_operands(function, held) for held in (one.operands[:1], one.operands[1:]))
    return tuple((a, b) for a in targets for b in sources or (("", ""),))


def _copies(code: Code, every: Registers) -> Registers:
    """The registers that may receive copies of registers of products through moves, directly or indirectly."""
    targets: dict[Register, list[Register]] = {}
    for number, one in enumerate(code.instructions):
        if one.opcode.startswith("mov."):
            for target, source in _moves(code, number):
                targets.setdefault(source, []).append(target)
    found, todo = set(every), list(every)
    while todo:
        new = set(targets.get(todo.pop(), ())) - found
        found |= new
        todo += new
    return frozenset(found) - every


def _touches(code: Code, block: Stretch, every: Registers, copies: Registers, row: int) -> _Touches | None:
    """Collect the registers of products and their copies that a stretch touches; None if it touches none."""
    touched: dict[Register, int] = {}
    written: set[Register] = set()
    steps = []
    known = every | copies
    names = {name for _, name in known}
    for number in range(block.start, block.start + block.length):
        one = code.instructions[number]
        name = one.opcode.split(".")[0]
        if name == "wgmma" or not _names(one.operands, names):
            continue
        if name == "mov":
            steps.append(_Step(number, _moves(code, number), frozenset(), frozenset()))
            continue
        function = code.function_of[number]
        used = _of_operands(function, one.operands) & known
        result = _of_operands(function, one.operands[:1]) & known if name not in _NO_RESULT else frozenset()
        read = _of_operands(function, one.operands[1:]) if name not in _NO_RESULT else used
        steps.append(_Step(number, (), (used & every) | (read & copies), result))
        for which in used & every:
            touched.setdefault(which, number)
        written.update(result & every)
    followed = any(step.moves or (step.touched | step.written) & copies for step in steps)
    return _Touches(row, touched, frozenset(written), tuple(steps) if followed else ()) if steps else None
