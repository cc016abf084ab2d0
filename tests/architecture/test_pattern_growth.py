"""No regular expression of the package takes more than linear time, so that no pasted text keeps it busy."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from types import ModuleType
from typing import Final

import pytest

from cute_py.explanation.cuda_pastes import ERRORS, error_pattern
from cute_py.explanation.rows.known_texts import compiled, tables
from tests.architecture.pumps import STEEPEST, pieces, steepness
from tests.architecture.sources import no_collection, walked
from tests.architecture.test_layers import PACKAGE, modules

PUMPED = pytest.mark.skipif(
    not os.environ.get("PUMP_PATTERNS"), reason="takes many minutes on a quiet machine: set PUMP_PATTERNS=1"
)
"""Mark of the tests that pump every pattern and row of the package."""

_METHODS: Final = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split", "compile")
_EVERYWHERE: Final = ("finditer", "findall", "sub", "subn", "split")
LENGTH: Final = 16_000
"""Characters of a text, and four times as many where that takes longer than the floor."""
FLOOR: Final = 0.1
"""Seconds that a text may take whatever the length: a pattern of quadratic time takes longer at 16,000 characters."""
NEEDS_PACKAGE: Final = ("torch", "jax", "triton", "hypothesis", "cuda", "pytest", "cutlass")


class _Unknown(dict[str, object]):
    """Names of a function, which stand for a word."""

    def __init__(self, known: Mapping[str, object]) -> None:
        self.known = known

    def __missing__(self, name: str) -> object:
        if name in self.known or name in vars(__builtins__ if inspect.ismodule(__builtins__) else importlib):
            raise KeyError(name)
        return "name"


def _modules(begins: tuple[str, ...]) -> Iterator[ModuleType]:
    for name in modules(PACKAGE):
        if name.endswith("__main__") or not name.startswith(begins):
            continue
        try:
            yield importlib.import_module(name)
        except ImportError as error:
            assert (error.name or "").split(".")[0] in NEEDS_PACKAGE, name


@functools.cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


@pytest.fixture(autouse=True, scope="module")
def no_trees_are_kept() -> Iterator[None]:
    """The trees of the package are a million objects, which each collection of garbage would visit again."""
    yield
    for kept in (_tree, _nodes, _held, _uses):
        kept.cache_clear()


@functools.cache
def _nodes(tree: ast.Module) -> list[ast.Attribute | ast.Call | ast.FunctionDef | ast.ImportFrom]:
    kinds = (ast.Attribute, ast.Call, ast.FunctionDef, ast.ImportFrom)
    return [node for node in walked(tree) if isinstance(node, kinds)]


def _literal(module: ModuleType, argument: ast.expr) -> str | None:
    """The pattern of a call, where a name of the function stands for a word of the pattern."""
    if isinstance(argument, ast.Name) and argument.id not in vars(module):
        return None
    try:
        made = eval(  # the package's own source
            compile(ast.Expression(argument), "pattern", "eval"), vars(module), _Unknown(vars(module))
        )
    except Exception:
        return None
    return made if isinstance(made, str) else None


def _compiled(value: object, depth: int = 3) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif depth and isinstance(value, (tuple, list, frozenset)):
        for item in value:
            yield from _compiled(item, depth - 1)
    elif depth and isinstance(value, dict):
        for item in (*value, *value.values()):
            yield from _compiled(item, depth - 1)
    elif depth and dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _compiled(getattr(value, field.name, None), depth - 1)


@functools.cache
def _held(module: ModuleType) -> dict[str, list[re.Pattern[str]]]:
    """Name of a module -> the compiled patterns in its value, of the names that hold any."""
    found = {name: list(_compiled(value)) for name, value in vars(module).items()}
    return {name: held for name, held in found.items() if held}


@functools.cache
def _uses(tree: ast.Module) -> dict[str, set[str]]:
    """Name of a compiled pattern -> the methods that a file calls of it."""
    found: dict[str, set[str]] = {}
    for node in _nodes(tree):
        if isinstance(node, ast.Attribute) and node.attr in _METHODS:
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            found.setdefault(name, set()).add(node.attr)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "found":
            for name in [one.id for one in node.args if isinstance(one, ast.Name)]:
                found.setdefault(name, set()).add("match")  # a parser that reads from its place on
    for name, parameter in _handed_over(tree):
        found.setdefault(name, set()).update(found.get(parameter, ()))
    return found


def _handed_over(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(name, parameter) of what is a default of a function or method of this file, or an argument of its calls."""
    functions = {
        node.name: [*node.args.posonlyargs, *node.args.args]
        for node in _nodes(tree)
        if isinstance(node, ast.FunctionDef)
    }
    for node in _nodes(tree):
        if isinstance(node, ast.FunctionDef):
            parameters = [*node.args.posonlyargs, *node.args.args]
            pairs = zip(reversed(node.args.defaults), reversed(parameters), strict=False)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            parameters = functions.get(called, [])
            bound = isinstance(node.func, ast.Attribute) and bool(parameters) and parameters[0].arg == "self"
            pairs = zip(node.args, parameters[bound:], strict=False)
        else:
            continue
        for given, parameter in pairs:
            if isinstance(given, ast.Name):
                yield given.id, parameter.arg


