"""The record of a finding in a pasted text (`Reading`), and the format of an answer.

A recogniser is a function `text -> readings`. A reading describes one part of the text: its kind, the meaning of its
values, the rules that they break (`Diagnostic`), changes that work, advice that was not tried, and the data that is
missing for a verdict.
Recognisers run in order, and each one gets the text without the parts that earlier recognisers have read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from cute_py.diagnostics import Diagnostic, Reason, Scope
from cute_py.dtypes import as_dtype
from cute_py.errors import shortened, unless_refused
from cute_py.explanation.definitions import filled
from cute_py.explanation.reasons import (
    CONDITION_REASONS,
    GBASIS_REASONS,
    MAP_REASONS,
    REASONS,
    SEVERAL_IDS,
    assertion_reason,
)

MOST_READINGS: Final = 12
"""Maximum number of parts of one text that are answered; the others are only counted."""
LONGEST_LINE: Final = 400
"""Maximum number of characters in a line of an answer."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The explanation of one part of a pasted text.

    Attributes:
        kind: the kind of the part; begin, end: the position of the part in the text, in characters. meaning: lines that
            explain it.
        broken: the rules that it breaks; a warning marks a legal but harmful value.
        changes: changes that work; each was tried, or is the whole rule with the numbers of the text.
        missing: data that the text lacks; elsewhere: other possible causes, if no rule is broken.
        judged: whether rules were checked, so that an empty `broken` means that no rule is broken. scope: the rules
            that were judged and the rules that were not.
        further: the spans of other parts of the text that this explanation reads, such as the definitions of operands.
        advice: what usually helps; nothing was tried with the values of the text.
    """

    kind: str
    begin: int
    end: int
    meaning: Sequence[str] = ()
    broken: Sequence[Diagnostic] = ()
    changes: Sequence[str] = ()
    missing: Sequence[str] = ()
    elsewhere: str = ""
    judged: bool = False
    scope: Scope | None = None
    further: Sequence[tuple[int, int]] = ()
    advice: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("meaning", "broken", "changes", "missing", "further", "advice"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The spans of all parts of the text that this explanation reads."""
        return (self.begin, self.end), *self.further

    def __str__(self) -> str:
        parts = [_headed(self.kind, self.meaning) or self.kind]
        errors = [d for d in self.broken if d.severity == "error"]
        parts.append(_headed("Wrong", [line for found in errors for line in _rule_lines(found)]))
        warned = [f"{d.message}{_sourced(d)}" for d in self.broken if d.severity != "error"]
        parts.append(_headed("Legal, and harmful", warned))
        if self.judged and not errors:
            where = f" {self.elsewhere}" if self.elsewhere else ""
            parts.append(filled("", f"These numbers break no rule.{where}"))
        parts.append(_headed("A change that works", self.changes))
        parts.append(_headed("What to do (not tried)", self.advice))
        parts.append(_headed("Missing in the text", self.missing))
        parts.append(str(self.scope or ""))
        return "\n\n".join(part for part in parts if part)


def reason_of(rule: str) -> Reason | None:
    """The reason for a rule, by its id.

    >>> reason_of("box").why
    'A map stores the box size of each mode, less 1, in 8 bits.'
    """
    return MAP_REASONS.get(rule) or REASONS.get(rule) or assertion_reason(rule)


def condition_id(condition: str) -> str | None:
    """The id of a CuTe C++ assertion, from its printed message, which may be truncated or have more text after it; None
    if it is unknown.

    >>> condition_id("Shape Divis"), condition_id("Shape Divisibility Condition, in composition"), condition_id("mine")
    (None, 'Shape Divisibility Condition', None)
    >>> condition_id("Shape Divisibility C")
    'Shape Divisibility Condition'
    """
    if condition in SEVERAL_IDS or condition in CONDITION_REASONS or assertion_reason(condition) is not None:
        return condition
    begun = condition.lower()
    for name in (*CONDITION_REASONS, *GBASIS_REASONS):
        if begun.startswith(name.lower()) or (len(condition) > 12 and name.lower().startswith(begun)):
            return name
    return None


def _rule_lines(found: Diagnostic) -> list[str]:
    reason = reason_of(found.rule)
    lines = [found.message]
    if reason is not None:
        lines += [filled("  why   : ", reason.why), filled("  to do : ", reason.fix)]
    return [*lines, filled("  source: ", found.source)] if found.source else lines


def _sourced(found: Diagnostic) -> str:
    return f" ({found.source})" if found.source else ""


def _headed(title: str, lines: Sequence[str]) -> str:
    """A title with its lines indented below it; an empty string if there are no lines."""
    body = "\n".join(f"  {shortened(part, LONGEST_LINE)}" for line in lines for part in line.split("\n"))
    return f"{title}\n{body}" if body else ""


def answer(readings: Sequence[Reading]) -> str:
    """Format the readings of a text in the order of the text, without repetitions."""
    ordered = sorted(readings, key=lambda reading: reading.begin)
    parts: list[str] = []
    for reading in ordered:
        shown = str(reading)
        if shown not in parts:
            parts.append(shown)
    more = len(parts) - MOST_READINGS
    if more > 0:
        parts = [*parts[:MOST_READINGS], f"... and {more} more parts of this text"]
    return "\n\n".join(parts)


def without(text: str, readings: Sequence[Reading]) -> str:
    """The text with blanks in place of the parts that were read, so that positions do not change.

    >>> without("ab cd", [Reading("x", 0, 2)])
    '   cd'
    """
    for begin, end in (span for reading in readings for span in reading.spans):
        text = text[:begin] + blank(text[begin:end]) + text[end:]
    return text


def blank(text: str) -> str:
    """As many blanks as the text has characters, with the same line breaks."""
    return re.sub(r"[^\n]", " ", text)


TYPE_NAME: Final = re.compile(
    r"\b(?:torch\.)?(float(?:8_?\w{0,80}|16|32|64)?|bfloat16|half|double|u?int(?:8|16|32|64)|fp(?:8|16|32|64)|bf16)\b"
)
"""Matches an element type among other words."""
HANG: Final = re.compile(
    r"never (?:ends|completes|returns)|hangs?\b|dead ?lock|stuck|timed? ?out|infinite|forever", re.IGNORECASE
)
"""Matches words about a kernel that does not end."""
_LOOSE: Final = (("fp8", 8), ("float8", 8), ("char", 8), ("byte", 8), ("bfloat", 16), ("half", 16), ("unsigned", 32))


def type_bits(name: str) -> int:
    """Width in bits of an element type in any spelling; 0 for an unknown name.

    >>> type_bits("cutlass::float_e4m3_t"), type_bits("unsigned char"), type_bits("fp8"), type_bits("void")
    (8, 8, 8, 0)
    """
    dtype = unless_refused(as_dtype, name.strip())
    return next((bits for part, bits in _LOOSE if part in name.lower()), 0) if dtype is None else dtype.bits


def some(found: Iterator[re.Match[str]], most: int = 64) -> list[re.Match[str]]:
    """At most `most` matches of a pattern, because a long text could have one at every character."""
    return list(islice(found, most))
