"""Kernels with tcgen05 instructions around tensor memory that is filled before and read back after."""

from __future__ import annotations

from typing import Any

import numpy as np

import cute_py as cute
from cute_py.atom import SmemSwizzle, find_smem_operand
from cute_py.atom.smem_descriptor import Major
from cute_py.layout import Int, tile_to_shape
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.layout.swizzle import Swizzle

THREADS = 128
BUFFER = 65536
COLUMNS = 512

KERNEL = """.version 8.8
.target sm_103a
.address_size 64
.visible .entry k(.param .u64 image, .param .u64 tmem, .param .u64 out) .reqntid 128 {directives}
{{
  .reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %r<400>; .reg .b64 %rd<40>; .reg .f32 %f<4>;
  .shared .align 1024 .b8 buffer[{buffer}]; .shared .align 8 .b64 bar; .shared .align 8 .b64 other;
  .shared .align 4 .b32 base;
  mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; shr.u32 %r3, %r1, 5; mov.u32 %r4, buffer;
  // the image of this CTA's shared memory
  ld.param.u64 %rd1, [image]; mul.lo.u32 %r5, %r2, {buffer}; cvt.u64.u32 %rd2, %r5; add.s64 %rd1, %rd1, %rd2;
  shl.b32 %r6, %r1, 4;
COPY: setp.ge.u32 %p1, %r6, {used}; @%p1 bra COPIED;
  cvt.u64.u32 %rd3, %r6; add.s64 %rd4, %rd1, %rd3; ld.global.v4.b32 {{%r10, %r11, %r12, %r13}}, [%rd4];
  add.u32 %r7, %r4, %r6; st.shared.v4.b32 [%r7], {{%r10, %r11, %r12, %r13}};
  add.u32 %r6, %r6, 2048; bra COPY;
COPIED:
  setp.ne.u32 %p2, %r1, 0; @%p2 bra BEGIN; mbarrier.init.shared.b64 [bar], 1; mbarrier.init.shared.b64 [other], 1;
BEGIN: setp.ne.u32 %p3, %r3, 0; @%p3 bra ALLOCATED;
  tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [base], {columns};
  tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned;
ALLOCATED: fence.proxy.async; bar.sync 0; ld.shared.b32 %r8, [base];
  // lane and row of this thread, and its row of the array of tensor memory
  shl.b32 %r9, %r3, 21; add.u32 %r9, %r9, %r8;
  mad.lo.u32 %r14, %r2, 128, %r1; mul.wide.u32 %rd5, %r14, {stride};
  ld.param.u64 %rd6, [tmem]; add.s64 %rd6, %rd6, %rd5; ld.param.u64 %rd7, [out]; add.s64 %rd7, %rd7, %rd5;
  mov.u32 %r15, 0;
FILL: setp.ge.u32 %p4, %r15, {shown}; @%p4 bra FILLED;
  mul.wide.u32 %rd8, %r15, 4; add.s64 %rd9, %rd6, %rd8;
  {load} add.u32 %r16, %r9, %r15;
  tcgen05.st.sync.aligned.32x32b.x16.b32 [%r16], {{{words}}};
  add.u32 %r15, %r15, 16; bra FILL;
FILLED: tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; {meet}
  tcgen05.fence::after_thread_sync;
  setp.ne.u32 %p5, %r14, {issuer}; @%p5 bra ISSUED;
  shr.u32 %r17, %r4, 4; and.b32 %r17, %r17, 0x3FFF; cvt.u64.u32 %rd10, %r17;
  {body}
  {commit}
ISSUED: {wait}
  tcgen05.fence::after_thread_sync;
  {after}
  mov.u32 %r15, 0;
READ: setp.ge.u32 %p4, %r15, {shown}; @%p4 bra DONE;
  add.u32 %r16, %r9, %r15; tcgen05.ld.sync.aligned.32x32b.x16.b32 {{{words}}}, [%r16];
  tcgen05.wait::ld.sync.aligned; mul.wide.u32 %rd8, %r15, 4; add.s64 %rd9, %rd7, %rd8;
  {store}
  add.u32 %r15, %r15, 16; bra READ;
DONE: {meet}
  @%p3 bra END;
  {free}
END: ret;
}}
"""
WORDS = [f"%r{200 + i}" for i in range(16)]
QUARTERS = [(16 * i, ", ".join(WORDS[4 * i : 4 * i + 4])) for i in range(4)]
LOAD = " ".join(f"ld.global.v4.b32 {{{names}}}, [%rd9+{at}];" for at, names in QUARTERS)
STORE = " ".join(f"st.global.v4.b32 [%rd9+{at}], {{{names}}};" for at, names in QUARTERS)
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];"
COMMIT_PAIR = """mov.u32 %r18, bar; mov.u16 %h1, 3;
  tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r18], %h1;"""
