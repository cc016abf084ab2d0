"""The events that a running machine reports to observers: accesses, synchronisation, asynchronous work, and exits.

For each effect, an instruction calls one method of `Machine.observer`, with the frame of its threads and the site of
the instruction. The methods of `Observer` do nothing; a run without judges uses this class. A judge is a subclass that
overrides the methods of the events that it needs. `together` combines several observers into one.

An argument `place` is an offset in `Machine.shared`, the shared memory of all resident CTAs: byte `place %
m.shared_stride` of CTA `place // m.shared_stride`.
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
    """Bytes that a transfer reads or writes: `array[start : start + nbytes]`, or rows of `nbytes` bytes at `offsets`.

    array: `Machine.shared`, or the array of a range of global memory.
    """

    array: Array
    start: int
    nbytes: int
    offsets: Array | None = None


@dataclass(frozen=True, slots=True)
class OperandRead:
    """An operand that a wgmma or tcgen05.mma reads from shared memory.

    Attributes:
        name: 'A' or 'B'. words: the 64 bits of its descriptor. extent: rows, M or N. depth: elements of K.
        bits: width of an element. start: offset of the CTA's shared memory. kind: kind of the descriptor. element: the
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
    """Columns of a CTA's tensor memory. what: 'copy', 'D', 'SFA' or 'SFB'. last: one past the last column."""

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
        reads, writes: the bytes that the work reads and writes, which are known at issue under every schedule.
        barriers: offsets of the mbarriers that count the bytes of the work. nbytes: number of bytes at each mbarrier.
        group: 'bulk', 'cp.async' or 'wgmma' if a thread waits for the work by group; 'tcgen05' if a commit makes an
            arrival when the work is complete; else empty.
        rows: function that returns the rows of global memory that a tensor copy reads (load) or writes (store).
        swizzle: width in bytes of the swizzle of a tensor copy's map, 16 without a swizzle. map_key: key that is equal
            for equal maps.
        operands: operands of a wgmma or a tcgen05.mma. data_type: element type of a tensor copy's map, such as
            'FLOAT16'. dims: extents of this map, innermost first; bits: width of its elements.
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
    """Base class of observers: a method for each event of a run, which does nothing."""

    active: bool = False
    """Whether there is an observer; the machine computes data for observers only if this flag is set."""

    # ---- the run -----------------------------------------------------------------------------------------------------

    def began(self, m: Host) -> None:
        """Called when CTAs begin to run together."""

    def ended(self, m: Host, failed: bool) -> None:
        """Called when the CTAs have ended or the run has failed; `m.agents` has the work in flight."""

    def exited(self, f: Frame) -> None:
        """Called when threads exit, while they still count as live."""

    def stuck(self, m: Host) -> None:
        """Called before a run ends with a hang: all threads wait, and no work is in flight. `m.waiting` has the waiting
        threads.
        """

    def time_passes(self, m: Host) -> None:
        """Called before the clock advances: all threads wait, and no work is in flight. Loops that read a clock or time
        out then run once more.
        """

    # ---- accesses ----------------------------------------------------------------------------------------------------

    def read(self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder) -> None:
        """Called when threads read `nbytes` bytes each, at offsets (n,) of an array: `m.shared`, `m.local`, or the
        array of a range.
        """

    def wrote(
        self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder, values: Any = None
    ) -> None:
        """Called when threads write, before the bytes change.

        values: the values that the threads write, (n,) or (n, k), or one value for all threads; None if unknown.
        """

    def updated(self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder) -> None:
        """Called when threads read and write in one atomic operation."""

    # ---- order -------------------------------------------------------------------------------------------------------

    def fenced(self, f: Frame, site: Site) -> None:
        """Called at a fence or membar; `site.one.opcode` distinguishes them."""

    def warp_met(self, f: Frame, site: Site) -> None:
        """Called when all lanes in the mask of a bar.warp.sync have arrived."""

    def gathered(self, f: Frame, site: Site) -> None:
        """Called at an instruction that all lanes of a warp must execute, if threads have exited."""

    def block_met(self, f: Frame, site: Site) -> None:
        """Called when all live threads of each CTA of a frame reach a bar.sync at the same time."""

    def bar_arrived(self, f: Frame, site: Site, cta: int, number: int, waits: bool, expected: int | None) -> None:
        """Called when threads of one CTA arrive at a barrier. expected: the thread count of the instruction, if it has
        one.
        """

    def bar_ended(self, m: Host, cta: int, number: int) -> None:
        """Called when a round of a barrier has completed."""

    def cluster_arrived(self, f: Frame, site: Site, relaxed: bool) -> None:
        """Called at a barrier.cluster.arrive, before the arrivals are counted."""

    def cluster_passed(self, f: Frame, site: Site) -> None:
        """Called when threads pass a barrier.cluster.wait."""

    # ---- mbarriers ---------------------------------------------------------------------------------------------------

    def initialised(self, f: Frame, site: Site, place: int, count: int) -> None:
        """Called at an mbarrier.init, before the barrier exists."""

    def invalidated(self, f: Frame, site: Site, place: int) -> None:
        """Called at an mbarrier.inval, while the barrier still exists."""

    def arrived(self, f: Frame, site: Site, place: int, barrier: Mbarrier, count: int, expected: int | None) -> None:
        """Called when threads arrive at an mbarrier, before it counts the arrivals.

        count: number of arrivals of all these threads together. expected: bytes that an arrive.expect_tx expects.
        """

    def expected(self, f: Frame, site: Site, place: int, barrier: Mbarrier, nbytes: int) -> None:
        """Called at an expect_tx without an arrival, before the barrier counts the bytes."""

    def phase_ended(self, m: Host, place: int, barrier: Mbarrier) -> None:
        """Called when a phase of an mbarrier has completed; `barrier.phase` is the next phase."""

    def passed(self, f: Frame, site: Site, places: Array, phases: Array, parity: bool) -> None:
        """Called when test_wait or try_wait returns true, so that threads see a phase complete.

        phases: parities, or tokens.
        """

    # ---- asynchronous work -------------------------------------------------------------------------------------------

    def issued(self, f: Frame, site: Site, transfer: AsyncWork) -> None:
        """Called when asynchronous work is issued; it may complete now or later."""

    def landed(self, m: Host, place: int, barrier: Mbarrier, nbytes: int, at: int) -> None:
        """Called when bytes of a transfer land, before the mbarrier counts them. at: index of the transfer's
        instruction.
        """

    def committed(self, f: Frame, site: Site, group: str) -> None:
        """Called at a commit_group. group: 'bulk', 'cp.async' or 'wgmma'."""

    def waited(self, f: Frame, site: Site, group: str, left: int, reads: bool, everything: bool) -> None:
        """Called at a wait_group: all groups except the last `left` are complete.

        reads: whether the instruction has `.read`, so that only the sources of the groups are free.
        everything: whether the instruction is wait_all, which also covers transfers outside groups.
        """

    def copies_arrive(self, f: Frame, site: Site, places: Array, counted: bool) -> None:
        """Called at a cp.async.mbarrier.arrive: the barriers get an arrival when the copies so far are complete.

        counted: whether the arrival first increments the pending count, which `.noinc` prevents.
        """

    def products_arrive(self, f: Frame, site: Site, place: int) -> None:
        """Called when the work of a tcgen05.commit is complete, before `arrived` reports its arrival."""

    # ---- tensor maps in memory ---------------------------------------------------------------------------------------

    def map_changed(self, f: Frame, site: Site, cta: int, array: Array, start: int, released: str) -> None:
        """Called when a tensormap.replace or tensormap.cp_fenceproxy of one CTA has written the map at `array[start:]`.

        released: scope of a tensormap.cp_fenceproxy, which also releases the change; else empty.
        """

    def map_acquired(self, f: Frame, site: Site, cta: int, array: Array, start: int, scope: str) -> None:
        """Called at a fence.proxy.tensormap::generic.acquire of threads of one CTA; `fenced` reports releases."""

    def map_read(self, f: Frame, site: Site, array: Array, start: int) -> None:
        """Called when a tensor copy of one thread reads its map."""

    # ---- tensor memory -----------------------------------------------------------------------------------------------

    def tensor_used(
        self, f: Frame, site: Site, cta: int, region: tuple[int, int, int], writes: bool, committed: bool
    ) -> None:
        """Called when one warp or thread reads or writes cells of a CTA's tensor memory.

        region: (mask of lanes, first column, one past the last). committed: whether a commit reports the completion of
        the access.
        """

    def tensor_fenced(self, f: Frame, site: Site, after: bool) -> None:
        """Called at a tcgen05.fence::after_thread_sync (`after`) or ::before_thread_sync."""

    # ---- warps -------------------------------------------------------------------------------------------------------

    def multiplied(self, f: Frame, site: Site) -> None:
        """Called at a wgmma.mma_async of one warpgroup; `issued` reports its memory accesses."""

    def multiply_fenced(self, f: Frame, site: Site) -> None:
        """Called at a wgmma.fence."""

    def registers_set(self, f: Frame, site: Site, count: int, increases: bool) -> None:
        """Called at a setmaxnreg."""

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
    """Return one observer that forwards each event to those observers that override the event's method."""
    return _Together(observers)
