"""print_cpp, print_cpp_seed, print_cpp_run, print_cpp_random, tiled_random: a C++ statement, and what it prints."""

from __future__ import annotations

from collections.abc import Mapping

from tests.oracle.record.family import Family, Row
from tests.oracle.record.program import Outcome

COPIED = {
    "words": "the statement in words",
    "seed": "a label",
    "group": "the program that the row was first compiled in; a row's text does not depend on it",
    "py": "the Python expression for the same text",
}


def statements(row: Row) -> dict[str, str]:
    return {"text": row["cpp"]}


def record(row: Row, outcomes: Mapping[str, Outcome]) -> Row:
    outcome = outcomes["text"]
    error = outcome.compiler or outcome.assertion
    return {"error": error} if error else {"text": outcome.text}


FAMILIES = tuple(
    Family(
        file=file,
        statements=statements,
        record=record,
        inputs=lambda row: ("id", "cpp"),
        copied=COPIED,
        refused=lambda row, part: "error" in row,
        together=150,
    )
    for file in ("print_cpp", "print_cpp_seed", "print_cpp_run", "print_cpp_random")
)

TILED = Family(
    file="tiled_random",
    statements=statements,
    record=record,
    inputs=lambda row: ("id", "cpp"),
    copied={"py": COPIED["py"]},
    refused=lambda row, part: "error" in row,
    together=70,
)
"""Random tiled operations, and parts of them."""
