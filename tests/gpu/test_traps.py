"""Instructions that the recording machine refused are refused before a launch, and trap where they are launched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.kernels.jobs import Job, run_jobs
from cute_py.errors import DeviceError, InvalidValueError
from cute_py.gpu.device import Device
from cute_py.gpu.isolate import call_isolated
from cute_py.tma.descriptor.encode import encode
from tests.gpu.recorded_jobs import op_of, run_unchecked
from tests.oracle.records import rows
from tests.tma.emulator.recorded import BASE, tensor_map

MIB = 2**20


def trap_job(row: dict[str, Any]) -> Job:
    kind = row["instruction"].split("_")[0]
    return Job(
        op_of(row, kind),
        encode(tensor_map(row)),
        tuple(row["coords"]),
        window=bytes(MIB // 8),
        expected=16 if kind == "load" else 0,
        gmem=bytes(2 * MIB),
        gmem_base=BASE,
        im2col_offsets=tuple(row.get("im2col_offsets") or ()) if kind == "load" else (),
    )


def chosen() -> list[dict[str, Any]]:
    """One recorded trap of each instruction."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows("h200_traps"):
        if row["error"] == "CUDA_ERROR_ILLEGAL_INSTRUCTION":
            found.setdefault(row["instruction"], row)
    return list(found.values())


@pytest.mark.parametrize("row", chosen(), ids=lambda row: row["instruction"])
def test_a_trap_stays_in_its_process(device: Device, row: dict[str, Any]) -> None:
    with pytest.raises(DeviceError) as caught:
        call_isolated(run_unchecked, trap_job(row))
    assert row["error"] in str(caught.value)
    assert "isolated" in str(caught.value)
    device.synchronize()


def test_an_instruction_with_a_wrong_operand_is_refused_before_the_launch(device: Device) -> None:
    job = trap_job(chosen()[0])
    with pytest.raises(InvalidValueError, match="nothing was launched"):
        run_jobs([replace(job, coords=(*job.coords, 0))], device=device)
    device.synchronize()
