"""Arguments of the commands: their types, --json, and `-`, which means standard input instead of a string or a file.

Standard input is read once: as text, or as a file whose first bytes determine its type.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from cute_py.argument_checks import check_magnitude
from cute_py.array_headers import MAX_SAFETENSORS_HEADER
from cute_py.errors import FileFormatError, InvalidValueError, given, shortened
from cute_py.terminal import print_report

MAX_TEXT: Final = 1 << 20
"""Largest text on standard input or in a file, in bytes: a layout, a map, a request."""
_INTEGER: Final = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F]{1,5000}|0[oO][0-7]{1,5000}|0[bB][01]{1,5000}|[1-9][0-9]{0,4000}|0+)"
)
STANDARD_INPUT: Final = "-"
HEAD_BYTES: Final = 1 << 20
MAGIC: Final = ((b"\x93NUMPY", ".npy"), (b"PK\x03\x04", ".npz"), (b"PK\x05\x06", ".npz"))
"""(first bytes, suffix of such a file); everything else is read as .safetensors, which begins with a length."""


def add_action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, what: str
) -> argparse.ArgumentParser:
    """Add an action to a command. Its --help begins with the text that the command's --help shows for it."""
    return actions.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")


def json_option(
    parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int], text: str = "print the result as JSON"
) -> None:
    """Add --json, the last argument of every command, and set the function that the command runs."""
    parser.add_argument("--json", action="store_true", help=text)
    parser.set_defaults(run=run)


def report(
    options: argparse.Namespace,
    data: Callable[[], object],
    text: Callable[[], object],
    say: Callable[[object], None] = print_report,
) -> None:
    """Print the result of a command: with --json, the data as JSON; otherwise the text, with the function `say`."""
    if options.json:
        print(json.dumps(data(), indent=2))
    else:
        say(text())


def integer(text: str) -> int:
    """Parse an integer in ASCII digits: decimal, or with the prefix 0x, 0o or 0b.

    Raises:
        argparse.ArgumentTypeError: the argument is not an integer, or is far beyond any size or address.

    >>> integer("0x10"), integer("-4")
    (16, -4)
    """
    found = _INTEGER.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{given(text)}; must be an integer such as 4096 or 0x1000")
    try:
        return check_magnitude(int(found[0], 0), "the number")
    except InvalidValueError as error:
        raise argparse.ArgumentTypeError(error.headline) from None


def driver_version(text: str) -> int:
    """Parse a driver version as cuDriverGetVersion returns it: 1000 x major + 10 x minor. The lowest is CUDA 12.0, the
    first version with tensor maps.

    Raises:
        argparse.ArgumentTypeError: the argument has another form.

    >>> driver_version("13010")
    13010
    """
    version = int(text) if re.fullmatch("[0-9]{5}", text.strip()) else -1
    if not 12_000 <= version < 100_000 or version % 10:
        raise argparse.ArgumentTypeError(
            f"{shortened(repr(text), 80)}; must be 1000 x major + 10 x minor, such as 13010 for CUDA 13.1, "
            "and at least 12000"
        )
    return version


def sizes(text: str) -> tuple[int, ...]:
    """Parse integers separated by commas or by x.

    Raises:
        argparse.ArgumentTypeError: the argument has another form.

    >>> sizes("512,0x400")
    (512, 1024)
    """
    hexadecimal = "0x" in text.lower()
    parts = (text if hexadecimal else text.lower().replace("x", ",")).split(",")
    if not text.strip():
        return ()
    if not all(_INTEGER.fullmatch(part.strip()) for part in parts):
        raise argparse.ArgumentTypeError(f"{shortened(repr(text))}; must be integers such as 512,1024")
    return tuple([integer(part) for part in parts])


def standard_bytes(count: int) -> bytes:
    """Return the next `count` bytes of standard input, or fewer at its end.

    Raises:
        FileFormatError: standard input is closed or can't be read.
    """
    if sys.stdin is None:
        raise FileFormatError("standard input is closed")
    try:
        buffer = getattr(sys.stdin, "buffer", None)
        data: bytes = sys.stdin.read(count).encode() if buffer is None else buffer.read(count)
    except (OSError, ValueError) as error:
        raise FileFormatError(f"standard input can't be read: {error}") from None
    return data


def standard_input() -> bytes:
    """Read all of standard input, which is text or a tensor map.

    Raises:
        FileFormatError: standard input is closed, can't be read, or has more than `MAX_TEXT` bytes.
    """
    data = standard_bytes(MAX_TEXT + 1)
    if len(data) > MAX_TEXT:
        raise FileFormatError(f"standard input has more than {MAX_TEXT} bytes, the maximum for a text")
    return data


def standard_text() -> str:
    """Read all of standard input as text.

    Raises:
        FileFormatError: standard input is not UTF-8, or is too long.
    """
    try:
        return standard_input().decode()
    except UnicodeDecodeError:
        raise FileFormatError("standard input is not text (it is not UTF-8)") from None


def text_of(argument: str) -> str:
    """Return the argument, or for `-` the text on standard input.

    Raises:
        FileFormatError: standard input is closed, or is not text.
    """
    return standard_text().strip() if argument == STANDARD_INPUT else argument


def only_one(*arguments: str | None) -> None:
    """Refuse more than one `-` among the arguments, because standard input can be read only once.

    Raises:
        InvalidValueError: more than one argument is `-`.

    >>> only_one("-", "a", None)
    """
    count = arguments.count(STANDARD_INPUT)
    if count > 1:
        raise InvalidValueError(f"{count} arguments are -, but standard input can be read only once")


@contextmanager
def file_of(argument: str) -> Iterator[str]:
    """The name of the file to read: the argument itself, or for `-` a temporary copy of standard input, with the suffix
    of its type.

    Raises:
        FileFormatError: standard input is closed or empty; errors about its contents name standard input, not the copy.
    """
    if argument != STANDARD_INPUT:
        yield argument
        return
    import tempfile  # most commands read no file from standard input

    with tempfile.TemporaryDirectory() as folder:
        name = _copied(folder)
        try:
            yield name
        except FileFormatError as error:
            headline = error.headline.replace(name, "standard input")
            raise FileFormatError(headline, error.facts, error.hint) from None


def _copied(folder: str) -> str:
    """Copy standard input to a file in a folder, and return the name of the file.

    If the input begins with neither a magic number nor the length of a .safetensors header, it is not a file of
    tensors. Then only its beginning is copied, which is enough for the error message.
    """
    head = standard_bytes(HEAD_BYTES)
    if not head:
        raise FileFormatError("standard input is empty")
    suffix = next((suffix for magic, suffix in MAGIC if head.startswith(magic)), ".safetensors")
    name = os.path.join(folder, f"input{suffix}")
    whole = suffix != ".safetensors" or int.from_bytes(head[:8], "little") <= MAX_SAFETENSORS_HEADER
    with open(name, "wb") as file:
        file.write(head)
        while whole and (piece := standard_bytes(HEAD_BYTES)):
            file.write(piece)
    return name
