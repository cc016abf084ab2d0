"""The kernel `scaled_tile` for copies that compute: 128 x 128 elements per CTA, 8 x 8 per thread.

A thread's 8 rows are adjacent, and so are its 8 columns: eight lanes read 128 bytes of a row, and a column of eight
elements is one or two words of a transposed output. Shared memory contains an output in lines of 128 elements. An XOR
permutes the 16-byte units of a line, so that bank conflicts are at most 2-way on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cute_py.gpu.kernels.numbers import KIND_BITS
from cute_py.gpu.kernels.scaled import computing_kernel
from cute_py.gpu.kernels.scaled_output import TILE, Cover, OutputKind
from cute_py.gpu.kernels.source import KernelSource

RESIDENT: Final = 4
"""Number of CTAs per SM that the compiler plans for, for elements of 16 bits. With 4, MXFP8 along rows and columns at
once takes 98 to 99 % of the time without this bound. With 5, registers spill (NVIDIA H200)."""

GROUP: Final = 4
"""Number of tiles, one below the other, that run together if all outputs are transposed: lines are then written in
longer parts. Measured on NVIDIA H200, 15 copies: 0.997 to 1.012 times as fast. With an output that is not transposed,
copies take 1.02 to 1.04 of the time."""

BOUNDS: Final = {16: f"THREADS, {RESIDENT}"}
"""Launch bounds, by the bits of a source element: its 64 elements and the arithmetic fit in 64 registers."""

_TILE: Final = r"""
extern __shared__ __align__(128) u8 shared[];
struct Place { u32 row, column, warp_row, warp_column, group, lane; };
// Byte of a unit of 8 elements of a line in shared memory.
template <class O> __device__ __forceinline__ u32 unit_at(u32 line, u32 byte) {
  constexpr u32 LINE = 16 * bits_of(O::KIND), MASK = (LINE / 16 < 8 ? LINE / 16 : 8) - 1;
  const u32 turn = (O::TRANSPOSED ? line >> 3 : (line >> 3 & 1) * 4) & MASK;
  return line * LINE + ((byte / 16) ^ turn) * 16 + byte % 16;
}
template <class O> __device__ __forceinline__ void put_unit(u32 line, u32 unit, const Codes<O::KIND>& c) {
  constexpr u32 BITS = bits_of(O::KIND), WORDS = BITS / 4;
  if constexpr (WORDS == 1) *(u32*)(shared + unit_at<O>(line, unit * BITS)) = c.w[0];
  else if constexpr (WORDS == 2) *(uint2*)(shared + unit_at<O>(line, unit * BITS)) = make_uint2(c.w[0], c.w[1]);
  else {
#pragma unroll
    for (u32 i = 0; i < WORDS; i += 4)
      *(uint4*)(shared + unit_at<O>(line, unit * BITS + 4 * i)) =
          make_uint4(c.w[i], c.w[i + 1], c.w[i + 2], c.w[i + 3]);
  }
}
// Put 8 x 8 elements with NaN, infinities or other unusual numbers; reads the elements again.
template <class O> __device__ __noinline__ void put_careful(const Scaled& p, u32 row, u32 column, const u32* factors) {
  constexpr u32 BITS = bits_of(O::KIND);
#pragma unroll 1
  for (u32 line = 0; line < 8; ++line) {
    Codes<O::KIND> c = {};
#pragma unroll 1
    for (u32 i = 0; i < 8; ++i) {
      const u32 q = O::TRANSPOSED ? i : line, j = O::TRANSPOSED ? line : i, m = row + q, k = column + j;
      if (m >= p.m || k >= p.k) continue;
      Eight e = {};
      e.w[0] = element(source_at(p, m, k));
      const u32 x = exact(e, 0);
      const u32 factor = factors[O::BR == 1 ? q : O::BC == 1 ? j : 0];
      const u32 y = O::RULE == NONE ? x : careful<O::RULE == AMAX_CUTE>(x, factor);
      put<O::KIND>(c, i, rounded<O::KIND>(y));
    }
    if (O::TRANSPOSED) put_unit<O>(column % 128 + line, row % 128 / 8, c);
    else put_unit<O>(row % 128 + line, column % 128 / 8, c);
  }
}
// Load the first `count` elements of 8 lines of 8 elements each; elements of lines from `rows` on, and the rest, are 0.
__device__ __noinline__ void load_ends(u32* w, const u8* at, i64 pitch, u32 rows, u32 count) {
#pragma unroll 1
  for (u32 q = 0; q < 8; ++q) load_end<RAWS>(w + q * RAWS, at + q * pitch, 0, q < rows ? count : 0, 0);
}
__device__ __forceinline__ u32 half_of(u32 packed, u32 i) { return half_peak(i % 2 ? packed >> 16 : packed & 0xFFFF); }
// The largest magnitudes of the blocks of a thread's 8 x 8 elements: 8 rows, 8 columns, or one block. If several warps
// share a block along one axis (`Grid::MET`), `exchange` holds the largest magnitudes of the parts.
template <class O> __device__ __forceinline__ void find_peaks(
    const Eight (&e)[8], const Place& at, u32 (&peak)[O::BR == 1 || O::BC == 1 ? 8 : 1], u32* exchange) {
  if constexpr (O::BR == 1) {
#pragma unroll
    for (u32 q = 0; q < 8; ++q) {
      peak[q] = folded(most_of(e[q]));
#pragma unroll
      for (u32 s = 1; s < 8 && s < O::BC / 8; s *= 2) peak[q] = larger(peak[q], __shfl_xor_sync(~0u, peak[q], s));
    }
    if constexpr (O::BC > 64) {
      const u32 line = at.warp_row * 32 + at.group * 8;
      if (at.lane == 0) {
#pragma unroll
        for (u32 q = 0; q < 8; ++q) exchange[at.warp_column * 128 + line + q] = peak[q];
      }
    }
  } else if constexpr (O::BC == 1) {
    u32 packed[RAWS];
#pragma unroll
    for (u32 i = 0; i < RAWS; ++i) {
      packed[i] = magnitude(e[0].w[i]);
#pragma unroll
      for (u32 q = 1; q < 8; ++q) packed[i] = most(packed[i], magnitude(e[q].w[i]));
#pragma unroll
      for (u32 s = 1; s < 4 && s < O::BR / 8; s *= 2)
        packed[i] = most(packed[i], __shfl_xor_sync(~0u, packed[i], 8 * s));
    }
#pragma unroll
    for (u32 i = 0; i < 8; ++i) peak[i] = WIDE ? half_of(packed[i / 2], i) : packed[i % RAWS];
    if constexpr (O::BR > 32) {
      const u32 line = at.warp_column * 64 + at.lane * 8;
      if (at.group == 0) {
#pragma unroll
        for (u32 i = 0; i < 8; ++i) exchange[at.warp_row * 128 + line + i] = peak[i];
      }
    }
  } else {
    u32 packed = most_of(e[0]);
#pragma unroll
    for (u32 q = 1; q < 8; ++q) packed = most(packed, most_of(e[q]));
#pragma unroll
    for (u32 s = 1; s < 8 && s < O::BC / 8; s *= 2) packed = most(packed, __shfl_xor_sync(~0u, packed, s));
#pragma unroll
    for (u32 s = 1; s < 4 && s < O::BR / 8; s *= 2) packed = most(packed, __shfl_xor_sync(~0u, packed, 8 * s));
    peak[0] = folded(packed);
    if constexpr (O::BR > 32) {
      if (threadIdx.x % 32 == 0) exchange[threadIdx.x / 32] = peak[0];
      __syncthreads();
#pragma unroll
      for (u32 w = 0; w < 8; ++w) peak[0] = larger(peak[0], exchange[w]);
    }
  }
}
// The scales of a tile: they go to shared memory, and from there to their places.
template <class O> struct Grid {
  enum : u32 {
    SIDES = O::BR == 1 || O::BC == 1, ROWS = TILE_SIZE / O::BR, COLUMNS = TILE_SIZE / O::BC,
    LINES = O::BC == 1 ? COLUMNS : ROWS, EACH = O::BC == 1 ? ROWS : COLUMNS, MET = SIDES && (O::BC > 64 || O::BR > 32)
  };
};
// Scales of blocks that several warps share: one thread computes each from the parts, and `kept` holds the factor of
// its elements.
template <class O> __device__ __forceinline__ void meet_scales(
    const Output& o, const u32* exchange, u32* grid, u32* kept) {
  using G = Grid<O>;
  __syncthreads();
  if (threadIdx.x < G::LINES * G::EACH) {
    const u32 n = threadIdx.x, line = n / G::EACH, each = n % G::EACH;
    constexpr u32 PARTS = O::BR == 1 ? 2 : O::BR / 32;
    u32 peak = 0;
#pragma unroll
    for (u32 w = 0; w < PARTS; ++w) peak = larger(peak, exchange[(each * PARTS + w) * 128 + line]);
    const Scale s = scale_of<O>(peak, o.totals);
    if constexpr (O::SCALE_BYTES == 1) ((u8*)grid)[n] = (u8)s.stored;
    else grid[n] = s.stored;
    kept[n] = as_bits(s.factor);
    kept[256 + n] = peak;
    if (O::RULE == AMAX_CUTE) kept[512 + n] = as_bits(__fdiv_rn(1.0f, s.factor));
  }
  __syncthreads();
}
template <class O> __device__ __forceinline__ void put_scales(
    const Scale (&s)[O::BR == 1 || O::BC == 1 ? 8 : 1], const Place& at, u32* grid) {
  using G = Grid<O>;
  const u32 row = at.row % 128, column = at.column % 128;
#pragma unroll
  for (u32 i = 0; i < (G::SIDES ? 8 : 1); ++i) {
    const u32 r = O::BR == 1 ? row + i : row, c = O::BC == 1 ? column + i : column;
    const bool owner = (O::BR == 1 || r % O::BR == 0) && (O::BC == 1 || c % O::BC == 0);
    const u32 line = O::BC == 1 ? c : r / O::BR, each = O::BC == 1 ? r / O::BR : c / O::BC;
    if (owner) {
      if constexpr (O::SCALE_BYTES == 1) ((u8*)grid)[line * G::EACH + each] = (u8)s[i].stored;
      else grid[line * G::EACH + each] = s[i].stored;
    }
  }
}
// Store a float32 scale. In most orders its sector also has scales of other tiles: L2 is to keep the sector until those
// tiles have stored theirs. A copy with transposed blocks of 128 x 1 takes 0.97 of the time (NVIDIA H200).
__device__ __forceinline__ void store_lasting(u32* at, u32 scale) {
  u64 policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("st.global.L2::cache_hint.u32 [%0], %1, %2;" ::"l"(at), "r"(scale), "l"(policy) : "memory");
}
template <class O> __device__ __forceinline__ void store_scales(
    const Scaled& p, const Output& o, u32 top, u32 left, const u32* grid) {
  using G = Grid<O>;
  constexpr u32 PER = O::WORDS ? 4 : 1, PARTS = G::EACH / PER;
#pragma unroll 1
  for (u32 n = threadIdx.x; n < G::LINES * PARTS; n += THREADS) {
    const u32 number = n / PARTS, part = n % PARTS;
    const u32 line = O::SPLIT && G::LINES == 128 ? number % 4 * 32 + number / 4 : number;
    const u32 row = top + (O::BC == 1 ? part * PER * O::BR : line * O::BR);
    const u32 column = left + (O::BC == 1 ? line : part * PER * O::BC);
    const u32 rows = row / O::BR, columns = column / O::BC;
    if (!row_below(rows, o.scale_rows) || !column_below(columns, o.scale_columns)) continue;
    u8* const at = scale_at<O>(o, row, column);
    u32 found = O::SCALE_BYTES == 4 ? grid[line * G::EACH + part]
                : O::WORDS ? grid[(line * G::EACH + part * 4) / 4] : ((const u8*)grid)[line * G::EACH + part];
#pragma unroll
    for (u32 i = 0; i < PER; ++i) {
      const bool used = row_below(row + (O::BC == 1 ? i * O::BR : 0), p.m) &&
                        column_below(column + (O::BC == 1 ? 0 : i * O::BC), p.k);
      if (!used) found = PER == 1 ? o.fill : (found & ~(255u << 8 * i)) | o.fill << 8 * i;
    }
    if constexpr (O::WORDS) *(u32*)at = found;
    else if constexpr (O::SCALE_BYTES == 4) store_lasting((u32*)at, found);
    else store_scale<O>(at, found);
  }
}
template <class O> __device__ __forceinline__ void write_tile(
    const Eight (&e)[8], const Scaled& p, const Output& o, const Place& at, u32 top, u32 left) {
  constexpr u32 LINE = 16 * bits_of(O::KIND), COUNT = O::BR == 1 || O::BC == 1 ? 8 : 1;
  constexpr bool DIVIDED = O::RULE == AMAX_CUTE;
  u32* const exchange = (u32*)(shared + TILE_SIZE * LINE);
  u32* const grid = exchange + 512;
  float factor[COUNT], inverse[COUNT];
  bool usual = true;
  if constexpr (O::RULE != NONE) {
    u32 peak[COUNT];
    u32* const kept = grid + 1024;
    find_peaks<O>(e, at, peak, exchange);
    Scale s[COUNT];
    if constexpr (Grid<O>::MET) meet_scales<O>(o, exchange, grid, kept);
#pragma unroll
    for (u32 i = 0; i < COUNT; ++i) {
      if constexpr (Grid<O>::MET) {
        constexpr u32 EACH = Grid<O>::EACH;
        const u32 n = O::BR == 1 ? at.row % 128 + i : (at.column % 128 + i) * EACH + at.row % 128 / O::BR;
        factor[i] = as_float(kept[n]);
        peak[i] = kept[256 + n];
        inverse[i] = DIVIDED ? as_float(kept[512 + n]) : 0.0f;
      } else {
        s[i] = scale_of<O>(peak[i], o.totals);
        factor[i] = s[i].factor;
        inverse[i] = DIVIDED ? __fdiv_rn(1.0f, factor[i]) : 0.0f;
      }
      const bool finite = DIVIDED ? factor[i] > 1e-25f && factor[i] < 1e25f : as_bits(factor[i]) < INFINITE;
      usual = usual && peak[i] < INFINITE && finite;
    }
    if constexpr (!Grid<O>::MET) put_scales<O>(s, at, grid);
  } else {
#pragma unroll
    for (u32 q = 0; q < 8; ++q) usual &= !special<O::KIND>(e[q]);
    factor[0] = 1.0f;
  }
  if (usual) {
#pragma unroll
    for (u32 line = 0; line < 8; ++line) {
      float y[8];
#pragma unroll
      for (u32 i = 0; i < 8; ++i) {
        const u32 q = O::TRANSPOSED ? i : line, j = O::TRANSPOSED ? line : i;
        const float x = value(e[q], j);
        const u32 f = COUNT == 1 ? 0 : O::BR == 1 ? q : j;
        y[i] = O::RULE == NONE ? x : DIVIDED ? quotient<WIDE>(x, factor[f], inverse[f]) : x * factor[f];
      }
      const Codes<O::KIND> c = coded<O::KIND>(y);
      if (O::TRANSPOSED) put_unit<O>(at.column % 128 + line, at.row % 128 / 8, c);
      else put_unit<O>(at.row % 128 + line, at.column % 128 / 8, c);
    }
  } else {
    u32 factors[8];
#pragma unroll
    for (u32 i = 0; i < 8; ++i) factors[i] = O::RULE == NONE ? 0 : as_bits(factor[i % COUNT]);
    put_careful<O>(p, at.row, at.column, factors);
  }
  __syncthreads();
  if constexpr (O::RULE != NONE) store_scales<O>(p, o, top, left, grid);
  const u32 begin = O::TRANSPOSED ? left : top, along = O::TRANSPOSED ? top : left;
  const u32 bytes = (u32)(((u64)o.along * bits_of(O::KIND) + 7) / 8), from = (u32)((u64)along * bits_of(O::KIND) / 8);
#pragma unroll
  for (u32 n = 0; n < TILE_SIZE * LINE / 16 / THREADS; ++n) {
    const u32 unit = n * THREADS + threadIdx.x, line = unit / (LINE / 16), byte = unit % (LINE / 16) * 16;
    if (O::TRANSPOSED ? !column_below(begin + line, o.lines) || !row_below(from + byte, bytes)
                      : !row_below(begin + line, o.lines) || !column_below(from + byte, bytes))
      continue;
    const uint4 v = *(const uint4*)(shared + unit_at<O>(line, byte));
    const u32 w[4] = {v.x, v.y, v.z, v.w};
    store_vector<4, O::VECTOR>(o.data + (i64)(begin + line) * o.pitch + from + byte, w, bytes - from - byte);
  }
}

