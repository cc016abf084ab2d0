"""The kernel that copies tiles by threads: a block reads a tile in vectors in the source's order, and writes it in the
destination's order. In between, the tile is in shared memory, in rows of the source with one swizzle.

Sizes, strides and tables are parameters, so that one kernel serves every copy of its element size and vector widths. A
row has the same offset from the start of its tile in every tile. `tables` on the device list these offsets, once for
each combination of modes that end inside a tile (a class of tiles). A division by a run-time size is a multiplication
(Granlund and Montgomery, Division by Invariant Integers using Multiplication, figure 4.1).

If the rows of a side start between two words, threads still read and write full words of 16 bytes. Shared memory
contains the source's words unchanged, in rows with the source's offset from a word boundary. A sector of the
destination is written by the tile that contains its first element, and that tile reads the missing elements past its
own end. If a word extends past the end of the source, threads read only the bytes of the source. If a word extends past
the destination, they write it element by element.

An asynchronous copy requests a line of 128 bytes once if all its words are in one line of shared memory. Otherwise it
requests parts of the line, and a sector twice if its two words are in different lines. Rows of a source that start
between two words therefore keep their offset from a line of 128 bytes in shared memory, if the pitches permit it. If
both sides consist of full words and elements have 4 bytes or more, threads read through L1, which holds the sector for
the second request.

If both sides consist of full words, a thread reads words of several rows, transposes the block in registers, and writes
words of as many rows. An element then costs a fraction of an instruction instead of two instructions.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Final

from cute_py.gpu.kernels.source import AWAIT, TYPES, KernelSource, make_kernel
from cute_py.targets import LINE_BYTES

MAX_DIGITS: Final = 20
"""Maximum number of digits in the index of a block or a vector."""
MAX_CLASSES: Final = 16
MAX_THREADS: Final = 512
"""Maximum number of threads per block of `copy_tile`; the launch sets the actual number."""
ROW_SHIFT: Final = 22
"""Shift of a division by a 32-bit multiplication, which is exact for thread indices (below 1024)."""
WORD: Final = 16
"""Bytes of a word on a side whose rows start between two words."""
GRAIN: Final = 32
"""Bytes of a unit of such a destination that one tile writes completely or not at all: a sector."""
GROUP: Final = 16
"""Number of tiles of a group of `grouped` tiles. Measured on NVIDIA H200: 4, 8 and 16 differ by less than 1 %."""
MIN_THROUGH_L1: Final = 4
"""Minimum bytes of elements for reads through L1. Measured on NVIDIA H200, 104 copies: 2 to 4 % faster for elements of
4 bytes or more, and not faster for smaller ones."""
ASYNCHRONOUS: Final = 4
"""Minimum bytes of a word that is copied to shared memory without registers."""

DIGIT: Final = struct.Struct("<IIIIqq")
"""size, magic, shift, bit of the class; byte steps of source and destination."""
ROWS: Final = 7
CLASS: Final = struct.Struct(f"<{2 * ROWS + 4}I")
"""Fields for the source, and then for the destination: rows, vectors per row, threads that share a row, magic, step of
a thread in rows and in vectors, offset of the rows' table. Then: offset of the list of a destination row, number of its
own elements, number of its elements in shared memory, bytes of a source row."""
ROW: Final = struct.Struct("<qII")
"""Byte offset of a row in global memory, and its offset in shared memory."""
TILE: Final = struct.Struct("<4Q4q2Q4i10I32I8I")

_TYPES: Final = {1: "u8", 2: "u16", 4: "u32", 8: "uint2", 16: "uint4"}

DIGITS: Final = r"""
typedef long long i64;
struct Digit { u32 size, magic, shift, bit; i64 source, destination; };
struct Divisor { u32 size, magic, shift; };
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
  const u8* source; u8* destination; const u8* high; const u8* tables;
  i64 source_start, destination_start, reach, column;
  u64 source_mask, destination_mask; int source_swizzle, destination_swizzle;
  int source_step, destination_step;
  u32 source_pitch, destination_pitch, rank, run_digit, mask, swizzle, pitch, window, staged, spare;
  u32 spread[16], pieces[16];
  Divisor whole, group; u32 before, cut;
  Digit digits[MAX_DIGITS];
  Class classes[MAX_CLASSES];
};
struct Row { i64 offset; u32 place; };
union Loaded { SOURCE_VECTOR whole; PIECE part[SOURCE_BYTES / PIECE_BYTES]; };
// Vectors as 32-bit words. The compiler moved some unions of a vector and an array of elements to local memory.
template <u32 BYTES> struct Words { u32 at[(BYTES + 3) / 4]; };
typedef Words<DESTINATION_BYTES> Stored;
typedef Words<COLUMNS * ELEMENT_BYTES> Across;
enum : u32 { PART = DESTINATION_BYTES < 4 || ELEMENT_BYTES > 4 ? 1 : 4 / ELEMENT_BYTES };
union Places { u16 at[PER_VECTOR]; PLACES part[2 * PER_VECTOR / sizeof(PLACES)]; };
extern __shared__ __align__(1024) u8 shared[];
// With a swizzle, the two places share no bit: their sum equals their exclusive or, and the swizzle is linear over it.
__device__ __forceinline__ u32 join(u32 a, u32 b) { return SWIZZLED ? a ^ b : a + b; }
__device__ __forceinline__ u32 behind(u32 x, const Tile& p) { return SWIZZLED ? x ^ (x >> p.swizzle & p.mask) : x; }
template <bool SHARED>
__device__ __forceinline__ Row read_row(const u8* table, u32 row, int step, u32 pitch, const Tile& p) {
  Row found;
  if constexpr (AFFINE) {
    found.offset = (i64)(int)row * step;
    found.place = behind(row * pitch, p);
  } else if constexpr (SHARED) {
    const uint4 entry = ((const uint4*)table)[row];
    found.offset = (i64)((u64)entry.y << 32 | entry.x);
    found.place = entry.z;
  } else {
    u32 a, b, c, d;
    asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(table + 16 * (u64)row));
    found.offset = (i64)((u64)b << 32 | a);
    found.place = c;
  }
  return found;
}
template <u32 BYTES> __device__ __forceinline__ void store(u8* to, const Words<BYTES>& from) {
  if constexpr (BYTES == 16) *(uint4*)to = {from.at[0], from.at[1], from.at[2], from.at[3]};
  else if constexpr (BYTES == 8) *(uint2*)to = {from.at[0], from.at[1]};
  else if constexpr (BYTES == 4) *(u32*)to = from.at[0];
  else if constexpr (BYTES == 2) *(u16*)to = (u16)from.at[0];
  else *to = (u8)from.at[0];
}
// Copy from global to shared memory without registers.
template <u32 BYTES, bool CACHED> __device__ __forceinline__ void copy_async(u32 to, const u8* from) {
  if constexpr (BYTES == 16 && !CACHED) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES) : "memory");
  }
}
// The tables of the destination: its rows, and then the list. If STAGED, they follow the tile in shared memory.
struct Tables {
  const u8* memory; u32 begin, window;
  __device__ __forceinline__ Tables(const Tile& p, const Class& c)
      : memory(p.tables), begin(AFFINE ? c.list : c.destination.table), window(p.window) {}
  __device__ __forceinline__ void load(u32 size) const {
    for (u32 at = threadIdx.x * 16; at < size; at += blockDim.x * 16)
      copy_async<16, true>(shared_address(shared) + window + at, memory + begin + at);
  }
  __device__ __forceinline__ const u8* at(u32 offset) const {
    return STAGED ? shared + window + (offset - begin) : memory + offset;
  }
};
// Copy a word that extends past the source's end. This is a call, because such words are rare. (An asynchronous copy of
// a part of a word reads the whole word; compute-sanitizer reports this if the allocation ends with the source.)
__device__ __noinline__ void copy_end(u32 to, const u8* at, const u8* high) {
#pragma unroll 1
  for (; at < high; ++at, ++to) shared[to] = *at;
}
// Gather the low bytes of four registers into one.
__device__ __forceinline__ u32 gathered(u32 a, u32 b, u32 c, u32 d) {
  return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}
