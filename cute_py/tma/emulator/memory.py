"""Global memory, as named ranges with device addresses, and the shared memory of one CTA.

Both store bytes in numpy arrays. Instructions also accept a plain uint8 array for either: as global memory that starts
at a given address, or as shared memory that starts at address 0.

Rows of one length are read and written together, at any addresses, without a loop over elements: a row moves as one
item of a numpy void type with the length of the row.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from cute_py.argument_checks import expect, expect_integer, expect_integer_array, refuse_mask
from cute_py.errors import InvalidTypeError, InvalidValueError, TmaTrap, given, shortened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

Bytes: TypeAlias = "NDArray[np.uint8]"
Flags: TypeAlias = "NDArray[np.bool_]"
Integers: TypeAlias = "NDArray[np.int64]"
Chosen: TypeAlias = "slice | Integers"
"""Selection of rows or instructions: a range, or indices."""
IntegersLike: TypeAlias = "int | Sequence[int] | Sequence[Sequence[int]] | NDArray[np.integer]"
"""Input that `Integers` are made of: one integer, a sequence, rows of integers, or an array of any integer type."""

POISON = 0xCD
"""Fill byte of new shared memory. It shows bytes that nothing wrote."""

MAX_CTAS = 16
"""Largest number of CTAs of a cluster: 8 portably, 16 on sm_90 and sm_100 by opt-in. Source: CUDA C++ programming
guide, thread block clusters."""

SHARED_LIMIT = 1 << 32
"""End (exclusive) of shared-memory addresses, which have 32 bits."""

MAX_SHARED = 1 << 28
"""Largest emulated shared memory in bytes: a thousand times as much as on a GPU, for programs with many tiles."""

MAX_ALLOCATION = 1 << 40
"""Largest emulated allocation in bytes, more than a GPU has. The host refuses more than it has."""

ADDRESS_LIMIT = 1 << 63
"""End (exclusive) of byte addresses, which the engine stores as signed 64-bit numbers. GPUs have at most 57 bits."""

ILLEGAL_ADDRESS = "CUDA_ERROR_ILLEGAL_ADDRESS"


def as_bytes(array: NDArray[np.generic] | None, what: str, *, writable: bool) -> Bytes:
    """Return a one-dimensional view of a uint8 array.

    Raises:
        InvalidTypeError: the argument is not a numpy uint8 array, is not contiguous, or is not writable if it must be.
    """
    refuse_mask(array, what)
    if not isinstance(array, np.ndarray) or array.dtype != np.uint8:
        kind = array.dtype.name if isinstance(array, np.ndarray) else type(array).__name__
        raise InvalidTypeError(f"{what} must be a numpy array of uint8, not {kind}", hint="use array.view(numpy.uint8)")
    if not array.flags.c_contiguous:
        raise InvalidTypeError(f"{what} must be a contiguous array")
    if writable and not array.flags.writeable:
        raise InvalidTypeError(f"{what} must be a writable array")
    return array.reshape(-1).view(np.uint8)


def _address(value: int, what: str, nbytes: int) -> int:
    """Check and return the address of the first of `nbytes` bytes."""
    return expect_integer(value, what, 0, ADDRESS_LIMIT - nbytes, "bytes")


@dataclass(frozen=True, slots=True, eq=False)  # arrays have no one equality
class Range:
    """A named, contiguous range of global memory: `array[0]` is at `address`."""

    name: str
    address: int
    array: Bytes

    def __repr__(self) -> str:
        return f"<range {given(self.name)} at {self.bounds}>"

    @property
    def end(self) -> int:
        """End of the range: the address after the last byte."""
        return self.address + len(self.array)

    @property
    def bounds(self) -> str:
        """The first address and the end address, as a string."""
        return f"0x{self.address:x} to 0x{self.end:x}"


_start = operator.attrgetter("address")


class GlobalMemory:
    """Named ranges of bytes at device addresses; a descriptor may point into any of them.

    >>> memory = GlobalMemory()
    >>> a = memory.add("A", np.arange(64, dtype=np.uint8), address=0x7F0000000000)
    >>> memory.allocate("B", 256).address % 256
    0
    >>> memory.name_of(0x7F0000000010)
    'A + 16'
    """

    def __init__(self) -> None:
        self._ranges: list[Range] = []

    def __repr__(self) -> str:
        return (
            f"<global memory: {shortened(', '.join(f'{r.name} at {r.bounds}' for r in self._ranges)) or 'no ranges'}>"
        )

    @property
    def ranges(self) -> Sequence[Range]:
        """All ranges, in order of their addresses."""
        return self._ranges

    def add(self, name: str, array: NDArray[np.uint8], address: int) -> Range:
        """Add a range with the bytes of `array` at `address`. The array is not copied.

        Raises:
            InvalidTypeError: the name is not a string, the array not uint8, or the address not an integer.
            InvalidValueError: the name exists already, the address is below 0, or the range overlaps another.
        """
        array = as_bytes(array, f"range {given(expect(name, str, 'the name of a range'))}", writable=False)
        entry = Range(name, _address(address, f"the address of range {given(name)}", len(array)), array)
        for other in self._ranges:
            if other.name == name:
                raise InvalidValueError(f"a range named {given(name)} exists already")
            if entry.address < other.end and other.address < entry.end:
                facts: dict[str, object] = {name: entry.bounds, other.name: other.bounds}
                raise InvalidValueError(f"range {given(name)} overlaps {given(other.name)}", facts)
        bisect.insort(self._ranges, entry, key=_start)
        return entry

    def allocate(self, name: str, nbytes: int, *, alignment: int = 256) -> Range:
        """Add a zeroed range after all others, aligned like a device allocation.

        Raises:
            InvalidTypeError, InvalidValueError: see `add`; also: the size is negative or exceeds the memory of the
                host, or if the alignment is below 1.
        """
        expect(name, str, "the name of a range")
        nbytes = expect_integer(nbytes, "the size of a range", 0, MAX_ALLOCATION, "bytes")
        alignment = expect_integer(alignment, "the alignment of a range", 1, MAX_ALLOCATION, "bytes")
        top = max((r.end for r in self._ranges), default=0x7F00_0000_0000)
        address = -(-(top + 1) // alignment) * alignment if self._ranges else top
        try:
            array = np.zeros(nbytes, np.uint8)
        except MemoryError:
            raise InvalidValueError(
                f"the size of a range = {nbytes} bytes; the host does not have that much memory"
            ) from None
        return self.add(name, array, address)

    def __getitem__(self, name: str) -> Range:
        found = {entry.name: entry for entry in self._ranges}
        if expect(name, str, "the name of a range") in found:
            return found[name]
        raise InvalidValueError(f"no range named {given(name)}", {"known": ", ".join(found)})

    def find(self, address: int) -> Range | None:
        """Return the range that contains the byte at `address`, or None."""
        address = expect_integer(address, "an address")
        place = bisect.bisect(self._ranges, address, key=_start) - 1
        if place >= 0 and address < self._ranges[place].end:
            return self._ranges[place]
        return None

    def name_of(self, address: int) -> str:
        """Return the address of a byte as 'range + offset', or as a plain address if no range contains the byte."""
        entry = self.find(address)
        return f"{int(address):#x}" if entry is None else f"{entry.name} + {int(address) - entry.address}"

    def index_of(self, addresses: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index into `ranges` of the range that starts at or before each address; -1 if there is none."""
        wanted = expect_integer_array(addresses, "addresses")
        starts = np.asarray([entry.address for entry in self._ranges], np.int64)
        return np.searchsorted(starts, wanted, side="right").astype(np.int64) - 1


