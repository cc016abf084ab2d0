"""`identify`: find the orders of scales that explain a buffer, given the scales as a plain grid.

    reference[m, kb]  ==  scales[order.index(m, kb)]        for every m and kb: the order explains the buffer

If the scales are random, either one order explains them, or several that have the same indices for this size. If scales
repeat, other orders may fit as well. For an order that fails, the answer names the first scale that differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from cute_py.argument_checks import expect, expect_integers
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.formats.numbers import expect_array
from cute_py.formats.scale_orders import Grid, ScaleOrder, scale_order

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

BLOCKS: Final = (32, 16, 128, 64, 1)
"""Elements that share a scale, tried in this order."""

CANDIDATES: Final = (
    "linear",
    "32_4_4",
    "8x4",
    "mn_major",
    "triton_blackwell",
    "triton_hopper(num_warps=4)",
    "triton_hopper(num_warps=8)",
    "rocm_32_8",
    "deepgemm_sm90",
    "deepgemm_sm100",
    "vllm_v_4x4",
)
"""Orders that need no parameter from the tensor; pass `orders=` to try others."""


@dataclass(frozen=True, slots=True)
class Match:
    """The result of comparing one order with a buffer.

    Attributes:
        order: the order. transposed: whether it arranges the columns of the reference as rows. explains: whether every
            scale lies at the index that the order gives. equal: the share of the scales that do. place: (row, block) of
            the first scale that does not; None if all do. found, expected: the bytes or numbers at that place. text:
            the result as one line.
    """

    order: ScaleOrder
    transposed: bool
    explains: bool
    equal: float
    text: str
    place: tuple[int, int] | None = None
    found: float | None = None
    expected: float | None = None

    def __str__(self) -> str:
        return self.text


def identify(
    scales: Any, reference: Any, shape: tuple[int, int], *, orders: tuple[str | ScaleOrder, ...] | None = None
) -> list[Match]:
    """Compare the known orders with a buffer of scales. Orders that explain it come first, then the nearest ones.

    If two orders explain it, the text says whether they have the same indices for this size, and names a size where
    they differ.

    Args:
        scales: the buffer that a kernel reads. reference: (M, Kb) the scales as a plain grid, of the same type; Kb =
            ceil(K / V). shape: the logical (M, K).
        orders: the orders to try; default all of `CANDIDATES`, each of them unchanged and with rows and columns
            exchanged.

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
    flat, grid = _comparable(scales, reference)
    wanted = CANDIDATES if orders is None else expect(orders, tuple, "orders")
    found = [_match(scale_order(order), turned, flat, grid, block) for order in wanted for turned in (False, True)]
    found.sort(key=lambda match: (not match.explains, -match.equal, match.transposed))
    alike = [match for match in found if match.explains and not match.transposed]
    for place, match in enumerate(alike if len(alike) > 1 else []):
        other = alike[0] if place else alike[1]
        found[place] = replace(match, text=f"{match.text}; {_compared(match, other, (M, K), block)}")
    return found


