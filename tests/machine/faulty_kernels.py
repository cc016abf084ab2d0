"""Small kernels with one fault each, and what mends it: the twin is the same text with the fault mended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import cute_py as cute

HEAD = """.version 8.7
.target sm_90a
.address_size 64
{before}
.visible .entry k(.param .u64 x) {reqs}
{{
  .shared .align 1024 .b8 s[8192];
  .shared .align 8 .b64 bar[2];
  .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<20>; .reg .b16 %rs<4>;
  ld.param.u64 %rd1, [x];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, s;
  mov.u32 %r3, bar;
  shl.b32 %r4, %r1, 2;
  add.u32 %r5, %r2, %r4;
  mov.u32 %r6, %ctaid.x;
  mad.lo.u32 %r7, %r6, 256, %r4;
  cvt.u64.u32 %rd2, %r7;
  add.u64 %rd2, %rd1, %rd2;
  setp.eq.u32 %p1, %r1, 0;
  {body}
  ret;
}}
"""
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"


@dataclass(frozen=True)
class Faulty:
    """body: with `<<wrong|right>>` where the fault is."""

    rule: str
    severity: str
    body: str
    threads: int = 64
    grid: int = 1
    cluster: int = 1
    cure: str = ""
    """A part of the change that is offered; empty: none is."""
    before: str = ""
    """Declarations of the module, on one line."""

    def text(self, *, mended: bool) -> str:
        """The PTX, with the fault or without."""
        body = self.body
        while "<<" in body:
            before, _, rest = body.partition("<<")
            wrong, _, rest = rest.partition("|")
            right, _, after = rest.partition(">>")
            body = before + (right if mended else wrong) + after
        reqs = f".reqntid {self.threads}" + (f" .reqnctapercluster {self.cluster}" if self.cluster > 1 else "")
        return HEAD.format(reqs=reqs, body=body, before=self.before)

    def run(self, *, mended: bool, schedule: str | int = "eager", judge: bool = True, edit: Any = str) -> Any:
        """What a run finds. edit: changes the text."""
        x = np.arange(4096, dtype=np.uint32)
        text = edit(self.text(mended=mended))
        return cute.run_ptx(text, grid=self.grid, args=[x], schedule=schedule, judge=judge)


INIT = """@%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
  @%p1 fence.mbarrier_init.release.cluster;
  bar.sync 0;
  """
LOAD = f"""@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 1024;
  @%p1 {BULK} [%r2], [%rd1], 1024, [%r3];
  """
WAIT = """W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
  @!%p2 bra W;"""
STORE = """@!%p1 bra E;
  cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 256;
  cp.async.bulk.commit_group;
  """
FILL = "".join(f"st.shared.u32 [%r5+{512 * i}], %r1;\n  " for i in range(8))
SHAPE = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
DESCRIPTORS = f"""and.b32 %r10, %r2, 262143;
  shr.u32 %r10, %r10, 4;
  cvt.u64.u32 %rd5, %r10;
  or.b64 %rd5, %rd5, {(8 << 16) | (16 << 32)};
  add.u64 %rd6, %rd5, 128;
  """
MULTIPLY = f"{SHAPE} {{%f1, %f2, %f3, %f4}}, %rd5, %rd6, 1, 1, 1, 0, 0;"
COMMIT = "wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;"
ZEROS = "mov.f32 %f1, 0f00000000; add.f32 %f2, %f1, %f1; add.f32 %f3, %f1, %f1; add.f32 %f4, %f1, %f1;\n  "
OPERANDS = FILL + "fence.proxy.async;\n  bar.sync 0;\n  " + ZEROS + DESCRIPTORS

FRAGMENTS = "".join(f"mov.u32 %r{30 + i}, %r1;\n  " for i in range(4))
BY_REGISTERS = f"{SHAPE} {{%f1, %f2, %f3, %f4}}, {{%r30, %r31, %r32, %r33}}, %rd6, 1, 1, 1, 0;"
PAIR = """@%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
  @%p1 fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  mov.u32 %r11, %cluster_ctarank;
  mov.u16 %rs1, 3;
  setp.ne.u32 %p5, %r11, 0;
  setp.eq.and.u32 %p6, %r11, 0, %p1;
  """

MAP = cute.tma.encode(cute.tma.TensorMapTiled("uint32", 0, (1024,), (), (256,)))
MAP_VARIABLE = f".global .align 128 .b8 map[128] = {{{', '.join(map(str, MAP))}}};"
RELEASE = "fence.proxy.tensormap::generic.release"
ACQUIRE = "fence.proxy.tensormap::generic.acquire"
POINT = """mov.u64 %rd5, map;
  cvta.global.u64 %rd5, %rd5;
  """
REPLACE = "tensormap.replace.tile.global_address.global.b1024.b64 [map], %rd1;\n  "
LOAD_TILE = """@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 1024;
  @%p1 cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd5, {0}], [%r3];
  """

RELEASE_STAGE = "mbarrier.arrive.shared::cta.b64 _, [%r3+8];"
STAGE = f"""@%p1 mbarrier.init.shared::cta.b64 [%r3+8], 1;
  {INIT}setp.ge.u32 %p3, %r1, 32;
  setp.eq.u32 %p4, %r1, 32;
  mov.u32 %r20, 0;
  @%p3 bra C;
  @!%p1 bra E;
