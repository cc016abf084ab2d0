"""`cute-py skill`: write a folder for coding agents that lists the commands that answer questions, and explains how to
read the answers."""

from __future__ import annotations

import argparse
from importlib.resources import files
from pathlib import Path
from typing import Final

from cute_py.atomic_write import write_whole
from cute_py.cli.arguments import json_option, report
from cute_py.errors import FileFormatError

NAME: Final = "cute-py"
"""The name of the folder and of the skill."""


def register(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    command.description = (
        "Writes a skill for coding agents into DIR/cute-py: SKILL.md lists the command for each question "
        "(layouts, TMA boxes, error texts, hangs, bank conflicts, scales) and how to read its answer; examples "
        "holds the files that these commands read."
    )
    command.add_argument("--out", required=True, metavar="DIR", help="the agent's folder of skills")
    command.add_argument("--overwrite", "--force", action="store_true", help="replace existing files")
    json_option(command, _write, "print the names of the files as JSON")


def skill_files() -> dict[str, bytes]:
    """The text of each file, by its name in the folder. Programs are stored as strings, because they are not modules of
    this package."""
    root = files("cute_py.cli.files") / "skill"
    found = {"SKILL.md": (root / "SKILL.md").read_bytes()}
    for one in sorted((root / "examples").iterdir(), key=lambda path: path.name):
        if one.name.endswith((".txt", ".ptx", ".npy")):
            found[f"examples/{one.name.removesuffix('.txt')}"] = one.read_bytes()
    return found


def _write(options: argparse.Namespace) -> int:
    folder = Path(options.out) / NAME
    content = skill_files()
    there = [name for name in content if (folder / name).exists() and (folder / name).read_bytes() != content[name]]
    if there and not options.overwrite:
        raise FileFormatError(f"{folder / there[0]}: the file exists and differs", hint="--overwrite replaces it")
    (folder / "examples").mkdir(parents=True, exist_ok=True)
    written = [str(write_whole(folder / name, raw)) for name, raw in content.items()]
    report(options, lambda: {"files": written}, lambda: "\n".join(written))
    return 0
