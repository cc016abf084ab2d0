"""Kernels that Triton compiled, with the bytes that an H200 left."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from tests.oracle.records import rows
from tests.shares import one_in

ROWS = {row["name"]: row for row in rows("triton_kernels")}
BFLOAT16, FLOAT16 = 9, 6
APPROXIMATE = {"softmax": 3}
"""Kernel -> units in the last place that a result may differ by: it uses ex2.approx and div.full, whose errors (2 ulp
each, PTX ISA 9.0) add up over one quotient of exponentials."""


def raw(held: dict[str, str]) -> Any:
    return np.frombuffer(base64.b64decode(held["b64"]), np.uint8).copy()


def launch(row: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a row, and the arrays by the number of their argument."""
    args: list[Any] = []
    arrays: dict[str, Any] = {}
    maps = iter(row["meta"]["tensordesc_meta"] or [])
    for number, one in enumerate(row["args"]):
        if not isinstance(one, dict):
            args.append(one)
            continue
        arrays[str(number)] = content = raw(one["bytes"])
        if not one.get("desc"):
            args.append(content)
            continue
        meta = next(maps)
        sizes, box = tuple(reversed(one["shape"])), tuple(reversed(meta["block_size"]))
        pitch = one["strides"][0] * meta["elem_size"]
        request = cute.tma.TensorMapTiled(BFLOAT16, 0, sizes, (pitch,), box, swizzle=meta["swizzle"])
        args += [(request, content), *one["shape"], *one["strides"]]
    return args, arrays


@pytest.mark.parametrize("schedule", one_in(2, ["eager", 1, "lazy"]))
@pytest.mark.parametrize("name", list(ROWS))
def test_a_kernel_leaves_the_bytes_of_the_device(name: str, schedule: str | int) -> None:
    row = ROWS[name]
    args, arrays = launch(row)
    run = cute.run_ptx(row["ptx"], grid=row["grid"], args=args, dynamic_shared=row["shared"], schedule=schedule)
    assert run.ok, run.explain()
    assert bool(run.approximate) == (name in APPROXIMATE)
    for number, held in row["outputs"].items():
        expected, found = raw(held), arrays[number]
        if name not in APPROXIMATE:
            assert np.array_equal(found, expected)
            continue
        apart = np.abs(expected.view(np.int32).astype(np.int64) - found.view(np.int32))
        assert apart.max() <= APPROXIMATE[name]
        assert (apart <= 2).mean() > 0.99


WORKLOADS = {row["name"]: row for row in rows("triton_workloads")}
"""Kernels like those of Triton's tutorials (benchmarks/kernels/triton_workloads.py has their sources)."""

TYPES = {
    "torch.float16": "float16",
    "torch.bfloat16": "bfloat16",
    "torch.float32": "float32",
    "torch.float8_e4m3fn": "float8_e4m3fn",
}

QUICK = (
    "add_bf16",
    "add_f64",
    "histogram",
    "transpose",
    "locked_sum",
    "swiglu",
    "embedding_gradient",
    "integer_mix",
    "matmul_descriptors",
)

BOUNDS = {
    # Approximate exponentials are rounded to float16 before they are multiplied: a unit of a term is 2**-11.
    "attention": (2.0**-11, 2.0**-11),
    # 1 / sqrt.approx (1 ulp) of a mean, times differences of numbers that are close to it.
    "layer_norm": (2.0**-20, 2.0**-22),
}
"""Kernel -> (absolute, relative) error of approximate functions, where it is not 2**-21 of the largest result."""


def numbers(held: Any, kind: str) -> Any:
    return np.asarray(
        held.view(np.dtype(cute.dtypes.as_dtype(TYPES.get(kind, kind.removeprefix("torch."))).numpy)), np.float64
    )


def check_workload(name: str, schedule: str) -> None:
    row = WORKLOADS[name]
    args, arrays = launch_workload(row)
    run = cute.run_ptx(row["ptx"], grid=row["grid"], args=args, dynamic_shared=row["shared"], schedule=schedule)
    assert run.ok, run.explain()
    for number, held in row["outputs"].items():
        expected, found = raw(held), np.ascontiguousarray(arrays[number]).view(np.uint8).reshape(-1)
        if np.array_equal(found, expected):
            continue
        assert run.approximate, "results may differ where approximate functions take part"
        x, y = (numbers(part, row["args"][int(number)]["dtype"]) for part in (found, expected))
        absolute, relative = BOUNDS.get(name, (2.0**-21 * float(np.abs(y).max()), 0.0))
        assert (np.abs(x - y) <= absolute + relative * np.abs(y)).all()


