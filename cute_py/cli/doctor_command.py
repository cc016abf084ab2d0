"""`cute-py doctor`: list the installed packages, the features that work, the reasons why others do not, and the known
issues of this driver.

The command reads facts (versions, compilers, the driver and its GPU), and tries each feature of a table. A second
table, with sources, lists the known issues of drivers by version, GPU and compiler. Driver versions are numbers as in
cuDriverGetVersion: 1000 x major + 10 x minor of the CUDA version that the driver supports.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import cute_py as cute
from cute_py.cli.arguments import driver_version, json_option
from cute_py.diagnostics import reason_table
from cute_py.errors import CuteError
from cute_py.gpu.device import MIN_DRIVER, Device
from cute_py.terminal import print_report, spinner
from cute_py.tma.descriptor.data_types import CUDA_H, MEASURED
from cute_py.tma.descriptor.encode import QUIRKS

Probe: TypeAlias = "Callable[[Device | None, str], tuple[bool, str]]"
"""(GPU or None, why there is none) -> (does it work here?, how this was found)."""
MEASURED_DRIVER: Final = 13000
"""The version of the driver that was measured: 580.159.04."""
MEASURED_CAPABILITY: Final = (9, 0)

_COMPATIBILITY: Final = "CUDA Compatibility guide, minor version compatibility; documented, not measured"


@dataclass(frozen=True, slots=True)
class Installation:
    """The driver, GPU and compiler that known issues are compared with; None means an unknown value.

    `driver` and `compiler` (NVRTC) are versions, 1000 x major + 10 x minor; `capability` is the GPU's compute
    capability, (major, minor).
    """

    driver: int
    capability: tuple[int, int] | None = None
    compiler: int | None = None

    @property
    def newer_compiler(self) -> str | None:
        """'minor' if NVRTC is newer than the driver within one major version, 'major' if its major version is newer;
        otherwise None."""
        if self.compiler is None or self.compiler <= self.driver:
            return None
        return "major" if self.compiler // 1000 > self.driver // 1000 else "minor"


@dataclass(frozen=True, slots=True)
class KnownIssue:
    """One known issue: with drivers `first` to `last` (None: no bound is known), on GPUs of a compute capability below
    `below`, `what` happens.

    `measured`: the issue was seen with driver 580.159.04 on an NVIDIA H200; other versions may differ. `document`:
    another source. `newer_compiler`: the value that `Installation.newer_compiler` must have; None: any.
    """

    name: str
    what: str
    remedy: str
    document: str = ""
    first: int = 0
    last: int | None = None
    below: tuple[int, int] | None = None
    from_capability: tuple[int, int] | None = None
    newer_compiler: str | None = None
    measured: bool = True

    @property
    def source(self) -> str:
        """The source of the row, as text."""
        return "; ".join(filter(None, (self.document, MEASURED if self.measured else "")))

    def applies(self, here: Installation) -> bool:
        """Whether the issue affects this installation; an unknown value counts as a match."""
        capability = here.capability
        return (
            here.driver >= max(self.first, MIN_DRIVER if self.measured else 0)
            and (self.last is None or here.driver <= self.last)
            and (capability is None or self.below is None or capability < self.below)
            and (capability is None or self.from_capability is None or capability >= self.from_capability)
            and self.newer_compiler in (None, here.newer_compiler)
        )


_ISSUES: Final = reason_table(f"""
no tensor maps | the driver's API has no cuTensorMapEncode
    -> a driver for CUDA 12.0 or newer; the emulator and the encoder here need no driver
    <- CUDA driver API, cuTensorMapEncodeTiled
{QUIRKS[0].name} | {QUIRKS[0].condition}: {QUIRKS[0].effect}
    -> cute.tma.encode(request, driver=version) clears it in a map that the driver wrote
    <- {QUIRKS[0].source}
no reasons | every refusal of a tensor map is CUDA_ERROR_INVALID_VALUE
    -> cute-py desc check lists every broken rule
null address | a map of address 0 is accepted; a copy through it faults
    -> cute-py desc check warns
overlapping strides | strides that do not nest are accepted, even 0 and less than a row
    -> cute-py desc check warns
accepted against the manual | interleave 32B with a swizzle other than 32B, and im2col-wide maps with none or 32B, are
    accepted
    -> keep to the manual: other drivers may refuse them
    <- {CUDA_H}
