"""Grouped copies: one kernel walks many tensors and gives its two tensor maps a new tensor for each.

A block keeps the two maps in shared memory, where tensormap.replace writes address, sizes and strides, in that order.
A copy of them goes to two slots of the block in global memory by tensormap.cp_fenceproxy, which releases them to the
copy engine; the matching acquire stands before the first copy that reads them. The block waits until all stores of a
group are complete before it rebinds. Element format, box and swizzle stay those of the two maps given.
"""

from __future__ import annotations

import struct
from typing import Final

from cute_py.errors import InvalidValueError
from cute_py.gpu.kernels.copy import BARRIER_BYTES, stage_bytes
from cute_py.gpu.kernels.copy_op import CopyOp, copy_functions
from cute_py.gpu.kernels.source import KernelSource, make_kernel
from cute_py.ptx.forms_barrier import WIDE_FIELDS
from cute_py.tma.descriptor.fields import MAX_RANK

GROUP: Final = struct.Struct("<10Q6I")
"""Address of source and destination; byte strides of modes 1..4 of the source, then of the destination; sizes of
modes 0..4 in elements (1 beyond the rank); padding."""

SLOT_BYTES: Final = 256
"""Global memory for the two maps of one block, 128-byte aligned."""

_BODY: Final = r"""
struct Group { u64 address[2], strides[2][4]; u32 sizes[5], spare; };
__device__ __forceinline__ void rebind(u32 map, u64 address, const u32* sizes, const u64* strides) {
%(replace)s
}
__device__ __forceinline__ void publish(u64 slot, u32 map) {
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
               "[%%0], [%%1], 128;"
               ::"l"(slot), "r"(map) : "memory");
}
extern "C" __global__ void __launch_bounds__(THREADS) copy_groups(
    const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap destination,
    const Group* groups, u32 count, u8* slots, ErrorRecord* record) {
  extern __shared__ __align__(1024) u8 stages[];
  const u32 base = shared_address(stages), barriers = base + STAGES * STAGE_BYTES, maps = barriers + BARRIER_BYTES;
  u64* words = reinterpret_cast<u64*>(stages + STAGES * STAGE_BYTES + BARRIER_BYTES);
  const u64 slot = reinterpret_cast<u64>(slots) + (u64)blockIdx.x * 256;
  const TensorMap* from = reinterpret_cast<const TensorMap*>(slot);
  const TensorMap* to = reinterpret_cast<const TensorMap*>(slot + 128);
  words[threadIdx.x] = threadIdx.x < 16 ? source.word[threadIdx.x] : destination.word[threadIdx.x - 16];
  if (threadIdx.x == 0) {
#pragma unroll
    for (u32 s = 0; s < STAGES; ++s) barrier_init(barriers + 8 * s, 1);
    barrier_init_done();
  }
  __syncwarp();
  u32 phases = 0;
  bool healthy = true;
  for (u32 g = blockIdx.x / SPLIT; healthy && g < count; g += gridDim.x / SPLIT) {
    const Group& group = groups[g];
    if (threadIdx.x == 0) {
      rebind(maps, group.address[0], group.sizes, group.strides[0]);
      rebind(maps + 128, group.address[1], group.sizes, group.strides[1]);
    }
    __syncwarp();
    publish(slot, maps);
    publish(slot + 128, maps + 128);
    if (threadIdx.x == 0) {
      acquire_map(from);
      acquire_map(to);
      const u32 %(counts)s;
      const u32 tiles = %(tiles)s;
      u32 loading = blockIdx.x %% SPLIT;
#pragma unroll
      for (u32 s = 0; s < STAGES; ++s) {
        if (loading < tiles) {
          const u32 tile = loading;
          expect_bytes(barriers + 8 * s, TILE_BYTES);
          %(load)s(base + s * STAGE_BYTES, from, barriers + 8 * s, %(coordinates)s);
        }
        loading += SPLIT;
      }
      for (u32 storing = blockIdx.x %% SPLIT; healthy && storing < tiles;) {
#pragma unroll
        for (u32 s = 0; s < STAGES; ++s) {
          if (healthy && storing < tiles) {
            healthy = wait(barriers + 8 * s, (phases >> s) & 1u, s, TILE_BYTES, record);
            phases ^= 1u << s;
            if (healthy) {
              const u32 tile = storing;
              %(store)s(base + s * STAGE_BYTES, to, %(coordinates)s);
              commit_group();
              if (loading < tiles) {
                wait_group_read<0>();
                const u32 tile = loading;
                expect_bytes(barriers + 8 * s, TILE_BYTES);
                %(load)s(base + s * STAGE_BYTES, from, barriers + 8 * s, %(coordinates)s);
              }
            }
            loading += SPLIT;
            storing += SPLIT;
          }
        }
      }
      wait_group<0>();
    }
    healthy = __shfl_sync(0xFFFFFFFFu, (int)healthy, 0);
  }
}
"""


