"""Instructions that the recording machine refused are refused before a launch, and trap where they are launched."""

from __future__ import annotations

from typing import Any

import pytest

from cute_py.errors import DeviceError, InvalidValueError
from cute_py.gpu.device import Device
from cute_py.gpu.isolate import call_isolated
from cute_py.gpu.single import Facts, Instruction, run_instruction, why_not_run
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.formats import format_row
from tests.gpu.recorded_jobs import run_unchecked, wrapper_of
from tests.oracle.records import rows
from tests.tma.run.emulator.recorded import BASE, tensor_map

MIB = 2**20


def trap_job(row: dict[str, Any]) -> Instruction:
    kind, mode = row["instruction"].split("_") if "_" in row["instruction"] else (row["instruction"], "tile")
    spatial = range(row["rank"] - 2)
    first = 0 if row["interleave"] else 1
    box = tuple(
        (row["lower_corner"][i], row["dims"][first + i] - 1 + row["upper_corner"][i])
        for i in spatial
        if mode == "im2col" and kind == "load"
    )
    bad = mode == "im2col" and kind == "store" and (min(row["lower_corner"]) < 0 or max(row["upper_corner"]) > 0)
    facts = Facts(format_row(row["data_type"]).bytes, bool(row["interleave"]), box, bad)
    return Instruction(
        wrapper_of(row, kind),
        encode(tensor_map(row)),
        tuple(row["coords"]),
        window=bytes(MIB // 8),
        expected=16 if kind == "load" else 0,
        gmem=bytes(2 * MIB),
        gmem_base=BASE,
        im2col_offsets=tuple(row.get("im2col_offsets") or ()) if kind == "load" else (),
        facts=facts,
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


def test_an_unaligned_coordinate_is_refused_before_the_launch(device: Device) -> None:
    row = next(
        row
        for row in rows("h200_traps")
        if row["instruction"] == "load_tile" and why_not_run(trap_job(row)) and not row["interleave"]
    )
    with pytest.raises(InvalidValueError, match="nothing was launched"):
        run_instruction(trap_job(row), device=device)
    device.synchronize()
