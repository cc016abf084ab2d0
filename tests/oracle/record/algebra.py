"""algebra_cpp, algebra_cpp_hand: an expression of layout algebra, and what C++ prints or the static_assert it meets."""

from __future__ import annotations

from collections.abc import Mapping

from tests.oracle.record import notation
from tests.oracle.record.family import Family, Row
from tests.oracle.record.program import Outcome


def statements(row: Row) -> dict[str, str]:
    return {"text": f"print({notation.cpp(row['expr'])});"}


def record(row: Row, outcomes: Mapping[str, Outcome]) -> Row:
    outcome = outcomes["text"]
    if outcome.compiler:
        return {"status": "nocompile", "error": outcome.compiler.rpartition(" @ ")[0]}
    if outcome.assertion:
        return {"status": "assert", "error": outcome.assertion}
    return {"status": "ok", "text": outcome.text}


FAMILIES = tuple(
    Family(
        file=file,
        statements=statements,
        record=record,
        inputs=lambda row: ("expr",),
        copied={"op": "a label of the expression"},
        refused=lambda row, part: bool(row["status"] == "nocompile"),
        together=280,
    )
    for file in ("algebra_cpp", "algebra_cpp_hand")
)
