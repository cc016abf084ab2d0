"""The common refinement of a copy: two layouts of the same size, split into modes of equal sizes on both sides.

    source       (6,10):(1,6)   -> 2 x 3 | 2 x 5        each size is split at the products of sizes of the other side
    destination  (4,15):(15,1)  -> 2 x 2 | 3 x 5

Elements correspond by coordinate, or in colexicographic order if the profiles differ. There are three forms. The copy
is affine if each product of leading sizes of one side divides such a product of the other side, or is a multiple of it.
Splitting at these products then makes both lists of modes equal. The copy is linear if a side also has a swizzle, which
XORs the offsets of this side. Otherwise the sizes have no common refinement, and the copy is general: matching modes at
either end are split off, and each side keeps its own list of the modes in between.

A tile of a copy also reads the elements of the next tile that complete the last sectors of its destination rows.
`BorrowedRows` are the rows of the source that such a tile reads.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from cute_py.argument_checks import check_magnitude, expect, expect_choice
from cute_py.dtypes import DType, DTypeLike, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError, given
from cute_py.layout.analysis import is_injective
from cute_py.layout.arguments import LayoutLike
from cute_py.layout.coalesce import coalesced
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.composition import composition
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import STATIC, value_of
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import leaves

if TYPE_CHECKING:
    import numpy
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

NIBBLE: Final = 4
"""Bits of the narrowest elements."""
NIBBLES: Final = ("low", "low")
VECTORS: Final = (16, 8, 4, 2, 1)
"""Possible sizes in bytes of an element, and of a thread's access."""
MAX_RANK: Final = 16
"""Maximum number of modes of a refinement; only tensors of more than 65536 elements can have more modes."""
LISTED: Final = 1 << 24
"""Maximum number of elements of a swizzled side whose offsets are listed to find the largest."""
MAX_OFFSET: Final = 1 << 60
"""Maximum number of elements; beyond it an address does not fit into 64 bits."""

IDENTITY: Final = Swizzle(0, 4, 3)
Digits: TypeAlias = tuple[tuple[int, int], ...]
"""(size, stride) of each mode; the fastest mode of an index is the first."""


@dataclass(frozen=True, slots=True)
class CopyMode:
    """One mode of a copy: its size, and its strides in source and destination. Strides are in elements; in plans with
    tensor maps, they are in bytes."""

    size: int
    source: int
    destination: int


@dataclass(frozen=True, slots=True)
class Refinement:
    """The modes that both sides of a copy have in common, and the start, the swizzle and the remaining modes of each
    side.

    offset = swizzle(start + sum of coordinate * stride). The coordinates refer to `modes`. A general copy also has
    an index that counts through `rest`; each side cuts this index into its own digits.

    Attributes:
        modes: the common modes; the destination's innermost mode is the first. Sizes are above 1, and destination
            strides are positive.
        starts: the first offsets (source, destination), in elements.
        swizzles: swizzles on element offsets. rest: the remaining modes (source, destination); empty unless the copy is
            general.
    """

    modes: tuple[CopyMode, ...]
    starts: tuple[int, int] = (0, 0)
    swizzles: tuple[Swizzle, Swizzle] = (IDENTITY, IDENTITY)
    rest: tuple[Digits, Digits] = field(default=((), ()))

    @property
    def form(self) -> str:
        """'affine', 'linear' (over F2: a swizzle on a side) or 'general' (no common refinement)."""
        if self.rest[0]:
            return "general"
        return "affine" if all(s.bits == 0 for s in self.swizzles) else "linear"

    @property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(m.size for m in self.modes) * math.prod(n for n, _ in self.rest[0])


