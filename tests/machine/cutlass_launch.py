"""Launches of CUTLASS's programs, as `tests/oracle/record/cutlass_kernels.py` recorded them, on the machine."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import cute_py as cute
from tests.oracle.records import rows


def launches(records: str = "cutlass_kernels") -> dict[str, dict[str, Any]]:
    """Name -> row; each has the PTX of its program."""
    found: dict[str, dict[str, Any]] = {}
    texts: dict[str, str] = {}
    for row in rows(records):
        text = texts.setdefault(row["program"], row["ptx"])
        found[row["name"]] = {**row, "ptx": text}
    return found


def arguments(row: Mapping[str, Any], allocations: Sequence[Any]) -> list[Any]:
    """The arguments of `run_ptx` for a row.

    Args:
        allocations: an array of bytes for each allocation of the program, in its order.
    """
    return [_argument(one, allocations) for one in row["parameters"]]


def with_scalars(row: Mapping[str, Any], form: str, *values: float) -> dict[str, Any]:
    """A row whose last parameters are other numbers: alpha and beta."""
    parameters = list(row["parameters"])
    for place, value in enumerate(reversed(values), 1):
        parameters[-place] = {"bytes": struct.pack(form, value).hex(), "pointers": {}, "maps": {}}
    return {**row, "parameters": parameters}


def _argument(one: Mapping[str, Any], allocations: Sequence[Any]) -> Any:
    raw = bytes.fromhex(one["bytes"])
    inside: dict[int, Any] = {}
    for offset, (number, start) in one["pointers"].items():
        inside[int(offset)] = allocations[number][start:]
    for offset, fields in one["maps"].items():
        number, start = fields["place"]
        given = {name: tuple(v) if isinstance(v, list) else v for name, v in fields.items() if name != "place"}
        inside[int(offset)] = (cute.tma.TensorMapTiled(global_address=0, **given), allocations[number][start:])
    return (raw, inside) if inside else raw


def launch_options(row: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `run_ptx` that say how a row's kernel is launched."""
    options = {"grid": row["grid"], "block": row["block"], "kernel": row["kernel"], "dynamic_shared": row["shared"]}
    return options if row["cluster"] == [1, 1, 1] else {**options, "cluster": row["cluster"]}


def run(
    row: Mapping[str, Any], allocations: Sequence[Any], schedule: str | int = "both", judge: bool = True
) -> cute.PtxRun:
    """Run a row's kernel; the allocations hold afterwards what it left."""
    args = arguments(row, allocations)
    return cute.run_ptx(row["ptx"], args=args, schedule=schedule, judge=judge, **launch_options(row))


def random_allocations(name: str, row: Mapping[str, Any]) -> list[Any]:
    """Random numbers for all allocations of a row, as bytes: float32, or float16 of the kernels of halves."""
    dice = np.random.default_rng(len(name))
    dtype = np.float32 if name.startswith(("sgemm_1", "sgemm_2", "tiled", "example")) else np.float16
    size = np.dtype(dtype).itemsize
    return [dice.standard_normal(count // size).astype(dtype).view(np.uint8) for count in row["allocations"]]


def results(row: Mapping[str, Any], allocations: Sequence[Any]) -> Sequence[Any]:
    """The allocations that a kernel writes, and those behind them that it must leave alone."""
    return allocations[2 if len(allocations) > 2 else 1 : 4]
