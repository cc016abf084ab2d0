"""Time a few tilings of one copy on the device and keep the fastest, for the option `tune=True`.

    kernels with tensor maps    several box sizes and numbers of stages
    kernel `tile`               the tiles whose estimated time is the shortest

The result is stored in the kernel cache, under the device's name and the geometry of the copy (sizes and strides, not
addresses). The search writes to the destination, like the copy itself.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Final

from cute_py.copies.boxes import Tuning
from cute_py.copies.operands import side
from cute_py.copies.plan import CopyPlan, with_other_tiles
from cute_py.copies.prepared import prepare_between, prepare_copy
from cute_py.copies.prepared_copy import PreparedCopy
from cute_py.copies.report import median_times
from cute_py.copies.shared_layout import WIDEST
from cute_py.errors import CuteError
from cute_py.gpu.arrays import array_view
from cute_py.gpu.device import Device, as_device, common_device
from cute_py.gpu.nvrtc import cache_directory, kernel_compiler
from cute_py.tensor.array_views import ArrayLike, ArrayView


def candidate_tunings(hints: bool) -> tuple[Tuning, ...]:
    """Return the tilings that a search tries; the first is the default."""
    return (
        Tuning(hints=hints),
        Tuning("once", rows=4, hints=hints),
        Tuning("once", rows=8, hints=hints),
        Tuning("once", rows=4, per_block=2, hints=hints),
        Tuning("once", rows=4, pad_shared=4096, hints=hints),
        Tuning("once", row_bytes=2048, rows=1, hints=hints),
        Tuning("ring", rows=32, hints=hints),
        Tuning("ring", rows=32, stages=4, stores=1, hints=hints),
        Tuning("ring", rows=32, stages=3, stores=1, per_multiprocessor=2, hints=hints),
        Tuning("ring", row_bytes=2048, rows=8, hints=hints),
    )


TILES: Final = 8
"""Number of tiles that a search tries. Measured on NVIDIA H200, 593 permutations: 3 tiles take 0.98 of the time of the
first one, 8 tiles 0.975, and 16 tiles 0.972."""


def geometry_key(prepared: PreparedCopy, source: ArrayView, destination: ArrayView, hints: bool) -> str:
    """Return the key of a copy's stored tuning."""
    device, refinement = prepared.device, prepared.plan.refinement if prepared.plan else None
    modes = [(mode.size, mode.source, mode.destination) for mode in refinement.modes] if refinement else []
    within = [view.address % WIDEST for view in (source, destination)]
    text = json.dumps([device.name, device.multiprocessors, modes, source.element_bytes, within, hints])
    return hashlib.sha256(text.encode()).hexdigest()


def tuned_copy(
    source: ArrayLike, destination: ArrayLike, *, hints: bool = False, rounds: int = 7, device: Device | None = None
) -> PreparedCopy:
    """Prepare a copy with the fastest of a few tilings. The search runs once for each geometry, and its result is
    stored.

    The search tries kernels with tensor maps that copy whole rows, and the kernel `tile`, which transposes by threads.
    Other copies are prepared without a search.

    Raises:
        the errors of `prepare_copy`.
    """
    a, b = array_view(source), array_view(destination)
    device = as_device(device, common_device({"source": a.device, "destination": b.device}))
    first = prepare_copy(a, b, hints=hints, device=device)
    if first.plan is not None and first.plan.threads_tile is not None:
        choices = _tile_choices(first.plan, a, b, device)
    elif len(first.plans) == 1 and first.plans[0].form in ("once", "ring"):
        choices = {
            json.dumps(asdict(one)): functools.partial(prepare_copy, a, b, tuning=one, device=device)
            for one in candidate_tunings(hints)
        }
    else:
        return first
    files, key = kernel_compiler(cache_directory()).files, geometry_key(first, a, b, hints)
    known = ""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        known = (files.get(key) or b"").decode()
    if known in choices:
        return choices[known]()
    name, best = _fastest(choices, device, rounds)
    with contextlib.suppress(OSError):  # ignore a directory that can't be written
        files[key] = name.encode()
    return best


def _tile_choices(plan: CopyPlan, a: ArrayView, b: ArrayView, device: Device) -> dict[str, Callable[[], PreparedCopy]]:
    """Return the ways to prepare a copy with the kernel `tile`, each under the digest of its tile."""
    sides = side(a, "source"), side(b, "destination")
    plans = with_other_tiles(plan, (sides[0].alignment, sides[1].alignment), TILES)
    return {
        hashlib.sha256(repr(one.threads_tile).encode()).hexdigest(): functools.partial(
            prepare_between, *sides, device, overlaps=True, plan=one
        )
        for one in plans
    }


def _fastest(choices: dict[str, Callable[[], PreparedCopy]], device: Device, rounds: int) -> tuple[str, PreparedCopy]:
    """Return the name and the result of the fastest choice."""
    tried: dict[str, tuple[str, PreparedCopy]] = {}
    for name, prepare in choices.items():
        with contextlib.suppress(CuteError):  # skip a tiling that does not fit this copy or this device
            prepared = prepare()
            tried.setdefault(f"{prepared.kernels[0].source.digest} {prepared.blocks}", (name, prepared))
    found = list(tried.values())
    times = median_times(device, [prepared.launch for _, prepared in found], rounds, 4)
    for _, prepared in found:
        prepared.check()
    return found[times.index(min(times))]