def _function(layout: LayoutLike, role: str) -> tuple[Digits, int, Swizzle]:
    """Return a layout's coalesced (size, stride) pairs, the offset that is added, and the swizzle that is applied to
    the sum."""
    if isinstance(layout, ComposedLayout):
        start = value_of(layout._offset) if not hasattr(layout._offset, "bits") else 0
        if type(start) is not int:
            raise InvalidTypeError(f"the offset of the {role} layout is unknown", {"layout": layout})
        if isinstance(layout.outer, Layout) and not start:
            return _function(composition(layout.outer, layout.inner), role)
        if not isinstance(layout.outer, Swizzle) or not isinstance(layout.inner, Layout):
            raise LayoutError(
                f"the {role} must be a layout or a swizzled layout",
                {"layout": layout},
                "compose its parts to one layout, or copy in two steps",
            )
        digits, _, _ = _function(layout.inner, role)
        return digits, start, layout.outer
    if not isinstance(layout, Layout):
        raise InvalidTypeError(f"the {role} must be a layout, got {type(layout).__name__} {given(layout)}")
    shape, stride = [value_of(x) for x in leaves(layout.shape)], [value_of(x) for x in leaves(layout.stride)]
    what = f"a number of the {role} layout"
    for number in (*shape, *stride):
        if type(number) is not int:
            raise InvalidTypeError(
                f"the {role} layout must consist of known integers, got {given(number)}",
                {"layout": layout},
                "use layout.subs({...}) to replace the symbols with numbers",
            )
        check_magnitude(number, what)
    if 0 in shape:
        return ((0, 1),), 0, IDENTITY
    if sum((n - 1) * abs(d) for n, d in zip(shape, stride, strict=True)) > MAX_OFFSET:
        raise InvalidValueError(f"the {role} layout has offsets beyond 2**60 elements", {"layout": layout})
    sizes, steps = coalesced(tuple([STATIC[n] for n in shape]), tuple([STATIC[d] for d in stride]))
    flat = zip(leaves(sizes), leaves(steps), strict=True)
    return tuple((int(n), int(d)) for n, d in flat if n > 1), 0, IDENTITY