byte note | with element strides, word 8 of a map is not what the hardware delivers: a barrier that expects it hangs
    -> atom.transaction_bytes, or transaction_bytes(request)
coordinates | an inner coordinate that is not a multiple of 16 bytes, a negative coordinate of a store, or an im2col
    base outside the bounding box is an illegal instruction, and ends the CUDA context
    -> the emulator raises TmaTrap instead; isolate=True runs in a separate process
reductions | add, min, max, inc, dec, and, or, xor are illegal instructions with some element formats, though the map
    and the PTX are accepted
    -> the emulator raises TmaTrap instead
row ends | a store overwrites up to the next 16 bytes past the end of a row whose length is not a multiple of 16 bytes
    -> rows whose length is a multiple of 16 bytes, or a pitch that leaves room after them
FLOAT32_FTZ | loads through a map of this type do not flush denormals
    -> flush them in the kernel
replaced element type | tensormap.replace of a tf32 element type by another one keeps the rounding to tf32
    -> encode the map anew, or start from one that is not tf32
formats of sm_100 | data types 13 to 15 (packed 4 and 6 bits) and swizzles 4 to 6 are refused on this GPU
    -> a GPU of compute capability 10.0 or newer
alignment of a map | a map must be at a multiple of 128 bytes since CUDA 13.0 (64 before); cuda-python's CUtensorMap
    is not aligned like this
    -> copy the bytes to aligned memory, as this library does
    <- CUDA 13.0 driver API, CUtensorMap; cuda-bindings 13.3: 12 of 12 objects at 48 modulo 64
empty strides | cuda-python passes an empty list of strides as a null pointer, which the driver refuses even for rank 1
    -> pass one unused stride, as this library does
newer NVRTC | NVRTC is newer than the driver: its cubins run, its PTX is refused (CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    -> compile to a cubin, as this library does, or update the driver
    <- {_COMPATIBILITY}
NVRTC of a newer CUDA | NVRTC is of a newer major version than the driver: its cubins and its PTX may fail to load
    -> update the driver, or install an NVRTC with the driver's major version
    <- {_COMPATIBILITY}
""")
_LIMITS: Final[dict[str, dict[str, Any]]] = {
    "no tensor maps": {"measured": False, "last": MIN_DRIVER - 10},
    QUIRKS[0].name: {"measured": False, "last": QUIRKS[0].last_driver, "from_capability": (10, 0)},
    "formats of sm_100": {"below": (10, 0)},
    "alignment of a map": {"measured": False, "first": 13000},
    "newer NVRTC": {"measured": False, "newer_compiler": "minor"},
    "NVRTC of a newer CUDA": {"measured": False, "newer_compiler": "major"},
}
KNOWN_ISSUES: Final[tuple[KnownIssue, ...]] = tuple(
    KnownIssue(name, row.why, row.fix, row.source, **_LIMITS.get(name, {})) for name, row in _ISSUES.items()
)
"""Every row, in the order of the report."""


def known_issues(here: Installation) -> list[KnownIssue]:
    """The known issues that affect an installation.

    >>> [row.name for row in known_issues(Installation(11080))][0]
    'no tensor maps'
    >>> "newer NVRTC" in [row.name for row in known_issues(Installation(13000, (9, 0), 13030))]
    True
    """
    return [row for row in KNOWN_ISSUES if row.applies(here)]


class Package(NamedTuple):
    """A required or optional package: its purpose, and the extra of cute-py that installs it."""

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
    Package("cuda-core", "devices, and the cache of kernels", "gpu"),
    Package("nvidia-cuda-nvrtc", "the compiler of kernels", "gpu"),
    Package("hypothesis", "cute_py.testing.strategies", "test"),
    Package("torch", "its tensors on the GPU"),
    Package("cupy-cuda13x", "its arrays on the GPU"),
)


SWEEP: Final = 2_000
"""The encoder is compared with the driver on this many random requests."""
KERNEL_MODULE: Final = Path("/proc/driver/nvidia/version")


def installed_version(package: str) -> str | None:
    """The installed version of a package; None if the package is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _device() -> tuple[Device | None, str]:
    """The GPU, or None and the reason why there is none."""
    try:
        from cute_py.gpu.device import open_device

        return open_device(), ""
    except CuteError as error:
        return None, error.headline


def _codec() -> tuple[str, bool]:
    """Compare the encoder with the driver. Return the outcome as text, and whether they agree."""
    from cute_py.gpu.driver import sweep

    try:
        with spinner("comparing the encoder with the driver"):
            outcome = sweep(SWEEP)
    except CuteError as error:
        return f"could not be compared: {error.headline}", False
    return f"compared with the driver: {outcome}", bool(outcome)


def compiler_release() -> int | None:
    """The version of the installed NVRTC as 1000 x major + 10 x minor; None if NVRTC is not installed."""
    found = re.match(r"(\d+)\.(\d+)", installed_version("nvidia-cuda-nvrtc") or "")
    return int(found[1]) * 1000 + int(found[2]) * 10 if found else None


def kernel_module() -> str | None:
    """The version of the NVIDIA kernel module, such as '580.159.04'; None if it is not loaded."""
    try:
        found = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", KERNEL_MODULE.read_text())
    except OSError:
        return None
    return found[1] if found else None


def _ptxas() -> str | None:
    from cute_py.ptx.module import find_ptxas, ptxas_version

    place = find_ptxas()
    try:
        return None if place is None else f"{ptxas_version()} at {place}"
    except (CuteError, OSError):
        return f"{place}, which does not run"


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
    raw = cute.tma.encode(cute.tma.TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=3))
    same = cute.tma.encode(cute.tma.decode(raw)) == raw
    return same, f"a map that is encoded, decoded and encoded again is {'the same' if same else 'NOT the same'}"


