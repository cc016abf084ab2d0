"""`cute-py explain`: explain the output of a program (an error, a map, a layout), a name, or the tensors of a
checkpoint."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from typing import Final

import cute_py as cute
from cute_py.cli.arguments import STANDARD_INPUT, json_option, report, standard_bytes
from cute_py.errors import FileFormatError, counted, shortened, system_reason
from cute_py.explanation.compositions import spelled_statements
from cute_py.explanation.dispatch import readings_of
from cute_py.explanation.readings import Reading, without
from cute_py.layout.steps import explained
from cute_py.notation.log_lines import as_printed, without_prompts
from cute_py.notation.parse import MOST_TEXT


def register(p: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    p.description = (
        "Explains the output of a program: a TMA descriptor that CUTLASS printed, a printed layout or tensor, "
        "compiler output with a failed assertion, an error from CUDA, Triton or TileLang, or the arguments or "
        "bytes of a tensor map in any form. Also explains a name or a term, such as zipped_divide or LBO. "
        "Without TEXT, or with -, it reads standard input. A text has at most 65,536 characters. For a "
        "checkpoint (a .safetensors file, an index or a folder) it reports each tensor, the order of its scales, "
        "and all errors; the exit status is 1 if there are errors."
    )
    p.add_argument(
        "texts",
        nargs="*",
        metavar="TEXT|FILE",
        help="the text, or a file that contains it. For GMEM SMEM [TILE], written as for `tma`, the answer has every "
        "step of the TMA copy; for an operation and its operands, such as composition A B, the steps of the operation",
    )
    p.add_argument(
        "--reference",
        metavar="ORIGINAL",
        help="the original checkpoint, which determines the order of the scales",
    )
    json_option(p, run, "print the answer as JSON: its text, and each part with its rules")


def run(options: argparse.Namespace) -> int:
    """Print the answer. Returns 1 if a tensor of a checkpoint is wrong, else 0."""
    if len(options.texts) > 1 and ":" in options.texts[0] and ":" in options.texts[1]:
        return _copy(options)
    operands = options.texts[1:] if all(any(map(str.isdigit, text)) for text in options.texts[1:]) else []
    operation = next((one for one in explained() if operands and one.__name__ == options.texts[0]), None)
    if operation is not None and options.reference is None:
        answer = cute.explain(operation, *map(cute.parse, operands))
        report(options, lambda: {"explain": str(answer)}, lambda: str(answer))
        return 0
    options.text = " ".join(options.texts) or STANDARD_INPUT  # a question works without quotes
    if _is_checkpoint(options.text):
        return _checkpoint(options)
    if options.reference is not None:
        raise FileFormatError(f"--reference needs a checkpoint, but {shortened(options.text)} is not one")
    text = _text(options.text)
    answer = cute.explain(text)
    readings = readings_of(text)
    printed = as_printed(text)
    whole = spelled_statements(without_prompts(text)) is not None  # all statements are in the answer
    unread = _unread(printed, readings) if "\n" in text and not whole else []
    in_part = [] if whole else _read_in_part(printed, readings)
    data = {"explain": str(answer), "parts": list(map(_part, readings)), "not_recognised": unread}
    data["read_in_part"] = in_part
    more = f"\n\nNot recognised: {counted(len(unread), 'line')}, the first: {unread[0]}" if unread else ""
    if in_part:
        more += f"\n\nRead only in part: {counted(len(in_part), 'line')}; this requirement was not judged: {in_part[0]}"
    report(options, lambda: data, lambda: f"{answer}{more}")
    return 0


def _copy(options: argparse.Namespace) -> int:
    """Explain the copy of GMEM SMEM [TILE], as `cute-py tma explain` does."""
    from cute_py.cli import tma_command

    if options.reference is not None:
        raise FileFormatError("--reference needs a checkpoint, and one argument")
    tma = argparse.ArgumentParser(add_help=False)
    tma_command.register(tma)
    asked = tma.parse_args(["--json", *options.texts] if options.json else list(options.texts))
    return tma_command.run(asked)


def _is_checkpoint(text: str) -> bool:
    """Whether an argument names a checkpoint: a .safetensors file, an index, or a folder of such files."""
    if text.endswith((".safetensors", ".safetensors.index.json")):
        return "\n" not in text
    try:
        return os.path.isdir(text) and any(name.endswith(".safetensors") for name in os.listdir(text))
    except (OSError, ValueError):
        return False


def _checkpoint(options: argparse.Namespace) -> int:
    """Describe a checkpoint."""
    from cute_py.checkpoints.describe import describe_checkpoint

    made = describe_checkpoint(options.text, options.reference)

    def data() -> dict[str, object]:
        return {
            "explain": str(made),
            "weights": [
                {
                    "name": one.weight.name,
                    "shape": list(one.weight.shape),
                    "format": str(one.weight.format),
                    "convention": one.weight.convention.name,
                    "algorithm": one.weight.convention.algorithm,
                    "tensors": dict(one.weight.tensors),
                    "order": one.order,
                    "certain": one.certain,
                    "broken": [{"rule": d.rule, "severity": d.severity, "message": d.message} for d in one.found],
                }
                for one in made.weights
            ],
            "others": dict(made.others),
            "broken": [{"rule": d.rule, "severity": d.severity, "message": d.message} for d in made.problems],
            "scope": made.scope.to_json(),
        }

    report(options, data, lambda: made)
    return int(bool(made.errors))


def _unread(text: str, readings: Sequence[Reading]) -> list[str]:
    """The lines of the text that no reading covers, without the lines that have no letters or digits."""
    if not readings:
        return []
    taken = bytearray(len(text) + 1)
    for begin, end in (span for one in readings for span in one.spans):
        taken[begin : max(end, begin + 1)] = b"\1" * (max(end, begin + 1) - begin)
    left, begin = [], 0
    for line in text.split("\n"):
        if not any(taken[begin : begin + len(line)]) and any(map(str.isalnum, line)):
            left.append(shortened(line.strip(), 160))
        begin += len(line) + 1
    return left


_DEMANDS: Final = re.compile(r"\b(?:must|should|expected|requires?|got)\b", re.IGNORECASE)


def _read_in_part(text: str, readings: Sequence[Reading]) -> list[str]:
    """Find the lines that state a requirement, although the readings only explain names in them."""
    found, begin, left = [], 0, without(text, readings)
    for line in text.split("\n"):
        end = begin + len(line)
        here = [one for one in readings if any(first < end and last > begin for first, last in one.spans)]
        if here and not any(map(_judges, here)) and _DEMANDS.search(left, begin, end):
            found.append(shortened(line.strip(), 160))
        begin = end + 1
    return found


def _judges(one: Reading) -> bool:
    """Whether a reading judges its part of the text, rather than only explaining a name."""
    return bool(one.broken or one.changes or one.advice or one.missing or one.judged or one.scope)


def _part(reading: Reading) -> dict[str, object]:
    return {
        "kind": reading.kind,
        "meaning": list(reading.meaning),
        "broken": [{"rule": d.rule, "severity": d.severity, "message": d.message} for d in reading.broken],
        "changes": list(reading.changes),
        "advice": list(reading.advice),
        "missing": list(reading.missing),
        "scope": None if reading.scope is None else reading.scope.to_json(),
    }


_FILE_NAME: Final = re.compile(r"[~.]{0,2}/[\w./~+-]+|[\w./+-]+\.(?:txt|log|ptx|cu)")
"""Matches an argument that names a file; the output of a program has other characters."""


def _text(argument: str) -> str:
    """The text to explain: the argument itself, or the contents of the file that it names or of standard input.

    Raises:
        FileFormatError: the file can't be read, does not exist, or has more than 65,536 characters.
    """
    if _FILE_NAME.fullmatch(argument) and not os.path.exists(argument):
        raise FileFormatError(f"{argument}: the file does not exist")
    if argument == STANDARD_INPUT:
        return _decoded(standard_bytes(_MOST_BYTES + 1), "standard input", "strict").strip()
    if "\n" in argument or not os.path.isfile(argument):
        return argument
    try:
        with open(argument, "rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise FileFormatError(f"can't read {argument}: {system_reason(error)}") from None
    return _decoded(raw, argument, "replace")


_MOST_BYTES: Final = 4 * MOST_TEXT
"""Largest text to explain, in bytes of UTF-8."""


def _decoded(raw: bytes, name: str, errors: str) -> str:
    """Decode the bytes of a file as UTF-8.

    Raises:
        FileFormatError: the file has more than `MOST_TEXT` characters, or is not UTF-8.
    """
    try:
        text = "" if len(raw) > _MOST_BYTES else raw.decode("utf-8", errors)
    except UnicodeDecodeError:
        raise FileFormatError(f"{name} is not text (it is not UTF-8)") from None
    if len(raw) > _MOST_BYTES or len(text) > MOST_TEXT:
        raise FileFormatError(f"{name} has more than {MOST_TEXT} characters; paste the part with the error")
    return text
