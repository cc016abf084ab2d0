"""Copies that threads make: tiles turned in shared memory, and runs that both sides share.

    copy_tile   a block reads a tile in the source's order, in vectors, and writes it in the destination's; in between
                it lies in shared memory, in rows of the source behind one swizzle
    copy_runs   a thread moves one vector of a run that is contiguous on both sides; copies without a common refinement
                are runs of one element, or of the largest common run. Elements of 4 bits are moved one by one, or two
                that are one byte of the destination

Sizes, strides and tables are parameters, so that one kernel serves every copy of its element size and vectors. What a
row of a tile adds to an address is the same for every tile: `tables` on the device list it, once for each combination
of modes that end inside a tile (a class of tiles). A division by a run-time size is a multiplication (Granlund and
Montgomery, Division by Invariant Integers using Multiplication, figure 4.1).

A side whose rows start between two words is read and written in whole words of 4 bytes all the same: shared memory
holds the source's words as they are, in rows that lie as far from a word as the source's do; a word of the destination
belongs to the tile that holds its first element, and that tile reads as many elements beyond its end. Words that reach
beyond the tensor are moved by the element.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Final

from cute_py.gpu.kernels.source import KernelSource, make_kernel

MAX_DIGITS: Final = 20
"""Digits of a block's or a vector's number."""
MAX_CLASSES: Final = 16
MAX_THREADS: Final = 512
"""Of a block of a tile; how many it has is a matter of the launch."""
WORD: Final = 16
"""Bytes of a word on a side whose rows start between two."""
GRAIN: Final = 32
"""Bytes that one tile writes of such a destination, if it writes any of them: a sector."""
ASYNCHRONOUS: Final = 4
"""Bytes from which a word goes to shared memory past the registers."""

DIGIT: Final = struct.Struct("<IIIIqq")
"""size, magic, shift, bit of the class; byte steps of source and destination."""
ROWS: Final = 7
CLASS: Final = struct.Struct(f"<{2 * ROWS + 4}I")
"""Of the source, then of the destination: rows, vectors of one, threads that a row is dealt to, magic, rows and vectors
that a thread goes on by, place of the rows' table; place of the list of a destination's row, its own elements, elements
in shared memory, bytes of a source row."""
ROW: Final = struct.Struct("<qII")
"""Byte offset of a row, its place in shared memory."""
TILE: Final = struct.Struct("<5Q3q2Q4i8I32I")
RUNS: Final = struct.Struct("<3Q2q4I2Qii4Iq")

_TYPES: Final = {1: "u8", 2: "u16", 4: "u32", 8: "uint2", 16: "uint4"}

_SHARED: Final = r"""
typedef long long i64;
struct Digit { u32 size, magic, shift, bit; i64 source, destination; };
__device__ __forceinline__ u32 divided(u32 n, u32 magic, u32 shift) { return (__umulhi(n, magic) + n) >> shift; }
__device__ __forceinline__ i64 swizzled(i64 x, u64 mask, int shift) {
  const u64 picked = (u64)x & mask;
  return x ^ (i64)(shift < 0 ? picked << -shift : picked >> shift);
}
"""

_TILE: Final = r"""
struct Rows { u32 count, run, lanes, magic, skip, ahead, table; };
struct Class { Rows source, destination; u32 list, own, held, source_bytes; };
struct Tile {
  const u8* source; u8* destination; const u8* low; const u8* high; const u8* tables;
  i64 source_start, destination_start, reach;
  u64 source_mask, destination_mask; int source_swizzle, destination_swizzle;
  int source_step, destination_step;
  u32 source_pitch, destination_pitch, rank, run_digit, mask, swizzle, pitch, spare;
  u32 spread[16], pieces[16];
  Digit digits[MAX_DIGITS];
  Class classes[MAX_CLASSES];
};
struct Row { i64 offset; u32 place; };
union Loaded { SOURCE_VECTOR whole; PIECE part[SOURCE_BYTES / PIECE_BYTES]; };
union Stored { DESTINATION_VECTOR whole; ELEMENT part[PER_VECTOR]; };
union Places { u16 at[PER_VECTOR]; PLACES part[2 * PER_VECTOR / sizeof(PLACES)]; };
// Places that share no bit behind the swizzle: their sum is their exclusive or, and the swizzle of it that of both.
__device__ __forceinline__ u32 join(u32 a, u32 b) { return SWIZZLED ? a ^ b : a + b; }
__device__ __forceinline__ u32 behind(u32 x, const Tile& p) { return SWIZZLED ? x ^ (x >> p.swizzle & p.mask) : x; }
__device__ __forceinline__ Row read_row(const u8* table, u32 row, int step, u32 pitch, const Tile& p) {
  Row found;
  if (AFFINE) {
    found.offset = (i64)(int)row * step;
    found.place = behind(row * pitch, p);
  } else {
    u32 a, b, c, d;
    asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(table + 16 * (u64)row));
    found.offset = (i64)((u64)b << 32 | a);
    found.place = c;
  }
  return found;
}
// From global to shared memory past the registers.
__device__ __forceinline__ void copy_async(u8* to, const u8* from) {
  if (SOURCE_BYTES == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                 ::"r"(shared_address(to)), "l"(from), "n"(ASYNC ? SOURCE_BYTES : 4) : "memory");
  }
}
// A word that reaches beyond the source; called, since few are.
__device__ __noinline__ void copy_edge(u8* to, const u8* at, const u8* low, const u8* high) {
  for (u32 b = 0; b < SOURCE_BYTES; ++b)
    if (at + b >= low && at + b < high) to[b] = at[b];
}
// The rows of a tile are dealt out to threads; a steady thread stays in one column of vectors, and those that are left
// over after whole rows have none.
struct Walk {
  u32 row, along;
  __device__ __forceinline__ Walk(const Rows& r) {
    row = r.lanes == 1 ? threadIdx.x : __umulhi(threadIdx.x, r.magic);
    along = threadIdx.x - row * r.lanes;
    if (STEADY && row >= r.skip) row = r.count;
  }
  __device__ __forceinline__ bool live(const Rows& r) const { return row < r.count && (!STEADY || along < r.run); }
  __device__ __forceinline__ void next(const Rows& r) {
    row += r.skip;
    if (!STEADY) {
      along += r.ahead;
      if (along >= r.lanes) { along -= r.lanes; ++row; }
    }
  }
};

