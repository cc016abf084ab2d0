"""Rows that are not whole 16 bytes: the part that tensor copies move, and the part that threads move."""

from __future__ import annotations

from dataclasses import replace

from cute_py.tma.descriptor.limits import STORE_UNIT
from cute_py.tma.lower.kernel_edges import EDGE_THREADS, copy_edges
from cute_py.tma.run.gpu_modes import CopyPlan, Mode, ceil_div


def split_rows(modes: tuple[Mode, ...], width: int) -> tuple[tuple[Mode, ...], tuple[Mode, ...]]:
    """Modes of the whole 16 bytes of each row of the destination, and modes of what is left of it.

    Mode 0 is contiguous in the destination. Either part is empty if it has no element.

    >>> split_rows((Mode(61, 2, 2), Mode(8, 128, 160)), 2)[1]
    (Mode(size=5, source=2, destination=2), Mode(size=8, source=128, destination=160))
    """
    whole = modes[0].size * width // STORE_UNIT * STORE_UNIT // width
    parts = [(replace(modes[0], size=size), *modes[1:]) if size else () for size in (whole, modes[0].size - whole)]
    return parts[0], parts[1]


def plan_edges(source: int, destination: int, modes: tuple[Mode, ...], width: int) -> CopyPlan:
    """The launch that moves the elements of `modes`, of `width` bytes, one thread a byte."""
    kernel = copy_edges(((width, 1, 1), *((mode.size, mode.source, mode.destination) for mode in modes)))
    total = int(str(kernel.facts["TOTAL"]))
    why = f"{modes[0].size * width} bytes of a row are no whole {STORE_UNIT}"
    return CopyPlan(
        "edges", kernel, None, ceil_div(total, EDGE_THREADS), total, why, (source, destination, modes[0].size * width)
    )
