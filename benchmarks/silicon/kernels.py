"""PTX kernels around one instruction each: registers or shared memory in, registers out; nothing of the tables in them.

    matrix    (run, register, lane) words of A, B, C in -> words of D out      mma.sync, one warp a run
    mover     (run, register, lane) words and a shared image in -> words and the image out    ldmatrix, shfl, ...
    group     a shared image and descriptors in -> words of D out              wgmma, 128 threads, one run after another

A group kernel writes one hot element per run (into the image, or into the registers of A) and takes it away again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

HEAD = ".version 9.0\n.target {arch}\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n"


@dataclass(frozen=True)
class Form:
    """One instruction: its text, and how many registers each operand has.

    entry: name of its kernel. words: bytes of one register, 4 or 8. counts: registers of A, B, C (and so of D).
    """

    entry: str
    instruction: str
    counts: tuple[int, int, int]
    words: int = 4
    floats: bool = False


def names(prefix: str, count: int) -> str:
    """`{%a0, %a1}`."""
    return "{" + ", ".join(f"%{prefix}{n}" for n in range(count)) + "}"


def matrix_kernel(form: Form) -> str:
    """mma.sync: parameters p_in, p_out; block x is the run."""
    a, b, c = form.counts
    kind = "f64" if form.words == 8 else ("f32" if form.floats else "b32")
    plain = "f64" if form.words == 8 else "b32"
    load = "f64" if form.words == 8 else "b32"
    total, step = a + b + c, 32 * form.words
    lines = [
        f".visible .entry {form.entry}(.param .u64 p_in, .param .u64 p_out)",
        "{",
        f".reg .{plain} %a<{a}>; .reg .{plain} %b<{b}>; .reg .{kind} %c<{c}>; .reg .{kind} %d<{c}>;",
        ".reg .b64 %p<4>; .reg .b32 %r<4>;",
        "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;",
        "ld.param.u64 %p0, [p_in]; ld.param.u64 %p1, [p_out];",
        f"mul.wide.u32 %p2, %r1, {total * step}; add.s64 %p0, %p0, %p2;",
        f"mul.wide.u32 %p2, %r1, {c * step}; add.s64 %p1, %p1, %p2;",
        f"mul.wide.u32 %p2, %r0, {form.words}; add.s64 %p0, %p0, %p2; add.s64 %p1, %p1, %p2;",
    ]
    place = 0
    for prefix, count in (("a", a), ("b", b), ("c", c)):
        for n in range(count):
            lines.append(f"ld.global.{load} %{prefix}{n}, [%p0+{place * step}];")
            place += 1
    lines.append(f"{form.instruction} {names('d', c)}, {names('a', a)}, {names('b', b)}, {names('c', c)};")
    lines += [f"st.global.{load} [%p1+{n * step}], %d{n};" for n in range(c)]
    return "\n".join([*lines, "ret;", "}"])


def mover_kernel(entry: str, instruction: str, sources: int, results: int, image: int) -> str:
    """An instruction that moves bits: p_in (run, register, lane), p_image (run, bytes), p_out, p_after.

    instruction: its text with %s0.. (sources), %d0.. (results), %at (an address: image + source register 0).
    """
    step = 128
    lines = [
        f".visible .entry {entry}(.param .u64 p_in, .param .u64 p_image, .param .u64 p_out, .param .u64 p_after)",
        "{",
        f".reg .b32 %s<{max(1, sources)}>; .reg .b32 %d<{max(1, results)}>; .reg .b32 %at; .reg .b32 %v<4>;",
        ".reg .b64 %p<6>; .reg .b32 %r<6>; .reg .pred %q<2>;",
        "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, smem;",
        "ld.param.u64 %p0, [p_in]; ld.param.u64 %p1, [p_out];",
        "ld.param.u64 %p2, [p_image]; ld.param.u64 %p3, [p_after];",
        f"mul.wide.u32 %p4, %r1, {sources * step}; add.s64 %p0, %p0, %p4;",
        f"mul.wide.u32 %p4, %r1, {results * step}; add.s64 %p1, %p1, %p4;",
        f"mul.wide.u32 %p4, %r1, {image}; add.s64 %p2, %p2, %p4; add.s64 %p3, %p3, %p4;",
        "mul.wide.u32 %p4, %r0, 4; add.s64 %p0, %p0, %p4; add.s64 %p1, %p1, %p4;",
        "add.s64 %p2, %p2, %p4; add.s64 %p3, %p3, %p4; shl.b32 %r3, %r0, 2; add.u32 %r3, %r3, %r2;",
    ]
    lines += [f"ld.global.b32 %v0, [%p2+{n}]; st.shared.b32 [%r3+{n}], %v0;" for n in range(0, image, 128)]
    lines += [f"ld.global.b32 %s{n}, [%p0+{n * step}];" for n in range(sources)]
    lines += ["bar.sync 0;", "add.u32 %at, %s0, %r2;", instruction, "bar.sync 0;"]
    lines += [f"st.global.b32 [%p1+{n * step}], %d{n};" for n in range(results)]
    lines += [f"ld.shared.b32 %v0, [%r3+{n}]; st.global.b32 [%p3+{n}], %v0;" for n in range(0, image, 128)]
    return "\n".join([*lines, "ret;", "}"])


GROUP_PARAMETERS = (
    ("u64", "p_out"),
    ("u64", "p_c"),
    ("u64", "p_image"),
    ("u64", "p_a"),
    ("u64", "p_meta"),
    ("u64", "adesc"),
    ("u64", "bdesc"),
    ("u32", "units"),
    ("u32", "runs"),
    ("u32", "hot_bits"),
    ("u32", "hot"),
)
"""Of a group kernel. units: of 16 bytes of the image. hot_bits: width of the one hot element, 0 for none. p_c: null for
a product alone. p_a: registers of A (run, 4, 128), null for one-hot ones. p_meta: metadata (128), null without."""


@dataclass(frozen=True)
class GroupForm:
    """A wgmma: its instruction, the registers of D, whether A is in registers, and what follows the scale of D."""

    entry: str
    instruction: str
    registers: int
    floats: bool
    a_registers: bool
    tail: str
    sparse: bool = False


def group_kernel(form: GroupForm) -> str:
    kind = "f32" if form.floats else "b32"
    n = form.registers
    params = ", ".join(f".param .{t} {x}" for t, x in GROUP_PARAMETERS)
    a = names("a", 4) if form.a_registers else "%da"
    meta = ", %m, 0" if form.sparse else ""
    lines = [
        f".visible .entry {form.entry}({params})", ".maxntid 128", "{",
        f".reg .{kind} %d<{n}>; .reg .b32 %a<4>; .reg .b32 %m; .reg .b64 %da; .reg .b64 %db; .reg .b64 %p<10>;",
        ".reg .b32 %r<20>; .reg .pred %q<8>; .reg .b32 %v<4>; .reg .b16 %h<2>;",
        "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, smem;",
        "ld.param.u64 %p0, [p_out]; ld.param.u64 %p1, [p_c]; ld.param.u64 %p2, [p_image]; ld.param.u64 %p3, [p_a];",
        "ld.param.u64 %p4, [p_meta]; ld.param.u64 %da, [adesc]; ld.param.u64 %db, [bdesc];",
        "ld.param.u32 %r4, [units]; ld.param.u32 %r5, [runs]; ld.param.u32 %r6, [hot_bits]; ld.param.u32 %r7, [hot];",
        "shr.u32 %r8, %r3, 4; cvt.u64.u32 %p5, %r8; add.s64 %da, %da, %p5; add.s64 %db, %db, %p5;",
        "setp.ne.u64 %q0, %p1, 0; setp.ne.u64 %q1, %p3, 0; setp.ne.u64 %q2, %p4, 0; setp.ne.u32 %q3, %r6, 0;",
        "mov.b32 %m, 0; mov.b32 %a0, 0; mov.b32 %a1, 0; mov.b32 %a2, 0; mov.b32 %a3, 0;",
        "mul.wide.u32 %p6, %r0, 4; @%q2 add.s64 %p4, %p4, %p6; @%q2 ld.global.b32 %m, [%p4];",
        # the image
        "mov.u32 %r9, %r0;", "FILL:", "setp.ge.u32 %q4, %r9, %r4; @%q4 bra FILLED;",
        "mul.wide.u32 %p7, %r9, 16; add.s64 %p7, %p7, %p2; ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%p7];",
        "shl.b32 %r10, %r9, 4; add.u32 %r10, %r10, %r3; st.shared.v4.b32 [%r10], {%v0, %v1, %v2, %v3};",
        "add.u32 %r9, %r9, 128; bra FILL;", "FILLED:",
        "fence.proxy.async.shared::cta;", "bar.sync 0;",
        # one run after another
        "RUN:", "setp.ge.u32 %q4, %r1, %r5; @%q4 bra DONE;",
    ]  # fmt: skip
    if form.a_registers:
        lines += [
            "@%q1 bra STORED;",
            # element r1 of (thread, register, element): hot << (place in the word)
            "mov.u32 %r11, 32; div.u32 %r11, %r11, %r6; div.u32 %r12, %r1, %r11; rem.u32 %r13, %r1, %r11;",
            "mul.lo.u32 %r13, %r13, %r6; shl.b32 %r14, %r7, %r13; shr.u32 %r15, %r12, 2; and.b32 %r16, %r12, 3;",
            "setp.eq.u32 %q5, %r15, %r0;",
            *(
                f"setp.eq.and.u32 %q6, %r16, {k}, %q5; selp.b32 %a{k}, %r14, 0, %q6;"
                for k in range(4)
            ),
            "bra READY;", "STORED:",
            "mul.wide.u32 %p7, %r1, 2048; add.s64 %p7, %p7, %p3; add.s64 %p7, %p7, %p6;",
            *(f"ld.global.b32 %a{k}, [%p7+{k * 512}];" for k in range(4)), "READY:",
        ]  # fmt: skip
    else:
        lines += [_hot("%r7"), "fence.proxy.async.shared::cta;", "bar.sync 0;"]
    size = n * 512
    lines += [f"mul.wide.u32 %p7, %r1, {size}; add.s64 %p7, %p7, %p6; add.s64 %p8, %p7, %p0; add.s64 %p9, %p7, %p1;"]
    lines += ["@!%q0 bra ZERO;", *(f"ld.global.b32 %d{k}, [%p9+{k * 512}];" for k in range(n)), "bra HAVE;", "ZERO:"]
    lines += [f"mov.b32 %d{k}, 0;" if not form.floats else f"mov.f32 %d{k}, 0f00000000;" for k in range(n)]
    lines += [
        "HAVE:", "wgmma.fence.sync.aligned;",
        f"{form.instruction} {names('d', n)}, {a}, %db{meta}, %q0{form.tail};",
        "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;",
        *(f"st.global.b32 [%p8+{k * 512}], %d{k};" for k in range(n)),
    ]  # fmt: skip
    if not form.a_registers:
        lines += ["bar.sync 0;", "mov.u32 %r17, 0;", _hot("%r17")]
    lines += ["add.u32 %r1, %r1, %r2; bra RUN;", "DONE:", "ret;", "}"]
    return _labelled("\n".join(lines), form.entry)


def _hot(value: str) -> str:
    """Thread 0 writes an element of 8, 16 or 32 bits at place %r1 of the image; nothing if there is none."""
    return (
        "setp.eq.and.u32 %q5, %r0, 0, %q3; shr.u32 %r11, %r6, 3; mad.lo.u32 %r12, %r1, %r11, %r3;"
        f" setp.eq.and.u32 %q6, %r6, 8, %q5; @%q6 st.shared.u8 [%r12], {value};"
        f" cvt.u16.u32 %h0, {value}; setp.eq.and.u32 %q6, %r6, 16, %q5; @%q6 st.shared.u16 [%r12], %h0;"
        f" setp.eq.and.u32 %q6, %r6, 32, %q5; @%q6 st.shared.u32 [%r12], {value};"
    )


def _labelled(text: str, entry: str) -> str:
    """Labels are the kernel's own."""
    return re.sub(r"\b(FILLED|FILL|RUN|DONE|STORED|READY|ZERO|HAVE)\b", rf"{entry}_\1", text)


