"""Random instructions on the emulator and on the GPU: every byte of shared and global memory must be the same.

    PYTHONPATH=. python3 -m tests.gpu.compare_emulator [--count 10000] [--seed 1] [--out comparison.json]

Instructions over all operations (tile and im2col loads, stores, all reductions, prefetches, multicast), ranks 1 to 5,
all formats, swizzles, interleaves, fills, element strides, box overhangs. The emulator runs them in worker processes;
what it lets through runs on the GPU, hundreds in one launch. Of what it says traps, one of each cause is launched in
a process of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kernels.jobs import Job, run_jobs
from cute_py.errors import CuteError, DeviceError, TmaTrap
from cute_py.gpu.kernels.copy_op import CopyOp
from cute_py.ptx.forms_copy import REDUCE_KINDS
from cute_py.tma.descriptor.data_types import format_row
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapTiled
from cute_py.tma.descriptor.violations import violations
from tests.gpu.recorded_jobs import run_unchecked
from tests.tma.emulator.recorded import filled

BASE = 0x7F00_0000_0000
KINDS = ("load", "load", "load", "store", "store", "reduce", "reduce", "prefetch", "multicast")
CLUSTER = 4

EXECUTES = {
    "add": (2, 3, 4, 6, 7, 8, 9, 10, 11, 12),
    "min": (2, 3, 4, 5, 6, 9),
    "max": (2, 3, 4, 5, 6, 9),
    "inc": (2,),
    "dec": (2,),
    "and": (2, 3, 4),
    "or": (2, 3, 4),
    "xor": (2, 3, 4),
}
"""Reduction -> formats that a draw prefers, so that most reductions run instead of trapping."""


@dataclass(frozen=True)
class Case:
    """One instruction, and what the emulator makes of it: the windows and the global memory after it, or the trap."""

    number: int
    label: str
    job: Job
    windows: tuple[bytes, ...]
    gmem: bytes
    trap: str = ""


def random_request(rng: np.random.Generator, kind: str, formats: tuple[int, ...]) -> TensorMapTiled | TensorMapIm2col:
    """A legal request of one of these formats that fits a small buffer."""
    while True:
        im2col = kind != "reduce" and rng.random() < 0.35
        interleave = int(rng.choice([0, 0, 0, 0, 1, 2])) if kind != "reduce" or rng.random() < 0.3 else 0
        rank = int(rng.integers(3, 6)) if im2col or interleave else int(rng.integers(1, 6))
        data_type = int(rng.choice(formats))
        width = format_row(data_type).bytes
        unit = 32 if interleave == 2 else 16
        if interleave:
            dims = [int(rng.integers(1, 12)) for _ in range(rank)]
            row = dims[0] * unit
        else:
            dims = [int(rng.integers(1, 2 + 400 // width))] + [int(rng.integers(1, 12)) for _ in range(rank - 1)]
            row = dims[0] * width
        strides = []
        for size in dims[1:]:
            row = -(-row // unit) * unit + unit * int(rng.integers(0, 3))
            strides.append(row)
            row *= size
        if rng.random() < 0.1 and len(strides) > 1:
            rng.shuffle(strides)
        swizzle = 1 if interleave == 2 else (0 if interleave else int(rng.integers(0, 4)))
        steps = [1] * rank
        if rng.random() < 0.3:
            steps = [int(rng.integers(1, 5)) if rng.random() < 0.5 else 1 for _ in range(rank)]
        is_float = format_row(data_type).is_float
        tail: Any = (steps, interleave, swizzle, int(rng.integers(0, 4)), int(rng.integers(0, 2)) if is_float else 0)
        head = (data_type, BASE + unit * int(rng.integers(0, 8)), dims, strides)
        request: TensorMapTiled | TensorMapIm2col
        if im2col:
            lower = [int(rng.integers(-2, 3)) for _ in range(rank - 2)]
            upper = [int(rng.integers(-2, 3)) for _ in range(rank - 2)]
            if kind == "store":
                lower, upper = [abs(x) for x in lower], [-abs(x) for x in upper]
            channels = max(1, 16 * int(rng.integers(1, 9)) // width)
            request = TensorMapIm2col(*head, lower, upper, channels, int(rng.integers(1, 40)), *tail)
        else:
            span = {0: 256 * width, 1: 32, 2: 64, 3: 128}[swizzle]
            inner = 16 * int(rng.integers(1, 1 + min(span, 512) // 16)) // width
            box = [int(rng.integers(1, 8)) if interleave else max(inner, 1)]
            box += [int(rng.integers(1, 10)) for _ in range(rank - 1)]
            if interleave:
                box[0] = max(box[0], -(-16 // width)) // -(-16 // width) * -(-16 // width)
            request = TensorMapTiled(*head, box, *tail)
        if not violations(request) and shared_bytes(request) <= 24 * 1024:
            return request


def shared_bytes(request: TensorMapTiled | TensorMapIm2col) -> int:
    """An upper bound of what a transfer covers in shared memory."""
    width = 32 if request.interleave else format_row(int(request.data_type or 0)).bytes
    if isinstance(request, TensorMapTiled):
        rows, inner = math.prod(request.box_dim[1:]), request.box_dim[0] * width
    else:
        rows, inner = request.pixels_per_column, request.channels_per_pixel * width
    return rows * max(inner, 128 if request.swizzle else inner)


def random_coords(rng: np.random.Generator, request: TensorMapTiled | TensorMapIm2col, kind: str) -> tuple[int, ...]:
    width = format_row(int(request.data_type or 0)).bytes
    low = 0 if kind in ("store", "reduce") else -6
    coords = [int(rng.integers(low, size + 2)) for size in request.global_dim]
    if isinstance(request, TensorMapIm2col):
        first = 0 if request.interleave else 1
        for i, (lower, upper) in enumerate(
            zip(request.pixel_box_lower_corner, request.pixel_box_upper_corner, strict=True)
        ):
            high = request.global_dim[first + i] - 1 + upper
            if high >= lower:
                coords[first + i] = int(rng.integers(lower, high + 1))
        coords[-1] = int(rng.integers(0, request.global_dim[-1]))
    if not request.interleave and rng.random() < 0.98:
        step = max(1, 16 // width)
        coords[0] = coords[0] // step * step
    return tuple(coords)


def random_case(number: int) -> Case | None:
    """The case of one seed, with the emulator's answer; None if the emulator does not cover it."""
    from cute_py.tma.emulator.emulator import Emulator

    rng = np.random.default_rng(number)
    kind = str(rng.choice(KINDS))
    op = str(rng.choice(REDUCE_KINDS)) if kind == "reduce" else ""
    formats = EXECUTES[op] if op and rng.random() < 0.9 else tuple(range(13))
    request = random_request(rng, "load" if kind in ("prefetch", "multicast") else kind, formats)
    im2col = isinstance(request, TensorMapIm2col)
    mode = "im2col" if im2col else "tile"
    coords = random_coords(rng, request, kind)
    reach = sum(
        (size - 1) * stride for size, stride in zip(request.global_dim[1:], request.global_strides, strict=True)
    )
    inner = {0: format_row(int(request.data_type or 0)).bytes, 1: 16, 2: 32}[int(request.interleave)]
    size = -(-(request.global_address - BASE + reach + request.global_dim[0] * inner) // 16) * 16 + 512
    row = {"data_type": int(request.data_type or 0), "fill": "tame" if rng.random() < 0.5 else "hash"}
    gmem = filled(row, size, number)
    window = -(-shared_bytes(request) // 1024) * 1024 + 1024
    offset = 1024 if rng.random() < 0.2 else 0
    window += offset
    descriptor = encode(request)
    offsets = tuple(int(x) for x in rng.integers(0, 4, request.rank - 2)) if im2col else ()
    rank, emulator = request.rank, Emulator()
    label = f"{'load' if kind == 'multicast' else kind} {op or mode}{' multicast' * (kind == 'multicast')}"
    mask = int(rng.integers(1, 2**CLUSTER)) if kind == "multicast" else 0
    loads = kind in ("load", "prefetch", "multicast")
    hint = str(rng.choice(["evict_first", "evict_last"])) if rng.random() < 0.1 else None
    operation = CopyOp("load" if kind == "multicast" else kind, rank, mode, op, hint, multicast=kind == "multicast")
    before = (np.full(window, 0xCD, np.uint8) if loads else filled(row, window, number + 7777)).copy()
    smem, memory, expected, trap = before.copy(), gmem.copy(), 0, ""
    where = {"mode": mode, "gmem_base": BASE}
    try:
        if kind in ("load", "multicast"):
            expected = int(
                emulator.load(descriptor, memory, coords, smem, smem_offset=offset, im2col_offsets=offsets, **where)
            )
        elif kind == "prefetch":
            emulator.prefetch(descriptor, memory, coords, im2col_offsets=offsets, **where)
        elif kind == "store":
            emulator.store(descriptor, memory, coords, smem, smem_offset=offset, **where)
        else:
            emulator.reduce(op, descriptor, memory, coords, smem, smem_offset=offset, **where)
    except TmaTrap as problem:
        trap = f"{problem.cuda_error}: {problem.cause}"
    except CuteError as problem:
        return Case(number, f"{label}: {type(problem).__name__}", None, (), b"", str(problem).splitlines()[0])  # type: ignore[arg-type]
    job = Job(
        operation,
        descriptor,
        coords,
        window=before.tobytes(),
        expected=expected,
        gmem=gmem.tobytes(),
        gmem_base=BASE,
        window_offset=offset,
        im2col_offsets=offsets if loads else (),
        mask=mask,
        issuer=int(rng.integers(0, CLUSTER)) if mask else 0,
    )
    cluster = CLUSTER if mask else 1
    windows = tuple(smem.tobytes() if not mask or mask >> r & 1 else before.tobytes() for r in range(cluster))
    return Case(number, label, job, windows, memory.tobytes(), trap)


def difference(case: Case, windows: tuple[bytes, ...], gmem: bytes | None, completed: bool) -> str:
    """What differs, or ''."""
    if not completed:
        return "the barrier did not complete"
    for rank, (got, wanted) in enumerate(zip(windows, case.windows, strict=True)):
        if got != wanted:
            at = next(i for i, (a, b) in enumerate(zip(got, wanted, strict=True)) if a != b)
            return f"shared memory of CTA {rank} at byte {at}: GPU {got[at]:#x}, emulator {wanted[at]:#x}"
    if gmem is not None and gmem != case.gmem:
        at = next(i for i, (a, b) in enumerate(zip(gmem, case.gmem, strict=True)) if a != b)
        return f"global memory at byte {at}: GPU {gmem[at]:#x}, emulator {case.gmem[at]:#x}"
    return ""


def confirm_traps(cases: list[Case], most: int) -> list[dict[str, Any]]:
    """One trap of each cause and instruction, launched in a process of its own."""
    from cute_py.gpu.isolate import call_isolated

    chosen: dict[str, Case] = {}
    for case in cases:
        chosen.setdefault(f"{case.label} {case.trap.split('=')[0]}", case)
    confirmed = []
    for case in list(chosen.values())[:most]:
        try:
            call_isolated(run_unchecked, case.job, CLUSTER if case.job.mask else 1)
            seen = "no trap"
        except DeviceError as problem:
            seen = str(problem.facts.get("code", problem.headline))
        row = {"case": case.number, "instruction": case.label, "predicted": case.trap, "seen": seen}
        confirmed.append({**row, "holds": case.trap.startswith(seen)})
    return confirmed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--traps", type=int, default=6)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--dry", action="store_true", help="the emulator alone")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    started = time.perf_counter()
    first = options.seed * 1_000_000
    # Forked before anything touches the device.
    with multiprocessing.get_context("fork").Pool(min(16, os.cpu_count() or 1)) as pool:
        found = pool.map(random_case, range(first, first + options.count * 130 // 100), chunksize=64)
    cases = [case for case in found if case is not None]
    refused = Counter(case.label + " " + case.trap for case in cases if case.job is None)
    traps = [case for case in cases if case.job is not None and case.trap]
    runs = [case for case in cases if case.job is not None and not case.trap][: options.count]
    report: dict[str, Any] = {
        "instructions": len(runs),
        "by operation": dict(Counter(case.label for case in runs)),
        "refused by the emulator": dict(refused),
        "traps predicted": len(traps),
        "emulator seconds": round(time.perf_counter() - started, 1),
    }
    wrong: list[dict[str, Any]] = []
    if not options.dry:
        from cute_py.gpu.device import open_device

        device = open_device()
        started = time.perf_counter()
        for cluster in (1, CLUSTER):
            mine = [case for case in runs if (case.job.mask != 0) == (cluster > 1)]
            for start in range(0, len(mine), options.batch):
                part = mine[start : start + options.batch]
                outcomes = run_jobs([case.job for case in part], cluster=cluster, device=device)
                for case, outcome in zip(part, outcomes, strict=True):
                    reason = difference(case, outcome.windows, outcome.gmem, outcome.completed)
                    if reason:
                        wrong.append({"case": case.number, "instruction": case.label, "difference": reason})
        report["gpu seconds"] = round(time.perf_counter() - started, 1)
        report["device"] = f"{device.name}, driver {device.driver_version}"
        report["traps"] = confirm_traps(traps, options.traps)
    report["identical"] = len(runs) - len(wrong)
    report["different"] = wrong[:50]
    text = json.dumps(report, indent=1)
    if options.out:
        options.out.write_text(text + "\n")
    print(text)
    return 1 if wrong or not all(row["holds"] for row in report.get("traps", [])) else 0


if __name__ == "__main__":
    sys.exit(main())
