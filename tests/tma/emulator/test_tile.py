"""One load of a tile inside its tensor copies what a batch of one does, and takes no other load."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cute_py.tma.descriptor import TensorMapTiled, encode
from cute_py.tma.emulator import Emulator, GlobalMemory, SharedMemory
from cute_py.tma.emulator.emulator import load_inside
from cute_py.tma.emulator.geometry import geometry
from tests.each import each_of

BITS = {0: 8, 1: 16, 7: 32, 8: 64, 9: 16}
SOURCE = np.random.default_rng(0).integers(0, 256, 1 << 16, np.uint8)


@st.composite
def tiles(draw: st.DrawFn) -> tuple[TensorMapTiled, tuple[int, ...]]:
    """A map within 64 KiB, and coordinates that are inside, or step over an edge."""
    number = draw(st.sampled_from(sorted(BITS)))
    size, swizzle, rank = BITS[number] // 8, draw(st.integers(0, 3)), draw(st.integers(1, 4))
    inner = draw(st.sampled_from((16, 32, 64, 128))) // size
    inner = min(inner, (128, 32, 64, 128)[swizzle] // size)
    dims, box, strides, reach = [512 // size], [inner], [], 512
    for _ in range(rank - 1):
        dims.append(draw(st.integers(1, 5)))
        box.append(draw(st.integers(1, 4)))
        strides.append(reach)
        reach *= dims[-1]
    steps = (1, *draw(st.lists(st.integers(1, 2), min_size=rank - 1, max_size=rank - 1)))
    coords = (
        draw(st.integers(-1, 32)) * (16 // size),
        *[draw(st.integers(-1, n)) for n in dims[1:]],
    )
    return TensorMapTiled(number, 0, dims, strides, box, steps, swizzle=swizzle), coords


@given(tiles(), st.integers(0, 24), st.booleans())
def test_a_load_is_that_of_a_batch(tile: tuple[TensorMapTiled, tuple[int, ...]], place: int, named: bool) -> None:
    request, coords = tile
    raw, engine = encode(dataclasses.replace(request, global_address=4096)), Emulator(strict=True)
    one, many = SharedMemory(1 << 14, base=128), SharedMemory(1 << 14, base=128)
    gmem: Any = SOURCE
    if named:
        gmem = GlobalMemory()
        gmem.add("A", SOURCE, 4096)
    base = 0 if named else 4096
    want = engine.load_many(raw, gmem, [coords], many, smem_offsets=128 * place, gmem_base=base)
    got = engine.load(raw, gmem, coords, one, smem_offset=128 * place, gmem_base=base)
    assert got == want
    assert got.evidence == want.evidence
    assert np.array_equal(one.array, many.array)


MAP = TensorMapTiled(9, 0, (256, 64), (512,), (64, 8), swizzle=3)
PLAIN: dict[str, Any] = {
    "geometry": geometry(encode(MAP)),
    "gmem": SOURCE,
    "gmem_base": 0,
    "coords": (64, 8),
    "smem": np.zeros(4096, np.uint8),
    "smem_offset": 1024,
}


def test_a_plain_load_is_done() -> None:
    assert load_inside(**PLAIN) == 1024


@each_of(
    "change",
    [
        {"coords": (-64, 0)},
        {"coords": (193, 0)},
        {"coords": (0, 57)},
        {"coords": (4, 0)},
        {"coords": (0,)},
        {"coords": (True, 0)},
        {"coords": np.zeros(2, np.int64)},
        {"gmem": SOURCE[: 512 * 15 + 127]},
        {"gmem": SOURCE[::2]},
        {"gmem": SOURCE.view(np.uint16)},
        {"gmem": GlobalMemory()},
        {"gmem_base": 8192},
        {"gmem_base": -512},
        {"smem": np.zeros(2047, np.uint8)},
        {"smem": np.zeros(2048, np.int8)},
        {"smem": SOURCE[:2048].copy().reshape(2, 1024)},
        {"smem_offset": 64},
        {"smem_offset": -128},
        {"smem_offset": 3073},
        {"geometry": geometry(encode(dataclasses.replace(MAP, data_type=11, box_dim=(32, 8))))},
        {"geometry": geometry(encode(dataclasses.replace(MAP, box_dim=(32, 8))))},
        {"geometry": geometry(encode(TensorMapTiled(9, 0, (8, 8, 4), (512, 4096), (8, 8, 2), interleave=1)))},
    ],
)
def test_everything_else_goes_to_the_batch(change: dict[str, Any]) -> None:
    arguments = {**PLAIN, **change}
    before = np.array(arguments["smem"])
    assert load_inside(**arguments) is None
    assert np.array_equal(arguments["smem"], before)


def test_a_read_only_window_goes_to_the_batch() -> None:
    window = np.zeros(4096, np.uint8)
    window.setflags(write=False)
    assert load_inside(**{**PLAIN, "smem": window}) is None


def test_the_bytes_may_be_those_of_the_window() -> None:
    both = SOURCE.copy()
    want = SharedMemory(4096)
    Emulator().load_many(encode(MAP), both.copy(), [(64, 8)], want, smem_offsets=0)
    assert load_inside(**{**PLAIN, "gmem": both, "smem": both, "smem_offset": 4096 + 128 * 8}) == 1024
    assert np.array_equal(both[5120:6144], want.array[:1024])
