"""The recorded instructions, run again here: this executor leaves the bytes that the recording machine left."""

from __future__ import annotations

import pytest

from benchmarks.kernels.jobs import run_jobs
from cute_py.gpu.device import Device
from tests.gpu.recorded_jobs import batches, load_job, store_job, wanted_gmem, wanted_window
from tests.oracle.records import rows, tally

BATCH = 256


@pytest.mark.parametrize("name", ["h200_load_tile", "h200_load_im2col", "h200_load_interleaved"])
def test_loads(device: Device, name: str) -> None:
    recorded = rows(name)
    wrong = []
    for batch in batches(recorded, BATCH):
        for row, outcome in zip(batch, run_jobs([load_job(row) for row in batch], device=device), strict=True):
            same = outcome.windows[0] == wanted_window(row) and outcome.completed == row["completed"]
            if not same:
                wrong.append(row)
    tally(f"{name} on this device", len(recorded) - len(wrong), len(recorded))
    assert not wrong, (len(wrong), wrong[0])


@pytest.mark.parametrize(
    ("name", "kind"), [("h200_store_tile", "store"), ("h200_store_im2col", "store"), ("h200_reduce", "reduce")]
)
def test_stores(device: Device, name: str, kind: str) -> None:
    recorded = rows(name)
    wrong = []
    for batch in batches(recorded, BATCH):
        jobs = [store_job(row, kind) for row in batch]
        for row, outcome in zip(batch, run_jobs(jobs, device=device), strict=True):
            if outcome.gmem != wanted_gmem(row) or not outcome.completed:
                wrong.append(row)
    tally(f"{name} on this device", len(recorded) - len(wrong), len(recorded))
    assert not wrong, (len(wrong), {k: v for k, v in wrong[0].items() if k != "gmem_xor"})