def as_global(gmem: Memory, gmem_base: int, *, writable: bool) -> GlobalMemory:
    """Return a `GlobalMemory` from either form that instructions accept."""
    if isinstance(gmem, GlobalMemory):
        _address(gmem_base, "gmem_base", 0)  # the address of an array; a `GlobalMemory` has its own addresses
        return gmem
    array = as_bytes(gmem, "gmem", writable=writable)
    start = _address(gmem_base, "gmem_base", len(array))
    memory = GlobalMemory()
    memory._ranges.append(Range("gmem", start, array))
    return memory


def unequal_bits(found: NDArray[np.generic], expected: NDArray[np.generic]) -> tuple[int, int] | None:
    """Compare two arrays bit by bit: (row-major index of the first different element, number of such elements).

    The result is None if all elements are equal.

    Args:
        found, expected: arrays of one shape and type.
    """
    whole = found.flags.c_contiguous and expected.flags.c_contiguous and found.nbytes % 8 == 0
    # Arrays are nearly always equal, so compare eight bytes at a time first.
    if whole and np.array_equal(found.reshape(-1).view(np.uint64), expected.reshape(-1).view(np.uint64)):
        return None
    size = found.dtype.itemsize
    if size in (1, 2, 4, 8):  # compare as integers: a NaN then equals itself, and 0 differs from -0
        found, expected = found.view(f"u{size}"), expected.view(f"u{size}")
    differ = np.asarray(found != expected)
    count = int(np.count_nonzero(differ))
    return (int(differ.argmax()), count) if count else None


