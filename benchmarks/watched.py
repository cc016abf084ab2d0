"""The cost of watching an encode, and watches of whole programs: for a machine with a GPU.

    python -m benchmarks.watched --repeat 3 [PROGRAM ...] > watched.json

Look at: `overhead_us`, per encode, less than 20, and the reports: of a PyTorch + Triton program, of a C++ program
that nvcc compiles (it finds the driver's function through the runtime), and of each PROGRAM that is named: each
descriptor by its caller, with the kernel that takes it. A part that fails is in the result with what it printed, and
the others go on; the exit status is 1 then.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

CALLS: Final = 20_000
SECONDS: Final = 60
"""The longest that one program may run."""

ENCODES: Final = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
def ok(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code: sys.exit(f"{name} gave {code}")
device, context = ctypes.c_int(), ctypes.c_void_p()
ok("cuInit", 0)
u64, u32 = ctypes.c_uint64, ctypes.c_uint32
raw = (ctypes.c_uint8 * 256)()
at = (ctypes.addressof(raw) + 127) & ~127
dim, strides, box, steps = (u64 * 2)(256, 128), (u64 * 1)(512), (u32 * 2)(64, 64), (u32 * 2)(1, 1)
call = cuda.cuTensorMapEncodeTiled
def encode():
    return call(ctypes.c_void_p(at), 6, u32(2), ctypes.c_void_p(1 << 20), dim, strides, box, steps, 0, 3, 0, 0)
bare = encode()
ok("cuDeviceGet", ctypes.byref(device), 0)
ok("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
ok("cuCtxSetCurrent", context)
if encode(): sys.exit(f"a sound map gave {encode()} (without a context {bare})")
best = []
for _ in range(5):
    start = time.perf_counter_ns()
    for _ in range(int(sys.argv[1])): encode()
    best.append((time.perf_counter_ns() - start) / int(sys.argv[1]))
strides[0] = 520
if encode() != 1: sys.exit(f"a stride of 520 bytes gave {encode()}")
print(sorted(best)[2], bare)
"""
"""Prints the nanoseconds of one encode, and what it gives before there is a context."""

TRITON: Final = """
import torch, triton, triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def double(source, destination, M: tl.constexpr, N: tl.constexpr):
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    destination.store([row, column], source.load([row, column]) * 2)

x = torch.randn(512, 512, device="cuda", dtype=torch.float16)
y = torch.empty_like(x)
for _ in range(20):
    a, b = TensorDescriptor.from_tensor(x, [64, 64]), TensorDescriptor.from_tensor(y, [64, 64])
    double[(8, 8)](a, b, 64, 64)
torch.cuda.synchronize()
assert torch.equal(y, x * 2)
print("doubled")
"""

COMPILED: Final = r"""
#include <cstdint>
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>

// Tile (x, y) of the map, 64 x 64 of 16 bits, to `out`.
__global__ void tile(const __grid_constant__ CUtensorMap map, uint16_t* out, int x, int y) {
  __shared__ alignas(1024) uint16_t stage[64 * 64];
  __shared__ alignas(8) uint64_t bar;
  uint32_t b = (uint32_t)__cvta_generic_to_shared(&bar), s = (uint32_t)__cvta_generic_to_shared(stage);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(b) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 8192;" ::"r"(b) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(s), "l"(&map), "r"(x), "r"(y), "r"(b) : "memory");
  }
  __syncthreads();
  uint32_t done = 0;
  for (int i = 0; i < 1000000 && !done; i++)
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
                 : "=r"(done) : "r"(b) : "memory");
  if (!done) __trap();
  for (int i = threadIdx.x; i < 64 * 64; i += blockDim.x) out[i] = stage[i];
}

int main() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult query;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &query);
  if (!found) return puts("no entry point"), 2;
  auto encode = (CUresult(*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                             const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                             CUtensorMapL2promotion, CUtensorMapFloatOOBfill))found;
  uint16_t *in, *out, got[64 * 64];
  static uint16_t want[256 * 256];
  for (int i = 0; i < 256 * 256; i++) want[i] = (uint16_t)(i * 7);
  cudaMalloc(&in, sizeof want);
  cudaMalloc(&out, sizeof got);
  cudaMemcpy(in, want, sizeof want, cudaMemcpyHostToDevice);
  CUtensorMap map, refused;
  cuuint64_t dim[2] = {256, 256}, strides[1] = {512}, odd[1] = {520};
  cuuint32_t box[2] = {64, 64}, steps[2] = {1, 1};
  for (int i = 0; i < 3; i++) {
    CUresult made = encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, in, dim, strides, box, steps,
                           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                           CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (made != CUDA_SUCCESS) return printf("a sound map gave %d\n", made), 3;
    tile<<<1, 128>>>(map, out, 64 * i, 64);
  }
  CUresult bad = encode(&refused, CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, in, dim, odd, box, steps,
                        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  cudaError_t ran = cudaDeviceSynchronize();
  if (ran != cudaSuccess) return printf("%s\n", cudaGetErrorString(ran)), 4;
  cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
  for (int r = 0; r < 64; r++)
    for (int c = 0; c < 64; c++)
      if (got[64 * r + c] != want[256 * (64 + r) + 128 + c]) return printf("wrong at %d %d\n", r, c), 5;
  printf("copied, refused %d\n", bad);
  return bad == CUDA_ERROR_INVALID_VALUE ? 7 : 6;
}
"""
"""Ends with status 7 when all is well, so that a watch that loses the status is seen."""


