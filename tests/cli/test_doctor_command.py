"""`cute-py doctor`: what it finds is tried, missing packages are named, traps are rows with sources."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from cute_py.cli import doctor_command as findings_module
from cute_py.cli.doctor_command import (
    KNOWN_ISSUES,
    MEASURED_DRIVER,
    PACKAGES,
    Installation,
    compiler_release,
    findings,
    kernel_module,
    known_issues,
    report_lines,
)
from cute_py.cli.main import main
from cute_py.errors import DeviceError
from tests.cli.test_commands import shell
from tests.each import each_of

H200 = SimpleNamespace(
    name="NVIDIA H200",
    capability=(9, 0),
    arch="sm_90a",
    multiprocessors=132,
    l2_bytes=62_914_560,
    shared_bytes=232_448,
    driver_version=13000,
)


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings_module, "_device", lambda: (None, "no driver here"))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """An H200 that only answers questions: the sweep and the copy are stood in for."""
    copied = findings_module._copied
    monkeypatch.setattr(findings_module, "_device", lambda: (H200, ""))
    monkeypatch.setattr(findings_module, "_codec", lambda: ("compared with the driver: 7 requests", True))
    monkeypatch.setattr(findings_module, "_copied", lambda backend: copied("emulator"))


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_it_says_what_works_and_why_the_rest_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = shell(capsys, "doctor", "--json")
    data = json.loads(out)
    assert (status, err) == (0, "")
    assert data["driver"] == "none: no driver here"
    assert data["known_issues"] == []
    assert "gpu" not in data
    works = {row["name"]: row for row in data["works"]}
    assert works["emulator"] == {
        "name": "emulator",
        "works": True,
        "detail": "a copy of 64 x 64 float16 is equal",
    }
    assert works["maps"]["works"]
    assert (works["GPU copies"]["works"], works["GPU copies"]["detail"]) == (False, "no driver here")
    assert set(data["packages"]) == {row.name for row in PACKAGES}
    _, text, _ = shell(capsys, "doctor")
    assert "  yes  emulator                 a copy of 64 x 64 float16 is equal\n" in text
    assert "  no   GPU copies               no driver here\n" in text
    assert "cute-py doctor --driver 13000 lists the issues of a version" in text


@pytest.mark.usefixtures("gpu")
def test_with_a_gpu_it_says_which_and_lists_the_traps(capsys: pytest.CaptureFixture[str]) -> None:
    status, text, _ = shell(capsys, "doctor")
    assert status == 0
    for line in (
        "driver's CUDA version  13.0",
        "GPU                    NVIDIA H200",
        "compute capability     9.0",
        "codec                  compared with the driver: 7 requests",
        "known issues of drivers for CUDA 13.0",
        "  null address: a map of address 0 is accepted; a copy through it faults",
        "      source : measured on NVIDIA H200, driver 580.159.04",
    ):
        assert line in text.splitlines()
    assert "bit 85" not in text  # a trap of Blackwell


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("part", ["codec", "emulator"])
def test_what_is_wrong_makes_the_exit_status_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    if part == "codec":
        monkeypatch.setattr(findings_module, "_codec", lambda: ("1 disagreement", False))
    else:
        monkeypatch.setattr(findings_module, "_copied", lambda backend: (False, "a copy is NOT equal"))
    assert shell(capsys, "doctor")[0] == 1


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize(
    ("module", "ability", "words"),
    [
        ("rich", "colour and progress", "rich is not installed (pip install 'cute-py[cli]')"),
        ("shtab", "shell completion", "shtab is not installed (pip install 'cute-py[cli]')"),
        ("safetensors", "safetensors files", "safetensors is not installed (pip install 'cute-py[cli]')"),
        ("IPython", "notebooks", "IPython is not installed"),
        ("resvg_py", "pictures as .png", "a picture as .png needs the package resvg-py (pip install 'cute-py[png]')"),
        (
            "cuda.bindings.nvrtc",
            "compiling kernels",
            "compiling kernels needs the package cuda-python, version 13 or newer (pip install 'cute-py[gpu]')",
        ),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, ability: str, words: str
) -> None:
    from cute_py.draw.picture import monospace_family
    from cute_py.gpu.bindings import nvrtc

    found = findings_module.importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == module else found(name))
    monkeypatch.setitem(sys.modules, module, None)
    for cached in (monospace_family, nvrtc):
        cached.cache_clear()
    works = {row["name"]: row for row in findings()["works"]}
    assert (works[ability]["works"], works[ability]["detail"]) == (False, words)
    for cached in (monospace_family, nvrtc):
        cached.cache_clear()


def test_a_driver_that_fails_while_it_is_asked_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(count: int) -> Any:
        raise DeviceError("waiting for the device: CUDA_ERROR_UNKNOWN")

    monkeypatch.setattr("cute_py.gpu.driver.sweep", broken)
    assert findings_module._codec() == (
        "could not be compared: waiting for the device: CUDA_ERROR_UNKNOWN",
        False,
    )


@each_of(
    ("here", "named", "not_named"),
    [
        (Installation(11080), "no tensor maps", "null address"),
        (Installation(12000), "null address", "no tensor maps"),
        (Installation(12090), "row ends", "alignment of a map"),
        (Installation(13000), "alignment of a map", "no tensor maps"),
        (Installation(13030, (10, 0)), "bit 85", "formats of sm_100"),
        (Installation(13040, (10, 0)), "null address", "bit 85"),
        (Installation(13000, (9, 0)), "formats of sm_100", "bit 85"),
        (Installation(13000, None), "bit 85", "newer NVRTC"),
        (Installation(13000, None, 13000), "row ends", "newer NVRTC"),
        (Installation(13000, None, 13010), "newer NVRTC", "NVRTC of a newer CUDA"),
        (Installation(12080, None, 13000), "NVRTC of a newer CUDA", "newer NVRTC"),
        (Installation(13000, None, 12080), "row ends", "newer NVRTC"),
    ],
)
def test_which_traps_a_driver_has(here: Installation, named: str, not_named: str) -> None:
    names = [row.name for row in known_issues(here)]
    assert named in names
    assert not_named not in names


def test_every_row_has_a_name_of_its_own_a_remedy_and_a_source() -> None:
    assert len({row.name for row in KNOWN_ISSUES}) == len(KNOWN_ISSUES)
    for row in KNOWN_ISSUES:
        assert row.what
        assert row.remedy
        assert row.source
        assert row.measured is ("measured on NVIDIA H200" in row.source)


@pytest.mark.usefixtures("no_gpu")
def test_the_traps_of_another_driver_are_told_as_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = shell(capsys, "doctor", "--driver", "12080", "--json")
    data = json.loads(out)
    assert data["known_issues_for"] == 12080
    assert not any(row["measured_here"] for row in data["known_issues"])
    _, text, _ = shell(capsys, "doctor", "--driver", "12080")
    assert "      source : measured on NVIDIA H200, driver 580.159.04; not measured with this version" in text
    _, text, _ = shell(capsys, "doctor", "--driver", str(MEASURED_DRIVER))
    assert "      source : measured on NVIDIA H200, driver 580.159.04\n" in text


@pytest.mark.parametrize("version", ["-5", "0", "11080", "99999", "13005", "100000", "x", "1e4", ""])
@pytest.mark.parametrize("command", [["doctor"], ["desc", "encode", "--dtype=float16", "--dims=8", "--box=8"]])
def test_versions_that_no_driver_has(capsys: pytest.CaptureFixture[str], command: list[str], version: str) -> None:
    with pytest.raises(SystemExit) as end:
        main([*command, f"--driver={version}"])
    assert end.value.code == 2
    assert "must be 1000 x major + 10 x minor, such as 13010 for CUDA 13.1" in capsys.readouterr().err


def test_the_kernel_module_and_the_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    place = tmp_path / "version"
    monkeypatch.setattr(findings_module, "KERNEL_MODULE", place)
    assert kernel_module() is None
    place.write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (x@y)\n")
    assert kernel_module() == "580.159.04"
    for text, release in (("13.0.88", 13000), ("12.9.86", 12090), (None, None)):
        monkeypatch.setattr(findings_module, "installed_version", lambda name, text=text: text)
        assert compiler_release() == release


@pytest.mark.usefixtures("gpu")
def test_the_report_has_every_package() -> None:
    lines = "\n".join(report_lines(findings()))
    for row in PACKAGES:
        assert f"  {row.name:<18} " in lines
        assert row.purpose in lines
