"""The core imports no annex: each annex may be taken away, and the rest imports and does what it says.

An annex uses the public names of the core, and only the annexes that `USES` lists for it.
"""

from __future__ import annotations

import ast
import functools
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import source
from tests.architecture.test_layers import PACKAGE, modules

USES: dict[str, set[str]] = {
    "mesh": set(),
    "checkpoints": {"mesh"},
    "torch": set(),
    "jax": set(),
    "tmem": set(),
    "tma/dialect": {"tmem"},
    "tma/gemm": set(),
    "tma/exports": {"tma/dialect"},
    "watch": {"explanation"},
    "testing": set(),
    "draw": {"mesh", "tmem"},
    "explanation": {"draw", "tma/dialect"},
    "page": {"draw", "explanation", "tma/exports"},
    "cli": {"checkpoints", "draw", "explanation", "mesh", "page", "tmem", "watch"},
}
"""Annex -> the annexes that it imports."""

FACADES = {
    "cute_py": "gives the public names of all packages",
    "cute_py.tma": "gives the public names of its packages",
    "cute_py.notebook": "asks `draw` for the picture of an object when a notebook shows one",
}
"""Modules of the core that name an annex, in an import that is made when a name is first used, each with the reason."""

OF_THE_SHELL = {"cute_py.__main__"}
"""Modules outside the folder of the shell that are part of it."""

SCRIPT = """
import doctest, importlib, sys
import cute_py

names = {"cute": cute_py}
for name in cute_py.__all__:
    try:
        names[name] = getattr(cute_py, name)
    except ModuleNotFoundError:  # a public name of an annex that is gone
        continue
with_doctests, *listed = sys.argv[1:]
failed = tried = 0
for name in listed:
    module = importlib.import_module(name)
    if name.startswith(tuple(with_doctests.split())):
        found = doctest.testmod(module, extraglobs=names)
        failed, tried = failed + found.failed, tried + found.attempted
print(len(listed), "modules", tried, "examples", failed, "failures")
sys.exit(bool(failed) or (bool(with_doctests) and tried < 20))
"""


def annex_of(module: str) -> str | None:
    """The annex that a module belongs to; None for the core."""
    if module in OF_THE_SHELL:
        return "cli"
    inside = module.partition(".")[2].replace(".", "/")
    return next((annex for annex in USES if inside == annex or inside.startswith(f"{annex}/")), None)


def package_of(module: str) -> str:
    return ".".join(module.split(".")[: 3 if module.startswith("cute_py.tma.") else 2])


def imported(path: Path) -> list[tuple[str, bool, list[str]]]:
    """(module, whether the import is made when the file is loaded, names) of each import of this package."""
    return imports_of(path.read_text())


@functools.cache
def imports_of(text: str) -> list[tuple[str, bool, list[str]]]:
    parts = source(text)
    found = []
    for node in parts.imports:
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.module, node in parts.imports_at_once, names))
        elif isinstance(node, ast.Import):
            found += [(name, node in parts.imports_at_once, []) for name in names]
    return [row for row in found if row[0].startswith("cute_py")]


def annexes_of(row: tuple[str, bool, list[str]]) -> set[str]:
    module, _, names = row
    return {annex for name in (module, *(f"{module}.{name}" for name in names)) if (annex := annex_of(name))}


def core_imports(root: Path) -> list[str]:
    """Imports of an annex in the core, but those of the facades that wait for the first use."""
    return [
        f"{name} imports {annex}"
        for name, path in modules(root).items()
        if annex_of(name) is None
        for row in imported(path)
        for annex in sorted(annexes_of(row))
        if row[1] or name not in FACADES
    ]


def private_imports(root: Path) -> list[str]:
    """Names with an underscore that an annex imports from another package."""
    return [
        f"{name} imports {module}.{private}"
        for name, path in modules(root).items()
        if annex_of(name) is not None
        for module, _, names in imported(path)
        for private in names
        if private.startswith("_") and package_of(module) != package_of(name)
    ]


