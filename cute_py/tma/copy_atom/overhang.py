"""Where a tile hangs over the end of a mode and the engine does not fill with zeros, although the layouts say so.

The engine tests one coordinate for each mode of the tensor map. Two cases escape it, in CuTe too:

- global modes that were merged into one mode of the map share its test: past the end of the first lies the second;
- a mode that is statically of size 1 never moves a coordinate: a further instruction along it reads its first row.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cute_py.layout.leaf import value_of
from cute_py.layout.trees import at, leaves, modes

if TYPE_CHECKING:
    from cute_py.tma.copy_atom.copy_atom import TmaAtom

Path = tuple[int, ...]


def tile_extents(atom: TmaAtom) -> dict[Path, int]:
    """How far the tile reaches along each global mode that it walks, in elements."""
    v_map = atom.gbasis.trace.cta_v_map
    reach: dict[Path, int] = {}
    for n, d in zip(leaves(v_map._shape), leaves(v_map._stride), strict=True):
        path = tuple(getattr(d, "modes", ()))
        if path:
            reach[path] = reach.get(path, 1) + (int(value_of(n)) - 1) * int(value_of(d.value))
    return reach


def why_not_filled(atom: TmaAtom) -> str | None:
    """The first mode whose overhang is not filled with zeros, or None."""
    gmem = atom.gtensor.layout
    reach = tile_extents(atom)
    walked: dict[Path, tuple[int, int]] = {}
    for j, (shape, stride) in enumerate(
        zip(modes(atom.plan.gbasis._shape), modes(atom.plan.gbasis._stride), strict=True)
    ):
        paths = [tuple(getattr(d, "modes", ())) for d in leaves(stride)]
        extents = [int(n) for n in leaves(shape)]
        if len(extents) == len(paths):
            walked.update({path: (j, n) for path, n in zip(paths, extents, strict=True)})
        if len(paths) < 2:
            continue
        outermost = max(paths, key=lambda p: int(value_of(at(gmem._stride, p))))
        for path in paths:
            size, tile = int(value_of(at(gmem._shape, path))), reach.get(path, 1)
            if path != outermost and size % tile:
                return (
                    f"a tile reaches {tile} elements along layout mode {_name(path)} of {size}, which shares TMA mode"
                    f" {j} with others: what lies past its end is read, not filled with zeros"
                )
    for path, tile in reach.items():
        size = at(gmem._shape, path)
        if type(size) is not int or size != 1 or tile == 1:
            continue
        j, extent = walked.get(path, (0, 1))
        full = math.prod(int(n) for n in leaves(modes(atom.plan.gbasis._shape)[j]))
        if extent != tile or atom.plan.box[j] != full:
            return (
                f"a tile reaches {tile} elements along layout mode {_name(path)}, statically of size 1: coordinates"
                " never move along it, so instructions past its end read its first row again"
            )
    return None


def _name(path: Path) -> str:
    return ".".join(map(str, path))
