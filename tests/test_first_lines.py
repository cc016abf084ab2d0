"""First lines of docstrings stand alone: none begins with 'Of', 'What', 'Whatever', 'The same' or 'As above'.

No docstring of the package does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FRAGMENT = re.compile(r"(?:Of|What|Whatever|The same|As above)\b")
MAY_HAVE_ONE = re.compile(r"""["'](?:\\\n|\s)*""" + FRAGMENT.pattern)
"""A fragment behind a quote: a source without one is not parsed."""
MOST = 0
"""Docstrings that may begin with a fragment."""


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of each docstring: of modules, classes, functions, and the texts below assignments.

    >>> [text for _, text in docstrings("A = 1\\n'Of each.'\\ndef f():\\n    'What it does.'")]
    ['Of each.', 'What it does.']
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for before, statement in zip([None, *node.body], node.body, strict=False):
            if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
                continue
            documents = before is None or isinstance(before, (ast.Assign, ast.AnnAssign))
            if documents and isinstance(statement.value.value, str):
                yield statement.lineno, statement.value.value


def fragments(source: str) -> list[int]:
    """The lines of docstrings that begin with a fragment."""
    if MAY_HAVE_ONE.search(source) is None:
        return []
    return [line for line, text in docstrings(source) if FRAGMENT.match(text.lstrip())]


def test_no_docstring_begins_with_a_fragment() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(ROOT.glob("cute_py/**/*.py"))
        for line in fragments(path.read_text(encoding="utf-8"))
    ]
    assert len(found) <= MOST, "\n".join(found)


@pytest.mark.parametrize("text", ["Of each.", "What it holds.", "Whatever Python has.", "The same.", "As above."])
def test_a_fragment_is_found(text: str) -> None:
    assert fragments(f'"""{text}"""') == [1]
    assert fragments(f'A = 1\n"""{text}"""') == [2]
    assert fragments(f'class A:\n    def f(self):\n        """{text}"""') == [3]


@pytest.mark.parametrize("text", ["Offsets of a layout.", "Whatsoever", "A rule", "Return the offset."])
def test_a_sentence_is_not(text: str) -> None:
    assert fragments(f'"""{text}"""') == []
    assert fragments(f'print("What")\nx = "{text}"') == []
