"""tensormap.replace of every recorded field writes the bytes that it wrote when it was recorded."""

from __future__ import annotations

from typing import Any

from benchmarks.kernels.replace import IMMEDIATE_FIELDS, REPLACE_JOB, ReplaceCase, replace_fields
from cute_py.gpu.device import Device, DeviceBuffer
from cute_py.gpu.launch import Parameters, PreparedLaunch, load_kernel
from tests.oracle.records import rows, tally


def case_of(row: dict[str, Any]) -> ReplaceCase:
    immediate = row["value"] if row["field"] in IMMEDIATE_FIELDS else None
    return ReplaceCase(row["field"], row["ord"] if immediate is None else 0, immediate)


def test_recorded_replacements(device: Device) -> None:
    recorded = rows("device_tensormap_replace")
    cases = tuple(dict.fromkeys(case_of(row) for row in recorded))
    kernel = load_kernel(replace_fields(cases), device)
    with (
        DeviceBuffer(device, 128 * len(recorded)) as maps,
        DeviceBuffer(device, REPLACE_JOB.size * len(recorded)) as jobs,
    ):
        maps.write(b"".join(bytes.fromhex(row["before"]) for row in recorded))
        jobs.write(
            b"".join(
                REPLACE_JOB.pack(maps.address + 128 * i, row["value"] & (2**64 - 1), cases.index(case_of(row)), 0)
                for i, row in enumerate(recorded)
            )
        )
        PreparedLaunch(kernel, len(recorded), Parameters((jobs.address,))).launch()
        after = bytes(maps.read())
    wrong = [row for i, row in enumerate(recorded) if after[128 * i : 128 * i + 128] != bytes.fromhex(row["after"])]
    tally("device_tensormap_replace on this device", len(recorded) - len(wrong), len(recorded))
    assert not wrong, wrong[0]
