"""Loads by clusters: every CTA of a cluster gets the whole tile; each CTA fetches one slice of it for all.

The ring of a CTA has two barriers a stage. `full` counts the bytes of the whole tile, whoever fetched them. `empty`
counts one arrival of every CTA of the cluster: a slice may be sent only when all of them are done with the stage,
since it lands in all of them. One warp issues, another one consumes and tells the others.

The arrival on another CTA's barrier must carry no scope: `mbarrier.arrive.release.cluster` compiles to a full memory
barrier that drains the thread's loads and makes the ring 3 times slower (measured on NVIDIA H200).
"""

from __future__ import annotations

from typing import Final

from cute_py.errors import InvalidValueError
from cute_py.gpu.kernels.copy import stage_bytes
from cute_py.gpu.kernels.copy_op import CopyOp, copy_functions
from cute_py.gpu.kernels.source import KernelSource, make_kernel
from cute_py.gpu.kernels.walk import TileWalk

_BODY: Final = r"""
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ void arrive_at(u32 barrier, u32 rank) {
  asm volatile("{\n\t.reg .b32 remote;\n\tmapa.shared::cluster.u32 remote, %%0, %%1;\n\t"
               "mbarrier.arrive.shared::cluster.b64 _, [remote];\n\t}" ::"r"(barrier), "r"(rank) : "memory");
}
extern "C" __global__ void __launch_bounds__(THREADS) load_cluster(
    const __grid_constant__ TensorMap source, u8* dump, u32* sums, ErrorRecord* record) {
  extern __shared__ __align__(1024) u8 stages[];
  const u32 base = shared_address(stages), full = base + STAGE_BYTES * STAGES, empty = full + 8 * STAGES;
  const u32 rank = blockIdx.x %% CLUSTER, first = blockIdx.x / CLUSTER;
  if (threadIdx.x == 0) {
#pragma unroll
    for (u32 s = 0; s < STAGES; ++s) {
      barrier_init(full + 8 * s, 1);
      barrier_init(empty + 8 * s, MULTICAST ? CLUSTER : 1);
    }
    barrier_init_done();
  }
  __syncthreads();
  cluster_sync();
  if (threadIdx.x == 0) {
    u32 phase = 0;
    bool more = true;
    for (u32 number = first; more && number < TILES * PASSES;) {
#pragma unroll
      for (u32 s = 0; s < STAGES; ++s) {
        if (more && number < TILES * PASSES) {
          const u32 tile = PASSES == 1 ? number : number %% TILES;
          if (number >= first + STAGES * CLUSTERS) more = wait(empty + 8 * s, phase ^ 1, s, 0, record);
          if (more) {
            expect_bytes(full + 8 * s, TILE_BYTES);
#pragma unroll
            for (u32 b = MULTICAST ? rank : 0; b < CLUSTER; b += MULTICAST ? CLUSTER : 1) {
              const u32 shared = base + s * STAGE_BYTES + b * SLICE_BYTES;
              %(load)s(shared, &source, full + 8 * s, %(coordinates)s%(mask)s);
            }
          }
          number += CLUSTERS;
        }
      }
      phase ^= 1;
    }
  } else if (threadIdx.x >= 32) {
    const u32 lane = threadIdx.x - 32;
    u32 phase = 0, sum = 0;
    bool more = true;
    for (u32 number = first; more && number < TILES * PASSES;) {
#pragma unroll
      for (u32 s = 0; s < STAGES; ++s) {
        if (more && number < TILES * PASSES) {
          more = wait(full + 8 * s, phase, s, TILE_BYTES, record);
          if (CHECK && more) {
            const u32* words = reinterpret_cast<const u32*>(stages + s * STAGE_BYTES);
            for (u32 i = lane; i < TILE_BYTES / 4; i += 32) sum += words[i] * (2 * i + 1);
            if (dump && number < CLUSTERS)
              for (u32 i = lane; i < TILE_BYTES / 4; i += 32)
                reinterpret_cast<u32*>(dump)[(u64)blockIdx.x * (TILE_BYTES / 4) + i] = words[i];
          }
          __syncwarp();
          if (MULTICAST) { if (lane < CLUSTER) arrive_at(empty + 8 * s, lane); }
          else if (lane == 0) arrive(empty + 8 * s);
          number += CLUSTERS;
        }
      }
      phase ^= 1;
    }
    if (CHECK) {
      for (u32 step = 16; step; step /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
      if (lane == 0) sums[blockIdx.x] = sum;
    }
  }
  __syncthreads();
  cluster_sync();
}
"""


def load_cluster(
    walk: TileWalk,
    tile_bytes: int,
    slice_step: tuple[int, ...],
    *,
    cluster: int,
    clusters: int,
    stages: int,
    multicast: bool = True,
    passes: int = 1,
    check: bool = False,
) -> KernelSource:
    """Bring every tile of `walk` into every CTA of the cluster that it falls to; blocks = clusters x cluster.

    Args:
        walk: whole tiles; cluster i takes tiles i, i + clusters, ...
        tile_bytes: of a whole tile; a slice, the box of the map, has tile_bytes / cluster.
        slice_step: elements from one slice of a tile to the next, each mode.
        cluster: CTAs in a cluster, 2, 4, 8 or 16 (16 needs the non-portable opt-in), or 1.
        clusters: that stay.
        stages: whole tiles in flight in a CTA.
        multicast: fetch one slice for all; else every CTA fetches all slices for itself.
        passes: how often the tensor is walked; more than one measures what L2 delivers.
        check: weigh and add all words that arrive (`sums`, one a CTA), and write the first tile of every CTA to `dump`.
    Raises:
        InvalidValueError: a tile that does not divide into slices of whole 1024 bytes.
    """
    slice_bytes = tile_bytes // cluster
    if tile_bytes % (cluster * 128):
        raise InvalidValueError(f"tile = {tile_bytes} bytes; must be a multiple of {cluster} slices of 128 bytes")
    if walk.tiles * passes >= 2**31:
        raise InvalidValueError(f"{walk.tiles} tiles x {passes} passes; must be below 2**31")
    load = CopyOp("load", len(walk.counts), multicast=multicast and cluster > 1)
    coordinates = [
        f"{base} + (int)(b * {step}u)" if step else base
        for base, step in zip(walk.expressions("tile"), slice_step, strict=True)
    ]
    constants = {
        "THREADS": 64,
        "TILES": walk.tiles,
        "PASSES": passes,
        "TILE_BYTES": tile_bytes,
        "SLICE_BYTES": slice_bytes,
        "STAGE_BYTES": stage_bytes(tile_bytes),
        "STAGES": stages,
        "CLUSTER": cluster,
        "CLUSTERS": clusters,
        "MULTICAST": int(load.multicast),
        "CHECK": int(check),
    }
    mask = f", (u16){2**cluster - 1}" if load.multicast else ""
    names = {"load": load.name, "coordinates": ", ".join(coordinates), "mask": mask}
    return make_kernel(
        "load_cluster",
        _BODY % names,
        constants,
        constants["STAGE_BYTES"] * stages + 16 * stages,
        ("source", "dump", "sums", "record"),
        header=copy_functions(load),
        facts={"walk": walk},
        cluster=cluster,
    )
