"""Questions that only a device answers, asked of it; the answers are rules of the emulator.

    PYTHONPATH=. python3 -m tests.tma.emulator.open_questions

Prints JSON. What may trap runs in a process of its own.
"""

from __future__ import annotations

import json
import struct
import sys
from typing import Any

import numpy as np

from benchmarks.kernels.jobs import Job, run_jobs
from cute_py.errors import CuteError
from cute_py.gpu.isolate import call_isolated
from cute_py.gpu.kernels.copy_op import CopyOp
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapTiled
from tests.gpu.recorded_jobs import run_unchecked

BASE = 0x7F00_0000_0000
INF, MINUS = 0x7FF0 << 48, 0xFFF0 << 48
ONE = 0x3FF0 << 48
PAIRS = {
    "signalling, 1": (0x7FF1 << 48 | 0xA1, ONE),
    "1, signalling": (ONE, 0x7FF1 << 48 | 0xB2),
    "quiet, 1": (0x7FF8 << 48 | 0xA3, ONE),
    "1, quiet": (ONE, 0x7FF9 << 48 | 0xB4),
    "-quiet, 1": (0xFFF8 << 48 | 0xA5, ONE),
    "1, -signalling": (ONE, 0xFFF1 << 48 | 0xB6),
    "quiet, quiet": (0x7FF8 << 48 | 0xA7, 0x7FF9 << 48 | 0xB7),
    "larger quiet, quiet": (0x7FFA << 48 | 0xA8, 0x7FF9 << 48 | 0xB8),
    "signalling, quiet": (0x7FF1 << 48 | 0xA9, 0x7FF9 << 48 | 0xB9),
    "quiet, signalling": (0x7FF8 << 48 | 0xAA, 0x7FF1 << 48 | 0xBA),
    "signalling, signalling": (0x7FF1 << 48 | 0xAB, 0x7FF2 << 48 | 0xBB),
    "inf, -inf": (INF, MINUS),
    "-inf, inf": (MINUS, INF),
    "inf, quiet": (INF, 0x7FF9 << 48 | 0xBC),
    "denormal, denormal": (1, 1),
    "1, -1": (ONE, 0xBFF0 << 48),
    "-0, -0": (1 << 63, 1 << 63),
}
"""(global, shared) operands of a float64 sum, as bits."""


def float64_sums() -> dict[str, str]:
    old, new = (np.array([pair[i] for pair in PAIRS.values()] + [0], np.uint64) for i in (0, 1))
    tile = encode(TensorMapTiled(8, BASE, (18,), (), (18,)))
    job = Job(CopyOp("reduce", 1, "tile", "add"), tile, (0,), new.tobytes() + bytes(1024 - 144), 0, old.tobytes(), BASE)
    left = np.frombuffer(run_jobs([job])[0].gmem or b"", np.uint64)
    return {name: f"{int(value):016x}" for name, value in zip(PAIRS, left[: len(PAIRS)], strict=True)}


SMALL = {
    "denormal, denormal": (0x00000001, 0x00000001),
    "denormal, denormal to normal": (0x00500000, 0x00500000),
    "small, denormal": (0x00900000, 0x00400000),
    "denormal, small": (0x00400000, 0x00900000),
    "difference is denormal": (0x00900000, 0x80880000),
    "negative difference is denormal": (0x00880000, 0x80900000),
    "denormal, 0": (0x00400000, 0x00000000),
    "-denormal, 0": (0x80400000, 0x00000000),
    "-denormal, -0": (0x80400000, 0x80000000),
    "0, denormal": (0x00000000, 0x00400000),
    "-0, -denormal": (0x80000000, 0x80400000),
    "denormal, 1": (0x00400000, 0x3F800000),
    "-denormal, denormal": (0x80400000, 0x00400000),
    "0, 1 with more than tf32": (0x00000000, 0x3F800001),
}
"""(global, shared) operands of float32 sums, as bits."""


