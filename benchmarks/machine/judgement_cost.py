"""How much longer a run takes with judgement: CPU time of one process, with it and without it in turns.

    python -m benchmarks.machine.judgement_cost --rounds 3 --table table.md

Each kernel runs once before the clock starts. The figure of a kernel is the smallest CPU time of its rounds with
judgement, divided by the smallest without.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from benchmarks.machine.unmodified import SOURCES, Run
from cute_py.machine import run as machine_run


def seconds(run: Run, judge: bool) -> float:
    """CPU time of one run."""
    start = time.process_time()
    run("eager", judge)
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
    for source, name, run in ((source, *one) for source, kernels in SOURCES.items() for one in kernels()):
        if options.names is not None and name not in options.names:
            continue
        run("eager")
        times = [[seconds(run, judge) for judge in (False, True)] for _ in range(options.rounds)]
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
