"""No module hides a public function: importing all of them changes no public name."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys

import cute_py
from tests.calls.surface import public_names

OPTIONAL = ("cuda", "anywidget", "IPython", "rich")
"""Packages without which a module may fail to import."""

PROGRAM = """
import importlib, pkgutil, sys
import cute_py
def found(name):
    value = cute_py
    for part in name.split("."):
        value = getattr(value, part)
    return value
names = sys.stdin.read().split()
before = {name: found(name) for name in names}
for module in pkgutil.walk_packages(cute_py.__path__, "cute_py."):
    if module.name.rpartition(".")[2] != "__main__":
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            if (error.name or "").partition(".")[0] not in {optional}:
                raise
print([name for name in names if found(name) is not before[name]])
"""


def test_a_name_is_what_it_was_when_every_module_is_imported() -> None:
    names = [name for name in public_names() if re.fullmatch(r"(tma\.|tmem\.|draw\.)?\w+", name)]
    program = PROGRAM.replace("{optional}", repr(OPTIONAL))
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, input="\n".join(names), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_no_package_has_the_path_of_a_function() -> None:
    paths = {m.name.removeprefix("cute_py.") for m in pkgutil.walk_packages(cute_py.__path__, "cute_py.")}
    clashing = []
    for path in sorted(paths & set(public_names())):
        parent, _, name = f"cute_py.{path}".rpartition(".")
        if callable(getattr(importlib.import_module(parent), name)):
            clashing.append(path)
    assert clashing == []