P: and.b32 %r21, %r20, 1;
  xor.b32 %r22, %r21, 1;
PW: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3+8], %r22;
  @!%p2 bra PW;
  {LOAD}add.u32 %r20, %r20, 1;
  setp.lt.u32 %p5, %r20, 4;
  @%p5 bra P;
  bra E;
C: and.b32 %r21, %r20, 1;
CW: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], %r21;
  @!%p2 bra CW;
  {{0}}
  ld.shared.u32 %r9, [%r5];
  bar.warp.sync -1;
  {{1}}
  add.u32 %r20, %r20, 1;
  setp.lt.u32 %p5, %r20, 4;
  @%p5 bra C;
  st.global.u32 [%rd2], %r9;
E:"""
"""A ring of one stage: thread 0 fills it, and warp 1 reads it."""

KERNELS: dict[str, Faulty] = {
    "a read without a barrier": Faulty(
        "race in shared memory", "error",
        """st.shared.u32 [%r5], %r1;
  <<|bar.sync 0;>>
  xor.b32 %r8, %r4, 252;
  add.u32 %r8, %r8, %r2;
  ld.shared.u32 %r9, [%r8];
  st.global.u32 [%rd2], %r9;""",
        cure="bar.sync 0;",
    ),
    "an overwrite without a barrier": Faulty(
        "race in shared memory", "error",
        """st.shared.u32 [%r5], %r1;
  bar.sync 0;
  xor.b32 %r8, %r4, 252;
  add.u32 %r8, %r8, %r2;
  ld.shared.u32 %r9, [%r8];
  <<|bar.sync 0;>>
  st.shared.u32 [%r5], %r9;""",
        cure="bar.sync 0;",
    ),
    "all warps write one place": Faulty(
        "race in shared memory", "error",
        """st.shared.u32 [<<%r2|%r5>>], %r1;""",
    ),
    "a barrier of another number": Faulty(
        "race in shared memory", "error",
        """setp.lt.u32 %p3, %r1, 32;
  @%p3 bra A;
  bar.sync <<2|1>>, <<32|64>>;
  ld.shared.u32 %r9, [%r2];
  bra B;
A: st.shared.u32 [%r5], %r1;
  bar.arrive 1, 64;
