"""The modes of a copy, and what a plan of one is: plain values that the planners share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from cute_py.argument_checks import expect_fields
from cute_py.errors import TmaLimitError
from cute_py.tma.descriptor.formats import L2Promotion, TensorMapSwizzle
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.lower.kernel_source import KernelSource
from cute_py.tma.run.gpu_arrays import ArrayView

ROW: Final = 512
"""Bytes of a row of a tile. Measured on NVIDIA H200: 128-byte rows cost 2 to 4 %, wider ones gain nothing."""

HINTS: Final = ("evict_last", "evict_first")
"""Cache policies of loads and stores with `hints=True`: 1 % faster on large copies, and the kernels that follow find
less of their data in L2. Measured on NVIDIA H200."""


@dataclass(frozen=True, slots=True)
class Mode:
    """One mode of a copy: elements, and byte strides of source and destination."""

    size: int
    source: int
    destination: int

    def __post_init__(self) -> None:
        expect_fields(self)


@dataclass(frozen=True, slots=True)
class Tuning:
    """How a copy is tiled. None: as measured best for its size.

    form: "once" or "ring". row_bytes, rows: of a tile. stages, stores, per_multiprocessor, early: of the ring.
    per_block: tiles of a one-shot block. hints: cache policies on. pitch: at most so many bytes from one row of a
    ring's tile to the next in a contiguous run (0: the rows follow each other). pad_shared: shared memory that a
    one-shot block asks for beyond its need, to have fewer blocks on an SM. paired: whole rows of a tile at once in
    transpositions, where the sizes allow it.
    """

    form: str | None = None
    row_bytes: int = ROW
    rows: int | None = None
    stages: int = 3
    stores: int = 0
    per_multiprocessor: int = 1
    per_block: int = 1
    hints: bool = False
    pitch: int = 16 * ROW
    pad_shared: int = 0
    early: bool = True
    paired: bool = True

    def __post_init__(self) -> None:
        expect_fields(self)


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """One launch of a copy. `tail` is (source address, destination address, bytes) that threads move one by one.

    form: "once", "ring", "realigned", "transposed", or "edges", which has no maps: threads move all of it. maps: of
    source and destination. bytes: of elements copied.
    """

    form: str
    kernel: KernelSource
    maps: tuple[TensorMapTiled, TensorMapTiled] | None
    blocks: int
    bytes: int
    why: str
    tail: tuple[int, int, int] = field(default=(0, 0, 0))

    def __post_init__(self) -> None:
        expect_fields(self)


def ceil_div(value: int, unit: int) -> int:
    """value / unit, rounded up."""
    return -(-value // unit)


def merged_modes(source: ArrayView, destination: ArrayView) -> tuple[Mode, ...]:
    """The modes of a copy without those of size 1, the destination's innermost first, neighbours merged where
    both sides allow it.

    Raises:
        TmaLimitError: a negative stride, or a destination that has one address for several elements.
    """
    width = source.element_bytes
    modes = [
        Mode(size, s * width, d * width)
        for size, s, d in zip(source.shape, source.strides, destination.strides, strict=True)
        if size > 1
    ]
    for index, mode in enumerate(modes):
        if mode.source < 0 or mode.destination < 0:
            raise TmaLimitError(
                f"stride = {min(mode.source, mode.destination)} bytes; a tensor map has no negative strides",
                {"mode": f"{index} of those larger than 1"},
            )
        if mode.destination == 0:
            raise TmaLimitError(f"destination stride = 0 for {mode.size} elements; they would share one address")
    modes.sort(key=lambda mode: (mode.destination, mode.source))
    merged: list[Mode] = []
    for mode in modes:
        if merged:
            last = merged[-1]
            if mode.source == last.size * last.source and mode.destination == last.size * last.destination:
                merged[-1] = replace(last, size=last.size * mode.size)
                continue
        merged.append(mode)
    return tuple(merged)


def copy_map(
    address: int, sizes: tuple[int, ...], strides: tuple[int, ...], box: tuple[int, ...], kind: int, swizzle: int = 0
) -> TensorMapTiled:
    return TensorMapTiled(
        kind, address, sizes, strides, box, swizzle=TensorMapSwizzle(swizzle), l2_promotion=L2Promotion.B128
    )
