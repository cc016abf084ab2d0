"""Emulated instructions beside numpy programs written by hand, medians of several turns.

    python -m benchmarks.emulator_peers [result.json]

A single load of 16 KiB with a 128-byte swizzle beside a gather through an index made beforehand, bound 2 x; reductions
of 4 MiB of every type, in 256 boxes, beside the same with numpy's own operators, bound 3 x. Exits with 1 if one is
broken.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from cute_py.dtypes import as_dtype
from cute_py.tma.descriptor import TensorMapDataType, TensorMapTiled, encode, format_row
from cute_py.tma.emulator import Emulator
from cute_py.tma.emulator.values import REDUCTIONS

SIDE, BOX = 4096, 16384
"""Bytes of a row of the tensor, which has 1024; bytes of a box of 128 rows."""
LINE = np.arange(128)[:, None]
PLACE = np.arange(8) ^ (LINE % 8)
ENGINE = Emulator()


def medians(turns: int, *calls: Callable[[], object]) -> list[float]:
    """Seconds of each call; the calls take turns."""
    taken: list[list[float]] = [[] for _ in calls]
    for _ in range(turns):
        for found, call in zip(taken, calls, strict=True):
            start = time.perf_counter()
            call()
            found.append(time.perf_counter() - start)
    return list(map(statistics.median, taken))


def load() -> tuple[float, float]:
    source, tile = np.random.default_rng(0).integers(0, 256, 1024 * SIDE, np.uint8), np.zeros(BOX, np.uint8)
    tensor_map = encode(TensorMapTiled(9, 0, (SIDE // 2, 1024), (SIDE,), (64, 128), swizzle=3))
    pieces, out = source.view("V16").reshape(1024, SIDE // 16), tile.view("V16").reshape(128, 8)

    def by_hand() -> None:
        out[...] = pieces[128:256, 8:16][LINE, PLACE]

    ours, theirs = medians(301, lambda: ENGINE.load(tensor_map, source, (64, 128), tile), by_hand)
    return ours, theirs


def by_hand(op: str, is_float: bool, old: Any, new: Any) -> None:
    """`old` becomes `old OP new`."""
    plain = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "add": np.add}
    plain |= {"min": np.fmin if is_float else np.minimum, "max": np.fmax if is_float else np.maximum}
    if op in plain:
        with np.errstate(all="ignore"):
            plain[op](old, new, out=old)
    elif op == "inc":
        old[...] = np.where(old >= new, 0, old + 1)
    else:
        old[...] = np.where((old == 0) | (old > new), new, old - 1)


def reduction(op: str, data_type: TensorMapDataType) -> tuple[float, float]:
    row = format_row(data_type)
    kind, size = as_dtype(row.dtypes[0]).numpy, row.bits // 8
    values = np.random.default_rng(1).standard_normal(1024 * SIDE // size) * 1000
    tensor = values.astype(kind if row.is_float else np.int64).astype(kind).view(np.uint8).copy()
    shared = tensor.copy()
    columns, wide = SIDE // size, 128 // size
    tensor_map = encode(TensorMapTiled(data_type, 0, (columns, 1024), (SIDE,), (wide, 128), swizzle=3))
    grid = np.stack(np.meshgrid(np.arange(0, columns, wide), np.arange(0, 1024, 128)), -1).reshape(-1, 2)
    offsets = np.arange(len(grid)) * BOX
    old = tensor.view(kind).reshape(8, 128, SIDE // 128, wide)
    tiles = shared.view("V16").reshape(8, SIDE // 128, 128, 8)

    def hand() -> None:
        rows = np.ascontiguousarray(tiles[:, :, LINE, PLACE].transpose(0, 2, 1, 3))
        by_hand(op, row.is_float, old, rows.view(np.uint8).view(kind).reshape(old.shape))

    def ours() -> None:
        ENGINE.store_many(tensor_map, tensor, grid, shared, smem_offsets=offsets, op=op)

    mine, theirs = medians(7, ours, hand)
    return mine, theirs


def main() -> int:
    rows: list[dict[str, Any]] = []
    work: list[tuple[str, Callable[[], tuple[float, float]], float]] = [("single load of 16 KiB", load, 2.0)]
    for op, types in REDUCTIONS.items():
        work += [(f"{op} {t.name}", lambda op=op, t=t: reduction(op, t), 3.0) for t in sorted(types)]  # type: ignore[misc]
    for what, measure, bound in work:
        ours, theirs = measure()
        rows.append({"what": what, "ours_us": ours * 1e6, "numpy_us": theirs * 1e6, "ratio": round(ours / theirs, 2)})
        rows[-1]["bound"] = bound
        print(f"{what:<24} {ours * 1e6:9.1f} us  numpy {theirs * 1e6:9.1f} us  {ours / theirs:5.2f} x  (bound {bound})")
    if len(sys.argv) > 1:
        report = {
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, shared with other work",
            "python": platform.python_version(),
            "numpy": np.__version__,
            "rows": rows,
        }
        Path(sys.argv[1]).write_text(json.dumps(report, indent=1) + "\n")
    return int(any(row["ratio"] > row["bound"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
