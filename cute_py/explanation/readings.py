"""What was found in a pasted text, and how an answer is put.

A recogniser is a function `text -> readings`. It says what a part of a text is, what the numbers in it mean, which
rules they break (`Diagnostic`), which change works, and what the text lacks for a verdict. Recognisers see a text in
turn, each without what the earlier ones took.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from cute_py.diagnostics import Diagnostic, Reason
from cute_py.dtypes import as_dtype
from cute_py.errors import shortened, unless_refused
from cute_py.explanation.definitions import filled
from cute_py.explanation.reasons import (
    CONDITION_REASONS,
    GBASIS_REASONS,
    MAP_REASONS,
    SEVERAL_IDS,
    TRAP_REASONS,
    assertion_reason,
)

MOST_READINGS: Final = 12
"""Parts of one text that are answered; the others are counted."""
LONGEST_LINE: Final = 400
"""Characters of a line of an answer."""


_ESCAPES: Final = re.compile(
    r"(?:\x1b|\^\[|\u241b|\\(?:x1b|033|u001b|e))(?:\[[0-?]{0,100}[ -/]{0,100}[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\))"
    r"|\[[0-9]{1,3}(?:;[0-9]{1,3})*m"
)
"""Colours of a terminal, also as `cat -v` and literals spell them, and where the escape itself was lost."""
_INVISIBLE: Final = re.compile("[\ufeff\u200b\u200c\u200d\u2060]")
_BLANKS: Final = re.compile("[\u00a0\u2007\u202f\x00]")
_SMART: Final = str.maketrans({"\u201c": '"', "\u201d": '"', "\u2019": "'"})
"""Quotes of a word processor; the opening single one is gcc's too, and stays."""
_ENTITY: Final = re.compile(r"&(?:lt|gt|amp|quot|nbsp|apos|#39|#x27);")
_STAMP: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?(?:Z|[+-][0-9:]{4,5})?"
_LEVEL: Final = r"\[?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\b\]?"
_PREFIXES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:> ?)+",  # a quotation
        r"\[(?:(?:rank|default|proc)?[0-9]{1,6}(?:,[0-9]{1,6})*)\](?:<std(?:out|err)>)?: ?",  # torchrun, mpirun
        r"\([A-Za-z_][^()\n]{0,60}\bpid=[0-9]+[^()\n]{0,40}\) ?",  # Ray, vLLM
        rf"{_LEVEL}[ :]\s*[0-9]{{2}}-[0-9]{{2}} [0-9:.]{{8,15}} \[[^\]\n]{{1,80}}\] ?",  # vLLM
        r"[IWEF][0-9]{4} [0-9:.]{8,15} +[0-9]+ [^\s\]]{1,120}:[0-9]+\] ?",  # glog
        rf"\[?{_STAMP}\]?(?:[ ,]?[-|:]? ?{_LEVEL}\s*(?:[|] [^\n|]{{1,80}}? - |[-|:] )?)? ?",
        r"[a-z][a-z0-9_.]*(?:-[a-z0-9_.]+)*-[0-9]+ +\| ?",  # Docker
        r"E {3,7}(?=\S| )",  # pytest
    )
)
"""What logs and quotations put before every line."""


def as_printed(text: str) -> str:
    """The text as its program printed it: without colours, a log's prefixes, and how it was quoted or spelled.

    >>> as_printed("[rank0]: \\x1b[31mformat\\x1b[0m   9\\n[rank0]: dim      2")
    'format   9\\ndim      2'
    """
    text = text.replace("\r\n", "\n")
    of_windows = re.search(r"(?<![A-Za-z])[A-Za-z]:\\", text) is not None
    if "\n" not in text.strip() and "\\n" in text and not of_windows:  # a literal
        text = re.sub(r"\\([nt\"'])", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text)
    text = _BLANKS.sub(" ", _INVISIBLE.sub("", _ESCAPES.sub("", text.translate(_SMART))))
    text = re.sub(r"\A\s{0,80}(```|[\"'`])\n?((?:(?!\1).)*)\1\s{0,80}\Z", r"\2", text, flags=re.DOTALL)
    if _ENTITY.search(text):
        text = _BLANKS.sub(" ", html.unescape(text))
    lines = text.split("\n")
    while any((cut := _cut(lines, prefix)) is not None and (lines := cut) for prefix in _PREFIXES):
        pass
    return "\n".join(lines)


def _cut(lines: list[str], prefix: re.Pattern[str]) -> list[str] | None:
    """The lines without a prefix that all of them have, but for the first, whose begin may be lost."""
    found = [prefix.match(line) for line in lines]
    full = [i for i, line in enumerate(lines) if line.strip()]
    if not full or any(found[i] is None for i in full[min(1, len(full) - 1) :]):
        return None
    return [line[match.end() :] if match else line for line, match in zip(lines, found, strict=True)]


