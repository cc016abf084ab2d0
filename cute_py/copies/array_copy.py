"""A whole array on the GPU without an atom: the planner chooses the kernel and the boxes from addresses and strides."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from cute_py.copies.device_copy import host_copy, new_array_like, require_options
from cute_py.copies.emulated_copy import CopyResult, first_difference
from cute_py.copies.host_arrays import copy_array
from cute_py.copies.prepared import PreparedCopy, prepare_copy
from cute_py.copies.report import measure_copy
from cute_py.copies.tune import tuned_copy
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.gpu.arrays import array_view, stream_handle
from cute_py.gpu.device import common_device, open_device

OPTIONS = ("stream", "hints", "verify", "report", "tune")


def copy_without_atom(
    source: Any, destination: Any, backend: str, progress: Callable[[int, int], None] | None, options: dict[str, Any]
) -> CopyResult:
    """`copy(None, source, destination, backend="cuda")`: any order and strides that boxes can move.

    Options: as of a copy with an atom, and tune (time a few tilings on the device and keep the fastest).

    Raises:
        InvalidTypeError: another backend; only the GPU executor plans copies by itself.
        DeviceError: no GPU with TMA, or arrays of two devices. TmaLimitError: no box moves these arrays.
    """
    if backend != "cuda":
        raise InvalidTypeError(f"no atom, and backend {backend!r}; only backend='cuda' plans a copy by itself")
    require_options(options, OPTIONS)
    if destination is None:
        destination = new_array_like(source)
    a, b = array_view(source), array_view(destination)
    device = open_device(common_device({"source": a.device, "destination": b.device}))
    stream = options.get("stream")
    hints = bool(options.get("hints", False))
    on_host = a.device is None or b.device is None
    if on_host and options.get("tune"):
        raise InvalidValueError("tune=True times copies of device arrays; these are in host memory")
    start = time.perf_counter()
    prepared: PreparedCopy
    if on_host:
        prepared = copy_array(source, destination, stream=stream, hints=hints)
    else:
        prepare = tuned_copy if options.get("tune") else prepare_copy
        prepared = prepare(source, destination, hints=hints, device=device)
        start = time.perf_counter()
        prepared.launch(stream)
        if stream is None:
            prepared.check()
    seconds = time.perf_counter() - start
    details: dict[str, Any] = {
        "device": device.name,
        "forms": [plan.form for plan in prepared.plans],
        "why": [plan.why for plan in prepared.plans],
        "prepared": prepared,
    }
    if options.get("report"):
        details["report"] = measure_copy(prepared, stream=stream_handle(stream))
    difference, equal = None, None
    if options.get("verify", True) and (stream is None or on_host):
        difference = first_difference(host_copy(a), host_copy(b))
        equal = difference is None
    boxes = sum(plan.blocks for plan in prepared.plans if plan.maps)
    if progress is not None:
        progress(boxes, boxes)
    return CopyResult(
        destination, equal, boxes, boxes, 0, a.count * a.element_bytes, seconds, backend, (), difference, details
    )
