"""The functions that a kernel may call, by name or through an address."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cute_py.errors import InvalidValueError, given
from cute_py.ptx.parse import OperandKind
from cute_py.ptx.source import Module, SourceFunction, SourceInstruction

BUILT_IN: Final = ("vprintf", "__assertfail", "malloc", "free")
"""Functions without a body that the machine implements."""


@dataclass(frozen=True, slots=True)
class CallGraph:
    """The functions with a body that a kernel may reach, ordered so that callees precede their callers and the kernel
    is last.

    recursive: functions that can call themselves. addressed: possible targets of a call through an address.
    """

    functions: dict[str, SourceFunction]
    recursive: frozenset[str]
    addressed: tuple[str, ...]


def called_name(step: SourceInstruction) -> str:
    """The name of the target of a call: a function, or a register that holds a function's address."""
    names = [one for one in step.operands if one.kind is OperandKind.REGISTER]
    return names[0].base if names else ""


def called_functions(module: Module, kernel: SourceFunction) -> CallGraph:
    """Return the functions that a kernel may call.

    Raises:
        InvalidValueError: the kernel calls a function without a body.
    """
    reached = {kernel.name: kernel}
    edges: dict[str, list[str]] = {}
    indirect: set[str] = set()
    addressed: list[str] = []
    left = [kernel]
    while left:
        one = left.pop()
        edges[one.name] = []
        for step in one.instructions:
            if step.opcode.split(".")[0] != "call":
                continue
            name = called_name(step)
            if one.register_type(name) is not None:
                indirect.add(one.name)
                continue
            found = module.functions.get(name)
            if found is None or (not found.defined and name not in BUILT_IN):
                raise InvalidValueError(f"line {step.line} calls {given(name)}, but the module does not define it")
            if found.defined:
                edges[one.name].append(name)
        if indirect and not addressed:
            addressed = list(dict.fromkeys(_addressed(module)))
        for name in (*edges[one.name], *(addressed if indirect else ())):
            if name not in reached:
                reached[name] = module.functions[name]
                left.append(reached[name])
    for name in indirect:
        edges[name] += addressed
    order: dict[str, SourceFunction] = {}
    _visit(kernel.name, edges, reached, order)
    recursive = frozenset(name for name in order if name in _reachable(name, edges))
    return CallGraph(order, recursive, tuple(addressed) if indirect else ())


def _addressed(module: Module) -> Iterator[str]:
    """The functions whose address an instruction or an initial value uses."""
    defined = {name for name, one in module.functions.items() if one.defined and not one.entry}
    for variable in module.variables.values():
        for value in variable.initial:
            if isinstance(value, tuple) and value[0] in defined:
                yield value[0]
    for one in module.functions.values():
        for step in one.instructions:
            if step.opcode.startswith("mov."):
                yield from (operand.base for operand in step.operands if operand.base in defined)


def _visit(
    start: str, edges: dict[str, list[str]], reached: dict[str, SourceFunction], order: dict[str, SourceFunction]
) -> None:
    """Add functions to `order`, each after the functions that it calls; calls that close a cycle are skipped."""
    stack = [(start, iter(edges[start]))]
    entered = {start}
    while stack:
        name, rest = stack[-1]
        other = next((one for one in rest if one not in entered), None)
        if other is None:
            order[name] = reached[name]
            stack.pop()
        else:
            entered.add(other)
            stack.append((other, iter(edges[other])))


def _reachable(name: str, edges: dict[str, list[str]]) -> set[str]:
    """The functions that a function may call, directly or indirectly."""
    found: set[str] = set()
    left = list(edges[name])
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += edges[one]
    return found
