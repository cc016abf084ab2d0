"""Hypothesis profiles: `few` (the default: 10 examples, always the same), `ci` (60, `make slow`), `deep` (2,000)."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, settings

for name, examples in (("few", 10), ("ci", 60)):
    settings.register_profile(
        name, max_examples=examples, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
    )
settings.register_profile("deep", max_examples=2_000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "few"))

DESELECTED = pytest.StashKey[list[str]]()
"""Names of the tests that were collected and that `-m` or `-k` leaves out."""


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        item.config.stash.setdefault(DESELECTED, []).append(item.nodeid)


collect_ignore = ["oracle/record/dsl_prints.py"]
"""It needs CuTe DSL, whose prints it records."""
