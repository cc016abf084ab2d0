"""Values of registers, as far as the text of a function determines them: a base plus an offset.

Two operands with equal `Value`s are equal whenever both instructions run in one pass through their block. A register
that is written once has one value for the whole function. A register that is written several times is followed within
each block; at the beginning of a block, it is identified by the instructions that may have written it. The base is 0
for a constant; otherwise it is the index of an expression of symbols, parameters, special registers and results of
non-arithmetic instructions.
"""

from __future__ import annotations

import collections
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from cute_py.ptx.parse import immediate, register_bits
from cute_py.ptx.program import Function, Statement
from cute_py.targets import WARP

Key: TypeAlias = tuple[str | int, ...]
Held = TypeVar("Held")


class Value(NamedTuple):
    """The value `base` + `offset`; with base 0, it is the constant `offset`."""

    base: int
    offset: int


@dataclass(frozen=True, slots=True)
class Event:
    """One instruction with its position (block and index), the values of its operands (for an address, the value of
    the expression in the brackets), and the value of its predicate's register."""

    block: int
    index: int
    statement: Statement
    values: tuple[Value | None, ...]
    guard: Value | None = None


MOST_ALIGNED: Final = 1 << 16
_LEAVES: Final = ("symbol", "entry", "made")
_COPIES: Final = ("mov", "cvta")
_INTEGER: Final = re.compile(r"([bsu])(8|16|32|64)")
_ADDRESS_BITS: Final = 32
"""Minimum width of a conversion that keeps the base of an address: an address in shared memory has this width."""
_ARITHMETIC: Final = "add sub mul mad shl shr and or xor not neg abs min max selp setp bfe bfi prmt shf lop3 rem div"
_PURE: Final = frozenset(f"{_ARITHMETIC} mapa popc clz cnot sad isspacep".split())
_SHUFFLE: Final = "shfl.sync.idx"
_SPECIAL = re.compile(r"%(tid|ntid|ctaid|nctaid|laneid|warpid|cluster_|clusterid|nclusterid|dynamic_smem|total_smem)")
_ADDRESS = re.compile(r"\[\s*+([^\[\]\s+,]+)\s*+(?:\+\s*+(-?\w+))?\s*+(?:,.*)?\]", re.DOTALL)
_NUMBERED = re.compile(r"[%A-Za-z_$][\w$.]*")


def _is_leaf(key: Key) -> bool:
    return key[0] in _LEAVES or str(key[0]).startswith("ld")


def _lowest(number: int) -> int:
    """Return the largest power of 2 that divides a number, at most `MOST_ALIGNED`."""
    return min(number & -number, MOST_ALIGNED) if number else MOST_ALIGNED


