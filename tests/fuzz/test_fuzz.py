"""A seeded sample of calls of every public name, most of them with a wrong argument or two, and of uses of what they
return; and what the fuzzer finds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.findings import report

ROOT = Path(__file__).parents[2]
FEW, MANY, SEED = 250, 5_000, "sample"
"""Calls by default, and in the whole sample."""


@pytest.mark.parametrize("calls", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_wrong_arguments_end_in_typed_errors_at_once(calls: int, tmp_path: Path) -> None:
    """The calls are made in processes of their own, which may hang or die."""
    out = tmp_path / "findings.json"
    command = [sys.executable, "-m", "tests.fuzz", "--calls", str(calls), "--seed", SEED, "--json", str(out)]
    subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, timeout=600, check=False)
    found: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))
    assert not found, report(found)


PLANTED = """
import time, os
from tests.calls.call import Call, Entry
from tests.fuzz import worker
from tests.fuzz.worker import Task, carried_out

worker.SECONDS, worker.HARD_SECONDS = 0.3, 2.0
loop, loop_in_c = "[0 for _ in iter(int, 1)]", "sum(range(10 ** 15))"
texts = ["{'a': 1}['b']", loop, loop_in_c, "bytearray(8 << 30)", "os._exit(3)", "1 + 1"]

class Planted:
    __module__ = "cute_py.planted"

    def __init__(self, number):
        self.number = number

    def broken(self):
        return {}["broken"]


# Objects of the package, as the name of their module says, whose one method fails.
texts += [f"Planted({i})" for i in range(8)]
entries = {text: Entry(text, [lambda maker, text=text: Call(text, text)], mutable=False) for text in texts}
names = worker.names
worker.names = lambda: {**names(), "os": os, "Planted": Planted}
for record in carried_out([Task(text, 0) for text in texts], 1, entries):
    print(record["name"], "->", record["type"])
"""


@pytest.mark.slow
def test_what_is_planted_is_found() -> None:
    """A foreign exception, a loop in Python, one in C, a lack of memory, a death; a call that is right; and calls whose
    results fail when they are used."""
    done = subprocess.run([sys.executable, "-c", PLANTED], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = set(done.stdout.splitlines())
    used = {line for line in lines if line.endswith("Planted.broken -> KeyError")}
    assert used
    found = {
        "{'a': 1}['b'] -> KeyError",
        "[0 for _ in iter(int, 1)] -> Overtime",
        "sum(range(10 ** 15)) -> hangs (killed after 2 s)",
        "bytearray(8 << 30) -> MemoryError",
        "os._exit(3) -> process died (3)",
    }
    assert found <= lines
    # On a loaded machine one of the eight may be given up while its process starts.
    late = {line for line in lines if line.startswith("Planted(") and line.endswith("-> hangs (killed after 2 s)")}
    assert lines - used - late == found
