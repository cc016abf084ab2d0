"""Judge the text of an instruction: whether it assembles, for which targets and versions, and whether its modifiers are
in the ISA's order.

A verdict has two parts. `assembles` states whether ptxas accepts the instruction. ptxas accepts modifiers in any order,
but checks the order of the state spaces, the operands, and the target. `canonical` states whether the modifiers are in
the order of the PTX ISA, the only order that this library emits. Neither part implies that the instruction is legal at
run time.

This module rejects spellings that the grammar of the ISA does not allow, although ptxas accepts some of them: a
floating-point or 16-bit register as an address, a number without brackets as a barrier, a one-element vector as a mask,
a sum outside brackets, a repeated modifier, or a modifier of another instruction. Operands are compared with the row by
kind, width, number of elements and value.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from cute_py.argument_checks import expect, record
from cute_py.diagnostics import Diagnostic
from cute_py.errors import UnknownFactError
from cute_py.ptx.catalog import ABSENT, COMPLETE, forms_of_opcode
from cute_py.ptx.forms_tcgen05 import register_count
from cute_py.ptx.instruction import (
    FormRule,
    InstructionForm,
    Narrow,
    Operand,
    OperandClass,
    coordinate_count,
    holds,
    offset_count,
)
from cute_py.ptx.parse import (
    STATE_SPACES,
    Instruction,
    OperandKind,
    WrittenOperand,
    float_immediate,
    immediate,
    parse_instruction,
    register_bits,
)
from cute_py.targets import ARCHITECTURES, NEWEST_VERSION, Targets, Version, architecture, expect_version, version_text

__all__ = ["ParsedInstruction", "Verdict", "examine", "verdict"]

VECTORS = {"v2": 2, "v4": 4}

Fit = tuple[str, Targets]
"""The fit of an operand: ('' or the reason why it does not fit, requirements that the row does not have)."""


def _address(operand: Operand, kind: OperandClass, got: WrittenOperand, symbols: Mapping[str, str]) -> Fit:
    bits = register_bits(got.base)
    if bits is None:
        if immediate(got.base) is not None:
            allowed = kind is OperandClass.ANY_ADDRESS
            return ("" if allowed else f"{operand.name} {got.text}: expected an address, got a number", Targets.ANY)
        space = _space(got.base, symbols)
        if kind.space:
            wrong = space is not None and space != kind.space
        else:
            wrong = kind is OperandClass.GENERIC_ADDRESS and space == "param"
        return (f"{operand.name} {got.text}: this symbol is in the state space .{space}" if wrong else "", Targets.ANY)
    if bits not in (32, 64):
        return (f"{operand.name} {got.text}: an address must be in an integer register of 32 or 64 bits", Targets.ANY)
    if bits == 64 or (bits == 32 and kind is OperandClass.SHARED_ADDRESS):
        return ("", Targets.ANY)
    if operand.narrow is Narrow.REFUSED:
        return (f"{operand.name} {got.text}: a generic address must have 64 bits", Targets.ANY)
    # A narrow register is widened by a move that the consumer Blackwell targets refuse.
    return ("", Targets.NOT_CONSUMER if operand.narrow is Narrow.NOT_CONSUMER else Targets.ANY)


def _space(name: str, symbols: Mapping[str, str]) -> str | None:
    """Return the state space of a symbol; None if it is unknown."""
    # nvcc names kernel parameters kernel_param_0. Any other unknown symbol is accepted.
    return symbols.get(name, "param" if "param" in name else None)


def _elements(operand: Operand, got: WrittenOperand, count: int, *widths: int | None) -> str:
    """Return the reason why a vector does not consist of `count` registers of these widths; the width None allows a
    number."""
    tensor = operand.kinds[0] is OperandClass.TENSOR
    if got.kind is not (OperandKind.TENSOR if tensor else OperandKind.VECTOR):
        return f"{operand.name} {got.text}: expected a {operand.kinds[0].description}"
    if len(got.elements) != count:
        return f"{operand.name} {got.text}: the vector has {len(got.elements)} elements; expected {count}"
    sinks = operand.written and operand.kinds[0] is OperandClass.VECTOR  # `_` may replace all but one of them
    for element in got.elements:
        if element == "_" and sinks and set(got.elements) != {"_"}:
            continue
        width = register_bits(element)
        if width is None and immediate(element) is None:
            return f"{operand.name}: {element!r} must be a register or a number"
        if width not in widths:
            return f"{operand.name}: {element} must be a {widths[0]}-bit register"
    return ""


def _value(operand: Operand, got: WrittenOperand) -> str:
    if got.value is None:
        number = float_immediate(got.text)
        if operand.kinds[0] is not OperandClass.F32 or number is None:
            return f"{operand.name} {got.text}: expected an integer"
        # The only floating-point operand in the table is a fraction of the accesses.
        return "" if 0 < number <= 1 else f"{operand.name} = {number}; expected a value above 0 and at most 1"
    if operand.kinds[0] is OperandClass.F32:
        return f"{operand.name} {got.text}: expected a floating-point constant"
    if operand.written:
        return f"{operand.name} receives a result, so it must be a register, got the number {got.text}"
    if operand.values and got.value not in operand.values:
        low, high = operand.values[0], operand.values[-1]
        steps = {b - a for a, b in itertools.pairwise(operand.values)}
        allowed = ", ".join(map(str, operand.values))
        if len(steps) == 1 and len(operand.values) > 2:
            step = min(steps)
            allowed = f"{low}..{high}" + (f" in steps of {step}" if step > 1 else "")
        return f"{operand.name} = {got.value}; expected {allowed}"
    value = got.value - (1 << 64) * (got.value >> 63 == 1)  # a 64-bit number with its sign, as ptxas compares it
    if operand.highest is not None and not (operand.lowest or 0) <= value <= operand.highest:
        return f"{operand.name} = {got.value}; expected {operand.lowest or 0}..{operand.highest}"
    if operand.lowest is not None and value < operand.lowest:
        return f"{operand.name} = {got.value}; expected {operand.lowest} or more"
    if got.value % operand.step:
        return f"{operand.name} = {got.value}; must be a multiple of {operand.step}"
    return ""


def nearest_numbers(operand: Operand, value: int) -> tuple[int, ...]:
    """Return the valid numbers of an operand next to an invalid one: the next lower and the next higher one. A multiple
    of 0 is not offered for another number.

    >>> size = Operand("size", (OperandClass.B32,), step=16, highest=1 << 20)
    >>> nearest_numbers(size, 100), nearest_numbers(size, 8), nearest_numbers(size, 1 << 21)
    ((96, 112), (16,), (1048576,))
    """
    if operand.values:
        lower = [one for one in operand.values if one < value]
        higher = [one for one in operand.values if one > value]
        return (*lower[-1:], *higher[:1])
    step, highest = operand.step, operand.highest
    least = max(operand.lowest or 0, step) if step > 1 else operand.lowest or 0
    found = {max(value // step * step, least), max(-(-value // step) * step, least)}
    return tuple(sorted({one if highest is None else min(one, highest // step * step) for one in found}))


def _one(  # noqa: C901 - each rule of a form is a case
    operand: Operand, kind: OperandClass, got: WrittenOperand, chosen: Mapping[str, str], symbols: Mapping[str, str]
) -> Fit:
    mismatch = f"{operand.name} {got.text}: expected a {kind.description}"
    bits = register_bits(got.base) if got.kind is OperandKind.REGISTER else None
    fits = False
    match kind:
        case OperandClass.TENSOR:
            if got.kind is not OperandKind.TENSOR:
                return mismatch, Targets.ANY
            if got.offset:
                return f"{got.text}: an address with coordinates can't have an offset", Targets.ANY
            error = _elements(operand, got, coordinate_count(chosen), 32, None)
            return (error, Targets.ANY) if error else _address(operand, OperandClass.GLOBAL_ADDRESS, got, symbols)
        case OperandClass.OFFSETS:
            return _elements(operand, got, offset_count(chosen), 16, None), Targets.ANY
        case OperandClass.VECTOR:
            return _elements(operand, got, VECTORS.get(chosen.get("vector", ""), 1), 32, None), Targets.ANY
        case OperandClass.REGISTERS:
            return _elements(operand, got, register_count(chosen), 32, -32), Targets.ANY
        case OperandClass.IMMEDIATE:
            return (_value(operand, got) if got.kind is OperandKind.IMMEDIATE else mismatch), Targets.ANY
        case OperandClass.PREDICATE:
            fits = bits == 1 and not got.offset
        case OperandClass.NEGATED:
            fits = got.kind is OperandKind.NEGATED
        case OperandClass.SINK:
            fits = got.kind is OperandKind.SINK
        case OperandClass.REGISTER_AND_PREDICATE:
            fits = (
                got.kind is OperandKind.PAIR
                and len(got.elements) == 2
                and (got.elements[0] == "_" or register_bits(got.elements[0]) == 32)
                and register_bits(got.elements[1]) == 1
            )
        case OperandClass.TMEM_ADDRESS:
            fits = got.kind is OperandKind.ADDRESS and register_bits(got.base) == 32
        case _ if kind.bits:
            if got.kind is OperandKind.IMMEDIATE and kind is not OperandClass.B128 and not operand.register:
                return _value(operand, got), Targets.ANY
            symbol = got.kind is OperandKind.REGISTER and bits is None and not got.base.startswith("%")
            if symbol and operand.symbol:
                wanted = chosen.get("spaces", "shared").partition("::")[0]
                space = _space(got.base, symbols)
                right = space in (None, wanted)
                return (
                    "" if right else f"{operand.name} {got.text}: this symbol is in the state space .{space}"
                ), Targets.ANY
            fits = bits == kind.bits and not got.offset
        case _:  # an address in one of the state spaces
            bare = operand.bare and got.kind is OperandKind.REGISTER and "." not in got.base  # not %tid.x
            if got.kind is OperandKind.ADDRESS or bare:
                return _address(operand, kind, got, symbols)
    return ("" if fits else mismatch), Targets.ANY


def fit(operand: Operand, got: WrittenOperand, chosen: Mapping[str, str], symbols: Mapping[str, str]) -> Fit:
    """Return the reason why `got` does not fit `operand` ('' if it fits), and the targets that its spelling
    requires."""
    answers = [_one(operand, kind, got, chosen, symbols) for kind in operand.kinds]
    return next((answer for answer in answers if not answer[0]), answers[0])


DEFAULT_SYMBOLS: dict[str, str] = {"gmap": "global", "smem": "shared", "pmap": "param"}
"""State spaces of symbols if the caller does not pass any. A symbol that is in no table always fits."""


Matched = tuple[tuple[Operand, WrittenOperand], ...]
"""Pairs of an operand of a row and the operand as written."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement: `what` (a modifier, an operand or the instruction) needs these targets and this PTX version."""

    what: str
    targets: Targets
    since: Version


