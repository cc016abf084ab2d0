"""The mutants of `seeded_faults` on a GPU, alone and under the four tools of compute-sanitizer.

    python -m benchmarks.machine.faults_on_device all OUT.json --seconds 270 --part 0/2

Every mutant runs in a process of its own, with a time limit: one that hangs ends with it. `prepare` writes each mutant
with its launch and its arguments to a file, `one` launches such a file through the driver.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.machine import on_device
from benchmarks.machine.seeded_faults import cutlass_kernels, drawn, own_kernels, triton_kernels

TOOLS: Final = ("", "memcheck", "racecheck", "synccheck", "initcheck")
"""Tools of compute-sanitizer; the first stands for none."""
FOUND: Final = 9
LIMIT: Final = 25
WORKERS: Final = 14


def prepare(folder: Path, seed: int, each: int) -> list[dict[str, Any]]:
    """Write the mutants; their rows, kinds in turn."""
    kernels = {one.name: one for one in (*triton_kernels(), *cutlass_kernels(), *own_kernels())}
    rows = []
    for number, fault in enumerate(drawn(list(kernels.values()), seed, each)):
        kernel = kernels[fault.kernel]
        args, arrays = kernel.arguments()
        path = folder / f"{number}.pickle"
        path.write_bytes(pickle.dumps((fault.put_into(kernel.text), kernel.launch, args, arrays)))
        rows.append({"number": number, "kernel": fault.kernel, "kind": fault.kind, "line": fault.line,
                     "what": fault.what, "place": number % each})  # fmt: skip
    for name, kernel in kernels.items():
        args, arrays = kernel.arguments()
        (folder / f"{name}.pickle").write_bytes(pickle.dumps((kernel.text, kernel.launch, args, arrays)))
        rows.append({"number": name, "kernel": name, "kind": "sound", "line": 0, "what": "", "place": -1})
    return sorted(rows, key=lambda row: row["place"])


def one(path: Path) -> None:
    """Launch a file; print a digest of the bytes."""
    import hashlib

    text, launch, args, arrays = pickle.loads(path.read_bytes())
    on_device.LIMIT_SECONDS = 8.0
    on_device.run_on_device(text, args=args, **launch)
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(x).view(np.uint8).tobytes() for x in arrays))
    print("bytes", digest.hexdigest()[:16], flush=True)


def tried(folder: Path, row: dict[str, Any], tool: str, end: float) -> dict[str, Any] | None:
    """One mutant under one tool; None: there was no time."""
    if time.monotonic() > end:
        return None
    sanitizer = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    command = [
        sys.executable,
        "-m",
        "benchmarks.machine.faults_on_device",
        "one",
        str(folder / f"{row['number']}.pickle"),
    ]
    if tool:
        command = [sanitizer, "--tool", tool, "--error-exitcode", str(FOUND), "--print-limit", "3", *command]
    try:
        done = subprocess.run(
            ["timeout", "-k", "3", str(LIMIT), *command],
            capture_output=True,
            text=True,
            timeout=LIMIT + 10,
            check=False,
        )
        said, code = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired:
        said, code = "", 124
    lines = [line.strip("= ") for line in said.split("\n") if "Error" in line or "error" in line or "Race" in line
             or "bytes " in line or "did not end" in line or "Barrier" in line or "Uninitialized" in line]  # fmt: skip
    return {**row, "tool": tool or "none", "code": code, "said": lines[:4]}


def run_all(out: Path, seconds: float, part: str, seed: int, each: int) -> None:
    end = time.monotonic() + seconds
    which, parts = (int(number) for number in part.split("/"))
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [row for row in prepare(folder, seed, each) if row["place"] < 0 or row["place"] % parts == which]
        print(f"prepared {len(rows)}, {end - time.monotonic():.0f} s left", flush=True)
        jobs = [(row, tool) for row in rows for tool in TOOLS]
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            for found in pool.map(lambda job: tried(folder, *job, end), jobs):
                if found is not None:
                    results.append(found)
                    out.write_text(json.dumps(results, indent=1))
    print(f"{len(results)} of {len(jobs)} runs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("all", "one"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--seconds", type=float, default=270.0)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--seed", type=int, default=38)
    parser.add_argument("--each", type=int, default=10)
    options = parser.parse_args()
    if options.action == "one":
        one(options.path)
    else:
        run_all(options.path, options.seconds, options.part, options.seed, options.each)


if __name__ == "__main__":
    main()
