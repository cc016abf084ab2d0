"""mbarriers: shared-memory barriers that count arrivals and bytes.

A phase completes when no arrival is pending and the transaction count is zero. Then the next phase begins with all
arrivals pending again. `expect_tx` raises the transaction count, and bytes that land lower it. Bytes may land before
they are expected, so the count may be negative for a while. A pending arrival then keeps the phase from completing.

    state       phase number, pending arrivals, transaction count
    complete    pending == 0 and transaction count == 0   ->  phase += 1, pending = arrive count
    try_wait(p) true if the phase of parity p has completed, so that the current phase has the other parity

If iteration i uses the barrier of slot i mod D, it waits for the phase of parity (i / D) & 1.

Source: PTX ISA 9.0, Phase of the mbarrier object, tx-count of the mbarrier object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cute_py.argument_checks import expect, expect_having, expect_integer, is_integer
from cute_py.diagnostics import Diagnostic, refuse
from cute_py.errors import InvalidTypeError, InvalidValueError, TmaLimitError, counted, given

if TYPE_CHECKING:
    from cute_py.tma.emulator.memory import SharedMemory

MAX_COUNT: Final = 2**20 - 1
"""Limit of the arrival count, and of the absolute transaction count. Source: PTX ISA 9.0, mbarrier."""


@dataclass(frozen=True, slots=True)
class BarrierView:
    """The fields of a barrier as the TMA Atoms reference pages print them.

    On these pages, a wait is released when `phase == want and pending == arrive_count and txn_count >= expected_txn`,
    where `pending` counts arrivals upwards. `Mbarrier` follows the rule of the PTX ISA: the bytes must be equal, and a
    barrier whose phase completes is immediately in the next phase.
    """

    phase: int
    pending: int
    arrive_count: int
    txn_count: int
    expected_txn: int

    def released(self, want_phase: int) -> bool:
        """Whether phase `want`, counted from 0, has completed with all arrivals and exactly the expected bytes.

        >>> bar = Mbarrier(1)
        >>> _ = bar.arrive_expect_tx(64); bar.view.released(0)
        False
        >>> bar.complete_tx(64); bar.view.released(0), bar.view.released(1)
        (True, False)

        Raises:
            InvalidValueError: the phase is below 0.
        """
        want_phase = expect_integer(want_phase, "the index of a phase", 0)
        complete = self.pending == self.arrive_count and self.txn_count == self.expected_txn
        return want_phase < self.phase or (complete and want_phase == self.phase)

    def __str__(self) -> str:
        return f"phase={self.phase} pending={self.pending}/{self.arrive_count} txn={self.txn_count}/{self.expected_txn}"


@dataclass(frozen=True, slots=True)
class Contribution:
    """The bytes that one copy delivered to a phase."""

    nbytes: int
    source: str


class Mbarrier:
    """A barrier in shared memory that counts arrivals and transaction bytes.

    Args:
        arrive_count: arrivals that complete a phase, 1 to 2**20 - 1.
        name: the name of the barrier in messages.
    Raises:
        InvalidValueError: the count is out of range.

    >>> bar = Mbarrier(1)
    >>> bar.arrive_expect_tx(32768), bar.try_wait(0)
    (0, False)
    >>> bar.complete_tx(32768); bar.try_wait(0), bar.parity
    (True, 1)
    """

    space = "smem"

    def __init__(self, arrive_count: int, *, name: str = "mbarrier") -> None:
        arrive_count = expect_integer(arrive_count, "arrive count", 1, MAX_COUNT)
        self.name = expect(name, str, "the name of an mbarrier")
        self.arrive_count = self._next_count = arrive_count
        self.offset: int | None = None
        """Offset in shared memory in bytes, if the barrier is there."""
        self.rank = 0
        """Rank of the CTA whose shared memory contains it."""
        self.phase = 0
        self.pending = arrive_count
        self.tx_count = 0
        self.expected = 0
        """Bytes that this phase expects."""
        self.contributions: list[Contribution] = []
        """Contributions that landed in this phase."""

    @property
    def parity(self) -> int:
        """Parity of the current, incomplete phase."""
        return self.phase & 1

    @property
    def arrived_bytes(self) -> int:
        """Bytes that landed in the current phase."""
        return self.expected - self.tx_count

    @property
    def view(self) -> BarrierView:
        """The state of the barrier, as the TMA Atoms reference pages show it."""
        return BarrierView(
            self.phase, self.arrive_count - self.pending, self.arrive_count, self.arrived_bytes, self.expected
        )

    def __str__(self) -> str:
        arrivals = f"{self.pending} of {counted(self.arrive_count, 'arrival')} pending"
        return f"phase {self.phase}: {arrivals}, {self.arrived_bytes} of {self.expected} bytes arrived"

    def __repr__(self) -> str:
        return f"<{self.name}, {self}>"

    def _count(self, value: int) -> None:
        if not -MAX_COUNT <= value <= MAX_COUNT:
            must, facts = f"stay within -{MAX_COUNT} and {MAX_COUNT}", {"barrier": self.name, "phase": self.phase}
            refuse(TmaLimitError, [Diagnostic("tx_count", "transaction count", value, requirement=must, facts=facts)])
        self.tx_count = value

    def expect_tx(self, nbytes: int) -> None:
        """Expect more bytes in the current phase; the expectations of several loads add up.

        Raises:
            TmaLimitError: the transaction count leaves its range.
            InvalidValueError: `nbytes` is not 0 to 2**20 - 1.
        """
        nbytes = expect_integer(nbytes, "expect_tx", 0, MAX_COUNT, "bytes")
        self._count(self.tx_count + nbytes)
        self.expected += nbytes
        self._advance()

    def complete_tx(self, nbytes: int, source: str = "") -> None:
        """Count bytes that have landed in shared memory.

        Raises:
            TmaLimitError: the transaction count leaves its range.
            InvalidValueError: `nbytes` is below 0.
        """
        nbytes = expect_integer(nbytes, "bytes that landed", 0)
        expect(source, str, "the source of bytes")
        self._count(self.tx_count - nbytes)
        self.contributions.append(Contribution(nbytes, source))
        self._advance()

    def arrive(self, count: int = 1) -> int:
        """Arrive at the barrier, and return the number of the current phase.

        Raises:
            InvalidValueError: there are more arrivals than are pending, which is undefined in the PTX ISA.
        """
        count = self._arrivals(count)
        phase = self.phase
        self.pending -= count
        self._advance()
        return phase

    def arrive_expect_tx(self, nbytes: int) -> int:
        """Run `expect_tx` and then `arrive` as one operation; return the phase."""
        self._arrivals(1)  # the pending arrival keeps the phase open while the count is raised
        self.expect_tx(nbytes)
        return self.arrive()

    def arrive_drop(self, count: int = 1) -> int:
        """Arrive, and lower the number of arrivals that later phases need by the same count."""
        count = self._arrivals(count)
        self._next_count -= count
        return self.arrive(count)

    def try_wait(self, parity: int) -> bool:
        """Whether the phase of this parity has completed, so that the current phase has the other parity.

        A new barrier is in phase 0, so a wait for parity 1 succeeds immediately; the first pass of a ring uses this.

        Raises:
            InvalidValueError: parity is not 0 or 1.
        """
        return self.parity != expect_integer(parity, "parity", 0, 1)

    test_wait = try_wait

    def _arrivals(self, count: int) -> int:
        count = expect_integer(count, "arrive with count")
        if not 1 <= count <= self.pending:
            raise InvalidValueError(f"arrive with count {count}; must be 1 to {self.pending}, the pending arrivals")
        return count

    def _advance(self) -> None:
        if self.pending == 0 and self.tx_count == 0:
            self.phase += 1
            self.arrive_count = self.pending = self._next_count
            self.expected = 0
            self.contributions = []


def init_barrier(smem: SharedMemory, offset: int, arrive_count: int, *, name: str | None = None) -> Mbarrier:
    """Initialise a barrier at byte `offset` of shared memory (mbarrier.init).

    Args:
        offset: bytes, a multiple of 8. arrive_count: arrivals that complete a phase, 1 to 2**20 - 1.
        name: the name in messages; default: the CTA and the offset.
    Raises:
        InvalidValueError: the offset is not a multiple of 8, or it is outside shared memory.

    >>> from cute_py.tma.emulator import SharedMemory
    >>> print(init_barrier(SharedMemory(1024), 8, 1))
    phase 0: 1 of 1 arrival pending, 0 of 0 bytes arrived
    """
    expect_having(smem, ("rank", "barriers"), "the shared memory of a CTA")
    offset = expect_integer(offset, "the offset of an mbarrier")
    if offset % 8 or not 0 <= offset <= len(smem) - 8:
        raise InvalidValueError(f"mbarrier at offset {offset}; must be a multiple of 8 inside {len(smem)} bytes")
    barrier = Mbarrier(arrive_count, name=f"mbarrier[CTA {smem.rank}, {offset}]" if name is None else name)
    barrier.offset, barrier.rank = offset, smem.rank
    smem.barriers[offset] = barrier
    return barrier


def barrier_at(smem: SharedMemory, offset: int) -> Mbarrier:
    """Return the barrier that was initialised at `offset`.

    Raises:
        InvalidTypeError: the offset is not an integer.
        InvalidValueError: no barrier was initialised there.
    """
    offset = expect_integer(offset, "the offset of an mbarrier")
    found = smem.barriers.get(offset)
    if not isinstance(found, Mbarrier):
        raise InvalidValueError(
            f"no mbarrier at offset {offset} of CTA {smem.rank}",
            {"initialised": ", ".join(map(str, sorted(smem.barriers))) or "none"},
        )
    return found


def resolve_barrier(barrier: Mbarrier | int, smem: SharedMemory) -> Mbarrier:
    """Return the argument if it is a barrier, or the barrier at this offset of `smem`."""
    if isinstance(barrier, Mbarrier):
        return barrier
    if not is_integer(barrier):
        raise InvalidTypeError(f"a barrier must be an Mbarrier, or its offset in shared memory, got {given(barrier)}")
    return barrier_at(smem, barrier)


def signalled(
    barrier: Mbarrier | int | None, destinations: Sequence[SharedMemory], cta_group: int, *, multicast: bool
) -> list[Mbarrier]:
    """Return the barriers that a load signals, one for each destination.

    With multicast, a load signals the barrier at the offset of `barrier` in each destination CTA. With `.cta_group::2`,
    it signals one CTA of each destination's pair: the CTA whose rank has the same parity as the rank of the barrier's
    CTA.

    Source: PTX ISA 9.0, cp.async.bulk.tensor; multicast was measured on NVIDIA H200, cta_group::2 was not.
    """
    if barrier is None:
        return []
    if not multicast:
        return [resolve_barrier(barrier, destinations[0])]
    offset, parity = (barrier.offset, barrier.rank & 1) if isinstance(barrier, Mbarrier) else (barrier, 0)
    if offset is None:
        raise InvalidValueError("multicast needs a barrier at an offset in shared memory", hint="use init_barrier")
    found = []
    for cta in destinations:
        rank = cta.rank if cta_group == 1 else cta.rank - (cta.rank & 1) + parity
        if rank >= len(cta.peers):
            raise InvalidValueError(f"CTA {cta.rank} has no peer; the cluster has {counted(len(cta.peers), 'CTA')}")
        found.append(barrier_at(cta.peers[rank], offset))
    return found
