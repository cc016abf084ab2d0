"""A pytest plugin: how long each test that passes takes, beside the lines that it runs (pytest-cov's contexts)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DURATIONS = Path(".coverage-durations.json")
_durations: dict[str, float] = {}
_other: set[str] = set()


def pytest_runtest_logreport(report: Any) -> None:
    _durations[report.nodeid] = _durations.get(report.nodeid, 0.0) + report.duration
    if not report.passed:
        _other.add(report.nodeid)


def pytest_sessionfinish(session: Any) -> None:
    if not hasattr(session.config, "workerinput"):
        DURATIONS.write_text(json.dumps({k: v for k, v in _durations.items() if k not in _other}))
