"""`cute-py run`: run a kernel in PTX or CUDA C++ without a GPU."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from cute_py.cli.arguments import STANDARD_INPUT, integer, json_option, report, sizes, standard_text
from cute_py.errors import InvalidValueError, counted, shortened

if TYPE_CHECKING:
    from cute_py.diagnostics import Diagnostic
    from cute_py.machine.run import PtxRun

_OUTPUT: Final = ":out"
_ARRAYS: Final = (".npy", ".npz", ".safetensors")
_REAL: Final = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]{1,4})?")
MAX_COUNTS: Final = 10
"""The number of instructions that --counts shows."""


def register(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    command.description = (
        "Runs a kernel on an emulated multiprocessor: PTX, a .cu file (compiled by nvcc or NVRTC), or a fatbin that "
        "contains PTX (read by cuobjdump). Pass the arguments in the order of the kernel's parameters, except "
        "parameters set by --map. Findings name the lines of the PTX and of the .cu file. A `change` was tested: the "
        "changed kernel ran without the error. A `try` is untested advice. The exit status is 1 if an error was found; "
        "arrays with :out are then not written."
    )
    command.add_argument("file", metavar="FILE", help="a .ptx, .cu or fatbin file, or - for PTX from standard input")
    launch_arguments(command)
    command.add_argument(
        "--map",
        dest="maps",
        action="append",
        default=[],
        metavar="N=MAP:ARRAY",
        help="pass a tensor map, in any form that `desc decode` accepts, and the file of its array as parameter "
        "N (from 0): 0=a.bin:a.npy, or 1=c.bin:c.npy:out",
    )
    command.add_argument("--arch", help="architecture; default: the .target of the PTX, or sm_90a for a .cu file")
    command.add_argument(
        "-I", dest="include", action="append", default=[], metavar="DIR", help="a folder with headers for a .cu file"
    )
    command.add_argument(
        "--counts",
        action="store_true",
        help="also count bank conflicts and sectors, and list the ten worst lines with their source",
    )
    command.add_argument(
        "--timeline", metavar="FILE", help="write a timeline of CTA 0 to this file: .txt, .svg, .html or .png"
    )
    command.add_argument(
        "--write-anyway", action="store_true", help="write the arrays with :out even if an error was found"
    )
    command.add_argument("--no-judge", action="store_true", help="do not check for races and synchronisation errors")
    json_option(command, run)


def launch_arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of a kernel launch: its sizes, the kernel's arguments, and the schedule."""
    command.add_argument("--kernel", help="name of the kernel, if the file has several")
    command.add_argument("--grid", type=sizes, metavar="X,Y,Z", help="number of CTAs; default: 1")
    command.add_argument("--block", type=sizes, metavar="X,Y,Z", help="threads per CTA; default: the kernel's .reqntid")
    command.add_argument("--cluster", type=sizes, metavar="X,Y,Z", help="CTAs per cluster; default: .reqnctapercluster")
    command.add_argument(
        "--arg",
        dest="args",
        action="append",
        default=[],
        metavar="ARG",
        help="an array in a file (x.npy), an array that is written back after a run without errors (y.npy:out), a "
        "number, bytes (hex:0a0b), or null",
    )
    command.add_argument(
        "--dynamic-shared", type=integer, metavar="BYTES", help="dynamic shared memory of a CTA; default: 0"
    )
    command.add_argument(
        "--cooperative",
        action="store_true",
        help="launch all CTAs together, so that grid.sync() of cooperative groups works",
    )
    command.add_argument(
        "--schedule",
        default="both",
        help="when copies and products complete: eager, lazy, both (the default), or a random seed",
    )
    command.add_argument(
        "--limit", type=integer, default=10**9, help="maximum number of instructions; default: 1000000000"
    )


def _array(text: str) -> tuple[Any, str]:
    """Read an array argument: (the array of a file, the path that it is written back to, or '')."""
    import numpy as np

    from cute_py.array_files import read_array

    output = text.endswith(_OUTPUT)
    path = text.removesuffix(_OUTPUT)
    return np.ascontiguousarray(read_array(path)).copy(), path if output else ""


def _argument(text: str) -> tuple[Any, str]:
    """Parse a kernel argument: its value, and the path that an array is written back to, or ''."""
    if text == "null":
        return None, ""
    if text.startswith("hex:"):
        try:
            return bytes.fromhex(text[4:]), ""
        except ValueError:
            raise InvalidValueError(f"--arg {shortened(text)}; must be hexadecimal digits after hex:") from None
    if text.removesuffix(_OUTPUT).endswith(_ARRAYS) or os.path.exists(text.removesuffix(_OUTPUT)):
        return _array(text)
    if _REAL.fullmatch(text):
        return float(text), ""
    try:
        return integer(text), ""
    except (argparse.ArgumentTypeError, ValueError):
        raise InvalidValueError(
            f"--arg {shortened(text)}; must be a file of an array, a number, hex:BYTES or null"
        ) from None


def _map(text: str) -> tuple[int, Any, str]:
    """Parse a --map option: (index of the parameter, (map, array), path that the array is written back to, or '')."""
    from cute_py.cli.desc_command import map_of

    number, sign, rest = text.partition("=")
    output = rest.endswith(_OUTPUT)
    source, colon, path = rest.removesuffix(_OUTPUT).rpartition(":")
    if not sign or not colon or not number.isascii() or not number.isdigit() or len(number) > 4:
        raise InvalidValueError(
            f"--map {shortened(text)}; must be N=MAP:ARRAY, a parameter number, its map and its array"
        )
    array, target = _array(path + (_OUTPUT if output else ""))
    return int(number), (map_of(source), array), target


