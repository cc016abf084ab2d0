"""Wrap instructions in a kernel, assemble it with ptxas, and disassemble the result."""

from __future__ import annotations

import functools
import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from cute_py.errors import DeviceError, MissingPackageError, unless_refused
from cute_py.targets import NEWEST_VERSION, Version, version_text

TIME_LIMIT_SECONDS = 120
"""Time limit for one call of ptxas, because some malformed operands crash ptxas, and others make it hang."""


def ptx_module(
    entry: str,
    body: Iterable[str],
    arch: str,
    version: Version = NEWEST_VERSION,
    *,
    parameters: Sequence[str] = (),
    symbols: Sequence[str] = (),
    directives: Sequence[str] = (),
) -> str:
    """Return the text of a PTX module with one kernel.

    Args:
        body: the lines of the kernel; declarations of registers come first. parameters: type and name of each
            parameter, such as '.u64 p_base'. symbols: lines before the kernel. directives: lines between its parameters
            and its body.

    >>> print(ptx_module("nothing", ["ret;"], "sm_90a", parameters=[".u64 p_base"]), end="")
    .version 9.0
    .target sm_90a
    .address_size 64
    .visible .entry nothing(
      .param .u64 p_base)
    {
    ret;
    }
    """
    listed = ",".join(f"\n  .param {parameter}" for parameter in parameters)
    head = (f".version {version_text(version)}", f".target {arch}", ".address_size 64", *symbols)
    return "\n".join([*head, f".visible .entry {entry}({listed})", *directives, "{", *body, "}", ""])


def find_in_wheels(tool: str) -> Path | None:
    """Find a program in the bin folder of a CUDA wheel; None if no installed wheel contains it."""
    spec = importlib.util.find_spec("nvidia")
    folders = (spec.submodule_search_locations or ()) if spec is not None else ()
    return next((found for folder in folders for found in sorted(Path(folder).glob(f"*/bin/{tool}"))), None)


@functools.cache
def find_ptxas() -> Path | None:
    """Find the assembler: `ptxas` on PATH, or in the nvidia-cuda-nvcc wheel; None if there is neither."""
    on_path = shutil.which("ptxas")
    if on_path is not None:
        return Path(on_path)
    return find_in_wheels("ptxas")


@functools.cache
def ptxas_version() -> str:
    """Return the release that the assembler reports, such as '13.0.88'.

    Raises:
        DeviceError: there is no ptxas.
    """
    text = _run(["--version"]).stdout
    found = re.search(r"V(\d+\.\d+\.\d+)", text)
    return found[1] if found else text.strip().splitlines()[-1]


def _run(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    ptxas = find_ptxas()
    if ptxas is None:
        text = "ptxas was not found on PATH or in an nvidia-cuda-nvcc wheel"
        raise DeviceError(text, {"needed for": "assembling PTX"})
    try:
        return subprocess.run(
            [str(ptxas), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=TIME_LIMIT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        text = f"ptxas did not finish within {TIME_LIMIT_SECONDS} s"
        raise DeviceError(text, {"arguments": " ".join(arguments)}) from None


def assemble_module(source: str, arch: str) -> tuple[bool, str, bytes]:
    """Assemble one PTX module; return (whether it was accepted, the messages of ptxas, the cubin or b'').

    Raises:
        DeviceError: there is no ptxas.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, cubin = Path(folder) / "module.ptx", Path(folder) / "module.cubin"
        path.write_text(source)
        done = _run([f"-arch={arch}", str(path), "-o", str(cubin)])
        accepted = done.returncode == 0
        return accepted, (done.stderr + done.stdout).strip(), cubin.read_bytes() if accepted else b""


def assembles(source: str, arch: str) -> bool | None:
    """Whether ptxas accepts a PTX module; None if there is no ptxas. If ptxas does not finish in time, the result is
    False.

    >>> assembles(ptx_module("nothing", ["ret;"], "sm_90a"), "sm_90a") in (True, None)
    True
    """
    if find_ptxas() is None:
        return None
    answer = unless_refused(assemble_module, source, arch)
    return answer is not None and answer[0]


@functools.cache
def find_disassembler() -> str | None:
    """Find nvdisasm or cuobjdump on PATH or in CUDA's usual folder, or nvdisasm in its wheel; None if none is found."""
    tools = (
        shutil.which(f"{place}{tool}") for tool in ("nvdisasm", "cuobjdump") for place in ("", "/usr/local/cuda/bin/")
    )
    wheel = find_in_wheels("nvdisasm")
    return next((tool for tool in tools if tool is not None), None if wheel is None else str(wheel))


def disassemble(cubin: bytes) -> str:
    """Return the machine code (SASS) of a cubin.

    Raises:
        MissingPackageError: there is no disassembler. DeviceError: the disassembler can't read the cubin.
    """
    tool = find_disassembler()
    if tool is None:
        text = (
            "reading machine code needs nvdisasm, from the package nvidia-cuda-nvdisasm or from a CUDA toolkit on PATH"
        )
        raise MissingPackageError(text, hint="pip install 'cute-py[sass]'")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        option = "-c" if Path(tool).name == "nvdisasm" else "-sass"
        done = subprocess.run([tool, option, str(path)], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise DeviceError(f"{Path(tool).name} refused the cubin", {"log": done.stderr.strip()})
    return done.stdout


_COPY_ENGINE: Final = re.compile(
    r"^[^\S\n]*+(?:/\*[0-9a-f]+\*/\s*+)?(@!?\w+\s+)?((?:UTMA|UBLK|SYNCS|UCGABAR|FENCE\.VIEW)[\w.]*+[^;\n]*+);",
    re.MULTILINE,
)
"""TMA, bulk copies, barriers, clusters and proxy fences in SASS (names as nvdisasm 13 prints them)."""
_SECTION: Final = re.compile(r"^(?:[^\S\n]*+\.section\s+)?\.text\.([\w$]+)[,:]", re.MULTILINE)


def copy_engine_code(sass: str) -> dict[str, tuple[str, ...]]:
    """Return, for each kernel, its machine instructions of TMA, bulk copies, barriers, clusters and proxy fences, in
    order.

    Args:
        sass: as `disassemble` returns it.

    >>> copy_engine_code(".text.k:\\n /*0010*/ UTMALDG.2D [UR8], [UR4] ;\\n /*0020*/ EXIT ;\\n")
    {'k': ('UTMALDG.2D [UR8], [UR4]',)}
    """
    starts = [(found.start(), found[1]) for found in _SECTION.finditer(sass)]
    listed: dict[str, tuple[str, ...]] = {}
    for (start, name), end in zip(starts, [*(at for at, _ in starts[1:]), len(sass)], strict=True):
        found = [" ".join(f"{one[1] or ''}{one[2]}".split()) for one in _COPY_ENGINE.finditer(sass, start, end)]
        listed[name] = (*listed.get(name, ()), *found)
    return listed