// The walk of a thread over the rows of a tile. EACH adjacent threads have vectors of different rows. A steady thread
// stays in one column of vectors; threads that are left over after whole rows have no rows.
template <u32 EACH> struct Walk {
  u32 row, along;
  __device__ __forceinline__ Walk(const Rows& r) {
    const u32 turn = threadIdx.x / EACH, first = turn * r.magic >> ROW_SHIFT;
    along = turn - first * r.lanes;
    row = first * EACH + threadIdx.x % EACH;
    if (STEADY && (first >= r.skip || along >= r.run)) row = r.count;
  }
  __device__ __forceinline__ void next(const Rows& r) {
    row += r.skip * EACH;
    if constexpr (!STEADY) {
      along += r.ahead;
      if (along >= r.lanes) { along -= r.lanes; row += EACH; }
    }
  }
};

// The column of the source that becomes this row of the destination: TOGETHER successive rows are columns that are STEP
// apart. The last columns, fewer than TOGETHER * STEP, keep their places.
__device__ __forceinline__ u32 column_of(u32 row, u32 count) {
  constexpr u32 BLOCK = TOGETHER * STEP;
  if (STEP == 1 || row >= count / BLOCK * BLOCK) return row;
  const u32 within = row % BLOCK;
  return row - within + within % TOGETHER * STEP + within / TOGETHER;
}
// The destination rows that a thread writes. It looks up the next row before it writes the present one, and the first
// row before the tile has arrived.
struct Written {
  Walk<TOGETHER> walk;
  Row next;
  __device__ __forceinline__ Written(const Tile& p, const Class& c) : walk(c.destination) {
    look<false>(p, c, p.tables + c.destination.table);
  }
  template <bool SHARED> __device__ __forceinline__ void look(const Tile& p, const Class& c, const u8* table) {
    const u32 row = AFFINE ? column_of(walk.row, c.destination.count) : min(walk.row, c.destination.count - 1);
    next = read_row<SHARED>(table, row, p.destination_step, p.destination_pitch, p);
  }
  __device__ __forceinline__ bool more(const Class& c) const { return walk.row < c.destination.count; }
  __device__ __forceinline__ Row take(const Tile& p, const Class& c, const Tables& tables) {
    const Row found = next;
    walk.next(c.destination);
    look<STAGED>(p, c, tables.at(c.destination.table));
    return found;
  }
};

