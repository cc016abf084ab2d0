"""Pictures of the threads that hold each element: tiles with thread and value, MMAs, copies, ldmatrix.

In all pictures, a thread-value layout maps (thread, value) to an element. The element is given by its index in the
tile, first mode fastest, as in the layouts of `get_layoutC_TV()` and `make_layout_tv`, or by its coordinate (m, n), as
in C++'s print_latex_tv. T3 over V1 is value 1 of thread 3. Each thread has its own colour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Final, TypeAlias, get_args

from cute_py.argument_checks import expect, expect_choice, expect_integer, expect_integers
from cute_py.arith_tuple.cells import known_integer
from cute_py.atom.copy_atom import CopyAtom
from cute_py.atom.mma_atom import MmaAtom
from cute_py.atom.mma_atoms import mma_atom
from cute_py.atom.tiled_copy import Side, TiledCopy
from cute_py.atom.tiled_mma import Operand, TiledMma, make_tiled_mma
from cute_py.draw.element_path import tuple_text
from cute_py.draw.layouts import Sizes, equals, expect_element_bits, plain, plane_of
from cute_py.draw.picture import Picture
from cute_py.draw.shared_memory import UNIT, UNITS, line_grid, passes
from cute_py.draw.table import (
    GAP,
    TONES,
    Bracket,
    BracketRow,
    Cell,
    Legend,
    Table,
    axis_limit,
    cut_note,
    grid,
    hatch_legend,
    shown,
    tone_legend,
)
from cute_py.draw.tones import DISTINCT
from cute_py.errors import InvalidTypeError, InvalidValueError, counted, given
from cute_py.layout import Layout, cosize, product_each, size, static
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import coprofile, domain_of
from cute_py.layout.recast import as_position_independent_swizzle_layout
from cute_py.layout.trees import modes
from cute_py.targets import BANK_BYTES, BANKS, LINE_BYTES
from cute_py.tensor import make_identity_tensor
from cute_py.tensor.latex import element_cell
from cute_py.tensor.tensor import Tensor

Holders: TypeAlias = Mapping[tuple[int, int], Sequence[tuple[int, int]]]
"""Element (row, column) -> the (thread, value) pairs that hold it."""

MOST_PAIRS: Final = 1 << 20
"""Maximum number of (thread, value) pairs to examine."""
NAMED: Final = 4
"""Maximum number of pairs that a cell names; the cell counts the others."""
LANES: Final = 32
ROW_BITS: Final = 128
"""Bits in a row of an atom's picture: 16 bytes, the maximum that one thread moves."""
ROW_OF_BITS: Final = 32
"""Bits in a row of the picture of an atom that counts in bits."""


def _legends(threads: int, cells: Iterable[Cell | None]) -> tuple[Legend, ...]:
    """Legends of the colours, the hatch and the `+n` texts that occur in the cells."""
    colours = Legend("a colour for each thread" if threads <= DISTINCT else f"colour: thread modulo {DISTINCT}")
    shared = any(cell is not None and " +" in cell.text for cell in cells)
    more = (Legend("+1: one more thread or value holds the element", in_text=True),) if shared else ()
    return (tone_legend("colour: thread") if threads <= TONES else colours, hatch_legend("belongs to no thread"), *more)


def draw_tv(layout: Layout | Tensor, tile: Sizes) -> Picture:
    """Draw a tile with the thread and the value index in each element: T3 over V1 is value 1 of thread 3.

    Args:
        layout: a layout or tensor that maps (thread, value) to the index in the tile, first mode fastest, like the
            layouts of `make_layout_tv` and `get_layoutC_TV`, or to the coordinate (m, n).
        tile: shape of the tile, one or two modes.
    Raises:
        InvalidTypeError: the argument is not a layout, or its values are neither indices nor coordinates;
            InvalidValueError: the layout does not have two modes, the tile has more than two, or an element is beyond
            the tile.

    An element that no thread holds is hatched. An element with several (thread, value) pairs shows the first pair and
    the number of other pairs.

    >>> from cute_py.layout.leaf import Int
    >>> from cute_py.tensor.partition import make_layout_tv
    >>> tile, tv = make_layout_tv(Layout((Int(2), Int(2)), (Int(2), Int(1))), Layout((Int(1), Int(2))))
    >>> print(draw_tv(tv, tile))
    ((_2,_2),_2):((_4,_1),_2) on a tile of (2,4)
    <BLANKLINE>
      down: mode 0 of the tile; across: mode 1 of the tile
      |     0      1      2      3
    --+---------------------------
    0 | T0 V0  T0 V1  T1 V0  T1 V1
    1 | T2 V0  T2 V1  T3 V0  T3 V1
    """
    if not isinstance(layout, (Layout, Tensor)):
        raise InvalidTypeError(f"draw_tv takes a layout (thread, value) -> element, got {given(layout)}")
    if len(modes(domain_of(layout).shape)) != 2:
        raise InvalidValueError(f"{layout} has {len(modes(layout.shape))} modes; must be 2, threads and values")
    try:
        sizes = expect_integers(modes(product_each(tile)), "tile")
    except (InvalidTypeError, InvalidValueError):
        raise InvalidTypeError(f"tile = {given(tile)}; must be a shape of known sizes") from None
    if not 1 <= len(sizes) <= 2 or any(n < 1 for n in sizes):
        raise InvalidValueError(f"tile = {given(tile)}; must have one or two modes of size 1 or more")
    holders = _holders(layout, *_plane_sizes(sizes))
    table = _tv_table("", layout, holders, sizes)
    return Picture(f"{layout} on a tile of {tuple_text(sizes)}", (table,), _holder_notes(holders, prod(sizes)))