def float32_sums() -> dict[str, dict[str, str]]:
    old, new = (np.array([pair[i] for pair in SMALL.values()] + [0] * 2, np.uint32) for i in (0, 1))
    answers = {}
    for data_type in (7, 10, 11, 12):
        tile = encode(TensorMapTiled(data_type, BASE, (16,), (), (16,)))
        operation, window = CopyOp("reduce", 1, "tile", "add"), new.tobytes() + bytes(960)
        left = np.frombuffer(
            run_jobs([Job(operation, tile, (0,), window, 0, old.tobytes(), BASE)])[0].gmem or b"",
            np.uint32,
        )
        answers[str(data_type)] = {k: f"{int(v):08x}" for k, v in zip(SMALL, left[: len(SMALL)], strict=True)}
    return answers


def swizzled_offsets() -> dict[str, str]:
    """The bytes of a swizzled tile at offsets that are no multiple of the swizzle's repeat."""
    from cute_py.tma.emulator.emulator import Emulator

    gmem = (np.arange(4096, dtype=np.uint32) * 7 >> 2).astype(np.uint8)
    answers = {}
    for swizzle, inner in ((1, 32), (2, 64), (3, 128)):
        tile = encode(TensorMapTiled(0, BASE, (128, 32), (128,), (inner, 5), swizzle=swizzle))
        for offset in (128, 256, 384, 512, 896):
            smem = np.full(4096, 0xCD, np.uint8)
            nbytes = Emulator().load(tile, gmem, (0, 3), smem, smem_offset=offset, gmem_base=BASE)
            job = Job(
                CopyOp("load", 2), tile, (0, 3), b"\xcd" * 4096, nbytes, gmem.tobytes(), BASE, window_offset=offset
            )
            same = run_jobs([job])[0].windows[0] == smem.tobytes()
            answers[f"swizzle {swizzle}, offset {offset}"] = "as by the address" if same else "otherwise"
    return answers


def attempt(job: Job) -> str:
    """What a launch that may trap leaves, in words."""
    try:
        out = call_isolated(run_unchecked, job, seconds=60.0)[0]
    except CuteError as problem:
        return f"{problem.facts.get('code', '')} {problem.headline}"[:160]
    window, gmem = np.frombuffer(out.windows[0], np.uint8), out.gmem
    where = np.flatnonzero(window != 0xCD)
    written = f"{len(where)} bytes from {where[0]}" if len(where) else "nothing"
    return f"completed={out.completed}, window: {written}" + ("" if gmem is None else f", gmem sum {sum(gmem)}")


def misaligned() -> dict[str, str]:
    gmem, plain = bytes(range(1, 129)) * 8, encode(TensorMapTiled(0, BASE, (32, 8), (32,), (32, 4)))
    swizzled = encode(TensorMapTiled(0, BASE, (32, 8), (32,), (32, 4), swizzle=1))
    answers = {}
    for name, tile in (("plain", plain), ("swizzle 32B", swizzled)):
        for offset in (8, 16, 64):
            job = Job(CopyOp("load", 2), tile, (0, 0), b"\xcd" * 1024, 128, gmem, BASE, window_offset=offset)
            answers[f"load {name} at {offset}"] = attempt(job)
    job = Job(CopyOp("store", 2), plain, (0, 0), bytes([1]) * 1024, 0, bytes(1024), BASE, window_offset=16)
    answers["store plain at 16"] = attempt(job)
    return answers


def im2col_bounds() -> dict[str, str]:
    """Bases outside the bounding box of stores and prefetches; a batch coordinate outside the tensor."""
    column = encode(TensorMapIm2col(0, BASE, (32, 7, 4), (32, 224), (1,), (-1,), 32, 4))
    answers = {}
    for kind, coords in (("store", (0, 0, 0)), ("store", (0, 6, 0)), ("store", (0, 3, 9)), ("prefetch", (0, 0, 0))):
        offsets = (0,) if kind == "prefetch" else ()
        job = Job(
            CopyOp(kind, 3, "im2col"), column, coords, bytes([1]) * 1024, 0, bytes(1024), BASE, im2col_offsets=offsets
        )
        answers[f"{kind} at {coords}"] = attempt(job)
    job = Job(
        CopyOp("load", 3, "im2col"), column, (0, 3, -5), b"\xcd" * 1024, 128, bytes(1024), BASE, im2col_offsets=(0,)
    )
    answers["load at (0, 3, -5)"] = attempt(job)
    return answers


