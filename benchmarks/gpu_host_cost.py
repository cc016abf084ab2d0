"""What a copy costs the host: a prepared launch against the bare driver call, and the first copy of a process.

Run as a module, it is the child that measures its own first copy: `python -m benchmarks.gpu_host_cost CACHE_DIR`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any


def launches(torch: Any, batches: int = 21, count: int = 400) -> dict[str, float]:
    """Microseconds a call, medians of batches: a prepared copy, cuLaunchKernelEx of the same kernel, an empty loop."""
    from cute_py.copies.prepared import prepare_copy
    from cute_py.gpu.bindings import driver

    a = torch.zeros(64, 512, device="cuda", dtype=torch.uint8)
    b = torch.zeros_like(a)
    prepared = prepare_copy(a, b)
    one = prepared._default[0]
    api_launch, config, handle, pointers = driver().cuLaunchKernelEx, one._config, one._handle, one._pointers
    stream = torch.cuda.Stream()
    prepared.prepare(stream)

    def bare() -> None:
        for _ in range(count):
            api_launch(config, handle, pointers, 0)

    def ours() -> None:
        launch = prepared.launch
        for _ in range(count):
            launch()

    def on_stream() -> None:
        launch = prepared.launch
        for _ in range(count):
            launch(stream)

    def tensor() -> None:
        copy = b.copy_
        for _ in range(count):
            copy(a)

    def nothing() -> None:
        for _ in range(count):
            pass

    ways = {
        "bare cuLaunchKernelEx": bare,
        "prepared copy": ours,
        "prepared copy on a stream": on_stream,
        "torch copy_": tensor,
    }
    ways["empty loop"] = nothing
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(batches):
        for name, way in ways.items():
            torch.cuda.synchronize()
            started = time.perf_counter()
            way()
            samples[name].append((time.perf_counter() - started) * 1e6 / count)
    torch.cuda.synchronize()
    return {name: round(statistics.median(values), 3) for name, values in samples.items()}


def first_copies(runs: int = 3) -> dict[str, dict[str, float]]:
    """Milliseconds of the first copy of a fresh process: kernel cache empty, and filled by the process before."""
    results: dict[str, list[dict[str, float]]] = {"cold": [], "warm": []}
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            for state in ("cold", "warm"):
                environment = {**os.environ, "CUTE_PY_CACHE_DIR": folder}
                done = subprocess.run(
                    [sys.executable, "-m", "benchmarks.gpu_host_cost", folder],
                    capture_output=True,
                    text=True,
                    env=environment,
                    check=True,
                )
                results[state].append(json.loads(done.stdout.splitlines()[-1]))
    return {
        state: {name: round(statistics.median(row[name] for row in rows), 1) for name in rows[0]}
        for state, rows in results.items()
    }


def measure_first() -> dict[str, float]:
    """This process: import, context creation, then everything up to the end of the first copy."""
    started = time.perf_counter()
    from cute_py.copies.prepared import prepare_copy
    from cute_py.gpu.device import DeviceBuffer, open_device
    from cute_py.tensor.array_views import ArrayView

    imported = time.perf_counter()
    device = open_device()
    opened = time.perf_counter()
    from cute_py.dtypes import as_dtype

    a, b = DeviceBuffer(device, 1 << 20), DeviceBuffer(device, 1 << 20)
    views = [ArrayView(x.address, (1024, 512), (512, 1), as_dtype("bfloat16"), 0, owner=x) for x in (a, b)]
    prepared = prepare_copy(*views)
    ready = time.perf_counter()
    prepared.launch()
    prepared.check()
    done = time.perf_counter()
    return {
        "import": (imported - started) * 1e3,
        "driver and context": (opened - imported) * 1e3,
        "prepare": (ready - opened) * 1e3,
        "launch and wait": (done - ready) * 1e3,
        "first copy beyond context": (done - opened) * 1e3,
    }


if __name__ == "__main__":
    print(json.dumps(measure_first()))
