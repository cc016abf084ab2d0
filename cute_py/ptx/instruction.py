"""The structure of a row of the instruction table: slots for modifiers, operands with classes, and rules about both.

A form is one instruction with all its optional modifiers. Its slots are in the order of the PTX ISA; a slot holds at
most one modifier. Rules list the choices that exclude each other, and the targets and the PTX version that a
combination needs. `check` computes verdicts from these rows.

The slots of a row are written as one line of text, similar to the syntax line in the ISA:

    dim=1d|2d spaces=global.shared::cta mode?=(tile)|tile::scatter4 completion=bulk_group restrict~=weak

`name=` takes exactly one of its choices, and `name?=` at most one. By default, `ptx()` writes the choice in
parentheses. `name~=` is an optional slot that ptxas accepts although the ISA does not list it. `name>other?=` is an
optional slot that ptxas requires to follow the slot `other`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cute_py.argument_checks import NamedEnum, expect, expect_name, record
from cute_py.targets import Targets, Version

Condition = tuple[tuple[str, frozenset[str]], ...]
"""Slot name -> choices; holds if every named slot has one of its choices ('' means that the slot is empty)."""


def when(**slots: str | tuple[str, ...]) -> Condition:
    """Make a condition from keywords: `when(mode=("im2col", "im2col::w"), dst="shared::cta")`."""
    return tuple((name, frozenset((value,) if isinstance(value, str) else value)) for name, value in slots.items())


def holds(condition: Condition, chosen: Mapping[str, str]) -> bool:
    """Whether the chosen modifiers satisfy the condition."""
    for name, allowed in condition:  # noqa: SIM110  half the time of a generator; a verdict asks this of each rule
        if chosen.get(name, "") not in allowed:
            return False
    return True


class OperandClass(NamedEnum):
    """The kind of an operand, and the text that `ptx()` writes for it by default ('': the text depends on the
    modifiers).

    `space` is the only state space of an address, and `bits` the width of a register (negative for floating point).
    """

    SHARED_ADDRESS = "shared-memory address", "[%r1]", "shared"
    GLOBAL_ADDRESS = "global address", "[%rd1]", "global"
    GENERIC_ADDRESS = "generic address", "[%rd1]"
    TENSOR = "tensor map address and coordinates", ""
    OFFSETS = "im2col offsets", ""
    B16 = "16-bit value", "%h1", "", 16
    B32 = "32-bit value", "%r4", "", 32
    B64 = "64-bit value", "%rd2", "", 64
    B128 = "128-bit value", "%rq1", "", 128
    F32 = "32-bit float", "%f1", "", -32
    IMMEDIATE = "immediate", "0"
    PREDICATE = "predicate", "%p1"
    SINK = "sink _", "_"
    REGISTER_AND_PREDICATE = "register|predicate", "%r2|%p1"
    VECTOR = "vector of 32-bit registers", ""
    ANY_ADDRESS = "address of any kind", "[%rd1]"
    PARAM_ADDRESS = "address in .param", "[%rd1]", "param"
    CONST_ADDRESS = "address in .const", "[%rd1]", "const"
    TMEM_ADDRESS = "tensor-memory address in a 32-bit register", "[%r1]"
    REGISTERS = "vector of 32-bit registers, without numbers", ""
    NEGATED = "negated predicate", "!%p1"

    description: str
    default: str
    space: str
    bits: int

    def __new__(cls, description: str, default: str, space: str = "", bits: int = 0) -> OperandClass:
        made = object.__new__(cls)
        made._value_ = made.description, made.default = description, default
        made.space, made.bits = space, bits
        return made


class Narrow(NamedEnum):
    """How ptxas treats a 32-bit register where a 64-bit address is expected. Source: ptxas 13.0.88."""

    TAKEN = "taken"
    NOT_CONSUMER = "refused on sm_120 and sm_121"
    REFUSED = "refused: 32-bit addressing is no longer supported"


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand. It is present if `condition` holds, and may be omitted if it is `optional`.

    kinds: its possible kinds; `ptx()` emits the first. values: the allowed values of an immediate. step: an immediate
    must be a multiple of it. lowest, highest: bounds of an immediate; `at_most` names the operand whose value is the
    upper bound. written: whether the operand is a result. symbol: whether a variable may be named here; the slot
    `spaces` determines its state space; without that slot, it is in shared memory. narrow: how ptxas treats a 32-bit
    register as a 64-bit address. bare: whether ptxas also accepts the operand without brackets. register: whether the
    operand must be a register, not a number.
    """

    name: str
    kinds: tuple[OperandClass, ...]
    condition: Condition = ()
    optional: bool = False
    values: tuple[int, ...] = ()
    step: int = 1
    lowest: int | None = None
    written: bool = False
    narrow: Narrow = Narrow.TAKEN
    bare: bool = False
    register: bool = False
    highest: int | None = None
    at_most: str = ""
    symbol: bool = False


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot for one modifier; `choices` have no leading dot. An optional slot may stay empty.

    `default` is the choice that `ptx()` makes by default (an optional slot without a default stays empty). `tolerated`
    is whether ptxas accepts the modifier here although the ISA does not list it; the canonical text omits such
    modifiers. `after` is the slot that ptxas requires before this slot (it accepts all other slots in any order).
    """

    name: str
    choices: tuple[str, ...]
    optional: bool = False
    default: str = ""
    tolerated: bool = False
    after: str = ""


_SLOT = re.compile(r"(?<!\w)(\w++)(?:>(\w++))?([?~]?)=(\S++)")


def slots_of(text: str) -> tuple[Slot, ...]:
    """Parse the slots that one line of text describes, in the notation of the module's docstring.

    >>> [(slot.name, slot.optional, slot.default) for slot in slots_of("dim=1d|2d mode?=(tile)|im2col")]
    [('dim', False, ''), ('mode', True, 'tile')]
    """
    found = []
    for name, after, kind, written in _SLOT.findall(text):
        choices = [choice.strip("()") for choice in written.split("|")]
        default = next((choice[1:-1] for choice in written.split("|") if choice.startswith("(")), "")
        found.append(Slot(name, tuple(choices), kind != "", default, kind == "~", after))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class FormRule:
    """A rule: if `condition` holds, the form needs `targets` and PTX `since`. With `forbid`, the reason, it does not
    exist.

    With `given`, the rule applies only if all operands with these names are written. With `values`, the first of them
    must also be one of these immediates, and with `predicate`, it must be a predicate.
    """

    condition: Condition
    targets: Targets = Targets.ANY
    since: Version = (1, 0)
    forbid: str = ""
    given: tuple[str, ...] = ()
    values: tuple[int, ...] = ()
    predicate: bool = False


def needs(
    targets: Targets = Targets.ANY,
    since: Version = (1, 0),
    *,
    given: tuple[str, ...] = (),
    values: tuple[int, ...] = (),
    predicate: bool = False,
    **slots: str | tuple[str, ...],
) -> FormRule:
    """Make a rule: with these choices in these slots, the form needs `targets` and PTX `since`."""
    return FormRule(when(**slots), targets, since, "", given, values, predicate)


def forbid(why: str, *, given: tuple[str, ...] = (), **slots: str | tuple[str, ...]) -> FormRule:
    """Make a rule: with these choices in these slots, the form does not exist; `why` is the reason."""
    return FormRule(when(**slots), forbid=why, given=given)


@record
class InstructionForm:
    """One row of the instruction table.

    name: the name that `ptx()` uses to find the row. family: the group of the form. opcode: the text before the
    modifiers. slots, operands: the slots and operands in the ISA's order. targets, since: the targets, and the first
    PTX version, that support the plain form. section: the heading in the PTX ISA 9.0. assembled, executed: how the row
    was verified. partial: whether the opcode has modifiers that the row omits.

    >>> from cute_py.ptx.catalog import FORMS
    >>> [form.name for form in FORMS][:2]
    ['load', 'store']
    """

    name: str
    family: str
    opcode: str
    slots: tuple[Slot, ...]
    operands: tuple[Operand, ...]
    section: str
    targets: Targets = Targets.FROM_90
    since: Version = (8, 0)
    rules: tuple[FormRule, ...] = ()
    assembled: str = "ptxas 13.0.88"
    executed: str = "not executed"
    partial: bool = False

    def __repr__(self) -> str:
        return f"form({self.name!r})"

    def slot(self, name: str) -> Slot | None:
        """Return the slot of that name, or None."""
        expect_name(name, "the name of a slot")
        return next((slot for slot in self.slots if slot.name == name), None)

    def expected(self, chosen: Mapping[str, str]) -> tuple[Operand, ...]:
        """Return the operands for these modifiers, including optional operands."""
        for modifier in expect(chosen, dict, "the modifiers").values():
            expect(modifier, str, "a modifier")
        return tuple(operand for operand in self.operands if holds(operand.condition, chosen))


MOVE = "Data Movement and Conversion Instructions: "
SYNC = "Parallel Synchronization and Communication Instructions: "
_MOVING = re.compile(r"cp\.(?!async\.mbarrier)|st\b|prefetch|applypriority|discard|cvta|isspacep|mapa|getctarank")
"""Opcodes whose section is in the chapter on data movement, under their own names."""


def row(
    opcode: str,
    slots: str = "",
    operands: tuple[Operand, ...] = (),
    *,
    name: str = "",
    family: str = "helpers",
    section: str = "",
    targets: Targets = Targets.FROM_90,
    since: Version = (8, 0),
    rules: tuple[FormRule, ...] = (),
    executed: str = "not executed",
    partial: bool = False,
) -> InstructionForm:
    """Make a row with its slots in the notation of this module. By default, the opcode determines its name and its
    section."""
    slots_, heading = slots_of(slots), section or (MOVE if _MOVING.match(opcode) else SYNC) + opcode
    measured = "ptxas 13.0.88", executed, partial
    return InstructionForm(name or opcode, family, opcode, slots_, operands, heading, targets, since, rules, *measured)


_KINDS = {kind.name.lower().removesuffix("_address"): kind for kind in OperandClass}


def operand(
    name: str,
    kinds: str,
    *,
    optional: bool = False,
    values: tuple[int, ...] = (),
    step: int = 1,
    lowest: int | None = None,
    written: bool = False,
    narrow: Narrow = Narrow.TAKEN,
    bare: bool = False,
    register: bool = False,
    highest: int | None = None,
    at_most: str = "",
    symbol: bool = False,
    **slots: str | tuple[str, ...],
) -> Operand:
    """Make an operand that is present if each of `slots` has one of the given choices ('': the slot is empty).

    kinds: names of operand classes, without `_address`: "b64 tmem" is a 64-bit value or a tensor-memory address.
    """
    classes = tuple(_KINDS[kind] for kind in kinds.split())
    spelling = (written, narrow, bare, register, highest, at_most, symbol)
    return Operand(name, classes, when(**slots), optional, values, step, lowest, *spelling)


def by_space(name: str, *spaces: str | tuple[str, ...], narrow: Narrow = Narrow.TAKEN) -> tuple[Operand, ...]:
    """Make an address operand whose kind depends on the state space. Without a state space (''), it is a generic
    address; `narrow` applies to it."""
    found = []
    for space in spaces:
        kind = "generic" if space == "" else space if space in ("global", "param", "const") else "shared"
        found.append(operand(name, str(kind), narrow=narrow, spaces=space))
    return tuple(found)


def coordinate_count(chosen: Mapping[str, str]) -> int:
    """Return the number of coordinates of a tensor operand: the dimension, or five for gather4 and scatter4.

    Source: PTX ISA, Tensors: tile::gather4 takes one column and four rows.
    """
    if chosen.get("mode") in ("tile::gather4", "tile::scatter4"):
        return 5
    return int(chosen.get("dim", "0d").removesuffix("d"))


def offset_count(chosen: Mapping[str, str]) -> int:
    """Return the number of im2col offsets: dimension - 2 in im2col, two (wHalo, wOffset) in the im2col::w modes,
    otherwise 0."""
    mode = chosen.get("mode", "")
    if mode == "im2col":
        return max(0, coordinate_count(chosen) - 2)
    return 2 if mode in ("im2col::w", "im2col::w::128") else 0