def _plane_sizes(tile: Sequence[int]) -> tuple[int, int]:
    """Rows and columns of a tile of one or two modes."""
    return (tile[0], tile[1]) if len(tile) == 2 else (1, tile[0])


def _tv_table(title: str, layout: Layout | Tensor, holders: Holders, tile: Sequence[int], tables: int = 1) -> Table:
    rows, columns = _plane_sizes(tile)
    limit = axis_limit(rows, columns, tables)
    down, across = shown(rows, limit), shown(columns, limit)
    path = _path_of(layout)
    table = grid(
        down,
        across,
        lambda i, j: _held(f"({i},{j})", holders.get((i, j), []), path),
        title=title,
        row_axis="mode 0 of the tile" if len(tile) == 2 else "",
        column_axis=f"mode {len(tile) - 1} of the tile",
        notes=cut_note(rows, columns, down, across),
    )
    return replace(table, legends=_legends(plane_of(layout).down.size, table.cells))


def _folded_table(title: str, layout: Layout, count: int, width: int) -> Table:
    """Table of a tile of one mode, folded to rows of `width` elements."""
    holders, path = _holders(layout, 1, count), _path_of(layout)
    rows = -(-count // width)
    down = shown(rows, axis_limit(rows, width, 2))

    def cell(i: int, j: int) -> Cell:
        at = i * width + j
        return _held(f"element {at}", holders.get((0, at), []), path) if at < count else _BLANK

    table = grid(
        down,
        range(min(width, count)),
        cell,
        lambda i: str(i * width),
        lambda j: f"+{j}",
        title=title,
        row_axis="first element of the row",
        column_axis="elements after it",
        notes=cut_note(rows, width, down, range(width)),
    )
    return replace(table, legends=_legends(plane_of(layout).down.size, table.cells))


def _path_of(layout: Layout | Tensor) -> Callable[[int, int], str]:
    """Return a function that shows how the element of a (thread, value) pair is computed."""
    plane = plane_of(layout)
    element = plane.value
    what = "its index in the tile" if coprofile(domain_of(layout)) == 0 else "its coordinate"
    return lambda thread, value: (
        f"layout -> {equals(plane.sum_of(thread, value), plain(element(thread, value)))}, {what}"
    )


def _holders(layout: Layout | Tensor, rows: int, columns: int, beyond: bool = False) -> Holders:
    """The (thread, value) pairs that hold each element; elements beyond the tile raise an error or are omitted."""
    plane = plane_of(layout)
    threads, values = plane.down, plane.across
    if max(threads.size, 1) * max(values.size, 1) > MOST_PAIRS:
        raise InvalidValueError(f"the layout has {threads.size} x {values.size} pairs; must have at most {MOST_PAIRS}")
    holders: dict[tuple[int, int], list[tuple[int, int]]] = {}
    of = plane.value
    for value in range(values.size):
        for thread in range(threads.size):
            row, column = element_cell(of(thread, value), thread, value, rows, layout)
            if 0 <= row < rows and 0 <= column < columns:
                holders.setdefault((row, column), []).append((thread, value))
            elif not beyond:
                element = plain(plane.value(thread, value))
                text = f"value {value} of thread {thread} is element {element}; the tile has {rows * columns}"
                raise InvalidValueError(text, {"layout": layout, "tile": f"({rows},{columns})"})
    return holders


def _held(name: str, pairs: Sequence[tuple[int, int]], path: Callable[[int, int], str]) -> Cell:
    """The cell of an element, with the pairs that hold it."""
    if not pairs:
        return Cell("", f"{name} belongs to no thread", None, (0.0, 1.0))
    thread, value = min(pairs)
    more = f" +{len(pairs) - 1}" if len(pairs) > 1 else ""
    all_of = ", ".join(f"thread {t} value {v}" for t, v in sorted(pairs)[:NAMED])
    rest = f" and {len(pairs) - NAMED} more" if len(pairs) > NAMED else ""
    return Cell(f"T{thread}\nV{value}{more}", f"{name} -> {all_of}{rest}; {path(thread, value)}", thread % DISTINCT)


def _holder_notes(holders: Holders, count: int) -> tuple[str, ...]:
    notes = []
    if len(holders) < count:
        notes.append(f"{count - len(holders)} of {count} elements belong to no thread")
    shared = sum(1 for pairs in holders.values() if len(pairs) > 1)
    if shared:
        notes.append(f"{shared} elements are held more than once: +n counts the further holders")
    return tuple(notes)


_ELSEWHERE: Final = {
    "smem_desc": "is read from shared memory through a descriptor: no thread holds it",
    "sparse_smem_desc": "is read from shared memory through a descriptor: no thread holds it",
    "tmem": "is in tensor memory: no thread holds it",
}
_BLANK: Final = Cell(blank=True)
_DRAWN: Final[tuple[Operand, ...]] = get_args(Operand)


def draw_mma(mma: TiledMma | MmaAtom | str, *, operand: Operand | None = None) -> Picture:
    """Draw A, B and C of an MMA: B above C, A to the left of C, with the thread and the value index in each element.

    Args:
        mma: a tiled MMA, an atom, or the name of an atom.
        operand: draw only 'A', 'B' or 'C'.
    Raises:
        InvalidTypeError: the argument is not an MMA. InvalidValueError: the operand does not exist.

    The shapes are A (M, K), B (N, K) and C (M, N); in the picture of B, K runs down. No thread holds an operand in
    shared or tensor memory, so its cells show coordinates.

    >>> lines = draw_mma("SM80_16x8x8_F32F16F16F32_TN").text.splitlines()
    >>> print(lines[0])
    SM80_16x8x8_F32F16F16F32_TN: 32 threads, 16 x 8 x 8
    """
    if isinstance(mma, (str, MmaAtom)):
        mma = make_tiled_mma(mma_atom(mma))
    if not isinstance(mma, TiledMma):
        raise InvalidTypeError(f"draw_mma takes a tiled MMA or an atom, got {type(mma).__name__} {given(mma)}")
    m, n, k = (int(extent) for extent in mma.tile_shape())
    sizes = {"A": (m, k), "B": (n, k), "C": (m, n)}
    title = f"{mma.atom.name}: {counted(int(mma.size()), 'thread')}, {m} x {n} x {k}"
    if operand is not None:
        expect_choice(operand, _DRAWN, "operand")
        return _operand_alone(mma, operand, *sizes[operand], title)
    cell = {x: _operand(mma, x, *sizes[x]) for x in _DRAWN}
    limits = (40, 40, 24) if (k + m) * (k + n) > 4096 else (64, 64, 64)
    tall, wide, deep = (shown(size, limit) for size, limit in zip((m, n, k), limits, strict=True))
    rows: list[tuple[Cell | None, ...]] = []
    for d in deep:
        left = (_BLANK,) * (len(deep) + 1)
        rows.append((*left, *(None if d is None or j is None else cell["B"](j, d) for j in wide)))
    rows.append((_BLANK,) * (len(deep) + 1 + len(wide)))
    for i in tall:
        own = (None if i is None or d is None else cell["A"](i, d) for d in deep)
        rows.append((*own, _BLANK, *(None if i is None or j is None else cell["C"](i, j) for j in wide)))

    start = len(deep) + 1
    first = Bracket(0, len(deep), f"A: K {k}", strong=True)
    across = (first, Bracket(start, start + len(wide), f"B, and C below: N {n}", strong=True))
    above = Bracket(0, len(deep), f"B: K {k}", strong=True)
    down = (above, Bracket(start, start + len(tall), f"A and C: M {m}", strong=True))
    table = Table(
        rows=tuple(rows),
        row_labels=(*_labels(deep), "", *_labels(tall)),
        column_labels=(*_labels(deep), "", *_labels(wide)),
        column_brackets=(BracketRow("", across),),
        row_brackets=(BracketRow("rows", down),),
        legends=_legends(int(mma.size()), (cell for row in rows for cell in row)),
        notes=cut_note(k + m, k + n, (*deep, *tall), (*deep, *wide)),
    )
    return Picture(title, (table,), tuple(filter(None, (_elsewhere(mma, x) for x in _DRAWN))))


def _labels(axis: Sequence[int | None]) -> tuple[str, ...]:
    return tuple(GAP if i is None else str(i) for i in axis)


def _elsewhere(mma: TiledMma, operand: Operand) -> str:
    """The note that names the memory of an operand that no thread holds."""
    where = _ELSEWHERE.get(mma.atom.fragment_type(operand).kind)
    return f"{operand} {where}" if where else ""


def _operand_alone(mma: TiledMma, operand: Operand, height: int, width: int, title: str) -> Picture:
    cell = _operand(mma, operand, height, width)
    tall, wide = shown(height, 64), shown(width, 64)
    rows = tuple(tuple(None if i is None or j is None else cell(i, j) for j in wide) for i in tall)
    down, across = ("M", "N") if operand == "C" else ("M" if operand == "A" else "N", "K")
    table = Table(
        rows=rows,
        row_labels=_labels(tall),
        column_labels=_labels(wide),
        column_brackets=(BracketRow("", (Bracket(0, len(wide), f"{operand}: {across} {width}", strong=True),)),),
        row_brackets=(BracketRow("rows", (Bracket(0, len(tall), f"{down} {height}", strong=True),)),),
        legends=_legends(int(mma.size()), (one for row in rows for one in row)),
        notes=cut_note(height, width, tall, wide),
    )
    return Picture(f"{operand} of {title}", (table,), tuple(filter(None, (_elsewhere(mma, operand),))))


def _operand(mma: TiledMma, operand: Operand, rows: int, columns: int) -> Callable[[int, int], Cell]:
    """Function that returns the cell of an operand at a row and a column."""
    if mma.atom.fragment_type(operand).kind != "value":
        return lambda i, j: Cell(f"{i},{j}", f"{operand}({i},{j})")
    layout = mma.get_layout_TV(operand)
    holders, path = _holders(layout, rows, columns, beyond=True), _path_of(layout)

    return lambda i, j: _held(f"{operand}({i},{j})", holders.get((i, j), []), path)


def draw_copy(copy: TiledCopy | CopyAtom) -> Picture:
    """Draw the source and the destination of a tiled copy side by side, with the thread and the value index in each
    element of the tile.

    Args:
        copy: a tiled copy whose tile has one or two modes, or a copy atom, which is drawn with 16 bytes per row.
    Raises:
        InvalidTypeError: the argument is not a copy; InvalidValueError: the tile has more than two modes.

    >>> from cute_py.atom.copy_atoms import copy_atom
    >>> print(draw_copy(copy_atom("UniversalCopy<uint32_t>", "half")).title)
    UniversalCopy<uint32_t> of float16: 1 thread
    """
    names = ("source", "destination")
    if isinstance(copy, CopyAtom):
        threads, atom, count = int(size(copy.thr_id)), copy, int(cosize(copy.layout_ref_TV))
        width = ROW_OF_BITS if copy.dtype is None else max(ROW_BITS // copy.dtype.bits, 1)
        sides = (copy.layout_src_TV, copy.layout_dst_TV)
        tables = [_folded_table(f"{x}: {side}", side, count, width) for x, side in zip(names, sides, strict=True)]
    elif isinstance(copy, TiledCopy):
        tile = expect_integers(modes(product_each(copy.tile_shape())), "the tile")
        if not 1 <= len(tile) <= 2:
            raise InvalidValueError(f"a picture shows tiles of one or two modes; this one has {len(tile)}")
        sides = (copy.get_layoutS_TV(), copy.get_layoutD_TV())
        threads, atom = int(copy.size()), copy.atom
        tables = [
            _tv_table(f"{name}: {side}", side, _holders(side, *_plane_sizes(tile)), tile, 2)
            for name, side in zip(names, sides, strict=True)
        ]
    else:
        raise InvalidTypeError(f"draw_copy takes a tiled copy or an atom, got {type(copy).__name__} {given(copy)}")
    kind = "bits" if atom.dtype is None else atom.dtype.name
    return Picture(f"{atom.name} of {kind}: {counted(threads, 'thread')}", tuple(tables))


def draw_ldmatrix(
    copy: TiledCopy, smem: Layout | ComposedLayout, *, bits: int | None = None, step: int = 0, warp: int = 0
) -> Picture:
    """Draw the addresses of ldmatrix or stmatrix: 16-byte units of shared memory with the lanes that address them.

    Args:
        copy: a tiled copy of ldmatrix or stmatrix, for example the result of `make_tiled_copy_A`.
        smem: the layout of the tile (M, K) in shared memory, with or without a swizzle; offsets in elements.
        bits: width of an element in bits; default: the width of the copy's element type.
        step: index of the warp's instruction; warp: index of the warp.
    Raises:
        InvalidTypeError: an argument is not such a copy or layout; InvalidValueError: the step or warp does not exist.

    Lanes of one colour address one 8 x 8 matrix. The matrix is read in one pass if its rows are in different banks; the
    notes list the passes of each matrix.

    >>> import cute_py as cute
    >>> mma = cute.make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")
    >>> copy = cute.make_tiled_copy_A(cute.copy_atom("SM75_U32x4_LDSM_N", "half_t"), mma)
    >>> print(draw_ldmatrix(copy, cute.parse("(_16,_16):(_16,_1)")).text.splitlines()[0])
    SM75_U32x4_LDSM_N reads (_16,_16):(_16,_1), step 0 of warp 0
    """
    expect(copy, TiledCopy, "the copy of draw_ldmatrix")
    if not isinstance(smem, (Layout, ComposedLayout)):
        raise InvalidTypeError(f"draw_ldmatrix takes a layout of shared memory, got {given(smem)}")
    stored = "LDSM" not in copy.atom.op
    if stored and "STSM" not in copy.atom.op:
        raise InvalidTypeError(f"{copy.atom.name} is not ldmatrix or stmatrix")
    width = expect_element_bits(copy.atom.bits if bits is None else bits)
    layout = as_position_independent_swizzle_layout(smem)
    lanes = _addresses(copy, layout, stored, step, warp)
    units: dict[int, list[int]] = {}
    for lane, offset in enumerate(lanes):
        units.setdefault(offset * width // 8 // UNIT, []).append(lane)
    lines = sorted({unit // UNITS for unit in units})

    def cell(line: int, unit: int) -> Cell:
        own = units.get(line * UNITS + unit, [])
        byte, bank = line * LINE_BYTES + unit * UNIT, unit * UNIT // BANK_BYTES % BANKS
        if not own:
            return Cell("", f"byte {byte}, bank {bank}: no lane addresses it")
        places = ", ".join(f"lane {lane}" for lane in own)
        title = f"{places}: byte {byte}, banks {bank}-{bank + 3}, matrix {own[0] // 8}"
        return Cell(",".join(f"L{lane}" for lane in own), title, own[0] // 8)

    matrices = sorted({lane // 8 for lane in range(len(lanes))})
    table = line_grid(
        lines,
        cell,
        "a line is 128 bytes; lines without an address are left out",
        legends=(tone_legend("colour: the 8 x 8 matrix", [f"lanes {8 * i}-{8 * i + 7}" for i in matrices]),),
    )
    notes = []
    for i in matrices:
        count = passes(offset * width // 8 // UNIT for offset in dict.fromkeys(lanes[8 * i : 8 * i + 8]))
        notes.append(f"matrix {i}: lanes {8 * i}-{8 * i + 7} in {counted(count, 'pass')}")
    verb = "stores to" if stored else "reads"
    return Picture(f"{copy.atom.name} {verb} {smem}, step {step} of warp {warp}", (table,), tuple(notes))


def _addresses(copy: TiledCopy, layout: Layout | ComposedLayout, stored: bool, step: int, warp: int) -> list[int]:
    """The offset, in elements, of the address that each lane provides."""
    side: Side = "D" if stored else "S"
    shape = product_each(layout.shape)
    coordinates = make_identity_tensor(static(shape))
    threads = int(copy.size())
    first = LANES * expect_integer(warp, "warp", 0, max(threads // LANES - 1, 0))
    given_by = 8 * copy.atom.traits.registers["S" if stored else "D"][0]
    values = copy.atom.num_val_dst if stored else copy.atom.num_val_src
    found = []
    for lane in range(min(given_by, LANES, threads)):
        part = copy.get_slice(first + lane).partition(side, coordinates)
        steps = int(size(part)) // values
        where = part(values * expect_integer(step, "step", 0, steps - 1))
        found.append(known_integer(layout(tuple(where.as_tuple())), "an offset"))
    return found
