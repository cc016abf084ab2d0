"""What a distribution puts where, element by element and on its own: from `pieces` and local strides only."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from cute_py.mesh import (
    BlockCyclic,
    Partial,
    Placement,
    Replicate,
    Shard,
    ShardedLayout,
    StridedShard,
    Zigzag,
    distribute,
)

Coordinate = tuple[int, ...]


@dataclass(frozen=True)
class Alone:
    """All of the first dimension on one device."""

    device: int
    dim: int = 0

    def pieces(self, size: int, parts: int, part: int) -> Any:
        return np.array([[0, size if part == self.device else 0]])


def indices_of(sharded: ShardedLayout, device: int) -> list[list[int]]:
    """For each dimension the indices that a device holds, in local order. Divides lists of indices, one by one."""
    mesh = sharded.mesh_shape
    at = np.unravel_index(device, mesh)
    held = [list(range(n)) for n in sharded.shape]
    for mode, placement in enumerate(sharded.placements):
        if not isinstance(placement, (Replicate, Partial)):
            whole = held[placement.dim]
            pieces = placement.pieces(len(whole), mesh[mode], int(at[mode])).tolist()
            held[placement.dim] = [whole[i] for start, length in pieces for i in range(start, start + length)]
    return held


def places(sharded: ShardedLayout, device: int) -> dict[Coordinate, int]:
    """Coordinate in the whole tensor -> place in the memory of a device, row-major."""
    held = indices_of(sharded, device)
    shape = [len(one) for one in held]
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    local = itertools.product(*[range(n) for n in shape])
    return {
        tuple([one[i] for one, i in zip(held, at, strict=True)]): sum(i * s for i, s in zip(at, strides, strict=True))
        for at in local
    }


def random_shape(random: Random) -> tuple[int, ...]:
    shape = [random.choice((1, 2, 3, 4, 5, 7, 8, 12, 16, 33)) for _ in range(random.randint(1, 4))]
    while math.prod(shape) > 1500:
        shape.remove(max(shape))
    return tuple(shape)


def random_placement(random: Random, rank: int) -> Placement:
    dim = random.randrange(rank)
    return random.choice(
        (
            Shard(dim),
            Shard(dim),
            BlockCyclic(dim, random.randint(1, 4)),
            StridedShard(dim, random.randint(1, 3)),
            Zigzag(dim),
            Replicate(),
        )
    )


def random_distribution(random: Random, shape: tuple[int, ...]) -> ShardedLayout:
    mesh = [random.choice((1, 2, 2, 3, 4)) for _ in range(random.randint(1, 3))]
    return distribute(shape, mesh, [random_placement(random, len(shape)) for _ in mesh])


def part_of(sharded: ShardedLayout, values: np.ndarray, device: int) -> np.ndarray:
    """What a device holds of an array, in the order of its memory."""
    return values[np.ix_(*indices_of(sharded, device))].ravel()


def scattered(sharded: ShardedLayout, values: np.ndarray) -> dict[int, np.ndarray]:
    """The parts of an array, as each device holds its own, flat."""
    return {device: part_of(sharded, values, device) for device in range(sharded.devices)}
