"""The exact words of what the emulator refuses and tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cute_py.errors import CuteError
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapTiled
from cute_py.tma.emulator.bulk import bulk_load
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.mbarrier import Mbarrier
from cute_py.tma.emulator.memory import GlobalMemory, SharedMemory
from cute_py.tma.simulate.diagnosis import Run, diagnose
from cute_py.tma.simulate.pipeline import Ring, RingLoad
from tests.each import each_of

TILE = encode(TensorMapTiled(9, 4096, (40, 12), (96,), (16, 4)))
COLUMN = encode(TensorMapIm2col(9, 4096, (16, 7, 6, 3), (32, 224, 1344), (-1, 2), (1, -1), 16, 4))
GMEM, SMEM = np.zeros(4032, np.uint8), np.zeros(1024, np.uint8)


def load(descriptor: bytes = TILE, coords: Any = (0, 0), **more: Any) -> None:
    operands: dict[str, Any] = {"gmem": GMEM, "smem": SMEM, "gmem_base": 4096} | more
    Emulator().load(descriptor, operands.pop("gmem"), coords, operands.pop("smem"), **operands)


def odd_map() -> bytes:
    data = bytearray(TILE)
    data[8] |= 2
    return bytes(data)


WORDS: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: load(coords=(4, 0)),
        "CUDA_ERROR_ILLEGAL_INSTRUCTION: inner coordinate = 8 bytes; must be a multiple of 16\n  coordinates : (4, 0)",
    ),
    (
        lambda: Emulator().load_many(TILE, GMEM, [(0, 0), (4, 0)], SMEM, smem_offsets=[0, 128], gmem_base=4096),
        "CUDA_ERROR_ILLEGAL_INSTRUCTION: inner coordinate = 8 bytes; must be a multiple of 16\n"
        "  coordinates : (4, 0)\n"
        "  instruction : 1",
    ),
    (
        lambda: Emulator().store(TILE, GMEM, (0, -3), SMEM, gmem_base=4096),
        "CUDA_ERROR_ILLEGAL_INSTRUCTION: coordinate[1] = -3; a store needs coordinates of at least 0\n"
        "  coordinates : (0, -3)",
    ),
    (
        lambda: load(COLUMN, (0, 9, 2, 0), im2col_offsets=(0, 0)),
        "CUDA_ERROR_ILLEGAL_INSTRUCTION: base coordinate of mode 1 = 9; must be in the bounding box -1 to 7\n"
        "  coordinates : (0, 9, 2, 0)",
    ),
    (
        lambda: Emulator().store(COLUMN, GMEM, (0, 0, 2, 0), SMEM, gmem_base=4096),
        "CUDA_ERROR_ILLEGAL_INSTRUCTION: an im2col store needs lower corners of at least 0 and upper corners of "
        "at most 0\n"
        "  lower corner : (-1, 2)\n"
        "  upper corner : (1, -1)",
    ),
    (
        lambda: Emulator().reduce("inc", TILE, GMEM, (0, 0), SMEM, gmem_base=4096),
        "CUDA_ERROR_ILLEGAL_INSTRUCTION: reduction 'inc' does not exist for element format BFLOAT16",
    ),
    (
        lambda: load(smem=np.zeros(96, np.uint8)),
        "CUDA_ERROR_ILLEGAL_ADDRESS: the box overruns shared memory\n"
        "  end of the box : 128 bytes\n"
        "  shared memory  : 96 bytes",
    ),
    (
        lambda: load(gmem=np.zeros(100, np.uint8)),
        "CUDA_ERROR_ILLEGAL_ADDRESS: the box reads or writes bytes of the tensor outside all memory ranges\n"
        "  address : 0x1064\n"
        "  ranges  : gmem 0x1000 to 0x1064",
    ),
    (
        lambda: load(smem_offset=64),
        "CUDA_ERROR_MISALIGNED_ADDRESS: shared-memory address = 64 bytes; must be a multiple of 128\n"
        "  offset : 64\n"
        "  base   : 0",
    ),
    (lambda: load(coords=(0, 0, 0)), "coordinates: 3 given; must be 2"),
    (lambda: load(coords=(0, 2**31)), "coordinates = (0, 2147483648); each must fit a 32-bit signed integer"),
    (
        lambda: load(COLUMN, (0, 0, 2, 0), im2col_offsets=(0, 256)),
        "im2col offsets = (0, 256); each must be 0 to [255, 255]",
    ),
    (lambda: load(im2col_offsets=(0, 0)), "im2col offsets with mode 'tile'; only the im2col modes take them"),
    (lambda: load(mode="im2col"), "mode 'im2col' does not fit a descriptor of kind tiled"),
    (
        lambda: load(odd_map()),
        "the descriptor has bits whose meaning is unknown\n  w1 : 0x0000000000000002",
    ),
    (
        lambda: load(mode="tile::gather4", coords=(0, 0, 1, 2, 3)),
        "tile::gather4 needs a descriptor of rank 2 with a box of one row and no interleave\n"
        "  rank       : 2\n"
        "  box        : (16, 4)\n"
        "  interleave : 0",
    ),
    (
        lambda: Emulator().load(
            TensorMapTiled(9, 4096, (40, 12), (96,), (16, 1)), GMEM, (0,) * 5, SMEM, mode="tile::gather4"
        ),
        "load: .tile::gather4 needs sm_100 or newer\n  architecture : sm_90a",
    ),
    (
        lambda: Emulator(strict=True).load(
            TensorMapTiled(0, 4096, (128, 8), (128,), (128, 2), swizzle=4), GMEM, (0, 0), SMEM, gmem_base=4096
        ),
        "not measured: swizzle B128_ATOM_32B\n  source : the PTX ISA\n  hint   : use Emulator(strict=False)",
    ),
    (
        lambda: bulk_load(GMEM, 4, SMEM, 8, 24),
        "size = 24 bytes; must be a multiple of 16\n"
        "  2 : address = 0x4; must be a multiple of 16 bytes\n  3 : offset = 0x8; must be a multiple of 16 bytes",
    ),
    (lambda: Mbarrier(0), "arrive count = 0; must be 1 to 1048575"),
    (
        lambda: Mbarrier(1, name="full[3]").complete_tx(2**20),
        "transaction count = -1048576; must stay within -1048575 and 1048575\n  barrier : full[3]\n  phase   : 0",
    ),
]


@each_of(("call", "text"), WORDS, ids=range(len(WORDS)))
def test_words(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(CuteError) as caught:
        call()
    assert str(caught.value) == text


def memory() -> GlobalMemory:
    held = GlobalMemory()
    held.add("A", np.zeros(4032, np.uint8), 4096)
    return held


def test_words_of_a_hang_with_a_race() -> None:
    def program(run: Run) -> None:
        full = run.barrier(512, name="full[0]")
        full.arrive_expect_tx(256)
        run.load(TILE, (0, 4), 0, full)
        run.read(0, 16, "wgmma")
        run.wait(full, 0)

    outcome = diagnose(program, Emulator(), memory(), SharedMemory(1024))
    assert str(outcome) == (
        "would hang: full[0] never completes phase 0\n"
        "  expected : 256 bytes\n"
        "  arrived  : 128 bytes\n"
        "  pending  : 0 of 1 arrival\n"
        "  load     : 128 bytes from load 0 at (0, 4)\n"
        "race: read before its barrier completed: wgmma meets load 0 at (0, 4) at shared bytes 0 to 15\n"
        "judged: 1 load, 1 wait\n"
        "not judged: the rest of the program, because the wait never ends\n"
        "not judged: order of landing: bytes landed in the order of the program; no other order was tried\n"
        "not judged: threads: one order of the calls was run; other orders, and other CTAs, were not"
    )


def test_words_of_a_ring_that_hangs() -> None:
    loads = [RingLoad(TILE, [(0, 0), (16, 0), (0, 4)])]
    line = Ring(Emulator(), memory(), SharedMemory(4096), loads, depth=2, expect_bytes=64).simulate()
    assert str(line) == (
        "stage 0  LLLLLLL\n"
        "stage 1  .LLLLLL\n"
        "would hang: full[0] never completes phase 0\n"
        "  expected : 64 bytes\n"
        "  arrived  : 128 bytes\n"
        "  pending  : 0 of 1 arrival\n"
        "  load     : 128 bytes from load 0 at (0, 0)\n"
        "judged: 2 loads\n"
        "not judged: the rest of the program, because the wait never ends\n"
        "not judged: 1 barrier: no thread waited for the current phase: full[1]\n"
        "not judged: order of landing: bytes landed in the order of the program; no other order was tried\n"
        "not judged: threads: one order of the calls was run; other orders, and other CTAs, were not"
    )
