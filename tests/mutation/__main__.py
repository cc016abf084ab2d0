"""Run a seeded sample of mutants of each package, each against the tests that cover its line.

    python -m tests.mutation map --jobs 2 --out map.json
    python -m tests.mutation run cute_py/layout cute_py/notation --jobs 2 --map map.json --out rows.jsonl
    python -m tests.mutation again rows.jsonl --jobs 2 --added tests/x/test_edges.py --out rows-again.jsonl

    python -m tests.mutation map cute_py/arith_tuple --tests cute_py/arith_tuple tests/arith_tuple --out map.json
    python -m tests.mutation run cute_py/arith_tuple --operators others --count 60 --map map.json --out rows.jsonl
    python -m tests.mutation run cute_py/copies --operators others --count 60 --on-devices --jobs 8 --out rows.jsonl \\
        --added tests/gpu/test_copies.py

`map` looks at some packages and some tests where they are named. `--operators others` takes the changes of
`other_operators`. `--on-devices` draws from the files that need a GPU, and runs all tests of the files that `--added`
names, also those that need a GPU: each run is a process of its own, because a driver does not outlive a fork. `again`
runs what survived once more, against files of tests that were added: it finds a mutant by its file, line and change. A
line that runs only while modules are imported has no test of its own: it gets the tests of its file. A mutant counts as
killed where a test fails, or where the tests take three times as long as without it. One that survives and that
`equivalent.txt` lists counts as equivalent.
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import functools
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import pytest

from cute_py.gpu.device import device_available
from tests.mutation.operators import SETS, mutants, mutated

FIRST_FILES = 5
"""Test files that are tried first, those with most tests of the line."""

MOST_SECONDS = 30.0
"""Of the tests of one mutant, as long as they take while lines are traced: the quickest first. Leaving tests out can
only let a mutant survive."""

PACKAGES = ("cute_py/layout", "cute_py/notation", "cute_py/tma/atom", "cute_py/tma/descriptor", "cute_py/tma/emulator")

EQUIVALENT = Path(__file__).with_name("equivalent.txt")

QUICK = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""The environment of the tests: no plugins of pytest, which would take half of the time of a short run."""

CARRIED = (
    *("cute_py", "tests", "docs", "benchmarks", "conftest.py", "pyproject.toml"),
    *("README.md", "CONTRIBUTING.md", "Makefile", "mkdocs.yml", "LICENSE"),
)


def default_places() -> list[str]:
    """Each folder of the package, which has docstrings, and each file of tests, the largest first."""
    files = sorted(Path("tests").rglob("test_*.py"), key=lambda p: -p.stat().st_size)
    return [str(p) for p in (*sorted(p for p in Path("cute_py").iterdir() if p.is_dir()), *files)]


def cover_map(
    packages: Sequence[str], places: Sequence[str], jobs: int, most_seconds: float, *, lines_traced: bool = True
) -> dict[str, Any]:
    """File -> line -> numbers of the tests that run it; the names and seconds of the tests that pass.

    The lines are those of `packages`, the tests those of the folders and files `places`. Each place is one process; one
    that takes longer than `most_seconds` is left out. Without tracing, which takes most of the time, each test counts
    to every file: a test that does not run a line can't notice what stands there.
    """
    import coverage

    folder, sources = Path(tempfile.mkdtemp(prefix="covered-")), f"--source={','.join(packages)}"

    def covered(i: int) -> None:
        data = f"--data-file={folder / str(i)}"
        traced = ["-m", "coverage", "run", data, sources] if lines_traced else []
        command = [sys.executable, *traced, "-m", "pytest", "-q"]
        options = ["-p", "no:cacheprovider", "-p", "tests.mutation.plugin", "-m", "not gpu", places[i]]
        own = QUICK | {"DURATIONS": str(folder / f"{i}.json")} | ({"EXAMPLES": "10"} if lines_traced else {})
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [*command, *options], env=os.environ | own, capture_output=True, timeout=most_seconds, check=False
            )

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(covered, range(len(places))))
    seconds: dict[str, float] = {}
    for file in folder.glob("*.json"):
        seconds |= json.loads(file.read_text())
    names = sorted(name for name in seconds if "\\" not in name)  # pytest does not find those again by name
    number = {name: i for i, name in enumerate(names)}
    lines: dict[str, dict[str, set[int]]] = {}
    if not lines_traced:
        lines = {str(p): {"1": set(range(len(names)))} for package in packages for p in Path(package).rglob("*.py")}
    for i in range(len(places)):
        if not (folder / str(i)).exists():
            continue
        data = coverage.CoverageData(str(folder / str(i)))
        data.read()
        for file_name in data.measured_files():
            rows = lines.setdefault(str(Path(file_name).relative_to(Path.cwd())), {})
            for n, contexts in data.contexts_by_lineno(file_name).items():
                rows.setdefault(str(n), set()).update(number[c] for c in contexts if c in number)
    shutil.rmtree(folder)
    listed = {file: {n: sorted(tests) for n, tests in rows.items()} for file, rows in lines.items()}
    return {"tests": names, "seconds": [seconds[name] for name in names], "lines": listed}


