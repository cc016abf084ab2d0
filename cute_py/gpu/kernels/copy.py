"""The one-shot copy kernel: a grid of blocks; each block moves a few tiles and ends.

The hardware starts blocks in order, so the GPU accesses a narrow range of addresses at any time, and all SMs finish at
about the same time. This kernel is faster than the ring below about 128 MiB, because it starts faster. A single thread
of each block works: it issues all loads, prefetches the tensor map of the stores, and stores each tile when it has
arrived.
"""

from __future__ import annotations

from typing import Final

from cute_py.errors import InvalidValueError
from cute_py.gpu.kernels.copy_op import CopyOp, copy_functions
from cute_py.gpu.kernels.source import KernelSource, make_kernel
from cute_py.gpu.kernels.walk import TileWalk

BARRIER_BYTES: Final = 128
"""Bytes of shared memory after the tiles: up to 16 barriers of 8 bytes."""

_TILES: Final = r"""
__device__ __forceinline__ void copy_tail(const u8* source, u8* destination) {
  if (TAIL_BYTES && blockIdx.x == 0) {
    for (u32 i = threadIdx.x; i < TAIL_BYTES; i += THREADS) destination[i] = source[i];
  }
}

__device__ __forceinline__ void load_tile(u32 tile, u32 shared, u32 barrier, const TensorMap* map) {
  expect_bytes(barrier, TILE_BYTES);
  %(load)s(shared, map, barrier, %(coordinates)s);
}
__device__ __forceinline__ void store_tile(u32 tile, u32 shared, const TensorMap* map) {
  %(store)s(shared, map, %(coordinates)s);
}
"""

_BODY: Final = r"""
extern "C" __global__ void __launch_bounds__(THREADS) copy_once(
    const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap destination,
    const u8* tail_source, u8* tail_destination, ErrorRecord* record) {
  extern __shared__ __align__(1024) u8 stages[];
  if (AWAITS && TAIL_BYTES) await_previous();
  copy_tail(tail_source, tail_destination);
  if (threadIdx.x) return;
  const u32 base = shared_address(stages), barriers = base + STAGE_BYTES * PER_BLOCK;
  const u32 first = blockIdx.x * PER_BLOCK;
#pragma unroll
  for (u32 i = 0; i < PER_BLOCK; ++i) barrier_init(barriers + 8 * i, 1);
  barrier_init_done();
  if (AWAITS) {
    await_previous();
    allow_next();
  }
#pragma unroll
  for (u32 i = 0; i < PER_BLOCK; ++i)
    if (TILES % PER_BLOCK == 0 || first + i < TILES)
      load_tile(first + i, base + i * STAGE_BYTES, barriers + 8 * i, &source);
  prefetch_map(&destination);
#pragma unroll
  for (u32 i = 0; i < PER_BLOCK; ++i)
    if (TILES % PER_BLOCK == 0 || first + i < TILES) {
      if (!wait(barriers + 8 * i, 0, i, TILE_BYTES, record)) return;
      store_tile(first + i, base + i * STAGE_BYTES, &destination);
      commit_group();
    }
  wait_group_read<0>();
}
"""


def tile_functions(load: CopyOp, store: CopyOp, walk: TileWalk) -> str:
    """Return device functions that all copies of whole tensors share: for the tail, and for loads and stores of one
    tile."""
    coordinates = ", ".join(walk.expressions("tile"))
    return _TILES % {"load": load.name, "store": store.name, "coordinates": coordinates}


AWAITING: Final = 16 * 2**20
"""Up to this number of bytes the one-shot copy waits for the previous kernel. At 64 MiB, its many small blocks take
20 % longer with the wait (NVIDIA H200)."""


def stage_bytes(window_bytes: int) -> int:
    """Return the shared memory of one stage: the tile's window, rounded up to 1024 bytes, because every swizzle pattern
    starts at a multiple of 1024."""
    return -(-window_bytes // 1024) * 1024


def copy_once(
    walk: TileWalk,
    tile_bytes: int,
    *,
    window_bytes: int | None = None,
    per_block: int = 1,
    tail_bytes: int = 0,
    load_hint: str | None = None,
    store_hint: str | None = None,
    reduction: str | None = None,
    pad_shared: int = 0,
) -> KernelSource:
    """Make the kernel of a one-shot copy of the tiles of `walk`, with ceil(tiles / per_block) blocks.

    Args:
        walk: tiles and their coordinates, the same for source and destination.
        tile_bytes: bytes that the barrier of one load counts.
        window_bytes: shared memory that a tile covers; it exceeds `tile_bytes` if swizzled rows are narrower than their
            pitch.
        per_block: tiles of one block, 1..16.
        tail_bytes: bytes that threads copy one by one, at addresses that two extra kernel parameters give.
        load_hint, store_hint: names of cache policies, or None.
        reduction: reduction into the destination instead of a store: "add", "min", ...
        pad_shared: additional shared memory in bytes, so that fewer blocks fit on an SM.
    Raises:
        InvalidValueError: `per_block` is out of range.
    """
    if not 1 <= per_block <= 16:
        raise InvalidValueError.of_value("per_block", per_block, "be 1 to 16")
    rank = len(walk.counts)
    load = CopyOp("load", rank, hint=load_hint)
    store = CopyOp("reduce" if reduction else "store", rank, op=reduction or "", hint=store_hint)
    stage = stage_bytes(window_bytes or tile_bytes)
    awaits = walk.tiles * tile_bytes <= AWAITING
    constants = {
        "THREADS": 32,
        "TILES": walk.tiles,
        "TILE_BYTES": tile_bytes,
        "STAGE_BYTES": stage,
        "PER_BLOCK": per_block,
        "TAIL_BYTES": tail_bytes,
        "AWAITS": int(awaits),
    }
    return make_kernel(
        "copy_once",
        tile_functions(load, store, walk) + _BODY.lstrip(),
        constants,
        stage * per_block + BARRIER_BYTES + pad_shared,
        ("source", "destination", "tail_source", "tail_destination", "record"),
        header=copy_functions(load, store),
        facts={"walk": walk, "load_hint": load_hint, "store_hint": store_hint, "reduction": reduction},
        awaits=awaits,
    )
