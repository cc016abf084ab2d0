"""Print, at the end of the run, how many recorded rows held and which are not covered."""

from __future__ import annotations

from typing import Any

from tests.oracle.records import TALLIES


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if TALLIES:
        terminalreporter.section("recorded rows")
    for name, (passed, total, uncovered) in sorted(TALLIES.items()):
        tail = f"; not covered: {uncovered}" if uncovered else ""
        terminalreporter.write_line(f"{name}: {passed} of {total} rows hold{tail}")
