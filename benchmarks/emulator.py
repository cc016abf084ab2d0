"""Speed and memory of the TMA emulator.

    python -m benchmarks.emulator [--out docs/measurements/emulator-x86.json]

A 64 MiB bf16 tensor (8192 x 4096) is copied by tiles of 128 rows x 64 columns with a 128-byte swizzle, each loaded into
shared memory and stored from there; the time is compared with numpy.copyto of the same array in the same run. The
shared-memory images of sampled tiles are compared with an index computed here, so that the speed is that of the
right bytes. Exits with 1 if a bound does not hold.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import cute_py as cute
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.emulator.emulator import Emulator

ROWS, COLUMNS, TILE_ROWS, TILE_COLUMNS = 8192, 4096, 128, 64
TILE_BYTES = TILE_ROWS * TILE_COLUMNS * 2
SOURCE, TARGET = 0x7F00_0000_0000, 0x7F10_0000_0000
WINDOWS = 128
"""Tiles in shared memory at a time: one in each of 128 CTAs."""

COPY_RATIO, TILE_MICROSECONDS, MEMORY_RATIO = 0.2, 100.0, 3.0


def tensor_map(address: int) -> bytes:
    """The map of one of the two tensors."""
    return encode(TensorMapTiled(9, address, (COLUMNS, ROWS), (COLUMNS * 2,), (TILE_COLUMNS, TILE_ROWS), swizzle=3))


def best(call: Callable[[], object], times: int) -> float:
    """Seconds of the fastest of several runs."""
    fastest = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        call()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def tile_image(source: NDArray[np.uint8], coord: tuple[int, int]) -> NDArray[np.uint8]:
    """What shared memory holds of a tile: piece c of row r lies at place c ^ (r % 8) of the row's 128 bytes."""
    x, y = coord
    rows = source.reshape(ROWS, COLUMNS * 2)[y : y + TILE_ROWS, 2 * x : 2 * (x + TILE_COLUMNS)]
    pieces = rows.reshape(TILE_ROWS, 8, 16)
    place = np.arange(8) ^ (np.arange(TILE_ROWS) % 8)[:, None]
    return np.take_along_axis(pieces, place[:, :, None], axis=1).reshape(-1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", help="write the numbers as JSON")
    options = parser.parse_args()
    engine = Emulator()
    source = np.random.default_rng(0).integers(0, 256, ROWS * COLUMNS * 2, np.uint8)
    target = np.zeros_like(source)
    load, store = tensor_map(SOURCE), tensor_map(TARGET)
    coords = np.stack(np.meshgrid(np.arange(0, COLUMNS, TILE_COLUMNS), np.arange(0, ROWS, TILE_ROWS)), -1).reshape(
        -1, 2
    )
    smem = np.zeros(WINDOWS * TILE_BYTES, np.uint8)
    windows = np.arange(WINDOWS) * TILE_BYTES

    def copy() -> None:
        engine.copy_many(
            load,
            source,
            coords,
            store,
            target,
            coords,
            smem,
            smem_offsets=windows,
            source_base=SOURCE,
            destination_base=TARGET,
        )

    array = source.view(np.uint16).reshape(ROWS, COLUMNS)
    atom = cute.tma.make_tma_copy(
        "SM90_TMA_LOAD", array, cute.tma.make_smem_layout("K", "128B", "uint16", (TILE_ROWS, TILE_COLUMNS))
    )
    other = np.zeros_like(array)
    copyto = whole = public = float("inf")
    for _ in range(7):  # In turn, so that a busy moment of the machine meets all of them.
        copyto = min(copyto, best(lambda: np.copyto(target, source), 1))
        target[:] = 0
        whole = min(whole, best(copy, 1))
        result = cute.tma.copy(atom, array, other)
        public = min(public, result.seconds)
    right = np.array_equal(source, target) and bool(result.equal)

    tile = np.zeros(TILE_BYTES, np.uint8)
    single = best(lambda: [engine.load(load, source, (64, 128), tile, gmem_base=SOURCE) for _ in range(50)], 9) / 50
    samples = np.random.default_rng(1).choice(len(coords), 40, replace=False)
    for x, y in coords[samples].tolist():
        engine.load(load, source, (x, y), tile, gmem_base=SOURCE)
        right = right and np.array_equal(tile, tile_image(source, (x, y)))
    last = [smem[i * TILE_BYTES : (i + 1) * TILE_BYTES] for i in range(WINDOWS)]
    for image, (x, y) in zip(last, coords[-WINDOWS:].tolist(), strict=True):
        right = right and np.array_equal(image, tile_image(source, (x, y)))

    tracemalloc.start()
    copy()
    peak = tracemalloc.get_traced_memory()[1] + source.nbytes + target.nbytes
    tracemalloc.stop()

    ratio, memory = copyto / whole, peak / (source.nbytes + target.nbytes)
    print(f"numpy.copyto of 64 MiB        {copyto * 1e3:8.2f} ms")
    print(f"copy by 4096 tiles            {whole * 1e3:8.2f} ms  {ratio:6.3f} x numpy.copyto  (bound {COPY_RATIO})")
    print(f"the same by cute.tma.copy     {public * 1e3:8.2f} ms  {copyto / public:6.3f} x numpy.copyto")
    print(f"one tile of 128 x 64          {single * 1e6:8.1f} us  (bound {TILE_MICROSECONDS})")
    print(f"peak memory                   {memory:8.3f} x the tensors'  (bound {MEMORY_RATIO})")
    print(f"bytes of the copy and of {40 + WINDOWS} tile images: {'right' if right else 'WRONG'}")
    if options.out:
        numbers = {
            "machine": platform.processor() or platform.machine(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "date": datetime.date.today().isoformat(),
            "numpy.copyto of 64 MiB, ms": round(copyto * 1e3, 3),
            "copy_many, ms": round(whole * 1e3, 3),
            "copy_many, ratio to numpy.copyto": round(ratio, 3),
            "cute.tma.copy, ms": round(public * 1e3, 3),
            "cute.tma.copy, ratio to numpy.copyto": round(copyto / public, 3),
            "one tile, us": round(single * 1e6, 1),
            "peak memory, ratio to the tensors": round(memory, 3),
            "bytes and images right": right,
        }
        Path(options.out).write_text(json.dumps(numbers, indent=1) + "\n")
    holds = right and ratio >= COPY_RATIO and single * 1e6 <= TILE_MICROSECONDS and memory <= MEMORY_RATIO
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