// Load the source's rows to shared memory. inside: no word of the tile extends past the source's end. A word that
// starts before the source contains its first byte, so it lies in the same allocation, which consists of whole words.
__device__ __forceinline__ void load_rows(const Tile& p, const Class& c, i64 from, u32 misplaced, bool inside) {
  const u8* const base = p.source + from;
  const u32 window = ASYNC ? shared_address(shared) : 0;
  Walk<1> walk(c.source);
  while (walk.row < c.source.count) {
    Row rows[LOADS];
    u32 along[LOADS], place[LOADS];
    Loaded held[LOADS];
    bool live[LOADS];
#pragma unroll
    for (u32 u = 0; u < LOADS; ++u) {
      along[u] = walk.along * SOURCE_BYTES;
      live[u] = walk.row < c.source.count;
      const u32 row = AFFINE ? walk.row : min(walk.row, c.source.count - 1);
      rows[u] = read_row<false>(p.tables + c.source.table, row, p.source_step, p.source_pitch, p);
      walk.next(c.source);
    }
    await_previous();
    allow_next();
#pragma unroll
    for (u32 u = 0; u < LOADS; ++u) {
      const u8* at;
      if constexpr (SOURCE_SHIFT) {
        const u8* start = base + rows[u].offset;
        const u32 before = (u32)(u64)start % SOURCE_BYTES;
        live[u] = live[u] && along[u] < c.source_bytes + before;
        at = start - before + along[u];
        place[u] = (rows[u].place + misplaced) / SOURCE_BYTES * SOURCE_BYTES + along[u];
        if (!inside && live[u] && at + SOURCE_BYTES > p.high) {
          copy_end(place[u], at, p.high);
          live[u] = false;
        }
      } else {
        place[u] = join(rows[u].place, behind(along[u], p));
        const i64 offset = rows[u].offset + along[u];
        at = GLOBAL_SWIZZLED ? p.source + swizzled(from + offset, p.source_mask, p.source_swizzle) : base + offset;
      }
      if (live[u]) {
        if constexpr (ASYNC) copy_async<SOURCE_BYTES, THROUGH_L1>(window + place[u], at);
        else held[u].whole = *(const SOURCE_VECTOR*)at;
      }
    }
    if constexpr (!ASYNC) {
#pragma unroll
      for (u32 u = 0; u < LOADS; ++u)
        if (live[u]) {
#pragma unroll
          for (u32 i = 0; i < SOURCE_BYTES / PIECE_BYTES; ++i)
            *(PIECE*)(shared + join(place[u], p.pieces[i])) = held[u].part[i];
        }
    }
  }
}

