"""The events that a running machine reports: accesses, synchronisation, asynchronous work, and ends.

For each effect, an instruction calls one method of `Machine.observer`, with the frame of its threads and the site of
the instruction. The methods of `Observer` do nothing, and a run without judgement uses this class. A judge is a
subclass that overrides the events that it needs; `together` combines several observers into one.

A place in shared memory is an offset in `Machine.shared`, the array of all resident CTAs: CTA `place //
m.shared_stride`, byte `place % m.shared_stride`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cute_py.atom.smem_descriptor import DescriptorKind, Major

if TYPE_CHECKING:
    from cute_py.diagnostics import Diagnostic
    from cute_py.machine.sites import Site
    from cute_py.machine.threads import Array, Frame, Host
    from cute_py.tma.emulator.mbarrier import Mbarrier


@dataclass(frozen=True, slots=True)
class AccessOrder:
    """The memory order of an access, from its modifiers.

    Attributes:
        semantics: weak, relaxed, acquire, release, acq_rel, or volatile (also for mmio). scope: cta, cluster, gpu or
            sys; empty if the access has none.
    """

    semantics: str = "weak"
    scope: str = ""

    @property
    def acquires(self) -> bool:
        """Whether a read with this order acquires."""
        return self.semantics in ("acquire", "acq_rel")

    @property
    def releases(self) -> bool:
        """Whether a write with this order releases."""
        return self.semantics in ("release", "acq_rel")

    @property
    def strong(self) -> bool:
        """Whether threads can synchronise through this access."""
        return self.semantics != "weak"


WEAK: Final = AccessOrder()


@dataclass(slots=True)
class Touched:
    """Bytes that a transfer touches: `array[start : start + nbytes]`, or rows of `nbytes` bytes at `offsets`.

    array: `Machine.shared`, or the array of a range of global memory.
    """

    array: Array
    start: int
    nbytes: int
    offsets: Array | None = None


@dataclass(frozen=True, slots=True)
class OperandRead:
    """An operand of a wgmma or a tcgen05.mma in shared memory.

    Attributes:
        name: 'A' or 'B'. words: the 64 bits of its descriptor. extent: rows, M or N. depth: elements of K.
        bits: width of an element. start: place of the CTA's shared memory. kind: kind of the descriptor. element: the
            type that the instruction descriptor of a tcgen05.mma names; empty for wgmma.
    """

    name: str
    words: int
    major: Major
    extent: int
    depth: int
    bits: int
    start: int
    kind: DescriptorKind = DescriptorKind.WGMMA
    element: str = ""


@dataclass(frozen=True, slots=True)
class TensorColumns:
    """Columns of the tensor memory of a CTA. what: 'copy', 'D', 'SFA' or 'SFB'. last: one past the last column."""

    what: str
    cta: int
    first: int
    last: int


@dataclass(slots=True)
class AsyncWork:
    """Asynchronous work that was issued: a copy, or a product of a warpgroup.

    Attributes:
        kind: 'cp.async', 'bulk load', 'bulk store', 'tensor load', 'tensor store', 'bulk reduction',
            'tensor reduction', 'st.async', 'red.async', 'wgmma', 'tcgen05.mma' or 'tcgen05.cp'.
        reads, writes: bytes. They are known at the time of issue, under every schedule.
        barriers: places of the mbarriers at which the work completes bytes; nbytes: the number of bytes at each.
        group: 'bulk', 'cp.async' or 'wgmma' if the issuing thread waits for a group; 'tcgen05' if a commit arrives
            when the work is complete; else empty.
        rows: gives the rows of global memory of a tensor copy; a load reads them, and a store writes them.
        swizzle: width in bytes of the swizzle of a tensor copy's map, 16 without a swizzle. map_key: equal for equal
            maps.
        operands: operands of a wgmma or a tcgen05.mma. data_type: element type of a tensor copy's map, 'FLOAT16'.
            dims: extents of this map, innermost first; bits: width of its elements.
        cells: columns of tensor memory that a tcgen05.cp writes, or that hold the accumulators and scale factors of a
            tcgen05.mma. block: elements of K for each scale factor.
        readers: threads of a cp.async that read; the others write zeros.
    """

    kind: str
    reads: list[Touched] = field(default_factory=list)
    writes: list[Touched] = field(default_factory=list)
    barriers: list[int] = field(default_factory=list)
    nbytes: int = 0
    group: str = ""
    rows: Callable[[], list[Touched]] | None = None
    swizzle: int = 16
    map_key: Any = None
    operands: list[OperandRead] = field(default_factory=list)
    data_type: str = ""
    dims: tuple[int, ...] = ()
    bits: int = 0
    cells: list[TensorColumns] = field(default_factory=list)
    block: int = 0
    readers: Frame | None = None


class Observer:
    """Events of a run; the methods do nothing."""

    active: bool = False
    """Whether there is an observer; the machine computes data for observers only if this flag is set."""

    # ---- the run -----------------------------------------------------------------------------------------------------

    def began(self, m: Host) -> None:
        """CTAs begin to run together."""

    def ended(self, m: Host, failed: bool) -> None:
        """The CTAs have ended, or the run has failed; `m.agents` has the work in flight."""

    def exited(self, f: Frame) -> None:
        """Threads exit; they still count as alive."""

    def stuck(self, m: Host) -> None:
        """All threads wait and no work is in flight, so the run ends with a hang. `m.waiting` has the waiting
        threads."""

    def time_passes(self, m: Host) -> None:
        """All threads wait and nothing is under way; loops that read a clock or time out run once more."""

    # ---- accesses ----------------------------------------------------------------------------------------------------

    def read(self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder) -> None:
        """Threads read `nbytes` bytes each, at offsets (n,) of an array: `m.shared`, `m.local`, or the array of a
        range."""

    def wrote(
        self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder, values: Any = None
    ) -> None:
        """Threads write; called before the bytes change.

        values: (n,) or (n, k) numbers that the threads write, or one number for all threads; None if unknown.
        """

    def updated(self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder) -> None:
        """Threads read and write as one atomic operation."""

    # ---- order -------------------------------------------------------------------------------------------------------

    def fenced(self, f: Frame, site: Site) -> None:
        """fence or membar; `site.one.opcode` distinguishes them."""

    def warp_met(self, f: Frame, site: Site) -> None:
        """bar.warp.sync: the lanes that a mask names have met."""

    def gathered(self, f: Frame, site: Site) -> None:
        """An instruction of all lanes of a warp; some threads of the CTA may have exited."""

    def block_met(self, f: Frame, site: Site) -> None:
        """bar.sync: all live threads of each CTA of a frame have met, at one time."""

    def bar_arrived(self, f: Frame, site: Site, cta: int, number: int, waits: bool, expected: int | None) -> None:
        """Threads of one CTA arrive at a barrier. expected: the instruction's count, if it has one."""

    def bar_ended(self, m: Host, cta: int, number: int) -> None:
        """A round of a barrier has completed."""

    def cluster_arrived(self, f: Frame, site: Site, relaxed: bool) -> None:
        """barrier.cluster.arrive; called before the arrivals are counted."""

    def cluster_passed(self, f: Frame, site: Site) -> None:
        """barrier.cluster.wait: threads continue."""

    # ---- mbarriers ---------------------------------------------------------------------------------------------------

    def initialised(self, f: Frame, site: Site, place: int, count: int) -> None:
        """mbarrier.init at a place; called before the barrier exists."""

    def invalidated(self, f: Frame, site: Site, place: int) -> None:
        """mbarrier.inval; called while the barrier still exists."""

    def arrived(self, f: Frame, site: Site, place: int, barrier: Mbarrier, count: int, expected: int | None) -> None:
        """Threads arrive; called before the barrier counts the arrivals.

        count: arrivals of all these threads. expected: bytes of an arrive.expect_tx.
        """

    def expected(self, f: Frame, site: Site, place: int, barrier: Mbarrier, nbytes: int) -> None:
        """expect_tx without an arrival; called before the barrier counts it."""

    def phase_ended(self, m: Host, place: int, barrier: Mbarrier) -> None:
        """A phase of a barrier has completed; `barrier.phase` is the next one."""

    def passed(self, f: Frame, site: Site, places: Array, phases: Array, parity: bool) -> None:
        """Threads saw their phases complete: test_wait or try_wait returned true.

        phases: parities, or tokens.
        """

    # ---- asynchronous work -------------------------------------------------------------------------------------------

    def issued(self, f: Frame, site: Site, transfer: AsyncWork) -> None:
        """Work begins; it may complete now or later."""

    def landed(self, m: Host, place: int, barrier: Mbarrier, nbytes: int, at: int) -> None:
        """The transfer of instruction `at` delivers bytes to a barrier; called before the barrier counts them."""

    def committed(self, f: Frame, site: Site, group: str) -> None:
        """commit_group of 'bulk', 'cp.async' or 'wgmma'."""

    def waited(self, f: Frame, site: Site, group: str, left: int, reads: bool, everything: bool) -> None:
        """wait_group: all groups but the last `left` are complete.

        reads: `.read`; only the sources of the groups are free. everything: wait_all, which also covers transfers
            outside groups.
        """

    def copies_arrive(self, f: Frame, site: Site, places: Array, counted: bool) -> None:
        """cp.async.mbarrier.arrive: the barriers get an arrival when the copies so far are complete.

        counted: without `.noinc`; the arrival first raises the pending count.
        """

    def products_arrive(self, f: Frame, site: Site, place: int) -> None:
        """tcgen05.commit: a barrier gets an arrival when a thread's work is complete; `arrived` reports it next."""

    # ---- tensor maps in memory ---------------------------------------------------------------------------------------

    def map_changed(self, f: Frame, site: Site, cta: int, array: Array, start: int, released: str) -> None:
        """tensormap.replace or tensormap.cp_fenceproxy of one CTA has written the map at `array[start:]`.

        released: scope of a tensormap.cp_fenceproxy, which also releases; else empty.
        """

    def map_acquired(self, f: Frame, site: Site, cta: int, array: Array, start: int, scope: str) -> None:
        """fence.proxy.tensormap::generic.acquire of a map by threads of one CTA; `fenced` reports releases."""

    def map_read(self, f: Frame, site: Site, array: Array, start: int) -> None:
        """A tensor copy of one thread reads its map."""

    # ---- tensor memory -----------------------------------------------------------------------------------------------

    def tensor_used(
        self, f: Frame, site: Site, cta: int, region: tuple[int, int, int], writes: bool, committed: bool
    ) -> None:
        """One warp or thread reads or writes cells of a CTA's tensor memory.

        region: (mask of lanes, first column, one past the last). committed: a commit reports its completion.
        """

    def tensor_fenced(self, f: Frame, site: Site, after: bool) -> None:
        """tcgen05.fence::after_thread_sync, or ::before_thread_sync."""

    # ---- warps -------------------------------------------------------------------------------------------------------

    def multiplied(self, f: Frame, site: Site) -> None:
        """wgmma.mma_async of one warpgroup; `issued` reports its accesses to memory."""

    def multiply_fenced(self, f: Frame, site: Site) -> None:
        """wgmma.fence."""

    def registers_set(self, f: Frame, site: Site, count: int, increases: bool) -> None:
        """setmaxnreg."""

    def findings(self) -> list[Diagnostic]:
        """Return the findings so far."""
        return []


EVENTS: Final = tuple(
    name
    for name, value in vars(Observer).items()
    if callable(value) and not name.startswith("_") and name != "findings"
)


class _Together(Observer):
    def __init__(self, observers: Sequence[Observer]) -> None:
        self.observers = tuple(observers)
        self.active = any(one.active for one in observers)
        for name in EVENTS:
            listeners = [
                getattr(one, name) for one in observers if getattr(type(one), name) is not getattr(Observer, name)
            ]
            if len(listeners) == 1:
                setattr(self, name, listeners[0])
            elif listeners:
                setattr(self, name, _each(listeners))

    def findings(self) -> list[Diagnostic]:
        return [found for one in self.observers for found in one.findings()]


def _each(listeners: Sequence[Callable[..., None]]) -> Callable[..., None]:
    def report(*args: Any) -> None:
        for one in listeners:
            one(*args)

    return report


def together(observers: Sequence[Observer]) -> Observer:
    """Return one observer that forwards each event to the observers that override its method."""
    return _Together(observers)
