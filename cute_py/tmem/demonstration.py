"""The demonstration program of the reference page, executed from end to end in the emulator.

Plain stores or one TMA load copy a 32 x 16 tile of bytes from global to shared memory. One tcgen05.cp.32x128b.warpx4
copies the tile from there to the lanes of all four warps, and tcgen05.ld reads it back. The page allocates 16 columns,
but the smallest allocation on a GPU is 32.

`emit_kernel` returns a complete kernel around one planned copy: allocate, fill, copy, commit, wait, read back, free.

    grid (1, 1, 1), 128 threads; with cta_group::2 a cluster of two CTAs
    source : the bytes of the shared buffer in memory order; for a pair of CTAs, one buffer after the other
    result : uint32 [lane][column] of the allocation, 128 x n_cols; for a pair, one after the other

The tests assemble the kernel for sm_100a and sm_103a. No Blackwell GPU was available, so it was never run.
"""

from __future__ import annotations

from dataclasses import field
from string import Template
from typing import TYPE_CHECKING

from cute_py.argument_checks import expect, expect_name, record
from cute_py.errors import TmemError
from cute_py.machine.tensor_memory.memory import TensorMemory
from cute_py.tma.descriptor.data_types import TensorMapDataType, TensorMapSwizzle
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.mbarrier import Mbarrier
from cute_py.tmem.axes import TCol, TLane
from cute_py.tmem.copy_request import Buffer, CopyAsync, TmemAllocation, copy_async
from cute_py.tmem.cp_forms import LANES
from cute_py.tmem.emit import device_functions, emit_cuda, emit_tirx, ptx_line
from cute_py.tmem.execute import read_back, run
from cute_py.tmem.memory_picture import picture
from cute_py.tmem.tile_layout import R, S

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy

__all__ = ["Demonstration", "demonstrate", "demonstration_copy", "dynamic_shared_bytes", "emit_kernel"]

THREADS = 128
CHUNK = 32
"""Columns that one tcgen05.ld reads."""


