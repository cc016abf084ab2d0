"""Time of single instructions on the machine: what a longer kernel takes more than a short one.

    python -m benchmarks.machine.instruction_times [--rounds 9]

Each kernel has a loop with 8 of an instruction, in one warp or one warpgroup. A row has the least time of 25 iterations
minus the least time of 1, over the 192 instructions between.
"""

from __future__ import annotations

import argparse
import time

import cute_py as cute

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
UNROLLED, FEW, MANY = 8, 1, 25
LOOP = """mov.u32 %n, 0; ld.param.u32 %m, [count];
    LOOP: {body} add.u32 %n, %n, 1; setp.lt.u32 %again, %n, %m; @%again bra LOOP;"""
REGISTERS = ".reg .b32 %n, %m; .reg .pred %again;"


def shuffle() -> tuple[str, int]:
    """One warp; each shuffle takes what the last gave."""
    loop = LOOP.format(body="shfl.sync.bfly.b32 %r1, %r1, 1, 31, -1;" * UNROLLED)
    text = f"""{HEAD}.entry k(.param .u32 count) .reqntid 32 {{
    .reg .b32 %r<2>; {REGISTERS} mov.u32 %r1, %tid.x; {loop} ret; }}"""
    return text, 0


def multiply() -> tuple[str, int]:
    """One warpgroup: wgmma m64n64k16, bf16 with float32 accumulators, random operands in shared memory."""
    d = ", ".join(f"%f{i}" for i in range(32))
    start = "".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(32))
    a, b = ((at >> 4) | (1 << 16) | (64 << 32) | (1 << 62) for at in (1024, 1024 + 8192))
    one = f"wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{{d}}}, {a}, {b}, 1, 1, 1, 0, 0;"
    body = f"wgmma.fence.sync.aligned; {one * UNROLLED} wgmma.commit_group.sync.aligned;"
    loop = LOOP.format(body=f"{body} wgmma.wait_group.sync.aligned 0;")
    text = f"""{HEAD}.extern .shared .align 1024 .b8 held[];
    .entry k(.param .u32 count) .reqntid 128 {{ .reg .f32 %f<32>; .reg .b32 %r<9>; {REGISTERS} {start}
    mov.u32 %r1, held; mov.u32 %r2, %tid.x; shl.b32 %r2, %r2, 2; add.u32 %r1, %r1, %r2; mov.u32 %r3, 0;
    FILL: mul.lo.u32 %r4, %r1, 0x9E3779B1; shr.u32 %r5, %r4, 15; xor.b32 %r4, %r4, %r5; mul.lo.u32 %r4, %r4, 0x85EBCA6B;
    and.b32 %r4, %r4, 0x83FF83FF; or.b32 %r4, %r4, 0x3C003C00; st.shared.u32 [%r1], %r4;
    add.u32 %r1, %r1, 512; add.u32 %r3, %r3, 1;
    setp.lt.u32 %again, %r3, 32; @%again bra FILL; bar.sync 0; {loop} ret; }}"""
    return text, 16384


def least(text: str, shared: int, count: int, rounds: int) -> float:
    """Seconds of the processor in the fastest run."""
    found = []
    for _ in range(rounds):
        start = time.process_time()
        run = cute.run_ptx(text, args=[count], dynamic_shared=shared, schedule="eager")
        found.append(time.process_time() - start)
        assert run.ok, run.explain()
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.machine.instruction_times")
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    for name, made in (("shfl.sync.bfly.b32, one warp", shuffle), ("wgmma m64n64k16 bf16, one warpgroup", multiply)):
        text, shared = made()
        few, many = (least(text, shared, count, rounds) for count in (FEW, MANY))
        print(f"| {name} | {1e6 * (many - few) / (UNROLLED * (MANY - FEW)):.1f} us |", flush=True)


if __name__ == "__main__":
    main()
