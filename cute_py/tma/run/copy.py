"""copy and execute: an atom on real data.

`copy` moves a whole tensor tile by tile through shared memory into another tensor of the same layout: every tile is
loaded by the atom's instructions and stored by the store of the same box. `execute` does one tile and gives back what
lies in shared memory.

backend="emulator" runs the descriptor's bytes in numpy, "cuda" on the GPU, "both" compares the two byte by byte.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cute_py.arith_tuple.array_sources import engine_and_layout
from cute_py.arith_tuple.arrays import ArrayEngine
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Tree
from cute_py.layout.trees import leaves
from cute_py.tma.copy_atom.tiles import Instructions, instructions, known
from cute_py.tma.run.emulator import Emulator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cute_py.tma.copy_atom.copy_atom import TmaAtom

STORE_UNIT = 16
"""Bytes; stores write the last row of a box up to a multiple of this (measured on an H200)."""
RING_BYTES = 4 << 20
"""Bytes of emulated shared memory that tiles of one batch go through; more tiles at once run faster."""


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What a copy did.

    Attributes:
        destination: the array that was written; equal: whether it has the source's elements.
        tiles, instructions: how many loads (and as many stores) ran; transaction_bytes: what a barrier expects a tile.
        bytes: bytes of the tensor; seconds: time of the copy itself.
        warnings: what was legal and may surprise; difference: the first element that differs, in words.
    """

    destination: Any
    equal: bool
    tiles: int
    instructions: int
    transaction_bytes: int
    bytes: int
    seconds: float
    backend: str
    warnings: tuple[str, ...] = ()
    difference: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TileResult:
    """One tile in shared memory: `smem` (uint8 bytes as the hardware leaves them), and how they came there."""

    smem: NDArray[Any]
    coords: NDArray[Any]
    smem_offsets: NDArray[Any]
    transaction_bytes: int
    backend: str


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
            f"{name} is {type(array).__name__}; the emulator copies numpy arrays", hint='use backend="cuda"'
        )
    engine, layout = engine_and_layout(array)
    return _Image(array, engine, layout)


def _check_same(atom: TmaAtom, image: _Image, name: str) -> None:
    """The array must be the tensor that the atom was made for: same shape and strides, elements of the same width."""
    want = (known(tuple(leaves(atom.gtensor.shape))), known(tuple(leaves(atom.gtensor.stride))))
    got = (known(tuple(leaves(image.layout.shape))), known(tuple(leaves(image.layout.stride))))
    moving = [d for n, d in zip(want[0], want[1], strict=True) if n > 1]
    there = [d for n, d in zip(got[0], got[1], strict=True) if n > 1] if want[0] == got[0] else None
    if there != moving:
        raise InvalidValueError(
            f"{name} is not the tensor of the atom",
            {"atom": f"{atom.gtensor.layout}", name: f"{image.layout}"},
            "make the atom from this array",
        )
    bits = image.engine.flat.dtype.itemsize * 8
    if bits != atom.dtype.bits:
        raise InvalidValueError(f"{name} has elements of {bits} bits, the atom {atom.dtype.bits}")


