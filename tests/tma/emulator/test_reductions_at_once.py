"""Many reductions at once leave the bytes that they leave one by one: tilings, edges, boxes that meet, boxes twice."""

from __future__ import annotations

import numpy as np

from cute_py.tma.descriptor import TensorMapDataType, TensorMapTiled, encode, format_row
from cute_py.tma.emulator import Emulator
from cute_py.tma.emulator.values import REDUCTIONS
from tests.each import each_of

ROWS = 24
TILING = [(x, y) for y in range(0, 24, 8) for x in range(0, 96, 16)]
COORDINATES = {
    "a tiling": TILING,
    "in another order": TILING[::-1],
    "beyond the end": [*TILING, (96, 0), (0, 24), (80, 16)],
    "twice": [*TILING, *TILING[:3]],
    "half a box apart": [(x, y) for y in range(0, 16, 4) for x in range(0, 80, 16)],
}
"""Columns in sixteenths of a box, rows."""


@each_of("where", COORDINATES)
@each_of(("op", "format_"), [(op, f) for op, rows in REDUCTIONS.items() for f in sorted(rows)], every=6)
def test_at_once_is_one_by_one(op: str, format_: TensorMapDataType, where: str) -> None:
    generator, engine = np.random.default_rng(3), Emulator()
    size = format_row(format_).bits // 8
    wide = 32 // size
    coords = np.array(COORDINATES[where]) // [16, 1] * [wide, 1]
    request = TensorMapTiled(format_, 0, (6 * wide, ROWS), (192,), (wide, 8), swizzle=1)
    tensor = generator.integers(0, 256, ROWS * 192, np.uint8)
    shared = generator.integers(0, 256, len(coords) * 256, np.uint8)
    once, each = tensor.copy(), tensor.copy()
    engine.store_many(encode(request), once, coords, shared, smem_offsets=np.arange(len(coords)) * 256, op=op)
    for i, coord in enumerate(coords.tolist()):
        engine.reduce(op, encode(request), each, coord, shared, smem_offset=256 * i)
    assert np.array_equal(once, each)
    assert not np.array_equal(once, tensor)