def launch_workload(row: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a row of `triton_workloads`."""
    args: list[Any] = []
    arrays: dict[str, Any] = {}
    maps = iter(row["tensordesc_meta"])
    for number, one in enumerate(row["args"]):
        if "value" in one:
            args.append(one["value"])
            continue
        arrays[str(number)] = content = raw(one["bytes"])
        if not one.get("desc"):
            args.append(content)
            continue
        meta = next(maps)
        sizes, box = tuple(reversed(one["shape"])), tuple(reversed(meta["block_size"]))
        request = cute.tma.TensorMapTiled(FLOAT16, 0, sizes, (one["strides"][0] * 2,), box, swizzle=meta["swizzle"])
        args += [(request, content), *one["shape"], *one["strides"]]
    return args, arrays


@pytest.mark.parametrize("name", QUICK)
def test_a_workload_leaves_the_bytes_of_the_device(name: str) -> None:
    check_workload(name, "eager")


@pytest.mark.slow
@pytest.mark.parametrize("name", list(WORKLOADS))
def test_every_workload_leaves_the_bytes_of_the_device(name: str) -> None:
    for schedule in ("eager", "lazy"):
        check_workload(name, schedule)


def test_both_schedules_leave_the_same_bytes() -> None:
    row = ROWS["tma_copy"]
    args, arrays = launch(row)
    run = cute.run_ptx(row["ptx"], grid=row["grid"], args=args, dynamic_shared=row["shared"])
    assert (run.ok, run.schedules) == (True, ("eager", "lazy"))
    assert np.array_equal(arrays["1"], raw(row["outputs"]["1"]))


def test_too_few_bytes_of_shared_memory_are_found() -> None:
    row = ROWS["tma_copy"]
    args, _ = launch(row)
    run = cute.run_ptx(row["ptx"], grid=row["grid"], args=args, dynamic_shared=row["shared"] - 8)
    assert [one.rule for one in run.diagnostics] == ["out of bounds"]


def test_a_wrong_byte_count_is_a_hang_that_names_the_barrier() -> None:
    row = ROWS["tma_copy"]
    args, _ = launch(row)
    text = row["ptx"].replace("[%r1], 8192;", "[%r1], 8208;")
    run = cute.run_ptx(text, grid=row["grid"], args=args, dynamic_shared=row["shared"])
    assert [one.rule for one in run.diagnostics if one.severity == "error"] == ["hang"]
    assert "8192 of 8208 bytes arrived" in run.diagnostics[0].message


DESCRIPTORS = {row["name"]: row for row in rows("triton_descriptors")}
"""Kernels that make their tensor maps themselves (benchmarks/kernels/triton_descriptors.py has their sources)."""


@pytest.mark.parametrize("schedule", one_in(3, ["eager", "lazy", 1]))
def test_a_persistent_product_with_maps_made_on_the_device(schedule: str | int) -> None:
    row, (m, n, k) = DESCRIPTORS["persistent_matmul"], (384, 256, 192)
    dice = np.random.default_rng(1)
    a, b = (dice.integers(-3, 4, (count, k)).astype(np.float16) for count in (m, n))
    c, scratch = np.zeros((m, n), np.float16), np.zeros(2 * row["scratch"], np.uint8)
    args = [a, b, c, m, n, k, scratch, None]
    run = cute.run_ptx(row["ptx"], grid=2, args=args, dynamic_shared=row["shared"], schedule=schedule)
    assert run.ok, run.explain()
    assert np.array_equal(c, a.astype(np.int64) @ b.astype(np.int64).T)


def test_reductions_through_a_map_made_on_the_device() -> None:
    """Four CTAs add to the same 256 numbers; their reductions need no order among themselves."""
    row = DESCRIPTORS["summed_blocks"]
    x = np.random.default_rng(2).integers(-9, 10, 1024).astype(np.float32)
    y, scratch = np.ones(256, np.float32), np.zeros(4 * row["scratch"], np.uint8)
    run = cute.run_ptx(row["ptx"], grid=4, args=[x, y, 256, scratch, None], dynamic_shared=row["shared"])
    assert run.ok, run.explain()
    assert np.array_equal(y, 1 + x.reshape(4, 256).sum(axis=0))
