"""The memories of a kernel, and the conversion of addresses to offsets in numpy arrays.

    global, const   named ranges: arguments, variables of the module; each has bounds, with gaps between them
    param           the bytes of the kernel's parameters, a read-only range of global memory
    shared          one array for all resident CTAs; the addresses of a CTA begin at 1024, after the system's bytes, and
                    have the rank of the CTA in its cluster in bits 24 and up
    local           one array for all resident threads: local variables, and parameters of called functions
    generic         global addresses; shared memory at `SHARED_WINDOW`, local memory at `LOCAL_WINDOW`. The low 32 bits
                    of both starts are larger than any shared address, so that a generic address that a kernel shortens
                    to 32 bits, instead of converting it with cvta, is out of bounds

Before every access, the machine checks that the address is in bounds, aligned, and in the memory that the instruction's
state space names. If not, a fault ends the run; it names the argument, the thread and the line.

Source: PTX ISA 9.0, state spaces, generic addressing, alignment. Shared addresses have the rank of the CTA in bits 24
and up because CUTLASS finds the peer of a pair in this way (`Sm100MmaPeerBitMask`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from cute_py.machine.faults import Refused
from cute_py.machine.sites import Address, Site
from cute_py.machine.threads import Array, Frame, Host, broadcast
from cute_py.tma.descriptor.request import TensorMap
from cute_py.tma.emulator.memory import GlobalMemory, Range

SHARED_WINDOW: Final = 0x7E00_1000_0000
SHARED_WINDOW_BYTES: Final = 1 << 28
LOCAL_WINDOW: Final = 0x7E80_2000_0000
LOCAL_WINDOW_BYTES: Final = 1 << 28
GLOBAL_START: Final = 0x7F00_0000_0000
RANK_SHIFT: Final = 24
SOURCE: Final = "state spaces, alignment of memory accesses"

Place: TypeAlias = tuple[Array, Array]
"""An array of bytes, and the (n,) offset in it of each thread's access."""
Locate: TypeAlias = Callable[[Frame], Place]


LOW_WORD: Final = 0xFFFFFFFF

Whole = TypeVar("Whole", int, Array)


def in_peer(inside: Whole, rank: Whole) -> Whole:
    """Return the address in shared memory of the CTA of this rank that has the same offset as an address of any CTA.

    >>> hex(in_peer(0x2000408, 1))
    '0x1000408'
    """
    return (inside & (1 << RANK_SHIFT) - 1) | rank << RANK_SHIFT


