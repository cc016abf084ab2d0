"""The command line of the measurement: see the package."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.silicon.build import build


def main() -> None:
    """Build, or run a stage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "action", choices=("build", "record", "matrix", "mover", "group", "sparse", "random", "tiles", "conversions")
    )
    parser.add_argument("folder", type=Path, help="where the cubins are; of record, what a run wrote")
    parser.add_argument("out", type=Path, nargs="?", help="where results go")
    parser.add_argument("--seconds", type=float, default=90, help="bound of the stage group")
    options = parser.parse_args()
    if options.action == "record":
        from benchmarks.silicon.record import record, summary

        print(summary(record(options.folder)))
        return
    if options.action == "build":
        print("\n".join(build(options.folder)))
        return
    from benchmarks.silicon import measure
    from benchmarks.silicon.conversions import run_conversions
    from benchmarks.silicon.device import Runner

    runner = Runner(options.folder)
    print(runner.about())
    options.out.mkdir(parents=True, exist_ok=True)
    stages = {
        "matrix": measure.run_matrix,
        "mover": measure.run_mover,
        "sparse": measure.run_sparse,
        "random": measure.run_random,
        "tiles": measure.run_tiles,
        "conversions": run_conversions,
    }
    if options.action == "group":
        measure.run_group(runner, options.out, options.seconds)
    else:
        stages[options.action](runner, options.out)


if __name__ == "__main__":
    main()
