"""`cute-py check` with a launch: the text is judged, and the run of the kernel beside it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import cute_py as cute
from cute_py.cli.main import main
from cute_py.machine import cuda_source
from cute_py.machine.run import run_ptx
from tests.calls.objects import KERNEL_TEXT
from tests.cli.test_run_command import LOAD

LAUNCH = ["--map", "0=map.bin:a.npy", "--arg", "out.npy:out"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    request = cute.tma.TensorMapTiled(2, 0, (16, 16), (64,), (16, 16))
    Path("map.bin").write_bytes(cute.tma.encode(request))
    Path("load.ptx").write_text(LOAD)
    Path("late.ptx").write_text(LOAD.replace("mbarrier.init.shared.b64 [%r2], 1", "mbarrier.init.shared.b64 [%r2], 2"))
    np.save("a.npy", np.arange(256, dtype=np.uint32))
    np.save("out.npy", np.zeros(32, np.uint32))


def test_a_launch_shows_what_the_text_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    """One arrival of two comes: no reading of the text knows how many threads arrive."""
    assert main(["check", "late.ptx"]) == 0
    assert "arrival count: the number of arriving threads is known only at run time" in capsys.readouterr().out
    assert main(["check", "late.ptx", *LAUNCH]) == 1
    said = capsys.readouterr().out
    assert "hang: arrival count" in said and "with this change the run does not have this error" in said
    assert "no broken rule found in what was judged" in said
    assert "the number of arriving threads" not in said
    assert "not judged: the rest of the run, because an error ended it" in said
    assert "no thread executed them in this launch; lines 13, 14" in said


def test_a_kernel_without_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "load.ptx", *LAUNCH]) == 0
    assert np.load("out.npy").tolist() == [0] * 32, "check writes no array"
    *_, scope, last = capsys.readouterr().out.splitlines()
    assert scope == "not judged: other launches: other sizes, arguments and contents of memory"
    assert last == "not an approval: see 1 line above for what was not judged; with --strict, the exit status is 1"
    assert main(["check", "load.ptx", *LAUNCH, "--strict"]) == 1


def test_the_maps_of_a_launch_count_in_the_text_too(capsys: pytest.CaptureFixture[str]) -> None:
    """2000 of 1024 bytes: the reading of the text and the run both find it."""
    Path("load.ptx").write_text(LOAD.replace("_, [%r2], 1024", "_, [%r2], 2000"))
    assert main(["check", "load.ptx", *LAUNCH, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [one["rule"] for one in found["found"]] == ["expect_tx"]
    assert [one["rule"] for one in found["run"]["found"] if one["severity"] == "error"] == ["hang"]
    assert found["scope"]["complete"] is False


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--map", "0=map.bin", "--arg", "out.npy"], "must be N=MAP:ARRAY"),
        (["--grid", "0"], "grid"),
        (["--kernel", "other"], "other"),
        (["--arg", "none.npy"], "none.npy"),
    ],
)
def test_a_launch_that_is_none(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "load.ptx", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_kernel_that_the_machine_can_not_run_is_judged_by_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    Path("load.ptx").write_text(LOAD.replace("ret;", "vote.wide.u32 %r6, %r5; ret;"))
    assert main(["check", "load.ptx", *LAUNCH]) == 0
    said = capsys.readouterr().out
    assert "not judged: the launch: line 14: vote.wide.u32" in said
    assert "the number of arriving threads is known only at run time" in said


def test_the_compiler_that_was_asked_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """nvcc is not replaced by NVRTC without a word."""
    monkeypatch.setattr(cuda_source, "find_nvcc", lambda: None)
    monkeypatch.setattr(cuda_source, "compiled_by_nvrtc", lambda *_: LOAD)
    Path("load.cu").write_text("any")
    assert main(["check", "load.cu", "--compiler", "nvcc"]) != 0
    assert "a CUDA C++ file needs nvcc" in capsys.readouterr().err
    assert main(["check", "load.cu"]) == 0


def test_the_scope_of_a_run() -> None:
    x = np.arange(32, dtype=np.uint32)
    whole = run_ptx(KERNEL_TEXT, args=[x, 32])
    assert whole.scope.judged == (f"{whole.instructions} instructions of threads (eager)",)
    assert len(whole.scope.not_judged) == 1 and not whole.scope.complete
    blind = run_ptx(KERNEL_TEXT, args=[x, 0], judge=False)
    assert blind.scope.not_judged[0] == "races, fences and barriers, because of judge=False"
    assert "no thread executed them in this launch" in blind.scope.not_judged[1]
