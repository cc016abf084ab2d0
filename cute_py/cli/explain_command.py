"""`cute-py explain`: the meaning of a text that a program printed, or of a name: errors, maps, layouts."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from typing import Final

import cute_py as cute
from cute_py.cli.arguments import STANDARD_INPUT, json_option, report, standard_bytes
from cute_py.errors import FileFormatError, counted, shortened
from cute_py.explanation.dispatch import readings_of
from cute_py.explanation.readings import Reading
from cute_py.notation.log_lines import as_printed
from cute_py.notation.parse import MOST_TEXT


def register(p: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    p.description = (
        "Takes what a program printed: CUTLASS's TMA descriptor, a printed layout or tensor, a compiler's output with "
        "a failed assertion, an error of CUDA, Triton or TileLang, the arguments or the bytes of a tensor map in any "
        "form; or a name or a term, such as zipped_divide or LBO. Without TEXT, or with -, it reads standard input. "
        "A text has at most 65,536 characters."
    )
    p.add_argument(
        "text", nargs="?", default=STANDARD_INPUT, metavar="TEXT|FILE", help="the text, or a file that has it"
    )
    json_option(p, run, "the answer as JSON: its text, and each part with its rules")


def run(options: argparse.Namespace) -> int:
    """Print the answer."""
    text = _text(options.text)
    answer = cute.explain(text)
    readings = readings_of(text)
    unread = _unread(as_printed(text), readings) if "\n" in text else []
    data = {"explain": str(answer), "parts": list(map(_part, readings)), "not_recognised": unread}
    more = f"\n\nNot recognised: {counted(len(unread), 'line')}, the first: {unread[0]}" if unread else ""
    report(options, lambda: data, lambda: f"{answer}{more}")
    return 0


def _unread(text: str, readings: Sequence[Reading]) -> list[str]:
    """The lines of a text that no reading takes a part of, without those that have no letter and no digit."""
    if not readings:
        return []
    taken = bytearray(len(text) + 1)
    for one in readings:
        taken[one.begin : max(one.end, one.begin + 1)] = b"\1" * (max(one.end, one.begin + 1) - one.begin)
    left, begin = [], 0
    for line in text.split("\n"):
        if not any(taken[begin : begin + len(line)]) and any(map(str.isalnum, line)):
            left.append(shortened(line.strip(), 160))
        begin += len(line) + 1
    return left


def _part(reading: Reading) -> dict[str, object]:
    return {
        "kind": reading.kind,
        "meaning": list(reading.meaning),
        "broken": [{"rule": d.rule, "severity": d.severity, "message": d.message} for d in reading.broken],
        "changes": list(reading.changes),
        "missing": list(reading.missing),
        "scope": None if reading.scope is None else reading.scope.to_json(),
    }


_FILE_NAME: Final = re.compile(r"[~.]{0,2}/[\w./~+-]+|[\w./+-]+\.(?:txt|log|ptx|cu)")
"""An argument that names a file; a text of a program has other characters."""


def _text(argument: str) -> str:
    """The text that is given, or that of a file or of standard input.

    Raises:
        FileFormatError: a file that can't be read, that is not there, or that has more than 65,536 characters.
    """
    if _FILE_NAME.fullmatch(argument) and not os.path.exists(argument):
        raise FileFormatError(f"{argument}: no such file")
    if argument == STANDARD_INPUT:
        return _decoded(standard_bytes(_MOST_BYTES + 1), "standard input", "strict").strip()
    if "\n" in argument or not os.path.isfile(argument):
        return argument
    try:
        with open(argument, "rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise FileFormatError(f"can't read {argument}: {error.strerror}") from None
    return _decoded(raw, argument, "replace")


_MOST_BYTES: Final = 4 * MOST_TEXT
"""Of the longest text that is explained, in UTF-8."""


def _decoded(raw: bytes, name: str, errors: str) -> str:
    """The text of a file, if it is not too long.

    Raises:
        FileFormatError: it has more than `MOST_TEXT` characters, or is not UTF-8.
    """
    try:
        text = "" if len(raw) > _MOST_BYTES else raw.decode("utf-8", errors)
    except UnicodeDecodeError:
        raise FileFormatError(f"{name} is not text (it is not UTF-8)") from None
    if len(raw) > _MOST_BYTES or len(text) > MOST_TEXT:
        raise FileFormatError(f"{name} has more than {MOST_TEXT} characters; paste the part with the error")
    return text
