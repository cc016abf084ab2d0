"""Why the hardware refuses an instruction: pure checks that give a reason or None.

All of them end in CUDA_ERROR_ILLEGAL_INSTRUCTION and leave memory as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cute_py.tma.run.emulator_reduce import executes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from cute_py.tma.run.emulator_geometry import Geometry

ILLEGAL_INSTRUCTION = "CUDA_ERROR_ILLEGAL_INSTRUCTION"


@dataclass(frozen=True, slots=True)
class Trap:
    """One reason: the error that CUDA reports, the rule, the values that break it."""

    cause: str
    facts: dict[str, object] = field(default_factory=dict)
    cuda_error: str = ILLEGAL_INSTRUCTION


def _first(bad: NDArray[np.bool_]) -> int | None:
    found = np.flatnonzero(bad)
    return int(found[0]) if len(found) else None


def _where(coords: NDArray[np.int64], i: int) -> dict[str, object]:
    facts: dict[str, object] = {"coordinates": tuple(coords[i].tolist())}
    if len(coords) > 1:
        facts["instruction"] = i
    return facts


def unaligned_inner(geometry: Geometry, coords: NDArray[np.int64]) -> Trap | None:
    """The inner coordinate in bytes must be a multiple of 16, except with interleave.

    Source: measured on NVIDIA H200, driver 580.159.04; packed formats (a multiple of 128 elements): PTX ISA 9.0.
    """
    if geometry.interleaved:
        return None
    inner = coords[:, 0]
    if geometry.packing is not None and geometry.packing.packed != geometry.packing.spread:
        i = _first(inner % 128 != 0)
        if i is not None:
            return Trap(f"inner coordinate = {int(inner[i])} elements; must be a multiple of 128", _where(coords, i))
    i = _first(inner * geometry.bits % 128 != 0)
    if i is None:
        return None
    nbytes = int(inner[i]) * geometry.bits // 8
    return Trap(f"inner coordinate = {nbytes} bytes; must be a multiple of 16", _where(coords, i))


def base_outside_box(geometry: Geometry, coords: NDArray[np.int64], shift: int = 0) -> Trap | None:
    """im2col: the base coordinate of each spatial mode lies inside its bounding box.

    Source: measured on NVIDIA H200, driver 580.159.04. For im2col::w the box is one point in H and D and W may start
    to its left (PTX ISA 9.0): there only the right end is checked.
    """
    wide = geometry.mode != "im2col"
    for index, mode in enumerate(geometry.spatial):
        if wide and index:
            break
        low, high = geometry.lower[index], geometry.dims[mode] - 1 + geometry.upper[index]
        place = coords[:, mode]
        i = _first((place > high) if wide else ((place < low) | (place > high)))
        if i is not None:
            return Trap(
                f"base coordinate of mode {mode} = {int(place[i])}; must be in the bounding box {low} to {high}",
                _where(coords, i),
            )
    return None


def negative_coordinate(coords: NDArray[np.int64]) -> Trap | None:
    """Stores and reductions: no coordinate is negative. Source: measured on NVIDIA H200, driver 580.159.04."""
    i = _first(np.asarray((coords < 0).any(axis=1)))
    if i is None:
        return None
    mode = int(np.flatnonzero(coords[i] < 0)[0])
    return Trap(f"coordinate[{mode}] = {int(coords[i, mode])}; a store takes none below 0", _where(coords, i))


def corners_beyond_tensor(geometry: Geometry) -> Trap | None:
    """im2col stores: the bounding box lies inside the tensor. Source: measured on NVIDIA H200, driver 580.159.04."""
    if any(c < 0 for c in geometry.lower) or any(c > 0 for c in geometry.upper):
        return Trap(
            "an im2col store takes no lower corner below 0 and no upper corner above 0",
            {"lower corner": geometry.lower, "upper corner": geometry.upper},
        )
    return None


def load_trap(geometry: Geometry, coords: NDArray[np.int64]) -> Trap | None:
    """The first reason why n loads trap, or None."""
    reason = unaligned_inner(geometry, coords)
    if reason is None and geometry.mode.startswith("im2col"):
        reason = base_outside_box(geometry, coords)
    return reason


def store_trap(geometry: Geometry, coords: NDArray[np.int64], op: str | None = None) -> Trap | None:
    """The first reason why n stores (or reductions `op`) trap, or None."""
    checks: Sequence[Trap | None] = (
        None if op is None else reduction_trap(geometry, op),
        negative_coordinate(coords),
        corners_beyond_tensor(geometry) if geometry.mode.startswith("im2col") else None,
        load_trap(geometry, coords),
    )
    return next((reason for reason in checks if reason is not None), None)


def reduction_trap(geometry: Geometry, op: str) -> Trap | None:
    """The element format does not have this reduction."""
    if executes(op, geometry.data_type):
        return None
    return Trap(f"reduction {op!r} does not exist for element format {geometry.data_type.name}")
