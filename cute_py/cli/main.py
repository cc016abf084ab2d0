"""cute-py, the command line: one function per command, errors in one line, exit status 2 for what is refused."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from cute_py.cli import (
    completion_command,
    copy_command,
    demo_command,
    desc_command,
    doctor_command,
    draw_command,
    print_command,
    serve_command,
    tma_command,
    tmem_command,
)
from cute_py.cli.terminal import ERROR, FACT, HINT, painted, wants_colour
from cute_py.errors import CuteError, shortened

COMMANDS = (
    demo_command,
    print_command,
    copy_command,
    tma_command,
    desc_command,
    tmem_command,
    draw_command,
    serve_command,
    doctor_command,
    completion_command,
)

EPILOG = """\
exit status:
  0    done; the copy is equal, the maps do not differ, no rule is broken
  1    the copy is not equal (copy, demo), the maps differ (desc diff), a rule
       is broken (desc check, tma check, tmem descriptor), or something does
       not work as it should (doctor)
  2    refused: wrong arguments, a file that can't be read, no such layout; one
       line on standard error says why
  130  interrupted
  141  whoever read the output went away

Every command takes --json, and - for standard input where it takes a text or a
file. Colour is for terminals: NO_COLOR switches it off, FORCE_COLOR on.
"""


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose refusals are one line, as all others of the command are."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        said = shortened(" ".join(message.split()), 400)
        coloured = wants_colour(sys.stderr)
        name, said = (painted("error:", f"bold {ERROR}"), painted(said, ERROR)) if coloured else ("error:", said)
        self.exit(2, f"{self.prog}: {name} {said} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    """The argument parser of all commands."""
    import cute_py

    top = OneLineParser(
        prog="cute-py",
        description="CuTe layouts, TMA tensors, descriptors and copies, without a GPU.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"cute-py {cute_py.__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.register(commands)
    return top


def _says_something(value: object) -> bool:
    """Not the mark below a place, which has no line of its own here."""
    return str(value).strip() not in ("", "^")


def _quoted(name: str, value: str) -> str:
    """A text that could not be read, in quotes: its brackets would be taken for those around the facts."""
    return f"'{value}'" if name == "text" and not value.startswith(("'", '"')) else value


def one_line(error: CuteError) -> str:
    """The whole text of an error on one line: headline, then facts and hint in brackets."""
    facts = [f"{name}: {_quoted(name, str(value))}" for name, value in error.facts.items() if _says_something(value)]
    if error.hint:
        facts.append(f"fix: {error.hint}")
    tail = f" ({'; '.join(facts)})" if facts else ""
    return shortened(" ".join((error.headline + tail).split()), 2000)


def painted_line(error: CuteError) -> str:
    """The same line in colour: the headline red, the facts dim, the hint green."""
    line = one_line(error)
    headline, hint = " ".join(error.headline.split()), " ".join(f"fix: {error.hint})".split()) if error.hint else ""
    if not line.startswith(headline) or not line.endswith(hint):
        return painted(line, ERROR)  # Its middle is left out.
    stop = len(line) - len(hint)
    return painted(headline, ERROR) + painted(line[len(headline) : stop], FACT) + painted(line[stop:], HINT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Returns its exit status, as `EPILOG` lists them."""
    if sys.stdout is None:
        _tell("cute-py: error: standard output is closed")
        return 2
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file's name may hold what the terminal can't show
    made = parser()
    options = made.parse_args(arguments)
    options.parser = made
    try:
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except CuteError as error:
        if wants_colour(sys.stderr):
            _tell(f"cute-py: {painted('error:', f'bold {ERROR}')} {painted_line(error)}")
        else:
            _tell(f"cute-py: error: {one_line(error)}")
        return 2
    except MemoryError:
        _tell("cute-py: error: not enough memory for this tensor")
        return 2
    except BrokenPipeError:
        _silence_output()
        return 141
    except OSError as error:
        _silence_output()
        place = f"{error.filename}: " if error.filename is not None else ""
        _tell(f"cute-py: error: {place}{error.strerror or error}")
        return 2
    except RecursionError:
        _tell("cute-py: error: the input is nested too deeply")
        return 2
    except KeyboardInterrupt:
        _tell("cute-py: interrupted")
        return 130


def _tell(line: str) -> None:
    """One line on standard error, if there is one (print would write to standard output where it is closed)."""
    if sys.stderr is not None:
        print(line, file=sys.stderr)


def _silence_output() -> None:
    """Nothing more goes to a closed or full standard output, not even what is buffered."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
