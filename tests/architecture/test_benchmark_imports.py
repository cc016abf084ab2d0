"""What the benchmarks import of the package exists: they run on machines with a GPU, long after a move."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

from tests.each import each_of

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "benchmarks").rglob("*.py"))


def missing(source: str) -> list[str]:
    """Names that a source imports from this repository, and that are not there."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("cute_py", "tests"):
            module = importlib.import_module(str(node.module))
            for alias in node.names:
                if not hasattr(module, alias.name) and not _is_module(f"{node.module}.{alias.name}"):
                    found.append(f"{node.module}.{alias.name}")
    return found


def _is_module(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


@each_of("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_exist(file: Path) -> None:
    assert missing(file.read_text(encoding="utf-8")) == []


def test_a_missing_name_is_found() -> None:
    assert missing("from cute_py.layout.layout import Layout, Lay") == ["cute_py.layout.layout.Lay"]
