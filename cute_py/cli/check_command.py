"""`cute-py check`: the TMA, bulk, barrier, fence and cluster instructions of a PTX, CUDA or cubin file."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cute_py.cli.arguments import STANDARD_INPUT, json_option, report, standard_bytes
from cute_py.diagnostics import Scope
from cute_py.errors import DeviceError, FileFormatError, InvalidValueError, counted, shortened
from cute_py.targets import architecture

if TYPE_CHECKING:
    from cute_py.tma.descriptor.request import TensorMap

DEFAULT_ARCH: Final = "sm_90a"
COMPILE_SECONDS: Final = 600
"""For one call of nvcc: CUTLASS's largest examples take minutes."""
MAX_FILE: Final = 64 << 20
_ELF: Final = b"\x7fELF"
_FATBIN: Final = b"\x50\xed\x55\xba"
_CUDA_MACHINE: Final = 190
"""e_machine of an ELF file of GPU code."""


def register(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    command.description = (
        "Checks each TMA, bulk, mbarrier, fence, tensormap and cluster instruction of a PTX module: form and "
        "architecture, expected bytes, alignment, fences, commits, waits, multicast. A .cu file is compiled to "
        "PTX first. For a cubin it only lists the instructions. The answer ends with what was judged, and what "
        "was not judged and why. The exit status is 1 if a rule is broken; with --strict also if anything was "
        "not judged."
    )
    command.add_argument(
        "file", metavar="FILE", help="a .ptx, .cu or .cubin file, or - for standard input (PTX, cubin)"
    )
    command.add_argument(
        "--arch",
        help=f"check for this architecture; default: the .target of the PTX, or {DEFAULT_ARCH} for a .cu file",
    )
    command.add_argument(
        "--compiler", choices=["nvcc", "nvrtc"], help="compiler for a .cu file; default: nvcc if it is on PATH"
    )
    command.add_argument(
        "-I", dest="include", action="append", default=[], metavar="DIR", help="a folder with headers for a .cu file"
    )
    command.add_argument(
        "--map",
        dest="maps",
        action="append",
        default=[],
        metavar="N=MAP",
        help="the tensor map that the kernel receives as parameter N (from 0), in any form that `desc decode` "
        "takes; the check then counts the bytes of loads through it",
    )
    command.add_argument(
        "--strict", action="store_true", help="exit with 1 if anything was not judged; in a cubin, nothing is"
    )
    json_option(command, run)


def _content(name: str) -> bytes:
    if name == STANDARD_INPUT:
        data = standard_bytes(MAX_FILE + 1)
    else:
        try:
            with open(name, "rb") as file:
                data = file.read(MAX_FILE + 1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise FileFormatError(f"{shortened(name)}: can't be read: {reason}") from None
    if len(data) > MAX_FILE:
        raise FileFormatError(f"{shortened(name)}: larger than {MAX_FILE} bytes, the maximum for a module")
    if not data:
        raise FileFormatError(f"{shortened(name)}: the file is empty")
    return data


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise FileFormatError(f"{shortened(name)}: neither PTX nor a cubin") from None


def run_nvcc(name: str, arch: str, include: Sequence[str]) -> str:
    """The PTX of a .cu file.

    Raises:
        DeviceError: nvcc is not on PATH, refuses the file, or does not end.
    """
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise DeviceError("nvcc is not on PATH", {"needed for": f"compiling {shortened(name)}"}, "--compiler nvrtc")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "module.ptx"
        folders = [f"-I{path}" for path in include]
        options = ["-ptx", f"-arch={arch}", "-std=c++17", "--expt-relaxed-constexpr", *folders, "-o", str(out)]
        try:
            done = subprocess.run(
                [nvcc, *options, name],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=COMPILE_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise DeviceError(f"nvcc did not finish within {COMPILE_SECONDS} s", {"file": shortened(name)}) from None
        if done.returncode:
            raise DeviceError(f"nvcc refused {shortened(name)}", {"log": shortened(done.stderr.strip(), 2000)})
        return out.read_text()


def _compiled(options: argparse.Namespace, data: bytes) -> str:
    arch = options.arch or DEFAULT_ARCH
    architecture(arch)
    if options.compiler == "nvcc" or (options.compiler is None and shutil.which("nvcc") is not None):
        return run_nvcc(options.file, arch, options.include)
    from cute_py.gpu.nvrtc import run_nvrtc

    text = _text(options.file, data)
    return run_nvrtc(text, Path(options.file).stem, arch.replace("sm_", "compute_"), "ptx").rstrip(b"\0").decode()


def _list_cubin(options: argparse.Namespace, data: bytes) -> int:
    from cute_py.ptx.module import copy_engine_code, disassemble

    if data.startswith(_ELF) and int.from_bytes(data[18:20], "little") != _CUDA_MACHINE:
        text = f"{shortened(options.file)}: a host program, not GPU code"
        raise FileFormatError(text, hint="cuobjdump -xelf all")
    if data.startswith(_FATBIN):
        raise FileFormatError(f"{shortened(options.file)}: a fat binary", hint="cuobjdump -xelf all, then its cubins")
    listed = copy_engine_code(disassemble(data))
    count = sum(map(len, listed.values()))
    scope = Scope((), (f"{counted(count, 'instruction')}: machine code is only listed, and no rule is checked",))
    lines = [f"{counted(count, 'instruction')} in {counted(len(listed), 'kernel')}"]
    for kernel, code in listed.items():
        lines += [f"{shortened(kernel, 100)}:", *(f"  {one}" for one in code)]
    lines += [str(scope)]
    report(options, lambda: {"kernels": listed, "scope": scope.to_json()}, lambda: "\n".join(lines))
    return int(options.strict)


def _maps(given: Sequence[str]) -> dict[int, TensorMap]:
    """Number of a parameter -> the map that it gets."""
    from cute_py.cli.desc_command import map_of
    from cute_py.tma.descriptor.decode import decode

    found: dict[int, TensorMap] = {}
    for text in given:
        number, sign, source = text.partition("=")
        if not sign or not number.isascii() or not number.isdigit() or len(number) > 4:
            raise InvalidValueError(f"--map {shortened(text)}; must be N=MAP, a parameter number and its map")
        found[int(number)] = decode(map_of(source))
    return found


def run(options: argparse.Namespace) -> int:
    """Print broken rules; return 1 if there are any, and with --strict also if anything was not judged."""
    from cute_py.ptx.order import check_program

    data = _content(options.file)
    if data.startswith((_ELF, _FATBIN)):
        return _list_cubin(options, data)
    is_source = options.file.endswith((".cu", ".cuh", ".cpp", ".cc"))
    text = _compiled(options, data) if is_source else _text(options.file, data)
    result = check_program(text, options.arch, maps=_maps(options.maps), assemble=True)
    found = {
        "target": result.target,
        "found": [
            {
                "rule": one.rule,
                "severity": one.severity,
                "message": one.message,
                "source": one.source,
                **one.facts,
                "fixes": list(one.fixes),
            }
            for one in result.found
        ],
        "counts": dict(result.counts),
        "scope": result.scope.to_json(),
    }
    report(options, lambda: found, lambda: result)
    return int(bool(result.errors) or (options.strict and not result.scope.complete))
