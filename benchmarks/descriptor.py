"""How long tensor maps take: one encode, one decode, many at once; beside the driver's own call if there is one.

python -m benchmarks.descriptor [result.json]
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

import cute_py as cute
from benchmarks.beside import Row, medians_of, report, time_of
from cute_py.errors import CuteError
from cute_py.tma.descriptor import TensorMap, TensorMapIm2col, TensorMapTiled, decode, encode, encode_many, violations

REQUESTS: dict[str, TensorMap] = {
    "tiled rank 2": TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=3),
    "tiled rank 5": TensorMapTiled(
        6, 4096, (512, 1024, 8, 8, 8), (1024, 1 << 20, 1 << 23, 1 << 26), (64, 8, 2, 2, 2), swizzle=3
    ),
    "im2col rank 5": TensorMapIm2col(
        6, 4096, (64, 16, 16, 16, 2), (128, 2048, 32768, 1 << 19), (-1, -1, -1), (-1, -1, -1), 64, 64, swizzle=3
    ),
}
MAPS = 100_000
TURNS = 15


def seconds(calls: int, *actions: Any) -> list[float]:
    """Seconds of one call of each action: medians of runs of so many calls, in turns."""
    return medians_of(TURNS, *[(lambda: [()] * calls, action) for action in actions])


def grouped(rank: int) -> dict[str, Any]:
    """Fields of many maps as a grouped GEMM has them: addresses, sizes and strides differ, boxes do not."""
    generator = np.random.default_rng(rank)
    return {
        "data_type": 6,
        "global_address": generator.integers(1, 1 << 50, MAPS) * 16,
        "global_dim": generator.integers(1, 1 << 20, (MAPS, rank)),
        "global_strides": generator.integers(1, 1 << 30, (MAPS, rank - 1)) * 16,
        "box_dim": (64, 8, 2, 2, 2)[:rank],
        "swizzle": 3,
    }


def single() -> list[Row]:
    rows = []
    for name, request in REQUESTS.items():
        raw, fields, kind = encode(request), {f: getattr(request, f) for f in request.FIELDS}, type(request)
        encoded, decoded, judged, made = seconds(
            500,
            functools.partial(encode, request),
            functools.partial(decode, raw),
            functools.partial(violations, request),
            functools.partial(kind, **fields),
        )
        rows += [time_of(f"encode, {name}", encoded, 5.0), time_of(f"decode, {name}", decoded, 6.0)]
        rows += [time_of(f"violations, {name}", judged, None), time_of(f"construct, {name}", made, None)]
    return rows


def batches() -> list[Row]:
    rows = []
    for rank in (2, 5):
        whole = grouped(rank)
        plain = {name: value[0].tolist() if hasattr(value, "shape") else value for name, value in whole.items()}
        plain |= {name: tuple(value) for name, value in plain.items() if isinstance(value, list)}
        (taken,) = seconds(500, functools.partial(encode_many, plain))
        rows.append(time_of(f"encode_many, rank {rank}, 1 map, a map", taken, 10.0))
        for count, bound in ((1, 10.0), (10, None), (1_000, None), (10_000, 0.15), (MAPS, 0.15)):
            some = {name: value[:count] if hasattr(value, "shape") else value for name, value in whole.items()}
            (taken,) = seconds(max(1, 500 // count), functools.partial(encode_many, some))
            name = f"encode_many, rank {rank}, arrays of {count}, a map"
            rows.append(time_of(name, taken / count, bound))
    return rows


def atoms() -> Row:
    array = np.zeros((256, 256), np.float16)
    smem = cute.tma.make_smem_layout("K", "128B", "float16", (64, 64))
    (taken,) = seconds(20, functools.partial(cute.tma.make_tma_copy, "SM90_TMA_LOAD", array, smem))
    return time_of("make_tma_copy", taken, 400.0)


def of_the_driver() -> list[Row]:
    """The driver's call, arguments made beforehand; no row where there is no driver."""
    from cute_py.gpu.device import open_device
    from cute_py.gpu.driver import _arguments

    rows = []
    try:
        open_device().make_current()
        for name, request in REQUESTS.items():
            function, arguments = _arguments(request)
            (taken,) = seconds(500, functools.partial(function, *arguments))
            rows.append(time_of(f"the driver's encode, {name}", taken, None))
    except CuteError as problem:
        print(f"no driver: {problem.headline}")
    return rows


def main(arguments: list[str]) -> int:
    rows = [*single(), *batches(), atoms(), *of_the_driver()]
    path = arguments[0] if arguments else None
    return report("Tensor maps: time of one and of many", "python -m benchmarks.descriptor", rows, path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
