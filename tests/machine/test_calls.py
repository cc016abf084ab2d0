"""Calls: functions that come back to themselves, addresses of functions, and what nvcc makes of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.machine.cuda_source import find_nvcc

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
FIBONACCI = """
.func (.param .b32 result) fib(.param .b32 n) {
    .reg .pred %p; .reg .b32 %r<8>;
    ld.param.u32 %r1, [n]; setp.lt.u32 %p, %r1, 2; mov.u32 %r5, %r1; @%p bra DONE;
    sub.u32 %r2, %r1, 1;
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call.uni (b), fib, (a); ld.param.b32 %r3, [b]; }
    sub.u32 %r2, %r1, 2;
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call.uni (b), fib, (a); ld.param.b32 %r4, [b]; }
    add.u32 %r5, %r3, %r4;
    DONE: st.param.b32 [result], %r5; ret;
}
"""
START = """
    .reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<10>;
    mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
"""


def run(functions: str, body: str, *, schedule: str | int = "eager", threads: int = 64) -> tuple[cute.PtxRun, Any]:
    text = f"{HEAD}{functions}\n.visible .entry k(.param .u64 out) .reqntid {threads} {{ {START} {body} }}"
    out = np.zeros(threads, np.uint32)
    return cute.run_ptx(text, args=[out], schedule=schedule), out


CALL = "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call.uni (b), NAME, (a); ld.param.b32 %r3, [b]; }"


@pytest.mark.parametrize("schedule", ["eager", 1, 2])
def test_a_function_that_calls_itself_twice(schedule: str | int) -> None:
    numbers = [0, 1]
    while len(numbers) < 13:
        numbers.append(sum(numbers[-2:]))
    body = "rem.u32 %r2, %r1, 13;" + CALL.replace("NAME", "fib") + "st.global.u32 [%rd3], %r3; ret;"
    found, out = run(FIBONACCI, body, schedule=schedule)
    assert found.ok, found.explain()
    assert out.tolist() == [numbers[n % 13] for n in range(64)]


def test_two_functions_that_call_each_other_write_through_pointers_to_their_variables() -> None:
    """`even(n, p)`: 0 adds 1 to *p; else odd(n - 1, &own), and *p += 2 * own + n. odd is the same with 3 * own."""
    functions = ".func odd(.param .b32 n, .param .b64 p);\n"
    for name, other, factor in (("even", "odd", 2), ("odd", "even", 3)):
        functions += f"""
    .func {name}(.param .b32 n, .param .b64 p) {{
        .local .align 4 .b32 own; .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<4>;
        ld.param.u32 %r1, [n]; ld.param.u64 %rd1, [p]; mov.u32 %r2, 1; setp.eq.u32 %p, %r1, 0; @%p bra ADD;
        mov.u64 %rd2, own; cvta.local.u64 %rd3, %rd2; mov.u32 %r3, 0; st.local.u32 [own], %r3; sub.u32 %r4, %r1, 1;
        {{ .param .b32 a; .param .b64 b; st.param.b32 [a], %r4; st.param.b64 [b], %rd3; call.uni {other}, (a, b); }}
        ld.local.u32 %r5, [own]; mad.lo.u32 %r2, %r5, {factor}, %r1;
        ADD: ld.u32 %r6, [%rd1]; add.u32 %r6, %r6, %r2; st.u32 [%rd1], %r6; ret;
    }}"""
    body = """
    .local .align 4 .b32 sum; mov.u32 %r2, 100; st.local.u32 [sum], %r2; mov.u64 %rd4, sum; cvta.local.u64 %rd5, %rd4;
    and.b32 %r3, %r1, 15;
    { .param .b32 a; .param .b64 b; st.param.b32 [a], %r3; st.param.b64 [b], %rd5; call.uni even, (a, b); }
    ld.local.u32 %r4, [sum]; st.global.u32 [%rd3], %r4; ret;"""

    def added(n: int, even: bool) -> int:
        return 1 if n == 0 else (2 if even else 3) * added(n - 1, not even) + n

    found, out = run(functions, body)
    assert found.ok, found.explain()
    assert out.tolist() == [100 + added(n % 16, True) for n in range(64)]


ONE_NUMBER = """
.func (.param .b32 result) NAME(.param .b32 n) {
    .reg .b32 %r<4>; ld.param.u32 %r1, [n]; OPERATION; st.param.b32 [result], %r2; ret; }
