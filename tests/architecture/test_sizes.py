"""Functions are short: ruff bounds branches (15) and statements (50), few are excused, and none has over 80 lines."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.architecture.test_layers import PACKAGE

MAX_LINES = 80
"""Of a function without its docstring."""
MAX_EXCUSED = 10

EXCUSE = re.compile(r"# noqa: (?:C901|PLR0915)[\w,]*( - \S.*)?")


def excuses(root: Path) -> list[str]:
    """The excuses of functions that are too complex for ruff, as they are written."""
    return [found[0] for path in sorted(root.rglob("*.py")) for found in EXCUSE.finditer(path.read_text())]


def long_functions(root: Path) -> set[str]:
    """Names of functions with more than MAX_LINES lines."""
    found = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0]
                text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
                docstring = (first.end_lineno or 0) - first.lineno + 1 if text else 0
                if (node.end_lineno or 0) - node.lineno + 1 - docstring > MAX_LINES:
                    found.add(node.name)
    return found


def test_few_functions_are_excused_and_each_says_why() -> None:
    found = excuses(PACKAGE)
    assert len(found) <= MAX_EXCUSED
    assert [text for text in found if " - " not in text] == []


def test_no_function_is_long() -> None:
    assert long_functions(PACKAGE) == set()


def test_these_rules_can_fail(tmp_path: Path) -> None:
    lines = "".join(f"    x = {i}\n" for i in range(MAX_LINES))
    (tmp_path / "a.py").write_text(f"def f():  # noqa: C901\n{lines}\n\ndef g():\n{lines[:-11]}\n")
    assert long_functions(tmp_path) == {"f"}
    assert excuses(tmp_path) == ["# noqa: C901"]
