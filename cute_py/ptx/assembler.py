"""Ask ptxas: find it, and assemble a module."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from cute_py.errors import DeviceError
from cute_py.ptx.module import find_in_wheels

TIME_LIMIT_SECONDS = 120
"""For one call of ptxas: malformed operands are known to crash it, others make it hang."""


@cache
def find_ptxas() -> Path | None:
    """The assembler: `ptxas` on PATH, else in the nvidia-cuda-nvcc wheel; None if there is none."""
    on_path = shutil.which("ptxas")
    if on_path is not None:
        return Path(on_path)
    return find_in_wheels("ptxas")


@cache
def ptxas_version() -> str:
    """The release that the assembler reports, such as '13.0.88'.

    Raises:
        DeviceError: there is no ptxas.
    """
    text = _run(["--version"]).stdout
    found = re.search(r"V(\d+\.\d+\.\d+)", text)
    return found[1] if found else text.strip().splitlines()[-1]


def _run(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    ptxas = find_ptxas()
    if ptxas is None:
        text = "no ptxas: neither on PATH nor in an nvidia-cuda-nvcc wheel"
        raise DeviceError(text, {"needed for": "assembling PTX"})
    try:
        return subprocess.run(
            [str(ptxas), *arguments], capture_output=True, text=True, check=False, timeout=TIME_LIMIT_SECONDS
        )
    except subprocess.TimeoutExpired:
        text = f"ptxas did not end within {TIME_LIMIT_SECONDS} s"
        raise DeviceError(text, {"arguments": " ".join(arguments)}) from None


def assemble_module(source: str, arch: str) -> tuple[bool, str, bytes]:
    """Assemble one PTX module: (accepted, ptxas's messages, the cubin or b'').

    Raises:
        DeviceError: there is no ptxas.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, cubin = Path(folder) / "module.ptx", Path(folder) / "module.cubin"
        path.write_text(source)
        done = _run([f"-arch={arch}", str(path), "-o", str(cubin)])
        accepted = done.returncode == 0
        return accepted, (done.stderr + done.stdout).strip(), cubin.read_bytes() if accepted else b""
