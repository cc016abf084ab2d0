"""A kernel around the text of a copy in the operations of the TMA Atoms reference page: `TmaOperation.ptx()` as it is.

Each CTA of a cluster issues the text of its own operation. The tile is at the start of dynamic shared memory, the
barrier behind it. The tile is brought from the CTA's image in global memory before the copy, and written back after.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from cute_py.gpu.kernels.source import WAIT_CYCLES, KernelSource, make_kernel
from cute_py.tma.dialect.exec_atom import TmaOperation

_ISSUE: Final = r"""
__device__ __forceinline__ void issue_%(cta)d(const TensorMap* map, u32 tile, u32 barrier) {
  asm volatile("{\n.reg .b64 %%%%rd_desc;\n.reg .b32 %%%%r_smem, %%%%r_mbar;\n"
               "mov.b64 %%%%rd_desc, %%0;\nmov.b32 %%%%r_smem, %%1;\nmov.b32 %%%%r_mbar, %%2;\n"
%(text)s
               "}" ::"l"(map), "r"(tile), "r"(barrier) : "memory");
}
"""

_BODY: Final = r"""
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
extern "C" __global__ void __launch_bounds__(THREADS) run_operation(
    const __grid_constant__ TensorMap map, u8* images, ErrorRecord* record) {
  extern __shared__ __align__(1024) u8 tile[];
  const u32 base = shared_address(tile), barrier = base + TILE_BYTES;
  u8* image = images + u64(blockIdx.x) * TILE_BYTES;
  for (u32 i = threadIdx.x; i < TILE_BYTES; i += THREADS) tile[i] = image[i];
  if (threadIdx.x == 0) {
    barrier_init(barrier, 1);
    barrier_init_done();
  }
  fence_async_shared();
  __syncthreads();
  cluster_sync();
  if (threadIdx.x == 0) {
    switch (blockIdx.x) { CASES }
    if (LOADS)
      wait(barrier, 0, 0, EXPECTED, record);
    else
      wait_group<0>();
  }
  __syncthreads();
  cluster_sync();
  for (u32 i = threadIdx.x; i < TILE_BYTES; i += THREADS) image[i] = tile[i];
}
"""


def run_operation(operations: Sequence[TmaOperation], *, wait_cycles: int = WAIT_CYCLES) -> KernelSource:
    """One operation for each CTA of a cluster: parameters are the tensor map, the images of the tiles, the record.

    An image is as long as the tile, rounded up to 1024 bytes: `facts["TILE_BYTES"]`.
    """
    atom = operations[0].exec_atom.atom
    loads = atom.kind == "load"
    used = max(copy.smem_offset * atom.element_bits // 8 + copy.nbytes for one in operations for copy in one.copies)
    window = math.ceil(max(used, atom.transaction_bytes) / 1024) * 1024
    quoted = [
        "\n".join([f'               "{line.replace("%", "%%")}\\n"' for line in one.ptx("sm_90a").splitlines()])
        for one in operations
    ]
    header = "".join([_ISSUE % {"cta": cta, "text": text} for cta, text in enumerate(quoted)])
    cases = " ".join([f"case {cta}: issue_{cta}(&map, base, barrier); break;" for cta in range(len(quoted))])
    constants = {"THREADS": 128, "TILE_BYTES": window, "LOADS": int(loads), "EXPECTED": atom.transaction_bytes}
    return make_kernel(
        "run_operation",
        _BODY.replace("CASES", cases),
        constants,
        window + 8,
        ("map", "images", "record"),
        header=header,
        wait_cycles=wait_cycles,
        cluster=len(operations),
    )
