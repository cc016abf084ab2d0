"""Kernels of CUTLASS's programs, compiled by nvcc and launched by their own host code: C is what numpy computes.

Small whole numbers make every order of sums exact. Where the kernel's order is known, one fused multiply-add for each
k, rising, random numbers are compared too: bit by bit.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cute_py.machine.cuda_source import find_nvcc
from tests.machine.cutlass_launch import launches, random_allocations, results, run, with_scalars
from tests.oracle.record.cutlass_kernels import PROGRAMS, build, launch
from tests.oracle.records import rows
from tests.shares import one_in

ROWS = launches()
SCHEDULES = ["eager", "lazy", 1, 2]


def extents(row: dict[str, Any]) -> tuple[int, int, int, bool]:
    """(M, N, K, whether A and B are K-major) of a row."""
    m, n, k, a, _ = row["words"].split()
    return int(m), int(n), int(k), a == "T"


def matrices(row: dict[str, Any], dtype: Any, made: Any) -> tuple[list[Any], Any, Any, Any]:
    """([A, B, C] as the kernel has them, A (M, K), B (N, K), C (M, N)); C is M-major in memory."""
    m, n, k, k_major = extents(row)
    a, b, c = made((m, k)).astype(dtype), made((n, k)).astype(dtype), made((m, n)).astype(dtype)
    laid = [np.ascontiguousarray(x if k_major else x.T) for x in (a, b)]
    stored = np.ascontiguousarray(c.T)
    assert [x.nbytes for x in (*laid, stored)] == row["allocations"]
    return [x.reshape(-1).view(np.uint8) for x in (*laid, stored)], a, b, c


def result(row: dict[str, Any], raw: Any, dtype: Any) -> Any:
    m, n, _, _ = extents(row)
    return raw.view(dtype).reshape(n, m).T


def small(seed: int) -> Any:
    """Arrays of -1, 0 and 1."""
    dice = np.random.default_rng(seed)
    return lambda shape: dice.integers(-1, 2, shape)


def fused(a: Any, b: Any, c: Any) -> Any:
    """a * b + c of float32, rounded once: the product is exact in float64, and the sum is rounded to odd there."""
    product = a.astype(np.float64) * b.astype(np.float64)
    wide = c.astype(np.float64)
    near = product + wide
    other = near - product
    lost = (product - (near - other)) + (wide - other)
    raw = near.view(np.int64)
    even = (lost != 0) & (raw & 1 == 0)
    toward = np.where((lost > 0) == (near > 0), 1, -1)
    return np.where(even, (raw + toward).view(np.float64), near).astype(np.float32)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_tiled_copy(schedule: str | int) -> None:
    row = ROWS["tiled_copy"]
    source = np.random.default_rng(3).standard_normal(256 * 512).astype(np.float32)
    target = np.zeros_like(source)
    found = run(row, [source.view(np.uint8), target.view(np.uint8)], schedule)
    assert found.ok, found.explain()
    assert np.array_equal(source, target)


@pytest.mark.parametrize(
    "name",
    one_in(4, ["sgemm_1_nt", "sgemm_1_tn", "sgemm_2_nt", "sgemm_2_tn"]),
)
def test_products_of_floats_in_the_order_of_the_kernel(name: str) -> None:
    row = ROWS[name]
    arrays, a, b, _ = matrices(row, np.float32, np.random.default_rng(5).standard_normal)
    found = run(row, arrays)
    assert found.ok, found.explain()
    expected = np.zeros((len(a), len(b)), np.float32)
    for k in range(a.shape[1]):
        expected = fused(a[:, k : k + 1], b[:, k : k + 1].T, expected)
    assert np.array_equal(result(row, arrays[2], np.float32).view(np.uint32), expected.view(np.uint32))


HALVES = ("sgemm_sm80_tn", "wgmma_nt", "wgmma_tn", "wgmma_tma_nt", "wgmma_tma_tn")


def check_halves(name: str, schedule: str | int, judge: bool = True) -> None:
    row = with_scalars(ROWS[name], "<e", 2.0, 0.5)
    arrays, a, b, c = matrices(row, np.float16, small(7))
    found = run(row, arrays, schedule, judge)
    assert found.ok, found.explain()
    expected = 2 * (a.astype(np.int64) @ b.astype(np.int64).T) + 0.5 * c.astype(np.float64)
    assert np.array_equal(result(row, arrays[2], np.float16), expected)


@pytest.mark.parametrize("name", one_in(3, ["wgmma_tma_tn", "sgemm_sm80_tn", "wgmma_nt"]))
def test_products_of_halves(name: str) -> None:
    check_halves(name, "eager" if name.startswith("sgemm") else "both", judge=False)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["both", 1, 2, 3])
@pytest.mark.parametrize("name", [*HALVES, "wgmma_tma_large"])
def test_products_of_halves_with_judges(name: str, schedule: str | int) -> None:
    """No error is found in kernels that run right on hardware."""
    check_halves(name, schedule)


def check_example_48(name: str, schedule: str | int) -> None:
    """D = alpha A B^T + beta C, all float32, A and B K-major, C and D M-major; products are those of tf32."""
    row = ROWS[name]
    numbers = dict(word.removeprefix("--").split("=") for word in row["words"].split())
    m, n, k = (int(numbers[letter]) for letter in "mnk")
    alpha, beta = float(numbers.get("alpha", 1)), float(numbers.get("beta", 0))
    dice = np.random.default_rng(9)
    a, b, c = (dice.integers(-9, 10, shape).astype(np.float32) for shape in ((m, k), (n, k), (n, m)))
    d, unused = np.zeros_like(c), np.zeros_like(c)
    arrays = [x.reshape(-1).view(np.uint8) for x in (a, b, c, d, unused)] + [np.zeros(0, np.uint8)]
    assert [x.nbytes for x in arrays] == row["allocations"]
    found = run(row, arrays, schedule)
    assert found.ok, found.explain()
    assert np.array_equal(d.T, alpha * (a @ b.T) + beta * c.T)


def test_the_warp_specialised_kernel_of_example_48() -> None:
    """Clusters of 4 x 2 CTAs, multicast loads, a ring of 7 stages, one producer and two consumer warpgroups."""
    check_example_48("example_48", "eager")


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", ["example_48", "example_48_persistent"])
def test_example_48_under_every_schedule(name: str, schedule: str | int) -> None:
    check_example_48(name, schedule)


DEVICE = rows("h200_cutlass")
QUICK = ("tiled_copy", "wgmma_tn", "wgmma_tma_nt", "example_48")


def check_bytes(name: str) -> None:
    arrays = random_allocations(name, ROWS[name])
    found = run(ROWS[name], arrays, "eager", judge=False)
    assert found.ok, found.explain()
    for one, array in zip([one for one in DEVICE if one["name"] == name], results(ROWS[name], arrays), strict=True):
        assert (one["nbytes"], one["sha256"]) == (array.nbytes, hashlib.sha256(array.tobytes()).hexdigest())


@pytest.mark.parametrize("name", one_in(4, QUICK))
def test_random_numbers_leave_the_bytes_of_the_device(name: str) -> None:
    check_bytes(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ROWS if name not in (*QUICK, "wgmma_tma_large")])
def test_more_random_numbers_leave_the_bytes_of_the_device(name: str) -> None:
    check_bytes(name)


@pytest.mark.slow
@pytest.mark.skipif("CUTLASS" not in os.environ or find_nvcc() is None, reason="no checkout in $CUTLASS, or no nvcc")
def test_a_program_is_recorded_again(tmp_path: Path) -> None:
    program = next(one for one in PROGRAMS if one.path.endswith("tiled_copy.cu"))
    executable, ptx = build(program, Path(os.environ["CUTLASS"]), tmp_path)
    again, row = launch(executable, "", ptx, program), ROWS["tiled_copy"]
    assert {name: again[name] for name in ("kernel", "grid", "block", "cluster", "shared", "allocations")} == {
        name: row[name] for name in ("kernel", "grid", "block", "cluster", "shared", "allocations")
    }
    assert json.loads(json.dumps(again["parameters"][:2])) == row["parameters"][:2]
