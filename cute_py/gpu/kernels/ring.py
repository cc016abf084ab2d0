"""The ring copy kernel: a few persistent blocks, each with a ring of stages, take tiles in order from a global counter.

In a static order, each block takes every n-th tile. Because SMs differ in speed, some blocks then fall behind: the
range of addresses in use widens, and a few blocks still work at the end, which costs 5 % of a large copy. Therefore
only the first tiles are assigned by block index, and every stage that becomes free takes the next tile from a counter
in global memory. The last block to end resets the counter to zero for the next launch.

A single thread of each block works. For each tile, it waits for the load, stores the tile, and meanwhile requests the
index of the next tile. Then it waits until the store of the previous tile has read its stage, and loads the next tile
into that stage.
"""

from __future__ import annotations

from typing import Final

from cute_py.errors import InvalidValueError
from cute_py.gpu.kernels.copy import BARRIER_BYTES, stage_bytes, tile_functions
from cute_py.gpu.kernels.copy_op import CopyOp, copy_functions
from cute_py.gpu.kernels.source import KernelSource, make_kernel
from cute_py.gpu.kernels.walk import TileWalk

COUNTER_BYTES: Final = 256
"""Size of the counters: the counter of tiles at byte 0, and the count of ended blocks at byte 128; both are 0 between
launches."""

_BODY: Final = r"""
extern "C" __global__ void __launch_bounds__(THREADS) copy_ring(
    const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap destination,
    const u8* tail_source, u8* tail_destination, u32* counter, ErrorRecord* record) {
  extern __shared__ __align__(1024) u8 stages[];
  copy_tail(tail_source, tail_destination);
  if (threadIdx.x) return;
  const u32 base = shared_address(stages), barriers = base + STAGE_BYTES * STAGES;
  u32 tile[STAGES];
#pragma unroll
  for (u32 s = 0; s < STAGES; ++s) barrier_init(barriers + 8 * s, 1);
  barrier_init_done();
#pragma unroll
  for (u32 s = 0; s < STAGES; ++s) {
    tile[s] = blockIdx.x + s * BLOCKS;
    if (tile[s] < TILES) load_tile(tile[s], base + s * STAGE_BYTES, barriers + 8 * s, &source);
  }
  prefetch_map(&destination);
  u32 phase = 0, turn = 0;
  bool more = true;
  while (more) {
#pragma unroll
    for (u32 s = 0; s < STAGES; ++s) {
      if (more && tile[s] < TILES) {
        const u32 freed = (s + STAGES - STORES) % STAGES;
        const bool refill = turn != 0 || s >= STORES;
        u32 ticket = 0;
        if (EARLY && DYNAMIC && refill) ticket = atomicAdd(counter, 1u);
        if (!wait(barriers + 8 * s, phase, s, TILE_BYTES, record)) {
          more = false;
        } else {
          store_tile(tile[s], base + s * STAGE_BYTES, &destination);
          commit_group();
          if (refill) {
            if (!EARLY && DYNAMIC) ticket = atomicAdd(counter, 1u);
            wait_group_read<STORES>();
            const u32 next = BLOCKS * STAGES + (DYNAMIC ? ticket : tile[freed]);
            tile[freed] = next;
            if (next < TILES) load_tile(next, base + freed * STAGE_BYTES, barriers + 8 * freed, &source);
          }
        }
      } else {
        more = false;
      }
    }
    phase ^= 1;
    turn = 1;
  }
  wait_group_read<0>();
  if (DYNAMIC && atomicAdd(counter + 32, 1u) == BLOCKS - 1) {
    counter[0] = 0;
    counter[32] = 0;
  }
}
"""


def copy_ring(
    walk: TileWalk,
    tile_bytes: int,
    *,
    blocks: int,
    window_bytes: int | None = None,
    stages: int = 4,
    stores: int = 1,
    dynamic: bool = True,
    early: bool = False,
    tail_bytes: int = 0,
    load_hint: str | None = None,
    store_hint: str | None = None,
) -> KernelSource:
    """Make the kernel of a ring copy of the tiles of `walk`, with `blocks` persistent blocks.

    Args:
        walk, tile_bytes, window_bytes, tail_bytes, load_hint, store_hint: as for the one-shot copy.
        blocks: blocks of the grid: the number of SMs times the number of blocks that fit on an SM.
        stages: tiles in flight in a block, 1..16.
        stores: number of stores that may still read shared memory when the next load is issued, below `stages`.
        dynamic: assign tiles by the counter; otherwise a stage takes every `blocks * stages`-th tile.
        early: request the next tile index before the wait for the current tile, not after its store. The index then
            arrives sooner, but is older when it is used.
    Raises:
        InvalidValueError: `stages` or `stores` is out of range.
    """
    if not 1 <= stages <= 16:
        raise InvalidValueError.of_value("stages", stages, "be 1 to 16")
    if not 0 <= stores < stages:
        raise InvalidValueError.of_value("stores", stores, f"be 0 to stages - 1 = {stages - 1}")
    rank = len(walk.counts)
    load, store = CopyOp("load", rank, hint=load_hint), CopyOp("store", rank, hint=store_hint)
    stage = stage_bytes(window_bytes or tile_bytes)
    constants = {
        "THREADS": 32,
        "TILES": walk.tiles,
        "TILE_BYTES": tile_bytes,
        "STAGE_BYTES": stage,
        "STAGES": stages,
        "STORES": stores,
        "BLOCKS": blocks,
        "DYNAMIC": int(dynamic),
        "EARLY": int(early),
        "TAIL_BYTES": tail_bytes,
    }
    return make_kernel(
        "copy_ring",
        tile_functions(load, store, walk) + _BODY.lstrip(),
        constants,
        stage * stages + BARRIER_BYTES,
        ("source", "destination", "tail_source", "tail_destination", "counter", "record"),
        header=copy_functions(load, store),
        facts={"walk": walk, "load_hint": load_hint, "store_hint": store_hint},
    )
