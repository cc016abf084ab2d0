"""Tiling on rows of iters: interleave an outer and an inner row dimension by dimension, and take them apart again.

    inner (8, 8) : (8, 1), outer (4, 2) : (2, 1)   ->   (4, 8, 2, 8) : (128, 8, 64, 1)
                                                         the outer strides count whole inner tiles (64 elements)

`direct sum` is the same interleaving with the outer strides as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cute_py.tmem.iters import Iter, Row, canonicalize, group, split


def interleave(
    outer: Row, inner: Row, outer_shape: Sequence[int], inner_shape: Sequence[int], scale: Mapping[str, int]
) -> Row | str:
    """Dimension d of the result is dimension d of `outer`, then dimension d of `inner`.

    Args:
        scale: what outer strides along an axis are multiplied by.
    Returns:
        the row, canonical, or the reason why the rows do not have these dimensions.
    """
    runs = []
    for row, shape in ((outer, outer_shape), (inner, inner_shape)):
        grouped = group(canonicalize(row), shape)
        if isinstance(grouped, str):
            return grouped
        runs.append(split(*grouped))
    out: list[Iter] = []
    for outer_run, inner_run in zip(*runs, strict=True):
        out += [Iter(it.extent, it.stride * scale.get(it.axis, 1), it.axis) for it in outer_run]
        out += inner_run
    return canonicalize(tuple(out))


def outer_of(
    tiled: Row, inner: Row, tiled_shape: Sequence[int], inner_shape: Sequence[int], scale: Mapping[str, int]
) -> Row | None:
    """The outer row that, interleaved with `inner`, gives `tiled`; None where there is none."""
    if len(tiled_shape) != len(inner_shape) or any(t % i for t, i in zip(tiled_shape, inner_shape, strict=True)):
        return None
    both = [extent for t, i in zip(tiled_shape, inner_shape, strict=True) for extent in (t // i, i)]
    grouped = group(canonicalize(tiled), both)
    wanted = group(canonicalize(inner), inner_shape)
    if isinstance(grouped, str) or isinstance(wanted, str):
        return None
    runs = split(*grouped)
    for got, want in zip(runs[1::2], split(*wanted), strict=True):
        if canonicalize(got) != canonicalize(want) and any(it.extent != 1 for it in (*got, *want)):
            return None
    outer: list[Iter] = []
    for it in (it for run in runs[0::2] for it in run):
        factor = scale.get(it.axis, 1)
        if it.extent == 1:
            outer.append(it)
        elif it.stride % factor:
            return None
        else:
            outer.append(Iter(it.extent, it.stride // factor, it.axis))
    return tuple(outer)


def pack(row: Row, count: int) -> Row | None:
    """`count` neighbours become one element; None where they are no neighbours on one axis.

    >>> pack((Iter(32, 16, "m"), Iter(16, 1, "m")), 2)
    (32 : 8, 8 : 1)
    """
    if not row or row[-1].extent % count or row[-1].stride != 1 or any(it.stride % count for it in row[:-1]):
        return None
    last = row[-1]
    return (
        *(Iter(it.extent, it.stride // count, it.axis) for it in row[:-1]),
        Iter(last.extent // count, 1, last.axis),
    )


def unpack(row: Row, count: int) -> Row:
    """Each element becomes `count` neighbours, along the axis of the last iter.

    >>> unpack((Iter(32, 16, "m"), Iter(16, 1, "m")), 2)
    (32 : 32, 16 : 2, 2 : 1)
    """
    axis = row[-1].axis if row else "m"
    return (*(Iter(it.extent, it.stride * count, it.axis) for it in row), Iter(count, 1, axis))
