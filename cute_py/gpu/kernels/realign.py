"""The kernel that copies a window whose source does not start at a multiple of 16 bytes.

A tensor map can't start at such an address, and an inner coordinate can't point to it (the instruction traps). The load
therefore begins at the 16-byte boundary below, and is 16 bytes wider than the tile. The threads of the block shift the
bytes into alignment, and write the result as a separate tile. The shift is a compile-time constant: the choice of
registers shifts by full words, and one funnel shift per word shifts by the remaining bytes.
"""

from __future__ import annotations

from typing import Final

from cute_py.errors import InvalidValueError
from cute_py.gpu.kernels.copy import BARRIER_BYTES
from cute_py.gpu.kernels.copy_op import CopyOp, copy_functions
from cute_py.gpu.kernels.source import KernelSource, make_kernel
from cute_py.gpu.kernels.walk import TileWalk

_BODY: Final = r"""
extern "C" __global__ void __launch_bounds__(THREADS) copy_realigned(
    const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap destination, ErrorRecord* record) {
  extern __shared__ __align__(128) u8 stages[];
  const u32 from = shared_address(stages), to = from + LOAD_BYTES, barrier = to + STORE_BYTES;
  const u32 tile = blockIdx.x;
  if (threadIdx.x == 0) {
    barrier_init(barrier, 1);
    barrier_init_done();
    expect_bytes(barrier, LOAD_BYTES);
    %(load)s(from, &source, barrier, %(from)s);
    prefetch_map(&destination);
  }
  __syncthreads();
  if (!wait(barrier, 0, 0, LOAD_BYTES, record)) return;
#pragma unroll
  for (u32 i = threadIdx.x; i < STORE_BYTES / 16; i += THREADS) {
    const u32 row = i / (ROW_BYTES / 16), chunk = i %% (ROW_BYTES / 16);
    const uint4* near = reinterpret_cast<const uint4*>(stages + row * (ROW_BYTES + 16) + chunk * 16);
    const uint4 a = near[0], b = near[1];
    const u32 w[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
    constexpr u32 word = SHIFT / 4, bits = SHIFT %% 4 * 8;
    uint4 v;
    v.x = __funnelshift_r(w[word], w[word + 1], bits);
    v.y = __funnelshift_r(w[word + 1], w[word + 2], bits);
    v.z = __funnelshift_r(w[word + 2], w[word + 3], bits);
    v.w = __funnelshift_r(w[word + 3], w[word + 4], bits);
    reinterpret_cast<uint4*>(stages + LOAD_BYTES)[i] = v;
  }
  fence_async_shared();
  __syncthreads();
  if (threadIdx.x == 0) {
    %(store)s(to, &destination, %(to)s);
    commit_group();
    wait_group_read<0>();
  }
}
"""


def copy_realigned(
    walk: TileWalk,
    row_bytes: int,
    rows: int,
    shift: int,
    *,
    element_bytes: int,
    threads: int = 128,
    load_hint: str | None = None,
    store_hint: str | None = None,
) -> KernelSource:
    """Make the kernel that copies a window that starts `shift` bytes after a 16-byte boundary, with one block per tile
    of `walk`.

    Args:
        walk: tiles of the destination, in elements of the destination map.
        row_bytes, rows: size of one tile of the destination; row_bytes is a multiple of 16. The load box is 16 bytes
            wider.
        shift: distance in bytes from the boundary to the window, 1..15.
        element_bytes: bytes of an element of both maps; it need not divide `shift`, because the source map starts at
            the boundary below.
    Raises:
        InvalidValueError: a shift or a row is out of range.
    """
    if not 1 <= shift <= 15:
        raise InvalidValueError.of_value("shift", shift, "be 1 to 15", "bytes")
    if row_bytes % 16 or row_bytes % element_bytes:
        raise InvalidValueError.of_value("row", row_bytes, f"be a multiple of 16 and of {element_bytes}", "bytes")
    rank = len(walk.counts)
    load, store = CopyOp("load", rank, hint=load_hint), CopyOp("store", rank, hint=store_hint)
    load_bytes = -(-(row_bytes + 16) * rows // 128) * 128
    if load_bytes != (row_bytes + 16) * rows:
        raise InvalidValueError(
            f"tile = {rows} rows of {row_bytes} + 16 bytes = {(row_bytes + 16) * rows} bytes; must be a multiple of 128"
        )
    constants = {
        "THREADS": threads,
        "ROW_BYTES": row_bytes,
        "LOAD_BYTES": load_bytes,
        "STORE_BYTES": row_bytes * rows,
        "SHIFT": shift,
    }
    coordinates = ", ".join(walk.expressions("tile"))
    names = {"load": load.name, "store": store.name, "from": coordinates, "to": coordinates}
    return make_kernel(
        "copy_realigned",
        _BODY % names,
        constants,
        load_bytes + row_bytes * rows + BARRIER_BYTES,
        ("source", "destination", "record"),
        header=copy_functions(load, store),
        facts={"walk": walk},
    )