# ---- rows ------------------------------------------------------------------------------------------------------------


def items(array: Bytes, size: int) -> NDArray[np.void]:
    """Return a view of `array` whose item i is the `size` bytes that start at byte i."""
    count = max(len(array) - size + 1, 0)
    return np.ndarray((count,), np.dtype(f"V{size}"), array, 0, (1,))


def _by_range(memory: GlobalMemory, address: Integers) -> list[tuple[int, Chosen]]:
    """List (range index, indices of addresses) for the ranges that contain the addresses.

    If there is only one range, the indices are a slice.
    """
    if not len(address):
        return []
    if len(memory.ranges) == 1 and int(address.min()) >= memory.ranges[0].address:
        return [(0, slice(None))]
    index = memory.index_of(address)
    if (index == index[0]).all():
        return [(int(index[0]), slice(None))]
    return [(int(which), np.flatnonzero(index == which)) for which in np.unique(index)]


def require_rows(memory: GlobalMemory, address: Integers, size: int, *, writing: bool) -> None:
    """Check that every byte of the rows at `address` is in a range, for writes in a writable range.

    Raises:
        TmaTrap: CUDA_ERROR_ILLEGAL_ADDRESS; the error gives the first byte outside all ranges.
        InvalidTypeError: a range is read-only.
    """
    for index, chosen in _by_range(memory, address):
        part = address[chosen]
        end = memory.ranges[index].end if index >= 0 else int(part[0])  # before all ranges: the first byte is outside
        bad = part[part > end - size]
        if len(bad):
            first = max(int(bad[0]), end)
            raise TmaTrap(
                ILLEGAL_ADDRESS,
                "the box reads or writes bytes of the tensor outside all memory ranges",
                {
                    "address": f"0x{first % 2**64:x}",
                    "ranges": "; ".join(f"{entry.name} {entry.bounds}" for entry in memory.ranges),
                },
            )
        require_writable(memory.ranges[index], writing)


def require_writable(entry: Range, writing: bool) -> None:
    """Check that a range that is written is writable.

    Raises:
        InvalidTypeError: the array of the range is read-only.
    """
    if writing and not entry.array.flags.writeable:
        raise InvalidTypeError(f"range {entry.name!r} must be a writable array")


def _held(
    memory: GlobalMemory, address: Integers, size: int
) -> Iterator[tuple[Chosen, NDArray[np.void], Integers, int]]:
    """Yield (indices of rows, items, indices of items, bytes) for each range and row length.

    A row ends at the end of its range.
    """
    for index, chosen in _by_range(memory, address):
        entry = memory.ranges[index]
        start = address[chosen] - entry.address
        if int(start.max()) + size <= len(entry.array):
            yield chosen, items(entry.array, size), start, size
            continue
        left = np.minimum(len(entry.array) - start, size)
        # Complete rows come first, then one length for each distance to the end of the range.
        for held in sorted(np.unique(left).tolist(), key=lambda held: held % size):
            same = left == held
            yield np.arange(len(address))[chosen][same], items(entry.array, held), start[same], held