def module(kernels: Sequence[str], arch: str = "sm_90a") -> str:
    """Kernels as one PTX module."""
    return HEAD.format(arch=arch) + "\n".join(kernels) + "\n"


REDUCE = r"""
typedef unsigned int u32; typedef unsigned long long u64;
__device__ __forceinline__ u64 mix(u64 run, u64 bits) {
  u64 h = (run + 1) * 0x9E3779B97F4A7C15ull ^ (bits + 1) * 0xC2B2AE3D27D4EB4Full;
  h ^= h >> 29; h *= 0xBF58476D1CE4E5B9ull; h ^= h >> 32;
  return h;
}
// words (run, place) -> for each element of `width` bits of a place: how many runs are not zero, the first of them and
// its bits, and the sum of a hash of all of them.
extern "C" __global__ void reduce(const u32* words, u32 places, u32 runs, u32 width, u32* count, u64* first,
                                  u64* hash) {
  const u32 place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= places) return;
  const u32 parts = 32 / width, mask = width == 32 ? 0xffffffffu : (1u << width) - 1;
  u32 n[2] = {0, 0}; u64 f[2] = {~0ull, ~0ull}, h[2] = {0, 0};
  #pragma unroll 8
  for (u32 run = blockIdx.y; run < runs; run += gridDim.y) {
    const u32 word = words[(u64)run * places + place];
    for (u32 part = 0; part < parts; ++part) {
      const u32 bits = (word >> (part * width)) & mask;
      if (bits) {
        ++n[part]; h[part] += mix(run, bits);
        const u64 here = ((u64)run << 32) | bits; if (here < f[part]) f[part] = here;
      }
    }
  }
  for (u32 part = 0; part < parts; ++part) {
    if (!n[part]) continue;
    const u32 at = place * parts + part;
    atomicAdd(count + at, n[part]); atomicMin(first + at, f[part]); atomicAdd(hash + at, h[part]);
  }
}
// What `reduce` finds if element `place` is row rows[place] and column columns[place] of a product, element (m,k) of A
// is hot in run a[m * depth + k], and element (n,k) of B has the result's bits b[n * depth + k].
extern "C" __global__ void predict(const u32* a, const u32* b, const u32* rows, const u32* columns, u32 depth,
                                   u32 places, u32* count, u64* first, u64* hash) {
  const u32 place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= places) return;
  u32 n = 0; u64 f = ~0ull, h = 0;
  for (u32 k = 0; k < depth; ++k) {
    const u32 run = a[rows[place] * depth + k], bits = b[columns[place] * depth + k];
    if (bits) { ++n; h += mix(run, bits); const u64 here = ((u64)run << 32) | bits; if (here < f) f = here; }
  }
  count[place] = n; first[place] = f; hash[place] = h;
}
// words (run, place) -> for each run: how many elements of `width` bits are not zero, the first of them and its bits.
extern "C" __global__ void by_run(const u32* words, u32 places, u32 width, u32* count, u64* first) {
  __shared__ u32 n; __shared__ u64 f;
  if (threadIdx.x == 0) { n = 0; f = ~0ull; }
  __syncthreads();
  const u32 parts = 32 / width, mask = width == 32 ? 0xffffffffu : (1u << width) - 1;
  for (u32 place = threadIdx.x; place < places; place += blockDim.x) {
    const u32 word = words[(u64)blockIdx.x * places + place];
    for (u32 part = 0; part < parts; ++part) {
      const u32 bits = (word >> (part * width)) & mask;
      if (bits) { atomicAdd(&n, 1u); atomicMin(&f, ((u64)(place * parts + part) << 32) | bits); }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) { count[blockIdx.x] = n; first[blockIdx.x] = f; }
}
"""
"""CUDA C++ that reduces what one-hot runs wrote, and what a table predicts of that."""
