"""Every recorded verdict of ptxas on an instruction text, against ours: accepted or not, and from which version.

The recorded texts use the registers %r, %rd, %h and the symbols gmap (global) and smem (shared).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from cute_py.ptx.check import examine, verdict
from cute_py.targets import version_of
from tests.oracle.records import rows, tally


def covered() -> list[dict[str, Any]]:
    return list(rows("ptx_matrix"))


def disagreements(row: dict[str, Any]) -> list[str]:
    """Architectures on which our verdict or our version is not the recorded one."""
    examined = examine(row["text"])
    found = []
    for arch, recorded in row["archs"].items():
        ours = verdict(row["text"], arch)
        if ours.assembles != recorded["ok"]:
            found.append(f"{row['text']} on {arch}: ours {ours.assembles} ({ours.why_not}), recorded {recorded}")
        elif recorded["ok"] and recorded["min_version"] is not None:
            version = examined.min_version(arch)
            if version != version_of(recorded["min_version"]):
                found.append(f"{row['text']} on {arch}: from {version}, recorded {recorded['min_version']}")
    return found


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_every_recorded_verdict_and_version(every: int) -> None:
    compared = covered()[::every]
    wrong = {row["id"]: found for row in compared if (found := disagreements(row))}
    tally("ptx_matrix" if every == 1 else f"ptx_matrix, one row in {every}", len(compared) - len(wrong), len(compared))
    assert wrong == {}


def test_the_verdict_has_two_fields() -> None:
    """Order rows: ptxas takes every order of the same modifiers; exactly the ISA's order is canonical."""
    orders = [row for row in covered() if row["family"].startswith("order/")]
    canonical = Counter()
    for row in orders:
        (arch,) = row["archs"]
        ours = verdict(row["text"], arch)
        assert ours.assembles == row["archs"][arch]["ok"], row["text"]
        if ours.assembles:
            again = verdict(ours.canonical_text, arch)
            assert again.assembles and again.canonical, row["text"]
            assert ours.canonical == (ours.canonical_text.split()[0] == row["text"].split()[0])
            canonical[ours.canonical] += 1
    assert canonical[True] > 0
    assert canonical[False] > 0


def test_the_comparison_can_fail() -> None:
    row = {"text": "prefetch.tensormap [%rd1];", "archs": {"sm_80": {"ok": True, "min_version": "8.0"}}}
    assert disagreements(row) != []
    row = {"text": "prefetch.tensormap [%rd1];", "archs": {"sm_90": {"ok": True, "min_version": "8.6"}}}
    assert disagreements(row) != []
