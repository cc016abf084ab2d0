"""Docstring examples: the names they use, and the modules they are looked for in. What collecting tests costs."""

from __future__ import annotations

import contextlib
import gc
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule

import cute_py


@pytest.hookimpl(hookwrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collection makes many objects and little garbage, so the garbage collector waits until its end.

    The objects are not frozen: hypothesis 6.100 finds out from the garbage collector who holds a random generator.
    """
    gc.disable()
    _import_share(session.config)
    yield
    gc.enable()


def _import_share(config: pytest.Config) -> None:
    """A worker of pytest-xdist imports its share of the test files first, so that each file is compiled once.

    Workers that collect in the same order compile every file at the same time, each for itself.
    """
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is None or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    files = sorted((config.rootpath / "tests").rglob("test_*.py"))
    for file in files[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        # Collection imports a file that fails or skips once more, and reports it.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(config.rootpath).with_suffix("").parts))


@pytest.hookimpl(hookwrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    """No examples are looked for in a module whose text has none, which saves a fifth of the time to collect tests."""
    outcome: Any = yield
    if file_path.suffix == ".py" and ">>>" not in file_path.read_text(encoding="utf-8"):
        outcome.force_result([made for made in outcome.get_result() if not isinstance(made, DoctestModule)])


@pytest.fixture(autouse=True, scope="session")
def public_names(doctest_namespace: dict[str, Any]) -> None:
    """Examples of the layout and arith_tuple packages use the public names without a prefix."""
    doctest_namespace.update({name: getattr(cute_py, name) for name in cute_py.__all__})
    doctest_namespace["cute"] = cute_py
