"""Bulk copies and reductions of contiguous bytes without a tensor map, and the shared memories of a cluster.

    global to shared          cp.async.bulk.shared::cluster.global, completes at a barrier
    shared to global          cp.async.bulk.global.shared::cta, completes a bulk group
    shared to another CTA     cp.async.bulk.shared::cluster.shared::cta, completes at a barrier there
    reduce to global          cp.reduce.async.bulk.global.shared::cta

Sizes and addresses must be multiples of 16 bytes. The PTX ISA leaves all other values undefined, so cute_py refuses
them. The behaviour of these instructions was not measured, so their results have `evidence = "documented"`.

A multicast load of a tensor writes to the same offset in every CTA of its mask (bit i is CTA i), and signals the
barrier at the same offset there. With `.cta_group::2`, two neighbouring CTAs form a pair, and both signal the same
barrier of the pair.

Source: PTX ISA 9.0, cp.async.bulk, cp.reduce.async.bulk.
"""

from __future__ import annotations

from collections.abc import Iterator

from cute_py.argument_checks import expect, expect_integer
from cute_py.diagnostics import Diagnostic, refuse
from cute_py.errors import InvalidValueError, TmaTrap
from cute_py.tma.descriptor.data_types import TensorMapDataType
from cute_py.tma.emulator.engine import TransactionBytes
from cute_py.tma.emulator.mbarrier import Mbarrier, init_barrier, resolve_barrier
from cute_py.tma.emulator.memory import (
    ADDRESS_LIMIT,
    ILLEGAL_ADDRESS,
    MAX_CTAS,
    POISON,
    Bytes,
    GlobalMemory,
    Memory,
    SharedMemory,
    Window,
    as_global,
    as_shared,
)
from cute_py.tma.emulator.operands import reduction
from cute_py.tma.emulator.values import REDUCTIONS, reduced

UNIT = 16
"""Granularity of sizes and addresses, in bytes."""


class Cluster:
    """A cluster of `size` CTAs with `smem_bytes` of shared memory each.

    Raises:
        InvalidValueError: the cluster does not have 1 to 16 CTAs.

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

    def __repr__(self) -> str:
        first = self.ctas[0]
        return f"Cluster({len(self)}, {len(first)}, base={first.base}, poison={first.poison})"

    def __iter__(self) -> Iterator[SharedMemory]:
        return iter(self.ctas)

    def __getitem__(self, rank: int) -> SharedMemory:
        return self.mapa(rank)

    def init_barriers(self, offset: int, arrive_count: int) -> list[Mbarrier]:
        """Initialise a barrier at this offset in every CTA, and return the barriers."""
        return [init_barrier(cta, offset, arrive_count) for cta in self.ctas]

    def mapa(self, rank: int) -> SharedMemory:
        """Return the shared memory of a CTA, as `mapa` gives its address.

        Raises:
            InvalidTypeError: the rank is not an integer.
            InvalidValueError: the CTA does not exist.
        """
        rank = expect_integer(rank, "the index of a CTA")
        if not 0 <= rank < len(self.ctas):
            raise InvalidValueError(f"CTA {rank} does not exist; the cluster has {len(self.ctas)}")
        return self.ctas[rank]


def check_bulk(nbytes: int, **addresses: int) -> list[Diagnostic]:
    """List the reasons why a bulk copy can't have these operands."""
    found = []
    if nbytes % UNIT:
        found.append(Diagnostic("size", "size", nbytes, "bytes", f"be a multiple of {UNIT}"))
    for name, address in addresses.items():
        if address % UNIT:
            text = f"{name} = 0x{address:x}; must be a multiple of {UNIT} bytes"
            found.append(Diagnostic("address", name, address, text=text))
    return found


def _size(nbytes: int) -> int:
    return expect_integer(nbytes, "size", 0, unit="bytes")


def _ends(
    smem: Window, offset: int, gmem: Memory, address: int, nbytes: int, gmem_base: int, *, storing: bool
) -> tuple[SharedMemory, Bytes, Bytes]:
    """Return the shared memory of a copy, and views of its bytes in shared and in global memory."""
    shared = as_shared(smem, writable=not storing)
    address, offset = expect_integer(address, "address", 0, ADDRESS_LIMIT - 1), expect_integer(offset, "offset")
    nbytes = _size(nbytes)
    refuse(InvalidValueError, check_bulk(nbytes, address=address, offset=offset + shared.base))
    memory = as_global(gmem, gmem_base, writable=storing)
    return shared, _shared(shared, offset, nbytes), _global(memory, address, nbytes)


def _shared(smem: SharedMemory, offset: int, nbytes: int) -> Bytes:
    if offset < 0 or offset + nbytes > len(smem):
        raise TmaTrap(
            ILLEGAL_ADDRESS,
            "the copy overruns shared memory",
            {"end of the copy": f"{offset + nbytes} bytes", "shared memory": f"{len(smem)} bytes"},
        )
    return smem.array[offset : offset + nbytes]


