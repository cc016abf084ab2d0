"""Time a few tilings of one copy on the device and keep the fastest, for the option `tune=True`.

The result is stored in the kernel cache, under the device's name and the geometry of the copy (sizes and strides, not
addresses). The search writes to the destination, like the copy itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import asdict

from cute_py.copies.boxes import Tuning
from cute_py.copies.prepared import prepare_copy
from cute_py.copies.prepared_copy import PreparedCopy
from cute_py.copies.report import median_times
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


def geometry_key(prepared: PreparedCopy, source: ArrayView, hints: bool) -> str:
    """Return the key of a copy's stored tuning."""
    device, refinement = prepared.device, prepared.plan.refinement if prepared.plan else None
    modes = [(mode.size, mode.source, mode.destination) for mode in refinement.modes] if refinement else []
    text = json.dumps([device.name, device.multiprocessors, modes, source.element_bytes, source.address % 16, hints])
    return hashlib.sha256(text.encode()).hexdigest()


def tuned_copy(
    source: ArrayLike, destination: ArrayLike, *, hints: bool = False, rounds: int = 7, device: Device | None = None
) -> PreparedCopy:
    """Prepare a copy with the fastest of a few tilings. The search runs once for each geometry, and its result is
    stored.

    Copies that have only one kernel (transposing, realigning) are prepared without a search.

    Raises:
        as `prepare_copy`.
    """
    a, b = array_view(source), array_view(destination)
    device = as_device(device, common_device({"source": a.device, "destination": b.device}))
    first = prepare_copy(a, b, hints=hints, device=device)
    if len(first.plans) != 1 or first.plans[0].form not in ("once", "ring"):
        return first
    files, key = kernel_compiler(cache_directory()).files, geometry_key(first, a, hints)
    known = None
    with contextlib.suppress(OSError, ValueError, TypeError):  # ignore a file that can't be parsed
        known = Tuning(**json.loads(files.get(key) or b""))
    if known is not None:
        return prepare_copy(a, b, tuning=known, device=device)
    tried: list[tuple[Tuning, PreparedCopy]] = []
    seen = set()
    for tuning in candidate_tunings(hints):
        try:
            prepared = prepare_copy(a, b, tuning=tuning, device=device)
            if prepared.kernels[0].source.digest in seen:
                continue
            seen.add(prepared.kernels[0].source.digest)
            tried.append((tuning, prepared))
        except CuteError:
            continue  # Skip a tiling that does not fit this copy or this device.
    times = median_times(device, [prepared.launch for _, prepared in tried], rounds, 4)
    for _, prepared in tried:
        prepared.check()
    tuning, best = tried[times.index(min(times))]
    with contextlib.suppress(OSError):  # ignore a directory that can't be written
        files[key] = json.dumps(asdict(tuning)).encode()
    return best
