"""The kernel that copies runs that are contiguous on both sides: a thread moves one vector of a run.

Copies without a common refinement are runs of one element, or of the largest common run. Elements of 4 bits move one by
one, or as pairs that form one byte of the destination.
"""

from __future__ import annotations

import struct
from typing import Final

from cute_py.gpu.kernels.relayout import DIGITS, MAX_DIGITS, vector_types
from cute_py.gpu.kernels.source import AWAIT, TYPES, KernelSource, make_kernel

RUNS: Final = struct.Struct("<3Q2q4I2Qii4Iq")

_RUNS: Final = r"""
struct Runs {
  const u8* source; u8* destination; u64 total;
  i64 source_start, destination_start;
  u32 before, after, source_rest, destination_rest;
  u64 source_mask, destination_mask; int source_swizzle, destination_swizzle;
  u32 source_flip, destination_flip, parity, spare;
  i64 step;
  Digit digits[2 * MAX_DIGITS];
};
union Vector { SOURCE_VECTOR whole; ELEMENT part[GATHERED]; };
// The 4-bit element with this number; flip: the first element of a byte lies in the upper half.
__device__ __forceinline__ u32 nibble(const u8* memory, i64 at, u32 flip) {
  return memory[at >> 1] >> 4 * ((u32)(at & 1) ^ flip) & 15;
}
// Take a digit of each vector's number, and add its steps to both places.
__device__ __forceinline__ void step(NUMBER (&rest)[LOADS], i64 (&from)[LOADS], i64 (&to)[LOADS], const Digit& d) {
#pragma unroll
  for (u32 u = 0; u < LOADS; ++u) {
    const NUMBER quotient = WIDE ? rest[u] / d.size : divided((u32)rest[u], d.magic, d.shift);
    const NUMBER digit = rest[u] - quotient * d.size;
    rest[u] = quotient;
    from[u] += (i64)digit * d.source;
    to[u] += (i64)digit * d.destination;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) copy_runs(const __grid_constant__ Runs p) {
  const u64 begin = (u64)blockIdx.x * (THREADS * LOADS) + threadIdx.x;
  Vector held[LOADS];
  NUMBER rest[LOADS], other[LOADS];
  i64 from[LOADS], to[LOADS], next[LOADS];
#pragma unroll
  for (u32 u = 0; u < LOADS; ++u) {
    rest[u] = (NUMBER)(begin + u * THREADS);
    from[u] = p.source_start;
    to[u] = p.destination_start;
  }
  const Digit* d = p.digits;
#pragma unroll 1
  for (const Digit* end = d + p.before; d < end; ++d) step(rest, from, to, *d);
  if constexpr (GENERAL) {
    // Both lists have the same product, and the remaining number counts the modes after them.
#pragma unroll
    for (u32 u = 0; u < LOADS; ++u) other[u] = rest[u];
#pragma unroll 1
    for (const Digit* end = d + p.destination_rest; d < end; ++d) step(other, from, to, *d);
#pragma unroll 1
    for (const Digit* end = d + p.source_rest + p.after; d < end; ++d) step(rest, from, to, *d);
  }
#pragma unroll
  for (u32 u = 0; u < LOADS; ++u) {
    next[u] = from[u] + p.step;
    if constexpr (GLOBAL_SWIZZLED) {
      from[u] = swizzled(from[u], p.source_mask, p.source_swizzle);
      next[u] = swizzled(next[u], p.source_mask, p.source_swizzle);
      to[u] = swizzled(to[u], p.destination_mask, p.destination_swizzle);
    }
  }
  await_previous();
  allow_next();
#pragma unroll
  for (u32 u = 0; u < LOADS; ++u) {
    if (begin + u * THREADS >= p.total) continue;
    if constexpr (PAIRED) {
      const u32 one = nibble(p.source, from[u], p.source_flip), two = nibble(p.source, next[u], p.source_flip);
      *(u8*)&held[u] = (u8)(one << 4 * p.destination_flip | two << 4 * (1 - p.destination_flip));
    } else if constexpr (NIBBLES) {
      *(u8*)&held[u] = (u8)nibble(p.source, from[u], p.source_flip);
    } else if constexpr (GATHERED > 1) {
#pragma unroll
      for (u32 v = 0; v < GATHERED; ++v) held[u].part[v] = *(const ELEMENT*)(p.source + from[u] + v * p.step);
    } else {
      held[u].whole = *(const SOURCE_VECTOR*)(p.source + from[u]);
    }
  }
#pragma unroll
  for (u32 u = 0; u < LOADS; ++u) {
    if (begin + u * THREADS >= p.total) continue;
    if constexpr (NIBBLES && !PAIRED) {
      // One launch writes one half of each byte, and the other launch the other half.
      if ((u32)(to[u] & 1) != p.parity) continue;
      u8* const byte = p.destination + (to[u] >> 1);
      const u32 at = 4 * (p.parity ^ p.destination_flip);
      *byte = (u8)((*byte & ~(15u << at)) | *(const u8*)&held[u] << at);
    } else {
      *(SOURCE_VECTOR*)(p.destination + (PAIRED ? to[u] >> 1 : to[u])) = held[u].whole;
    }
  }
}
"""


def copy_runs(
    vector_bytes: int,
    *,
    general: bool = False,
    wide: bool = False,
    swizzled: bool = False,
    nibbles: bool = False,
    paired: bool = False,
    gathered: int = 1,
    few: bool = False,
) -> KernelSource:
    """Make the kernel that copies runs in vectors of `vector_bytes`. wide: whether there are 2**31 vectors or more.

    nibbles: whether elements are 4-bit halves of bytes; offsets then count halves. paired: whether two elements form a
    byte of the destination. gathered: number of elements of a destination vector that are not adjacent in the source; 1
    if all are adjacent. few: whether there are few vectors; the grid then has many small blocks, and each thread moves
    one vector.
    """
    constants = {
        "THREADS": 64 if few else 256,
        "LOADS": 1 if few else 4,
        "GATHERED": gathered,
        "GENERAL": int(general),
        "WIDE": int(wide),
        "GLOBAL_SWIZZLED": int(swizzled),
        "NIBBLES": int(nibbles),
        "PAIRED": int(paired),
        "MAX_DIGITS": MAX_DIGITS,
    }
    number = f"typedef {'u64' if wide else 'u32'} NUMBER;\n"
    body = vector_types(vector_bytes // gathered, vector_bytes, vector_bytes, vector_bytes) + number + DIGITS + _RUNS
    return make_kernel("copy_runs", body, constants, 0, ("plan",), prelude=TYPES + AWAIT, awaits=True)