def _needs(module: str, detail: str, extra: str = "") -> tuple[bool, str]:
    if importlib.util.find_spec(module) is None:
        raise CuteError(f"{module} is not installed", hint=f"pip install 'cute-py[{extra}]'" if extra else None)
    return True, detail


def _png() -> tuple[bool, str]:
    from cute_py.draw.picture import monospace_family

    family = monospace_family()
    return True, "with the fonts of the style sheet" if family is None else f"with the font {family}"


def _compiled() -> tuple[bool, str]:
    from cute_py.gpu.nvrtc import compiler_version, run_nvrtc

    text = 'extern "C" __global__ void nothing() {}'
    cubin = run_nvrtc(text, "nothing", "sm_90a", "cubin")
    return True, f"{compiler_version()}: an empty kernel is {len(cubin)} bytes for sm_90a"


def _gpu(device: Device | None, absent: str) -> tuple[bool, str]:
    return (False, absent) if device is None else _copied("cuda")


HERE: Final[tuple[tuple[str, str, Callable[[], str | dict[str, str | None] | None]], ...]] = (
    ("cute_py", "cute_py", lambda: cute.__version__),
    ("python", "python", platform.python_version),
    ("platform", "platform", platform.platform),
    ("packages", "", lambda: {row.name: installed_version(row.name) for row in PACKAGES}),
    ("ptxas", "ptxas", _ptxas),
    ("kernel_module", "NVIDIA kernel module", kernel_module),
)
"""(key of a fact, its name in the report, how it is found), in order."""
OF_DEVICE: Final[tuple[tuple[str, str, Callable[[Device], int | str | Sequence[int]]], ...]] = (
    ("driver_version", "driver's CUDA version", lambda device: device.driver_version),
    ("gpu", "GPU", lambda device: device.name),
    ("compute_capability", "compute capability", lambda device: list(device.capability)),
    ("architecture", "architecture", lambda device: device.arch),
    ("multiprocessors", "multiprocessors", lambda device: device.multiprocessors),
    ("shared_memory", "shared memory, bytes", lambda device: device.shared_bytes),
    ("l2", "L2 cache, bytes", lambda device: device.l2_bytes),
)
"""(key of a fact about a GPU, its name in the report, how it is found), in order."""
ABILITIES: Final[tuple[tuple[str, Probe], ...]] = (
    ("emulator", lambda *_: _copied("emulator")),
    ("maps", lambda *_: _mapped()),
    ("safetensors files", lambda *_: _needs("safetensors", "read and written", "cli")),
    ("colour and progress", lambda *_: _needs("rich", "on a terminal", "cli")),
    ("shell completion", lambda *_: _needs("shtab", "cute-py completion SHELL", "cli")),
    ("pictures as .png", lambda *_: _png()),
    ("notebooks", lambda *_: _needs("IPython", "objects display themselves")),
    ("compiling kernels", lambda *_: _compiled()),
    ("GPU copies", _gpu),
    ("tensor memory on a GPU", lambda *_: (False, "emulated and assembled; never executed on a GPU")),
)
"""(feature, (GPU or None, why there is none) -> (does it work here?, how this was found))."""


