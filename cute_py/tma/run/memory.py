"""Global memory as named ranges with real addresses, and the shared memory of one CTA.

Both hold bytes in numpy arrays. A plain uint8 array serves as either: global memory that starts at a given address, or
shared memory that starts at address 0.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cute_py.argument_checks import expect_integer
from cute_py.errors import InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from numpy.typing import NDArray

POISON = 0xCD
"""Byte that fresh shared memory is filled with, so that bytes that nothing wrote are seen."""

MAX_SHARED = 1 << 28
"""Bytes of emulated shared memory: a thousand times what a GPU has, for programs of many tiles at once."""

BASE_ALIGNMENT = 1024
"""Bytes: alignment of the start of shared memory, the largest repeat of a swizzle."""


def as_bytes(array: Any, what: str, *, writable: bool) -> NDArray[np.uint8]:
    """A one-dimensional view of a uint8 array.

    Raises:
        InvalidTypeError: not a numpy uint8 array, not contiguous, or not writable where it must be.
    """
    if not isinstance(array, np.ndarray) or array.dtype != np.uint8:
        kind = array.dtype.name if isinstance(array, np.ndarray) else type(array).__name__
        raise InvalidTypeError(f"{what} must be a numpy array of uint8, not {kind}", hint="use array.view(numpy.uint8)")
    if not array.flags.c_contiguous:
        raise InvalidTypeError(f"{what} must be a contiguous array")
    if writable and not array.flags.writeable:
        raise InvalidTypeError(f"{what} must be a writable array")
    return array.reshape(-1)


@dataclass(frozen=True, slots=True)
class Range:
    """A named stretch of global memory: `array[0]` is at `address`."""

    name: str
    address: int
    array: NDArray[np.uint8]

    @property
    def end(self) -> int:
        """One past the last address."""
        return self.address + len(self.array)


class GlobalMemory:
    """Named ranges of bytes at real addresses; a descriptor may point at any of them.

    >>> memory = GlobalMemory()
    >>> a = memory.add("A", np.arange(64, dtype=np.uint8), address=0x7F0000000000)
    >>> memory.allocate("B", 256).address % 256
    0
    >>> memory.name_of(0x7F0000000010)
    'A + 16'
    """

    def __init__(self) -> None:
        self._ranges: list[Range] = []
        self._starts: list[int] = []

    @property
    def ranges(self) -> Sequence[Range]:
        """All ranges, by address."""
        return self._ranges

    def add(self, name: str, array: NDArray[np.uint8], address: int) -> Range:
        """Make `array` the bytes at `address`. The array is used, not copied.

        Raises:
            InvalidValueError: the name is taken, or the range overlaps another.
        """
        entry = Range(name, int(address), as_bytes(array, f"range {name!r}", writable=False))
        for other in self._ranges:
            if other.name == name:
                raise InvalidValueError(f"a range named {name!r} exists already")
            if entry.address < other.end and other.address < entry.end:
                raise InvalidValueError(
                    f"range {name!r} overlaps {other.name!r}",
                    {
                        name: f"0x{entry.address:x} to 0x{entry.end:x}",
                        other.name: f"0x{other.address:x} to 0x{other.end:x}",
                    },
                )
        place = bisect.bisect(self._starts, entry.address)
        self._ranges.insert(place, entry)
        self._starts.insert(place, entry.address)
        return entry

    def allocate(self, name: str, nbytes: int, *, alignment: int = 256) -> Range:
        """A new zeroed range after all others, aligned as a device allocation is."""
        top = max((r.end for r in self._ranges), default=0x7F00_0000_0000)
        address = -(-(top + 1) // alignment) * alignment if self._ranges else top
        return self.add(name, np.zeros(nbytes, np.uint8), address)

    def __getitem__(self, name: str) -> Range:
        for entry in self._ranges:
            if entry.name == name:
                return entry
        raise InvalidValueError(f"no range named {name!r}", {"known": ", ".join(r.name for r in self._ranges)})

    def find(self, address: int) -> Range | None:
        """The range that holds the byte at `address`."""
        place = bisect.bisect(self._starts, address) - 1
        if place >= 0 and address < self._ranges[place].end:
            return self._ranges[place]
        return None

    def name_of(self, address: int) -> str:
        """'range + offset' of a byte, or its address if no range holds it."""
        entry = self.find(address)
        return f"0x{address:x}" if entry is None else f"{entry.name} + {address - entry.address}"

    def index_of(self, addresses: NDArray[np.int64]) -> NDArray[np.int64]:
        """Index into `ranges` of the range that starts at or before each address; -1 for none."""
        return np.searchsorted(np.asarray(self._starts, np.int64), addresses, side="right").astype(np.int64) - 1


def as_global(gmem: GlobalMemory | NDArray[np.uint8], gmem_base: int, *, writable: bool) -> GlobalMemory:
    """Global memory from either form that the instructions take."""
    if isinstance(gmem, GlobalMemory):
        return gmem
    array = as_bytes(gmem, "gmem", writable=writable)
    start = expect_integer(gmem_base, "gmem_base")
    memory = GlobalMemory()
    memory._ranges.append(Range("gmem", start, array))
    memory._starts.append(start)
    return memory


class SharedMemory:
    """The shared memory of one CTA: bytes, the address of the first, and the mbarriers that live in it.

    Args:
        nbytes: size in bytes, or the array of bytes to use.
        base: shared-memory address of byte 0; swizzles act on addresses.
        poison: value of every byte that nothing has written.
        rank: number of the CTA in its cluster.
    Raises:
        InvalidValueError: the base is not 16-byte aligned.

    >>> smem = SharedMemory(4096)
    >>> int(smem.array[0]), smem.base
    (205, 0)
    """

    space = "smem"

    def __init__(self, nbytes: int | NDArray[np.uint8], *, base: int = 0, poison: int = POISON, rank: int = 0) -> None:
        base = expect_integer(base, "the address of shared memory")
        if base % 16:
            raise InvalidValueError(f"shared memory at address {base}; must be a multiple of 16 bytes")
        if isinstance(nbytes, np.ndarray):
            self.array = as_bytes(nbytes, "smem", writable=True)
        else:
            count = expect_integer(nbytes, "bytes of shared memory")
            if not 0 <= count <= MAX_SHARED:
                raise InvalidValueError(f"{count} bytes of shared memory; must be 0 to {MAX_SHARED}")
            poison = expect_integer(poison, "poison")
            if not 0 <= poison <= 255:
                raise InvalidValueError(f"poison = {poison}; must be a byte, 0 to 255")
            self.array = np.full(count, poison, np.uint8)
        self.base = base
        self.poison = poison
        self.rank = rank
        self.peers: tuple[SharedMemory, ...] = (self,)
        """The shared memories of all CTAs of the cluster, by rank."""
        self.barriers: dict[int, Any] = {}
        """Offset in bytes -> the `Mbarrier` there."""

    def __len__(self) -> int:
        return len(self.array)


def as_shared(smem: SharedMemory | NDArray[np.uint8], *, writable: bool) -> SharedMemory:
    """Shared memory from either form that the instructions take."""
    if isinstance(smem, SharedMemory):
        return smem
    array = as_bytes(smem, "smem", writable=writable)
    wrapped = SharedMemory.__new__(SharedMemory)
    wrapped.array, wrapped.base, wrapped.poison, wrapped.rank = array, 0, POISON, 0
    wrapped.peers, wrapped.barriers = (wrapped,), {}
    return wrapped