def _global(memory: GlobalMemory, address: int, nbytes: int) -> Bytes:
    entry = memory.find(address)
    if entry is None or address + nbytes > entry.end:
        raise TmaTrap(
            ILLEGAL_ADDRESS,
            "the copy reads or writes bytes outside all memory ranges",
            {"bytes": f"0x{address:x} to 0x{address + nbytes:x}"},
        )
    return entry.array[address - entry.address : address - entry.address + nbytes]


def _moved(source: Bytes, target: Bytes, barrier: Mbarrier | None = None) -> TransactionBytes:
    target[...] = source
    if barrier is not None:
        barrier.complete_tx(len(source))
    return TransactionBytes(len(source), "plain bulk copy")


def bulk_load(
    gmem: Memory,
    address: int,
    smem: Window,
    offset: int,
    nbytes: int,
    *,
    barrier: Mbarrier | int | None = None,
    gmem_base: int = 0,
) -> TransactionBytes:
    """Copy contiguous bytes from global to shared memory.

    Args:
        address: absolute address of the first byte (`gmem_base` is the address of gmem[0]).
        offset, nbytes: bytes.
        barrier: the barrier that counts the bytes.
    Raises:
        InvalidValueError: a size or address is not a multiple of 16.
        TmaTrap: CUDA_ERROR_ILLEGAL_ADDRESS.

    >>> import numpy as np
    >>> smem = np.zeros(64, np.uint8)
    >>> bulk_load(np.arange(64, dtype=np.uint8), 16, smem, 32, 16), int(smem[32])
    (16, 16)
    """
    shared, target, source = _ends(smem, offset, gmem, address, nbytes, gmem_base, storing=False)
    return _moved(source, target, None if barrier is None else resolve_barrier(barrier, shared))


def bulk_store(
    smem: Window,
    offset: int,
    gmem: Memory,
    address: int,
    nbytes: int,
    *,
    op: str | None = None,
    data_type: TensorMapDataType | None = None,
    gmem_base: int = 0,
) -> TransactionBytes:
    """Copy contiguous bytes from shared to global memory, or with `op`, reduce elements of `data_type` there.

    Args:
        offset, nbytes: bytes. address: absolute address of the first byte (`gmem_base` is the address of gmem[0]).
        op: the reduction ('add', 'min', ...), or None for a plain copy. data_type: the element format of the reduction.
    Raises:
        InvalidValueError: a size or address is not a multiple of 16, or the format does not support the reduction.
        TmaTrap: CUDA_ERROR_ILLEGAL_ADDRESS.

    >>> import numpy as np
    >>> smem, gmem = np.arange(64, dtype=np.uint8), np.zeros(64, np.uint8)
    >>> bulk_store(smem, 16, gmem, 32, 16), gmem[32:36].tolist()
    (16, [16, 17, 18, 19])
    """
    _, source, target = _ends(smem, offset, gmem, address, nbytes, gmem_base, storing=True)
    if op is not None:
        op, data_type = reduction(op), expect(data_type, TensorMapDataType, "data_type, the type of the elements,")
        if data_type not in REDUCTIONS[op]:
            raise InvalidValueError(f"reduction {op!r} does not exist for {data_type!r}")
        source = reduced(target.copy(), source.copy(), op, data_type)
    return _moved(source, target)


def bulk_to_cta(
    source: SharedMemory,
    offset: int,
    destination: SharedMemory,
    destination_offset: int,
    nbytes: int,
    *,
    barrier: Mbarrier | int,
) -> TransactionBytes:
    """Copy contiguous bytes from the shared memory of one CTA to the shared memory of another CTA of the cluster.

    Args:
        barrier: the barrier in the destination that counts the bytes.
    Raises:
        InvalidValueError: a size or offset is not a multiple of 16, or the CTAs belong to different clusters.
        TmaTrap: CUDA_ERROR_ILLEGAL_ADDRESS.

    >>> cluster = Cluster(2, 2048)
    >>> barriers = cluster.init_barriers(0, 1)
    >>> bulk_to_cta(cluster[0], 128, cluster[1], 256, 64, barrier=barriers[1])
    64
    """
    expect(source, SharedMemory, "source")
    expect(destination, SharedMemory, "destination")
    if not any(peer is destination for peer in source.peers):
        raise InvalidValueError("the two shared memories belong to different clusters")
    nbytes, offset = _size(nbytes), expect_integer(offset, "offset")
    destination_offset = expect_integer(destination_offset, "destination_offset")
    places = {"offset": offset + source.base, "destination_offset": destination_offset + destination.base}
    refuse(InvalidValueError, check_bulk(nbytes, **places))
    taken = _shared(source, offset, nbytes)
    target = _shared(destination, destination_offset, nbytes)
    return _moved(taken, target, resolve_barrier(barrier, destination))
