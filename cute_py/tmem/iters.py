"""Iters: the parts (extent, stride, axis) of a tile layout, and the algebra on rows (tuples) of iters.

A row of iters splits a flat index into digits in row-major order (the last iter is the fastest). Each unit of a digit
moves `stride` steps along `axis`:

    (4, 16 @ TCol), (32, 1 @ TLane), (16, 1 @ TCol)        index 549 = digits (1, 2, 5) -> 2 @ TLane, 21 @ TCol

The functions of this module return new rows, and change none.
Source: semantics of TVM's TIRx layout algebra, measured on apache-tvm 0.27.0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cute_py.argument_checks import record
from cute_py.errors import LayoutError, TmemError, integer_text

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy


@record
class Iter:
    """`extent` positions that are `stride` steps apart along the axis named `axis`.

    >>> Iter(4, 32, "TLane")
    4 : 32 @ TLane
    """

    extent: int
    stride: int
    axis: str

    def __repr__(self) -> str:
        return f"{self.extent} : {self.stride}" + ("" if self.axis == "m" else f" @ {self.axis}")


Row = tuple[Iter, ...]


def iteration_count(row: Row) -> int:
    return math.prod(it.extent for it in row)


def canonicalize(row: Row) -> Row:
    """Drop iters of extent 1, and fuse neighbours if the slower iter continues the faster one; keep the function.

    If every iter has extent 1, the result is one iter of extent 1 and stride 1 on the axis of the first iter.

    >>> canonicalize((Iter(4, 512, "m"), Iter(32, 16, "m"), Iter(16, 1, "m")))
    (2048 : 1,)
    """
    kept = [it for it in row if it.extent != 1]
    if row and not kept:
        return (Iter(1, 1, row[0].axis),)
    fused: list[Iter] = []
    for it in kept:
        if fused and fused[-1].axis == it.axis and it.extent * it.stride == fused[-1].stride:
            it = Iter(fused.pop().extent * it.extent, it.stride, it.axis)
        fused.append(it)
    return tuple(fused)


def group(row: Row, shape: Sequence[int]) -> tuple[Row, tuple[int, ...]]:
    """Split iters so that they form consecutive runs with the sizes in `shape`.

    Returns:
        (row, seps): run d is `row[seps[d]:seps[d + 1]]`, of size `shape[d]`.
    Raises:
        LayoutError: a boundary of the shape falls inside an iter that it does not divide, or the sizes differ.

    >>> from cute_py.tmem.iters import group
    >>> group((Iter(512, 1, "m"),), (32, 16))
    ((32 : 16, 16 : 1), (0, 1, 2))
    >>> group((Iter(6, 4, "m"), Iter(4, 1, "m")), (4, 6))
    Traceback (most recent call last):
    cute_py.errors.LayoutError: iter 1 of extent 4 does not split at a boundary of dimension 0 (extent 4)
    """
    out: list[Iter] = []
    seps = [0]
    product = 1
    for position, it in enumerate(row):
        extent = it.extent
        product *= extent
        # A dimension closes as soon as the running product holds it; the rest opens the next one.
        while len(seps) <= len(shape) and product % shape[len(seps) - 1] == 0:
            rest = product // shape[len(seps) - 1]
            if extent % rest:
                dim = len(seps) - 1
                raise LayoutError(
                    f"iter {position} of extent {it.extent} does not split at a boundary of dimension {dim} (extent "
                    f"{shape[dim]})"
                )
            out.append(Iter(extent // rest, it.stride * rest, it.axis))
            seps.append(len(out))
            extent = product = rest
        if extent != 1:
            if len(seps) > len(shape):
                raise LayoutError(
                    f"the layout has {iteration_count(row)} elements, more than the {math.prod(shape)} of the shape"
                )
            out.append(Iter(extent, it.stride, it.axis))
    if len(seps) != len(shape) + 1:
        raise LayoutError(
            f"the layout has {iteration_count(row)} elements, fewer than the {math.prod(shape)} of the shape"
        )
    return tuple(out), tuple(seps)


def split(row: Row, seps: Sequence[int]) -> tuple[Row, ...]:
    """Return the runs between consecutive separators."""
    return tuple(row[a:b] for a, b in itertools.pairwise(seps))


def runs(row: Row, shape: Sequence[int]) -> tuple[Row, ...]:
    """Return the runs with these sizes; for the errors, see `group`."""
    return split(*group(row, shape))


def cut(row: Row, begin: int, length: int) -> tuple[Row, dict[str, int]] | None:
    """Return a row for `length` indices, starting at `begin`, and the offset of its first element along each axis.

    A contiguous range of one iter is always a row. A range over several iters is a row if it covers the inner iters
    completely, if it stays within one step of the outer iters, or if it consists of the end of one outer step and an
    equal part of the next. Otherwise the range wraps unevenly, and the result is None.
    """
    digits, rest = [], begin
    for it in reversed(row):
        digits.append(rest % it.extent)
        rest //= it.extent
    digits.reverse()
    offsets: dict[str, int] = {}
    if len(row) == 1:
        only = row[0]
        return (Iter(length, only.stride, only.axis),), {only.axis: begin * only.stride}
    for it, digit in zip(row, digits, strict=True):
        offsets[it.axis] = offsets.get(it.axis, 0) + digit * it.stride
    out: list[Iter] = []
    remaining = length
    for index in range(len(row) - 1, -1, -1):
        it, digit = row[index], digits[index]
        if digit == 0 and remaining % it.extent == 0:
            out.insert(0, it)
            remaining //= it.extent
            continue
        if digit + remaining <= it.extent:
            out.insert(0, Iter(remaining, it.stride, it.axis))
            return tuple(out), offsets
        outer = row[index - 1] if index else None
        half = remaining // 2
        if (
            outer is not None
            and remaining % 2 == 0
            and digit + half == it.extent
            and outer.axis == it.axis
            and digits[index - 1] + 1 < outer.extent
        ):
            jump = outer.stride - (it.extent - half) * it.stride
            return (Iter(2, jump, it.axis), Iter(half, it.stride, it.axis), *out), offsets
        return None
    return (tuple(out), offsets) if remaining == 1 else None


def refinement(shapes: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]] | None:
    """Return the coarsest shape that refines all shapes, which have one size, and where the dimensions of each begin
    and end in it.

    A dimension of extent 1 remains a dimension. The result is None if the boundaries of the dimensions do not nest.

    >>> refinement([(32, 16), (2, 256)])
    ((2, 16, 16), ((0, 2, 3), (0, 1, 3)))
    """
    cumulated = [[math.prod(shape[d:]) for d in range(len(shape) + 1)] for shape in shapes]
    times = {edge: max(edges.count(edge) for edges in cumulated) for edges in cumulated for edge in edges}
    merged = [edge for edge in sorted(times, reverse=True) for _ in range(times[edge])]
    if any(outer % inner for outer, inner in itertools.pairwise(merged)):
        return None
    found = []
    for edges in cumulated:
        places = [merged.index(edges[0])]
        for edge in edges[1:]:
            places.append(merged.index(edge, places[-1] + 1))
        places[-1] = len(merged) - 1
        found.append(tuple(places))
    return tuple(outer // inner for outer, inner in itertools.pairwise(merged)), tuple(found)


MAX_WALKED = 1 << 24
"""Maximum number of elements to walk, 64 times the capacity of tensor memory."""


def walk(row: Row, axis: str) -> NDArray[numpy.int64]:
    """Return the position along `axis` of every index of the row, in order: int64 of shape (size,).

    >>> walk((Iter(2, 16, "m"), Iter(3, 1, "m")), "m").tolist()
    [0, 1, 2, 16, 17, 18]
    """
    count = math.prod([it.extent for it in row])
    if count > MAX_WALKED:
        raise TmemError(f"the layout has {count} elements; at most {MAX_WALKED} are evaluated one by one")
    reach = sum((it.extent - 1) * abs(it.stride) for it in row if it.axis == axis)
    if reach >= 1 << 62:
        raise TmemError(f"the layout reaches {integer_text(reach)} steps along {axis}; must be below 2**62")
    total = numpy.zeros(1, numpy.int64)
    for it in row:
        steps = numpy.arange(it.extent, dtype=numpy.int64) * (it.stride if it.axis == axis and it.extent > 1 else 0)
        total = (total[:, None] + steps[None, :]).reshape(-1)
    return total