def used_annexes(root: Path) -> dict[str, set[str]]:
    used: dict[str, set[str]] = {annex: set() for annex in USES}
    for name, path in modules(root).items():
        if annex := annex_of(name):
            used[annex] |= {other for row in imported(path) for other in annexes_of(row)} - {annex}
    return used


def without(root: Path, copy: Path, *annexes: str) -> list[str]:
    """Copy the package but some annexes, and give the modules that must still import: all but those that use them.

    The byte code comes along: Python reads it only beside its source.
    """
    shutil.copytree(root, copy / root.name)
    gone = set(annexes)
    for annex in annexes:
        shutil.rmtree(copy / root.name / annex)
    while more := {annex for annex, used in USES.items() if used & gone} - gone:
        gone |= more
    return [name for name in modules(copy / root.name) if annex_of(name) not in gone]


def run(copy: Path, doctests: str, names: list[str]) -> str:
    command = [sys.executable, "-c", SCRIPT, doctests, *names]
    done = subprocess.run(command, cwd=copy, env={"PYTHONPATH": str(copy)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_the_core_imports_no_annex() -> None:
    assert core_imports(PACKAGE) == []


def test_an_annex_uses_public_names() -> None:
    assert private_imports(PACKAGE) == []


def test_an_annex_uses_the_annexes_that_are_listed() -> None:
    assert used_annexes(PACKAGE) == USES


def test_the_core_works_without_any_annex(tmp_path: Path) -> None:
    names = without(PACKAGE, tmp_path, *USES)
    assert len(names) > 100
    run(tmp_path, "cute_py.arith_tuple cute_py.tma.descriptor", names)


@pytest.mark.slow
@pytest.mark.parametrize("annex", USES)
def test_each_annex_may_be_taken_away(annex: str, tmp_path: Path) -> None:
    names = without(PACKAGE, tmp_path, annex)
    core = [name for name in names if annex_of(name) is None]
    run(tmp_path, "", names)
    run(tmp_path, "cute_py", core)


def test_these_rules_can_fail(tmp_path: Path) -> None:
    package = tmp_path / "cute_py"
    (package / "layout").mkdir(parents=True)
    (package / "draw").mkdir()
    (package / "__init__.py").write_text("def f():\n    from cute_py.draw import picture\n")
    (package / "layout" / "__init__.py").write_text("def f():\n    import cute_py.draw.picture\n")
    (package / "draw" / "__init__.py").write_text("from cute_py.layout.layout import _made, Layout\n")
    (package / "draw" / "picture.py").write_text("from cute_py.draw import _near\nfrom cute_py import mesh\n")
    assert core_imports(package) == ["cute_py.layout imports draw"]
    assert private_imports(package) == ["cute_py.draw imports cute_py.layout.layout._made"]
    assert used_annexes(package)["draw"] == {"mesh"}
    (package / "__init__.py").write_text("from cute_py.draw import picture\n")
    assert core_imports(package) == ["cute_py imports draw", "cute_py.layout imports draw"]


def test_a_core_that_needs_an_annex_is_found(tmp_path: Path) -> None:
    package = tmp_path / "cute_py"
    package.mkdir()
    (package / "__init__.py").write_text("__all__ = []\n")
    (package / "low.py").write_text("import cute_py.draw\n")
    with pytest.raises(AssertionError, match=r"No module named 'cute_py.draw'"):
        run(tmp_path, "", ["cute_py", "cute_py.low"])


HOST_COPY = """
import sys
import numpy as np
import cute_py as cute

x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros(12, np.float32)
result = cute.copy(x, (y, cute.Layout((3, 4))))
assert result.equal and y[:4].tolist() == [0, 4, 8, 1]
print(sorted(name for name in sys.modules if name.startswith(("cute_py.gpu", "cute_py.copies.plan", "cuda"))))
result.plan
print("cute_py.copies.plan" in sys.modules)
"""


def test_a_copy_on_the_host_imports_no_gpu_code_and_plans_no_kernel() -> None:
    environment = {"PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-c", HOST_COPY]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["[]", "True", ""]
