"""Time and memory of CUTLASS's kernels on the machine: text to C, one eager run each.

    python -m benchmarks.machine.cutlass_times [NAME ...]

Rows: seconds without and with the judges of races and hangs, and the largest memory of the process so far.
"""

from __future__ import annotations

import resource
import sys
import time

from cute_py.machine import run as machine_run
from tests.machine.cutlass_launch import launches, random_allocations, run


def main() -> None:
    found = launches()
    for name in sys.argv[1:] or found:
        seconds = []
        for judge in (False, True):
            allocations = random_allocations(name, found[name])
            machine_run._module.cache_clear()
            start = time.perf_counter()
            ended = run(found[name], allocations, "eager", judge)
            seconds.append(time.perf_counter() - start)
            assert ended.ok, ended.explain()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"| {name} | {seconds[0]:.2f} | {seconds[1]:.2f} | {peak:.0f} MiB |", flush=True)


if __name__ == "__main__":
    main()
