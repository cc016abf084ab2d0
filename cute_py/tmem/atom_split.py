"""Two regions of a copy, cut into the parts that one instruction has.

Both regions are rows of iters over the same elements. They are brought into one order (lanes first, then columns from
the widest stride down), freed of what is repeated on both sides, and cut into

    [ rows of one instruction | which instruction | elements of one row ]

with the middle parts split at the same places.
"""

from __future__ import annotations

from dataclasses import dataclass

from cute_py.argument_checks import expect_fields
from cute_py.errors import LayoutError
from cute_py.tmem import iters
from cute_py.tmem.copy_plan import Refusal
from cute_py.tmem.cp_forms import CpForm
from cute_py.tmem.iters import Row
from cute_py.tmem.swizzled_layout import ComposeLayout, Layout
from cute_py.tmem.tile_layout import Region, TileLayout, as_ranges


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a copy: a buffer's layout, its shape and the region that is copied."""

    layout: Layout
    shape: tuple[int, ...]
    region: Region

    def __post_init__(self) -> None:
        object.__setattr__(self, "region", as_ranges(self.region))
        expect_fields(self)


def cut_regions(smem: Side, tmem: Side) -> tuple[TileLayout, TileLayout, ComposeLayout | None] | Refusal:
    """The layouts of the two regions, canonical, and the swizzle that the shared one has."""
    source, target = _cut("shared", smem), _cut("tensor-memory", tmem)
    if isinstance(source, Refusal):
        return source
    if isinstance(target, Refusal):
        return target
    if isinstance(target, ComposeLayout):
        return Refusal("axes", "a tensor-memory layout has no swizzle")
    swizzled = source if isinstance(source, ComposeLayout) else None
    tile = (source.tile if isinstance(source, ComposeLayout) else source).canonicalize()
    target = target.canonicalize()
    if set(tile.axes) - {"m"} or tile.replica:
        return Refusal("axes", f"a shared layout is on the axis m, without replicas; got {tile}")
    if set(target.axes) - {"TLane", "TCol"}:
        return Refusal("axes", f"a tensor-memory layout is on TLane and TCol; got {target}")
    if tile.size() != target.size():
        return Refusal("size", f"{tile.size()} shared elements, {target.size()} in tensor memory; must be equal")
    return tile, target, swizzled


def _cut(name: str, side: Side) -> Layout | Refusal:
    try:
        cut = side.layout.slice(side.shape, side.region)
    except LayoutError as error:
        return Refusal("region", f"the {name} region: {error.headline}")
    return cut or Refusal("region", f"the {name} region is no layout: it takes uneven parts of a shard")


def in_one_order(source: TileLayout, target: TileLayout) -> tuple[Row, Row] | Refusal:
    """Both rows in one order, lanes first and columns from the widest stride down, without broadcast iters."""
    perm = [
        position
        for position, it in sorted(
            enumerate(target.shard), key=lambda p: (0 if p[1].axis == "TLane" else 1, -p[1].stride)
        )
    ]
    grouped = iters.group(source.shard, target.extents)
    if isinstance(grouped, str):
        return Refusal("group", f"the shared layout does not split like the tensor-memory layout: {grouped}")
    runs = iters.split(*grouped)
    rows = (
        iters.canonicalize(tuple(it for position in perm for it in runs[position])),
        iters.canonicalize(tuple(target.shard[position] for position in perm)),
    )
    sequences, kept = zip(*(_split_at_zero(row) for row in rows), strict=True)
    if sequences[0] != sequences[1]:
        return Refusal(
            "broadcast", f"elements repeat as {sequences[1]} in tensor memory and as {sequences[0]} in shared"
        )
    return kept[0], kept[1]


def _split_at_zero(row: Row) -> tuple[list[int], Row]:
    """Sizes of the stretches between iters of stride 0, with those iters' extents, and the row without them."""
    sequence: list[int] = []
    size = 1
    for it in row:
        if it.stride:
            size *= it.extent
            continue
        sequence += [size, it.extent] if size > 1 else [it.extent]
        size = 1
    if size > 1:
        sequence.append(size)
    return sequence, tuple(it for it in row if it.stride)


@dataclass(frozen=True, slots=True)
class Parts:
    """(rows, middle, elements) of each side; the middles have the same extents."""

    target: tuple[Row, Row, Row]
    source: tuple[Row, Row, Row]


def split_parts(form: CpForm, source: Row, target: Row, bits: int) -> Parts | Refusal:
    """Cut both sides into the parts of one instruction of `form`."""
    width = form.bits // bits
    atom = form.rows * width
    cut = []
    for side, row in (("tensor-memory", target), ("shared", source)):
        total = iters.size(row)
        if total % atom:
            return Refusal(
                "atom",
                f"the {side} region has {total} elements; must be a multiple of {form.rows} x {width}, one {form.name}",
            )
        grouped = iters.group(row, (form.rows, total // atom, width))
        if isinstance(grouped, str):
            return Refusal("group", f"the {side} region does not split into {form.rows} rows of {width}: {grouped}")
        cut.append(iters.split(*grouped))
    (t_rows, t_middle, t_columns), (s_rows, s_middle, s_columns) = cut
    aligned = _align(iters.canonicalize(t_middle), iters.canonicalize(s_middle))
    if isinstance(aligned, Refusal):
        return aligned
    return Parts(
        (iters.canonicalize(t_rows), aligned[0], iters.canonicalize(t_columns)),
        (s_rows, aligned[1], iters.canonicalize(s_columns)),
    )


def _align(target: Row, source: Row) -> tuple[Row, Row] | Refusal:
    """Both middles with the same extents: split at every boundary of either."""
    edges = sorted({product for row in (target, source) for product in _cumulated(row)})
    shape, before = [], 1
    for edge in edges:
        if edge % before:
            return Refusal("middle", f"the loops of the two sides do not nest: boundaries {edges}")
        shape.append(edge // before)
        before = edge
    out = []
    for row in (target, source):
        grouped = iters.group(row, shape)
        if isinstance(grouped, str):
            return Refusal("middle", f"the loops of the two sides do not nest: {grouped}")
        runs = [iters.canonicalize(run) for run in iters.split(*grouped)]
        if any(len(run) != 1 for run in runs):
            return Refusal("middle", f"the loops of the two sides do not nest: {runs}")
        out.append(tuple(run[0] for run in runs))
    return out[0], out[1]


def _cumulated(row: Row) -> list[int]:
    out, product = [], 1
    for it in row:
        product *= it.extent
        out.append(product)
    return out
