"""Copies of random views into random views, planned without an atom: numpy says which bytes change, and which stay."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from cute_py.gpu.device import Device
from cute_py.tensor.array_views import ArrayView
from tests.gpu.test_copies import Place, fresh, run

WIDTHS = {1: "uint8", 2: "bfloat16", 4: "float32", 8: "int64"}
LARGEST = (0, 5000, 150, 40, 14, 9)
"""Of a mode, by rank."""


def random_strides(rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[tuple[int, ...], int]:
    """Strides of an array of this shape in memory, in elements, and how many elements it reaches over."""
    order = np.argsort(rng.random(len(shape))) if rng.random() < 0.3 else np.arange(len(shape))[::-1]
    strides, step = [0] * len(shape), 1
    for mode in order:
        strides[int(mode)] = step
        step *= int(shape[int(mode)])
        kind = rng.random()
        if kind < 0.7:
            step += -step * width % 16 // width  # Rows that start at 16-byte boundaries.
        if 0.4 < kind < 0.8:
            step += int(rng.integers(1, 5)) * max(16 // width, 1)
    return tuple(strides), step


def random_view(
    rng: np.random.Generator, device: Device, shape: tuple[int, ...], width: int, offset: int
) -> tuple[Place, ArrayView]:
    strides, reach = random_strides(rng, shape, width)
    place = Place(device, fresh((reach + offset) * width, int(rng.integers(2**31))))
    return place, place.view(WIDTHS[width], shape, strides, offset)


@pytest.mark.parametrize("seed", range(6))
def test_random_views(device: Device, seed: int) -> None:
    rng = np.random.default_rng(seed)
    forms: Counter[str] = Counter()
    for _ in range(60):
        width = int(rng.choice(list(WIDTHS)))
        rank = int(rng.integers(1, 6))
        shape = tuple(int(n) for n in rng.integers(1, LARGEST[rank], rank))
        source = random_view(rng, device, shape, width, int(rng.choice([0, 16 // width, rng.integers(0, 9)])))
        destination = random_view(rng, device, shape, width, int(rng.choice([0, 0, 0, 16 // width, 1])))
        forms[run(device, source, destination)] += 1
    assert len(forms) > 2, forms