@record
class ParsedInstruction:
    """The text of an instruction, matched with its row of the table.

    errors: the reasons why no architecture accepts the instruction; empty if one accepts it. requirements: its
        requirements on the target. operands: each operand of the row with the operand as written; empty if the
        modifiers or the number of operands are wrong.

    >>> from cute_py.ptx import examine
    >>> found = examine("mbarrier.init.shared::cta.b64 [a], 1;")
    >>> found.canonical, found.errors
    (True, ())
    """

    text: str
    form: InstructionForm | None
    chosen: Mapping[str, str] = field(hash=False)
    canonical: bool
    canonical_text: str
    errors: tuple[str, ...]
    requirements: tuple[Requirement, ...]
    operands: Matched = field(default=(), compare=False)

    def __repr__(self) -> str:
        return f"examine({self.text!r})"

    @property
    def wrong_numbers(self) -> Matched:
        """The operands that are numbers outside the values of their row.

        >>> found = examine("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 20;")
        >>> [(operand.name, got.value) for operand, got in found.wrong_numbers]
        [('size', 20)]
        """
        return tuple([
            (operand, got)
            for operand, got in self.operands
            if got.kind is OperandKind.IMMEDIATE and got.value is not None and not operand.written
            and operand.kinds[0] is not OperandClass.F32 and _value(operand, got) in self.errors
        ])  # fmt: skip

    @property
    def fits(self) -> bool:
        """Whether each operand has the kind of its row: the only errors are `wrong_numbers`."""
        return self.form is not None and len(self.errors) == len(self.wrong_numbers)

    def min_version(self, arch: str) -> Version | None:
        """Return the first PTX `.version` that accepts the instruction on `arch`, or None."""
        target = architecture(arch)
        if self.errors or target.floor is None:
            return None
        if not all(need.targets.has(target) for need in self.requirements):
            return None
        return max((target.floor, *(need.since for need in self.requirements)))

    @property
    def targets(self) -> Mapping[str, Version]:
        """A mapping from each architecture to the first PTX version that the instruction assembles with there; empty
        if there is no such architecture."""
        found = {target.name: self.min_version(target.name) for target in ARCHITECTURES}
        return {name: version for name, version in found.items() if version is not None}

    def why_not(self, arch: str, version: Version | None = None) -> list[str]:
        """Return `reasons` as a list; this is an earlier name. If `version` is None, the newest version is used."""
        return list(self.reasons(arch, NEWEST_VERSION if version is None else version))

    def reasons(self, arch: str, version: Version = NEWEST_VERSION) -> tuple[str, ...]:
        """Return the messages of `check_target`."""
        return tuple([found.text for found in self.check_target(arch, version)])

    def check_target(self, arch: str, version: Version = NEWEST_VERSION) -> list[Diagnostic]:
        """List the reasons why the instruction does not assemble for `arch` at `version`; empty if it assembles.

        The rules are "instruction" (no architecture accepts it), "assembler" (ptxas no longer supports the
        architecture), "target" (other architectures accept it) and "version" (a newer PTX version accepts it).
        """
        target, version = architecture(arch), expect_version(version)
        if self.errors:
            return [Diagnostic("instruction", text=error) for error in self.errors]
        found = []
        if target.floor is None:
            found.append(
                (
                    "assembler",
                    f"{arch} can only be rendered as text, because its assembler (ptxas 13.0) no longer supports it",
                )
            )
        for need in (Requirement(arch, Targets.ANY, target.floor or (1, 0)), *self.requirements):
            if not need.targets.has(target):
                found.append(("target", f"{need.what} needs {need.targets.value}; got {arch}"))
            elif version < need.since:
                since = version_text(need.since)
                found.append(("version", f"{need.what} needs PTX {since} or newer; got {version_text(version)}"))
        return [Diagnostic(rule, text=text) for rule, text in dict.fromkeys(found)]


