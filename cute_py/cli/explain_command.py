"""`cute-py explain`: the meaning of a text that a program printed, or of a name: errors, maps, layouts."""

from __future__ import annotations

import argparse
import os
import re
from typing import Final

import cute_py as cute
from cute_py.cli.arguments import MAX_TEXT, STANDARD_INPUT, json_option, report, text_of
from cute_py.errors import FileFormatError
from cute_py.explanation.dispatch import readings_of
from cute_py.explanation.readings import Reading


def register(p: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    p.description = (
        "Takes what a program printed: CUTLASS's TMA descriptor, a printed layout or tensor, a compiler's output with "
        "a failed assertion, an error of CUDA, Triton or TileLang, the arguments or the bytes of a tensor map in any "
        "form; or a name or a term, such as zipped_divide or LBO. Without TEXT, or with -, it reads standard input."
    )
    p.add_argument(
        "text", nargs="?", default=STANDARD_INPUT, metavar="TEXT|FILE", help="the text, or a file that has it"
    )
    json_option(p, run, "the answer as JSON: its text, and each part with its rules")


def run(options: argparse.Namespace) -> int:
    """Print the answer."""
    text = _text(options.text)
    answer = cute.explain(text)
    report(options, lambda: {"explain": str(answer), "parts": list(map(_part, readings_of(text)))}, lambda: answer)
    return 0


def _part(reading: Reading) -> dict[str, object]:
    return {
        "kind": reading.kind,
        "meaning": list(reading.meaning),
        "broken": [{"rule": d.rule, "severity": d.severity, "message": d.message} for d in reading.broken],
        "changes": list(reading.changes),
        "missing": list(reading.missing),
    }


_FILE_NAME: Final = re.compile(r"[~.]{0,2}/[\w./~+-]+|[\w./+-]+\.(?:txt|log|ptx|cu)")
"""An argument that names a file; a text of a program has other characters."""


def _text(argument: str) -> str:
    """The text that is given, or that of a file or of standard input.

    Raises:
        FileFormatError: a file that can't be read, or of more than 1 MiB; the name of one that is not there.
    """
    if _FILE_NAME.fullmatch(argument) and not os.path.exists(argument):
        raise FileFormatError(f"{argument}: no such file")
    if argument == STANDARD_INPUT or "\n" in argument or not os.path.isfile(argument):
        return text_of(argument)
    try:
        with open(argument, "rb") as file:
            raw = file.read(MAX_TEXT + 1)
    except OSError as error:
        raise FileFormatError(f"can't read {argument}: {error.strerror}") from None
    if len(raw) > MAX_TEXT:
        raise FileFormatError(f"{argument} has more than {MAX_TEXT} bytes; paste the part with the error")
    return raw.decode("utf-8", "replace")
