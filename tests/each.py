"""One test for all rows of a table: it goes on after a row that fails, and names in the end each that failed."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Check = Callable[..., None]
Ids = Callable[[Any], Any] | Iterable[Any] | None


def each_of(
    names: str | tuple[str, ...], rows: Iterable[Any], ids: Ids = None, every: int = 1
) -> Callable[[Check], Check]:
    """Takes what `pytest.mark.parametrize` takes, and makes one test where that makes one for each row.

    A test by itself costs some milliseconds, which is more than most rows of a long table take. Fixtures are made once
    for all rows, so that it does not serve a test that changes one.

    Args:
        every: the test runs the first row and each `every`th after it by default, and all rows with the mark `slow`.
    """
    wanted = tuple(part.strip() for part in names.split(",")) if isinstance(names, str) else names
    rows = list(rows)
    if any(hasattr(row, "marks") for row in rows):
        raise TypeError("a row with a mark is a test by itself: pytest.mark.parametrize")
    given = [tuple(row) if len(wanted) > 1 else (row,) for row in rows]
    names_of_rows = _names(given, ids)

    def decorate(check: Check) -> Check:
        signature = inspect.signature(check)
        others = [parameter for name, parameter in signature.parameters.items() if name not in wanted]
        if every > 1:
            others.append(inspect.Parameter("every", inspect.Parameter.KEYWORD_ONLY))

        @functools.wraps(check)
        def test(**fixtures: Any) -> None:
            failed = []
            step = fixtures.pop("every") if every > 1 else 1
            part = given[::step]
            for name, row in zip(names_of_rows[::step], part, strict=True):
                try:
                    check(**fixtures, **dict(zip(wanted, row, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    failed.append(f"[{name}]\n{_said(error)}")
            if failed:
                pytest.fail(f"{len(failed)} of {len(part)} rows failed\n\n" + "\n\n".join(failed), pytrace=False)

        test.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        if every > 1:
            return pytest.mark.parametrize("every", [every, pytest.param(1, marks=pytest.mark.slow)])(test)
        return test

    return decorate


def _names(rows: list[tuple[Any, ...]], ids: Ids) -> list[str]:
    if ids is None or callable(ids):
        shown = ids or (lambda value: None)
        return ["-".join(str(made if (made := shown(x)) is not None else repr(x)[:80]) for x in row) for row in rows]
    return [str(name) for name in ids]


def _said(error: BaseException) -> str:
    """The error, and the lines that led to it, from the test on."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    lines = [f"{frame.filename}:{frame.lineno}: {frame.line}" for frame in frames]
    return "\n".join([*lines, *(f"    {line}" for line in f"{type(error).__name__}: {error}".splitlines())])