B:""",
    ),
    "a lane that reads what another lane wrote": Faulty(
        "race between lanes", "error",
        """st.shared.u32 [%r5], %r1;
  <<shfl.sync.bfly.b32 %r9, %r1, 1, 31, -1;|bar.warp.sync -1;>>
  xor.b32 %r8, %r4, 4;
  add.u32 %r8, %r8, %r2;
  ld.shared.u32 %r9, [%r8];
  st.global.u32 [%rd2], %r9;""",
        cure="bar.warp.sync -1;",
    ),
    "a lane that writes what other lanes read": Faulty(
        "race between lanes", "error",
        """st.shared.u32 [%r5], %r1;
  bar.sync 0;
  ld.shared.u32 %r9, [%r2];
  <<|bar.sync 0;>>
  @%p1 st.shared.u32 [%r2], 5;
  bar.sync 0;
  st.global.u32 [%rd2], %r9;""",
        threads=32,
        cure="bar.warp.sync -1;",
    ),
    "lanes that write different values to one place": Faulty(
        "lanes write one place", "warning",
        """st.shared.u32 [<<%r2|%r5>>], %r1;""",
        threads=32,
    ),
    "CTAs write one place": Faulty(
        "race in global memory", "error",
        """@%p1 st.global.u32 [<<%rd1|%rd2>>], %r6;""",
        grid=2,
    ),
    "a flag without an order": Faulty(
        "race in global memory", "error",
        """setp.eq.u32 %p3, %r6, 0;
  @!%p1 bra E;
  @!%p3 bra B;
  st.global.u32 [%rd1+4], 7;
  <<st.global.u32|st.release.gpu.global.u32>> [%rd1], 77;
  bra E;
B: <<ld.global.u32|ld.acquire.gpu.global.u32>> %r9, [%rd1];
  setp.ne.u32 %p4, %r9, 77;
  @%p4 bra B;
  ld.global.u32 %r9, [%rd1+4];
E:""",
        grid=2,
    ),
    "atomics of a narrow scope": Faulty(
        "scope too narrow", "error",
        """@%p1 atom.<<cta|gpu>>.global.add.u32 %r9, [%rd1], 1;""",
        grid=2,
    ),
    "a bulk load that nobody waits for": Faulty(
        "read before it arrives", "error",
        INIT + LOAD + "<<|" + WAIT + ">>\n  ld.shared.u32 %r9, [%r5];\n  " + "<<" + WAIT + "|>>",
    ),
    "a bulk load that one thread waits for": Faulty(
        "read before it arrives", "error",
        INIT + LOAD + "@!%p1 bra REST;\n  " + WAIT + "\n  REST: <<|bar.sync 0;>>\n  ld.shared.u32 %r9, [%r5];",
        cure="insert `bar.sync 0;`",
    ),
    "a cp.async that nobody waits for": Faulty(
        "read before it arrives", "error",
        """cp.async.ca.shared.global [%r5], [%rd2], 4;
  cp.async.commit_group;
  <<|cp.async.wait_group 0;>>
  bar.sync 0;
  ld.shared.u32 %r9, [%r2];""",
        cure="cp.async.wait_all",
    ),
    "an overwrite below a bulk store": Faulty(
        "overwritten while in use", "error",
        "st.shared.u32 [%r5], %r1;\n  fence.proxy.async;\n  bar.sync 0;\n  " + STORE
        + """<<|cp.async.bulk.wait_group.read 0;>>
  st.shared.u32 [%r2], %r1;
  <<cp.async.bulk.wait_group.read 0;|>>
