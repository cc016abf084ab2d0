"""cute-py, the command line: one function per command, errors in one line, exit status 2 for what is refused."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from cute_py.cli import (
    copy_command,
    demo_command,
    desc_command,
    doctor_command,
    draw_command,
    print_command,
    tma_command,
    tmem_command,
)
from cute_py.errors import CuteError

COMMANDS = (
    demo_command,
    print_command,
    copy_command,
    tma_command,
    desc_command,
    tmem_command,
    draw_command,
    doctor_command,
)


def parser() -> argparse.ArgumentParser:
    """The argument parser of all commands."""
    import cute_py

    top = argparse.ArgumentParser(
        prog="cute-py", description="CuTe layouts, TMA tensors, descriptors and copies, without a GPU."
    )
    top.add_argument("--version", action="version", version=f"cute-py {cute_py.__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.register(commands)
    return top


def one_line(error: CuteError) -> str:
    """The whole text of an error on one line: headline, then facts and hint in brackets."""
    facts = [f"{name}: {value}" for name, value in error.facts.items()]
    if error.hint:
        facts.append(f"fix: {error.hint}")
    tail = f" ({'; '.join(facts)})" if facts else ""
    return " ".join((error.headline + tail).split())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Returns its exit status: 0 done, 1 the copy is not equal, 2 refused."""
    options = parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except CuteError as error:
        print(f"cute-py: error: {one_line(error)}", file=sys.stderr)
        return 2
    except MemoryError:
        print("cute-py: error: not enough memory for this tensor", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print("cute-py: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
