"""Copies between random layouts on the device, element by element; nothing around them is touched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cute_py.copies.operands import Side
from cute_py.copies.prepared import prepare_sides
from cute_py.dtypes import as_dtype
from cute_py.gpu.arrays import ArrayView
from cute_py.gpu.device import Device, DeviceBuffer
from tests.copies.pairs import DTYPES, random_pair
from tests.copies.test_thread_kernels import permuted

GUARD = 256
PAIRS = 2000


def arrives(device: Device, seed: int, pair: object) -> tuple[str, set[str]]:
    """Copy a pair, compare every byte of both buffers; its form and the digests of its kernels."""
    first, second = pair.offsets()  # type: ignore[attr-defined]
    element = pair.element  # type: ignore[attr-defined]
    inside, sides, buffers, contents, places = np.arange(element), [], [], [], []
    rng = np.random.default_rng(seed)
    for role, offsets, layout, shift in zip(
        ("source", "destination"),
        (first, second),
        (pair.source, pair.destination),  # type: ignore[attr-defined]
        pair.shifts,  # type: ignore[attr-defined]
        strict=True,
    ):
        low = -(min(int(offsets.min()), 0) // GUARD) * GUARD + GUARD + shift
        content = rng.integers(0, 256, low + int(offsets.max()) + element + GUARD, dtype=np.uint8)
        buffer = DeviceBuffer(device, len(content))
        buffer.write(content.tobytes())
        view = ArrayView(buffer.address + low, (), (), as_dtype(DTYPES[element]), device.ordinal)
        sides.append(Side(role, view, layout, None))
        buffers.append(buffer)
        contents.append(content)
        places.append((offsets + low)[:, None] + inside)
    prepared = prepare_sides(sides[0], sides[1], device=device)
    prepared.launch()
    prepared.check()
    contents[1][places[1]] = contents[0][places[0]]
    for buffer, content in zip(buffers, contents, strict=True):
        assert np.array_equal(np.frombuffer(bytes(buffer.read()), np.uint8), content), (seed, pair, prepared.plan)
        buffer.close()
    assert prepared.plan is not None
    return prepared.plan.form, {kernel.source.digest for kernel in prepared.kernels}


def test_random_pairs_arrive_with_few_kernels(device: Device) -> None:
    kernels: set[str] = set()
    forms: set[str] = set()
    for seed in range(PAIRS):
        form, digests = arrives(device, seed, random_pair(seed))
        forms.add(form)
        kernels |= digests
    assert forms == {"affine", "linear", "general"}


@pytest.mark.parametrize("element", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (0, 2, 1)])
def test_odd_and_even_sizes_arrive_in_vectors(device: Device, element: int, order: tuple[int, ...]) -> None:
    for number, shape in enumerate(((64, 96, 128), (33, 65, 129), (3, 512, 510), (130, 4, 4096))):
        pair = permuted(shape, order, element)
        for shifts in ((0, 0), (element % 16, 3 * element % 16)):
            arrives(device, number, replace(pair, shifts=shifts))
