"""The rows of known messages, and the functions that find them in text.

The TOML files next to this module contain the rows. A row has the pattern of a message (`pattern`), the program that
prints it, its rule, its meaning (`text`) and what to do (`change`). If a change needs arithmetic,
`calculator` names the function of `calculators.py` that computes it, and `explain` tries this change. `note` names a
function that compares the numbers.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from cute_py.diagnostics import Reason
from cute_py.explanation.rows.calculators import CALCULATORS, NOTES

MOST_MATCHES: Final = 8
"""Maximum number of matches of one row in a text."""
LARGEST: Final = 1 << 60
"""Numbers of this size or more are not used in computations."""


@dataclass(frozen=True, slots=True)
class Row:
    """One known message.

    Attributes:
        pattern: a regular expression; a blank stands for any white space, because compilers and logs wrap lines.
        messages: whole messages, as an alternative to a pattern; `*` matches any text.
        program: the program that prints it; empty if the text around the message identifies the program.
        rule: the id of a rule of tensor maps, or another name.
        text, change: the meaning, and what to do; `{0}` stands for the first group of the pattern.
        calculator: the function in `CALCULATORS` that computes the change from the groups as numbers.
        note: the function in `NOTES` that computes another line of the meaning from the groups as numbers.
        operands: the name of the reader that compares the operands or runs the operation on them.
        source: the source of the rule; name: its name in a list of rules.
    """

    pattern: str = ""
    messages: tuple[str, ...] = ()
    program: str = ""
    rule: str = ""
    text: str = ""
    change: str = ""
    calculator: str = ""
    note: str = ""
    operands: str = ""
    source: str = ""
    name: str = ""

    def finds(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the first `MOST_MATCHES` matches in `text`."""
        for count, match in enumerate(compiled(self.pattern).finditer(text), 1):
            yield match
            if count == MOST_MATCHES:
                return

    def says(self, match: re.Match[str]) -> str:
        """The meaning of the message, with the groups of a match filled in."""
        return self.text.format(*[group or "" for group in match.groups()])

    def noted(self, match: re.Match[str]) -> str:
        """Return the note on the numbers of a match, or an empty string if there is none."""
        numbers = _numbers(match) if self.note else None
        return "" if numbers is None else NOTES[self.note](numbers)

    def remedies(self, match: re.Match[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return (changes that passed their check, advice that was not tried) for the groups of a match; at least
        one of them is empty."""
        groups = [group or "" for group in match.groups()]
        if self.calculator:
            numbers = _numbers(match)
            offer = CALCULATORS[self.calculator](numbers) if numbers is not None else None
            if offer is not None:
                from cute_py.explanation.offers import passes_check  # imports the packages that check an offer

                if passes_check(offer.make):
                    return (offer.text,), ()
        advice = self.change.format(*groups)
        return (), (advice,) if advice else ()


_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")


def _numbers(match: re.Match[str]) -> list[int] | None:
    """The groups of a match as integers, with 0 for a group that is not a number; None if a number is too large to
    compute with."""
    groups = [group or "" for group in match.groups()]
    numbers = [int(group) if _NUMBER.fullmatch(group) else 0 for group in groups]
    return numbers if all(abs(n) < LARGEST for n in numbers) else None


_BLANK: Final = re.compile(r"\\.|\[(?:\\.|[^\]\\])*+(?:\]|\Z)| \?| (?![*+{])")
"""A required or optional blank of a pattern, outside brackets."""
_WHITE: Final = {" ": r"\s{1,400}", " ?": r"\s{0,400}"}


@functools.cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile the pattern of a row: case is ignored, and a blank matches any white space.

    >>> compiled("a must").search("A  \\n must") is not None
    True
    """
    return re.compile(_BLANK.sub(lambda part: _WHITE.get(part[0], part[0]), pattern), re.IGNORECASE)


@functools.cache
def tables(name: str) -> dict[str, list[dict[str, Any]]]:
    """The parsed tables of a TOML file of rows."""
    file = resources.files("cute_py.explanation.rows").joinpath(f"{name}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


@functools.cache
def rows(name: str, table: str = "row") -> tuple[Row, ...]:
    """The rows of a file, in the order of the file; if two rows match a text, the first one applies."""
    return tuple([Row(**{**row, "messages": tuple(row.get("messages", ()))}) for row in tables(name)[table]])


def reasons(table: str) -> dict[str, Reason]:
    """Read a table of `reasons.toml`: id of a rule -> its reason.

    >>> reasons("map")["box"].why
    'A map stores the box size of each mode, less 1, in 8 bits.'
    """
    return {row.rule: Reason(row.text, row.change, row.source, row.name) for row in rows("reasons", table)}


def first_of(name: str, text: str) -> Row | None:
    """The first row of a file whose pattern matches in `text`; None if no row does."""
    return next((row for row in rows(name) if compiled(row.pattern).search(text)), None)


def found(text: str, known: Sequence[Row]) -> Iterator[tuple[Row, re.Match[str]]]:
    """Yield (row, match) for every message in `text` that a row of `known` matches, row by row."""
    for row in known:
        for match in row.finds(text):
            yield row, match
