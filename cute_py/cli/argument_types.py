"""Types of command-line arguments; their names stand in the text of a refused argument."""

from __future__ import annotations


def integer(text: str) -> int:
    """A number, decimal or 0x, 0o, 0b.

    >>> integer("0x10")
    16
    """
    return int(text, 0)