"""
FUNCTIONS = "".join(
    ONE_NUMBER.replace("NAME", name).replace("OPERATION", operation)
    for name, operation in (
        ("twice", "shl.b32 %r2, %r1, 1"),
        ("square", "mul.lo.u32 %r2, %r1, %r1"),
        ("next", "add.u32 %r2, %r1, 1"),
    )
)
THROUGH = """
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;
      proto: .callprototype (.param .b32 _) _ (.param .b32 _);
      call (b), %rd6, (a), proto; ld.param.b32 %r3, [b]; }
    st.global.u32 [%rd3], %r3; ret;"""


def test_calls_through_a_table_of_functions() -> None:
    table = FUNCTIONS + ".global .align 8 .u64 table[2] = {twice, square};\n"
    body = f"""
    rem.u32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 2; mov.u64 %rd6, next; @%p1 bra GO;
    mul.wide.u32 %rd4, %r2, 8; mov.u64 %rd5, table; add.u64 %rd5, %rd5, %rd4; ld.global.u64 %rd6, [%rd5];
    GO: {THROUGH}"""
    found, out = run(table, body)
    assert found.ok, found.explain()
    assert out.tolist() == [(2 * n, n * n, n + 1)[n % 3] for n in range(64)]


def test_a_call_through_a_number_that_is_no_function_is_found() -> None:
    found, _ = run(FUNCTIONS, f"mov.u64 %rd6, next; add.u64 %rd6, %rd6, 4; {THROUGH}")
    assert [one.rule for one in found.diagnostics] == ["indirect call"]


def test_calls_without_an_end_are_found() -> None:
    endless = """.func down(.param .b32 n) { .reg .b32 %r<2>; ld.param.b32 %r1, [n];
    { .param .b32 a; st.param.b32 [a], %r1; call.uni down, (a); } ret; }"""
    found, _ = run(endless, "{ .param .b32 a; st.param.b32 [a], %r1; call.uni down, (a); } ret;")
    assert [one.rule for one in found.diagnostics] == ["call depth"]


SOURCE = """
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
struct Shape { __device__ virtual float area(float x) const = 0; };
struct Square : Shape {
  float k;
  __device__ Square(float k) : k(k) {}
  __device__ float area(float x) const override { return k * x * x; }
};
struct Disc : Shape {
  float k;
  __device__ Disc(float k) : k(k) {}
  __device__ float area(float x) const override { return k * 4.0f * x; }
};
__device__ __noinline__ void sort(int* a, int lo, int hi) {
  if (lo >= hi) return;
  int p = a[hi], i = lo, own[2] = {lo, hi};
  for (int j = lo; j < hi; ++j) if (a[j] < p) { int t = a[i]; a[i] = a[j]; a[j] = t; ++i; }
  a[hi] = a[i]; a[i] = p;
  sort(a, own[0], i - 1); sort(a, i + 1, own[1]);
}
extern "C" __global__ void k(int* out, float* areas, int* lists) {
  int i = threadIdx.x;
  out[i] = fib(i % 12);
  Square s(2.0f); Disc d(0.5f);
  Shape* shape = i % 3 ? (Shape*)&s : (Shape*)&d;
  areas[i] = shape->area(i);
  int own[16];
  for (int j = 0; j < 16; ++j) own[j] = lists[i * 16 + j];
  sort(own, 0, 15);
  for (int j = 0; j < 16; ++j) lists[i * 16 + j] = own[j];
}
"""


@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")
def test_recursion_and_virtual_functions_of_cuda(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(SOURCE)
    out, areas = np.zeros(64, np.int32), np.zeros(64, np.float32)
    lists = np.random.default_rng(1).integers(-99, 99, (64, 16)).astype(np.int32)
    ordered = np.sort(lists, axis=1)
    found = cute.run_ptx(tmp_path / "k.cu", block=64, args=[out, areas, lists])
    assert found.ok, found.explain()
    numbers = [0, 1]
    while len(numbers) < 12:
        numbers.append(sum(numbers[-2:]))
    i = np.arange(64)
    assert out.tolist() == [numbers[n % 12] for n in range(64)]
    assert np.array_equal(areas, np.where(i % 3 != 0, 2 * i * i, 2 * i))
    assert np.array_equal(lists, ordered)


HEAP = """.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
"""
MALLOC = "{ .param .b64 n; .param .b64 r; st.param.b64 [n], SIZE; call.uni (r), malloc, (n); ld.param.b64 %rd5, [r]; }"
FREE = "{ .param .b64 p; st.param.b64 [p], %rd5; call.uni free, (p); }"


@pytest.mark.parametrize("schedule", ["eager", "lazy", 1])
def test_malloc_and_free(schedule: str | int) -> None:
    """Each thread has its own bytes, and frees them; null may be freed."""
    body = f"""{MALLOC.replace("SIZE", "8")} st.u32 [%rd5+4], %r1; bar.sync 0; ld.u32 %r2, [%rd5+4]; {FREE}
    mov.u64 %rd5, 0; {FREE} st.global.u32 [%rd3], %r2; ret;"""
    found, out = run(HEAP, body, schedule=schedule)
    assert not found.diagnostics, found.explain()
    assert out.tolist() == list(range(64))


def test_malloc_without_room_is_null_until_bytes_are_freed() -> None:
    size = 3 << 20
    body = f"""setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE; mov.u32 %r2, 0;
    {MALLOC.replace("SIZE", str(size))} mov.u64 %rd4, %rd5; {MALLOC.replace("SIZE", str(size))}
    {MALLOC.replace("SIZE", str(size))} setp.eq.u64 %p2, %rd5, 0; selp.u32 %r2, 1, 0, %p2; mov.u64 %rd5, %rd4; {FREE}
    {MALLOC.replace("SIZE", str(size))} setp.eq.u64 %p2, %rd5, %rd4; @%p2 add.u32 %r2, %r2, 2;
    DONE: st.global.u32 [%rd3], %r2; ret;"""
    found, out = run(HEAP, body)
    assert found.ok, found.explain()
    assert out[0] == 3


def test_free_of_what_malloc_did_not_give() -> None:
    found, _ = run(HEAP, f"{MALLOC.replace('SIZE', '8')} add.s64 %rd5, %rd5, 4; {FREE} ret;")
    assert [one.rule for one in found.diagnostics] == ["out of bounds"]


def test_reserved_shared_memory() -> None:
    """Where cooperative groups of several warps keep their words: apart from the variables of the kernel."""
    body = """.shared .align 4 .b8 s[256]; mov.u32 %r2, %reserved_smem_offset_1; mov.u32 %r3, %reserved_smem_offset_end;
    mov.u32 %r4, s; shl.b32 %r5, %r1, 2; add.u32 %r2, %r2, %r5; add.u32 %r4, %r4, %r5; st.shared.u32 [%r2], %r1;
    st.shared.u32 [%r4], %r3; ld.shared.u32 %r6, [%r2]; setp.lt.u32 %p1, %r2, %r3; selp.u32 %r7, 100, 0, %p1;
    add.u32 %r6, %r6, %r7; st.global.u32 [%rd3], %r6; mov.u32 %r2, %reserved_smem_offset_begin;
    red.shared.add.u32 [%r2], 1; ret;"""
    found, out = run("", body)
    assert not found.diagnostics, found.explain()
    assert out.tolist() == [n + 100 for n in range(64)]


@pytest.mark.parametrize(
    "value", [np.float16, np.array([object()]), np.zeros((4, 4))[:, 1]], ids=["a class", "objects", "a column"]
)
def test_an_argument_that_is_no_array_of_numbers_is_refused(value: Any) -> None:
    text = HEAD + ".visible .entry k(.param .u64 a) { ret; }"
    with pytest.raises(InvalidTypeError, match="argument 0"):
        cute.run_ptx(text, args=[value], block=32)


@pytest.mark.parametrize("path", ["\ud800.cu", "a\0.cu"], ids=["a surrogate", "a zero byte"])
def test_a_name_that_no_file_can_have_is_refused(path: str) -> None:
    with pytest.raises(InvalidValueError, match="can't be read"):
        cute.run_ptx(path, args=[])


def test_an_array_of_pointers() -> None:
    """A kernel that reads the addresses of two arrays from a third, as a grouped GEMM does."""
    text = (
        HEAD
        + """.visible .entry k(.param .u64 list) .reqntid 32 {
        .reg .b32 %r<4>; .reg .b64 %rd<8>;
        ld.param.u64 %rd1, [list]; ld.global.u64 %rd2, [%rd1]; ld.global.u64 %rd3, [%rd1+8];
        mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4;
        add.s64 %rd5, %rd2, %rd4; add.s64 %rd6, %rd3, %rd4;
        ld.global.u32 %r2, [%rd5]; add.u32 %r3, %r2, 1; st.global.u32 [%rd6], %r3; ret; }"""
    )
    pointers, source, target = np.zeros(2, np.uint64), np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    found = cute.run_ptx(text, args=[(pointers, {0: source, 8: target})], schedule="both")
    assert found.ok, found.explain()
    assert np.array_equal(target, source + 1)
    pointers.flags.writeable = False
    with pytest.raises(InvalidTypeError, match="must be writable"):
        cute.run_ptx(text, args=[(pointers, {0: source, 8: target})])
    with pytest.raises(InvalidValueError, match="an offset in argument 0"):
        cute.run_ptx(text, args=[(np.zeros(2, np.uint64), {16: source})])
