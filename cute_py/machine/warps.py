"""Class `Warps`: runs PTX instructions without a launch, on named registers and the shared memory of one block.

    warps = Warps(1, shared=1024)                registers by name, one value per thread
    warps.write("%a", words)                         (32, n) uint32: %a0, %a1, ...
    warps.run("mma.sync... {%d0, ...}, {%a0, ...}, {%b0, %b1}, {%c0, ...};")
    warps.read("%d", 4)                               (32, 4) uint32

Registers need no declaration: the first instruction that writes a register determines its width. Shared memory begins
at address 0. `Warps` supports all instructions of kernels; copies and products complete when they are issued.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from cute_py.argument_checks import expect, expect_integer, refuse_mask
from cute_py.errors import InvalidTypeError, InvalidValueError, counted, given, shortened
from cute_py.machine.code import Code
from cute_py.machine.faults import Fault
from cute_py.machine.instructions import special
from cute_py.machine.kinds import KINDS
from cute_py.machine.memory import Memory
from cute_py.machine.schedule import Machine, Shape, Totals
from cute_py.machine.table import decoded
from cute_py.machine.threads import LANES
from cute_py.ptx.parse import OperandKind, Variable, WrittenOperand
from cute_py.ptx.source import Module, SourceFunction, SourceInstruction, operand_of, read_body
from cute_py.targets import NEWEST_VERSION

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array: TypeAlias = NDArray[Any]

MAX_WARPS: Final = 32
MAX_SHARED: Final = 256 << 10
LIMIT: Final = 10**8
"""Maximum number of instructions of all threads that one text may execute."""

_WIDTHS: Final = {np.dtype(np.bool_): "pred", np.dtype(np.uint32): "b32", np.dtype(np.uint64): "b64"}
_DTYPES: Final = {"pred": np.bool_, "b32": np.uint32, "b64": np.uint64}
_CODES: Final = {"pred": "pred", "b32": "u32", "b64": "u64"}
_WRITES_NOTHING: Final = ("st", "red", "bar", "barrier", "bra", "cp", "fence", "stmatrix", "prefetch", "wgmma.fence")


class Warps:
    """The registers and shared memory of one block, which run PTX instructions.

    Args:
        warps: number of warps, 1 to 32; 4 are a warpgroup.
        shared: the size of shared memory in bytes, or its initial bytes. Shared memory begins at address 0.

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
                text = f"shared memory must be a number of bytes, or bytes; got {held.dtype} of shape {held.shape}"
                raise InvalidTypeError(text)
            self.shared = held.copy()
        self.threads = LANES * self.warps
        self._registers: dict[str, Array] = {}

    def __repr__(self) -> str:
        held = ", ".join(self._registers)
        size = counted(self.shared.size, "byte")
        return f"<{counted(self.warps, 'warp')}, {size} of shared memory, registers {shortened(held)}>"

    def write(self, name: str, words: ArrayLike) -> None:
        """Write registers `name`0, `name`1, ... of every thread.

        Args:
            words: array (threads,) or (threads, n) of 32-bit or 64-bit values; integers of other widths are converted
                to 32 bits.
        Raises:
            InvalidTypeError: `words` has another shape, or is not an array of numbers.
        """
        prefix = expect(name, str, "the name of registers")
        held = as_array(words, "what registers hold")
        if held.dtype.kind not in "iuf" or held.shape[:1] != (self.threads,) or held.ndim > 2:
            text = (
                f"the registers of {self.threads} threads must be ({self.threads}, n) words, got {held.dtype} "
                f"{held.shape}"
            )
            raise InvalidTypeError(text)
        wide = np.uint64 if held.dtype in (np.dtype(np.uint64), np.dtype(np.float64)) else np.uint32
        raw = held.view(wide) if held.dtype.kind == "f" and held.dtype.itemsize >= 4 else held.astype(wide)
        for number, column in enumerate(raw.reshape(self.threads, -1).T):
            self._registers[f"{prefix}{number}"] = column.copy()

    def read(self, name: str, count: int) -> Array:
        """Read the registers `name`0, `name`1, ... as words of shape (threads, count).

        Raises:
            InvalidValueError: no instruction has written one of the registers.
        """
        prefix = expect(name, str, "the name of registers")
        columns = []
        for number in range(expect_integer(count, "registers", 1, 256)):
            held = self._registers.get(f"{prefix}{number}")
            if held is None:
                raise _never_written(f"{prefix}{number}")
            columns.append(held)
        return np.stack(columns, axis=1)

    def run(self, text: str) -> None:
        """Run PTX instructions on all threads.

        Raises:
            InvalidValueError: an instruction is not emulated, a register was never written, a shared address is out of
            range or misaligned, or another fault occurs. ParseError: the text is not PTX.
        """
        known = tuple((name, _WIDTHS[held.dtype]) for name, held in self._registers.items())
        code, kinds = _decoded(expect(text, str, "PTX"), known)
        shape = Shape((1, 1, 1), (self.threads, 1, 1), (1, 1, 1), self.shared.size)
        machine = Machine(code, Memory(), shape, np.zeros((1, 3), np.int64), "eager", LIMIT, Totals(), shared_base=0)
        machine.shared[: self.shared.size] = self.shared
        everyone = machine.span(0, self.threads)
        for name, kind in kinds:
            if name in self._registers:
                everyone.put(_key(code, name, kind), self._registers[name].astype(_DTYPES[kind]))
        try:
            machine.run()
        except Fault as fault:
            one = fault.diagnostic
            raise InvalidValueError(one.message, dict(one.facts)) from None
        finally:
            self.shared = machine.shared[: self.shared.size].copy()
        for name, kind in kinds:
            self._registers[name] = everyone.get(_key(code, name, kind)).copy()


