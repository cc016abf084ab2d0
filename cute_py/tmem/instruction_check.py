"""Does an instruction text assemble, where, and is it written in the order of the PTX ISA?

The rows of `instruction_forms` against the modifiers and operands of one text, with every reason, not only the first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cute_py.argument_checks import expect_fields
from cute_py.errors import UnknownFactError
from cute_py.ptx.instruction import holds
from cute_py.ptx.parse import Instruction, OperandKind, WrittenOperand, parse_instruction, register_bits
from cute_py.targets import NEWEST_VERSION, Version, architecture, expect_version, version_text
from cute_py.tmem.copy_plan import ALLOC_MAX, ALLOC_MIN
from cute_py.tmem.instruction_forms import FORMS_TABLE, InstructionForm, combination_errors, register_count

_OPTIONAL = ("disabled lanes", "input scale", "last number", "zero-column mask")
"""Operands that may be left out."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """`what` (the instruction, or a combination in it) needs one of these architectures, from these PTX versions on."""

    what: str
    targets: Mapping[str, Version]


@dataclass(frozen=True, slots=True)
class Examination:
    """What the table says of one text.

    Args:
        form: the row that comes nearest; None if there is no such instruction.
        errors: why no architecture takes it; empty if one does.
        canonical: the modifiers stand in the order of the PTX ISA.
        requirements: what it needs; empty with errors.
    """

    text: str
    form: InstructionForm | None = field(hash=False)
    chosen: Mapping[str, str] = field(hash=False)
    errors: tuple[str, ...]
    canonical: bool
    requirements: tuple[Requirement, ...] = field(hash=False)

    def __post_init__(self) -> None:
        expect_fields(self)

    @property
    def targets(self) -> Mapping[str, Version]:
        """Architecture -> first PTX version; empty with errors."""
        needs = [need.targets for need in self.requirements]
        shared = [arch for arch in needs[0] if all(arch in need for need in needs)] if needs else []
        return {arch: max(need[arch] for need in needs) for arch in shared}

    def why_not(self, arch: str, version: Version | None = None) -> list[str]:
        """Every reason why `arch` does not take it, at PTX `version` if one is given; empty if it does.

        Raises:
            InvalidValueError: no such architecture, or no such version.
        """
        floor = architecture(arch).floor
        asked = NEWEST_VERSION if version is None else expect_version(version)
        if self.errors:
            return list(self.errors)
        out = []
        if floor is not None and asked < floor:
            out.append(f"{arch} needs PTX {version_text(floor)} or newer; got {version_text(asked)}")
        for need in self.requirements:
            since = need.targets.get(arch)
            if since is None:
                out.append(f"{need.what} needs one of {', '.join(need.targets)}; got {arch}")
            elif asked < since and since != floor:
                out.append(f"{need.what} needs PTX {version_text(since)} or newer; got {version_text(asked)}")
        return out

    def min_version(self, arch: str) -> Version | None:
        """The first PTX version with which it assembles for `arch`, or None."""
        return self.targets.get(architecture(arch).name)


def examine(text: str) -> Examination:
    """Read one instruction.

    Raises:
        ParseError: the text is no instruction.
        UnknownFactError: it is no tcgen05 instruction.

    >>> examine("tcgen05.cp.cta_group::1.32x128b [%r1], %rd2;").errors
    ('no multicast with .32x128b; must be .warpx4',)
    >>> examine("tcgen05.wait::cp.sync.aligned;").errors
    ('ptxas 13.0.88 knows no instruction tcgen05.wait::cp.sync.aligned',)
    """
    found = parse_instruction(text)
    name = ".".join(found.words)
    if found.words[0] != "tcgen05":
        raise UnknownFactError(f"{name} is no tcgen05 instruction", {"instruction": text})
    rows = _rows(found.words)
    if not rows:
        return Examination(text, None, {}, (f"ptxas 13.0.88 knows no instruction {name}",), False, ())
    return min((_judge(row, found) for row in rows), key=lambda examination: len(examination.errors))


def why_not(text: str, arch: str, version: Version | None = None) -> list[str]:
    """Every reason why ptxas refuses `text` for `arch`; empty if it takes it.

    >>> why_not("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;", "sm_100a")
    []
    >>> scaled = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.{} [%r1], %rd1, %rd2, %r3, [%r4], [%r5], %p1;"
    >>> why_not(scaled.format("scale_vec::4X"), "sm_103a"), why_not(scaled.format("block16"), "sm_100f")
    ([], [])
    >>> why_not(scaled.format("scale_vec::4X"), "sm_100f")
    ['tcgen05.mma with .scale_vec::4X needs one of sm_100a, sm_103a, sm_110a; got sm_100f']

    Raises:
        ParseError: the text is no instruction.
        UnknownFactError: it is no tcgen05 instruction.
        InvalidValueError: no such architecture, or no such version.
    """
    return examine(text).why_not(arch, version)


Names = tuple[str, ...]
Operands = tuple[Names, list[str]]


def _rows(words: tuple[str, ...]) -> list[InstructionForm]:
    fitting = [row for row in FORMS_TABLE if words[: len(row.opcode)] == row.opcode]
    longest = max((len(row.opcode) for row in fitting), default=0)
    return [row for row in fitting if len(row.opcode) == longest]


def _judge(form: InstructionForm, found: Instruction) -> Examination:
    words = found.words[len(form.opcode) :]
    chosen: dict[str, str] = {}
    errors: list[str] = []
    for word in words:
        slot = next((slot for slot in form.slots if word in slot.choices), None)
        if slot is None:
            errors.append(f".{word} is no modifier of {form.name}")
        elif slot.name in chosen:
            errors.append(f".{word} after .{chosen[slot.name]}; one {slot.name} at most")
        else:
            chosen[slot.name] = word
    for slot in form.slots:
        if slot.required and slot.name not in chosen:
            errors.append(f"{form.name} needs {slot.name}: .{' or .'.join(slot.choices)}")
    errors += combination_errors(form, chosen)
    formats = [slot for slot in chosen if slot in ("dst_format", "src_format")]
    if formats == ["src_format", "dst_format"]:
        errors.append(f".{chosen['src_format']} before .{chosen['dst_format']}; must be after it")
    named: tuple[str, ...] = ()
    if not errors:
        named, errors = _operands(form, chosen, found.operands)
    needs = [Requirement(form.name, form.targets)]
    for rule in form.rules:
        if not holds(rule.condition, chosen) or not set(rule.given) <= set(named):
            continue
        if rule.targets is not None:
            needs.append(Requirement(_described(form, dict(rule.condition), chosen, rule.given), rule.targets))
        elif rule.given:
            errors.append(rule.forbid)
    ordered = tuple(chosen[slot.name] for slot in form.slots if slot.name in chosen)
    canonical = not errors and ordered == words
    return Examination(found.text, form, chosen, tuple(errors), canonical, () if errors else tuple(needs))


def _described(form: InstructionForm, slots: Mapping[str, object], chosen: Mapping[str, str], given: Names) -> str:
    """The part of the instruction that a rule is about: the modifiers of its slots, its operands."""
    parts = [f".{chosen[slot.name]}" for slot in form.slots if slot.name in slots and slot.name in chosen]
    parts += [f"no {name}" for name in slots if name not in chosen]
    return f"{'.'.join(form.opcode)} with {' and '.join([*parts, *given])}"


def _operands(form: InstructionForm, chosen: Mapping[str, str], written: tuple[WrittenOperand, ...]) -> Operands:
    """Names of the written operands in their order, and what is wrong with them; optional ones may be left out."""
    absent = set()
    if chosen.get("multicast") != "multicast::cluster":
        absent.add("CTA mask")
    if chosen.get("shape") != "16x32bx2":
        absent.add("half split")
    if "sparse" not in chosen:
        absent.add("[sparsity metadata]")
    expected = [name for name in form.operands if name not in absent]
    optional = [name for name in expected if name in _OPTIONAL]
    best: Operands | None = None
    for dropped in itertools.combinations(optional, max(0, min(len(optional), len(expected) - len(written)))):
        kept = tuple(name for name in expected if name not in dropped)
        if len(kept) == len(written):
            errors = _misfits(kept, chosen, written)
            if best is None or len(errors) < len(best[1]):
                best = (kept, errors)
    if best is not None:
        return best
    names = ", ".join(f"{name}?" if name in optional else name for name in expected) or "none"
    return (), [f"{len(written)} operands; expected {names}"]


def _misfits(kept: Names, chosen: Mapping[str, str], written: tuple[WrittenOperand, ...]) -> list[str]:
    out = []
    for name, got in zip(kept, written, strict=True):
        if name == "registers":
            error = _vector(got, register_count(chosen))
        elif name == "disabled lanes":
            error = _vector(got, 8 if chosen.get("cta_group") == "cta_group::2" else 4)
        elif name == "first operand" and "ashift" in chosen:
            error = _taddr(got)
        else:
            error = _FITS[name](got)
        if error:
            out.append(f"{name} {got.text}: {error}")
    return out


def _taddr(got: WrittenOperand) -> str:
    fits = got.kind is OperandKind.ADDRESS and register_bits(got.base) == 32
    return "" if fits else "must be an address in a 32-bit register"


def _address(got: WrittenOperand) -> str:
    return "" if got.kind is OperandKind.ADDRESS else "must be an address"


def _register(bits: int) -> Callable[[WrittenOperand], str]:
    def fit(got: WrittenOperand) -> str:
        fits = got.kind is OperandKind.REGISTER and register_bits(got.base) == bits
        return "" if fits else f"must be a {bits}-bit register"

    return fit


def _is_integer(got: WrittenOperand) -> bool:
    return got.kind is OperandKind.IMMEDIATE and got.value is not None


def _descriptor(got: WrittenOperand) -> str:
    return "" if _is_integer(got) else _register(64)(got)


def _instruction_descriptor(got: WrittenOperand) -> str:
    return "" if _is_integer(got) else _register(32)(got)


def _input_scale(got: WrittenOperand) -> str:
    return "" if _is_integer(got) and 0 <= (got.value or 0) <= 15 else "must be an immediate within 0..15"


def _columns(got: WrittenOperand) -> str:
    if got.kind is not OperandKind.IMMEDIATE:
        return _register(32)(got)
    value = got.value or 0
    if not ALLOC_MIN <= value <= ALLOC_MAX:
        return f"must be within {ALLOC_MIN}..{ALLOC_MAX}"
    return "must be a power of two" if value & (value - 1) else ""


def _freed(got: WrittenOperand) -> str:
    if got.kind is not OperandKind.IMMEDIATE:
        return _register(32)(got)
    return "must be a multiple of 32" if (got.value or 0) % ALLOC_MIN else ""


def _immediate(got: WrittenOperand) -> str:
    return "" if _is_integer(got) else "must be an immediate"


def _first(got: WrittenOperand) -> str:
    return _taddr(got) if got.kind is OperandKind.ADDRESS else _descriptor(got)


def _enable(got: WrittenOperand) -> str:
    return "" if got.kind is OperandKind.NEGATED or _is_integer(got) else _register(1)(got)


def _scalar(got: WrittenOperand) -> str:
    bits = register_bits(got.base) if got.kind is OperandKind.REGISTER else None
    return "" if bits in (32, -32) else "must be a 32-bit register"


def _vector(got: WrittenOperand, count: int) -> str:
    if got.kind is not OperandKind.VECTOR:
        return "must be a vector of registers"
    if len(got.elements) != count:
        return f"{len(got.elements)} registers; must be {count}"
    wrong = [element for element in got.elements if register_bits(element) not in (32, -32)]
    return f"{wrong[0]} is no 32-bit register" if wrong else ""


_FITS: dict[str, Callable[[WrittenOperand], str]] = {
    "address": _address,
    "columns to allocate": _columns,
    "tensor-memory address": _register(32),
    "[tensor-memory address]": _taddr,
    "columns to free": _freed,
    "matrix descriptor": _descriptor,
    "CTA mask": _register(16),
    "half split": _immediate,
    "reduced value": _scalar,
    "first operand": _first,
    "[sparsity metadata]": _taddr,
    "instruction descriptor": _instruction_descriptor,
    "[scales of A]": _taddr,
    "[scales of B]": _taddr,
    "enable": _enable,
    "input scale": _input_scale,
    "last number": _immediate,
    "zero-column mask": _descriptor,
}
