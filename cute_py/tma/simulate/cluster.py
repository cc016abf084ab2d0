"""A cluster of CTAs, each with its own shared memory, that loads can multicast to.

A multicast load writes the same offset in every CTA of its mask (bit i is CTA i) and signals the barrier at the same
offset there. With `.cta_group::2` two neighbours are a pair, and the signal for either goes to one of the two.
"""

from __future__ import annotations

from collections.abc import Iterator

from cute_py.argument_checks import expect_integer
from cute_py.errors import InvalidValueError
from cute_py.tma.emulator.mbarrier import Mbarrier, init_barrier
from cute_py.tma.emulator.memory import MAX_CTAS, POISON, SharedMemory


class Cluster:
    """`size` CTAs with `smem_bytes` of shared memory each.

    Raises:
        InvalidValueError: not 1 to 16 CTAs.

    >>> cluster = Cluster(4, 2048)
    >>> [bar.rank for bar in cluster.init_barriers(0, 1)]
    [0, 1, 2, 3]
    """

    def __init__(self, size: int, smem_bytes: int, *, base: int = 0, poison: int = POISON) -> None:
        size = expect_integer(size, "CTAs of a cluster")
        if not 1 <= size <= MAX_CTAS:
            raise InvalidValueError(f"a cluster of {size} CTAs; must be 1 to {MAX_CTAS}")
        self.ctas = tuple(SharedMemory(smem_bytes, base=base, poison=poison, rank=rank) for rank in range(size))
        for cta in self.ctas:
            cta.peers = self.ctas

    def __len__(self) -> int:
        return len(self.ctas)

    def __iter__(self) -> Iterator[SharedMemory]:
        return iter(self.ctas)

    def __getitem__(self, rank: int) -> SharedMemory:
        return self.mapa(rank)

    def init_barriers(self, offset: int, arrive_count: int) -> list[Mbarrier]:
        """The same barrier in every CTA."""
        return [init_barrier(cta, offset, arrive_count) for cta in self.ctas]

    def mapa(self, rank: int) -> SharedMemory:
        """The shared memory of a CTA, as `mapa` gives its address.

        Raises:
            InvalidTypeError: no integer. InvalidValueError: there is no such CTA.
        """
        rank = expect_integer(rank, "the number of a CTA")
        if not 0 <= rank < len(self.ctas):
            raise InvalidValueError(f"CTA {rank}; the cluster has {len(self.ctas)}")
        return self.ctas[rank]