def unrecorded_writes() -> dict[str, str]:
    """im2col reductions, and interleaved im2col stores and reductions, on random operands."""
    from cute_py.tma.emulator.emulator import Emulator

    rng, jobs, wanted, kinds = np.random.default_rng(5), [], [], []
    for _ in range(600):
        interleave, data_type = int(rng.integers(0, 3)), int(rng.choice([2, 3, 7, 9]))
        width, unit = {2: 4, 3: 4, 7: 4, 9: 2}[data_type], (16, 16, 32)[interleave]
        dims = [int(rng.integers(1, 9)) for _ in range(4)]
        dims[0] *= 1 if interleave else 16 // width
        spatial = (0, 1) if interleave else (1, 2)
        lower = [int(rng.integers(0, dims[m])) for m in spatial]
        high = [int(rng.integers(lo, dims[m])) for m, lo in zip(spatial, lower, strict=True)]
        upper = [h - dims[m] + 1 for m, h in zip(spatial, high, strict=True)]
        row = dims[0] * (unit if interleave else width)
        strides = [row, row * dims[1], row * dims[1] * dims[2]]
        steps = [int(rng.integers(1, 4)) for _ in range(4)]
        swizzle = (int(rng.integers(0, 3)), 0, 1)[interleave]
        column = TensorMapIm2col(
            data_type,
            BASE,
            dims,
            strides,
            lower,
            upper,
            16 // width,
            int(rng.integers(1, 30)),
            steps,
            interleave,
            swizzle,
        )
        coords = [int(rng.integers(0, d)) for d in dims]
        if not interleave:
            coords[0] = coords[0] // (16 // width) * (16 // width)
        for m, lo, h in zip(spatial, lower, high, strict=True):
            coords[m] = int(rng.integers(lo, h + 1))
        gmem, smem = rng.integers(0, 256, strides[2] * dims[3] + 64, np.uint8), rng.integers(0, 256, 4096, np.uint8)
        op = str(rng.choice(["add", "min", "or", "xor"])) if interleave == 0 or rng.random() < 0.5 else ""
        if op and (data_type in (7, 9) and op != "add"):
            op = "add"
        after = gmem.copy()
        if op:
            Emulator().reduce(op, column, after, coords, smem, gmem_base=BASE)
        else:
            Emulator().store(column, after, coords, smem, gmem_base=BASE)
        operation = CopyOp("reduce" if op else "store", 4, "im2col", op)
        jobs.append(Job(operation, encode(column), tuple(coords), smem.tobytes(), 0, gmem.tobytes(), BASE))
        wanted.append(after.tobytes())
        kinds.append(f"im2col {'reduction' if op else 'store'}{' with interleave' * bool(interleave)}")
    same: dict[str, list[bool]] = {}
    for kind, outcome, want in zip(kinds, run_jobs(jobs), wanted, strict=True):
        same.setdefault(kind, []).append(outcome.gmem == want)
    return {kind: f"{sum(found)} of {len(found)} as emulated" for kind, found in same.items()}


def main() -> int:
    answers: dict[str, Any] = {}
    for question in (float64_sums, float32_sums, swizzled_offsets, misaligned, im2col_bounds, unrecorded_writes):
        try:
            answers[question.__name__] = question()
        except (CuteError, struct.error, ValueError) as problem:
            answers[question.__name__] = f"{type(problem).__name__}: {problem}"
    print(json.dumps(answers, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
