"""`cute-py doctor`: what is here, what works and what not, and why."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import shutil
from typing import Any

import cute_py as cute
from cute_py.errors import CuteError

PACKAGES = (
    "numpy",
    "sympy",
    "ml_dtypes",
    "safetensors",
    "rich",
    "cuda-bindings",
    "cuda-core",
    "nvidia-cuda-nvrtc",
    "torch",
    "cupy-cuda13x",
)


def register(commands: Any) -> None:
    """Add the command's arguments."""
    p = commands.add_parser("doctor", help="versions, driver, GPU, and what works here")
    p.add_argument("--json", action="store_true", help="the result as JSON")
    p.set_defaults(run=run)


def findings() -> dict[str, Any]:
    """Everything that the doctor looks at, as data."""
    versions: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    data: dict[str, Any] = {
        "cute_py": cute.__version__,
        "python": platform.python_version(),
        "packages": versions,
        "ptxas": shutil.which("ptxas"),
        "emulator": _emulator(),
    }
    data.update(_driver())
    return data


def _emulator() -> str:
    import numpy as np

    array = np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
    tile = cute.Layout((cute.Int(32), cute.Int(32)), cute.LayoutRight)
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", array, tile)
    return "a copy of 64 x 64 float16 is equal" if cute.tma.copy(atom, array).equal else "a copy is NOT equal"


def _driver() -> dict[str, Any]:
    """Whether the CUDA driver is here and writes tensor maps as this library does, or why that can't be asked."""
    try:
        from cute_py.tma.run.driver import sweep

        return {"driver": "present", "codec": f"compared with the driver: {sweep(2_000)}"}
    except CuteError as error:
        return {"driver": f"none: {str(error).splitlines()[0]}"}


def run(options: argparse.Namespace) -> int:
    """Print the findings."""
    data = findings()
    if options.json:
        print(json.dumps(data, indent=2, default=str))
        return 0
    for name, value in data.items():
        if isinstance(value, dict):
            print(name)
            for inner, text in value.items():
                print(f"  {inner:<18} {text if text is not None else 'not installed'}")
        else:
            print(f"{name:<20} {value if value is not None else 'not found'}")
    return 0
