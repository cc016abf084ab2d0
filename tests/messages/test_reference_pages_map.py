"""docs/reference-pages-map.md names tests that exist, and every row names one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference-pages-map.md"
SHORT = re.compile(r"\b([A-Z]) (?:is )?`(tests/[\w/]+\.py)`")


def rows(text: str) -> list[list[str]]:
    """The cells of every table row but the headers."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[1] != "tests" and not set(row[1]) <= {"-"}]


def missing(text: str, root: Path) -> list[str]:
    """Tests that the page names and that are not there."""
    short = dict(SHORT.findall(text))
    found: dict[str, set[str]] = {}
    gone = []
    for row in rows(text):
        for name in row[1].split(", "):
            file, _, function = name.partition("::")
            path = root / short.get(file, file)
            if str(path) not in found:
                tree = ast.parse(path.read_text()) if path.is_file() else ast.Module([], [])
                found[str(path)] = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
            if function not in found[str(path)]:
                gone.append(name)
    return gone


def test_every_row_names_tests_that_exist() -> None:
    text = PAGE.read_text()
    assert len(SHORT.findall(text)) == 8
    assert len(rows(text)) >= 90
    assert missing(text, ROOT) == []


def test_the_check_can_fail() -> None:
    text = "V is `tests/messages/test_reference_pages_map.py`\n| a rule | V::test_not_there, W::test_x | |\n"
    assert missing(text, ROOT) == ["V::test_not_there", "W::test_x"]
