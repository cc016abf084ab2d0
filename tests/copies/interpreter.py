"""The kernels of copies by threads in numpy: the same packed parameters, tables and index functions, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cute_py.copies.thread_kernels import ThreadLaunch
from cute_py.gpu.kernels.relayout import CLASS, DIGIT, MAX_CLASSES, MAX_DIGITS, ROW, ROW_SHIFT, ROWS, TILE
from cute_py.gpu.kernels.runs import RUNS

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
    names = [
        "source",
        "destination",
        "high",
        "tables",
        "start",
        "first",
        "reach",
        "column",
        "source_mask",
        "destination_mask",
        "source_swizzle",
        "destination_swizzle",
        "source_step",
        "destination_step",
        "source_pitch",
        "destination_pitch",
        "rank",
        "run_digit",
        "mask",
        "swizzle",
        "pitch",
        "window",
        "staged",
        "spare",
    ]
    values = TILE.unpack_from(content)
    p = dict(zip(names, values, strict=False))
    spread, pieces = (np.array(values[at : at + 16], np.int64) for at in (len(names), len(names) + 16))
    together, group, (between, cut) = values[-8:-5], values[-5:-2], values[-2:]
    digits = [DIGIT.unpack_from(content, TILE.size + i * DIGIT.size) for i in range(p["rank"])]
    classes_at = TILE.size + MAX_DIGITS * DIGIT.size
    assert len(content) == classes_at + MAX_CLASSES * CLASS.size
    vs, vd, piece, unit = (facts[n] for n in ("SOURCE_BYTES", "DESTINATION_BYTES", "PIECE_BYTES", "ELEMENT_BYTES"))
    per, threads, columns, folded = vd // unit, launch.kernel.threads, facts["COLUMNS"], facts["PITCH"]
    assert folded in (0, p["pitch"])
    computed = facts["DESTINATION_SHIFT"] or facts["RUNS_PER_VECTOR"]
    assert not folded or computed or list(spread[:per]) == [folded * v for v in range(per)]

    def join(a: Any, b: Any) -> Any:
        return a ^ b if facts["SWIZZLED"] else a + b

    def behind(x: Any) -> Any:
        return x ^ (x >> p["swizzle"] & p["mask"]) if facts["SWIZZLED"] else x

    def walk(rows: tuple[int, ...], each: int = 1) -> tuple[Any, Any]:
        """Row and vector of every access of every thread, as the threads go on; `each` adjacent threads have vectors
        of different rows."""
        count, run, lanes, magic, skip, ahead, _ = rows
        thread = np.arange(threads, dtype=np.int64)
        turn = thread // each
        first = turn * magic >> ROW_SHIFT
        along = turn - first * lanes
        row = first * each + thread % each
        row = np.where((first >= skip) | (along >= run), count, row) if facts["STEADY"] else row
        found = []
        while (row < count).any():
            live = row < count
            found.append((row[live], along[live]))
            row = row + skip * each
            if not facts["STEADY"]:
                along = along + ahead
                row, along = row + (along >= lanes) * each, np.where(along >= lanes, along - lanes, along)
        made = [np.concatenate(part) for part in zip(*found, strict=True)]
        assert len(set(zip(*(m.tolist() for m in made), strict=True))) == len(made[0]) == count * run
        return made[0], made[1]

    def column_of(row: Any, count: int) -> Any:
        each, step = facts["TOGETHER"], facts["STEP"]
        within = row % (each * step)
        apart = row - within + within % each * step + within // each
        return np.where(row < count // (each * step) * each * step, apart, row)

    def lookup(rows: tuple[int, ...], row: Any, side: str, tables: bytes = launch.tables, at: int = 0) -> Any:
        if facts["AFFINE"]:
            tables, at = launch.tables, 0
        raw = np.frombuffer(tables, np.dtype("<i8,<u4,<u4"), rows[0], rows[6] - at)
        offset, place = raw["f0"].astype(np.int64)[row], raw["f1"].astype(np.int64)[row]
        if facts["AFFINE"]:
            number = column_of(row, rows[0]) if side == "destination" else row
            assert (offset == number * p[f"{side}_step"]).all()
            assert (place == behind(number * p[f"{side}_pitch"])).all()
        return offset, place

    def tile_of_block(block: int) -> int:
        outer = divided(block, *together[1:])
        inside = block - outer * together[0]
        number = divided(inside, *group[1:])
        member, first = inside - number * group[0], number * facts["GROUP"]
        row = member // (width := min(cut - first, facts["GROUP"]))
        return int(outer * together[0] + (first + member - row * width) * between + row)

    pitch, skew = p["pitch"], facts["SKEW"]

    def place_along(number: Any) -> Any:
        return number * pitch + number // per * skew

    for block in range(launch.blocks):
        tile = tile_of_block(block) if facts["GROUPED"] else block
        rest, combination, a, b, first = tile, 0, p["start"], p["first"], True
        for m, (size, magic, shift, bit, by, to) in enumerate(digits):
            quotient = divided(rest, magic, shift)
            digit, rest = rest - quotient * size, quotient
            a, b = a + digit * by, b + digit * to
            combination |= bit if digit == size - 1 else 0
            first = digit == 0 if m == p["run_digit"] else first
        entry = CLASS.unpack_from(content, classes_at + combination * CLASS.size)
        reads, writes, (listed, own, held, width) = entry[:ROWS], entry[ROWS : 2 * ROWS], entry[2 * ROWS :]
        shared = np.full(launch.kernel.shared_bytes, POISON, np.uint8)
        row, along = walk(reads)
        offsets, places = lookup(reads, row, "source")
        base: Any = p["source"] + a
        misplaced: Any = base % vs if facts["SOURCE_SHIFT"] else 0
        if facts["SOURCE_SHIFT"]:
            inside = base + p["reach"] + 2 * vs <= p["high"]
            start = base + offsets
            address = start // vs * vs + along * vs
            x = (places + misplaced) // vs * vs + along * vs
            live = along * vs < width + start % vs
            # Of a word that holds the source's first byte what lies before it is read as well, whatever it is.
            assert (address[live] + vs > source.address).all()
            whole = live & (address >= source.address) & (inside | (address + vs <= p["high"]))
            data = np.zeros((len(x), vs), np.uint8)
            data[whole] = source.read(address[whole], vs)
            for i in np.flatnonzero(live & ~whole):
                for k in range(vs if inside else min(vs, max(0, p["high"] - address[i]))):
                    before = address[i] + k < source.address
                    data[i, k] = POISON if before else source.read([address[i] + k], 1)[0, 0]
            x, data = x[live], data[live]
        else:
            offset = a + offsets + along * vs
            if facts["GLOBAL_SWIZZLED"]:
                offset = swizzled(offset, p["source_mask"], p["source_swizzle"])
            data = source.read(p["source"] + offset, vs)
            x = join(places, behind(along * vs))
        for part in range(vs // piece):
            y = join(x, pieces[part])
            assert not (y % piece).any() and (not facts["STAGED"] or int(y.max(initial=0)) + piece <= p["window"])
            shared[y[:, None] + np.arange(piece)] = data[:, part * piece : (part + 1) * piece]

        row, along = walk(writes, facts["TOGETHER"])
        tables, begin = launch.tables, 0
        if facts["STAGED"]:
            begin = listed if facts["AFFINE"] else writes[6]
            tables = launch.tables[begin : begin + p["staged"]]
            assert begin % 16 == p["window"] % 16 == 0 and len(tables) == p["staged"] > 0
            assert p["window"] + p["staged"] <= launch.kernel.shared_bytes
        offsets, places = lookup(writes, row, "destination", tables, begin)
        x = places + misplaced

        def taken(y: Any, shared: Any = shared, width: int = unit) -> Any:
            assert not (y % width).any()
            return shared[y[..., None] + np.arange(width)].reshape(*y.shape[:-1], y.shape[-1] * width)

        if facts["RUNS_PER_VECTOR"]:
            size = held if facts["DESTINATION_SHIFT"] else writes[1] * per
            numbers = np.frombuffer(tables, "<i4", -(-size // spread[0]) + 2, listed - begin)
            assert facts["LISTED"] and facts["RUNS_PER_VECTOR"] == 1 - (1 - per) // spread[0]
        elif not facts["DESTINATION_SHIFT"]:
            alone = facts["STEADY"] and not facts["LISTED"]  # each thread looks up one entry, before it waits
            looked, at = (launch.tables, 0) if alone else (tables, begin)
            numbers = np.frombuffer(looked, "<u2", writes[1] * (per if facts["LISTED"] else 1), listed - at)
        else:
            numbers = np.zeros(0)
        numbers = numbers.astype(np.int64)

        def along_row(number: Any, numbers: Any = numbers) -> Any:
            """Places of single units of a row, as `RunsOfRow.place` has them."""
            run = number * spread[1] >> 32 if facts["LISTED"] else 0 * number
            return (numbers[run] if facts["LISTED"] else 0) + place_along(number - run * spread[0])

        def vectors(number: Any, numbers: Any = numbers) -> Any:
            """Places of whole vectors that begin at these units of a row, as `gather_run` and `RunsOfRow.vector` have
            them."""
            number, v, size = number[:, None], np.arange(per), spread[0]
            run = number * spread[1] >> 32 if facts["LISTED"] else 0 * number
            first = number - run * size
            left, here = size - first, place_along(first)
            own = np.where((skew > 0) & (v >= per - first % per), here + skew, here)
            if not facts["LISTED"]:
                found = own
            elif facts["RUNS_PER_VECTOR"] > 3:
                run = (number + v) * spread[1] >> 32
                found = number * pitch + numbers[run] - run * size * pitch
            elif facts["RUNS_PER_VECTOR"] == 3:
                third = left + size
                two = np.where(v < left, numbers[run] + first * pitch, numbers[run + 1] - left * pitch)
                found = np.where(v < third, two, numbers[run + 2] - third * pitch)
            else:
                found = np.where(v < left, numbers[run] + own, numbers[run + 1] - left * pitch)
            return found + v * pitch

        if facts["DESTINATION_SHIFT"]:
            start = p["destination"] + b + offsets
            grain = facts["GRAIN"]
            phase = start % grain // unit
            index = along * per - phase
            leading = along * vd // grain * (grain // unit) - phase
            keep = (leading < own) & ((leading >= 0) | first)
            x, index, start = x[keep], index[keep], start[keep]

            whole = (index >= 0) & (index + per <= held)
            destination.write(start[whole] + index[whole] * unit, taken(x[whole, None] + vectors(index[whole])))
            for i in np.flatnonzero(~whole):
                for v in range(per):
                    if 0 <= index[i] + v < own:
                        one = taken(x[[i], None] + along_row(np.array([[index[i] + v]])))
                        destination.write([start[i] + (index[i] + v) * unit], one)
            continue
        if facts["RUNS_PER_VECTOR"]:
            y = join(x[:, None], behind(vectors(along * per)))
        elif facts["LISTED"]:
            y = join(x[:, None], numbers[along[:, None] * per + np.arange(per)])
        else:
            y = join(join(x, numbers[along])[:, None], spread[:per])
        words = taken(y, width=columns * unit).reshape(len(y), per, columns, unit)
        for j in range(columns):
            offset = b + offsets + along * vd + j * p["column"]
            if facts["GLOBAL_SWIZZLED"]:
                offset = swizzled(offset, p["destination_mask"], p["destination_swizzle"])
            destination.write(p["destination"] + offset, words[:, :, j].reshape(len(y), -1))


def run_runs(launch: ThreadLaunch, facts: dict[str, int], content: bytes, source: Memory, destination: Memory) -> None:
    values = RUNS.unpack_from(content)
    at, to, total, start, first, before, after, ours, theirs = values[:9]
    masks = (values[9], values[11]), (values[10], values[12])
    flips, parity, step = values[13:15], values[15], values[17]
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

    rest = common(digits[:before], rest)
    assert facts["GENERAL"] or len(digits) == before
    other = common(digits[before : before + theirs], rest)
    rest = common(digits[before + theirs : before + theirs + ours], rest)
    assert (rest == other).all()
    common(digits[before + theirs + ours :], rest)
    following = a + step
    if facts["GLOBAL_SWIZZLED"]:
        a, following = swizzled(a, *masks[0]), swizzled(following, *masks[0])
    if facts["GLOBAL_SWIZZLED"]:
        b = swizzled(b, *masks[1])
    if facts["NIBBLES"]:

        def half(number: Any) -> Any:
            return source.read(at + (number >> 1), 1)[:, 0] >> 4 * ((number & 1) ^ flips[0]) & 15

        if facts["PAIRED"]:
            value = half(a) << 4 * flips[1] | half(following) << 4 * (1 - flips[1])
            destination.write(to + (b >> 1), value.astype(np.uint8)[:, None])
            return
        mine = (b & 1) == parity
        place, shift = to + (b[mine] >> 1), 4 * (parity ^ flips[1])
        held = destination.content[place - destination.address]
        value = held & (15 << 4 - shift) | half(a[mine]) << shift
        destination.write(place, value.astype(np.uint8)[:, None])
        return
    width = {"u8": 1, "u16": 2, "u32": 4, "uint2": 8, "uint4": 16}[
        launch.kernel.text.split(" SOURCE_VECTOR")[0].split()[-1]
    ]
    per = facts["GATHERED"]
    part = np.arange(per) * (step if per > 1 else 0)
    destination.write(to + b, source.read(at + a[:, None] + part, width // per).reshape(len(b), width))


assert ROW.size == 16
