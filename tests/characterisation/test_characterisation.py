"""Messages, JSON and help are what was recorded."""

from __future__ import annotations

import pytest

from tests.characterisation.compare import RECORDED, blocks, differing
from tests.characterisation.said import TEXTS, as_text, environment

SAME = (RECORDED / "environment.txt").read_text(encoding="utf-8").strip() == environment()


@pytest.mark.skipif(not SAME, reason="recorded with other versions of Python, numpy or sympy")
@pytest.mark.parametrize("name", TEXTS)
def test_users_see_what_was_recorded(name: str) -> None:
    assert "\n".join(differing(name)) == ""


def test_a_file_is_read_as_it_is_written() -> None:
    said = {"f(1)": "InvalidTypeError: no\n  fact : 1", "g": ""}
    assert blocks(as_text(said)) == said
