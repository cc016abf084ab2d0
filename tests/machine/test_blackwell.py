"""CUTLASS's programs for Blackwell, compiled by nvcc and launched by their own host code: D is what numpy computes.

`python -m tests.oracle.record.cutlass_kernels CUTLASS OUT --blackwell` records them again. No device ran them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
