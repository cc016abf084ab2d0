"""The conditions that threads wait for, in the form that the analysis of a hang uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from cute_py.machine.threads import Array, Frame

if TYPE_CHECKING:
    import numpy as np
else:
    from cute_py.optional_packages import numpy as np


@dataclass(slots=True)
class PhaseWait:
    """A wait for phases of mbarriers: offsets (n,) in the shared memory of all CTAs, and parities or tokens (n,)."""

    places: Array
    phases: Array
    by_parity: bool


@dataclass(frozen=True, slots=True)
class BarWait:
    """A wait for a barrier of a CTA, given by its number."""

    cta: int
    number: int


@dataclass(frozen=True, slots=True)
class ClusterWait:
    """A wait for the barrier of the cluster."""


@dataclass(frozen=True, slots=True)
class LanesWait:
    """A wait for the other lanes of a warp, or the other warps of a warpgroup, at the same instruction."""

    warps: int


@dataclass(frozen=True, slots=True)
class RegistersWait:
    """A wait for registers from the CTA's pool: setmaxnreg.inc to `count` registers per thread."""

    count: int


@dataclass(frozen=True, slots=True)
class LoopWait:
    """A polling loop that waits for a change of memory: indices of the loop's first and last instruction."""

    first: int
    last: int


class FailedTests:
    """The last test of each thread for a phase of an mbarrier, if the phase had not completed: a test_wait, or a
    try_wait whose time limit passed.

    A loop that polls a barrier waits for the phase of its test.
    """

    def __init__(self, threads: int) -> None:
        self._at, self._places, self._phases = (np.full(threads, -1, np.int64) for _ in range(3))
        self._by_parity = np.zeros(threads, np.bool_)

    def record(self, threads: Array, at: int, wait: PhaseWait) -> None:
        """Record the test of these threads by the instruction with index `at`."""
        self._at[threads], self._by_parity[threads] = at, wait.by_parity
        self._places[threads], self._phases[threads] = wait.places, wait.phases

    def within(self, threads: Array, loop: LoopWait) -> tuple[int, PhaseWait] | None:
        """Return the instruction and the phases that these threads test in a loop, if one instruction of the loop was
        the last test of all of them; else None."""
        at = int(self._at[threads[0]])
        if not loop.first <= at <= loop.last or (self._at[threads] != at).any():
            return None
        return at, PhaseWait(self._places[threads], self._phases[threads], bool(self._by_parity[threads[0]]))


WaitsOn: TypeAlias = PhaseWait | BarWait | ClusterWait | LanesWait | RegistersWait | LoopWait


@dataclass(frozen=True, slots=True)
class Blocked:
    """Threads that wait: the index of their instruction, the condition, and a function that returns its text."""

    frame: Frame
    at: int
    on: WaitsOn | None
    what: Callable[[], str]
