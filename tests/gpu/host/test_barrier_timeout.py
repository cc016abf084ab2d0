"""What the emulator adds to the report of a wait that ran out."""

from __future__ import annotations

import pytest

from cute_py.gpu.barrier_timeout import emulated_arrival
from cute_py.gpu.kernels.listed import copy_listed
from cute_py.gpu.kernels.transpose import copy_transposed
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapTiled
from cute_py.tma.emulator.emulator import Emulator

TILE = TensorMapTiled(2, 4096, (24, 20), (112,), (16, 8), swizzle=2)
PIXELS = TensorMapIm2col(6, 4096, (32, 9, 8), (64, 640), (-1,), (-1,), 16, 12, swizzle=1)


@pytest.mark.parametrize("request_", [TILE, PIXELS])
def test_it_is_what_the_emulator_counts(request_: TensorMapTiled | TensorMapIm2col) -> None:
    import numpy as np

    made, gmem, smem = encode(request_), np.zeros(1 << 14, np.uint8), np.zeros(1 << 14, np.uint8)
    count = int(Emulator().load(made, gmem, (0,) * len(request_.global_dim), smem, gmem_base=4096))
    assert emulated_arrival([(made, 1)]) == f"{count} bytes"
    assert emulated_arrival([(made, 3)]) == f"{3 * count} bytes, 3 loads of {count}"


def test_a_map_that_the_emulator_can_not_read() -> None:
    assert emulated_arrival([(b"\xff" * 128, 1)]).startswith("unknown: ")


def test_kernels_know_how_many_loads_a_barrier_waits_for() -> None:
    assert copy_listed(2, (0, 2048, 4096), 2048, 6144).loads == 3
    turned = copy_transposed(512, 512, 2)
    assert turned.loads * turned.facts["LOAD_BYTES"] == turned.facts["TILE_BYTES"]  # type: ignore[operator]
    assert copy_transposed(512, 512, 2, paired=True).loads == 1
