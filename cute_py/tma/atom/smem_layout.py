"""Make the canonical shared-memory layouts that wgmma and tcgen05 read, and choose one for a consumer.

A canonical layout repeats an atom of 8 rows (K-major) or 8 columns (MN-major) of one swizzle span. K-major rows are
contiguous along K; MN-major columns are contiguous along M or N.

    make_smem_layout("K", "128B", "float16", (128, 64))
        ->  Sw<3,4,3> o smem_ptr[16b](unset) o ((_8,_16),(_64,_1)):((_64,_512),(_1,_0))

Source: cute/atom/mma_traits_sm90_gmma.hpp, the Layout_{K,MN}_{INTER,SW32,SW64,SW128}_Atom types; PTX ISA, asynchronous
warpgroup matrix instructions, shared memory matrix layouts.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TypeAlias

from cute_py.argument_checks import expect_integer, is_integer, record
from cute_py.dtypes import DTypeLike, as_dtype
from cute_py.errors import CuteError, InvalidValueError, StaticAssertError, counted, given, unless_refused
from cute_py.layout.arguments import Leaf, Tree
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import product_each
from cute_py.layout.layout import Layout, LayoutLeft, Stride, domain_of, static
from cute_py.layout.leaf import Int
from cute_py.layout.recast import SmemPtrFlag
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.tiling import tile_to_shape
from cute_py.layout.trees import check_depth, modes
from cute_py.targets import BANK_BYTES, BANKS
from cute_py.tma.atom.gbasis import as_tiler
from cute_py.tma.descriptor.data_types import TensorMapSwizzle
from cute_py.tma.descriptor.limits import SWIZZLE_SPAN, bounds
from cute_py.tma.descriptor.request import as_member

UNIT = 16
"""Bytes of the unit that a swizzle moves, and that one lane of a phase reads."""
UNITS_AT_ONCE = BANKS * BANK_BYTES // UNIT
"""Number of 16-byte units that shared memory serves in one pass."""
ROWS = 8
"""Rows of a core matrix: one phase of ldmatrix, and of a wgmma or tcgen05 operand read."""


@dataclass(frozen=True, slots=True)
class SpanRow:
    """One canonical swizzle span: its name, B of Sw<B,4,3>, and the bytes of one row of the atom."""

    name: str
    bits: int
    span: int


SPANS: tuple[SpanRow, ...] = (
    *(SpanRow(f"{span}B", bits, span) for bits, span in sorted(SWIZZLE_SPAN.items(), reverse=True) if span),
    SpanRow("none", 0, UNIT),
)
"""The canonical spans, best first: a wider span has fewer bank conflicts, and fewer and larger boxes."""


SwizzleLike: TypeAlias = Swizzle | SpanRow | TensorMapSwizzle | int | str
"""Name of a canonical swizzle; `span_row` lists the spellings."""


def span_row(swizzle: SwizzleLike) -> SpanRow:
    """Return the table row of a swizzle.

    The swizzle may be any spelling of a `TensorMapSwizzle`, a `Swizzle` on bytes, or the row itself.

    >>> span_row("SWIZZLE_128B").span, span_row(2).name
    (128, '64B')
    """
    if isinstance(swizzle, str):
        with contextlib.suppress(InvalidValueError):
            swizzle = as_member(TensorMapSwizzle, swizzle, "swizzle")
    for row in SPANS:
        if swizzle is row or (is_integer(swizzle) and swizzle == row.bits):
            return row
        if isinstance(swizzle, Swizzle) and (swizzle.bits, swizzle.base, swizzle.shift) == (row.bits, 4, 3):
            return row
    raise InvalidValueError(f"swizzle = {given(swizzle)}; must be one of {', '.join(r.name for r in SPANS)}")


def _require_major(major: str) -> None:
    if not isinstance(major, str) or major not in ("K", "MN"):
        raise InvalidValueError(f"major = {given(major)}; must be 'K' or 'MN'")


def smem_atom(major: str, swizzle: SwizzleLike, dtype: DTypeLike) -> ComposedLayout:
    """Return the layout atom that a canonical layout repeats.

    Args:
        major: 'K' or 'MN', the contiguous mode. swizzle: 'none', '32B', '64B' or '128B', in any spelling.
        dtype: the element type.
    Raises:
        InvalidValueError: `major` or `swizzle` is not one of these.

    >>> print(smem_atom("MN", "32B", "float16"))
    Sw<1,4,3> o smem_ptr[16b](unset) o (_16,_8):(_1,_16)
    """
    row, kind = span_row(swizzle), as_dtype(dtype)
    _require_major(major)
    n = row.span * 8 // kind.bits
    shape, stride = ((n, ROWS), (1, n)) if major == "MN" else ((ROWS, n), (n, 1))
    return ComposedLayout(Swizzle(row.bits, 4, 3), SmemPtrFlag(kind.bits), static(Layout(shape, stride)))


def make_smem_layout(
    major: str, swizzle: SwizzleLike, dtype: DTypeLike, tile: Tree | str, order: Stride = LayoutLeft
) -> ComposedLayout:
    """Return the canonical layout of a tile (M or N, K[, stages]).

    Args:
        major: 'K' or 'MN', the contiguous mode. swizzle: 'none', '32B', '64B' or '128B', in any spelling.
        dtype: the element type. tile: sizes in elements, or '128x64'.
        order: the mode that the atom is repeated along first, as in `tile_to_shape`.
    Raises:
        InvalidValueError: a size of the tile is less than 1.
        StaticAssertError: the atom does not divide the tile; the hint lists the swizzles whose atoms divide it, or the
            next larger tile that the atom divides.

    >>> print(make_smem_layout("K", "128B", "float16", (128, 64)))
    Sw<3,4,3> o smem_ptr[16b](unset) o ((_8,_16),(_64,_1)):((_64,_512),(_1,_0))
    """
    atom = smem_atom(major, swizzle, dtype)
    _expect_elements(tile)
    try:
        layout: ComposedLayout = tile_to_shape(atom, as_tiler(tile), order)
    except StaticAssertError as error:
        hint = _choices_hint(major, dtype, tile) or _larger_hint(major, swizzle, dtype, tile, order)
        raise StaticAssertError(error.condition, error.facts, hint).of_rule(error.rule) from None
    return layout


def _choices_hint(major: str, dtype: DTypeLike, tile: Tree | str) -> str | None:
    """Return the hint that lists the swizzles of `smem_choices` for a tile; None if no swizzle fits."""
    fit = []
    for row in SPANS:
        with contextlib.suppress(CuteError):
            tile_to_shape(smem_atom(major, row, dtype), as_tiler(tile))
            fit.append(row.name)
    return (
        f"smem_choices({major!r}, {as_dtype(dtype).name!r}, {given(tile)}) lists layouts with swizzle {', '.join(fit)}"
        if fit
        else None
    )


def _expect_elements(tile: Tree | str) -> tuple[Leaf, ...]:
    """Return the number of elements along each mode of a tile; each known number must be at least 1."""
    sizes: tuple[Leaf, ...] = product_each(as_tiler(tile))
    for count in sizes:
        if is_integer(count):
            expect_integer(count, "a size of the tile", 1, unit="elements")
    return sizes


def _larger_hint(major: str, swizzle: SwizzleLike, dtype: DTypeLike, tile: Tree | str, order: Stride) -> str | None:
    """Return the hint with the smallest tile around `tile` that the atom divides; None if there is none."""
    atom = product_each(domain_of(smem_atom(major, swizzle, dtype)).shape)
    sizes = [expect_integer(n, "a size of the tile") for n in _expect_elements(tile) if is_integer(n)]
    if len(sizes) < len(atom):
        return None
    units = [int(n) for n in atom] + [1] * (len(sizes) - 2)
    larger = tuple([-(-size // unit) * unit for size, unit in zip(sizes, units, strict=True)])
    name, kind = span_row(swizzle).name, as_dtype(dtype)
    if unless_refused(lambda: tile_to_shape(smem_atom(major, name, kind), as_tiler(larger), order)) is None:
        return None
    call = f"make_smem_layout({major!r}, {name!r}, {kind.name!r}, {larger})"
    return f"{call} has the next larger tile that the atom divides"


@record
class SmemChoice:
    """A shared-memory layout of a tile, with its cost for the consumer that reads it.

    `passes` is the largest number of shared-memory passes that a core-matrix read needs. A box has `box_rows` rows of
    `box_bytes` bytes; `alignment` is in bytes.

    >>> best = smem_choices("K", "float16", (128, 64))[0]
    >>> best.swizzle, best.box_bytes, best.passes
    ('128B', 128, 1)
    """

    swizzle: str
    layout: Layout | ComposedLayout
    alignment: int
    box_rows: int
    box_bytes: int
    passes: int

    def __str__(self) -> str:
        return (
            f"{self.swizzle:>4}: boxes of {self.box_rows} x {self.box_bytes} bytes, reads of 8 rows in "
            f"{counted(self.passes, 'pass')}, tile aligned to {self.alignment} bytes; {self.layout}"
        )


def bank_conflict_passes(layout: Layout | ComposedLayout, bits: int, major: str) -> int:
    """Return the largest number of passes that shared memory needs for one core-matrix read (8 rows of 16 bytes).

    The 8 rows are neighbours along the mode that is not contiguous. Two of their 16-byte units conflict if they are in
    the same bank group.
    """
    plain = domain_of(layout)
    swizzle = layout.outer if isinstance(layout, ComposedLayout) else Swizzle(0, 4, 3)
    fast = 1 if major == "K" else 0
    units = max(1, UNIT * 8 // bits)
    sizes = [int(n) for n in product_each(plain.shape)[:2]]
    rest = (0,) * (len(modes(plain.shape)) - 2)  # modes beyond the matrix, such as the stages of a pipeline
    worst = 1
    for column in range(0, min(sizes[fast], 8 * units), units):
        for first in range(0, min(sizes[1 - fast], 4 * ROWS), ROWS):
            groups: dict[int, int] = {}
            for r in range(first, min(first + ROWS, sizes[1 - fast])):
                coord = (r, column) if fast == 1 else (column, r)
                address = int(plain(*coord, *rest)) * bits // 8
                group = swizzle.of(address) // UNIT % UNITS_AT_ONCE
                groups[group] = groups.get(group, 0) + 1
            worst = max(worst, *groups.values())
    return worst


def smem_choices(major: str, dtype: DTypeLike, tile: Tree | str) -> list[SmemChoice]:
    """List the canonical layouts of a tile for a wgmma or tcgen05 operand, or for ldmatrix, best first.

    Each layout repeats its atom so that one box is as large as possible: along M or N first for K-major, along K first
    for MN-major.

    Args:
        major: 'K' or 'MN', the contiguous mode. dtype: the element type. tile: sizes in elements, or '128x64'.
    Raises:
        InvalidValueError: no layout divides the tile, or the tile is empty.

    >>> [c.swizzle for c in smem_choices("K", "float16", (128, 32))]
    ['64B', '32B', 'none']
    """
    kind = as_dtype(dtype)
    _require_major(major)
    check_depth(tile)
    for count in _expect_elements(tile):
        expect_integer(count, "a size of the tile")
    # Atoms that follow each other across the rows of a span are one box: repeat along that mode first.
    rank = len(modes(as_tiler(tile)))  # type: ignore[arg-type]
    order: Stride = LayoutLeft if major == "K" or rank < 2 else tuple(Int(n) for n in (2, 1, *range(3, rank + 1)))
    found, reasons = [], []
    for row in SPANS:
        try:
            layout = make_smem_layout(major, row.name, kind, tile, order)
        except CuteError as error:
            reasons.append(f"{row.name}: {error.headline}")
            continue
        sizes = [int(n) for n in product_each(domain_of(layout).shape)]
        other = sizes[1 if major == "MN" else 0]
        alignment = 128 if row.bits == 0 else row.span * 8
        passes = bank_conflict_passes(layout, kind.bits, major)
        found.append(SmemChoice(row.name, layout, alignment, min(other, bounds("box")[1]), row.span, passes))
    if not found:
        raise InvalidValueError(
            f"no canonical {major}-major layout divides a tile of {given(tile)} elements of {kind.bits} bits",
            {"tried": "; ".join(reasons)},
        )
    return sorted(found, key=lambda c: (c.passes, -c.box_bytes))
