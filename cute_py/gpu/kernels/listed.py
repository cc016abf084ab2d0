"""Copy or load tiles whose coordinates are listed in memory, for partitions that a regular walk can't cover.

A block moves one tile. `per_tile` instructions fill its window, each with its own coordinates and a fixed offset in
shared memory, and all of them complete on one barrier. The block then stores the same boxes through the second map, or
writes the window to memory unchanged.
"""

from __future__ import annotations

from typing import Final

from cute_py.errors import InvalidValueError
from cute_py.gpu.kernels.copy import BARRIER_BYTES, stage_bytes
from cute_py.gpu.kernels.copy_op import CopyOp, copy_functions
from cute_py.gpu.kernels.source import KernelSource, make_kernel
from cute_py.tma.descriptor.fields import MAX_RANK
from cute_py.tma.descriptor.limits import MAX_TRANSACTION_BYTES

_BODY: Final = r"""
__device__ const u32 places[PER_TILE] = {%(places)s};
extern "C" __global__ void __launch_bounds__(THREADS) copy_listed(
    const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap destination,
    const int* coordinates, u8* windows, u32 poison, ErrorRecord* record) {
  extern __shared__ __align__(1024) u8 window[];
  const u32 base = shared_address(window), barrier = base + STAGE_BYTES;
  const int* mine = coordinates + (u64)blockIdx.x * (PER_TILE * RANK);
  uint4* words = reinterpret_cast<uint4*>(window);
  if (DUMP) {
    for (u32 i = threadIdx.x; i < STAGE_BYTES / 16; i += THREADS) words[i] = make_uint4(poison, poison, poison, poison);
    fence_async_shared();
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    barrier_init(barrier, 1);
    barrier_init_done();
    expect_bytes(barrier, PER_TILE * BOX_BYTES);
    for (u32 i = 0; i < PER_TILE; ++i) {
      const int* c = mine + i * RANK;
      %(load)s(base + places[i], &source, barrier, %(coordinates)s);
    }
    if (!DUMP && wait(barrier, 0, 0, PER_TILE * BOX_BYTES, record)) {
      for (u32 i = 0; i < PER_TILE; ++i) {
        const int* c = mine + i * RANK;
        %(store)s(base + places[i], &destination, %(coordinates)s);
      }
      commit_group();
      wait_group_read<0>();
    }
  }
  if (DUMP) {
    __syncthreads();
    if (!wait(barrier, 0, 0, PER_TILE * BOX_BYTES, record)) return;
    uint4* out = reinterpret_cast<uint4*>(windows + (u64)blockIdx.x * STAGE_BYTES);
    for (u32 i = threadIdx.x; i < STAGE_BYTES / 16; i += THREADS) out[i] = words[i];
  }
}
"""

MAX_LISTED: Final = 4096
"""Maximum number of instructions of one tile: their offsets in shared memory are a constant table."""


def copy_listed(
    rank: int,
    places: tuple[int, ...],
    box_bytes: int,
    window_bytes: int,
    *,
    dump: bool = False,
    reduction: str | None = None,
    load_hint: str | None = None,
    store_hint: str | None = None,
) -> KernelSource:
    """Make the kernel that copies listed tiles, with one block per tile.

    Args:
        rank: rank of both maps.
        places: byte offset in the window for each instruction of a tile, multiples of 128.
        box_bytes: bytes that one instruction delivers.
        window_bytes: bytes of a tile's window in shared memory.
        dump: whether the kernel writes the windows to `windows` instead of storing through the second map. It fills
            each window with the poison byte before the loads, and rounds its size up to a multiple of 1024.
        reduction: name of the reduction into the destination; None for a plain store.
    Raises:
        InvalidValueError: the rank, the number of places, or a place is out of range.
    """
    if not 1 <= rank <= MAX_RANK:
        raise InvalidValueError.of_value("rank", rank, "be 1 to 5")
    if not 1 <= len(places) <= MAX_LISTED:
        raise InvalidValueError(f"{len(places)} instructions in a tile; must be 1 to {MAX_LISTED}")
    if any(place % 128 or not 0 <= place < max(window_bytes, 1) for place in places):
        raise InvalidValueError(f"places = {places}; must be multiples of 128 in a window of {window_bytes} bytes")
    size, most = len(places) * box_bytes, MAX_TRANSACTION_BYTES
    if size > most:
        raise InvalidValueError(f"tile = {size} bytes; a barrier counts at most {most}")
    load = CopyOp("load", rank, hint=load_hint)
    store = CopyOp("reduce" if reduction else "store", rank, op=reduction or "", hint=store_hint)
    constants = {
        "THREADS": 128 if dump else 32,
        "RANK": rank,
        "PER_TILE": len(places),
        "BOX_BYTES": box_bytes,
        "STAGE_BYTES": stage_bytes(window_bytes),
        "DUMP": int(dump),
    }
    names = {
        "places": ", ".join(map(str, places)),
        "load": load.name,
        "store": store.name,
        "coordinates": ", ".join(f"c[{i}]" for i in range(rank)),
    }
    return make_kernel(
        "copy_listed",
        _BODY % names,
        constants,
        constants["STAGE_BYTES"] + BARRIER_BYTES,
        ("source", "destination", "coordinates", "windows", "poison", "record"),
        header=copy_functions(load, store),
        loads=len(places),
    )
