"""A numpy array in the place of a tuple of integers: taken as the integers, or refused; never kept as an array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py.errors import InvalidTypeError
from cute_py.gpu.kernels.source import KernelSource
from cute_py.tma.simulate.pipeline import RingLoad, RingStore

MAP = cute.tma.TensorMapTiled(6, 1 << 20, (64, 64), (128,), (16, 16))
COPY = cute.TiledCopy(cute.copy_atom("DefaultCopy", "float32"), cute.Layout((4, 1)), (2, 2))


def test_coordinates_of_a_ring_are_plain_numbers() -> None:
    rows = np.array([[0, 0], [16, 0]])
    assert RingLoad(MAP, rows) == RingLoad(MAP, [(0, 0), (16, 0)])
    assert RingStore(MAP, rows) == RingStore(MAP, ((0, 0), (16, 0)))
    assert RingLoad(MAP, rows, im2col_offsets=np.array([1, 2])).im2col_offsets == (1, 2)


def test_extents_of_a_tiler_are_plain_numbers() -> None:
    assert replace(COPY, tiler_mn=(np.int64(2), 2)) == COPY


@pytest.mark.parametrize(
    "make",
    [
        lambda: RingLoad(MAP, [(0, 0)], im2col_offsets=np.zeros((2, 2))),
        lambda: replace(COPY, tiler_mn=np.array([2, 2])),
        lambda: replace(COPY, tiler_mn=(2, "2")),
        lambda: KernelSource("k", "", np.array([32, 1]), 0),  # type: ignore[arg-type]
        lambda: KernelSource("k", "", 32, 0, parameters=np.array(["a"])),  # type: ignore[arg-type]
        lambda: cute.mesh.Transfer(0, 1, 4, 0, 0, ((4, 1, 1),), adds=np.array([True, False])),  # type: ignore[arg-type]
    ],
)
def test_an_array_is_refused_elsewhere(make: Callable[[], Any]) -> None:
    with pytest.raises(InvalidTypeError):
        make()
