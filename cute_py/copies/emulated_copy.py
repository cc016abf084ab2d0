"""Whole numpy tensors, and single tiles of them, through the emulated engine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cute_py.copies.checks import (
    CopyResult,
    TileResult,
    check_tensor,
    destination_atom,
    first_difference,
    integers,
    new_destination,
    spilled_bytes,
)
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.layout.layout import Layout
from cute_py.tensor.arrays import ArrayEngine, engine_and_layout
from cute_py.tma.atom.tiles import Instructions, instructions
from cute_py.tma.descriptor.limits import STORE_UNIT
from cute_py.tma.emulator.emulator import Emulator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cute_py.tma.atom.atom import TmaAtom

DESTINATION_BASE = 1 << 41
"""The address that a destination of other strides than the source's is emulated at."""
RING_BYTES = 2 << 20
"""Bytes of emulated shared memory that tiles of one batch go through: as large as a CPU cache likes."""


@dataclass(frozen=True, slots=True)
class _Image:
    """The bytes of an array as they lie in memory, where the descriptor finds them."""

    array: Any
    engine: ArrayEngine
    layout: Layout

    @property
    def bytes(self) -> NDArray[Any]:
        """View of all bytes between the lowest and the highest element."""
        import numpy as np

        flat: NDArray[Any] = self.engine.flat.view(np.uint8)
        return flat

    @property
    def first(self) -> int:
        """Byte of the element at offset 0."""
        return self.engine.origin * int(self.engine.flat.dtype.itemsize)


def _image(array: Any, name: str) -> _Image:
    import numpy as np

    if not isinstance(array, np.ndarray):
        raise InvalidTypeError(
            f"{name} is {type(array).__name__}; the emulator copies numpy arrays",
            hint='give a numpy view of it (numpy.from_dlpack); arrays on a GPU are copied by backend="cuda"',
        )
    engine, layout = engine_and_layout(array)
    return _Image(array, engine, layout)


def _geometry(image: _Image) -> tuple[list[int], list[int], int]:
    """(shape, strides in elements, bits of an element) of an array."""
    return integers(image.layout.shape), integers(image.layout.stride), image.engine.flat.dtype.itemsize * 8


def _checked(atom: TmaAtom, array: Any, name: str) -> _Image:
    image = _image(array, name)
    check_tensor(atom, *_geometry(image), name)
    return image


def emulated_copy(
    atom: TmaAtom, source: Any, destination: Any, progress: Callable[[int, int], None] | None
) -> CopyResult:
    """`copy` with backend "emulator"."""
    import numpy as np

    image = _checked(atom, source, "source")
    if destination is None:
        destination = new_destination(source)
    target = _image(destination, "destination")
    stores = destination_atom(atom, DESTINATION_BASE + target.first, *_geometry(target))
    if np.shares_memory(source, destination):
        raise InvalidValueError("source and destination overlap; a copy reads tiles while others are written")
    if not destination.flags.writeable:
        raise InvalidValueError("destination is read-only")
    work = instructions(atom)
    spill = spilled_bytes(atom)
    warnings = []
    if spill:
        warnings.append(
            f"rows of {atom.plan.dims[0] * atom.internal_dtype.bits // 8} bytes are no multiple of {STORE_UNIT}: "
            f"stores write up to {spill} bytes behind each row; copied through a padded buffer"
        )
    start = time.perf_counter()
    out = np.zeros(len(target.bytes) + STORE_UNIT, np.uint8) if spill else target.bytes
    address = int(atom.request.global_address)
    there = int(stores.request.global_address)
    _run(atom, stores, work, image.bytes, address - image.first, out, there - target.first, progress)
    if spill:
        # Only the elements: bytes between them may be another array's.
        destination[...] = np.ndarray(destination.shape, destination.dtype, out, target.first, destination.strides)
    seconds = time.perf_counter() - start
    difference = first_difference(source, destination)
    return CopyResult(
        destination,
        difference is None,
        work.tiles,
        len(work.coords),
        atom.transaction_bytes,
        int(source.nbytes),
        seconds,
        "emulator",
        tuple(warnings),
        difference,
    )


def _run(
    atom: TmaAtom,
    stores: TmaAtom,
    work: Instructions,
    source: NDArray[Any],
    source_base: int,
    out: NDArray[Any],
    out_base: int,
    progress: Callable[[int, int], None] | None,
) -> None:
    """All tiles, in batches that go through a ring of tile buffers."""
    import numpy as np

    emulator = Emulator(atom.arch)
    depth = max(1, min(work.tiles, RING_BYTES // work.smem_bytes))
    smem = np.zeros(depth * work.smem_bytes, np.uint8)
    windows = (np.arange(depth)[:, None] * work.smem_bytes + work.smem_offsets[None, :]).reshape(-1)
    # Tiles in the order of their addresses: neighbours in memory go through one batch.
    tiles = work.coords.reshape(work.tiles, work.per_tile, -1)
    ordered = tiles[np.lexsort(tiles[:, 0].T)].reshape(len(work.coords), -1)
    step = depth * work.per_tile * max(1, 4096 // (depth * work.per_tile))
    for begin in range(0, len(work.coords), step):
        coords = ordered[begin : begin + step]
        emulator.copy_many(
            atom.descriptor,
            source,
            coords,
            stores.descriptor,
            out,
            coords,
            smem,
            smem_offsets=windows[: len(coords)],
            source_base=source_base,
            destination_base=out_base,
        )
        if progress is not None:
            progress((begin + len(coords)) // work.per_tile, work.tiles)


def emulated_tile(atom: TmaAtom, source: Any, coords: NDArray[Any], work: Instructions, poison: int) -> TileResult:
    """`execute` with backend "emulator"."""
    import numpy as np

    image = _checked(atom, source, "source")
    smem = np.full(work.smem_bytes, poison, np.uint8)
    Emulator(atom.arch).load_many(
        atom.descriptor,
        image.bytes,
        coords,
        smem,
        smem_offsets=work.smem_offsets,
        gmem_base=int(atom.request.global_address) - image.first,
    )
    return TileResult(smem, coords, work.smem_offsets, atom.transaction_bytes, "emulator")
