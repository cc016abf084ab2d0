"""Class `Site`: one instruction during decoding, with its modifiers, and its operands as functions of a frame.

A family of instructions is a table, name -> builder. A builder takes a `Site`, gets the modifiers and operands from it,
and returns a function that runs the instruction on a frame:

    def build_add(site):
        kind = site.kind()
        d, a, b = site.writer(0, kind), site.reader(1, kind), site.reader(2, kind)
        site.finish()                                     refuses unused modifiers
        return lambda f: d(f, a(f) + b(f))

If an instruction is not emulated, its builder raises `Refused`. `decode_into` reports the instruction and its line
before the run starts.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cute_py.machine.code import Code
from cute_py.machine.faults import Fault, Refused, finding
from cute_py.machine.kinds import KINDS, Kind
from cute_py.machine.threads import BOOL, S16, S32, S64, U16, U32, U64, Array, Frame, Reader, Writer, broadcast
from cute_py.ptx.parse import OperandKind, WrittenOperand, float_immediate
from cute_py.ptx.source import SourceInstruction, operand_of

_UNSIGNED: Final = {1: BOOL, 16: U16, 32: U32, 64: U64}
_SIGNED: Final = {16: S16, 32: S32, 64: S64}


@dataclass(frozen=True, slots=True)
class Address:
    """An address operand.

    base: reader of the base address (uint64 or uint32 values); None if the operand has only a symbol. added: constant
    offset in bytes. symbol, space: key and state space of the symbol; empty without a symbol.
    """

    base: Reader | None
    added: int
    symbol: str = ""
    space: str = ""


class Site:
    """One instruction that is being decoded, and the code that it belongs to."""

    def __init__(self, code: Code, number: int, one: SourceInstruction, function: str) -> None:
        self.code = code
        self.number = number
        self.one = one
        self.function = function
        self.operands: tuple[WrittenOperand, ...] = one.operands
        parts = one.opcode.split(".")
        self.name = parts[0]
        self.modifiers = parts[1:]
        self.used = [False] * len(self.modifiers)

    # ---- modifiers ---------------------------------------------------------------------------------------------------

    def flag(self, *names: str) -> bool:
        """Return whether the instruction has one of these modifiers, and mark it as used."""
        found = False
        for place, word in enumerate(self.modifiers):
            if word in names and not self.used[place]:
                self.used[place] = found = True
        return found

    def choice(self, *names: str, default: str = "") -> str:
        """Return the first of these modifiers that the instruction has, or the default, and mark it as used."""
        for place, word in enumerate(self.modifiers):
            if word in names and not self.used[place]:
                self.used[place] = True
                return word
        return default

    def kind(self, *allowed: str) -> Kind:
        """Return the last unused type modifier, and mark it as used.

        Raises:
            Refused: there is no unused type modifier, or it is not one of `allowed`.
        """
        for place in reversed(range(len(self.modifiers))):
            word = self.modifiers[place]
            if word in KINDS and not self.used[place]:
                if allowed and word not in allowed:
                    break
                self.used[place] = True
                return KINDS[word]
        raise Refused(f"{self.one.opcode} has an unknown type")

    def first_kind(self) -> Kind:
        """Return the first unused type modifier, and mark it as used."""
        for place, word in enumerate(self.modifiers):
            if word in KINDS and not self.used[place]:
                self.used[place] = True
                return KINDS[word]
        raise Refused(f"{self.one.opcode} has an unknown type")

    def finish(self, operands: int | tuple[int, ...] | None = None) -> None:
        """Refuse the instruction if modifiers are unused or the number of operands is wrong."""
        left = [word for word, used in zip(self.modifiers, self.used, strict=True) if not used]
        if left:
            raise Refused(f"{self.one.opcode}: the modifier .{left[0]} is not emulated")
        if operands is not None:
            allowed = (operands,) if isinstance(operands, int) else operands
            if len(self.operands) not in allowed:
                text = " or ".join(map(str, allowed))
                raise Refused(f"{self.one.opcode} has {len(self.operands)} operands; must have {text}")

    # ---- operands ----------------------------------------------------------------------------------------------------

    def operand(self, place: int) -> WrittenOperand:
        """Return the operand at an index."""
        if place >= len(self.operands):
            raise Refused(f"{self.one.opcode} has {len(self.operands)} operands")
        return self.operands[place]

    def reader(self, place: int, kind: Kind | str) -> Reader:
        """Return a function of a frame that reads a source operand."""
        return self.read(self.operand(place), kind)

    def writer(self, place: int, kind: Kind | str) -> Writer:
        """Return a function of a frame and values that writes a destination operand."""
        return self.write(self.operand(place), kind)

    def read(self, operand: WrittenOperand | str, kind: Kind | str) -> Reader:
        """Return a function of a frame that reads an operand as values of a kind: one per thread, or one for all
        threads.
        """
        one = operand_of(operand) if isinstance(operand, str) else operand
        wanted = KINDS[kind] if isinstance(kind, str) else kind
        if one.kind is OperandKind.IMMEDIATE:
            value = constant(one, wanted)
            return lambda f: value
        if one.kind is OperandKind.NEGATED:
            key = self.key(one.base, KINDS["pred"])
            return lambda f: ~f.get(key)
        if one.kind is not OperandKind.REGISTER:
            raise Refused(f"the operand {one.text} of {self.one.opcode} is not a register")
        if one.base in ("WARP_SZ",):
            value = wanted.dtype.type(32)
            return lambda f: value
        if one.base.startswith("%") and self.code.register(self.function, one.base) is None:
            return self.special(one.base, wanted)
        if self.code.register(self.function, one.base) is None:
            return self.symbol_address(one, wanted)
        return self.register_reader(one.base, wanted)

    def register_reader(self, name: str, kind: Kind) -> Reader:
        """Return a function of a frame that reads a register as values of a kind; a wider register gives its lower
        bits.
        """
        bits = self.bits_of(name)
        if bits == kind.bits or (kind.bits == 8 and bits == 8):
            if kind.bits == 8:
                return _narrowed(self.key(name, KINDS["u16"]), kind.dtype)
            key = self.key(name, kind)
            return lambda f: f.get(key)
        if bits < kind.bits:
            raise Refused(f"the register {name} has {bits} bits, but {self.one.opcode} reads {kind.bits}")
        return _narrowed(16 * self.slot(name) + _UNSIGNED[max(bits, 16)], kind.dtype)

    def write(self, operand: WrittenOperand | str, kind: Kind | str) -> Writer:
        """Return a function of a frame and values that writes a destination. Values narrower than the register are
        zero-extended, or sign-extended if the kind is signed.
        """
        one = operand_of(operand) if isinstance(operand, str) else operand
        wanted = KINDS[kind] if isinstance(kind, str) else kind
        if one.kind is OperandKind.SINK:
            return lambda f, value: None
        if one.kind is not OperandKind.REGISTER or self.code.register(self.function, one.base) is None:
            raise Refused(f"the operand {one.text} of {self.one.opcode} is not a declared register")
        bits = max(self.bits_of(one.base), 16) if wanted.bits != 1 else self.bits_of(one.base)
        if bits < wanted.bits:
            raise Refused(f"the register {one.base} has {bits} bits, but {self.one.opcode} writes {wanted.bits}")
        if bits == wanted.bits:
            key = 16 * self.slot(one.base) + wanted.code
            return lambda f, value: f.put(key, value)
        if wanted.letter == "p":
            raise Refused(f"the register {one.base} of {self.one.opcode} is not a predicate")
        table = _SIGNED if wanted.letter == "s" else _UNSIGNED
        key = 16 * self.slot(one.base) + table[bits]
        narrow = wanted.dtype
        if wanted.letter == "f":
            narrow = np.dtype(f"uint{wanted.bits}")
            return lambda f, value: f.put(key, np.asarray(value, wanted.dtype).view(narrow))
        return lambda f, value: f.put(key, np.asarray(value).astype(narrow, copy=False))

    def slot(self, name: str) -> int:
        """The row index of a register in its bank."""
        return self.code.slot(self.function, name)

    def bits_of(self, name: str) -> int:
        """The width of a register in bits."""
        found = self.code.register(self.function, name)
        if found is None:
            raise Refused(f"{name} is not a declared register")
        return 1 if found == "pred" else KINDS[found].bits

    def key(self, name: str, kind: Kind) -> int:
        """The key (see `threads`) of a register's row, viewed as a kind of the register's width."""
        bits = self.bits_of(name)
        if (bits == 1) != (kind.bits == 1) or (bits != kind.bits and max(bits, 16) != max(kind.bits, 16)):
            raise Refused(f"the register {name} has {bits} bits, but {self.one.opcode} takes {kind.bits}")
        return 16 * self.slot(name) + kind.code

    def predicate(self, place: int) -> Reader:
        """Return a function of a frame that reads a predicate, a negated predicate or a constant."""
        return self.read(self.operand(place), "pred")

    def elements(self, place: int) -> tuple[str, ...]:
        """The names of the registers in a vector operand, or of the single register."""
        one = self.operand(place)
        return one.elements if one.kind is OperandKind.VECTOR else (one.text,)

    def constant(self, place: int) -> int:
        """The value of an operand that must be an immediate."""
        one = self.operand(place)
        if one.value is None:
            raise Refused(f"the operand {one.text} of {self.one.opcode} must be a constant")
        return one.value

    def address(self, place: int) -> Address:
        """Parse the address operand at an index."""
        return self.address_of(self.operand(place))

    def address_of(self, one: WrittenOperand) -> Address:
        """Parse an address operand, or the address of a tensor operand."""
        if one.kind not in (OperandKind.ADDRESS, OperandKind.TENSOR):
            raise Refused(f"the operand {one.text} of {self.one.opcode} is not an address")
        name = one.base
        register = self.code.register(self.function, name)
        if register is not None:
            bits = KINDS[register].bits
            kind = KINDS["u64" if bits == 64 else "u32"]
            return Address(self.register_reader(name, kind), one.added)
        if name.startswith("%"):
            raise Refused(f"the register {name} of {self.one.opcode} is not declared")
        if name.lstrip("+-")[:1].isdigit():
            number = operand_of(name).value or 0
            return Address(lambda f: np.uint64(number % 2**64), one.added)
        symbol, space = self.code.symbol(self.function, name)
        return Address(None, one.added, symbol, space)

    def symbol_address(self, one: WrittenOperand, kind: Kind) -> Reader:
        """Return a function of a frame that computes the address of a symbol in its own state space, as `mov` does."""
        base, _, rest = one.text.partition("+")
        key, space = self.code.symbol(self.function, base.strip())
        added = operand_of(rest.strip()).value or 0 if rest.strip() else 0
        dtype = kind.dtype
        if space == "shared":
            offsets = self.code.shared_offsets
            return lambda f: (f.m.shared_window(f) + (offsets[key] + added)).astype(dtype)
        if space == "local":
            offset, framed = self.code.local_place(key)
            start = offset + added
            if framed:
                return lambda f: (f.m.frame_starts(f) + start).astype(dtype)
            return lambda f: dtype.type(start)
        if space == "function":
            number = self.code.addresses[key] + added
            return lambda f: dtype.type(number)
        if space == "entry":
            start = self.code.parameter_offsets[key] + added
            return lambda f: dtype.type(f.m.memory.parameters.address + start)
        return lambda f: dtype.type(f.m.memory.symbols[key] + added)

    def special(self, name: str, kind: Kind) -> Reader:
        """Return a function of a frame that reads a special register."""
        build = self.code.specials.get(name)
        if build is None and name.startswith("%envreg"):
            build = self.code.specials["%envreg0"]  # the driver's values are 0 in all that no header reads
        if build is None:
            raise Refused(f"{name} is not declared, and is not an emulated special register")
        reader: Reader = build(self, kind)
        return reader

    # ---- faults ------------------------------------------------------------------------------------------------------

    def fault(self, rule: str, text: str, frame: Frame | None = None, source: str = "", **facts: object) -> Fault:
        """Make the fault that ends a run at this instruction."""
        if frame is not None:
            facts = {"threads": frame.text(), **facts}
        return Fault(finding(rule, text, self.one, files=self.code.files, source=source, facts=facts))


def _narrowed(key: int, dtype: Any) -> Reader:
    return lambda f: f.get(key).astype(dtype)


def constant(one: WrittenOperand, kind: Kind) -> Any:
    """Convert an immediate to a value of a kind."""
    if one.value is not None:
        if kind.letter == "p":
            return np.bool_(one.value != 0)
        if kind.letter == "f" and kind.bits > 16:
            return kind.dtype.type(one.value)
        bits = min(kind.bits, 64)
        unsigned = np.dtype(f"uint{bits}").type(one.value % (1 << bits))
        return unsigned.view(kind.dtype) if bits == 8 * kind.dtype.itemsize else unsigned
    text = one.text
    if text[:2] in ("0f", "0F"):
        raw = np.uint32(int(text[2:], 16))
        single = raw.view(np.float32)
        if kind.letter == "f":
            return single if kind.bits == 32 else kind.dtype.type(single)
        return raw.astype(kind.dtype) if kind.bits >= 32 else kind.dtype.type(int(raw) & (1 << kind.bits) - 1)
    if text[:2] in ("0d", "0D"):
        wide = np.uint64(int(text[2:], 16))
        return wide.view(np.float64).astype(kind.dtype) if kind.letter == "f" else wide.astype(kind.dtype)
    number = float_immediate(text)
    if number is None:
        raise Refused(f"{text} is not a known constant")
    if kind.letter == "f":
        return kind.dtype.type(number)
    if kind.bits == 64:
        return np.uint64(struct.unpack("<Q", struct.pack("<d", number))[0])
    return np.float32(number).view(np.uint32).astype(kind.dtype)


def many(values: Sequence[Any], frame: Frame) -> Array:
    """Stack k values or rows into an array (k, n)."""
    return np.stack([broadcast(value, frame) for value in values])