def patterns(*begins: str) -> dict[tuple[str, int, str], str]:
    """(pattern, flags, method) -> where it stands, of the modules whose names begin so."""
    found: dict[tuple[str, int, str], str] = {}
    loaded = list(_modules(begins or ("",)))
    everywhere: dict[str, set[str]] = {}
    for module in loaded:
        for name, methods in _uses(_tree(module)).items():
            everywhere.setdefault(name, set()).update(methods)
    for module in loaded:
        tree = _tree(module)
        here = _uses(tree)
        for name, held in _held(module).items():
            if not name.startswith("__"):
                for one in held:
                    for method in (here if name.startswith("_") else everywhere).get(name) or {"finditer"}:
                        found.setdefault((one.pattern, one.flags, method), f"{module.__name__}.{name}")
        for node in _nodes(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            if _is_of_re(node.func):
                literal = _literal(module, node.args[0])
                if literal is not None and node.func.attr != "compile":
                    flags = re.IGNORECASE if "IGNORECASE" in ast.unparse(node) else 0
                    flags |= re.MULTILINE if "MULTILINE" in ast.unparse(node) else 0
                    flags |= re.DOTALL if "DOTALL" in ast.unparse(node) else 0
                    place = f"{module.__name__}:{node.lineno}"
                    found.setdefault((literal, flags, node.func.attr), place)
    return found


def _is_of_re(called: ast.expr) -> bool:
    """Whether this is `re.search` or another function of `re` that takes a pattern."""
    if not (isinstance(called, ast.Attribute) and called.attr in _METHODS):
        return False
    return isinstance(called.value, ast.Name) and called.value.id == "re"


def _left_out() -> Iterator[str]:
    """Calls of `re` in the package whose pattern is none of those that are pumped."""
    pumped = {pattern for pattern, _, _ in patterns()}
    for module in _modules(("",)):
        tree = _tree(module)
        held = _held(module).keys()
        kept = {
            id(node)
            for statement in tree.body
            if held
            and isinstance(statement, ast.Assign | ast.AnnAssign)
            and {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} & held
            for node in ast.walk(statement)
        }
        for node in _nodes(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "re":
                yield f"{module.__name__}: {ast.unparse(node)}"
            if not (isinstance(node, ast.Call) and _is_of_re(node.func)):
                continue
            known = isinstance(node.args[0], ast.Name) and node.args[0].id in held
            if not known and id(node) not in kept and _literal(module, node.args[0]) not in pumped:
                yield f"{module.__name__}: {ast.unparse(node)}"


def _work(pattern: str, flags: int, method: str) -> Callable[[str], object]:
    one = re.compile(pattern, flags)
    if method in _EVERYWHERE:
        return lambda text: sum(1 for _ in one.finditer(text))
    return {"match": one.match, "fullmatch": one.fullmatch}.get(method, one.search)


def steep(
    found: Mapping[tuple[str, int, str], str], length: int, floor: float
) -> list[tuple[float, str, str, tuple[str, str]]]:
    """(exponent, place, pattern, text) of the patterns that grow too fast, the steepest text of each."""
    failed = []
    for (pattern, flags, method), place in found.items():
        work = _work(pattern, flags, method)
        for before, piece in pieces(pattern, flags):
            exponent = steepness(work, before, piece, length, floor)
            if exponent > STEEPEST:
                failed.append((round(exponent, 2), f"{place} ({method})", pattern, (before, piece)))
                break
    return failed


@pytest.mark.parametrize(
    ("pattern", "is_steep"),
    [
        (r"a+b", True),
        (r"/\*.*?\*/", True),
        (r"x=\w*\s*\w*;", True),
        (r"(?<!a)a++b", False),
        (r"a{1,80}b", False),
        (r"/\*.*?(?:\*/|\Z)", False),
    ],
)
def test_a_steep_pattern_is_seen(pattern: str, is_steep: bool) -> None:
    found = steep({(pattern, re.DOTALL, "finditer"): "here"}, 3000, 0.002)
    assert bool(found) == is_steep, found


def test_patterns_are_found_where_they_stand() -> None:
    """Compiled ones by their name and methods, literals by their line, also those that a function completes."""
    places = set(patterns("cute_py.explanation.c", "cute_py.ptx.parse").values())
    assert "cute_py.explanation.cuda_pastes._SANITIZER" in places
    assert any(place.startswith("cute_py.ptx.parse:") for place in places)


PARTS: Final = {"cute_py.explanation": 4, "cute_py.ptx": 6, "cute_py.tma": 6}
"""Packages with so many patterns that a test takes a part of them, and how many parts."""


@PUMPED
@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "part"),
    [
        (package, part)
        for package in sorted({".".join(name.split(".")[:2]) for name in modules(PACKAGE) if "." in name})
        for part in range(PARTS.get(package, 1))
    ],
)
def test_no_pattern_is_steep(package: str, part: int) -> None:
    found = list(patterns(package).items())[part :: PARTS.get(package, 1)]
    assert steep(dict(found), LENGTH, FLOOR) == []


