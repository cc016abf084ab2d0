"""Walks over tiles, with C expressions that map the index of a tile to its coordinates; sizes are constants in them.

A walk covers a tensor with tiles: mode i is divided into `counts[i]` tiles of `steps[i]` elements. Tile indices count
the modes in `order`, whose first mode changes fastest. The order affects the speed of a copy: CTAs should touch memory
in their starting order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cute_py.errors import InvalidValueError


@dataclass(frozen=True, slots=True)
class TileWalk:
    """The tiles of a tensor. Modes are listed innermost first, and steps are in elements.

    >>> walk = TileWalk((4, 3), (256, 32))
    >>> walk.tiles, walk.coordinates(5)
    (12, (256, 32))
    >>> walk.expressions("t")
    ('(int)(((t) % 4u) * 256u)', '(int)(((t) / 4u) * 32u)')
    """

    counts: tuple[int, ...]
    steps: tuple[int, ...]
    order: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        rank = len(self.counts)
        order = self.order or tuple(range(rank))
        object.__setattr__(self, "order", order)
        if len(self.steps) != rank or sorted(order) != list(range(rank)) or not rank:
            raise InvalidValueError(f"counts {self.counts}, steps {self.steps}, order {order} must have the same rank")
        if min(self.counts) < 1 or min(self.steps) < 1:
            raise InvalidValueError(f"counts {self.counts} and steps {self.steps} must be at least 1")
        if self.tiles >= 2**31:
            raise InvalidValueError(f"{self.tiles} tiles; must be below 2**31, the size of a grid")

    @property
    def tiles(self) -> int:
        """Number of tiles."""
        return math.prod(self.counts)

    def expressions(self, tile: str) -> tuple[str, ...]:
        """Return C expressions for the coordinates (in elements, innermost mode first) of the tile whose index is the C
        expression `tile`."""
        found = [""] * len(self.counts)
        live = [mode for mode in self.order if self.counts[mode] > 1]
        before = 1
        for mode in self.order:
            if self.counts[mode] == 1:
                found[mode] = "0"
                continue
            index = f"({tile})" if before == 1 else f"(({tile}) / {before}u)"
            if mode != live[-1]:
                index = f"({index} % {self.counts[mode]}u)"
            found[mode] = f"(int)({index} * {self.steps[mode]}u)"
            before *= self.counts[mode]
        return tuple(found)

    def coordinates(self, tile: int) -> tuple[int, ...]:
        """Return the coordinates of one tile, equal to the values of the expressions."""
        found = [0] * len(self.counts)
        for mode in self.order:
            tile, index = divmod(tile, self.counts[mode])
            found[mode] = index * self.steps[mode]
        return tuple(found)


def cover(sizes: tuple[int, ...], box: tuple[int, ...], order: tuple[int, ...] = ()) -> TileWalk:
    """Return the walk that covers `sizes` with boxes; the last box of a mode may extend past the end.

    >>> cover((1000, 70), (256, 32)).counts
    (4, 3)
    """
    return TileWalk(tuple(-(-size // step) for size, step in zip(sizes, box, strict=True)), tuple(box), order)
