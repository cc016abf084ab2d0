"""Every element at its place, and the fewest bytes, for pairs of up to 64 devices: by sets of elements, without a plan.

Each element has its number in the whole tensor as its value. A device's part must hold the numbers that its placements
give it; the bytes that must cross are the elements that a device needs and does not hold.

    python -m pytest -m slow tests/mesh/test_brute_force.py       all 3,000 pairs; otherwise the first 60
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from cute_py.mesh import Placement, Replicate, ShardedLayout, distribute, redistribute
from tests.mesh.places import part_of, random_placement, random_shape, scattered

QUICK, PAIRS, STEP, MOST_DEVICES, DEAREST = 20, 3000, 210, 64, 1 << 17
"""DEAREST: elements of all devices together that a pair may have."""


def random_side(random: Random, shape: tuple[int, ...]) -> ShardedLayout:
    mesh = [random.choice((1, 2, 3, 4, 5, 8, 16)) for _ in range(random.randint(1, 4))]
    while np.prod(mesh) > MOST_DEVICES:
        mesh.remove(max(mesh))
    placements: list[Placement] = [random_placement(random, len(shape)) for _ in mesh]
    copies = np.prod([n for n, p in zip(mesh, placements, strict=True) if isinstance(p, Replicate)], dtype=int)
    if copies * np.prod(shape) > DEAREST:
        return random_side(random, shape)
    return distribute(shape, mesh, placements)


def check(seed: int) -> None:
    random = Random(seed)
    shape = random_shape(random)
    source, destination = random_side(random, shape), random_side(random, shape)
    whole = np.arange(np.prod(shape), dtype=np.uint32).reshape(shape)
    held = scattered(source, whole)
    plan = redistribute(source, destination, "uint32", devices_per_host=random.choice((None, 1, 4)))
    got = plan.run(held, backend="host")
    needed = 0
    for device in range(destination.devices):
        wanted = part_of(destination, whole, device)
        assert np.array_equal(got[device].ravel(), wanted), (seed, plan, device)
        needed += len(np.setdiff1d(wanted, held.get(device, ()), assume_unique=True))
    assert plan.bytes_moved == plan.minimum_bytes == 4 * needed, (seed, plan)


@pytest.mark.parametrize("seed", range(QUICK))
def test_a_sample(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(QUICK, PAIRS, STEP))
def test_all_others(first: int) -> None:
    for seed in range(first, min(first + STEP, PAIRS)):
        check(seed)
