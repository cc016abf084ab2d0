"""Parse chains of reshapes and permutations of a contiguous tensor, as PyTorch, NumPy and Triton write them.

    scale.reshape(1, 4, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(128, 16)

The layout of a chain maps a coordinate of its result to the index of the element in the memory of the tensor that the
chain begins with. A `reshape` or `contiguous` that copies does not change this map.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from cute_py.layout.layout import Layout

_NUMBERS: Final = r"[\[(]?\s?((?:-?[0-9]{1,9}\s?,\s?){0,11}(?:-?[0-9]{1,9})?)\s?,?\s?[\])]?"
_STEP: Final = re.compile(
    rf"\s{{0,9}}\.\s?(?:(view|reshape|permute|trans|transpose|swapaxes)\({_NUMBERS}\)"
    r"|(contiguous|clone|t)\(\)|(T|mT)\b(?!\())"
)
_BEGIN: Final = re.compile(r"\b[A-Za-z_]\w{0,60}(?=\s{0,9}\.\s?(?:view|reshape)\()")
_KEPT: Final = ("view", "reshape", "contiguous", "clone")
"""Steps that keep the order of the elements."""
MOST_STEPS: Final = 12
"""Maximum number of steps of a chain."""
Mode = list[tuple[int, int]]
"""The (size, stride) of the parts of a mode, outermost first."""


@dataclass(frozen=True, slots=True)
class PermutedView:
    """A chain: its position in the text, the sizes of the first reshape, and the layout of the result."""

    begin: int
    end: int
    first: tuple[int, ...]
    layout: Layout


def permuted_view(text: str, begin: int = 0) -> PermutedView | None:
    """Parse the first chain in `text` from `begin` on whose sizes are numbers and that permutes modes; None if there is
    none, or if a reshape divides a mode into parts that are not whole.

    >>> permuted_view("s.reshape(1, 4, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(128, 16)").layout
    Layout(((32, 4), (4, 4)), ((16, 4), (1, 512)))
    """
    for head in _BEGIN.finditer(text, begin):
        modes: list[Mode] | None = None
        first: tuple[int, ...] = ()
        at, moved = head.end(), False
        for _ in range(MOST_STEPS):
            step = _STEP.match(text, at)
            if step is None:
                break
            numbers = [int(n) for n in (step[2] or "").split(",") if n.strip()]
            if modes is None:
                first = tuple(numbers)
                modes = _contiguous(first) if first and min(first) > 0 else None
            else:
                name = step[1] or step[3] or step[4]
                modes, moved = _stepped(modes, name, numbers), moved or name not in _KEPT
            if modes is None:
                break
            at = step.end()
        if modes is not None and moved:
            return PermutedView(head.start(), at, first, _layout(modes))
    return None


def _contiguous(sizes: Sequence[int]) -> list[Mode]:
    return [[(n, prod(sizes[i + 1 :]))] if n > 1 else [] for i, n in enumerate(sizes)]


def _stepped(modes: list[Mode], name: str, numbers: list[int]) -> list[Mode] | None:
    """The modes after one step; None if the step does not fit."""
    rank = len(modes)
    if name in ("contiguous", "clone"):
        return modes
    if name == "t":
        return modes[::-1] if rank <= 2 else None
    if name in ("view", "reshape"):
        return _reshaped(modes, numbers)
    if name in ("T", "mT"):
        return modes[::-1] if name == "T" else [*modes[:-2], *modes[-2:][::-1]]
    places = [n % rank if -rank <= n < rank else rank for n in numbers]
    if name in ("transpose", "swapaxes") and len(places) == 2 and max(places) < rank:
        order = list(range(rank))
        order[places[0]], order[places[1]] = places[1], places[0]
        places = order
    return [modes[i] for i in places] if sorted(places) == list(range(rank)) else None


def _reshaped(modes: list[Mode], sizes: list[int]) -> list[Mode] | None:
    """Divide the elements into modes of these sizes; one size may be -1."""
    parts = [part for mode in modes for part in mode]
    total = prod(n for n, _ in parts)
    known = prod(n for n in sizes if n != -1)
    if sizes.count(-1) == 1 and known > 0 and total % known == 0:
        sizes = [total // known if n == -1 else n for n in sizes]
    if not sizes or min(sizes) < 1 or prod(sizes) != total:
        return None
    found: list[Mode] = []
    for size in reversed(sizes):
        mode: Mode = []
        while size > 1:
            have, stride = parts.pop()
            if have > size and have % size == 0:
                parts.append((have // size, stride * size))
                have = size
            if size % have:
                return None
            mode.insert(0, (have, stride))
            size //= have
        found.insert(0, mode)
    return found


def _layout(modes: list[Mode]) -> Layout:
    """The layout of modes. The parts of a mode are innermost first, as in CuTe, and joined if they are contiguous."""
    shapes: list[int | tuple[int, ...]] = []
    strides: list[int | tuple[int, ...]] = []
    for mode in modes:
        joined: Mode = []
        for size, stride in reversed(mode):
            if joined and stride == joined[-1][0] * joined[-1][1]:
                joined[-1] = (joined[-1][0] * size, joined[-1][1])
            else:
                joined.append((size, stride))
        own = joined or [(1, 0)]
        shapes.append(tuple([n for n, _ in own]) if len(own) > 1 else own[0][0])
        strides.append(tuple([d for _, d in own]) if len(own) > 1 else own[0][1])
    return Layout(tuple(shapes), tuple(strides))
