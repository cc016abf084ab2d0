"""Time from a plan to a compiled kernel, in new processes that have imported the packages."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Final

ROUNDS: Final = 4
SECONDS: Final = 60
"""Limit of one process."""

PROGRAM: Final = """
import time
import numpy
{imports}
from cute_py.gpu.bindings import core, nvrtc
from cute_py.gpu.nvrtc import compile_kernel
core(), nvrtc()
began = time.perf_counter()
kernel = {expression}
planned = time.perf_counter()
compiled = compile_kernel(kernel, "sm_90a")
print(1000 * (planned - began), 1000 * (time.perf_counter() - planned), compiled.origin)
"""


@dataclass(frozen=True, slots=True)
class Preparation:
    """Milliseconds of a plan, of a compilation with the start of NVRTC, and of a cubin from disk, one for each
    process."""

    plan: list[float]
    compiled: list[float]
    disk: list[float]

    def __str__(self) -> str:
        named = (("plan", self.plan), ("compilation", self.compiled), ("cubin from disk", self.disk))
        return ", ".join(
            f"{name} {statistics.median(times):.1f} ms ({min(times):.1f} to {max(times):.1f})" for name, times in named
        )


def preparation(imports: str, expression: str) -> Preparation:
    """Time `expression`, which makes a KernelSource, and its compilation; each process that compiles has an empty
    cache, and the next one uses this cache. A process before them reads NVRTC from the disk; it is not counted."""
    program = PROGRAM.format(imports=imports, expression=expression)
    found = Preparation([], [], [])
    for number in range(ROUNDS + 1):
        with tempfile.TemporaryDirectory() as directory:
            for times, origin in ((found.compiled, "compiled"), (found.disk, "disk")):
                environment = {**os.environ, "CUTE_PY_CACHE_DIR": directory}
                shown = subprocess.run(
                    [sys.executable, "-c", program],
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=SECONDS,
                    check=True,
                )
                plan, kernel, came_from = shown.stdout.split()
                assert came_from == origin, f"a cubin that was {came_from}, not {origin}"
                if number:
                    found.plan.append(float(plan))
                    times.append(float(kernel))
    return found