def unwrapped(text: str) -> str:
    """The text without line breaks where its longest lines end: a terminal's width cut them.

    >>> unwrapped("a" * 60 + "\\n" + "b")[58:]
    'aab'
    """
    lines = text.split("\n")
    width = max(map(len, lines))
    if width < 60:
        return text
    return "".join(line if len(line) == width else line + "\n" for line in lines).removesuffix("\n")


@dataclass(frozen=True, slots=True)
class Reading:
    """One part of a text, understood.

    Attributes:
        kind: what it is; begin, end: its place in the text, in characters.
        meaning: lines on what it means.
        broken: the rules that it breaks; a warning is legal and harmful.
        changes: what works instead; each was tried against all rules.
        missing: what the text lacks; elsewhere: where to look where no rule is broken.
        judged: whether rules apply to it, so that an empty `broken` means that it is sound.
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

    def __post_init__(self) -> None:
        for name in ("meaning", "broken", "changes", "missing"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

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
        parts.append(_headed("Missing in the text", self.missing))
        return "\n\n".join(part for part in parts if part)


def reason_of(rule: str) -> Reason | None:
    """The reason of a rule: of a tensor map by its id; of C++ and of the hardware by its text.

    >>> reason_of("box").why
    'A map holds the size of the box less 1 in 8 bits of each mode.'
    """
    return MAP_REASONS.get(rule) or condition_reason(rule) or _begins(rule, TRAP_REASONS)


def condition_reason(condition: str) -> Reason | None:
    """The reason of what CuTe C++ asserts: by the whole message, or else by how it begins."""
    for table in (SEVERAL_IDS, CONDITION_REASONS):
        if condition in table:
            return table[condition]
    return assertion_reason(condition) or _begins(condition, {**CONDITION_REASONS, **GBASIS_REASONS})


def _begins(rule: str, table: Mapping[str, Reason]) -> Reason | None:
    """The first row that the text begins with, or that begins with the text, which may be cut off."""
    begun = rule.lower()
    for name, reason in table.items():
        if begun.startswith(name.lower()) or (len(rule) > 12 and name.lower().startswith(begun)):
            return reason
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
    """A title and its lines, indented; nothing where there are no lines."""
    body = "\n".join(f"  {shortened(part, LONGEST_LINE)}" for line in lines for part in line.split("\n"))
    return f"{title}\n{body}" if body else ""


def answer(readings: Sequence[Reading]) -> str:
    """The answer to a text: each reading in the order of the text, what is the same only once."""
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
    """The text with blanks where it was read, so that places stay the same.

    >>> without("ab cd", [Reading("x", 0, 2)])
    '   cd'
    """
    for reading in readings:
        inside = text[reading.begin : reading.end]
        text = text[: reading.begin] + re.sub(r"[^\n]", " ", inside) + text[reading.end :]
    return text


TYPE_NAME: Final = re.compile(
    r"\b(?:torch\.)?(float(?:8_?\w{0,80}|16|32|64)?|bfloat16|half|double|u?int(?:8|16|32|64)|fp(?:8|16|32|64)|bf16)\b"
)
"""An element type among other words."""
_LOOSE: Final = (("fp8", 8), ("float8", 8), ("char", 8), ("byte", 8), ("bfloat", 16), ("half", 16), ("unsigned", 32))


def type_bits(name: str) -> int:
    """Bits of an element type in any spelling; 0 of an unknown name.

    >>> type_bits("cutlass::float_e4m3_t"), type_bits("unsigned char"), type_bits("fp8"), type_bits("void")
    (8, 8, 8, 0)
    """
    dtype = unless_refused(as_dtype, name.strip())
    return next((bits for part, bits in _LOOSE if part in name.lower()), 0) if dtype is None else dtype.bits


def some(found: Iterator[re.Match[str]], most: int = 64) -> list[re.Match[str]]:
    """The first matches of a pattern; a text may have as many as it has characters."""
    return list(islice(found, most))


def closing(text: str, begin: int, most: int = 4000) -> int:
    """Where the bracket that is open at `begin` closes, or the end of the text; quotes count as one character.

    >>> closing("f(a[1], (2)) + 1", 2)
    11
    """
    depth, quoted = 1, False
    end = min(len(text), begin + most)
    for i in range(begin, end):
        c = text[i]
        if c == '"':
            quoted = not quoted
        elif not quoted:
            depth += (c in "([{<") - (c in ")]}" or (c == ">" and text[i - 1] not in "-="))
        if depth == 0:
            return i
    return end