class Values:
    """The values of the operands in one function.

    Args:
        wanted: the first parts of opcodes whose instructions become `events`.

    Attributes:
        generic: the registers that may contain a generic address of shared or local memory.
    """

    def __init__(self, function: Function, wanted: frozenset[str]) -> None:
        self._keys: dict[Key, int] = {("constant",): 0}
        self._list: list[Key] = [("constant",)]
        self._roots: dict[int, frozenset[Key]] = {0: frozenset()}
        self._multiples: dict[int, int] = {}
        self.events: list[Event] = []
        writes = collections.Counter(
            name for s in function.statements() for name in registers_written(s) if register_bits(name) is not None
        )
        once: dict[str, Value] = {}
        self.generic = generic_registers(function)
        self._again = {name for name, count in writes.items() if count > 1}
        self._places, self._entering = _reaching(function, self._again)
        for number, block in enumerate(function.blocks):
            here: dict[str, Value] = {}
            for index, statement in enumerate(block.statements):
                if statement.opcode.partition(".")[0] in wanted:
                    held = tuple([self._operand(text, once, here, number) for text in statement.operands])
                    name = statement.predicate.lstrip("@!")
                    guard = self._operand(name, once, here, number) if name else None
                    self.events.append(Event(number, index, statement, held, guard))
                written = registers_written(statement)
                values = self._results(statement, len(written), once, here, number, index)
                for name, value in zip(written, values, strict=True):
                    (once if writes[name] == 1 else here)[name] = value

    def _folded_up(self, base: int, known: dict[int, Held], of: Callable[[Key, list[tuple[Key, Held]]], Held]) -> Held:
        """Evaluate `of` on the expression of a base and on the results of its parts; `known` stores the result of each
        base."""
        todo = [base]
        while todo:
            key = self._list[todo[-1]]
            parts = [] if _is_leaf(key) else [part for part in key[1:] if isinstance(part, int)]
            waiting = [part for part in parts if part not in known]
            if waiting:
                todo += waiting
            else:
                known[todo.pop()] = of(key, [(self._list[part], known[part]) for part in parts])
        return known[base]

    def roots(self, value: Value) -> frozenset[Key]:
        """Return the sources that a value is computed from: symbols, loaded values, and results of other
        instructions."""

        def of(key: Key, parts: list[tuple[Key, frozenset[Key]]]) -> frozenset[Key]:
            return frozenset((key,)) if _is_leaf(key) else frozenset[Key]().union(*(held for _, held in parts))

        return self._folded_up(value.base, self._roots, of)

    def multiple(self, value: Value, alignments: Mapping[str, int]) -> int:
        """Return a power of 2, at most `MOST_ALIGNED`, that divides the base of a value.

        Args:
            alignments: the alignment in bytes that each symbol's declaration gives; it must be the same in every call.
        """

        def of(key: Key, parts: list[tuple[Key, int]]) -> int:
            held = [multiple for _, multiple in parts]
            match str(key[0]).partition(".")[0]:
                case "constant":
                    return MOST_ALIGNED
                case "number":
                    return _lowest(int(key[1]))
                case "symbol":
                    return _lowest(alignments.get(str(key[1]), 1))
                case "sum":
                    return min(held)
            if len(held) < 4 or len(held) % 2 or ".hi." in str(key[0]):
                return 1
            # The parts are the base and the number of each operand.
            each = [min(pair) for pair in zip(held[::2], held[1::2], strict=True)]
            match str(key[0]).partition(".")[0]:
                case "shl":
                    by = parts[3][0]
                    fixed = parts[2][0] == ("constant",) and by[0] == "number" and 0 <= int(by[1]) < 64
                    return min(each[0] << int(by[1]), MOST_ALIGNED) if fixed else each[0]
                case "mul":
                    return min(each[0] * each[1], MOST_ALIGNED)
                case "mad" if len(each) == 3:
                    return min(each[0] * each[1], each[2], MOST_ALIGNED)
                case "and":
                    return max(each[:2])
                case "or" | "xor" | "sub" | "add" | "selp" | "min" | "max":
                    return min(each[:2])
            return 1

        return self._folded_up(value.base, self._multiples, of)

    def numbers(self, value: Value, specials: Mapping[str, Sequence[int]], count: int) -> list[int] | None:
        """Return the number that a value is in each of `count` threads; None if it is not computed from constants, from
        special registers of `specials`, and from shuffles of such values.

        A shuffle is computed if all lanes of a warp read the same lane.
        """
        known: dict[int, list[int] | None] = {}

        def of(key: Key, parts: list[tuple[Key, list[int] | None]]) -> list[int] | None:
            if key[0] == "special":
                held = specials.get(str(key[1]))
                return None if held is None else list(held)
            if key[0] in ("constant", "number"):
                return [int(key[1]) if key[0] == "number" else 0] * count
            numbers = [held for _, held in parts if held is not None]
            if len(numbers) < len(parts) or len(parts) < 2 or key[1:2] == ("1",):
                return None
            if key[0] == "sum":
                return [sum(each) for each in zip(*numbers, strict=True)]
            given = [
                [a + b for a, b in zip(*pair, strict=True)] for pair in zip(numbers[::2], numbers[1::2], strict=True)
            ]
            if str(key[0]).startswith(_SHUFFLE):
                return _from_one_lane(given)
            made = [computed(str(key[0]), each) for each in zip(*given, strict=True)]
            found = [one for one in made if one is not None]
            return found if len(found) == count else None

        base = self._folded_up(value.base, known, of)
        return None if base is None else [one + value.offset for one in base]

    def symbols(self, value: Value) -> frozenset[str]:
        """Return the names of the symbols among the roots of a value."""
        return frozenset(str(key[1]) for key in self.roots(value) if key[0] == "symbol")

    def specials(self, value: Value) -> frozenset[str]:
        """Return the names of the special registers that a value is computed from, which `roots` omits."""
        known: dict[int, frozenset[str]] = {}

        def of(key: Key, parts: list[tuple[Key, frozenset[str]]]) -> frozenset[str]:
            if key[0] == "special":
                return frozenset((str(key[1]),))
            return frozenset[str]().union(*(held for _, held in parts))

        return self._folded_up(value.base, known, of)

    def symbol(self, value: Value) -> str:
        """Return the name of the symbol if a value is the address of a symbol plus its offset, otherwise ''."""
        key = self._list[value.base]
        return str(key[1]) if key[0] == "symbol" else ""

    def is_fixed(self, value: Value) -> bool:
        """Whether a thread reads the same value everywhere, except in loops."""
        return not any(key[0] == "entry" for key in self.roots(value))

    def _intern(self, *key: str | int) -> Value:
        if key not in self._keys:
            self._keys[key] = len(self._list)
            self._list.append(key)
        return Value(self._keys[key], 0)

    def _constant(self, number: int) -> int:
        """Return the base that represents a constant inside a larger expression."""
        return self._intern("number", f"{number}").base

    def _operand(self, text: str, once: dict[str, Value], here: dict[str, Value], block: int) -> Value | None:
        address = _ADDRESS.fullmatch(text) if text.startswith("[") else None
        if address is not None:
            base = self._operand(address[1], once, here, block)
            offset = immediate(address[2]) if address[2] else 0
            return None if base is None or offset is None else _displaced(base, offset, address[1])
        number = immediate(text)
        if number is not None:
            return Value(0, number)
        if not _NUMBERED.fullmatch(text):
            return None
        if text in here:
            return here[text]
        if text in once:
            return once[text]
        if register_bits(text) is not None:
            return self._intern("entry", text, f"{self._entering[block] & self._places.get(text, 0):x}")
        if text.startswith("%"):
            return self._intern("special", text) if _SPECIAL.match(text) else None
        return self._intern("symbol", text)

    def _results(
        self, statement: Statement, count: int, once: dict[str, Value], here: dict[str, Value], block: int, index: int
    ) -> list[Value]:
        """Return the values of the `count` registers that an instruction writes."""
        first, _, rest = statement.opcode.partition(".")
        unknown = [("made", f"{block}.{index}.{place}") for place in range(count)]
        from_table = first == "ld" and rest.startswith(("param", "const"))
        pure = first in _PURE or first == "cvt" or statement.opcode.startswith(_SHUFFLE)
        if statement.predicate or not (first in _COPIES or pure or from_table):
            return [self._intern(*key) for key in unknown]
        given = [self._operand(text, once, here, block) for text in statement.operands[1:]]
        held = [value for value in given if value is not None]
        if len(held) != len(given) or not held:
            return [self._intern(*key) for key in unknown]
        if (
            count == 1
            and not from_table
            and not cuts_generic(statement, self.generic)
            and (folded := self._folded(statement.opcode, held)) is not None
        ):
            return [folded]
        parts = [part for value in held for part in (value.base, self._constant(value.offset))]
        return [self._intern(statement.opcode, f"{place}", *parts) for place in range(count)]

    def _folded(self, opcode: str, held: list[Value]) -> Value | None:
        """Fold copies, sums and operations on constants; return None for other instructions."""
        folded = _folded_value(opcode, held)
        bits = _result_bits(opcode)
        if folded is None and opcode.startswith("add.") and len(held) == 2 and bits and all(one.base for one in held):
            low, high = sorted(held)
            base = self._intern("sum", low.base, high.base).base
            return _wrapped(Value(base, low.offset + high.offset), bits)
        return folded


