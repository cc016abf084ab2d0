"""Recorded instructions of the hardware as instructions for this device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from benchmarks.kernels.jobs import Job, Outcome, run_jobs
from cute_py.gpu.kernels.copy_op import CopyOp
from cute_py.tma.descriptor.encode import encode
from tests.tma.emulator.recorded import BASE, filled, tensor_map

T = TypeVar("T")


def op_of(row: dict[str, Any], kind: str) -> CopyOp:
    mode = "tile" if row["kind"] == "tiled" else "im2col"
    return CopyOp(kind, row["rank"], mode, op=row.get("op", "") if kind == "reduce" else "")


def load_job(row: dict[str, Any]) -> Job:
    return Job(
        op_of(row, "load"),
        encode(tensor_map(row)),
        tuple(row["coords"]),
        window=b"\xcd" * row["smem_bytes"],
        expected=row["tx"],
        gmem=filled(row, row["gmem_bytes"], row["seed"]).tobytes(),
        gmem_base=BASE,
        im2col_offsets=tuple(row.get("im2col_offsets") or ()),
    )


def store_job(row: dict[str, Any], kind: str) -> Job:
    return Job(
        op_of(row, kind),
        encode(tensor_map(row)),
        tuple(row["coords"]),
        window=filled(row, row["smem_bytes"], row["seed"] + 7777).tobytes(),
        gmem=filled(row, row["gmem_bytes"], row["seed"]).tobytes(),
        gmem_base=BASE,
    )


def wanted_window(row: dict[str, Any]) -> bytes:
    """The window that was recorded; it was cut after the last byte that differs from its fill."""
    return bytes.fromhex(row["smem"]).ljust(row["smem_bytes"], b"\xcd")


def wanted_gmem(row: dict[str, Any]) -> bytes:
    before = filled(row, row["gmem_bytes"], row["seed"])
    change = np.frombuffer(bytes.fromhex(row["gmem_xor"]), np.uint8)
    before[: len(change)] ^= change
    return before.tobytes()


def run_unchecked(job: Job, cluster: int = 1) -> list[Outcome]:
    """Launch whatever it is; for traps, in a process of its own."""
    return run_jobs([job], validate=False, cluster=cluster)


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]
