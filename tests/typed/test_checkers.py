"""Two type checkers see what the public functions give, and find the errors in a sample of user code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = Path(__file__).with_name("sample.py")
EXPECTED = [n for n, line in enumerate(SAMPLE.read_text().splitlines(), 1) if line.endswith("# error")]


def output(command: list[str]) -> str:
    run = subprocess.run([sys.executable, "-m", *command, str(SAMPLE)], capture_output=True, text=True, timeout=300)
    return run.stdout + run.stderr


@pytest.mark.slow
def test_mypy_strict() -> None:
    pytest.importorskip("mypy")
    found = output(["mypy", "--strict", "--no-error-summary"])
    assert [int(n) for n in re.findall(r"sample\.py:(\d+): error", found)] == EXPECTED, found


@pytest.mark.slow
def test_basedpyright() -> None:
    pytest.importorskip("basedpyright")
    found = output(["basedpyright", "--outputjson", "--level", "error", "--pythonpath", sys.executable])
    errors = [d for d in json.loads(found)["generalDiagnostics"] if d["severity"] == "error"]
    assert [d["range"]["start"]["line"] + 1 for d in errors] == EXPECTED, found


@pytest.mark.parametrize(
    "name", ["Any", "importlib", "annotations", "TYPE_CHECKING", "errors", "layout", "deprecations"]
)
def test_dir_has_public_names_only(name: str) -> None:
    import cute_py

    assert name not in dir(cute_py)


def test_dir_has_what_is_imported_on_first_use() -> None:
    import cute_py

    assert {"tma", "tmem", "draw", "testing", "explain", "Layout", "parse"} <= set(dir(cute_py))
    assert all(hasattr(cute_py, name) for name in dir(cute_py))
