"""Copy between two layouts in host memory with numpy.

Affine copies use strided views. If the innermost modes of the two sides differ, the copy is split into blocks that fit
in a core's cache. Other copies compute the offsets of one block of elements at a time.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import TYPE_CHECKING, Final, TypeAlias

from cute_py.copies.modes import NIBBLE, CopyMode, Pairing, Refinement, byte_span, side_bounds, side_offsets

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

BLOCK: Final = 256
"""Extent of a block, in elements, along the innermost mode of each side."""
BLOCKED: Final = 1024
"""Minimum size of both modes for a copy in blocks: the lines of a shorter column stay in the cache without blocks."""
LISTED: Final = 1 << 18
"""Number of elements whose offsets are computed at a time."""

Words: TypeAlias = "NDArray[np.generic]"

Bytes: TypeAlias = "NDArray[np.uint8]"


def memory_at(address: int, size: int) -> memoryview:
    """Return a view of `size` bytes of host memory, starting at an address."""
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")


def element_values(image: Bytes, offsets: NDArray[np.int64], bits: int, low: int, flip: int) -> Bytes:
    """Return the elements at these offsets as a uint8 array (elements, bytes per element); a 4-bit element takes one
    byte.

    low: the byte offset of the image's first byte, relative to offset 0 of the layout.
    """
    found: Bytes
    if bits == NIBBLE:
        found = (image[(offsets >> 1) - low] >> 4 * ((offsets & 1) ^ flip).astype(np.uint8) & 15)[:, None]
        return found
    found = image[offsets[:, None] * (bits // 8) - low + np.arange(bits // 8)]
    return found


def copy_paired(pairing: Pairing, source: int, destination: int) -> None:
    """Copy paired elements in host memory, given the addresses of offset 0 of both sides."""
    if pairing.refinement is None:
        return
    if pairing.bits == NIBBLE:
        host_copy_nibbles(pairing.refinement, source, destination, pairing.flips)
    else:
        host_copy_layouts(pairing.refinement, pairing.bits // 8, source, destination)


def _words(address: int, low: int, count: int, element: int, writable: bool) -> Words:
    """View `count` elements of memory; the first is `low` elements after `address`."""
    return _view(address + low * element, [CopyMode(count, 1, 1)], "source", element, writable)


def host_copy_layouts(refinement: Refinement, element: int, source: int, destination: int) -> None:
    """Copy elements of `element` bytes in host memory, given the addresses of offset 0 of both sides."""
    bounds = [side_bounds(refinement, which) for which in (0, 1)]
    if refinement.form == "affine":
        _strided(refinement, element, source, destination)
        return
    words = [
        _words(address, low, high - low + 1, element, which == 1)
        for which, (address, (low, high)) in enumerate(zip((source, destination), bounds, strict=True))
    ]
    for begin in range(0, refinement.count, LISTED):
        index = np.arange(begin, min(begin + LISTED, refinement.count))
        ours, theirs = (side_offsets(refinement, which, index) - bounds[which][0] for which in (0, 1))
        words[1][theirs] = words[0][ours]


def host_copy_nibbles(refinement: Refinement, source: int, destination: int, flips: tuple[int, int]) -> None:
    """Copy 4-bit elements as `host_copy_layouts` does; flips: 1 for a side whose first element is in the upper half of
    a byte."""
    lows = [byte_span(refinement, which, NIBBLE) for which in (0, 1)]
    ours, theirs = (
        np.frombuffer(memory_at(address + low, size), np.uint8)
        for address, (low, size) in zip((source, destination), lows, strict=True)
    )
    for begin in range(0, refinement.count, LISTED):
        index = np.arange(begin, min(begin + LISTED, refinement.count))
        values = element_values(ours, side_offsets(refinement, 0, index), NIBBLE, lows[0][0], flips[0])[:, 0]
        offsets = side_offsets(refinement, 1, index)
        for half in (0, 1):  # the two elements of a byte, one after the other
            mine = (offsets & 1) == half
            at, place = (offsets[mine] >> 1) - lows[1][0], 4 * (half ^ flips[1])
            theirs[at] = theirs[at] & (15 << 4 - place) | values[mine] << place


def _view(address: int, modes: list[CopyMode], name: str, element: int, writable: bool) -> Words:
    """Return a strided view of one side; its last axis is the first mode."""
    kind = np.dtype(f"u{element}") if element < 16 else np.dtype("V16")
    shape = tuple(m.size for m in reversed(modes))
    steps = tuple(getattr(m, name) * element for m in reversed(modes))
    low = sum(min((n - 1) * d, 0) for n, d in zip(shape, steps, strict=True))
    high = sum(max((n - 1) * d, 0) for n, d in zip(shape, steps, strict=True)) + element
    memory = (ctypes.c_char * (high - low)).from_address(address + low)
    found: Words = np.ndarray(shape, kind, memory, -low, steps)
    found.flags.writeable = writable
    return found


def _strided(refinement: Refinement, element: int, source: int, destination: int) -> None:
    modes = list(refinement.modes) or [CopyMode(1, 1, 1)]
    a = _view(source + refinement.starts[0] * element, modes, "source", element, False)
    b = _view(destination + refinement.starts[1] * element, modes, "destination", element, True)
    inner = min(range(len(modes)), key=lambda i: (modes[i].source == 0, abs(modes[i].source)))
    if inner == 0 or modes[inner].source == 0:
        b[...] = a
        return
    across = len(modes) - 1 - inner
    rows, columns = a.shape[across], a.shape[-1]
    if min(rows, columns) < BLOCKED:
        b[...] = a
        return
    # The side that is walked across its lines reads each line many times, so a block has only as many as a cache holds.
    a, b = (np.moveaxis(v, across, -2) for v in (a, b))
    for outer in itertools.product(*(range(n) for n in a.shape[:-2])):
        one, other = a[outer], b[outer]
        for r in range(0, rows, BLOCK):
            for c in range(0, columns, BLOCK):
                other[r : r + BLOCK, c : c + BLOCK] = one[r : r + BLOCK, c : c + BLOCK]