def _cut(one: list[tuple[int, int]], other: list[tuple[int, int]], end: int) -> list[CopyMode]:
    """Remove common modes from the start (end 0) or the end (end -1) of both lists, and return them."""
    taken: list[CopyMode] = []
    while one and other:
        (n, s), (m, d) = one[end], other[end]
        size = math.gcd(n, m)
        if size == 1:
            break
        whole = n == size, m == size
        inner = (1, 1) if end == 0 else (n // size, m // size)
        taken.append(CopyMode(size, s * inner[0], d * inner[1]))
        for side, length, step, done in ((one, n, s, whole[0]), (other, m, d, whole[1])):
            if done:
                side.pop(end)
            else:
                side[end] = (length // size, step * size if end == 0 else step)
        if not any(whole):
            break
    return taken


def _apart(digits: Digits) -> bool:
    """Whether each stride exceeds the total extent of the modes with smaller strides, so that no two offsets are
    equal."""
    reach = 0
    for size, step in sorted(digits, key=lambda digit: abs(digit[1])):
        if abs(step) <= reach:
            return False
        reach += (size - 1) * abs(step)
    return True


def merged(modes: Sequence[CopyMode]) -> tuple[CopyMode, ...]:
    """Sort modes by the destination's strides, and merge modes that are contiguous with each other on both sides.

    >>> merged([CopyMode(4, 8, 8), CopyMode(8, 1, 1), CopyMode(3, 5, 64)])
    (CopyMode(size=32, source=1, destination=1), CopyMode(size=3, source=5, destination=64))
    """
    left = sorted(modes, key=lambda m: (abs(m.destination), abs(m.source)))
    at = 0
    while at < len(left):
        mode = left[at]
        follows = mode.size * mode.source, mode.size * mode.destination
        found = next((m for m in left if (m.source, m.destination) == follows and m is not mode), None)
        if found is None:
            at += 1
            continue
        left.remove(found)
        left[left.index(mode)] = replace(mode, size=mode.size * found.size)
        at = 0
    return tuple(left)


def refine(source: LayoutLike, destination: LayoutLike) -> Refinement | None:
    """Return the refinement of a copy; None if there is nothing to copy.

    Raises:
        InvalidTypeError: an argument is not a layout, or has symbols. InvalidValueError: the sizes differ, several
            elements of the destination share an offset, or an offset is beyond 2**60. LayoutError: a composition is not
            a swizzled layout.

    >>> refine(Layout((6, 10), (10, 1)), Layout((4, 15), (15, 1))).form
    'general'
    >>> refine(Layout((8, 4)), Layout((8, 4), (4, 1))).modes
    (CopyMode(size=4, source=8, destination=1), CopyMode(size=8, source=1, destination=4))
    """
    (ours, start, before), (theirs, first, after) = _function(source, "source"), _function(destination, "destination")
    sizes = [math.prod(n for n, _ in side) for side in (ours, theirs)]
    if sizes[0] != sizes[1]:
        raise InvalidValueError(
            f"the source has {sizes[0]} elements and the destination {sizes[1]}; they must be equal",
            {"source": source, "destination": destination},
        )
    if not sizes[0]:
        return None
    if not _apart(theirs) and not is_injective(Layout(tuple([n for n, _ in theirs]), tuple([d for _, d in theirs]))):
        raise InvalidValueError(
            "the destination overlaps itself, because several elements have the same offset",
            {"destination": destination},
        )
    one, other = list(ours), list(theirs)
    modes = _cut(one, other, 0)
    modes += _cut(one, other, -1)
    starts = [start, first]
    upright: list[CopyMode] = []
    for mode in modes:
        if mode.destination < 0:
            starts[0] += (mode.size - 1) * mode.source
            starts[1] += (mode.size - 1) * mode.destination
            mode = CopyMode(mode.size, -mode.source, -mode.destination)
        upright.append(mode)
    found = merged(upright)
    if len(found) > MAX_RANK:
        raise InvalidValueError(f"the copy has {len(found)} modes that do not merge; must have at most {MAX_RANK}")
    return Refinement(found, (starts[0], starts[1]), (before, after), (tuple(one), tuple(other)))


class PairedElements:
    """Base class of `Pairing` and of copy plans: properties that follow from the paired elements."""

    __slots__ = ()

    refinement: Refinement | None
    bits: int
    nibbles: tuple[str, str]

    @property
    def bytes(self) -> int:
        """Number of bytes of the elements."""
        return -(-self.refinement.count * self.bits // 8) if self.refinement else 0

    @property
    def flips(self) -> tuple[int, int]:
        """For (source, destination): 1 if the first element of a byte is in the upper half of the byte."""
        return int(self.nibbles[0] == "high"), int(self.nibbles[1] == "high")


@dataclass(frozen=True, slots=True)
class Pairing(PairedElements):
    """The pairs of elements of a copy, before a plan decides how they move.

    Attributes:
        refinement: None if there is nothing to copy. bits: the width of the unit that the refinement counts: an
            element, or a byte if 4-bit elements move in pairs. nibbles: for 4-bit elements, the half of a byte ('low'
            or 'high') that holds the first element, for (source, destination).
    """

    source: Layout | ComposedLayout
    destination: Layout | ComposedLayout
    dtype: DType
    refinement: Refinement | None
    bits: int
    nibbles: tuple[str, str]


def pair_elements(
    source: LayoutLike, destination: LayoutLike, dtype: DTypeLike, nibbles: tuple[str, str] = NIBBLES
) -> Pairing:
    """Pair the elements of two layouts of the same size. See `plan_copy` for arguments and errors.

    >>> pair_elements(Layout((6, 10), (10, 1)), Layout((4, 15), (15, 1)), "float32").bytes
    240
    """
    kind = as_dtype(dtype)
    for role, layout in (("source", source), ("destination", destination)):
        if not isinstance(layout, (Layout, ComposedLayout)):
            raise InvalidTypeError(f"the {role} must be a layout, got {type(layout).__name__} {given(layout)}")
    for order in expect(nibbles, tuple, "nibbles"):
        expect_choice(expect(order, str, "an order of nibbles"), ("low", "high"), "an order of nibbles")
    if len(nibbles) != 2:
        raise InvalidValueError(f"nibbles = {given(nibbles)}; must be a pair for (source, destination)")
    layouts: Any = (source, destination)
    return _paired(*layouts, kind, nibbles if kind.bits == NIBBLE else NIBBLES)


@functools.lru_cache(maxsize=1024)
def _paired(
    source: Layout | ComposedLayout, destination: Layout | ComposedLayout, dtype: DType, nibbles: tuple[str, str]
) -> Pairing:
    refinement, bits = refine(source, destination), dtype.bits
    if bits != NIBBLE and (bits % 8 or bits // 8 not in VECTORS):
        raise InvalidValueError(f"{dtype} has {bits} bits per element; must have 4 bits, or 1, 2, 4, 8 or 16 bytes")
    if bits == NIBBLE and refinement is not None and nibbles[0] == nibbles[1]:
        whole = in_bytes(refinement)
        bits, refinement = (NIBBLE, refinement) if whole is None else (8, whole)
    return Pairing(source, destination, dtype, refinement, bits, nibbles)


def in_bytes(refinement: Refinement) -> Refinement | None:
    """Convert a refinement of 4-bit elements to a refinement of bytes; None if a byte of one side is split on the
    other.

    >>> in_bytes(Refinement((CopyMode(8, 1, 1), CopyMode(3, 16, 8)))).modes
    (CopyMode(size=4, source=1, destination=1), CopyMode(size=3, source=8, destination=4))
    """
    if not refinement.modes or any(start % 2 for start in refinement.starts):
        return None
    first, *others = refinement.modes
    steps = [d for m in others for d in (m.source, m.destination)]
    steps += [d for side in refinement.rest for _, d in side]
    if (first.source, first.destination, first.size % 2) != (1, 1, 0) or any(d % 2 for d in steps):
        return None
    if any(s.bits and (s.yyy_mask | s.zzz_mask) & 1 for s in refinement.swizzles):
        return None
    modes = [CopyMode(first.size // 2, 1, 1)] if first.size > 2 else []
    modes += [CopyMode(m.size, m.source // 2, m.destination // 2) for m in others]
    swizzles = [Swizzle(s.bits, s.base - 1, s.shift) if s.bits else s for s in refinement.swizzles]
    rest = [tuple((n, d // 2) for n, d in side) for side in refinement.rest]
    return Refinement(
        tuple(modes),
        (refinement.starts[0] // 2, refinement.starts[1] // 2),
        (swizzles[0], swizzles[1]),
        (rest[0], rest[1]),
    )


def side_offsets(refinement: Refinement, which: int, index: NDArray[numpy.int64] | None = None) -> NDArray[numpy.int64]:
    """Return the offsets, in elements, of one side for these indices in the order of the refinement (default: all)."""
    name = ("source", "destination")[which]
    rest = np.arange(refinement.count) if index is None else index
    total = np.full(rest.shape, refinement.starts[which], np.int64)
    for size, step in (*((m.size, getattr(m, name)) for m in refinement.modes), *refinement.rest[which]):
        rest, digit = np.divmod(rest, size)
        total += digit * step
    swizzle = refinement.swizzles[which]
    return swizzle(total) if swizzle.bits else total


@functools.lru_cache(maxsize=1024)
def side_bounds(refinement: Refinement, which: int) -> tuple[int, int]:
    """Return the lowest and the highest offset of a side, in elements.

    For swizzled sides of more than 2**24 elements, the result is a bound: it covers all blocks that the swizzle
    permutes.
    """
    name = ("source", "destination")[which]
    reach = [(m.size - 1) * getattr(m, name) for m in refinement.modes]
    reach += [(n - 1) * d for n, d in refinement.rest[which]]
    start = refinement.starts[which]
    low, high = start + sum(min(r, 0) for r in reach), start + sum(max(r, 0) for r in reach)
    swizzle = refinement.swizzles[which]
    if not swizzle.bits:
        return low, high
    block = 1 << max(swizzle.yyy_mask, swizzle.zzz_mask).bit_length()
    if refinement.count == high - low + 1 and low % block == 0 and (high + 1) % block == 0:
        return low, high  # the offsets fill whole blocks of the swizzle
    if refinement.count > LISTED:
        return low // block * block, high // block * block + block - 1
    offsets = side_offsets(refinement, which)
    return int(offsets.min()), int(offsets.max())


def byte_span(refinement: Refinement, which: int, bits: int) -> tuple[int, int]:
    """Return the first byte of a side, relative to the address of offset 0, and its number of bytes, for `bits`-bit
    elements.

    >>> byte_span(Refinement((CopyMode(3, 1, -1),)), 1, 4), byte_span(Refinement((CopyMode(3, 1, -1),)), 1, 32)
    ((-1, 2), (-8, 12))
    """
    low, high = side_bounds(refinement, which)
    first = low * bits // 8
    return first, (high + 1) * bits // 8 + ((high + 1) * bits % 8 > 0) - first


class RunMode(NamedTuple):
    """A mode of a destination run that source rows count.

    mode: its index. weight: the number of elements of the run from one coordinate to the next. extent: the number of
    coordinates that the tile reads in part or completely.
    """

    mode: int
    weight: int
    extent: int


class BorrowedRows(NamedTuple):
    """The rows of the source that start below the limit of a destination run.

    A run is counted in mixed radix by its modes. Modes of the run that are inside a row of the source count as 0,
    because a row is read whole.

    modes: the modes of the run that rows count, the largest weight first; a weight is at least the number of elements
    that all later modes span; () if the tile reads all rows of its box. limit: the number of elements of a destination
    row that the tile reads.

    >>> rows = BorrowedRows((RunMode(1, 5, 3), RunMode(0, 1, 5)), 11)
    >>> rows.total  # 5 of each of two coordinates of mode 1, and the first one of the third
    11
    >>> rows.reach([4, 100])
    200
    """

    modes: tuple[RunMode, ...]
    limit: int

    @property
    def indices(self) -> tuple[int, ...]:
        """The indices of the modes."""
        return tuple([one.mode for one in self.modes])

    def _boxes(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield (number of rows, last coordinates) of disjoint boxes that contain all rows."""
        fixed, left = tuple[int, ...](), self.limit
        for index, (_, weight, extent) in enumerate(self.modes):
            later = [one.extent for one in self.modes[index + 1 :]]
            full = min(extent, left // weight)
            if full:
                yield full * math.prod(later), (*fixed, full - 1, *[n - 1 for n in later])
            if full == extent:
                return
            fixed, left = (*fixed, full), left - full * weight
        if left > 0:
            yield 1, fixed

    @property
    def total(self) -> int:
        """Number of rows, as combinations of coordinates of the modes."""
        return sum(number for number, _ in self._boxes())

    def reach(self, pitches: Sequence[int]) -> int:
        """Return the largest offset of a row, with `pitches[mode]` bytes from one coordinate to the next."""
        steps = [pitches[m] for m in self.indices]
        return max(sum(n * step for n, step in zip(last, steps, strict=True)) for _, last in self._boxes())

    def contains(self, digits: Mapping[int, NDArray[np.int64]]) -> NDArray[np.bool_]:
        """Whether rows with these coordinates of the modes start below the limit."""
        return np.asarray(sum(digits[mode] * weight for mode, weight, _ in self.modes) < self.limit)
