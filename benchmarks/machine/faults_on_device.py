"""The mutants of `seeded_faults` on a GPU, alone and under the four tools of compute-sanitizer.

    python -m benchmarks.machine.faults_on_device pack FOLDER
    python -m benchmarks.machine.faults_on_device all OUT.json --packed FOLDER --seconds 270 --part 0/2

`pack` needs no GPU. Every mutant runs in a process of its own, with a time limit: one that hangs ends with it. `one`
launches a file with a text, a launch and arguments through the driver.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import lzma
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.machine import on_device
from benchmarks.machine.fault_sites import Fault
from benchmarks.machine.seeded_faults import cutlass_kernels, drawn, own_kernels, triton_kernels

TOOLS: Final = ("", "memcheck", "racecheck", "synccheck", "initcheck")
"""Tools of compute-sanitizer; the first stands for none."""
FOUND: Final = 9
LIMIT: Final = 25
WORKERS: Final = 14


def arrays_of(value: Any) -> Iterator[Any]:
    """The arrays in arguments."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from arrays_of(inner)


def pack(folder: Path, seed: int, each: int) -> None:
    """Write the kernels with their arguments, and the mutants as lines that change."""
    kernels = {one.name: one for one in (*triton_kernels(), *cutlass_kernels(), *own_kernels())}
    held = {name: (one.text, one.launch, one.arguments()[0]) for name, one in kernels.items()}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernels.pickle.xz").write_bytes(lzma.compress(pickle.dumps(held)))
    rows = [
        {"number": number, "kernel": one.kernel, "kind": one.kind, "what": one.what, "lines": list(one.lines.items()),
         "place": number % each}
        for number, one in enumerate(drawn(list(kernels.values()), seed, each))
    ]  # fmt: skip
    (folder / "faults.json").write_text(json.dumps(rows))


def unpack(packed: Path, folder: Path) -> list[dict[str, Any]]:
    """Write one file for each mutant and each kernel; their rows, kinds in turn."""
    held = pickle.loads(lzma.decompress((packed / "kernels.pickle.xz").read_bytes()))
    rows = json.loads((packed / "faults.json").read_text())
    rows += [{"number": name, "kernel": name, "kind": "sound", "what": "", "lines": [], "place": -1} for name in held]
    for row in rows:
        text, launch, args = held[row["kernel"]]
        fault = Fault(row["kernel"], row["kind"], row["what"], dict(row.pop("lines")))
        row["line"] = min(fault.lines, default=0)
        (folder / f"{row['number']}.pickle").write_bytes(pickle.dumps((fault.put_into(text), launch, args)))
    return sorted(rows, key=lambda row: row["place"])


def one(path: Path) -> None:
    """Launch a file; print a digest of the bytes."""
    text, launch, args = pickle.loads(path.read_bytes())
    on_device.LIMIT_SECONDS = 8.0
    on_device.run_on_device(text, args=args, **launch)
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(x).view(np.uint8).tobytes() for x in arrays_of(args)))
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


def run_all(out: Path, packed: Path, seconds: float, part: str) -> None:
    end = time.monotonic() + seconds
    which, parts = (int(number) for number in part.split("/"))
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [row for row in unpack(packed, folder) if row["place"] < 0 or row["place"] % parts == which]
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
    parser.add_argument("action", choices=("all", "one", "pack"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--seconds", type=float, default=270.0)
    parser.add_argument("--packed", type=Path, help="the folder that `pack` wrote")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--seed", type=int, default=38)
    parser.add_argument("--each", type=int, default=10)
    options = parser.parse_args()
    if options.action == "one":
        one(options.path)
    elif options.action == "pack":
        pack(options.path, options.seed, options.each)
    else:
        run_all(options.path, options.packed, options.seconds, options.part)


if __name__ == "__main__":
    main()
