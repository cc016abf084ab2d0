"""The structure of a row of the instruction table: modifiers in slots, operands with classes, and the rules between
them.

A form is one instruction with all its optional modifiers. Its slots follow the order of the PTX ISA; a slot
holds at most one choice. Rules list the choices that exclude each other, and the targets and PTX version that a
combination needs. `check` computes the verdicts from these rows.

The slots of a row are one line of text, similar to the ISA's syntax line:

    dim=1d|2d spaces=global.shared::cta mode?=(tile)|tile::scatter4 completion=bulk_group restrict~=weak

`name=` takes exactly one of its choices, and `name?=` at most one. `ptx()` writes the choice in parentheses by default.
`name~=` is an optional slot that ptxas accepts although the ISA does not list it. `name>other?=` is a slot that ptxas
requires after the slot `other`.
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
    """A condition from keywords: `when(mode=("im2col", "im2col::w"), dst="shared::cta")`."""
    return tuple((name, frozenset((value,) if isinstance(value, str) else value)) for name, value in slots.items())


def holds(condition: Condition, chosen: Mapping[str, str]) -> bool:
    """Whether the chosen modifiers fulfil the condition."""
    for name, allowed in condition:  # noqa: SIM110  half the time of a generator; a verdict asks this of each rule
        if chosen.get(name, "") not in allowed:
            return False
    return True


class OperandClass(NamedEnum):
    """The kind of an operand, and the text that `ptx()` writes by default ('': the modifiers decide).

    The third field is the only state space of an address, or the bits of a register (negative for floating point).
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
    """How ptxas treats a 32-bit register in place of a 64-bit address. Source: ptxas 13.0.88."""

    TAKEN = "taken"
    NOT_CONSUMER = "refused on sm_120 and sm_121"
    REFUSED = "refused: 32-bit addressing is no longer supported"


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand. It is present if `condition` holds, and may be omitted if it is `optional`.

    kinds: its possible kinds; `ptx()` emits the first. values: the allowed numbers of an immediate.
    step: an immediate must be a multiple of it. lowest, highest: bounds of an immediate; `at_most` names the operand
    that is its highest. written: whether it is a result. symbol: whether a variable may be named here; its space is
    that of the slot `spaces` (or shared memory without that slot).
    narrow: how ptxas treats a 32-bit register as a 64-bit address. bare: whether ptxas also accepts the operand without
        brackets. register: whether a number is refused.
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
    """A position for one modifier; `choices` have no leading dot. An optional slot may stay empty.

    `default` is the choice that `ptx()` makes by default (an optional slot without a default stays empty). `tolerated`:
    ptxas accepts the modifier here although the ISA does not list it; the canonical text omits it. `after`: the slot
    that ptxas requires before this one (it accepts all others in any order).
    """

    name: str
    choices: tuple[str, ...]
    optional: bool = False
    default: str = ""
    tolerated: bool = False
    after: str = ""


_SLOT = re.compile(r"(?<!\w)(\w++)(?:>(\w++))?([?~]?)=(\S++)")


def slots_of(text: str) -> tuple[Slot, ...]:
    """The slots that one line of text describes; the module's docstring has the notation.

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
    """If `condition` holds, the form needs `targets` and PTX `since`; with `forbid`, the form does not exist; `forbid`
    is the reason.

    `given` names operands: the rule then applies only if all of them are written (and, with `values`, if the first
    is one of these immediates; with `predicate`, if it is a predicate).
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
    """A rule: with these choices in these slots, the form needs `targets` and PTX `since`."""
    return FormRule(when(**slots), targets, since, "", given, values, predicate)


def forbid(why: str, *, given: tuple[str, ...] = (), **slots: str | tuple[str, ...]) -> FormRule:
    """A rule: with these choices in these slots the form does not exist; the text is the reason."""
    return FormRule(when(**slots), forbid=why, given=given)


@record
class InstructionForm:
    """One row of the instruction table.

    name: the key for `ptx()`. family: the group of the form. opcode: the text before the modifiers. slots, operands: in
    the ISA's order. targets, since: the targets and the PTX version that have the plain form. section: the heading in
    the PTX ISA 9.0. assembled, executed: the evidence. partial: whether the opcode has modifiers that the row omits.

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
        """The slot of that name, or None."""
        expect_name(name, "the name of a slot")
        return next((slot for slot in self.slots if slot.name == name), None)

    def expected(self, chosen: Mapping[str, str]) -> tuple[Operand, ...]:
        """The operands for these modifiers, including the optional ones."""
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
    """A row with its slots in the notation of this module; named by its opcode, in the section of that name."""
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
    """An operand, present if each of `slots` has one of these choices ('': the slot is empty).

    kinds: names of operand classes, without `_address`: "b64 tmem" is a 64-bit value or a tensor-memory address.
    """
    classes = tuple(_KINDS[kind] for kind in kinds.split())
    spelling = (written, narrow, bare, register, highest, at_most, symbol)
    return Operand(name, classes, when(**slots), optional, values, step, lowest, *spelling)


def by_space(name: str, *spaces: str | tuple[str, ...], narrow: Narrow = Narrow.TAKEN) -> tuple[Operand, ...]:
    """An address operand whose kind depends on the state space. Without a state space ('') it is generic, with
    `narrow`."""
    found = []
    for space in spaces:
        kind = "generic" if space == "" else space if space in ("global", "param", "const") else "shared"
        found.append(operand(name, str(kind), narrow=narrow, spaces=space))
    return tuple(found)


def coordinate_count(chosen: Mapping[str, str]) -> int:
    """Number of coordinates of a tensor operand: the dimension, or five for gather4 and scatter4.

    Source: PTX ISA, Tensors: tile::gather4 takes one column and four rows.
    """
    if chosen.get("mode") in ("tile::gather4", "tile::scatter4"):
        return 5
    return int(chosen.get("dim", "0d").removesuffix("d"))


def offset_count(chosen: Mapping[str, str]) -> int:
    """Number of im2col offsets that follow: dimension - 2 in im2col, two (wHalo, wOffset) in the im2col::w modes,
    otherwise 0."""
    mode = chosen.get("mode", "")
    if mode == "im2col":
        return max(0, coordinate_count(chosen) - 2)
    return 2 if mode in ("im2col::w", "im2col::w::128") else 0
