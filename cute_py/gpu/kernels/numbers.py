"""Device code for the arithmetic between load and store: casts, scales of blocks, and products of elements and scales.

A thread keeps eight elements of a row in registers, in the type that it loaded. Each function returns the same bits as
`cute_py.formats` does for the same values. The conversion instructions are used where they round in the same way.
Blocks and vectors with a NaN or an infinity take a separate path, `careful`.

e2m1 has no conversion before sm_100. With a = |y|, its code is the integer nearest to min(2a, a + 2, a/2 + 4), ties to
even: three sums with 1.5 * 2^23 round once each, and the smallest of them has the code in its last bits (`nibble`). If
the factor is a power of two and the elements are bfloat16, their products are exact in bfloat16, and each instruction
processes two elements (`nibbles_of_pairs`).

e2m3 and e3m2 have no conversion before sm_100 either. A code of e2m3 has the bits of the code of e4m3 for the value
times 2^-6, and a code of e3m2 has the bits of e5m2 for the value times 2^-12, apart from the position of the sign.
"""

from __future__ import annotations

from typing import Final

KINDS: Final = {
    "float32": 0, "bf16": 1, "f16": 2, "e4m3": 3, "e5m2": 4, "e2m1": 5, "raw": 6, "e2m3": 7, "e3m2": 8,
}  # fmt: skip
"""Element types of the device code; raw: bytes that are copied unchanged."""
KIND_BITS: Final = {
    "float32": 32, "bf16": 16, "f16": 16, "e4m3": 8, "e5m2": 8, "e2m1": 4, "raw": 8, "e2m3": 8, "e3m2": 8,
}  # fmt: skip
"""Bits of an element in memory. An element of e2m3 or e3m2 has a byte, whose two highest bits are zero."""
RULES: Final = {
    "none": 0, "floor": 1, "ceil": 2, "even": 3, "rceil": 4, "amax cute": 5, "amax torchao": 6, "amax deepgemm": 7,
    "nvfp4 torchao": 8, "nvfp4 te": 9, "nvfp4 flashinfer": 10, "keep": 11,
}  # fmt: skip
"""Rule, with its variant if it has variants -> number in the device code. keep: elements and scales stay unchanged."""

