"""The record beside what the package says now."""

from __future__ import annotations

import difflib
from pathlib import Path

from tests.characterisation.said import TEXTS, as_text, refusals, texts_of, wrong_calls

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
    return _differing(name, TEXTS[name](), blocks((RECORDED / f"{name}.txt").read_text(encoding="utf-8")))


def differing_refusals(most: int, every: int = 1) -> list[str]:
    """The same for the first so many calls of each name alone, or of each `every`th name."""
    tasks = wrong_calls(most, every)
    texts = {_encoded(text).partition("\n")[0] for text in texts_of(tasks)}
    recorded = blocks((RECORDED / "refusals.txt").read_text(encoding="utf-8"))
    return _differing("refusals", refusals(tasks), {text: said for text, said in recorded.items() if text in texts})


def _encoded(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _differing(name: str, said_now: dict[str, str], recorded: dict[str, str]) -> list[str]:
    written = _encoded(as_text(said_now))
    now = {entry: said for entry, said in blocks(written).items() if entry in recorded}
    before, after = (as_text(one).splitlines() for one in (recorded, now))
    return list(difflib.unified_diff(before, after, f"{name}, recorded", "now", lineterm="", n=2))
