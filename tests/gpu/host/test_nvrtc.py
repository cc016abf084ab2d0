"""Compilation and its caches. The compiler is replaced by a counter, except where NVRTC is installed."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from cute_py.errors import DeviceError, MissingPackageError
from cute_py.gpu import nvrtc
from cute_py.gpu.kernels.copy import copy_once
from cute_py.gpu.kernels.source import KernelSource
from cute_py.gpu.kernels.walk import cover
from cute_py.gpu.nvrtc import DIGEST_BYTES, KernelCompiler, cache_directory, compile_kernel

SOURCE = copy_once(cover((1024, 64), (256, 8)), 4096)


class Counter:
    """In the place of NVRTC: counts, and gives a content that depends on everything asked."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, text: str, name: str, arch: str, want: str, fast_compile: bool) -> bytes:
        self.calls += 1
        return f"{want} {name} {arch} {len(text)} {fast_compile}".encode()


class Files(dict[str, bytes]):
    """In the place of cuda-core's FileStreamProgramCache: bytes by key, in one file each."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory

    def get(self, key: str, default: bytes | None = None) -> bytes | None:  # type: ignore[override]
        file = self.directory / f"{key}.cubin"
        return file.read_bytes() if file.exists() else default

    def __setitem__(self, key: str, value: bytes) -> None:
        (self.directory / f"{key}.cubin").write_bytes(value)


CORE = SimpleNamespace(utils=SimpleNamespace(FileStreamProgramCache=Files))


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    found = Counter()
    monkeypatch.setattr(nvrtc, "run_nvrtc", found)
    monkeypatch.setattr(nvrtc, "core", lambda: CORE)
    monkeypatch.setattr(nvrtc, "compiler_version", lambda: "made up 1.0")
    return found


def test_a_kernel_is_compiled_once(counter: Counter, tmp_path: Path) -> None:
    first = KernelCompiler(tmp_path)
    assert [first.compile(SOURCE).origin for _ in range(3)] == ["compiled", "memory", "memory"]
    assert KernelCompiler(tmp_path).compile(SOURCE).origin == "disk"
    assert KernelCompiler(tmp_path).compile(SOURCE).cubin == first.compile(SOURCE).cubin
    assert counter.calls == 1


def test_what_a_cubin_depends_on_is_in_its_key(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = KernelCompiler(None)
    keys = {compiler.key(SOURCE, "sm_90a"), compiler.key(SOURCE, "sm_100a")}
    keys.add(compiler.key(replace(SOURCE, text=SOURCE.text + "\n"), "sm_90a"))
    keys.add(compiler.key(replace(SOURCE, fast_compile=True), "sm_90a"))
    monkeypatch.setattr(nvrtc, "compiler_version", lambda: "made up 2.0")
    keys.add(compiler.key(SOURCE, "sm_90a"))
    assert len(keys) == 5


def test_one_text_with_more_shared_memory_is_a_launch_of_its_own(counter: Counter) -> None:
    compiler = KernelCompiler(None)
    small, large = compiler.compile(SOURCE), compiler.compile(replace(SOURCE, shared_bytes=100_000))
    assert (small.source.shared_bytes, large.source.shared_bytes) == (SOURCE.shared_bytes, 100_000)
    assert small != large
    assert counter.calls == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),
        lambda content: b"",
        lambda content: content[:DIGEST_BYTES],
        lambda content: b"X" + content,
        lambda content: content[:3] + bytes([content[3] ^ 1]) + content[4:],
    ],
    ids=["short", "one bit", "empty", "no cubin", "longer", "other digest"],
)
def test_a_damaged_file_is_compiled_again(counter: Counter, tmp_path: Path, damage: object) -> None:
    KernelCompiler(tmp_path).compile(SOURCE)
    (file,) = tmp_path.glob("*.cubin")
    whole = file.read_bytes()
    file.write_bytes(damage(whole))  # type: ignore[operator]
    assert KernelCompiler(tmp_path).compile(SOURCE).origin == "compiled"
    assert file.read_bytes() == whole
    assert counter.calls == 2


def test_a_directory_that_can_not_be_written_is_no_error(counter: Counter, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert KernelCompiler(blocked / "below").compile(SOURCE).origin == "compiled"


def _compile_in(folder: str) -> bytes:
    nvrtc.run_nvrtc = lambda text, *_: text.encode() * 20  # type: ignore[assignment]
    nvrtc.compiler_version = lambda: "made up 1.0"  # type: ignore[assignment]
    cubin = b""
    for _ in range(20):
        cubin = KernelCompiler(Path(folder)).compile(SOURCE).cubin
        for file in (Path(folder) / "entries").glob("*/*"):
            file.unlink(missing_ok=True)
    return cubin


def test_processes_share_a_directory(tmp_path: Path) -> None:
    """Two processes write and remove the same file all the time: each gets whole content always."""
    pytest.importorskip("cuda.core", reason="the cache is cuda-core's")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map(_compile_in, [str(tmp_path)] * 2)
    assert set(found) == {SOURCE.text.encode() * 20}
    assert not list((tmp_path / "tmp").glob("*"))


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUTE_PY_CACHE_DIR", str(tmp_path))
    assert cache_directory() == tmp_path
    monkeypatch.setenv("CUTE_PY_CACHE_DIR", "")
    assert cache_directory() is None
    monkeypatch.delenv("CUTE_PY_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "cute_py" / "kernels"


def test_without_cuda_python_the_text_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_PY_CACHE_DIR", "")
    try:
        from cuda.bindings import nvrtc as installed
    except ImportError:
        with pytest.raises(MissingPackageError) as caught:
            compile_kernel(SOURCE)
        assert str(caught.value) == (
            "compiling kernels needs the package cuda-python, version 13 or newer\n"
            "  missing : cuda\n"
            "  hint    : pip install 'cute-py[gpu]'"
        )
    else:
        assert installed is not None


def test_a_kernel_that_nvrtc_refuses() -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    broken = KernelSource("broken", 'extern "C" __global__ void broken() { no_such_thing(); }', 32, 0)
    with pytest.raises(DeviceError, match="no_such_thing"):
        KernelCompiler(None).compile(broken)
