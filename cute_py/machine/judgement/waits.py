"""The conditions that threads wait for, as the report of a hang shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cute_py.machine.threads import Array


@dataclass(slots=True)
class PhaseWait:
    """Phases of mbarriers: places (n,) in the shared memory of all CTAs, and parities (or tokens) (n,)."""

    places: Array
    phases: Array
    by_parity: bool


@dataclass(frozen=True, slots=True)
class BarWait:
    """A barrier of a CTA, by its number."""

    cta: int
    number: int


@dataclass(frozen=True, slots=True)
class ClusterWait:
    """The barrier of the cluster."""


@dataclass(frozen=True, slots=True)
class LanesWait:
    """The other lanes of a warp, or the other warps of a warpgroup, at one instruction."""

    warps: int


@dataclass(frozen=True, slots=True)
class RegistersWait:
    """Registers of the CTA's pool: setmaxnreg.inc to this number."""

    count: int


@dataclass(frozen=True, slots=True)
class LoopWait:
    """A change of memory that a loop polls for: numbers of the loop's first and last instruction."""

    first: int
    last: int


WaitsOn: TypeAlias = PhaseWait | BarWait | ClusterWait | LanesWait | RegistersWait | LoopWait
