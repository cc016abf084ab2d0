"""Compile CUDA C++ to PTX with an installed compiler, or extract the PTX of a fatbin.

This module calls NVRTC through its C interface, so it needs neither a driver nor another package. NVRTC comes from the
wheel nvidia-cuda-nvrtc or from a CUDA toolkit. If nvcc is on PATH, nvcc compiles files instead, because it finds the
standard headers.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import functools
import glob
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cute_py.errors import InvalidValueError, MissingPackageError, given, shortened, system_reason
from cute_py.ptx.module import find_in_wheels

TIME_LIMIT_SECONDS: Final = 600
_ELF: Final = b"\x7fELF"
_FATBIN: Final = b"\x50\xed\x55\xba"
_EM_CUDA: Final = 190
"""The ELF header's e_machine of a cubin."""
_PASS_PTX: Final = "pass the PTX (nvcc -ptx), or a fatbin that contains it"
_LIBRARIES: Final = (
    "/usr/local/cuda/lib64/libnvrtc.so*",
    "/usr/local/cuda/targets/*/lib/libnvrtc.so*",
)
SOURCES: Final = (".cu", ".cuh", ".cpp", ".cc")
"""File extensions of CUDA C++."""
LINES: Final = "-lineinfo"
"""The option of nvcc and NVRTC that adds the source lines to the PTX. It does not change the code."""
NEEDED: Final = "pip install nvidia-cuda-nvrtc, or put nvcc on PATH"


@functools.cache
def nvrtc_library() -> Any:
    """Load NVRTC; return None if it is not installed."""
    import importlib.util

    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    wheels = [path for folder in folders for path in sorted(Path(folder).glob("*/lib/libnvrtc.so*"))]
    files = [str(path) for path in wheels] + [path for form in _LIBRARIES for path in sorted(glob.glob(form))]
    named = ctypes.util.find_library("nvrtc")
    for path in [*files, *([named] if named else [])]:
        if "alt" in os.path.basename(path) or "builtins" in os.path.basename(path):
            continue
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        # NVRTC opens its built-in functions by name, and some wheels give it no path: load them from its folder.
        for builtins in Path(path).parent.glob("libnvrtc-builtins.so*") if "/" in path else ():
            with contextlib.suppress(OSError):
                ctypes.CDLL(str(builtins))
        return library
    return None


def find_nvcc() -> str | None:
    """Find nvcc on PATH, in CUDA's default folder, or in its wheel; return None if nvcc is not installed."""
    found = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    wheel = find_in_wheels("nvcc")
    return found or (None if wheel is None else str(wheel))


def compiler_available() -> bool:
    """Whether NVRTC or nvcc is installed, so that CUDA C++ can be compiled."""
    return nvrtc_library() is not None or find_nvcc() is not None


def compiled_by_nvrtc(text: str, name: str, arch: str, options: Sequence[str] = ()) -> str:
    """Compile a CUDA C++ string without headers to PTX, with NVRTC.

    Raises:
        MissingPackageError: NVRTC is not installed. InvalidValueError: NVRTC reports an error; the exception has its
            log.
    """
    library = nvrtc_library()
    if library is None:
        raise MissingPackageError("NVRTC compiles CUDA C++, but it is not installed", hint=NEEDED)
    program = ctypes.c_void_p()
    file = name if name.endswith(SOURCES) else f"{name}.cu"
    made = library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), file.encode(), 0, None, None)
    if made:
        raise InvalidValueError(f"NVRTC refused to create the program {given(name)}: error {made}")
    try:
        given_options = [f"-arch={arch.replace('sm_', 'compute_')}", "-std=c++17", *options]
        listed = (ctypes.c_char_p * len(given_options))(*[one.encode() for one in given_options])
        code = library.nvrtcCompileProgram(program, len(given_options), listed)
        if code:
            log = _read(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program)
            raise InvalidValueError(f"NVRTC refused the kernel {given(name)}", {"log": shortened(log.strip(), 4000)})
        return _read(library.nvrtcGetPTXSize, library.nvrtcGetPTX, program)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _read(size: Any, content: Any, program: ctypes.c_void_p) -> str:
    count = ctypes.c_size_t()
    size(program, ctypes.byref(count))
    block = ctypes.create_string_buffer(count.value)
    content(program, block)
    return block.raw.rstrip(b"\0").decode(errors="replace")


def compiled_by_nvcc(path: str, arch: str, options: Sequence[str] = ()) -> str:
    """Compile a CUDA C++ file to PTX, with nvcc.

    Raises:
        MissingPackageError: nvcc is not installed. InvalidValueError: nvcc reports an error.
    """
    nvcc = find_nvcc()
    if nvcc is None:
        raise MissingPackageError("a CUDA C++ file needs nvcc, which is not on PATH", hint=NEEDED)
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "kernel.ptx")
        words = [nvcc, "-ptx", f"-arch={arch}", "-std=c++17", *options, "-o", target, path]
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, errors="replace", check=False, timeout=TIME_LIMIT_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise InvalidValueError(f"nvcc did not finish within {TIME_LIMIT_SECONDS} s") from None
        if done.returncode:
            log = shortened(done.stderr.strip(), 4000)
            raise InvalidValueError(f"nvcc refused {given(path)}", {"log": log})
        return Path(target).read_text(errors="replace")


