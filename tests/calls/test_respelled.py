"""The calls once more, spelled in another way: by keywords, with numpy's narrow integers, and their results copied.

A number that is kept as it was given overflows later, in the arithmetic of its own few bits.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import dataclasses
import inspect
import io
import pickle
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.calls import arena
from tests.calls.call import Call
from tests.calls.namespace import names
from tests.calls.outcome import is_refusal
from tests.calls.registry import registry

NAMES = names()

AS_GIVEN = (
    *("Int.__", "Ratio.__", "SmemPtrFlag.__"),
    *("basis_get", "compress", "dice", "expand", "fold", "group", "prefix_product", "product_like", "select"),
    *("suffix_product", "sum_", "take", "transform_leaf", "tuple_max", "zip_", "Swizzle.__call__"),
    *("tma.BrokenCondition", "tma.Diagnostic", "tma.Violation", "tma.ExecutableCopy", "tma.TmaAtom.with_"),
    *("tma.Im2colAtom.with_",),
)
"""Arithmetic of operators, which numpy decides with; functions over trees of anything; what keeps any object."""

BY_ADDRESS = re.compile(r" at 0x|second")
"""Texts that differ between two calls."""

NO_PICKLE: dict[str, str] = {}


@pytest.fixture(params=[3, pytest.param(1, marks=pytest.mark.slow)])
def every(request: pytest.FixtureRequest) -> int:
    """Each third name by default, each with the slow tests."""
    return int(request.param)


def drawn(every: int) -> Iterator[tuple[str, Call]]:
    """One valid call of each of the names whose arguments are ordinary ones."""
    ordinary = {
        name: entry
        for name, entry in registry().items()
        if entry.mutable and not entry.device and not name.startswith("cute-py")
    }
    for name in list(ordinary)[::every]:
        yield name, ordinary[name].call("respelled")


def shown(call: Call) -> str:
    """The repr of what a call returns, or the kind of its refusal."""
    arena.reset()
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("error")
            function, args, kwargs = call.made(NAMES)
            return repr(function(*args, **kwargs))
    except Exception as error:
        return "refused" if is_refusal(error, call.text) else f"{type(error).__name__}: {error}"


def narrow(text: str) -> str:
    """Each integer of an argument as the narrowest of numpy's."""
    found: list[tuple[int, int, int]] = []

    def look(tree: ast.expr) -> None:
        if isinstance(tree, ast.Constant) and type(tree.value) is int and tree.value < 256:
            found.append((tree.col_offset, tree.end_col_offset or 0, tree.value))
        elif isinstance(tree, ast.Tuple | ast.List):
            for part in tree.elts:
                look(part)

    look(ast.parse(text, mode="eval").body)
    for begin, end, number in reversed(found):
        text = f"{text[:begin]}numpy.uint8({number}){text[end:]}"
    return text


def by_keyword(call: Call) -> Call | None:
    """The call with the names of its parameters; None where some have none."""
    try:
        function, args, _ = call.made(NAMES)
        parameters = list(inspect.signature(function).parameters.values())[: len(args)]
    except (TypeError, ValueError):
        return None
    if call.fixed or len(parameters) < len(args) or any(p.kind != p.POSITIONAL_OR_KEYWORD for p in parameters):
        return None
    named = tuple((p.name, text) for p, text in zip(parameters, call.args or (), strict=True))
    return dataclasses.replace(call, args=(), kwargs=(*named, *call.kwargs))


def narrowed(call: Call) -> Call:
    args = tuple(text if i < call.fixed else narrow(text) for i, text in enumerate(call.args or ()))
    return dataclasses.replace(call, args=args, kwargs=tuple((key, narrow(text)) for key, text in call.kwargs))


def test_integers_of_any_nesting_are_narrowed() -> None:
    assert narrow("(1, [2, (300,)], 'x', f(4))") == "(numpy.uint8(1), [numpy.uint8(2), (300,)], 'x', f(4))"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def differing(respelled: Any, skipped: tuple[str, ...], every: int) -> tuple[list[str], int]:
    """Calls whose outcome is another one once respelled, and how many were."""
    found, count = [], 0
    for name, call in drawn(every):
        other = None if call.args is None or name.startswith(skipped) else respelled(call)
        if other is None or other == call:
            continue
        count += 1
        first, second = shown(call), shown(other)
        if first != second and not BY_ADDRESS.search(first):
            found.append(f"{other.text[:300]}\n    {first[:200]}\n    {second[:200]}")
    return found, count


def test_arguments_by_keyword(every: int) -> None:
    found, count = differing(by_keyword, (), every)
    assert count > 300 // every and not found, "\n".join(found)


def test_numpys_integers_of_8_bits(every: int) -> None:
    found, count = differing(narrowed, AS_GIVEN, every)
    assert count > 300 // every and not found, "\n".join(found)


def test_results_are_copied_and_pickled(every: int) -> None:
    found, count = [], 0
    for _, call in drawn(every):
        arena.reset()
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function, args, kwargs = call.made(NAMES)
                made = function(*args, **kwargs)
        except Exception:  # refusals; what else may not be raised is the fuzzer's
            continue
        if not type(made).__module__.startswith("cute_py") or BY_ADDRESS.search(repr(made)):
            continue
        count += 1
        ways = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda one: pickle.loads(pickle.dumps(one))}
        for way, again in ways.items():
            if way == "pickle" and type(made).__name__ in NO_PICKLE:
                continue
            try:
                text = repr(again(made))
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
            if text != repr(made):
                found.append(f"{way} of {call.text[:300]}\n    {repr(made)[:200]}\n    {text[:200]}")
    assert count > 300 // every and not found, "\n".join(found)
