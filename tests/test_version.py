"""One version: the package's, the installed distribution's and the newest of the list of changes."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import cute_py

ROOT = Path(__file__).resolve().parents[1]


def test_the_version_is_one_of_semantic_versioning() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+|\.dev\d+)?", cute_py.__version__)


def test_it_is_written_in_one_place() -> None:
    """The build reads it from the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert "version" not in project["project"]
    source = (ROOT / project["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    assert f'\n__version__ = "{cute_py.__version__}"\n' in source


def test_the_installed_distribution_has_it() -> None:
    assert importlib.metadata.version("cute-py") == cute_py.__version__


def versions() -> list[str]:
    """The versions that the list of changes has, as it has them: newest first."""
    return re.findall(r"^## (\S+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_newest_version_of_the_changes_is_this_one() -> None:
    assert versions()[0] == cute_py.__version__
    numbers = [tuple(map(int, version.split("."))) for version in versions()]
    assert numbers == sorted(set(numbers), reverse=True)