// BYTES of shared memory at a 32-bit address. With a pointer, the compiler adds the start of shared memory to it.
template <u32 BYTES> __device__ __forceinline__ void read_shared(u32 (&to)[(BYTES + 3) / 4], u32 address) {
  if constexpr (BYTES == 16)
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(address) : "memory");
  else if constexpr (BYTES == 8)
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "r"(address) : "memory");
  else if constexpr (BYTES == 4) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(to[0]) : "r"(address) : "memory");
  else if constexpr (BYTES == 2) asm volatile("ld.shared.u16 %0, [%1];" : "=r"(to[0]) : "r"(address) : "memory");
  else asm volatile("ld.shared.u8 %0, [%1];" : "=r"(to[0]) : "r"(address) : "memory");
}
// COUNT elements in one vector; `at(v)` is the address of its element v.
template <u32 COUNT, class At> __device__ __forceinline__ Words<COUNT * ELEMENT_BYTES> gather(At at) {
  static_assert(ELEMENT_BYTES >= 4 || COUNT == 1 || COUNT * ELEMENT_BYTES % 4 == 0, "whole words, or one element");
  Words<COUNT * ELEMENT_BYTES> out;
  u32 element[COUNT][(ELEMENT_BYTES + 3) / 4];
#pragma unroll
  for (u32 v = 0; v < COUNT; ++v) read_shared<ELEMENT_BYTES>(element[v], at(v));
  if constexpr (ELEMENT_BYTES == 1 && COUNT >= 4) {
#pragma unroll
    for (u32 v = 0; v < COUNT; v += 4)
      out.at[v / 4] = gathered(element[v][0], element[v + 1][0], element[v + 2][0], element[v + 3][0]);
  } else if constexpr (ELEMENT_BYTES == 2 && COUNT >= 2) {
#pragma unroll
    for (u32 v = 0; v < COUNT; v += 2) out.at[v / 2] = __byte_perm(element[v][0], element[v + 1][0], 0x5410);
  } else {
#pragma unroll
    for (u32 v = 0; v < COUNT; ++v)
#pragma unroll
      for (u32 i = 0; i < sizeof(element[v]) / 4; ++i) out.at[v * (sizeof(element[v]) / 4) + i] = element[v][i];
  }
  return out;
}

