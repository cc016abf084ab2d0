"""What the doctor looks at: packages, compilers, the driver and its GPU, and what works here, tried and not guessed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import cute_py as cute
from cute_py.cli.driver_traps import MEASURED_CAPABILITY, MEASURED_DRIVER, Installation, traps
from cute_py.cli.progress import spinner
from cute_py.errors import CuteError

SWEEP: Final = 2_000
"""Random requests on which the encoder is compared with the driver."""
KERNEL_MODULE: Final = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True, slots=True)
class Package:
    """One optional or required package: what it is for, and the extra of cute-py that brings it."""

    name: str
    purpose: str
    extra: str = ""


PACKAGES: Final = (
    Package("numpy", "arrays"),
    Package("sympy", "symbolic sizes"),
    Package("ml_dtypes", "bfloat16, 8-bit and smaller floats"),
    Package("safetensors", ".safetensors files", "cli"),
    Package("rich", "colour and progress bars", "cli"),
    Package("shtab", "shell completion", "cli"),
    Package("resvg-py", "pictures as .png", "png"),
    Package("ipython", "pictures in notebooks"),
    Package("cuda-bindings", "the driver, and NVRTC's calls", "gpu"),
    Package("cuda-core", "streams and memory of cuda.core", "gpu"),
    Package("nvidia-cuda-nvrtc", "the compiler of kernels", "gpu"),
    Package("hypothesis", "cute_py.testing.strategies", "test"),
    Package("torch", "its tensors on the GPU"),
    Package("cupy-cuda13x", "its arrays on the GPU"),
)


@dataclass(frozen=True, slots=True)
class Ability:
    """Something that this library can do, whether it does so here, and how that is known or why not."""

    name: str
    works: bool
    told: str


def version_of(package: str) -> str | None:
    """The installed version of a package; None if there is none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def findings(driver: int | None = None) -> dict[str, Any]:
    """Everything that the doctor looks at, as data.

    Args:
        driver: list the traps of this driver version in place of the one that is here.
    """
    device, absent = _device()
    sweep_told, agrees = (None, True) if device is None else _codec()
    abilities = _abilities(device, absent)
    data: dict[str, Any] = {
        "cute_py": cute.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {row.name: version_of(row.name) for row in PACKAGES},
        "ptxas": _ptxas(),
        "kernel_module": kernel_module(),
        "driver": "present" if device is not None else f"none: {absent}",
    }
    if device is not None:
        data |= {
            "driver_version": device.driver_version,
            "gpu": device.name,
            "compute_capability": list(device.capability),
            "architecture": device.arch,
            "multiprocessors": device.multiprocessors,
            "shared_memory": device.shared_bytes,
            "l2": device.l2_bytes,
            "codec": sweep_told,
        }
    data["emulator"] = abilities[0].told
    data["works"] = [{"name": a.name, "works": a.works, "told": a.told} for a in abilities]
    asked = driver if driver is not None else None if device is None else device.driver_version
    data["traps_for"] = asked
    data["traps"] = [] if asked is None else _traps(asked, device if driver is None else None)
    data["healthy"] = agrees and abilities[0].works
    return data


def _device() -> tuple[Any, str]:
    """The GPU, or None and why there is none."""
    try:
        from cute_py.tma.run.gpu_device import open_device

        return open_device(), ""
    except CuteError as error:
        return None, error.headline


def _codec() -> tuple[str, bool]:
    """The encoder against the driver: what is told, and whether they agree."""
    from cute_py.tma.run.driver import sweep

    try:
        with spinner("comparing the encoder with the driver"):
            outcome = sweep(SWEEP)
    except CuteError as error:
        return f"could not be compared: {error.headline}", False
    return f"compared with the driver: {outcome}", bool(outcome)


