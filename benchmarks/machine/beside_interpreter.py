"""run_ptx beside Triton's interpreter, in the same run: one eager run of each kernel, its PTX parsed anew.

    python -m benchmarks.machine.beside_interpreter PYTHON [--rounds 15] [--json OUT]

PYTHON is an interpreter with Triton 3.6, PyTorch (CPU) and numpy below 2.4. Both take turns, one run each a round; the
table has the medians and the median of the rounds' quotients. `below 3` says whether the bound of this page holds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import cute_py as cute
from cute_py.machine import run as machine_run
from tests.machine.test_triton import ROWS, launch

ROOT = Path(__file__).resolve().parents[2]
BOUND = 3.0


def timed(row: dict[str, Any]) -> float:
    """Seconds of one run: text to bytes."""
    args, _ = launch(row)
    machine_run._module.cache_clear()
    start = time.perf_counter()
    run = cute.run_ptx(row["ptx"], grid=row["grid"], args=args, dynamic_shared=row["shared"], schedule="eager")
    seconds = time.perf_counter() - start
    assert run.ok, run.explain()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.machine.beside_interpreter")
    parser.add_argument("python")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    words = [options.python, str(ROOT / "benchmarks/kernels/triton_interpreted.py"),
             str(ROOT / "tests/oracle/data/triton_kernels.jsonl.xz")]  # fmt: skip
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": ""}
    other = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert other.stdin is not None
    assert other.stdout is not None
    found = {}
    for name, row in ROWS.items():
        pairs = []
        for turn in range(options.rounds + 1):
            other.stdin.write(f"{name}\n")
            other.stdin.flush()
            theirs = json.loads(other.stdout.readline())["seconds"]
            ours = timed(row)
            if turn:  # the first round warms both
                pairs.append((ours, theirs))
        ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
        ratio = statistics.median(a / b for a, b in pairs)
        found[name] = {"ms": 1e3 * ours, "interpreter_ms": 1e3 * theirs, "ratio": ratio}
        print(f"| {name} | {1e3 * ours:.1f} | {1e3 * theirs:.1f} | {ratio:.2f} | {ratio <= BOUND} |", flush=True)
    other.stdin.close()
    other.wait(60)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak of this process: {peak:.0f} MiB", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
