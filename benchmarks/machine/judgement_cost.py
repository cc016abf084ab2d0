"""How much longer a run takes with judgement: CPU time of one process, with it and without it in turns.

    python -m benchmarks.machine.judgement_cost --rounds 3 --table table.md

Each kernel runs once before the clock starts. The figure of a kernel is the smallest CPU time of its rounds with
judgement, divided by the smallest without.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.machine.seeded_faults import own_kernels
from cute_py.machine import run as machine_run


def launches() -> list[tuple[str, str, Callable[[bool], Any]]]:
    """(source, kernel, a function that runs it, with judgement or without)."""
    import cute_py as cute
    from tests.machine.cutlass_launch import launches as recorded
    from tests.machine.cutlass_launch import random_allocations, run
    from tests.machine.test_triton import ROWS, WORKLOADS, launch, launch_workload

    def triton(name: str) -> Callable[[bool], Any]:
        row = ROWS.get(name) or WORKLOADS[name]

        def go(judge: bool) -> Any:
            args, _ = launch(row) if name in ROWS else launch_workload(row)
            return cute.run_ptx(
                row["ptx"], grid=row["grid"], args=args, dynamic_shared=row["shared"], schedule="eager", judge=judge
            )

        return go

    def cutlass(row: Any, name: str) -> Callable[[bool], Any]:
        return lambda judge: run(row, random_allocations(name, row), "eager", judge)

    def own(kernel: Any) -> Callable[[bool], Any]:
        return lambda judge: kernel.run(kernel.text, "eager", judge)

    return [
        *(("Triton", name, triton(name)) for name in (*ROWS, *WORKLOADS)),
        *(("CUTLASS", name, cutlass(row, name)) for name, row in recorded("cutlass_kernels").items()),
        *(("CUTLASS, Blackwell", name, cutlass(row, name)) for name, row in recorded("blackwell_kernels").items()),
        *(("cute_py", one.name, own(one)) for one in own_kernels()),
    ]


def seconds(go: Callable[[bool], Any], judge: bool) -> float:
    """CPU time of one run."""
    start = time.process_time()
    go(judge)
    return time.process_time() - start


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--names", nargs="*", default=None)
    parser.add_argument("--table", default="")
    options = parser.parse_args(arguments)
    machine_run.TRIED_STEPS = -1  # changes that may cure a finding are not tried here
    lines = ["| from | kernel | CPU ms without | with | ratio |", "|---|---|---|---|---|"]
    ratios = []
    for source, name, go in launches():
        if options.names is not None and name not in options.names:
            continue
        go(True)
        times = [[seconds(go, judge) for judge in (False, True)] for _ in range(options.rounds)]
        without, judged = (min(column) for column in zip(*times, strict=True))
        ratios.append(judged / without)
        lines.append(f"| {source} | {name} | {1000 * without:.0f} | {1000 * judged:.0f} | {judged / without:.2f} |")
        print(lines[-1], flush=True)
    ratios.sort()
    print(f"{len(ratios)} kernels: median {ratios[len(ratios) // 2]:.2f}, greatest {ratios[-1]:.2f}")
    if options.table:
        with open(options.table, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
