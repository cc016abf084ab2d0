"""The library where numpy can't be imported says what it says beside numpy; what needs arrays names the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import without_numpy

ROOT = Path(__file__).resolve().parents[1]
NEEDS = ("offsets", "emulator")


@pytest.fixture(scope="module")
def without() -> dict[str, str]:
    command = [sys.executable, "-m", "tests.without_numpy"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def here() -> dict[str, str]:
    return without_numpy.run()


def test_every_answer_is_the_same_without_numpy(without: dict[str, str], here: dict[str, str]) -> None:
    assert len(here) > 45
    assert without.keys() == here.keys()
    assert [name for name in here if name not in NEEDS and here[name] != without[name]] == []


@pytest.mark.parametrize("name", NEEDS)
def test_what_needs_arrays_names_the_package(name: str, without: dict[str, str], here: dict[str, str]) -> None:
    assert without[name] == "an operation on arrays needs the package numpy\n  hint : pip install numpy"
    assert here[name] == ""


def test_the_blocker_blocks() -> None:
    command = [sys.executable, "-c", "import sys; from tests.without_numpy import Blocker\n"
               "sys.meta_path.insert(0, Blocker())\nimport numpy"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert "No module named 'numpy'" in done.stderr