def _wrapped(value: Value, bits: int) -> Value:
    """Return a value in a register of this width. A constant is not negative; an offset from a base is signed.

    >>> _wrapped(Value(0, -1), 32), _wrapped(Value(7, 0xFFFFFFF0), 32)
    (Value(base=0, offset=4294967295), Value(base=7, offset=-16))
    """
    return Value(value.base, reinterpreted(value.offset, bits, signed=value.base != 0))


def reinterpreted(number: int, bits: int, *, signed: bool) -> int:
    """Return the number that the lowest bits of a register represent."""
    low = number & (1 << bits) - 1
    return low - (1 << bits) if signed and low >> bits - 1 else low


def _displaced(value: Value, offset: int, name: str) -> Value:
    """Return the address `offset` bytes after a value in the register or the symbol of this name."""
    moved = Value(value.base, value.offset + offset)
    bits = register_bits(name)
    return _wrapped(moved, bits) if bits in (32, 64) else moved


def _result_bits(opcode: str) -> int | None:
    """Return the width of the result of an instruction on integers; None for other types, and for saturation.

    >>> [_result_bits(name) for name in ("add.s32", "mul.wide.u16", "cvt.u16.u32", "add.f32", "add.sat.s32")]
    [32, 32, 16, None, None]
    """
    first, *parts = opcode.split(".")
    kinds = parts[-2:] if first == "cvt" else parts[-1:]
    read = [found for kind in kinds if (found := _INTEGER.fullmatch(kind)) is not None]
    if not read or len(read) < len(kinds) or "sat" in parts:
        return None
    return int(read[0][2]) * (2 if "wide" in parts else 1)


