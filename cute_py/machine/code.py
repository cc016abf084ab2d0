"""A decoded kernel: where its registers and symbols are stored, and the blocks of instructions that run without
interruption.

Each function comes before the functions that call it, and the kernel comes last. A program counter is the index of an
instruction in this order, so threads inside a function have lower program counters than threads that wait for them
outside. Registers and memory of a function are allocated statically. The variables of a recursive function are in a
frame, one for each call (`instructions/calls.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from cute_py.errors import InvalidValueError, given, known_names
from cute_py.machine.call_graph import called_functions
from cute_py.machine.faults import Refused
from cute_py.machine.kinds import KINDS
from cute_py.machine.threads import Control, Run
from cute_py.notation.source_lines import location_text
from cute_py.ptx.parse import Variable, WrittenOperand
from cute_py.ptx.source import Module, SourceFunction, SourceInstruction, operand_of

BANK_OF_BITS: Final = {1: 0, 8: 1, 16: 1, 32: 2, 64: 3, 128: 3}
FUNCTION_WINDOW: Final = 0x7D00_0000_0000
FUNCTION_BYTES: Final = 16
FRAME_ALIGN: Final = 16
RESERVED: Final = "%reserved_smem"
"""Key of the reserved shared memory among the offsets of variables."""
RESERVED_BYTES: Final = 1024
"""Bytes that CUDA reserves in each CTA on sm_80 and newer. Source: CUDA C++ programming guide, shared memory of 8.x,
9.0."""


@dataclass(slots=True)
class Stretch:
    """A block of instructions that run one after another without interruption.

    runs: functions that run the instructions. control: runs the last instruction and moves the threads; if it is None,
    they continue at `after`. warps, threads: number of executions by warps and by threads.
    """

    start: int
    after: int
    runs: list[Run] = field(default_factory=list)
    control: Control | None = None
    length: int = 0
    warps: int = 0
    threads: int = 0
    observed: Run | None = None
    """Function that observes the threads that begin the stretch."""


class Code:
    """A decoded kernel with the functions that it calls.

    Args:
        module: the parsed PTX. kernel: the entry function. specials: name of a special register -> builder of its
            reader.
    Raises:
        InvalidValueError: the kernel calls a function without a body.
    """

    def __init__(
        self,
        module: Module,
        kernel: SourceFunction,
        specials: Mapping[str, Any],
    ) -> None:
        self.module = module
        self.kernel = kernel
        self.files = module.files
        self.specials = specials
        found = called_functions(module, kernel)
        self.functions, self.recursive, self.addressed = found.functions, found.recursive, found.addressed
        self.addresses = {name: FUNCTION_WINDOW + FUNCTION_BYTES * i for i, name in enumerate(module.functions)}
        """Function -> its address."""
        self.counts = [0, 0, 0, 0]
        """Rows of each bank of registers."""
        self._slots: dict[tuple[str, str], int] = {}
        self._types: dict[tuple[str, str], str | None] = {}
        self._declared = {
            name: {variable.name: variable for variable in reversed(one.variables)}
            for name, one in self.functions.items()
        }
        """Function -> its variables by name."""
        self.shared_offsets: dict[str, int] = {}
        """Used shared variable -> its offset in bytes in the CTA's shared memory."""
        self.shared_static = 0
        self.shared_align = 16
        self._dynamic: dict[str, int] = {}
        self.local_bytes = 0
        """Local bytes of one thread: its variables, and the parameters of the functions that it calls."""
        self._local: dict[tuple[str, str], int] = {}
        self._frames: dict[str, int] = {}
        self.parameter_offsets, self.parameter_bytes = _placed(kernel.parameters)
        self.globals: dict[str, Variable] = {}
        """Used variables in global and constant memory."""
        self.entry_of: dict[str, int] = {}
        self.instructions: list[SourceInstruction] = []
        self.function_of: list[str] = []
        self.approximate: set[str] = set()
        self._lay_out()
        self.blocks: list[Stretch | None] = [None] * (len(self.instructions) + 1)
        self.start = self.entry_of[kernel.name]

    def __getstate__(self) -> dict[str, Any]:
        """The state without the functions that run instructions: a copy describes a run, and does not run again."""
        blocks = [one and replace(one, runs=[], control=None, observed=None) for one in self.blocks]
        return {**self.__dict__, "specials": {}, "blocks": blocks}

    @functools.cached_property
    def sources(self) -> dict[int, str]:
        """The source line of each line of PTX, from the `.loc` directives."""
        said = {one.line: location_text(one.loc, self.files) for one in self.instructions}
        return {line: source for line, source in said.items() if source}

    # ---- functions and registers -------------------------------------------------------------------------------------

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
        for name in self.recursive:
            one = self.functions[name]
            for variable in (*one.parameters, *one.results, *one.variables):
                if variable.space in ("local", "param"):
                    self._local_variable(name, variable)

    def _place(self, function: str, name: str) -> None:
        kind = self.register(function, name)
        if kind is None or (function, name) in self._slots:
            return
        bits = 1 if kind == "pred" else KINDS[kind].bits
        bank = BANK_OF_BITS[bits]
        self._slots[function, name] = self.counts[bank]
        self.counts[bank] += 2 if bits == 128 else 1

    def register(self, function: str, name: str) -> str | None:
        """The type of a register of a function; None if the function has no such register."""
        key = (function, name)
        if key not in self._types:
            self._types[key] = self.functions[function].register_type(name)
        return self._types[key]

    def slot(self, function: str, name: str) -> int:
        """The row index of a register in its bank."""
        if (function, name) not in self._slots:
            self._place(function, name)
        return self._slots[function, name]

    # ---- symbols -----------------------------------------------------------------------------------------------------

    def symbol(self, function: str, name: str) -> tuple[str, str]:
        """Return (key, space) of a variable or parameter; a parameter of the kernel has the space 'entry'.

        Raises:
            Refused: the name is not declared.
        """
        one = self.functions[function]
        declared = self._declared[function].get(name)
        if declared is not None:
            return self._variable(function, declared)
        if one.entry and name in self.parameter_offsets:
            return name, "entry"
        for variable in (*one.parameters, *one.results):
            if variable.name == name:
                return self._local_variable(function, variable), "local"
        found = self.module.variables.get(name)
        if found is None and name in self.addresses:
            return name, "function"
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
            framed = function in self.recursive
            start = -(-(self._frames.get(function, 0) if framed else self.local_bytes) // align) * align
            self._local[function, one.name] = start
            if framed:
                self._frames[function] = start + max(one.nbytes, 1)
            else:
                self.local_bytes = start + max(one.nbytes, 1)
        return key

    def local_place(self, key: str) -> tuple[int, bool]:
        """The offset of a local variable or a call parameter, and whether the offset is relative to the function's
        frame.

        Other offsets are relative to the start of a thread's local memory.
        """
        function, _, name = key.partition(":")
        return self._local[function, name], function in self.recursive

    def frame_bytes(self, function: str) -> int:
        """Size in bytes of the frame of a recursive function; 0 for other functions."""
        return -(-self._frames.get(function, 0) // FRAME_ALIGN) * FRAME_ALIGN

    def rows_of(self, function: str) -> list[Any]:
        """The row indices of a function's registers in each bank."""
        found: list[list[int]] = [[] for _ in self.counts]
        for (owner, name), place in self._slots.items():
            if owner == function:
                bits = 1 if self._types[owner, name] == "pred" else KINDS[self._types[owner, name] or "b32"].bits
                found[BANK_OF_BITS[bits]] += [place, place + 1] if bits == 128 else [place]
        return [np.array(rows, np.int64) for rows in found]

    def parameter_of(self, function: str, place: int, result: bool = False) -> tuple[str, Variable]:
        """Return (key, declaration) of the parameter or the result at index `place` of a called function."""
        one = self.functions[function]
        variable = (one.results if result else one.parameters)[place]
        return self._local_variable(function, variable), variable

    def reserved_shared(self) -> int:
        """The offset of the shared memory that a system reserves. On a GPU it is below the variables; the machine adds
        it after the static variables of kernels that read its position."""
        if RESERVED not in self.shared_offsets:
            self.shared_offsets[RESERVED] = start = -(-self.shared_static // RESERVED_BYTES) * RESERVED_BYTES
            self.shared_static = start + RESERVED_BYTES
        return self.shared_offsets[RESERVED]

    def shared_bytes(self, dynamic: int) -> int:
        """Place the dynamic arrays after the static ones, and return the size of a CTA's shared memory in bytes."""
        start = self.shared_static
        for key, align in self._dynamic.items():
            self.shared_offsets[key] = -(-self.shared_static // align) * align
            start = max(start, self.shared_offsets[key])
        return start + dynamic


def _registers(operand: WrittenOperand, names: set[str]) -> None:
    """Add the names in an operand to `names`."""
    if operand.base:
        names.add(operand.base)
    for text in operand.elements:
        names.add(text.lstrip("!").strip())
        if "[" in text or "{" in text:
            _registers(operand_of(text), names)


def _natural(name: str) -> tuple[str, int]:
    """Sort key that puts `%r9` before `%r10`."""
    head = name.rstrip("0123456789")
    tail = name[len(head) :]
    return head, int(tail) if tail and len(tail) < 12 else -1


def _placed(variables: tuple[Variable, ...]) -> tuple[dict[str, int], int]:
    """Offset in bytes of each parameter of a kernel, and their total size."""
    found: dict[str, int] = {}
    end = 0
    for one in variables:
        found[one.name] = start = -(-end // one.align) * one.align
        end = start + one.nbytes
    return found, end


def find_kernel(module: Module, name: str | None) -> SourceFunction:
    """Find a kernel of a module by name; without a name, return the module's only kernel.

    Raises:
        InvalidValueError: the module has no such kernel, or it has several and `name` is None.
    """
    names = module.entries
    if name is None:
        if len(names) != 1:
            facts = {"kernels": ", ".join(names)} if names else {}
            text = (
                "the module has no kernel"
                if not names
                else (f"the module has {len(names)} kernels; pass the name of one")
            )
            raise InvalidValueError(text, facts)
        return module.functions[names[0]]
    if name not in names:
        near = [one for one in names if name in one]
        if len(near) == 1:
            return module.functions[near[0]]
        raise InvalidValueError(f"the module has no kernel {given(name)}", known_names(name, list(names)))
    return module.functions[name]
