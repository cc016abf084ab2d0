"""Properties of a layout as a function (one-to-one, onto, a permutation), and the cost of accesses through it.

To decide whether a layout is one-to-one, sort its modes by stride. A mode whose stride is larger than the reach (the
largest offset) of all smaller modes together can't collide with them, and can be removed. So can a mode whose offsets
are all below the gcd of all larger strides. Two modes s0:d0 and s1:d1 collide exactly if d1/g < s0 and d0/g < s1, where
g = gcd(d0, d1). Only the offsets of modes that remain after these rules are counted with arrays; everything else takes
time proportional to the rank.

    cycles((2,2):(2,1))      [[0], [1, 2], [3]]       0 -> 0, 1 -> 2 -> 1, 3 -> 3
    contiguity((4,8):(1,8))  4                        the first four elements are adjacent

If the lowest offset of a layout is not 0, its permutation counts the offsets from the lowest one.

For the cost of an access, a layout maps (thread) or (thread, value) to the element that the thread accesses. If you
pass the layout of a tile, also pass `access`, which specifies the thread that accesses each element. Shared memory has
32 banks of 4 bytes. One phase of an access serves 32 threads with 4 bytes each, 16 threads with 8 bytes or 8 threads
with 16 bytes, so a 64-bit access of a warp takes 2 phases, and a 128-bit access takes 4. Within a phase, a bank
delivers different words one after another, and broadcasts one word to all threads that read it. Global memory is
accessed in sectors of 32 bytes; four sectors are a line of 128 bytes.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, pairwise
from math import prod
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from cute_py.argument_checks import expect_choice, expect_integer, record, wrong_type
from cute_py.dtypes import DTypeLike
from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError
from cute_py.layout.arguments import LayoutLike, Tree
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import size as size_of
from cute_py.layout.layout import Layout, make
from cute_py.layout.offset_table import MOST_LISTED, flat_offsets, offset_table, sizes_by_mode
from cute_py.layout.offsets import Offsets, domain_size, has_module_strides, integer_axes, offset_bounds, offsets
from cute_py.layout.recast import bits_of, memory_layout
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves
from cute_py.targets import BANK_BYTES, BANKS, LINE_BYTES, SECTOR_BYTES, WARP, BankConflicts, Coalescing

if TYPE_CHECKING:
    import numpy as np
else:
    from cute_py.optional_packages import numpy as np

MAX_COUNTED = 1 << 26
"""Largest number of elements that are counted when the strides of a layout do not decide the answer."""

Mode = tuple[int, int]
"""(size, |stride|), in elements."""


@record
class Footprint:
    """The offsets that a layout reaches, in elements: `lowest` and `highest` (inclusive), and the number of distinct
    offsets.

    >>> import cute_py as cute
    >>> cute.footprint(cute.parse("(4,3):(1,8)"))
    Footprint(lowest=0, highest=19, distinct=12)
    """

    lowest: int
    highest: int
    distinct: int

    @property
    def span(self) -> int:
        """The number of offsets from the lowest to the highest, both included."""
        return self.highest - self.lowest + 1 if self.distinct else 0

    @property
    def holes(self) -> int:
        """The number of offsets in the span that the layout does not reach.

        >>> footprint(Layout((4, 2), (2, 16))).holes
        15
        """
        return self.span - self.distinct


def overlapping_modes(modes: list[Mode]) -> list[Mode]:
    """Return the modes whose offsets may collide, or none if the layout is one-to-one. Strides must be positive, sizes
    above 1.

    >>> overlapping_modes([(4, 1), (8, 4)]), overlapping_modes([(3, 2), (2, 3)])
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


def _counted(layout: LayoutLike, size: int) -> Offsets:
    """Return all offsets as an array; if they are coordinates, with one row per offset."""
    if size > MAX_COUNTED:
        raise LayoutError(
            f"the strides of this layout don't decide the answer, and it has {size} elements; at most "
            f"{MAX_COUNTED} elements are counted",
            {"layout": layout},
        )
    table = offsets(layout)
    return table.reshape(size, -1) if size else table.reshape(0, 1)