def _folded_value(opcode: str, held: Sequence[Value]) -> Value | None:
    """Return the result of a copy, a sum or an operation on constants; None for another instruction, or if more than
    one operand has a base."""
    first, _, kind = opcode.partition(".")
    bits = _result_bits(opcode)
    if first in _COPIES and len(held) == 1:
        return held[0] if bits is None else _wrapped(held[0], bits)
    if bits is None:
        return None
    if first == "cvt" and len(held) == 1:
        return _converted(kind.rpartition(".")[2], held[0], bits)
    if first in ("add", "sub") and len(held) == 2:
        one, other = held
        if other.base and (one.base or first == "sub"):
            return None
        total = one.offset + (other.offset if first == "add" else -other.offset)
        return _wrapped(Value(one.base or other.base, total), bits)
    number = folded_constant(first, kind, held)
    return None if number is None else _wrapped(Value(0, number), bits)


def _converted(kind: str, value: Value, bits: int) -> Value | None:
    """Return a value of the type `kind` in a register of this width; None if the conversion may change an unknown
    value."""
    width = int(kind[1:])
    if not value.base:
        return _wrapped(Value(0, reinterpreted(value.offset, width, signed=kind.startswith("s"))), bits)
    return None if min(width, bits) < _ADDRESS_BITS else _wrapped(value, min(width, bits))


def folded_constant(first: str, kind: str, held: Sequence[Value]) -> int | None:
    """Return the result of an instruction on constants, in the width of its type; None for an unsupported instruction,
    or operands that are not constants.

    Args:
        first: the first part of the opcode. kind: the other parts, or only the last one, the type. If they do not
            state which half of a product is the result, the result is None for a product of more than one half.
        held: the operands.

    >>> folded_constant("mul", "lo.s32", [Value(0, 0xFFFFFFFF), Value(0, 16)])
    -16
    >>> folded_constant("mul", "hi.u32", [Value(0, 256), Value(0, 16)])
    0
    """
    *modes, name = kind.split(".")
    found = _INTEGER.fullmatch(name)
    if found is None or not held or any(value.base for value in held) or "sat" in modes:
        return None
    bits, signed = int(found[2]), found[1] == "s"
    wide = 2 * bits if "wide" in modes else bits
    a, *others = (reinterpreted(value.offset, bits, signed=signed) for value in held)
    b = others[0] if others else 0
    shift = min(reinterpreted(held[1].offset, 32, signed=False), bits) if len(held) == 2 else 0
    match first, len(held):
        case ("mul", 2) | ("mad", 3):
            product = a * b >> bits if "hi" in modes else a * b
            if not modes and reinterpreted(product, bits, signed=signed) != product:
                return None
            added = reinterpreted(held[2].offset, wide, signed=signed) if first == "mad" else 0
            return reinterpreted(product + added, wide, signed=signed)
        case "shl", 2:
            return reinterpreted(a << shift, bits, signed=signed)
        case "shr", 2:
            return a >> shift
        case "and", 2:
            return a & b
        case "or", 2:
            return a | b
        case "xor", 2:
            return a ^ b
        case "not", 1:
            return reinterpreted(~a, bits, signed=signed)
    return None