WAIT = "WAIT: mbarrier.try_wait.parity.shared.b64 %p6, [bar], 0; @!%p6 bra WAIT;"
FREE = "tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %r8, {columns};"


def kernel(body: str, *, group: int = 1, shown: int = 64, used: int = 32768, columns: int = 512, **parts: str) -> str:
    """A kernel that fills tensor memory, runs a body in one thread, and reads tensor memory back.

    The body has %r8, the address of tensor memory, %r4 that of the shared buffer, %rd10 the same in units of 16 bytes.

    Args:
        shown: columns that are filled and read, a multiple of 16. used: bytes of the buffer that are filled.
    """
    pair = group == 2
    meet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" if pair else "bar.sync 0;"
    given: dict[str, Any] = {
        "commit": COMMIT_PAIR if pair else COMMIT, "wait": WAIT, "after": "", "meet": meet, "issuer": "0",
        "load": LOAD, "store": STORE, "words": ", ".join(WORDS),
        "free": FREE.format(group=group, columns=columns), "directives": ".reqnctapercluster 2" if pair else "",
    } | parts  # fmt: skip
    return KERNEL.format(
        body=body, group=group, shown=shown, used=used, columns=columns, buffer=BUFFER, stride=4 * COLUMNS, **given
    )


def run(text: str, image: Any = None, tmem: Any = None, *, ctas: int = 1, schedule: str | int = "both") -> Any:
    """(run, words (CTAs, 128, 512) of tensor memory as it was read)."""
    shared = np.zeros((ctas, BUFFER), np.uint8)
    if image is not None:
        held = np.asarray(image, np.uint8).reshape(ctas, -1)
        shared[:, : held.shape[1]] = held
    cells = np.zeros((ctas, THREADS, COLUMNS), np.uint32)
    if tmem is not None:
        cells[...] = tmem
    out = np.zeros_like(cells)
    found = cute.run_ptx(text, grid=ctas, args=[shared, cells, out], schedule=schedule)
    return found, out


# ---- operands in shared memory ---------------------------------------------------------------------------------------


def layout_of(major: Major, swizzle: SmemSwizzle, bits: int, shape: tuple[int, int]) -> Any:
    """The atom of a swizzle repeated over (rows, K)."""
    width = swizzle.row_bytes * 8 // bits
    depth = 4 if swizzle is SmemSwizzle.B128_ATOM32 else 8
    b, base, shift = swizzle.cute
    r, w, one = Int(depth), Int(width), Int(1)
    plain = Layout((r, w), (w, one)) if major is Major.K else Layout((w, r), (one, w))
    atom = ComposedLayout(Swizzle(b, base - (bits // 8).bit_length() + 1, shift), Int(0), plain)
    return tile_to_shape(atom, (Int(shape[0]), Int(shape[1])))


def stored(codes: Any, major: Major, swizzle: SmemSwizzle, bits: int, address: int) -> tuple[Any, list[int]]:
    """Bytes of an operand from its address on, and the descriptor of each 32 bytes of K.

    Args:
        codes: (rows, K) unsigned. address: bytes from the start of the buffer.
    """
    layout = layout_of(major, swizzle, bits, codes.shape)
    places = np.asarray(cute.offsets(layout)).reshape(codes.shape)
    raw = np.zeros(codes.size, f"uint{bits}")
    raw[places] = codes
    dtype = {8: "uint8", 16: "bfloat16", 32: "float32"}[bits]
    operand = find_smem_operand(layout, dtype, major=major, swizzle=swizzle)
    return raw.view(np.uint8), [operand.descriptor(address, i).encode() for i in range(len(operand.starts))]


def image_of(*operands: tuple[int, Any]) -> Any:
    """A buffer with operands at their addresses."""
    found = np.zeros(BUFFER, np.uint8)
    for address, raw in operands:
        found[address : address + len(raw)] = raw
    return found


def load_descriptors(a: int, b: int) -> str:
    """%rd11 and %rd12: matrix descriptors of buffers at addresses from the start of the buffer."""
    return (
        f"mov.b64 %rd11, {a:#x}; add.s64 %rd11, %rd11, %rd10; mov.b64 %rd12, {b:#x}; add.s64 %rd12, %rd12, %rd10;\n  "
    )
