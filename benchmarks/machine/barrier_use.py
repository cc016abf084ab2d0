"""Whether a launch uses the mbarriers that some of its lines initialise; no judge is asked."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cute_py.machine.judgement.observer import AccessOrder, AsyncWork, Observer, Touched
from cute_py.machine.sites import Site
from cute_py.machine.threads import Array, Frame, Host

if TYPE_CHECKING:
    from cute_py.tma.emulator.mbarrier import Mbarrier

BARRIER_BYTES: Final = 8


class BarrierUse(Observer):
    """The places of the mbarriers that some lines initialise, beside the bytes of shared memory that a launch uses.

    Used are the eight bytes of each barrier that an instruction or a transfer looks up (waits, arrivals, bytes,
    commits, the end of its life), and all bytes that are read or written. Only an initialisation is no use.
    """

    active = True

    def __init__(self, lines: frozenset[int]) -> None:
        self.lines = lines
        self.count = 0
        self.disjoint = True

    def began(self, m: Host) -> None:
        """A new set of resident CTAs has its own shared memory."""
        self.shared = m.shared
        self.places: set[int] = set()
        self.used = np.zeros(len(m.shared), np.bool_)
        for cta, window in enumerate(m.windows):
            window.barriers = _Barriers(functools.partial(self._use, cta * m.shared_stride))

    def ended(self, m: Host, failed: bool) -> None:
        """Compare the places with the bytes that these CTAs have used."""
        self.count += len(self.places)
        if failed or any(self.used[place : place + BARRIER_BYTES].any() for place in self.places):
            self.disjoint = False

    def initialised(self, f: Frame, site: Site, place: int, count: int) -> None:
        """A place counts if one of the lines initialises it; the same place by another line is used."""
        if site.one.line in self.lines:
            self.places.add(place)
        else:
            self._use(0, place)

    def read(self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder) -> None:
        """Bytes that threads read are used."""
        self._touch(Touched(array, 0, nbytes, offsets))

    def wrote(
        self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder, values: Any = None
    ) -> None:
        """Bytes that threads write are used."""
        self._touch(Touched(array, 0, nbytes, offsets))

    def updated(self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder) -> None:
        """Bytes of an atomic operation are used."""
        self._touch(Touched(array, 0, nbytes, offsets))

    def issued(self, f: Frame, site: Site, transfer: AsyncWork) -> None:
        """Bytes of a transfer are used, and the barriers at which it completes."""
        for one in (*transfer.reads, *transfer.writes):
            self._touch(one)
        for place in transfer.barriers:
            self._use(0, place)

    def _touch(self, one: Touched) -> None:
        if one.array is self.shared:
            first = one.start + (np.zeros(1, np.int64) if one.offsets is None else np.unique(one.offsets))
            self.used[(first[:, None] + np.arange(one.nbytes)).reshape(-1)] = True

    def _use(self, base: int, offset: int) -> None:
        self.used[base + offset : base + offset + BARRIER_BYTES] = True


class _Barriers(dict[int, "Mbarrier"]):
    """The barriers of a CTA by offset; each look at one is reported."""

    def __init__(self, looked: Callable[[int], None]) -> None:
        self.looked = looked

    def get(self, offset: int, default: Any = None) -> Any:
        self.looked(offset)
        return super().get(offset, default)

    def __getitem__(self, offset: int) -> Mbarrier:
        self.looked(offset)
        return super().__getitem__(offset)

    def pop(self, offset: int, *default: Any) -> Any:
        self.looked(offset)
        return super().pop(offset, *default)

    def __contains__(self, offset: object) -> bool:
        if isinstance(offset, int):
            self.looked(offset)
        return super().__contains__(offset)
