"""The library built and run against a CUPTI that stands for the driver; programs that are no CUDA programs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cute_py.cli.main import main
from cute_py.errors import CuteError, DeviceError, InvalidTypeError, InvalidValueError, MissingPackageError
from cute_py.tma import encode
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.watch import Injector, build_injector, report_on, watch
from cute_py.watch import injector as injector_module

SOURCE = Path(__file__).with_name("fake_cupti.c")
MAP = encode(TensorMapTiled(6, 4096, (256, 128), (512,), (64, 64), (1, 1), 0, 3))
INCLUDES = [Path("/usr/local/cuda") / sub for sub in ("include", "extras/CUPTI/include")]
PLAY = """
import ctypes, os, sys
ctypes.CDLL(os.environ['CUTE_PY_WATCH_CUPTI']).play(int(sys.argv[1]), bytes.fromhex(sys.argv[2]))
"""
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.fixture(scope="session")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Injector:
    """The real library, and a CUPTI with a driver of its own."""
    folder = tmp_path_factory.mktemp("fake")
    cupti = folder / "libcupti.so"
    subprocess.run(["cc", "-shared", "-fPIC", str(SOURCE), "-o", str(cupti), "-ldl"], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(injector_module, "find_cupti", lambda: cupti)
        return build_injector(folder)


@pytest.fixture
def none() -> Injector:
    """A library that is never loaded."""
    return Injector(Path("/nowhere/injection.so"), Path("/nowhere/libcupti.so"))


def play(count: int) -> list[str]:
    return [sys.executable, "-c", PLAY, str(count), MAP.hex()]


@needs_compiler
def test_a_recording(fake: Injector) -> None:
    """Two good calls and two bad ones, and a launch whose parameters hold the map."""
    seen = []
    status, recording = watch(play(20_000), seen.append, fake)
    assert (status, recording.processes, recording.damaged, len(seen)) == (0, 1, 0, 3)
    good, bad, null = recording.maps
    assert (good.count, good.result, good.data) == (20_000, 0, MAP)
    assert good.request == TensorMapTiled(6, 4096, (256, 128), (512,), (64, 64), (1, 1), 0, 3)
    assert [(k.kernel, k.offset, k.shared) for k in good.kernels] == [("gemm", 64, 4096)]
    assert (bad.result, bad.request.global_strides, null.request) == (1, (520,), None)
    report = report_on(recording)
    assert [one.rule for one in report.found] == [
        "box_shared_memory",
        "repeated_encode",
        "stride_alignment",
        "refused",
    ]
    assert all(one.fixes for one in report.found)


@needs_compiler
def test_a_kernel_that_the_runtime_launches(fake: Injector, tmp_path: Path) -> None:
    driver = tmp_path / "libcuda.so.1"
    source = str(SOURCE.with_name("fake_driver.c"))
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", source, "-o", str(driver)], check=True)
    script = f"import ctypes, os, sys; ctypes.CDLL({str(driver)!r}); " + PLAY.strip().split("\n")[1].replace(
        "play(int(sys.argv[1]), ", "play_runtime("
    ).replace("argv[2]", "argv[1]")
    status, recording = watch([sys.executable, "-c", script, MAP.hex()], None, fake)
    (found,) = recording.maps
    assert status == 0
    assert [(k.kernel, k.parameter, k.offset, k.shared_static, k.shared_dynamic) for k in found.kernels] == [
        ("tile", 1, 64, 512, 1024)
    ]


@needs_compiler
def test_the_library_is_kept(fake: Injector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injector_module, "find_cupti", lambda: fake.cupti)
    first = build_injector(tmp_path)
    changed = first.library.stat().st_mtime_ns
    assert build_injector(tmp_path).library.stat().st_mtime_ns == changed
    assert [path.name for path in tmp_path.iterdir()] == [first.library.name]


@needs_compiler
def test_no_warnings(tmp_path: Path) -> None:
    """A warning of some compiler stops no user; here it stops us."""
    strict = ("-Wall", "-Wextra", "-Werror", "-D_FORTIFY_SOURCE=2")
    made = ["-o", str(tmp_path / "strict.so"), "-ldl", "-lpthread"]
    subprocess.run(["cc", *injector_module.FLAGS, *strict, str(injector_module.SOURCE), *made], check=True)


@needs_compiler
def test_the_declarations_are_those_of_cupti(tmp_path: Path) -> None:
    """The library declares what it uses of CUPTI's headers; where the headers are, the compiler compares."""
    include = next((path for path in INCLUDES if (path / "cupti_callbacks.h").is_file()), None)
    if include is None:
        pytest.skip("needs CUPTI's headers")
    given = ["cc", *injector_module.FLAGS, "-DCUTE_PY_CHECK_HEADERS", f"-I{include}", str(injector_module.SOURCE)]
    subprocess.run([*given, "-o", str(tmp_path / "checked.so"), "-ldl", "-lpthread"], check=True)


