"""`cute-py completion`: print a script that makes a shell complete the commands, their options and their choices."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

from cute_py.cli.arguments import json_option, report
from cute_py.cli.tma_command import VIEWS
from cute_py.errors import MissingPackageError, imported

SHELLS: Final = ("bash", "zsh", "fish", "tcsh")
FILES: Final = {
    "copy": ("input", "out"),
    "demo": ("input",),
    "encode": ("request", "npy", "out"),
    "check": ("map", "request", "npy"),
    "decode": ("map",),
    "diff": ("first", "second"),
    "slots": ("map",),
    "draw": ("out",),
    "show": ("out",),
}
"""Command -> its arguments that name files."""
CHOICES: Final = {"tma": {"operands": tuple(VIEWS)}}
"""Command -> argument -> other values that it accepts."""
INSTALL: Final = {
    "bash": "cute-py completion bash > ~/.local/share/bash-completion/completions/cute-py",
    "zsh": "cute-py completion zsh > _cute-py  # in a folder of $fpath",
    "fish": "cute-py completion fish > ~/.config/fish/completions/cute-py.fish",
    "tcsh": "cute-py completion tcsh > ~/.cute-py.tcsh  # then source it in ~/.tcshrc",
}
"""Shell -> where to put its script."""


def register(p: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    lines = "\n".join(f"  {shell:<6}{line}".replace(" > ", " \\\n        > ") for shell, line in INSTALL.items())
    p.formatter_class = argparse.RawDescriptionHelpFormatter
    p.description = f"Prints a completion script for a shell. To install it, run:\n\n{lines}".replace("%", "%%")
    p.add_argument("shell", choices=SHELLS, help="the shell")
    json_option(p, run, "print the script as JSON")


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The completion script for a shell.

    Raises:
        MissingPackageError: shtab is not installed, or too old for this shell.
    """
    shtab = imported("shtab", "completion", "shtab", "pip install 'cute-py[cli]'")
    if shell not in shtab.SUPPORTED_SHELLS:
        text = f"this version of shtab can't write a script for {shell}"
        raise MissingPackageError(text, hint="pip install --upgrade 'cute-py[cli]'")
    for name, command in _commands(parser):
        for action in command._actions:
            if action.dest in FILES.get(name, ()):
                vars(action)["complete"] = shtab.FILE
            elif action.dest in CHOICES.get(name, ()):
                action.choices = CHOICES[name][action.dest]
    return str(shtab.complete(parser, shell))


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """(name, parser) of every command and of every subcommand."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield name, command
                yield from _commands(command)


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    text = script(options.parser(), options.shell)
    data = {"shell": options.shell, "script": text, "install": INSTALL[options.shell]}
    report(options, lambda: data, lambda: text.rstrip("\n"), print)
    return 0
