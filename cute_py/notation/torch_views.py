"""Parse chains of reshapes and permutations of a contiguous tensor, as PyTorch, NumPy and Triton write them.

    scale.reshape(1, 4, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(128, 16)
    np.transpose(scale.reshape(1, 4, 32, 4, 4), (0, 3, 2, 1, 4))
    x.view(128, 64).unflatten(1, (4, 16)).movedim(1, 0)

The layout of a chain maps a coordinate of its result to the index of the element in the memory of the tensor that the
chain begins with. A `reshape` or `contiguous` that copies does not change this map. A size may be an expression of
names, such as `M // 128`, or -1: then the layout is that of example values, which the result states.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import lcm, prod
from typing import Final

from cute_py.errors import unless_refused
from cute_py.layout.layout import Layout
from cute_py.notation.argument_lists import split_operands
from cute_py.notation.expressions import checked_symbols, read_expression

_BLANKS: Final = r"\s{0,99}"
_NAME: Final = r"(?!(?:torch|np|numpy|jnp|tl|ml_dtypes)\.)[A-Za-z_][\w.]{0,60}(?:\[-?[0-9]{1,2}\])?"
_NAMES: Final = re.compile(_NAME)
_ANY: Final = re.compile("-1")
"""The size that PyTorch computes, as a name."""
_DIVIDED: Final = re.compile(rf"(?<![\w.])({_NAME})\s{{0,9}}//\s{{0,9}}([1-9][0-9]{{0,8}})\b")
_DEFINED: Final = re.compile(rf"(?<![\w.])({_NAME})\s{{0,9}}=\s{{0,9}}([0-9]{{1,9}})(?![\w.])")
_FACTOR: Final = rf"(?:[0-9]{{1,9}}|{_NAME}(?:\s{{0,9}}//\s{{0,9}}[1-9][0-9]{{0,8}})?)"
_SIZE: Final = rf"(?:-[0-9]{{1,9}}|{_FACTOR}(?:\s{{0,9}}\*\s{{0,9}}{_FACTOR}){{0,3}})"
_LIST: Final = rf"(?:{_SIZE}{_BLANKS},{_BLANKS}){{0,11}}(?:{_SIZE}{_BLANKS})?"
_NUMBERS: Final = rf"({_BLANKS}(?:[\[(]{_BLANKS}{_LIST}[\])]{_BLANKS},?{_BLANKS}|{_LIST}))"
_MODES: Final = rf"{_BLANKS}(?:-?[0-9]{{1,3}}|[\[(]{_BLANKS}{_LIST}[\])]){_BLANKS}"
_TWO_LISTS: Final = rf"({_MODES},{_MODES})"
_OF_LIST: Final = "view|reshape|permute|transpose|trans|swapaxes|swapdims|flatten"
_OF_TWO_LISTS: Final = "movedim|moveaxis|unflatten"
_STEP: Final = re.compile(
    rf"\s{{0,99}}\.\s?(?:({_OF_LIST})\({_NUMBERS}\)|({_OF_TWO_LISTS})\({_TWO_LISTS}\)"
    r"|(contiguous|clone|t|ravel)\(\)|(T|mT)\b(?!\())"
)
_CALL: Final = rf"(?:np|numpy|jnp|torch|tl|cp|cupy)\.(?:{_OF_LIST}|{_OF_TWO_LISTS})\("
_BEGIN: Final = re.compile(
    r"(?:\b(?P<target>[A-Za-z_]\w{0,60})\s{0,9}=\s{0,9})?"
    rf"(?<![\w.)\]])(?P<head>{_CALL}|"
    rf"[A-Za-z_]\w{{0,60}}(?=\s{{0,99}}\.\s?(?:{_OF_LIST}|{_OF_TWO_LISTS})\())"
)
_FUNCTION: Final = re.compile(rf"\s{{0,99}}(?={_CALL})\w{{1,9}}\.(\w{{1,9}})\(")
_VARIABLE: Final = re.compile(r"\s{0,99}([A-Za-z_]\w{0,60})")
_ARGUMENTS: Final = re.compile(rf"\s{{0,99}}(?:,(?:{_NUMBERS}|{_TWO_LISTS}))?\)")
_REST: Final = re.compile(r"\s{0,99}(?:\.\s?(?!to\(|cuda\(|cpu\()\w{1,60}(?:\([^()\n]{0,80}\)?)?|\[[^\]\n]{0,80}\]?)")
"""Matches a step or an index after a chain that may change its result."""
_RESHAPES: Final = ("view", "reshape", "flatten", "unflatten", "ravel")
_KEPT: Final = (*_RESHAPES, "contiguous", "clone")
"""Steps that keep the order of the elements."""
MOST_STEPS: Final = 12
"""Maximum number of steps of a chain."""
_PRIMES: Final = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43)
"""Example values of sizes."""
MOST_VIEWS: Final = 12
"""Maximum number of chains of a text."""
Mode = list[tuple[int, int]]
"""The (size, stride) of the parts of a mode, outermost first."""


@dataclass(frozen=True, slots=True)
class PermutedView:
    """A chain of a text.

    begin, end: its position. first: the sizes of the first reshape of the tensor. layout: of the result. rest: the text
    of a step after the chain that was not read, or ''. keeps: whether that step is a reshape that has no layout, and so
    keeps the order of the elements. copied: whether a `view` needs a copy, which PyTorch refuses.
    examples: the values of names in its sizes that the text does not define, and of a -1 in its first sizes.
    """

    begin: int
    end: int
    first: tuple[int, ...]
    layout: Layout
    rest: str = ""
    keeps: bool = False
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
        tensor, at = _expression(text, head.start("head"), known, sizes)
        at = max(at, head.end())
        if head["target"]:
            known.pop(head["target"], None)
        if tensor is None:
            continue
        rest = _REST.match(text, at)
        if head["target"] and rest is None:
            known[head["target"]] = tensor
        if tensor.moved:
            shown = rest[0].strip() if rest else ""
            keeps = (
                (step := _STEP.match(text, at)) is not None
                and (step[1] in _RESHAPES or step[3] in _RESHAPES)
                and not (step[1] == "view" and _is_type(step[2]))
            )
            facts = tensor.first, _layout(tensor.modes), shown, keeps, tensor.copied, tensor.examples
            found.append(PermutedView(head.start("head"), at, *facts))
    return found


class _Sizes:
    """Values of the sizes in a text. A name that the text does not define gets a prime that divides no number of the
    text, times the numbers that divide the name."""

    def __init__(self, text: str) -> None:
        numbers = {int(n) for n in re.findall(r"(?<![\w.])[0-9]{1,9}(?![\w.])", text)} - {0}
        self.primes = [p for p in _PRIMES if all(n % p for n in numbers)]
        self.divisors: dict[str, int] = {}
        for name, number in _DIVIDED.findall(text):
            self.divisors[name] = lcm(self.divisors.get(name, 1), int(number))
        defined: dict[str, set[int]] = {}
        for name, number in _DEFINED.findall(text):
            defined.setdefault(name, set()).add(int(number))
        self.defined = {name: min(values) for name, values in defined.items() if len(values) == 1}
        self.examples: dict[str, int] = {}

    def value(self, name: str) -> int | None:
        """The value of a name; None if there are too many names."""
        if name in self.defined:
            return self.defined[name]
        if name not in self.examples and self.primes:
            self.examples[name] = self.primes.pop(0) * self.divisors.get(name, 1)
        return self.examples.get(name)

    def read(self, text: str, first: bool) -> tuple[list[int], list[tuple[str, int]]] | None:
        """The sizes of a list, and the (name, value) of each example in it; None if a size has no value.

        first: whether a size of -1 is an example too, because the number of elements is unknown.
        """
        sizes, used = [], []
        text = text.strip().removesuffix(",").rstrip()
        text = text[1:-1] if text[:1] in ("(", "[") else text
        for part in (part.strip() for part in text.split(",") if part.strip()):
            pattern = _ANY if first and part == "-1" else _NAMES
            symbols = {name: f"n{i}" for i, name in enumerate(dict.fromkeys(pattern.findall(part)))}
            values: dict[str, int] = {}
            for name, symbol in symbols.items():
                known = self.value(name)
                if known is None or (pattern is _ANY and ("-1", known) in used):
                    return None
                values[symbol] = known
                if name in self.examples:
                    used.append((name, known))
            size = unless_refused(
                read_expression, pattern.sub(partial(_symbol, symbols), part), checked_symbols(values)
            )
            if not isinstance(size, int):
                return None
            sizes.append(size)
        return sizes, used


def _symbol(symbols: Mapping[str, str], name: re.Match[str]) -> str:
    return symbols[name[0]]


def _expression(
    text: str, at: int, known: Mapping[str, _Tensor], sizes: _Sizes, depth: int = 0
) -> tuple[_Tensor | None, int]:
    """Read a variable or a call such as `tl.trans(x, 1, 0)`, and the steps after it; see `_chain`."""
    call = _FUNCTION.match(text, at) if depth < MOST_STEPS else None
    if call is None:
        name = _VARIABLE.match(text, at)
        return (None, at) if name is None else _chain(text, name.end(), known.get(name[1]), sizes)
    tensor, at = _expression(text, call.end(), known, sizes, depth + 1)
    arguments = _ARGUMENTS.match(text, at)
    permutes = call[1] == "transpose" and not call[0].strip().startswith(("torch", "tl"))  # as in NumPy
    method = "permute" if permutes and arguments is not None and arguments[1] else call[1]
    made = None if arguments is None else _applied(tensor, method, arguments[1] or arguments[2] or "", sizes)
    if arguments is None or made is None:
        return None, at
    return _chain(text, arguments.end(), made, sizes)


def _chain(text: str, at: int, begin: _Tensor | None, sizes: _Sizes) -> tuple[_Tensor | None, int]:
    """Read the steps from `at` on. begin: the tensor of a variable, or None for a contiguous one. The result is the
    tensor and the end of the last step that was read; None for the tensor if a step before the first permutation does
    not fit."""
    tensor = begin
    for _ in range(MOST_STEPS):
        step = _STEP.match(text, at)
        if step is None:
            break
        permutes = step[1] == "transpose" and step[2].strip()[:1] in ("(", "[")  # as in NumPy
        name = "permute" if permutes else step[1] or step[3] or step[5] or step[6]
        made = _applied(tensor, name, step[2] or step[4] or "", sizes)
        if made is None:
            return (tensor, at) if tensor is not None and tensor.moved else (None, step.end())
        tensor, at = made, step.end()
    return tensor, at


def _is_type(text: str) -> bool:
    """Whether the argument of a view may be an element type: `.view(dtype)`."""
    return _NAMES.fullmatch(text.strip()) is not None


def _applied(tensor: _Tensor | None, name: str, text: str, sizes: _Sizes) -> _Tensor | None:
    """The tensor after a step; None if the step does not fit. tensor: None for a contiguous one of unknown sizes. text:
    the sizes or modes of the step."""
    lists, used = [], []
    for part in split_operands(text) if name in _OF_TWO_LISTS.split("|") else [text]:
        read = sizes.read(part, first=tensor is None)
        if read is None:
            return None
        lists.append(read[0])
        used += read[1]
    numbers = lists[0]
    reshapes = name in _RESHAPES
    if (used and (not reshapes or name == "flatten")) or (name == "view" and _is_type(text)):
        return None
    if tensor is None:
        if name not in ("view", "reshape") or not numbers or min(numbers) < 1:
            return None
        return _Tensor(_contiguous(numbers), tuple(numbers), examples=tuple(dict.fromkeys(used)))
    modes = _stepped(tensor.modes, name, *lists)
    if modes is None:
        return None
    copies = tensor.strided and any(len(mode) > 1 for mode in map(_joined, modes))
    return replace(
        tensor,
        modes=modes,
        moved=tensor.moved or name not in _KEPT,
        strided=name not in _KEPT or (reshapes and tensor.strided and not copies),
        copied=tensor.copied or (name == "view" and copies),
        examples=tuple(dict.fromkeys((*tensor.examples, *used))),
    )


def _contiguous(sizes: Sequence[int]) -> list[Mode]:
    return [[(n, prod(sizes[i + 1 :]))] if n > 1 else [] for i, n in enumerate(sizes)]


def _stepped(modes: list[Mode], name: str, numbers: list[int], others: Sequence[int] = ()) -> list[Mode] | None:
    """The modes after one step; None if the step does not fit. others: the second list of its arguments."""
    rank = len(modes)
    if name in ("contiguous", "clone"):
        return modes
    if name in ("flatten", "unflatten", "ravel"):
        ends = numbers * 2 if name == "unflatten" else [*numbers, *[0, -1][len(numbers) :]]
        places = _places(ends, rank)
        if places is None or len(places) != 2 or places[0] > places[1]:
            return None
        made = _reshaped(modes[places[0] : places[1] + 1], list(others) or [-1])
        return None if made is None else [*modes[: places[0]], *made, *modes[places[1] + 1 :]]
    if name in ("movedim", "moveaxis"):
        return _moved(modes, _places(numbers, rank), _places(others, rank))
    if name == "t":
        return modes[::-1] if rank <= 2 else None
    if name in ("view", "reshape"):
        return _reshaped(modes, numbers)
    if name in ("transpose", "trans") and not numbers:
        return modes[::-1] if name == "transpose" or rank == 2 else None
    if name in ("T", "mT"):
        return modes[::-1] if name == "T" else [*modes[:-2], *modes[-2:][::-1]]
    places = _places(numbers, rank)
    if places is not None and name in ("transpose", "swapaxes", "swapdims") and len(places) == 2:
        order = list(range(rank))
        order[places[0]], order[places[1]] = places[1], places[0]
        places = order
    return [modes[i] for i in places] if places is not None and sorted(places) == list(range(rank)) else None


def _places(numbers: Sequence[int], rank: int) -> list[int] | None:
    """Indices of modes; None if a tensor of this rank does not have one of them."""
    return [n % rank for n in numbers] if all(-rank <= n < rank for n in numbers) else None


def _moved(modes: list[Mode], sources: list[int] | None, goals: list[int] | None) -> list[Mode] | None:
    """The modes after those at `sources` are moved to `goals`; None if the lists do not fit."""
    if sources is None or goals is None or not len(sources) == len(goals) == len(set(sources)) == len(set(goals)):
        return None
    moved = [mode for i, mode in enumerate(modes) if i not in sources]
    for goal, source in sorted(zip(goals, sources, strict=True)):
        moved.insert(goal, modes[source])
    return moved


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