class Failed(Exception):
    """A program that did not end as it should; the text is what it printed."""


def ran(command: list[str], status: int = 0) -> str:
    """What a program printed on standard output.

    Raises:
        Failed: it ended with another status, or not in time; the text has both of its outputs.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise Failed(f"{command}: not ended after {SECONDS} s") from None
    if done.returncode != status:
        raise Failed(f"{command}: status {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}")
    return done.stdout.strip()


def watched(folder: Path, command: list[str], status: int = 0) -> tuple[str, dict[str, Any]]:
    """(what the program printed, the report of its watch)."""
    out = folder / "report.json"
    watch = [sys.executable, "-m", "cute_py", "watch", "--json", "--report", str(out), "--", *command]
    printed = ran(watch, status)
    report = json.loads(out.read_text())
    if report["notes"]:
        raise Failed(f"{command}: nothing was recorded: {report['notes']}")
    return printed, report


def overhead(folder: Path, repeat: int) -> dict[str, Any]:
    """The cost of an encode without and with a watch, nanoseconds, the median of `repeat` programs in turn."""
    path = folder / "encodes.py"
    path.write_text(ENCODES)
    command = [sys.executable, str(path), str(CALLS)]
    report: dict[str, Any] = {}
    plain, held = [], []
    for _ in range(repeat):
        plain.append(ran(command).split())
        printed, report = watched(folder, command)
        held.append(printed.split())
    each, each_watched = (sorted(float(row[0]) for row in rows)[repeat // 2] for rows in (plain, held))
    return {
        "calls": CALLS,
        "ns_each": round(each),
        "ns_each_watched": round(each_watched),
        "overhead_us": round((each_watched - each) / 1000, 2),
        "result_without_a_context": int(plain[0][1]),
        "report": report,
    }


def triton(folder: Path) -> dict[str, Any]:
    """The watch of a PyTorch + Triton program with host descriptors."""
    path = folder / "doubled.py"
    path.write_text(TRITON)
    return watched(folder, [sys.executable, str(path)])[1]


def compiled(folder: Path) -> dict[str, Any]:
    """The watch of a C++ program, compiled here."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise Failed("no nvcc")
    source, program = folder / "tile.cu", folder / "tile"
    source.write_text(COMPILED)
    ran([nvcc, "-std=c++17", "-arch=sm_90a", str(source), "-o", str(program)])
    return watched(folder, [str(program)], 7)[1]


def report_of(folder: Path, program: str) -> dict[str, Any]:
    """The watch of a program, named with its arguments."""
    return watched(folder, program.split())[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="programs that the overhead is the median of")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="one program and its arguments, in quotes")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts: dict[str, Callable[[], dict[str, Any]]] = {
            "encodes": partial(overhead, folder, options.repeat),
            "triton": partial(triton, folder),
            "compiled": partial(compiled, folder),
        }
        for program in options.programs:
            parts[program] = partial(report_of, folder, program)
        for part, run in parts.items():
            try:
                found[part] = run()
            except Failed as error:
                failed, found[part] = True, {"failed": str(error).split("\n")}
    print(json.dumps(found, indent=1))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
