"""Docstring examples of the layout and arith_tuple packages use the public names without a prefix."""

from __future__ import annotations

from typing import Any

import pytest

import cute_py


@pytest.fixture(autouse=True, scope="session")
def public_names(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace.update({name: getattr(cute_py, name) for name in cute_py.__all__})
    doctest_namespace["cute"] = cute_py
