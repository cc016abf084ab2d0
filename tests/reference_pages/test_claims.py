"""Every claim of the reference pages is held by a test that exists, or differs with a row of differences.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.reference_pages.claims import CLAIMS, PAGE, ROOT, Claim, claims, counts, functions_of, page

FOUND = list(claims(CLAIMS.read_text()))


def test_no_claim_is_missing() -> None:
    found = counts(FOUND)
    print(", ".join(f"{verdict}: {count}" for verdict, count in found.items()))
    functions = functions_of(FOUND)
    named = [name.partition("::") for claim in FOUND for name in claim.tests]
    gone = [f"{file}::{function}" for file, _, function in named if function not in functions[file]]
    assert gone == []
    assert found["missing"] == 0, [claim.text for claim in FOUND if counts([claim])["missing"]]
    assert sum(found.values()) == 428


def test_the_page_is_written_from_the_claims() -> None:
    assert PAGE.read_text() == page(FOUND), "run python -m tests.reference_pages.claims"


def test_the_check_can_fail() -> None:
    one = FOUND[0]
    assert counts([one])["holds"] == one.count
    bad = (
        replace(one, tests=()),
        replace(one, tests=("tests/no.py::test_x",)),
        replace(one, row="a row that is not there"),
    )
    for claim in bad:
        assert counts([claim])["missing"] == one.count
    assert counts([replace(one, row="step 7")])["differs with a row"] == one.count


AREAS = {
    "TMA Atoms": ("tma/",),
    "TMA load walkthrough": ("tma/", "ptx/"),
    "TMA emission": ("tma/", "ptx/"),
    "TMA tensors": ("arith_tuple/", "layout/", "tensor/", "tma/", "notation/", "ptx/", "gpu/"),
    "tcgen05_cp": ("tmem/",),
}
"""Page -> the folders of the package whose functions a test of its claims calls."""


def without_product(calls: dict[str, list[str]], found: list[Claim]) -> list[str]:
    """The tests of claims that ran and called no function of the claim's area."""
    return [
        f"{claim.text}: {name}"
        for claim in found
        for name in claim.tests
        if name in calls and not any(one.startswith(AREAS[claim.page]) for one in calls[name])
    ]


@pytest.mark.slow
def test_every_claim_is_held_by_product_code(tmp_path: Path) -> None:
    """The tests run again with every call of the package recorded."""
    names = sorted({name for claim in FOUND for name in claim.tests if not name.startswith("tests/gpu/")})
    out = tmp_path / "calls.json"
    options = ["-q", "-p", "tests.reference_pages.traced", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *names],
        env={**os.environ, "TRACED_CALLS": str(out)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    calls = json.loads(out.read_text())
    assert set(names) == set(calls)
    assert without_product(calls, FOUND) == []


def test_a_test_of_constants_is_found() -> None:
    one = FOUND[0]
    assert without_product({one.tests[0]: []}, [one]) == [f"{one.text}: {one.tests[0]}"]
    assert without_product({one.tests[0]: ["tma/dialect/exec_atom.py:tma_load"]}, [one]) == []
