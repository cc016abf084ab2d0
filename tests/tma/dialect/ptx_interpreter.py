"""Runs the small part of PTX that the copies without TMA use, thread by thread, on byte arrays.

Threads run one after the other between barriers. Registers are Python integers; results are cut to the width that the
instruction names. It knows nothing of the copy: only what each instruction does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


@dataclass
class Machine:
    """Global and shared memory, the parameters, and the symbol `tile` at shared address `base`."""

    globals: bytearray
    shared: bytearray
    parameters: Mapping[str, int]
    global_base: int = 1 << 32
    base: int = 1024
    executed: dict[str, int] = field(default_factory=dict)

    def memory(self, space: str, address: int, count: int) -> tuple[bytearray, int]:
        array = self.globals if space == "global" else self.shared
        start = address - (self.global_base if space == "global" else self.base)
        assert 0 <= start <= len(array) - count, f"{space} access of {count} bytes at {start} of {len(array)}"
        return array, start

    def run(self, module: str, threads: int) -> None:
        body = module[module.index("{") + 1 : module.rindex("}")]
        lines = [re.sub(r"//.*", "", line).strip() for line in body.splitlines()]
        program = [line for line in lines if line and not line.startswith(".reg")]
        labels = {line[:-1]: index for index, line in enumerate(program) if line.endswith(":")}
        alive = [self.thread(program, labels, tid) for tid in range(threads)]
        while alive:
            alive = [thread for thread in alive if next(thread, None) is not None]

    def thread(self, program: list[str], labels: dict[str, int], tid: int) -> Iterator[bool]:
        """Yields at each barrier."""
        registers: dict[str, int] = {"%tid.x": tid}

        def value(text: str) -> int:
            if text == "tile":
                return self.base
            return registers[text] if text.startswith("%") else int(text, 0)

        at = 0
        while at < len(program):
            line = program[at].rstrip(";")
            at += 1
            if line.endswith(":"):
                continue
            if line.startswith("@"):
                guard, line = line.split(" ", 1)
                if bool(registers[guard.lstrip("@!")]) == guard.startswith("@!"):
                    continue
            name, _, tail = line.partition(" ")
            operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", tail)
            words = name.split(".")
            self.executed[words[0]] = self.executed.get(words[0], 0) + 1
            if name == "ret":
                return
            if name == "bar.sync":
                yield True
            elif words[0] == "bra":
                at = labels[operands[0]]
            elif words[0] in ("ld", "st"):
                self.move(words, operands, registers, value)
            elif name == "cp.async.ca.shared.global":
                target, source = value(operands[0].strip("[]")), value(operands[1].strip("[]"))
                count, valid = int(operands[2]), value(operands[3])
                array, start = self.memory("global", source, valid)
                data = bytes(array[start : start + valid]) + bytes(count - valid)
                array, start = self.memory("shared", target, count)
                array[start : start + count] = data
            elif words[0] == "cp":
                continue
            else:
                registers[operands[0]] = self.compute(words, [value(text) for text in operands[1:]])

    def move(self, words: list[str], operands: list[str], registers: dict[str, int], value: object) -> None:
        assert callable(value)
        load = words[0] == "ld"
        memory, register = (operands[1], operands[0]) if load else (operands[0], operands[1])
        if "param" in words:
            registers[register] = self.parameters[memory.strip("[]")]
            return
        size = int(words[-1][1:]) // 8
        names = [text.strip() for text in register.strip("{}").split(",")]
        array, start = self.memory(words[1], value(memory.strip("[]")), size * len(names))
        assert start % (size * len(names)) == 0, f"{words} at {start} is not aligned"
        for index, one in enumerate(names):
            piece = slice(start + index * size, start + (index + 1) * size)
            if load:
                registers[one] = int.from_bytes(array[piece], "little")
            else:
                array[piece] = (registers[one] & ((1 << (8 * size)) - 1)).to_bytes(size, "little")

    def compute(self, words: list[str], inputs: list[int]) -> int:
        kind = words[-1]
        bits = 64 if kind.endswith("64") else 32
        op = words[0]
        signed = kind.startswith("s")
        a = [_signed(x, bits) if signed else x & ((1 << bits) - 1) for x in inputs]
        if op == "setp":
            return int({"ge": a[0] >= a[1], "lt": a[0] < a[1], "eq": a[0] == a[1], "ne": a[0] != a[1]}[words[1]])
        if op == "cvt":
            return _signed(inputs[0], 32) if words[2].startswith("s") else inputs[0] & 0xFFFFFFFF
        if op == "mul" and words[1] == "wide":
            return _signed(inputs[0], 32) * _signed(inputs[1], 32)
        result = {
            "mov": lambda: a[0],
            "add": lambda: a[0] + a[1],
            "sub": lambda: a[0] - a[1],
            "mul": lambda: a[0] * a[1],
            "mad": lambda: a[0] * a[1] + a[2],
            "div": lambda: a[0] // a[1],
            "rem": lambda: a[0] % a[1],
            "min": lambda: min(a),
            "max": lambda: max(a),
            "and": lambda: a[0] & a[1],
            "xor": lambda: a[0] ^ a[1],
            "shl": lambda: a[0] << a[1],
            "shr": lambda: a[0] >> a[1],
        }[op]()
        return _signed(result, bits) if signed else result & ((1 << bits) - 1)
