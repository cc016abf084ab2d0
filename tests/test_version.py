"""One version: the package's, the installed distribution's and the newest of the list of changes."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import cute_py

ROOT = Path(__file__).resolve().parents[1]
CHANGES = ROOT / "docs" / "changes"
LISTED = re.compile(r"^- \[[^\]]+\]\((\d{4}-[a-z0-9-]+\.md)\)$", re.MULTILINE)


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


def sections() -> dict[str, list[str]]:
    """Version -> files, as the list of changes has them, newest first."""
    text = (CHANGES / "README.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (\S+)$", text, flags=re.MULTILINE)[1:]
    return {name: LISTED.findall(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}


def test_the_newest_version_of_the_changes_is_this_one() -> None:
    assert next(iter(sections())) == cute_py.__version__


def test_every_change_is_listed_once_and_in_order() -> None:
    listed = [name for names in reversed(sections().values()) for name in names]
    assert listed == sorted(path.name for path in CHANGES.glob("[0-9]*.md"))
    assert [name[:4] for name in listed] == [f"{i:04}" for i in range(1, len(listed) + 1)]


def test_every_change_is_lines_for_a_user() -> None:
    for path in CHANGES.glob("[0-9]*.md"):
        text = path.read_text(encoding="utf-8")
        assert all(re.match(r"- |  ", line) for line in text.splitlines()), path.name
