"""Single TMA instructions, many in one launch: what a device does with one instruction, byte for byte.

Each block (or each cluster of blocks) takes one job: fill the shared-memory window from an image, issue one
instruction, wait for it with a bound, copy the window out. A job holds everything that varies; the instruction forms
that occur are cases of one switch, so that thousands of instructions need one kernel and one launch.

The barrier lies behind the window, so that the window itself starts at the 1024-byte boundary that every swizzle
pattern needs.
"""

from __future__ import annotations

import struct
from typing import Final

from cute_py.errors import InvalidValueError
from cute_py.gpu.kernels.copy_op import CopyOp, copy_functions
from cute_py.gpu.kernels.source import KernelSource, make_kernel
from cute_py.targets import MAX_CLUSTER

JOB: Final = struct.Struct("<5i5I3Q4H2IQ8x")
"""coordinates x 5; form, window bytes, byte offset in the window, bytes expected, issuing CTA; addresses of the map,
of the window's image before, of the window after; im2col offsets x 3, multicast mask; completed, issued; cycles."""

JOB_STATUS_OFFSET: Final = 72
"""Byte offset of `completed` in a job; `issued` and `cycles` follow."""

STATUS: Final = struct.Struct("<2IQ")

TRAILER_BYTES: Final = 128
"""Shared memory behind the largest window of a launch: the barrier."""

_BODY: Final = r"""
struct Job {
  int c[5];
  u32 form, window_bytes, offset, expected, issuer;
  u64 map, before, after;
  u16 o[3], mask;
  u32 completed, issued;
  u64 cycles;
  u64 spare;
};
__device__ __forceinline__ void issue(const Job& job, u32 shared, u32 barrier) {
  const TensorMap* map = reinterpret_cast<const TensorMap*>(job.map);
  switch (job.form) {
%(cases)s
  }
}
extern "C" __global__ void __launch_bounds__(THREADS) single_instructions(Job* jobs, u32 trailer) {
  extern __shared__ __align__(1024) u8 window[];
  Job& job = jobs[blockIdx.x / CLUSTER];
  const u32 rank = blockIdx.x %% CLUSTER;
  const u32 base = shared_address(window), barrier = base + trailer;
  const uint4* before = reinterpret_cast<const uint4*>(job.before + (u64)rank * job.window_bytes);
  uint4* after = reinterpret_cast<uint4*>(job.after + (u64)rank * job.window_bytes);
  uint4* inside = reinterpret_cast<uint4*>(window);
  for (u32 i = threadIdx.x; i < job.window_bytes / 16; i += THREADS) inside[i] = before[i];
  if (threadIdx.x == 0) {
    barrier_init(barrier, 1);
    barrier_init_done();
    acquire_map(reinterpret_cast<const TensorMap*>(job.map));
  }
  fence_async_shared();
  __syncthreads();
  const bool receives = CLUSTER == 1 || ((job.mask >> rank) & 1u);
  if (threadIdx.x == 0 && job.expected && receives) expect_bytes(barrier, job.expected);
  cluster_sync();
  const u64 start = clock64();
  if (threadIdx.x == 0 && rank == job.issuer) {
    issue(job, base + job.offset, barrier);
    commit_group();
    job.issued = 1;
  }
  if (threadIdx.x == 0) {
    u32 done = 1;
    if (job.expected && receives) {
      while (!(done = try_wait(barrier, 0))) if (clock64() - start > WAIT_CYCLES) break;
    }
    wait_group<0>();
    if (done) atomicAdd(&job.completed, 1u);
    atomicMax(&job.cycles, (u64)(clock64() - start));
  }
  __syncthreads();
  cluster_sync();
  if (job.after) for (u32 i = threadIdx.x; i < job.window_bytes / 16; i += THREADS) after[i] = inside[i];
}
"""

_SYNC: Final = r"""
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
"""
_NO_SYNC: Final = "__device__ __forceinline__ void cluster_sync() {}\n"

SINGLE_WAIT_CYCLES: Final = 40_000_000
"""Bound of the wait for one instruction, in SM clock cycles: about 20 ms, thousands of times what one takes."""


def _call(number: int, op: CopyOp) -> str:
    arguments = [] if op.kind == "prefetch" else ["shared"]
    arguments.append("map")
    if op.kind == "load":
        arguments.append("barrier")
    arguments += [f"job.c[{i}]" for i in range(op.coordinates)]
    arguments += [f"job.o[{i}]" for i in range(op.offsets)]
    arguments += ["job.mask"] * op.multicast
    return f"    case {number}: {op.name}({', '.join(arguments)}); break;"


def single_instructions(
    forms: tuple[CopyOp, ...],
    *,
    window_bytes: int,
    cluster: int = 1,
    wait_cycles: int = SINGLE_WAIT_CYCLES,
    arch: str = "sm_90a",
) -> KernelSource:
    """The kernel that runs jobs whose `form` is an index into `forms`; blocks = jobs x cluster.

    Args:
        window_bytes: the largest window of the launch, in bytes, a multiple of 16. It is no constant of the text: the
            kernel gets it as its second parameter, so that one text serves every size.
        cluster: blocks in a cluster, 1..16; every CTA of a cluster has a window of its own.
    Raises:
        InvalidValueError: no forms, or a window or cluster out of range.
    """
    if not forms:
        raise InvalidValueError("no instruction forms; at least one is needed")
    if window_bytes % 16 or window_bytes < 0:
        raise InvalidValueError(f"window = {window_bytes} bytes; must be a multiple of 16")
    if not 1 <= cluster <= MAX_CLUSTER:
        raise InvalidValueError(f"cluster = {cluster} CTAs; must be 1 to 16")
    cases = "\n".join(_call(number, op) for number, op in enumerate(forms))
    return make_kernel(
        "single_instructions",
        (_SYNC if cluster > 1 else _NO_SYNC) + _BODY % {"cases": cases},
        {"THREADS": 128, "CLUSTER": cluster},
        window_bytes + TRAILER_BYTES,
        ("jobs", "trailer"),
        header=copy_functions(*forms),
        wait_cycles=wait_cycles,
        facts={"forms": tuple(form.name for form in forms)},
        cluster=cluster,
        arch=arch,
    )
