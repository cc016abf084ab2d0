"""Kernels with the forms that only sm_100 has. They are assembled for sm_100a, and have not been executed.

gather4 and scatter4 (five coordinates: the inner one and four rows), the im2col::w modes, cta_group::2 loads (the
barrier address has its peer bit cleared, as CuTe's Sm100MmaPeerBitMask does, so that both CTAs count on the leader's
barrier), multicast of gather4, and the smem -> tmem copy tcgen05.cp.
"""

from __future__ import annotations

from typing import Final

from benchmarks.kernels.replace import ReplaceCase
from benchmarks.kernels.single import single_instructions
from cute_py.gpu.kernels.copy_op import CopyOp, copy_functions
from cute_py.gpu.kernels.source import KernelSource, make_kernel

EVIDENCE: Final = "assembled, not executed"

PEER_BIT_MASK: Final = 0xFEFFFFFF
"""Clears the bit of a shared::cluster address that tells the two CTAs of a pair apart.
cute/arch/copy_sm100_tma.hpp, Sm100MmaPeerBitMask."""

_PAIR: Final = r"""
extern "C" __global__ void __launch_bounds__(THREADS) __cluster_dims__(2, 1, 1) load_pair(
    const __grid_constant__ TensorMap source, u8* dump, ErrorRecord* record) {
  extern __shared__ __align__(1024) u8 window[];
  const u32 base = shared_address(window), barrier = base + TILE_BYTES;
  u32 rank;
  asm volatile("mov.u32 %%0, %%%%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) { barrier_init(barrier, 1); barrier_init_done(); }
  __syncthreads();
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (threadIdx.x == 0) {
    if (rank == 0) expect_bytes(barrier, 2 * TILE_BYTES);
    %(load)s(base, &source, barrier & PEER_BIT_MASK, 0, (int)(rank * ROWS));
    if (rank == 0) wait(barrier, 0, 0, 2 * TILE_BYTES, record);
  }
  __syncthreads();
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (dump) for (u32 i = threadIdx.x; i < TILE_BYTES; i += THREADS) dump[blockIdx.x * TILE_BYTES + i] = window[i];
}
"""

_TMEM: Final = r"""
extern "C" __global__ void __launch_bounds__(THREADS) copy_to_tensor_memory(
    const uint4* source, u64 matrix_descriptor, u32* dump, ErrorRecord* record) {
  extern __shared__ __align__(1024) u8 window[];
  __shared__ u32 slot;
  const u32 base = shared_address(window), barrier = base + TILE_BYTES;
  uint4* inside = reinterpret_cast<uint4*>(window);
  for (u32 i = threadIdx.x; i < TILE_BYTES / 16; i += THREADS) inside[i] = source[i];
  if (threadIdx.x < 32)
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;"
                 ::"r"(shared_address(&slot)) : "memory");
  if (threadIdx.x == 0) { barrier_init(barrier, 1); barrier_init_done(); }
  fence_async_shared();
  __syncthreads();
  const u32 column = slot;
  if (threadIdx.x == 0) {
    asm volatile("tcgen05.cp.cta_group::1.128x128b [%0], %1;"
                 ::"r"(column), "l"(matrix_descriptor | (base >> 4 & 0x3FFF)) : "memory");
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
                 ::"r"(barrier) : "memory");
  }
  wait(barrier, 0, 0, TILE_BYTES, record);
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  u32 a, b, c, d;
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];\n\ttcgen05.wait::ld.sync.aligned;"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(column + ((threadIdx.x / 32) << 21)) : "memory");
  u32* out = dump + threadIdx.x * 4;
  out[0] = a; out[1] = b; out[2] = c; out[3] = d;
  __syncthreads();
  if (threadIdx.x < 32)
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(column) : "memory");
}
"""


def gather_scatter() -> KernelSource:
    """gather4 loads (alone and multicast), scatter4 stores, and the two im2col::w modes, as single instructions."""
    forms = (
        CopyOp("load", 2, "tile::gather4"),
        CopyOp("load", 2, "tile::gather4", multicast=True),
        CopyOp("store", 2, "tile::scatter4"),
        CopyOp("load", 4, "im2col::w"),
        CopyOp("load", 4, "im2col::w::128"),
        CopyOp("prefetch", 2, "tile::gather4"),
    )
    return single_instructions(forms, window_bytes=65536, cluster=2, arch="sm_100a")


def load_pair(rows: int = 64, row_bytes: int = 128) -> KernelSource:
    """Two CTAs load half a tile each (a box of `rows` rows) and count all bytes on the leader's barrier."""
    load = CopyOp("load", 2, pair=True)
    constants = {"THREADS": 128, "ROWS": rows, "TILE_BYTES": rows * row_bytes, "PEER_BIT_MASK": PEER_BIT_MASK}
    return make_kernel(
        "load_pair",
        _PAIR % {"load": load.name},
        constants,
        rows * row_bytes + 128,
        ("source", "dump", "record"),
        header=copy_functions(load),
        facts={"evidence": EVIDENCE},
        cluster=2,
        arch="sm_100a",
    )


def copy_to_tensor_memory() -> KernelSource:
    """One tcgen05.cp of shape 128x128b from shared memory, read back through tcgen05.ld."""
    return make_kernel(
        "copy_to_tensor_memory",
        _TMEM,
        {"THREADS": 128, "TILE_BYTES": 2048},
        2048 + 128,
        ("source", "matrix_descriptor", "dump", "record"),
        facts={"evidence": EVIDENCE},
        arch="sm_100a",
    )


def replace_atomicity() -> KernelSource:
    """tensormap.replace of swizzle_atomicity, a field that sm_90 does not have."""
    calls = "\n".join(
        f"  {ReplaceCase('swizzle_mode', immediate=3).call('map', '0')}".replace("swizzle_mode", name)
        for name in ("swizzle_mode", "swizzle_atomicity")
    )
    body = (
        'extern "C" __global__ void replace_atomicity(u64* out) {\n'
        "  __shared__ __align__(128) u64 words[16];\n"
        "  const u32 map = shared_address(words);\n"
        "  if (threadIdx.x < 16) words[threadIdx.x] = out[threadIdx.x];\n  __syncwarp();\n"
        f"{calls}\n  __syncwarp();\n  if (threadIdx.x < 16) out[threadIdx.x] = words[threadIdx.x];\n}}\n"
    )
    facts = {"evidence": EVIDENCE}
    return make_kernel("replace_atomicity", body, {"THREADS": 32}, 0, ("out",), facts=facts, arch="sm_100a")
