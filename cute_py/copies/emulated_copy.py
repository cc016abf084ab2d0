"""Copy the tiles of an atom in numpy: the checks of `copy` and `execute`, the emulated engine, and the results.

All backends use these checks and results; `device_copy` copies through a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypedDict, TypeVar

from cute_py.argument_checks import expect, expect_fields, expect_integer, expect_integer_array, refuse_mask
from cute_py.errors import InvalidTypeError, InvalidValueError, counted
from cute_py.layout.arguments import Tree
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int, value_of
from cute_py.layout.modes import unflatten
from cute_py.layout.trees import leaves
from cute_py.tensor.arrays import engine_and_layout
from cute_py.tensor.pointers import make_gmem_ptr
from cute_py.tensor.tensor import make_tensor
from cute_py.tma.atom.make import make_tma_copy
from cute_py.tma.atom.tiles import Instructions, instructions
from cute_py.tma.descriptor.limits import STORE_UNIT
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.memory import Bytes, Integers, as_bytes, unequal_bits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cute_py.tensor.array_views import ArrayLike, StreamLike
    from cute_py.tma.atom.atom import TmaAtom
else:
    from cute_py.optional_packages import numpy as np

HostArray: TypeAlias = "NDArray[np.generic]"

DESTINATION_BASE = 1 << 41
"""Emulated address of a destination whose strides differ from the source's."""
RING_BYTES = 2 << 20
"""Bytes of emulated shared memory for the tiles of one batch, so that they fit in a CPU cache."""

Progress: TypeAlias = Callable[[int, int], object] | None
"""Function that is called with (tiles done, tiles) from time to time."""


Destination = TypeVar("Destination", covariant=True)


class CopyOptions(TypedDict, total=False):
    """Options of a copy on the CUDA executor; see `copy`."""

    stream: StreamLike
    hints: bool
    verify: bool
    report: bool
    tune: bool


class ExecuteOptions(TypedDict, total=False):
    """Options of a load on the CUDA executor; see `execute`."""

    stream: StreamLike
    isolate: bool
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)  # arrays have no one equality
class CopyResult(Generic[Destination]):
    """Result of a copy.

    Attributes:
        destination: the array that was written; equal: whether its elements equal the source's; None if they were not
            compared, for example on a stream of the caller.
        tiles, instructions: the numbers of tiles and of loads; there are as many stores as loads. transaction_bytes:
            bytes that a barrier expects per tile.
        bytes: the size of the tensor in bytes; seconds: the time of the copy itself.
        warnings: messages about legal but unexpected properties; difference: a description of the first element that
            differs, or None.

    >>> import numpy
    >>> import cute_py as cute
    >>> x = numpy.arange(64 * 64, dtype="float32").reshape(64, 64)
    >>> result = cute.tma.copy(cute.tma.make_tma_copy("SM90_TMA_LOAD", x, "(_32,_32):(_32,_1)"), x)
    >>> result.equal, result.tiles, result.transaction_bytes
    (True, 4, 4096)
    """

    destination: Destination
    equal: bool | None
    tiles: int
    instructions: int
    transaction_bytes: int
    bytes: int
    seconds: float
    backend: str
    warnings: tuple[str, ...] = ()
    difference: str | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        expect_fields(self)

    def __repr__(self) -> str:
        outcome = {True: "equal", False: self.difference, None: "not compared"}[self.equal]
        loads = f"{counted(self.tiles, 'tile')}, {counted(self.instructions, 'load')}"
        return f"<copy of {self.bytes} bytes by {self.backend}: {loads} of {self.transaction_bytes} bytes; {outcome}>"


@dataclass(frozen=True, slots=True, eq=False)  # arrays have no one equality
class TileResult:
    """One tile in shared memory: `smem` contains its bytes (uint8) after the loads, as on hardware.

    >>> import numpy
    >>> import cute_py as cute
    >>> x = numpy.arange(64 * 64, dtype="float32").reshape(64, 64)
    >>> tile = cute.tma.execute(cute.tma.make_tma_copy("SM90_TMA_LOAD", x, "(_32,_32):(_32,_1)"), x, (1, 0))
    >>> tile.smem.view("float32")[:2].tolist(), tile.coords.tolist()
    ([2048.0, 2049.0], [[0, 32]])
    """

    smem: Bytes
    coords: Integers
    smem_offsets: Integers
    transaction_bytes: int
    backend: str

    def __post_init__(self) -> None:
        as_bytes(self.smem, "smem", writable=False)
        for name in ("coords", "smem_offsets"):
            expect_integer_array(getattr(self, name), name)
        expect_integer(self.transaction_bytes, "transaction_bytes", 0, unit="bytes")
        expect(self.backend, str, "backend")

    def __repr__(self) -> str:
        loads = counted(len(np.atleast_2d(self.coords)), "load")
        return f"<tile of {len(self.smem)} bytes by {self.backend}: {loads} of {self.transaction_bytes} bytes>"