INTEGER_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip
"""Comparison of setp on integers -> function of two numbers, or of two arrays."""
WHOLE: Final[Mapping[str, Callable[[int, int], int]]] = {
    "add": operator.add, "sub": operator.sub, "min": min, "max": max,
}  # fmt: skip
"""Instructions that add, subtract or choose one of two numbers."""
_LOGICAL: Final[Mapping[str, Callable[[int, int], int]]] = {
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
}  # fmt: skip


def computed(opcode: str, given: Sequence[int]) -> int | None:
    """Return the result of an instruction on integers or predicates; None for an unsupported instruction.

    >>> computed("setp.lt.u32", [3, 32]), computed("add.s32", [-3, 1]), computed("not.pred", [1]), computed("ex2", [1])
    (1, -2, 0, None)
    """
    first, *parts = opcode.split(".")
    kind = parts[-1] if parts else ""
    if kind == "pred":
        if first == "not" and len(given) == 1:
            return 1 - given[0]
        return _LOGICAL[first](*given) if first in _LOGICAL and len(given) == 2 else None
    found = _INTEGER.fullmatch(kind)
    if found is None or "sat" in parts:
        return None
    if first == "cvt" and len(given) == 1:
        value = _converted(kind, Value(0, given[0]), int(found[2]) if len(parts) < 2 else _result_bits(opcode) or 64)
        return None if value is None else value.offset
    numbers = [reinterpreted(number, int(found[2]), signed=found[1] == "s") for number in given[:2]] + [*given[2:]]
    if first == "setp" and parts[0] in INTEGER_COMPARISONS and len(numbers) in (2, 3):
        holds = int(INTEGER_COMPARISONS[parts[0]](*numbers[:2]))
        if len(numbers) == 2:
            return holds if len(parts) == 2 else None
        return _LOGICAL[parts[1]](holds, numbers[2]) if parts[1] in _LOGICAL else None
    if first == "selp" and len(numbers) == 3:
        return numbers[0 if numbers[2] else 1]
    if first in WHOLE and len(numbers) == 2:
        return WHOLE[first](*numbers)
    return folded_constant(first, ".".join(parts), [Value(0, number) for number in given])


