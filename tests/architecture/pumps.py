"""Texts that make a regular expression work hard: pieces of the pattern, repeated, with an end that fails.

A pattern that a text can drive into more than linear work does so on such texts: a repetition that is tried again from
each place, or two repetitions that share characters.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from math import log
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

STEEPEST: Final = 1.35
"""Exponent of the time against the length that a pattern may have."""
MANY: Final = 24
"""Repetitions from here on count as unbounded."""
_REPEATS: Final = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_ALPHABET: Final = [*map(chr, range(97, 123)), *"0123456789 \n\t", *map(chr, range(33, 127)), "\xa0", "é"]
_ANYWHERE: Final = ("a", "0", " ", "\n", "(", "a ", "a\n")
"""Pieces that every pattern is given."""


def _is_in(character: str, items: Any) -> bool:
    for kind, value in items:
        if kind is codes.LITERAL and ord(character) == value:
            return True
        if kind is codes.RANGE and value[0] <= ord(character) <= value[1]:
            return True
        if kind is codes.CATEGORY and re.match(_CATEGORIES[value], character):
            return True
    return False


_CATEGORIES: Final = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}


class Sampler:
    """Writes texts that parts of a pattern match."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        self.groups: dict[int, str] = {}

    def text(self, tree: Any) -> str:
        """A text that the parts of a parsed pattern match, without repetitions beyond the fewest, or two."""
        return "".join([self.part(kind, value) for kind, value in tree])

    def part(self, kind: Any, value: Any) -> str:
        if kind is codes.LITERAL:
            return chr(value)
        if kind is codes.NOT_LITERAL:
            return "a" if value != ord("a") else "b"
        if kind is codes.ANY:
            return "a"
        if kind is codes.IN:
            return self.one_of(value)
        if kind is codes.BRANCH:
            return self.text(self.random.choice(value[1]))
        if kind in _REPEATS:
            least, most, inner = value
            count = min(max(least, self.random.randint(0, 2)), most, 40)
            return "".join([self.text(inner) for _ in range(count)])
        if kind is codes.SUBPATTERN:
            self.groups[value[0]] = made = self.text(value[3])
            return made
        if kind is codes.ATOMIC_GROUP:
            return self.text(value)
        return self.groups.get(value, "") if kind is codes.GROUPREF else ""

    def one_of(self, items: Any) -> str:
        negated = any(kind is codes.NEGATE for kind, _ in items)
        fits = [c for c in _ALPHABET if _is_in(c, items) != negated]
        return self.random.choice(fits[:12]) if fits else ""


def _inner(tree: Any, before: str, sampler: Sampler) -> Iterator[tuple[str, str]]:
    """(what a match has before a repetition, one piece of the repetition) of each repetition that may be long."""
    for kind, value in tree:
        if kind in _REPEATS:
            _, most, body = value
            if most >= MANY:
                yield before, sampler.text(body)
                yield before, sampler.text(body)
            yield from _inner(body, before, sampler)
        elif kind is codes.SUBPATTERN:
            yield from _inner(value[3], before, sampler)
        elif kind is codes.ATOMIC_GROUP:
            yield from _inner(value, before, sampler)
        elif kind is codes.BRANCH:
            for branch in value[1]:
                yield from _inner(branch, before, sampler)
        before = (before + sampler.part(kind, value))[-200:]


def pieces(pattern: str, flags: int = 0) -> list[tuple[str, str]]:
    """(beginning, piece to repeat) of the texts for a pattern."""
    tree = parser.parse(pattern, flags)
    sampler = Sampler(len(pattern))
    found = [("", piece) for piece in _ANYWHERE]
    for before, piece in _inner(tree, "", sampler):
        found += [("", piece), (before, piece), ("", before + piece), ("", before + 3 * piece), ("", piece + " ")]
        found += [("", before + piece + "\n")]
    whole = sampler.text(tree)
    found += [("", whole), ("", whole[:-1]), ("", whole + "\n"), ("", whole[: len(whole) // 2])]
    return [row for row in dict.fromkeys(found) if row[1]]


def pumped(before: str, piece: str, length: int) -> str:
    """A text of about `length` characters, whose end no pattern expects."""
    return before + piece * max(1, (length - len(before)) // len(piece)) + "\x01!"


def seconds(work: Callable[[str], object], text: str, tries: int = 1) -> float:
    """The least processor time of a few tries."""
    best = float("inf")
    for _ in range(tries):
        begun = time.thread_time()
        work(text)
        best = min(best, time.thread_time() - begun)
    return best


def steepness(work: Callable[[str], object], before: str, piece: str, length: int, floor: float) -> float:
    """The exponent of the time from `length` characters to 4 x as many; 0 where it takes less than `floor` seconds.

    A text that takes longer than 20 floors at `length` is measured from a fourth of it, so that nothing takes minutes.
    """
    if seconds(work, pumped(before, piece, length)) < floor:
        return 0.0
    least = seconds(work, pumped(before, piece, length), 2)
    if least < floor:
        return 0.0
    if least > 20 * floor:
        return log(least / max(seconds(work, pumped(before, piece, length // 4), 3), 1e-9), 4)
    return log(seconds(work, pumped(before, piece, 4 * length)) / least, 4)
