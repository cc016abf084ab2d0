"""A pytest plugin that writes which functions of the package each test calls: {test: [file:function, ...]}."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

PACKAGE = str(Path(__file__).resolve().parents[2] / "cute_py") + os.sep
CALLS: dict[str, set[str]] = {}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Trace the body of one test; what a module computes when it is imported is not the test's."""
    name = item.nodeid.partition("[")[0]
    seen = CALLS.setdefault(name, set())

    def called(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            seen.add(f"{code.co_filename[len(PACKAGE) :]}:{code.co_qualname}")

    sys.setprofile(called)
    try:
        yield
    finally:
        sys.setprofile(None)


def pytest_sessionfinish() -> None:
    """Write what was seen."""
    if path := os.environ.get("TRACED_CALLS"):
        Path(path).write_text(json.dumps({name: sorted(found) for name, found in CALLS.items()}))
