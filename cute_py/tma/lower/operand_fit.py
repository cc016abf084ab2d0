"""Whether a written operand is what the row expects: its kind, its width, the count of a vector, its value."""

from __future__ import annotations

from collections.abc import Mapping

from cute_py.tma.lower.architectures import Targets
from cute_py.tma.lower.instruction import Narrow, Operand, OperandClass, coordinate_count, offset_count
from cute_py.tma.lower.parse import OperandKind, WrittenOperand, float_immediate, register_bits

# Negative widths are those of floating-point registers.
_WIDTHS = {
    OperandClass.B16: 16,
    OperandClass.B32: 32,
    OperandClass.B64: 64,
    OperandClass.B128: 128,
    OperandClass.F32: -32,
}
_SPACES = {
    OperandClass.SHARED_ADDRESS: ("shared",),
    OperandClass.GLOBAL_ADDRESS: ("global",),
    OperandClass.PARAM_ADDRESS: ("param",),
    OperandClass.CONST_ADDRESS: ("const",),
}
_VECTOR = {"v2": 2, "v4": 4}

Fit = tuple[str, Targets]
"""('' or the reason why it does not fit, what the fit needs beside the row)."""


def _address(operand: Operand, kind: OperandClass, got: WrittenOperand, symbols: Mapping[str, str]) -> Fit:
    bits = register_bits(got.base)
    if bits is None:
        if got.base.lstrip("-").isdigit():
            allowed = kind is OperandClass.ANY_ADDRESS
            return ("" if allowed else f"{operand.name} {got.text}: a number is no address here", Targets.ANY)
        # nvcc names kernel parameters kernel_param_0; anything else that no table names is taken to fit.
        space = symbols.get(got.base, "param" if "param" in got.base else None)
        wanted = _SPACES.get(kind)
        if wanted is None:
            wrong = kind is OperandClass.GENERIC_ADDRESS and space == "param"
        else:
            wrong = space is not None and space not in wanted
        return (f"{operand.name} {got.text}: the symbol is in .{space}" if wrong else "", Targets.ANY)
    if bits not in (16, 32, 64):
        return (f"{operand.name} {got.text}: an address is in an integer register", Targets.ANY)
    if bits == 64 or (bits == 32 and kind is OperandClass.SHARED_ADDRESS):
        return ("", Targets.ANY)
    if operand.narrow is Narrow.REFUSED:
        return (f"{operand.name} {got.text}: a generic address is 64 bits wide", Targets.ANY)
    # A narrow register is widened by a move that the consumer Blackwell targets refuse.
    return ("", Targets.NOT_CONSUMER if operand.narrow is Narrow.NOT_CONSUMER or bits == 16 else Targets.ANY)


def _elements(operand: Operand, got: WrittenOperand, count: int, bits: int) -> str:
    if len(got.elements) != count:
        return f"{operand.name} {got.text}: {len(got.elements)} elements; expected {count}"
    for element in got.elements:
        width = register_bits(element)
        if width is None and not _is_number(element):
            return f"{operand.name}: {element!r} is neither a register nor a number"
        if width is not None and width != bits:
            return f"{operand.name}: {element} is not a {bits}-bit register"
    return ""


def _is_number(text: str) -> bool:
    return text.lstrip("+-").replace("0x", "", 1).isalnum() and text.lstrip("+-")[:1].isdigit()


def _value(operand: Operand, got: WrittenOperand) -> str:
    if got.value is None:
        number = float_immediate(got.text)
        if operand.kinds[0] is not OperandClass.F32 or number is None:
            return f"{operand.name} {got.text}: expected an integer"
        # The one float of the table is a fraction of the accesses.
        return "" if 0 < number <= 1 else f"{operand.name} = {number}; expected more than 0 and at most 1"
    if operand.kinds[0] is OperandClass.F32:
        return f"{operand.name} {got.text}: expected a floating-point constant"
    if operand.written:
        return f"{operand.name} is a result; got the number {got.text}"
    if operand.values and got.value not in operand.values:
        low, high = operand.values[0], operand.values[-1]
        allowed = str(low) if low == high else f"{low}..{high}"
        return f"{operand.name} = {got.value}; expected {allowed}"
    if operand.lowest is not None and got.value < operand.lowest:
        return f"{operand.name} = {got.value}; expected {operand.lowest} or more"
    if got.value % operand.step:
        return f"{operand.name} = {got.value}; must be a multiple of {operand.step}"
    return ""


