"""One copy with everything that its traces show and their verifiers judge: the real tensor, and the copy's attributes.

A trace names the tensor's modes in the tensor's own order, `M, K` for rank 2. A run-time size prints as a kernel
argument, `%M`, a static one as a number; a run-time stride prints as the product of the sizes inside it where it is
one, `%K`, else as an argument of its own, `%sm`. Tile, coordinates and boxes are outermost first: the mode that the
tensor map has last comes first. `dim_map` says which mode of the tensor each mode of the tile is:

    (256,128):(128,1), tile 64x32    shape = [%M, %K], stride = [%K, 1]    tile = [64, 32], dim_map = [0, 1]
    (256,128):(1,256), tile 64x32    shape = [%M, %K], stride = [1, %M]    tile = [32, 64], dim_map = [1, 0]
    (256,100):(128,1), tile 64x32    shape = [%M, %K], stride = [%sm, 1]   tile = [64, 32], dim_map = [0, 1]

Modes are those of the tensor map: modes that it merges are one, modes of static size 1 are none.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cute_py.argument_checks import expect, expect_choice, expect_integer, expect_items
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import CoordinateError
from cute_py.layout.trees import at, leaves, modes
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.tiles import first_tile, tile_number, tile_start, tile_steps
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.dialect.copy_shape import AXIS_NAMES, Copyable, CopyShape, copy_shape_of
from cute_py.tma.dialect.diagnostics import DESCRIPTOR_BYTES, check_atom, check_operands, refuse

if TYPE_CHECKING:
    from cute_py.layout.arguments import Tree

MEM_SEMANTICS: Final = ("weak", "relaxed", "acquire", "release", "acq_rel")


@dataclass(frozen=True, slots=True)
class TensorView:
    """The global tensor: names, sizes and strides (in elements) of its modes as the traces print them, in its order.

    dim_map: mode of the tile, outermost first -> mode of the tensor. values: of the run-time numbers, '%M = 256, ...'.
    """

    axes: tuple[str, ...]
    sizes: tuple[str, ...]
    strides: tuple[str, ...]
    dim_map: tuple[int, ...]
    values: str = ""

    def outer_first(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Texts of the tensor's modes in the order of the tile's."""
        return tuple([texts[mode] for mode in self.dim_map])


@dataclass(frozen=True, slots=True)
class TracedCopy:
    """A copy as `lower` was asked for it.

    shape: its numbers. view: its tensor. dtypes: of the elements of the view, and of those of the tile.
    operation: what the program runs: load, store or reduce. in_bounds: by mode of the tile. box_rank: extents of the
    atom's box. alignment: of the descriptor's address, bytes. fill: of what lies outside the tensor.
    start: of the tile, in elements, innermost first; None if no tile is named. coordinate_type: of its coordinates.
    """

    shape: CopyShape
    view: TensorView
    dtypes: tuple[DType, DType]
    operation: str
    in_bounds: tuple[bool, ...]
    box_rank: int
    mem_semantic: str = "relaxed"
    alignment: int = DESCRIPTOR_BYTES
    fill: float = 0
    start: tuple[int, ...] | None = None
    coordinate_type: str = "index"

    @property
    def device(self) -> bool:
        """Is the descriptor made on the device?"""
        return self.shape.device_descriptor


def symbolic_view(rank: int, axes: tuple[str, ...]) -> TensorView:
    """A row-major tensor of sizes that nobody gave.

    >>> symbolic_view(2, ("M", "K")).strides
    ('%K', '1')
    """
    sizes = tuple([f"%{axis}" for axis in axes])
    strides = tuple(["*".join(sizes[i:]) or "1" for i in range(1, rank + 1)])
    return TensorView(axes, sizes, strides, tuple(range(rank)))


def _tensor_order(atom: TmaAtom | object, rank: int) -> tuple[list[int], list[bool]]:
    """The modes of the tensor map in the order of the tensor's own, and for each whether its numbers are static."""
    if not isinstance(atom, TmaAtom) or atom.plan.rank != rank:
        return list(range(rank))[::-1], [False] * rank
    paths, static = [], []
    gmem = atom.gtensor.layout
    for mode in modes(atom.plan.gbasis._stride):
        own = [tuple(getattr(d, "modes", ())) for d in leaves(mode)]
        paths.append(min(own))
        static.append(all(type(at(tree, path)) is int for path in own for tree in (gmem._shape, gmem._stride)))
    return sorted(range(rank), key=paths.__getitem__), static


