"""`identify`: find the orders of scales that explain a buffer, given the scales as a plain grid.

    reference[m, kb]  ==  scales[order.index(m, kb)]        for every m and kb: the order explains the buffer

If the scales are random, only one order explains them, or several orders with the same indices for this size. If scales
repeat, other orders may fit too. For an order that fails, the answer names the first scale that differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from cute_py.argument_checks import expect, expect_integers
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.formats.numbers import Codes, expect_array
from cute_py.formats.scale_orders import Grid, ScaleOrder, scale_order
from cute_py.layout.layout import Layout

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

BLOCKS: Final = (32, 16, 128, 64)
"""Elements that share a scale, tried in this order."""

CANDIDATES: Final = (
    "linear",
    "32_4_4",
    "8x4",
    "mn_major",
    "triton_blackwell",
    *(f"triton_hopper(num_warps={count})" for count in (4, 8, 1, 2, 16)),
    "rocm_32_8",
    "deepgemm_sm90",
    "deepgemm_sm100",
    "vllm_v_4x4",
)
"""Orders that need no parameter from the tensor; pass `orders=` to try others, such as `ragged` or a `Layout`."""


@dataclass(frozen=True, slots=True)
class Match:
    """The result of comparing one order with a buffer.

    Attributes:
        order: the order. transposed: whether the order arranges the columns of the reference as rows. explains: whether
            every scale is at its index in the order, and the buffer has the size of the order. equal: the fraction of
            the scales that are at their index. place: (row, block) of the first scale that is not; None if all are.
            found, expected: the buffer's and the reference's value there. text: the result as one line. nearly: whether
            all scales that differ have one cause: exponents that another rule rounded, or reciprocals.
    """

    order: ScaleOrder
    transposed: bool
    explains: bool
    equal: float
    text: str
    place: tuple[int, int] | None = None
    found: float | None = None
    expected: float | None = None
    nearly: bool = False

    def __str__(self) -> str:
        return self.text


def identify(
    scales: Any, reference: Any, shape: tuple[int, int], *, orders: tuple[str | ScaleOrder | Layout, ...] | None = None
) -> list[Match]:
    """Find the known orders that explain a buffer of scales. The result has those orders first, then the others by
    their share of equal scales.

    If no order explains the buffer, the text of the first match states this. If two orders do, the text of each states
    whether they have the same indices for this size, and if so, a size where their indices differ.

    Args:
        scales: the buffer that a kernel reads; its order is that of its memory, so strides matter. reference: the
            scales as a plain grid, of the same type: (M, Kb) with Kb = ceil(K / V), or (ceil(M / V), Kb) for square
            blocks. shape: the logical (M, K).
        orders: the orders to try; default: all of `CANDIDATES` and, for a buffer that is a larger matrix than the grid,
            the grid in its first rows and columns. Each order is compared as it is and, if it is defined
            for all sizes, with rows and columns exchanged.

    >>> grid = np.arange(128 * 4, dtype=np.uint32).reshape(128, 4)
    >>> scales = np.empty(512, np.uint32)
    >>> form = cute.formats.mxfp8()
    >>> scales[form.scale_index(128, 128)(np.arange(128)[:, None], 32 * np.arange(4))] = grid
    >>> found = cute.formats.identify(scales, grid, (128, 128))
    >>> print(found[0])
    32_4_4: explains all 512 scales
    >>> print([match for match in found if str(match.order) == "linear"][0])
    linear: explains 8 of 512 scales; the first scale that differs is 4 (row 1, block 0), but index 4 holds 128
    """
    for name, one in (("scales", scales), ("reference", reference)):
        expect_array(one, name)
    M, K = expect_integers(expect(shape, tuple, "shape"), "shape", 1, count=2)
    if reference.ndim != 2:
        raise InvalidValueError(f"reference has the shape {reference.shape}; must be (M, blocks per row)")
    block = _block(reference.shape, M, K)
    whole = Grid(M, K, *block)
    flat, size, grid = _comparable(scales, reference)
    aligned = not any(step % scales.itemsize for step in scales.strides)
    steps = tuple(step // scales.itemsize for step in scales.strides)
    padded = _padded(scales.shape, steps, reference.shape, block) if aligned else []
    wanted: tuple[str | ScaleOrder | Layout, ...] = (*CANDIDATES, *padded)
    if orders is not None:
        wanted = expect(orders, tuple, "orders")
    tried = [scale_order(order) for order in wanted]
    shown = reference.dtype if reference.dtype == np.float32 else grid.dtype
    found = [_match(order, False, flat, size, grid, whole, shown) for order in tried]
    turned = Grid(grid.shape[1], grid.shape[0] * block[1], 1, block[1])
    found += [_match(order, True, flat, size, grid.T, turned, shown) for order in tried if _of_any_size(order)]
    found.sort(key=lambda match: (not match.explains, not match.nearly, -match.equal, match.transposed))
    if found and not found[0].explains and not found[0].nearly:
        found[0] = replace(found[0], text=f"no order explains the buffer; the closest is {found[0].text}")
    alike = [match for match in found if match.explains and not match.transposed]
    for place, match in enumerate(alike if len(alike) > 1 else []):
        other = alike[0] if place else alike[1]
        found[place] = replace(match, text=f"{match.text}; {_compared(match, other, whole)}")
    return found


def _padded(
    shape: tuple[int, ...], steps: tuple[int, ...], grid: tuple[int, int], block: tuple[int, int]
) -> list[Layout]:
    """The layouts of a plain grid, and of a transposed one, that is part of a larger matrix.

    shape, steps: the extents and strides of the matrix, in elements; no layouts if it does not have two modes, or if a
    stride is not positive. grid: numbers of blocks.
    """
    if len(shape) != 2 or min(steps) <= 0:
        return []
    found = []
    for (rows, columns), (down, along) in ((shape, steps), (shape[::-1], steps[::-1])):
        # A gap after each line is part of the matrix.
        rows, columns = (rows, max(columns, down // along)) if down > along else (max(rows, along // down), columns)
        if (rows, columns) != grid and rows >= grid[0] and columns >= grid[1]:
            found.append(Layout(((block[0], rows), (block[1], columns)), ((0, down), (0, along))))
    return found


def _of_any_size(order: ScaleOrder) -> bool:
    """Whether an order is defined for grids of all sizes. A layout and `ragged` are defined for one size only."""
    return order.row is not None and order.is_layout


def _compared(match: Match, other: Match, grid: Grid) -> str:
    """Describe how two orders that explain a buffer differ."""
    pair = match.order, other.order
    if not _same(pair, grid, whole=True):
        return f"{other.order} also explains them, with other indices, because scales repeat"
    text = f"{other.order} has the same indices for this size"
    if not all(map(_of_any_size, pair)):
        return text
    rows, blocks = -(-grid.rows // grid.block_rows), -(-grid.columns // grid.block_columns)
    steps = (0, 1, 2, 4, 8, 16, 32, 64, 128)
    sizes = sorted(
        ((grid.block_rows * (rows + m), grid.block_columns * (blocks + k)) for m in steps for k in steps), key=sum
    )
    larger = (replace(grid, rows=m, columns=k) for m, k in sizes[1:])
    differ = next((one for one in larger if not _same(pair, one)), None)
    if differ is None:
        return f"{text}, and for the larger sizes that were compared"
    return f"{text}, but not for M, K = {(differ.rows, differ.columns)}"


MOST_PLACES: Final = 128
"""The rows, and the scales of a row, of the other sizes that two orders are compared for."""


def _same(orders: Sequence[ScaleOrder], grid: Grid, *, whole: bool = False) -> bool:
    """Whether two orders have the same indices: at all scales, or at a sample of a large grid. They may allocate
    different numbers of scales."""
    sides = (grid.rows, grid.block_rows), (grid.columns, grid.block_columns)
    places = []
    for extent, side in sides:
        n = -(-extent // side)
        few = np.arange(n) if whole or n <= MOST_PLACES else np.unique(np.linspace(0, n - 1, MOST_PLACES).astype(int))
        places.append(side * few)
    m, k = places[0][:, None], places[1]
    first, *others = [order.index(grid)(m, k) for order in orders]
    return all(np.array_equal(index, first) for index in others)


def _block(grid: tuple[int, ...], M: int, K: int) -> tuple[int, int]:
    """The size (rows, columns) of a block, from the shape of the grid of scales: one row, or a square if the grid has
    fewer rows than the tensor."""
    if grid[0] == M:
        for block in BLOCKS:
            if -(-K // block) == grid[1]:
                return 1, block
        raise InvalidValueError(
            f"reference has {grid[1]} blocks per row of {K} elements; known formats have "
            f"{', '.join(map(str, BLOCKS))} elements per block",
            hint=f"shape is that of the elements: (M, K) = ({M}, {K * BLOCKS[0]}) for blocks of {BLOCKS[0]}"
            if grid[1] == K
            else None,
        )
    for block in BLOCKS:
        if (-(-M // block), -(-K // block)) == grid:
            return block, block
    sizes = [f"({M}, {-(-K // v)}) for blocks of {v}" for v in BLOCKS[:3]]
    sizes.append(f"({-(-M // 128)}, {-(-K // 128)}) for blocks of 128 x 128")
    raise InvalidValueError(f"reference has the shape {grid}; must be one of {', '.join(sizes)}")


def _comparable(scales: NDArray[Any], reference: NDArray[Any]) -> tuple[NDArray[Any], int, NDArray[Any]]:
    """View the memory of the buffer and the reference as unsigned integers of the same width, with the number of scales
    of the buffer. A wider integer in the buffer contains several scales."""
    size = reference.dtype.itemsize
    flat, count = _memory(scales)
    if flat.dtype.itemsize < size or flat.nbytes % size:
        raise InvalidTypeError(
            f"scales has elements of type {flat.dtype}, but reference has type {reference.dtype}; they must be equal"
        )
    if flat.dtype.kind == "f" and flat.dtype.itemsize > size:
        raise InvalidTypeError(
            f"scales has numbers of type {flat.dtype}, but reference has elements of type {reference.dtype}",
            hint="pass both as bytes, or both as numbers of one type",
        )
    kind = f"u{size}"
    return flat.view(kind), count * flat.dtype.itemsize // size, np.ascontiguousarray(reference).view(kind)


def _memory(scales: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """The elements of an array as they are in memory, with the gaps between rows, and the number of elements if a gap
    also follows the last row."""
    item = scales.dtype.itemsize
    moving = [(step, n) for n, step in zip(scales.shape, scales.strides, strict=True) if n > 1]
    if scales.flags.c_contiguous or any(step <= 0 or step % item for step, _ in moving):
        flat = np.ascontiguousarray(scales).reshape(-1)
        return flat, flat.size
    low, high = np.lib.array_utils.byte_bounds(scales)
    largest, extent = max(moving)
    flat = np.lib.stride_tricks.as_strided(scales, ((high - low) // item,), (item,), writeable=False)
    return flat, extent * (largest // item)


def _match(
    order: ScaleOrder, turned: bool, flat: Codes, size: int, source: Codes, grid: Grid, shown: np.dtype[np.generic]
) -> Match:
    """Compare an order with the buffer.

    flat, size: the scales in memory, and their number with a gap after the last row. source: the reference, transposed
    if `turned`. shown: the type that the text prints scales in.
    """
    name = f"{order}, with rows and columns exchanged" if turned else str(order)
    need = int(order.count(grid))
    m, k = (
        side * np.arange(count) for side, count in zip((grid.block_rows, grid.block_columns), source.shape, strict=True)
    )
    index = order.index(grid)(m[:, None], k)
    inside = index < flat.size
    hit = np.zeros(source.shape, bool)
    hit[inside] = flat[index[inside]] == source[inside]
    share = float(hit.mean())
    if hit.all():
        rest = "" if need == size else f"; it allocates {need} scales, but the buffer has {size}"
        return Match(order, turned, need == size, 1.0, f"{name}: explains all {hit.size} scales{rest}")
    row, column = (int(i) for i in np.argwhere(~hit)[0])
    place = (column, row) if turned else (row, column)
    at, expected = int(index[row, column]), source[row, column].view(shown).item()
    found = flat[at].view(shown).item() if at < flat.size else None
    text = (
        f"{name}: explains {int(hit.sum())} of {hit.size} scales; the first scale that differs is {expected} (row "
        f"{place[0]}, block {place[1]}), but index {at} "
        f"{'is beyond the buffer' if found is None else f'holds {found}'}"
    )
    cause = _cause(flat, index, source, hit, shown) if need == size and inside.all() else ""
    text += cause if need == size else f"; it needs {need} scales, but the buffer has {size}"
    return Match(order, turned, False, share, text, place, found, expected, bool(cause))


def _cause(
    flat: Codes, index: NDArray[np.int64], source: Codes, hit: NDArray[np.bool_], shown: np.dtype[np.generic]
) -> str:
    """A note, if one cause explains all scales that differ; otherwise an empty string."""
    have, want = flat[index[~hit]], source[~hit]
    if flat.dtype.itemsize == 1:
        away = have.astype(np.int64) - want.astype(np.int64)  # one rule rounds up where the other one rounds down
        if abs(int(away[0])) != 1 or (away != away[0]).any() or int(np.ptp(source)) < 2:
            return ""
        return "; all others differ by one, so this is the order, but the exponents were rounded by another rule"
    if shown == np.float32:
        with np.errstate(over="ignore", invalid="ignore"):
            products = have.view(np.float32) * want.view(np.float32)
        if np.allclose(products, 1, rtol=1e-5):
            return "; all others are the reciprocals, so this is the order, but one side has 1 / scale"
    return ""