def _numbers(tree: Tree) -> list[int]:
    """Return the leaves of a shape or stride as Python integers."""
    return [int(value_of(n)) for n in leaves(tree)]


def _same_tensor(atom: TmaAtom, shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether an array has the shape of the atom's tensor, and the same strides in every mode of size above 1."""
    layout = atom.gtensor.layout
    want = zip(_numbers(layout.shape), _numbers(layout.stride), strict=True)
    return list(shape) == _numbers(layout.shape) and all(
        n == 1 or have == step for have, (n, step) in zip(strides, want, strict=True)
    )


def _another_tensor(atom: TmaAtom, shape: Sequence[int], strides: Sequence[int], name: str) -> InvalidValueError:
    return InvalidValueError(
        f"{name} is not the tensor of this atom",
        {"atom": f"{atom.gtensor.layout}", name: f"shape {tuple(shape)}, strides {tuple(strides)} in elements"},
        "make the atom from this array",
    )


def check_tensor(atom: TmaAtom, shape: Sequence[int], strides: Sequence[int], bits: int, name: str) -> None:
    """Check that an array has the shape, strides and element width of the atom's tensor.

    Strides are in elements. The strides of modes of size 1 are not compared.

    Raises:
        InvalidValueError: the array does not match the atom's tensor.
    """
    if not _same_tensor(atom, shape, strides):
        raise _another_tensor(atom, shape, strides, name)
    if bits != atom.dtype.bits:
        raise InvalidValueError(
            f"{name} has elements of {bits} bits, but the atom copies {atom.dtype.bits}-bit elements"
        )


def destination_atom(atom: TmaAtom, address: int, shape: Sequence[int], strides: Sequence[int], bits: int) -> TmaAtom:
    """Return the atom whose instructions store the tiles.

    This is the atom of the loads if the destination has the same strides. Otherwise it is an atom for the destination's
    strides, provided that the same boxes at the same coordinates can move the tensor.

    Args:
        address: the address of the destination's first element; only its position within 16 bytes matters. strides:
            strides in elements.
    Raises:
        InvalidValueError: the shape or element width differs, or the strides need other boxes.
        TmaLimitError: no tensor map can have the strides or the address.
    """
    layout = atom.gtensor.layout
    if list(shape) != _numbers(layout.shape) or bits != atom.dtype.bits or _same_tensor(atom, shape, strides):
        check_tensor(atom, shape, strides, bits, "destination")
        return atom
    steps: list[int] = []
    for n, have, want in zip(shape, strides, _numbers(layout.stride), strict=True):
        if n > 1 and (have == 1) != (want == 1):  # another mode is contiguous, so no box fits both
            raise _another_tensor(atom, shape, strides, "destination")
        steps.append(want if n == 1 else Int(1) if have == 1 else have)
    target = make_tensor(
        make_gmem_ptr(address, atom.dtype), unflatten(Layout(tuple(shape), tuple(steps)), atom.gtensor.shape)
    )
    other = make_tma_copy("SM90_TMA_STORE", target, atom.smem_layout, atom.cta_tiler, 1, atom.internal_dtype, atom.arch)
    boxes = [(one.plan.dims, one.plan.box, str(one.gbasis)) for one in (atom, other)]
    if boxes[0] != boxes[1]:
        raise _another_tensor(atom, shape, strides, "destination")
    return other


def spilled_bytes(atom: TmaAtom) -> int:
    """Number of bytes that a store writes past the end of each row of the tensor, the same for all destinations."""
    return -(atom.plan.dims[0] * atom.internal_dtype.bits // 8) % STORE_UNIT


def first_difference(source: HostArray, destination: HostArray) -> str | None:
    """Describe the first element, in row-major order, whose bits differ; None if all are equal.

    >>> import numpy
    >>> first_difference(numpy.array([[1, 2], [3, 4]]), numpy.array([[1, 2], [3, 5]]))
    'element (1, 1): source np.int64(4), destination np.int64(5)'
    """
    source, destination = expect(source, np.ndarray, "source"), expect(destination, np.ndarray, "destination")
    if source.shape != destination.shape or source.dtype != destination.dtype or not source.ndim:
        raise InvalidValueError(
            "the arrays have different shapes or types, so no first difference is defined",
            {"source": f"{source.shape} {source.dtype}", "destination": f"{destination.shape} {destination.dtype}"},
        )
    first = unequal_bits(source, destination)
    if first is None:
        return None
    at = tuple(map(int, np.unravel_index(first[0], source.shape)))
    return f"element {at}: source {source[at]!r}, destination {destination[at]!r}"


def new_destination(source: HostArray) -> HostArray:
    """Return a numpy array of zeros with the shape, type and strides of `source`, which may be a view with gaps."""
    array = np.zeros_like(source, order="K")
    if array.strides == source.strides or not source.size:
        return array
    steps = [(n - 1) * step for n, step in zip(source.shape, source.strides, strict=True)]
    room = bytearray(sum(map(abs, steps)) + source.itemsize)
    return np.ndarray(source.shape, source.dtype, room, sum(-step for step in steps if step < 0), source.strides)


def _on_host(array: ArrayLike, name: str) -> HostArray:
    refuse_mask(array, name)
    if not isinstance(array, np.ndarray):
        raise InvalidTypeError(
            f"{name} is a {type(array).__name__}, but the emulator copies only numpy arrays",
            hint='pass a numpy view of it (numpy.from_dlpack); backend="cuda" copies arrays on a GPU',
        )
    return array


def _memory(array: HostArray) -> tuple[Bytes, int, tuple[list[int], list[int], int]]:
    """Return the memory of an array: (bytes from its lowest to its highest element, index of the first element's first
    byte, (shape, strides in elements, bits per element))."""
    engine, layout = engine_and_layout(array)
    width = engine.flat.dtype.itemsize
    geometry = _numbers(layout.shape), _numbers(layout.stride), 8 * width
    return engine.flat.view(np.uint8), engine.origin * width, geometry


def emulated_copy(
    atom: TmaAtom, given_source: ArrayLike, given_destination: ArrayLike | None, progress: Progress
) -> CopyResult[HostArray]:
    """Run `copy` with backend "emulator"."""
    source = _on_host(given_source, "source")
    image, image_start, geometry = _memory(source)
    check_tensor(atom, *geometry, "source")
    destination = new_destination(source) if given_destination is None else _on_host(given_destination, "destination")
    target, target_start, geometry = _memory(destination)
    stores = destination_atom(atom, DESTINATION_BASE + target_start, *geometry)
    if np.shares_memory(source, destination):
        raise InvalidValueError(
            "the source and the destination overlap, but a copy reads some tiles while it writes others"
        )
    if not destination.flags.writeable:
        raise InvalidValueError("the destination is read-only")
    work = instructions(atom)
    spill = spilled_bytes(atom)
    warnings = []
    if spill:
        warnings.append(
            f"rows of {atom.plan.dims[0] * atom.internal_dtype.bits // 8} bytes are not a multiple of "
            f"{STORE_UNIT}, and stores write up to {spill} bytes after each row, so the copy uses a padded buffer"
        )
    start = time.perf_counter()
    out = np.zeros(len(target) + STORE_UNIT, np.uint8) if spill else target
    emulator = Emulator(atom.arch)
    depth = max(1, min(work.tiles, RING_BYTES // work.smem_bytes))
    smem = np.zeros(depth * work.smem_bytes, np.uint8)
    windows = (np.arange(depth)[:, None] * work.smem_bytes + work.smem_offsets[None, :]).reshape(-1)
    # Sort tiles by address: a batch holds tiles that are neighbours in memory, and uses a ring of tile buffers.
    tiles = work.coords.reshape(work.tiles, work.per_tile, -1)
    ordered = tiles[np.lexsort(tiles[:, 0].T)].reshape(len(work.coords), -1)
    step = depth * work.per_tile * max(1, 4096 // (depth * work.per_tile))
    for begin in range(0, len(work.coords), step):
        coords = ordered[begin : begin + step]
        emulator.copy_many(
            atom.descriptor,
            image,
            coords,
            stores.descriptor,
            out,
            coords,
            smem,
            smem_offsets=windows[: len(coords)],
            source_base=int(atom.request.global_address) - image_start,
            destination_base=int(stores.request.global_address) - target_start,
        )
        if progress is not None:
            progress((begin + len(coords)) // work.per_tile, work.tiles)
    if spill:
        # Write only the elements; the bytes between them may belong to another array.
        destination[...] = np.ndarray(destination.shape, destination.dtype, out, target_start, destination.strides)
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


def emulated_tile(atom: TmaAtom, source: ArrayLike, coords: Integers, work: Instructions, poison: int) -> TileResult:
    """Run `execute` with backend "emulator"."""
    image, start, geometry = _memory(_on_host(source, "source"))
    check_tensor(atom, *geometry, "source")
    smem = emulated_window(atom, image, int(atom.request.global_address) - start, coords, work, poison)
    return TileResult(smem, coords, work.smem_offsets, atom.transaction_bytes, "emulator")


def emulated_window(atom: TmaAtom, gmem: Bytes, base: int, coords: Integers, work: Instructions, poison: int) -> Bytes:
    """Return the contents of shared memory after the loads of one tile. Before the loads, every byte is `poison`;
    gmem[0] is at address `base`."""
    smem = np.full(work.smem_bytes, poison, np.uint8)
    Emulator(atom.arch).load_many(atom.descriptor, gmem, coords, smem, smem_offsets=work.smem_offsets, gmem_base=base)
    return smem
