"""Compile the source of a kernel to a cubin with cuda-core's Program, and cache the cubin.

The key of a cubin contains everything that it depends on: the source, the architecture, the options and the version of
the compiler. `KernelCompiler` caches in memory. cuda-core's FileStreamProgramCache caches on disk, so that processes
that compile the same kernel concurrently never read a partial file. That cache does not verify its entries, so an entry
starts with the digest of its cubin; if the digest does not match, the kernel is compiled again. cute_py makes its own
keys, because cuda-core's keys contain the version that NVRTC reports, and querying it loads the compiler (100 MB) even
if it is not needed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import time
from collections.abc import MutableMapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from cute_py.errors import DeviceError
from cute_py.gpu.bindings import call, core, nvrtc
from cute_py.gpu.kernels.source import KernelSource

OPTIONS: Final = {"std": "c++17", "minimal": True, "no_cache": True, "diag_suppress": [177, 186]}
"""Options for cuda-core's ProgramOptions. `minimal` saves compile time: it omits texture and runtime declarations,
which no kernel here uses. `no_cache` turns off NVRTC's cache, which would start the driver (0.2 s). 177 and 186 are the
numbers of the warnings about unused constants, and about comparisons whose result is constant."""

FAST: Final = {"ofast_compile": "min", "ptxas_options": "-Ofc=0"}
"""Further options for `fast_compile`: fewer passes of the optimizer. ptxas keeps all its passes: with fewer passes it
is not faster, and copies that stay in L2 take up to 17 % longer."""

DIGEST_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A compiled kernel. `origin` is "compiled", "disk" or "memory"; `seconds` is the time that it took to obtain the
    cubin."""

    source: KernelSource
    arch: str
    cubin: bytes = field(repr=False)
    compiler: str
    origin: str = field(compare=False)
    seconds: float = field(compare=False)


def cache_directory() -> Path | None:
    """Return the directory of cached cubins: `CUTE_PY_CACHE_DIR`, or a folder in `XDG_CACHE_HOME` or ~/.cache; None if
    `CUTE_PY_CACHE_DIR` is empty."""
    chosen = os.environ.get("CUTE_PY_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "cute_py" / "kernels"


@functools.cache
def compiler_version() -> str:
    """Return the version of NVRTC, if possible from its package metadata, without loading NVRTC."""
    from importlib import metadata

    for package in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"):
        try:
            return f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            continue
    major, minor = call("querying the version of NVRTC", nvrtc().nvrtcVersion)
    return f"nvrtc {major}.{minor}"


def run_nvrtc(text: str, name: str, arch: str, want: str, fast_compile: bool = False) -> bytes:
    """Compile `text` for `arch` and return the "cubin" or the "ptx". fast_compile: use fewer optimisation passes.

    Raises:
        MissingPackageError: cuda-python or cuda-core is not installed.
        DeviceError: NVRTC is missing, or can't compile the source; the error contains its log.
    """
    api = nvrtc()
    chosen = OPTIONS | FAST if fast_compile else OPTIONS
    listed = core().ProgramOptions(name=f"{name}.cu", arch=arch, **chosen).as_bytes("nvrtc")
    program = call("creating a program", api.nvrtcCreateProgram, text.encode(), f"{name}.cu".encode(), 0, [], [])
    try:
        code = api.nvrtcCompileProgram(program, len(listed), listed)[0]
        if int(code):
            log = bytearray(call("reading the log", api.nvrtcGetProgramLogSize, program))
            call("reading the log", api.nvrtcGetProgramLog, program, log)
            options = " ".join(option.decode() for option in listed)
            raise DeviceError(
                f"NVRTC refused the kernel {name!r}: {code.name}",
                {"options": options, "log": log.decode(errors="replace").rstrip("\0").strip()},
            )
        size, read = {
            "cubin": (api.nvrtcGetCUBINSize, api.nvrtcGetCUBIN),
            "ptx": (api.nvrtcGetPTXSize, api.nvrtcGetPTX),
        }[want]
        content = bytearray(call("reading what NVRTC made", size, program))
        call("reading what NVRTC made", read, program, content)
    finally:
        api.nvrtcDestroyProgram(program)
    return bytes(content)


class KernelCompiler:
    """Compiler of kernels that caches cubins in memory, and also on disk unless `directory` is None."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory
        self._memory: dict[str, CompiledKernel] = {}

    @functools.cached_property
    def files(self) -> MutableMapping[str, bytes]:
        """The stored cubins by key: on disk, or in memory if there is no directory or it is not writable."""
        if self.directory is not None:
            with contextlib.suppress(OSError):
                cache: MutableMapping[str, bytes] = core().utils.FileStreamProgramCache(self.directory)
                return cache
        return {}

    def key(self, source: KernelSource, arch: str) -> str:
        """Return the key of a stored cubin."""
        parts = (source.text, arch, str(OPTIONS), str(FAST if source.fast_compile else ""), compiler_version())
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def compile(self, source: KernelSource, arch: str | None = None) -> CompiledKernel:
        """Return the cubin of `source` for `arch` (by default, the architecture of the source), from a cache or from
        NVRTC.

        Raises:
            MissingPackageError, DeviceError: see `run_nvrtc`.
        """
        target = arch or source.arch
        started = time.perf_counter()
        key = self.key(source, target)
        found = self._memory.get(key)
        if found is not None:
            # One text may be launched in several ways (with more shared memory), so keep the caller's object.
            return replace(found, source=source, origin="memory", seconds=time.perf_counter() - started)
        cubin, origin = b"", "disk"
        with contextlib.suppress(OSError):
            content = self.files.get(key) or b""
            if hashlib.sha256(content[DIGEST_BYTES:]).digest() == content[:DIGEST_BYTES]:
                cubin = content[DIGEST_BYTES:]
        if not cubin:
            cubin, origin = run_nvrtc(source.text, source.name, target, "cubin", source.fast_compile), "compiled"
            with contextlib.suppress(OSError):
                self.files[key] = hashlib.sha256(cubin).digest() + cubin
        kernel = CompiledKernel(source, target, cubin, compiler_version(), origin, time.perf_counter() - started)
        self._memory[key] = kernel
        return kernel


@functools.cache
def kernel_compiler(directory: Path | None = None) -> KernelCompiler:
    """Return the compiler that stores its cubins in `directory`; there is one for each directory."""
    return KernelCompiler(directory)


def compile_kernel(source: KernelSource, arch: str | None = None) -> CompiledKernel:
    """Return the compiled kernel, from the caches in `cache_directory()` or from NVRTC.

    Raises:
        MissingPackageError, DeviceError: see `run_nvrtc`.
    """
    return kernel_compiler(cache_directory()).compile(source, arch)


def kernel_ptx(source: KernelSource, arch: str | None = None) -> str:
    """Return the PTX that NVRTC generates for a kernel. For errors, see `run_nvrtc`."""
    target = (arch or source.arch).replace("sm_", "compute_")
    return run_nvrtc(source.text, source.name, target, "ptx", source.fast_compile).rstrip(b"\0").decode()


def kernel_sass(kernel: CompiledKernel) -> str:
    """Return the disassembled machine code (SASS) of a kernel. For errors, see `disassemble`."""
    from cute_py.ptx.module import disassemble

    return disassemble(kernel.cubin)
