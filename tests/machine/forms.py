"""Single instructions on rows of operands: a kernel around each, run by the machine."""

from __future__ import annotations

from typing import Any

import numpy as np

from cute_py import run_ptx

THREADS = 256


def kernel(body: str, *, threads: int = THREADS) -> str:
    """A kernel that reads 64 bits of a, b and c for each thread, runs a body, and stores 64 bits of d.

    The body has %a, %b, %c, %d of 64 bits, their lower halves %ra, %rb, %rc, %rd and %ha, %hb, %hc, %hd, the same as
    floats %fa ..., %da ..., and predicates %p, %q. What it writes to %d is stored.
    """
    return f""".version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd) .reqntid {threads}
{{
  .reg .b64 %a, %b, %c, %d, %at, %off; .reg .b32 %ra, %rb, %rc, %rd, %t, %u; .reg .b16 %ha, %hb, %hc, %hd;
  .reg .f32 %fa, %fb, %fc, %fd; .reg .f64 %da, %db, %dc, %dd; .reg .pred %p, %q; .reg .b32 %i, %g;
  mov.u32 %i, %tid.x; mov.u32 %g, %ctaid.x; mad.lo.u32 %i, %g, {threads}, %i; mul.wide.u32 %off, %i, 8;
  ld.param.u64 %at, [pa]; add.s64 %at, %at, %off; ld.global.b64 %a, [%at];
  ld.param.u64 %at, [pb]; add.s64 %at, %at, %off; ld.global.b64 %b, [%at];
  ld.param.u64 %at, [pc]; add.s64 %at, %at, %off; ld.global.b64 %c, [%at];
  cvt.u32.u64 %ra, %a; cvt.u32.u64 %rb, %b; cvt.u32.u64 %rc, %c;
  cvt.u16.u64 %ha, %a; cvt.u16.u64 %hb, %b; cvt.u16.u64 %hc, %c;
  mov.b32 %fa, %ra; mov.b32 %fb, %rb; mov.b32 %fc, %rc; mov.b64 %da, %a; mov.b64 %db, %b; mov.b64 %dc, %c;
  mov.b64 %d, 0; mov.b32 %rd, 0; mov.b16 %hd, 0;
  {body}
  ld.param.u64 %at, [pd]; add.s64 %at, %at, %off; st.global.b64 [%at], %d;
  ret;
}}
"""


DONE = {
    "rd": "cvt.u64.u32 %d, %rd;",
    "hd": "cvt.u64.u16 %d, %hd;",
    "fd": "mov.b32 %rd, %fd; cvt.u64.u32 %d, %rd;",
    "dd": "mov.b64 %d, %dd;",
    "p": "selp.u64 %d, 1, 0, %p;",
    "d": "",
}
"""Register that an instruction writes -> how it comes to %d."""


def run_form(instruction: str, a: Any, b: Any, c: Any, schedule: str = "eager") -> Any:
    """What an instruction gives for rows of 64 bits; the last writes one of the registers of `DONE`."""
    last = [part for part in instruction.split(";") if part.strip()][-1]
    name = last.split("%", 1)[1].split(",")[0].split("|")[0].strip()
    rows = [np.ascontiguousarray(x, np.uint64) for x in np.broadcast_arrays(a, b, c)]
    count = -(-len(rows[0]) // THREADS) * THREADS
    padded = [np.resize(x, count) for x in rows]
    out = np.zeros(count, np.uint64)
    found = run_ptx(
        kernel(f"{instruction} {DONE[name]}"), grid=count // THREADS, args=[*padded, out], schedule=schedule
    )
    found.raise_for_diagnostics()
    return out[: len(rows[0])]