def _count(layout: LayoutLike, size: int) -> int:
    """Return the number of distinct offsets."""
    return len(set(offset_table(layout))) if size <= MOST_LISTED else _distinct(_counted(layout, size))


def _distinct(table: Offsets) -> int:
    if table.shape[1] > 1 or not len(table):
        return len(np.unique(table, axis=0))
    column = table[:, 0]
    low, span = column.min(), int(column.max()) - int(column.min()) + 1
    if span > 16 * len(column):
        return len(np.unique(column))
    seen = np.zeros(span, bool)  # a bit map avoids sorting if the offsets lie close together
    seen[column - low] = True
    return int(seen.sum())


def _one_to_one(layout: Layout) -> bool:
    axes = integer_axes(layout)
    sizes = leaves(axes[0][0])
    if prod(sizes) <= 1:
        return True
    steps = [leaves(stride) for _, stride in axes]
    if any(s > 1 and not any(column) for s, *column in zip(sizes, *steps, strict=True)):
        return False
    for axis in steps:
        rest = overlapping_modes([(s, abs(d)) for s, d in zip(sizes, axis, strict=True) if d and s > 1])
        for (s0, d0), (s1, d1) in combinations(rest, 2):
            g = math.gcd(d0, d1)
            if d1 // g < s0 and d0 // g < s1:
                return False
        if len(rest) > 2:
            flat = make(tuple([s for s, _ in rest]), tuple([d for _, d in rest]))
            count = domain_size(flat)
            if _count(flat, count) != count:
                return False
    return True


def is_injective(layout: LayoutLike) -> bool:
    """Return whether each coordinate of the domain has a different offset.

    Args:
        layout: a Layout (with integer or basis strides) or a ComposedLayout, with known numbers.

    >>> is_injective(Layout((4, 8), (8, 1))), is_injective(Layout((4, 8), (1, 3)))
    (True, False)
    """
    if isinstance(layout, Layout):
        return _one_to_one(layout)
    if not isinstance(layout, ComposedLayout):
        raise wrong_type("expected a layout", layout)
    if isinstance(layout.inner, Layout) and not _one_to_one(layout.inner):
        return False
    if isinstance(layout.outer, Swizzle):
        return is_injective(layout.inner)
    size = domain_size(layout)
    return _count(layout, size) == size


def is_bijective(layout: LayoutLike) -> bool:
    """Return whether the layout is one-to-one onto 0 .. size-1 (for basis strides: onto the box of its codomain).

    >>> is_bijective(Layout((4, 8), (8, 1))), is_bijective(Layout((4, 8), (16, 2)))
    (True, False)
    """
    if not is_injective(layout):
        return False
    if isinstance(layout, Layout):
        box = 1
        for axis in integer_axes(layout):
            low, high = offset_bounds(*axis)
            if low < 0:
                return False
            box *= high + 1
        return domain_size(layout) in (box, 0)
    size = domain_size(layout)
    if size <= MOST_LISTED:
        low, high = _ends(offset_table(layout))
    else:
        table = _counted(layout, size)
        low, high = int(np.min(table)), int(np.max(table))
    return size == 0 or (low == 0 and high == size - 1)


def _ends(values: list[Any]) -> tuple[int, int]:
    """Return the lowest and highest number in a list of offsets or coordinates."""
    flat = [n for value in values for n in (value if isinstance(value, tuple) else (value,))]
    return min(flat, default=0), max(flat, default=-1)


