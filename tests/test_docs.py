"""The pages run: every ```python block of a page, as one script, prints what the ```text block after it shows.

A block that prints must be followed by its output, and the output by nothing else; ```python no-run blocks (device,
network) are shown and not run.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from tests.each import each_of

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md"])
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)

Block = tuple[str, str, int]
"""(language, body, number of its first line)"""


def blocks(text: str) -> list[Block]:
    return [(m[1].strip(), m[2], text.count("\n", 0, m.start()) + 2) for m in FENCE.finditer(text)]


def clean(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def differences(page: str, text: str) -> list[str]:
    """Run a page; what each block printed where that is not what the page shows."""
    namespace: dict[str, Any] = {"__name__": "__page__"}
    found = []
    all_blocks = blocks(text)
    for i, (language, body, line) in enumerate(all_blocks):
        if language != "python":
            continue
        printed = io.StringIO()
        code = compile("\n" * (line - 1) + body, page, "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        shown = all_blocks[i + 1] if i + 1 < len(all_blocks) else ("", "", 0)
        expected = shown[1] if shown[0] == "text" else ""
        if clean(printed.getvalue()) != clean(expected):
            found.append(f"{page}:{line}: printed\n{printed.getvalue()}\nthe page shows\n{expected}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_page(page: Path) -> None:
    found = differences(str(page.relative_to(ROOT)), page.read_text())
    assert not found, "\n\n".join(found)


@each_of("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_blocks_that_are_shown_only_are_python(page: Path) -> None:
    for language, body, line in blocks(page.read_text()):
        if language.startswith("python") and language != "python":
            assert language == "python no-run", f"{page.name}:{line - 1}: {language}"
            compile(body, f"{page.name}:{line}", "exec")


def test_a_wrong_printout_is_found() -> None:
    page = "```python\nx = 2\nprint(x)\n```\n\n```text\n2\n```\n"
    assert differences("p", page) == []
    assert len(differences("p", page.replace("\n2\n", "\n3\n"))) == 1


def test_a_missing_printout_is_found() -> None:
    assert len(differences("p", "```python\nprint(1)\n```\n")) == 1


def test_blocks_share_names_and_may_be_shown_only() -> None:
    page = "```python\nx = 1\n```\n```python no-run\n1 / 0\n```\n```python\nprint(x)\n```\n```text\n1\n```"
    assert differences("p", page) == []