extern "C" __global__ void __launch_bounds__(THREADS) copy_tile(const __grid_constant__ Tile p) {
  extern __shared__ __align__(1024) u8 shared[];
  u32 rest = blockIdx.x, combination = 0;
  i64 from = p.source_start, to = p.destination_start;
  bool first = true;
  for (u32 m = 0; m < p.rank; ++m) {
    const Digit& d = p.digits[m];
    const u32 quotient = divided(rest, d.magic, d.shift), digit = rest - quotient * d.size;
    rest = quotient;
    from += (i64)digit * d.source;
    to += (i64)digit * d.destination;
    if (digit == d.size - 1) combination |= d.bit;
    if (DESTINATION_SHIFT && m == p.run_digit) first = digit == 0;
  }
  const Class& c = p.classes[combination];
  const u8* const base = p.source + from;
  const u32 misplaced = SOURCE_SHIFT ? (u32)(u64)base % SOURCE_BYTES : 0;
  const bool inside = SOURCE_SHIFT && base - SOURCE_BYTES >= p.low && base + p.reach + 2 * SOURCE_BYTES <= p.high;
  Walk walk(c.source);
  while (walk.row < c.source.count) {
    Row rows[LOADS];
    u32 along[LOADS], place[LOADS];
    Loaded held[LOADS];
#pragma unroll
    for (u32 u = 0; u < LOADS; ++u) {
      along[u] = ~0u;
      if (walk.live(c.source)) {
        along[u] = walk.along * SOURCE_BYTES;
        rows[u] = read_row(p.tables + c.source.table, walk.row, p.source_step, p.source_pitch, p);
      }
      walk.next(c.source);
    }
#pragma unroll
    for (u32 u = 0; u < LOADS; ++u) {
      place[u] = ~0u;
      if (along[u] == ~0u) continue;
      const u8* at;
      if (SOURCE_SHIFT) {
        const u8* start = base + rows[u].offset;
        const u32 before = (u32)(u64)start % SOURCE_BYTES;
        if (along[u] >= c.source_bytes + before) continue;
        at = start - before + along[u];
        place[u] = (rows[u].place + misplaced) / SOURCE_BYTES * SOURCE_BYTES + along[u];
        if (!inside && (at < p.low || at + SOURCE_BYTES > p.high)) {
          copy_edge(shared + place[u], at, p.low, p.high);
          place[u] = ~0u;
          continue;
        }
      } else {
        place[u] = join(rows[u].place, behind(along[u], p));
        const i64 offset = rows[u].offset + along[u];
        at = GLOBAL_SWIZZLED ? p.source + swizzled(from + offset, p.source_mask, p.source_swizzle) : base + offset;
      }
      if (ASYNC) copy_async(shared + place[u], at);
      else held[u].whole = *(const SOURCE_VECTOR*)at;
    }
    if (ASYNC) continue;
#pragma unroll
    for (u32 u = 0; u < LOADS; ++u)
      if (place[u] != ~0u) {
#pragma unroll
        for (u32 i = 0; i < SOURCE_BYTES / PIECE_BYTES; ++i)
          *(PIECE*)(shared + join(place[u], p.pieces[i])) = held[u].part[i];
      }
  }
  if (ASYNC) asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  u8* const target = p.destination + to;
  const u16* const list = (const u16*)(p.tables + c.list);
  Walk out_walk(c.destination);
#pragma unroll 4
  for (; out_walk.row < c.destination.count; out_walk.next(c.destination)) {
    if (!out_walk.live(c.destination)) continue;
    const u32 along = out_walk.along;
    const Row r = read_row(p.tables + c.destination.table, out_walk.row, p.destination_step, p.destination_pitch, p);
    u32 x = r.place + misplaced;
    Stored out;
    if (DESTINATION_SHIFT) {
      u8* start = target + r.offset;
      const int phase = (int)((u32)(u64)start % GRAIN / ELEMENT_BYTES), index = (int)(along * PER_VECTOR) - phase;
      // All words of a grain belong to the tile that holds its first element.
      const int grain = (int)(along * DESTINATION_BYTES / GRAIN * (GRAIN / ELEMENT_BYTES)) - phase;
      if (grain >= (int)c.own || (grain < 0 && !first)) continue;
      if (index >= 0 && index + PER_VECTOR <= c.held) {
        u32 place = LISTED ? list[index] : index * p.pitch;
        const bool even = !LISTED || list[index + PER_VECTOR - 1] - place == (PER_VECTOR - 1) * p.pitch;
        if (even) {
          x += place;
#pragma unroll
          for (u32 v = 0; v < PER_VECTOR; ++v) out.part[v] = *(const ELEMENT*)(shared + x + v * p.pitch);
        } else {
#pragma unroll
          for (u32 v = 0; v < PER_VECTOR; ++v) out.part[v] = *(const ELEMENT*)(shared + x + list[index + v]);
        }
        *(DESTINATION_VECTOR*)(start + index * (int)ELEMENT_BYTES) = out.whole;
      } else {
        const int end = min(index + (int)PER_VECTOR, (int)c.own);
        for (int i = max(index, 0); i < end; ++i)
          *(ELEMENT*)(start + i * (int)ELEMENT_BYTES) =
              *(const ELEMENT*)(shared + x + (LISTED ? list[i] : i * p.pitch));
      }
    } else {
      Places places;
      if (LISTED) {
#pragma unroll
        for (u32 i = 0; i < 2 * PER_VECTOR / sizeof(PLACES); ++i)
          places.part[i] = ((const PLACES*)(list + along * PER_VECTOR))[i];
      } else {
        x = join(x, list[along]);
      }
#pragma unroll
      for (u32 v = 0; v < PER_VECTOR; ++v)
        out.part[v] = *(const ELEMENT*)(shared + join(x, LISTED ? places.at[v] : p.spread[v]));
      i64 offset = r.offset + along * DESTINATION_BYTES;
      if (GLOBAL_SWIZZLED) offset = swizzled(to + offset, p.destination_mask, p.destination_swizzle) - to;
      *(DESTINATION_VECTOR*)(target + offset) = out.whole;
    }
  }
}
"""

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
// An element of 4 bits by its number; flip: the first of a byte lies in its upper half.
__device__ __forceinline__ u32 nibble(const u8* memory, i64 at, u32 flip) {
  return memory[at >> 1] >> 4 * ((u32)(at & 1) ^ flip) & 15;
}
__device__ __forceinline__ u64 taken(u64& rest, const Digit& d) {
  const u64 quotient = WIDE ? rest / d.size : (u64)divided((u32)rest, d.magic, d.shift);
  const u64 digit = rest - quotient * d.size;
  rest = quotient;
  return digit;
}

extern "C" __global__ void __launch_bounds__(THREADS) copy_runs(const __grid_constant__ Runs p) {
  const u64 begin = (u64)blockIdx.x * (THREADS * LOADS) + threadIdx.x;
  SOURCE_VECTOR held[LOADS];
  i64 place[LOADS];
#pragma unroll
  for (u32 u = 0; u < LOADS; ++u) {
    u64 rest = begin + u * THREADS;
    if (rest < p.total) {
      i64 from = p.source_start, to = p.destination_start;
      u32 m = 0;
      for (; m < p.before + p.after; ++m) {
        if (GENERAL && m == p.before) break;
        const u64 digit = taken(rest, p.digits[m]);
        from += (i64)digit * p.digits[m].source;
        to += (i64)digit * p.digits[m].destination;
      }
      if (GENERAL) {
        u64 one = rest, other = rest;
        const u32 first = p.before + p.after;
        for (u32 r = 0; r < p.source_rest; ++r) {
          const Digit& d = p.digits[first + r];
          from += (i64)taken(one, d) * d.source;
        }
        for (u32 r = 0; r < p.destination_rest; ++r) {
          const Digit& d = p.digits[first + p.source_rest + r];
          to += (i64)taken(other, d) * d.destination;
        }
        // Both lists have the same product, and what is left counts the modes behind them.
        rest = one;
        for (; m < p.before + p.after; ++m) {
          const u64 digit = taken(rest, p.digits[m]);
          from += (i64)digit * p.digits[m].source;
          to += (i64)digit * p.digits[m].destination;
        }
      }
      i64 next = from + p.step;
      if (GLOBAL_SWIZZLED) from = swizzled(from, p.source_mask, p.source_swizzle);
      if (GLOBAL_SWIZZLED && PAIRED) next = swizzled(next, p.source_mask, p.source_swizzle);
      if (GLOBAL_SWIZZLED) to = swizzled(to, p.destination_mask, p.destination_swizzle);
      place[u] = to;
      if (PAIRED) {
        const u32 one = nibble(p.source, from, p.source_flip), other = nibble(p.source, next, p.source_flip);
        held[u] = (SOURCE_VECTOR)(one << 4 * p.destination_flip | other << 4 * (1 - p.destination_flip));
        place[u] = to >> 1;
      } else if (NIBBLES) {
        held[u] = (SOURCE_VECTOR)nibble(p.source, from, p.source_flip);
      } else {
        held[u] = *(const SOURCE_VECTOR*)(p.source + from);
      }
    }
  }
#pragma unroll
  for (u32 u = 0; u < LOADS; ++u) {
    if (begin + u * THREADS >= p.total) continue;
    if (NIBBLES && !PAIRED) {
      // Of each byte one launch writes one half, the other launch the other.
      if ((u32)(place[u] & 1) != p.parity) continue;
      u8* const byte = p.destination + (place[u] >> 1);
      const u32 at = 4 * (p.parity ^ p.destination_flip);
      *byte = (u8)((*byte & ~(15u << at)) | (u32)held[u] << at);
    } else {
      *(SOURCE_VECTOR*)(p.destination + place[u]) = held[u];
    }
  }
}
"""


