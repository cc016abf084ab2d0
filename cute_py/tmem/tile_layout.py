"""TileLayout: the locations of a tile's elements, and of their copies, in a space of named axes.

A layout consists of shards, replicas and an offset:

    S[(32, 16) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane] + 8 @ TCol

`S[shape : strides]` gives the location of each element (row-major: the last extent is the fastest),
`R[shape : strides]` repeats the tile (here four times, 32 lanes apart), and the offset moves all copies. `S[8, 4]` is
row-major on the axis `m`. `apply` returns the location of an element without the replicas; `places` returns the
locations of all copies. All numbers count elements along their axis.

Source: semantics of TVM's TIRx layouts, measured on apache-tvm 0.27.0.

`tile` interleaves an outer and an inner layout dimension by dimension, and `outer_of` recovers the outer layout:

    inner (8, 8) : (8, 1), outer (4, 2) : (2, 1)   ->   (4, 8, 2, 8) : (128, 8, 64, 1)
                                                         the outer strides count inner tiles (64 elements)

`direct_sum` is the same interleaving with unchanged outer strides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, SupportsIndex

from cute_py.argument_checks import check_magnitude, expect, expect_integer, expect_integers, is_integer, items_of
from cute_py.errors import CoordinateError, InvalidTypeError, LayoutError, TmemError, given
from cute_py.tmem import iters
from cute_py.tmem.axes import Axis, AxisSum, AxisTerm, Offset, as_term, axis_name
from cute_py.tmem.iters import Iter, Row, canonicalize, runs

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy

Region = Sequence[tuple[int, int]]
"""(begin, end) in each dimension."""

Spec = slice | SupportsIndex | Sequence[SupportsIndex]
"""Argument of `S[...]` and `R[...]`: extents, or extents : strides."""


class TileLayout:
    """A layout of shards, replicas (whose order does not matter) and an offset for each axis. Immutable and hashable.

    Args:
        shard: a row of `Iter`; or a TileLayout, which is copied, so that `TileLayout(S[...] + R[...])` works, as on the
            reference pages.

    >>> from cute_py.tmem.axes import TCol, TLane
    >>> from cute_py.tmem.tile_layout import R, S
    >>> demo = S[(32, 16) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane]
    >>> demo
    S[(32, 16) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane]
    >>> demo.apply((6, 2), (32, 16))
    {'TLane': 6, 'TCol': 2}
    """

    __slots__ = ("offset", "replica", "shard")

    shard: Row
    replica: Row
    offset: AxisSum

    def __init__(
        self, shard: Iterable[Iter] | TileLayout, replica: Iterable[Iter] = (), offset: Offset | None = None
    ) -> None:
        if isinstance(shard, TileLayout):
            replica, offset = shard.replica, shard.offset
            shard = shard.shard
        object.__setattr__(self, "shard", _row(shard, "the shards"))
        object.__setattr__(self, "replica", _row(replica, "the replicas"))
        object.__setattr__(self, "offset", AxisSum(()) if offset is None else AxisSum.of(offset))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"TileLayout is immutable; {name} can't be set")

    def __reduce__(self) -> tuple[type[TileLayout], tuple[Row, Row, AxisSum]]:
        return TileLayout, (self.shard, self.replica, self.offset)

    # -- building ----------------------------------------------------------------------------------------------------

    def __add__(self, other: TileLayout | Offset) -> TileLayout:
        """Combine two layouts: the left one's shards, the right one's replicas if it has any, and the sum of the
        offsets.

        As in TIRx, a second `R` replaces the first and a second `S` is ignored.
        """
        if isinstance(other, TileLayout):
            return TileLayout(self.shard or other.shard, other.replica or self.replica, self.offset + other.offset)
        return TileLayout(self.shard, self.replica, self.offset + other)

    def __eq__(self, other: object) -> bool:
        """Compare shards, replicas and offsets; the order of replicas is ignored, and so are offsets of zero."""
        if not isinstance(other, TileLayout):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Row, tuple[str, ...], frozenset[tuple[str, int]]]:
        moved = frozenset((axis, steps) for axis, steps in self.offset.as_dict().items() if steps)
        return self.shard, tuple(sorted(map(repr, self.replica))), moved

    def __repr__(self) -> str:
        parts = [f"S[{_spec(self.shard)}]"] if self.shard else []
        if self.replica:
            parts.append(f"R[{_spec(self.replica)}]")
        if self.offset.terms:
            parts.append(repr(self.offset))
        return " + ".join(parts) or "TileLayout(())"

    # -- evaluation --------------------------------------------------------------------------------------------------

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of the shards, the slowest first."""
        return tuple(it.extent for it in self.shard)

    def size(self) -> int:
        """Return the number of elements, without replicas."""
        return iters.iteration_count(self.shard)

    def apply(
        self, coord: Sequence[int] | int, *more: Sequence[int] | int, shape: Sequence[int] | None = None
    ) -> dict[str, int]:
        """Return the location of one element, without replicas, as a mapping from axis names to steps.

        Args:
            coord: a coordinate in `shape`, or a flat row-major index; `apply(6, 2)` is `apply((6, 2))`.
            shape: the extents of the coordinate; by default, the extents of the shards. `apply(coord, shape)` works
                too.
        Raises:
            CoordinateError: the coordinate does not have the rank of the shape.

        The outermost digit is not bounded, so an index past the end continues along the first shard.
        """
        index = _index(coord, more, shape, self.extents)
        place = {it.axis: 0 for it in self.shard}
        for position in range(len(self.shard) - 1, -1, -1):
            it = self.shard[position]
            digit = index if position == 0 else index % it.extent
            index //= it.extent
            place[it.axis] += digit * it.stride
        for axis, steps in self.offset.as_dict().items():
            place[axis] = place.get(axis, 0) + steps
        return place

    def positions(self, axis: Axis | str) -> NDArray[numpy.int64]:
        """Return the steps along `axis` of every element, in row-major order, without replicas: int64 (size,)."""
        name = axis_name(axis)
        start = self.offset.as_dict().get(name, 0)
        if abs(start) >= 1 << 62:
            raise TmemError(f"the offset along {name} is {start}; must be below 2**62")
        return iters.walk(self.shard, name) + start

    def replica_positions(self, axis: Axis | str) -> NDArray[numpy.int64]:
        """Return the steps along `axis` from the tile to each of its copies, including itself: int64 (copies,)."""
        return iters.walk(self.replica, axis_name(axis))

    def places(self, axes: Sequence[str]) -> NDArray[numpy.int64]:
        """Return the location of every copy of every element, in steps along each of `axes`: int64 of shape (size,
        copies, len(axes))."""
        names = [axis_name(axis) for axis in expect(axes, Sequence, "axes")]  # type: ignore[type-abstract]
        if isinstance(axes, str) or not names:
            raise InvalidTypeError(f"axes must be a sequence of names, at least one; got {given(axes)}")
        each = [self.positions(axis)[:, None] + self.replica_positions(axis)[None, :] for axis in names]
        return numpy.stack(each, axis=-1)

    def span(self, axis: Axis | str | None = None) -> int:
        """Return the span of the layout: 1 + the offset + the sum of (extent - 1) * stride over shards and replicas.

        >>> TileLayout([Iter(8, 8, "m"), Iter(8, 1, "m")]).span()
        64
        """
        only = None if axis is None else axis_name(axis)
        reach = sum((it.extent - 1) * it.stride for it in (*self.shard, *self.replica) if only in (None, it.axis))
        return 1 + reach + sum(steps for name, steps in self.offset.as_dict().items() if only in (None, name))

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of the shards, replicas and offsets, in order of appearance."""
        named = [it.axis for it in (*self.shard, *self.replica)] + list(self.offset.as_dict())
        return tuple(dict.fromkeys(named))

    def is_trivial(self) -> bool:
        """Return whether the layout is the identity on linear memory: element i has the location i on the axis `m`."""
        return self.canonicalize() == TileLayout([Iter(self.size(), 1, "m")])

    # -- algebra -----------------------------------------------------------------------------------------------------

    def canonicalize(self) -> TileLayout:
        """Return the same function with the fewest shards: drop extents of 1 and offsets of 0, and fuse neighbours.

        >>> TileLayout([Iter(128, 16, "m"), Iter(16, 1, "m")]).canonicalize()
        S[2048 : 1]
        """
        moved = tuple(term for term in self.offset.terms if term.value)
        replica = tuple(sorted(self.replica, key=lambda it: (it.axis, it.extent, it.stride)))
        return TileLayout(iters.canonicalize(self.shard), replica, AxisSum(moved))

    def group(self, shape: Sequence[int]) -> tuple[TileLayout, tuple[int, ...]]:
        """Split shards to form runs with the sizes in `shape`; return the layout, and where the runs begin and end.

        Raises:
            LayoutError: a boundary of the shape falls inside a shard that it does not divide.

        >>> TileLayout([Iter(512, 1, "m")]).group((32, 16))
        (S[(32, 16) : (16, 1)], (0, 1, 2))
        """
        extents = _shape(shape)
        try:
            row, seps = iters.group(self.shard, extents)
        except LayoutError as error:
            facts = {"layout": self, "reason": error.headline}
            raise LayoutError(f"the layout can't be grouped by the shape {extents}", facts) from None
        return TileLayout(row, self.replica, self.offset), seps

    def group_many(self, shapes: Sequence[Sequence[int]]) -> tuple[TileLayout, tuple[tuple[int, ...], ...]]:
        """Split shards to refine all of the shapes; return the layout, and where the dimensions of each shape begin.

        Raises:
            LayoutError: the sizes differ, or the boundaries do not nest.
        """
        if not isinstance(shapes, (tuple, list)) or not shapes:
            raise InvalidTypeError(f"shapes must be a sequence of shapes, at least one; got {given(shapes)}")
        wanted = [_shape(shape) for shape in shapes]
        sizes = [math.prod(shape) for shape in wanted]
        if len(set(sizes)) > 1:
            raise LayoutError("the shapes of group_many must have the same size", {"sizes": sizes})
        refinement = iters.refinement(wanted)
        if refinement is None:
            raise LayoutError("the boundaries of the shapes do not nest", {"shapes": wanted})
        common, places = refinement
        refined, seps = self.group(common)
        return refined, tuple(tuple(seps[place] for place in one) for one in places)

    def slice(self, shape: Sequence[int], region: Region) -> TileLayout | None:
        """Return the layout of a region: `region[d]` is (begin, end) in dimension d of `shape`.

        The result is None if no layout describes the region, because the region cuts the steps of a shard unevenly.

        Raises:
            LayoutError: the layout can't be split into these dimensions.
            CoordinateError: the region extends beyond the shape, or is empty.
        """
        extents = _shape(shape)
        ranges = as_ranges(region)
        if len(ranges) != len(extents):
            raise CoordinateError(f"the region has {len(ranges)} ranges, but the shape has {len(extents)} dimensions")
        for dim, ((begin, end), extent) in enumerate(zip(ranges, extents, strict=True)):
            if not 0 <= begin < end <= extent:
                raise CoordinateError(f"region[{dim}] = {begin}:{end}; must be within 0:{extent} and not empty")
        grouped, seps = self.canonicalize().group(extents)
        shard: list[Iter] = []
        offset = grouped.offset
        for run, (begin, end) in zip(iters.split(grouped.shard, seps), ranges, strict=True):
            part = iters.cut(iters.canonicalize(run), begin, end - begin)
            if part is None:
                return None
            shard += part[0]
            offset = offset + part[1]
        return TileLayout(shard, self.replica, offset)

    def permute_dims(self, perm: Sequence[int]) -> TileLayout:
        """Reorder the shards: shard k of the result is shard `perm[k]` of this layout.

        Raises:
            LayoutError: `perm` is not a permutation of all shards.
        """
        return self.permute_by_groups(range(len(self.shard) + 1), perm)

    permute = permute_dims

    def permute_by_groups(self, seps: Sequence[int], perm: Sequence[int]) -> TileLayout:
        """Reorder runs of shards; run g is `shard[seps[g]:seps[g + 1]]`, as `group` returns them."""
        edges, perm = expect_integers(seps, "seps", 0), expect_integers(perm, "perm")
        if (*edges[:1], *edges[-1:]) != (0, len(self.shard)) or list(edges) != sorted(edges):
            raise LayoutError(f"seps = {given(edges)}; must ascend from 0 to {len(self.shard)}, the number of shards")
        parts = iters.split(self.shard, edges)
        if sorted(perm) != list(range(len(parts))):
            raise LayoutError(f"perm = {given(list(perm))}; must be a permutation of 0..{len(parts) - 1}")
        return TileLayout(tuple(itertools.chain(*(parts[p] for p in perm))), self.replica, self.offset)

    def tile(self, outer: TileLayout, outer_shape: Sequence[int], inner_shape: Sequence[int]) -> TileLayout:
        """Repeat this layout as `outer` arranges it; the strides of `outer` count tiles (spans of this layout).

        Args:
            outer_shape, inner_shape: extents of the dimensions of `outer` and of this layout; the result has, in each
                dimension, the outer part first.
        Raises:
            LayoutError: a layout can't be split into these dimensions.
        """
        return self._interleave(outer, outer_shape, inner_shape, self._spans())

    def direct_sum(self, left: TileLayout, left_shape: Sequence[int], right_shape: Sequence[int]) -> TileLayout:
        """Combine two layouts like `tile`, but keep the strides of `left` unchanged."""
        return self._interleave(left, left_shape, right_shape, {})

    def _spans(self) -> dict[str, int]:
        """Return the span along each axis that has a shard of more than one element."""
        return {it.axis: self.span(it.axis) for it in canonicalize(self.shard)}

    def _interleave(
        self, outer: TileLayout, outer_shape: Sequence[int], inner_shape: Sequence[int], scale: dict[str, int]
    ) -> TileLayout:
        """Interleave by dimensions: dimension d of `outer`, strides times `scale`, then dimension d of this layout."""
        expect(outer, TileLayout, "the outer layout")
        shapes = _shape(outer_shape), _shape(inner_shape)
        if len(shapes[0]) != len(shapes[1]):
            raise LayoutError(f"the shapes are {shapes[0]} and {shapes[1]}; must have the same rank")
        try:
            parts = [runs(canonicalize(of.shard), shape) for of, shape in zip((outer, self), shapes, strict=True)]
        except LayoutError as error:
            raise LayoutError(f"the layouts do not tile: {error.headline}", {"outer": outer, "inner": self}) from None
        row: list[Iter] = []
        for outer_run, inner_run in zip(*parts, strict=True):
            row += [Iter(it.extent, it.stride * scale.get(it.axis, 1), it.axis) for it in outer_run]
            row += inner_run
        return TileLayout(row, self.replica + outer.replica, self.offset + outer.offset).canonicalize()

    def outer_of(self, tiled: TileLayout, tiled_shape: Sequence[int], inner_shape: Sequence[int]) -> TileLayout | None:
        """Return the `x` with `self.tile(x, ...) == tiled`, or None if this layout is not an inner part of `tiled`."""
        expect(tiled, TileLayout, "the tiled layout")
        shape, inner = _shape(tiled_shape), _shape(inner_shape)
        if len(shape) != len(inner) or any(t % i for t, i in zip(shape, inner, strict=True)):
            return None
        both = [extent for t, i in zip(shape, inner, strict=True) for extent in (t // i, i)]
        try:
            parts, wanted = runs(canonicalize(tiled.shard), both), runs(canonicalize(self.shard), inner)
        except LayoutError:
            return None
        for got, want in zip(parts[1::2], wanted, strict=True):
            if canonicalize(got) != canonicalize(want) and any(it.extent != 1 for it in (*got, *want)):
                return None
        spans, row = self._spans(), []
        for it in itertools.chain(*parts[0::2]):
            # The outer strides count tiles; an extent of 1 has no stride to divide.
            span = spans.get(it.axis, 1) if it.extent > 1 else 1
            if not span or it.stride % span:  # strides below 0 may have no span
                return None
            row.append(Iter(it.extent, it.stride // span, it.axis))
        rest = list(tiled.replica)
        for copy in self.replica:
            if copy not in rest:
                return None
            rest.remove(copy)
        moved = tiled.offset + {axis: -steps for axis, steps in self.offset.as_dict().items()}
        return TileLayout(row, rest, AxisSum(tuple(term for term in moved.terms if term.value)))

    def pack(self, count: int) -> TileLayout:
        """Merge `count` adjacent elements into one.

        Raises:
            LayoutError: the last shard does not have stride 1 and an extent that is a multiple of `count`, or another
                stride is not a multiple of `count`.

        >>> TileLayout([Iter(32, 16, "m"), Iter(16, 1, "m")]).pack(2)
        S[(32, 8) : (8, 1)]
        """
        count = expect_integer(count, "count", 1)
        *others, last = self.shard or (Iter(1, 0, "m"),)
        if last.extent % count or last.stride != 1 or any(it.stride % count for it in others):
            raise LayoutError(f"{count} elements of the layout can't be packed into one", {"layout": self})
        row = [Iter(it.extent, it.stride // count, it.axis) for it in others]
        return TileLayout([*row, Iter(last.extent // count, 1, last.axis)], self.replica, self.offset)

    def unpack(self, count: int) -> TileLayout:
        """Split every element into `count` adjacent elements along the axis of the last shard.

        >>> TileLayout([Iter(32, 16, "m"), Iter(16, 1, "m")]).unpack(2)
        S[(32, 16, 2) : (32, 2, 1)]
        """
        count = expect_integer(count, "count", 1)
        row = [Iter(it.extent, it.stride * count, it.axis) for it in self.shard]
        return TileLayout([*row, Iter(count, 1, row[-1].axis if row else "m")], self.replica, self.offset)


def _spec(row: Row) -> str:
    extents = ", ".join(str(it.extent) for it in row)
    strides = ", ".join(repr(AxisTerm(it.stride, it.axis)) for it in row)
    return f"{extents} : {strides}" if len(row) == 1 else f"({extents}) : ({strides})"


def _row(row: Iterable[Iter], what: str) -> Row:
    out = items_of(row, what, "a sequence of Iter")
    for it in out:
        if not isinstance(it, Iter):
            raise InvalidTypeError(f"a shard must be an Iter, got {given(it)}; build layouts with S[...] and R[...]")
        if it.extent < 1:
            raise LayoutError(f"extent {it.extent} in {it}; must be at least 1")
    check_magnitude(iters.iteration_count(out), f"the size of {what}")
    return out


def _shape(shape: Sequence[int]) -> tuple[int, ...]:
    extents = expect_integers(shape, "shape")
    if any(extent < 1 for extent in extents):
        raise LayoutError(f"shape {extents}; every extent must be at least 1")
    check_magnitude(math.prod(extents), "the size of the shape")
    return extents


def as_ranges(region: Region) -> tuple[tuple[int, int], ...]:
    """Convert a region to pairs of integers.

    Raises:
        InvalidTypeError: the region is not a sequence of pairs.
    """
    if not isinstance(region, (tuple, list)):
        raise InvalidTypeError(f"a region must be a sequence of (begin, end), got {given(region)}")
    ranges = []
    for dim, pair in enumerate(region):
        begin, end = expect_integers(pair, f"region[{dim}]", count=2)
        ranges.append((begin, end))
    return tuple(ranges)


def _index(
    coord: Sequence[int] | int, more: tuple[Sequence[int] | int, ...], shape: Sequence[int] | None, own: tuple[int, ...]
) -> int:
    """Return the flat row-major index for any form of arguments of `apply`; `own` are the default extents."""
    if len(more) == 1 and isinstance(more[0], Sequence) and shape is None:
        shape = more[0]
        more = ()
    extents = own if shape is None else _shape(shape)
    if not more and is_integer(coord):
        return expect_integer(coord, "the coordinate")
    point = expect_integers((coord, *more) if more else coord, "the coordinate")
    if len(point) != len(extents):
        raise CoordinateError(f"coordinate {given(point)} does not have the rank of the shape {extents}")
    index = 0
    for part, extent in zip(point, extents, strict=True):
        index = index * extent + part
    return index


def _build(spec: Spec) -> Row:
    extents, strides = (spec.start, spec.stop) if isinstance(spec, slice) else (spec, None)
    if isinstance(spec, slice) and spec.step is not None:
        raise InvalidTypeError("a layout must be shape : strides, with one colon")
    shape = [expect_integer(e, "an extent") for e in (extents if isinstance(extents, tuple | list) else (extents,))]
    if strides is None:
        steps = [AxisTerm(math.prod(shape[d + 1 :]), "m") for d in range(len(shape))]
    else:
        steps = [as_term(s) for s in (strides if isinstance(strides, tuple | list) else (strides,))]
    if len(steps) != len(shape):
        raise LayoutError(
            f"the layout has {len(shape)} extents and {len(steps)} strides; must have one stride for each extent"
        )
    return tuple(Iter(extent, term.value, term.axis) for extent, term in zip(shape, steps, strict=True))


class _ShardSpec:
    """`S[shape : strides]` makes the shards of a layout; `S[8, 4]` is row-major on the axis `m`."""

    def __getitem__(self, spec: Spec) -> TileLayout:
        return TileLayout(_build(spec))


class _ReplicaSpec:
    """`R[shape : strides]` makes the replicas of a layout; add it to an `S[...]`."""

    def __getitem__(self, spec: Spec) -> TileLayout:
        return TileLayout((), _build(spec))


S = _ShardSpec()
R = _ReplicaSpec()
