"""What the judges say of tcgen05: each fault in a small kernel, beside the same kernel without it, which is clean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_py as cute
from tests.machine.tensor_kernels import FREE, kernel, run
from tests.machine.test_tensor_matrices import descriptor, multiply, operands, scaled_case
from tests.shares import one_in

_, _, IMAGE, LOADS = operands("f16", "f16", 128, 32, 16)
GOOD = LOADS + multiply(descriptor("f16", "f16", 128, 32), "f16")
BEFORE, AFTER = "tcgen05.fence::before_thread_sync;", "tcgen05.fence::after_thread_sync;"
STORED, LOADED = "tcgen05.wait::st.sync.aligned;", "tcgen05.wait::ld.sync.aligned;"
AGAIN = """tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r90}}, [%r9];
  {0} tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
  setp.ne.u32 %p5, %r1, 96; @%p5 bra MADE; shr.u32 %r17, %r4, 4; and.b32 %r17, %r17, 0x3FFF; cvt.u64.u32 %rd10, %r17;
  {1}
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [other];
MADE: mbarrier.try_wait.parity.shared.b64 %p6, [other], 0; @!%p6 bra MADE; tcgen05.fence::after_thread_sync;"""
"""Loads of all warps, and a product of warp 3 into the same columns."""


def again(wait: str) -> str:
    return AGAIN.format(wait, GOOD)


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str, str, set[str]]] = {
    "a load before the commit has arrived": (
        {"wait": "bar.sync 0;"}, {},
        "tensor memory race", "error", "reads columns 0 to 15 of tensor memory, which tcgen05.mma", {"other_line"},
    ),
    "an accumulator without a commit": (
        {"commit": "", "wait": "bar.sync 0;"}, {},
        "tensor memory race", "error", "wait for the mbarrier of a commit that follows it", {"other_line"},
    ),
    "columns that are not allocated": (
        {"columns": 32}, {"columns": 64}, "tensor memory", "error", "columns 32..47 are not allocated", set(),
    ),
    "columns that are not given back": (
        {"free": ""}, {}, "tensor memory", "error", "512 columns of tensor memory are still allocated", set(),
    ),
    "columns that are given back in part": (
        {"free": FREE.format(group=1, columns=256)}, {}, "tensor memory", "error", "tcgen05.dealloc of 256 columns",
        set(),
    ),
    "lanes of another warp": (
        {"after": "xor.b32 %r9, %r9, 0x200000;"}, {}, "tensor memory", "error", "reaches lanes 0..31", set(),
    ),
    "two cta_groups": (
        {"free": FREE.format(group=2, columns=512)}, {}, "tensor memory", "error", "cta_group::2 after cta_group::1",
        set(),
    ),
    "a load that no wait covers": (
        {"after": again("")}, {"after": again(LOADED)},
        "tensor memory race", "warning", "its warp must execute tcgen05.wait::ld first", {"other_line"},
    ),
}  # fmt: skip


def check(wrong: Any, right: Any, rule: str, severity: str, words: str, facts: set[str]) -> None:
    """The wrong run has one finding, with its fields; the right one has none. Each is a run."""
    assert not right.diagnostics, right.explain()
    one = wrong.diagnostics[0]
    assert [(x.rule, x.severity) for x in wrong.diagnostics] == [(rule, severity)], wrong.explain()
    assert words in one.message
    assert one.source.startswith("PTX ISA 9.0, tcgen05")
    assert {"line", "instruction", *facts} <= set(one.facts)


@pytest.mark.parametrize("what", one_in(2, CASES))
def test_faults(what: str) -> None:
    wrong, right, *said = CASES[what]
    runs = [run(kernel(GOOD, **parts), IMAGE, schedule="lazy")[0] for parts in (wrong, right)]
    check(runs[0], runs[1], *said)


# ---- fences and waits ------------------------------------------------------------------------------------------------

TAKEN_OUT = {
    "no fence before the others go on": (
        BEFORE, 0, "missing tcgen05 fence", "warning", f"executes no {BEFORE[:-1]} before its arrival",
        {"fence", "other_line", "threads"},
    ),
    "no fence behind bar.sync": (
        AFTER, 0, "missing tcgen05 fence", "warning", f"executes no {AFTER[:-1]} after its wait",
        {"fence", "other_line", "threads"},
    ),
    "no fence behind the wait for a commit": (
        AFTER, 1, "missing tcgen05 fence", "warning", f"executes no {AFTER[:-1]} after its wait",
        {"fence", "other_line", "threads"},
    ),
    "no wait::st": (
        STORED, 0, "tensor memory race", "error", "its warp must execute tcgen05.wait::st first", {"other_line"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", TAKEN_OUT)
def test_what_is_missing_between_threads(what: str) -> None:
    part, number, *said = TAKEN_OUT[what]
    text = kernel(GOOD)
    pieces = text.split(part)
    shorter = part.join(pieces[: number + 1]) + part.join(pieces[number + 1 :])
    assert len(shorter) == len(text) - len(part)
    check(run(shorter, IMAGE, schedule="eager")[0], run(text, IMAGE, schedule="eager")[0], *said)


# ---- scale factors, A in tensor memory -------------------------------------------------------------------------------

MXF4 = "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X [%r8], %rd11, %rd12, %r40, {0}, %p7;"


def scaled(change: Any = None, places: str = "[%r50], [%r51]", first: int = 0, more: int = 0) -> Any:
    """The run of a product with scales of A in columns 128 to 131 and of B in columns 141 to 143, the last written."""
    _, image, tmem, body = scaled_case("mxf4", "e2m1", "ue8m0", 2, 64, first)
    tmem[:, 141:144] = tmem[:, 140:143].copy()
    body = body.replace("add.u32 %r51, %r8, 140;", "add.u32 %r51, %r8, 141;")
    if more:
        head, _, tail = body.partition("mov.b32 %r40, ")
        value, _, rest = tail.partition(";")
        body = f"{head}mov.b32 %r40, {int(value, 0) ^ more:#x};{rest}"
    if change is not None:
        change(tmem)
    return run(kernel(body + MXF4.format(places), shown=144), image, tmem, schedule="eager")[0]


def _one_group(tmem: Any) -> None:
    tmem[40, 129] ^= 1


SCALES = {
    "in one group of lanes": (
        {"change": _one_group}, "tcgen05.mma operand", "the scales of A differ between groups of 32 lanes",
    ),
    "those of A and B exchanged": (
        {"places": "[%r51], [%r50]"}, "tensor memory never written",
        "reads the scales of A in lane 0, column 144 of tensor memory, which no instruction has written",
    ),
    "in a byte that the kind does not take": (
        {"more": 1 << 4}, "tcgen05.mma operand", "scale data ID 1 of B; must be a multiple of 2 below 4",
    ),
    "of another type": ({"more": 1 << 23}, "instruction descriptor", "kind::mxf4 takes only ue8m0 scales"),
}  # fmt: skip


@pytest.mark.parametrize("what", one_in(2, SCALES))
def test_scales_in_the_wrong_place(what: str) -> None:
    change, rule, words = SCALES[what]
    wrong, right = scaled(**change), scaled()
    assert not right.diagnostics, right.explain()
    found = [one for one in wrong.diagnostics if one.rule == rule]
    assert found and not wrong.ok, wrong.explain()
    assert words in found[0].message
    assert found[0].facts["line"]


def test_an_operand_in_tensor_memory_that_nothing_has_written() -> None:
    for column, rules in ((48, []), (64, ["tensor memory never written"])):
        text = f"{LOADS}add.u32 %r50, %r8, {column};\n  " + multiply(descriptor("f16", "f16", 128, 32), "f16")
        found, _ = run(kernel(text.replace("%rd11, %rd12, %r40", "[%r50], %rd12, %r40")), IMAGE, schedule="eager")
        assert [one.rule for one in found.diagnostics] == rules, found.explain()
        assert all("reads A in lane 0, column 64" in one.message for one in found.diagnostics)


# ---- descriptors beside the tiles of tensor copies -------------------------------------------------------------------

TILES = """.version 8.8
.target sm_100a
.address_size 64
.shared .align 1024 .b8 tiles[26624]; .shared .align 8 .b64 bar; .shared .align 8 .b64 done; .shared .align 4 .b32 base;
.visible .entry k(.param .u64 out, .param .align 64 .b8 a[128], .param .align 64 .b8 b[128]) .reqntid 128 {
  .reg .pred %p<8>; .reg .b32 %r<60>; .reg .b64 %rd<12>;
  mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; mov.u32 %r4, tiles; setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
  mbarrier.init.shared.b64 [bar], 1; mbarrier.init.shared.b64 [done], 1; fence.mbarrier_init.release.cluster;
READY: setp.ne.u32 %p2, %r2, 0; @%p2 bra ALLOCATED;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 64;
  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
ALLOCATED: bar.sync 0; ld.shared.b32 %r8, [base]; @%p1 bra WAIT;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 24576; mov.b64 %rd2, a; mov.b64 %rd3, b; mov.u32 %r5, 0;
  add.u32 %r6, %r4, 16384;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd2, {%r5, %r5}], [bar];
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r6], [%rd3, {%r5, %r5}], [bar];
WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra WAIT;
  @%p1 bra MADE;
  shr.u32 %r10, %r4, 4; or.b32 %r10, %r10, 0x10000; add.u32 %r11, %r10, 1024; mov.u32 %r12, HIGH;
  add.u32 %r11, %r11, MORE; mov.u32 %r13, IDESC; mov.u32 %r14, 0;