def read_rows(memory: GlobalMemory, address: Integers, size: int) -> Bytes:
    """Read (m, size) bytes at (m,) addresses in ranges. Bytes past the end of a range read as 0."""
    out = None
    for chosen, kept, start, held in _held(memory, address, size):
        rows = kept[start].view(np.uint8).reshape(-1, held)
        if len(rows) == len(address) and held == size:
            return rows
        out = np.zeros((len(address), size), np.uint8) if out is None else out
        out[chosen, :held] = rows
    return np.zeros((len(address), size), np.uint8) if out is None else out


def write_rows(memory: GlobalMemory, address: Integers, rows: Bytes) -> None:
    """Write (m, size) bytes at (m,) addresses, in order.

    Bytes past the end of a range are dropped: a store rounds a row up to 16 bytes, so the row may end in memory that no
    range contains.
    """
    for chosen, kept, start, held in _held(memory, address, rows.shape[1]):
        kept[start] = np.ascontiguousarray(rows[chosen, :held]).view(f"V{held}").reshape(-1)


# ---- shared memory ---------------------------------------------------------------------------------------------------


class SharedMemory:
    """The shared memory of one CTA: its bytes, the address of the first byte, and its mbarriers.

    Args:
        nbytes: the size in bytes, or the uint8 array to use.
        base: shared-memory address of byte 0; swizzles act on addresses.
        poison: the initial value of every byte.
        rank: number of the CTA in its cluster, 0 to 15.
    Raises:
        InvalidTypeError, InvalidValueError: the size, base, poison or rank is invalid.

    >>> smem = SharedMemory(4096)
    >>> int(smem.array[0]), smem.base
    (205, 0)
    """

    space = "smem"

    def __init__(self, nbytes: int | NDArray[np.uint8], *, base: int = 0, poison: int = POISON, rank: int = 0) -> None:
        base = expect_integer(base, "the address of shared memory", 0, SHARED_LIMIT - 1, "bytes")
        poison = expect_integer(poison, "poison", 0, 255)
        if base % 16:
            raise InvalidValueError(f"shared memory at address {base}; must be a multiple of 16 bytes")
        if isinstance(nbytes, np.ndarray):
            self.array = as_bytes(nbytes, "smem", writable=True)
        else:
            count = expect_integer(nbytes, "bytes of shared memory", 0, MAX_SHARED)
            self.array = np.full(count, poison, np.uint8)
        self.base = base
        self.poison = poison
        self.rank = expect_integer(rank, "the index of a CTA in its cluster", 0, MAX_CTAS - 1)
        self.peers: tuple[SharedMemory, ...] = (self,)
        """The shared memories of all CTAs of the cluster, by rank."""
        self.barriers: dict[int, object] = {}
        """Offset in bytes -> the `Mbarrier` there."""

    def __len__(self) -> int:
        return len(self.array)

    def __repr__(self) -> str:
        return f"SharedMemory({len(self)}, base={self.base}, poison={self.poison}, rank={self.rank})"


def as_shared(smem: Window | None, *, writable: bool) -> SharedMemory:
    """Return a `SharedMemory` from either form that instructions accept."""
    if isinstance(smem, SharedMemory):
        return smem
    array = as_bytes(smem, "smem", writable=writable)
    wrapped = SharedMemory.__new__(SharedMemory)
    wrapped.array, wrapped.base, wrapped.poison, wrapped.rank = array, 0, POISON, 0
    wrapped.peers, wrapped.barriers = (wrapped,), {}
    return wrapped


Memory: TypeAlias = "GlobalMemory | Bytes"
Window: TypeAlias = "SharedMemory | Bytes"
"""The two forms of a memory that instructions accept."""
