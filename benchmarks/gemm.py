"""One GEMM kernel of `cute.tma.gemm_kernel` on a device: right on every kind of operand, and its rate beside cuBLAS.

    PYTHONPATH=. python3 -m benchmarks.gemm [--check | --sweep | --small | --compile] [--rounds 15] [--out DIRECTORY]

--check: sizes that no tile divides, K- and MN-major operands, bfloat16, float16, float8, clusters: products of small
integers, exactly, and of random numbers against torch in float64. --sweep: tiles, stages and clusters beside each
other. --small: three small ones without PyTorch. --compile: how long that takes. Without any: the rates, medians of
CUDA events, the kernel and its peer in turn, of a device that rests before each, and of one under load. The kernel is
`gemm_kernel`'s default but for what a row says.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import cute_py as cute
from benchmarks.preparation import preparation
from cute_py import Int, Layout
from cute_py.dtypes import as_dtype
from cute_py.errors import CuteError
from cute_py.gpu.arrays import array_view
from cute_py.tensor.array_views import ArrayView
from cute_py.tma.gemm.kernel import GemmKernel, gemm_kernel

LETTERS: Final = {
    "bfloat16": "BF16",
    "float16": "F16",
    "float8_e4m3fn": "E4M3",
    "float8_e5m2": "E5M2",
    "tfloat32": "TF32",
}
BITS: Final = {name: as_dtype(name).bits for name in LETTERS}


@dataclass(frozen=True)
class Case:
    """One GEMM: sizes, element type, majors of A and B, and what is chosen for it."""

    m: int
    n: int
    k: int
    dtype: str = "bfloat16"
    majors: str = "KK"
    tile: tuple[int, int] = (128, 256)
    warpgroups: int = 2
    cluster: str = ""
    c_dtype: str = "bfloat16"
    c_columns: int = 64
    span: str = "128B"
    stages: int | None = None
    staging: int = 2
    group: int = 8
    epilogue: str = "x"

    def __str__(self) -> str:
        usual = Case(0, 0, 0)
        chosen = {
            x.name: getattr(self, x.name) for x in fields(self) if getattr(self, x.name) != getattr(usual, x.name)
        }
        shape = "x".join(str(chosen.pop(name)) for name in "mnk")
        return " ".join([shape, *(f"{name}={value}" for name, value in chosen.items())]).replace("'", "")


def padded(count: int, bits: int) -> int:
    """Elements of a row whose bytes are a multiple of 16."""
    return -(-count * bits // 128) * 128 // bits


def view(x: Any) -> ArrayView:
    """A torch tensor as it lies; of types that it does not export, too."""
    try:
        return array_view(x)
    except CuteError:
        kind = as_dtype(str(x.dtype).removeprefix("torch."))
        return ArrayView(x.data_ptr(), tuple(x.shape), tuple(x.stride()), kind, x.device.index, owner=x)


def kernel_of(case: Case, **options: Any) -> GemmKernel:
    """The kernel of a case, made of a tiled MMA and three TMA atoms."""
    bits = BITS[case.dtype]
    depth = int(case.span.rstrip("B")) * 8 // bits

    def operand(rows: int, tile: int, major: str, shared: bool) -> Any:
        strides = (padded(case.k, bits), Int(1)) if major == "K" else (Int(1), padded(rows, bits))
        x = cute.make_tensor(cute.make_gmem_ptr(1 << 40, case.dtype), Layout((rows, case.k), strides))
        order = (Int(1), Int(2)) if major == "K" else (Int(2), Int(1))
        smem = cute.tma.make_smem_layout("MN" if major == "M" else "K", case.span, case.dtype, (tile, depth), order)
        op = "SM90_TMA_LOAD_MULTICAST" if shared else "SM90_TMA_LOAD"
        return cute.tma.make_tma_copy(op, x, smem, num_multicast=2 if shared else 1)

    a = operand(case.m, case.tile[0], case.majors[0], case.cluster == "N")
    b = operand(case.n, case.tile[1], case.majors[1], case.cluster == "M")
    strides = (padded(case.n, 16), Int(1))
    x = cute.make_tensor(cute.make_gmem_ptr(1 << 40, case.c_dtype), Layout((case.m, case.n), strides))
    smem = cute.tma.make_smem_layout("K", "64B" if case.c_columns == 32 else "128B", case.c_dtype, (64, case.c_columns))
    c = cute.tma.make_tma_copy("SM90_TMA_STORE", x, smem)
    form = f"SS<{case.majors[0]}{'N' * (case.majors[0] == 'M')},{case.majors[1]}{'N' * (case.majors[1] == 'M')}>"
    letters = LETTERS[case.dtype]
    name = f"SM90_64x{case.tile[1]}x{256 // bits}_F32{letters}{letters}_{form if bits == 16 else 'SS_TN'}"
    mma = cute.make_tiled_mma(name, (case.warpgroups, 1, 1))
    return gemm_kernel(mma, a, b, c, case.stages, case.epilogue, staging=case.staging, group=case.group, **options)


CHECKS: Final[tuple[Case, ...]] = (
    Case(128, 256, 64),
    Case(128, 256, 512),
    Case(256, 512, 128, tile=(128, 256)),
    Case(1024, 1024, 1024),
    Case(1000, 1000, 1000),
    Case(77, 264, 200),
    Case(129, 257, 65),
    Case(1, 8, 8),
    Case(60, 40, 24),
    Case(513, 1001, 77),
    Case(2048, 1536, 40),
    Case(640, 512, 256, majors="MK"),
    Case(640, 512, 256, majors="KM"),
    Case(640, 512, 256, majors="MM"),
    Case(200, 328, 120, majors="MM"),
    Case(1000, 1000, 1000, dtype="float16", c_dtype="float16"),
    Case(512, 512, 512, dtype="float8_e4m3fn"),
    Case(400, 520, 208, dtype="float8_e4m3fn"),
    Case(400, 520, 208, dtype="float8_e5m2", c_dtype="float16"),
    Case(512, 512, 512, tile=(256, 128)),
    Case(600, 520, 328, tile=(256, 128)),
    Case(600, 520, 328, tile=(256, 128), majors="MM"),
    Case(512, 512, 512, tile=(128, 128)),
    Case(512, 512, 512, tile=(64, 256), warpgroups=1),
    Case(600, 520, 328, tile=(128, 64), c_columns=32, span="64B"),
    Case(600, 520, 328, tile=(128, 192), c_columns=64, span="32B"),
    Case(600, 520, 328, c_columns=128),
    Case(600, 520, 328, staging=4, stages=3),
    Case(600, 520, 328, staging=1),
    Case(600, 520, 328, epilogue="x > 0.f ? x : 0.f"),
    Case(600, 520, 328, tile=(256, 192), epilogue="x > 0.f ? x : 0.f"),
    Case(600, 520, 328, tile=(256, 192), majors="MM"),
    Case(600, 520, 336, dtype="float8_e4m3fn", tile=(256, 160), c_columns=32),
    Case(600, 520, 332, dtype="tfloat32"),
    Case(512, 512, 512, dtype="tfloat32", tile=(128, 128)),
)
CLUSTERED: Final[tuple[Case, ...]] = (
    Case(256, 256, 64, cluster="M"),
    Case(1024, 1024, 1024, cluster="M"),
    Case(1000, 1000, 1000, cluster="M"),
    Case(129, 257, 65, cluster="M"),
    Case(60, 40, 24, cluster="M"),
    Case(60, 40, 24, cluster="N"),
    Case(1000, 1000, 1000, cluster="N"),
    Case(129, 257, 65, cluster="N"),
    Case(600, 520, 328, cluster="M", majors="MM"),
    Case(600, 520, 328, cluster="N", majors="MM"),
    Case(600, 520, 328, cluster="N", tile=(256, 128)),
    Case(1200, 1544, 776, cluster="M", majors="MM"),
    Case(1200, 1544, 776, cluster="N", majors="KM"),
    Case(600, 520, 328, cluster="N", dtype="float8_e4m3fn"),
    Case(600, 520, 328, cluster="M", dtype="float8_e4m3fn"),
    Case(4096, 4096, 512, cluster="M"),
    Case(1200, 1544, 784, cluster="N", dtype="float8_e4m3fn", tile=(256, 160), c_columns=32),
    Case(1200, 1544, 776, cluster="M", tile=(256, 192)),
)


ODD: Final = ((8136, 8112, 8176), (8200, 8208, 8208), (8136, 8112, 8192), (4040, 4080, 4080), (4040, 4080, 4096))
"""Sizes that no tile divides. torch._scaled_mm needs N and K to be multiples of 16."""
SPLIT: Final = ((8136, 8112, 8184), (8200, 8208, 8200), (4040, 4080, 4088))
"""The same with K an odd multiple of 8: every other row of 2-byte elements begins within a sector of 32 bytes."""


TILES: Final = ((128, 256), (256, 128), (128, 128), (128, 192), (256, 192))
STATES: Final = {"rested": 0.012, "loaded": 0.0}
"""Seconds that the device rests before each turn."""


def cells(one: dict[str, float]) -> list[str]:
    """Of a case in one state: microseconds, TFLOP/s, percent of the peer, and of the divided rate if there is one."""
    divided = f"{100 * one['of_divided']:.1f} of {one['divided_tflops']:.0f}" if "of_divided" in one else ""
    peer = f"{100 * one['of_peer']:.1f} of {one['peer_tflops']:.0f}"
    return [f"{one['us']:.1f}", f"{one['tflops']:.0f}", peer, divided]


class Bench:
    """PyTorch, and arrays for cases."""

    def __init__(self, rounds: int) -> None:
        import torch

        self.torch: Any = torch
        self.rounds = rounds
        torch.manual_seed(7)

    def matrix(self, rows: int, columns: int, major: str, dtype: str, integers: bool) -> Any:
        """(rows, columns) on the device, with 16-byte rows of the contiguous mode."""
        torch = self.torch
        kind = getattr(torch, as_dtype(dtype).storage)
        outer, inner = (rows, columns) if major == "K" else (columns, rows)
        wide = padded(inner, BITS[dtype])
        values = torch.randn((outer, wide), device="cuda") * 0.5
        if integers:
            values = torch.randint(-1, 2, (outer, wide), device="cuda").float()
        made = values.to(kind)[:, :inner]
        return made if major == "K" else made.t()

    def arrays(self, case: Case, integers: bool = False) -> tuple[Any, Any, Any]:
        torch = self.torch
        a = self.matrix(case.m, case.k, case.majors[0], case.dtype, integers)
        b = self.matrix(case.n, case.k, case.majors[1], case.dtype, integers)
        whole = torch.full(
            (case.m, padded(case.n, 16)), float("nan"), device="cuda", dtype=getattr(torch, case.c_dtype)
        )
        return a, b, whole[:, : case.n]

    def check(self, case: Case) -> str:
        """What differs, or nothing."""
        kernel = kernel_of(case, wait_cycles=400_000_000)
        for integers in (True, False):
            a, b, c = self.arrays(case, integers)
            kernel.run(*(view(x) for x in (a, b, c)))
            wanted = a.double() @ b.double().t()
            if "0.f" in case.epilogue:
                wanted = wanted.clamp(min=0)
            if integers:
                clear = wanted.abs() <= 256
                wrong = (c.double() != wanted) & clear
                if int(wrong.sum()) or c.isnan().any():
                    at = (wrong | c.isnan()).nonzero()
                    rows, columns = at[:, 0].unique(), at[:, 1].unique()
                    return (
                        f"{len(at)} of {c.numel()} wrong, rows {rows[:6].tolist()}..{int(rows[-1])} ({len(rows)}), "
                        f"columns {columns[:6].tolist()}..{int(columns[-1])} ({len(columns)})"
                    )
            else:
                error = float((c.double() - wanted).norm() / wanted.norm())
                if not error < 4e-3:
                    return f"relative error {error:.2e}"
        return ""

    def time(self, works: dict[str, Callable[[], object]], pause: float) -> dict[str, float]:
        """Microseconds of one launch of each, the median of rounds of three; they take turns.

        Before each turn the device rests for `pause` seconds, so that it runs at its highest clock. Without a pause it
        has worked for half a second before, and its clock is what its power allows.
        """

        def round_of(samples: dict[str, list[tuple[Any, Any]]]) -> None:
            for name, work in works.items():
                time.sleep(pause)
                start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
                work()  # while it runs the others are enqueued: what a launch costs the host is not measured
                start.record()
                for _ in range(3):
                    work()
                end.record()
                samples[name].append((start, end))
                if pause:
                    end.synchronize()
            self.torch.cuda.synchronize()

        end = time.perf_counter() + 0.5
        while not pause and time.perf_counter() < end:
            round_of(defaultdict(list))
        samples: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
        for _ in range(self.rounds):
            round_of(samples)
        return {
            name: statistics.median([start.elapsed_time(end) * 1000 / 3 for start, end in pairs])
            for name, pairs in samples.items()
        }

    def peer(self, case: Case, a: Any, b: Any) -> tuple[str, Callable[[], object]]:
        """cuBLAS by torch on the same operands."""
        torch = self.torch
        if BITS[case.dtype] == 16:
            out = torch.empty((case.m, case.n), device="cuda", dtype=getattr(torch, case.c_dtype))
            return "torch.matmul", lambda: torch.matmul(a, b.t(), out=out)
        one = torch.ones((), device="cuda")
        kind = getattr(torch, case.c_dtype)
        return "torch._scaled_mm", lambda: torch._scaled_mm(
            a, b.t(), scale_a=one, scale_b=one, out_dtype=kind, use_fast_accum=True
        )

    def rate(
        self, case: str, problem: Case, peer: str, divided: Case | None, times: dict[str, float]
    ) -> dict[str, float]:
        """Of one case: its time and rate, and the rates that it is compared with."""
        work = 2 * problem.m * problem.n * problem.k
        found = {
            "us": times[case],
            "tflops": work / times[case] / 1e6,
            "peer_tflops": work / times[peer] / 1e6,
            "of_peer": times[peer] / times[case],
        }
        if divided is not None:
            rate = 2 * divided.m * divided.n * divided.k / times["divided"] / 1e6
            found |= {"divided_tflops": rate, "of_divided": found["tflops"] / rate}
        return found

    def rates(self, cases: list[Case], divided: Case | None = None) -> list[dict[str, Any]]:
        """Rates of cases of one problem, of its peer, and of a problem of divided sizes, measured in turn."""
        a, b, c = self.arrays(cases[0])
        name, peer = self.peer(cases[0], a, b)
        works: dict[str, Callable[[], object]] = {name: peer}
        rows: list[dict[str, Any]] = []
        prepared = {}
        if divided is not None:
            prepared["divided"] = kernel_of(divided).prepare(*(view(x) for x in self.arrays(divided)))
            works["divided"] = prepared["divided"].launch
        for case in cases:
            kernel = kernel_of(case)
            try:
                began = time.perf_counter()
                prepared[str(case)] = kernel.prepare(view(a), view(b), view(c))
                seconds = time.perf_counter() - began
                prepared[str(case)].launch()
                prepared[str(case)].check()
                works[str(case)] = prepared[str(case)].launch
                rows.append({"case": str(case), "prepare_ms": round(seconds * 1000, 1)})
            except Exception as problem:
                print("FAILED", case, str(problem)[:400])
        for state, pause in STATES.items():
            times = self.time(works, pause)
            for row in rows:
                row[state] = self.rate(row["case"], cases[0], name, divided, times)
        for row in rows:
            row["peer"] = name
            found = [cell for state in STATES for cell in cells(row[state])]
            print(row["case"], *found, f"{row['prepare_ms']} ms", sep=" | ", flush=True)
        for one in prepared.values():
            one.check()
        return rows


def power() -> str:
    """Clocks and power of the device as they are."""
    asked = "name,driver_version,clocks.sm,clocks.mem,power.draw,power.limit,clocks_event_reasons.active"
    command = ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout.strip()


def sweep(bench: Bench) -> list[dict[str, Any]]:
    """Tiles, clusters, stages and orders of tiles beside each other."""
    found = []
    sizes = [(8192, 8192, 8192), (4096, 4096, 4096), *SPLIT]
    for dtype, (m, n, k) in [("bfloat16", size) for size in sizes] + [("float8_e4m3fn", size) for size in sizes[:2]]:
        base = Case(m, n, k, dtype)
        cases = [replace(base, cluster=x, tile=tile) for x in ("", "M", "N") for tile in TILES]
        cases += [replace(base, group=group) for group in (4, 16)]
        cases += [replace(base, stages=3, staging=4), replace(base, staging=1, c_columns=128)]
        found += bench.rates(cases)
    return found


def tables(bench: Bench) -> list[dict[str, Any]]:
    """The kernel as `gemm_kernel` makes it, on divided sizes, on others, on other majors, and with a multicast."""
    found = []
    for dtype in ("bfloat16", "float8_e4m3fn"):
        for size in (8192, 4096):
            base = Case(size, size, size, dtype)
            found += bench.rates([base, replace(base, cluster="M")])
            if dtype == "bfloat16":
                for majors in ("MK", "KM", "MM"):
                    found += bench.rates([replace(base, majors=majors)])
    for dtype, sizes in (("bfloat16", (*ODD, *SPLIT)), ("float8_e4m3fn", ODD)):
        for m, n, k in sizes:
            base, size = Case(m, n, k, dtype), 8192 if m > 6000 else 4096
            shared = replace(base, cluster="M")
            wider = replace(base, cluster="N", tile=(256, 160), c_columns=32)
            cases = [shared, wider] if kernel_of(base).plan.split_rows else [base, shared]
            found += bench.rates(cases, Case(size, size, size, dtype))
    return found


def markdown(rows: list[dict[str, Any]]) -> str:
    """The rates as a table."""
    states = "".join(f" {state}: us | TFLOP/s | % of the peer | % of the divided rate |" for state in STATES)
    lines = [f"| M x N x K |{states}", "|---" * (1 + 4 * len(STATES)) + "|"]
    for row in rows:
        found = [cell for state in STATES for cell in cells(row[state])]
        lines.append("| " + " | ".join([row["case"], *found]) + " |")
    return "\n".join(lines) + "\n"


def small() -> None:
    """A few GEMMs of numpy arrays, for tools that slow a kernel down: PyTorch is not needed, and waits are long."""
    from tests.tma.gemm.problem import arrays, output, product

    for case in (
        Case(200, 264, 328),
        Case(264, 520, 200, majors="MM"),
        Case(264, 520, 200, cluster="M"),
        Case(264, 520, 200, tile=(256, 192)),
        Case(520, 264, 208, dtype="float8_e4m3fn", tile=(256, 160), cluster="N", c_columns=32),
        Case(200, 264, 100, dtype="tfloat32"),
    ):
        a, b = arrays(case)
        c = output(case)
        kernel_of(case, wait_cycles=100_000_000_000).run(a, b, c)
        print("right" if (c == product(case, a, b)).all() else "WRONG", case, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("check", "sweep", "small", "compile"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.small:
        small()
        return
    if given.compile:
        print(preparation("from benchmarks.gemm import Case, kernel_of", "kernel_of(Case(4096, 4096, 4096)).kernel"))
        return
    bench = Bench(given.rounds)
    print(power())
    if given.check:
        wrong = 0
        for case in (*CHECKS, *CLUSTERED):
            found = bench.check(case)
            wrong += bool(found)
            print(f"{'WRONG' if found else 'right'} {case}{': ' + found if found else ''}", flush=True)
        print(f"{wrong} wrong")
        return
    rows = sweep(bench) if given.sweep else tables(bench)
    print(power())
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        device = bench.torch.cuda.get_device_name().lower().replace(" ", "-")
        place = given.out / f"gemm-{'sweep-' * given.sweep}{device}"
        place.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
        place.with_suffix(".md").write_text(markdown(rows))


if __name__ == "__main__":
    main()
