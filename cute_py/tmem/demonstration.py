"""The demonstration program of the reference page, end to end in the emulator.

A 32 x 16 tile of bytes goes from global to shared memory, by plain stores or by one TMA load, from there by one
tcgen05.cp.32x128b.warpx4 to the lanes of all four warps, and back by tcgen05.ld. The page allocates 16 columns, which
no GPU has; the smallest allocation is 32.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy
from numpy.typing import NDArray

from cute_py.argument_checks import expect, expect_fields
from cute_py.errors import TmemError
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.formats import TensorMapDataType, TensorMapSwizzle
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.run.emulator import Emulator
from cute_py.tma.run.mbarrier import Mbarrier
from cute_py.tmem.axes import TCol, TLane
from cute_py.tmem.buffers import Buffer, TmemAllocation
from cute_py.tmem.carry_out import read_back, run
from cute_py.tmem.copy_async import CopyAsync, copy_async
from cute_py.tmem.emit_cuda import emit_cuda
from cute_py.tmem.emit_kernel import emit_kernel
from cute_py.tmem.emit_tirx import emit_tirx, ptx_line
from cute_py.tmem.picture import picture
from cute_py.tmem.spec import R, S
from cute_py.tmem.tensor_memory import TensorMemory

ROWS, BYTES = 32, 16
SMEM_ADDRESS = 1024
"""Where the shared tile lies; any multiple of its alignment does."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """What the program did.

    Args:
        copy: the planned copy.
        tmem: tensor memory after the copy, before it was given back.
        readback: (128, 32) uint32, as the four warps read it.
    """

    copy: CopyAsync
    tmem: TensorMemory
    readback: NDArray[numpy.uint32] = field(compare=False)

    def __post_init__(self) -> None:
        expect_fields(self)

    @property
    def picture(self) -> str:
        """Which shared byte went to which lane and column."""
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

    def __str__(self) -> str:
        parts = [self.copy.explain(), self.tirx, self.ptx, self.picture]
        return "\n\n".join(parts)


def demonstration_copy(n_cols: int = 32, cta_group: int = 1) -> CopyAsync:
    """The copy of the page: `A_smem[0:32, 0:16] -> tmem[0:32, 0:16]`, uint8, warpx4.

    Raises:
        TmemError: `n_cols` is no allocation, such as the 16 of the page; the text says what to take.
    """
    smem = Buffer("A_smem", (ROWS, BYTES), "uint8", "shared", S[(ROWS, BYTES) : (BYTES, 1)])
    layout = S[(ROWS, BYTES) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane]
    tmem = Buffer("tmem", (ROWS, BYTES), "uint8", "tmem", layout, TmemAllocation(n_cols))
    return copy_async(tmem[0:ROWS, 0:BYTES], smem[0:ROWS, 0:BYTES], cta_group=cta_group)


def demonstrate(tile: NDArray[numpy.uint8] | None = None, *, n_cols: int = 32, through: str = "plain") -> Demonstration:
    """Run the program.

    Args:
        tile: (32, 16) uint8 in global memory; the bytes 0, 1, 2, ... modulo 256 if left out.
        through: "plain" stores, or one "tma" load, from global to shared memory.

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
        raise TmemError(f"tile of shape {tile.shape} and {tile.dtype}; must be ({ROWS}, {BYTES}) uint8")
    copy = demonstration_copy(n_cols)
    smem = numpy.zeros(4096, numpy.uint8)
    _fill(smem, tile, through)
    tmem = TensorMemory()
    taddr = tmem.alloc(n_cols)
    tmem.relinquish_alloc_permit()
    barrier = Mbarrier(1, name="cp_mbar")
    run(copy.plan, tmem, taddr, smem, SMEM_ADDRESS)
    tmem.commit(barrier)
    if not barrier.try_wait(0):
        raise TmemError("the commit did not complete its barrier")
    words = read_back(tmem, taddr, n_cols)
    tmem.dealloc(taddr, n_cols)
    tmem.finish()
    return Demonstration(copy, tmem, words)


def _fill(smem: NDArray[numpy.uint8], tile: NDArray[numpy.uint8], through: str) -> None:
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
