"""Numbers through the conversions of CUDA's own headers on the host.

    python -m tests.oracle.record.cuda_casts OUT.npz [SEED]       4,096 numbers, recorded
    python -m tests.oracle.record.cuda_casts compare [SEED]       1,245,184 numbers against cute_py, counted

Needs g++ and the CUDA headers (CUDA_PATH, /usr/local/cuda).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

COLUMNS: Final = (
    ("e4m3", "nearest_even", True),
    ("e4m3", "nearest_even", False),
    ("e5m2", "nearest_even", True),
    ("e5m2", "nearest_even", False),
    ("e3m2", "nearest_even", True),
    ("e2m3", "nearest_even", True),
    ("e2m1", "nearest_even", True),
    ("ue8m0", "toward_zero", True),
    ("ue8m0", "toward_zero", False),
    ("ue8m0", "up", True),
    ("ue8m0", "up", False),
)
"""(type, rounding, saturate) of each column."""

PROGRAM: Final = r"""
#include <cuda_fp8.h>
#include <cuda_fp6.h>
#include <cuda_fp4.h>
#include <cstdio>
int main() {
  float x;
  while (fread(&x, 4, 1, stdin) == 1) {
    unsigned char o[11] = {
      __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3), __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E4M3),
      __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2), __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E5M2),
      __nv_cvt_float_to_fp6(x, __NV_E3M2, cudaRoundNearest), __nv_cvt_float_to_fp6(x, __NV_E2M3, cudaRoundNearest),
      __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest),
      __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundZero), __nv_cvt_float_to_e8m0(x, __NV_NOSAT, cudaRoundZero),
      __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf),
      __nv_cvt_float_to_e8m0(x, __NV_NOSAT, cudaRoundPosInf)};
    fwrite(o, 1, 11, stdout);
  }
}
"""


def numbers(count: int, seed: int) -> NDArray[np.float32]:
    """Random bits; every bf16 number; and its neighbours in float32."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    halves = np.arange(1 << 16, dtype=np.uint32) << 16
    if count < 1 << 16:
        halves = rng.choice(halves, count)
        return np.concatenate([bits, halves, halves | 1, halves | 0xFFFF]).view(np.float32)
    return np.concatenate([bits, halves, halves | 1, halves | 0xFFFF]).view(np.float32)


def converted(x: NDArray[np.float32]) -> NDArray[np.uint8]:
    """(numbers, columns) codes."""
    cuda = Path(os.environ.get("CUDA_PATH", "/usr/local/cuda")) / "include"
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "p.cpp", Path(folder) / "p"
        source.write_text(PROGRAM)
        subprocess.run(["g++", "-O1", "-std=c++17", "-w", f"-I{cuda}", str(source), "-o", str(program)], check=True)
        made = subprocess.run([str(program)], input=x.tobytes(), capture_output=True, check=True).stdout
    return np.frombuffer(made, np.uint8).reshape(-1, len(COLUMNS))


def compare(seed: int) -> None:
    import cute_py as cute

    x = numbers(1 << 20, seed)
    theirs = converted(x)
    for column, (name, rounding, saturate) in enumerate(COLUMNS):
        made: Any = cute.formats.codes(cute.formats.cast(x, name, rounding=rounding, saturate=saturate))
        wrong = made != theirs[:, column]
        counts = int((wrong & ~np.isnan(x)).sum()), int((wrong & np.isnan(x)).sum())
        print(f"{name}, {rounding}, saturate={saturate}: {counts[0]} of {x.size} numbers differ, {counts[1]} NaN")


if __name__ == "__main__":
    seed_given = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    if sys.argv[1] == "compare":
        compare(seed_given)
    else:
        given = numbers(1024, seed_given)
        np.savez_compressed(sys.argv[1], x=given, codes=converted(given))
