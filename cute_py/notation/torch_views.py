"""Parse chains of reshapes and permutations of a contiguous tensor, as PyTorch, NumPy and Triton write them.

    scale.reshape(1, 4, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(128, 16)

The layout of a chain maps a coordinate of its result to the index of the element in the memory of the tensor that the
chain begins with. A `reshape` or `contiguous` that copies does not change this map. A size may be an expression of
names, such as `M // 128`, or -1: then the layout is that of example values, which the result states.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import lcm, prod
from typing import Final

from cute_py.errors import unless_refused
from cute_py.layout.layout import Layout
from cute_py.notation.expressions import checked_symbols, read_expression

_BLANKS: Final = r"\s{0,99}"
_NAME: Final = r"(?!(?:torch|np|numpy|jnp|tl|ml_dtypes)\.)[A-Za-z_][\w.]{0,60}(?:\[-?[0-9]{1,2}\])?"
_TERM: Final = rf"(?:[0-9]{{1,9}}|{_NAME})"
_SIZE: Final = rf"-?{_TERM}(?:\s{{0,9}}(?://|[-+*])\s{{0,9}}{_TERM}){{0,3}}"
_LIST: Final = rf"((?:{_SIZE}{_BLANKS},{_BLANKS}){{0,11}}(?:{_SIZE})?)"
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
_PRIMES: Final = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43)
"""Example values. More than one of them occurs in a product of sizes only if both names do."""
MOST_VIEWS: Final = 12
"""Maximum number of chains of a text."""
MOST_NAMES: Final = 8
"""Maximum number of names in the sizes of a text."""
Mode = list[tuple[int, int]]
"""The (size, stride) of the parts of a mode, outermost first."""


@dataclass(frozen=True, slots=True)
class PermutedView:
    """A chain of a text.

    begin, end: its position. first: the sizes of the first reshape of the tensor. layout: of the result. rest: the text
    of a step after the chain that was not read, or ''. copied: whether a `view` needs a copy, which PyTorch refuses.
    examples: the values of the names in its sizes, and of a -1 in its first sizes.
    """

    begin: int
    end: int
    first: tuple[int, ...]
    layout: Layout
    rest: str = ""
    copied: bool = False
    examples: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True)
class _Tensor:
    """A tensor between two steps. moved: whether a step permuted modes. strided: whether its memory is not in the order
    of its modes. copied, examples: see `PermutedView`."""

    modes: list[Mode]
    first: tuple[int, ...]
    moved: bool = False
    strided: bool = False
    copied: bool = False
    examples: tuple[tuple[str, int], ...] = ()


def permuted_views(text: str) -> list[PermutedView]:
    """Parse the chains in `text` that permute modes. A chain of a variable that an earlier chain defines continues that
    chain. A chain ends before a reshape that divides a mode into parts that are not whole.

    >>> permuted_views("s.reshape(1, 4, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(128, 16)")[0].layout
    Layout(((32, 4), (4, 4)), ((16, 4), (1, 512)))
    """
    known: dict[str, _Tensor] = {}
    found: list[PermutedView] = []
    sizes = _Sizes(text)
    at = 0
    while len(found) < MOST_VIEWS and (head := _BEGIN.search(text, at)):
        at = head.end()
        tensor, at = _chain(text, at, known.get(head["name"]), sizes)
        if head["target"]:
            known.pop(head["target"], None)
        if tensor is None:
            continue
        rest = _REST.match(text, at)
        if head["target"] and rest is None:
            known[head["target"]] = tensor
        if tensor.moved:
            shown = rest[0].strip() if rest else ""
            facts = tensor.first, _layout(tensor.modes), shown, tensor.copied, tensor.examples
            found.append(PermutedView(head.start("name"), at, *facts))
    return found


class _Sizes:
    """Values of the sizes in a text. A name gets a prime that divides no number of the text, times the numbers that
    divide the name; so a reshape has whole parts only if it has them for every value."""

    def __init__(self, text: str) -> None:
        lists = [step[2] for step in islice(_STEP.finditer(text), MOST_VIEWS * MOST_STEPS) if step[2]]
        names = list(dict.fromkeys(name for one in lists for name in re.findall(_NAME, one)))[:MOST_NAMES]
        numbers = {int(n) for one in lists for n in re.findall(r"(?<![\w.])[0-9]{1,9}", one)} - {0}
        primes = [p for p in _PRIMES if all(n % p for n in numbers)]
        self.rest = primes.pop(0) if primes else 0
        self.values = dict(zip(names, primes, strict=False))
        for name in self.values:
            divided = rf"(?<![\w.]){re.escape(name)}\s{{0,9}}//\s{{0,9}}([1-9][0-9]{{0,8}})\b"
            self.values[name] *= lcm(*(int(n) for one in lists for n in re.findall(divided, one)))

    def read(self, text: str, first: bool) -> tuple[list[int], list[tuple[str, int]]] | None:
        """The sizes of a list, and the (name, value) of each name in it; None if a size has no value. first: whether a
        size of -1 is an example too, because the number of elements is unknown."""
        found, used = [], []
        for part in (part.strip() for part in text.split(",") if part.strip()):
            names = list(dict.fromkeys(re.findall(_NAME, part)))
            if any(name not in self.values for name in names):
                return None
            used += [(name, self.values[name]) for name in names]
            for number, name in enumerate(names):
                part = re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w.\[])", f"n{number}", part)
            values = checked_symbols({f"n{i}": self.values[name] for i, name in enumerate(names)})
            value = unless_refused(read_expression, part, values)
            if first and value == -1 and self.rest:
                value = self.rest
                used.append(("-1", value))
            if not isinstance(value, int):
                return None
            found.append(value)
        return found, used


def _chain(text: str, at: int, begin: _Tensor | None, sizes: _Sizes) -> tuple[_Tensor | None, int]:
    """Read the steps from `at` on. begin: the tensor of a variable, or None for a contiguous one. The result is the
    tensor and the end of the last step that was read; None for the tensor if a step before the first permutation does
    not fit."""
    tensor = None if begin is None else replace(begin)
    for _ in range(MOST_STEPS):
        step = _STEP.match(text, at)
        if step is None:
            break
        name = step[1] or step[3] or step[4]
        read = sizes.read(step[2] or "", first=tensor is None)
        if read is None:
            return None, step.end()
        numbers, used = read
        if used and (name not in ("view", "reshape") or len(numbers) == 1):  # `.view(dtype)`
            return None, step.end()
        if tensor is None:
            if name not in ("view", "reshape") or not numbers or min(numbers) < 1:
                return None, step.end()
            tensor = _Tensor(_contiguous(numbers), tuple(numbers), examples=tuple(dict.fromkeys(used)))
        else:
            tensor.examples = tuple(dict.fromkeys((*tensor.examples, *used)))
            modes = _stepped(tensor.modes, name, numbers)
            if modes is None:
                return (tensor, at) if tensor.moved else (None, step.end())
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
