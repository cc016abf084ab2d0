"""Spell `rearrange` of einops as a chain of reshapes and permutations, which `permuted_views` reads.

rearrange(x, "b (h d) n -> b h n d", h=8)       x.reshape(b, 8, d, n).permute(0, 1, 3, 2)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from cute_py.explanation.readings import some
from cute_py.notation.argument_lists import matching_bracket, split_operands

MOST_STEPS: Final = 64
"""Maximum number of operations of a text that are read."""
_REARRANGE: Final = re.compile(r"\b(?:einops\.)?rearrange\(")
_PATTERN: Final = re.compile(r"[\"'](?P<left>[\w(). ]{1,120})->(?P<right>[\w(). ]{1,120})[\"']")
_AXIS: Final = re.compile(r"\((?P<group>[\w ]*)\)|(?P<name>\w+)")
ELLIPSIS: Final = "modes_of_the_ellipsis"
"""The axis that stands for all modes of `...` in a pattern of einops."""


class SpelledViews(NamedTuple):
    """A text with other spellings of its view operations. begins, ends: for each character of `text`, the position in
    the original text where the part with this character begins and ends."""

    text: str
    begins: tuple[int, ...]
    ends: tuple[int, ...]

    def span(self, begin: int, end: int) -> tuple[int, int]:
        """The part of the original text for a part of this one."""
        return self.begins[begin], self.ends[end - 1]

    def replaced(self, begin: int, end: int, by: str) -> SpelledViews:
        """The text with another spelling of a part."""
        first, last = self.span(begin, end)
        return SpelledViews(
            self.text[:begin] + by + self.text[end:],
            (*self.begins[:begin], *[first] * len(by), *self.begins[end:]),
            (*self.ends[:begin], *[last] * len(by), *self.ends[end:]),
        )


def spelled_views(text: str) -> SpelledViews:
    """Spell each `rearrange` of a text as a chain of reshapes and permutations.

    >>> spelled_views("rearrange(x, 'b (h d) n -> b h n d', h=8)").text
    'x.reshape(b, 8, d, n).permute(0, 1, 3, 2)'
    """
    spelled = SpelledViews(text, tuple(range(len(text))), tuple(range(1, len(text) + 1)))
    at = 0
    for _ in range(MOST_STEPS):
        found = _REARRANGE.search(spelled.text, at)
        if found is None:
            break
        end = _closed(spelled.text, found.end())
        by = _rearranged(found, split_operands(spelled.text[found.end() : end - 1])) if end else None
        spelled = spelled if by is None else spelled.replaced(found.start(), end, by)
        at = found.end() if by is None else found.start() + len(by)
    return spelled


def _closed(text: str, begin: int) -> int:
    """The end of the argument list that starts at a position; 0 if nothing closes it."""
    end = matching_bracket(text, begin)
    return end + 1 if text[end : end + 1] == ")" else 0


def _rearranged(found: re.Match[str], operands: Sequence[str]) -> str | None:
    """einops.rearrange as a reshape into the axes of its pattern, a permutation, and a reshape into the groups of the
    result. The modes of `...` are one axis. None for another pattern."""
    pattern = _PATTERN.fullmatch(operands[1]) if len(operands) > 1 else None
    if pattern is None or not operands[0].isidentifier():
        return None
    sizes = dict(re.split(r"\s?=\s?", one, maxsplit=1) for one in operands[2:] if "=" in one)
    left, right = (_groups(pattern[side].replace("...", f" {ELLIPSIS} ")) for side in ("left", "right"))
    before = [axis for group in left for axis in group if axis != "1"]
    after = [axis for group in right for axis in group if axis != "1"]
    if sorted(before) != sorted(after) or len(set(before)) != len(before):
        return None
    defined = {axis for axis in before if re.search(rf"(?<![\w.]){axis}\s{{0,9}}=(?!=)", found.string)}
    spelled = {axis: sizes.get(axis, f"{axis}_size" if axis in defined else axis) for axis in before}
    result = [" * ".join(spelled.get(axis, "1") for axis in group) or "1" for group in right]
    first = ", ".join(spelled[axis] for axis in before)
    order = ", ".join(str(before.index(axis)) for axis in after)
    chain = f"{operands[0]}.reshape({first}).permute({order})"
    return chain if result == [spelled[axis] for axis in after] else f"{chain}.reshape({', '.join(result)})"


def _groups(side: str) -> list[list[str]]:
    """The axes of one side of a pattern, by the modes of its tensor."""
    return [one["group"].split() if one["name"] is None else [one["name"]] for one in some(_AXIS.finditer(side))]