def _tried(probe: Probe, device: Device | None, absent: str) -> tuple[bool, str]:
    """Try a feature. Return whether it works, and how this was found, or the error as the reason why it does not
    work."""
    try:
        return probe(device, absent)
    except CuteError as error:
        return False, error.headline + (f" ({error.hint})" if error.hint else "")


def findings(driver: int | None = None) -> dict[str, Any]:
    """All results of `cute-py doctor`, as data.

    Args:
        driver: list the known issues of this driver version instead of the installed one.
    """
    device, absent = _device()
    codec, agrees = ("", True) if device is None else _codec()
    data: dict[str, Any] = {key: find() for key, _, find in HERE}
    data["driver"] = "present" if device is not None else f"none: {absent}"
    if device is not None:
        data |= {key: find(device) for key, _, find in OF_DEVICE} | {"codec": codec}
    tried = [(name, *_tried(probe, device, absent)) for name, probe in ABILITIES]
    data["emulator"] = tried[0][2]
    data["works"] = [{"name": name, "works": works, "detail": detail} for name, works, detail in tried]
    asked = driver if driver is not None else None if device is None else device.driver_version
    data["known_issues_for"] = asked
    data["known_issues"] = [] if asked is None else _issues_of(asked, device if driver is None else None)
    data["healthy"] = agrees and tried[0][1]
    return data


def _issues_of(driver: int, device: Device | None) -> list[dict[str, str | bool]]:
    capability = None if device is None else device.capability
    known = driver == MEASURED_DRIVER and capability in (None, MEASURED_CAPABILITY)
    return [
        {
            **{name: getattr(row, name) for name in ("name", "what", "remedy", "source")},
            "measured_here": row.measured and known,
        }
        for row in known_issues(Installation(driver, capability, compiler_release()))
    ]


def register(p: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    p.description = (
        "Tries the features of this library, and reports the ones that do not work, with the reason. The exit "
        "status is 1 if the emulator's copy is not equal, or if the encoder and the driver disagree."
    )
    p.add_argument("--driver", type=driver_version, help="list the known issues of this driver version, such as 12080")
    json_option(p, run)


def shown_finding(key: str, value: int | str | Sequence[int] | None) -> str:
    """The value of one finding, formatted for the report.

    >>> shown_finding("driver_version", 13000), shown_finding("compute_capability", [9, 0])
    ('13.0', '9.0')
    """
    if value is None:
        return "not found"
    if isinstance(value, int) and key == "driver_version":
        return f"{value // 1000}.{value % 1000 // 10}"
    return ".".join(map(str, value)) if isinstance(value, list) else str(value)


def report_lines(data: dict[str, Any]) -> list[str]:
    """The lines of the report on all findings."""
    named = [row[:2] for row in (*HERE, ("driver", "driver"), *OF_DEVICE, ("codec", "codec")) if row[1]]
    lines = [f"{name:<22} {shown_finding(key, data[key])}" for key, name in named if key in data]
    lines += ["", "packages"]
    for row in PACKAGES:
        version = data["packages"][row.name]
        missing = f"not installed (pip install 'cute-py[{row.extra}]')" if row.extra else "not installed"
        lines.append(f"  {row.name:<18} {version or missing:<14}  {row.purpose}")
    lines += ["", "features that work"]
    lines += [f"  {'yes' if row['works'] else 'no':<4} {row['name']:<24} {row['detail']}" for row in data["works"]]
    asked = data["known_issues_for"]
    if asked is None:
        return [
            *lines,
            "",
            "known issues: no driver is installed; cute-py doctor --driver 13000 lists the issues of a version",
        ]
    lines += ["", f"known issues of drivers for CUDA {shown_finding('driver_version', asked)}"]
    for row in data["known_issues"]:
        lines += [f"  {row['name']}: {row['what']}", f"      remedy : {row['remedy']}"]
        lines.append(
            f"      source : {row['source']}{'' if row['measured_here'] else '; not measured with this version'}"
        )
    return lines


def run(options: argparse.Namespace) -> int:
    """Print the findings. Returns 1 if the emulator or the encoder gives a wrong result."""
    data = findings(options.driver)
    if options.json:
        print(json.dumps(data, indent=2, default=str))
    else:
        for line in report_lines(data):
            print_report(line)
    return 0 if data["healthy"] else 1
