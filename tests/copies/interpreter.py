"""The kernels of copies by threads in numpy: the same packed parameters, tables and index functions, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cute_py.copies.thread_kernels import ThreadLaunch
from cute_py.gpu.kernels.relayout import CLASS, DIGIT, MAX_CLASSES, MAX_DIGITS, ROW, RUNS, TILE

Bytes = NDArray[np.uint8]
POISON = 0xEE


class Memory:
    """Bytes at an address; reads and writes are counted, and none may leave it."""

    def __init__(self, address: int, content: Bytes) -> None:
        self.address, self.content = address, content
        self.written = np.zeros(len(content), np.int32)

    def _at(self, addresses: Any, width: int) -> Any:
        addresses = np.asarray(addresses, np.int64)
        assert not (addresses % width).any(), "misaligned"
        at = addresses[..., None] - self.address + np.arange(width)
        assert at.size == 0 or (at.min() >= 0 and at.max() < len(self.content)), "outside"
        return at

    def read(self, addresses: Any, width: int) -> Any:
        return self.content[self._at(addresses, width)]

    def write(self, addresses: Any, values: Any) -> None:
        at = self._at(addresses, values.shape[-1])
        self.content[at] = values
        np.add.at(self.written, at.ravel(), 1)


def divided(n: int, magic: int, shift: int) -> int:
    return ((n * magic >> 32) + n) >> shift


def swizzled(x: Any, mask: int, shift: int) -> Any:
    picked = x & mask
    return x ^ (picked << -shift if shift < 0 else picked >> shift)


def run(launch: ThreadLaunch, source: Memory, destination: Memory, at: tuple[int, int]) -> None:
    """Carry out a launch; `at`: the addresses of source and destination."""
    content = launch.parameters(at[0], at[1], 0)
    facts = {name: int(str(value)) for name, value in launch.kernel.facts.items()}
    (run_tiles if launch.kernel.name == "copy_tile" else run_runs)(launch, facts, content, source, destination)


def run_tiles(launch: ThreadLaunch, facts: dict[str, int], content: bytes, source: Memory, destination: Memory) -> None:
    names = "source destination low high tables start first rank run_digit mask swizzle pitch spare".split()
    values = TILE.unpack_from(content)
    p = dict(zip(names, values, strict=False))
    source_swizzle, destination_swizzle = (values[13], values[15]), (values[14], values[16])
    spread = values[17:]
    digits = [DIGIT.unpack_from(content, TILE.size + i * DIGIT.size) for i in range(p["rank"])]
    classes_at = TILE.size + MAX_DIGITS * DIGIT.size
    assert len(content) == classes_at + MAX_CLASSES * CLASS.size
    vs, vd, piece, unit = (facts[n] for n in ("SOURCE_BYTES", "DESTINATION_BYTES", "PIECE_BYTES", "ELEMENT_BYTES"))
    per = vd // unit
    for block in range(launch.blocks):
        rest, combination, a, b, first = block, 0, p["start"], p["first"], True
        for m, (size, magic, shift, bit, by, to) in enumerate(digits):
            quotient = divided(rest, magic, shift)
            digit, rest = rest - quotient * size, quotient
            a, b = a + digit * by, b + digit * to
            combination |= bit if digit == size - 1 else 0
            first = digit == 0 if m == p["run_digit"] else first
        vectors, run, rmagic, rows, ovectors, orun, omagic, orows, listed, own, held, width = CLASS.unpack_from(
            content, classes_at + combination * CLASS.size
        )

        def table(where: int, count: int) -> tuple[Any, Any]:
            raw = np.frombuffer(launch.tables, np.dtype("<i8,<u4,<u4"), count, where)
            return raw["f0"].astype(np.int64), raw["f1"].astype(np.int64)

        def split(number: Any, length: int, magic: int) -> tuple[Any, Any]:
            row = number if length == 1 else number * magic >> 32
            return row, number - row * length

        shared = np.full(launch.kernel.shared_bytes, POISON, np.uint8)

        def place(x: Any) -> Any:
            return x ^ (x >> p["swizzle"] & p["mask"])

        row, along = split(np.arange(vectors, dtype=np.int64), run, rmagic)
        offsets, places = table(rows, vectors // run)
        misplaced = (p["source"] + a) % vs if facts["SOURCE_SHIFT"] else 0
        if facts["SOURCE_SHIFT"]:
            start = p["source"] + a + offsets[row]
            address = start // vs * vs + along * vs
            x = (places[row] + misplaced) // vs * vs + along * vs
            live = address < start + width
            whole = live & (address >= p["low"]) & (address + vs <= p["high"])
            data = np.zeros((len(x), vs), np.uint8)
            data[whole] = source.read(address[whole], vs)
            for i in np.flatnonzero(live & ~whole):
                for k in range(vs):
                    if p["low"] <= address[i] + k < p["high"]:
                        data[i, k] = source.read([address[i] + k], 1)[0, 0]
            x, data = x[live], data[live]
        else:
            offset = a + offsets[row] + along * vs
            if facts["GLOBAL_SWIZZLED"]:
                offset = swizzled(offset, *source_swizzle)
            data = source.read(p["source"] + offset, vs)
            x = places[row] + along * vs
        for i in range(vs // piece):
            y = place(x + i * piece)
            assert not (y % piece).any()
            shared[y[:, None] + np.arange(piece)] = data[:, i * piece : (i + 1) * piece]

        row, along = split(np.arange(ovectors, dtype=np.int64), orun, omagic)
        offsets, places = table(orows, ovectors // orun)
        x = places[row] + misplaced

        def taken(y: Any) -> Any:
            y = place(y)
            assert not (y % unit).any()
            return shared[y[..., None] + np.arange(unit)].reshape(*y.shape[:-1], -1)

        if facts["DESTINATION_SHIFT"]:
            start = p["destination"] + b + offsets[row]
            index = along * per - start % vd // unit
            keep = (index < own) & ((index >= 0) | first)
            x, index, start = x[keep] + index[keep] * p["pitch"], index[keep], start[keep]
            whole = (index >= 0) & (index + per <= held)
            y = x[whole, None] + np.arange(per) * p["pitch"]
            destination.write(start[whole] + index[whole] * unit, taken(y))
            for i in np.flatnonzero(~whole):
                for v in range(per):
                    if 0 <= index[i] + v < own:
                        one = taken(np.array([x[i] + v * p["pitch"]]))
                        destination.write([start[i] + (index[i] + v) * unit], one[None])
            continue
        length = orun * per if facts["LISTED"] else orun
        numbers = np.frombuffer(launch.tables, "<u2", length, listed).astype(np.int64)
        if facts["LISTED"]:
            y = x[:, None] + numbers[along[:, None] * per + np.arange(per)]
        else:
            y = x[:, None] + numbers[along][:, None] + np.array(spread[:per], np.int64)
        offset = b + offsets[row] + along * vd
        if facts["GLOBAL_SWIZZLED"]:
            offset = swizzled(offset, *destination_swizzle)
        destination.write(p["destination"] + offset, taken(y))


def run_runs(launch: ThreadLaunch, facts: dict[str, int], content: bytes, source: Memory, destination: Memory) -> None:
    values = RUNS.unpack_from(content)
    at, to, total, start, first, before, after, ours, theirs = values[:9]
    masks = (values[9], values[11]), (values[10], values[12])
    digits = [DIGIT.unpack_from(content, RUNS.size + i * DIGIT.size) for i in range(before + after + ours + theirs)]
    assert len(content) == RUNS.size + 2 * MAX_DIGITS * DIGIT.size
    assert launch.blocks * facts["THREADS"] * facts["LOADS"] >= total
    rest = np.arange(total, dtype=np.int64)
    a, b = np.full(total, start), np.full(total, first)

    def take(number: Any, digit: Any) -> tuple[Any, Any]:
        size, magic, shift, _, _, _ = digit
        quotient = number // size if facts["WIDE"] else ((number * magic >> 32) + number) >> shift
        return quotient, number - quotient * size

    def common(which: list[Any], rest: Any) -> Any:
        nonlocal a, b
        for digit in which:
            rest, value = take(rest, digit)
            a, b = a + value * digit[4], b + value * digit[5]
        return rest

    rest = common(digits[:before] if facts["GENERAL"] else digits[: before + after], rest)
    if facts["GENERAL"]:
        one = other = rest
        for digit in digits[before + after : before + after + ours]:
            one, value = take(one, digit)
            a = a + value * digit[4]
        for digit in digits[before + after + ours :]:
            other, value = take(other, digit)
            b = b + value * digit[5]
        assert (one == other).all()
        common(digits[before : before + after], one)
    if facts["GLOBAL_SWIZZLED"]:
        a = swizzled(a, *masks[0])
    if facts["GLOBAL_SWIZZLED"]:
        b = swizzled(b, *masks[1])
    width = {"u8": 1, "u16": 2, "u32": 4, "uint2": 8, "uint4": 16}[launch.kernel.text.split(" SOURCE_VECTOR")[0].split()[-1]]
    destination.write(to + b, source.read(at + a, width))


assert ROW.size == 16
