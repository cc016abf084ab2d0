"""Layout algebra, text for text as CuTe C++ prints it, and refused where C++ does not compile."""

from __future__ import annotations

import pytest

from cute_py.errors import CuteError, StaticAssertError
from tests.oracle.expressions import evaluate, shown
from tests.oracle.records import rows, tally


def difference(row: dict[str, str]) -> str:
    """'' if our result is the recorded one."""
    try:
        got = shown(evaluate(row["expr"]))
    except CuteError as error:
        if row["status"] == "ok":
            return f"{row['expr']}: {row['text']} expected, refused: {error}"
        condition = row["error"].removeprefix("static assertion failed: ")
        if not isinstance(error, StaticAssertError) or error.condition != condition:
            return f"{row['expr']}: refused with {error.headline!r}, C++ says {condition!r}"
        return ""
    if row["status"] != "ok":
        return f"{row['expr']}: C++ refuses ({row['error']}), got {got}"
    return "" if got == row["text"] else f"{row['expr']}: {row['text']} expected, got {got}"


@pytest.mark.parametrize("name", ["algebra_cpp", "algebra_cpp_hand"])
def test_every_row(name: str) -> None:
    differences = [d for d in map(difference, rows(name)) if d]
    tally(name, len(rows(name)) - len(differences), len(rows(name)))
    assert not differences, "\n".join(differences)
