"""What a family of records is: how a row becomes C++ statements, and how their outcomes become a row again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.oracle.record.program import Outcome

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Family:
    """The rows of one file.

    A row made again has its inputs and what is copied from the stored row, and of everything else only what came out
    of the compiler and the program: a field that they do not give is missing in it.
    """

    file: str
    statements: Callable[[Row], dict[str, str]]
    """Row -> part of it -> C++ statement."""
    record: Callable[[Row, Mapping[str, Outcome]], Row]
    """The fields that the outcomes of the parts give."""
    inputs: Callable[[Row], tuple[str, ...]]
    """The fields that the statements are made from."""
    copied: Mapping[str, str]
    """Field -> why it is not made again but copied."""
    refused: Callable[[Row, str], bool]
    """Did this part of the stored row not compile? Such parts are kept out of the large programs."""
    together: int
    """Statements in one program."""
    limits: tuple[str, ...] = ()
    """What else of the rows is not made again, and why."""

    def again(self, row: Row, outcomes: Mapping[str, Outcome]) -> Row:
        """The row made again, its fields in the order of the stored one."""
        kept = {name: row[name] for name in (*self.inputs(row), *self.copied) if name in row}
        made = kept | self.record(row, outcomes)
        return {name: made[name] for name in (*(n for n in row if n in made), *(n for n in made if n not in row))}
