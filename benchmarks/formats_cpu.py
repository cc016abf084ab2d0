"""Formats on a CPU beside PyTorch: `python -m benchmarks.formats_cpu [ROWS] [COLUMNS]`.

Casts, MXFP8, MXFP4 and NVFP4 of a random matrix; the two take turns, the best of seven is printed. PyTorch is eager;
torchao has the formats. Needs torch and torchao.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import cute_py as cute
from cute_py import formats

ROUNDS = 7


def best(works: tuple[Callable[[], Any], ...]) -> list[float]:
    """Milliseconds of each, taking turns."""
    times = [[0.0] for _ in works]
    for _ in range(ROUNDS):
        for work, taken in zip(works, times, strict=True):
            begin = time.perf_counter()
            work()
            taken.append(1000 * (time.perf_counter() - begin))
    return [min(taken[2:]) for taken in times]


def works(mine: Any, theirs: Any) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Work -> (here, in PyTorch), of the same numbers."""
    import torch
    from torchao.prototype.mx_formats.mx_tensor import ScaleCalculationMode, to_mx
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize, per_tensor_amax_to_scale

    e4m3, e2m1 = torch.float8_e4m3fn, torch.float4_e2m1fn_x2
    floor, rceil = ScaleCalculationMode.FLOOR, ScaleCalculationMode.RCEIL
    total = per_tensor_amax_to_scale(theirs.float().abs().max())

    def here(form: formats.Format) -> Callable[[], Any]:
        return lambda: cute.copy(mine, form)

    return {
        "cast to e4m3": (lambda: formats.cast(mine, "e4m3"), lambda: theirs.to(e4m3)),
        "MXFP8, floor": (
            here(formats.mxfp8(rule="floor", scales="linear")),
            lambda: to_mx(theirs, e4m3, 32, floor),
        ),
        "MXFP8, rceil": (here(formats.mxfp8(scales="linear")), lambda: to_mx(theirs, e4m3, 32, rceil)),
        "MXFP4, floor": (
            here(formats.mxfp4(rule="floor", scales="linear")),
            lambda: to_mx(theirs, e2m1, 32, floor),
        ),
        "NVFP4": (here(formats.nvfp4(scales="linear")), lambda: nvfp4_quantize(theirs, 16, total)),
    }


def main(rows: int, columns: int) -> None:
    import torch

    x = np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)
    print(f"{rows} x {columns}, PyTorch {torch.__version__}, {torch.get_num_threads()} threads; milliseconds")
    print(f"{'work':<28}{'cute_py':>9}{'PyTorch':>9}")
    pairs = {
        "float32": works(x, torch.from_numpy(x)),
        "bf16": works(x.astype(ml_dtypes.bfloat16), torch.from_numpy(x).to(torch.bfloat16)),
    }
    for name, listed in pairs.items():
        for work, pair in listed.items():
            ours, other = best(pair)
            print(f"{name + ', ' + work:<28}{ours:>9.0f}{other:>9.0f}")


if __name__ == "__main__":
    sizes = [int(text) for text in sys.argv[1:3]]
    main(*(sizes if len(sizes) == 2 else (4096, 4096)))
