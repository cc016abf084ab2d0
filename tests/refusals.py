"""Bad input as rows, (name, call, error, words), and their check: the error is of this class and says these words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cute_py.errors import CuteError
from tests.each import each_of

Refusal = tuple[str, Callable[[], Any], type[CuteError], str]


def refusals(rows: Sequence[Refusal]) -> Any:
    """Makes a check of (call, kind, words) a test of all rows, which names those that fail."""
    return each_of(("call", "kind", "words"), [row[1:] for row in rows], ids=[row[0] for row in rows])


def assert_refused(call: Callable[[], Any], kind: type[CuteError], words: str) -> None:
    """The call raises the error, without a warning on the way (pytest turns warnings into errors)."""
    with pytest.raises(kind) as error:
        call()
    assert words in str(error.value), f"{words!r} is not in {error.value}"


def is_refusal(err: str) -> bool:
    """What a refused command says: a headline, then facts and the hint, each indented on its line."""
    first, *rest = err.splitlines()
    return first.startswith("cute-py") and ": error: " in first and all(line.startswith("  ") for line in rest)


def nested(depth: int) -> Any:
    """A tuple in a tuple in a tuple ..."""
    tree: Any = 1
    for _ in range(depth):
        tree = (tree,)
    return tree