def replace_call(field: str, address: str, value: str, ordinal: int | None = None) -> str:
    """One inline-assembly statement that replaces a field of the map at a shared-memory `address`.

    `ordinal` counts the modes, or the strides, from 0; a field that has none gets None.
    """
    width, letter, kind = ("b64", "l", "u64") if field in WIDE_FIELDS else ("b32", "r", "u32")
    which = "" if ordinal is None else f"{ordinal}, "
    text = f"tensormap.replace.tile.{field}.shared::cta.b1024.{width} [%0], {which}%1;"
    return f'asm volatile("{text}" ::"r"({address}), "{letter}"(({kind})({value})) : "memory");'


def copy_groups(
    box: tuple[int, ...],
    tile_bytes: int,
    *,
    window_bytes: int | None = None,
    stages: int = 3,
    split: int = 1,
    load_hint: str | None = None,
    store_hint: str | None = None,
) -> KernelSource:
    """Copy many tensors of one rank with one pair of maps; blocks = a multiple of `split`.

    Args:
        box: of both maps, in elements, innermost mode first; its length is the rank.
        tile_bytes, window_bytes, load_hint, store_hint: as for the one-shot copy.
        stages: tiles in flight in a block, 1..8.
        split: blocks that share one group.
    Raises:
        InvalidValueError: `stages`, `split` or the rank out of range.
    """
    rank = len(box)
    if not 1 <= rank <= MAX_RANK:
        raise InvalidValueError(f"rank = {rank}; must be 1 to 5")
    if not 1 <= stages <= 8 or split < 1:
        raise InvalidValueError(f"stages = {stages}, split = {split}; stages must be 1 to 8, split at least 1")
    calls = [replace_call("global_address", "map", "address")]
    calls += [replace_call("global_dim", "map", f"sizes[{i}]", i) for i in range(rank)]
    calls += [replace_call("global_stride", "map", f"strides[{i}]", i) for i in range(rank - 1)]
    counts = [f"n{i} = (group.sizes[{i}] + {box[i] - 1}u) / {box[i]}u" for i in range(rank)]
    coordinates = []
    before = ""
    for i in range(rank):
        index = f"(tile / ({before}))" if before else "tile"
        coordinates.append(f"(int)({index}{f' % n{i}' if i < rank - 1 else ''} * {box[i]}u)")
        before = f"{before} * n{i}" if before else f"n{i}"
    load, store = CopyOp("load", rank, hint=load_hint), CopyOp("store", rank, hint=store_hint)
    stage = stage_bytes(window_bytes or tile_bytes)
    constants = {
        "THREADS": 32,
        "TILE_BYTES": tile_bytes,
        "STAGE_BYTES": stage,
        "STAGES": stages,
        "SPLIT": split,
        "BARRIER_BYTES": BARRIER_BYTES,
    }
    names = {
        "replace": "\n".join(f"  {call}" for call in calls),
        "counts": ", ".join(counts),
        "tiles": before,
        "coordinates": ", ".join(coordinates),
        "load": load.name,
        "store": store.name,
    }
    return make_kernel(
        "copy_groups",
        _BODY % names,
        constants,
        stage * stages + BARRIER_BYTES + 256,
        ("source", "destination", "groups", "count", "slots", "record"),
        header=copy_functions(load, store),
        facts={"box": box},
    )
