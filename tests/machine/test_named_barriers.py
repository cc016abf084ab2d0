"""Rounds of barriers with a count: each warp arrives alone, and an arrival must follow the round before. Lanes that
exit before an instruction whose mask is in a register."""

from __future__ import annotations

import numpy as np

import cute_py as cute
from tests.each import each_of

HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) .reqntid 256
{
.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<3>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 7; add.u32 %r3, %r2, 1; setp.eq.u32 %p1, %r2, 0;
"""
EXCHANGE = """
@%p1 bra FIRST;
bar.sync 1, 256;
bar.arrive 2, 256;
bar.sync 1, 256;
bra DONE;
FIRST: bar.arrive 1, 256;
bar.sync 2, 256;
bar.arrive 1, 256;
DONE:"""
IN_TURNS = "@%p1 bar.sync 1, 128;\nbar.sync 0;\n@!%p1 bar.sync 1, 128;"
FIRST_TURN = """
@!%p1 bra NEXT;
bar.arrive 1, 256;
NEXT: bar.sync %r3, 256;
sub.u32 %r4, 3, %r3;
bar.arrive %r4, 256;
"""
"""Two groups take turns. The first one gives itself the first turn, as in FlashAttention-3: its warps arrive and then
wait in one round."""
SCHEDULES = ("both", 1, 2, 3)


def rules(body: str, schedule: str | int) -> list[str]:
    run = cute.run_ptx(f"{HEAD}{body}\nret;\n}}\n", args=[np.zeros(8, np.uint32)], schedule=schedule)
    return [one.rule for one in run.diagnostics]


@each_of(
    "body", ["bar.sync %r3, 128;\nbar.sync %r3, 128;", EXCHANGE, IN_TURNS, FIRST_TURN, "bar.sync 0;\nbar.sync 1, 256;"]
)
def test_rounds_that_are_in_order(body: str) -> None:
    assert [rules(body, schedule) for schedule in SCHEDULES] == [[]] * 4


@each_of(
    ("body", "rule"),
    [
        ("bar.sync 1, 128;", "round not ordered"),  # two groups use one barrier
        ("bar.sync %r3, 64;", "round not ordered"),
        (EXCHANGE.replace("256", "192"), "round not ordered"),
        (EXCHANGE.replace("256", "192"), "hang"),
        (
            "and.b32 %r4, %r1, 16; setp.eq.u32 %p2, %r4, 0; @%p2 bar.arrive 1, 512; @!%p2 bar.sync 1, 512;",
            "divergent aligned instruction",
        ),
        ("bar.sync 1, 192;", "hang"),  # 256 arrivals: one round, and two warps that wait
        (EXCHANGE.replace("bar.sync 2, 256;", ""), "round not ordered"),
    ],
)
def test_rounds_that_are_not_in_order(body: str, rule: str) -> None:
    assert rule in rules(body, "both")


@each_of(("mask", "found"), [("-1", ["exited lanes"]), ("0xfffffff7", []), ("0x0000fff7", [])])
def test_lanes_that_exit_before_a_mask_in_a_register(mask: str, found: list[str]) -> None:
    lanes = f"and.b32 %r4, %r1, 31; setp.eq.u32 %p2, %r4, 3; @%p2 ret; mov.u32 %r5, {mask};"
    rest = "setp.ge.u32 %p3, %r4, 16; @%p3 ret;" if mask == "0x0000fff7" else ""
    assert rules(f"{lanes} {rest} vote.sync.any.pred %p2, %p1, %r5;", "both") == found
