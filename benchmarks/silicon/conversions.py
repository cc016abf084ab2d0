"""Conversions of registers on a device: random pairs of thread-value layouts, equal to the emulator, and their time.

The pairs are linear ones within a warp, linear ones of a block, some that repeat elements, and some of extents that are
no powers of two; element types of 8 to 64 bits.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.silicon.device import Runner
from cute_py.copies.registers.convert_tv import RegisterConversion, convert_layout_tv
from cute_py.errors import InvalidValueError
from cute_py.layout import Layout, offsets, size, static

DTYPES = ("float32", "float16", "int8", "float64", "bfloat16")
COUNT = 240
TIMED = 12
REPEATS = 2000


def random_layout(rng: random.Random, kind: str, extents: tuple[list[int], list[int]], local: int) -> Layout:
    """A thread-value layout of extents of thread and value, its modes in a random order of strides."""
    threads, values = extents
    modes = [("t", i, x) for i, x in enumerate(threads)] + [("v", i, x) for i, x in enumerate(values)]
    low = [m for m in modes if m[0] == "v" or m[1] < local]
    high = [m for m in modes if not (m[0] == "v" or m[1] < local)]
    rng.shuffle(low)
    strides, current = {}, 1
    for name, i, extent in (*low, *high):
        strides[name, i] = current
        current *= extent
    if kind == "repeats":
        strides[rng.choice(list(strides))] = 0
    parts = [tuple(strides[name, i] for i in range(len(x))) for name, x in (("t", threads), ("v", values))]
    return Layout(static((tuple(threads), tuple(values))), static(tuple(parts)))


def random_pairs(count: int, seed: int) -> Iterator[tuple[Layout, Layout, str]]:
    """(source, destination, element type), the same for the same seed."""
    rng = random.Random(seed)
    for number in range(count):
        kind = ("warp", "block", "repeats", "any")[number % 4]
        if kind == "any":
            threads = [rng.choice((2, 3, 4, 5, 8)) for _ in range(rng.choice((1, 2, 3)))]
            values = [rng.choice((1, 2, 3, 4)) for _ in range(rng.choice((1, 2)))]
        else:
            threads, values = [2] * rng.choice((5, 6, 7)), [2] * rng.choice((1, 2, 3, 4))
        local = 5 if kind == "warp" else len(threads)
        source = random_layout(rng, "plain", (threads, values), local)
        yield source, random_layout(rng, kind, (threads, values), local), rng.choice(DTYPES)


def cases() -> list[tuple[RegisterConversion, bool]]:
    """(conversion, whether it is timed)."""
    found = []
    for source, destination, dtype in random_pairs(COUNT, 5):
        found.append((convert_layout_tv(source, destination, dtype), False))
    timed = 0
    for source, destination, dtype in random_pairs(400, 6):
        try:
            both = [convert_layout_tv(source, destination, dtype, by=by) for by in ("shuffles", "shared memory")]
        except InvalidValueError:
            continue
        if both[0].cost.shuffles and source.shape == destination.shape and both[0].threads >= 32 and timed < TIMED:
            found += [(x, True) for x in both]
            timed += 1
    return found


def source_text() -> str:
    """CUDA C++ of a kernel for every case: once over its input; of a timed one, many times."""
    parts = []
    for number, (case, timed) in enumerate(cases()):
        first, second = case.registers
        threads = -(-case.threads // 32) * 32
        repeat = "for (int i = 0; i < times; ++i) { convert(x, y, tile);" if timed else "{ convert(x, y, tile);"
        again = f" for (int i = 0; i < {first}; ++i) x[i] = y[i]; __syncthreads(); }}" if timed else " }"
        parts.append(
            f"namespace n{number} {{\n{case.cuda()}}}\n"
            f'extern "C" __global__ void __launch_bounds__({threads})\n'
            f"k{number}(const unsigned* in, unsigned* out, int times) {{\n"
            f"  using n{number}::convert; extern __shared__ __align__(1024) unsigned char smem[];\n"
            f"  const unsigned tile = (unsigned)__cvta_generic_to_shared(smem); unsigned x[{first}], y[{second}];\n"
            f"  for (int i = 0; i < {first}; ++i) x[i] = in[i * {threads} + threadIdx.x];\n"
            f"  {repeat}{again}\n"
            f"  for (int i = 0; i < {second}; ++i) out[i * {threads} + threadIdx.x] = y[i];\n}}\n"
        )
    return "\n".join(parts)


def build_conversions(folder: Path) -> str:
    """The cubin of all cases."""
    path = folder / "convert.cu"
    path.write_text(source_text())
    command = [
        "nvcc",
        "-gencode=arch=compute_90a,code=sm_90a",
        "-cubin",
        str(path),
        "-o",
        str(folder / "convert.cubin"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    path.unlink()
    return f"convert: {done.returncode} {done.stderr[:2000]}"


def run_conversions(runner: Runner, out: Path) -> None:
    """Every case against the emulator, and the time of the timed ones in ns a block-wide conversion."""
    report: dict[str, Any] = {"equal": 0, "different": [], "times": []}
    for number, (case, timed) in enumerate(cases()):
        threads = -(-case.threads // 32) * 32
        table = np.asarray(offsets(case.source)).reshape(case.threads, -1, order="F")
        kind = case.dtype.numpy
        rng = np.random.default_rng(number)
        elements = rng.integers(0, 256, (int(table.max()) + 1) * kind.itemsize, dtype=np.uint8).view(kind)
        held = elements[table]
        words = np.zeros((threads, case.registers[0]), np.uint32)
        raw = np.ascontiguousarray(held).view(np.uint8).reshape(case.threads, -1)
        words.view(np.uint8).reshape(threads, -1)[: case.threads, : raw.shape[1]] = raw
        parameters = [
            (runner.put("in", np.ascontiguousarray(words.T)), "u64"),
            (runner.fill("out", case.registers[1] * threads * 4, 0), "u64"),
            (1, "u32"),
        ]
        kernel = runner.kernel("convert", f"k{number}")
        runner.launch(kernel, (1, 1), threads, case.cost.bytes + 16, parameters)
        got = runner.get("out", (case.registers[1], threads), np.uint32).T[: case.threads]
        count = int(size(case.destination[1]))
        found = np.ascontiguousarray(got).view(np.uint8)[:, : count * kind.itemsize]
        same = np.ascontiguousarray(found).tobytes() == case.run(held).tobytes()
        report["equal"] += same
        if not same:
            report["different"].append(number)
        if timed:
            report["times"].append(
                {
                    "number": number,
                    "by": case.by,
                    "cycles": case.cost.cycles,
                    "ns": _timed(runner, kernel, case, parameters),
                }
            )
    (out / "conversions.json").write_text(json.dumps(report))
    print("equal", report["equal"], "different", report["different"][:20])
    for row in report["times"]:
        print(row)


def _timed(runner: Runner, kernel: Any, case: RegisterConversion, parameters: list[tuple[int, str]]) -> float:
    """ns of one conversion of a block on one of 132 SMs that are full of them."""
    blocks = 132 * max(1, 1024 // case.threads)
    best = float("inf")
    for _ in range(3):
        runner.wait()
        start = time.perf_counter()
        runner.launch(
            kernel, (blocks, 1), -(-case.threads // 32) * 32, case.cost.bytes + 16, [*parameters[:2], (REPEATS, "u32")]
        )
        runner.wait()
        best = min(best, time.perf_counter() - start)
    return best / REPEATS / (blocks / 132) * 1e9