def view_of(atom: Copyable, shape: CopyShape) -> TensorView:
    """The tensor of a copy, from its atom.

    >>> import cute_py as cute
    >>> x = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.Layout((256, 128), (cute.Int(1), 256)))
    >>> at = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, cute.Layout((cute.Int(64), cute.Int(32))))
    >>> found = view_of(at, copy_shape_of(at))
    >>> found.strides, found.dim_map, found.values
    (('1', '%M'), (1, 0), '%M = 256, %K = 128')
    """
    request = getattr(atom, "request", None)
    if request is None or isinstance(atom, CopyShape):
        return symbolic_view(shape.rank, shape.axes)
    rank, bits = len(request.global_dim), shape.dtype.bits
    order, static = _tensor_order(atom, rank)
    axes = AXIS_NAMES[rank - 1]
    dims, steps = request.global_dim, (1, *(stride * 8 // bits for stride in request.global_strides))
    values: dict[str, int] = {}

    def number(mode: int, name: str, value: int) -> str:
        """A size or stride: its own number where it is static, else a name."""
        if static[mode]:
            return str(value)
        values[name] = value
        return name

    sizes = {mode: number(mode, f"%{axis}", dims[mode]) for axis, mode in zip(axes, order, strict=True)}
    strides = {0: "1"}
    for axis, mode in zip(axes, order, strict=True):
        inside = [m for m in order if m == 0 or (m != mode and steps[m] < steps[mode])]
        if mode and not static[mode] and math.prod([dims[m] for m in inside]) == steps[mode]:
            strides[mode] = "*".join([sizes[m] for m in inside])
        elif mode:
            strides[mode] = number(mode, f"%s{axis.lower()}", steps[mode])
    said = ", ".join(f"{name} = {value}" for name, value in values.items())
    dim_map = tuple([order.index(mode) for mode in reversed(range(rank))])
    return TensorView(tuple(axes), tuple([sizes[m] for m in order]), tuple([strides[m] for m in order]), dim_map, said)


def _start(atom: Copyable, shape: CopyShape, tile_coord: Tree) -> tuple[int, ...]:
    """The first element of a tile, innermost first.

    `tile_coord` is what `execute` takes: an index, or a coordinate in the tile modes of the divided tensor. A copy
    without a tensor takes a coordinate in tiles, outermost first.
    """
    tiles = tile_coord if type(tile_coord) is tuple else (tile_coord,)
    work = first_tile(atom) if isinstance(atom, TmaAtom) and atom.plan.rank == shape.rank else None
    rank = shape.rank if work is None else len(tuple(modes(tile_steps(work)._shape)))
    if work is None or type(tile_coord) is tuple:
        for wrong in check_operands(rank, len(tiles), (shape.dtype, shape.dtype)):
            raise CoordinateError(wrong.text)
    if work is None:
        numbers = [expect_integer(c, "a coordinate of a tile") for c in tiles]
        return tuple([c * t for c, t in zip(numbers, shape.tile, strict=True)])[::-1]
    first = work.coords[0].tolist()
    step = tile_start(work, tile_number(work, tile_coord), shape.rank)
    return tuple([begin + moved for begin, moved in zip(first, step, strict=True)])


def _is_inside(atom: Copyable, shape: CopyShape, start: tuple[int, ...] | None) -> tuple[bool, ...]:
    """Whether the tile lies inside the tensor, by mode, outermost first; without a start, whether every tile does."""
    request = getattr(atom, "request", None)
    if not isinstance(request, TensorMapTiled) or shape.rows_by_index:
        return (True,) * shape.rank
    if start is None:
        return tuple([n % t == 0 for n, t in zip(request.global_dim[::-1], shape.tile, strict=True)])
    places = zip(start[::-1], shape.tile, request.global_dim[::-1], strict=True)
    return tuple([first >= 0 and first + extent <= size for first, extent, size in places])


def trace_copy(
    atom: Copyable,
    tile_coord: Tree | None = None,
    *,
    tensor: str = "A",
    device_descriptor: bool = False,
    mem_semantic: str = "relaxed",
    in_bounds: Sequence[bool] | None = None,
    alignment: int = DESCRIPTOR_BYTES,
) -> TracedCopy:
    """The copy of an atom, with the attributes that its operation has.

    Args:
        tile_coord: which tile, as `execute` takes it. tensor: its name in traces.
        device_descriptor: the tensor map is made on the device. alignment: of its address, bytes.
        mem_semantic: one of `MEM_SEMANTICS`. in_bounds: by mode of the tile; by default what the tensor says.
    Raises:
        TmaBuildError: no atom, or a box of another rank than the atom's ('tmaBoxDim and atomBoxDim length mismatch').
        CoordinateError: a wrong number of coordinates. InvalidValueError: no such tile.
    """
    tile_coord = tuple(tile_coord) if isinstance(tile_coord, list) else tile_coord
    request = getattr(atom, "request", None)
    rank = len(getattr(request, "global_dim", ()))
    box_rank = getattr(getattr(atom, "plan", None), "rank", rank)
    # The instructions of an atom whose request has another rank are not known.
    refuse(check_atom("load", rank, box_rank, DESCRIPTOR_BYTES))
    shape = copy_shape_of(atom, tensor=tensor)
    if expect(device_descriptor, bool, "device_descriptor"):
        shape = dataclasses.replace(shape, device_descriptor=True)
    start = None if tile_coord is None else _start(atom, shape, tile_coord)
    numbers = tile_coord if isinstance(tile_coord, tuple) else (tile_coord,)
    widths = {8 * int(getattr(number, "itemsize", 8)) for number in numbers} - {64}
    named = getattr(atom, "name", "")
    operation = named.removeprefix("atom.tma_") if str(named).startswith("atom.tma_") else shape.direction
    own = _is_inside(atom, shape, start)
    return TracedCopy(
        shape,
        view_of(atom, shape),
        (as_dtype(getattr(atom, "dtype", shape.dtype)), as_dtype(getattr(atom, "internal_dtype", shape.dtype))),
        operation,
        own if in_bounds is None else expect_flags(in_bounds),
        box_rank or shape.rank,
        expect_choice(mem_semantic, MEM_SEMANTICS, "mem_semantic"),
        expect_integer(alignment, "alignment", 0, unit="bytes"),
        math.nan if getattr(request, "oob_fill", 0) else 0,
        start,
        f"i{min(widths)}" if widths else "index",
    )


def expect_flags(flags: Sequence[bool]) -> tuple[bool, ...]:
    """in_bounds as a tuple of booleans."""
    return tuple([expect(flag, bool, "an element of in_bounds") for flag in expect_items(flags, "in_bounds")])