// The place of element i of a run; each further vector of the run is moved by SKEW bytes.
__device__ __forceinline__ u32 place_along(u32 i, u32 pitch) { return i * pitch + i / PER_VECTOR * SKEW; }
// A vector whose elements begin at element i of a run, whose row is at place x.
__device__ __forceinline__ Stored gather_run(u32 x, u32 i, u32 pitch) {
  const u32 here = shared_address(shared) + x + place_along(i, pitch), moved = here + SKEW;
  const u32 whole = PER_VECTOR - i % PER_VECTOR;
  return gather<PER_VECTOR>([=](u32 v) { return (SKEW && v >= whole ? moved : here) + v * pitch; });
}
// A destination row of several runs, each of `size` elements at one pitch; `starts` lists their starts.
struct RunsOfRow {
  const int* starts; u32 size, magic;
  __device__ __forceinline__ u32 run_of(u32 i) const { return __umulhi(i, magic); }
  __device__ __forceinline__ u32 place(u32 i, u32 pitch) const {
    const u32 run = run_of(i);
    return starts[run] + place_along(i - run * size, pitch);
  }
  // PER_VECTOR elements from element i on, of the row at place x.
  __device__ __forceinline__ Stored vector(u32 x, u32 i, u32 pitch, const Tile& p) const {
    const u32 window = shared_address(shared), base = SWIZZLED ? 0 : window + x;
    const auto placed = [&](u32 place) { return SWIZZLED ? window + join(x, behind(place, p)) : place; };
    if constexpr (RUNS_PER_VECTOR == 3) {
      const u32 run = run_of(i), first = i - run * size, second = size - first, third = second + size;
      const u32 a = base + starts[run] + first * pitch, b = base + starts[run + 1] - second * pitch;
      const u32 c = base + starts[run + 2] - third * pitch;
      return gather<PER_VECTOR>([=](u32 v) { return placed((v < second ? a : v < third ? b : c) + v * pitch); });
    } else if constexpr (RUNS_PER_VECTOR > 3) {
      const u32 begin = base + i * pitch;
      return gather<PER_VECTOR>([=](u32 v) {
        const u32 run = run_of(i + v);
        return placed(begin + v * pitch + (starts[run] - run * size * pitch));
      });
    } else {
      const u32 run = run_of(i), first = i - run * size, left = size - first;
      const u32 here = base + starts[run] + place_along(first, pitch), there = base + starts[run + 1] - left * pitch;
      const u32 whole = PER_VECTOR - first % PER_VECTOR;
      return gather<PER_VECTOR>([=](u32 v) {
        const u32 own = SKEW && v >= whole ? here + SKEW : here;
        return placed((v < left ? own : there) + v * pitch);
      });
    }
  }
};

// Store a tile to a destination whose rows start between two words. first: no tile of these rows precedes this one.
__device__ __forceinline__ void store_shifted(
    const Tile& p, const Class& c, const Tables& tables, u8* target, bool first, u32 misplaced, Written rows) {
  const u32 pitch = PITCH ? PITCH : p.pitch;
  const RunsOfRow runs = {(const int*)tables.at(c.list), p.spread[0], p.spread[1]};
  // before: elements that precede the first tile in its grain. whole: words that are read whole start below this limit.
  const u32 before = first ? GRAIN / ELEMENT_BYTES : 0, own = c.own + before;
  const u32 whole = c.held < PER_VECTOR ? 0 : c.held - PER_VECTOR + 1;
#pragma unroll 1
  while (rows.more(c)) {
    const u32 along = rows.walk.along;
    const Row r = rows.take(p, c, tables);
    u8* const start = target + r.offset;
    const int phase = (int)((u32)(u64)start % GRAIN / ELEMENT_BYTES), index = (int)(along * PER_VECTOR) - phase;
    // All words of a grain belong to the tile that holds its first element.
    const int grain = (int)(along * DESTINATION_BYTES / GRAIN * (GRAIN / ELEMENT_BYTES)) - phase;
    if ((u32)grain + before >= own || (u32)index >= whole) continue;
    const u32 x = r.place + misplaced;
    Stored out;
    if constexpr (LISTED) out = runs.vector(x, index, pitch, p);
    else out = gather_run(x, index, pitch);
    store(start + index * (int)ELEMENT_BYTES, out);
  }
  // The elements before the first whole word of a row, and those after its last one: a thread has up to PART of them.
  constexpr u32 PARTS = PER_VECTOR / PART;
  const bool last = c.held == c.own;
  const u32 both = first && last;
  if (!first && !last) return;
#pragma unroll 1
  for (u32 n = threadIdx.x; n < (c.destination.count << both) * PARTS; n += blockDim.x) {
    const u32 side = n / PARTS;
    const bool tail = both ? side % 2 : last;
    const Row r = read_row<STAGED>(
        tables.at(c.destination.table), side >> both, p.destination_step, p.destination_pitch, p);
    u8* const start = target + r.offset;
    const u32 phase = (u32)(u64)start % GRAIN / ELEMENT_BYTES, head = (0 - phase) % PER_VECTOR;
    const u32 words = c.held < head ? 0 : (c.held - head) / PER_VECTOR * PER_VECTOR;
    // Elements before the first one have numbers that wrap below 0, and are above all others.
    const u32 i = head + (tail ? words : -PER_VECTOR) + n % PARTS * PART;
    const u32 grain = (i + phase) / (GRAIN / ELEMENT_BYTES) * (GRAIN / ELEMENT_BYTES);
    if (!first && grain < phase) continue;
    const u32 x = shared_address(shared) + r.place + misplaced;
    const auto at = [&](u32 j) { return x + (LISTED ? runs.place(i + j, pitch) : place_along(i + j, pitch)); };
    u8* const to = start + (int)(i * ELEMENT_BYTES);
    if (PART > 1 && i < c.own && PART <= c.own - i) {
      store(to, gather<PART>(at));
    } else {
#pragma unroll
      for (u32 j = 0; j < PART; ++j)
        if (i + j < c.own) store(to + j * ELEMENT_BYTES, gather<1>([&](u32) { return at(j); }));
    }
  }
}

