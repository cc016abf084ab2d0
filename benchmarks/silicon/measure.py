"""The measurement: one-hot operands through every form, random operands through some, written as .npz files.

What is compared here with the tables is compared after the device answered: `run_group` reduces a form's output to the
count, the first and a hash of the hot elements that reach each place, and then asks what the table predicts of these.
"""

from __future__ import annotations

import functools
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.silicon.build import PER_MODULE
from benchmarks.silicon.device import Array, Runner
from benchmarks.silicon.encodings import FLOATS, digit, digit_count, one, pack, patterns, results, unpack
from benchmarks.silicon.forms import (
    BITS,
    CUTE_TYPES,
    SWIZZLES,
    MatrixForm,
    MoverForm,
    Operand,
    group_forms,
    matrix_forms,
    mover_forms,
)  # fmt: skip
from benchmarks.silicon.inputs import FIELDS, STYLES, digest, random_words, seed_of
from cute_py.atom import MMA_ATOMS, gmma_layout, make_gmma_desc
from cute_py.layout import Int, offsets, tile_to_shape
from cute_py.tensor import local_tile, make_smem_ptr, make_tensor

TIMES = 40
"""Random inputs of an instruction that moves bits: so many bits name each of them."""


# ---- mma.sync ------------------------------------------------------------------------------------------------------


