"""The windows of n instructions in one CTA's shared memory, and their images."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from cute_py.errors import TmaTrap
from cute_py.tma.run import emulator_transfer as transfer
from cute_py.tma.run.emulator_image import Image, image, phase_of
from cute_py.tma.run.memory import BASE_ALIGNMENT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cute_py.tma.run.emulator_geometry import Geometry
    from cute_py.tma.run.memory import SharedMemory

Chosen = slice | np.ndarray[tuple[int, ...], np.dtype[np.int64]]
"""Which instructions: a stretch, or indices."""


def _overrun(end: int, smem: SharedMemory) -> TmaTrap:
    facts: dict[str, object] = {"end of the box": f"{end} bytes", "shared memory": f"{len(smem)} bytes"}
    return TmaTrap(transfer.ILLEGAL_ADDRESS, "the box overruns shared memory", facts)


class Windows:
    """Where n instructions lie in the shared memory of one CTA.

    Args:
        rows: of one instruction.
        starts: (n,) offsets in bytes.
    Raises:
        TmaTrap: the rows alone are larger than shared memory.
    """

    def __init__(self, geometry: Geometry, rows: int, smem: SharedMemory, starts: NDArray[np.int64]) -> None:
        self.geometry, self.rows, self.smem, self.starts = geometry, rows, smem, starts
        if rows * geometry.row_bytes > len(smem):
            raise _overrun(rows * geometry.row_bytes, smem)
        self.residues = (starts + smem.base) % BASE_ALIGNMENT
        self.kinds = sorted(set(self.residues.tolist()))
        phases = {phase_of(residue, geometry.swizzle) for residue in self.kinds}
        self.image: Image | None = image(geometry, rows, phases.pop()) if len(phases) == 1 else None
        """The image of all instructions, if they lie at one place of the swizzle's pattern."""
        self._breaks: list[int] | None = None
        if self.image is not None and self.image.order is not None:
            self._breaks = np.flatnonzero(np.diff(starts) != self.image.extent).tolist() if len(starts) > 1 else []

    def check(self) -> None:
        """Every window ends in shared memory.

        Raises:
            TmaTrap: CUDA_ERROR_ILLEGAL_ADDRESS.
        """
        for residue in self.kinds:
            shape = self.image or image(self.geometry, self.rows, residue)
            starts = self.starts if self.image is not None else self.starts[self.residues == residue]
            end = int(starts.max()) + shape.extent
            if end > len(self.smem):
                raise _overrun(end, self.smem)

    def overlap(self) -> bool:
        """Whether two instructions share bytes."""
        if len(self.starts) < 2:
            return False
        extent = max(image(self.geometry, self.rows, residue).extent for residue in self.kinds)
        return bool((np.diff(np.sort(self.starts)) < extent).any())

    def stretch(self, chosen: Chosen) -> tuple[NDArray[np.uint8], Image] | None:
        """The bytes of the windows as one contiguous stretch, if there is no gap in or between them."""
        if self._breaks is None or self.image is None or not isinstance(chosen, slice):
            return None
        place = bisect.bisect_left(self._breaks, chosen.start)
        if place < len(self._breaks) and self._breaks[place] < chosen.stop - 1:
            return None
        first = int(self.starts[chosen.start])
        return self.smem.array[first : first + (chosen.stop - chosen.start) * self.image.extent], self.image

    def _groups(self, chosen: Chosen) -> Iterator[tuple[Image, NDArray[np.int64] | None]]:
        """(image, which of the chosen; None for all)."""
        if self.image is not None:
            yield self.image, None
            return
        residues = self.residues[chosen]
        for residue in sorted(set(residues.tolist())):
            yield image(self.geometry, self.rows, residue), np.flatnonzero(residues == residue)

    def put(self, chosen: Chosen, n: int, data: NDArray[np.uint8]) -> None:
        """Write the rows of the n chosen instructions, (n * R, row_bytes), to their windows."""
        starts = self.starts[chosen]
        for shape, which in self._groups(chosen):
            if which is None:
                transfer.put_images(self.smem.array, starts, data, shape)
            else:
                part = np.ascontiguousarray(data.reshape(n, -1)[which])
                transfer.put_images(self.smem.array, starts[which], part, shape)

    def get(self, chosen: Chosen, n: int, data: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The rows of the n chosen instructions from their windows: `data`, or a view of shared memory."""
        starts = self.starts[chosen]
        for shape, which in self._groups(chosen):
            if which is None:
                return transfer.get_images(self.smem.array, starts, shape, data)
            part = np.empty((len(which), data.size // n), np.uint8)
            taken = transfer.get_images(self.smem.array, starts[which], shape, part)
            data.reshape(n, -1)[which] = taken.reshape(part.shape)
        return data