// Transpose in registers: `words` hold COLUMNS columns of the source, and each becomes a row of the destination.
__device__ __forceinline__ void turn(const Across (&words)[PER_VECTOR], Stored (&out)[COLUMNS]) {
  if constexpr (ELEMENT_BYTES == 1) {
#pragma unroll
    for (u32 v = 0; v < PER_VECTOR; v += 4) {
      const u32 a = words[v].at[0], b = words[v + 1].at[0], c = words[v + 2].at[0], d = words[v + 3].at[0];
      const u32 low = __byte_perm(a, b, 0x5140), high = __byte_perm(a, b, 0x7362);
      const u32 other = __byte_perm(c, d, 0x5140), last = __byte_perm(c, d, 0x7362);
      out[0].at[v / 4] = __byte_perm(low, other, 0x5410);
      out[1].at[v / 4] = __byte_perm(low, other, 0x7632);
      out[2 % COLUMNS].at[v / 4] = __byte_perm(high, last, 0x5410);
      out[3 % COLUMNS].at[v / 4] = __byte_perm(high, last, 0x7632);
    }
  } else if constexpr (ELEMENT_BYTES == 2) {
#pragma unroll
    for (u32 v = 0; v < PER_VECTOR; v += 2)
#pragma unroll
      for (u32 j = 0; j < COLUMNS; ++j)
        out[j].at[v / 2] = __byte_perm(words[v].at[j / 2], words[v + 1].at[j / 2], j % 2 ? 0x7632 : 0x5410);
  } else {
    constexpr u32 EACH = ELEMENT_BYTES / 4;
#pragma unroll
    for (u32 v = 0; v < PER_VECTOR; ++v)
#pragma unroll
      for (u32 j = 0; j < COLUMNS; ++j)
#pragma unroll
        for (u32 i = 0; i < EACH; ++i) out[j].at[v * EACH + i] = words[v].at[j * EACH + i];
  }
}

