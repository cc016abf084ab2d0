"""Whole-array copies between two orders, against memcpy, PyTorch, Triton and cuTENSOR, in one run.

    PYTHONPATH=. python3 -m benchmarks.relayout [--rounds 10] [--random 200] [--seconds 300] [--out DIRECTORY]
                                                [--cutensor libcutensor.so.2]
    PYTHONPATH=. python3 -m benchmarks.relayout --small | --prepare | --tiers | --host | --counters 20

Buffers rotate, everything is launched once before it is timed, every result is compared bit for bit. Percent of memory
speed: the time that the bytes read and written, each distinct byte once, take at the rate of a memcpy of 1 GiB in the
same run, over the time measured. Medians of CUDA events. Needs PyTorch. Writes relayout-<device>.json and .md.

--small: nodes of a graph of 64, beside memcpy nodes of equal bytes. --prepare: plan, compilation, cubin from disk.
--host: copies in host memory, beside numpy. --tiers: swizzled layouts and layouts without a common refinement.
--counters: sectors and wavefronts of so many plans beside the profiler's counters; needs ncu.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import math
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.kernels.ceilings import shared_kernel, vector_kernel
from benchmarks.kernels.cutensor import CuTensor
from benchmarks.preparation import preparation
from cute_py import ComposedLayout, Int, Layout, Swizzle
from cute_py.copies.boxes import Tuning
from cute_py.copies.host_copy import host_copy_layouts
from cute_py.copies.modes import refine
from cute_py.copies.operands import paired, side
from cute_py.copies.prepared import prepare_copy
from cute_py.errors import CuteError
from cute_py.gpu.device import Device, open_device
from cute_py.gpu.launch import Parameters, PreparedLaunch, load_kernel
from cute_py.layout.int_tuple import size as cute_size
from cute_py.layout.offsets import offsets

GIB: Final = 2**30

CASES: Final[tuple[tuple[str, int, tuple[int, ...], tuple[int, ...]], ...]] = (
    ("BSHD->BHSD bf16", 2, (16, 2048, 64, 128), (0, 2, 1, 3)),
    ("BHSD->BHDS bf16", 2, (16, 64, 2048, 128), (0, 1, 3, 2)),
    ("NCHW->NHWC bf16", 2, (256, 256, 56, 56), (0, 2, 3, 1)),
    ("NHWC->NCHW bf16", 2, (256, 56, 56, 256), (0, 3, 1, 2)),
    ("abc->cba f32", 4, (512, 512, 512), (2, 1, 0)),
    ("abc->bac f32", 4, (512, 512, 512), (1, 0, 2)),
    ("depth to space bf16", 2, (64, 64, 64, 8, 8, 32), (0, 1, 3, 2, 4, 5)),
    ("KV pages bf16", 2, (4096, 8, 16, 128), (1, 0, 2, 3)),
    ("patchify bf16", 2, (64, 3, 32, 16, 32, 16), (0, 2, 4, 1, 3, 5)),
    ("5-D reverse f32", 4, (32, 32, 64, 64, 32), (4, 3, 2, 1, 0)),
    ("6-D shuffle bf16", 2, (16, 16, 16, 16, 32, 32), (3, 5, 1, 0, 4, 2)),
    ("NCHW->NHWC u8, 3 channels", 1, (512, 3, 512, 512), (0, 2, 3, 1)),
    ("NHWC->NCHW u8, 3 channels", 1, (512, 512, 512, 3), (0, 3, 1, 2)),
    ("abc->acb f32, odd", 4, (511, 513, 509), (0, 2, 1)),
    ("(2^25,4) bf16 transposed", 2, (2**25, 4), (1, 0)),
    ("transpose f32, odd", 4, (16381, 8191), (1, 0)),
    ("transpose u8, odd", 1, (16381, 16379), (1, 0)),
)


def random_case(dice: random.Random) -> tuple[str, int, tuple[int, ...], tuple[int, ...]]:
    """A permutation of rank 2 to 7, of 64 MiB to 1 GiB."""
    rank, width = dice.randint(2, 7), dice.choice((1, 2, 4, 8, 16))
    wanted = dice.uniform(math.log(64 * 2**20), math.log(GIB))
    shares = [dice.uniform(0.5, 2) for _ in range(rank)]
    each = [math.exp((wanted - math.log(width)) * share / sum(shares)) for share in shares]
    shape = []
    for size in each:
        kind = dice.random()
        near = max(2, round(size))
        shape.append(
            1 << max(1, near.bit_length() - 1) if kind < 0.4 else near // 8 * 8 or near if kind < 0.7 else near
        )
    while math.prod(shape) * width < 64 * 2**20:
        shape[dice.randrange(rank)] *= 2
    order = list(range(rank))
    while order == sorted(order):
        dice.shuffle(order)
    return f"{'x'.join(map(str, shape))} ({','.join(map(str, order))}) {width} B", width, tuple(shape), tuple(order)


class Bench:
    """The device, PyTorch, and the rate of a memcpy."""

    def __init__(self, rounds: int, rated: bool = True, cutensor: Path | None = None) -> None:
        import torch

        self.torch: Any = torch
        torch.zeros(1, device="cuda")
        self.device: Device = open_device()
        self.rounds = rounds
        self.kinds = {1: torch.uint8, 2: torch.bfloat16, 4: torch.float32, 8: torch.float64, 16: torch.complex128}
        self.pool = torch.randint(-(2**63), 2**63 - 1, (4 * GIB // 8 + 64,), device="cuda", dtype=torch.int64)
        self.rate = self.memcpy_rate() if rated else 1.0
        self.cutensor = None if cutensor is None else CuTensor(cutensor)

    def memcpy_rate(self) -> float:
        """Bytes read and written in a microsecond by a memcpy of 1 GiB."""
        torch = self.torch
        parts = self.pool[: 4 * GIB // 8].view(4, -1)
        times = self.time([lambda: parts[1].copy_(parts[0]), lambda: parts[3].copy_(parts[2])], 11)
        torch.cuda.synchronize()
        return 2 * GIB / times

    def time(self, works: Sequence[Callable[[], object]], rounds: int) -> float:
        """Microseconds of one launch, the median; the works rotate."""
        torch = self.torch
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for work in works:
            work()
        samples = []
        for _ in range(rounds):
            start.record()
            for work in works:
                work()
            end.record()
            end.synchronize()
            samples.append(float(start.elapsed_time(end)) * 1000 / len(works))
        return statistics.median(samples)

    def case(
        self, name: str, width: int, shape: tuple[int, ...], order: tuple[int, ...], peers: bool = True
    ) -> dict[str, Any]:
        """One copy: ours and its peers. Raises where a result is wrong."""
        torch = self.torch
        count = math.prod(shape)
        pairs = []
        for i in range(2):
            flat = self.pool.view(torch.uint8)[i * GIB * 2 : i * GIB * 2 + count * width].view(self.kinds[width])
            x = flat.view(shape).permute(order)
            pairs.append((x, torch.empty(x.shape, dtype=x.dtype, device="cuda")))
        began = time.perf_counter()
        prepared = [prepare_copy(x, y, device=self.device) for x, y in pairs]
        seconds = (time.perf_counter() - began) / 2
        plan = prepared[0].plan
        assert plan is not None
        for one, (x, y) in zip(prepared, pairs, strict=True):
            y.view(torch.uint8).fill_(0xA5)
            one.launch()
            one.check()
            words = [v.contiguous().view(torch.uint8) for v in (x, y)]
            if not torch.equal(*words):
                raise RuntimeError(f"{name}: wrong result by {plan}")
        size = 2 * count * width
        ours = self.time([one.launch for one in prepared], self.rounds)
        found = {
            "case": name,
            "kernel": plan.kernel,
            "launches": len(prepared[0].kernels),
            "us": ours,
            "percent": 100 * size / self.rate / ours,
            "expected": 100 * plan.expected,
            "prepare_ms": 1000 * seconds,
            "bytes": size,
        }
        if peers:
            torch_us = self.time([lambda x=x, y=y: y.copy_(x) for x, y in pairs], 3)  # type: ignore[misc]
            found |= {"torch_us": torch_us, "torch_percent": 100 * size / self.rate / torch_us}
            triton_us = self.triton(shape, order, pairs)
            if triton_us is not None:
                found |= {"triton_us": triton_us}
            if self.cutensor is not None:
                found |= {"cutensor_us": self.permuted(name, width, shape, order, pairs)}
        return found

    def layouts(self, name: str, dtype: str, source: Any, destination: Any) -> dict[str, Any]:
        """One copy between two layouts of whole buffers, compared with the host's."""
        torch = self.torch
        kind = {"bfloat16": torch.bfloat16, "float32": torch.float32}[dtype]
        width, count = kind.itemsize, int(cute_size(source))
        flat = [self.pool.view(torch.uint8)[i * GIB : i * GIB + count * width].view(kind) for i in range(2)]
        out = [torch.zeros_like(x) for x in flat]
        prepared = [
            prepare_copy((x, source), (y, destination), device=self.device) for x, y in zip(flat, out, strict=True)
        ]
        for one in prepared:
            one.launch()
            one.check()
        plan = prepared[0].plan
        assert plan is not None
        index = np.random.default_rng(0).integers(0, count, 100_000)
        places = [torch.from_numpy(np.asarray(offsets(one, index), np.int64)).cuda() for one in (source, destination)]
        for x, y in zip(flat, out, strict=True):
            if not torch.equal(x[places[0]].view(torch.uint8), y[places[1]].view(torch.uint8)):
                raise RuntimeError(f"{name}: wrong result by {plan}")
        us, moved = self.time([one.launch for one in prepared], self.rounds), 2 * count * width
        return {"case": f"{name} {dtype}", "kernel": plan.kernel, "us": us, "percent": 100 * moved / self.rate / us}

    def ceiling(self, shape: tuple[int, ...], order: tuple[int, ...], width: int) -> tuple[float, str]:
        """Microseconds of the best of three minimal kernels of this pattern, and its name; results are compared."""
        torch = self.torch
        count = math.prod(shape)
        flat = [
            self.pool.view(torch.uint8)[i * GIB : i * GIB + count * width].view(self.kinds[width]) for i in range(4)
        ]
        strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        there = tuple(shape[i] for i in order)
        rows = [math.prod(there[i + 1 :]) for i in range(len(there))]
        refinement = refine(Layout(there, tuple(strides[i] for i in order)), Layout(there, tuple(rows)))
        assert refinement is not None
        found: list[tuple[float, str]] = []
        for name, made in (
            ("vector", vector_kernel(refinement.modes, width)),
            ("shared", shared_kernel(refinement.modes, width)),
        ):
            if made is None:
                continue
            kernel, blocks = load_kernel(made[0], self.device), made[1]
            launches = [
                PreparedLaunch(kernel, blocks, Parameters((x.data_ptr(), y.data_ptr())))
                for x, y in (flat[:2], flat[2:])
            ]
            found.append((self.time([one.launch for one in launches], 3), name))
            if not torch.equal(
                flat[0].view(shape).permute(order).contiguous().view(-1).view(torch.uint8), flat[1].view(torch.uint8)
            ):
                raise RuntimeError(f"the minimal kernel {name!r} copies {shape} {order} wrongly")
        with contextlib.suppress(CuteError):
            pairs = [(x.view(shape).permute(order), y.view(there)) for x, y in (flat[:2], flat[2:])]
            maps = [prepare_copy(x, y, tuning=Tuning(), device=self.device) for x, y in pairs]
            if maps[0].plans and len(maps[0].plans) <= 2:
                found.append((self.time([one.launch for one in maps], 3), "maps"))
        return min(found)

    def permuted(
        self, name: str, width: int, shape: tuple[int, ...], order: tuple[int, ...], pairs: Sequence[tuple[Any, Any]]
    ) -> float | None:
        """Microseconds of cuTENSOR's permutation, the better of its two; None: it refuses the case."""
        assert self.cutensor is not None
        torch, times = self.torch, []
        places = [(x.data_ptr(), y.data_ptr()) for x, y in pairs]
        for permute in self.cutensor.permutations(width, shape, order):
            pairs[0][1].view(torch.uint8).fill_(0xA5)
            times.append(self.time([partial(permute, *pair) for pair in places], 5))
            wanted, found = (v.contiguous() for v in pairs[0])  # it computes: a NaN becomes another one, a subnormal 0
            if not bool(((wanted == found) | ~(wanted.abs() > 1e-30)).all()):
                raise RuntimeError(f"{name}: cuTENSOR's result is another")
        return min(times, default=None)

    def triton(self, shape: tuple[int, ...], order: tuple[int, ...], pairs: Sequence[tuple[Any, Any]]) -> float | None:
        """Microseconds of Triton's transposition of matrices, by tiles through `tl.trans`; None: no matrices."""
        if order not in ((1, 0), (0, 2, 1)) or pairs[0][0].is_complex():
            return None
        try:
            from benchmarks.kernels.triton_transpose import transpose
        except ImportError:
            return None
        rows, columns = shape[-2:]
        works = [lambda x=x, y=y: transpose(x, y, rows, columns) for x, y in pairs]
        return self.time(works, 3)

    def nodes(self, size: int, shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[float, float]:
        """Microseconds of a node in a graph of 64: our copy of so many bytes of bf16, and a memcpy of as many."""
        torch, count = self.torch, size // 2
        x = self.pool.view(torch.bfloat16)[:count].view(shape).permute(order)
        others = [torch.empty(count, dtype=torch.bfloat16, device="cuda") for _ in range(2)]
        prepared = prepare_copy(x, others[0].view(x.shape), device=self.device)
        times = []
        for work in (
            lambda: prepared.launch(torch.cuda.current_stream()),
            lambda: others[1].copy_(others[0]),
        ):
            work()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                work()
            torch.cuda.synchronize()
            with torch.cuda.graph(graph, stream=stream):
                for _ in range(64):
                    work()
            times.append(self.time([graph.replay], 21) / 64)
        prepared.check()
        return times[0], times[1]


SMALL: Final = (
    ("transposed", lambda n: (n // 2 // 256, 256), (1, 0)),
    ("heads", lambda n: (n // 2 // (64 * 8 * 16), 16, 8, 64), (0, 2, 1, 3)),
    ("reversed", lambda n: (n // 2 // (16 * 32 * 8), 16, 32, 8), (3, 2, 1, 0)),
)


def small(bench: Bench) -> None:
    """Print nodes of copies of 64 KiB to 8 MiB."""
    print("| bytes | case | us per node | memcpy node | times |\n|---|---|---|---|---|")
    for size in (2**16, 2**18, 2**20, 2**22, 2**23):
        for name, shape, order in SMALL:
            ours, memcpy = bench.nodes(size, shape(size), order)
            print(f"| {size} | {name} | {ours:.2f} | {memcpy:.2f} | {ours / memcpy:.2f} |", flush=True)


HOSTED: Final = (
    ("u2", (4096, 4096), (1, 0)),
    ("u2", (3001, 4099), (1, 0)),
    ("u2", (8, 1024, 2048), (0, 2, 1)),
    ("u1", (4096, 4096), (1, 0)),
    ("u4", (4096, 2048), (1, 0)),
    ("u8", (2048, 2048), (1, 0)),
    ("u2", (64, 64, 64, 64), (0, 2, 1, 3)),
    ("u2", (16, 512, 512, 4), (0, 3, 1, 2)),
    ("u2", (16, 4, 512, 512), (0, 2, 3, 1)),
    ("u4", (128, 128, 256), (2, 1, 0)),
    ("u1", (8, 3, 512, 512), (0, 2, 3, 1)),
    ("u2", (16, 16, 16, 16, 32), (3, 1, 0, 4, 2)),
)


def hosted() -> None:
    """Print copies in host memory beside numpy.copyto of the same views, the best of 11 in turns."""
    print("| case | MiB | ms | numpy ms | times |\n|---|---|---|---|---|")
    for kind, shape, order in HOSTED:
        x = np.random.default_rng(0).integers(0, 100, shape).astype(kind).transpose(order)
        y = np.empty(x.shape, kind)
        plan, least = paired(side(x, "source"), side(y, "destination")), [math.inf, math.inf]
        assert plan.refinement is not None
        places = x.itemsize, x.__array_interface__["data"][0], y.__array_interface__["data"][0]
        for _ in range(11):
            for i, work in enumerate((partial(host_copy_layouts, plan.refinement, *places), partial(np.copyto, y, x))):
                began = time.perf_counter()
                work()
                least[i] = min(least[i], 1000 * (time.perf_counter() - began))
        name = f"{'x'.join(map(str, shape))} ({','.join(map(str, order))}) {kind}"
        print(f"| {name} | {x.nbytes / 2**20:.0f} | {least[0]:.2f} | {least[1]:.2f} | {least[1] / least[0]:.2f} |")


PLANNED: Final = (
    "from cute_py import Layout, plan_copy\nfrom cute_py.copies.plan import thread_launches",
    "thread_launches(plan_copy(Layout((511, 509), (509, 1)), Layout((511, 509)), 'float32'))[0].kernel",
)
"""Imports and the expression of the kernel that `--prepare` plans and compiles."""


def tiers() -> tuple[tuple[str, str, Any, Any], ...]:
    """(name, element type, source, destination): swizzled tiles, and sizes without a common refinement."""
    rows, columns = 8192, 8192
    plain, turned = Layout((rows, columns), (columns, 1)), Layout((rows, columns))
    tiles = Layout(((8, rows // 8), (64, columns // 64)), ((64, 8 * columns), (1, 512)))
    words = Layout(((8, rows // 8), (32, columns // 32)), ((32, 8 * columns), (1, 256)))
    return (
        ("linear: rows to tiles behind Sw<3,3,3>", "bfloat16", plain, ComposedLayout(Swizzle(3, 3, 3), Int(0), tiles)),
        ("linear: tiles behind Sw<3,3,3> to rows", "bfloat16", ComposedLayout(Swizzle(3, 3, 3), Int(0), tiles), plain),
        ("linear: columns to tiles", "bfloat16", turned, ComposedLayout(Swizzle(3, 3, 3), Int(0), tiles)),
        ("linear: columns to tiles of words", "float32", turned, ComposedLayout(Swizzle(3, 2, 3), Int(0), words)),
        ("general: (6000,10000) rows to (4000,15000) rows", "float32", *_unlike((1, 0), (1, 0))),
        ("general: (6000,10000) rows to (4000,15000) columns", "float32", *_unlike((1, 0), (0, 1))),
        ("general: (6000,10000) rows to (4000,15000) columns", "bfloat16", *_unlike((1, 0), (0, 1))),
    )


def _unlike(first: tuple[int, int], second: tuple[int, int]) -> tuple[Layout, Layout]:
    """Row-major or column-major matrices of 60,000,000 elements whose sides have no common divisors."""

    def matrix(sizes: tuple[int, int], order: tuple[int, int]) -> Layout:
        return Layout(sizes, (sizes[1], 1) if order == (1, 0) else (1, sizes[0]))

    return matrix((6000, 10000), first), matrix((4000, 15000), second)


class Profiled:
    """What `--counters` compares: plans, and the profiler's counters of their kernels.

    The profiler empties the caches before each kernel, so that a sector is missed in L2 when it is first asked for.
    """

    METRICS: Final = (
        "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum",
        "lts__t_sectors_srcunit_tex_op_write.sum",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
        "lts__t_sectors_srcunit_tex_op_read.sum",
        "dram__sectors_read.sum",
    )
    """Sectors read for the first time, sectors written, wavefronts; all sectors read, sectors that memory was read."""

    @staticmethod
    def cases(count: int) -> list[tuple[str, int, tuple[int, ...], tuple[int, ...]]]:
        """The named cases whose threads move bytes, and random ones, a few MiB each so that replays are short."""
        found: list[tuple[str, int, tuple[int, ...], tuple[int, ...]]] = []
        dice = random.Random(1)
        while len(found) < count:
            name, width, shape, order = random_case(dice)
            while math.prod(shape) * width > 32 * 2**20:
                largest = max(range(len(shape)), key=lambda i: shape[i])
                shape = tuple(n // 2 if i == largest else n for i, n in enumerate(shape))
            name = f"{'x'.join(map(str, shape))} ({','.join(map(str, order))}) {width} B"
            found.append((name, width, shape, order))
        return found

    @classmethod
    def launch_all(cls, count: int) -> None:
        """Launch every case once, and print its plan's numbers; under the profiler."""
        bench = Bench(1, rated=False)
        for name, width, shape, order in cls.cases(count):
            size = math.prod(shape) * width
            x = bench.pool.view(bench.torch.uint8)[:size].view(bench.kinds[width]).view(shape).permute(order)
            prepared = prepare_copy(x, bench.torch.empty(x.shape, dtype=x.dtype, device="cuda"), device=bench.device)
            prepared.launch()
            prepared.check()
            plan = prepared.plan
            assert plan is not None
            kernels = [kernel.source.name for kernel in prepared.kernels]
            print("PLAN", json.dumps([name, plan.kernel, kernels, *plan.sectors, plan.wavefronts]), flush=True)

    @classmethod
    def compare(cls, count: int) -> None:
        """Run `launch_all` under ncu, and print both."""
        command = ["ncu", "--csv", "--kernel-name", "regex:copy_", "--metrics", ",".join(cls.METRICS)]
        command += [sys.executable, "-m", "benchmarks.relayout", "--launch-all", str(count)]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=170, check=False)
        plans = [json.loads(line[5:]) for line in shown.stdout.splitlines() if line.startswith("PLAN ")]
        table = [line for line in shown.stdout.splitlines() if line.startswith('"')]
        launches: dict[str, dict[str, float]] = {}
        for row in csv.DictReader(table):
            if row["Metric Name"] in cls.METRICS:
                value = float(row["Metric Value"].replace(",", ""))
                launches.setdefault(row["ID"], {})[row["Metric Name"]] = value
        measured = iter(launches.values())
        print("| case | kernel | read: plan | ncu | with repeats | from memory", end="")
        print(" | written: plan | ncu | wavefronts: plan | ncu |\n" + "|---" * 10 + "|")
        for name, kernel, kernels, read, written, wavefronts in plans:
            counters = [next(measured, {}) for _ in kernels]
            first, stored, fronts, every, memory = (
                round(sum(one.get(key, 0) for one in counters)) for key in cls.METRICS
            )
            cells = name, kernel, read, first, every, memory, written, stored, wavefronts, fronts
            print("| " + " | ".join(map(str, cells)) + " |")
        if not launches:
            print(shown.stdout[-2000:], shown.stderr[-2000:])


def markdown(rows: Sequence[dict[str, Any]], rate: float) -> str:
    """The table, and geometric means."""
    lines = [
        f"memcpy of 1 GiB: {rate / 1000:.0f} GB/s read + written",
        "",
        "| case | kernel | us | percent of memory speed | PyTorch us | times PyTorch | others, us |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        torch_us = row.get("torch_us", math.nan)
        others = [f"Triton {row['triton_us']:.0f}"] if "triton_us" in row else []
        if "cutensor_us" in row:
            others.append(f"cuTENSOR {row['cutensor_us']:.0f}" if row["cutensor_us"] else "cuTENSOR refuses")
        if "ceiling" in row:
            others.append(f"minimal kernel ({row['ceiling']}) {row['ceiling_us']:.0f}")
        lines.append(
            f"| {row['case']} | {row['kernel']} | {row['us']:.1f} | {row['percent']:.1f} | {torch_us:.0f} "
            f"| {torch_us / row['us']:.2f} | {', '.join(others)} |"
        )
    mean = math.exp(statistics.fmean(math.log(row["percent"]) for row in rows))
    lines += ["", f"geometric mean {mean:.1f} %, least {min(row['percent'] for row in rows):.1f} %"]
    for key, peer in (("torch_us", "PyTorch"), ("cutensor_us", "cuTENSOR"), ("ceiling_us", "the minimal kernel")):
        times = [(row[key] / row["us"], row["case"]) for row in rows if row.get(key)]
        if times:
            lines.append(f"least times {peer}: {min(times)[0]:.2f} ({min(times)[1]}), of {len(times)}")
    return "\n".join(lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--random", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=300.0, help="no random case is begun after so long")
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--floor", type=float, default=60.0, help="percent below which minimal kernels run as well")
    parser.add_argument("--cutensor", type=Path, help="path of cuTENSOR's library")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--host", action="store_true")
    parser.add_argument("--tiers", action="store_true")
    parser.add_argument("--counters", type=int, default=0)
    parser.add_argument("--launch-all", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.host:
        hosted()
    elif options.prepare:
        print(preparation(*PLANNED))
    elif options.counters:
        Profiled.compare(options.counters)
    elif options.launch_all:
        Profiled.launch_all(options.launch_all)
    elif options.small:
        small(Bench(options.rounds))
    elif options.tiers:
        bench = Bench(options.rounds)
        print(markdown([bench.layouts(*tier) for tier in tiers()], bench.rate))
    else:
        measure(options)


def measure(options: argparse.Namespace) -> None:
    """The named cases and random permutations."""
    began = time.perf_counter()
    bench = Bench(options.rounds, cutensor=options.cutensor)
    named = [bench.case(*case) for case in CASES]
    print(markdown(named, bench.rate), flush=True)
    dice = random.Random(options.seed)
    others = []
    for _ in range(options.random):
        case = random_case(dice)
        if time.perf_counter() - began > options.seconds:
            break
        others.append(bench.case(*case))
        if others[-1]["percent"] < options.floor:
            us, name = bench.ceiling(case[2], case[3], case[1])
            others[-1] |= {"ceiling_us": us, "ceiling": name}
    if others:
        print(markdown(others, bench.rate), flush=True)
    name = bench.device.name.replace(" ", "-").lower()
    content = {"rate_gb_s": bench.rate / 1000, "cases": named, "random": others}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"relayout-{name}.json").write_text(json.dumps(content, indent=1))
    (options.out / f"relayout-{name}.md").write_text(
        markdown(named, bench.rate) + "\n\n" + markdown(others or named, bench.rate)
    )


if __name__ == "__main__":
    main()