def _traps(driver: int, device: Any) -> list[dict[str, Any]]:
    capability = None if device is None else device.capability
    here = Installation(driver, capability, compiler_release())
    known = driver == MEASURED_DRIVER and capability in (None, MEASURED_CAPABILITY)
    return [
        {
            "name": row.name,
            "what": row.what,
            "remedy": row.remedy,
            "source": row.source,
            "measured_here": row.measured and known,
        }
        for row in traps(here)
    ]


def compiler_release() -> int | None:
    """The version of the installed NVRTC as 1000 x major + 10 x minor; None without it."""
    found = re.match(r"(\d+)\.(\d+)", version_of("nvidia-cuda-nvrtc") or "")
    return int(found[1]) * 1000 + int(found[2]) * 10 if found else None


def kernel_module() -> str | None:
    """The version of the NVIDIA kernel module, such as '580.159.04'; None where there is none."""
    try:
        found = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", KERNEL_MODULE.read_text())
    except OSError:
        return None
    return found[1] if found else None


def _ptxas() -> str | None:
    from cute_py.tma.lower.assembler import find_ptxas, ptxas_version

    place = find_ptxas()
    try:
        return None if place is None else f"{ptxas_version()} at {place}"
    except (CuteError, OSError):
        return f"{place}, which does not run"


def _tried(name: str, attempt: Callable[[], str]) -> Ability:
    """Do it; a refusal of this library is the reason why it does not work."""
    try:
        return Ability(name, True, attempt())
    except CuteError as error:
        fix = f" ({error.hint})" if error.hint else ""
        return Ability(name, False, error.headline + fix)


def _abilities(device: Any, absent: str) -> list[Ability]:
    emulated = _copied("emulator")
    return [
        Ability("emulator", *emulated),
        Ability("maps", *_mapped()),
        _tried("safetensors files", lambda: _needs("safetensors", "read and written", "cli")),
        _tried("colour and progress", lambda: _needs("rich", "on a terminal", "cli")),
        _tried("shell completion", lambda: _needs("shtab", "cute-py completion SHELL", "cli")),
        _tried("pictures as .png", _png),
        _tried("notebooks", lambda: _needs("IPython", "objects show themselves")),
        _tried("compiling kernels", _compiled),
        Ability("GPU copies", False, absent) if device is None else Ability("GPU copies", *_copied("cuda")),
        Ability("tensor memory on a GPU", False, "emulated, and assembled as text; never executed on a GPU"),
    ]


def _copied(backend: str) -> tuple[bool, str]:
    import numpy as np

    array = np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
    tile = cute.Layout((cute.Int(32), cute.Int(32)), cute.LayoutRight)
    try:
        atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", array, tile)
        equal = bool(cute.tma.copy(atom, array, backend=backend).equal)
    except CuteError as error:
        return False, error.headline
    return equal, f"a copy of 64 x 64 float16 is {'equal' if equal else 'NOT equal'}"


def _mapped() -> tuple[bool, str]:
    from cute_py.tma.descriptor.request import TensorMapTiled

    request = TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=3)
    same = cute.tma.encode(cute.tma.decode(cute.tma.encode(request))) == cute.tma.encode(request)
    return same, f"a map that is encoded, decoded and encoded again is {'the same' if same else 'NOT the same'}"


def _needs(module: str, told: str, extra: str = "") -> str:
    if importlib.util.find_spec(module) is None:
        raise CuteError(f"{module} is not installed", hint=f"pip install 'cute-py[{extra}]'" if extra else None)
    return told


def _png() -> str:
    from cute_py.draw.png import monospace_family

    family = monospace_family()
    return "with the fonts of the style sheet" if family is None else f"with the font {family}"


def _compiled() -> str:
    from cute_py.tma.run.nvrtc import compiler_version, run_nvrtc

    text = 'extern "C" __global__ void nothing() {}'
    cubin = run_nvrtc(text, "nothing", ["--gpu-architecture=sm_90a", "-minimal"], "cubin")
    return f"{compiler_version()}: an empty kernel is {len(cubin)} bytes for sm_90a"
