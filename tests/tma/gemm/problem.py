"""Arrays of numpy for a case of `benchmarks.gemm`: small integers, whose products are exact."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gemm import BITS, Case, padded
from cute_py.dtypes import as_dtype


def arrays(case: Case, seed: int = 0, *, largest: int = 1) -> tuple[Any, Any]:
    """A (M,K) and B (N,K) of integers from -largest to largest, in the majors and with the row lengths of the case."""
    dice = np.random.default_rng(seed)
    kind = as_dtype(case.dtype).numpy

    def matrix(rows: int, major: str) -> Any:
        outer, inner = (rows, case.k) if major == "K" else (case.k, rows)
        wide = dice.integers(-largest, largest + 1, (outer, padded(inner, BITS[case.dtype]))).astype(kind)
        made = wide[:, :inner]
        return made if major == "K" else made.T

    return matrix(case.m, case.majors[0]), matrix(case.n, case.majors[1])


def output(case: Case) -> Any:
    """C (M,N), filled with what no sum is."""
    wide = np.full((case.m, padded(case.n, 16)), 999, np.float32).astype(as_dtype(case.c_dtype).numpy)
    return wide[:, : case.n]


def product(case: Case, a: Any, b: Any) -> Any:
    """A * B, and the epilogue, as C's type rounds it."""
    found = a.astype(np.float32) @ b.astype(np.float32).T
    if case.epilogue != "x":
        found = np.maximum(found, 0)
    return found.astype(as_dtype(case.c_dtype).numpy)