def copy(
    atom: TmaAtom,
    source: Any,
    destination: Any = None,
    backend: str = "emulator",
    *,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> CopyResult:
    """Copy a whole tensor through the atom's tiles.

    Args:
        atom: a load atom made for `source` (or for a tensor of its shape and strides).
        source: the array; destination: an array of the same shape and strides, default a new one of zeros.
        backend: 'emulator', 'cuda' or 'both'.
        progress: called with (tiles done, tiles) now and then.
        options: of the CUDA executor.
    Raises:
        InvalidValueError: the arrays are not the atom's tensor; TmaTrap: an instruction would trap.

    >>> import numpy as np
    >>> x = np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, Layout((Int(32), Int(32)), LayoutRight))
    >>> result = cute.tma.copy(atom, x)
    >>> result.equal, result.tiles, result.transaction_bytes
    (True, 4, 2048)
    """
    if backend not in ("emulator", "cuda", "both"):
        raise InvalidValueError(f"backend {backend!r}; must be 'emulator', 'cuda' or 'both'")
    if atom.op.row.direction != "load" or atom.op.row.mode != "tile":
        raise InvalidValueError(f"copy takes an atom of a tile load, not {atom.op}")
    if backend == "emulator":
        return _emulated(atom, source, destination, progress)
    from cute_py.tma.run.device_copy import copy_on_device

    return copy_on_device(atom, source, destination, backend, progress, options)


def _emulated(atom: TmaAtom, source: Any, destination: Any, progress: Callable[[int, int], None] | None) -> CopyResult:
    import numpy as np

    image = _image(source, "source")
    _check_same(atom, image, "source")
    if destination is None:
        destination = np.zeros_like(source, order="K")
    target = _image(destination, "destination")
    _check_same(atom, target, "destination")
    if np.shares_memory(source, destination):
        raise InvalidValueError("source and destination overlap; a copy reads tiles while others are written")
    if not destination.flags.writeable:
        raise InvalidValueError("destination is read-only")
    work = instructions(atom)
    row_bytes = atom.plan.dims[0] * atom.internal_dtype.bits // 8
    warnings = []
    spill = row_bytes % STORE_UNIT != 0
    if spill:
        warnings.append(
            f"rows of {row_bytes} bytes are no multiple of {STORE_UNIT}: stores write up to "
            f"{STORE_UNIT - row_bytes % STORE_UNIT} bytes behind each row; copied through a padded buffer"
        )
    start = time.perf_counter()
    out = np.zeros(len(target.bytes) + STORE_UNIT, np.uint8) if spill else target.bytes
    address = int(atom.request.global_address)
    _run(atom, work, image.bytes, address - image.first, out, address - target.first, progress)
    if spill:
        target.bytes[:] = out[: len(target.bytes)]
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
    step = depth * work.per_tile * max(1, 4096 // (depth * work.per_tile))
    for begin in range(0, len(work.coords), step):
        coords = work.coords[begin : begin + step]
        emulator.copy_many(
            atom.descriptor,
            source,
            coords,
            atom.descriptor,
            out,
            coords,
            smem,
            smem_offsets=windows[: len(coords)],
            source_base=source_base,
            destination_base=out_base,
        )
        if progress is not None:
            progress((begin + len(coords)) // work.per_tile, work.tiles)


def first_difference(source: Any, destination: Any) -> str | None:
    """The first element, in row-major order, whose bits differ; None if none does."""
    import numpy as np

    kind = np.dtype(f"u{source.dtype.itemsize}") if source.dtype.itemsize in (1, 2, 4, 8) else None
    a = source.view(kind) if kind is not None else source
    b = destination.view(kind) if kind is not None else destination
    differs = a != b
    if not differs.any():
        return None
    at = np.unravel_index(int(np.argmax(differs)), source.shape)
    where = tuple(int(i) for i in at)
    return f"element {where}: source {source[at]!r}, destination {destination[at]!r}"


def execute(
    atom: TmaAtom, source: Any, tile_coord: Tree = 0, *, backend: str = "emulator", poison: int = 0, **options: Any
) -> TileResult:
    """Load one tile and give back shared memory.

    Args:
        tile_coord: which tile: an index, or a coordinate in the tile modes.
        poison: byte that shared memory is filled with before.

    >>> import numpy as np
    >>> x = np.arange(64 * 64, dtype=np.uint8).reshape(64, 64)
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, Layout((Int(32), Int(32)), LayoutRight))
    >>> cute.tma.execute(atom, x, (0, 1)).smem[:3].tolist()
    [32, 33, 34]
    """
    import numpy as np

    if backend not in ("emulator", "cuda", "both"):
        raise InvalidValueError(f"backend {backend!r}; must be 'emulator', 'cuda' or 'both'")
    work = instructions(atom)
    shape = known(work.tile_shape)
    number = int(Layout(shape)(tile_coord)) if isinstance(tile_coord, tuple) else int(tile_coord)
    if not 0 <= number < work.tiles:
        raise InvalidValueError(f"tile {tile_coord}: there are {work.tiles} tiles", {"tile modes": shape})
    coords = work.coords[number * work.per_tile : (number + 1) * work.per_tile]
    if backend != "emulator":
        from cute_py.tma.run.device_copy import execute_on_device

        return execute_on_device(atom, source, coords, work, backend, poison, options)
    image = _image(source, "source")
    _check_same(atom, image, "source")
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
