"""The command line `cute-py`, with one module per command. If the library refuses an input, the command prints the
error as Python shows it, and exits with status 2."""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

from cute_py.argument_checks import expect, expect_items
from cute_py.errors import CuteError, nearest_names, shortened, system_reason
from cute_py.terminal import ERROR, FACT, HINT, folded, painted, terminal_width, wants_colour

COMMANDS = {
    "demo": "show one example of each use: layouts, TMA copies, formats, shards",
    "explain": "explain a text or an error: its meaning, its cause, and a change that works",
    "print": "print a layout or tensor as CuTe does: a table or its elements",
    "copy": "copy a tensor from a file: tile by tile through an emulated or real TMA engine, or into another layout",
    "tma": "show the TMA box of a tile, and its G-basis, TMA tensor, partition and descriptor",
    "desc": "encode, decode, compare and check tensor maps (CUtensorMap)",
    "check": "check the TMA and barrier instructions in a PTX, CUDA or cubin file",
    "run": "run a kernel in PTX or CUDA C++ without a GPU",
    "watch": "run a CUDA program and report the tensor maps that it encodes",
    "tmem": "plan and emulate tcgen05.cp, the copy from shared to tensor memory (not run on a GPU)",
    "atom": "list, find and show MMA and copy atoms, with the elements that each thread holds",
    "draw": "draw layouts, swizzles, TMA boxes, tiles in shared memory and descriptors",
    "convert": "convert the weights of a checkpoint to a block-scaled format, to another one, or back",
    "reshard": "convert the sharded files of one mesh to files for another mesh",
    "serve": "serve the playground as a local web page",
    "doctor": "report versions, driver and GPU, the features that work, and known issues of the driver",
    "skill": "write a skill for coding agents: which command answers which question",
    "completion": "print a script that completes these commands in a shell",
}
"""Command -> its line in `cute-py --help`. The module `<command>_command` defines its arguments. It is imported only
when the command runs, so that --help and each command load no more than they need."""

IN_FILES = ("convert", "reshard", "skill")
"""Commands whose modules are in the folder `files`."""

EPILOG = """\
exit status:
  0    success: the copy is equal, the maps do not differ, no rule is broken in
       what was judged
  1    the copy is not equal (copy, demo), the maps differ (desc diff), a rule
       is broken (desc check, tma check, tmem descriptor, check), a kernel ran
       into an error (run), a tensor of a checkpoint is wrong (explain),
       anything was not judged (check --strict, reshard --strict), a name or a
       shape contradicts a placement (reshard), or a feature gives a wrong
       result (doctor)
  2    the command refuses an argument, a file or a copy; standard error has
       the rule, the facts and a fix, and with --json standard output has the
       broken rules as records
  130  interrupted
  141  the reader of the output closed the pipe
  watch returns the exit status of the program, or 126 or 127 if the program
  can't be run, as in a shell

Every command takes --json. Pass - to read a text or a file from standard
input. Output to a terminal is coloured; the environment variable NO_COLOR
switches colour off, and FORCE_COLOR switches it on.
"""


MEANT: Final[dict[str, tuple[str, ...]]] = {
    "--shape": ("--dims",),
    "--size": ("--dims",),
    "--sizes": ("--dims",),
    "--stride": ("--strides",),
    "--tile": ("--box",),
    "--type": ("--dtype",),
    "--output": ("--out",),
    "--target": ("--arch",),
}
"""An option of other programs -> the options with the same meaning here, if a command has them."""


class OneLineParser(argparse.ArgumentParser):
    """An argument parser that prints an error in one line, or as JSON with --json."""

    as_json = False

    def __init__(self, **options: Any) -> None:
        # argparse formats each new argument as a check, and would load shutil for the width.
        kind = options.pop("formatter_class", argparse.HelpFormatter)
        super().__init__(**options, formatter_class=functools.partial(kind, width=80))

    def format_help(self) -> str:
        """The help, as wide as the terminal."""
        import shutil

        kind: Any = self.formatter_class
        self.formatter_class = functools.partial(kind, width=shutil.get_terminal_size().columns - 2)
        try:
            return folded(super().format_help(), shutil.get_terminal_size().columns)
        finally:
            self.formatter_class = kind

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Like argparse's method, which until Python 3.13 returns an empty list for `--option=--`."""
        found = super()._get_values(action, arg_strings)
        if action.nargs is None and isinstance(found, list):
            self.error(str(argparse.ArgumentError(action, "expected one argument")))
        return found

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Like argparse's method, but the error for an unknown command lists the nearest commands."""
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            near = nearest_names(str(value), list(action.choices))
            self.error(f"no command {value!r}" + (f"; nearest: {', '.join(near)}" if near else ""))
        super()._check_value(action, value)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse like argparse, but the command that does not know an argument refuses it and lists similar options."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            written, known = rest[0].partition("=")[0], self._option_string_actions
            meant = [option for option in MEANT.get(written.lower(), ()) if option in known]
            options = [name for name in known if name != "--help" or written.startswith("--h")]
            near = ", ".join(meant or nearest_names(written, options))
            self.error(f"unrecognized arguments: {' '.join(rest)}" + (f"; nearest: {near}" if near else ""))
        return found, rest

    def error(self, message: str) -> NoReturn:
        """Print the error and exit with status 2."""
        text = shortened(" ".join(message.split()), 400)
        if OneLineParser.as_json:
            from cute_py.cli.serve_workers import plain_error

            print(json.dumps(plain_error("UsageError", text), indent=2))
        before, width = f"{self.prog}: error: ", terminal_width(sys.stderr)
        text = f"{text} (see {self.prog} --help)"
        text = text if width is None else folded(before + text, width).removeprefix(before)
        name = "error:"
        if wants_colour(sys.stderr):
            name, text = painted(name, f"bold {ERROR}"), painted(text, ERROR)
        self.exit(2, f"{self.prog}: {name} {text}\n")