def magic(size: int) -> tuple[int, int]:
    """(magic, shift) of a division by `size`: n / size = (high(n * magic) + n) >> shift, for n below 2**31.

    >>> magic(7)
    (613566757, 3)
    """
    shift = (size - 1).bit_length()
    return ((((1 << shift) - size) << 32) // size + 1) & 0xFFFFFFFF, shift


def row_magic(run: int) -> int:
    """number / run = high(number * magic), for both below 2**16; 0 for a run of 1, which the kernel asks for."""
    return 0 if run == 1 else (1 << 32) // run + 1


def copy_tile(
    element_bytes: int,
    source_bytes: int,
    destination_bytes: int,
    piece_bytes: int,
    threads: int,
    shared_bytes: int,
    *,
    shifts: tuple[bool, bool] = (False, False),
    swizzled: bool = False,
    global_swizzled: bool = False,
    listed: bool = False,
    steady: bool = False,
    affine: bool = False,
) -> KernelSource:
    """The kernel of tiles. Vectors of the two sides and pieces, in which a vector goes to shared memory, in bytes.

    shifts: the side's rows may start between two words. swizzled: shared memory is, and places share no bit.
    global_swizzled: the offsets of a side are. steady: threads stay in their column of vectors. affine: rows are one
    mode. listed: the places of a destination's vector have no fixed distances, and are listed one by one.
    """
    asynchronous = piece_bytes == source_bytes >= ASYNCHRONOUS
    constants = {
        "THREADS": MAX_THREADS,
        "LOADS": 4 if asynchronous else max(1, min(8, 64 // source_bytes)),
        "ASYNC": int(asynchronous),
        "GRAIN": max(GRAIN, destination_bytes),
        "ELEMENT_BYTES": element_bytes,
        "SOURCE_BYTES": source_bytes,
        "DESTINATION_BYTES": destination_bytes,
        "PIECE_BYTES": piece_bytes,
        "PER_VECTOR": destination_bytes // element_bytes,
        "SOURCE_SHIFT": int(shifts[0]),
        "DESTINATION_SHIFT": int(shifts[1]),
        "GLOBAL_SWIZZLED": int(global_swizzled),
        "SWIZZLED": int(swizzled),
        "STEADY": int(steady),
        "AFFINE": int(affine),
        "LISTED": int(listed),
        "MAX_DIGITS": MAX_DIGITS,
        "MAX_CLASSES": MAX_CLASSES,
    }
    kernel = make_kernel(
        "copy_tile",
        _types(element_bytes, source_bytes, destination_bytes, piece_bytes) + _SHARED + _TILE,
        constants,
        shared_bytes,
        ("plan",),
    )
    return replace(kernel, threads=threads)


def copy_runs(
    vector_bytes: int,
    *,
    general: bool = False,
    wide: bool = False,
    swizzled: bool = False,
    nibbles: bool = False,
    paired: bool = False,
) -> KernelSource:
    """The kernel of runs, in vectors of `vector_bytes`. wide: there are 2**31 vectors or more.

    nibbles: elements are halves of bytes, and offsets count them. paired: two of them are a byte of the destination.
    """
    constants = {
        "THREADS": 256,
        "LOADS": 4,
        "GENERAL": int(general),
        "WIDE": int(wide),
        "GLOBAL_SWIZZLED": int(swizzled),
        "NIBBLES": int(nibbles),
        "PAIRED": int(paired),
        "MAX_DIGITS": MAX_DIGITS,
    }
    body = _types(vector_bytes, vector_bytes, vector_bytes, vector_bytes) + _SHARED + _RUNS
    return make_kernel("copy_runs", body, constants, 0, ("plan",))


def _types(element: int, source: int, destination: int, piece: int) -> str:
    names = {
        "ELEMENT": element,
        "SOURCE_VECTOR": source,
        "DESTINATION_VECTOR": destination,
        "PIECE": piece,
        "PLACES": min(16, 2 * destination // element),
    }
    return "".join(f"typedef {_TYPES[size]} {name};\n" for name, size in names.items())
