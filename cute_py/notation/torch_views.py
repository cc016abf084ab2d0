"""Parse chains of reshapes and permutations of a contiguous tensor, as PyTorch, NumPy and Triton write them.

    scale.reshape(1, 4, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(128, 16)

The layout of a chain maps a coordinate of its result to the index of the element in the memory of the tensor that the
chain begins with. A `reshape` or `contiguous` that copies does not change this map.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from cute_py.layout.layout import Layout

_BLANKS: Final = r"\s{0,99}"
_LIST: Final = rf"((?:-?[0-9]{{1,9}}{_BLANKS},{_BLANKS}){{0,11}}(?:-?[0-9]{{1,9}})?)"
_NUMBERS: Final = rf"{_BLANKS}[\[(]?{_BLANKS}{_LIST}{_BLANKS},?{_BLANKS}[\])]?{_BLANKS}"
_STEP: Final = re.compile(
    rf"\s{{0,99}}\.\s?(?:(view|reshape|permute|trans|transpose|swapaxes)\({_NUMBERS}\)"
    r"|(contiguous|clone|t|flatten|ravel)\(\)|(T|mT)\b(?!\())"
)
_BEGIN: Final = re.compile(
    r"(?:\b(?P<target>[A-Za-z_]\w{0,60})\s{0,9}=\s{0,9})?"
    r"(?<![\w.)\]])(?P<name>[A-Za-z_]\w{0,60})(?=\s{0,99}\.\s?(?:view|reshape|permute|trans|transpose|swapaxes)\()"
)
_REST: Final = re.compile(r"\s{0,99}(?:\.\s?(?!to\(|cuda\(|cpu\()\w{1,60}(?:\([^()\n]{0,80}\)?)?|\[[^\]\n]{0,80}\]?)")
"""Matches a step or an index after a chain that may change its result."""
_KEPT: Final = ("view", "reshape", "contiguous", "clone", "flatten", "ravel")
"""Steps that keep the order of the elements."""
MOST_STEPS: Final = 12
"""Maximum number of steps of a chain."""
MOST_VIEWS: Final = 12
"""Maximum number of chains of a text."""
Mode = list[tuple[int, int]]
"""The (size, stride) of the parts of a mode, outermost first."""


@dataclass(frozen=True, slots=True)
class PermutedView:
    """A chain of a text.

    begin, end: its position. first: the sizes of the first reshape of the tensor. layout: of the result. rest: the text
    of a step after the chain that was not read, or ''. copied: whether a `view` needs a copy, which PyTorch refuses.
    """

    begin: int
    end: int
    first: tuple[int, ...]
    layout: Layout
    rest: str = ""
    copied: bool = False


@dataclass(slots=True)
class _Tensor:
    """A tensor between two steps. moved: whether a step permuted modes. strided: whether its memory is not in the order
    of its modes. copied: see `PermutedView`."""

    modes: list[Mode]
    first: tuple[int, ...]
    moved: bool = False
    strided: bool = False
    copied: bool = False


def permuted_views(text: str) -> list[PermutedView]:
    """Parse the chains in `text` whose sizes are numbers and that permute modes. A chain of a variable that an earlier
    chain defines continues that chain. A chain is left out if a reshape divides a mode into parts that are not whole.

    >>> permuted_views("s.reshape(1, 4, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(128, 16)")[0].layout
    Layout(((32, 4), (4, 4)), ((16, 4), (1, 512)))
    """
    known: dict[str, _Tensor] = {}
    found: list[PermutedView] = []
    at = 0
    while len(found) < MOST_VIEWS and (head := _BEGIN.search(text, at)):
        at = head.end()
        tensor, at = _chain(text, at, known.get(head["name"]))
        if head["target"]:
            known.pop(head["target"], None)
        if tensor is None:
            continue
        rest = _REST.match(text, at)
        if head["target"] and rest is None:
            known[head["target"]] = tensor
        if tensor.moved:
            shown = rest[0].strip() if rest else ""
            view = PermutedView(head.start("name"), at, tensor.first, _layout(tensor.modes), shown, tensor.copied)
            found.append(view)
    return found


def _chain(text: str, at: int, begin: _Tensor | None) -> tuple[_Tensor | None, int]:
    """Read the steps from `at` on. begin: the tensor of a variable, or None for a contiguous one. The result is the
    tensor, or None if a step does not fit, and the end of the last step."""
    tensor = None if begin is None else replace(begin)
    for _ in range(MOST_STEPS):
        step = _STEP.match(text, at)
        if step is None:
            break
        name = step[1] or step[3] or step[4]
        numbers = [int(n) for n in (step[2] or "").split(",") if n.strip()]
        if tensor is None:
            if name not in ("view", "reshape") or not numbers or min(numbers) < 1:
                return None, step.end()
            tensor = _Tensor(_contiguous(numbers), tuple(numbers))
        else:
            modes = _stepped(tensor.modes, name, numbers)
            if modes is None:
                return None, step.end()
            copies = tensor.strided and any(len(mode) > 1 for mode in map(_joined, modes))
            tensor.copied |= name == "view" and copies
            tensor.strided = name not in _KEPT or (name in ("view", "reshape") and tensor.strided and not copies)
            tensor.modes, tensor.moved = modes, tensor.moved or name not in _KEPT
        at = step.end()
    return tensor, at


def _contiguous(sizes: Sequence[int]) -> list[Mode]:
    return [[(n, prod(sizes[i + 1 :]))] if n > 1 else [] for i, n in enumerate(sizes)]


def _stepped(modes: list[Mode], name: str, numbers: list[int]) -> list[Mode] | None:
    """The modes after one step; None if the step does not fit."""
    rank = len(modes)
    if name in ("contiguous", "clone"):
        return modes
    if name in ("flatten", "ravel"):
        return _reshaped(modes, [-1])
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


def _joined(mode: Mode) -> Mode:
    """The parts of a mode, innermost first; parts that continue each other are one."""
    joined: Mode = []
    for size, stride in reversed(mode):
        if joined and stride == joined[-1][0] * joined[-1][1]:
            joined[-1] = (joined[-1][0] * size, joined[-1][1])
        else:
            joined.append((size, stride))
    return joined


def _layout(modes: list[Mode]) -> Layout:
    """The layout of modes. The parts of a mode are innermost first, as in CuTe."""
    parts = [_joined(mode) or [(1, 0)] for mode in modes]
    shapes = [tuple([n for n, _ in own]) if len(own) > 1 else own[0][0] for own in parts]
    strides = [tuple([d for _, d in own]) if len(own) > 1 else own[0][1] for own in parts]
    return Layout(tuple(shapes), tuple(strides))
