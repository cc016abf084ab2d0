"""`cute-py run`: outputs, exit status, JSON, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import cute_py as cute
from cute_py.cli.main import main
from cute_py.machine import cuda_source
from cute_py.machine.cuda_source import find_nvcc, nvrtc_library
from cute_py.ptx.module import find_in_wheels
from tests.calls.objects import KERNEL_TEXT

LOAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry load(.param .align 64 .b8 map[128], .param .u64 out) .reqntid 32
{
  .shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 bar; .reg .pred %p, %q; .reg .b32 %r<8>; .reg .b64 %rd<5>;
  mov.u32 %r1, %tid.x; setp.eq.u32 %p, %r1, 0; mov.u32 %r2, bar; mov.u32 %r3, tile; mov.b32 %r4, 0;
  mov.b64 %rd1, map; cvta.param.u64 %rd2, %rd1;
  @%p mbarrier.init.shared.b64 [%r2], 1; bar.sync 0;
  @%p mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 1024;
  @%p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2, {%r4, %r4}], [%r2];
  W: mbarrier.try_wait.parity.shared.b64 %q, [%r2], %r4; @!%q bra W;
  shl.b32 %r5, %r1, 2; add.u32 %r5, %r3, %r5; ld.shared.u32 %r6, [%r5];
  ld.param.u64 %rd3, [out]; mad.wide.u32 %rd4, %r1, 4, %rd3; st.global.u32 [%rd4], %r6; ret;
}
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("twice.ptx").write_text(KERNEL_TEXT)
    np.save("x.npy", np.arange(32, dtype=np.uint32))


def test_an_output_is_written_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "twice.ptx", "--arg", "x.npy:out", "--arg", "32", "--counts"]) == 0
    assert np.load("x.npy").tolist() == [2 * n for n in range(32)]
    said = capsys.readouterr().out
    assert "no error was found" in said
    row = r"^ +0 +4 +1 +9 +ld\.global\.u32 %r3, \[%rd2\]$"  # bank conflicts, sectors, warps, line, instruction
    assert re.search(row, said, re.MULTILINE)


def test_an_error_is_the_exit_status_and_a_record(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", np.zeros(8, np.uint32))
    assert main(["run", "twice.ptx", "--arg", "x.npy", "--arg", "32", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["kernel"]) == (False, "twice")
    assert [(one["rule"], one["line"], one["severity"]) for one in found["found"]] == [("out of bounds", 9, "error")]


def test_an_output_is_not_written_after_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A run that an error ended has written half of its output; the file keeps what it had."""
    before = np.arange(8, dtype=np.uint32)
    np.save("x.npy", before)
    launch = ["run", "twice.ptx", "--arg", "x.npy:out", "--arg", "32"]
    assert main(launch) == 1
    assert "not written, because an error was found: x.npy (--write-anyway)" in capsys.readouterr().out
    assert np.array_equal(np.load("x.npy"), before)
    assert main([*launch, "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["written"], record["not_written"]) == ([], ["x.npy"])
    assert np.array_equal(np.load("x.npy"), before)


def test_an_output_is_written_anyway(capsys: pytest.CaptureFixture[str]) -> None:
    Path("trapped.ptx").write_text(KERNEL_TEXT.replace("DONE: ret;", "DONE: trap; ret;"))
    launch = ["run", "trapped.ptx", "--arg", "x.npy:out", "--arg", "32"]
    assert main(launch) == 1
    assert np.load("x.npy").tolist() == list(range(32))
    capsys.readouterr()
    assert main([*launch, "--write-anyway", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["written"] == ["x.npy"]
    assert np.load("x.npy").tolist() == [2 * n for n in range(32)]


def test_a_map_and_its_array() -> None:
    request = cute.tma.TensorMapTiled(2, 0, (16, 16), (64,), (16, 16))
    Path("map.bin").write_bytes(cute.tma.encode(request))
    Path("load.ptx").write_text(LOAD)
    np.save("a.npy", np.arange(256, dtype=np.uint32))
    np.save("out.npy", np.zeros(32, np.uint32))
    assert main(["run", "load.ptx", "--map", "0=map.bin:a.npy", "--arg", "out.npy:out"]) == 0
    assert np.load("out.npy").tolist() == list(range(32))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.ptx"], "can't be read"),
        (["twice.ptx", "--arg", "x.npy", "--arg", "many"], "must be a file of an array"),
        (["twice.ptx", "--map", "0=only"], "must be N=MAP:ARRAY"),
        (["twice.ptx", "--arg", "x.npy", "--arg", "1", "--arg", "2"], "3 arguments"),
        (["twice.ptx", "--arg", "x.npy", "--arg", "1", "--schedule", "now"], "schedule"),
        (["cubin"], "PTX"),
    ],
)
def test_what_is_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("cubin").write_bytes(b"\x7fELF" + bytes(64))
    assert main(["run", *arguments]) == 2
    assert said in capsys.readouterr().err


ADD = 'extern "C" __global__ void __launch_bounds__(32) add(int* x, int n) { x[threadIdx.x] += n + ARCH; }\n'


def check_sum(path: str, added: int, *more: str) -> None:
    """`add` of a file adds `added` to 0, 1, 2, ..."""
    np.save("x.npy", np.arange(32, dtype=np.int32))
    assert main(["run", path, "--block", "32", "--arg", "x.npy:out", "--arg", "-5", *more]) == 0
    assert np.load("x.npy").tolist() == [n - 5 + added for n in range(32)]


@pytest.mark.skipif(nvrtc_library() is None, reason="no NVRTC")
def test_a_file_of_cuda_through_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_source, "find_nvcc", lambda: None)
    Path("add.cu").write_text("#define ARCH 7\n" + ADD)
    check_sum("add.cu", 7)
    Path("wrong.cu").write_text("__global__ void add(int* x) { x += unknown; }\n")
    assert main(["run", "wrong.cu", "--block", "32"]) == 2


RACE = """__device__ __forceinline__ int next(const int* x, int i) { return x[(i + 1) % 64]; }
extern "C" __global__ void shift(int* out) {
  __shared__ int x[64];
  x[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = next(x, threadIdx.x);
}
"""


@pytest.mark.parametrize(
    "compiler",
    [
        pytest.param("nvcc", marks=pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")),
        pytest.param("nvrtc", marks=pytest.mark.skipif(nvrtc_library() is None, reason="no NVRTC")),
    ],
)
def test_findings_name_the_line_of_the_file(
    compiler: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if compiler == "nvrtc":
        monkeypatch.setattr(cuda_source, "find_nvcc", lambda: None)
    Path("shift.cu").write_text(RACE)
    np.save("out.npy", np.zeros(64, np.int32))
    launch = ["shift.cu", "--block", "64", "--arg", "out.npy"]
    assert main(["run", *launch]) == 1
    said = capsys.readouterr().out
    race = re.search(
        r"^  line (\d+) \(shift\.cu:1, inlined at shift\.cu:5\): .* at line (\d+) \(shift\.cu:4\)", said, re.M
    )
    assert race is not None
    place = f"line {race[1]} (shift.cu:1, inlined at shift.cu:5)"
    assert f"insert `bar.warp.sync -1;` before {place}; with this change the run does not have this error" in said
    assert f"insert `bar.sync 0;` before {place}; with this change the run does not have any error" in said
    assert re.search(rf"^ +{race[2]} \| st\.shared.* \(shift\.cu:4\)$", said, re.M)
    assert main(["run", *launch, "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert all(one["fixes"] and one["try"] is None for one in record["found"])
    assert {1, 4, 5} <= {one["source_line"] for one in record["counts"]}
    found = record["found"]
    assert {(one["source_file"], one["source_line"]) for one in found} == {("shift.cu", 1)}


@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")
def test_a_check_names_the_line_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        'extern "C" __global__ void wait(const char* in) {',
        "  __shared__ alignas(128) char x[1024]; __shared__ alignas(8) long bar;",
        "  unsigned b = __cvta_generic_to_shared(&bar), to = __cvta_generic_to_shared(x);",
        '  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(b));',
        '  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" :: "r"(b));',
        '  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];"',
        '               :: "r"(to), "l"(in), "r"(b) : "memory");',
        "}",
    ]
    Path("wait.cu").write_text("\n".join(lines))
    assert main(["check", "wait.cu"]) == 1
    said = capsys.readouterr().out
    found = re.search(r"^error +line (\d+) \(wait\.cu:5\), kernel wait: the barrier expects 512 bytes", said, re.M)
    assert found is not None
    assert re.search(rf"^ +line {found[1]} \(wait\.cu:5\): mbarrier\.arrive\.expect_tx.* 1024;$", said, re.M)
    assert re.search(r"not judged: 1 barrier: arrival count: .*; line \d+ \(wait\.cu:4\)$", said, re.M)


@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")
def test_a_file_of_cuda_that_nvcc_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    Path("wrong.cu").write_text("__global__ void add(int* x) { x += unknown; }\n")
    assert main(["run", "wrong.cu", "--block", "32"]) == 2
    assert "unknown" in capsys.readouterr().err


CUOBJDUMP = shutil.which("cuobjdump") or shutil.which("/usr/local/cuda/bin/cuobjdump") or find_in_wheels("cuobjdump")


@pytest.mark.skipif(find_nvcc() is None or CUOBJDUMP is None, reason="no nvcc, or no cuobjdump")
def test_the_text_inside_a_fatbin(capsys: pytest.CaptureFixture[str]) -> None:
    Path("add.cu").write_text("#define ARCH __CUDA_ARCH__\n" + ADD)
    codes = [part for n in ("80", "90a") for part in ("-gencode", f"arch=compute_{n},code=compute_{n}")]
    subprocess.run([str(find_nvcc()), *codes, "-fatbin", "-o", "add.fatbin", "add.cu"], check=True)
    check_sum("add.fatbin", 900)
    check_sum("add.fatbin", 800, "--arch", "sm_80")
    subprocess.run(
        [str(find_nvcc()), "-gencode", "arch=compute_90a,code=sm_90a", "-fatbin", "-o", "sass.fatbin", "add.cu"],
        check=True,
    )
    assert main(["run", "sass.fatbin", "--block", "32"]) == 2
    assert "contains machine code (SASS), but no PTX" in capsys.readouterr().err


def test_a_cubin_is_refused_without_any_tool(capsys: pytest.CaptureFixture[str]) -> None:
    Path("add.cubin").write_bytes(b"\x7fELF\x02\x01\x01A\x08" + bytes(7) + b"\x02\x00\xbe\x00" + bytes(44))
    assert main(["run", "add.cubin", "--block", "32"]) == 2
    assert "'add.cubin' contains machine code (SASS), but no PTX" in capsys.readouterr().err


@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")
def test_a_file_of_cuda() -> None:
    text = 'extern "C" __global__ void __launch_bounds__(32) add(int* x, int n) { x[threadIdx.x] += n; }\n'
    Path("add.cu").write_text(text)
    np.save("x.npy", np.arange(32, dtype=np.int32))
    assert main(["run", "add.cu", "--block", "32", "--arg", "x.npy:out", "--arg", "-5"]) == 0
    assert np.load("x.npy").tolist() == [n - 5 for n in range(32)]


def test_advice_that_was_not_tried_says_so_and_a_schedule_that_did_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    """A wait for the wrong parity: no number of the text cures it, so nothing is tried."""
    text = LOAD.replace(".param .align 64 .b8 map[128], .param .u64 out", ".param .u64 out")
    copy = next(line for line in LOAD.split("\n") if "cp.async.bulk.tensor" in line)
    bulk = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd3], 1024, [%r2];"
    text = text.replace(copy, f"  ld.param.u64 %rd3, [out]; @%p {bulk}")
    text = text.replace("  mov.b64 %rd1, map; cvta.param.u64 %rd2, %rd1;\n", "")
    again = "V: mbarrier.try_wait.parity.shared.b64 %q, [%r2], 1; @!%q bra V;"
    text = text.replace("@!%q bra W;", f"@!%q bra W; {again}")
    Path("parity.ptx").write_text(text)
    np.save("x.npy", np.zeros(256, np.uint32))
    launch = ["run", "parity.ptx", "--arg", "x.npy"]
    assert main(launch) == 1
    said = capsys.readouterr().out
    error = said.partition("\nwarning 1")[0]
    assert "error 1: hang" in error and "\n  try: " in error and "change:" not in error
    assert "not run: the schedule lazy, which may find more; schedule='lazy' (--schedule lazy) runs it" in said
    assert main([*launch, "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["schedules"], record["not_run"]) == (["eager"], ["lazy"])
    assert record["found"][0]["fixes"] == [] and f"  try: {record['found'][0]['try']}" in said
    assert main([*launch, "--schedule", "lazy", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["not_run"] == []


def test_pointers_that_were_not_passed_are_named_in_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    text = KERNEL_TEXT.replace(".param .u32 n", ".param .u32 n, .param .u64 last, .param .u64 unread")
    Path("more.ptx").write_text(text.replace("ret;", "ld.param.u64 %rd1, [last]; ret;"))
    launch = ["run", "more.ptx", "--arg", "x.npy", "--arg", "32"]
    assert main(launch) == 0
    assumed = "argument 2 (last) is a null pointer, because it was not passed"
    assert f"\n\nassumed: {assumed}; pass None (--arg null) or an array\n" in capsys.readouterr().out
    assert main([*launch, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["assumed"] == [assumed]
    assert main([*launch, "--arg", "null"]) == 0
    assert "assumed" not in capsys.readouterr().out
    assert main(["check", *launch[1:]]) == 0
    assert f"other values of arguments: the run assumed that {assumed}" in capsys.readouterr().out
