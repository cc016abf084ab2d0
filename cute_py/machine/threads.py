"""The threads of the CTAs that run together, their registers, and groups of threads that run in step.

All resident threads are numbered consecutively, CTA after CTA, with each CTA padded to whole warps. A register is a row
of values, one per thread. The registers of one width form one array, called a bank:

    bank     dtype      views for instructions
    1 bit    bool       pred
    16       uint16     u16 s16 f16        (also registers of 8 bits)
    32       uint32     u32 s32 f32
    64       uint64     u64 s64 f64        (a register of 128 bits is two of these)

A key, `16 * place + code`, names the row at index `place` of a bank and the type that it is read as. A `Frame` is a
set of threads: `get` returns their values of a row, and `put` writes them. A frame of consecutive threads (`lo` to
`hi`) reads and writes views of the rows, without copies. A scattered frame gathers and scatters by index. Instructions
work with both: one numpy operation runs all threads at one instruction, across warps and CTAs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
Places = TypeVar("Places", int, "NDArray[Any]")
"""One index, or an array of indices."""
Reader: TypeAlias = "Callable[[Frame], Any]"
"""The numbers of an operand, or one number for all threads."""
Writer: TypeAlias = "Callable[[Frame, Any], None]"
Run: TypeAlias = "Callable[[Frame], None]"
"""An instruction on a frame."""
Control: TypeAlias = "Callable[[Frame], list[tuple[int, Frame]] | None]"
"""An instruction that may stop threads or branch: it returns (program counter, threads), or None if all continue."""

LANES: Final = 32
WARPGROUP: Final = 128
BOOL, U16, S16, F16, U32, S32, F32, U64, S64, F64 = range(10)
"""Type -> code that reads a row as this type."""
DTYPES: Final[tuple[Any, ...]] = (
    np.dtype(np.bool_),
    np.dtype(np.uint16), np.dtype(np.int16), np.dtype(np.float16),
    np.dtype(np.uint32), np.dtype(np.int32), np.dtype(np.float32),
    np.dtype(np.uint64), np.dtype(np.int64), np.dtype(np.float64),
)  # fmt: skip
BANK_OF: Final = (0, 1, 1, 1, 2, 2, 2, 3, 3, 3)
"""Code -> number of the bank."""
BANK_BITS: Final = (1, 16, 32, 64)
BANK_DTYPES: Final[tuple[Any, ...]] = (np.bool_, np.uint16, np.uint32, np.uint64)
MAX_SUBSETS: Final = 128
"""Maximum number of remembered subsets of a frame."""


class Registers:
    """The rows of all registers, in banks by width.

    Args:
        counts: number of rows in each bank. threads: number of threads, the length of a row.
    """

    def __init__(self, counts: Sequence[int], threads: int) -> None:
        self.threads = threads
        self.banks = [np.zeros((count, threads), dtype) for count, dtype in zip(counts, BANK_DTYPES, strict=True)]
        self.typed: list[Array] = []
        self._view()

    def _view(self) -> None:
        self.typed = [self.banks[BANK_OF[code]].view(dtype) for code, dtype in enumerate(DTYPES)]

    def grow(self, counts: Sequence[int]) -> None:
        """Enlarge the banks to these numbers of rows; existing rows keep their values."""
        for place, count in enumerate(counts):
            old = self.banks[place]
            if count > len(old):
                self.banks[place] = np.zeros((count, self.threads), old.dtype)
                self.banks[place][: len(old)] = old
        self._view()


class Host(Protocol):
    """The part of a machine that frames and instructions use; `schedule.Machine` documents the members."""

    registers: Registers
    live: Array
    live_ctas: Array
    exits: int
    count: int
    ctas: int
    cta_threads: int
    cluster_size: int
    shape: Any
    numbers: Array
    code: Any
    memory: Any
    shared: Array
    shared_base: int
    shared_bytes: int
    shared_stride: int
    windows: list[Any]
    local: Array
    local_stride: int
    local_bytes: int
    frames: Array
    depth: Array
    last_range: dict[int, Any]
    state: dict[Any, Any]
    totals: Any
    waiting: list[Any]
    agents: list[Any]
    version: int
    looked: bool
    asynchronous: bool
    eager: bool
    dice: Any
    observer: Any

    def frame(self, threads: Array) -> Frame: ...

    def span(self, lo: int, hi: int) -> Frame: ...

    def union(self, one: Frame, other: Frame) -> Frame: ...

    def row(self, name: str, made: Callable[[], Array]) -> Array: ...

    def frame_starts(self, f: Frame) -> Array: ...

    def grow_local(self, needed: int) -> bool: ...

    def shared_window(self, f: Frame) -> Any: ...

    def shared_row(self, f: Frame) -> Any: ...

    def thread_text(self, thread: int) -> str: ...

    def threads_text(self, threads: Array) -> str: ...

    def address_text(self, address: int) -> str: ...

    def wait(self, waiting: Any) -> None: ...

    def changed(self) -> None: ...

    def under_way(self, what: str, at: int, complete: Callable[[], None], *, waited_for: bool = False) -> Any: ...

    def finish(self, agent: Any) -> None: ...

    def exited(self, f: Frame) -> None: ...


def groups_of_cta(cta_threads: int) -> int:
    """The number of warpgroups of a CTA; the last one may be incomplete."""
    return -(-cta_threads // WARPGROUP)


def warpgroup_of(m: Host, threads: Places) -> Places:
    """The index of the warpgroup of each thread. The first warp of a CTA begins a warpgroup.

    Source: PTX ISA 9.0, wgmma: a warpgroup is four contiguous warps, and the rank of the first is a multiple of 4.
    """
    if m.cta_threads % WARPGROUP == 0:
        found: Places = threads // WARPGROUP
    else:
        found = threads // m.cta_threads * groups_of_cta(m.cta_threads) + threads % m.cta_threads // WARPGROUP
    return found


def broadcast(value: Any, frame: Frame) -> Array:
    """Broadcast a value to one per thread of a frame."""
    if type(value) is np.ndarray and value.shape == (frame.n,):
        return value
    return np.broadcast_to(value, (frame.n,))


class Frame:
    """A set of threads that run in step, with sorted indices."""

    def __init__(self, machine: Host, threads: Array, lo: int, hi: int) -> None:
        self.m = machine
        self.threads = threads
        self.n = len(threads)
        self.lo, self.hi = lo, hi
        self.cache: dict[Any, Any] = {}
        self._subsets: dict[bytes, Frame] = {}

    def get(self, key: int) -> Array:
        """Return these threads' values of the row with this key."""
        raise NotImplementedError

    def put(self, key: int, value: Any) -> None:
        """Write values of these threads into the row with this key."""
        raise NotImplementedError

    def take(self, row: Array) -> Array:
        """Select the values of these threads from a row of all threads."""
        raise NotImplementedError

    def subset(self, chosen: Array) -> Frame:
        """Return the frame of the threads whose flag (n,) is set."""
        key = chosen.tobytes()
        found = self._subsets.get(key)
        if found is None:
            if len(self._subsets) >= MAX_SUBSETS:
                self._subsets.clear()
            found = self._subsets[key] = self.m.frame(self.threads[chosen])
        return found

    # ---- where the threads are ---------------------------------------------------------------------------------------

    @functools.cached_property
    def ctas(self) -> Array:
        """Index of the CTA of each thread, among the CTAs that run together."""
        found: Array = self.threads // self.m.cta_threads
        return found

    @functools.cached_property
    def parts(self) -> list[tuple[int, slice]]:
        """(CTA, slice of the frame's threads) for each CTA of the frame."""
        starts = np.flatnonzero(np.r_[True, self.ctas[1:] != self.ctas[:-1]]).tolist()
        ends = [*starts[1:], self.n]
        return [(int(self.ctas[a]), slice(a, b)) for a, b in zip(starts, ends, strict=True)]

    @functools.cached_property
    def warps(self) -> Array:
        """Indices of the warps that have a thread in the frame."""
        return np.unique(self.threads // LANES)

    @functools.cached_property
    def groups(self) -> Array:
        """Indices of the warpgroups that have a thread in the frame."""
        return np.unique(warpgroup_of(self.m, self.threads))

    @functools.cached_property
    def warp_count(self) -> int:
        """Number of warps that have a thread in the frame."""
        return len(self.warps)

    @functools.cached_property
    def lanes(self) -> Array:
        """Lane of each thread, (n,)."""
        found: Array = self.threads % LANES
        return found

    @functools.cached_property
    def places(self) -> Array | None:
        """Flat index (n,) of each thread in (warp, lane) arrays; None if thread i of the frame has index i."""
        if self.n == LANES * len(self.warps):
            return None
        found: Array = np.searchsorted(self.warps, self.threads // LANES) * LANES + self.lanes
        return found

    @functools.cached_property
    def present(self) -> Array:
        """Flags (warps, 32): whether the thread of each lane is in the frame."""
        found = np.zeros(len(self.warps) * LANES, np.bool_)
        found[slice(None) if self.places is None else self.places] = True
        return found.reshape(-1, LANES)

    def by_warp(self, value: Array) -> Array:
        """Arrange values (n,) as (warps, 32), with 0 for threads outside the frame."""
        if self.places is None:
            return broadcast(value, self).reshape(-1, LANES)
        found = np.zeros(len(self.warps) * LANES, value.dtype)
        found[self.places] = value
        return found.reshape(-1, LANES)

    def of_warps(self, value: Array) -> Array:
        """Select the values of these threads from an array (warps, 32), as (n,)."""
        flat = value.reshape(-1)
        return flat if self.places is None else flat[self.places]

    def whole(self) -> bool:
        """Whether the frame has all live threads of each of its warps."""
        if self.places is None:
            return True
        kept = self.cache.get("whole")
        if kept is None or kept[0] != self.m.exits:
            live = self.m.live.reshape(-1, LANES)[self.warps]
            kept = self.cache["whole"] = (self.m.exits, bool((self.present == live).all()))
        return bool(kept[1])

    def whole_groups(self) -> bool:
        """Whether the frame consists of whole warpgroups."""
        return self.n == WARPGROUP * len(self.groups)

    def rows(self, code: int, places: Any) -> Array:
        """Read several rows as (k, n): a view if `places` is a slice and the threads are consecutive."""
        raise NotImplementedError

    def put_rows(self, code: int, places: Any, value: Array) -> None:
        """Write values (k, n) into several rows."""
        raise NotImplementedError

    def text(self) -> str:
        """Text that names the threads, such as `CTA (0, 0, 0), threads 0 to 31`."""
        return self.m.threads_text(self.threads)


class Span(Frame):
    """Frame of all threads from `lo` to `hi` - 1."""

    def get(self, key: int) -> Array:
        found = self.cache.get(key)
        if found is None:
            found = self.cache[key] = self.m.registers.typed[key & 15][key >> 4, self.lo : self.hi]
        return found

    def put(self, key: int, value: Any) -> None:
        found = self.cache.get(key)
        if found is None:
            found = self.cache[key] = self.m.registers.typed[key & 15][key >> 4, self.lo : self.hi]
        found[...] = value

    def take(self, row: Array) -> Array:
        return row[self.lo : self.hi]

    def rows(self, code: int, places: Any) -> Array:
        """Read several rows as (k, n): a view if `places` is a slice."""
        found: Array = self.m.registers.typed[code][places, self.lo : self.hi]
        return found

    def put_rows(self, code: int, places: Any, value: Array) -> None:
        """Write values (k, n) into several rows."""
        self.m.registers.typed[code][places, self.lo : self.hi] = value


class Scattered(Frame):
    """Frame of threads that are not consecutive."""

    def get(self, key: int) -> Array:
        found: Array = self.m.registers.typed[key & 15][key >> 4][self.threads]
        return found

    def put(self, key: int, value: Any) -> None:
        self.m.registers.typed[key & 15][key >> 4][self.threads] = value

    def take(self, row: Array) -> Array:
        return row[self.threads]

    def rows(self, code: int, places: Any) -> Array:
        """Read several rows as (k, n), always a copy."""
        found: Array = self.m.registers.typed[code][places][:, self.threads]
        return found

    def put_rows(self, code: int, places: Any, value: Array) -> None:
        """Write values (k, n) into several rows."""
        if isinstance(places, slice):
            self.m.registers.typed[code][places, self.threads] = value
        else:
            self.m.registers.typed[code][np.asarray(places)[:, None], self.threads] = value


def each_thread(one: Callable[[Frame], None]) -> Run:
    """Wrap an instruction so that each thread executes it separately."""

    def run(f: Frame) -> None:
        if f.n == 1:
            one(f)
            return
        for thread in f.threads.tolist():
            one(f.m.span(thread, thread + 1))

    return run
