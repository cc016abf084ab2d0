"""Messages, JSON and help are what was recorded."""

from __future__ import annotations

import pytest

from tests.characterisation.compare import RECORDED, blocks, differing, differing_refusals
from tests.characterisation.said import TEXTS, as_text, environment, texts_of, wrong_calls

SAME = (RECORDED / "environment.txt").read_text(encoding="utf-8").strip() == environment()


@pytest.mark.skipif(not SAME, reason="recorded with other versions of Python, numpy or sympy")
@pytest.mark.parametrize(
    "name", [name if name != "refusals" else pytest.param(name, marks=pytest.mark.slow) for name in TEXTS]
)
def test_users_see_what_was_recorded(name: str) -> None:
    assert "\n".join(differing(name)) == ""


@pytest.mark.skipif(not SAME, reason="recorded with other versions of Python, numpy or sympy")
def test_the_first_refusal_of_a_name_is_what_was_recorded() -> None:
    assert len(texts_of(wrong_calls(1, every=4))) > 250
    assert "\n".join(differing_refusals(1, every=4)) == ""


def test_a_file_is_read_as_it_is_written() -> None:
    said = {"f(1)": "InvalidTypeError: no\n  fact : 1", "g": ""}
    assert blocks(as_text(said)) == said