def _one(
    operand: Operand, kind: OperandClass, got: WrittenOperand, chosen: Mapping[str, str], symbols: Mapping[str, str]
) -> Fit:
    mismatch = f"{operand.name} {got.text}: expected a {kind.words}"
    match kind:
        case (
            OperandClass.SHARED_ADDRESS
            | OperandClass.GLOBAL_ADDRESS
            | OperandClass.GENERIC_ADDRESS
            | OperandClass.ANY_ADDRESS
            | OperandClass.PARAM_ADDRESS
            | OperandClass.CONST_ADDRESS
        ):
            if got.kind is OperandKind.ADDRESS or (operand.bare and got.kind is OperandKind.REGISTER):
                return _address(operand, kind, got, symbols)
            return mismatch, Targets.ANY
        case OperandClass.TENSOR:
            if got.kind is not OperandKind.TENSOR:
                return mismatch, Targets.ANY
            if got.offset:
                return f"{got.text}: no offset beside coordinates", Targets.ANY
            error = _elements(operand, got, coordinate_count(chosen), 32)
            return (error, Targets.ANY) if error else _address(operand, OperandClass.GLOBAL_ADDRESS, got, symbols)
        case OperandClass.OFFSETS:
            if got.kind is not OperandKind.VECTOR:
                return mismatch, Targets.ANY
            return _elements(operand, got, offset_count(chosen), 16), Targets.ANY
        case OperandClass.VECTOR:
            if got.kind is not OperandKind.VECTOR:
                return mismatch, Targets.ANY
            return _elements(operand, got, _VECTOR.get(chosen.get("vector", ""), 1), 32), Targets.ANY
        case OperandClass.IMMEDIATE:
            if got.kind is not OperandKind.IMMEDIATE:
                return mismatch, Targets.ANY
            return _value(operand, got), Targets.ANY
        case OperandClass.PREDICATE:
            fits = got.kind is OperandKind.REGISTER and register_bits(got.base) == 1
            return ("" if fits else mismatch), Targets.ANY
        case OperandClass.SINK:
            return ("" if got.kind is OperandKind.SINK else mismatch), Targets.ANY
        case OperandClass.REGISTER_AND_PREDICATE:
            fits = (
                got.kind is OperandKind.PAIR
                and len(got.elements) == 2
                and (got.elements[0] == "_" or register_bits(got.elements[0]) == 32)
                and register_bits(got.elements[1]) == 1
            )
            return ("" if fits else mismatch), Targets.ANY
        case OperandClass.B16 | OperandClass.B32 | OperandClass.B64 | OperandClass.B128 | OperandClass.F32:
            if got.kind is OperandKind.IMMEDIATE and kind is not OperandClass.B128:
                return _value(operand, got), Targets.ANY
            if got.kind is not OperandKind.REGISTER:
                return mismatch, Targets.ANY
            bits = register_bits(got.base)
            symbol_fits = bits is None and not got.base.startswith("%") and operand.name == "address"
            return ("" if symbol_fits or bits == _WIDTHS[kind] else mismatch), Targets.ANY


def fit(operand: Operand, got: WrittenOperand, chosen: Mapping[str, str], symbols: Mapping[str, str]) -> Fit:
    """The reason why `got` is not what `operand` expects ('' if it is), and the targets that its spelling needs."""
    answers = [_one(operand, kind, got, chosen, symbols) for kind in operand.kinds]
    return next((answer for answer in answers if not answer[0]), answers[0])