AGAIN: setp.ne.u32 %p4, %r14, 0; mov.b64 %rd4, {%r10, %r12}; mov.b64 %rd5, {%r11, %r12};
  tcgen05.mma.cta_group::1.kind::f16 [%r8], %rd4, %rd5, %r13, %p4;
  add.u32 %r10, %r10, 2; add.u32 %r11, %r11, 2; add.u32 %r14, %r14, 1; setp.lt.u32 %p5, %r14, 4; @%p5 bra AGAIN;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
MADE: mbarrier.try_wait.parity.shared.b64 %p3, [done], 0; @!%p3 bra MADE;
  tcgen05.fence::after_thread_sync; shl.b32 %r15, %r2, 21; add.u32 %r15, %r15, %r8;
  ld.param.u64 %rd6, [out]; mul.wide.u32 %rd7, %r1, 256; add.s64 %rd6, %rd6, %rd7; mov.u32 %r14, 0;
NEXT: tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r20, %r21, %r22, %r23}, [%r15]; tcgen05.wait::ld.sync.aligned;
  st.global.v4.b32 [%rd6], {%r20, %r21, %r22, %r23}; add.s64 %rd6, %rd6, 16; add.u32 %r15, %r15, 4;
  add.u32 %r14, %r14, 1; setp.lt.u32 %p5, %r14, COUNT; @%p5 bra NEXT;
  bar.sync 0; @%p2 bra END; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, 64;
