"""Kernels that only read or only write global memory through the copy engine: the ceilings that a copy is held against.

A block takes every n-th tile (static order). That is right here: nothing orders the tiles among each other, and
asking a counter for each tile costs 10 % of a pure read. The barrier of a stage counts the bytes that arrived; a
read checks nothing else.
"""

from __future__ import annotations

from typing import Final

from cute_py.gpu.kernels.copy import BARRIER_BYTES, stage_bytes
from cute_py.gpu.kernels.copy_op import CopyOp, copy_functions
from cute_py.gpu.kernels.source import KernelSource, make_kernel
from cute_py.gpu.kernels.walk import TileWalk

_LOAD: Final = r"""
extern "C" __global__ void __launch_bounds__(THREADS) load_only(
    const __grid_constant__ TensorMap source, const u8* address, ErrorRecord* record) {
  extern __shared__ __align__(1024) u8 stages[];
  if (threadIdx.x) return;
  const u32 base = shared_address(stages), barriers = base + STAGE_BYTES * STAGES;
#pragma unroll
  for (u32 s = 0; s < STAGES; ++s) barrier_init(barriers + 8 * s, 1);
  barrier_init_done();
  u32 tile = blockIdx.x, waiting = blockIdx.x, phase = 0;
#pragma unroll
  for (u32 s = 0; s < STAGES; ++s) {
    if (tile < TILES) load_tile(tile, base + s * STAGE_BYTES, barriers + 8 * s, &source, address);
    tile += BLOCKS;
  }
  bool more = waiting < TILES;
  while (more) {
#pragma unroll
    for (u32 s = 0; s < STAGES; ++s) {
      if (more) {
        more = wait(barriers + 8 * s, phase, s, TILE_BYTES, record);
        if (more && tile < TILES) load_tile(tile, base + s * STAGE_BYTES, barriers + 8 * s, &source, address);
        tile += BLOCKS;
        waiting += BLOCKS;
        more = more && waiting < TILES;
      }
    }
    phase ^= 1;
  }
}
"""

_STORE: Final = r"""
extern "C" __global__ void __launch_bounds__(THREADS) store_only(
    const __grid_constant__ TensorMap destination, u8* address, u32 pattern, ErrorRecord* record) {
  extern __shared__ __align__(1024) u8 stages[];
  u32* words = reinterpret_cast<u32*>(stages);
  for (u32 i = threadIdx.x; i < STAGE_BYTES / 4; i += THREADS) words[i] = pattern + i;
  fence_async_shared();
  __syncthreads();
  if (threadIdx.x) return;
  const u32 base = shared_address(stages);
  for (u32 tile = blockIdx.x; tile < TILES; tile += BLOCKS) {
    store_tile(tile, base, &destination, address);
    commit_group();
    wait_group_read<STAGES - 1>();
  }
  wait_group_read<0>();
}
"""

_TENSOR_LOAD: Final = r"""
__device__ __forceinline__ void load_tile(u32 tile, u32 shared, u32 barrier, const TensorMap* map, const u8*) {
  expect_bytes(barrier, TILE_BYTES);
  %(call)s(shared, map, barrier, %(coordinates)s);
}
"""
_TENSOR_STORE: Final = r"""
__device__ __forceinline__ void store_tile(u32 tile, u32 shared, const TensorMap* map, u8*) {
  %(call)s(shared, map, %(coordinates)s);
}
"""
_BULK_LOAD: Final = r"""
__device__ __forceinline__ void load_tile(u32 tile, u32 shared, u32 barrier, const TensorMap*, const u8* address) {
  expect_bytes(barrier, TILE_BYTES);
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(shared), "l"(address + (u64)tile * TILE_BYTES), "r"((u32)TILE_BYTES), "r"(barrier) : "memory");
}
"""
_BULK_STORE: Final = r"""
__device__ __forceinline__ void store_tile(u32 tile, u32 shared, const TensorMap*, u8* address) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
               ::"l"(address + (u64)tile * TILE_BYTES), "r"(shared), "r"((u32)TILE_BYTES) : "memory");
}
"""


def _source(name: str, body: str, header: str, constants: dict[str, int], parameters: tuple[str, ...]) -> KernelSource:
    shared = constants["STAGE_BYTES"] * (constants["STAGES"] if name == "load_only" else 1) + BARRIER_BYTES
    return make_kernel(name, body, constants, shared, parameters, header=header)


def load_only(walk: TileWalk, tile_bytes: int, *, blocks: int, stages: int, bulk: bool = False) -> KernelSource:
    """Read every tile of `walk` into shared memory and drop it. Parameters: map, base address, error record.

    With `bulk`, tile t is the `tile_bytes` bytes at base + t * tile_bytes, without a tensor map.
    """
    return _source(
        "load_only",
        (_BULK_LOAD if bulk else _TENSOR_LOAD % _fill("load", walk)) + _LOAD,
        "" if bulk else copy_functions(CopyOp("load", len(walk.counts))),
        _constants(walk, tile_bytes, blocks, stages),
        ("source", "address", "record"),
    )


def store_only(walk: TileWalk, tile_bytes: int, *, blocks: int, stages: int, bulk: bool = False) -> KernelSource:
    """Write one tile of words `pattern + i` to every tile of `walk`. Parameters: map, address, pattern, error record.

    `stages` is how many stores may be reading shared memory at a time.
    """
    return _source(
        "store_only",
        (_BULK_STORE if bulk else _TENSOR_STORE % _fill("store", walk)) + _STORE,
        "" if bulk else copy_functions(CopyOp("store", len(walk.counts))),
        _constants(walk, tile_bytes, blocks, stages),
        ("destination", "address", "pattern", "record"),
    )


def _fill(kind: str, walk: TileWalk) -> dict[str, str]:
    return {"call": CopyOp(kind, len(walk.counts)).name, "coordinates": ", ".join(walk.expressions("tile"))}


def _constants(walk: TileWalk, tile_bytes: int, blocks: int, stages: int) -> dict[str, int]:
    return {
        "THREADS": 32,
        "TILES": walk.tiles,
        "TILE_BYTES": tile_bytes,
        "STAGE_BYTES": stage_bytes(tile_bytes),
        "STAGES": stages,
        "BLOCKS": blocks,
    }
