"""Speed of atoms and tiled operations: each figure beside its bound.

    python benchmarks/atom.py [result.json]

Figures: the look-up of an atom; `make_tiled_mma` with one partition of a coordinate tensor, of atom layouts and extents
that differ from call to call, so that nothing kept answers; every row of the tables, in a fresh process, after the
import; that the import makes no row; `gemm` of 128x128x64. A time is the best of several runs. Exits with 1 if a
bound does not hold.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import cute_py as cute
from cute_py import Int

REPEATS = 15
GMMA = "SM90_64x128x16_F32BF16BF16_SS<GMMA::Major::K,GMMA::Major::MN,GMMA::ScaleIn::One,GMMA::ScaleIn::One>"
WARP = "SM80_16x8x16_F32F16F16F32_TN"
GEMMS = (
    ("one FMA a thread", "UniversalFMA<float,float,float,float>", (16, 16, 1)),
    ("mma.sync", WARP, (2, 2, 1)),
    ("wgmma", "SM90_64x128x16_F32F16F16_SS", (2, 1, 1)),
    ("tcgen05", "SM100_MMA_F16BF16_SS<half_t,half_t,float,128,128,K,K>", (1, 1, 1)),
)
ALL_ROWS = """
import time
import cute_py.atom as atom
from cute_py.atom import mma_atoms
made = mma_atoms._operations.cache_info().currsize
start = time.perf_counter()
rows = len(list(atom.MMA_ATOMS.values())) + len(list(atom.COPY_ATOMS.values()))
print(time.perf_counter() - start, made, rows)
"""


def best(call: Callable[[], object], times: int) -> float:
    """Seconds of one call: the fastest of several runs of `times` calls."""
    fastest = math.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(times):
            call()
        fastest = min(fastest, (time.perf_counter() - start) / times)
    return fastest


def distinct_mmas() -> Iterator[tuple[tuple[Int, ...], cute.Tensor]]:
    """Atom layouts and coordinate tensors, no two pairs alike."""
    for step in itertools.count(1):
        for m, n in itertools.product((1, 2, 4), (1, 2)):
            extent = (Int(16 * m * step), Int(8 * n * step))
            yield (Int(m), Int(n), Int(1)), cute.make_identity_tensor(extent)


def tiled_mma(pairs: Iterator[tuple[tuple[Int, ...], cute.Tensor]]) -> float:
    """Seconds of making a tiled MMA and of its first partition."""
    fastest = math.inf
    for _ in range(REPEATS * 20):
        atoms, whole = next(pairs)
        start = time.perf_counter()
        cute.make_tiled_mma(WARP, atoms).get_slice(5).partition_C(whole)
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def all_rows() -> tuple[float, int, int]:
    """(seconds, operations that the import had made, rows) of all tables, in fresh processes."""
    texts = [
        subprocess.run([sys.executable, "-c", ALL_ROWS], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(5)
    ]
    return min(float(t[0]) for t in texts), int(texts[0][1]), int(texts[0][2])


def gemm(name: str, atoms: tuple[int, int, int]) -> float:
    mma = cute.make_tiled_mma(name, atoms)
    a, b = np.arange(128 * 64).reshape(128, 64) % 7 - 3, np.arange(128 * 64).reshape(128, 64) % 5 - 2
    return best(lambda: cute.gemm(mma, a, b), 3)


def main() -> int:
    seconds, made, rows = all_rows()
    figures = [
        ("look-up of an atom", best(lambda: cute.mma_atom(GMMA), 1000) * 1e6, 5.0, "us"),
        ("look-up of a row", best(lambda: cute.MMA_ATOMS[WARP], 1000) * 1e6, 5.0, "us"),
        ("make_tiled_mma and a partition", tiled_mma(distinct_mmas()) * 1e6, 250.0, "us"),
        (f"all {rows} rows", seconds * 1e3, 200.0, "ms"),
        ("operations made by the import", float(made), 0.0, ""),
        *((f"gemm 128x128x64, {how}", gemm(name, atoms) * 1e3, 50.0, "ms") for how, name, atoms in GEMMS),
    ]
    for name, value, bound, unit in figures:
        print(f"{name:34} {value:9.2f} {unit:2}   bound {bound:6.1f}   {'ok' if value <= bound else 'TOO SLOW'}")
    if len(sys.argv) > 1:
        machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
        rows_ = [{"figure": n, "value": round(v, 3), "bound": b, "unit": u} for n, v, b, u in figures]
        Path(sys.argv[1]).write_text(json.dumps({"benchmark": "atom", **machine, "rows": rows_}, indent=2) + "\n")
    return 0 if all(value <= bound for _, value, bound, _ in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