def launched_values(options: argparse.Namespace) -> tuple[list[Any], list[tuple[Any, str]]]:
    """The kernel arguments in the order of the parameters, and (array, path) for each array that is written back."""
    maps = {number: (value, path) for number, value, path in map(_map, options.maps)}
    values: list[Any] = []
    outputs: list[tuple[Any, str]] = []
    rest = [_argument(text) for text in options.args]
    while rest or len(values) in maps:
        if len(values) in maps:
            value, path = maps.pop(len(values))
            outputs += [(value[1], path)] if path else []
        else:
            value, path = rest.pop(0)
            outputs += [(value, path)] if path else []
        values.append(value)
    if maps:
        raise InvalidValueError(
            f"--map {min(maps)}=... is parameter {min(maps)}, but only {counted(len(values), 'argument')} precede it"
        )
    return values, outputs


def run_launch(
    text: str, options: argparse.Namespace, values: list[Any], *, judge: bool = True, traffic: bool = False
) -> PtxRun:
    """Run the launch that the options from `launch_arguments` describe."""
    from cute_py.machine.run import run_ptx

    schedule = options.schedule
    return run_ptx(
        text if "\n" in text else f"{text}\n",
        grid=options.grid or (1,),
        block=options.block,
        cluster=options.cluster,
        args=values,
        kernel=options.kernel,
        dynamic_shared=options.dynamic_shared or 0,
        arch=options.arch,
        cooperative=options.cooperative,
        schedule=int(schedule) if schedule.isascii() and schedule.isdigit() and len(schedule) < 10 else schedule,
        limit=options.limit,
        judge=judge,
        traffic=traffic,
    )


def finding_record(one: Diagnostic) -> dict[str, object]:
    """A finding as --json prints it."""
    said = {"rule": one.rule, "severity": one.severity, "message": one.message, "source": one.source}
    return {**said, **one.facts, "fixes": list(one.fixes)}


def run_record(found: PtxRun) -> dict[str, object]:
    """A run as --json prints it. The `fixes` of a finding were tested; its `try` is untested advice."""
    from cute_py.machine.judgement.story import advice
    from cute_py.machine.rules import REASONS

    return {
        "kernel": found.kernel,
        "ok": found.ok,
        "found": [
            {**finding_record(one), "try": advice(one, REASONS, found.sources) or None} for one in found.diagnostics
        ],
        "printed": list(found.printed),
        "instructions": found.instructions,
        "schedules": list(found.schedules),
        "not_run": list(found.not_run),
        "assumed": list(found.assumed),
        "approximate": list(found.approximate),
        "counts": [
            {"line": one.line, "source_line": one.source_line, "instruction": one.instruction,
             "warps": one.executions, "threads": one.threads, "wavefronts": one.wavefronts,
             "bank_conflicts": one.bank_conflicts, "sectors": one.sectors}
            for one in found.counts
        ],
    }  # fmt: skip


def _text(found: PtxRun, counts: bool, unwritten: Sequence[str]) -> str:
    lines = ["".join(found.printed).rstrip("\n")] if found.printed else []
    lines.append(found.explain())
    if unwritten:
        lines += [
            "",
            f"not written, because an error was found: {', '.join(map(shortened, unwritten))} (--write-anyway)",
        ]
    if counts:
        lines += ["", *_worst(found)]
    return "\n".join(lines)


def _worst(found: PtxRun) -> list[str]:
    """A table of the source lines with the highest memory cost, ordered by bank conflicts, then sectors, then
    executions."""
    most = sorted(found.counts, key=lambda one: (-(one.bank_conflicts or 0), -(one.sectors or 0), -one.executions))[
        :MAX_COUNTS
    ]
    rows = [("bank conflicts", "sectors", "warps", "line")]
    for one in most:
        where = f"{one.line}" if not one.source_line else f"{one.line} ({one.source}:{one.source_line})"
        rows.append((str(one.bank_conflicts), str(one.sectors), str(one.executions), where))
    wide = [max(len(row[place]) for row in rows) for place in range(4)]
    texts = ["instruction", *(shortened(" ".join(one.instruction.split()), 80) for one in most)]
    return [
        "  ".join([*(f"{part:>{wide[i]}}" for i, part in enumerate(row[:3])), f"{row[3]:<{wide[3]}}", text])
        for row, text in zip(rows, texts, strict=True)
    ]


def run(options: argparse.Namespace) -> int:
    """Run the kernel, write its outputs, and print the findings. Return 1 if one of them is an error."""
    from cute_py.array_files import write_array
    from cute_py.machine.cuda_source import ptx_of_file

    if options.file == STANDARD_INPUT:
        text = standard_text()
    else:
        include = [f"-I{path}" for path in options.include]
        text = ptx_of_file(options.file, options.arch or "sm_90a", include)
    values, outputs = launched_values(options)
    found = run_launch(text, options, values, judge=not options.no_judge, traffic=options.counts or options.json)
    if options.timeline:
        from cute_py.draw.timeline import draw_run

        draw_run(found.timeline()).save(options.timeline)
    written = found.ok or options.write_anyway
    for array, path in outputs if written else []:
        write_array(path, array)
    paths = [path for _, path in outputs]
    report(
        options,
        lambda: {**run_record(found), "written": paths if written else [], "not_written": [] if written else paths},
        lambda: _text(found, options.counts, [] if written else paths),
    )
    return int(not found.ok)
