"""Every claim of the reference pages is held by a test that exists, or differs with a row of differences.md."""

from __future__ import annotations

from dataclasses import replace

from tests.reference_pages.claims import CLAIMS, PAGE, claims, counts, functions_of, page

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
