"""The prelude of every kernel in this package, and the object that represents a kernel before it is compiled.

A kernel is CUDA C++ with inline PTX and without headers, so that NVRTC needs no toolkit and compiles quickly. Sizes are
compile-time constants: the issuing thread of a copy has about 90 cycles per tile, and a single division at run time
takes as long.

Every wait on a barrier has a limit in clock cycles, so no kernel spins forever. If a wait times out, the thread writes
an `ErrorRecord` unless one is already written, and the kernel returns.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from cute_py.argument_checks import record
from cute_py.errors import counted
from cute_py.tma.descriptor.limits import architecture

WAIT_CYCLES: Final = 4_000_000_000
"""Bound of one wait on a barrier, in SM clock cycles: about 2 s at 1.98 GHz."""

ERROR_RECORD: Final = struct.Struct("<8IQ")
"""state (1 = a wait timed out), barrier, phase, bytes expected, block x, block y, thread, stage; cycles waited."""

ERROR_RECORD_BYTES: Final = 64

MAX_SHARED_BYTES: Final = architecture("sm_90").block_shared_memory_bytes
"""Dynamic and static shared memory of one block on sm_90 and sm_100: 227 KiB."""

TYPES: Final = r"""
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
"""
"""Unsigned integer types by width, and the conversion to a shared-memory address."""

AWAIT: Final = r"""
__device__ __forceinline__ void await_previous() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ __forceinline__ void allow_next() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
""".lstrip()
"""For a kernel that may be launched while the previous kernel still runs: the wait for the previous kernel, and the
permission to launch the next one. The kernel accesses memory only after the wait."""

BARRIERS: Final = (
    TYPES
    + r"""
struct __align__(128) TensorMap { u64 word[16]; };
struct __align__(64) ErrorRecord { u32 state, barrier, phase, expected, block_x, block_y, thread, stage; u64 cycles; };
__device__ __forceinline__ void barrier_init(u32 barrier, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ __forceinline__ void barrier_init_done() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void expect_bytes(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ u32 try_wait(u32 barrier, u32 parity) {
  u32 done;
  asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
               "selp.u32 %0, 1, 0, p;\n\t}"
               : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
  return done;
}
""".lstrip()
)
"""The types, and the instructions of a barrier."""

WAITS: Final = r"""
__device__ __noinline__ bool wait_slowly(u32 barrier, u32 parity, u32 stage, u32 expected, ErrorRecord* record) {
  const u64 start = clock64();
  while (!try_wait(barrier, parity)) {
    const u64 waited = clock64() - start;
    if (waited > WAIT_CYCLES) {
      if (atomicCAS(&record->state, 0u, 2u) == 0u) {
        record->barrier = barrier; record->phase = parity; record->expected = expected;
        record->block_x = blockIdx.x; record->block_y = blockIdx.y; record->thread = threadIdx.x;
        record->stage = stage; record->cycles = waited;
        __threadfence();
        record->state = 1u;
        __threadfence();
      }
      return false;
    }
  }
  return true;
}
__device__ __forceinline__ bool wait(u32 barrier, u32 parity, u32 stage, u32 expected, ErrorRecord* record) {
  return try_wait(barrier, parity) ? true : wait_slowly(barrier, parity, stage, expected, record);
}
"""
"""Device functions that wait for a barrier, and return false after a timeout. A kernel with wgmma can't use them,
because `wait_slowly` is not inlined."""

GROUPS: Final = r"""
__device__ __forceinline__ void fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ __forceinline__ void commit_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int left> __device__ __forceinline__ void wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(left) : "memory");
}
template <int left> __device__ __forceinline__ void wait_group() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(left) : "memory");
}
__device__ __forceinline__ void prefetch_map(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
"""
"""Fences and groups of bulk stores, and the prefetch of a tensor map."""

PRELUDE: Final = (
    BARRIERS
    + WAITS.lstrip()
    + GROUPS.lstrip()
    + r"""
__device__ __forceinline__ void acquire_map(const TensorMap* map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}
""".lstrip()
    + AWAIT
)
"""The prelude of kernels that copy by TMA: all parts above, and the acquire of a tensor map."""


@record
class KernelSource:
    """The source text of one kernel, with its launch parameters.

    name: name of the entry point. text: the whole CUDA C++ source. threads: threads per block. shared_bytes: dynamic
    shared memory per block. cluster: blocks per cluster, along x. arch: the minimum architecture. parameters: the names
    of the kernel's parameters, in order, for messages. facts: the compile-time constants. loads: number of loads that
    one barrier waits for. awaits: whether every thread that accesses memory first waits for the previous kernel, so
    that this kernel may be launched while the previous one still runs. fast_compile: whether to compile with fewer
    optimisation passes.
    """

    name: str
    text: str
    threads: int
    shared_bytes: int
    cluster: int = 1
    arch: str = "sm_90a"
    parameters: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict, hash=False)
    loads: int = 1
    awaits: bool = False
    fast_compile: bool = False

    def __repr__(self) -> str:
        lines = counted(len(self.text.splitlines()), "line")
        return f"<kernel {self.name!r}, {lines}, {self.threads} threads, {self.shared_bytes} bytes of shared memory>"

    @property
    def digest(self) -> str:
        """The SHA-256 of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def enum_constants(constants: Mapping[str, int]) -> str:
    """Return definitions of compile-time constants, one per line. They are enumerators, because a variable would use
    memory.

    >>> print(enum_constants({"ROWS": 32}), end="")
    enum : u32 { ROWS = 32u };
    """
    lines = []
    for name, value in constants.items():
        kind, suffix = ("u64", "ull") if value >= 2**32 else ("u32", "u")
        lines.append(f"enum : {kind} {{ {name} = {value}{suffix} }};\n")
    return "".join(lines)


def make_kernel(
    name: str,
    body: str,
    constants: Mapping[str, int],
    shared_bytes: int,
    parameters: tuple[str, ...],
    *,
    prelude: str = PRELUDE,
    header: str = "",
    wait_cycles: int = WAIT_CYCLES,
    facts: Mapping[str, object] | None = None,
    cluster: int = 1,
    arch: str = "sm_90a",
    loads: int = 1,
    awaits: bool = False,
) -> KernelSource:
    """Make a kernel from a body and its compile-time constants, including THREADS.

    The text consists of the limit of waits, the prelude, the instructions (`header`), the constants and the body.
    `facts` are stored with the constants.
    """
    text = (
        f"#define WAIT_CYCLES {wait_cycles}ull\n{prelude.strip()}\n{header}{enum_constants(constants)}{body.strip()}\n"
    )
    every = {**constants, **(facts or {})}
    return KernelSource(name, text, constants["THREADS"], shared_bytes, cluster, arch, parameters, every, loads, awaits)