E:""",
        cure="cp.async.bulk.wait_group.read 0;",
    ),
    "a bulk store without a proxy fence": Faulty(
        "missing proxy fence", "error",
        "st.shared.u32 [%r5], %r1;\n  <<|fence.proxy.async;>>\n  bar.sync 0;\n  " + STORE
        + "cp.async.bulk.wait_group.read 0;\nE:",
        cure="fence.proxy.async;",
    ),
    "a product without a proxy fence": Faulty(
        "missing proxy fence", "warning",
        FILL + "<<|fence.proxy.async;>>\n  bar.sync 0;\n  " + ZEROS + DESCRIPTORS + "wgmma.fence.sync.aligned;\n  "
        + MULTIPLY + "\n  " + COMMIT,
        threads=128,
        cure="fence.proxy.async;",
    ),
    "an initialisation without a fence": Faulty(
        "initialisation not fenced", "warning",
        "@%p1 mbarrier.init.shared::cta.b64 [%r3], 1;\n  <<|@%p1 fence.mbarrier_init.release.cluster;>>\n  "
        "bar.sync 0;\n  " + LOAD + WAIT,
        cure="fence.mbarrier_init.release.cluster;",
    ),
    "an initialisation that others do not know": Faulty(
        "initialisation not known", "error",
        """@%p1 mbarrier.init.shared::cta.b64 [%r3], 64;
  <<|bar.sync 0;>>
  mbarrier.arrive.shared::cta.b64 _, [%r3];
  """ + WAIT,
        cure="bar.sync 0;",
    ),
    "an mbarrier that others still wait at": Faulty(
        "invalidated while in use", "error",
        INIT + LOAD + WAIT + "\n  <<|bar.sync 0;>>\n  @%p1 mbarrier.inval.shared::cta.b64 [%r3];",
    ),
    "data over an mbarrier": Faulty(
        "barrier overlapped by data", "error",
        "@%p1 mbarrier.init.shared::cta.b64 [%r3], 64;\n  bar.sync 0;\n  st.shared.u32 [<<%r3+4|%r2>>], 5;\n  "
        "mbarrier.arrive.shared::cta.b64 _, [%r3];\n  " + WAIT,
    ),
    "a read of nothing": Faulty(
        "never written", "warning",
        """<<|st.shared.u32 [%r5], %r1;>>
  ld.shared.u32 %r9, [%r5];""",
    ),
    "a product of what other warps copy": Faulty(
        "read before it arrives", "warning",
        "".join(f"cp.async.ca.shared.global [%r5+{512 * i}], [%rd2], 4;\n  " for i in range(8))
        + "cp.async.wait_all;\n  fence.proxy.async;\n  <<|bar.sync 0;>>\n  " + ZEROS + DESCRIPTORS
        + "wgmma.fence.sync.aligned;\n  " + MULTIPLY + "\n  " + COMMIT,
        threads=128,
    ),
    "a product without a fence": Faulty(
        "registers not fenced", "error",
        OPERANDS + "<<|wgmma.fence.sync.aligned;>>\n  " + MULTIPLY + "\n  " + COMMIT,
        threads=128,
        cure="wgmma.fence.sync.aligned;",
    ),
    "sums that are written behind the fence": Faulty(
        "registers not fenced", "error",
        OPERANDS + "wgmma.fence.sync.aligned;\n  <<add.f32 %f1, %f2, %f2;|>>\n  " + MULTIPLY + "\n  " + COMMIT,
        threads=128,
        cure="wgmma.fence.sync.aligned;",
    ),
    "sums that are read too early": Faulty(
        "registers in use", "error",
        OPERANDS + "wgmma.fence.sync.aligned;\n  " + MULTIPLY
        + "\n  <<|" + COMMIT + ">>\n  add.f32 %f9, %f1, %f2;\n  <<" + COMMIT + "|>>",
        threads=128,
        cure="wgmma.wait_group.sync.aligned 0;",
    ),
    "copies of sums that are read too early": Faulty(
        "registers in use", "error",
        OPERANDS + "wgmma.fence.sync.aligned;\n  " + MULTIPLY
        + "\n  mov.f32 %f10, %f1;\n  mov.b64 %rd9, {%f10, %f2};\n  bra.uni NEXT;\n  "
        + "NEXT: mov.b64 {%f11, %f12}, %rd9;\n  mov.f32 %f13, 0f00000000;\n  add.f32 %f14, %f13, %f13;\n  "
        + "<<|" + COMMIT + ">>\n  add.f32 %f9, %f11, %f14;\n  <<" + COMMIT + "|>>",
        threads=128,
        cure="wgmma.wait_group.sync.aligned 0;",
    ),
    "operands that are overwritten too early": Faulty(
        "overwritten while in use", "error",
        OPERANDS + "wgmma.fence.sync.aligned;\n  " + MULTIPLY + "\n  <<|" + COMMIT + "\n  bar.sync 0;>>\n  "
        + "st.shared.u32 [%r5], %r1;\n  <<" + COMMIT + "|>>",
        threads=128,
    ),
    "a map that is not released": Faulty(
        "tensor map not ordered", "error",
        INIT + POINT + f"@%p1 {REPLACE}<<|@%p1 {RELEASE}.gpu;>>\n  @%p1 {ACQUIRE}.gpu [%rd5], 128;\n  "
        + LOAD_TILE + WAIT, before=MAP_VARIABLE, cure=f"{RELEASE}.gpu;",
    ),
    "a map that is not acquired": Faulty(
        "tensor map not ordered", "error",
        INIT + POINT + f"@%p1 {REPLACE}@%p1 {RELEASE}.gpu;\n  <<|@%p1 {ACQUIRE}.gpu [%rd5], 128;>>\n  "
        + LOAD_TILE + WAIT, before=MAP_VARIABLE, cure=f"{ACQUIRE}.gpu [%rd5], 128;",
    ),
    "a map that is acquired before it is released": Faulty(
        "tensor map not ordered", "error",
        INIT + POINT + f"@%p1 {REPLACE}<<@%p1 {ACQUIRE}.gpu [%rd5], 128;|>>@%p1 {RELEASE}.gpu;\n  "
        f"<<|@%p1 {ACQUIRE}.gpu [%rd5], 128;>>\n  " + LOAD_TILE + WAIT, before=MAP_VARIABLE,
    ),
    "maps that each CTA edits in shared memory and does not acquire": Faulty(
        "tensor map not ordered", "error",
        INIT + POINT + f"""add.u32 %r8, %r2, 4096; add.u32 %r9, %r8, %r4; cvt.u64.u32 %rd6, %r4;
  add.u64 %rd6, %rd6, %rd5; mad.wide.u32 %rd5, %r6, 128, %rd5;
  ld.global.u32 %r10, [%rd6]; st.shared.u32 [%r9], %r10; bar.warp.sync -1;
  @%p1 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r8], %rd1; bar.warp.sync -1;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.cta.sync.aligned [%rd5+128], [%r8], 128;
  add.u64 %rd5, %rd5, 128;
  <<|{ACQUIRE}.cta [%rd5], 128;>>
  """ + LOAD_TILE + WAIT, before=MAP_VARIABLE.replace("map[128]", "map[384]"), threads=32, grid=2,
    ),
    "a map that is released to its own CTA": Faulty(
        "tensor map not ordered", "error",
        PAIR + POINT + f"@%p6 {REPLACE}@%p6 {RELEASE}.<<cta|cluster>>;\n  "
        "barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n  "
        f"@%p1 {ACQUIRE}.cluster [%rd5], 128;\n  " + LOAD_TILE + WAIT, before=MAP_VARIABLE,
        grid=2, cluster=2,
    ),
    "a store under way at the exit": Faulty(
        "store under way at exit", "error",
        "st.shared.u32 [%r5], %r1;\n  fence.proxy.async;\n  bar.sync 0;\n  " + STORE
        + "<<|cp.async.bulk.wait_group.read 0;>>\nE:",
        cure="cp.async.bulk.wait_group.read 0;",
    ),
    "a load under way at the exit": Faulty(
        "load under way at exit", "warning", INIT + LOAD + "<<|" + WAIT + ">>",
    ),
    "a copy to a peer under way at the exit": Faulty(
        "store under way at exit", "error",
        f"""{INIT}@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 256;
  st.shared.u32 [%r5+1024], %r1;
  fence.proxy.async;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  mov.u32 %r11, %cluster_ctarank;
  xor.b32 %r11, %r11, 1;
  mapa.shared::cluster.u32 %r12, %r2, %r11;
  mapa.shared::cluster.u32 %r13, %r3, %r11;
  add.u32 %r14, %r2, 1024;
  @%p1 {BULK.replace("global", "shared::cta")} [%r12], [%r14], 256, [%r13];
  {WAIT}
  <<|barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;>>""",
        grid=2, cluster=2,
    ),
    "a peer that exits": Faulty(
        "exit before a peer is done", "error",
        """st.shared.u32 [%r5], %r1;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  mov.u32 %r11, %cluster_ctarank;
  xor.b32 %r11, %r11, 1;
  mapa.shared::cluster.u32 %r12, %r5, %r11;
  ld.shared::cluster.u32 %r13, [%r12];
  st.global.u32 [%rd2], %r13;
  <<|barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;>>""",
        grid=2, cluster=2,
        cure="barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    ),
    "a peer's memory without a barrier": Faulty(
        "race in shared memory", "error",
        """st.shared.u32 [%r5], %r1;
  <<|barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;>>
  mov.u32 %r11, %cluster_ctarank;
  xor.b32 %r11, %r11, 1;
  mapa.shared::cluster.u32 %r12, %r5, %r11;
  ld.shared::cluster.u32 %r13, [%r12];
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;""",
        grid=2, cluster=2,
        cure="barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    ),
    "a stage that is filled while others read it": Faulty(
        "race in shared memory", "error",
        INIT + LOAD + WAIT + """
  ld.shared.u32 %r9, [%r5];
  <<|bar.sync 0;>>
  """ + LOAD + WAIT.replace("W", "V").replace("%r3], 0", "%r3], 1") + "\n  st.global.u32 [%rd2], %r9;",
        cure="bar.sync 0;",
    ),
    "a fragment of A that is written too early": Faulty(
        "registers in use", "error",
        OPERANDS + FRAGMENTS + "wgmma.fence.sync.aligned;\n  " + BY_REGISTERS + "\n  <<|" + COMMIT
        + ">>\n  add.u32 %r31, %r31, 1;\n  <<" + COMMIT + "|>>",
        threads=128,
        cure="wgmma.wait_group.sync.aligned 0;",
    ),
    "a fragment of A that is written behind the fence": Faulty(
        "registers not fenced", "error",
        OPERANDS + FRAGMENTS + "wgmma.fence.sync.aligned;\n  <<add.u32 %r31, %r31, 1;|>>\n  " + BY_REGISTERS
        + "\n  " + COMMIT,
        threads=128,
        cure="wgmma.fence.sync.aligned;",
    ),
    "a multicast to a peer that exits": Faulty(
        "load under way at exit", "error",
        PAIR + f"""@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 1024;
  @%p6 {BULK}.multicast::cluster [%r2], [%rd1], 1024, [%r3], %rs1;
  <<@%p5 bra E;|>>
  """ + WAIT + "\nE:",
        grid=2, cluster=2,
    ),
    "an arrival at a peer that exits": Faulty(
        "exit before a peer is done", "error",
        PAIR + """mapa.shared::cluster.u32 %r12, %r3, 1;
  @%p6 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];
  @!%p5 bra E;
  <<bra E;|>>
  """ + WAIT + "\nE:",
        grid=2, cluster=2,
        cure="barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    ),
    "a stage that is released before it is read": Faulty(
        "released before the read", "error",
        STAGE.format(f"<<@%p4 {RELEASE_STAGE}|>>", f"<<|@%p4 {RELEASE_STAGE}>>"),
        cure="remove `@%p4 mbarrier.arrive.shared::cta.b64 _, [%r3+8];`",
    ),
    "a stage that is released twice": Faulty(
        "arrival not ordered", "error",
        STAGE.format("", f"@%p4 {RELEASE_STAGE}\n  <<@%p4 {RELEASE_STAGE}|>>").replace("%r20, 4", "%r20, 1"),
        cure="remove `@%p4 mbarrier.arrive.shared::cta.b64 _, [%r3+8];`",
    ),
}  # fmt: skip
"""Name -> kernel."""
