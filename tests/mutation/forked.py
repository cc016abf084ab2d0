"""Run a seeded sample of mutants of one package against tests that are collected once.

    python -m tests.mutation.forked cute_py/notation --tests cute_py/notation tests/notation --out rows.jsonl

A fork of the process puts the code of the mutant into the functions that are loaded and runs the tests, the quickest
first, up to the first that fails: no module is loaded anew, which takes most of the time of `python -m tests.mutation
run`. A test that starts an interpreter of its own runs without the mutant there. Mutants outside of functions are not
run, and none of the files that need a GPU are drawn: a driver does not outlive a fork. A run of the same tests without
a mutant comes first; tests that fail in it are left out.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import gc
import importlib
import json
import os
import select
import signal
import sys
import threading
import time
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.mutation.__main__ import equivalent, inside_functions, key, sample, table
from tests.mutation.operators import SETS, Mutant, mutants, mutated_tree


def functions_of(code: types.CodeType) -> Iterator[tuple[tuple[str, int], types.CodeType]]:
    """Name and first line of each function of a file -> its code."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield (constant.co_qualname, constant.co_firstlineno), constant
            yield from functions_of(constant)


def put(file: str, number: int, operators: str) -> None:
    """The code of the mutant in place of that of the functions that are loaded; what they remember is forgotten.

    Raises:
        LookupError: no loaded function has the code that the mutant changes.
    """
    path = str(Path(file).resolve())
    importlib.import_module(".".join(Path(file).with_suffix("").parts).removesuffix(".__init__"))  # some load on use
    made = dict(functions_of(compile(mutated_tree(Path(file).read_text(), number, operators), path, "exec")))
    replaced = False
    for thing in gc.get_objects():
        if isinstance(thing, types.FunctionType) and thing.__code__.co_filename == path:
            code = made.get((thing.__code__.co_qualname, thing.__code__.co_firstlineno))
            if code is not None and code != thing.__code__:
                thing.__code__, replaced = code, True
        elif isinstance(thing, functools._lru_cache_wrapper):
            thing.cache_clear()
    if not replaced:
        raise LookupError(f"mutant {number} of {file} changes no function that is loaded")


def without_shrinking() -> None:
    """Examples that fail need not become small. pytest wants to load hypothesis itself, so it is not loaded above."""
    from hypothesis import Phase, settings

    settings.register_profile("mutants", settings.default, phases=(Phase.explicit, Phase.generate))
    settings.load_profile("mutants")