def overlaps(a: LayoutLike, b: LayoutLike | None = None, shift: int = 0) -> bool:
    """Return whether two coordinates of one layout have the same offset. With two layouts, return whether an offset of
    `a` equals an offset of `b` plus `shift`.

    Args:
        a, b: layouts with known numbers. A layout overlaps itself exactly if it is not injective.
        shift: the number that is added to the offsets of b, in elements.

    >>> overlaps(Layout((4, 2), (1, 3))), overlaps(Layout(4), Layout(4), shift=4)
    (True, False)
    """
    shift = expect_integer(shift, "shift", unit="elements")
    if b is None:
        return not is_injective(a)
    axes = [integer_axes(t) if isinstance(t, Layout) else [] for t in (a, b)]
    if len(axes[0]) == len(axes[1]) == 1:
        (sx, dx), (sy, dy) = axes[0][0], axes[1][0]
        if not domain_size(a) or not domain_size(b):
            return False
        (low_x, high_x), (low_y, high_y) = offset_bounds(sx, dx), offset_bounds(sy, dy)
        if high_x < low_y + shift or high_y + shift < low_x:
            return False
        steps = [d for t, u in ((sx, dx), (sy, dy)) for s, d in zip(leaves(t), leaves(u), strict=True) if s > 1]
        if shift % math.gcd(*steps, 0) if any(steps) else shift:
            return False
    if abs(shift) >= 2**62:
        raise InvalidValueError.of_value(
            "shift", shift, "be less than 2**62 in magnitude", "elements", {"first": a, "second": b}
        )
    if not domain_size(a) or not domain_size(b):
        return False
    if max(domain_size(a), domain_size(b)) <= MOST_LISTED:
        return _share_offset(a, b, shift)
    tables = [np.unique(_counted(t, domain_size(t)), axis=0) for t in (a, b)]
    if tables[0].shape[1] != tables[1].shape[1]:
        raise InvalidTypeError(
            "these layouts have different codomains, so their offsets can't overlap", {"first": a, "second": b}
        )
    both = np.concatenate([tables[0], tables[1] + shift])
    return len(np.unique(both, axis=0)) < len(both)


def _share_offset(a: LayoutLike, b: LayoutLike, shift: int) -> bool:
    """Decide `overlaps` for two small layouts by listing their offsets."""
    sets = [{x if isinstance(x, tuple) else (x,) for x in offset_table(t)} for t in (a, b)]
    if len({len(next(iter(s))) for s in sets}) > 1:
        raise InvalidTypeError(
            "these layouts have different codomains, so their offsets can't overlap", {"first": a, "second": b}
        )
    return not sets[0].isdisjoint(tuple(n + shift for n in x) for x in sets[1])


def _one_axis(layout: Layout, what: str) -> tuple[Tree, Tree]:
    """Return the shape and the integer strides of a layout; refuse one whose offsets are coordinates."""
    axes = integer_axes(layout)
    if len(axes) != 1:
        raise InvalidTypeError(
            f"{what} needs integer strides", {"layout": layout}, "select one axis of the codomain first"
        )
    return axes[0]


def _check_countable(layout: LayoutLike) -> None:
    size = domain_size(layout)
    if size > MAX_COUNTED:
        raise LayoutError(f"the layout has {size} elements; at most {MAX_COUNTED} are counted", {"layout": layout})


def footprint(layout: LayoutLike) -> Footprint:
    """Return the lowest and highest offset of a layout, and the number of distinct offsets.

    >>> footprint(Layout((4, 8), (0, 2)))
    Footprint(lowest=0, highest=14, distinct=8)
    """
    if isinstance(layout, Layout):
        shape, stride = _one_axis(layout, "a footprint")
        if not domain_size(layout):
            return Footprint(0, -1, 0)
        low, high = offset_bounds(shape, stride)
        moving = [(s, d) for s, d in zip(leaves(shape), leaves(stride), strict=True) if d and s > 1]
        core = make(tuple([s for s, _ in moving]), tuple([d for _, d in moving]))
        size = domain_size(core)
        return Footprint(low, high, size if _one_to_one(core) else _count(core, size))
    whole = _whole_periods(memory_layout(layout))
    if whole is not None:
        return whole
    _check_countable(layout)
    if domain_size(layout) <= MOST_LISTED:
        values = offset_table(layout)
        return Footprint(*_ends(values), len(set(values)))
    table = offsets(layout)
    if not table.size:
        return Footprint(0, -1, 0)
    return Footprint(int(table.min()), int(table.max()), _distinct(table.reshape(-1, 1)))


