"""Find the library that the CUDA driver loads into a watched program, or build and cache it."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from cute_py.argument_checks import record
from cute_py.errors import DeviceError, MissingPackageError, shortened, system_reason

SOURCE: Final = Path(__file__).with_name("injection.c")
COMPILERS: Final = ("cc", "gcc", "clang")
FLAGS: Final = ("-std=gnu11", "-O2", "-fPIC", "-shared")
BUILD_SECONDS: Final = 120
INSTALL: Final = "pip install 'cute-py[watch]'"


@record
class Injector:
    """The library that watches a program. library: its path, for CUDA_INJECTION64_PATH; cupti: the path of the libcupti
    that it loads.

    >>> Injector(Path("/tmp/libwatch.so"), Path("/usr/lib/libcupti.so")).library.name
    'libwatch.so'
    """

    library: Path
    cupti: Path


def _places() -> list[Path]:
    """Folders that may contain CUPTI: NVIDIA's Python wheels first, then CUDA toolkits."""
    spec = importlib.util.find_spec("nvidia")
    wheels = [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec is not None else []
    inside = [path for folder in wheels for path in sorted(folder.glob("*")) if path.is_dir()]
    nvcc = shutil.which("nvcc")
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    if nvcc is not None:
        roots.append(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))))
    toolkits = [Path(root) for root in roots if root]
    return [*inside, *(root / sub for root in toolkits for sub in ("extras/CUPTI", "", "targets/x86_64-linux"))]


@functools.cache
def find_cupti() -> Path | None:
    """The path of libcupti.so, from the wheel nvidia-cuda-cupti or a CUDA toolkit; None if neither is installed."""
    for place in _places():
        for folder in ("lib64", "lib"):
            found = sorted((place / folder).glob("libcupti.so*"), key=lambda path: len(path.name))
            if found:
                return found[0]
    return None


def cache_folder() -> Path:
    """The folder of the built library: `CUTE_PY_CACHE_DIR`, or else a folder in `XDG_CACHE_HOME` or ~/.cache."""
    chosen = os.environ.get("CUTE_PY_CACHE_DIR")
    base = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    return Path(chosen) if chosen else base / "cute_py" / "watch"


def _compiler() -> str:
    chosen = [os.environ["CC"]] if os.environ.get("CC") else list(COMPILERS)
    found = next((path for name in chosen if (path := shutil.which(name)) is not None), None)
    if found is None:
        raise MissingPackageError(
            "the first use of watch needs a C compiler",
            {"looked for": " ".join(chosen)},
            hint="install gcc or clang, or set CC",
        )
    return found


def build_injector(folder: Path | None = None) -> Injector:
    """Return the library that watches a program; build it with the installed C compiler if it does not exist yet.

    Args:
        folder: the folder of the library; None means `cache_folder()`.
    Raises:
        MissingPackageError: CUPTI or a C compiler is not installed. DeviceError: the compiler refuses the source.
    """
    cupti = find_cupti()
    if cupti is None:
        raise MissingPackageError("watching needs CUPTI (libcupti.so)", hint=f"a CUDA toolkit, or {INSTALL}")
    compiler, source = _compiler(), SOURCE.read_bytes()
    key = hashlib.sha256("\0".join([compiler, *FLAGS]).encode() + source).hexdigest()[:16]
    place = cache_folder() if folder is None else folder
    library = place / f"cute_py_watch_{key}.so"
    if library.is_file():
        return Injector(library, cupti)
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place) as work:
            made = Path(work) / "injection.so"
            command = [compiler, *FLAGS, str(SOURCE), "-o", str(made), "-ldl", "-lpthread"]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=BUILD_SECONDS)
            if done.returncode:
                log = shortened(done.stderr.strip(), 2000)
                raise DeviceError(f"{compiler} can't compile the watching library", {"log": log})
            os.replace(made, library)
    except OSError as error:
        raise DeviceError(f"{place}: can't store the watching library here: {system_reason(error)}") from None
    except subprocess.TimeoutExpired:
        raise DeviceError(f"{compiler} did not finish within {BUILD_SECONDS} s") from None
    return Injector(library, cupti)
