"""`cute-py watch`: record and check the tensor maps that a running CUDA program encodes."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from typing import Final

from cute_py.array_files import check_output
from cute_py.atomic_write import write_whole
from cute_py.cli.arguments import json_option
from cute_py.errors import DeviceError, InvalidValueError
from cute_py.targets import architecture

STATUS: Final = {"not found": 127, "not run": 126}
"""Rule of a refusal -> exit status, following the conventions of shells."""


def register(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    command.description = (
        "Runs COMMAND with its own input and output, records every cuTensorMapEncode* call through CUPTI, and "
        "reports on standard error: each distinct map, refused maps with the rule and the fix, maps with harmful "
        "settings, maps that are encoded repeatedly, and the kernels that receive each map. The exit status is "
        "the exit status of the program."
    )
    command.epilog = "Example: cute-py watch --dump maps -- python train.py"
    command.add_argument(
        "--live", action="store_true", help="print a line for each distinct map when it is first encoded"
    )
    command.add_argument("--dump", metavar="DIR", help="write the 128 bytes of each map to this folder")
    command.add_argument("--report", metavar="FILE", help="write the report to this file, not to standard error")
    command.add_argument("--arch", default="sm_90a", help="the architecture whose rules apply")
    command.add_argument("program", nargs=argparse.REMAINDER, metavar="COMMAND", help="--, then the program to run")
    json_option(command, run, "print the report as JSON")


def run(options: argparse.Namespace) -> int:
    """Run the program, and return its exit status."""
    from cute_py.watch.program import watch
    from cute_py.watch.records import WatchedMap
    from cute_py.watch.report import judged_map, report_on

    command = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not command:
        raise InvalidValueError("no program to run", hint="cute-py watch -- COMMAND ARGUMENT ...")
    architecture(options.arch)
    if options.report is not None:
        check_output(options.report)
    numbers = itertools.count()

    def live(one: WatchedMap) -> None:
        judged = judged_map(next(numbers), one, options.arch)
        print(str(judged).split("\n")[0], file=sys.stderr, flush=True)
        for found in judged.found:
            print(f"  {found.severity}: {found.message}", file=sys.stderr, flush=True)

    try:
        status, recording = watch(command, live if options.live else None)
    except DeviceError as error:
        if error.rule not in STATUS:
            raise
        print(f"cute-py: error: {error}", file=sys.stderr)
        return STATUS[error.rule]
    result = report_on(recording, options.arch)
    if options.dump is not None:
        result.dump(options.dump)
    text = json.dumps(result.to_json(), indent=2) if options.json else str(result)
    if options.report is not None:
        write_whole(options.report, f"{text}\n")
    else:
        print(text, file=sys.stderr, flush=True)
    return status
