"""The plan of a copy that computes: a cast, a format on either side, rows by an index.

    sides      source and outputs as matrices: lines of contiguous elements, with a pitch between lines
    kernel     rows: no output is transposed, and each block is within one row
               whole: a block is a whole row
               tile: all other copies, 128 x 128 elements at a time
    launch     the kernel, its grid, and its parameters without addresses

Rows and columns refer to the source's memory: for a source that is stored by columns, this module exchanges them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from cute_py.copies.scaled.host import same_bytes
from cute_py.errors import InvalidValueError
from cute_py.formats.format import Format
from cute_py.formats.numbers import number
from cute_py.formats.scale_orders import mode_of
from cute_py.formats.scale_rules import POWER_RULES, variants
from cute_py.gpu.kernels.numbers import KIND_BITS, KINDS
from cute_py.gpu.kernels.relayout import magic
from cute_py.gpu.kernels.scaled import ROWS_RESIDENT, ROWS_THREADS, scaled_largest, scaled_rows, scaled_whole
from cute_py.gpu.kernels.scaled_output import (
    HEAD,
    LANES,
    OUTPUT,
    PIECE,
    ROW_ELEMENTS,
    TILE,
    WHOLE_PIECES,
    Cover,
    Digits,
    OutputKind,
    RowsTile,
)
from cute_py.gpu.kernels.scaled_tile import scaled_tile
from cute_py.gpu.kernels.source import KernelSource
from cute_py.layout.layout import Layout
from cute_py.targets import MULTIPROCESSORS, WARP

WIDTHS: Final = (16, 32, 64, 128)
"""Elements of a block along one axis that the kernels support."""
SQUARES: Final = ((16, 16), (32, 32), (128, 128))
"""Blocks of several rows and columns that the kernels support."""
LANE_BITS: Final = 32
"""A lane has as many vectors of 16 elements as this number divided by the bits of an element, at most 4; it loads all
of them before it computes the first. A lane that dequantises has two vectors of 8 elements: with one, there are so many
CTAs that launching them takes 1.1 times as long as the copy, and with more than two, kernels that write more than they
read are slower (NVIDIA H200). If the copy has few tiles or several outputs, a lane has one vector."""
KEPT_BITS: Final = 16
"""`LANE_BITS` of copies that change only the order of scales. With 1 or 4 vectors, MXFP8 takes 1 to 2 % more time than
with 2."""
RESIDENT: Final = ROWS_RESIDENT * MULTIPROCESSORS
"""Number of CTAs of `scaled_rows` with `ROWS_THREADS` threads that run at the same time."""
FEW_TILES: Final = 2 * RESIDENT
"""Up to this number of CTAs of `ROWS_THREADS` threads with one vector per lane, a lane has one vector, so that more SMs
have work, and a warp has adjacent rows, so that fewer warps have rows of the matrix. Above, in 32_4_4, the rows of a
warp are 32 apart, and their scales fill sectors."""


@dataclass(frozen=True, slots=True)
class MatrixSide:
    """One side of a copy as a matrix in memory.

    kind: the kind of its elements (a key of `KINDS`). lines, along: the extents in memory, in elements. pitch: bytes
        from line to line. by_columns: whether a line is a column of the logical matrix. alignment: the alignment of the
        address. format, shape: the format and shape of a side with scales. total: its tensor scale. gain: the
        reciprocal of total that the variant uses; default 1 / total. fill: the byte of the scales' padding.
    """

    kind: str
    lines: int
    along: int
    pitch: int
    by_columns: bool = False
    alignment: int = 16
    scale_alignment: int = 16
    format: Format | None = None
    shape: tuple[int, int] = (0, 0)
    total: float | None = None
    gain: float | None = None
    fill: int = 0


@dataclass(frozen=True, slots=True)
class RowIndex:
    """An index of rows. rows: whether it selects rows of the source. into: whether it selects rows of the destination.
    width: bytes of an entry. masked: the value of the elements of masked rows, as 32 bits."""

    rows: bool = False
    into: bool = False
    width: int = 8
    masked: int = 0


@dataclass(frozen=True, slots=True)
class ScaledLaunch:
    """A kernel that computes, its grid, and its parameters without addresses.

    Attributes:
        name: 'rows', 'whole' or 'tile'. blocks: blocks of the grid; 0 for a copy of no elements, which launches no
            kernel. moved: bytes read and written.
        why: the reason for the kernel.
    """

    name: str
    kernel: KernelSource
    blocks: int
    moved: int
    why: str
    head: tuple[object, ...] = field(repr=False)
    outputs: tuple[tuple[object, ...], ...] = field(repr=False)

    def parameters(self, addresses: Mapping[str, int], outputs: Sequence[tuple[int, int]]) -> bytes:
        """The parameter block. addresses: addresses of 'source', 'scales', 'rows', 'into_rows', 'record'; outputs:
        addresses of data and scales."""
        pointers = [addresses.get(name, 0) for name in ("source", "scales", "rows", "into_rows", "record")]
        block = HEAD.pack(*pointers, *self.head)
        for (data, scales), values in zip(outputs, self.outputs, strict=True):
            block += OUTPUT.pack(data, scales, *values)
        return block

    def pointers(self) -> dict[str, int]:
        """Offset of each pointer in the parameter block, by its name; outputs are 'data 0', 'scales 0', ..."""
        found = {name: 8 * i for i, name in enumerate(("source", "scales", "rows", "into_rows", "record"))}
        for i in range(len(self.outputs)):
            at = HEAD.size + i * OUTPUT.size
            found |= {f"data {i}": at, f"scales {i}": at + 8}
        return found


def refused(text: str, works: str, **facts: object) -> InvalidValueError:
    """Make the error of a copy that the device does not support. works: a copy that it supports."""
    return InvalidValueError(f"a GPU copy does not support {text}", facts, f"use {works}").of_rule("device_format")


def digits_of(layout: Layout) -> tuple[tuple[int, int], ...]:
    """The (size, step) of a mode's digits. Digits that continue each other are joined, and trailing digits without
    effect are omitted."""
    sizes, steps = _leaves(layout.shape), _leaves(layout.stride)
    found: list[tuple[int, int]] = []
    for size, step in zip(sizes, steps, strict=True):
        if size == 1:
            continue
        if found and (step == found[-1][0] * found[-1][1] or (step == 0 == found[-1][1])):
            found[-1] = (found[-1][0] * size, found[-1][1])
        else:
            found.append((size, step))
    while found and found[-1][1] == 0:
        found.pop()
    return tuple(found)


def _leaves(tree: Any) -> list[int]:
    return [leaf for part in tree for leaf in _leaves(part)] if isinstance(tree, tuple) else [int(tree)]


@dataclass(frozen=True, slots=True)
class _Scales:
    """The scales of a side of a copy.

    block: rows and columns of a block; 0 for all. digits: the map to the index of a scale. extents: numbers of blocks.
    words: whether each four adjacent blocks have their scales in one word. split: see `OutputKind`.
    """

    block: tuple[int, int]
    digits: Digits
    extents: tuple[int, int]
    words: bool
    split: bool


def scales_of(form: Format, shape: tuple[int, int], exchanged: bool, alignment: int) -> _Scales:
    """The scales of a format in the rows and columns of the source's memory."""
    if not form.order.is_layout or form.order.given_layout is not None:
        raise refused(
            f"scales in the order {form.order}",
            "an order that is one layout for any size, such as linear or 32_4_4; copy(scaled, format) changes "
            "the order",
            order=form.order,
        )
    block = [0 if side is None else side for side in form.block]
    if form.order.each_row and block[0] != 1 and block[1] != 1:
        raise refused(
            f"blocks of {form.block} in the order {form.order}, which repeats the scales in each row",
            "the order linear or mn_major for blocks of several rows and columns",
        )
    sides = list(form.blocks(*shape))
    counts = [-(-n // b) for n, b in zip(shape, sides, strict=True)]
    tile = list(form.order.tile)
    swapped = form.axis == 0 if form.order.each_row else form.transposed
    if swapped:
        tile.reverse()
    counts = [-(-n // t) * t for n, t in zip(counts, tile, strict=True)]
    # The layout has the padded sizes, so that a single row has the steps of the rows that pad it.
    layout = form.scale_layout(*(count * side for count, side in zip(counts, sides, strict=True)))
    digits = [digits_of(mode_of(layout, i)) for i in (0, 1)]
    if exchanged:
        block.reverse()
        counts.reverse()
        digits.reverse()
    inner, other = (0, 1) if block[1] == 1 and block[0] != 1 else (1, 0)
    words = form.scale_dtype.bits == 8 and alignment % 4 == 0 and counts[inner] % 4 == 0 and 0 < block[inner] <= 32
    words = words and _four_bytes(digits[inner], block[inner]) and not any(d % 4 for _, d in digits[other])
    steps = dict(digits[other][:2])
    split = bool(digits[other]) and digits[other][0][0] == 32 and steps.get(4) == 4
    return _Scales((block[0], block[1]), Digits(digits[0], digits[1]), (counts[0], counts[1]), words, split)


def _four_bytes(digits: tuple[tuple[int, int], ...], block: int) -> bool:
    """Whether the number of blocks is a multiple of four, and each word holds the scales of four consecutive blocks."""
    below, found = 1, 0
    for size, step in digits:
        if below < block:
            if step or below * size > block:
                return False
        elif below == block:
            found = step if size % 4 == 0 else 0
            if found != 1:
                return False
        elif step % 4:
            return False
        below *= size
    return found == 1


def _output_kind(
    side: MatrixSide, scales: _Scales | None, exchanged: bool, access: int, keeps: bool = False
) -> OutputKind:
    vector = side.pitch % access == 0 and side.alignment % access == 0
    row = None if side.kind == "raw" else number(side.kind)
    made = OutputKind(
        side.kind, vector=vector, transposed=side.by_columns != exchanged, largest=row.largest if row else 1.0
    )
    if side.format is None or scales is None or row is None:
        return made
    form = side.format
    rule = form.scale_rule if form.scale_rule in POWER_RULES else f"{form.scale_rule} {form.like}"
    if form.like not in variants(form.scale_rule):
        raise refused(f"rule {form.scale_rule!r} as {form.like}", ", ".join(variants(form.scale_rule)))
    if keeps:
        rule = "keep"
    return replace(
        made,
        block=scales.block,
        rule=rule,
        scale_bytes=form.scale_dtype.bits // 8,
        power=form.scale == "ue8m0",
        words=scales.words,
        split=scales.split,
        levels=1 + form.tensor_scale,
        mantissa=row.mantissa,
        max_power=row.max_power,
        digits=scales.digits,
    )


def totals(side: MatrixSide) -> tuple[float, ...]:
    """Return six float32 factors of a side: its tensor scale, 1 / tensor scale, the gain, gain / 6, 1 / gain, and the
    largest magnitude of a usual block.

    They are rounded as in `quantized`. For a usual block, the divisions that give the scale stay among normal numbers,
    the scale is at most 448, and its elements are at most 6.5 after the division by the scale.
    """
    one = np.float32(1)
    total = one if side.total is None else np.float32(side.total)
    with np.errstate(all="ignore"):
        gain = one / total if side.gain is None else np.float32(side.gain)
        most = min(1e12, 6.5 * 448 * float(total)) if 1e-12 < total < 1e25 else 0.0
        return tuple(float(x) for x in (total, one / total, gain, gain * (one / np.float32(6)), one / gain, most))


def _output(side: MatrixSide, scales: _Scales | None, exchanged: bool) -> tuple[object, ...]:
    lines, along = side.lines, side.along
    extents = scales.extents if scales else (0, 0)
    steps = scales.digits.steps if scales else (0, 0)
    return (side.pitch, lines, along, *extents, side.fill, *steps, 0, *totals(side))


def plan_scaled(
    source: MatrixSide, outputs: Sequence[MatrixSide], shape: tuple[int, int], index: RowIndex | None = None
) -> ScaledLaunch:
    """Plan the launch of a copy of a logical matrix that computes.

    Args:
        source, outputs: the sides. shape: the copied (M, K). index: the index of rows.
    Raises:
        InvalidValueError: the device does not support the copy; the error names a copy that it supports.
    """
    exchanged, index = source.by_columns, index or RowIndex()
    m, k = shape[::-1] if exchanged else shape
    scales = [scales_of(o.format, o.shape, exchanged, o.scale_alignment) if o.format else None for o in outputs]
    turned = any(o.by_columns != exchanged for o in outputs)
    blocks = [s.block for s in scales if s is not None]
    if source.format is not None:
        return _dequantised(source, source.format, outputs, (m, k), turned, index)
    if blocks and source.kind not in ("float32", "bf16", "f16"):
        raise refused(
            f"a quantised source of {source.kind}", "sources of float32, bfloat16 or float16; cast=True first"
        )
    _expect_blocks(blocks)
    whole = [one for one in blocks if one == (1, 0)]
    along = [one for one in blocks if one[0] == 1 and one[1]]
    if not turned and len(whole) == len(outputs) and not (index.rows or index.into):
        return _whole(source, outputs, scales, (m, k))
    if whole:
        raise refused(
            "one scale per row for a transposed output, for one of several outputs, or for rows selected by an index",
            "one scale per row as the only output, stored by rows",
        )
    if not turned and len(along) == len(blocks):
        return _rows(source, outputs, scales, (m, k), index)
    if index.rows or index.into:
        raise refused(
            "rows selected by an index if a block has several rows or the output is transposed",
            "blocks along rows: block=(1, 32)",
        )
    if KIND_BITS[source.kind] <= 8:
        raise refused(f"a transposed cast of {source.kind}", "sources of float32, bfloat16 or float16")
    return _tile(source, outputs, scales, (m, k))


def plan_largest(source: MatrixSide) -> ScaledLaunch:
    """The launch that finds the largest magnitude of a matrix, and writes its float32 bits to a record of zeros."""
    kernel = scaled_largest(source.kind, aligned=_aligned(source, min(16, 2 * KIND_BITS[source.kind])))
    shape = source.lines, source.along
    blocks = min(source.lines, 8 * MULTIPROCESSORS)
    return _launch("largest", kernel, (blocks, 1), source, [source], [None], shape, "of the whole tensor")


def _expect_blocks(blocks: Sequence[tuple[int, int]]) -> None:
    for rows, columns in blocks:
        one = (rows == 1 and columns in (0, *WIDTHS)) or (columns == 1 and rows in WIDTHS)
        if not one and (rows, columns) not in SQUARES:
            names = " x ".join("all" if side == 0 else str(side) for side in (rows, columns))
            raise refused(
                f"blocks of {names} elements",
                f"blocks of 1 x n or n x 1 elements, where n is {', '.join(map(str, WIDTHS))}; of 1 x all; or of "
                + ", ".join(f"{a} x {b}" for a, b in SQUARES)
                + " (one scale per column or per tensor takes two passes)",
            )


def _size(
    source: MatrixSide, outputs: Sequence[MatrixSide], scales: Sequence[_Scales | None], shape: tuple[int, int]
) -> int:
    """Number of bytes read and written."""
    total = shape[0] * shape[1] * KIND_BITS[source.kind] // 8
    for one, scale in zip(outputs, scales, strict=True):
        total += one.lines * one.along * KIND_BITS[one.kind] // 8
        if scale is not None and one.format is not None:
            total += scale.extents[0] * scale.extents[1] * one.format.scale_dtype.bits // 8
    return total


def _sides(
    outputs: Sequence[MatrixSide], scales: Sequence[_Scales | None], shape: tuple[int, int], exchanged: bool
) -> tuple[list[int], list[int]]:
    """Numbers of rows, and of columns, of the matrix, of each output, and of the elements of its scales. Outputs and
    scales may have padding."""
    rows, columns = [shape[0]], [shape[1]]
    for one, scale in zip(outputs, scales, strict=True):
        sides = (one.lines, one.along) if one.by_columns == exchanged else (one.along, one.lines)
        for found, i in ((rows, 0), (columns, 1)):
            found.append(sides[i])
            if scale is not None and scale.block[i]:
                found.append(scale.extents[i] * scale.block[i])
    return rows, columns


def _cover(
    access: int, grid: tuple[int, int], sides: tuple[list[int], list[int]], outputs: Sequence[MatrixSide],
    index: RowIndex | None = None,
) -> Cover:  # fmt: skip
    """How vectors of `access` elements, and a grid with the rows and columns `grid`, cover the matrix and outputs."""
    by_index = index is not None and (index.rows or index.into)
    full = [all(side == extent for side in one) for one, extent in zip(sides, grid, strict=True)]
    ends = any(extent % access for extent in (sides[1][0], *(one.along for one in outputs)))
    return Cover(ends, full[0] and not by_index, full[1] and not by_index)


def _launch(
    name: str, kernel: KernelSource, grid: tuple[int, int], source: MatrixSide, outputs: Sequence[MatrixSide],
    scales: Sequence[_Scales | None], shape: tuple[int, int], why: str, index: RowIndex | None = None,
    digits: Digits | None = None,
) -> ScaledLaunch:  # fmt: skip
    down, across = grid
    if down * across >= 1 << 31 or max(shape) >= 1 << 31:
        raise refused(f"a copy of {down * across} blocks", "at most 2^31 blocks; split the copy")
    masked, digits = index.masked if index else 0, digits or Digits()
    head = (
        *(source.pitch, *shape, source.lines, outputs[0].lines, across, *magic(max(across, 1)), masked),
        *(1.0 if source.total is None else float(source.total), down, *digits.steps),
    )
    packed = tuple(_output(o, s, source.by_columns) for o, s in zip(outputs, scales, strict=True))
    size = _size(source, outputs, scales, shape) if down * across else 0
    why = why if down * across else "the copy has no elements"
    return ScaledLaunch(name, kernel, down * across, size, why, head, packed)


def _aligned(source: MatrixSide, access: int) -> bool:
    return source.pitch % access == 0 and source.alignment % access == 0


def _least_padding(width: int, unit: int, counts: Sequence[int]) -> int:
    """The number of units of columns for one CTA that computes the fewest columns beyond the last; the first one if
    several do."""
    return min(counts, key=lambda count: -(-width // (count * unit)) * count)


def _rows_tile(
    shape: tuple[int, int], vector: int, bits: int, kinds: Sequence[OutputKind], dequantises: bool, scaled_source: bool
) -> RowsTile:
    """The rows and vectors of a CTA. vector: elements of a vector. bits: width of an element of the source."""
    height, width = shape
    lanes = WARP if dequantises else LANES
    across = _least_padding(width, lanes * vector, (4, 2, 1))
    usual = RowsTile(ROWS_THREADS, lanes, vector, across, columns=1, down=1, split=False)
    tiles = -(-width // usual.wide) * -(-height // usual.tall)
    few = tiles <= FEW_TILES
    # The CTAs of a small copy to e2m1, which takes most instructions, are half as large: the SMs have more equal work.
    small = tiles <= RESIDENT and any(kind.kind == "e2m1" and kind.rule not in ("none", "keep") for kind in kinds)
    threads = ROWS_THREADS // 2 if small or dequantises else ROWS_THREADS
    items = 2 if dequantises else (KEPT_BITS if scaled_source else LANE_BITS) // max(bits, 8)
    if few or len(kinds) > 1:
        items = 1
    # A lane that computes has one vector of each of its rows: with two of a row, it takes 1.01 to 1.08 of the time.
    computes = dequantises or any(kind.rule not in ("none", "keep") for kind in kinds)
    columns = 1 if computes else _least_padding(width, usual.wide, [count for count in (4, 2, 1) if count <= items])
    split = not few and any(kind.split and kind.words for kind in kinds)
    tile = RowsTile(threads, lanes, vector, across, columns, items // columns, split)
    while split and tile.tall > TILE:
        tile = replace(tile, down=tile.down // 2)
    return tile


def _rows(
    source: MatrixSide,
    outputs: Sequence[MatrixSide],
    scales: Sequence[_Scales | None],
    shape: tuple[int, int],
    index: RowIndex,
    scaled_source: OutputKind | None = None,
) -> ScaledLaunch:
    sides = _sides(outputs, scales, shape, source.by_columns)
    height, width = shape[0] if index.into else max(sides[0]), max(sides[1])
    bits = KIND_BITS[source.kind]
    dequantises = scaled_source is not None and scales[0] is None
    vector = PIECE if dequantises else ROW_ELEMENTS
    kinds = []
    for one, scale in zip(outputs, scales, strict=True):
        keeps = scaled_source is not None and scale is not None
        kind = _output_kind(one, scale, source.by_columns, min(16, vector * KIND_BITS[one.kind] // 8), keeps)
        kinds.append(replace(kind, words=kind.words and not index.into))
    tile = _rows_tile((height, width), vector, bits, kinds, dequantises, scaled_source is not None)
    down = -(-height // TILE) * (TILE // tile.tall) if tile.split else -(-height // tile.tall)
    grid = down, -(-width // tile.wide)
    kernel = scaled_rows(
        source.kind,
        kinds,
        tile,
        aligned=_aligned(source, min(16, vector * bits // 8)),
        cover=_cover(vector, (grid[0] * tile.tall, grid[1] * tile.wide), sides, outputs, index),
        rows=index.rows,
        into=index.into,
        index_bytes=index.width,
        scaled_source=scaled_source,
    )
    why = "each block is within a row, and no output is transposed"
    digits = scaled_source.digits if scaled_source else None
    return _launch("rows", kernel, grid, source, outputs, scales, shape, why, index, digits)


def _whole(
    source: MatrixSide, outputs: Sequence[MatrixSide], scales: Sequence[_Scales | None], shape: tuple[int, int]
) -> ScaledLaunch:
    if any(scale is not None and scale.extents[1] > 1 for scale in scales):
        raise refused(
            "one scale per row in an order that pads the scales of a row",
            "the order linear or mn_major for one scale per row",
        )
    sides = _sides(outputs, scales, shape, source.by_columns)
    height, width = max(sides[0]), max(sides[1])
    most = 1024 * WHOLE_PIECES * 8
    if width > most:
        raise refused(f"one scale per row of {width} elements", f"rows of at most {most} elements", K=width)
    pieces = -(-width // 8)
    threads = next(t for t in (64, 128, 256, 512, 1024) if pieces <= t * (4 if t < 512 else WHOLE_PIECES) or t == 1024)
    each = -(-pieces // threads)
    kinds = [
        _output_kind(one, scale, source.by_columns, min(16, KIND_BITS[one.kind]))
        for one, scale in zip(outputs, scales, strict=True)
    ]
    aligned = _aligned(source, min(16, KIND_BITS[source.kind]))
    cover = _cover(PIECE, (height, threads * each * PIECE), sides, outputs)
    kernel = scaled_whole(source.kind, kinds, threads=threads, pieces=each, aligned=aligned, cover=cover)
    return _launch("whole", kernel, (height, 1), source, outputs, scales, shape, "a row is one block")


def _tile(
    source: MatrixSide, outputs: Sequence[MatrixSide], scales: Sequence[_Scales | None], shape: tuple[int, int]
) -> ScaledLaunch:
    sides = _sides(outputs, scales, shape, source.by_columns)
    kinds = [_output_kind(one, scale, source.by_columns, 16) for one, scale in zip(outputs, scales, strict=True)]
    grid = (-(-max(sides[0]) // TILE), -(-max(sides[1]) // TILE))
    cover = _cover(PIECE, (grid[0] * TILE, grid[1] * TILE), sides, outputs)
    # An output is stored in units of 16 bytes.
    ends = cover.ends or any(one.along * KIND_BITS[one.kind] % 128 for one in outputs)
    aligned = _aligned(source, min(16, KIND_BITS[source.kind]))
    kernel = scaled_tile(source.kind, kinds, aligned=aligned, cover=replace(cover, ends=ends))
    why = "an output is transposed, or its blocks have several rows"
    return _launch("tile", kernel, grid, source, outputs, scales, shape, why)


def _dequantised(
    source: MatrixSide,
    form: Format,
    outputs: Sequence[MatrixSide],
    shape: tuple[int, int],
    turned: bool,
    index: RowIndex,
) -> ScaledLaunch:
    if len(outputs) == 1 and outputs[0].format is not None:
        return _kept(source, outputs[0], form, shape, turned, index)
    if turned or any(o.format is not None for o in outputs):
        raise refused(
            "a dequantised source that is transposed, or quantised again, in one pass",
            "a destination stored in the order of the data (pass its .T for transposed data), or two copies",
        )
    if index.into:
        raise refused("dequantised rows scattered by an index", "rows= of the source, or two copies")
    scales = scales_of(form, source.shape, source.by_columns, source.scale_alignment)
    if scales.block[1] not in (0, 1) and scales.block[1] % PIECE:
        raise refused(f"blocks of {scales.block[1]} columns", f"multiples of {PIECE}, 1, or whole rows")
    into = replace(_output_kind(source, scales, source.by_columns, 16), levels=1 + (source.total is not None))
    return _rows(source, outputs, [None] * len(outputs), shape, index, into)


def _kept(
    source: MatrixSide, output: MatrixSide, form: Format, shape: tuple[int, int], turned: bool, index: RowIndex
) -> ScaledLaunch:
    """A plan that keeps elements and scales, but changes the order of the scales, or selects rows by an index."""
    other = output.format or form
    if not same_bytes(form, other):
        raise refused(
            "conversion of one format to another in one pass",
            "two copies: dequantise, then quantise",
            source=form,
            to=other,
        )
    first = scales_of(form, source.shape, source.by_columns, source.scale_alignment)
    second = scales_of(other, output.shape, source.by_columns, output.scale_alignment)
    if turned or first.block[0] != 1 or first.block[1] not in WIDTHS:
        raise refused(
            f"a change of the order of scales for {'transposed ' if form.transposed else ''}blocks of {form.block}",
            "blocks of 16, 32, 64 or 128 along a row",
        )
    into = replace(_output_kind(source, first, source.by_columns, 16), rule="none")
    return _rows(source, [output], [second], shape, index, into)


def kind_of(dtype: Any) -> str:
    """The kind of an element type.

    Raises:
        InvalidValueError: the device does not convert the type.
    """
    row = number(dtype)
    if row.name not in KINDS or row.bits == 6:
        known = ", ".join(name for name in KINDS if name not in ("raw", "e2m3", "e3m2"))
        raise refused(f"elements of type {row.name}", f"casts between {known}; other types on the host")
    return row.name
