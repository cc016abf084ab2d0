"""A pytest plugin: which lines each test runs, as contexts of coverage, and how long each test takes.

`python -m coverage run --branch --source=cute_py -m pytest -p tests.mutation.plugin` leaves both beside each other.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import coverage

DURATIONS = Path(".coverage-durations.json")
_durations: dict[str, float] = {}


def pytest_runtest_setup(item: Any) -> None:
    current = coverage.Coverage.current()
    if current is not None:
        current.switch_context(item.nodeid)


def pytest_runtest_teardown(item: Any) -> None:
    current = coverage.Coverage.current()
    if current is not None:
        current.switch_context("")


def pytest_runtest_logreport(report: Any) -> None:
    _durations[report.nodeid] = _durations.get(report.nodeid, 0.0) + report.duration


def pytest_sessionfinish() -> None:
    DURATIONS.write_text(json.dumps(_durations))
