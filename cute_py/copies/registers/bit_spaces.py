"""Subspaces of F2**n, their vectors as integers: bases, intersections, coefficients, common complements.

Two subspaces of the same dimension have a common complement: with I their intersection, s and d bases of the rest of
each, and c whatever is in neither sum, the vectors s[i] ^ d[i] and c span one.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence

Vectors = tuple[int, ...]


def combined(columns: Sequence[int], bits: int) -> int:
    """The XOR of the columns at the set bits.

    >>> combined((4, 1, 2), 0b101)
    6
    """
    return functools.reduce(operator.xor, [c for k, c in enumerate(columns) if bits >> k & 1], 0)


def independent(candidates: Iterable[int], besides: Iterable[int] = ()) -> Vectors:
    """Those of the candidates, in order, that neither `besides` nor earlier ones span.

    >>> independent((1, 2, 3, 4), besides=(2,))
    (1, 4)
    """
    basis: list[int] = []

    def left(vector: int) -> int:
        for b in basis:
            vector = min(vector, vector ^ b)
        return vector

    for vector in besides:
        basis += [rest] if (rest := left(vector)) else []
    found = []
    for vector in candidates:
        if rest := left(vector):
            basis.append(rest)
            found.append(vector)
    return tuple(found)


def coefficients(vector: int, basis: Sequence[int]) -> int | None:
    """Bits c with `combined(basis, c) == vector`, of independent vectors; None outside of their span.

    >>> coefficients(6, (4, 1, 2)), coefficients(8, (4, 1, 2))
    (5, None)
    """
    rows: list[tuple[int, int]] = []
    for k, b in enumerate(basis):
        tag = 1 << k
        for value, held in rows:
            if b ^ value < b:
                b, tag = b ^ value, tag ^ held
        rows.append((b, tag))
    found = 0
    for value, tag in sorted(rows, reverse=True):
        if vector ^ value < vector:
            vector, found = vector ^ value, found ^ tag
    return None if vector else found


def intersection(a: Sequence[int], b: Sequence[int]) -> Vectors:
    """A basis of what two spaces, given by bases, have in common.

    >>> intersection((1, 2), (3, 4))
    (3,)
    """
    found = []
    rows: list[tuple[int, int]] = []  # (vector, its part of a)
    for vector, own in (*((x, x) for x in a), *((x, 0) for x in b)):
        for value, part in rows:
            if vector ^ value < vector:
                vector, own = vector ^ value, own ^ part
        if vector:
            rows.append((vector, own))
        elif own:
            found.append(own)
    return independent(found)


def kernel(basis: Sequence[int], images: Sequence[int]) -> Vectors:
    """A basis of the vectors that a linear map, given by the images of a basis, takes to zero.

    >>> kernel((1, 2, 4), (3, 3, 1))
    (3,)
    """
    found = []
    rows: list[tuple[int, int]] = []
    for vector, image in zip(basis, images, strict=True):
        for value, held in rows:
            if image ^ value < image:
                image, vector = image ^ value, vector ^ held
        if image:
            rows.append((image, vector))
        else:
            found.append(vector)
    return tuple(found)


def common_complement(space: Sequence[int], a: Sequence[int], b: Sequence[int]) -> Vectors:
    """A basis of a subspace that completes both a and b, of the same dimension, to the whole space.

    >>> common_complement((1, 2), (1,), (2,))
    (3,)
    """
    both = intersection(a, b)
    first, second = independent(a, both), independent(b, both)
    rest = independent(space, (*a, *b))
    return (*(x ^ y for x, y in zip(first, second, strict=True)), *rest)
