"""Is a layout one-to-one, onto, does it overlap another: in time of the rank wherever theory decides, else by arrays.

Sort the strides. A mode whose stride is larger than everything that the smaller modes reach together collides with
nothing and can be put aside; so can a mode that stays below the gcd of all larger strides. Two modes s0:d0, s1:d1
collide exactly if d1/g < s0 and d0/g < s1 with g = gcd(d0, d1). What is left after both rules is counted by arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from cute_py.argument_checks import expect_integer
from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError, given
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout, make
from cute_py.layout.leaf import value_of
from cute_py.layout.offsets import bounds, domain_size, integer_axes, offsets
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves

MAX_COUNTED = 1 << 26
"""Layouts that theory does not decide are counted up to this size."""

Mode = tuple[int, int]
"""(size, |stride|), in elements."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The offsets that a layout reaches, in elements: `lowest` and `highest` (inclusive), and how many differ."""

    lowest: int
    highest: int
    distinct: int

    def __post_init__(self) -> None:
        for name in ("lowest", "highest", "distinct"):
            expect_integer(getattr(self, name), name)

    @property
    def span(self) -> int:
        """Elements from the lowest to the highest, both included."""
        return self.highest - self.lowest + 1 if self.distinct else 0

    @property
    def holes(self) -> int:
        """Elements of the span that the layout does not reach.

        >>> footprint(Layout((4, 2), (2, 16))).holes
        15
        """
        return self.span - self.distinct


def entangled(modes: list[Mode]) -> list[Mode]:
    """The modes that can collide with one another; empty means one-to-one. Strides positive, sizes above 1.

    >>> entangled([(4, 1), (8, 4)]), entangled([(3, 2), (2, 3)])
    ([], [(3, 2), (2, 3)])
    """
    rest = sorted(modes, key=lambda m: m[1])
    while rest:
        reach = sum((s - 1) * d for s, d in rest)
        size, step = rest[-1]
        if step > reach - (size - 1) * step:
            rest.pop()
            continue
        size, step = rest[0]
        if (size - 1) * step < math.gcd(*[d for _, d in rest[1:]]):
            rest.pop(0)
            continue
        return rest
    return rest


def _pair_collides(a: Mode, b: Mode) -> bool:
    g = math.gcd(a[1], b[1])
    return b[1] // g < a[0] and a[1] // g < b[0]


def _counted(layout: Any, size: int) -> Any:
    """All offsets, one row each if they are coordinates."""
    if size > MAX_COUNTED:
        raise LayoutError(
            f"can't decide this in time of the rank, and {size} elements are too many to count (at most {MAX_COUNTED})",
            {"layout": layout},
        )
    table = offsets(layout)
    return table.reshape(size, -1) if size else table.reshape(0, 1)


def _distinct(table: Any) -> int:
    import numpy as np

    if not len(table) or table.shape[1] > 1:
        return len(np.unique(table, axis=0)) if len(table) else 0
    column = table[:, 0]
    low, span = column.min(), int(column.max()) - int(column.min()) + 1
    if span > 16 * len(column):
        return len(np.unique(column))
    seen = np.zeros(span, bool)  # a bit map: no sorting where the offsets lie close together
    seen[column - low] = True
    return int(seen.sum())


def _size(layout: Layout) -> int:
    n = 1
    for s in leaves(layout._shape):
        n *= value_of(s)
    return n


def _one_to_one(layout: Layout) -> bool:
    axes = integer_axes(layout)
    size = _size(layout)
    if size <= 1:
        return True
    sizes = leaves(axes[0][0])
    columns = [[d for d in step if d] for step in zip(*[leaves(stride) for _, stride in axes], strict=True)]
    if any(s > 1 and not column for s, column in zip(sizes, columns, strict=True)):
        return False
    decided = True
    for _, stride in axes:
        rest = entangled([(s, abs(d)) for s, d in zip(sizes, leaves(stride), strict=True) if d and s > 1])
        if any(_pair_collides(a, b) for a, b in combinations(rest, 2)):
            return False
        decided = decided and len(rest) <= 2
        if len(rest) > 2:
            flat = make(tuple([s for s, _ in rest]), tuple([d for _, d in rest]))
            count = _size(flat)
            if _distinct(_counted(flat, count)) != count:
                return False
    return True


