"""A kernel around instructions, which is what an assembler takes; and the machine code of what it gives back."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from cute_py.errors import DeviceError
from cute_py.targets import NEWEST_VERSION, Version, version_text


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
    """A PTX module of one kernel.

    Args:
        body: its lines, declarations of registers first. parameters: type and name of each, '.u64 p_base'.
        symbols: lines before the kernel. directives: lines between its parameters and its body.

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


@functools.cache
def find_disassembler() -> str | None:
    """nvdisasm, else cuobjdump: on PATH, else in CUDA's usual folder; None if there is neither."""
    tools = (
        shutil.which(f"{place}{tool}") for tool in ("nvdisasm", "cuobjdump") for place in ("", "/usr/local/cuda/bin/")
    )
    return next((tool for tool in tools if tool is not None), None)


def disassemble(cubin: bytes) -> str:
    """The machine code of a cubin, SASS.

    Raises:
        DeviceError: there is no disassembler, or it refuses the cubin.
    """
    tool = find_disassembler()
    if tool is None:
        hint = "put CUDA's bin folder on PATH"
        raise DeviceError("neither nvdisasm nor cuobjdump is found; one of them is needed to show SASS", hint=hint)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        option = "-c" if Path(tool).name == "nvdisasm" else "-sass"
        done = subprocess.run([tool, option, str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise DeviceError(f"{Path(tool).name} refused the cubin", {"log": done.stderr.strip()})
    return done.stdout
