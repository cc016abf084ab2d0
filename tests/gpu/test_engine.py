"""The device behind the emulator's calls: the same operands, the same bytes."""

from __future__ import annotations

import numpy as np
import pytest

from cute_py.errors import DeviceError, InvalidValueError
from cute_py.gpu.device import Device
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapTiled
from cute_py.tma.emulator.emulator import Emulator
from tests.gpu.gpu_engine import GpuEngine

BASE = 0x7F00_0000_0000


def memories(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    rng = np.random.default_rng(seed)
    gmem, smem = rng.integers(0, 256, 8192, dtype=np.uint8), rng.integers(0, 256, 4096, dtype=np.uint8)
    return gmem, smem, gmem.copy(), smem.copy()


TILE = encode(TensorMapTiled(2, BASE + 64, (24, 20), (112,), (16, 8), swizzle=2))
PIXELS = encode(TensorMapIm2col(6, BASE, (32, 9, 8), (64, 640), (-1,), (-1,), 16, 12, swizzle=1))


@pytest.mark.parametrize("offset", [0, 1024])
def test_every_call_leaves_what_the_emulator_leaves(device: Device, offset: int) -> None:
    gpu, emulator = GpuEngine(device), Emulator()
    for seed, coords in enumerate([(0, 0), (12, 15), (4, -3), (20, 19)]):
        gmem, smem, gmem2, smem2 = memories(seed)
        count = int(emulator.load(TILE, gmem2, coords, smem2, smem_offset=offset, gmem_base=BASE))
        assert gpu.load(TILE, gmem, coords, smem, transaction_bytes=count, smem_offset=offset, gmem_base=BASE) == count
        assert np.array_equal(smem, smem2)
        gpu.prefetch(TILE, gmem, coords, gmem_base=BASE)
        if min(coords) >= 0:
            gpu.store(TILE, gmem, coords, smem, smem_offset=offset, gmem_base=BASE)
            emulator.store(TILE, gmem2, coords, smem2, smem_offset=offset, gmem_base=BASE)
            assert np.array_equal(gmem, gmem2)
            gpu.reduce("xor", TILE, gmem, coords, smem[::-1].copy(), smem_offset=offset, gmem_base=BASE)
            emulator.reduce("xor", TILE, gmem2, coords, smem2[::-1].copy(), smem_offset=offset, gmem_base=BASE)
            assert np.array_equal(gmem, gmem2)


def test_im2col_through_the_engine(device: Device) -> None:
    gmem, smem, gmem2, smem2 = memories(9)
    count = int(Emulator().load(PIXELS, gmem2, (8, 2, 1), smem2, im2col_offsets=(1,), gmem_base=BASE))
    GpuEngine(device).load(
        PIXELS, gmem, (8, 2, 1), smem, mode="im2col", im2col_offsets=(1,), transaction_bytes=count, gmem_base=BASE
    )
    assert np.array_equal(smem, smem2)


def test_too_many_expected_bytes_are_an_error_and_not_a_hang(device: Device) -> None:
    gmem, smem, _, _ = memories(1)
    with pytest.raises(DeviceError, match="the barrier was not complete after") as caught:
        GpuEngine(device).load(TILE, gmem, (0, 0), smem, transaction_bytes=528, gmem_base=BASE)
    assert caught.value.facts["expected"] == "528 bytes"
    assert caught.value.facts["emulator"] == "512 bytes"


def test_a_trap_in_a_process_of_its_own(device: Device) -> None:
    gmem, smem, _, _ = memories(2)
    apart = GpuEngine(isolate=True)
    with pytest.raises(DeviceError, match="CUDA_ERROR_ILLEGAL_INSTRUCTION"):
        apart.load(TILE, gmem, (1, 0), smem, transaction_bytes=512, gmem_base=BASE)
    assert apart.load(TILE, gmem, (4, 0), smem, transaction_bytes=512, gmem_base=BASE) == 512
    device.synchronize()


def test_an_unknown_reduction(device: Device) -> None:
    gmem, smem, _, _ = memories(3)
    with pytest.raises(InvalidValueError, match="reduction 'mul'"):
        GpuEngine(device).reduce("mul", TILE, gmem, (0, 0), smem)
