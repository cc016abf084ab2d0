"""How words are put: the first sentence of a docstring, values on one line, lists of names with what they are."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

LONGEST = 160
"""Characters of a value that are shown."""
WIDTH = 110
"""Characters of a line of words."""
MOST = 24
"""Entries of a table that are shown."""


def is_ours(kind: type) -> bool:
    """A class of this library."""
    return (kind.__module__ or "").split(".")[0] == "cute_py"


def first_sentence(thing: Any) -> str:
    """Of the docstring, on one line.

    >>> first_sentence(first_sentence)
    'Of the docstring, on one line.'
    """
    doc = inspect.getdoc(thing) or ""
    line = " ".join(doc.split("\n\n")[0].split())
    end = line.find(". ")
    return line if end < 0 else line[: end + 1]


def one_line(value: Any) -> str:
    """A value on one line; sequences entry by entry."""
    if isinstance(value, dict):
        return ", ".join(f"{k}: {v}" for k, v in list(value.items())[:MOST])
    if isinstance(value, (tuple, list, frozenset, set)) and not hasattr(value, "_fields"):
        return ", ".join(" ".join(str(v).split()) for v in list(value)[:MOST]) or "none"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"an array of {value.dtype}, {tuple(value.shape)}"
    return " ".join(str(value).split())


def shortened(text: str) -> str:
    """At most LONGEST characters.

    >>> len(shortened("x" * 1000))
    160
    """
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def listed(title: str, rows: list[tuple[str, str]]) -> str:
    """A title, and `name : text` lines below it; nothing where there are no rows."""
    if not rows:
        return ""
    width = max(len(name) for name, _ in rows)
    return "\n".join([title, *(f"  {name:<{width}} : {text}".rstrip(" :") for name, text in rows)])


def filled(label: str, text: str) -> str:
    """A label and words behind it, in lines of at most WIDTH characters, the later ones below the first's words.

    >>> print(filled("  why : ", "word " * 24))
      why : word word word word word word word word word word word word word word word word word word word word
            word word word word
    """
    return textwrap.fill(text, WIDTH, initial_indent=label, subsequent_indent=" " * len(label), break_long_words=False)
