"""Types of command-line arguments, and standard input as text or bytes; what is wrong with them is told in one line."""

from __future__ import annotations

import argparse
import sys

from cute_py.errors import FileFormatError, shortened


def integer(text: str) -> int:
    """A number, decimal or 0x, 0o, 0b.

    >>> integer("0x10")
    16
    """
    return int(text, 0)


def driver_version(text: str) -> int:
    """A version as cuDriverGetVersion gives it: 1000 x major + 10 x minor, from CUDA 12.0, the first with tensor maps.

    Raises:
        argparse.ArgumentTypeError: something else.

    >>> driver_version("13010")
    13010
    """
    try:
        version = int(text)
    except ValueError:
        version = -1
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
    try:
        return tuple(int(part, 0) for part in parts) if text.strip() else ()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{shortened(repr(text))}; must be integers such as 512,1024") from None


def standard_input() -> bytes:
    """All of standard input.

    Raises:
        FileFormatError: it is closed or can't be read.
    """
    if sys.stdin is None:
        raise FileFormatError("standard input is closed")
    try:
        buffer = getattr(sys.stdin, "buffer", None)
        data: bytes = sys.stdin.read().encode() if buffer is None else buffer.read()
    except (OSError, ValueError) as error:
        raise FileFormatError(f"standard input can't be read: {error}") from None
    return data


def standard_text() -> str:
    """All of standard input as text.

    Raises:
        FileFormatError: it is no UTF-8.
    """
    try:
        return standard_input().decode()
    except UnicodeDecodeError:
        raise FileFormatError("standard input holds no text (it is not UTF-8)") from None