class Session:
    """The plugin that takes the place of pytest's loop over the tests."""

    def __init__(self, chosen: Sequence[tuple[str, str, int]], options: argparse.Namespace) -> None:
        self.chosen = chosen
        self.options = options
        self.failed = ""
        self.seconds = 0.0
        self.ran: dict[str, set[tuple[str, str]]] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds += report.duration
        if report.failed:
            self.failed = report.nodeid

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items, unfit = self.quickest_first(session.items)
        without_shrinking()
        print(f"{len(items)} tests; fail or take long without a mutant: {unfit or 'none'}", flush=True)
        end, rows = time.monotonic() + self.options.limit, []
        with Path(self.options.out).open("a") as out:
            for package, file, number in self.chosen:
                row = self.row(package, file, number)
                if row["result"] == "survived" and time.monotonic() < end:
                    row |= self.judged(file, number, self.running(row, items))
                elif row["result"] == "survived":
                    row["result"] = "not run"
                rows.append(row)
                print(json.dumps(row), file=out, flush=True)
        print(table(rows), flush=True)
        return True

    def row(self, package: str, file: str, number: int) -> dict[str, Any]:
        source = Path(file).read_text()
        mutant: Mutant = mutants(source, self.options.operators)[number]
        line = source.splitlines()[mutant.line - 1].strip()
        row = {
            "package": package,
            "operators": self.options.operators,
            "file": file,
            "mutant": mutant.text,
            "line": line,
        }
        listed = "equivalent" if key(row) in equivalent() else "survived"
        return {**row, "by": "", "result": listed if mutant.line in inside_functions(source) else "not run"}

    def quickest_first(self, items: list[pytest.Item]) -> tuple[list[pytest.Item], list[str]]:
        """The tests that pass without a mutant in a few seconds, in the order of their time; names of the others."""
        known = self.remembered()
        new = [i for i, item in enumerate(items) if item.nodeid not in known]
        lines = self.forked(lambda say: self.timed(items, new, say), self.options.limit)
        for i, *found in map(json.loads, lines):
            known[items[i].nodeid] = found
        self.remember(known)
        times: dict[int, float] = {}
        for i, item in enumerate(items):
            seconds, failed, ran = known.get(item.nodeid, (0, "not run", ()))
            self.ran[item.nodeid] = {tuple(place) for place in ran}
            if not failed and seconds < self.options.most_seconds:
                times[i] = seconds
        others = [item.nodeid for i, item in enumerate(items) if i not in times]
        last = tuple(self.options.added)
        return [items[i] for i in sorted(times, key=lambda i: (items[i].nodeid.startswith(last), times[i]))], others

    def remembered(self) -> dict[str, Any]:
        """Test -> its seconds, the test that failed, and the functions it ran, from an earlier run."""
        path = Path(self.options.times or os.devnull)
        return json.loads(path.read_text()) if path.is_file() else {}

    def remember(self, tests: dict[str, Any]) -> None:
        if self.options.times:
            Path(self.options.times).write_text(json.dumps(tests))

    def timed(self, items: list[pytest.Item], numbers: Sequence[int], say: Any) -> None:
        within = str(Path(self.options.package).resolve())
        ran: set[tuple[str, str]] = set()

        def called(frame: types.FrameType, event: str, argument: object) -> None:
            code = frame.f_code
            if code.co_filename.startswith(within):
                ran.add((code.co_filename, code.co_qualname))

        for i in numbers:
            ran.clear()
            sys.settrace(called)
            threading.settrace(called)
            seconds = self.run(items[i])
            sys.settrace(None)
            threading.settrace(None)
            say(json.dumps([i, seconds, self.failed, sorted(ran)]))

    def running(self, row: dict[str, Any], items: list[pytest.Item]) -> list[pytest.Item]:
        """The tests that ran the function of a mutant, or one around it."""
        source, line, path = Path(row["file"]).read_text(), int(row["mutant"].partition(":")[0]), row["file"]
        around = set()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                decorators = getattr(node, "decorator_list", ())
                if node.lineno <= line <= (node.end_lineno or node.lineno):
                    around.add(min([node.lineno, *(d.lineno for d in decorators)]))
        names = {name for (name, first), _ in functions_of(compile(source, path, "exec")) if first in around}
        found = {(str(Path(path).resolve()), name) for name in names}
        chosen = [item for item in items if self.ran[item.nodeid] & found]
        row["tests"] = len(chosen)
        return chosen

    def run(self, item: pytest.Item) -> float:
        """Seconds of one test; `failed` is its name if it failed."""
        self.failed, self.seconds = "", 0.0
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return self.seconds

    def judged(self, file: str, number: int, items: list[pytest.Item]) -> dict[str, Any]:
        def against(say: Any) -> None:
            try:
                put(file, number, self.options.operators)
            except LookupError as error:
                say(json.dumps(["not put in", str(error)]))
                return
            for item in items:
                say(json.dumps(item.nodeid))
                self.run(item)
                if self.failed:
                    say(json.dumps(["failed", self.failed]))
                    return
            say(json.dumps(["passed", ""]))

        begin = time.monotonic()
        lines = [json.loads(line) for line in self.forked(against, self.options.patience)]
        ended = lines[-1] if lines else ["died", ""]
        if isinstance(ended, str):  # the time was over, or the process died in this test
            ended = ["stopped", ended]
        result = {"passed": "survived", "not put in": "not run"}.get(ended[0], "killed")
        return {"result": result, "by": ended[1], "how": ended[0], "seconds": round(time.monotonic() - begin, 1)}

    def forked(self, work: Any, patience: float) -> list[str]:
        """The lines that the work says in a process of its own, until it ends or says nothing for so many seconds."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.setsid()
            os.close(reading)
            with contextlib.suppress(BaseException):
                work(lambda line: os.write(writing, line.encode() + b"\n"))
            os._exit(0)
        os.close(writing)
        parts = []
        while select.select([reading], [], [], patience)[0]:
            part = os.read(reading, 1 << 16)
            if not part:
                break
            parts.append(part)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
        return b"".join(parts).decode().splitlines()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.forked", description=__doc__.split("\n")[0])
    parser.add_argument("package")
    parser.add_argument("--tests", nargs="+", required=True, help="folders and files of tests")
    parser.add_argument(
        "--operators", choices=SETS, default="others", help="the set of changes to take the sample from"
    )
    parser.add_argument("--added", nargs="*", default=(), help="those among them that are tried last")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="0/1", help="I/N: only every N-th mutant of the sample, from the I-th on")
    parser.add_argument("--limit", type=float, default=1e6, help="seconds after which no mutant is begun")
    parser.add_argument("--patience", type=float, default=60, help="seconds of one test before its mutant is killed")
    parser.add_argument("--most-seconds", type=float, default=5, help="the longest that one test may take")
    parser.add_argument("--times", help="a file that keeps the times of tests for later runs; new tests are added")
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    drawn = sample(options.package, options.operators, options.count, options.seed, on_devices=False)
    first, parts = map(int, options.part.split("/"))
    chosen = [(options.package, *found) for found in drawn][first::parts]
    arguments = ["-q", "-p", "no:cacheprovider", "-m", "not gpu and not slow", *options.tests]
    return int(pytest.main(arguments, plugins=[Session(chosen, options)]))


if __name__ == "__main__":
    sys.exit(main())
