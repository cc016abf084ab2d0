"""The conditions that threads wait for, in the form that the analysis of a hang uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cute_py.machine.threads import Array


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


WaitsOn: TypeAlias = PhaseWait | BarWait | ClusterWait | LanesWait | RegistersWait | LoopWait
