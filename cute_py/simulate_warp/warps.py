"""Warps: the registers of a block's threads, its shared memory, and PTX that runs on them.

    warps = Warps(1, shared=1024)                registers by name, one number a thread
    warps.write("%a", words                          (32, n) uint32: %a0, %a1, ...)
    warps.run("mma.sync... {%d0, ...}, {%a0, ...}, {%b0, %b1}, {%c0, ...};")
    warps.read("%d", 4)                               (32, 4) uint32

Threads run in step, one instruction after another, so that a barrier, a fence or a wait changes nothing; what differs
between threads is their predicates. Matrix instructions are collective: a warp's, or a warpgroup's.

Run are: mov, integer arithmetic and logic, setp, selp, prmt, ld and st of shared memory, shfl.sync, ldmatrix, stmatrix,
movmatrix, mma.sync and wgmma. Anything else is refused, and branches are.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from cute_py.argument_checks import expect, expect_choice, expect_integer, refuse_mask
from cute_py.atom.smem_descriptor import Major
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, ParseError, counted, given, shortened
from cute_py.ptx.parse import float_immediate, immediate, split_operands
from cute_py.machine.arithmetic import element_width
from cute_py.machine.matrix import matrix_instruction, run_mma, run_wgmma
from cute_py.machine.operands import bytes_at, put_bytes
from cute_py.machine.moves import load_matrix, shuffle, store_matrix, transpose_matrix

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array: TypeAlias = NDArray[Any]

LANES: Final = 32
GROUP: Final = 128
"""Threads of a warpgroup."""
MAX_WARPS: Final = 32
MAX_SHARED: Final = 256 << 10
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STATEMENT: Final = re.compile(r"(?:@(!?)([%\w$]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.DOTALL)
_ADDRESS: Final = re.compile(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?\w+)\s*)?\]")
_INTEGERS: Final = ("b32", "u32", "s32", "b64", "u64", "s64")
_OPERANDS: Final[Mapping[str, int]] = {"mov": 1, "not": 1, "popc": 1, "mad": 3}
"""Sources of an operation, where they are not two."""
_NOTHING: Final = (
    "bar.",
    "barrier.",
    "fence.",
    "membar.",
    "wgmma.fence",
    "wgmma.commit_group",
    "wgmma.wait_group",
    "ret",
)
"""What changes nothing where all threads run in step."""
_COMPARED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Statement:
    """One instruction: predicate (name, negated), opcode with modifiers, operands."""

    predicate: tuple[str, bool] | None
    opcode: str
    operands: tuple[str, ...]
    text: str


@functools.lru_cache(maxsize=512)
def _statements(text: str) -> tuple[_Statement, ...]:
    """The instructions of a text, without declarations and the braces around them."""
    found = []
    for piece in _COMMENT.sub(" ", text).split(";"):
        body = piece.strip()
        while body.startswith("{") and (
            body[1:].lstrip()[:1] in ("", ".", "@", "{") or body[1:].lstrip()[:1].islower()
        ):
            body = body[1:].lstrip()
        while body.startswith("}"):
            body = body[1:].lstrip()
        if not body or body.startswith(".reg"):
            continue
        parts = _STATEMENT.fullmatch(body)
        if parts is None:
            raise ParseError(f"{given(body)} is no PTX instruction")
        predicate = None if parts[2] is None else (parts[2], parts[1] == "!")
        operands = tuple(split_operands(parts[4])) if parts[4].strip() else ()
        found.append(_Statement(predicate, parts[3], operands, " ".join(body.split())))
    return tuple(found)


def _unsigned(kind: str) -> Any:
    """The numpy type of a register of a PTX type: `b32`, `u64`, `f32`."""
    return np.uint64 if kind.endswith("64") else np.uint32


class Warps:
    """Registers and shared memory of the threads of a block, and PTX run on them.

    Args:
        warps: how many, 1 to 32; 4 are a warpgroup.
        shared: bytes of shared memory, at address 0 and up: how many, or what they hold.

    >>> warps = Warps(1)
    >>> warps.write("%s", np.arange(32))
    >>> warps.run("shfl.sync.bfly.b32 %d0, %s0, 1, 31, 0xffffffff;")
    >>> warps.read("%d", 1)[:4, 0].tolist()
    [1, 0, 3, 2]
    """

    def __init__(self, warps: int = 1, *, shared: int | ArrayLike = 0) -> None:
        self.warps = expect_integer(warps, "the number of warps", 1, MAX_WARPS)
        if isinstance(shared, (int, np.integer)) and not isinstance(shared, bool):
            count = expect_integer(shared, "bytes of shared memory", 0, MAX_SHARED)
            self.shared: Array = np.zeros(count, np.uint8)
        else:
            held = np.frombuffer(shared, np.uint8) if isinstance(shared, bytes) else as_array(shared, "shared memory")
            if held.dtype != np.uint8 or held.ndim != 1 or held.size > MAX_SHARED:
                text = f"shared memory is a number of bytes, or bytes; got {held.dtype} of the shape {held.shape}"
                raise InvalidTypeError(text)
            self.shared = held.copy()
        self.threads = LANES * self.warps
        index = np.arange(self.threads, dtype=np.uint32)
        self._registers: dict[str, Array] = {
            "%tid.x": index,
            "%laneid": index % np.uint32(LANES),
            "%warpid": index // np.uint32(LANES),
            "smem": np.zeros(self.threads, np.uint32),
        }

    def __repr__(self) -> str:
        held = ", ".join(self._registers)
        return (
            f"<{counted(self.warps, 'warp')}, {self.shared.size} bytes of shared memory, registers {shortened(held)}>"
        )

    # ---- registers --------------------------------------------------------------------------------------------------

    def write(self, name: str, words: ArrayLike) -> None:
        """Write registers `name`0, `name`1, ... of every thread.

        Args:
            words: (threads,) or (threads, n), of 32 or 64 bits; integers of other widths become 32 bits.
        Raises:
            InvalidTypeError: another shape, or no numbers.
        """
        prefix = expect(name, str, "the name of registers")
        held = as_array(words, "what registers hold")
        if held.dtype.kind not in "iuf" or held.shape[:1] != (self.threads,) or held.ndim > 2:
            text = f"registers of {self.threads} threads are ({self.threads}, n) words, got {held.dtype} {held.shape}"
            raise InvalidTypeError(text)
        wide = np.uint64 if held.dtype in (np.dtype(np.uint64), np.dtype(np.float64)) else np.uint32
        raw = held.view(wide) if held.dtype.kind == "f" and held.dtype.itemsize >= 4 else held.astype(wide)
        for number, column in enumerate(raw.reshape(self.threads, -1).T):
            self._registers[f"{prefix}{number}"] = column.copy()

    def read(self, name: str, count: int) -> Array:
        """The registers `name`0, `name`1, ... as (threads, count) words.

        Raises:
            InvalidValueError: a register that was never written.
        """
        prefix = expect(name, str, "the name of registers")
        columns = [self._register(f"{prefix}{n}") for n in range(expect_integer(count, "registers", 1, 256))]
        return np.stack(columns, axis=1)

    def _register(self, name: str) -> Array:
        found = self._registers.get(name)
        if found is None:
            raise InvalidValueError(f"the register {name} was never written")
        return found

    # ---- running ----------------------------------------------------------------------------------------------------

    def run(self, text: str) -> None:
        """Run PTX instructions, one after another, on all threads.

        Raises:
            InvalidValueError: an instruction that is not emulated, a register that was never written, a shared address
                out of range or not aligned. ParseError: no PTX.
        """
        for statement in _statements(expect(text, str, "PTX")):
            self._run(statement)

    def _run(self, one: _Statement) -> None:
        opcode = one.opcode
        if opcode.startswith(_NOTHING):
            return
        active = None
        if one.predicate is not None:
            name, negated = one.predicate
            active = self._register(name).astype(bool) ^ negated
        for start, run in _RUNS:
            if opcode.startswith(start):
                try:
                    run(self, one, active)
                except CuteError:
                    raise
                except (LookupError, ValueError, StopIteration) as problem:
                    raise ParseError(f"{given(one.text)} has other operands than {start} takes") from problem
                return
        facts = {"instruction": one.text, "emulated": "see cute_py.simulate_warp.warps"}
        raise InvalidValueError(f"{given(opcode)} is not emulated", facts)

    def _value(self, text: str, kind: str) -> Array:
        """An operand as (threads,) numbers of a PTX type."""
        held = self._registers.get(text)
        wanted = _unsigned(kind)
        if held is not None:
            return held.astype(wanted, copy=False)
        number = immediate(text)
        if number is None:
            real = float_immediate(text)
            if real is None or kind != "f32":
                return self._register(text)  # says that it was never written
            number = int(np.float32(real).view(np.uint32))
        return np.full(self.threads, number % (1 << 8 * np.dtype(wanted).itemsize), wanted)

    def _write(self, name: str, value: Array, active: Array | None) -> None:
        if name == "_":
            return
        if active is not None:
            before = self._registers.get(name)
            value = np.where(active, value, np.zeros_like(value) if before is None else before)
        self._registers[name] = value

    def _list(self, text: str, kind: str) -> Array:
        """`{%a0, %a1}` as (threads, n)."""
        return np.stack([self._value(x, kind) for x in _names(text)], axis=1)

    def _write_list(self, text: str, words: Array) -> None:
        for name, column in zip(_names(text), words.T, strict=True):
            self._write(name, column.copy(), None)

    def _addresses(self, text: str) -> Array:
        parts = _ADDRESS.fullmatch(text)
        if parts is None:
            raise ParseError(f"{given(text)} is no address")
        step = 0 if parts[2] is None else immediate(parts[2])
        found: Array = self._value(parts[1], "b64").astype(np.int64) + (step or 0)
        return found

    def _simple(self, one: _Statement, active: Array | None) -> None:
        """Arithmetic and logic: the operation is the first word, the type the last."""
        parts = one.opcode.split(".")
        operation, kind = parts[0], parts[-1]
        multiplies = operation in ("mul", "mad")
        known = kind in _INTEGERS or (operation == "mov" and kind in ("f32", "f64"))
        if not known or len(parts) != 2 + multiplies or (multiplies and parts[1] not in ("lo", "wide")):
            raise InvalidValueError(f"{given(one.opcode)} is not emulated", {"emulated": "32-bit and 64-bit integers"})
        if len(one.operands) != 1 + _OPERANDS.get(operation, 2):
            raise ParseError(f"{given(one.text)} has {len(one.operands)} operands")
        wide = "u64" if multiplies and parts[1] == "wide" else kind
        signed = kind.startswith("s")
        values = []
        for place, text in enumerate(one.operands[1:]):
            plain = operation in ("shl", "shr") and place == 1
            value = self._value(text, "u32" if plain else wide if place == 2 else kind)
            values.append(value.view(np.dtype(value.dtype).name[1:]) if signed and not plain else value)
        bits = 8 * np.dtype(_unsigned(kind)).itemsize
        with np.errstate(divide="ignore", over="ignore"):
            result = _ARITHMETIC[operation](values, bits, wide)
        self._write(one.operands[0], np.asarray(result).astype(_unsigned(wide)), active)

    def _convert(self, one: _Statement, active: Array | None) -> None:
        to, source = one.opcode.split(".")[-2:]
        self._write(one.operands[0], self._value(one.operands[1], source).astype(_unsigned(to)), active)

    def _compare(self, one: _Statement, active: Array | None) -> None:
        parts = one.opcode.split(".")
        kind = parts[-1]
        left, right = (self._value(x, kind) for x in one.operands[1:3])
        if kind.startswith("s"):
            left, right = (x.view(np.dtype(x.dtype).name[1:]) for x in (left, right))
        found = _COMPARED[parts[1]](left, right)
        if len(parts) == 4:
            third = one.operands[3]
            other = self._register(third.removeprefix("!")).astype(bool) ^ third.startswith("!")
            found = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[parts[2]](found, other)
        self._write(one.operands[0], found, active)

    def _select(self, one: _Statement, active: Array | None) -> None:
        kind = one.opcode.split(".")[-1]
        chosen = self._register(one.operands[3]).astype(bool)
        self._write(
            one.operands[0],
            np.where(chosen, self._value(one.operands[1], kind), self._value(one.operands[2], kind)),
            active,
        )

    def _permute(self, one: _Statement, active: Array | None) -> None:
        parts = one.opcode.split(".")
        if parts[-1] != "b32":
            raise InvalidValueError(f"{given(one.opcode)} is not emulated; prmt.b32 without a mode is")
        low, high, control = (self._value(x, "b32").astype(np.uint64) for x in one.operands[1:4])
        both = low | high << np.uint64(32)
        found = np.zeros(self.threads, np.uint64)
        for place in range(4):
            field = control >> np.uint64(4 * place) & np.uint64(15)
            byte = both >> (field & np.uint64(7)) * np.uint64(8) & np.uint64(0xFF)
            signs = np.where(byte & np.uint64(0x80), np.uint64(0xFF), np.uint64(0))
            found |= np.where(field & np.uint64(8), signs, byte) << np.uint64(8 * place)
        self._write(one.operands[0], found.astype(np.uint32), active)

    def _shuffle(self, one: _Statement, active: Array | None) -> None:
        mode = one.opcode.split(".")[2]
        if one.opcode != f"shfl.sync.{expect_choice(mode, ('up', 'down', 'bfly', 'idx'), 'a mode of shfl')}.b32":
            raise InvalidValueError(f"{given(one.opcode)} is not emulated; shfl.sync of b32 is")
        name, _, inside_name = one.operands[0].partition("|")
        value, source, control = (self._value(x, "b32") for x in one.operands[1:4])
        shape = (self.warps, LANES)
        found, inside = shuffle(
            mode, value.reshape(shape), source.astype(np.int64).reshape(shape), control.astype(np.int64).reshape(shape)
        )
        self._write(name.strip(), found.reshape(-1), active)
        if inside_name:
            self._write(inside_name.strip(), inside.reshape(-1), active)

    def _load(self, one: _Statement, active: Array | None) -> None:
        width, names = _access(one.opcode, one.operands[0])
        active = np.ones(self.threads, bool) if active is None else active
        raw = np.zeros((self.threads, width * len(names)), np.uint8)
        raw[active] = bytes_at(self.shared, self._addresses(one.operands[1])[active], raw.shape[1], "a load")
        for number, name in enumerate(names):
            part = np.ascontiguousarray(raw[:, number * width : (number + 1) * width])
            value = part.view(f"uint{8 * width}")[:, 0].astype(np.uint64 if width == 8 else np.uint32)
            self._write(name, value, active)

    def _store(self, one: _Statement, active: Array | None) -> None:
        width, names = _access(one.opcode, one.operands[1])
        kind = "b64" if width == 8 else "b32"
        values = [np.ascontiguousarray(self._value(x, kind).astype(f"uint{8 * width}")) for x in names]
        raw = np.concatenate([value.view(np.uint8).reshape(-1, width) for value in values], axis=1)
        addresses = self._addresses(one.operands[0])
        active = np.ones(self.threads, bool) if active is None else active
        put_bytes(self.shared, addresses[active], raw[active], "a store")

    def _matrices(self, one: _Statement, active: Array | None) -> None:
        """ldmatrix, stmatrix, movmatrix, of every warp."""
        parts = one.opcode.split(".")
        if parts[-1] != "b16" or "m8n8" not in parts:
            raise InvalidValueError(f"{given(one.opcode)} is not emulated; matrices of m8n8 and b16 are")
        _expect_all(one, active)
        transposed = "trans" in parts
        if parts[0] == "movmatrix":
            value = self._value(one.operands[1], "b32").reshape(self.warps, LANES)
            self._write(one.operands[0], np.concatenate([transpose_matrix(x) for x in value]), None)
            return
        load = parts[0] == "ldmatrix"
        registers, address = one.operands if load else one.operands[::-1]
        count = int(next(x for x in parts if re.fullmatch(r"x[124]", x))[1:])
        if len(_names(registers)) != count:
            raise InvalidValueError(f"{given(one.opcode)} has {len(_names(registers))} registers; must be {count}")
        addresses = self._addresses(address).reshape(self.warps, LANES)
        if load:
            found = [load_matrix(self.shared, x, count, transposed) for x in addresses]
            self._write_list(registers, np.concatenate(found))
        else:
            words = self._list(registers, "b32").reshape(self.warps, LANES, count)
            for x, y in zip(addresses, words, strict=True):
                store_matrix(self.shared, x, y, transposed)

    def _mma(self, one: _Statement, active: Array | None) -> None:
        _expect_all(one, active)
        found = matrix_instruction(one.opcode)
        kind = "b64" if found.a == "f64" else "b32"
        if len(one.operands) != 4:
            raise InvalidValueError("mma.sync has the operands D, A, B and C", {"instruction": one.text})
        a, b, c = (self._list(x, kind) for x in one.operands[1:])
        for operand, words in (("A", a), ("B", b), ("C", c)):
            _expect_count(one, operand, words, found.atom.registers[operand][0])
        parts = [run_mma(found, *(x[w : w + LANES] for x in (a, b, c))) for w in range(0, self.threads, LANES)]
        self._write_list(one.operands[0], np.concatenate(parts))

    def _wgmma(self, one: _Statement, active: Array | None) -> None:
        _expect_all(one, active)
        if self.warps % 4:
            raise InvalidValueError(f"wgmma runs on warpgroups of 4 warps; here are {self.warps}")
        d, a, b, *rest = one.operands
        in_registers = a.startswith("{")
        found = matrix_instruction(one.opcode, in_registers)
        metadata = None
        if found.sparse:
            metadata = self._value(rest[0], "b32")
            if immediate(rest[1]) != 0:
                raise InvalidValueError("a sparse wgmma of another selector than 0", {"instruction": one.text})
            rest = rest[2:]
        scale, *rest = rest
        scales = 0 if found.d == "s32" else 2
        count = scales + (2 - in_registers if element_width(found.a) == 16 else 0)
        if len(rest) != count:
            text = f"wgmma of {found.a} has {count} immediates after the scale of D, got {len(rest)}"
            raise InvalidValueError(text, {"instruction": one.text})
        words = self._list(d, "b32")
        _expect_count(one, "D", words, found.atom.registers["C"][0])
        numbers = [immediate(x) for x in rest]
        majors = numbers[2:]
        if in_registers:
            majors = [0, *majors]
        first, second = ([Major.MN if x else Major.K for x in majors] + [Major.K, Major.K])[:2]
        negated = (numbers[:1] == [-1], numbers[1:2] == [-1])
        known = immediate(scale)
        adds = self._register(scale).astype(bool) if known is None else np.full(self.threads, bool(known))
        words = np.where(adds[:, None], words, np.zeros_like(words))
        left = self._list(a, "b32") if in_registers else self._value(a, "b64")
        right = self._value(b, "b64")
        for start in range(0, self.threads, GROUP):
            part = slice(start, start + GROUP)
            for x in (right, *(() if in_registers else (left,))):
                if (x[part] != x[start]).any():
                    text = "the threads of a warpgroup have different descriptors"
                    raise InvalidValueError(text, {"instruction": one.text})
            operands = left[part] if in_registers else int(left[start]), int(right[start]), words[part]
            selected = None if metadata is None else metadata[part]
            words[part] = run_wgmma(found, self.shared, *operands, (first, second), negated, selected)
        self._write_list(d, words)


def as_array(value: ArrayLike, what: str) -> Array:
    """An array of anything that numpy takes for one.

    Raises:
        InvalidTypeError: numpy takes it for none.
    """
    refuse_mask(value, what)
    try:
        return np.asarray(value)
    except (ValueError, TypeError):
        raise InvalidTypeError(f"{what} is an array, got {given(value)}") from None


def _names(text: str) -> list[str]:
    """`{%a0, %a1}`, or one name."""
    return split_operands(text[1:-1]) if text.startswith("{") else [text]


def _access(opcode: str, registers: str) -> tuple[int, list[str]]:
    """(bytes of one register, registers) of a load or store; `.v2` and `.v4` name a list."""
    parts = opcode.split(".")
    names = _names(registers)
    vector = {1: [], 2: ["v2"], 4: ["v4"]}.get(len(names))
    kind = parts[-1]
    unsigned = kind in ("b32", "b64", "u8", "u16", "u32", "u64", "b8", "b16", "f32", "f64", "s32", "s64")
    if parts[1] not in ("shared", "shared::cta") or parts[2:-1] != vector or not unsigned:
        raise InvalidValueError(f"{given(opcode)} is not emulated; loads and stores of shared memory without signs are")
    return int(kind[1:]) // 8, names


def _expect_all(one: _Statement, active: Array | None) -> None:
    if active is not None and not active.all():
        raise InvalidValueError("a collective instruction of some threads", {"instruction": one.text})


def _expect_count(one: _Statement, operand: str, words: Array, count: int) -> None:
    if words.shape[1] != count:
        facts = {"instruction": one.text}
        raise InvalidValueError(f"operand {operand} has {words.shape[1]} registers; must be {count}", facts)


_ARITHMETIC: Final[Mapping[str, Callable[[list[Any], int, str], Any]]] = {
    "mov": lambda v, bits, kind: v[0],
    "add": lambda v, bits, kind: v[0] + v[1],
    "sub": lambda v, bits, kind: v[0] - v[1],
    "mul": lambda v, bits, kind: v[0].astype(_unsigned(kind)) * v[1].astype(_unsigned(kind)),
    "mad": lambda v, bits, kind: v[0].astype(_unsigned(kind)) * v[1].astype(_unsigned(kind)) + v[2],
    "div": lambda v, bits, kind: v[0] // np.maximum(v[1], 1),
    "rem": lambda v, bits, kind: v[0] % np.maximum(v[1], 1),
    "and": lambda v, bits, kind: v[0] & v[1],
    "or": lambda v, bits, kind: v[0] | v[1],
    "xor": lambda v, bits, kind: v[0] ^ v[1],
    "not": lambda v, bits, kind: ~v[0],
    "popc": lambda v, bits, kind: np.bitwise_count(v[0]),
    "shl": lambda v, bits, kind: np.where(v[1] < bits, v[0] << np.minimum(v[1], bits - 1).astype(v[0].dtype), 0),
    "shr": lambda v, bits, kind: np.where(v[1] < bits, v[0] >> np.minimum(v[1], bits - 1).astype(v[0].dtype), 0),
}
"""Operation -> its result of operands of the type, its width, and the type of the result."""

_RUNS: Final[tuple[tuple[str, Callable[[Warps, _Statement, Any], None]], ...]] = (
    ("mma.sync", Warps._mma),
    ("wgmma.mma_async.", Warps._wgmma),
    *((f"{x}matrix.sync.", Warps._matrices) for x in ("ld", "st", "mov")),
    ("shfl.sync.", Warps._shuffle),
    ("ld.shared", Warps._load),
    ("st.shared", Warps._store),
    ("setp.", Warps._compare),
    ("selp.", Warps._select),
    ("prmt.", Warps._permute),
    ("cvt.u", Warps._convert),
    *((f"{x}.", Warps._simple) for x in _ARITHMETIC),
)
"""How an opcode starts -> what runs it."""
