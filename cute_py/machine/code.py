"""A kernel decoded once: registers and symbols with their places, and blocks of instructions that run without a stop.

The functions that a kernel calls stand before it, those that they call before them: a program counter is the number of
an instruction in that order, so that threads in a function are behind those that wait for them outside. Registers and
memory of a function have fixed places; a function that calls itself is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from cute_py.diagnostics import Diagnostic, refuse
from cute_py.errors import InvalidValueError, ParseError, counted, given, known_names
from cute_py.machine.faults import finding
from cute_py.machine.sites import KINDS, Control, Kind, Reader, Refused, Run, Site
from cute_py.ptx.parse import OperandKind, WrittenOperand
from cute_py.ptx.source import Module, SourceFunction, SourceInstruction, Variable, operand_of

MAX_REFUSALS: Final = 20
"""Instructions that one error lists."""

BUILT_IN: Final = ("vprintf", "__assertfail")
"""Functions without a body that the machine has."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What a builder returns for an instruction that may stop threads, or send them elsewhere."""

    run: Control


Builder = Callable[[Site], "Run | Flow | None"]


@dataclass(slots=True)
class Block:
    """Instructions that run one after another: `runs`, then `control`, which says where the threads go; None: on to
    `after`. warps and threads: how often warps and threads ran it."""

    start: int
    after: int
    runs: list[Run] = field(default_factory=list)
    control: Control | None = None
    length: int = 0
    warps: int = 0
    threads: int = 0