def _key(code: Code, name: str, kind: str) -> int:
    return 16 * code.slot("", name) + KINDS[_CODES[kind]].code


def _never_written(name: str) -> InvalidValueError:
    return InvalidValueError(f"the register {name} was never written")


@functools.lru_cache(maxsize=256)
def _decoded(text: str, known: tuple[tuple[str, str], ...]) -> tuple[Code, tuple[tuple[str, str], ...]]:
    """Decode a PTX text, given the known registers; return the code, and (name, type) of all registers."""
    body = read_body(f"{text}\n; exit")
    kinds = dict(known)
    used: dict[str, str] = {}
    unwritten: list[str] = []
    for one in body.instructions:
        _infer(body, one, kinds, used, unwritten)
    function = dataclasses.replace(body, registers={**kinds, **body.registers})
    symbol = Variable("smem", "shared", "b8", 1, 0, 1, "extern")
    module = Module(NEWEST_VERSION, "sm_90a", 64, {"smem": symbol}, {"": function}, {})
    code = decoded(module, function)  # an instruction that does not exist is the first error
    if unwritten:
        raise _never_written(unwritten[0])
    return code, tuple((name, kinds[name]) for name in used)


def _infer(
    body: SourceFunction, one: SourceInstruction, kinds: dict[str, str], used: dict[str, str], unwritten: list[str]
) -> None:
    """Record the types of an instruction's registers, and the registers that it reads but none has written."""
    root = one.opcode.split(".")[0]
    written = 0 if one.opcode.startswith(_WRITES_NOTHING) and not one.opcode.startswith("bar.red") else 1
    if one.predicate is not None:
        _note(body, one.predicate[0], "pred", kinds, used, unwritten)
    for place in [*range(written, len(one.operands)), *range(min(written, len(one.operands)))]:
        operand = one.operands[place]
        address = operand.kind in (OperandKind.ADDRESS, OperandKind.TENSOR)
        for number, name in enumerate(_names(operand)):
            kind = "" if address else _kind_of(one, root, place, number, operand)
            if not (root in ("bra", "call") or name in ("smem", "_", "WARP_SZ") or "." in name):
                _note(body, name, kind, kinds, used, None if place < written else unwritten)


def _note(
    body: SourceFunction,
    name: str,
    kind: str,
    kinds: dict[str, str],
    used: dict[str, str],
    unwritten: list[str] | None,
) -> None:
    """Record the type of a register. `unwritten` lists registers that are read too early; None for a written one."""
    if body.register_type(name) is not None or name in special.TABLE:
        return
    if name not in kinds:
        if unwritten is not None:
            unwritten.append(name)
        kinds[name] = kind or ("b32" if unwritten is None else "b64")  # an address has 64 bits
    elif kind and kind != kinds[name] and not (kind == "b32" and kinds[name] == "b64"):
        kinds[name] = kind
    used[name] = kinds[name]


def _names(operand: WrittenOperand) -> list[str]:
    """The names in an operand that may be registers."""
    if operand.kind is OperandKind.IMMEDIATE:
        return []
    found = [operand.base] if operand.base and not operand.base[0].isdigit() else []
    for text in operand.elements:
        found += _names(operand_of(text)) if text != "_" else []
    return found


def _kind_of(one: SourceInstruction, root: str, place: int, number: int, operand: WrittenOperand) -> str:
    """The type that an instruction gives to a register."""
    parts = one.opcode.split(".")
    named = [part for part in parts if part in KINDS]
    kind = KINDS[named[-1]] if named else KINDS["b32"]
    if operand.kind is OperandKind.NEGATED or (operand.kind is OperandKind.PAIR and (number or root == "setp")):
        return "pred"
    special = {("setp", 0): "pred", ("setp", 3): "pred", ("selp", 3): "pred", ("shl", 2): "b32", ("shr", 2): "b32",
               ("popc", 0): "b32", ("clz", 0): "b32", ("vote", 1): "pred"}  # fmt: skip
    if (root, place) in special:
        return special[root, place]
    if root == "wgmma":
        vector = operand.kind is OperandKind.VECTOR
        return "b32" if vector or (".sp." in one.opcode and place == 3) else "b64" if place < 3 else "pred"
    if root == "cvt":
        kind = KINDS[named[0]] if place == 0 else kind
    if root in ("mul", "mad") and "wide" in parts and place in (0, 3):
        return "b64" if kind.bits == 32 else "b32"
    return "pred" if kind.bits == 1 else "b64" if kind.bits == 64 else "b32"


def as_array(value: ArrayLike, what: str) -> Array:
    """Convert a value to an array with numpy.

    Raises:
        InvalidTypeError: numpy can't convert it.
    """
    refuse_mask(value, what)
    try:
        return np.asarray(value)
    except (ValueError, TypeError):
        raise InvalidTypeError(f"{what} must be an array, got {given(value)}") from None
