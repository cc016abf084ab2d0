"""TMA with threads: what the copy puts into a stage is what the threads of the MMA find there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout, make_gmem_ptr, make_smem_ptr, make_tensor
from cute_py.errors import InvalidTypeError, InvalidValueError
from tests.shares import one_in

M, K, STAGES = 128, 64, 3
TENSOR = make_tensor(make_gmem_ptr(4096, "bfloat16"), Layout((1024, 512), (512, Int(1))))
STAGE = cute.tma.make_smem_layout("K", "128B", "bfloat16", (M, K))
LOAD = cute.tma.make_tma_copy("SM90_TMA_LOAD", TENSOR, STAGE)
PIPE = cute.tile_to_shape(cute.gmma_layout("K_SW128", "bfloat16"), (Int(M), Int(K), Int(STAGES)))
WARPS = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN", (Int(2), Int(2), Int(1)))
GROUPS = cute.make_tiled_mma("SM90_64x64x16_F32BF16BF16_SS", (Int(2), Int(1), Int(1)))
LDSM = cute.make_tiled_copy_A(cute.copy_atom("SM75_U32x4_LDSM_N", "bfloat16"), WARPS)


def places(tensor: Any) -> list[int]:
    """Byte of shared memory of every element, after the swizzle, in the order of the coordinates."""
    table = np.asarray(cute.offsets(tensor.layout)).reshape(-1, order="F")
    linear = table * 2 + tensor.engine.address
    return [int(tensor.engine.swizzle(int(x))) for x in linear]


@pytest.mark.parametrize("stage", one_in(STAGES, range(STAGES)))
def test_a_stage_is_partitioned_alike_on_both_sides(stage: int) -> None:
    """(coordinate in the tile -> shared byte) by tma_partition, and by partition_A of all threads."""
    smem = make_tensor(make_smem_ptr(1024, "bfloat16"), PIPE)
    tiles = cute.zipped_divide(LOAD.get_tma_tensor(), (Int(M), Int(K)))
    grouped = cute.group_modes(smem, 0, 2)
    source, shared = cute.tma.tma_partition(LOAD, Int(0), Layout(Int(1)), grouped, tiles)
    moved = shared(None, stage)
    count = int(cute.size(moved.layout))
    one = source(None, (1, 2))
    start = (128, 128)
    sent = {}
    for i, byte in enumerate(places(moved)):
        k, m = (int(x) for x in one(i).as_tuple())
        sent[m - start[0], k - start[1]] = byte
    assert len(sent) == count == M * K
    identity = cute.make_identity_tensor((Int(M), Int(K)))
    found = {}
    for thread in range(int(WARPS.size())):
        mine = WARPS.get_slice(thread)
        part, coords = mine.partition_A(smem)(None, None, None, stage), mine.partition_A(identity)
        for i, byte in enumerate(places(part)):
            found[tuple(int(x) for x in coords(i).as_tuple())] = byte
    assert found == sent


def test_an_element_reaches_its_register() -> None:
    assert str(cute.trace(LOAD, (133, 70), WARPS, tiled_copy=LDSM)) == (
        """\
tensor (133,70): (5,6) of tile (1,1)
TMA (70,133): global byte 0x2248c, instruction at (64,128)
shared byte 732, bank 23
SM75_U32x4_LDSM_N: read by thread 5 as value 6, thread 69 as value 6
threads 23, 87: register 0, bits 0 to 15, of MMA (0,0)
SM80_16x8x16_F32BF16BF16F32_TN: A(5,6)"""
    )


def test_every_element_is_held_as_the_partition_says() -> None:
    """The register of each thread: its fragment, filled by ldmatrix, has the element there."""
    identity = cute.make_identity_tensor((Int(M), Int(K)))
    generator = np.random.default_rng(3)
    for _ in range(40):
        place = (int(generator.integers(M)), int(generator.integers(K)))
        found = cute.trace(LOAD, (place[0] + M, place[1]), WARPS, tiled_copy=LDSM)
        assert found.holders and found.register is not None
        for thread in found.holders:
            part = WARPS.get_slice(thread).partition_A(identity)
            assert tuple(map(int, part(found.register * 2 + found.bits[0] // 16).as_tuple())) == place
        for thread, value in found.readers:
            row = LDSM.get_slice(thread).partition_S(identity)
            assert tuple(map(int, row(value).as_tuple())) == place


def test_a_descriptor_reaches_the_element() -> None:
    found = cute.trace(LOAD, (70, 37), GROUPS)
    assert found.descriptor is not None and found.holders == ()
    assert (found.instruction, found.element) == ((0, 2), (6, 5))
    start = found.descriptor.start * 16
    assert start == 64 * 128 + 2 * 32
    linear = start + found.element[0] * 128 + found.element[1] * 2
    assert int(cute.Swizzle(3, 4, 3)(linear)) == found.step.shared_offset


def test_refusals() -> None:
    with pytest.raises(InvalidValueError, match=r"coordinate \(1024, 0\) is outside the tensor of shape \(1024,512\)"):
        cute.trace(LOAD, (1024, 0), WARPS)
    with pytest.raises(InvalidTypeError, match="the atom of a trace must be a TmaAtom, got int 4"):
        cute.trace(4, (0, 0), WARPS)  # type: ignore[arg-type]
    wide = cute.make_tiled_mma("SM90_64x64x16_F32BF16BF16_SS", (Int(4), Int(1), Int(1)))
    with pytest.raises(InvalidValueError, match=r"must be a multiple of the tile of the MMA, \(256,16\)"):
        cute.trace(LOAD, (0, 0), wide)