def _whole_periods(layout: LayoutLike) -> Footprint | None:
    """Return the footprint of a swizzled block without gaps that its swizzle permutes; None for any other layout."""
    if not isinstance(layout, ComposedLayout) or not isinstance(layout.outer, Swizzle):
        return None
    inner, start = layout.inner, layout.offset
    if not isinstance(inner, Layout) or start != 0 or len(integer_axes(inner)) != 1:
        return None
    reached = footprint(inner)
    period = 1 << (layout.outer.yyy_mask | layout.outer.zzz_mask).bit_length()
    return reached if reached.lowest == 0 and not reached.holes and reached.span % period == 0 else None


def is_surjective(layout: LayoutLike, codomain: int | None = None) -> bool:
    """Return whether every offset from the lowest to the highest is reached; with `codomain`, exactly 0 .. codomain-1.

    >>> is_surjective(parse("4:1")), is_surjective(parse("4:2")), is_surjective(parse("4:1"), 8)
    (True, False, False)
    """
    reached = footprint(layout)
    if codomain is None:
        return reached.distinct == reached.span
    count = expect_integer(codomain, "the size of the codomain", 0)
    if count == 0:
        return reached.distinct == 0
    return reached.lowest == 0 and reached.highest == count - 1 and reached.distinct == count


def is_contiguous(layout: LayoutLike) -> bool:
    """Return whether the layout reaches every offset from its lowest to its highest exactly once.

    >>> is_contiguous(parse("(2,2):(2,1)")), is_contiguous(parse("(4,2):(0,1)")), is_contiguous(parse("4:2"))
    (True, False, False)
    """
    return is_surjective(layout) and is_injective(layout)


def contiguity(layout: LayoutLike) -> int:
    """Return how many elements at the start have consecutive offsets: the widest vector access, in elements.

    A mode continues the run of the modes before it if its stride is the product of their sizes. For a composed layout,
    the function compares the offsets up to the first gap.

    Raises:
        InvalidTypeError: the layout has basis strides. LayoutError: a composed layout has more than 2**26 consecutive
            offsets.

    >>> contiguity(parse("(4,8):(1,8)")), contiguity(parse("(4,8):(8,1)")), contiguity(parse("(4,8):(1,4)"))
    (4, 1, 32)
    """
    total, layout = domain_size(layout), memory_layout(layout, "memory")
    if isinstance(layout, Layout) and not has_module_strides(layout):
        follow = 1
        for extent, step in zip(*map(leaves, _one_axis(layout, "contiguity")), strict=True):
            if extent > 1 and step != follow:
                break
            follow *= extent
        return follow if total else 0
    if total <= MOST_LISTED:
        values = offset_table(layout)
        if values and isinstance(values[0], tuple):
            raise InvalidTypeError("contiguity needs integer strides", {"layout": layout})
        return next((i + 1 for i, (x, y) in enumerate(pairwise(values)) if y != x + 1), total)
    begin, width = 0, 64  # most end early: few elements first
    while begin < total - 1:
        if begin >= MAX_COUNTED:
            raise LayoutError(
                f"the first {begin} offsets are contiguous; at most {MAX_COUNTED} are compared", {"layout": layout}
            )
        table = offsets(layout, np.arange(begin, min(begin + width, total)))
        if table.ndim != 1:
            raise InvalidTypeError("contiguity needs integer strides", {"layout": layout})
        steps = np.flatnonzero(np.diff(table) != 1)
        if len(steps):
            return begin + int(steps[0]) + 1
        begin, width = begin + len(table) - 1, min(2 * width, 1 << 20)  # the last one again, as the next one's first
    return total


def cycles(layout: LayoutLike) -> list[list[int]]:
    """Return the cycles of a layout, as a permutation of its indices. Fixed points are cycles of length 1.

    Raises:
        LayoutError: the offsets have gaps, or two indices have the same offset.

    >>> cycles(parse("(2,2):(2,1)"))
    [[0], [1, 2], [3]]
    """
    if not is_contiguous(layout):
        facts = {"layout": layout, "elements": size_of(layout), "reached": footprint(layout)}
        raise LayoutError("the layout has gaps or repeated offsets, so it is not a permutation", facts)
    _check_countable(layout)
    table = flat_offsets(layout)
    lowest = min(table, default=0)
    targets = [offset - lowest for offset in table]
    seen = [False] * len(targets)
    found = []
    for start in range(len(targets)):
        cycle = []
        current = start
        while not seen[current]:
            seen[current] = True
            cycle.append(current)
            current = targets[current]
        if cycle:
            found.append(cycle)
    return found


