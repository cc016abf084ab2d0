"""Count the memory traffic of each instruction: wavefronts and bank conflicts of shared memory, sectors of global
memory.

Shared memory has 32 banks of 4 bytes. It serves a warp's access in groups of lanes that request at most 128 bytes: 32
lanes of up to 4 bytes each, 16 lanes of 8 bytes, or 8 lanes of 16 bytes. The number of wavefronts of a group is the
largest number of different words in one bank; all wavefronts beyond the first are bank conflicts. Lanes that request
the same word share one wavefront.

A sector is 32 bytes of global memory. A warp's access requests each sector that it touches once.

Copies of the async proxy (bulk, tensor) have no wavefronts or sectors here, because no thread accesses memory for them.
cp.async has both. Source: CUDA C++ Programming Guide, shared memory of compute capability 5.x and later. ncu's metrics
l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{ld,st} and l1tex__t_sectors_pipe_lsu_mem_global_op_{ld,st} count the
same; the last metric's ld includes the sectors of cp.async (docs/measurements/machine.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cute_py.machine.judgement.observer import AccessOrder, AsyncWork, Observer
from cute_py.machine.threads import LANES, Array, Frame, Host
from cute_py.targets import BANK_BYTES, BANKS, SECTOR_BYTES

if TYPE_CHECKING:
    from cute_py.machine.sites import Site

GROUP_BYTES: Final = 128
"""Maximum number of bytes that the lanes of a group request."""


@dataclass(slots=True)
class Traffic:
    """The traffic of one instruction over the whole run."""

    wavefronts: int = 0
    bank_conflicts: int = 0
    sectors: int = 0


def wavefronts(warps: Array, lanes: Array, offsets: Array, nbytes: int) -> tuple[int, int]:
    """Count the wavefronts of one access; return (wavefronts, bank conflicts among them).

    Args:
        warps, lanes: (n,) warp and lane of each thread. offsets: (n,) bytes from the start of shared memory. nbytes:
            bytes per thread.

    >>> lanes = np.arange(32)
    >>> wavefronts(lanes * 0, lanes, lanes * 4, 4), wavefronts(lanes * 0, lanes, lanes * 8, 4)
    ((1, 0), (2, 1))
    >>> wavefronts(lanes * 0, lanes, lanes * 16, 16), wavefronts(lanes * 0, lanes, lanes * 128, 16)
    ((4, 0), (32, 28))
    """
    per = max(nbytes // BANK_BYTES, 1)
    group = warps.astype(np.int64) * per + lanes * per // LANES
    _, group = np.unique(group, return_inverse=True)
    words = (offsets.astype(np.int64) // BANK_BYTES)[:, None] + np.arange(per)
    span = int(words.max()) + 1
    asked = np.unique((group[:, None] * span + words).reshape(-1))
    which, word = np.divmod(asked, span)
    count = int(group.max()) + 1
    held = np.bincount(which * BANKS + word % BANKS, minlength=count * BANKS).reshape(count, BANKS)
    total = int(held.max(axis=1).sum())
    return total, total - count


def sectors(warps: Array, offsets: Array, nbytes: int) -> int:
    """Count the sectors that the warps of one access request.

    >>> lanes = np.arange(32)
    >>> sectors(lanes * 0, lanes * 4, 4), sectors(lanes * 0, lanes * 128, 4)
    (4, 32)
    """
    first = offsets.astype(np.int64) // SECTOR_BYTES
    last = (offsets + (nbytes - 1)) // SECTOR_BYTES
    both = np.concatenate([first, last]) if int((last - first).max()) else first
    where = np.concatenate([warps, warps]) if len(both) > len(first) else warps
    return len(np.unique(where.astype(np.int64) * (int(both.max()) + 1) + both))


class Traffics(Observer):
    """Observer that counts the traffic of every instruction that reads or writes memory."""

    active = True

    def __init__(self) -> None:
        self.m: Host
        self.of: dict[int, Traffic] = {}
        """Number of an instruction -> its traffic."""

    def began(self, m: Host) -> None:
        """Keep the machine of the CTAs that begin to run together."""
        self.m = m

    def _count(self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int) -> None:
        m = self.m
        if array is m.local or array is m.memory.parameters.array:
            return
        held = self.of.setdefault(site.number, Traffic())
        if array is m.shared:
            total, conflicts = wavefronts(f.threads // LANES, f.lanes, offsets, nbytes)
            held.wavefronts += total
            held.bank_conflicts += conflicts
        else:
            held.sectors += sectors(f.threads // LANES, offsets, nbytes)

    def read(self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder) -> None:
        """Count the traffic of a read."""
        self._count(f, site, array, offsets, nbytes)

    def wrote(
        self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder, values: Any = None
    ) -> None:
        """Count the traffic of a write."""
        self._count(f, site, array, offsets, nbytes)

    def issued(self, f: Frame, site: Site, work: AsyncWork) -> None:
        """Count the sectors that a cp.async reads, and the wavefronts that it writes."""
        if work.kind != "cp.async":
            return
        for who, spans in ((work.readers, work.reads), (f, work.writes)):
            for span in spans:
                if who is not None and span.offsets is not None and len(span.offsets) == who.n:
                    self._count(who, site, span.array, span.offsets, span.nbytes)
