"""Run a TMA copy atom on array data: `copy` moves a whole tensor, `execute` loads one tile.

`copy` moves a whole tensor tile by tile through shared memory into another tensor of the same layout. The atom's
instructions load each tile, and a store with the same box writes it to the destination. `execute` loads one tile and
returns the contents of shared memory.

backend="emulator" runs the descriptor's bytes in numpy, "cuda" runs them on the GPU, and "both" compares the two byte
by byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, Unpack, cast, overload

from cute_py.argument_checks import expect, expect_function, expect_having, expect_integer
from cute_py.copies.emulated_copy import (
    CopyOptions,
    CopyResult,
    ExecuteOptions,
    Progress,
    TileResult,
    emulated_copy,
    emulated_tile,
)
from cute_py.errors import InvalidValueError, given
from cute_py.layout.arguments import Tree
from cute_py.tma.atom.tile_atom import expect_fits
from cute_py.tma.atom.tiles import first_tile, instructions, tile_number

if TYPE_CHECKING:
    import numpy as np

    from cute_py.tensor.array_views import ArrayLike
    from cute_py.tma.atom.atom import TmaAtom
    from cute_py.tma.descriptor.request import HasTraits
else:
    from cute_py.optional_packages import numpy as np

Array = TypeVar("Array", bound="ArrayLike")

BACKENDS = ("emulator", "cuda", "both")


def _require_backend(backend: str, options: CopyOptions | ExecuteOptions) -> None:
    expect(backend, str, "backend")
    if backend not in BACKENDS:
        raise InvalidValueError(f"backend = {given(backend)}; must be 'emulator', 'cuda' or 'both'")
    if backend == "emulator" and options:
        raise InvalidValueError(f"the option {next(iter(options))!r} needs backend='cuda'; the backend is 'emulator'")


@overload
def copy(
    atom: TmaAtom | HasTraits | None,
    source: Array,
    destination: None = None,
    backend: str = "emulator",
    *,
    progress: Progress = None,
    **options: Unpack[CopyOptions],
) -> CopyResult[Array]: ...
@overload
def copy(
    atom: TmaAtom | HasTraits | None,
    source: ArrayLike,
    destination: Array,
    backend: str = "emulator",
    *,
    progress: Progress = None,
    **options: Unpack[CopyOptions],
) -> CopyResult[Array]: ...
def copy(
    atom: TmaAtom | HasTraits | None,
    source: ArrayLike,
    destination: ArrayLike | None = None,
    backend: str = "emulator",
    *,
    progress: Progress = None,
    **options: Unpack[CopyOptions],
) -> CopyResult[ArrayLike]:
    """Copy a whole tensor, tile by tile, with the instructions of a TMA atom.

    Args:
        atom: a load atom made for `source` (or for a tensor of its shape and strides), or an operation or a descriptor
            of the reference pages. With None and backend "cuda", the executor chooses boxes and kernel for any order
            and strides of source and destination.
        source: the array; destination: an array of the same shape, with strides that the same boxes can move (for
            example, a compact copy of a view); by default, a new array with the source's strides.
        backend: 'emulator', 'cuda' or 'both'.
        progress: a function that is called from time to time with (tiles done, total tiles).
        options: options of the CUDA executor. stream: enqueue the copy on this stream; the call then neither waits for
            nor verifies device arrays. hints: use L2 policies. verify: compare on the host (default True). report:
            measure the copy against a memcpy; the result is in `details["report"]`. tune, only without an atom: keep
            the fastest of a few tilings.
    Raises:
        InvalidTypeError: `atom` is not an atom; InvalidValueError: an array does not match the atom's tensor;
            TmaLimitError: the tile does not fit in the shared memory of a block; TmaTrap: an instruction would trap.

    >>> import numpy as np
    >>> x = np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, Layout((Int(32), Int(32)), LayoutRight))
    >>> result = cute.tma.copy(atom, x)
    >>> result.equal, result.tiles, result.transaction_bytes
    (True, 4, 2048)
    """
    _require_backend(backend, options)
    if progress is not None:
        expect_function(progress, "progress, called with two counts,", 2)
    if atom is None:
        from cute_py.copies.device_copy import copy_without_atom

        return copy_without_atom(source, destination, backend, progress, options)
    atom = cast("TmaAtom", getattr(atom, "traits", atom))
    expect_having(atom, ("gbasis", "plan", "op"), "a TMA atom of tiles")
    if atom.op.row.direction != "load" or atom.op.row.mode != "tile":
        raise InvalidValueError(f"copy needs a tile-load atom, got {atom.op}")
    expect_fits(atom)
    if backend == "emulator":
        return emulated_copy(atom, source, destination, progress)
    from cute_py.copies.device_copy import copy_on_device

    return copy_on_device(atom, source, destination, backend, progress, options)


def execute(
    atom: TmaAtom | HasTraits,
    source: ArrayLike,
    tile_coord: Tree | None = None,
    *,
    backend: str = "emulator",
    poison: int = 0,
    **options: Unpack[ExecuteOptions],
) -> TileResult:
    """Load one tile and return the contents of shared memory.

    Args:
        atom: a load atom, or an operation or a descriptor of the reference pages.
        tile_coord: the tile, as an index or a coordinate in the tile modes. Default: the first tile, or for a
            `TmaOperation`, the tile at its coordinate.
        poison: the byte that fills shared memory before the load.
        options: options of the CUDA executor. isolate: run in a child process, so that a trap leaves the context of
            this process intact. seconds: the time limit of the child process, default 60.
    Raises:
        InvalidTypeError: `atom` is not an atom; InvalidValueError: the array does not match the atom's tensor, or the
            tile does not exist; TmaLimitError: the tile does not fit in the shared memory of a block; TmaTrap: an
            instruction would trap; DeviceError: there is no GPU, a barrier did not complete, or (backend "both") a byte
            differs.

    >>> import numpy as np
    >>> x = np.arange(64 * 64, dtype=np.uint8).reshape(64, 64)
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, Layout((Int(32), Int(32)), LayoutRight))
    >>> cute.tma.execute(atom, x, (0, 1)).smem[:3].tolist()
    [32, 33, 34]
    """
    _require_backend(backend, options)
    poison = expect_integer(poison, "poison", 0, 255)
    start = getattr(atom, "coord", None) if tile_coord is None else None
    atom = cast("TmaAtom", getattr(atom, "traits", atom))
    work = instructions(atom)
    expect_fits(atom)
    if start is not None:
        numbers = [expect_integer(c, "a coordinate of a tile that is loaded") for c in start]
        coords = first_tile(atom).coords + np.array(numbers)
    else:
        number = tile_number(work.tile_shape, 0 if tile_coord is None else tile_coord)
        coords = work.coords[number * work.per_tile : (number + 1) * work.per_tile]
    if backend != "emulator":
        from cute_py.copies.device_copy import execute_on_device

        return execute_on_device(atom, source, coords, work, backend, poison, options)
    return emulated_tile(atom, source, coords, work, poison)
