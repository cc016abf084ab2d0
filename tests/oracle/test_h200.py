"""Every recorded instruction of an H200 leaves the identical bytes here, and every trap is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_py.errors import TmaTrap
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.emulator.emulator import Emulator
from tests.oracle.records import rows, tally
from tests.shares import in_part
from tests.tma.emulator.recorded import BASE, filled, pattern, tensor_map


def load_differs(row: dict[str, Any]) -> str:
    """'' if the emulated load leaves the recorded bytes."""
    smem = np.full(row["smem_bytes"], 0xCD, np.uint8)
    gmem = pattern(row["gmem_bytes"], row["seed"])
    nbytes = Emulator(strict=True).load(
        encode(tensor_map(row)),
        gmem,
        row["coords"],
        smem,
        im2col_offsets=row.get("im2col_offsets", ()),
        gmem_base=BASE,
    )
    want = np.full(row["smem_bytes"], 0xCD, np.uint8)
    recorded = np.frombuffer(bytes.fromhex(row["smem"]), np.uint8)
    want[: len(recorded)] = recorded
    if not np.array_equal(smem, want):
        return f"{int((smem != want).sum())} bytes differ"
    if row["completed"] and nbytes != row["tx"]:
        return f"{nbytes} transaction bytes, recorded {row['tx']}"
    return ""


def write_differs(row: dict[str, Any]) -> str:
    """'' if the emulated store or reduction leaves the recorded bytes."""
    smem = filled(row, row["smem_bytes"], row["seed"] + 7777)
    gmem = filled(row, row["gmem_bytes"], row["seed"])
    before = gmem.copy()
    engine, descriptor = Emulator(strict=True), encode(tensor_map(row))
    if "op" in row:
        engine.reduce(row["op"], descriptor, gmem, row["coords"], smem, gmem_base=BASE)
    else:
        engine.store(descriptor, gmem, row["coords"], smem, gmem_base=BASE)
    want = np.zeros(row["gmem_bytes"], np.uint8)
    recorded = np.frombuffer(bytes.fromhex(row["gmem_xor"]), np.uint8)
    want[: len(recorded)] = recorded
    return "" if np.array_equal(gmem ^ before, want) else f"{int(((gmem ^ before) != want).sum())} bytes differ"


@pytest.mark.parametrize("name", ["h200_load_tile", "h200_load_im2col", "h200_load_interleaved"])
@in_part(4)
def test_loads(name: str, every: int) -> None:
    table = rows(name)[::every]
    failed = [(row["seed"], why) for row in table if (why := load_differs(row))]
    tally(name, len(table) - len(failed), len(table), every=every)
    assert failed == []


@pytest.mark.parametrize("name", ["h200_store_tile", "h200_store_im2col", "h200_reduce"])
@in_part(2)
def test_writes(name: str, every: int) -> None:
    table = rows(name)[::every]
    failed = [(row["seed"], why) for row in table if (why := write_differs(row))]
    tally(name, len(table) - len(failed), len(table), every=every)
    assert failed == []


def _window(row: dict[str, Any]) -> int:
    """Bytes of shared memory that the recorder gave to an instruction whose row does not say it.

    The rows of h200_load_tile do say it, and follow this rule (tested below); the trapped loads were recorded in the
    same run. The recorder did not know then that interleave moves slices.
    """
    width = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)[row["data_type"]]
    if row["kind"] == "tiled":
        inner, count = row["box"][0] * width, 1
        for box, step in list(zip(row["box"], row["element_strides"], strict=True))[1:]:
            count *= -(-box // step)
    else:
        inner, count = row["channels_per_pixel"] * width, row["pixels_per_column"]
    pitch = max(inner, (0, 32, 64, 128)[row["swizzle"]])
    return -(-count * pitch // 1024) * 1024 + 1024


def test_the_rule_for_the_window_is_that_of_the_recordings() -> None:
    assert all(_window(row) == row["smem_bytes"] for row in rows("h200_load_tile"))
    assert all(_window(row) == row["smem_bytes"] for row in rows("h200_load_im2col"))


def trap_differs(row: dict[str, Any]) -> str:
    """'' if the emulator raises the recorded error and leaves both memories as they were."""
    smem = pattern(_window(row), row["seed"] + 7777)
    extent = row["address"] + sum(d * s for d, s in zip(row["dims"][1:], row["strides"], strict=True)) + 65536
    gmem = pattern(extent, row["seed"])
    before = smem.copy(), gmem.copy()
    engine, descriptor, coords = Emulator(), encode(tensor_map(row)), row["coords"]
    try:
        if row["instruction"].startswith("load"):
            offsets = row["im2col_offsets"]
            engine.load(descriptor, gmem, coords, smem, im2col_offsets=offsets, gmem_base=BASE)
        elif row["instruction"].startswith("store"):
            engine.store(descriptor, gmem, coords, smem, gmem_base=BASE)
        else:
            engine.reduce(row["op"], descriptor, gmem, coords, smem, gmem_base=BASE)
    except TmaTrap as trap:
        if trap.cuda_error != row["error"]:
            return f"{trap.cuda_error}, recorded {row['error']}"
        unchanged = np.array_equal(smem, before[0]) and np.array_equal(gmem, before[1])
        return "" if unchanged else "memory changed"
    return "no trap"


def test_traps() -> None:
    failed = [(row["seed"], why) for row in rows("h200_traps") if (why := trap_differs(row))]
    tally("h200_traps", len(rows("h200_traps")) - len(failed), len(rows("h200_traps")))
    assert failed == []