class Code:
    """A kernel and the functions that it calls, decoded.

    Args:
        module: the text. kernel: its entry. tables: name of an instruction -> its builder. specials: name of a special
            register -> builder of its reader.
    Raises:
        InvalidValueError: an instruction that is not emulated; all of them are listed with their lines.
    """

    def __init__(
        self,
        module: Module,
        kernel: SourceFunction,
        tables: Mapping[str, Builder],
        specials: Mapping[str, Callable[[Site, Kind], Reader]],
    ) -> None:
        self.module = module
        self.kernel = kernel
        self.files = module.files
        self.specials = specials
        self.functions = {one.name: one for one in self._called(kernel, ())}
        self.counts = [0, 0, 0, 0]
        """Rows of each bank of registers."""
        self._slots: dict[tuple[str, str], int] = {}
        self.shared_offsets: dict[str, int] = {}
        """Bytes from the start of a CTA's shared memory of each shared variable that is used."""
        self.shared_static = 0
        self.shared_align = 16
        self._dynamic: dict[str, int] = {}
        self.local_bytes = 0
        """Of one thread: its local variables, and the parameters of the functions that it calls."""
        self._local: dict[tuple[str, str], int] = {}
        self.parameter_offsets, self.parameter_bytes = _placed(kernel.parameters)
        self.globals: dict[str, Variable] = {}
        """Variables in global and constant memory that are used."""
        self.entry_of: dict[str, int] = {}
        self.instructions: list[SourceInstruction] = []
        self.function_of: list[str] = []
        self.approximate: set[str] = set()
        self._lay_out()
        self.blocks: list[Block | None] = [None] * (len(self.instructions) + 1)
        self._decode(tables)
        self.start = self.entry_of[kernel.name]

    # ---- functions ---------------------------------------------------------------------------------------------------

    def _called(self, one: SourceFunction, above: tuple[str, ...]) -> Iterator[SourceFunction]:
        """The functions that one calls, then itself."""
        if one.name in above:
            raise InvalidValueError(f"line {one.line}: {one.name} calls itself, which is not emulated")
        done: set[str] = set()
        for step in one.instructions:
            if step.opcode.split(".")[0] == "call":
                name = called_name(step)
                found = self.module.functions.get(name)
                if found is None or (not found.defined and name not in BUILT_IN):
                    raise InvalidValueError(f"line {step.line}: call of {given(name)}, which has no body in the module")
                if found.defined and name not in done:
                    done.add(name)
                    yield from self._called(found, (*above, one.name))
        yield one

    def _lay_out(self) -> None:
        used: dict[tuple[str, str], set[str]] = {}
        for name, one in self.functions.items():
            self.entry_of[name] = len(self.instructions)
            self.instructions += one.instructions
            self.function_of += [name] * len(one.instructions)
            names: set[str] = set()
            for step in one.instructions:
                if step.predicate is not None:
                    names.add(step.predicate[0])
                for operand in step.operands:
                    _registers(operand, names)
            used[name, ""] = names
        for (function, _), names in used.items():
            for name in sorted(names, key=_natural):
                self._place(function, name)

    def _place(self, function: str, name: str) -> None:
        kind = self.functions[function].register_type(name)
        if kind is None or (function, name) in self._slots:
            return
        bits = 1 if kind == "pred" else KINDS[kind].bits
        bank = {1: 0, 8: 1, 16: 1, 32: 2, 64: 3, 128: 3}[bits]
        self._slots[function, name] = self.counts[bank]
        self.counts[bank] += 2 if bits == 128 else 1

    def register(self, function: str, name: str) -> str | None:
        """The type of a register of a function; None: there is none of the name."""
        return self.functions[function].register_type(name)

    def slot(self, function: str, name: str) -> int:
        """The row of a register in its bank."""
        if (function, name) not in self._slots:
            self._place(function, name)
        return self._slots[function, name]

    # ---- symbols -----------------------------------------------------------------------------------------------------

    def symbol(self, function: str, name: str) -> tuple[str, str]:
        """(key, space) of a variable or parameter; space 'entry' is a parameter of the kernel.

        Raises:
            Refused: no declaration has the name.
        """
        one = self.functions[function]
        for variable in one.variables:
            if variable.name == name:
                return self._variable(function, variable)
        if one.entry and name in self.parameter_offsets:
            return name, "entry"
        for variable in (*one.parameters, *one.results):
            if variable.name == name:
                return self._local_variable(function, variable), "local"
        found = self.module.variables.get(name)
        if found is None:
            raise Refused(f"{name} is not declared")
        return self._variable("", found)

    def _variable(self, function: str, one: Variable) -> tuple[str, str]:
        if one.space == "shared":
            key = f"{function}:{one.name}" if function else one.name
            if key not in self.shared_offsets:
                self.shared_align = max(self.shared_align, one.align)
                if one.count == 0 or one.linkage == "extern":
                    self._dynamic[key] = one.align
                    self.shared_offsets[key] = 0
                else:
                    self.shared_offsets[key] = start = -(-self.shared_static // one.align) * one.align
                    self.shared_static = start + one.nbytes
            return key, "shared"
        if one.space in ("local", "param"):
            return self._local_variable(function, one), "local"
        self.globals[one.name] = one
        for value in one.initial:
            if isinstance(value, tuple) and value[0] in self.module.variables and value[0] not in self.globals:
                self._variable("", self.module.variables[value[0]])
        return one.name, one.space

    def _local_variable(self, function: str, one: Variable) -> str:
        key = f"{function}:{one.name}"
        if (function, one.name) not in self._local:
            align = max(one.align, 8)
            start = -(-self.local_bytes // align) * align
            self._local[function, one.name] = start
            self.local_bytes = start + max(one.nbytes, 1)
        return key

    def local_offset(self, key: str) -> int:
        """Bytes from the start of a thread's local memory of a local variable or a parameter of a call."""
        function, _, name = key.partition(":")
        return self._local[function, name]

    def parameter_of(self, function: str, place: int, result: bool = False) -> tuple[str, Variable]:
        """(key, declaration) of a parameter or a result of a function that is called."""
        one = self.functions[function]
        variable = (one.results if result else one.parameters)[place]
        return self._local_variable(function, variable), variable

    def symbol_address(self, site: Site, one: WrittenOperand, kind: Kind) -> Reader:
        """The address of a symbol, as `mov` gives it: in the symbol's own space."""
        base, _, rest = one.text.partition("+")
        key, space = self.symbol(site.function, base.strip())
        added = operand_of(rest.strip()).value or 0 if rest.strip() else 0
        dtype = kind.dtype
        if space == "shared":
            offsets = self.shared_offsets
            return lambda f: (f.m.shared_start(f) + (offsets[key] + added)).astype(dtype)
        if space == "local":
            start = self.local_offset(key) + added
            return lambda f: dtype.type(start)
        if space == "entry":
            start = self.parameter_offsets[key] + added
            return lambda f: dtype.type(f.m.memory.parameters.address + start)
        return lambda f: dtype.type(f.m.memory.symbols[key] + added)

    def special(self, site: Site, name: str, kind: Kind) -> Reader:
        """The reader of a special register."""
        build = self.specials.get(name)
        if build is None and name.startswith("%envreg"):
            build = self.specials["%envreg0"]
        if build is None:
            raise Refused(f"{name} is not declared, and no special register that is emulated")
        return build(site, kind)

    def shared_bytes(self, dynamic: int) -> int:
        """Bytes of a CTA's shared memory with so many dynamic ones; places the dynamic arrays behind the static."""
        start = self.shared_static
        for key, align in self._dynamic.items():
            self.shared_offsets[key] = -(-self.shared_static // align) * align
            start = max(start, self.shared_offsets[key])
        return start + dynamic

    # ---- decoding ----------------------------------------------------------------------------------------------------

    def _decode(self, tables: Mapping[str, Builder]) -> None:
        starts = set(self.entry_of.values())
        for name, one in self.functions.items():
            base = self.entry_of[name]
            for step in one.instructions:
                starts.update(base + target for target in step.targets)
        found: list[Diagnostic] = []
        block = Block(0, 0)
        for number, step in enumerate(self.instructions):
            if number in starts and number != block.start:
                block = self._closed(block, number)
            self.blocks[block.start] = block
            made = self._built(number, step, tables, found)
            block.length += 1
            if isinstance(made, Flow):
                block.control = made.run
                block = self._closed(block, number + 1)
            elif made is not None:
                block.runs.append(made)
        self._closed(block, len(self.instructions))
        listed = found[:MAX_REFUSALS]
        more = f", {len(found)} in all" if len(found) > len(listed) else ""
        refuse(InvalidValueError, listed, f"{counted(len(found), 'instruction')} can't be run{more}")

    def _closed(self, block: Block, number: int) -> Block:
        block.after = number
        return Block(number, number)

    def _built(
        self, number: int, step: SourceInstruction, tables: Mapping[str, Builder], found: list[Diagnostic]
    ) -> Run | Flow | None:
        build = tables.get(step.opcode.split(".")[0])
        try:
            if build is None:
                raise Refused(f"{step.opcode} is not emulated")
            site = Site(self, number, step, self.function_of[number])
            made = build(site)
            return made if made is None or step.predicate is None else self._predicated(site, made)
        except Refused as error:
            found.append(finding("not emulated", str(error), step, files=self.files))
        except (ParseError, InvalidValueError) as error:
            found.append(finding("not emulated", error.headline, step, files=self.files))
        return None

    def _predicated(self, site: Site, made: Run | Flow) -> Run | Flow:
        name, negated = site.one.predicate or ("", False)
        if self.register(site.function, name) != "pred":
            raise Refused(f"{name} is no predicate that is declared")
        key = 16 * self.slot(site.function, name)
        count = np.count_nonzero
        if isinstance(made, Flow):
            control, after = made.run, site.number + 1

            def go(f: Any) -> list[tuple[int, Any]] | None:
                flags = ~f.get(key) if negated else f.get(key)
                some = int(count(flags))
                if some == f.n:
                    return control(f)
                if not some:
                    return None
                rest = f.subset(~flags)
                chosen = f.subset(flags)
                gone = control(chosen)
                return [*([(after, chosen)] if gone is None else gone), (after, rest)]

            return Flow(go)
        run = made

        def step(f: Any) -> None:
            flags = ~f.get(key) if negated else f.get(key)
            some = int(count(flags))
            if some == f.n:
                run(f)
            elif some:
                run(f.subset(flags))

        return step


def called_name(step: SourceInstruction) -> str:
    """The function that a call names."""
    names = [one for one in step.operands if one.kind is OperandKind.REGISTER]
    return names[0].base if names else ""


def _registers(operand: WrittenOperand, names: set[str]) -> None:
    """The names in an operand."""
    if operand.base:
        names.add(operand.base)
    for text in operand.elements:
        names.add(text.lstrip("!").strip())
        if "[" in text or "{" in text:
            _registers(operand_of(text), names)


def _natural(name: str) -> tuple[str, int]:
    """Sorts `%r9` before `%r10`."""
    head = name.rstrip("0123456789")
    tail = name[len(head) :]
    return head, int(tail) if tail and len(tail) < 12 else -1


def _placed(variables: tuple[Variable, ...]) -> tuple[dict[str, int], int]:
    """Offset of each parameter of a kernel, and their bytes."""
    found: dict[str, int] = {}
    end = 0
    for one in variables:
        found[one.name] = start = -(-end // one.align) * one.align
        end = start + one.nbytes
    return found, end


def find_kernel(module: Module, name: str | None) -> SourceFunction:
    """The kernel of a module by its name, or the only one.

    Raises:
        InvalidValueError: there is none, or several and no name.
    """
    names = module.entries
    if name is None:
        if len(names) != 1:
            facts = {"kernels": ", ".join(names)} if names else {}
            text = "the module has no kernel" if not names else f"the module has {len(names)} kernels; name one"
            raise InvalidValueError(text, facts)
        return module.functions[names[0]]
    if name not in names:
        near = [one for one in names if name in one]
        if len(near) == 1:
            return module.functions[near[0]]
        raise InvalidValueError(f"no kernel {given(name)} in the module", known_names(name, list(names)))
    return module.functions[name]
