"""Kernels that compute between the load and the store: casts, and conversions to and from block-scaled formats.

    scaled_rows    vectors of 16 elements of a row; the lanes of a block find its largest magnitude by shuffles. A warp
                   that dequantises has vectors of 8 elements of one row
    scaled_whole   a CTA keeps a row in registers; one scale per row
    scaled_largest the largest magnitude of a matrix, for a scale of the whole tensor
    scaled_tile    a CTA has 128 x 128 elements, a thread 8 x 8; scale blocks extend along rows, columns or both; the
                   elements of an output are in shared memory before they are stored, transposed or not

Each kernel reads its source once, and may write several outputs. Sizes, strides and addresses are parameters; the
properties of an output (`O`) are compile-time constants, and so is whether the grid covers the matrix without a
remainder (`Cover`): if the source and the outputs are aligned too, vectors are loaded and stored without comparisons
with sizes. The threads that hold a block compute its scale, and write the scale to the position that the digits of `O`
give. They also write the padding of the scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cute_py.gpu.kernels.numbers import KINDS, NUMBERS
from cute_py.gpu.kernels.scaled_output import ANY, TILE, Cover, OutputKind, RowsTile
from cute_py.gpu.kernels.source import AWAIT, TYPES, KernelSource, make_kernel
from cute_py.targets import MULTIPROCESSORS

ROWS_THREADS: Final = 256
"""Threads of a CTA of `scaled_rows`; half as many if it quantises a small matrix to e2m1, and if it dequantises."""
ROWS_RESIDENT: Final = 6
"""Number of CTAs of `ROWS_THREADS` threads per SM that the compiler plans for in `scaled_rows`. With 4, NVFP4 takes
1.03 to 1.05 times as long, and with 8, a scale per 1 x 128 elements takes 1.2 to 1.3 times as long, because registers
spill (NVIDIA H200, three shapes)."""

_PLAN: Final = r"""
struct Output {
  u8* data; u8* scales; i64 pitch;
  u32 lines, along, scale_rows, scale_columns, fill, row_step, column_step, spare;
  Totals totals;
};
struct Scaled {
  const u8* source; const u8* scales; const u8* rows; const u8* into; u64* record;
  i64 pitch;
  u32 m, k, source_rows, target_rows, across, magic, shift, masked;
  float total;
  u32 down, row_step, column_step;
  Output out[OUTPUTS];
};
__device__ __forceinline__ u32 divided(u32 n, u32 magic, u32 shift) { return (__umulhi(n, magic) + n) >> shift; }
// Whether a row or a column is below a limit. If the grid covers the matrix exactly, each one is.
__device__ __forceinline__ bool row_below(u32 row, u32 limit) { return FULL_ROWS || row < limit; }
__device__ __forceinline__ bool column_below(u32 column, u32 limit) { return FULL_COLUMNS || column < limit; }
// Whether a vector at column k of a row is loaded; limit: 0 for a row that is not read.
__device__ __forceinline__ bool is_read(u32 k, u32 limit) { return (FULL_ROWS && FULL_COLUMNS) || k < limit; }
__device__ __forceinline__ i64 index_at(const u8* list, u32 at) {
  return INDEX_BYTES == 8 ? ((const i64*)list)[at] : (i64)((const int*)list)[at];
}
// Record an entry of an index that is not a row number, and its value; the first such entry remains.
__device__ __noinline__ void refuse_row(u64* record, u32 at, i64 found) {
  atomicMin(record, (u64)at << 32 | (u32)(int)found);
}
// Volatile, so that the compiler does not sink a load below a branch: all loads of a thread are issued first. Not
// ld.global.nc: ptxas may move it above the wait for the previous kernel, which may have written the data.
__device__ __forceinline__ uint4 load_four(const u8* at) {
  uint4 v;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
  return v;
}
__device__ __forceinline__ uint2 load_two(const u8* at) {
  uint2 v;
  asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(at));
  return v;
}
__device__ __forceinline__ u32 load_one(const u8* at) {
  u32 v;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(at));
  return v;
}
__device__ __forceinline__ u32 element(const u8* at) {
  if constexpr (bits_of(SOURCE) == 32) return *(const u32*)at;
  else if constexpr (bits_of(SOURCE) == 16) return *(const u16*)at;
  else return *at;
}
// Load the elements of a vector that extends past the last column; this is a call, and w is a copy of the words. The
// last byte of an odd number of e2m1 elements has padding, which becomes 0: a copy that keeps elements stores the byte.
template <u32 WORDS> __device__ __noinline__ void load_end(u32* w, const u8* at, u32 k, u32 limit, u32 pattern) {
  constexpr u32 BITS = bits_of(SOURCE), UNIT = BITS < 8 ? 8 : BITS, PER = 32 / UNIT, EACH = UNIT / BITS;
#pragma unroll 1
  for (u32 i = 0; i < WORDS; ++i) w[i] = pattern;
#pragma unroll 1
  for (u32 i = 0; i < WORDS * PER && k + i * EACH < limit; ++i)
    w[i / PER] |= element(at + i * (UNIT / 8)) << i % PER * UNIT % 32;
  if (EACH == 2 && k < limit && (limit - k) % 2) w[(limit - k) / 8] &= ~(15u << (limit - k) % 8 * 4);
}
template <u32 WORDS> __device__ __noinline__ void store_end(u8* at, const u32* w, u32 left) {
#pragma unroll 1
  for (u32 i = 0; i < 4 * WORDS && i < left; ++i) at[i] = (u8)(w[i / 4] >> i % 4 * 8);
}
template <u32 WORDS> __device__ __forceinline__ void load_whole(u32 (&w)[WORDS], const u8* at) {
  if constexpr (WORDS % 4 == 0) {
#pragma unroll
    for (u32 i = 0; i < WORDS; i += 4) {
      const uint4 v = load_four(at + 4 * i);
      w[i] = v.x; w[i + 1] = v.y; w[i + 2] = v.z; w[i + 3] = v.w;
    }
  } else if constexpr (WORDS == 2) {
    const uint2 v = load_two(at);
    w[0] = v.x; w[1] = v.y;
  } else w[0] = load_one(at);
}
// Load words of elements from column k, which is at `at`, up to `limit`. pattern: the content of a masked row.
template <u32 WORDS> __device__ __forceinline__ void load_vector(
    u32 (&w)[WORDS], const u8* at, u32 k, u32 limit, u32 pattern) {
  constexpr u32 BITS = bits_of(SOURCE), COUNT = WORDS * 32 / BITS;
  if constexpr (ALIGNED && !ENDS) {
#pragma unroll
    for (u32 i = 0; i < WORDS; ++i) w[i] = pattern;
    if (is_read(k, limit)) load_whole(w, at);
  } else if constexpr (ALIGNED) {
    if (k + COUNT <= limit) {
      load_whole(w, at);
      return;
    }
    u32 copied[WORDS];
    load_end<WORDS>(copied, at, k, limit, pattern);
#pragma unroll
    for (u32 i = 0; i < WORDS; ++i) w[i] = copied[i];
  } else {
    constexpr u32 UNIT = BITS < 8 ? 8 : BITS, PER = 32 / UNIT, EACH = UNIT / BITS;
#pragma unroll
    for (u32 i = 0; i < WORDS; ++i) {
      w[i] = pattern;
#pragma unroll
      for (u32 j = 0; j < PER; ++j)
        if (k + (i * PER + j) * EACH < limit) w[i] |= element(at + (i * PER + j) * (UNIT / 8)) << j * UNIT % 32;
    }
  }
}
template <u32 COUNT> __device__ __forceinline__ void load_eights(
    Eight (&e)[COUNT], const u8* at, u32 k, u32 limit, u32 pattern) {
  u32 w[COUNT * RAWS];
  load_vector(w, at, k, limit, pattern);
#pragma unroll
  for (u32 i = 0; i < COUNT * RAWS; ++i) e[i / RAWS].w[i % RAWS] = w[i];
}
template <u32 WORDS> __device__ __forceinline__ void store_whole(u8* at, const u32 (&w)[WORDS]) {
  if constexpr (WORDS % 4 == 0) {
#pragma unroll
    for (u32 i = 0; i < WORDS; i += 4) *(uint4*)(at + 4 * i) = make_uint4(w[i], w[i + 1], w[i + 2], w[i + 3]);
  } else if constexpr (WORDS == 2) *(uint2*)at = make_uint2(w[0], w[1]);
  else *(u32*)at = w[0];
}
// Store words of codes to a line that has `left` bytes left.
template <u32 WORDS, bool VECTOR>
__device__ __forceinline__ void store_vector(u8* at, const u32 (&w)[WORDS], u32 left) {
  if constexpr (VECTOR && !ENDS) store_whole(at, w);
  else if constexpr (VECTOR) {
    if (left >= WORDS * 4) {
      store_whole(at, w);
      return;
    }
    u32 copied[WORDS];
#pragma unroll
    for (u32 i = 0; i < WORDS; ++i) copied[i] = w[i];
    store_end<WORDS>(at, copied, left);
  } else {
#pragma unroll
    for (u32 i = 0; i < WORDS; ++i)
#pragma unroll
      for (u32 j = 0; j < 4; ++j)
        if (4 * i + j < left) at[4 * i + j] = (u8)(w[i] >> 8 * j);
  }
}
// The address of an element of the source.
__device__ __forceinline__ const u8* source_at(const Scaled& p, i64 row, u32 column) {
  return p.source + row * p.pitch + (u64)column * bits_of(SOURCE) / 8;
}
template <class O> __device__ __forceinline__ u8* scale_at(const Output& o, u32 row, u32 column) {
  return o.scales + (u64)(O::row(row, o.row_step) + O::column(column, o.column_step)) * O::SCALE_BYTES;
}
template <class O> __device__ __forceinline__ void store_scale(u8* at, u32 stored) {
  if constexpr (O::SCALE_BYTES == 4) *(u32*)at = stored;
  else *at = (u8)stored;
}
// Whether the cast of some element needs more than the hardware's conversion.
template <u32 D> __device__ __forceinline__ bool special(const Eight& e) {
  if constexpr (SOURCE == E2M1 || of_six_bits(SOURCE)) return false;
  else if constexpr (SOURCE == E4M3 || SOURCE == E5M2) {
    u32 found = 0;
#pragma unroll
    for (u32 i = 0; i < RAWS; ++i) found |= (e.w[i] & 0x7F7F7F7Fu) + (SOURCE == E4M3 ? 0x01010101u : 0x04040404u);
    return found & 0x80808080u;
  } else {
    constexpr u32 most = D == BF16 ? 0x7F7F0000u : D == F16 ? 0x477FE000u : D == F32 ? INFINITE - 1 : INFINITE;
    return folded(most_of(e)) > most;
  }
}
// Convert eight elements to another type, times their factors: none, one for all, or eight. inside: elements before the
// padding.
template <u32 D, u32 FACTORS> __device__ __forceinline__ Codes<D> converted(
    const Eight& e, const u32 (&factor)[8], bool usual, u32 inside) {
  Codes<D> c = {};
  if constexpr (SOURCE == RAW || D == RAW) {
#pragma unroll
    for (u32 i = 0; i < RAWS && i < bits_of(D) / 4; ++i) c.w[i] = e.w[i];
  } else if (usual && !special<D>(e)) {
    if constexpr (SOURCE == E2M1 && FACTORS == 1 && bits_of(D) == 16) return looked_up<D>(e.w[0], as_float(factor[0]));
    float x[8];
    values(e, x);
    if (FACTORS) {
#pragma unroll
      for (u32 i = 0; i < 8; ++i) x[i] *= as_float(factor[i]);
    }
    c = coded<D>(x);
  } else {
    const Eight copied = e;
    u32 factors[8];
#pragma unroll
    for (u32 i = 0; i < 8; ++i) factors[i] = FACTORS ? factor[i] : 0;
    Codes<D> made = {};
    convert_carefully<D, FACTORS != 0>(&copied, factors, min(inside, 8u), &made);
    c = made;
  }
  return c;
}
"""

_ROWS: Final = r"""
// Columns of a warp, rows of a CTA per DOWN, and vectors of a lane.
enum : u32 { WARP_COLUMNS = LANES * VECTOR, SLOTS = THREADS / 32 / ACROSS * (32 / LANES), ITEMS = DOWN * COLUMNS };
// Whether a thread computes the addresses of its outputs before its loads arrive, not before its stores. Copies of 768
// rows in a graph then take 0.97 of the time, but those of 1 to 16 rows with CTAs of 128 threads 1.08 (NVIDIA H200).
enum : u32 { EARLY = ITEMS == 1 && THREADS > 128 };
// Kept scales that are copied apart from the elements, four at a time: a thread has one word.
enum : u32 {
  KEPT_WORDS = KEEPS && !ROWS && !INTO && In::WORDS && O0::WORDS,
  WORDS_OF_ROW = KEPT_WORDS ? ACROSS * WARP_COLUMNS * COLUMNS / (4 * In::BC) : 1
};
static_assert(!KEPT_WORDS || SLOTS * DOWN * WORDS_OF_ROW <= THREADS, "one word for a thread");
__device__ __forceinline__ u32 row_of(u32 down, u32 slot) {
  if constexpr (SPLIT) {
    constexpr u32 ROWS = SLOTS * DOWN, PARTS = 128 / ROWS;
    return down / PARTS * 128 + down % PARTS * (ROWS / 4) + slot % 4 * 32 + slot / 4;
  }
  return down * (SLOTS * DOWN) + slot;
}
// Set the elements of a vector at column k that are beyond the last column to 0.
template <u32 COUNT> __device__ __forceinline__ void clear_end(Eight (&e)[COUNT], u32 k, u32 limit) {
  constexpr u32 BITS = bits_of(SOURCE), EACH = 32 / BITS;
#pragma unroll
  for (u32 i = 0; i < COUNT * RAWS; ++i) {
    const u32 left = limit - min(k + i * EACH, limit);
    if (left < EACH) e[i / RAWS].w[i % RAWS] &= (1u << left * BITS) - 1;
  }
}
// The addresses of a vector of an output, and of its scale.
struct Target { u8* codes; u8* scale; };
template <class O> __device__ __forceinline__ Target target_of(const Output& o, u32 line, u32 k) {
  return {o.data + (i64)line * o.pitch + (u64)k * bits_of(O::KIND) / 8, scale_at<O>(o, line, k)};
}
// Compute addresses here; the compiler would compute them before the stores.
__device__ __forceinline__ void compute_now(Target& t) { asm volatile("" : "+l"(t.codes), "+l"(t.scale)); }
template <class O> __device__ __forceinline__ void store_codes(
    const Output& o, const Codes<O::KIND> (&c)[2], u32 line, u32 k, u8* at) {
  constexpr u32 BITS = bits_of(O::KIND), WORDS = BITS / 4;
  if (!row_below(line, o.lines) || !column_below(k, o.along)) return;
  u32 w[2 * WORDS];
#pragma unroll
  for (u32 i = 0; i < 2 * WORDS; ++i) w[i] = c[i / WORDS].w[i % WORDS];
  store_vector<2 * WORDS, O::VECTOR>(at, w, ((o.along - k) * BITS + 7) / 8);
}
// Write 16 elements to an output. row: row of the copy; kept: their stored scale, if scales are kept; line: line of the
// destination, ~0 for none.
template <class O> __device__ __forceinline__ void write_vector(
    const Eight (&e)[2], u32 kept, const Scaled& p, const Output& o, u32 row, u32 line, u32 k, Target at) {
  const u32 inside = row_below(row, p.m) && column_below(k, p.k) ? p.k - k : 0;
  Codes<O::KIND> c[2];
  if constexpr (O::RULE == KEEP) {
#pragma unroll
    for (u32 i = 0; i < 2 * RAWS; ++i) c[i / RAWS].w[i % RAWS] = e[i / RAWS].w[i % RAWS];
  }
  if constexpr (O::RULE != NONE && !(O::RULE == KEEP && KEPT_WORDS)) {
    constexpr u32 GROUP = O::BC / 16;
    const u32 block = k / O::BC;
    const bool used = row_below(row, p.m) && column_below(block * O::BC, p.k);
    const bool only_padding = !FULL_ROWS && !__any_sync(~0u, line < o.lines);
    Scale s = {kept, 1.0f};
    if (O::RULE != KEEP && !only_padding) {
      u32 peak = folded(most(most_of(e[0]), most_of(e[1])));
#pragma unroll
      for (u32 i = 1; i < GROUP; i *= 2) peak = larger(peak, __shfl_xor_sync(~0u, peak, i));
      s = quantised_block<O>(c, e, peak, o.totals, inside);
    }
    const u32 stored = used ? s.stored : o.fill;
    const bool there = row_below(line, o.scale_rows) && column_below(block, o.scale_columns) && (!INTO || used);
    if (there && k / 16 % GROUP == 0) store_scale<O>(at.scale, stored);
    if (only_padding) return;
  } else if constexpr (O::RULE == NONE) {
    const u32 none[8] = {};
#pragma unroll
    for (u32 i = 0; i < 2; ++i)
      c[i] = converted<O::KIND, 0>(e[i], none, true, inside > 8 * i ? inside - 8 * i : 0);
  }
  store_codes<O>(o, c, line, k, at.codes);
}
// Four kept scales: the word that a thread loads, and its place. Blocks beyond the matrix are padding.
struct KeptWord { u32 row, column, word; };
__device__ __forceinline__ KeptWord load_word(const Scaled& p, u32 down, u32 left) {
  // Adjacent threads write adjacent words: of lines 32 apart in 32_4_4, otherwise of a line.
  constexpr u32 TALL = SLOTS * DOWN;
  const u32 slot = SPLIT ? threadIdx.x % TALL : threadIdx.x / WORDS_OF_ROW;
  const u32 number = SPLIT ? threadIdx.x / TALL : threadIdx.x % WORDS_OF_ROW;
  KeptWord w = {row_of(down, slot), left + number * (4 * In::BC), 0};
  if (slot >= TALL || number >= WORDS_OF_ROW) w.row = ~0u;
  if (w.row < p.m && w.column < p.k)
    w.word = load_one(p.scales + In::row(w.row, p.row_step) + In::column(w.column, p.column_step));
  return w;
}
template <class O> __device__ __forceinline__ void store_word(const Scaled& p, const Output& o, KeptWord w) {
  if (w.row >= o.scale_rows || w.column / O::BC >= o.scale_columns) return;
#pragma unroll
  for (u32 i = 0; i < 4; ++i)
    if (w.row >= p.m || w.column + i * O::BC >= p.k) w.word = (w.word & ~(255u << 8 * i)) | o.fill << 8 * i;
  *(u32*)scale_at<O>(o, w.row, w.column) = w.word;
}
// The stored scale of an element of the source.
__device__ __forceinline__ u32 stored_scale(const Scaled& p, u32 row, u32 column) {
  const u32 place = In::row(row, p.row_step) + In::column(column, p.column_step);
  return In::SCALE_BYTES == 4 ? ((const u32*)p.scales)[place] : p.scales[place];
}
__device__ __forceinline__ u32 factor_of(const Scaled& p, u32 stored) {
  const u32 value = scale_value<In::SCALE_BYTES, In::POWER>(stored);
  if (In::LEVELS == 1) return value;
  const float y = as_float(value) * p.total;
  return y == y ? as_bits(y) : careful<false>(value, as_bits(p.total));
}
// Write 8 elements times their scale, or times the scale of each column.
template <class O> __device__ __forceinline__ void write_numbers(
    const Eight (&e)[1], u32 stored, const Scaled& p, const Output& o, u32 row, u32 line, u32 k, Target at) {
  constexpr u32 BITS = bits_of(O::KIND);
  if (!row_below(row, p.m) || !column_below(k, p.k)) return;
  u32 factor[8];
  bool usual = true;
#pragma unroll
  for (u32 j = 0; j < 8; ++j) {
    if (In::BC == 1) factor[j] = factor_of(p, stored_scale(p, row, min(k + j, p.k - 1)));
    else factor[j] = j ? factor[0] : factor_of(p, stored);
    if (j == 0 || In::BC == 1) {
      const float by = as_float(factor[j] & MAGNITUDE);
      usual = usual && by < 1e37f && (O::KIND == F32 || by * In::largest() < O::largest());
    }
  }
  const Codes<O::KIND> c = converted<O::KIND, In::BC == 1 ? 8 : 1>(e[0], factor, usual, 8);
  if (row_below(line, o.lines) && column_below(k, o.along))
    store_vector<BITS / 4, O::VECTOR>(at.codes, c.w, ((o.along - k) * BITS + 7) / 8);
}

