"""Whole-array copies between two orders, against memcpy and PyTorch, in one run.

    PYTHONPATH=. python3 -m benchmarks.relayout [--rounds 10] [--random 200] [--seconds 300] [--out DIRECTORY]

Buffers rotate, everything is launched once before it is timed, every result is compared bit for bit. Percent of memory
speed: the time that the bytes read and written, each distinct byte once, take at the rate of a memcpy of 1 GiB in the
same run, over the time measured. Medians of CUDA events. Needs PyTorch. Writes relayout-<device>.json and .md.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from cute_py.copies.prepared import prepare_copy
from cute_py.gpu.device import Device, open_device

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

    def __init__(self, rounds: int) -> None:
        import torch

        self.torch: Any = torch
        torch.zeros(1, device="cuda")
        self.device: Device = open_device()
        self.rounds = rounds
        self.kinds = {1: torch.uint8, 2: torch.bfloat16, 4: torch.float32, 8: torch.float64, 16: torch.complex128}
        self.pool = torch.randint(-(2**63), 2**63 - 1, (4 * GIB // 8 + 64,), device="cuda", dtype=torch.int64)
        self.rate = self.memcpy_rate()

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
            samples.append(start.elapsed_time(end) * 1000 / len(works))
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
        return found


def markdown(rows: Sequence[dict[str, Any]], rate: float) -> str:
    """The table, and geometric means."""
    lines = [
        f"memcpy of 1 GiB: {rate / 1000:.0f} GB/s read + written",
        "",
        "| case | kernel | us | percent of memory speed | PyTorch us | times PyTorch |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        torch_us = row.get("torch_us", math.nan)
        lines.append(
            f"| {row['case']} | {row['kernel']} | {row['us']:.1f} | {row['percent']:.1f} | {torch_us:.0f} "
            f"| {torch_us / row['us']:.2f} |"
        )
    mean = math.exp(statistics.fmean(math.log(row["percent"]) for row in rows))
    lines += ["", f"geometric mean {mean:.1f} %, least {min(row['percent'] for row in rows):.1f} %"]
    return "\n".join(lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--random", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=300.0, help="no random case is begun after so long")
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    began = time.perf_counter()
    bench = Bench(options.rounds)
    named = [bench.case(*case) for case in CASES]
    print(markdown(named, bench.rate), flush=True)
    dice = random.Random(options.seed)
    others = []
    for _ in range(options.random):
        case = random_case(dice)
        if time.perf_counter() - began > options.seconds:
            break
        others.append(bench.case(*case))
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