def buffer_bytes(copy: CopyAsync) -> int:
    """Return the size in bytes of a copy's shared buffer: it contains the layout and all bytes that the copy reads."""
    layout = copy.src.layout
    span = layout.span() if layout is not None else 0
    return max(-(-span * copy.plan.bits // 8), copy.plan.smem_bytes)


def dynamic_shared_bytes(copy: CopyAsync) -> int:
    """Return the bytes of dynamic shared memory for the launch: the size of the buffer, plus padding to align it.

    >>> dynamic_shared_bytes(demonstration_copy())
    1535
    """
    expect(copy, CopyAsync, "a copy")
    return buffer_bytes(copy) + copy.src.align - 1


_KERNEL = Template("""\
extern "C" __global__ void ${dims}__launch_bounds__($threads)
$name(const unsigned char* source, unsigned* result) {
  extern __shared__ unsigned char pool[];
  // The pool is aligned to $align bytes, so that the swizzle pattern starts with the buffer.
  unsigned char* $smem = pool + (-shared_address(pool) & ${low}u);
  __shared__ unsigned slot;
  __shared__ __align__(8) unsigned long long mbar;
  const unsigned barrier = shared_address(&mbar);
  const unsigned warp = threadIdx.x / 32u;
${ranks}  if (warp == 0) {
    asm volatile("tcgen05.alloc.$group.sync.aligned.shared::cta.b32 [%0], $columns;" $slot: "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.$group.sync.aligned;" ::: "memory");
  }
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier): "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  for (unsigned i = threadIdx.x; i < ${size}u; i += ${threads}u) $smem[i] = source[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
${cluster}  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  const unsigned $taddr = slot;
  if ($issuer) {
$copies    asm volatile("tcgen05.commit.$group.mbarrier::arrive::one.shared::cluster$commit: "memory");
  }
  unsigned done = 0;
  while (!done) {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(barrier) : "memory");
  }
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  for (unsigned column = 0; column < ${columns}u; column += ${chunk}u) {
    unsigned word[$chunk];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x$chunk.b32 {$registers}, [%$chunk];"
                 : $results : "r"($taddr + (warp * 32u << 16) + column));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    for (unsigned i = 0; i < ${chunk}u; ++i) result[threadIdx.x * ${columns}u + column + i] = word[i];
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
${meet}  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  if (warp == 0) asm volatile("tcgen05.dealloc.$group.sync.aligned.b32 %0, $columns;" ::"r"($taddr): "memory");
}
""")

_RANKS = Template("""\
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  source += rank * ${size}u;
  result += rank * ${cells}u;
""")

_CLUSTER = """\
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
"""


def emit_kernel(copy: CopyAsync, name: str = "smem_to_tmem") -> str:
    """Return the CUDA C++ source of the kernel `name(const unsigned char* source, unsigned* result)`.

    Raises:
        TmemError: the tensor-memory buffer has no allocation, or the shared buffer is not aligned to its swizzle.
        InvalidValueError: the name is not an identifier.

    >>> "smem_to_tmem" in emit_kernel(demonstration_copy())
    True
    """
    expect(copy, CopyAsync, "a copy")
    expect_name(name, "the kernel's name")
    plan, allocation = copy.plan, copy.dst.allocated_addr
    if allocation is None:
        raise TmemError("tmem buffer must have allocated_addr")
    if copy.src.align % plan.swizzle.period:
        raise TmemError(f"align = {copy.src.align} bytes; the swizzle of the buffer needs {plan.swizzle.period}")
    pair, size = plan.cta_group == 2, buffer_bytes(copy)
    both = '.multicast::cluster.b64 [%0], %1;" ::"r"(barrier), "h"(static_cast<unsigned short>(3))'
    text = _KERNEL.substitute(
        name=name,
        dims="__cluster_dims__(2, 1, 1) " if pair else "",
        threads=THREADS,
        align=copy.src.align,
        low=copy.src.align - 1,
        smem=copy.src.name,
        ranks=_RANKS.substitute(size=size, cells=LANES * allocation.n_cols) if pair else "",
        group=f"cta_group::{plan.cta_group}",
        columns=allocation.n_cols,
        slot='::"r"(shared_address(&slot))',
        size=size,
        # A pair synchronises twice: when both buffers are filled, and when both CTAs have read their cells.
        cluster=_CLUSTER if pair else "",
        meet=_CLUSTER if pair else "  __syncthreads();\n",
        taddr=allocation.name,
        issuer="threadIdx.x == 0 && rank == 0" if pair else "threadIdx.x == 0",
        copies=emit_cuda(copy, taddr=allocation.name, indent="    "),
        commit=both if pair else '.b64 [%0];" ::"r"(barrier)',
        chunk=CHUNK,
        registers=", ".join(f"%{i}" for i in range(CHUNK)),
        results=", ".join(f'"=r"(word[{i}])' for i in range(CHUNK)),
    )
    return f"{device_functions(copy)}\n{text}"


ROWS, BYTES = 32, 16
SMEM_ADDRESS = 1024
"""Address of the shared tile; any multiple of its alignment works."""


@record
class Demonstration:
    """The result of the demonstration program.

    Args:
        copy: the planned copy.
        tmem: tensor memory after the copy, before its columns are freed.
        readback: the cells that the four warps read back, as uint32 of shape (128, 32).

    >>> shown = demonstrate()
    >>> shown.readback.shape, shown.copy.plan.count
    ((128, 32), 1)
    """

    copy: CopyAsync
    tmem: TensorMemory
    readback: NDArray[numpy.uint32] = field(compare=False, repr=False)

    @property
    def picture(self) -> str:
        """A picture of tensor memory, as text: the shared bytes that each cell received."""
        return picture(self.tmem.sources, base=SMEM_ADDRESS)

    @property
    def tirx(self) -> str:
        return emit_tirx(self.copy)

    @property
    def cuda(self) -> str:
        return emit_cuda(self.copy)

    @property
    def ptx(self) -> str:
        return ptx_line(self.copy)

    @property
    def kernel(self) -> str:
        return emit_kernel(self.copy)

    def explain(self) -> str:
        """Return the plan, the trace, the PTX and the picture as text."""
        return "\n\n".join([self.copy.explain(), self.tirx, self.ptx, self.picture])


def demonstration_copy(n_cols: int = 32, cta_group: int = 1) -> CopyAsync:
    """Plan the copy of the reference page: `A_smem[0:32, 0:16] -> tmem[0:32, 0:16]`, uint8, warpx4.

    Raises:
        TmemError: `n_cols` columns can't be allocated, such as the 16 of the page; the error names a valid number.

    >>> print(demonstration_copy())
    <CopyAsync A_smem[0:32, 0:16] -> tmem[0:32, 0:16]: 1 x tcgen05.cp.32x128b.warpx4>
    """
    smem = Buffer("A_smem", (ROWS, BYTES), "uint8", "shared", S[(ROWS, BYTES) : (BYTES, 1)])
    layout = S[(ROWS, BYTES) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane]
    tmem = Buffer("tmem", (ROWS, BYTES), "uint8", "tmem", layout, TmemAllocation(n_cols))
    return copy_async(tmem[0:ROWS, 0:BYTES], smem[0:ROWS, 0:BYTES], cta_group=cta_group)


def demonstrate(tile: NDArray[numpy.uint8] | None = None, *, n_cols: int = 32, through: str = "plain") -> Demonstration:
    """Run the demonstration program in the emulator.

    Args:
        tile: (32, 16) uint8 in global memory; by default the bytes 0, 1, 2, ... modulo 256.
        through: how the tile is copied from global to shared memory: by "plain" stores, or by one "tma" load.

    >>> done = demonstrate()
    >>> print(done.ptx)
    tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;
    >>> done.readback[33, :4].tobytes() == bytes(range(16, 32))      # lane 33 holds row 1, as lanes 1, 65, 97 do
    True
    """
    expect(through, str, "through")
    if tile is not None:
        expect(tile, numpy.ndarray, "tile")
    if tile is None:
        tile = numpy.arange(ROWS * BYTES).astype(numpy.uint8).reshape(ROWS, BYTES)
    if tile.shape != (ROWS, BYTES) or tile.dtype != numpy.uint8:
        raise TmemError(f"the tile has the shape {tile.shape} and type {tile.dtype}; must be ({ROWS}, {BYTES}) uint8")
    copy = demonstration_copy(n_cols)
    smem = numpy.zeros(4096, numpy.uint8)
    _to_shared(smem, tile, through)
    tmem = TensorMemory()
    taddr = tmem.alloc(n_cols)
    tmem.relinquish_alloc_permit()
    barrier = Mbarrier(1, name="cp_mbar")
    run(copy.plan, tmem, taddr, smem, SMEM_ADDRESS)
    tmem.commit(barrier)
    if not barrier.try_wait(0):
        raise TmemError("the commit did not complete its barrier")
    readback = read_back(tmem, taddr, n_cols)
    tmem.dealloc(taddr, n_cols)
    tmem.finish()
    return Demonstration(copy, tmem, readback)


def _to_shared(smem: NDArray[numpy.uint8], tile: NDArray[numpy.uint8], through: str) -> None:
    if through == "plain":
        smem[SMEM_ADDRESS : SMEM_ADDRESS + tile.size] = tile.reshape(-1)
    elif through == "tma":
        request = TensorMapTiled(
            data_type=TensorMapDataType.UINT8,
            global_address=0,
            global_dim=(BYTES, ROWS),
            global_strides=(BYTES,),
            box_dim=(BYTES, ROWS),
            swizzle=TensorMapSwizzle.NONE,
        )
        gmem = numpy.ascontiguousarray(tile).reshape(-1)
        Emulator("sm_100a").load(encode(request), gmem, (0, 0), smem, smem_offset=SMEM_ADDRESS)
    else:
        raise TmemError(f"through = {through!r}; must be 'plain' or 'tma'")