extern "C" __global__ void __launch_bounds__(THREADS, CTAS) scaled_rows(const __grid_constant__ Scaled p) {
  const u32 down = divided(blockIdx.x, p.magic, p.shift), over = blockIdx.x - down * p.across;
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, slot = warp / ACROSS * (32 / LANES) + lane / LANES;
  const u32 left = over * (ACROSS * WARP_COLUMNS * COLUMNS);
  const u32 first = left + warp % ACROSS * WARP_COLUMNS + lane % LANES * VECTOR;
  Eight held[ITEMS][VECTOR / 8];
  u32 stored[ITEMS];
  u32 row[DOWN], line[DOWN], taken[DOWN];
  KeptWord word = {};
  await_previous();
  if constexpr (KEPT_WORDS) word = load_word(p, down, left);
  // All entries of an index are loaded before the first is used: a thread waits for them once.
  i64 chosen[DOWN], to[DOWN];
#pragma unroll
  for (u32 r = 0; r < DOWN; ++r) {
    row[r] = line[r] = row_of(down, slot + r * SLOTS);
    chosen[r] = ROWS && row_below(row[r], p.m) ? index_at(p.rows, row[r]) : row[r];
    to[r] = INTO && row[r] < p.m ? index_at(p.into, row[r]) : -1;
  }
#pragma unroll
  for (u32 r = 0; r < DOWN; ++r) {
    u32 limit = row_below(row[r], p.m) ? p.k : 0, pattern = 0;
    const i64 from = chosen[r];
    if constexpr (ROWS) {
      if (limit && (u64)from >= p.source_rows) {
        if (from != -1 && first == 0) refuse_row(p.record, row[r], from);
        limit = 0;
        pattern = p.masked;
      }
    }
    if constexpr (INTO) {
      const bool there = (u64)to[r] < p.target_rows;
      if (!there && to[r] != -1 && first == 0) refuse_row(p.record, row[r], to[r]);
      line[r] = there ? (u32)to[r] : ~0u;
    }
    taken[r] = limit ? (u32)from : ~0u;
#pragma unroll
    for (u32 c = 0; c < COLUMNS; ++c) {
      const u32 k = first + c * (ACROSS * WARP_COLUMNS), item = r * COLUMNS + c;
      load_eights(held[item], source_at(p, from, k), k, limit, k < p.k ? pattern : 0);
      // `load_end` clears the padding in the last byte of aligned rows.
      constexpr bool CLEARS = KEEPS && SOURCE == E2M1 && !ALIGNED;
      if constexpr ((ROWS || CLEARS) && ENDS) {
        if ((pattern || CLEARS) && k < p.k) clear_end(held[item], k, p.k);
      }
      if constexpr (KEEPS ? !KEPT_WORDS : SCALED_SOURCE && In::BC != 1)
        stored[item] = is_read(k, limit) ? stored_scale(p, taken[r], k) : 0;
    }
  }
  Target early[OUTPUTS];
  if constexpr (EARLY) {
    @targets@
  }
  // After the loads: graphs of copies of few rows then take less time than with this before them. Only in the CTAs that
  // run last: the GPU launches a CTA in 0.6 ns, but takes 1.2 ns for each that allows the next kernel (NVIDIA H200).
  if (blockIdx.x + LAST >= gridDim.x) allow_next();
  if constexpr (KEPT_WORDS) store_word<O0>(p, p.out[0], word);
#pragma unroll
  for (u32 r = 0; r < DOWN; ++r) {
#pragma unroll
    for (u32 c = 0; c < COLUMNS; ++c) {
      const u32 k = first + c * (ACROSS * WARP_COLUMNS);
      const Eight (&e)[VECTOR / 8] = held[r * COLUMNS + c];
      @rows@
    }
  }
}
"""

_WHOLE: Final = r"""
template <class O> __device__ __forceinline__ void write_whole(
    const Eight (&e)[PIECES], const Scaled& p, const Output& o, u32 peak, u32 row) {
  const Scale s = scale_of<O>(peak, o.totals);
  if (threadIdx.x == 0 && row_below(row, o.scale_rows))
    store_scale<O>(scale_at<O>(o, row, 0), row_below(row, p.m) ? s.stored : o.fill);
  if (!row_below(row, o.lines)) return;
  const float inverse = O::RULE == AMAX_CUTE ? __fdiv_rn(1.0f, s.factor) : 0.0f;
  const bool usual = are_usual<O>(peak, s.factor);
  u8* const line = o.data + (i64)row * o.pitch;
#pragma unroll
  for (u32 i = 0; i < PIECES; ++i) {
    const u32 k = (i * THREADS + threadIdx.x) * 8;
    if (!column_below(k, o.along)) continue;
    const u32 inside = row_below(row, p.m) && column_below(k, p.k) ? p.k - k : 0;
    const Eight one[1] = {e[i]};
    Codes<O::KIND> c[1];
    if (usual) quantise_usual<O>(c, one, s.factor, inverse);
    else quantise_carefully<O>(c, one, peak, o.totals, inside);
    store_vector<bits_of(O::KIND) / 4, O::VECTOR>(
        line + (u64)k * bits_of(O::KIND) / 8, c[0].w, ((o.along - k) * bits_of(O::KIND) + 7) / 8);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) scaled_whole(const __grid_constant__ Scaled p) {
  __shared__ u32 peaks[32];
  const u32 row = blockIdx.x;
  Eight held[PIECES];
  await_previous();
  allow_next();
#pragma unroll
  for (u32 i = 0; i < PIECES; ++i) {
    Eight one[1];
    const u32 k = (i * THREADS + threadIdx.x) * 8;
    load_eights(one, source_at(p, row, k), k, row_below(row, p.m) ? p.k : 0, 0);
    held[i] = one[0];
  }
  u32 packed = most_of(held[0]);
#pragma unroll
  for (u32 i = 1; i < PIECES; ++i) packed = most(packed, most_of(held[i]));
  u32 peak = folded(packed);
#pragma unroll
  for (u32 s = 16; s; s /= 2) peak = larger(peak, __shfl_xor_sync(~0u, peak, s));
  if (threadIdx.x % 32 == 0) peaks[threadIdx.x / 32] = peak;
  __syncthreads();
  peak = peaks[threadIdx.x % 32 < THREADS / 32 ? threadIdx.x % 32 : 0];
#pragma unroll
  for (u32 s = 16; s; s /= 2) peak = larger(peak, __shfl_xor_sync(~0u, peak, s));
  @whole@
}
"""

_LARGEST: Final = r"""
extern "C" __global__ void __launch_bounds__(THREADS) scaled_largest(const __grid_constant__ Scaled p) {
  u32 found = 0;
  await_previous();
  allow_next();
  for (u32 row = blockIdx.x; row < p.m; row += gridDim.x) {
    for (u32 k = threadIdx.x * 16; k < p.k; k += THREADS * 16) {
      Eight e[2];
      load_eights(e, source_at(p, row, k), k, p.k, 0);
      const u32 all = folded(most(most_of(e[0]), most_of(e[1])));
      if (all <= INFINITE) found = larger(found, all);
      else {
#pragma unroll
        for (u32 i = 0; i < 16; ++i) {
          const u32 one = exact(e[i / 8], i % 8) & MAGNITUDE;
          found = larger(found, one <= INFINITE ? one : 0);
        }
      }
    }
  }
#pragma unroll
  for (u32 s = 16; s; s /= 2) found = larger(found, __shfl_xor_sync(~0u, found, s));
  if (threadIdx.x % 32 == 0 && found) atomicMax((u32*)p.record, found);
}
"""


def computing_kernel(
    name: str, body: str, source: str, outputs: Sequence[OutputKind], constants: dict[str, int], shared: int = 0,
    into: OutputKind | None = None, cover: Cover = ANY,
) -> KernelSource:  # fmt: skip
    """Make a kernel from a body, the arithmetic functions, the constants of the outputs, and other constants."""
    names = "".join(kind.text(f"O{i}") for i, kind in enumerate(outputs))
    names += (into or OutputKind(source)).text("In")
    first = {"SOURCE": KINDS[source], "OUTPUTS": len(outputs), "TILE_SIZE": TILE}
    first |= {"ENDS": int(cover.ends), "FULL_ROWS": int(cover.rows), "FULL_COLUMNS": int(cover.columns), **constants}
    return make_kernel(
        name, NUMBERS + _PLAN + names + body, first, shared, ("plan",), prelude=TYPES + AWAIT, awaits=True
    )


def scaled_rows(
    source: str,
    outputs: Sequence[OutputKind],
    tile: RowsTile,
    *,
    aligned: bool,
    cover: Cover,
    rows: bool = False,
    into: bool = False,
    index_bytes: int = 8,
    scaled_source: OutputKind | None = None,
) -> KernelSource:
    """Make the kernel `scaled_rows`.

    rows, into: whether an index with entries of `index_bytes` bytes selects the rows of the source, and of the
    destination. scaled_source: the constants of a source with scales, which is dequantised.
    """
    dequantises = scaled_source is not None and outputs[0].rule != "keep"
    write = "write_numbers" if dequantises else "write_vector"
    targets = "\n    ".join(
        f"compute_now(early[{i}] = target_of<O{i}>(p.out[{i}], line[0], first));" for i in range(len(outputs))
    )
    calls = "\n      ".join(
        f"{write}<O{i}>(e, stored[r * COLUMNS + c], p, p.out[{i}], row[r], line[r], k, "
        f"EARLY ? early[{i}] : target_of<O{i}>(p.out[{i}], line[r], k));"
        for i in range(len(outputs))
    )
    resident = ROWS_RESIDENT * ROWS_THREADS // tile.threads
    constants = {
        "THREADS": tile.threads, "CTAS": resident, "LAST": resident * MULTIPROCESSORS, "LANES": tile.lanes,
        "VECTOR": tile.vector, "ACROSS": tile.across, "COLUMNS": tile.columns, "DOWN": tile.down,
        "ALIGNED": int(aligned), "SPLIT": int(tile.split), "ROWS": int(rows), "INTO": int(into),
        "INDEX_BYTES": index_bytes, "SCALED_SOURCE": int(scaled_source is not None),
        "KEEPS": int(scaled_source is not None and not dequantises),
    }  # fmt: skip
    return computing_kernel(
        "scaled_rows",
        _ROWS.replace("@targets@", targets).replace("@rows@", calls),
        source,
        outputs,
        constants,
        into=scaled_source,
        cover=cover,
    )


def scaled_whole(
    source: str, outputs: Sequence[OutputKind], *, threads: int, pieces: int, aligned: bool, cover: Cover
) -> KernelSource:
    """Make the kernel `scaled_whole`, where a CTA processes a whole row, with `pieces` times 8 elements per
    thread."""
    calls = "\n  ".join(f"write_whole<O{i}>(held, p, p.out[{i}], peak, row);" for i in range(len(outputs)))
    constants = {"THREADS": threads, "PIECES": pieces, "ALIGNED": int(aligned), "INDEX_BYTES": 8}
    return computing_kernel("scaled_whole", _WHOLE.replace("@whole@", calls), source, outputs, constants, cover=cover)


def scaled_largest(source: str, *, aligned: bool) -> KernelSource:
    """Make a kernel that writes the largest magnitude of a matrix to `record` as float32 bits; it ignores NaN."""
    constants = {"THREADS": 256, "ALIGNED": int(aligned), "INDEX_BYTES": 8}
    return computing_kernel("scaled_largest", _LARGEST, source, [OutputKind(source)], constants)
