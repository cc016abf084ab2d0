"""Find the shared-memory swizzle with the fewest wavefronts for a writer and a reader, and count wavefronts.

A wavefront is one access to the 32 banks of 4 bytes. A warp's access of up to 4 bytes per thread is one request of 32
threads. With 8 or 16 bytes per thread, it is two requests of 16 threads or four requests of 8 threads. A request takes
as many wavefronts as its busiest bank has distinct words. If the access is linear over F2, all accessed banks have
equally many words: 2**(rank of the word address bits - rank of the bank bits).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from cute_py.copies.modes import IDENTITY
from cute_py.dtypes import DTypeLike, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.layout.arguments import LayoutLike
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import size
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int
from cute_py.layout.linear import linear
from cute_py.layout.swizzle import Swizzle
from cute_py.targets import BANK_BYTES, BANKS, WARP

if TYPE_CHECKING:
    import numpy
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

LINE: Final = (BANKS * BANK_BYTES).bit_length() - 1
"""Number of address bits that select the bank and the byte in it."""
WIDEST: Final = 16
"""Maximum bytes of one thread's access."""
MAX_TILE_BITS: Final = 18
"""log2 of the maximum bytes of a tile: a tile of more than 2**18 bytes does not fit in shared memory."""


def requests(width: int) -> int:
    """Return the number of requests that a warp's access of `width` bytes per thread is split into.

    >>> [requests(width) for width in (1, 4, 8, 16)]
    [1, 1, 2, 4]
    """
    return max(1, width // BANK_BYTES)


def _thread_bits(width: int) -> int:
    """Return log2 of the number of threads per request, for an access of `width` bytes per thread."""
    return (WARP // requests(width)).bit_length() - 1


def _columns(access: LayoutLike, bits: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the byte offset that each bit of the thread index and each bit of the value index adds."""
    view = linear(access)  # type: ignore[arg-type]
    modes = access.shape if isinstance(access.shape, tuple) else (access.shape, 1)
    if len(modes) != 2:
        raise InvalidTypeError(
            f"an access map must have two modes, (thread, value), got {len(modes)}", {"layout": access}
        )
    threads = int(size(Layout(modes[0]))).bit_length() - 1
    steps = [c * bits // 8 for c in view.columns]
    return tuple(steps[:threads]), tuple(steps[threads:])


def _rank(vectors: Iterable[int]) -> int:
    """Return the rank of a set of columns over F2."""
    basis: list[int] = []
    for vector in vectors:
        for b in basis:
            if vector ^ b < vector:
                vector ^= b
        if vector:
            basis.append(vector)
    return len(basis)


def _behind(columns: Sequence[int], swizzle: Swizzle) -> list[int]:
    """Return the columns after a swizzle."""
    mask, shift = swizzle.yyy_mask, swizzle.shift
    if shift > 0:
        return [c ^ (c & mask) >> shift for c in columns]
    return [c ^ (c & mask) << -shift for c in columns]


def linear_wavefronts(threads: Sequence[int], values: Sequence[int], element: int, swizzle: Swizzle) -> tuple[int, int]:
    """Return (wavefronts, bytes per thread) of an access. `threads` and `values` list the byte offset that each bit of
    the thread index and of the value index adds.

    One access of a thread covers the values that are contiguous and aligned after the swizzle, up to 16 bytes.

    >>> linear_wavefronts((128, 256, 512, 1024, 2048), (), 4, Swizzle(0, 4, 3))[0]
    32
    >>> linear_wavefronts((128, 256, 512, 1024, 2048), (), 4, Swizzle(5, 2, 5))[0]
    1
    """
    own, others = _behind(values, swizzle), _behind(threads, swizzle)
    beyond = [functools.reduce(operator.or_, others, 0)]  # bits of the threads, and of the last values
    for c in own[:0:-1]:
        beyond.append(beyond[-1] | c)
    width, taken = element, 0
    while taken < len(own) and own[taken] == width < WIDEST and not beyond[~taken] & 2 * width - 1:
        width, taken = 2 * width, taken + 1
    together = _thread_bits(width)
    inside = [1 << k for k in range(2, width.bit_length() - 1)]
    touched = [c >> 2 for c in others[:together]] + [c >> 2 for c in inside]
    banks = [w & BANKS - 1 for w in touched]
    rounds = 1 << _rank(touched) - _rank(banks)
    return rounds << max(0, len(others) - together) + len(own) - taken, width


def counted_wavefronts(addresses: NDArray[numpy.int64], width: int) -> int:
    """Count the wavefronts of accesses of `width` bytes at any byte addresses (access, thread).

    >>> import numpy
    >>> counted_wavefronts(numpy.arange(32).reshape(1, 32) * 128, 4)
    32
    """
    together = WARP // requests(width)
    short = -addresses.shape[1] % together  # repeat the last thread to fill the last request: this adds no conflict
    full = addresses if not short else np.concatenate([addresses, np.repeat(addresses[:, -1:], short, 1)], axis=1)
    full = full.reshape(-1, together)
    words = (full[:, :, None] + np.arange(0, width, BANK_BYTES)).reshape(len(full), -1) // BANK_BYTES
    words.sort(axis=1)
    bins = words % BANKS + BANKS * np.arange(len(words))[:, None]
    bins[:, 1:][words[:, 1:] == words[:, :-1]] = BANKS * len(words)  # a repeated word
    found = np.bincount(bins.ravel(), minlength=BANKS * len(words))[: BANKS * len(words)]
    return sum(found.reshape(-1, BANKS).max(axis=1).tolist())


def _fields(bits: int, element: int) -> Iterator[tuple[int, int]]:
    """Yield (bits, base) of the byte swizzles that change banks in a tile of 2**bits bytes, smaller swizzles first.

    Changes to bits above the bank bits, or within a word, do not change a bank: a smaller swizzle has the same effect.
    """
    lowest = max(element, BANK_BYTES).bit_length() - 1
    for count in range(1, LINE + 1):
        for base in range(lowest, LINE - count + 1):
            if 2 * count + base <= bits:
                yield count, base


def _shifts(bits: int, count: int, base: int) -> Iterator[int]:
    """Yield the shifts of these swizzles, smaller distances first; right shifts come before left shifts."""
    for shift in range(count, bits - count - base + 1):
        yield shift
        if base + count + shift <= LINE:
            yield -shift


class _Count:
    """Count the wavefronts of one access, as `linear_wavefronts` does, for many swizzles.

    A swizzle of address bits above a thread's access keeps the width of the access, and permutes words. It changes only
    the rank of the bank bits, by at most one for each of its bits. A swizzle of lower bits may make the access
    narrower.

    Attributes: least, the number of wavefronts if each request takes one. No swizzle makes the access wider, or needs
    fewer wavefronts. plain: the number of wavefronts without a swizzle.
    """

    def __init__(self, threads: Sequence[int], values: Sequence[int], element: int) -> None:
        self._access = threads, values, element
        self.plain, self._width = linear_wavefronts(threads, values, element, IDENTITY)
        self.least = (element << len(values) + max(0, len(threads) - _thread_bits(self._width))) // self._width
        self._touched = self._columns(self._width)
        self._conflictless = self.plain << _rank([c >> 2 & BANKS - 1 for c in self._touched])
        self._narrower = {self._width: self.plain}
        """Bytes of an access -> wavefronts without a swizzle if the access had this width or more."""
        width = self._width
        while width > max(element, BANK_BYTES):
            width, fewest = width // 2, self._narrower[width]
            touched = [c >> 2 for c in self._columns(width)]
            rounds = 1 << _rank(touched) - _rank([c & BANKS - 1 for c in touched])
            self._narrower[width] = min(fewest, self.least * rounds)

    def _columns(self, width: int) -> list[int]:
        """Return the byte offsets of the bits of a request of this width: bits of the thread index, and of the word in
        a thread's access."""
        return [*self._access[0][: _thread_bits(width)], *(1 << k for k in range(2, width.bit_length() - 1))]

    def floor(self, bits: int, base: int) -> int:
        """Return a lower bound of the wavefronts for all swizzles with this number of bits and this base."""
        return max(self.least, self._narrower[min(1 << base, self._width)] >> bits)

    def of(self, swizzle: Swizzle) -> int:
        """Return the number of wavefronts with a swizzle."""
        if 1 << swizzle.base < self._width:
            return linear_wavefronts(*self._access, swizzle)[0]
        return self._conflictless >> _rank([c >> 2 & BANKS - 1 for c in _behind(self._touched, swizzle)])


@functools.lru_cache(maxsize=1024)
def best_swizzle(
    bits: int,
    element: int,
    writer: tuple[tuple[int, ...], tuple[int, ...]],
    reader: tuple[tuple[int, ...], tuple[int, ...]],
    positive: bool = False,
) -> tuple[Swizzle, int, int]:
    """Return (byte swizzle, wavefronts of the writer, wavefronts of the reader) with the smallest sum of wavefronts.

    Among equals, it returns the smallest swizzle. positive: allow only swizzles that XOR higher bits into lower bits.
    """
    one, other = (_Count(*side, element) for side in (writer, reader))
    best, found = (one.plain + other.plain, -1), (IDENTITY, one.plain, other.plain)
    fields = [
        (one.floor(*field) + other.floor(*field), number, field) for number, field in enumerate(_fields(bits, element))
    ]
    for floor, number, (count, base) in sorted(fields):  # the most promising first; later ones are not counted
        if (floor, number) > best:
            continue
        ours_least = one.floor(count, base)
        for shift in _shifts(bits, count, base):
            if positive and shift < 0:
                continue
            swizzle = Swizzle(count, base, shift)
            theirs = other.of(swizzle)
            if (theirs + ours_least, number) >= best:
                continue
            ours = one.of(swizzle)
            if (ours + theirs, number) < best:
                best, found = (ours + theirs, number), (swizzle, ours, theirs)
                if best[0] == floor:
                    break
    return found


def find_smem_layout(writer: LayoutLike, reader: LayoutLike, dtype: DTypeLike) -> Layout | ComposedLayout:
    """Find the layout of a tile in shared memory with the fewest wavefronts for two access maps.

    Args:
        writer, reader: thread-value layouts (thread, value) -> index of an element of the tile, with sizes that are
            powers of two. Contiguous values of a thread count as one access of up to 16 bytes. For an access of one
            element per thread, give a map with one value: (_32,_1):(_32,_0).
        dtype: element type of 8 bits or more.
    Returns:
        a layout with the tile's elements in order, or with a swizzle of element offsets. Its sum of wavefronts of
            writer and reader is the smallest. Among equals, it has the swizzle with the fewest bits, then the lowest
            base, then the smallest shift.
    Raises:
        LayoutError: an access map is not linear over F2. InvalidValueError: the bytes of an element are not a power of
            two, or the tile does not fit in shared memory. InvalidTypeError: an access map is not (thread, value).

    >>> rows = Layout((32, 32), (1, 32))                        # a warp writes rows of 32 floats, and reads columns
    >>> print(find_smem_layout(rows, Layout((32, 32), (32, 1)), "float32"))
    Sw<3,2,3> o _0 o 1024:_1
    """
    bits = as_dtype(dtype).bits
    if bits % 8 or bits & (bits - 1) or bits > 8 * WIDEST:
        raise InvalidValueError(f"an element has {bits} bits; must have 1, 2, 4, 8 or 16 bytes")
    element = bits // 8
    sides = [_columns(access, bits) for access in (writer, reader)]
    count = max(sum(c for part in side for c in part) // element + 1 for side in sides)
    tile_bits = (count - 1).bit_length()
    byte_bits = tile_bits + element.bit_length() - 1
    if byte_bits > MAX_TILE_BITS:
        raise InvalidValueError(f"a tile of {count} elements of {element} bytes does not fit into shared memory")
    swizzle, _, _ = best_swizzle(byte_bits, element, sides[0], sides[1])
    plain = Layout(1 << tile_bits)
    if not swizzle.bits:
        return plain
    return ComposedLayout(swizzle.upcast(element), Int(0), plain)
