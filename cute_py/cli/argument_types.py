"""Types of command-line arguments, and standard input as text or bytes, each checked."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Final

from cute_py.argument_checks import check_magnitude
from cute_py.errors import FileFormatError, InvalidValueError, given, shortened

MAX_TEXT: Final = 1 << 20
"""Bytes of a text on standard input or in a file: a layout, a map, a request."""
_INTEGER: Final = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F]{1,5000}|0[oO][0-7]{1,5000}|0[bB][01]{1,5000}|[1-9][0-9]{0,4000}|0+)"
)


def integer(text: str) -> int:
    """A number, decimal or 0x, 0o, 0b, in ASCII digits.

    Raises:
        argparse.ArgumentTypeError: something else, or a number that no size or address comes near.

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
    """A version as cuDriverGetVersion gives it: 1000 x major + 10 x minor, from CUDA 12.0, the first with tensor maps.

    Raises:
        argparse.ArgumentTypeError: something else.

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
    """Numbers joined by commas or x.

    Raises:
        argparse.ArgumentTypeError: something else.

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
    """The next `count` bytes of standard input; fewer at its end.

    Raises:
        FileFormatError: it is closed or can't be read.
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
    """All of standard input, where it is a text or a tensor map.

    Raises:
        FileFormatError: it is closed, can't be read, or has more than `MAX_TEXT` bytes.
    """
    data = standard_bytes(MAX_TEXT + 1)
    if len(data) > MAX_TEXT:
        raise FileFormatError(f"standard input has more than {MAX_TEXT} bytes; no text of a command is so long")
    return data


def standard_text() -> str:
    """All of standard input as text.

    Raises:
        FileFormatError: it is no UTF-8, or too long.
    """
    try:
        return standard_input().decode()
    except UnicodeDecodeError:
        raise FileFormatError("standard input holds no text (it is not UTF-8)") from None
