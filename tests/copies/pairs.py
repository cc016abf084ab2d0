"""Random pairs of layouts of one size, and what a copy between them must leave."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cute_py import ComposedLayout, Int, Layout, Swizzle
from cute_py.layout.offsets import offsets

DTYPES = {1: "uint8", 2: "float16", 4: "float32", 8: "float64", 16: "complex128"}
SIZES = (1, 7, 60, 256, 1024, 4096, 3 * 1024, 15 * 512, 63 * 65, 127 * 129, 2310, 2**14, 25 * 81, 7000)
SWIZZLES = ((3, 3, 3), (2, 1, 3), (3, 0, 3), (1, 4, 2), (2, 2, -2))


@dataclass(frozen=True)
class Pair:
    """Two layouts of `count` elements of `element` bytes, and how far their addresses lie past 16 bytes."""

    source: Any
    destination: Any
    element: int
    count: int
    shifts: tuple[int, int]

    def offsets(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Offsets of both sides in bytes, by coordinate."""
        index = np.arange(self.count)
        first, second = (offsets(one, index).astype(np.int64) * self.element for one in (self.source, self.destination))
        return first, second

    def alignment(self) -> tuple[int, int]:
        """Of both addresses, bytes."""
        first, second = (16 if shift == 0 else shift & -shift for shift in self.shifts)
        return first, second


def _layout(dice: random.Random, count: int) -> Layout:
    """Of any factors in any order, with gaps and modes walked backwards."""
    shape, rest = [], count
    while rest > 1:
        divisors = [d for d in range(2, min(rest, 4000) + 1) if rest % d == 0] or [rest]
        shape.append(dice.choice(divisors))
        rest //= shape[-1]
    if not shape:
        return Layout(1)
    order = list(range(len(shape)))
    dice.shuffle(order)
    stride, step = [0] * len(shape), 1
    for mode in order:
        stride[mode] = step * dice.choice([1] * 6 + [-1])
        step *= shape[mode]
        if dice.random() < 0.15:
            step += dice.choice([1, 3, 8, 16])
    return Layout(tuple(shape), tuple(stride))


def _numbers(tree: Any) -> tuple[int, ...]:
    return tuple(int(x) for x in (tree if isinstance(tree, tuple) else (tree,)))


def random_pair(seed: int) -> Pair:
    """Pair number `seed`: plain, broadcast or swizzled."""
    dice = random.Random(seed)
    element, count = dice.choice([1, 1, 2, 2, 4, 8, 16]), dice.choice(SIZES)
    sides: list[Any] = [_layout(dice, count), _layout(dice, count)]
    if dice.random() < 0.15:
        shape, stride = _numbers(sides[0].shape), list(_numbers(sides[0].stride))
        stride[dice.randrange(len(stride))] = 0
        sides[0] = Layout(shape, tuple(stride))
    for at in (0, 1):
        if dice.random() < 0.25 and all(s >= 0 for s in _numbers(sides[at].stride)):
            sides[at] = ComposedLayout(Swizzle(*dice.choice(SWIZZLES)), Int(0), sides[at])
    shifts = tuple(dice.choice([0, 0, 0, element % 16, 2 * element % 16]) for _ in (0, 1))
    return Pair(sides[0], sides[1], element, count, (shifts[0], shifts[1]))


def permuted(shape: tuple[int, ...], order: tuple[int, ...], element: int, shifts: tuple[int, int] = (0, 0)) -> Pair:
    """A row-major array of `shape`, its modes in this order, into a row-major array."""

    def rows(sizes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(int(np.prod(sizes[i + 1 :])) for i in range(len(sizes)))

    there = tuple(shape[i] for i in order)
    strides = rows(shape)
    source = Layout(there, tuple(strides[i] for i in order))
    return Pair(source, Layout(there, rows(there)), element, int(np.prod(shape)), shifts)
