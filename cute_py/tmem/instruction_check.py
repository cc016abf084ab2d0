"""Does an instruction text assemble, where, and is it written in the order of the PTX ISA?

The rows of `instruction_forms` against the words and operands of one text. All reasons are told, not only the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cute_py.errors import UnknownFactError
from cute_py.tma.lower.parse import Instruction, OperandKind, WrittenOperand, parse_instruction, register_bits
from cute_py.tmem.copy_plan import ALLOC_MAX, ALLOC_MIN
from cute_py.tmem.instruction_forms import FORMS_TABLE, InstructionForm, combination_errors, register_count

Version = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Examination:
    """What the table says of one text.

    Args:
        errors: why no architecture takes it; empty if one does.
        canonical: the modifiers stand in the order of the PTX ISA.
        targets: architecture -> first PTX version; empty with errors.
    """

    text: str
    form: InstructionForm
    chosen: Mapping[str, str]
    errors: tuple[str, ...]
    canonical: bool
    targets: Mapping[str, Version]

    def why_not(self, arch: str, version: Version | None = None) -> list[str]:
        """Every reason why `arch` does not take it, at PTX `version` if one is given; empty if it does."""
        if self.errors:
            return list(self.errors)
        if arch not in self.targets:
            return [f"{self.form.name} needs one of {', '.join(self.targets)}; got {arch}"]
        since = self.targets[arch]
        if version is not None and version < since:
            return [f"{arch} needs PTX {since[0]}.{since[1]} or newer; got {version[0]}.{version[1]}"]
        return []

    def min_version(self, arch: str) -> Version | None:
        """The first PTX version with which it assembles for `arch`, or None."""
        return None if self.errors else self.targets.get(arch)


def examine(text: str) -> Examination:
    """Read one instruction.

    Raises:
        ParseError: the text is no instruction.
        UnknownFactError: no row has its opcode, or the row covers only plainer forms.

    >>> examine("tcgen05.cp.cta_group::1.32x128b [%r1], %rd2;").errors
    ('no multicast with .32x128b; must be .warpx4',)
    """
    found = parse_instruction(text)
    rows = _rows(found.words)
    if not rows:
        raise UnknownFactError(f"no row has the opcode of {'.'.join(found.words)}", {"instruction": text})
    judged = [_judge(row, found) for row in rows]
    best = min(judged, key=lambda examination: len(examination.errors))
    if best.errors and best.form.opcode == ("tcgen05", "mma"):
        raise UnknownFactError("the rows of tcgen05.mma cover its plain dense forms alone", {"instruction": text})
    return best


def why_not(text: str, arch: str, version: Version | None = None) -> list[str]:
    """Every reason why ptxas refuses `text` for `arch`; empty if it takes it.

    >>> why_not("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;", "sm_100a")
    []
    """
    return examine(text).why_not(arch, version)


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
    if not errors:
        errors = _operand_errors(form, chosen, found.operands)
    ordered = tuple(chosen[slot.name] for slot in form.slots if slot.name in chosen)
    return Examination(
        found.text, form, chosen, tuple(errors), not errors and ordered == words, {} if errors else form.targets
    )


def _operand_errors(form: InstructionForm, chosen: Mapping[str, str], written: tuple[WrittenOperand, ...]) -> list[str]:
    absent = set()
    if chosen.get("multicast") != "multicast::cluster":
        absent.add("CTA mask")
    if chosen.get("shape") != "16x32bx2":
        absent.add("half split")
    expected = [name for name in form.operands if name not in absent]
    if len(expected) != len(written):
        return [f"{len(written)} operands; expected {', '.join(expected) or 'none'}"]
    out = []
    for name, got in zip(expected, written, strict=True):
        error = _vector(got, register_count(chosen)) if name == "registers" else _FITS[name](got)
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


def _descriptor(got: WrittenOperand) -> str:
    return "" if got.kind is OperandKind.IMMEDIATE else _register(64)(got)


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
    return "" if got.kind is OperandKind.IMMEDIATE else "must be an immediate"


def _first(got: WrittenOperand) -> str:
    return _taddr(got) if got.kind is OperandKind.ADDRESS else _descriptor(got)


def _enable(got: WrittenOperand) -> str:
    return "" if got.kind is OperandKind.IMMEDIATE else _register(1)(got)


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
    "instruction descriptor": _register(32),
    "enable": _enable,
}


def is_tcgen05(text: str) -> bool:
    """Whether a text is a tcgen05 instruction, with or without a predicate."""
    return re.match(r"\s*(@!?%\w+\s+)?tcgen05\.", text) is not None
