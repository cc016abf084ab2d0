"""How long tensor maps take: one encode, one decode, many at once; beside the driver's own call if there is one.

    python benchmarks/descriptor.py [result.json]

Prints the numbers and writes them as JSON. Each time is the best of several repeats on one core. Goals: one encode and
one decode at most 10 us, `encode_many` at least 3,000,000 maps a second.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

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
GOALS = {"encode_us": 10.0, "decode_us": 10.0, "maps_per_second": 3_000_000.0}


def best_us(action: Callable[[], object], number: int = 2_000, repeats: int = 9) -> float:
    """Microseconds of one call: the best of `repeats` runs of `number` calls."""
    return min(timeit.repeat(action, number=number, repeat=repeats)) / number * 1e6


def grouped(rank: int) -> dict[str, Any]:
    """Fields of many maps as a grouped GEMM has them: addresses, sizes and strides differ, boxes do not."""
    generator = numpy.random.default_rng(rank)
    return {
        "data_type": 6,
        "global_address": generator.integers(1, 1 << 50, MAPS) * 16,
        "global_dim": generator.integers(1, 1 << 20, (MAPS, rank)),
        "global_strides": generator.integers(1, 1 << 30, (MAPS, rank - 1)) * 16,
        "box_dim": (64, 8, 2, 2, 2)[:rank],
        "swizzle": 3,
    }


def single() -> dict[str, dict[str, float]]:
    found = {}
    for name, request in REQUESTS.items():
        raw = encode(request)
        fields = {field: getattr(request, field) for field in request.FIELDS}
        kind = type(request)
        found[name] = {
            "encode_us": best_us(lambda request=request: encode(request)),  # type: ignore[misc]
            "decode_us": best_us(lambda raw=raw: decode(raw)),  # type: ignore[misc]
            "violations_us": best_us(lambda request=request: violations(request)),  # type: ignore[misc]
            "construct_us": best_us(lambda kind=kind, fields=fields: kind(**fields)),  # type: ignore[misc]
        }
    return found


def batches() -> dict[str, float]:
    found = {}
    for rank in (1, 2, 3, 5):
        arrays = grouped(rank)
        found[f"rank {rank}"] = MAPS / (best_us(lambda arrays=arrays: encode_many(arrays), 1, 7) / 1e6)  # type: ignore[misc]
    return found


def of_the_driver() -> dict[str, float] | str:
    """Microseconds of the driver's call, arguments made beforehand; or why there is none."""
    from cute_py.gpu.device import open_device
    from cute_py.gpu.driver import _arguments

    try:
        open_device().make_current()
        found = {}
        for name, request in REQUESTS.items():
            function, arguments = _arguments(request)
            found[name] = best_us(lambda function=function, arguments=arguments: function(*arguments))  # type: ignore[misc]
        return found
    except CuteError as problem:
        return problem.headline


def measure() -> dict[str, Any]:
    ours, many, drivers = single(), batches(), of_the_driver()
    result: dict[str, Any] = {
        "benchmark": "descriptor",
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "maps_in_a_batch": MAPS,
        "goals": GOALS,
        "single": ours,
        "encode_many_maps_per_second": many,
        "driver_us": drivers,
    }
    if isinstance(drivers, dict):
        result["encode_over_driver"] = {name: ours[name]["encode_us"] / drivers[name] for name in drivers}
        slowest = min(many.values())
        result["driver_over_encode_many"] = {name: time * slowest / 1e6 for name, time in drivers.items()}
    result["goals_met"] = {
        "encode_us": max(row["encode_us"] for row in ours.values()) <= GOALS["encode_us"],
        "decode_us": max(row["decode_us"] for row in ours.values()) <= GOALS["decode_us"],
        "maps_per_second": min(many.values()) >= GOALS["maps_per_second"],
    }
    return result


def main(arguments: list[str]) -> int:
    path = Path(arguments[0]) if arguments else Path(__file__).with_name("descriptor.json")
    result = measure()
    text = json.dumps(result, indent=2)
    path.write_text(text + "\n")
    print(text)
    return 0 if all(result["goals_met"].values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
