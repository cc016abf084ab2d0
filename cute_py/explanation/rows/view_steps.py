"""Spell the view operations of PyTorch, NumPy and einops as reshapes and permutations, which `permuted_views` reads.

    x.view(2, 3, 4).movedim(0, -1)                  x.view(2, 3, 4).permute(1, 2, 0)
    x.view(128, 64).unflatten(1, (4, 16))           x.view(128, 64).reshape(128, 4, 16)
    rearrange(x, "b (h d) n -> b h n d", h=8)       x.reshape(b, 8, d, n).permute(0, 1, 3, 2)

An operation whose tensor has unknown sizes stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from cute_py.explanation.readings import some
from cute_py.notation.argument_lists import matching_bracket, split_operands

MOST_STEPS: Final = 64
"""Maximum number of operations of a text that are read."""
_FUNCTION: Final = re.compile(r"\b(?:torch|np|numpy|jnp)\.(?P<name>movedim|moveaxis|swapdims|unflatten|flatten)\(")
_REARRANGE: Final = re.compile(r"\b(?:einops\.)?rearrange\(")
_PATTERN: Final = re.compile(r"[\"'](?P<left>[\w(). ]{1,120})->(?P<right>[\w(). ]{1,120})[\"']")
_AXIS: Final = re.compile(r"\((?P<group>[\w ]*)\)|(?P<name>\w+)")
ELLIPSIS: Final = "modes_of_the_ellipsis"
"""The axis that stands for all modes of `...` in a pattern of einops."""
_STEP: Final = re.compile(
    r"(?:(?P<variable>\b[A-Za-z_]\w{0,60}+)|(?<=\)|T))\s{0,99}+\.\s?"
    r"(?:(?P<name>\w{1,30})(?P<call>\()|(?P<plain>m?T)\b)"
)
_TARGET: Final = re.compile(r"(?P<target>[A-Za-z_]\w{0,60})\s{0,9}=\s{0,9}\Z")
_KEPT: Final = ("contiguous", "clone")
Sizes = list[str]


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
    """Spell the view operations of a text as reshapes and permutations.

    >>> spelled_views("x.view(2, 3, 4).movedim(0, -1)").text
    'x.view(2, 3, 4).permute(1, 2, 0)'
    >>> spelled_views("rearrange(x, 'b (h d) n -> b h n d', h=8)").text
    'x.reshape(b, 8, d, n).permute(0, 1, 3, 2)'
    """
    spelled = SpelledViews(text, tuple(range(len(text))), tuple(range(1, len(text) + 1)))
    for pattern, spell in ((_REARRANGE, _rearranged), (_FUNCTION, _method)):
        at = 0
        for _ in range(MOST_STEPS):
            found = pattern.search(spelled.text, at)
            if found is None:
                break
            end = _closed(spelled.text, found.end())
            by = spell(found, split_operands(spelled.text[found.end() : end - 1])) if end else None
            spelled = spelled if by is None else spelled.replaced(found.start(), end, by)
            at = found.end() if by is None else found.start() + len(by)
    return _sized(spelled)


def _closed(text: str, begin: int) -> int:
    """The end of the argument list that starts at a position; 0 if nothing closes it."""
    end = matching_bracket(text, begin)
    return end + 1 if text[end : end + 1] == ")" else 0


def _method(found: re.Match[str], operands: Sequence[str]) -> str:
    """A function of a tensor as its method."""
    return f"{operands[0]}.{found['name']}({', '.join(operands[1:])})"


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


def _sized(spelled: SpelledViews) -> SpelledViews:
    """Spell the operations that need the sizes of their tensor, which the steps before them give."""
    known: dict[str, Sizes | None] = {}
    sizes: Sizes | None = None
    target, at, last = "", 0, -1
    for _ in range(MOST_STEPS):
        step = _STEP.search(spelled.text, at)
        if step is None:
            break
        if step["variable"] or step.start() != last:  # another tensor
            sizes = known.get(step["variable"] or "")
            assigned = _TARGET.search(spelled.text[max(0, step.start() - 80) : step.start()])
            target = assigned["target"] if assigned else ""
        end = _closed(spelled.text, step.end()) if step["call"] else step.end()
        if not end:
            break
        operands = [part for part in split_operands(spelled.text[step.end() : end - 1]) if part] if step["call"] else []
        sizes, by = _stepped(step["name"] or step["plain"], operands, sizes)
        if by is not None:
            begin = step.start("name")
            spelled = spelled.replaced(begin, end, by)
            end = begin + len(by)
        at = last = end
        if target:
            known[target] = sizes
    return spelled


def _stepped(name: str, operands: Sequence[str], sizes: Sizes | None) -> tuple[Sizes | None, str | None]:
    """The sizes after a step, and another spelling of the step if it needs one."""
    whole = operands[0][1:-1] if len(operands) == 1 and operands[0][:1] in ("(", "[") else ", ".join(operands)
    if name in ("view", "reshape"):
        return [part for part in split_operands(whole) if part], None
    if name == "swapdims":
        return _moved(_swapped(operands, sizes), sizes), f"swapaxes({', '.join(operands)})"
    if sizes is None or name in _KEPT:
        return sizes, None
    order: list[int] | None = None
    if name in ("permute", "movedim", "moveaxis"):
        order = _places(split_operands(whole), len(sizes)) if name == "permute" else _move_order(operands, len(sizes))
        spelled = None if name == "permute" or order is None else f"permute({', '.join(map(str, order))})"
        return _moved(order, sizes), spelled
    if name in ("transpose", "swapaxes") and len(operands) == 2:
        return _moved(_swapped(operands, sizes), sizes), None
    if name in ("T", "t", "mT"):
        return (sizes[::-1] if name != "mT" else [*sizes[:-2], *sizes[-2:][::-1]]), None
    if name in ("unflatten", "flatten") and operands:
        made = _unflattened(operands, sizes) if name == "unflatten" else _flattened(operands, sizes)
        return made, None if made is None else f"reshape({', '.join(made)})"
    return (["-1"] if name in ("flatten", "ravel") else None), None


def _places(operands: Sequence[str], rank: int) -> list[int] | None:
    """Indices of modes; None if one of them is not a number, or the tensor does not have that mode."""
    numbers = [int(one) for one in operands if re.fullmatch(r"-?[0-9]{1,3}", one)]
    fit = len(numbers) == len(operands) and all(-rank <= n < rank for n in numbers)
    return [n % rank for n in numbers] if fit else None


def _moved(order: Sequence[int] | None, sizes: Sizes | None) -> Sizes | None:
    return None if order is None or sizes is None else [sizes[i] for i in order]


def _swapped(operands: Sequence[str], sizes: Sizes | None) -> list[int] | None:
    """The order of modes after two of them are exchanged."""
    places = None if sizes is None else _places(operands, len(sizes))
    if places is None or sizes is None or len(places) != 2:
        return None
    one, other = places
    return [{one: other, other: one}.get(i, i) for i in range(len(sizes))]


def _move_order(operands: Sequence[str], rank: int) -> list[int] | None:
    """The order of modes after movedim(source, destination)."""
    if len(operands) != 2:
        return None
    moves = [_places(split_operands(one.strip("()[] ")), rank) for one in operands]
    sources, goals = moves
    if sources is None or goals is None or len(sources) != len(goals) or len(set(sources)) != len(set(goals)):
        return None
    order = [i for i in range(rank) if i not in sources]
    for goal, source in sorted(zip(goals, sources, strict=True)):
        order.insert(goal, source)
    return order


def _unflattened(operands: Sequence[str], sizes: Sizes) -> Sizes | None:
    """The sizes after unflatten(mode, sizes)."""
    place = _places(operands[:1], len(sizes))
    if place is None or len(operands) != 2:
        return None
    parts = [part for part in split_operands(operands[1].strip("()[] ")) if part]
    made = [*sizes[: place[0]], *parts, *sizes[place[0] + 1 :]]
    return made if made.count("-1") < 2 else None


def _flattened(operands: Sequence[str], sizes: Sizes) -> Sizes | None:
    """The sizes after flatten(first, last)."""
    places = _places([*operands, "-1"][:2], len(sizes))
    if places is None or places[0] > places[1]:
        return None
    first, last = places
    merged = sizes[first : last + 1]
    made = [*sizes[:first], "-1" if "-1" in merged else " * ".join(merged), *sizes[last + 1 :]]
    return made if made.count("-1") < 2 else None
