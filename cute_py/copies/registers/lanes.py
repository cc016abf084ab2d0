"""Convert registers of a warp from one linear thread-value layout to another by shuffles.

An element has a position x = (lane, value), a vector over F2, in the source, and a position y in the destination; y is
a linear function of x. A shuffle moves one word of every lane: a set of elements with exactly one element in each lane
of the source and one in each lane of the destination. The cosets of a common complement W of the two value spaces are
such sets. Therefore 2**p words per lane take 2**p rounds, which is the minimum. In round r:

    lane l sends word       r ^ a(l)          a, b, f: linear in the bits of the thread index
    lane l receives from    f(l) ^ g(r)
    lane l keeps it as      r' ^ b(l)         r': the index of the round in the destination

If the elements of W stay in their lanes, rounds with g(r) = 0 move nothing between lanes and need no shuffle. Elements
narrower than a word travel together if they share a lane on both sides.

Integers represent vectors of F2**n. Two subspaces of the same dimension have a common complement: let I be their
intersection, let s and d extend a basis of I to bases of the two subspaces, and let c extend a basis of their sum to
the whole space. Then s[i] ^ d[i] and c span a common complement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cute_py.layout.linear import coefficients, combined, eliminated, independent, kernel
from cute_py.targets import WARP

Vectors = tuple[int, ...]


def intersection(a: Sequence[int], b: Sequence[int]) -> Vectors:
    """Return a basis of the intersection of two spaces, which are given by bases.

    >>> intersection((1, 2), (3, 4))
    (3,)
    """
    _, own = eliminated((*((x, x) for x in a), *((x, 0) for x in b)))  # each label is the component in a
    return independent(own)


def common_complement(space: Sequence[int], a: Sequence[int], b: Sequence[int]) -> Vectors:
    """Return a basis of a common complement of a and b in a space; a and b must have the same dimension.

    >>> common_complement((1, 2), (1,), (2,))
    (3,)
    """
    both = intersection(a, b)
    first, second = independent(a, both), independent(b, both)
    rest = independent(space, (*a, *b))
    return (*(x ^ y for x, y in zip(first, second, strict=True)), *rest)


LANE_BITS = WARP.bit_length() - 1


@dataclass(frozen=True)
class Sides:
    """The offset that each bit of the thread and value index adds (by XOR), lowest bit first, in source and
    destination."""

    source_threads: Vectors
    source_values: Vectors
    target_threads: Vectors
    target_values: Vectors


@dataclass(frozen=True)
class LanePlan:
    """The rounds of a conversion within warps.

    packed: for each sent word, its source elements, low bits first. select, keep: for each bit of the thread index, the
    value that it adds (by XOR) to the index of the sent word and of the kept word. lanes, steps: f for each bit of the
    thread index, g for each bit of r. rounds: for each index of a kept word, the round that fills it if `keep` adds 0.
    unpacked: for each element of the destination, (kept word, position in the word).
    """

    packed: tuple[tuple[int, ...], ...]
    select: Vectors
    lanes: Vectors
    steps: Vectors
    rounds: tuple[int, ...]
    keep: Vectors
    unpacked: tuple[tuple[int, int], ...]

    def step(self, number: int) -> int:
        """Return g(r) for round r."""
        return combined(self.steps, number)

    @property
    def straight(self) -> bool:
        """Whether f is the identity, so that each round is a butterfly shuffle."""
        lane_bits = min(LANE_BITS, len(self.lanes))
        own = tuple(1 << k if k < lane_bits else 0 for k in range(len(self.lanes)))
        return self.lanes == own

    @property
    def shuffles(self) -> int:
        """The number of rounds that move words between lanes."""
        return sum(1 for r in range(len(self.rounds)) if not self.straight or self.step(r))


def plan_lanes(sides: Sides, word_bits: int) -> LanePlan | None:
    """Plan the rounds; return None if an element leaves its warp or has several positions.

    word_bits: log2 of the number of elements per word.
    """
    threads = len(sides.source_threads)
    lane_bits, p = min(LANE_BITS, threads), len(sides.source_values)
    source = (*sides.source_values, *sides.source_threads[:lane_bits])
    target = (*sides.target_values, *sides.target_threads[:lane_bits])
    if len(independent(source)) != len(source) or len(target) != len(source) or len(sides.target_values) != p:
        return None
    columns = [coefficients(offset, source) for offset in target]
    moved = [
        coefficients(x ^ y, source)
        for x, y in zip(sides.source_threads[lane_bits:], sides.target_threads[lane_bits:], strict=True)
    ]
    matrix = tuple(c for c in columns if c is not None)
    shifts = tuple(c for c in moved if c is not None)
    if len(matrix) != len(columns) or len(shifts) != len(moved) or len(independent(matrix)) != len(matrix):
        return None
    for together in range(min(word_bits, p), -1, -1):
        found = _with(matrix, shifts, p, lane_bits, together, word_bits)
        if found is not None:
            return found
    return None


def _with(matrix: Vectors, shifts: Vectors, p: int, lane_bits: int, together: int, word_bits: int) -> LanePlan | None:
    """Make a plan with 2**together elements per word, or return None if there is none.

    `matrix` maps y to x, and `shifts` has one entry per warp bit.
    """
    axes = tuple(1 << k for k in range(p + lane_bits))
    values, lanes = axes[:p], axes[p:]
    values_y, lanes_y = matrix[:p], matrix[p:]
    # elements of one word: they share a lane on both sides, and their place in the word does not depend on the lane
    shared = intersection(values, values_y)
    sums = independent((*lanes, *lanes_y))
    likely = (*values[:word_bits], *values_y[:word_bits], *shared)
    inside = [v for v in likely if coefficients(v, shared) is not None]
    packed = independent(inside, sums)[:together]
    if len(packed) < together:
        return None
    basis = (*packed, *sums, *independent(axes, (*packed, *sums)))
    low = (1 << together) - 1

    def place(x: int) -> int:
        return (coefficients(x, basis) or 0) & low

    if any(place(shift) for shift in shifts):
        return None
    own = independent(v ^ combined(packed, place(v)) for v in values)
    own_y = independent(v ^ combined(packed, place(v)) for v in values_y)
    space = basis[together:]

    def lane(x: int) -> int:
        return x >> p

    stays = kernel(space, [lane(x) ^ (coefficients(x, matrix) or 0) >> p for x in space])
    size = len(space)
    if len(independent((*stays, *own))) == len(independent((*stays, *own_y))) == size:
        across = common_complement(stays, intersection(stays, own), intersection(stays, own_y))
    else:
        across = common_complement((*lanes, *space), own, own_y)
    cut = len(across)

    def part(x: int, side: Vectors) -> int:
        return (coefficients(x, (*across, *side)) or 0) >> cut

    select = [part(x, own) for x in lanes]
    keep = [part(x, own_y) for x in lanes_y]
    to_round = [part(x, own) for x in own_y]
    from_round = [coefficients(1 << k, to_round) or 0 for k in range(len(own))]
    steps = tuple(lane(combined(own_y, from_round[k])) for k in range(len(own)))
    source_lanes = [lane(x ^ combined(own_y, k)) for x, k in zip(lanes_y, keep, strict=True)]
    for shift in shifts:
        late = part(shift, own)
        select.append(0)
        keep.append(combined(from_round, late))
        source_lanes.append(combined(steps, late) ^ lane(shift))
    count = 1 << len(own)
    words = tuple(tuple(combined(own, k) ^ combined(packed, i) for i in range(1 << together)) for k in range(count))
    where: dict[int, tuple[int, int]] = {}
    for k in range(count):
        for i in range(1 << together):
            where[coefficients(combined(own_y, k) ^ combined(packed, i), values_y) or 0] = (k, i)
    return LanePlan(
        packed=words,
        select=tuple(select),
        lanes=tuple(source_lanes),
        steps=steps,
        rounds=tuple(combined(to_round, k) for k in range(count)),
        keep=tuple(keep),
        unpacked=tuple(where[v] for v in range(1 << p)),
    )


def stages(columns: Sequence[int]) -> list[tuple[int, int]]:
    """Split an XOR with a linear function of the thread index into pairs (mask of thread bits, value to XOR if their
    parity is odd).

    >>> stages((1, 1, 2))
    [(3, 1), (4, 2)]
    """
    basis = independent(columns)
    parts = [coefficients(c, basis) or 0 for c in columns]
    return [(sum(1 << k for k, c in enumerate(parts) if c >> j & 1), b) for j, b in enumerate(basis)]