def _from_one_lane(given: Sequence[Sequence[int]]) -> list[int] | None:
    """Return the result of shfl.sync.idx in each thread; None unless all threads read one lane of a whole warp.

    Args:
        given: the operands of the instruction in each thread: the value, the lane, the bounds and the mask.

    >>> _from_one_lane([[*range(64)], [0] * 64, [31] * 64, [-1] * 64])[30:34]
    [0, 0, 32, 32]
    """
    if len(given) != 4 or {*given[2]} != {WARP - 1} or {one & 0xFFFFFFFF for one in given[3]} != {0xFFFFFFFF}:
        return None
    lanes = {*given[1]}
    lane = lanes.pop()
    places = [thread // WARP * WARP + lane for thread in range(len(given[0]))]
    if lanes or not 0 <= lane < WARP or places[-1] >= len(places):
        return None
    return [given[0][place] for place in places]


_READ_FIRST: Final = ("bra", "brx", "nanosleep", "setmaxnreg", "stackrestore")


def registers_written(statement: Statement) -> tuple[str, ...]:
    """Return the registers that an instruction writes: the registers of its first operand, unless this is an address or
    the instruction only reads it.

    >>> registers_written(Statement(1, "", "elect.sync", ("_|%p1", "%r2")))
    ('%p1',)
    >>> registers_written(Statement(1, "", "bar.sync", ("%r1", "%r2")))
    ()
    """
    first, *parts = statement.opcode.split(".")
    reads = first in _READ_FIRST or (first in ("bar", "barrier") and "red" not in parts) or parts[:1] == ["dealloc"]
    if not statement.operands or reads:
        return ()
    written = statement.operands[0].removeprefix("_|")
    return tuple(_NUMBERED.findall(written)) if written.startswith(("%", "{")) else ()


_INTO_GENERIC: Final = tuple(f"cvta.{space}" for space in ("shared", "local"))
_DISPLACING: Final = ("mov", "add", "sub", "selp", "mad", "min", "max", "and", "or", "xor")


def generic_registers(function: Function) -> frozenset[str]:
    """Return the registers that may contain a generic address of shared or local memory, which has more than 32 bits.

    Such an address comes from cvta; copies and sums of it are generic too, until cvta.to converts it back.
    """
    found: set[str] = set()
    users: dict[str, list[str]] = collections.defaultdict(list)
    for statement in function.statements():
        names = registers_written(statement)
        if statement.opcode.startswith(_INTO_GENERIC):
            found.update(names)
        elif statement.opcode.partition(".")[0] in _DISPLACING:
            for text in statement.operands[1:]:
                users[text] += names
    todo = list(found)
    while todo:
        new = [name for name in users.get(todo.pop(), ()) if name not in found]
        found.update(new)
        todo += new
    return frozenset(found)


def cuts_generic(statement: Statement, generic: frozenset[str]) -> bool:
    """Whether an instruction converts a generic address to fewer bits. The result is not an address in shared memory.

    >>> cuts_generic(Statement(1, "", "cvt.u32.u64", ("%r1", "%rd1")), frozenset(["%rd1"]))
    True
    """
    parts = statement.opcode.split(".")
    return parts[0] == "cvt" and (_result_bits(statement.opcode) or 64) < 64 and statement.operands[-1] in generic


def _reaching(function: Function, again: set[str]) -> tuple[dict[str, int], list[int]]:
    """Compute, as bits, which writes of the registers in `again` reach the beginning of each block.

    Returns:
        a mapping from each register to the bits of its writes, and for each block, the bits that reach it.
    """
    places: dict[str, int] = collections.defaultdict(int)
    made: list[dict[str, int]] = []
    count = 0
    for block in function.blocks:
        last: dict[str, int] = {}
        for statement in block.statements:
            for name in registers_written(statement):
                if name in again:
                    bit = 1 << count
                    count += 1
                    places[name] |= bit
                    last[name] = last.get(name, 0) | bit if statement.predicate else bit
        made.append(last)
    gone = [sum(places[name] for name in last) for last in made]
    bits = [sum(last.values()) for last in made]
    entering = function.settled([0] * len(made), lambda n, held: (held & ~gone[n]) | bits[n], operator.or_)
    return dict(places), entering


Constant: TypeAlias = tuple[str, int]
"""A symbol, or '', and a number added to it."""


Steps: TypeAlias = list[tuple[int, Statement]]


def statements_behind(function: Function, texts: Iterable[str]) -> dict[int, Steps]:
    """Return, for each block, the statements that compute the operands, with their indices."""
    writers: dict[str, list[tuple[int, int, Statement]]] = collections.defaultdict(list)
    for number, block in enumerate(function.blocks):
        for index, statement in enumerate(block.statements):
            for name in registers_written(statement):
                writers[name].append((number, index, statement))
    seen: set[str] = set()
    found: dict[int, dict[int, Statement]] = collections.defaultdict(dict)
    todo = [name for text in texts for name in _NUMBERED.findall(text)]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            for number, index, statement in writers.get(name, ()):
                found[number][index] = statement
                todo += [part for text in statement.operands[1:] for part in _NUMBERED.findall(text)]
    return {number: sorted(steps.items()) for number, steps in found.items()}


class FirstPass:
    """The values of registers when an instruction runs for the first time, if they are constants.

    Only paths from the start of the function that do not pass through the instruction's block are followed, so that the
    counters of its loop have their first values.

    Args:
        generic: the result of `generic_registers`.
        steps: the statements that the operands depend on, as `statements_behind` returns them.
        place: block and index of the instruction.
    """

    def __init__(
        self, function: Function, generic: frozenset[str], steps: Mapping[int, Steps], place: tuple[int, int]
    ) -> None:
        self._function, self._generic, self._steps, self._place = function, generic, steps, place
        self._before: frozenset[int] = self._coming()
        self._entering: list[dict[str, Constant | None] | None] = [None] * len(function.blocks)
        if function.blocks:
            self._entering[0] = {}
        todo = collections.deque([0] if function.blocks else [])
        while todo:
            number = todo.popleft()
            entered = self._entering[number]
            if entered is None or number == place[0]:
                continue
            left = self._after(number, dict(entered), len(function.blocks[number].statements))
            for after in function.blocks[number].after:
                old = self._entering[after]
                new = left if old is None else _common(old, left)
                if after in self._before and new != old:
                    self._entering[after] = dict(new)
                    todo.append(after)

    def _coming(self) -> frozenset[int]:
        """Return the blocks that have a path to the instruction."""
        seen, todo = {self._place[0]}, [self._place[0]]
        while todo:
            for before in self._function.blocks[todo.pop()].before:
                if before not in seen:
                    seen.add(before)
                    todo.append(before)
        return frozenset(seen)

    def precedes(self, place: tuple[int, int]) -> bool:
        """Whether a path from the start of the function passes a position before the instruction runs for the first
        time."""
        if place[0] == self._place[0]:
            return place[1] < self._place[1]
        return self._entering[place[0]] is not None

    def repeats(self, place: tuple[int, int]) -> bool:
        """Whether a position may be passed twice before the instruction runs for the first time."""
        seen: set[int] = set()
        todo = [] if place[0] == self._place[0] else list(self._function.blocks[place[0]].after)
        while todo:
            number = todo.pop()
            if number not in seen and number != self._place[0] and self._entering[number] is not None:
                seen.add(number)
                todo += self._function.blocks[number].after
        return place[0] in seen

    def operand(self, place: tuple[int, int], text: str) -> Constant | None:
        """Return the value of an operand at a position; for an address, the value inside the brackets."""
        entered = self._entering[place[0]]
        if entered is None:
            return None
        return self._read(text, self._after(place[0], dict(entered), place[1]))

    def _after(self, number: int, held: dict[str, Constant | None], end: int) -> dict[str, Constant | None]:
        """Return the values of registers after the first `end` statements of a block."""
        for index, statement in self._steps.get(number, ()):
            if index >= end:
                break
            names = registers_written(statement)
            made = self._result(statement, held) if len(names) == 1 else None
            for name in names:
                held[name] = made if not statement.predicate or held.get(name) == made else None
        return held

    def _read(self, text: str, held: Mapping[str, Constant | None]) -> Constant | None:
        address = _ADDRESS.fullmatch(text) if text.startswith("[") else None
        if address is not None:
            base, offset = self._read(address[1], held), immediate(address[2]) if address[2] else 0
            if base is None or offset is None:
                return None
            return base[0], _displaced(Value(1 if base[0] else 0, base[1]), offset, address[1]).offset
        number = immediate(text)
        if number is not None:
            return "", number
        return held.get(text) if text in held else (text, 0) if text in self._function.symbols else None

    def _result(self, statement: Statement, held: Mapping[str, Constant | None]) -> Constant | None:
        read = [self._read(text, held) for text in statement.operands[1:]]
        given = [one for one in read if one is not None]
        if len(given) != len(read) or not given or cuts_generic(statement, self._generic):
            return None
        folded = _folded_value(statement.opcode, [Value(1 if name else 0, number) for name, number in given])
        name = next((name for name, _ in given if name), "")
        return None if folded is None else (name if folded.base else "", folded.offset)


def _common(one: Mapping[str, Constant | None], other: Mapping[str, Constant | None]) -> dict[str, Constant | None]:
    """Return the values that are the same on both paths."""
    return {name: value if other.get(name) == value else None for name, value in one.items()} | {
        name: None for name in other if name not in one
    }