@needs_compiler
def test_the_compiler_says_why(fake: Injector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injector_module, "find_cupti", lambda: fake.cupti)
    monkeypatch.setattr(injector_module, "FLAGS", ("-not-a-flag",))
    with pytest.raises(DeviceError, match="can't compile the watching library"):
        build_injector(tmp_path)


@needs_compiler
def test_a_profiler_in_the_program(fake: Injector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_PROFILER", "1")
    status, recording = watch(play(1), None, fake)
    assert status == 0
    assert "a profiler holds CUPTI" in str(report_on(recording))


@needs_compiler
def test_the_command(fake: Injector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cute_py.watch.program.build_injector", lambda: fake)
    out, maps = tmp_path / "report.json", tmp_path / "maps"
    given = ["watch", "--json", "--report", str(out), "--dump", str(maps), "--live", "--", *play(3)]
    assert main(given) == 0
    data = json.loads(out.read_text())
    assert [one["count"] for one in data["maps"]] == [3, 1, 1]
    assert [path.read_bytes() for path in maps.iterdir()] == [MAP]


@pytest.mark.parametrize("code", [0, 1, 77])
def test_the_status_is_kept(code: int, none: Injector) -> None:
    status, recording = watch([sys.executable, "-c", f"raise SystemExit({code})"], None, none)
    assert (status, recording.processes) == (code, 0)
    assert "did not initialise CUDA" in str(report_on(recording))


def test_a_crash(none: Injector) -> None:
    script = f"import os, signal; os.kill(os.getpid(), signal.{signal.SIGSEGV.name})"
    assert watch([sys.executable, "-c", script], None, none)[0] == 128 + signal.SIGSEGV


def test_a_fork(none: Injector) -> None:
    script = "import os; pid = os.fork(); os._exit(3) if pid == 0 else os._exit(os.waitpid(pid, 0)[1] >> 8)"
    assert watch([sys.executable, "-c", script], None, none)[0] == 3


@pytest.mark.parametrize("command", [["/no/such/program"], ["/"]])
def test_no_program(command: list[str], none: Injector) -> None:
    with pytest.raises(DeviceError):
        watch(command, None, none)


@pytest.mark.parametrize("command", ["ls", [], ["a\0b"], [1], None, 7])
def test_no_command(command: object, none: Injector) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError)):
        watch(command, None, none)  # type: ignore[arg-type]


def test_a_profiler_holds_it(none: Injector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "/opt/nsys/libToolsInjection64.so")
    with pytest.raises(DeviceError, match="a profiler already uses"):
        watch(["true"], None, none)


def test_nothing_to_build_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injector_module, "find_cupti", lambda: None)
    with pytest.raises(MissingPackageError, match="CUPTI"):
        build_injector(tmp_path)
    monkeypatch.setattr(injector_module, "find_cupti", lambda: Path("libcupti.so"))
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(MissingPackageError, match="C compiler"):
        build_injector(tmp_path)


def test_the_command_without_a_program(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["watch", "--"]) == 2
    monkeypatch.setattr("cute_py.watch.program.build_injector", lambda: Injector(Path("a"), Path("b")))
    assert main(["watch", "--", "/no/such/program"]) == 127
    assert main(["watch", "--", os.path.sep]) == 126
    assert "no such program" in capsys.readouterr().err


def test_every_refusal_is_typed() -> None:
    for bad in (None, 3, "text", []):
        with pytest.raises(CuteError):
            report_on(bad)  # type: ignore[arg-type]