def matrix_inputs(form: MatrixForm) -> tuple[Array, int, int, int]:
    """(run, register, lane) words of the one-hot runs: for each digit every position of A, and none; and how many
    positions of A and B there are, and digits."""
    a_count, b_count, c_count = form.form.counts
    word = form.form.words * 8
    a, b, _ = form.types
    kind = np.uint64 if word == 64 else np.uint32
    a_lane, b_lane = a_count * word // BITS[a], b_count * word // BITS[b]
    places = 32 * b_lane
    digits = digit_count(b, places)
    hot = np.zeros((32 * a_lane + 1, a_count, 32), kind)
    position = np.arange(32 * a_lane)
    lane, value = position // a_lane, position % a_lane
    per = word // BITS[a]
    value_of_one = int(np.float64(1).view(np.uint64)) if a == "f64" else one(a)
    hot[position, value // per, lane] = kind(value_of_one) << (value % per * BITS[a]).astype(kind)
    runs = []
    for place in range(digits):
        code = patterns(b)[digit(b, np.arange(places), place)].reshape(32, b_lane)
        words = pack(code, BITS[b], word).T
        whole = np.zeros((len(hot), a_count + b_count + c_count, 32), kind)
        whole[:, :a_count] = hot
        whole[:, a_count : a_count + b_count] = words
        runs.append(whole)
    return np.concatenate(runs), 32 * a_lane, places, digits


def run_matrix_kernel(runner: Runner, form: MatrixForm, inputs: Array) -> Array:
    """(run, register, lane) words of D."""
    kind, count = inputs.dtype, form.form.counts[2]
    source = runner.put("in", inputs)
    target = runner.fill("out", len(inputs) * count * 32 * form.form.words, 0xFF)
    kernel = runner.kernel("matrix", form.form.entry)
    runner.launch(kernel, (len(inputs), 1), 32, 0, [(source, "u64"), (target, "u64")])
    return runner.get("out", (len(inputs), count, 32), kind)


def measured_products(form: MatrixForm, out: Array, elements: int, places: int, digits: int) -> Array:
    """(position of A, lane, value of D) -> position of B that it meets there, or -1."""
    d = form.types[2]
    width = {"f16": 16}.get(d, form.form.words * 8)
    found = unpack(np.moveaxis(out, 1, 2), width)  # run, lane, value
    found = found.reshape(digits, elements + 1, *found.shape[1:])
    if "xor" in form.form.instruction:
        less = found.astype(np.int64) - found[:, -1:].astype(np.int64)
        met, number = less != 0, (less == -1).astype(np.int64)
    else:
        expected = results(form.types[1], d).astype(found.dtype)
        order = np.argsort(expected)
        where = np.minimum(np.searchsorted(expected[order], found), len(order) - 1)
        number = order[where]
        if not (expected[number] == found).all():
            raise ValueError(f"{int((expected[number] != found).sum())} results are no digit")
        met = number != 0
    code = sum(number[i].astype(np.int64) * len(patterns(form.types[1])) ** i for i in range(digits))
    return np.where(met.any(axis=0), code - 1, -1)[:-1]


RUNS = 4
"""Random runs of each style."""


def sum_type(types: tuple[str, str, str]) -> str:
    """Type of C and D."""
    return "f64" if types[0] == "f64" else types[2]


def random_matrix(form: MatrixForm, style: str, number: int) -> Array:
    """(1, register, lane) words of A, B and C."""
    a, b, _ = form.types
    name = form.form.instruction
    parts = [
        random_words(kind, (1, count, 32), style, seed_of(name, style, number, operand))
        for operand, kind, count in zip("ABC", (a, b, sum_type(form.types)), form.form.counts, strict=True)
    ]
    return np.concatenate(parts, axis=1)


def run_matrix(runner: Runner, out: Path) -> None:
    """Every mma.sync: what meets what, and random operands."""
    held: dict[str, Array] = {}
    report: dict[str, Any] = {}
    for form in matrix_forms():
        name = form.form.instruction
        try:
            inputs, elements, places, digits = matrix_inputs(form)
            found = run_matrix_kernel(runner, form, inputs)
            products = measured_products(form, found, elements, places, digits)
            held[f"{name}:met"] = products.astype(np.int16)
            report[name] = {"places": int((products >= 0).sum())}
        except Exception as problem:
            report[name] = {"failed": f"{type(problem).__name__}: {problem}"[:300]}
        try:
            inputs = np.concatenate([random_matrix(form, style, number) for style in STYLES for number in range(RUNS)])
            found = run_matrix_kernel(runner, form, inputs)
            held[f"{name}:out"] = found
            report[name]["digests"] = [
                digest(x, sum_type(form.types) if form.types[2] in FIELDS else "") for x in found
            ]
        except Exception as problem:
            report[name]["random"] = f"{type(problem).__name__}: {problem}"[:300]
    np.savez_compressed(out / "matrix.npz", **held)
    _finish(out, "matrix", report)


def _finish(out: Path, name: str, report: dict[str, Any]) -> None:
    (out / f"{name}.json").write_text(json.dumps(report))
    failed = {k: v for k, v in report.items() if isinstance(v, dict) and ("failed" in v or "random" in v)}
    print(name, len(report), "forms;", len(failed), "failed", json.dumps(dict(list(failed.items())[:6])))


# ---- ldmatrix, stmatrix, movmatrix, shfl ---------------------------------------------------------------------------


def random_moves(form: MoverForm) -> tuple[Array, Array]:
    """(run, register, lane) words, the first of an addressed form addresses of different rows; (run, byte) images."""
    words = random_words("b32", (TIMES, form.sources, 32), "any", seed_of(form.instruction, "registers"))
    image = random_words("b32", (TIMES, form.image // 4), "any", seed_of(form.instruction, "image")).view(np.uint8)
    if form.addressed:
        generator = random.Random(seed_of(form.instruction, "rows"))
        words[:, 0] = [[16 * x for x in generator.sample(range(32), 32)] for _ in range(TIMES)]
    return words, image


def run_mover(runner: Runner, out: Path) -> None:
    """Random registers and images through every instruction that moves bits."""
    held: dict[str, Array] = {}
    report: dict[str, Any] = {}
    for form in mover_forms():
        words, image = random_moves(form)
        try:
            parameters = [
                (runner.put("in", words), "u64"),
                (runner.put("image", image), "u64"),
                (runner.fill("out", max(1, TIMES * form.results * 128), 0xFF), "u64"),
                (runner.fill("after", image.nbytes, 0xFF), "u64"),
            ]
            runner.launch(runner.kernel("mover", form.entry), (TIMES, 1), 32, form.image, parameters)
            held[f"{form.instruction}:in"], held[f"{form.instruction}:image"] = words, image
            held[f"{form.instruction}:out"] = runner.get("out", (TIMES, form.results, 32), np.uint32)
            held[f"{form.instruction}:after"] = runner.get("after", image.shape, np.uint8)
            found = np.concatenate(
                [held[f"{form.instruction}:{x}"].reshape(-1).view(np.uint8) for x in ("out", "after")]
            )
            report[form.instruction] = {"operation": form.operation, "digest": digest(found)}
        except Exception as problem:
            report[form.instruction] = {"failed": f"{type(problem).__name__}: {problem}"[:300]}
    np.savez_compressed(out / "mover.npz", **held)
    _finish(out, "mover", report)


# ---- wgmma ---------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def tile(rows: int, depth: int, kind: str, major: str, swizzle: str, start: int) -> tuple[Array, int, int] | None:
    """An operand's tile in shared memory: (element of memory of (row, k), bytes, descriptor); None if no tile is so."""
    layout = gmma_layout(f"{major}_{swizzle}", CUTE_TYPES[kind])
    contiguous = (128 << SWIZZLES.index(swizzle)) // BITS[kind]
    shape = (rows, max(depth, contiguous)) if major == "K" else (rows, depth)
    if major == "MN" and rows % contiguous:
        return None
    whole = tile_to_shape(layout, tuple(Int(x) for x in shape))
    memory = make_tensor(make_smem_ptr(start, CUTE_TYPES[kind]), whole)
    part = local_tile(memory, (Int(rows), Int(depth)), (0, 0))
    index = np.asarray(offsets(whole)).reshape(shape, order="F")
    return index[:, :depth].copy(), int(np.prod(shape)) * BITS[kind] // 8, make_gmma_desc(major, part).encode()


@functools.lru_cache(maxsize=256)
def register_positions(k: int, bits: int) -> Array:
    """(row, k) of A in registers -> position thread * values + value, by the table."""
    name = {16: "F32F16F16_RS", 32: "F32TF32TF32_RS_TN", 8: "F32E4M3E4M3_RS_TN"}[bits]
    layout = MMA_ATOMS[f"SM90_64x8x{k}_{name}"].layoutA_TV
    index = np.asarray(offsets(layout)).reshape(128, -1, order="F")
    found = np.empty(64 * k, np.int64)
    found[index.reshape(-1)] = np.arange(64 * k)
    return found.reshape(64, k, order="F")


def launch_group(
    runner: Runner, form: Operand, number: int, image: Array, descriptors: tuple[int, int], runs: int,
    hot: tuple[int, int], a: int = 0, c: int = 0, meta: int = 0, blocks: int = 528,
) -> None:  # fmt: skip
    """Runs of one form into the block `out`."""
    module = f"{'sparse' if form.sparse else 'group'}{number // PER_MODULE}"
    target = runner.memory("out", runs * form.form.registers * 512)
    values = (
        (target, "u64"), (c, "u64"), (runner.put("image", image), "u64"), (a, "u64"), (meta, "u64"),
        (descriptors[0], "u64"), (descriptors[1], "u64"), (image.nbytes // 16, "u32"), (runs, "u32"),
        (hot[0], "u32"), (hot[1], "u32"),
    )  # fmt: skip
    runner.launch(runner.kernel(module, form.form.entry), (min(runs, blocks), 1), 128, image.nbytes, values)


def placed(form: Operand, swizzle: str) -> tuple[Array, Array, int, int, tuple[int, int]] | None:
    """((m,k) -> run that is hot there, (n,k) -> element of B's memory, bytes of A, of B, descriptors)."""
    (m, n, k), (a, b, _) = form.shape, form.types
    if form.form.a_registers:
        first = (register_positions(k, BITS[a]), 0, 0)
    else:
        stored = k // 2 if form.sparse else k
        found = tile(m, stored, a, form.majors[0], swizzle, 0)
        if found is None:
            return None
        first = found
    start = -(-first[1] // 1024) * 1024
    second = tile(n, k, b, form.majors[1], swizzle, start)
    if second is None:
        return None
    return first[0], second[0], start, second[1], (first[2], second[2])


def image_of(form: Operand, start: int, size: int, place: int) -> tuple[Array, Array]:
    """The image whose B holds a digit of its positions; and the digits."""
    b = form.types[1]
    count = size * 8 // BITS[b]
    numbers = digit(b, np.arange(count), place)
    words = pack(patterns(b)[numbers], BITS[b])
    return np.concatenate([np.zeros(start, np.uint8), words.view(np.uint8)]), numbers


def run_group(runner: Runner, out: Path, seconds: float) -> None:
    """Every dense wgmma with every swizzle: the count, first and hash of what reaches each place, against the table."""
    report: dict[str, Any] = {}
    firsts: dict[str, Array] = {}
    started = time.monotonic()
    reduce, predict = runner.kernel("reduce", "reduce"), runner.kernel("reduce", "predict")
    for number, form in enumerate(group_forms()):
        key = f"{form.form.instruction} {'RS' if form.form.a_registers else 'SS'} {form.majors[0]} {form.majors[1]}"
        row: dict[str, Any] = {"operation": form.operation, "equal": [], "different": [], "none": []}
        report[key] = row
        if time.monotonic() - started > seconds:
            row["failed"] = "no time left"
            continue
        for swizzle in SWIZZLES:
            try:
                at = placed(form, swizzle)
                if at is None:
                    row["none"].append(swizzle)
                    continue
                same, first = one_group(runner, form, number, at, reduce, predict)
                row["equal" if same else "different"].append(swizzle)
                if (swizzle == "INTER" and form.shape[1] in (8, 64)) or not same:
                    firsts[f"{key} {swizzle}"] = first
            except Exception as problem:
                row["failed"] = f"{swizzle} {type(problem).__name__}: {problem}"[:300]
                if "ILLEGAL" in str(problem) or "LAUNCH" in str(problem):
                    raise
    np.savez_compressed(out / "group.npz", **dict(list(firsts.items())[:400]))
    _finish(out, "group", report)
    different = {k: v["different"] for k, v in report.items() if v["different"]}
    print(
        "equal", sum(len(v["equal"]) for v in report.values()), "different", len(different), list(different.items())[:6]
    )
    print(f"{time.monotonic() - started:.1f} s")


def one_group(
    runner: Runner,
    form: Operand,
    number: int,
    at: tuple[Array, Array, int, int, tuple[int, int]],
    reduce: Any,
    predict: Any,
) -> tuple[bool, Array]:
    """Whether one form and swizzle reads its operands as the table says; and the firsts of its last digit."""
    a_run, b_at, start, size, descriptors = at
    a, b, d = form.types
    k = form.shape[2]
    registers = form.form.a_registers
    runs = 64 * k if registers else start * 8 // BITS[a]
    words = form.form.registers * 128
    width = 16 if d == "f16" else 32
    elements = words * 32 // width
    table = np.asarray(offsets(MMA_ATOMS[form.operation].layoutC_TV)).reshape(128, -1, order="F")
    value = np.arange(elements)
    per = 32 // width
    index = table[value // per % 128, value // (128 * per) * per + value % per]
    runner.put("rows", (index % 64).astype(np.uint32))
    runner.put("columns", (index // 64).astype(np.uint32))
    runner.put("a_run", a_run.astype(np.uint32))
    same, first = True, np.empty(0, np.uint64)
    for place in range(digit_count(b, size * 8 // BITS[b])):
        image, numbers = image_of(form, start, size, place)
        launch_group(runner, form, number, image, descriptors, runs, (BITS[a], one(a)))
        runner.fill("count", elements * 4, 0)
        runner.fill("first", elements * 8, 0xFF)
        runner.fill("hash", elements * 8, 0)
        blocks = max(1, min(64, runs // 32))
        names = [(runner.blocks[x][0], "u64") for x in ("count", "first", "hash")]
        parameters = [(runner.blocks["out"][0], "u64"), (words, "u32"), (runs, "u32"), (width, "u32"), *names]
        runner.launch(reduce, (-(-words // 128), blocks), 128, 0, parameters)
        found = [
            runner.get("count", (elements,), np.uint32),
            runner.get("first", (elements,), np.uint64),
            runner.get("hash", (elements,), np.uint64),
        ]
        bits = results(b, d).astype(np.uint32)[numbers[b_at]]
        parameters = [
            (runner.blocks["a_run"][0], "u64"), (runner.put("b_bits", bits), "u64"),
            (runner.blocks["rows"][0], "u64"), (runner.blocks["columns"][0], "u64"), (k, "u32"), (elements, "u32"),
            (runner.memory("count2", elements * 4), "u64"), (runner.memory("first2", elements * 8), "u64"),
            (runner.memory("hash2", elements * 8), "u64"),
        ]  # fmt: skip
        runner.launch(predict, (-(-elements // 128), 1), 128, 0, parameters)
        expected = [
            runner.get("count2", (elements,), np.uint32),
            runner.get("first2", (elements,), np.uint64),
            runner.get("hash2", (elements,), np.uint64),
        ]
        same = same and all(np.array_equal(x, y) for x, y in zip(found, expected, strict=True)) and bool(found[0].any())
        first = found[1]
    return same, first


# ---- wgmma, sparse -------------------------------------------------------------------------------------------------

METAS = 16
"""Random metadata of a sparse form."""


def random_metadata(kind: str, rng: np.random.Generator) -> Array:
    """A word of metadata for each of 128 threads: 4 bits a group, two places in order; tf32 one pair of two."""
    pairs = np.array([0x4, 0xE] if kind == "tf32" else [0x4, 0x8, 0xC, 0x9, 0xD, 0xE], np.uint32)
    return pack(pairs[rng.integers(0, len(pairs), (128, 8))], 4)[:, 0]


def run_sparse(runner: Runner, out: Path) -> None:
    """Sparse wgmma of each kind: which (n, k) of B each stored element of A meets, for random metadata."""
    held: dict[str, Array] = {}
    report: dict[str, Any] = {}
    by_run = runner.kernel("reduce", "by_run")
    for number, form in enumerate(group_forms(True)):
        key = f"{form.form.instruction} {'RS' if form.form.a_registers else 'SS'} {form.majors[0]} {form.majors[1]}"
        row: dict[str, Any] = {"operation": form.operation, "swizzles": []}
        report[key] = row
        a, b, d = form.types
        width, words = (16 if d == "f16" else 32), form.form.registers * 128
        for swizzle in SWIZZLES:
            try:
                if form.form.a_registers:
                    start, first = 0, (None, 0, 0)
                else:
                    first = tile(64, form.shape[2] // 2, a, form.majors[0], swizzle, 0)  # type: ignore[assignment]
                    if first is None:
                        continue
                    start = -(-first[1] // 1024) * 1024
                second = tile(form.shape[1], form.shape[2], b, form.majors[1], swizzle, start)
                if second is None:
                    continue
                runs = 64 * form.shape[2] // 2 if form.form.a_registers else start * 8 // BITS[a]
                for meta_number in range(METAS if swizzle in ("INTER", "SW128") else 2):
                    rng = np.random.default_rng(100 + meta_number)
                    meta = runner.put("meta", random_metadata(a, rng))
                    for place in range(digit_count(b, second[1] * 8 // BITS[b])):
                        image, _ = image_of(form, start, second[1], place)
                        launch_group(
                            runner, form, number, image, (first[2], second[2]), runs, (BITS[a], one(a)), meta=meta
                        )
                        count, least = runner.memory("count", runs * 4), runner.memory("first", runs * 8)
                        parameters = [
                            (runner.blocks["out"][0], "u64"), (words, "u32"), (width, "u32"), (count, "u64"),
                            (least, "u64"),
                        ]  # fmt: skip
                        runner.launch(by_run, (runs, 1), 128, 0, parameters)
                        found = runner.get("first", (runs,), np.uint64)
                        held[f"{key} {swizzle} {meta_number} {place}"] = found
                        held[f"{key} {swizzle} {meta_number} {place} n"] = runner.get(
                            "count", (runs,), np.uint32
                        ).astype(np.uint8)
                row["swizzles"].append(swizzle)
            except Exception as problem:
                row["failed"] = f"{swizzle} {type(problem).__name__}: {problem}"[:300]
                if "ILLEGAL" in str(problem) or "LAUNCH" in str(problem):
                    raise
    np.savez_compressed(out / "sparse.npz", **held)
    _finish(out, "sparse", report)


# ---- wgmma, random -------------------------------------------------------------------------------------------------

RANDOM_N = (16, 64)


def random_group(form: Operand, style: str, turn: int) -> dict[str, Any]:
    """Operands of one wgmma: the swizzle, the image, descriptors, registers of A (4, 128) and of C (n, 128)."""
    a, b, d = form.types
    swizzle = next(s for s in SWIZZLES[turn % 4 :: -1] if placed(form, s) is not None)
    at = placed(form, swizzle)
    assert at is not None
    _, _, start, size, descriptors = at

    def words(operand: str, kind: str, shape: tuple[int, ...]) -> Array:
        return random_words(kind, shape, style, seed_of(form.form.instruction, style, turn, operand))

    image = np.concatenate([words("A", a, (start // 4,)), words("B", b, (size // 4,))]).view(np.uint8)
    return {
        "swizzle": swizzle, "image": image, "descriptors": descriptors, "a": words("RA", a, (4, 128)),
        "c": words("C", d, (form.form.registers, 128)),
    }  # fmt: skip


def run_random(runner: Runner, out: Path) -> None:
    """Random operands and sums through wgmma of every type, A from both places; the swizzles in turn."""
    held: dict[str, Array] = {}
    report: dict[str, Any] = {}
    turn = 0
    for number, form in enumerate(group_forms()):
        if form.shape[1] not in RANDOM_N:
            continue
        key = f"{form.form.instruction} {'RS' if form.form.a_registers else 'SS'} {form.majors[0]} {form.majors[1]}"
        d = form.types[2]
        for style in STYLES:
            turn += 1
            case = random_group(form, style, turn)
            swizzle = case["swizzle"]
            name = f"{key} {swizzle} {style} {turn}"
            try:
                where = runner.put("a", case["a"]) if form.form.a_registers else 0
                launch_group(
                    runner,
                    form,
                    number,
                    case["image"],
                    case["descriptors"],
                    1,
                    (0, 0),
                    where,
                    runner.put("c", case["c"]),
                )
                found = runner.get("out", (form.form.registers, 128), np.uint32)
                held[name] = found
                report[name] = {"digest": digest(found, d if d in FIELDS else "")}
            except Exception as problem:
                report[name] = {"failed": f"{type(problem).__name__}: {problem}"[:300]}
    np.savez_compressed(out / "random.npz", **held)
    _finish(out, "random", report)


# ---- wgmma, tiles of several instructions --------------------------------------------------------------------------


def tile_cases() -> Iterator[tuple[Operand, int, str]]:
    """(form, its number, swizzle): one form of each width and pair of majors, N = 64."""
    wanted = {("f16", "f16", "f32"), ("tf32", "tf32", "f32"), ("s8", "s8", "s32")}
    for number, form in enumerate(group_forms()):
        plain = not form.form.a_registers and "satfinite" not in form.form.instruction
        if form.shape[1] == 64 and form.types in wanted and plain:
            for swizzle in SWIZZLES:
                yield form, number, swizzle


def tile_of(extents: tuple[int, int], kind: str, major: str, swizzle: str, start: int) -> tuple[Any, Array, int]:
    """A tensor of a tile in shared memory, (row, k) -> element of its memory, and its bytes."""
    layout = gmma_layout(f"{major}_{swizzle}", CUTE_TYPES[kind])
    whole = tile_to_shape(layout, tuple(Int(x) for x in extents))
    index = np.asarray(offsets(whole)).reshape(extents, order="F")
    return make_tensor(make_smem_ptr(start, CUTE_TYPES[kind]), whole), index, int(np.prod(extents)) * BITS[kind] // 8


def run_tiles(runner: Runner, out: Path) -> None:
    """Descriptors of every instruction's part of larger tiles, 128 rows of A and 64 of B, two swizzles of K wide."""
    report: dict[str, Any] = {}
    for form, number, swizzle in tile_cases():
        key = f"{form.types[0]} {form.majors[0]} {form.majors[1]} {swizzle}"
        try:
            a, b, d = form.types
            k = form.shape[2]
            depth = 2 * max(k, (128 << SWIZZLES.index(swizzle)) // BITS[a])
            first, a_at, a_bytes = tile_of((128, depth), a, form.majors[0], swizzle, 0)
            start = -(-a_bytes // 1024) * 1024
            second, b_at, b_bytes = tile_of((64, depth), b, form.majors[1], swizzle, start)
            rng = np.random.default_rng(5)
            values = [rng.integers(-4, 5, x) for x in ((128, depth), (64, depth))]
            image = np.zeros(start + b_bytes, np.uint8)
            for value, at, offset, kind in ((values[0], a_at, 0, a), (values[1], b_at, start, b)):
                flat = np.zeros(value.size)
                flat[at.reshape(-1)] = value.reshape(-1)
                raw = element_bits(kind, flat).view(np.uint8)
                image[offset : offset + raw.size] = raw
            table = np.asarray(offsets(MMA_ATOMS[form.operation].layoutC_TV)).reshape(128, -1, order="F")
            right = total = 0
            for row in range(2):
                for block in range(depth // k):
                    parts = [local_tile(x, (Int(64), Int(k)), (r, block)) for x, r in ((first, row), (second, 0))]
                    desc = [make_gmma_desc(m, x).encode() for m, x in zip(form.majors, parts, strict=True)]
                    launch_group(runner, form, number, image, (desc[0], desc[1]), 1, (0, 0))
                    raw = runner.get("out", (form.form.registers, 128), np.uint32)
                    found = raw.view(np.float32 if d == "f32" else np.int32).T
                    x = values[0][64 * row : 64 * row + 64, block * k : block * k + k]
                    y = values[1][:, block * k : block * k + k]
                    expected = (x @ y.T).reshape(-1, order="F")[table]
                    right += bool((found == expected).all())
                    total += 1
            report[key] = {"right": right, "instructions": total}
        except Exception as problem:
            report[key] = {"failed": f"{type(problem).__name__}: {problem}"[:300]}
    _finish(out, "tiles", report)
    print(
        "right",
        sum(x.get("right", 0) for x in report.values()),
        "of",
        sum(x.get("instructions", 0) for x in report.values()),
    )


def element_bits(kind: str, values: Array) -> Array:
    """Numbers as the bits of an element type."""
    if kind in ("s8", "u8"):
        return values.astype(np.int64).astype(np.int8)
    if kind == "tf32":
        return values.astype(np.float32)
    found: Array = values.astype(FLOATS[kind])
    return found