@record
class Verdict:
    """The verdict on one instruction for one architecture.

    assembles: whether ptxas accepts the instruction. canonical: whether its modifiers are in the ISA's order.
        min_version: the first PTX version that accepts it on this architecture. reasons: the reasons why ptxas rejects
        it, one line each. advice: performance advisories of ptxas.

    >>> from cute_py.ptx import verdict
    >>> verdict("fence.proxy.async.global;", "sm_80").assembles
    False
    """

    text: str
    arch: str
    assembles: bool
    canonical: bool
    canonical_text: str
    min_version: Version | None
    reasons: tuple[str, ...]
    advice: tuple[str, ...]

    @property
    def why_not(self) -> str | None:
        """The reasons in one line, or None if the instruction assembles."""
        return "; ".join(self.reasons) or None


def _place(form: InstructionForm, modifiers: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
    """Assign each modifier to its slot; also list modifiers that have no slot, are repeated, or are missing."""
    chosen: dict[str, str] = {}
    errors = []
    spaces: list[str] = []
    has_spaces = form.slot("spaces") is not None
    for modifier in modifiers:
        if has_spaces and modifier in STATE_SPACES:
            spaces.append(modifier)
            chosen["spaces"] = ".".join(spaces)
            continue
        slot = next((slot for slot in form.slots if modifier in slot.choices), None)
        if slot is None:
            errors.append(f".{modifier} is not a modifier of {form.opcode} ({form.name})")
        elif f"{chosen.get(slot.name)}.{modifier}" in slot.choices:
            chosen[slot.name] += f".{modifier}"
        elif slot.name in chosen:
            errors.append(f".{modifier} follows .{chosen[slot.name]}, but at most one {slot.name} is allowed")
        else:
            chosen[slot.name] = modifier
    for slot in form.slots:
        got = chosen.get(slot.name)
        if got is None and not slot.optional:
            errors.append(f"{form.opcode} ({form.name}) needs one of .{', .'.join(slot.choices)}")
        elif got is not None and got not in slot.choices:
            errors.append(f"the state space is .{got}; {form.opcode} ({form.name}) needs .{' or .'.join(slot.choices)}")
        if slot.after in chosen and got is not None and list(chosen).index(slot.after) > list(chosen).index(slot.name):
            errors.append(f".{got} comes before .{chosen[slot.after]}; must be after it")
    return chosen, errors


def _match(
    expected: tuple[Operand, ...],
    written: tuple[WrittenOperand, ...],
    chosen: Mapping[str, str],
    symbols: Mapping[str, str],
) -> tuple[Matched, list[str], list[Requirement]]:
    """Pair the written operands with the expected operands, and omit optional operands as needed."""
    optional = [index for index, operand in enumerate(expected) if operand.optional]
    best: tuple[Matched, list[str], list[Requirement]] | None = None
    missing = len(expected) - len(written)
    for dropped in itertools.combinations(optional, missing) if missing >= 0 else ():
        kept = (operand for index, operand in enumerate(expected) if index not in dropped)
        matched = tuple(zip(kept, written, strict=True))
        fits = [(got, *fit(operand, got, chosen, symbols)) for operand, got in matched]
        errors = [error for _, error, _ in fits if error]
        if best is None or len(errors) < len(best[1]):
            plain = ((got, targets) for got, error, targets in fits if not error and targets is not Targets.ANY)
            best = (matched, errors, [Requirement(f"operand {got.text}", targets, (1, 0)) for got, targets in plain])
    if best is not None:
        return best
    names = ", ".join(f"{operand.name}?" if operand.optional else operand.name for operand in expected) or "none"
    return (), [f"got {len(written)} operands; expected {names}"], []


def _applies(rule: FormRule, matched: Matched) -> bool:
    """Whether all operands that the rule names are written, and the first of them has the required value or kind."""
    written = {"sink" if got.kind is OperandKind.SINK else operand.name: got for operand, got in matched}
    if not set(rule.given) <= set(written):
        return False
    got = written[rule.given[0]]
    return (not rule.values or got.value in rule.values) and (not rule.predicate or register_bits(got.base) == 1)


def _describe(form: InstructionForm, slots: tuple[str, ...], chosen: Mapping[str, str], given: tuple[str, ...]) -> str:
    parts = [f".{chosen[slot.name]}" for slot in form.slots if slot.name in slots and chosen.get(slot.name)]
    parts += [f"operand {name}" if name != "sink" else "the sink _" for name in given]
    return f"{form.opcode} with {' and '.join(parts)}" if parts else form.opcode


def _match_form(form: InstructionForm, found: Instruction, symbols: Mapping[str, str]) -> ParsedInstruction:
    """Match a parsed instruction against this form."""
    chosen, errors = _place(form, found.parts[form.opcode.count(".") + 1 :])
    matched: Matched = ()
    operand_errors: list[str] = []
    needs = [Requirement(form.opcode, form.targets, form.since)]
    if not errors:
        matched, operand_errors, operand_needs = _match(form.expected(chosen), found.operands, chosen, symbols)
        needs.extend(operand_needs)
    if found.predicate and register_bits(found.predicate.lstrip("@!")) not in (None, 1):
        operand_errors.append(f"{found.predicate}: expected a predicate")
    given = {operand.name: got.value for operand, got in matched}
    for operand, got in matched:
        limit = given.get(operand.at_most)
        if limit is not None and got.value is not None and got.value > limit:
            operand_errors.append(f"{operand.name} = {got.value}; expected 0..{limit}, the {operand.at_most}")
    for rule in form.rules:
        if not holds(rule.condition, chosen) or (rule.given and not _applies(rule, matched)):
            continue
        if rule.forbid:
            errors.append(rule.forbid)
        else:
            what = _describe(form, tuple(name for name, _ in rule.condition), chosen, rule.given)
            needs.append(Requirement(what, rule.targets, rule.since))
    # A wrong combination of modifiers explains wrong operands, so it comes first.
    errors.extend(operand_errors)
    ordered = [chosen[slot.name] for slot in form.slots if chosen.get(slot.name) and not slot.tolerated]
    mnemonic = ".".join([form.opcode, *ordered])
    tail = ", ".join(got.text for got in found.operands)
    canonical_text = f"{found.predicate} {mnemonic} {tail}".strip() + ";"
    canonical = not errors and mnemonic == ".".join(found.parts)
    return ParsedInstruction(found.text, form, chosen, canonical, canonical_text, tuple(errors), tuple(needs), matched)


def examine(text: str, symbols: Mapping[str, str] | None = None) -> ParsedInstruction:
    """Match the text of an instruction with the row of the table that fits best.

    Args:
        text: one instruction, with or without a predicate and the semicolon.
        symbols: the state space of each symbol that is used as an address ('global', 'shared', 'param').
    Raises:
        ParseError: the text is not an instruction.
        UnknownFactError: no row covers the instruction.

    >>> examine("tcgen05.cp.cta_group::1.32x128b [%r1], %rd2;").errors
    ('no multicast with .32x128b; must be .warpx4',)
    >>> examine("tcgen05.wait::cp.sync.aligned;").errors
    ('ptxas 13.0.88 has no instruction tcgen05.wait::cp.sync.aligned',)
    """
    found = parse_instruction(text)
    named: Mapping[str, str] = {} if symbols is None else expect(symbols, Mapping, "symbols")  # type: ignore[type-abstract]
    for symbol, space in named.items():
        expect(symbol, str, "a symbol")
        expect(space, str, "the space of a symbol")
    table = {**DEFAULT_SYMBOLS, **named} if named else DEFAULT_SYMBOLS
    name = ".".join(found.parts)
    absent = next((why for prefix, why in ABSENT.items() if f"{name}.".startswith(f"{prefix}.")), None)
    forms = forms_of_opcode(found.parts)
    if absent is None and not forms and found.parts[0] in COMPLETE:
        absent = f"ptxas 13.0.88 has no instruction {name}"
    if absent is not None:
        return ParsedInstruction(text, None, {}, False, "", (absent,), ())
    if not forms:
        raise UnknownFactError(f"the instruction table has no row for the opcode of {name}", {"instruction": text})
    best = min((_match_form(form, found, table) for form in forms), key=lambda one: len(one.errors))
    if best.errors and all(form.partial for form in forms):
        facts = {"instruction": text, "row": forms[0].name}
        raise UnknownFactError(f"the row for {forms[0].opcode} does not cover this variant", facts)
    return best


_ADVISED = tuple(row.name for row in ARCHITECTURES if Targets.ONLY_90A.has(row) or Targets.TMA_FULL.has(row))


def _advice(examined: ParsedInstruction, arch: str) -> tuple[str, ...]:
    """Return the performance advisories of ptxas. Source: measured with ptxas 13.0.88."""
    if examined.chosen.get("multicast") == "multicast::cluster" and arch not in _ADVISED:
        return (
            f".multicast::cluster is optimised for {', '.join(_ADVISED)}; the PTX documentation expects it "
            f"to be slow on {arch}",
        )
    return ()


def verdict(
    text: str, arch: str, version: Version = NEWEST_VERSION, symbols: Mapping[str, str] | None = None
) -> Verdict:
    """Judge whether ptxas accepts `text` for `arch` at `.version version`, and whether its modifiers are in canonical
    order.

    >>> v = verdict("prefetch.tensormap [%rd1];", "sm_80")
    >>> v.assembles, v.canonical, v.why_not
    (False, True, 'prefetch needs sm_90 or newer; got sm_80')

    Raises:
        ParseError: the text is not an instruction.
        UnknownFactError: no row covers it.
        InvalidValueError: the architecture is unknown.
    """
    examined = examine(text, symbols)
    reasons = examined.reasons(arch, version)
    canonical, version_needed = (examined.canonical, examined.canonical_text), examined.min_version(arch)
    return Verdict(text, arch, not reasons, *canonical, version_needed, reasons, _advice(examined, arch))


def why_not_instruction(text: str, arch: str, version: Version | None = None) -> list[str]:
    """Return the reasons why ptxas rejects `text` for `arch`; empty if ptxas accepts it. `verdict` contains the same
    reasons.

    >>> why_not_instruction("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;", "sm_100a")
    []
    >>> scaled = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.{} [%r1], %rd1, %rd2, %r3, [%r4], [%r5], %p1;"
    >>> why_not_instruction(scaled.format("block16"), "sm_100f")
    []
    >>> why_not_instruction(scaled.format("scale_vec::4X"), "sm_100f")
    ['tcgen05.mma with .scale_vec::4X needs sm_100a, sm_103a or sm_110a; got sm_100f']

    Raises:
        ParseError: the text is not an instruction.
        UnknownFactError: no row covers it.
        InvalidValueError: the architecture or the version is unknown.
    """
    return examine(text).why_not(arch, version)
