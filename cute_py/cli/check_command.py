"""`cute-py check`: check the TMA, bulk, barrier, fence and cluster instructions of a PTX, CUDA or cubin file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cute_py.cli.arguments import STANDARD_INPUT, json_option, report, standard_bytes
from cute_py.cli.run_command import finding_record, launch_arguments, launched_values, run_launch, run_record
from cute_py.diagnostics import Scope, diagnostics_of
from cute_py.errors import FileFormatError, InvalidValueError, counted, shortened, system_reason
from cute_py.targets import architecture

if TYPE_CHECKING:
    from cute_py.machine.run import PtxRun
    from cute_py.tma.descriptor.request import TensorMap

DEFAULT_ARCH: Final = "sm_90a"
MAX_FILE: Final = 64 << 20
NOT_EMULATED: Final = "not emulated"
"""Rule of the error for a kernel that the machine can't run."""
_ELF: Final = b"\x7fELF"
_FATBIN: Final = b"\x50\xed\x55\xba"
_CUDA_MACHINE: Final = 190
"""e_machine of an ELF file of GPU code."""


def register(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    command.description = (
        "Checks each TMA, bulk, mbarrier, fence, tensormap and cluster instruction of a PTX module: forms and "
        "architecture, expected bytes, alignment, fences, commits, waits, multicast. A .cu file is compiled to PTX "
        "first. The instructions of a cubin are only listed. With the launch options of `run` (--grid, --block, "
        "--cluster, --kernel, --dynamic-shared or --arg) the command also runs the kernel and judges the run; no "
        "array is written back. The report ends with the properties that were judged, and the properties that "
        "were not judged, with the reason. The exit status is 1 if a rule is broken, and with --strict also if a "
        "property was not judged."
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
        "takes; the check then counts the bytes of loads through it. A launch needs N=MAP:ARRAY, with the file of "
        "the array",
    )
    launch_arguments(command)
    command.add_argument(
        "--strict", action="store_true", help="exit with 1 if a property was not judged; nothing is judged in a cubin"
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
            reason = system_reason(error)
            raise FileFormatError(f"{shortened(name)}: can't be read: {reason}") from None
    if len(data) > MAX_FILE:
        raise FileFormatError(f"{shortened(name)}: the file has more than {MAX_FILE} bytes, the maximum for a module")
    if not data:
        raise FileFormatError(f"{shortened(name)}: the file is empty")
    return data


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise FileFormatError(f"{shortened(name)}: the file is neither PTX nor a cubin") from None


def _list_cubin(options: argparse.Namespace, data: bytes) -> int:
    from cute_py.ptx.module import copy_engine_code, disassemble

    if data.startswith(_ELF) and int.from_bytes(data[18:20], "little") != _CUDA_MACHINE:
        text = f"{shortened(options.file)}: the file is a host program, not GPU code"
        raise FileFormatError(text, hint="cuobjdump -xelf all")
    if data.startswith(_FATBIN):
        raise FileFormatError(
            f"{shortened(options.file)}: the file is a fat binary", hint="cuobjdump -xelf all, then its cubins"
        )
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
    """Parse the --map options: index of a kernel parameter -> the tensor map that it receives."""
    from cute_py.cli.desc_command import map_of
    from cute_py.tma.descriptor.decode import decode

    found: dict[int, TensorMap] = {}
    for text in given:
        number, sign, source = text.partition("=")
        if not sign or not number.isascii() or not number.isdigit() or len(number) > 4:
            raise InvalidValueError(f"--map {shortened(text)}; must be N=MAP, a parameter number and its map")
        found[int(number)] = decode(map_of(source))
    return found


def _passed_maps(values: Sequence[Any]) -> dict[int, TensorMap]:
    """Index of a kernel parameter -> its tensor map, from the values of a launch. There a map comes in a tuple with its
    array."""
    from cute_py.tma.descriptor.decode import decode

    return {number: decode(value[0]) for number, value in enumerate(values) if isinstance(value, tuple)}


def _ptx(options: argparse.Namespace, data: bytes) -> str:
    """The PTX of a file that is not a cubin: the file's text, or the compiled CUDA source."""
    from cute_py.machine.cuda_source import SOURCES, ptx_of_file

    if not options.file.endswith(SOURCES):
        return _text(options.file, data)
    arch = architecture(options.arch or DEFAULT_ARCH).name
    return ptx_of_file(options.file, arch, [f"-I{path}" for path in options.include], options.compiler)


def _run(text: str, options: argparse.Namespace, values: list[Any]) -> tuple[PtxRun | None, str]:
    """Run a launch in the emulator. If the kernel has instructions that the emulator does not support, return None and
    the reason."""
    try:
        return run_launch(text, options, values), ""
    except InvalidValueError as error:
        if error.rule != NOT_EMULATED:
            raise
        return None, ", ".join(one.message for one in diagnostics_of(error))


def _is_launched(options: argparse.Namespace) -> bool:
    sizes = (options.grid, options.block, options.cluster, options.kernel, options.dynamic_shared)
    return bool(options.args) or options.cooperative or any(one is not None for one in sizes)


def run(options: argparse.Namespace) -> int:
    """Print the broken rules. Return 1 if there are any, or with --strict if anything was not judged."""
    from cute_py.ptx.order import check_program

    data = _content(options.file)
    if data.startswith((_ELF, _FATBIN)):
        return _list_cubin(options, data)
    text = _ptx(options, data)
    values = launched_values(options)[0] if _is_launched(options) else None
    maps = _maps(options.maps) if values is None else _passed_maps(values)
    ran, refused = (None, "") if values is None else _run(text, options, values)
    result = check_program(text, options.arch, maps=maps, assemble=True, launched=ran is not None)
    scope = result.scope
    if ran is not None:
        scope = Scope(scope.judged + ran.scope.judged, scope.not_judged + ran.scope.not_judged)
    elif refused:
        scope = Scope(scope.judged, (*scope.not_judged, f"the launch: {refused}"))
    result = replace(result, scope=scope)
    found = {
        "target": result.target,
        "found": [finding_record(one) for one in result.found],
        "counts": dict(result.counts),
        "scope": result.scope.to_json(),
        **({} if ran is None else {"run": run_record(ran)}),
    }
    lines = [result.summary, *([] if ran is None else ["", ran.explain()]), str(result.scope)]
    broken = bool(result.errors) or (ran is not None and not ran.ok)
    if not broken and not result.scope.complete:
        left = counted(len(result.scope.not_judged), "line")
        lines.append(f"not an approval: see {left} above for what was not judged; with --strict, the exit status is 1")
    report(options, lambda: found, lambda: "\n".join(lines))
    return int(broken or (options.strict and not result.scope.complete))