def _compared(match: Match, other: Match, shape: tuple[int, int], block: int) -> str:
    """Describe how two orders that explain a buffer differ."""
    pair = match.order, other.order
    if not _same(pair, *shape, block, whole=True):
        return f"{other.order} also explains them, with other indices, because scales repeat"
    rows, blocks = shape[0], -(-shape[1] // block)
    steps = (0, 1, 2, 4, 8, 16, 32, 64, 128)
    sizes = sorted(((rows + m, block * (blocks + k)) for m in steps for k in steps), key=sum)
    differ = next((size for size in sizes[1:] if not _same(pair, *size, block)), None)
    where = "and for the larger sizes that were compared" if differ is None else f"but not for M, K = {differ}"
    return f"{other.order} has the same indices for this size, {where}"


MOST_PLACES: Final = 128
"""The rows, and the scales of a row, at which two orders are compared for another size."""


def _same(orders: Sequence[ScaleOrder], rows: int, columns: int, block: int, *, whole: bool = False) -> bool:
    """Whether two orders have the same number of scales and the same indices, at all scales or at some of a large
    grid."""
    grid = Grid(rows, columns, 1, block)
    counts = [
        np.arange(n) if whole or n <= MOST_PLACES else np.unique(np.linspace(0, n - 1, MOST_PLACES).astype(int))
        for n in (rows, -(-columns // block))
    ]
    m, k = counts[0][:, None], block * counts[1]
    first, *others = [(int(order.count(grid)), order.index(grid)(m, k)) for order in orders]
    return all(number == first[0] and np.array_equal(index, first[1]) for number, index in others)


def _block(grid: tuple[int, ...], M: int, K: int) -> int:
    if grid[0] != M:
        sizes = [f"({M}, {-(-K // v)}) for blocks of {v}" for v in BLOCKS[:3]]
        raise InvalidValueError(f"reference has the shape {grid}; must be one of {', '.join(sizes)}")
    for block in BLOCKS:
        if -(-K // block) == grid[1]:
            return block
    raise InvalidValueError(
        f"reference has {grid[1]} blocks per row of {K} elements; known formats have {', '.join(map(str, BLOCKS))}"
    )


def _comparable(scales: NDArray[Any], reference: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """View both as unsigned integers of one size; a wider integer of the buffer holds several scales."""
    size = reference.dtype.itemsize
    flat = np.ascontiguousarray(scales).reshape(-1)
    if flat.dtype.itemsize < size or flat.nbytes % size:
        raise InvalidTypeError(
            f"scales has elements of type {flat.dtype}, but reference has type {reference.dtype}; must be equal"
        )
    if flat.dtype.kind == "f" and flat.dtype.itemsize > size:
        raise InvalidTypeError(
            f"scales has numbers of type {flat.dtype}, but reference has elements of type {reference.dtype}",
            hint="pass both as bytes, or both as numbers of one type",
        )
    kind = f"u{size}"
    return flat.view(kind), np.ascontiguousarray(reference).view(kind)


def _match(order: ScaleOrder, turned: bool, flat: NDArray[Any], grid: NDArray[Any], block: int) -> Match:
    name = f"{order}, with rows and columns exchanged" if turned else str(order)
    source = grid.T if turned else grid
    rows, blocks = source.shape
    need = int(order.count(Grid(rows, blocks * block, 1, block)))
    index = order.index(Grid(rows, blocks * block, 1, block))(np.arange(rows)[:, None], block * np.arange(blocks))
    inside = index < flat.size
    hit = np.zeros(source.shape, bool)
    hit[inside] = flat[index[inside]] == source[inside]
    share = float(hit.mean())
    if hit.all():
        rest = "" if need == flat.size else f"; it allocates {need} scales, but the buffer has {flat.size}"
        return Match(order, turned, need == flat.size, 1.0, f"{name}: explains all {hit.size} scales{rest}")
    row, column = (int(i) for i in np.argwhere(~hit)[0])
    place = (column, row) if turned else (row, column)
    at, expected = int(index[row, column]), source[row, column].item()
    found = flat[at].item() if at < flat.size else None
    text = (
        f"{name}: explains {int(hit.sum())} of {hit.size} scales; the first scale that differs is {expected} (row "
        f"{place[0]}, block {place[1]}), but index {at} "
        f"{'lies beyond the buffer' if found is None else f'holds {found}'}"
    )
    text += (
        _off_by_one(flat, index, source, hit)
        if need == flat.size
        else f"; it needs {need} scales, but the buffer has {flat.size}"
    )
    return Match(order, turned, False, share, text, place, found, expected)


def _off_by_one(flat: NDArray[Any], index: NDArray[Any], source: NDArray[Any], hit: NDArray[Any]) -> str:
    """If all bytes that differ do so by one, the exponents were rounded by another rule."""
    if flat.dtype.itemsize != 1 or hit.mean() < 0.5:
        return ""
    away = flat[index[~hit]].astype(np.int64) - source[~hit].astype(np.int64)
    if (np.abs(away) != 1).any():
        return ""
    return "; all others differ by one, so this is the order, but the exponents were rounded by another rule"
