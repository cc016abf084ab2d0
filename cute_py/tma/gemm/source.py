"""Write the source of a GEMM kernel: one CUDA C++ file with the constants of a `GemmPlan`.

Warpgroup 0 is the producer: it releases registers, and one of its threads walks the tiles and keeps the stages full.
The other warpgroups wait for a stage, issue its wgmma, and free the stage before it, so that the instructions of one
stage are always in flight. stmatrix writes the accumulators of a tile to staging buffers. TMA stores then write them to
C while the warpgroup multiplies the next tile.

If a wait times out, the kernel reports it, and the thread no longer waits. Warpgroups process the rest of their
tiles with the current contents of the stages, so that threads still meet at their barriers. They free no more stages,
however, so that the waits of the producer time out too. By then all issued loads have arrived, so that no block ends
before its loads.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Final

from cute_py.atom.copy_atoms import copy_atom
from cute_py.atom.smem_descriptor import ADDRESS_MASK, UNIT_BYTES
from cute_py.errors import counted
from cute_py.gpu.kernels.copy_op import CopyOp, copy_functions
from cute_py.gpu.kernels.source import BARRIERS, GROUPS, KernelSource
from cute_py.layout import Int, Layout
from cute_py.tma.atom.partition import create_tma_multicast_mask
from cute_py.tma.gemm.plan import GemmPlan, TileBox, TileBoxes

NAME: Final = "gemm"
PARAMETERS: Final = ("map_a", "map_b", "map_c", "record")
DUMP_HERE: Final = "        const u64 a = first_a + stage"
"""Start of a line of the source; just before it, a warpgroup may read the stage that it has waited for."""
PRODUCER_REGISTERS: Final = {1: 40, 2: 40}
CONSUMER_REGISTERS: Final = {1: 232, 2: 232}
"""Warpgroups that multiply -> registers of a thread; 40 * 128 + 232 * 256 are below the 65,536 of an SM."""
MOST_BOXES: Final = 3
"""Largest number of boxes of a tile that are written as separate lines. More boxes become a loop, which the compiler
unrolls."""

_FUNCTIONS: Final = r"""
// Waits until the phase of this parity is complete. Bounded: a wait that takes too long is reported, and is the last.
__device__ __forceinline__ void await(u32 barrier, u32 parity, u32 turn, u32 bytes, bool& lost, ErrorRecord* record) {
  if (try_wait(barrier, parity) || lost) return;
  const u64 start = clock64();
  while (!try_wait(barrier, parity)) {
    const u64 waited = clock64() - start;
    if (waited <= WAIT_CYCLES) continue;
    lost = true;
    if (atomicCAS(&record->state, 0u, 2u) == 0u) {
      record->barrier = barrier; record->phase = parity; record->expected = bytes; record->stage = turn;
      record->block_x = blockIdx.x; record->block_y = 0; record->thread = threadIdx.x; record->cycles = waited;
      __threadfence();
      record->state = 1u;
    }
    return;
  }
}
__device__ __forceinline__ u32 cta_rank() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ void arrive_at(u32 barrier, u32 cta) {  // the same barrier of a CTA of the cluster
  asm volatile("{\n\t.reg .b32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\t"
               "mbarrier.arrive.shared::cluster.b64 _, [there];\n\t}" ::"r"(barrier), "r"(cta) : "memory");
}
__device__ __forceinline__ void warpgroup_sync(u32 id) { asm volatile("bar.sync %0, 128;" ::"r"(id) : "memory"); }
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int left> __device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}
__device__ __forceinline__ void store_matrices(u32 place, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               ::"r"(place), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
"""

_PACK: Final = r"""
__device__ __forceinline__ float epilogue(float x) { return @EPILOGUE@; }
__device__ __forceinline__ u32 pack(float low, float high) {
  u32 both;
  asm("cvt.rn.@C_TYPE@x2.f32 %0, %1, %2;" : "=r"(both) : "f"(epilogue(high)), "f"(epilogue(low)));
  return both;
}
"""

_BODY: Final = r"""
__device__ __forceinline__ void tile_of(u32 number, u32 rank, int& m, int& n) {  // GROUP rows of tiles share B in L2
  const u32 first = number / (GROUP * CLUSTERS_N) * GROUP, at = number % (GROUP * CLUSTERS_N);
  const u32 rows = CLUSTERS_M - first < GROUP ? CLUSTERS_M - first : GROUP;
  m = (first + at % rows) * CLUSTER_M@RANK_M@;
  n = at / rows * CLUSTER_N@RANK_N@;
}

extern "C" __global__ void @CLUSTER_DIMS@__launch_bounds__(THREADS, 1) gemm(
    const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
    const __grid_constant__ TensorMap map_c, ErrorRecord* record) {
  extern __shared__ __align__(1024) u8 shared[];
  const u32 base = shared_address(shared), staging = base + STAGES * STAGE_BYTES;
  const u32 full = staging + STAGING_BYTES, empty = full + 8 * STAGES;
  const u32 warpgroup = threadIdx.x / 128, rank = @RANK@, clusters = gridDim.x / CLUSTER;
  if (threadIdx.x == 0) {
    for (u32 s = 0; s < STAGES; ++s) {
      barrier_init(full + 8 * s, 1);                       // the producer; and the bytes of its loads
      barrier_init(empty + 8 * s, CLUSTER * WARPGROUPS);   // every warpgroup that reads what this CTA loads
    }
    barrier_init_done();
  }
  @SYNC@
  u32 stage = 0, phase = 0, turn = 0;
  bool lost = false;
  int m, n;
  if (warpgroup == 0) {  // the producer
    asm volatile("setmaxnreg.dec.sync.aligned.u32 @PRODUCER_REGISTERS@;");
    if (threadIdx.x == 0) {
      prefetch_map(&map_a);
      prefetch_map(&map_b);
      for (u32 number = blockIdx.x / CLUSTER; number < CLUSTER_TILES && !lost; number += clusters) {
        tile_of(number, rank, m, n);
#pragma unroll 1
        for (int k = 0; k < TILES_K; ++k) {
          await(empty + 8 * stage, phase ^ 1, turn++, 0, lost, record + 1);
          if (lost) break;
          const u32 at = base + stage * STAGE_BYTES, barrier = full + 8 * stage;
          expect_bytes(barrier, LOADED_BYTES);
@LOADS@
          if (++stage == STAGES) stage = 0, phase ^= 1;
        }
      }
    }
  } else {  // a warpgroup that multiplies
    asm volatile("setmaxnreg.inc.sync.aligned.u32 @CONSUMER_REGISTERS@;");
    const u32 thread = threadIdx.x % 128, lane = thread % 32, own = warpgroup - 1;
    // A descriptor has 14 bits for an address. Above them base has the rank in the cluster, which would change LBO.
    const u64 first_a = DESCRIPTOR_A + ((base & ADDRESS_MASK) >> 4) + own * ROWS_A;
    const u64 first_b = DESCRIPTOR_B + (((base & ADDRESS_MASK) + A_BYTES) >> 4);
    // The 16 bytes of its row that this lane addresses for stmatrix, and what the swizzle flips in their address.
    const u32 place = (thread / 32 * 16 + lane % 16) * SPAN + lane / 16 * 16, flip = ((place >> 7) & FLIP) << 4;
    const u32 buffers = staging + own * BUFFERS * C_BYTES;
    u32 buffer = 0;
    float d[ROW_STEPS][VALUES] = {};
    if (thread == 0) prefetch_map(&map_c);
    for (u32 number = blockIdx.x / CLUSTER; number < CLUSTER_TILES; number += clusters) {
      tile_of(number, rank, m, n);
      u32 before = 0;
#pragma unroll 1
      for (int k = 0; k < TILES_K; ++k) {
        await(full + 8 * stage, phase, turn++, LOADED_BYTES, lost, record);
        const u64 a = first_a + stage * (STAGE_BYTES >> 4), b = first_b + stage * (STAGE_BYTES >> 4);
        wgmma_fence();
#pragma unroll
        for (u32 step = 0; step < K_STEPS; ++step)
#pragma unroll
          for (u32 i = 0; i < ROW_STEPS; ++i)
            multiply(d[i], a + i * WARPGROUPS * ROWS_A + step * STEP_A, b + step * STEP_B, k | step);
        wgmma_commit();
        wgmma_wait<1>();  // the reads of the previous stage are complete: every CTA may load into it again
        if (k > 0 && thread < CLUSTER && !lost) @RELEASE@(empty + 8 * before@RELEASE_CTA@);
        before = stage;
        if (++stage == STAGES) stage = 0, phase ^= 1;
      }
      wgmma_wait<0>();
      if (thread < CLUSTER && !lost) @RELEASE@(empty + 8 * before@RELEASE_CTA@);
#pragma unroll
      for (u32 i = 0; i < ROW_STEPS; ++i) {
#pragma unroll
        for (u32 v = 0; v < VALUES; ++v) asm volatile("" : "+f"(d[i][v])::"memory");  // not read before the wait
#pragma unroll
        for (u32 chunk = 0; chunk < CHUNKS; ++chunk) {
          const u32 at = buffers + buffer * C_BYTES;
          if (thread == 0) wait_group_read<BUFFERS - 1>();
          warpgroup_sync(1 + own);  // the store of this buffer before has read it
#pragma unroll
          for (u32 j = 0; j < C_COLUMNS / 16; ++j) {
            const float* x = d[i] + chunk * (C_COLUMNS / 2) + 8 * j;
            store_matrices(at + j / SPAN_STEPS * (64 * SPAN) + ((place + j % SPAN_STEPS * 32) ^ flip),
                           pack(x[0], x[1]), pack(x[2], x[3]), pack(x[4], x[5]), pack(x[6], x[7]));
          }
          fence_async_shared();
          warpgroup_sync(1 + own);
          if (thread == 0) {
            const int rows = m * C_ROWS_PER_TILE + i * WARPGROUPS + own, columns = n * CHUNKS + chunk;
@STORES@
            commit_group();
          }
          buffer = buffer + 1 == BUFFERS ? 0 : buffer + 1;
        }
      }
    }
    if (thread == 0) wait_group_read<0>();
  }
  @SYNC_LAST@
}
"""


def _wrapped(parts: Iterable[str], width: int) -> list[str]:
    """Wrap the items of a list into lines of at most `width` characters."""
    lines, line = [], ""
    for part in parts:
        if line and len(line) + 1 + len(part) > width:
            lines.append(line)
            line = ""
        line = f"{line} {part}" if line else part
    return [*lines, line]


def multiply_function(plan: GemmPlan) -> str:
    """Write the device function for one wgmma: d += A * B from two descriptors; `accumulate` 0 starts from zero."""
    atom = plan.tiled_mma.atom
    count = atom.registers["C"][0]
    scales = [1 if atom.template_args.get(f"scale{x}", "One") == "One" else -1 for x in "AB"]
    majors = [int(plan.operands[x].major == "MN") for x in "AB"] if "tnspA" in atom.template_args else []
    names = _wrapped((f"%{i}{',' if i + 1 < count else ''}" for i in range(count)), 102)
    listed = "\n".join(f'               "{line}"' for line in names)
    fours = _wrapped((f"FOUR({i}){',' if i + 4 < count else ''}" for i in range(0, count, 4)), 102)
    outputs = "\n                 ".join(fours)
    tail = ", ".join(map(str, [*scales, *majors]))
    return (
        '#define FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])\n'
        f"__device__ __forceinline__ void multiply(float (&d)[{count}], u64 a, u64 b, u32 accumulate) {{\n"
        f'  asm volatile("{{\\n\\t.reg .pred p;\\n\\tsetp.ne.b32 p, %{count + 2}, 0;\\n\\t"\n'
        f'               "{atom.ptx} {{"\n{listed}\n'
        f'               "}}, %{count}, %{count + 1}, p, {tail};\\n\\t}}"\n'
        f"               : {outputs}\n"
        f'               : "l"(a), "l"(b), "r"(accumulate));\n}}\n'
    )


def _sum(*terms: str) -> str:
    return " + ".join(term for term in terms if term) or "0"


def _term(name: str, step: int) -> str:
    return "" if not step else name if step == 1 else f"{name} * {step}"


def _coordinates(walk: TileBoxes, starts: Sequence[str], first: str, second: str, rank: str) -> str:
    parts = []
    for mode, start in enumerate(starts):
        parts.append(
            _sum(
                _term(first, walk.steps[0][mode]),
                _term(second, walk.steps[1][mode]),
                _term(rank, walk.shift.coords[mode]),
                start,
            )
        )
    return ", ".join(parts)


def _apart(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x - y for x, y in zip(one, other, strict=True))


def _places(boxes: Sequence[TileBox], after: int) -> tuple[int, list[list[str]]]:
    """Return a loop count, and the byte offset and coordinates of each line.

    There is one line per box, or one line in `i` for a regular grid of boxes.
    """
    rows = [(after + box.place, *box.coords) for box in boxes]
    if len(rows) > MOST_BOXES:
        steps = [_apart(one, before) for before, one in itertools.pairwise(rows)]
        step = steps[0]
        inner = next((i for i, other in enumerate(steps, 1) if other != step), len(rows))
        outer = _apart(rows[inner], rows[0]) if inner < len(rows) else tuple(u * inner for u in step)
        columns = list(zip(rows[0], step, outer, strict=True))
        if rows == [tuple(x + i % inner * u + i // inner * v for x, u, v in columns) for i in range(len(rows))]:
            return len(rows), [[_along(x, u, v, inner) for x, u, v in columns]]
    return 1, [[str(x) if x else "" for x in row] for row in rows]


def _along(start: int, step: int, outer: int, inner: int) -> str:
    """Write an expression in `i` that grows by `step` from box to box, and by `outer` after every `inner` boxes."""
    one_mode = outer == step * inner
    moves = [_term("i", step)] if one_mode else [_term(f"i % {inner}", step), _term(f"i / {inner}", outer)]
    return " + ".join(term for term in (str(start) if start else "", *moves) if term)


def _issued(calls: list[str], times: int, indent: str) -> list[str]:
    if times == 1:
        return [f"{indent}{call}" for call in calls]
    return ["#pragma unroll", f"{indent}for (int i = 0; i < {times}; ++i)", f"{indent}  {calls[0]}"]


def _loads(plan: GemmPlan) -> tuple[list[str], list[CopyOp]]:
    lines, ops = [], []
    for name, index, after in (("A", "m", 0), ("B", "n", plan.walks["A"].bytes)):
        walk, shared = plan.walks[name], plan.atoms[name].num_multicast > 1
        op = CopyOp("load", plan.atoms[name].plan.rank, multicast=shared)
        ops.append(op)
        mask = f", {multicast_mask(plan):#x}" if shared else ""
        times, places = _places(walk.boxes, after)
        calls = []
        for place, *starts in places:
            at = _sum("at", place, _term("rank", walk.shift.place))
            coords = _coordinates(walk, starts, index, "k", "rank")
            calls.append(f"{op.name}({at}, &map_{name.lower()}, barrier, {coords}{mask});")
        lines += _issued(calls, times, " " * 10)
    return lines, ops


def _stores(plan: GemmPlan) -> tuple[list[str], CopyOp]:
    op, walk = CopyOp("store", plan.atoms["C"].plan.rank), plan.walks["C"]
    times, places = _places(walk.boxes, 0)
    calls = [
        f"{op.name}({_sum('at', place)}, &map_c, {_coordinates(walk, starts, 'rows', 'columns', '')});"
        for place, *starts in places
    ]
    return _issued(calls, times, " " * 12), op


def multicast_mask(plan: GemmPlan) -> int:
    """Return the multicast mask of a shared operand: all CTAs of the cluster."""
    along = (1, 2, 1, 1) if plan.shared_by == "M" else (1, 1, 2, 1)
    layout = Layout(tuple(Int(n) for n in along))
    return create_tma_multicast_mask(layout, (0, 0, 0, 0), 1 if plan.shared_by == "M" else 2)


def gemm_constants(plan: GemmPlan) -> dict[str, int]:
    """Return the constants of the source, by name."""
    tiles_m, tiles_n, tiles_k = plan.tiles
    cluster_m, cluster_n = (plan.cluster if plan.shared_by == x else 1 for x in "MN")
    a, b = plan.operands["A"], plan.operands["B"]
    c = plan.atoms["C"]
    rows, columns = plan.c_tile
    span = c.plan.box[0] * c.dtype.bits // 8
    return {
        "THREADS": plan.threads,
        "WARPGROUPS": plan.warpgroups,
        "CLUSTER": plan.cluster,
        "CLUSTER_M": cluster_m,
        "CLUSTER_N": cluster_n,
        "CLUSTERS_M": tiles_m // cluster_m,
        "CLUSTERS_N": tiles_n // cluster_n,
        "CLUSTER_TILES": tiles_m * tiles_n // plan.cluster,
        "TILES_K": tiles_k,
        "GROUP": plan.group,
        "STAGES": plan.stages,
        "STAGE_BYTES": plan.stage_bytes,
        "LOADED_BYTES": plan.stage_bytes,
        "A_BYTES": plan.walks["A"].bytes,
        "ADDRESS_MASK": ADDRESS_MASK,
        "DESCRIPTOR_A": int(a.descriptor),
        "DESCRIPTOR_B": int(b.descriptor),
        "ROWS_A": a.row_units,
        "STEP_A": a.k_units,
        "STEP_B": b.k_units,
        "K_STEPS": plan.k_steps,
        "ROW_STEPS": plan.row_steps,
        "VALUES": plan.tiled_mma.atom.registers["C"][0],
        "BUFFERS": plan.staging,
        "STAGING_BYTES": plan.staging_bytes,
        "C_BYTES": plan.walks["C"].bytes,
        "C_COLUMNS": columns,
        "C_ROWS_PER_TILE": plan.tile[0] // rows,
        "CHUNKS": plan.tile[1] // columns,
        "SPAN": span,
        "SPAN_STEPS": span // 32,
        "FLIP": (1 << c.swizzle.bits) - 1,
    }


def _header(plan: GemmPlan) -> str:
    m, n, k = plan.shape
    mma = plan.tiled_mma
    lines = [
        f"C (M,N) = A (M,K) * B (N,K): M {m}, N {n}, K {k}; a CTA has {' x '.join(map(str, plan.tile))} of M, N, K.",
        "Written by cute_py. All numbers are read off these objects:",
    ]
    for name, atom in plan.atoms.items():
        walk = plan.walks[name]
        lines += [
            f"{name}  {atom.gtensor}",
            f"   shared {atom.smem_layout}",
            f"   TMA    box {atom.plan.box} of {atom.internal_dtype}, swizzle {atom.swizzle_row.name}, "
            f"basis {atom.gbasis}; {counted(len(walk.boxes), 'instruction')}, {walk.bytes} bytes",
        ]
        if name in plan.operands:
            one = plan.operands[name]
            fields = one.descriptor
            lines.append(
                f"   wgmma  {one.major}-major, descriptor {fields}: LBO {fields.leading * UNIT_BYTES}, SBO "
                f"{fields.stride * UNIT_BYTES}, {fields.swizzle.name}; K moves by {one.k_units * UNIT_BYTES} bytes"
            )
    matrices = copy_atom("SM90_U32x4_STSM_N", plan.atoms["C"].dtype)
    lines += [
        f"MMA  {mma.atom.name}",
        f"   threads (V,M,N,K) {mma.thr_layout_vmnk}",
        f"   C (thread,value) -> m + {int(mma.tile_size(0))}*n {mma.get_layoutC_TV()}",
        f"stmatrix (lane,value) {matrices.layout_src_TV} -> (row,column) {matrices.layout_dst_TV}",
    ]
    return "".join(f"// {line}\n" for line in lines)


def _constants_text(constants: dict[str, int]) -> str:
    """Write the 32-bit constants as one enumeration, and the descriptors as another."""
    small = {name: value for name, value in constants.items() if not name.startswith("DESCRIPTOR")}
    large = {name: value for name, value in constants.items() if name not in small}
    listed = _wrapped((f"{name} = {value}u," for name, value in small.items()), 116)
    wide = "".join(f"constexpr u64 {name} = {value:#018x}ull;\n" for name, value in large.items())
    return "enum : u32 {\n" + "".join(f"  {line}\n" for line in listed) + f"}};\n{wide}"


def gemm_source(plan: GemmPlan, epilogue: str, wait_cycles: int) -> KernelSource:
    """Write the CUDA C++ source of the kernel of a plan.

    Args:
        epilogue: a CUDA C++ expression in `x`, an element of A * B (float). wait_cycles: the longest wait, in SM clock
            cycles.
    """
    constants = gemm_constants(plan)
    loads, load_ops = _loads(plan)
    stores, store_op = _stores(plan)
    clustered = plan.cluster > 1
    put = {
        "EPILOGUE": epilogue,
        "C_TYPE": {"bfloat16": "bf16", "float16": "f16"}[plan.atoms["C"].dtype.name],
        "RANK_M": " + rank" * (plan.shared_by == "M"),
        "RANK_N": " + rank" * (plan.shared_by == "N"),
        "RANK": "cta_rank()" if clustered else "0",
        "SYNC": "cluster_sync();" if clustered else "__syncthreads();",
        "SYNC_LAST": "cluster_sync();  // no CTA ends while another may still reach its shared memory"
        if clustered
        else "",
        "RELEASE": "arrive_at" if clustered else "arrive",
        "RELEASE_CTA": ", thread" * clustered,
        "PRODUCER_REGISTERS": str(PRODUCER_REGISTERS[plan.warpgroups]),
        "CONSUMER_REGISTERS": str(CONSUMER_REGISTERS[plan.warpgroups]),
        "CLUSTER_DIMS": "__cluster_dims__(CLUSTER, 1, 1) " * clustered,
        "LOADS": "\n".join(loads),
        "STORES": "\n".join(stores),
    }
    body = _FUNCTIONS.lstrip() + _PACK.lstrip() + multiply_function(plan) + _BODY.lstrip()
    for name, value in put.items():
        body = body.replace(f"@{name}@", value)
    listed = (
        f"{_header(plan)}#define WAIT_CYCLES {wait_cycles}ull\n{BARRIERS.strip()}\n"
        f"{GROUPS.strip()}\n{_constants_text(constants)}{copy_functions(*load_ops, store_op)}{body.strip()}\n"
    )
    return KernelSource(
        NAME,
        listed,
        plan.threads,
        plan.shared_bytes,
        plan.cluster,
        "sm_90a",
        PARAMETERS,
        constants,
        sum(len(plan.walks[x].boxes) for x in "AB"),
    )
