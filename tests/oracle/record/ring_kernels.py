"""Kernels with rings of barriers, compiled by nvcc: `python -m tests.oracle.record.ring_kernels FILE.jsonl.xz`.

Each row is `kernel` (a name of `KERNELS`), `defines` (what was defined on the command line), `nvcc` (its release) and
`ptx`. The kernels take the tensor map as parameter 0; its box is 64 x 128 elements of 2 bytes, 16384 bytes.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import subprocess
import tempfile
from pathlib import Path

HEAD = r"""
#include <cuda.h>
#include <stdint.h>
__device__ uint32_t at(void const* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ void init(uint64_t* b, int n) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(n));
}
__device__ void expect(uint64_t* b, int n) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(b)), "r"(n) : "memory");
}
__device__ void arrive(uint64_t* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(b)) : "memory");
}
__device__ void wait(uint64_t* b, int parity) {
  asm volatile("{\n.reg .pred P1;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
               "@P1 bra DONE;\nbra AGAIN;\nDONE:\n}" ::"r"(at(b)), "r"(parity) : "memory");
}
__device__ void load(void* to, CUtensorMap const* map, int x, int y, uint64_t* b) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               ::"r"(at(to)), "l"(map), "r"(x), "r"(y), "r"(at(b)) : "memory");
}
extern __shared__ __align__(1024) unsigned char smem[];
"""

KERNELS = {
    # One thread fills a ring of four stages; all threads wait and read.
    "ring": r"""
extern "C" __global__ void kernel(const __grid_constant__ CUtensorMap map, float* out, int n) {
  __shared__ __align__(8) uint64_t full[4];
  unsigned char* tiles = smem + OFFSET;
  if (threadIdx.x == 0) for (int i = 0; i < 4; ++i) init(&full[i], COUNT);
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 0; i < 4; ++i) { expect(&full[i], BYTES); load(tiles + i * 16384, &map, 0, i * 64, &full[i]); }
  float sum = 0;
  UNROLL
  for (int i = 0; i < n; ++i) {
    int s = i % 4;
    wait(&full[s], (i / 4 & 1) ^ FLIP);
    sum += ((float*)(tiles + s * 16384))[threadIdx.x];
    __syncthreads();
    if ((WHO) && i + 4 < n) { expect(&full[s], BYTES); load(tiles + s * 16384, &map, 0, i * 64, &full[s]); }
  }
  out[threadIdx.x] = sum;
}
""",
    # The thread expects, the block meets, the thread loads: two blocks of the program for one phase.
    "apart": r"""
extern "C" __global__ void kernel(const __grid_constant__ CUtensorMap map, float* out, int n) {
  __shared__ __align__(8) uint64_t full;
  if (threadIdx.x == 0) init(&full, COUNT);
  __syncthreads();
  if (threadIdx.x == 0) expect(&full, BYTES);
  __syncthreads();
  if (threadIdx.x == 0) load(smem + OFFSET, &map, 0, n, &full);
  wait(&full, FLIP);
  out[threadIdx.x] = ((float*)smem)[threadIdx.x];
}
""",
    # A producer warp with full and empty barriers; two loads a stage, the second one behind a wait.
    "producer": r"""
extern "C" __global__ void kernel(const __grid_constant__ CUtensorMap map, float* out, int n) {
  __shared__ __align__(8) uint64_t full[4], empty[4];
  if (threadIdx.x == 0) for (int i = 0; i < 4; ++i) { init(&full[i], COUNT); init(&empty[i], 4); }
  __syncthreads();
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0) {
      UNROLL
      for (int i = 0; i < n; ++i) {
        int s = i % 4;
        wait(&empty[s], (i / 4 & 1) ^ 1 ^ FLIP);
        expect(&full[s], BYTES);
        load(smem + s * 32768 + OFFSET, &map, 0, i * 64, &full[s]);
        if (i == 0) wait(&empty[3], 1);
        load(smem + s * 32768 + 16384 + OFFSET, &map, 64, i * 64, &full[s]);
      }
    }
  } else {
    float sum = 0;
    for (int i = 0; i < n; ++i) {
      int s = i % 4;
      wait(&full[s], i / 4 & 1);
      sum += ((float*)(smem + s * 32768))[threadIdx.x];
      if (threadIdx.x % 32 == 0) arrive(&empty[s]);
    }
    out[threadIdx.x] = sum;
  }
}
""",
}

PLAIN = {
    "BYTES": "16384",
    "COUNT": "1",
    "FLIP": "0",
    "OFFSET": "0",
    "WHO": "threadIdx.x == 0",
    "UNROLL": "",
    "LAUNCH": "",
}
ONCE, FOUR = '_Pragma("unroll 1")', '_Pragma("unroll 4")'
ROWS: tuple[tuple[str, dict[str, str]], ...] = (
    ("ring", {}),
    ("ring", {"UNROLL": ONCE}),
    ("ring", {"UNROLL": FOUR}),
    ("ring", {"BYTES": "8192"}),
    ("ring", {"BYTES": "8192", "UNROLL": ONCE}),
    ("ring", {"BYTES": "8192", "UNROLL": FOUR}),
    ("ring", {"BYTES": "32768"}),
    ("ring", {"COUNT": "2"}),
    ("ring", {"FLIP": "1"}),
    ("ring", {"OFFSET": "64"}),
    ("ring", {"WHO": "true"}),
    ("apart", {}),
    ("apart", {"BYTES": "8192"}),
    ("apart", {"BYTES": "32768"}),
    ("apart", {"FLIP": "1"}),
    ("producer", {"BYTES": "32768"}),
    ("producer", {"BYTES": "32768", "UNROLL": FOUR}),
    ("producer", {"BYTES": "16384"}),
    ("producer", {"BYTES": "49152", "UNROLL": FOUR}),
)


def compile_kernel(kernel: str, defines: dict[str, str]) -> str:
    """The PTX of one kernel, for sm_90a."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "kernel.cu", Path(folder) / "kernel.ptx"
        head = "".join(f"#define {name} {value}\n" for name, value in {**PLAIN, **defines}.items())
        source.write_text(head + HEAD + KERNELS[kernel])
        subprocess.run(["nvcc", "-ptx", "-arch=sm_90a", str(source), "-o", str(out)], check=True, timeout=300)
        return out.read_text()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    release = re.search(
        r"V(\d+\.\d+\.\d+)", subprocess.run(["nvcc", "--version"], capture_output=True, text=True).stdout
    )
    with lzma.open(options.file, "wt") as file:
        for kernel, defines in ROWS:
            row = {"kernel": kernel, "defines": defines, "nvcc": release[1] if release else "", "ptx": ""}
            file.write(json.dumps({**row, "ptx": compile_kernel(kernel, defines)}) + "\n")


if __name__ == "__main__":
    main()