class Memory:
    """Global memory of a run: its ranges, the kernel's parameters, and the addresses of the module's variables."""

    def __init__(self) -> None:
        self.ranges = GlobalMemory()
        self.symbols: dict[str, int] = {}
        self.read_only: set[str] = set()
        self.top = GLOBAL_START
        self.parameters: Range = Range("parameters", 0, np.zeros(0, np.uint8))
        self.heap: Any = None
        """The heap of `malloc`, once a thread has called it."""
        self.workspace = 0
        """Address of the workspace of a cooperative launch; 0 in another launch."""
        self._typed: dict[tuple[int, str, int], Array] = {}
        self.unknown_maps: Mapping[bytes, TensorMap] = {}
        """Bytes that represent a tensor map with unknown bits -> its request."""

    def add(self, name: str, array: Array, *, alignment: int = 512, writable: bool = True) -> Range:
        """Add an array as a new range behind all other ranges, with a gap before it."""
        address = -(-(self.top + 256) // alignment) * alignment
        made = self.ranges.add(name, array, address)
        self.top = made.end
        if not writable:
            self.read_only.add(name)
        return made

    def forget(self) -> None:
        """Drop the cached views of arrays, including arrays of CTAs that have ended."""
        self._typed.clear()

    def typed(self, array: Array, dtype: Any, vector: int = 1) -> Array:
        """Return a cached view of bytes as values of a dtype: (k,) or (k, vector)."""
        key = (id(array), dtype.str, vector)
        found = self._typed.get(key)
        if found is None:
            size = dtype.itemsize * vector
            found = array[: len(array) // size * size].view(dtype)
            if vector > 1:
                found = found.reshape(-1, vector)
            self._typed[key] = found
        return found


# ---- addresses of operands -------------------------------------------------------------------------------------------


def address_reader(site: Site, one: Address, space: str) -> Callable[[Frame], Array]:
    """Return a function of a frame that computes the addresses of an operand, int64 (n,), in the space that the
    instruction names.

    The sum of a 32-bit register and a number is a 32-bit address: NVRTC moves numbers out of 32-bit sums that wrap.
    """
    added = one.added
    if one.base is not None:
        base = one.base

        def displaced(f: Frame) -> Array:
            start = broadcast(base(f), f)
            found = start.astype(np.int64) + added
            return found & LOW_WORD if start.dtype.itemsize == 4 else found

        return displaced if added else lambda f: broadcast(base(f), f).astype(np.int64)
    symbol = one.symbol
    if one.space == "shared":
        offsets = site.code.shared_offsets
        window = SHARED_WINDOW if space == "generic" else 0
        return lambda f: np.broadcast_to(
            f.m.shared_window(f).astype(np.int64) + (offsets[symbol] + added + window), (f.n,)
        )
    if one.space == "local":
        offset, framed = site.code.local_place(symbol)
        start = offset + added
        if space == "generic":
            start += LOCAL_WINDOW
        if framed:
            return lambda f: f.m.frame_starts(f) + start
        return lambda f: np.full(f.n, start, np.int64)
    if one.space == "entry":
        start = site.code.parameter_offsets[symbol] + added
        return lambda f: np.full(f.n, f.m.memory.parameters.address + start, np.int64)
    return lambda f: np.full(f.n, f.m.memory.symbols[symbol] + added, np.int64)


_SPACES: Final = {
    "global": "global", "const": "global", "shared": "shared", "shared::cta": "shared", "shared::cluster": "shared",
    "local": "local", "param": "param", "param::entry": "param", "param::func": "param", "generic": "generic",
}  # fmt: skip
_OWN: Final = {"const": "global", "entry": "param"}


def locate(site: Site, operand: int, space: str, size: int, *, writes: bool) -> Locate:
    """Return a function of a frame that finds the bytes that an address operand accesses: (array, offsets).

    Args:
        space: the space that the instruction names; 'generic' if it names none.
        size: bytes of one access; the address must be a multiple of this size.
    """
    return locate_address(site, site.address(operand), space, size, writes=writes)


def locate_address(site: Site, one: Address, space: str, size: int, *, writes: bool) -> Locate:
    """Return the function of `locate` for an `Address` instead of an operand's index."""
    kind = _SPACES.get(space)
    if kind is None:
        raise Refused(f"{site.one.opcode}: the state space .{space} is not emulated")
    if one.base is None and one.space:
        own = "local" if one.space == "local" and kind == "param" else _OWN.get(one.space, one.space)
        if kind == "param" and one.space == "local":
            kind = "local"
        elif kind not in ("generic", own) and not (kind == "global" and own == "param"):
            raise Refused(f"{site.one.opcode}: {one.symbol} is in .{one.space}; must be in .{space}")
    addresses = address_reader(site, one, kind)
    if kind == "shared":
        return lambda f: _shared(f, site, addresses(f), size)
    if kind == "local":
        return lambda f: _local(f, site, addresses(f), size)
    if kind in ("global", "param"):
        return lambda f: _global(f, site, addresses(f), size, writes)
    return lambda f: generic_place(f, site, addresses(f), size, writes)


def place_of(f: Frame, site: Site, space: str, addresses: Array, size: int, writes: bool) -> Place:
    """Return (array, offsets) for addresses (n,) in global, shared or generic memory."""
    if space.startswith("shared"):
        return _shared(f, site, addresses, size)
    if space == "global":
        return _global(f, site, addresses, size, writes)
    return generic_place(f, site, addresses, size, writes)


def generic_place(f: Frame, site: Site, addresses: Array, size: int, writes: bool) -> Place:
    """Return (array, offsets) for generic addresses that are all in one memory."""
    low, high = int(addresses.min()), int(addresses.max())
    if low >= SHARED_WINDOW and high < SHARED_WINDOW + SHARED_WINDOW_BYTES:
        return _shared(f, site, addresses - SHARED_WINDOW, size)
    if low >= LOCAL_WINDOW and high < LOCAL_WINDOW + LOCAL_WINDOW_BYTES:
        return _local(f, site, addresses - LOCAL_WINDOW, size)
    if high < SHARED_WINDOW or low >= GLOBAL_START:
        return _global(f, site, addresses, size, writes)
    raise _Mixed


class _Mixed(Exception):
    """Raised if the generic addresses of one instruction are in several memories."""


def by_memory(f: Frame, addresses: Array) -> list[Array]:
    """Flags (n,) of the threads whose addresses are in shared, local and global memory; a memory that does not occur is
    left out.
    """
    shared = (addresses >= SHARED_WINDOW) & (addresses < SHARED_WINDOW + SHARED_WINDOW_BYTES)
    local = (addresses >= LOCAL_WINDOW) & (addresses < LOCAL_WINDOW + LOCAL_WINDOW_BYTES)
    return [flags for flags in (shared, local, ~(shared | local)) if flags.any()]


def parted(run: Callable[[Frame], None], addresses: Callable[[Frame], Array] | None) -> Callable[[Frame], None]:
    """Wrap an access so that it runs once for each memory, if its generic addresses are in several memories."""
    if addresses is None:
        return run
    where = addresses

    def go(f: Frame) -> None:
        try:
            run(f)
        except _Mixed:
            for flags in by_memory(f, where(f)):
                run(f.subset(flags))

    return go


def _misaligned(f: Frame, site: Site, addresses: Array, size: int) -> None:
    if size > 1 and int(np.bitwise_or.reduce(addresses)) & size - 1:
        place = int(np.flatnonzero(addresses & size - 1)[0])
        text = (
            f"{f.m.thread_text(f.threads[place])} accesses {size} bytes at {f.m.address_text(int(addresses[place]))}; "
            f"the address must be a multiple of {size}"
        )
        raise site.fault("misaligned", text, source=SOURCE, address=int(addresses[place]))


def _global(f: Frame, site: Site, addresses: Array, size: int, writes: bool) -> Place:
    memory = f.m.memory
    _misaligned(f, site, addresses, size)
    low, high = int(addresses.min()), int(addresses.max())
    found = f.m.last_range.get(site.number)
    if found is None or low < found.address or high + size > found.end:
        found = memory.ranges.find(low)
        if found is None or high + size > found.end:
            return _several(f, site, addresses, size, writes)
        f.m.last_range[site.number] = found
    if writes and found.name in memory.read_only:
        raise _refused_write(f, site, found, int(addresses[0]))
    return found.array, addresses - found.address


def _refused_write(f: Frame, site: Site, found: Range, address: int) -> Exception:
    text = f"{f.m.thread_text(f.threads[0])} writes to {found.name}, which is read-only"
    return site.fault("wrong space", text, source=SOURCE, address=address)


def _several(f: Frame, site: Site, addresses: Array, size: int, writes: bool) -> Place:
    """Check that each access is in bounds of its range, and raise `SeveralRanges`."""
    memory = f.m.memory
    index = memory.ranges.index_of(addresses)
    for which in np.unique(index).tolist():
        chosen = np.flatnonzero(index == which)
        found = memory.ranges.ranges[which] if which >= 0 else None
        bad = chosen if found is None else chosen[addresses[chosen] + size > found.end]
        if len(bad):
            raise _outside(f, site, addresses, int(bad[0]), size, found)
        if writes and found is not None and found.name in memory.read_only:
            raise _refused_write(f, site, found, int(addresses[chosen[0]]))
    raise SeveralRanges(index)


class SeveralRanges(Exception):
    """Raised if the global addresses of one instruction are in several ranges; `.index` is the range of each thread."""

    def __init__(self, index: Array) -> None:
        super().__init__()
        self.index = index


def each_range(run: Callable[[Frame], None]) -> Callable[[Frame], None]:
    """Wrap an access so that it runs once for each range, if its addresses are in several ranges."""

    def go(f: Frame) -> None:
        try:
            run(f)
        except SeveralRanges as several:
            for which in np.unique(several.index).tolist():
                run(f.subset(several.index == which))

    return go


def _outside(f: Frame, site: Site, addresses: Array, place: int, size: int, before: Range | None) -> Exception:
    address = int(addresses[place])
    who = f.m.thread_text(f.threads[place])
    what = f"{who} accesses {size} bytes at {address:#x}"
    facts: dict[str, Any] = {"address": address}
    ranges = f.m.memory.ranges.ranges
    later = next((one for one in ranges if one.address > address), None)
    if before is not None and address - before.end < 1 << 30:
        behind = address + size - before.end
        facts["range"] = before.name
        text = f"{what}, {behind} bytes past the end of {before.name}, which has {len(before.array)} bytes"
    elif later is not None and later.address - address < 1 << 30:
        facts["range"] = later.name
        text = f"{what}, {later.address - address} bytes before {later.name}"
    elif address < 4096:
        text = f"{what}, a null pointer"
    elif address < SHARED_WINDOW:
        text = f"{what}; no argument or variable is near this address"
    else:
        text = f"{what}, which is in shared or local memory"
    return site.fault("out of bounds", text, f.subset(_only(f.n, place)), source=SOURCE, **facts)


def _only(n: int, place: int) -> Array:
    found = np.zeros(n, np.bool_)
    found[place] = True
    return found


def _shared(f: Frame, site: Site, addresses: Array, size: int) -> Place:
    _misaligned(f, site, addresses, size)
    m = f.m
    inside = addresses - m.shared_window(f)
    low, high = int(inside.min()), int(inside.max())
    if low >= 0 and high + size <= m.shared_bytes:
        return m.shared, inside + m.shared_row(f)
    return _peers(f, site, addresses, size)


def _peers(f: Frame, site: Site, addresses: Array, size: int) -> Place:
    """Return (array, offsets) for addresses in the shared memory of a cluster; the addresses contain CTA ranks."""
    m: Host = f.m
    rank = addresses >> RANK_SHIFT
    inside = (addresses & (1 << RANK_SHIFT) - 1) - m.shared_base
    bad = (rank < 0) | (rank >= m.cluster_size) | (inside < 0) | (inside + size > m.shared_bytes)
    if bad.any():
        place = int(np.flatnonzero(bad)[0])
        address = int(addresses[place])
        limit = m.shared_base + m.shared_bytes
        where = f"; the shared memory of a CTA is {m.shared_base:#x} to {limit:#x}, {m.shared_bytes} bytes"
        if address >= GLOBAL_START:
            where = ", which is an address of global memory"
        text = f"{m.thread_text(f.threads[place])} accesses {size} bytes at shared address {address:#x}{where}"
        rule = "wrong space" if address >= SHARED_WINDOW else "out of bounds"
        raise site.fault(rule, text, f.subset(_only(f.n, place)), source=SOURCE, address=address)
    cta = f.ctas // m.cluster_size * m.cluster_size + rank
    live = m.live_ctas[cta]
    if not live.all():
        place = int(np.flatnonzero(~live)[0])
        text = f"{m.thread_text(f.threads[place])} accesses the shared memory of a CTA that has exited"
        raise site.fault("exited peer", text, f, source="distributed shared memory", address=int(addresses[place]))
    return m.shared, inside + cta * m.shared_stride


def _local(f: Frame, site: Site, addresses: Array, size: int) -> Place:
    _misaligned(f, site, addresses, size)
    m = f.m
    low, high = int(addresses.min()), int(addresses.max())
    if low < 0 or high + size > m.local_bytes:
        place = int(np.flatnonzero((addresses < 0) | (addresses + size > m.local_bytes))[0])
        text = (
            f"{m.thread_text(f.threads[place])} accesses {size} bytes at local address "
            f"{int(addresses[place]):#x}; a thread has {m.local_bytes} bytes"
        )
        raise site.fault("out of bounds", text, source=SOURCE, address=int(addresses[place]))
    return m.local, addresses + f.threads * m.local_stride


# ---- bytes at an address, for instructions that are not vectorised ---------------------------------------------------


def host_place(m: Host, cta: int, address: int) -> tuple[Array, int] | None:
    """Return (array, offset) for a generic address in a thread of a CTA; None if no memory contains the address."""
    if SHARED_WINDOW <= address < SHARED_WINDOW + SHARED_WINDOW_BYTES:
        inside = address - SHARED_WINDOW
        peer = cta // m.cluster_size * m.cluster_size + (inside >> RANK_SHIFT)
        offset = (inside & (1 << RANK_SHIFT) - 1) - m.shared_base
        if 0 <= offset < m.shared_bytes and inside >> RANK_SHIFT < m.cluster_size:
            return m.shared[peer * m.shared_stride : peer * m.shared_stride + m.shared_bytes], offset
        return None
    found = m.memory.ranges.find(address)
    return None if found is None else (found.array, address - found.address)
