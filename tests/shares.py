"""A part of a sweep runs by default, and the rest with the mark `slow`: together they are the whole sweep."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(every: int, values: Iterable[Any]) -> list[Any]:
    """The values as parameters of a test: the first and each `every`th after it run by default, the others are slow.

    >>> [value.marks[0].name if hasattr(value, "marks") else value for value in one_in(3, "abcde")]
    ['a', 'slow', 'slow', 'd', 'slow']
    """
    return [
        value if number % every == 0 else pytest.param(*_arguments(value), marks=pytest.mark.slow)
        for number, value in enumerate(values)
    ]


def in_part(every: int) -> pytest.MarkDecorator:
    """The parameter `every` of a test: each `every`th row of a table by default, and with the mark `slow` all of them.

    >>> [value.values if hasattr(value, "marks") else value for value in in_part(3).args[1]]
    [3, (1,)]
    """
    return pytest.mark.parametrize("every", [every, pytest.param(1, marks=pytest.mark.slow)])


def _arguments(value: Any) -> tuple[Any, ...]:
    """A row of several parameters is given as a tuple, as to `parametrize`."""
    return value if isinstance(value, tuple) else (value,)
