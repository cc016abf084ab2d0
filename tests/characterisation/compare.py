"""The record beside what the package says now."""

from __future__ import annotations

import difflib
from pathlib import Path

from tests.characterisation.said import TEXTS, as_text

RECORDED = Path(__file__).parent / "recorded"


def blocks(text: str) -> dict[str, str]:
    """The entries of a file.

    >>> blocks("== a\\none\\n\\n== b\\ntwo\\n\\n")
    {'a': 'one', 'b': 'two'}
    """
    found = {}
    for block in ("\n" + text).split("\n== ")[1:]:
        name, _, said = block.partition("\n")
        found[name] = said.rstrip("\n")
    return found


def differing(name: str) -> list[str]:
    """Lines of a unified diff, for the entries that were recorded."""
    recorded = blocks((RECORDED / f"{name}.txt").read_text(encoding="utf-8"))
    written = as_text(TEXTS[name]()).encode("utf-8", "backslashreplace").decode()
    now = {entry: said for entry, said in blocks(written).items() if entry in recorded}
    before, after = (as_text(one).splitlines() for one in (recorded, now))
    return list(difflib.unified_diff(before, after, f"{name}, recorded", "now", lineterm="", n=2))
