"""A pytest plugin: which lines each test runs, as contexts of coverage, and how long each test that passes takes.

Where lines are traced, tests run few of their drawn examples: the lines are found all the same, and tracing is slow.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

_durations: dict[str, float] = {}
_other: set[str] = set()


def _switch(context: str) -> None:
    if "EXAMPLES" not in os.environ:  # no lines are traced
        return
    import coverage

    current = coverage.Coverage.current()
    if current is not None:
        current.switch_context(context)


def pytest_collection_finish() -> None:
    """After the project's own profile was chosen."""
    if "EXAMPLES" in os.environ:
        from hypothesis import settings

        settings.register_profile("map", settings.default, max_examples=int(os.environ["EXAMPLES"]))
        settings.load_profile("map")


def pytest_runtest_setup(item: Any) -> None:
    _switch(item.nodeid)


def pytest_runtest_teardown() -> None:
    _switch("")


def pytest_runtest_logreport(report: Any) -> None:
    _durations[report.nodeid] = _durations.get(report.nodeid, 0.0) + report.duration
    if not report.passed:
        _other.add(report.nodeid)


def pytest_sessionfinish() -> None:
    Path(os.environ["DURATIONS"]).write_text(json.dumps({k: v for k, v in _durations.items() if k not in _other}))
