"""The path of an element through the copy of a tile, for pictures: from its coordinate in the tensor to its bank.

`Trace`, which reads the descriptor, provides the rows of an instruction and their destinations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cute_py.argument_checks import expect_integer
from cute_py.errors import CuteError, InvalidValueError, UnknownFactError, given
from cute_py.layout.arguments import Tree
from cute_py.layout.leaf import value_of
from cute_py.layout.trees import check_depth, leaves
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.tiles import as_coordinate, first_tile, last_coordinates, tile_start, tile_steps
from cute_py.tma.descriptor.request import TensorMap
from cute_py.tma.emulator.trace import Trace, TraceStep

NAMED_ROWS = 4
"""Number of rows that one gather4 or scatter4 names."""
OUTSIDE = {
    "load": "outside the tensor: filled, not read",
    "store": "outside the tensor: not written",
    "reduce": "outside the tensor: not written",
    "prefetch": "outside the tensor: not fetched",
}
"""Effect of an operation of each direction on elements beyond the tensor's end."""


RAGGED = {
    "load": OUTSIDE["load"],
    "store": "past the end of the row, but written: a store writes units of 16 bytes",
    "reduce": "past the end of the row, but reduced: a reduction writes units of 16 bytes",
    "prefetch": OUTSIDE["prefetch"],
}
"""Effect on the rest of the 16-byte unit where the row ends. Source: measured on NVIDIA H200, driver 580.159.04, for
stores; `emulator_rows.sixteen_byte_rule` has the rule."""


def logical_of(atom: TmaAtom) -> Callable[[tuple[int, ...]], tuple[int, ...]] | None:
    """Return a function that maps a TMA coordinate to a coordinate in the flat modes of the tensor; None if a TMA mode
    merges several modes.
    """
    from_mode: dict[int, int] = {}
    places: list[tuple[int | None, int]] = []
    for i, stride in enumerate(leaves(atom.g_stride)):
        path = tuple(getattr(stride, "modes", ()))
        step = value_of(getattr(stride, "value", 0))
        if not path or not step:
            places.append((None, 1))
        elif len(path) != 1 or path[0] in from_mode or not isinstance(step, int):
            return None
        else:
            from_mode[path[0]] = i
            places.append((path[0], int(step)))
    if len(from_mode) < atom.plan.rank or any(step != 1 for _, step in places):
        return None
    return lambda coord: tuple(0 if mode is None else coord[mode] for mode, _ in places)


def tile_trace(atom: TmaAtom, tile_coord: Tree = 0) -> Trace:
    """Trace the instructions of one tile; for gather4 and scatter4, the traced instruction has four neighbouring rows.

    Args:
        tile_coord: index or coordinate of the tile, in the tile modes of the divided tensor.
    Raises:
        InvalidValueError: the tile does not exist.
        TmaLimitError: the atom has no descriptor, because the driver would refuse it.
    """
    work, tile_coord = first_tile(atom), as_coordinate(tile_coord)
    try:
        check_depth(tile_coord)
        numbers = leaves(tile_coord) if isinstance(tile_coord, tuple) else [tile_coord]
        known = min([expect_integer(n, "tile_coord") for n in numbers], default=0) >= 0
        start = tile_start(work, tile_coord, atom.plan.rank)
    except CuteError as error:
        raise InvalidValueError(
            f"tile_coord = {given(tile_coord)}; must be an index or a coordinate in the tiles {tile_steps(work).shape}"
        ) from error
    moved = [c + by for c, by in zip(work.rows[-1], start, strict=True)]
    if not known or any(c > end for c, end in zip(moved, last_coordinates(work), strict=True)):
        raise InvalidValueError(f"tile_coord = {given(tile_coord)}; the tensor has {tile_steps(work).shape} tiles")
    coords = [tuple(c + by for c, by in zip(row, start, strict=True)) for row in work.rows]
    form, logical = atom.op.row.mode, logical_of(atom)
    try:
        tensor_map: bytes | TensorMap = atom.descriptor
    except UnknownFactError:  # Packed types: their behaviour is documented, their bits are not.
        tensor_map = atom.request
    if form in ("gather4", "scatter4"):
        coords = [(x, *(y + row for row in range(NAMED_ROWS))) for x, y in coords]
        return Trace(tensor_map, coords, work.places, mode=f"tile::{form}", logical=logical)
    return Trace(tensor_map, coords, work.places, logical=logical)


def tuple_text(numbers: Sequence[Tree]) -> str:
    """Text of a coordinate, without blanks.

    >>> tuple_text((8, 9))
    '(8,9)'
    """
    return "(" + ",".join(map(str, numbers)) + ")"


def element_path(step: TraceStep, direction: str = "load") -> str:
    """Text of the full path of an element, in the direction of the copy: the path of a store begins at the bank."""
    source = f"global byte {step.global_name}" if step.inside else OUTSIDE[direction]
    path = [
        *([] if step.logical is None else [f"tensor {tuple_text(step.logical)}"]),
        f"TMA {tuple_text(step.tma_coord)}",
        source,
        f"instruction {step.instruction} at {tuple_text(step.instruction_coords)}",
        f"shared byte {step.shared_offset}",
        f"bank {step.bank}",
    ]
    if direction in ("store", "reduce"):
        path = [*reversed(path[-3:]), *path[:-3]]
    return " -> ".join(path)
