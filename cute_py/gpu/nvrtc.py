"""From the text of a kernel to a cubin, by NVRTC, and back from a cache.

A cubin is kept under a key of everything that it depends on: the text, the architecture, the options and the version
of the compiler. In memory by `KernelCompiler`; on disk in one file a kernel, written beside its place and moved there
in one step, so that processes that compile the same kernel at the same time do not see halves. A file starts with the
digest of its content; one that does not fit is compiled again.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from cute_py.errors import DeviceError
from cute_py.gpu.bindings import call, nvrtc
from cute_py.gpu.kernels.source import KernelSource

OPTIONS: Final = ("--std=c++17", "-minimal", "-diag-suppress=177,186")
"""`-minimal` leaves out texture and runtime declarations, which no kernel here uses, and saves compile time. 177 and
186 are the warnings of unused constants and of comparisons that the constants decide."""

MAGIC: Final = b"cute_py kernel 1\n"


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A kernel as machine code. `origin` is "compiled", "disk" or "memory"; `seconds` is how long getting it took."""

    source: KernelSource
    arch: str
    cubin: bytes
    compiler: str
    origin: str = field(compare=False)
    seconds: float = field(compare=False)


def cache_directory() -> Path | None:
    """Where cubins are kept: `CUTE_PY_CACHE_DIR`, else below `XDG_CACHE_HOME` or ~/.cache; None if it is set empty."""
    chosen = os.environ.get("CUTE_PY_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "cute_py" / "kernels"


@functools.cache
def compiler_version() -> str:
    """The version of the NVRTC that compiles, without loading it where its package says so."""
    from importlib import metadata

    for package in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"):
        try:
            return f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            continue
    major, minor = call("asking for the version of NVRTC", nvrtc().nvrtcVersion)
    return f"nvrtc {major}.{minor}"


def _text_of(program: Any, size: Any, read: Any) -> bytes:
    length = call("reading what NVRTC made", size, program)
    content = bytes(length)
    call("reading what NVRTC made", read, program, content)
    return content


def run_nvrtc(text: str, name: str, options: Sequence[str], want: str) -> bytes:
    """Compile `text` with these options and return its "cubin" or its "ptx".

    Raises:
        MissingPackageError: no cuda-python.
        DeviceError: NVRTC is missing, or refuses the text; its log is in the error.
    """
    library = nvrtc()
    program = call("creating a program", library.nvrtcCreateProgram, text.encode(), f"{name}.cu".encode(), 0, [], [])
    try:
        arguments = [option.encode() for option in options]
        (code,) = library.nvrtcCompileProgram(program, len(arguments), arguments)
        if int(code) != 0:
            log = _text_of(program, library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog)
            raise DeviceError(
                f"NVRTC refused the kernel {name!r}: {code.name}",
                {"options": " ".join(options), "log": log.rstrip(b"\0").decode(errors="replace").strip()},
            )
        if want == "ptx":
            return _text_of(program, library.nvrtcGetPTXSize, library.nvrtcGetPTX).rstrip(b"\0")
        return _text_of(program, library.nvrtcGetCUBINSize, library.nvrtcGetCUBIN)
    finally:
        library.nvrtcDestroyProgram(program)


class KernelCompiler:
    """Compiles kernels and remembers them, in memory and (unless `directory` is None) on disk."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory
        self._memory: dict[str, CompiledKernel] = {}

    def key(self, source: KernelSource, arch: str) -> str:
        """The name under which a cubin is kept."""
        parts = (source.text, arch, *OPTIONS, compiler_version())
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def compile(self, source: KernelSource, arch: str | None = None) -> CompiledKernel:
        """The cubin of `source` for `arch` (by default the one that it names).

        Raises:
            MissingPackageError, DeviceError: as `run_nvrtc`.
        """
        target = arch or source.arch
        started = time.perf_counter()
        key = self.key(source, target)
        found = self._memory.get(key)
        if found is not None:
            # One text may be launched in several ways (with more shared memory): the source is the caller's.
            return replace(found, source=source, origin="memory", seconds=time.perf_counter() - started)
        cubin, origin = self._read(key), "disk"
        if cubin is None:
            options = (f"--gpu-architecture={target}", *OPTIONS)
            cubin, origin = run_nvrtc(source.text, source.name, options, "cubin"), "compiled"
            self._write(key, cubin)
        kernel = CompiledKernel(source, target, cubin, compiler_version(), origin, time.perf_counter() - started)
        self._memory[key] = kernel
        return kernel

    def _read(self, key: str) -> bytes | None:
        if self.directory is None:
            return None
        try:
            content = (self.directory / f"{key}.cubin").read_bytes()
        except OSError:
            return None
        head = len(MAGIC) + 32
        cubin = content[head:]
        whole = content.startswith(MAGIC) and content[len(MAGIC) : head] == hashlib.sha256(cubin).digest()
        return cubin if whole and cubin else None

    def _write(self, key: str, cubin: bytes) -> None:
        if self.directory is None:
            return
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.directory, prefix=f".{key[:16]}-")
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + hashlib.sha256(cubin).digest() + cubin)
            os.replace(name, self.directory / f"{key}.cubin")
        except OSError:
            return  # A cache that can't be written is no reason to fail: the kernel is compiled.


@functools.cache
def kernel_compiler(directory: Path | None = None) -> KernelCompiler:
    """The compiler that keeps its cubins in `directory`; one for each directory."""
    return KernelCompiler(directory)


def compile_kernel(source: KernelSource, arch: str | None = None) -> CompiledKernel:
    """The cubin of a kernel, from the caches in `cache_directory()` or from NVRTC.

    Raises:
        MissingPackageError, DeviceError: as `run_nvrtc`.
    """
    return kernel_compiler(cache_directory()).compile(source, arch)


def kernel_ptx(source: KernelSource, arch: str | None = None) -> str:
    """The PTX of a kernel, as NVRTC writes it. Errors as `run_nvrtc`."""
    target = (arch or source.arch).replace("sm_", "compute_")
    return run_nvrtc(source.text, source.name, (f"--gpu-architecture={target}", *OPTIONS), "ptx").decode()


def kernel_sass(kernel: CompiledKernel) -> str:
    """The machine code of a kernel, by nvdisasm.

    Raises:
        DeviceError: nvdisasm is not found, or refuses the cubin.
    """
    import shutil
    import subprocess

    tool = shutil.which("nvdisasm") or next(
        (path for path in ("/usr/local/cuda/bin/nvdisasm",) if os.access(path, os.X_OK)), None
    )
    if tool is None:
        raise DeviceError("nvdisasm is not found; it is needed to show SASS", hint="put CUDA's bin folder on PATH")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.cubin)
        file.flush()
        done = subprocess.run([tool, "-c", file.name], capture_output=True, text=True, check=False)
    if done.returncode:
        raise DeviceError("nvdisasm refused the cubin", {"log": done.stderr.strip()})
    return done.stdout