ON_DEVICES = (
    *("cute_py/copies/device_copy.py", "cute_py/copies/prepared.py", "cute_py/copies/prepared_copy.py"),
    *("cute_py/copies/report.py", "cute_py/copies/scaled/prepared.py", "cute_py/copies/tune.py"),
    *("cute_py/mesh/peer.py", "cute_py/mesh/torch_transport.py"),
)
"""Files whose code a GPU, or PyTorch, must be there to run."""


def sample(
    package: str, operators: str, count: int, seed: int, on_devices: bool | None = None
) -> list[tuple[str, int]]:
    """(file, number of the mutant): `count` of them, each mutant of the package as likely as any other.

    on_devices: of the files of `ON_DEVICES` alone, or of all others; None: of all files.
    """
    paths = [
        path for path in sorted(Path(package).rglob("*.py")) if on_devices in (None, path.as_posix() in ON_DEVICES)
    ]
    every = [(str(path), m.number) for path in paths for m in mutants(path.read_text(), operators)]
    return random.Random(seed).sample(every, min(count, len(every)))


@functools.cache
def inside_functions(source: str) -> frozenset[int]:
    """Lines that run when a function is called, and not when the module is imported."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            body = node.body if isinstance(node.body, list) else [node.body]
            found.update(n for part in body for n in range(part.lineno, (part.end_lineno or part.lineno) + 1))
    return frozenset(found)


class Runner:
    """Copies of the project, one for each thread, and the map."""

    def __init__(
        self, covered: dict[str, Any], end: float, added: Sequence[str] = (), marks: str = "not gpu and not slow"
    ) -> None:
        self.covered, self.marks = covered, marks
        self.added = added
        self.end = end
        self.seconds = dict(zip(covered["tests"], covered["seconds"], strict=True))
        self.unfit = {i for i, name in enumerate(covered["tests"]) if "\\" in name}
        self.local = threading.local()
        self.moments = itertools.count(10**9)

    def folder(self) -> Path:
        if not hasattr(self.local, "folder"):
            self.local.folder = Path(tempfile.mkdtemp(prefix="mutants-"))
            for name in CARRIED:
                if Path(name).is_dir():
                    shutil.copytree(name, self.local.folder / name)
                elif Path(name).exists():
                    shutil.copy(name, self.local.folder / name)
        return self.local.folder  # type: ignore[no-any-return]

    def tests_of(self, file: str, line: int) -> list[int]:
        """The tests that run a line, the quickest first, then the others of its file, as time allows.

        What runs on import is counted to the test that was the first to import it, and holds for all.
        """
        rows = self.covered["lines"].get(file, {})
        every = {t for tests in rows.values() for t in tests} - self.unfit
        found = set(rows.get(str(line), ())) - self.unfit
        if line not in inside_functions(Path(file).read_text()):
            found = every
        seconds = self.covered["seconds"]
        chosen, total = [], 0.0
        for test in sorted(every, key=lambda t: (t not in found, seconds[t])):
            total += seconds[test]
            if total > MOST_SECONDS:
                break
            chosen.append(test)
        return chosen

    def stages(self, tests: list[int]) -> list[list[str]]:
        """A few files first, which load quickly and notice most; then the rest."""
        by_file = collections.Counter(self.covered["tests"][t].partition("::")[0] for t in tests)
        first_files = {name for name, _ in by_file.most_common(FIRST_FILES)}
        first = [t for t in tests if self.covered["tests"][t].partition("::")[0] in first_files]
        rest = [t for t in tests if t not in set(first)]
        return [[self.covered["tests"][t] for t in stage] for stage in (first, rest) if stage]

    def run(self, package: str, operators: str, file: str, number: int) -> dict[str, Any]:
        source = Path(file).read_text()
        mutant = mutants(source, operators)[number]
        row: dict[str, Any] = {
            "package": package,
            "operators": operators,
            "file": file,
            "mutant": mutant.text,
            "line": source.splitlines()[mutant.line - 1].strip(),
        }
        if time.monotonic() > self.end:
            return {**row, "result": "not run"}
        tests = [] if self.added else self.tests_of(file, mutant.line)
        if not tests and not self.added:
            return {**row, "result": "not covered"}
        folder = self.folder()
        self.written(folder / file, mutated(source, number, operators))
        try:
            stages = [self.added] if self.added else self.stages(tests)
            by = next(filter(None, (self.noticed(folder, stage) for stage in stages)), "")
        finally:
            self.written(folder / file, source)
        result = "killed" if by else "equivalent" if key(row) in equivalent() else "survived"
        return {**row, "result": result, "tests": len(tests), "by": by}

    def written(self, path: Path, text: str) -> None:
        """The file with a time of its own, in whole seconds: by time and size Python knows whether it compiled it."""
        path.write_text(text)
        moment = next(self.moments)
        os.utime(path, (moment, moment))

    def without_mutant(self, rows: Sequence[dict[str, Any]]) -> set[str]:
        """The tests that killed a mutant and fail without it, too: their kills do not count."""
        names = sorted({row["by"] for row in rows if "::" in row.get("by", "")})
        failed: set[str] = set()
        while names:
            found = self.noticed(self.folder(), names)
            if not found:
                return failed
            if found not in names:
                return failed | set(names)
            failed.add(found)
            names.remove(found)
        return failed

    def noticed(self, folder: Path, tests: Sequence[str]) -> str:
        """The test that fails, or why they count as failed; '' if they pass."""
        names, out = folder / "names.txt", folder / "out.txt"
        names.write_text("\n".join(tests))
        limit = 20 + 3 * sum(self.seconds.get(t, MOST_SECONDS) for t in tests)
        process = self.warm(folder)
        options = ["-x", "-q", "-p", "no:cacheprovider", "-m", self.marks, f"@{names}"]
        print(json.dumps([options, str(out), limit]), file=process.stdin, flush=True)
        status = process.stdout.readline().strip() if process.stdout else ""
        if status in (str(int(code)) for code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)):
            return ""
        if status == "time":
            return "time"
        if status == str(int(pytest.ExitCode.USAGE_ERROR)):  # the cases of a test are made of what was changed
            return "other cases are collected"
        failed = (x for x in out.read_text().splitlines() if x.startswith(("FAILED", "ERROR")))
        return next(failed, f"  exit status {status}").partition(" ")[2].partition(" - ")[0].strip()

    def warm(self, folder: Path) -> subprocess.Popen[str]:
        """The process of this thread that runs tests in its folder."""
        if not hasattr(self.local, "process"):
            paths = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
            self.local.process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("warm.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=folder,
                env=os.environ | QUICK | {"PYTHONPATH": paths},
            )
        return self.local.process  # type: ignore[no-any-return]


def key(row: dict[str, Any]) -> tuple[str, str, str]:
    """How a mutant is found again in a file that has more lines now: file, text of the line, column and change."""
    return row["file"], row["line"], row["mutant"].partition(":")[2]


@functools.cache
def equivalent() -> dict[tuple[str, str, str], str]:
    """Mutants that compute the same, with the reason: file, line, column and change, reason; one a line, with tabs."""
    lines = (line.split("\t") for line in EQUIVALENT.read_text().splitlines() if line and not line.startswith("#"))
    return {(file, line, change): reason for file, line, change, reason in lines}


def survivors(rows: list[dict[str, Any]]) -> list[tuple[str, str, str, int]]:
    """(package, operators, file, number of the mutant) of the rows that survived, in the files as they are now."""
    found = []
    for row in rows:
        if row["result"] in ("killed", "not run") or not Path(row["file"]).exists():
            continue
        source = Path(row["file"]).read_text()
        lines = source.splitlines()
        same = [
            (m.line, m.number)
            for m in mutants(source, row["operators"])
            if key({"file": row["file"], "line": lines[m.line - 1].strip(), "mutant": m.text}) == key(row)
        ]
        place = int(row["mutant"].partition(":")[0])
        nearest = sorted((abs(n - place), m) for n, m in same)[:1]
        found += [(row["package"], row["operators"], row["file"], number) for _, number in nearest]
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """One line a package: mutants, killed, equivalent, survived."""
    lines = []
    for package in dict.fromkeys(row["package"] for row in rows):
        counts = collections.Counter(row["result"] for row in rows if row["package"] == package)
        total = counts.total() - counts["not run"]
        lines.append(f"{package}: {total} mutants, {dict(counts)}, {counts['killed'] / max(1, total):.1%} killed")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    mapped = commands.add_parser("map")
    mapped.add_argument("packages", nargs="*", default=PACKAGES)
    mapped.add_argument(
        "--tests", nargs="+", default=default_places(), help="folders and files of tests, a process each"
    )
    mapped.add_argument("--most-seconds", type=float, default=900, help="the longest that a process of tests may take")
    mapped.add_argument("--times-only", action="store_true", help="trace no lines: each test counts to every file")
    run = commands.add_parser("run")
    run.add_argument("packages", nargs="*", default=PACKAGES)
    run.add_argument("--count", type=int, default=400)
    run.add_argument("--seed", type=int, default=1)
    run.add_argument("--operators", choices=SETS, default="own", help="the set of changes to take the sample from")
    again = commands.add_parser("again")
    again.add_argument("rows")
    for command in (mapped, run, again):
        command.add_argument("--jobs", type=int, default=2)
        command.add_argument("--out", required=True)
    run.add_argument("--map")
    for command in (run, again):
        command.add_argument("--on-devices", action="store_true", help="mutants and tests that need a GPU")
    run.add_argument("--added", nargs="+", help="files of tests, which all mutants are run against, without a map")
    again.add_argument("--added", nargs="+", required=True, help="files of tests")
    for command in (run, again):
        command.add_argument("--limit", type=float, default=1e9, help="seconds after which no mutant is begun")
    options = parser.parse_args(arguments)
    if options.command == "map":
        limits = (options.jobs, options.most_seconds)
        made = cover_map(options.packages, options.tests, *limits, lines_traced=not options.times_only)
        Path(options.out).write_text(json.dumps(made))
        return 0
    if options.on_devices and not device_available():
        parser.error("--on-devices needs a GPU with TMA, without which its tests are skipped")
    if options.command == "run":
        which = options.operators
        if bool(options.map) == bool(options.added):
            parser.error("run needs either --map or --added")
        apart = True if options.on_devices else None
        chosen = [
            (p, which, *found)
            for p in options.packages
            for found in sample(p, which, options.count, options.seed, apart)
        ]
    else:
        chosen = survivors([json.loads(line) for line in Path(options.rows).read_text().splitlines()])
    on_map = options.command == "run" and options.map
    covered = json.loads(Path(options.map).read_text()) if on_map else {"tests": [], "seconds": []}
    marks = "not slow" if options.on_devices else "not gpu and not slow"
    runner = Runner(covered, time.monotonic() + options.limit, options.added or (), marks)
    rows = []
    with ThreadPoolExecutor(options.jobs) as pool, Path(options.out).open("w") as out:
        for ended in as_completed([pool.submit(runner.run, *mutant) for mutant in chosen]):
            rows.append(ended.result())
            print(json.dumps(rows[-1]), file=out, flush=True)
    unfit = runner.without_mutant(rows)
    print(table([row for row in rows if row.get("by", "") not in unfit]))
    print(f"tests that fail without a mutant: {sorted(unfit) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