def parser(commands: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The argument parser of all commands; only the commands in `commands` get their arguments."""
    import cute_py

    top = OneLineParser(
        prog="cute-py",
        description="CuTe layouts, TMA tensors, descriptors and copies, without a GPU.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"cute-py {cute_py.__version__}")
    choices = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, what in COMMANDS.items():
        command = choices.add_parser(name, help=what)
        if name in commands:
            folder = "cute_py.cli.files" if name in IN_FILES else "cute_py.cli"
            importlib.import_module(f"{folder}.{name}_command").register(command)
    return top


BEFORE_HEADLINE: Final = "cute-py: error: "


def refusal_text(error: CuteError, coloured: bool = False, width: int | None = None) -> str:
    """The text of an error, with every line shortened: the headline, then each fact and the hint on a separate line.

    Args:
        coloured: print the headline red, the facts dim, and the hint green.
        width: columns of the terminal; the headline begins after `BEFORE_HEADLINE`. None: do not break lines.

    >>> print(refusal_text(CuteError("box[0] = 300; must be at most 256", {"mode": 0}, "256")))
    box[0] = 300; must be at most 256
      mode : 0
      hint : 256
    """
    lines = [shortened(line, 400) for line in str(error).split("\n")]
    if width is not None:
        headline = folded(BEFORE_HEADLINE + lines[0], width).removeprefix(BEFORE_HEADLINE)
        lines = [headline, *(folded(line, width) for line in lines[1:])]
    if not coloured:
        return "\n".join(lines)
    facts = error.headline.count("\n") + 1
    hint = len(lines) - (0 if error.hint is None else error.hint.count("\n") + 1)
    styles = [ERROR if i < facts else FACT if i < hint else HINT for i in range(len(lines))]
    return "\n".join(map(painted, lines, styles))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Return its exit status; `EPILOG` lists the values."""
    if sys.stdout is None:
        _report_error("cute-py: error: standard output is closed")
        return 2
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file name may have characters that it can't show
    try:
        try:
            return _main(arguments)
        finally:
            sys.stdout.flush()  # here, because at the end of the process no status can be returned
    except BrokenPipeError:
        _silence_output()
        return 141
    except OSError as error:
        _silence_output()
        _report_error(f"cute-py: error: {system_reason(error)}")
        return 2


def _main(arguments: Sequence[str] | None) -> int:
    """Run a command and return its exit status. A closed standard output raises an error, even while an error is being
    printed."""
    given = sys.argv[1:] if arguments is None else expect_items(arguments, "the arguments")
    for i, argument in enumerate(given):
        expect(argument, str, f"arguments[{i}]")
    OneLineParser.as_json = "--json" in given
    named = [argument for argument in given if argument in COMMANDS]  # the first is the command, if there is one
    with _kept(arguments is None):
        options = parser(named[:1]).parse_args(given)
    options.parser = parser
    try:
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except CuteError as error:
        from cute_py.cli.serve_workers import refusal

        coloured = wants_colour(sys.stderr)
        name = painted("error:", f"bold {ERROR}") if coloured else "error:"
        shown = refusal_text(error, coloured, terminal_width(sys.stderr))
        return _refuse(options, f"{name} {shown}", refusal(error))
    except MemoryError:
        return _refuse(options, "error: not enough memory for this tensor")
    except RecursionError:
        return _refuse(options, "error: the input is nested too deeply")
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:  # an error of standard output; the error of a file has its name
            _silence_output()
        place = f"{error.filename}: " if error.filename is not None else ""
        return _refuse(options, f"error: {place}{system_reason(error)}")
    except KeyboardInterrupt:
        _report_error("cute-py: interrupted")
        return 130


@contextlib.contextmanager
def _kept(forever: bool) -> Iterator[None]:
    """If the process runs only this command (`forever`), exclude the loaded objects from garbage collection, even at
    exit.

    Collecting them would take a tenth of the time of a short command.
    """
    if forever:
        gc.disable()
    try:
        yield
    finally:
        if forever:
            gc.freeze()
            gc.enable()


def _refuse(options: argparse.Namespace, text: str, data: Mapping[str, object] | None = None) -> int:
    """Print an error as text on standard error, and with --json also as JSON on standard output."""
    _report_error(f"cute-py: {text}")
    if options.json:
        from cute_py.cli.serve_workers import plain_error

        print(json.dumps(data or plain_error("Error", text.removeprefix("error: ")), indent=2))
    return 2


def _report_error(line: str) -> None:
    """Write one line to standard error, if it is open (print would write to standard output instead)."""
    if sys.stderr is not None:
        print(line, file=sys.stderr)


def _silence_output() -> None:
    """Stop all writes to a closed or full standard output, including buffered text."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