extern "C" __global__ void __launch_bounds__(@bounds@) scaled_tile(const __grid_constant__ Scaled p) {
  // GROUP tiles, one below the other, come first, then those beside them.
  const u32 group = divided(blockIdx.x / GROUP, p.magic, p.shift), member = blockIdx.x - group * (GROUP * p.across);
  const u32 height = min(p.down - group * GROUP, GROUP), over = height == GROUP ? member / GROUP : member / height;
  const u32 down = group * GROUP + member - over * height;
  const u32 top = down * TILE_SIZE, left = over * TILE_SIZE, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const u32 row = top + warp / 2 * 32 + lane / 8 * 8, column = left + warp % 2 * 64 + lane % 8 * 8;
  const Place at = {row, column, warp / 2, warp % 2, lane / 8, lane % 8};
  Eight e[8];
  await_previous();
  allow_next();
  const u8* const from = source_at(p, row, column);
  if constexpr (ALIGNED) {
    const u32 rows = column < p.k ? p.m - min(row, p.m) : 0;
    if (!ENDS || column + 8 <= p.k) {
#pragma unroll
      for (u32 q = 0; q < 8; ++q) {
        u32 w[RAWS] = {};
        if ((FULL_ROWS && FULL_COLUMNS) || q < rows)
          load_whole(w, from + q * p.pitch);
#pragma unroll
        for (u32 i = 0; i < RAWS; ++i) e[q].w[i] = w[i];
      }
    } else {
      u32 w[8 * RAWS];
      load_ends(w, from, p.pitch, rows, p.k - min(column, p.k));
#pragma unroll
      for (u32 i = 0; i < 8 * RAWS; ++i) e[i / RAWS].w[i % RAWS] = w[i];
    }
  } else {
#pragma unroll
    for (u32 q = 0; q < 8; ++q) {
      Eight one[1];
      load_eights(one, source_at(p, row + q, column), column, row + q < p.m ? p.k : 0, 0);
      e[q] = one[0];
    }
  }
  @tile@
}
"""


def scaled_tile(source: str, outputs: Sequence[OutputKind], *, aligned: bool, cover: Cover) -> KernelSource:
    """Make the kernel `scaled_tile`."""
    calls = "\n  __syncthreads();\n  ".join(
        f"write_tile<O{i}>(e, p, p.out[{i}], at, top, left);" for i in range(len(outputs))
    )
    shared = max(TILE * 2 * KIND_BITS[kind.kind] * 8 for kind in outputs) + 2048 + 4096 + 3072
    group = GROUP if all(kind.transposed for kind in outputs) else 1
    constants = {"THREADS": 256, "ALIGNED": int(aligned), "INDEX_BYTES": 8, "GROUP": group}
    text = _TILE.replace("@tile@", calls).replace("@bounds@", BOUNDS.get(KIND_BITS[source], "THREADS"))
    return computing_kernel("scaled_tile", text, source, outputs, constants, shared, cover=cover)
