"""Run a seeded sample of mutants of one package, each against the tests that cover its line.

    python -m tests.mutation map --jobs 2 --out map.json
    python -m tests.mutation run cute_py/layout --count 400 --seed 1 --jobs 2 --map map.json --out layout.json

A line that runs only while modules are imported has no test of its own: it gets the tests of its file. A mutant counts
as killed where a test fails, or where the tests take ten times as long as without it.
"""

from __future__ import annotations

import argparse
import ast
import collections
import functools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.mutation.operators import mutants, mutated

FIRST_FILES = 5
"""Test files that are tried first, those with most tests of the line."""

MOST_SECONDS = 30.0
"""Of the tests of one mutant: the quickest first. Leaving tests out can only let a mutant survive."""

CARRIED = ("cute_py", "tests", "docs", "benchmarks", "pyproject.toml", "README.md", "CONTRIBUTING.md", "Makefile")


def cover_map(jobs: int) -> dict[str, Any]:
    """File -> line -> numbers of the tests that run it; the names and seconds of the tests that pass."""
    import coverage

    folder = Path(tempfile.mkdtemp(prefix="covered-"))
    groups = [*sorted(Path("tests").rglob("test_*.py")), *sorted(p for p in Path("cute_py").iterdir() if p.is_dir())]

    def covered(i: int) -> None:
        data = f"--data-file={folder / str(i)}"
        command = [sys.executable, "-m", "coverage", "run", data, "--source=cute_py", "-m", "pytest", "-q"]
        options = ["-p", "no:cacheprovider", "-p", "tests.mutation.plugin", "-m", "not gpu", str(groups[i])]
        places = {"DURATIONS": str(folder / f"{i}.json"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run([*command, *options], env=os.environ | places, capture_output=True, timeout=900, check=False)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(covered, range(len(groups))))
    seconds: dict[str, float] = {}
    for file in folder.glob("*.json"):
        seconds |= json.loads(file.read_text())
    names = sorted(name for name in seconds if "\\" not in name)  # pytest does not find those again by name
    number = {name: i for i, name in enumerate(names)}
    lines: dict[str, dict[str, set[int]]] = {}
    for i in range(len(groups)):
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


def sample(package: str, count: int, seed: int) -> list[tuple[str, int]]:
    """(file, number of the mutant): `count` of them, each mutant of the package as likely as any other."""
    every = [(str(path), m.number) for path in sorted(Path(package).rglob("*.py")) for m in mutants(path.read_text())]
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

    def __init__(self, covered: dict[str, Any]) -> None:
        self.covered = covered
        self.unfit = {i for i, name in enumerate(covered["tests"]) if "\\" in name}
        self.local = threading.local()

    def folder(self) -> Path:
        if not hasattr(self.local, "folder"):
            self.local.folder = Path(tempfile.mkdtemp(prefix="mutants-"))
            for name in CARRIED:
                if Path(name).is_dir():
                    shutil.copytree(name, self.local.folder / name, ignore=shutil.ignore_patterns("__pycache__"))
                elif Path(name).exists():
                    shutil.copy(name, self.local.folder / name)
        return self.local.folder  # type: ignore[no-any-return]

    def tests_of(self, file: str, line: int) -> list[int]:
        """The tests that run a line, the quickest first; of a line that runs on import, those of the file."""
        rows = self.covered["lines"].get(file, {})
        found = set(rows.get(str(line), ()))
        if not found or line not in inside_functions(Path(file).read_text()):
            found = {t for tests in rows.values() for t in tests}
        seconds = self.covered["seconds"]
        chosen, total = [], 0.0
        for test in sorted(found - self.unfit, key=lambda t: seconds[t]):
            total += seconds[test]
            if total > MOST_SECONDS:
                break
            chosen.append(test)
        return chosen

    def stages(self, tests: list[int]) -> list[list[int]]:
        """A few files first, which load quickly and notice most; then the rest."""
        by_file = collections.Counter(self.covered["tests"][t].partition("::")[0] for t in tests)
        first_files = {name for name, _ in by_file.most_common(FIRST_FILES)}
        first = [t for t in tests if self.covered["tests"][t].partition("::")[0] in first_files]
        return [stage for stage in (first, [t for t in tests if t not in set(first)]) if stage]

    def run(self, file: str, number: int) -> dict[str, Any]:
        source = Path(file).read_text()
        mutant = mutants(source)[number]
        row: dict[str, Any] = {
            "file": file,
            "mutant": mutant.text,
            "line": source.splitlines()[mutant.line - 1].strip(),
        }
        tests = self.tests_of(file, mutant.line)
        if not tests:
            return {**row, "result": "not covered"}
        folder = self.folder()
        (folder / file).write_text(mutated(source, number))
        try:
            by = next(filter(None, (self.noticed(folder, stage) for stage in self.stages(tests))), "")
        finally:
            (folder / file).write_text(source)
        return {**row, "result": "killed" if by else "survived", "tests": len(tests), "by": by[:120]}

    def noticed(self, folder: Path, tests: list[int]) -> str:
        """The test that fails, or why they count as failed; '' if they pass."""
        names = folder / "names.txt"
        names.write_text("\n".join(self.covered["tests"][t] for t in tests))
        limit = 30 + 10 * sum(self.covered["seconds"][t] for t in tests)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"@{names}"]
        few = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                command, cwd=folder, env=few, capture_output=True, text=True, timeout=limit, check=False
            )
        except subprocess.TimeoutExpired:
            return "time"
        if done.returncode == pytest.ExitCode.USAGE_ERROR:  # the cases of a test are made of what was changed
            return "other cases are collected"
        failed = (x for x in done.stdout.splitlines() if x.startswith(("FAILED", "ERROR")))
        return next(failed, f"exit status {done.returncode}") if done.returncode else ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    mapped = commands.add_parser("map")
    mapped.add_argument("--jobs", type=int, default=2)
    mapped.add_argument("--out", required=True)
    run = commands.add_parser("run")
    run.add_argument("package")
    run.add_argument("--count", type=int, default=400)
    run.add_argument("--seed", type=int, default=1)
    run.add_argument("--jobs", type=int, default=2)
    run.add_argument("--map", required=True)
    run.add_argument("--out", required=True)
    options = parser.parse_args(arguments)
    if options.command == "map":
        Path(options.out).write_text(json.dumps(cover_map(options.jobs)))
        return 0
    runner = Runner(json.loads(Path(options.map).read_text()))
    chosen = sample(options.package, options.count, options.seed)
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda x: runner.run(*x), chosen))
    Path(options.out).write_text(json.dumps(rows, indent=1))
    counts = collections.Counter(row["result"] for row in rows)
    print(f"{options.package}: {len(rows)} mutants, {dict(counts)}, {counts['killed'] / max(1, len(rows)):.1%} killed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