def order(layout: LayoutLike) -> int:
    """Return the order of a layout as a permutation: the least common multiple of its cycle lengths.

    >>> order(parse("(2,2):(2,1)")), order(parse("(2,4):(4,1)")), order(parse("8:1"))
    (2, 3, 1)
    """
    return math.lcm(*(len(c) for c in cycles(layout)))


MAX_BITS = 1 << 16
"""Largest accepted width of one element in bits, far more than any box can hold."""
MAX_ACCESSES = 1 << 20
"""Largest number of elements of one access. 1024 threads stay below it, even if each has more values than its registers
hold."""
VECTOR_BITS = (128, 64, 32, 16)
"""Widths of one thread's access in bits, widest first."""


_ACCESSES = ("row", "column", "ldmatrix")


@runtime_checkable
class TiledAccess(Protocol):
    """An object that divides a source among threads, such as a tiled copy."""

    def tidfrg_S(self, layout: LayoutLike, /) -> LayoutLike: ...


Access: TypeAlias = str | LayoutLike | TiledAccess | None
"""The map of threads to the elements of a tile that they touch; see `accessed`."""


Rows: TypeAlias = list[list[int]]
"""A row for each thread: the offsets of its values."""


def _rows_of(values: list[Any], threads: int) -> Rows:
    """Arrange offsets in colexicographic order as one row of values for each thread."""
    return [values[thread::threads] for thread in range(threads)]


def accessed(layout: LayoutLike, access: Access, bits: int, vector_bits: int | None = None) -> Rows:
    """Return the offsets that each thread accesses in a tile, one row for each thread.

    Args:
        layout: (row, column) -> offset in elements.
        access: a TiledCopy, whose source side is used; a layout (thread, value) -> index of an element in the tile,
            first mode fastest; 'row' or 'column': consecutive threads access consecutive elements along the rows or
            columns, until the tile is covered; or 'ldmatrix': each thread gives the address of 16 bytes, and eight
            threads address an 8x8 matrix of 16-bit elements.
        bits: width of an element in bits.
        vector_bits: width of one thread's access along a row or column, in bits; default: the widest contiguous access.

    >>> accessed(Layout((2, 2), (2, 1)), "column", 32)
    [[0], [2], [1], [3]]
    """
    if access is None:
        return _of_threads(layout, flat_offsets(layout))
    if isinstance(access, TiledAccess):
        divided = access.tidfrg_S(layout)
        return _rows_of(flat_offsets(divided), sizes_by_mode(divided)[0])
    flat = flat_offsets(layout)
    if not isinstance(access, str):
        places = flat_offsets(access)
        if min(places) < 0 or max(places) >= len(flat):
            facts = {"access": access, "elements of the tile": len(flat)}
            raise InvalidValueError("the thread-value layout addresses elements outside the tile", facts)
        return _of_threads(access, [flat[place] for place in places])
    expect_choice(access, _ACCESSES, "access")
    sizes = sizes_by_mode(layout)
    if len(sizes) != 2:
        raise InvalidTypeError(f"the tile has {len(sizes)} modes; must have 2, rows and columns", {"layout": layout})
    grid = _rows_of(flat, sizes[0])
    if access == "ldmatrix":
        return _matrix_rows(grid, bits, layout)
    if access == "row":
        flat = [offset for row in grid for offset in row]
    for width in VECTOR_BITS if vector_bits is None else (vector_bits,):
        each = width // bits
        if width % bits == 0 and len(flat) % each == 0:
            aligned = all(offset * bits % width == 0 for offset in flat[::each])
            if vector_bits is None and not (aligned and (each == 1 or _in_runs(flat, each))):
                continue
            return [flat[i : i + each] for i in range(0, len(flat), each)]
    return [[offset] for offset in flat]


