"""Plain bulk copies: bytes without a tensor map, global to shared to global, and from one CTA to another.

Addresses and sizes are multiples of 16 bytes. `copy_bulk` moves `tile_bytes` a block; `exchange_bulk` sends each
CTA's window to the next CTA of its cluster (cp.async.bulk.shared::cluster.shared::cta) and writes out what arrived.
"""

from __future__ import annotations

from typing import Final

from cute_py.errors import InvalidValueError
from cute_py.gpu.kernels.copy import BARRIER_BYTES, stage_bytes
from cute_py.gpu.kernels.source import KernelSource, make_kernel

_PARTS: Final = r"""
__device__ __forceinline__ void bulk_load(u32 shared, const u8* from, u32 bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(shared), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}
__device__ __forceinline__ void bulk_store(u8* to, u32 shared, u32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
               ::"l"(to), "r"(shared), "r"(bytes) : "memory");
}
"""

_COPY: Final = r"""
extern "C" __global__ void __launch_bounds__(THREADS) copy_bulk(
    const u8* source, u8* destination, u64 bytes, ErrorRecord* record) {
  extern __shared__ __align__(128) u8 stages[];
  if (threadIdx.x) return;
  const u32 base = shared_address(stages), barrier = base + STAGE_BYTES;
  const u64 first = (u64)blockIdx.x * TILE_BYTES;
  const u32 size = bytes - first < TILE_BYTES ? (u32)(bytes - first) : TILE_BYTES;
  const u32 whole = size / 16 * 16;
  if (whole) {
    barrier_init(barrier, 1);
    barrier_init_done();
    expect_bytes(barrier, whole);
    bulk_load(base, source + first, whole, barrier);
    if (!wait(barrier, 0, 0, whole, record)) return;
    bulk_store(destination + first, base, whole);
    commit_group();
  }
  for (u32 i = whole; i < size; ++i) destination[first + i] = source[first + i];
  wait_group_read<0>();
}
"""

_EXCHANGE: Final = r"""
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
extern "C" __global__ void __launch_bounds__(THREADS) exchange_bulk(
    const u8* source, u8* destination, ErrorRecord* record) {
  extern __shared__ __align__(128) u8 stages[];
  const u32 base = shared_address(stages), inbox = base + STAGE_BYTES, barrier = inbox + STAGE_BYTES;
  const u32 rank = blockIdx.x % CLUSTER, next = (rank + 1) % CLUSTER;
  if (threadIdx.x == 0) {
    barrier_init(barrier, 1);
    barrier_init(barrier + 8, 1);
    barrier_init_done();
    expect_bytes(barrier, TILE_BYTES);
    expect_bytes(barrier + 8, TILE_BYTES);
    bulk_load(base, source + (u64)blockIdx.x * TILE_BYTES, TILE_BYTES, barrier);
  }
  __syncthreads();
  cluster_sync();
  if (threadIdx.x == 0 && wait(barrier, 0, 0, TILE_BYTES, record)) {
    asm volatile("{\n\t.reg .b32 there, signal;\n\tmapa.shared::cluster.u32 there, %0, %4;\n\t"
                 "mapa.shared::cluster.u32 signal, %1, %4;\n\t"
                 "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                 "[there], [%2], %3, [signal];\n\t}"
                 ::"r"(inbox), "r"(barrier + 8), "r"(base), "r"((u32)TILE_BYTES), "r"(next) : "memory");
    if (wait(barrier + 8, 0, 1, TILE_BYTES, record)) {
      bulk_store(destination + (u64)blockIdx.x * TILE_BYTES, inbox, TILE_BYTES);
      commit_group();
      wait_group_read<0>();
    }
  }
  __syncthreads();
  cluster_sync();
}
"""


def copy_bulk(tile_bytes: int = 16384, *, pad_shared: int = 0) -> KernelSource:
    """Copy `bytes` bytes from one address to another, `tile_bytes` a block; blocks = ceil(bytes / tile_bytes).

    Bytes after the last multiple of 16 are moved by the thread itself. Raises InvalidValueError for a tile that is
    not a multiple of 16 bytes.
    """
    if tile_bytes % 16 or tile_bytes < 16:
        raise InvalidValueError(f"tile = {tile_bytes} bytes; must be a positive multiple of 16")
    constants = {"THREADS": 32, "TILE_BYTES": tile_bytes, "STAGE_BYTES": stage_bytes(tile_bytes)}
    shared = constants["STAGE_BYTES"] + BARRIER_BYTES + pad_shared
    return make_kernel("copy_bulk", _PARTS + _COPY, constants, shared, ("source", "destination", "bytes", "record"))


def exchange_bulk(tile_bytes: int, cluster: int) -> KernelSource:
    """Each CTA loads tile b of the source and sends it to the next CTA of its cluster, which writes it as its own.

    destination tile c * cluster + (r + 1) % cluster = source tile c * cluster + r. Raises InvalidValueError for a
    tile that is not a multiple of 16 bytes or a cluster out of range.
    """
    if tile_bytes % 16 or tile_bytes < 16:
        raise InvalidValueError(f"tile = {tile_bytes} bytes; must be a positive multiple of 16")
    if not 2 <= cluster <= 16:
        raise InvalidValueError(f"cluster = {cluster} CTAs; must be 2 to 16: a block alone has no peer")
    constants = {"THREADS": 32, "TILE_BYTES": tile_bytes, "STAGE_BYTES": stage_bytes(tile_bytes), "CLUSTER": cluster}
    shared, parameters = 2 * constants["STAGE_BYTES"] + BARRIER_BYTES, ("source", "destination", "record")
    return make_kernel("exchange_bulk", _PARTS + _EXCHANGE, constants, shared, parameters, cluster=cluster)