def ptx_of_text(text: str, name: str, arch: str) -> str:
    """Compile a CUDA C++ string to PTX, with NVRTC or, if it is not installed, with nvcc.

    Raises:
        MissingPackageError, InvalidValueError: the errors of `compiled_by_nvrtc` and `compiled_by_nvcc`.
    """
    if nvrtc_library() is not None:
        return compiled_by_nvrtc(text, name, arch, ["-minimal"])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"{re.sub(r'[^A-Za-z0-9_]', '_', name) or 'kernel'}.cu")
        Path(path).write_text(text)
        return compiled_by_nvcc(path, arch)


def ptx_of_file(path: str, arch: str = "sm_90a", options: Sequence[str] = (), compiler: str | None = None) -> str:
    """Return the PTX of a file: PTX itself, CUDA C++ (.cu), a fatbin, or an executable that contains a fatbin.

    PTX that is compiled from CUDA C++ has `.loc` directives with the source lines.

    Args:
        compiler: 'nvcc' or 'nvrtc' for CUDA C++; None selects nvcc if it is installed, else NVRTC.
    Raises:
        InvalidValueError: the file can't be read, or contains no PTX, for example a cubin. MissingPackageError: a
            compiler or cuobjdump is needed and not installed.
    """
    try:
        raw = Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise InvalidValueError(f"{given(path)} can't be read: {system_reason(error)}") from None
    if raw[:4] == _ELF and int.from_bytes(raw[18:20], "little") == _EM_CUDA:
        raise _without_ptx(path)
    if raw[:4] in (_ELF, _FATBIN):
        return _extracted(path, arch)
    if path.endswith(SOURCES):
        if compiler == "nvcc" or (compiler is None and find_nvcc() is not None):
            return compiled_by_nvcc(path, arch, ["--expt-relaxed-constexpr", LINES, *options])
        return compiled_by_nvrtc(raw.decode(errors="replace"), Path(path).name, arch, [LINES, *options])
    return raw.decode(errors="replace")


def _extracted(path: str, arch: str) -> str:
    """Extract the PTX of a fatbin with cuobjdump."""
    tool = shutil.which("cuobjdump") or shutil.which("/usr/local/cuda/bin/cuobjdump") or find_in_wheels("cuobjdump")
    if tool is None:
        text = f"cuobjdump reads the PTX that {given(path)} may contain, but it is not on PATH"
        raise MissingPackageError(text, hint=_PASS_PTX)
    done = subprocess.run(
        [str(tool), "-ptx", path], capture_output=True, text=True, errors="replace", check=False,
        timeout=TIME_LIMIT_SECONDS,
    )  # fmt: skip
    found = None if done.returncode else chosen_text(done.stdout, arch)
    if found is None:
        raise _without_ptx(path)
    return found


def _without_ptx(path: str) -> InvalidValueError:
    return InvalidValueError(f"{given(path)} contains machine code (SASS), but no PTX", hint=_PASS_PTX)


def chosen_text(listing: str, arch: str) -> str | None:
    """Choose the PTX for a target from the output of `cuobjdump -ptx`; None if the output has no PTX.

    The order of preference is PTX for the target itself, for the newest earlier target, and for the oldest target. If
    several PTX texts have the same target, the first one with a kernel is chosen.

    >>> listing = '''Fatbin ptx code:
    ... ================
    ... arch = sm_80
    ... .version 9.0
    ... .target sm_80
    ... Fatbin ptx code:
    ... ================
    ... arch = sm_90
    ... .version 9.0
    ... .target sm_90'''
    >>> chosen_text(listing, "sm_90a").splitlines()[1], chosen_text(listing, "sm_75").splitlines()[1]
    ('.target sm_90', '.target sm_80')
    """
    wanted = _generation(arch)
    found = []
    for part in re.split(r"^Fatbin ", listing, flags=re.MULTILINE):
        start = part.find(".version")
        target = re.search(r"^\.target\s+(\w+)", part, re.MULTILINE)
        if start >= 0 and target is not None:
            number = _generation(target[1])
            rank = (target[1] == arch, number <= wanted, number if number <= wanted else -number, ".entry" in part)
            found.append((rank, part[start:]))
    return max(found, key=lambda one: one[0])[1] if found else None


def _generation(arch: str) -> int:
    digits = re.search(r"\d{1,4}", arch)
    return int(digits[0]) if digits is not None else 0