NUMBERS: Final = r"""
typedef long long i64;
enum : u32 { F32, BF16, F16, E4M3, E5M2, E2M1, RAW, E2M3, E3M2 };
enum : u32 { NONE, FLOOR, CEIL, EVEN, RCEIL, AMAX_CUTE, AMAX_TORCHAO, AMAX_DEEPGEMM, NV_TORCHAO, NV_TE, NV_FLASHINFER,
             KEEP };
enum : u32 { INFINITE = 0x7F800000u, MAGNITUDE = 0x7FFFFFFFu, QUIET = 0x400000u, NOT_A_NUMBER = 0x7FC00000u };
__device__ constexpr u32 bits_of(u32 t) { return t == F32 ? 32 : t == BF16 || t == F16 ? 16 : t == E2M1 ? 4 : 8; }
__device__ constexpr bool of_six_bits(u32 t) { return t == E2M3 || t == E3M2; }
enum : u32 { RAWS = bits_of(SOURCE) / 4, WIDE = bits_of(SOURCE) == 16 };
struct Eight { u32 w[RAWS]; };
template <u32 D> struct Codes { u32 w[bits_of(D) / 4]; };
__device__ __forceinline__ u32 larger(u32 a, u32 b) { return a > b ? a : b; }
__device__ __forceinline__ float as_float(u32 x) { return __uint_as_float(x); }
__device__ __forceinline__ u32 as_bits(float x) { return __float_as_uint(x); }
__device__ __forceinline__ bool is_nan(u32 x) { return (x & MAGNITUDE) > INFINITE; }
__device__ __forceinline__ float half_value(u32 h) {
  float f;
  asm("{.reg .b16 l, h;\n\tmov.b32 {l, h}, %1;\n\tcvt.f32.f16 %0, l;}" : "=f"(f) : "r"(h));
  return f;
}
// Convert two elements of 8 bits, or the elements i and i + 4 of a word of 4-bit elements, to f16.
__device__ __forceinline__ u32 halves_of_pair(u32 pair) {
  u32 h;
  if constexpr (of_six_bits(SOURCE)) pair = (pair & 0x1F1Fu) | (pair & 0x2020u) << 2;
  if constexpr (SOURCE == E5M2 || SOURCE == E3M2) asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(h) : "h"((u16)pair));
  else asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(h) : "h"((u16)pair));
  if constexpr (of_six_bits(SOURCE)) {
    const u32 power = SOURCE == E2M3 ? 0x54005400u : 0x6C006C00u;  // 2^6, 2^12
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(h) : "r"(h), "r"(power));
  }
  return h;
}
__device__ __forceinline__ u32 halves_of_nibbles(u32 w, u32 i) {
  const u32 magnitude = i < 3 ? w << (9 - 4 * i) : w >> 3, sign = w << (12 - 4 * i);
  u32 h = (magnitude & 0x0E000E00u) | (sign & 0x80008000u), scaled;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(scaled) : "r"(h), "r"(0x74007400u));
  return scaled;
}
// The value of element i; exact except for the payload of a NaN.
__device__ __forceinline__ float value(const Eight& e, u32 i) {
  if constexpr (SOURCE == F32) return as_float(e.w[i]);
  else if constexpr (SOURCE == BF16) return as_float(i % 2 ? e.w[i / 2] & 0xFFFF0000u : e.w[i / 2] << 16);
  else if constexpr (SOURCE == F16) return half_value(i % 2 ? e.w[i / 2] >> 16 : e.w[i / 2]);
  else if constexpr (SOURCE == E2M1) return half_value(halves_of_nibbles(e.w[0], i % 4) >> i / 4 * 16);
  else return half_value(halves_of_pair(e.w[i / 4] >> i % 4 / 2 * 16) >> i % 2 * 16);
}
__device__ __forceinline__ void values(const Eight& e, float (&x)[8]) {
#pragma unroll
  for (u32 i = 0; i < 8; ++i) x[i] = value(e, i);
}
// Element i as the bits of a float32, with the payload that the host keeps.
__device__ __noinline__ u32 exact_half(u32 h) {
  const u32 m = h & 0x7FFF;
  if (m > 0x7C00) return (h & 0x8000) << 16 | INFINITE | (m & 0x3FF) << 13;
  return as_bits(half_value(h));
}
__device__ __forceinline__ u32 exact(const Eight& e, u32 i) {
  if constexpr (SOURCE == F32) return e.w[i];
  else if constexpr (SOURCE == BF16) return i % 2 ? e.w[i / 2] & 0xFFFF0000u : e.w[i / 2] << 16;
  else if constexpr (SOURCE == F16) return exact_half(i % 2 ? e.w[i / 2] >> 16 : e.w[i / 2] & 0xFFFF);
  else if constexpr (SOURCE == E2M1) {
    const u32 h = halves_of_nibbles(e.w[0], i % 4);
    return as_bits(half_value(i < 4 ? h : h >> 16));
  } else {
    const u32 c = e.w[i / 4] >> (i % 4 * 8) & 255, m = c & 127;
    if (SOURCE == E4M3 ? m == 127 : SOURCE == E5M2 && m > 124) return (c & 128) << 24 | NOT_A_NUMBER;
    return as_bits(half_value(halves_of_pair(c)));
  }
}
// The largest magnitude of elements: packed pairs for 16-bit elements, single numbers for 32-bit elements.
__device__ __forceinline__ u32 magnitude(u32 w) { return w & (WIDE ? 0x7FFF7FFFu : MAGNITUDE); }
__device__ __forceinline__ u32 most(u32 a, u32 b) {
  if constexpr (WIDE) {
    u32 m;
    asm("max.u16x2 %0, %1, %2;" : "=r"(m) : "r"(a), "r"(b));
    return m;
  } else return larger(a, b);
}
__device__ __forceinline__ u32 most_of(const Eight& e) {
  u32 m = magnitude(e.w[0]);
#pragma unroll
  for (u32 i = 1; i < RAWS; ++i) m = most(m, magnitude(e.w[i]));
  return m;
}
__device__ __forceinline__ u32 half_peak(u32 m) {
  if constexpr (SOURCE == BF16) return m << 16;
  else return exact_half(m);
}
// The bits of that magnitude as float32.
__device__ __forceinline__ u32 folded(u32 m) {
  if constexpr (WIDE) return half_peak(larger(m >> 16, m & 0xFFFF));
  else return m;
}
// e2m1 of a magnitude: the low 3 bits of the result; the other bits are 0x4B400000. CLAMPED: a may be NaN, 7 or more.
template <bool CLAMPED> __device__ __forceinline__ u32 nibble(float a) {
  constexpr float M = 12582912.0f;
  if (CLAMPED) a = fminf(a, 6.0f);
  const u32 p = as_bits(__fmaf_rn(a, 2.0f, M)), q = as_bits(a + (M + 2.0f)), r = as_bits(__fmaf_rn(a, 0.5f, M + 4.0f));
  return min(min(p, q), r);  // the order of positive floats, as one instruction
}
// Four bytes of a and b, one per nibble of `which`: 0 to 3 are the bytes of a, 4 to 7 those of b, and 8 more gives
// eight copies of the byte's sign bit, which __byte_perm does not support.
__device__ __forceinline__ u32 bytes_of(u32 a, u32 b, u32 which) {
  u32 d;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(which));
  return d;
}
// Signs of eight elements at the positions of their nibbles.
__device__ __forceinline__ u32 nibble_signs(const Eight& e) {
  if constexpr (WIDE) {
    const u32 a = bytes_of(e.w[0], e.w[1], 0xFBD9), b = bytes_of(e.w[2 % RAWS], e.w[3 % RAWS], 0xFBD9);
    return (bytes_of(a, b, 0x5410) & 0x08080808u) | (bytes_of(a, b, 0x7632) & 0x80808080u);
  } else {
    u32 found = 0;
#pragma unroll
    for (u32 i = 0; i < 8; ++i) found |= (e.w[i % RAWS] >> 31) << (4 * i + 3);
    return found;
  }
}
// The codes of eight magnitudes, without signs. (The compiler would put an array of the eight sums in local memory.)
template <bool CLAMPED> __device__ __forceinline__ u32 four_nibbles(float a, float b, float c, float d) {
  const u32 low = nibble<CLAMPED>(a) + nibble<CLAMPED>(b) * 16, high = nibble<CLAMPED>(c) + nibble<CLAMPED>(d) * 16;
  return low + high * 256;
}
template <bool CLAMPED> __device__ __forceinline__ u32 nibbles_of(const float (&x)[8]) {
  const u32 low = four_nibbles<CLAMPED>(x[0], x[1], x[2], x[3]), high = four_nibbles<CLAMPED>(x[4], x[5], x[6], x[7]);
  return __byte_perm(low, high, 0x5410);
}
// The codes of eight bfloat16 magnitudes times a power of two, in pairs: the product is exact, and 192 plus a number
// below 16 rounds to an integer. Each sum is 0x4340 plus its code.
__device__ __forceinline__ u32 two_by(u32 a, u32 b) {
  u32 d;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
__device__ __forceinline__ u32 two_sums(u32 a, u32 b, u32 c) {
  u32 d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
__device__ __forceinline__ u32 two_least(u32 a, u32 b) {
  u32 d;
  asm("min.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
template <bool CLAMPED> __device__ __forceinline__ u32 two_nibbles(u32 a) {
  if (CLAMPED) a = two_least(a, 0x40C040C0u);
  const u32 least = two_least(two_sums(a, 0x40004000u, 0x43404340u), two_sums(a, 0x3F803F80u, 0x43424342u));
  return two_least(least, two_sums(a, 0x3F003F00u, 0x43444344u));
}
template <bool CLAMPED> __device__ __forceinline__ u32 nibbles_of_pairs(const Eight& e, float power) {
  const u32 by = __byte_perm(as_bits(power), 0, 0x3232);
  u32 n[RAWS];
#pragma unroll
  for (u32 i = 0; i < RAWS; ++i) n[i] = two_nibbles<CLAMPED>(two_by(magnitude(e.w[i]), by));
  const u32 low = n[1 % RAWS] * 256 + n[0], high = n[3 % RAWS] * 256 + n[2 % RAWS];
  return __byte_perm(low, high, 0x5410) + __byte_perm(low, high, 0x7632) * 16 - (0x83408340u + 0x83838383u * 16);
}
template <u32 D> __device__ __forceinline__ Codes<D> coded(const float (&y)[8]) {
  Codes<D> c;
  if constexpr (of_six_bits(D)) {
    constexpr float MOST = D == E2M3 ? 7.5f : 28.0f, POWER = D == E2M3 ? 0x1p-6f : 0x1p-12f;
    float x[8];
#pragma unroll
    for (u32 i = 0; i < 8; ++i) x[i] = fminf(fmaxf(y[i], -MOST), MOST) * POWER;
    const Codes<D == E2M3 ? E4M3 : E5M2> wide = coded<D == E2M3 ? E4M3 : E5M2>(x);
#pragma unroll
    for (u32 i = 0; i < 2; ++i) c.w[i] = (wide.w[i] & 0x1F1F1F1Fu) | (wide.w[i] & 0x80808080u) >> 2;
  } else if constexpr (D == E4M3 || D == E5M2) {
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
      const float a = y[4 * i], b = y[4 * i + 1], e = y[4 * i + 2], f = y[4 * i + 3];
      if constexpr (D == E4M3)
        asm("{.reg .b16 l, h;\n\tcvt.rn.satfinite.e4m3x2.f32 l, %2, %1;\n\tcvt.rn.satfinite.e4m3x2.f32 h, %4, %3;\n\t"
            "mov.b32 %0, {l, h};}" : "=r"(c.w[i]) : "f"(a), "f"(b), "f"(e), "f"(f));
      else
        asm("{.reg .b16 l, h;\n\tcvt.rn.satfinite.e5m2x2.f32 l, %2, %1;\n\tcvt.rn.satfinite.e5m2x2.f32 h, %4, %3;\n\t"
            "mov.b32 %0, {l, h};}" : "=r"(c.w[i]) : "f"(a), "f"(b), "f"(e), "f"(f));
    }
  } else if constexpr (D == BF16) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(c.w[i]) : "f"(y[2 * i + 1]), "f"(y[2 * i]));
  } else if constexpr (D == F16) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(c.w[i]) : "f"(y[2 * i + 1]), "f"(y[2 * i]));
  } else if constexpr (D == F32) {
#pragma unroll
    for (u32 i = 0; i < 8; ++i) c.w[i] = as_bits(y[i]);
  } else {
    float a[8];
    u32 signs = 0;
#pragma unroll
    for (u32 i = 0; i < 8; ++i) {
      a[i] = fabsf(y[i]);
      signs |= (as_bits(y[i]) >> 31) << (4 * i + 3);
    }
    c.w[0] = nibbles_of<true>(a) | signs;
  }
  return c;
}
// Eight e2m1 elements times a factor, as 16-bit numbers. The products of the eight magnitudes are a table, and the code
// of an element selects the low byte and the high byte of its product.
template <u32 D> __device__ __forceinline__ Codes<D> looked_up(u32 codes, float factor) {
  const float magnitudes[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  float products[8];
#pragma unroll
  for (u32 i = 0; i < 8; ++i) products[i] = magnitudes[i] * factor;
  const Codes<D> table = coded<D>(products);
  u32 lows[2], highs[2];
#pragma unroll
  for (u32 i = 0; i < 2; ++i) {
    lows[i] = bytes_of(table.w[2 * i], table.w[2 * i + 1], 0x6420);
    highs[i] = bytes_of(table.w[2 * i], table.w[2 * i + 1], 0x7531);
  }
  Codes<D> c;
#pragma unroll
  for (u32 i = 0; i < 2; ++i) {
    const u32 which = (codes & 0x77777777u) >> 16 * i;
    const u32 signs = bytes_of(codes, codes << 4, i ? 0x3726 : 0x1504) & 0x80808080u;
    const u32 low = bytes_of(lows[0], lows[1], which), high = bytes_of(highs[0], highs[1], which) ^ signs;
    c.w[2 * i] = bytes_of(low, high, 0x5140);
    c.w[2 * i + 1] = bytes_of(low, high, 0x7362);
  }
  return c;
}
// Round one element, including NaN, infinity and numbers out of range.
template <u32 D> __device__ __noinline__ u32 rounded(u32 y) {
  const u32 m = y & MAGNITUDE, sign = y >> 31;
  if constexpr (D == F32) return y;
  else if constexpr (D == E2M1) return m > INFINITE ? 7 : (nibble<true>(as_float(m)) & 7) | sign << 3;
  else if constexpr (D == BF16 || D == F16) {
    const u32 most = D == BF16 ? 0x7F7F0000u : 0x477FE000u;
    if (m > INFINITE) return (D == BF16 ? 0x7FC0u : 0x7E00u) | sign << 15;
    if (m > most) return (D == BF16 ? 0x7F7Fu : 0x7BFFu) | sign << 15;
  } else if (m > INFINITE) return of_six_bits(D) ? 0x1F : 0x7F | sign << 7;
  const float f = as_float(y), all[8] = {f, f, f, f, f, f, f, f};
  const Codes<D> c = coded<D>(all);
  return c.w[0] & (bits_of(D) == 16 ? 0xFFFF : 255);
}
// Multiply or divide x by the factor like the host: the NaN of an operand propagates, and a new NaN is negative.
template <bool DIVIDED> __device__ __noinline__ u32 careful(u32 x, u32 factor) {
  if (is_nan(x)) return x | QUIET;
  if (is_nan(factor)) return factor | QUIET;
  const float y = DIVIDED ? as_float(x) / as_float(factor) : as_float(x) * as_float(factor);
  return y == y ? as_bits(y) : 0xFFC00000u;
}
template <u32 D> __device__ __forceinline__ void put(Codes<D>& c, u32 i, u32 code) {
  const u32 per = 32 / bits_of(D);
  c.w[i / per] |= code << (i % per * bits_of(D));
}
// Convert up to eight elements one by one, with a factor for each if SCALED. This is a call, because few vectors need
// it; it gets copies of the operands, so that the originals stay in registers.
template <u32 D, bool SCALED>
__device__ __noinline__ void convert_carefully(const Eight* e, const u32* factor, u32 count, Codes<D>* c) {
#pragma unroll 1
  for (u32 i = 0; i < count; ++i) {
    const u32 x = exact(*e, i);
    put<D>(*c, i, rounded<D>(SCALED ? careful<false>(x, factor[i]) : x));
  }
}
// x / s, rounded to nearest, if s > 0 and its reciprocal are normal numbers: Markstein's correction, twice. The
// remainder is computed as q s - x, so that a zero keeps its sign. ONCE: a single correction, for an x of at most 11
// significant bits whose quotient is then rounded to at most 4. It may miss the nearest number, but never changes the
// code: tests/copies/test_quotients.py tries each s whose quotient lies next to a midpoint of 5 bits.
template <bool ONCE> __device__ __forceinline__ float quotient(float x, float s, float inverse) {
  float q = x * inverse;
  q = __fmaf_rn(-__fmaf_rn(q, s, -x), inverse, q);
  return ONCE ? q : __fmaf_rn(-__fmaf_rn(q, s, -x), inverse, q);
}

struct Scale { u32 stored; float factor; };
// most: blocks with a peak below it use `usual_nvfp4_scale`, and their scaled elements are below 7.
struct Totals { float total, inverse, gain, gain_sixth, ungain, most; };
// FINITE: the peak is finite.
template <class O, bool FINITE> __device__ __forceinline__ Scale power_scale(u32 peak) {
  Scale s;
  u32 biased;
  if constexpr (O::RULE == RCEIL) {
    // largest = c 2^MAX_POWER, 1.5 <= c < 2: the quotient's exponent is one above the difference if the mantissa of the
    // peak is above c. A quotient just above 2^-127 is rounded to it, because the spacing there is 2^-149.
    const u32 above = 0x7FFFFFu - (as_bits(O::largest()) & 0x7FFFFFu);
    const int e = (int)((peak + above - (peak >> 23 <= O::MAX_POWER)) >> 23) - (int)O::MAX_POWER;
    biased = FINITE || peak < INFINITE ? max(e, 0) : 254 + (peak > INFINITE);
    u32 factor = biased == 0 ? 0x3F800000u : (254 - biased) << 23;
    if (!FINITE && biased >= 254) factor = biased == 254 ? QUIET : NOT_A_NUMBER;
    s.factor = as_float(factor);
  } else {
    const u32 bits = O::RULE == EVEN ? peak + (1u << (22 - O::MANTISSA)) : peak;
    int e = (int)(bits >> 23 & 255);
    if (O::RULE == CEIL) e += (bits & 0x7FFFFFu) != 0;
    e -= (int)O::MAX_POWER;
    biased = !FINITE && is_nan(peak) ? 255 : max(e, 0);
    u32 factor = (254 - max(biased, 1)) << 23;
    if (!FINITE && biased >= 254) factor = biased == 254 ? QUIET : 0;
    s.factor = as_float(factor);
  }
  s.stored = O::SCALE_BYTES == 1 ? biased : !FINITE && biased == 255 ? NOT_A_NUMBER : biased ? biased << 23 : QUIET;
  return s;
}
template <class O, bool FINITE> __device__ __forceinline__ Scale amax_scale(u32 peak) {
  const bool nan = !FINITE && is_nan(peak);
  Scale s;
  if constexpr (O::RULE == AMAX_CUTE) {
    u32 q = nan ? peak | QUIET : as_bits(__fdiv_rn(as_float(peak), O::largest()));
    if (q == 0) q = 0x3F800000u;
    s.stored = q;
    s.factor = as_float(q);
  } else if constexpr (O::RULE == AMAX_TORCHAO) {
    const double wide = (double)as_float(peak), least = 1e-12;
    float f = (float)((double)O::largest() / (wide > least ? wide : least));
    if (nan) f = as_float(NOT_A_NUMBER);
    s.factor = f;
    s.stored = nan ? NOT_A_NUMBER : as_bits(__fdiv_rn(1.0f, f));
  } else {
    const float least = __fdiv_rn(fmaxf(as_float(peak), 1e-4f), O::largest());
    s.stored = nan ? peak | QUIET : as_bits(least);
    s.factor = nan ? as_float(s.stored) : __fdiv_rn(1.0f, least);
  }
  return s;
}
__device__ __forceinline__ u32 coded_e4m3(float y) {
  u16 r;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.0f), "f"(y));
  return r & 255;
}
__device__ __forceinline__ float value_e4m3(u32 c) {
  u32 h;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(h) : "h"((u16)c));
  return half_value(h);
}
// x / s if x, s and the quotient are normal numbers: a division without the tests of its operands.
__device__ __forceinline__ float divided_normal(float x, float s) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(s));
  r = __fmaf_rn(__fmaf_rn(-r, s, 1.0f), r, r);
  const float q = x * r;
  return __fmaf_rn(__fmaf_rn(-q, s, x), r, q);
}
// a / 6 / total, if each step is a normal number, or is below the least scale anyway. The reciprocals are correctly
// rounded, so Markstein's correction rounds the quotients correctly.
__device__ __forceinline__ float sixth_of_total(float a, const Totals& t, bool two) {
  float q = a * (1.0f / 6.0f);
  q = __fmaf_rn(__fmaf_rn(-q, 6.0f, a), 1.0f / 6.0f, q);
  return two ? quotient<false>(q, t.total, t.inverse) : q;
}
template <class O> __device__ __forceinline__ Scale usual_nvfp4_scale(u32 peak, const Totals& t) {
  Scale s;
  s.stored = coded_e4m3(fmaxf(sixth_of_total(as_float(peak), t, O::LEVELS == 2), 0.015625f));
  s.factor = divided_normal(O::LEVELS == 2 ? t.inverse : 1.0f, value_e4m3(s.stored));
  return s;
}
template <class O> __device__ __forceinline__ Scale nvfp4_scale(u32 peak, const Totals& t) {
  Scale s;
  const float a = as_float(peak);
  float wanted;
  if constexpr (O::RULE == NV_TORCHAO) {
    wanted = __fdiv_rn(a, 6.0f);
    if (O::LEVELS == 2) wanted = __fdiv_rn(wanted, t.total);
    if (wanted < 0.015625f) wanted = 0.015625f;
  } else if constexpr (O::RULE == NV_TE) wanted = a * t.gain_sixth;
  else wanted = t.gain * (a * (1.0f / 6.0f));
  s.stored = wanted != wanted ? (is_nan(peak) ? 0x7F : 0xFF) : coded_e4m3(wanted);
  const float scale = wanted != wanted ? wanted : value_e4m3(s.stored);
  if constexpr (O::RULE == NV_TORCHAO) s.factor = __fdiv_rn(O::LEVELS == 2 ? t.inverse : 1.0f, scale);
  else {
    float f = __fdiv_rn(1.0f, scale * t.ungain);
    if (O::RULE == NV_TE && f > 3.402823466e+38f) f = 3.402823466e+38f;
    s.factor = s.stored == 0 ? 0.0f : f;
  }
  return s;
}
// The scale of a block whose largest magnitude is `peak`. FINITE: `is_usual_peak` holds.
template <class O, bool FINITE> __device__ __forceinline__ Scale inline_scale(u32 peak, const Totals& t) {
  if constexpr (O::RULE == KEEP) return {0, 1.0f};
  else if constexpr (O::RULE <= RCEIL) return power_scale<O, FINITE>(peak);
  else if constexpr (O::RULE <= AMAX_DEEPGEMM) return amax_scale<O, FINITE>(peak);
  else if constexpr (O::RULE == NV_TORCHAO && FINITE) return usual_nvfp4_scale<O>(peak, t);
  else return nvfp4_scale<O>(peak, t);
}
template <class O> __device__ __noinline__ Scale called_scale(u32 peak, const Totals& t) {
  return inline_scale<O, false>(peak, t);
}
template <class O> __device__ __forceinline__ bool is_usual_peak(u32 peak, const Totals& t) {
  return O::RULE == NV_TORCHAO ? as_float(peak) < t.most : peak < INFINITE;
}
template <class O> __device__ __forceinline__ Scale scale_of(u32 peak, const Totals& t) {
  if constexpr (O::RULE != NV_TORCHAO) return inline_scale<O, false>(peak, t);
  else return is_usual_peak<O>(peak, t) ? inline_scale<O, true>(peak, t) : called_scale<O>(peak, t);
}
// A stored scale as a number.
template <u32 BYTES, bool POWER> __device__ __forceinline__ u32 scale_value(u32 stored) {
  if constexpr (BYTES == 4) return stored;
  else if constexpr (POWER) return stored == 255 ? NOT_A_NUMBER : stored ? stored << 23 : QUIET;
  else return (stored & 127) == 127 ? (stored & 128) << 24 | NOT_A_NUMBER : as_bits(value_e4m3(stored));
}
// Whether `quantise_usual` quantises elements correctly. peak: bits of their largest magnitude, or of a larger one.
template <class O> __device__ __forceinline__ bool are_usual(u32 peak, float factor) {
  bool usual = peak < INFINITE;
  if (O::RULE == AMAX_CUTE) usual = usual && factor > 1e-25f && factor < 1e25f;
  if (O::KIND == E2M1 && O::RULE != FLOOR) usual = usual && as_float(peak) * factor < 7.0f;
  return usual;
}
// Quantise groups of eight elements with one factor, where `are_usual` holds.
template <class O, u32 COUNT> __device__ __forceinline__ void quantise_usual(
    Codes<O::KIND> (&c)[COUNT], const Eight (&e)[COUNT], float factor, float inverse) {
#pragma unroll
  for (u32 n = 0; n < COUNT; ++n) {
    if constexpr (O::KIND == E2M1 && SOURCE == BF16 && O::RULE <= RCEIL) {
      c[n].w[0] = nibbles_of_pairs<O::RULE == FLOOR>(e[n], factor) | nibble_signs(e[n]);
    } else {
      float x[8];
      values(e[n], x);
#pragma unroll
      for (u32 i = 0; i < 8; ++i) {
        if (O::KIND == E2M1) x[i] = fabsf(x[i]) * factor;
        else x[i] = O::RULE == AMAX_CUTE ? quotient<WIDE>(x[i], factor, inverse) : x[i] * factor;
      }
      if constexpr (O::KIND == E2M1) c[n].w[0] = nibbles_of<O::RULE == FLOOR>(x) | nibble_signs(e[n]);
      else c[n] = coded<O::KIND>(x);
    }
  }
}
// Compute the scale of a block whose largest magnitude is `peak`, and quantise its first `count` elements one by one.
template <class O> __device__ __noinline__ Scale quantise_each(
    const Eight* e, u32 peak, const Totals& t, u32 count, Codes<O::KIND>* c) {
  const Scale s = inline_scale<O, false>(peak, t);
#pragma unroll 1
  for (u32 i = 0; i < count; ++i) {
    const u32 y = careful<O::RULE == AMAX_CUTE>(exact(e[i / 8], i % 8), as_bits(s.factor));
    put<O::KIND>(c[i / 8], i % 8, rounded<O::KIND>(y));
  }
  return s;
}
// The same; inside: number of elements before the padding, which has code 0. The call gets copies, so that the
// originals stay in registers.
template <class O, u32 COUNT> __device__ __forceinline__ Scale quantise_carefully(
    Codes<O::KIND> (&c)[COUNT], const Eight (&e)[COUNT], u32 peak, const Totals& t, u32 inside) {
  Eight copied[COUNT];
  Codes<O::KIND> made[COUNT] = {};
#pragma unroll
  for (u32 n = 0; n < COUNT; ++n) copied[n] = e[n];
  const Scale s = quantise_each<O>(copied, peak, t, min(inside, 8 * COUNT), made);
#pragma unroll
  for (u32 n = 0; n < COUNT; ++n) c[n] = made[n];
  return s;
}
// Quantise a block, or a part of it, whose largest magnitude is `peak`.
template <class O, u32 COUNT> __device__ __forceinline__ Scale quantised_block(
    Codes<O::KIND> (&c)[COUNT], const Eight (&e)[COUNT], u32 peak, const Totals& t, u32 inside) {
  // Elements of a block with a usual peak are below 7 after a power of two or NV_TORCHAO's scale.
  constexpr bool USUAL = O::RULE != AMAX_CUTE && (O::KIND != E2M1 || O::RULE <= RCEIL || O::RULE == NV_TORCHAO);
  if (is_usual_peak<O>(peak, t)) {
    const Scale s = inline_scale<O, true>(peak, t);
    if (USUAL || are_usual<O>(peak, s.factor)) {
      quantise_usual<O>(c, e, s.factor, O::RULE == AMAX_CUTE ? __fdiv_rn(1.0f, s.factor) : 0.0f);
      return s;
    }
  }
  return quantise_carefully<O>(c, e, peak, t, inside);
}
"""
"""The text needs the constant SOURCE, the kind of the source elements. `O` is a structure of an output's constants."""
