"""List the instructions of a whole copy: coordinates and shared-memory position for every tile and slot.

Tiles are in colexicographic order of the tile modes, and the slots of a tile are in the order of shared memory. With
multicast, the slots of the CTAs that share a tile follow one another.

The tiles differ only in their start. `first_tile` lists the instructions of the tile at the origin, and `tile_steps`
maps each tile to its offset from that tile. An atom computes both once, in time that does not depend on the size of the
tensor. `instructions` computes the instructions of all tiles in one call, as numpy arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from cute_py.argument_checks import (
    expect,
    expect_having,
    expect_integer,
    expect_integer_array,
    expect_items,
    items_of,
    record,
)
from cute_py.arith_tuple.arith_tuple import ScaledBasis
from cute_py.arith_tuple.ratio import Ratio
from cute_py.diagnostics import Diagnostic, Findings, Scope
from cute_py.errors import InvalidTypeError, InvalidValueError, counted, given
from cute_py.layout.arguments import Tree
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int, as_leaves, value_of
from cute_py.layout.modes import group_modes
from cute_py.layout.tiling import zipped_divide
from cute_py.layout.trees import check_depth, leaves, modes
from cute_py.tensor.pointers import make_smem_ptr
from cute_py.tensor.tensor import Tensor, make_tensor
from cute_py.tma.atom.partition import tma_partition
from cute_py.tma.atom.tile_atom import TileAtom

if TYPE_CHECKING:
    import numpy
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

SMEM_ALIGNMENT = 128
"""Alignment in bytes of the shared-memory address of a tensor copy (PTX ISA, cp.async.bulk.tensor)."""


@dataclass(frozen=True, slots=True, eq=False)  # arrays have an elementwise ==
class Instructions:
    """All instructions of a copy.

    Attributes:
        coords: (tiles * per_tile, R) int64, in TMA order; R is the rank of the tensor map.
        smem_offsets: (per_tile,) int64, bytes from the start of the tile's buffer.
        tiles: number of tiles; per_tile: number of instructions per tile.
        tile_shape: number of tiles along each tile mode.
        smem_bytes: bytes of one tile's buffer, rounded up to its alignment.
        gmem_partition, smem_partition: the partition of CTA 0, as tensors.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(0x1000, "float16"), cute.parse("(256,128):(128,_1)"))
    >>> moved = cute.tma.instructions(cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, "(_128,_64):(_64,_1)"))
    >>> moved.tiles, moved.per_tile, moved.smem_bytes
    (4, 1, 16384)
    """

    coords: NDArray[numpy.int64]
    smem_offsets: NDArray[numpy.int64]
    tiles: int
    per_tile: int
    tile_shape: Tree
    smem_bytes: int
    gmem_partition: Tensor
    smem_partition: Tensor

    def __post_init__(self) -> None:
        for name in ("coords", "smem_offsets"):
            expect_integer_array(getattr(self, name), name)
        for name in ("tiles", "per_tile", "smem_bytes"):
            expect_integer(getattr(self, name), name, 0)
        for name in ("gmem_partition", "smem_partition"):
            expect(getattr(self, name), Tensor, name)

    def __repr__(self) -> str:
        each = counted(self.per_tile, "instruction")
        return f"<{counted(self.tiles, 'tile')} of {each}, {self.smem_bytes} bytes of shared memory each>"


@dataclass(frozen=True, eq=False)
class FirstTile:
    """The instructions of the tile at the origin, as Python integers.

    Attributes:
        rows: the coordinates of each instruction, in TMA order. places: bytes from the start of the tile's buffer.
        tiles, per_tile, tile_shape, smem_bytes, gmem_partition, smem_partition: as in `Instructions`.
    """

    rows: tuple[tuple[int, ...], ...]
    places: tuple[int, ...]
    tiles: int
    per_tile: int
    tile_shape: Tree
    smem_bytes: int
    gmem_partition: Tensor
    smem_partition: Tensor

    @cached_property
    def coords(self) -> NDArray[numpy.int64]:
        """`rows` as an array, (per_tile, R)."""
        return np.array(self.rows, np.int64)

    @cached_property
    def smem_offsets(self) -> NDArray[numpy.int64]:
        """`places` as an array, (per_tile,)."""
        return np.array(self.places, np.int64)

    def __repr__(self) -> str:
        each = counted(self.per_tile, "instruction")
        return f"<the first of {counted(self.tiles, 'tile')} of {each}, {self.smem_bytes} bytes of shared memory each>"


def tile_steps(work: Instructions | FirstTile) -> Layout:
    """Return the layout that maps a tile to the offset of its coordinates from the coordinates of the first tile."""
    layout: Layout = work.gmem_partition.layout[1]
    return layout


def as_coordinate(tile_coord: Tree | Sequence[int]) -> Tree:
    """Convert the coordinate of a tile to a tuple.

    The coordinate may be any sequence or a one-dimensional array. An integer index is returned unchanged.

    >>> as_coordinate([1, 0]), as_coordinate(3)
    ((1, 0), 3)
    """
    is_sequence = isinstance(tile_coord, Sequence) and not isinstance(tile_coord, (str, bytes))
    coord: Any = tile_coord
    found: Tree = items_of(coord, "a coordinate") if is_sequence or getattr(coord, "ndim", 0) == 1 else coord
    return found


def tile_number(tile_shape: Tree, tile_coord: Tree) -> int:
    """Return the colexicographic index of a tile, from its index or its coordinate in the tile modes.

    Raises:
        InvalidValueError: the tile does not exist.
    """
    shape = known(tile_shape)
    tiles = math.prod(map(int, leaves(shape)))
    tile_coord = as_coordinate(tile_coord)
    if isinstance(tile_coord, tuple):
        check_depth(tile_coord)
        index: Any = Layout(shape)(tile_coord) if _is_tile(tile_coord, shape) else -1
    else:
        index = tile_coord
    number = expect_integer(index, "the index of a tile")
    if not 0 <= number < tiles:
        text = f"tile = {given(tile_coord)} does not exist; the tensor has {counted(tiles, 'tile')}"
        raise InvalidValueError(text, {"tile modes": shape})
    return number


def _is_tile(coord: Tree, shape: Tree) -> bool:
    """Whether every entry of a coordinate is within the size of its mode."""
    if type(coord) is not tuple:
        return (
            0 <= expect_integer(coord, "a coordinate of a tile") < math.prod([int(value_of(n)) for n in leaves(shape)])
        )
    extents = shape if type(shape) is tuple else (shape,)
    inside = [_is_tile(c, n) for c, n in zip(coord, extents, strict=False)]
    return len(coord) == len(extents) and all(inside)


def tile_start(work: Instructions | FirstTile, tile_coord: Tree, rank: int) -> list[int]:
    """Return the first coordinate of a tile as a list with one entry per TMA mode."""
    start: Any = tile_steps(work)(tile_coord)
    if isinstance(start, ScaledBasis):
        start = start.as_arith_tuple()
    numbers = [int(x) for x in leaves(start.as_tuple())] if hasattr(type(start), "as_tuple") else [0]
    return (numbers + [0] * rank)[:rank]


def last_coordinates(first: FirstTile) -> list[int]:
    """Return the coordinates of the last instruction of the last tile, computed from the first tile."""
    out = list(first.rows[-1])
    rest = tile_steps(first)
    for n, d in zip(leaves(rest.shape), leaves(rest.stride), strict=True):
        path = getattr(d, "modes", ())
        if path:
            out[path[0]] += (int(value_of(n)) - 1) * _whole(d.value)
    return out


def _whole(value: Any) -> int:
    """Return a step or a start as a whole number of elements.

    Raises:
        InvalidValueError: the value is a fraction of an element, or it is too large for a coordinate.
    """
    if isinstance(value, Ratio):
        raise InvalidValueError(
            f"an instruction would start {value} elements from the origin; must be a whole number of elements",
            {"rule": "a slot must start at a whole element of the internal type"},
        )
    return expect_integer(value_of(value), "a coordinate", -(1 << 63), (1 << 63) - 1, "elements")


def _modes(layout: Layout) -> Iterator[tuple[int, int, int]]:
    """Yield (size, axis, step) for every mode of a layout of coordinates; integer strides run along axis 0."""
    for s, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
        n, path = int(value_of(s)), getattr(d, "modes", ())
        step = _whole(d.value if path else d)
        _whole((n - 1) * step)  # checks the last coordinate
        yield n, path[0] if path else 0, step


def _listed(layout: Layout, start: Sequence[int]) -> list[tuple[int, ...]]:
    """List the coordinates that a layout visits, offset by `start`, in colexicographic order."""
    out = [tuple(start)]
    for n, axis, step in _modes(layout):
        out = [(*at[:axis], at[axis] + i * step, *at[axis + 1 :]) for i in range(n) for at in out]
    return out


def _steps(layout: Layout, rank: int) -> NDArray[numpy.int64]:
    """Return the coordinates that a layout visits, in colexicographic order, as a (size, rank) array."""
    out = np.zeros((1, rank), np.int64)
    for n, axis, step in _modes(layout):
        steps = np.zeros((n, rank), np.int64)
        steps[:, axis] = np.arange(n, dtype=np.int64) * step
        out = (steps[:, None, :] + out[None, :, :]).reshape(-1, rank)
    return out


def _start(tensor: Tensor, rank: int) -> list[int]:
    coord = leaves(tensor.engine.coord.as_tuple())
    broken = [x for x in coord if isinstance(x, Ratio)]
    if broken:
        raise InvalidValueError(
            f"an instruction would start at coordinate {broken[0]}; must be a whole number of elements",
            {"partition": tensor, "rule": "a slot must start at a whole element of the internal type"},
        )
    return [_whole(x) for x in coord] + [0] * (rank - len(coord))


def tile_tensors(atom: TileAtom) -> tuple[Tensor, Tensor]:
    """Return the shared tensor of one tile, and the TMA tensor divided into tiles. Mode 0 of both is the tile."""
    smem = make_tensor(make_smem_ptr(0, atom.dtype), atom.tile)
    tile = group_modes(smem, 0, len(modes(atom.tile.shape)))
    return tile, zipped_divide(atom.get_tma_tensor(), atom.cta_tiler)


def first_tile(atom: TileAtom) -> FirstTile:
    """List the instructions of the tile at the origin.

    Raises:
        InvalidTypeError: the atom has no tiles.
        InvalidValueError: a slot starts at an address that is not a multiple of 128 bytes in shared memory, or inside
            an element.
    """
    expect_having(atom, ("gbasis", "plan", "num_val_src"), "a TMA atom")
    if not hasattr(atom.plan, "rank"):
        raise InvalidTypeError("the instructions of an im2col atom can't be listed by tiles", {"atom": atom})
    first: FirstTile = atom._first_tile
    return first


def list_first_tile(atom: TileAtom) -> FirstTile:
    """Compute the result of `first_tile` without its cache."""
    smem, tiled = tile_tensors(atom)
    rank, bits = atom.plan.rank, atom.dtype.bits
    ctas = Layout(Int(atom.num_multicast))
    rows: list[tuple[int, ...]] = []
    starts: list[int] = []
    """The start of each slot, in bits from the start of the buffer."""
    parts = [tma_partition(atom, Int(c), ctas, smem, tiled) for c in range(atom.num_multicast)]
    for gmem_part, smem_part in parts:
        rows += _listed(gmem_part.layout[0][1], _start(gmem_part, rank))
        base = (smem_part.engine.address * 8 + smem_part.engine.bit) // bits
        starts += [place * bits for (place,) in _listed(smem_part.layout[0][1], (base,))]
    gmem_part, smem_part = parts[0]
    wrong = next((start for start in starts if start % (8 * SMEM_ALIGNMENT)), None)
    if wrong is not None and len(starts) > 1:
        raise InvalidValueError(
            f"an instruction writes shared memory at byte {wrong / 8:g}; must be a multiple of {SMEM_ALIGNMENT}",
            {"shared layout": atom.smem_layout, "box": atom.plan.box, "instructions per tile": len(starts)},
        )
    places = tuple(start // 8 for start in starts)
    used = max(max(places) + atom._box_bytes, 1)
    rest = gmem_part.layout[1]
    tiles = math.prod(int(value_of(n)) for n in leaves(rest.shape))
    smem_bytes = -(-used // atom.alignment) * atom.alignment
    return FirstTile(tuple(rows), places, tiles, len(rows), rest.shape, smem_bytes, gmem_part, smem_part)


def instructions(atom: TileAtom) -> Instructions:
    """Compute the instructions of the whole tensor.

    Raises:
        InvalidTypeError, InvalidValueError: see `first_tile`.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(0x1000, "float16"), cute.parse("(256,128):(128,_1)"))
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, "(_128,_64):(_64,_1)")
    >>> instructions(atom).coords.tolist()
    [[0, 0], [0, 128], [64, 0], [64, 128]]
    """
    expect_having(atom, ("gbasis", "plan", "gtensor"), "a TMA atom of tiles")
    first = first_tile(atom)
    rank = atom.plan.rank
    coords = (_steps(tile_steps(first), rank)[:, None, :] + first.coords[None, :, :]).reshape(-1, rank)
    same = (first.tiles, first.per_tile, first.tile_shape, first.smem_bytes, first.gmem_partition)
    return Instructions(coords, first.smem_offsets.copy(), *same, first.smem_partition)


@record
class Coverage:
    """The coverage of a tensor by loads of tiles: counts of elements, in the coordinates of the tensor map.

    Attributes:
        elements: the elements of the tensor; missing: the elements that are never loaded; repeated: the elements that
            are loaded more than once.
        first_missing, first_repeated: the first such coordinate, innermost mode first; None if there is none.
        outside: the indices of tiles whose boxes are all outside the tensor.
        scope: the properties that were checked, and the properties that coverage does not show.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(0x1000, "float16"), cute.parse("(256,128):(128,_1)"))
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, "(_128,_64):(_64,_1)")
    >>> found = cute.tma.coverage(atom)
    >>> found.elements, found.missing, found.repeated
    (32768, 0, 0)
    """

    elements: int
    missing: int
    repeated: int
    first_missing: tuple[int, ...] | None = None
    first_repeated: tuple[int, ...] | None = None
    outside: tuple[int, ...] = ()
    scope: Scope = field(default_factory=Scope, repr=False, compare=False)

    def __str__(self) -> str:
        lines = [found.message for found in self.check()] or [f"{self.elements} elements, each loaded once"]
        return "\n".join([*lines, str(self.scope)])

    def check(self) -> Findings:
        """List missing elements, elements that are loaded more than once, and tiles out of range.

        The result also carries `scope`.
        """
        found = []
        for rule, count, first in (
            ("missing elements", self.missing, self.first_missing),
            ("repeated elements", self.repeated, self.first_repeated),
        ):
            if count:
                text = f"{count} of {self.elements} elements are {rule.split()[0]}, the first at {first}"
                found.append(Diagnostic(rule, value=count, unit="elements", text=text))
        if self.outside:
            shown = ", ".join(map(str, self.outside[:8]))
            text = f"{counted(len(self.outside), 'tile')} out of range, without any element of the tensor: {shown}"
            found.append(Diagnostic("tiles out of range", value=len(self.outside), unit="tiles", text=text))
        return Findings(found, scope=self.scope)


_NOT_COVERED: Final = (
    "order: when each tile is loaded, by which CTA, and what waits for it",
    "shared memory: the position of each tile, and whether it is read before the next tile overwrites it",
)
MOST_COVERED: Final = 1 << 26
"""`coverage` counts the loads of each element for tensors with at most this many elements."""


def coverage(atom: TileAtom, tiles: Sequence[Tree] | None = None) -> Coverage:
    """Count how often the tiles that a kernel loads cover each element of the tensor.

    Args:
        tiles: the index or coordinate of each tile that is loaded, one per load; they may be out of range, as in a
            drain loop. Default: every tile once.
    Raises:
        InvalidTypeError: the atom has no tiles, or `tiles` does not list tiles.
        InvalidValueError: the tensor has more than 2**26 elements.

    >>> x = make_tensor(make_gmem_ptr(4096, "float16"), Layout((128, 100), (104, Int(1))))
    >>> atom = cute.tma.make_tma_atom("SM90_TMA_LOAD", x, Layout((Int(64), Int(64)), LayoutRight))
    >>> cute.tma.coverage(atom).check()
    []
    >>> print(*cute.tma.coverage(atom, [0, 1, 1, 2]).check(), sep="\\n")
    2304 of 12800 elements are missing, the first at (64, 64)
    4096 of 12800 elements are repeated, the first at (0, 64)
    """
    first = first_tile(atom)
    request = atom.request
    extents, steps = request.global_dim, request.element_strides
    if math.prod(extents) > MOST_COVERED:
        raise InvalidValueError(f"the tensor has {math.prod(extents)} elements; at most {MOST_COVERED} are counted")
    sizes = [int(value_of(n)) for n in leaves(tile_steps(first).shape)]
    counts = np.zeros(extents[::-1], np.uint32)
    outside: list[int] = []
    chosen = range(first.tiles) if tiles is None else tiles
    listed = expect_items(chosen, "tiles")
    for i, tile in enumerate(listed):
        check_depth(tile)
        index = _indices(tile, sizes)
        moved = np.array([0] * len(extents), np.int64)
        for k, d in zip(index, leaves(tile_steps(first).stride), strict=True):
            path = getattr(d, "modes", ())
            if path:
                moved[path[0]] += k * _whole(d.value)
        touched = False
        for coord in first.coords:
            begins = [int(c) for c in coord + moved]
            cut = tuple(
                slice(max(b, 0) if step == 1 else b, max(min(b + edge, n), 0), step if j else 1)
                for j, (b, edge, n, step) in enumerate(zip(begins, request.box_dim, extents, steps, strict=True))
            )[::-1]
            if all(part.start < part.stop for part in cut):
                counts[cut] += 1
                touched = True
        if not touched:
            outside.append(i if not isinstance(tile, int) else int(tile))
    missing, repeated = counts == 0, counts > 1

    def place(mask: NDArray[numpy.bool_]) -> tuple[int, ...] | None:
        return tuple(map(int, np.argwhere(mask)[0][::-1])) if mask.any() else None

    loads = (counted(len(listed), "tile"), counted(len(listed) * len(first.coords), "load"))
    places = place(missing), place(repeated)
    scope = Scope((*loads, counted(counts.size, "element")), _NOT_COVERED)
    return Coverage(counts.size, int(missing.sum()), int(repeated.sum()), *places, tuple(outside), scope)


FARTHEST_TILE: Final = 2**31 - 1
"""Largest index of a tile in either direction: coordinates of instructions have 32 bits."""


def _indices(tile: Tree, sizes: list[int]) -> list[int]:
    """Return the index of a tile in each tile mode. A number past the last tile is past the end of the last mode."""
    if isinstance(tile, tuple):
        flat = [expect_integer(n, "the coordinate of a tile", -FARTHEST_TILE, FARTHEST_TILE) for n in leaves(tile)]
        if len(flat) != len(sizes):
            raise InvalidValueError(f"tile = {tile}; must have {counted(len(sizes), 'index')}, or be a number")
        return flat
    number = expect_integer(tile, "the index of a tile", 0, FARTHEST_TILE)
    out = []
    for size in sizes[:-1]:
        out.append(number % size)
        number //= size
    return [*out, number]


def check_smem_address(atom: TileAtom, address: int) -> list[Diagnostic]:
    """List the reasons why a tile can't begin at this shared-memory address; empty if it can.

    Args:
        atom: a TMA atom. address: bytes.

    >>> x = make_tensor(make_gmem_ptr(4096, "float16"), Layout((128, 64), (64, Int(1))))
    >>> atom = cute.tma.make_tma_atom("SM90_TMA_LOAD", x, cute.tma.make_smem_layout("K", "128B", "float16", (64, 64)))
    >>> print(*cute.tma.check_smem_address(atom, 0x1200))
    shared-memory address = 4608 bytes; must be a multiple of 1024, where the 128B swizzle repeats
    """
    expect_having(atom, ("alignment", "swizzle_row"), "a TMA atom")
    address = expect_integer(address, "the address", 0)
    if address % atom.alignment == 0:
        return []
    row = atom.swizzle_row
    must = f"be a multiple of {atom.alignment}" + (f", where the {row.span}B swizzle repeats" if row.span else "")
    return [Diagnostic("shared-memory address", "shared-memory address", address, "bytes", must, "PTX ISA")]


def known(tree: Tree) -> Tree:
    """Convert a tree of integers and `Int` leaves to plain ints."""
    return tuple([known(t) for t in tree]) if type(tree) is tuple else int(value_of(as_leaves(tree)))
