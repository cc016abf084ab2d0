"""Boxes over collapsed modes: several global modes that share one mode of the tensor map.

Such a mode of the map steps by the greatest common divisor of their strides. A box that covers a part of several of
them is a run of such steps, which is the tile's part only where the parts continue each other. CuTe C++ makes the box
all the same; here it is refused, or cut with `split_oversize=True`.
"""

from __future__ import annotations

import math

from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Tree, value_of
from cute_py.layout.trees import at, leaves, modes


def exact_leaves(sizes: list[int], strides: list[int]) -> int:
    """How many leading sizes of a collapsed mode a run of steps of its common stride can walk.

    >>> exact_leaves([2, 2], [64, 128]), exact_leaves([2, 2], [64, 256]), exact_leaves([1, 2], [64, 256])
    (2, 1, 1)
    """
    unit = math.gcd(*strides)
    reached = unit
    for i, (n, d) in enumerate(zip(sizes, strides, strict=True)):
        if n > 1:
            if d != reached:
                return i
            reached = n * d
    return len(sizes)


def _collapsed(gbasis: Layout, mode: int, gmem: Layout) -> tuple[list[int], list[int]] | None:
    """(sizes, strides) of a mode of the map that several global modes share; None of other modes, and of symbols."""
    paths = [tuple(getattr(d, "modes", ())) for d in leaves(modes(gbasis._stride)[mode])]
    sizes = [value_of(n) for n in leaves(modes(gbasis._shape)[mode])]
    if len(paths) < 2 or len(paths) != len(sizes):
        return None
    strides = [value_of(at(gmem._stride, path)) for path in paths]
    if not all(isinstance(n, int) for n in (*sizes, *strides)):
        return None
    return sizes, strides


def exact_part(gbasis: Layout, mode: int, gmem: Layout) -> Tree | None:
    """The shape of the part of a collapsed mode that one box can walk; None if that is all of it."""
    found = _collapsed(gbasis, mode, gmem)
    if found is None:
        return None
    sizes, strides = found
    count = exact_leaves(sizes, strides)
    return None if count == len(sizes) else tuple([n if i < count else 1 for i, n in enumerate(sizes)])


def why_not_collapsed(gmem: Layout, gbasis: Layout) -> tuple[str, int] | None:
    """(why a box does not walk the tile, TMA mode), or None; `gmem` in elements of the internal type."""
    for mode in range(len(modes(gbasis._shape))):
        found = _collapsed(gbasis, mode, gmem)
        if found is not None and exact_leaves(*found) < len(found[0]):
            sizes, strides = found
            return (
                f"boxDim[{mode}] = {math.prod(sizes)} steps of {math.gcd(*strides)} elements; must be the tile's"
                f" {_text(sizes)} elements of strides {_text(strides)}, which are no such run",
                mode,
            )
    return None


def _text(numbers: list[int]) -> str:
    return "(" + ",".join(map(str, numbers)) + ")"