// Store a tile to a destination in whole vectors.
__device__ __forceinline__ void store_vectors(
    const Tile& p, const Class& c, const Tables& tables, i64 to, u32 misplaced, Written rows, u32 steady) {
  const u16* const list = (const u16*)tables.at(c.list);
  const u32 pitch = PITCH ? PITCH : p.pitch, window = shared_address(shared);
  const RunsOfRow runs = {(const int*)list, p.spread[0], p.spread[1]};
  Places places;
#pragma unroll 2
  while (rows.more(c)) {
    const u32 along = rows.walk.along;
    const Row r = rows.take(p, c, tables);
    u32 x = r.place + misplaced;
    if constexpr (LISTED && !RUNS_PER_VECTOR) {
#pragma unroll
      for (u32 i = 0; i < 2 * PER_VECTOR / sizeof(PLACES); ++i)
        places.part[i] = ((const PLACES*)(list + along * PER_VECTOR))[i];
    } else if constexpr (!LISTED) {
      x = join(x, STEADY ? steady : list[along]);
    }
    const auto at = [&](u32 v) { return join(x, LISTED ? places.at[v] : PITCH ? v * PITCH : p.spread[v]); };
    Stored out[COLUMNS];
    if constexpr (RUNS_PER_VECTOR) {
      out[0] = runs.vector(x, along * PER_VECTOR, pitch, p);
    } else if constexpr (COLUMNS == 1) {
      out[0] = gather<PER_VECTOR>([&](u32 v) { return window + at(v); });
    } else {
      Across words[PER_VECTOR];
#pragma unroll
      for (u32 v = 0; v < PER_VECTOR; ++v) read_shared<COLUMNS * ELEMENT_BYTES>(words[v].at, window + at(v));
      turn(words, out);
    }
#pragma unroll
    for (u32 j = 0; j < COLUMNS; ++j) {
      i64 offset = to + r.offset + along * DESTINATION_BYTES + j * p.column;
      if (GLOBAL_SWIZZLED) offset = swizzled(offset, p.destination_mask, p.destination_swizzle);
      store(p.destination + offset, out[j]);
    }
  }
}

// The index of a tile. Neighbouring tiles along the mode `cut` read parts of the same sectors of the source, but
// `before` other tiles lie between them. If tiles are grouped, GROUP neighbours come first, then the next `before`.
__device__ __forceinline__ u32 tile_of_block(u32 block, const Tile& p) {
  if constexpr (!GROUPED) return block;
  const u32 outer = divided(block, p.whole.magic, p.whole.shift), inside = block - outer * p.whole.size;
  const u32 group = divided(inside, p.group.magic, p.group.shift), member = inside - group * p.group.size;
  const u32 first = group * GROUP, width = min(p.cut - first, GROUP);
  const u32 row = width == GROUP ? member / GROUP : member / width;
  return outer * p.whole.size + (first + member - row * width) * p.before + row;
}

