"""Functions are short: ruff bounds branches (15) and statements (50), few are excused, and none has over 80 lines."""

from __future__ import annotations

import re
from pathlib import Path

from tests.architecture.sources import source
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
    parts = [source(path.read_text()) for path in root.rglob("*.py")]
    return {name for part in parts for name, lines in part.functions if lines > MAX_LINES}


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