END: ret;
}
"""
FLOAT16 = 6


def tiles(
    m: int = 128, n: int = 64, element: str = "f16", high: int = 0x40004040, more: int = 0, swizzle: int = 3
) -> tuple[Any, bool]:
    """A product of tiles (128, 64) and (64, 64) that tensor copies wrote, and whether it is right."""
    dice = np.random.default_rng(6)
    a, b = (dice.integers(-3, 4, (rows, 64)).astype(np.float16) for rows in (128, 64))
    out = np.zeros((128, 64), np.float32)
    idesc = descriptor(element, element, m, n)
    text = TILES
    for name, value in (("HIGH", high), ("IDESC", idesc), ("MORE", more), ("COUNT", n // 4)):
        text = text.replace(name, str(value))
    maps = [cute.tma.TensorMapTiled(FLOAT16, 0, (64, rows), (128,), (64, rows), swizzle=swizzle) for rows in (128, 64)]
    found = cute.run_ptx(text, args=[out, (maps[0], a), (maps[1], b)], schedule="eager")
    return found, bool((out == a.astype(np.float32) @ b.astype(np.float32).T).all())


TILE_FAULTS = {
    "N smaller than B": ({"n": 32}, "tile read in part", "warning"),
    "M smaller than A": ({"m": 64}, "tile read in part", "warning"),
    "another type": ({"element": "bf16"}, "instruction descriptor", "error"),
    "another swizzle of the descriptor": ({"high": 0x80004040}, "descriptor swizzle", "error"),
    "another swizzle of the map": ({"swizzle": 0}, "descriptor swizzle", "error"),
    "B that begins in another row": ({"more": 8}, "descriptor address", "error"),
}  # fmt: skip


@pytest.mark.parametrize("what", TILE_FAULTS)
def test_instruction_descriptors_beside_the_tiles(what: str) -> None:
    change, rule, severity = TILE_FAULTS[what]
    found, right = tiles(**change)
    assert (rule, severity) in [(one.rule, one.severity) for one in found.diagnostics], found.explain()
    assert not right


def test_tiles_that_agree() -> None:
    found, right = tiles()
    assert right
    assert not found.diagnostics, found.explain()
