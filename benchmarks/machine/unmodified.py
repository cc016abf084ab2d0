"""Kernels as their compilers made them, and what the judges say of each under many schedules.

    python -m benchmarks.machine.unmodified --table table.md

The kernels are Triton's, CUTLASS's and this package's own. A kernel is sound where no run of it has an error, under the
schedules eager and lazy and under ten seeds. Warnings are listed with their paragraph of the PTX ISA.
"""

from __future__ import annotations

import argparse
import collections
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import cute_py as cute
from benchmarks.machine.seeded_faults import Kernel, own_kernels
from cute_py.errors import CuteError
from cute_py.machine import run as machine_run

SCHEDULES: Final[tuple[str | int, ...]] = ("eager", "lazy", *range(1, 11))


class Run(Protocol):
    """Run a kernel once, on new arguments."""

    def __call__(self, schedule: str | int, judge: bool = True) -> cute.PtxRun: ...


@dataclass
class Verdict:
    """A kernel, its runs, and its findings: (severity, rule, paragraph) -> schedules under which it has them."""

    name: str
    source: str
    runs: int = 0
    seconds: float = 0.0
    findings: dict[tuple[str, str, str], list[str]] = field(default_factory=lambda: collections.defaultdict(list))

    @property
    def errors(self) -> bool:
        """Whether some run has an error."""
        return any(severity == "error" for severity, _, _ in self.findings)

    def row(self) -> str:
        """A line of the table."""
        said = [
            f"{severity}: {rule} ({paragraph})" + ("" if len(where) == self.runs else f", {len(where)} schedules")
            for (severity, rule, paragraph), where in sorted(self.findings.items())
        ]
        return f"| {self.source} | {self.name} | {self.runs} | {'; '.join(said) or '-'} |"


def triton() -> list[tuple[str, Run]]:
    """The recorded kernels of Triton."""
    from tests.machine.test_triton import ROWS, WORKLOADS, launch, launch_workload

    def runner(name: str) -> Run:
        row = ROWS.get(name) or WORKLOADS[name]

        def run(schedule: str | int, judge: bool = True) -> cute.PtxRun:
            args, _ = launch(row) if name in ROWS else launch_workload(row)
            return cute.run_ptx(
                row["ptx"], grid=row["grid"], args=args, dynamic_shared=row["shared"], schedule=schedule, judge=judge
            )

        return run

    return [(name, runner(name)) for name in (*ROWS, *WORKLOADS)]


def cutlass(records: str) -> list[tuple[str, Run]]:
    """The recorded programs of CUTLASS."""
    from tests.machine.cutlass_launch import launches, random_allocations, run

    def runner(name: str) -> Run:
        row = rows[name]
        return lambda schedule, judge=True: run(row, random_allocations(name, row), schedule, judge)

    rows = launches(records)
    return [(name, runner(name)) for name in rows]


def own() -> list[tuple[str, Run]]:
    """Kernels that this package generates."""

    def runner(kernel: Kernel) -> Run:
        def run(schedule: str | int, judge: bool = True) -> cute.PtxRun:
            found, _ = kernel.run(kernel.text, schedule, judge)
            if isinstance(found, CuteError):
                raise found
            return found

        return run

    return [(one.name, runner(one)) for one in own_kernels()]


SOURCES: Final[dict[str, Callable[[], list[tuple[str, Run]]]]] = {
    "Triton": triton,
    "CUTLASS": lambda: cutlass("cutlass_kernels"),
    "CUTLASS, Blackwell": lambda: cutlass("blackwell_kernels"),
    "cute_py": own,
}


def judged(name: str, source: str, run: Run, schedules: Sequence[str | int]) -> Verdict:
    """Return what the judges say of one kernel."""
    verdict = Verdict(name, source)
    for schedule in schedules:
        start = time.process_time()
        found = run(schedule)
        verdict.seconds += time.process_time() - start
        verdict.runs += 1
        for key in {(one.severity, one.rule, one.source) for one in found.diagnostics}:
            verdict.findings[key].append(str(schedule))
    return verdict


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", nargs="*", default=list(SOURCES))
    parser.add_argument("--names", nargs="*", default=None)
    parser.add_argument("--schedules", nargs="*", default=[str(one) for one in SCHEDULES])
    parser.add_argument("--table", default="")
    options = parser.parse_args(arguments)
    machine_run.TRIED_STEPS = -1  # changes that may cure a finding are not tried here
    schedules = [int(one) if one.isdigit() else one for one in options.schedules]
    found = []
    for source in options.sources:
        for name, run in SOURCES[source]():
            if options.names is None or name in options.names:
                found.append(judged(name, source, run, schedules))
                print(found[-1].row(), f"{found[-1].seconds:.1f} s", flush=True)
    bad = [one.name for one in found if one.errors]
    print(f"{len(found)} kernels, {sum(one.runs for one in found)} runs; with an error: {', '.join(bad) or 'none'}")
    if options.table:
        with open(options.table, "w", encoding="utf-8") as file:
            file.write("| from | kernel | runs | findings |\n|---|---|---|---|\n")
            file.writelines(one.row() + "\n" for one in found)


if __name__ == "__main__":
    main()