def is_injective(layout: Any) -> bool:
    """Do no two coordinates of the domain have the same offset?

    Args:
        layout: Layout (integer or basis strides) or ComposedLayout, known numbers.

    >>> is_injective(Layout((4, 8), (8, 1))), is_injective(Layout((4, 8), (1, 3)))
    (True, False)
    """
    if isinstance(layout, Layout):
        return _one_to_one(layout)
    if not isinstance(layout, ComposedLayout):
        raise InvalidTypeError(f"expected a layout, got {type(layout).__name__} {given(layout)}")
    if isinstance(layout.inner, Layout) and not _one_to_one(layout.inner):
        return False
    if isinstance(layout.outer, Swizzle):
        return is_injective(layout.inner)
    size = domain_size(layout)
    return _distinct(_counted(layout, size)) == size


def is_bijective(layout: Any) -> bool:
    """Is the layout one-to-one onto the offsets 0 .. size-1 (for basis strides: onto the box of its codomain)?

    >>> is_bijective(Layout((4, 8), (8, 1))), is_bijective(Layout((4, 8), (16, 2)))
    (True, False)
    """
    import numpy as np

    if not is_injective(layout):
        return False
    if isinstance(layout, Layout):
        box = 1
        for axis in integer_axes(layout):
            low, high = bounds(*axis)
            if low < 0:
                return False
            box *= high + 1
        return box == _size(layout) or not _size(layout)
    table = _counted(layout, domain_size(layout))
    return bool(table.size == 0 or (np.min(table) == 0 and np.max(table) == len(table) - 1))


def _ints(layout: Any) -> Layout | None:
    """A plain layout of integer strides, or None."""
    if isinstance(layout, Layout) and len(integer_axes(layout)) == 1:
        return layout
    return None


def overlaps(a: Any, b: Any = None, shift: int = 0) -> bool:
    """Do two coordinates of one layout meet? With two layouts: does an offset of `a` equal an offset of `b` + shift?

    Args:
        a, b: layouts, known numbers. One layout overlaps itself exactly where it is not injective.
        shift: where b starts, in elements.

    >>> overlaps(Layout((4, 2), (1, 3))), overlaps(Layout(4), Layout(4), shift=4)
    (True, False)
    """
    import numpy as np

    shift = expect_integer(shift, "shift", unit="elements")
    if b is None:
        return not is_injective(a)
    x, y = _ints(a), _ints(b)
    if x is not None and y is not None:
        (sx, dx), (sy, dy) = integer_axes(x)[0], integer_axes(y)[0]
        if not _size(x) or not _size(y):
            return False
        (low_x, high_x), (low_y, high_y) = bounds(sx, dx), bounds(sy, dy)
        if high_x < low_y + shift or high_y + shift < low_x:
            return False
        steps = [d for t, u in ((sx, dx), (sy, dy)) for s, d in zip(leaves(t), leaves(u), strict=True) if s > 1]
        if shift % math.gcd(*steps, 0) if any(steps) else shift:
            return False
    if abs(shift) >= 2**62:
        raise InvalidValueError(f"shift = {shift} elements; must be less than 2**62", {"first": a, "second": b})
    if not domain_size(a) or not domain_size(b):
        return False
    tables = [np.unique(_counted(t, domain_size(t)), axis=0) for t in (a, b)]
    if tables[0].shape[1] != tables[1].shape[1]:
        raise InvalidTypeError("layouts of different codomains don't overlap", {"first": a, "second": b})
    both = np.concatenate([tables[0], tables[1] + shift])
    return len(np.unique(both, axis=0)) < len(both)


def footprint(layout: Any) -> Footprint:
    """The lowest and highest offset, and the number of distinct ones.

    >>> footprint(Layout((4, 8), (0, 2)))
    Footprint(lowest=0, highest=14, distinct=8)
    """
    if isinstance(layout, Layout):
        axes = integer_axes(layout)
        if len(axes) != 1:
            raise InvalidTypeError("a footprint needs integer strides", {"layout": layout}, "take one codomain axis")
        shape, stride = axes[0]
        if not _size(layout):
            return Footprint(0, -1, 0)
        low, high = bounds(shape, stride)
        moving = [(s, d) for s, d in zip(leaves(shape), leaves(stride), strict=True) if d and s > 1]
        core = make(tuple([s for s, _ in moving]), tuple([d for _, d in moving]))
        size = _size(core)
        return Footprint(low, high, size if _one_to_one(core) else _distinct(_counted(core, size)))
    if domain_size(layout) > MAX_COUNTED:
        raise LayoutError(
            f"{domain_size(layout)} elements are too many to count (at most {MAX_COUNTED})", {"layout": layout}
        )
    table = offsets(layout)
    if not table.size:
        return Footprint(0, -1, 0)
    return Footprint(int(table.min()), int(table.max()), _distinct(table.reshape(-1, 1)))
