"""Forms that few compilers write: lop3 with a predicate, exchanges of 128 bits, remote reductions, mixed precision."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py.errors import InvalidValueError
from tests.each import each_of
from tests.machine.forms import kernel, run_form
from tests.machine.test_integers import A, B, C

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"


@each_of("operation", ["and", "or"])
@each_of("table", [0x00, 0x80, 0x96, 0xE8, 0x1B])
def test_lop3_with_a_predicate(operation: str, table: int) -> None:
    body = (
        f"setp.gt.u32 %q, %rc, 5; lop3.{operation}.b32 %rd|%p, %ra, %rb, %rc, {table}, %q; "
        "selp.u32 %t, 1, 0, %p; mov.b64 %d, {%rd, %t};"
    )
    found = run_form(body, A, B, C)
    for x, y, z, word in zip(A.tolist(), B.tolist(), C.tolist(), found.tolist(), strict=True):
        bits = [table >> (4 * (x >> i & 1) + 2 * (y >> i & 1) + (z >> i & 1)) & 1 for i in range(32)]
        value = sum(bit << i for i, bit in enumerate(bits))
        other = (z & 0xFFFFFFFF) > 5
        flag = (value != 0 and other) if operation == "and" else (value != 0 or other)
        assert word == value | int(flag) << 32


def fractions(raw: Any, kind: str) -> list[Fraction | None]:
    """Numbers of the lower halves; None where they are not finite."""
    halves = (raw & np.uint64(0xFFFF)).astype(np.uint16)
    numbers = halves.view(np.float16) if kind == "f16" else (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return [Fraction(float(x)) if np.isfinite(x) else None for x in numbers]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["add", "sub", "fma.rn"])
def test_halves_with_a_float(name: str, kind: str) -> None:
    dice = np.random.default_rng(11)
    a, b = (dice.integers(0, 1 << 16, 500, np.uint64) for _ in range(2))
    c = dice.standard_normal(500).astype(np.float32)
    operands = "%ha, %hb, %fc" if name == "fma.rn" else "%ha, %fc"
    found = run_form(f"{name}.f32.{kind} %fd, {operands};", a, b, c.view(np.uint32).astype(np.uint64))
    results = found.astype(np.uint32).view(np.float32)
    checked = 0
    for x, y, z, result in zip(fractions(a, kind), fractions(b, kind), c.tolist(), results.tolist(), strict=True):
        if x is None or y is None:
            continue
        exact = x * y + Fraction(z) if name == "fma.rn" else x + Fraction(z) * (1 if name == "add" else -1)
        near = np.float32(result)
        if np.isinf(near):
            assert abs(exact) > Fraction(float(np.finfo(np.float32).max))
            continue
        step = [np.nextafter(near, np.float32(side)) for side in (-np.inf, np.inf)]
        distance = abs(Fraction(float(near)) - exact)
        assert all(distance <= abs(Fraction(float(other)) - exact) for other in step if np.isfinite(other))
        checked += 1
    assert checked > 300


def words_of(numbers: list[int]) -> Any:
    return np.array([[x & (1 << 64) - 1, x >> 64] for x in numbers], np.uint64)


@pytest.mark.parametrize("operation", ["exch", "cas"])
def test_exchanges_of_128_bits(operation: str) -> None:
    """64 threads at 4 places: each puts its number (cas: where the place still holds 7), and gets what was there."""
    operands = "%w1, %w2" if operation == "cas" else "%w2"
    text = f"""{HEAD}.visible .entry k(.param .u64 cells, .param .u64 out) .reqntid 64 {{
    .reg .b32 %r<4>; .reg .b64 %rd<8>; .reg .b128 %w<3>;
    ld.param.u64 %rd1, [cells]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 3; mul.wide.u32 %rd3, %r2, 16; add.u64 %rd1, %rd1, %rd3;
    mul.wide.u32 %rd4, %r1, 16; add.u64 %rd2, %rd2, %rd4; cvt.u64.u32 %rd5, %r1; add.u64 %rd6, %rd5, 100;
    mov.b64 %rd7, 7; mov.b64 %rd3, 0; mov.b128 %w1, {{%rd7, %rd3}}; mov.b128 %w2, {{%rd5, %rd6}};
    atom.global.{operation}.b128 %w0, [%rd1], {operands};
    mov.b128 {{%rd3, %rd4}}, %w0; st.global.v2.u64 [%rd2], {{%rd3, %rd4}}; ret; }}"""
    cells, out = words_of([7, 7, 8, 7 + (1 << 64)]), np.zeros((64, 2), np.uint64)
    expected_cells, expected = cells.copy(), out.copy()
    run = cute.run_ptx(text, args=[cells, out], schedule="eager")
    assert run.ok, run.explain()
    for thread in range(64):
        expected[thread] = expected_cells[thread % 4]
        if operation == "exch" or expected_cells[thread % 4].tolist() == [7, 0]:
            expected_cells[thread % 4] = [thread, thread + 100]
    assert np.array_equal(out, expected)
    assert np.array_equal(cells, expected_cells)


REDUCED = {
    "inc.u32": lambda old, new: 0 if old >= new else old + 1,
    "dec.u32": lambda old, new: new if old == 0 or old > new else old - 1,
    "min.u32": min,
    "max.s32": lambda old, new: max(old, new, key=lambda x: x - (1 << 32) * (x >> 31)),
    "add.u64": lambda old, new: old + new,
    "and.b32": lambda old, new: old & new,
    "xor.b32": lambda old, new: old ^ new,
}


@each_of("schedule", ["eager", "lazy", 3])
@each_of("form", list(REDUCED))
def test_reductions_in_the_shared_memory_of_a_neighbour(form: str, schedule: str | int) -> None:
    """Each CTA of a pair reduces into a cell of the other, which waits for all bytes at its barrier."""
    kind = form.split(".")[1]
    size = int(kind[1:]) // 8
    source = "%r6" if size == 4 else "%rd6"
    wide = "cvt.u64.u32 %rd7, %r7;" if size == 4 else ""
    target = "%r7" if size == 4 else "%rd7"
    text = f"""{HEAD}.shared .align 8 .b8 cell[8]; .shared .align 8 .b64 bar;
    .visible .entry k(.param .u64 out, .param .u32 start) .reqntid 32 .reqnctapercluster 2 {{
    .reg .pred %p<3>; .reg .b32 %r<12>; .reg .b64 %rd<10>;
    mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; xor.b32 %r3, %r2, 1; ld.param.u32 %r8, [start];
    mov.u32 %r4, cell; mov.u32 %r5, bar; setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
    cvt.u64.u32 %rd1, %r8; st.shared.u64 [%r4], %rd1; mbarrier.init.shared.b64 [%r5], 1;
    mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r5], {32 * size};
    READY: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mapa.shared::cluster.u32 %r9, %r4, %r3; mapa.shared::cluster.u32 %r10, %r5, %r3;
    mul.lo.u32 %r6, %r1, 0x9E3779B1; shr.u32 %r6, %r6, 3; cvt.u64.u32 %rd6, %r6;
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{form} [%r9], {source}, [%r10];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; @!%p2 bra WAIT;
    ld.shared.{kind} {target}, [%r4]; {wide}
    ld.param.u64 %rd2, [out]; mul.wide.u32 %rd3, %r2, 8; add.u64 %rd2, %rd2, %rd3; st.global.u64 [%rd2], %rd7;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret; }}"""
    out, start = np.zeros(2, np.uint64), 0x0FFF_FF07
    run = cute.run_ptx(text, grid=2, args=[out, start], schedule=schedule)
    assert run.ok, run.explain()
    value = start
    for thread in range(32):
        value = REDUCED[form](value, (thread * 0x9E3779B1 & 0xFFFFFFFF) >> 3)
    assert out.tolist() == [value & (1 << 8 * size) - 1] * 2


def test_multicast_memory_is_refused_with_its_reason() -> None:
    text = kernel("multimem.red.relaxed.sys.global.add.f32 [%at], %fa;")
    with pytest.raises(InvalidValueError, match="multicast memory of several GPUs"):
        cute.run_ptx(text, args=[np.zeros(256, np.uint64)] * 4)


@each_of("place", ["row.col.satfinite.s32.s8.u8.s32", "row.col.s32.s8.u8.s32.satfinite"])
def test_a_product_of_integers_saturates(place: str) -> None:
    """`.satfinite` stands before the types in the ISA, and behind them in CUTLASS."""
    body = (
        "mov.b32 %rd, 0x80000000; .reg .b32 %w<4>; "
        f"mma.sync.aligned.m16n8k32.{place} {{%w0, %w1, %w2, %w3}}, {{%ra, %ra, %ra, %ra}}, {{%rb, %rb}}, "
        "{%rd, %rc, %rd, %rc}; mov.b64 %d, {%w0, %w1};"
    )
    a, b, c = (np.full(32, word, np.uint64) for word in (0x81818181, 0xFFFFFFFF, 5))
    out = np.zeros(32, np.uint64)
    cute.run_ptx(kernel(body, threads=32), args=[a, b, c, out]).raise_for_diagnostics()
    total = 32 * -127 * 255
    assert set(out.tolist()) == {0x80000000 | (total + 5) % 2**32 << 32}