extern "C" __global__ void __launch_bounds__(THREADS) copy_tile(const __grid_constant__ Tile p) {
  u32 rest = tile_of_block(blockIdx.x, p), combination = 0, skipped = 0;
  i64 from = p.source_start, to = p.destination_start;
#pragma unroll 1
  for (u32 m = 0; m < p.rank; ++m) {
    const Digit& d = p.digits[m];
    const u32 quotient = divided(rest, d.magic, d.shift), digit = rest - quotient * d.size;
    rest = quotient;
    from += (i64)digit * d.source;
    to += (i64)digit * d.destination;
    const u32 bit = d.bit;
    combination |= digit == d.size - 1 ? bit : 0;
    skipped |= m == p.run_digit ? digit : 0;
  }
  const Class& c = p.classes[combination];
  const u8* const base = p.source + from;
  const u32 misplaced = SOURCE_SHIFT ? (u32)(u64)base % LINE : 0;
  const bool inside = !SOURCE_SHIFT || base + p.reach + 2 * SOURCE_BYTES <= p.high;
  const Tables tables(p, c);
  if constexpr (STAGED) tables.load(p.staged);
  // Threads that look up their rows compare each word with the end: otherwise their loads come in bursts, and most
  // copies take longer, up to 1.38 times as long (NVIDIA H200, 14 copies).
  if (AFFINE && inside) load_rows(p, c, from, misplaced, true);
  else load_rows(p, c, from, misplaced, inside);
  const Written rows(p, c);
  const bool looked = STEADY && !LISTED && !DESTINATION_SHIFT && rows.more(c);
  const u32 steady = looked ? ((const u16*)(p.tables + c.list))[rows.walk.along] : 0;
  if (ASYNC || STAGED) asm volatile("cp.async.wait_all;" ::: "memory");
  await_previous();
  allow_next();
  __syncthreads();
  if constexpr (DESTINATION_SHIFT)
    store_shifted(p, c, tables, p.destination + to, skipped == 0, misplaced, rows);
  else
    store_vectors(p, c, tables, to, misplaced, rows, steady);
}
"""


def magic(size: int) -> tuple[int, int]:
    """Return (magic, shift) for a division by `size`: n / size = (high(n * magic) + n) >> shift, for n below 2**31.

    >>> magic(7)
    (613566757, 3)
    """
    shift = (size - 1).bit_length()
    return ((((1 << shift) - size) << 32) // size + 1) & 0xFFFFFFFF, shift


def row_magic(run: int) -> int:
    """Return the factor that replaces a division: number / run = number * magic >> ROW_SHIFT, for thread indices."""
    return (1 << ROW_SHIFT) // run + 1


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
    runs_per_vector: int = 0,
    steady: bool = False,
    affine: bool = False,
    passes: int = 4,
    columns: int = 1,
    pitch: int = 0,
    skew: int = 0,
    together: int = 1,
    step: int = 1,
    grouped: bool = False,
    staged: bool = False,
) -> KernelSource:
    """Make the kernel that transposes tiles. Widths of vectors, and of pieces (parts of a vector that one access writes
    to shared memory), are in bytes.

    shifts: whether rows of a side may start between two words. swizzled: whether shared memory has a swizzle; offsets
    of rows and of units then have no common bit. global_swizzled: whether the offsets of a side have a swizzle. steady:
    whether each thread stays in its column of vectors. affine: whether rows have constant strides instead of a table.
    passes: the number of vectors that a thread loads; it loads up to 8 of them together. listed: whether the offsets of
    a destination vector in shared memory have no fixed distances; a table lists them, or the starts of the runs of a
    row. runs_per_vector: the maximum number of such runs that a vector has elements of; 0 if the table has each offset.
    columns: number of source columns that a thread reads together, and of destination rows that it writes. pitch: bytes
    between elements of a destination vector in shared memory, as a compile-time constant; 0 makes it a parameter. skew:
    the extra bytes between successive vectors of a run, if threads compute offsets along runs. together, step:
    adjacent threads write vectors of this number of destination rows, which are columns of the source that are `step`
    apart. grouped: whether blocks take tiles in groups of GROUP, see `tile_of_block`. staged: whether each block copies
    the destination's tables to shared memory, where they follow the tile, because L1 holds little beside it: a lookup
    in L2 takes as long as a load of the source.
    """
    asynchronous = piece_bytes == source_bytes >= ASYNCHRONOUS
    most = 8 if asynchronous else max(1, min(8, 64 // source_bytes))
    loads = -(-passes // -(-passes // most))
    if asynchronous and affine and shifts[0]:  # No thread waits for a load, so one at a time is as fast.
        loads = 1
    constants = {
        "THREADS": MAX_THREADS,
        "ROW_SHIFT": ROW_SHIFT,
        "LOADS": loads,
        "ASYNC": int(asynchronous),
        "THROUGH_L1": int(not any(shifts) and element_bytes >= MIN_THROUGH_L1),
        "LINE": LINE_BYTES,
        "GROUP": GROUP,
        "GROUPED": int(grouped),
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
        "RUNS_PER_VECTOR": runs_per_vector,
        "COLUMNS": columns,
        "PITCH": pitch,
        "SKEW": skew,
        "TOGETHER": together,
        "STEP": step,
        "STAGED": int(staged),
        "MAX_DIGITS": MAX_DIGITS,
        "MAX_CLASSES": MAX_CLASSES,
    }
    kernel = make_kernel(
        "copy_tile",
        vector_types(element_bytes, source_bytes, destination_bytes, piece_bytes) + DIGITS + _TILE,
        constants,
        shared_bytes,
        ("plan",),
        prelude=TYPES + AWAIT,
        awaits=True,
    )
    # With fewer passes, smaller elements, which threads assemble in registers, take up to 16 % longer.
    return replace(kernel, threads=threads, fast_compile=element_bytes >= 4)


def vector_types(element: int, source: int, destination: int, piece: int) -> str:
    names = {
        "ELEMENT": element,
        "SOURCE_VECTOR": source,
        "PIECE": piece,
        "PLACES": min(16, 2 * destination // element),
    }
    return "".join(f"typedef {_TYPES[size]} {name};\n" for name, size in names.items())