def test_every_pattern_is_pumped() -> None:
    """Also those that functions compile: for the recognisers, the rows of known texts, and the errors of CUDA."""
    read_by_value = {
        "cute_py.explanation.dispatch: re.compile(cue, re.IGNORECASE)",
        "cute_py.explanation.cuda_pastes: re.compile(f'{names}|{counted}', re.IGNORECASE)",
        "cute_py.explanation.rows.known_texts: re.compile(_BLANK.sub(lambda part: _WHITE.get(part[0], part[0]), "
        "pattern), re.IGNORECASE)",
    }
    with no_collection():
        left_out = set(_left_out())
    assert left_out == read_by_value


def _of_rows(name: str) -> Iterator[re.Pattern[str]]:
    """The patterns of a file of rows."""
    if name == "cuda_errors":
        yield from map(error_pattern, ERRORS)
    for table in tables(name).values():
        for row in table:
            if "pattern" in row:
                yield compiled(row["pattern"])


FILES: Final = sorted(
    file.name.removesuffix(".toml")
    for file in resources.files("cute_py.explanation.rows").iterdir()
    if file.name.endswith(".toml")
)


@PUMPED
@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_no_row_is_steep(name: str) -> None:
    found = {(one.pattern, one.flags, "finditer"): f"rows/{name}" for one in _of_rows(name)}
    assert steep(found, LENGTH, FLOOR) == []