def _follow(values: list[int]) -> bool:
    """Whether each offset is one more than the offset before it."""
    return all(y == x + 1 for x, y in pairwise(values))


def _in_runs(values: list[int], each: int) -> bool:
    """Whether the offsets are consecutive within each group of `each` offsets."""
    return all(_follow(values[i : i + each]) for i in range(0, len(values), each))


def _of_threads(layout: LayoutLike, values: list[Any]) -> Rows:
    """Return the offsets of a layout of (thread) or (thread, value), one row for each thread."""
    sizes = sizes_by_mode(layout)
    rank = len(sizes) + (bool(values) and isinstance(values[0], tuple))
    if not 1 <= rank <= 2 or rank > len(sizes):
        text = f"the layout of a warp access has {rank} modes; must be (thread) or (thread, value)"
        raise InvalidTypeError(text, {"layout": layout})
    return _rows_of(values, sizes[0])


def _matrix_rows(grid: Rows, bits: int, layout: LayoutLike) -> Rows:
    """Return the rows (the columns, if those are contiguous) of 16 bytes that ldmatrix reads, matrix by matrix."""
    per_row = max(128 // bits, 1)
    if not all(_follow(row[:per_row]) for row in grid):
        grid = [list(column) for column in zip(*grid, strict=True)]
    rows, columns = len(grid), len(grid[0]) if grid else 0
    if rows % 8 or columns % per_row or 128 % bits:
        raise InvalidValueError(
            "ldmatrix can't read this tile; the tile needs rows and columns that form blocks "
            f"of 8 rows of {per_row} contiguous elements",
            {"layout": layout},
        )
    return [row[i : i + per_row] for i in range(0, columns, per_row) for row in grid]


def _element_offsets(layout: LayoutLike, base: int, bits: int, access: Access, vector_bits: int | None) -> Rows:
    """Return a row of element offsets for each thread. Bit addresses, counted from byte `base`, must fit in 64 bits."""
    expect_integer(bits, "the width of an element", 1, MAX_BITS, "bits")
    expect_integer(domain_size(layout), "a warp access", high=MAX_ACCESSES, unit="elements")
    table = accessed(layout, access, bits, vector_bits)
    if not table or not table[0]:
        raise InvalidValueError("a warp access needs at least one thread and one value", {"layout": layout})
    reach = max(max(map(abs, row)) for row in table) * bits + abs(base) * 8
    if reach >= 2**62:
        raise InvalidValueError(
            f"the access reaches bit address {reach}; must be less than 2**62 in magnitude", {"base": base}
        )
    return table


def bank_conflicts(
    layout: LayoutLike,
    dtype: DTypeLike | int,
    *,
    access: Access | None = None,
    vector_bits: int | None = None,
    base: int = 0,
) -> BankConflicts:
    """Count the shared-memory bank conflicts of one access. More than 32 threads are counted warp by warp.

    Args:
        layout: (thread) or (thread, value) -> offset in elements; plain or swizzled. With `access`, the layout of a
            tile.
        access: which thread accesses which element of the tile: a TiledCopy, a thread-value layout, 'row', 'column' or
            'ldmatrix'; see `accessed`.
        dtype: element type, or its width in bits (8 or more).
        vector_bits: width of one thread's access in bits: 8, 16, 32, 64 or 128. Default: the widest that the values
            fill, at most 128. If a thread has more values than fit in one access, it makes several accesses, and their
            phases are listed in order.
        base: byte address of offset 0.
    Raises:
        LayoutError: the elements of one access are not contiguous, or not aligned to its width.
    Source:
        CUDA C++ Programming Guide, shared memory of compute capability 5.x and newer (32 banks of 32 bits); profilers
        report the phases of 64- and 128-bit accesses as wavefronts.

    >>> bank_conflicts(Layout(32, 32), "float32").ways          # a column of a 32x32 tile
    32
    >>> bank_conflicts(Layout((8, 8), (64, 1)), "float16").wavefronts
    (8,)
    >>> bank_conflicts(composition(Swizzle(3, 3, 3), Layout((8, 8), (64, 1))), "float16").wavefronts
    (1,)
    >>> bank_conflicts(Layout((8, 64), (64, 1)), "float16", access="ldmatrix").ways
    8
    """
    bits = bits_of(dtype)
    if vector_bits is not None:
        vector_bits = expect_integer(vector_bits, "vector_bits")
    atom: Any = getattr(access, "atom", None)
    if vector_bits is None and atom is not None:
        vector_bits = next((w for w in (*VECTOR_BITS, 8) if atom.num_val_src * bits % w == 0), None)
    base = expect_integer(base, "base", unit="bytes")
    table = _element_offsets(layout, base, bits, access, vector_bits)
    if bits % 8:
        raise InvalidValueError(
            f"an element has {bits} bits; bank conflicts are counted only for elements of whole bytes"
        )
    threads, values = len(table), len(table[0])
    width = vector_bits
    if width is None:
        width = next((w for w in VECTOR_BITS if values * bits % w == 0 and w % bits == 0), bits)
    if width not in (8, 16, 32, 64, 128) or width % bits or values * bits % width:
        raise InvalidValueError(
            f"accesses of {width} bits can't cover the {values} elements of {bits} bits of a thread exactly"
        )
    each, size = width // bits, width // 8
    if each > 1 and not all(_in_runs(row, each) for row in table):
        raise LayoutError(
            "the elements of one access are not contiguous", {"layout": layout, "access": f"{width} bits"}
        )
    first = [[base + offset * (bits // 8) for offset in row[::each]] for row in table]
    if any(start % size for row in first for start in row):
        raise LayoutError(
            f"the access of {size} bytes does not start at a multiple of {size} bytes", {"layout": layout, "base": base}
        )
    together = WARP * BANK_BYTES // max(size, BANK_BYTES)
    rounds = []
    for i in range(len(first[0])):
        for begin in range(0, threads, together):
            starts = [row[i] for row in first[begin : begin + together]]
            slots = {byte // BANK_BYTES for start in starts for byte in range(start, start + size, BANK_BYTES)}
            rounds.append(max(Counter(slot % BANKS for slot in slots).values()))
    return BankConflicts(width, tuple(rounds))


def coalescing(
    layout: LayoutLike,
    dtype: DTypeLike | int,
    *,
    access: Access | None = None,
    vector_bits: int | None = None,
    base: int = 0,
) -> Coalescing:
    """Count the sectors and lines of global memory that an access touches; for several warps, return the sum.

    Args:
        layout: (thread) or (thread, value) -> offset in elements. With `access`, the layout of a tile.
        access: which thread accesses which element of the tile: a TiledCopy, a thread-value layout, 'row' or 'column';
            see `accessed`.
        vector_bits: width of one thread's access along a row or column, in bits; default: the widest contiguous access.
        dtype: element type, or its width in bits.
        base: byte address of offset 0.

    >>> coalescing(Layout(32), "float32")
    Coalescing(sectors=4, lines=1, bytes_requested=128)
    >>> coalescing(Layout(32, 64), "float16").sectors
    32
    """
    bits = bits_of(dtype)
    base = expect_integer(base, "base", unit="bytes")
    table = _element_offsets(layout, base, bits, access, vector_bits)
    warps = [{e for row in table[i : i + WARP] for e in row} for i in range(0, len(table), WARP)]
    counts = [_touched(elements, bits, base) for elements in warps]
    return Coalescing(*map(sum, zip(*counts, strict=True)))


def _touched(elements: set[int], bits: int, base: int) -> tuple[int, int, int]:
    """Return the numbers of sectors, lines and bytes that the elements of one request occupy."""
    spans = [((base * 8 + e * bits) // 8, (base * 8 + e * bits + bits - 1) // 8) for e in elements]
    sectors, lines = (
        {n for first, last in spans for n in range(first // unit, last // unit + 1)}
        for unit in (SECTOR_BYTES, LINE_BYTES)
    )
    if bits % 8 == 0:
        return len(sectors), len(lines), len(elements) * bits // 8
    return len(sectors), len(lines), len({byte for span in spans for byte in span})
