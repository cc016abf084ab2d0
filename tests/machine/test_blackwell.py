"""CUTLASS's programs for Blackwell, compiled by nvcc and launched by their own host code: D is what numpy computes.

`python -m tests.oracle.record.cutlass_kernels CUTLASS OUT --blackwell` records them again. No device ran them.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_py.formats import of_codes, to_float32
from tests.machine.cutlass_launch import launches, run, with_scalars

ROWS = launches("blackwell_kernels")
TUTORIALS = [name for name in ROWS if name.startswith("blackwell_")]


def integers(seed: int, shape: tuple[int, int], dtype: Any) -> Any:
    """Numbers from -4 to 4: every sum of their products is exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def check_tutorial(name: str, schedule: str | int) -> Any:
    """D = A B^T + C / 2, all row-major; the program allocates D first."""
    row = with_scalars(ROWS[name], "<f", 1.0, 0.5)
    m, n, k = map(int, row["words"].split())
    a, b, c = integers(1, (m, k), np.float16), integers(2, (n, k), np.float16), integers(3, (m, n), np.float32)
    d = np.zeros((m, n), np.float32)
    arrays = [x.reshape(-1).view(np.uint8) for x in (d, a, b, c)]
    assert [x.nbytes for x in arrays] == row["allocations"]
    found = run(row, arrays, schedule)
    assert found.ok, found.explain()
    assert np.array_equal(d, a.astype(np.float32) @ b.astype(np.float32).T + 0.5 * c)
    return found


def test_the_first_tutorial() -> None:
    found = check_tutorial("blackwell_01", "eager")
    printed = "".join(found.printed)
    assert "tCtAcc:\ttmem_[32b](TMEM_ADDR)".replace("TMEM_ADDR", "0x0000.0000") in printed
    assert "tCrA:\tUMMA::DescriptorIterator o (_1,_1,_4):(_0,_0,_2)" in printed


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["both", 1])
@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorials(name: str, schedule: str | int) -> None:
    check_tutorial(name, schedule)


# ---- kernels of the collective builder: persistent, warp-specialised, pairs of CTAs ----------------------------------

LISTED = {"initialisation not known", "store under way at exit"}
"""Rules that these kernels break on the text of the ISA, and that devices forgive: an mbarrier for the end of tensor
memory is initialised behind the last fence.mbarrier_init, and a kernel without C exits before its stores have read."""


def options(row: dict[str, Any]) -> tuple[int, int, int]:
    numbers = dict(word.removeprefix("--").split("=") for word in row["words"].split())
    return int(numbers["m"]), int(numbers["n"]), int(numbers["k"])


def check_run(row: dict[str, Any], arrays: list[Any], schedule: str | int) -> None:
    assert [x.nbytes for x in arrays] == row["allocations"]
    found = run(row, arrays, schedule)
    errors = {one.rule for one in found.diagnostics if one.severity == "error"}
    assert errors <= LISTED, found.explain()


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["both", 1])
def test_example_70(schedule: str | int) -> None:
    """float16, D of float32 and M-major; loads and products of two CTAs, cluster launch control."""
    row = ROWS["example_70"]
    m, n, k = options(row)
    a, b = integers(1, (m, k), np.float16), integers(2, (n, k), np.float16)
    d, c, unused = np.zeros((n, m), np.float32), integers(3, (n, m), np.float32), np.zeros((n, m), np.float32)
    arrays = [x.reshape(-1).view(np.uint8) for x in (a, b, c, d, unused)] + [np.zeros(0, np.uint8)]
    check_run(row, arrays, schedule)
    assert np.array_equal(d.T, a.astype(np.float32) @ b.astype(np.float32).T)


def in_atoms(codes: Any) -> Any:
    """Scales (rows, K / 16) in atoms of 128 rows by 4, as tcgen05.cp.32x128b.warpx4 wants them."""
    rows, k = codes.shape
    atoms = codes.reshape(rows // 128, 4, 32, k // 4, 4).transpose(0, 3, 2, 1, 4)
    return np.ascontiguousarray(atoms).reshape(-1)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["both", 1])
def test_example_72a(schedule: str | int) -> None:
    """NVFP4: elements of e2m1, a scale of ue4m3 for 16 of them, copied into tensor memory; D of bfloat16."""
    row = ROWS["example_72a"]
    m, n, k = options(row)
    dice = np.random.default_rng(4)
    codes = [dice.integers(0, 16, (rows, k)).astype(np.uint8) for rows in (m, n)]
    scales = [dice.choice([0.5, 1.0, 2.0], (rows, k // 16)).astype(ml_dtypes.float8_e4m3fn) for rows in (m, n)]
    packed = [(one[:, ::2] | one[:, 1::2] << 4).reshape(-1) for one in codes]
    laid = [in_atoms(one.view(np.uint8)) for one in scales]
    c, d, unused = (np.zeros(2 * m * n, np.uint8) for _ in range(3))
    check_run(row, [*packed, c, d, unused, *laid, np.zeros(0, np.uint8)], schedule)
    numbers = [
        to_float32(of_codes(one, "e2m1")).astype(np.float64) * np.repeat(scale.astype(np.float64), 16, axis=1)
        for one, scale in zip(codes, scales, strict=True)
    ]
    expected = (numbers[0] @ numbers[1].T).astype(np.float32).astype(ml_dtypes.bfloat16)
    assert np.array_equal(d.view(ml_dtypes.bfloat16).reshape(m, n), expected)
