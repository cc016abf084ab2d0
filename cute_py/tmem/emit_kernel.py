"""A complete kernel around one planned copy: allocate, fill, copy, commit, wait, read back, free.

    grid (1, 1, 1), 128 threads; with cta_group::2 a cluster of two CTAs
    source : bytes of the shared buffer, as they lie there; for a pair, one image after the other
    result : uint32 [lane][column] of the whole allocation, 128 x n_cols; for a pair, one after the other

The kernel is assembled for sm_100a and sm_103a by the tests. No Blackwell GPU was at hand: it was never run.
"""

from __future__ import annotations

from cute_py.argument_checks import expect, expect_name
from cute_py.errors import TmemError
from cute_py.tmem.copy_async import CopyAsync
from cute_py.tmem.emit_cuda import device_functions, emit_cuda
from cute_py.tmem.instruction_forms import mnemonic

THREADS = 128
_TRY_WAIT = "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
CHUNK = 32
"""Columns that one tcgen05.ld reads."""


def shared_bytes(copy: CopyAsync) -> int:
    """Bytes of the shared buffer of a copy, to the end of its layout and of what the copy reads."""
    layout = copy.src.layout
    span = layout.span() if layout is not None else 0
    return max(-(-span * copy.plan.bits // 8), copy.plan.smem_bytes)


def dynamic_shared_bytes(copy: CopyAsync) -> int:
    """Dynamic shared memory to launch the kernel with: the buffer, and room to align it."""
    expect(copy, CopyAsync, "a copy")
    return shared_bytes(copy) + copy.src.align - 1


def _asm(text: str, operands: str = "") -> str:
    return f'asm volatile("{text}" {operands or "::"}: "memory");'


def _readback(n_cols: int) -> list[str]:
    registers = ", ".join(f"%{i}" for i in range(CHUNK))
    load = f"{mnemonic('tcgen05.ld', shape='32x32b', num=f'x{CHUNK}')} {{{registers}}}, [%{CHUNK}];"
    outputs = ", ".join(f'"=r"(word[{i}])' for i in range(CHUNK))
    return [
        f"  for (unsigned column = 0; column < {n_cols}u; column += {CHUNK}u) {{",
        f"    unsigned word[{CHUNK}];",
        f'    asm volatile("{load}"',
        f'                 : {outputs} : "r"(tmem_addr + (warp * 32u << 16) + column));',
        f"    {_asm(mnemonic('tcgen05.wait::ld') + ';')}",
        f"    for (unsigned i = 0; i < {CHUNK}u; ++i) result[threadIdx.x * {n_cols}u + column + i] = word[i];",
        "  }",
    ]


def emit_kernel(copy: CopyAsync, name: str = "smem_to_tmem") -> str:
    """CUDA C++ source of the kernel `name(const unsigned char* source, unsigned* result)`.

    Raises:
        TmemError: the tensor-memory buffer has no allocation, or the shared one is not aligned to its swizzle.
        InvalidValueError: the name is no identifier.
    """
    expect(copy, CopyAsync, "a copy")
    expect_name(name, "the kernel's name")
    plan, allocation = copy.plan, copy.dst.allocated_addr
    if allocation is None:
        raise TmemError("tmem buffer must have allocated_addr")
    if copy.src.align % plan.swizzle.period:
        raise TmemError(f"align = {copy.src.align} bytes; the swizzle of the buffer needs {plan.swizzle.period}")
    group = f"cta_group::{plan.cta_group}"
    pair = plan.cta_group == 2
    smem, size = copy.src.name, shared_bytes(copy)
    alloc = mnemonic("tcgen05.alloc", cta_group=group, space="shared::cta")
    free = mnemonic("tcgen05.dealloc", cta_group=group)
    relinquish = mnemonic("tcgen05.relinquish_alloc_permit", cta_group=group)
    commit = mnemonic(
        "tcgen05.commit",
        cta_group=group,
        space="shared::cluster",
        **({"multicast": "multicast::cluster"} if pair else {}),
    )
    before = _asm(mnemonic("tcgen05.fence::before_thread_sync") + ";")
    after = _asm(mnemonic("tcgen05.fence::after_thread_sync") + ";")
    cluster = [
        "  " + _asm("barrier.cluster.arrive.release.aligned;"),
        "  " + _asm("barrier.cluster.wait.acquire.aligned;"),
    ]
    meet = cluster if pair else ["  __syncthreads();"]
    issuer = "threadIdx.x == 0 && rank == 0" if pair else "threadIdx.x == 0"
    committed = (
        _asm(f"{commit} [%0], %1;", '::"r"(barrier), "h"(static_cast<unsigned short>(3))')
        if pair
        else _asm(f"{commit} [%0];", '::"r"(barrier)')
    )
    lines = [
        f'extern "C" __global__ void {"__cluster_dims__(2, 1, 1) " if pair else ""}__launch_bounds__({THREADS})',
        f"{name}(const unsigned char* source, unsigned* result) {{",
        "  extern __shared__ unsigned char pool[];",
        f"  // The pool is aligned to {copy.src.align} bytes, so that the swizzle pattern starts with the buffer.",
        f"  unsigned char* {smem} = pool + (-shared_address(pool) & {copy.src.align - 1}u);",
        "  __shared__ unsigned slot;",
        "  __shared__ __align__(8) unsigned long long mbar;",
        "  const unsigned barrier = shared_address(&mbar);",
        "  const unsigned warp = threadIdx.x / 32u;",
    ]
    if pair:
        lines += [
            "  unsigned rank;",
            '  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));',
            f"  source += rank * {size}u;",
            f"  result += rank * {128 * allocation.n_cols}u;",
        ]
    lines += [
        "  if (warp == 0) {",
        "    " + _asm(f"{alloc} [%0], {allocation.n_cols};", '::"r"(shared_address(&slot))'),
        f"    {_asm(relinquish + ';')}",
        "  }",
        "  if (threadIdx.x == 0) {",
        "    " + _asm("mbarrier.init.shared::cta.b64 [%0], 1;", '::"r"(barrier)'),
        "    " + _asm("fence.mbarrier_init.release.cluster;"),
        "  }",
        f"  for (unsigned i = threadIdx.x; i < {size}u; i += {THREADS}u) {smem}[i] = source[i];",
        "  " + _asm("fence.proxy.async.shared::cta;"),
        f"  {before}",
        "  __syncthreads();",
        *(cluster if pair else []),
        f"  {after}",
        f"  const unsigned {allocation.name} = slot;",
        f"  if ({issuer}) {{",
        *emit_cuda(copy, taddr=allocation.name, indent="    ").rstrip().split("\n"),
        f"    {committed}",
        "  }",
        "  unsigned done = 0;",
        "  while (!done) {",
        f'    asm volatile("{_TRY_WAIT}"',
        '                 : "=r"(done) : "r"(barrier) : "memory");',
        "  }",
        f"  {after}",
        *(line.replace("tmem_addr", allocation.name) for line in _readback(allocation.n_cols)),
        f"  {before}",
        *meet,
        f"  {after}",
        "  if (warp == 0) " + _asm(f"{free} %0, {allocation.n_cols};", f'::"r"({allocation.name})'),
        "}",
    ]
    return device_functions(copy) + "\n" + "\n".join(lines) + "\n"
