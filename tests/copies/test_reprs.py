"""What runs copies prints itself in one short line."""

from __future__ import annotations

import numpy as np

import cute_py as cute
from cute_py import tma
from cute_py.tma.simulate.diagnosis import Run
from tests.each import each_of

X = np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
ATOM = tma.make_tma_copy("SM90_TMA_LOAD", X, cute.Layout((cute.Int(32), cute.Int(32)), cute.LayoutRight))
TILE = tma.execute(ATOM, X, (0, 1))
SMEM, GMEM = tma.SharedMemory(4096), tma.GlobalMemory()
RANGE = GMEM.add("A", np.zeros(64, np.uint8), 4096)
LINES = [
    (tma.copy(ATOM, X), "<copy of 8192 bytes by emulator: 4 tiles, 4 loads of 2048 bytes; equal>"),
    (TILE, "<tile of 2048 bytes by emulator: 1 load of 2048 bytes>"),
    (SMEM, "SharedMemory(4096, base=0, poison=205, rank=0)"),
    (GMEM, "<global memory: A at 0x1000 to 0x1040>"),
    (tma.GlobalMemory(), "<global memory: no ranges>"),
    (RANGE, "<range 'A' at 0x1000 to 0x1040>"),
    (tma.Mbarrier(2, name="full[0]"), "<full[0], phase 0: 2 of 2 arrivals pending, 0 of 0 bytes arrived>"),
    (tma.Trace(ATOM.descriptor, TILE.coords, TILE.smem_offsets), "<trace of 1 instruction, mode tile>"),
    (tma.Cluster(2, 1024), "Cluster(2, 1024, base=0, poison=205)"),
    (tma.TensormapProxy(), "<tensor maps at no address>"),
    (Run(tma.Emulator(), GMEM, SMEM), f"<run on {SMEM!r}: 0 instructions, 0 races>"),
]


@each_of(("value", "line"), LINES, ids=[type(value).__name__ for value, _ in LINES])
def test_repr_is_one_line(value: object, line: str) -> None:
    assert repr(value) == line
